"""The generators philox2x32, philox4x32 and threefry4x32.

The ciphers are those of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
1, 2, 3" (2011), with 10 rounds of Philox and 20 of Threefry. Element i of the bits and of the new
keys is the image of the counter i; bits are the exclusive or of its words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.avals import get_aval
from pyjx.core.scalars import scalar_constant
from pyjx.engine.types import Value
from pyjx.lax.random_bits import cipher
from pyjx.random.implementations import PRNGImpl, counters, register, to_uint32, wide, word

_ZERO = np.uint32(0)


def _add(x: Value, y: Value) -> Value:
    return lax.add(*_alike(x, y))


def _xor(*xs: Value) -> Value:
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


def _philox4x32(k0: Any, k1: Any, x0: Any, x1: Any, x2: Any, x3: Any) -> tuple[Any, ...]:
    for _ in range(10):
        high0, low0 = _product(x0, 0xD2511F53)
        high1, low1 = _product(x2, 0xCD9E8D57)
        x0, x1, x2, x3 = _xor(high1, x1, k0), low1, _xor(high0, x3, k1), low0
        k0, k1 = _add(k0, np.uint32(0x9E3779B9)), _add(k1, np.uint32(0xBB67AE85))
    return x0, x1, x2, x3


_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


def _rotate(x: Value, r: int) -> Value:
    return lax.bitwise_or(lax.shift_left(x, np.uint32(r)),
                          lax.shift_right_logical(x, np.uint32(32 - r)))


def _threefry4x32(*words: Value) -> list[Value]:
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


def _halves(seed: Any) -> tuple[Any, Any]:
    """The high and the low word of a seed."""
    if get_aval(seed).dtype.itemsize < 8:
        return _ZERO, to_uint32(seed)
    shift = scalar_constant(32, get_aval(seed).dtype)
    return to_uint32(lax.shift_right_logical(seed, shift)), to_uint32(seed)


def _generator(name: str, tag: str, primitive: Any, key_words: int, counter_words: int,
               seed: Callable[[Any], Any], halves: Callable[[Any], tuple[Any, Any]]) -> PRNGImpl:
    """A generator whose bits count in the first words of the counter, and its keys in the last.

    `halves` takes 64 bits from the image of a counter.
    """
    pad = (_ZERO,) * (counter_words - 2)

    def image(key: Value, *counter: Value) -> list[Value]:
        words = [word(key, i) for i in range(key_words)]
        return primitive.bind(*words, *counter)  # type: ignore[no-any-return]

    def split(key: Value, shape: tuple[int, ...]) -> Value:
        return _stacked(image(key, *pad, *counters(shape))[:key_words])

    def fold_in(key: Value, data: Value) -> Value:
        return _stacked(image(key, *pad, _ZERO, data)[:key_words])

    def random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Value:
        words = image(key, *counters(shape), *pad)
        if bit_width == 64:
            return wide(*halves(words))
        bits = _xor(*words)
        return bits if bit_width == 32 else lax.convert_element_type(
            bits, np.dtype(f"uint{bit_width}"))

    return register(PRNGImpl((key_words,), seed, split, random_bits, fold_in, name, tag))


def _philox2x32_seed(seed: Any) -> Any:
    return _stacked(philox2x32_p.bind(_ZERO, *_halves(seed))[:1])


def _philox4x32_seed(seed: Any) -> Any:
    return _stacked(philox4x32_p.bind(_ZERO, _ZERO, *_halves(seed), _ZERO, _ZERO)[:2])


def _threefry4x32_seed(seed: Any) -> Any:
    return _stacked(threefry4x32_p.bind(*_halves(seed), *[_ZERO] * 6))


philox2x32 = _generator("philox2x32", "phx2", philox2x32_p, 1, 2, _philox2x32_seed,
                        lambda w: (w[0], w[1]))
philox4x32 = _generator("philox4x32", "phx4", philox4x32_p, 2, 4, _philox4x32_seed,
                        lambda w: (w[0], w[1]))
threefry4x32 = _generator("threefry4x32", "fry4", threefry4x32_p, 4, 4, _threefry4x32_seed,
                          lambda w: (_xor(w[0], w[2]), _xor(w[1], w[3])))
