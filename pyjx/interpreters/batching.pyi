# Written by `python -m pyjx.cli.stubs` from the table of pyjx.interpreters.batching.

from pyjx.compat.rule_tables import AxisData as AxisData
from pyjx.compat.rule_tables import axis_primitive_batchers as axis_primitive_batchers
from pyjx.compat.rule_tables import defbroadcasting as defbroadcasting
from pyjx.compat.rule_tables import defreducer as defreducer
from pyjx.compat.rule_tables import defvectorized as defvectorized
from pyjx.compat.rule_tables import fancy_primitive_batchers as fancy_primitive_batchers
from pyjx.compat.rule_tables import primitive_batchers as primitive_batchers
from pyjx.compat.partial_evaluation import batch_jaxpr_axes as batch_jaxpr_axes
from pyjx.compat.partial_evaluation import batch_subtrace as batch_subtrace
from pyjx.compat.partial_evaluation import bdim_at_front as bdim_at_front
from pyjx.compat.partial_evaluation import broadcast as broadcast
from pyjx.compat.partial_evaluation import moveaxis as moveaxis
from pyjx.compat.partial_evaluation import not_mapped as not_mapped
from pyjx.compat.partial_evaluation import zero_if_mapped as zero_if_mapped
from pyjx.transforms.vmap import is_vmappable as is_vmappable
from pyjx.transforms.vmap import register_vmappable as register_vmappable
from pyjx.transforms.vmap import unregister_vmappable as unregister_vmappable
from pyjx.engine.batching import BatchTrace as BatchTrace
from pyjx.engine.batching import BatchTracer as BatchTracer

__all__ = [
    "AxisData",
    "axis_primitive_batchers",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "primitive_batchers",
    "batch_jaxpr_axes",
    "batch_subtrace",
    "bdim_at_front",
    "broadcast",
    "moveaxis",
    "not_mapped",
    "zero_if_mapped",
    "is_vmappable",
    "register_vmappable",
    "unregister_vmappable",
    "BatchTrace",
    "BatchTracer",
]
