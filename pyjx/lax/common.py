"""What several families of operations need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import ShapedArray, aval_makers
from pyjx.core.bounded import BoundedDict
from pyjx.core.frames import warn
from pyjx.core.integers import as_shape
from pyjx.core.scalars import scalar_constant, typed
from pyjx.engine.axes import checked_aval
from pyjx.engine.types import TreeDef, Value
from pyjx.tree_util import tree_flatten


def operand(name: str, x: Any, position: int = 0) -> Any:
    """`x`, if it is a value that operations take; TypeError otherwise."""
    kind = type(x)
    if kind is np.ndarray:
        if x.dtype in dtypes.all_dtypes:
            return x
    elif kind in aval_makers:
        return x
    convert = getattr(x, "__jax_array__", None)
    if convert is not None:
        return convert()
    checked_aval(name, x, position)
    return x


def operands_in(name: str, values: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree, each an `operand`, and its structure."""
    leaves, tree = tree_flatten(values)
    return [operand(name, x, i) for i, x in enumerate(leaves)], tree


def check_same_dtypes(name: str, *avals: ShapedArray) -> None:
    """Raise TypeError unless the dtypes are equal."""
    first = avals[0].dtype
    for aval in avals:
        if aval.dtype != first:
            for i, x in enumerate(avals):
                if x.dtype == dtypes.float0:
                    raise dtypes.float0_error(name, f" at position {i}")
            got = ", ".join([dtypes.name(a.dtype) for a in avals])
            tip = f" {_one_dtype(avals)}"
            if name.startswith(("dynamic_update", "scatter")):
                update = "updates" if name.startswith("scatter") else "update"
                tip = (f" Give {update} the dtype of operand, as in jnp.asarray({update}, "
                       f"'{dtypes.name(first)}').")
            if name in _PROMOTING:
                tip = (f" (Tip: jnp.{_PROMOTING[name]} is a similar function that does automatic "
                       "type promotion on inputs).")
            raise TypeError(
                f"lax.{name} requires arguments to have the same dtypes, got {got}.{tip}")


def _one_dtype(avals: Sequence[ShapedArray]) -> str:
    """How values of several dtypes, some of which may be numbers of Python's, get one."""
    try:
        dtype, _ = dtypes.join_types(*[(x.dtype, x.weak_type) for x in avals])
    except TypeError:  # nothing holds both
        return ""
    return f"Give all one dtype, as in jnp.asarray(x, '{dtypes.name(dtype)}')."


