"""`jax._src.util`: lists that are split, merged and mapped, as rules of primitives have them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from pyjx.api_util import safe_map
from pyjx.numpy.axes import canonical_axis as canonicalize_axis

__all__ = [
    "HashableFunction", "HashablePartial", "canonicalize_axis", "ceil_of_ratio", "concatenate",
    "curry", "flatten", "foreach", "fun_name", "memoize", "merge_lists", "partition_list",
    "safe_map", "safe_zip", "split_list", "stable_unique", "subs_list", "subvals",
    "tuple_delete", "tuple_insert", "tuple_update", "unflatten", "unzip2", "unzip3", "wrap_name",
    "wraps",
]


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The tuples of elements of iterables of one length.

    Raises:
      ValueError: the lengths differ.
    """
    if not args:
        raise TypeError("safe_zip requires at least 1 argument.")
    lists = list(map(list, args))
    for i, x in enumerate(lists[1:], 2):
        if len(x) != len(lists[0]):
            how = "shorter" if len(x) < len(lists[0]) else "longer"
            raise ValueError(f"safe_zip() argument {i} is {how} than argument 1")
    return list(zip(*lists, strict=True))


def foreach(f: Callable[..., Any], *args: Iterable[Any]) -> None:
    """Calls `f` with the elements of iterables of one length."""
    for each in safe_zip(*args):
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


def unflatten(xs: Iterable[Any], ns: Sequence[int]) -> list[list[Any]]:
    """A list in parts of given lengths, which are all of it."""
    *parts, rest = split_list(list(xs), ns)
    assert not rest, f"{len(rest)} elements are left over"
    return parts


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


# -- functions -------------------------------------------------------------------------------------


def curry(f: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """A function that takes the first arguments, and gives one that takes the others."""
    return functools.wraps(f)(functools.partial(functools.partial, f))


memoize = functools.cache


def fun_name(fun: Callable[..., Any], default_name: str = "<unnamed function>") -> str:
    """The name of a function, or of the one in a partial application."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__name__", default_name)


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
