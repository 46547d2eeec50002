"""Arguments that say which axes: checked and made tuples. And the decorator of functions with such
arguments."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx.core.avals import aval_makers
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.runtime.jit import JitSpec, _argument_sets, _finish

_all_axes: list[tuple[int, ...]] = [tuple(range(n)) for n in range(16)]


def all_axes(ndim: int) -> tuple[int, ...]:
    """Every axis of an array of `ndim` dimensions."""
    return _all_axes[ndim] if ndim < 16 else tuple(range(ndim))


def canonical_axis(axis: Any, ndim: int) -> int:
    """`axis` counted from the front.

    Raises:
      TypeError: it is no integer.
      ValueError: there is no such axis.

    >>> canonical_axis(-1, 3)
    2
    """
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis + ndim if axis < 0 else axis


def canonical_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that an int, a sequence of ints or None (for all) stands for.

    Raises:
      TypeError: `axis` is none of these.
      ValueError: an axis is out of bounds or named twice.

    >>> canonical_axes((0, -1), 3)
    (0, 2)
    """
    if axis is None:
        return all_axes(ndim)
    if type(axis) is int:
        return (canonical_axis(axis, ndim),)
    if hasattr(axis, "__index__") and not (isinstance(axis, np.ndarray) and axis.ndim):
        return (canonical_axis(axis, ndim),)
    axes = tuple([canonical_axis(a, ndim) for a in axis])
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {tuple(axis)}")
    return axes


def as_tuple(x: Any) -> tuple[int, ...]:
    """The ints that an int or a sequence of ints stands for."""
    try:
        return (operator.index(x),)
    except TypeError:
        return tuple([operator.index(i) for i in x])


def _frozen(x: Any) -> Any:
    """A static argument made hashable: lists and arrays become tuples."""
    if hasattr(x, "__array__") and not isinstance(x, (np.generic, Tracer)):
        x = x.tolist()
    if not isinstance(x, (list, tuple)):
        return x
    frozen = tuple([_frozen(y) for y in x])
    same = isinstance(x, tuple) and all(a is b for a, b in zip(x, frozen, strict=True))
    return x if same else frozen


def _known(x: Any) -> bool:
    """Whether the compiled path takes `x` as an argument: arrays, scalars, and lists of them."""
    kind = type(x)
    if kind is list or kind is tuple:
        return all(_known(y) for y in x)
    return kind in aval_makers or x is None


def numpy_function(fun: Callable[..., Any] | None = None, *,
                   static_argnames: tuple[str, ...] = ()) -> Any:
    """The public form of a function that is written in operations.

    On concrete arguments it is one compiled program behind a C++ callable; static arguments may be
    lists. Where something is traced, or an argument is of another type (tracers, objects with
    `__jax_array__`, things to refuse), the Python itself runs.
    """
    if fun is None:
        return lambda fun: numpy_function(fun, static_argnames=static_argnames)
    body: Callable[..., Any] = fun
    positions, names = _argument_sets(body, None, static_argnames)
    spec = JitSpec(body, positions, names, (), (), False, True, (), None)

    def miss(*args: Any, **kwargs: Any) -> Any:
        for i, x in enumerate(args):
            if i not in positions and not _known(x):
                return body(*args, **kwargs), None, False
        for key, x in kwargs.items():
            if key not in names and not _known(x):
                return body(*args, **kwargs), None, False
        return spec.miss(*args, **kwargs)

    compiled = _finish(spec, miss, body)

    @functools.wraps(body)
    def function(*args: Any, **kwargs: Any) -> Any:
        if state.dynamic is not eager_trace:
            return body(*args, **kwargs)
        try:
            return compiled(*args, **kwargs)
        except ValueError:  # from C++, for a list as a static argument, or from the function itself
            hashable = [_frozen(x) if i in positions else x for i, x in enumerate(args)]
            named = {k: _frozen(x) if k in names else x for k, x in kwargs.items()}
            if (all(x is y for x, y in zip(hashable, args, strict=True))
                    and all(x is kwargs[k] for k, x in named.items())):
                raise
        return compiled(*hashable, **named)

    return function
