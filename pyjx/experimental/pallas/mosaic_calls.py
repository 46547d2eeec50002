"""Kernels that TPUs compile: the call of a module of Mosaic in the place of a `pallas_call`."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from lowering import mosaic
from lowering.kernels import held
from pyjx import configuration, jaxlib_api
from pyjx.core import dtypes
from pyjx.core.avals import AbstractRef, ShapedArray, get_aval
from pyjx.core.effects import Effect, Effects, axis_names, no_effects
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.meshes import AbstractMesh
from pyjx.core.primitive import Primitive, register
from pyjx.engine.decompose import decomposition_of, program_of
from pyjx.engine.types import Params
from pyjx.experimental.pallas.kernel_formulas import FORMULAS
from pyjx.experimental.pallas.kernel_grids import BlockMapping, Element, GridMapping
from pyjx.lax.collectives import axis_index_p
from pyjx.lax.convert import convert_element_type
from pyjx.runtime.costs import Costs


def _no_derivative(*_: Any, **params: Any) -> NoReturn:
    raise NotImplementedError(
        f"pallas_call: the compiled kernel {params['name']} has no derivative of its own. Give the "
        "function around it rules by jax.custom_vjp, or give pallas_call interpret=True.")


class KernelEffect(Effect):
    """A compiled kernel has `has_side_effects`: it runs though nobody reads its results."""

    __slots__ = ()


_kept: Effects = frozenset({KernelEffect()})


def kept_effects(params: Params) -> Effects:
    """What keeps a compiled kernel in a program."""
    options = params["compiler_params"]
    return _kept if getattr(options, "has_side_effects", False) and not params["interpret"] \
        else no_effects


mosaic_call_p = register(Primitive(
    "mosaic_call", multiple_results=True, cached=False, jvp=_no_derivative,
    effects=lambda params: _kept if params["has_side_effect"] else no_effects,
    arithmetic=lambda eqn: eqn.params["cost"],
    shape_rule=lambda *avals, out_avals, **params: list(out_avals)))

# What of `CompilerParams` is part of the custom call's configuration.
_CONFIGURED = ("vmem_limit_bytes", "collective_id", "internal_scratch_in_bytes")


def compiled(params: Params, operands: Sequence[Any]) -> list[Any]:
    """The results of the kernel, which a TPU's compiler makes.

    Raises:
      NotImplementedError: the kernel has an operation, or the call a grid or block, that has no
        form there.
    """
    for x in operands:
        if dtypes.is_extended(get_aval(x).dtype):
            raise NotImplementedError(f"pallas_call: an operand is {get_aval(x).str_short()}, and "
                                      "kernels for TPUs take none of that dtype. Give a key's "
                                      "words, jax.random.key_data(key), to pltpu.prng_seed there.")
    options = params["compiler_params"]
    given = {key: getattr(options, key, None) for key in _CONFIGURED}
    if axis_names(params["jaxpr"].effects):
        given["has_communication"] = True
    estimate, first = params["cost_estimate"], params["grid_mapping"].num_dynamic_grid_bounds
    if estimate is not None:
        given["cost_estimate"] = {
            "flops": estimate.flops, "transcendentals": estimate.transcendentals,
            "bytes_accessed": estimate.bytes_accessed}
    avals = [a.update(dtype=held(a.dtype)) for a in params["out_avals"]]
    found = mosaic_call_p.bind(
        *[convert_element_type(x, held(get_aval(x).dtype)) for x in operands], name=_name(params),
        module=partial(kernel_bytecode, params, configuration.abstract_mesh.value),
        out_avals=tuple(avals),
        aliases={alias.output: first + alias.input for alias in params["input_output_aliases"]},
        has_side_effect=bool(getattr(options, "has_side_effects", False)), cost=_cost(params),
        config={key: value for key, value in given.items() if value is not None})
    return [convert_element_type(x, a.dtype)  # type: ignore[misc]
            for x, a in zip(found, params["out_avals"], strict=True)]


# To the version that the compiler of the first supported jaxlib reads (libtpu 0.0.21).
_STABLE = "builtin.module(mosaic-serde{serialize=true target-version=7})"


def kernel_bytecode(params: Params, mesh: AbstractMesh | None = None) -> bytes:
    """The kernel's module as its compiler takes it: bytecode of a stable version. It runs on each
    device of the mesh.

    Raises:
      ValueError: an operation in it is not as its dialect wants it.
    """
    context = jaxlib_api.new_mlir_context()
    jaxlib_api.submodule("mosaic.python.tpu").register_dialect(context)
    context.allow_unregistered_dialects = True  # that of the stable version
    ir, written = jaxlib_api.ir, io.BytesIO()
    try:
        with context, ir.Location.unknown():
            module = ir.Module.parse(module_text(params, mesh))
            passes = jaxlib_api.submodule("mlir.passmanager").PassManager
            passes.parse(_STABLE).run(module.operation)
            module.operation.write_bytecode(written)
    except ir.MLIRError as error:
        raise ValueError(
            f"The kernel {_name(params)} does not fit its compiler: {error}") from error
    return written.getvalue()


def _cost(params: Params) -> tuple[float, float]:
    """The operations, and transcendental ones, of all programs of the grid: as the user says, or
    those of the kernel."""
    if params["cost_estimate"] is not None:
        return params["cost_estimate"].flops, params["cost_estimate"].transcendentals
    total = Costs(params["jaxpr"], lambda: None).total
    times = math.prod([n for n in params["grid_mapping"].grid if n is not None])
    return times * total.flops, times * total.transcendentals


def _name(params: Params) -> str:
    return re.sub(r"\W", "_", params["name"] or params["jaxpr"].debug_info.func_name)


def module_text(params: Params, mesh: AbstractMesh | None = None) -> str:
    """The text of the kernel's module, given the parameters of a `pallas_call`."""
    kernel: ClosedJaxpr = params["jaxpr"]
    mapping: GridMapping = params["grid_mapping"]
    rank, fetched = len(mapping.grid), mapping.num_index_operands
    refs: list[Any] = kernel.in_avals[mapping.num_dynamic_grid_bounds + rank:]
    semantics = getattr(params["compiler_params"], "dimension_semantics", None)
    if semantics and len(semantics) != rank:
        raise ValueError(f"pallas_call: dimension_semantics={tuple(semantics)} is for a grid of "
                         f"{len(semantics)} axes, and the grid has {rank}. Give one for each.")
    if not rank and not all([m.is_whole or m.sizes == m.array.shape
                             for m in mapping.block_mappings]):
        raise ValueError("pallas_call for TPU: without a grid each block is the whole array. Give "
                         "grid=(1,), or leave block_shape out.")
    return mosaic.module_text(
        kernel, _name(params), mapping.grid, refs[:fetched],
        [_window(m, seen) for m, seen in zip(mapping.block_mappings, refs[fetched:], strict=False)],
        mapping.scratch, [str(getattr(s, "value", s)) for s in semantics or ["arbitrary"] * rank],
        partial(_program_of, mesh))


