"""Poisson, binomial and multinomial random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike, KeyLike
from pyjx.core.avals import get_aval
from pyjx.core.dtypes import DType
from pyjx.core.integers import as_sizes
from pyjx.engine.types import Value
from pyjx.lax.common import broadcasts_to
from pyjx.lax.nary import stretch
from pyjx.random.base import check_key, on_key, placed_result, split_traced
from pyjx.random.distributions import arrays
from pyjx.random.gamma_samplers import check_method
from pyjx.random.implementations import threefry2x32
from pyjx.random.keys import random_clone_p, split_keys
from pyjx.random.samplers import (
    as_array,
    constant,
    joint_shape,
    normal_floats,
    param_dtype,
    result_shape,
    running_total,
    unit_floats,
)

if TYPE_CHECKING:
    from pyjx.core.layouts import ShardingLike


def _like(x: Value, value: float) -> Array:
    return lax.full_like(x, value)


def _reject_until_accepted(key: KeyLike, shape: tuple[int, ...], dtype: DType,
                           attempt: Callable[[Any, Any], tuple[Any, Any]]) -> Array:
    """Numbers `k` of the first attempt `(u, v) -> (k, accepted)` that is accepted, elementwise.

    u is uniform on [-1/2, 1/2), v on [0, 1).
    """
    def step(state: Any) -> Any:
        best, done, k = state
        k, u_key, v_key = split_traced(k, 3)
        u = lax.sub(unit_floats(u_key, shape, dtype), constant(0.5, dtype))
        v = unit_floats(v_key, shape, dtype)
        new, accepted = attempt(u, v)
        return lax.select(accepted, new, best), lax.bitwise_or(done, accepted), k

    def unfinished(state: Any) -> Any:
        return lax.reduce_or(lax.bitwise_not(state[1]), tuple(range(len(shape))))

    start = (lax.full(shape, -1, dtype), lax.full(shape, False, np.dtype(bool)), key)
    return lax.while_loop(unfinished, step, start)[0]


# -- Poisson ---------------------------------------------------------------------------------------


def _poisson_by_product(key: KeyLike, lam: Value, counts: DType) -> Array:
    """How many uniform numbers have a product above exp(-lam) (Knuth), for small lam; fewer than
    the largest count that the dtype has."""
    shape, dtype = get_aval(lam).shape, get_aval(lam).dtype
    most = min(int(dtypes.iinfo(counts).max), int(np.iinfo(np.int32).max))

    def step(state: Any) -> Any:
        i, count, k, log_product = state
        k, subkey = split_traced(k)
        more = lax.gt(log_product, lax.neg(lam))
        count = lax.select(more, lax.add(count, _like(count, 1)), count)
        log_u = lax.log(unit_floats(subkey, shape, dtype))
        return lax.add(i, np.int32(1)), count, k, lax.add(log_product, log_u)

    def unfinished(state: Any) -> Any:
        above = lax.reduce_or(lax.gt(state[3], lax.neg(lam)), tuple(range(len(shape))))
        return lax.bitwise_and(above, lax.lt(state[0], np.int32(most)))

    start = (np.int32(0), lax.full(shape, 0, counts), key, lax.full(shape, 0, dtype))
    count = lax.while_loop(unfinished, step, start)[1]
    return lax.sub(count, _like(count, 1))


def _poisson_by_rejection(key: KeyLike, lam: Value, counts: DType) -> Array:
    """Algorithm PTRS of Hormann, "The transformed rejection method for generating Poisson random
    variables" (1993), for lam >= 10."""
    shape, dtype = get_aval(lam).shape, get_aval(lam).dtype

    def number(value: float) -> Any:
        return constant(value, dtype)

    log_lam = lax.log(lam)
    b = lax.add(number(0.931), lax.mul(number(2.53), lax.sqrt(lam)))
    a = lax.add(number(-0.059), lax.mul(number(0.02483), b))
    inverse_alpha = lax.add(number(1.1239), lax.div(number(1.1328), lax.sub(b, number(3.4))))
    v_r = lax.sub(number(0.9277), lax.div(number(3.6224), lax.sub(b, number(2))))

    def attempt(u: Value, v: Value) -> tuple[Value, Value]:
        us = lax.sub(number(0.5), lax.abs(u))
        slope = lax.add(lax.div(lax.mul(number(2), a), us), b)
        k = lax.floor(lax.add(lax.add(lax.mul(slope, u), lam), number(0.43)))
        width = lax.add(lax.div(a, lax.mul(us, us)), b)
        s = lax.log(lax.div(lax.mul(v, inverse_alpha), width))
        log_p = lax.sub(lax.add(lax.neg(lam), lax.mul(k, log_lam)), lax.lgamma(
            lax.add(k, number(1))))
        at_once = lax.bitwise_and(lax.ge(us, number(0.07)), lax.le(v, v_r))
        outside = lax.bitwise_or(
            lax.lt(k, number(0)), lax.bitwise_and(lax.lt(us, number(0.013)), lax.gt(v, us)))
        later = lax.bitwise_and(lax.bitwise_not(outside), lax.le(s, log_p))
        return k, lax.bitwise_or(at_once, later)

    k = _reject_until_accepted(key, shape, dtype, attempt)
    return lax.convert_element_type(k, counts)


