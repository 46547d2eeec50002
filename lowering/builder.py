"""Text of one function: lines, SSA names, constants, regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from lowering.shardings import batch_rule
from lowering.types import (
    attribute,
    dense_text,
    layout_text,
    order_text,
    results_of,
    scalar_text,
    tensor_type,
    tensor_types,
)
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.jaxpr import JaxprEqn, Literal, Var

if TYPE_CHECKING:
    from lowering.locations import Scope
    from lowering.module import Module

OF_TWO_BITS = (np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.uint2))
_INT8 = np.dtype(np.int8)
_MOST_COUNTED = 1 << 36  # elements of an iota


class Block:
    """A function's (or, within it, a region's) lines as they are written."""

    __slots__ = ("_constants", "_count", "_indent", "lines", "marks", "module", "openings",
                 "regions", "scope")

    def __init__(self, module: Module, scope: Scope) -> None:
        self.module = module
        self.scope = scope
        self.lines: list[str] = []
        # (first line, line after the last, equation, scope), inner equations before the one around
        self.marks: list[tuple[int, int, JaxprEqn, Scope]] = []
        self.openings: list[int] = []  # the lines behind which operations do not end
        # (first line, line after the last, part) of what loops run, inner ones before outer ones
        self.regions: list[tuple[int, int, str]] = []
        self._count = 0
        self._indent = "    "
        self._constants: dict[Any, str] = {}

    def name(self) -> str:
        """A fresh SSA name."""
        n = self._count
        self._count = n + 1
        return f"%{n}"

    @staticmethod
    def is_argument(name: str) -> bool:
        """Whether a value is an argument of the function, and no result of an operation."""
        return name.startswith("%arg")

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

    def opening(self, text: str) -> None:
        """Append a line that opens a region: its operation ends further down."""
        self.openings.append(len(self.lines))
        self.lines.append(self._indent + text)

    @contextmanager
    def region(self, part: str = "") -> Iterator[None]:
        """Write the lines of a nested region; constants made there stay there. What is of no
        equation there is named as that part of the one around."""
        saved, first = (self._indent, self._constants), len(self.lines)
        self._indent += "  "
        self._constants = {}
        try:
            yield
        finally:
            self._indent, self._constants = saved
            if part:
                self.regions.append((first, len(self.lines), part))

    @contextmanager
    def isolated(self, names: Sequence[str], params: Sequence[Any]) -> Iterator[None]:
        """As `region`, of an operation whose lines see nothing but its parameters."""
        with self.region():
            yield

    def with_region(self, head: str, params: Sequence[Any], body: Callable[..., Any], tail: str,
                    count: int) -> list[str]:
        """Append an operation in generic form with one region.

        `head` is all up to `({`, `tail` all after `})`. `params` are the avals of the region's
        arguments; `body` gets their names and returns the names of the region's results with
        their types through `(names, avals)`.
        """
        prefix, results = results_of(self.name, count)
        self.opening(f"{prefix}{head} ({{")
        names = self.parameters(params)
        with self.region():
            outs, avals = body(*names)
            values = f" {', '.join(outs)} : {tensor_types(avals)}" if outs else ""
            self.raw(f"stablehlo.return{values}")
        self.raw(f"}}) {tail}")
        return results

    def parameters(self, avals: Sequence[Any]) -> list[str]:
        """The names of a region's arguments, which it opens with."""
        names = [self.name() for _ in avals]
        args = ", ".join([f"{n}: {tensor_type(a)}" for n, a in zip(names, avals, strict=True)])
        self.opening(f"^bb0({args}):" if names else "^bb0:")
        return names

    def loop(self, start: Sequence[str], avals: Sequence[Any],
             test: Callable[[Sequence[str]], str], body: Callable[[Sequence[str]], Sequence[str]]
             ) -> list[str]:
        """Append a loop over values of these types, which begin as `start`. `test` and `body` write
        what it runs, given the names of the values, and return those of what comes of it."""
        prefix, results = results_of(self.name, len(start))
        names = [self.name() for _ in start]
        pairs = ", ".join([f"{name} = {x}" for name, x in zip(names, start, strict=True)])
        types = tensor_types(avals)
        self.opening(f"{prefix}stablehlo.while({pairs}) : {types} cond {{")
        with self.region("while/cond"):
            self.raw(f"stablehlo.return {test(names)} : tensor<i1>")
        self.opening("} do {")
        with self.region("while/body"):
            self.raw(f"stablehlo.return {', '.join(body(names))} : {types}")
        self.raw("}")
        return results

    # -- constants ---------------------------------------------------------------------------------

    def constant(self, value: Any, aval: ShapedArray) -> str:
        """A rank-0 or splat constant of the given aval; one for all its uses in the block."""
        text = scalar_text(value, aval.dtype)
        key = (text, aval)
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = self.line(
                f"stablehlo.constant dense<{text}> : {tensor_type(aval)}")
        return name

    def literal(self, literal: Literal) -> str:
        """A constant as it stands in a program."""
        if literal.aval.shape:
            return self.dense(literal.val)
        return self.constant(literal.val, literal.aval)

    def dense(self, array: Any) -> str:
        """A constant array."""
        array = np.asarray(array)
        aval = ShapedArray(array.shape, array.dtype)
        return self.line(f"stablehlo.constant dense<{dense_text(array)}> : {tensor_type(aval)}")

    def numbers(self, values: Sequence[int], dtype: DTypeLike) -> str:
        """A vector of integers."""
        return self.dense(np.array(values, dtype))

    def check_known(self, name: str, params: Mapping[str, Any], names: Sequence[str],
                    why: str = "", cure: str = "") -> None:
        """Raise NotImplementedError where one of these parameters, which become attributes of
        StableHLO, holds a symbol, as in dynamic modules alone."""

    # -- what many rules need ----------------------------------------------------------------------

    def widened(self, atom: Any, env: dict[Var, str], shape: tuple[int, ...]) -> str:
        """An operand of an elementwise operation, a rank-0 one brought to the result's shape."""
        aval = atom.aval
        target = aval if aval.shape == shape else aval.update(shape=shape)
        if type(atom) is Literal:
            return self.dense(atom.val) if aval.shape else self.constant(atom.val, target)
        return env[atom] if target is aval else self.broadcast(env[atom], aval, target, ())

    def broadcast(self, operand: str, in_aval: ShapedArray | AbstractRef,
                  out_aval: ShapedArray | AbstractRef, dims: Sequence[int]) -> str:
        return self.line(
            f"stablehlo.broadcast_in_dim {operand}, dims = [{', '.join(map(str, dims))}] : "
            f"({tensor_type(in_aval)}) -> {tensor_type(out_aval)}")

    def convert(self, operand: str, in_aval: ShapedArray | AbstractRef,
                out_aval: ShapedArray | AbstractRef) -> str:
        if in_aval.dtype == out_aval.dtype:
            return operand
        return self.line(
            f"stablehlo.convert {operand} : ({tensor_type(in_aval)}) -> {tensor_type(out_aval)}")

    def in_bytes(self, xs: Sequence[str], avals: Sequence[Any]) -> tuple[list[str], list[Any]]:
        """Operands that are only moved or compared, with 2-bit integers as int8: XLA's compiler
        for CPU ends the process where these are concatenated or padded, and sorts them wrongly."""
        # On every platform, though the faults were seen on CPU alone: on others nobody has seen
        # that the narrow operations are right, and there the conversions cost nothing in memory,
        # as they are fused with what moves the values.
        wide = [a.update(dtype=_INT8) if a.dtype in OF_TWO_BITS else a for a in avals]
        return [self.convert(*x) for x in zip(xs, avals, wide, strict=True)], wide

    def unary(self, op: str, x: str, aval: ShapedArray | AbstractRef) -> str:
        return self.line(f"{op} {x} : {tensor_type(aval)}")

    def iota(self, aval: ShapedArray, axis: int) -> str:
        if self.module.platform == "cpu" and type(aval.size) is int and aval.size > _MOST_COUNTED:
            raise RuntimeError(
                f"RESOURCE_EXHAUSTED: iota of type {aval.str_short()} has over 2**36 elements, "
                "for which XLA's compiler for the CPU ends the process; make an axis smaller.")
        return self.line(f"stablehlo.iota dim = {axis} : {tensor_type(aval)}")

    def plus(self, x: str, k: int, aval: ShapedArray) -> str:
        """`x + k`, without an operation if that is `x`."""
        return self.binary("stablehlo.add", x, self.constant(k, aval), aval) if k else x

    def binary(self, op: str, x: str, y: str, aval: ShapedArray | AbstractRef) -> str:
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
            f"{pred_type}, {tensor_type(aval)}")

    def call(self, function: str, operands: Sequence[str], in_avals: Sequence[Any],
             out_avals: Sequence[Any], attributes: str = "") -> list[str]:
        """Call a function of the module."""
        text = (
            f"func.call @{function}({', '.join(operands)}){attributes} : "
            f"({tensor_types(in_avals)}) -> ({tensor_types(out_avals)})")
        return self.multi(text, len(out_avals))

    def custom_call(self, target: str, operands: Sequence[str], in_avals: Sequence[Any],
                    out_avals: Sequence[Any], *, family: str = "",
                    config: Mapping[str, Any] | str = "", batch_axes: int | None = None,
                    aliases: Mapping[int, int] | None = None, has_side_effect: bool = False,
                    api_version: int = 4, layouts: Sequence[Sequence[Sequence[int]]] | None = None,
                    on_device: int | None = None, sharding_rule: str = "", kernel: str = ""
                   ) -> list[str]:
        """Call a foreign function.

        Args:
          target: the name that it is registered by.
          family: the family of functions to register before the program is compiled, such as
            `lapack`; empty for targets that XLA knows.
          config: attributes by name, NumPy scalars for attributes of a certain width; or a string,
            as older versions of the interface take it.
          batch_axes: the number of leading axes over which the function maps: what has two axes
            more is a matrix, stored column by column.
          aliases: for results that take over an operand's memory, the operand's number.
          has_side_effect: whether the call is made though nobody uses its results.
          api_version: of XLA's interface: 4 for functions of XLA's FFI.
          layouts: for operands and for results, the axes of each in memory, the slowest first.
          on_device: the place of the device that makes the call for all, with the whole values.
          sharding_rule: which dimensions of operands and results belong together, as Shardy says.
          kernel: what a profile calls it.
        """
        if family:
            self.module.custom_calls.add(family)
        attributes = [f"api_version = {api_version} : i32"]
        if config:
            attributes.append(f"backend_config = {attribute(config)}")
        if has_side_effect:
            attributes.append("has_side_effect = true")
        if aliases:
            attributes.append(f"output_operand_aliases = [{_aliases(aliases, len(out_avals))}]")
        if batch_axes is not None:  # says to partitioners that these axes may be split
            attributes.append("mhlo.frontend_attributes = "
                              f'{{num_batch_dims = "{batch_axes}"}}')
            if batch_axes and self.module.partitions > 1:
                attributes.append(batch_rule(in_avals, out_avals, batch_axes))
        if on_device is not None and self.module.partitions > 1:
            each = ", ".join([f"<@{self.module.meshes.device(on_device)}, []>"]
                             * max(len(out_avals), 1))
            attributes.append(f"sdy.sharding = #sdy.sharding_per_value<[{each}]>")
        if kernel:
            attributes.append(f'kernel_name = "{kernel}"')
        if sharding_rule:
            attributes.append(f"sdy.sharding_rule = {sharding_rule}")
        rank = -1 if batch_axes is None else batch_axes + 2
        for i, (which, avals) in enumerate((("operand", in_avals), ("result", out_avals))):
            texts = [layout_text(a, getattr(a, "ndim", 0) == rank) for a in avals] \
                if layouts is None else list(map(order_text, layouts[i]))
            attributes.append(f"{which}_layouts = [{', '.join(texts)}]")
        results = tensor_types(out_avals)
        return self.multi(
            f"stablehlo.custom_call @{target}({', '.join(operands)}) {{{', '.join(attributes)}}} : "
            f"({tensor_types(in_avals)}) -> {results if len(out_avals) == 1 else f'({results})'}",
            len(out_avals))


def _aliases(aliases: Mapping[int, int], n_results: int) -> str:
    return ", ".join([
        f"#stablehlo.output_operand_alias<output_tuple_indices = "
        f"[{result if n_results > 1 else ''}], operand_index = {operand}, "
        "operand_tuple_indices = []>" for result, operand in aliases.items()])


def in_avals(eqn: JaxprEqn) -> list[Any]:
    return [v.aval for v in eqn.invars]


def out_aval(eqn: JaxprEqn) -> Any:
    return eqn.outvars[0].aval
