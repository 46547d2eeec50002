"""custom_root: a solver that has no derivatives, against roots in closed form."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.check import check_jaxpr
from pyjx.core.passes.dce import dce


def bisected(f, guess):
    """The sign change of `f`, which rises, between guess and guess + 8."""
    def halve(c):
        low, high, n = c
        middle = (low + high) / 2
        below = f(middle) < 0
        return jnp.where(below, middle, low), jnp.where(below, high, middle), n + 1

    return lax.while_loop(lambda c: c[2] < 40, halve, (guess, guess + 8, 0))[0]


def scalar_tangent(g, y):
    return y / g(jnp.ones_like(y))


def root(a, b):
    """x > 0 with x^3 + b x = a + b."""
    return lax.custom_root(lambda x: x ** 3 + b * x - a - b, jnp.zeros_like(a), bisected,
                           scalar_tangent)


def newton(a, b):
    """The same, by steps that are differentiated."""
    x = jnp.ones_like(a)
    for _ in range(12):
        x = x - (x ** 3 + b * x - a - b) / (3 * x * x + b)
    return x


TRANSFORMS = {
    "itself": lambda f: f,
    "jvp": lambda f: lambda a, b: jax.jvp(f, (a, b), (b, a)),
    "grad": lambda f: jax.grad(f, (0, 1)),
    "linearize": lambda f: lambda a, b: jax.linearize(f, a, b)[1](b, a),
    "forward over reverse": lambda f: jax.hessian(f, (0, 1)),
    "reverse over reverse": lambda f: jax.jacrev(jax.grad(f, 1), (0, 1)),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f), (0, 1)),
    "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f, 1), (0, 1)),
    "third": lambda f: jax.grad(jax.grad(jax.grad(f), 1)),
}
X, Y = np.float32(3), np.float32(1.5)


def check(got, want):
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("how", TRANSFORMS)
def test_derivatives_are_those_of_the_equation(how):
    got = jax.jit(TRANSFORMS[how](root))
    check(got(X, Y), TRANSFORMS[how](newton)(X, Y))
    check_jaxpr(dce(jax.make_jaxpr(got)(X, Y)).jaxpr)


@pytest.mark.parametrize("how", ["itself", "grad", "jvp", "reverse over reverse"])
@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0)])
def test_batched(how, in_axes):
    args = [x if axis is None else np.stack([x, x + 1, x + 2])
            for x, axis in zip((X, Y), in_axes, strict=True)]
    check(jax.jit(jax.vmap(TRANSFORMS[how](root), in_axes))(*args),
          jax.vmap(TRANSFORMS[how](newton), in_axes)(*args))


@pytest.mark.parametrize("how", ["grad", "reverse over reverse", "forward over reverse"])
def test_derivatives_of_a_batch(how):
    batch = lambda f: lambda a, b: jnp.sum(jnp.sin(jax.vmap(f, (0, None))(a, b)))  # noqa: E731
    xs = np.float32([1, 2, 3])
    check(jax.jit(TRANSFORMS[how](batch(root)))(xs, Y), TRANSFORMS[how](batch(newton))(xs, Y))


def test_vectors_by_a_jacobian_and_pytrees():
    """x = cos(m x) as a pair of trees; the tangent equation by the Jacobian of g."""
    m = np.float32([[0.2, 0.3], [-0.1, 0.4]])

    def f(m):
        def equation(x):
            v = jnp.stack([x["u"], x["v"]])
            out = v - jnp.cos(m @ v)
            return {"u": out[0], "v": out[1]}

        def solve(f, x):
            step = lambda x, _: (jax.tree.map(jnp.subtract, x, f(x)), None)  # noqa: E731
            return lax.scan(step, x, None, length=60)[0]

        def tangent(g, y):
            (a, b), (c, d) = [[column[k] for column in (g({"u": 1.0, "v": 0.0}),
                                                        g({"u": 0.0, "v": 1.0}))] for k in "uv"]
            det = a * d - b * c
            return {"u": (d * y["u"] - b * y["v"]) / det, "v": (a * y["v"] - c * y["u"]) / det}

        return lax.custom_root(equation, {"u": 0.5, "v": 0.5}, solve, tangent)

    def unrolled(m):
        v = jnp.full(2, 0.5)
        for _ in range(60):
            v = jnp.cos(m @ v)
        return {"u": v[0], "v": v[1]}

    for how in (lambda f: f, jax.jacrev, jax.jacfwd, lambda f: jax.jacfwd(jax.jacrev(f))):
        check(jax.jit(how(f))(m), jax.jit(how(unrolled))(m))


@pytest.mark.parametrize("jacobian", [jax.jacfwd, jax.jacrev])
def test_the_tangent_solver_may_take_derivatives(jacobian):
    def f(a):
        solve = lambda f, x: jnp.sqrt(a)  # noqa: E731
        tangent = lambda g, y: y / jnp.diagonal(jacobian(g)(y))  # noqa: E731
        return lax.custom_root(lambda x: x * x - a, jnp.ones(2), solve, tangent)

    a = np.float32([4, 9])
    check(jax.jacrev(f)(a), np.diag([0.25, 1 / 6]))
    check(jax.hessian(lambda a: f(a).sum())(a), np.diag(-0.25 * a ** -1.5))


def test_auxiliary_results_and_the_guess_have_no_derivative():
    def f(a, guess):
        return lax.custom_root(lambda x: x * x - a, guess, lambda f, x: (jnp.sqrt(a), a * x),
                               scalar_tangent, has_aux=True)

    (x, aux), (dx, daux) = jax.jvp(f, (4.0, 1.5), (1.0, 1.0))
    assert (x, aux, dx, daux) == (2.0, 6.0, 0.25, 0.0)
    assert jax.grad(lambda a, g: f(a, g)[0], (0, 1))(4.0, 1.5) == (0.25, 0.0)
    aux = jax.vmap(f, (None, 0))(4.0, np.float32([1, 2]))[1]
    np.testing.assert_array_equal(aux, [4, 8])


def test_the_root_may_have_another_type_than_the_guess():
    f = lambda a: lax.custom_root(lambda x: x * x - a, 1, lambda f, x: jnp.sqrt(a),  # noqa: E731
                                  scalar_tangent)
    assert f(4.0) == 2 and jax.grad(f)(4.0) == 0.25


def test_in_a_scan():
    def sums(f):
        return lambda a, b: lax.scan(lambda c, x: (f(c, x), c), a, jnp.stack([b, b + 1, b + 2]))[0]

    for how in ("itself", "grad", "reverse over reverse"):
        check(jax.jit(TRANSFORMS[how](sums(root)))(X, Y),
              jax.jit(TRANSFORMS[how](sums(newton)))(X, Y))


@pytest.mark.parametrize(("tangent_solve", "got"), [
    (lambda g, y: jnp.stack([y / g(1.0)] * 2), r"float32\[2\]"), (lambda g, y: jnp.ones(2), "2"),
    (lambda g, y: jnp.int32(1), r"int32\[\]"), (lambda g, y: (y / g(1.0))[None], r"float32\[1\]"),
    (lambda g, y: (y / g(1.0)).astype("float16"), r"float16\[\]")])
def test_what_tangent_solve_returns_is_what_it_solves_for(tangent_solve, got):
    def root(a):
        return lax.custom_root(
            lambda x: x * x - a, 1.0, lambda f, x: jnp.sqrt(a), tangent_solve)

    for derivative in (jax.grad(root), jax.jit(jax.grad(root)), lambda a: jax.jvp(
            root, (a,), (1.0,))):
        with pytest.raises(TypeError, match=rf"tangent_solve, must .* float32\[\], got .*{got}"):
            derivative(2.0)
    np.testing.assert_allclose(root(2.0), 2 ** 0.5)  # as nobody asks for it