def _exact_poisson(key: KeyLike, lam: Value, dtype: DType) -> Array:
    small = lax.bitwise_or(lax.ne(lam, lam), lax.lt(lam, _like(lam, 10)))
    low = _poisson_by_product(key, lax.select(small, lam, _like(lam, 0)), dtype)
    # One of the two is returned, so the key is used once.
    high = _poisson_by_rejection(random_clone_p.bind(key), lax.select(small, _like(lam, 1e5), lam),
                                 dtype)
    out = lax.select(small, low, high)
    return lax.select(lax.eq(lam, _like(lam, 0)), _like(out, 0), out)


def _normal_cdf(z: Value) -> Array:
    root = constant(math.sqrt(0.5), get_aval(z).dtype)
    w = lax.mul(z, root)
    tail = lax.erfc(lax.abs(w))
    outer = lax.select(lax.gt(w, _like(w, 0)), lax.sub(_like(w, 2), tail), tail)
    both = lax.select(lax.lt(lax.abs(w), lax.broadcast(root, get_aval(w).shape)),
                      lax.add(_like(w, 1), lax.erf(w)), outer)
    return lax.mul(constant(0.5, get_aval(z).dtype), both)


def _peizer_pratt(k: Value, lam: Value) -> Array:
    """The z at which the normal distribution function is nearly that of Poisson at k.

    By Peizer and Pratt, "A normal approximation for binomial, F, beta, and other common, related
    tail probabilities" (1968); near 1 their function T is given by its series.
    """
    dtype = get_aval(lam).dtype
    negative = lax.lt(k, _like(k, 0))
    k = lax.max(k, _like(k, 0))
    y = lax.div(lax.add(k, constant(0.5, dtype)), lam)
    t = lax.sub(y, constant(1, dtype))
    near = lax.lt(lax.abs(t), constant(0.25, dtype))
    series = lax.mul(t, lax.polynomial(t, [
        constant((-1) ** (n + 1) * 2 / (n * (n + 1)), dtype) for n in range(2, 11)]))
    far_y, far_t = lax.select(near, _like(y, 2), y), lax.select(near, _like(t, 1), t)
    top = lax.add(lax.sub(constant(1, dtype), lax.square(far_y)),
                  lax.mul(lax.mul(constant(2, dtype), far_y), lax.log(far_y)))
    shape = lax.select(near, series, lax.div(top, lax.square(far_t)))
    distance = lax.add(lax.sub(k, lam), constant(2 / 3, dtype))
    distance = lax.add(distance, lax.div(constant(0.02, dtype), lax.add(k, constant(1, dtype))))
    z = lax.mul(distance, lax.sqrt(lax.div(lax.add(constant(1, dtype), shape), lam)))
    return lax.select(negative, _like(z, -np.inf), z)


