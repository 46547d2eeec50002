"""Choosing, putting in, taking out; flat indices, bits, windows, files: against NumPy."""

import itertools

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.numpy.agreement import agrees, complexes, floats, ints

x, i = floats(3, 4), ints(3, 4)
DTYPES = ["float32", "bfloat16", "complex64", "int32", "uint8", "bool"]


def same(got, want):
    assert got.shape == want.shape
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 8, 25])
def test_windows(name, size):
    window = getattr(jnp, name)(size)
    assert window.dtype == "float32"
    np.testing.assert_allclose(window, getattr(np, name)(size), atol=1e-6)


def test_kaiser():
    for size, beta in itertools.product((0, 1, 2, 9), (0.0, 2.5, 14.0)):
        np.testing.assert_allclose(jnp.kaiser(size, beta), np.kaiser(size, beta), atol=1e-6)
    slope = jax.grad(lambda beta: jnp.kaiser(5, beta).sum())(2.0)
    assert abs(slope - (np.kaiser(5, 2.01).sum() - np.kaiser(5, 1.99).sum()) / 0.02) < 1e-3
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"M argument of jnp\.hanning"):
        jax.jit(jnp.hanning)(3)
    with pytest.raises(TypeError, match="must be nonnegative"):
        jnp.hamming(-1)


# -- choices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_choose(dtype):
    choices = [np.asarray(v, np.float32).astype(dtype) for v in (i[0], 1, i[2])]
    number = np.array([[0, 2, 1, 2]])
    same(jnp.choose(number, choices), np.choose(number, choices))
    beyond = np.array([5, -1, 7, 2])
    for mode in ("wrap", "clip"):
        same(jnp.choose(beyond, choices, mode=mode), np.choose(beyond, choices, mode=mode))
        same(jax.jit(lambda n, mode=mode: jnp.choose(n, choices, mode=mode))(beyond),
             np.choose(beyond, choices, mode=mode))
    assert jnp.choose(number, choices).dtype == dtype


@pytest.mark.parametrize(("call", "message"), [
    (lambda n: jnp.unique(jnp.arange(4), size=n), r"size argument .*jnp\.unique"),
    (lambda n: jnp.union1d(jnp.arange(4), jnp.arange(3), size=n), "size argument"),
    (lambda n: jnp.bincount(jnp.arange(4), length=n), r"'length' of jnp\.bincount"),
    (lambda n: jnp.bincount(jnp.arange(4), minlength=n, length=4), "'minlength'"),
    (lambda n: jnp.ravel_multi_index(([0], [1]), (n, n), "wrap"),
     r"`dims` argument of ravel_multi_index"),
    (lambda n: jax.ops.segment_sum(jnp.ones(4), jnp.arange(4), n),
     r"segment_sum\(\) `num_segments` argument"),
    (lambda n: jax.lax.scan(lambda c, x: (c, x), 0.0, jnp.ones(4), unroll=n), "`unroll` argument"),
    (jnp.tril_indices, r"n argument of jnp\.tril_indices"),
    (lambda n: jnp.triu_indices(3, n), r"k argument of jnp\.triu_indices"),
    (lambda n: jnp.logspace(0, 1, n), r"'num' argument of jnp\.logspace"),
    (lambda n: jnp.geomspace(1, 2, n), r"'num' argument of jnp\.geomspace"),
])
def test_errors_of_traced_sizes_name_the_argument_and_where_it_came_from(call, message):
    with pytest.raises(jax.errors.ConcretizationTypeError, match=message) as error:
        jax.jit(call)(2)
    assert "depends on the value of the argument n" in str(error.value)


