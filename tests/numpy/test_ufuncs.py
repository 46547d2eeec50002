"""Elementwise functions against NumPy: values, dtypes, broadcasting, errors."""

from __future__ import annotations

import contextlib
import re
import warnings

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp

FLOATS = np.array([-2.5, -1.5, -0.5, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 7.25, np.inf, -np.inf, np.nan],
                  np.float32)
POSITIVE = np.array([0.1, 0.5, 0.9, 1.0, 1.5, 3.25, np.inf], np.float32)
INSIDE = np.linspace(-0.99, 0.99, 7).astype(np.float32)
INTS = np.array([-7, -3, -1, 0, 1, 2, 5, 100], np.int32)
COMPLEX = np.array([1 + 2j, -1 + 0.5j, 0.5 - 1j], np.complex64)
MASK = np.array([True, False, True])


def words(text):
    return text.split()


def check(got, expected, rtol=2e-6, atol=1e-6):
    np.testing.assert_allclose(np.asarray(got, np.asarray(expected).dtype), expected, rtol, atol)


def numpy_result(name, *args):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(np, name)(*args)


UNARY = {
    FLOATS.tobytes(): "abs absolute ceil cbrt exp2 fabs floor isfinite isinf isnan isneginf "
    "isposinf negative positive rint sign signbit square trunc arctan sin cos tanh arcsinh deg2rad "
    "rad2deg real isreal iscomplex spacing",
    POSITIVE.tobytes(): "exp expm1 log log10 log1p log2 sqrt reciprocal sinh cosh tan",
    INSIDE.tobytes(): "arccos arcsin arctanh sinc i0",
}


@pytest.mark.parametrize(
    ("name", "x"), [(n, np.frombuffer(x, np.float32)) for x, names in UNARY.items()
                    for n in names.split()])
def test_unary_on_floats(name, x):
    if name in ("cbrt", "sin", "cos", "exp2"):
        x = x[np.isfinite(x)]
    if name == "spacing":  # NumPy takes -0.0 as positive
        x = x[(x != 0) | ~np.signbit(x)]
    got = getattr(jnp, name)(x)
    expected = numpy_result(name, x)
    assert got.dtype == expected.astype(got.dtype).dtype
    tolerance = 1e-45 if name == "spacing" else 1e-6
    check(got, expected, rtol=1e-5, atol=tolerance)


@pytest.mark.parametrize("name", words(
    "abs floor ceil trunc negative positive square sign invert real conj rint sqrt isfinite isnan "
    "logical_not bitwise_count"))
def test_unary_on_integers(name):
    x = np.abs(INTS) if name == "sqrt" else INTS
    got = getattr(jnp, name)(x)
    check(got, numpy_result(name, x))
    floats = {"rint", "sqrt"}
    kinds = {"isfinite": "b", "isnan": "b", "logical_not": "b", "bitwise_count": "u"}
    assert got.dtype.kind == ("f" if name in floats else kinds.get(name, "i"))


@pytest.mark.parametrize("name", words(
    "abs conj real imag exp log sqrt sin square negative isfinite isnan angle reciprocal log10 "
    "log2 rint sinc"))
def test_unary_on_complex(name):
    check(getattr(jnp, name)(COMPLEX), numpy_result(name, COMPLEX), rtol=2e-5)


@pytest.mark.parametrize(
    "name", words(
        "add subtract multiply divide true_divide floor_divide remainder mod fmod maximum minimum "
        "fmax fmin equal not_equal less less_equal greater greater_equal hypot arctan2 copysign "
        "nextafter heaviside logaddexp logaddexp2 logical_and logical_or logical_xor power "
        "float_power"))
def test_binary_on_floats(name):
    x = np.array([-2.5, -1.0, 0.0, 0.5, 1.5, 7.25, 3.0], np.float32)
    y = np.array([1.0, -2.0, 0.5, -3.0, 2.0, 2.5, np.inf], np.float32)
    if "power" in name:
        x = np.abs(x)
    got = getattr(jnp, name)(x, y)
    check(got, numpy_result(name, x, y), rtol=1e-5)
    column = getattr(jnp, name)(x[:, None], y[:2])
    check(column, numpy_result(name, x[:, None], y[:2]), rtol=1e-5)
    check(jax.jit(getattr(jnp, name))(x, y), numpy_result(name, x, y), rtol=1e-5)


@pytest.mark.parametrize(
    "name", words(
        "add subtract multiply divide floor_divide remainder fmod maximum minimum bitwise_and "
        "bitwise_or bitwise_xor left_shift right_shift gcd lcm power equal less"))
