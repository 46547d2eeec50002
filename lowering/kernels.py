"""Functions of kernels for TPUs, as they are written: MLIR of the dialects tpu, vector, arith,
math, memref and scf, which Mosaic compiles.

Scalars of a kernel are scalars there, arrays are vectors, references memrefs. What has no rule is
written as the operations that it is made of.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from lowering.types import element_type
from pyjx.core import dtypes
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.frames import user_frame
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.records import Record

Emit = Callable[..., Any]
_RULES: dict[str, Emit] = {}
INT: Any = np.dtype(np.int32)
FLOAT: Any = np.dtype(np.float32)


class Words(Record):
    """As which numbers of 32 bits narrow integers and floats are computed; None as they are."""

    ints: Any
    floats: Any

    def of(self, dtype: Any) -> Any:
        kind = self.floats if dtypes.issubdtype(dtype, np.floating) else (
            self.ints if dtype.kind in "iu" else None)
        return dtype if kind is None or dtype.itemsize >= 4 else kind


def kernel_rule(*names: str, ints: Any = None, floats: Any = None) -> Callable[[Emit], Emit]:
    """How operations of these names are written: `(kernel, eqn, *operands) -> name`, or names, or
    NotImplemented for those of what they are made of.

    Args:
      ints, floats: as which numbers of 32 bits the rule gets integers and floats of fewer, which
        units of TPUs do not take: INT, FLOAT.
    """
    def register(emit: Emit) -> Emit:
        _WORDS.update(dict.fromkeys(names, Words(ints, floats)))
        _RULES.update(dict.fromkeys(names, emit))
        return emit

    return register


# -- types -----------------------------------------------------------------------------------------


def _element(dtype: Any) -> str:
    """Signless, as all integers of MLIR's own dialects are."""
    return element_type(dtype).replace("ui", "i")


def vector_of(shape: Sequence[int], dtype: Any) -> str:
    if not shape:
        return _element(dtype)
    return f"vector<{''.join([f'{n}x' for n in shape])}{_element(dtype)}>"


def type_of(aval: Any) -> str:
    """The type of a value, or of a reference."""
    if type(aval) is not AbstractRef:
        return vector_of(aval.shape, aval.dtype)
    space = space_of(aval)
    element = "!tpu.dma_semaphore" if aval.kind == "dma" else \
        "!tpu.semaphore" if space == "semaphore_mem" else _element(held(aval.dtype))
    dims = "".join([f"{n}x" for n in aval.shape])
    return f"memref<{dims}{element}, #tpu.memory_space<{space}>>"


def held(dtype: Any) -> Any:
    """The dtype by which references hold values: bools are int32 there."""
    return np.dtype(np.int32) if dtype == np.bool_ else dtype


def space_of(ref: AbstractRef) -> str:
    value = getattr(ref.memory_space, "value", None)
    return {None: "vmem", "default": "vmem", "index": "smem"}.get(value, str(value))


def is_float(aval: Any) -> bool:
    return dtypes.issubdtype(aval.dtype, np.floating)


def _number(value: Any, dtype: Any) -> str:
    """A scalar as MLIR writes it."""
    if dtype == np.bool_:
        return "true" if value else "false"
    if not dtypes.issubdtype(dtype, np.floating):
        return str(int(value))
    if math.isfinite(value):
        return f"{float(value):e}" if float(f"{float(value):e}") == float(value) \
            else f"{float(value)!r}" if "." in f"{float(value)!r}" else f"{float(value):.17e}"
    bits = np.asarray(value, dtype)
    return f"0x{int(bits.view(f'u{bits.itemsize}')):0{2 * bits.itemsize}X}"


# -- functions -------------------------------------------------------------------------------------


def _resizing(old: Any, new: Any, of_floats: bool, kind: str = "") -> str:
    """The operation that gives numbers more or fewer bits."""
    if old.itemsize > new.itemsize:
        return "truncf" if of_floats else "trunci"
    return "extf" if of_floats else "extsi" if (kind or old.kind) == "i" else "extui"


# Shifts fill up by what stands above a narrow number, zeros or its sign, whatever its dtype.
_FILLED = {"shift_right_logical": "uint", "shift_right_arithmetic": "int"}
_WORDS: dict[str, Words] = {}
_WRITTEN = "\nIt is written at "


