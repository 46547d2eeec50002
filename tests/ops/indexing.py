"""Samples of gather and scatter, with the StableHLO specification's definition as reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from pyjx import lax
from tests.op_table import Sample
from tests.ops.shapes import complexes, floats, ints

G, S = lax.GatherDimensionNumbers, lax.ScatterDimensionNumbers

ROWS = ((1,), (0,), (0,))  # whole rows of a matrix
POINTS = ((), (0, 1), (0, 1))  # elements of a matrix
VECTOR = ((), (0,), (0,))  # elements of a vector
BLOCKS = ((1, 2), (), (1, 0))  # blocks of a matrix, whose positions name the column first
BATCHED = ((1,), (1,), (1,), (0,), (0,))  # a row of its own for each matrix of a batch


def _windows(shape: tuple[int, ...], window: tuple[int, ...], indices: np.ndarray, dnums: Any,
             mode: str) -> Iterator[tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """For each position in the array of indices, where its window starts; None: not inside."""
    _, _, index_map, batching, indices_batching = dnums
    for place in np.ndindex(*indices.shape[:-1]):
        start = [0] * len(shape)
        for axis, i in zip(index_map, indices[place], strict=True):
            start[axis] = int(i)
        for axis, i in zip(batching, indices_batching, strict=True):
            start[axis] = place[i]
        last = [n - w for n, w in zip(shape, window, strict=True)]
        if mode == "clip":
            start = [min(max(s, 0), n) for s, n in zip(start, last, strict=True)]
        inside = all(0 <= s <= n for s, n in zip(start, last, strict=True))
        yield place, tuple(start) if inside else None


def _gathered(dnums: Any, sizes: tuple[int, ...], mode: str, fill: Any) -> Callable[..., Any]:
    def reference(x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        left_out = (*dnums.collapsed_slice_dims, *dnums.operand_batching_dims)
        window = [n for i, n in enumerate(sizes) if i not in left_out]
        batch = indices.shape[:-1]
        out = np.full((*batch, *window), fill, x.dtype)
        for place, start in _windows(x.shape, sizes, indices, dnums, mode):
            if start is not None:
                part = x[tuple(slice(s, s + n) for s, n in zip(start, sizes, strict=True))]
                out[place] = part.reshape(window)
        order = iter(range(len(batch)))
        offsets = iter(range(len(batch), out.ndim))
        return out.transpose([next(offsets) if i in dnums.offset_dims else next(order)
                              for i in range(out.ndim)])

    return reference


def _scattered(combine: Any, dnums: Any, mode: str) -> Callable[..., Any]:
    def reference(x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        out = x.copy()
        left_out = (*dnums.inserted_window_dims, *dnums.operand_batching_dims)
        sizes = iter([updates.shape[a] for a in dnums.update_window_dims])
        window = tuple([1 if i in left_out else next(sizes) for i in range(x.ndim)])
        places = [a for a in range(updates.ndim) if a not in dnums.update_window_dims]
        front = updates.transpose(*places, *dnums.update_window_dims)
        for place, start in _windows(x.shape, window, indices, dnums, mode):
            if start is not None:
                where = tuple(slice(s, s + n) for s, n in zip(start, window, strict=True))
                out[where] = combine(out[where], front[place].reshape(window))
        return out

    return reference


def gather(name: str, dnums: Any, sizes: tuple[int, ...], x: np.ndarray, indices: Any,
           mode: str = "clip", fill: Any = None, filled: Any = np.nan) -> Sample:
    numbers = G(*dnums)
    return Sample(
        "gather",
        lambda x, i: lax.gather(x, i, numbers, sizes, mode=mode, fill_value=fill),
        (x, np.asarray(indices)), _gathered(numbers, sizes, mode, filled if fill is None else fill),
        diff=mode != "fill" or fill is not None, id=f"gather-{name}",
    )


COMBINE = {
    "scatter": lambda x, u: u, "scatter_add": np.add, "scatter_sub": np.subtract,
    "scatter_mul": np.multiply, "scatter_min": np.minimum, "scatter_max": np.maximum,
}


def scatter(function: str, name: str, dnums: Any, x: np.ndarray, indices: Any,
            updates: np.ndarray, mode: str = "drop", unique: bool = False, **rest: Any) -> Sample:
    numbers = S(*dnums)
    return Sample(
        function.replace("_", "-"),
        lambda x, i, u: getattr(lax, function)(x, i, u, numbers, mode=mode, unique_indices=unique),
        (x, np.asarray(indices), updates), _scattered(COMBINE[function], numbers, mode),
        id=f"{function}-{name}", **rest,
    )


def _half(x: Any) -> Any:
    return lax.mul(x, lax.sin(x))


SAMPLES = [
    gather("rows", ROWS, (1, 4), floats(3, 4), [[2], [0], [2]]),
    gather("points", POINTS, (1, 1), floats(3, 4), [[[2, 1], [0, 3]]]),
    gather("blocks", BLOCKS, (2, 3), floats(4, 5), [[0, 0], [2, 1]]),
    gather("clipped", BLOCKS, (2, 3), complexes(4, 5), [[-1, 9], [9, -9]]),
    gather("filled", ROWS, (1, 4), floats(3, 4), [[2], [-1], [3]], "fill", 0.5),
    gather("filled-blocks", BLOCKS, (2, 3), floats(4, 5), [[3, 1], [2, 1]], "fill", 0.5),
    gather("filled-nan", ROWS, (1, 4), floats(3, 4), [[2], [-1], [3]], "fill"),
    gather("filled-int", ROWS, (1, 4), ints(3, 4), [[3]], "fill", filled=-2**31),
    gather("filled-uint8", VECTOR, (1,), np.arange(3, dtype=np.uint8), [[9]], "fill", filled=255),
    gather("filled-bool", VECTOR, (1,), np.zeros(3, bool), [[9], [0]], "fill", filled=True),
    gather("filled-bfloat16", VECTOR, (1,), np.arange(3).astype(ml_dtypes.bfloat16), [[9], [2]],
           "fill"),
    gather("one_hot", ROWS, (1, 4), floats(3, 4), [[2], [5]], "one_hot", filled=0),
    gather("uint8-indices", VECTOR, (1,), floats(300), np.array([[255], [3]], np.uint8), "fill", 0),
    gather("batched", BATCHED, (1, 1, 4), floats(2, 3, 4), [[1], [2]]),
    gather("promised", ROWS, (1, 4), floats(3, 4), [[1]], "promise_in_bounds"),
    gather("no-indices", ROWS, (1, 4), floats(3, 4), np.zeros((0, 1), np.int32)),

    scatter("scatter", "rows", ROWS, floats(3, 4), [[2], [0]], floats(2, 4), unique=True),
    scatter("scatter", "repeated", ROWS, floats(3, 4), [[2], [0], [2]], floats(3, 4)),
    scatter("scatter", "dropped", VECTOR, floats(4), [[1], [-1], [4]], floats(3)),
    scatter("scatter", "clipped", BLOCKS, floats(4, 5), [[3, 2]], floats(1, 2, 3), "clip"),
    scatter("scatter", "batched", BATCHED, floats(2, 3, 4), [[1], [2]], floats(2, 4), unique=True),
    scatter("scatter", "bool", VECTOR, floats(4) > 0, [[1], [2]], floats(2) > 0, unique=True),
    scatter("scatter", "no-updates", VECTOR, floats(4), np.zeros((0, 1), np.int32), floats(0)),
    scatter("scatter_add", "rows", ROWS, floats(3, 4), [[2], [0], [2]], floats(3, 4)),
    scatter("scatter_add", "points", POINTS, complexes(3, 4), [[2, 1], [0, 9]], complexes(2)),
    scatter("scatter_add", "blocks", BLOCKS, floats(4, 5), [[0, 0], [1, 1]], floats(2, 2, 3)),
    scatter("scatter_add", "clipped", BLOCKS, floats(4, 5), [[-1, 9]], floats(1, 2, 3), "clip"),
    scatter("scatter_add", "batched", BATCHED, floats(2, 3, 4), [[1], [2]], floats(2, 4)),
    scatter("scatter_add", "int", VECTOR, ints(4), np.array([[1], [1]], np.int8), ints(2)),
    scatter("scatter_sub", "rows", ROWS, floats(3, 4), [[2], [0], [2]], floats(3, 4)),
    scatter("scatter_sub", "int", VECTOR, ints(4), [[1], [9]], ints(2)),
    scatter("scatter_mul", "unique", ROWS, floats(3, 4), [[2], [0]], floats(2, 4), unique=True),
    scatter("scatter_mul", "repeated", VECTOR, floats(4), [[2], [0], [2], [2]], floats(4)),
    scatter("scatter_mul", "zeros", VECTOR, floats(4), [[2], [0], [2], [0], [0]],
            np.array([0, 0, 2, 0, 3], np.float32)),
    scatter("scatter_mul", "complex", VECTOR, complexes(4), [[2], [0], [2]], complexes(3)),
    scatter("scatter_min", "rows", ROWS, floats(3, 4), [[2], [0], [2]], floats(3, 4)),
    scatter("scatter_min", "int", VECTOR, ints(4), [[2], [0], [2]], ints(3)),
    scatter("scatter_max", "rows", ROWS, floats(3, 4), [[2], [0], [2]], floats(3, 4)),
    scatter("scatter_max", "batched", BATCHED, floats(2, 3, 4), [[1], [2]], floats(2, 4)),
    Sample("scatter", lambda x, i: lax.scatter_apply(
        x, i, _half, S(*ROWS), update_shape=(2, 4), unique_indices=True),
        (floats(3, 4), np.array([[2], [0]])),
        lambda x, i: np.stack([x[0] * np.sin(x[0]), x[1], x[2] * np.sin(x[2])]),
        id="scatter_apply"),
]
