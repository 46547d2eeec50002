"""Roots, fixed points, minima and least squares of optimistix."""

import json

import jax
import jax.numpy as jnp
import optax
import optimistix as optx


def rosenbrock(x, _):
    return 10 * (x[1] - x[0] ** 2), 1 - x[0]


def scalar(x, args):
    a, b = rosenbrock(x, args)
    return a ** 2 + b ** 2


x0 = jnp.array([-1.0, 1.5])
newton = optx.root_find(lambda y, a: jnp.array([y[0] ** 2 + y[1] - a, y[0] - y[1]]),
                        optx.Newton(1e-6, 1e-6), jnp.ones(2), 3.0)
grad = jax.grad(lambda a: optx.root_find(
    lambda y, a: y ** 3 - a, optx.Newton(1e-6, 1e-6), 1.0, a).value)(2.0)
lm = optx.least_squares(rosenbrock, optx.LevenbergMarquardt(1e-6, 1e-6), x0)
dogleg = optx.least_squares(rosenbrock, optx.Dogleg(1e-6, 1e-6), x0)
bfgs = optx.minimise(scalar, optx.BFGS(1e-5, 1e-5), x0, max_steps=500)
adam = optx.minimise(scalar, optx.OptaxMinimiser(optax.adam(0.05), 1e-4, 1e-4), x0,
                     max_steps=2000, throw=False)
fixed = optx.fixed_point(lambda y, a: jnp.cos(y), optx.FixedPointIteration(1e-5, 1e-5), 0.5)
bisect = optx.root_find(lambda y, a: y ** 2 - 2, optx.Bisection(1e-5, 1e-5), 1.0,
                        options={"lower": 0.0, "upper": 2.0})
batch = jax.jit(jax.vmap(lambda a: optx.root_find(
    lambda y, a: y ** 3 - a, optx.Newton(1e-6, 1e-6), 1.0, a).value))(jnp.array([1.0, 8.0, 27.0]))
print(json.dumps({
    "newton": [float(v) for v in newton.value], "grad": float(grad),
    "lm": [float(v) for v in lm.value], "dogleg": [float(v) for v in dogleg.value],
    "bfgs": [float(v) for v in bfgs.value], "adam": [float(v) for v in adam.value],
    "fixed": float(fixed.value), "bisect": float(bisect.value),
    "batch": [float(v) for v in batch]}))
