"""Elementwise operations: most are one operation of StableHLO or CHLO."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from lowering import rules
from lowering.builder import Block, in_avals, out_aval
from lowering.types import tensor_type
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn

rule = partial(rules.rule, elementwise=True)

_UNARY = {
    "ceil": "ceil", "clz": "count_leading_zeros", "exp": "exponential",
    "expm1": "exponential_minus_one", "floor": "floor", "log": "log", "log1p": "log_plus_one",
    "neg": "negate", "not": "not", "population_count": "popcnt",
    "rsqrt": "rsqrt", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh", "cbrt": "cbrt",
}
_CHLO_UNARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cosh", "digamma", "erf",
    "erf_inv", "erfc",
)
_BINARY = {
    "add": "add", "add_any": "add", "and": "and", "atan2": "atan2", "complex": "complex",
    "div": "divide", "max": "maximum", "min": "minimum", "or": "or", "rem": "remainder",
    "shift_left": "shift_left", "shift_right_arithmetic": "shift_right_arithmetic",
    "shift_right_logical": "shift_right_logical", "sub": "subtract", "xor": "xor",
}
_COMPARISONS = {"eq": "EQ", "ne": "NE", "ge": "GE", "gt": "GT", "le": "LE", "lt": "LT"}


def is_complex(aval: ShapedArray) -> bool:
    return dtypes.issubdtype(aval.dtype, np.complexfloating)


def is_float(aval: ShapedArray) -> bool:
    return dtypes.issubdtype(aval.dtype, np.floating)


def result_accuracy(accuracy: Any) -> str:
    """The attribute for an `accuracy` parameter: a mode (an enum), a tolerance, or None."""
    if accuracy is None:
        return ""
    mode = getattr(accuracy, "name", "TOLERANCE")
    bounds = ""
    if mode == "TOLERANCE":
        bounds = f"atol = {accuracy.atol:e}, rtol = {accuracy.rtol:e}, ulps = {accuracy.ulps}, "
    return (f" {{result_accuracy = #stablehlo.result_accuracy<{bounds}"
            f"mode = #stablehlo.result_accuracy_mode<{mode}>>}}")


def _unary(op: str) -> rules.Emit:
    def emit(b: Block, eqn: JaxprEqn, x: str) -> str:
        attribute = result_accuracy(eqn.params["accuracy"]) if "accuracy" in eqn.params else ""
        return b.line(f"stablehlo.{op} {x}{attribute} : {tensor_type(out_aval(eqn))}")

    return emit


def _chlo(op: str) -> rules.Emit:
    def emit(b: Block, eqn: JaxprEqn, *operands: str) -> str:
        t = tensor_type(out_aval(eqn))
        return b.line(f"chlo.{op} {', '.join(operands)} : {', '.join([t] * len(operands))} -> {t}")

    return emit


def _binary(op: str) -> rules.Emit:
    return lambda b, eqn, x, y: combined(b, f"stablehlo.{op}", x, y, out_aval(eqn))


def _of_two_dtypes(op: str) -> rules.Emit:
    """An operation whose operands may have dtypes of their own."""
    def emit(b: Block, eqn: JaxprEqn, *operands: str) -> str:
        out = out_aval(eqn)
        x, y = [z if aval.dtype == out.dtype else b.convert(z, aval.update(shape=out.shape), out)
                for z, aval in zip(operands, in_avals(eqn), strict=True)]
        return b.binary(f"stablehlo.{op}", x, y, out)

    return emit


def comparison_kind(aval: ShapedArray, total_order: bool = False) -> str:
    if is_float(aval) or is_complex(aval):
        return "TOTALORDER" if total_order and is_float(aval) else "FLOAT"
    signed = dtypes.issubdtype(aval.dtype, np.signedinteger)
    return "SIGNED" if signed else "UNSIGNED"


def _compare(direction: str, total_order: bool) -> rules.Emit:
    def emit(b: Block, eqn: JaxprEqn, x: str, y: str) -> str:
        aval = in_avals(eqn)[0].update(shape=out_aval(eqn).shape)
        return b.compare(direction, x, y, aval, comparison_kind(aval, total_order))

    return emit


def _with_sign(b: Block, x: str, of: str, aval: ShapedArray) -> str:
    """The size of `x` with the sign of `of`, which a zero has too."""
    size = aval.dtype.itemsize * 8
    bits = aval.update(dtype=np.dtype(f"uint{size}"))
    t, u = tensor_type(aval), tensor_type(bits)
    x, of = (b.line(f"stablehlo.bitcast_convert {y} : ({t}) -> {u}") for y in (x, of))
    x = b.binary("stablehlo.and", x, b.constant(2 ** (size - 1) - 1, bits), bits)
    of = b.binary("stablehlo.and", of, b.constant(2 ** (size - 1), bits), bits)
    joined = b.binary("stablehlo.or", x, of, bits)
    return b.line(f"stablehlo.bitcast_convert {joined} : ({u}) -> {t}")


# On which side of a cut a complex number is, a zero tells by its sign, for which XLA does not ask:
# which part of the result (0 is the real one) has the sign of the same part of the operand, or the
# opposite one.
_CUTS = {"sqrt": (1, False), "asin": (1, False), "acos": (1, True), "acosh": (1, False),
         "asinh": (0, False), "atan": (0, False), "atanh": (1, False)}


def _on_cuts(name: str, emit_value: rules.Emit) -> rules.Emit:
    part, opposite = _CUTS[name]

    def emit(b: Block, eqn: JaxprEqn, x: str) -> str:
        out, value = out_aval(eqn), emit_value(b, eqn, x)
        if not is_complex(out):
            return value
        own, both = part_aval(out), list(parts(b, value, out))
        sign = parts(b, x, out)[part]
        sign = b.unary("stablehlo.negate", sign, own) if opposite else sign
        both[part] = _with_sign(b, both[part], sign, own)
        return b.binary("stablehlo.complex", both[0], both[1], out)

    return emit


def _sinh(b: Block, eqn: JaxprEqn, x: str) -> str:
    out, value = out_aval(eqn), _chlo("sinh")(b, eqn, x)
    if not is_complex(out):
        return value
    # sinh(x) cos(y) where exponentials of x would cancel
    own = part_aval(out)
    t = tensor_type(own)
    (real, imag), (whole, rest) = parts(b, x, out), parts(b, value, out)
    small = b.compare("LT", b.unary("stablehlo.abs", real, own), b.constant(1, own), own, "FLOAT")
    near = b.binary("stablehlo.multiply", b.line(f"chlo.sinh {real} : {t} -> {t}"),
                    b.unary("stablehlo.cosine", imag, own), own)
    return b.binary("stablehlo.complex", b.select(small, near, whole, own), rest, out)


for _name, _op in _UNARY.items():
    _emit = _unary(_op)
    rule(_name)(_on_cuts(_name, _emit) if _name in _CUTS else _emit)
for _name in _CHLO_UNARY:
    _emit = _chlo(_name)
    rule(_name)(_on_cuts(_name, _emit) if _name in _CUTS else _emit)
rule("sinh")(_sinh)
for _name, _op in _BINARY.items():
    rule(_name, widens=True)(_binary(_op))
rule("mul", widens=True)(_of_two_dtypes("multiply"))
rule("pow", widens=True)(_of_two_dtypes("power"))
rule("nextafter", widens=True)(_chlo("next_after"))
for _name, _op in _COMPARISONS.items():
    rule(_name, widens=True)(_compare(_op, False))
for _name in ("eq", "le", "lt"):
    rule(f"{_name}_to", widens=True)(_compare(_COMPARISONS[_name], True))


@rule("square")
def _square(b: Block, eqn: JaxprEqn, x: str) -> str:
    out = out_aval(eqn)
    if is_complex(out):  # which takes care of intermediate overflow
        return b.line(f"chlo.square {x} : {tensor_type(out)} -> {tensor_type(out)}")
    return b.binary("stablehlo.multiply", x, x, out)


def combined(b: Block, op: str, x: str, y: str, aval: ShapedArray) -> str:
    """A binary operation of StableHLO; the greater or the lesser of two complex numbers is that
    by the real parts or, where these are equal, by the imaginary ones."""
    if op[10:] not in ("maximum", "minimum") or not is_complex(aval):
        return b.binary(op, x, y, aval)
    direction = "GT" if op.endswith("maximum") else "LT"
    part = part_aval(aval)
    (x_re, x_im), (y_re, y_im) = parts(b, x, aval), parts(b, y, aval)
    same = b.compare("EQ", x_re, y_re, part, "FLOAT")
    by_re = b.compare(direction, x_re, y_re, part, "FLOAT")
    by_im = b.compare(direction, x_im, y_im, part, "FLOAT")
    takes_x = b.select(same, by_im, by_re, aval.update(dtype=np.dtype(bool)))
    return b.select(takes_x, x, y, aval)


def part_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the parts of complex numbers."""
    return aval.update(dtype=np.dtype("float32" if aval.dtype == np.complex64 else "float64"))


