"""Each transformation in each, three deep, against a calculus of polynomials."""

import itertools
import traceback

import numpy as np
import pytest

import pyjx as jax

# p(x) = 1 - x + x^2 / 2 + x^3, by increasing power
COEFFICIENTS = (1.0, -1.0, 0.5, 1.0)
POINT = 0.7


def polynomial(x):
    total = 0.0
    for c in reversed(COEFFICIENTS):
        total = total * x + c
    return total


def grad(f):
    return jax.grad(f)


def forward(f):
    return lambda x: jax.jvp(f, (x,), (1.0,))[1]


def linearized(f):
    return lambda x: jax.linearize(f, x)[1](1.0)


def pulled_back(f):
    return lambda x: jax.vjp(f, x)[1](1.0)[0]


def mapped(f):
    """The sum of f(x) and f(2 x)."""

    def g(x):
        y = jax.vmap(lambda c, x: f(c * x), in_axes=(0, None))(np.array([1.0, 2.0], "float32"), x)
        return y.sum()

    return g


def jitted(f):
    return jax.jit(f)


def with_rule(f):
    """f with a rule that states its own derivative."""
    g = jax.custom_jvp(f)
    g.defjvp(lambda primals, tangents: jax.jvp(f, primals, tangents))
    return g


def with_vjp_rule(f):
    g = jax.custom_vjp(f)
    g.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * jax.grad(f)(x),))
    return g


def derivative(c):
    return [k * a for k, a in enumerate(c)][1:]


def scaled_sum(c):
    return [a * (1 + 2.0**k) for k, a in enumerate(c)]


DERIVATIVES = [grad, forward, linearized, pulled_back]
OTHERS = [mapped, jitted, with_rule, with_vjp_rule]
FORWARD = {forward, linearized}


def expected(transformations):
    c = list(COEFFICIENTS)
    for t in transformations:
        if t in DERIVATIVES:
            c = derivative(c)
        elif t is mapped:
            c = scaled_sum(c)
    return sum(a * POINT**k for k, a in enumerate(c))


def is_allowed(transformations):
    """Forward mode goes through no custom_vjp function."""
    for i, t in enumerate(transformations):
        if t is with_vjp_rule and FORWARD.intersection(transformations[i + 1:]):
            return False
    return True


def compositions(depth):
    for ts in itertools.product(DERIVATIVES + OTHERS, repeat=depth):
        if is_allowed(ts):
            yield ts


def name(ts):
    return "-".join(t.__name__ for t in ts)


def check(transformations):
    f = polynomial
    for t in transformations:
        f = t(f)
    value = float(f(POINT))
    assert value == pytest.approx(expected(transformations), rel=2e-4, abs=2e-4)


@pytest.mark.parametrize("ts", list(compositions(2)), ids=name)
def test_two_deep(ts):
    check(ts)


@pytest.mark.parametrize("ts", list(compositions(2)), ids=name)
def test_two_deep_under_jit(ts):
    check((*ts, jitted))


# One derivative of each mode is enough for three levels.
THREE_DEEP = [ts for ts in compositions(3)
              if not {linearized, pulled_back}.intersection(ts)
              and {grad, forward}.intersection(ts) and {mapped, jitted}.intersection(ts)]


@pytest.mark.parametrize("ts", THREE_DEEP, ids=name)
def test_three_deep(ts):
    check(ts)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_higher_order(order):
    f = polynomial
    c = list(COEFFICIENTS)
    for _ in range(order):
        f, c = jax.grad(f), derivative(c)
    reference = sum(a * POINT**k for k, a in enumerate(c))
    assert float(f(POINT)) == pytest.approx(reference, rel=1e-5)
    assert float(jax.jit(f)(POINT)) == pytest.approx(reference, rel=1e-5)


# -- perturbations do not mix ----------------------------------------------------------------------


def test_inner_derivative_does_not_see_the_outer_variable():
    # d/dx [x * d/dy (x + y)] = d/dx [x * 1] = 1; confusing the two perturbations gives 2
    def f(x):
        return x * jax.grad(lambda y: x + y)(1.0)
    assert float(jax.grad(f)(3.0)) == 1.0
    assert float(jax.jvp(f, (3.0,), (1.0,))[1]) == 1.0
    assert float(jax.jit(jax.grad(f))(3.0)) == 1.0


@pytest.mark.parametrize("outer", [grad, forward, linearized, pulled_back])
@pytest.mark.parametrize("inner", [grad, forward, linearized, pulled_back])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_perturbation_confusion(outer, inner, wrap):
    # d/dx [x d/dy (x y)]_{y=x} = d/dx x^2
    def f(x):
        return x * inner(wrap(lambda y: x * y))(x)
    assert float(wrap(outer(f))(5.0)) == 10.0


def test_variables_of_two_levels_in_one_product():
    def f(x):
        return jax.grad(lambda y: jax.grad(lambda z: x * y * y * z)(y))(x)  # 2 x^2
    assert float(f(3.0)) == 18.0
    assert float(jax.grad(f)(3.0)) == 12.0


