"""Making arrays against NumPy: values, dtypes, x64, errors, use under jit."""

from __future__ import annotations

import fractions
import warnings

import ml_dtypes
import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp

pytestmark = pytest.mark.smoke


def check(got, expected, dtype=None):
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6)
    assert np.shape(got) == np.shape(expected)
    if dtype is not None:
        assert got.dtype == dtype


@pytest.mark.parametrize(("value", "dtype"), [
    (1, "int32"), (2.5, "float32"), (True, "bool"), (1j, "complex64"), ([1, 2], "int32"),
    ([1, 2.5], "float32"), ([[True], [False]], "bool"), (((1, 2), [3, 4]), "int32"),
    (np.float64(3), "float32"), (np.int8(3), "int8"), (np.arange(3), "int32"),
    (np.arange(3, dtype=np.uint8), "uint8"), (range(4), "int32"), ([], "float32"),
    ([np.float16(1), 2.0], "float16"), ([np.int8(1), 2], "int8"), (memoryview(b"ab"), "uint8"),
    (np.ones((0, 3)), "float32"), ([1j, 2], "complex64"),
])
def test_array_of_values(value, dtype):
    for make in (jnp.array, jnp.asarray):
        check(make(value), np.asarray(value), dtype)
    traced = jax.jit(lambda: jnp.array(value) if not isinstance(value, memoryview) else 0)()
    if not isinstance(value, memoryview):
        check(traced, np.asarray(value), dtype)


def test_weak_types_of_new_arrays():
    assert jnp.array(1).weak_type and jnp.asarray(2.0).weak_type
    assert not jnp.array([1]).weak_type
    assert not jnp.array(True).weak_type
    assert not jnp.array(1, "int32").weak_type
    assert jnp.full((2,), 1.0).weak_type
    assert not jnp.asarray(jnp.asarray(1.0), "float32").weak_type


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint32", "bool", "complex64",
                                   float, int, jnp.float32, ml_dtypes.float8_e4m3fn])
def test_array_with_dtype(dtype):
    got = jnp.array([0, 1, 2], dtype)
    assert got.dtype == jnp.zeros(1, dtype).dtype
    assert np.asarray(got).astype(np.complex64).real.tolist()[:2] == [0, 1]


def test_array_of_arrays():
    x, y = jnp.arange(2), jnp.array([2.5, 3.5])
    check(jnp.array([x, y]), [[0, 1], [2.5, 3.5]], "float32")
    check(jax.jit(lambda x, y: jnp.array([x, y]))(x, y), [[0, 1], [2.5, 3.5]], "float32")
    check(jax.jit(lambda a: jnp.array([[a, 1], [2, a]]))(5), [[5, 1], [2, 5]], "int32")
    check(jax.grad(lambda a: jnp.array([a, 2 * a]).sum())(1.0), 3.0)


def test_array_copies_and_asarray_does_not():
    host = np.zeros(3, np.float32)
    x = jnp.array(host)
    y = jnp.asarray(x)
    host[0] = 1
    assert y is x and x.tolist() == [0.0, 0.0, 0.0]
    assert jnp.array(x) is not x


def test_ndmin_and_order():
    assert jnp.array(1, ndmin=2).shape == (1, 1)
    assert jnp.array([1, 2], ndmin=3).shape == (1, 1, 2)
    assert jnp.array([1], order=None).tolist() == [1]
    with pytest.raises(NotImplementedError, match="Only implemented for order='K'"):
        jnp.array([1], order="X")


@pytest.mark.parametrize("value", [object(), "abc", ["a"], np.array([object()])])
def test_values_that_are_no_numbers(value):
    with pytest.raises(TypeError, match="is not a valid JAX array type"):
        jnp.array(value)


@pytest.mark.parametrize(("value", "dtype", "expected"), [
    ([1, jnp.bfloat16(2)], "bfloat16", [1, 2]),
    ([ml_dtypes.bfloat16(1.5), -1], "bfloat16", [1.5, -1]),
    ([[ml_dtypes.bfloat16(1.5), 1], [2, 3]], "bfloat16", [[1.5, 1], [2, 3]]),
    ([np.array([1.5], ml_dtypes.bfloat16), [2]], "bfloat16", [[1.5], [2]]),
    ([ml_dtypes.float8_e4m3fn(1), -1], "float8_e4m3fn", [1, -1]),
    ([[1, 2], jnp.ones(2, jnp.bfloat16)], "bfloat16", [[1, 2], [1, 1]]),
    ([np.int8(1), 2.5], "float32", [1, 2.5]),
])
def test_sequences_of_several_types(value, dtype, expected):
    assert jnp.array(value).dtype == dtype
    assert np.asarray(jnp.array(value), np.float32).tolist() == expected
    assert jnp.array(value, "int32").dtype == "int32"


