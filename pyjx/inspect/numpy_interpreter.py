"""A jaxpr run by NumPy in double precision: a second opinion on what XLA computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy

from pyjx import configuration, lax
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike
from pyjx.core.avals import AbstractRef, AbstractValue, ShapedArray
from pyjx.core.bounded import kept
from pyjx.core.evaluation import literal_value, program_of
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.primitive import Primitive
from pyjx.engine.functions import with_at
from pyjx.engine.primitives import name_p
from pyjx.engine.tangents import add_any_p
from pyjx.inspect.loops import Loop, programs_within
from pyjx.inspect.straight import opened
from pyjx.lax.convert import tie_p
from pyjx.lax.transcendental import logistic_grad_p, tanh_grad_p

Rule = Callable[..., Any]  # operands, parameters by name -> the result, or a list of results


class Account:
    """How a program runs, here in double precision, and what came of it.

    Attributes:
      others: the operations that NumPy has no function for, which ran as they are.
      narrow: whether numbers of them, which are of the types of the program, were among the values.
      steps: the iterations and branches that run now, outermost first, each with what holds it.
    """

    def __init__(self) -> None:
        self.others: set[str] = set()
        self.narrow = False
        self.steps: tuple[tuple[str, JaxprEqn], ...] = ()

    def taken(self, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
        """The operands that an operation has."""
        return operands

    def made(self, eqn: JaxprEqn, outs: list[Any]) -> list[Any]:
        """What becomes of its results."""
        return outs


class Rounded(Account):
    """It is drawn whether a number is rounded up or down to the type that it has in the program."""

    def __init__(self, errors: np.random.Generator) -> None:
        super().__init__()
        self.errors = errors

    def taken(self, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
        if not adds_up(eqn):
            return operands
        return [_to_one_side(x, v.aval, self.errors)
                for x, v in zip(operands, eqn.invars, strict=True)]

    def made(self, eqn: JaxprEqn, outs: list[Any]) -> list[Any]:
        return [_rounded_anyhow(x, v.aval, self.errors)
                for x, v in zip(outs, eqn.outvars, strict=True)]


class Exit(NamedTuple):
    """A number that leaves the range of its type: where it does, and that type."""

    eqn: JaxprEqn
    steps: tuple[tuple[str, JaxprEqn], ...]
    number: float
    dtype: np.dtype[Any]


class Ranged(Account):
    """Numbers that leave the range of their types become 0 or infinite, the first few times.

    Attributes:
      most: how many times.
      exits: the first number of each time.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.exits: list[Exit] = []

    def taken(self, eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
        return self._kept(eqn, eqn.invars, operands)

    def made(self, eqn: JaxprEqn, outs: list[Any]) -> list[Any]:
        return self._kept(eqn, eqn.outvars, outs)

    def _kept(self, eqn: JaxprEqn, variables: Sequence[Any], xs: list[Any]) -> list[Any]:
        if len(self.exits) == self.most:
            return xs
        kept = [x if _is_odd(v.aval) or not _is_inexact(v.aval) else _in_range(x, v.aval.dtype)
                for x, v in zip(xs, variables, strict=True)]
        for x, y, v in zip(xs, kept, variables, strict=True):
            if x is not y and (left := (x != y) & ~np.isnan(x)).any():
                self.exits.append(Exit(eqn, self.steps, np.abs(x[left][0]), v.aval.dtype))
                return kept
        return xs


def limits_of(dtype: Any) -> tuple[float, float]:
    """The least and the largest number of a type. Devices take those that have lost digits for 0;
    where there are few, as in float16, not these."""
    info = dtypes.finfo(dtype)
    few = float(info.tiny) > float(dtypes.finfo(np.float32).tiny)
    return float(info.smallest_subnormal if few else info.tiny), float(info.max)


def _in_range(x: Any, dtype: Any) -> Any:
    """Numbers as a type has them, in double precision: too small ones 0, too large ones infinite.
    """
    if np.iscomplexobj(x):
        kept = np.array(x)
        kept.real, kept.imag = [_in_range(part, np.zeros((), dtype).real.dtype)
                                for part in (x.real, x.imag)]
        return kept
    near = x.astype(dtype).astype(x.dtype)
    return np.where(np.abs(x) < limits_of(dtype)[0], 0 * x, np.where(np.isfinite(near), x, near))


def evaluate(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], account: Account
             ) -> list[Any]:
    """The results of a program, with floating-point numbers in double precision.

    What NumPy has no function for runs as it is, in the types of the program.
    """
    env: dict[Any, Any] = {}
    for v, x in zip(jaxpr.all_invars, [*consts, *args], strict=True):
        env[v] = _wide(x)
    for eqn in jaxpr.eqns:
        operands = [env[v] if isinstance(v, Var) else _wide(literal_value(v)) for v in eqn.invars]
        with np.errstate(all="ignore"):
            operands = account.taken(eqn, operands)
            outs = account.made(eqn, list(map(_wide, _run(eqn, operands, account))))
        env.update(zip(eqn.outvars, outs, strict=True))
    return [env[v] if isinstance(v, Var) else _wide(literal_value(v)) for v in jaxpr.outvars]


