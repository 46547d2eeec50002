"""What functions with custom rules share: how they stand for theirs, and read their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from pyjx.core.avals import get_aval, is_ref_type
from pyjx.core.primitive import Primitive
from pyjx.core.trace import state
from pyjx.engine.forward import refuse_captured_tangents
from pyjx.engine.functions import FlatFun, flatten, name_of
from pyjx.engine.types import TreeDef
from pyjx.transforms.arguments import check_callable

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
        self.nondiff_argnums = tuple(numbers)
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
