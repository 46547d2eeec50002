import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp

V = np.float32([0.5, 1.0, 2.0])


def make(**options):
    """x sin(y) whose tangent is ten times what it should be, so that one sees the rule at work."""

    @jax.custom_jvp
    def f(x, y):
        return x * jnp.sin(y)

    def f_jvp(primals, tangents):
        x, y = primals
        dx, dy = tangents
        return f(x, y), 10 * (dx * jnp.sin(y) + x * jnp.cos(y) * dy)

    f.defjvp(f_jvp, **options)
    return f


f = make()
GRAD = 10 * np.sin(3.0)


def test_value():
    assert float(f(2.0, 3.0)) == pytest.approx(2 * np.sin(3.0))
    assert float(jax.jit(f)(2.0, 3.0)) == pytest.approx(2 * np.sin(3.0))


@pytest.mark.parametrize("derivative", [
    lambda f: jax.grad(f)(2.0, 3.0),
    lambda f: jax.jvp(f, (2.0, 3.0), (1.0, 0.0))[1],
    lambda f: jax.linearize(f, 2.0, 3.0)[1](1.0, 0.0),
    lambda f: jax.vmap(jax.grad(f))(np.full(3, 2.0), np.full(3, 3.0))[1],
    lambda f: jax.grad(lambda x: jax.vmap(f, in_axes=(0, None))(x, 3.0).sum())(V)[0],
    lambda f: jax.grad(lambda x: jax.vmap(f, in_axes=(None, 0))(x, np.full(2, 3.0)).sum() / 2)(2.0),
    lambda f: jax.jacfwd(f)(2.0, 3.0),
    lambda f: jax.jacrev(f)(2.0, 3.0),
], ids=["grad", "jvp", "linearize", "vmap-grad", "grad-vmap", "grad-vmap-none", "jacfwd", "jacrev"])
@pytest.mark.parametrize("where", ["eager", "outside", "inside", "both"])
def test_the_rule_is_used(derivative, where):
    g = jax.jit(f) if where in ("inside", "both") else f
    call = (lambda: jax.jit(lambda: derivative(g))()) if where in ("outside", "both") else \
        (lambda: derivative(g))
    assert float(call()) == pytest.approx(GRAD, rel=1e-5)


def test_the_rule_is_differentiated():
    # d/dy of 10 sin(y), of which the primal x sin(y) plays no part
    for g in (f, jax.jit(f)):
        second = jax.grad(jax.grad(g), argnums=1)(2.0, 3.0)
        assert float(second) == pytest.approx(10 * np.cos(3.0), rel=1e-5)


def test_batch_axes_other_than_the_first():
    x = np.ones((2, 3), "float32")
    got = jax.jvp(jax.vmap(f, in_axes=(1, None), out_axes=1), (x, V[:2]), (x, 0 * V[:2]))
    np.testing.assert_allclose(got[1], 10 * np.sin(V[:2])[:, None] * np.ones((1, 3)), rtol=1e-5)


def test_jaxpr():
    assert str(jax.make_jaxpr(f)(1.0, 2.0)) == """\
{ lambda ; a:f32[] b:f32[]. let
    c:f32[] = custom_jvp_call[
      name=f
      call_jaxpr={ lambda ; d:f32[] e:f32[]. let
          f:f32[] = sin e
          g:f32[] = mul d f
        in (g,) }
      jvp=f_jvp
      symbolic_zeros=False
    ] a b
  in (c,) }"""


def test_defjvps():
    @jax.custom_jvp
    def g(x, y):
        return x * y

    g.defjvps(lambda t, out, x, y: t * y * 3, None)
    assert float(jax.grad(g)(2.0, 5.0)) == 15.0
    assert float(jax.grad(g, argnums=1)(2.0, 5.0)) == 0.0
    with pytest.raises(TypeError, match="Can't use ``defjvps`` with ``nondiff_argnums``"):
        jax.custom_jvp(lambda a, x: x, nondiff_argnums=(0,)).defjvps(None)


