"""What tests of `jit` share."""

import numpy as np


def scaled(x, n=3):
    """n is used as a Python number: a tracer would not do."""
    return x * int(n)


def equal(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-6)