@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_binary_on_integers(name, dtype):
    x = np.array([7, 3, 1, 0, 20, 5], dtype)
    y = np.array([2, 3, 5, 1, 3, 2], dtype)
    if dtype == np.int32 and "shift" not in name and name != "power":
        x, y = x * [1, -1, 1, 1, -1, 1], y * [1, 1, -1, 1, -1, 1]
        x, y = x.astype(dtype), y.astype(dtype)
    got = getattr(jnp, name)(x, y)
    expected = numpy_result(name, x, y)
    check(got, expected)
    if name != "divide":
        assert got.dtype == expected.dtype


def test_integer_power_of_negative_exponents_rounds_towards_zero():
    x = np.array([2, 1, -1, -1, 0, 3], np.int32)
    y = np.array([-1, -5, -2, -3, -1, 3], np.int32)
    assert jnp.power(x, y).tolist() == [0, 1, 1, -1, 0, 27]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_integer_powers_wrap_around(dtype):
    """Whatever the exponent; with few multiplications for the lowest of its bits."""
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    bits = info.bits
    x = np.append(rng.integers(info.min, info.max, 300), [0, 1, 2, 3, 6, info.min, info.max, 5])
    y = np.append(rng.integers(0, info.max, 150), rng.integers(0, min(info.max, 99), len(x) - 150))
    powers = [pow(int(a), int(b), 2**bits) for a, b in zip(x, y, strict=True)]
    x, y = x.astype(dtype), y.astype(dtype)
    assert jnp.power(x, y).tolist() == np.array(powers, np.uint64).astype(dtype).tolist()
    assert str(jax.make_jaxpr(jnp.power)(x, y)).count("= mul") <= bits // 4 + 15


def test_static_integer_exponents():
    assert jnp.power(INTS, 2).tolist() == (INTS.astype(np.int64) ** 2).tolist()
    with pytest.raises(TypeError, match="Integers cannot be raised to negative powers"):
        jnp.power(INTS, -1)
    jaxpr = str(jax.make_jaxpr(lambda x: x ** 3)(1.0))
    assert "integer_pow[y=3]" in jaxpr


@pytest.mark.parametrize(("x", "y", "dtype", "weak", "value"), [
    (0.5, np.array([1, 2]), "float32", False, [0.5, 0.25]),
    (0.5, np.array(2), "float32", True, 0.25),
    (jnp.asarray(3), np.int8(3), "int32", True, 27),
    (np.array([3], np.uint32), np.int64(3), "uint32", False, [27]),
    (np.array([3], np.uint8), np.uint8(3), "uint8", False, [27]),
    (2.5, 2**35, "float32", True, np.inf),
    (np.array([1.0, 2.0], np.float32), np.int64(2**35), "float32", False, [1.0, np.inf]),
    (True, 2, "int32", False, 1), (np.array([True, False]), 2, "int32", False, [1, 0]),
    (np.array([2, 3]), True, "int32", False, [2, 3]),
    (np.array([1 + 2j]), np.int32(3), "complex64", False, [-11 - 2j]),
    (np.array([1 + 2j]), jnp.asarray(3), "complex64", False, [-11 - 2j]),
    (jnp.float16(2.5), np.array([2]), "float16", False, [6.25]),
    (0.5, jnp.int32(2), "float32", True, 0.25),
])
def test_dtypes_of_powers(x, y, dtype, weak, value):
    out = jnp.power(x, y)
    assert (out.dtype, out.weak_type, out.tolist()) == (dtype, weak, value)


def test_a_traced_exponent_takes_part_in_the_promotion():
    correct = jax.jit(lambda c: (1 - 0.9**c) * jnp.ones(2, jnp.bfloat16))
    assert correct(np.int32(3)).dtype == np.float32
    assert not jax.jit(lambda x, y: x**y)(2, 3).weak_type
    with jax.numpy_dtype_promotion("strict"):
        assert (jnp.ones(2) ** np.int32(2)).dtype == np.float32
        with pytest.raises(jax.dtypes.TypePromotionError):
            jnp.ones(2) ** jnp.arange(2)


def test_known_negative_exponents():
    with pytest.raises(TypeError, match="Integers cannot be raised to negative powers"):
        jnp.power(INTS, jnp.asarray(-3))


