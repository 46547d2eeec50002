"""Samples of loops."""

import numpy as np

from pyjx import lax
from tests.op_table import Sample


def _power(x, n):
    return lax.while_loop(lambda s: lax.lt(s[0], n), lambda s: (lax.add(s[0], 1), lax.mul(s[1], x)),
                          (np.int32(0), lax.full_like(x, 1)))[1]


def _halvings(x):
    """Rounds until the largest element is below 1."""
    def small(s):
        return lax.gt(lax.reduce_max(s[0], (0,)), np.float32(1))

    return lax.while_loop(small, lambda s: (lax.mul(s[0], np.float32(0.5)), lax.add(s[1], 1)),
                          (x, np.int32(0)))


SAMPLES = [
    Sample("while", _power, (np.float32(1.5), np.int32(4)), lambda x, n: x**n, diff=False,
           id="power"),
    Sample("while", _power, (np.linspace(0.5, 1.5, 6, dtype=np.float32).reshape(2, 3), np.int32(3)),
           lambda x, n: x**n, diff=False, id="power of an array"),
    Sample("while", _power, (np.zeros((0, 2), np.float32), np.int32(3)), lambda x, n: x**n,
           diff=False, id="empty"),
    Sample("while", _halvings, (np.array([3.0, 0.25], np.float32),),
           lambda x: (x / 4, np.int32(2)), diff=False, id="stops by its data"),
]