def _rounded_anyhow(x: Any, aval: AbstractValue, errors: np.random.Generator) -> Any:
    """Numbers of the dtype of `aval`: those that it has not are rounded up or down, as it falls."""
    if _is_odd(aval) or not _is_inexact(aval):  # type: ignore[arg-type]
        return x
    dtype = aval.dtype  # type: ignore[attr-defined]
    near, eps = x.astype(dtype).astype(x.dtype), float(dtypes.finfo(dtype).eps)
    anyhow = (x * (1 + eps * errors.uniform(-1, 1, np.shape(x)))).astype(dtype).astype(x.dtype)
    return np.where((near == x) | np.isnan(x), x, anyhow)


_ADDING = frozenset([lax.conv_general_dilated_p, lax.digamma_p, lax.dot_general_p, lax.fft_p,
                     lax.lgamma_p, lax.scatter_add_p, lax.select_and_scatter_add_p])


def adds_up(eqn: JaxprEqn) -> bool:
    """Whether an operation rounds numbers in between, of which its results say nothing."""
    made = eqn.primitive
    return made in _ADDING or "sum" in made.name or made.holder.within is not None


def _to_one_side(x: Any, aval: AbstractValue, errors: np.random.Generator) -> Any:
    """An operand whose numbers have errors that do not cancel."""
    if _is_odd(aval) or not _is_inexact(aval):  # type: ignore[arg-type]
        return x
    most = float(dtypes.finfo(aval.dtype).eps) * errors.choice((-1, 1))  # type: ignore[attr-defined]
    return x * (1 + most * np.sign(np.real(x)) * errors.uniform(0, 1, np.shape(x)))


def _wide(x: ArrayLike) -> Any:
    dtype = getattr(x, "dtype", None)
    if dtype is not None and (dtypes.is_extended(dtype) or dtype == dtypes.float0):
        return x
    array = np.asarray(x)
    if dtypes.issubdtype(array.dtype, np.complexfloating):
        return array.astype(np.complex128)
    return array.astype(np.float64) if dtypes.issubdtype(array.dtype, np.floating) else array


def _run(eqn: JaxprEqn, operands: list[Any], account: Account) -> Sequence[Any]:
    name, params = eqn.primitive.name, eqn.params
    if name in ("cond", "scan", "while"):
        return _controlled(eqn, operands, account)
    inner = program_of(eqn.primitive, params) if opened(eqn) else None
    if inner is not None:
        return evaluate(inner.jaxpr, inner.consts, operands, account)
    rule = rule_of(eqn.primitive)
    odd = any([_is_odd(v.aval) for v in (*eqn.invars, *eqn.outvars)])
    if rule is not None and not odd and all([np.size(x) for x in operands]):
        if rule in _INTEGERS_TOO:
            out = rule(eqn, *operands)
        else:
            out = rule(*operands, **params)
        outs = out if eqn.primitive.multiple_results else [out]
        return [np.asarray(x) if _is_inexact(v.aval) else np.asarray(x).astype(v.aval.dtype)
                for x, v in zip(outs, eqn.outvars, strict=True)]
    if eqn.primitive in _WIDE and not odd:
        with configuration.enable_x64(True):
            return [_WIDE[eqn.primitive](*operands, **params)]
    account.others.add(name)
    account.narrow |= any([not _is_odd(v.aval) and _is_inexact(v.aval) for v in eqn.outvars])
    return _as_it_is(eqn, operands)