def test_integer_division_by_zero():
    x = np.array([1, -1, 0], np.int32)
    for zero in (0, np.zeros(3, np.int32)):
        quotient, rest = jnp.divmod(x, zero)
        assert quotient.tolist() == [-2, -2, -1] and rest.tolist() == [0, 0, 0]
        assert jnp.floor_divide(x, zero).tolist() == [-2, -2, -1]
    assert jax.jit(lambda x: jnp.floor_divide(x, 0))(x).tolist() == [-2, -2, -1]


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
@pytest.mark.parametrize("divisor", [1, 2, 64, np.int8(4)])
def test_programs_divide_by_powers_of_two_without_a_division(dtype, divisor):
    """Whose fused chains, as of a binary search, take XLA minutes."""
    info = np.iinfo(dtype)
    x = np.unique(np.array([info.min, info.min + 1, 0, 1, 63, 64, info.max,
                            *(range(-65, 0) if info.min else ())], dtype))
    f = jax.jit(lambda x: (x // divisor, *jnp.divmod(x, divisor), x % divisor))
    quotient, other, rest, again = f(x)
    assert quotient.tolist() == other.tolist() == [int(i) // int(divisor) for i in x]
    assert rest.tolist() == again.tolist() == [int(i) % int(divisor) for i in x]
    assert quotient.dtype == rest.dtype == jnp.result_type(dtype, divisor)
    assert info.min == 0 or not {"div", "rem"} & {str(e.primitive) for e in f.trace(x).jaxpr.eqns}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_sinc_at_whole_numbers_and_infinity(dtype):
    x = jnp.array([1, 2, -3, 100, np.inf, -np.inf], dtype)
    assert jnp.sinc(x).tolist() == [0.0] * 6
    assert np.isnan(jnp.sinc(jnp.array(np.nan, dtype)))
    assert jnp.sinc(x).dtype == dtype


def test_sinc_and_its_derivatives():
    x = np.array([0.0, 1e-3, 0.01, 0.3, 0.5, 1.0, 2.25, -7.5], np.float32)
    f = jnp.sinc
    for order in range(4):
        with np.errstate(all="ignore"):  # the integral of (pi t)^n cos(pi x t + n pi / 2) over 0..1
            t = (np.arange(20000) + 0.5) / 20000
            want = [np.mean((np.pi * t)**order * np.cos(np.pi * v * t + order * np.pi / 2))
                    for v in x]
        np.testing.assert_allclose([float(f(v)) for v in x], want, rtol=1e-4, atol=1e-5)
        f = jax.grad(f)


def test_divmod_and_parts_of_floats():
    quotient, rest = jnp.divmod(np.float32(-7.5), 2)
    assert (float(quotient), float(rest)) == (-4.0, 0.5)
    for name in ("frexp", "modf"):
        x = np.array([-2.5, 0.0, 0.75, 1e-40, 3e38], np.float32)
        for got, expected in zip(getattr(jnp, name)(x), getattr(np, name)(x), strict=True):
            if name == "frexp":  # subnormal numbers may count as 0
                got, expected = np.delete(got, 3), np.delete(expected, 3)
            check(got, expected)
    x, k = np.array([1.5, -3.0, 1.0], np.float32), np.array([3, -2, -126], np.int32)
    check(jnp.ldexp(x, k), np.ldexp(x, k), atol=0)
    with pytest.raises(ValueError, match="ldexp not supported"):
        jnp.ldexp(x, x)


def test_derivatives_at_special_points():
    grad = jax.grad
    assert float(grad(jnp.logaddexp)(2.0, 2.0)) == 0.5
    assert float(grad(jnp.logaddexp)(-np.inf, -np.inf)) == 0.5
    assert float(grad(jnp.sinc)(0.0)) == 0.0
    assert float(grad(jnp.i0)(0.0)) == 0.0
    assert float(grad(grad(jnp.sinc))(0.0)) == pytest.approx(-np.pi ** 2 / 3, rel=1e-5)
    assert float(grad(lambda x: jnp.frexp(x)[0])(6.0)) == 0.125
    assert np.isfinite(float(grad(jnp.hypot)(0.0, 0.0)))


@pytest.mark.parametrize(("x", "y", "dtype"), [
    (np.int32(1), 2.0, "float32"), (np.float16(1), 2, "float16"), (np.int8(1), 2, "int8"),
    (True, 1, "int32"), (np.uint8(1), np.int8(1), "int16"), (1, 2.5, "float32"),
    (np.complex64(1), 1.0, "complex64"), (np.float32(1), np.float64(2), "float32"),
])
def test_promotion(x, y, dtype):
    assert jnp.add(x, y).dtype == dtype
    assert jax.jit(jnp.add)(x, y).dtype == dtype


@pytest.mark.parametrize("x", [np.bool_(True), np.int8(3), np.ones(2, np.int32), np.ones(2, bool)])
@pytest.mark.parametrize("name", ["add", "minimum", "multiply"])
def test_types_of_constants_in_traces(x, name):
    """NumPy's integers beside a Python float are of weak type there, too."""
    def call():
        return getattr(jnp, name)(x, 1.0)

    assert jax.eval_shape(call).weak_type and call().weak_type


@pytest.mark.parametrize("call", [
    lambda: jnp.imag(1.0), lambda: jnp.imag(True), lambda: jnp.isfinite(1), lambda: jnp.isinf(1),
    lambda: jnp.isposinf(1), lambda: jnp.iscomplex(1), lambda: jnp.transpose(1.0),
    lambda: jnp.block(1.0), lambda: jnp.fft.fftshift(1.0), lambda: jnp.isneginf(jnp.int32(1)),
])
def test_results_in_traces_are_arrays(call):
    found = []
    jax.jit(lambda: found.append(call()))()
    assert isinstance(found[0], jax.Array)


def test_weak_types_of_derivatives():
    weak = jnp.broadcast_to(1.5, (2,))
    out, tangent = jax.jvp(jnp.log2, (weak,), (weak,))
    assert out.weak_type and not tangent.weak_type
    out, tangent = jax.jvp(lambda x: 2.0**x, (weak,), (weak,))
    assert out.weak_type and not tangent.weak_type
    assert not jax.grad(lambda q: jnp.quantile(np.arange(3.0, dtype=np.float32), q))(0.5).weak_type
    assert jax.grad(lambda x: jnp.pad(x, 1, mode="reflect").sum())(weak).weak_type


def test_weak_types_stay_weak():
    assert jnp.add(1.0, 2).weak_type
    assert not jnp.add(np.float32(1), 2).weak_type
    assert jax.jit(lambda x: x * 2)(1.0).weak_type
    assert (jnp.asarray(1.0) > 0).weak_type and not (jnp.ones(2) > 0).weak_type
    assert jax.jit(lambda x: x > 0)(1.0).weak_type
    truth = jnp.asarray(1.0) > 0
    assert (truth + 1).dtype == np.int32 and not (truth & truth).weak_type
    for name in ("isinf", "isposinf"):
        assert not getattr(jnp, name)(1.0).weak_type
    for name in ("isnan", "isreal", "iscomplex", "logical_not"):
        assert getattr(jnp, name)(1.0).weak_type
    assert not jnp.isclose(1.0, 1.0).weak_type and not jnp.array_equal(1.0, 1.0).weak_type
    assert not jnp.stack([truth, truth]).weak_type


def test_booleans():
    assert jnp.add(MASK, MASK).tolist() == [True, False, True]
    assert jnp.multiply(MASK, True).tolist() == [True, False, True]
    with pytest.raises(TypeError, match="sub does not accept dtype bool"):
        jnp.subtract(True, True)
    with pytest.raises(TypeError, match="neg does not accept dtype bool"):
        jnp.negative(True)


def test_where():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    check(jnp.where(x > 2, x, 0), np.where(x > 2, x, 0))
    check(jnp.where(x[0] > 1, x, x[:, :1]), np.where(x[0] > 1, x, x[:, :1]))
    check(jnp.where(True, x, 1), x)
    assert jnp.where(x > 2, 1, 2).dtype == "int32"
    with pytest.raises(TypeError, match="where requires ndarray or scalar arguments"):
        jnp.where(x, 1)
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        jnp.where(True, np.ones(3), np.ones(4))


def test_clip():
    check(jnp.clip(FLOATS, -1, 1), np.clip(FLOATS, -1, 1))
    check(jnp.clip(INTS, max=3), np.minimum(INTS, 3))
    check(jnp.clip(INTS, min=0), np.maximum(INTS, 0))
    with pytest.raises(ValueError, match="Complex values have no ordering"):
        jnp.clip(COMPLEX, 0)


def test_round():
    x = np.array([0.5, 1.5, 2.567, -1.005, 1234.5], np.float32)
    check(jnp.round(x), np.round(x))
    check(jnp.round(x, 2), np.round(x, 2))
    check(jnp.round(x, -2), np.round(x, -2))
    check(jnp.round(np.array([149, 150, 250, -150], np.int32), -2), [100, 200, 200, -200])
    assert jnp.round(INTS).dtype == "int32"


def test_nan_to_num():
    check(jnp.nan_to_num(FLOATS), np.nan_to_num(FLOATS))
    check(jnp.nan_to_num(FLOATS, nan=1, posinf=2, neginf=3),
          np.nan_to_num(FLOATS, nan=1, posinf=2, neginf=3))


def test_closeness_and_equality():
    x = np.array([1.0, np.nan, np.inf], np.float32)
    y = np.array([1.000001, np.nan, np.inf], np.float32)
    assert jnp.isclose(x, y).tolist() == [True, False, True]
    assert jnp.isclose(x, y, equal_nan=True).tolist() == [True, True, True]
    a, b = np.array([False, True, True]), np.array([True, True, False])
    assert jnp.isclose(a, b).tolist() == [False, True, False]
    assert jnp.isclose(a, b, atol=1).tolist() == [True, True, True]
    assert jnp.isclose(a, b, rtol=1).tolist() == [True, True, False]
    assert not bool(jnp.allclose(x, y))
    assert bool(jnp.allclose(x[:1], y[:1]))
    assert bool(jnp.array_equal([1, 2], [1, 2]))
    assert not bool(jnp.array_equal([1, 2], [1, 2, 3]))
    assert bool(jnp.array_equal(x, x, equal_nan=True))
    assert bool(jnp.array_equiv([1, 2], [[1, 2], [1, 2]]))
    assert not bool(jnp.array_equiv(jnp.ones(2, "int4"), jnp.ones(2, "int8")))


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "equal"])
def test_lists_are_no_arrays(name):
    with pytest.raises(TypeError, match=rf"{name} requires ndarray or scalar arguments, got "
                       r"<class 'list'> at position 0\."):
        getattr(jnp, name)([1], 2)


def test_shapes_that_do_not_broadcast():
    with pytest.raises(TypeError, match=r"add got incompatible shapes for broadcasting: \(3,\), "
                       r"\(4,\)\."):
        jnp.add(np.ones(3), np.ones(4))


def test_rank_promotion_flag():
    x, y = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank_promotion"):
        jnp.add(x, y)
    with jax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="promotion for add"):
        jnp.add(x, y)


