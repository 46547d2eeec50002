"""Which arguments of a function are static or donated, and what its leaves are called."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType
from typing import Any, NoReturn

import numpy as np

from pyjx.core.avals import get_aval, is_valid_value
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo
from pyjx.core.prefixes import structure_differences
from pyjx.core.records import Record
from pyjx.core.value_texts import OWN_CALL, as_pytree, counted, shortened, without_numbers
from pyjx.engine.functions import leaf_paths, source_of
from pyjx.engine.types import TreeDef
from pyjx.errors import as_field
from pyjx.lazy import deferred
from pyjx.tree_util import keystr, tree_structure, treedef_tuple

advice = deferred("pyjx.core.advice")  # for errors alone
inspect = deferred("inspect")  # slow to load, and seldom needed

# Flags of code objects.
_VARIADIC, _VARIADIC_KEYWORDS, _GENERATOR, _ASYNC = 0x04, 0x08, 0x20, 0x80 | 0x200


class Parameters(Record):
    """Names of a function's parameters.

    `positional` can be given by position; `every` has the keyword-only ones too, and of its first
    `n_unnamed` none can be given by name. `variadic` and `keywords` are the names of `*args` and
    `**kwargs`, None where there is none.
    """

    positional: tuple[str, ...]
    every: tuple[str, ...]
    variadic: str | None
    keywords: str | None
    n_unnamed: int = 0


# What says how a function itself is called: not so of what is made of it.
_OF_CALLS = frozenset({"_jit_spec", "jit_traces"})


def own_attributes(fun: Callable[..., Any]) -> dict[str, Any]:
    """The attributes that a function or a callable object has been given, for what is made of it.
    """
    return {name: value for name, value in getattr(fun, "__dict__", {}).items()
            if not name.startswith("__") and name not in _OF_CALLS}


def plain_code(fun: Callable[..., Any]) -> CodeType | None:
    """The code of a plain function, whose signature it tells; None for any other callable."""
    if type(fun) is not FunctionType:
        return None
    attributes = fun.__dict__
    if attributes and ("__wrapped__" in attributes or "__signature__" in attributes):
        return None
    return fun.__code__


def parameters_of_code(code: CodeType) -> Parameters:
    """What inspect would say, without importing it."""
    n = code.co_argcount
    n_every = n + code.co_kwonlyargcount
    names = code.co_varnames
    variadic = names[n_every] if code.co_flags & _VARIADIC else None
    last = n_every + (variadic is not None)
    keywords = names[last] if code.co_flags & _VARIADIC_KEYWORDS else None
    return Parameters(names[:n], names[:n_every], variadic, keywords, code.co_posonlyargcount)


def parameters_of(fun: Callable[..., Any]) -> Parameters | None:
    """The parameters of `fun`, or None if it does not tell."""
    code = plain_code(fun)
    if code is not None:
        return parameters_of_code(code)
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        return None
    positional = tuple([p.name for p in parameters
                        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)])
    every = positional + tuple([p.name for p in parameters if p.kind is p.KEYWORD_ONLY])
    variadic = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    keywords = [p.name for p in parameters if p.kind is p.VAR_KEYWORD]
    return Parameters(positional, every, variadic[0] if variadic else None,
                      keywords[0] if keywords else None,
                      len([p for p in parameters if p.kind is p.POSITIONAL_ONLY]))


def argument_sets(fun: Callable[..., Any], argnums: Any, argnames: Any, kind: str = "static"
                  ) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of arguments; each of the two is inferred if only the other is given:
    an empty one is given, None is not.

    Positions count from the end if they are negative; that is resolved here where the function has
    a fixed number of positional parameters, else at each call.

    Raises:
      ValueError: the function has no such parameter.
      TypeError: `argnums` are not integers or `argnames` not strings.
    """
    if argnums is None and not argnames:
        return (), ()
    numbers = _integers(argnums, kind)
    names = _strings(argnames, kind)
    parameters = parameters_of(fun)
    if parameters is None:
        if names and kind == "donate":
            raise ValueError(f"Getting the signature of function {fun} failed. Pass donate_argnums "
                             "instead of donate_argnames.")
        return numbers, names
    if parameters.keywords is None:
        _refuse_names([n for n in names if n not in parameters.every], kind,
                      f"Function does not take these args. It takes {list(parameters.every)}.")
    positional = parameters.positional
    n = len(positional)
    if parameters.variadic is None:
        if not all(-n <= i < n for i in numbers):
            named = [p for p in parameters.every if p not in positional]
            cure = f" The others have names alone: {kind}_argnames={named[0]!r}." if named else ""
            raise ValueError(f"Jitted function has {kind}_argnums={numbers}, but only accepts {n} "
                             f"positional arguments.{cure}")
        numbers = tuple([i % n for i in numbers])
    if argnums is None:
        numbers = tuple([i for i, name in enumerate(positional) if name in names])
    elif argnames is None:
        names = tuple([positional[i] for i in numbers
                       if -n <= i < n and i % n >= parameters.n_unnamed])
    return numbers, names


