import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.custom_batching import sequential_vmap
from pyjx.transforms.custom_gradient import linear_call
from pyjx.transforms.custom_vmap import custom_vmap

V = np.float32([0.0, 1.0, 2.0])


@custom_vmap
def f(x, y):
    return jnp.sin(x) * y


seen = []


@f.def_vmap
def f_vmap(axis_size, in_batched, x, y):
    seen.append((axis_size, in_batched, x.shape, jnp.shape(y)))
    return f(x, y) * 10, in_batched[0] or in_batched[1]


def test_without_vmap():
    assert float(f(1.0, 2.0)) == pytest.approx(2 * np.sin(1.0))
    assert float(jax.jit(f)(1.0, y=2.0)) == pytest.approx(2 * np.sin(1.0))
    assert float(jax.grad(f)(1.0, 2.0)) == pytest.approx(2 * np.cos(1.0))


@pytest.mark.parametrize("wrap", [
    lambda f, **axes: jax.vmap(f, **axes), lambda f, **axes: jax.jit(jax.vmap(f, **axes)),
    lambda f, **axes: jax.vmap(jax.jit(f), **axes),
], ids=["vmap", "jit-vmap", "vmap-jit"])
def test_the_rule_is_used(wrap):
    seen.clear()
    np.testing.assert_allclose(wrap(f)(V, V), 10 * np.sin(V) * V, rtol=1e-6)
    np.testing.assert_allclose(wrap(f, in_axes=(0, None))(V, 2.0), 20 * np.sin(V), rtol=1e-6)
    assert seen == [(3, [True, True], (3,), (3,)), (3, [True, False], (3,), ())]


def test_derivatives_of_the_batched_call_are_those_of_the_rule():
    g = jax.grad(lambda x: jax.vmap(f, in_axes=(0, None))(x, 1.0).sum())(V)
    np.testing.assert_allclose(g, 10 * np.cos(V), rtol=1e-6)


@custom_vmap
def sine(x):
    return jnp.sin(x)


@sine.def_vmap
def sine_vmap(axis_size, in_batched, x):  # not that of the sine, to tell the two apart
    return jnp.cos(x), in_batched[0]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("derivative", [
    jax.grad, jax.jacfwd, jax.jacrev, lambda f: lambda x: jax.jvp(f, (x,), (1.0,))[1],
    lambda f: lambda x: jax.linearize(f, x)[1](1.0),
    lambda f: lambda x: jax.vmap(lambda t: jax.jvp(f, (x,), (t,))[1])(jnp.ones(1))[0],
    lambda f: lambda x: jax.vmap(jax.vjp(f, x)[1])(jnp.ones(1))[0][0],
], ids=["grad", "jacfwd", "jacrev", "jvp", "linearize", "mapped-jvp", "mapped-vjp"])
def test_batched_derivatives_are_those_of_the_rule(derivative, wrap):
    np.testing.assert_allclose(
        wrap(jax.vmap(derivative(wrap(sine))))(V), -np.sin(V), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        jax.vmap(derivative(derivative(wrap(sine))))(V), -np.cos(V), rtol=1e-6)


@pytest.mark.parametrize("derivative", [jax.grad, jax.jacfwd, jax.jacrev, jax.hessian])
def test_a_rule_may_call_the_function(derivative):
    def expected(x):
        return derivative(lambda x: jnp.sin(x) * 2.0)(x)

    by_rule = 1 if derivative is jax.grad else 10  # the others map tangents or cotangents
    np.testing.assert_allclose(derivative(f)(1.0, 2.0), by_rule * expected(1.0), rtol=1e-6)
    for wrap in (lambda f: f, jax.jit):
        out = wrap(jax.vmap(derivative(f), in_axes=(0, None)))(V, 2.0)
        np.testing.assert_allclose(out, 10 * jax.vmap(expected)(V), rtol=1e-5, atol=1e-6)


def told():
    """A function whose rule computes another one, and what the rule has been told."""
    square = custom_vmap(lambda x: x * x)
    flags = []

    @square.def_vmap
    def cube(axis_size, in_batched, x):
        flags.append((axis_size, in_batched[0]))
        return x * x * x, in_batched[0]

    return square, flags


