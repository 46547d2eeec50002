"""Transformations of nested `jit`: the same as without it, and derived once."""

import itertools
import math

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.check import check_jaxpr
from pyjx.core.effects import Effect
from pyjx.core.named_axes import Axis
from pyjx.core.primitive import Primitive
from pyjx.engine import subjaxprs

v = np.linspace(0.2, 1.0, 4).astype(np.float32)
w = np.linspace(-1.0, 2.0, 4).astype(np.float32)
constant = np.arange(100, dtype=np.float32)


def plain(a, b):
    return jnp.sin(a) * b


def unused_output(a, b):
    return jnp.sin(a) * b, jnp.cos(a), a


def zero_derivative(a, b):
    return jnp.floor(a) + b, jnp.sign(b)


def integer_output(a, b):
    return a * b, jnp.argmax(a), (a > b)


def with_constant(a, b):
    return a * jnp.asarray(constant[:4]) + b * constant.sum()


def passes_through(a, b):
    return b, a, 2.0, a * b


def nested(a, b):
    inner = jax.jit(lambda p, q: (p * q, jnp.tanh(q)))
    return inner(a, b)[0] + inner(b, a)[1], inner(a, a)[0]


def linear_in_one(a, b):
    return (a * 2 + a[::-1], b)


FUNCTIONS = [plain, unused_output, zero_derivative, integer_output, with_constant, passes_through,
             nested, linear_in_one]


def floats(tree):
    return [x for x in jax.tree_util.tree_leaves(tree)
            if np.issubdtype(jnp.asarray(x).dtype, np.floating)]


def scalar(f):
    return lambda a, b: sum(jnp.sum(x) for x in floats(f(a, b))[:1])


def same(actual, expected):
    for a, e in itertools.zip_longest(jax.tree_util.tree_leaves(actual),
                                      jax.tree_util.tree_leaves(expected)):
        assert np.shape(a) == np.shape(e)
        if getattr(a, "dtype", None) != jax.float0:
            np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_value_and_derivatives(f):
    g = jax.jit(f)
    same(g(v, w), f(v, w))
    same(jax.jvp(g, (v, w), (w, v)), jax.jvp(f, (v, w), (w, v)))
    for argnums in (0, 1, (0, 1)):
        same(jax.grad(scalar(g), argnums)(v, w), jax.grad(scalar(f), argnums)(v, w))
        same(jax.jit(jax.grad(scalar(g), argnums))(v, w), jax.grad(scalar(f), argnums)(v, w))
    same(jax.jvp(lambda a: g(a, w), (v,), (w,)), jax.jvp(lambda a: f(a, w), (v,), (w,)))


@pytest.mark.parametrize("f", FUNCTIONS)
def test_second_derivatives(f):
    g = jax.jit(f)
    for outer, inner in itertools.product((jax.jacfwd, jax.jacrev), repeat=2):
        same(outer(inner(scalar(g)))(v, w), outer(inner(scalar(f)))(v, w))


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 0)])
def test_batches(f, axes):
    g = jax.jit(f)
    sizes = [np.stack([x, x * 2, x + 1], axis) if axis is not None else x
             for x, axis in zip((v, w), axes, strict=True)]
    same(jax.vmap(g, axes)(*sizes), jax.vmap(f, axes)(*sizes))
    same(jax.vmap(jax.grad(scalar(g)), axes)(*sizes), jax.vmap(jax.grad(scalar(f)), axes)(*sizes))
    same(jax.jit(jax.vmap(g, axes))(*sizes), jax.vmap(f, axes)(*sizes))


