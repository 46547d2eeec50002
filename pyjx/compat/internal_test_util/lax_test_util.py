"""`jax._src.internal_test_util.lax_test_util`: the operations of `lax` as tables for test suites,
with the dtypes they take and arguments that suit them, and helpers for tests of `vmap`.

An operation is named: `getattr(lax, op)` is tested, `getattr(lax_reference, op)` is NumPy's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyjx import lax
from pyjx.compat import test_util
from pyjx.compat.util import safe_map, safe_zip

__all__ = [
    "NamedReducerOpRecord", "OpRecord", "ReducerOpRecord", "add_bdim", "all_bdims", "all_dtypes",
    "args_slicer", "bool_dtypes", "compatible_shapes", "complex_dtypes",
    "complex_elem_dtypes", "default_dtypes", "float_dtypes", "inexact_dtypes", "int_dtypes",
    "lax_named_reduce_ops", "lax_ops", "lax_out_dtype_ops", "lax_reduce_ops", "number_dtypes",
    "op_record", "python_scalar_types", "safe_map", "safe_zip", "slicer", "uint_dtypes",
]

compatible_shapes = [[(3,)], [(3, 4), (3, 1), (1, 4)], [(2, 3, 4), (2, 1, 4)]]

# -- dtypes ----------------------------------------------------------------------------------------

_known = test_util.dtypes
float_dtypes = _known.all_floating
complex_elem_dtypes = _known.floating
complex_dtypes = _known.complex
inexact_dtypes = _known.all_inexact
int_dtypes = _known.all_integer
uint_dtypes = _known.all_unsigned
bool_dtypes = _known.boolean
default_dtypes = float_dtypes + int_dtypes
number_dtypes = float_dtypes + complex_dtypes + int_dtypes + uint_dtypes
all_dtypes = number_dtypes + bool_dtypes
python_scalar_types = [bool, int, float, complex]

_signed = default_dtypes + complex_dtypes
_whole = int_dtypes + uint_dtypes

# -- operations on elements ------------------------------------------------------------------------

Tolerance = float | dict[Any, float] | None


class OpRecord(NamedTuple):
    """An operation on elements: its name, how many arguments it has and of what dtypes, what makes
    a sampler of them from a `RandomState`, and how near results have to be."""

    op: str
    nargs: int
    dtypes: Sequence[Any]
    rng_factory: Callable[..., Any]
    tol: Tolerance = None


op_record = OpRecord


def _records(names: str, nargs: int, dtypes: Sequence[Any], rng_factory: Callable[..., Any],
             **tols: Tolerance) -> list[OpRecord]:
    return [OpRecord(op, nargs, dtypes, rng_factory, tols.get(op)) for op in names.split()]


def lax_ops() -> list[OpRecord]:
    """The operations on elements."""
    f32, f64, c64, c128 = np.float32, np.float64, np.complex64, np.complex128
    small, positive, any_, nonzero = (test_util.rand_small, test_util.rand_positive,
                                      test_util.rand_default, test_util.rand_nonzero)
    return [
        *_records("neg", 1, _signed, small),
        *_records("sign", 1, default_dtypes + uint_dtypes, small),
        *_records("floor ceil is_finite", 1, float_dtypes, small),
        *_records("round cbrt bessel_i0e bessel_i1e", 1, float_dtypes, any_),
        *_records("nextafter", 2, [t for t in float_dtypes if t in (np.float16, f32, f64)], any_,
                  nextafter=0),
        *_records("exp exp2 expm1 tanh asin acos atan atanh", 1, inexact_dtypes, small,
                  expm1={f64: 1e-8}, tanh={f64: 1e-9, c128: 1e-7}, asin={c128: 5e-12},
                  atanh={f64: 1e-9}),
        *_records("log log2 log1p reciprocal acosh", 1, inexact_dtypes, positive),
        *_records("logistic sin cos tan square asinh sinh cosh", 1, inexact_dtypes, any_,
                  tan={f32: 3e-5, c64: 3e-5}, asinh={c64: 1e-4, c128: 1e-5}),
        *_records("sqrt rsqrt", 1, float_dtypes, positive),
        *_records("sqrt rsqrt", 1, complex_dtypes, any_),
        *_records("lgamma digamma", 1, float_dtypes, positive,
                  lgamma={f32: 1e-5, f64: 1e-14}, digamma={f64: 1e-14}),
        *_records("igamma igammac", 2, complex_elem_dtypes, positive,
                  igamma={f64: 1e-14}, igammac={f64: 1e-14}),
        *_records("betainc", 3, float_dtypes, test_util.rand_uniform,
                  betainc={f32: 2e-5, f64: 1e-12}),
        *_records("erf erfc erf_inv", 1, float_dtypes, small, erf_inv={f64: 1e-9}),
        *_records("real imag", 1, complex_dtypes, any_),
        *_records("complex", 2, complex_elem_dtypes, any_),
        *_records("conj", 1, complex_elem_dtypes + complex_dtypes, any_),
        *_records("abs", 1, _signed, any_),
        *_records("pow", 2, inexact_dtypes, positive),
        *_records("atan2", 2, float_dtypes, any_),
        *_records("bitwise_and bitwise_or bitwise_xor", 2, bool_dtypes, small),
        *_records("bitwise_not", 1, bool_dtypes, small),
        *_records("population_count clz", 1, _whole, test_util.rand_int),
        *_records("add sub mul", 2, _signed, small),
        *_records("mulhi", 2, _whole, test_util.rand_fullrange),
        *_records("div", 2, _signed, nonzero),
        *_records("rem", 2, default_dtypes, nonzero),
        *_records("max min ne", 2, all_dtypes, small),
        *_records("eq", 2, all_dtypes, test_util.rand_some_equal),
        *_records("ge gt le lt", 2, default_dtypes, small),
    ]


def lax_out_dtype_ops() -> list[OpRecord]:
    """The operations on elements that are told the dtype of their results."""
    return _records("mul", 2, _signed, test_util.rand_small)


# -- reductions ------------------------------------------------------------------------------------


class ReducerOpRecord(NamedTuple):
    """A function that arrays are folded with, NumPy's, the value that folds begin with, dtypes,
    and the primitive that folds with this function become."""

    op: Callable[..., Any]
    reference_op: Callable[..., Any]
    init_val: Any
    dtypes: Sequence[Any]
    primitive: Any


class NamedReducerOpRecord(NamedTuple):
    """A function that folds arrays, NumPy's, and dtypes."""

    op: Callable[..., Any]
    reference_op: Callable[..., Any]
    dtypes: Sequence[Any]


