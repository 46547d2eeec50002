"""Mapping: the rules of primitives."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.compat.rule_tables": (
        "AxisData axis_primitive_batchers defbroadcasting defreducer "
        "defvectorized fancy_primitive_batchers primitive_batchers"
    ),
    "pyjx.compat.mapping": (
        "batch_jaxpr_axes batch_subtrace bdim_at_front broadcast moveaxis not_mapped "
        "zero_if_mapped"
    ),
    "pyjx.transforms.mappables": "is_vmappable register_vmappable unregister_vmappable",
    "pyjx.engine.batching": "BatchTrace BatchTracer",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