@pytest.mark.parametrize("call", [
    lambda n: jnp.broadcast_to(1.0, (n,)), lambda n: jnp.full(n, 1.0),
    lambda n: jnp.ones(4).reshape(n, -1),
])
def test_errors_of_traced_shapes_say_where_a_size_came_from(call):
    with pytest.raises(TypeError, match=r"got \(JitTracer\(~int32\[\]\),") as error:
        jax.jit(call)(2)
    assert "depends on the value of the argument n" in str(error.value)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: jnp.choose(jnp.array([3]), [1, 2]), ValueError, "invalid entry in choice array"),
    (lambda: jnp.choose(jnp.array([0.5]), [1, 2]), ValueError, "must be integer typed"),
    (lambda: jnp.choose(0, [1, 2], mode="no"), ValueError, "mode='no' not understood"),
    (lambda: jax.jit(lambda a: jnp.choose(a, [1, 2]))(0), jax.errors.ConcretizationTypeError,
     "mode='raise'"),
    (lambda: jnp.select([], []), ValueError, "condlist must be non-empty"),
    (lambda: jnp.select([True], [1, 2]), ValueError, r"must have length equal to .* \(1 vs 2\)"),
    (lambda: jnp.select([True], [[1]]), TypeError, "select requires ndarray or scalar arguments"),
    (lambda: jnp.piecewise(x, [x > 1], [1, 2, 3]), ValueError, "1 or 2 functions are expected"),
])
def test_errors_of_choices(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_select():
    conditions, values = [x > 1, x < 0, i[0] > 2], [x, 7.0, i]
    for default in (0, 2.5, x[:, :1]):
        want = np.select(conditions, np.broadcast_arrays(*values), default)
        np.testing.assert_allclose(jnp.select(conditions, values, default), want, rtol=1e-6)
        np.testing.assert_allclose(
            jax.jit(lambda default=default: jnp.select(conditions, values, default))(), want,
            rtol=1e-6)
    weak = jnp.select([i < 2], [1], 2.5)
    assert weak.weak_type and weak.dtype == "float32"
    assert jnp.select([i < 2], [jnp.int8(1)], 2).dtype == "int8"
    gradient = jax.grad(lambda v: jnp.select([v > 1, v < 0], [v * v, -v], 0.0).sum())(
        jnp.array([2.0, -1.0, 0.5]))
    assert gradient.tolist() == [4.0, -1.0, 0.0]


def test_piecewise():
    for pieces in ([-1, np.abs], [-1, np.abs, np.exp], [2.5, 1, 0]):
        own = [getattr(jnp, p.__name__) if callable(p) else p for p in pieces]
        want = np.piecewise(x, [x < 0, x > 1], pieces)
        np.testing.assert_allclose(jnp.piecewise(x, [x < 0, x > 1], own), want, rtol=1e-6)
        np.testing.assert_allclose(jax.jit(lambda v, own=own: jnp.piecewise(
            v, [v < 0, v > 1], own))(x), want, rtol=1e-6)
    same(jnp.piecewise(i, [i > 1, i > 3], [1, 2]), np.piecewise(i, [i > 1, i > 3], [1, 2]))
    assert jnp.piecewise(i, [i > 1], [1.5]).dtype == "int32"
    np.testing.assert_allclose(
        jnp.piecewise(x, [x > 0], [lambda v, k, m: v * k + m], 2, m=1),
        np.piecewise(x, [x > 0], [lambda v, k, m: v * k + m], 2, m=1), rtol=1e-6)


def test_pieces_have_slopes_where_they_hold_alone():
    def f(v):
        return jnp.piecewise(v, [v > -5, v > 0], [jnp.sin, jnp.sqrt, 2.0]).sum()

    v = jnp.array([-jnp.inf, -1.0, 0.0, 4.0])
    want = [0.0, np.cos(-1.0), 1.0, 0.25]
    np.testing.assert_allclose(jax.grad(f)(v), want, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(f))(v), want, rtol=1e-6)
    # Functions see single numbers.
    assert jnp.piecewise(jnp.arange(3.0), [jnp.arange(3.0) > 0], [jnp.sum]).tolist() == [0, 1, 2]


def test_extract():
    same(jnp.extract(x > 0, x), np.extract(x > 0, x))
    assert jnp.extract(x > 9, x).shape == (0,)
    padded = jax.jit(lambda v: jnp.extract(v > 1, v, size=4, fill_value=-1))(jnp.arange(4))
    assert padded.tolist() == [2, 3, -1, -1]
    with pytest.raises(jax.errors.ConcretizationTypeError, match="size argument"):
        jax.jit(lambda v: jnp.extract(v > 1, v))(jnp.arange(4))


