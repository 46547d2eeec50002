"""Generators: how key data is made from a seed, split, and turned into bits.

A generator is four functions on the data of one key. Those of threefry are counter-based: bits and
new keys are the images of the counters 0, 1, 2, ... under a cipher that the key selects. They
agree bit for bit with JAX's, in both modes of the flag `jax_threefry_partitionable`.

The ciphers of philox2x32, philox4x32 and threefry4x32 are those of Salmon, Moraes, Dror and Shaw,
"Parallel random numbers: as easy as 1, 2, 3" (2011), with 10 rounds of Philox and 20 of Threefry.
Element i of the bits and of the new keys is the image of the counter i; bits are the exclusive or
of its words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.named_axes import Axis
from pyjx.core.records import Alike, Shared
from pyjx.core.scalars import scalar_constant
from pyjx.engine.batching import batch_flat, match_axis
from pyjx.engine.types import Value
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.random_bits import bits_apart_p, cipher, rng_bit_generator_p, threefry2x32_p

_UINT32 = np.dtype(np.uint32)


class PRNGImpl:
    """A generator.

    Attributes:
      key_shape: shape of the uint32 array that is a key.
      seed: `seed -> key`, from an integer scalar.
      split: `(key, shape) -> keys`, of shape `(*shape, *key_shape)`.
      random_bits: `(key, bit_width, shape) -> bits`, unsigned integers of 8 to 64 bits.
      fused_bits: the same bits, for what is the same numbers in one loop with them.
      fold_in: `(key, data) -> key`, from a uint32 scalar.
      name: what `impl=` arguments say.
      tag: the short name in `key<tag>`.
    """

    __slots__ = ("fold_in", "fused_bits", "key_shape", "name", "random_bits", "seed", "split",
                 "tag")

    def __init__(self, key_shape: tuple[int, ...], seed: Callable[[Any], Any],
                 split: Callable[[Any, tuple[int, ...]], Any],
                 random_bits: Callable[[Any, int, tuple[int, ...]], Any],
                 fold_in: Callable[[Any, Any], Any], name: str = "<unnamed>", tag: str = "?", *,
                 fused_bits: Callable[[Any, int, tuple[int, ...]], Any] | None = None) -> None:
        self.key_shape = tuple(key_shape)
        self.seed = seed
        self.split = split
        self.random_bits = random_bits
        self.fused_bits = fused_bits or random_bits
        self.fold_in = fold_in
        self.name = name
        self.tag = tag

    def __str__(self) -> str:
        return self.tag

    def __repr__(self) -> str:
        return f"PRNGImpl(key_shape={self.key_shape}, name={self.name!r}, tag={self.tag!r})"

    def __reduce__(self) -> Any:
        return implementation, (self.name,)


class PRNGSpec(Alike, Shared):
    """What `impl=` arguments take for a generator that no name stands for.

    >>> import pyjx as jax
    >>> spec = PRNGSpec(PRNGImpl((2,), *[lambda *_: None] * 4, name="mine", tag="m"))
    >>> spec, str(spec), spec == PRNGSpec(spec._impl)
    (PRNGSpec('mine'), 'm', True)
    """

    __slots__ = ("_impl",)

    def __init__(self, impl: PRNGImpl) -> None:
        self._impl = impl

    def __str__(self) -> str:
        return str(self._impl)

    def __repr__(self) -> str:
        return f"PRNGSpec({self._impl.name!r})"


implementations: dict[str, PRNGImpl] = {}


def register(impl: PRNGImpl) -> PRNGImpl:
    """Make a generator known by its name.

    Raises:
      ValueError: the name is taken.
    """
    if impl.name in implementations:
        raise ValueError(f'PRNG with name {impl.name} already registered: {impl}')
    implementations[impl.name] = impl
    return impl


def implementation(name: str) -> PRNGImpl:
    """The generator with this name.

    Raises:
      ValueError: there is none.
    """
    try:
        return implementations[name]
    except KeyError:
        names = ", ".join([f'"{n}"' for n in implementations])
        raise ValueError(f'unrecognized PRNG implementation "{name}". Did you mean one of: '
                         f"{names}?") from None


def over_batch(ndim: int, fun: Callable[..., Any], *args: Any) -> Any:
    """`fun`, which takes single values, over the first `ndim` axes of all arguments."""
    return over_axes([get_aval(x).shape[:ndim] for x in args], fun, *args)


def over_axes(shapes: Sequence[tuple[int, ...]], fun: Callable[..., Any], *args: Any) -> Any:
    """`fun`, which takes single values, over the first axes of its arguments, which have `shapes`.

    An argument without such axes, or of size 1 along one, is one value for all along it.
    """
    full = broadcast_shapes(*shapes)
    if not full:
        return fun(*args)
    dims = [0 if shape and shape[0] == full[0] else None for shape in shapes]
    args = tuple([lax.squeeze(x, (0,)) if shape and dim is None else x
                  for x, shape, dim in zip(args, shapes, dims, strict=True)])
    inner = [shape[1:] for shape in shapes]

    def rest(*examples: Any) -> list[Any]:
        return [over_axes(inner, fun, *examples)]

    (out,), (dim,) = batch_flat(rest, args, dims, Axis(None, full[0]))
    return match_axis(out, dim, 0, full[0])


# -- threefry2x32 ----------------------------------------------------------------------------------


def word(key: ArrayLike, i: int) -> Any:
    """Element i of a key, as a scalar."""
    return lax.reshape(lax.slice(key, (i,), (i + 1,)), ())


def _pair(x: Value, y: Value) -> Array:
    """Two arrays, stacked along a new last axis."""
    shape = (*get_aval(x).shape, 1)
    return lax.concatenate([lax.reshape(x, shape), lax.reshape(y, shape)], len(shape) - 1)


def _threefry(key: Value, x0: Value, x1: Value) -> list[Value]:
    key = bits_apart_p.bind(key)
    return threefry2x32_p.bind(word(key, 0), word(key, 1), x0, x1)  # type: ignore[no-any-return]


def to_uint32(x: ArrayLike) -> Any:
    return lax.convert_element_type(x, _UINT32)


def threefry_seed(seed: ArrayLike) -> Any:
    """The 64 bits of a seed, the higher half first."""
    if get_aval(seed).dtype.itemsize == 8:
        shift = scalar_constant(32, get_aval(seed).dtype)
        high = to_uint32(lax.shift_right_logical(seed, shift))
    else:
        high = lax.broadcast(np.uint32(0), ())
    return _pair(high, to_uint32(seed))


def threefry_fold_in(key: ArrayLike, data: ArrayLike) -> Any:
    return _pair(*_threefry(key, np.uint32(0), data))


def counters(shape: Sequence[int]) -> tuple[Any, Any]:
    """The high and low 32 bits of 0, 1, 2, ... as arrays of the given shape, row by row."""
    size = math.prod(shape)
    if size <= 2**32:
        return np.uint32(0), lax.reshape(lax.iota(_UINT32, size), shape)
    high = low = lax.broadcast(np.uint32(0), shape)
    for axis in range(len(shape)):
        stride = math.prod(shape[axis + 1:])
        position = lax.broadcasted_iota(_UINT32, shape, axis)
        more_low = lax.mul(position, np.uint32(stride % 2**32))
        more = lax.add(lax.mulhi(position, lax.full_like(position, stride % 2**32)),
                       lax.mul(position, np.uint32(stride // 2**32)))
        low = lax.add(low, more_low)
        carry = to_uint32(lax.lt(low, more_low))
        high = lax.add(lax.add(high, more), carry)
    return high, low


# What is done to each of the words that the cipher makes.
EachWord = Callable[[Value], Value]


def _as_it_is(word: Any) -> Any:
    return word


def _hash_flat(key: Value, count: int, each_word: EachWord = _as_it_is) -> Array:
    """`count` words from the counters 0, 1, ..., of which the i-th is paired with the one half
    their number after it."""
    half = (count + 1) // 2
    numbers = lax.iota(_UINT32, count)
    if count % 2:
        numbers = lax.concatenate([numbers, lax.full((1,), 0, _UINT32)], 0)
    first, second = lax.slice(numbers, (0,), (half,)), lax.slice(numbers, (half,), (2 * half,))
    bits = lax.concatenate([each_word(w) for w in _threefry(key, first, second)], 0)
    return lax.slice(bits, (0,), (count,)) if count % 2 else bits


def threefry_split(key: ArrayLike, shape: tuple[int, ...]) -> Any:
    if configuration.threefry_partitionable.value:
        return _pair(*_threefry(key, *counters(shape)))
    return lax.reshape(_hash_flat(key, 2 * math.prod(shape)), (*shape, 2))


def _unsigned(bit_width: int) -> np.dtype[Any]:
    return np.dtype(f"uint{bit_width}")


def wide(high: ArrayLike, low: ArrayLike) -> Any:
    """64-bit integers from their halves."""
    uint64 = np.dtype(np.uint64)
    high, low = [lax.convert_element_type_p.bind(x, new_dtype=uint64, weak_type=False,
                                                 sharding=None) for x in (high, low)]
    return lax.bitwise_or(lax.shift_left(high, np.uint64(32)), low)


def threefry_random_bits(key: ArrayLike, bit_width: int, shape: tuple[int, ...]) -> Any:
    """Bits of words that are made apart from what is computed of them, whose last bits depend on
    it: on how many arrays the loop reads, too."""
    return _threefry_bits(key, bit_width, shape, bits_apart_p.bind)


def _threefry_fused_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Array:
    return _threefry_bits(key, bit_width, shape, _as_it_is)


def _threefry_bits(key: Value, bit_width: int, shape: tuple[int, ...],
                   each_word: EachWord) -> Array:
    """`each_word` is done to each array of words that is drawn."""
    if not configuration.threefry_partitionable.value:
        return _bits_in_sequence(key, bit_width, shape, each_word)
    high, low = _threefry(key, *counters(shape))
    if bit_width == 64:
        return wide(each_word(high), each_word(low))
    bits: Any = each_word(lax.bitwise_xor(high, low))
    return bits if bit_width == 32 else lax.convert_element_type(bits, _unsigned(bit_width))


def _bits_in_sequence(key: Value, bit_width: int, shape: tuple[int, ...],
                      each_word: EachWord) -> Array:
    """The bits when `jax_threefry_partitionable` is off; `each_word` is done to both halves."""
    size = math.prod(shape)
    words = -(-bit_width * size // 32)
    bits = _hash_long(key, words, each_word)
    if bit_width == 64:
        high, low = lax.slice(bits, (0,), (size,)), lax.slice(bits, (size,), (2 * size,))
        bits = wide(high, low)
    elif bit_width < 32:
        parts = 32 // bit_width
        pieces = [lax.shift_right_logical(bits, np.uint32(bit_width * i)) for i in range(parts)]
        column = [lax.reshape(lax.convert_element_type(p, _unsigned(bit_width)), (words, 1))
                  for p in pieces]
        bits = lax.slice(lax.reshape(lax.concatenate(column, 1), (words * parts,)), (0,), (size,))
    return lax.reshape(bits, shape)


def _hash_long(key: Value, words: int, each_word: EachWord) -> Array:
    """`_hash_flat`, in blocks that 32-bit counters can number."""
    block = 2**32 - 1
    blocks, rest = divmod(words, block)
    if not blocks:
        return _hash_flat(key, words, each_word)
    keys = threefry_split(key, (blocks + 1,))
    parts = [_hash_flat(lax.reshape(lax.slice(keys, (i, 0), (i + 1, 2)), (2,)),
                        block if i < blocks else rest, each_word) for i in range(blocks + 1)]
    return lax.concatenate(parts, 0)


threefry2x32 = register(PRNGImpl((2,), threefry_seed, threefry_split, threefry_random_bits,
                                 threefry_fold_in, "threefry2x32", "fry",
                                 fused_bits=_threefry_fused_bits))


# -- rbg and unsafe_rbg: XLA's generator, whose bits depend on the platform ------------------------


def _generate(key: Value, shape: tuple[int, ...], bit_width: int = 32) -> Array:
    return rng_bit_generator_p.bind(
        key, shape=tuple(shape), dtype=_unsigned(bit_width),
        algorithm=lax.RandomAlgorithm.RNG_DEFAULT, out_sharding=None,
    )[1]


def _rbg_seed(seed: ArrayLike) -> Any:
    half = threefry_seed(seed)
    return lax.concatenate([half, half], 0)


def _rbg_split(key: Value, shape: tuple[int, ...]) -> Array:
    halves = over_batch(1, lambda k: threefry_split(k, shape), lax.reshape(key, (2, 2)))
    n = len(shape)
    halves = lax.transpose(halves, (*range(1, n + 1), 0, n + 1))
    return lax.reshape(halves, (*shape, 4))


def _rbg_fold_in(key: Value, data: Value) -> Array:
    halves = over_batch(1, lambda k: threefry_fold_in(k, data), lax.reshape(key, (2, 2)))
    return lax.reshape(halves, (4,))


def _rbg_random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Array:
    return _generate(key, shape, bit_width)


rbg = register(PRNGImpl((4,), _rbg_seed, _rbg_split, _rbg_random_bits, _rbg_fold_in, "rbg", "rbg"))


def _unsafe_rbg_split(key: Value, shape: tuple[int, ...]) -> Array:
    count = math.prod(shape)
    keys = lax.slice(_generate(key, (10 * count, 4)), (0, 0), (10 * count, 4), (10, 1))
    return lax.reshape(keys, (*shape, 4))


def _unsafe_rbg_fold_in(key: Value, data: Value) -> Array:
    bits = lax.slice(_generate(_rbg_seed(data), (10, 4)), (9, 0), (10, 4))
    return lax.bitwise_xor(key, lax.reshape(bits, (4,)))


unsafe_rbg = register(PRNGImpl((4,), _rbg_seed, _unsafe_rbg_split, _rbg_random_bits,
                               _unsafe_rbg_fold_in, "unsafe_rbg", "urbg"))


_ZERO = np.uint32(0)


def _add(x: Value, y: Value) -> Array:
    return lax.add(*_alike(x, y))


def _xor(*xs: Value) -> Any:
    return reduce(lambda x, y: lax.bitwise_xor(*_alike(x, y)), xs)


def _alike(x: Value, y: Value) -> tuple[Value, Value]:
    """Two arrays, a scalar stretched to the other's shape."""
    x_shape, y_shape = get_aval(x).shape, get_aval(y).shape
    if x_shape != y_shape and not isinstance(x, np.generic) and not isinstance(y, np.generic):
        if x_shape:
            y = lax.broadcast(y, x_shape)
        else:
            x = lax.broadcast(x, y_shape)
    return x, y