def test_batches_of_two_levels_stay_apart():
    a = np.arange(3, dtype="float32")
    b = np.arange(2, dtype="float32")
    outer = jax.vmap(lambda x: jax.vmap(lambda y: 10 * x + y)(b))(a)
    np.testing.assert_array_equal(outer, 10 * a[:, None] + b)
    same = jax.vmap(lambda x: jax.vmap(lambda y: x * y + x)(a))(a)
    np.testing.assert_array_equal(same, a[:, None] * a + a[:, None])


# -- closures and control flow ---------------------------------------------------------------------


def test_closure_over_a_tracer_of_an_enclosing_jit():
    @jax.jit
    def f(x):
        g = jax.jit(lambda y: x * y)
        return jax.grad(g)(2.0) + jax.vmap(g)(np.array([1.0, 2.0], "float32")).sum()

    assert float(f(3.0)) == 12.0
    assert float(jax.grad(f)(3.0)) == 4.0


def test_values_are_concrete_under_derivatives():
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    def f(x):
        steps = 0
        while x < 100:
            x = power(x, 2)
            steps += 1
        return x if steps % 2 else -x

    # 3 -> 9 -> 81 -> 6561: three squarings, x^8
    assert float(jax.grad(f)(3.0)) == pytest.approx(8 * 3.0**7)
    assert float(jax.jvp(f, (3.0,), (1.0,))[1]) == pytest.approx(8 * 3.0**7)


def test_python_needs_values_that_vmap_and_jit_do_not_have():
    def f(x):
        return x if x > 0 else -x
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(f)(1.0)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.vmap(f)(np.ones(3))
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(jax.grad(f))(1.0)


@pytest.mark.parametrize("leave", [
    lambda f: jax.grad(f)(1.0), lambda f: jax.jvp(f, (1.0,), (1.0,)), lambda f: jax.jit(f)(1.0),
    lambda f: jax.vmap(f)(np.ones(2, "float32")), lambda f: jax.linearize(f, 1.0),
], ids=["grad", "jvp", "jit", "vmap", "linearize"])
def test_a_tracer_that_escaped_is_an_error(leave):
    kept = []

    def f(x):
        kept.append(x * 2)
        return x * 3

    leave(f)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="side effect"):
        kept[0] + 1
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.jit(lambda y: y + kept[0])(1.0)


def test_second_derivatives_agree_with_finite_differences():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 3)).astype("float32")

    def f(x):
        y = a @ x
        return jax.numpy.sin(y).sum() + (y * x).sum() ** 2

    def f64(x):
        y = a.astype("float64") @ x
        return np.sin(y).sum() + (y * x).sum() ** 2

    x = rng.normal(size=3)
    h = 1e-4
    eye = np.eye(3)
    reference = [[(f64(x + h * (u + v)) - f64(x + h * (u - v)) - f64(x - h * (u - v))
                   + f64(x - h * (u + v))) / (4 * h * h) for u in eye] for v in eye]
    np.testing.assert_allclose(jax.hessian(f)(x.astype("float32")), reference, rtol=1e-3, atol=1e-2)


def _fails(x):
    raise KeyError("lost")


@pytest.mark.parametrize("transformed", [
    lambda x: jax.grad(_fails)(x), lambda x: jax.value_and_grad(_fails)(x),
    lambda x: jax.vmap(_fails)(x[None]), lambda x: jax.jvp(_fails, (x,), (x,)),
    lambda x: jax.vjp(_fails, x), lambda x: jax.linearize(_fails, x),
    lambda x: jax.linear_transpose(_fails, x), lambda x: jax.jacfwd(_fails)(x),
    lambda x: jax.jacrev(_fails)(x), lambda x: jax.hessian(_fails)(x),
    lambda x: jax.custom_gradient(_fails)(x), lambda x: jax.closure_convert(_fails, x),
    lambda x: jax.vmap(jax.grad(jax.jit(_fails)))(x[None]),
])
def test_errors_show_the_frames_of_the_user_only(transformed):
    with pytest.raises(KeyError) as caught:
        transformed(np.ones(2, np.float32))
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert files == {__file__}
    (note,) = caught.value.__notes__
    assert "JAX_TRACEBACK_FILTERING=off" in note


def test_float0_scalars_are_literals():
    def loop(x):
        return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2.0), (0, x))

    def f(x):
        return jax.jvp(loop, (x,), (x,))

    closed = jax.make_jaxpr(f)(1.0)
    assert not closed.consts
    assert "(b'',):float0[]" in str(closed)
    (n, y), (dn, dy) = jax.jit(f)(1.0)
    assert (int(n), float(y), dn.dtype, float(dy)) == (3, 8.0, jax.dtypes.float0, 8.0)


def test_closure_convert_takes_types_of_arguments():
    def f(y):
        converted, values = jax.closure_convert(
            lambda x: x * y, jax.ShapeDtypeStruct((2,), np.float32))
        return converted(np.ones(2), *values).sum()

    assert float(jax.grad(f)(3.0)) == 2.0