X = np.float32(3.0)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize(("derived", "want", "flag"), [
    (lambda f: jax.vmap(lambda t: jax.jvp(f, (X,), (t,)), out_axes=(None, 0)), (27, 27 * V), False),
    (lambda f: jax.vmap(lambda x: jax.jvp(f, (x,), (X,))), (V ** 3, 9 * V ** 2), False),
    (lambda f: jax.vmap(lambda x: jax.jvp(f, (x,), (x,))), (V ** 3, 3 * V ** 3), True),
    (lambda f: jax.jacfwd(f), (np.diag(3 * V ** 2),), False),
    (lambda f: jax.jacrev(f), (np.diag(3 * V ** 2),), False),
    (lambda f: jax.vmap(jax.linearize(f, X)[1]), (27 * V,), False),
    (lambda f: jax.vmap(jax.jacfwd(jax.jacfwd(f))), (6 * V,), False),
    (lambda f: jax.vmap(lambda x: jax.vmap(lambda t: jax.jvp(f, (x,), (t,))[1])(V)),
     (3 * np.outer(V ** 2, V),), False),
], ids=["tangents", "points", "both", "jacfwd", "jacrev", "linearize", "second", "nested"])
def test_the_rule_has_maps_of_derivatives(derived, want, flag, wrap):
    square, flags = told()
    got = wrap(derived(wrap(square)))(V)
    for a, b in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert {told for _, told in flags} == {flag}


@pytest.mark.parametrize(("rule", "fine"), [
    (lambda size, batched, x: (jnp.broadcast_to(x, (size, 3)), True), True),
    (lambda size, batched, x: (x, True), True),
    (lambda size, batched, x: (x.sum(axis=-1), True), False),
], ids=["repeated", "flag", "shape"])
def test_a_rule_that_is_told_of_no_batch_gives_what_the_function_gives(rule, fine):
    same = custom_vmap(lambda x: x)
    same.def_vmap(rule)
    if fine:
        np.testing.assert_array_equal(jax.jacfwd(same)(V), np.eye(3))
        np.testing.assert_array_equal(jax.jacrev(same)(V), np.eye(3))
    else:
        with pytest.raises(ValueError, match=r"none has a batch axis .* expected shape \(3,\)"):
            jax.jacfwd(same)(V)


def test_a_sequential_map_of_derivatives_is_a_loop():
    square = sequential_vmap(lambda x: x * x)
    assert "scan" in str(jax.make_jaxpr(jax.vmap(lambda x: jax.jvp(square, (x,), (X,))))(V))
    np.testing.assert_array_equal(jax.jacfwd(square)(V), np.diag(2 * V))


def test_it_stands_for_its_function():
    def price(x, y):
        """How much."""

    made = custom_vmap(price)
    assert made.__name__ == made.__qualname__.split(".")[-1] == "price"
    assert (made.__module__, made.__doc__) == (__name__, "How much.")
    made.def_vmap(lambda size, batched, x, y: (x, True))
    with pytest.raises(TypeError, match=r"custom_vmap-decorated function price(.|\n)*: 'y'"):
        made(1.0)


def test_what_the_function_inside_has_is_reached():
    @custom_vmap
    @jax.custom_jvp
    def triple(x):
        return 3 * x

    triple.defjvp(lambda p, t: (triple(*p), 10 * t[0]))
    triple.def_vmap(lambda size, batched, x: (5 * x, True))
    assert float(jax.grad(triple)(1.0)) == 10
    np.testing.assert_array_equal(jax.vmap(triple)(V), 5 * V)
    other = jax.custom_vjp(custom_vmap(lambda x: x))
    other.def_vmap(lambda size, batched, x: (7 * x, True))
    other.defvjp(lambda x: (other(x), None), lambda _, ct: (2 * ct,))
    np.testing.assert_array_equal(jax.vmap(other)(V), 7 * V)
    assert float(jax.grad(other)(1.0)) == 2


def test_errors():
    with pytest.raises(AttributeError, match="No batching rule defined for custom_vmap function"):
        custom_vmap(jnp.sin)(1.0)
    g = custom_vmap(jnp.sin)
    g.def_vmap(lambda size, batched, x: (x, (True, True)))
    with pytest.raises(ValueError, match="structure of output value and output batching specific"):
        jax.vmap(g)(V)


@pytest.mark.parametrize(("result", "message"), [
    (lambda x: ((x, x), (True, True)), "does not match that of original custom-vmapped function"),
    (lambda x: (x[:2], True), r"first axis to be that of the 3 examples, got shape \(2,\)"),
    (lambda x: (x[0], True), r"first axis to be that of the 3 examples, got shape \(\)"),
], ids=["tree", "size", "flag"])
def test_the_result_of_a_rule_has_its_examples_in_front(result, message):
    g = custom_vmap(jnp.sin)
    g.def_vmap(lambda size, batched, x: result(x))
    for wrap in (lambda f: f, jax.jit):
        with pytest.raises(ValueError, match=message):
            jax.vmap(wrap(g))(V)