def check_names(fun: Callable[..., Any], argnames: Any, kind: str) -> None:
    """ValueError where an argument that the user names can only be given by its position."""
    names = _strings(argnames, kind)
    parameters = parameters_of(fun) if names else None
    if parameters is not None:
        unnamed = {*parameters.every[:parameters.n_unnamed], parameters.variadic}
        _refuse_names([n for n in names if n in unnamed], kind, "These are positional-only, which "
                      f"have positions alone: use {kind}_argnums.")


def _refuse_names(names: Sequence[str], kind: str, reason: str) -> None:
    if names:
        listed = ", ".join(map(repr, sorted(names)))
        raise ValueError(f"Jitted function has invalid argnames {{{listed}}} in {kind}_argnames. "
                         f"{reason}")


def take_names(wrapper: Any, fun: Callable[..., Any], name: str) -> None:
    """Give what stands for a function its names, documentation and annotations; `name` if it has
    none."""
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        value = getattr(fun, attribute, None)
        if value is not None or attribute == "__doc__":  # that of the class is none of `fun`
            setattr(wrapper, attribute, value)
        elif attribute in ("__name__", "__qualname__"):
            setattr(wrapper, attribute, name)


def check_disjoint(static: tuple[tuple[int, ...], tuple[str, ...]],
                   donated: tuple[tuple[int, ...], tuple[str, ...]]) -> None:
    """An argument cannot be both static and donated."""
    for i, what, called in ((1, "argnames", "names"), (0, "argnums", "positions")):
        both: set[Any] = {*static[i]} & {*donated[i]}
        if both:
            raise ValueError(
                f"static_{what} and donate_{what} cannot intersect. Argument {called} "
                f"{{{', '.join(map(repr, sorted(both)))}}} appear in both static_{what} and "
                f"donate_{what}")


def _integers(x: Any, kind: str) -> tuple[int, ...]:
    if x is None:
        return ()
    try:
        if isinstance(x, (tuple, list, set, frozenset, range, np.ndarray)):
            return tuple([operator.index(i) for i in x])
        return (operator.index(x),)
    except TypeError as error:
        named = any([isinstance(i, str) for i in (x if isinstance(x, Iterable) else ())])
        cure = f"Names of arguments are {kind}_argnames of jit" if named else OWN_CALL
        raise TypeError(f"{kind}_argnums must be positions of arguments, integers, got "
                        f"{shortened(x)}: {error}. {cure}.") from None


def _strings(x: Any, kind: str) -> tuple[str, ...]:
    if x is None:
        return ()
    names = (x,) if isinstance(x, (str, int)) else tuple(x)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"jit: {kind}_argnames must be strings, got {name!r}"
                            + f"; positions are {kind}_argnums" * isinstance(name, int))
    return names


def static_positions(numbers: Sequence[int], n_args: int) -> set[int]:
    """Positions of static arguments in a call with `n_args` of them."""
    return {i if i >= 0 else n_args + i for i in numbers}


def with_static(args: Sequence[Any], static: Sequence[tuple[int, Any, type]]) -> tuple[Any, ...]:
    """The positional arguments with the static ones where they were."""
    merged = list(args)
    for i, value, _ in static:
        merged.insert(i, value)
    return tuple(merged)


def check_jittable(fun: Callable[..., Any]) -> None:
    """Raise TypeError for what cannot be traced."""
    if isinstance(fun, staticmethod):
        raise TypeError(f"staticmethod arguments are not supported, got {fun}")
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {shortened(fun)}")
    code = plain_code(fun)
    for flag, kind, cure in (
            (_GENERATOR, "a generator", "is run once: return a list of what it yields."),
            (_ASYNC, "an async", "cannot wait: await what it needs outside, and pass that.")):
        if code is not None and code.co_flags & flag:
            raise TypeError(f"Expected a function, got {kind} function: {fun} at "
                            f"{code.co_filename}:{code.co_firstlineno}. What is traced {cure}")