def _is_odd(aval: AbstractValue) -> bool:
    """Whether NumPy has no such type."""
    dtype = getattr(aval, "dtype", None)
    return dtype is None or dtypes.is_extended(dtype) or dtype == dtypes.float0


def _is_inexact(aval: ShapedArray | AbstractRef) -> bool:
    return dtypes.issubdtype(aval.dtype, np.inexact)


def _as_it_is(eqn: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
    given = [x if _is_odd(v.aval) else np.asarray(x).astype(v.aval.dtype)
             for x, v in zip(operands, eqn.invars, strict=True)]
    given = [v.val if isinstance(v, Literal) else x for x, v in zip(given, eqn.invars, strict=True)]
    out = eqn.primitive.bind(*given, **eqn.params)
    return out if eqn.primitive.multiple_results else [out]


# ---- control flow -------------------------------------------------------------------------


def _controlled(eqn: JaxprEqn, operands: list[Any], account: Account) -> list[Any]:
    """The results of a loop or a branch."""
    around = account.steps

    def run(text: str, closed: ClosedJaxpr, xs: Sequence[Any]) -> list[Any]:
        account.steps = (*around, (text, eqn))
        outs = evaluate(closed.jaxpr, closed.consts, xs, account)
        account.steps = around
        return outs

    runs = programs_within(eqn, operands, run)
    if eqn.primitive.name == "cond":
        return next(runs)[-1]
    loop, rows = Loop.of(eqn), []
    carry, n = operands[loop.first:loop.first + loop.n_carry], loop.n_carry
    for *_, outs in runs:
        carry = outs[:n]
        rows.append(outs[n:])
    if loop.reverse:
        rows.reverse()
    return [*carry, *[_stacked([row[k] for row in rows], v.aval)
                      for k, v in enumerate(eqn.outvars[n:])]]


def _stacked(rows: Sequence[Any], aval: Any) -> Any:
    """What the iterations of a loop give, as one array; of keys it is no array of NumPy's."""
    if not rows:
        return np.zeros(aval.shape)
    if dtypes.is_extended(aval.dtype):
        return lax.concatenate([lax.expand_dims(row, (0,)) for row in rows], 0)
    return np.stack(rows)


# ---- operations ---------------------------------------------------------------------------


def _special(name: str) -> Rule:
    """A function of SciPy's."""
    return lambda x, **_: getattr(scipy.special, name)(x)


def _plain(function: Rule) -> Rule:
    """A function of the operands alone."""
    return lambda *operands, **_: function(*operands)


def _div(x: Any, y: Any, **_: Any) -> Any:
    if np.issubdtype(x.dtype, np.integer):
        safe = np.where(y == 0, x.dtype.type(1), y)
        with np.errstate(over="ignore"):  # the least integer by -1 is itself
            found = x // safe
            found += (found * safe != x) & ((x < 0) != (safe < 0))  # which was rounded down
        return np.where(y == 0, ~x.dtype.type(0), found)
    return x / y


def _select(which: Any, *cases: Any, **_: Any) -> Any:
    index = np.broadcast_to(which.astype(np.int64), cases[0].shape)
    return np.choose(index, cases) if len(cases) <= 32 else np.stack(cases)[index]


def _broadcast(x: Any, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any
               ) -> Any:
    full = with_at([1] * len(shape), broadcast_dimensions, x.shape)
    return np.broadcast_to(x.reshape(full), shape)


def _slice(x: Any, *, start_indices: Sequence[int], limit_indices: Sequence[int],
           strides: Sequence[int] | None, **_: Any) -> Any:
    steps = strides or (1,) * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, steps))]


def _dot(x: Any, y: Any, *, dimension_numbers: Any, **_: Any) -> Any:
    (cx, cy), (bx, by) = dimension_numbers
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    left, right = list(letters[:x.ndim]), list(letters[x.ndim:x.ndim + y.ndim])
    for i, j in [*zip(cx, cy, strict=True), *zip(bx, by, strict=True)]:
        right[j] = left[i]
    free = [c for i, c in enumerate(left) if i not in cx and i not in bx]
    free += [c for j, c in enumerate(right) if j not in cy and j not in by]
    out = "".join([*[left[i] for i in bx], *free])
    return np.einsum(f"{''.join(left)},{''.join(right)}->{out}", x, y)


