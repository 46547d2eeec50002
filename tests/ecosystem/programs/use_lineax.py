"""Linear solves of lineax, direct and iterative, and their derivatives."""

import json

import jax
import jax.numpy as jnp
import lineax as lx

key = jax.random.key(0)
a = jax.random.normal(key, (5, 5)) + 8 * jnp.eye(5)
b = jnp.arange(5.0)
spd = a @ a.T
figures = {}
for name, operator, solver in (
        ("auto", lx.MatrixLinearOperator(a), lx.AutoLinearSolver(True)),
        ("lu", lx.MatrixLinearOperator(a), lx.LU()), ("qr", lx.MatrixLinearOperator(a), lx.QR()),
        ("svd", lx.MatrixLinearOperator(a), lx.SVD()),
        ("cholesky", lx.MatrixLinearOperator(spd, lx.positive_semidefinite_tag), lx.Cholesky()),
        ("cg", lx.MatrixLinearOperator(spd, lx.positive_semidefinite_tag), lx.CG(1e-4, 1e-4))):
    figures[name] = float(lx.linear_solve(operator, b, solver).value.sum())
jac = lx.JacobianLinearOperator(lambda x, _: jnp.sin(x) + 3 * x, jnp.ones(5))
figures["jacobian"] = float(lx.linear_solve(jac, b).value.sum())
fn = lx.FunctionLinearOperator(lambda x: spd @ x, jax.eval_shape(lambda: b),
                               lx.positive_semidefinite_tag)
figures["function"] = float(lx.linear_solve(fn, b, lx.CG(1e-4, 1e-4)).value.sum())
grad = jax.jit(jax.grad(lambda m: lx.linear_solve(
    lx.MatrixLinearOperator(m), b).value.sum()))(a)
figures["grad"] = float(jnp.abs(grad).sum())
figures["jvp"] = float(jax.jvp(lambda m: lx.linear_solve(lx.MatrixLinearOperator(m), b).value,
                               (a,), (jnp.ones((5, 5)),))[1].sum())
tri = lx.TridiagonalLinearOperator(4 * jnp.ones(5), jnp.ones(4), jnp.ones(4))
figures["tridiagonal"] = float(lx.linear_solve(tri, b).value.sum())
figures["batch"] = float(jax.vmap(lambda v: lx.linear_solve(
    lx.MatrixLinearOperator(a), v).value)(jnp.eye(5)).sum())
wide = lx.MatrixLinearOperator(jax.random.normal(key, (3, 5)))
figures["least"] = float(lx.linear_solve(wide, jnp.ones(3), lx.AutoLinearSolver(False)).value.sum())
print(json.dumps(figures))