def test_arguments_that_are_not_differentiated():
    for options in ({"nondiff_argnums": (0,)}, {"nondiff_argnames": ("g",)}):
        apply = jax.custom_jvp(lambda g, x: g(x), **options)
        apply.defjvp(lambda g, primals, tangents: (g(*primals), tangents[0] * 7))
        assert float(apply(jnp.sin, 2.0)) == pytest.approx(np.sin(2.0))
        assert float(jax.grad(apply, argnums=1)(jnp.sin, 2.0)) == 7.0
        assert float(jax.jit(jax.grad(lambda x, apply=apply: apply(jnp.sin, x)))(2.0)) == 7.0
    # an array there is a constant, also where it is traced
    power = jax.custom_jvp(lambda n, x: n * x, nondiff_argnums=(0,))
    power.defjvp(lambda n, primals, tangents: (n * primals[0], n * tangents[0]))
    assert float(jax.grad(power)(2.0, 3.0)) == 0.0
    assert jax.vmap(power)(V, V).tolist() == (V * V).tolist()


def test_keywords_and_defaults():
    g = jax.custom_jvp(lambda x, y=3.0: x * y)
    g.defjvp(lambda primals, tangents: (primals[0] * primals[1], 7 * tangents[0]))
    assert float(g(2.0)) == 6.0
    assert float(jax.grad(g)(2.0)) == 7.0
    assert float(jax.grad(lambda x: g(y=1.0, x=x))(2.0)) == 7.0
    with pytest.raises(TypeError, match="could not be resolved to positional-only arguments"):
        g()


def test_symbolic_zeros():
    seen = []

    @jax.custom_jvp
    def g(x, y):
        return x * y

    def rule(primals, tangents):
        seen.append([type(t).__name__ for t in tangents])
        dx, dy = tangents
        assert dy.shape == ()
        assert dy.dtype == np.float32
        return primals[0] * primals[1], dx

    g.defjvp(rule, symbolic_zeros=True)
    for h in (g, jax.jit(g), jax.vmap(g, axis_size=1, in_axes=None)):
        assert np.sum(jax.jvp(lambda x, h=h: h(x, 2.0), (3.0,), (1.0,))[1]) == 1.0
    assert {names[1] for names in seen} == {"SymbolicZero"}


def test_integer_arguments_have_float0_tangents():
    @jax.custom_jvp
    def g(x, n):
        return x * n

    @g.defjvp
    def rule(primals, tangents):
        assert tangents[1].dtype == jax.float0
        return g(*primals), tangents[0] * primals[1]

    for h in (g, jax.jit(g)):
        assert float(jax.grad(h)(2.0, 3)) == 3.0
    assert jax.vmap(jax.grad(g))(V, np.arange(3)).tolist() == [0.0, 1.0, 2.0]


def test_a_jitted_rule():
    g = jax.custom_jvp(jnp.sin)
    g.defjvp(jax.jit(lambda p, t: (jnp.sin(p[0]), t[0] * jnp.cos(p[0]))))
    assert float(jax.grad(g)(1.0)) == pytest.approx(np.cos(1.0))
    assert float(jax.grad(jax.grad(g))(1.0)) == pytest.approx(-np.sin(1.0))


def test_control_flow_on_values():
    @jax.custom_jvp
    def g(x):
        return x if x > 0 else -x

    @g.defjvp
    def rule(primals, tangents):
        return g(*primals), (5 if primals[0] > 0 else -5) * tangents[0]

    assert float(g(-2.0)) == 2.0
    assert float(jax.grad(g)(-2.0)) == -5.0


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_closing_over_a_tracer(wrap):
    def make(x):
        g = jax.custom_jvp(lambda y: x * y)
        g.defjvp(lambda p, t: (x * p[0], 2 * x * t[0]))
        return g

    np.testing.assert_allclose(jax.vmap(wrap(lambda x: make(x)(x + 1)))(V), V * (V + 1))
    np.testing.assert_allclose(wrap(jax.vmap(lambda x: jax.grad(make(x))(x)))(V), 2 * V)
    np.testing.assert_allclose(jax.vmap(lambda x: jax.grad(wrap(make(x)))(x))(V), 2 * V)
    with pytest.raises(Exception, match="with respect to a closed-over value"):
        jax.grad(wrap(lambda x: make(x)(x)))(2.0)


