"""What the transformations of functions share: names, and positions of arguments; and how functions
with custom rules stand for theirs, and read their arguments.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from pyjx.core.avals import get_aval, is_ref_type
from pyjx.core.integers import as_ints
from pyjx.core.name_stack import current_name_stack, transform_name_stack
from pyjx.core.primitive import Primitive
from pyjx.core.trace import state
from pyjx.engine.forward import refuse_captured_tangents
from pyjx.engine.functions import FlatFun, flatten, name_of
from pyjx.engine.linearize import LinearProgram, linearize_flat
from pyjx.engine.types import TreeDef
from pyjx.runtime.signature import check_jittable, own_attributes

# -- arguments -------------------------------------------------------------------------------------

Argnums = int | tuple[int, ...]

check_callable = check_jittable  # what is transformed is traced, compiled or not


def wraps(fun: Callable[..., Any], wrapper: Callable[..., Any], doc: str | None = None
         ) -> Callable[..., Any]:
    """Makes `wrapper` a public function with the name, the module and what else `fun` has been
    given as attributes, and its doc string; or with the text `doc`, which names it as `{fun}`, and
    has its doc string where it says `{original}`."""
    wrapper.__dict__.update(own_attributes(fun))
    name = name_of(fun)
    wrapper.__name__ = name
    long_name = getattr(fun, "__qualname__", None)
    wrapper.__qualname__ = long_name if isinstance(long_name, str) else name  # equinox has None
    wrapper.__module__ = getattr(fun, "__module__", None) or wrapper.__module__
    annotations = getattr(fun, "__annotations__", None)
    wrapper.__annotations__ = annotations if isinstance(annotations, dict) else {}
    own = getattr(fun, "__doc__", None)
    original = f"\n\nOriginal documentation:\n\n{own}" if own else ""
    wrapper.__doc__ = own if doc is None else doc.format(fun=name, original=original)
    wrapper.__wrapped__ = fun  # type: ignore[attr-defined]
    return wrapper


# -- argnums ---------------------------------------------------------------------------------------


def canonical_argnums(name: str, argnums: Any) -> Argnums:
    """The `argnums` of the function `name`: an int or a tuple of ints.

    Raises:
      TypeError: `argnums` is neither an integer nor a sequence of integers.
    """
    if isinstance(argnums, int):
        return argnums
    if hasattr(argnums, "__index__"):
        return operator.index(argnums)
    return as_ints(name, "argnums", (argnums,) if isinstance(argnums, str) else argnums)


def require_argnums(argnums: Argnums, n_args: int) -> None:
    """Raise TypeError if there are fewer positional arguments than `argnums` speaks of."""
    highest = argnums if isinstance(argnums, int) else max(argnums, default=-1)
    if n_args <= highest:
        raise TypeError(
            f"differentiating with respect to argnums={argnums} requires at least {highest + 1} "
            f"positional arguments to be passed by the caller, but got only {n_args} positional "
            "arguments. Arguments given by keyword are not differentiated."
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
    if len(set(positions)) < len(positions):
        raise ValueError(f"argnums={argnums} names an argument twice; there are {len(args)} "
                         "positional arguments, and negative positions count from the end.")

    def of_some(*xs: Any) -> Any:
        merged = list(args)
        for i, x in zip(positions, xs, strict=True):
            merged[i] = x
        return fun(*merged, **kwargs)

    return of_some, tuple([args[i] for i in positions])


# -- which inputs are differentiated ---------------------------------------------------------------


def is_inexact(x: Any) -> bool:
    """Whether a value has a derivative."""
    return not get_aval(x).to_tangent_aval().is_float0


def prefix_of_bools(name: str, prefix: Any, primals: Any) -> list[bool]:
    """One bool for each leaf of `primals`. Containers of `prefix` count by their length only."""
    if isinstance(prefix, bool):
        return [prefix] * flatten(primals)[1].num_leaves
    if isinstance(prefix, str):  # whose parts are strings again
        raise TypeError(f"vjp: {name} must be a tree of bools, got {prefix!r}")
    children = flatten(primals, lambda x: x is not primals)[0]
    entries = list(prefix.values()) if isinstance(prefix, dict) else list(prefix)
    if len(entries) != len(children):
        raise ValueError(f"vjp: {name} must be a tree prefix of the primals, got {len(entries)} "
                         f"entries where the primals have {len(children)}")
    return [flag for entry, child in zip(entries, children, strict=True)
            for flag in prefix_of_bools(name, entry, child)]


def wanted_inputs(leaves: Sequence[Any], primals: Any, in_nzs: Any) -> list[bool] | None:
    """Which leaves are differentiated: those of inexact dtypes where `in_nzs` says so. None: all.
    """
    wanted = [is_inexact(x) for x in leaves]
    if in_nzs is not None:
        flags = prefix_of_bools("in_nzs", in_nzs, primals)
        wanted = [w and f for w, f in zip(wanted, flags, strict=True)]
    return None if all(wanted) else wanted


def linearized(flat: FlatFun, leaves: Sequence[Any], wanted: Sequence[bool] | None
               ) -> tuple[list[Any], LinearProgram]:
    """Outputs and derivative; operations are named after the transformation."""
    names = current_name_stack()
    with transform_name_stack("jvp"):
        return linearize_flat(flat, leaves, wanted, flat.aux, names)


# -- functions with custom rules -------------------------------------------------------------------

_COPIED = ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__")

R = TypeVar("R")
Cotangents: TypeAlias = tuple[Any, ...] | list[Any]


class PositionalFunction(Generic[R]):
    """A function that stands for another one, and takes all arguments by position.

    What it has no attribute for, such as the `defjvp` of a function inside, is that one's.
    """

    fun: Callable[..., Any]
    _kind: str

    def __init__(self, fun: Callable[..., R]) -> None:
        check_callable(fun)
        self.fun = fun
        # What `jit` traces it to holds it, by its rules: together they go.
        self.jit_traces: dict[Any, Any] = {}
        self.__wrapped__ = fun
        for attribute in _COPIED:
            value = getattr(fun, attribute, None)
            if value is not None or attribute == "__doc__":  # that of the class is none of `fun`
                setattr(self, attribute, value)
        if not hasattr(self, "__name__"):
            self.__name__ = name_of(fun)
        self._signature: Any = None
        code = getattr(fun, "__code__", None)
        # The number of positional arguments, where reading them needs no more than to count.
        self._plain = -1
        if code is not None and not code.co_kwonlyargcount and not code.co_flags & 0x0C:
            self._plain = code.co_argcount - hasattr(fun, "__self__")

    def __getattr__(self, name: str) -> Any:
        if name == "fun":
            raise AttributeError(name)
        return getattr(self.fun, name)

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, with default values for those that are not given."""
        if not kwargs and len(args) == self._plain:
            return args
        if self._signature is None:
            try:
                self._signature = inspect.signature(self.fun)
            except (TypeError, ValueError):
                self._signature = False
        if not self._signature:
            return args
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as e:
            self._raise_unbound(str(e))
        bound.apply_defaults()
        named = [name for name in bound.kwargs if name in kwargs]
        if named:
            self._raise_unbound("The following keyword arguments could not be resolved to "
                                f"positions: {', '.join(named)}")
        return bound.args  # type: ignore[no-any-return]

    def _raise_unbound(self, why: str) -> NoReturn:
        raise TypeError(
            f"The input arguments to the {self._kind}-decorated function {self.__name__} could "
            f"not be resolved to positional-only arguments. Binding failed with the error:\n{why}"
        ) from None


