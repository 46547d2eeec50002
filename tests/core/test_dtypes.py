"""The promotion lattice against tables written out by hand, and dtype-like arguments."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pyjx.dtypes
import pyjx.numpy as jnp
from pyjx import configuration as cfg
from pyjx.core import dtypes

# Row and column in one order; i*, f*, c* are the Python types. With x64.
TABLE = """
b1 u1 u2 u4 u8 i1 i2 i4 i8 bf f2 f4 f8 c8 cx i* f* c*
u1 u1 u2 u4 u8 i2 i2 i4 i8 bf f2 f4 f8 c8 cx u1 f* c*
u2 u2 u2 u4 u8 i4 i4 i4 i8 bf f2 f4 f8 c8 cx u2 f* c*
u4 u4 u4 u4 u8 i8 i8 i8 i8 bf f2 f4 f8 c8 cx u4 f* c*
u8 u8 u8 u8 u8 f* f* f* f* bf f2 f4 f8 c8 cx u8 f* c*
i1 i2 i4 i8 f* i1 i2 i4 i8 bf f2 f4 f8 c8 cx i1 f* c*
i2 i2 i4 i8 f* i2 i2 i4 i8 bf f2 f4 f8 c8 cx i2 f* c*
i4 i4 i4 i8 f* i4 i4 i4 i8 bf f2 f4 f8 c8 cx i4 f* c*
i8 i8 i8 i8 f* i8 i8 i8 i8 bf f2 f4 f8 c8 cx i8 f* c*
bf bf bf bf bf bf bf bf bf bf f4 f4 f8 c8 cx bf bf c8
f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f2 f4 f8 c8 cx f2 f2 c8
f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8 c8 cx f4 f4 c8
f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 cx cx f8 f8 cx
c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 c8 cx c8 cx c8 c8 c8
cx cx cx cx cx cx cx cx cx cx cx cx cx cx cx cx cx cx
i* u1 u2 u4 u8 i1 i2 i4 i8 bf f2 f4 f8 c8 cx i* f* c*
f* f* f* f* f* f* f* f* f* bf f2 f4 f8 c8 cx f* f* c*
c* c* c* c* c* c* c* c* c* c8 c8 c8 cx c8 cx c* c* c*
"""
ROWS = [line.split() for line in TABLE.strip().split("\n")]
NAMES = ROWS[0]  # bool is below everything, so its row is also the header
CODES: dict[str, Any] = {"bf": ml_dtypes.bfloat16, "cx": "c16", "b1": "?",
                         "i*": int, "f*": float, "c*": complex}
WEAK_VALUES = {"i*": 1, "f*": 1.0, "c*": 1j}
PAIRS = [(a, b, cell)
         for a, row in zip(NAMES, ROWS, strict=True)
         for b, cell in zip(NAMES, row, strict=True)]

SMALL_INTS = [np.dtype(getattr(ml_dtypes, name)) for name in ("int2", "int4", "uint2", "uint4")]
SMALL_FLOATS = [np.dtype(getattr(ml_dtypes, name)) for name in (
    "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")]


def of_code(code: str) -> np.dtype[Any]:
    return np.dtype(CODES.get(code, code))


def array(dtype: Any, weak: bool = False) -> Any:
    """Something with an aval."""
    return SimpleNamespace(aval=SimpleNamespace(dtype=np.dtype(dtype), weak_type=weak))


class Key(dtypes.ExtendedDType):
    type = dtypes.prng_key
    itemsize = 8

    def __init__(self, tag: str) -> None:
        self.name = f"key<{tag}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


FRY = Key("fry")

# --- promotion -----------------------------------------------------------------------------------


def test_promote_types_with_x64() -> None:
    with cfg.enable_x64(True):
        for a, b, cell in PAIRS:
            found = dtypes.promote_types(CODES.get(a, a), CODES.get(b, b))
            assert found == of_code(cell), (a, b, found)


def test_result_type_with_x64() -> None:
    with cfg.enable_x64(True):
        for a, b, cell in PAIRS:
            operands = [WEAK_VALUES[n] if n in WEAK_VALUES else array(of_code(n))
                        for n in (a, b)]
            found = dtypes.result_type(*operands, return_weak_type_flag=True)
            assert found == (of_code(cell), cell in WEAK_VALUES), (a, b, found)
            assert found == dtypes.lattice_result_type(*operands)


def test_result_type_without_x64() -> None:
    for a, b, cell in PAIRS:
        if {a, b} & {"i8", "u8", "f8", "cx"}:
            continue
        operands = [WEAK_VALUES[n] if n in WEAK_VALUES else array(of_code(n)) for n in (a, b)]
        expected = dtypes.canonicalize_dtype(of_code(cell))
        found = dtypes.result_type(*operands, return_weak_type_flag=True)
        assert found == (expected, cell in WEAK_VALUES), (a, b, found)


@pytest.mark.filterwarnings("error")
def test_constructors_count_as_what_they_make() -> None:
    assert dtypes.result_type(jnp.float64) == dtypes.result_type(jnp.float32) == np.float32
    assert dtypes.result_type(jnp.int64, 1) == np.int32
    with pytest.raises(UserWarning, match="float64"):
        dtypes.result_type(np.float64)


def test_promotion_is_commutative_and_associative_where_defined() -> None:
    some = [*map(of_code, NAMES[:-3]), int, float, complex]

    def join(a: Any, b: Any) -> Any:
        return dtypes._join((a, b), False)

    for a, b, c in itertools.product(some, repeat=3):
        assert join(a, b) == join(b, a)
        assert join(join(a, b), c) == join(a, join(b, c))


def test_arrays_of_64_bits_without_x64_are_narrowed_when_they_meet_others() -> None:
    wide = array("float64")
    assert dtypes.result_type(wide) == np.float64
    assert dtypes.result_type(wide, wide) == np.float64
    for _ in range(2):  # not only the first time
        with pytest.warns(UserWarning, match="dtype float64 requested in dtype is not available"):
            assert dtypes.result_type(wide, 1) == np.float32
    with cfg.explicit_x64_dtypes("allow"):
        assert dtypes.result_type(wide, 1) == np.float64
        assert dtypes.result_type(array("int64"), array("uint8")) == np.int64
    with cfg.explicit_x64_dtypes("error"), pytest.raises(ValueError, match="Explicitly requested"):
        dtypes.result_type(wide, 1)


@pytest.mark.parametrize("small", SMALL_INTS + SMALL_FLOATS, ids=str)
def test_small_types_promote_with_nothing_wider(small: np.dtype[Any]) -> None:
    assert dtypes.promote_types(small, bool) == small
    assert dtypes.promote_types(small, int) == small
    assert dtypes.promote_types(small, small) == small
    others: list[Any] = ["float32", "bfloat16", "complex64", complex]
    others += [small_ for small_ in SMALL_INTS + SMALL_FLOATS if small_ != small]
    if small in SMALL_FLOATS:
        assert dtypes.promote_types(small, float) == small
        assert dtypes.promote_types("int32", small) == small
    else:
        others += ["int32", "uint8", float]
    for other in others:
        with pytest.raises(dtypes.TypePromotionError):
            dtypes.promote_types(small, other)


def test_messages_of_promotion_errors() -> None:
    def message(*args: Any) -> str:
        with pytest.raises(dtypes.TypePromotionError) as error:
            dtypes.result_type(*args)
        return str(error.value)

    assert message("float8_e4m3fn", "float32") == (
        "Input dtypes ('float8_e4m3fn', 'float32') have no available implicit dtype promotion "
        "path. To avoid unintended promotion, 8-bit floats do not support implicit promotion. If "
        "you'd like your inputs to be promoted to another type, you can do so explicitly using "
        "e.g. x.astype('float32')")
    assert "4-bit floats" in message("float4_e2m1fn", "float32")
    assert message("int4", float).endswith(
        "1-bit, 2-bit and 4-bit integers do not support implicit promotion. If you'd like your "
        "inputs to be promoted to another type, you can do so explicitly using e.g. "
        "x.astype('int32')")
    with cfg.numpy_dtype_promotion("strict"):
        assert message(np.int32(1), np.float32(1)) == (
            "Input dtypes ('int32', 'float32') have no available implicit dtype promotion path "
            "when jax_numpy_dtype_promotion=strict. Try explicitly casting inputs to the desired "
            "output type, or set jax_numpy_dtype_promotion=standard.")


@pytest.mark.parametrize(("a", "b", "result"), [
    (1, np.int8(1), ("int8", False)), (1, np.float32(1), ("float32", False)),
    (1.0, np.complex64(1), ("complex64", False)), (1, 2.0, ("float32", True)),
    (1, np.uint8(1), ("uint8", False)), (True, np.bool_(True), ("bool", False)),
    (1.0, np.int32(1), None), (1j, np.float32(1), None), (True, 1, None),
    (np.int8(1), np.int16(1), None), (np.bool_(True), np.int32(1), None),
])
def test_strict_promotion(a: Any, b: Any, result: tuple[str, bool] | None) -> None:
    with cfg.numpy_dtype_promotion("strict"):
        if result is None:
            with pytest.raises(dtypes.TypePromotionError, match="strict"):
                dtypes.result_type(a, b)
        else:
            assert dtypes.result_type(a, b, return_weak_type_flag=True) == result


def test_weak_arrays() -> None:
    weak = array("bfloat16", weak=True)
    assert dtypes.lattice_result_type(weak, 1) == (ml_dtypes.bfloat16, True)
    assert dtypes.result_type(weak, 1, return_weak_type_flag=True) == (np.float32, True)
    assert dtypes.result_type(weak, np.int8(1), return_weak_type_flag=True) == (np.float32, True)
    assert dtypes.lattice_result_type(weak, array("float16")) == (np.float16, False)
    assert dtypes.lattice_result_type(array("uint8", True), array("int8", True)) == ("int16", True)
    assert dtypes.result_type(array("uint32", True)) == np.uint32
    assert dtypes.lattice_result_type(array("bool", True), True) == (np.bool_, False)


def test_bad_arguments_of_result_type() -> None:
    assert dtypes.result_type(None) == np.float32
    with pytest.raises(ValueError, match="at least one array or dtype is required"):
        dtypes.result_type()
    with pytest.raises(TypeError, match="Cannot determine dtype of"):
        dtypes.result_type(object())
    with pytest.raises(TypeError, match="Only arrays of numeric types"):
        dtypes.result_type("S3")
    with pytest.raises(TypeError, match="Only arrays of numeric types"):
        dtypes.result_type(np.array(["a"]))
    with pytest.raises(ValueError, match="not a valid dtype for JAX type promotion"):
        dtypes.promote_types("S3", "int32")
    with pytest.raises(ValueError, match="Invalid argument to dtype: None"):
        dtypes.dtype(None)


def test_extended_dtypes_and_float0_only_promote_with_themselves() -> None:
    key = SimpleNamespace(aval=SimpleNamespace(dtype=FRY, weak_type=False))
    assert dtypes.result_type(key, key) is FRY
    with pytest.raises(ValueError, match="key<fry> is not a valid dtype for JAX type promotion"):
        dtypes.result_type(key, 1.0)
    assert dtypes.result_type(dtypes.float0, dtypes.float0) == dtypes.float0
    with pytest.raises(ValueError, match="float0"):
        dtypes.result_type(np.zeros(3, dtypes.float0), 1)


# --- dtypes of values ----------------------------------------------------------------------------


class Color(IntEnum):
    RED = 1


@pytest.mark.parametrize(("x", "narrow", "wide", "weak"), [
    (True, "bool", "bool", False), (1, "int32", "int64", True), (1.0, "float32", "float64", True),
    (1j, "complex64", "complex128", True), (Color.RED, "int32", "int64", True),
    (int, "int32", "int64", True), (float, "float32", "float64", True),
    (np.float64(1), "float32", "float64", False), (np.ones(2, "uint64"), "uint32", "uint64", False),
    (np.int8(1), "int8", "int8", False), ("bfloat16", "bfloat16", "bfloat16", False),
    (np.dtype("f4"), "float32", "float32", False), (np.ones(1, ">f4"), "float32", "float32", False),
])
def test_dtype_and_weak_type_of_values(x: Any, narrow: str, wide: str, weak: bool) -> None:
    assert dtypes.dtype(x) == np.dtype(narrow)
    assert dtypes.lattice_result_type(x) == (np.dtype(narrow), weak)
    with cfg.enable_x64(True):
        assert dtypes.lattice_result_type(x) == (np.dtype(wide), weak)


def test_weakly_typed_and_python_scalars() -> None:
    assert [dtypes.is_weakly_typed(x) for x in (1, 1.0, 1j, True, np.float64(1), "f4")] == [
        True, True, True, False, False, False]
    assert dtypes.is_weakly_typed(array("int32", weak=True))
    assert dtypes.is_python_scalar(1.0) and not dtypes.is_python_scalar(np.float64(1))


def test_scalar_constructors_are_dtype_likes() -> None:
    class Constructor:
        dtype = np.dtype("int8")

        def __call__(self, x: Any) -> Any:
            return x

    assert dtypes.dtype(Constructor()) == np.int8
    assert dtypes.issubdtype(Constructor(), np.integer)
    assert dtypes.check_and_canonicalize_user_dtype(Constructor(), "f") == np.int8


def test_default_dtypes() -> None:
    defaults = dtypes.default_int_dtype, dtypes.default_uint_dtype, dtypes.default_float_dtype
    assert [f().name for f in defaults] == ["int32", "uint32", "float32"]
    with cfg.enable_x64(True):
        assert [f().name for f in defaults] == ["int64", "uint64", "float64"]


def test_canonicalize_dtype() -> None:
    pairs: list[tuple[Any, str]] = [
        ("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"),
        ("complex128", "complex64"), ("int8", "int8"), (float, "float32"), (None, "float32"),
        (">i4", "int32"), (">f8", "float32")]
    for given, narrow in pairs:
        assert dtypes.canonicalize_dtype(given) == np.dtype(narrow)
        with cfg.enable_x64(True):
            assert dtypes.canonicalize_dtype(given) == np.dtype(given).newbyteorder("=")
    assert dtypes.canonicalize_dtype(FRY, allow_extended_dtype=True) is FRY
    with pytest.raises(ValueError, match="canonicalize_dtype called on extended dtype key<fry>"):
        dtypes.canonicalize_dtype(FRY)
    with pytest.raises(TypeError, match="data type 'foo' not understood"):
        dtypes.canonicalize_dtype("foo")


def test_user_dtypes_of_64_bits() -> None:
    check = dtypes.check_and_canonicalize_user_dtype
    with pytest.warns(UserWarning) as record:
        assert check("float64", "zeros") == np.float32
    assert str(record[0].message) == (
        "Explicitly requested dtype float64 requested in zeros is not available, and will be "
        "truncated to dtype float32. To enable more dtypes, set the jax_enable_x64 configuration "
        "option or the JAX_ENABLE_X64 shell environment variable. See "
        "https://github.com/jax-ml/jax#current-gotchas for more.")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check(float, "zeros") == np.float32
        assert check("int32", "zeros") == np.int32
        assert check(FRY, "zeros") is FRY
        assert check(dtypes.float0, "zeros") == dtypes.float0
        with cfg.explicit_x64_dtypes("allow"):
            assert check("int64", "zeros") == np.int64
        with cfg.enable_x64(True):
            assert check("int64", "zeros") == np.int64
            assert check(int, "zeros") == np.int64
    with (cfg.explicit_x64_dtypes("error"),
          pytest.raises(ValueError, match="Explicitly requested dtype int64 requested in ones")):
        check("int64", "ones")


def test_a_user_dtype_is_found_again_in_each_form() -> None:
    check = dtypes.check_and_canonicalize_user_dtype
    marked = np.dtype("uint8", metadata={"of": "a user"})
    for _ in range(2):
        assert check(marked, "zeros") == np.uint8
        assert check("uint8", "zeros").metadata is None
        assert check(np.dtype("uint8"), "zeros").metadata is None
        assert check(">u2", "zeros").isnative
        assert check(dtypes.bfloat16, "zeros") == check("bfloat16", "zeros") == dtypes.bfloat16
        with pytest.raises(TypeError, match="not understood in zeros"):
            check("uint33", "zeros")


@pytest.mark.parametrize("bad", ["S3", object, "datetime64[s]", [("a", "f4")], np.longdouble])
def test_user_dtypes_that_are_not_numbers(bad: Any) -> None:
    with pytest.raises(TypeError, match=r"JAX only supports number and bool dtypes, got "
                                        r"dtype .* in zeros"):
        dtypes.check_and_canonicalize_user_dtype(bad, "zeros")


def test_check_valid_dtype() -> None:
    for dtype in (np.dtype("f4"), dtypes.float0, FRY, *SMALL_FLOATS):
        dtypes.check_valid_dtype(dtype)
    with pytest.raises(TypeError, match="not a valid JAX array type"):
        dtypes.check_valid_dtype(np.dtype(object))


# --- categories, names, widths -------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [
    (ml_dtypes.bfloat16, np.floating), (ml_dtypes.bfloat16, np.inexact),
    (ml_dtypes.bfloat16, np.number), (ml_dtypes.bfloat16, "bfloat16"),
    (ml_dtypes.int4, np.signedinteger), (ml_dtypes.uint4, np.unsignedinteger),
    (ml_dtypes.float8_e4m3fn, np.floating), (float, np.floating), (float, np.float64),
    (bool, np.bool_), (FRY, dtypes.prng_key), (FRY, dtypes.extended), (FRY, np.generic),
    (dtypes.prng_key, dtypes.extended), (FRY, Key("fry")), (dtypes.float0, np.void),
    (np.floating, np.inexact), ("float32", np.float32),
])
def test_issubdtype(a: Any, b: Any) -> None:
    assert dtypes.issubdtype(a, b)


@pytest.mark.parametrize(("a", "b"), [
    (ml_dtypes.bfloat16, np.float32), (ml_dtypes.uint4, np.signedinteger), (FRY, np.number),
    (np.float32, dtypes.extended), (FRY, Key("rbg")), (bool, np.integer), (float, np.float32),
    (dtypes.float0, np.bool_), (np.integer, np.floating), (np.float32, FRY),
])
def test_not_issubdtype(a: Any, b: Any) -> None:
    assert not dtypes.issubdtype(a, b)


def test_bad_arguments_of_issubdtype() -> None:
    with pytest.raises(TypeError, match="data type 'foo' not understood"):
        dtypes.issubdtype("foo", np.floating)
    with pytest.raises(TypeError, match="Cannot construct a dtype from an array"):
        dtypes.issubdtype(np.ones(2), np.floating)


def test_scalar_type_of() -> None:
    given = [True, np.int8, "bfloat16", 1j, "int4", "float8_e5m2", np.ones(2, "uint8")]
    assert [dtypes.scalar_type_of(x) for x in given] == [
        bool, int, float, complex, int, float, int]
    with pytest.raises(TypeError, match="Invalid scalar value"):
        dtypes.scalar_type_of(dtypes.float0)


def test_itemsize_bits() -> None:
    widths = {"int4": 4, "uint2": 2, "bool": 8, "float4_e2m1fn": 4, "float8_e4m3": 8,
              "bfloat16": 16, "float32": 32, "complex128": 128, float: 64}
    for given, bits in widths.items():
        assert dtypes.itemsize_bits(given) == bits
    for bad in (FRY, dtypes.float0, object, None):
        with pytest.raises(ValueError, match="unexpected input"):
            dtypes.itemsize_bits(bad)


def test_names() -> None:
    shorts = {"bool": "bool", "int4": "i4", "uint8": "u8", "int32": "i32", "bfloat16": "bf16",
              "float64": "f64", "complex64": "c64", "float8_e4m3fn": "f8_e4m3fn",
              "float8_e4m3b11fnuz": "f8_e4m3b11fnuz", "float4_e2m1fn": "f4_e2m1fn"}
    for given, short in shorts.items():
        assert dtypes.short_dtype_name(np.dtype(given)) == short
        assert dtypes.name(np.dtype(given)) == given
    for function in (dtypes.name, dtypes.short_dtype_name):
        assert function(FRY) == str(FRY) == "key<fry>"
        assert function(dtypes.float0) == "float0"


@pytest.mark.parametrize(("given", "tangent", "inexact", "floating", "cplx", "numeric"), [
    ("bool", "float0", "float32", "float32", "complex64", "int32"),
    ("int8", "float0", "float32", "float32", "complex64", "int8"),
    ("uint64", "float0", "float64", "float64", "complex128", "uint64"),
    ("bfloat16", "bfloat16", "bfloat16", "bfloat16", "complex64", "bfloat16"),
    ("float64", "float64", "float64", "float64", "complex128", "float64"),
    ("complex64", "complex64", "complex64", "float32", "complex64", "complex64"),
    ("complex128", "complex128", "complex128", "float64", "complex128", "complex128"),
])
def test_related_dtypes(given: str, tangent: str, inexact: str, floating: str, cplx: str,
                        numeric: str) -> None:
    dtype = np.dtype(given)
    assert dtypes.name(dtypes.tangent_dtype(dtype)) == tangent
    assert dtypes.to_inexact_dtype(dtype) == np.dtype(inexact)
    assert dtypes.to_floating_dtype(dtype) == np.dtype(floating)
    assert dtypes.to_complex_dtype(dtype) == np.dtype(cplx)
    assert dtypes.to_numeric_dtype(dtype) == np.dtype(numeric)
    assert dtypes.tangent_dtype(FRY) == dtypes.float0


def test_public_module() -> None:
    assert issubclass(pyjx.dtypes.TypePromotionError, ValueError)
    assert issubclass(pyjx.dtypes.prng_key, np.generic)
    assert float(pyjx.dtypes.finfo("bfloat16").max) == (2 - 2**-7) * 2.0**127
    assert pyjx.dtypes.iinfo("int4").max == 7
    for name in pyjx.dtypes.__all__:
        assert hasattr(pyjx.dtypes, name)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy,
                                   copy.deepcopy])
def test_limits_can_be_copied(dtype: str, again: Any) -> None:
    found = pyjx.dtypes.finfo(dtype)
    assert isinstance(found, pyjx.dtypes.finfo)
    assert found is pyjx.dtypes.finfo(dtype) and again(found).max == found.max
