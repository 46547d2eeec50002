"""What is told of a bad value that was found, and of a difference."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.core.frames import INSTALLED, Frame, own_frame, shown_path
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.name_stack import NameStack
from pyjx.core.records import Record
from pyjx.core.source_info import SourceInfo
from pyjx.core.value_texts import counted
from pyjx.inspect.straight import line_of, package_line_of, transformation


def place_text(frame: Frame | None) -> str:
    """`model.py:12 (loss)`."""
    if frame is None:
        return "an unknown line"
    return f"{shown_path(frame.file_name)}:{frame.start_line} ({frame.function_name})"


class Step(Record):
    """A step from a program into one that it holds: which, and the line of what holds it."""

    text: str
    line: Frame | None

    @classmethod
    def of(cls, text: str, eqn: JaxprEqn) -> Step:
        return cls(text, line_of(eqn))

    def __str__(self) -> str:
        return f"{self.text} at {place_text(self.line)}"


class Values(Record):
    """What is in an array.

    Attributes:
      type: such as `float32[8,3]`.
      low, high: the least and the largest finite number; None where there is none.
      nans, infs: how many there are.
      size: the number of elements.
      there: the element where the result is bad; None where the two have other shapes.
    """

    type: str
    low: float | None
    high: float | None
    nans: int
    infs: int
    size: int
    there: Any = None

    @classmethod
    def of(cls, x: Any, index: tuple[int, ...] | None, shape: tuple[int, ...]) -> Values:
        if dtypes.is_extended(getattr(x, "dtype", np.dtype(bool))):
            return cls(x.aval.str_short(), None, None, 0, 0, x.size)
        array = np.asarray(x)
        kind = f"{get_aval(x).dtype}[{','.join(map(str, array.shape))}]"
        there = None
        if index is not None and array.size and array.shape in ((), shape):
            there = (array[index] if array.shape else array[()]).item()
        is_complex = dtypes.issubdtype(array.dtype, np.complexfloating)
        wide = np.abs(array) if is_complex else array.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
        return cls(kind, low, high, int(np.isnan(wide).sum()), int(np.isinf(wide).sum()),
                   array.size, there)

    def has_others(self, what: str) -> bool:
        """Whether elements are `nan` or `inf` of which the one there is none."""
        is_bad, count = {"nan": (np.isnan, self.nans), "inf": (np.isinf, self.infs)}.get(
            what, (np.isnan, 0))
        return count > 0 and self.size > 1 and (self.there is None or not is_bad(self.there))

    def __str__(self) -> str:
        parts = [self.type]
        if self.low is not None:
            parts.append(f"from {self.low:.6g} to {self.high:.6g}" if self.size > 1
                         else f"{self.low:.6g}")
        parts += [f"{n} {name} of {self.size}" for n, name in (
            (self.nans, "nan"), (self.infs, "inf")) if n]
        if (there := self.there) is not None and self.size > 1:
            parts.append(f"{there:.6g} there" if isinstance(there, float) else f"{there} there")
        return ", ".join(parts)


class BadValue(Record):
    """The first bad value of a program; true where there is one, and printed as a report.

    Attributes:
      what: which values are bad, such as `nan`.
      operation: the name of the operation that makes it; None where none does.
      line: the user's line that made the operation, a `Frame` of file, function and position.
      package_line: that of an installed package that the user's line calls to make it, if any.
      transformation: what it belongs to, such as `the transpose of the derivative`; or empty.
      steps: what holds it, outermost first: iterations of loops, branches, programs of devices.
      element: the index of the first bad element of the result; None where there is none.
      device: the one that made it, such as `x=3`, where there are several.
      operands, results: `Values`, in order.
      argument: the name of the argument where the value came in with one.
      notes: what was done otherwise than asked for, and why; a bad value that no result shows.
    """

    what: str
    operation: str | None = None
    line: Frame | None = None
    transformation: str = ""
    steps: tuple[Step, ...] = ()
    element: tuple[int, ...] | None = None
    device: str | None = None
    operands: tuple[Values, ...] = ()
    results: tuple[Values, ...] = ()
    argument: str | None = None
    notes: tuple[str, ...] = ()
    package_line: Frame | None = None

    def within(self, around: SourceInfo) -> BadValue:
        """The report of a program that an operation made `around` runs: what has no place of its
        own has that one's."""
        line = own_frame(around.traceback)
        names = filter(None, [transformation([around.name_stack]), self.transformation])
        steps = tuple([step._replace(line=step.line or line) for step in self.steps])
        return self._replace(line=self.line or line, transformation=" of ".join(names), steps=steps)

    def __bool__(self) -> bool:
        return self.operation is not None or self.argument is not None

    def __str__(self) -> str:
        notes = [f"  Note: {note}" for note in self.notes]
        if not self:
            return "\n".join([f"No {self.what} was found.", *notes])
        lines = []
        if self.argument is not None:
            at = f", at element {list(self.element)}" if self.element else ""
            lines.append(f"The first {self.what} comes in with {self.argument}{at}: "
                         f"{self.results[0]}.")
            lines.append("  No operation makes it: look at where this value is made.")
            return "\n".join([*lines, *notes])
        lines.append(f"{self.operation} makes the first {self.what}, at {place_text(self.line)}")
        text = "" if self.line is None else linecache.getline(
            self.line.file_name, self.line.start_line).strip()
        lines += [f"      {text}"] if text else []
        if self.package_line is not None:
            lines.append(f"  by {INSTALLED.split(place_text(self.package_line))[-1]}")
        lines += [f"  in {self.transformation}"] if self.transformation else []
        lines += [f"  in {step}" for step in self.steps]
        lines += [f"  on device {self.device}"] if self.device is not None else []
        if self.element:  # a scalar's has no index
            lines.append(f"  at element {list(self.element)} of its result")
        lines += [f"  operand {i}: {x}" for i, x in enumerate(self.operands)]
        if any([x.has_others(self.what) for x in self.operands]):
            lines.append(f"  Others were {self.what} before: it is the first of those that the "
                         "result is made of.")
        lines += [f"  result: {x}" for x in self.results]
        cure = _cure(self)
        lines += [f"  {cure}"] if cure else []
        return "\n".join([*lines, *notes])


