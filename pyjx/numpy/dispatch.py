"""How functions that take lists as static arguments are called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from types import FunctionType
from typing import Any, TypeVar, overload

import numpy as np

from pyjx.core.array_type import ArrayLike
from pyjx.core.call_notes import aliases, note_call
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.errors import ConcretizationTypeError, TracerIntegerConversionError
from pyjx.guards import guard
from pyjx.runtime.operations import as_arrays, op_jit
from pyjx.runtime.signature import argument_sets
from pyjx.runtime.transfers import array_for

F = TypeVar("F", bound=Callable[..., Any])


@overload
def numpy_function(fun: F, /, *, static_argnames: tuple[str, ...] = ()) -> F: ...


@overload
def numpy_function(*, static_argnames: tuple[str, ...], known: bool = False,
                   unchanged: Callable[..., Any] | None = None) -> Callable[[F], F]: ...


@guard  # and so what it defines
def numpy_function(fun: Callable[..., Any] | None = None, /, *,
                   static_argnames: tuple[str, ...] = (), known: bool = False,
                   unchanged: Callable[..., Any] | None = None) -> Any:
    """`op_jit` for functions whose static arguments may be lists, which C++ refuses. Costs a
    Python call more. With `known` a NumPy array that it gives inside `jit` stays one.

    `unchanged` says of positional arguments which array the function returns as it is, or None: a
    compiled program would copy it."""
    if fun is None:
        return functools.partial(numpy_function, static_argnames=static_argnames, known=known,
                                 unchanged=unchanged)
    body: Callable[..., Any] = fun
    compiled = op_jit(body, static_argnames=static_argnames, lists=True)
    if not static_argnames:
        return compiled
    positions, names = argument_sets(body, None, static_argnames)

    @functools.wraps(body)
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            if state.dynamic is not eager_trace:
                out = body(*args, **kwargs)
                return out if known else array_for(out)
            if unchanged is not None and not kwargs:
                same = unchanged(*args)
                if same is not None:
                    return same
            try:
                return compiled(*args, **kwargs)
            except ValueError:  # from C++, for a list as a static argument, or from the function
                if any(_holds_tracer(x) for i, x in enumerate(args) if i in positions) or any(
                        _holds_tracer(x) for k, x in kwargs.items() if k in names):
                    return body(*args, **kwargs)  # which takes its value where that is known
                hashable = [_frozen(x) if i in positions else x for i, x in enumerate(args)]
                named = {k: _frozen(x) if k in names else x for k, x in kwargs.items()}
                if (all(x is y for x, y in zip(hashable, args, strict=True))
                        and all(x is kwargs[k] for k, x in named.items())):
                    raise
            return compiled(*hashable, **named)
        except Exception as error:
            if (given := as_arrays(args, kwargs)) is not None:
                return function(*given[0], **given[1])
            note_call(error, body, args, kwargs)
            if isinstance(error, (ConcretizationTypeError, TracerIntegerConversionError)):
                _note_static(error, body, positions, names, args, kwargs)
            raise

    return function


def _note_static(error: Exception, body: Callable[..., Any], positions: Collection[int],
                 names: Collection[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Name the arguments that are traced where a part of the program is chosen by them."""
    parameters = list(inspect.signature(body).parameters)
    traced = [parameters[i] for i, x in enumerate(args) if i in positions and _holds_tracer(x)]
    traced += [k for k, x in kwargs.items() if k in names and _holds_tracer(x)]
    if traced:
        said = ", ".join(map(repr, traced))
        error.add_note(f"Argument {said} is a part of the program, and must be known while it is "
                       "traced: give a Python value, or name it in static_argnames of jit.")


def _holds_tracer(x: ArrayLike) -> bool:
    return isinstance(x, Tracer) or (isinstance(x, (list, tuple)) and any(map(_holds_tracer, x)))


def alias(name: str, function: F, make: Callable[[Any], Any] = op_jit) -> F:
    """A function as another one, with a name of its own, which its messages begin with.

    Args:
      name: its name.
      function: the other function.
      make: what makes the callable of a body.
    """
    body: Any = getattr(function, "__wrapped__", function)
    other = body.__name__
    aliases[name] = other
    code = body.__code__.replace(co_name=name, co_qualname=name)  # errors are told by it
    copy = FunctionType(code, body.__globals__, name, body.__defaults__, body.__closure__)
    copy.__kwdefaults__, copy.__annotations__ = body.__kwdefaults__, body.__annotations__
    copy.__module__ = body.__module__
    copy.__doc__ = f"Alias of `jax.numpy.{other}`.\n\n{body.__doc__}"
    return make(copy)  # type: ignore[no-any-return]


def _frozen(x: Any) -> Any:
    """A static argument made hashable: lists and arrays become tuples."""
    if hasattr(x, "__array__") and not isinstance(x, (np.generic, Tracer, type)):
        x = x.tolist()
    if not isinstance(x, (list, tuple)):
        return x
    frozen = tuple([_frozen(y) for y in x])
    same = isinstance(x, tuple) and all(a is b for a, b in zip(x, frozen, strict=True))
    return x if same else frozen