def _window(mapping: BlockMapping, seen: AbstractRef) -> mosaic.Window:
    elements = [d for d in mapping.block_shape if isinstance(d, Element)]
    if elements and len(elements) < len(mapping.block_shape):
        raise NotImplementedError(
            f"pallas_call for TPU: blocks of {mapping.origin} begin at any element along all axes "
            "or along none. Give pl.Element(size) for each axis, and its index map elements.")
    return mosaic.Window(
        None if mapping.is_whole else mapping.sizes,
        AbstractRef(mapping.array, mapping.memory_space), seen, mapping.index_map,
        [d.padding for d in elements] if elements else None)


# -- what operations are made of in kernels --------------------------------------------------------


def _program_of(mesh: AbstractMesh | None, eqn: JaxprEqn) -> ClosedJaxpr | None:
    if eqn.primitive is axis_index_p and mesh is not None:
        return program_of(eqn, partial(_place_along, mesh))
    formula = FORMULAS.get(eqn.primitive)
    return decomposition_of(eqn) if formula is None else program_of(eqn, formula)


device_id_p = register(Primitive(
    "device_id", shape_rule=lambda: ShapedArray((), np.dtype(np.int32))))


def _place_along(mesh: AbstractMesh, *, axis_name: Any) -> Any:
    """The position along an axis of a device, of which the kernel knows the number among all."""
    inner = mesh.axis_names[mesh.axis_names.index(axis_name) + 1:]
    place = device_id_p.bind() // math.prod([mesh.shape[name] for name in inner])
    return place % mesh.shape[axis_name]
