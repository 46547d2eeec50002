"""Tracing without running: `make_jaxpr`, `eval_shape`, `ShapeDtypeStruct`, `typeof`."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp

pytestmark = pytest.mark.smoke

S = jax.ShapeDtypeStruct


@pytest.fixture
def x():
    return jnp.arange(3.0)


def test_make_jaxpr_of_arguments_of_all_kinds(x):
    expected = "{ lambda ; a:f32[3]. let b:f32[3] = mul a 3.0:f32[] in (b,) }"
    f = jax.make_jaxpr(lambda a: a * 3)
    for argument in (x, np.ones(3, np.float32), S((3,), "float32"), jax.typeof(x)):
        assert str(f(argument)) == expected
    assert str(jax.make_jaxpr(lambda: None)()) == "{ lambda ; . let  in () }"


def test_make_jaxpr_with_static_and_keyword_arguments(x):
    expected = "{ lambda ; a:f32[3]. let b:f32[3] = mul a 3.0:f32[] in (b,) }"
    for numbers in (1, -1, (1,)):
        f = jax.make_jaxpr(lambda a, n: a * int(n), static_argnums=numbers)
        assert str(f(x, 3)) == expected
    assert "mul" in str(jax.make_jaxpr(lambda a, n: a * n)(x, n=3))


def test_make_jaxpr_return_shape(x):
    closed, shape = jax.make_jaxpr(lambda a: {"b": a * 3, "c": 1}, return_shape=True)(x)
    assert len(closed.eqns) == 1
    assert shape == {"b": S((3,), np.float32), "c": S((), np.int32, weak_type=True)}


def test_make_jaxpr_name_and_errors():
    def some_name(a):
        return a

    assert jax.make_jaxpr(some_name).__name__ == "make_jaxpr(some_name)"
    with pytest.raises(TypeError, match="callable"):
        jax.make_jaxpr(3)
    with pytest.raises(TypeError, match="at path a"):
        jax.make_jaxpr(some_name)("text")


def test_eval_shape(x):
    out = jax.eval_shape(lambda a, b: {"s": a @ b, "n": None}, S((2, 3), "float32"),
                         np.ones((3, 4), np.float32))
    assert out == {"s": S((2, 4), np.float32), "n": None}
    assert jax.eval_shape(lambda a, b=1: a * b, 1.0, b=x) == S((3,), np.float32)
    f = jax.jit(lambda a, n: a * int(n), static_argnums=1)
    assert jax.eval_shape(f, x, 3) == f.eval_shape(x, 3) == S((3,), np.float32)
    assert jax.eval_shape(lambda a: a * 2, 3).weak_type
    assert jax.eval_shape(lambda a: a * 2, S((), np.int32, weak_type=True)).weak_type
    assert jax.eval_shape(lambda a: a * 2, S((2,), "float64")).dtype == np.float32
    with pytest.raises(TypeError, match="at path a"):
        jax.eval_shape(lambda a: a, "text")
    with pytest.raises(TypeError, match="callable"):
        jax.eval_shape(3)


def test_eval_shape_runs_nothing():
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.eval_shape(lambda a: float(a), 1.0)
    huge = jax.eval_shape(lambda: jnp.zeros((10**6, 10**6)))
    assert huge.size == 10**12


def test_objects_with_shape_and_dtype():
    class Described:
        shape = (3,)
        dtype = np.dtype("float32")

    assert jax.eval_shape(lambda a: a * 2, Described()) == S((3,), np.float32)


def test_struct():
    s = S((2, 3), "float32")
    assert (s.size, s.ndim, len(s), s.shape, s.dtype) == (6, 2, 2, (2, 3), np.float32)
    assert s == S([2, 3], np.float32)
    assert hash(s) == hash(S([2, 3], np.float32))
    assert s != S((2, 3), np.float16)
    assert s.update(shape=(4,)) == S((4,), np.float32)
    assert repr(s) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    assert repr(S((), np.int8, weak_type=True)).endswith("weak_type=True)")
    assert S.like(jnp.ones(2)) == S((2,), np.float32)
    sharding = jnp.ones(2).sharding
    assert S((2,), "float32", sharding=sharding).sharding is sharding


@pytest.mark.parametrize(("make", "error"), [
    (lambda: S((2,), None), ValueError),
    (lambda: S((1.5,), "float32"), TypeError),
    (lambda: S((2,), "float32", sharding=3), ValueError),
    (lambda: len(S((), "float32")), TypeError),
    (lambda: S((2,), "float32").update(nonsense=1), TypeError),
])
def test_bad_structs(make, error):
    with pytest.raises(error):
        make()


def test_typeof(x):
    assert str(jax.typeof(x)) == "float32[3]"
    assert repr(jax.typeof(1)) == "ShapedArray(int32[], weak_type=True)"
    assert not jax.typeof(True).weak_type
    assert jax.typeof(np.ones((2, 3))).dtype == np.float32
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.typeof("text")
    assert jax.jit(lambda a: jax.typeof(a).shape == (3,))(x)


def test_jit_refuses_what_only_describes_a_result():
    """Though `eval_shape`, which takes it, has traced the function before."""
    def f(x):
        return jax.ShapeDtypeStruct((2,), np.float32)

    assert jax.eval_shape(f, 1.0).shape == (2,)
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.jit(f)(1.0)
    assert jax.eval_shape(f, 1.0).shape == (2,)
