"""`jax._src.util`: lists that are split, merged and mapped, as rules of primitives have them, and
functions that are named, compared and cached."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from pyjx import configuration
from pyjx.api_util import safe_map
from pyjx.numpy.axes import canonical_axis as canonicalize_axis

__all__ = [
    "HashableFunction", "HashablePartial", "HashableWrapper", "OrderedSet", "Unhashable",
    "cache", "canonicalize_axis", "canonicalize_axis_tuple", "ceil_of_ratio", "concatenate",
    "curry", "flatten", "foreach", "fun_name", "fun_qual_name", "memoize", "merge_lists",
    "partition_list", "safe_map", "safe_zip", "set_module", "split_list", "split_list_checked",
    "stable_unique", "subs_list", "subvals", "toposort", "tuple_delete", "tuple_insert",
    "tuple_update", "unflatten", "unzip2", "unzip3", "weakref_lru_cache", "wrap_name", "wraps",
]

T = TypeVar("T")


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The tuples of elements of iterables of one length.

    Raises:
      ValueError: the lengths differ.
    """
    if not args:
        raise TypeError("safe_zip requires at least 1 argument")
    lists = list(map(list, args))
    sizes = tuple(map(len, lists))
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            raise ValueError(f"safe_zip() argument {i} has length {size} but argument 0 has length "
                             f"{sizes[0]}. All lengths: {sizes}")
    return list(zip(*lists, strict=True))


def foreach(f: Callable[..., Any], *args: Iterable[Any]) -> None:
    """Calls `f` with the elements of iterables of one length.

    Raises:
      ValueError: the lengths differ.
    """
    lists = list(map(list, args))
    for i, x in enumerate(lists[1:], 2):
        if len(x) != len(lists[0]):
            how = "shorter" if len(x) < len(lists[0]) else "longer"
            raise ValueError(f"foreach() argument {i} is {how} than argument 1")
    for each in zip(*lists, strict=True):
        f(*each)


def unzip2(xys: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Pairs as a pair of tuples.

    >>> unzip2([(1, 2), (3, 4)])
    ((1, 3), (2, 4))
    """
    pairs = list(xys)
    return tuple([x for x, _ in pairs]), tuple([y for _, y in pairs])


def unzip3(xyzs: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], ...]:
    """Triples as a triple of tuples."""
    triples = list(xyzs)
    return tuple([tuple([t[i] for t in triples]) for i in range(3)])


def split_list(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """A list in parts of given lengths, and the rest.

    >>> split_list([1, 2, 3, 4], [1, 2])
    [[1], [2, 3], [4]]
    """
    parts, rest = [], list(args)
    for n in ns:
        parts.append(rest[:n])
        rest = rest[n:]
    return [*parts, rest]


def split_list_checked(args: Iterable[Any], ns: Sequence[int]) -> list[list[Any]]:
    """A list in parts of given lengths, which are all of it."""
    items = list(args)
    assert sum(ns) == len(items) and all(n >= 0 for n in ns), (ns, len(items))
    return split_list(items, ns)[:-1]


unflatten = split_list_checked


def partition_list(bs: Sequence[bool], l: Sequence[Any]) -> tuple[list[Any], list[Any]]:  # noqa: E741
    """The elements whose flag is false, and the others.

    >>> partition_list([True, False, True], "abc")
    (['b'], ['a', 'c'])
    """
    assert len(bs) == len(l), f"{len(bs)} flags for {len(l)} elements"
    return ([x for b, x in zip(bs, l, strict=True) if not b],
            [x for b, x in zip(bs, l, strict=True) if b])


def merge_lists(bs: Sequence[bool], l0: Sequence[Any], l1: Sequence[Any]) -> list[Any]:
    """What `partition_list` parted.

    >>> merge_lists([True, False, True], "b", "ac")
    ['a', 'b', 'c']
    """
    assert sum(bs) == len(l1) and len(bs) == len(l0) + len(l1), (bs, len(l0), len(l1))
    absent, there = iter(l0), iter(l1)
    return [next(there if b else absent) for b in bs]


def subs_list(subs: Sequence[int | None], src: Sequence[Any], base: Sequence[Any]) -> list[Any]:
    """For each place the element of `src` that it names, or the next one of `base`."""
    left = iter(base)
    return [next(left) if i is None else src[i] for i in subs]


def subvals(lst: Sequence[Any], replace: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """The elements, with others at some places."""
    found = list(lst)
    for i, value in replace:
        found[i] = value
    return tuple(found)


def concatenate(xs: Iterable[Sequence[Any]]) -> list[Any]:
    """The elements of sequences, one after the other."""
    return [x for each in xs for x in each]


flatten = concatenate


def stable_unique(it: Iterable[Any]) -> Iterable[Any]:
    """The elements without those that came before."""
    return dict.fromkeys(it).keys()


def tuple_insert(t: tuple[Any, ...], idx: int, val: Any) -> tuple[Any, ...]:
    """The tuple with a value more."""
    assert 0 <= idx <= len(t), (idx, len(t))
    return (*t[:idx], val, *t[idx:])


def tuple_delete(t: tuple[Any, ...], idx: int) -> tuple[Any, ...]:
    """The tuple with a value less."""
    assert 0 <= idx < len(t), (idx, len(t))
    return (*t[:idx], *t[idx + 1:])


def tuple_update(t: tuple[Any, ...], idx: int, val: Any) -> tuple[Any, ...]:
    """The tuple with another value at a place."""
    assert 0 <= idx < len(t), (idx, len(t))
    return (*t[:idx], val, *t[idx + 1:])


def ceil_of_ratio(x: int, y: int) -> int:
    """x / y, rounded up.

    >>> ceil_of_ratio(5, 2)
    3
    """
    return -(-x // y)


def canonicalize_axis_tuple(axis: int | Sequence[int] | None, ndim: int,
                            allow_duplicate: bool = False) -> tuple[int, ...]:
    """Axes counted from the front; None stands for all of them.

    >>> canonicalize_axis_tuple((0, -1), 3), canonicalize_axis_tuple(None, 2)
    ((0, 2), (0, 1))
    """
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, Sequence) else (axis,)
    axes = tuple([canonicalize_axis(i, ndim) for i in given])
    if not allow_duplicate and len(set(axes)) < len(axes):
        raise ValueError(f"repeated axis: {axis}")
    return axes


# -- functions -------------------------------------------------------------------------------------


def curry(f: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """A function that takes the first arguments, and gives one that takes the others."""
    return functools.wraps(f)(functools.partial(functools.partial, f))


def fun_name(fun: Callable[..., Any], default_name: str = "<unnamed function>") -> str:
    """The name of a function, or of the one in a partial application."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__name__", default_name)