def test_sequences_whose_values_do_not_fit():
    for value in ([np.int8(1), 300], [2**40, jnp.ones(1, int)[0]], [np.uint32(1), -1]):
        with pytest.raises(OverflowError, match="out of bounds"):
            jnp.array(value)
    for value in ([jnp.ones(1), jnp.ones(2)], [1, jnp.ones(2)], [jnp.ones(()), [1]]):
        with pytest.raises(TypeError, match="Cannot concatenate arrays with shapes that differ"):
            jnp.array(value)
        with pytest.raises(TypeError, match="Cannot concatenate arrays with shapes that differ"):
            jax.jit(lambda value=value: jnp.array(value))()
    for value in (1j, [1j, 2]):
        with pytest.raises(TypeError, match="real part"):
            jnp.array(value, "float32")


def test_none_and_ragged_sequences():
    for value in (None, [1, None]):
        with pytest.raises(ValueError, match=r"None is not a valid value for jnp\.array"):
            jnp.array(value)
    with pytest.raises(ValueError, match="inhomogeneous"):
        jnp.array([1, [2]])
    with pytest.raises(OverflowError):
        jnp.array([2 ** 40])
    with pytest.raises(OverflowError, match="too large to convert to int32"):
        jnp.array(2 ** 40)


def test_sixty_four_bits():
    with pytest.warns(UserWarning, match="Explicitly requested dtype float64 requested in zeros"):
        assert jnp.zeros(2, "float64").dtype == "float32"
    with jax.enable_x64(True):
        assert jnp.zeros(2).dtype == "float64"
        assert jnp.array([1]).dtype == "int64"
        assert jnp.arange(3).dtype == "int64"
        assert jnp.array(2 ** 40).item() == 2 ** 40
        assert jnp.linspace(0, 1, 3).dtype == "float64"


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_filled(name):
    value = 1 if name == "ones" else 0
    for shape in ((), 3, (2, 0), [2, 3], (np.int64(2), 1)):
        check(getattr(jnp, name)(shape), np.full(shape, value), "float32")
        traced = jax.jit(lambda shape=shape: getattr(jnp, name)(shape, int))()
        check(traced, np.full(shape, value), "int32")
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
        getattr(jnp, name)([2, 3.5])
    with pytest.raises(TypeError, match="nonnegative"):
        getattr(jnp, name)(-1)


def test_full():
    check(jnp.full((2, 3), 7), np.full((2, 3), 7), "int32")
    check(jnp.full(3, np.arange(3, dtype=np.int8)), [0, 1, 2], "int8")
    check(jax.jit(lambda v: jnp.full((2,), v))(1.5), [1.5, 1.5], "float32")
    check(jnp.full((2,), 1.5, "int16"), [1, 1], "int16")


@pytest.mark.parametrize(("value", "dtype", "expected"), [
    (-1, "uint32", 2**32 - 1), (300, "uint8", 44), (2**40, "int32", 0), (2**32 + 5, "uint32", 5),
    (-1.5, "uint8", 0), (300.5, "uint8", 255), (1e20, "int32", 2**31 - 1), (np.nan, "int32", 0),
    (np.inf, "int32", 2**31 - 1), (1e39, "float32", np.inf), (2, "bool", True),
])
def test_full_with_numbers_that_do_not_fit(value, dtype, expected):
    for fun in (jnp.full, jax.lax.full):
        assert fun((2,), value, dtype).tolist() == [expected] * 2
    like = jnp.zeros(2, dtype)
    assert jnp.full_like(like, value).tolist() == [expected] * 2
    assert jax.lax.full_like(like, value).tolist() == [expected] * 2


def test_full_with_numbers_of_another_kind():
    for fun in (jnp.full, jax.lax.full):
        assert fun((2,), 2**40).weak_type and fun((2,), 2**40).tolist() == [0, 0]
        with pytest.raises(TypeError, match="real part"):
            fun((2,), 1j, "float32")
        with pytest.raises(OverflowError):
            fun((2,), 2**70, "int32")


def test_filled_with_keys():
    dtype = jax.random.key(0).dtype
    for x in (jnp.empty(2, dtype), jnp.zeros(2, dtype), jnp.ones(2, dtype), jnp.full(2, 7, dtype)):
        assert x.shape == (2,) and x.dtype == dtype
    assert jnp.full(2, jax.random.key(3)).shape == (2,)
    with pytest.raises(ValueError, match="Cannot convert_element_type from key<fry> to int32"):
        jnp.asarray(jax.random.key(0), "int32")
    with pytest.raises(NotImplementedError, match="key_data"):
        jax.random.key(0).astype("int32")


