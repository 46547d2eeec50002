"""Primitives that make random bits: threefry, and the generators of XLA."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import unknown
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.dtypes import DType
from pyjx.core.explicit import Entries, broadcast_entries
from pyjx.core.integers import as_sizes
from pyjx.core.layouts import ShardingLike
from pyjx.core.primitive import Primitive, register
from pyjx.engine.axes import broadcast_in_dim, moveaxis
from pyjx.engine.rules import jvp_zero
from pyjx.engine.types import BatchDims, Dims, Value, Values
from pyjx.lax.common import nary_shape, operand
from pyjx.lax.elementwise import ANY, elementwise
from pyjx.runtime.resharding import placed

_UINT32 = np.dtype(np.uint32)

# -- block ciphers of counters ---------------------------------------------------------------------


def cipher(name: str, operands: int, results: int, decomposition: Any = None) -> Primitive:
    """A primitive that maps uint32 arrays of one shape, or scalars beside them, elementwise: words
    of a key, then words of a counter, to words of the same number."""
    def shape_rule(*avals: ShapedArray) -> list[ShapedArray]:
        if len(avals) != operands or any(a.dtype != _UINT32 for a in avals):
            got = ", ".join([str(a) for a in avals])
            raise TypeError(f"Arguments to {name} must have uint32 type, got ({got})")
        return [ShapedArray(nary_shape(name, avals), _UINT32)] * results

    def batch(xs: Any, dims: Dims) -> tuple[Values, Dims]:
        pairs = list(zip(xs, dims, strict=True))
        size = next(get_aval(x).shape[d] for x, d in pairs if d is not None)
        shape = max([_example_shape(x, d) for x, d in pairs], key=len)
        return primitive.bind(*[_spread(x, d, size, shape) for x, d in pairs]), [0] * results

    def sharding_rule(outs: list[ShapedArray], *avals: ShapedArray) -> list[Entries]:
        return [broadcast_entries(name, [a for a in avals if a.shape])] * results

    primitive = register(Primitive(name, shape_rule=shape_rule, batch=batch, multiple_results=True,
                                   sharding_rule=sharding_rule, decomposition=decomposition,
                                   length=100))
    return primitive.define(jvp=jvp_zero(primitive))


def _example_shape(x: Value, d: int | None) -> tuple[int, ...]:
    shape = get_aval(x).shape
    return shape if d is None else (*shape[:d], *shape[d + 1:])


def _spread(x: Array, d: int | None, size: int, shape: tuple[int, ...]) -> Array:
    """`x` for each of `size` examples of the given shape, batch axis first."""
    if d is None:
        if not get_aval(x).shape:
            return x
        return broadcast_in_dim(x, (size, *shape), range(1, len(shape) + 1))
    x = moveaxis(x, d, 0)
    return broadcast_in_dim(x, (size, *shape), range(get_aval(x).ndim))


threefry2x32_p = cipher("threefry2x32", 4, 2)

# Words that are made in a loop of their own on CPU. In one loop with the cipher what makes numbers
# of them is not vectorized, and log and the inverse of erf round otherwise in the scalar form. A
# key is known before the cipher begins: XLA would put what made it into each place where it is
# read, so that the rounds of a chain of keys grow exponentially.
bits_apart_p = elementwise("bits_apart", ANY, moves=True, decomposition=lambda bits: bits)
bits_apart_p.define(jvp=jvp_zero(bits_apart_p))


# -- rng_bit_generator -----------------------------------------------------------------------------


class RandomAlgorithm(IntEnum):
    """The algorithms of XLA's generator; the default one depends on the platform."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


_UINTS = tuple([np.dtype(f"uint{n}") for n in (8, 16, 32, 64)])


def _rng_bits_shape(key: ShapedArray, *, shape: tuple[int, ...], dtype: DType, algorithm: Any,
                    out_sharding: ShardingLike = None) -> list[ShapedArray]:
    if (key.shape, key.dtype) not in (((4,), _UINT32), ((2,), np.dtype(np.uint64))):
        raise TypeError("rng_bit_generator requires a key of type uint32[4] or uint64[2], got "
                        f"{key.str_short()}")
    if np.dtype(dtype) not in _UINTS:
        raise TypeError(f"rng_bit_generator: unsupported dtype {np.dtype(dtype)}")
    return [key, ShapedArray(shape, dtype)]


rng_bit_generator_p = register(
    Primitive("rng_bit_generator", shape_rule=_rng_bits_shape, multiple_results=True))


