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
from pyjx import jaxlib_api, lax
from pyjx.core.avals import AbstractRef
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.primitive import Primitive, register
from pyjx.engine.decompositions import decomposition_of, program_of
from pyjx.engine.types import Params
from pyjx.experimental.pallas.kernel_grids import BlockMapping, Element, GridMapping, MemorySpace
from pyjx.runtime.costs import Costs


def _no_derivative(*_: Any, **params: Any) -> NoReturn:
    raise NotImplementedError(
        f"pallas_call: the compiled kernel {params['name']} has no derivative of its own. Give the "
        "function around it rules by jax.custom_vjp, or give pallas_call interpret=True.")


mosaic_call_p = register(Primitive(
    "mosaic_call", multiple_results=True, cached=False, jvp=_no_derivative,
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
    estimate = params["cost_estimate"]
    if estimate is not None:
        given["cost_estimate"] = {
            "flops": estimate.flops, "transcendentals": estimate.transcendentals,
            "bytes_accessed": estimate.bytes_accessed}
    return mosaic_call_p.bind(  # type: ignore[no-any-return]
        *operands, module=partial(kernel_bytecode, params), name=_name(params),
        out_avals=params["out_avals"],
        aliases={alias.output: alias.input for alias in params["input_output_aliases"]},
        has_side_effect=bool(getattr(options, "has_side_effects", False)), cost=_cost(params),
        config={key: value for key, value in given.items() if value is not None})


# To the version that the first supported jaxlib has.
_STABLE = "builtin.module(mosaic-serde{serialize=true target-version=8})"


def kernel_bytecode(params: Params) -> bytes:
    """The kernel's module as its compiler takes it: bytecode of a stable version.

    Raises:
      ValueError: an operation in it is not as its dialect wants it.
    """
    context = jaxlib_api.new_mlir_context()
    jaxlib_api.submodule("mosaic.python.tpu").register_dialect(context)
    context.allow_unregistered_dialects = True  # that of the stable version
    ir, written = jaxlib_api.ir, io.BytesIO()
    try:
        with context, ir.Location.unknown():
            module = ir.Module.parse(module_text(params))
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


def module_text(params: Params) -> str:
    """The text of the kernel's module, given the parameters of a `pallas_call`."""
    kernel: ClosedJaxpr = params["jaxpr"]
    mapping: GridMapping = params["grid_mapping"]
    if mapping.num_dynamic_grid_bounds:
        raise NotImplementedError("pallas_call for TPU: sizes of the grid that are traced are not "
                                  "there yet. Give ints, or interpret=True.")
    rank, fetched = len(mapping.grid), mapping.num_index_operands
    refs: list[Any] = kernel.in_avals[rank:]
    semantics = getattr(params["compiler_params"], "dimension_semantics", None)
    return mosaic.module_text(
        kernel, _name(params), [n for n in mapping.grid if n is not None], refs[:fetched],
        [_window(m, seen) for m, seen in zip(mapping.block_mappings, refs[fetched:], strict=False)],
        mapping.scratch, [str(getattr(s, "value", s)) for s in semantics or ["arbitrary"] * rank],
        _program_of)


def _window(mapping: BlockMapping, seen: AbstractRef) -> mosaic.Window:
    if any([isinstance(d, Element) for d in mapping.block_shape]):
        raise NotImplementedError(f"pallas_call for TPU: the blocks of {mapping.origin} that begin "
                                  "at any element are not there yet. Give interpret=True.")
    anywhere = mapping.memory_space in (MemorySpace.ANY,) or getattr(
        mapping.memory_space, "value", "") == "hbm"
    return mosaic.Window(None if anywhere else mapping.sizes,
                         AbstractRef(mapping.array, mapping.memory_space), seen, mapping.index_map)


# -- what operations are made of in kernels --------------------------------------------------------


def _program_of(eqn: JaxprEqn) -> ClosedJaxpr | None:
    formula = FORMULAS.get(eqn.primitive.name)
    return decomposition_of(eqn) if formula is None else program_of(eqn, formula)


def _erfc_beyond(size: Any) -> Any:
    """erfc of half or more, by Abramowitz and Stegun, 7.1.26, whose error is 1.5e-7 at most."""
    t = 1 / (1 + 0.3275911 * size)
    series = 1.061405429 * t - 1.453152027
    for term in (1.421413741, -0.284496736, 0.254829592):
        series = series * t + term
    return series * t * lax.exp(-size * size)


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


def _expm1(x: Any) -> Any:
    t = lax.tanh(x / 2)
    return lax.select(abs(x) < 1, 2 * t / (1 - t), lax.exp(x) - 1)


def _first_place(least: bool) -> Any:
    def program(x: Any, *, axes: Sequence[int], index_dtype: Any, **_: Any) -> Any:
        (axis,) = axes
        top = (jnp.min if least else jnp.max)(x, axis, keepdims=True)
        places = lax.broadcasted_iota(np.int32, x.shape, axis)
        found = jnp.min(jnp.where((x == top) | (x != x), places, x.shape[axis]), axis)
        return found.astype(index_dtype)

    return program


def _tested(every: bool) -> Any:
    def program(x: Any, *, axes: Sequence[int], **_: Any) -> Any:
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
    "erf": lambda x, **_: _erf(x), "erfc": lambda x, **_: _erfc(x),
    "expm1": lambda x, **_: _expm1(x),
    "reduce_and": _tested(True), "reduce_or": _tested(False),
    "split": _split,
    "stack": lambda *xs, axis: lax.concatenate([lax.expand_dims(x, (axis,)) for x in xs], axis),
    "tan": lambda x, **_: lax.sin(x) / lax.cos(x),
    "tile": _tile,
}