@pytest.mark.parametrize(("signature", "shapes"), [
    ("(n,m),(m)->(n)", [(2, 2, 2), (2,)]), (None, [(2, 2), (2,)]),
    ("(n),()->(n)", [(2,), ()]), ("(n),(n)->(n)", [(3, 2), (1, 2)]), (None, [(2, 2), ()])])
def test_rank_promotion_of_what_is_vectorized(signature, shapes):
    f = jnp.vectorize(jnp.dot, signature=signature) if signature == "(n,m),(m)->(n)" else \
        jnp.vectorize(jnp.add, signature=signature)
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    differ = len(shapes[1]) == 1
    words = rf"{re.escape(str(shapes))} require rank promotion for jnp\.vectorize function with " \
        rf"signature {re.escape(str(signature))}\. .*docs\.jax\.dev/en/latest/101/"
    raises = pytest.raises(ValueError, match=words) if differ else contextlib.nullcontext()
    with jax.numpy_rank_promotion("raise"), raises:
        f(*arrays)
    warns = pytest.warns(UserWarning, match=words) if differ else contextlib.nullcontext()
    with jax.numpy_rank_promotion("warn"), warns:
        f(*arrays)


def test_jax_array_protocol():
    class Wrapper:
        def __jax_array__(self):
            return jnp.ones(2)

    assert jnp.add(Wrapper(), 1).tolist() == [2.0, 2.0]
    assert jnp.sin(Wrapper()).shape == (2,)
    assert (jnp.ones(2) + Wrapper()).tolist() == [2.0, 2.0]


