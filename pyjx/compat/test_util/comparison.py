"""How near two results have to be, by their dtypes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

import pyjx.numpy
from pyjx import tree_util
from pyjx.core import dtypes
from pyjx.numpy.promotion import promote_dtypes, promote_dtypes_inexact
from pyjx.test_util import value_tolerance

__all__ = [
    "check_eq", "check_raises", "check_raises_regexp", "default_tolerance", "is_sequence",
    "join_tolerance", "promote_like_jnp", "to_default_dtype", "tolerance",
    "with_jax_dtype_defaults",
]

Tolerance = float | Mapping[Any, float] | None

_EXACT = ("bool int1 int2 int4 int8 int16 int32 int64 "
          "uint1 uint2 uint4 uint8 uint16 uint32 uint64")


def _known(names: str) -> Iterator[np.dtype[Any]]:
    """The dtypes of which the installed version of ml_dtypes has the names."""
    for name in names.split():
        with suppress(TypeError):
            yield np.dtype(name)


_DEFAULTS: dict[Any, float] = {
    dtypes.float0: 0, **dict.fromkeys(_known(_EXACT), 0), **value_tolerance}


def default_tolerance() -> dict[Any, float]:
    """Relative and absolute tolerances by dtype.

    >>> default_tolerance()[np.dtype(np.float32)]
    1e-06
    """
    return dict(_DEFAULTS)


def _by_dtype(tol: Tolerance) -> dict[Any, float]:
    """Those of all dtypes for a number, which None counts as 0; else those that are given."""
    if isinstance(tol, Mapping):
        return {np.dtype(dtype): t for dtype, t in tol.items()}
    return dict.fromkeys(_DEFAULTS, tol or 0)


def tolerance(dtype: Any, tol: Tolerance = None) -> float:
    """That of a dtype: the number or the entry that is given, else the default.

    >>> tolerance(np.float32, {np.float32: 0.5}), tolerance(np.float32, 0.1)
    (0.5, 0.1)
    """
    if tol is not None and not isinstance(tol, Mapping):
        return tol
    kind = dtypes.canonicalize_dtype(dtype)
    given = {} if tol is None else _by_dtype(tol)
    return given.get(kind, _DEFAULTS.get(kind, 0))


def join_tolerance(tol1: Tolerance, tol2: Tolerance) -> dict[Any, float]:
    """The larger ones of two; None has none."""
    first, second = _by_dtype(tol1), _by_dtype(tol2)
    return {**first, **{k: max(t, first.get(k, 0)) for k, t in second.items()}}


def for_numpy(x: Any) -> np.ndarray[Any, Any]:
    """An array of a dtype that NumPy compares: of ml_dtypes' float32."""
    array = np.asarray(x)
    return array.astype(np.float32) if array.dtype.isbuiltin == 2 else array


def assert_near(actual: Any, desired: Any, atol: float | None, rtol: float | None,
                err_msg: str = "") -> None:
    """Raise AssertionError where NumPy arrays are not as near as that."""
    if actual.dtype == desired.dtype == dtypes.float0:
        return
    given: dict[str, Any] = {k: t for k, t in (("atol", atol), ("rtol", rtol)) if t is not None}
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(for_numpy(actual), for_numpy(desired), err_msg=err_msg, **given)


def is_sequence(x: Any) -> bool:
    """Whether it can be iterated."""
    try:
        iter(x)
    except TypeError:
        return False
    return True


def check_eq(xs: Any, ys: Any, err_msg: str = "") -> None:
    """Raise AssertionError where leaves of two pytrees differ; their dtypes may."""
    tree_util.tree_map(
        lambda x, y: assert_near(np.asarray(x), np.asarray(y), 0, 0, err_msg), xs, ys)


def check_raises(thunk: Callable[[], Any], err_type: Any, msg: str) -> None:
    """Raise AssertionError unless the call raises an error that begins with `msg`."""
    try:
        thunk()
    except err_type as error:
        assert str(error).startswith(msg), f"\n{error}\n\n{msg}\n"
        return
    raise AssertionError(f"{err_type} was not raised")


def check_raises_regexp(thunk: Callable[[], Any], err_type: Any, pattern: str) -> None:
    """Raise AssertionError unless the call raises an error that the regular expression matches."""
    try:
        thunk()
    except err_type as error:
        assert re.match(pattern, str(error)), f"{error}\n\n{pattern}\n"
        return
    raise AssertionError(f"{err_type} was not raised")


# -- NumPy's functions as references ---------------------------------------------------------------


def promote_like_jnp(fun: Callable[..., Any], inexact: bool = False) -> Callable[..., Any]:
    """A function of NumPy whose arguments are promoted as those of `jax.numpy` are.

    >>> promote_like_jnp(np.add)(np.int8(1), np.float32(2)).dtype
    dtype('float32')
    """
    promote = promote_dtypes_inexact if inexact else promote_dtypes

    def promoted(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_util.tree_flatten(args)
        arrays = [np.asarray(pyjx.numpy.asarray(x)) for x in promote(*leaves)]
        return fun(*tree_util.tree_unflatten(tree, arrays), **kwargs)

    return promoted


def to_default_dtype(arr: Any) -> np.ndarray[Any, Any]:
    """The array in the dtype that Python's numbers of its kind have: `float32` for floats.

    >>> to_default_dtype(np.ones(2)).dtype
    dtype('float32')
    """
    array = np.asarray(arr)
    default = {"i": int, "u": np.uint64, "f": float, "c": complex}.get(array.dtype.kind)
    return array if default is None else array.astype(dtypes.canonicalize_dtype(default))


def with_jax_dtype_defaults(func: Callable[..., Any], use_defaults: Any = True
                            ) -> Callable[..., Any]:
    """A function of NumPy whose results have default dtypes; `use_defaults` is a truth value, or
    a pytree of one for each result."""
    def converted(*args: Any, **kwargs: Any) -> Any:
        out = func(*args, **kwargs)
        if isinstance(use_defaults, bool):
            return tree_util.tree_map(to_default_dtype, out) if use_defaults else out
        return tree_util.tree_map(lambda x, use: to_default_dtype(x) if use else x,
                                  out, use_defaults)

    return converted
