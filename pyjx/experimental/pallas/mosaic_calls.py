"""Kernels that TPUs compile: the call of a module of Mosaic in the place of a `pallas_call`, and
what operations are made of there, which their compiler has no form of.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

import pyjx.numpy as jnp
from lowering import mosaic
from lowering.kernels import held
from pyjx import configuration, jaxlib_api, lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import Amounts, Runs
from pyjx.core.array_type import Array, DTypeLike
from pyjx.core.avals import AbstractRef, ShapedArray, get_aval
from pyjx.core.effects import Effect, Effects, axis_names, no_effects
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.meshes import AbstractMesh
from pyjx.core.primitive import Primitive, register
from pyjx.core.scalars import greatest, least
from pyjx.engine.decompose import decomposition_of, program_of
from pyjx.engine.types import Params
from pyjx.experimental.pallas.kernel_grids import BlockMapping, Element, GridMapping
from pyjx.lax.collectives import axis_index_p
from pyjx.lax.convert import convert_element_type

# -- special functions -----------------------------------------------------------------------------

# Of erfc(x) = t exp(-x^2 + P(t)) with t = 1 / (1 + x / 2), whose relative error is 1.2e-7 at most
# (Press et al., Numerical Recipes, 6.2).
_ERFC = (0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418,
         0.37409196, 1.00002368, -1.26551223)


def _erfc_beyond(size: Array) -> Any:
    """erfc of what is not negative."""
    t = 1 / (1 + 0.5 * size)
    series = _ERFC[0] * t + _ERFC[1]
    for term in _ERFC[2:]:
        series = series * t + term
    return t * lax.exp(-size * size + series)


def _erf_near(x: Array) -> Any:
    """erf of up to half, by its power series (Abramowitz and Stegun, 7.1.5)."""
    square = x * x
    series = -square / 1320 + 1 / 216
    for term in (-1 / 42, 1 / 10, -1 / 3, 1.0):
        series = series * square + term
    return 1.1283791670955126 * x * series


def _erf(x: Array) -> Any:
    return jnp.where(abs(x) < 0.5, _erf_near(x), lax.sign(x) * (1 - _erfc_beyond(abs(x))))


def _erfc(x: Array) -> Any:
    beyond = _erfc_beyond(abs(x))
    return jnp.where(abs(x) < 0.5, 1 - _erf_near(x), jnp.where(x < 0, 2 - beyond, beyond))


def _in_float32(formula: Any) -> Any:
    """The formula, of narrow floats computed in float32."""
    def program(*xs: Array, accuracy: object = None, **params: Any) -> Any:
        if xs[0].dtype.itemsize >= 4:
            return formula(*xs, **params)
        return formula(*[x.astype(np.float32) for x in xs], **params).astype(xs[0].dtype)

    return program


def _expm1(x: Array) -> Any:
    t = lax.tanh(x / 2)
    return lax.select(abs(x) < 1, 2 * t / (1 - t), lax.exp(x) - 1)


def _first(hit: Array, axis: int, keepdims: bool = False) -> Array:
    """The first place that is hit, as a float: of integers not all compilers find the least."""
    places = lax.broadcasted_iota(np.int32, hit.shape, axis).astype(np.float32)
    return jnp.min(jnp.where(hit, places, hit.shape[axis]), axis, keepdims=keepdims)


def _first_place(least: bool) -> Any:
    def program(x: Array, *, axes: Sequence[int], index_dtype: DTypeLike, **_: Any) -> Any:
        (axis,) = axes
        x = x.astype(np.int32) if x.dtype == np.bool_ else x
        top = (jnp.min if least else jnp.max)(x, axis, keepdims=True)
        return _first((x == top) | (x != x), axis).astype(index_dtype)

    return program


def _tested(every: bool) -> Any:
    def program(x: Array, *, axes: Sequence[int], **_: Any) -> Any:
        if x.dtype != np.bool_:
            raise NotImplementedError("pallas_call for TPU: bits of integers are not reduced in a "
                                      "kernel. Loop over them.")
        numbers = x.astype(np.float32)
        return (jnp.min if every else jnp.max)(numbers, tuple(axes)) > 0.5

    return program


def _atan(x: Array) -> Any:
    """The arc tangent of what is not negative: that of 1/x beyond tan(3 pi / 8), of (x - 1)/(x + 1)
    beyond tan(pi / 8), and there a polynomial, 2e-7 at most (Moshier, Cephes, atanf)."""
    far, mid = x > 2.414213562373095, x > 0.4142135623730951
    y = lax.select(far, -1 / x, lax.select(mid, (x - 1) / (x + 1), x))
    base = jnp.where(far, np.pi / 2, jnp.where(mid, np.pi / 4, 0.0)).astype(x.dtype)
    z = y * y
    series = ((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z
    return base + (series - 3.33329491539e-1) * z * y + y


def _atan2(y: Array, x: Array) -> Any:
    """By the quotient of the smaller by the greater, so that none overflows."""
    low, high = lax.min(abs(y), abs(x)), lax.max(abs(y), abs(x))
    ratio = jnp.where(low == high, lax.sign(high), low / jnp.where(high == 0, 1.0, high))
    angle = _atan(ratio)
    angle = lax.select(abs(y) > abs(x), np.pi / 2 - angle, angle)
    back = (x < 0) | ((x == 0) & (1 / x < 0))
    angle = lax.select(back, np.pi - angle, angle)
    angle = jnp.where((y < 0) | ((y == 0) & (1 / y < 0)), -angle, angle)
    return jnp.where((x != x) | (y != y), np.nan, angle)


def _asin(x: Array) -> Any:
    return _atan2(x, lax.sqrt((1 - x) * (1 + x)))


def _acos(x: Array) -> Any:
    return 2 * _atan2(lax.sqrt(1 - x), lax.sqrt(1 + x))


# Of erf_inv(x) / x, in powers of w - 2.5 and of sqrt(w) - 3 beyond w = 5, for w = -log(1 - x^2)
# (Giles, Approximating the erfinv function, 2012).
_ERF_INV = ((2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
             -0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
            (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
             -0.0076224613, 0.00943887047, 1.00167406, 2.83297682))


def _erf_inv(x: Array) -> Any:
    w = -lax.log1p(-x * x)
    near = w < 5
    w = lax.select(near, w - 2.5, lax.sqrt(lax.max(w, jnp.full_like(w, 5.0))) - 3)
    series = jnp.zeros_like(x)
    for one, other in zip(*_ERF_INV, strict=True):
        series = series * w + jnp.where(near, one, other)
    return jnp.where(abs(x) == 1, x * np.inf, series * x)


def _cbrt(x: Array) -> Any:
    size = abs(x)
    safe = jnp.where((size == 0) | (size == np.inf), 1.0, size)
    root = lax.exp(lax.log(safe) / 3)
    root = root - (root - safe / (root * root)) / 3
    return jnp.where((size == 0) | (size == np.inf), x, lax.sign(x) * root)


def _sinh(x: Array) -> Any:
    t = _expm1(lax.min(abs(x), jnp.full_like(x, 20.0)))
    half = lax.exp(abs(x) - np.log(2.0).astype(np.float32))
    return lax.sign(x) * lax.select(abs(x) < 20, 0.5 * (t + t / (t + 1)), half)


def _bits(x: Array) -> Any:
    """How many bits are 1: sums of neighbours, of 2, 4, 8 and more."""
    width = 8 * x.dtype.itemsize
    kind = jnp.dtype(f"uint{width}")
    x = x.astype(kind)
    for k in (1, 2, 4, 8, 16)[:width.bit_length() - 1]:
        mask = sum(((1 << k) - 1) << i for i in range(0, width, 2 * k))
        x = (x & kind.type(mask)) + (lax.shift_right_logical(x, kind.type(k)) & kind.type(mask))
    return x


def _population_count(x: Array) -> Any:
    return _bits(x).astype(x.dtype)


def _clz(x: Array) -> Any:
    """Bits before the first 1: those that are 0 once it has been copied to all behind it."""
    width = 8 * x.dtype.itemsize
    y = x
    for k in (1, 2, 4, 8, 16)[:width.bit_length() - 1]:
        y = y | lax.shift_right_logical(y, x.dtype.type(k))
    return x.dtype.type(width) - _population_count(y)


def _pad(x: Array, value: Array, *, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    for axis, (low, high, inner) in enumerate(padding_config):
        if inner or low < 0 or high < 0:
            raise NotImplementedError("pallas_call for TPU: pad takes no elements off and puts "
                                      "none between in a kernel.")
        before, behind = [
            [jnp.full((*x.shape[:axis], n, *x.shape[axis + 1:]), value, x.dtype)] if n else []
            for n in (low, high)]
        x = lax.concatenate([*before, x, *behind], axis)
    return x


def _rev(x: Array, *, dimensions: Sequence[int]) -> Any:
    for axis in dimensions:
        n = x.shape[axis]
        x = lax.concatenate([lax.slice_in_dim(x, k, k + 1, axis=axis)
                             for k in reversed(range(n))], axis)
    return x


def _cumulative(join: Callable[[Array, Array], Array], first: Callable[[Any], float]) -> Any:
    """In as many steps as the length has bits, each with what lies twice as far."""
    def program(x: Array, *, axis: int, reverse: bool) -> Array:
        n, step = x.shape[axis], 1
        while step < n:
            edge = jnp.full((*x.shape[:axis], step, *x.shape[axis + 1:]), first(x.dtype), x.dtype)
            kept = lax.slice_in_dim(x, step if reverse else 0, n if reverse else n - step,
                                    axis=axis)
            x = join(x, lax.concatenate([kept, edge] if reverse else [edge, kept], axis))
            step *= 2
        return x

    return program


def _across_lanes(join: Callable[[Array, Array], Array], first: Callable[[Any], float],
                  reduce: Callable[..., Array] | None = None) -> Any:
    """A reduction of integers whose last axis lies along lanes: as the last of what is cumulative
    there. Along other axes it is one, if there is one."""
    def program(x: Array, *, axes: tuple[int, ...], **_: Any) -> Array:
        kept = [n for axis, n in enumerate(x.shape) if axis not in axes]
        if x.ndim == 1:
            x, axes = x.reshape(1, -1), (1,)
        for axis in axes if reduce is None else axes[-1:]:
            x = _cumulative(join, first)(x, axis=axis, reverse=False)
            x = lax.slice_in_dim(x, x.shape[axis] - 1, x.shape[axis], axis=axis)
        others = axes[:-1]
        return (reduce(x, others) if reduce is not None and others else x).reshape(kept)

    return program


def _top_k(x: Array, *, k: int, axis: int, **_: Any) -> tuple[Array, Array]:
    """The greatest, k times, each of which is taken away."""
    shape = (*x.shape[:axis], k, *x.shape[axis + 1:])
    places, turns = [lax.broadcasted_iota(np.int32, s, axis) for s in (x.shape, shape)]
    values, found = jnp.zeros(shape, x.dtype), jnp.zeros(shape, np.int32)
    left = jnp.full(x.shape, 1, np.int32)
    lowest = least(x.dtype)
    for turn in range(k):
        seen = jnp.where(left == 1, x, lowest)
        top = jnp.max(seen, axis, keepdims=True)
        hit = (left == 1) & ((seen == top) | (seen != seen))
        place = _first(hit, axis, keepdims=True).astype(np.int32)
        left = jnp.where(places == place, 0, left)
        values, found = [jnp.where(turns == turn, new, old)
                         for new, old in ((top, values), (place, found))]
    return values, found


def _split(x: Array, *, sizes: Sequence[int], axis: int) -> list[Any]:
    ends = [sum(sizes[:k + 1]) for k in range(len(sizes))]
    return [lax.slice_in_dim(x, end - n, end, axis=axis)
            for n, end in zip(sizes, ends, strict=True)]


def _tile(x: Array, *, reps: Sequence[int]) -> Any:
    for axis, n in enumerate(reps):
        x = lax.concatenate([x] * n, axis) if n != 1 else x
    return x


def _product_of_vector(x: Array, y: Array, *, dimension_numbers: Any,
                       preferred_element_type: DTypeLike | None, **_: Any) -> Array:
    """A product of which one is a vector, as a sum: units that multiply matrices take none."""
    ((i,), (j,)), _ = dimension_numbers
    dtype = x.dtype if preferred_element_type is None else preferred_element_type
    wide = np.int32 if x.dtype.kind in "iu" else np.float32
    x, y = x.astype(wide), y.astype(wide)
    if y.ndim == 1:
        out = lax.reduce_sum(x * lax.broadcast_in_dim(y, x.shape, (i,)), (i,))
    else:
        out = lax.reduce_sum(y * lax.broadcast_in_dim(x, y.shape, (j,)), (j,))
    return out.astype(dtype)


FORMULAS: dict[Primitive, Any] = {
    lax.acos_p: _in_float32(_acos), lax.asin_p: _in_float32(_asin),
    lax.atan_p: _in_float32(lambda x: lax.sign(x) * _atan(abs(x))),
    lax.atan2_p: _in_float32(_atan2), lax.cbrt_p: _in_float32(_cbrt), lax.clz_p: _clz,
    lax.cumlogsumexp_p: _in_float32(_cumulative(jnp.logaddexp, least)),
    lax.cummax_p: _cumulative(lax.max, least),
    lax.cummin_p: _cumulative(lax.min, greatest),
    lax.cumprod_p: _cumulative(lax.mul, lambda dtype: 1),
    lax.cumsum_p: _cumulative(lax.add, lambda dtype: 0),
    lax.argmax_p: _first_place(False), lax.argmin_p: _first_place(True),
    lax.clamp_p: lambda low, x, high: lax.min(lax.max(x, low), high),
    lax.dot_general_p: _product_of_vector,
    lax.erf_p: _in_float32(_erf), lax.erfc_p: _in_float32(_erfc),
    lax.erf_inv_p: _in_float32(_erf_inv),
    lax.expm1_p: _in_float32(_expm1), lax.pad_p: _pad, lax.population_count_p: _population_count,
    lax.reduce_and_p: _tested(True), lax.reduce_or_p: _tested(False),
    lax.reduce_max_p: _across_lanes(lax.max, least, lax.reduce_max),
    lax.reduce_min_p: _across_lanes(lax.min, greatest, lax.reduce_min),
    lax.reduce_prod_p: _across_lanes(lax.mul, lambda dtype: 1),
    lax.reduce_sum_p: _across_lanes(lax.add, lambda dtype: 0, lax.reduce_sum),
    lax.rev_p: _rev, lax.sinh_p: _in_float32(_sinh), lax.split_p: _split,
    lax.stack_p: lambda *xs, axis: lax.concatenate([lax.expand_dims(x, (axis,)) for x in xs], axis),
    lax.tan_p: _in_float32(lambda x: lax.sin(x) / lax.cos(x)),
    lax.tile_p: _tile, lax.top_k_p: _top_k,
}


# -- calls -----------------------------------------------------------------------------------------


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
    arithmetic=lambda eqn: eqn.params["cost"](),
    printed=lambda params: [(k, params[k]) for k in sorted(params) if k not in ("cost", "module")],
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
        has_side_effect=bool(getattr(options, "has_side_effects", False)),
        cost=partial(_cost, params),
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


def _cost(params: Params) -> Amounts | list[Runs]:
    """What all programs of the grid compute: as the user says, or what the kernel does."""
    estimate = params["cost_estimate"]
    if estimate is not None:
        return estimate.flops, estimate.transcendentals
    return [Runs(params["jaxpr"], params["grid_mapping"].known_programs)]


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
    return mosaic.Window(None if mapping.is_whole else mapping.sizes,
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
