"""Masks of attention that are never made as a whole: which queries see which keys, block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

Window = tuple[int | None, int | None]


class Mask:
    """Which queries see which keys. `mask[queries, keys]`, by slices, is a part of it as an array
    of bools; `|` and `&` join two masks.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of queries and of keys."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> np.ndarray:
        raise NotImplementedError

    def __bool__(self) -> NoReturn:
        raise NotImplementedError("Conversion to bool is unsupported. Could be caused by using "
                                  "logical instead of bitwise operations on masks.")

    def __or__(self, other: Mask) -> Mask:
        return LogicalOr(self, other)

    def __and__(self, other: Mask) -> Mask:
        return LogicalAnd(self, other)


@dataclass(frozen=True)
class _Joined(Mask):
    left: Mask
    right: Mask

    def __post_init__(self) -> None:
        if self.left.shape != self.right.shape:
            raise ValueError("Masks must have the same shape to be joined, got "
                             f"{self.left.shape} and {self.right.shape}.")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.left.shape


class LogicalOr(_Joined):
    """What one of two masks lets be seen."""

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.left[index] | self.right[index]


class LogicalAnd(_Joined):
    """What both of two masks let be seen."""

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.left[index] & self.right[index]


@dataclass(frozen=True)
class _OfPositions(Mask):
    """A mask that follows from the positions of queries and keys."""

    _shape: tuple[int, int]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def sees(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Whether queries see keys, of their positions, a column and a row."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> np.ndarray:
        q, k = [np.arange(n)[part] for n, part in zip(self._shape, index, strict=True)]
        shape = (q.size, k.size)
        return np.broadcast_to(self.sees(q.reshape(-1, 1), k.reshape(1, -1)), shape)


class FullMask(_OfPositions):
    """All queries see all keys.

    Args:
      _shape: the numbers of queries and of keys.
    """

    def sees(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return np.ones((1, 1), bool)


@dataclass(frozen=True, init=False)
class CausalMask(_OfPositions):
    """Queries see no later keys.

    Args:
      shape: the numbers of queries and of keys.
      offset: how much later queries are than their positions say.
      shard_count: accepted.

    >>> CausalMask((4, 4))[0:2, 0:3].tolist()
    [[True, False, False], [True, True, False]]
    """

    offset: int

    def __init__(self, shape: tuple[int, int], offset: int = 0, shard_count: int = 1) -> None:
        _set(self, _shape=shape, offset=offset)

    def sees(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return q + self.offset >= k


@dataclass(frozen=True, init=False)
class LocalMask(_OfPositions):
    """Queries see keys that are near.

    Args:
      shape: the numbers of queries and of keys.
      window_size: how many keys before and behind its own a query sees; None for all.
      offset: how much later queries are than their positions say.
      shard_count: accepted.
    """

    window_size: Window
    offset: int

    def __init__(self, shape: tuple[int, int], window_size: Window, offset: int,
                 shard_count: int = 1) -> None:
        _set(self, _shape=shape, window_size=window_size, offset=offset)

    def sees(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        before, behind = self.window_size
        seen = np.ones((1, 1), bool)
        if before is not None:
            seen = seen & (q + self.offset - before <= k)
        return seen if behind is None else seen & (q + self.offset + behind >= k)


@dataclass(frozen=True, init=False)
class ChunkedCausalMask(_OfPositions):
    """Queries see no later keys, and those of their own chunk alone.

    Args:
      shape: the numbers of queries and of keys.
      chunk_size: how long chunks are.
      shard_count: accepted.
    """

    chunk_size: int

    def __init__(self, shape: tuple[int, int], chunk_size: int, shard_count: int = 1) -> None:
        if chunk_size <= 0:
            raise ValueError(f"chunk_size must be positive, got {chunk_size}")
        _set(self, _shape=shape, chunk_size=chunk_size)

    def sees(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return (q >= k) & (q // self.chunk_size == k // self.chunk_size)


def _set(mask: Mask, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(mask, name, value)


@dataclass(frozen=True, eq=False)
class NumpyMask(Mask):
    """A mask that is an array.

    Args:
      array: bools, of the shape (queries, keys).
    """

    array: np.ndarray

    def __post_init__(self) -> None:
        if self.array.ndim != 2 or self.array.dtype != np.bool_:
            raise ValueError(f"NumpyMask: array must be a matrix of bools, got {self.array.dtype}"
                             f"{list(self.array.shape)}.")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.array[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumpyMask) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))


@dataclass(frozen=True)
class MultiHeadMask(Mask):
    """A mask for each head.

    Args:
      masks: of one shape.
    """

    masks: Sequence[Mask]

    def __post_init__(self) -> None:
        if not self.masks:
            raise ValueError("MultiHeadMask: at least one mask is needed.")
        shapes = {mask.shape for mask in self.masks}
        if len(shapes) > 1 or len(self.masks[0].shape) != 2:
            raise ValueError(f"MultiHeadMask: masks must be of one shape (queries, keys), got "
                             f"{sorted(shapes)}.")

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self.masks), *self.masks[0].shape

    def __getitem__(self, index: Any) -> np.ndarray:
        heads, *rest = index
        if isinstance(heads, int):
            return self.masks[heads][tuple(rest)]
        return np.stack([mask[tuple(rest)] for mask in self.masks[heads]])


# -- masks as arrays -------------------------------------------------------------------------------


def _whole(mask: Mask) -> np.ndarray:
    return np.array(mask[:, :])


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> np.ndarray:
    """The array of a `CausalMask`."""
    return _whole(CausalMask(shape, offset))


def make_local_attention_mask(shape: tuple[int, int], window_size: Window, *, offset: int = 0
                              ) -> np.ndarray:
    """The array of a `LocalMask`."""
    return _whole(LocalMask(shape, window_size, offset))


def make_chunk_attention_mask(shape: tuple[int, int], chunk_size: int) -> np.ndarray:
    """The array of a `ChunkedCausalMask`."""
    return _whole(ChunkedCausalMask(shape, chunk_size))


def make_random_mask(shape: tuple[int, int], sparsity: float, seed: int) -> np.ndarray:
    """Random bools, of which so large a part is False.

    Args:
      shape: of the array.
      sparsity: from 0, all True, to 1.
      seed: an integer.
    """
    draw: Callable[..., Any] = np.random.RandomState(seed).binomial
    return draw(1, 1.0 - sparsity, shape).astype(np.bool_)  # type: ignore[no-any-return]
