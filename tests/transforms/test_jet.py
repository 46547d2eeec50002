"""Taylor mode, against nested forward mode."""

import math
from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.trace import new_level
from pyjx.experimental.jet import (
    def_comp,
    def_deriv,
    deflinear,
    defzero,
    fact,
    jet,
    jet2,
    jet_rules,
)

X = np.float64([0.3, 0.5, 0.8])
SERIES = [np.float64(s) for s in ([1, 2, 0.5], [0.1, 0.2, 0.3], [0.5, -0.2, 0.3], [0.7, 0.1, -0.4])]


@pytest.fixture(autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


def along_the_curve(f, order):
    """The derivatives by nested forward mode of f along the curve with these derivatives."""
    def curve(t):
        return f(X + sum([s * t**k / math.factorial(k) for k, s in enumerate(SERIES, 1)]))

    derivatives = []
    for _ in range(order):
        curve = (lambda g: lambda t: jax.jvp(g, (t,), (1.0,))[1])(curve)
        derivatives.append(jax.jit(curve)(0.0))
    return derivatives


FUNCTIONS = {
    **{f.__name__: f for f in (
        jnp.sin, jnp.cos, jnp.exp, jnp.log, jnp.tanh, jnp.log1p, jnp.expm1, jnp.sqrt, jnp.sinh,
        jnp.cosh, jnp.arctan, jnp.arcsin, jnp.arccos, jnp.tan, jnp.exp2, jnp.cumprod, jnp.cumsum,
        jnp.square, jnp.sum, jnp.prod, jnp.max, jnp.mean, jnp.std)},
    "powers": lambda x: x**3 + x**-2 + x**2.5 + lax.rsqrt(x), "erf": lax.erf,
    "lgamma": lax.lgamma, "logistic": jax.nn.sigmoid, "softplus": jax.nn.softplus,
    "softmax": jax.nn.softmax, "gelu": jax.nn.gelu, "relu": lambda x: jax.nn.relu(x - 0.4),
    "quotient": lambda x: jnp.sin(x) / (1 + x), "of a constant": lambda x: 2 / x + x / 3 - 1,
    "product": lambda x: jnp.outer(x, x) @ jnp.sin(x), "sort": lambda x: jnp.sort(-x) * x,
    "where": lambda x: jnp.where(x > 0.4, x * x, jnp.sin(x)), "indices": lambda x: x[::2] * x[1],
    "at": lambda x: jnp.asarray(x).at[1].set(x[0] ** 2), "jit": jax.jit(lambda x: jnp.sin(x) * x),
    "cond": lambda x: lax.cond(True, jnp.sin, jnp.cos, x), "atan2": lambda x: jnp.arctan2(x, x * x),
    "scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c) * x, None), x, None, length=2)[0],
    "while": lambda x: lax.while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * x), (0, x))[1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_nested_forward_mode(name):
    f = FUNCTIONS[name]
    order = 2 if name in ("scan", "while") else 3
    out, series = jax.jit(lambda x, s: jet(f, (x,), (s,)))(X, SERIES[:order])
    np.testing.assert_allclose(out, f(X), rtol=1e-12)
    assert len(series) == order
    for got, want in zip(series, along_the_curve(f, order), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_several_arguments_and_trees():
    out, series = jet(lambda d, y: {"u": d["a"] * y, "v": (d["b"],)}, ({"a": X, "b": 2.0}, X),
                      ([{"a": SERIES[0], "b": 1.0}], [SERIES[1]]))
    np.testing.assert_allclose(out["u"], X * X)
    np.testing.assert_allclose(series["u"][0], X * SERIES[1] + X * SERIES[0])
    assert series["v"][0] == [1.0]


def test_taylor_coefficients():
    scaled = [s / math.factorial(k) for k, s in enumerate(SERIES, 1)]
    derivatives = jet(jnp.sin, (X,), (SERIES,))[1]
    for k, c in enumerate(jet(jnp.sin, (X,), (scaled,), factorial_scaled=False)[1], 1):
        np.testing.assert_allclose(c, derivatives[k - 1] / math.factorial(k))


def test_constants_and_curves_of_no_order():
    assert jet(lambda x: 3.0, (0.5,), ([1.0, 0.0],)) == (3.0, [0.0, 0.0])
    assert jet(jnp.sin, (X,), ([],))[1] == []


def test_inside_and_outside_of_other_transformations():
    second = lambda x: jet(jnp.sin, (x,), ([1.0, 0.0],))[1][1]  # noqa: E731
    np.testing.assert_allclose(jax.grad(second)(0.3), -np.cos(0.3))
    np.testing.assert_allclose(jax.vmap(second)(X), -np.sin(X))
    _, series = jet(jax.grad(lambda x: jnp.sin(x) * x), (0.3,), ([1.0],))
    np.testing.assert_allclose(series[0], 2 * np.cos(0.3) - 0.3 * np.sin(0.3))


def test_rules_of_users():
    try:
        jet_rules[lax.sin_p] = lambda primals, series, **params: (
            lax.cos(*primals), [2 * series[0][0], 0 * series[0][1]])
        result = jet(lambda x: lax.sin(x) + x, (0.0,), ([1.0, 5.0],))
    finally:
        del jet_rules[lax.sin_p]
    assert result == (1, [3.0, 5.0])


@pytest.mark.parametrize(("primals", "series", "error", "message"), [
    ((X,), ([X], [X]), ValueError, "a list of terms for each primal, got 1 primal and 2 lists"),
    ((X, X), ([X], [X, X]), ValueError, "jet terms have inconsistent lengths"),
    ((X,), ([X[:2]],), ValueError, r"term 1 for argument 0 has shape \(2,\), its primal \(3,\)"),
    ((X,), ([(X,)],), ValueError, "term 1 for argument 0 has the structure"),
])
def test_bad_arguments(primals, series, error, message):
    with pytest.raises(error, match=message):
        jet(lambda *args: args[0], primals, series)


def test_series_of_python_numbers_stay_weak():
    assert all(y.weak_type for y in jet(jnp.sin, (0.5,), ([1.0, 0.0],))[1])
    assert not any(y.weak_type for y in jet(jnp.sin, (jnp.float32(0.5),), ([1.0, 0.0],))[1])


def test_what_is_discrete_has_no_derivative():
    through_ints = lambda x: x.astype("int32").astype("float32")  # noqa: E731
    x = jnp.float32(2.5)
    assert jet(through_ints, (x,), ([3.0, 0.0],)) == (2, [0, 0])
    assert jet(lambda x: x * through_ints(x), (x,), ([3.0, 0.0],)) == (5, [6, 0])
    out, series = jet(lambda x: (x.astype("int32"), x > 1, jnp.argmax(x)), (x,), ([3.0, 1.0],))
    assert out == (2, True, 0)
    assert all(t == 0 and t.dtype == p.dtype
               for p, terms in zip(out, series, strict=True) for t in terms)


PROGRAMS = {
    "scan": lambda x: lax.scan(lambda c, d: (jnp.sin(c) * d, c * 2), x, jnp.stack([x, x * x])),
    "scan of some": lambda x: lax.scan(  # the second component moves from the second step on
        lambda c, _: ((c[0] * x, c[0] + c[1], c[2] + 1), c[1]), (x, 1 + 0 * X, 0.0), length=4),
    "while": lambda x: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x, s[1]), (0, x, 0 * X))[1:],
    "bounded while": lambda x: lax.while_loop(
        lambda s: s[0] < 9, lambda s: s * x + 1, x, max_steps=3) if x.ndim == 0 else x * x,
    "condition that moves": lambda x: lax.while_loop(
        lambda s: (s[1] < x[0] * 4)[()], lambda s: (s[0] * x, s[1] + x[1]), (x, x[1] * 0))[0],
    "switch": lambda x: lax.switch(1, [lambda x: (x, X), lambda x: (X, x * x)], x),
    "cond of a curve": lambda x: lax.cond(x[0] > 0.1, jnp.sin, lambda x: X, x),
    "remat": jax.checkpoint(lambda x: jnp.sin(x) * x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_as_nested_forward_mode(name):
    f = PROGRAMS[name]
    _, series = jax.jit(lambda x, s: jet(f, (x,), (s,)))(X, SERIES)
    want = along_the_curve(f, len(SERIES))
    for leaf, terms in enumerate(jax.tree.leaves(series, is_leaf=lambda x: type(x) is list)):
        for k, got in enumerate(terms):
            np.testing.assert_allclose(got, jax.tree.leaves(want[k])[leaf], rtol=1e-9, atol=1e-9)


def equations(jaxpr):
    return sum(1 + sum(map(equations, jax.core.jaxprs_in_params(e.params))) for e in jaxpr.eqns)


POLYNOMIAL = {
    **{name: PROGRAMS[name] for name in ("scan", "while", "cond of a curve", "remat")},
    "powers": lambda x: x ** 5 + x ** -3 + jnp.square(x), "fft": lambda x: jnp.fft.fft(x).real,
    "collected": lambda x: jnp.stack([x, jnp.tile(x, 1)]), "scatter": lambda x: x.at[0].add(-x[1]),
}


@pytest.mark.parametrize("name", POLYNOMIAL)
def test_size_grows_with_a_power_of_the_order(name):
    def size(order):
        series = [SERIES[0]] * order
        return equations(jax.make_jaxpr(lambda x: jet(POLYNOMIAL[name], (x,), (series,)))(X).jaxpr)

    assert size(12) < 5 * size(6)  # a square gives 4, doubling 64


@pytest.mark.parametrize("in_program", [lambda f: f, jax.jit, jax.checkpoint, lambda f: (
    lambda x: lax.cond(x[0] > 0, f, lambda x: x, x))])
def test_effects_happen_once(in_program):
    seen = []

    def f(x):
        jax.debug.callback(lambda x: seen.append(float(x[0])), x)
        return x * x

    jet(in_program(f), (X,), (SERIES,))
    jax.effects_barrier()
    assert seen == [0.3]


def test_rules_of_operations_of_others():
    def new(name, impl):
        primitive = jax.extend.core.Primitive(name)
        primitive.def_impl(impl)
        primitive.def_abstract_eval(lambda a: a)
        return primitive

    given = ((0.3,), ([1.0, 6.0, 24.0],))
    seen_p = new("jet_seen", lambda x: x)
    jet_rules[seen_p] = lambda primals, series: (primals[0], [2 * c for c in series[0]])
    out, series = jet(seen_p.bind, *given)
    np.testing.assert_allclose(series, [2, 12, 48], rtol=1e-6)
    seen = []
    jet_rules[seen_p] = lambda primals, series: (seen.extend(series[0]), (primals[0], series[0]))[1]
    jet(seen_p.bind, *given)
    np.testing.assert_allclose(seen, [1, 3, 4], rtol=1e-6)  # Taylor coefficients

    tanh_p = new("jet_tanh", jnp.tanh)
    def_deriv(tanh_p, lambda x: 1 - jnp.tanh(x) ** 2)
    comp_p = new("jet_comp", lambda x: 2 * jnp.sin(x))
    def_comp(comp_p, lambda x: 2 * jnp.sin(x))
    halve_p = new("jet_halve", lambda x: x / 2)
    deflinear(halve_p)
    for primitive, same in ((tanh_p, jnp.tanh), (comp_p, lambda x: 2 * jnp.sin(x)),
                            (halve_p, lambda x: x / 2)):
        for scaled in (True, False):
            jax.tree.map(partial(np.testing.assert_allclose, rtol=2e-6),
                         jet(primitive.bind, *given, factorial_scaled=scaled),
                         jet(same, *given, factorial_scaled=scaled))
    floor_p = new("jet_floor", jnp.floor)
    defzero(floor_p)
    out, series = jet(floor_p.bind, *given)
    assert out == 0 and series == [0, 0, 0]
    np.testing.assert_allclose(jet2(jnp.exp, (0.0,), ([1.0, 0.0, 0.0],))[1], [1, 1 / 2, 1 / 6],
                               rtol=1e-6)
    assert fact(4) == 24 and abs(fact(jnp.float32(3)) - 6) < 1e-5
    for primitive in (seen_p, tanh_p, comp_p, halve_p, floor_p):
        del jet_rules[primitive]


def test_integers_and_bools_are_constants():
    mask, n = np.array([True, False]), 3
    x, y = np.ones(2, np.float32), np.zeros(2, np.float32)
    out, (first,) = jet(jnp.where, (mask, x, y), ([x], [5 * x], [7 * x]))
    np.testing.assert_array_equal(out, [1, 0])
    np.testing.assert_array_equal(first, [5, 7])
    out, terms = jet(lambda n, x: x ** n, (n, 2.0), ([1.0, 0.0], [1.0, 0.0]))
    assert [float(v) for v in (out, *terms)] == [8.0, 12.0, 12.0]
    out, terms = jet(lambda n: n + 1, (n,), ([1, 0],))
    assert [int(v) for v in (out, *terms)] == [4, 0, 0]
    with pytest.raises(ValueError, match="term 1 for argument 0 has shape"):
        jet(jnp.where, (mask, x, y), ([np.ones(3)], [x], [x]))


@pytest.mark.parametrize("f", [lambda x: x, lambda x: 3.0, jnp.floor, lambda x: (x > 0) * 1.0,
                               lambda x: (x, jnp.sin(x))])
def test_terms_are_arrays(f):
    terms = jax.tree.leaves(jet(f, (1.5,), ((1.0, 0.5),))[1])
    assert len(terms) > 1 and all(isinstance(t, jax.Array) for t in terms)


def test_functions_that_are_wrapped():
    from pyjx.experimental import jet as module
    from pyjx.extend import linear_util

    wrapped = linear_util.wrap_init(lambda x, y: (x ** 3, jnp.float32(2)))
    pushed = module.jet_fun(module.jet_subtrace(wrapped), 2)
    outs, series = pushed.call_wrapped([2.0, 1.0], [[1.0, 0.0], module.zero_series])
    assert outs == [8, 2] and series == [[12, 6], [0, 0]]
    tree = jax.tree.structure(((0,), ((0, 0),)))
    flat, out_tree = module.traceable(
        linear_util.wrap_init(lambda primals, series: {"primals": primals, "terms": series}), tree)
    assert flat.call_wrapped(1, 2, 3) == [1, 2, 3]
    assert out_tree() == jax.tree.structure({"primals": (0,), "terms": ((0, 0),)})
    trace = module.JetTrace("tag", None, 2)
    with new_level(trace):
        x = module.JetTracer(trace, 2.0, (1.0, 0.0))
        y = trace.process_primitive(jax.lax.mul_p, [x, x], {})
        assert trace.to_primal_terms_pair(y) == (4, [4, 1])
        assert trace.to_primal_terms_pair(1.0) == (1.0, module.zero_series)
        for found in (trace.process_call(None, wrapped, (x, 1.0), {}),
                      trace.process_custom_jvp_call(None, wrapped, None, (x, 1.0),
                                                    symbolic_zeros=False),
                      trace.process_custom_vjp_call(None, wrapped, None, None, (x, 1.0),
                                                    out_trees=None, symbolic_zeros=False)):
            assert trace.to_primal_terms_pair(found[0])[1] == [12, 6]
        assert (trace.tag, trace.order, trace.parent_trace) == ("tag", 2, trace.parent)
