"""Text of one function: lines, SSA names, constants, regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from lowering.types import dense_text, scalar_text, tensor_type, tensor_types
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn, Literal

if TYPE_CHECKING:
    from lowering.module import Module

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
# Primitives whose rules pass all operands through `Block.widened`: it writes their literals.
WIDENS: set[str] = set()


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Declare the lowering of the primitives with these names.

    A rule is `(b, eqn, *operands) -> name`, or a sequence of names for primitives with several
    results, where `operands` are the SSA names of the equation's operands.
    """

    def register(fun: Rule) -> Rule:
        for name in names:
            if name in RULES:
                raise ValueError(f"There are two lowering rules for {name!r}.")
            RULES[name] = fun
        return fun

    return register


class Block:
    """A function's (or, within it, a region's) lines as they are written."""

    __slots__ = ("_constants", "_count", "_indent", "lines", "module")

    def __init__(self, module: Module, indent: str = "    ") -> None:
        self.module = module
        self.lines: list[str] = []
        self._count = 0
        self._indent = indent
        self._constants: dict[Any, str] = {}

    def name(self) -> str:
        """A fresh SSA name."""
        n = self._count
        self._count = n + 1
        return f"%{n}"

    def line(self, text: str) -> str:
        """Append an operation with one result; its name is returned."""
        n = self._count
        self._count = n + 1
        self.lines.append(f"{self._indent}%{n} = {text}")
        return f"%{n}"

    def multi(self, text: str, count: int) -> list[str]:
        """Append an operation with `count` results; their names are returned."""
        if count == 1:
            return [self.line(text)]
        n = self._count
        self._count = n + 1
        if count == 0:
            self.lines.append(f"{self._indent}{text}")
            return []
        self.lines.append(f"{self._indent}%{n}:{count} = {text}")
        return [f"%{n}#{i}" for i in range(count)]

    def raw(self, text: str) -> None:
        """Append a line that defines nothing."""
        self.lines.append(self._indent + text)

    @contextmanager
    def region(self, end: str = "") -> Iterator[None]:
        """Write the lines of a nested region; constants made there stay there."""
        indent, constants = self._indent, self._constants
        self._indent = indent + "  "
        self._constants = {}
        try:
            yield
        finally:
            self._indent, self._constants = indent, constants
            if end:
                self.raw(end)

    def with_region(
        self, head: str, params: Sequence[Any], body: Callable[..., Sequence[str]], tail: str,
        count: int, terminator: str = "stablehlo.return",
    ) -> list[str]:
        """Append an operation in generic form with one region.

        `head` is all up to `({`, `tail` all after `})`. `params` are the avals of the region's
        arguments; `body` gets their names and returns the names of the region's results with
        their types through `(names, avals)`.
        """
        results = self._results(count)
        names = [self.name() for _ in params]
        args = ", ".join([f"{n}: {tensor_type(a)}" for n, a in zip(names, params, strict=True)])
        prefix = f"{results[0]} = " if count else ""
        self.raw(f"{prefix}{head} ({{")
        self.raw(f"^bb0({args}):" if names else "^bb0:")
        with self.region():
            outs, avals = body(*names)
            values = f" {', '.join(outs)} : {tensor_types(avals)}" if outs else ""
            self.raw(f"{terminator}{values}")
        self.raw(f"}}) {tail}")
        return results[1]  # type: ignore[return-value]

    def _results(self, count: int) -> tuple[str, list[str]]:
        name = self.name()
        if count == 1:
            return name, [name]
        return f"{name}:{count}", [f"{name}#{i}" for i in range(count)]

    # -- constants ---------------------------------------------------------------------------------

    def constant(self, value: Any, aval: ShapedArray) -> str:
        """A rank-0 or splat constant of the given aval; one for all its uses in the block."""
        text = scalar_text(value, aval.dtype)
        key = (text, aval)
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = self.line(
                f"stablehlo.constant dense<{text}> : {tensor_type(aval)}"
            )
        return name

    def dense(self, array: Any) -> str:
        """A constant array."""
        array = np.asarray(array)
        aval = ShapedArray(array.shape, array.dtype)
        return self.line(f"stablehlo.constant dense<{dense_text(array)}> : {tensor_type(aval)}")

    # -- what many rules need ----------------------------------------------------------------------

    def widened(self, operand: str, atom: Any, aval: ShapedArray) -> str:
        """An operand of an elementwise operation, a rank-0 one brought to the result's shape."""
        in_aval = atom.aval
        if in_aval.shape == aval.shape:
            return operand
        target = in_aval.update(shape=aval.shape)
        if type(atom) is Literal:
            return self.constant(atom.val, target)
        return self.broadcast(operand, in_aval, target, ())

    def broadcast(self, operand: str, in_aval: Any, out_aval: Any, dims: Sequence[int]) -> str:
        return self.line(
            f"stablehlo.broadcast_in_dim {operand}, dims = [{', '.join(map(str, dims))}] : "
            f"({tensor_type(in_aval)}) -> {tensor_type(out_aval)}"
        )

    def convert(self, operand: str, in_aval: Any, out_aval: Any) -> str:
        if in_aval.dtype == out_aval.dtype:
            return operand
        return self.line(
            f"stablehlo.convert {operand} : ({tensor_type(in_aval)}) -> {tensor_type(out_aval)}"
        )

    def unary(self, op: str, x: str, aval: Any) -> str:
        return self.line(f"{op} {x} : {tensor_type(aval)}")

    def binary(self, op: str, x: str, y: str, aval: Any) -> str:
        return self.line(f"{op} {x}, {y} : {tensor_type(aval)}")

    def compare(self, direction: str, x: str, y: str, aval: ShapedArray, kind: str = "") -> str:
        """`direction` is EQ, NE, GE, GT, LE or LT; `kind` FLOAT, TOTALORDER, SIGNED, UNSIGNED."""
        out = tensor_type(ShapedArray(aval.shape, np.bool_))
        t = tensor_type(aval)
        suffix = f", {kind}" if kind else ""
        return self.line(f"stablehlo.compare {direction}, {x}, {y}{suffix} : ({t}, {t}) -> {out}")

    def select(self, predicate: str, on_true: str, on_false: str, aval: ShapedArray) -> str:
        pred_type = tensor_type(ShapedArray(aval.shape, np.bool_))
        return self.line(
            f"stablehlo.select {predicate}, {on_true}, {on_false} : "
            f"{pred_type}, {tensor_type(aval)}"
        )

    def call(self, function: str, operands: Sequence[str], in_avals: Sequence[Any],
             out_avals: Sequence[Any], attributes: str = "") -> list[str]:
        """Call a function of the module."""
        text = (
            f"func.call @{function}({', '.join(operands)}){attributes} : "
            f"({tensor_types(in_avals)}) -> ({tensor_types(out_avals)})"
        )
        return self.multi(text, len(out_avals))


def in_avals(eqn: JaxprEqn) -> list[Any]:
    return [v.aval for v in eqn.invars]


def out_aval(eqn: JaxprEqn) -> Any:
    return eqn.outvars[0].aval
