"""What padding does to operations on whole arrays: elementwise ones, rearrangements, reductions,
contractions, sorts, windows, matrices, random bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, SymbolicDim, get_aval
from pyjx.core.evaluation import bind_eqn, eval_jaxpr
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.primitive import Primitive
from pyjx.core.scalars import greatest, least
from pyjx.dynamic.padded import RULES, SIZE, Dim, Padded, Padding, Result, equal, rule, same
from pyjx.engine.types import Value
from pyjx.lax.convolution_shapes import dilated

Results = Sequence[Result]

# -- elementwise operations ------------------------------------------------------------------------

# What becomes of numbers that stand in the padding, where that is worth knowing.
_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative,
    "max": np.maximum, "min": np.minimum, "abs": np.abs, "square": np.square,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not, "real": np.real,
    **dict.fromkeys(("convert_element_type", "copy", "stop_gradient"), np.asarray),
}


@rule("add_any", "clamp", "complex", "conj", "convert_element_type", "copy", "device_put", "imag",
      "mul", "name", "optimization_barrier", "pow", "random_clone", "random_fold_in", "random_seed",
      "random_unwrap", "random_wrap", "real", "reduce_precision", "reshard", "select_n",
      "sharding_constraint", "tie", "threefry2x32", "philox2x32", "philox4x32", "threefry4x32")
def _elementwise(p: Padding, eqn: JaxprEqn, *xs: Padded) -> Results:
    """The padding may hold anything, as each element comes from elements at its place."""
    outs = bind_eqn(eqn, [x.val for x in xs])
    name = eqn.primitive.name
    fun = _NUMBERS.get(name)
    if name in ("and", "or", "not") and xs[0].aval.dtype != np.bool_:
        fun = None
    if name in ("optimization_barrier", "device_put"):
        return [(out, x.fills) for out, x in zip(outs, xs, strict=True)]
    if name == "select_n":
        xs, fun = xs[1:], _alike
    return [(out, {} if fun is None else _numbers(fun, xs, v.aval))
            for out, v in zip(outs, eqn.outvars, strict=True)]


def _alike(*values: Any) -> Any:
    return values[0] if all([same(values[0], v) for v in values]) else None


def _numbers(fun: Callable[..., Any], xs: Sequence[Padded], aval: ShapedArray) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for d in Padded(None, aval).padded:
        values = [_number(x) if not x.shape else x.fills.get(d) for x in xs]
        if not any([v is None for v in values]):
            with np.errstate(all="ignore"):
                value = fun(*[np.asarray(v, x.aval.dtype)[()]
                              for v, x in zip(values, xs, strict=True)])
                made = None if value is None else np.asarray(value).astype(aval.dtype)[()]
            if made is not None and same(made, value):  # XLA rounds what is too large otherwise
                found[d] = made
    return found


def _number(x: Padded) -> Any:
    return x.val if isinstance(x.val, (int, float, bool, complex, np.generic)) else None


# -- rearrangements --------------------------------------------------------------------------------


def take(val: Value, axis: int, index: Value) -> Any:
    """Elements along an axis, at indices that are brought into it."""
    shape = get_aval(val).shape
    if not shape[axis]:
        val = lax.full((*shape[:axis], 1, *shape[axis + 1:]), 0, get_aval(val).dtype)
    return jnp.take(val, index, axis=axis, mode="clip")


@rule("dim_as_value")
def _dim_as_value(p: Padding, eqn: JaxprEqn) -> Results:
    aval = eqn.outvars[0].aval
    return [lax.convert_element_type_p.bind(
        jnp.asarray(p.size(eqn.params["dim"]), SIZE), new_dtype=aval.dtype,
        weak_type=aval.weak_type, sharding=None)]


@rule(lax.iota_p)
def _iota(p: Padding, eqn: JaxprEqn) -> Results:
    return bind_eqn(eqn.replace(params={**eqn.params, "shape": p.rooms(eqn.params["shape"])}), ())


@rule(lax.broadcast_in_dim_p)
def _broadcast(p: Padding, eqn: JaxprEqn, x: Padded, *_: Padded) -> Results:
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    rooms = p.rooms(shape)
    number = _number(x)
    fills = {dims[d]: v for d, v in x.fills.items()}
    if number is not None:
        fills = {d: np.asarray(number, x.aval.dtype)[()] for d in Padded(None, eqn.outvars[0].aval)
                 .padded}
    return [(lax.broadcast_in_dim(x.val, rooms, dims), fills)]


@rule(lax.transpose_p)
def _transpose(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    order = eqn.params["permutation"]
    return [(bind_eqn(eqn, [x.val])[0],
             {i: x.fills[d] for i, d in enumerate(order) if d in x.fills})]


@rule(lax.squeeze_p)
def _squeeze(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    kept = [d for d in range(len(x.shape)) if d not in eqn.params["dimensions"]]
    return [(bind_eqn(eqn, [x.val])[0],
             {i: x.fills[d] for i, d in enumerate(kept) if d in x.fills})]


@rule(lax.rev_p)
def _rev(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    dims = eqn.params["dimensions"]
    val = lax.rev(x.val, [d for d in dims if d not in x.padded])
    for d in dims:
        if d in x.padded:
            val = take(val, d, p.size(x.shape[d]) - 1 - jnp.arange(x.room[d], dtype=SIZE))
    return [val]


@rule(lax.reshape_p)
def _reshape(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    order = eqn.params["dimensions"]
    if order is not None:
        x = Padded(lax.transpose(x.val, order), x.aval.update(shape=[x.shape[d] for d in order]))
    return [reshaped(p, x, eqn.params["new_sizes"])]


def reshaped(p: Padding, x: Padded, new: Sequence[Any]) -> Any:
    """Where groups of dimensions become others, with padding at the end of the first one of each,
    elements keep their places; else each is looked for at the place that it has."""
    old = x.shape
    if _keeps_places(p, old, new):
        return lax.reshape(x.val, p.rooms(new))
    index: Any = 0
    for d, n in enumerate(new):
        index = index * p.size(n) + lax.broadcasted_iota(SIZE, p.rooms(new), d)
    places = []
    for n in reversed(old):
        size = jnp.asarray(p.size(n), SIZE)
        places.append(jnp.clip(lax.rem(index, lax.full_like(index, size)), 0, p.room(n) - 1))
        index = lax.div(index, lax.full_like(index, size))
    return x.val[tuple(reversed(places))] if places else lax.full(p.rooms(new), x.val)


def _keeps_places(p: Padding, old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether shapes are made of groups with the same number of elements, and the same room, in
    which only the first dimension other than 1 is symbolic."""
    i = j = 0
    while i < len(old) or j < len(new):
        a, b = [list(shape[k:k + 1]) for shape, k in ((old, i), (new, j))]
        i, j = i + len(a), j + len(b)
        while not equal(left := math.prod(a), right := math.prod(b)):
            more_left = i < len(old) and (j >= len(new) or _smaller(left, right))
            if more_left:
                a.append(old[i])
                i += 1
            elif j < len(new):
                b.append(new[j])
                j += 1
            else:
                return False
        if math.prod(p.rooms(a)) != math.prod(p.rooms(b)):
            return False
        for group in (a, b):
            sizes = [n for n in group if not (type(n) is int and n == 1)]
            if any([isinstance(n, SymbolicDim) for n in sizes[1:]]):
                return False
    return True