_OF_INFS = "`python -m pyjx why --inf`, or jax.inspect.find(..., what='inf'),"
_CURES = {
    "log": "Keep its operand positive",
    "sqrt": "Keep its operand from being negative",
    "rsqrt": "Keep its operand positive",
    "div": "Keep its divisor from 0",
    "mul": f"0 times inf is nan: {_OF_INFS} finds what made the factor infinite",
    "pow": "Keep its base positive",
    "exp": "Its operand is too large: bound it, or keep the logarithm of the result; for what is "
           "divided by its sum, or sums in a logarithm, there are jax.nn.softmax and logsumexp",
}
_UNDER_GRAD = ("Where a derivative is taken, choose a harmless operand before the operation, as in "
               "f(jnp.where(ok, x, 1.0)): a `where` behind it lets 0 * inf through.")
_LARGE = re.compile("add|conv|dot|mul|prod|square|sub|sum")  # in names of what has no poles
_BEYOND = ("Its result is beyond the range of its type: scale its operands, or compute it in a "
           "wider type (dtype=, astype; float64 takes jax_enable_x64).")
_OF_MATRICES = {
    "cholesky": "Its matrix is not positive definite: see that it is symmetric with positive "
                "eigenvalues, and add a little to its diagonal, as in a + 1e-6 * jnp.eye(n).",
    **dict.fromkeys(["slogdet", "solve", "triangular_solve"],
                    "Its matrix is singular: see that no row is a sum of others, and add a little "
                    "to its diagonal, as in a + 1e-6 * jnp.eye(n); jnp.linalg.lstsq solves such.")
}


def _cure(found: BadValue) -> str:
    """What to do about it; empty where nothing is known."""
    name = found.operation or ""
    if found.what not in ("nan", "inf"):
        return ""
    if found.what == "nan" and name != "mul" and any([x.infs for x in found.operands]):
        return f"Its operands are infinite: {_OF_INFS} finds what made them so."
    if name in _OF_MATRICES:
        return _OF_MATRICES[name]
    is_power = name in ("integer_pow", "pow") and found.operands[0].there  # that of 0 is a pole
    if found.what == "inf" and (_LARGE.search(name) or is_power):
        return _BEYOND  # where a derivative is taken no other operand helps
    derivative = f" {_UNDER_GRAD}" if "derivative" in found.transformation else ""
    return f"{_CURES[name]}.{derivative}" if name in _CURES else ""


def found_in(what: str, bad: Callable[[Any], Any], eqn: JaxprEqn | None, operands: Sequence[Any],
             results: Sequence[Any], steps: Sequence[Step], stacks: Sequence[NameStack],
             device: str | None, notes: Sequence[str], argument: str | None = None,
             there: tuple[int, tuple[int, ...] | None] = (0, None)) -> BadValue:
    """The report of an equation and its values, or of an argument; `there` is the result that is
    bad, and at which element, or None for the first bad one."""
    k, index = there
    where, shape = results[k], np.shape(results[k])
    if index is None:
        places = np.argwhere(bad(where))
        index = tuple(map(int, places[0])) if len(places) else None
    stacks = [*stacks, *([eqn.source_info.name_stack] if eqn is not None else [])]
    return BadValue(
        what, None if eqn is None else eqn.primitive.name, None if eqn is None else line_of(eqn),
        transformation(stacks), tuple(steps), index,
        device or _device(where, index), tuple([Values.of(x, index, shape) for x in operands]),
        tuple([Values.of(x, index if x is where else None, shape) for x in results]), argument,
        tuple(notes), None if eqn is None else package_line_of(eqn))


