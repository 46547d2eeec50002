"""Making arrays for tests of sparse operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx.core.array_type import DTypeLike


def _normal(rng: np.random.RandomState) -> Callable[[Sequence[int], Any], Any]:
    """A maker of arrays of normally distributed elements."""
    return lambda shape, dtype: np.asarray(rng.standard_normal(tuple(shape))).astype(dtype)


def rand_sparse(rng: np.random.RandomState, nse: float = 0.5,
                post: Callable[[Any], Any] = lambda x: x,
                rand_method: Callable[..., Any] = _normal
                ) -> Callable[[Sequence[int], Any], Any]:
    """A maker of dense arrays most of whose elements are zero.

    Args:
      rng: NumPy's generator.
      nse: how many elements are not zero or, if less than 1, what part of them.
      post: what is applied to the array.
      rand_method: `rand_method(rng)` makes arrays of a shape and a dtype, whose elements are kept.

    Returns:
      A function of a shape and a dtype.

    >>> import numpy as np
    >>> make = rand_sparse(np.random.RandomState(0), nse=3)
    >>> int((make((4, 5), np.float32) != 0).sum())
    3
    """
    def make(shape: Sequence[int], dtype: DTypeLike | None) -> Any:
        size = int(np.prod(shape))
        count = min(int(nse * size) if 0 < nse < 1 else int(nse), size)
        flat = np.zeros(size, dtype)
        places = rng.choice(size, count, replace=False)
        flat[places] = np.asarray(rand_method(rng)((count,), dtype))
        return post(flat.reshape(shape))

    return make
