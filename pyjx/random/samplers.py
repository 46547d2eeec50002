"""Samplers that transform uniform numbers, without loops.

Each takes the same random bits through the same operations as JAX's, so the numbers are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike, KeyLike
from pyjx.core.avals import ShapedArray, SymbolicDim, get_aval
from pyjx.core.dtypes import DType
from pyjx.core.integers import as_sizes
from pyjx.core.layouts import ShardingLike
from pyjx.core.scalars import is_scalar_constant, scalar_constant, wrapped_constant
from pyjx.core.value_texts import array_cure, shortened
from pyjx.engine.types import Value
from pyjx.lax.common import broadcast_shapes, broadcasts_to
from pyjx.lax.elementwise import stretch
from pyjx.random.base import check_key, on_key, placed_result, split_traced
from pyjx.random.keys import draw_bits

_UINTS = {n: np.dtype(f"uint{n}") for n in (8, 16, 32, 64)}


# -- arguments -------------------------------------------------------------------------------------


def float_dtype(dtype: DTypeLike | None, name: str) -> Any:
    """The dtype of a sampler's result.

    Raises:
      ValueError: it is not a float dtype.
    """
    return _dtype_of_kind(dtype, name, np.floating, "a float")


def inexact_dtype(dtype: DTypeLike | None, name: str) -> Any:
    """The dtype of the result of a sampler that draws complex numbers, too.

    Raises:
      ValueError: it is neither a float nor a complex dtype.
    """
    return _dtype_of_kind(dtype, name, np.inexact, "a float or complex")


def integer_dtype(dtype: DTypeLike | None, name: str) -> Any:
    """The dtype of the result of a sampler that counts, by default the default integer one.

    Raises:
      ValueError: it is no integer dtype.
    """
    return _dtype_of_kind(dtype, name, np.integer, "an int", int)


def _dtype_of_kind(dtype: DTypeLike | None, name: str, kind: Any, words: str,
                   default: DTypeLike = float) -> Any:
    dtype = dtypes.check_and_canonicalize_user_dtype(default if dtype is None else dtype, name)
    if not dtypes.issubdtype(dtype, kind):
        raise ValueError(f"dtype argument to `{name}` must be {words} dtype, got "
                         f"{dtypes.name(dtype)}")
    return dtype


def param_aval(name: str, x: Any, position: int = 1) -> ShapedArray:
    """The type of a sampler's parameter; the key stands at position 0.

    Raises:
      TypeError: it is neither a number nor an array.
    """
    try:
        return get_aval(x)
    except (TypeError, ValueError):
        raise TypeError(f"{name} requires ndarray or scalar arguments, got {shortened(x)} of type "
                        f"{type(x)} at position {position}. {array_cure(x)}".rstrip()) from None


def check_safe(name: str, dtype: DTypeLike, *params: Any) -> None:
    """TypePromotionError unless the parameters promote to the result's dtype."""
    for i, p in enumerate(params, 1):
        aval = param_aval(name, p, i)
        if dtypes.join_types((aval.dtype, aval.weak_type), (dtype, False))[0] != dtype:
            raise dtypes.TypePromotionError(
                f"In arguments to {name}, cannot safely cast argument of type "
                f"{dtypes.name(aval.dtype)} to {dtypes.name(dtype)}")


def joint_shape(name: str, *shapes: tuple[int, ...], of: str = "the parameters") -> tuple[int, ...]:
    """The shape to which a sampler's parameters, or what else the shapes are of, broadcast.

    Raises:
      ValueError: they do not.
    """
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"{name}: Incompatible shapes for broadcasting: shapes={list(shapes)}, "
                         f"those of {of}") from None


def result_shape(name: str, shape: Any, *params: Any) -> tuple[int, ...]:
    """The shape of a sampler's result, by default the one to which its parameters broadcast.

    Raises:
      ValueError: the parameters do not broadcast to `shape`.
    """
    shapes = [param_aval(name, p, i).shape for i, p in enumerate(params, 1)]
    if shape is None:
        return joint_shape(name, *shapes)
    shape = as_sizes(name, "shape", shape)
    full = joint_shape(name, shape, *shapes, of="the result and of the parameters")
    if full != shape:
        raise ValueError(f"{name} parameter shapes must be broadcast-compatible with shape "
                         "argument, and the result of broadcasting the shapes must equal the shape "
                         f"argument, but got result {full} for shape argument {shape}")
    return shape