def test_shapes_may_be_arrays_of_rank_0():
    assert jnp.zeros(jnp.asarray(2)).shape == (2,) and jnp.ones((jnp.int32(2), 3)).shape == (2, 3)


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "full_like"])
def test_like(name):
    args = (3,) if name == "full_like" else ()
    x = np.arange(6, dtype=np.int16).reshape(2, 3)
    fun = getattr(jnp, name)
    value = {"ones_like": 1, "full_like": 3}.get(name, 0)
    check(fun(x, *args), np.full((2, 3), value), "int16")
    check(fun(x, *args, dtype="float32", shape=(4,)), np.full(4, value), "float32")
    check(jax.jit(lambda x: fun(x, *args))(x), np.full((2, 3), value), "int16")
    check(fun(jax.ShapeDtypeStruct((2,), np.dtype("float32")), *args), np.full(2, value), "float32")


@pytest.mark.parametrize("args", [(5,), (2, 8), (2, 8, 3), (8, 2, -2), (0.5, 3), (0, 1, 0.3), (0,),
                                  (5, 2)])
def test_arange(args):
    expected = np.arange(*args)
    kind = "int32" if expected.dtype.kind == "i" else "float32"
    check(jnp.arange(*args), expected, kind)
    check(jax.jit(lambda: jnp.arange(*args))(), expected, kind)
    half = np.arange(*args).astype(np.float16)  # rounded once, not at each step
    check(jnp.arange(*args, dtype="float16"), half, "float16")


def test_arange_errors():
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"jnp\.arange argument"):
        jax.jit(jnp.arange)(3)
    with pytest.raises(ValueError, match="complex start/stop/step"):
        jnp.arange(1j)
    with pytest.raises(ZeroDivisionError):
        jnp.arange(0, 3, 0)
    with pytest.raises(OverflowError, match="infinity"):
        jnp.arange(np.inf)
    for args in ((True,), (3, None, None, bool)):
        with pytest.raises(TypeError, match="iota does not accept dtype bool"):
            jnp.arange(*args)


@pytest.mark.parametrize(("args", "kwargs"), [
    ((0, 1), {}), ((0, 10, 5), {}), ((1, 2, 1), {}), ((1, 2, 0), {}),
    ((0, 1, 4), {"endpoint": False}), ((0, 9, 4), {"dtype": "int32"}),
    (([0, 1], [2, 3], 3), {}), (([0, 1], [2, 3], 3), {"axis": 1}), ((0, 1 + 1j, 3), {}),
])
def test_linspace(args, kwargs):
    np.testing.assert_allclose(
        jnp.linspace(*[jnp.array(a) if isinstance(a, list) else a for a in args], **kwargs),
        np.linspace(*args, **kwargs), rtol=1e-6, atol=1e-6)


def test_spaced_logarithmically():
    np.testing.assert_allclose(jnp.logspace(0, 2, 5), np.logspace(0, 2, 5), rtol=1e-5)
    np.testing.assert_allclose(jnp.logspace(0, 4.8, 50, dtype="float16"), np.logspace(0, 4.8, 50),
                               rtol=5e-4)  # the last bit of float16
    np.testing.assert_allclose(jnp.geomspace(1, 1000, 4), np.geomspace(1, 1000, 4), rtol=1e-5)
    with jax.enable_x64():
        np.testing.assert_allclose(jnp.geomspace(1, 1e6, 7), 10.0**np.arange(7), rtol=1e-14)
        assert jnp.log10(1000.0) == 3
    np.testing.assert_allclose(jnp.geomspace(-1, -8, 4), np.geomspace(-1, -8, 4), rtol=1e-5)
    values, step = jnp.linspace(0, 1, 5, retstep=True)
    assert float(step) == 0.25
    assert values.shape == (5,)


