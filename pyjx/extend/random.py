"""The generators of random numbers, and how to bring another one."""

from __future__ import annotations

from typing import Any

from pyjx import random
from pyjx.lax.random_bits import threefry2x32_p
from pyjx.lazy import directory, refuse
from pyjx.random.implementations import PRNGImpl, rbg, threefry2x32, unsafe_rbg

__all__ = [
    "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p", "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]
__dir__ = directory(__name__, __all__)
__getattr__ = refuse(__name__)

threefry_prng_impl = threefry2x32
rbg_prng_impl = rbg
unsafe_rbg_prng_impl = unsafe_rbg


def seed_with_impl(impl: PRNGImpl, seed: Any) -> Any:
    """A key of a generator."""
    return random.key(seed, impl=impl)


def random_seed(seeds: Any, impl: PRNGImpl) -> Any:
    """Keys of a generator, one for each seed."""
    return random.key(seeds, impl=impl)
