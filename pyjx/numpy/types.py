"""Questions about dtypes, shapes and scalars, and what the namespace says of itself by the Python
array API standard.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike, AxisLike, DTypeLike
from pyjx.core.avals import get_aval, is_valid_value
from pyjx.core.frames import warn
from pyjx.core.layouts import DeviceLike
from pyjx.core.trace import Tracer
from pyjx.numpy.operands import canonical_axes
from pyjx.numpy.promotion import operands
from pyjx.runtime import backends
from pyjx.runtime.array import ArrayImpl


def can_cast(from_: DTypeLike | ArrayLike, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether values of one dtype can be cast to another under a rule; see `numpy.can_cast`.

    Returns:
      A Python bool.

    >>> import pyjx as jax
    >>> jax.numpy.can_cast("int32", "int64")
    True
    """
    from_ = from_.dtype if isinstance(from_, np.ndarray) else from_
    return np.can_cast(_class_or_dtype(from_), _class_or_dtype(to), casting=casting)  # type: ignore


def _as_dtype(x: ArrayLike) -> Any:
    return np.dtype(_class_or_dtype(x))


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is, or belongs to the category, another; see `numpy.issubdtype`.

    Returns:
      A Python bool.

    >>> import pyjx as jax
    >>> jax.numpy.issubdtype(jax.numpy.bfloat16, jax.numpy.floating)
    True
    """
    return dtypes.issubdtype(_class_or_dtype(arg1), _class_or_dtype(arg2))


def _class_or_dtype(x: ArrayLike) -> Any:
    if isinstance(x, np.ndarray):
        raise TypeError(f"Cannot construct a dtype from an array, got one of shape {x.shape}: "
                        "pass its dtype")
    if isinstance(x, type) and issubclass(x, np.generic):
        return x
    dtype = getattr(x, "dtype", None)
    return x if dtype is None or isinstance(dtype, property) else dtype


def promote_types(a: DTypeLike, b: DTypeLike) -> Any:
    """The dtype that two dtypes promote to.

    Args:
      a, b: dtypes, their names, or types such as float.

    Returns:
      A dtype. It follows JAX's lattice: an integer and a float give that float, never a wider one,
      and Python's numbers adapt to what they meet.

    Raises:
      TypePromotionError: there is none.

    >>> import pyjx as jax
    >>> jax.numpy.promote_types("int32", "float16")
    dtype('float16')
    """
    return dtypes.promote_types(_python_or_dtype(a), _python_or_dtype(b))


def _python_or_dtype(x: Any) -> Any:
    return x if isinstance(x, type) and x in (int, float, complex) else _as_dtype(x)


def result_type(*args: Any) -> Any:
    """The dtype that arrays, scalars and dtypes promote to.

    Args:
      *args: arrays, numbers and dtypes.

    Returns:
      A dtype. It follows JAX's lattice: an integer and a float give that float, never a wider one,
      and Python's numbers adapt to what they meet.

    >>> import pyjx as jax
    >>> jax.numpy.result_type(jax.numpy.int8(1), 2.0)
    dtype('float32')
    """
    return dtypes.result_type(*args)


_KINDS: dict[str, Any] = {
    "bool": (np.bool_,),
    "signed integer": (np.signedinteger,),
    "unsigned integer": (np.unsignedinteger,),
    "integral": (np.integer,),
    "real floating": (np.floating,),
    "complex floating": (np.complexfloating,),
    "numeric": (np.integer, np.floating, np.complexfloating),
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind, by the Python array API standard.

    Args:
      dtype: a dtype.
      kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex
        floating", "numeric", a dtype, or a tuple of these.

    Returns:
      A Python bool.

    Raises:
      ValueError: the string names no kind.
      TypeError: the kind is none of these.

    >>> import pyjx as jax
    >>> jax.numpy.isdtype("float32", "real floating")
    True
    """
    dtype = _as_dtype(dtype)
    for k in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(k, str) and k in _KINDS:
            if any(dtypes.issubdtype(dtype, category) for category in _KINDS[k]):
                return True
        elif isinstance(k, str) and k not in {d.name for d in dtypes.all_dtypes}:
            raise ValueError(f"Unrecognized kind={k!r} expected one of {list(_KINDS)}, or a "
                             "compatible input for jnp.dtype()")
        else:
            try:
                other = _as_dtype(k)
            except TypeError:
                raise TypeError("Expected kind to be a dtype, string, or tuple; got "
                                f"kind={k!r}") from None
            if other == dtype:
                return True
    return False


