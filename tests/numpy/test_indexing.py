"""Indexing, `.at[]` and `take` against NumPy, and JAX's rules for indices out of bounds."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.test_util import check_grads

X = np.arange(4 * 5 * 6, dtype=np.float32).reshape(4, 5, 6)
I2 = np.array([[0, 1], [3, -1]])
V = np.array([2, 0, -3])
MASK = np.array([True, False, True, False])

BASIC = [
    0, -1, (1, 2), (1, 2, 3), slice(1, 3), slice(None, None, -1), slice(None, None, 2),
    slice(3, 0, -2), slice(2, 2), slice(-2, None), (slice(None), 1), (slice(1, 3), slice(2, 4), 5),
    Ellipsis, (Ellipsis, 0), (0, Ellipsis), (None, 0), (0, None), (slice(None), None, 2),
    (None, Ellipsis, None), (Ellipsis, slice(None, None, -1)), (), None, (np.int32(2), np.int8(-1)),
    (slice(0, 100), slice(-100, 2)), (slice(None), slice(None), slice(5, None, -3)),
    (1, Ellipsis, slice(0, 4, 3)),
]
ADVANCED = [
    V, I2, (slice(None), V), (V, V), (V, slice(None), V), (slice(None), V, V), (0, V),
    (V, 0), (0, slice(None), V), (slice(None), 1, V), (I2, V[:2]), (V[:, None], V), (Ellipsis, V),
    (None, V), (V, None, V), (slice(1, 3), V), (slice(None, None, 2), V), (V, slice(3, 0, -1)),
    (slice(3, 0, -2), slice(None), V), (np.array(2), slice(1, 3)), (V, Ellipsis, 0),
    (np.array(1), np.array(2)), np.zeros((0,), np.int32), (slice(None), np.array([], np.int64)),
    MASK, (MASK, 0), (slice(None), np.array([True, False, True, True, False])),
    np.ones((4, 5), bool), np.arange(20).reshape(4, 5) % 3 == 0, (MASK, slice(1, 3)),
    (0, [1, 2]), ([0, 1], [1, 2]), True, False, ((0, 1),), ((0, 1), (1, 2)), (((0, 1), (2, 3)),),
    ([],), ((), 1), ([True, False, True, True],),
    (True, 0), (slice(None), True), np.array(True), (V, True), np.uint8([1, 2]),
    np.zeros_like(MASK),
]
INDICES = BASIC + ADVANCED


def name_of(index):
    return " ".join(str(index).split())


@pytest.mark.parametrize("index", INDICES, ids=name_of)
def test_getitem(index):
    expected = X[index]
    x = jnp.asarray(X)
    got = x[index]
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)
    traced = jax.jit(lambda x: x[index])(x)
    np.testing.assert_array_equal(traced, expected)


def has_mask(index):
    items = index if isinstance(index, tuple) else (index,)
    return any(isinstance(i, bool) or getattr(i, "dtype", None) == np.bool_ for i in items)


@pytest.mark.parametrize("index", [i for i in ADVANCED if not has_mask(i)], ids=name_of)
def test_getitem_with_traced_indices(index):
    items = index if isinstance(index, tuple) else (index,)
    where = [k for k, a in enumerate(items) if isinstance(a, np.ndarray)]

    def take(x, *arrays):
        full = list(items)
        for k, a in zip(where, arrays, strict=True):
            full[k] = a
        return x[tuple(full)]

    got = jax.jit(take)(X, *[items[k] for k in where])
    np.testing.assert_array_equal(got, X[index])


@pytest.mark.parametrize("index", INDICES, ids=name_of)
@pytest.mark.parametrize("method", ["set", "add", "multiply", "min"])
def test_updates(index, method):
    shape = X[index].shape
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 40
    expected = X.copy()
    if method == "set":
        expected[index] = values
    else:
        combine = {"add": np.add, "multiply": np.multiply, "min": np.minimum}[method]
        combine.at(expected, index, values)
    x = jnp.asarray(X)
    np.testing.assert_array_equal(getattr(x.at[index], method)(values), expected)
    np.testing.assert_array_equal(x, X)
    traced = jax.jit(lambda x, v: getattr(x.at[index], method)(v))(x, values)
    np.testing.assert_array_equal(traced, expected)


def test_all_methods_of_at():
    x = jnp.array([1.0, 2.0, 3.0])
    at = x.at[1]
    assert at.set(9).tolist() == [1, 9, 3]
    assert at.add(1).tolist() == [1, 3, 3]
    assert at.subtract(1).tolist() == at.sub(1).tolist() == [1, 1, 3]
    assert at.mul(4).tolist() == at.multiply(4).tolist() == [1, 8, 3]
    assert at.divide(4).tolist() == [1, 0.5, 3]
    assert at.power(3).tolist() == [1, 8, 3]
    assert at.min(0).tolist() == [1, 0, 3]
    assert at.max(7).tolist() == [1, 7, 3]
    assert at.apply(lambda v: -v).tolist() == [1, -2, 3]
    assert float(at.get()) == 2
    assert x.at[jnp.array([0, 0])].add(1).tolist() == [3, 2, 3]
    assert repr(x.at[0]).startswith("_IndexUpdateRef(Array([1., 2., 3.]")


def test_updates_broadcast_and_convert():
    x = jnp.zeros((2, 3), int)
    assert x.at[0].set(True).tolist() == [[1, 1, 1], [0, 0, 0]]
    assert x.at[:, 1].set(jnp.array([4, 5])).tolist() == [[0, 4, 0], [0, 5, 0]]
    assert x.at[0].set([1, 2, 3]).tolist() == [[1, 2, 3], [0, 0, 0]]
    with pytest.warns(FutureWarning, match="scatter inputs have incompatible types"):
        assert x.at[0, 0].set(1.5).dtype == "int32"
    with pytest.raises(ValueError, match="Incompatible types for broadcasting"):
        x.at[0].set(jnp.ones(2, int))
    assert x.at[0].set([[1, 2, 3]]).tolist() == [[1, 2, 3], [0, 0, 0]]


def test_out_of_bounds():
    x = jnp.arange(4.0)
    far = jnp.array([1, 7, -9])
    assert x[10].shape == () and x[far].shape == (3,)
    assert float(x[10]) == 3.0
    assert x.at[10].set(5).tolist() == x.tolist()
    assert x.at[far].add(1).tolist() == [0, 2, 2, 3]
    filled = x.at[far].get(mode="fill", fill_value=-1)
    assert filled.tolist() == [1, -1, -1]
    assert np.isnan(x.at[7].get(mode="fill"))
    assert x.at[far].get(mode="clip").tolist() == [1, 3, 0]
    assert x.at[far].set(8, mode="clip").tolist() == [8, 8, 2, 8]
    wrap = x.at[jnp.array([-1])].get(mode="fill", wrap_negative_indices=False)
    assert np.isnan(wrap).all()
    with pytest.raises(ValueError, match='Unknown gather mode "foo"'):
        x.at[0].get(mode="foo")


@pytest.mark.parametrize("jit", [lambda f: f, jax.jit])
def test_integers_out_of_bounds(jit):
    x = jnp.arange(4.0)

    def get(i, **options):
        return float(jit(lambda x: x.at[i].get(**options))(x))

    for mode in (None, "clip", "promise_in_bounds"):
        assert [get(i, mode=mode) for i in (-9, -5, 4, 2**31 - 1)] == [0, 0, 3, 3]
        assert get(-1, mode=mode, wrap_negative_indices=False) == 0
    assert [get(i, mode="clip") for i in (2**31, 2**70, -2**70)] == [3, 3, 0]
    assert float(jit(lambda x: x[-6])(x)) == 0
    assert np.isnan(get(-1, mode="fill", wrap_negative_indices=False))
    assert jit(lambda x: x.at[-1].set(9, wrap_negative_indices=False))(x).tolist() == x.tolist()
    assert jit(lambda x: x.reshape(2, 2)[-3, 1:])(x).tolist() == [1]
    for index in (2**31, -2**40):
        with pytest.raises(OverflowError, match="too large to convert to int32"):
            jit(lambda x, i=index: x[i])(x)


def test_strict_indices():
    x = jnp.zeros((3, 4))
    with jax.configuration.strict_indices(True):
        for index in (3, -4, (0, 4), (slice(None), 9), np.array([5]), jnp.array([0, -5])):
            with pytest.raises(IndexError, match="out of bounds"):
                x[index]
            with pytest.raises(IndexError, match="out of bounds"):
                x.at[index].set(1)
        assert x[2].shape == (4,)


@pytest.mark.parametrize(("index", "error", "text"), [
    ([0, 1], TypeError, "Using a non-tuple sequence for multidimensional indexing"),
    ("a", TypeError, "JAX does not support string indexing; got idx='a'"),
    (1.0, TypeError, "Indexer must have integer or boolean type, got indexer with type float"),
    (np.ones(2), TypeError, "Indexer must have integer or boolean type"),
    ((0, 0, 0, 0), IndexError, "Too many indices: array is 3-dimensional, but 4 were indexed"),
    ((Ellipsis, Ellipsis), IndexError, "an index can only have a single ellipsis"),
    (np.array([True, False]), IndexError, r"boolean index did not match shape of indexed array in "
     r"index 0: got \(2,\), expected \[4\]"),
    ((np.zeros((2, 2), int), np.zeros(3, int)), ValueError, "Incompatible shapes for broadcasting"),
    (slice(1.5, None), TypeError, "cannot be interpreted as an integer|slice indices must be"),
    ({}, IndexError, "only integers, slices"),
    (range(2), TypeError, "Using a non-tuple sequence for multidimensional indexing"),
    ((range(2),), TypeError, "Using a non-tuple sequence for multidimensional indexing"),
    (((1.0, 2),), TypeError, "Indexer must have integer or boolean type"),
    (((None,),), ValueError, "None is not a valid value"),
    ((2**40, V), OverflowError, "too large to convert to int32"),
])
def test_bad_indices(index, error, text):
    x = jnp.asarray(X)
    with pytest.raises(error, match=text):
        x[index]
    with pytest.raises(error, match=text):
        x.at[index].set(0)


def test_traced_masks_and_slices():
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError):
        jax.jit(lambda x: x[x > 0])(X)
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError):
        jax.jit(lambda x: x[jnp.array(MASK)])(X)
    with pytest.raises(IndexError, match="Slice entries must be static integers"):
        jax.jit(lambda x: x[jnp.array(1):])(X)
    outside, bound = jnp.array(MASK), jnp.array(1)  # made before, so their values are known
    assert jax.jit(lambda x: x[outside])(X).shape == (2, 5, 6)
    assert jax.jit(lambda x: x[bound:])(X).shape == (3, 5, 6)
    with pytest.raises(IndexError, match="Slice entries must be static integers") as error:
        jax.jit(lambda x, i: x[i:])(X, 1)
    for part in ("lax.dynamic_slice", "static_argnums", "depends on the value of the argument i"):
        assert part in str(error.value)


def test_empty_axes():
    x = jnp.zeros((0, 3))
    with pytest.raises(IndexError, match="index is out of bounds for axis 0 with size 0"):
        x[0]
    assert x[jnp.zeros(0, int)].shape == (0, 3)
    assert x[:, 1].shape == (0,)
    assert x.at[:].set(1).shape == (0, 3)
    assert x.at[jnp.array([0, 1])].set(1).shape == (0, 3)


def test_masks_without_elements():
    x = jnp.ones((2, 3))
    for shape in [(0,), (0, 3), (2, 0), (0, 0)]:
        assert x[np.zeros(shape, bool)].shape == (0, *x.shape[len(shape):])
        assert x.at[np.zeros(shape, bool)].set(5).tolist() == x.tolist()
    assert x[:, np.zeros(0, bool)].shape == (2, 0)
    with pytest.raises(IndexError, match="boolean index did not match"):
        x[np.zeros((0, 4), bool)]


def test_static_indices_make_static_slices():
    jaxpr = str(jax.make_jaxpr(lambda x: x[0, 1:3])(X))
    assert "slice[" in jaxpr and "squeeze[dimensions=(0,)]" in jaxpr
    assert "dynamic_slice" not in jaxpr and "gather" not in jaxpr
    assert "dynamic_slice" in str(jax.make_jaxpr(lambda x, i: x[i])(X, 1))
    assert "gather" in str(jax.make_jaxpr(lambda x, i: x[i])(X, V))


def test_derivatives():
    x = jnp.arange(6.0).reshape(2, 3)
    grad = jax.grad(lambda x: (x[:, jnp.array([0, 0, 2])] ** 2).sum())(x)
    np.testing.assert_allclose(grad, [[0, 0, 4], [12, 0, 10]])
    grad = jax.grad(lambda x: (x[1] * x[0, ::-1]).sum())(x)
    np.testing.assert_allclose(grad, [[5, 4, 3], [2, 1, 0]])
    gx, gv = jax.grad(lambda x, v: (x.at[0, 1:].set(v) ** 2).sum(), (0, 1))(x, jnp.ones(2))
    np.testing.assert_allclose(gx, [[0, 0, 0], [6, 8, 10]])
    np.testing.assert_allclose(gv, [2, 2])


def test_vmap_over_array_and_index():
    rows = jax.vmap(lambda x, i: x[i])(X[0], np.array([0, 2, 1, 5, 3]))
    np.testing.assert_array_equal(rows, X[0][np.arange(5), [0, 2, 1, 5, 3]])
    got = jax.vmap(lambda x, i: x.at[i].set(-1.0))(X[0], np.array([0, 2, 1, 5, 3]))
    expected = X[0].copy()
    expected[np.arange(5), [0, 2, 1, 5, 3]] = -1
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("axis", "shape"), list(itertools.product([None, 0, 1, -1], [(), (3,),
                                                                                   (2, 2)])))
def test_take(axis, shape):
    indices = (np.arange(np.prod(shape, dtype=int)).reshape(shape) - 1).astype(np.int32)
    np.testing.assert_array_equal(jnp.take(X, indices, axis), np.take(X, indices, axis))
    traced = jax.jit(lambda x, i: jnp.take(x, i, axis))(X, indices)
    np.testing.assert_array_equal(traced, np.take(X, indices, axis))


def test_take_modes_and_errors():
    x = np.arange(3.0, dtype=np.float32)
    far = np.array([0, 4, -4])
    assert np.isnan(jnp.take(x, far)).tolist() == [False, True, True]
    for mode in ("clip", "wrap"):
        np.testing.assert_array_equal(jnp.take(x, far, mode=mode), np.take(x, far, mode=mode))
    assert jnp.take(x, far, fill_value=7).tolist() == [0, 7, 7]
    assert jnp.take(x, np.array([True, False])).tolist() == [1, 0]
    with pytest.raises(ValueError, match="indices must have an integer type"):
        jnp.take(x, x)
    with pytest.raises(ValueError, match=r"Invalid mode 'foo' for np\.take"):
        jnp.take(x, far, mode="foo")
    with pytest.raises(TypeError, match="take requires ndarray or scalar arguments"):
        jnp.take(x, [0])


@pytest.mark.parametrize("jit", [jax.jit, lambda f: f])
def test_unsigned_indices_beyond_signed_ones_are_out_of_bounds(jit):
    x = jnp.arange(200.0)
    for given in (np.array([3_000_000_000, 4294967295, 5], np.uint32),
                  jnp.array([3_000_000_000, 4294967295, 5], np.uint32)):
        for f in (lambda i: jnp.take(x, i, mode="clip"), lambda i: x.at[i].get(mode="clip"),
                  lambda i: jnp.take_along_axis(x, i, 0, mode="clip")):
            np.testing.assert_array_equal(jit(f)(given), [199, 199, 5])
        np.testing.assert_array_equal(jit(lambda i: x.at[i].get(mode="fill"))(given),
                                      [np.nan, np.nan, 5])
        np.testing.assert_array_equal(jit(lambda i: x.at[i].set(-1.0))(given),
                                      x.at[5].set(-1.0))
        assert jax.jit(lambda i: x[i])(given[0]) == 199


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32"])
def test_indices_along_an_axis_that_need_nothing_keep_their_type(dtype):
    for shape in ((2,), (3, 2), (1, 2)):
        for mode in ("promise_in_bounds", "clip", "fill", None):
            program = jax.make_jaxpr(lambda x, i, mode=mode: jnp.take_along_axis(
                x, i, -1, mode=mode, wrap_negative_indices=False))(
                    jnp.ones((3, 200)[-len(shape):]), jnp.zeros(shape, dtype))
            assert [e.invars[1].aval.dtype for e in program.eqns
                    if e.primitive.name == "gather"] == [dtype]
    x = jnp.arange(200.0)
    got = jnp.take_along_axis(x, jnp.array([3, 250 if dtype[0] == "u" else -3]).astype(dtype), 0,
                              mode="clip", wrap_negative_indices=False)
    assert got.tolist() == [3, 199 if dtype[0] == "u" else 0]


NARROW = np.array([-1, -56, 127, 5], np.int8)


@pytest.mark.parametrize("jit", [jax.jit, lambda f: f])
@pytest.mark.parametrize("name, args", [
    ("take", {"mode": "wrap"}), ("put", {"mode": None}), ("put", {"mode": "wrap"}),
    ("put", {"mode": "clip"}), ("roll", {}), ("choose", {"mode": "wrap"}),
    ("choose", {"mode": "clip"}),
])
def test_narrow_indices_reach_all_of_a_long_axis(jit, name, args):
    x = np.arange(200.0, dtype=np.float32)
    wide = NARROW.astype(int)
    if name == "put":
        expected = x.copy()
        np.put(expected, wide, -1.0, **({"mode": args["mode"]} if args["mode"] else {}))
        got = jit(lambda i: jnp.put(x, i, -1.0, inplace=False, **args))(jnp.asarray(NARROW))
    elif name == "roll":
        expected = np.roll(x, wide[2])
        got = jit(lambda i: jnp.roll(x, i))(jnp.asarray(NARROW)[2])
    elif name == "choose":
        expected = x[wide % 200 if args["mode"] == "wrap" else np.clip(wide, 0, 199)]
        got = jit(lambda i: jnp.choose(i, x, **args))(jnp.asarray(NARROW))
    else:
        expected = np.take(x, wide, **args)
        got = jit(lambda i: jnp.take(x, i, **args))(jnp.asarray(NARROW))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_take_and_put_along_axis(axis):
    indices = np.argsort(-X, axis)
    np.testing.assert_array_equal(jnp.take_along_axis(X, indices, axis),
                                  np.take_along_axis(X, indices, axis))
    first = np.take(indices, [0], axis)
    np.testing.assert_array_equal(jnp.take_along_axis(X, first, axis),
                                  np.take_along_axis(X, first, axis))
    np.testing.assert_array_equal(  # one row of indices for all, and one row for all of them
        jnp.take_along_axis(X, indices[:1, :1, :1], axis),
        np.take_along_axis(X, indices[:1, :1, :1], axis))
    few = X[:1] if axis % 3 else X[:, :1]
    np.testing.assert_array_equal(jnp.take_along_axis(few, indices, axis),
                                  np.take_along_axis(few, indices, axis))
    check_grads(lambda x: jnp.take_along_axis(x, indices, axis) ** 2, (X / 100,), order=1)
    every = jax.vmap(lambda x, i: jnp.take_along_axis(x, i, axis), in_axes=(None, 0))(
        X, np.stack([indices, indices[::-1]]))
    np.testing.assert_array_equal(every[1], np.take_along_axis(X, indices[::-1], axis))
    expected = X.copy()
    np.put_along_axis(expected, first, -5.0, axis)
    np.testing.assert_array_equal(jnp.put_along_axis(X, first, -5.0, axis, inplace=False), expected)
    with pytest.raises(ValueError, match="cannot modify arrays in-place"):
        jnp.put_along_axis(X, first, -5.0, axis)


@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types")
def test_updates_are_combined_in_the_common_dtype():
    x, twice = jnp.array([1, 2]), np.array([0, 0])
    assert x.at[twice].add(1.5).tolist() == [4, 2]
    assert x.at[twice].multiply(1.5).tolist() == [2, 2]
    assert x.at[twice].add(jnp.float16(1.5)).dtype == np.int32
    assert jnp.array([True, False]).at[0].add(1.5).tolist() == [True, False]
    assert jnp.array([True, False]).at[0].divide(2).tolist() == [1.0, 0.0]
    assert jnp.array([1, 2], "int8").at[twice].add(300).tolist() == [89, 2]


def test_weak_arrays_take_values_of_any_dtype_of_their_kind():
    weak = jnp.broadcast_to(1, (2,))
    assert weak.at[0].add(jnp.int8(1)).tolist() == [2, 1]
    assert jnp.broadcast_to(1.0, (2,)).at[0].set(jnp.float16(2)).tolist() == [2.0, 1.0]


def test_a_lost_imaginary_part_is_warned_of():
    with pytest.warns(FutureWarning, match="scatter inputs"), \
            pytest.warns(np.exceptions.ComplexWarning):
        assert jnp.zeros(3).at[0].set(2j).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", ["float32", "complex64", "uint8"])
def test_take_of_no_indices_of_any_dtype(dtype):
    out = jnp.take(jnp.ones((2, 3)), jnp.zeros((0, 4), dtype), axis=1)
    assert out.shape == (2, 0, 4) and out.dtype == np.float32


def test_what_take_refuses():
    x = jnp.ones(2)
    with pytest.raises(ValueError, match="Invalid mode 'promise_in_bounds'"):
        jnp.take(x, 0, mode="promise_in_bounds")
    with pytest.raises(NotImplementedError, match="'out'"):
        jnp.take(x, 0, out=x)


def test_what_x_at_has_not_is_told_of_as_what_is_to_be_indexed_first():
    with pytest.raises(AttributeError, match=r"index it first, as in x\.at\[index\]\.set"):
        jnp.ones(3).at.update(1.0)


def test_nan_has_no_share_in_the_derivative_of_an_extremum():
    x = jnp.array([1.0, jnp.nan])
    for name in ("max", "min"):
        def fun(x, name=name):
            return getattr(x.at[()], name)(1.0)

        _, tangent = jax.jvp(fun, (x,), (jnp.ones(2),))
        assert tangent[1] == 0


TEN = np.arange(10)
ROWS = np.arange(20).reshape(4, 5)


@pytest.mark.parametrize(("start", "size", "stride", "index"), [
    (4, 2, None, slice(4, 6)), (-3, 2, None, slice(-3, -1)), (8, 5, None, slice(8, 13)),
    (1, 3, 2, slice(1, 4, 2)), (None, 3, None, slice(0, 3)), (np.int32(2), 3, None, slice(2, 5)),
])
def test_ds_of_known_starts(start, size, stride, index):
    np.testing.assert_array_equal(jnp.asarray(TEN)[jax.ds(start, size, stride)], TEN[index])
    np.testing.assert_array_equal(jnp.asarray(ROWS)[1, jax.ds(1, 2)], ROWS[1, 1:3])
    assert jax.ds(None) == slice(None) and jax.ds(3) == jax.ds(0, 3)
    with pytest.raises(ValueError, match="`stride` must be >= 0"):
        jax.ds(1, 2, -1)


@pytest.mark.parametrize(("start", "want"), [(4, [4, 5, 6]), (8, [7, 8, 9]), (-3, [7, 8, 9]),
                                             (-30, [0, 1, 2])])
def test_ds_of_traced_starts(start, want):
    x = jnp.asarray(TEN)
    for f in (jax.jit(lambda i: x[jax.ds(i, 3)]), lambda i: x[jax.ds(jnp.asarray(i), 3)],
              lambda i: jax.jit(lambda s: x[s])(jax.ds(jnp.asarray(i), 3))):
        assert f(start).tolist() == want


def test_ds_among_other_indices():
    x = jnp.asarray(ROWS)
    for index in (lambda i: (i, np.array([0, 2])), lambda i: (np.array([0, 2]), i),
                  lambda i: (i, 1), lambda i: (None, i, ...), lambda i: (i, i)):
        got = jax.jit(lambda i, index=index: x[index(jax.ds(i, 2))])(1)
        np.testing.assert_array_equal(got, ROWS[index(slice(1, 3))])
    got = jax.jit(lambda i: jnp.asarray(TEN)[jax.ds(i, 3, 2)])(1)
    assert got.tolist() == [1, 3, 5]
    got = jax.vmap(lambda i: jnp.asarray(TEN)[jax.ds(i, 2)])(jnp.arange(3))
    assert got.tolist() == [[0, 1], [1, 2], [2, 3]]


def test_updates_at_ds():
    x = jnp.asarray(TEN)
    set_at = jax.jit(lambda i: x.at[jax.ds(i, 3)].set(0))
    assert set_at(2).tolist() == [0, 1, 0, 0, 0, 5, 6, 7, 8, 9]
    assert set_at(8).tolist() == list(range(10))  # a window that is out of bounds is dropped
    assert x.at[jax.ds(2, 3)].add(10).tolist() == [0, 1, 12, 13, 14, 5, 6, 7, 8, 9]
    grad = jax.jit(jax.grad(lambda x, i: x[jax.ds(i, 3)].sum()))(jnp.ones(6), 2)
    assert grad.tolist() == [0, 0, 1, 1, 1, 0]


@pytest.mark.parametrize(("start", "size", "message"), [
    (2.5, 3, "must be integers of the same type, got: float32"),
    (np.arange(2), 3, "must be scalars, got a start of shape"),
    (jnp.int32(1), 20, "must be less than or equal to operand shape"),
    (1, None, "concrete values of integer type"),
])
def test_what_ds_refuses(start, size, message):
    with pytest.raises(TypeError, match=message):
        jnp.asarray(TEN)[jax.ds(start, size)]


@pytest.mark.parametrize("write", [
    lambda x, i: x.at[i].set(1.0), lambda x, i: x.at[i, i].add(1.0),
    lambda x, i: jax.jit(lambda x, i: x.at[i].multiply(2.0, mode="drop"))(x, i),
])
def test_a_scalar_that_names_an_element_of_an_empty_axis_is_refused(write):
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 0"):
        write(jnp.zeros((0, 2)), jnp.array(1))


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("read", [
    lambda x, i, v: x.at[i].get(mode="fill", fill_value=v),
    lambda x, i, v: jax.jit(lambda x, i: jnp.take(x, i, mode="fill", fill_value=v))(x, i),
    lambda x, i, v: jax.jvp(lambda x: jnp.take(x, i, mode="fill", fill_value=v), (x,), (x,))[0],
    lambda x, i, v: jax.lax.gather(
        x, i[:, None], jax.lax.GatherDimensionNumbers((), (0,), (0,)), (1,), mode="fill",
        fill_value=v),
], ids=["get", "jit", "jvp", "gather"])
def test_what_is_filled_in_has_the_sign_of_its_zero(read, order):
    x, i = jnp.ones(3), jnp.array([9])
    for _ in range(12):  # the later ones are C++'s
        for v in (0.0, -0.0)[::order]:
            assert str(read(x, i, v)[0]) == str(v)


@pytest.mark.parametrize("take", [jnp.take, functools.partial(jnp.take_along_axis, axis=0)])
def test_a_zero_that_is_filled_in_is_not_that_of_an_earlier_call(take):
    """C++ tells static arguments apart by ==, as JAX does, so -0.0 is no key of its calls."""
    x, i = jnp.ones(5), jnp.array([9])
    for v in (-0.0,) * 12 + (0.0,) * 12:
        assert str(take(x, i, mode="fill", fill_value=v)[0]) == str(v)


@pytest.mark.parametrize("index", [
    np.s_[:, 1, ..., [0, 1]], np.s_[:, [0, 1], ..., 1], np.s_[:, [True, False, True], ..., [0, 1]],
    np.s_[0:2, [0, 1], ..., [0, 1]], np.s_[:, True, ..., [0, 1], 1], np.s_[None, 1, 2, ..., [0]],
    np.s_[..., 1, 1, [0, 1]], np.s_[:, [0, 1], [1, 0], ...],
])
def test_an_ellipsis_of_no_axes_keeps_index_arrays_apart(index):
    x = np.arange(24.0, dtype="float32").reshape(4, 3, 2)
    want = x[index]
    np.testing.assert_array_equal(jnp.asarray(x)[index], want, strict=True)
    np.testing.assert_array_equal(jax.jit(lambda x: x[index])(x), want, strict=True)
    y = -np.arange(want.size, dtype="float32").reshape(want.shape)
    z = x.copy()
    z[index] = y
    np.testing.assert_array_equal(jnp.asarray(x).at[index].set(y), z)


def test_indices_along_an_axis_that_do_not_fit_name_the_other_axis():
    with pytest.raises(ValueError, match=r"shapes=\[\(3, 4\), \(2, 2\)\]\. take_along_axis: "
                       "indices must be of the size 3 that arr has along axis 0, or 1, got 2;"):
        jnp.take_along_axis(jnp.zeros((3, 4)), jnp.zeros((2, 2), int), 1)


@pytest.mark.parametrize("read", [
    lambda x, *at: x[at], lambda x, *at: x.at[at].set(1.0), lambda x, *at: x.at[at].get()])
def test_arrays_of_an_index_that_do_not_broadcast(read):
    x, rows, columns = jnp.ones((4, 4)), jnp.arange(2), jnp.arange(3)
    for call in (read, jax.jit(read)):
        with pytest.raises(ValueError, match=r"Incompatible shapes .*\(3,\)\], those of the arr"):
            call(x, rows, columns)
    assert read(x, *jnp.ix_(rows, columns)).shape in ((2, 3), (4, 4))
