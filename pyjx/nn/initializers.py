"""Initial values of weights: functions of a random key, a shape and a dtype.

The variance of a layer's output depends on how many inputs each output sums over (the fan-in), and
that of gradients on how many outputs each input feeds (the fan-out); see Glorot and Bengio 2010 and
He et al. 2015 (arXiv:1502.01852).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pyjx import numpy as jnp
from pyjx import random
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike, KeyLike
from pyjx.core.avals import entries
from pyjx.core.integers import as_axis, as_sizes
from pyjx.core.layouts import ShardingLike
from pyjx.lazy import directory
from pyjx.random.samplers import scaled_normal
from pyjx.runtime.resharding import placed

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]

Axes = int | Sequence[int]


class Initializer(Protocol):
    """What the functions of this module return: `(key, shape, dtype, out_sharding) -> array`."""

    def __call__(self, key: KeyLike, shape: Sequence[int], dtype: Any = None,
                 out_sharding: Any = None) -> Any:
        """Initial values of the given shape and dtype."""


def _dtype(dtype: DTypeLike | None) -> Any:
    """A `dtype` argument as a dtype; None stands for the default float dtype."""
    if dtype is None:
        return dtypes.default_float_dtype()
    return dtypes.check_and_canonicalize_user_dtype(dtype, "initializer")


def zeros(key: KeyLike, shape: Sequence[int], dtype: DTypeLike | None = None,
          out_sharding: ShardingLike = None) -> Any:
    """Zeros; the key is not used.

    Args:
      key: without effect.
      shape: of the result.
      dtype: of the result; by default the default float dtype.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.nn.initializers.zeros(None, (2,)).tolist()
    [0.0, 0.0]
    """
    return jnp.zeros(shape, _dtype(dtype), out_sharding=out_sharding)


def ones(key: KeyLike, shape: Sequence[int], dtype: DTypeLike | None = None,
         out_sharding: ShardingLike = None) -> Any:
    """Ones; the key is not used.

    Args:
      key: without effect.
      shape: of the result.
      dtype: of the result; by default the default float dtype.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.nn.initializers.ones(None, (2,)).tolist()
    [1.0, 1.0]
    """
    return jnp.ones(shape, _dtype(dtype), out_sharding=out_sharding)


def constant(value: Any, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that returns `value` everywhere.

    Args:
      value: an array or a number that broadcasts to the shape that is asked for.
      dtype: of the result where the initializer is not told one.

    >>> import pyjx as jax
    >>> jax.nn.initializers.constant(3)(None, (2,)).tolist()
    [3.0, 3.0]
    """
    def init(key: KeyLike, shape: Sequence[int], dtype: DTypeLike | None = dtype,
             out_sharding: ShardingLike = None) -> Any:
        return jnp.full(shape, value, _dtype(dtype), out_sharding=out_sharding)

    return init


def _scaled(x: Array, scale: ArrayLike) -> Any:
    """`x` times a number, in the dtype of `x`."""
    return x * jnp.asarray(scale, x.dtype)


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws uniformly from [0, scale).

    Args:
      scale: the end of the range, which begins at 0.
      dtype: of the result where the initializer is not told one; a float dtype.

    >>> import pyjx as jax
    >>> jax.nn.initializers.uniform()(jax.random.key(0), (2, 3)).shape
    (2, 3)
    """
    def init(key: KeyLike, shape: Sequence[int], dtype: DTypeLike | None = dtype,
             out_sharding: ShardingLike = None) -> Any:
        drawn = random.uniform(key, shape, _dtype(dtype))
        return placed(_scaled(drawn, scale), out_sharding)

    return init


def normal(stddev: Any = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer that draws from the normal distribution with mean 0.

    Args:
      stddev: the standard deviation.
      dtype: of the result where the initializer is not told one; a float or complex dtype.

    >>> import pyjx as jax
    >>> jax.nn.initializers.normal()(jax.random.key(0), (2, 3)).shape
    (2, 3)
    """
    def init(key: KeyLike, shape: Sequence[int], dtype: DTypeLike | None = dtype,
             out_sharding: ShardingLike = None) -> Any:
        return placed(scaled_normal(key, shape, _dtype(dtype), stddev), out_sharding)

    return init


def truncated_normal(stddev: Any = 1e-2, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0,
                     upper: ArrayLike = 2.0) -> Initializer:
    """An initializer that draws from the standard normal distribution within (lower, upper), and
    multiplies by `stddev`.

    Args:
      stddev: the standard deviation of the normal distribution that is cut off.
      dtype: of the result where the initializer is not told one; a float dtype.
      lower, upper: where it is cut off, in standard deviations.

    >>> import pyjx as jax
    >>> jax.nn.initializers.truncated_normal()(jax.random.key(0), (2, 3)).shape
    (2, 3)
    """
    def init(key: KeyLike, shape: Sequence[int], dtype: DTypeLike | None = dtype,
             out_sharding: ShardingLike = None) -> Any:
        drawn = random.truncated_normal(key, lower, upper, shape, _dtype(dtype))
        return placed(_scaled(drawn, stddev), out_sharding)

    return init


