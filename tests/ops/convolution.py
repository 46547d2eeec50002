"""Samples of convolutions, against sums written out in NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np

from pyjx import lax
from tests.op_table import Sample

_rng = np.random.default_rng(0)


def _array(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return _rng.integers(0, 5, shape).astype(dtype)
    if dtype.kind == "c":
        return (_rng.normal(size=shape) + 1j * _rng.normal(size=shape)).astype(dtype)
    return _rng.normal(size=shape).astype(dtype)


def _spread(x: np.ndarray, dilation: tuple[int, ...]) -> np.ndarray:
    """`x` with zeros between the elements of its spatial axes."""
    shape = x.shape[:2] + tuple([(n - 1) * d + 1 if n else 0
                                 for n, d in zip(x.shape[2:], dilation, strict=True)])
    out = np.zeros(shape, x.dtype)
    out[(slice(None), slice(None), *[slice(None, None, d) for d in dilation])] = x
    return out


def _padded(x: np.ndarray, padding: Any) -> np.ndarray:
    x = np.pad(x, [(0, 0), (0, 0), *[(max(a, 0), max(b, 0)) for a, b in padding]])
    cut = [slice(max(-a, 0), n - max(-b, 0))
           for n, (a, b) in zip(x.shape[2:], padding, strict=True)]
    return x[(slice(None), slice(None), *cut)]


def convolve(x: np.ndarray, k: np.ndarray, strides: tuple[int, ...], padding: Any,
             lhs_dilation: Any = None, rhs_dilation: Any = None, feature_group_count: int = 1,
             batch_group_count: int = 1) -> np.ndarray:
    """The convolution of (batch, feature, space...) with (out, in, space...)."""
    ones = (1,) * len(strides)
    x = _padded(_spread(x, lhs_dilation or ones), padding)
    k = _spread(k, rhs_dilation or ones)
    space = [max((n - w) // s + 1, 0)
             for n, w, s in zip(x.shape[2:], k.shape[2:], strides, strict=True)]
    batch = x.shape[0] // batch_group_count
    out = np.zeros((batch, k.shape[0], *space), x.dtype)
    for n, o in itertools.product(range(batch), range(k.shape[0])):
        first = n + o * batch_group_count // k.shape[0] * batch
        low = o * feature_group_count // k.shape[0] * k.shape[1]
        for p in itertools.product(*map(range, space)):
            at = [slice(i * s, i * s + w)
                  for i, s, w in zip(p, strides, k.shape[2:], strict=True)]
            out[(n, o, *p)] = np.sum(x[(first, slice(low, low + k.shape[1]), *at)] * k[o])
    return out


def _conv(x: tuple[int, ...], k: tuple[int, ...], strides: tuple[int, ...], padding: Any,
          dtype: Any = np.float32, tol: float | None = None, name: str = "", **options: Any
          ) -> Sample:
    def fun(a: Any, b: Any) -> Any:
        return lax.conv_general_dilated(a, b, strides, padding, **options)

    def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        wide = a.dtype if a.dtype.kind in "iuc" else np.float64
        kinds = {n: v for n, v in options.items() if n.endswith(("dilation", "count"))}
        out = convolve(a.astype(wide), b.astype(wide), strides, padding, **kinds)
        return out.astype(options.get("preferred_element_type", a.dtype))

    return Sample("conv_general_dilated", fun, (_array(x, dtype), _array(k, dtype)), reference,
                  rtol=tol or 1e-4, atol=tol or 1e-4, id=name or f"{len(strides)}d-{dtype}")


_LAST = ("NHWC", "HWIO", "NHWC")


def _channels_last(x: np.ndarray, k: np.ndarray) -> np.ndarray:
    out = convolve(x.transpose(0, 3, 1, 2), k.transpose(3, 2, 0, 1), (2, 1), [(1, 1), (1, 1)])
    return out.transpose(0, 2, 3, 1)


def _transposed(x: np.ndarray, k: np.ndarray) -> np.ndarray:
    return convolve(x.transpose(0, 2, 1), k.transpose(2, 1, 0), (1,), [(2, 1)], (2,)
                    ).transpose(0, 2, 1)


def _patches(x: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3))
    n, c, h, w = windows.shape[:4]
    return windows.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * 6, h, w)


def _local(x: np.ndarray, k: np.ndarray) -> np.ndarray:
    return np.einsum("nihw,oihw->nohw", _patches(x), k)


SAMPLES = [
    _conv((2, 3, 5), (4, 3, 3), (1,), [(0, 0)], name="1d"),
    _conv((2, 3), (4, 3), (), [], name="0d"),
    _conv((2, 3, 5, 6), (4, 3, 3, 2), (1, 1), [(1, 1), (0, 2)], name="2d"),
    _conv((1, 2, 3, 4, 3), (2, 2, 2, 2, 1), (1, 2, 1), [(1, 0), (0, 0), (1, 1)], name="3d"),
    _conv((2, 3, 7, 5), (4, 3, 2, 3), (2, 3), [(1, 2), (2, 0)], name="strides"),
    _conv((2, 3, 7), (4, 3, 2), (3,), [(0, 0)], name="stride-leaves-rest"),
    _conv((2, 3, 7), (4, 3, 2), (1,), [(-1, -2)], name="negative-padding"),
    _conv((2, 3, 4), (4, 3, 3), (2,), [(3, 1)], lhs_dilation=(3,), name="lhs_dilation"),
    _conv((2, 3, 8), (4, 3, 3), (2,), [(1, 2)], rhs_dilation=(3,), name="rhs_dilation"),
    _conv((2, 3, 4, 5), (2, 3, 2, 3), (2, 1), [(2, 1), (0, 3)], lhs_dilation=(2, 3),
          rhs_dilation=(1, 2), name="dilations"),
    _conv((2, 6, 5), (4, 3, 3), (1,), [(1, 1)], feature_group_count=2, name="feature-groups"),
    _conv((2, 3, 5, 5), (6, 1, 3, 3), (2, 2), [(1, 1), (1, 1)], feature_group_count=3,
          name="depthwise"),
    _conv((4, 3, 5), (6, 3, 3), (1,), [(1, 1)], batch_group_count=2, name="batch-groups"),
    _conv((4, 3, 6), (6, 3, 2), (2,), [(0, 1)], batch_group_count=2, rhs_dilation=(2,),
          name="batch-groups-dilated"),
    _conv((0, 3, 5), (4, 3, 3), (1,), [(0, 0)], name="no-examples"),
    _conv((2, 0, 5), (4, 0, 3), (1,), [(0, 0)], name="no-features"),
    _conv((2, 3, 2), (4, 3, 3), (1,), [(0, 0)], name="no-positions"),
    _conv((2, 3, 5), (4, 3, 3), (1,), [(1, 1)], np.complex64, name="complex"),
    _conv((2, 3, 5), (4, 3, 3), (1,), [(1, 1)], ml_dtypes.bfloat16, 1e-1, name="bfloat16"),
    _conv((2, 3, 5), (4, 3, 3), (1,), [(1, 1)], ml_dtypes.bfloat16, 1e-1, name="preferred",
          preferred_element_type=np.float32),
    _conv((2, 3, 5), (4, 3, 3), (1,), [(1, 1)], np.int32, name="int32"),
    _conv((2, 3, 5), (4, 3, 3), (1,), [(1, 1)], np.int8, name="int8",
          preferred_element_type=np.int32),
    Sample("conv_general_dilated",
           lambda x, k: lax.conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=_LAST),
           (_array((2, 5, 4, 3)), _array((3, 3, 3, 4))), _channels_last, rtol=1e-4, atol=1e-4,
           id="channels-last"),
    Sample("conv_general_dilated",
           lambda x, k: lax.conv_transpose(x, k, (2,), "SAME"),
           (_array((2, 5, 3)), _array((3, 3, 4))), _transposed, rtol=1e-4, atol=1e-4,
           id="transposed"),
    Sample("conv_general_dilated",
           lambda x: lax.conv_general_dilated_patches(x, (2, 3), (1, 1), "VALID"),
           (_array((2, 3, 4, 5)),), _patches, id="patches"),
    Sample("conv_general_dilated",
           lambda x, k: lax.conv_general_dilated_local(x, k, (1, 1), "VALID", (2, 3)),
           (_array((2, 3, 4, 5)), _array((4, 18, 3, 3))), _local, rtol=1e-4, atol=1e-4,
           id="local"),
]
