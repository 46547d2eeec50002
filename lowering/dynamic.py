"""Programs with symbolic dimensions: StableHLO whose shapes are known where it is called.

Rules write the operations of static shapes. In a dynamic module their types hold expressions, as
in `tensor<[b]x4xf32>` (with brackets of their own), and so may their attributes. As a line is
complete, an operation that needs numbers is replaced here by the one that takes them as operands:
`reshape` by `dynamic_reshape`, `slice` by `real_dynamic_slice`. In the end expressions in types
are written `?`. So no rule has a second version, and static programs pay nothing.

Each function but `main` takes the values of all variables before its parameters; `main` computes
them from the sizes of its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from lowering.builder import Block
from lowering.locations import Locations, Scope
from lowering.module import Function, Module
from lowering.types import CLOSE, OPEN, element_type, expression_text, int_list, quoted, tensor_type
from pyjx.core.avals import SymbolicDim
from pyjx.core.symbolic.parser import Parser
from pyjx.core.symbolic.solving import checks, scope_of, solve

SIZE = "tensor<i64>"

_EXPRESSION = re.compile(f"{OPEN}[^{CLOSE}]*{CLOSE}")


class DynamicModule(Module):
    """A module for arguments whose shapes hold expressions."""

    __slots__ = ("avals", "paths", "scope", "solutions")

    def __init__(self, name: str, platform: str, partitions: int, avals: Sequence[Any],
                 paths: Sequence[str] = ()) -> None:
        super().__init__(name, platform, partitions)
        self.avals = avals
        self.paths = paths
        self.scope = scope_of(avals)
        self.solutions = solve(avals)

    def block(self, scope: Scope) -> DynamicBlock:
        return DynamicBlock(self, scope)

    def add(self, name: str, params: Sequence[Any], results: Sequence[Any], scope: Scope
            ) -> Function:
        function = super().add(name, params, results, scope)
        block: Any = function.block
        if name == "main":
            block.solve(params)
            if self.paths:
                block.check_shapes(params, self.paths)
        else:
            block.sizes = {s.name: f"%dim{i}" for i, s in enumerate(self.solutions)}
            function.params[:0] = [f"{v}: {SIZE}" for v in block.sizes.values()]
            function.param_attributes[:0] = [[] for _ in block.sizes]
        return function

    def text(self, places: Locations | None = None, names_results: bool = False) -> str:
        return _EXPRESSION.sub("?", super().text(places, names_results))


class DynamicBlock(Block):
    """The body of a function of a dynamic module."""

    __slots__ = ("sizes",)

    module: DynamicModule

    def __init__(self, module: Module, scope: Scope) -> None:
        super().__init__(module, scope)
        self.sizes: dict[str, str] = {}  # names of the values of variables

    @contextmanager
    def isolated(self, names: Sequence[str], params: Sequence[Any]) -> Iterator[None]:
        sizes = self.sizes
        try:
            with super().isolated(names, params):
                self.sizes = {}  # XLA finds no shapes in there that are operands
                yield
        finally:
            self.sizes = sizes

    def solve(self, params: Sequence[Any]) -> None:
        """Compute the variables from the parameters of `main`."""
        for s in solve(params):
            value = self._size_of(params, s.argument, s.axis)
            if not (type(s.rest) is int and s.rest == 0):
                value = value - (self.value(s.rest) if isinstance(s.rest, SymbolicDim) else s.rest)
            if s.coefficient != 1:
                value = value // s.coefficient
            self.sizes[s.name] = value.name

    def _size_of(self, params: Sequence[Any], argument: int, axis: int) -> Size:
        """The size of an axis of a parameter of `main`, computed once."""
        key = "axis", argument, axis
        name = self._constants.get(key)
        if name is None:
            size = self.line(f"stablehlo.get_dimension_size %arg{argument}, dim = {axis} : "
                             f"({tensor_type(params[argument])}) -> tensor<i32>")
            name = self._constants[key] = self.line(
                f"stablehlo.convert {size} : (tensor<i32>) -> {SIZE}")
        return Size(self, name)

    def check_shapes(self, params: Sequence[Any], paths: Sequence[str]) -> None:
        """Refuse shapes that are none of those of the parameters of `main`, which messages call by
        these names."""
        values = {name: Size(self, value) for name, value in self.sizes.items()}
        for c in checks(params, solve(params), values, partial(self._size_of, params), paths):
            left, right, *shown = [d.name if isinstance(d, Size) else self.size_constant(d)
                                   for d in (c.left, c.right, *c.shown)]
            holds = super().line(
                f"stablehlo.compare {'EQ' if c.equal else 'GE'}, {left}, {right}, SIGNED : "
                f"({SIZE}, {SIZE}) -> tensor<i1>")
            types = ", ".join(["tensor<i1>", *[SIZE] * len(shown)])
            self.raw(f"stablehlo.custom_call @shape_assertion({', '.join([holds, *shown])}) "
                     f"{{api_version = 2 : i32, error_message = {quoted(c.message)}, "
                     f"has_side_effect = true}} : ({types}) -> ()")

    # -- values of expressions ---------------------------------------------------------------------

    def value(self, dim: Any) -> Size:
        """The value of an expression, computed once in each region."""
        key = "dimension", str(dim)
        name = self._constants.get(key)
        if name is None:
            if type(dim) is not int:
                self._check_sizes(f"the size {dim}")
            name = self._constants[key] = (
                self.size_constant(dim) if type(dim) is int else
                dim.evaluate({v: Size(self, n) for v, n in self.sizes.items()}).name)
        return Size(self, name)

    def _check_sizes(self, what: str) -> None:
        if not self.sizes:
            raise NotImplementedError(
                f"A program of each device (shard_map) asks for {what} of symbolic shapes, which "
                "XLA does not find out there. Ask outside of it, or give the shapes as numbers.")

    def check_known(self, name: str, params: Mapping[str, Any], names: Sequence[str],
                    why: str = "", cure: str = "") -> None:
        for key in names:
            items = np.asarray(params.get(key), object).ravel()  # of padding, pairs
            dims = ", ".join(dict.fromkeys([str(n) for n in items if isinstance(n, SymbolicDim)]))
            if dims:
                raise NotImplementedError(
                    f"{why}{key} of {name} must be numbers for StableHLO; it holds the symbolic "
                    f"size {dims}. Give that dimension as a number{cure}.")

    def size_constant(self, n: int) -> str:
        key = "size", n
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = super().line(f"stablehlo.constant dense<{n}> : {SIZE}")
        return name

    def vector(self, dims: Sequence[Any]) -> str:
        """A vector of the values of dimensions."""
        if all([type(d) is int for d in dims]):
            text = f"dense<{int_list(dims)}>" if dims else "dense<>"
            return super().line(f"stablehlo.constant {text} : tensor<{len(dims)}xi64>")
        return self.joined([self.value(d).name for d in dims])

    def numbers(self, values: Sequence[Any], dtype: Any) -> str:
        if all([type(v) is int for v in values]):
            return super().numbers(values, dtype)
        n = len(values)
        return super().line(f"stablehlo.convert {self.vector(values)} : (tensor<{n}xi64>) -> "
                            f"tensor<{n}x{element_type(dtype)}>")

    def joined(self, values: Sequence[str]) -> str:
        """Scalars as a vector."""
        parts = [super(DynamicBlock, self).line(
            f"stablehlo.reshape {v} : ({SIZE}) -> tensor<1xi64>") for v in values]
        if len(parts) == 1:
            return parts[0]
        return super().line(
            f"stablehlo.concatenate {', '.join(parts)}, dim = 0 : "
            f"({', '.join(['tensor<1xi64>'] * len(parts))}) -> tensor<{len(parts)}xi64>")

    def shape_in(self, tensor: str) -> tuple[Any, ...]:
        """The dimensions in the text of a type."""
        inner = tensor[tensor.index("<") + 1:]
        dims: list[Any] = []
        while True:
            if inner.startswith(OPEN):
                text, _, inner = inner[1:].partition(CLOSE)
                dims.append(self.module.scope.parse(text))  # type: ignore[union-attr]
                inner = inner[1:]
            else:
                found = re.match(r"(\d+)x", inner)
                if found is None:
                    return tuple(dims)
                dims.append(int(found[1]))
                inner = inner[found.end():]

    def dims_in(self, text: str) -> tuple[Any, ...]:
        """The dimensions in the text of an attribute."""
        return Parser(self.module.scope, text).shape()  # type: ignore[arg-type]

    # -- lines -------------------------------------------------------------------------------------

    def line(self, text: str) -> str:
        if OPEN in text:
            for head, pattern, replace in _REPLACED:
                if text.startswith(head):
                    found = pattern.fullmatch(text)
                    replaced = found and replace(self, found.groupdict())
                    if replaced:
                        return replaced if replaced[0] == "%" else super().line(replaced)
                    break
        return super().line(text)

    def call(self, function: str, operands: Sequence[str], in_avals: Sequence[Any],
             out_avals: Sequence[Any], attributes: str = "") -> list[str]:
        self._check_sizes(f"the sizes in {function}")
        sizes = list(self.sizes.values())
        types = ", ".join([SIZE] * len(sizes) + list(map(tensor_type, in_avals)))
        results = ", ".join(map(tensor_type, out_avals))
        return self.multi(f"func.call @{function}({', '.join([*sizes, *operands])}){attributes} : "
                          f"({types}) -> ({results})", len(out_avals))

    def custom_call(self, target: str, operands: Sequence[str], in_avals: Sequence[Any],
                    out_avals: Sequence[Any], **options: Any) -> list[str]:
        symbolic = [any([type(d) is not int for d in getattr(a, "shape", ())]) for a in out_avals]
        if not any(symbolic):
            return super().custom_call(target, operands, in_avals, out_avals, **options)
        shapes = [self.vector(a.shape) for a in out_avals]
        types = [f"tensor<{len(a.shape)}xi64>" for a in out_avals]
        start, n = len(operands), len(shapes)
        results = super().custom_call(target, operands, in_avals, out_avals, **options)
        head, brace, tail = self.lines.pop().partition(") {")
        layouts = ", ".join(["dense<0> : tensor<1xindex>"] * n)
        given = ", ".join(map(tensor_type, in_avals))
        indices = f"dense<{int_list(range(start, start + n))}> : tensor<{n}xi64>"
        # The shapes are operands behind the others, each a vector.
        tail = re.sub(r"operand_layouts = \[(.*?)\], result_layouts",
                      lambda m: f"operand_layouts = [{', '.join(filter(None, [m[1], layouts]))}], "
                                f"indices_of_shape_operands = {indices}, result_layouts", tail)
        tail = tail.replace(f"}} : ({given})", f"}} : ({', '.join(filter(None, [given, *types]))})")
        separator = ", " if operands else ""
        self.lines.append(f"{head}{separator}{', '.join(shapes)}{brace}{tail}")
        return results


class Size:
    """A size as a value in a block, which computes as an int does."""

    __slots__ = ("block", "name")

    def __init__(self, block: DynamicBlock, name: str) -> None:
        self.block = block
        self.name = name

    def _op(self, op: str, x: Any, y: Any) -> Size:
        names = [d.name if isinstance(d, Size) else self.block.size_constant(d) for d in (x, y)]
        return Size(self.block, Block.line(
            self.block, f"stablehlo.{op} {names[0]}, {names[1]} : {SIZE}"))

    def __add__(self, other: Any) -> Size:
        return self._op("add", self, other)

    def __radd__(self, other: Any) -> Size:
        return self if type(other) is int and other == 0 else self._op("add", other, self)

    def __sub__(self, other: Any) -> Size:
        return self._op("subtract", self, other)

    def __rsub__(self, other: Any) -> Size:
        return self._op("subtract", other, self)

    def __mul__(self, other: Any) -> Size:
        return self._op("multiply", self, other)

    __rmul__ = __mul__

    def __mod__(self, other: Any) -> Size:
        # StableHLO's remainder has the dividend's sign, Python's the divisor's.
        once = self._op("remainder", self, other)
        return self._op("remainder", once + other, other)

    def __rmod__(self, other: Any) -> Size:
        return Size(self.block, self.block.size_constant(other)) % self

    def __floordiv__(self, other: Any) -> Size:
        return self._op("divide", self - self % other, other)

    def __rfloordiv__(self, other: Any) -> Size:
        return Size(self.block, self.block.size_constant(other)) // self

    def maximum(self, other: Any) -> Size:
        return self._op("maximum", self, other)

    def minimum(self, other: Any) -> Size:
        return self._op("minimum", self, other)


# -- static operations and what replaces them ------------------------------------------------------

Replace = Callable[[DynamicBlock, Mapping[str, str]], "str | None"]

_REPLACED: list[tuple[str, re.Pattern[str], Replace]] = []


def _replaces(head: str, pattern: str) -> Callable[[Replace], Replace]:
    """Declare the replacement of lines that start with `head` and go on with `pattern`."""

    def register(replace: Replace) -> Replace:
        _REPLACED.append((head, re.compile(re.escape(head) + pattern, re.DOTALL), replace))
        return replace

    return register


def _static(dims: Sequence[Any]) -> bool:
    return all([type(d) is int for d in dims])


def _sizes_type(n: int, times: int = 1) -> str:
    return ", ".join([f"tensor<{n}xi64>"] * times)


@_replaces("stablehlo.constant ", r"dense<(?P<value>.*)> : (?P<type>tensor<.*>)")
def _constant(b: DynamicBlock, m: Mapping[str, str]) -> str:
    shape, element = b.shape_in(m["type"]), _element(m["type"])
    if m["value"].startswith(OPEN):
        dim = b.module.scope.parse(m["value"][1:-1])  # type: ignore[union-attr]
        scalar = b.value(dim).name
        if element != "i64":
            scalar = Block.line(b, f"stablehlo.convert {scalar} : ({SIZE}) -> tensor<{element}>")
    else:
        scalar = Block.line(b, f"stablehlo.constant dense<{m['value']}> : tensor<{element}>")
    if not shape:
        return scalar
    return _stretched(b, scalar, "", f"tensor<{element}>", m["type"])


def _element(tensor: str) -> str:
    return re.sub(rf"^tensor<(?:(?:\d+|{_EXPRESSION.pattern})x)*(.*)>$", r"\1", tensor)


@_replaces("stablehlo.broadcast_in_dim ",
           r"(?P<x>\S+), dims = \[(?P<dims>.*?)\] : \((?P<type>.*)\) -> (?P<out>.*)")
def _broadcast(b: DynamicBlock, m: Mapping[str, str]) -> str:
    return _stretched(b, m["x"], m["dims"], m["type"], m["out"])


def _stretched(b: DynamicBlock, x: str, dims: str, before: str, after: str) -> str:
    shape = b.shape_in(after)
    return Block.line(
        b, f"stablehlo.dynamic_broadcast_in_dim {x}, {b.vector(shape)}, dims = [{dims}] "
        f": ({before}, {_sizes_type(len(shape))}) -> {after}")


@_replaces("stablehlo.reshape ", r"(?P<x>\S+) : \((?P<type>.*)\) -> (?P<out>.*)")
def _reshape(b: DynamicBlock, m: Mapping[str, str]) -> str:
    shape = b.shape_in(m["out"])
    return (f"stablehlo.dynamic_reshape {m['x']}, {b.vector(shape)} : "
            f"({m['type']}, {_sizes_type(len(shape))}) -> {m['out']}")


@_replaces("stablehlo.iota ", r"dim = (?P<dim>\d+) : (?P<out>.*)")
def _iota(b: DynamicBlock, m: Mapping[str, str]) -> str:
    shape = b.shape_in(m["out"])
    return (f"stablehlo.dynamic_iota {b.vector(shape)}, dim = {m['dim']} : "
            f"({_sizes_type(len(shape))}) -> {m['out']}")


@_replaces("stablehlo.slice ",
           r"(?P<x>\S+) \[(?P<ranges>.*)\] : \((?P<type>.*)\) -> (?P<out>.*)")
def _slice(b: DynamicBlock, m: Mapping[str, str]) -> str | None:
    starts: list[Any] = []
    limits: list[Any] = []
    strides: list[Any] = []
    for text in _apart(m["ranges"]):
        start, limit, *stride = map(b.dims_in, text.split(":"))
        starts += start
        limits += limit
        strides += stride[0] if stride else (1,)
    if _static([*starts, *limits, *strides]):
        return None
    vectors = ", ".join(map(b.vector, (starts, limits, strides)))
    return (f"stablehlo.real_dynamic_slice {m['x']}, {vectors} : "
            f"({m['type']}, {_sizes_type(len(starts), 3)}) -> {m['out']}")


def _apart(text: str) -> list[str]:
    """The parts between commas that no parenthesis encloses."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [p for p in parts if p.strip()]


