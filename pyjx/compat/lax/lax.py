"""`jax._src.lax.lax`: the names of `jax.lax`, and what its functions are built on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import pyjx.lax
import pyjx.numpy as jnp
from pyjx.core import dtypes
from pyjx.core.dtypes import itemsize_bits
from pyjx.lax import creation
from pyjx.numpy.promotion import is_arraylike

__all__ = ["array_types", "asarray", "broadcast_to", "empty_like", "remaining"]

# Categories of dtypes, as rules of primitives name them.
_float, _complex, _int = {np.floating}, {np.complexfloating}, {np.integer}
_bool, _signedint = {np.bool_}, {np.signedinteger}
_num = _int | _float | _complex
_any = _num | _bool
_bool_or_int = _int | _bool
_ordered = _int | _float | _bool
_complex_elem_types = {np.float32, np.float64}

array_types = {np.ndarray, *dtypes.numpy_scalar_types}

_bit_width = itemsize_bits
_eye, _tri = creation.eye, creation.tri
broadcast_to = jnp.broadcast_to
empty_like = jnp.empty_like


def asarray(x: Any) -> Any:
    """A value as an array; lists are none.

    Raises:
      TypeError: it is neither array nor scalar.
    """
    if not is_arraylike(x):
        raise TypeError(f"asarray: expected ArrayLike, got {x} of type {type(x)}.")
    return jnp.asarray(x)


def remaining(original: Iterable[Any], *removed_lists: Iterable[Any]) -> list[Any]:
    """The elements that are in none of the lists.

    >>> remaining(range(4), [1], [2])
    [0, 3]
    """
    removed = {x for each in removed_lists for x in each}
    return [x for x in original if x not in removed]


def _convert_element_type(operand: Any, new_dtype: Any = None, weak_type: bool = False,
                          sharding: Any = None, warn_on_complex_to_real_cast: bool = True) -> Any:
    """The array in a dtype, its own if there is none, weak or not."""
    given = dtypes.dtype(operand)
    to = given if new_dtype is None else dtypes.canonicalize_dtype(new_dtype, True)
    if (not warn_on_complex_to_real_cast and dtypes.issubdtype(given, np.complexfloating)
            and not dtypes.issubdtype(to, np.complexfloating)):
        operand = pyjx.lax.real(operand)
    return pyjx.lax.convert_element_type_p.bind(
        operand, new_dtype=to, weak_type=bool(weak_type), sharding=sharding)


def _delta(dtype: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """Ones where the indices along some axes are equal, and zeros, repeated along the others.

    >>> _delta("int32", (2, 2), (0, 1))
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    places = np.indices([shape[axis] for axis in axes], sparse=True)
    equal = np.all(np.broadcast_arrays(*[p == places[0] for p in places]), axis=0)
    return pyjx.lax.broadcast_in_dim(jnp.asarray(equal, dtype), tuple(shape), tuple(axes))


def _const(example: Any, val: Any) -> Any:
    """A scalar in the dtype of an array, for what is computed with it."""
    return np.asarray(val, dtypes.dtype(example))


def _zero(x: Any) -> Any:
    """Zero in the dtype of `x`, of its shape."""
    return pyjx.lax.full_like(x, 0)


def _one(x: Any) -> Any:
    """One in the dtype of `x`, of its shape."""
    return pyjx.lax.full_like(x, 1)


def _isnan(x: Any) -> Any:
    return pyjx.lax.ne(x, x)


def _iscomplex(x: Any) -> bool:
    return dtypes.issubdtype(dtypes.dtype(x), np.complexfloating)


def _try_broadcast_shapes(*shapes: tuple[int, ...], name: str) -> tuple[int, ...]:
    """The shape that shapes of one rank are broadcast to.

    Raises:
      TypeError: there is none; the error names the function.
    """
    try:
        if len({len(shape) for shape in shapes}) == 1:
            return tuple(pyjx.lax.broadcast_shapes(*shapes))
    except ValueError:
        pass
    listed = ", ".join(map(str, shapes))
    raise TypeError(f"{name} got incompatible shapes for broadcasting: {listed}.")


def __getattr__(name: str) -> Any:
    return getattr(pyjx.lax, name)
