"""What operations compute: in which operands they are linear, and the rule `arithmetic` of
primitives, for estimates of costs.

A rule gives the additions, multiplications and the like of an equation, and the exponentials, sines
and the like; or the programs that do them, and how often each runs; None where nobody knows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
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
    results = size(eqn.outvars[0])  # as many in each of them
    if "window_dimensions" in eqn.params:
        return combined(results, eqn)
    return max(size(eqn.invars[0]) - results, 0.0)


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


# What usual algorithms do to a matrix of m rows and n columns, or the other way round, of which
# there are no more, with so many elements of a result: the leading terms. By the names of
# operations, and of routines of libraries.
_OF_MATRICES: dict[str, Callable[[float, float, float], float]] = {
    "cholesky Cholesky potrf InvertDiagBlocksLowerTriangular InvertDiagBlocksUpperTriangular":
        lambda m, n, out: n**3 / 3,
    "eig schur gees geev": lambda m, n, out: 25 * n**3,
    "eigh Eigh heevd syevd": lambda m, n, out: 9 * n**3,
    "EighTpu": lambda m, n, out: 9 * (2 * n)**3,  # each operand is a quarter of the matrix
    "hessenberg gehrd": lambda m, n, out: 10 / 3 * n**3,
    "lu LuDecomposition LuRealDecompositionBlock getrf": lambda m, n, out: m * n**2 - n**3 / 3,
    "LuComplexDecompositionBlock": lambda m, n, out: OF_COMPLEX * (m * n**2 - n**3 / 3),
    "ormqr unmqr": lambda m, n, out: 4 * n * out,
    "qr": lambda m, n, out: 2 * n * (m * n + out - 2 / 3 * n**2),
    "svd gesdd gesvd gesvdj gesvdp": lambda m, n, out: 4 * m * n**2 + 22 * n**3,
    "tridiagonal hetrd sytrd": lambda m, n, out: 4 / 3 * n**3,
    "tridiagonal_solve tridiagonal_solve_perturbed gtsv gtsv2": lambda m, n, out: 3 * m + 5 * out,
    "triangular_solve triangularSolve trsm": lambda m, n, out: n * out,
    "Qr QrDecompositionBlock ProductOfElementaryHouseholderReflectors geqp3 geqrf "
    "householder_product orgqr ungqr":
        lambda m, n, out: 2 * n**2 * (m - n / 3)}
_ROUTINES = {name: rule for names, rule in _OF_MATRICES.items() for name in names.split()}
_LIBRARY = re.compile(
    r"^lapack_[sdcz]|^(?:__)?(?:cu|hip)(?:solver|blas|hybrid|sparse)[_$]|_(?:real|comp)$|_ffi$")


def on_matrices(name: str, a: Sequence[int], result: Sequence[int]) -> float | None:
    """What the operation or routine of a library does to matrices; None if it is none of those that
    are known.

    >>> on_matrices("lapack_spotrf_ffi", (2, 3, 3), (2, 3, 3)), on_matrices("mine", (3, 3), ())
    (18.0, None)
    """
    rule = _ROUTINES.get(_LIBRARY.sub("", name))
    if rule is None:
        return None
    if rule is _ROUTINES["gtsv"]:  # of diagonals
        a = (*a, 1)
    batch = math.prod(a[:-2])
    n, m = sorted((1, 1, *a)[-2:])
    return batch * rule(m, n, math.prod(result) / (batch or 1))


def of_matrix(eqn: JaxprEqn) -> tuple[float, float]:
    """What an operation does to the matrices of its first operand, as its name says."""
    a, result = eqn.invars[0], eqn.outvars[0]
    amount = on_matrices(eqn.primitive.name, a.aval.shape, result.aval.shape)
    return (amount or 0.0) * scale(a), 0.0
