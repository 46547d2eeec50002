"""How functions of pytrees are called with leaves: for libraries that make transformations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyjx.core.avals import ShapedArray, get_aval, is_valid_value
from pyjx.core.jaxpr import DebugInfo
from pyjx.core.prefixes import broadcast_argument
from pyjx.engine.functions import source_of, with_at
from pyjx.engine.types import TreeDef
from pyjx.extend.linear_util import EqualStore, Store, WrappedFun
from pyjx.lazy import directory
from pyjx.runtime import signature
from pyjx.transforms.arguments import check_callable
from pyjx.tree_util import tree_flatten, tree_structure

__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
    "flatten_fun_nokwargs", "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]


def _wrapped(fun: Callable[..., Any]) -> WrappedFun:
    if isinstance(fun, WrappedFun):
        return fun
    check_callable(fun)
    return WrappedFun(fun, fun)


class _Structure(Store):
    """The structure of the latest output of a function."""

    __slots__ = ()

    def store(self, value: Any) -> None:
        self._value[:] = [value]

    @property
    def val(self) -> TreeDef:
        if not self._value:
            raise ValueError("flatten_fun: the structure of the output is known when the function "
                             "has been called, by call_wrapped.")
        return self._value[0]


def _with_leaves(fun: Callable[..., Any], out_tree: Store, in_tree: TreeDef, has_kwargs: bool,
                 *leaves: Any) -> list[Any]:
    """Call a function of pytrees with leaves."""
    given = in_tree.unflatten(leaves)
    args, kwargs = given if has_kwargs else (given, {})
    outs, tree = tree_flatten(fun(*args, **kwargs))
    out_tree.store(tree)
    return outs


def _of_leaves(fun: Callable[..., Any], given: tuple[Any, ...], has_kwargs: bool,
               use_eq_store: bool, unk_names: bool) -> tuple[WrappedFun, Callable[[], TreeDef]]:
    wrapped = _wrapped(fun)
    if len(given) != 1:
        raise TypeError(f"flatten_fun{'' if has_kwargs else '_nokwargs'}: expected one static "
                        f"argument, the structure of the arguments, got {len(given)}: {given}.")
    store = EqualStore() if use_eq_store else _Structure()
    flat = wrapped.wrap(_with_leaves, (*given, has_kwargs), store)
    return flat.with_unknown_names() if unk_names else flat, store


def flatten_fun(fun: Callable[..., Any], *gen_static_args: TreeDef, use_eq_store: bool = False,
                unk_names: bool = False) -> tuple[WrappedFun, Callable[[], TreeDef]]:
    """A function of leaves, and a function that gives the structure of its latest output.

    Args:
      fun: takes positional and keyword arguments.
      gen_static_args: one, the structure of the pair `(args, kwargs)`.
      use_eq_store: outputs of several calls must have one structure.
      unk_names: nothing is known of the names of arguments and results.

    >>> import pyjx as jax
    >>> from pyjx import api_util
    >>> tree = jax.tree.structure((({"a": 1},), {"scale": 2}))
    >>> flat, out_tree = api_util.flatten_fun(lambda x, scale: [x["a"] * scale], tree)
    >>> flat.call_wrapped(3, 4), out_tree()
    ([12], PyTreeDef([*]))
    """
    return _of_leaves(fun, gen_static_args, True, use_eq_store, unk_names)


def flatten_fun_nokwargs(fun: Callable[..., Any], *gen_static_args: TreeDef,
                         use_eq_store: bool = False, unk_names: bool = False
                        ) -> tuple[WrappedFun, Callable[[], TreeDef]]:
    """As `flatten_fun`, given the structure of the tuple of positional arguments."""
    return _of_leaves(fun, gen_static_args, False, use_eq_store, unk_names)


def _with_others(fun: Callable[..., Any], numbers: Sequence[int], others: Sequence[Any],
                 *dynamic: Any) -> Any:
    """Call a function with arguments at these positions, and others as they are."""
    return fun(*with_at(others, numbers, dynamic))


def argnums_partial(f: Callable[..., Any], dyn_argnums: int | Sequence[int], args: Sequence[Any],
                    require_static_args_hashable: bool = True
                    ) -> tuple[WrappedFun, tuple[Any, ...]]:
    """A function of some arguments, with the others as they are, and those arguments.

    Args:
      f: takes all of `args`.
      dyn_argnums: positions of the arguments that it keeps; negative ones count from the end.
      require_static_args_hashable: refuse others that have no hash.

    Raises:
      ValueError: a position is out of range, or a fixed argument has no hash.
    """
    fun = _wrapped(f)
    given = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    n = len(args)
    for i in given:
        if not -n <= i < n:
            raise ValueError("Positional argument indices, e.g. for `static_argnums`, must have "
                             "value greater than or equal to -len(args) and less than len(args), "
                             f"but got value {i} for len(args) == {n}.")
    numbers = [i % n for i in given]
    fixed = list(args)
    for i, x in enumerate(args):
        if i not in numbers and require_static_args_hashable and type(x).__hash__ is None:
            raise ValueError(
                "Non-hashable static arguments are not supported, as this can lead to unexpected "
                f"cache-misses. Static argument (index {i}) of type {type(x)} for function "
                f"{source_of(fun.f).partition(' ')[0]} is non-hashable.")

    dynamic = tuple([args[i] for i in numbers])
    for i in numbers:
        fixed[i] = None
    return fun.wrap(_with_others, (tuple(numbers), tuple(fixed)), None), dynamic


def flatten_axes(name: str, treedef: TreeDef, axis_tree: Any, *, kws: bool = False,
                 tupled_args: bool = False) -> list[Any]:
    """The axis of each leaf, where `axis_tree` is a prefix of the tree; None is an axis too.

    Args:
      name: of the specification, for the error.
      kws: the tree is that of a pair `(args, kwargs)`.
      tupled_args: the error says that axes which are trees come as a tuple, one for each argument.

    Raises:
      ValueError: it is no prefix.

    >>> import pyjx as jax
    >>> from pyjx import api_util
    >>> api_util.flatten_axes("in_axes", jax.tree.structure((1, {"a": 2, "b": 3})), (0, None))
    [0, None, None]
    """
    hint = ""
    if tupled_args:
        hint = (f" Note that {name} that are non-trivial pytrees should always be wrapped in a "
                "tuple representing the argument list.")
    tree = treedef.unflatten([object()] * treedef.num_leaves)
    return broadcast_argument(name, axis_tree, tree, hint=hint)


def donation_vector(donate_argnums: Iterable[int], donate_argnames: Iterable[str],
                    in_tree: TreeDef, kws: bool = True) -> tuple[bool, ...]:
    """Which leaves are donated.

    Args:
      donate_argnums, donate_argnames: positions and names of arguments that are.
      in_tree: the structure of `(args, kwargs)`; without `kws`, of `args`.

    >>> import pyjx as jax
    >>> from pyjx import api_util
    >>> api_util.donation_vector((1,), (), jax.tree.structure(((1, [2, 3]), {"k": 4})))
    (False, True, True, False)
    """
    numbers, names = set(donate_argnums), set(donate_argnames)
    leaves = in_tree.unflatten(range(in_tree.num_leaves))
    args, kwargs = leaves if kws else (leaves, {})
    flags: list[bool] = []
    for i, x in enumerate(args):
        flags += [i in numbers] * tree_structure(x).num_leaves
    items = kwargs.items() if isinstance(kwargs, dict) else ((None, kwargs),)
    for key, x in items:
        flags += [key in names] * tree_structure(x).num_leaves
    return tuple(flags)


def rebase_donate_argnums(donate_argnums: Iterable[int], static_argnums: Iterable[int]
                          ) -> tuple[int, ...]:
    """Positions of donated arguments among those that are not static.

    Raises:
      ValueError: an argument is both.

    >>> from pyjx import api_util
    >>> api_util.rebase_donate_argnums((3, 4), (0, 1))
    (1, 2)
    """
    static, donated = sorted(set(static_argnums)), sorted(set(donate_argnums))
    if set(static) & set(donated):
        raise ValueError(f"`static_argnums` {static} and `donate_argnums` {donated} cannot "
                         "intersect.")
    return tuple([i - sum([s < i for s in static]) for i in donated])


def safe_map(f: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """The list of `f(a, b, ...)` for the elements of iterables of one length.

    Raises:
      ValueError: the lengths differ.

    >>> from pyjx import api_util
    >>> api_util.safe_map(lambda a, b: a + b, [1, 2], [3, 4])
    [4, 6]
    """
    if not args:
        raise TypeError("safe_map requires at least 2 arguments")
    lists = list(map(list, args))
    for i, x in enumerate(lists[1:], 2):
        if len(x) != len(lists[0]):
            how = "shorter" if len(x) < len(lists[0]) else "longer"
            raise ValueError(f"safe_map() argument {i} is {how} than argument 1")
    return list(map(f, *lists))


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of a value, or of something that has its shape and dtype.

    Raises:
      TypeError: it is neither.

    >>> from pyjx import api_util
    >>> api_util.shaped_abstractify(1.0)
    ShapedArray(float32[], weak_type=True)
    """
    if is_valid_value(x):
        return get_aval(x)
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return ShapedArray(x.shape, x.dtype, getattr(x, "weak_type", False))
    raise TypeError(f"Cannot interpret value of type {type(x)} as an abstract array; it does not "
                    "have a dtype attribute, so it is not a valid JAX type")


