"""Random sparse arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import numpy as jnp
from pyjx import random
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike, DTypeLike
from pyjx.core.tracebacks import api_boundary
from pyjx.experimental.sparse.bcoo.array import BCOO
from pyjx.transforms.vmap import vmap


@api_boundary
def random_bcoo(key: ArrayLike, shape: Sequence[int], *, dtype: DTypeLike = np.float64,
                indices_dtype: Any = None, nse: float = 0.2, n_batch: int = 0, n_dense: int = 0,
                unique_indices: bool = True, sorted_indices: bool = False,
                generator: Callable[..., Any] = random.uniform, **kwds: Any) -> BCOO:
    """A BCOO array with random elements at random places.

    Args:
      key: random key.
      shape: of the array.
      dtype: of the elements.
      indices_dtype: of the indices, the default integers' by default.
      nse: how many elements are stored for each batch or, if less than 1, what part of them.
      n_batch: number of batch dimensions.
      n_dense: number of dense dimensions.
      unique_indices: whether no place is drawn twice.
      sorted_indices: whether the indices are sorted.
      generator: makes the elements from a key, a shape and a dtype.
      kwds: what else `generator` is given.

    Raises:
      ValueError: the numbers do not fit the shape.

    >>> import pyjx as jax
    >>> from pyjx.experimental import sparse
    >>> sparse.random_bcoo(jax.random.key(0), (4, 5))
    BCOO(float32[4, 5], nse=4)
    """
    shape = tuple(shape)
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        raise ValueError(f"Invalid n_batch={n_batch}, n_dense={n_dense} for shape={shape}")
    n_sparse = len(shape) - n_batch - n_dense
    batch, sizes = shape[:n_batch], shape[n_batch:n_batch + n_sparse]
    n_batches, room = math.prod(batch), math.prod(sizes)
    if not 0 <= nse < 1:
        stored = operator.index(nse) if not isinstance(nse, float) else math.ceil(nse)
    else:
        stored = math.ceil(nse * room)
    if not 0 <= stored <= room:
        raise ValueError(f"got nse={nse}, expected to be between 0 and {room}")
    index_dtype = jnp.dtype(indices_dtype or dtypes.default_int_dtype())

    def places(key: ArrayLike) -> Any:
        if not sizes:
            return jnp.empty((stored, 0), index_dtype)
        flat = random.choice(key, room, (stored,), replace=not unique_indices)
        return jnp.column_stack(jnp.unravel_index(flat.astype(index_dtype), sizes))

    keys = random.split(key, n_batches + 1)
    indices = vmap(places)(keys[1:]).reshape(*batch, stored, n_sparse).astype(index_dtype)
    data = generator(keys[0], shape=(*batch, stored, *shape[n_batch + n_sparse:]),
                     dtype=dtypes.canonicalize_dtype(dtype), **kwds)
    mat = BCOO((data, indices), shape=shape)
    return mat.sort_indices() if sorted_indices else mat
