"""Kernels that TPUs compile: the call of a module of Mosaic in the place of a `pallas_call`."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

import pyjx.numpy as jnp
from lowering import mosaic
from pyjx import configuration, jaxlib_api, lax
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.effects import Effect, Effects, axis_names, no_effects
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.meshes import AbstractMesh
from pyjx.core.primitive import Primitive, register
from pyjx.engine.decompositions import decomposition_of, program_of
from pyjx.engine.types import Params
from pyjx.experimental.pallas.kernel_grids import BlockMapping, Element, GridMapping
from pyjx.lax.collectives import axis_index_p
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
    options = params["compiler_params"]
    given = {key: getattr(options, key, None) for key in _CONFIGURED}
    if axis_names(params["jaxpr"].effects):
        given["has_communication"] = True
    estimate = params["cost_estimate"]
    if estimate is not None:
        given["cost_estimate"] = {
            "flops": estimate.flops, "transcendentals": estimate.transcendentals,
            "bytes_accessed": estimate.bytes_accessed}
    return mosaic_call_p.bind(  # type: ignore[no-any-return]
        *operands, name=_name(params),
        module=partial(kernel_bytecode, params, configuration.abstract_mesh.value),
        out_avals=params["out_avals"],
        aliases={alias.output: alias.input for alias in params["input_output_aliases"]},
        has_side_effect=bool(getattr(options, "has_side_effects", False)), cost=_cost(params),
        config={key: value for key, value in given.items() if value is not None})


# To the version that the first supported jaxlib has.
_STABLE = "builtin.module(mosaic-serde{serialize=true target-version=8})"


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
    if mapping.num_dynamic_grid_bounds:
        raise NotImplementedError("pallas_call for TPU: sizes of the grid that are traced are not "
                                  "there yet. Give ints, or interpret=True.")
    rank, fetched = len(mapping.grid), mapping.num_index_operands
    refs: list[Any] = kernel.in_avals[rank:]
    semantics = getattr(params["compiler_params"], "dimension_semantics", None)
    if semantics and len(semantics) != rank:
        raise ValueError(f"pallas_call: dimension_semantics={tuple(semantics)} is for a grid of "
                         f"{len(semantics)} axes, and the grid has {rank}. Give one for each.")
    if not rank and not all([m.is_whole or m.sizes == m.array.shape
                             for m in mapping.block_mappings]):
        raise ValueError("pallas_call for TPU: without a grid each block is the whole array. Give "
                         "grid=(1,), or leave block_shape out.")
    return mosaic.module_text(
        kernel, _name(params), [n for n in mapping.grid if n is not None], refs[:fetched],
        [_window(m, seen) for m, seen in zip(mapping.block_mappings, refs[fetched:], strict=False)],
        mapping.scratch, [str(getattr(s, "value", s)) for s in semantics or ["arbitrary"] * rank],
        partial(_program_of, mesh))


def _window(mapping: BlockMapping, seen: AbstractRef) -> mosaic.Window:
    if any([isinstance(d, Element) for d in mapping.block_shape]):
        raise NotImplementedError(f"pallas_call for TPU: the blocks of {mapping.origin} that begin "
                                  "at any element are not there yet. Give interpret=True.")
    return mosaic.Window(None if mapping.is_whole else mapping.sizes,
                         AbstractRef(mapping.array, mapping.memory_space), seen, mapping.index_map)


# -- what operations are made of in kernels --------------------------------------------------------


def _program_of(mesh: AbstractMesh | None, eqn: JaxprEqn) -> ClosedJaxpr | None:
    if eqn.primitive is axis_index_p and mesh is not None:
        return program_of(eqn, partial(_place_along, mesh))
    formula = FORMULAS.get(eqn.primitive.name)
    return decomposition_of(eqn) if formula is None else program_of(eqn, formula)


device_id_p = register(Primitive(
    "device_id", shape_rule=lambda: ShapedArray((), np.dtype(np.int32))))


def _place_along(mesh: AbstractMesh, *, axis_name: Any) -> Any:
    """The position along an axis of a device, of which the kernel knows the number among all."""
    inner = mesh.axis_names[mesh.axis_names.index(axis_name) + 1:]
    place = device_id_p.bind() // math.prod([mesh.shape[name] for name in inner])
    return place % mesh.shape[axis_name]


# Of erfc(x) = t exp(-x^2 + P(t)) with t = 1 / (1 + x / 2), whose relative error is 1.2e-7 at most
# (Press et al., Numerical Recipes, 6.2).
_ERFC = (0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418,
         0.37409196, 1.00002368, -1.26551223)


def _erfc_beyond(size: Any) -> Any:
    """erfc of what is not negative."""
    t = 1 / (1 + 0.5 * size)
    series = _ERFC[0] * t + _ERFC[1]
    for term in _ERFC[2:]:
        series = series * t + term
    return t * lax.exp(-size * size + series)


def _erf_near(x: Any) -> Any:
    """erf of up to half, by its power series (Abramowitz and Stegun, 7.1.5)."""
    square = x * x
    series = -square / 1320 + 1 / 216
    for term in (-1 / 42, 1 / 10, -1 / 3, 1.0):
        series = series * square + term
    return 1.1283791670955126 * x * series


def _erf(x: Any) -> Any:
    return jnp.where(abs(x) < 0.5, _erf_near(x), lax.sign(x) * (1 - _erfc_beyond(abs(x))))


def _erfc(x: Any) -> Any:
    beyond = _erfc_beyond(abs(x))
    return jnp.where(abs(x) < 0.5, 1 - _erf_near(x), jnp.where(x < 0, 2 - beyond, beyond))


def _in_float32(formula: Any) -> Any:
    """The formula, of narrow floats computed in float32."""
    def program(x: Any, **_: Any) -> Any:
        if x.dtype.itemsize >= 4:
            return formula(x)
        return formula(x.astype(np.float32)).astype(x.dtype)

    return program


def _expm1(x: Any) -> Any:
    t = lax.tanh(x / 2)
    return lax.select(abs(x) < 1, 2 * t / (1 - t), lax.exp(x) - 1)


def _first_place(least: bool) -> Any:
    def program(x: Any, *, axes: Sequence[int], index_dtype: Any, **_: Any) -> Any:
        (axis,) = axes
        x = x.astype(np.int32) if x.dtype == np.bool_ else x
        top = (jnp.min if least else jnp.max)(x, axis, keepdims=True)
        places = lax.broadcasted_iota(np.int32, x.shape, axis)
        found = jnp.min(jnp.where((x == top) | (x != x), places, x.shape[axis]), axis)
        return found.astype(index_dtype)

    return program


def _tested(every: bool) -> Any:
    def program(x: Any, *, axes: Sequence[int], **_: Any) -> Any:
        if x.dtype != np.bool_:
            raise NotImplementedError("pallas_call for TPU: bits of integers are not reduced in a "
                                      "kernel. Loop over them.")
        numbers = x.astype(np.float32)
        return (jnp.min if every else jnp.max)(numbers, tuple(axes)) > 0.5

    return program


def _split(x: Any, *, sizes: Sequence[int], axis: int) -> list[Any]:
    ends = [sum(sizes[:k + 1]) for k in range(len(sizes))]
    return [lax.slice_in_dim(x, end - n, end, axis=axis)
            for n, end in zip(sizes, ends, strict=True)]


def _tile(x: Any, *, reps: Sequence[int]) -> Any:
    for axis, n in enumerate(reps):
        x = lax.concatenate([x] * n, axis) if n != 1 else x
    return x


FORMULAS: dict[str, Any] = {
    "argmax": _first_place(False), "argmin": _first_place(True),
    "clamp": lambda low, x, high: lax.min(lax.max(x, low), high),
    "erf": _in_float32(_erf), "erfc": _in_float32(_erfc), "expm1": _in_float32(_expm1),
    "reduce_and": _tested(True), "reduce_or": _tested(False),
    "split": _split,
    "stack": lambda *xs, axis: lax.concatenate([lax.expand_dims(x, (axis,)) for x in xs], axis),
    "tan": _in_float32(lambda x: lax.sin(x) / lax.cos(x)),
    "tile": _tile,
}