def test_vmap_and_grad_agree_with_loops():
    x = np.array([0.3, 0.7], np.float32)
    y = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
    got = jax.vmap(lambda a, b: jnp.where(b > 2, a * b, jnp.hypot(a, b)))(x, y)
    expected = np.where(y > 2, x[:, None] * y, np.hypot(x[:, None], y))
    check(got, expected)


@pytest.mark.parametrize("scalar", [2, 2.0])
def test_an_array_that_was_made_under_x64_is_narrowed(scalar):
    with jax.enable_x64(True):
        x = jnp.ones(3)
    with pytest.warns(UserWarning, match="float64 .*is not available"):
        assert jax.jit(lambda x: x * scalar)(x).dtype == np.float32


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum",
                                  "bitwise_and", "logical_or", "logaddexp", "logaddexp2"])
def test_ufuncs_take_none_for_out_and_where(name):
    f = getattr(jnp, name)
    assert f(1, 2, out=None, where=None) == f(1, 2)
    for key in ("out", "where"):
        words = f"{key} argument of <jnp.ufunc '{name}'>"
        with pytest.raises(NotImplementedError, match=words):
            f(1, 2, **{key: jnp.zeros(2)})


def test_negative_takes_none_for_out():
    assert jnp.negative(1, out=None) == -1
    with pytest.raises(NotImplementedError, match="where argument"):
        jax.jit(lambda x: jnp.negative(x, where=True))(1)