class CustomFunction(PositionalFunction[R]):
    """What custom_jvp and custom_vjp share: arguments that are not differentiated."""

    nondiff_argnums: tuple[int, ...]
    nondiff_argnames: tuple[str, ...] = ()

    def __init__(self, fun: Callable[..., R], nondiff_argnums: Sequence[int] = (),
                 nondiff_argnames: Sequence[str] = ()) -> None:
        super().__init__(fun)
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        self.nondiff_argnums = as_ints(self._kind, "nondiff_argnums", numbers)
        if nondiff_argnames:
            names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else nondiff_argnames
            self.nondiff_argnames = tuple(names)
            self.nondiff_argnums = _with_names(fun, self.nondiff_argnums, names)

    def split(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Differentiable arguments, and the others."""
        if not self.nondiff_argnums:
            return args, ()
        numbers = {i if i >= 0 else i + len(args) for i in self.nondiff_argnums}
        if numbers and not 0 <= min(numbers) <= max(numbers) < len(args):
            raise ValueError(
                f"{self._kind}: nondiff_argnums={self.nondiff_argnums} are out of range for "
                f"{len(args)} arguments of {self.__name__}"
            )
        return (tuple([x for i, x in enumerate(args) if i not in numbers]),
                tuple([args[i] for i in sorted(numbers)]))

    def joined(self, dynamic: Sequence[Any], static: tuple[Any, ...]) -> list[Any]:
        """The inverse of `split`."""
        merged = list(dynamic)
        if static:
            n = len(dynamic) + len(static)
            numbers = sorted([i if i >= 0 else i + n for i in self.nondiff_argnums])
            for i, x in zip(numbers, static, strict=True):
                merged.insert(i, x)
        return merged

    def run(self, primitive: Primitive, args: Sequence[Any]) -> Any:
        """The function itself, where no argument is traced.

        Raises:
          CustomVJPException: it closes over a value that is differentiated.
        """
        result = self.fun(*args)
        if state.level:
            refuse_captured_tangents(primitive, flatten(result)[0])
        return result


def _with_names(fun: Callable[..., Any], numbers: tuple[int, ...], names: Sequence[str]
               ) -> tuple[int, ...]:
    parameters = list(inspect.signature(fun).parameters)
    for name in names:
        if name not in parameters:
            raise ValueError(f"nondiff_argnames: {name_of(fun)} has no argument named {name!r}")
    return tuple(sorted({*numbers, *[parameters.index(n) for n in names]}))


class CustomFun(FlatFun):
    """The function on the leaves of its differentiable arguments.

    `out_tree` and `out_avals` are set by whichever of function and rule runs first.
    """

    __slots__ = ("out_avals", "owner", "static")

    def __init__(self, owner: CustomFunction, in_tree: TreeDef, static: tuple[Any, ...]) -> None:
        fun: Callable[..., Any] = owner.fun
        if static:
            def fun(*dynamic: Any) -> Any:
                return owner.fun(*owner.joined(dynamic, static))
        super().__init__(fun, in_tree)
        self.owner = owner
        self.static = static
        self.out_avals: list[Any] = []

    @property
    def __name__(self) -> str:
        return self.owner.__name__

    def check(self, outs: list[Any]) -> None:
        super().check(outs)
        self.out_avals = [get_aval(x) for x in outs]
        for aval in self.out_avals:
            if is_ref_type(aval):
                raise ValueError(
                    f"{self.owner._kind} primal function {self.owner.fun} returned a mutable array "
                    f"reference of type {aval}, but references cannot be returned. Return its "
                    "value: `ref[...]`.")


class _Text:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def short_types(tree: TreeDef, avals: Sequence[Any]) -> str:
    return str(tree.unflatten([_Text(getattr(a, "str_short", lambda: "*")()) for a in avals]))
