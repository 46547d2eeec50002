"""Python functions on the memory of arrays."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental.buffer_callback import Buffer, ExecutionStage, buffer_callback


def like(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def double(ctx, out, x):
    assert ctx.stage == ExecutionStage.EXECUTE
    np.asarray(out)[...] = 2 * np.asarray(x)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "float32", "complex64"])
def test_it_writes_its_result(dtype):
    f = buffer_callback(double, like(2, 3, dtype=dtype))
    x = jnp.arange(6, dtype=dtype).reshape(2, 3)
    for g in (f, jax.jit(f), lambda x: jax.jit(lambda x: f(x + 0))(x)):
        assert (g(x) == 2 * x).all() and g(x).dtype == x.dtype


def test_buffers_say_what_they_are():
    seen = []

    def look(ctx, out, x):
        seen.append((isinstance(out, Buffer), out.shape, out.ndim, out.dtype, out.writeable,
                     x.writeable))
        np.asarray(out)[...] = 0

    buffer_callback(look, like(3, dtype="int32"))(jnp.ones((2, 2)))
    assert seen == [(True, (3,), 1, np.dtype("int32"), True, False)]


def test_trees():
    def f(ctx, outs, pair, *, z):
        a, b = map(np.asarray, pair)
        np.asarray(outs["sum"])[...] = a + b
        np.asarray(outs["z"])[...] = np.asarray(z)

    outs = buffer_callback(f, {"sum": like(2), "z": like()})((jnp.ones(2), jnp.arange(2.0)), z=5.0)
    assert outs["sum"].tolist() == [1, 2] and float(outs["z"]) == 5


def test_a_result_in_the_memory_of_an_argument():
    def add_one(ctx, out, x):
        np.asarray(out)[...] += 1

    f = buffer_callback(add_one, like(3), input_output_aliases={0: 0})
    x = jnp.arange(3.0)
    assert f(x).tolist() == [1, 2, 3] and x.tolist() == [0, 1, 2]
    assert jax.jit(lambda x: f(f(x)))(x).tolist() == [2, 3, 4]
    assert "output_operand_aliases" in jax.jit(f).lower(x).as_text()
    with pytest.raises(ValueError, match="cannot share its memory"):
        buffer_callback(add_one, like(2), input_output_aliases={0: 0})(x)


def test_side_effects():
    calls = []

    def note(ctx, out, x):
        calls.append(float(np.asarray(x)))
        np.asarray(out)[...] = 0

    for effect, expected in ((False, []), (True, [3.0])):
        f = buffer_callback(note, like(), has_side_effect=effect)
        jax.jit(lambda x, f=f: (f(x), x)[1])(3.0)
        jax.effects_barrier()
        assert calls == expected


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims",
                                    "broadcast_all"])
def test_vmap(method):
    f = buffer_callback(double, like(3), vmap_method=method)
    x = jnp.arange(6.0).reshape(2, 3)
    assert (jax.vmap(f)(x) == 2 * x).all()
    assert (jax.jit(jax.vmap(f, in_axes=1))(x.T) == 2 * x).all()


def test_errors():
    def fail(ctx, out, x):
        raise ValueError("boom")

    with pytest.raises(jax.errors.JaxRuntimeError, match="boom") as info:
        buffer_callback(fail, like(3))(jnp.ones(3))
    assert isinstance(info.value.__cause__, ValueError)
    f = buffer_callback(double, like(3))
    with pytest.raises(NotImplementedError, match="vmap is only supported for the buffer_callback"):
        jax.vmap(f)(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="Buffer callbacks do not support JVP"):
        jax.grad(lambda x: f(x).sum())(jnp.ones(3))
    with pytest.raises(ValueError, match="vmap_method must be on of the allowed methods"):
        buffer_callback(double, like(3), vmap_method="none")
    with pytest.raises(TypeError, match="result_shape_dtypes must hold values with a shape"):
        buffer_callback(double, 3)
