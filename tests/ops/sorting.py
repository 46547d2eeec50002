"""Samples of sorting and of the largest elements."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from pyjx import lax
from tests.op_table import Sample
from tests.ops.reductions import complexes, floats, ints


def _by_first(k: np.ndarray, v: np.ndarray) -> Any:
    order = np.argsort(k, -1, kind="stable")
    return np.take_along_axis(k, order, -1), np.take_along_axis(v, order, -1)


def _by_two(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
    order = np.lexsort((b, a))
    return a[order], b[order], c[order]


def _top(k: int, axis: int = -1) -> Any:
    def reference(x: np.ndarray) -> Any:
        order = np.argsort(-x.astype(np.float64), axis, kind="stable")
        first = np.take(order, np.arange(k), axis)
        return np.take_along_axis(x, first, axis), first

    return reference


def _values(fun: Any) -> Any:
    """The differentiable part of the result."""
    return lambda x: fun(x)[0]


SAMPLES = [
    Sample("sort", lambda x: lax.sort(x), (floats(3, 7),), lambda x: np.sort(x, 1)),
    Sample("sort", lambda x: lax.sort(x, 0), (floats(3, 7),), lambda x: np.sort(x, 0), id="axis0"),
    Sample("sort", lambda x: lax.sort(x), (ints(20),), np.sort, id="int"),
    Sample("sort", lambda x: lax.sort(x), (ints(20).astype(np.uint8),), np.sort, id="uint8"),
    Sample("sort", lambda x: lax.sort(x), (floats(9) > 0,), np.sort, id="bool"),
    Sample("sort", lambda x: lax.sort(x), (floats(9).astype(ml_dtypes.bfloat16),),
           lambda x: np.sort(x.astype(np.float32)).astype(x.dtype), diff=False, id="bfloat16"),
    Sample("sort", lambda x: lax.sort(x), (complexes(3, 5),), np.sort, diff=False, id="complex"),
    Sample("sort", lambda x: lax.sort(x), (floats(0, 3),), np.sort, id="empty"),
    Sample("sort", lambda x: lax.sort(x),
           (np.array([1, np.nan, -np.inf, 0, np.inf], np.float32),), np.sort, diff=False,
           id="nan"),
    Sample("sort", lambda k, v: lax.sort((k, v), num_keys=1), (ints(3, 9), floats(3, 9)),
           _by_first, diff=(1,), id="pair"),
    Sample("sort", lambda k, v: lax.sort_key_val(k, v), (floats(9), complexes(9)), _by_first,
           id="key_val"),
    Sample("sort", lambda a, b, c: lax.sort((a, b, c), num_keys=2),
           (ints(30) // 4, floats(30), floats(30)), _by_two, id="two_keys"),
    Sample("top_k", lambda x: lax.top_k(x, 2), (floats(3, 7),), _top(2), diff=False),
    Sample("top_k", _values(lambda x: lax.top_k(x, 3, axis=0)), (floats(5, 2),),
           lambda x: _top(3, 0)(x)[0], id="axis0"),
    Sample("top_k", lambda x: lax.top_k(x, 4), (ints(10),), _top(4), id="int"),
    Sample("top_k", lambda x: lax.top_k(x, 2), (floats(10).astype(np.float16),), _top(2),
           diff=False, id="float16"),
    Sample("top_k", lambda x: lax.top_k(x, 0), (ints(3, 4),), _top(0), id="none"),
    Sample("approx_top_k", lambda x: lax.approx_max_k(x, 2), (floats(3, 7),), _top(2),
           diff=False),
    Sample("approx_top_k", _values(lambda x: lax.approx_min_k(x, 2, reduction_dimension=0)),
           (floats(5, 2),), lambda x: np.sort(x, 0)[:2], id="min"),
]