def with_rule(rule):
    def g(x):
        return x * 2

    g = jax.custom_jvp(g)
    g.defjvp(rule)
    return g


PAIR = "Custom JVP rule rule for function g must produce a pair (list or tuple of length two) "
TYPES = "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and " \
    "dtypes. Expected float32[] (tangent type of float32[]) but got {}."


@pytest.mark.parametrize(("result", "message"), [
    (lambda x, t: None, PAIR + "representing primal and tangent outputs, but got None."),
    (lambda x, t: (x, t, t), PAIR + "representing primal and tangent outputs, but got ("),
    (lambda x, t: (x, (t,)), "Custom JVP rule rule for function g must produce primal and tangent "
     "outputs with equal container (pytree) structures, but got PyTreeDef(*) and PyTreeDef((*,)) "
     "respectively."),
    (lambda x, t: (x, V), TYPES.format("float32[3]")),
    (lambda x, t: (x, t.astype("float16")), TYPES.format("float16[]")),
    (lambda x, t: (x, np.int32(1)), TYPES.format("int32[]")),
])
def test_wrong_rules(result, message):
    def rule(primals, tangents):
        return result(primals[0], tangents[0])

    for wrap in (lambda f: f, jax.jit):
        with pytest.raises(TypeError) as caught:
            jax.jvp(wrap(with_rule(rule)), (1.0,), (1.0,))
        assert message in str(caught.value)


def test_rules_whose_primal_output_differs_from_the_function():
    def rule(primals, tangents):
        return (primals[0],), (tangents[0],)

    with pytest.raises(TypeError, match="of the same container/pytree structure") as caught:
        jax.jvp(jax.jit(with_rule(rule)), (1.0,), (1.0,))
    assert "had container/pytree structure:\n    (float32[],)\nwhile the" in str(caught.value)

    def rule(primals, tangents):
        return V, V

    with pytest.raises(TypeError, match="with leaves of the same shape/dtype") as caught:
        jax.jvp(jax.jit(with_rule(rule)), (1.0,), (1.0,))
    assert "shapes/dtypes of:\n    float32[3]\nwhile the" in str(caught.value)


@pytest.mark.parametrize("around", [
    lambda f: f,
    jax.jit,
    jax.checkpoint,
    lambda f: lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, 1)[0],
    lambda f: lambda x: jax.lax.cond(x > 0, f, f, x),
    lambda f: lambda x: jax.lax.while_loop(lambda c: c[1] < 1, lambda c: (f(c[0]), c[1] + 1),
                                           (x, 0))[0],
])
def test_the_result_is_that_of_the_rule_where_it_is_differentiated(around):
    f = with_rule(lambda primals, tangents: (10 * primals[0], 3 * tangents[0]))
    g = around(f)
    assert g(2.0) == f(2.0) != 20
    assert jax.jvp(g, (2.0,), (1.0,)) == (20, 3)
    result, slope = jax.linearize(g, 2.0)
    assert (result, slope(1.0)) == (20, 3)


def test_without_a_rule():
    with pytest.raises(AttributeError, match=(
            r"No JVP defined for custom_jvp function f using defjvp.*by f\.defjvp\(jvp\), where")):
        jax.custom_jvp(f.fun)(1.0, 2.0)


@pytest.mark.parametrize("rules", [1, 3])
def test_defjvps_wants_a_rule_for_each_argument(rules):
    f = jax.custom_jvp(lambda x, y: x * y)
    f.defjvps(*[lambda t, out, x, y: t * y] * rules)
    with pytest.raises(ValueError, match=rf"gave {rules} rules? to .* which has 2 arguments here"):
        jax.grad(f, argnums=1)(1.0, 2.0)


