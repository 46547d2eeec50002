"""Gamma random numbers, and the distributions that are made of them.

The method is that of Marsaglia and Tsang, "A simple method for generating gamma variables" (2000):
with d = a - 1/3, c = 1 / (3 sqrt(d)), a normal x and a uniform u, the number d (1 + c x)^3 is
accepted if log(u) < x^2 / 2 + d (1 - v + log(v)) with v = (1 + c x)^3. For a < 1 it is used with
a + 1, and the result multiplied by u^(1 / a).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike, KeyLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.dtypes import DType
from pyjx.core.explicit import entries_of
from pyjx.core.integers import as_int, as_sizes
from pyjx.core.layouts import ShardingLike
from pyjx.core.primitive import ON_PURPOSE, Primitive, register
from pyjx.core.scalars import is_scalar_constant
from pyjx.engine.axes import all_at_front
from pyjx.engine.calls import call_in_place
from pyjx.engine.decompose import traced
from pyjx.engine.types import Tangent, Tangents, Value, Values
from pyjx.lax.common import broadcasts_to
from pyjx.random.base import check_key, on_key, placed_result, split_traced
from pyjx.random.distributions import arrays, exponential_floats
from pyjx.random.implementations import over_batch, threefry2x32
from pyjx.random.keys import counting, split_keys, without
from pyjx.random.samplers import (
    as_array,
    constant,
    drawn,
    float_dtype,
    normal_floats,
    param_aval,
    signs,
    total,
    unit_floats,
)

# -- the primitive ---------------------------------------------------------------------------------


def _one_gamma(key: KeyLike, a: Array, log_space: bool) -> Array:
    """One number; `key` and `a` are scalars."""
    dtype = get_aval(a).dtype

    key, boost_key = split_traced(key)
    large = a >= 1
    shifted = lax.select(large, a, a + 1)
    d = shifted - 1 / 3
    c = (1 / 3) / lax.sqrt(d)

    def next_candidate(state: Any) -> Any:
        k, subkey = split_traced(state[0])
        x = normal_floats(subkey, (), dtype)
        return k, x, 1 + x * c

    def rejected(state: Any) -> Any:
        _, x2, v, u = state
        squeeze = 1 - 0.0331 * (x2 * x2)
        bound = x2 * 0.5 + d * (1 - v + lax.log(v))
        return (u >= squeeze) & (lax.log(u) >= bound)

    def attempt(state: Any) -> Any:
        k, x_key, u_key = split_traced(state[0], 3)
        start = (x_key, lax.full_like(a, 0), lax.full_like(a, -1))
        _, x, v = lax.while_loop(lambda s: s[2] <= 0, next_candidate, start)
        cube = v * v * v
        return k, x * x, cube, unit_floats(u_key, (), dtype)

    start = (key, lax.full_like(a, 0), lax.full_like(a, 1), lax.full_like(a, 2))
    _, _, v, _ = lax.while_loop(rejected, attempt, start)
    power = 1 / a
    if log_space:
        log_u = -exponential_floats(boost_key, (), dtype)
        none = large | (log_u == 0)
        boost = lax.select(none, lax.full_like(a, 0), log_u * power)
        return lax.log(d) + lax.log(v) + boost
    u = 1 - unit_floats(boost_key, (), dtype)
    boost = lax.select(large, lax.full_like(a, 1), lax.pow(u, power))
    return d * v * boost


def _decomposition(key: KeyLike, a: Array, *, log_space: bool, partitionable: bool | None = None
                   ) -> Array:
    with counting(partitionable):
        return _gammas(key, a, log_space)


def _gammas(key: KeyLike, a: Array, log_space: bool) -> Array:
    """Each element has a key of its own, split from that of its example."""
    shape, examples = get_aval(a).shape, get_aval(key).shape
    size = math.prod(shape)
    if not size:
        return a
    keys = split_keys(key, (math.prod(shape[len(examples):]),))
    keys, flat = lax.reshape(keys, (size,)), lax.reshape(a, (size,))

    def one(k: Array, x: Array) -> Array:
        return _one_gamma(k, x, log_space)

    # The bits of many keys at once are only with threefry those of one key after the other.
    together = get_aval(keys).dtype._impl is threefry2x32
    out = over_batch(1, one, keys, flat) if together else _one_by_one(one, keys, flat)
    return lax.reshape(out, shape)


def _one_by_one(fun: Callable[[Any, Any], Any], keys: KeyLike, xs: Array) -> Array:
    size = get_aval(xs).shape[0]

    def step(state: Any) -> Any:
        i, outs = state
        key = lax.dynamic_index_in_dim(keys, i, keepdims=False)
        out = fun(key, lax.dynamic_index_in_dim(xs, i, keepdims=False))
        return i + 1, lax.dynamic_update_index_in_dim(outs, out, i, 0)

    start = (np.int32(0), lax.full_like(xs, 0))
    return lax.while_loop(lambda state: state[0] < size, step, start)[1]


def _gamma_shape(key: ShapedArray, a: ShapedArray, **params: Any) -> ShapedArray:
    if not dtypes.is_extended(key.dtype) or key.shape != a.shape[:key.ndim]:
        raise TypeError("random_gamma takes a key, or keys whose shape that of `a` begins with, "
                        f"got {key.str_short()} and {a.str_short()}")
    return a.strip_weak_type()


def _gamma_jvp(primals: Values, tangents: Tangents, *, log_space: bool, **params: Any
               ) -> tuple[Value, Tangent]:
    """The derivative with respect to `a` at a fixed value of the distribution function."""
    key, a = primals
    out = random_gamma_p.bind(key, a, log_space=log_space, **params)
    g: Any = tangents[1]
    return out, lax.mul(g, _log_slope(a, out) if log_space else lax.random_gamma_grad(a, out))


def _log_slope(a: Value, log: Value) -> Array:
    """d log x / da; below the precision of the dtype, where P(a, x) is x^a / Gamma(a + 1), as a
    number that holds where x is 0 in the dtype."""
    eps = constant(dtypes.finfo(get_aval(a).dtype).eps, get_aval(a).dtype)
    one, sample = lax.full_like(a, 1), lax.exp(log)
    small = lax.lt(sample, lax.full_like(sample, eps))
    x = lax.select(small, one, sample)
    above = lax.div(lax.random_gamma_grad(a, x), x)
    below = lax.div(lax.sub(lax.digamma(lax.add(a, one)), log), a)
    # No larger than what 0 makes 0 of: the sample that it is multiplied by is 0 then.
    below = lax.min(below, lax.full_like(below, dtypes.finfo(get_aval(a).dtype).max))
    return lax.select(small, below, above)


random_gamma_p = register(Primitive(
    "random_gamma", shape_rule=_gamma_shape, derivative=ON_PURPOSE, decomposition=_decomposition,
    sharding_rule=lambda out, key, a, **params: entries_of(a)))
random_gamma_p.define(
    jvp=_gamma_jvp, printed=without(partitionable=(True, False, None)),
    batch=lambda operands, dims, **params: (
        random_gamma_p.bind(*all_at_front(operands, dims), **params), 0))


# -- the approximate method ------------------------------------------------------------------------

# With k = 1 / (2 (a + 4)) and z normal, a gamma number of a + 4 is (a + 4) p(z sqrt(k))^3, where
# the coefficients of p are these polynomials in k: the expansion of Wilson and Hilferty, carried
# on and fitted.
_CUBE_ROOT = (
    (1.0, -0.2237368, -0.01513904),
    (0.4713941, 0.02607083, -0.008986007),
    (0.0001348028, 0.01128186, 0.02277679),
    (-0.008553069, -0.01153761, -0.01323293),
    (0.00312558, 0.005169654, -0.006950356),
    (-0.0008426812, 0.00253001, 0.001060438),
    (9.780499e-05, -0.001450117, 0.001565326),
)


def _approximate(key: KeyLike, a: Value, log_space: bool, dtype: DType) -> Array:
    """Numbers of the approximate method, by one function for all uses with the same types."""
    program = traced(_approximate_floats, [get_aval(key), get_aval(a)],
                     {"log_space": log_space, "result": dtype})
    return call_in_place(program, "_gamma_approx", key, a)[0]


def _at_least_float32(dtype: DType) -> DType:
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype


def _approximate_floats(key: KeyLike, a: Array, *, log_space: bool, result: DType) -> Array:
    """A gamma number of a + 4, times u_i^(1 / (a + i)) for i = 0, ..., 3; in float32 at least."""
    shape, dtype = get_aval(a).shape, _at_least_float32(get_aval(a).dtype)
    a = lax.convert_element_type(a, dtype)
    normal_key, exponential_key = split_traced(key)
    above = a + 4
    double = 2 * above
    k = 1 / double
    z = normal_floats(normal_key, shape, dtype) * lax.rsqrt(double)
    coefficients = [lax.polynomial(k, [constant(c, dtype) for c in row]) for row in _CUBE_ROOT]
    root = lax.max(lax.polynomial(z, coefficients), constant(dtypes.finfo(dtype).tiny, dtype))
    log = lax.log(above) + 3 * lax.log(root)
    steps = lax.broadcast(a, (4,)) + lax.broadcasted_iota(dtype, (4, *shape), 0)
    down = -exponential_floats(exponential_key, (4, *shape), dtype) / steps
    log = log + total(down, (0,))
    return lax.convert_element_type(log if log_space else lax.exp(log), result)


def gamma_floats(key: KeyLike, a: ArrayLike, log_space: bool, method: str) -> Any:
    if method == "approximate":
        return _approximate(key, a, log_space, get_aval(a).dtype)
    return random_gamma_p.bind(key, a, log_space=log_space,
                               partitionable=configuration.threefry_partitionable.value)


def check_method(name: str, method: Any) -> str:
    if method not in ("exact", "approximate"):
        raise ValueError(f"method argument to `{name}` must be one of {{'exact', 'approximate'}}, "
                         f"got {method!r}")
    return str(method)


# -- public functions ------------------------------------------------------------------------------


@on_key("shape", "dtype", "log_space", "method")
def _gamma(key: KeyLike, a: Array, *, shape: tuple[int, ...], dtype: DType, log_space: bool,
           method: str) -> Array:
    approximate = method == "approximate"
    (a,) = arrays(_at_least_float32(dtype) if approximate else dtype, shape, a)
    a = a if not is_scalar_constant(a) else lax.broadcast(a, ())
    if approximate:
        return _approximate(key, a, log_space, dtype)
    return gamma_floats(key, a, log_space, method)


def gamma(key: Any, a: Any, shape: Sequence[int] | None = None, dtype: Any = None, *,
          method: str = "exact", out_sharding: Any = None) -> Array:
    """Gamma random numbers: density ~ x^(a - 1) exp(-x) for x >= 0.

    Args:
      key: a key.
      a: the parameter, positive; it broadcasts to `shape`.
      shape: of the result, by default that of `a`.
      method: "exact", or "approximate", which has no loop.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: the dtype is not a float dtype, there is no such method, or `a` does not
        broadcast to `shape`.

    >>> import pyjx as jax
    >>> jax.random.gamma(jax.random.key(0), 2., (3,)).shape
    (3,)
    """
    return drawn(_gamma, key, shape, dtype, out_sharding, a, safe=False, log_space=False,
                 method=check_method("gamma", method))


def loggamma(key: Any, a: Any, shape: Sequence[int] | None = None, dtype: Any = None, *,
             method: str = "exact", out_sharding: Any = None) -> Array:
    """The logarithms of gamma random numbers, which are finite for small `a` too.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      a: the parameter of the gamma distribution, positive; it broadcasts to `shape`.
      shape: of the result, by default that of `a`.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      method: "exact", or "approximate", as for `gamma`.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.loggamma(jax.random.key(0), 0.01, (3,)).shape
    (3,)
    """
    return drawn(_gamma, key, shape, dtype, out_sharding, a, name="loggamma", safe=False,
                 log_space=True, method=check_method("loggamma", method))


@on_key("shape", "dtype", "method")
def _beta(key: KeyLike, a: Array, b: Array, *, shape: tuple[int, ...], dtype: DType, method: str
          ) -> Array:
    a_key, b_key = split_traced(key)
    a, b = arrays(dtype, shape, a, b)
    x, y = gamma_floats(a_key, a, True, method), gamma_floats(b_key, b, True, method)
    top = lax.max(x, y)
    x, y = lax.exp(x - top), lax.exp(y - top)
    return x / (x + y)


def beta(key: KeyLike, a: ArrayLike, b: ArrayLike, shape: Sequence[int] | None = None,
         dtype: DTypeLike | None = None, *, method: str = "exact", out_sharding: ShardingLike = None
        ) -> Array:
    """Beta random numbers: density ~ x^(a - 1) (1 - x)^(b - 1) on [0, 1].

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      a, b: the exponents, positive; they broadcast to `shape`.
      shape: of the result, by default that to which `a` and `b` broadcast.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      method: "exact", or "approximate", as for `gamma`.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.beta(jax.random.key(0), 2., 3., (3,)).shape
    (3,)
    """
    method = check_method("beta", method)
    return drawn(_beta, key, shape, dtype, out_sharding, a, b, method=method)


def _chisquare_floats(key: KeyLike, df: Array, method: str) -> Array:
    return lax.exp(gamma_floats(key, df / 2, True, method)) * 2


@on_key("shape", "dtype", "method")
def _chisquare(key: KeyLike, df: Array, *, shape: tuple[int, ...], dtype: DType, method: str
               ) -> Array:
    (df,) = arrays(dtype, shape, df)
    return _chisquare_floats(key, df, method)


def chisquare(key: KeyLike, df: ArrayLike, shape: Sequence[int] | None = None,
              dtype: DTypeLike | None = None, *, method: str = "exact",
              out_sharding: ShardingLike = None) -> Array:
    """Chi-square random numbers: density ~ x^(df / 2 - 1) exp(-x / 2) for x >= 0.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      df: the degrees of freedom, positive; it broadcasts to `shape`.
      shape: of the result, by default that of `df`.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      method: "exact", or "approximate", as for `gamma`.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.chisquare(jax.random.key(0), 3., (3,)).shape
    (3,)
    """
    method = check_method("chisquare", method)
    return drawn(_chisquare, key, shape, dtype, out_sharding, df, method=method)


@on_key("shape", "dtype")
def _f(key: KeyLike, dfnum: Array, dfden: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    den_key, num_key = split_traced(key)
    dfnum, dfden = arrays(dtype, shape, dfnum, dfden)
    num = _chisquare_floats(num_key, dfnum, "exact")
    den = _chisquare_floats(den_key, dfden, "exact")
    return num / dfnum / (den / dfden)


def f(key: KeyLike, dfnum: Any, dfden: Any, shape: Sequence[int] | None = None,
      dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """F random numbers: quotients of two chi-square numbers, each divided by its parameter.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      dfnum, dfden: the degrees of freedom of numerator and denominator, positive; they broadcast to
        `shape`.
      shape: of the result, by default that to which the two broadcast.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.f(jax.random.key(0), 2., 3., (3,)).shape
    (3,)
    """
    return drawn(_f, key, shape, dtype, out_sharding, dfnum, dfden)


@on_key("shape", "dtype")
def _t(key: KeyLike, df: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    normal_key, gamma_key = split_traced(key)
    (df,) = arrays(dtype, shape, df)
    x = normal_floats(normal_key, shape, dtype)
    half = df / 2
    return x * lax.sqrt(half / gamma_floats(gamma_key, half, False, "exact"))


def t(key: KeyLike, df: ArrayLike, shape: Sequence[int] | None = None,
      dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Student's t random numbers: density ~ (1 + x^2 / df)^(-(df + 1) / 2).

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      df: the degrees of freedom, positive; it broadcasts to `shape`.
      shape: of the result, by default that of `df`.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.t(jax.random.key(0), 3., (3,)).shape
    (3,)
    """
    return drawn(_t, key, shape, dtype, out_sharding, df)


