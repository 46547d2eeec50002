"""checkify under `vmap` and over devices: what lanes that are not there would do is no error."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.jaxpr import subjaxprs
from pyjx.experimental import checkify

XS = np.float32([3, 0, 1, 2])


def asserted(x):
    checkify.check(x > 0, "got {}", x)
    return x * 2


# Each fails where its argument is 0, and not where it is larger.
FAILING = {
    "user": (checkify.user_checks, asserted),
    "nan": (checkify.nan_checks, lambda x: jnp.log(jnp.where(x > 0, x, -1))),
    "div": (checkify.div_checks, lambda x: 1 / x),
    "index": (checkify.index_checks, lambda x: jnp.asarray(XS)[jnp.where(x > 0, 1, 9)] + x),
}


def counted(check):
    """A loop that a lane leaves when it comes to 0."""
    return lambda x: lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, check(c[0]) + c[1]),
                                    (x, x))[1]


def bounded(check):
    return lambda x: lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, check(c[0]) + c[1]),
                                    (x, x), max_steps=5)[1]


def too_long(check):
    """A loop whose last iteration fails."""
    return lambda x: lax.while_loop(lambda c: c[0] >= 0, lambda c: (c[0] - 1, check(c[0])),
                                    (x, x))[1]


def chosen(check):
    return lambda x: lax.cond(x > 0, check, lambda x: x, x)


def wrongly_chosen(check):
    return lambda x: lax.cond(x > 1, lambda x: x, check, x)


def switched(check):
    return lambda x: lax.switch(jnp.where(x > 0, x, 0).astype(int), [
        lambda x: x, check, lambda x: check(x - 1), lambda x: -x], x)


def scanned(check):
    return lambda x: lax.scan(lambda c, y: (lax.cond(y > 0, check, lambda y: y, y) + c, y), x,
                              jnp.stack([x, x - 1, x]))[0]


def nested(check):
    return lambda x: lax.cond(x > 0, lambda x: lax.while_loop(
        lambda c: c > 0, lambda c: jnp.where(check(c) > -9, c - 1, c), x), lambda x: x, x)


PROGRAMS = [counted, bounded, too_long, chosen, wrongly_chosen, switched, scanned, nested]


def error_of(f, x, errors):
    return checkify.checkify(f, errors=errors)(x)[0].get()


def alone(f, xs, errors):
    return [error_of(jax.jit(f), x, errors) for x in xs]


MAPPINGS = {
    "vmap": lambda f: jax.vmap(f)(XS),
    "jit": lambda f: jax.jit(jax.vmap(f))(XS),
    "nested": lambda f: jax.vmap(jax.vmap(f))(XS.reshape(2, 2)),
    "vmap of jit": lambda f: jax.vmap(jax.jit(f))(XS),
}


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize(("kind", "program"), [
    pytest.param(k, p, marks=[] if k == "user" or i % len(FAILING) == n else pytest.mark.slow)
    for n, k in enumerate(FAILING) for i, p in enumerate(PROGRAMS)])
def test_batches_report_what_their_examples_do(kind, program, mapping):
    errors, check = FAILING[kind]
    f = program(check)
    texts = alone(f, XS, errors)
    found = checkify.checkify(lambda: MAPPINGS[mapping](f), errors=errors)()[0].get()
    assert (found is None) is (texts == [None] * len(XS))
    assert found in texts


@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_those_without_checks(program):
    f = program(lambda x: x * 2 + 1)
    checked = checkify.checkify(jax.vmap(f), errors=checkify.all_checks)
    np.testing.assert_array_equal(checked(XS)[1], jax.vmap(f)(XS))


@pytest.mark.parametrize("program", [bounded, chosen, wrongly_chosen, switched, scanned])
@pytest.mark.parametrize("kind", ["user", "div"])
def test_derivatives(kind, program):
    errors, check = FAILING[kind]
    f = program(check)
    texts = alone(jax.grad(f), XS, errors)
    for run in (lambda: jax.vmap(jax.grad(f))(XS), lambda: jax.vmap(jax.jacfwd(f))(XS),
                lambda: jax.grad(lambda xs: jax.vmap(f)(xs).sum())(XS),
                lambda: jax.jvp(jax.vmap(f), (XS,), (XS,))):
        found = checkify.checkify(run, errors=errors)()[0].get()
        assert (found is None) is (texts == [None] * len(XS)), texts
        assert found in texts


def test_the_first_of_the_lanes_that_fail():
    def f(x):
        return lax.cond(x > 0, lambda x: asserted(x - 2), lambda x: asserted(x + 9), x)

    assert error_of(jax.vmap(f), XS, checkify.user_checks) == "got -1.0 (`check` failed)"
    assert error_of(jax.vmap(f), XS[[3, 2]], checkify.user_checks) == "got 0.0 (`check` failed)"
    each = jax.vmap(checkify.checkify(f))(XS)[0]
    assert each.get() == ("at mapped index 2: got -1.0 (`check` failed)\n"
                          "at mapped index 3: got 0.0 (`check` failed)")


def test_lanes_read_named_axes():
    def f(x):
        return lax.cond(x > 0, lambda x: asserted(x) / lax.psum(x, "i"), lambda x: x, x)

    error, values = checkify.checkify(jax.vmap(f, axis_name="i"))(XS)
    assert error.get() is None
    np.testing.assert_allclose(values, [1, 0, 1 / 3, 2 / 3], rtol=1e-6)


def test_programs_without_checkify_are_as_ever():
    def names(jaxpr):
        return {e.primitive.name for e in jaxpr.eqns}.union(
            *[names(inner) for e in jaxpr.eqns for inner in subjaxprs(e)])

    f = jax.jit(jax.vmap(chosen(lambda x: x / 2)))
    checkify.checkify(f, errors=checkify.float_checks)(XS)
    assert "lanes" not in names(jax.make_jaxpr(f)(XS).jaxpr)
    checked = jax.make_jaxpr(checkify.checkify(f, errors=checkify.float_checks))(XS)
    assert "lanes" not in names(checked.jaxpr)


def test_custom_rules_in_lanes():
    f = jax.custom_jvp(lambda x: 1 / x)
    f.defjvp(lambda primals, tangents: (f(*primals), -tangents[0] / primals[0] ** 2))
    g = jax.custom_vjp(lambda x: 1 / x)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (-ct / x**2,))
    for inverse in (f, g):
        run = jax.vmap(chosen(inverse))
        assert error_of(run, XS, checkify.div_checks) is None
        assert error_of(jax.vmap(inverse), XS, checkify.div_checks) == "division by zero"
        mapped = jax.custom_jvp(jax.vmap(chosen(inverse)))
        mapped.defjvp(lambda p, t: (p[0], t[0]))
        error, values = checkify.checkify(mapped, errors=checkify.div_checks)(XS)
        assert error.get() is None
        np.testing.assert_allclose(values, [1 / 3, 0, 1, 1 / 2])


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_where_a_rule_takes_the_place_of_a_function_its_checks_go(kind):
    f = (jax.custom_jvp if kind == "jvp" else jax.custom_vjp)(jnp.sin)
    if kind == "jvp":
        f.defjvp(lambda p, t: (jnp.sin(p[0]), 3 * t[0]))
    else:
        f.defvjp(lambda x: (jnp.sin(x), None), lambda _, ct: (3 * ct,))
    checked = checkify.checkify(f, errors=checkify.float_checks)
    text = "nan generated by primitive: sin."
    for run in (checked, jax.jit(checked)):
        assert run(jnp.inf)[0].get() == text
        gradient, error = jax.grad(lambda x, run=run: run(x)[::-1], has_aux=True)(jnp.inf)
        assert gradient == 3 and error.get() is None
    assert jax.vmap(checked)(jnp.array([0, jnp.inf]))[0].get() == f"at mapped index 1: {text}"
    assert error_of(jax.vmap(f), jnp.array([0, jnp.inf]), checkify.float_checks) == text


# -- errors of several -----------------------------------------------------------------------------


def each(x):
    return checkify.checkify(asserted)(x)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize("stack", [
    lambda xs: lax.scan(lambda c, x: (c, each(x)), None, xs)[1], lambda xs: lax.map(each, xs),
    jax.vmap(each), lambda xs: jax.vmap(jax.vmap(each))(xs.reshape(2, -1))])
def test_the_first_of_stacked_errors_is_passed_on(stack, wrap):
    def f(xs):
        error, ys = stack(xs)
        checkify.check_error(error)
        return ys

    f = wrap(checkify.checkify(f))
    assert f(jnp.array([2.0, 0.0, -1.0, 3.0]))[0].get() == "got 0.0 (`check` failed)"
    assert f(jnp.array([2.0, 1.0]))[0].get() is None
    with pytest.raises(checkify.JaxRuntimeError, match=r"^got 0.0 \(`check` failed\)"):
        checkify.check_error(stack(jnp.array([2.0, 0.0, -1.0, 3.0]))[0])
    checkify.check_error(stack(jnp.zeros((0,)))[0]) if stack is jax.vmap(each) else None


@pytest.mark.parametrize(("a", "b"), [
    (True, True), (True, False), (False, True), (False, False)])
def test_checks_around_batches_keep_their_order(a, b):
    def f(x, a, b):
        checkify.check(a, "before")
        y = jax.vmap(chosen(lambda x: asserted(x - 2)))(x)
        checkify.check(b, "after")
        return y

    found = checkify.checkify(f)(XS[:2], a, b)[0].get()
    assert found == ("before (`check` failed)" if not a else None if b else
                     "after (`check` failed)")
    found = checkify.checkify(f)(XS, a, b)[0].get()
    assert found == ("before (`check` failed)" if not a else "got -1.0 (`check` failed)")
