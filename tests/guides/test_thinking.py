"""A guide to thinking in arrays that do not change, layers of the interface, and tracing."""

from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax


def test_a_curve_as_in_numpy():
    x = jnp.linspace(0, 10, 1000)
    y = 2 * jnp.sin(x) * jnp.cos(x)
    grid = np.linspace(0, 10, 1000)
    np.testing.assert_allclose(y, 2 * np.sin(grid) * np.cos(grid), atol=2e-6)
    assert type(x).__name__ == "ArrayImpl"


def test_arrays_do_not_change():
    x = jnp.arange(10)
    with pytest.raises(TypeError, match=r"(?s)arrays are immutable.*x = x\.at\[idx\]\.set\(y\)"):
        x[0] = 10
    y = x.at[0].set(10)
    assert str(x) == "[0 1 2 3 4 5 6 7 8 9]"
    assert str(y) == "[10  1  2  3  4  5  6  7  8  9]"


def test_the_layer_below_promotes_nothing():
    assert repr(jnp.add(1, 1.0)) == "Array(2., dtype=float32, weak_type=True)"
    with pytest.raises(TypeError, match=r"lax\.add requires arguments to have"):
        lax.add(1, 1.0)
    assert repr(lax.add(jnp.float32(1), 1.0)) == "Array(2., dtype=float32)"


def test_a_convolution_in_both_layers():
    x, y = jnp.array([1, 2, 1]), jnp.ones(10)
    shown = "Array([1., 3., 4., 4., 4., 4., 4., 4., 4., 4., 3., 1.], dtype=float32)"
    assert repr(jnp.convolve(x, y)) == shown
    result = lax.conv_general_dilated(
        x.reshape(1, 1, 3).astype(float), y.reshape(1, 1, 10), window_strides=(1,),
        padding=[(len(y) - 1, len(y) - 1)])
    assert repr(result[0, 0]) == shown


def test_what_is_compiled_gives_the_same():
    def norm(rows):
        rows = rows - rows.mean(0)
        return rows / rows.std(0)

    rows = jnp.array(np.random.RandomState(1701).rand(10000, 10))
    assert np.allclose(norm(rows), jax.jit(norm)(rows), atol=1e-6)


def test_shapes_do_not_depend_on_values():
    def negatives(x):
        return x[x < 0]

    state = np.random.RandomState(1701)
    state.rand(10000, 10)
    x = jnp.array(state.randn(10))
    assert repr(negatives(x)) == (
        "Array([-0.10570311, -0.59403396, -0.8680282 , -0.23489487], dtype=float32)")
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError, match=(
            r"^Array boolean indices must be concrete; got bool\[10\]")):
        jax.jit(negatives)(x)


def test_python_runs_once_and_sees_tracers(capsys):
    @jax.jit
    def f(x, y):
        print("Running f():")
        print(f"  x = {x}")
        print(f"  y = {y}")
        result = jnp.dot(x + 1, y + 1)
        print(f"  result = {result}")
        return result

    state = np.random.RandomState(1701)
    state.rand(10000, 10)
    state.randn(10)
    first = f(state.randn(3, 4), state.randn(4))
    assert capsys.readouterr().out.split("\n") == [
        "Running f():", "  x = JitTracer(float32[3,4])", "  y = JitTracer(float32[4])",
        "  result = JitTracer(float32[3])", ""]
    np.testing.assert_allclose(first, [0.25773212, 5.3623195, 5.403243], rtol=1e-5)
    second = f(state.randn(3, 4), state.randn(4))
    assert capsys.readouterr().out == ""
    np.testing.assert_allclose(second, [1.4344584, 4.3004413, 7.9897013], rtol=1e-5)


def test_the_recorded_program():
    program = jax.make_jaxpr(lambda x, y: jnp.dot(x + 1, y + 1))(np.ones((3, 4)), np.ones(4))
    assert str(program) == """\
{ lambda ; a:f32[3,4] b:f32[4]. let
    c:f32[3,4] = add a 1.0:f32[]
    d:f32[4] = add b 1.0:f32[]
    e:f32[3] = dot_general[
      dimension_numbers=(([1], [0]), ([], []))
      preferred_element_type=float32
    ] c d
  in (e,) }"""


def test_branches_on_traced_values():
    def f(x, neg):
        return -x if neg else x

    with pytest.raises(jax.errors.TracerBoolConversionError, match=(
            r"(?s)^Attempted boolean conversion of traced array with shape bool\[\]\..*"
            "it depends on the value of the argument neg")):
        jax.jit(f)(1, True)
    static = partial(jax.jit, static_argnums=(1,))(f)
    assert repr(static(1, True)) == "Array(-1, dtype=int32, weak_type=True)"
    assert repr(static(1, False)) == "Array(1, dtype=int32, weak_type=True)"


def test_what_is_static_is_computed_by_numpy(capsys):
    @jax.jit
    def wrong(x):
        return x.reshape(jnp.array(x.shape).prod())

    with pytest.raises(TypeError, match=(
            "Shapes must be 1D sequences of concrete values of integer type")):
        wrong(jnp.ones((2, 3)))

    @jax.jit
    def shown(x):
        print(f"{x} {x.shape} {jnp.array(x.shape).prod()}")

    shown(jnp.ones((2, 3)))
    assert capsys.readouterr().out == "JitTracer(float32[2,3]) (2, 3) JitTracer(int32[])\n"
    right = jax.jit(lambda x: x.reshape((np.prod(x.shape),)))
    assert repr(right(jnp.ones((2, 3)))) == "Array([1., 1., 1., 1., 1., 1.], dtype=float32)"
