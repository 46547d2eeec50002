"""What all formats share: facts about a sparse array, warnings, and mapping over batch axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.engine.types import Value
from pyjx.transforms.vmap import vmap


class SparseEfficiencyError(ValueError):
    """An operation would store far more than the array given."""


class SparseEfficiencyWarning(UserWarning):
    """An operation stores far more than the array given."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A GPU's sparse library could not be used, and a slower way was taken."""


class SparseInfo(NamedTuple):
    """What is known of a sparse array besides its buffers.

    >>> SparseInfo((2, 3))
    SparseInfo(shape=(2, 3), indices_sorted=False, unique_indices=False)
    """

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


def as_index_dtype(name: str, dtype: DTypeLike | None) -> Any:
    """The dtype that the function `name` is to give indices.

    Raises:
      TypeError: it is not of integers.
    """
    found = np.dtype(dtype)
    if not dtypes.issubdtype(found, np.integer):
        raise TypeError(f"{name}: index_dtype must be an integer dtype, got {dtypes.name(found)}.")
    return found


def buffers_of(name: str, kind: type, mat: Any) -> Any:
    """The buffers of the matrix that the function `name` of one format was given.

    Raises:
      TypeError: it is of another format, or dense.
    """
    if not isinstance(mat, kind):
        raise TypeError(f"{name}: mat must be a {kind.__name__} matrix, got {type(mat).__name__}; "
                        f"{kind.__name__}.fromdense makes one.")
    return mat._bufs  # type: ignore[attr-defined]


def refuse_dense_sum() -> NoReturn:
    raise NotImplementedError(
        "Addition between a sparse array X and a dense array Y is not implemented when the output "
        "shape is larger than Y.shape. This is to prevent silent densification of a large sparse "
        "array. If this is your intent, you can explicitly cast the sparse array to a dense "
        "matrix.")


def is_stored(mat: Any) -> Array:
    """Which elements are not zero."""
    return mat != jnp.zeros((), get_aval(mat).dtype)


def over_batch(fun: Callable[..., Any], n_batch: int, *args: Any) -> Any:
    """`fun` mapped over the `n_batch` leading axes of each argument, of which those of length 1 are
    the same for all others'."""
    if n_batch == 0:
        return fun(*args)
    lengths = [jnp.shape(x)[0] for x in args]
    length = next((n for n in lengths if n != 1), 1)
    axes = tuple([None if n != length else 0 for n in lengths])
    given = [x if d == 0 else x[0] for x, d in zip(args, axes, strict=True)]
    return vmap(lambda *xs: over_batch(fun, n_batch - 1, *xs), axes)(*given)


def added_at(shape: tuple[int, ...], places: tuple[Any, ...], terms: Any, **promises: bool) -> Any:
    """An array of zeros to whose elements at `places` the `terms` are added; those out of bounds
    are dropped. Booleans are added by `or`."""
    at = jnp.zeros(shape, terms.dtype).at[places]
    return (at.max if terms.dtype == bool else at.add)(terms, mode="drop", **promises)


def stretched(x: Value, shape: tuple[int, ...]) -> Any:
    """`x` with its leading axes stretched to `shape`."""
    full = (*shape, *get_aval(x).shape[len(shape):])
    return jnp.broadcast_to(x, full)