def _product(x: Value, factor: int) -> tuple[Value, Value]:
    """The high and the low word of x * factor."""
    if isinstance(x, np.generic):
        x = lax.broadcast(x, ())
    return lax.mulhi(x, lax.full_like(x, factor)), lax.mul(x, np.uint32(factor))


def _philox2x32(k: Value, x0: Value, x1: Value) -> tuple[Value, Value]:
    for _ in range(10):
        high, low = _product(x0, 0xD256D193)
        x0, x1 = _xor(high, k, x1), low
        k = _add(k, np.uint32(0x9E3779B9))
    return x0, x1


def _philox4x32(k0: Any, k1: Any, x0: ArrayLike, x1: ArrayLike, x2: ArrayLike, x3: Any
               ) -> tuple[Any, ...]:
    for _ in range(10):
        high0, low0 = _product(x0, 0xD2511F53)
        high1, low1 = _product(x2, 0xCD9E8D57)
        x0, x1, x2, x3 = _xor(high1, x1, k0), low1, _xor(high0, x3, k1), low0
        k0, k1 = _add(k0, np.uint32(0x9E3779B9)), _add(k1, np.uint32(0xBB67AE85))
    return x0, x1, x2, x3


_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


def _rotate(x: Value, r: int) -> Array:
    return lax.bitwise_or(lax.shift_left(x, np.uint32(r)),
                          lax.shift_right_logical(x, np.uint32(32 - r)))