def test_along_axes():
    a = floats(2, 3, 4)
    for axis in (0, 1, 2, -1):
        np.testing.assert_allclose(jnp.apply_along_axis(jnp.cumsum, axis, a),
                                   np.apply_along_axis(np.cumsum, axis, a), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            jnp.apply_along_axis(lambda v: jnp.outer(v, v[:2]), axis, a),
            np.apply_along_axis(lambda v: np.outer(v, v[:2]), axis, a), rtol=1e-5)
        np.testing.assert_allclose(jnp.apply_along_axis(jnp.sum, axis, a),
                                   np.apply_along_axis(np.sum, axis, a), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(jnp.apply_over_axes(jnp.sum, a, [0, -1]),
                               np.apply_over_axes(np.sum, a, [0, -1]), rtol=1e-5, atol=1e-5)
    assert isinstance(jnp.apply_over_axes(jnp.sum, 1.5, []), jax.Array)
    with pytest.raises(ValueError, match="axis 5 is out of bounds"):
        jnp.apply_along_axis(jnp.sum, 5, a)
    with pytest.raises(ValueError, match="not returning an array of the correct shape"):
        jnp.apply_over_axes(lambda v, axis: v.sum(), a, [0])


# -- indices and bits ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6,), (2, 3), (3, 1, 4), (2, 3, 2, 2)])
@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8"])
def test_flat_indices(shape, dtype):
    places = np.arange(int(np.prod(shape)), dtype=dtype).reshape(-1, 2)
    got, want = jnp.unravel_index(places, shape), np.unravel_index(places, shape)
    for a, b in zip(got, want, strict=True):
        same(a, b)
        assert a.dtype == dtype
    for order in ("C", "F"):
        same(jnp.ravel_multi_index(got, shape, order=order),
             np.ravel_multi_index(want, shape, order=order))
        beyond = tuple([w.astype(int) * 3 - 2 for w in want])
        for mode in ("wrap", "clip"):
            same(jax.jit(lambda b, mode=mode, order=order: jnp.ravel_multi_index(
                b, shape, mode, order))(beyond),
                np.ravel_multi_index(beyond, shape, mode, order))


def test_flat_indices_out_of_bounds():
    assert [v.tolist() for v in jnp.unravel_index(jnp.array([7, -1, -9]), (2, 3))] == [
        [1, 1, 0], [2, 2, 0]]
    assert [v.item() for v in jnp.unravel_index(jnp.uint8(200), (3, 400))] == [0, 200]
    for shape in (0, 3), np.array([0, 3]):  # nowhere
        assert [v.tolist() for v in jnp.unravel_index(jnp.array([1, -1]), shape)] == [
            [0, 0], [1, 0]]
    with pytest.raises(ValueError, match="scalar or 1D"):
        jnp.unravel_index(1, np.array([[2, 3]]))
    assert jnp.unravel_index(3, (2, 3))[0].weak_type
    assert jnp.ravel_multi_index((1, 2), (2, 3), dtype="int8").dtype == "int8"
    with jax.enable_x64(True):
        beyond = jnp.arange(3, dtype="int32")
        for mode, place in (("wrap", 2**31 % 3), ("clip", 2)):
            for run in (lambda f: f, jax.jit):
                got = run(lambda x, m=mode: jnp.ravel_multi_index((2**31, x), (3, 3), m))(beyond)
                same(got, 3 * place + np.arange(3, dtype="int32"))
        with jax.numpy_dtype_promotion("strict"):
            weak = jnp.broadcast_to(5, (3,))
            same(jnp.ravel_multi_index((jnp.int32(1), weak), (2, 3), "wrap"), np.int32([5] * 3))
    for call, error, message in [
        (lambda: jnp.ravel_multi_index((1, 5), (2, 3)), ValueError,
         "invalid entry in coordinates array"),
        (lambda: jnp.ravel_multi_index((1.0, 2), (2, 3)), ValueError, "is not an integer type"),
        (lambda: jnp.ravel_multi_index((1,), (2, 3)), AssertionError, "!= len"),
        (lambda: jnp.ravel_multi_index((1, 1), (2, 3), order="K"), ValueError, "order='K'"),
        (lambda: jnp.ravel_multi_index((1, 1), (2, 3), mode="no"), ValueError, "mode='no'"),
    ]:
        with pytest.raises(error, match=message):
            call()
    with jax.enable_x64(True), pytest.raises(ValueError, match=r"dtype\('float64'\) is not an int"):
        jnp.ravel_multi_index((jnp.array([1], "uint64"), jnp.array([1], "int64")), (2, 3))


@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("shape", [(0,), (3,), (16,), (2, 9), (2, 3, 4)])
def test_bits(bitorder, shape):
    bits = np.random.default_rng(0).integers(0, 2, shape)
    for axis in (None, 0, -1):
        packed = jnp.packbits(bits, axis, bitorder)
        same(packed, np.packbits(bits, axis, bitorder))
        same(jax.jit(lambda b, axis=axis: jnp.packbits(b, axis, bitorder))(bits),
             np.packbits(bits, axis, bitorder))
        for count in (None, 0, 3, 30, -2) if bits.size else (None, 0):  # NumPy's is not right
            want = np.unpackbits(np.asarray(packed), axis, count, bitorder)
            same(jnp.unpackbits(packed, axis, count, bitorder), want)
    with pytest.raises(TypeError, match="integer or boolean data type"):
        jnp.packbits(jnp.ones(3))
    with pytest.raises(TypeError, match="unsigned byte data type"):
        jnp.unpackbits(jnp.arange(3))
    with pytest.raises(ValueError, match="must be either 'little' or 'big'"):
        jnp.packbits(bits, bitorder="no")


# -- edits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_delete(dtype):
    a = i.astype(dtype)
    for axis, obj in itertools.product((None, 0, 1), (
            1, -1, slice(0, 3, 2), slice(None), slice(3, None, -1), np.array([0, 2, 2, -1]),
            np.array([], int))):
        same(jnp.delete(a, obj, axis), np.delete(a, obj, axis))
    mask = np.array([True, False, True])
    same(jnp.delete(a, mask, 0), np.delete(a, mask, 0))
    traced = jax.jit(lambda v, o: jnp.delete(v, o, 1, assume_unique_indices=True))
    same(traced(a, np.array([3, -4])), np.delete(a, [3, 0], 1))
    long = np.arange(100)
    same(jnp.delete(long, long[::2]), np.delete(long, long[::2]))


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: jnp.delete(x, 9, 0), IndexError, "out of bounds"),
    (lambda: jnp.delete(x, 9, 0), ValueError, "out of bounds"),
    (lambda: jnp.delete(x, 1.5), ValueError, "must be integer or bool"),
    (lambda: jnp.delete(x, np.array([True])), ValueError, "with length matching specified axis"),
    (lambda: jnp.delete(x, [1]), TypeError, "delete requires ndarray or scalar arguments"),
    (lambda: jax.jit(lambda o: jnp.delete(x, o))(1), jax.errors.ConcretizationTypeError,
     "'obj' array argument"),
    (lambda: jnp.insert(x, 1.5, 0), ValueError, "index array must be integer typed"),
    (lambda: jnp.insert(x, np.array([[1]]), 0), ValueError, "one-dimensional array, or a scalar"),
    (lambda: jnp.fill_diagonal(x, 1), NotImplementedError, "must use inplace=False"),
    (lambda: jnp.fill_diagonal(x, 1, True, inplace=False), NotImplementedError, "wrap=True"),
    (lambda: jnp.fill_diagonal(x[0], 1, inplace=False), ValueError, "at least 2-d"),
    (lambda: jnp.fill_diagonal(jnp.ones((2, 2, 3)), 1, inplace=False), ValueError, "equal length"),
    (lambda: jnp.place(x, x > 0, x), ValueError, "cannot modify arrays in-place"),
    (lambda: jnp.place(x, x > 0, jnp.ones(0), inplace=False), ValueError, "from an empty array"),
    (lambda: jnp.place(x, x[0] > 0, x, inplace=False), ValueError, "must be the same size"),
    (lambda: jnp.put(x, [0], [1]), ValueError, "Pass inplace=False"),
    (lambda: jnp.put(x, 0, 1, "no", inplace=False), ValueError, "should be one of"),
    (lambda: jnp.put(x, 0, 1, "raise", inplace=False), NotImplementedError, "'raise' mode"),
    (lambda: jax.jit(jnp.trim_zeros)(x), jax.errors.ConcretizationTypeError, "trim_zeros"),
])
def test_errors_of_edits(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_insert(axis):
    for obj, values in [
        (1, 5), (-1, 5), (slice(0, 3, 2), 7), (np.array([2, 0]), 7), (np.array([1, 1, 3]), 9),
        (np.array([], int), 1), (0, np.array([1, 2])),
    ]:
        if np.ndim(values) and axis == 0:
            values = np.ones((2, 4))
        if np.ndim(values) and axis == 1:
            values = np.ones(3)
        want = np.insert(i, obj, values, axis)
        same(jnp.insert(i, obj, values, axis), want)
        if not isinstance(obj, slice):
            same(jax.jit(lambda o, v: jnp.insert(i, o, v, axis))(obj, values), want)
    assert jnp.insert(jnp.arange(2), 99, 5).tolist() == [0, 1, 5]
    gradient = jax.grad(lambda v: jnp.insert(x, np.array([1, 0]), v, 1).sum())(2.0)
    assert gradient == 6.0
    assert "sort" not in str(jax.make_jaxpr(lambda x: jnp.insert(x, 1, 0))(x))
    weak = jnp.broadcast_to(1, (2,))
    for obj in (0, np.array([0]), np.array([1, 0]), np.arange(20) % 3, np.array([-2, 2] * 4)):
        want = np.insert(np.ones(2, np.int32), obj, 2)
        for got in (jnp.insert(weak, obj, 2), jax.jit(lambda w, o=obj: jnp.insert(w, o, 2))(weak),
                    jax.jit(lambda w, o: jnp.insert(w, o, 2))(weak, obj)):
            same(got, want)
            assert got.weak_type


def test_derivatives_of_insert():
    """Places that are known are parts of the program, others are found by it; they agree."""
    y = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for obj, values in [(1, np.float32([7, 8, 9])), (np.array([2, 0, 2]), y[:, :3]),
                        (np.array([3]), y[:, :1])]:
        def loss(a, v, obj):
            return (jnp.insert(a, obj, v, 1)**3).sum()

        known = jax.jit(jax.grad(lambda a, v, obj=obj: loss(a, v, obj), (0, 1)))(y, values)
        found = jax.jit(jax.grad(loss, (0, 1)))(y, values, obj)
        for got, other, at in zip(known, found, (y, values), strict=True):
            np.testing.assert_allclose(got, 3 * at**2)
            np.testing.assert_allclose(other, got)


def inserted(arr, obj, values, axis=None):
    """By an eager call, at known places and at traced ones."""
    yield jnp.insert(arr, obj, values, axis)
    yield jax.jit(lambda a, v: jnp.insert(a, obj, v, axis))(arr, values)
    yield jax.jit(lambda a, o, v: jnp.insert(a, o, v, axis))(arr, obj, values)


@pytest.mark.parametrize("obj", [
    -np.arange(1, 12, dtype=np.int8), np.uint8([200]), np.uint8([255, 2]), np.int8(-100),
    np.uint32([2**32 - 1]),
])
def test_places_of_small_integer_types_are_inserted_at_exactly(obj):
    a = np.arange(300, dtype=np.float32)
    for got in inserted(a, obj, np.float32(7)):
        same(got, np.insert(a, np.clip(obj.astype(np.int64), -300, 300), 7))


@pytest.mark.parametrize(("obj", "values"), [
    (np.array([0, 1]), np.ones(3)), (np.array([0, 1, 2]), np.ones(0)),
    (np.zeros(0, int), np.ones(3)), (np.array([1]), np.ones((2, 3))), (1, np.ones((2, 3))),
])
def test_as_many_values_as_places_are_inserted(obj, values):
    a = np.arange(3, dtype=np.float32)
    for f in (jnp.insert, jax.jit(jnp.insert), jax.jit(lambda a, o, v: jnp.insert(a, obj, v))):
        with pytest.raises(ValueError, match=r"jnp\.insert\(\): .*values"):
            f(a, obj, values)


def test_keys_are_inserted():
    keys, key = jax.random.split(jax.random.key(0), 2), jax.random.key(1)
    data = jax.random.key_data(keys), jax.random.key_data(key)
    for obj in (1, np.array([1, 0])):
        for got in inserted(keys, obj, key):
            same(jax.random.key_data(got), np.insert(*data[:1], obj, data[1], 0))


def test_inserted_slices_lie_as_the_array_does():
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,))
    a = np.arange(8, dtype=np.float32).reshape(4, 2)
    with jax.set_mesh(mesh):
        cut = jax.device_put(a, jax.NamedSharding(mesh, jax.P("d", None)))
        for obj in (1, np.array([1, 0]), np.arange(10) % 2):
            for got in inserted(cut, obj, 9.0, 1):
                assert jax.typeof(got).sharding.spec == jax.P("d", None)
                same(got, np.insert(a, obj, 9, 1))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (3, 3, 3), (0, 2)])
