"""What types say along Explicit axes where operands differ in rank or in how they are cut."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.core.explicit import ShardingTypeError
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


def test_solutions_of_batches_that_are_cut_otherwise_are_refused():
    matrices, right = put((8, 3, 3), "x"), put((8, 3, 2), "y")
    with pytest.raises(ShardingTypeError, match="cut alike along their batches"):
        jnp.linalg.solve(matrices, right)
    assert spec_text(jnp.linalg.solve(matrices, put((8, 3, 2), None, None, "y"))) == "8@x,3,2@y"
