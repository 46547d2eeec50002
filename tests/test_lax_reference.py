"""`jax._src.lax_reference`, and the tables of `lax` for test suites that are written for JAX."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx.compat import lax_reference as reference
from pyjx.compat import test_util as jtu
from pyjx.compat.internal_test_util import lax_test_util

OPS = lax_test_util.lax_ops()
CHECK = jtu.JaxTestCase("assertAllClose")


def near(ours: Any, other: Any, tol: Any = None) -> None:
    CHECK.assertAllClose(ours, np.asarray(other), atol=tol, rtol=tol, check_dtypes=True)


@pytest.mark.parametrize("record", OPS, ids=[f"{r.op}_{i}" for i, r in enumerate(OPS)])
def test_elements(record: Any) -> None:
    draw = record.rng_factory(np.random.RandomState(0))
    for i, dtype in enumerate(record.dtypes):
        shapes = lax_test_util.compatible_shapes[i % 3]
        args = [draw(shape, dtype) for shape in (shapes * record.nargs)[:record.nargs]]
        args = np.broadcast_arrays(*args)
        expected = getattr(reference, record.op)(*args)
        near(getattr(lax, record.op)(*args), expected, {
            **jtu.default_tolerance(), np.float32: 1e-4, np.complex64: 1e-4, np.float64: 1e-12,
            np.complex128: 1e-12, **(record.tol or {})})


def test_the_table_names_each_operation_once_for_its_dtypes() -> None:
    seen = [(r.op, np.dtype(t)) for r in OPS for t in r.dtypes]
    assert len(seen) == len(set(seen)) and len(OPS) == 70
    assert {r.op for r in lax_test_util.lax_out_dtype_ops()} == {"mul"}


@pytest.mark.parametrize("dtype", [np.float32, np.int8, ml_dtypes.bfloat16])
def test_reductions(dtype: Any) -> None:
    x = jtu.rand_small(np.random.RandomState(0))((2, 3, 4), dtype)
    for record in lax_test_util.lax_reduce_ops():
        if dtype not in record.dtypes:
            continue
        init = np.asarray(record.init_val).astype(dtype)
        ours = lax.reduce(x, init, record.op, (0, 2))
        for computation in (record.reference_op, record.op):
            near(ours, reference.reduce(x, init, computation, (0, 2)))
        jaxpr = jax.make_jaxpr(lambda x, r=record, i=init: lax.reduce(x, i, r.op, (0,)))(x)
        assert record.primitive in [eqn.primitive for eqn in jaxpr.eqns]
    for named in lax_test_util.lax_named_reduce_ops():
        if dtype in named.dtypes:
            near(named.op(x, (1,)), named.reference_op(x, axis=1).astype(dtype))


@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_LOWER", [(0, 0), (1, 2)]])
@pytest.mark.parametrize("sizes, strides, dilation", [
    ((1, 2), (1, 1), (1, 1)), ((2, 3), (2, 2), (1, 1)), ((2, 2), (1, 3), (2, 3)),
    ((1, 7), (1, 1), (1, 1))])
def test_windows(padding: Any, sizes: Any, strides: Any, dilation: Any) -> None:
    x = jtu.rand_small(np.random.RandomState(0))((3, 4), np.float32)
    init = np.float32(0.5)
    near(lax.reduce_window(x, init, lax.max, sizes, strides, padding, dilation),
         reference.reduce_window(x, init, lax_max, sizes, strides, padding, dilation))
    near(lax.reduce_window(x, np.float32(0), lax.add, sizes, strides, padding, dilation),
         reference.reduce_window(x, 0, np.add, sizes, strides, padding, dilation))


def lax_max(x: Any, y: Any) -> Any:
    return np.maximum(x, y)


@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_LOWER", [(2, -1), (1, 0)]])
@pytest.mark.parametrize("strides, lhs_dilation, rhs_dilation", [
    ((1, 1), (1, 1), (1, 1)), ((2, 3), (1, 1), (1, 1)), ((1, 2), (2, 1), (1, 2)),
    ((1, 1), (1, 1), (4, 1))])
@pytest.mark.parametrize("names, images, filters", [
    (None, (2, 3, 5, 6), (4, 3, 2, 3)), (("NHWC", "HWIO", "NHWC"), (2, 5, 6, 3), (2, 3, 3, 4))])
def test_convolution(padding: Any, strides: Any, lhs_dilation: Any, rhs_dilation: Any,
                     names: Any, images: Any, filters: Any) -> None:
    draw = jtu.rand_small(np.random.RandomState(0))
    args = (draw(images, np.float32), draw(filters, np.float32), strides, padding, lhs_dilation,
            rhs_dilation)
    if not (isinstance(padding, str) and lhs_dilation != (1, 1)):  # lax pads none of these
        near(lax.conv_general_dilated(*args, names),
             reference.conv_general_dilated(*args, names), 1e-5)
    if names is None and lhs_dilation == rhs_dilation == (1, 1):
        near(lax.conv(*args[:2], strides, padding), reference.conv(*args[:2], strides, padding),
             1e-5)


@pytest.mark.parametrize("shapes, numbers", [
    (((3, 4), (4, 2)), (((1,), (0,)), ((), ()))), (((3, 4), (2, 4)), (((1,), (1,)), ((), ()))),
    (((5, 3, 4), (4, 5, 2)), (((2,), (0,)), ((0,), (1,)))),
    (((3,), (3,)), (((0,), (0,)), ((), ()))), (((2, 3), (4,)), (((), ()), ((), ())))])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, ml_dtypes.bfloat16])
def test_products(shapes: Any, numbers: Any, dtype: Any) -> None:
    draw = jtu.rand_small(np.random.RandomState(0))
    args = [draw(shape, dtype) for shape in shapes]
    near(lax.dot_general(*args, numbers), reference.dot_general(*args, numbers))


def test_ragged_products() -> None:
    draw = jtu.rand_small(np.random.RandomState(0))
    x, matrices = draw((5, 3), np.float32), draw((2, 3, 4), np.float32)
    sizes = np.array([3, 1], np.int32)
    near(lax.ragged_dot(x, matrices, sizes), reference.ragged_dot(x, matrices, sizes), 1e-5)


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
TIES = np.array([[2, 1, 2, 1, 0], [np.nan, 1, 0, 5, 5]], np.float32)


@pytest.mark.parametrize("op, args", [
    ("pad", (X, np.float32(9), [(1, -1, 0), (0, 2, 1), (-1, 0, 2)])),
    ("pad", (X[:, :0], np.float32(9), [(0, 0, 0), (1, 1, 2), (0, 0, 0)])),
    ("pad", (X, np.float32(9), [(-2, 3, 0), (0, 0, 0), (0, 0, 0)])),
    ("slice", (X, (0, 1, 0), (2, 3, 4), (1, 1, 2))), ("slice", (X, (0, 1, 0), (2, 3, 4))),
    ("dynamic_slice", (X, (1, -1, 2), (1, 2, 3))), ("dynamic_slice", (X, (-9, 0, 1), (2, 2, 2))),
    ("dynamic_update_slice", (X, X[:1, :2] * 2, (-1, 2, np.int32(0)))),
    ("rev", (X, (0, 2))), ("transpose", (X, (2, 0, 1))), ("squeeze", (X[:1], (0,))),
    ("reshape", (X, (4, 6))), ("reshape", (X, (4, 6), (2, 0, 1))),
    ("broadcast", (X, (2, 1))), ("broadcast_in_dim", (X[:, :1], (2, 5, 3, 4), (0, 2, 3))),
    ("concatenate", ((X, X[:, :1]), 1)), ("convert_element_type", (X, ml_dtypes.bfloat16)),
    ("clamp", (np.float32(3), X, np.float32(11))), ("clamp", (X, np.full_like(X, 7), X + 2)),
    ("select", (X > 5, X, -X)), ("sort", (TIES, 0)), ("sort_key_val", (TIES, X[0, :2, :1] + TIES)),
    ("sort_key_val", (TIES, np.arange(10).reshape(2, 5).astype(np.int32), 1)),
    ("top_k", (TIES, 3)), ("round", (np.float32([.5, 1.5, -.5, 2.4999, -np.inf]),)),
    ("div", (np.int8([7, -7, -128]), np.int8([-2, 2, 3]))), ("conj", (X,)),
    ("rem", (np.int8([7, -7, -128]), np.int8([-2, 2, 3]))),
    ("population_count", (np.int8([-1, 5, -128]),)), ("clz", (np.int16([-1, 5, 0]),)),
    ("shift_left", (np.int8([-1, 5]), np.int8([1, 2]))),
    ("shift_right_arithmetic", (np.int8([-100, 5]), np.int8([1, 2]))),
])
def test_others(op: str, args: Any) -> None:
    ours, other = getattr(lax, op)(*args), getattr(reference, op)(*args)
    pairs = zip(ours, other, strict=True) if isinstance(other, tuple) else [(ours, other)]
    for mine, theirs in pairs:
        near(mine, theirs)


@pytest.mark.parametrize("x, dtype", [
    (X, np.int32), (X, np.int16), (np.int8([[1, -2], [3, 4]]), np.int16),
    (np.uint8([0x21, 0xf3]), ml_dtypes.uint4), (np.uint8([0x21, 0xf3]), ml_dtypes.int4),
    (np.array([[1, -2], [3, 4]], ml_dtypes.int4), np.uint8)])
def test_bits(x: Any, dtype: Any) -> None:
    ours, other = lax.bitcast_convert_type(x, dtype), reference.bitcast_convert_type(x, dtype)
    assert ours.dtype == other.dtype and ours.shape == other.shape
    assert np.asarray(ours).tolist() == other.tolist()


def test_unknown_padding_is_an_error() -> None:
    with pytest.raises(ValueError, match="VALID, SAME or SAME_LOWER"):
        reference.padtype_to_pads((3,), (2,), (1,), "HALF")


def test_mapped_arguments() -> None:
    x, y = X[0], X[1, 0]
    shapes = [lax_test_util.add_bdim(2, d, (3, 4)) for d in (None, 0, 2)]
    assert shapes == [(3, 4), (2, 3, 4), (3, 4, 2)]
    for bdims in lax_test_util.all_bdims((3,), ()):
        assert any(d is not None for d in bdims)
    args = lax_test_util.args_slicer([x, y], [1, None])(2)
    near(args[0], x[:, 2])
    near(args[1], y)