def test_matrices():
    for args in ((3,), (2, 4), (3, 3, 1), (3, 2, -1), (0,)):
        check(jnp.eye(*args), np.eye(*args), "float32")
        check(jnp.tri(*args), np.tri(*args), "float32")
        check(jax.jit(lambda args=args: jnp.eye(*args))(), np.eye(*args), "float32")
    check(jnp.identity(2, int), np.identity(2), "int32")
    x = np.arange(24).reshape(2, 3, 4)
    for k in (-1, 0, 2):
        check(jnp.tril(x, k), np.tril(x, k))
        check(jnp.triu(x, k), np.triu(x, k))
        check(jax.jit(lambda x, k=k: jnp.tril(x, k))(x), np.tril(x, k))
        check(jnp.diagonal(x, k, 1, 2), np.diagonal(x, k, 1, 2))
        check(jnp.diag(x[0], k), np.diag(x[0], k))
        check(jnp.diag(x[0, 0], k), np.diag(x[0, 0], k))
        check(jnp.diagflat(x[0, :2, :2], k), np.diagflat(x[0, :2, :2], k))
        for n in (1, 3, 150):  # few rows are padded, many selected
            v, ct = np.arange(1.0, n + 1), np.arange(float(n + abs(k)) ** 2).reshape(n + abs(k), -1)
            out, pullback = jax.vjp(lambda v, k=k: jnp.diag(v, k), v)
            np.testing.assert_array_equal(out, np.diag(v, k))
            np.testing.assert_array_equal(pullback(jnp.asarray(ct))[0], np.diag(ct, k))
    with jax.enable_x64(True):
        for k in (2**31, 2**33, -(2**33)):
            check(jnp.tril(x, k), np.tril(x, k))
            check(jnp.triu(x, k), np.triu(x, k))
    with pytest.raises(ValueError, match="must be at least 2D"):
        jnp.tril(np.ones(3))


def test_index_makers():
    for name in ("tril_indices", "triu_indices"):
        for got, expected in zip(getattr(jnp, name)(4, 1, 3), getattr(np, name)(4, 1, 3),
                                 strict=True):
            check(got, expected, "int32")
    x = np.arange(12).reshape(3, 4)
    check(x[np.asarray(jnp.tril_indices_from(x))[0]], x[np.tril_indices_from(x)[0]])
    check(jnp.diag_indices(3)[1], np.diag_indices(3)[1])
    check(jnp.indices((2, 3)), np.indices((2, 3)), "int32")
    for got, expected in zip(jnp.indices((2, 3), sparse=True), np.indices((2, 3), sparse=True),
                             strict=True):
        check(got, expected)
    assert [x.dtype for x in jnp.ix_(np.zeros(0), [])] == [np.int32] * 2
    for got, expected in zip(jnp.ix_([0, 2], [1]), np.ix_([0, 2], [1]), strict=True):
        check(got, expected)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [True, False])
def test_meshgrid(indexing, sparse):
    vectors = np.arange(2), np.arange(3), np.arange(4)
    for got, expected in zip(jnp.meshgrid(*vectors, indexing=indexing, sparse=sparse),
                             np.meshgrid(*vectors, indexing=indexing, sparse=sparse), strict=True):
        check(got, expected)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of NumPy's matrices
def test_index_tricks():
    check(jnp.mgrid[0:3, 1:6:2], np.mgrid[0:3, 1:6:2])
    check(jnp.mgrid[0:1:3j], np.mgrid[0:1:3j])
    with jax.numpy_dtype_promotion("strict"):
        check(jnp.mgrid[0:1:3j, 0:2], np.mgrid[0:1:3j, 0:2])
    for got, expected in zip(jnp.ogrid[:2, :3], np.ogrid[:2, :3], strict=True):
        check(got, expected)
    check(jnp.r_[jnp.array([1, 2]), 0, 0:3], np.r_[np.array([1, 2]), 0, 0:3])
    for given in (([1, 2], [3, 4]), (5,), (1, 2), ([[1, 2]], [[3, 4]])):
        for matrix in "rc":
            check(jnp.r_[(matrix, *map(jnp.array, given))], np.asarray(np.r_[(matrix, *given)]))
    check(jnp.r_["0,2", jnp.array([1, 2]), jnp.array([3, 4])],
          np.r_["0,2", np.array([1, 2]), np.array([3, 4])])
    check(jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])], np.c_[np.array([1, 2]), np.array([3, 4])])
    assert jnp.s_[1:3, ...] == (slice(1, 3), ...)


def test_from_functions_and_buffers():
    check(jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int),
          np.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int), "int32")
    check(jnp.frombuffer(b"\x01\x02", np.uint8), [1, 2], "uint8")


