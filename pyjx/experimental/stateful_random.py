"""Random numbers from a generator that keeps count of what it gave."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyjx import random as jr
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import canonical_shape, get_aval
from pyjx.core.references import Ref
from pyjx.core.trace import eager_trace, state
from pyjx.lax.references import addupdate, new_ref
from pyjx.lazy import directory
from pyjx.tree_util import GetAttrKey, register_pytree_with_keys

__all__ = ["StatefulPRNG", "stateful_rng"]


def stateful_rng(seed: Any = None, *, impl: str | None = None) -> StatefulPRNG:
    """A generator of random numbers.

    Args:
      seed: an integer; None for one that the system draws, which is not possible while a function
        is traced.
      impl: the name of the algorithm, as for `jax.random.key`.

    Raises:
      TypeError: `seed` is no integer, or is missing.

    >>> import pyjx as jax
    >>> rng = jax.experimental.random.stateful_rng(0)
    >>> rng.integers(10, size=3).tolist() == rng.integers(10, size=3).tolist()
    False
    """
    if seed is None:
        if state.dynamic is not eager_trace or state.innermost is not eager_trace:
            raise TypeError(
                "When used within transformed code, jax.experimental.random.stateful_rng() "
                "requires an explicit seed to be set.")
        seed = np.random.SeedSequence(secrets.randbits(64)).generate_state(1)[0].astype(np.int32)
    return StatefulPRNG(jr.key(seed, impl=impl), new_ref(np.int32(0)))


@dataclass(frozen=True)
class StatefulPRNG:
    """A generator of random numbers, made by `stateful_rng`.

    It is a pytree of a key and of a reference to the number of keys that were made of it, so it is
    an argument of transformed functions as references are. Each method below takes the next key.

    >>> import pyjx as jax
    >>> rng = jax.experimental.random.stateful_rng(7)
    >>> draw = jax.jit(lambda rng: rng.normal(size=2))
    >>> bool((draw(rng) == draw(rng)).any())
    False
    """

    _base_key: Array
    _counter: Ref

    def __reduce__(self) -> Any:
        return type(self), (self._base_key, self._counter)

    def __setstate__(self, state: Sequence[Any]) -> None:
        vars(self).update(zip(("_base_key", "_counter"), state, strict=True))  # of jax's pickles

    def __post_init__(self) -> None:
        key, counter = self._base_key, self._counter
        if not dtypes.issubdtype(getattr(key, "dtype", None), dtypes.prng_key):
            raise ValueError(f"Expected base_key to be a typed PRNG key; got {key!r}. "
                             "jax.random.wrap_key_data makes one of its data.")
        if not (isinstance(counter, Ref) and dtypes.issubdtype(counter.dtype, np.integer)):
            raise ValueError("Expected counter to be a reference to integers, such as "
                             f"jax.new_ref(0); got {counter!r}.")

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """The next key, or an array of keys made of it. Under `vmap` that is mapped over generators
        (`split` makes them): the examples cannot share one."""
        key = jr.fold_in(self._base_key, self._counter[...])
        addupdate(self._counter, ..., np.int32(1))
        shape = canonical_shape(shape)
        return jr.split(key, shape) if shape else key

    def random(self, size: int | Sequence[int] | None = None, dtype: DTypeLike = float) -> Array:
        """Numbers uniform in [0, 1)."""
        return jr.uniform(self.key(), _shape(size), dtype)

    def uniform(self, low: Any = 0, high: Any = 1, size: int | Sequence[int] | None = None, *,
                dtype: DTypeLike = float) -> Array:
        """Numbers uniform in [low, high)."""
        return jr.uniform(self.key(), _shape(size, low, high), dtype, minval=low, maxval=high)

    def normal(self, loc: Any = 0, scale: ArrayLike = 1, size: int | Sequence[int] | None = None, *,
               dtype: DTypeLike = float) -> Array:
        """Numbers of the normal distribution around `loc` with the deviation `scale`."""
        return jr.normal(self.key(), _shape(size, loc, scale), dtype) * scale + loc

    def integers(self, low: Any, high: Any = None, size: int | Sequence[int] | None = None, *,
                 dtype: DTypeLike = int) -> Array:
        """Integers in [low, high), or in [0, low) without `high`."""
        if high is None:
            low, high = 0, low
        return jr.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """As many generators, as one whose arrays have a leading axis, to be mapped over."""
        keys = self.key(num)
        return StatefulPRNG(keys, new_ref(np.zeros(keys.shape, np.int32)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of as many generators."""
        return [StatefulPRNG(key, new_ref(np.int32(0))) for key in self.key(n_children)]


def _shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    if size is not None:
        return canonical_shape(size)
    return np.broadcast_shapes(*[get_aval(x).shape for x in parameters])


def _unflatten(_: None, leaves: tuple[Any, Any]) -> StatefulPRNG:
    """The generator with these leaves, which need not be arrays in a structure."""
    made = object.__new__(StatefulPRNG)
    for name, leaf in zip(("_base_key", "_counter"), leaves, strict=True):
        object.__setattr__(made, name, leaf)
    return made


register_pytree_with_keys(
    StatefulPRNG,
    lambda rng: (((GetAttrKey("_base_key"), rng._base_key), (GetAttrKey("_counter"), rng._counter)),
                 None),
    _unflatten)


__dir__ = directory(__name__, __all__)