# -- names of leaves, for messages -----------------------------------------------------------------


_UNKNOWN = Parameters((), (), "args", None)


def argument_trees(parameters: Parameters | None, in_tree: TreeDef, static: Any
                   ) -> list[tuple[str, TreeDef]]:
    """What each argument of a function that is not static is called, and its structure."""
    parameters = parameters or _UNKNOWN
    args_tree, kwargs_tree = in_tree.children()
    args: tuple[TreeDef | None, ...] = tuple(args_tree.children())
    if static:
        args = with_static(args, [(i, None, t) for i, _, t in static[0]])
    positional = parameters.positional
    n = len(positional)
    found = [(positional[i] if i < n else f"args[{i}]" if parameters.variadic is None else
              f"{parameters.variadic}[{i - n}]", tree)
             for i, tree in enumerate(args) if tree is not None]
    for key, tree in zip(kwargs_tree.node_data()[1], kwargs_tree.children(), strict=True):
        known = parameters.keywords is None or key in parameters.every
        found.append((key if known else f"{parameters.keywords}[{key!r}]", tree))
    return found


def argument_differences(fun: Callable[..., Any], compiled: TreeDef, called: TreeDef, static: Any
                         ) -> str:
    """Where the arguments of a call differ from those that a function was compiled for."""
    own, given = [dict(argument_trees(parameters_of(fun), tree, static))
                  for tree in (compiled, called)]
    said = [f"argument {name} is missing" for name in own if name not in given]
    said += [f"argument {name} is new" for name in given if name not in own]
    said += [f"{name}{keystr(path)} was a {one} and is now a {other}, so {why}"
             for name, tree in own.items()
             for path, one, other, why in structure_differences(tree, given.get(name, tree))]
    more = f", and {len(said) - 3} differences more" if len(said) > 3 else ""
    return "; ".join(said[:3]) + more if said else (
        "what was given by position is now given by name, or the other way round")


def leaf_names(parameters: Parameters | None, in_tree: TreeDef, static: Any) -> tuple[str, ...]:
    """A name such as `params['w'][0]` for each leaf of a function's arguments."""
    return tuple([root + path for root, tree in argument_trees(parameters, in_tree, static)
                  for path in leaf_paths(tree)])


def names_when_asked(fun: Callable[..., Any], in_tree: TreeDef, static: Any = ()
                     ) -> Callable[[], tuple[str, ...]]:
    """The names of the leaves of a function's arguments, found when they are asked for."""
    # Not the function itself is held: what it was traced to is kept with it, and is to go with it.
    code = plain_code(fun)
    reference = None if code is not None else _weak_reference(fun)

    def names() -> tuple[str, ...]:
        target = reference and reference()
        parameters = parameters_of_code(code) if code is not None else \
            parameters_of(target) if target is not None else None
        return leaf_names(parameters, in_tree, static)

    return names


_NO_KEYWORDS = tree_structure({})


def debug_info_of(op: str, fun: Callable[..., Any], args: TreeDef) -> DebugInfo:
    """What messages say of a function that is traced for `op`, on a tuple of arguments."""
    return DebugInfo(op, source_of(fun), names_when_asked(fun, treedef_tuple([args, _NO_KEYWORDS])))


def _weak_reference(x: Any) -> Any:
    try:
        return weakref.ref(x)
    except TypeError:
        return None


# -- errors ----------------------------------------------------------------------------------------