def _approximate_poisson(key: KeyLike, lam: Value, dtype: DType) -> Array:
    """The quantile of a uniform number: by summation below 7, else from a normal approximation."""
    kind = get_aval(lam).dtype

    def number(value: float) -> Any:
        return constant(value, kind)

    z = normal_floats(key, get_aval(lam).shape, kind)
    u = _normal_cdf(z)
    term = total = lax.exp(lax.neg(lam))
    low = lax.convert_element_type(lax.lt(total, u), kind)
    for n in range(1, 19):
        term = lax.mul(term, lax.div(lam, number(n)))
        total = lax.add(total, term)
        low = lax.add(low, lax.convert_element_type(lax.lt(total, u), kind))
    root = lax.sqrt(lam)
    z2 = lax.square(z)
    guess = lax.sub(lax.add(lam, lax.mul(root, z)), number(2 / 3))
    guess = lax.add(guess, lax.div(z2, number(6)))
    guess = lax.add(guess, lax.div(lax.mul(z, lax.sub(number(1), z2)), lax.mul(number(72), root)))
    k = lax.ceil(lax.add(guess, number(0.6)))
    high = lax.add(k, number(1))
    for candidate in (k, lax.sub(k, number(1))):
        reached = lax.ge(_peizer_pratt(candidate, lam), z)
        high = lax.sub(high, lax.convert_element_type(reached, kind))
    high = lax.max(high, number(0))
    return lax.convert_element_type(lax.select(lax.lt(lam, number(7)), low, high), dtype)


@on_key("shape", "dtype", "method")
def _poisson(key: Array, lam: Value, *, shape: tuple[int, ...], dtype: DType, method: str) -> Array:
    wide = method == "approximate" and 8 in (get_aval(lam).dtype.itemsize, dtype.itemsize)
    kind = np.dtype(np.float64 if wide else np.float32)
    (lam,) = arrays(kind, shape, lam)
    sample = _exact_poisson if method == "exact" else _approximate_poisson
    return sample(key, lam if get_aval(lam).shape else lax.broadcast(lam, ()), dtype)


def poisson(key: KeyLike, lam: ArrayLike, shape: Sequence[int] | None = None,
            dtype: DTypeLike | None = None, *, method: str = "exact",
            out_sharding: ShardingLike = None) -> Array:
    """Poisson random numbers: probability lam^k exp(-lam) / k! of k = 0, 1, ...

    Args:
      key: a key.
      lam: the mean, not negative; it broadcasts to `shape`.
      shape: of the result, by default that of `lam`.
      dtype: an integer dtype.
      method: "exact", or "approximate", which has no loop.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: the dtype is not an integer dtype, there is no such method, or `lam` does not
        broadcast to `shape`.
      NotImplementedError: method "exact" with a key of another generator than threefry2x32.

    >>> import pyjx as jax
    >>> jax.random.poisson(jax.random.key(0), 3., (4,)).shape
    (4,)
    """
    wrapped, _ = check_key("poisson", key)
    method = check_method("poisson", method)
    generator = wrapped.dtype._impl
    if method == "exact" and generator is not threefry2x32:
        raise NotImplementedError(
            "`poisson` with method='exact' is only implemented for the threefry2x32 RNG, not "
            f"{generator.name}: its loop would give other numbers in a batch than one by one. Use "
            "method='approximate', or a key of threefry2x32.")
    dtype = dtypes.check_and_canonicalize_user_dtype(int if dtype is None else dtype, "poisson")
    if not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(f"dtype argument to `poisson` must be an int dtype, got "
                         f"{dtypes.name(dtype)}")
    shape = result_shape("poisson", shape, lam)
    out = _poisson(wrapped, lam, shape=shape, dtype=dtype, method=method)
    return placed_result(out, out_sharding, "poisson")


