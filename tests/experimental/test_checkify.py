"""checkify: checks that users write, and those of operations."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.experimental import checkify

ONE = np.float32(1)


def log(x):
    checkify.check(x > 0, "must be positive, got {x} and {}", x * 2, x=x)
    return jnp.log(x)


TEXT = "must be positive, got {} and {} (`check` failed)"


def error_of(f, *args, errors=checkify.user_checks):
    return checkify.checkify(f, errors=errors)(*args)[0].get()


# -- what users ask --------------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize("wrap", [
    lambda f: checkify.checkify(f), lambda f: jax.jit(checkify.checkify(f)),
    lambda f: checkify.checkify(jax.jit(f)), lambda f: checkify.checkify(jax.checkpoint(f)),
])
def test_check(wrap):
    error, value = wrap(log)(ONE)
    assert error.get() is None and error.get_exception() is None and value == 0
    error.throw()
    error, value = wrap(log)(-ONE)
    assert error.get() == TEXT.format(-1.0, -2.0)
    assert isinstance(error.get_exception(), checkify.FailedCheckError)
    assert "test_checkify.py" in error.get_exception().__notes__[0]
    with pytest.raises(checkify.JaxRuntimeError, match="must be positive, got"):
        error.throw()
    assert repr(error) == f"Error({TEXT.format(-1.0, -2.0)})"


def test_unchecked():
    assert log(ONE) == 0
    with pytest.raises(checkify.JaxRuntimeError, match="must be positive"):
        log(-ONE)
    with pytest.raises(ValueError, match="which was not functionalized"):
        jax.jit(log)(ONE)
    assert jax.jit(lambda x: (checkify.debug_check(x > 0, "not seen"), x)[1])(-ONE) == -1
    assert error_of(lambda x: checkify.debug_check(x > 0, "seen"), -ONE) == "seen (`check` failed)"


def test_the_first_failure_stays():
    def f(x):
        checkify.check(x > 0, "first")
        checkify.check(x > 1, "second {}", x)

    assert error_of(f, -ONE) == "first (`check` failed)"
    assert error_of(f, ONE) == "second 1.0 (`check` failed)"
    assert error_of(f, 2 * ONE) is None
    twice = jax.jit(log)
    assert error_of(lambda x: twice(x) + twice(-x), ONE) == TEXT.format(-1.0, -2.0)
    assert error_of(lambda x: twice(-x) + twice(x - 5), ONE) == TEXT.format(-1.0, -2.0)


def test_payloads_are_trees():
    f = lambda d: checkify.check(d["x"].sum() > 9, "{d} {d[x]}", d=d)  # noqa: E731
    assert error_of(f, {"x": np.arange(3, dtype=np.int32)}) == (
        "{'x': Array([0, 1, 2], dtype=int32)} [0 1 2] (`check` failed)")


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: checkify.check(1.0, "a"), TypeError, "check takes a scalar pred"),
    (lambda: checkify.check(jnp.ones(2) > 0, "a"), TypeError, "check takes a scalar pred"),
    (lambda: checkify.check(True, "{}", "a"), TypeError, "need to be PyTrees of arrays"),
    (lambda: checkify.check_error(3), TypeError, "takes an Error"),
    (lambda: checkify.checkify(3), TypeError, "must be callable"),
])
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_errors_are_checked_again():
    error, _ = checkify.checkify(log)(-ONE)
    with pytest.raises(checkify.JaxRuntimeError, match="must be positive"):
        checkify.check_error(error)
    assert error_of(lambda x: checkify.check_error(checkify.checkify(log)(x)[0]), -ONE) == (
        TEXT.format(-1.0, -2.0))
    assert error_of(lambda x: checkify.check_error(checkify.checkify(log)(x)[0]), ONE) is None
    checkify.check_error(checkify.init_error)


# -- transformations and control flow --------------------------------------------------------------


def test_vmap():
    xs = np.float32([1, -1, -2])
    error, values = jax.vmap(checkify.checkify(log))(xs)
    np.testing.assert_array_equal(values, [0, np.nan, np.nan])
    assert error.get() == (f"at mapped index 1: {TEXT.format(-1.0, -2.0)}\n"
                           f"at mapped index 2: {TEXT.format(-2.0, -4.0)}")
    assert error_of(jax.vmap(log), xs) == TEXT.format(-1.0, -2.0)
    assert error_of(jax.vmap(log), -xs[1:]) is None


def test_derivatives():
    assert error_of(jax.grad(log), -ONE) == TEXT.format(-1.0, -2.0)
    assert jax.grad(lambda x: checkify.checkify(log)(x)[1])(2 * ONE) == 0.5
    assert error_of(jax.grad(jax.checkpoint(log)), -ONE) == TEXT.format(-1.0, -2.0)
    assert error_of(jax.hessian(log), ONE) is None


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_control_flow(wrap):
    def check(f, *args):
        error, value = wrap(checkify.checkify(f))(*args)
        return error.get(), value

    error, (carry, ys) = check(
        lambda xs: lax.scan(lambda c, x: (c + x, log(x)), 0.0, xs), np.float32([1, -2, -3]))
    assert error == TEXT.format(-2.0, -4.0) and carry == -4
    np.testing.assert_array_equal(ys, [0, np.nan, np.nan])
    _, (carry, ys) = check(lambda xs: lax.scan(
        lambda c, x: (c + x, log(x)), 0.0, xs, reverse=True), np.float32([1, 2, 4]))
    np.testing.assert_allclose(ys, np.log([1, 2, 4]), rtol=1e-6)

    def below(limit):
        return lambda c: checkify.check(c < limit, "c is {}", c)

    body = lambda c: (below(2)(c), c + 1)[1]  # noqa: E731
    start = np.int32(0)
    assert check(lambda c: lax.while_loop(lambda c: c < 4, body, c), start) == (
        "c is 2 (`check` failed)", 4)
    assert check(lambda c: lax.while_loop(
        lambda c: (below(3)(c), c < 4)[1], lambda c: c + 1, c), start) == (
            "c is 3 (`check` failed)", 4)
    assert check(lambda c: lax.while_loop(lambda c: c < 2, body, c), start) == (None, 2)
    assert check(lambda c: lax.fori_loop(0, 4, lambda i, c: (below(1)(i), c)[1], c), start) == (
        "c is 1 (`check` failed)", 0)
    choose = lambda x: lax.cond(x > 5, jnp.log, log, x)  # noqa: E731
    assert check(choose, -ONE)[0] == TEXT.format(-1.0, -2.0)
    assert check(choose, 6 * ONE)[0] is None
    pick = lambda i, x: lax.switch(i, [log, lambda x: log(x - 3), jnp.sin], x)  # noqa: E731
    assert check(pick, np.int32(1), ONE)[0] == TEXT.format(-2.0, -4.0)
    assert check(pick, np.int32(2), ONE)[0] is None


def test_custom_rules_keep_their_derivatives():
    f = jax.custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(lambda primals, tangents: (f(*primals), 3 * tangents[0]))
    checked = checkify.checkify(lambda x: f(x) / x, errors=checkify.all_checks)
    assert jax.grad(lambda x: checked(x)[1])(ONE) == pytest.approx(3 - np.sin(1), rel=1e-6)
    assert checked(0 * ONE)[0].get() == "division by zero"
    assert error_of(jax.nn.relu, np.float32([np.nan]), errors=checkify.nan_checks) is None


# -- what operations are asked ---------------------------------------------------------------------


@pytest.mark.parametrize(("f", "args", "text"), [
    (jnp.log, (-ONE,), "nan generated by primitive: log."),
    (lambda x: jnp.sin(x) / 0.0 * 0.0, (ONE,), "nan generated by primitive: mul."),
    (jax.nn.softmax, (np.float32([np.nan, 1]),), "nan generated by primitive: sub."),
    (lambda x: lax.scan(lambda c, y: (jnp.log(y), None), 0.0, x), (np.float32([1, -2]),),
     "nan generated by primitive: log."),
    (jnp.exp, (ONE,), None),
    (lambda x: -jnp.floor(jnp.abs(x)).at[0].max(x[1]), (np.float32([np.nan, 1]),), None),
])
def test_nans(f, args, text):
    assert error_of(f, *args, errors=checkify.nan_checks) == text
    assert error_of(jax.jit(f), *args, errors=checkify.nan_checks) == text
    assert error_of(f, *args) is None


@pytest.mark.parametrize(("f", "dtype"), [
    (lambda x, y: x / y, np.float32), (lambda x, y: x / y, np.int32),
    (lambda x, y: x // y, np.float32), (lambda x, y: x // y, np.int32),
    (lambda x, y: x % y, np.float32), (lax.rem, np.float32), (lax.rem, np.int32),
])
def test_divisions(f, dtype):
    x = jnp.ones(3, dtype)
    assert error_of(f, x, jnp.array([1, 0, 2], dtype), errors=checkify.div_checks) == (
        "division by zero")
    assert error_of(f, x, x, errors=checkify.div_checks) is None


A = np.arange(3, dtype=np.float32)


@pytest.mark.parametrize(("f", "index", "at"), [
    (lambda x, i: x[i], 5, (5, 0, 3)), (lambda x, i: x[i], -4, (-1, 0, 3)),
    (lambda x, i: x[i], 2, None), (lambda x, i: x[i], -3, None),
    (lambda x, i: x[i], np.array([0, 7]), (7, 0, 3)),
    (lambda x, i: x.at[i].set(1), np.int32(3), (3, 0, 3)),
    (lambda x, i: x.at[i].add(1), np.array([1, 2]), None),
    (lambda x, i: x.at[i].get(mode="clip"), np.array([5]), (5, 0, 3)),
    (lambda x, i: lax.dynamic_slice(x, (i,), (2,)), np.int32(2), (2, 0, 3)),
    (lambda x, i: lax.dynamic_slice(x, (i,), (2,)), np.int32(1), None),
    (lambda x, i: lax.dynamic_update_slice(x, jnp.ones(2), (i,)), np.int32(-4), (-1, 0, 3)),
    (lambda x, i: jnp.take(x, i), np.int32(3), (3, 0, 3)),
    (lambda x, i: jnp.stack([x, x])[i, 1], np.int32(2), (2, 0, 2)),
    (lambda x, i: jnp.stack([x, x])[1, i], np.int32(3), (3, 1, 3)),
    (lambda x, i: jnp.stack([x, x])[:, i], np.array([3]), (3, 1, 3)),
])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_indices(f, index, at, wrap):
    f = checkify.checkify(f, errors=checkify.index_checks)
    text = wrap(f)(jnp.asarray(A), index)[0].get()
    if at is None:
        assert text is None
    else:
        assert f"index {at[0]} is out of bounds for axis {at[1]} with size {at[2]}. " in text
        assert text.startswith("out-of-bounds indexing for array of shape (")


def test_sets_of_checks():
    assert checkify.all_checks == checkify.automatic_checks | checkify.user_checks
    assert checkify.float_checks == {checkify.NaNError, checkify.DivisionByZeroError}
    assert checkify.index_checks == {checkify.OOBError}
    assert error_of(log, -ONE, errors=checkify.all_checks) == TEXT.format(-1.0, -2.0)
    assert error_of(log, -ONE, errors=checkify.nan_checks) == "nan generated by primitive: log."


def test_what_holds_programs_has_its_effects_once(capfd):
    def noisy(x):
        jax.debug.print("called")
        return jnp.sin(x)

    f = jax.custom_jvp(noisy)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    for errors in (checkify.user_checks, checkify.nan_checks):
        assert error_of(f, ONE, errors=errors) is None
        jax.effects_barrier()
        assert capfd.readouterr().out == "called\n"


def test_checks_in_custom_rules():
    f = jax.custom_vjp(log)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct / x,))
    assert error_of(f, -ONE) == TEXT.format(-1.0, -2.0)
    assert error_of(f, ONE) is None
    assert error_of(f, ONE, errors=checkify.div_checks) is None
    named = lax.composite(log, "my.log")
    assert error_of(named, -ONE) == TEXT.format(-1.0, -2.0)


def test_programs_do_not_depend_on_what_was_checked_before():
    texts = [jax.jit(checkify.checkify(log)).lower(ONE).as_text() for _ in range(2)]
    assert texts[0] == texts[1]


def test_indices_of_64_bits_are_checked_as_they_are():
    with jax.enable_x64(True):
        f = jax.jit(checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks))
        x = jnp.arange(5.0)
        for index in (np.int64(2**32 + 2), np.uint64(2**63 + 2), np.uint32(2**31 + 2)):
            assert "out-of-bounds indexing" in f(x, index)[0].get(), index
        assert f(x, np.int64(2))[0].get() is None
        assert str(2**32 + 2) in f(x, np.int64(2**32 + 2))[0].get()
        at = jax.jit(checkify.checkify(
            lambda x, i: x.at[i].set(0), errors=checkify.index_checks))
        assert "out-of-bounds indexing" in at(x, np.int64(2**32 + 2))[0].get()


def test_literals_keep_the_type_that_they_were_recorded_with():
    with jax.enable_x64(True):
        doubled = jax.jit(checkify.checkify(lambda x: x * 2.5)).trace(np.float64(1))
    assert "f64" in doubled.lower().as_text()


def test_checked_operations_are_of_the_users_lines():
    jaxpr = jax.make_jaxpr(checkify.checkify(jax.numpy.sin, errors=checkify.nan_checks))(1.0)
    (call,) = [e for e in jaxpr.eqns if e.primitive.name == "jit"]
    sine = next(e for e in call.params["jaxpr"].eqns if e.primitive.name == "sin")
    assert "test_checkify" in str(sine.source_info.traceback)


@pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_messages_show_random_keys(wrapped):
    @wrapped
    def f(x, key):
        checkify.check(x > 0, "{x} with {key}", x=x, key=key)
        return x

    keys = jax.random.split(jax.random.key(1))
    shown = str(keys[0]).split("\n")[1]
    error, _ = checkify.checkify(f)(jnp.float32(-1), keys[0])
    assert "-1.0 with" in error.get() and shown in error.get()
    error, _ = checkify.checkify(jax.vmap(f))(jnp.array([-1.0, 1.0]), keys)
    assert shown in error.get()
    with pytest.raises(ValueError, match=r"-1\.0 with Array"):
        checkify.check_error(error)


def test_a_checked_function_keeps_its_documentation_and_attributes():
    def f(x):
        """Of {braces}."""
        return x

    f.cost = 3
    checked = checkify.checkify(f)
    assert (checked.__name__, checked.__doc__, checked.cost) == ("f", "Of {braces}.", 3)
    assert checked.__wrapped__ is f


def test_errors_that_are_not_known_yet_have_a_text():
    checked = checkify.checkify(lambda x: checkify.check(x > 0, "negative"))
    assert repr(jax.eval_shape(checked, ONE)[0]).startswith("Error(ShapeDtypeStruct(")
    seen = []
    jax.jit(lambda x: seen.append(repr(checked(x)[0])))(ONE)
    assert seen[0].startswith("Error(") and "bool[]" in seen[0]
    assert repr(checked(-ONE)[0]) == "Error(negative (`check` failed))"


def test_a_text_is_no_set_of_errors():
    with pytest.raises(TypeError, match=r"a set of errors such as checkify\.nan_checks, got 'nan'"):
        checkify.checkify(jnp.log, errors="nan")
