"""The generators of random numbers, and how to bring another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx import numpy as jnp
from pyjx import random
from pyjx.lax.random_bits import bits_apart_p, threefry2x32_p
from pyjx.lazy import directory
from pyjx.random.implementations import PRNGImpl, PRNGSpec, rbg, threefry2x32, unsafe_rbg

__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p",
    "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl",
]

threefry_prng_impl = threefry2x32
rbg_prng_impl = rbg
unsafe_rbg_prng_impl = unsafe_rbg


def seed_with_impl(impl: PRNGImpl | PRNGSpec, seed: Any) -> Any:
    """A key of a generator."""
    return random.key(seed, impl=impl)


def random_seed(seeds: Any, impl: PRNGImpl | PRNGSpec) -> Any:
    """Keys of a generator, one for each seed."""
    return random.key(seeds, impl=impl)


def define_prng_impl(*, key_shape: tuple[int, ...], seed: Callable[[Any], Any],
                     split: Callable[[Any, tuple[int, ...]], Any],
                     random_bits: Callable[[Any, int, tuple[int, ...]], Any],
                     fold_in: Callable[[Any, Any], Any], name: str = "<unnamed>", tag: str = "?"
                     ) -> PRNGSpec:
    """A generator of random numbers, from functions on the data of one key.

    Args:
      key_shape: of the array of uint32 that a key is.
      seed: `seed -> key`.
      split: `(key, shape) -> keys`.
      random_bits: `(key, bit_width, shape) -> unsigned integers`.
      fold_in: `(key, data) -> key`.
      name: what `impl=` arguments say.
      tag: the short name in `key<tag>`.

    >>> import pyjx as jax
    >>> from pyjx.extend import random as jexr
    >>> mine = jexr.define_prng_impl(
    ...     key_shape=(2,), seed=jexr.threefry_prng_impl.seed, split=jexr.threefry_prng_impl.split,
    ...     random_bits=jexr.threefry_prng_impl.random_bits,
    ...     fold_in=jexr.threefry_prng_impl.fold_in, name="mine", tag="m")
    >>> jax.random.key(0, impl=mine).dtype
    key<m>
    """
    return PRNGSpec(PRNGImpl(key_shape, seed, split, random_bits, fold_in, name, tag))


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The Threefry-2x32 hash of counters, an array of uint32, with a pair of uint32 as key.

    Raises:
      TypeError: the counters are not of type uint32.
    """
    counters = jnp.asarray(count)
    if counters.dtype != np.uint32:
        raise TypeError(f"threefry_2x32: count must be of type uint32, got {counters.dtype}")
    first, second = keypair
    flat = counters.ravel()
    odd = flat.size % 2
    if odd:
        flat = jnp.concatenate([flat, jnp.zeros(1, np.uint32)])
    halves = jnp.split(flat, 2)
    key = bits_apart_p.bind(jnp.stack([jnp.asarray(k, np.uint32) for k in (first, second)]))
    hashed = jnp.concatenate(threefry2x32_p.bind(key[0], key[1], *halves))
    return (hashed[:-1] if odd else hashed).reshape(counters.shape)


__dir__ = directory(__name__, __all__)
