"""while_loop with a bound on its iterations: against a masked scan of that length."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.check import check_jaxpr
from pyjx.core.passes.dce import dce

rng = np.random.default_rng(0)
X, W = [rng.standard_normal(3).astype(np.float32) for _ in range(2)]


def masked(cond, body, init, max_steps):
    def step(c, _):
        return lax.cond(cond(c), body, lambda c: c, c), None
    return lax.scan(step, init, None, length=max_steps)[0]


def bounded(cond, body, init, max_steps):
    return lax.while_loop(cond, body, init, max_steps=max_steps)


def model(loop, max_steps=20):
    """Some steps of a nonlinear map, as many as `n` says or the norm allows."""
    def f(x, w, n):
        goes_on = lambda c: (c["i"] < n) & (jnp.sum(c["x"] ** 2) < 90)  # noqa: E731
        step = lambda c: {"i": c["i"] + 1, "x": jnp.sin(c["x"]) * w + c["x"]}  # noqa: E731
        out = loop(goes_on, step, {"i": 0, "x": x}, max_steps)
        return jnp.sum(jnp.cos(out["x"]))
    return f


def check(got, want):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


TRANSFORMS = {
    "itself": lambda f: f,
    "grad": lambda f: jax.grad(f, (0, 1)),
    "grad of one": lambda f: jax.grad(f, 1),
    "jvp": lambda f: lambda x, w, n: jax.jvp(lambda x, w: f(x, w, n), (x, w), (w, x)),
    "linearize": lambda f: lambda x, w, n: jax.linearize(lambda x: f(x, w, n), x)[1](w),
    "forward over reverse": lambda f: jax.jacfwd(jax.grad(f), (0, 1)),
    "reverse over reverse": lambda f: jax.jacrev(jax.grad(f, 1), (0, 1)),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f)),
    "third": lambda f: jax.jacrev(jax.jacfwd(jax.grad(f)), 1),
}


@pytest.mark.parametrize("how", TRANSFORMS)
def test_is_a_masked_scan(how):
    got = jax.jit(TRANSFORMS[how](model(bounded)))
    want = jax.jit(TRANSFORMS[how](model(masked)))
    for n in (0, 1, 7, 20, 30):
        check(got(X, W, n), want(X, W, n))
    check_jaxpr(dce(jax.make_jaxpr(got)(X, W, 3)).jaxpr)


@pytest.mark.parametrize("max_steps", [0, 1, 2, 8, 9, 65])
def test_every_number_of_levels(max_steps):
    for n in (0, 1, max_steps - 1, max_steps, 100):
        check(jax.grad(model(bounded, max_steps), (0, 1))(X, W, n),
              jax.grad(model(masked, max_steps), (0, 1))(X, W, n))


@pytest.mark.parametrize("how", ["itself", "grad", "jvp", "reverse over reverse"])
@pytest.mark.parametrize("in_axes", [(None, None, 0), (0, None, None), (0, 0, 0)])
def test_batched(how, in_axes):
    args = [x if axis is None else np.stack([x, x + 1, x + 5])
            for x, axis in zip((X, W, np.int32(1)), in_axes, strict=True)]
    run = lambda loop: jax.jit(jax.vmap(TRANSFORMS[how](model(loop)), in_axes))(*args)  # noqa: E731
    check(run(bounded), run(masked))


@pytest.mark.parametrize("how", ["grad", "reverse over reverse"])
def test_derivatives_of_a_batch(how):
    def batch(loop):
        f = jax.vmap(model(loop), (0, None, 0))
        return jax.jit(TRANSFORMS[how](lambda x, w, n: jnp.sum(f(x, w, n))))

    args = np.stack([X, X + 1, X - 1]), W, np.int32([3, 0, 12])
    check(batch(bounded)(*args), batch(masked)(*args))


def test_an_example_that_is_done_has_no_derivative_in_the_body():
    f = lambda x: bounded(lambda x: x > 0, lambda x: x - jnp.sqrt(x), x, 3)  # noqa: E731
    xs = np.float32([1, 4])
    each = np.stack([jax.grad(f)(x) for x in xs])
    assert np.isfinite(each).all()
    np.testing.assert_allclose(jax.grad(lambda xs: jax.vmap(f)(xs).sum())(xs), each)
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(xs), each)


def test_programs_in_the_body():
    """Scans, calls, branches and loops whose parts depend on the tangents or do not."""
    @jax.jit
    def inner(x, w):
        table = lax.scan(lambda c, _: (c * 1.1, c), jnp.float32(1), None, length=3)[1]
        x = lax.scan(lambda c, t: (jnp.sin(c) + t * w, c), x, table)[0]
        x = lax.cond(x[0] > 0, lambda x: x * w, lambda x: x - w, x)
        return bounded(lambda c: c[0] < 2, lambda c: (c[0] + 1, jnp.tanh(c[1]) * w), (0, x), 3)[1]

    def f(loop):
        return lambda x, w: jnp.sum(loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, inner(c[1], w)),
                                         (0, x), 9)[1])

    for how in (jax.grad, lambda f: jax.jacrev(jax.grad(f, 1)), lambda f: jax.jacfwd(jax.grad(f))):
        check(jax.jit(how(f(bounded)))(X, W), jax.jit(how(f(masked)))(X, W))


def test_in_a_scan_and_under_checkpoint():
    def f(loop):
        def step(x, w):
            halve = lambda c: c * 0.5 + w * jnp.cos(c)  # noqa: E731
            return loop(lambda c: jnp.sum(c * c) > 0.5, halve, x, 6), x
        return lambda x, w: jnp.sum(lax.scan(jax.checkpoint(step), x * 9, jnp.stack([w, x]))[0])

    for how in (lambda f: jax.grad(f, (0, 1)), lambda f: jax.jacrev(jax.grad(f))):
        check(jax.jit(how(f(bounded)))(X, W), jax.jit(how(f(masked)))(X, W))


def test_keys_in_the_carry():
    def f(loop):
        def step(c):
            key, x = c
            key, sub = jax.random.split(key)
            return key, x * (1 + jax.random.normal(sub))
        return lambda x: loop(lambda c: c[1] != 99, step, (jax.random.key(0), x), 5)[1]

    check(jax.jit(jax.grad(f(bounded)))(2.0), jax.jit(jax.grad(f(masked)))(2.0))


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64"])
def test_dtypes(dtype):
    x = jnp.asarray(X[0]).astype(dtype)
    f = lambda loop: lambda x: jnp.real(  # noqa: E731
        loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * c[1] * 1.5), (0, x), 6)[1])
    got, want = jax.grad(f(bounded))(x), jax.grad(f(masked))(x)
    assert got.dtype == want.dtype == x.dtype
    np.testing.assert_allclose(np.complex64(got), np.complex64(want), rtol=1e-2)


def test_stops_at_the_bound_and_counts_nothing_else():
    double = lambda x: 2 * x  # noqa: E731
    assert lax.while_loop(lambda x: x < 100, double, 3, max_steps=4) == 48
    assert lax.while_loop(lambda x: x < 100, double, 3, max_steps=40) == 192
    assert lax.while_loop(lambda x: True, double, 3.0, max_steps=0) == 3.0
    with jax.disable_jit():
        assert lax.while_loop(lambda x: x < 100, double, 3, max_steps=4) == 48
    assert jax.grad(lambda x: lax.while_loop(lambda x: x < 100, double, x, max_steps=4))(3.0) == 16


def test_linear_in_its_arguments():
    f = lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * W + c[2], c[2]),  # noqa: E731
                                 (0, x, jnp.zeros(3)), max_steps=5)[1]
    check(jax.linear_transpose(f, X)(X)[0], X * W ** 3)
    with pytest.raises(TypeError, match="condition of a while_loop"):
        jax.linear_transpose(lambda x: lax.while_loop(lambda x: x[0] < 3, lambda x: 2 * x, x), X)(X)


def test_memory_grows_with_the_logarithm_of_the_bound():
    def temporary(loop, n):
        run = lambda x, w: model(loop, n)(x, w, n)  # noqa: E731
        x = np.ones(1000, np.float32)
        return jax.jit(jax.grad(run)).lower(x, x).compile().memory_analysis().temp_size_in_bytes

    carry = 4000
    assert temporary(masked, 4096) > 4096 * carry
    small, large = temporary(bounded, 64), temporary(bounded, 4096)
    assert large - small < 24 * carry and large < 48 * carry