def _threefry4x32(*words: Value) -> list[Any]:
    key = [*words[:4], _xor(np.uint32(0x1BD11BDA), *words[:4])]
    x = [_add(a, k) for a, k in zip(words[4:], key, strict=False)]
    shape = max([get_aval(a).shape for a in x], key=len)
    x = [a if get_aval(a).shape == shape else lax.broadcast(a, shape) for a in x]
    for i in range(20):
        for a, b, r in zip((0, 2), (1, 3) if i % 2 == 0 else (3, 1), _ROTATIONS[i % 8],
                           strict=True):
            x[a] = lax.add(x[a], x[b])
            x[b] = lax.bitwise_xor(_rotate(x[b], r), x[a])
        if i % 4 == 3:
            n = i // 4 + 1
            x = [_add(a, key[(n + j) % 5]) for j, a in enumerate(x)]
            x[3] = lax.add(x[3], np.uint32(n))
    return x


philox2x32_p = cipher("philox2x32", 3, 2, _philox2x32)
philox4x32_p = cipher("philox4x32", 6, 4, _philox4x32)
threefry4x32_p = cipher("threefry4x32", 8, 4, _threefry4x32)


# -- the generators --------------------------------------------------------------------------------


def _stacked(words: Sequence[Any]) -> Any:
    """Words as the last axis."""
    shape = (*get_aval(words[0]).shape, 1)
    parts = [lax.reshape(w, shape) for w in words]
    return parts[0] if len(parts) == 1 else lax.concatenate(parts, len(shape) - 1)