def drawn(body: Callable[..., Any], key: KeyLike, shape: Any, dtype: Any,
          out_sharding: ShardingLike, *params: Value, name: str = "",
          kind: Callable[[Any, str], Any] = float_dtype, safe: bool = True, **options: Any
          ) -> Array:
    """The result of a sampler, whose compiled part `body` has its name after an underscore if none
    is given: of a dtype of a kind in which, if that is to be `safe`, the parameters lose neither
    precision nor a part, and of the shape to which they broadcast."""
    name = name or body.__name__[1:]
    wrapped, _ = check_key(name, key)
    dtype = kind(dtype, name)
    if params and safe:
        check_safe(name, dtype, *params)
    shape = result_shape(name, shape, *params) if params else as_sizes(name, "shape", shape)
    return placed_result(  # type: ignore[no-any-return]
        body(wrapped, *params, shape=shape, dtype=dtype, **options), out_sharding, name)


def _check_bounds(sampler: str, minval: ArrayLike, maxval: ArrayLike) -> None:
    """TypeError unless the bounds of a sampler are numbers."""
    for name, bound in (("minval", minval), ("maxval", maxval)):
        try:
            get_aval(bound)
        except TypeError:
            raise TypeError(f"{sampler}: {name} must be a number or an array, got {bound!r} of "
                            f"type {type(bound)}.") from None


def as_array(x: ArrayLike, dtype: DTypeLike) -> Any:
    """A parameter in the sampler's dtype."""
    if is_scalar_constant(x):
        return wrapped_constant(x, dtype)
    return lax.convert_element_type(x, dtype)


def constant(value: ArrayLike, dtype: DTypeLike) -> Any:
    return scalar_constant(value, dtype)


def total(x: ArrayLike, axes: tuple[int, ...]) -> Any:
    """The sum over `axes`; of half-precision numbers in float32."""
    dtype = get_aval(x).dtype
    if dtype.itemsize >= 4:
        return lax.reduce_sum(x, axes)
    wide = lax.convert_element_type(x, np.float32)
    return lax.convert_element_type(lax.reduce_sum(wide, axes), dtype)


def running_total(x: Array, axis: int, *, reverse: bool = False) -> Array:
    """The cumulative sum as windows, in whose order JAX's is rounded on CPU: where a draw lies
    depends on the last bits. `lax.cumsum` adds one element after the other there."""
    aval = get_aval(x)
    if not aval.size:
        return x
    size = aval.shape[axis]
    if isinstance(size, SymbolicDim):
        return lax.cumsum(x, axis, reverse=reverse)
    window, padding = [1] * aval.ndim, [(0, 0)] * aval.ndim
    window[axis], padding[axis] = size, (0, size - 1) if reverse else (size - 1, 0)
    return lax.reduce_window(x, constant(0, aval.dtype), lax.add, window, padding=padding)


# -- uniform and normal ----------------------------------------------------------------------------


def unit_floats(key: KeyLike, shape: tuple[int, ...], dtype: DTypeLike, *, fused: bool = False
               ) -> Any:
    """Uniform numbers from [0, 1): random mantissas with the exponent of 1, minus 1.

    The maximum changes nothing but how XLA rounds what follows, where it computes half-precision
    numbers in float32. With `fused` the random bits are made in one loop with what is computed of
    the numbers, which is faster, but may round otherwise.
    """
    return lax.max(constant(0, dtype), _unit_floats(key, shape, dtype, fused))


def _unit_floats(key: KeyLike, shape: tuple[int, ...], dtype: DType, fused: bool) -> Array:
    info = dtypes.finfo(dtype)
    width, mantissa = int(info.bits), int(info.nmant)
    if width not in _UINTS:
        raise TypeError("uniform only accepts 8-, 16-, 32-, or 64-bit dtypes, got "
                        f"{dtypes.name(dtype)}. Draw in float8_e4m3fn, say, and use astype.")
    drawn = 8 if mantissa < 8 else width
    bits = draw_bits(key, drawn, shape, fused)
    uint = _UINTS[width]
    if drawn != width:
        bits = lax.convert_element_type(bits, uint)
    one = np.asarray(1, dtype).view(uint)[()]
    bits = lax.shift_right_logical(bits, constant(drawn - mantissa, uint))
    floats = lax.bitcast_convert_type(lax.bitwise_or(bits, one), dtype)
    return lax.sub(floats, constant(1, dtype))


