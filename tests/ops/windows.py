"""Samples of reductions over sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pyjx as jax
from pyjx import lax
from pyjx.lax.windows import select_and_scatter_p
from tests.op_table import Sample
from tests.ops.reductions import complexes, floats, ints

Pads = Sequence[tuple[int, int]]


def apart(*shape: int) -> np.ndarray:
    """Numbers of which no two are near each other, so that maxima have derivatives."""
    n = int(np.prod(shape))
    return (np.random.default_rng(n).permutation(n) / 4 - n / 8).reshape(shape).astype(np.float32)


def windowed(reducer: Callable[..., Any], init: Any, window: Sequence[int],
             strides: Sequence[int], padding: Pads, base: Sequence[int] | None = None,
             holes: Sequence[int] | None = None) -> Callable[[np.ndarray], np.ndarray]:
    """A NumPy reference for `reduce_window`."""

    def reference(x: np.ndarray) -> np.ndarray:
        base_ = base or [1] * x.ndim
        holes_ = holes or [1] * x.ndim
        spread = np.full([(n - 1) * d + 1 for n, d in zip(x.shape, base_, strict=True)], init,
                         x.dtype)
        spread[tuple(slice(None, None, d) for d in base_)] = x
        padded = np.pad(spread, padding, constant_values=init)
        reach = [(n - 1) * d + 1 for n, d in zip(window, holes_, strict=True)]
        view = np.lib.stride_tricks.sliding_window_view(padded, reach)
        places = [slice(None, None, s) for s in strides] + [slice(None, None, d) for d in holes_]
        return reducer(view[tuple(places)], tuple(range(x.ndim, 2 * x.ndim)))

    return reference


NONE = ((0, 0), (0, 0))
PADS = ((1, 0), (2, 1))
SELECT = {"window_dimensions": (2, 3), "window_strides": (2, 1), "padding": PADS}
UNIT = {"base_dilation": (1, 1), "window_dilation": (1, 1)}


def sums(window: Any, strides: Any, padding: Any, base: Any = None, holes: Any = None) -> Any:
    return lambda x: lax.reduce_window(x, np.zeros((), x.dtype)[()], lax.add, window, strides,
                                       padding, base, holes)


def maxima(window: Any, strides: Any, padding: Any, base: Any = None, holes: Any = None) -> Any:
    return lambda x: lax.reduce_window(x, np.float32(-np.inf), lax.max, window, strides, padding,
                                       base, holes)


def _gathered(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, PADS, constant_values=-np.inf)
    view = np.lib.stride_tricks.sliding_window_view(padded, (2, 3))[::2]
    t_view = np.lib.stride_tricks.sliding_window_view(np.pad(t, PADS), (2, 3))[::2]
    place = view.reshape(*view.shape[:2], 6).argmax(-1)
    return np.take_along_axis(t_view.reshape(*view.shape[:2], 6), place[..., None], -1)[..., 0]


def _scattered(source: np.ndarray, x: np.ndarray) -> np.ndarray:
    padded = np.pad(x, PADS, constant_values=-np.inf)
    out = np.zeros(padded.shape, source.dtype)
    for i, j in np.ndindex(*source.shape):
        block = padded[2 * i:2 * i + 2, j:j + 3]
        a, b = np.unravel_index(block.argmax(), block.shape)
        out[2 * i + a, j + b] += source[i, j]
    return out[1:, 2:-1]


def _pair(x: Any, y: Any) -> Any:
    return lax.reduce_window((x, y), (np.float32(0), np.float32(1)),
                             lambda a, b: (lax.add(a[0], b[0]), lax.mul(a[1], b[1])),
                             (2,), (1,), "VALID")


def _select_and_scatter(x: Any, source: Any, init: Any) -> Any:
    scalar = np.zeros((), x.dtype)[()]
    select, scatter = (jax.make_jaxpr(f)(scalar, scalar) for f in (lax.ge, lax.add))
    return select_and_scatter_p.bind(x, source, init, select_jaxpr=select, select_consts=(),
                                     scatter_jaxpr=scatter, scatter_consts=(), **SELECT)


SAMPLES = [
    Sample("reduce_window_sum", sums((2, 3), (1, 2), PADS), (floats(4, 5),),
           windowed(np.sum, 0, (2, 3), (1, 2), PADS)),
    Sample("reduce_window_sum", sums((2, 2), (2, 1), PADS, (2, 1), (1, 2)), (floats(4, 5),),
           windowed(np.sum, 0, (2, 2), (2, 1), PADS, (2, 1), (1, 2)), id="dilated"),
    Sample("reduce_window_sum", sums((2,), (1,), "SAME"), (ints(5),),
           windowed(np.sum, 0, (2,), (1,), [(0, 1)]), id="int"),
    Sample("reduce_window_sum", sums((3,), (1,), "SAME_LOWER"), (complexes(5),),
           windowed(np.sum, 0, (3,), (1,), [(1, 1)]), id="complex"),
    Sample("reduce_window_sum", sums((6, 7), (2, 3), NONE), (floats(9, 11),),
           windowed(np.sum, 0, (6, 7), (2, 3), NONE), rtol=1e-4, atol=1e-4, id="large"),
    Sample("reduce_window_sum", sums((4, 1), (1, 1), NONE), (floats(3, 2),),
           lambda x: np.zeros((0, 2), np.float32), id="no_window"),
    Sample("reduce_window_max", maxima((2, 3), (1, 2), PADS), (apart(4, 5),),
           windowed(np.max, -np.inf, (2, 3), (1, 2), PADS)),
    Sample("reduce_window_max", maxima((2, 2), (1, 1), NONE, (1, 1), (2, 1)), (apart(4, 5),),
           windowed(np.max, -np.inf, (2, 2), (1, 1), NONE, (1, 1), (2, 1)), id="dilated"),
    Sample("reduce_window_max", maxima((6, 7), (2, 3), NONE), (apart(9, 11),),
           windowed(np.max, -np.inf, (6, 7), (2, 3), NONE), id="large"),
    Sample("reduce_window_min",
           lambda x: lax.reduce_window(x, np.float32(np.inf), lax.min, (2, 3), (2, 1), "SAME"),
           (apart(4, 5),), windowed(np.min, np.inf, (2, 3), (2, 1), ((0, 0), (1, 1)))),
    Sample("reduce_window",
           lambda x: lax.reduce_window(x, np.float32(1), lax.mul, (2, 2), (1, 1), "VALID"),
           (floats(3, 4),), windowed(np.prod, 1, (2, 2), (1, 1), NONE)),
    Sample("reduce_window", _pair, (floats(5), floats(5)),
           lambda x, y: (windowed(np.sum, 0, (2,), (1,), [(0, 0)])(x),
                         windowed(np.prod, 1, (2,), (1,), [(0, 0)])(y)), id="pair"),
    Sample("select_and_gather_add",
           lambda t, x: lax.select_and_gather_add_p.bind(t, x, select_prim=lax.ge_p, **SELECT,
                                                         **UNIT),
           (floats(5, 4), floats(5, 4)), _gathered, diff=(0,)),
    Sample("select_and_scatter_add",
           lambda s, x: lax.select_and_scatter_add_p.bind(s, x, select_prim=lax.ge_p, **SELECT),
           (floats(3, 5), floats(5, 4)), _scattered, diff=(0,)),
    Sample("select_and_scatter", _select_and_scatter,
           (floats(5, 4), floats(3, 5), np.float32(0.5)),
           lambda x, source, init: _scattered(source, x) + init),
]