def fun_qual_name(fun: Callable[..., Any]) -> str:
    """As `fun_name`, with the names of the classes and functions that it is defined in."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__qualname__", fun_name(fun))


def wrap_name(transform_name: str, name: str) -> str:
    """The name of a transformed function.

    >>> wrap_name("jvp", "f")
    'jvp(f)'
    """
    return f"{transform_name}({name})"


def wraps(wrapped: Callable[..., Any], namestr: str | None = None, docstr: str | None = None,
          **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator: the function has the name, in a pattern such as "grad({fun})", and the
    documentation of another one, in a pattern with `{fun}` and `{doc}` if one is given."""
    def decorate(fun: Any) -> Any:
        name, doc = fun_name(wrapped), getattr(wrapped, "__doc__", "") or ""
        fun.__name__ = name if namestr is None else namestr.format(fun=name)
        fun.__qualname__ = getattr(wrapped, "__qualname__", fun.__name__)
        fun.__module__ = getattr(wrapped, "__module__", "<unknown module>")
        fun.__doc__ = doc if docstr is None else docstr.format(fun=name, doc=doc, **kwargs)
        fun.__wrapped__ = wrapped
        return fun

    return decorate


def set_module(module: str) -> Callable[[Any], Any]:
    """A decorator: what is defined says that it is of another module."""
    def decorate(thing: Any) -> Any:
        thing.__module__ = module
        return thing

    return decorate


class HashableFunction:
    """A function that equals others with the same closure, as its maker says what that is."""

    def __init__(self, f: Callable[..., Any], closure: Hashable) -> None:
        self.f, self.closure = f, closure

    def __eq__(self, other: object) -> bool:
        return (type(other) is HashableFunction and self.f.__code__ == other.f.__code__
                and self.closure == other.closure)

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.closure))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<hashable {fun_name(self.f)} with closure={self.closure}>"


class HashablePartial:
    """A partial application that equals those of the same function and arguments."""

    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def _parts(self) -> Iterator[Any]:
        yield from (self.f.__code__, self.args, tuple(self.kwargs.items()))

    def __eq__(self, other: object) -> bool:
        return type(other) is HashablePartial and [*self._parts()] == [*other._parts()]

    def __hash__(self) -> int:
        return hash(tuple(self._parts()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)


class HashableWrapper:
    """A value that can be hashed: by what it is where it can be, else as the object that it is.

    >>> HashableWrapper((1,)) == HashableWrapper((1,)), HashableWrapper([1]) == HashableWrapper([1])
    (True, False)
    """

    def __init__(self, x: Any) -> None:
        self.x = x
        try:
            self.hash: int | None = hash(x)
        except TypeError:
            self.hash = None

    def __hash__(self) -> int:
        return id(self.x) if self.hash is None else self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashableWrapper) and (
            self.x is other.x or (self.hash is not None and bool(self.x == other.x)))


