"""Minimization by quasi-Newton methods, BFGS and L-BFGS, with a line search.

They learn the Hessian matrix from changes of the gradient: Nocedal and Wright, Numerical
Optimization, 2nd edition, algorithms 3.5 and 3.6, chapters 6 and 7."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval, is_valid_value
from pyjx.core.value_texts import is_like_array
from pyjx.engine.functions import source_of, tree_text
from pyjx.transforms.arguments import wraps
from pyjx.transforms.grad import value_and_grad
from pyjx.tree_util import tree_structure

# Wolfe's conditions: f(a) <= f(0) + DECREASE a f'(0) and |f'(a)| <= CURVATURE |f'(0)|.
DECREASE, CURVATURE = 1e-4, 0.9
_NO_VECTOR = ("minimize: expected x0 of shape (n,), got {}. Write flat, unravel = jax.flatten_util."
              "ravel_pytree(x0), and minimize lambda v: fun(unravel(v)) from flat.")


class Point(NamedTuple):
    """A step, and the function's value, slope along the direction, and gradient there."""

    step: Any
    value: Any
    slope: Any
    gradient: Any


class Search(NamedTuple):
    """Where a search stands: a bracket is looked for until `zooming`, then it is narrowed.

    `low` is the end of the bracket with the smaller value; before that it is the last point.
    """

    count: Any
    low: Point
    high: Point
    best: Point
    zooming: Any
    done: Any


def _choose(condition: Array, x: Point, y: Point) -> Point:
    return Point(*(jnp.where(condition, a, b) for a, b in zip(x, y, strict=True)))


def _between(low: Point, high: Point) -> Array:
    """The minimum of the cubic through both ends, or the middle if it is too near to one."""
    width = high.step - low.step
    d1 = low.slope + high.slope - 3 * (high.value - low.value) / width
    square = d1 * d1 - low.slope * high.slope
    d2 = jnp.sign(width) * jnp.sqrt(jnp.maximum(square, 0))
    cubic = high.step - width * (high.slope + d2 - d1) / (high.slope - low.slope + 2 * d2)
    share = (cubic - low.step) / width
    return jnp.where((square >= 0) & (share > 0.1) & (share < 0.9), cubic, low.step + width / 2)


def line_search(fun: Callable[[Array], tuple[Array, Array]], x: Array, direction: Array,
                value: Array, gradient: Array, first: Array, maxiter: int
                ) -> tuple[Point, Array, Array]:
    """A step that meets the strong Wolfe conditions.

    Where the value no longer changes but by rounding, the slope decides alone (Hager and Zhang,
    A new conjugate gradient method, SIAM J. Optim. 16 (2005), equation 4.1).

    Args:
      fun: value and gradient at a point.
      x, direction, value, gradient: where to start and along what.
      first: the step to try first.
      maxiter: how often `fun` may be called.

    Returns:
      The point, whether it meets the conditions, and the number of calls.
    """
    slope0 = jnp.vdot(gradient, direction)
    slack = 2 * dtypes.finfo(x.dtype).eps * jnp.abs(value)

    def evaluate(step: Array) -> Point:
        f, g = fun(x + step * direction)
        return Point(step, f, jnp.vdot(g, direction), g)

    def body(s: Search) -> Search:
        step = jnp.where(s.zooming, _between(s.low, s.high),
                         jnp.where(s.count == 0, first, 2 * s.low.step))
        here = evaluate(step.astype(x.dtype))
        flat = jnp.abs(here.slope) <= -CURVATURE * slope0
        decreased = here.value <= value + DECREASE * here.step * slope0
        near = ((here.value <= value + slack) & (here.slope <= (2 * DECREASE - 1) * slope0) & flat)
        above = ~(decreased & ((here.value < s.low.value) | ((s.count == 0) & ~s.zooming)))
        done = (decreased & flat & ~above) | near
        # bracket: [low, here] if the value rose, [here, low] if the slope did; else go on
        enclosed = s.zooming | above | (here.slope >= 0)
        turned = here.slope * jnp.where(s.zooming, s.high.step - s.low.step, 1) >= 0
        high = _choose(above, here, _choose(turned, s.low, s.high))
        low = _choose(above, s.low, here)
        best = _choose(done | (here.value < s.best.value), here, s.best)
        return Search(s.count + 1, low, high, best, enclosed, done)

    start = Point(jnp.zeros((), x.dtype), value, slope0, gradient)
    init = Search(jnp.asarray(0), start, start, start, jnp.asarray(False), jnp.asarray(False))
    end = lax.while_loop(lambda s: ~s.done & (s.count < maxiter), body, init)
    return end.best, end.done, end.count


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


def minimize_bfgs(fun: Callable[[Array], Any], x0: Array, maxiter: int, norm: Any = jnp.inf,
                  gtol: Any = 1e-5, line_search_maxiter: int = 10) -> OptimizeResults:
    """The method of Broyden, Fletcher, Goldfarb and Shanno: Nocedal and Wright, algorithm 6.1."""
    both = value_and_grad(fun)
    identity = jnp.eye(x0.size, dtype=x0.dtype)

    def small(gradient: Array) -> Array:
        return jnp.linalg.norm(gradient, ord=norm) < gtol

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
    end = lax.while_loop(
        lambda s: ~small(s.gradient) & ~s.failed & (s.iterations < maxiter), body, init)
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


