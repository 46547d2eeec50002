"""Samples of the elementwise operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from pyjx import lax
from pyjx.ad_checkpoint import checkpoint_name
from pyjx.core.primitive import find_primitive
from pyjx.lax import transcendental
from tests.op_table import Sample

_rng = np.random.default_rng(0)
F32, F16, BF16 = (np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16))
C64, I32, U8, I8, BOOL = (np.dtype(t) for t in (np.complex64, np.int32, np.uint8, np.int8, bool))
_ROUNDING = {F16: 2e-3, BF16: 2e-2}


def array(shape: tuple[int, ...], dtype: Any = F32, low: float = -2.0, high: float = 2.0) -> Any:
    """Numbers from an interval (of both parts, for complex dtypes)."""
    if dtype == BOOL:
        return _rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        first = 0 if dtype.kind == "u" and low < 0 else int(low)
        return _rng.integers(first, int(high) + 1, shape).astype(dtype)
    values = _rng.uniform(low, high, shape)
    if dtype.kind == "c":
        values = values + 1j * _rng.uniform(low, high, shape)
    return np.asarray(values).astype(dtype)


def samples(
    name: str, fun: Callable[..., Any], reference: Callable[..., Any], arity: int = 1, *,
    dtypes: tuple[Any, ...] = (F32, BF16), low: float = -2.0, high: float = 2.0,
    diff: bool | tuple[int, ...] = True, rtol: float | None = None, label: str = "",
) -> list[Sample]:
    """One sample a dtype, and for the first dtype also a scalar and an array without elements."""
    out = []
    shapes: list[tuple[Any, tuple[int, ...]]] = [(dtypes[0], ()), (dtypes[0], (0, 3))]
    shapes += [(d, (3, 5)) for d in dtypes]
    for dtype, shape in shapes:
        args = tuple([array(shape, dtype, low, high) for _ in range(arity)])
        narrow = dtype in _ROUNDING

        def wide(*xs: Any, narrow: bool = narrow, dtype: Any = dtype) -> Any:
            if not narrow:
                return reference(*xs)
            out = reference(*[x.astype(np.float32) for x in xs])
            return out.astype(dtype) if out.dtype == np.float32 else out

        out.append(Sample(
            name, fun, args, wide, diff=False if narrow else diff,
            rtol=_ROUNDING.get(dtype, rtol), atol=_ROUNDING.get(dtype),
            id=f"{label or name}-{dtype.name}{list(shape)}".replace(" ", ""),
        ))
    return out


def _unary_samples() -> list[Sample]:
    real = (F32, BF16, F16)
    both = (F32, C64, BF16)
    table: list[tuple[str, Any, dict[str, Any]]] = [
        ("abs", np.abs, {"dtypes": (F32, C64, I32, BF16)}),
        ("ceil", np.ceil, {"dtypes": real}),
        ("floor", np.floor, {"dtypes": real}),
        ("neg", np.negative, {"dtypes": (F32, C64, I32, U8, F16)}),
        ("sign", _sign, {"dtypes": (F32, C64, I32, U8)}),
        ("square", np.square, {"dtypes": (F32, C64, I32, BF16)}),
        ("one_minus_square", lambda x: (1 + x) * (1 - x), {"dtypes": (F32, C64, I32)}),
        ("cos", np.cos, {"dtypes": both}), ("sin", np.sin, {"dtypes": both}),
        ("tan", np.tan, {"dtypes": both, "low": -1.2, "high": 1.2}),
        ("acos", np.arccos, {"dtypes": both, "low": -0.9, "high": 0.9}),
        ("asin", np.arcsin, {"dtypes": both, "low": -0.9, "high": 0.9}),
        ("atan", np.arctan, {"dtypes": both, "low": 0.1, "high": 0.8}),
        ("cosh", np.cosh, {"dtypes": both}), ("sinh", np.sinh, {"dtypes": both}),
        ("tanh", np.tanh, {"dtypes": both, "low": -1.2, "high": 1.2}),
        ("acosh", np.arccosh, {"dtypes": both, "low": 1.1, "high": 3.0}),
        ("asinh", np.arcsinh, {"dtypes": both, "low": 0.2, "high": 2.0}),
        ("atanh", np.arctanh, {"dtypes": both, "low": -0.9, "high": 0.9}),
        ("exp", np.exp, {"dtypes": both}), ("expm1", np.expm1, {"dtypes": both}),
        ("exp2", np.exp2, {"dtypes": (F32, BF16)}),
        ("exp2", lambda x: np.exp(x * np.float32(np.log(2))), {"dtypes": (C64,)}),
        ("log", np.log, {"dtypes": both, "low": 0.3, "high": 3.0}),
        ("log1p", np.log1p, {"dtypes": both, "low": -0.6, "high": 2.0}),
        ("log2", lambda x: np.log(x) / np.float32(np.log(2)),
         {"dtypes": both, "low": 0.3, "high": 3.0}),
        ("logistic", lambda x: 1 / (1 + np.exp(-x)), {"dtypes": both}),
        ("sqrt", np.sqrt, {"dtypes": both, "low": 0.3, "high": 3.0}),
        ("rsqrt", lambda x: 1 / np.sqrt(x), {"dtypes": both, "low": 0.3, "high": 3.0}),
        ("cbrt", np.cbrt, {"dtypes": real, "low": 0.3, "high": 3.0}),
        ("is_finite", np.isfinite, {"dtypes": real}),
        ("real", np.real, {"dtypes": (C64,)}), ("imag", np.imag, {"dtypes": (C64,)}),
        ("conj", lambda x: np.conj(x).astype(C64), {"dtypes": (C64, F32)}),
        ("population_count", lambda x: np.bitwise_count(x).astype(x.dtype),
         {"dtypes": (I32, U8), "high": 100}),
        ("clz", lambda x: _leading_zeros(x), {"dtypes": (I32, U8), "high": 100}),
    ]
    out = []
    for name, reference, options in table:
        out += samples(name, getattr(lax, name), reference, **options)
    out += samples("not", lax.bitwise_not, np.invert, dtypes=(I32, BOOL, U8))
    out += samples("integer_pow", lax.reciprocal, lambda x: 1 / x, low=0.3, dtypes=(F32, C64),
                   label="reciprocal")
    out += samples("logistic_grad", transcendental.logistic_grad_p.bind,
                   lambda x: 1 / (1 + np.exp(-x)) / (1 + np.exp(x)), dtypes=(F32, F16, BF16))
    out += samples("tanh_grad", transcendental.tanh_grad_p.bind, lambda x: 1 - np.tanh(x) ** 2,
                   dtypes=(F32, F16, BF16), low=-1.2, high=1.2)
    out += samples("cos", lambda x: lax.cos(x, accuracy=lax.AccuracyMode.HIGHEST), np.cos,
                   label="accurate")
    out += samples("exp", lambda x: lax.exp(x, accuracy=lax.Tolerance(rtol=1e-6)), np.exp,
                   label="tolerant")
    return out


def _sign(x: Any) -> Any:
    return x / np.abs(x) if x.dtype.kind == "c" else np.sign(x)


def _leading_zeros(x: Any) -> Any:
    bits = x.dtype.itemsize * 8
    return np.vectorize(lambda n: bits - (int(n) % 2**bits).bit_length(), otypes=[x.dtype])(x)


def _divide(x: Any, y: Any) -> Any:
    return np.trunc(x / y).astype(x.dtype) if x.dtype.kind in "iu" else x / y


def _binary_samples() -> list[Sample]:
    numbers = (F32, C64, I32, U8, BF16)
    every = (F32, C64, I32, BOOL, F16)
    ordered = (F32, I32, BOOL, BF16)
    bits = (I32, BOOL, U8)
    table: list[tuple[str, Any, Any, dict[str, Any]]] = [
        ("add", lax.add, np.add, {"dtypes": numbers}),
        ("sub", lax.sub, np.subtract, {"dtypes": numbers}),
        ("mul", lax.mul, np.multiply, {"dtypes": numbers}),
        ("div", lax.div, _divide, {"dtypes": numbers, "low": 1.0, "high": 3.0}),
        ("rem", lax.rem, np.fmod, {"dtypes": (F32, I32, U8), "low": 1.0, "high": 4.0}),
        ("pow", lax.pow, np.power, {"dtypes": (F32, C64), "low": 0.5, "high": 2.0}),
        ("max", lax.max, np.maximum, {"dtypes": every}),
        ("min", lax.min, np.minimum, {"dtypes": every}),
        ("atan2", lax.atan2, np.arctan2, {"dtypes": (F32, BF16)}),
        ("nextafter", lax.nextafter, np.nextafter, {"dtypes": (F32,), "diff": False}),
        ("eq", lax.eq, np.equal, {"dtypes": every}),
        ("ne", lax.ne, np.not_equal, {"dtypes": every}),
        ("ge", lax.ge, np.greater_equal, {"dtypes": ordered}),
        ("gt", lax.gt, np.greater, {"dtypes": ordered}),
        ("le", lax.le, np.less_equal, {"dtypes": ordered}),
        ("lt", lax.lt, np.less, {"dtypes": ordered}),
        ("eq_to", lax.eq_to_p.bind, np.equal, {"dtypes": every}),
        ("le_to", lax.le_to_p.bind, np.less_equal, {"dtypes": ordered}),
        ("lt_to", lax.lt_to_p.bind, np.less, {"dtypes": ordered}),
        ("and", lax.bitwise_and, np.bitwise_and, {"dtypes": bits, "high": 50}),
        ("or", lax.bitwise_or, np.bitwise_or, {"dtypes": bits, "high": 50}),
        ("xor", lax.bitwise_xor, np.bitwise_xor, {"dtypes": bits, "high": 50}),
        ("shift_left", lax.shift_left, np.left_shift, {"dtypes": (I32, U8), "low": 0, "high": 6}),
        ("shift_right_arithmetic", lax.shift_right_arithmetic, np.right_shift,
         {"dtypes": (I32, I8), "low": 0, "high": 6}),
        ("shift_right_logical", lax.shift_right_logical, np.right_shift,
         {"dtypes": (I32, U8), "low": 0, "high": 6}),
        ("mulhi", lax.mulhi, _high_product, {"dtypes": (I32, I8, U8), "low": -120, "high": 120}),
        ("complex", lax.complex, lambda x, y: (x + 1j * y).astype(C64), {"dtypes": (F32,)}),
    ]
    out = []
    for name, fun, reference, options in table:
        out += samples(name, fun, reference, 2, **options)
    x = np.array([-np.nan, -np.inf, -0.0, 0.0, np.inf, np.nan], F32)
    for name, op in (("le_to", np.less_equal), ("lt_to", np.less)):
        pairs = np.repeat(x, x.size), np.tile(x, x.size)
        out.append(Sample(name, getattr(lax, f"{name}_p").bind, pairs,
                          lambda a, b, op=op: op(_rank(a), _rank(b)), diff=False, id=f"{name}-nan"))
    return out


def _rank(x: Any) -> Any:
    """Integers in the total order of float32 numbers."""
    bits = x.view(np.int32)
    return np.where(bits < 0, ~bits ^ np.int32(-(2**31)), bits)


def _high_product(x: Any, y: Any) -> Any:
    bits = x.dtype.itemsize * 8
    return ((x.astype(np.int64) * y.astype(np.int64)) >> bits).astype(x.dtype)


def _other_samples() -> list[Sample]:
    out = []
    for y in (-3, -1, 0, 1, 2, 3, 7):
        out += samples("integer_pow", lambda x, y=y: lax.integer_pow(x, y),
                       lambda x, y=y: x ** np.float32(y) if x.dtype.kind == "f" else x ** y,
                       low=0.5, dtypes=(F32, C64) + ((I32,) if y >= 0 else ()),
                       label=f"integer_pow({y})")
    x, y, z = (array((3, 5)) for _ in range(3))
    integers = array((3, 5), I32, 0, 2)
    positive = array((3, 5), F32, 0.5, 2.0)
    mask = array((3, 5), BOOL)
    out += [
        Sample("pow", lambda x: lax.pow(x, 0.5), (positive,), np.sqrt, id="pow-constant"),
        Sample("pow", lambda x: lax.pow(x, 0), (x,), np.ones_like, id="pow-zero"),
        Sample("pow", lax.pow, (x, integers), lambda x, n: x ** n.astype(F32), diff=(0,),
               id="pow-integers"),
        Sample("pow", lambda y: lax.pow(2.0, y), (y,), np.exp2, id="pow-of-constant"),
        Sample("add", lambda x: lax.add(x, 1.5), (x,), lambda x: x + F32.type(1.5),
               id="add-scalar"),
        Sample("add", lambda x, y: lax.add(x, y), (x, F32.type(2)), np.add, id="add-rank-0"),
        Sample("mul", lambda x: lax.mul(2.0, x), (x,), lambda x: 2 * x, id="mul-scalar"),
        Sample("mul", lambda x, y: lax.mul(x, y, out_dtype=np.float32),
               (x.astype(F16), y.astype(F16)), lambda x, y: x.astype(F32) * y.astype(F32),
               diff=False, id="mul-out_dtype"),
        Sample("max", lambda x: lax.max(x, 0.0), (x,), lambda x: np.maximum(x, 0), id="max-scalar"),
        Sample("sub", lax.sub, (x[:, :1], y[:1]), np.subtract, id="sub-stretched"),
        Sample("clamp", lambda lo, x, hi: lax.clamp(lo, x, hi), (x, y, x + np.float32(1)), _clamp,
               id="clamp"),
        Sample("clamp", lambda x: lax.clamp(-0.5, x, 1.0), (x,),
               lambda x: np.clip(x, F32.type(-0.5), F32.type(1)), id="clamp-scalars"),
        Sample("clamp", lax.clamp, (np.int32(0), array((4,), I32, -5, 9), np.int32(3)),
               lambda lo, x, hi: np.clip(x, lo, hi), id="clamp-int32"),
        Sample("clamp", lax.clamp, (mask, mask[::-1].copy(), np.bool_(False)),
               lambda lo, x, hi: (x | lo) & hi, diff=False, id="clamp-bool"),
        Sample("select_n", lax.select_n, (mask, x, y), lambda m, x, y: np.where(m, y, x),
               id="select_n-bool"),
        Sample("select_n", lax.select_n, (integers, x, y, z),
               lambda i, *cs: np.choose(i, cs), id="select_n-int32"),
        Sample("select_n", lax.select_n, (np.bool_(True), x, y), lambda m, x, y: y,
               id="select_n-scalar"),
        Sample("select_n", lax.select_n, (np.int32(0), x), lambda i, x: x, id="select_n-one-case"),
        Sample("select_n", lax.select, (mask, array((3, 5), C64), array((3, 5), C64)), np.where,
               id="select-complex64"),
        Sample("optimization_barrier", lambda x, y: lax.optimization_barrier((x, y)), (x, integers),
               lambda x, y: (x, y), id="optimization_barrier"),
        Sample("name", lambda x: checkpoint_name(x, "x"), (x,), lambda x: x, id="name"),
        Sample("copy", lax.copy_p.bind, (x,), lambda x: x, id="copy"),
        Sample("copy", lax.copy_p.bind, (integers,), lambda x: x, id="copy-int32"),
        Sample("stop_gradient", lax.stop_gradient, (integers,), lambda x: x, id="stop_gradient"),
        Sample("stop_gradient", lambda x: lax.mul(lax.stop_gradient(x), x), (x,), np.square,
               diff=False, id="stop_gradient-product"),
        Sample("tie", _tie, (x, y), lambda x, y: y, id="tie"),
        Sample("reduce_precision", lambda x: lax.reduce_precision(x, 8, 7), (x,),
               lambda x: x.astype(BF16).astype(F32), diff=False, id="reduce_precision"),
        Sample("polynomial", lambda x: lax.polynomial(x, [1.0, -2.0, 0.5]), (x,),
               lambda x: 1 - 2 * x + x * x / 2, id="polynomial"),
        Sample("polynomial", lambda x, a, b: lax.polynomial(x, (a, b, 3.0)), (x, y, z),
               lambda x, a, b: a + b * x + 3 * x * x, id="polynomial-arrays"),
        Sample("polynomial", lambda x: lax.polynomial(x, [2.0]), (x,),
               lambda x: np.full_like(x, 2), id="polynomial-constant"),
        Sample("polynomial", lambda x: lax.polynomial(x, [1, 2]), (integers,),
               lambda x: 1 + 2 * x, id="polynomial-int32"),
    ]
    for mode, reference in (
        (lax.RoundingMethod.AWAY_FROM_ZERO, lambda x: np.trunc(x + np.copysign(F32.type(0.5), x))),
        (lax.RoundingMethod.TO_NEAREST_EVEN, np.round),
    ):
        halves = np.array([-2.5, -1.5, -0.4, 0.0, 0.5, 1.5, 2.6], F32)
        out.append(Sample("round", lambda x, mode=mode: lax.round(x, mode), (halves,), reference,
                          diff=False, id=f"round-{mode.name}"))
    return out + _conversions()


def _clamp(low: Any, x: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


def _tie(x: Any, y: Any) -> Any:
    return find_primitive("tie").bind(x, y)


def _conversions() -> list[Sample]:
    out = []
    for before in (F32, BF16, C64, I32, U8, BOOL):
        for after in (F32, F16, C64, I32, U8, BOOL):
            if before == after or (before == C64 and after != BOOL):
                continue
            low = 0.0 if after == U8 else -2.0
            x = array((3, 5), before, low, 2.0)
            out.append(Sample(
                "convert_element_type",
                (lambda x, after=after: lax.convert_element_type(x, after)) if before != C64 else
                (lambda x, after=after: lax.convert_element_type_p.bind(  # the function warns
                    x, new_dtype=np.dtype(after), weak_type=False, sharding=None)), (x,),
                lambda x, after=after: x.astype(after),
                diff=before == F32 and after in (F32, C64),
                id=f"convert-{before.name}-{after.name}",
            ))
    return out


SAMPLES = [*_unary_samples(), *_binary_samples(), *_other_samples()]