def isscalar(element: ArrayLike) -> bool:
    """Whether a value is a Python or NumPy scalar or an array of rank 0.

    Returns:
      A Python bool.

    >>> import pyjx as jax
    >>> jax.numpy.isscalar(1.5)
    True
    """
    if hasattr(element, "__jax_array__"):
        element = operands("isscalar", element)[0]
    if isinstance(element, (ArrayImpl, Tracer, np.ndarray)):
        return element.ndim == 0
    return bool(np.isscalar(element)) or isinstance(element, np.generic)


def _tell_of_sequence(name: str, a: ArrayLike) -> bool:
    """Whether a value is no array or scalar, of which a warning tells but for text."""
    if is_valid_value(a) or isinstance(a, np.ndarray) or hasattr(a, "__jax_array__"):
        return False
    if not np.isscalar(a):
        warn(f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0. "
             "In a future JAX release this will be an error.", DeprecationWarning)
    return True


def _shape(name: str, a: Any) -> tuple[int, ...]:
    if _tell_of_sequence(name, a):
        return np.shape(a)
    if isinstance(a, np.ndarray):  # whatever the elements are
        return a.shape
    return get_aval(operands(name, a)[0]).shape


def shape(a: Any) -> tuple[int, ...]:
    """The shape of an array or, with a DeprecationWarning, of nested sequences.

    Args:
      a: an array, a number, or nested lists of such.

    Returns:
      A tuple of Python ints, also where arguments are traced.

    >>> import pyjx as jax
    >>> jax.numpy.shape(jax.numpy.ones((1, 2)))
    (1, 2)
    """
    return _shape("shape", a)


def ndim(a: Any) -> int:
    """The number of axes of an array or, with a DeprecationWarning, of nested sequences.

    Args:
      a: an array, a number, or nested lists of such.

    Returns:
      A Python int, also where the argument is traced.

    >>> import pyjx as jax
    >>> jax.numpy.ndim(jax.numpy.ones((1, 2)))
    2
    """
    return len(_shape("ndim", a))


def size(a: ArrayLike, axis: AxisLike = None) -> int:
    """The number of elements, in all or along one axis or several.

    Args:
      a: an array or a number.
      axis: the axis or axes whose sizes are multiplied; None for all.

    Returns:
      A Python int, also where the argument is traced.

    >>> import pyjx as jax
    >>> jax.numpy.size(jax.numpy.ones((2, 3)))
    6
    """
    _tell_of_sequence("size", a)
    sizes = shape(a)
    if axis is None:
        return math.prod(sizes)
    return math.prod([sizes[d] for d in canonical_axes(axis, len(sizes))])


# -- the array API standard ------------------------------------------------------------------------

__array_api_version__ = "2025.12"

_API_KINDS = ("bool", "signed integer", "unsigned integer", "real floating", "complex floating")


class ArrayNamespaceInfo:
    """What this namespace can do: devices, dtypes, and features that the standard leaves open."""

    def capabilities(self) -> dict[str, Any]:
        """Which features there are in traced functions too."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """The device of new arrays: None, as arrays that are committed to none follow others."""
        return

    def devices(self) -> tuple[Any, ...]:
        """The devices that `device=` may name, and None."""
        return None, *backends.devices()

    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, Any]:
        """The dtypes of new arrays, by kind. They are the same on each device."""
        integer = dtypes.default_int_dtype()
        return {"real floating": dtypes.default_float_dtype(),
                "complex floating": dtypes.to_complex_dtype(dtypes.default_float_dtype()),
                "integral": integer, "indexing": integer}

    def dtypes(self, *, device: DeviceLike = None, kind: str | tuple[str, ...] | None = None
               ) -> dict[str, Any]:
        """The dtypes of the standard by name; of a kind of `isdtype`, or of several.

        Raises:
          ValueError: there is no such kind.
        """
        names = ["bool", *[f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)],
                 "float32", "float64", "complex64", "complex128"]
        every = [np.dtype(name) for name in names]
        return {d.name: d for d in every if dtypes.canonicalize_dtype(d) == d
                and isdtype(d, _API_KINDS if kind is None else kind)}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What this namespace can do, by the Python array API standard.

    Returns:
      An object whose methods say what there is: dtypes, devices, default dtypes, capabilities.

    >>> import pyjx as jax
    >>> jax.numpy.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int32')
    """
    return ArrayNamespaceInfo()
