"""What the decompositions share: checks of operands, products, triangles.

All of them take matrices along the last two axes, for each index of the axes before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from functools import wraps
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.primitive import Primitive, Unrolled
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.axes import all_at_front, transpose_p
from pyjx.engine.calls import call, call_as_one_kernel
from pyjx.engine.decompose import traced
from pyjx.engine.moves import constant_beside
from pyjx.engine.primitives import cast
from pyjx.engine.types import Dims, Rule, Value, Values
from pyjx.jaxlib_api import SMALL_CALLS
from pyjx.lax.common import check_same_dtypes, operand
from pyjx.lax.elementwise import like, real_dtype

# What LAPACK and its like compute with.
MATRIX_DTYPES = tuple([np.dtype(name) for name in ("float32", "float64", "complex64",
                                                   "complex128")])
_REAL_DTYPES = MATRIX_DTYPES[:2]


# -- operands --------------------------------------------------------------------------------------


def inexact_operand(name: str, x: ArrayLike) -> Any:
    """The operand, with a float dtype for integers and booleans. Weak integers stay weak; booleans
    become weak, too, as half of one is."""
    x = operand(name, x)
    aval = get_aval(x)
    if aval.dtype == np.bool_:
        return cast(x, dtypes.default_float_dtype(), True)
    inexact = dtypes.to_inexact_dtype(aval.dtype)
    return x if inexact == aval.dtype else cast(x, inexact, aval.weak_type)


def check_operands(name: str, avals: tuple[ShapedArray, ...], ranks: tuple[int, ...], *,
                   real: bool = False) -> None:
    """Raise TypeError unless each operand has at least the rank at its position and one of the
    dtypes that LAPACK knows."""
    accepted = _REAL_DTYPES if real else MATRIX_DTYPES
    for i, (aval, rank) in enumerate(zip(avals, ranks, strict=True)):
        if aval.dtype not in accepted:
            known = ", ".join(map(str, accepted))
            raise TypeError(f"{name} does not accept dtype {dtypes.name(aval.dtype)} at position "
                            f"{i}. Accepted dtypes at position {i} are subtypes of {known}."
                            + " Convert: x.astype('float32')."
                            * (dtypes.issubdtype(aval.dtype, np.floating) and not real))
        if aval.ndim < rank:
            raise TypeError(f"Input {i} to {name} must have rank at least {rank}, but got "
                            f"shape={aval.shape}")
    check_same_dtypes(f"linalg.{name}", *avals)
    batches = [a.shape[:a.ndim - rank] for a, rank in zip(avals, ranks, strict=True)]
    if any(len(batch) != len(batches[0]) for batch in batches):
        raise TypeError(f"All inputs to {name} must have the same number of batch dimensions, but "
                        f"got {[len(batch) for batch in batches]} batch dimensions for the inputs.")
    if any(batch != batches[0] for batch in batches):
        raise TypeError(f"All inputs to {name} must have the same batch dimensions, but got "
                        f"{', '.join(map(str, batches))}.")


def check_member(name: str, param: str, value: Any, kind: type[Enum]) -> None:
    """Raise TypeError unless the value is None or one of the enumeration."""
    if value is not None and not isinstance(value, kind):
        members = ", ".join([f"{kind.__name__}.{member}" for member in kind.__members__])
        raise TypeError(f"{name}: {param} is one of {members}, got {value!r}.")


def check_square(what: str, aval: ShapedArray) -> int:
    """The number of rows, which is that of columns; ValueError otherwise, of the operand `what`."""
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise ValueError(f"The {what} must be a square matrix. Got shape {aval.shape}.")
    return aval.shape[-1]


def check_rows_as_columns(name: str, aval: ShapedArray) -> None:
    """`check_square` in the words of the functions of Hermitian matrices."""
    if aval.ndim < 2 or aval.shape[-1] != aval.shape[-2]:
        raise ValueError(f"The input to {name} must have shape [..., n, n], got shape {aval.shape}")


def is_complex(x: ArrayLike) -> bool:
    return bool(get_aval(x).dtype.kind == "c")


def typed(aval: ShapedArray, *shape: int, dtype: DTypeLike | None = None) -> ShapedArray:
    """The type of arrays of the given shape for each matrix of a batch."""
    return ShapedArray((*aval.shape[:-2], *shape), aval.dtype if dtype is None else dtype)


def typed_real(aval: ShapedArray, *shape: int) -> ShapedArray:
    return typed(aval, *shape, dtype=real_dtype(aval.dtype))


def weak_as_operands(shape_rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of types by which all results are weakly typed where all operands are."""

    @wraps(shape_rule)
    def typed_rule(*avals: ShapedArray, **params: Any) -> Any:
        out = shape_rule(*avals, **params)
        if not all([aval.weak_type for aval in avals]):
            return out
        if isinstance(out, ShapedArray):
            return out.update(weak_type=True)
        return [aval.update(weak_type=True) for aval in out]

    return typed_rule


