"""Samples of reductions over axes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from pyjx import lax
from tests.op_table import Sample

rng = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def ints(*shape: int) -> np.ndarray:
    return rng.integers(-9, 9, shape).astype(np.int32)


def complexes(*shape: int) -> np.ndarray:
    return (floats(*shape) + 1j * floats(*shape)).astype(np.complex64)


def _both(x: Any, y: Any) -> Any:
    return lax.reduce((x, y), (np.float32(0), np.float32(1)),
                      lambda a, b: (lax.add(a[0], b[0]), lax.mul(a[1], b[1])), (1,))


SAMPLES = [
    Sample("reduce_sum", lambda x: lax.reduce_sum(x, (0, 2)), (floats(3, 4, 5),),
           lambda x: x.sum((0, 2))),
    Sample("reduce_sum", lambda x: lax.reduce_sum(x, (1,)), (complexes(3, 4),),
           lambda x: x.sum(1), id="complex"),
    Sample("reduce_sum", lambda x: lax.reduce_sum(x, (0,)), (ints(7),), np.sum, id="int"),
    Sample("reduce_sum", lambda x: lax.reduce_sum(x, (1,)), (floats(3, 0),),
           lambda x: x.sum(1), id="empty"),
    Sample("reduce_sum", lambda x: lax.reduce_sum(x, (0,)),
           (np.arange(8).astype(ml_dtypes.bfloat16),), lambda x: x.astype(np.float32).sum(),
           diff=False, id="bfloat16"),
    Sample("reduce_max", lambda x: lax.reduce_max(x, (1,)), (floats(3, 4),), lambda x: x.max(1)),
    Sample("reduce_max", lambda x: lax.reduce_max(x, (0,)), (ints(5, 2),), lambda x: x.max(0),
           id="int"),
    Sample("reduce_max", lambda x: lax.reduce_max(x, (0,)), (floats(5, 2) > 0,),
           lambda x: x.max(0), id="bool"),
    Sample("reduce_max", lambda x: lax.reduce_max(x, (0, 1)), (floats(0, 2),),
           lambda x: np.float32(-np.inf), diff=False, id="empty"),
    Sample("reduce_max", lambda x: lax.reduce_max(x, (0,)), (complexes(5, 2),),
           lambda x: np.sort(x, 0)[-1], diff=False, id="complex"),
    Sample("reduce_min", lambda x: lax.reduce_min(x, (0, 1)), (floats(3, 4),), np.min),
    Sample("reduce_min", lambda x: lax.reduce_min(x, (0,)), (ints(5, 2).astype(np.uint8),),
           lambda x: x.min(0), id="uint8"),
    Sample("reduce_min", lambda x: lax.reduce_min(x, (1,)), (floats(3, 4).astype(np.float16),),
           lambda x: x.min(1), diff=False, id="float16"),
    Sample("reduce_prod", lambda x: lax.reduce_prod(x, (0,)), (floats(5, 3),),
           lambda x: x.prod(0)),
    Sample("reduce_prod", lambda x: lax.reduce_prod(x, (0, 1)),
           (np.array([[0, 2, 3], [4, 5, 1]], np.float32),), np.prod, id="zero"),
    Sample("reduce_prod", lambda x: lax.reduce_prod(x, (1,)), (complexes(2, 3),),
           lambda x: x.prod(1), id="complex"),
    Sample("reduce_prod", lambda x: lax.reduce_prod(x, (1,)), (floats(2, 0),),
           lambda x: x.prod(1), id="empty"),
    Sample("reduce_and", lambda x: lax.reduce_and(x, (1,)), (floats(3, 4) > -1,),
           lambda x: x.all(1)),
    Sample("reduce_and", lambda x: lax.reduce_and(x, (0,)), (ints(3, 4),),
           lambda x: np.bitwise_and.reduce(x, 0), id="int"),
    Sample("reduce_or", lambda x: lax.reduce_or(x, (1,)), (floats(3, 4) > 1,),
           lambda x: x.any(1)),
    Sample("reduce_or", lambda x: lax.reduce_or(x, (0,)), (ints(3, 4).astype(np.uint16),),
           lambda x: np.bitwise_or.reduce(x, 0), id="uint16"),
    Sample("reduce_xor", lambda x: lax.reduce_xor(x, (0, 1)), (ints(3, 4),),
           lambda x: np.bitwise_xor.reduce(x, None)),
    Sample("reduce_xor", lambda x: lax.reduce_xor(x, (0,)), (floats(3, 4) > 0,),
           lambda x: np.logical_xor.reduce(x, 0), id="bool"),
    Sample("argmax", lambda x: lax.argmax(x, 1, np.int32), (floats(3, 5),),
           lambda x: x.argmax(1)),
    Sample("argmax", lambda x: lax.argmax(x, 0, np.int16), (ints(9, 2),), lambda x: x.argmax(0),
           id="ties"),
    Sample("argmax", lambda x: lax.argmax(x, 0, np.uint8), (floats(3, 5) > 0,),
           lambda x: x.argmax(0), id="bool"),
    Sample("argmax", lambda x: lax.argmax(x, 0, np.int32),
           (np.array([1, np.nan, np.inf, np.nan], np.float32),), np.argmax, diff=False, id="nan"),
    Sample("argmin", lambda x: lax.argmin(x, 2, np.int32), (floats(3, 2, 5),),
           lambda x: x.argmin(2)),
    Sample("argmin", lambda x: lax.argmin(x, 0, np.int32),
           (np.array([3, 1, 1], ml_dtypes.bfloat16),), np.argmin, diff=False, id="bfloat16"),
    Sample("reduce", lambda x: lax.reduce(x, np.float32(-np.inf), lambda a, b: lax.max(a, b),
                                          (1,)), (floats(3, 5),), lambda x: x.max(1)),
    Sample("reduce", _both, (floats(3, 5), floats(3, 5)),
           lambda x, y: (x.sum(1), y.prod(1)), id="pair"),
]