# -- binomial --------------------------------------------------------------------------------------

# log(k!) minus Stirling's formula, (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
_STIRLING = np.array([
    math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
    for k in range(10)
])


def _stirling_rest(k: Value) -> Array:
    """The rest of Stirling's formula: from a table up to 9, then its series at 9, as in JAX: of the
    series at k itself other numbers would be accepted."""
    dtype = get_aval(k).dtype

    def number(value: float) -> Any:
        return constant(value, dtype)

    one = number(1)
    table = lax.full_like(k, _STIRLING[0])
    for i in range(1, 10):
        table = lax.select(lax.ge(k, number(i)), _like(k, _STIRLING[i]), table)
    k1 = lax.add(lax.min(k, number(9)), one)
    square = lax.mul(k1, k1)
    series = lax.sub(number(1 / 360), lax.div(number(1 / 1260), square))
    series = lax.sub(number(1 / 12), lax.div(series, square))
    return lax.select(lax.le(k, number(9)), table, lax.div(series, k1))


def _binomial_by_waiting(key: KeyLike, n: Value, log1_p: Value) -> Array:
    """How many geometric waiting times fit into n trials, for a small mean."""
    shape, dtype = get_aval(n).shape, get_aval(n).dtype

    def step(state: Any) -> Any:
        count, waited, k = state
        subkey, k = split_traced(k)
        count = lax.select(lax.le(waited, n), lax.add(count, _like(count, 1)), count)
        wait = lax.ceil(lax.div(lax.log(unit_floats(subkey, shape, dtype)), log1_p))
        return count, lax.add(waited, wait), k

    def unfinished(state: Any) -> Any:
        return lax.reduce_or(lax.le(state[1], n), tuple(range(len(shape))))

    zero = lax.full(shape, 0, dtype)
    count = lax.while_loop(unfinished, step, (zero, zero, key))[0]
    return lax.sub(count, _like(count, 1))


def _binomial_by_rejection(key: KeyLike, n: Value, p: Value) -> Array:
    """Algorithm BTRS of Hormann, "The generation of binomial random variates" (1993), for a mean
    of 10 and more."""
    shape, dtype = get_aval(n).shape, get_aval(n).dtype

    def number(value: float) -> Any:
        return constant(value, dtype)

    one, half = number(1), number(0.5)
    mean = lax.mul(n, p)
    deviation = lax.sqrt(lax.mul(mean, lax.sub(one, p)))
    b = lax.add(number(1.15), lax.mul(number(2.53), deviation))
    a = lax.add(lax.add(number(-0.0873), lax.mul(number(0.0248), b)), lax.mul(number(0.01), p))
    c = lax.add(mean, half)
    v_r = lax.sub(number(0.92), lax.div(number(4.2), b))
    r = lax.div(p, lax.sub(one, p))
    alpha = lax.mul(lax.add(number(2.83), lax.div(number(5.1), b)), deviation)
    m = lax.floor(lax.mul(lax.add(n, one), p))

    def attempt(u: Value, v: Value) -> tuple[Value, Value]:
        us = lax.sub(half, lax.abs(u))
        at_once = lax.bitwise_and(lax.ge(us, number(0.07)), lax.le(v, v_r))
        slope = lax.add(lax.div(lax.mul(number(2), a), us), b)
        k = lax.floor(lax.add(lax.mul(slope, u), c))
        outside = lax.bitwise_or(lax.lt(k, number(0)), lax.gt(k, n))
        width = lax.add(lax.div(a, lax.mul(us, us)), b)
        log_v = lax.log(lax.div(lax.mul(v, alpha), width))
        n_m, n_k = lax.add(lax.sub(n, m), one), lax.add(lax.sub(n, k), one)
        bound = lax.mul(lax.add(m, half),
                        lax.log(lax.div(lax.add(m, one), lax.mul(r, n_m))))
        bound = lax.add(bound, lax.mul(lax.add(n, one), lax.log(lax.div(n_m, n_k))))
        bound = lax.add(bound, lax.mul(
            lax.add(k, half), lax.log(lax.div(lax.mul(r, n_k), lax.add(k, one)))))
        bound = lax.add(bound, _stirling_rest(m))
        bound = lax.add(bound, _stirling_rest(lax.sub(n, m)))
        bound = lax.sub(bound, _stirling_rest(k))
        bound = lax.sub(bound, _stirling_rest(lax.sub(n, k)))
        later = lax.bitwise_and(lax.bitwise_not(outside), lax.le(log_v, bound))
        return k, lax.bitwise_or(at_once, later)

    return _reject_until_accepted(key, shape, dtype, attempt)


