"""How the library's own functions are called.

A function is plain Python that binds primitives. On concrete arguments it is one compiled program
behind a C++ callable; where something is traced the Python itself runs, so jaxprs stay flat. What
it gives unchanged of NumPy's it gives as an array, as the compiled program does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import islice
from operator import attrgetter, is_
from typing import Any, Protocol, TypeVar, overload

from pyjx.core.avals import aval_makers, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.evaluation import all_eqns
from pyjx.core.options import Inline
from pyjx.core.scalars import int_fits
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.guards import guard
from pyjx.lazy import deferred
from pyjx.runtime.dispatch import Miss, registry
from pyjx.runtime.jit import JitSpec, Options, pjit_callable
from pyjx.runtime.signature import argument_sets
from pyjx.runtime.transfers import array_for

call_notes = deferred("pyjx.core.call_notes")  # for errors alone

F = TypeVar("F", bound=Callable[..., Any])


class _SameType(Protocol):
    def __call__(self, function: F, /) -> F: ...


body_of: _SameType = attrgetter("__wrapped__")  # the Python function that one is compiled of


@overload
def op_jit(fun: F, *, static_argnums: Any = None, static_argnames: Any = None,
           lists: bool = False, trees: bool = False) -> F: ...


@overload
def op_jit(fun: None = None, *, static_argnums: Any = None, static_argnames: Any = None,
           lists: bool = False, trees: bool = False) -> Callable[[F], F]: ...


@guard  # and so what it defines
def op_jit(fun: Callable[..., Any] | None = None, *, static_argnums: Any = None,
           static_argnames: Any = None, lists: bool = False, trees: bool = False) -> Any:
    """The C++ callable of a function of arrays and scalars and, with `lists`, of lists of them or,
    with `trees`, of pytrees of them.

    Arguments of any other type (tracers, objects with `__jax_array__`, integers that are too large
    for an array) go to the Python function as they are, which converts or refuses them.
    """
    if fun is None:
        return partial(op_jit, static_argnums=static_argnums, static_argnames=static_argnames,
                       lists=lists, trees=trees)
    positions, names = argument_sets(fun, static_argnums, static_argnames)
    spec = JitSpec(fun, _options(positions, names), is_operation=True)
    compiled_miss = spec.miss
    known = _is_tree_of_arrays if trees else _is_array_or_list if lists else _is_array
    is_traced = _is_traced_tree if trees else _is_tracer

    some_are_short = False  # calls on tracers, of which the others need not be looked up

    def call_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return (fun, *[x if i in positions else _kind(x) for i, x in enumerate(args)],
                *[(k, x if k in names else _kind(x)) for k, x in kwargs.items()])

    def is_short(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        try:
            return call_key(args, kwargs) in _short
        except TypeError:  # an unhashable static argument, which `trace` refuses
            return False

    def miss(*args: Any, **kwargs: Any) -> Miss:
        nonlocal some_are_short
        try:
            if state.dynamic is not eager_trace:
                out = fun(*args, **kwargs)
                return array_for(out), None, False
            strange = [x for i, x in enumerate(args) if i not in positions and not known(x)]
            strange += [x for key, x in kwargs.items() if key not in names and not known(x)]
            if not all(map(is_traced, strange)):
                return fun(*args, **kwargs), None, False
            if not strange:
                return compiled_miss(*args, **kwargs)
            # An eager derivative or batch: the program's own is compiled once, called as a whole.
            if some_are_short and is_short(args, kwargs):
                return fun(*args, **kwargs), None, False
            program, leaves = spec.trace(args, kwargs)
            closed = program.closed
            if closed.effects or len(list(islice(all_eqns(closed), LONG))) < LONG:
                some_are_short = True
                _short[call_key(args, kwargs)] = True
                return fun(*args, **kwargs), None, False
            return spec.bind_call(program, leaves), None, False
        except Exception as error:
            if (given := as_arrays(args, kwargs)) is not None:
                return miss(*given[0], **given[1])
            call_notes.note_call(error, fun, args, kwargs)
            raise

    return pjit_callable(spec, miss, fun)


def as_arrays(args: Sequence[Any], kwargs: dict[str, Any]
              ) -> tuple[list[Any], dict[str, Any]] | None:
    """Arguments that an operation of arrays has refused, where some are traced values of libraries'
    types: with the arrays that these stand for. None: there are no such."""
    given, others = list(map(_array_of, args)), {k: _array_of(x) for k, x in kwargs.items()}
    same = all(map(is_, (*given, *others.values()), (*args, *kwargs.values())))
    return None if same else (given, others)


def _array_of(x: Any) -> Any:
    if type(x) is list or type(x) is tuple:
        parts = list(map(_array_of, x))
        return x if all(map(is_, parts, x)) else type(x)(parts)
    array = x.aval.array_of(x) if isinstance(x, Tracer) else None
    return x if array is None else array


@cache
def _options(positions: tuple[int, ...], names: tuple[str, ...]) -> Options:
    """The options of an operation: many have the same, and modules that define some load while
    users' functions are traced."""
    return Options(positions, names, inline=Inline.JAX_EARLY)


# From so many equations on, a call under an eager derivative is faster as one operation.
LONG = 5


# Calls whose programs are shorter, or have effects, by the function and what is known of arguments:
# all that takes them is cheaper than to find the program.
_short = BoundedDict(8192, "calls of short functions")


def _kind(x: Any) -> Any:
    """What the length of a program may depend on of an argument that is traced."""
    if isinstance(x, Tracer):
        return x.aval
    if type(x) in aval_makers:
        return get_aval(x)
    leaves, tree = registry.flatten(x)
    return tree, *map(_kind, leaves)


def _is_array(x: Any) -> bool:
    return (type(x) in aval_makers and not isinstance(x, Tracer)
            and (type(x) is not int or int_fits(x, get_aval(x))))


def _is_tracer(x: Any) -> bool:
    return isinstance(x, Tracer)


def _is_tree_of_arrays(x: Any) -> bool:
    return _is_array(x) or all(map(_is_array, registry.flatten(x)[0]))


def _is_traced_tree(x: Any) -> bool:
    return all([type(leaf) in aval_makers for leaf in registry.flatten(x)[0]])


def _is_array_or_list(x: Any) -> bool:
    kind = type(x)
    if kind is list or kind is tuple:
        return all(map(_is_array_or_list, x))
    return x is None or _is_array(x)
