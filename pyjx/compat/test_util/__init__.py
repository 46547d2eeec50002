"""`jax._src.test_util`: what test suites written for JAX are built on. It needs absl-py.

A test case that compares arrays with their dtypes, parameters drawn from products, random arrays by
dtype and shape, tests that depend on the device, and counters of what is compiled. Not here are
counts of JAX's own caches and of transfers, and references in mpmath.
"""

from __future__ import annotations

from pyjx.compat.test_util import (
    case,
    cases,
    comparison,
    counters,
    loading,
    meshes,
    platforms,
    samples,
    settings,
)
from pyjx.compat.test_util.case import *  # noqa: F403
from pyjx.compat.test_util.cases import *  # noqa: F403
from pyjx.compat.test_util.comparison import *  # noqa: F403
from pyjx.compat.test_util.counters import *  # noqa: F403
from pyjx.compat.test_util.loading import *  # noqa: F403
from pyjx.compat.test_util.meshes import *  # noqa: F403
from pyjx.compat.test_util.platforms import *  # noqa: F403
from pyjx.compat.test_util.samples import *  # noqa: F403
from pyjx.compat.test_util.settings import *  # noqa: F403
from pyjx.compat.test_util.warning_contexts import ignore_warning
from pyjx.test_util import (
    check_close,
    check_grads,
    check_jvp,
    check_vjp,
    default_gradient_tolerance,
    rand_like,
)

__all__ = ["check_close", "check_grads", "check_jvp", "check_vjp", "default_gradient_tolerance",
           "ignore_warning", "rand_like"]
__all__ += case.__all__ + cases.__all__ + comparison.__all__ + counters.__all__ + loading.__all__
__all__ += meshes.__all__ + platforms.__all__ + samples.__all__ + settings.__all__