def test_fill_diagonal(shape):
    for value in (5, np.array([1, 2])):
        want = np.zeros(shape, np.int32)
        if want.size:
            np.fill_diagonal(want[:shape[1]] if len(shape) == 2 else want, value)
        got = jnp.fill_diagonal(np.zeros(shape, np.int32), value, inplace=False)
        same(got, want)


def test_place_and_put():
    for values in (np.array([7]), np.array([7, 8]), np.arange(20)):
        want = i.astype(np.int64)
        np.place(want, x > 0, values)
        same(jnp.place(i, x > 0, values, inplace=False), want)
        want = i.astype(np.int64)
        np.put(want, [0, -1, 5], values)
        same(jnp.put(i, np.array([0, -1, 5]), values, inplace=False), want)
    for mode in ("wrap", "clip"):
        want = np.arange(4)
        np.put(want, [0, 9], [5, 6], mode)
        same(jnp.put(jnp.arange(4), np.array([0, 9]), np.array([5, 6]), mode, inplace=False), want)
    same(jnp.put(jnp.arange(4), np.array([-1, -9]), 5, inplace=False), np.array([5, 1, 2, 5]))
    same(jnp.put(jnp.arange(4), np.array([-1]), 5, "clip", inplace=False), np.array([5, 1, 2, 3]))
    out = jnp.put(jnp.arange(4), np.array([9]), 5, inplace=False)
    assert out.tolist() == [0, 1, 2, 5]
    with pytest.warns(FutureWarning, match="cannot safely cast"):
        assert jnp.put(jnp.zeros(2, "int8"), 0, 1.5, inplace=False).dtype == "int8"


