import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.engine.custom_derivative_calls import CustomVJPException, SymbolicZero

V = np.float32([0.5, 1.0, 2.0])


@jax.custom_vjp
def f(x, y):
    return x * jnp.sin(y)


def f_fwd(x, y):
    return f(x, y), (x, jnp.sin(y), jnp.cos(y))


def f_bwd(residuals, ct):
    x, sin, cos = residuals
    return 10 * ct * sin, 10 * ct * x * cos


f.defvjp(f_fwd, f_bwd)
GRAD = 10 * np.sin(3.0)


def test_value():
    assert float(f(2.0, 3.0)) == pytest.approx(2 * np.sin(3.0))
    assert float(jax.jit(f)(2.0, 3.0)) == pytest.approx(2 * np.sin(3.0))


@pytest.mark.parametrize("derivative", [
    lambda f: jax.grad(f)(2.0, 3.0),
    lambda f: jax.vjp(f, 2.0, 3.0)[1](1.0)[0],
    lambda f: jax.vmap(jax.grad(f))(np.full(3, 2.0), np.full(3, 3.0))[1],
    lambda f: jax.grad(lambda x: jax.vmap(f, in_axes=(0, None))(x, 3.0).sum())(V)[0],
    lambda f: jax.grad(lambda x: jax.vmap(f, in_axes=(None, 0))(x, np.full(2, 3.0)).sum() / 2)(2.0),
    lambda f: jax.jacrev(f)(2.0, 3.0),
], ids=["grad", "vjp", "vmap-grad", "grad-vmap", "grad-vmap-none", "jacrev"])
@pytest.mark.parametrize("where", ["eager", "outside", "inside", "both"])
def test_the_rules_are_used(derivative, where):
    g = jax.jit(f) if where in ("inside", "both") else f
    call = (lambda: jax.jit(lambda: derivative(g))()) if where in ("outside", "both") else \
        (lambda: derivative(g))
    assert float(call()) == pytest.approx(GRAD, rel=1e-5)


def test_the_rules_are_differentiated():
    for g in (f, jax.jit(f)):
        # fwd is recorded as it is: its sin(y) has the derivative cos(y)
        second = jax.grad(jax.grad(g), argnums=1)(2.0, 3.0)
        assert float(second) == pytest.approx(10 * np.cos(3.0), rel=1e-5)


@pytest.mark.parametrize("call", [
    lambda g: jax.jvp(g, (2.0, 3.0), (1.0, 1.0)),
    lambda g: jax.jacfwd(g)(2.0, 3.0),
    lambda g: jax.linearize(g, 2.0, 3.0)[1](1.0, 1.0),
    lambda g: jax.hessian(g)(2.0, 3.0),
    lambda g: jax.jit(lambda: jax.jvp(g, (2.0, 3.0), (1.0, 1.0)))(),
], ids=["jvp", "jacfwd", "linearize", "hessian", "jit"])
def test_forward_mode_is_an_error(call):
    for g in (f, jax.jit(f)):
        with pytest.raises(TypeError, match=r"can't apply forward-mode autodiff \(jvp\) to a "
                                            "custom_vjp function"):
            call(g)


def held(f):
    return jax.lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2)[0]


@pytest.mark.parametrize("around", [lambda f: f(1.0), jax.jit(lambda f: f(1.0), static_argnums=0),
                                    held, lambda f: jax.lax.cond(True, f, f, 1.0)])
def test_errors_of_lowering_name_the_users_line(around):
    def tangent(x):
        return jax.jvp(lambda y: f(y, y), (x,), (x,))[1]

    with pytest.raises(TypeError, match=r"forward-mode .* custom_jvp rule has both modes") as error:
        jax.jit(lambda: around(tangent))()
    line = tangent.__code__.co_firstlineno + 1
    assert f"test_custom_vjp.py:{line}:" in "".join(error.value.__notes__)


def test_jaxpr():
    assert str(jax.make_jaxpr(f)(1.0, 2.0)) == """\
{ lambda ; a:f32[] b:f32[]. let
    c:f32[] = custom_vjp_call[
      name=f
      bwd=f_bwd
      call_jaxpr={ lambda ; d:f32[] e:f32[]. let
          f:f32[] = sin e
          g:f32[] = mul d f
        in (g,) }
      fwd=f_fwd
      symbolic_zeros=False
    ] a b
  in (c,) }"""