@pytest.mark.parametrize("f", FUNCTIONS)
def test_jaxprs_of_transformed_calls_are_legal(f):
    g = jax.jit(f)
    batch = np.stack([v, w]), np.stack([w, v])
    for transformed, args in (
        (lambda a, b: jax.jvp(g, (a, b), (b, a)), (v, w)), (jax.grad(scalar(g), (0, 1)), (v, w)),
        (jax.jacfwd(jax.grad(scalar(g))), (v, w)), (jax.vmap(g), batch),
        (jax.vmap(jax.grad(scalar(g))), batch),
    ):
        check_jaxpr(jax.make_jaxpr(transformed)(*args))


@pytest.mark.parametrize("f", FUNCTIONS)
def test_linearize_and_transpose(f):
    g = jax.jit(f)
    out, map_g = jax.linearize(g, v, w)
    expected, map_f = jax.linearize(f, v, w)
    same(out, expected)
    same(map_g(w, v), map_f(w, v))


def test_transpose_of_a_call():
    g = jax.jit(lambda a: (a * 2.0 + a[::-1], a.sum()))
    (ct,) = jax.linear_transpose(g, v)((w, np.float32(1)))
    same(ct, w * 2 + w[::-1] + 1)


def test_residuals_and_constants_of_outer_traces():
    def f(a):
        g = jax.jit(lambda b: b * a * constant[:4])
        return jnp.sum(g(jnp.sin(a)) * g(a))

    same(jax.grad(f)(v), jax.jit(jax.grad(f))(v))
    same(jax.vmap(jax.grad(f))(np.stack([v, w])), np.stack([jax.grad(f)(v), jax.grad(f)(w)]))


def test_zero_tangents_and_cotangents_are_not_computed():
    g = jax.jit(lambda a, b: (jnp.sin(a), jnp.exp(b)))
    text = str(jax.make_jaxpr(jax.grad(lambda a: g(a, w)[0].sum()))(v))
    assert text.count("exp ") == 1  # its value, and no derivative
    text = str(jax.make_jaxpr(lambda a: jax.jvp(lambda a: g(a, w), (a,), (a,)))(v))
    assert text.count("exp ") == 1


def test_derived_jaxprs_are_kept():
    g = jax.jit(plain)
    text = str(jax.make_jaxpr(jax.grad(lambda a: (g(a, w) + g(a * 2, w)).sum()))(v))
    assert text.startswith("let plain = ")  # printed once, used twice
    assert text.count("let plain") == 2  # forward and backward
    jaxpr = g.trace(v, w).jaxpr
    first = subjaxprs.batch_jaxpr(jaxpr, (0, None), Axis(None, 4))
    assert subjaxprs.batch_jaxpr(jaxpr, (0, None), Axis(None, 4)) is first
    for derive in (subjaxprs.jvp_jaxpr, subjaxprs.linearize_jaxpr):
        assert derive(jaxpr, (True, False)) is derive(jaxpr, (True, False))


def test_effects_go_through():
    noise = Effect()
    noise_p = Primitive(
        "test_call_noise", shape_rule=lambda a: a, effects=lambda params: frozenset({noise}),
        jvp=lambda p, t: (noise_p.bind(*p), t[0]),
        batch=lambda p, d: (noise_p.bind(*p), d[0]))
    g = jax.jit(lambda a: noise_p.bind(a) * 2)
    for f in (g, lambda a: jax.jvp(g, (a,), (a,)), jax.vmap(g), jax.grad(lambda a: g(a).sum())):
        closed = jax.make_jaxpr(f)(v)
        check_jaxpr(closed)
        assert closed.effects == {noise}


def test_integer_arguments():
    g = jax.jit(lambda a, n: a * n)
    same(jax.grad(lambda a: g(a, 3).sum())(v), np.full(4, 3.0))
    out, tangent = jax.jvp(lambda n: g(v, n), (3,), (np.zeros((), jax.float0),))
    same(out, v * 3)
    same(tangent, np.zeros(4))
    grad = jax.grad(lambda n: g(v, n).sum(), allow_int=True)(3)
    assert grad.dtype == jax.float0


