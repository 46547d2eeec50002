"""Long formulas on arrays of many short rows, in one row."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.engine import one_cpu

X = np.random.default_rng(0).uniform(0.1, 3, (1024, 5)).astype(np.float32)


def text(f, *args):
    return jax.jit(f).lower(*args).as_text()


def polynomial(x):
    for k in range(one_cpu.LONG):
        x = jnp.where(x > k, x, x * 0.5 + k)
    return x


@pytest.mark.parametrize("name", ["gammaln", "digamma", "zeta", "i1e", "gammainc", "kl_div"])
def test_formulas_take_one_row(name):
    f = getattr(jax.scipy.special, name)
    args = (X + 1.5, X)[:2 if name in ("zeta", "gammainc", "kl_div") else 1]
    assert "tensor<5120xf32>" in text(f, *args)
    flat = f(*[x.ravel() for x in args])
    np.testing.assert_allclose(jax.jit(f)(*args).ravel(), flat, rtol=1e-6)
    by_rows = np.stack([f(*[x[i] for x in args]) for i in range(3)])
    np.testing.assert_allclose(jax.jit(f)(*args)[:3], by_rows, rtol=1e-5, atol=1e-7)


def test_what_is_read_elsewhere_and_what_stands_between():
    def f(x, scale):
        y = polynomial(x * scale)
        total = jnp.cumsum(x, 1)  # reads nothing of the run that it stands in
        z = polynomial(y + 1)
        return z, z.sum(1), total, polynomial(total)[::2]

    got = jax.jit(f)(X, 2.0)
    assert "optimization_barrier" in text(f, X, 2.0)
    for a, b in zip(got, f(X, 2.0), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    slopes = jax.jit(jax.grad(lambda x: sum(o.sum() for o in f(x, 2.0))))(X)
    flat = jax.grad(lambda x: polynomial(polynomial(x * 2.0) + 1).sum())(X.ravel())
    rest = jax.grad(lambda x: sum(o.sum() for o in f(x, 2.0)[1:]))(X)
    np.testing.assert_allclose(slopes, flat.reshape(X.shape) + rest, rtol=1e-5)


def test_loops_and_branches_and_other_dtypes():
    def f(x, n):
        x = lax.fori_loop(0, n, lambda i, x: polynomial(x), x)
        return lax.cond(n > 2, polynomial, lambda x: x, x)

    assert text(f, X, 3).count("optimization_barrier") >= 2
    np.testing.assert_allclose(jax.jit(f)(X, 3), f(X.ravel(), 3).reshape(X.shape), rtol=1e-6)
    for dtype in ("float16", "bfloat16", "int32", "complex64"):
        x = jnp.asarray(X).astype(dtype)
        g = lambda x: sum([x * k + x * x for k in range(30)])  # noqa: E731
        np.testing.assert_array_equal(jax.jit(g)(x), jax.jit(g)(x.ravel()).reshape(x.shape))


@pytest.mark.parametrize("x", [X[:100], X.reshape(5, 1024), X.ravel(), X.astype(np.int32)[:0]])
def test_others_stay(x):
    assert "optimization_barrier" not in text(polynomial, x)


def test_what_only_sums_of_all_read_takes_one_row():
    def powers(x):
        y = x * x
        return y.sum(), (y * x).max(), jnp.sqrt(1 + jnp.mean(y * y)) * x.min()

    assert "tensor<5120xf32>" in text(powers, X)
    for a, b in zip(jax.jit(powers)(X), powers(X.ravel()), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert "tensor<5120xf32>" in text(lambda x: jnp.exp(x.var()), X)
    for f in (jnp.sum, jnp.any, jnp.nanprod, jnp.count_nonzero, lambda x: (x * x).sum(1),
              lambda x: ((x * x).sum(), x * x), lambda x: (x * x[:1]).sum()):
        assert "optimization_barrier" not in text(f, X)


def test_sums_in_between_do_not_end_a_run():
    def powers(x):
        y, sums = x, []
        for _ in range(5):
            sums.append(y.sum() + len(sums))
            y = y * x
        return jnp.stack(sums)

    assert text(powers, X).count("tensor<1024x5xf32>") == 2  # the argument, and its reshape
    np.testing.assert_allclose(jax.jit(powers)(X), powers(X.ravel()), rtol=1e-6)

    def slopes(p, x):  # each step of the loop adds up what it gives the next one a multiple of
        return jax.grad(lambda p: jnp.polyval(p, x).sum())(p)

    p = np.arange(1, 9, dtype=np.float32)
    assert "multiply" in (lines := text(slopes, p, X)) and "tensor<5120xf32>" in lines
    np.testing.assert_allclose(jax.jit(slopes)(p, X), slopes(p, X.ravel()), rtol=1e-6)

    def centred(x):  # the second run reads what the first leaves
        d = x * x - (x * x).mean()
        jax.debug.print("{}", d.sum())
        return (d * d * d).sum() / (d * d).sum() ** 1.5

    np.testing.assert_allclose(jax.jit(centred)(X), centred(X), rtol=1e-5)


def test_few_operations_for_each_result_stay():
    assert "optimization_barrier" not in text(lambda x: jnp.abs(x) * 2, X)
    assert "optimization_barrier" not in text(
        lambda x: [polynomial(x) if k else x * 2 for k in range(2)]
        + [jnp.abs(x) * k for k in range(20)], X)


@pytest.mark.parametrize("f", [jnp.exp, jnp.tanh, jax.nn.gelu, jax.scipy.stats.norm.pdf,
                               jax.grad(lambda x: jnp.vdot(x, jax.nn.sigmoid(x)))])
def test_functions_take_one_row(f):
    assert "tensor<5120xf32>" in text(f, X)
    np.testing.assert_allclose(jax.jit(f)(X).ravel(), f(X.ravel()), rtol=1e-6)


@pytest.mark.parametrize("f", [lambda x: jnp.exp(x - x.max(1, keepdims=True)),
                               lambda x: jnp.exp(x)[:, 0], lambda x: jnp.tanh(x * x[:1]).sum()])
def test_functions_of_what_is_made_anew_or_read_in_parts_stay(f):
    assert "optimization_barrier" not in text(f, X)


def test_log1p_stays_where_it_is_slower_in_one_row(monkeypatch):
    for by_rows in ((), ("log1p",)):
        monkeypatch.setattr(one_cpu, "_BY_ROWS", frozenset(by_rows))
        f = lambda x: jnp.log1p(jnp.exp(x))  # noqa: E731
        assert ("optimization_barrier" in text(f, X)) == (not by_rows)


@pytest.mark.parametrize("draw", [jax.random.bits, jax.random.normal, jax.random.split])
def test_random_numbers_in_short_rows_are_drawn_in_one(draw):
    key = jax.random.key(0)
    rows = jax.jit(lambda key: draw(key, (1024, 5, 3))).lower(key).as_text()
    assert "threefry2x32(%arg0: tensor<ui32>, %arg1: tensor<ui32>, %arg2: tensor<ui32>, " \
           "%arg3: tensor<15360xui32>" in rows
    flat = jax.jit(lambda key: draw(key, (15360,)))(key).reshape(1024, 5, 3)
    assert (jax.jit(lambda key: draw(key, (1024, 5, 3)))(key) == flat).all()


@pytest.mark.parametrize("function", [
    lambda x: (jax.lax.broadcasted_iota("float32", x.shape, 0) * x).sum(),
    lambda x: (jax.lax.broadcasted_iota("float32", x.shape, 1) * jnp.exp(x)).sum(),
    lambda x: jnp.tril(jnp.exp(x)).sum(),
    lambda x: ((jnp.eye(*x.shape) - x) ** 2).sum(),
    lambda x: jnp.exp(x) * jnp.tri(*x.shape),
])
def test_places_in_an_array_are_not_those_in_a_row(function):
    x = np.linspace(-1, 1, 5000, dtype="float32").reshape(1000, 5)
    with jax.disable_jit():
        want = function(x)
    np.testing.assert_allclose(jax.jit(function)(x), want, rtol=1e-5)
    assert np.isfinite(jax.jit(jax.grad(lambda x: function(x).sum()))(x)).all()
