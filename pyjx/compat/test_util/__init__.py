"""`jax._src.test_util`: what test suites written for JAX are built on. It needs absl-py.

A test case that compares arrays with their dtypes, parameters drawn from products, random arrays by
dtype and shape, tests that depend on the device, and counters of what is compiled. Not here are
counts of JAX's own caches and of transfers, and references in mpmath.
"""

from __future__ import annotations

from pyjx.compat.test_util.cases import *  # noqa: F403
from pyjx.compat.test_util.comparison import *  # noqa: F403
from pyjx.compat.test_util.counters import *  # noqa: F403
from pyjx.compat.test_util.meshes import *  # noqa: F403
from pyjx.compat.test_util.platforms import *  # noqa: F403
from pyjx.compat.test_util.samples import *  # noqa: F403
from pyjx.compat.test_util.test_case import *  # noqa: F403
from pyjx.test_util import (
    check_close,
    check_grads,
    check_jvp,
    check_vjp,
    default_gradient_tolerance,
    rand_like,
)

__all__ = ["check_close", "check_grads", "check_jvp", "check_vjp", "default_gradient_tolerance",
           "rand_like"]
