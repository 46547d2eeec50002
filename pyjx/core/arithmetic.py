"""What operations compute: in which operands they are linear, and the rule `arithmetic` of
primitives, for estimates of costs.

A rule gives the additions, multiplications and the like of an equation, and the exponentials, sines
and the like; or the programs that do them, and how often each runs; None where nobody knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn


# -- linearity -------------------------------------------------------------------------------------

# The fact `Primitive.linear` has an entry for each set of operands in which the operation is linear
# together, the others being fixed: where they stand among the operands. Tables of types ask for it
# (core/open_sums.py).

Linearity = tuple[slice, ...]

NOWHERE: Linearity = ()
FIRST: Linearity = (slice(0, 1),)  # a quotient
LAST: Linearity = (slice(-1, None),)  # a solution, in the right-hand side
TOGETHER: Linearity = (slice(None),)  # a sum
EACH: Linearity = (slice(0, 1), slice(1, 2))  # a product
FIRST_TWO: Linearity = (slice(0, 2),)  # what writes a part of an operand
BUT_FIRST: Linearity = (slice(1, None),)  # a choice
FIRST_AND_THIRD: Linearity = (slice(0, 3, 2),)  # what writes at indices
APART: Linearity = (slice(0, 0),)  # each result is an operand


# -- arithmetic ------------------------------------------------------------------------------------

class Runs(NamedTuple):
    """A program that an operation runs, not on its operands but on elements or parts of them, such
    as that of a reduction on two elements; and how often it runs."""

    program: ClosedJaxpr | Jaxpr
    times: float


Amounts = tuple[float, float]
Arithmetic = Callable[[Any], Amounts | list[Runs] | None]


def size(v: Any) -> float:
    """The number of elements of a variable; one of what has no shape."""
    return float(math.prod(getattr(v.aval, "shape", ())))


# One on complex numbers is so many on real ones: an addition is two, and a multiplication six.
OF_COMPLEX = 4.0


def scale(v: Any) -> float:
    """How many operations on real numbers one on those of a variable is."""
    dtype = getattr(v.aval, "dtype", None)  # not of tokens; those of keys have no kind
    return OF_COMPLEX if getattr(dtype, "kind", "") == "c" else 1.0


def on_results(eqn: JaxprEqn) -> float:
    """An operation for each element of the results."""
    return float(sum([size(v) * scale(v) for v in eqn.outvars]))


def elementwise(eqn: JaxprEqn) -> tuple[float, float]:
    """An operation for each element of the results."""
    return on_results(eqn), 0.0


def transcendental(eqn: JaxprEqn) -> tuple[float, float]:
    """A transcendental operation for each element of the results."""
    return 0.0, on_results(eqn)


def combined(windows: float, eqn: JaxprEqn) -> float:
    """How often two elements are combined, where the elements of each window become one."""
    return windows * (math.prod(eqn.params["window_dimensions"]) - 1)


def joined(eqn: JaxprEqn) -> float:
    """How often a reduction combines two elements: those of a window, or along the axes that go."""
    if "window_dimensions" in eqn.params:
        given, made, p = eqn.invars[0].aval, eqn.outvars[0].aval, eqn.params
        return joined_in_windows(zip(
            made.shape, p["window_dimensions"], given.shape, p["window_strides"],
            [before for before, _ in p["padding"]], p["base_dilation"], p["window_dilation"],
            strict=True))
    results = size(eqn.outvars[0])  # as many in each of them
    return max(size(eqn.invars[0]) - results, 0.0)


def joined_in_windows(axes: Iterable[Sequence[int]]) -> float:
    """How often a reduction of windows combines two elements; of axes it needs what `products`
    does. Windows that each hold all of an axis are the same: one is reduced, without padding.

    >>> joined_in_windows([(5, 1, 5, 1, 0, 1, 1), (4, 3, 4, 1, 1, 1, 1)])
    40.0
    >>> joined_in_windows([(5, 1, 5, 1, 0, 1, 1), (4, 7, 4, 1, 3, 1, 1)])
    15.0
    """
    windows = elements = 1.0
    for out, window, operand, stride, before, dilation, window_dilation in axes:
        whole = window_dilation == 1 and (
            (out - 1) * stride <= before < window - (operand - 1) * dilation)
        windows *= min(out, 1) if whole else out
        elements *= operand if whole else window
    return windows * max(elements - 1, 0.0)


def reduction(eqn: JaxprEqn) -> tuple[float, float]:
    """An operation for each two elements that are combined."""
    return joined(eqn) * scale(eqn.outvars[0]), 0.0


def reduction_by_function(eqn: JaxprEqn) -> list[Runs]:
    """A run of the reduction's function for each two elements that are combined."""
    return [Runs(eqn.params["jaxpr"], joined(eqn))]


