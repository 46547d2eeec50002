"""composite: what it computes, what text it becomes, what it refuses."""

from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax

X = np.float32([1, 2])


@partial(lax.composite, name="my.scale", version=2)
def scale(x, /, *, k=1, note=None):
    """The doc string."""
    return {"out": x * k, "in": x}


def test_is_its_decomposition():
    for f in (scale, jax.jit(scale), jax.jit(lambda x: scale(x, note="a"))):
        np.testing.assert_array_equal(f(X)["out"], X)
    np.testing.assert_array_equal(scale(X, k=3)["out"], 3 * X)
    np.testing.assert_array_equal(jax.jit(partial(scale, k=3))(X)["out"], 3 * X)
    assert scale.__name__ == "scale" and scale.__doc__ == "The doc string."


def test_text():
    text = jax.jit(lambda x: scale(x, k=2.5, note="a\"b")).lower(X).as_text()
    assert ('stablehlo.composite "my.scale" %arg0 {composite_attributes = {k = 2.500000e+00 : f64, '
            'note = "a\\"b"}, decomposition = @my.scale, version = 2 : i32}') in text
    assert "func.func private @my.scale(" in text
    text = jax.jit(lax.composite(lambda x, **_: x, "a.b")).lower(X).as_text()
    assert '"a.b" %arg0 {decomposition = @a.b} : (tensor<2xf32>) -> tensor<2xf32>' in text


def test_all_kinds_of_attributes_compile():
    f = lax.composite(lambda x, **_: x + 1, "my.op")
    given = {"b": True, "i": 3, "f": 1.5, "s": "text", "l": [1, "x"], "t": (1.5,), "d": {"x": 1},
             "a": np.arange(3), "h": np.float16(2), "m": np.ones((2, 2), np.float32), "n": None}
    text = jax.jit(lambda x: f(x, **given)).lower(X).as_text()
    for part in ("b = true", "i = 3 : i64", "h = 2.000000e+00 : f16", "d = {x = 1 : i64}",
                 "tensor<3xi64>", "tensor<2x2xf32>"):
        assert part in text
    assert "n = " not in text.split("decomposition")[0]
    np.testing.assert_array_equal(jax.jit(lambda x: f(x, **given))(X), X + 1)


def test_constants_are_operands_and_jaxprs_show_it():
    table = np.arange(4, dtype=np.float32).reshape(2, 2)
    f = lax.composite(lambda x: jnp.asarray(table) @ x, "my.product")
    np.testing.assert_array_equal(jax.jit(f)(X), table @ X)
    eqn = jax.make_jaxpr(lambda x: scale(x, k=2))(X).eqns[0]
    assert eqn.primitive.name == "composite"
    assert eqn.params["attributes"] == (("k", "2 : i64"),)
    assert (eqn.params["name"], eqn.params["version"]) == ("my.scale", 2)


def test_inside_loops_and_branches():
    f = lambda x: scale(x, k=2)["out"]  # noqa: E731
    run = jax.jit(lambda x: lax.scan(lambda c, _: (lax.cond(c[0] < 3, f, jnp.sin, c), None), x,
                                     None, length=2)[0])
    np.testing.assert_array_equal(run(X), 4 * X)


def test_other_rules_come_from_custom_functions():
    f = lambda x: scale(x, k=3)["out"]  # noqa: E731
    for how in (lambda f: jax.jvp(f, (X,), (X,)), lambda f: jax.grad(lambda x: f(x).sum())(X)):
        with pytest.raises(ValueError, match="JVP rule for composite not implemented"):
            how(f)
    with pytest.raises(NotImplementedError, match="Batching rule for 'composite'"):
        jax.vmap(f)(X)
    custom = jax.custom_jvp(f)
    custom.defjvp(lambda p, t: (f(*p), 3 * t[0]))
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: custom(x).sum()))(X), [3, 3])


def test_refuses_traced_values_and_names_without_namespace():
    for f in (lambda k: scale(X, k=k), lambda k: lax.composite(lambda x: x * k, "my.op")(X)):
        with pytest.raises(jax.errors.UnexpectedTracerError, match="composite op 'my"):
            jax.jit(f)(2.0)
    with pytest.raises(ValueError, match=r"my_namespace.my_op.*'scale'"):
        jax.jit(lax.composite(lambda x: x, "scale"))(X)
    with pytest.raises(TypeError, match="attribute o must be"):
        lax.composite(lambda x, o: x, "my.op")(X, o=object())