def _device(x: Any, index: tuple[int, ...] | None) -> str | None:
    """The device that holds an element of an array over several."""
    sharding = getattr(x, "sharding", None)
    if index is None or sharding is None or sharding.num_devices == 1:
        return None
    for device, part in sharding.devices_indices_map(x.shape).items():
        if all([i in range(*s.indices(n)) for i, s, n in zip(index, part, x.shape, strict=True)]):
            return str(device)
    return None


def without_program(what: str, error: Exception, note: str) -> BadValue:
    """The report of an error that says what it knows."""
    return BadValue(what, operation=str(error), notes=(*getattr(error, "__notes__", ()), note))


def exit_text(small: bool, dtype: Any) -> str:
    """What becomes of a number that leaves the range of its type, one too small or too large."""
    return f"{'underflows to 0' if small else 'overflows'} in {dtype}"


class Deviation(Record):
    """An operation that deviates.

    Attributes:
      operation, line: its name, and the user's line that made it.
      steps: the iterations and branches that hold it, outermost first.
      found: the largest difference between the two ways on the same operands.
      allowed: what rounding makes of it.
      leaves: where the operation is right, and a number leaves the range of its type, what becomes
        of it, such as `underflows to 0 in float32`; `found` is then the number, and `allowed` the
        limit. Empty otherwise.
    """

    operation: str
    line: Frame | None
    steps: tuple[Step, ...]
    found: float
    allowed: float
    leaves: str = ""

    @property
    def place(self) -> str:
        """`sub at model.py:3 (f), in iteration 4 of scan`."""
        inside = "".join([f", in {step.text}" for step in self.steps])
        return f"{self.operation} at {place_text(self.line)}{inside}"

    def __str__(self) -> str:
        if self.leaves:
            return (f"{self.place}: {self.found:.3g} {self.leaves}, where the limit is "
                    f"{self.allowed:.3g}")
        return (f"{self.place}: differs by {self.found:.3g} on the same operands, rounding "
                f"explains {self.allowed:.3g}")


class Comparison(Record):
    """How a program compares with itself, run in another way; true where it agrees.

    Attributes:
      a, b: the two ways.
      rows: for each result whether it agrees, the largest difference, and what is let pass.
      first: the first operation that deviates; None where none does.
      worst: those that deviate most, the worst first.
      growth: for each line the largest difference of its values, in the order of the program.
      lost: where nothing can be told, because rounding alone makes of a result what is as large as
        its values, the operation that does so, with the relative error of its result as `found` and
        that of its operands as `allowed`; where results differ because a number leaves the range
        of its type, the operation where it does, which `leaves` says; None otherwise.
      whole: operations that the second way runs as they are, or that were not looked into.
      nans: for each result how many of its numbers are NaN in both ways, which agrees.
    """

    a: str
    b: str
    rows: tuple[tuple[bool, float, float], ...]
    first: Deviation | None = None
    worst: tuple[Deviation, ...] = ()
    growth: tuple[tuple[str, float], ...] = ()
    lost: Deviation | None = None
    whole: tuple[str, ...] = ()
    nans: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return self.first is None and self.lost is None and all([ok for ok, _, _ in self.rows])

    def __str__(self) -> str:
        whole = [f"taken as they are: {', '.join(self.whole)}"] if self.whole else []
        if self.first is not None:
            return "\n".join([
                f"{self.a} and {self.b} differ, first in {self.first}",
                *["the worst:"] * bool(self.worst), *[f"  {x}" for x in self.worst],
                *["how it grows, by line:"] * bool(self.growth),
                *[f"  {found:10.3g}  {line}" for line, found in self.growth], *whole])
        if self.lost is not None and self.lost.leaves:
            return "\n".join([
                f"{self.a} and {self.b} differ, as a number leaves the range of its type: "
                f"{self.lost}", "  The operation is right. Scale its operands, work with "
                "logarithms as jax.nn.logsumexp does, or compute it in a wider dtype.", *whole])
        if self.lost is not None:
            return "\n".join([
                f"nothing can be told of {self.a} and {self.b}: rounding alone makes differences "
                f"as large as the results: {self.lost.place} makes a relative error of "
                f"{self.lost.allowed:.1g} one of {self.lost.found:.1g}", "  No operation deviates. "
                "Compute this one in double precision, or by a formula that keeps its digits.",
                *whole])
        differ = [f"result {k} by {found:.3g}, where rounding explains {allowed:.3g}"
                  for k, (ok, found, allowed) in enumerate(self.rows) if not ok]
        if not differ:
            nans = [f"; nan in both: {counted(n, 'number')} of result {k}"
                    for k, n in enumerate(self.nans) if n]
            return "\n".join([f"{self.a} and {self.b} agree{''.join(nans)}", *whole])
        look = ("so look at integers, which were passed by" if self.b == "whole" else "so look at "
                "what XLA makes of several: b={'xla_disable_hlo_passes': 'fusion'} compares with "
                "the program without fusions")
        return "\n".join([f"{self.a} and {self.b} differ: {'; '.join(differ)}.",
                          f"  No operation deviates alone, {look}.", *whole])