def _rng_bits_batch(operands: Values, dims: BatchDims, *, shape: tuple[int, ...], **params: Any
                    ) -> tuple[Values, Dims]:
    """One generator, that of the first key, makes the bits of all examples."""
    keys = moveaxis(operands[0], dims[0], 0)
    size, width = get_aval(keys).shape
    if not size:
        raise IndexError("rng_bit_generator: index is out of bounds for axis 0 with size 0: the "
                         "bits of a batch are made of its first key. Call it with one or more.")
    first = lax.reshape(lax.slice(keys, (0, 0), (1, width)), (width,))
    new, bits = rng_bit_generator_p.bind(first, shape=(size, *shape), **params)
    rest = lax.slice(keys, (1, 0), (size, width))
    return [lax.concatenate([lax.reshape(new, (1, width)), rest], 0), bits], [0, 0]


rng_bit_generator_p.define(batch=_rng_bits_batch, jvp=jvp_zero(rng_bit_generator_p))


def rng_bit_generator(key: ArrayLike, shape: Sequence[int], dtype: DTypeLike = np.uint32,
                      algorithm: Any = RandomAlgorithm.RNG_DEFAULT, *,
                      out_sharding: ShardingLike = None) -> tuple[Any, Any]:
    """Random bits from XLA's generator, and the key to make the next ones with.

    The bits depend on the platform and on the version of its compiler.

    Args:
      key: uint32[4] or uint64[2].
      shape: of the bits.
      dtype: an unsigned integer dtype of 8 to 64 bits.
      algorithm: a `RandomAlgorithm`.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      TypeError: the key's type or the dtype is another one.

    >>> import pyjx as jax
    >>> key, bits = jax.lax.rng_bit_generator(jax.numpy.zeros(4, 'uint32'), (2, 3))
    >>> bits.shape, bits.dtype
    ((2, 3), dtype('uint32'))
    """
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "rng_bit_generator")
    try:
        algorithm = RandomAlgorithm(algorithm)
    except ValueError as error:
        raise ValueError(f"rng_bit_generator: algorithm: {error}") from None
    out = rng_bit_generator_p.bind(operand("rng_bit_generator", key),
                                   shape=as_sizes("rng_bit_generator", "shape", shape), dtype=dtype,
                                   algorithm=algorithm, out_sharding=None)
    return out[0], placed(out[1], out_sharding)


# -- rng_uniform -----------------------------------------------------------------------------------


def _rng_uniform_shape(a: ShapedArray, b: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    if a.dtype != b.dtype:
        raise ValueError("Arguments to rng_uniform must have identical dtypes, got "
                         f"{dtypes.name(a.dtype)} and {dtypes.name(b.dtype)}.")
    if a.shape or b.shape:
        raise ValueError("Arguments to rng_uniform must be scalars; got shapes "
                         f"{a.shape} and {b.shape}.")
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        raise TypeError(f"rng_uniform does not accept dtype {dtypes.name(a.dtype)}. Accepted "
                        "dtypes are subtypes of integer, floating, bool.")
    return ShapedArray(shape, a.dtype, a.weak_type and b.weak_type)


# Of unknown cost, so that nobody draws twice to spare memory: the numbers would be others.
rng_uniform_p = register(Primitive("rng_uniform", shape_rule=_rng_uniform_shape,
                                   arithmetic=unknown))


def _rng_uniform_batch(operands: Values, dims: Dims, *, shape: tuple[int, ...]
                       ) -> tuple[Value, int | None]:
    """Numbers from [0, 1) for all examples, each brought to the bounds of its own."""
    size = next(get_aval(x).shape[0] for x, d in zip(operands, dims, strict=True) if d is not None)
    full = (size, *shape)
    low, high = [lax.broadcast_in_dim(x, full, () if d is None else (0,))
                 for x, d in zip(operands, dims, strict=True)]
    dtype = get_aval(low).dtype
    if dtypes.issubdtype(dtype, np.floating):
        unit = rng_uniform_p.bind(np.zeros((), dtype)[()], np.ones((), dtype)[()], shape=full)
        return lax.add(low, lax.mul(unit, lax.sub(high, low))), 0
    top = dtypes.iinfo(dtype).max
    bits = rng_uniform_p.bind(np.zeros((), dtype)[()], np.asarray(top, dtype)[()], shape=full)
    return lax.add(low, lax.rem(bits, lax.sub(high, low))), 0


rng_uniform_p.define(batch=_rng_uniform_batch, jvp=jvp_zero(rng_uniform_p))


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Any:
    """Uniform numbers from [a, b), by a generator with a hidden state: a run is not repeatable.

    Args:
      a, b: scalars of one dtype.
      shape: of the result.

    Raises:
      TypeError: the bounds are complex, or `shape` is no shape.
      ValueError: the bounds differ in dtype, or one is no scalar.

    >>> import pyjx as jax
    >>> jax.lax.rng_uniform(0., 1., (3,)).shape
    (3,)
    """
    return rng_uniform_p.bind(operand("rng_uniform", a), operand("rng_uniform", b, 1),
                              shape=as_sizes("rng_uniform", "shape", shape))
