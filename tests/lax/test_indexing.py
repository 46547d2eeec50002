"""Errors and special cases of gather and scatter."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax

X = np.arange(12, dtype=np.float32).reshape(3, 4)
INDICES = np.array([[0], [1]])
G, S, Mode = lax.GatherDimensionNumbers, lax.ScatterDimensionNumbers, lax.GatherScatterMode
VECTOR = S((), (0,), (0,))


def gather(*fields: Any, sizes: Any = (1, 4), indices: Any = INDICES, **options: Any) -> Any:
    return lambda: lax.gather(X, indices, G(*fields), sizes, **options)


def scatter(*fields: Any, updates: Any = X[:2], indices: Any = INDICES, **options: Any) -> Any:
    return lambda: lax.scatter(X, indices, updates, S(*fields), **options)


ROWS = ((1,), (0,), (0,))
ERRORS: list[tuple[Any, type[Exception], str]] = [
    (gather(*ROWS, sizes=(1, 5)), TypeError, "Slice size at index 1 in gather op is out of range, "
     "must be within [0, 4 + 1), got 5."),
    (gather(*ROWS, sizes=(2, 4)), TypeError, "Gather op can only collapse slice dims with bound "
     "1, but bound is 2 for index 0 at position 0."),
    (gather((0, 1), (0,), (0,)), TypeError, "All components of the offset index in a gather op "
     "must either be a offset dimension or explicitly collapsed/batching"),
    (gather((5,), (0,), (0,)), TypeError, "Offset dimension 0 in gather op is out of bounds; got "
     "5, but should have been in [0, 2)"),
    (gather((1,), (5,), (0,)), TypeError, "Invalid collapsed_slice_dims set in gather op; valid "
     "range is [0, 2); got: 5."),
    (gather((1,), (0,), (5,)), TypeError, "Invalid start_index_map; domain is [0, 2), got: 0->5."),
    (gather((1,), (0,), (0, 1)), TypeError, "Gather op has 2 elements in start_index_map and the "
     "bound of dimension index_vector_dim=1 of indices is 1. These two numbers must be equal."),
    (gather(*ROWS, sizes=(1,)), TypeError, "Gather op must have one slice size for every input "
     "dimension; got: len(slice_sizes)=1, input_shape.rank=2"),
    (gather((1, 1), (), (0,)), TypeError, "offset_dims in gather op must not repeat; got: (1, 1)."),
    (gather((1, 0), (), (0,)), TypeError, "offset_dims in gather op must be sorted; got (1, 0)"),
    (gather((1,), (0, 0), (0,)), TypeError,
     "collapsed_slice_dims in gather op must not repeat; got: (0, 0)."),
    (gather((1,), (0,), (0,), (0,), (0,)), TypeError, "collapsed_slice_dims and "
     "operand_batching_dims in gather op must be disjoint; got: (0,) and (0,)."),
    (gather((), (1,), (1,), (0,), (0,), sizes=(1, 1)), TypeError, "Gather op requires operand "
     "batching dimensions and indices batching dimensions to have the same shape, got (3,) and"),
    (gather((), (1,), (1,), (0,), (), sizes=(1, 1)), TypeError, "Gather op requires equal numbers "
     "of operand_batching_dims and start_indices_batching_dims, got (0,) and ()."),
    (gather(*ROWS, indices=INDICES * 1.0), ValueError, "indices must have an integer type"),
    (gather(*ROWS, indices=1), TypeError, "Gather index leaf dimension must be within [0, "
     "rank(indices) + 1). rank(indices) is 0 and gather index leaf dimension is -1."),
    (gather(*ROWS, mode="x"), ValueError, 'Unknown gather mode "x"'),
    (scatter(*ROWS, updates=X[:1]), TypeError, "Bounds of the scatter dimensions of updates must "
     "be the same as the bounds of the corresponding dimensions of scatter indices. For scatter "
     "dimension 0, updates bound is 1, indices bound is 2."),
    (scatter(*ROWS, updates=X[:2].astype(int)), TypeError,
     "lax.scatter requires arguments to have the same dtypes, got float32, int32. Give updates the "
     "dtype of operand, as in jnp.asarray(updates, 'float32')."),
    (scatter((3,), (0,), (0,)), TypeError, "Invalid update_window_dims set in scatter op; valid "
     "range is [0, 2); got: 3."),
    (scatter((1,), (3,), (0,)), TypeError, "Invalid inserted_window_dims set in scatter op; valid "
     "range is [0, 2); got: 3."),
    (scatter((1,), (0,), (3,)), TypeError, "Invalid scatter_dims_to_operand_dims"),
    (scatter((1,), (), (0,)), TypeError,
     "Scatter op has window of size 1; doesn't match operand of rank 2."),
    (scatter(*ROWS, updates=np.ones((2, 5), np.float32)), TypeError, "Bounds of the window "
     "dimensions of updates must not exceed the bounds of the corresponding dimensions of "
     "operand. For dimension 1, updates bound is 5, operand bound is 4."),
    (scatter(*ROWS, updates=X[0, :2]), TypeError, "Updates tensor must be of rank 2; got 1."),
    (scatter((1,), (0, 0), (0,)), TypeError,
     "inserted_window_dims in scatter op must not repeat; got: (0, 0)."),
    (scatter(*ROWS, indices=INDICES * 1.0), ValueError, "indices must have an integer type"),
    (lambda: lax.scatter_add(X > 0, INDICES, X[:2] > 0, S(*ROWS)), TypeError,
     "add does not accept dtype bool at position 0."),
    (lambda: lax.scatter_apply(X[0], INDICES, lambda x: x > 0, VECTOR, update_shape=(2,)),
     TypeError, "scatter_apply: func must return a value of type float32[], got bool[]."),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_error(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert text in str(raised.value)


def test_modes_by_name() -> None:
    names = {"clip": Mode.CLIP, "fill": Mode.FILL_OR_DROP, "drop": Mode.FILL_OR_DROP,
             None: Mode.FILL_OR_DROP, "promise_in_bounds": Mode.PROMISE_IN_BOUNDS,
             "one_hot": Mode.ONE_HOT, Mode.CLIP: Mode.CLIP}
    assert all(Mode.from_any(name) is mode for name, mode in names.items())
    with pytest.raises(ValueError, match='Unknown gather mode "3"'):
        Mode.from_any(3)  # type: ignore[arg-type]
    assert str(Mode.CLIP) == "GatherScatterMode.CLIP"


def test_dimension_numbers() -> None:
    numbers = G((1,), (0,), (0,))
    assert repr(numbers) == (
        "GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), "
        "operand_batching_dims=(), start_indices_batching_dims=())"
    )
    assert pickle.loads(pickle.dumps(numbers)) == numbers == copy.deepcopy(numbers)
    lists = G([1], [0], [0])  # type: ignore[arg-type]
    np.testing.assert_array_equal(lax.gather(X, INDICES, lists, [1, 4]), X[:2])


def test_fill_value_may_be_an_array() -> None:
    out = lax.gather(X[0], np.array([[9]]), G((), (0,), (0,)), (1,), mode="fill",
                     fill_value=jax.numpy.float32(7))
    assert out.tolist() == [7.0]


def test_jaxpr() -> None:
    text = str(jax.make_jaxpr(lambda x, i: lax.scatter_add(x, i, x[:2], S(*ROWS)))(X, INDICES))
    assert "update_jaxpr={ lambda ; e:f32[] f:f32[]. let g:f32[] = add e f in (g,) }" in text
    assert "mode=GatherScatterMode.FILL_OR_DROP" in text and "update_consts=()" in text


def test_extrema_share_the_derivative() -> None:
    v, u = np.array([1, 2, 3], np.float32), np.array([1, 1, 3, 8], np.float32)
    indices = np.array([[0], [0], [2], [9]])
    for fun in (lax.scatter_min, lax.scatter_max):
        dv, du = jax.jacrev(lambda v, u, fun=fun: fun(v, indices, u, VECTOR), (0, 1))(v, u)
        np.testing.assert_allclose(np.diag(dv), [1 / 3, 1, 1 / 2], rtol=1e-6)
        np.testing.assert_allclose(du[[0, 0, 2, 2], [0, 1, 2, 3]], [1 / 3, 1 / 3, 1 / 2, 0],
                                   rtol=1e-6)


def test_value_and_derivative_agree_on_who_wins() -> None:
    v, u = np.zeros(3, np.float32), np.array([5, 6, 7], np.float32)
    indices = np.array([[1], [1], [2]])
    out, tangent = jax.jvp(lambda u: lax.scatter(v, indices, u, VECTOR), (u,), (u * 10,))
    np.testing.assert_array_equal(tangent, out * 10)


def test_second_derivative_of_a_product() -> None:
    x, u = np.array([2, 3], np.float32), np.array([5, 7], np.float32)
    hessian = jax.hessian(lambda u: lax.scatter_mul(x, np.zeros((2, 1), int), u, VECTOR).sum())(u)
    np.testing.assert_allclose(hessian, [[0, 2], [2, 0]], atol=1e-5)


def test_scatter_apply() -> None:
    indices = np.array([[1], [1], [2], [9]])
    scale = jax.numpy.float32(1)
    x = np.array([1, 2, 3], np.float32)

    def apply(x: Any) -> Any:
        return lax.scatter_apply(x, indices, lambda e: e * np.float32(2) + scale, VECTOR,
                                 update_shape=(4,))

    assert apply(x).tolist() == [1, 11, 7]
    with pytest.raises(NotImplementedError, match="scatter_apply JVP not implemented"):
        jax.grad(lambda x: apply(x).sum())(x)
    with pytest.raises(TypeError, match="concrete scalars only"):
        jax.jit(lambda s: lax.scatter_apply(x, indices, lambda e: e * s, VECTOR,
                                            update_shape=(4,)))(np.float32(2))


def test_batch_of_no_examples() -> None:
    xs, indices = np.zeros((0, 3), np.float32), np.zeros((0, 2, 1), np.int32)
    out = jax.vmap(lambda x, i: lax.gather(x, i, G((), (0,), (0,)), (1,)))(xs, indices)
    assert out.shape == (0, 2)
    out = jax.vmap(lambda x, i: lax.scatter(x, i, X[0, :2], VECTOR))(xs, indices)
    assert out.shape == (0, 3)
