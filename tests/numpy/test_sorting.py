"""Sorting, searching and sets against NumPy."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from tests.numpy.agreement import agrees, complexes, floats, ints

x, i, v = floats(3, 4), ints(3, 4), np.sort(floats(7))
dup = np.array([3, 1, 3, 2, 1, 1], np.int32)
nan = np.array([2.0, np.nan, 1.0, np.nan, 0.0], np.float32)


@pytest.mark.parametrize("name, args, kwargs", [
    ("sort", (x,), {}), ("sort", (x, 0), {}), ("sort", (x, None), {}), ("sort", (nan,), {}),
    ("sort", (complexes(3, 4),), {}), ("argsort", (x, 0), {}),
    ("argsort", (dup,), {"kind": "stable"}), ("lexsort", ((dup, dup[::-1]),), {}),
    ("sort_complex", (x.ravel(),), {}), ("searchsorted", (v, x), {}),
    ("searchsorted", (v, v), {"side": "right"}), ("digitize", (x, v), {}),
    ("digitize", (x, v[::-1].copy()), {}), ("digitize", (i, np.array([4, 2, 0])), {"right": True}),
    ("isin", (i, dup), {}), ("isin", (i, dup), {"invert": True}),
])
def test_against_numpy(name, args, kwargs):
    if "kind" in kwargs:
        np.testing.assert_array_equal(jnp.argsort(*args), np.argsort(*args, **kwargs))
    else:
        agrees(name, *args, **kwargs)


def test_descending():
    np.testing.assert_array_equal(jnp.sort(dup, descending=True), np.sort(dup)[::-1])
    np.testing.assert_array_equal(jnp.argsort(dup, descending=True), [0, 2, 3, 1, 4, 5])


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_methods_of_searching(method, side):
    a = np.array([1, 2, 2, 2, 5], np.int32)
    q = np.array([[0, 1, 2], [3, 5, 9]], np.int32)
    np.testing.assert_array_equal(jnp.searchsorted(a, q, side, method=method),
                                  np.searchsorted(a, q, side))


@pytest.mark.parametrize("kth", [0, 2, -1])
def test_partition(kth):
    for values in (x, i, i.astype(np.uint8)):
        got = np.asarray(jnp.partition(values, kth))
        np.testing.assert_array_equal(got[:, kth], np.partition(values, kth)[:, kth])
        np.testing.assert_array_equal(np.sort(got), np.sort(values))
        places = np.asarray(jnp.argpartition(values, kth))
        np.testing.assert_array_equal(np.sort(places), np.broadcast_to(np.arange(4), (3, 4)))
        chosen = np.take_along_axis(values, places, 1)
        np.testing.assert_array_equal(chosen[:, kth], np.partition(values, kth)[:, kth])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_the_least_integer_is_the_least(dtype):
    limits = jnp.iinfo(dtype)
    values = jnp.array([limits.max, limits.min, 7, limits.min + 1], dtype)
    assert jnp.partition(values, 1).tolist()[:2] == [limits.min, limits.min + 1]
    assert jnp.argpartition(values, 1).tolist()[:2] == [1, 3]
    assert jnp.top_k(values, 2, mode="smallest")[0].tolist() == [limits.min, limits.min + 1]


@pytest.mark.parametrize("run", [lambda f: f, jax.jit])
def test_nan_is_in_one_of_two_arrays_only(run):
    combine = run(lambda x, y: jnp.setxor1d(x, y, size=4, fill_value=0))
    for x, y, want in [([1, np.nan, 3, -2], [1], [-2, 3, np.nan, 0]),
                       ([np.nan] * 3, [np.nan], [np.nan, np.nan, 0, 0]),
                       ([2, 2, np.nan], [3, 2], [3, np.nan, 0, 0])]:
        np.testing.assert_array_equal(combine(jnp.array(x), jnp.array(y)), want)
        np.testing.assert_array_equal(jnp.setxor1d(jnp.array(x), jnp.array(y)),
                                      np.setxor1d(x, y))


def test_top_k():
    values, indices = jnp.top_k(x, 2)
    np.testing.assert_array_equal(values, np.sort(x)[:, :-3:-1])
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(indices), 1), values)
    values, _ = jnp.top_k(x, 2, axis=0, mode="smallest")
    np.testing.assert_array_equal(values, np.sort(x, 0)[:2])


def test_nonzero():
    for got, expected in zip(jnp.nonzero(i > 0), np.nonzero(i > 0), strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(jnp.argwhere(i > 0), np.argwhere(i > 0))
    np.testing.assert_array_equal(jnp.flatnonzero(i), np.flatnonzero(i))
    got = jax.jit(lambda x: jnp.nonzero(x, size=4, fill_value=-1))(jnp.array([0, 5, 6]))
    np.testing.assert_array_equal(got[0], [1, 2, -1, -1])
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"size argument of jnp.nonzero"):
        jax.jit(jnp.nonzero)(dup)


def test_scalars_have_no_indices_traced_or_not():
    for f in (jnp.nonzero, jnp.where):
        for call in (f, jax.jit(f)):
            with pytest.raises(ValueError, match="nonzero on 0d arrays is not allowed"):
                call(jnp.array(1.0))


def test_unique_values_are_weak_where_nothing_is_filled_in():
    assert jnp.unique(2, fill_value=jnp.uint8(3)).weak_type
    assert not jnp.unique(2, size=2, fill_value=jnp.uint8(3)).weak_type


def test_unique():
    for got, expected in zip(jnp.unique(dup, True, True, True), np.unique(dup, True, True, True),
                             strict=True):
        np.testing.assert_array_equal(got, expected)
    rows = np.array([[1, 2], [1, 2], [0, 3]])
    np.testing.assert_array_equal(jnp.unique(rows, axis=0), np.unique(rows, axis=0))
    np.testing.assert_array_equal(jnp.unique(nan), np.unique(nan))
    got = jax.jit(lambda x: jnp.unique(x, size=5, fill_value=9))(dup)
    np.testing.assert_array_equal(got, [1, 2, 3, 9, 9])
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"size argument of jnp.unique"):
        jax.jit(jnp.unique)(dup)


@pytest.mark.parametrize("name", ["union1d", "setdiff1d", "setxor1d", "intersect1d"])
def test_sets(name):
    expected = getattr(np, name)(i, dup)
    np.testing.assert_array_equal(getattr(jnp, name)(i, dup), expected)
    size = expected.size + 2
    got = jax.jit(lambda a, b: getattr(jnp, name)(a, b, size=size, fill_value=99))(i, dup)
    np.testing.assert_array_equal(got, [*expected, 99, 99])


def test_derivative_of_sort():
    weights = jnp.arange(4.0)
    grad = jax.grad(lambda x: jnp.sum(jnp.sort(x) * weights))(x[0])
    np.testing.assert_array_equal(grad, np.argsort(np.argsort(x[0])))


def test_setdiff1d_keeps_the_dtype_of_the_first_array():
    assert jnp.setdiff1d(jnp.array([1, 2]), jnp.array([2.0])).dtype == np.int32
    assert jnp.setdiff1d(jnp.array([True]), jnp.array([3])).dtype == np.bool_


@pytest.mark.parametrize("size", [None, 3])
def test_nonzero_has_the_common_dtype_of_indices_and_fill_value(size):
    x = jnp.array([0, 1, 2])
    assert jnp.nonzero(x, size=size, fill_value=1.5)[0].dtype == np.float32
    assert jnp.argwhere(x, size=size, fill_value=1.5).dtype == np.float32
    assert jnp.argwhere(1, size=size, fill_value=1.5).dtype == np.float32
    assert jnp.nonzero(x, size=size, fill_value=np.uint8(9))[0].dtype == np.int32
    rows, columns = jnp.nonzero(x[None], size=3, fill_value=(-1, 2.5))
    assert rows.tolist() == [0.0, 0.0, -1.0] and columns.tolist() == [1.0, 2.0, 2.5]


def test_compress_size_is_that_of_the_condition_at_most():
    with pytest.raises(ValueError, match="size must be positive and not greater"):
        jnp.compress(jnp.array([True]), jnp.arange(3), size=2)


def test_containers_of_results():
    assert type(jnp.top_k(jnp.arange(3.0), 1)) is list
    assert type(jnp.top_k(jnp.arange(3.0), 1, mode="smallest")) is tuple
    assert type(lax.approx_max_k(jnp.arange(3.0), 1)) is list
    assert type(jnp.atleast_2d(1, 2)) is type(jnp.broadcast_arrays(1, 2)) is tuple
    assert type(jnp.unique_counts(jnp.arange(3))).__name__ == "_UniqueCountsResult"


def test_unique_of_no_values():
    x = jnp.array([1, 2])
    values, counts = jnp.unique(x, size=0, return_counts=True)
    assert values.shape == counts.shape == (0,)
    assert jnp.unique(jnp.broadcast_to(0, (0,))).weak_type
    with pytest.raises(ValueError, match="size must be a positive integer"):
        jnp.unique(x, size=-1)


def test_slices_without_elements_are_equal():
    x = np.zeros((2, 0), np.float32)
    for got, expected in zip(jnp.unique(x, True, True, True, 0), np.unique(x, True, True, True, 0),
                             strict=True):
        np.testing.assert_array_equal(got, expected)
    assert jnp.unique(np.zeros((3, 0, 2)), axis=2).shape == (3, 0, 1)
    assert jnp.unique(np.zeros((0, 0)), axis=0).shape == (0, 0)
    values, first, _, counts = jax.jit(lambda x: jnp.unique(
        x, True, True, True, 0, size=3, fill_value=1))(x)
    assert values.shape == (3, 0)
    assert first.tolist() == [0, 0, 0] and counts.tolist() == [2, 0, 0]


def test_counts_of_the_last_of_too_many_values():
    values, counts = jnp.unique(jnp.array([3, 1, 2, 2, 4]), size=2, return_counts=True)
    assert values.tolist() == [1, 2] and counts.tolist() == [1, 2]


def test_places_are_int32():
    with jax.enable_x64(True):
        assert jnp.searchsorted(jnp.arange(3), 1).dtype == np.int32
        assert jnp.digitize(jnp.arange(3), jnp.arange(2)).dtype == np.int32


def test_places_of_values_under_x64():
    with jax.enable_x64(True):
        values, first = jnp.unique(jnp.array([2.0, 1.0, 2.0]), return_index=True)
        assert values.tolist() == [1.0, 2.0] and first.dtype == np.int64
        assert jnp.nonzero(jnp.arange(3), size=4)[0].tolist() == [1, 2, 0, 0]
        p = jnp.array([0.2, 0.3, 0.5])
        assert jax.random.choice(jax.random.key(0), 3, (2,), p=p).dtype == np.int64
    with pytest.raises(TypeError, match="array of numbers"):
        jnp.unique(jax.random.key(0))


def test_compress_refuses_true_beyond_the_array():
    assert jnp.compress(jnp.array([True, False, False]), jnp.arange(2)).tolist() == [0]
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.compress(jnp.array([True, False, True]), jnp.arange(2))
    with pytest.raises(ValueError, match="must equal 1 for a single operand"):
        lax.sort(jnp.arange(2), num_keys=2)


@pytest.mark.parametrize("method", ["scan", "sort", "compare_all"])
def test_places_of_complex_numbers(method):
    edges = jnp.array([0, 1j, 2])
    places = jnp.searchsorted(edges, jnp.array([1j, 2]), method=method)
    assert places.tolist() == [1, 2]
    assert jnp.digitize(jnp.array([1j, 2]), edges[::-1]).tolist() == [1, 0]


@pytest.mark.parametrize("name", ["setxor1d", "intersect1d"])
def test_what_fills_sets_is_promoted(name):
    x, y, none = jnp.array([1, 2]), jnp.array([2, 3]), jnp.array([], int)
    combine = getattr(jnp, name)
    assert combine(x, y, size=4, fill_value=1.5)[-1] == 1.5
    assert combine(none, none, size=2, fill_value=1.5).tolist() == [1.5, 1.5]
    assert combine(x, y, size=4, fill_value=7).dtype == np.int32
    assert combine(x, y, size=0, fill_value=1.5).dtype == np.int32


def test_weak_types_of_sets():
    x, y = jnp.broadcast_to(2.0, (2,)), jnp.ones(2)
    assert jnp.setdiff1d(x, y).weak_type and jnp.setdiff1d(x, y, size=3).weak_type
    weak = jnp.broadcast_to(2j, (2,))
    assert jnp.setdiff1d(weak, y, assume_unique=True).weak_type
    assert not jnp.setdiff1d(weak, y).weak_type
    for combine in (jnp.setxor1d, jnp.intersect1d):
        assert combine(x, x).weak_type and not combine(x, x, size=3).weak_type
    assert jnp.unique(x, size=3).weak_type and not jnp.unique(x, size=3, fill_value=2).weak_type
    assert not jnp.unique(jnp.broadcast_to(2j, (2,))).weak_type


@pytest.mark.parametrize("method", ["compare_all", "binary_search", "sort", "auto"])
@pytest.mark.parametrize("count", [0, 3, 500])
def test_isin_by_each_method(method, count):
    among = (np.arange(count, dtype=np.float32) * 2)[::-1].copy()
    among[:1] = np.nan
    sought = np.array([[0, 1, 2], [998, np.nan, 4]], np.float32)
    np.testing.assert_array_equal(jnp.isin(sought, among, method=method), np.isin(sought, among))
    np.testing.assert_array_equal(jax.jit(jnp.isin, static_argnames=("invert", "method"))(
        sought, among, invert=True, method=method), ~np.isin(sought, among))


def test_isin_refuses_other_methods():
    with pytest.raises(ValueError, match="options are"):
        jnp.isin(jnp.array(1.0), jnp.array(1.0), method="other")


def test_numpy_sorts_arrays_as_its_own():
    """`np.argsort` hands on `stable=None`: what it gives can be written to, as with JAX."""
    order = np.argsort(jnp.asarray(dup))
    assert type(order) is np.ndarray and order.dtype == np.int64
    for sort in (jnp.argsort, jnp.sort):
        with pytest.raises(TypeError, match="stable must be a bool"):
            sort(jnp.asarray(dup), stable=None)


NAN = np.nan
PARTLY_NAN = np.array([1 + 1j, complex(NAN, 0), complex(NAN, 0), complex(0, NAN),
                       complex(NAN, NAN), 1 + 1j, complex(-0.0, 0.0), 0j], np.complex64)


@pytest.mark.parametrize("equal_nan, first, inverse, counts", [
    (True, [6, 0, 1], [1, 2, 2, 2, 2, 1, 0, 0], [2, 2, 4]),
    (False, [6, 0, 1, 2, 3, 4], [1, 2, 3, 4, 5, 1, 0, 0], [2, 2, 1, 1, 1, 1]),
])
def test_unique_of_complex_numbers_that_are_partly_nan(equal_nan, first, inverse, counts):
    found = jnp.unique(PARTLY_NAN, True, True, True, equal_nan=equal_nan)
    again = jax.jit(lambda x: jnp.unique(x, True, True, True, equal_nan=equal_nan,
                                         size=len(first)))(PARTLY_NAN)
    for values, *rest in (found, again):
        np.testing.assert_array_equal(values, PARTLY_NAN[first])
        assert [r.ravel().tolist() for r in rest] == [first, inverse, counts]


def test_differences_of_sets_that_are_partly_nan():
    known = jnp.setdiff1d(PARTLY_NAN, jnp.array([0j]))
    sized = jnp.setdiff1d(PARTLY_NAN, jnp.array([0j]), size=3)
    want = np.setdiff1d(PARTLY_NAN, np.array([0j]))
    assert known.shape == want.shape == (2,)
    np.testing.assert_array_equal(np.isnan(known), np.isnan(want))
    np.testing.assert_array_equal(np.isnan(sized), [False, True, False])
    assert sized[2] == 0


SETS = [([3.0, 1, 1, 7], [7.0, 2, 2]), ([1.0, 1, 2], [3.0]), ([1.0, 1, 1], [1.0]), ([NAN], [NAN]),
        ([1.0, 2, NAN, NAN], [NAN, 3.0]), ([1.0, NAN], [2.0, 2]), ([], [1.0]), ([1.0, 1.0], []),
        ([5, 5, 5, 5], [6, 6, 6]), ([1, 2], [2, 1]), ([4, 4, 2, 2], [2, 4, 4, 2])]


@pytest.mark.parametrize("x, y", SETS)
@pytest.mark.parametrize("assume_unique", [False, True])
def test_sets_of_values_that_occur_twice(x, y, assume_unique):
    x, y = np.array(x), np.array(y)
    for name, options in (("setxor1d", {}), ("intersect1d", {}),
                          ("intersect1d", {"return_indices": True})):
        want = getattr(np, name)(x, y, assume_unique=assume_unique, **options)
        got = getattr(jnp, name)(x, y, assume_unique=assume_unique, **options)
        count = len(want[0]) if options else len(want)
        sized = jax.jit(functools.partial(getattr(jnp, name), assume_unique=assume_unique,
                                          size=count, **options))(x, y)
        for found in (got, sized):
            for a, b in zip(found if options else [found], want if options else [want],
                            strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 100])
@pytest.mark.parametrize("side", ["left", "right"])
def test_bisection_is_a_loop(size, side):
    """The time that XLA takes for steps in line doubles with each of them."""
    a = np.arange(size, dtype=np.float32) // 2
    v = np.float32([-1, 0, 0.5, 1, size // 4, size, np.inf, np.nan])
    assert jnp.searchsorted(a, v, side).tolist() == np.searchsorted(a, v, side).tolist()
    assert str(jax.make_jaxpr(jnp.searchsorted)(a, v)).count("gather[") == 1


@pytest.mark.parametrize("method", [0, "", ()])
def test_an_empty_name_is_no_method(method: object) -> None:
    with pytest.raises(ValueError, match="method"):
        jnp.digitize(jnp.arange(2.0), jnp.arange(3.0), method=method)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "args"), [
    ("argwhere", 1), ("flatnonzero", 1), ("nonzero", 1), ("compress", 2), ("extract", 2),
    ("unique", 1), ("union1d", 2), ("setdiff1d", 2), ("intersect1d", 2)])
def test_the_size_is_said_of_the_function_that_is_called(name, args):
    x = jnp.asarray([True, False])
    f = getattr(jnp, name)
    with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
        jax.jit(lambda x: f(*[x] * args))(x)
    assert (f"\nThe size argument of jnp.{name} must be statically specified to use jnp.{name} "
            f"within JAX transformations: jnp.{name}(..., size=n).\n") in str(caught.value)
    jax.jit(lambda x: f(*[x] * args, size=1))(x)