# -- pieces of formulas ----------------------------------------------------------------------------


def product(*factors: Any) -> Any:
    """Matrix products from left to right, in full precision on all platforms."""
    out = factors[0]
    for factor in factors[1:]:
        out = lax.batch_matmul(out, factor, precision=lax.Precision.HIGHEST)
    return out


def transposed(x: ArrayLike) -> Any:
    n = get_aval(x).ndim
    return transpose_p.bind(x, permutation=(*range(n - 2), n - 1, n - 2))


def conjugate(x: ArrayLike) -> Any:
    return lax.conj(x) if is_complex(x) else x


def real_part(x: ArrayLike) -> Any:
    return lax.real(x) if is_complex(x) else x


def adjoint(x: ArrayLike) -> Any:
    """The conjugate transpose."""
    return conjugate(transposed(x))


def symmetrized(x: ArrayLike) -> Any:
    """(x + x^H) / 2"""
    return lax.mul(lax.add(x, adjoint(x)), like(x, 0.5))


def _positions(shape: tuple[int, ...], axis: int) -> Any:
    return lax.broadcasted_iota(np.int32, shape, len(shape) + axis)


def on_diagonal(shape: tuple[int, ...]) -> Any:
    """Which elements of matrices are on the diagonal."""
    return lax.eq(_positions(shape, -2), _positions(shape, -1))


def identity_like(x: ArrayLike, shape: tuple[int, ...] | None = None) -> Any:
    """Identity matrices of the dtype of `x`, by default of its shape."""
    aval = get_aval(x)
    return constant_beside(cast(on_diagonal(aval.shape if shape is None else shape), aval.dtype),
                           aval)


def lower_triangle(x: ArrayLike, offset: int = 0) -> Any:
    """`x` with zeros above the diagonal with the given offset."""
    return _kept(lax.ge, x, offset)


def upper_triangle(x: ArrayLike, offset: int = 0) -> Any:
    """`x` with zeros below the diagonal with the given offset."""
    return _kept(lax.le, x, offset)


def _kept(compare: Callable[..., Any], x: ArrayLike, offset: int) -> Any:
    shape = get_aval(x).shape
    rows = _positions(shape, -2)
    rows = lax.add(rows, np.int32(offset)) if offset else rows
    return lax.select(compare(rows, _positions(shape, -1)), x, lax.full_like(x, 0))


def half_lower_triangle(x: ArrayLike) -> Any:
    """`x` with zeros above the diagonal and half of itself on it."""
    aval = get_aval(x)
    side = lax.sign(lax.sub(_positions(aval.shape, -2), _positions(aval.shape, -1)))
    weight = lax.mul(cast(lax.add(side, np.int32(1)), aval.dtype), np.asarray(0.5, aval.dtype)[()])
    return lax.mul(constant_beside(weight, aval), x)


def diagonal(x: ArrayLike) -> Any:
    """The diagonals of square matrices."""
    *batch, n, _ = shape = get_aval(x).shape
    if type(n) is int:  # every (n + 1)th element of the rows in a row
        return lax.slice_in_dim(lax.reshape(x, (*batch, n * n)), 0, n * n, n + 1, axis=-1)
    only = lax.select(on_diagonal(shape), x, lax.full_like(x, 0))
    return lax.reduce_sum(only, (len(shape) - 1,))


def as_row(x: ArrayLike) -> Any:
    """Vectors as matrices of one row."""
    return lax.expand_dims(x, (get_aval(x).ndim - 1,))


