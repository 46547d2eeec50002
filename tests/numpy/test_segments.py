"""Reductions over segments, against a loop."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import ops

DATA = np.arange(1.0, 11).reshape(5, 2).astype(np.float32)
IDS = np.array([2, 0, 0, 2, 2])
FUNCTIONS = {"sum": (np.sum, 0), "prod": (np.prod, 1), "max": (np.max, -np.inf),
             "min": (np.min, np.inf)}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("bucket_size", [None, 2, 9])
def test_against_a_loop(name, bucket_size):
    reduce, identity = FUNCTIONS[name]
    function = getattr(ops, f"segment_{name}")
    got = function(DATA, IDS, 4, bucket_size=bucket_size)
    want = [reduce(DATA[i == IDS], axis=0) if (i == IDS).any() else np.full(2, identity)
            for i in range(4)]
    np.testing.assert_allclose(got, want)
    np.testing.assert_allclose(function(DATA, IDS), want[:3])
    np.testing.assert_allclose(jax.vmap(function, (1, None, None), 1)(DATA, IDS, 4), want)


def test_numbers_out_of_range_are_dropped():
    got = ops.segment_sum(DATA, np.array([-1, 0, 7, 1, 1]), 2)
    np.testing.assert_allclose(got, [DATA[1], DATA[3] + DATA[4]])


def test_derivatives():
    def f(x):
        return (ops.segment_sum(x, IDS) ** 2).sum() + ops.segment_max(x, IDS)[0].sum()

    want = 2 * np.asarray(ops.segment_sum(DATA, IDS))[IDS]
    want[2] += 1
    np.testing.assert_allclose(jax.grad(f)(DATA), want)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "bool"])
def test_segments_without_elements(dtype):
    highest = True if dtype == "bool" else jnp.iinfo(dtype).max
    lowest = False if dtype == "bool" else jnp.iinfo(dtype).min
    assert ops.segment_max(jnp.ones(1, dtype), np.array([0]), 2).tolist() == [1, lowest]
    assert ops.segment_min(jnp.ones(1, dtype), np.array([0]), 2).tolist() == [1, highest]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "bfloat16"])
def test_buckets_keep_the_dtype_and_take_one_update(name, dtype):
    function, data = getattr(ops, f"segment_{name}"), jnp.ones(6, dtype)
    ids = np.array([0, 0, 1, 1, 5, -1])
    whole, parts = [function(data, ids, 2, bucket_size=size) for size in (None, 2)]
    assert parts.dtype == whole.dtype
    assert parts.tolist() == whole.tolist()
    sizes = [len(jax.make_jaxpr(lambda x, b=b: function(x, ids, 2, bucket_size=b))(data).eqns)
             for b in (2, 1)]
    assert sizes[0] == sizes[1]
    assert function(data[:0], ids[:0], 2, bucket_size=2).shape == (2,)


def test_bad_arguments():
    with pytest.raises(TypeError, match="segment_max requires ndarray or scalar arguments"):
        ops.segment_max([1.0, 2.0], np.array([0, 1]))
    with pytest.raises(ValueError, match="num_segments must be non-negative"):
        ops.segment_sum(DATA, IDS, -1)
    with pytest.raises(TypeError, match="segment_sum requires ndarray or scalar arguments"):
        ops.segment_sum(DATA, [0, 0, 1, 1, 1])
    with pytest.raises(jax.errors.ConcretizationTypeError, match="num_segments"):
        jax.jit(ops.segment_sum)(DATA, IDS)
    with pytest.raises(ValueError, match="bucket_size must be positive"):
        ops.segment_sum(DATA, IDS, bucket_size=0)
    with pytest.raises(ValueError, match="must have an axis to part into buckets"):
        ops.segment_sum(jnp.float32(1), np.array(0), 2, bucket_size=2)
