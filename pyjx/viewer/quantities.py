"""How many bytes the values of StableHLO and HLO have, how much arithmetic an operation is, and how
much memory a program needs, step by step.

Arithmetic is told by the leading terms of the usual algorithms; a transcendental function of a
number counts as one operation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from pyjx.core.arithmetic import products
from pyjx.core.forms import plain
from pyjx.core.records import Record
from pyjx.viewer.listing import APPLIED, HEAD, NOTE, OPERATION, Bodies, Listing

# -- bytes and arithmetic --------------------------------------------------------------------------

_HLO_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,<=\s]*)\]")
_TENSOR = re.compile(r"tensor<((?:[\d?]+x)*)([^<>,]+(?:<[^<>]*>)?)[^<>]*>")
_DIGITS = re.compile(r"\d+")


def _bits(element: str) -> int:
    """Bits of an element of a type such as `bf16`, `pred`, `ui8` or `complex<f32>`; 0 of tokens.

    >>> [_bits(t) for t in ("f32", "pred", "i1", "complex<f32>", "c64", "f8E4M3FN", "token")]
    [32, 8, 8, 64, 64, 8, 0]
    """
    if element in ("pred", "i1"):
        return 8
    digits = _DIGITS.search(element)
    if digits is None:
        return 0
    return int(digits[0]) * (2 if element.startswith("complex") else 1)


Shape = tuple[int, ...]
Arrays = tuple[tuple[Shape, int], ...]  # shapes, and bits of an element


@lru_cache(4096)
def hlo_arrays(text: str) -> Arrays:
    """Shape and bits of an element of each array in a type of HLO.

    >>> hlo_arrays("(f32[8,64]{1,0}, s32[])")
    (((8, 64), 32), ((), 32))
    """
    return tuple([(tuple(map(int, _DIGITS.findall(dims))), _bits(element))
                  for element, dims in _HLO_ARRAY.findall(text)])


@lru_cache(4096)
def tensors(text: str) -> Arrays:
    """Shape and bits of an element of each tensor in types of StableHLO; 1 for a size not known.

    >>> tensors("tensor<?x8xcomplex<f32>>, tensor<i1>")
    (((1, 8), 64), ((), 8))
    """
    return tuple([(tuple([1 if d == "?" else int(d) for d in dims.split("x")[:-1]]),
                   _bits(element)) for dims, element in _TENSOR.findall(text)])


def bytes_of(arrays: Arrays) -> int:
    """Bytes of some arrays.

    >>> bytes_of(hlo_arrays("f32[8,64]{1,0}")), bytes_of(hlo_arrays("s4[3]"))
    (2048, 2)
    """
    return sum([(math.prod(shape) * bits + 7) // 8 for shape, bits in arrays])


# What does an operation an element. `convert` and `select` only move.
_ELEMENTWISE = (
    "abs add and atan2 cbrt ceil clamp compare complex cosine count_leading_zeros divide erf "
    "exponential exponential_minus_one floor imag is_finite log log_plus_one logistic maximum "
    "minimum multiply negate not or popcnt population_count power real remainder "
    "round_nearest_afz round_nearest_even rsqrt shift_left shift_right_arithmetic "
    "shift_right_logical sign sine sqrt subtract tan tanh xor")
_ELEMENTWISE_NAMES = frozenset(_ELEMENTWISE.split())
_CONTRACTING = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}|contracting_dims = \[([\d, ]*)\] x|"
                          r"lhs_contracting_dimensions\"?(?: = |:)\[([\d, \"]*)\]")
_LIBRARY_PRODUCT = re.compile(r'custom_call_target="__cublas|__triton_gemm')
_WINDOW = re.compile(r"(?:window=\{size=|window_dimensions = array<i64: )([\dx, ]+)")
_LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)|"
                     r"dim_numbers = \[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]")

_COMBINING = frozenset(("reduce", "reduce_window", "select_and_scatter", "scatter", "all_reduce",
                        "reduce_scatter"))


def arithmetic(operation: str, text: str, operands: Sequence[Shape], results: Sequence[Shape]
               ) -> float:
    """Arithmetic operations of one operation.

    >>> arithmetic("dot", "lhs_contracting_dims={1}", [(3, 4), (4, 5)], [(3, 5)])
    120.0
    >>> arithmetic("stablehlo.add", "", [(3, 4), (3, 4)], [(3, 4)])
    12.0
    """
    name = plain(operation)
    out = float(sum(map(math.prod, results)))
    if name in _ELEMENTWISE_NAMES:
        return out
    if name == "custom_call" and operands and _LIBRARY_PRODUCT.search(text):
        name, out = "dot", float(math.prod(results[0]))  # behind it is space to work in
    if name in ("dot", "dot_general") and operands:
        found = _CONTRACTING.search(text)
        if found is None and out:  # `stablehlo.dot`: (m k)(k n) / (m n) = k squared
            return 2 * out * math.sqrt(math.prod(map(math.prod, operands[:2])) / out)
        dims = map(int, re.findall(r"\d+", "".join(filter(None, found.groups())))) if found else ()
        return 2 * out * math.prod([operands[0][d] for d in dims if d < len(operands[0])])
    if name == "convolution" and len(operands) > 1:
        return _convolution(text, operands[0], operands[1], results[0])
    if name == "sort" and operands and operands[0]:
        return math.prod(operands[0]) * math.log2(max(operands[0][-1], 2))
    if name == "fft" and operands and operands[0]:
        return 5 * out * math.log2(max(operands[0][-1], 2))
    return 0.0


def combinations(operation: str, text: str, operands: Sequence[Shape], results: Sequence[Shape]
                 ) -> Bodies | None:
    """How an operation runs its bodies on single elements; None if it is none that does.

    >>> combinations("reduce-window", "window={size=2x3 pad=0_0x1_1}", [(4, 4), ()], [(3, 4)])
    Bodies(how=2, times=(60.0,))
    >>> combinations("stablehlo.reduce", "", [(3, 4), ()], [(3,)]).times
    (9.0,)
    """
    name = plain(operation)
    if name not in _COMBINING or not operands or not results:
        return None
    sizes, out = [float(math.prod(shape)) for shape in operands], float(math.prod(results[0]))
    window = _WINDOW.search(text) if name in ("reduce_window", "select_and_scatter") else None
    joined = math.prod(map(int, re.findall(r"\d+", window[1]))) - 1 if window else 0
    times: tuple[float, ...] = (sum(sizes),)  # over devices, of each operand
    if name == "reduce":
        times = (max(sizes[0] - out, 0.0),)
    elif name == "reduce_window":
        times = (out * joined,)
    elif name == "scatter":
        times = (sizes[-1],)
    elif name == "select_and_scatter":  # what is scattered comes second
        times = (sum(sizes[1:2]) * joined, sum(sizes[1:2]))
    return Bodies(APPLIED, times)


def _convolution(text: str, x: Shape, kernel: Shape, out: Shape) -> float:
    """As `pyjx.core.arithmetic.products` counts it."""
    found = _LABELS.search(text)
    sides = [re.findall(r"\w", side) for side in found.groups() if side] if found else []
    if [len(side) for side in sides] != [len(x), len(kernel), len(out)]:
        return 2.0 * math.prod(out) * math.prod(kernel)
    n = len(out) - 2

    def along(name: str, default: int, each: int = 1) -> list[int]:
        given = re.search(rf"\b{name} ?= ?(\[\[.*?\]\]|\[[^\]]*\]|[\dx_-]+)", text)
        numbers = list(map(int, re.findall(r"-?\d+", given[1]))) if given else []
        return (numbers if len(numbers) == each * n else [default] * each * n)[::each]

    windows = zip(along("stride", 1), along("pad", 0, 2), along("lhs_dilate", 1),
                  along("rhs_dilate", 1), strict=True)
    inner, of_kernel, outer = sides
    made = [products(out[outer.index(str(i))], kernel[of_kernel.index(str(i))],
                     x[inner.index(str(i))], *window) for i, window in enumerate(windows)]
    others = out[outer.index("b")] * out[outer.index("f")]
    return 2.0 * others * kernel[of_kernel.index("i")] * math.prod(made)


# -- memory step by step ---------------------------------------------------------------------------

# A value takes its bytes from the operation that makes it to the last one that reads it. Views of
# other values take none, nor do constants, nor what is written in place of what nobody reads later;
# arguments are there all the time, and results stay. That XLA may write any result where an operand
# was is not in it.

_MOST_STEPS = 200_000  # of called functions, which are steps of their caller


class MemoryCurve(Record):
    """Memory over time.

    Attributes:
      rows: the row that each step runs.
      live: bytes at each step, arguments among them.
      arguments: bytes of the arguments.
      largest: the rows whose values are alive at the peak, with their bytes; largest first.
    """

    rows: list[int]
    live: list[int]
    arguments: int
    largest: list[tuple[int, int]]

    @property
    def peak(self) -> int:
        return max(self.live, default=self.arguments)


def memory(listing: Listing, constants: frozenset[str], most: int = 2000) -> MemoryCurve:
    """The memory that the first function of a listing needs, in at most so many steps.

    `constants` are the operations that take no memory.
    """
    estimate = _Estimate(listing, constants)
    head = listing.entry
    curve = estimate.function(head)
    arguments = estimate.arguments(head)
    steps = [(row, live + arguments) for row, live in curve.steps]
    largest: list[tuple[int, int]] = []
    if steps:
        peak = max(range(len(steps)), key=lambda i: steps[i][1])
        largest = sorted(estimate.alive(head, peak), key=lambda pair: (-pair[1], pair[0]))
    thinned = _thinned(steps, most)
    return MemoryCurve([row for row, _ in thinned], [live for _, live in thinned], arguments,
                  largest[:40])


def _thinned(steps: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """The highest step of each of so many parts."""
    size = -(-len(steps) // most) if steps else 1
    return [max(steps[i:i + size], key=lambda step: step[1]) for i in range(0, len(steps), size)]


_Part = tuple[int, int]  # a value, or an element of it: its row, and its position
_GIVEN = -1  # the position of what the body of a loop gets, whose memory is not its own


class _Curve(Record):
    """Memory within a function, and for each value (its row, its bytes) from which of the
    function's own steps to which it is alive."""

    steps: list[tuple[int, int]]
    starts: list[tuple[int, int]]  # (number of the first step, row), for each row of the function
    values: list[tuple[int, int, int, int]]  # row, bytes, first and last row


