"""Samples of slices at static and at computed positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from tests.op_table import Sample
from tests.ops.shapes import complexes, floats, ints


def _updated(x: np.ndarray, update: np.ndarray, *starts: Any) -> np.ndarray:
    out = x.copy()
    out[_window(x, update.shape, starts)] = update
    return out


def _window(x: np.ndarray, sizes: tuple[int, ...], starts: Any) -> tuple[slice, ...]:
    """The slice of this size that begins at `starts`, moved until it is inside."""
    out = []
    for s, size, n in zip(starts, sizes, x.shape, strict=True):
        s = int(s) + n if s < 0 else int(s)
        s = min(max(s, 0), n - size)
        out.append(slice(s, s + size))
    return tuple(out)


SAMPLES = [
    Sample("slice", lambda x: lax.slice(x, (1, 0), (3, 2)), (floats(4, 3),),
           lambda x: x[1:3, 0:2]),
    Sample("slice", lambda x: lax.slice(x, (1, 0), (6, 5), (2, 3)), (floats(7, 5),),
           lambda x: x[1:6:2, 0:5:3], id="slice-strided"),
    Sample("slice", lambda x: lax.slice(x, (2,), (2,), (2,)), (complexes(4),),
           lambda x: x[2:2], id="slice-empty"),
    Sample("slice", lambda x: lax.slice_in_dim(x, -3, -1, axis=1), (ints(2, 5),),
           lambda x: x[:, -3:-1], id="slice_in_dim"),
    Sample("slice", lambda x: lax.index_in_dim(x, -1, 1, keepdims=False), (floats(2, 5),),
           lambda x: x[:, -1], id="index_in_dim"),
    Sample("dynamic_slice", lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 1)),
           (floats(4, 3), np.int32(1), np.int32(-1)),
           lambda x, i, j: x[_window(x, (2, 1), (i, j))]),
    Sample("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)),
           (complexes(4, 3), np.uint8(9)), lambda x, i: x[2:], id="dynamic_slice-clamped"),
    Sample("dynamic_slice", lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 1),
           (floats(2, 5), np.int32(-9)), lambda x, i: x[:, :2], id="dynamic_slice_in_dim"),
    Sample("dynamic_slice", lambda x, i: lax.dynamic_index_in_dim(x, i, 0, keepdims=False),
           (floats(3, 2), np.int32(1)), lambda x, i: x[1], id="dynamic_index_in_dim"),
    Sample("dynamic_slice", lambda x, i: lax.dynamic_slice(x, i, (1, 2)),
           (ints(4, 3), np.array([-1, 1])), lambda x, i: x[3:, 1:], id="dynamic_slice-vector"),
    Sample("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i,), (200,)),
           (floats(300), np.int8(-50)), lambda x, i: x[100:], id="dynamic_slice-int8"),
    Sample("dynamic_update_slice",
           lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)),
           (floats(4, 3), floats(2, 1), np.int32(1), np.int32(-1)), _updated),
    Sample("dynamic_update_slice", lambda x, u, i: lax.dynamic_update_slice(x, u, (i,)),
           (complexes(4), complexes(2), np.int32(9)), _updated,
           id="dynamic_update_slice-clamped"),
    Sample("dynamic_update_slice",
           lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 1),
           (floats(2, 5), floats(2, 2), np.uint32(1)),
           lambda x, u, i: _updated(x, u, 0, i), id="dynamic_update_slice_in_dim"),
    Sample("dynamic_update_slice", lambda x, u, i: lax.dynamic_update_index_in_dim(x, u, i, 0),
           (ints(3, 2), ints(2), np.int32(1)), lambda x, u, i: _updated(x, u[None], i, 0),
           id="dynamic_update_index_in_dim"),
    Sample("dynamic_update_slice", lambda x, u: lax.dynamic_update_slice(x, u, ()),
           (np.float32(1), np.float32(2)), lambda x, u: u, id="dynamic_update_slice-scalar"),
    Sample("gather", lambda x, i, j: lax.index_take(x, (i, j), (0, 2)),
           (floats(3, 2, 4), np.array([0, -1, 5]), np.array([1, 3, 2])),
           lambda x, i, j: x[i % 3, :, j % 4], id="index_take"),
]
