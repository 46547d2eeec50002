"""Discrete random numbers: Poisson, binomial and multinomial ones, permutations and choices."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import errors, lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike, KeyLike
from pyjx.core.avals import SymbolicDim, get_aval
from pyjx.core.dtypes import DType
from pyjx.core.integers import as_axis, as_sizes
from pyjx.core.layouts import ShardingLike
from pyjx.core.trace import Tracer
from pyjx.engine.types import Value
from pyjx.lax.common import broadcasts_to
from pyjx.lax.elementwise import stretch
from pyjx.lax.special import any_of
from pyjx.numpy.promotion import check_arraylike
from pyjx.random.base import check_key, is_key, on_key, placed_result, split_traced
from pyjx.random.distributions import arrays
from pyjx.random.gamma_samplers import check_method
from pyjx.random.implementations import threefry2x32
from pyjx.random.keys import draw_bits, random_clone_p, split_keys
from pyjx.random.samplers import (
    as_array,
    check_mode,
    check_safe,
    constant,
    drawn,
    float_dtype,
    gumbel_floats,
    integer_dtype,
    integers,
    joint_shape,
    normal_floats,
    result_shape,
    running_total,
    unit_floats,
)

# -- counts ----------------------------------------------------------------------------------------


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

    start = (lax.full(shape, -1, dtype), lax.full(shape, False, np.dtype(bool)), key)
    return lax.while_loop(lambda state: any_of(~state[1]), step, start)[0]


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

    start = (np.int32(0), lax.full(shape, 0, counts), key, lax.full(shape, 0, dtype))
    return lax.while_loop(lambda state: any_of(state[3] > -lam) & (state[0] < most), step,
                          start)[1] - 1


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
    return drawn(_poisson, key, shape, dtype, out_sharding, lam, kind=integer_dtype, safe=False,
                 method=method)


# -- binomial --------------------------------------------------------------------------------------

# log(k!) minus Stirling's formula, (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2.
_STIRLING = np.array([
    math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
    for k in range(10)])


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

    zero = lax.full(shape, 0, dtype)
    return lax.while_loop(lambda state: any_of(state[1] <= n), step, (zero, zero, key))[0] - 1


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
    low = _binomial_by_waiting(key, lax.select(waiting, trials, _like(n, 0)), lax.log1p(-safe_q))
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
    dtype = float_dtype(dtype, "binomial")
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
    default = float_dtype(None, "multinomial")
    check_safe("multinomial", default, n, p)
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


# -- permutations and choices ----------------------------------------------------------------------


def shuffle(key: KeyLike, x: ArrayLike, axis: int) -> Any:
    """`x`, sorted along an axis by random words; in rounds, so that equal words do not matter."""
    aval = get_aval(x)
    size = aval.size
    most = 2**32 - 1
    rounds = math.ceil(3 * math.log(max(1, size)) / math.log(most)) if type(size) is int else next(
        k for k in range(4) if size <= int(most ** (k / 3)))
    for _ in range(rounds):
        key, subkey = split_traced(key)
        words = draw_bits(subkey, 32, aval.shape, False)
        _, x = lax.sort_key_val(words, x, axis)
    return x


def _take(x: Value, indices: Value, axis: int) -> Array:
    return jnp.take(x, indices, axis=axis, unique_indices=False)


@on_key("axis", "independent")
def _permute(key: KeyLike, x: Value, *, axis: int, independent: bool) -> Array:
    aval = get_aval(x)
    if independent or aval.ndim == 1:
        return shuffle(key, x, axis)
    order = shuffle(key, lax.iota(dtypes.default_int_dtype(), aval.shape[axis]), 0)
    return _take(x, order, axis)


@on_key("size", "dtype")
def _permuted_range(key: KeyLike, *, size: int, dtype: DType) -> Array:
    return shuffle(key, lax.iota(dtype, size), 0)


def permutation(key: KeyLike, x: Any, axis: int = 0, independent: bool = False, *,
                out_sharding: ShardingLike = None) -> Array:
    """A random permutation of the numbers below `x`, or of an array along an axis.

    Args:
      key: a key.
      x: an integer, or an array.
      axis: the axis along which the array is permuted.
      independent: whether each vector along the axis is permuted in its own way.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      TypeError: `x` is a scalar but no integer.
      ValueError: the axis is out of range, or `key` is an array of several keys.

    >>> import pyjx as jax
    >>> sorted(jax.random.permutation(jax.random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    wrapped, _ = check_key("permutation", key)
    check_arraylike("permutation", x)
    aval = get_aval(x)
    if not aval.ndim:
        if is_key(x) or not dtypes.issubdtype(aval.dtype, np.integer):
            raise TypeError("permutation: x must be an integer or at least 1-dimensional, got a "
                            f"scalar of type {aval.str_short()}")
        if isinstance(x, Tracer) and x.to_concrete_value() is None:
            raise_traced_size("permutation", x)
        as_axis("permutation", "axis", axis, 1)
        size = x if isinstance(x, SymbolicDim) else max(0, operator.index(x))
        out = _permuted_range(wrapped, size=size, dtype=dtypes.default_int_dtype())
        return placed_result(out, out_sharding, "permutation")
    axis = as_axis("permutation", "axis", axis, aval.ndim)
    if is_key(x):
        if independent and aval.ndim > 1:
            raise TypeError("permutation: independent=True does not accept key arrays")
        order = _permuted_range(wrapped, size=aval.shape[axis], dtype=dtypes.default_int_dtype())
        return placed_result(_take(x, order, axis), out_sharding, "permutation")
    out = _permute(wrapped, x, axis=axis, independent=bool(independent))
    return placed_result(out, out_sharding, "permutation")


def raise_traced_size(name: str, x: ArrayLike) -> None:
    raise errors.ConcretizationTypeError(
        x, f"The error occurred in jax.random.{name}(): its size must be known when it is traced.")


# -- choice ----------------------------------------------------------------------------------------


@on_key("size", "shape", "replace", "mode")
def _choose(key: KeyLike, p: Any = None, *, size: int, shape: tuple[int, ...], replace: bool,
            mode: str) -> Array:
    """Indices below `size`."""
    count = math.prod(shape)
    if p is None:
        dtype = dtypes.default_int_dtype()
        if replace:
            return integers(key, shape, 0, size, dtype)
        order = shuffle(key, lax.iota(dtype, size), 0)
        return lax.reshape(lax.slice(order, (0,), (count,)), shape)
    if replace:
        total = running_total(p, 0)
        last = lax.reshape(lax.slice(total, (size - 1,), (size,)), ())
        dtype = get_aval(total).dtype
        u = unit_floats(key, shape, dtype)
        u = lax.sub(constant(1, dtype), u)
        places = jnp.searchsorted(total, lax.mul(lax.broadcast(last, shape), u))
        return lax.convert_element_type(places, dtypes.default_int_dtype())
    noise = gumbel_floats(key, (size,), get_aval(p).dtype, mode)
    _, indices = lax.top_k(lax.add(noise, lax.log(p)), count)
    indices = lax.convert_element_type(indices, dtypes.default_int_dtype())
    return lax.reshape(indices, shape)


def choice(key: KeyLike, a: Any, shape: Sequence[int] = (), replace: bool = True,
           p: ArrayLike | None = None, axis: int = 0, mode: str | None = None) -> Array:
    """Random elements of an array, or random integers below `a`.

    Args:
      key: a key.
      a: an array, or a number that stands for `arange(int(a))`.
      shape: how many to draw; it takes the place of the axis, and is that of the whole result where
        there is nothing to draw.
      replace: whether an element may be drawn again.
      p: probabilities of the elements, by default equal ones.
      axis: the axis of `a` to draw along.
      mode: as for `gumbel`, for draws with `p` and without replacement.

    Raises:
      TypeError: `shape` is no sequence.
      ValueError: `a` is empty, `p` does not fit, or there are too few elements.

    >>> import pyjx as jax
    >>> jax.random.choice(jax.random.key(0), 5, (3,), replace=False).shape
    (3,)

    A minibatch without repeats:

    >>> batch = jax.random.choice(jax.random.key(0), 100, (8,), replace=False)
    >>> len(set(batch.tolist()))
    8
    """
    if not isinstance(shape, Sequence):
        raise TypeError("shape argument of jax.random.choice must be a sequence, got "
                        f"{shape}" + f". Of {shape} numbers it is ({shape},)" * (
                            type(shape) is int))
    shape = as_sizes("choice", "shape", shape)
    check_arraylike("choice", a, *(() if p is None else (p,)))
    wrapped, _ = check_key("choice", key)
    aval = get_aval(a)
    if not aval.ndim:
        if isinstance(a, Tracer) and a.to_concrete_value() is None:
            raise_traced_size("choice", a)
        if is_key(a) or dtypes.issubdtype(aval.dtype, np.complexfloating):
            raise TypeError("choice: a must be an array or an integer, got a scalar of dtype "
                            f"{dtypes.name(aval.dtype)}")
        size: Any = a if isinstance(a, SymbolicDim) else int(a)
    axis = as_axis("choice", "axis", axis, max(aval.ndim, 1))
    if aval.ndim:
        size = aval.shape[axis]
    count = math.prod(shape)
    if count and size <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and count > size:
        raise ValueError(f"Cannot take a larger sample (size {count}) than population (size "
                         f"{size}) when 'replace=False'")
    if p is not None:
        if get_aval(p).shape != (size,):
            raise ValueError("p must be None or a 1D vector with the same size as a.shape[axis]. "
                             f"p has shape {get_aval(p).shape} and a.shape[axis] is {size}.")
        p = lax.convert_element_type(p, dtypes.to_inexact_dtype(get_aval(p).dtype))
    if not count:
        return jnp.zeros(shape, aval.dtype)
    arrays = () if p is None else (p,)
    mode = "low" if p is None or replace else check_mode("choice", mode)
    indices = _choose(wrapped, *arrays, size=size, shape=shape, replace=bool(replace), mode=mode)
    return _take(a, indices, axis) if aval.ndim else indices


# -- categorical -----------------------------------------------------------------------------------


@on_key("axis", "shape", "replace", "mode")
def _categorical(key: KeyLike, logits: Value, *, axis: int, shape: tuple[int, ...], replace: bool,
                 mode: str) -> Array:
    aval = get_aval(logits)
    dtype = dtypes.default_int_dtype()
    batch = tuple([n for i, n in enumerate(aval.shape) if i != axis])
    if replace:
        front = shape[:len(shape) - len(batch)]
        full = list(shape[len(shape) - len(batch):])
        full.insert(axis, aval.shape[axis])
        noise = gumbel_floats(key, (*front, *full), aval.dtype, mode)
        at = len(front)
        wide = lax.broadcast_in_dim(logits, (*front, *full), range(at, at + aval.ndim))
        return lax.argmax(lax.add(noise, wide), at + axis, dtype)
    count = math.prod(shape[:len(shape) - len(batch)])
    noisy = lax.add(logits, gumbel_floats(key, aval.shape, aval.dtype, mode))
    _, indices = lax.top_k(lax.transpose(noisy, [
        *[i for i in range(aval.ndim) if i != axis], axis]), count)
    n = len(batch)
    return lax.reshape(lax.transpose(indices, (n, *range(n))), shape)


def categorical(key: KeyLike, logits: ArrayLike, axis: int = -1,
                shape: Sequence[int] | None = None, replace: bool = True, mode: str | None = None,
                *, out_sharding: ShardingLike = None) -> Array:
    """Indices along an axis, with probabilities proportional to `exp(logits)`.

    Args:
      key: a key.
      logits: unnormalized logarithms of the probabilities.
      axis: the axis of the categories.
      shape: of the result; its last axes broadcast with those of `logits` other than `axis`, and
        are these by default.
      replace: whether a category may be drawn again in the leading axes.
      mode: as for `gumbel`.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: the shapes do not fit, or there are too few categories.

    >>> import pyjx as jax
    >>> jax.random.categorical(jax.random.key(0), jax.numpy.zeros((4, 3))).shape
    (4,)
    >>> logits = jax.numpy.log(jax.numpy.array([0.25, 0.75]))
    >>> samples = jax.random.categorical(jax.random.key(0), logits, shape=(1000,))
    >>> bool(0.7 < samples.mean() < 0.8)
    True
    """
    wrapped, _ = check_key("categorical", key)
    check_arraylike("categorical", logits)
    aval = get_aval(logits)
    if not dtypes.issubdtype(aval.dtype, np.floating):
        raise ValueError("dtype argument to `gumbel` must be a float dtype, got "
                         f"{dtypes.name(aval.dtype)}: logits must be floats, as by "
                         "logits.astype(float)")
    axis = as_axis("categorical", "axis", axis, aval.ndim)
    batch = tuple([n for i, n in enumerate(aval.shape) if i != axis])
    if shape is None:
        shape = batch
    else:
        shape = as_sizes("categorical", "shape", shape)
        if not broadcasts_to(batch, shape):
            raise ValueError(f"categorical: shape must broadcast with the axes of logits other "
                             f"than {axis}, {batch}; got {shape}")
    if not replace:
        count = math.prod(shape[:len(shape) - len(batch)])
        if count > aval.shape[axis]:
            raise ValueError(f"Number of samples without replacement ({count}) cannot exceed "
                             f"number of categories ({aval.shape[axis]}).")
    out = _categorical(wrapped, logits, axis=axis, shape=shape, replace=bool(replace),
                       mode=check_mode("categorical", mode))
    return placed_result(out, out_sharding, "categorical")