def product(x, y, k):
    return {"a": jnp.sin(x) * y ** 2, "k": k + 1, "y": y * 3}


custom_product = custom_vmap(product)


sequential_product = sequential_vmap(product)


@custom_product.def_vmap
def _product_vmap(axis_size, in_batched, x, y, k):
    x_batched, y_batched, k_batched = in_batched
    return product(x, y, k), {"a": x_batched or y_batched, "k": k_batched, "y": y_batched}


TRANSFORMED = {
    "grad": lambda f: jax.grad(lambda x, y, k: f(x, y, k)["a"], argnums=(0, 1)),
    "jacfwd": lambda f: jax.jacfwd(lambda y, x, k: (f(x, y, k)["a"], f(x, y, k)["y"])),
    "jacrev": lambda f: jax.jacrev(lambda y, x, k: (f(x, y, k)["a"], f(x, y, k)["y"])),
    "hessian": lambda f: jax.hessian(lambda x, y, k: f(x, y, k)["a"], argnums=(0, 1)),
    "grad-jvp": lambda f: jax.grad(lambda x, y, k: jax.jvp(
        lambda y: f(x, y, k)["a"], (y,), (x,))[1]),
    "jvp": lambda f: lambda x, y, k: jax.jvp(lambda x, y: f(x, y, k), (x, y), (y, x)),
    "transpose": lambda f: lambda x, y, k: jax.linear_transpose(
        lambda t: jax.jvp(lambda y: f(x, y, k)["a"], (y,), (t,))[1], y)(x)[0],
}


@pytest.mark.parametrize("in_axes", [(0, None, 0), (None, 0, None), (0, 0, None)])
@pytest.mark.parametrize("custom", [custom_product, sequential_product], ids=["rule", "sequential"])
@pytest.mark.parametrize("transform", TRANSFORMED)
def test_derivatives_beside_those_of_the_function(transform, custom, in_axes):
    args = [jnp.float32([0.5, 1.0, -2.0]), jnp.float32([0.7, 2.0, -1.0]), jnp.arange(3)]
    args = [x if axis == 0 else x[1] for x, axis in zip(args, in_axes, strict=True)]
    want, got = [jax.vmap(TRANSFORMED[transform](f), in_axes)(*args)
                 for f in (product, custom)]
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert a.dtype == b.dtype
        if a.dtype != jax.dtypes.float0:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def quotient(x, r):
    return linear_call(lambda r, x: x / r, lambda r, ct: 9 * ct / r, r, x)


def test_linear_call():
    assert float(quotient(3.0, 2.0)) == 1.5
    for wrap in (lambda f: f, jax.jit):
        assert float(jax.grad(wrap(quotient))(3.0, 2.0)) == 4.5
        assert float(jax.jvp(wrap(quotient), (3.0, 2.0), (1.0, 0.0))[1]) == 0.5
        assert float(jax.grad(wrap(quotient), argnums=1)(3.0, 2.0)) == -0.75
    np.testing.assert_allclose(jax.vmap(jax.grad(quotient))(V, V + 1), 9 / (V + 1))
    (ct,) = jax.linear_transpose(lambda x: quotient(x, 2.0), 1.0)(1.0)
    assert float(ct) == 4.5
    with pytest.raises(TypeError, match="output structure must match that of linear inputs"):
        linear_call(lambda r, x: x, lambda r, ct: (ct, ct), 1.0, 2.0)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0)])
def test_linear_call_keeps_its_transpose_where_it_is_mapped(wrap, in_axes):
    x, r = [V + 1 if axis == 0 else np.float32(2) for axis in in_axes]
    mapped = jax.vmap(wrap(quotient), in_axes)
    np.testing.assert_allclose(mapped(x, r), x / r, rtol=1e-6)
    np.testing.assert_allclose(
        jax.grad(lambda x, r: mapped(x, r).sum())(x, r),
        np.sum(np.broadcast_to(9 / r, 3)) if in_axes[0] is None else np.broadcast_to(9 / r, 3))


