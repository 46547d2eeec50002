"""How the functions of this package are called.

A function is plain Python that promotes its operands and binds primitives. On concrete arguments
it is one compiled program behind a C++ callable; where something is traced the Python itself runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from pyjx.core.avals import aval_makers
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.runtime.jit import JitSpec, pjit_callable
from pyjx.runtime.signature import argument_sets


@overload
def array_function(fun: Callable[..., Any], /) -> Any: ...


@overload
def array_function(*, static_argnames: tuple[str, ...]) -> Callable[[Callable[..., Any]], Any]: ...


def array_function(fun: Callable[..., Any] | None = None, /, *,
                   static_argnames: tuple[str, ...] = ()) -> Any:
    """The C++ callable of a function whose positional arguments are arrays and scalars.

    Arguments of any other type (tracers, lists, objects with `__jax_array__`) go to the Python
    function as they are, which converts or refuses them.
    """
    if fun is None:
        return functools.partial(_compiled, static_argnames=static_argnames, known=_is_array)
    return _compiled(fun, static_argnames, _is_array)


def numpy_function(fun: Callable[..., Any] | None = None, /, *,
                   static_argnames: tuple[str, ...] = ()) -> Any:
    """As `array_function`, for functions that also take lists of arrays, and lists as static
    arguments, which C++ refuses. Costs a Python call more."""
    if fun is None:
        return functools.partial(numpy_function, static_argnames=static_argnames)
    body: Callable[..., Any] = fun
    compiled = _compiled(body, static_argnames, _is_array_or_list)
    positions, names = argument_sets(body, None, static_argnames)

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


def _compiled(fun: Callable[..., Any], static_argnames: tuple[str, ...],
              known: Callable[[Any], bool]) -> Any:
    """The C++ callable; calls with arguments that are not `known` go to the Python function."""
    positions, names = argument_sets(fun, None, static_argnames) if static_argnames else ((), ())
    spec = JitSpec(fun, positions, names, (), (), False, True, (), None)

    def miss(*args: Any, **kwargs: Any) -> Any:
        if state.dynamic is not eager_trace:
            return fun(*args, **kwargs), None, False
        for i, x in enumerate(args):
            if i not in positions and not known(x):
                return fun(*args, **kwargs), None, False
        for key, x in kwargs.items():
            if key not in names and not known(x):
                return fun(*args, **kwargs), None, False
        return spec.miss(*args, **kwargs)

    return pjit_callable(spec, miss, fun)


def _is_array(x: Any) -> bool:
    return type(x) in aval_makers


def _is_array_or_list(x: Any) -> bool:
    kind = type(x)
    if kind is list or kind is tuple:
        return all(map(_is_array_or_list, x))
    return kind in aval_makers or x is None


def _frozen(x: Any) -> Any:
    """A static argument made hashable: lists and arrays become tuples."""
    if hasattr(x, "__array__") and not isinstance(x, (np.generic, Tracer)):
        x = x.tolist()
    if not isinstance(x, (list, tuple)):
        return x
    frozen = tuple([_frozen(y) for y in x])
    same = isinstance(x, tuple) and all(a is b for a, b in zip(x, frozen, strict=True))
    return x if same else frozen


__all__ = ["array_function", "numpy_function"]
