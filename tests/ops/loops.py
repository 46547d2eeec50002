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


def _scan(x, **options):
    def step(carry, row):
        return lax.add(carry, row), lax.mul(carry, row)

    return lax.scan(step, lax.full_like(x[0], 1), x, **options)


def _scanned(x):
    before = 1 + np.cumsum(x, 0, dtype=x.dtype) - x
    return before[-1] + x[-1], before * x


def _scanned_backwards(x):
    carry, ys = _scanned(x[::-1])
    return carry, ys[::-1]


def _of_this_platform(x):
    return lax.platform_dependent(x, cpu=lambda x: x * x, default=lambda x: x * x)


def _choice(i, x):
    return lax.switch(i, [lambda x: (x, x), lambda x: (lax.mul(x, x), lax.neg(x))], x)


ROWS = np.linspace(-1, 2, 15, dtype=np.float32).reshape(5, 3)

SAMPLES = [
    Sample("scan", _scan, (ROWS,), _scanned, id="rows"),
    Sample("scan", lambda x: _scan(x, reverse=True, unroll=2), (ROWS,), _scanned_backwards,
           id="backwards, two at a time"),
    Sample("scan", _scan, (ROWS[:1],), _scanned, id="one row"),
    Sample("scan", _scan, (ROWS + 1j * ROWS[::-1],), _scanned, id="complex"),
    Sample("scan", _scan, (np.arange(6, dtype=np.int8).reshape(3, 2),), _scanned, id="integers"),
    Sample("cond", _choice, (np.int32(1), ROWS), lambda i, x: (x * x, -x), id="second branch"),
    Sample("platform_index", _of_this_platform, (ROWS,), lambda x: x * x),
    Sample("cond", _choice, (np.int32(0), ROWS[:0]), lambda i, x: (x, x), id="first branch, empty"),
    Sample("while", _power, (np.float32(1.5), np.int32(4)), lambda x, n: x**n, diff=False,
           id="power"),
    Sample("while", _power, (np.linspace(0.5, 1.5, 6, dtype=np.float32).reshape(2, 3), np.int32(3)),
           lambda x, n: x**n, diff=False, id="power of an array"),
    Sample("while", _power, (np.zeros((0, 2), np.float32), np.int32(3)), lambda x, n: x**n,
           diff=False, id="empty"),
    Sample("while", _halvings, (np.array([3.0, 0.25], np.float32),),
           lambda x: (x / 4, np.int32(2)), diff=False, id="stops by its data"),
]
