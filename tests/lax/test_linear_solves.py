"""custom_linear_solve: a solver that has no derivatives, against elimination, which has them."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.check import check_jaxpr
from pyjx.core.passes.dce import dce

rng = np.random.default_rng(0)
A = (rng.standard_normal((3, 3)) + 3 * np.eye(3)).astype(np.float32)
B = rng.standard_normal(3).astype(np.float32)


def eliminated(a, b):
    """a^-1 b by Gauss-Jordan elimination, unrolled."""
    rows = jnp.concatenate([a, b[:, None]], 1)
    for i in range(3):
        row = rows[i] / rows[i, i]
        others = rows - rows[:, i:i + 1] * row
        rows = jnp.where((jnp.arange(3) == i)[:, None], row, others)
    return rows[:, 3]


def descent(matvec, b):
    """x <- x + (b - A x) / 8 until it stays: reverse mode knows nothing of such a loop."""
    residual = lambda x: b - matvec(x)  # noqa: E731
    return lax.while_loop(lambda c: (c[1] < 400), lambda c: (c[0] + residual(c[0]) / 8, c[1] + 1),
                          (jnp.zeros_like(b), 0))[0]


def solved(a, b):
    return lax.custom_linear_solve(lambda x: a @ x, b, descent, descent)


def solved_symmetric(a, b):
    return lax.custom_linear_solve(lambda x: (a + a.T) @ x, b, descent, symmetric=True)


def check(got, want):
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-4)


def loss(f):
    return lambda *args: sum(jnp.sum(jnp.cos(x)) for x in jax.tree.leaves(f(*args)))


TRANSFORMS = {
    "itself": lambda f: f,
    "jvp": lambda f: lambda a, b: jax.jvp(f, (a, b), (a, b)),
    "jvp in b": lambda f: lambda a, b: jax.jvp(lambda b: f(a, b), (b,), (b,)),
    "grad": lambda f: jax.grad(loss(f), (0, 1)),
    "grad in a": lambda f: jax.grad(loss(f)),
    "linearize": lambda f: lambda a, b: jax.linearize(lambda a: f(a, b), a)[1](a),
    "forward over reverse": lambda f: jax.hessian(loss(f)),
    "reverse over reverse": lambda f: jax.jacrev(jax.grad(loss(f), 1)),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(loss(f))),
    "third": lambda f: jax.grad(lambda a, b: jnp.sum(jax.hessian(loss(f), 1)(a, b))),
}


@pytest.mark.parametrize("how", TRANSFORMS)
def test_derivatives_are_those_of_the_equation(how):
    got = jax.jit(TRANSFORMS[how](solved))
    check(got(A, B), jax.jit(TRANSFORMS[how](eliminated))(A, B))
    check_jaxpr(dce(jax.make_jaxpr(got)(A, B)).jaxpr)


@pytest.mark.parametrize("how", ["itself", "grad", "jvp"])
def test_eagerly_and_symmetric(how):
    check(TRANSFORMS[how](solved)(A, B), TRANSFORMS[how](eliminated)(A, B))
    want = TRANSFORMS[how](lambda a, b: eliminated(a + a.T, b))(A, B)
    check(TRANSFORMS[how](solved_symmetric)(A, B), want)


@pytest.mark.parametrize("how", ["itself", "grad", "jvp", "reverse over reverse"])
@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (2, 1), (0, 0)])
def test_batched(how, in_axes):
    run = TRANSFORMS[how]
    args = [x if axis is None else np.stack([x, x + 0.1, x - 0.2], axis)
            for x, axis in zip((A, B), in_axes, strict=True)]
    check(jax.jit(jax.vmap(run(solved), in_axes))(*args),
          jax.jit(jax.vmap(run(eliminated), in_axes))(*args))


def test_derivatives_of_a_batch():
    batch = lambda f: lambda a, b: jax.vmap(f, (None, 0))(a, b)  # noqa: E731
    bs = np.stack([B, B + 1])
    for how in ("grad", "reverse over reverse", "forward over reverse"):
        check(jax.jit(TRANSFORMS[how](batch(solved)))(A, bs),
              jax.jit(TRANSFORMS[how](batch(eliminated)))(A, bs))


def test_pytrees():
    """Two coupled unknowns: [[2, k], [0, 3]]."""
    def f(k, b):
        def matvec(x):
            return {"u": 2 * x["u"] + k * x["v"], "v": 3 * x["v"]}

        def solve(matvec, b):
            v = b["v"] / 3
            return {"u": (b["u"] - k * v) / 2, "v": v}

        def transpose_solve(vecmat, b):
            u = b["u"] / 2
            return {"u": u, "v": (b["v"] - k * u) / 3}
        return lax.custom_linear_solve(matvec, b, solve, transpose_solve)

    def direct(k, b):
        return {"u": (b["u"] - k * b["v"] / 3) / 2, "v": b["v"] / 3}

    b = {"u": np.float32(1), "v": np.float32(2)}
    for how in TRANSFORMS:
        if how not in ("jvp in b", "linearize", "jvp", "third"):
            check(TRANSFORMS[how](f)(5.0, b), TRANSFORMS[how](direct)(5.0, b))
    of_one = lambda f: jax.grad(lambda u: f(5.0, {"u": u, "v": 2.0})["u"])(1.0)  # noqa: E731
    assert of_one(f) == of_one(direct) == 0.5


def test_auxiliary_results():
    def f(a, b):
        solve = lambda matvec, b: (descent(matvec, b), {"residual": b * 2})  # noqa: E731
        return lax.custom_linear_solve(lambda x: a @ x, b, solve, solve, has_aux=True)

    x, aux = f(A, B)
    check(x, eliminated(A, B))
    np.testing.assert_array_equal(aux["residual"], B * 2)
    tangents = jax.jvp(f, (A, B), (A, B))[1]
    np.testing.assert_array_equal(tangents[1]["residual"], np.zeros(3))
    check(jax.grad(lambda a, b: f(a, b)[0].sum())(A, B),
          jax.grad(lambda a, b: eliminated(a, b).sum())(A, B))
    check(jax.vmap(f, (None, 0))(A, np.stack([B, B]))[1]["residual"], np.stack([B, B]) * 2)


@pytest.mark.parametrize("how", ["itself", "grad", "jvp", "reverse over reverse"])
def test_in_loops_and_branches(how):
    def f(solve):
        def g(a, b):
            step = lambda b, s: (lax.cond(s > 0, lambda: solve(a, b * s), lambda: b), s)  # noqa: E731
            return lax.scan(step, b, np.float32([1, -1, 2]))
        return lambda a, b: g(a, b)[0]

    check(jax.jit(TRANSFORMS[how](f(solved)))(A, B), jax.jit(TRANSFORMS[how](f(eliminated)))(A, B))


def test_complex_and_double():
    with jax.enable_x64():
        a = (A + 1j * rng.standard_normal((3, 3))).astype(np.complex128)
        b = (B + 1j).astype(np.complex128)
        f = lambda a, b: jnp.real(solved(a, b)).sum()  # noqa: E731
        want = np.linalg.solve(a, b)
        np.testing.assert_allclose(solved(a, b), want, rtol=1e-9)
        y = np.linalg.solve(a.T, np.ones(3))  # the gradient of a holomorphic function's real part
        np.testing.assert_allclose(jax.grad(f, 1)(a, b), y, rtol=1e-9)
        np.testing.assert_allclose(jax.grad(f)(a, b), -np.outer(y, want), rtol=1e-9)


def test_reverse_mode_needs_the_transposed_solver():
    f = lambda b: lax.custom_linear_solve(lambda x: A @ x, b, descent).sum()  # noqa: E731
    check(jax.jvp(f, (B,), (B,))[1], eliminated(A, B).sum())
    with pytest.raises(TypeError, match="transpose_solve required for backwards mode automatic diff"
                                        "erentiation of custom_linear_solve"):
        jax.grad(f)(B)
    linear = jax.linear_transpose(
        lambda a: lax.custom_linear_solve(lambda x: a @ x, B, descent, symmetric=True), A)
    with pytest.raises(NotImplementedError, match="as a function of b alone"):
        linear(B)


def test_the_compiled_program_holds_only_the_solver():
    text = jax.jit(solved).lower(A, B).as_text()
    assert text.count("stablehlo.while") == 1