def closing_over(kind, x):
    """A function with its own rule, that closes over x and adds it; its derivative is x."""
    if kind == "custom_jvp":
        fun = jax.custom_jvp(lambda y: x + y)
        fun.defjvp(lambda primals, tangents: (x + primals[0], x * tangents[0]))
        return fun
    fun = jax.custom_vjp(lambda y: x + y)
    fun.defvjp(lambda y: (fun(y), x), lambda x, ct: (x * ct,))
    return fun


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_a_mapped_value_is_closed_over_and_the_operand_is_differentiated(kind, wrap):
    xs = np.float32([5.0, 7.0])
    ys = np.float32([1.0, 2.0, 4.0])

    def rows(z):
        return jax.vmap(lambda x: closing_over(kind, x)(z))(xs)

    np.testing.assert_array_equal(wrap(rows)(1.0), xs + 1)
    np.testing.assert_array_equal(wrap(jax.grad(lambda z: rows(z) @ xs))(1.0), xs @ xs)
    np.testing.assert_array_equal(wrap(jax.jacrev(rows))(1.0), xs)
    if kind == "custom_jvp":
        np.testing.assert_array_equal(wrap(jax.jacfwd(rows))(1.0), xs)
    # closed over from two maps, the operand from a third or from a derivative around them
    table = wrap(jax.vmap(lambda y: jax.vmap(
        lambda w: jax.grad(lambda z: rows(z * w).sum())(y))(ys)))(ys)
    np.testing.assert_allclose(table, np.broadcast_to(12 * ys, (3, 3)))
    both = wrap(jax.grad(lambda z: jax.vmap(
        lambda w: jax.vmap(lambda x: closing_over(kind, x * w)(z))(xs))(ys).sum()))(1.0)
    assert float(both) == xs.sum() * ys.sum()


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_what_a_collective_gives_is_the_same_for_all_examples(kind, wrap):
    if kind == "custom_jvp":
        total = jax.custom_jvp(lambda x: jax.lax.psum(x, "rows"))
        total.defjvp(lambda p, t: (total(*p), jax.lax.psum(t[0], "rows")))
    else:
        total = jax.custom_vjp(lambda x: jax.lax.psum(x, "rows"))
        total.defvjp(lambda x: (total(x), None), lambda _, ct: (ct,))
    rows = jax.vmap(wrap(total), axis_name="rows", out_axes=None)
    xs = np.float32([1.0, 2.0, 4.0])
    assert float(rows(xs)) == 7
    same = jax.vmap(lambda _, x: wrap(total)(x), (0, None), None, axis_name="rows")
    assert float(same(xs, 5.0)) == 15
    np.testing.assert_array_equal(jax.grad(rows)(xs), np.ones(3))
    np.testing.assert_array_equal(
        jax.grad(lambda x: jax.vmap(wrap(total), axis_name="rows")(x).sum())(xs), np.full(3, 3.0))


def test_a_rule_that_tells_examples_apart_where_the_function_does_not():
    xs = np.float32([1.0, 2.0, 4.0])

    def row(x, y):  # the rule closes over what is mapped, the function does not
        f = jax.custom_jvp(lambda y: y)
        f.defjvp(lambda p, t: (p[0], x * t[0]))
        return jax.jit(f)(y)

    rows = jax.vmap(row, in_axes=(0, None))
    np.testing.assert_array_equal(rows(xs, 5.0), np.full(3, 5.0))
    with pytest.raises((ValueError, jax.errors.UnexpectedTracerError)):
        jax.grad(lambda y: rows(xs, y).sum())(5.0)