def _smaller(left: Any, right: Any) -> bool:
    """Which of two products has the fewer terms, or is the smaller number."""
    if type(left) is type(right) is int:
        return left < right
    symbolic = [isinstance(n, SymbolicDim) for n in (left, right)]
    if all(symbolic):
        return left.evaluate(dict.fromkeys(left.variables(), 97)) < right.evaluate(
            dict.fromkeys(right.variables(), 97))
    return symbolic[1]


@rule(lax.tile_p)
def _tile(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    val = x.val
    for d, times in enumerate(eqn.params["reps"]):
        n = x.shape[d]
        if isinstance(n, SymbolicDim) or isinstance(times, SymbolicDim):
            index = jnp.arange(p.room(n * times), dtype=SIZE)
            val = take(val, d, lax.rem(index, lax.full_like(index, p.size(n))))
        elif times != 1:
            val = lax.concatenate([val] * times, d)
    return [val]


@rule(lax.bitcast_convert_type_p, lax.stack_p)
def _along(p: Padding, eqn: JaxprEqn, *xs: Padded) -> Results:
    """Elements stay in their order, and padding behind them."""
    return bind_eqn(eqn, [x.val for x in xs])


@rule(lax.unstack_p)
def _unstack(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    if eqn.params["axis"] in x.padded:
        p.refuse("it takes each element along the dimension apart", "Use lax.scan, or index it.")
    return bind_eqn(eqn, [x.val])


# -- reductions ------------------------------------------------------------------------------------


def _zero(dtype: dtypes.DType) -> Any:
    return np.zeros((), dtype)[()]


def _one(dtype: dtypes.DType) -> Any:
    return np.ones((), dtype)[()]


def _ones(dtype: dtypes.DType) -> Any:
    """All bits set."""
    return np.bool_(True) if dtype == np.bool_ else np.invert(np.zeros((), dtype))[()]


_REDUCTIONS: dict[Primitive, Callable[[dtypes.DType], Any]] = {
    lax.reduce_sum_p: _zero, lax.reduce_prod_p: _one, lax.reduce_max_p: least,
    lax.reduce_min_p: greatest, lax.reduce_and_p: _ones, lax.reduce_or_p: _zero,
    lax.reduce_xor_p: _zero, lax.argmax_p: least, lax.argmin_p: greatest, lax.cumsum_p: _zero,
    lax.cumprod_p: _one, lax.cummax_p: least, lax.cummin_p: greatest, lax.cumlogsumexp_p: least,
    lax.reduce_window_sum_p: _zero, lax.reduce_window_max_p: least,
    lax.reduce_window_min_p: greatest,
}


@rule(lax.reduce_sum_p, lax.reduce_prod_p, lax.reduce_max_p, lax.reduce_min_p, lax.reduce_and_p,
      lax.reduce_or_p, lax.reduce_xor_p, lax.argmax_p, lax.argmin_p)
def _reduce(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    """Padding stands behind what is true, so the first of equal elements is a true one."""
    axes = eqn.params["axes"]
    value = _REDUCTIONS[eqn.primitive](x.aval.dtype)
    x = p.masked(x, axes, value)
    kept = [d for d in range(len(x.shape)) if d not in axes]
    fills = {i: value for i, d in enumerate(kept) if same(x.fills.get(d), value)}
    return [(bind_eqn(eqn, [x.val])[0], {} if eqn.primitive.name[0] == "a" else fills)]


@rule(lax.reduce_p)
def _general_reduce(p: Padding, eqn: JaxprEqn, *xs: Padded) -> Results:
    """A flag beside each element says whether it is true: nothing is known to be neutral."""
    n, axes, combine = len(xs) // 2, eqn.params["dimensions"], eqn.params["jaxpr"]
    dims = [d for d in axes if d in xs[0].padded]
    if p.exact or not dims:
        return bind_eqn(eqn, [x.val for x in xs])

    def combined(one: Sequence[Any], other: Sequence[Any]) -> tuple[Any, ...]:
        (*a, left), (*b, right) = one, other
        both = eval_jaxpr(combine.jaxpr, combine.consts, *a, *b)
        return (*[jnp.where(left & right, c, jnp.where(left, x, y))
                  for c, x, y in zip(both, a, b, strict=True)], left | right)

    vals = [x.val for x in xs]
    *outs, _ = lax.reduce((*vals[:n], p.inside(xs[0], dims)), (*vals[n:], np.bool_(True)), combined,
                          axes)
    return outs


@rule(lax.cumsum_p, lax.cumprod_p, lax.cummax_p, lax.cummin_p, lax.cumlogsumexp_p)
def _cumulate(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    """Only from the end is the padding seen."""
    if eqn.params["reverse"]:
        x = p.masked(x, [eqn.params["axis"]], _REDUCTIONS[eqn.primitive](x.aval.dtype))
    return bind_eqn(eqn, [x.val])


@rule("linear_recurrence")
def _recur(p: Padding, eqn: JaxprEqn, a: Padded, b: Padded) -> Results:
    if eqn.params["reverse"]:
        a, b = [p.masked(x, [eqn.params["axis"]], _zero(x.aval.dtype)) for x in (a, b)]
    return bind_eqn(eqn, [a.val, b.val])


@rule(lax.sort_p)
def _sort(p: Padding, eqn: JaxprEqn, *xs: Padded) -> Results:
    """The padding has the greatest keys, NaN where there is one, and stays behind equal ones."""
    params = {**eqn.params, "is_stable": True}
    d, n = params["dimension"], params["num_keys"]
    last = complex(np.nan, np.nan)  # its imaginary part counts among equal ones
    keys = [p.masked(x, [d], np.asarray(
        last if dtypes.issubdtype(x.aval.dtype, np.complexfloating) else np.nan, x.aval.dtype)[()]
        if dtypes.issubdtype(x.aval.dtype, np.inexact) else greatest(x.aval.dtype))
        for x in xs[:n]]
    return bind_eqn(eqn.replace(params=params), [x.val for x in (*keys, *xs[n:])])


@rule(lax.top_k_p)
def _top_k(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    x = p.masked(x, [eqn.params["axis"]], least(x.aval.dtype))
    params = {**eqn.params, "is_stable": True, "k": p.room(eqn.params["k"])}
    return bind_eqn(eqn.replace(params=params), [x.val])


# -- contractions and windows ----------------------------------------------------------------------


@rule(lax.dot_general_p)
def _dot(p: Padding, eqn: JaxprEqn, x: Padded, y: Padded) -> Results:
    """Both operands get zeros: zero times what stands there need not be zero."""
    (left, right), _ = eqn.params["dimension_numbers"]
    x = p.masked(x, left, _zero(x.aval.dtype))
    y = p.masked(y, right, _zero(y.aval.dtype))
    return bind_eqn(eqn, [x.val, y.val])


@rule(lax.conv_general_dilated_p)
def _convolve(p: Padding, eqn: JaxprEqn, x: Padded, y: Padded) -> Results:
    params = dict(eqn.params)
    dn, out = params["dimension_numbers"], eqn.outvars[0].aval
    for count, d in zip(("batch_group_count", "feature_group_count"), dn.lhs_spec, strict=False):
        if params[count] != 1 and (d in x.padded or dn.rhs_spec[0] in y.padded):
            p.refuse("its batch or features are cut into groups")
    _check_windows(p, params, "window_strides", "lhs_dilation", "rhs_dilation")
    x = p.masked(x, dn.lhs_spec[1:], _zero(x.aval.dtype))
    y = p.masked(y, dn.rhs_spec[1:], _zero(y.aval.dtype))
    pads = []
    for i, (low, _) in enumerate(params["padding"]):
        rows, window = dn.lhs_spec[i + 2], dn.rhs_spec[i + 2]
        if isinstance(low, SymbolicDim):
            holes = params["lhs_dilation"]
            x, low = shifted(p, x, rows, low, holes[i], _zero(x.aval.dtype)), 0
            params["lhs_dilation"] = (*holes[:i], 1, *holes[i + 1:])
        pads.append(_window_pads(
            p, low, p.room(out.shape[dn.out_spec[i + 2]]), params["window_strides"][i],
            dilated(y.room[window], params["rhs_dilation"][i]),
            dilated(x.room[rows], params["lhs_dilation"][i])))
    params["padding"] = tuple(pads)
    whole = bind_eqn(eqn.replace(params=params), [x.val, y.val])
    taps = [d for d in dn.rhs_spec[2:] if d in y.padded]
    if p.exact or not taps or not dtypes.issubdtype(x.aval.dtype, np.inexact):
        return whole
    return [lax.cond(jnp.isfinite(x.val).all(), lambda: whole[0],
                     lambda: _by_taps(p, eqn.replace(params=params), x.val, y, taps))]


def _by_taps(p: Padding, eqn: JaxprEqn, x: Value, y: Padded, taps: Sequence[int]) -> Any:
    """A convolution by one tap of padded windows after the other: a zero in the place of one that
    there is not would make NaN of what is not finite."""
    params, dn = eqn.params, eqn.params["dimension_numbers"]
    if not taps:
        return bind_eqn(eqn, [x, y.val])[0]
    i = dn.rhs_spec.index(taps[0]) - 2
    low, high = params["padding"][i]
    config = [(0, 0, 0)] * len(y.shape)
    config[dn.lhs_spec[i + 2]] = low, high, params["lhs_dilation"][i] - 1
    x = lax.pad(x, _zero(y.aval.dtype), config)
    length = get_aval(x).shape[dn.lhs_spec[i + 2]] - dilated(
        y.room[taps[0]], params["rhs_dilation"][i]) + 1
    one = eqn.replace(params={**params, **{k: (*v[:i], n, *v[i + 1:]) for k, n in (
        ("padding", (0, 0)), ("lhs_dilation", 1)) for v in [params[k]]}})

    def add(j: Any, total: Any) -> Any:
        part = Padded(lax.dynamic_slice_in_dim(y.val, j, 1, taps[0]), y.aval)
        begun = lax.dynamic_slice_in_dim(x, j * params["rhs_dilation"][i], length,
                                         dn.lhs_spec[i + 2])
        return total + _by_taps(p, one, begun, part, taps[1:])

    out = eqn.outvars[0].aval
    return lax.fori_loop(np.int32(0), p.size(y.shape[taps[0]]), add,
                         lax.full(p.rooms(out.shape), 0, out.dtype))


def shifted(p: Padding, x: Padded, d: int, low: Dim, distance: int, value: Any) -> Padded:
    """A value with a number in its padding, whose elements are set at a distance along a dimension,
    and begin at a symbolic place, with that number before and between them."""
    apart = [(0, 0, distance - 1 if i == d else 0) for i in range(len(x.shape))]
    val = lax.pad(x.val, value, apart)
    n = get_aval(val).shape[d]
    index = jnp.arange(n + max(p.room(low), 0), dtype=SIZE) - p.size(low)
    val = take(val, d, index)
    here = (index >= 0) & (index < n)
    here = lax.broadcast_in_dim(here, get_aval(val).shape, (d,))
    return Padded(lax.select(here, val, lax.full_like(val, value)), x.aval)


def _check_windows(p: Padding, params: dict[str, Any], *names: str) -> None:
    """Refuse parameters of windows that padding cannot make known."""
    for name in names:
        if any([isinstance(n, SymbolicDim) for n in params.get(name) or ()]):
            p.refuse(f"its {name} is symbolic")


def _window_pads(p: Padding, low: Dim, count: int, stride: int, window: int, length: int
                 ) -> tuple[int, int]:
    """The padding of an axis for so many windows."""
    if isinstance(low, SymbolicDim):
        p.refuse(f"its windows begin at the symbolic place {low}", "Pad before it.")
    return low, (count - 1) * stride + window - length - low


def _windows(p: Padding, params: dict[str, Any], xs: Sequence[Padded], values: Sequence[Any],
             counts: Sequence[Any]) -> tuple[dict[str, Any], list[Padded]]:
    """Arrays with numbers in their padding, and before the first windows where these begin at
    symbolic places; and the parameters of `counts` windows over them that begin at known ones."""
    xs = [p.masked(x, x.padded, value) for x, value in zip(xs, values, strict=True)]
    for d, (low, high) in enumerate(params["padding"]):
        if isinstance(low, SymbolicDim):
            apart, pads = list(params.get("base_dilation") or (1,) * len(xs[0].shape)), list(
                params["padding"])
            xs = [shifted(p, x, d, low, apart[d], v) for x, v in zip(xs, values, strict=True)]
            apart[d], pads[d] = 1, (0, high)
            params = {**params, "padding": tuple(pads)}
            if "base_dilation" in params:
                params["base_dilation"] = tuple(apart)
    if any([isinstance(n, SymbolicDim) for n in params["window_dimensions"]]):
        p.refuse("the size of its windows is symbolic")
    _check_windows(p, params, "window_strides", "base_dilation", "window_dilation")
    ones = (1,) * len(xs[0].shape)
    base, hole = [params.get(k) or ones for k in ("base_dilation", "window_dilation")]
    return {**params, "padding": tuple([
        _window_pads(p, low, p.room(count), stride, dilated(w, h), dilated(n, b))
        for (low, _), count, stride, w, h, n, b in zip(
            params["padding"], counts, params["window_strides"], params["window_dimensions"], hole,
            xs[0].room, base, strict=True)])}, xs


@rule(lax.reduce_window_sum_p, lax.reduce_window_max_p, lax.reduce_window_min_p)
def _reduce_window(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    params, (x,) = _windows(p, eqn.params, [x], [_REDUCTIONS[eqn.primitive](x.aval.dtype)],
                            eqn.outvars[0].aval.shape)
    return bind_eqn(eqn.replace(params=params), [x.val])


@rule(lax.reduce_window_p)
def _general_window(p: Padding, eqn: JaxprEqn, *xs: Padded) -> Results:
    n = len(xs) // 2
    params, given = _windows(p, eqn.params, xs[:n], [init.val for init in xs[n:]],
                             eqn.outvars[0].aval.shape)
    return bind_eqn(eqn.replace(params=params), [x.val for x in (*given, *xs[n:])])


@rule(lax.select_and_scatter_add_p, lax.select_and_gather_add_p)
def _select_in_windows(p: Padding, eqn: JaxprEqn, moving: Padded, x: Padded) -> Results:
    """What is chosen in a window is never of the padding; padded windows have zeros."""
    prefer = eqn.params["select_prim"]
    if prefer is None:
        p.refuse("which element of a window is chosen is not said")
    value = least(x.aval.dtype) if prefer.name == "ge" else greatest(x.aval.dtype)
    zero = _zero(moving.aval.dtype)
    if eqn.primitive.name == "select_and_gather_add":
        params, (moving, x) = _windows(p, eqn.params, (moving, x), (zero, value),
                                       eqn.outvars[0].aval.shape)
        return bind_eqn(eqn.replace(params=params), [moving.val, x.val])
    params, (x,) = _windows(p, eqn.params, (x,), (value,), moving.shape)
    moving = p.masked(moving, moving.padded, zero)
    out = bind_eqn(eqn.replace(params=params), [moving.val, x.val])[0]
    for d, (low, _) in enumerate(eqn.params["padding"]):
        if isinstance(low, SymbolicDim):  # where the array begins in what was moved
            out = take(out, d, p.size(low) + jnp.arange(p.room(x.shape[d]), dtype=SIZE))
    return [out]


# -- matrices --------------------------------------------------------------------------------------


def _with_identity(p: Padding, x: Padded) -> Any:
    """A matrix with zeros in its padding, and an identity behind it."""
    m, n = len(x.shape) - 2, len(x.shape) - 1
    if not equal(x.shape[m], x.shape[n]):
        p.refuse("its matrices are not square")
    x = p.masked(x, (m, n), _zero(x.aval.dtype))
    row, column = [lax.broadcasted_iota(SIZE, x.room, d) for d in (m, n)]
    behind = (row == column) & (row >= p.size(x.shape[m]))
    return lax.select(behind, lax.full_like(x.val, 1), x.val)


@rule("cholesky", "det", "slogdet")
def _factor(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    return bind_eqn(eqn, [_with_identity(p, x)])


@rule("lu", "qr", "geqrf", "householder_product", "svd")
def _orthogonal(p: Padding, eqn: JaxprEqn, x: Padded, *taus: Padded) -> Results:
    """Zeros behind a matrix are never pivots, are not reflected, and their singular values come
    last; but signs of singular vectors depend on the algorithm, which depends on the shape."""
    last = len(x.shape) - 2
    vectors = eqn.params.get("compute_uv") or eqn.params.get("pivoting")
    if vectors and {last, last + 1} & {*x.padded}:
        p.refuse(_FACTORS)
    if eqn.primitive.name == "lu" and equal(*x.shape[last:]):
        return _factor(p, eqn, x)
    xs = [p.masked(a, range(last, len(a.shape)), _zero(a.aval.dtype)) for a in (x, *taus)]
    return bind_eqn(eqn, [a.val for a in xs])


@rule("tridiagonal_solve")
def _tridiagonal(p: Padding, eqn: JaxprEqn, low: Padded, main: Padded, high: Padded, b: Padded
                 ) -> Results:
    """An identity stands behind the matrix, and nothing of `high` between the two."""
    last, zero = len(main.shape) - 1, _zero(main.aval.dtype)
    n: Any = main.shape[last]
    if last in main.padded:
        before = lax.broadcasted_iota(SIZE, high.room, last) < p.size(n - 1)
        high = Padded(lax.select(before, high.val, lax.full_like(high.val, zero)), high.aval)
    low, b = p.masked(low, [last], zero), p.masked(b, [last], zero)
    main = p.masked(main, [last], _one(main.aval.dtype))
    return bind_eqn(eqn, [low.val, main.val, high.val, b.val])


@rule("triangular_solve")
def _triangular(p: Padding, eqn: JaxprEqn, a: Padded, b: Padded) -> Results:
    axis = len(b.shape) - (2 if eqn.params["left_side"] else 1)
    return bind_eqn(eqn, [_with_identity(p, a), p.masked(b, [axis], _zero(b.aval.dtype)).val])


def _in_order(p: Padding, x: Padded) -> Padded:
    """An order of rows, in which those of the padding stay where they are."""
    last = len(x.shape) - 1
    return x if last not in x.padded else Padded(lax.select(
        p.inside(x, [last]), x.val, lax.broadcasted_iota(x.aval.dtype, x.room, last)), x.aval)


@rule("solve")
def _solve(p: Padding, eqn: JaxprEqn, a: Padded, factors: Padded, order: Padded, b: Padded
           ) -> Results:
    order = _in_order(p, order)
    b = p.masked(b, [len(b.shape) - 2], _zero(b.aval.dtype))
    return bind_eqn(eqn, [_with_identity(p, a), _with_identity(p, factors), order.val, b.val])


@rule("lu_pivots_to_permutation")
def _permutation(p: Padding, eqn: JaxprEqn, x: Padded) -> Results:
    x = _in_order(p, x)
    size = p.room(eqn.params["permutation_size"])
    return bind_eqn(eqn.replace(params={**eqn.params, "permutation_size": size}), [x.val])


def _in_batches(axes: int, reason: str) -> None:
    """Declare operations on the last axes that may be padded along the others alone."""

    def apply(p: Padding, eqn: JaxprEqn, *xs: Padded) -> Results:
        for x in xs:
            if any([d >= len(x.shape) - axes for d in x.padded]):
                p.refuse(reason)
        return bind_eqn(eqn, [x.val for x in xs])

    for name in _ON_LAST[axes]:
        RULES[name] = apply


_ON_LAST = {
    1: ("fft",),
    2: ("eigh", "eig", "getrf", "schur", "tridiagonal", "hessenberg"),
}
_FACTORS = "its matrices can't be filled up so that their factors stay what they are"
_in_batches(1, "each of its numbers depends on the length of the transformed axis")
_in_batches(2, _FACTORS)


# -- random bits -----------------------------------------------------------------------------------


@rule("random_bits", "random_split")
def _random_bits(p: Padding, eqn: JaxprEqn, keys: Padded) -> Results:
    """Bits are made of the place that a number has among all, which padding behind them keeps."""
    params, shape = eqn.params, eqn.params["shape"]
    symbolic = [i for i, n in enumerate(shape) if isinstance(n, SymbolicDim)]
    if symbolic:
        partitionable = params.get("partitionable")
        if partitionable is None:
            partitionable = configuration.threefry_partitionable.value
        impl = keys.aval.dtype._impl.name
        if not partitionable or impl != "threefry2x32":
            p.refuse(f"the bits of the generator {impl!r} depend on how many there are",
                     "Use keys of threefry2x32, with the flag jax_threefry_partitionable.")
    if symbolic in ([], [0]) and not (symbolic and keys.shape):
        return bind_eqn(eqn.replace(params={**params, "shape": p.rooms(shape)}), [keys.val])
    total: Any = math.prod(shape)
    flat = bind_eqn(eqn.replace(params={**params, "shape": (p.room(total),)}), [keys.val])[0]
    lead = len(keys.shape)
    rest = get_aval(flat).shape[lead + 1:]
    aval = ShapedArray((*keys.shape, total, *rest), get_aval(flat).dtype)
    return [reshaped(p, Padded(flat, aval), (*keys.shape, *shape, *rest))]
