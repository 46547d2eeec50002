"""Rules of custom_vjp functions for rematerialization. The rules add numbers of their own to the
result, so that it tells which of them ran."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.custom_derivatives import remat_opt_p

ONES = np.ones(2, np.float32)
SIN, COS = np.sin(np.float32(1)), np.cos(np.float32(1))
EVERYTHING = jax.checkpoint_policies.everything_saveable


def optimized():
    """sin(x) y, or 100 more by the forward rule."""
    f = jax.custom_vjp(lambda x, y: jnp.sin(x) * y)
    f.defvjp(lambda x, y: (jnp.sin(x) * y + 100, (jnp.cos(x), y, jnp.sin(x))),
             lambda r, ct: (r[0] * r[1] * ct, r[2] * ct), optimize_remat=True)
    return f


# The wrapped derivative, and the values of jax 0.12.
OPTIMIZED = {
    "grad": (lambda f: jax.value_and_grad(f)(1.0, 2.0), 2 * SIN + 100, 2 * COS),
    "jit-grad": (lambda f: jax.jit(jax.value_and_grad(f))(1.0, 2.0), 2 * SIN + 100, 2 * COS),
    "grad-jit": (lambda f: jax.value_and_grad(jax.jit(f))(1.0, 2.0), 2 * SIN + 100, 2 * COS),
    "remat": (lambda f: jax.value_and_grad(jax.checkpoint(f))(1.0, 2.0), 2 * SIN, 2 * COS),
    "remat-sin": (lambda f: jax.value_and_grad(jax.checkpoint(lambda x, y: jnp.sin(f(x, y))))(
        1.0, 2.0), 0.99371827, 0.43945923),
    "jit-remat": (lambda f: jax.jit(jax.value_and_grad(jax.checkpoint(f)))(1.0, 2.0),
                  2 * SIN, 2 * COS),
    "remat-jit": (lambda f: jax.value_and_grad(jax.checkpoint(jax.jit(f)))(1.0, 2.0),
                  2 * SIN, 2 * COS),
    "remat-saving": (lambda f: jax.value_and_grad(jax.checkpoint(f, policy=EVERYTHING))(1.0, 2.0),
                     2 * SIN + 100, 2 * COS),
    "vmap-remat": (lambda f: jax.vmap(jax.value_and_grad(jax.checkpoint(f)))(ONES, ONES),
                   SIN * ONES, COS * ONES),
    "remat-vmap": (lambda f: jax.value_and_grad(
        jax.checkpoint(lambda x, y: jax.vmap(f)(x, y).sum()))(ONES, ONES), 2 * SIN, COS * ONES),
    "scan": (lambda f: jax.value_and_grad(lambda x: jax.lax.scan(
        lambda c, _: (f(c, 2.0), None), x, None, length=2)[0])(1.0), 101.82714, 0.87891847),
    "scan-remat": (lambda f: jax.value_and_grad(lambda x: jax.lax.scan(jax.checkpoint(
        lambda c, _: (f(c, 2.0), None)), x, None, length=2)[0])(1.0), 1.9874365, -0.24186234),
}


@pytest.mark.parametrize("name", OPTIMIZED)
def test_the_function_runs_where_only_its_result_is_read(name):
    run, value, derivative = OPTIMIZED[name]
    got = run(optimized())
    np.testing.assert_allclose(got[0], value, rtol=1e-6)
    np.testing.assert_allclose(got[1], derivative, rtol=1e-5)


def test_remat_opt_in_programs():
    f = optimized()
    jaxpr = jax.make_jaxpr(jax.value_and_grad(f))(1.0, 2.0)
    assert [e.primitive for e in jaxpr.eqns].count(remat_opt_p) == 1
    known, linear = [e for e in jax.make_jaxpr(jax.grad(jax.checkpoint(
        lambda x, y: jnp.sin(f(x, y)))))(1.0, 2.0).eqns if e.primitive.name == "remat2"]
    assert "remat_opt" not in str(known) and "100" not in str(known)
    assert "remat_opt" in str(linear)


def test_policies_are_asked_of_the_rule_as_of_one_operation():
    asked = []

    def policy(primitive, *avals, **params):
        asked.append(primitive)
        return False

    jax.grad(jax.checkpoint(optimized(), policy=policy))(1.0, 2.0)
    assert asked == [remat_opt_p]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_optimized_functions_that_close_over_values(wrap):
    def outer(w, x):
        f = jax.custom_vjp(lambda x: jnp.sin(x) * w)
        f.defvjp(lambda x: (jnp.sin(x) * w + 100, jnp.cos(x) * w), lambda r, ct: (r * ct,),
                 optimize_remat=True)
        return jax.value_and_grad(jax.checkpoint(f))(x)

    np.testing.assert_allclose(wrap(outer)(2.0, 1.0), (2 * SIN, 2 * COS), rtol=1e-6)
    np.testing.assert_allclose(wrap(jax.vmap(outer))(2 * ONES, ONES),
                               (2 * SIN * ONES, 2 * COS * ONES), rtol=1e-6)


def test_second_derivatives_of_optimized_functions():
    f = optimized()
    assert float(jax.jit(jax.grad(jax.grad(f)))(1.0, 2.0)) == pytest.approx(-2 * SIN, rel=1e-5)
    assert float(jax.grad(jax.grad(jax.checkpoint(f)))(1.0, 2.0)) == pytest.approx(
        -2 * SIN, rel=1e-5)


def test_an_optimized_rule_of_another_type():
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x.astype("float16"), None), lambda r, ct: (ct,), optimize_remat=True)
    with pytest.raises(TypeError, match="must produce a pair"):
        jax.jit(jax.grad(f))(1.0)


# -- defremat --------------------------------------------------------------------------------------


def with_remat_rules(with_vjp=False, with_logs=False):
    """sin(x) y; 100 more by the first rule, 1000 more by the second."""
    f = jax.custom_vjp(lambda x, y: jnp.sin(x) * y)
    runs = []

    def fwd(x, y):
        runs.append("fwd")
        return jnp.sin(x) * y + 100, (x * 3,)

    def rem(saved, x, y):
        runs.append("rem")
        return jnp.sin(x) * y + 1000, (jnp.cos(saved[0] / 3), y, jnp.sin(x))

    def bwd(r, ct):
        runs.append("bwd")
        cts = r[0] * r[1] * ct, r[2] * ct
        return (cts, {"ct": ct}) if with_logs else cts

    if with_vjp:
        f.defvjp(lambda x, y: (jnp.sin(x) * y + 200, None), lambda r, ct: (7.0, 8.0))
    (f.defremat_with_logs if with_logs else f.defremat)(fwd, rem, bwd)
    f.runs = runs
    return f


REMATERIALIZED = {
    "remat": (lambda f: jax.value_and_grad(jax.checkpoint(f))(1.0, 2.0), 2 * SIN + 100, 2 * COS),
    "remat-sin": (lambda f: jax.value_and_grad(jax.checkpoint(lambda x, y: jnp.sin(f(x, y))))(
        1.0, 2.0), 0.9135711, -0.95591617),  # the cosine is of the second rule's result
    "remat-jit": (lambda f: jax.value_and_grad(jax.checkpoint(jax.jit(f)))(1.0, 2.0),
                  2 * SIN + 100, 2 * COS),
    "vmap-remat": (lambda f: jax.vmap(jax.value_and_grad(jax.checkpoint(f)))(ONES, ONES),
                   SIN * ONES + 100, COS * ONES),
    "remat-vmap": (lambda f: jax.value_and_grad(jax.checkpoint(
        lambda x, y: jax.vmap(f)(x, y).sum()))(ONES, ONES), 2 * SIN + 200, COS * ONES),
    "scan-remat": (lambda f: jax.value_and_grad(lambda x: jax.lax.scan(jax.checkpoint(
        lambda c, _: (f(c, 2.0), None)), x, None, length=2)[0])(1.0), 101.82714, 0.87891847),
    "remat-scan": (lambda f: jax.value_and_grad(jax.checkpoint(lambda x: jax.lax.scan(
        lambda c, _: (f(c, 2.0), None), x, None, length=2)[0]))(1.0), 101.82714, 0.87891847),
}


@pytest.mark.parametrize("with_vjp", [False, True])
@pytest.mark.parametrize("name", REMATERIALIZED)
def test_rules_for_rematerialization(name, with_vjp):
    run, value, derivative = REMATERIALIZED[name]
    f = with_remat_rules(with_vjp)
    for wrap in (lambda g: g, lambda g: lambda f: jax.jit(lambda: g(f))()):
        got = wrap(run)(f)
        np.testing.assert_allclose(got[0], value, rtol=1e-6)
        np.testing.assert_allclose(got[1], derivative, rtol=1e-4)
    assert f.runs[:3] == ["fwd", "rem", "bwd"]


def test_what_the_first_rule_saves_is_kept_and_nothing_else():
    f = with_remat_rules()
    known, linear = [e for e in jax.make_jaxpr(jax.grad(jax.checkpoint(f)))(1.0, 2.0).eqns
                     if e.primitive.name == "remat2"]
    assert len(known.outvars) == 2  # the result and what was saved
    assert "1000" not in str(known) and "100.0" not in str(linear)


def test_rules_for_rematerialization_elsewhere():
    for wrap in (lambda f: f, jax.jit):
        value, derivative = wrap(jax.value_and_grad(with_remat_rules()))(1.0, 2.0)
        np.testing.assert_allclose([value, derivative], [2 * SIN + 100, 2 * COS], rtol=1e-6)
        value, derivative = wrap(jax.value_and_grad(with_remat_rules(True)))(1.0, 2.0)
        np.testing.assert_allclose([value, derivative], [2 * SIN + 200, 7.0], rtol=1e-6)
    assert float(jax.grad(jax.grad(with_remat_rules()))(1.0, 2.0)) == pytest.approx(-2 * SIN)
    with pytest.raises(TypeError, match="can't apply forward-mode"):
        jax.jvp(with_remat_rules(), (1.0, 2.0), (1.0, 1.0))


def test_logs_of_rules_for_rematerialization():
    for wrap in (lambda f: f, jax.checkpoint, lambda f: jax.jit(jax.checkpoint(f))):
        _, pull_back = jax.vjp(wrap(with_remat_rules(with_logs=True)), 1.0, 2.0)
        cts, log = pull_back.with_logs(1.0)
        np.testing.assert_allclose(cts, (2 * COS, SIN), rtol=1e-6)
        assert float(log["ct"]) == 1.0


def test_custom_gradient_with_remat():
    runs = []

    @jax.custom_gradient(remat=True)
    def sine(x):
        c = jnp.cos(x)

        def rem(x):
            runs.append("rem")
            return jnp.sin(x), lambda ct: (c * ct,)

        return jnp.sin(x), rem

    def twice(x):
        return sine(sine(x))

    expected = float(jax.grad(lambda x: jnp.sin(jnp.sin(x)))(1.0))
    assert float(jax.grad(twice)(1.0)) == pytest.approx(expected)
    assert float(jax.grad(jax.checkpoint(twice))(1.0)) == pytest.approx(expected)
    known, linear = [e for e in jax.make_jaxpr(jax.grad(jax.checkpoint(twice)))(1.0).eqns
                     if e.primitive.name == "remat2"]
    assert "cos" in str(known) and "cos" not in str(linear)