def parts(b: Block, z: str, aval: ShapedArray) -> tuple[str, str]:
    """The real and the imaginary part of complex numbers."""
    types = f"({tensor_type(aval)}) -> {tensor_type(part_aval(aval))}"
    return b.line(f"stablehlo.real {z} : {types}"), b.line(f"stablehlo.imag {z} : {types}")


@rule("abs")
def _abs(b: Block, eqn: JaxprEqn, x: str) -> str:
    (aval,) = in_avals(eqn)
    size: str = _unary_of_other_type(b, eqn, x)
    if not is_complex(aval):
        return size
    # |z| is infinite where a part is, even if the other one is nan; stablehlo.abs divides them.
    part = out_aval(eqn)
    infinity = b.constant(np.inf, part)
    for p in parts(b, x, aval):
        p = b.unary("stablehlo.abs", p, part)
        size = b.select(b.compare("EQ", p, infinity, part, "FLOAT"), infinity, size, part)
    return size


@rule("sin", "cos")
def _sin_or_cos(b: Block, eqn: JaxprEqn, z: str) -> str:
    out = out_aval(eqn)
    attribute = result_accuracy(eqn.params.get("accuracy"))
    is_sin = eqn.primitive.name == "sin"
    if not is_complex(out):
        op = "sine" if is_sin else "cosine"
        return b.line(f"stablehlo.{op} {z}{attribute} : {tensor_type(out)}")
    # sin(x + iy) = sin x cosh y + i cos x sinh y and cos(x + iy) = cos x cosh y - i sin x sinh y,
    # with sinh exact near 0, and without 0 * inf on the axes.
    part = part_aval(out)
    t = tensor_type(part)
    x, y = parts(b, z, out)
    zero = b.constant(0, part)
    sine = b.line(f"stablehlo.sine {x}{attribute} : {t}")
    cosine = b.line(f"stablehlo.cosine {x}{attribute} : {t}")
    cosh = b.line(f"chlo.cosh {y} : {t} -> {t}")
    sinh = b.line(f"chlo.sinh {y} : {t} -> {t}")
    re = b.binary("stablehlo.multiply", sine if is_sin else cosine, cosh, part)
    im = b.binary("stablehlo.multiply", cosine if is_sin else sine, sinh, part)
    if not is_sin:
        im = b.unary("stablehlo.negate", im, part)
    on_axis = b.compare("EQ", x, zero, part, "FLOAT")
    if is_sin:
        re = b.select(on_axis, x, re, part)
    else:
        im = b.select(on_axis, zero, im, part)
    return b.binary("stablehlo.complex", re, im, out)