def test_the_gcd_of_the_least_integer_is_not_negative():
    """Its magnitude is itself, so that Euclid's algorithm has negative remainders."""
    values = np.array([-128, -127, -64, -1, 0, 1, 2, 127], np.int8)
    np.testing.assert_array_equal(jnp.gcd(values[:, None], values), np.gcd(values[:, None], values))


def test_the_spacing_of_halves_is_that_to_the_next_number_above():
    x = np.array([-65504, -2.5, -1, -0.0, 0, 1, 6e-5, 65504, np.inf, -np.inf, np.nan], np.float16)
    with np.errstate(all="ignore"):
        want = np.spacing(x)
    np.testing.assert_array_equal(jnp.spacing(x), want)


def test_gcd_of_integers_and_booleans():
    assert int(jnp.gcd(jnp.array(4), jnp.array(True))) == 1
    assert int(jnp.lcm(jnp.array(True), jnp.array(4))) == 4
    with pytest.raises(ValueError, match="must be integers"):
        jnp.gcd(True, True)


def test_promotion_of_scalar_classes():
    assert jnp.promote_types(np.uint64, "complex64") == np.complex64
    assert jnp.promote_types(jnp.float32, np.float16) == np.float32
    assert not jnp.can_cast(np.uint64, "complex64")


def test_whole_numbers_and_angles_of_integers_have_the_default_float_dtype():
    with jax.enable_x64(True):
        assert jnp.rint(jnp.array([1], "int8")).dtype == np.float64
        assert jnp.angle(jnp.array([1], "int32")).dtype == np.float64
    assert not jnp.rint(1).weak_type and not jnp.angle(1.0).weak_type
    assert not jnp.heaviside(jnp.arange(2), 1.0).weak_type


def test_functions_that_broadcast_by_themselves_promote_no_ranks():
    a, b, i = jnp.ones((2, 2)), jnp.ones(2), jnp.arange(2)
    with jax.numpy_rank_promotion("raise"):
        jnp.where(b > 0, a, b)
        jnp.array_equiv(a, b)
        jnp.trapezoid(a, b)
        jnp.polyfit(b, b, 0)
        jnp.polyfit(b, a, 0, w=b)
        jnp.unpackbits(jnp.packbits(a > 0, 0), 0)
        jnp.add.outer(b, b)
        jnp.nan_to_num(a, nan=b)
        with pytest.raises(ValueError, match="rank_promotion"):
            jax.scipy.special.owens_t(a, b)
        jnp.add.reduceat(a, i)
        jnp.fft.fft2(a, norm="ortho")
        jax.scipy.fft.dctn(a, norm="ortho")
        jnp.vander(b)
        jnp.insert(a, 0, b, axis=0)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
@pytest.mark.parametrize(("x", "y", "want"), [
    (1000.0, 1000.0, (0.5, 0.5)), (np.inf, 5.0, (1, 0)), (-np.inf, 3.0, (0, 1)),
    (-np.inf, -np.inf, (0.5, 0.5)), (90.0, -90.0, (1, 0)),
])
def test_derivatives_of_logaddexp_far_out(name, x, y, want):
    gradient = jax.grad(getattr(jnp, name), (0, 1))(x, y)
    np.testing.assert_allclose(gradient, want, atol=1e-6)


def test_types_are_refused_before_shapes():
    for name in ("gcd", "lcm"):
        with pytest.raises(ValueError, match="must be integers"):
            getattr(jnp, name)(jnp.ones(4), jnp.ones(3, int))
    with pytest.raises(ValueError, match="not well defined for complex"):
        jnp.hypot(jnp.ones(2), jnp.ones(3, complex))


def test_arrays_without_content_pass_through():
    x = np.zeros(2, jax.dtypes.float0)
    assert jax.jit(lambda: jnp.real(x))().dtype == jax.dtypes.float0


def test_round_refuses_an_array_to_write_to():
    with pytest.raises(NotImplementedError, match="'out'"):
        jnp.round(jnp.ones(2), out=jnp.ones(2))


