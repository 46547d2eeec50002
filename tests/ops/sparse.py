"""Samples of the primitives of `pyjx.experimental.sparse`."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyjx.numpy as jnp
from pyjx.experimental import sparse
from pyjx.experimental.sparse.formats import SparseInfo
from pyjx.experimental.sparse.matrices import csr_product
from tests.op_table import Sample
from tests.ops.reductions import floats

SHAPE = (3, 4)
INFO = SparseInfo(SHAPE)
ROWS, COLS = np.array([2, 0, 2, 1, 3, 0]), np.array([1, 3, 1, 0, 4, 0])
INDICES = np.stack([ROWS, COLS], 1).astype(np.int32)  # one twice, one out of bounds
INDPTR, IN_ROWS = np.array([0, 2, 3, 5], np.int32), np.array([3, 0, 0, 1, 2, 4], np.int32)
DATA, MATRIX = floats(6), floats(*SHAPE)
VECTOR, TALL = floats(4), floats(4, 2)


def dense(data: Any, rows: Any = ROWS, cols: Any = COLS) -> np.ndarray:
    out = np.zeros(SHAPE, np.result_type(data))
    for x, i, j in zip(data, rows, cols, strict=True):
        if i < SHAPE[0] and j < SHAPE[1]:
            out[i, j] += x
    return out


def by_rows(data: Any) -> np.ndarray:
    return dense(data, np.repeat([0, 1, 2, 3], [2, 1, 2, 1]), IN_ROWS)


def bcoo(data: Any) -> sparse.BCOO:
    return sparse.BCOO((data, INDICES), shape=SHAPE)


def bcsr(data: Any) -> sparse.BCSR:
    return sparse.BCSR((data, IN_ROWS, INDPTR), shape=SHAPE)


def coo(data: Any) -> sparse.COO:
    return sparse.COO((data, ROWS, COLS), shape=SHAPE)


def csr(data: Any) -> sparse.CSR:
    return sparse.CSR((data, IN_ROWS, INDPTR), shape=SHAPE)


NUMBERS = (((1,), (0,)), ((), ()))


def _dot(x: Any, y: Any) -> Any:
    return sparse.bcoo_dot_general(x, y, dimension_numbers=NUMBERS)


def _sampled(a: Any, b: Any) -> Any:
    return sparse.bcoo_dot_general_sampled(a, b, INDICES, dimension_numbers=NUMBERS)


def _taken(a: np.ndarray) -> np.ndarray:
    inside = np.less(INDICES, SHAPE).all(1)
    return np.where(inside, a[np.minimum(ROWS, SHAPE[0] - 1), np.minimum(COLS, SHAPE[1] - 1)], 0)


def _extracted(a: np.ndarray) -> np.ndarray:
    return np.where(np.arange(6) == 2, 0, _taken(a))  # the place that occurs again


SYSTEM = np.array([4.0, 1.0, 1.0, 5.0, 2.0], np.float32)
SYSTEM_COLS, SYSTEM_PTR = np.array([0, 2, 0, 1, 2], np.int32), np.array([0, 2, 4, 5], np.int32)


def _solved(data: np.ndarray, b: np.ndarray) -> np.ndarray:
    a = np.zeros((3, 3))
    np.add.at(a, (np.repeat([0, 1, 2], [2, 2, 1]), SYSTEM_COLS), data)
    return np.linalg.solve(a, b)


SAMPLES = [
    Sample("bcoo_todense", lambda x: bcoo(x).todense(), (DATA,), dense),
    Sample("bcoo_fromdense", lambda x: sparse.BCOO.fromdense(x, nse=13).data, (MATRIX,),
           lambda x: np.append(x.ravel(), np.zeros(1, x.dtype))),
    Sample("bcoo_extract", lambda x: sparse.bcoo_extract(bcoo(DATA), x).data, (MATRIX,),
           _extracted),
    Sample("bcoo_sort_indices", lambda x: bcoo(x).sort_indices().data, (DATA,),
           lambda x: x[np.lexsort((COLS, ROWS))]),
    Sample("bcoo_sum_duplicates",
           lambda x: sparse.bcoo_sum_duplicates(bcoo(x), nse=4).data, (DATA,),
           lambda x: np.array([x[5], x[1], x[3], x[0] + x[2]])),
    Sample("bcoo_transpose", lambda x: bcoo(x).T.data, (DATA,), lambda x: x),
    Sample("bcoo_dot_general", lambda x, y: _dot(bcoo(x), y), (DATA, TALL),
           lambda x, y: dense(x) @ y),
    Sample("bcoo_dot_general", lambda x, y: _dot(y, bcoo(x)), (DATA, floats(2, 3)),
           lambda x, y: y @ dense(x), id="sparse_rhs"),
    Sample("bcoo_dot_general_sampled", _sampled, (floats(3, 5), floats(5, 4)),
           lambda a, b: _taken(a @ b)),
    Sample("bcoo_spdot_general",
           lambda x, y: (bcoo(x) @ bcoo(y).T).todense(), (DATA, floats(6)),
           lambda x, y: dense(x) @ dense(y).T),
    Sample("bcsr_todense", lambda x: bcsr(x).todense(), (DATA,), by_rows),
    Sample("bcsr_fromdense", lambda x: sparse.BCSR.fromdense(x, nse=12).data, (MATRIX,),
           lambda x: x.ravel()),
    Sample("bcsr_extract", lambda x: sparse.bcsr_extract(IN_ROWS, INDPTR, x), (MATRIX,),
           lambda x: np.append(x[[0, 0, 1, 2, 2], IN_ROWS[:5]], np.zeros(1, x.dtype))),
    Sample("bcsr_dot_general", lambda x, y: bcsr(x) @ y, (DATA, TALL),
           lambda x, y: by_rows(x) @ y),
    Sample("coo_todense", lambda x: coo(x).todense(), (DATA,), dense),
    Sample("coo_fromdense", lambda x: sparse.COO.fromdense(x, nse=12).data, (MATRIX,),
           lambda x: x.ravel()),
    Sample("coo_matvec", lambda x, y: coo(x) @ y, (DATA, VECTOR), lambda x, y: dense(x) @ y),
    Sample("coo_matmat", lambda x, y: coo(x).T @ y, (DATA, floats(3, 2)),
           lambda x, y: dense(x).T @ y),
    Sample("csr_todense", lambda x: csr(x).todense(), (DATA,), by_rows),
    Sample("csr_fromdense", lambda x: sparse.CSR.fromdense(x, nse=12).data, (MATRIX,),
           lambda x: x.ravel()),
    Sample("csr_matvec", lambda x, y: csr(x) @ y, (DATA, VECTOR), lambda x, y: by_rows(x) @ y),
    Sample("csr_matmat", lambda x, y: csr(x).T @ y, (DATA, floats(3, 2)),
           lambda x, y: by_rows(x).T @ y),
    Sample("csr_product", lambda x, y: csr_product(x, IN_ROWS, INDPTR, y), (DATA, TALL),
           lambda x, y: by_rows(x) @ y),
    Sample("todense", lambda x: sparse.todense(bcoo(x)), (DATA,), dense),
    Sample("todense", lambda x: sparse.todense(jnp.asarray(x)), (MATRIX,), lambda x: x,
           id="of_dense"),
    Sample("spsolve", lambda x, b: sparse.linalg.spsolve(x, SYSTEM_COLS, SYSTEM_PTR, b),
           (SYSTEM, floats(3)), _solved, rtol=1e-4, atol=1e-4),
]