@rule("real", "imag", "is_finite")
def _unary_of_other_type(b: Block, eqn: JaxprEqn, x: str) -> str:
    (aval,) = in_avals(eqn)
    out = out_aval(eqn)
    name = eqn.primitive.name
    if aval.dtype == out.dtype:
        return b.unary(f"stablehlo.{name}", x, out)
    return b.line(f"stablehlo.{name} {x} : ({tensor_type(aval)}) -> {tensor_type(out)}")


@rule("conj")
def _conj(b: Block, eqn: JaxprEqn, x: str) -> str:
    (aval,) = in_avals(eqn)
    out = out_aval(eqn)
    if is_complex(aval):
        re, im = parts(b, x, aval)
        im = b.unary("stablehlo.negate", im, part_aval(aval))
    else:
        re, im = x, b.constant(0, aval)
    return b.binary("stablehlo.complex", re, im, out)


@rule("sign")
def _sign(b: Block, eqn: JaxprEqn, x: str) -> str:
    aval = out_aval(eqn)
    if not dtypes.issubdtype(aval.dtype, np.unsignedinteger):
        return b.unary("stablehlo.sign", x, aval)
    zero = b.constant(0, aval)
    is_zero = b.compare("EQ", x, zero, aval, "UNSIGNED")
    return b.select(is_zero, zero, b.constant(1, aval), aval)


