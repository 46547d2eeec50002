"""Samples of random bits, against threefry in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax, random
from pyjx.core.primitive import find_primitive
from pyjx.random import implementations, random_gamma_p
from tests.op_table import Sample

_U32 = np.uint32
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[np.ndarray, np.ndarray]:
    """Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw, 2011)."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in (k0, k1, x0, x1)])
    k0, k1, x0, x1 = [np.broadcast_to(np.asarray(x, _U32), shape).reshape(-1)
                      for x in (k0, k1, x0, x1)]
    keys = (k0, k1, k0 ^ k1 ^ _U32(0x1BD11BDA))
    x0, x1 = x0 + k0, x1 + k1
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = (x1 << _U32(r) | x1 >> _U32(32 - r)) ^ x0
        x0 = x0 + keys[(i + 1) % 3]
        x1 = x1 + keys[(i + 2) % 3] + _U32(i + 1)
    return x0.reshape(shape), x1.reshape(shape)


def _split(key: np.ndarray, n: int) -> np.ndarray:
    return np.stack(threefry(key[0], key[1], 0, np.arange(n)), -1)


def _bits(key: np.ndarray, n: int) -> np.ndarray:
    x, y = threefry(key[0], key[1], 0, np.arange(n))
    return x ^ y


def _on_key(fun: Any) -> Any:
    return lambda data, *rest: fun(random.wrap_key_data(data), *rest)


_KEY = np.array([0x13198A2E, 0x03707344], _U32)
_rng = np.random.default_rng(0)


def _words(*shape: int) -> np.ndarray:
    return _rng.integers(0, 2**32, shape, dtype=_U32)


def _threefry(*args: Any) -> Any:
    return tuple(find_primitive("threefry2x32").bind(*args))


def _cipher(name: str, operands: int, want: tuple[int, ...]) -> Sample:
    return Sample(name, lambda *xs: tuple(find_primitive(name).bind(*xs)), (_U32(0),) * operands,
                  lambda *_: tuple([_U32(w) for w in want]), diff=False, id=f"{name}-known")


SAMPLES = [
    Sample("bits_apart", find_primitive("bits_apart").bind, (_words(3, 2),), lambda x: x,
           diff=False),
    Sample("threefry2x32", _threefry, (_KEY[0], _KEY[1], _U32(0x243F6A88), _U32(0x85A308D3)),
           lambda *_: (_U32(0xC4923A9C), _U32(0x483DF7A0)), diff=False, id="threefry2x32-known"),
    Sample("threefry2x32", _threefry, (_KEY[0], _KEY[1], _words(3, 2), _words(3, 2)), threefry,
           diff=False, id="threefry2x32"),
    Sample("threefry2x32", _threefry, (_words(3), _words(3), _words(3), _U32(7)), threefry,
           diff=False, id="threefry2x32-keys"),
    Sample("threefry2x32", _threefry, (_KEY[0], _KEY[1], _words(0), _words(0)), threefry,
           diff=False, id="threefry2x32-empty"),
    # The known answers of the ciphers' authors, for zeros.
    _cipher("philox2x32", 3, (0xFF1DAE59, 0x6CD10DF2)),
    _cipher("philox4x32", 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    _cipher("threefry4x32", 8, (0x9C6CA96A, 0xE17EAE66, 0xFC10ECD4, 0x5256A7D8)),
    Sample("philox4x32", lambda *xs: tuple(implementations.philox4x32_p.bind(*xs)),
           (_words(3), _words(3), _words(3), _words(3), _words(3), _U32(5)), diff=False,
           id="philox4x32-arrays"),
    Sample("threefry4x32", lambda *xs: tuple(implementations.threefry4x32_p.bind(*xs)),
           (*_words(4), *_words(3, 2), _U32(5)), diff=False, id="threefry4x32-arrays"),
    Sample("random_seed", lambda s: random.key_data(random.key(s)), (np.int32(-5),),
           lambda s: np.array([0, 2**32 - 5], _U32), diff=False),
    Sample("random_wrap", lambda d: random.key_data(random.wrap_key_data(d)), (_words(3, 2),),
           lambda d: d, diff=False),
    Sample("random_unwrap", lambda d: random.key_data(random.wrap_key_data(d)), (_words(2),),
           lambda d: d, diff=False),
    Sample("random_clone", _on_key(lambda k: random.key_data(random.clone(k))), (_KEY,),
           lambda d: d, diff=False),
    Sample("random_split", _on_key(lambda k: random.key_data(random.split(k, 3))), (_KEY,),
           lambda d: _split(d, 3), diff=False),
    Sample("random_split", _on_key(lambda k: random.key_data(random.split(k, (2, 3)))), (_KEY,),
           lambda d: _split(d, 6).reshape(2, 3, 2), diff=False, id="random_split-2d"),
    Sample("random_fold_in", _on_key(lambda k, n: random.key_data(random.fold_in(k, n))),
           (_KEY, _U32(9)), lambda d, n: np.stack(threefry(d[0], d[1], 0, n)), diff=False),
    Sample("random_bits", _on_key(lambda k: random.bits(k, (5, 2))), (_KEY,),
           lambda d: _bits(d, 10).reshape(5, 2), diff=False),
    Sample("random_bits", _on_key(lambda k: random.bits(k, (5,), "uint8")), (_KEY,),
           lambda d: _bits(d, 5).astype(np.uint8), diff=False, id="random_bits-uint8"),
    Sample("random_gamma", _on_key(lambda k, a: random_gamma_p.bind(
        k, a, log_space=False)), (_KEY, np.array([0.3, 1.0, 5.0], np.float32)), diff=False),
    Sample("random_gamma", _on_key(lambda k, a: random_gamma_p.bind(
        k, a, log_space=True)), (_KEY, np.float32(0.3)), diff=False, id="random_gamma-log"),
    # These bits depend on the platform, so only their bounds are checked here.
    Sample("rng_bit_generator",
           lambda k: lax.bitwise_or(lax.rng_bit_generator(k, (3,))[1], _U32(2**32 - 1)),
           (_words(4),), lambda k: np.full(3, 2**32 - 1, _U32), diff=False),
    Sample("rng_bit_generator",
           lambda k: lax.bitwise_or(lax.rng_bit_generator(k, (2, 2), "uint8")[1], np.uint8(255)),
           (_words(4),), lambda k: np.full((2, 2), 255, np.uint8), diff=False,
           id="rng_bit_generator-uint8"),
    Sample("rng_uniform", lambda a, b: lax.bitwise_and(*_bounds(lax.rng_uniform(a, b, (3,)), a, b)),
           (np.float32(-1), np.float32(2)), lambda a, b: np.ones(3, bool), diff=False),
]


def _bounds(x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    smaller, larger = lax.min(low, high), lax.max(low, high)
    return lax.ge(x, lax.broadcast(smaller, (3,))), lax.le(x, lax.broadcast(larger, (3,)))