@pytest.mark.parametrize("trim", ["f", "b", "fb", "B", "bf"])
def test_trim_zeros(trim):
    for a in ([0, 0, 1, 0, 2, 0], [1, 2], [0, 0], [0.0, np.nan, 0.0]):
        same(jnp.trim_zeros(np.array(a, np.float32), trim),
             np.trim_zeros(np.array(a, np.float32), trim))
    grid = np.zeros((4, 3))
    grid[1, 2] = grid[2, 1] = 1
    for axis in (None, 0, 1):
        low, high = [(1, 1), (1, 0), (0, 1)][(None, 0, 1).index(axis)], [
            (3, 3), (3, 3), (4, 3)][(None, 0, 1).index(axis)]
        rows = slice(low[0] if "f" in trim.lower() else 0, high[0] if "b" in trim.lower() else 4)
        columns = slice(low[1] if "f" in trim.lower() else 0, high[1] if "b" in trim.lower() else 3)
        same(jnp.trim_zeros(grid, trim, axis), grid[rows, columns].astype(np.float32))


# -- files and texts -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*DTYPES, "float16"])
def test_files(dtype, tmp_path):
    a = jnp.asarray(i, dtype)
    jnp.save(tmp_path / "a.npy", a)
    back = jnp.load(tmp_path / "a.npy")
    same(back, np.asarray(a))
    assert isinstance(back, jax.Array) and back.dtype == a.dtype
    jnp.savez(tmp_path / "b.npz", a, other=a)
    with jnp.load(tmp_path / "b.npz") as several:
        assert sorted(several.files) == ["arr_0", "other"]