class Unhashable:
    """A value that cannot be hashed, whatever it is."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, val: Any) -> None:
        self.val = val

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unhashable) and bool(self.val == other.val)


class OrderedSet(Generic[T]):
    """A set whose elements come in the order in which they were added.

    >>> elements = OrderedSet([3, 1])
    >>> elements.update([2, 1])
    >>> list(elements), 2 in elements
    ([3, 1, 2], True)
    """

    def __init__(self, elements: Iterable[T] = ()) -> None:
        self._elements = dict.fromkeys(elements)

    def add(self, element: T) -> None:
        """Put an element at the end, unless it is there."""
        self._elements.setdefault(element)

    def update(self, elements: Iterable[T]) -> None:
        """Add each of the elements."""
        for element in elements:
            self.add(element)

    def __iter__(self) -> Iterator[T]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __contains__(self, element: object) -> bool:
        return element in self._elements


def toposort(end_nodes: Iterable[Any]) -> list[Any]:
    """The nodes that some nodes come from, by their `parents`, each behind its own, and themselves.

    >>> from types import SimpleNamespace
    >>> first = SimpleNamespace(name="first", parents=[])
    >>> last = SimpleNamespace(name="last", parents=[first, first])
    >>> [node.name for node in toposort([last])]
    ['first', 'last']
    """
    done: dict[int, Any] = {}
    waiting = list(end_nodes)[::-1]
    while waiting:
        node = waiting[-1]
        missing = [p for p in node.parents if id(p) not in done]
        waiting += missing[::-1]
        if not missing:
            done.setdefault(id(waiting.pop()), node)
    return list(done.values())


# -- caches ----------------------------------------------------------------------------------------


def cache(max_size: int | None = 4096,
          trace_context_in_key: bool | Callable[[], Hashable] = True,
          num_shards: int = 64) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: what a function gives is kept, the latest `max_size` results.

    Args:
      max_size: how many; None for all.
      trace_context_in_key: whether results are kept for each setting of the flags that traces
        depend on, or a function that gives something else to keep them for.
      num_shards: JAX's parts of the cache; there is one here.

    >>> @cache(max_size=2)
    ... def double(x):
    ...     return 2 * x
    >>> double(3), double(3), double.cache_info().hits
    (6, 6, 1)
    """
    context = (trace_context_in_key if callable(trace_context_in_key)
               else configuration.trace_context if trace_context_in_key else lambda: ())

    def decorate(f: Callable[..., Any]) -> Any:
        kept = functools.lru_cache(max_size)(lambda _, /, *args, **kwargs: f(*args, **kwargs))

        @functools.wraps(f)
        def cached(*args: Any, **kwargs: Any) -> Any:
            return kept(context(), *args, **kwargs)

        return _with_cache(cached, kept.cache_clear, kept.cache_info)

    return decorate


def memoize(f: Callable[..., Any]) -> Any:
    """A function whose results are kept for good: `cache` without a bound."""
    return cache(max_size=None)(f)


def weakref_lru_cache(f: Callable[..., Any] | None = None, *, maxsize: int | None = 2048,
                      trace_context_in_key: bool = True, explain: Any = None) -> Any:
    """As `cache`, for a function whose first argument is held weakly: what was kept for it goes
    with it. `maxsize` is how many results are kept for each first argument."""
    if f is None:
        return functools.partial(weakref_lru_cache, maxsize=maxsize, explain=explain,
                                 trace_context_in_key=trace_context_in_key)
    of_each: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def cache_of(first: Any) -> Any:
        weak = ref(first)
        return cache(maxsize, trace_context_in_key)(
            lambda *args, **kwargs: f(weak(), *args, **kwargs))

    @functools.wraps(f)
    def cached(first: Any, *args: Any, **kwargs: Any) -> Any:
        known = of_each.get(first)
        if known is None:
            known = of_each.setdefault(first, cache_of(first))
        return known(*args, **kwargs)

    def cache_info() -> Any:
        infos = [known.cache_info() for known in of_each.values()]
        hits, misses, size = [sum(column) for column in zip(
            *[(i.hits, i.misses, i.currsize) for i in infos], strict=True)] or (0, 0, 0)
        return _CacheInfo(hits, misses, maxsize, size)

    return _with_cache(cached, of_each.clear, cache_info)


_CacheInfo = namedtuple("_CacheInfo", "hits misses maxsize currsize")


def _with_cache(cached: Any, clear: Callable[[], None], info: Callable[[], Any]) -> Any:
    cached.cache_clear, cached.cache_info = clear, info
    return cached
