"""Making arrays for tests of sparse operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def rand_sparse(rng: np.random.RandomState, nse: float = 0.5,
                post: Callable[[Any], Any] = lambda x: x,
                rand_method: Callable[..., Any] = np.random.RandomState.standard_normal
                ) -> Callable[[Sequence[int], Any], Any]:
    """A maker of dense arrays most of whose elements are zero.

    Args:
      rng: NumPy's generator.
      nse: how many elements are not zero or, if less than 1, what part of them.
      post: what is applied to the array.
      rand_method: makes elements from the generator and their number.

    Returns:
      A function of a shape and a dtype.

    >>> import numpy as np
    >>> make = rand_sparse(np.random.RandomState(0), nse=3)
    >>> int((make((4, 5), np.float32) != 0).sum())
    3
    """
    def make(shape: Sequence[int], dtype: Any) -> Any:
        flat = np.zeros(int(np.prod(shape)), dtype)
        count = int(nse * flat.size) if 0 < nse < 1 else int(nse)
        places = rng.choice(flat.size, min(count, flat.size), replace=False)
        flat[places] = np.asarray(rand_method(rng, len(places))).astype(dtype)
        return post(flat.reshape(shape))

    return make
