"""Functions with transformations around them, as libraries build interpreters of them."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyjx import configuration
from pyjx.core.bounded import BoundedDict
from pyjx.core.jaxpr import DebugInfo, no_debug_info
from pyjx.core.named_axes import named_axes
from pyjx.core.records import Alike, Field, of_field
from pyjx.lazy import directory

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]


class StoreException(Exception):
    """Auxiliary output was read before the function was called, or written twice.

    Ways out: call the function that `transformation_with_aux` gives before what it stores is read,
    and make another one for another call.
    """


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


class EqualStore(Store):
    """A store that takes an equal output again."""

    __slots__ = ()

    def store(self, value: Any) -> None:
        if not self._value:
            self._value.append(value)
        elif self._value[0] != value:
            raise StoreException(f"Store occupied by {self._value[0]!r}, got {value!r}")


class WrappedFun(Alike):
    """A function, and what is around it. `call_wrapped` calls it with all of that.

    Two of one function with the same transformations around it are equal.

    Args:
      f: the function.
      f_transformed: it with all that is around it.
      transforms: pairs of a transformation and its parameters, outermost first.
      stores: for each of them where its auxiliary output goes, or None.
      params: pairs of a name and a value: keyword arguments of every call.
      in_type: the types of the arguments, where they are known.
    """

    __slots__ = ("__weakref__", "debug_info", "f", "f_transformed", "in_type", "params", "stores",
                 "transforms")

    _key = of_field("key")

    def __init__(self, f: Callable[..., Any], f_transformed: Callable[..., Any],
                 transforms: tuple[Any, ...] = (), stores: tuple[Store | None, ...] = (),
                 params: tuple[tuple[str, Any], ...] = (), in_type: Any = None,
                 debug_info: DebugInfo = no_debug_info) -> None:
        self.f = f
        self.f_transformed = f_transformed
        self.debug_info = debug_info
        self.transforms = transforms
        self.stores = stores
        self.params = params
        self.in_type = in_type

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        return self.f_transformed(*args, **kwargs)

    __call__ = call_wrapped

    def wrap(self, gen: Callable[..., Any], gen_static_args: tuple[Any, ...],
             out_store: Store | None) -> WrappedFun:
        """The function with `gen(f, *gen_static_args, *args, **kwargs)` around it, which gets
        `out_store` after `f` if there is one."""
        given = (self.f_transformed, *([] if out_store is None else [out_store]), *gen_static_args)
        return WrappedFun(
            self.f, functools.partial(gen, *given), ((gen, gen_static_args), *self.transforms),
            (out_store, *self.stores), self.params, debug_info=self.debug_info)

    def populate_stores(self, stores: Sequence[Store | None]) -> None:
        """Store the auxiliary outputs of another call of an equal function."""
        for own, other in zip(self.stores, stores, strict=True):
            if own is not None and other is not None:
                own.store(other.val)

    def _replace(self, debug_info: DebugInfo) -> WrappedFun:
        return WrappedFun(self.f, self.f_transformed, self.transforms, self.stores, self.params,
                          self.in_type, debug_info)

    def replace_debug_info(self, dbg: DebugInfo) -> WrappedFun:
        """The same with another debug info."""
        return self._replace(dbg)

    def with_unknown_names(self) -> WrappedFun:
        """The same, of which the names of arguments and results are not known."""
        return self._replace(self.debug_info.with_unknown_names())

    @property
    def key(self) -> tuple[Any, ...]:
        """What two functions share that do the same: the function, and what is around it."""
        return self.f, self.transforms, self.params, self.in_type

    def __repr__(self) -> str:
        around = [f"\n{i:<3}: {gen.__name__}" for i, (gen, _) in enumerate(self.transforms)]
        return f"Wrapped function:{''.join(around)}\nCore: {getattr(self.f, '__name__', self.f)}"


def wrap_init(f: Callable[..., Any], params: Mapping[str, Any] | None = None, *,
              debug_info: DebugInfo | None = None) -> WrappedFun:
    """A function that can be transformed.

    Args:
      params: keyword arguments of every call.

    >>> from pyjx.extend import linear_util as lu
    >>> lu.wrap_init(lambda x, y: x - y, {"y": 1}).call_wrapped(3)
    2
    """
    given = {} if params is None else dict(params)
    call = functools.partial(f, **given) if given else f
    return WrappedFun(f, call, params=tuple(sorted(given.items())),
                      debug_info=debug_info or no_debug_info)


def _curried(transform: Callable[..., Any]) -> Callable[..., Any]:
    """A transformation that may be given its first argument alone, as a decorator is."""
    @functools.wraps(transform)
    def curried(gen: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if args:
            return transform(gen, *args, **kwargs)
        return functools.partial(transform, gen, **kwargs)

    return curried


@_curried
def transformation2(gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """A transformation of wrapped functions from `gen(f, *parameters, *args, **kwargs)`."""
    return fun.wrap(gen, gen_static_args, None)


@_curried
def transformation_with_aux2(gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any,
                             use_eq_store: bool = False, unk_names: bool = False
                             ) -> tuple[WrappedFun, Callable[[], Any]]:
    """As `transformation2`, for `gen(f, store, *parameters, *args, **kwargs)`, which stores an
    auxiliary output. The second result gives it.

    Args:
      use_eq_store: it may be called again, if it stores an equal output.
      unk_names: nothing is known of the names of its arguments and results.
    """
    store = EqualStore() if use_eq_store else Store()
    wrapped = fun.wrap(gen, gen_static_args, store)
    return wrapped.with_unknown_names() if unk_names else wrapped, store


def _run(gen: Callable[..., Any], call: Callable[..., Any], arguments: tuple[Any, ...],
         kwargs: dict[str, Any]) -> Any:
    """Run a generator that yields arguments, is sent the result, and yields the result of all."""
    steps = gen(*arguments, **kwargs)
    args, given = next(steps)
    result = steps.send(call(*args, **given))
    steps.close()
    return result


class _OfGenerator(Alike):
    """The body of a transformation that a generator is."""

    __slots__ = ("aux", "gen")

    def __init__(self, gen: Callable[..., Any], aux: bool) -> None:
        self.gen = gen
        self.aux = aux

    def __call__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not self.aux:
            return _run(self.gen, f, args, kwargs)
        store, *rest = args
        result, aux = _run(self.gen, f, tuple(rest), kwargs)
        store.store(aux)
        return result

    __name__: Field[str] = of_field("gen.__name__")


@_curried
def transformation(gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """A transformation from a generator `gen(*parameters, *args, **kwargs)`: it yields the pair
    `(args, kwargs)` to call the function with, is sent the result, and yields its own result.

    >>> from pyjx.extend import linear_util as lu
    >>> @lu.transformation
    ... def scaled(factor, x):
    ...     y = yield (x,), {}
    ...     yield factor * y
    ...
    >>> scaled(lu.wrap_init(lambda x: x + 1), 10).call_wrapped(2)
    30
    """
    return fun.wrap(_OfGenerator(gen, aux=False), gen_static_args, None)


@_curried
def transformation_with_aux(gen: Callable[..., Any], fun: WrappedFun, *gen_static_args: Any,
                            ) -> tuple[WrappedFun, Callable[[], Any]]:
    """As `transformation`, for a generator that yields the pair of its result and of an auxiliary
    output at the end."""
    store = Store()
    return fun.wrap(_OfGenerator(gen, aux=True), gen_static_args, store), store


def cache(call: Callable[..., Any], *, explain: Callable[..., Any] | None = None
          ) -> Callable[..., Any]:
    """`call(fun, *args)` with its results kept by function and arguments, and by the flags and the
    named axes that a trace depends on; as long as the function lives, and no more than 1024 a
    function.

    Args:
      explain: `explain(fun, *args)` is called where no result is kept yet.
    """
    kept: weakref.WeakKeyDictionary[Any, BoundedDict] = weakref.WeakKeyDictionary()

    @functools.wraps(call)
    def cached(fun: WrappedFun, *args: Any) -> Any:
        key = fun.key[1:], args, configuration.trace_context(), named_axes()
        try:
            results = kept.setdefault(fun.f, BoundedDict(1024, "results of linear_util.cache"))
            found = results.get(key)
        except TypeError:  # a function without weak references, or an unhashable argument
            return call(fun, *args)
        if found is not None:
            fun.populate_stores(found[1])
            return found[0]
        if explain is not None:
            explain(fun, *args)
        result = call(fun, *args)
        results[key] = result, fun.stores
        return result

    vars(cached)["cache_clear"] = kept.clear
    return cached


def merge_linear_aux(aux1: Any, aux2: Any) -> tuple[bool, Any]:
    """Which of two auxiliary outputs has been stored, of which one has: whether it is the first,
    and what it is.

    Raises:
      StoreException: both or neither have.
    """
    try:
        found = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, found
    raise StoreException("both stores occupied")


__dir__ = directory(__name__, __all__)
