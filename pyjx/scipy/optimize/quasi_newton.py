"""Quasi-Newton methods, which learn the Hessian matrix from changes of the gradient: Nocedal and
Wright, Numerical Optimization, 2nd edition, chapters 6 and 7."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.scipy.optimize.line_search import line_search
from pyjx.transforms.grad import value_and_grad


class BFGSStatus(IntEnum):
    """Why BFGS ended, by JAX's numbers."""

    CONVERGED = 0
    TOO_MANY_ITERATIONS = 1
    NO_STEP = 3


class LBFGSStatus(IntEnum):
    """Why L-BFGS ended, by JAX's numbers."""

    GOING = -1
    CONVERGED = 0
    TOO_MANY_ITERATIONS = 1
    TOO_MANY_VALUES = 2
    TOO_MANY_GRADIENTS = 3
    SMALL_DECREASE = 4
    NO_STEP = 5


class OptimizeResults(NamedTuple):
    """What `minimize` returns.

    Attributes:
      x: where the minimum is.
      success: whether the gradient is small enough there.
      status: 0 if so; 1 if there were too many iterations; of BFGS 3 if no step was found; of
        L-BFGS 2 and 3 if there were too many values and gradients, 4 if the value decreased too
        little, 5 if no step was found.
      fun, jac: value and gradient there.
      hess_inv: the approximation of the inverse of the Hessian matrix, or None of L-BFGS.
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


def _first_try(gradient: Array, begins: Array) -> Array:
    """The length of the step to try first: 1, but at the beginning, where nothing is known of the
    Hessian matrix, not beyond a distance of 1."""
    return jnp.where(begins, jnp.minimum(1, 1 / jnp.linalg.norm(gradient)), 1)


# -- BFGS ------------------------------------------------------------------------------------------


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
        point, found, calls = line_search(both, s.x, direction, s.value, s.gradient,
                                          _first_try(s.gradient, begins), line_search_maxiter)
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
    status = jnp.where(success, BFGSStatus.CONVERGED, jnp.where(
        end.failed, BFGSStatus.NO_STEP, BFGSStatus.TOO_MANY_ITERATIONS))
    return OptimizeResults(end.x, success, status, end.value, end.gradient, end.hess_inv, end.calls,
                           end.calls, end.iterations)


# -- L-BFGS ----------------------------------------------------------------------------------------


class _Memory(NamedTuple):
    """The last steps, the changes of the gradient along them, and 1 / (step . change), the oldest
    first; zero where there was none."""

    steps: Any
    changes: Any
    rho: Any

    def with_newest(self, step: Array, change: Array) -> _Memory:
        """The memory with one more and without the oldest, unless the curvature is not positive."""
        curvature = jnp.vdot(change, step)
        kept = (curvature > 0) & jnp.isfinite(1 / curvature)
        newest = step, change, 1 / jnp.where(kept, curvature, 1)
        return _Memory(*[jnp.where(kept, jnp.roll(x, -1, 0).at[-1].set(y), x)
                         for x, y in zip(self, newest, strict=True)])

    def direction(self, gradient: Array) -> Array:
        """The direction of descent: algorithm 7.4, from the scaled identity of equation 7.20."""

        def back(q: Array, pair: _Memory) -> tuple[Array, Array]:
            share = pair.rho * jnp.vdot(pair.steps, q)
            return q - share * pair.changes, share

        def forth(r: Array, pair: tuple[_Memory, Array]) -> tuple[Array, None]:
            (step, change, rho), share = pair
            return r + step * (share - rho * jnp.vdot(change, r)), None

        q, shares = lax.scan(back, gradient, self, reverse=True)
        known = self.rho[-1] > 0
        square = jnp.where(known, jnp.vdot(self.changes[-1], self.changes[-1]), 1)
        scale = jnp.where(known, 1 / (self.rho[-1] * square), 1)
        return -lax.scan(forth, scale * q, (self, shares))[0]


class _LimitedState(NamedTuple):
    x: Any
    value: Any
    gradient: Any
    memory: _Memory
    calls: Any
    iterations: Any
    status: Any


def minimize_lbfgs(fun: Callable[[Array], Any], x0: Array, maxiter: int | None = None,
                   norm: Any = 2, maxcor: int = 10, ftol: Any = 2.220446049250313e-09,
                   gtol: Any = 1e-5, maxfun: Any = None, maxgrad: Any = None, maxls: int = 20
                   ) -> OptimizeResults:
    """The method with limited memory, of `maxcor` steps: algorithm 7.5. It takes memory and time
    in proportion to the number of variables."""
    both = value_and_grad(fun)
    n = x0.size
    limit = 200 * n if maxiter is None else maxiter

    def small(gradient: Array) -> Array:
        return jnp.linalg.norm(gradient, ord=norm) < gtol

    def body(s: _LimitedState) -> _LimitedState:
        direction = s.memory.direction(s.gradient)
        point, found, calls = line_search(both, s.x, direction, s.value, s.gradient,
                                          _first_try(s.gradient, s.iterations == 0), maxls)
        step = point.step * direction
        calls, iterations = s.calls + calls, s.iterations + 1
        ends = [  # the first that holds is told
            (small(point.gradient), LBFGSStatus.CONVERGED),
            (~found & ~(point.value < s.value), LBFGSStatus.NO_STEP),
            (iterations >= limit, LBFGSStatus.TOO_MANY_ITERATIONS),
            (False if maxfun is None else calls >= maxfun, LBFGSStatus.TOO_MANY_VALUES),
            (False if maxgrad is None else calls >= maxgrad, LBFGSStatus.TOO_MANY_GRADIENTS),
            (s.value - point.value < ftol, LBFGSStatus.SMALL_DECREASE),
        ]
        conditions, codes = zip(*ends, strict=True)
        status = jnp.select(conditions, codes, LBFGSStatus.GOING)
        return _LimitedState(s.x + step, point.value, point.gradient,
                             s.memory.with_newest(step, point.gradient - s.gradient),
                             calls, iterations, status)

    value, gradient = both(x0)
    none = _Memory(*[jnp.zeros((maxcor, *shape), x0.dtype) for shape in ((n,), (n,), ())])
    init = _LimitedState(x0, value, gradient, none, jnp.asarray(1), jnp.asarray(0),
                         jnp.where(small(gradient), LBFGSStatus.CONVERGED, LBFGSStatus.GOING))
    end = lax.while_loop(lambda s: s.status == LBFGSStatus.GOING, body, init)
    return OptimizeResults(end.x, small(end.gradient), end.status, end.value, end.gradient, None,
                           end.calls, end.calls, end.iterations)
