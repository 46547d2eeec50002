"""Sorting: errors, the order of special values, stability, the lowering for accelerators."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp

X = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)


def test_sort_is_checked():
    with pytest.raises(ValueError, match="axis 2 is out of bounds for array of dimension 2"):
        lax.sort(X, 2)
    with pytest.raises(TypeError, match="Sort requires at least one operand"):
        lax.sort(())
    with pytest.raises(TypeError, match="Arguments to sort must have equal shapes"):
        lax.sort((X, X[0]))
    with pytest.raises(ValueError, match="num_keys=3 must be between 1 and"):
        lax.sort((X, X), num_keys=3)
    with pytest.raises(TypeError, match="Arguments to sort must have equal shapes"):
        lax.sort_key_val(X, X[0])


def test_top_k_is_checked():
    with pytest.raises(ValueError, match="must be no larger than size along axis; got k=6"):
        lax.top_k(X, 6)
    with pytest.raises(ValueError, match="must be nonnegative, got -1"):
        lax.top_k(X, -1)
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        lax.top_k(X, 2, axis=2)
    with pytest.raises(ValueError, match="not compatible with complex inputs"):
        lax.top_k(X.astype(np.complex64), 2)


def test_approx_is_checked():
    with pytest.raises(ValueError, match="k must be smaller than the size of reduction_dim 5"):
        lax.approx_max_k(X, 6)
    with pytest.raises(ValueError, match="k must be positive, got 0"):
        lax.approx_min_k(X, 0)
    with pytest.raises(ValueError, match="operand must be a floating type"):
        lax.approx_max_k(X.astype(np.int32), 2)
    with pytest.raises(ValueError, match="recall_target"):
        lax.approx_max_k(X, 2, recall_target=2.0)
    with pytest.raises(TypeError, match="must have >= 1 dimension"):
        lax.approx_max_k(np.float32(1), 1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, "bfloat16"])
def test_the_order_of_special_values(dtype):
    with jax.enable_x64(True):
        x = np.array([0.0, -0.0, np.nan, -np.nan, -np.inf, np.inf, 1, -1, -0.0, 0.0],
                     jax.numpy.dtype(dtype))
        out = np.asarray(lax.sort(x)).astype(np.float64)
    want = [-np.inf, -1, 0.0, -0.0, -0.0, 0.0, 1, np.inf, np.nan, -np.nan]
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(want))


def test_sorting_is_stable():
    keys = np.random.default_rng(0).integers(0, 3, 1000).astype(np.int8)
    places = np.arange(1000, dtype=np.int32)
    for stable in (True, False):
        _, order = lax.sort((keys, places), is_stable=stable)
        assert order.tolist() == np.argsort(keys, kind="stable").tolist()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_64_bit_keys(dtype):
    with jax.enable_x64(True):
        x = (np.random.default_rng(0).standard_normal(50) * 1e12).astype(dtype)
        keys, places = lax.sort_key_val(x, np.arange(50))
        np.testing.assert_array_equal(keys, np.sort(x))
        np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))


def test_the_general_comparator_equals_the_packed_keys():
    """The lowering for other platforms, run here."""
    from pyjx.runtime import compile as compiler
    from pyjx.runtime.lower import lower_closed

    x = np.array([[0.0, -0.0, np.nan, 3, -np.inf, 3, -1, np.inf]], np.float32)
    places = np.arange(8, dtype=np.int32)[None]
    closed = jax.make_jaxpr(lambda *xs: lax.sort(xs, num_keys=1))(x, places)
    device = jax.devices("cpu")[0]
    loaded = compiler.compile(lower_closed(closed, "f", platform="cuda").text, devices=(device,),
                              compiler_options=None)
    operands = [jax.device_put(v, device) for v in (x, places)]
    out = loaded.execute_sharded(operands).disassemble_into_single_device_arrays()
    for shards, want in zip(out, lax.sort((x, places), num_keys=1), strict=True):
        np.testing.assert_array_equal(np.asarray(shards[0]), want)


def test_top_k_orders_nan_first_and_ties_by_position():
    x = np.array([1, np.nan, np.inf, 1, 2], np.float32)
    values, places = lax.top_k(x, 5)
    np.testing.assert_array_equal(values, [np.nan, np.inf, 2, 1, 1])
    assert places.tolist() == [1, 2, 4, 0, 3]


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int8, np.uint16, np.bool_, np.float16,
                                   "bfloat16"])
def test_top_k_of_any_dtype(dtype):
    dtype = jax.numpy.dtype(dtype)
    x = np.random.default_rng(0).standard_normal(200)
    if dtype.kind in "iu":
        x = (x * 1e9).astype(np.int64).astype(dtype)
        x[50], x[150] = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = x.astype(dtype)
    values, places = lax.top_k(x, 200)
    order = np.argsort(-x.astype(np.float64), kind="stable")
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(np.asarray(values).view(np.uint8), x[order].view(np.uint8))
    assert values.dtype == dtype


def test_approx_without_aggregation_keeps_all_candidates():
    values, places = lax.approx_max_k(X, 2, aggregate_to_topk=False)
    np.testing.assert_array_equal(np.take_along_axis(X, np.asarray(places), 1), values)
    assert values.shape == X.shape


def test_sorted_tangents_follow_their_keys():
    x = np.array([3, 1, 2], np.float32)
    jacobian = jax.jacrev(lambda x: lax.sort(x))(x)
    assert jacobian.tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    grad = jax.grad(lambda x: lax.top_k(x, 2)[0].sum())(x)
    assert grad.tolist() == [1, 0, 1]


@pytest.mark.parametrize("name", ["top_k", "approx_max_k", "approx_min_k"])
def test_positions_are_as_weak_as_the_values(name):
    x = jnp.broadcast_to(1.0, (3,))
    choose = getattr(lax, name)
    for found in (choose(x, 2), jax.jit(choose, static_argnums=1)(x, 2)):
        assert found[1].weak_type and found[1].dtype == np.int32
    assert not choose(jnp.ones(3), 2)[1].weak_type


@pytest.mark.optimized
def test_top_k_compares_what_narrow_floats_are_rounded_to():
    x, y = np.random.RandomState(0).randn(2, 400).astype(jnp.bfloat16)
    places = jax.jit(lambda x, y: lax.top_k(x + y, 64)[1])(x, y)
    assert (places == lax.top_k(jnp.add(x, y), 64)[1]).all()