def _binomial_floats(key: KeyLike, n: Value, p: Value, dtype: DType) -> Array:
    """`n` and `p` are of one shape and float dtype; invalid ones give nan.

    What is computed is computed in their dtype, and then brought to `dtype`.
    """
    def nan_or_negative(x: Value) -> Array:
        return lax.bitwise_or(lax.ne(x, x), lax.lt(x, _like(x, 0)))

    below = lax.lt(p, _like(p, 0.5))
    q = lax.select(below, p, lax.sub(_like(p, 1), p))
    bad_n, bad_q = nan_or_negative(n), nan_or_negative(q)
    endless = lax.eq(lax.abs(n), _like(n, np.inf))
    safe_q = lax.select(bad_q, _like(q, 0.01), q)
    waiting = lax.bitwise_or(bad_n, lax.le(lax.mul(n, safe_q), _like(n, 10)))
    trials = lax.floor(n)
    low = _binomial_by_waiting(key, lax.select(waiting, trials, _like(n, 0)),
                               lax.log1p(lax.neg(safe_q)))
    # One of the two is returned, so the key is used once.
    # What is not drawn by rejection stands in its loop as numbers that are soon accepted.
    many = min(1e4, float(dtypes.finfo(get_aval(n).dtype).max))
    high = _binomial_by_rejection(random_clone_p.bind(key),
                                  lax.select(waiting, _like(n, many), trials),
                                  lax.select(waiting, _like(q, 0.5), safe_q))
    out = lax.convert_element_type(lax.select(waiting, low, high), dtype)
    bad = lax.bitwise_or(bad_q, bad_n)
    out = lax.select(bad, _like(out, np.nan), out)
    out = lax.select(lax.bitwise_and(endless, lax.bitwise_not(bad)), _like(out, np.inf), out)
    as_drawn = lax.bitwise_or(lax.bitwise_or(below, bad_n),
                              lax.bitwise_or(lax.ne(q, q), endless))
    return lax.select(as_drawn, out, lax.sub(lax.convert_element_type(trials, dtype), out))


def _full(x: Value, dtype: DType, shape: tuple[int, ...]) -> Array:
    """A parameter as an array of the result's shape."""
    x = as_array(x, dtype)
    return stretch(x, shape) if get_aval(x).shape else lax.broadcast(x, shape)


@on_key("shape", "dtype")
def _binomial(key: KeyLike, n: Value, p: Value, *, shape: tuple[int, ...], dtype: DType) -> Array:
    kind = dtypes.to_inexact_dtype(get_aval(p).dtype)
    return _binomial_floats(key, _full(n, kind, shape), _full(p, kind, shape), dtype)


