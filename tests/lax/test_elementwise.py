"""Errors on bad input and special cases of the elementwise operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax

F32 = np.ones(3, np.float32)
C64 = np.ones(3, np.complex64)
I32 = np.ones(3, np.int32)
BOOL = np.ones(3, bool)


@pytest.mark.parametrize("fun, args, error, text", [
    (lax.add, (F32, I32), TypeError,
     "lax.add requires arguments to have the same dtypes, got float32, int32. (Tip: jnp.add is a "
     "similar function that does automatic type promotion on inputs)."),
    (lax.sub, (F32, 2), TypeError, "(Tip: jnp.subtract is"),
    (lax.rem, (F32, I32), TypeError,
     "lax.rem requires arguments to have the same dtypes, got float32, int32."),
    (lax.add, (F32, np.ones(4, np.float32)), TypeError,
     "add got incompatible shapes for broadcasting: (3,), (4,)."),
    (lax.add, (BOOL, BOOL), TypeError,
     "add does not accept dtype bool at position 0. Accepted dtypes at position 0 are subtypes of "
     "integer, floating, complexfloating."),
    (lax.sin, (I32,), TypeError,
     "sin does not accept dtype int32. Accepted dtypes are subtypes of floating, "
     "complexfloating."),
    (lax.sin, ("a",), TypeError,
     "Error interpreting argument to sin as a JAX value. The problematic value is of type "
     "<class 'str'> and was passed to sin at position 0."),
    (lax.add, (F32, [1.0, 2.0]), TypeError, "was passed to add at position 1."),
    (lax.floor, (C64,), TypeError, "floor does not accept dtype complex64."),
    (lax.abs, (np.ones(3, np.uint8),), TypeError, "abs does not accept dtype uint8."),
    (lax.neg, (BOOL,), TypeError, "neg does not accept dtype bool."),
    (lax.gt, (C64, C64), TypeError, "gt does not accept dtype complex64 at position 0."),
    (lax.bitwise_not, (F32,), TypeError,
     "not does not accept dtype float32. Accepted dtypes are subtypes of integer, bool."),
    (lax.real, (F32,), TypeError, "real does not accept dtype float32."),
    (lax.complex, (F32.astype(np.float16),) * 2, TypeError,
     "complex does not accept dtype float16 at position 0. Accepted dtypes at position 0 are "
     "subtypes of float32, float64."),
    (lax.pow, (I32, I32), TypeError, "pow does not accept dtype int32 at position 0."),
    (lax.pow, (F32, F32.astype(np.float16)), TypeError,
     "two inexact dtypes must match, but got float32 and float16 respectively."),
    (lax.integer_pow, (I32, -2), TypeError,
     "Integers cannot be raised to negative powers, got integer_pow(int32[3], -2)"),
    (lax.integer_pow, (F32, 2.5), TypeError, "'float' object cannot be interpreted as an integer"),
    (lax.round, (F32, 3), ValueError, "3 is not a valid RoundingMethod"),
    (lax.reduce_precision, (F32, 0, 3), ValueError,
     "reduce_precision: exponent_bits must be positive; got 0"),
    (lax.reduce_precision, (F32, 1, -3), ValueError,
     "reduce_precision: mantissa_bits must be non-negative; got -3"),
    (lax.clamp, (np.ones(1, np.float32), F32, F32), TypeError,
     "clamp requires min.shape == operand.shape or min.shape == (), got min.shape=(1,), "
     "operand.shape=(3,)."),
    (lax.clamp, (I32, F32, F32), TypeError,
     "lax.clamp requires arguments to have the same dtypes, got int32, float32, float32."),
    (lax.select_n, (BOOL,), ValueError, "select_n() must have at least one case"),
    (lax.select_n, (F32, F32), TypeError,
     "select `which` must be boolean or integer type, got float32."),
    (lax.select_n, (BOOL, F32, F32, F32), TypeError,
     "select with boolean `which` cannot have > 2 cases."),
    (lax.select_n, (BOOL, F32, np.ones(4, np.float32)), TypeError,
     "select cases must have the same shapes, got [(3,), (4,)]."),
    (lax.select_n, (np.ones(4, bool), F32, F32), TypeError,
     "select `which` must be scalar or have the same shape as cases, got `which` shape (4,) but "
     "case shape (3,)."),
    (lax.select, (BOOL, F32, I32), TypeError, "lax.select requires arguments to have the same"),
    (lax.full, ((2,), np.ones(2)), TypeError,
     "full must be called with scalar fill_value, got fill_value.shape (2,)."),
    (lax.full, ((-2,), 1.0), TypeError, "must have every element be nonnegative, got (-2,)."),
    (lax.full, ((2.5,), 1.0), TypeError,
     "Shapes must be 1D sequences of concrete values of integer type, got (2.5,)."),
    (lax.convert_element_type, (F32, "foo"), TypeError, "data type 'foo' not understood"),
    (lax.convert_element_type, (F32, None), ValueError, "dtype must be specified"),
    (lax.exp, (F32,), NotImplementedError, "accuracy must be None"),
])
def test_errors(fun: Any, args: Any, error: Any, text: str) -> None:
    options = {"accuracy": 3} if fun is lax.exp else {}
    with pytest.raises(error) as caught:
        fun(*args, **options)
    assert text in str(caught.value)


@pytest.mark.parametrize("x", [list(range(100_000)), "a" * 100_000, np.array(["a"])],
                         ids=["list", "text", "array"])
def test_a_value_that_is_no_array_is_shown_cut_and_its_type_once(x: Any) -> None:
    with pytest.raises(TypeError, match=r"is not a valid JAX (array )?type") as caught:
        lax.sin(x)
    text = str(caught.value)
    assert len(text) < 400 and text.count(str(type(x))) == 1


def test_weak_types() -> None:
    one = np.float32(1)
    assert lax.add(2.0, 3.0).weak_type and not lax.add(one, 3.0).weak_type
    assert lax.neg(2.0).weak_type and lax.complex(1.0, 2.0).weak_type
    assert lax.full((2,), 1.0).weak_type and not lax.full((2,), 1.0, np.float32).weak_type
    assert lax.full_like(1.0, 1).weak_type and not lax.full_like(one, 1).weak_type
    assert not lax.convert_element_type(2, float).weak_type
    assert lax.eq(1.0, 2.0).weak_type and not lax.eq(one, 2.0).weak_type
    assert lax.is_finite(1.0).weak_type
    assert lax.pow(2.0, 2).weak_type and not lax.pow(one, 2).weak_type
    assert not lax.pow(2.0, np.int32(2)).weak_type and not lax.pow(2.0, one).weak_type
    assert lax.select(True, 1.0, 2.0).weak_type


@pytest.mark.parametrize("x", [np.ones(2), jax.ShapeDtypeStruct((2,), np.dtype("float64"))])
def test_full_like_narrows_a_dtype_that_nobody_asked_for(x: Any) -> None:
    assert lax.full_like(x, 0).dtype == "float32"  # and does not warn


def test_full_like_keeps_weak_half_precision() -> None:
    half = lax.convert_element_type_p.bind(1.0, new_dtype=np.dtype("float16"), weak_type=True,
                                           sharding=None)
    out = lax.full_like(half, 2)
    assert out.dtype == np.float16 and out.weak_type and float(out) == 2.0


@pytest.mark.parametrize("value, dtype, want", [
    (-1, np.uint8, 255), (3.7, np.int32, 3), (2, np.bool_, True), (1, np.complex64, 1 + 0j),
])
def test_full_converts(value: Any, dtype: Any, want: Any) -> None:
    out = lax.full((2,), value, dtype)
    assert out.dtype == dtype and np.asarray(out)[0] == want


def test_conversion_of_complex_warns() -> None:
    with pytest.warns(np.exceptions.ComplexWarning):
        assert float(lax.convert_element_type(1 + 2j, np.float32)) == 1.0


@pytest.mark.parametrize("fun, text", [
    (lambda x: lax.add(x, 1.0), "add a 1.0:f32[]"),
    (lambda x: lax.exp(x), "exp a"),
    (lambda x: lax.mul(x, x), "mul a a"),
    (lambda x: lax.integer_pow(x, 3), "integer_pow[y=3] a"),
    (lambda x: lax.round(x), "round[rounding_method=0] a"),
    (lambda x: lax.convert_element_type(x, np.int32),
     "convert_element_type[new_dtype=int32 weak_type=False] a"),
    (lambda x: lax.reduce_precision(x, 5, 3),
     "reduce_precision[exponent_bits=5 mantissa_bits=3] a"),
    (lambda x: lax.conj(x), "conj[input_dtype=float32] a"),
    (lambda x: lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST), "exp[accuracy=AccuracyMode.HIGHEST]"),
    (lambda x: lax.reciprocal(x), "integer_pow[y=-1] a"),
    (lambda x: lax.full_like(x, 1), "broadcast_in_dim 1.0:f32[]"),
    (lambda x: lax.stop_gradient(x), "stop_gradient a"),
])
def test_printed(fun: Any, text: str) -> None:
    assert text in str(jax.make_jaxpr(fun)(F32))


@pytest.mark.parametrize("fun, x, want", [
    (lax.abs, 0.0, 1.0), (lax.asinh, 1e30, 1e-30), (lax.square, 3.0, 6.0),
    (lambda x: lax.pow(x, 0.0), 0.0, np.nan), (lambda x: lax.pow(x, 0.0), 2.0, 0.0),
    (lambda x: lax.pow(0.0, x), -1.0, np.nan), (lambda x: lax.pow(0.0, x), 0.0, 0.0),
    (lambda x: lax.pow(x, np.zeros((), np.int32)), 0.0, 0.0), (lambda x: lax.pow(x, 1), 0.0, 1.0),
    (lambda x: lax.max(x, 1.0), 1.0, 0.5), (lambda x: lax.pow(x, 2), 0.0, 0.0),
    (lambda x: lax.clamp(0.0, x, 2.0), 3.0, 0.0),
    (lax.floor, 1.5, 0.0), (lambda x: lax.rem(x, 2.0), 3.0, 1.0), (lax.bessel_i1e, 0.0, 0.5),
    (lambda x: lax.mul(lax.stop_gradient(x), x), 3.0, 3.0), (lax.tanh, 0.0, 1.0),
])
def test_derivatives_at_special_points(fun: Any, x: float, want: float) -> None:
    np.testing.assert_allclose(jax.grad(fun)(np.float32(x)), want, rtol=1e-6)


@pytest.mark.parametrize("fun, args, argnum", [
    (lax.betainc, (1.0, 2.0, 0.5), 0), (lax.polygamma, (1.0, 2.0), 0),
    (lax.igamma_grad_a, (1.0, 2.0), 0),
])
def test_no_derivative(fun: Any, args: Any, argnum: int) -> None:
    with pytest.raises(ValueError, match="not supported"):
        jax.grad(fun, argnum)(*args)


@pytest.mark.parametrize("fun, count", [
    (lax.betainc, 3), (lax.igamma, 2), (lax.igammac, 2), (lax.igamma_grad_a, 2),
    (lax.random_gamma_grad, 2),
])
def test_numbers_beside_arrays(fun: Any, count: int) -> None:
    for i in range(count):
        found = fun(*[np.full(2, 0.5, np.float32) if j == i else 1.0 for j in range(count)])
        want = fun(*[0.5 if j == i else 1.0 for j in range(count)])
        np.testing.assert_allclose(found, [want, want], rtol=1e-6)


@pytest.mark.parametrize("a, x, want", [
    # from scipy.special: differences of gammaincinv(a, p) at p = gammainc(a, x)
    (1e5, 1e5, 1.0000016667), (1e6, 0.99e6, 0.9949834153), (1e5, 1.01e5, 1.0049850911),
    (1e9, 1e9, 1.0000000002), (3e38, 1.0, np.log(3e38) / 3e38), (1e20, 3e20, np.log(3.0) * 1.5),
])
def test_derivatives_of_samples_for_large_shapes(a: float, x: float, want: float) -> None:
    for dtype in (np.float32, np.float64):
        with jax.enable_x64(dtype is np.float64):
            found = lax.random_gamma_grad(dtype(a), dtype(x))
        np.testing.assert_allclose(found, want, rtol=1e-5 if dtype is np.float32 else 2e-8)


@pytest.mark.parametrize("a, x", [
    (1.5, 0.7), (0.3, 1e-8), (5.0, 30.0), (40.0, 35.0), (1e3, 990.0), (1e5, 1e5), (1e6, 0.4e6),
])
def test_second_derivatives_of_samples(a: float, x: float) -> None:
    fun = lax.random_gamma_grad
    with jax.enable_x64(True):
        found = jax.grad(fun, (0, 1))(a, x)
        step = 1e-4
        want = [float(fun(a + step * a, x) - fun(a - step * a, x)) / (2 * step * a),
                float(fun(a, x + step * x) - fun(a, x - step * x)) / (2 * step * x)]
        pushed = jax.jvp(fun, (a, x), (1.0, -1.0))[1]
    np.testing.assert_allclose(found, want, rtol=1e-4)
    np.testing.assert_allclose(pushed, want[0] - want[1], rtol=1e-4)
    single = jax.grad(fun, (0, 1))(np.float32(a), np.float32(x))
    np.testing.assert_allclose(single, want, rtol=2e-3)


def test_second_derivatives_of_many_samples() -> None:
    a, xs = np.float32(1.5), np.array([0.2, 0.7, 4.0], np.float32)
    each = [jax.jvp(lax.random_gamma_grad, (a, x), (a, x))[1] for x in xs]
    for first in (a, np.full(3, a)):  # numbers beside arrays, too
        found = jax.jvp(lax.random_gamma_grad, (first, xs), (first, xs))[1]
        np.testing.assert_allclose(found, each, rtol=1e-5)
        back = jax.grad(lambda v, x: lax.random_gamma_grad(v, x).sum())(first, xs)
        assert back.shape == np.shape(first)


def test_second_derivative_of_integer_pow() -> None:
    assert float(jax.grad(jax.grad(lambda x: lax.integer_pow(x, 3)))(2.0)) == 12.0


def test_stop_gradient_of_a_tree() -> None:
    def fun(x: Any) -> Any:
        held = lax.stop_gradient({"a": x, "b": (x,)})
        return lax.add(lax.mul(held["a"], x), held["b"][0])

    assert float(jax.grad(fun)(3.0)) == 3.0


def test_special_values() -> None:
    assert int(lax.div(7, 0)) == -1 and int(lax.rem(-7, 3)) == -1
    assert np.isnan(lax.max(np.float32(np.nan), 1.0)) and np.isnan(lax.log(-1.0))
    assert int(lax.shift_left(1, 40)) == 0 and int(lax.shift_right_arithmetic(-1, 40)) == -1
    assert complex(lax.max(1 + 2j, 1 + 3j)) == 1 + 3j
    assert int(lax.convert_element_type(np.float32(3e9), np.int32)) == 2**31 - 1


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_mulhi_of_64_bits(dtype: Any) -> None:
    with jax.enable_x64(True):
        info = np.iinfo(dtype)
        x = np.array([info.max, info.min, 12345678901234567, info.max // 3], dtype)
        y = np.array([info.max, info.max, 98765432109876543, 7], dtype)
        want = [(int(a) * int(b)) >> 64 for a, b in zip(x, y, strict=True)]
        assert lax.mulhi(x, y).tolist() == want


def test_tolerance() -> None:
    assert lax.Tolerance(rtol=1e-3) == lax.Tolerance(0.0, 1e-3)
    assert hash(lax.Tolerance(1.0)) == hash(lax.Tolerance(1.0))
    with pytest.raises(ValueError, match="Tolerances must be non-negative"):
        lax.Tolerance(-1.0)


def test_objects_that_convert_themselves() -> None:
    class Boxed:
        def __jax_array__(self) -> Any:
            return lax.full((2,), 1.0)

    assert lax.add(Boxed(), 1.0).tolist() == [2.0, 2.0]


def test_coefficients_of_polynomials_are_cast():
    half = np.array([2.0], np.float16)
    assert lax.polynomial(half, jnp.array([1.0, 2.0])).dtype == np.float16
    assert lax.polynomial(jnp.array([2]), jnp.array([1.5, 2.0])).tolist() == [5]
    assert lax.polynomial(jnp.asarray(2.0), [1, 2]).weak_type
    assert isinstance(lax.polynomial(2, []), jax.Array)
    with pytest.raises(ValueError, match="polynomial: unroll must not be negative, got -1"):
        lax.polynomial(2.0, [1.0, 2.0], unroll=-1)


def test_batched_second_derivatives_of_polynomials():
    got = jax.vmap(jax.hessian(lambda x: lax.polynomial(x, [1.0, 2.0, 3.0, 4.0])))(
        jnp.ones((2, 3)))
    assert got.shape == (2, 3, 3, 3) and float(got.sum()) == 180.0
    assert jax.vmap(jax.hessian(jnp.sinc))(jnp.ones((2, 3))).shape == (2, 3, 3, 3)


def test_polynomials_of_weak_arrays_are_strong() -> None:
    assert not lax.polynomial(jnp.broadcast_to(2.0, (2,)), [1.0, 2.0]).weak_type
    assert lax.polynomial(jnp.asarray(2.0), [1.0, 2.0]).weak_type


@pytest.mark.parametrize("name", [
    "square", "one_minus_square", "sqrt", "rsqrt", "cbrt", "reciprocal", "log2", "exp2", "tan",
    "atan", "erf_inv", "digamma",
])
def test_derivatives_by_weak_arrays_are_not_weak(name):
    function = getattr(jax.lax, name)
    for shape, weak in (((), True), ((2,), False)):
        x = jnp.broadcast_to(0.5, shape)
        assert x.weak_type
        assert jax.jvp(function, (x,), (x,))[1].weak_type == weak
        assert jax.grad(lambda x: jnp.sum(function(x)))(x).weak_type == weak


def test_derivatives_of_the_error_functions_are_never_weak():
    for function in (jax.lax.erf, jax.lax.erfc):
        assert not jax.grad(function)(0.5).weak_type


def test_a_quotient_is_differentiated_by_its_result():
    assert float(jax.grad(lambda y: 0.0 / y)(1e-30)) == 0.0  # its square is no float32
    _, pull_back = jax.vjp(lambda x, y: x / y, jnp.array([3.0, 8.0]), jnp.array([2.0, 4.0]))
    kept = sorted(np.asarray(x).tolist() for x in jax.tree.leaves(pull_back))
    assert kept == [[1.5, 2.0], [2.0, 4.0]]


def test_derivatives_of_powers_have_the_weak_types_of_what_they_are_by():
    def twice(function):
        return jax.grad(lambda x: np.float32(1) * jax.grad(function)(x))

    assert jax.jvp(lambda y: lax.pow(2.0, y), (3.0,), (1.0,))[1].weak_type is False
    assert jax.grad(lambda y: np.float32(1) * lax.pow(jnp.asarray(2.0), y))(3.0).weak_type
    assert twice(lambda x: x ** 0.5)(2.0).weak_type
    assert not twice(lambda x: x ** 0.5)(np.float32(2)).weak_type


@pytest.mark.parametrize("op", [lax.add, lax.max, lax.pow, lax.atan2, lax.eq, lax.igamma])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_arrays_have_one_rank(op, wrap):
    x, row = jnp.ones((2, 3)), jnp.ones(3)
    with pytest.raises(TypeError, match="arrays must have the same number of dimensions, got"):
        wrap(op)(x, row)
    assert wrap(op)(x, row[None]).shape == wrap(op)(x, jnp.float32(1)).shape == (2, 3)


@pytest.mark.parametrize(("value", "dtype", "want"), [
    (np.int64(2**40 + 3), "float32", 2.0**40), (np.uint64(2**63), "bfloat16", 2.0**63),
    (np.uint64(2**63), "bool", True), (np.int64(2**40 + 3), "int32", 3),
    (np.float64(2**24 + 1), "int32", 2**24 + 1), (np.float64(1e-300), "bool", True),
    (np.float64("nan"), "int32", 0), (np.float64("inf"), "int32", 2**31 - 1),
    (np.float64("-inf"), "uint8", 0), (np.float64(3e9), "int32", 2**31 - 1),
    (1e-300, "bool", True), (2.0**24 + 1, "int32", 2**24 + 1), (1e300, "int32", 2**31 - 1),
    (float("nan"), "int32", 0), (2**40 + 3, "float32", 2.0**40),
], ids=repr)
def test_values_of_the_host_are_converted_from_what_they_are(value, dtype, want) -> None:
    for x in (value,) if type(value) in (int, float) else (value, np.array(value)):
        for convert in (lax.convert_element_type, jax.jit(lambda x, dtype: (
                lax.convert_element_type(value, dtype)), static_argnums=1)):
            out = convert(x, dtype)
            assert out.dtype == dtype and out.item() == want and not out.weak_type
    if type(value) not in (int, float):
        assert lax.convert_element_type(np.array([value]), dtype).tolist() == [want]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_floats_beyond_64_bits_become_the_ends(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    with jax.enable_x64(True):
        for value in (2.0**63, 2.0**64, 1e300):
            want = min(int(value), limits.max)
            for given in (value, np.float64(value), np.array(value)):
                assert int(lax.full((), given, dtype)) == want
        assert int(lax.full((), np.float64(-1e300), dtype)) == limits.min


def test_wide_integers_in_programs_have_their_low_bits() -> None:
    for value in (np.int64(2**40 + 3), np.uint64(2**63 + 3), np.longlong(2**40 + 3)):
        assert int(jax.jit(lambda value=value: lax.add(value, value))()) == 6
        assert int(lax.add(value, value)) == 6


@pytest.mark.parametrize("wrap", [lambda f: f(), lambda f: jax.jit(f)()])
@pytest.mark.parametrize("kind", [np.int64, lambda value: np.array(value, np.uint64)])
def test_wide_integers_beside_floats_have_their_low_bits(kind, wrap) -> None:
    assert float(wrap(lambda: jnp.add(kind(2**40 + 3), 1.0))) == 4
    assert float(wrap(lambda: jnp.float32(2) * kind(2**40 + 3))) == 6
    assert float(wrap(lambda: jnp.sqrt(kind(2**40 + 4)))) == 2


@pytest.mark.parametrize(("value", "dtype", "want"), [
    (np.inf, "int32", 2**31 - 1), (-np.inf, "int8", -128), (np.nan, "int32", 0),
    (-1, "uint8", 0), (300, "uint8", 255), (-7.5, "int32", -7), (9, "int4", 7)])
@pytest.mark.parametrize("source", ["bfloat16", "float16", "float8_e5m2", "float64"])
def test_narrow_floats_of_the_host_become_the_ends(value, dtype, want, source) -> None:
    given = np.asarray(value, source)[()]
    if float(given) != value and not np.isnan(value):
        want = int(np.clip(float(given), jnp.iinfo(dtype).min, jnp.iinfo(dtype).max))
    assert int(lax.full((), given, dtype)) == want
    assert int(lax.convert_element_type(jnp.asarray(given), dtype)) == want


def test_complex_numbers_of_the_host_give_their_real_parts() -> None:
    with pytest.warns(np.exceptions.ComplexWarning, match="discards") as warned:
        assert int(lax.full((), np.complex128(np.inf + 1j), "int32")) == 2**31 - 1
    assert warned[0].filename == __file__
    assert bool(lax.full((), np.complex64(1j), bool))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_of_logistic_are_right_to_few_roundings(dtype):
    with jax.enable_x64(dtype == "float64"):
        x = np.linspace(-80, 80, 10_001).astype(dtype)
        slopes = jax.vmap(jax.grad(lax.logistic))(x)
        slope = jax.grad(lax.logistic)
        for end in (x.dtype.type(-np.inf), x.dtype.type(-1e4)):
            assert slope(end) == 0 == slope(-end)
            assert jax.jit(lambda end=end: slope(end))() == 0  # XLA's compiler computes it
    e = np.exp(-abs(x.astype(np.longdouble)))
    np.testing.assert_allclose(slopes, (e / (1 + e) ** 2).astype(dtype),
                               rtol=4 * np.finfo(dtype).eps)