def test_scalar_types():
    assert jnp.float32 != "float32"  # which has another hash
    assert jnp.float32 == np.float32 == jnp.dtype("float32")
    assert np.dtype(jnp.bfloat16) == ml_dtypes.bfloat16
    for other, equal in ((np.float32, True), (np.dtype("float32"), True), (np.int8, False),
                         (jnp.int8, False), ("float32", False), (3, False)):
        assert (jnp.float32 == other) is equal and (jnp.float32 != other) is not equal
    chosen = jax.jit(lambda x: x if jnp.float32 == x.dtype and np.float32 in {jnp.float32: 1}
                     and jnp.int8 not in (np.float16, x.dtype) else -x)
    assert float(chosen(jnp.float32(2))) == 2
    assert hash(jnp.int8) == hash(np.int8)
    assert jnp.int32(3).dtype == "int32" and jnp.int32(3).shape == ()
    assert not jnp.float32(3).weak_type
    assert isinstance(np.float32(1), jnp.float32)
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)
    assert not jnp.issubdtype(jnp.int8, jnp.floating)
    assert jnp.bool is jnp.bool_ and jnp.double is jnp.float64
    assert jnp.zeros(2, jnp.uint8).dtype == jnp.uint8
    assert jnp.finfo(jnp.bfloat16).bits == 16
    assert jnp.iinfo(jnp.int8).max == 127


