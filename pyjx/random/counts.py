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


def _like(x: Array, value: float) -> Array:
    return lax.full_like(x, value)


def _reject_until_accepted(key: KeyLike, shape: tuple[int, ...], dtype: DType,
                           attempt: Callable[[Any, Any], tuple[Any, Any]]) -> Array:
    """Numbers `k` of the first attempt `(u, v) -> (k, accepted)` that is accepted, elementwise.

    u is uniform on [-1/2, 1/2), v on [0, 1).
    """
    def step(state: Any) -> Any:
        best, done, k = state
        k, u_key, v_key = split_traced(k, 3)
        u, v = unit_floats(u_key, shape, dtype) - 0.5, unit_floats(v_key, shape, dtype)
        new, accepted = attempt(u, v)
        return lax.select(accepted, new, best), done | accepted, k

    def unfinished(state: Any) -> Any:
        return lax.reduce_or(~state[1], tuple(range(len(shape))))

    start = (lax.full(shape, -1, dtype), lax.full(shape, False, np.dtype(bool)), key)
    return lax.while_loop(unfinished, step, start)[0]


# -- Poisson ---------------------------------------------------------------------------------------


def _poisson_by_product(key: KeyLike, lam: Array, counts: DType) -> Array:
    """How many uniform numbers have a product above exp(-lam) (Knuth), for small lam; fewer than
    the largest count that the dtype has."""
    shape, dtype = get_aval(lam).shape, get_aval(lam).dtype
    most = min(int(dtypes.iinfo(counts).max), int(np.iinfo(np.int32).max))

    def step(state: Any) -> Any:
        i, count, k, log_product = state
        k, subkey = split_traced(k)
        count = lax.select(log_product > -lam, count + 1, count)
        return i + 1, count, k, log_product + lax.log(unit_floats(subkey, shape, dtype))

    def unfinished(state: Any) -> Any:
        return lax.reduce_or(state[3] > -lam, tuple(range(len(shape)))) & (state[0] < most)

    start = (np.int32(0), lax.full(shape, 0, counts), key, lax.full(shape, 0, dtype))
    return lax.while_loop(unfinished, step, start)[1] - 1


def _poisson_by_rejection(key: KeyLike, lam: Array, counts: DType) -> Array:
    """Algorithm PTRS of Hormann, "The transformed rejection method for generating Poisson random
    variables" (1993), for lam >= 10."""
    b = 0.931 + 2.53 * lax.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha, v_r = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    log_lam = lax.log(lam)

    def attempt(u: Array, v: Array) -> tuple[Array, Array]:
        us = 0.5 - abs(u)
        k = lax.floor((2 * a / us + b) * u + lam + 0.43)
        s = lax.log(v * inverse_alpha / (a / (us * us) + b))
        log_p = -lam + k * log_lam - lax.lgamma(k + 1)
        outside = (k < 0) | ((us < 0.013) & (v > us))
        return k, ((us >= 0.07) & (v <= v_r)) | (~outside & (s <= log_p))

    k = _reject_until_accepted(key, get_aval(lam).shape, get_aval(lam).dtype, attempt)
    return lax.convert_element_type(k, counts)


def _exact_poisson(key: KeyLike, lam: Array, dtype: DType) -> Array:
    small = (lam != lam) | (lam < 10)
    low = _poisson_by_product(key, lax.select(small, lam, _like(lam, 0)), dtype)
    # One of the two is returned, so the key is used once.
    high = _poisson_by_rejection(random_clone_p.bind(key), lax.select(small, _like(lam, 1e5), lam),
                                 dtype)
    out = lax.select(small, low, high)
    return lax.select(lam == 0, _like(out, 0), out)


def _normal_cdf(z: Array) -> Array:
    root = math.sqrt(0.5)
    w = z * root
    tail = lax.erfc(abs(w))
    return 0.5 * lax.select(abs(w) < root, 1 + lax.erf(w), lax.select(w > 0, 2 - tail, tail))


