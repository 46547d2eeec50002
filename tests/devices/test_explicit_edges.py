"""What types say along Explicit axes where operands differ in rank or in how they are cut."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.errors import ShardingTypeError
from pyjx.sharding import AxisType
from pyjx.sharding import PartitionSpec as P


@pytest.fixture(autouse=True)
def explicit():
    with jax.set_mesh(jax.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)):
        yield


def put(shape, *spec):
    return jax.device_put(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), P(*spec))


def spec_text(x):
    return str(jax.typeof(x)).partition("[")[2][:-1]


@pytest.mark.parametrize(("other", "expected"), [(1.0, "8@x"), (np.ones(3), "8@x,3")])
def test_outer_functions_of_cut_arrays(other, expected):
    x = put((8,), "x")
    out = jnp.logaddexp.outer(x, other)
    assert spec_text(out) == expected
    np.testing.assert_allclose(out, np.logaddexp.outer(np.arange(8), other), rtol=1e-6)


def test_the_method_at_of_cut_arrays_asks_how_the_result_lies():
    with pytest.raises(ShardingTypeError, match="out_sharding"):
        jnp.logaddexp.at(put((8,), "x"), jnp.array([0, 1]), 2.0, inplace=False)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize(("along", "spec", "shown"), [
    ("x", ("x",), r"f32\[8@x\], in_axes: None and vmapped mesh axis: \('x',\)"),
    (("x", "y"), ("y",), r"f32\[8@y\], in_axes: None and vmapped mesh axis: \('x', 'y'\)")])
def test_what_is_not_mapped_is_whole_along_the_axis_that_is(wrap, along, spec, shown):
    mapped = wrap(jax.vmap(lambda a, b: b, (0, None)))
    with pytest.raises(ValueError, match="Unmapped values .* Got type: " + shown):
        mapped(put((8,), along), put((8,), *spec))


def test_what_is_not_mapped_may_be_cut_along_others():
    out = jax.vmap(lambda a, b: a * b, (0, None))(put((8,), "x"), put((4,), "y"))
    assert spec_text(out) == "8@x,4@y"


@pytest.mark.parametrize("call", [
    lambda a, b: a + b, lambda a, b: jnp.where(a > 0, a, b), lambda a, b: jnp.sort(a, 0),
    lambda a, b: jnp.lexsort([a, b]), lambda a, b: jnp.linalg.cholesky(a),
    lambda a, b: jnp.einsum("ij,ij->i", a, b), lambda a, b: jnp.concatenate([a, b]),
    lambda a, b: a @ a, lambda a, b: a.at[jnp.array([0])].get()])
def test_errors_say_how_operands_are_laid_alike(call):
    with pytest.raises(ShardingTypeError, match=r"jax\.reshard|out_sharding"):
        call(put((8, 8), "x", "y"), put((8, 8), "y", "x"))


def test_solutions_of_batches_that_are_cut_otherwise_are_refused():
    matrices, right = put((8, 3, 3), "x"), put((8, 3, 2), "y")
    with pytest.raises(ShardingTypeError, match=r"cut alike along their batches.*jax\.reshard"):
        jnp.linalg.solve(matrices, right)
    assert spec_text(jnp.linalg.solve(matrices, put((8, 3, 2), None, None, "y"))) == "8@x,3,2@y"


# -- what lengthens dimensions, and new arrays -----------------------------------------------------


@pytest.mark.parametrize("join", [
    lambda a, b: jnp.concatenate([a, b], 1), lambda a, b: jnp.concatenate([b, a], 0),
    lambda a, b: jnp.stack([a, b]), jnp.append, lambda a, b: jnp.hstack([a, b])])
def test_what_is_joined_lies_alike(join):
    with pytest.raises(ShardingTypeError, match="should have the same sharding"):
        join(put((8, 4), "x"), put((8, 4)))


def test_repeating_along_a_cut_axis():
    x = put((8, 4), "x")
    with pytest.raises(ShardingTypeError, match="cannot be sharded on dimension 0") as caught:
        jnp.tile(x, (2, 1))
    assert "reps: (2, 1). Call jax.reshard on it before, with P(...).\n" in str(caught.value)
    with pytest.raises(ValueError, match=r"pass sharding to `jnp\.repeat` via `out_sharding`"):
        jnp.repeat(x, 2, axis=0)
    with jax.set_mesh(None), pytest.raises(ValueError, match="is cut along the axis"):
        jnp.repeat(x, np.arange(8), axis=0)
    with pytest.raises(ShardingTypeError, match=r"rolled over.*=0\. Call jax.re"):
        jnp.roll(x, 1, axis=0)
    for out in (jnp.tile(x, (1, 2)), jnp.repeat(x, 2, axis=1)):
        assert spec_text(out) == "8@x,8"
    assert spec_text(jnp.repeat(x, 2, axis=0, out_sharding=P("x"))) == "16@x,4"
    with jax.set_mesh(None):
        assert spec_text(jnp.repeat(x, 2, axis=0)) == "16@x,4"
        assert spec_text(jnp.repeat(x, 2)) == "64@x"
    np.testing.assert_array_equal(jnp.roll(x, 1, axis=1), np.roll(np.asarray(x), 1, 1))


def test_new_arrays_lie_as_asked():
    assert spec_text(jax.lax.broadcast_like(np.arange(4.), put((8, 4), "x"))) == "8@x,4"
    with pytest.raises(ValueError, match="Incompatible types for broadcasting"):
        jax.lax.broadcast_like(put((4,), "x"), put((8, 4), "x"))
    key = np.arange(4, dtype="uint32")
    for draw in (jax.lax.rng_bit_generator, jax.jit(jax.lax.rng_bit_generator, static_argnums=(1,),
                                                    static_argnames="out_sharding")):
        bits = draw(key, (8, 2), out_sharding=P("x"))[1]
        assert spec_text(bits) == "8@x,2"
        np.testing.assert_array_equal(bits, draw(key, (8, 2))[1])


def test_convolutions_and_gathers_of_examples_that_are_cut():
    kernel, x = jnp.ones((3, 2, 5)), put((4, 2, 8, 2), "x")

    def conv(kernel, x):
        return jax.lax.conv_general_dilated(
            x, kernel, (1,), "VALID", dimension_numbers=("NHC", "HIO", "NHC"),
            out_sharding=P(None, None, None))

    def loss(kernel):
        return jax.vmap(conv, in_axes=(None, 0))(kernel, x).sum()

    assert spec_text(jax.vmap(conv, in_axes=(None, 0), out_axes=1)(kernel, x)) == "2,4@x,6,5"
    places = np.asarray(x).reshape(8, 8, 2)
    want = [places[:, i:i + 6].sum((0, 1)) for i in range(3)]
    np.testing.assert_allclose(jax.grad(loss)(kernel), np.broadcast_to(
        np.array(want)[..., None], kernel.shape))
    table, ids = put((4, 6), "x"), jax.device_put(np.zeros((4, 2), int), P("x"))
    f = jax.vmap(jax.value_and_grad(lambda t, i: t.at[i].get(out_sharding=P("y")).mean()))
    assert list(map(spec_text, jax.jit(f)(table, ids))) == ["4@x", "4@x,6"]
