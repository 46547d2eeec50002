"""Reductions against NumPy; dtypes, masks, errors, derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.numpy.agreement import agrees, bools, complexes, floats, ints

x, i, b, c = floats(3, 4), ints(3, 4), bools(3, 4), complexes(3, 4)
mask = bools(3, 4)
nan = np.where(np.eye(3, 4), np.nan, x).astype(np.float32)
nan[0] = [1, np.nan, 2, 3]
nan[:, 0] = [1, 2, np.nan]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "ptp", "amax", "amin"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (1,)])
def test_over_axes(name, axis):
    agrees(name, x, axis=axis)
    agrees(name, x, axis=axis, keepdims=True)
    agrees(name, i, axis=axis)


@pytest.mark.parametrize("name", ["any", "all", "count_nonzero"])
def test_logic(name):
    for values in (b, i, x, np.zeros((0, 3), np.float32)):
        agrees(name, values)
        agrees(name, values, axis=1, keepdims=True)


def test_an_axis_may_be_a_list_or_a_numpy_integer():
    assert float(jnp.sum(x, axis=[0, 1])) == pytest.approx(float(x.sum()), rel=1e-5)
    assert jnp.sum(x, axis=np.int64(1)).shape == (3,)


@pytest.mark.parametrize("name, values", [("sum", x), ("prod", i), ("mean", x)])
def test_masks(name, values):
    agrees(name, values, axis=0, where=np.array([[True], [False], [True]]))
    agrees(name, values, where=mask)


def test_extrema_with_a_mask_need_an_initial_value():
    agrees("max", x, where=mask, initial=-9.0)
    agrees("min", i, axis=1, where=mask, initial=9)
    with pytest.raises(ValueError, match="reduction operation max does not have an identity"):
        jnp.max(x, where=mask)
    with pytest.raises(ValueError, match="zero-size array to reduction operation min"):
        jnp.min(np.zeros((0, 3), np.float32))


def test_initial_values():
    agrees("sum", x, initial=2.0)
    agrees("prod", x, axis=0, initial=2.0)
    agrees("max", x, axis=0, initial=0.0)
    with pytest.raises(ValueError, match="initial value must be a scalar"):
        jnp.sum(x, initial=jnp.ones(2))


@pytest.mark.parametrize("given, result", [
    ("bool", "int32"), ("int8", "int32"), ("uint8", "uint32"), ("int32", "int32"),
    ("float16", "float16"), ("bfloat16", "bfloat16"), ("float32", "float32"),
    ("complex64", "complex64"),
])
def test_dtypes_of_sums(given, result):
    values = jnp.ones((2, 3), given)
    assert jnp.sum(values).dtype == result
    assert jnp.prod(values, axis=0).dtype == result


def test_other_dtypes():
    half = jnp.full((4096,), 0.01, jnp.bfloat16)
    assert float(jnp.sum(half)) == pytest.approx(41, abs=0.5)  # summed in float32
    assert jnp.mean(i).dtype == jnp.float32
    assert jnp.mean(half).dtype == jnp.bfloat16
    assert jnp.sum(x, dtype=jnp.float16).dtype == jnp.float16
    assert jnp.sum(jnp.ones(3, jnp.int8), promote_integers=False).dtype == jnp.int8
    assert not jnp.sum(1.0).weak_type


def test_positions():
    for name in ("argmax", "argmin"):
        for values in (x, i, b):
            agrees(name, values)
            agrees(name, values, axis=1)
            agrees(name, values, axis=0, keepdims=True)
    assert int(jnp.argmax(nan[1])) == int(np.argmax(nan[1]))
    with pytest.raises(ValueError, match="attempt to get argmax of an empty sequence"):
        jnp.argmax(jnp.zeros((0,)))


def test_running_sums():
    for name in ("cumsum", "cumprod"):
        agrees(name, x, axis=1)
        agrees(name, x)
        agrees(name, i, axis=0)
    agrees("cumulative_sum", x, axis=0, include_initial=True,
           reference=lambda x, **_: np.concatenate([np.zeros((1, 4)), np.cumsum(x, 0)]))
    with pytest.raises(ValueError, match="axis was not set"):
        jnp.cumulative_sum(x)
    assert jnp.cumsum(b, 0).dtype == jnp.int32


def test_minmax():
    low, high = jnp.minmax(x, axis=0)
    np.testing.assert_array_equal(low, x.min(0))
    np.testing.assert_array_equal(high, x.max(0))


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar",
                                  "nanstd"])
def test_without_nan(name):
    agrees(name, nan)
    agrees(name, nan, axis=0)
    agrees(name, nan, axis=1, keepdims=True)
    agrees(name, i, axis=1)


def test_without_nan_other():
    agrees("nancumsum", nan, axis=1)
    agrees("nancumprod", nan)
    agrees("nanargmax", nan, axis=1)
    agrees("nanargmin", nan)
    assert np.isnan(jnp.nanmax(jnp.full(2, jnp.nan)))
    assert int(jnp.nanargmax(jnp.full(2, jnp.nan))) == -1


@pytest.mark.parametrize("call, error, message", [
    (lambda: jnp.sum([1, 2]), TypeError, "sum requires ndarray or scalar arguments, got"),
    (lambda: jnp.sum(x, axis=2), ValueError, "axis 2 is out of bounds for array of dimension 2"),
    (lambda: jnp.sum(x, axis=(0, 0)), ValueError, "duplicate value in 'axis'"),
    (lambda: jnp.sum(x, out=x), NotImplementedError, "The 'out' argument to jnp.sum"),
    (lambda: jnp.sum(x, where=x), ValueError, "where must be None or a boolean array"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_derivatives():
    grad = jax.grad(lambda x: jnp.sum(jnp.mean(x, 0) ** 2))(x)
    np.testing.assert_allclose(grad, np.broadcast_to(2 * x.mean(0) / 3, (3, 4)), rtol=1e-5)
    grad = jax.grad(lambda x: jnp.max(x))(x)
    np.testing.assert_array_equal(grad, x == x.max())
    grad = jax.grad(jnp.prod)(np.array([2.0, 0.0, 3.0], np.float32))
    np.testing.assert_allclose(grad, [0, 6, 0])


def test_vmap():
    np.testing.assert_allclose(jax.vmap(jnp.sum)(x), x.sum(1), rtol=1e-5)
    np.testing.assert_array_equal(jax.vmap(jnp.argmax, in_axes=1)(x), x.argmax(0))


def test_jaxprs_are_flat():
    text = str(jax.make_jaxpr(lambda x, m: jnp.mean(x, where=m) + jnp.max(x))(x, mask))
    assert "jit" not in text
    assert str(jax.make_jaxpr(lambda x: jnp.sum(x, axis=1))(x)) == (
        "{ lambda ; a:f32[3,4]. let\n"
        "    b:f32[3] = reduce_sum[axes=(1,) out_sharding=None] a\n"
        "  in (b,) }")


@pytest.mark.parametrize(("name", "values", "expected"), [
    ("sum", [1, -1], True), ("sum", [], False), ("prod", [2.0, 0.5], True), ("prod", [2, 0], False),
    ("cumsum", [0, -1, 0], [False, True, True]), ("cumprod", [0.5, 0.0], [True, False]),
    ("nansum", [1.0, -1.0], True), ("cumulative_prod", [1j, 0], [True, False]),
])
def test_sums_and_products_as_booleans(name, values, expected):
    got = getattr(jnp, name)(jnp.array(values), dtype=bool)
    assert got.dtype == np.bool_ and got.tolist() == expected


def test_trace_and_initial_as_booleans():
    assert jnp.trace(jnp.eye(2), dtype=bool).tolist() is True
    assert jnp.sum(jnp.zeros(2), dtype=bool, initial=True).tolist() is True
    assert jnp.prod(jnp.ones(2), dtype=bool, initial=False).tolist() is False


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_of_scalars_have_no_axis(name):
    with pytest.raises(ValueError, match="out of bounds"):
        getattr(jnp, name)(jnp.array(1.0), axis=0)
    assert getattr(jnp, name)(jnp.array(1.0), axis=()) == 1.0


def test_sums_of_int32_are_int64_under_x64():
    with jax.enable_x64(True):
        x = jnp.array([1, 2], "int32")
        assert jnp.sum(x).dtype == jax.jit(jnp.sum)(x).dtype == np.int64
        assert jnp.sum(x.astype("uint32")).dtype == np.uint64


def test_the_dtype_of_a_running_sum_may_be_a_class():
    with pytest.raises(ValueError, match="non-scalar"):
        jnp.cumulative_sum(jnp.array(1.0), dtype=np.float32)


@pytest.mark.parametrize("call", [
    lambda x: jnp.mean(x, axis=1), lambda x: jnp.std(x, axis=-2), lambda x: jnp.argmax(x, axis=1),
    lambda x: jnp.sum(x, axis=(0, 1)), lambda x: jnp.split(x, 2, axis=1),
    lambda x: jnp.swapaxes(x, 0, 1), lambda x: jnp.take(x, 0, 1), lambda x: jnp.sort(x, 1),
    lambda x: jnp.linspace(x, x, 3, axis=2), lambda x: jax.lax.slice_in_dim(x, 0, 1, axis=1),
])
def test_an_axis_out_of_bounds_is_both_errors(call):
    for error in (ValueError, IndexError, np.exceptions.AxisError):
        with pytest.raises(error, match="is out of bounds for array of dimension"):
            call(jnp.ones(2))


def test_sums_of_short_integers_under_strict_promotion():
    x = jnp.ones(3, "int8")
    with jax.numpy_dtype_promotion("strict"):
        assert jnp.sum(x).dtype == jnp.prod(x).dtype == np.int32
        assert jnp.cumulative_sum(x).dtype == np.int32
        assert jnp.sum(x.astype("uint8")).dtype == np.uint32
        assert jnp.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
        with pytest.raises(jax.dtypes.TypePromotionError):
            jnp.linspace(jnp.ones(1), jnp.ones(1, int), 3)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_masks_with_more_axes_than_the_array(name):
    with pytest.raises(ValueError, match="Cannot broadcast to shape with fewer dimensions"):
        getattr(jnp, name)(1.5, where=jnp.array([True, False]))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_running_sums_of_scalars(name):
    accumulate = getattr(jnp, name)
    assert accumulate(2, axis=0).tolist() == [2]  # of weak type: an array of one number
    assert accumulate(jnp.float32(2)).tolist() == [2]
    with pytest.raises(ValueError, match="axis -1 is out of bounds for array of dimension 0"):
        accumulate(jnp.float32(2), axis=-1)


# -- named axes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "var", "std", "ptp", "all", "any",
                                  "nansum", "nanmean", "nanvar", "nanmax", "count_nonzero"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_over_named_axes(name, wrap):
    x = np.random.default_rng(0).normal(size=(3, 2, 4)).astype(np.float32)
    x[0] = x[0] * (x[0] > 0)
    if name.startswith("nan"):
        x[1, 0] = np.nan
    fun = getattr(jnp, name)
    for axis, places in (("i", 0), (["i"], 0), (("i", 0), (0, 1)), ((-1, 0, "i"), None)):
        got = jax.vmap(wrap(lambda x, axis=axis: fun(x, axis=axis)), axis_name="i")(x)
        want = getattr(np, name)(x, axis=places, keepdims=True)
        np.testing.assert_allclose(got, np.broadcast_to(want, (3, *want.shape[1:])).reshape(
            got.shape), rtol=1e-4, atol=1e-6)
        kept = jax.vmap(lambda x, axis=axis: fun(x, axis=axis, keepdims=True), axis_name="i")(x)
        assert kept.shape == (3, *want.shape[1:])


def test_named_axes_with_other_arguments():
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)

    def over(fun, **kwargs):
        return jax.vmap(lambda x: fun(x, axis=("i", 0), **kwargs), axis_name="i")(x)[0]

    def positive(fun, **kwargs):
        return jax.vmap(lambda x: fun(x, axis=("i", 0), where=x > 0, **kwargs), axis_name="i")(x)[0]

    np.testing.assert_allclose(over(jnp.sum, initial=10.0), x.sum() + 10, rtol=1e-5)
    np.testing.assert_allclose(over(jnp.var, ddof=1), x.var(ddof=1), rtol=1e-5)
    np.testing.assert_allclose(positive(jnp.sum), x[x > 0].sum(), rtol=1e-5)
    np.testing.assert_allclose(positive(jnp.mean), x[x > 0].mean(), rtol=1e-5)
    np.testing.assert_allclose(positive(jnp.var), x[x > 0].var(), rtol=1e-5)
    np.testing.assert_allclose(positive(jnp.min, initial=9.0), x[x > 0].min(), rtol=1e-5)
    assert over(jnp.sum, dtype=jnp.float16).dtype == np.float16
    bits = jax.vmap(lambda x: jnp.sum(x, "i"), axis_name="i")(np.full((3, 2), 100, np.int8))
    assert bits.dtype == np.int32 and bits.tolist() == [[300, 300]] * 3
    constant = jax.vmap(lambda x: jnp.mean(jnp.ones(2), "i") + jnp.sum(2.0, "i"), axis_name="i")
    assert constant(x).tolist() == [[7.0, 7.0]] * 3
    assert jax.vmap(lambda x: x.sum("i"), axis_name="i")(x).shape == (3, 4)


def test_named_axes_that_are_refused():
    x = np.ones((3, 4), np.float32)
    with pytest.raises(NameError, match="unbound axis name: i"):
        jnp.sum(x, axis="i")
    with pytest.raises(NameError, match="unbound axis name: i"):
        jax.jit(lambda x: jnp.mean(x, axis=(0, "i")))(x)
    with pytest.raises(NotImplementedError, match="all_gather"):
        jax.vmap(lambda x: jnp.prod(x, axis="i"), axis_name="i")(x)
    with pytest.raises(ValueError, match="duplicate"):
        jax.vmap(lambda x: jnp.sum(x, axis=("i", "i")), axis_name="i")(x)


def test_running_sums_without_nan_of_a_scalar_have_an_axis():
    for axis in (None, 0, -1):
        for function, want in ((jnp.nancumsum, 0), (jnp.nancumprod, 1)):
            got = function(float("nan"), axis=axis)
            assert got.shape == (1,) and got[0] == want
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        jnp.nancumprod(2.0, axis=1)


@pytest.mark.parametrize("initial", [np.inf, -np.inf, np.nan, 3.4e38, -1.7])
@pytest.mark.parametrize("name", ["min", "max", "nanmin", "prod"])
def test_initial_floats_of_integers_are_the_same_traced(name, initial):
    x = jnp.array([[1, -3]], "int8")

    def reduced(x):
        return getattr(jnp, name)(x, initial=float(initial))

    want = reduced(x[0])
    assert jax.vmap(reduced)(x)[0] == want == jax.jit(reduced)(x[0])


@pytest.mark.parametrize("flag", [[True], np.ones(7), ["a", "b"]])
def test_several_values_are_no_flag(flag: object) -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    with pytest.raises(TypeError, match="sum: keepdims must be True or False, got"):
        jnp.sum(x, 0, keepdims=flag)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cumulative_sum: include_initial must be True or False"):
        jnp.cumulative_sum(x[0], include_initial=flag)  # type: ignore[arg-type]
    assert jnp.sum(x, keepdims=np.array(True)).shape == (1, 1)  # type: ignore[arg-type]
