"""`inspect.check_rules`: which rule is wrong, at which operand."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import inspect, lax
from pyjx.extend.core import Primitive
from pyjx.interpreters import ad

W = np.random.default_rng(0).standard_normal((3, 3)).astype("f4")
X = np.linspace(-1, 1, 3).astype("f4")


def with_vjp(forward, backward, name="product"):
    def product(x, y):
        return x * jnp.sin(y)

    product.__name__ = name
    made = jax.custom_vjp(product)
    made.defvjp(forward or (lambda x, y: (product(x, y), (x, y))), backward)
    return made


RIGHT = with_vjp(None, lambda r, g: (g * jnp.sin(r[1]), g * r[0] * jnp.cos(r[1])))
WRONG = {
    "a sign": (1, lambda r, g: (g * jnp.sin(r[1]), -g * r[0] * jnp.cos(r[1]))),
    "a factor": (0, lambda r, g: (2 * g * jnp.sin(r[1]), g * r[0] * jnp.cos(r[1]))),
    "a term": (1, lambda r, g: (g * jnp.sin(r[1]), g * r[0])),
    "operands that changed places": (0, lambda r, g: (g * r[0] * jnp.cos(r[1]),
                                                      g * jnp.sin(r[1]))),
    "a cotangent that is left out": (0, lambda r, g: (0 * r[0], g * r[0] * jnp.cos(r[1]))),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("where", ["plain", "jit", "scan", "cond", "remat"])
def test_wrong_rules(name, where):
    operand, backward = WRONG[name]
    product = with_vjp(None, backward)

    def call(x, y):
        return product(x, y)  # HERE

    f = {"plain": call, "jit": jax.jit(call), "remat": jax.checkpoint(call),
         "scan": lambda x, y: lax.scan(lambda c, _: (call(c, y), None), x, None, 3)[0],
         "cond": lambda x, y: lax.cond(x.sum() > -9, call, lambda x, y: x, x, y)}[where]
    found = inspect.check_rules(lambda x, y: jnp.tanh(f(x @ W, y)).sum(), X, X + 0.5)
    assert not found and (found.wrong[0].operation, found.wrong[0].operand,
                          found.wrong[0].mode) == ("product", operand, "cotangent")
    assert "HERE" in linecache.getline(__file__, found.wrong[0].line.start_line)
    assert len({rule.operation for rule in found.wrong}) == 1


def test_wrong_tangents():
    @jax.custom_jvp
    def twice(x, y):
        return jnp.sin(x) * y

    @twice.defjvp
    def rule(primals, tangents):
        x, y = primals
        return twice(x, y), jnp.cos(x) * y * tangents[0] + 2 * jnp.sin(x) * tangents[1]

    found = inspect.check_rules(lambda x: twice(x, x * 2).sum(), X)
    assert [(r.operation, r.mode, r.operand) for r in found.wrong] == [("twice", "tangent", 1)]
    assert str(found).startswith("3 operations checked, 1 wrong rule\n")


@pytest.mark.parametrize(("operand", "words", "backward"), [
    (1, r"output[1] the bwd rule produced", lambda r, g: (g * jnp.sin(r[1]), g * r[0])),
    (None, "one of 1", lambda r, g: (g * jnp.sin(r[1]),))], ids=["shape", "number"])
def test_rules_that_grad_refuses(operand, words, backward):
    product = with_vjp(None, backward)
    found = inspect.check_rules(lambda x, y: product(x, y).sum(), X, 0.5)
    (rule,) = found.wrong
    assert not found and (rule.operation, rule.mode, rule.operand) == (
        "product", "cotangent", operand)
    assert words in rule.error and rule.error in str(found)


def test_what_is_refused_in_double_precision_alone_is_not_wrong():
    @jax.custom_jvp
    def twice(x):
        return 2 * x

    twice.defjvp(lambda primals, tangents: (2 * primals[0], 2 * tangents[0].astype("f4")))
    found = inspect.check_rules(lambda x: jnp.sin(twice(x)).sum(), X)
    assert found and [name for name, _ in found.passed_by] == ["twice"], found


@pytest.mark.parametrize("mode", ["jvp", "vjp"])
def test_rules_that_give_another_value(mode):
    def twice(x):
        return 2 * x

    if mode == "jvp":
        made = jax.custom_jvp(twice)
        made.defjvp(lambda primals, tangents: (3 * primals[0], 2 * tangents[0]))
    else:
        made = jax.custom_vjp(twice)
        made.defvjp(lambda x: (3 * x, None), lambda _, g: (2 * g,))
    found = inspect.check_rules(lambda x: made(x).sum(), jnp.array([0.0, 2.0]))
    (rule,) = found.wrong
    assert (rule.operation, rule.mode, rule.found, rule.expected) == ("twice", "primal", 6, 4)
    assert "has an element 6, where the function gives 4" in str(found)


def test_rules_that_give_nan_where_the_function_does():
    logs = jax.custom_jvp(jnp.log)
    logs.defjvp(lambda primals, tangents: (jnp.log(primals[0]), tangents[0] / primals[0]))
    assert not inspect.check_rules(lambda x: logs(x).sum(), jnp.array([-1.0, 0, 2])).wrong


def test_nothing_to_check_is_no_pass():
    found = inspect.check_rules(lambda x: x * 2, jnp.arange(3))
    assert not found and not found.wrong and "nothing was checked" in str(found)


def test_what_is_right():
    def f(x, w):
        c, ys = lax.scan(lambda c, y: (jnp.tanh(c @ w + y), RIGHT(c, y).sum()), x, jnp.ones((5, 3)))
        z = jax.nn.softmax(c) + jax.nn.gelu(c) + jax.nn.relu(c) + jnp.where(c > 0, c, c * 2)
        return (jnp.linalg.norm(z) + ys.sum() + jnp.linalg.inv(w).sum() + jnp.sort(c)[0]
                + jnp.linalg.cholesky(w @ w.T + jnp.eye(3)).sum()
                + jax.checkpoint(lambda z: jnp.exp(z).sum())(lax.stop_gradient(z)))

    found = inspect.check_rules(f, X, W)
    assert found and found.checked > 30, found
    assert [name for name, _ in found.passed_by] == ["scan", "solve", "stop_gradient"]
    assert "not checked: scan, since" in str(inspect.RuleCheck((), 1, (("scan", "since"),)))


def kinked(factor):
    def relu(x):
        return jnp.where(x > 0, x, 0)

    made = jax.custom_vjp(relu)
    made.defvjp(lambda x: (relu(x), x), lambda x, g: (jnp.where(x > 0, factor * g, 0),))
    return made


def ridge(factor):
    def loss(w):
        return (w * w).sum() + 0.1 * jnp.abs(w).sum()

    made = jax.custom_vjp(loss)
    made.defvjp(lambda w: (loss(w), w), lambda w, g: (factor * g * (2 * w + 0.1 * jnp.sign(w)),))
    return made


def huber(x):
    return jnp.where(jnp.abs(x) <= 1, x * x / 2, jnp.abs(x) - 0.5)


KINKED = {"abs": jnp.abs, "relu": jax.nn.relu, "relu6": jax.nn.relu6, "huber": huber,
          "own": kinked(1), "summed": ridge(1), "clip": lambda x: jnp.clip(x, 0.0, 2.0),
          "cbrt": jnp.cbrt, "sort": jnp.sort}
POINTS = [[0.0, 1.0, 2.0], [0.0, 1.0], [0.0] * 3, np.linspace(-1, 1, 5), range(7),
          [0.0, *np.random.default_rng(1).standard_normal(60)], [0.0, 0.5, 1e3]]


@pytest.mark.parametrize("x", POINTS, ids=range(len(POINTS)))
@pytest.mark.parametrize("name", KINKED)
def test_what_is_right_where_elements_lie_on_kinks(name, x):
    x = jnp.array(x, "f4")
    found = inspect.check_rules(lambda x: KINKED[name](x).sum(), x)
    assert found and not found.passed_by, found


@pytest.mark.parametrize("x", POINTS, ids=range(len(POINTS)))
@pytest.mark.parametrize("wrong", [kinked(1.05), ridge(1.05)], ids=["own", "summed"])
def test_wrong_rules_where_elements_lie_on_kinks(wrong, x):
    found = inspect.check_rules(lambda x: wrong(x).sum(), jnp.array(x, "f4"))
    assert [rule.operand for rule in found.wrong] == [0], found


def test_wrong_rules_where_the_derivative_is_zero():
    square = jax.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (x * x, x), lambda x, g: (g * (2 * x + 0.1),))
    assert inspect.check_rules(square, 0.0).wrong


@pytest.mark.parametrize("f", [
    jnp.linalg.eigh, jnp.linalg.eigvalsh, lambda a: lax.linalg.eigh(a, symmetrize_input=False),
    lambda a: jax.scipy.linalg.solve(a, a[0], assume_a="pos"),
    lambda a: jax.random.gamma(jax.random.key(0), a[0], (2, 3)),
    lambda a: jax.random.beta(jax.random.key(0), a[0], a[1])])
def test_what_is_right_of_symmetric_matrices_and_by_implicit_derivatives(f):
    found = inspect.check_rules(f, W @ W.T + 3 * jnp.eye(3))
    assert found.checked and not found.wrong, found


@pytest.mark.parametrize("name", ["custom_linear_solve", "solve", "stop_gradient", "eigh"])
def test_primitives_of_the_users_are_no_others_for_their_name(name):
    made = Primitive(name)
    made.def_impl(np.sin)
    made.def_abstract_eval(lambda x: x)
    ad.primitive_jvps[made] = lambda primals, tangents: (
        made.bind(*primals), 2 * jnp.cos(primals[0]) * tangents[0])
    found = inspect.check_rules(lambda x: made.bind(x), W)
    assert [(rule.operation, rule.operand) for rule in found.wrong] == [(name, 0)], found


def wave(factor):
    made = jax.custom_jvp(lambda x: jnp.exp(1j * x))
    made.defjvp(lambda primals, tangents: (
        made(*primals), factor * made(*primals) * tangents[0]))
    return made


def power(backward):
    made = jax.custom_vjp(lambda z: (z * jnp.conj(z)).real)
    made.defvjp(lambda z: (made(z), z), lambda z, g: (backward(z, g),))
    return made


@pytest.mark.parametrize("f", [
    lambda factor: lambda x: jnp.real(wave(factor)(x)).sum(),
    lambda factor: lambda x: jnp.abs(wave(factor)(x) + x).sum(),
    lambda factor: lambda x: wave(factor)(x * (1 + 1j))])
def test_tangents_of_complex_values(f):
    assert inspect.check_rules(f(1j), jnp.arange(3.0))
    found = inspect.check_rules(f(2j), jnp.arange(3.0))
    assert [(r.mode, r.operand) for r in found.wrong] == [("tangent", 0)], found


@pytest.mark.parametrize("f", [
    lambda power: lambda x: power(x * (1 + 2j)).sum(),
    lambda power: lambda x: power(jnp.fft.fft(x))])
def test_cotangents_of_complex_operands(f):
    x = jnp.arange(4.0) + 1
    assert inspect.check_rules(f(power(lambda z, g: 2 * g * jnp.conj(z))), x)
    found = inspect.check_rules(f(power(lambda z, g: 2 * g * z)), x)  # not conjugated
    assert [(r.mode, r.operand) for r in found.wrong] == [("cotangent", 0)], found


def test_refusals_and_values_of_complex_rules():
    z = jnp.arange(3.0) + 2j
    (rule,) = inspect.check_rules(power(lambda z, g: g[0] * z[0]), z).wrong
    assert rule.error and rule.operand == 0, rule
    made = jax.custom_jvp(lambda z: 2 * z)
    made.defjvp(lambda primals, tangents: (3 * primals[0], 2 * tangents[0]))
    (rule,) = inspect.check_rules(made, z).wrong
    assert (rule.mode, rule.found, rule.expected) == ("primal", 6j, 4j) and "6j" in str(rule)


@pytest.mark.parametrize("f", [
    jnp.exp, jnp.log, jnp.sqrt, jnp.abs, jnp.conj, jnp.angle, jnp.tanh, jnp.fft.rfft, jnp.fft.irfft,
    jnp.linalg.inv, jnp.linalg.norm, jnp.linalg.eigvals, jnp.linalg.qr, lambda a: a ** a @ a,
    lambda a: jnp.linalg.cholesky(a @ a.conj().T + jnp.eye(3)),
    lambda a: lax.scan(lambda c, x: (c * x, jnp.real(c)), a[0], a)])
def test_what_is_right_of_complex_numbers(f):
    x = W if f is jnp.fft.rfft else W + 1j * W[::-1].T
    assert inspect.check_rules(f, x)


@pytest.mark.parametrize("f", [jnp.linalg.eigh, lambda a: jnp.linalg.svd(a)])
def test_vectors_of_any_phase_are_passed_by(f):
    found = inspect.check_rules(f, W + 1j * W[::-1].T)
    assert not found.wrong and "any phase" in str(found), found


def test_check_grads_names_the_rule():
    product = with_vjp(None, WRONG["a sign"][1], "bilinear")
    with pytest.raises(AssertionError) as raised:
        jax.test_util.check_grads(lambda x: product(x, x).sum(), (X,), 1, ["rev"])
    notes = "".join(raised.value.__notes__)
    assert "Wrong: the cotangent of operand 1 of bilinear" in notes and "the sign is wrong" in notes


@pytest.mark.parametrize(("f", "line"), [
    (lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, 3)[0],
     "scan, as the operations in it are, in iteration 0 of scan"),
    (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
     "cond, as the operations in it are, in branch 1 of cond"),
    (lambda x: jnp.sin(lax.scan(lambda c, _: (jnp.sin(c), None), x, None, 0)[0]),
     "scan, whose program was not looked into"),
    (lambda x: jnp.sin(lax.stop_gradient(x)),
     "stop_gradient, which has another derivative on purpose"),
    (lambda x: jnp.log(x - 5), "log, which is not smooth at its operands")])
def test_what_is_not_checked_has_a_reason(f, line):
    assert f"not checked: {line}" in str(inspect.check_rules(f, jnp.ones(3)))
