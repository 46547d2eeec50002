"""`jax._src.scipy.optimize.bfgs` and `line_search`: minima, and steps towards them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyjx.numpy as jnp
from pyjx.core.array_type import Array
from pyjx.scipy.optimize import quasi_newton
from pyjx.scipy.optimize.quasi_newton import CURVATURE, DECREASE
from pyjx.scipy.optimize.quasi_newton import line_search as search
from pyjx.transforms.grad import value_and_grad

__all__ = ["BFGSResults", "LineSearchResults", "line_search", "minimize_bfgs"]


class BFGSResults(NamedTuple):
    """Where BFGS ended.

    Attributes:
      converged, failed: whether the gradient is small, and whether no step was found.
      k: the number of iterations.
      nfev, ngev, nhev: how often value, gradient and Hessian matrix were computed.
      x_k, f_k, g_k, H_k: the point, value and gradient there, and the estimate of the inverse of
        the Hessian matrix.
      status: as `OptimizeResults` says it.
    """

    converged: Any
    failed: Any
    k: Any
    nfev: Any
    ngev: Any
    nhev: int
    x_k: Any
    f_k: Any
    g_k: Any
    H_k: Any
    status: Any


def minimize_bfgs(fun: Callable[[Array], Any], x0: Array, maxiter: int | None = None,
                  norm: Any = jnp.inf, gtol: float = 1e-5, line_search_maxiter: int = 10
                  ) -> BFGSResults:
    """The minimum of a function by BFGS.

    >>> minimize_bfgs(lambda x: jnp.sum((x - 1) ** 2), jnp.zeros(2)).x_k.tolist()
    [1.0, 1.0]
    """
    end = quasi_newton.minimize_bfgs(fun, x0, maxiter, norm, gtol, line_search_maxiter)
    failed = end.status == quasi_newton.BFGSStatus.NO_STEP
    return BFGSResults(end.success, failed, end.nit, end.nfev, end.njev, 0, end.x, end.fun,
                       end.jac, end.hess_inv, end.status)


class LineSearchResults(NamedTuple):
    """Where a search along a line ended.

    Attributes:
      failed: whether no step was found.
      nit, k: how many steps were tried.
      nfev, ngev: how often value and gradient were computed.
      a_k: the step, in units of the direction.
      f_k, g_k: value and gradient there.
      status: 0 if a step was found, else 1.
    """

    failed: Any
    nit: Any
    nfev: Any
    ngev: Any
    k: Any
    a_k: Any
    f_k: Any
    g_k: Any
    status: Any


def line_search(f: Callable[[Array], Any], xk: Array, pk: Array, old_fval: Any = None,
                old_old_fval: Any = None, gfk: Any = None, c1: float = DECREASE,
                c2: float = CURVATURE, maxiter: int = 20) -> LineSearchResults:
    """A step from `xk` along `pk` that meets the strong Wolfe conditions.

    Args:
      f: the function.
      xk, pk: where to start, and along what.
      old_fval, gfk: value and gradient there, if they are known.
      old_old_fval: the value one step before, by which the first step is chosen.
      c1, c2: by how much the value and the slope are to become smaller: 1e-4 and 0.9.
      maxiter: how many steps may be tried.

    Raises:
      NotImplementedError: other constants.

    >>> found = line_search(lambda x: jnp.sum(x * x), jnp.ones(2), -jnp.ones(2))
    >>> float(found.a_k), bool(found.failed)
    (1.0, False)
    """
    if (c1, c2) != (DECREASE, CURVATURE):
        raise NotImplementedError(f"line_search has the constants c1={DECREASE} and c2={CURVATURE} "
                                  f"of the Wolfe conditions, got c1={c1} and c2={c2}.")
    both = value_and_grad(f)
    known = old_fval is not None and gfk is not None
    value, gradient = (old_fval, gfk) if known else both(xk)
    first = jnp.ones((), xk.dtype)
    if old_old_fval is not None:  # as far as the value would fall as in the step before
        guess = 2.02 * (value - old_old_fval) / jnp.vdot(gradient, pk)
        first = jnp.where((guess > 0) & (guess < 1), guess, first)
    point, done, calls = search(both, xk, pk, value, gradient, first, maxiter)
    evaluated = calls + (not known)
    return LineSearchResults(~done, calls, evaluated, evaluated, calls, point.step, point.value,
                             point.gradient, jnp.where(done, 0, 1))
