"""Ordinary differential equations, solved by the method of Dormand and Prince with steps of
adaptive size, and differentiated by the adjoint equation.

J. R. Dormand and P. J. Prince, A family of embedded Runge-Kutta formulae, J. Comput. Appl. Math. 6
(1980), 19-26; L. F. Shampine, Some practical Runge-Kutta formulas, Math. Comp. 46 (1986), 135-150.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.engine.functions import with_at
from pyjx.flatten_util import ravel_pytree
from pyjx.lazy import directory
from pyjx.transforms.custom_gradient import closure_convert
from pyjx.transforms.custom_vjp import custom_vjp
from pyjx.transforms.vjp import vjp
from pyjx.transforms.vmap import vmap
from pyjx.tree_util import PyTree, tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = [
    "abs2", "fit_4th_order_polynomial", "initial_step_size", "interp_fit_dopri",
    "mean_error_ratio", "odeint", "optimal_step_size", "ravel_first_arg", "ravel_first_arg_",
    "runge_kutta_step",
]

# The Butcher tableau, the difference of the two orders, and Shampine's weights at the middle.
_TIMES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_STAGES = np.array([
    [1 / 5, 0, 0, 0, 0, 0, 0],
    [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
    [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
])
_RESULT = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
_ERROR = np.array([
    35 / 384 - 1951 / 21600, 0, 500 / 1113 - 22642 / 50085, 125 / 192 - 451 / 720,
    -2187 / 6784 + 12231 / 42400, 11 / 84 - 649 / 6300, -1 / 60])
_MIDDLE = np.array([
    6025192743 / 30085553152 / 2, 0, 51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2, 187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2])

Derivative = Callable[[Array, Any], Array]


def abs2(x: Array) -> Array:
    """The square of the absolute value."""
    if jnp.iscomplexobj(x):
        return x.real ** 2 + x.imag ** 2
    return jnp.square(x)


def ravel_first_arg(f: Callable[..., Any], unravel: Callable[[Array], Any]) -> Callable[..., Array]:
    """A function of a pytree, and further arguments, as one from vectors to vectors."""
    return lambda y, *args: ravel_pytree(f(unravel(y), *args))[0]


def ravel_first_arg_(fun: Any, *gen_static_args: Any) -> Any:
    """`ravel_first_arg` of a function that is wrapped by linear_util."""
    return fun.wrap(lambda call, unravel, y, *args: ravel_pytree(call(unravel(y), *args))[0],
                    gen_static_args, None)


# -- one step --------------------------------------------------------------------------------------


def _combined(weights: Any, k: Array) -> Array:
    return jnp.sum(jnp.asarray(weights, k.dtype)[:, None] * k, 0)


def runge_kutta_step(func: Derivative, y0: Array, f0: Array, t0: Any, dt: Any
                     ) -> tuple[Array, Array, Array, Array]:
    """One step of size dt from y0, where the derivative is f0.

    Returns:
      `(y1, f1, error, k)`: the end, the derivative and an estimate of the error there, and the
      derivatives at all seven stages.
    """

    def stage(i: Any, k: Array) -> Array:
        t = t0 + dt * jnp.asarray(_TIMES, jnp.result_type(dt))[i - 1]
        weights = jnp.asarray(_STAGES, f0.dtype)[i - 1]
        return k.at[i].set(func(y0 + dt.astype(f0.dtype) * _combined(weights, k), t))

    dt = jnp.asarray(dt)
    k = jnp.zeros((7, f0.shape[0]), f0.dtype).at[0].set(f0)
    k = lax.fori_loop(1, 7, stage, k)
    h = dt.astype(f0.dtype)
    return h * _combined(_RESULT, k) + y0, k[-1], h * _combined(_ERROR, k), k


def fit_4th_order_polynomial(y0: Array, y1: Array, y_mid: Array, dy0: Array, dy1: Array, dt: Any
                             ) -> tuple[Array, ...]:
    """The polynomial over [0, 1] with these values at 0, 1 and 1/2, and slopes times dt at 0, 1.

    The coefficients come from that of the fourth power to the constant.
    """
    a = -2 * dt * dy0 + 2 * dt * dy1 - 8 * y0 - 8 * y1 + 16 * y_mid
    b = 5 * dt * dy0 - 3 * dt * dy1 + 18 * y0 + 14 * y1 - 32 * y_mid
    c = -4 * dt * dy0 + dt * dy1 - 11 * y0 - 5 * y1 + 16 * y_mid
    return a, b, c, dt * dy0, y0


def interp_fit_dopri(y0: Array, y1: Array, k: Array, dt: Any) -> Array:
    """The polynomial between the ends of a step, from the derivatives at its stages."""
    h = jnp.asarray(dt).astype(y0.dtype)
    middle = y0 + h * _combined(_MIDDLE, k)
    return jnp.stack(fit_4th_order_polynomial(y0, y1, middle, k[0], k[-1], h))


def initial_step_size(fun: Derivative, t0: Any, y0: Array, order: int, rtol: float | Array,
                      atol: float | Array, f0: Array) -> Array:
    """A first step: E. Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential Equations
    I, 2nd edition, section II.4."""
    dtype = y0.dtype
    scale = atol + jnp.abs(y0) * rtol
    d0 = jnp.linalg.norm(y0 / scale.astype(dtype))
    d1 = jnp.linalg.norm(f0 / scale.astype(dtype))
    h0 = jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / jnp.where(d1 == 0, 1, d1))
    f1 = fun(y0 + h0.astype(dtype) * f0, t0 + h0)
    d2 = jnp.linalg.norm((f1 - f0) / scale.astype(dtype)) / h0
    top = jnp.maximum(d1, d2)
    h1 = jnp.where((d1 <= 1e-15) & (d2 <= 1e-15), jnp.maximum(1e-6, h0 * 1e-3),
                   (0.01 / jnp.where(top == 0, 1, top)) ** (1 / (order + 1)))
    return jnp.minimum(100 * h0, h1)


def mean_error_ratio(error_estimate: Array, rtol: float | Array, atol: float | Array, y0: Array,
                     y1: Array) -> Array:
    """The root of the mean square of errors over what is tolerated: a step is good below 1."""
    tolerance = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(abs2(error_estimate / tolerance.astype(error_estimate.dtype))))


def optimal_step_size(last_step: Any, mean_error_ratio: Any, safety: float = 0.9,
                      ifactor: float = 10.0, dfactor: float = 0.2, order: float = 5.0) -> Array:
    """The next step, from the error of the last one."""
    shrink = jnp.where(mean_error_ratio < 1, 1, dfactor)
    factor = jnp.minimum(ifactor, jnp.maximum(mean_error_ratio ** (-1 / order) * safety, shrink))
    return jnp.where(mean_error_ratio == 0, last_step * ifactor, last_step * factor)


# -- the solver ------------------------------------------------------------------------------------


def odeint(func: Callable[..., Any], y0: PyTree, t: ArrayLike, *args: Any,
           rtol: float | Array = 1.4e-8, atol: float | Array = 1.4e-8,
           mxstep: float | Array = math.inf, hmax: float | Array = math.inf) -> Any:
    """The solution of dy/dt = func(y, t, *args) with y(t[0]) = y0, at the times t.

    Reverse mode solves the adjoint equation backwards, in memory that does not grow with the steps.

    Args:
      func: gives the derivative, like `y0`.
      y0: pytree of arrays of float or complex dtype.
      t: array of increasing times.
      args: pytrees of arrays, in which the solution can be differentiated.
      rtol, atol: what error is tolerated in a step: atol + rtol * abs(y).
      mxstep: the most steps between two times.
      hmax: the largest step.

    Returns:
      A pytree like `y0` whose arrays have a new leading axis, of length len(t); nan where no step
      was taken yet, as by `mxstep=0`, a derivative that is nan, or a second time before the first.

    Raises:
      TypeError: an argument is no array or scalar, `y0` or `t` are of integer dtype, `t` is no
        vector, or `func` returns not as many numbers as `y0` has.

    >>> import pyjx as jax
    >>> from pyjx.experimental.ode import odeint
    >>> y = odeint(lambda y, t: -y, jax.numpy.array(1.0), jax.numpy.array([0.0, 1.0]))
    >>> [round(float(x), 4) for x in y]
    [1.0, 0.3679]
    """
    for x in tree_leaves(args):
        if not isinstance(x, (Array, np.ndarray, np.generic, int, float, complex)):
            raise TypeError("The contents of odeint *args must be arrays or scalars, but got\n"
                            f"{x}.")
    t = jnp.asarray(t)
    if not jnp.issubdtype(t.dtype, jnp.floating):
        raise TypeError(f"t must be an array of floats, but got {t.dtype}.")
    if t.ndim != 1:
        raise TypeError(f"odeint: t must be a vector of times, from that of y0 on, such as "
                        f"[0.0, 1.0]; got shape {t.shape}.")
    y0 = tree_map(jnp.asarray, y0)
    for x in tree_leaves(y0):
        if not dtypes.issubdtype(x.dtype, np.inexact):
            raise TypeError(f"y0 must hold arrays of float or complex dtype, got {x.dtype}.")
    converted, consts = closure_convert(func, y0, t[0], *args)
    vector, unravel = ravel_pytree(y0)
    flat = ravel_first_arg(_checked(converted, y0), unravel)
    out = _odeint(flat, rtol, atol, mxstep, hmax, vector, t, *args, *consts)
    return vmap(unravel)(out)


def _checked(func: Callable[..., Any], y0: PyTree) -> Callable[..., Any]:
    """The function of the derivative, which has as many numbers as `y0`."""
    wanted = [x.shape for x in tree_leaves(y0)]

    def checked(*args: Any) -> Any:
        out = func(*args)
        given = [jnp.shape(x) for x in tree_leaves(out)]
        if given != wanted and sum(map(math.prod, given)) != sum(map(math.prod, wanted)):
            raise TypeError("odeint: func must return arrays like those of y0, of the shapes "
                            f"{wanted}; got {given}. It is called as func(y, t, *args).")
        return out

    return checked


@functools.partial(custom_vjp, nondiff_argnums=(0, 1, 2, 3, 4))
def _odeint(func: Callable[..., Array], rtol: float | Array, atol: float | Array,
            mxstep: float | Array, hmax: float | Array, y0: Array, ts: Array, *args: Any) -> Array:
    def derivative(y: Array, t: ArrayLike) -> Array:
        return func(y, t, *args)

    def scan_step(carry: PyTree, target: Array) -> Any:
        def going(state: PyTree) -> Array:
            i, _, _, t, dt, _, _ = state
            return (t < target) & (i < mxstep) & (dt > 0)

        def body(state: PyTree) -> Any:
            i, y, f, t, dt, last_t, interpolation = state
            end_y, end_f, error, k = runge_kutta_step(derivative, y, f, t, dt)
            ratio = mean_error_ratio(error, rtol, atol, y, end_y)
            accepted = ratio <= 1
            fitted = interp_fit_dopri(y, end_y, k, dt)
            following = jnp.clip(optimal_step_size(dt, ratio), 0, hmax).astype(dt.dtype)
            return (i + 1, jnp.where(accepted, end_y, y), jnp.where(accepted, end_f, f),
                    jnp.where(accepted, t + dt, t), following, jnp.where(accepted, t, last_t),
                    jnp.where(accepted, fitted, interpolation))

        _, *carry = lax.while_loop(going, body, (0, *carry))
        _, _, t, _, last_t, interpolation = carry
        span = t - last_t
        # without a step there is the start alone, which says nothing of other times
        share = jnp.where(span == 0, jnp.where(target == last_t, 0, jnp.nan),
                          (target - last_t) / jnp.where(span == 0, 1, span))
        value = functools.reduce(lambda total, c: total * share.astype(c.dtype) + c, interpolation)
        return carry, value

    f0 = derivative(y0, ts[0])
    dt = jnp.clip(initial_step_size(derivative, ts[0], y0, 4, rtol, atol, f0), 0, hmax).astype(
        ts.dtype)
    start = [y0, f0, ts[0], dt, ts[0], jnp.stack([jnp.zeros_like(y0)] * 4 + [y0])]
    _, ys = lax.scan(scan_step, start, ts[1:])
    return jnp.concatenate([y0[None], ys])


def _forward(func: Callable[..., Any], rtol: float | Array, atol: float | Array,
             mxstep: float | Array, hmax: float | Array, y0: Array, ts: Array, *args: Any) -> Any:
    ys = _odeint(func, rtol, atol, mxstep, hmax, y0, ts, *args)
    return ys, (ys, ts, args)


def _backward(func: Callable[..., Any], rtol: float | Array, atol: float | Array,
              mxstep: float | Array, hmax: float | Array, residuals: PyTree, g: Array) -> Any:
    """The adjoint a = dL/dy follows da/dt = -a df/dy, and dL/dargs = integral of a df/dargs.

    L. S. Pontryagin et al., The Mathematical Theory of Optimal Processes (1962).
    """
    ys, ts, args = residuals
    ts, g = jnp.asarray(ts), jnp.asarray(g)  # they are indexed by what is traced
    leaves, tree = tree_flatten(args)
    moving = [i for i, x in enumerate(leaves) if jnp.issubdtype(jnp.asarray(x).dtype, jnp.inexact)]

    def derivative(y: Array, t: ArrayLike, *values: Any) -> Array:
        return func(y, t, *tree_unflatten(tree, with_at(leaves, moving, values)))

    def adjoint(state: PyTree, t: Array, *values: Any) -> Any:
        # time runs backwards, as -t
        y, y_bar, _, _ = state
        dy, pull = vjp(derivative, y, -t, *values)
        slope, t_slope, *rest = pull(y_bar)
        return -dy, slope, t_slope, rest

    values = [leaves[i] for i in moving]

    def scan_step(carry: PyTree, i: Any) -> Any:
        y_bar, t0_bar, bars = carry
        # moving the time of an observation changes it by the derivative there
        t_bar = jnp.real(jnp.sum(derivative(ys[i], ts[i], *values) * g[i])).astype(ts.dtype)
        state = odeint(adjoint, (ys[i], y_bar, t0_bar - t_bar, bars),
                       jnp.stack([-ts[i], -ts[i - 1]]), *values, rtol=rtol, atol=atol,
                       mxstep=mxstep, hmax=hmax)
        _, y_bar, t0_bar, bars = tree_map(operator.itemgetter(1), state)
        return (y_bar + g[i - 1], t0_bar, bars), t_bar

    start = g[-1], jnp.zeros((), ts.dtype), [jnp.zeros_like(x) for x in values]
    (y_bar, t0_bar, bars), rest = lax.scan(scan_step, start, jnp.arange(len(ts) - 1, 0, -1))
    out = with_at([np.zeros(jnp.shape(x), dtypes.float0) for x in leaves], moving, bars)
    return y_bar, jnp.concatenate([t0_bar[None], rest[::-1]]), *tree_unflatten(tree, out)


_odeint.defvjp(_forward, _backward)


__dir__ = directory(__name__, __all__)