def test_linear_call_keeps_its_transpose_beside_derivatives_of_residuals():
    assert float(jax.grad(lambda x: quotient(2 * x, x))(4.0)) == 18 / 4 - 8 / 16
    captured = jax.jit(lambda x, w: jax.vmap(lambda x, w: linear_call(
        lambda _, x: w * x, lambda _, ct: 10 * w * ct, (), x))(x, w).sum())
    np.testing.assert_array_equal(jax.grad(captured)(V, V), 10 * V)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_the_rule_is_kept_where_the_function_closes_over_values(wrap):
    def outer(w, x):
        @custom_vmap
        def scale(x):
            return x * w

        @scale.def_vmap
        def rule(axis_size, in_batched, x):
            return x * w + 100, in_batched[0]

        return jax.vmap(wrap(scale))(x)

    x = np.arange(3.0, dtype=np.float32)
    for w in (2.0, np.full(1, 2.0, np.float32)[0], jax.numpy.float32(2)):
        np.testing.assert_array_equal(outer(w, x), 2 * x + 100)
        np.testing.assert_array_equal(jax.jit(outer)(w, x), 2 * x + 100)


def test_a_mapped_value_that_is_closed_over_is_refused():
    def f(w, x):
        scale = custom_vmap(lambda x: x * w)
        scale.def_vmap(lambda axis_size, in_batched, x: (x, in_batched[0]))
        return jax.jit(scale)(x)

    with pytest.raises(ValueError, match="closes over a value that is mapped"):
        jax.vmap(f)(np.ones(2, np.float32), np.ones(2, np.float32))


def test_keyword_only_arguments_are_refused():
    scale = custom_vmap(lambda x, *, k=2: x * k)
    scale.def_vmap(lambda axis_size, in_batched, x: (x, in_batched[0]))
    assert float(scale(x=3.0)) == 6.0
    with pytest.raises(TypeError, match="could not be resolved to positions: k\n"):
        scale(1.0, k=3)


def test_sequential_vmap_is_a_loop():
    calls = []

    @sequential_vmap
    def f(x, y):
        calls.append(x)
        return {"a": x * y, "b": (y,)}

    out = jax.vmap(f, in_axes=(0, None))(jnp.arange(64.0), 2.0)
    assert out["a"].shape == (64,) and out["b"][0].shape == (64,)
    assert len(calls) <= 2  # it is traced, not called for each example
    text = str(jax.make_jaxpr(jax.vmap(f))(jnp.arange(64.0), jnp.arange(64.0)))
    assert text.count("scan[") == 1 and "custom_vmap_call" in text
    assert str(jax.make_jaxpr(jax.vmap(jax.vmap(f)))(
        jnp.ones((2, 3)), jnp.ones((2, 3)))).count("scan[") == 2


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_sequential_vmap_of_no_examples(wrap):
    f = sequential_vmap(lambda x, y: {"a": x * jnp.sin(y), "b": (x,)})
    out = wrap(jax.vmap(f))(jnp.zeros(0), jnp.zeros((0, 2)))
    assert out["a"].shape == (0, 2) and out["b"][0].shape == (0,)


def test_sequential_vmap_refuses_a_collective_over_its_axis():
    f = sequential_vmap(lambda x: jax.lax.psum(x, "i"))
    with pytest.raises(NameError, match="unbound axis name: i"):
        jax.vmap(f, axis_name="i")(V)
    other = sequential_vmap(lambda x: jax.lax.psum(x, "j"))
    out = jax.vmap(lambda _: jax.vmap(other, axis_name="i")(V), axis_name="j")(np.zeros(2))
    np.testing.assert_array_equal(out, [2 * V, 2 * V])


def test_python_and_numpy_numbers_are_arrays_inside():
    @jax.custom_batching.custom_vmap
    def f(x, y):
        assert x.ndim == 0 and isinstance(y, jax.Array)
        return x + y.at[0].add(1.0)

    f.def_vmap(lambda size, batched, x, y: (x + y, True))
    assert f(1.0, np.ones(2, np.float32)).tolist() == [3.0, 2.0]

    @jax.custom_batching.custom_vmap
    def twice(x):
        return x * 2

    twice.def_vmap(lambda size, batched, x: (x * 2, True))
    assert isinstance(twice(1.0), jax.Array) and twice(1.0).weak_type


def test_derivatives_repeat_no_effects():
    calls = []

    @custom_vmap
    def f(x):
        jax.debug.callback(lambda: calls.append(1))
        return jnp.sin(x)

    f.def_vmap(lambda size, batched, x: (jnp.sin(x), True))
    for g in (jax.grad(f), jax.jit(jax.grad(f))):
        calls.clear()
        np.testing.assert_allclose(g(0.5), np.cos(0.5), rtol=1e-6)
        jax.effects_barrier()
        assert len(calls) == 1