# -- variance scaling ------------------------------------------------------------------------------


def _fans(shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes
          ) -> tuple[float, float]:
    """How many inputs each output has, and how many outputs each input."""
    if len(shape) <= 1 and in_axis == -2:
        raise ValueError(f"Can't compute input and output sizes of a {len(shape)}-dimensional "
                         "weights tensor with default in_axis. Must be at least 2D or specify "
                         "in_axis explicitly.")

    def size(axes: Axes) -> int:
        return math.prod([
            shape[as_axis("variance_scaling", "in_axis, out_axis, batch_axis", i, len(shape))]
            for i in ((axes,) if isinstance(axes, int) else entries(axes))])

    inputs, outputs, batch = size(in_axis), size(out_axis), size(batch_axis)
    receptive = math.prod(shape) / inputs / outputs / batch if inputs and outputs and batch else 0
    return inputs * receptive, outputs * receptive


def _polar(key: KeyLike, shape: Sequence[int], dtype: DTypeLike, radius: Any) -> Any:
    """Complex numbers with uniform angles and the radius that `radius` gives for uniform u."""
    real = dtypes.to_floating_dtype(dtype)
    radius_key, angle_key = random.split(key)
    u = random.uniform(radius_key, shape, real)
    angle = _scaled(random.uniform(angle_key, shape, real), 2 * np.pi)
    return radius(u).astype(dtype) * jnp.exp(1j * angle.astype(dtype))


def _truncated_radius(u: Array) -> Any:
    """The radius, below 2, of complex normal numbers with variance 1: P(R < r) ~ 1 - exp(-r^2).

    It is computed with complex numbers, whose logarithm is rounded otherwise.
    """
    u = u.astype(dtypes.to_complex_dtype(u.dtype))
    return jnp.sqrt(-jnp.log(1 - (1 - jnp.exp(jnp.asarray(-4, u.dtype))) * u))


# Standard deviations of the standard normal distributions, real and complex, cut off at 2.
_truncated_deviation = 0.87962566103423978
_complex_truncated_deviation = 0.95311164380491208


def _draw(key: KeyLike, shape: Sequence[int], dtype: DTypeLike, variance: ArrayLike,
          distribution: str) -> Any:
    is_complex = dtypes.issubdtype(dtype, np.complexfloating)
    variance = jnp.asarray(variance, dtype)
    if distribution == "normal":
        return scaled_normal(key, shape, dtype, jnp.sqrt(variance))
    if distribution == "uniform":
        if is_complex:
            # Points in a disk, whose variance is 1.
            return _polar(key, shape, dtype, lambda u: jnp.sqrt(2 * u)) * jnp.sqrt(variance)
        return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
    if distribution == "truncated_normal":
        if is_complex:
            deviation = jnp.sqrt(variance) / jnp.asarray(_complex_truncated_deviation, dtype)
            return _polar(key, shape, dtype, _truncated_radius) * deviation
        deviation = jnp.sqrt(variance) / jnp.asarray(_truncated_deviation, dtype)
        return random.truncated_normal(key, -2, 2, shape, dtype) * deviation
    raise ValueError("invalid distribution for variance scaling initializer: "
                     f"{distribution}; it is 'normal', 'uniform' or 'truncated_normal'")


def variance_scaling(scale: Any, mode: str, distribution: str, in_axis: Axes = -2,
                     out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None) -> Initializer:
    """An initializer whose variance is `scale` divided by a number of connections.

    Args:
      scale: positive number.
      mode: "fan_in", "fan_out", "fan_avg" (their mean) or "fan_geo_avg" (their geometric mean).
      distribution: "normal", "truncated_normal" (cut off at two standard deviations) or "uniform".
      in_axis, out_axis: the axes of inputs and outputs; others are the receptive field.
      batch_axis: axes that are neither.
      dtype: of the values; the default float dtype by default.

    Raises:
      ValueError: an unknown mode or distribution, or (when called) a shape without these axes.

    >>> import pyjx as jax
    >>> init = jax.nn.initializers.variance_scaling(1.0, "fan_in", "normal")
    >>> init(jax.random.key(0), (2, 3)).shape
    (2, 3)
    """
    def init(key: KeyLike, shape: Sequence[int], dtype: DTypeLike | None = dtype,
             out_sharding: Any = None) -> Any:
        shape = as_sizes("variance_scaling", "shape", shape)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        if mode == "fan_in":
            denominator = fan_in
        elif mode == "fan_out":
            denominator = fan_out
        elif mode == "fan_avg":
            denominator = (fan_in + fan_out) / 2
        elif mode == "fan_geo_avg":
            denominator = math.sqrt(fan_in * fan_out)
        else:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}; it is "
                             "'fan_in', 'fan_out', 'fan_avg' or 'fan_geo_avg'")
        variance = scale / denominator if denominator else np.inf
        drawn = _draw(key, shape, _dtype(dtype), variance, distribution)
        return placed(drawn, out_sharding)

    return init