def test_texts():
    assert jnp.fromstring("1,2", sep=",").tolist() == [1.0, 2.0]
    assert jnp.fromstring("1 2 3", dtype=int, count=2, sep=" ").dtype == "int32"
    assert jnp.array_str(jnp.arange(2)) == "[0 1]"
    assert "array" in jnp.array_repr(jnp.arange(2)).lower()
    with jnp.printoptions(precision=2):
        jnp.set_printoptions(precision=3)
        assert jnp.get_printoptions()["precision"] == 3


@pytest.mark.parametrize("name", ["fromiter", "fromfile"])
def test_what_reads_once_is_refused(name):
    with pytest.raises(NotImplementedError, match=f"{name}.. is not implemented because it may be"):
        getattr(jnp, name)(range(3), int)


# -- polynomials -----------------------------------------------------------------------------------


def test_sums_of_coefficients_of_higher_rank():
    two, one = ints(2, 3), ints(1)
    np.testing.assert_array_equal(jnp.polyadd(two, one), two + [[0], [one[0]]])
    np.testing.assert_array_equal(jnp.polysub(one, two), [[0], [one[0]]] - two)
    np.testing.assert_array_equal(jnp.polyadd(two, two[:, :1]), two + two[:, :1])
    for a, b in ((two, floats(3)), (two[:, :1], two)):
        with pytest.raises(ValueError, match=r"polyadd: coefficients of shape \(2, 3\) do not"):
            jnp.polyadd(a, b)


@pytest.mark.parametrize("fun", [
    jnp.polyder, lambda p: jnp.polyder(p, 2), jnp.polyint, lambda p: jnp.polyint(p, 2, k=3.0),
    lambda p: jnp.polyint(p, 3, k=jnp.array([1, 2, 3])), lambda p: jnp.polyval(p, 0.5),
    lambda x: jnp.polyfit(x, x**2 + x, 2), lambda x: jnp.polyfit(x, x**2, 2, full=True)[3]])
def test_polynomials_of_symbolic_sizes(fun):
    shape = jax.export.symbolic_shape("n", constraints=["n >= 3"])
    exported = jax.export.export(jax.jit(fun))(jax.ShapeDtypeStruct(shape, "float32"))
    for n in (3, 5, 20):
        x = np.linspace(-1, 2, n, dtype=np.float32)
        np.testing.assert_allclose(exported.call(x), fun(x), rtol=1e-3, atol=1e-4)


def test_a_divisor_is_a_vector():
    with pytest.raises(TypeError, match=r"polydiv: v must be an array of rank 1, got shape \(2, 2"):
        jnp.polydiv(jnp.ones(3), jnp.ones((2, 2)))