def _peizer_pratt(k: Array, lam: Array) -> Array:
    """The z at which the normal distribution function is nearly that of Poisson at k.

    By Peizer and Pratt, "A normal approximation for binomial, F, beta, and other common, related
    tail probabilities" (1968); near 1 their function T is given by its series.
    """
    dtype = get_aval(lam).dtype
    negative = k < 0
    k = lax.max(k, _like(k, 0))
    y = (k + 0.5) / lam
    t = y - 1
    near = abs(t) < 0.25
    series = t * lax.polynomial(t, [
        constant((-1) ** (n + 1) * 2 / (n * (n + 1)), dtype) for n in range(2, 11)])
    far_y, far_t = lax.select(near, _like(y, 2), y), lax.select(near, _like(t, 1), t)
    top = 1 - lax.square(far_y) + 2 * far_y * lax.log(far_y)
    shape = lax.select(near, series, top / lax.square(far_t))
    z = (k - lam + 2 / 3 + 0.02 / (k + 1)) * lax.sqrt((1 + shape) / lam)
    return lax.select(negative, _like(z, -np.inf), z)


def _approximate_poisson(key: KeyLike, lam: Array, dtype: DType) -> Array:
    """The quantile of a uniform number: by summation below 7, else from a normal approximation."""
    kind = get_aval(lam).dtype
    z = normal_floats(key, get_aval(lam).shape, kind)
    u = _normal_cdf(z)
    term = total = lax.exp(-lam)
    low = lax.convert_element_type(total < u, kind)
    for n in range(1, 19):
        term = term * (lam / n)
        total = total + term
        low = low + lax.convert_element_type(total < u, kind)
    root, z2 = lax.sqrt(lam), lax.square(z)
    guess = lam + root * z - 2 / 3 + z2 / 6 + z * (1 - z2) / (72 * root)
    k = lax.ceil(guess + 0.6)
    high = k + 1
    for candidate in (k, k - 1):
        high = high - lax.convert_element_type(_peizer_pratt(candidate, lam) >= z, kind)
    high = lax.max(high, _like(high, 0))
    return lax.convert_element_type(lax.select(lam < 7, low, high), dtype)


@on_key("shape", "dtype", "method")
def _poisson(key: Array, lam: Array, *, shape: tuple[int, ...], dtype: DType, method: str) -> Array:
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


def _stirling_rest(k: Array) -> Array:
    """The rest of Stirling's formula: from a table up to 9, then its series at 9, as in JAX: of the
    series at k itself other numbers would be accepted."""
    table = lax.full_like(k, _STIRLING[0])
    for i in range(1, 10):
        table = lax.select(k >= i, _like(k, _STIRLING[i]), table)
    k1 = lax.min(k, _like(k, 9)) + 1
    square = k1 * k1
    series = 1 / 12 - (1 / 360 - 1 / 1260 / square) / square
    return lax.select(k <= 9, table, series / k1)


def _binomial_by_waiting(key: KeyLike, n: Array, log1_p: Array) -> Array:
    """How many geometric waiting times fit into n trials, for a small mean."""
    shape, dtype = get_aval(n).shape, get_aval(n).dtype

    def step(state: Any) -> Any:
        count, waited, k = state
        subkey, k = split_traced(k)
        count = lax.select(waited <= n, count + 1, count)
        return count, waited + lax.ceil(lax.log(unit_floats(subkey, shape, dtype)) / log1_p), k

    def unfinished(state: Any) -> Any:
        return lax.reduce_or(state[1] <= n, tuple(range(len(shape))))

    zero = lax.full(shape, 0, dtype)
    return lax.while_loop(unfinished, step, (zero, zero, key))[0] - 1