def as_column(x: ArrayLike) -> Any:
    """Vectors as matrices of one column."""
    return lax.expand_dims(x, (get_aval(x).ndim,))


def spread_rows(x: ArrayLike, shape: tuple[int, ...]) -> Any:
    """Vectors as the rows of matrices: element [i, j] is x[j]."""
    return lax.broadcast_in_dim(x, shape, (*range(len(shape) - 2), len(shape) - 1))


def spread_columns(x: ArrayLike, shape: tuple[int, ...]) -> Any:
    """Vectors as the columns of matrices: element [i, j] is x[i]."""
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - 1)))


def corner(x: ArrayLike, rows: int, columns: int) -> Any:
    """The first rows and columns of matrices."""
    shape = get_aval(x).shape
    if shape[-2:] == (rows, columns):
        return x
    return lax.slice(x, (0,) * len(shape), (*shape[:-2], rows, columns))


def take_rows(x: ArrayLike, order: Any) -> Any:
    """The rows of matrices at positions `[..., m]`, which are known to be in range."""
    *batch, _, columns = get_aval(x).shape
    n = len(batch)
    if 0 in get_aval(order).shape or not columns:
        return lax.full((*get_aval(order).shape, columns), 0, get_aval(x).dtype)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(n + 1,), collapsed_slice_dims=(n,), start_index_map=(n,),
        operand_batching_dims=tuple(range(n)), start_indices_batching_dims=tuple(range(n)),
    )
    return lax.gather(x, lax.expand_dims(order, (n + 1,)), numbers, (1,) * (n + 1) + (columns,),
                      mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


# -- few rows --------------------------------------------------------------------------------------


# Up to how many rows and columns, in batches and in loops. So many take, for 100,000 matrices, 0.1
# to 0.3 of LAPACK's time and two to four times as long to compile (0.1 to 0.4 s), in loops 0.15 to
# 0.5 and up to twice. One row more takes twice as long to compile, and up to as long to run.
FEW = {"cholesky": (6, 8), "triangular_solve": (8, 8), "lu": (4, 6), "qr": (4, 4), "eigh": (3, 3)}
if not SMALL_CALLS:  # each batch is many kernels, which do much of the work again
    FEW.update(cholesky=(5, 8), triangular_solve=(5, 8), lu=(4, 5))
# Up to how many the kernels of a large batch, which run in several threads, take less time than one
# (on two cores a half), though they take three to six times as long to compile.
_IN_THREADS, _LARGE = {"cholesky": 4, "lu": 4, "qr": 3}, 1 << 15


def of_few_rows(kind: str, program: Rule, several: bool = False) -> Unrolled:
    """An operation on matrices of few rows and columns as one on their elements.

    It is for a dtype of LAPACK's, and for a batch or in a loop. Then operations on single elements,
    each for all matrices, take a tenth of the time of calls of LAPACK (150 to 400 ns for each
    matrix). One matrix alone takes as long, and longer to compile. `several` says that it has
    several results.
    """

    def when(eqn: JaxprEqn, repeated: int) -> bool:
        aval = eqn.invars[0].aval
        most = FEW[kind][repeated > 0]
        return (aval.dtype in MATRIX_DTYPES and all([type(n) is int for n in aval.shape])
                and min(aval.shape[-2:]) > 0 and max(aval.shape[-2:]) <= most
                and (repeated > 0 or math.prod(aval.shape[:-2]) >= _MANY))

    return Unrolled(when, program, _in_blocks(kind, program, several))


_MANY = 8
_BLOCK = 8  # matrices, of which elements are a register or two; 16 take up to twice to compile


def _in_blocks(name: str, program: Rule, several: bool) -> Rule:
    """The program for one block of a batch after the other, as one kernel. All in one XLA would
    make a kernel of each division or root, which do everything between two of them again: three to
    six times as long to compile, and, of many rows, twice as long to run."""

    def of_block(*operands: Value, **params: Any) -> Values:
        return program(*operands, **params) if several else [program(*operands, **params)]

    def of_batch(*operands: Value, **params: Any) -> Any:
        *batch, m, n = get_aval(operands[0]).shape
        count = math.prod(batch)
        if count >= _LARGE and max(m, n) <= _IN_THREADS.get(name, 0):
            return program(*operands, **params)
        rows = [lax.reshape(x, (count, *get_aval(x).shape[len(batch):])) for x in operands]
        size = min(count, _BLOCK)
        avals = [get_aval(x) for x in rows]
        block = traced(of_block, [a.update(shape=(size, *a.shape[1:])) for a in avals], params,
                       True)

        def looped(*rows: Value) -> Values:
            def step(i: Value, outs: Values) -> Values:
                start = lax.mul(i, lax.full_like(i, size))  # the last one is whole
                parts = [lax.dynamic_slice_in_dim(x, start, size, 0) for x in rows]
                return [lax.dynamic_update_slice_in_dim(whole, y, start, 0) for whole, y in zip(
                    outs, call(block, name, *parts), strict=True)]

            outs = [lax.full((count, *a.shape[1:]), 0, a.dtype) for a in block.out_avals]
            return lax.fori_loop(np.int32(0), np.int32(-(-count // size)), step, outs)

        whole = block if count == size else trace_to_jaxpr(looped, avals)
        outs = [lax.reshape(y, (*batch, *get_aval(y).shape[1:]))
                for y in call_as_one_kernel(whole, name, *rows)]
        return outs if several else outs[0]

    return of_batch


def element(x: ArrayLike, row: int, column: int) -> Any:
    """One element of each matrix, as matrices of one."""
    return part(x, (row, row + 1), (column, column + 1))


def kept(rows: list[list[Any]]) -> None:
    """Keep these elements, which XLA computes again for each that is made of them otherwise: of
    rows that are exchanged as often as there are rows, at each step."""
    if SMALL_CALLS and get_aval(rows[0][0]).size <= _BLOCK:  # kernels know barriers
        found = iter(lax.optimization_barrier([x for row in rows for x in row]))
        for row in rows:
            row[:] = [next(found) for _ in row]


def elements(x: ArrayLike) -> list[list[Any]]:
    """All elements, by row."""
    m, n = get_aval(x).shape[-2:]
    return [[element(x, i, j) for j in range(n)] for i in range(m)]


def of_elements(rows: list[list[Any]]) -> Any:
    """The matrices with these elements."""
    last = get_aval(rows[0][0]).ndim - 1
    return lax.concatenate([lax.concatenate(row, last) for row in rows], last - 1)


def by_columns(x: Value, column: Callable[[list[list[Any]], int], Value]) -> list[Value]:
    """Matrices after `column(rows, k)` has changed their elements for each k in turn, and what
    these calls gave."""
    rows, axis = elements(x), get_aval(x).ndim - 2
    given = [lax.squeeze(column(rows, k), (axis,)) for k in range(min(get_aval(x).shape[-2:]))]
    return [of_elements(rows), lax.concatenate(given, axis)]


def part(x: ArrayLike, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """Some rows and columns of matrices, from the first to before the second number."""
    *batch, _, _ = shape = get_aval(x).shape
    if (rows, columns) == ((0, shape[-2]), (0, shape[-1])):
        return x
    return lax.slice(x, (*[0] * len(batch), rows[0], columns[0]), (*batch, rows[1], columns[1]))


def alike(*xs: Any) -> list[Any]:
    """Matrices of one row or column, each as wide and high as all are together."""
    shape = np.broadcast_shapes(*[get_aval(x).shape for x in xs])
    return [x if get_aval(x).shape == shape else lax.broadcast_in_dim(x, shape, range(len(shape)))
            for x in xs]


def choose(which: ArrayLike, x: ArrayLike, y: ArrayLike) -> Any:
    """`select` of matrices of one row or column."""
    return lax.select(*alike(which, x, y))


def minus_product(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Any:
    """x - y z of matrices of one row or column."""
    return lax.sub(*alike(x, lax.mul(*alike(y, z))))


# -- batching --------------------------------------------------------------------------------------


def define_leading(primitive: Primitive) -> None:
    """Give a primitive the batching rule of an operation that maps over all axes but its operands'
    last ones. It would take the batch for one of these, where an example has too few, so the shape
    rule is asked first."""
    def batch(operands: Values, dims: Dims, **params: Any) -> tuple[Value, Any]:
        out = primitive.bind(*all_at_front(operands, dims), **params)
        return out, [0] * len(out) if primitive.multiple_results else 0

    primitive.define(batch=batch)
    primitive.asked = True