def test_batched_residuals_and_outputs_of_all_kinds():
    @jax.custom_vjp
    def g(x, y):
        return x * y, y

    g.defvjp(lambda x, y: (g(x, y), (x, y, 2.0)),
             lambda r, ct: (ct[0] * r[1] * r[2], ct[0] * r[0] + ct[1]))
    for wrap in (lambda h: h, jax.jit):
        def h(x, y, w=wrap):
            return sum(o.sum() for o in jax.vmap(w(g), in_axes=(0, None))(x, y))
        by_x, by_y = jax.grad(h, argnums=(0, 1))(V, 3.0)
        np.testing.assert_allclose(by_x, np.full(3, 6.0))
        assert float(by_y) == pytest.approx(V.sum() + 3)


def test_trees_and_none():
    g = jax.custom_vjp(lambda p, n: p["a"] * p["b"] * n)
    g.defvjp(lambda p, n: (g(p, n), p), lambda p, ct: ({"a": ct * 5, "b": None}, None))
    got = jax.grad(g)({"a": 2.0, "b": 3.0}, 1.0)
    assert jax.tree.map(float, got) == {"a": 5.0, "b": 0.0}
    g.defvjp(lambda p, n: (g(p, n), p), lambda p, ct: (None, ct))
    assert jax.tree.map(float, jax.grad(g)({"a": 2.0, "b": 3.0}, 1.0)) == {"a": 0.0, "b": 0.0}
    assert float(jax.grad(g, argnums=1)({"a": 2.0, "b": 3.0}, 1.0)) == 1.0


@pytest.mark.parametrize("ct", [None, np.zeros((), jax.float0), 3, 3.0])
def test_integer_arguments(ct):
    g = jax.custom_vjp(lambda x, n: x * n)
    g.defvjp(lambda x, n: (x * n, n), lambda n, g: (g * n, ct))
    assert float(jax.grad(g)(2.0, 3)) == 3.0
    assert float(jax.grad(jax.jit(g))(2.0, 3)) == 3.0
    assert jax.vjp(g, 2.0, 3)[1](1.0)[1].dtype == jax.float0


def test_arguments_that_are_not_differentiated():
    g = jax.custom_vjp(lambda n, x: x * n, nondiff_argnums=(0,))
    g.defvjp(lambda n, x: (x * n, x), lambda n, x, ct: (n * ct * 100,))
    assert float(jax.grad(g, argnums=1)(3, 2.0)) == 300.0
    assert float(jax.jit(jax.grad(g, argnums=1), static_argnums=0)(3, 2.0)) == 300.0
    named = jax.custom_vjp(lambda x, n: x * n, nondiff_argnames=("n",))
    named.defvjp(lambda x, n: (x * n, x), lambda n, x, ct: (n * ct * 100,))
    assert float(jax.grad(named)(2.0, n=3)) == 300.0
    with pytest.raises(jax.errors.UnexpectedTracerError, match="Found a JAX Tracer object passed "
                       "as an argument to a custom_vjp function in a position indicated by nondi"):
        jax.grad(g)(3.0, 2.0)


def test_symbolic_zeros():
    perturbed, cotangents = [], []

    @jax.custom_vjp
    def g(x, y):
        return x * y, x

    def fwd(x, y):
        perturbed.append((x.perturbed, y.perturbed))
        return (x.value * y.value, x.value), y.value

    def bwd(y, cts):
        cotangents.append(type(cts[1]).__name__)
        return 3 * y * cts[0], None

    g.defvjp(fwd, bwd, symbolic_zeros=True)
    for h in (g, jax.jit(g)):
        assert float(jax.grad(lambda x, h=h: h(x, 2.0)[0])(1.0)) == 6.0
    assert perturbed == [(True, False)] * 2
    assert cotangents[0] == "SymbolicZero"


def test_cotangents_are_arrays():
    g = jax.custom_vjp(lambda x: x)
    g.defvjp(lambda x: (x, x), lambda x, ct: (ct.astype(x.dtype).reshape(x.shape) * 2,))
    assert float(jax.grad(g)(1.0)) == 2.0
    assert float(jax.jit(jax.grad(g))(1.0)) == 2.0


def test_control_flow_on_values():
    g = jax.custom_vjp(lambda x: x if x > 0 else -x)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (5 * ct if x > 0 else -5 * ct,))
    assert float(jax.grad(g)(-2.0)) == -5.0


