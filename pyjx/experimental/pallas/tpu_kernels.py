"""What kernels for TPUs use: memories, parts of references, operations on registers, and packed
words. Kernels run where they are interpreted, too: copies at once, one program after the other.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.experimental.pallas.kernel_grids import MemoryRef, RefLike
from pyjx.lax.convert import convert_element_type
from pyjx.lax.convolution import conv_general_dilated
from pyjx.lax.convolution_shapes import conv_dimension_numbers
from pyjx.lax.joining import concatenate, slice_in_dim
from pyjx.lax.ref_views import bitcast_of
from pyjx.lax.references import target_of
from pyjx.lax.shapes import bitcast_convert_type, reshape, rev
from pyjx.numpy.manipulation import roll as rolled
from pyjx.numpy.manipulation import transpose
from pyjx.numpy.ufuncs import where

# -- memories --------------------------------------------------------------------------------------


class MemorySpace(enum.Enum):
    """The memories of a TPU. Called with a shape and a dtype, one describes an array in it.

    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> pltpu.VMEM((8, 128), "float32").shape
    (8, 128)
    """

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return self.name

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:
        return MemoryRef(ShapedArray(tuple(shape), dtype), self)


def has_memory_space(ref: object, memory_space: object) -> bool:
    """Whether a reference, or what describes one, lies in a memory."""
    return (ref if hasattr(ref, "memory_space") else get_aval(ref)).memory_space == memory_space


def with_memory_space_constraint(x: Array, memory_space: object) -> Array:
    """`x`, which a compiler is to keep in a memory: as it is where kernels are interpreted."""
    return x


# -- parts of references ---------------------------------------------------------------------------


def load(ref: RefLike, *, mask: ArrayLike | None = None) -> Array:
    """The value of a reference, of which only what `mask` has may be used."""
    return ref[...]  # type: ignore[no-any-return]


def store(ref: RefLike, val: ArrayLike, *, mask: ArrayLike | None = None) -> None:
    """Write a reference, where `mask` says so if it is given."""
    ref[...] = val if mask is None else where(mask, val, ref[...])


def annotate(ref: RefLike, *, no_store: bool = False, no_bank_conflict: bool = False,
             no_hazard: bool = False, no_hazard_no_deps: bool = False) -> RefLike:
    """A reference of which a compiler may assume what the flags say: they are accepted.

    Args:
      ref: the reference, or a part of one.
      no_store, no_bank_conflict, no_hazard, no_hazard_no_deps: what never happens to it.
    """
    target_of("annotate", ref, None)
    return ref


# -- operations on registers -----------------------------------------------------------------------


def roll(x: ArrayLike, shift: Any, axis: int, *, stride: int | None = None,
         stride_axis: int | None = None) -> Array:
    """`x` rolled along an axis.

    Args:
      x: array.
      shift: by how many places, not negative.
      axis: along which axis.
      stride: by how much more for each place along `stride_axis`.
      stride_axis: which axis that is; both or none.
    """
    if (stride is None) != (stride_axis is None):
        raise ValueError("roll: stride and stride_axis are given both or none; got stride="
                         f"{stride} and stride_axis={stride_axis}.")
    if isinstance(shift, int) and shift < 0:
        raise ValueError(f"roll: shift must not be negative, got {shift}. Roll by the size of the "
                         "axis less that.")
    if stride is None or stride_axis is None:
        return rolled(x, shift, axis)  # type: ignore[arg-type]
    count = get_aval(x).shape[stride_axis]
    parts = [rolled(slice_in_dim(x, k, k + 1, axis=stride_axis), shift + k * stride, axis)
             for k in range(count)]
    return concatenate(parts, stride_axis)


def reciprocal(x: Array, *, approx: bool = False, full_range: bool = True) -> Array:
    """1 / x, elementwise.

    Args:
      x: an array of a floating dtype.
      approx: whether fewer bits would do; all are computed.
      full_range: whether it must hold for the largest and the smallest numbers; it does.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> pl.reciprocal(jax.numpy.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return 1 / x  # type: ignore[return-value]


def conv(lhs: Array, rhs: Array, acc: Array | None = None, *, dimension_numbers: Any,
         window_strides: Sequence[int] | None = None,
         padding: str | Sequence[tuple[int, int]] | None = None,
         lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
         window_reversal: Sequence[bool] | None = None, feature_group_count: int = 1,
         batch_group_count: int = 1, precision: Any = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """A convolution in a kernel that is interpreted; for TPUs write it as products of windows.

    Args:
      lhs, rhs, dimension_numbers, lhs_dilation, rhs_dilation, feature_group_count,
        batch_group_count, precision, preferred_element_type: as of
        `jax.lax.conv_general_dilated`.
      acc: what is added to the result.
      window_strides, padding: the same, by default 1 and none.
      window_reversal: along which axes the kernel is reversed.
    """
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    n = lhs.ndim - 2
    if window_reversal is not None:
        rhs = rev(rhs, [axis for axis, reverse in zip(
            numbers.rhs_spec[2:], window_reversal, strict=True) if reverse])
    out = conv_general_dilated(
        lhs, rhs, window_strides or (1,) * n, [(0, 0)] * n if padding is None else padding,
        lhs_dilation, rhs_dilation, numbers, feature_group_count, batch_group_count, precision,
        preferred_element_type)
    return out if acc is None else acc + out  # type: ignore[no-any-return,operator]


def bitcast(x: ArrayLike, ty: DTypeLike, dim: int = -2) -> Array:
    """The bits of `x` as another dtype, of which so many elements along an axis are one of the
    wider dtype.

    Args:
      x: array of two axes at least.
      ty: the dtype.
      dim: the axis, the last but one.
    """
    aval = get_aval(x)
    if dim % aval.ndim != aval.ndim - 2:
        raise NotImplementedError(f"bitcast: elements lie below each other along the last axis but "
                                  f"one, dim=-2; got dim={dim}.")
    return bitcast_of(aval.shape, aval.dtype, ty).read(x)  # type: ignore[no-any-return]


# -- interpretation --------------------------------------------------------------------------------


@contextmanager
def force_tpu_interpret_mode(params: object = None) -> Iterator[None]:
    """A context in which all kernels are interpreted.

    Args:
      params: how, a `InterpretParams`.
    """
    with configuration.interpret_kernels(True), configuration.interpreter(params or True):
        yield


def set_tpu_interpret_mode(params: object = True) -> None:
    """Interpret all kernels from now on, or with None no more.

    Args:
      params: how, a `InterpretParams`; None for as the calls say.
    """
    configuration.interpret_kernels.update(params is not None)
    configuration.interpreter.set_global(params or True)


def reset_tpu_interpret_mode_state() -> None:
    """Forget what the simulated memories hold: nothing stays here."""


# -- packed words ----------------------------------------------------------------------------------


def _words(dtype: Any) -> np.dtype[Any]:
    """The unsigned integers with as many bits as a dtype."""
    if dtypes.itemsize_bits(dtype) not in (8, 16):
        raise NotImplementedError(f"Words of 32 bits hold dtypes of 8 or 16 bits; got {dtype}.")
    return np.dtype(f"uint{dtypes.itemsize_bits(dtype)}")


def pack_elementwise(xs: Sequence[Array], *, packed_dtype: DTypeLike) -> Array:
    """Arrays of one shape with their elements beside each other in words of 32 bits, the first
    array in the lowest bits.

    Args:
      xs: float32 for bfloat16, or integers; as many as a word holds.
      packed_dtype: what elements become.

    >>> import pyjx.numpy as jnp
    >>> low, high = jnp.array([1.0]), jnp.array([-2.0])
    >>> words = pack_elementwise([low, high], packed_dtype=jnp.bfloat16)
    >>> hex(int(words[0]))
    '0xc0003f80'
    """
    packed = dtypes.dtype(packed_dtype)
    small = _words(packed)
    factor = 4 // small.itemsize
    if len(xs) != factor:
        raise ValueError(f"The number of sources must match the packing factor ({factor}), got "
                         f"{len(xs)}")
    source = xs[0].dtype
    if not (source == np.float32 and packed == dtypes.bfloat16) and not (
            source.kind in "iu" and packed.kind in "iu"):
        raise ValueError(f"Only f32 -> bf16 and int -> int are supported. Got {source} and "
                         f"{packed}")
    bits = [bitcast_convert_type(convert_element_type(x, packed), small) for x in xs]
    parts: list[Any] = [convert_element_type(x, np.uint32) for x in bits]
    word = parts[0]
    for place, part in enumerate(parts[1:], 1):
        word = word | (part << np.uint32(8 * small.itemsize * place))
    return word  # type: ignore[no-any-return]


def unpack_elementwise(x: Array, *, index: int, packed_dtype: DTypeLike,
                       unpacked_dtype: DTypeLike) -> Array:
    """One of the arrays that `pack_elementwise` was given.

    Args:
      x: words of 32 bits.
      index: which array.
      packed_dtype: what elements are in the words.
      unpacked_dtype: what they become.

    >>> import pyjx.numpy as jnp
    >>> words = pack_elementwise([jnp.array([k]) for k in (1, -2, 3, -4)], packed_dtype="int8")
    >>> unpack_elementwise(words, index=3, packed_dtype="int8", unpacked_dtype="int32").tolist()
    [-4]
    """
    packed = dtypes.dtype(packed_dtype)
    small = _words(packed)
    factor = 4 // small.itemsize
    if not 0 <= index < factor:
        raise ValueError(f"Index {index} is out of bounds for packing factor {factor}")
    word: Any = bitcast_convert_type(x, np.uint32)
    part = convert_element_type(word >> np.uint32(8 * small.itemsize * index), small)
    return convert_element_type(bitcast_convert_type(part, packed), unpacked_dtype)


def split_bits(x: Array, bitwidths: Sequence[int]) -> tuple[Array, ...]:
    """The bits of 8-bit integers as integers of fewer bits, from the lowest on.

    Args:
      x: int8 or uint8.
      bitwidths: how many bits each result has, 2 or 4; together at most 8.

    Returns:
      An array of int2 or int4 for each.

    >>> import pyjx.numpy as jnp
    >>> [part.astype("int32").tolist() for part in split_bits(jnp.array([0x2b], "int8"), (4, 2))]
    [[-5], [-2]]
    """
    if x.dtype not in (np.int8, np.uint8):
        raise ValueError(f"Expected 8-bit array, got {x.dtype}")
    for width in bitwidths:
        if width not in (2, 4):
            raise ValueError(f"Unsupported bitwidth: {width}. Only 2 and 4 are supported.")
    if sum(bitwidths) > 8:
        raise ValueError(f"Total bitwidth {sum(bitwidths)} exceeds 8 bits.")
    bits: Any = bitcast_convert_type(x, np.uint8)
    places = [sum(bitwidths[:i]) for i in range(len(bitwidths))]
    parts = [(bits >> np.uint8(at)) & np.uint8((1 << width) - 1)
             for at, width in zip(places, bitwidths, strict=True)]
    return tuple([bitcast_convert_type(convert_element_type(part, f"uint{width}"), f"int{width}")
                  for part, width in zip(parts, bitwidths, strict=True)])


def join_bits(*, two_bits: Array | None = None, four_bits: Array | None = None) -> Array:
    """Integers of 4 bits, and those of 2 bits above them, as int8.

    Args:
      two_bits, four_bits: integers of so many bits, of one shape; one may be left out.

    >>> import pyjx.numpy as jnp
    >>> low, high = jnp.array([-5], "int4"), jnp.array([-2], "int2")
    >>> hex(int(join_bits(four_bits=low, two_bits=high)[0]))
    '0x2b'
    """
    parts = [(x, width) for x, width in ((four_bits, 4), (two_bits, 2)) if x is not None]
    if not parts:
        raise ValueError("At least one bit segment must be specified.")
    word: Any = np.uint8(0)
    at = 0
    for x, width in parts:
        if x.dtype.name not in (f"int{width}", f"uint{width}"):
            raise ValueError(f"join_bits: integers of {width} bits are expected, got {x.dtype}.")
        bits: Any = convert_element_type(bitcast_convert_type(x, f"uint{width}"), np.uint8)
        word = word | (bits << np.uint8(at))
        at += width
    return bitcast_convert_type(word, np.int8)


def pack_fp6(fp6_in_8b: Array) -> tuple[Array, Array]:
    """Floats of 6 bits, each in the low bits of a byte, as int2 of their high bits and int4 of
    their low ones.

    Args:
      fp6_in_8b: int8 or uint8.
    """
    four, two = split_bits(fp6_in_8b, (4, 2))
    return two, four


def unpack_fp6(two_bits: Array, four_bits: Array) -> Array:
    """What `pack_fp6` was given, as int8.

    Args:
      two_bits, four_bits: its results.
    """
    return join_bits(two_bits=two_bits, four_bits=four_bits)


def stochastic_round(x: Array, random_bits: Array, *, target_dtype: DTypeLike) -> Array:
    """Floats of fewer bits: with random bits the one above as often as it is near.

    Args:
      x: float32.
      random_bits: uint32, of which the lower half is used.
      target_dtype: bfloat16.

    >>> import pyjx.numpy as jnp
    >>> x = jnp.full(2, 1.001)
    >>> stochastic_round(x, jnp.array([0, 0xFFFF], "uint32"), target_dtype=jnp.bfloat16).tolist()
    [1.0, 1.0078125]
    """
    if random_bits.dtype != np.uint32:
        raise ValueError("The dtype of `random_bits` must be uint32 for stochastic_round, but got "
                         f"{random_bits.dtype}")
    if x.dtype != np.float32 or dtypes.dtype(target_dtype) != dtypes.bfloat16:
        raise NotImplementedError(f"stochastic_round: from {x.dtype} to {target_dtype} is not "
                                  "there yet. It rounds float32 to bfloat16.")
    bits: Any = bitcast_convert_type(x, np.uint32)
    finite = (bits & np.uint32(0x7F800000)) != np.uint32(0x7F800000)
    low = convert_element_type(finite, np.uint32) * (random_bits & np.uint32(0xFFFF))
    kept = (bits + low) & np.uint32(0xFFFF0000)
    return convert_element_type(bitcast_convert_type(kept, np.float32), target_dtype)


def touch(ref: object) -> None:
    """Say that a kernel uses a reference, so that a compiler keeps what it is of."""


def einshape(equation: str, x: ArrayLike, assert_is_tile_preserving: bool = False, **sizes: int
             ) -> Array:
    """An array with axes split, permuted and joined.

    Args:
      equation: the names of axes before and after `->`, those of one axis in parentheses.
      x: array.
      assert_is_tile_preserving: accepted.
      sizes: sizes of axes by name, where they do not follow.

    >>> import pyjx.numpy as jnp
    >>> einshape("a(bc)->b(ca)", jnp.arange(8).reshape(2, 4), b=2).tolist()
    [[0, 4, 1, 5], [2, 6, 3, 7]]
    """
    before, _, after = equation.replace(" ", "").partition("->")
    groups, shape = _axes(before), get_aval(x).shape
    if len(groups) != len(shape):
        raise ValueError(f"Equation LHS has {len(groups)} groups but input has {len(shape)} dims. "
                         f"LHS: {groups}, Input shape: {shape}")
    known = dict(sizes)
    for names, size in zip(groups, shape, strict=True):
        unknown = [name for name in names if name not in known]
        if len(unknown) > 1:
            raise ValueError(f"Ambiguous split for {names} with size {size}. Unknowns: {unknown}. "
                             "Provide sizes via kwargs.")
        given = prod([known[name] for name in names if name in known])
        if size % max(given, 1) or (not unknown and given != size):
            raise ValueError(f"Cannot split size {size} with known sizes {given}")
        known.update(dict.fromkeys(unknown, size // given))
    order = [name for names in groups for name in names]
    wanted = _axes(after)
    flat = [name for names in wanted for name in names]
    for name in flat:
        if name not in order:
            raise ValueError(f"Unknown dimension {name} in RHS")
    if sorted(flat) != sorted(order):
        raise ValueError(f"einshape: {equation!r} has other axes behind the arrow than before it. "
                         "Name each once on both sides.")
    split = reshape(x, [known[name] for name in order])
    turned = transpose(split, [order.index(name) for name in flat])
    return reshape(turned, [prod([known[name] for name in names]) for names in wanted])


def _axes(side: str) -> list[list[str]]:
    """The names of each axis."""
    found: list[list[str]] = []
    joined = False
    for letter in side:
        if letter in "()":
            joined = letter == "("
            if joined:
                found.append([])
        elif joined:
            found[-1].append(letter)
        else:
            found.append([letter])
    return found
