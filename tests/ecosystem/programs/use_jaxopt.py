"""Solvers of jaxopt, and derivatives through them."""

import json

import jax
import jax.numpy as jnp
import jaxopt

jax.config.update("jax_enable_x64", True)

key = jax.random.key(0)
x = jax.random.normal(key, (30, 4))
y = x @ jnp.array([1.0, 0.0, -2.0, 0.5])


def ridge(w, l2):
    return jnp.mean((x @ w - y) ** 2) + l2 * jnp.sum(w ** 2)


w0 = jnp.zeros(4)
lbfgs = jaxopt.LBFGS(ridge, maxiter=50).run(w0, l2=0.1)
gd = jaxopt.GradientDescent(ridge, maxiter=200).run(w0, l2=0.1)
lasso = jaxopt.ProximalGradient(lambda w: jnp.mean((x @ w - y) ** 2), jaxopt.prox.prox_lasso,
                                maxiter=200).run(w0, hyperparams_prox=0.1)
projected = jaxopt.ProjectedGradient(
    lambda w: jnp.mean((x @ w - y) ** 2), jaxopt.projection.projection_simplex,
    maxiter=100).run(w0 + 0.25)
hyper = jax.grad(lambda l2: jnp.sum(jaxopt.LBFGS(
    ridge, maxiter=50, implicit_diff=True).run(w0, l2=l2).params ** 2))(0.1)
root = jaxopt.Bisection(lambda v: v ** 3 - 2, 0.0, 2.0).run().params
gn = jaxopt.GaussNewton(lambda w: x @ w - y).run(w0)
qp = jaxopt.OSQP().run(params_obj=(jnp.eye(2), jnp.array([1.0, 1.0])),
                       params_eq=(jnp.ones((1, 2)), jnp.array([1.0]))).params.primal
print(json.dumps({
    "lbfgs": [float(v) for v in lbfgs.params], "gd": [float(v) for v in gd.params],
    "lasso": [float(v) for v in lasso.params], "simplex": [float(v) for v in projected.params],
    "hyper": float(hyper), "root": float(root), "gn": [float(v) for v in gn.params],
    "qp": [float(v) for v in qp],
    "sort": [float(v) for v in jaxopt.isotonic.isotonic_l2_pav(jnp.array([3.0, 1.0, 2.0]))]}))