class Converts:
    """An object that converts itself."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return jnp.asarray(self.value)


@pytest.mark.parametrize("call", [
    lambda f, x: jax.jit(f)(x), lambda f, x: jax.vmap(f)(x), lambda f, x: jax.grad(f)(x),
    lambda f, x: jax.jvp(f, (x,), (1.0,)), lambda f, x: jax.vjp(f, x), lambda f, x: jax.typeof(x),
    lambda f, x: jax.make_jaxpr(f)(x), lambda f, x: jax.eval_shape(f, x),
    lambda f, x: jax.checkpoint(f)(x),
])
def test_transformed_functions_take_no_objects_that_convert_themselves(call):
    message = r"Triggering __jax_array__\(\) during abstractification is no longer supported"
    with pytest.raises(ValueError, match=message):
        call(lambda x: x, Converts(1.0))
    assert jnp.sin(Converts(0.0)) == 0


def test_refused_arguments_are_named():
    for value in Converts(1.0), np.ma.array([1.0]):
        with pytest.raises(ValueError, match=r"was passed to .* at path y\['a'\]\[0\]"):
            jax.jit(lambda x, y: x)(1, {"a": [value]})


def test_questions_about_types():
    assert jnp.promote_types("int32", "float16") == "float16"
    assert jnp.result_type(jnp.int8(1), 2.0) == "float32"
    assert jnp.can_cast(np.ones(2, "int8"), "float32") and not jnp.can_cast(np.ones(2), "float32")
    assert jnp.can_cast("int8", "int16") and not jnp.can_cast("int16", "int8")
    assert jnp.isdtype(jnp.float32, "real floating")
    assert jnp.isdtype(np.dtype("int8"), ("bool", "integral"))
    with pytest.raises(ValueError, match="Unrecognized kind"):
        jnp.isdtype(np.dtype("int8"), "nonsense")
    assert jnp.isscalar(1.0) and jnp.isscalar(jnp.array(1)) and not jnp.isscalar(jnp.ones(1))
    assert jnp.isscalar(np.array(1.0)) and not jnp.isscalar(np.ones(1))
    assert jnp.isscalar(Converts(1.0)) and not jnp.isscalar(Converts(np.ones(3)))
    x = jnp.ones((2, 3))
    assert (jnp.shape(x), jnp.ndim(x), jnp.size(x), jnp.size(x, 1)) == ((2, 3), 2, 6, 3)
    words = np.array([["a"], ["b"]])
    assert (jnp.shape(words), jnp.ndim(words), jnp.size(words)) == ((2, 1), 2, 2)
    assert isinstance(x, jnp.ndarray)


def test_astype():
    x = jnp.array([1.5, -2.7, 0.0])
    check(x.astype(int), [1, -2, 0], "int32")
    check(x.astype(bool), [True, True, False], "bool")
    check(jnp.astype(x, jnp.complex64), np.asarray(x), "complex64")
    with pytest.warns(DeprecationWarning, match="complex to real"):
        check((x * 1j).astype("float32"), [0, 0, 0], "float32")
    assert jax.jit(lambda x: x.astype("int8"))(x).dtype == "int8"
    check(jnp.astype(300, "int8"), 44, "int8")
    check(jax.jit(lambda: jnp.astype(-1, "uint8"))(), 255, "uint8")


def test_device_argument():
    device = jax.devices()[0]
    for x in (jnp.zeros(2, device=device), jnp.array(1, device=device),
              jnp.arange(3, device=device), jnp.full(2, 1, device=device)):
        assert x.committed and x.devices() == {device}


def test_meshgrid_gives_a_tuple():
    assert isinstance(jnp.meshgrid(jnp.arange(2), jnp.arange(3)), tuple)
    assert isinstance(jnp.ogrid[:2, :3], list)
    assert jnp.meshgrid() == ()


def test_arange_of_bfloat16():
    assert jnp.arange(jnp.array(2.0, "bfloat16")).tolist() == [0.0, 1.0]
    halves = jnp.arange(0, jnp.bfloat16(1), jnp.bfloat16(0.5))
    assert halves.dtype == jnp.bfloat16 and halves.tolist() == [0.0, 0.5]


def test_booleans_made_of_scalars_are_strong():
    assert not jnp.astype(-1, bool).weak_type
    assert not jnp.asarray(1.5).astype(bool).weak_type


@pytest.mark.parametrize(("bounds", "dtype", "want"), [
    ((0, 5, 1.5), "int32", [0, 1, 2, 3]), ((5, 0, -1.5), "int8", [5, 4, 3, 2]),
    ((-2.5, 1), "int32", [-2, -1, 0, 1]), ((0, 2, 0.5), "int32", [0, 0, 0, 0]),
    ((-2.5, 1.5), "uint8", [0, 1, 2, 3]), ((-3, -1, 1.0), "uint8", [253, 254]),
])
def test_ranges_of_integers_take_whole_steps(bounds, dtype, want):
    got = jnp.arange(*bounds, dtype=dtype)
    assert got.dtype == dtype and got.tolist() == want


@pytest.mark.parametrize(("stop", "num"), [(25, 6), (30, 7), (35, 8), (50, 11), (11, 12)])
def test_linspace_from_0_in_whole_steps_is_exact(stop, num):
    assert jnp.linspace(0, stop, num).tolist() == np.linspace(0, stop, num).tolist()


def test_linspace_between_arrays_that_do_not_broadcast():
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        jnp.linspace(jnp.ones(3), jnp.ones(2))


@pytest.mark.parametrize("make", [
    jnp.ones_like, jnp.zeros_like, lambda x: jnp.full_like(x, 2), lambda x: jnp.zeros((), "int32"),
    lambda x: jnp.full((2,), 2, "int32"), lambda x: jnp.ones((), "float32"),
])
def test_traced_constants_are_strongly_typed(make):
    x = jnp.array([1], "int32")
    assert not make(x).weak_type
    assert not jax.jit(make)(x).weak_type


def test_arrays_of_float0():
    zeros = np.zeros((2,), jax.dtypes.float0)
    for x in (jnp.ones_like(zeros), jnp.zeros_like(zeros), jnp.asarray(zeros)):
        assert x.dtype == jax.dtypes.float0 and x.shape == (2,)
    with pytest.raises(TypeError, match="float0"):
        jnp.sin(zeros)


def test_arange_between_weak_and_strong():
    assert jnp.arange(jnp.broadcast_to(1, ()), jnp.array(3, "uint16")).dtype == np.uint16


def test_an_array_is_no_dtype():
    with pytest.raises(ValueError, match="expected a dtype, got an array in zeros"):
        jnp.zeros(2, jnp.ones(2, "int32"))


@pytest.mark.parametrize("function", [
    jnp.rint, jnp.sin, jax.nn.elu, jnp.angle, jnp.min, jnp.nanmax, jnp.sum, jnp.nansum, jnp.var,
    jnp.argmax, jnp.cumsum, lambda x: jnp.sort(jax.random.split(x)),
])
def test_keys_are_no_numbers(function):
    with pytest.raises(TypeError, match="key<fry>"):
        function(jax.random.key(0))


def test_what_is_made_while_tracing_is_traced():
    for make in (lambda: jnp.array(3), lambda: jnp.asarray(np.arange(2)), lambda: jnp.int32(3),
                 lambda: jnp.array([1, 2.5])):
        with pytest.raises(jax.errors.ConcretizationTypeError, match="constant of the program"):
            jax.jit(lambda x, make=make: make().tolist())(1.0)
        np.testing.assert_array_equal(jax.jit(make)(), make())
        assert jax.jit(make)().weak_type == make().weak_type
    assert str(jax.make_jaxpr(lambda x: x + jnp.float32(3))(np.float32(1))) == (
        "{ lambda ; a:f32[]. let b:f32[] = add a 3.0:f32[] in (b,) }")
    with jax.ensure_compile_time_eval():
        assert int(jnp.array(3)) == 3

    def nested(x):
        c = jnp.array(2.0)
        inner = jax.jit(lambda y: y * c)(x)
        return inner + jax.grad(lambda y: y * c)(x) + jax.vmap(lambda y: y + c)(x[None])[0]

    assert float(jax.jit(nested)(jnp.asarray(1.0))) == 7


@pytest.mark.parametrize("make", [jnp.logspace, jnp.geomspace])
def test_ranges_are_computed_in_the_dtype_asked_for(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        found = make(1, 2 + 1j, 3, dtype="float32")
    assert found.tolist() == make(1, 2, 3, dtype="float32").tolist()


def test_linspace_of_complex_ends_as_integers():
    np.testing.assert_array_equal(jnp.linspace(-2.5, 5 + 1j, 3, dtype="int32"), [-3, 1, 5])


@pytest.mark.parametrize("num", [1, 3])
@pytest.mark.parametrize(("dtype", "want"), [
    ("float16", "float16"), ("complex64", "complex64"), ("int32", "float32"), (None, "float32"),
])
def test_the_step_of_linspace_is_of_the_dtype_that_is_asked_for(dtype, want, num):
    assert jnp.linspace(0, 1, num, retstep=True, dtype=dtype)[1].dtype == want


def test_diagonals_may_be_traced():
    for k in (-1, 0, 2):
        for name in ("eye", "tri"):
            function = getattr(jnp, name)
            got = jax.jit(lambda k, function=function: function(3, 4, k=k))(k)
            np.testing.assert_array_equal(got, getattr(np, name)(3, 4, k=k))
    got = jax.vmap(lambda k: jnp.eye(2, k=k, dtype=int))(np.arange(2))
    assert got.tolist() == [[[1, 0], [0, 1]], [[0, 1], [0, 0]]]
    for above in (True, jnp.array(1), np.int8(1)):
        np.testing.assert_array_equal(jnp.eye(3, k=above), np.eye(3, k=1))
    for bad in (1.0, [1, 2], True):
        with pytest.raises(ValueError, match=r"eye: k must be a scalar integer; got .*\["):
            jax.jit(lambda k: jnp.eye(3, k=k))(np.array(bad))


def test_arrays_of_one_number_share_nothing():
    overwrite = jax.jit(lambda x: x.at[0].set(5), donate_argnums=0)
    for shape in ((4,), (16,), (32, 32)):
        for make in (jnp.zeros, jnp.ones, lambda shape: jnp.full(shape, 2.5)):
            want = np.asarray(make(shape)).copy()
            overwrite(make(shape))
            np.testing.assert_array_equal(make(shape), want)


def test_arrays_of_equal_numbers_of_different_kinds():
    for value in (0.0, -0.0, True, 1, 1.0, 2, 2.0, 0, False, 1 + 0j, complex(1, -0.0)):
        for dtype in (None, "complex64") if type(value) is complex else (None, "float32"):
            got = np.asarray(jnp.full(3, value, dtype))
            want = np.full(3, value, got.dtype)
            assert got.tobytes() == want.tobytes(), value
    assert jnp.full(2, 1).dtype == "int32" and jnp.full(2, 1.0).dtype == "float32"
    assert np.isnan(jnp.full(2, float("nan"))).all()


@pytest.mark.parametrize(("name", "args"), [
    ("tril_indices", (2.5,)), ("triu_indices", (2, 0, 2.5)), ("tri", ("a",)),
    ("indices", ((2.5,),))])
def test_sizes_that_are_no_integers(name, args):
    with pytest.raises(TypeError, match=f"^{name}: shape: Shapes must be 1D sequences"):
        getattr(jnp, name)(*args)


class Two:
    def __index__(self):
        return 2


def test_integers_by_index_are_shapes():
    assert jnp.ones(Two()).shape == jnp.zeros((Two(),)).shape == (2,)
    assert jnp.full(Two(), 1.0).shape == jnp.broadcast_to(1, Two()).shape == (2,)
    assert jnp.zeros(np.array(2)).shape == jnp.broadcast_to(1, np.array(2, "u1")).shape == (2,)


@pytest.mark.parametrize("value", [
    np.array([1, "2.0"], object), np.array(["1", "2"]), ["1", "2"], [fractions.Fraction(1), 2],
    np.array([fractions.Fraction(1), jnp.array(2)], object)])
def test_a_dtype_makes_numbers_of_objects_and_texts(value):
    for make in (jnp.array, jnp.asarray):
        check(make(value, dtype="float32"), [1.0, 2.0], "float32")
        with pytest.raises(TypeError, match="not a valid JAX"):
            make(value)
    with pytest.raises(ValueError, match="could not convert string to float"):
        jnp.array(["a"], dtype="float32")
    check(jnp.float32(fractions.Fraction(1, 2)), 0.5, "float32")


def test_masked_arrays():
    masked = np.ma.masked_array(np.arange(3), mask=[0, 1, 0])
    with pytest.raises(ValueError, match="masked arrays are not supported as direct inputs"):
        jnp.asarray(masked)
    check(jnp.array(masked), [0, 1, 2], "int32")
    check(jnp.asarray(masked, dtype="float32"), [0.0, 1.0, 2.0], "float32")


def test_files_of_what_is_no_array(tmp_path):
    np.save(tmp_path / "texts.npy", np.array(["a"]))
    assert jnp.load(tmp_path / "texts.npy").tolist() == ["a"]
    jnp.save(tmp_path / "f8.npy", jnp.ones(2, "float8_e4m3fn"))
    read = jnp.load(tmp_path / "f8.npy")
    assert read.view(ml_dtypes.float8_e4m3fn).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("key", [
    (), np.s_[:], np.s_[:3], np.s_[2:], np.s_[::2], np.s_[-3:], np.s_[1.0:], np.s_[3::-1],
    np.s_[0:1:3j], np.s_[1:4:2]], ids=str)
def test_grids_of_open_slices(key):
    for name in ("mgrid", "ogrid"):
        got, want = getattr(jnp, name)[key], getattr(np, name)[key]
        if isinstance(got, list):
            assert got == list(want) == []
            continue
        assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
        np.testing.assert_array_equal(got, want)
    if key != ():
        np.testing.assert_array_equal(jnp.r_[key], np.r_[key])
    assert jnp.mgrid[:, :2].shape == (2, 0, 2)


def test_diagonals_beyond_the_dtype_of_indices():
    ones = jnp.ones((2, 2))
    for k in (2**33, -(2**33)):
        for call in (lambda k=k: jnp.tri(3, k=k), lambda k=k: jnp.tril(ones, k),
                     lambda k=k: jnp.triu(ones, k), lambda k=k: jnp.tril_indices(2, k),
                     lambda k=k: jnp.triu_indices(2, k), lambda k=k: jnp.trace(ones, k)):
            with pytest.raises(OverflowError, match="too large to convert to int32"):
                call()
    with jax.enable_x64(True):
        assert jnp.tril(ones, 2**33).sum() == 4
    for dtype in ("float32", "int8", "bfloat16"):
        for k in (-(2**100), 2**100):
            assert not jnp.eye(4, 3, k, dtype).any()
            assert not jax.jit(lambda k=k, d=dtype: jnp.eye(4, 3, k, d))().any()
            assert jnp.eye(0, 1, k, dtype).shape == (0, 1)


def test_sizes_of_sequences_and_axes():
    x = np.zeros((2, 3, 4))
    for axis in ((0, 0), (1, -2)):
        with pytest.raises(ValueError, match="duplicate"):
            jnp.size(x, axis)
    assert jnp.size(x, (0, 2)) == 8 and jnp.size(x, np.int32(1)) == 3 and jnp.size(x, ()) == 1
    for function, value, times in ((jnp.ndim, 1, 1), (jnp.shape, (3,), 1), (jnp.size, 3, 2)):
        with pytest.warns(DeprecationWarning, match="requires ndarray or scalar") as found:
            assert function([1, 2, 3]) == value
        assert len(found) == times
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function(5), function("text"), function(np.array(["text"]))


@pytest.mark.parametrize("level", ["disallow", "disallow_explicit"])
@pytest.mark.parametrize("stop", [4, 4.0, 3.5, -1, np.int32(4), np.float32(4)])
def test_a_range_moves_nothing(level, stop):
    with jax.transfer_guard(level):
        out = jnp.arange(stop)
        jnp.arange(stop, dtype="int8")
        jnp.diag_indices(3)
    np.testing.assert_array_equal(out, np.arange(stop))
    assert out.dtype == jnp.arange(stop).dtype


@jax.tree_util.register_pytree_node_class
class Boxed:
    """A node of trees that stands for an array."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@pytest.mark.parametrize(("make", "want"), [
    (lambda x: [x, x], [2, 2]), (lambda x: ([x, x], [x, x]), [[2, 2], [2, 2]]),
    (lambda x: [x, 3], [2, 3]), (lambda x: [Boxed(jnp.arange(2)), [x, x]], [[0, 1], [2, 2]])])
def test_nested_sequences_of_nodes_that_stand_for_arrays(make, want):
    for dtype in (None, "float32"):
        out = jnp.array(make(Boxed(jnp.asarray(2))), dtype)
        np.testing.assert_array_equal(out, want)
        assert out.dtype == (dtype or "int32")
        np.testing.assert_array_equal(
            jax.jit(lambda x: jnp.asarray(make(Boxed(x)), dtype))(2), want)  # noqa: B023


def test_what_stands_for_a_complex_array_is_complex():
    z = Boxed(jnp.array([1 + 2j]))
    assert jnp.iscomplexobj(z) and not jnp.isrealobj(z)
    assert jnp.isrealobj(Boxed(jnp.ones(1)))