def test_residuals_may_be_tracers_of_an_enclosing_function():
    def outer(x):
        g = jax.custom_vjp(lambda y: y * 2)
        g.defvjp(lambda y: (g(y), x), lambda x, ct: (2 * x * ct,))
        return jax.grad(g)(3.0) * x  # 2 x^2

    assert float(outer(2.0)) == 8.0
    assert float(jax.grad(outer)(2.0)) == 8.0
    assert float(jax.jit(jax.grad(outer))(2.0)) == 8.0
    np.testing.assert_allclose(jax.vmap(jax.grad(outer))(V), 4 * V)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_closing_over_a_tracer(wrap):
    def make(x):
        g = jax.custom_vjp(lambda y: x * y)
        g.defvjp(lambda y: (x * y, y), lambda y, ct: (2 * x * y * ct,))
        return g

    np.testing.assert_allclose(jax.vmap(wrap(lambda x: jax.grad(make(x))(x)))(V), 2 * V * V)
    np.testing.assert_allclose(jax.vmap(lambda x: jax.grad(wrap(make(x)))(x))(V), 2 * V * V)
    for derivative in (
        jax.grad(wrap(lambda x: make(x)(x))), jax.grad(wrap(lambda x: make(x)(2.0))),
        jax.grad(wrap(lambda x: jax.vmap(make(x))(jnp.ones(3)).sum())),
        jax.grad(wrap(lambda x: jax.vmap(lambda x: make(x)(2.0))(x * jnp.ones(3)).sum())),
        lambda x: jax.jvp(wrap(lambda x: make(x)(2.0)), (x,), (1.0,)),
    ):
        with pytest.raises(CustomVJPException, match=r"closed-over .* function is <lambda>"):
            derivative(2.0)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.grad(lambda x: make(x)(2.0))(2.0)
    assert float(jax.grad(lambda x: make(jax.lax.stop_gradient(x))(x))(2.0)) == 8.0


def test_a_rule_of_ones_own_that_closes_over_a_tracer():
    twice = jax.extend.core.Primitive("twice")
    twice.multiple_results = True
    twice.def_impl(lambda x: [x, x])
    twice.def_abstract_eval(lambda x: [x, x])

    def f(y):
        jax.interpreters.ad.primitive_jvps[twice] = lambda primals, tangents: (
            [y * primals[0]] * 2, [tangents[0]] * 2)
        return twice.bind(y)[0]

    for derivative in (jax.grad(f), lambda y: jax.jvp(f, (y,), (1.0,))):
        with pytest.raises(CustomVJPException, match="closed-over value"):
            derivative(2.0)


def test_a_forward_rule_that_closes_over_a_tracer_names_the_backward_one():
    def f(y):
        g = jax.custom_vjp(lambda x: x)
        g.defvjp(lambda x: (x, y), lambda y, ct: (ct * y,))
        return g(y)

    with pytest.raises(CustomVJPException, match="Its backward rule is <lambda>"):
        jax.grad(f)(2.0)


STRUCTURE = (
    "Custom VJP bwd rule must produce an output with the same container (pytree) structure as the "
    "args tuple of the primal function, and in particular must produce a tuple of length equal to "
    "the number of arguments to the primal function, but got bwd output structure {} for primal "
    "input structure PyTreeDef((*, *))."
)


def mul(x, y):
    return x * y


@pytest.mark.parametrize(("bwd", "error", "message"), [
    (lambda r, ct: ct, TypeError, STRUCTURE.format("PyTreeDef(*)")),
    (lambda r, ct: (ct,), TypeError, STRUCTURE.format("PyTreeDef((*,))")),
    (lambda r, ct: None, TypeError, STRUCTURE.format("PyTreeDef(None)")),
    (lambda r, ct: (ct, (ct,)), TypeError, STRUCTURE.format("PyTreeDef((*, (*,)))")),
    (lambda r, ct: (ct, "a"), TypeError,
     "for argument 1, returned a value of type <class 'str'>, which is not a valid JAX type"),
    (lambda r, ct: (ct, V), ValueError, "must produce an output with the same type as the args "
     "tuple of the primal function, but at output[1] the bwd rule produced an output of type "
     "float32[3] corresponding to an input of type float32[], so the shapes do not match"),
])
def test_wrong_backward_rules(bwd, error, message):
    g = jax.custom_vjp(mul)
    g.defvjp(lambda x, y: (x * y, None), bwd)
    for h in (g, jax.jit(g)):
        with pytest.raises(error) as caught:
            jax.grad(h)(1.0, 2.0)
        assert message in str(caught.value)


PAIR = ("Custom VJP fwd rule fwd for function mul must produce a pair (list or tuple of length "
        "two) where the first element represents the primal output")


@pytest.mark.parametrize("result", [1.0, (1.0, 1.0, 1.0)])
def test_forward_rules_that_return_no_pair(result):
    def fwd(x, y):
        return result

    g = jax.custom_vjp(mul)
    g.defvjp(fwd, lambda r, ct: (ct, ct))
    for h in (g, jax.jit(g)):
        with pytest.raises(TypeError) as caught:
            jax.grad(h)(1.0, 2.0)
        assert str(caught.value).startswith(PAIR)
        assert "but instead of a pair the fwd rule fwd produced" in str(caught.value)


