"""Samples of reductions over positions, which are operations of arrays.

What reads named axes is tested in tests/lax/test_collectives.py.
"""

import numpy as np

from pyjx import lax
from tests.op_table import Sample

_X = np.array([[3, -1, 2], [0.5, 4, -2]], np.float32)

SAMPLES = [
    Sample("psum", lambda x: lax.psum(x, 0), (_X,), lambda x: x.sum(0)),
    Sample("psum", lambda x: lax.psum(x, (0, 1)), (_X.astype(np.int32),), lambda x: x.sum(),
           id="psum-int"),
    Sample("pmax", lambda x: lax.pmax(x, 1), (_X,), lambda x: x.max(1)),
    Sample("pmin", lambda x: lax.pmin(x, (0,)), (_X,), lambda x: x.min(0)),
]
