"""Bad calls: contractions, convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from tests.lax.bad_calls.calls import (
    BAD_DTYPES,
    BAD_PRECISIONS,
    F4,
    F32,
    I32,
    MATRIX,
    NOT_INTS,
    OBJECTS,
    SCALAR,
    Bad,
    array,
    bad,
)

CALLS: dict[str, list[Bad]] = {}

# -- contractions ----------------------------------------------------------------------------------

_LHS, _RHS = array(2, 3), array(3, 4)
_DOT = (((1,), (0,)), ((), ()))
CALLS["dot_general"] = [
    *[bad(x, _RHS, _DOT) for x in OBJECTS], *[bad(_LHS, x, _DOT) for x in OBJECTS],
    *[bad(_LHS, _RHS, d, says="dimension_numbers") for d in (None, 3, (), ((1,), (0,)), "ab")],
    *[bad(_LHS, _RHS, (((s,), (0,)), ((), ())), says="dimension_numbers")
      for s in ("x", 1.5, None)],
    bad(_LHS, _RHS, (((2,), (0,)), ((), ())), says="lhs"),
    bad(_LHS, _RHS, (((-1,), (0,)), ((), ())), says="lhs"),
    bad(_LHS, _RHS, (((1,), (1,)), ((), ())), says="contracting"),
    bad(_LHS, _RHS, (((1, 1), (0, 0)), ((), ())), says="distinct"),
    bad(_LHS, _RHS, (((1,), (0,)), ((1,), (0,))), says="batch"),
    bad(_LHS, _RHS, (((), ()), ((0,), (0,))), says="batch"),
    bad(_LHS, _RHS, (((), ()), ((0,), ())), says="batch"),
    *[bad(_LHS, _RHS, _DOT, p, says="recision") for p in BAD_PRECISIONS],
    *[bad(_LHS, _RHS, _DOT, None, d) for d in BAD_DTYPES],
    bad(array(2, 3, dtype=np.int32), array(3, 4, dtype=np.int32), _DOT, None, "int8",
        says="preferred_element_type"),
]
CALLS["dot"] = [
    *[bad(x, F32) for x in OBJECTS], *[bad(F32, x) for x in OBJECTS], bad(F32, F4, says="(3,)"),
    bad(SCALAR, F32, says="lhs_shape"), bad(array(2, 2, 2), MATRIX, says="lhs_shape"),
    *[bad(F32, F32, precision=p, says="recision") for p in BAD_PRECISIONS],
    *[bad(F32, F32, preferred_element_type=d) for d in BAD_DTYPES],
]
CALLS["batch_matmul"] = [
    *[bad(x, MATRIX) for x in OBJECTS], *[bad(MATRIX, x) for x in OBJECTS],
    bad(F32, F32, says="2D"),
    bad(array(2, 2, 2), MATRIX, says="ndim"), bad(MATRIX, MATRIX, says="contracting"),
    bad(array(2, 3, 4), array(3, 4, 5), says="batch"),
    *[bad(_LHS, _RHS, p, says="recision") for p in BAD_PRECISIONS],
]
CALLS["scaled_dot"] = [
    *[bad(x, _RHS) for x in OBJECTS], *[bad(_LHS, x) for x in OBJECTS], bad(_LHS, _LHS),
    bad(F32, F32),
    *[bad(_LHS, _RHS, lhs_scale=x) for x in OBJECTS if x is not None],
    bad(_LHS, _RHS, lhs_scale=array(2, 2), says="lhs_scale"),
    bad(_LHS, _RHS, rhs_scale=F32, says="rhs_scale"),
    bad(_LHS, _RHS, preferred_element_type="int32", says="preferred_element_type"),
    bad(_LHS, _RHS, preferred_element_type="nope", says="preferred_element_type"),
]

_ROWS, _STACK, _SIZES = array(4, 3), array(2, 3, 5), array(2, dtype=np.int32)
_RAGGED = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
_RAGGED_CALLS = [
    *[((x, _STACK, _SIZES), "") for x in OBJECTS], *[((_ROWS, x, _SIZES), "") for x in OBJECTS],
    *[((_ROWS, _STACK, x), "") for x in OBJECTS], ((_ROWS, _STACK, array(2)), "group_sizes"),
    ((_ROWS, _STACK, np.int32(1)), "group_sizes"), ((_ROWS, _STACK, I32), "group"),
    ((_ROWS, _STACK[:, :2], _SIZES), "contracting"), ((F32, _STACK, _SIZES), ""),
    ((_ROWS, F32, _SIZES), ""),
]
CALLS["ragged_dot"] = [
    *[bad(*args, says=says) for args, says in _RAGGED_CALLS],
    *[bad(_ROWS, _STACK, _SIZES, p, says="recision") for p in BAD_PRECISIONS],
    *[bad(_ROWS, _STACK, _SIZES, group_offset=x, says="group_offset") for x in ("a", 1.5, _SIZES)],
]
CALLS["ragged_dot_general"] = [
    *[bad(*args, _RAGGED, says=says) for args, says in _RAGGED_CALLS],
    *[bad(_ROWS, _STACK, _SIZES, d, says="dimension_numbers")
      for d in (None, 3, (1, 2), (None, (0,), (0,)), _RAGGED.update(lhs_ragged_dimensions="x"))],
    bad(_ROWS, _STACK, _SIZES, _RAGGED.update(lhs_ragged_dimensions=(5,)), says="ragged"),
    bad(_ROWS, _STACK, _SIZES, _RAGGED.update(lhs_ragged_dimensions=()), says="ragged"),
    bad(_ROWS, _STACK, _SIZES, _RAGGED.update(rhs_group_dimensions=(5,)), says="group"),
    bad(_ROWS, _STACK, _SIZES, _RAGGED.update(rhs_group_dimensions=()), says="group"),
    *[bad(_ROWS, _STACK, _SIZES, _RAGGED, None, d) for d in BAD_DTYPES],
]

# -- convolutions ----------------------------------------------------------------------------------

_X, _K = array(1, 3, 8), array(4, 3, 2)


def convolution(name: str, *middle: Any, x: np.ndarray = _X, k: np.ndarray = _K,
                unknown: type[Exception] = RuntimeError) -> None:
    """Bad calls of a function of input, kernel, strides, padding, and `middle`."""
    n = x.ndim - 2
    CALLS[name] = [
        *[bad(o, k, (1,) * n, "VALID", *middle) for o in OBJECTS],
        *[bad(x, o, (1,) * n, "VALID", *middle) for o in OBJECTS],
        bad(x, k[0], (1,) * n, "VALID", *middle), bad(F32, F32, (), "VALID", *middle),
        bad(SCALAR, SCALAR, (), "VALID", *middle),
        *[bad(x, k, s, "VALID", *middle, says="strides")
          for s in (*NOT_INTS, (1, 1), (0,) * n, (-1,) * n, None, 2)],
        *[bad(x, k, (1,) * n, p, *middle, says="adding",
              error=(ValueError, TypeError) if p != "NOPE" else unknown)
          for p in ("NOPE", None, 3, [(0, 0)] * (n + 1), [(0,)] * n, [("x", 0)] * n)],
        *[bad(x, k, (1,) * n, "VALID", *middle, precision=p, says="recision")
          for p in BAD_PRECISIONS],
    ]


convolution("conv")
convolution("conv_with_general_padding", None, None)
convolution("conv_general_dilated")
convolution("conv_transpose", x=array(1, 8, 3), k=array(2, 3, 4), unknown=ValueError)
convolution("conv_general_dilated_local", (2,), k=array(4, 6, 7))
CALLS["conv"] += [bad(_X, array(4, 2, 2), (1,), "VALID", says="feature"),
                  bad(_X, array(4, 3, 2, dtype=np.int32), (1,), "VALID", says="int32")]
CALLS["conv_transpose"] += [
    bad(array(1, 8, 3), array(2, 3, 4), (1,), "VALID", rhs_dilation=(0,), says="dilation"),
    bad(array(1, 8, 3), array(2, 3, 4), (1,), "VALID", rhs_dilation=("x",), says="dilation"),
    bad(array(1, 8, 3), array(2, 3, 4), (1,), "VALID", dimension_numbers=("A", "B", "C")),
]
BAD_NUMBERS: tuple[Any, ...] = (
    3, "NCH", ("NCH",), ("NCH", "OIH", 3), ("NCHW", "OIHW", "NCHW"), ("NNH", "OIH", "NCH"),
    ("NCH", "OIW", "NCH"), ("NCH", "OIH", "NHH"), {},
    lax.ConvDimensionNumbers((0, 1, 3), (0, 1, 2), (0, 1, 2)),
    lax.ConvDimensionNumbers((0, 1), (0, 1, 2), (0, 1, 2)),
    lax.ConvDimensionNumbers((0, 0, 1), (0, 1, 2), (0, 1, 2)),
    lax.ConvDimensionNumbers((0, 1, 2), ("x", 1, 2), (0, 1, 2)),
    lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, -1)),
)
CALLS["conv_general_dilated"] += [
    *[bad(_X, _K, (1,), "VALID", dimension_numbers=d, says="dimension_numbers")
      for d in BAD_NUMBERS],
    *[bad(_X, _K, (1,), [(0, 0)], s, says="lhs_dilation") for s in (*NOT_INTS, (0,), (1, 1))],
    *[bad(_X, _K, (1,), "VALID", None, s, says="rhs_dilation") for s in (*NOT_INTS, (0,), (1, 1))],
    *[bad(_X, _K, (1,), "VALID", feature_group_count=n, says="feature_group_count")
      for n in (0, -1, 2, "x", None, 1.5)],
    *[bad(_X, _K, (1,), "VALID", batch_group_count=n, says="batch_group_count")
      for n in (0, -1, 2, "x", None, 1.5)],
    bad(_X, _K.astype(np.float16), (1,), "VALID", says="float16"),
    bad(_X, array(4, 2, 2), (1,), "VALID", says="feature"),
    bad(_X, _K, (1,), [(-9, -9)], says="adding"),
    *[bad(_X, _K, (1,), "VALID", preferred_element_type=d) for d in BAD_DTYPES],
]
CALLS["conv_general_dilated_patches"] = [
    *[bad(o, (2,), (1,), "VALID") for o in OBJECTS],
    bad(_X, (2, 2), (1,), "VALID", says="filter_shape"),
    *[bad(_X, s, (1,), "VALID", says="filter_shape") for s in NOT_INTS],
    bad(_X, (-1,), (1,), "VALID", says="filter_shape"),
    bad(_X, (2,), (0,), "VALID", says="strides"),
    bad(_X, (2,), (1,), "NOPE", says="adding"), bad(F32, (2,), (1,), "VALID"),
]
CALLS["conv_general_dilated_local"] += [
    *[bad(_X, array(4, 6, 7), (1,), "VALID", s, says="filter_shape") for s in NOT_INTS],
    bad(_X, array(4, 6, 6), (1,), "VALID", (2,)), bad(_X, array(4, 5, 7), (1,), "VALID", (2,)),
]
CALLS["conv_dimension_numbers"] = [
    bad((1, 3), (1, 3, 8), None, says="ndim"), bad(3, (1,), None), bad(None, None, None),
    *[bad((1, 3, 8), (4, 3, 2), d, says="dimension_numbers") for d in BAD_NUMBERS],
]
CALLS["conv_general_permutations"] = [
    bad(d,
        says="dimension_numbers")
    for d in (3, None, ("NCH",), ("NCH", "OIH", 3), *BAD_NUMBERS[5:8])]
CALLS["conv_shape_tuple"] = [
    bad((1, 3, 8), (4, 3, 2), (1,), [(0, 0), (0, 0)], says="pads"),
    bad((1, 3, 8), (4, 3, 2), (1,), [(-9, 0)], says="adding"),
    bad((1, 3, 8), (4, 3, 2), (1,), "NOPE", says="NOPE"),
    bad((1, 3, 8), (4, 3, 2), (1,), None, says="pads"),
    bad((1, 3, 8), (4, 3, 2), (1, 1), [(0, 0)], says="strides"),
    bad((1, 3, 8), (4, 3, 2), (0,), [(0, 0)], says="strides"),
    bad((1, 3, 8), (4, 3), (1,), [(0, 0)], says="rhs_shape"),
    bad((1, 3, 8), (4, 3, 2), (1,), [(0, 0)], 0, says="batch_group_count"),
]
CALLS["padtype_to_pads"] = [
    bad((8,), (2,), (1,), "NOPE", says="NOPE"), bad((8,), (2,), (1,), 3, says="padding"),
    bad((8,), (2, 2), (1,), "SAME", says="window_shape"),
    bad((8,), (2,), (0,), "SAME", says="strides"),
    bad(8, (2,), (1,), "SAME", says="in_shape"),
    bad((8,), ("x",), (1,), "SAME", says="window_shape"),
]
_NHC = ("NHC", "HIO", "NHC")
for _name in ("conv_general_shape_tuple", "conv_transpose_shape_tuple"):
    CALLS[_name] = [
        bad((1, 8, 3), (2, 3, 4), (0,), "VALID", _NHC, says="strides"),
        bad((1, 8, 3), (2, 3, 4), (1, 1), "VALID", _NHC, says="strides"),
        bad((1, 8, 3), (2, 3, 4), ("x",), "VALID", _NHC, says="strides"),
        bad((1, 8, 3), (2, 3, 4), (1,), "NOPE", _NHC, says="NOPE"),
        bad((1, 8, 3), (2, 3, 4), (1,), None, _NHC, says="adding"),
        bad((1, 8), (2, 3, 4), (1,), "VALID", _NHC, says="lhs_shape"),
        bad((1, 8, 3), (2, 3), (1,), "VALID", _NHC, says="rhs_shape"),
        bad((1, 8, 3), (2, 3, 4), (1,), "VALID", ("NHC",), says="dimension_numbers"),
    ]