def test_without_rules():
    with pytest.raises(AttributeError, match=(
            r"No VJP defined for custom_vjp function mul using.*by mul\.defvjp\(fwd, bwd\)")):
        jax.custom_vjp(mul)(1.0, 2.0)


# -- custom_gradient and closure_convert -----------------------------------------------------------


def test_custom_gradient():
    square = jax.custom_gradient(lambda x: (x * x, lambda g: (g * x * 10,)))
    for h in (square, jax.jit(square)):
        assert float(h(3.0)) == 9.0
        assert float(jax.grad(h)(3.0)) == 30.0
    np.testing.assert_allclose(jax.vmap(jax.grad(square))(V), 10 * V)
    product = jax.custom_gradient(lambda x, y: (x * y, lambda g: (y, x)))
    assert [float(g) for g in jax.grad(product, argnums=(0, 1))(3.0, 4.0)] == [4.0, 3.0]
    alone = jax.custom_gradient(lambda x: (x * x, lambda g: g * 7))
    assert float(jax.grad(alone)(3.0)) == 7.0


def test_closure_convert():
    def outer(x):
        converted, values = jax.closure_convert(lambda y: jnp.sin(x) * y * V, 1.0)
        assert len(values) == 1
        return converted(2.0, *values).sum()

    assert float(jax.grad(outer)(1.0)) == pytest.approx(2 * V.sum() * np.cos(1.0), rel=1e-5)
    assert jax.closure_convert(lambda y: y * V, 1.0)[1] == []


def test_a_cotangent_stands_for_a_whole_argument():
    @jax.custom_vjp
    def f(x, y):
        return (x["a"] + x["b"][0]) * y

    f.defvjp(lambda x, y: (f(x, y), y), lambda y, g: (g * y, None))
    grads = jax.grad(f, (0, 1))({"a": 1.0, "b": [2.0]}, 3.0)
    assert jax.tree.map(float, grads) == ({"a": 3.0, "b": [3.0]}, 0.0)


def test_a_rule_is_called_with_zeros_if_what_reads_its_result_gives_none():
    @jax.custom_vjp
    def noted(x, h):
        return 2 * x

    noted.defvjp(lambda x, h: (2 * x, x), lambda x, ct: (None, x + 7 + ct))

    @jax.custom_vjp
    def product(x, y):
        return x * y

    product.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, None))

    def f(x, h):
        return product(x, jnp.sin(noted(x, h)))

    for g in (jax.grad(f, 1), jax.jit(jax.grad(f, 1)), jax.grad(jax.jit(f), 1)):
        assert float(g(1.0, 2.0)) == 8
    scanned = jax.grad(lambda x, h: jax.lax.scan(
        lambda c, _: (f(c, h), None), x, None, length=2)[0], 1)
    assert float(scanned(0.0, 2.0)) == 14
    batched = jax.vmap(jax.grad(f, 1))(jnp.array([1.0, 2.0]), jnp.ones(2))
    assert batched.tolist() == [8, 9]
    # What the result does not depend on has no say.
    assert float(jax.grad(lambda h: (noted(1.0, h), h)[1])(2.0)) == 1
    both = jax.jit(lambda h: (noted(1.0, h), h))
    assert float(jax.grad(lambda h: both(h)[1])(2.0)) == 1


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("symbolic_zeros", [False, True])
@pytest.mark.parametrize(("given", "message"), [
    (lambda: SymbolicZero.from_primal_value(jnp.ones(3)), r"it had shape/dtype float32\[3\]"),
    (lambda: SymbolicZero.from_primal_value(jnp.ones(2, "float16")), r"float16\[2\]"),
    (lambda: np.zeros(3, jax.dtypes.float0), "the shapes do not match"),
    (lambda: SymbolicZero.from_primal_value(jnp.ones(2)), None),
    (lambda: np.zeros(2, jax.dtypes.float0), None),
])
def test_zeros_of_a_backward_rule_are_of_the_type_of_the_input(given, message, symbolic_zeros,
                                                                wrap):
    f = jax.custom_vjp(lambda a, b: a * b)
    f.defvjp(lambda a, b: ((a.value if symbolic_zeros else a), None),
             lambda _, ct: (None, given()), symbolic_zeros=symbolic_zeros)
    gradient = wrap(jax.grad(lambda a, b: f(a, b).sum(), argnums=1))
    if message is None:
        np.testing.assert_array_equal(gradient(jnp.ones(2), jnp.ones(2)), np.zeros(2))
        return
    with pytest.raises(ValueError, match=message):
        gradient(jnp.ones(2), jnp.ones(2))