@pytest.mark.parametrize("make", [floats, ints, complexes])
def test_arithmetic_of_polynomials(make):
    p, q = make(4), make(2)
    q[0] = 2
    for name in ("polyadd", "polysub", "polymul"):
        agrees(name, p, q, tol=1e-4)
        agrees(name, q, p, tol=1e-4)
    quotient, rest = jnp.polydiv(p, q)
    for part in (quotient, rest):
        assert part.dtype == ("complex64" if make is complexes else "float32")
    np.testing.assert_allclose(np.polyadd(np.polymul(np.asarray(quotient), q), np.asarray(rest)),
                               p, rtol=1e-4, atol=1e-4)
    assert rest.shape == p.shape
    assert jnp.polydiv(q, p)[0].tolist() == [0]
    agrees("polyder", p)
    agrees("polyder", p, 2)
    agrees("polyder", np.arange(6.0).reshape(3, 2))
    agrees("polyder", p, 6)
    agrees("polyint", p)
    agrees("polyint", p, 3, 2.0, tol=1e-4)
    agrees("polyval", p, make(3, 2), tol=1e-3)
    agrees("poly", q, tol=1e-4)
    agrees("vander", q, tol=1e-4)
    agrees("vander", p, 2, True, tol=1e-4)
    np.testing.assert_allclose(jnp.polyint(p, 2, np.array([3.0, 4.0])), np.polyint(p, 2, [3, 4]),
                               rtol=1e-5)


def test_zeros_in_front_of_polynomials():
    p = jnp.array([0, 0, 1, 2])
    assert jnp.polymul(p, p, trim_leading_zeros=True).tolist() == [1, 4, 4]
    assert jnp.polymul(jnp.zeros(2), jnp.zeros(1), trim_leading_zeros=True).tolist() == [0]
    u, v = jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0])
    assert jnp.polydiv(u, v, trim_leading_zeros=True)[1].tolist() == [2]
    assert jnp.polydiv(v * 2, v, trim_leading_zeros=True)[1].tolist() == []
    with pytest.raises(jax.errors.ConcretizationTypeError, match="trim_leading_zeros=True"):
        jax.jit(lambda a: jnp.polymul(a, a, trim_leading_zeros=True))(p)


def test_derivatives_of_polynomials():
    p = jnp.array([1.0, 2.0, 3.0])
    assert jax.grad(lambda v: jnp.polyval(p, v))(2.0) == 6.0
    assert jax.grad(jnp.polyval)(p, 2.0).tolist() == [4, 2, 1]
    slope = jax.make_jaxpr(lambda v: jax.vjp(lambda v: jnp.polyval(p, v), v)[1](v))(jnp.ones(5))
    assert "f32[3,5]" not in str(slope), "the values of all steps are kept"
    assert jax.vmap(lambda v: jnp.polyval(p, v))(jnp.arange(3.0)).tolist() == [3, 6, 11]
    assert float(jnp.polyval(p, np.inf)) == np.inf and float(jnp.polyval(p[:1], np.nan)) == 1
    assert jnp.polyval(p[:0], jnp.ones(2)).tolist() == [0, 0]
    assert jax.jacrev(jnp.poly)(jnp.array([1.0, 2.0])).tolist() == [[0, 0], [-1, -1], [2, 1]]
    close = jax.jacfwd(lambda a: jnp.polydiv(a, jnp.array([1.0, 1.0]))[0])(p)
    assert close.tolist() == [[1, 0, 0], [-1, 1, 0]]
    assert not jnp.isnan(jax.jacrev(jnp.vander)(jnp.zeros(2))).any()


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: jnp.poly(x), ValueError, "input must be 1d or non-empty square 2d array"),
    (lambda: jnp.polyder(x[0], -1), ValueError, "Order of derivative must be positive"),
    (lambda: jnp.polyint(x[0], -1), ValueError, "Order of integral must be positive"),
    (lambda: jnp.polyint(x[0], 2, np.ones(3)), ValueError, "k must be a scalar or a rank-1 array"),
    (lambda: jnp.vander(x), ValueError, "must be a one-dimensional array"),
    (lambda: jnp.vander(x[0], -1), ValueError, "N must be nonnegative"),
    (lambda: jnp.polyadd([1], [2]), TypeError, "polyadd requires ndarray or scalar arguments"),
    (lambda: jnp.polyval(jnp.float32(1), 2), ValueError, "must be arrays of rank 1"),
])
def test_errors_of_polynomials(call, error, message):
    with pytest.raises(error, match=message):
        call()


# -- fits and roots --------------------------------------------------------------------------------


def test_polyfit_takes_an_integer_as_the_least_singular_value():
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"):
        x = np.arange(3.0)
        same(jnp.polyfit(x, x, 1, rcond=np.int64(1)), jnp.polyfit(x, x, 1, rcond=1.0))