def _axes(function: Rule) -> Rule:
    return lambda x, axes, **_: function(x, axis=tuple(axes)) if axes else x


def _cumulative(function: Any) -> Rule:
    def run(x: Any, *, axis: int, reverse: bool, **_: Any) -> Any:
        given = np.flip(x, axis) if reverse else x
        out = function.accumulate(given, axis=axis)
        return np.flip(out, axis) if reverse else out

    return run


def _convert(eqn: JaxprEqn, x: Any) -> Any:
    aval = eqn.outvars[0].aval
    if _is_inexact(aval):
        if dtypes.issubdtype(aval.dtype, np.complexfloating):
            return x.astype(np.complex128)
        return np.real(x).astype(np.float64)
    return np.asarray(_as_it_is(eqn, [x])[0])  # out of range results are XLA's own


def _rounded(x: Any, *, rounding_method: Any, **_: Any) -> Any:
    if int(rounding_method) == 1:
        return np.round(x)
    return np.where(np.abs(x) < 2.0**52, np.trunc(x + np.copysign(0.5, x)), x)


def _tie(x: ArrayLike, y: ArrayLike, **_: Any) -> Any:
    return y


def _integer_pow(x: Any, *, y: int, **_: Any) -> Any:
    if np.issubdtype(x.dtype, np.inexact):
        return np.power(x, float(y))
    return np.power(x, y)


def _dilated(x: Any, steps: Sequence[int]) -> Any:
    """The array with its elements apart along the axes behind the first two, zeros between them."""
    for axis, step in enumerate(steps, 2):
        wide = np.zeros((*x.shape[:axis], max((x.shape[axis] - 1) * step + 1, 0),
                         *x.shape[axis + 1:]), x.dtype)
        wide[(*[slice(None)] * axis, slice(None, None, step))] = x
        x = wide
    return x