def uniform_floats(key: KeyLike, shape: tuple[int, ...], dtype: DTypeLike, low: ArrayLike,
                   high: ArrayLike, *, fused: bool = False) -> Any:
    """Uniform numbers from [low, high); `fused` as for `unit_floats`."""
    low, high = as_array(low, dtype), as_array(high, dtype)
    u = _unit_floats(key, shape, dtype, fused)
    if isinstance(low, np.generic) and low == 0 and isinstance(high, np.generic) and high == 1:
        return lax.max(low, u)
    span = lax.sub(high, low)
    return lax.max(low, _affine(u, span, low))


def _affine(u: Value, scale: Value, offset: Value) -> Array:
    shape = get_aval(u).shape
    for x in (scale, offset):
        if not broadcasts_to(get_aval(x).shape, shape):
            raise TypeError("mul got incompatible shapes for broadcasting: "
                            f"{shape}, {get_aval(x).shape}.")
    return lax.add(lax.mul(u, _over(scale, shape)), _over(offset, shape))


def _over(x: Value, shape: tuple[int, ...]) -> Any:
    """A parameter for all elements of a result."""
    return x if isinstance(x, np.generic) else stretch(x, shape)


@on_key("shape", "dtype")
def _uniform(key: KeyLike, low: Value = 0.0, high: Value = 1.0, *, shape: tuple[int, ...],
             dtype: DType) -> Array:
    low, high = [_over(as_array(x, dtype), shape) for x in (low, high)]
    return uniform_floats(key, shape, dtype, low, high, fused=True)


def uniform(key: KeyLike, shape: Sequence[int] = (), dtype: Any = None, minval: ArrayLike = 0.0,
            maxval: ArrayLike = 1.0, *, out_sharding: ShardingLike = None) -> Array:
    """Uniform random numbers from [minval, maxval).

    Args:
      key: a key.
      shape: of the result.
      dtype: a float dtype, by default the default one.
      minval, maxval: bounds, which broadcast to `shape`. Leading axes of size one that `maxval` has
        beyond it are left out. If `shape` is empty, `minval` may be of one element in any number
        of axes, and the result is, too.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: the dtype is not a float dtype, `key` is an array of several keys, or a bound has
        more elements than the result.
      TypeError: a bound does not broadcast to `shape`.

    >>> import pyjx as jax
    >>> x = jax.random.uniform(jax.random.key(0), (3,), minval=1., maxval=2.)
    >>> bool((x >= 1).all() and (x < 2).all())
    True
    >>> x = jax.random.uniform(jax.random.key(0), (100,), minval=-1.0, maxval=1.0)
    >>> bool((x >= -1).all() and (x < 1).all())
    True
    """
    wrapped, _ = check_key("uniform", key)
    dtype = float_dtype(dtype, "uniform")
    shape = as_sizes("uniform", "shape", shape)
    if type(minval) is float and minval == 0.0 and type(maxval) is float and maxval == 1.0:
        return placed_result(_uniform(wrapped, shape=shape, dtype=dtype), out_sharding, "uniform")
    _check_bounds("uniform", minval, maxval)
    lead = get_aval(minval).shape if not shape else ()
    low, high = (_fitted("minval", minval, shape, drop=not shape),
                 _fitted("maxval", maxval, shape, drop=True))
    drawn = placed_result(
        _uniform(wrapped, low, high, shape=shape, dtype=dtype), out_sharding, "uniform")
    return lax.reshape(drawn, lead) if lead else drawn


def _fitted(name: str, bound: Any, shape: tuple[int, ...], *, drop: bool) -> Any:
    """A bound of uniform numbers that broadcasts to `shape`; `drop`: without leading axes of size
    one beyond those of `shape`."""
    own = get_aval(bound).shape
    if not own:
        return bound
    extra = max(len(own) - len(shape), 0) if drop else 0
    kept = own[extra:]
    if set(own[:extra]) <= {1} and broadcasts_to(kept, shape):
        return lax.reshape(bound, kept) if extra else bound
    fits = all(n == m or 1 in (n, m) for n, m in zip(own[::-1], shape[::-1], strict=False))
    stretched = fits if len(own) == len(shape) else drop or len(own) < len(shape) or not fits
    if stretched:
        raise ValueError(f"uniform: Incompatible shapes for broadcasting: shapes={[shape, own]}, "
                         f"the second of {name}.")
    raise TypeError(f"uniform got incompatible shapes for broadcasting: {shape}, {own}, the second "
                    f"of {name}.")