@rule("round")
def _round(b: Block, eqn: JaxprEqn, x: str) -> str:
    kind = ("afz", "even")[int(eqn.params["rounding_method"])]
    return b.unary(f"stablehlo.round_nearest_{kind}", x, out_aval(eqn))


@rule("clamp", widens=True)
def _clamp(b: Block, eqn: JaxprEqn, low: str, x: str, high: str) -> str:
    aval = out_aval(eqn)
    if aval.dtype == np.bool_:  # of which XLA has no clamp where programs are compiled quickly
        return b.binary("stablehlo.and", b.binary("stablehlo.or", x, low, aval), high, aval)
    return b.line(f"stablehlo.clamp {low}, {x}, {high} : {tensor_type(aval)}")


@rule("select_n")
def _select_n(b: Block, eqn: JaxprEqn, which: str, *cases: str) -> str:
    pred, *_ = in_avals(eqn)
    out = out_aval(eqn)
    if len(cases) == 1:
        return cases[0]
    types = f"{tensor_type(pred.update(dtype=np.dtype(bool)))}, {tensor_type(out)}"
    if pred.dtype == np.bool_:
        return b.line(f"stablehlo.select {which}, {cases[1]}, {cases[0]} : {types}")
    kind = comparison_kind(pred)

    def choose(first: int, last: int) -> str:
        """A binary search for the case, among those from `first` to before `last`."""
        if last - first == 1:
            return cases[first]
        middle = (first + last) // 2
        below = b.compare("LT", which, b.constant(middle, pred), pred, kind)
        low, high = choose(first, middle), choose(middle, last)
        return b.line(f"stablehlo.select {below}, {low}, {high} : {types}")

    return choose(0, len(cases))


@rule("convert_element_type")
def _convert(b: Block, eqn: JaxprEqn, x: str) -> str:
    (aval,) = in_avals(eqn)
    out = out_aval(eqn)
    if aval.dtype == out.dtype:
        return x
    if is_complex(aval) and not is_complex(out):
        if out.dtype == np.bool_:
            return b.compare("NE", x, b.constant(0, aval), aval, "FLOAT")
        x, aval = parts(b, x, aval)[0], part_aval(aval)
    if out.dtype == np.bool_:
        return b.compare("NE", x, b.constant(0, aval), aval, comparison_kind(aval))
    return b.convert(x, aval, out)


@rule("reduce_precision")
def _reduce_precision(b: Block, eqn: JaxprEqn, x: str) -> str:
    bits = f"e{eqn.params['exponent_bits']}m{eqn.params['mantissa_bits']}"
    return b.line(f"stablehlo.reduce_precision {x}, format = {bits} : {tensor_type(out_aval(eqn))}")


@rule("copy", "stop_gradient")
def _identity(b: Block, eqn: JaxprEqn, x: str) -> str:
    return x


@rule("tie")
def _tie(b: Block, eqn: JaxprEqn, x: str, y: str) -> str:
    return y


@rule("optimization_barrier")
def _optimization_barrier(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    types = ", ".join([tensor_type(a) for a in in_avals(eqn)])
    return b.multi(f"stablehlo.optimization_barrier {', '.join(operands)} : {types}", len(operands))