@pytest.mark.parametrize("columns", [None, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_polyfit(columns, weighted):
    points = np.linspace(-1, 2, 9)
    values = floats(9) if columns is None else floats(9, columns)
    weights = np.linspace(1, 2, 9) if weighted else None
    with jax.enable_x64(True):
        for deg in (0, 1, 3):
            close = {"rtol": 1e-6, "atol": 1e-6}
            got = jnp.polyfit(points, values, deg, w=weights)
            np.testing.assert_allclose(got, np.polyfit(points, values, deg, w=weights), **close)
            for cov in (True, "unscaled"):
                for a, b in zip(jnp.polyfit(points, values, deg, w=weights, cov=cov),
                                np.polyfit(points, values, deg, w=weights, cov=cov), strict=True):
                    np.testing.assert_allclose(a, b, **close)
            for a, b in zip(jnp.polyfit(points, values, deg, w=weights, full=True),
                            np.polyfit(points, values, deg, w=weights, full=True), strict=True):
                np.testing.assert_allclose(a, b, **close)
    single = jax.jit(lambda y: jnp.polyfit(points, y, 1))(values)
    np.testing.assert_allclose(single, np.polyfit(points, values, 1), atol=1e-4)


@pytest.mark.parametrize("p", [
    [1, -3, 2], [0, 0, 2, 1, 5], [1, -3, 2, 0, 0], [2], [0, 0], [], [1j, 2, 1], [3, 6], [0, 3, 6]])
def test_roots(p):
    p = np.array(p, np.complex64 if any(isinstance(c, complex) for c in p) else np.float32)
    want = np.sort_complex(np.roots(p))
    got = jnp.roots(p)
    assert got.dtype == "complex64"
    np.testing.assert_allclose(np.sort_complex(np.asarray(got)), want, atol=1e-4)
    if len(p) > 1:
        every = np.asarray(jax.jit(lambda v: jnp.roots(v, strip_zeros=False))(p))
        assert every.shape == (len(p) - 1,)
        np.testing.assert_allclose(np.sort_complex(every[~np.isnan(every)]), want, atol=1e-4)


def test_characteristic_polynomial():
    matrix = floats(3, 3)
    np.testing.assert_allclose(jnp.poly(matrix), np.poly(matrix), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: jnp.polyfit(x[0], x[0], -1), ValueError, "expected deg >= 0"),
    (lambda: jnp.polyfit(x, x[0], 1), TypeError, "expected 1D vector for x"),
    (lambda: jnp.polyfit(jnp.zeros(0), x[0], 1), TypeError, "expected non-empty vector for x"),
    (lambda: jnp.polyfit(x[0], x[0, 1:], 1), TypeError, "expected x and y to have same length"),
    (lambda: jnp.polyfit(x[0], x[0], 1, w=x), TypeError, "expected a 1-d array for weights"),
    (lambda: jnp.polyfit(x[0], x[0], 3, cov=True), ValueError, "must exceed order"),
    (lambda: jnp.roots(x), ValueError, "Input must be a rank-1 array"),
    (lambda: jax.jit(jnp.roots)(x[0]), jax.errors.ConcretizationTypeError, "strip_zeros=False"),
])
def test_errors_of_fits(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_edges_of_polynomials():
    """Roots in LAPACK's order, those at zero among them; scalars are constants."""
    assert jnp.roots(jnp.array([1.0, 3.0, 2.0, 0.0])).tolist() == [0, -1, -2]
    assert jnp.roots(jnp.array(2.0)).shape == (0,)
    np.testing.assert_array_equal(jnp.poly(jnp.array([np.nan])), [1, np.nan])
    np.testing.assert_array_equal(jnp.poly(jnp.array([np.inf, 1.0])), [1, -np.inf, np.inf])


def test_edges_of_edits():
    assert jnp.trim_zeros(jnp.array(1.0)).shape == ()
    assert jnp.repeat(jnp.array(True), 2, axis=3).tolist() == [True, True]
    assert jnp.kaiser(0, jnp.ones(2)).shape == (0,)
    with pytest.raises(ValueError, match="Need at least one array to stack"):
        jnp.stack(jnp.zeros((0, 2)))


def test_nothing_is_inserted():
    x = np.array([3.0, 1.0], np.float32)
    assert jnp.insert(x, np.zeros(0), 5.0).tolist() == [3, 1]
    assert jnp.insert(x, 1, np.zeros(0)).tolist() == [3, 1]


@pytest.mark.parametrize("pick", [jnp.compress, jnp.extract])
@pytest.mark.parametrize("value", ["x", None, (0, 0)])
def test_what_fills_is_looked_at_where_nothing_lacks(pick, value):
    with pytest.raises(TypeError, match=rf"{pick.__name__} requires .* That is the argument fill"):
        pick(jnp.array([True, False]), jnp.arange(2), fill_value=value)