def _scaling(name: str, text: str, scale: float, mode: str, distribution: str) -> Any:
    """A variance scaling initializer of given scale, mode and distribution."""

    def make(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (),
             dtype: DTypeLike | None = None) -> Initializer:
        init = variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)
        code = init.__code__  # type: ignore[attr-defined]
        init.__code__ = code.replace(  # type: ignore[attr-defined]
            co_qualname=f"{name}.<locals>.init")  # errors are told by it
        return init

    make.__code__ = make.__code__.replace(co_name=name, co_qualname=name)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""{text}

    Args:
      in_axis, out_axis: the axes of inputs and outputs; others are the receptive field.
      batch_axis: axes that are neither.
      dtype: of the values; the default float dtype by default.

    >>> import pyjx as jax
    >>> jax.nn.initializers.{name}()(jax.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return make


glorot_uniform = xavier_uniform = _scaling(
    "glorot_uniform", "Uniform, variance 2 / (fan_in + fan_out).", 1.0, "fan_avg", "uniform")
glorot_normal = xavier_normal = _scaling(
    "glorot_normal", "Truncated normal, variance 2 / (fan_in + fan_out).", 1.0, "fan_avg",
    "truncated_normal")
lecun_uniform = _scaling("lecun_uniform", "Uniform, variance 1 / fan_in.", 1.0, "fan_in", "uniform")
lecun_normal = _scaling(
    "lecun_normal", "Truncated normal, variance 1 / fan_in.", 1.0, "fan_in", "truncated_normal")
he_uniform = kaiming_uniform = _scaling(
    "he_uniform", "Uniform, variance 2 / fan_in.", 2.0, "fan_in", "uniform")
he_normal = kaiming_normal = _scaling(
    "he_normal", "Truncated normal, variance 2 / fan_in.", 2.0, "fan_in", "truncated_normal")


# -- orthogonal matrices ---------------------------------------------------------------------------


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
              ) -> Initializer:
    """Uniformly distributed orthogonal matrices, times `scale` (Saxe et al. 2013, arXiv:1312.6120).

    Args:
      scale: a factor.
      column_axis: the axis along which columns are counted; the others together are the rows. The
        rows or the columns, whichever there are fewer of, are orthonormal.
      dtype: of the values; the default float dtype by default.

    Raises:
      ValueError: when it is called, if the shape has fewer than two axes.

    >>> import pyjx as jax
    >>> x = jax.nn.initializers.orthogonal()(jax.random.key(0), (2, 3))
    >>> bool(jax.numpy.allclose(x @ x.T, jax.numpy.eye(2), atol=1e-6))
    True
    """
    def init(key: KeyLike, shape: Sequence[int], dtype: DTypeLike | None = dtype,
             out_sharding: ShardingLike = None) -> Any:
        chosen = _dtype(dtype)
        sizes = as_sizes("orthogonal initializer", "shape", shape)
        if len(sizes) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape, got shape "
                             f"{sizes}")
        axis = as_axis("orthogonal initializer", "column_axis", column_axis, len(sizes))
        if not math.prod(sizes):
            # Nothing is factored, so nothing asks for a floating dtype.
            return jnp.zeros(sizes, chosen, out_sharding=out_sharding)
        rest = sizes[:axis] + sizes[axis + 1:]
        matrix = random.orthogonal(key, math.prod(rest), dtype=chosen, m=sizes[axis])
        kernel = jnp.moveaxis(jnp.reshape(matrix, (*rest, sizes[axis])), -1, axis)
        return placed(jnp.array(scale, chosen) * kernel, out_sharding)

    return init


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
                    ) -> Initializer:
    """Kernels of convolutions that are orthogonal matrices in the middle, and zero elsewhere
    (Xiao et al. 2018, arXiv:1806.05393).

    Args:
      scale, column_axis, dtype: as of `orthogonal`, for the matrix of the last two axes.

    Raises:
      ValueError: when it is called, if the shape has not three to five axes, or more inputs than
        outputs.

    >>> import pyjx as jax
    >>> jax.nn.initializers.delta_orthogonal()(jax.random.key(0), (3, 1, 1))[:, 0, 0].tolist()
    [0.0, 1.0, 0.0]
    """
    def init(key: KeyLike, shape: Sequence[int], dtype: DTypeLike | None = dtype,
             out_sharding: ShardingLike = None) -> Any:
        chosen = _dtype(dtype)
        sizes = as_sizes("delta_orthogonal initializer", "shape", shape)
        if len(sizes) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape, got "
                             f"shape {sizes}.")
        if sizes[-1] < sizes[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`: the last axis of the "
                             f"shape is not to be smaller than the one before, got shape {sizes}.")
        matrix = orthogonal(scale, column_axis, chosen)(key, sizes[-2:])
        middle = tuple([(n - 1) // 2 for n in sizes[:-2]])
        return placed(jnp.zeros(sizes, chosen).at[middle].set(matrix), out_sharding)

    return init


__dir__ = directory(__name__, __all__)
