"""Minimization of scalar functions: `minimize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.scipy.optimize.line_search import line_search
from pyjx.transforms.grad import value_and_grad


class OptimizeResults(NamedTuple):
    """What `minimize` returns.

    Attributes:
      x: where the minimum is.
      success: whether the gradient is small enough there.
      status: 0 if so, 1 if there were too many iterations, 3 if no step was found.
      fun, jac: value and gradient there.
      hess_inv: the approximation of the inverse of the Hessian matrix, or None.
      nfev, njev: how often the value and the gradient were computed.
      nit: the number of iterations.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


class _State(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    hess_inv: Any
    calls: Any
    iterations: Any
    failed: Any


def minimize_bfgs(fun: Callable[[Array], Any], x0: Array, maxiter: int | None = None,
                  norm: Any = jnp.inf, gtol: Any = 1e-5, line_search_maxiter: int = 10
                  ) -> OptimizeResults:
    """The method of Broyden, Fletcher, Goldfarb and Shanno: Nocedal and Wright, algorithm 6.1."""
    both = value_and_grad(fun)
    n = x0.size
    limit = 200 * n if maxiter is None else maxiter
    identity = jnp.eye(n, dtype=x0.dtype)

    def small(gradient: Array) -> Array:
        return jnp.linalg.norm(gradient, ord=norm) < gtol

    def going(s: _State) -> Array:
        return ~small(s.gradient) & ~s.failed & (s.iterations < limit)

    def body(s: _State) -> _State:
        direction = -(s.hess_inv @ s.gradient)
        begins = s.iterations == 0
        first = jnp.where(begins, jnp.minimum(1, 1 / jnp.linalg.norm(s.gradient)), 1)
        point, found, calls = line_search(both, s.x, direction, s.value, s.gradient, first,
                                          line_search_maxiter)
        step = point.step * direction
        change = point.gradient - s.gradient
        curvature = jnp.vdot(change, step)
        positive = curvature > 0
        rho = jnp.where(positive, 1 / jnp.where(positive, curvature, 1), 0)
        # the first estimate gets its scale from the first step (equation 6.20)
        scale = jnp.where(begins & positive, curvature / jnp.vdot(change, change), 1)
        side = identity - rho * jnp.outer(step, change)
        updated = side @ (scale * s.hess_inv) @ side.T + rho * jnp.outer(step, step)
        hess_inv = jnp.where(positive & jnp.isfinite(rho), updated, s.hess_inv)
        return _State(s.x + step, point.value, point.gradient, hess_inv, s.calls + calls,
                      s.iterations + 1, ~found & ~(point.value < s.value))

    value, gradient = both(x0)
    init = _State(x0, value, gradient, identity, jnp.asarray(1), jnp.asarray(0), jnp.asarray(False))
    end = lax.while_loop(going, body, init)
    success = small(end.gradient)
    status = jnp.where(success, 0, jnp.where(end.failed, 3, 1))
    return OptimizeResults(end.x, success, status, end.value, end.gradient, end.hess_inv, end.calls,
                           end.calls, end.iterations)


def minimize(fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), *, method: str,
             tol: Any = None, options: Mapping[str, Any] | None = None) -> OptimizeResults:
    """A minimum of a function of a vector, near a start. It may be jitted and mapped.

    Args:
      fun: `fun(x, *args)` is a scalar that can be differentiated.
      x0: array of float dtype and shape (n,): where to start.
      args: further arguments of `fun`.
      method: "BFGS".
      tol: the largest element of the gradient at the end.
      options: `maxiter` (200 n by default), `gtol` (1e-5), `norm` (which norm of the gradient is
        below `gtol`; inf) and `line_search_maxiter` (10).

    Raises:
      TypeError: `args` is no tuple, the result of `fun` is no scalar, or an option is unknown.
      ValueError: the method is unknown, or `x0` is no vector.

    >>> import pyjx as jax
    >>> result = jax.scipy.optimize.minimize(
    ...     lambda x: ((x - 1.0) ** 2).sum(), jax.numpy.zeros(2), method="BFGS")
    >>> bool(result.success), result.x.tolist()
    (True, [1.0, 1.0])
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if method.lower() != "bfgs":
        raise ValueError(f"Method {method} not recognized")
    x0 = jnp.asarray(x0)
    if x0.ndim != 1:
        raise ValueError(f"minimize: expected x0 of shape (n,), got {x0.shape}")
    given = dict(options or {})
    if tol is not None:
        given.setdefault("gtol", tol)
    return minimize_bfgs(lambda x: fun(x, *args), x0, **given)