def _halves(seed: ArrayLike) -> tuple[Any, Any]:
    """The high and the low word of a seed."""
    if get_aval(seed).dtype.itemsize < 8:
        return _ZERO, to_uint32(seed)
    shift = scalar_constant(32, get_aval(seed).dtype)
    return to_uint32(lax.shift_right_logical(seed, shift)), to_uint32(seed)


def _generator(name: str, tag: str, primitive: Any, key_words: int, counter_words: int,
               seed_at: int, halves: Callable[[Any], tuple[Any, Any]]) -> PRNGImpl:
    """A generator whose bits count in the first words of the counter, and its keys in the last.

    The words of a seed are those of the key and the counter from `seed_at` on, and the others 0;
    `halves` takes 64 bits from the image of a counter.
    """
    pad = (_ZERO,) * (counter_words - 2)

    def seeded(seed: ArrayLike) -> Array:
        words = [_ZERO] * (key_words + counter_words - 2)
        words[seed_at:seed_at] = _halves(seed)
        return _stacked(primitive.bind(*words)[:key_words])

    def image(key: Value, *counter: Value) -> list[Value]:
        words = [word(key, i) for i in range(key_words)]
        return primitive.bind(*words, *counter)  # type: ignore[no-any-return]

    def split(key: Value, shape: tuple[int, ...]) -> Array:
        return _stacked(image(key, *pad, *counters(shape))[:key_words])

    def fold_in(key: Value, data: Value) -> Array:
        return _stacked(image(key, *pad, _ZERO, data)[:key_words])

    def random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Array:
        words = image(key, *counters(shape), *pad)
        if bit_width == 64:
            return wide(*halves(words))
        bits = _xor(*words)
        return bits if bit_width == 32 else lax.convert_element_type(
            bits, np.dtype(f"uint{bit_width}"))

    return register(PRNGImpl((key_words,), seeded, split, random_bits, fold_in, name, tag))


philox2x32 = _generator("philox2x32", "phx2", philox2x32_p, 1, 2, 1, lambda w: (w[0], w[1]))
philox4x32 = _generator("philox4x32", "phx4", philox4x32_p, 2, 4, 2, lambda w: (w[0], w[1]))
threefry4x32 = _generator("threefry4x32", "fry4", threefry4x32_p, 4, 4, 0,
                          lambda w: (_xor(w[0], w[2]), _xor(w[1], w[3])))
