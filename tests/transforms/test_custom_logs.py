"""Backward rules that log, and such as add to accumulators."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental.hijax import RefAccum, ValAccum

ONES = np.ones(2, np.float32)
SIN, COS = np.sin(np.float32(1)), np.cos(np.float32(1))


def logging(key="log"):
    f = jax.custom_vjp(lambda x, y: jnp.sin(x) * y)
    f.defvjp_with_logs(
        lambda x, y: (f(x, y), (x, y)),
        lambda r, ct: ((jnp.cos(r[0]) * r[1] * ct, jnp.sin(r[0]) * ct), {key: {"x2": r[0] * 2}}))
    return f


def logged(fun, *args, ct=1.0):
    return jax.vjp(fun, *args)[1].with_logs(ct)


@pytest.mark.parametrize("wrap", [
    lambda f: f, jax.jit, jax.checkpoint, lambda f: jax.jit(jax.checkpoint(jax.jit(f))),
], ids=["plain", "jit", "remat", "jit-remat-jit"])
def test_logs(wrap):
    f = wrap(logging())
    cts, log = logged(f, 1.0, 2.0)
    np.testing.assert_allclose(cts, (2 * COS, SIN), rtol=1e-6)
    assert float(log["log"]["x2"]) == 2.0
    assert float(jax.jit(lambda x: logged(f, x, 2.0)[1]["log"]["x2"])(1.0)) == 2.0
    assert float(jax.grad(f)(1.0, 2.0)) == pytest.approx(2 * COS)
    pull_back = jax.vjp(f, 1.0, 2.0)[1]
    assert float(jax.jit(lambda p: p.with_logs(1.0))(pull_back)[1]["log"]["x2"]) == 2.0


def test_logs_of_batches():
    f = logging()
    for cts, log in (logged(jax.vmap(f), ONES, ONES, ct=ONES),
                     jax.vmap(lambda x, y: logged(f, x, y))(ONES, ONES),
                     logged(jax.jit(jax.vmap(f)), ONES, ONES, ct=ONES)):
        np.testing.assert_allclose(cts[0], COS * ONES, rtol=1e-6)
        np.testing.assert_array_equal(log["log"]["x2"], 2 * ONES)


def test_logs_of_two_functions():
    f, g = logging("f"), logging("g")
    _, log = logged(lambda x, y: g(jax.jit(f)(x, y), y), 1.0, 2.0)
    assert float(log["f"]["x2"]) == 2.0 and float(log["g"]["x2"]) == pytest.approx(4 * SIN)
    for twice in (lambda x, y: f(f(x, y), y), lambda x, y: f(jax.jit(f)(x, y), y)):
        for derivative in (jax.grad(twice), jax.jit(jax.grad(twice)),
                           lambda x, y, f=twice: jax.vjp(f, x, y)[1](1.0)):
            with pytest.raises(ValueError, match="Duplicate backward-pass log key 'f'"):
                derivative(1.0, 2.0)


def test_without_logs():
    assert logged(jnp.sin, 1.0)[1] == {}
    for entries in (None, {}, {"a": "text", "b": None, 3: 5}):
        f = jax.custom_vjp(lambda x: x)
        f.defvjp_with_logs(lambda x: (x, None), lambda _, ct, e=entries: ((ct,), e))
        assert logged(f, 1.0)[1] == (entries or {})


def test_logs_of_loops():
    f = logging()

    def repeated(x, n=3):
        return jax.lax.scan(lambda c, _: (f(c, 2.0), None), x, None, length=n)[0]

    def plain(x):
        return 2 * jnp.sin(2 * jnp.sin(2 * jnp.sin(x)))

    assert float(jax.grad(repeated)(1.0)) == pytest.approx(float(jax.grad(plain)(1.0)))
    carries = [1.0, 2 * SIN, 2 * np.sin(2 * SIN)]
    for wrap in (lambda f: f, jax.jit, jax.checkpoint):
        log = logged(wrap(repeated), 1.0)[1]["log"]
        np.testing.assert_allclose(log["x2"], np.multiply(2, carries), rtol=1e-6)
    nested = logged(lambda x: jax.lax.scan(lambda c, _: (repeated(c, 2), None), x, length=4)[0],
                    1.0)[1]["log"]
    assert nested["x2"].shape == (4, 2)

    def bounded(x):
        return jax.lax.while_loop(lambda c: c < 3, lambda c: f(c, 1.0) + c, x, max_steps=4)

    with pytest.raises(NotImplementedError, match="'log' is logged inside a while loop"):
        logged(bounded, 1.0)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_logs_of_branches(wrap):
    f, g = logging(), logging("other")

    def either(x):
        return jax.lax.switch(jnp.int32(x), [lambda x: f(x, 1.0), lambda x: g(x, 3.0), jnp.sin], x)

    (ct,), log = logged(wrap(either), 1.0)
    assert float(ct) == pytest.approx(3 * COS)
    assert int(log["log"].index) == int(log["other"].index) == 1
    assert float(log["log"].branches[0]["x2"]) == 0 and log["log"].branches[1:] == [None, None]
    assert float(log["other"].branches[1]["x2"]) == 2 and log["other"].branches[::2] == [None] * 2
    assert repr(log["other"]).startswith("CondSum(index=Array(1, dtype=int32), branches=[None, {")
    stacked = logged(lambda x: jax.lax.scan(lambda c, _: (either(c), None), x, length=2)[0], 1.0)
    assert stacked[1]["other"].index.shape == (2,)


@pytest.mark.parametrize(("result", "message"), [
    ((1.0,), "registered with defvjp_with_logs and so must produce a pair"),
    (((1.0,), 3.0), "must be None or a dict of backward-pass log entries, but got float"),
])
def test_wrong_logs(result, message):
    f = jax.custom_vjp(lambda x: x)
    f.defvjp_with_logs(lambda x: (x, None), lambda _, ct: result)
    with pytest.raises(TypeError, match=message):
        jax.grad(f)(1.0)


def test_custom_gradient_with_logs():
    f = jax.custom_gradient(with_logs=True)(lambda x: (x * x, lambda ct: (2 * x * ct, {"ct": ct})))
    for wrap in (lambda f: f, jax.jit):
        (ct,), log = logged(wrap(f), 3.0)
        assert float(ct) == 6.0 and float(log["ct"]) == 1.0


# -- accumulators ----------------------------------------------------------------------------------


def accumulating(bwd):
    f = jax.custom_vjp(lambda x, y: x * y["a"])
    f.defvjp_with_accums(lambda x, y: (x * y["a"], (x, y)), bwd)
    return f


def test_accumulators():
    kinds = []

    def bwd(r, ct, x, y):
        kinds.append((type(x).__name__, type(y["a"]).__name__))
        x.accum(ct * r[1]["a"])
        y["a"].accum(ct * r[0])

    f = accumulating(bwd)
    for wrap in (lambda f: f, jax.jit, jax.checkpoint):
        x, y = jax.grad(wrap(f), (0, 1))(2.0, {"a": 3.0})
        assert (float(x), float(y["a"])) == (3.0, 2.0)
        assert kinds[-1] == ("ValAccum", "ValAccum")
        assert float(jax.grad(wrap(f))(2.0, {"a": 3.0})) == 3.0
        assert kinds[-1] == ("ValAccum", "NullAccum")
    x, y = jax.grad(lambda x, y: jax.vmap(f, (0, None))(x, y).sum(), (0, 1))(ONES, {"a": 3.0})
    np.testing.assert_array_equal(x, 3 * ONES)
    assert float(y["a"]) == 2.0
    x, y = jax.grad(lambda x, y: f(f(x, y), y), (0, 1))(2.0, {"a": 3.0})
    assert (float(x), float(y["a"])) == (9.0, 12.0)


def test_accumulators_add():
    def bwd(r, ct, x, y):
        x.accum(ct)
        x.accum(ct)
        return {"log": x.freeze()}

    f = accumulating(bwd)
    (x, y), log = logged(f, 2.0, {"a": 3.0})
    assert (float(x), float(y["a"]), float(log["log"])) == (2.0, 0.0, 2.0)


@pytest.mark.parametrize(("bwd", "error", "message"), [
    (lambda r, ct, x, y: x.accum(jnp.ones(3)), ValueError,
     r"Expected cotangent type float32\[\] but got float32\[3\]"),
    (lambda r, ct, x, y: x.accum("a"), TypeError, "not a valid JAX type"),
    (lambda r, ct, x, y: (ct, ct), TypeError, "must return None or a dict"),
])
def test_wrong_rules_with_accumulators(bwd, error, message):
    with pytest.raises(error, match=message):
        jax.grad(accumulating(bwd))(2.0, {"a": 3.0})


# -- custom_gradient with accumulators -------------------------------------------------------------


def product(kinds, seen=None):
    @jax.custom_gradient(with_accums=kinds)
    def f(x, y):
        def vjp(ct, x_sum, y_sum):
            if seen is not None:
                seen.append((type(x_sum).__name__, type(y_sum["a"]).__name__))
            x_sum.accum(3 * ct * y["a"])
            x_sum.accum(2 * ct * y["a"])
            y_sum["a"].accum(ct * x)
            return {"ct": ct}

        return x * y["a"], vjp

    return f


@pytest.mark.parametrize("kinds", [ValAccum, RefAccum, (ValAccum, {"a": RefAccum})])
def test_a_pull_back_that_accumulates(kinds):
    seen = []
    f = product(kinds, seen)
    x, y = jnp.arange(3.0), jnp.full(3, 2.0)

    def total(x, y):
        return f(x, {"a": y}).sum()

    for transformed in (lambda g: g, jax.jit):
        dx, dy = transformed(jax.grad(total, (0, 1)))(x, y)
        assert dx.tolist() == [10.0, 10.0, 10.0]
        assert dy.tolist() == [0.0, 1.0, 2.0]
    of_each = jax.vmap(jax.grad(lambda x, y: f(x, {"a": y})))(x, y)
    assert of_each.tolist() == [10.0, 10.0, 10.0]
    looped = jax.grad(lambda c: jax.lax.scan(lambda c, y: (f(c, {"a": y}), None), c, y)[0])(1.0)
    assert float(looped) == 1000.0
    assert float(jax.vjp(lambda x: f(x, {"a": 2.0}), 1.0)[1].with_logs(4.0)[1]["ct"]) == 4.0
    del seen[:]
    jax.grad(total)(x, y)
    assert seen[0][1] == "NullAccum"


def test_accumulators_of_a_pull_back_that_are_wrong():
    with pytest.raises(TypeError, match="leaves, but got a leaf 3"):
        jax.grad(lambda x: product(3)(x, {"a": 1.0}))(1.0)
    with pytest.raises(NotImplementedError, match="with_accums together with remat"):
        jax.custom_gradient(lambda x: x, with_accums=ValAccum, remat=True)
    returning = jax.custom_gradient(lambda x: (x, lambda ct, x_sum: ct), with_accums=ValAccum)
    with pytest.raises(TypeError, match="must return None or a dict"):
        jax.grad(returning)(1.0)