@_replaces("stablehlo.pad ", r"(?P<x>\S+), (?P<value>\S+), low = \[(?P<low>.*)\], high = "
           r"\[(?P<high>.*)\], interior = \[(?P<inside>.*)\] : \((?P<type>.*)\) -> (?P<out>.*)")
def _pad(b: DynamicBlock, m: Mapping[str, str]) -> str | None:
    config = [b.dims_in(m[key]) for key in ("low", "high", "inside")]
    if all(map(_static, config)):
        return None
    return (f"stablehlo.dynamic_pad {m['x']}, {m['value']}, {', '.join(map(b.vector, config))} : "
            f"({m['type']}, {_sizes_type(len(config[0]), 3)}) -> {m['out']}")


@_replaces("stablehlo.dynamic_slice ",
           r"(?P<operands>.*), sizes = \[(?P<sizes>.*)\] : \((?P<types>.*)\) -> (?P<out>.*)")
def _dynamic_slice(b: DynamicBlock, m: Mapping[str, str]) -> str | None:
    sizes = b.dims_in(m["sizes"])
    if _static(sizes):
        return None
    x, *starts = m["operands"].split(", ")
    x_type, *types = _types(m["types"])
    names = []
    for start, kind, size, whole in zip(starts, types, sizes, b.shape_in(x_type), strict=True):
        if kind != SIZE:
            start = Block.line(b, f"stablehlo.convert {start} : ({kind}) -> {SIZE}")
        low, last = b.size_constant(0), b.value(whole - size).name
        names.append(Block.line(b, f"stablehlo.clamp {low}, {start}, {last} : {SIZE}"))
    first, n = b.joined(names), len(sizes)
    limits = Block.line(b, f"stablehlo.add {first}, {b.vector(sizes)} : {_sizes_type(n)}")
    return (f"stablehlo.real_dynamic_slice {x}, {first}, {limits}, {b.vector((1,) * n)} : "
            f"({x_type}, {_sizes_type(n, 3)}) -> {m['out']}")