def _convolution(x: Any, k: Any, *, window_strides: Any, padding: Any, lhs_dilation: Any,
                 rhs_dilation: Any, dimension_numbers: Any, feature_group_count: int,
                 batch_group_count: int, **_: Any) -> Any:
    if not np.issubdtype(x.dtype, np.inexact):
        x, k = x.astype(np.int64), k.astype(np.int64)
    x = _dilated(np.transpose(x, dimension_numbers.lhs_spec), lhs_dilation)
    k = _dilated(np.transpose(k, dimension_numbers.rhs_spec), rhs_dilation)
    x = np.pad(x, [(0, 0), (0, 0), *[(max(low, 0), max(high, 0)) for low, high in padding]])
    x = x[(..., *[slice(max(-low, 0), n - max(-high, 0))
                  for n, (low, high) in zip(x.shape[2:], padding, strict=True)])]
    sizes, space = k.shape[2:], tuple(range(2, x.ndim))
    if any(n < m for n, m in zip(x.shape[2:], sizes, strict=True)):
        places = [max((n - m) // s + 1, 0)
                  for n, m, s in zip(x.shape[2:], sizes, window_strides, strict=True)]
        out = np.zeros((x.shape[0] // batch_group_count, k.shape[0], *places), x.dtype)
        return np.transpose(out, np.argsort(dimension_numbers.out_spec))
    windows = np.lib.stride_tricks.sliding_window_view(x, sizes, space)
    windows = windows[(slice(None), slice(None), *[slice(None, None, s) for s in window_strides])]
    summed = [1, *range(x.ndim, windows.ndim)]
    parts = [part for batch in np.split(windows, batch_group_count, 0)
             for part in np.split(batch, feature_group_count, 1)]
    outs = [np.moveaxis(np.tensordot(part, filters, (summed, [1, *space])), -1, 1)
            for part, filters in zip(parts, np.split(k, len(parts), 0), strict=True)]
    return np.transpose(np.concatenate(outs, 1), np.argsort(dimension_numbers.out_spec))


# What NumPy calls by other names; all other elementwise functions have one name in both.
_RENAMED = {
    "sub": "subtract", "mul": "multiply", "max": "maximum", "min": "minimum", "neg": "negative",
    "atan": "arctan", "asinh": "arcsinh", "atan2": "arctan2", "is_finite": "isfinite",
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "not": "invert",
}
_ACCUMULATED = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
                "logsumexp": np.logaddexp}
_RULES: dict[Primitive, Rule] = {
    lax.rsqrt_p: _plain(lambda x: 1 / np.sqrt(x)), lax.div_p: _div, lax.select_n_p: _select,
    lax.logistic_p: _plain(lambda x: 1 / (1 + np.exp(-x))), lax.round_p: _rounded,
    logistic_grad_p: _plain(lambda x: 0.25 / np.cosh(x / 2) ** 2),
    tanh_grad_p: _plain(lambda x: 1 / np.cosh(x) ** 2),
    lax.one_minus_square_p: _plain(lambda x: 1 - x * x),
    lax.clamp_p: _plain(lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    lax.complex_p: _plain(lambda re, im: re + 1j * im), lax.integer_pow_p: _integer_pow,
    lax.real_p: _plain(np.real), lax.imag_p: _plain(np.imag), lax.erf_p: _special("erf"),
    lax.erfc_p: _special("erfc"), lax.erf_inv_p: _special("erfinv"),
    lax.lgamma_p: _special("gammaln"), lax.digamma_p: _special("digamma"),
    lax.bessel_i0e_p: _special("i0e"), lax.bessel_i1e_p: _special("i1e"),
    lax.reshape_p: lambda x, new_sizes, dimensions=None, **_: np.reshape(
        x if dimensions is None else np.transpose(x, dimensions), new_sizes),
    lax.transpose_p: lambda x, permutation, **_: np.transpose(x, permutation),
    lax.squeeze_p: lambda x, dimensions, **_: np.squeeze(x, tuple(dimensions)),
    lax.rev_p: lambda x, dimensions, **_: np.flip(x, tuple(dimensions)),
    lax.concatenate_p: lambda *xs, dimension, **_: np.concatenate(xs, dimension),
    lax.iota_p: lambda dtype, shape, dimension, **_: _wide(np.broadcast_to(
        np.indices(shape, sparse=True)[dimension].astype(dtype), shape)),
    lax.broadcast_in_dim_p: _broadcast, lax.slice_p: _slice, lax.dot_general_p: _dot,
    lax.split_p: lambda x, sizes, axis, **_: np.split(x, np.cumsum(sizes)[:-1], axis),
    lax.copy_p: _plain(np.array), lax.stop_gradient_p: _plain(np.asarray),
    name_p: _plain(np.asarray), tie_p: _tie, lax.convert_element_type_p: _convert,
    lax.conv_general_dilated_p: _convolution, add_any_p: _plain(np.add),
}
_INTEGERS_TOO = (_convert,)
# What derivatives move numbers by, which XLA does as well in double precision.
_WIDE: dict[Primitive, Rule] = {
    lax.scatter_add_p: lambda *operands, update_jaxpr, update_consts, **params: lax.scatter_add(
        *operands, **params), **{p: p.bind for p in (
            lax.dynamic_slice_p, lax.dynamic_update_slice_p, lax.gather_p, lax.pad_p)}}


@kept(4096)
def rule_of(primitive: Primitive) -> Rule | None:
    """How NumPy computes an operation; None where it has no function for it."""
    if primitive in _RULES:
        return _RULES[primitive]
    name = primitive.name
    function = getattr(np, _RENAMED.get(name, name), None)
    if isinstance(function, np.ufunc) and name != "nextafter":  # which asks for the dtype's bits
        return _plain(function)
    head, _, kind = name.partition("_")
    if head == "reduce" and kind in ("sum", "prod", "max", "min"):
        return _axes(getattr(np, kind))
    if head == "reduce" and kind in ("and", "or", "xor"):
        return _axes(getattr(np, _RENAMED[kind]).reduce)
    kind = name.removeprefix("cum")
    return _cumulative(_ACCUMULATED[kind]) if kind != name and kind in _ACCUMULATED else None
