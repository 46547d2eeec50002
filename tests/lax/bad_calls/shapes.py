"""Bad calls: shapes, joining, slices, gather and scatter."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from tests.lax.bad_calls.calls import (
    BOOL,
    F4,
    F32,
    I32,
    MATRIX,
    NOT_INT,
    NOT_INTS,
    OBJECTS,
    ONE,
    SCALAR,
    Bad,
    array,
    bad,
)

CALLS: dict[str, list[Bad]] = {}

# -- shapes ----------------------------------------------------------------------------------------

CALLS["reshape"] = [
    *[bad(x, (3,)) for x in OBJECTS], *[bad(F32, s, says="new_sizes") for s in NOT_INTS],
    bad(F32, (4,), says="new_sizes"), bad(F32, (-1,), says="new_sizes"),
    bad(MATRIX, (6,), (0, 0), says="dimensions"), bad(MATRIX, (6,), (0, 2), says="dimensions"),
    *[bad(MATRIX, (6,), s, says="dimensions") for s in NOT_INTS],
]
CALLS["collapse"] = [*[bad(x, 0) for x in OBJECTS], bad(MATRIX, 1, 0, says="dimension"),
                     *[bad(MATRIX, n, says="start_dimension") for n in NOT_INT if n is not None],
                     bad(MATRIX, 0, "x", says="stop_dimension")]
CALLS["squeeze"] = [
    *[bad(x, (0,)) for x in OBJECTS], bad(F32, (0,), says="dimensions"),
    bad(array(1), (1,), says="axis 1"), bad(array(1), (0, 0), says="dimensions"),
    *[bad(array(1), s, says="dimensions") for s in NOT_INTS], bad(array(1), None),
]
CALLS["expand_dims"] = [
    *[bad(x, (0,)) for x in OBJECTS], bad(F32, (2,), says="axis 2"), bad(F32, (0, 0), says="axis"),
    *[bad(F32, s, says="dimensions") for s in NOT_INTS], bad(F32, 0, says="dimensions"),
]
CALLS["broadcast"] = [*[bad(x, (2,)) for x in OBJECTS], bad(F32, (-1,), says="sizes"),
                      *[bad(F32, s, says="sizes") for s in NOT_INTS]]
CALLS["broadcast_to_rank"] = [*[bad(x, 2) for x in OBJECTS],
                              *[bad(F32, n, says="rank") for n in NOT_INT]]
CALLS["broadcast_in_dim"] = [
    *[bad(x, (3,), (0,)) for x in OBJECTS],
    *[bad(F32, s, (0,), says="shape") for s in NOT_INTS],
    *[bad(F32, (3,), s, says="broadcast_dimensions") for s in NOT_INTS],
    bad(F32, (3,), (), says="broadcast_dimensions"), bad(F32, (4,), (0,), says="shape"),
    bad(F32, (3,), (1,), says="broadcast_dimensions"), bad(SCALAR, (-1,), (), says="shape"),
    bad(F32, (3,), (-1,), says="broadcast_dimensions"),
    bad(MATRIX, (2, 3), (1, 0), says="broadcast_dimensions"),
]
CALLS["broadcast_shapes"] = [bad((2,), (3,), says="shapes"), bad((2, 3), (3, 2)), bad((2,), "ab"),
                             bad((2,), (1.5,)), bad(2.5, (1,)), bad((2,), None), bad(("x",), (1,))]
CALLS["transpose"] = [
    *[bad(x, (0,)) for x in OBJECTS], bad(MATRIX, (0,), says="permutation"),
    bad(MATRIX, (0, 0), says="permutation"), bad(MATRIX, (1, 2), says="permutation"),
    bad(MATRIX, (-1, 0), says="permutation"),
    *[bad(MATRIX, s, says="permutation") for s in NOT_INTS],
]
CALLS["rev"] = [
    *[bad(x, (0,)) for x in OBJECTS], bad(F32, (1,), says="dimensions"),
    bad(F32, (-1,), says="dimensions"), bad(F32, (0, 0), says="dimensions"),
    *[bad(F32, s, says="dimensions") for s in NOT_INTS], bad(F32, 0, says="dimensions"),
]
CALLS["tile"] = [*[bad(x, (2,)) for x in OBJECTS], bad(F32, (2, 2), says="reps"),
                 bad(F32, (-1,), says="reps"), *[bad(F32, s, says="reps") for s in NOT_INTS]]
CALLS["pad"] = [
    *[bad(x, 0.0, [(0, 0, 0)]) for x in OBJECTS], *[bad(F32, x, [(0, 0, 0)]) for x in OBJECTS],
    bad(F32, np.int32(0), [(0, 0, 0)], says="padding_value"),
    bad(F32, F32, [(0, 0, 0)], says="padding_value"), bad(F32, 0.0, [], says="padding_config"),
    bad(F32, 0.0, [(0, 0)], says="padding_config"), bad(F32, 0.0, [(0, 0, -1)], says="interior"),
    bad(F32, 0.0, [(-2, -2, 0)], says="padding_config"), bad(F32, 0.0, 3, says="padding_config"),
    bad(F32, 0.0, [(0, 0, 0.5)], says="padding_config"), bad(F32, 0.0, "abc"),
]

# -- joining ---------------------------------------------------------------------------------------

for _name, _axis in (("concatenate", "dimension"), ("stack", "axis")):
    CALLS[_name] = [
        *[bad([F32, x], 0, says="position 1") for x in OBJECTS], bad([], 0), bad(3, 0),
        bad([F32, I32], 0, says="int32"), bad([F32, MATRIX], 0, says="dimensions"),
        bad([F32, F32], 2, says=_axis), bad([F32, F32], -3, says=_axis),
        *[bad([F32, F32], n, says=_axis) for n in NOT_INT], bad([SCALAR, SCALAR], 1, says=_axis),
    ]
CALLS["concatenate"] += [bad([MATRIX, array(2, 4)], 0, says="dimension 0")]
CALLS["stack"] += [bad([F32, F4], 0, says="(3,), (4,)")]
CALLS["unstack"] = [*[bad(x) for x in OBJECTS], bad(F32, 1, says="axis"), bad(SCALAR, says="axis"),
                    *[bad(F32, n, says="axis") for n in NOT_INT]]
CALLS["split"] = [
    *[bad(x, (1, 2)) for x in OBJECTS], bad(F32, (1, 1), says="sizes"),
    bad(F32, (4, -1), says="izes"), bad(F32, (3,), 1, says="axis"),
    *[bad(F32, s, says="sizes") for s in NOT_INTS],
    *[bad(F32, (3,), n, says="axis") for n in NOT_INT],
]

# -- slices ----------------------------------------------------------------------------------------

CALLS["slice"] = [
    *[bad(x, (0,), (1,)) for x in OBJECTS], bad(F32, (0, 0), (1,), says="start_indices"),
    bad(F32, (0,), (1, 1), says="limit_indices"), bad(F32, (0,), (4,), says="limit_indices"),
    bad(F32, (2,), (1,), says="limit_indices"), bad(F32, (-1,), (1,), says="start_indices"),
    bad(F32, (0,), (1,), (0,), says="strides"), bad(F32, (0,), (1,), (1, 1), says="strides"),
    *[bad(F32, s, (1,), says="start_indices") for s in NOT_INTS],
    *[bad(F32, (0,), s, says="limit_indices") for s in NOT_INTS],
    *[bad(F32, (0,), (1,), s, says="strides") for s in NOT_INTS],
]
CALLS["slice_in_dim"] = [
    *[bad(x, 0, 1) for x in OBJECTS], bad(F32, 0, 4, says="limit_indices"),
    bad(F32, 0, 1, 0, says="strides"), bad(F32, 0, 1, -1, says="strides"),
    bad(F32, 0, 1, 1, 1, says="axis 1"), bad(F32, "x", 1, says="start_index"),
    bad(F32, 0, 1.5, says="limit_index"), bad(F32, 0, 1, "x", says="stride"),
    *[bad(F32, 0, 1, 1, n, says="axis") for n in NOT_INT],
]
CALLS["index_in_dim"] = [
    *[bad(x, 0) for x in OBJECTS], bad(F32, 3, says="index 3", error=IndexError),
    bad(F32, -4, says="index -4", error=IndexError), bad(F32, 0, 1, says="axis 1"),
    *[bad(F32, n, says="index") for n in NOT_INT], *[bad(F32, 0, n, says="axis") for n in NOT_INT],
]
BAD_STARTS: tuple[Any, ...] = (
    (0, 0), (), (0.5,), ("x",), (None,), (BOOL,), (I32,), (F32,), F32, array(2, dtype=np.int32),
    array(1, 1, dtype=np.int32), ONE, "x", None, 3, 1.5, {}, (object(),), np.array(["a"]),
)
CALLS["dynamic_slice"] = [
    *[bad(x, (0,), (1,)) for x in OBJECTS], *[bad(F32, s, (1,)) for s in BAD_STARTS],
    *[bad(F32, (0,), s, says="slice_sizes") for s in NOT_INTS],
    bad(F32, (0,), (4,), says="slice_sizes"), bad(F32, (0,), (-1,), says="slice_sizes"),
    bad(F32, (0,), (1, 1), says="slice_sizes"),
    bad(MATRIX, (np.int8(0), np.int16(0)), (1, 1), says="same type"),
    bad(MATRIX, (0, 0), (1, 1), allow_negative_indices=(True,), says="allow_negative_indices"),
    bad(MATRIX, (0, 0), (1, 1), allow_negative_indices=3, says="allow_negative_indices"),
]
CALLS["dynamic_slice_in_dim"] = [
    *[bad(x, 0, 1) for x in OBJECTS], bad(F32, 0.5, 1), bad(F32, "x", 1), bad(F32, I32, 1),
    bad(F32, 0, 4, says="slice_sizes"), bad(F32, 0, -1, says="slice_sizes"),
    bad(F32, 0, 1, 1, says="axis 1"), *[bad(F32, 0, n, says="slice_size") for n in NOT_INT],
    *[bad(F32, 0, 1, n, says="axis") for n in NOT_INT],
]
CALLS["dynamic_index_in_dim"] = [
    *[bad(x, 0) for x in OBJECTS], bad(F32, 0.5), bad(F32, "x"), bad(F32, I32), bad(F32, None),
    bad(F32, 0, 1, says="axis 1"), *[bad(F32, 0, n, says="axis") for n in NOT_INT],
]
CALLS["dynamic_update_slice"] = [
    *[bad(x, F32, (0,)) for x in OBJECTS], *[bad(F32, x, (0,)) for x in OBJECTS],
    *[bad(F32, F32, s) for s in BAD_STARTS], bad(F32, MATRIX, (0,), says="update"),
    bad(F32, F4, (0,), says="update"), bad(F32, I32, (0,), says="int32"),
]
CALLS["dynamic_update_slice_in_dim"] = [
    *[bad(x, F32, 0, 0) for x in OBJECTS], *[bad(F32, x, 0, 0) for x in OBJECTS],
    bad(F32, F4, 0, 0, says="update"), bad(F32, I32, 0, 0, says="int32"), bad(F32, F32, 0.5, 0),
    bad(F32, F32, "x", 0), bad(F32, F32, 0, 1, says="axis 1"),
    *[bad(F32, F32, 0, n, says="axis") for n in NOT_INT],
]
CALLS["dynamic_update_index_in_dim"] = [
    *[bad(x, SCALAR, 0, 0) for x in OBJECTS], *[bad(F32, x, 0, 0) for x in OBJECTS],
    bad(F32, MATRIX, 0, 0), bad(F32, ONE, 0, 0, says="int32"), bad(F32, SCALAR, 0.5, 0),
    bad(F32, SCALAR, 0, 1, says="axis 1"), *[bad(F32, SCALAR, 0, n, says="axis") for n in NOT_INT],
]
CALLS["index_take"] = [
    *[bad(x, (I32,), (0,)) for x in OBJECTS], *[bad(F32, (x,), (0,)) for x in OBJECTS],
    bad(F32, (F32,), (0,), says="integer"), bad(F32, (I32,), (1,), says="axis 1"),
    bad(F32, 3, (0,)),
    bad(F32, (I32, I32), (0,), says="idxs"), bad(F32, (), (), says="idxs"),
    bad(MATRIX, (I32, np.int32(0)), (0, 1), says="idxs"),
    bad(MATRIX, (I32, array(4, dtype=np.int32)), (0, 1), says="idxs"),
    *[bad(F32, (I32,), s, says="axes") for s in NOT_INTS],
]

# -- gather and scatter ----------------------------------------------------------------------------

_COLUMN = array(2, 1, dtype=np.int32)
_G = lax.GatherDimensionNumbers((), (0,), (0,))
_S = lax.ScatterDimensionNumbers((), (0,), (0,))


def _gather_numbers(**fields: Any) -> Any:
    return _G._replace(**fields)


def _scatter_numbers(**fields: Any) -> Any:
    return _S._replace(**fields)


CALLS["gather"] = [
    *[bad(x, _COLUMN, _G, (1,)) for x in OBJECTS], *[bad(F32, x, _G, (1,)) for x in OBJECTS],
    bad(F32, _COLUMN.astype(np.float32), _G, (1,), says="indices"),
    bad(F32, ONE, _G, (1,), says="ind"), bad(F32, _COLUMN, _G, (4,), says="lice size"),
    bad(F32, _COLUMN, _G, (-1,), says="lice size"),
    bad(F32, _COLUMN, _G, (1, 1), says="slice_sizes"),
    bad(F32, _COLUMN, _G, (2,), says="collapse"),
    bad(F32, _COLUMN, _G, (1,), mode="nope", says="nope"),
    bad(F32, _COLUMN, _G, (1,), mode=3, says="mode"),
    *[bad(F32, _COLUMN, _G, s, says="slice_sizes") for s in NOT_INTS],
    bad(F32, _COLUMN, None, (1,), says="dimension_numbers"),
    bad(F32, _COLUMN, (0, 1), (1,), says="dimension_numbers"),
    bad(F32, _COLUMN, _gather_numbers(offset_dims=(0,)), (1,), says="offset"),
    bad(F32, _COLUMN, _gather_numbers(offset_dims=(1, 0)), (1,), says="offset_dims"),
    bad(F32, _COLUMN, _gather_numbers(offset_dims=(7,)), (1,), says="ffset"),
    bad(F32, _COLUMN, _gather_numbers(collapsed_slice_dims=(1,)), (1,),
        says="collapsed_slice_dims"),
    bad(F32, _COLUMN, _gather_numbers(start_index_map=(0, 0)), (1,), says="start_index_map"),
    bad(F32, _COLUMN, _gather_numbers(start_index_map=(3,)), (1,), says="start_index_map"),
    bad(F32, _COLUMN, _gather_numbers(start_index_map=("x",)), (1,), says="dimension_numbers"),
    bad(F32, _COLUMN, _gather_numbers(operand_batching_dims=(0,)), (1,), says="batching"),
    bad(F32, _COLUMN, _G, (1,), mode="fill", fill_value="x", says="fill_value"),
    bad(F32, _COLUMN, _G, (1,), mode="fill", fill_value=F32, says="fill_value"),
]


def _scatters(name: str) -> None:
    updates = array(2)
    CALLS[name] = [
        *[bad(x, _COLUMN, updates, _S) for x in OBJECTS],
        *[bad(F32, x, updates, _S) for x in OBJECTS], *[bad(F32, _COLUMN, x, _S) for x in OBJECTS],
        bad(F32, updates.reshape(2, 1), updates, _S, says="indices"),
        bad(F32, ONE, updates, _S, says="ind"), bad(F32, _COLUMN, array(2, dtype=int), _S),
        bad(F32, _COLUMN, array(2, 2), _S, says="pdates"),
        bad(F32, _COLUMN, F32, _S, says="pdates"),
        bad(F32, _COLUMN, updates, None, says="dimension_numbers"),
        bad(F32, _COLUMN, updates, (1, 2), says="dimension_numbers"),
        bad(F32, _COLUMN, updates, _S, mode="nope", says="nope"),
        bad(F32, _COLUMN, array(2, 4), lax.ScatterDimensionNumbers((1,), (), (0,)), says="pdates"),
        bad(F32, _COLUMN, updates, _scatter_numbers(inserted_window_dims=()), says="window"),
        bad(F32, _COLUMN, updates, _scatter_numbers(inserted_window_dims=(5,)), says="inserted"),
        bad(F32, _COLUMN, updates, _scatter_numbers(scatter_dims_to_operand_dims=(5,)),
            says="scatter_dims_to_operand_dims"),
        bad(F32, _COLUMN, updates, _scatter_numbers(operand_batching_dims=(0,)), says="batching"),
    ]


for _name in ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min",
              "scatter_max"):
    _scatters(_name)
CALLS["scatter_apply"] = [
    *[bad(x, _COLUMN, lax.neg, _S, update_shape=(2,)) for x in OBJECTS],
    *[bad(F32, x, lax.neg, _S, update_shape=(2,)) for x in OBJECTS],
    bad(F32, _COLUMN, None, _S, update_shape=(2,), says="func"),
    bad(F32, _COLUMN, lambda x: "a", _S, update_shape=(2,)),
    bad(F32, _COLUMN, lambda x: F32, _S, update_shape=(2,), says="func"),
    bad(F32, _COLUMN, lambda x: ONE, _S, update_shape=(2,), says="func"),
    bad(F32, _COLUMN, lax.neg, _S, update_shape=(3,), says="pdates"),
    *[bad(F32, _COLUMN, lax.neg, _S, update_shape=s, says="update_shape") for s in NOT_INTS],
    bad(F32, _COLUMN, lax.neg, _S, update_shape=(2,), mode="nope", says="nope"),
]