def lax_reduce_ops() -> list[ReducerOpRecord]:
    """The functions that `lax.reduce` knows as reductions."""
    wide: list[Any] = [np.int32, np.int64]
    bits = _whole + bool_dtypes
    return [ReducerOpRecord(*record) for record in [
        (lax.add, np.add, 0, default_dtypes, lax.reduce_sum_p),
        (lax.mul, np.multiply, 1, default_dtypes, lax.reduce_prod_p),
        (lax.max, np.maximum, 0, uint_dtypes + bool_dtypes, lax.reduce_max_p),
        (lax.max, np.maximum, -np.inf, float_dtypes, lax.reduce_max_p),
        *[(lax.max, np.maximum, np.iinfo(t).min, [t], lax.reduce_max_p) for t in wide],
        (lax.min, np.minimum, np.inf, float_dtypes, lax.reduce_min_p),
        *[(lax.min, np.minimum, np.iinfo(t).max, [t], lax.reduce_min_p)
          for t in (*wide, np.uint32, np.uint64)],
        (lax.bitwise_and, np.bitwise_and, -1, bits, lax.reduce_and_p),
        (lax.bitwise_or, np.bitwise_or, 0, bits, lax.reduce_or_p),
        (lax.bitwise_xor, np.bitwise_xor, 0, bits, lax.reduce_xor_p),
    ]]


def lax_named_reduce_ops() -> list[NamedReducerOpRecord]:
    """The reductions of `lax`."""
    bits = bool_dtypes + _whole
    records: list[Any] = [
        (lax.reduce_sum, np.sum, number_dtypes), (lax.reduce_prod, np.prod, number_dtypes),
        (lax.reduce_max, np.max, all_dtypes), (lax.reduce_min, np.min, all_dtypes),
        (lax.reduce_and, np.bitwise_and.reduce, bits),
        (lax.reduce_or, np.bitwise_or.reduce, bits),
        (lax.reduce_xor, np.bitwise_xor.reduce, bits),
    ]
    return [NamedReducerOpRecord(*record) for record in records]


# -- mapped arguments ------------------------------------------------------------------------------


def all_bdims(*shapes: Sequence[int]) -> Iterator[tuple[int | None, ...]]:
    """Where arguments of the shapes can have the axis that is mapped, at least one of them.

    >>> list(all_bdims((2,), ()))
    [(None, 0), (0, None), (0, 0), (1, None), (1, 0)]
    """
    places = itertools.product(*[(None, *range(len(shape) + 1)) for shape in shapes])
    return (bdims for bdims in places if any(d is not None for d in bdims))


def add_bdim(bdim_size: int, bdim: int | None, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape with the axis that is mapped.

    >>> add_bdim(5, 1, (2, 3)), add_bdim(5, None, (2, 3))
    ((2, 5, 3), (2, 3))
    """
    sizes = list(shape)
    if bdim is not None:
        sizes.insert(bdim, bdim_size)
    return tuple(sizes)


def slicer(x: Any, bdim: int | None) -> Callable[[int], Any]:
    """A function of an index along the mapped axis, which gives the example."""
    if bdim is None:
        return lambda _: x
    return lambda i: lax.index_in_dim(x, i, bdim, keepdims=False)


def args_slicer(args: Sequence[Any], bdims: Sequence[int | None]) -> Callable[[int], list[Any]]:
    """As `slicer`, of all arguments."""
    slicers = safe_map(slicer, args, bdims)
    return lambda i: [of(i) for of in slicers]
