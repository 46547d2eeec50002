"""Samples of cumulative reductions."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from pyjx import lax
from pyjx.lax.cumulative import linear_recurrence_p
from tests.op_table import Sample
from tests.ops.reductions import complexes, floats, ints


def _recurrence(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out, t = [], np.zeros_like(b[:, 0])
    for i in range(a.shape[1]):
        t = a[:, i] * t + b[:, i]
        out.append(t)
    return np.stack(out, 1)


SAMPLES = [
    Sample("cumsum", lambda x: lax.cumsum(x, 1), (floats(3, 4),), lambda x: x.cumsum(1)),
    Sample("cumsum", lambda x: lax.cumsum(x, 0, reverse=True), (floats(5, 2),),
           lambda x: x[::-1].cumsum(0)[::-1], id="reverse"),
    Sample("cumsum", lambda x: lax.cumsum(x), (ints(6),), np.cumsum, id="int"),
    Sample("cumsum", lambda x: lax.cumsum(x), (complexes(6),), np.cumsum, id="complex"),
    Sample("cumsum", lambda x: lax.cumsum(x), (floats(0, 2),), lambda x: x, id="empty"),
    Sample("cumsum", lambda x: lax.cumsum(x), (np.ones(300, ml_dtypes.bfloat16),),
           lambda x: x.astype(np.float32).cumsum().astype(x.dtype), diff=False, id="bfloat16"),
    Sample("cumprod", lambda x: lax.cumprod(x, 1), (floats(3, 4),), lambda x: x.cumprod(1)),
    Sample("cumprod", lambda x: lax.cumprod(x), (np.array([2, 0, 3, 0, 5], np.float32),),
           np.cumprod, id="zeros"),
    Sample("cumprod", lambda x: lax.cumprod(x, 0, reverse=True), (complexes(4),),
           lambda x: x[::-1].cumprod()[::-1], id="reverse_complex"),
    Sample("cummax", lambda x: lax.cummax(x, 1), (floats(3, 4),),
           lambda x: np.maximum.accumulate(x, 1)),
    Sample("cummax", lambda x: lax.cummax(x, 0, reverse=True), (ints(5, 2),),
           lambda x: np.maximum.accumulate(x[::-1], 0)[::-1], id="reverse_int"),
    Sample("cummin", lambda x: lax.cummin(x), (floats(6),), np.minimum.accumulate),
    Sample("cummin", lambda x: lax.cummin(x, 1, reverse=True), (floats(2, 3, 2),),
           lambda x: np.minimum.accumulate(x[:, ::-1], 1)[:, ::-1], id="reverse"),
    Sample("cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), (floats(3, 4),),
           lambda x: np.logaddexp.accumulate(x, 1)),
    Sample("cumlogsumexp", lambda x: lax.cumlogsumexp(x, 0, reverse=True), (floats(5) * 50,),
           lambda x: np.logaddexp.accumulate(x[::-1])[::-1], diff=False, id="reverse"),
    Sample("linear_recurrence",
           lambda a, b: linear_recurrence_p.bind(a, b, axis=1, reverse=False),
           (floats(3, 4), floats(3, 4)), _recurrence),
]