# The functions of pyjx.numpy that do the same after promotion.
_PROMOTING = {
    "add": "add", "atan2": "arctan2", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor", "concatenate": "concatenate", "div": "divide", "eq": "equal",
    "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less", "max": "maximum",
    "min": "minimum", "mul": "multiply", "ne": "not_equal", "nextafter": "nextafter",
    "pow": "power", "rem": "fmod", "select": "where", "shift_left": "left_shift",
    "shift_right_arithmetic": "right_shift", "sub": "subtract",
}


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape to which `shapes` broadcast, by NumPy's rules.

    Args:
      *shapes: tuples of ints.

    Raises:
      TypeError: one is no shape.
      ValueError: two of them differ along an axis where neither is 1.

    >>> import pyjx as jax
    >>> jax.lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return joint_shape(tuple([as_shape("broadcast_shapes", "shapes", s) for s in shapes]))


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of `shape` can be stretched to `target` by NumPy's rules.

    >>> broadcasts_to((2, 1), (4, 2, 3)), broadcasts_to((2,), (3,))
    (True, False)
    """
    offset = len(target) - len(shape)
    return offset >= 0 and all([n in (1, target[offset + i]) for i, n in enumerate(shape)])


def misfit(shapes: Sequence[tuple[int, ...]]) -> str:
    """For messages: the last axis along which shapes do not broadcast, and what is expected.

    >>> misfit([(3, 4), (5,)])
    '. Axis -1 has the sizes 4 and 5; counted from the last one, axes must have one size or size 1.'
    """
    for i in range(1, max(map(len, shapes), default=0) + 1):
        sizes = [*dict.fromkeys([str(s[-i]) for s in shapes if len(s) >= i and s[-i] != 1])]
        if len(sizes) > 1:
            return (f". Axis -{i} has the sizes {', '.join(sizes[:-1])} and {sizes[-1]}; counted "
                    "from the last one, axes must have one size or size 1.")
    return ""


_joint_shapes = BoundedDict(8192, "shapes of operands together")


def joint_shape(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """`broadcast_shapes`, of shapes that are tuples."""
    out = _joint_shapes.get(shapes)
    if out is None:
        out = _joint_shapes[shapes] = _joint_shape_anew(shapes)
    return out  # type: ignore[no-any-return]


def _joint_shape_anew(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    for shape in shapes:
        if any([type(n) is int and n < 0 for n in shape]):
            raise TypeError("broadcast_shapes: Only non-negative indices are allowed when "
                            f"broadcasting static shapes, but got shape {shape}.")
    first = shapes[0] if shapes else ()
    if all(s == first for s in shapes):
        return first
    rank = max(map(len, shapes))
    out = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            if n != 1:
                if out[i] != 1 and out[i] != n:
                    raise ValueError("broadcast_shapes: Incompatible shapes for broadcasting: "
                                     f"shapes={list(shapes)}{misfit(shapes)}")
                out[i] = n
    return tuple(out)


def nary_shape(name: str, avals: tuple[ShapedArray, ...]) -> tuple[int, ...]:
    """Result shape of an elementwise primitive: that of the operands which are not scalars."""
    shape = avals[0].shape
    for a in avals:
        if a.shape != shape:
            if not shape:
                shape = a.shape
            elif a.shape:
                got = ", ".join([str(b.shape) for b in avals])
                raise TypeError(f"{name} got incompatible shapes for broadcasting: {got}.")
    return shape


def accepted(name: str, aval: ShapedArray, kinds: tuple[Any, ...], what: str) -> None:
    """Raise TypeError unless the dtype is of one of the `kinds`, which `what` names."""
    if not any(dtypes.issubdtype(aval.dtype, k) for k in kinds):
        raise TypeError(
            f"{name} does not accept dtype {dtypes.name(aval.dtype)}. Accepted dtypes are {what}.")


def all_weak(avals: tuple[ShapedArray, ...]) -> bool:
    return all([a.weak_type for a in avals])


def as_dtype(x: Value, dtype: DTypeLike) -> Any:
    """A Python scalar as a NumPy scalar of `dtype`; any other value as it is."""
    return scalar_constant(x, dtype) if type(x) in (int, float, complex, bool) else x


_MOST_SINGLE = float(np.finfo(np.float32).max)


def host_converted(value: Any, dtype: Any) -> Any:
    """A number, or a NumPy array of them, as one of NumPy's of `dtype`: integers wrap around, and
    floats beyond the range of integers give its end, nan 0, as in a conversion on the device. Of
    NumPy's complex numbers a real dtype has the real part, with a warning.

    Raises:
      TypeError: the number is a Python complex one, and the dtype real.
    """
    if type(value) is float and dtype.char == "f" and -_MOST_SINGLE <= value <= _MOST_SINGLE:
        return dtype.type(value)  # the most frequent case, without the costly `errstate`
    if type(value) is complex and dtype not in dtypes.complex_dtypes and dtype != np.bool_:
        raise TypeError(f"The complex number {value} cannot become {dtypes.name(dtype)}: take its "
                        "real part first.")
    host = real_part_on_host(np.asarray(value), dtype)
    with np.errstate(all="ignore"):
        if dtypes.issubdtype(host.dtype, np.floating) and dtype in dtypes.integer_dtypes:
            return typed(_saturated(host, dtype)[()])
        return typed(host.astype(dtype)[()])


def _saturated(host: Any, dtype: DTypeLike) -> Any:
    """An array of floats as one of integers, which are the ends of their range beyond it."""
    limits = dtypes.iinfo(dtype)
    if host.dtype.kind != "f":
        host = host.astype(np.float32)  # narrow floats hold no limits to compare with
    inside = (host >= limits.min) & (host < float(limits.max + 1))  # floats have no 2^63 - 1
    least, most, none = (np.array(n, dtype) for n in (limits.min, limits.max, 0))
    ends = np.where(host > 0, most, np.where(host < 0, least, none))  # nan is no number
    return np.where(inside, np.where(inside, host, 0).astype(dtype), ends)


def real_part_on_host(x: np.ndarray | np.generic, dtype: DTypeLike) -> Any:
    """A NumPy array or scalar that is to have the dtype, without the imaginary part that a real one
    cannot hold, with a warning; truth is of both parts."""
    if x.dtype.kind != "c" or dtype in dtypes.complex_dtypes or dtype == np.bool_:
        return x
    warn_of_complex()
    return x.real


def warn_of_complex() -> None:
    """NumPy's warning, for a conversion of complex numbers to a real dtype."""
    warn("Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning)