def _binomial_by_rejection(key: KeyLike, n: Array, p: Array) -> Array:
    """Algorithm BTRS of Hormann, "The generation of binomial random variates" (1993), for a mean
    of 10 and more."""
    mean = n * p
    deviation = lax.sqrt(mean * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c, v_r, r = mean + 0.5, 0.92 - 4.2 / b, p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = lax.floor((n + 1) * p)

    def attempt(u: Array, v: Array) -> tuple[Array, Array]:
        us = 0.5 - abs(u)
        k = lax.floor((2 * a / us + b) * u + c)
        log_v = lax.log(v * alpha / (a / (us * us) + b))
        n_m, n_k = n - m + 1, n - k + 1
        bound = (m + 0.5) * lax.log((m + 1) / (r * n_m)) + (n + 1) * lax.log(n_m / n_k)
        bound = bound + (k + 0.5) * lax.log(r * n_k / (k + 1))
        bound = bound + _stirling_rest(m) + _stirling_rest(n - m)
        bound = bound - _stirling_rest(k) - _stirling_rest(n - k)
        outside = (k < 0) | (k > n)
        return k, ((us >= 0.07) & (v <= v_r)) | (~outside & (log_v <= bound))

    return _reject_until_accepted(key, get_aval(n).shape, get_aval(n).dtype, attempt)


def _binomial_floats(key: KeyLike, n: Array, p: Array, dtype: DType) -> Array:
    """`n` and `p` are of one shape and float dtype; invalid ones give nan.

    What is computed is computed in their dtype, and then brought to `dtype`.
    """
    below = p < 0.5
    q = lax.select(below, p, 1 - p)
    bad_n, bad_q = [(x != x) | (x < 0) for x in (n, q)]
    endless = abs(n) == np.inf
    n = lax.select(endless, _like(n, 0), n)  # as neither loop would end
    safe_q = lax.select(bad_q, _like(q, 0.01), q)
    waiting = bad_n | (n * safe_q <= 10)
    trials = lax.floor(n)
    low = _binomial_by_waiting(key, lax.select(waiting, trials, _like(n, 0)),
                               lax.log1p(-safe_q))
    # One of the two is returned, so the key is used once.
    # What is not drawn by rejection stands in its loop as numbers that are soon accepted.
    many = min(1e4, float(dtypes.finfo(get_aval(n).dtype).max))
    high = _binomial_by_rejection(random_clone_p.bind(key),
                                  lax.select(waiting, _like(n, many), trials),
                                  lax.select(waiting, _like(q, 0.5), safe_q))
    out = lax.convert_element_type(lax.select(waiting, low, high), dtype)
    bad = bad_q | bad_n
    out = lax.select(bad, _like(out, np.nan), out)
    out = lax.select(endless & ~bad & (p > 0), _like(out, np.inf), out)
    as_drawn = below | bad_n | (q != q) | endless
    return lax.select(as_drawn, out, lax.convert_element_type(trials, dtype) - out)


def _full(x: Array, dtype: DType, shape: tuple[int, ...]) -> Array:
    """A parameter as an array of the result's shape."""
    x = as_array(x, dtype)
    return stretch(x, shape) if get_aval(x).shape else lax.broadcast(x, shape)


@on_key("shape", "dtype")
def _binomial(key: KeyLike, n: Array, p: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
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
def _multinomial(key: Array, n: Array, p: Array, *, shape: tuple[int, ...], dtype: DType, kind: Any,
                 unroll: int) -> Array:
    """Binomial numbers one after the other, each of what the ones before have left."""
    p = _full(p, kind, shape)
    n = _full(n, kind, shape[:-1])
    last = len(shape) - 1
    left = running_total(p, last, reverse=True)
    left = lax.select(lax.eq(left, _like(left, 0)), _like(left, 1), left)
    parts = lax.transpose(lax.div(p, left), (last, *range(last)))
    one, zero = constant(1, kind), constant(0, kind)

    def draw(remaining: Array, outcome: tuple[Array, Array]) -> tuple[Array, Array]:
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