def products(out: int, kernel: int, operand: int, stride: int, before: int, dilation: int,
             kernel_dilation: int) -> int:
    """How many products of numbers a convolution makes along an axis: none of what padding, of
    `before` elements at the start, and dilation of the operand put between its own.

    >>> products(4, 3, 4, 1, 1, 1, 1), products(7, 3, 4, 1, 1, 2, 1)
    (10, 10)
    """
    if not all([type(n) is int for n in (out, kernel, operand)]):
        return out * kernel
    # Output o reads place starts + o * stride, which has a number every `dilation` places.
    starts = np.arange(kernel) * kernel_dilation - before
    common = math.gcd(stride, dilation)
    period = dilation // common
    first = np.maximum(-(starts // stride), 0)
    last = np.minimum((operand * dilation - 1 - starts) // stride, out - 1)
    some = -(starts // common) * pow(stride // common, -1, period) % period
    found = (last - some) // period - (first - 1 - some) // period
    return int(np.where(starts % common == 0, np.maximum(found, 0), 0).sum())


def nothing(eqn: JaxprEqn) -> tuple[float, float]:
    """Of what tells XLA where values lie, or puts parts together; that it only moves values would
    let passes move it."""
    return 0.0, 0.0


def unknown(eqn: JaxprEqn) -> None:
    """Of foreign functions nobody knows."""


# -- matrices --------------------------------------------------------------------------------------

class OfMatrices:
    """The rule of an operation on matrices, of m rows and n columns, or the other way round, of
    which there are no more, with so many elements of the result: the leading terms of what usual
    algorithms do to one."""

    __slots__ = ("terms",)

    def __init__(self, terms: Callable[[float, float, float], float]) -> None:
        self.terms = terms

    def __call__(self, eqn: JaxprEqn) -> tuple[float, float]:
        a = eqn.invars[0]
        return self.amount(a.aval.shape, eqn.outvars[0].aval.shape) * scale(a), 0.0

    def amount(self, a: Sequence[int], result: Sequence[int]) -> float:
        """What it does to all matrices of an operand.

        >>> CHOLESKY.amount((2, 3, 3), (2, 3, 3))
        18.0
        """
        batch = math.prod(a[:-2])
        n, m = sorted((1, 1, *a)[-2:])
        return batch * self.terms(m, n, math.prod(result) / (batch or 1))


CHOLESKY = OfMatrices(lambda m, n, out: n**3 / 3)
EIG = SCHUR = OfMatrices(lambda m, n, out: 25 * n**3)
EIGH = OfMatrices(lambda m, n, out: 9 * n**3)
HESSENBERG = OfMatrices(lambda m, n, out: 10 / 3 * n**3)
LU = OfMatrices(lambda m, n, out: m * n**2 - n**3 / 3)
QR = OfMatrices(lambda m, n, out: 2 * n * (m * n + out - 2 / 3 * n**2))
REFLECTED = OfMatrices(lambda m, n, out: 4 * n * out)
REFLECTORS = OfMatrices(lambda m, n, out: 2 * n**2 * (m - n / 3))
SVD = OfMatrices(lambda m, n, out: 4 * m * n**2 + 22 * n**3)
TRIANGULAR_SOLVE = OfMatrices(lambda m, n, out: n * out)
TRIDIAGONAL = OfMatrices(lambda m, n, out: 4 / 3 * n**3)
TRIDIAGONAL_SOLVE = OfMatrices(lambda m, n, out: 3 * m * n + 5 * out)  # a system has a row each