class _Estimate:
    """Curves of functions, each computed once."""

    def __init__(self, listing: Listing, constants: frozenset[str]) -> None:
        self._listing = listing
        self._constants = constants
        self._ends = listing.ends()
        self._known: dict[int, _Curve] = {}
        # Bodies of loops, which write into what they get: the loop has memory for it.
        self._repeated = {body for row in listing.bodies for body in self._bodies(row)
                          if row in listing.in_place or row in listing.views}

    def arguments(self, head: int) -> int:
        """Bytes of a function's arguments: those that its head has, and those in rows."""
        listing = self._listing
        own = self._own(head, parameters=True)
        return listing.size[head] + sum([
            sum(self._sizes(r)) for r in own if listing.operation[r] == "parameter"])

    def function(self, head: int) -> _Curve:
        """The curve of a function, or of a body that begins with a note."""
        if head not in self._known:
            self._known[head] = _Curve([], [], [])  # for a call of itself
            self._known[head] = self._computed(self._own(head), head)
        return self._known[head]

    def _sizes(self, row: int) -> Sequence[int]:
        """The bytes of what a row gives, or of each of its elements."""
        return self._listing.elements.get(row) or (self._listing.size[row],)

    def _own(self, head: int, parameters: bool = False) -> list[int]:
        """The operations of a function itself; with its `parameters` or without."""
        listing, rows = self._listing, []
        row = head + 1
        while row < self._ends[head]:
            if listing.kind[row] == NOTE:  # such as the one above the parameters
                row += 1
                continue
            if parameters or listing.operation[row] != "parameter":
                rows.append(row)
            row = self._ends[row]
        return rows

    def _computed(self, rows: Sequence[int], head: int) -> _Curve:
        listing = self._listing
        values, freed = self._values(rows, head)
        made: dict[int, int] = {}
        for _, size, first, _ in values:
            made[first] = made.get(first, 0) + size
        steps: list[tuple[int, int]] = []
        starts: list[tuple[int, int]] = []
        live = 0
        for row in rows:
            if listing.kind[row] != OPERATION:
                continue
            starts.append((len(steps), row))
            if row in listing.in_place:  # there while it runs
                live += made.pop(row, 0)
            if len(steps) < _MOST_STEPS:
                for body in self._bodies(row):
                    steps += [(r, live + b) for r, b in self.function(body).steps]
            live += made.get(row, 0)
            steps.append((row, live))
            live -= freed.get(row, 0)
        return _Curve(steps, starts, values)

    def _bodies(self, row: int) -> list[int]:
        """The functions that an operation runs, or the notes above its bodies."""
        listing = self._listing
        if not listing.runs_bodies(row):
            return []
        called = list(listing.calls.get(row, ()))
        inner = row + 1
        if inner < self._ends[row] and listing.kind[inner] != NOTE:
            return [*called, row]  # one body, right below
        while inner < self._ends[row]:
            if listing.kind[inner] == NOTE:
                called.append(inner)
            inner = self._ends[inner]
        return called

    def _values(self, rows: Sequence[int], head: int
                ) -> tuple[list[tuple[int, int, int, int]], dict[int, int]]:
        """The values of some rows (row, bytes, first and last row), and the bytes that are freed
        behind each row."""
        listing = self._listing
        parts: dict[int, list[_Part]] = {}
        sizes: dict[_Part, int] = {}
        last: dict[_Part, int] = {}
        for row in (head, *self._own(head, parameters=True)) if head in self._repeated else ():
            if row == head or listing.operation[row] == "parameter":
                parts[row] = [(row, _GIVEN)]
        for row in rows:
            read = [part for o in self._reads(row) for part in parts.get(o, ())]
            for part in read:
                last[part] = row
            if row in listing.views:
                pick = listing.picks.get(row)
                parts[row] = read if pick is None or pick >= len(read) else [read[pick]]
                continue
            if listing.operation[row] in self._constants or listing.kind[row] == HEAD:
                continue
            parts[row] = []
            for i, size in enumerate(self._sizes(row)):
                parts[row].append((row, i))
                sizes[row, i] = size
                last[row, i] = row
        if rows:  # results stay
            for part in parts.get(rows[-1], [p for o in listing.operands[rows[-1]]
                                             for p in parts.get(o, ())]):
                last.pop(part, None)
        self._merge(parts, sizes, last)
        values = [(row, size, row, last.get((row, i), rows[-1])) for (row, i), size in
                  sizes.items() if size]
        freed: dict[int, int] = {}
        for part, row in last.items():
            freed[row] = freed.get(row, 0) + sizes.get(part, 0)
        return values, freed

    def _merge(self, parts: dict[int, list[_Part]], sizes: dict[_Part, int],
               last: dict[_Part, int]) -> None:
        """Make one value of each two that are in one place after another."""
        listing = self._listing
        merged: dict[_Part, _Part] = {}
        for row in parts:
            for i, (operand, k) in listing.in_place.get(row, {}).items():
                new, old = (row, i), parts.get(operand)
                if not old:
                    continue
                part = old[k if k < len(old) else 0]
                root = merged.get(part, part)
                if root[1] != _GIVEN and last.get(root) != row:
                    continue
                merged[new] = root
                sizes.pop(new, None)
                last.pop(root, None)
                if new in last:
                    last[root] = last.pop(new)
        for row in listing.given_back & parts.keys():
            for part in parts[row]:
                sizes.pop(merged.get(part, part), None)

    def _reads(self, row: int) -> list[int]:
        """What an operation and its bodies read."""
        operands = self._listing.operands
        end = self._ends[row]
        if end == row + 1:
            return list(operands[row])
        return list(dict.fromkeys([o for r in range(row, end) for o in operands[r]]))

    def alive(self, head: int, step: int) -> list[tuple[int, int]]:
        """The rows whose values are alive at a step of a function, and their bytes."""
        curve = self.function(head)
        start, row = max((pair for pair in curve.starts if pair[0] <= step), default=(0, head))
        found: dict[int, int] = {}
        for made, size, first, until in curve.values:
            if first < row <= until or (first == row and (
                    curve.steps[step][0] == row or row in self._listing.in_place)):
                found[made] = found.get(made, 0) + size
        offset = step - start
        for body in self._bodies(row) if row != head else ():
            length = len(self.function(body).steps)
            if offset < length:
                return [*found.items(), *self.alive(body, offset)]
            offset -= length
        return list(found.items())