@on_key("shape", "dtype", "method")
def _dirichlet(key: KeyLike, alpha: Array, *, shape: tuple[int, ...], dtype: DType, method: str
               ) -> Array:
    (alpha,) = arrays(dtype, shape, alpha)
    x = gamma_floats(key, alpha, True, method)
    last = len(shape) - 1

    def along(y: Array) -> Array:
        return lax.broadcast_in_dim(y, shape, range(last))

    x = lax.exp(x - along(lax.stop_gradient(lax.reduce_max(x, (last,)))))
    return x / along(total(x, (last,)))


def dirichlet(key: KeyLike, alpha: Any, shape: Sequence[int] | None = None,
              dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Dirichlet random vectors: positive numbers with sum 1, density ~ prod x_i^(alpha_i - 1).

    Args:
      key: a key.
      alpha: (..., n), the parameters.
      shape: leading axes of the result, by default those of `alpha`.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: `alpha` is a scalar, or its leading axes do not broadcast to `shape`.

    >>> import pyjx as jax
    >>> jax.random.dirichlet(jax.random.key(0), jax.numpy.ones(4), (3,)).shape
    (3, 4)
    """
    wrapped, _ = check_key("dirichlet", key)
    dtype = float_dtype(dtype, "dirichlet")
    a = param_aval("dirichlet", alpha).shape
    if not a:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0")
    lead = a[:-1]
    if shape is not None:
        lead = as_sizes("dirichlet", "shape", shape)
        if not broadcasts_to(a[:-1], lead):
            raise ValueError("dirichlet: Incompatible shapes for broadcasting: "
                             f"shapes={[lead, a[:-1]]}: the leading axes of alpha must broadcast "
                             f"to shape; got alpha of shape {a} for {lead}")
    out = _dirichlet(wrapped, alpha, shape=(*lead, a[-1]), dtype=dtype, method="exact")
    return placed_result(out, out_sharding, "dirichlet")


# -- generalized normal numbers --------------------------------------------------------------------


def _generalized_normal_floats(key: KeyLike, p: Array, shape: tuple[int, ...], dtype: DType
                               ) -> Array:
    gamma_key, sign_key = split_traced(key)
    inverse = lax.convert_element_type(1 / p, dtype)
    a = lax.broadcast(inverse, shape) if shape else lax.broadcast(inverse, ())
    x = gamma_floats(gamma_key, a, False, "exact")
    return signs(sign_key, shape, dtype) * lax.pow(x, a)


def _exponent(p: Array) -> Array:
    """The parameter p in a dtype of its own: what is computed of it is rounded to the result's."""
    own = dtypes.to_inexact_dtype(dtypes.canonicalize_dtype(get_aval(p).dtype))
    return as_array(p, own)


@on_key("shape", "dtype")
def _generalized_normal(key: KeyLike, p: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    return _generalized_normal_floats(key, _exponent(p), shape, dtype)


def generalized_normal(key: KeyLike, p: ArrayLike, shape: Sequence[int] = (), dtype: Any = None,
                       *, out_sharding: ShardingLike = None) -> Array:
    """Random numbers with density ~ exp(-|x|^p); `p` is a scalar.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      p: the exponent, a positive scalar: 1 is the Laplace distribution, 2 a normal one of variance
        1/2.
      shape: of the result, a tuple; () for a single number.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.generalized_normal(jax.random.key(0), 1.5, (3,)).shape
    (3,)
    """
    wrapped, _ = check_key("generalized_normal", key)
    dtype = float_dtype(dtype, "generalized_normal")
    _require_scalar("generalized_normal", p)
    shape = as_sizes("generalized_normal", "shape", shape)
    out = _generalized_normal(wrapped, p, shape=shape, dtype=dtype)
    return placed_result(out, out_sharding, "generalized_normal")


def _require_scalar(name: str, p: ArrayLike) -> None:
    aval = get_aval(p)
    if aval.shape:
        raise ValueError(f"{name} requires a scalar p, got one of shape {aval.shape}")
    if dtypes.issubdtype(aval.dtype, np.complexfloating):
        raise TypeError(f"{name} requires a real p, got one of dtype {aval.dtype}. Take its real "
                        "part first.")


@on_key("shape", "dtype")
def _ball(key: KeyLike, p: Array, *, shape: tuple[int, ...], dtype: DType) -> Array:
    direction_key, radius_key = split_traced(key)
    p = _exponent(p)
    inverse = 1 / p
    x = _generalized_normal_floats(direction_key, p, shape, dtype)
    last = len(shape) - 1
    e = exponential_floats(radius_key, shape[:-1], dtype)
    powers = lax.pow(lax.abs(x), lax.broadcast(as_array(p, dtype), shape))
    root = lax.broadcast(as_array(inverse, dtype), shape[:-1])
    length = lax.pow(total(powers, (last,)) + e, root)
    return x / lax.broadcast_in_dim(length, shape, range(last))


def ball(key: KeyLike, d: int, p: ArrayLike = 2, shape: Sequence[int] = (), dtype: Any = None, *,
         out_sharding: ShardingLike = None) -> Any:
    """Points that are uniformly distributed in the unit ball of the p-norm in `d` dimensions.

    By Barthe, Guedon, Mendelson and Naor, "A probabilistic approach to the geometry of the
    l_p^n-ball" (2005).

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      d: the number of coordinates of a point, a positive int.
      p: the order of the norm, positive: 2 for the Euclidean one, 1 for the sum of absolute values.
      shape: of the array of points; the result has an axis of size `d` behind it.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.ball(jax.random.key(0), 3, shape=(5,)).shape
    (5, 3)
    """
    wrapped, _ = check_key("ball", key)
    dtype = float_dtype(dtype, "ball")
    _require_scalar("ball", p)
    shape = (*as_sizes("ball", "shape", shape), as_int("ball", "d", d))
    return placed_result(_ball(wrapped, p, shape=shape, dtype=dtype), out_sharding, "ball")
