"""Operators of BCOO and BCSR arrays: those of dense arrays, sparsified, each one compiled call."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from pyjx.experimental.sparse.base import functions
from pyjx.runtime.operations import op_jit


def _compiled(fun: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        return functions["sparsify"](fun)(*args)

    run.__name__ = getattr(fun, "__name__", "operator")
    return op_jit(run, trees=True)


def unary(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The operator that is `fun` of the array."""
    run = _compiled(fun)
    return lambda self: run(self)


def binary(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The operator that is `fun` of the array and another operand."""
    run = _compiled(fun)
    return lambda self, other: run(self, other)


def reflected(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The operator that is `fun` of another operand and the array."""
    run = _compiled(fun)
    return lambda self, other: run(other, self)


def method(name: str) -> Callable[..., Any]:
    """The method of dense arrays, whose arguments are constants."""

    def applied(x: Any, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> Any:
        return functions["sparsify"](lambda x: getattr(x, name)(*args, **dict(kwargs)))(x)

    compiled = op_jit(applied, static_argnums=(1, 2), trees=True)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        keywords = tuple(sorted(kwargs.items()))
        try:
            hash((args, keywords))
        except TypeError:
            return applied(self, args, keywords)
        return compiled(self, args, keywords)

    call.__name__ = name
    call.__doc__ = f"As `{name}` of a dense array."
    return call


def item(self: Any, index: Any) -> Any:
    return functions["sparsify"](lambda x: x[index])(self)


class ArithmeticOperators:
    """The operators that a sparse array has in common with dense ones. Those whose result would be
    dense raise NotImplementedError."""

    __slots__ = ()

    sum = method("sum")
    reshape = method("reshape")
    astype = method("astype")

    __getitem__ = item

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))  # type: ignore[arg-type]

    __abs__ = unary(operator.abs)
    __neg__ = unary(operator.neg)
    __pos__ = unary(operator.pos)
    __matmul__ = binary(operator.matmul)
    __rmatmul__ = reflected(operator.matmul)
    __mul__ = binary(operator.mul)
    __rmul__ = reflected(operator.mul)
    __truediv__ = binary(operator.truediv)
    __rtruediv__ = reflected(operator.truediv)
    __add__ = __radd__ = binary(operator.add)
    __sub__ = binary(operator.sub)
    __rsub__ = reflected(operator.sub)
    __rpow__ = reflected(operator.pow)
    __gt__ = binary(operator.gt)
    __ge__ = binary(operator.ge)
    __lt__ = binary(operator.lt)
    __le__ = binary(operator.le)
    __eq__ = binary(operator.eq)  # type: ignore[assignment]
    __ne__ = binary(operator.ne)  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __pow__(self, exponent: Any) -> Any:
        # an integer is part of the program
        return functions["sparsify"](lambda x: x ** exponent)(self)