def binomial(key: KeyLike, n: ArrayLike, p: ArrayLike, shape: Sequence[int] | None = None,
             dtype: DTypeLike | None = None) -> Array:
    """Binomial random numbers: successes among `n` trials, each with probability `p`.

    Args:
      key: a key.
      n: number of trials; it broadcasts to `shape`.
      p: probability; it broadcasts to `shape`.
      shape: of the result, by default that to which `n` and `p` broadcast.
      dtype: a float dtype.

    Raises:
      ValueError: the dtype is not a float dtype, or the parameters do not broadcast to `shape`.

    >>> import pyjx as jax
    >>> x = jax.random.binomial(jax.random.key(0), 10, 0.3, (50,))
    >>> bool((x >= 0).all() and (x <= 10).all())
    True
    """
    wrapped, _ = check_key("binomial", key)
    dtype = param_dtype(dtype, "binomial", n, p, safe=False)
    shape = result_shape("binomial", shape, n, p)
    return _binomial(wrapped, n, p, shape=shape, dtype=dtype)


# -- multinomial -----------------------------------------------------------------------------------


@on_key("shape", "dtype", "kind", "unroll")
def _multinomial(key: Array, n: Value, p: Value, *, shape: tuple[int, ...], dtype: DType, kind: Any,
                 unroll: int) -> Array:
    """Binomial numbers one after the other, each of what the ones before have left."""
    p = _full(p, kind, shape)
    n = _full(n, kind, shape[:-1])
    last = len(shape) - 1
    left = running_total(p, last, reverse=True)
    left = lax.select(lax.eq(left, _like(left, 0)), _like(left, 1), left)
    parts = lax.transpose(lax.div(p, left), (last, *range(last)))
    one, zero = constant(1, kind), constant(0, kind)

    def draw(remaining: Value, outcome: tuple[Value, Array]) -> tuple[Value, Value]:
        part, k = outcome
        count = _binomial_floats(k, remaining, lax.clamp(zero, part, one), kind)
        return lax.sub(remaining, count), count

    keys = split_keys(key, (shape[-1],))
    _, counts = lax.scan(draw, n, (parts, keys), unroll=unroll)
    counts = lax.transpose(counts, (*range(1, last + 1), 0))
    return lax.convert_element_type(counts, dtype)


def multinomial(key: KeyLike, n: ArrayLike, p: ArrayLike, *, shape: Sequence[int] | None = None,
                dtype: DTypeLike | None = None, unroll: int = 1) -> Any:
    """Multinomial random vectors: how often each outcome came up in `n` trials.

    Args:
      key: a key.
      n: number of trials.
      p: (..., outcomes), the probabilities.
      shape: leading axes of the result, by default those to which `n` and the leading axes of `p`
        broadcast.
      dtype: of the result, by default the float dtype of the parameters.
      unroll: how many outcomes one iteration of the loop handles.

    Raises:
      ValueError: the parameters do not broadcast to `shape`.

    >>> import pyjx as jax
    >>> x = jax.random.multinomial(jax.random.key(0), 9, jax.numpy.array([0.2, 0.3, 0.5]))
    >>> float(x.sum())
    9.0
    """
    wrapped, _ = check_key("multinomial", key)
    default = param_dtype(None, "multinomial", n, p)
    kind = dtypes.to_inexact_dtype(dtypes.result_type(n, p))  # what it is computed in
    dtype = default if dtype is None else dtypes.check_and_canonicalize_user_dtype(
        dtype, "multinomial")
    outcomes = get_aval(p).shape
    if not outcomes:
        raise ValueError("multinomial requires p.ndim >= 1, got p.ndim == 0")
    lead = joint_shape("multinomial", get_aval(n).shape, outcomes[:-1])
    if shape is not None:
        wanted = as_sizes("multinomial", "shape", shape)
        if not broadcasts_to(lead, wanted):
            raise ValueError("multinomial: n and the leading axes of p must broadcast to shape; "
                             f"got shapes {get_aval(n).shape} and {outcomes} for {wanted}")
        lead = wanted
    full = (*lead, outcomes[-1])
    return _multinomial(wrapped, n, p, shape=full, dtype=dtype, kind=kind, unroll=unroll)