def _types(text: str) -> list[str]:
    return re.findall(r"tensor<(?:[^<>]|<[^<>]*>)*>", text)


@_replaces('"stablehlo.gather"',
           r"\((?P<operands>.*?)\) <\{(?P<head>.*), slice_sizes = array<i64: (?P<sizes>.*)>\}> : "
           r"\((?P<types>.*)\) -> (?P<out>.*)")
def _gather(b: DynamicBlock, m: Mapping[str, str]) -> str | None:
    sizes = b.dims_in(m["sizes"])
    if _static(sizes):
        return None
    return (f'"stablehlo.dynamic_gather"({m["operands"]}, {b.vector(sizes)}) <{{{m["head"]}}}> : '
            f"({m['types']}, {_sizes_type(len(sizes))}) -> {m['out']}")


@_replaces("stablehlo.convolution",
           r"\((?P<x>[^,]+), (?P<y>[^)]+)\) (?P<head>dim_numbers = \[(?P<spec>[^\]]*)\].*)"
           r"pad = \[(?P<pad>.*)\], lhs_dilate = \[(?P<holes>[^\]]*)\](?P<tail>.*) : "
           r"\((?P<types>.*)\) -> (?P<out>.*)")
def _convolution(b: DynamicBlock, m: Mapping[str, str]) -> str | None:
    """What is padded and dilated by sizes is padded before the convolution, which then has none."""
    pads = [b.dims_in(row) for row in re.findall(r"\[([^\[\]]*)\]", m["pad"])]
    if all(map(_static, pads)):
        return None
    names = m["spec"].split(", ")
    holes = list(map(int, m["holes"].split(", ")))
    x_type, y_type = _types(m["types"])
    shape = list(b.shape_in(x_type))
    config = [(0, 0, 0)] * len(shape)
    for i, ((low, high), hole) in enumerate(zip(pads, holes, strict=True)):
        axis = names.index(str(i))
        config[axis] = low, high, hole - 1
        shape[axis] = shape[axis] + low + high + (shape[axis] - 1) * (hole - 1)
    element = _element(x_type)
    zero = Block.line(b, f"stablehlo.constant dense<{_ZERO.get(element, '0.0')}> : "
                         f"tensor<{element}>")
    vectors = ", ".join([b.vector([c[k] for c in config]) for k in range(3)])
    padded = "".join([f"{d if type(d) is int else expression_text(d)}x" for d in shape])
    x = Block.line(b, f"stablehlo.dynamic_pad {m['x']}, {zero}, {vectors} : ({x_type}, "
                      f"tensor<{element}>, {_sizes_type(len(shape), 3)}) -> "
                      f"tensor<{padded}{element}>")
    ones = ", ".join(["1"] * len(pads))
    return (f"stablehlo.convolution({x}, {m['y']}) {m['head']}"
            f"pad = [{', '.join(['[0, 0]'] * len(pads))}], lhs_dilate = [{ones}]{m['tail']} : "
            f"(tensor<{padded}{element}>, {y_type}) -> {m['out']}")


_ZERO = {f"{sign}i{bits}": "0" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)}