def normal_floats(key: KeyLike, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
    """sqrt(2) erfinv(u) with u uniform on (-1, 1)."""
    if dtypes.issubdtype(dtype, np.complexfloating):
        real = dtypes.to_floating_dtype(dtype)
        re, im = [lax.convert_element_type(normal_floats(k, shape, real), dtype)
                  for k in split_traced(key)]
        total = re + 1j * im
        return total / math.sqrt(2)
    return math.sqrt(2) * lax.erf_inv(_symmetric_floats(key, shape, dtype))


def _symmetric_floats(key: KeyLike, shape: tuple[int, ...], dtype: DType) -> Array:
    """Uniform numbers from (-1, 1)."""
    low = np.nextafter(constant(-1, dtype), constant(0, dtype), dtype=dtype)
    return uniform_floats(key, shape, dtype, low, constant(1, dtype))


@on_key("shape", "dtype")
def _scaled_normal(key: KeyLike, scale: Value, *, shape: tuple[int, ...], dtype: DType) -> Array:
    scale = lax.convert_element_type(scale, dtype)
    if dtypes.issubdtype(dtype, np.complexfloating):
        return normal_floats(key, shape, dtype) * scale
    root = lax.mul(lax.full_like(scale, math.sqrt(2)), scale)
    return root * lax.erf_inv(_symmetric_floats(key, shape, dtype))


def scaled_normal(key: KeyLike, shape: Sequence[int], dtype: DTypeLike, scale: ArrayLike) -> Any:
    """Normal numbers times `scale`: real ones are (sqrt(2) scale) erfinv(u), as in JAX's
    initializers, rather than scale (sqrt(2) erfinv(u)), which is rounded otherwise."""
    wrapped, _ = check_key("normal", key)
    dtype = inexact_dtype(dtype, "normal")
    return _scaled_normal(wrapped, scale, shape=as_sizes("normal", "shape", shape), dtype=dtype)


@on_key("shape", "dtype")
def _normal(key: KeyLike, *, shape: tuple[int, ...], dtype: DType) -> Array:
    return normal_floats(key, shape, dtype)


def normal(key: KeyLike, shape: Sequence[int] = (), dtype: Any = None, *,
           out_sharding: ShardingLike = None) -> Array:
    """Normal random numbers with mean 0 and variance 1.

    A complex dtype gives real and imaginary parts with variance 1/2.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      shape: of the result, a tuple; () for a single number.
      dtype: a float or complex dtype; by default the default float dtype, float32 unless 64-bit
        types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: the dtype is neither float nor complex, or `key` is an array of several keys.

    >>> import pyjx as jax
    >>> jax.random.normal(jax.random.key(0), (2, 3)).shape
    (2, 3)

    Another mean and deviation:

    >>> x = 5.0 + 2.0 * jax.random.normal(jax.random.key(0), (10_000,))
    >>> round(float(x.mean())), round(float(x.std()))
    (5, 2)
    """
    wrapped, _ = check_key("normal", key)
    dtype = inexact_dtype(dtype, "normal")
    shape = as_sizes("normal", "shape", shape)
    return placed_result(_normal(wrapped, shape=shape, dtype=dtype), out_sharding, "normal")


# -- integers --------------------------------------------------------------------------------------


def _clamp(x: Value, low: int, high: int) -> Array:
    """`x` within bounds that its dtype may not reach."""
    dtype = get_aval(x).dtype
    info = dtypes.iinfo(dtype)
    x = lax.max(x, constant(max(low, int(info.min)), dtype))
    return lax.min(x, constant(min(high, int(info.max)), dtype))


def _integer(x: Value) -> Any:
    """A bound as an integer array."""
    if type(x) is int:
        return np.asarray(x, dtypes.default_int_dtype())[()]  # OverflowError beyond its range
    if not dtypes.issubdtype(get_aval(x).dtype, np.integer):
        return lax.convert_element_type(x, dtypes.default_int_dtype())
    return x


def _above(x: Value, limit: int) -> Array:
    """Whether integers are greater than one that their dtype may not reach."""
    info = dtypes.iinfo(get_aval(x).dtype)
    return lax.gt(x, lax.full_like(x, min(limit, int(info.max))))


def integers(key: KeyLike, shape: tuple[int, ...], low: ArrayLike, high: ArrayLike,
             dtype: DTypeLike) -> Any:
    """Integers from [low, high): two words w0, w1 as the digits of one number modulo the span.

    With m = 2^(bits / 2) the number w0 m^2 + w1 has so many more bits than the span that its
    remainder is nearly uniform. A bound beyond the dtype makes its largest number possible too.
    """
    low, high = _integer(low), _integer(high)
    info = dtypes.iinfo(dtype)
    width, least, most = int(info.bits), int(info.min), int(info.max)
    if width < 32:  # the 32-bit algorithm, whose results fit
        low, high = _clamp(low, least, most), _clamp(high, least, most + 1)
        wide = integers(key, shape, low, high, np.dtype(np.int32))
        return lax.convert_element_type(wide, dtype)
    beyond = _above(high, most)
    low, high = [lax.convert_element_type(_clamp(x, least, most), dtype) for x in (low, high)]
    size = broadcast_shapes(get_aval(low).shape, get_aval(high).shape)
    low, high, beyond = [stretch(x, size) for x in (low, high, beyond)]
    uint = _UINTS[width]
    one = lax.full(size, 1, uint)
    span = lax.convert_element_type(lax.sub(high, low), uint)
    span = lax.select_n(lax.le(high, low), span, one)
    span = lax.select_n(lax.bitwise_and(beyond, lax.gt(high, low)), span, lax.add(span, one))
    half = lax.rem(lax.full(size, 2 ** (width // 2), uint), span)
    scale = lax.rem(lax.mul(half, half), span)
    low, span, scale = [stretch(x, shape) for x in (low, span, scale)]
    w0, w1 = [draw_bits(k, width, shape, True) for k in split_traced(key)]
    number = lax.add(lax.mul(lax.rem(w0, span), scale), lax.rem(w1, span))
    return lax.add(low, lax.convert_element_type(lax.rem(number, span), dtype))


@on_key("shape", "dtype")
def _randint(key: Array, low: Value, high: Value, *, shape: tuple[int, ...], dtype: DType) -> Array:
    return integers(key, shape, low, high, dtype)


def randint(key: KeyLike, shape: Sequence[int], minval: ArrayLike, maxval: ArrayLike,
            dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Uniform random integers from [minval, maxval).

    Args:
      key: a key.
      shape: of the result.
      minval, maxval: bounds, which broadcast to `shape`; they are clipped to the dtype's range.
      dtype: an integer dtype, by default the default one.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      TypeError: the dtype is not an integer dtype.
      ValueError: the bounds do not broadcast to `shape`, or `key` is an array of several keys.

    >>> import pyjx as jax
    >>> x = jax.random.randint(jax.random.key(0), (100,), 0, 6)
    >>> int(x.min()), int(x.max())
    (0, 5)
    """
    wrapped, _ = check_key("randint", key)
    dtype = dtypes.check_and_canonicalize_user_dtype(int if dtype is None else dtype, "randint")
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {dtypes.name(dtype)}")
    shape = as_sizes("randint", "shape", shape)
    if type(minval) is not int or type(maxval) is not int:
        _check_bounds("randint", minval, maxval)
        result_shape("randint", shape, minval, maxval)
    else:
        minval, maxval = _integer(minval), _integer(maxval)
    return placed_result(
        _randint(wrapped, minval, maxval, shape=shape, dtype=dtype), out_sharding, "randint")


# -- transformed uniform numbers -------------------------------------------------------------------


def _positive(key: KeyLike, shape: tuple[int, ...], dtype: DType) -> Array:
    """Uniform numbers from [tiny, 1)."""
    return uniform_floats(key, shape, dtype, dtypes.finfo(dtype).tiny, constant(1, dtype))


@on_key("shape", "dtype")
def _exponential(key: KeyLike, *, shape: tuple[int, ...], dtype: DType) -> Array:
    return -lax.log1p(-unit_floats(key, shape, dtype))


def exponential(key: KeyLike, shape: Sequence[int] = (), dtype: Any = None, *,
                out_sharding: ShardingLike = None) -> Array:
    """Exponential random numbers with rate 1: density exp(-x) for x >= 0.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      shape: of the result, a tuple; () for a single number.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.exponential(jax.random.key(0), (3,)).shape
    (3,)
    """
    return drawn(_exponential, key, shape, dtype, out_sharding)


def check_mode(name: str, mode: Any) -> str:
    """The `mode` argument: "low" or "high"; the flag `jax_high_dynamic_range_gumbel` decides."""
    if mode is None:
        mode = "high" if configuration.high_dynamic_range_gumbel.value else "low"
    if mode not in ("low", "high"):
        raise ValueError(f"Must provide valid mode for {name} got: {mode}. It is 'low', 'high' or "
                         "None.")
    return str(mode)


def gumbel_floats(key: KeyLike, shape: tuple[int, ...], dtype: DTypeLike, mode: str) -> Any:
    """-log(-log(u)); with mode "high" u has twice the bits where that matters, near 0."""
    if mode == "low":
        return -lax.log(-lax.log(_positive(key, shape, dtype)))
    info = dtypes.finfo(dtype)
    high, low = lax.unstack(unit_floats(key, (2, *shape), dtype))
    eps = constant(info.eps, dtype)
    half_step = constant(max(float(info.eps) ** 2 / 2, float(info.tiny)), dtype)
    fine = high + eps * low + half_step
    u = lax.select_n(high >= 0.5, fine, high)
    return -lax.log(-lax.log1p(-u))


@on_key("shape", "dtype", "mode")
def _gumbel(key: KeyLike, *, shape: tuple[int, ...], dtype: DType, mode: str) -> Array:
    return gumbel_floats(key, shape, dtype, mode)


def gumbel(key: KeyLike, shape: Sequence[int] = (), dtype: Any = None, mode: str | None = None, *,
           out_sharding: ShardingLike = None) -> Array:
    """Gumbel random numbers: distribution function exp(-exp(-x)).

    Args:
      mode: "low", or "high" for more precise tails.
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      shape: of the result, a tuple; () for a single number.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.gumbel(jax.random.key(0), (3,)).shape
    (3,)
    """
    return drawn(_gumbel, key, shape, dtype, out_sharding, mode=check_mode("gumbel", mode))


@on_key("shape", "dtype")
def _laplace(key: KeyLike, *, shape: tuple[int, ...], dtype: DType) -> Array:
    low = constant(-1 + float(dtypes.finfo(dtype).epsneg), dtype)
    u = uniform_floats(key, shape, dtype, low, constant(1, dtype))
    return lax.sign(u) * lax.log1p(-lax.abs(u))


def laplace(key: KeyLike, shape: Sequence[int] = (), dtype: Any = None, *,
            out_sharding: ShardingLike = None) -> Array:
    """Laplace random numbers: density exp(-|x|) / 2.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      shape: of the result, a tuple; () for a single number.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.laplace(jax.random.key(0), (3,)).shape
    (3,)
    """
    return drawn(_laplace, key, shape, dtype, out_sharding)


@on_key("shape", "dtype")
def _logistic(key: KeyLike, *, shape: tuple[int, ...], dtype: DType) -> Array:
    u = _positive(key, shape, dtype)
    return lax.log(u) - lax.log1p(-u)


def logistic(key: KeyLike, shape: Sequence[int] = (), dtype: Any = None, *,
             out_sharding: ShardingLike = None) -> Array:
    """Logistic random numbers: distribution function 1 / (1 + exp(-x)).

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      shape: of the result, a tuple; () for a single number.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.logistic(jax.random.key(0), (3,)).shape
    (3,)
    """
    return drawn(_logistic, key, shape, dtype, out_sharding)


@on_key("shape", "dtype")
def _cauchy(key: KeyLike, *, shape: tuple[int, ...], dtype: DType) -> Array:
    u = uniform_floats(key, shape, dtype, dtypes.finfo(dtype).eps, constant(1, dtype))
    return lax.tan(math.pi * (u - 0.5))


def cauchy(key: KeyLike, shape: Sequence[int] = (), dtype: Any = None, *,
           out_sharding: ShardingLike = None) -> Array:
    """Cauchy random numbers: density 1 / (pi (1 + x^2)).

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      shape: of the result, a tuple; () for a single number.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.cauchy(jax.random.key(0), (3,)).shape
    (3,)
    """
    return drawn(_cauchy, key, shape, dtype, out_sharding)


@on_key("shape", "dtype")
def _truncated_normal(key: KeyLike, lower: Value, upper: Value, *, shape: tuple[int, ...],
                      dtype: DType) -> Array:
    root = constant(math.sqrt(2), dtype)
    lower, upper = as_array(lower, dtype), as_array(upper, dtype)
    a, b = [_over(lax.erf(x / root), shape) for x in (lower, upper)]
    x = root * lax.erf_inv(uniform_floats(key, shape, dtype, a, b))
    low = lax.nextafter(lax.stop_gradient(lower), constant(np.inf, dtype))
    high = lax.nextafter(lax.stop_gradient(upper), constant(-np.inf, dtype))
    return lax.min(lax.max(x, _over(low, shape)), _over(high, shape))


def truncated_normal(key: KeyLike, lower: ArrayLike, upper: ArrayLike,
                     shape: Sequence[int] | None = None, dtype: Any = None, *,
                     out_sharding: ShardingLike = None) -> Array:
    """Normal random numbers under the condition that they are in (lower, upper).

    Args:
      lower, upper: bounds, which broadcast to `shape`.
      shape: of the result, by default that of the bounds.
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      dtype: a float dtype; by default the default one, float32 unless 64-bit types are on.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> x = jax.random.truncated_normal(jax.random.key(0), -1., 2., (100,))
    >>> bool((x > -1).all() and (x < 2).all())
    True
    """
    return drawn(_truncated_normal, key, shape, dtype, out_sharding, lower, upper, safe=False)


# -- bits with a probability -----------------------------------------------------------------------


def coins(key: KeyLike, p: ArrayLike, shape: tuple[int, ...], mode: str = "low") -> Any:
    dtype = get_aval(p).dtype
    if mode == "high":
        high, low = lax.unstack(unit_floats(key, (2, *shape), dtype, fused=True))
        rest = low * dtypes.finfo(dtype).eps
        return rest < _over(p, shape) - high
    return unit_floats(key, shape, dtype, fused=True) < _over(p, shape)


@on_key("shape", "mode")
def _bernoulli(key: KeyLike, p: Value, *, shape: tuple[int, ...], mode: str) -> Array:
    return coins(key, as_array(p, get_aval(p).dtype), shape, mode)


def bernoulli(key: KeyLike, p: ArrayLike = 0.5, shape: Sequence[int] | None = None,
              mode: str = "low", *, out_sharding: ShardingLike = None) -> Array:
    """Booleans that are True with probability `p`.

    Args:
      p: probability, of a float dtype; it broadcasts to `shape`.
      shape: of the result, by default that of `p`.
      mode: "low", or "high" for probabilities below the distance of floats.
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      TypeError: `p` is not of a float dtype.
      ValueError: another mode, or `p` does not broadcast to `shape`.

    >>> import pyjx as jax
    >>> jax.random.bernoulli(jax.random.key(0), 0.5, (3,)).dtype
    dtype('bool')
    """
    if mode not in ("high", "low"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    wrapped, _ = check_key("bernoulli", key)
    dtype = param_aval("bernoulli", p).dtype
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError("bernoulli probability `p` must have a floating dtype, got "
                        f"{dtypes.name(dtype)}.")
    shape = result_shape("bernoulli", shape, p)
    return placed_result(_bernoulli(wrapped, p, shape=shape, mode=mode), out_sharding, "bernoulli")


@on_key("shape", "dtype")
def _rademacher(key: KeyLike, *, shape: tuple[int, ...], dtype: DType) -> Array:
    if dtype == np.bool_:  # neither sign is zero
        return signs(key, shape, np.dtype(np.int32)) != 0
    return signs(key, shape, dtype)


def signs(key: KeyLike, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
    """-1 or 1 with equal probability."""
    heads = coins(key, constant(0.5, dtypes.default_float_dtype()), shape)
    twice = 2 * lax.convert_element_type(heads, dtype)
    return twice - 1


def rademacher(key: KeyLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
               out_sharding: ShardingLike = None) -> Array:
    """-1 or 1 with equal probability.

    Args:
      key: a key, as `key` and `split` make them; the same key gives the same numbers.
      shape: of the result, a tuple; () for a single number.
      dtype: a dtype of numbers; by default the default integer dtype.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.random.rademacher(jax.random.key(0), (3,)).shape
    (3,)
    """
    wrapped, _ = check_key("rademacher", key)
    dtype = dtypes.check_and_canonicalize_user_dtype(int if dtype is None else dtype, "rademacher")
    shape = as_sizes("rademacher", "shape", shape)
    return placed_result(_rademacher(wrapped, shape=shape, dtype=dtype), out_sharding, "rademacher")