def passing_on(kind):
    if kind == "custom_jvp":
        f = jax.custom_jvp(lambda x: x)
        f.defjvp(lambda p, t: (f(*p), 2 * t[0]))
    else:
        f = jax.custom_vjp(lambda x: x)
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (2 * ct,))
    return f


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("value", [1.5, np.float32(1.5)], ids=["python", "numpy"])
def test_numbers_that_are_passed_on_stay_numbers(kind, value):
    f = passing_on(kind)
    out, gradient = jax.value_and_grad(f)(value)
    assert (type(out), float(gradient)) == (type(value), 2.0)
    assert type(jax.vjp(f, value)[0]) is type(jax.linearize(f, value)[0]) is type(value)
    assert type(jax.grad(lambda x: (x, f(x)), has_aux=True)(value)[1]) is type(value)
    if kind == "custom_jvp":
        out, _, aux = jax.jvp(lambda x: (f(x), (f(x), 2.0)), (value,), (value,), has_aux=True)
        assert [type(x) for x in (out, *aux)] == [type(value), type(value), float]


@pytest.mark.parametrize("value", [1.5, np.float32(1.5), np.array(1.5, np.float32)],
                         ids=["python", "scalar", "array"])
@pytest.mark.parametrize("convert", [
    jnp.asarray, jnp.array, lambda x: jnp.asarray(x, "float32"), jnp.float32,
    lambda x: jax.lax.convert_element_type(x, "float32"), lambda x: jax.lax.reshape(x, ()),
    lambda x: jnp.squeeze(x), jax.lax.stop_gradient, jnp.positive, jnp.conj, jnp.real,
    jnp.clip, jnp.block], ids=range(13))
def test_what_operations_give_of_numbers_are_arrays(convert, value):
    assert isinstance(jax.jvp(convert, (value,), (value,))[0], jax.Array)
    assert isinstance(jax.vjp(convert, value)[0], jax.Array)
    assert isinstance(jax.linearize(convert, value)[0], jax.Array)
    assert jax.value_and_grad(convert)(value)[0].shape == ()


@pytest.mark.parametrize("rule", [
    lambda x, t: (jnp.sin(x), t), lambda x, t: (x**2, t), lambda x, t: (1.0, t * 2.0)])
def test_what_a_rule_is_given_is_told_where_it_takes_arrays(rule):
    f = jax.custom_jvp(lambda x: x * 2.0)
    f.defjvp(rule)
    with pytest.raises(TypeError) as caught:
        jax.grad(f)(2.0)
    assert "Each is a tuple of one for each argument: let it begin with (x,), (t,) = x, t." in (
        caught.value.__notes__[0])
    f.defjvp(lambda primals, tangents: (primals**2, 2 * primals * tangents))
    with pytest.raises(TypeError) as caught:
        jax.grad(f)(2.0)
    assert "with (primals,), (tangents,) = primals, tangents." in caught.value.__notes__[0]
    f.defjvp(lambda primals, tangents: (primals[0]**2, 2 * primals[0] * tangents[0]))
    assert float(jax.grad(f)(2.0)) == 4.0


def test_what_a_rule_is_given_is_told_where_it_passes_its_tuples_on():
    f, g = jax.custom_jvp(lambda x: x * 2.0), jax.custom_jvp(lambda x: x * 3.0)
    f.defjvp(lambda x, t: (f(x), t))
    g.defjvp(lambda primals, tangents: (jax.grad(f)(*primals), tangents[0]))
    for call in (f, g):
        with pytest.raises(TypeError) as caught:
            jax.grad(call)(2.0)
        assert "let it begin with (x,), (t,) = x, t." in caught.value.__notes__[0]


def _text(x):
    return "out"


@pytest.mark.parametrize("made", [jax.custom_jvp, jax.custom_vjp])
def test_what_a_function_with_rules_returns_is_checked_without_derivatives_too(made):
    f = made(_text)
    (f.defvjp if made is jax.custom_vjp else f.defjvp)(*[lambda *a: a] * (1 + (
        made is jax.custom_vjp)))
    for call in (f, jax.jit(f)):
        with pytest.raises(TypeError, match="returned a value of type <class 'str'>"):
            call(1.0)
    with pytest.raises(TypeError, match="returned a value of type <class 'str'>"):
        jax.custom_gradient(lambda x: ("out", abs))(1.0)
