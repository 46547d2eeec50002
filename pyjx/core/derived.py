"""What is derived from a jaxpr is kept with it, and goes with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar, cast

from pyjx import configuration
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.source_info import nowhere
from pyjx.core.trace import Tracer

F = TypeVar("F", bound=Callable[..., Any])

MOST_DERIVED = 256  # results that are kept with one jaxpr, such as those for sizes of vmap
MOST_CONTEXTS = 8  # in which each of them is kept
_THE_SOURCE = object()  # stands for the jaxpr itself, which must not hold itself


def derived_under(context: Callable[[], Hashable]) -> Callable[[F], F]:
    """Keep what `fun(closed, *key)` gives with `closed`, for each key and each `context()`.

    The key is the further arguments, which must be hashable; `context` is what the result depends
    on besides them. The result may be `closed` but must not hold it, because then both would live
    until the cyclic garbage collector runs. A result with a tracer among its constants, where a
    rule that the user gave closes over one, is not kept.
    """

    def decorate(fun: F) -> F:
        @wraps(fun)
        def of(closed: ClosedJaxpr, *key: Hashable) -> Any:
            table = closed.derived
            if table is None:
                table = closed.derived = {}
            now = context()
            found = None
            # contexts are compared, not hashed: there is nearly always one, and it is long
            known = table.setdefault((fun, key), [])
            for then, result in known:
                if then == now:
                    found = result
                    break
            if found is None:
                with nowhere():
                    found = fun(closed, *key)
                if not _holds_tracers(found):
                    if len(table) > MOST_DERIVED:
                        with suppress(RuntimeError, KeyError):  # another thread was faster
                            del table[next(iter(table))]
                    del known[:1 - MOST_CONTEXTS]
                    known.append((now, _THE_SOURCE if found is closed else found))
            return closed if found is _THE_SOURCE else found

        return cast(F, of)

    return decorate


def _holds_tracers(x: Any) -> bool:
    if isinstance(x, ClosedJaxpr):
        return any([isinstance(c, Tracer) for c in x.consts])
    return isinstance(x, tuple) and any(map(_holds_tracers, x))


# What depends on the flags that traces depend on.
derived = derived_under(lambda: configuration.trace_context())
# What depends on the program alone.
derived_structure = derived_under(lambda: None)