def test_keys_are_no_numbers():
    for fun in (jnp.exp, jax.nn.softmax):
        with pytest.raises(TypeError, match="expected numbers, got values of dtype key<fry>"):
            fun(jax.random.key(0))


@pytest.mark.parametrize(("x", "y"), [(3.0, 4.0), (-2.5, 2.5), (2.5, 2.5), (0.0, 2.0)])
def test_derivatives_of_hypot(x, y):
    x, y = np.float32(x), np.float32(y)
    h = np.hypot(x, y)
    np.testing.assert_allclose(jax.grad(jnp.hypot, (0, 1))(x, y), (x / h, y / h), rtol=1e-6)
    got = jax.hessian(jnp.hypot, (0, 1))(x, y)
    want = np.array([[y * y, -x * y], [-x * y, x * x]]) / h**3
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("fun", "weak"), [
    (jnp.degrees, False), (jnp.radians, False), (jnp.sinc, False), (jnp.sin, True),
    (jnp.logical_not, False), (jnp.isreal, False), (jnp.signbit, False), (jnp.angle, True),
    (lambda x: jnp.angle(x, deg=True), False), (lambda x: jnp.logaddexp2(x, x), False),
    (lambda x: jnp.logaddexp(x, x), True), (lambda x: jnp.heaviside(x, x), False),
    (lambda x: jnp.logical_and(x, x), False), (jnp.unique, True), (jnp.argpartition, True),
])
def test_constants_beside_weak_arrays_are_strong(fun, weak):
    args = (1,) if fun is jnp.argpartition else ()
    assert fun(jnp.broadcast_to(2.0, (2,)), *args).weak_type is weak
    assert not jnp.gcd(jnp.broadcast_to(2, (2,)), jnp.broadcast_to(3, (2,))).weak_type


def test_complex_numbers_are_compared_with_a_scalar_in_a_batch():
    x = jnp.asarray(np.array([[1 + 1j, 0, 0j - 1], [0, 1j, -1j]]))
    for compare in (lambda v: v > 0, lambda v: v <= 0):
        assert jax.vmap(compare)(x).tolist() == compare(x).tolist()


def test_second_derivatives_of_logaddexp_of_equal_numbers():
    # s (1 - s) with s = 1/2; with powers of 2, log(2) as much
    for fun, scale in ((jnp.logaddexp, 1.0), (jnp.logaddexp2, np.log(2.0))):
        second = jax.grad(jax.grad(fun))(1.5, 1.5)
        np.testing.assert_allclose(second, 0.25 * scale, rtol=1e-6)
    real = jax.grad(lambda x: jnp.real(jnp.logaddexp(jax.lax.complex(x, 0.0), 0j)))
    np.testing.assert_allclose([real(0.0), jax.grad(real)(0.0)], [0.5, 0.25], rtol=1e-6)


def test_angles_of_single_numbers_are_at_least_of_the_default_float():
    """Those of arrays have the dtype of these."""
    with jax.enable_x64(True):
        assert jnp.angle(jnp.float32(1)).dtype == np.float64
        assert jnp.angle(jnp.ones(1, "float32")).dtype == np.float32
    assert jnp.angle(jnp.float16(1)).dtype == np.float32
    assert jnp.angle(jnp.ones(1, "bfloat16")).dtype == jnp.bfloat16


def test_results_have_the_types_of_the_oracle():
    """Samples of what tests/oracle/test_result_types.py sweeps over."""
    weak = jnp.broadcast_to(1, (2,))
    assert jnp.logical_and(True, 1).weak_type and not jnp.logical_and(weak, weak).weak_type
    assert jnp.heaviside(1, weak).weak_type and not jnp.heaviside(weak, weak).weak_type
    assert not jnp.full_like(weak, jnp.ones(2)).weak_type and jnp.full_like(weak, 2).weak_type
    assert jnp.insert(weak, 0, 2.5).weak_type
    assert jnp.inner(jnp.ones(2, bool), True).dtype == bool
    for a, b, want in [("bool", "int4", "float32"), ("int8", "float8_e5m2", "float8_e5m2")]:
        got = jnp.linspace(jnp.ones(2, a), jnp.ones(2, b), 3)
        assert got.dtype == want and got.shape == (3, 2)


