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
