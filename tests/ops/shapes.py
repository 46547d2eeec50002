"""Samples of operations that arrange, join and make arrays."""

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


def _plus(x: Any, made: Any) -> Any:
    return lax.add(x, made)


SAMPLES = [
    Sample("reshape", lambda x: lax.reshape(x, (4, 3)), (floats(2, 6),),
           lambda x: x.reshape(4, 3)),
    Sample("reshape", lambda x: lax.reshape(x, (4, 6), (2, 0, 1)), (floats(2, 3, 4),),
           lambda x: x.transpose(2, 0, 1).reshape(4, 6), id="reshape-permuted"),
    Sample("reshape", lambda x: lax.reshape(x, (1, 1)), (np.float32(2),),
           lambda x: x.reshape(1, 1), id="reshape-scalar"),
    Sample("reshape", lambda x: lax.reshape(x, (0, 5)), (ints(2, 0),),
           lambda x: x.reshape(0, 5), id="reshape-empty"),
    Sample("reshape", lambda x: lax.reshape(x, (6,)), (floats(2, 3).astype(ml_dtypes.bfloat16),),
           lambda x: x.reshape(6), id="reshape-bfloat16"),
    Sample("squeeze", lambda x: lax.squeeze(x, (0, -1)), (floats(1, 3, 1),),
           lambda x: x[0, :, 0]),
    Sample("squeeze", lambda x: lax.squeeze(x, (1,)), (floats(3, 1, 2) > 0,),
           lambda x: x[:, 0], id="squeeze-bool"),
    Sample("broadcast_in_dim", lambda x: lax.expand_dims(x, (0, 2)), (complexes(3),),
           lambda x: x[None, :, None], id="expand_dims"),
    Sample("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (0, 2)),
           (floats(2, 1),), lambda x: np.broadcast_to(x[:, None], (2, 3, 4))),
    Sample("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (4, 3, 2), (2, 1)),
           (floats(2, 3),), lambda x: np.broadcast_to(x.T, (4, 3, 2)), id="broadcast-swapped"),
    Sample("broadcast_in_dim", lambda x: lax.broadcast(x, (2, 0)), (ints(3),),
           lambda x: np.broadcast_to(x, (2, 0, 3)), id="broadcast-empty"),
    Sample("transpose", lambda x: lax.transpose(x, (2, 0, 1)), (floats(2, 3, 4),),
           lambda x: x.transpose(2, 0, 1)),
    Sample("transpose", lambda x: lax.transpose(x, (1, 0)), (complexes(2, 3),), np.transpose,
           id="transpose-complex"),
    Sample("rev", lambda x: lax.rev(x, (0, 2)), (floats(2, 3, 4),),
           lambda x: np.flip(x, (0, 2))),
    Sample("rev", lambda x: lax.rev(x, (0,)), (ints(5),), np.flip, id="rev-int"),
    Sample("concatenate", lambda x, y: lax.concatenate([x, y, x], 1), (floats(2, 3), floats(2, 1)),
           lambda x, y: np.concatenate([x, y, x], 1)),
    Sample("concatenate", lambda x, y: lax.concatenate([x, y], 0), (floats(0) > 0, floats(2) > 0),
           lambda x, y: np.concatenate([x, y]), id="concatenate-empty"),
    Sample("concatenate", lambda x, y: lax.concatenate([x, y], 0), (complexes(1), complexes(2)),
           lambda x, y: np.concatenate([x, y]), id="concatenate-complex"),
    Sample("stack", lambda x, y: lax.stack([x, y, x], 1), (floats(2, 3), floats(2, 3)),
           lambda x, y: np.stack([x, y, x], 1)),
    Sample("stack", lambda x: lax.stack([x, x], -1), (ints(3),),
           lambda x: np.stack([x, x], -1), id="stack-last"),
    Sample("unstack", lambda x: lax.unstack(x, 1), (floats(2, 3, 4),),
           lambda x: tuple(np.moveaxis(x, 1, 0))),
    Sample("unstack", lambda x: lax.unstack(x)[1], (floats(2),), lambda x: x[1],
           id="unstack-one-used"),
    Sample("split", lambda x: lax.split(x, (1, 0, 4), 1), (floats(2, 5),),
           lambda x: np.split(x, [1, 1], 1)),
    Sample("split", lambda x: lax.split(x, (2, 1))[0], (ints(3),), lambda x: x[:2],
           id="split-one-used"),
    Sample("tile", lambda x: lax.tile(x, (2, 3)), (floats(2, 3),), lambda x: np.tile(x, (2, 3))),
    Sample("tile", lambda x: lax.tile(x, (0, 1)), (ints(2, 3),), lambda x: np.tile(x, (0, 1)),
           id="tile-empty"),
    Sample("pad", lambda x, v: lax.pad(x, v, [(1, 2, 0), (0, 1, 2)]),
           (floats(2, 3), np.float32(0.5)),
           lambda x, v: _padded(x, v, [(1, 2, 0), (0, 1, 2)])),
    Sample("pad", lambda x, v: lax.pad(x, v, [(-1, 1, 1)]), (floats(4), np.float32(2)),
           lambda x, v: _padded(x, v, [(-1, 1, 1)]), id="pad-negative"),
    Sample("pad", lambda x, v: lax.pad(x, v, [(2, 1, 3)]), (complexes(0), np.complex64(2j)),
           lambda x, v: _padded(x, v, [(2, 1, 3)]), id="pad-empty"),
    Sample("pad", lambda x, v: lax.pad(x, v, [(0, 0, 0), (1, 2, 8)]),
           (floats(2, 3), np.float32(2)),
           lambda x, v: _padded(x, v, [(0, 0, 0), (1, 2, 8)]), id="pad-far-apart"),
    Sample("pad", lambda x: lax.pad(x, np.int32(1), [(-2, -1, 0)]), (ints(5),), lambda x: x[2:4],
           id="pad-cropped"),
    Sample("bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, np.int32), (floats(3),),
           lambda x: x.view(np.int32)),
    Sample("bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, np.uint8), (floats(3),),
           lambda x: x.view(np.uint8).reshape(3, 4), id="bitcast-narrower"),
    Sample("bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, np.float32),
           (floats(3, 2).view(np.int16).reshape(3, 2, 2),),
           lambda x: x.reshape(3, 4).view(np.float32), id="bitcast-wider"),
    Sample("iota", lambda x: _plus(x, lax.iota(np.float32, 3)), (floats(3),),
           lambda x: x + np.arange(3, dtype=np.float32)),
    Sample("iota", lambda x: _plus(x, lax.broadcasted_iota(np.int32, (2, 3), 1)), (ints(2, 3),),
           lambda x: x + np.arange(3, dtype=np.int32), id="iota-broadcasted"),
    Sample("iota", lambda x: _plus(x, lax.iota(np.complex64, 2)), (complexes(2),),
           lambda x: x + np.arange(2), id="iota-complex"),
]


def _padded(x: np.ndarray, value: Any, config: list[tuple[int, int, int]]) -> np.ndarray:
    """`lax.pad` by NumPy: interior padding first, then the edges, each cut or grown."""
    for axis, (low, high, inside) in enumerate(config):
        n = x.shape[axis]
        x = np.moveaxis(x, axis, 0)
        spread = np.full((max(n - 1, 0) * inside + n, *x.shape[1:]), value, x.dtype)
        spread[:: inside + 1] = x
        edges = [np.full((max(k, 0), *x.shape[1:]), value, x.dtype) for k in (low, high)]
        spread = spread[max(-low, 0): len(spread) - max(-high, 0)]
        x = np.moveaxis(np.concatenate([edges[0], spread, edges[1]]), 0, axis)
    return x