def test_arrays_of_64_bits_outlive_the_flag():
    """What was made while 64-bit types were on is computed with, and like it, when they are off."""
    with jax.enable_x64(True):
        x, n = jnp.array([1.5, -3.0]), jnp.array([1, 2])
        square = jnp.ones((2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mantissa, exponent = jnp.frexp(x)
        check(mantissa, [0.75, -0.75])
        assert exponent.tolist() == [1, 2]
        check(jnp.ldexp(x, n), [3.0, -12.0])
        check(jnp.copysign(x, -x), [-1.5, 3.0])
        assert jnp.signbit(x).tolist() == [False, True]
        assert jnp.spacing(x)[0] == 2.0**-52
        assert jnp.trace(square) == 2.0
        for like in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, jax.jit(jnp.zeros_like)):
            assert like(x).dtype == "float64" and like(n).dtype == "int64"
        assert jnp.full_like(x, 2).dtype == "float64"
        assert jnp.zeros_like(np.ones(2)).dtype == "float32"
        for function in (jax.nn.selu, jax.nn.sparse_sigmoid):
            check(function(x), function(x.astype("float32")), rtol=1e-5)


def test_what_is_computed_beside_constants_is_narrowed_without_the_flag():
    with jax.enable_x64(True):
        x, square = jnp.array([1.5, -3.0]), jnp.array([[2.0, 1.0], [1.0, 3.0]])
    for function in (jnp.nan_to_num, jnp.sinc, jnp.median, jnp.nanmedian, jnp.std,
                     lambda v: jnp.percentile(v, 50), lambda v: jnp.frexp(v)[0],
                     lambda v: jnp.logspace(v[0], v[1], 3)):
        assert function(x).dtype == jax.jit(function)(x).dtype == "float32"
    assert jnp.sort_complex(x).dtype == "complex64"
    for function in (jnp.linalg.inv, jnp.linalg.det, jnp.linalg.cholesky, jnp.linalg.pinv,
                     jnp.linalg.eigvalsh, jnp.linalg.cond, jax.scipy.linalg.expm,
                     lambda v: jnp.linalg.lstsq(v, v[0])[0], lambda v: jnp.linalg.qr(v)[1]):
        assert function(square).dtype == "float32"
    assert jnp.linalg.solve(square, x).dtype == jnp.linalg.svdvals(square).dtype == "float64"


def test_powers_of_floats_by_integers_keep_the_floats():
    n = jnp.array([1, 2])
    with jax.enable_x64(True):
        x, weak = jnp.array([1.5, -3.0]), jnp.asarray(2.0)
        wide = jnp.array([1, 2])
    check(x ** n, [1.5, 9.0])
    assert (x ** n).dtype == jnp.power(x, np.array([1, 2])).dtype == "float64"
    narrow = jnp.asarray(2.0)
    with jax.enable_x64(True):
        assert jnp.power(narrow, wide).dtype == jax.jit(jnp.power)(narrow, n).dtype == "float32"
        assert jnp.power(weak, wide).dtype == "float64"
        assert not jnp.power(narrow, wide).weak_type


def test_ldexp_by_exponents_beyond_32_bits():
    with jax.enable_x64(True):
        k = jnp.array([2**63 - 1, 2**32, -2**63, -2**32 + 1])
        np.testing.assert_array_equal(jnp.ldexp(jnp.float32(1.5), k), [np.inf, np.inf, 0, 0])
        assert jnp.ldexp(1.5, True) == 3
        assert np.isinf(jnp.ldexp(1.5, jnp.uint64(2**64 - 1)))


def test_the_gradient_is_of_the_dtype_of_samples_and_spacing():
    samples = jnp.arange(3)
    assert jnp.gradient(samples, jnp.float16(2)).dtype == "float16"
    assert jnp.gradient(samples, 0.5).weak_type
    assert not jnp.gradient(samples).weak_type


@pytest.mark.parametrize(("fun", "weak"), [
    (jnp.arcsinh, True), (jnp.log10, False), (lambda x: jnp.ldexp(x, 2), True),
    (lambda x: jnp.frexp(x)[0], True), (lambda x: jnp.take(x, 0), False),
])
def test_weak_types_of_derivatives_of_scalars(fun, weak):
    assert jax.grad(fun)(0.3).weak_type is weak


def test_tangents_of_integers_are_refused_by_name():
    z = np.zeros(3, jax.dtypes.float0)
    x = jnp.ones(3)
    for name, call in {
        "add": lambda: x + z, "subtract": lambda: x - z, "multiply": lambda: z * x,
        "equal": lambda: jnp.equal(x, z), "sin": lambda: jnp.sin(z),
        "logical_and": lambda: jnp.logical_and(z, True),
        "true_divide": lambda: jax.jit(lambda z: z / 2)(z),
    }.items():
        with pytest.raises(TypeError, match=f"Called {name} with a float0 array"):
            call()