def minimize_lbfgs(fun: Callable[[Array], Any], x0: Array, maxiter: int, norm: Any = 2,
                   maxcor: int = 10, ftol: Any = 2.220446049250313e-09, gtol: Any = 1e-5,
                   maxfun: Any = None, maxgrad: Any = None, maxls: int = 20) -> OptimizeResults:
    """The method with limited memory, of `maxcor` steps: algorithm 7.5. It takes memory and time
    in proportion to the number of variables."""
    both = value_and_grad(fun)

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
            (iterations >= maxiter, LBFGSStatus.TOO_MANY_ITERATIONS),
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
    none = _Memory(*[jnp.zeros((maxcor, *shape), x0.dtype) for shape in (x0.shape, x0.shape, ())])
    init = _LimitedState(x0, value, gradient, none, jnp.asarray(1), jnp.asarray(0),
                         jnp.where(small(gradient), LBFGSStatus.CONVERGED, LBFGSStatus.GOING))
    end = lax.while_loop(lambda s: s.status == LBFGSStatus.GOING, body, init)
    return OptimizeResults(end.x, small(end.gradient), end.status, end.value, end.gradient, None,
                           end.calls, end.calls, end.iterations)


# By name, with the options that each has.
_METHODS: dict[str, tuple[Callable[..., OptimizeResults], tuple[str, ...]]] = {
    "bfgs": (minimize_bfgs, ("maxiter", "norm", "gtol", "line_search_maxiter")),
    "l-bfgs-experimental-do-not-rely-on-this": (minimize_lbfgs, (
        "maxiter", "norm", "maxcor", "ftol", "gtol", "maxfun", "maxgrad", "maxls"))}


def minimize(fun: Callable[..., Any], x0: ArrayLike, args: tuple[Any, ...] = (), *, method: str,
             tol: ArrayLike | None = None, options: Mapping[str, Any] | None = None
            ) -> OptimizeResults:
    """A minimum of a function of a vector, near a start. It may be jitted and mapped.

    Args:
      fun: `fun(x, *args)` is a scalar that can be differentiated.
      x0: array of float or complex dtype and shape (n,): where to start. Of complex numbers the
        real parts and then the imaginary ones are the variables, which `hess_inv` is of.
      args: further arguments of `fun`.
      method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this" for L-BFGS, whose memory grows
        with n only.
      tol: what the norm of the gradient is to be below; the option `gtol`.
      options: `maxiter` (200 n by default), `gtol` (1e-5), `norm` (which norm of the gradient; inf,
        of L-BFGS 2); of BFGS `line_search_maxiter` (10); of L-BFGS `maxcor` (how many steps to
        remember; 10), `ftol` (2.2e-9: the least decrease of the value), `maxfun`, `maxgrad` (no
        limits) and `maxls` (20).

    Raises:
      TypeError: `args` is no tuple, the result of `fun` is no scalar, `x0` is a tree, or an option
        is unknown.
      ValueError: the method is unknown, or `x0` is no vector.

    >>> import pyjx as jax
    >>> result = jax.scipy.optimize.minimize(
    ...     lambda x: ((x - 1.0) ** 2).sum(), jax.numpy.zeros(2), method="BFGS")
    >>> bool(result.success), result.x.tolist()
    (True, [1.0, 1.0])
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if method.lower() not in _METHODS:
        raise ValueError(f"Method {method} not recognized; expected one of {', '.join(_METHODS)}")
    if tree_structure(x0).num_nodes > 1 and not is_like_array(x0):
        raise TypeError(_NO_VECTOR.format(tree_text(x0)))
    x0 = jnp.asarray(x0)
    if x0.ndim != 1:
        raise ValueError(_NO_VECTOR.format(x0.shape))
    given = dict(options or {})
    if tol is not None:
        given.setdefault("gtol", tol)
    run, known = _METHODS[method.lower()]
    for option in given:
        if option not in known:
            raise TypeError(f"minimize: got an unexpected keyword argument {option!r} in options; "
                            f"those of {method} are {', '.join(known)}.")
    if given.get("maxiter") is None:
        given["maxiter"] = 200 * x0.size
    given_args = wraps(fun, lambda x: _scalar(fun, fun(x, *args)))
    if not jnp.iscomplexobj(x0):
        return run(given_args, x0, **given)
    return _over_complex(run, given_args, x0, given)


def _scalar(fun: Callable[..., Any], value: Any) -> Any:
    """The value of a function that is minimized, which is a scalar."""
    if not is_valid_value(value) or get_aval(value).shape:
        cure = "return it alone, and compute what else there is of result.x"
        if is_valid_value(value):
            cure = "reduce it, as by jnp.sum"
        raise TypeError(f"minimize: fun must return a scalar, but got {tree_text(value)}; {cure}. "
                        f"The function is {source_of(fun)}.")
    return value


def _over_complex(run: Callable[..., OptimizeResults], fun: Callable[..., Any], x0: Array,
                  options: dict[str, Any]) -> OptimizeResults:
    """The minimum over the real and imaginary parts, of which there are twice as many."""
    n = x0.size

    def whole(parts: Any) -> Any:
        return lax.complex(parts[:n], parts[n:])

    end = run(wraps(fun, lambda parts: fun(whole(parts))),
              jnp.concatenate([x0.real, x0.imag]), **options)
    return end._replace(x=whole(end.x), jac=jnp.conj(whole(end.jac)))