class Kernel:
    """The lines of a function as they are written.

    `expand` gives the program of the operations that an equation is made of, or None.
    """

    def __init__(self, expand: Callable[[JaxprEqn], ClosedJaxpr | None]) -> None:
        self.expand = expand
        self.lines: list[str] = []
        self._count = 0
        self._indent = "    "
        self._location = ""  # the user's line
        self.read: set[Any] = set()  # the variables that something reads, of the program

    def name(self) -> str:
        self._count += 1
        return f"%{self._count}"

    def raw(self, text: str) -> None:
        inside = text.endswith(("{", ":")) or text.startswith("}")  # of an operation that goes on
        self.lines.append(f"{self._indent}{text}{'' if inside else self._location}")

    def line(self, text: str) -> str:
        name = self.name()
        self.raw(f"{name} = {text}")
        return name

    @contextmanager
    def region(self) -> Iterator[None]:
        before, self._indent = self._indent, self._indent + "  "
        yield
        self._indent = before

    def constant(self, value: Any, dtype: Any, shape: Sequence[int] = ()) -> str:
        if not shape and dtype == np.bool_:
            return self.line(f"arith.constant {_number(value, dtype)}")
        number = _number(value, dtype)
        number = f"dense<{number}>" if shape else number
        return self.line(f"arith.constant {number} : {vector_of(shape, dtype)}")

    def index(self, i: Any) -> str:
        """An int, or the name of an i32, as an index."""
        if isinstance(i, str):
            return self.line(f"arith.index_cast {i} : i32 to index")
        return self.line(f"arith.constant {int(i)} : index")

    def widened(self, x: str, aval: Any, shape: Sequence[int]) -> str:
        """A scalar as a vector of that shape."""
        if aval.shape == tuple(shape):
            return x
        return self.line(
            f"vector.broadcast {x} : {type_of(aval)} to {vector_of(shape, aval.dtype)}")

    def reshaped(self, x: str, dtype: Any, old: Sequence[int], new: Sequence[int]) -> str:
        if tuple(old) == tuple(new):
            return x
        if not old:
            return self.line(f"vector.broadcast {x} : {_element(dtype)} to {vector_of(new, dtype)}")
        if not new:
            at = ", ".join(["0"] * len(old))
            word = Words(INT, FLOAT).of(dtype)
            x = self.converted(x, dtype, word, old)
            x = self.line(f"vector.extract {x}[{at}] : {_element(word)} from "
                          f"{vector_of(old, word)}")
            return self.converted(x, word, dtype, ())
        return self.line(
            f"vector.shape_cast {x} : {vector_of(old, dtype)} to {vector_of(new, dtype)}")

    def inverted(self, x: str, shape: Sequence[int]) -> str:
        """The bools that are not `x`."""
        return self.with_number(shape, "xori", x, True, np.dtype(bool))

    def chosen(self, which: str, yes: str, no: str, aval: Any, shape: Sequence[int] | None = None
               ) -> str:
        """The one or the other by a bool of the same shape, or a scalar."""
        shape = aval.shape if shape is None else shape
        bools = f"{vector_of(shape, np.dtype(bool))}, " if shape else ""
        return self.line(f"arith.select {which}, {yes}, {no} : {bools}{type_of(aval)}")

    # -- programs ----------------------------------------------------------------------------------

    def program(self, jaxpr: Jaxpr, consts: Sequence[Any], names: Sequence[str]) -> list[str]:
        """Write the equations of a program on values of these names; those of its results."""
        env: dict[Var, str] = dict(zip(jaxpr.invars, names, strict=True))
        for v, c in zip(jaxpr.constvars, consts, strict=True):
            env[v] = self.array(np.asarray(c))

        def named(atom: Any) -> str:
            if type(atom) is Literal:
                return self.constant(np.asarray(atom.val)[()], atom.aval.dtype)
            return env[atom]

        atoms = [*jaxpr.outvars, *[x for eqn in jaxpr.eqns for x in eqn.invars]]
        around, self.read = self.read, {x for x in atoms if type(x) is not Literal}
        for eqn in jaxpr.eqns:
            frame = user_frame(eqn.source_info.traceback)
            if frame is not None:
                self._location = f' loc({json.dumps(frame.file_name)}:{frame.start_line}:1)'
            try:
                out = self.equation(eqn, [named(x) for x in eqn.invars])
            except NotImplementedError as error:  # of the innermost equation that has a line
                if frame is not None and _WRITTEN not in str(error):
                    error.args = (f"{error}{_WRITTEN}{frame}.",)
                raise
            outs = out if isinstance(out, (list, tuple)) else [out]
            env.update(zip(eqn.outvars, outs, strict=True))
        self.read = around
        return [named(x) for x in jaxpr.outvars]

    def array(self, value: np.ndarray) -> str:
        """A constant: of one value, or that counts along an axis."""
        first = value.reshape(-1)[0] if value.size else 0
        if not value.size or (value == first).all():
            return self.constant(first, value.dtype, value.shape)
        if dtypes.issubdtype(value.dtype, np.number):
            for axis, n in enumerate(value.shape):
                along = [n if i == axis else 1 for i in range(value.ndim)]
                counted = first + np.arange(n, dtype=value.dtype).reshape(along)
                if (value == counted).all():
                    places = self.iota(value.shape, value.dtype, axis)
                    start = self.constant(first, value.dtype, value.shape)
                    op = "addf" if dtypes.issubdtype(value.dtype, np.floating) else "addi"
                    return self.line(
                        f"arith.{op} {places}, {start} : {vector_of(value.shape, value.dtype)}")
        raise NotImplementedError(
            f"pallas_call for TPU: a kernel holds the array {dtypes.name(value.dtype)}"
            f"{list(value.shape)}. Pass it as an argument.")

    def iota(self, shape: Sequence[int], dtype: Any, axis: int) -> str:
        """Places along an axis. Those of vectors have two axes at least."""
        wide = tuple(shape) if len(shape) > 1 else (1, *shape)
        x = self.line(f"tpu.iota {{dimensions = array<i32: {axis + len(wide) - len(shape)}>}} : "
                      f"{vector_of(wide, INT)}")
        x = self.reshaped(x, INT, wide, shape)
        op = "sitofp" if dtypes.issubdtype(dtype, np.floating) else {
            1: "trunci", 2: "trunci", 8: "extsi"}.get(dtype.itemsize)
        if op is None:
            return x
        return self.line(f"arith.{op} {x} : {vector_of(shape, INT)} to {vector_of(shape, dtype)}")

    def int32(self, x: str, aval: Any) -> str:
        """An integer scalar as an int32."""
        return self.converted(x, aval.dtype, INT, ())

    def _cast(self, shape: Sequence[int], op: str, x: str, old: Any, new: Any) -> str:
        return self.line(f"arith.{op} {x} : {vector_of(shape, old)} to {vector_of(shape, new)}")

    def with_number(self, shape: Sequence[int], op: str, x: str, number: Any, dtype: Any) -> str:
        """An operation with the same number for all elements."""
        return self.line(f"arith.{op} {x}, {self.constant(number, dtype, shape)} : "
                         f"{vector_of(shape, dtype)}")

    def converted(self, x: str, old: Any, new: Any, shape: Sequence[int]) -> str:
        """Numbers or bools of a dtype as those of another. It goes by way of 32 bits: there all
        compilers know all conversions, but those between floats and unsigned integers, which are
        made of those of signed ones.

        Raises:
          NotImplementedError: integers of 64 bits are made of floats, or floats of them.
        """
        cast, of = partial(self._cast, shape), partial(self.with_number, shape)
        if old == new:
            return x
        from_floats, to_floats = [dtypes.issubdtype(d, np.floating) for d in (old, new)]
        wide = FLOAT if from_floats else INT
        if (from_floats != to_floats or new == np.bool_) and max(old.itemsize, new.itemsize) > 4:
            raise NotImplementedError(f"pallas_call for TPU: {dtypes.name(old)} does not become "
                                      f"{dtypes.name(new)} in a kernel. Convert it to int32 first.")
        if old == np.bool_:
            x = self.number(x, shape)
        elif old.itemsize != 4:
            x = cast(_resizing(old, wide, from_floats), x, old, wide)
        if new == np.bool_:
            if old.itemsize < 4:  # by the bits of float32, as comparisons of less are no vectors
                x = x if from_floats else cast("sitofp", x, INT, FLOAT)
                x = of("andi", cast("bitcast", x, FLOAT, INT), 0x7FFFFFFF, INT)
            elif from_floats:
                return self.inverted(of("cmpf oeq,", x, 0, wide), shape)
            return of("cmpi ne,", x, 0, INT)
        if from_floats and not to_floats:
            return self._truncated(x, new, shape)
        if to_floats and old.kind == "u" and old.itemsize == 4:
            high = of("mulf", cast("sitofp", of("shrui", x, 16, INT), INT, FLOAT), 65536, FLOAT)
            low = cast("sitofp", of("andi", x, 65535, INT), INT, FLOAT)
            x = self.line(f"arith.addf {high}, {low} : {vector_of(shape, FLOAT)}")
        elif to_floats and not from_floats:
            x = cast("sitofp", x, INT, FLOAT)
        wide = FLOAT if to_floats else INT
        return x if new.itemsize == 4 else cast(
            _resizing(wide, new, to_floats, old.kind), x, wide, new)

    def _truncated(self, x: str, new: Any, shape: Sequence[int]) -> str:
        """Numbers of float32 as integers: those that are NaN as 0, and those beyond the ends as
        the ends, as XLA has it."""
        cast, of = partial(self._cast, shape), partial(self.with_number, shape)
        aval = ShapedArray(tuple(shape), FLOAT)
        known = self.line(f"arith.cmpf oeq, {x}, {x} : {vector_of(shape, FLOAT)}")
        x = self.chosen(known, x, self.constant(0, FLOAT, shape), aval)
        ends, ints = dtypes.iinfo(new), aval.update(dtype=INT)
        x = of("maximumf", x, ends.min, FLOAT)
        if new.itemsize < 4:
            x = cast("fptosi", of("minimumf", x, ends.max, FLOAT), FLOAT, INT)
            return cast("trunci", x, INT, new)
        half = 2.0 ** 31  # the first float that int32 does not hold
        beyond = of("cmpf oge,", x, half * (2 if new.kind == "u" else 1), FLOAT)
        low = cast("fptosi", x, FLOAT, INT)
        if new.kind == "u":
            high = of("xori", cast("fptosi", of("subf", x, half, FLOAT), FLOAT, INT), -2 ** 31, INT)
            low = self.chosen(of("cmpf oge,", x, half, FLOAT), high, low, ints)
        last = self.constant(-1 if new.kind == "u" else ends.max, INT, shape)
        return self.chosen(beyond, last, low, ints)

    def number(self, x: str, shape: Sequence[int]) -> str:
        """Bools as int32, by way of floats: compilers join two conversions of integers into one,
        and from bools to narrow integers older ones have none."""
        if not shape:
            return self.line(f"arith.extui {x} : i1 to i32")
        x = self.line(f"arith.select {x}, {self.constant(1, FLOAT, shape)}, "
                      f"{self.constant(0, FLOAT, shape)} : {vector_of(shape, np.dtype(bool))}, "
                      f"{vector_of(shape, FLOAT)}")
        return self.line(f"arith.fptosi {x} : {vector_of(shape, FLOAT)} to {vector_of(shape, INT)}")

    def in_words(self, rule: Emit, eqn: JaxprEqn, operands: list[str], words: Words) -> Any:
        """An equation whose narrow numbers are computed in words of 32 bits. Results that are
        narrow are what is left of those."""
        def wide(v: Any) -> Var:
            return Var(v.aval.update(dtype=words.of(v.aval.dtype)))

        if all([words.of(v.aval.dtype) is v.aval.dtype for v in eqn.invars]):
            return rule(self, eqn, *operands)
        ins = []
        for x, v in zip(operands, eqn.invars, strict=True):
            dtype, word = v.aval.dtype, words.of(v.aval.dtype)
            sign = _FILLED.get(eqn.primitive.name)
            if dtype is not word and sign is not None:
                dtype = np.dtype(f"{sign}{8 * dtype.itemsize}")
            ins.append(self.converted(x, dtype, word, v.aval.shape))
        (v,) = eqn.outvars
        out = rule(self, eqn.replace(invars=list(map(wide, eqn.invars)), outvars=[wide(v)]), *ins)
        return out if out is NotImplemented else self.converted(
            out, words.of(v.aval.dtype), v.aval.dtype, v.aval.shape)

    def equation(self, eqn: JaxprEqn, operands: list[str]) -> Any:
        rule = _RULES.get(eqn.primitive.name)
        if rule is not None:
            out = self.in_words(rule, eqn, operands, _WORDS[eqn.primitive.name])
            if out is not NotImplemented:
                return out
        holder = eqn.primitive.holder
        stands_for = holder.runs or holder.stands_for
        closed = self.expand(eqn) if stands_for is None else stands_for(eqn.params)
        if closed is None:
            of = f" of {eqn.invars[0].aval.str_short()}" if eqn.invars else ""
            raise NotImplementedError(
                f"pallas_call for TPU: '{eqn.primitive}'{of} has no form in a kernel. Do it "
                "outside of the kernel, or give pallas_call interpret=True.")
        return self.program(closed.jaxpr, closed.consts, operands)
