"""Functions with transformations around them, as libraries build interpreters of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pyjx.api_util import WrappedFun
from pyjx.core.jaxpr import DebugInfo, no_debug_info
from pyjx.lazy import directory

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]
__dir__ = directory(__name__, __all__)


class StoreException(Exception):
    """Auxiliary output was read before the function was called, or written twice."""


class Store:
    """The auxiliary output of a transformed function."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: list[Any] = []

    def store(self, value: Any) -> None:
        if self._value:
            raise StoreException("Store occupied")
        self._value.append(value)

    def reset(self) -> None:
        self._value.clear()

    @property
    def val(self) -> Any:
        if not self._value:
            raise StoreException("Store empty: the function has not been called")
        return self._value[0]

    def __bool__(self) -> bool:
        return bool(self._value)

    def __call__(self) -> Any:
        return self.val


def wrap_init(f: Callable[..., Any], params: Mapping[str, Any] | None = None, *,
              debug_info: DebugInfo | None = None) -> WrappedFun:
    """A function that can be transformed.

    Args:
      params: keyword arguments of every call.

    >>> from pyjx.extend import linear_util as lu
    >>> lu.wrap_init(lambda x, y: x - y, {"y": 1}).call_wrapped(3)
    2
    """
    call = functools.partial(f, **params) if params else f
    return WrappedFun(f, call, debug_info or no_debug_info)


def transformation2(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """A transformation of wrapped functions from `gen(f, *parameters, *args, **kwargs)`."""
    def transformed(fun: WrappedFun, *parameters: Any) -> WrappedFun:
        def call(*args: Any, **kwargs: Any) -> Any:
            return gen(fun.call_wrapped, *parameters, *args, **kwargs)

        return WrappedFun(fun.f, call, fun.debug_info)

    return transformed


def transformation_with_aux2(gen: Callable[..., Any]
                             ) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """As `transformation2`, for `gen(f, store, *parameters, *args, **kwargs)`, which stores an
    auxiliary output. The second result gives it."""
    def transformed(fun: WrappedFun, *parameters: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store()
        return transformation2(gen)(fun, store, *parameters), store

    return transformed


def _run(gen: Callable[..., Any], call: Callable[..., Any], arguments: tuple[Any, ...],
         kwargs: dict[str, Any]) -> Any:
    """Run a generator that yields arguments, is sent the result, and yields the result of all."""
    steps = gen(*arguments, **kwargs)
    args, given = next(steps)
    result = steps.send(call(*args, **given))
    steps.close()
    return result


def transformation(gen: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """A transformation from a generator `gen(*parameters, *args, **kwargs)`: it yields the pair
    `(args, kwargs)` to call the function with, is sent the result, and yields its own result.

    >>> from pyjx.extend import linear_util as lu
    >>> @lu.transformation
    ... def scaled(factor, x):
    ...     y = yield (x,), {}
    ...     yield factor * y
    >>> scaled(lu.wrap_init(lambda x: x + 1), 10).call_wrapped(2)
    30
    """
    return transformation2(lambda f, *args, **kwargs: _run(gen, f, args, kwargs))


def transformation_with_aux(gen: Callable[..., Any]
                            ) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """As `transformation`, for a generator that yields the pair of its result and of an auxiliary
    output at the end."""
    def body(f: Callable[..., Any], store: Store, *args: Any, **kwargs: Any) -> Any:
        result, aux = _run(gen, f, args, kwargs)
        store.store(aux)
        return result

    return transformation_with_aux2(body)


def cache(call: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`call(fun, *args)` with its results kept by function and arguments."""
    kept: dict[Any, Any] = {}

    @functools.wraps(call)
    def cached(fun: WrappedFun, *args: Any) -> Any:
        key = (fun, *args)
        if key not in kept:
            kept[key] = call(fun, *args)
        return kept[key]

    vars(cached)["cache_clear"] = kept.clear
    return cached


def merge_linear_aux(first: Any, second: Any) -> tuple[bool, Any]:
    """Which of two auxiliary outputs has been stored, of which one has: whether it is the first,
    and what it is.

    Raises:
      StoreException: both or neither have.
    """
    try:
        found = first()
    except StoreException:
        return False, second()
    try:
        second()
    except StoreException:
        return True, found
    raise StoreException("both stores occupied")