def debug_info(traced_for: str, fun: Callable[..., Any], args: Sequence[Any],
               kwargs: Mapping[str, Any], *, static_argnums: Sequence[int] = (),
               static_argnames: Sequence[str] = (),
               result_paths_thunk: Callable[[], tuple[str, ...]] | None = None,
               sourceinfo: str | None = None, signature: Any = None) -> DebugInfo:
    """What messages about a traced function say: its place, and the names of its arguments.

    Args:
      traced_for: what it is traced for, such as "jit".
      args, kwargs: arguments like those it is traced with, the static ones too.
      static_argnums, static_argnames: which of them are static.
      result_paths_thunk: gives the places of the results, when somebody asks.
      sourceinfo: the function's place, if it is to be another one.

    >>> from pyjx import api_util
    >>> api_util.debug_info("jit", lambda x: x, ({"a": 1},), {}).arg_names
    ("x['a']",)
    """
    static = {i % len(args) for i in static_argnums if args}
    static_args = tuple([(i, x, type(x)) for i, x in enumerate(args) if i in static])
    dynamic = tuple([x for i, x in enumerate(args) if i not in static])
    dynamic_kw = {k: x for k, x in kwargs.items() if k not in static_argnames}
    names = _leaf_names(fun, tree_structure((dynamic, dynamic_kw)), (static_args, ()))
    where = sourceinfo or (source_of(fun) if callable(fun) else "<unknown>")
    return DebugInfo(traced_for, where, names, result_paths_thunk)


def _leaf_names(fun: Callable[..., Any], in_tree: TreeDef, static: Any) -> tuple[str, ...] | None:
    parameters = signature.parameters_of(fun) if callable(fun) else None
    try:
        return signature.leaf_names(parameters, in_tree, static)
    except (IndexError, KeyError):
        return None


def infer_argnums_and_argnames(sig: Any, argnums: Any, argnames: Any
                               ) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the same arguments, of a signature, from either."""
    names = [p.name for p in sig.parameters.values()
             if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    numbers = () if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    given = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    if argnums is None:
        numbers = tuple([i for i, name in enumerate(names) if name in given])
    elif not given:
        given = tuple([names[i] for i in numbers if -len(names) <= i < len(names)])
    return numbers, given


__dir__ = directory(__name__, __all__)