def test_functions_without_arguments_or_results():
    nothing = jax.jit(lambda: None)
    ones = jax.jit(lambda: jnp.ones(3))
    same(jax.jvp(lambda a: (nothing(), ones() * a)[1], (2.0,), (1.0,)),
         (np.full(3, 2.0), np.ones(3)))
    same(jax.vmap(lambda a: ones() * a)(v), np.outer(v, np.ones(3)))
    same(jax.grad(lambda a: jax.jit(lambda: a * 2)())(1.0), 2.0)


@pytest.mark.parametrize(("run", "x_goes", "y_goes"), [
    (lambda f, x, y: jax.vmap(f)(x, y), True, True),
    (lambda f, x, y: jax.jvp(f, (x, y), (x + 0, y + 0)), True, True),
    (lambda f, x, y: jax.grad(lambda x, y: f(x, y).sum())(x, y), True, False),  # dx = cos(x) y
    (lambda f, x, y: jax.vjp(f, x, y)[1](jnp.ones(3)), True, False),
    (lambda f, x, y: jax.jit(f)(x, y), False, False),
    (lambda f, x, y: jax.jit(jax.grad(lambda x, y: f(x, y).sum()))(x, y), False, False),
], ids=["vmap", "jvp", "grad", "vjp", "jit", "jit-grad"])
@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_donation_under_eager_transformations(run, x_goes, y_goes):
    for donated in ((0,), (1,)):
        f = jax.jit(lambda x, y: jnp.sin(x) * y, donate_argnums=donated)
        x, y = jnp.arange(3.0), jnp.ones(3)
        run(f, x, y)
        gone = x_goes and donated == (0,), y_goes and donated == (1,)
        assert (x.is_deleted(), y.is_deleted()) == gone


LINEAR = {
    "counter of a loop": lambda v: lax.fori_loop(0, 3, lambda i, c: c * (i + 1.0), v),
    "loop in a loop": lambda v: lax.fori_loop(0, 2, lambda j, d: lax.fori_loop(
        0, 3, lambda i, c: c * (i + 1.0) * (j + 1.0), d), v),
    "known results": lambda v: lax.scan(
        lambda c, _: ((c[0] + 1, c[1] * c[0]), jnp.sin(1.0 * c[0])), (1, v), None, length=4
        )[1].sum() * v,
    "known result of a branch": lambda v: math.prod(lax.cond(
        v.shape == (3,), lambda a, k: (a * k, k + 1), lambda a, k: (a, k), v, 3.0)),
    "index": lambda v: lax.fori_loop(0, 3, lambda i, c: c.at[i].multiply(i + 1.0), v),
    "switch": lambda v: lax.scan(lambda c, i: (lax.switch(
        i, [lambda a: a, lambda a: 2 * a, lambda a: a[::-1]], c), None), v, jnp.arange(3))[0],
}


@pytest.mark.parametrize("wrap", [jax.jit, jax.checkpoint, lambda f: jax.jit(jax.checkpoint(f))],
                         ids=["jit", "checkpoint", "both"])
@pytest.mark.parametrize("name", LINEAR)
def test_transposed_calls_hold_what_is_known(name, wrap):
    f, x, ct = LINEAR[name], jnp.arange(1.0, 4.0), jnp.arange(3.0)
    wanted = jnp.stack([f(e) for e in jnp.eye(3)]) @ ct
    (found,) = jax.linear_transpose(wrap(f), x)(ct)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda v: wrap(f)(v) @ ct)(x), wanted, rtol=1e-6)


def test_solvers_transpose_jitted_maps_with_loops():
    @jax.jit
    def scaled(v):
        return lax.fori_loop(0, 2, lambda i, c: c * (i + 2.0), v)

    b = jnp.arange(1.0, 4.0)
    found = jax.grad(lambda b: jax.scipy.sparse.linalg.gmres(scaled, b)[0].sum())(b)
    np.testing.assert_allclose(found, np.full(3, 1 / 6), rtol=1e-5)
