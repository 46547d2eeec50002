"""Samples of dot_general and its relatives."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from pyjx import lax
from tests.op_table import Sample

_rng = np.random.default_rng(0)


def _array(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return _rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return _rng.integers(0, 5, shape).astype(dtype)
    if dtype.kind == "c":
        return (_rng.normal(size=shape) + 1j * _rng.normal(size=shape)).astype(dtype)
    return _rng.normal(size=shape).astype(dtype)


def _dot(subscripts: str, x: tuple[int, ...], y: tuple[int, ...], dimension_numbers: Any,
         dtype: Any = np.float32, tol: float | None = None, **options: Any) -> Sample:
    def fun(a: Any, b: Any) -> Any:
        return lax.dot_general(a, b, dimension_numbers, **options)

    def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        wide = a.dtype if a.dtype.kind in "iubc" else np.float64
        out = np.einsum(subscripts, a.astype(wide), b.astype(wide))
        return out.astype(options.get("preferred_element_type", a.dtype))

    name = f"{subscripts}-{np.dtype(dtype).name}" + "".join(
        [f"-{getattr(v, 'name', v)}" for v in options.values()])
    return Sample("dot_general", fun, (_array(x, dtype), _array(y, dtype)), reference,
                  rtol=tol, atol=tol, id=name)


_MATMUL = (((1,), (0,)), ((), ()))
_SIZES = np.array([2, 0, 3], np.int32)


def _groups(sizes: np.ndarray, n: int) -> np.ndarray:
    """Rows of ones for each group's part of an axis of size n."""
    ends = np.cumsum(sizes)
    place = np.arange(n)
    return ((ends - sizes)[:, None] <= place) & (place < ends[:, None])


def _ragged(mode: str, x: np.ndarray, y: np.ndarray, sizes: np.ndarray, axes: Any, ragged: int,
            group: tuple[int, ...], reference: Any) -> Sample:
    dims = lax.RaggedDotDimensionNumbers(axes, (ragged,), group)
    return Sample("ragged_dot_general", lambda a, b, n: lax.ragged_dot_general(a, b, n, dims),
                  (x, y, sizes), reference, rtol=1e-4, atol=1e-4, id=f"ragged-{mode}")

_BF16 = ml_dtypes.bfloat16

SAMPLES = [
    _dot("k,k->", (3,), (3,), (((0,), (0,)), ((), ()))),
    _dot("m,n->mn", (3,), (2,), (((), ()), ((), ()))),
    _dot("mk,kn->mn", (2, 3), (3, 4), _MATMUL),
    _dot("mk,kn->mn", (2, 0), (0, 4), _MATMUL),
    _dot("mk,kn->mn", (0, 3), (3, 4), _MATMUL),
    _dot("mk,nk->mn", (2, 3), (4, 3), (((1,), (1,)), ((), ()))),
    _dot("bmk,bkn->bmn", (5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
    _dot("mbkc,ckbn->bmn", (2, 5, 3, 4), (4, 3, 5, 1), (((2, 3), (1, 0)), ((1,), (2,)))),
    _dot("abk,kba->ab", (2, 3, 4), (4, 3, 2), (((2,), (0,)), ((0, 1), (2, 1)))),
    _dot("mk,kn->mn", (2, 3), (3, 4), _MATMUL, np.complex64),
    _dot("mk,kn->mn", (2, 3), (3, 4), _MATMUL, np.float16, 2e-2),
    _dot("mk,kn->mn", (2, 3), (3, 4), _MATMUL, _BF16, 1e-1),
    _dot("mk,kn->mn", (2, 3), (3, 4), _MATMUL, _BF16, 5e-2, preferred_element_type=np.float32),
    _dot("mk,kn->mn", (2, 3), (3, 4), _MATMUL, np.int32),
    _dot("mk,kn->mn", (2, 3), (3, 4), _MATMUL, np.int8, preferred_element_type=np.int32),
    _dot("mk,kn->mn", (2, 3), (3, 4), _MATMUL, np.bool_),
    _dot("mk,kn->mn", (2, 3), (3, 4), _MATMUL, precision="highest"),
    # Of less precision than finite differences need.
    _dot("mk,kn->mn", (2, 3), (3, 4), _MATMUL, tol=5e-2,
         precision="BF16_BF16_F32")._replace(diff=False),
    _dot("mk,kn->mn", (2, 3), (3, 4), _MATMUL,
         precision=lax.DotAlgorithmPreset.F32_F32_F32)._replace(diff=False),
    Sample("dot_general", lambda x, y: lax.dot(x, y), (_array((2, 3)), _array((3,))),
           lambda x, y: x @ y, id="dot"),
    Sample("dot_general", lambda x, y: lax.batch_matmul(x, y),
           (_array((2, 2, 3)), _array((2, 3, 1))), lambda x, y: x @ y, id="batch_matmul"),
    Sample("dot_general",
           lambda x, y: lax.dot_general(x, y, _MATMUL),
           (_array((2, 3)), _array((3, 4), np.int32)), lambda x, y: x @ y.astype(np.float32),
           diff=(0,), id="mixed"),
    Sample("ragged_dot_general", lambda x, y, n: lax.ragged_dot(x, y, n),
           (_array((6, 2)), _array((3, 2, 4)), _SIZES),
           lambda x, y, n: np.einsum("mk,gkn,gm->mn", x, y, _groups(n, 6)),
           rtol=1e-4, atol=1e-4, id="ragged_dot"),
    _ragged("contracting", _array((6, 2)), _array((6, 4)), _SIZES, (((0,), (0,)), ((), ())), 0, (),
            lambda x, y, n: np.einsum("km,kn,gk->gmn", x, y, _groups(n, 6))),
    _ragged("batch", _array((6, 2, 3)), _array((6, 3, 4)), _SIZES, (((2,), (1,)), ((0,), (0,))), 0,
            (), lambda x, y, n: np.einsum("bmk,bkn,gb->bmn", x, y, _groups(n, 6))),
    _ragged("batched-sizes", _array((2, 6, 3)), _array((3, 2, 3, 4)),
            np.array([[2, 0, 3], [1, 4, 1]], np.int32), (((2,), (2,)), ((0,), (1,))), 1, (0,),
            lambda x, y, n: np.einsum("bmk,gbkn,bgm->bmn", x, y,
                                      np.stack([_groups(s, 6) for s in n]))),
]