def raise_bad_argument(fun: Callable[..., Any], in_tree: TreeDef, leaves: Sequence[Any], static: Any
                      ) -> NoReturn:
    """Say which leaf is no array, and which argument it is of."""
    parameters = parameters_of(fun)
    if parameters is not None:
        args_tree, kwargs_tree = in_tree.children()
        name, n = getattr(fun, "__name__", "function"), len(parameters.positional)
        n_given = len(args_tree.children()) + (len(static[0]) if static else 0)
        if n_given > n and parameters.variadic is None:
            raise TypeError(f"{name}() takes {counted(n, 'positional argument')} but {n_given} "
                            f"{'were' if n_given > 1 else 'was'} given")
        for key in kwargs_tree.node_data()[1]:
            if key not in parameters.every and parameters.keywords is None:
                raise TypeError(f"{name}() got an unexpected keyword argument {key!r}")
    for i, x in enumerate(leaves):
        try:
            get_aval(x)
        except TypeError as error:
            name = leaf_names(parameters, in_tree, static)[i]
            whole = name in dict(argument_trees(parameters, in_tree, static))
            raise TypeError(
                f"Error interpreting argument to {source_of(fun)} as an abstract array. The "
                f"problematic value is of type {type(x)} and was passed to the function at path "
                f"{name}.\n{without_numbers(x) or 'It is not an array of numbers, nor a number.'}"
                + (_as_it_is(name, whole, x) + as_field(name)
                   if isinstance(x, np.ndarray) or not without_numbers(x) else "")
            ) from (error if is_valid_value(x) else None)
    raise TypeError(f"The arguments of {source_of(fun)} cannot be traced.")


def _as_it_is(name: str, whole: bool, x: Any) -> str:
    """How a function may have the leaf `x`, which is a whole argument or part of one, as it is, and
    what makes it a pytree: of a dataclass that cannot be static this is the first cure."""
    wanted, pytree = " If the function needs it as it is, ", as_pytree(x)
    try:
        hash(x)
    except TypeError:
        scope = (f"{wanted}let it come from the enclosing scope, not from an argument: as it "
                 "cannot be hashed, it cannot be a static one either.")
        return pytree + scope if hasattr(x, "__dataclass_fields__") else scope + pytree
    method = ": static_argnums=0 for a method, if its object does not change" * (name == "self")
    static = "mark the argument as static" if whole else (
        "take it out of the tree and give it as an argument of its own that is static")
    return (f"{wanted}{static} (static_argnums or static_argnames of jit), or bind it by "
            f"functools.partial{method}.{pytree}")


def check_placed_alone(closed: ClosedJaxpr, ins: Sequence[Any], outs: Sequence[Any]) -> None:
    """Raise NotImplementedError where a sharding is asked for of a value of a library's type."""
    for avals, shardings in ((closed.in_avals, ins), (closed.out_avals, outs)):
        for aval, sharding in zip(avals, shardings, strict=False):
            if aval.is_high and sharding is not None:
                raise NotImplementedError(
                    f"jit: in_shardings and out_shardings say where arrays lie, and {sharding} is "
                    f"given for a value of the type {aval}. Give None for it, and place what it is "
                    "made of.")


def static_text(fun: Callable[..., Any], static: Any) -> str:
    """`n=2` for each static argument."""
    positional = (parameters_of(fun) or _UNKNOWN).positional
    return ", ".join([f"{k if isinstance(k, str) else (*positional, k)[min(k, len(positional))]}"
                      f"={shortened(value)}" for k, value, _ in (*static[0], *static[1])])


def raise_unhashable(name: str, static: Any) -> NoReturn:
    """Say which static argument cannot be hashed."""
    for where, value, _ in (*static[0], *static[1]):
        try:
            hash(value)
        except TypeError as error:
            cure = advice.hashable(type(value).__name__, str(value), str(error),
                                   name=where if isinstance(where, str) else "x")
            raise ValueError("Non-hashable static arguments are not supported. An error occurred "
                             f"while trying to hash the static argument {where!r} of {name}, an "
                             f"object of type {type(value)}, {shortened(value)}. {cure}") from None
    raise TypeError(f"unhashable arguments of the jitted function {name}")


def raise_overflow(fun: Callable[..., Any], in_tree: TreeDef, leaves: Sequence[Any], static: Any,
                   error: OverflowError) -> NoReturn:
    """Say which integer does not fit the dtype of its argument."""
    for i, x in enumerate(leaves):
        if isinstance(x, int):
            try:
                np.asarray(x, get_aval(x).dtype)
            except OverflowError:
                name = leaf_names(parameters_of(fun), in_tree, static)[i]
                raise OverflowError("An overflow was encountered while parsing an argument to a "
                                    f"jitted computation, whose argument path is {name}. Got "
                                    f"{type(x)} with value {x}; it does not fit "
                                    f"{get_aval(x).dtype}.") from None
    raise error
