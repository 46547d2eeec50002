"""A step along a direction of descent: Nocedal and Wright, Numerical Optimization, 2nd edition,
algorithms 3.5 and 3.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array

# Wolfe's conditions: f(a) <= f(0) + DECREASE a f'(0) and |f'(a)| <= CURVATURE |f'(0)|.
DECREASE, CURVATURE = 1e-4, 0.9


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
    return jnp.where((square >= 0) & (share > 0.1) & (share < 0.9), cubic,
                     low.step + width / 2)


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

    def going(s: Search) -> Array:
        return ~s.done & (s.count < maxiter)

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
    end = lax.while_loop(going, body, init)
    return end.best, end.done, end.count
