"""What the transformations of functions share: their arguments, names and checks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import is_valid_value
from pyjx.jaxlib_api import pytree

registry = pytree.default_registry()
flatten = registry.flatten

Argnums = int | tuple[int, ...]


def check_callable(fun: Any) -> None:
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")


def name_of(fun: Any) -> str:
    """The name of a function, of what a partial wraps, or of an object's class."""
    name = getattr(fun, "__name__", None)
    if name is None:
        inner = getattr(fun, "func", None)
        name = type(fun).__name__ if inner is None else name_of(inner)
    return str(name)


def source_of(fun: Any) -> str:
    """`name at file:line`, for messages."""
    code = getattr(getattr(fun, "__wrapped__", fun), "__code__", None)
    name = name_of(fun)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


def wraps(fun: Any, wrapper: Callable[..., Any], doc: str = "{fun}") -> Callable[..., Any]:
    """`wrapper` with the name and module of `fun`, and a doc string that tells what it is."""
    name = name_of(fun)
    wrapper.__name__ = name
    wrapper.__qualname__ = getattr(fun, "__qualname__", name)
    wrapper.__module__ = getattr(fun, "__module__", None) or wrapper.__module__
    wrapper.__doc__ = doc.format(fun=name)
    wrapper.__wrapped__ = fun  # type: ignore[attr-defined]
    return wrapper


# -- argnums ---------------------------------------------------------------------------------------


def canonical_argnums(argnums: Any) -> Argnums:
    """An int or a tuple of ints.

    Raises:
      TypeError: `argnums` is neither an integer nor a sequence of integers.
    """
    if isinstance(argnums, int):
        return argnums
    if hasattr(argnums, "__index__"):
        return operator.index(argnums)
    return tuple([operator.index(i) for i in argnums])


def require_argnums(argnums: Argnums, n_args: int) -> None:
    """Raise TypeError if there are fewer positional arguments than `argnums` speaks of."""
    highest = argnums if isinstance(argnums, int) else max(argnums)
    if n_args <= highest:
        raise TypeError(
            f"differentiating with respect to argnums={argnums} requires at least {highest + 1} "
            f"positional arguments to be passed by the caller, but got only {n_args} positional "
            "arguments."
        )


def position(i: int, n_args: int) -> int:
    """The index among `n_args` positional arguments, counted from the front."""
    if not -n_args <= i < n_args:
        raise ValueError(
            "Positional argument indices, e.g. for `static_argnums`, must have value greater than "
            "or equal to -len(args) and less than len(args), but got value "
            f"{i} for len(args) == {n_args}."
        )
    return i + n_args if i < 0 else i


def at_argnums(
    fun: Callable[..., Any], argnums: Argnums, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """`fun` as a function of the arguments at `argnums` only, and those arguments."""
    if isinstance(argnums, int):
        if not kwargs and len(args) == 1 and argnums in (0, -1):
            return fun, tuple(args)
        i = position(argnums, len(args))
        before, after = args[:i], args[i + 1:]

        def of_one(x: Any) -> Any:
            return fun(*before, x, *after, **kwargs)

        return of_one, (args[i],)
    positions = [position(i, len(args)) for i in argnums]

    def of_some(*xs: Any) -> Any:
        merged = list(args)
        for i, x in zip(positions, xs, strict=True):
            merged[i] = x
        return fun(*merged, **kwargs)

    return of_some, tuple([args[i] for i in positions])


# -- values ----------------------------------------------------------------------------------------


def check_values(values: Sequence[Any], end: str = "") -> None:
    """Raise TypeError unless each of `values` can be traced."""
    for x in values:
        if not is_valid_value(x):
            raise TypeError(f"Argument {x!r} of type {type(x)} is not a valid JAX type{end}")


def split_aux(result: Any) -> tuple[Any, Any]:
    """Output and auxiliary data of a function with `has_aux`."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(
            "expected function with aux output to return a two-element tuple, but got type "
            f"{type(result)} with value {result!r}"
        )
    return result[0], result[1]
