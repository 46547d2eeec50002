"""Elementwise operations: makers of their primitives, the checks of their operands, and arithmetic,
powers and rounding.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import EACH, FIRST, TOGETHER, on_results
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.bounded import kept
from pyjx.core.integers import as_int
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.primitive import CHEAP, DEAR, Primitive, register
from pyjx.core.scalars import is_scalar_constant, scalar_constant, scalar_of
from pyjx.engine.axes import broadcast_in_dim, broadcast_in_dim_p
from pyjx.engine.moves import number_beside
from pyjx.engine.primitives import cast
from pyjx.engine.rules import elementwise_batch, jvp_by_operand, jvp_by_result, jvp_zero
from pyjx.engine.tangents import (
    UndefinedPrimal,
    Zero,
    first_is_linear,
    full_aval,
    instantiate,
    is_undefined_primal,
    zeros_like,
)
from pyjx.engine.types import Rule, Tangent, Tangents, Value, Values
from pyjx.lax.common import all_weak, check_same_dtypes, joint_shape, nary_shape, operand
from pyjx.lax.shapes import squeeze

# -- makers and checks -----------------------------------------------------------------------------

# Which dtypes an operand may have, in the words of the error message.
REAL_OR_COMPLEX = "integer, floating, complexfloating"
INEXACT = "floating, complexfloating"
FLOATING = "floating"
COMPLEX = "complexfloating"
INTEGER = "integer"
INTEGER_OR_BOOL = "integer, bool"
ORDERED = "integer, floating, bool"
NUMBER_OR_BOOL = "integer, floating, complexfloating, bool"
COMPARABLE = "integer, floating, complexfloating, bool, extended"
ANY = "any"

_CLASSES: dict[str, Any] = {
    "integer": np.integer, "signedinteger": np.signedinteger, "floating": np.floating,
    "complexfloating": np.complexfloating, "bool": np.bool_, "float32": np.float32,
    "float64": np.float64, "extended": dtypes.extended,
}
# What asks for the sign of integers is for those of whole bytes, as platforms have it.
_NARROW = frozenset(d for d in dtypes.integer_dtypes if dtypes.itemsize_bits(d) < 8)


@kept(4096, "dtypes that operations take")
def accepts(kinds: str, dtype: DTypeLike | None) -> bool:
    """Whether `dtype` is of one of the `kinds`, a list such as `integer, bool`."""
    return kinds == ANY or any(
        dtypes.issubdtype(dtype, _CLASSES[k]) for k in kinds.split(", ")
        if not (k == "signedinteger" and dtype in _NARROW))


def check_kinds(name: str, kinds: tuple[str, ...], avals: tuple[ShapedArray, ...]) -> None:
    """Raise TypeError unless each operand's dtype is of the kinds at its position."""
    for i, (kind, aval) in enumerate(zip(kinds, avals, strict=True)):
        if not accepts(kind, aval.dtype):
            at = f" at position {i}" if len(kinds) > 1 else ""
            if aval.dtype == dtypes.float0:
                raise dtypes.float0_error(name, at)
            rest = f"Accepted dtypes{at} are subtypes of {kind}."
            if kind == INTEGER_OR_BOOL and aval.dtype in dtypes.floating_dtypes:
                rest += " Compare floats, as x > 0, or convert them: jnp.asarray(x, int)."
            elif aval.dtype == dtypes.bool_dtype and name in _OF_BOOLEANS:
                rest += f" Of booleans take {_OF_BOOLEANS[name]}, or jnp.asarray(x, int)."
            elif aval.dtype in dtypes.floating_dtypes and kind == "integer":
                rest += " Convert floats: jnp.asarray(x, int)."
            elif "floating" in kind and not (dtypes.issubdtype(aval.dtype, np.inexact)
                                             or dtypes.is_extended(aval.dtype)):
                rest += " Convert integers and booleans: jnp.asarray(x, float)."
            if "signedinteger" in kind and aval.dtype in _NARROW:
                rest = "Those of fewer than 8 bits are for storage and basic arithmetic; cast them."
            raise TypeError(f"{name} does not accept dtype {dtypes.name(aval.dtype)}{at}. {rest}")


_OF_BOOLEANS = {"neg": "~x", "sub": "x ^ y"}


elementwise_names: set[str] = set()  # of those that the next function has made


def elementwise(name: str, *kinds: str, out: Any = None, same_dtypes: bool = True, **rules: Any
               ) -> Primitive:
    """An elementwise primitive with an operand of each of the `kinds`.

    `out` gives the result's dtype from that of the first operand: a function, a dtype, or None
    where it is the same.
    """

    def shape_rule(*avals: ShapedArray, **params: Any) -> ShapedArray:
        check_kinds(name, kinds, avals)
        if same_dtypes and len(avals) > 1:
            check_same_dtypes(name, *avals)
        dtype = avals[0].dtype
        if out is not None:
            dtype = out(dtype) if callable(out) and not isinstance(out, type) else np.dtype(out)
        return ShapedArray(nary_shape(name, avals), dtype, all_weak(avals))

    elementwise_names.add(name)
    primitive = register(Primitive(name, shape_rule=shape_rule, **rules))
    return primitive.define(batch=elementwise_batch(primitive))


def differentiate(primitive: Primitive, tangent: Callable[[Value, Value], Value]) -> None:
    """Give a primitive of one operand its derivative, `tangent(g, x)`."""
    primitive.define(jvp=jvp_by_operand(primitive, lambda g, x, **_: tangent(g, x)))


def differentiate_by_result(primitive: Primitive, tangent: Callable[[Value, Value, Value], Value]
                           ) -> None:
    """Give a primitive of one operand a derivative that reads the result, `tangent(g, ans, x)`."""
    primitive.define(jvp=jvp_by_result(primitive, lambda g, ans, x, **_: tangent(g, ans, x)))


def real_dtype(dtype: DTypeLike | None) -> Any:
    """The dtype of the real part; real dtypes are their own."""
    return _REAL.get(dtype, dtype)


def complex_dtype(dtype: DTypeLike | None) -> Any:
    """The complex dtype whose parts have this dtype."""
    return _COMPLEX.get(dtype, dtype)


_REAL = {np.dtype("complex64"): np.dtype("float32"), np.dtype("complex128"): np.dtype("float64")}
_COMPLEX = {real: cplx for cplx, real in _REAL.items()}


# -- operands of public functions ------------------------------------------------------------------


def stretch(x: ArrayLike, shape: tuple[int, ...]) -> Any:
    """`x` broadcast to `shape`, which fits, by NumPy's rules.

    Raises:
      ValueError: `x` has more axes.
    """
    old = get_aval(x).shape
    if old == shape:
        return x
    offset = len(shape) - len(old)
    if offset < 0:
        raise ValueError(f"Cannot broadcast to shape with fewer dimensions: arr_shape={old} "
                         f"shape={shape}")
    kept = [i for i, n in enumerate(old) if n == shape[offset + i]]
    if len(kept) < len(old):  # axes of size 1 that are stretched are dropped, then made anew
        x = squeeze(x, [i for i in range(len(old)) if i not in kept])
    return broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=tuple([offset + i for i in kept]), sharding=None)


def broadcast_operands(name: str, *operands: Any) -> tuple[Any, ...]:
    """The operands of an elementwise operation, brought to one shape.

    NumPy and Python scalars stay as they are: they become literals, which go with any shape.
    """
    avals = [get_aval(x) for x in operands]
    shape = avals[0].shape
    for a in avals:
        if a.shape != shape:
            break
    else:
        return operands
    got = ", ".join([str(a.shape) for a in avals])
    ranks = {a.ndim for a in avals if a.shape}
    if len(ranks) > 1:
        raise TypeError(f"{name}: arrays must have the same number of dimensions, got {ranks}, in "
                        f"shapes {got}. Put axes of size 1 in front by lax.expand_dims, or use "
                        "jax.numpy, which broadcasts.")
    try:
        shape = joint_shape(tuple([a.shape for a in avals]))
    except ValueError:
        raise TypeError(f"{name} got incompatible shapes for broadcasting: {got}.") from None
    return tuple([x if is_scalar_constant(x) else stretch(
        x if a.shape else number_beside(x, avals), shape)
        for x, a in zip(operands, avals, strict=True)])


def operands(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Any, ...]:
    """The operands of a binary operation: of one dtype, and brought to one shape."""
    x, y = operand(name, x), operand(name, y, 1)
    a, b = get_aval(x), get_aval(y)
    if a.dtype != b.dtype:
        check_same_dtypes(name, a, b)
    return (x, y) if a.shape == b.shape else broadcast_operands(name, x, y)


def in_single(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arrays of one shape, computed in float32 for dtypes that are narrower."""

    def wrapped(*xs: Value) -> Array:
        shape = max([get_aval(x).shape for x in xs], key=len)
        xs = tuple([x if get_aval(x).shape == shape else broadcast_in_dim(x, shape, ())
                    for x in xs])
        aval = get_aval(xs[0])
        if aval.dtype.itemsize >= 4:
            return fun(*xs)
        single = np.dtype(np.float32)
        return cast(fun(*[cast(x, single) for x in xs]), aval.dtype, aval.weak_type)

    return wrapped


def like(x: Value, value: ArrayLike) -> Any:
    """The number `value` with the type of `x`, as a scalar that jaxprs show inline."""
    return scalar_of(get_aval(x), value)


def coefficient(x: ArrayLike, value: ArrayLike) -> Any:
    """A number in the derivative by `x`: of a weak type only where `x` is a weakly typed scalar.

    So the derivative by a weakly typed array is of no weak type, as in JAX.
    """
    aval = get_aval(x)
    return like(x, value) if aval.shape == () else scalar_constant(value, aval.dtype)


# -- transpose rules -------------------------------------------------------------------------------


def transpose_unary(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The transpose of a linear operation of one operand: `rule(ct, aval, **params)`."""
    return lambda ct, x, **params: (rule(ct, x.aval, **params),)


def transpose_nary(*rules: Callable[..., Any] | None) -> Callable[..., Any]:
    """The transpose of an operation that is linear in some operands, with one rule for each.

    A rule is `(ct, *operands, **params) -> cotangent`.
    """
    return lambda ct, *xs, **params: [
        None if rule is None or not is_undefined_primal(x) else rule(ct, *xs, **params)
        for rule, x in zip(rules, xs, strict=True)]


# -- sums and products -----------------------------------------------------------------------------

neg_p = elementwise("neg", REAL_OR_COMPLEX, linear=TOGETHER, cost=CHEAP, keeps_nans=True)
neg_p.define(transpose=transpose_unary(lambda ct, x: neg(ct)))


def neg(x: ArrayLike) -> Array:
    """-x. Unsigned integers wrap around.

    Args:
      x: an array or a number, of an integer, floating or complex dtype.

    Raises:
      TypeError: `x` is boolean.

    >>> import pyjx as jax
    >>> float(jax.lax.neg(2.0))
    -2.0
    """
    return neg_p.bind(operand("neg", x))


def _sum_jvp(primitive: Primitive, second: Callable[[Value], Value]) -> Rule:
    # d(x ± y) = dx ± dy, in one operation
    def jvp(primals: Values, tangents: Tangents) -> tuple[Value, Tangent]:
        out = primitive.bind(*primals)
        dx, dy = tangents
        if type(dx) is Zero:
            return out, Zero.of_primal(out) if type(dy) is Zero else second(dy)
        return out, dx if type(dy) is Zero else primitive.bind(dx, dy)

    return jvp


add_p = elementwise("add", REAL_OR_COMPLEX, REAL_OR_COMPLEX, linear=TOGETHER, cost=CHEAP)
add_p.define(jvp=_sum_jvp(add_p, lambda dy: dy),
             transpose=transpose_nary(lambda ct, x, y: ct, lambda ct, x, y: ct))


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y.

    The arguments have one dtype, other than bool, and equal shapes up to axes of size 1; a scalar
    goes with any shape.

    Args:
      x, y: arrays or numbers of one integer, floating or complex dtype. Shapes are equal, but for
        axes of size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ or are boolean, or the shapes do not broadcast.

    >>> import pyjx as jax
    >>> jax.lax.add(jax.numpy.arange(3), 10).tolist()
    [10, 11, 12]
    """
    return add_p.bind(*operands("add", x, y))


sub_p = elementwise("sub", REAL_OR_COMPLEX, REAL_OR_COMPLEX, linear=TOGETHER, cost=CHEAP)
sub_p.define(jvp=_sum_jvp(sub_p, neg),
             transpose=transpose_nary(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)))


def sub(x: Value, y: Value) -> Array:
    """x - y. Dtypes and shapes as for `add`.

    Args:
      x, y: arrays or numbers of one integer, floating or complex dtype. Shapes are equal, but for
        axes of size 1; one may be a scalar. Nothing is promoted.

    >>> import pyjx as jax
    >>> int(jax.lax.sub(5, 3))
    2
    """
    return sub_p.bind(*operands("sub", x, y))


def _mul_shape(x: ShapedArray, y: ShapedArray, *, out_dtype: dtypes.DType = None) -> ShapedArray:
    check_kinds("mul", (REAL_OR_COMPLEX, REAL_OR_COMPLEX), (x, y))
    if x.dtype != y.dtype and out_dtype is None:
        raise TypeError(f"mul: expected equal dtypes, got {x.dtype} and {y.dtype}")
    dtype = x.dtype if out_dtype is None else dtypes.canonicalize_dtype(out_dtype)
    return ShapedArray(nary_shape("mul", (x, y)), dtype, all_weak((x, y)))


mul_p = register(Primitive("mul", shape_rule=_mul_shape, linear=EACH, cost=CHEAP))
# d(x y) = dx y + x dy
mul_p.define(
    batch=elementwise_batch(mul_p),
    jvp=jvp_by_operand(
        mul_p, lambda g, x, y, out_dtype=None: mul_p.bind(g, y, out_dtype=out_dtype),
        lambda g, x, y, out_dtype=None: mul_p.bind(x, g, out_dtype=out_dtype),
    ),
    transpose=lambda ct, x, y, out_dtype=None: (
        (_mul_back(ct, x, y), None) if first_is_linear("mul", x, y)
        else (None, _mul_back(ct, y, x))),
)


def _mul_back(ct: Tangent, linear: UndefinedPrimal, other: Value) -> Tangent:
    wide = get_aval(ct).dtype  # that of the product, which may have an `out_dtype`
    out = mul_p.bind(ct, other, out_dtype=None if get_aval(other).dtype is wide else wide)
    return out if linear.aval.dtype is wide else cast(out, linear.aval.dtype)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """x * y. Dtypes and shapes as for `add`.

    Args:
      x: an array.
      y: an array.
      out_dtype: the dtype in which to multiply, and of the result, whatever those of the operands
        are; by default theirs.

    >>> import pyjx as jax
    >>> float(jax.lax.mul(1.5, 2.0))
    3.0
    """
    if out_dtype is None:
        return mul_p.bind(*operands("mul", x, y), out_dtype=None)
    x, y = broadcast_operands("mul", operand("mul", x), operand("mul", y, 1))
    out_dtype = np.dtype(dtypes.check_and_canonicalize_user_dtype(out_dtype, "mul"))
    return mul_p.bind(x, y, out_dtype=out_dtype)


div_p = elementwise("div", REAL_OR_COMPLEX, REAL_OR_COMPLEX, linear=FIRST, cost=DEAR)


def _div_jvp(primals: Values, tangents: Tangents) -> tuple[Value, Tangent]:
    """d(x / y) = (dx - dy (x / y)) / y: of what is kept for a backward pass, one is the result."""
    x, y = primals
    dx, dy = tangents
    out = div_p.bind(x, y)
    if type(dy) is Zero:
        return out, Zero.of_primal(out) if type(dx) is Zero else div(dx, y)
    dy = mul(dy, out)
    return out, div(neg(dy) if type(dx) is Zero else sub(dx, dy), y)


div_p.define(jvp=_div_jvp, transpose=transpose_nary(lambda ct, x, y: div(ct, y), None))


def div(x: ArrayLike, y: Value) -> Array:
    """x / y; of integers, rounded toward zero. Dtypes and shapes as for `add`.

    Integer division by zero gives -1 (all bits set), and the overflow -2^(n-1) / -1 its dividend.

    Args:
      x, y: arrays or numbers of one integer, floating or complex dtype. Shapes are equal, but for
        axes of size 1; one may be a scalar. Nothing is promoted.

    >>> import pyjx as jax
    >>> int(jax.lax.div(-7, 2)), float(jax.lax.div(1.0, 4.0))
    (-3, 0.25)
    """
    return div_p.bind(*operands("div", x, y))


# -- powers ----------------------------------------------------------------------------------------


def _integer_pow_shape(x: ShapedArray, *, y: int) -> ShapedArray:
    check_kinds("integer_pow", (REAL_OR_COMPLEX,), (x,))
    if y < 0 and dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(
            f"Integers cannot be raised to negative powers, got integer_pow({x.str_short()}, {y})")
    return x


def _integer_pow_tangent(g: Value, x: Value, *, y: int) -> Value:
    # d x^y = y x^(y-1) dx
    if y == 0:
        return zeros_like(g)
    power = x if y == 2 else integer_pow(x, y - 1) if y != 1 else None
    return g if power is None else mul(mul(coefficient(x, y), g), power)


def by_squaring(product: Callable[[Any, Any], Any], x: Any, n: int) -> Any:
    """The product of n factors x; None for n = 0.

    >>> import operator
    >>> by_squaring(operator.mul, 3, 4)
    81
    """
    result = None
    while n:
        if n & 1:
            result = x if result is None else product(result, x)
        n >>= 1
        x = product(x, x) if n else x
    return result


def _integer_pow_by_squaring(x: Value, *, y: int) -> Array:
    if y == 0:
        return full_aval(get_aval(x), 1)
    result = by_squaring(mul, x, -y if y < 0 else y)
    return div(like(result, 1), result) if y < 0 else result


def _integer_pow_arithmetic(eqn: JaxprEqn) -> tuple[float, float]:
    """A product for each squaring, and for each bit of the exponent behind the first; a quotient
    of a negative one."""
    y = abs(eqn.params["y"])
    steps = y.bit_length() + y.bit_count() - 2 if y else 0
    return on_results(eqn) * (steps + (eqn.params["y"] < 0)), 0.0


integer_pow_p = register(Primitive(
    "integer_pow", arithmetic=_integer_pow_arithmetic, shape_rule=_integer_pow_shape,
    decomposition=_integer_pow_by_squaring, cost=DEAR,
))
integer_pow_p.define(batch=elementwise_batch(integer_pow_p),
                     jvp=jvp_by_operand(integer_pow_p, _integer_pow_tangent))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to the power `y`, a Python integer, by repeated squaring.

    Args:
      x: an array or a number, of an integer, floating or complex dtype.
      y: the exponent, a Python int; a negative one is for floating and complex dtypes.

    Raises:
      TypeError: `x` is boolean, `y` is not an integer, or `x` is an integer and `y` negative.

    >>> import pyjx as jax
    >>> int(jax.lax.integer_pow(3, 4))
    81
    """
    return integer_pow_p.bind(operand("integer_pow", x), y=as_int("integer_pow", "y", y))


def reciprocal(x: ArrayLike) -> Array:
    """1 / x.

    Args:
      x: an array or a number, of a floating or complex dtype.

    Raises:
      TypeError: `x` is not of an inexact dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.reciprocal(4.0))
    0.25
    """
    return integer_pow(x, -1)


square_p = elementwise("square", REAL_OR_COMPLEX, cost=CHEAP)
# d x^2 = 2 x dx
differentiate(square_p, lambda g, x: mul(mul(coefficient(x, 2), g), x))


def square(x: ArrayLike) -> Array:
    """x * x.

    Args:
      x: an array or a number, of an integer, floating or complex dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.square(3.0))
    9.0
    """
    return square_p.bind(operand("square", x))


one_minus_square_p = elementwise(
    "one_minus_square", REAL_OR_COMPLEX,
    decomposition=lambda x: mul(add(like(x, 1), x), sub(like(x, 1), x)),
)
# d(1 - x^2) = -2 x dx
differentiate(one_minus_square_p, lambda g, x: mul(mul(coefficient(x, -2), g), x))


def one_minus_square(x: ArrayLike) -> Array:
    """1 - x^2, as (1 + x)(1 - x), which is exact to rounding near 1 too.

    Args:
      x: an array or a number, of an integer, floating or complex dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.one_minus_square(0.5))
    0.75
    """
    return one_minus_square_p.bind(operand("one_minus_square", x))


# -- rounding --------------------------------------------------------------------------------------


class RoundingMethod(enum.IntEnum):
    """What `round` does with numbers halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


floor_p = elementwise("floor", FLOATING, cost=CHEAP, keeps_nans=True)
ceil_p = elementwise("ceil", FLOATING, cost=CHEAP, keeps_nans=True)
round_p = elementwise("round", FLOATING, cost=CHEAP, keeps_nans=True)
for _p in (floor_p, ceil_p, round_p):
    _p.define(jvp=jvp_zero(_p))


def floor(x: ArrayLike) -> Array:
    """The largest integer that is not above `x`, as a float.

    Args:
      x: an array or a number, of a floating dtype.

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.floor(-1.5))
    -2.0
    """
    return floor_p.bind(operand("floor", x))


def ceil(x: ArrayLike) -> Array:
    """The smallest integer that is not below `x`, as a float.

    Args:
      x: an array or a number, of a floating dtype.

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.ceil(-1.5))
    -1.0
    """
    return ceil_p.bind(operand("ceil", x))


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer, as a float.

    Args:
      x: an array of a floating dtype.
      rounding_method: what to do with numbers halfway between two integers.

    Raises:
      TypeError: `x` is not of a floating dtype.
      ValueError: there is no such rounding method.

    >>> import pyjx as jax
    >>> float(jax.lax.round(2.5)), float(jax.lax.round(2.5, jax.lax.RoundingMethod.TO_NEAREST_EVEN))
    (3.0, 2.0)
    """
    if type(rounding_method) is not RoundingMethod:
        try:
            rounding_method = RoundingMethod(rounding_method)
        except ValueError as error:
            raise ValueError(f"round: rounding_method: {error}") from None
    return round_p.bind(operand("round", x), rounding_method=rounding_method)


nextafter_p = elementwise("nextafter", FLOATING, FLOATING, keeps_nans=True)
# The neighbour of x moves as x does.
nextafter_p.define(jvp=jvp_by_operand(nextafter_p, lambda g, x, y: g, None))


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The floating point number next to `x1` in the direction of `x2`.

    Args:
      x1, x2: from where and in which direction: arrays or numbers of one floating dtype. Shapes are
        equal, but for axes of size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> bool(jax.lax.nextafter(1.0, 2.0) > 1.0)
    True
    """
    return nextafter_p.bind(*operands("nextafter", x1, x2))


# -- polynomials -----------------------------------------------------------------------------------


def horner(x: Value, *coeffs: Value, unroll: int | None = None) -> Array:
    total: Any = coeffs[-1]
    for c in reversed(coeffs[:-1]):
        total = add(mul(total, x), c)
    return total if len(coeffs) > 1 else add(zeros_like(x), total)


def _polynomial_shape(x: ShapedArray, *coeffs: ShapedArray, unroll: int | None = None
                      ) -> ShapedArray:
    avals = (x, *coeffs)
    check_kinds("polynomial", (REAL_OR_COMPLEX,) * len(avals), avals)
    for c in coeffs:
        if c.dtype != x.dtype:
            raise TypeError(f"polynomial: expected coefficients of dtype {x.dtype}, got {c.dtype}")
    return ShapedArray(nary_shape("polynomial", avals), x.dtype, x.weak_type)


def _polynomial_jvp(primals: Any, tangents: Tangents, *, unroll: int | None = None
                    ) -> tuple[Value, Tangent]:
    x, *coeffs = primals
    dx, *dcoeffs = tangents
    out = polynomial_p.bind(x, *coeffs, unroll=unroll)
    total: Any = None
    if type(dx) is not Zero and len(coeffs) > 1:
        # d/dx sum c_k x^k = sum k c_k x^(k-1)
        derived = [like(x, k * c) if is_scalar_constant(c) else mul(like(x, k), c)
                   for k, c in enumerate(coeffs[1:], 1)]
        total = mul(dx, polynomial_p.bind(x, *derived, unroll=unroll))
    if any(type(d) is not Zero for d in dcoeffs):
        along = horner(x, *[instantiate(d) for d in dcoeffs])
        total = along if total is None else add(total, along)
    return out, Zero.of_primal(out) if total is None else total


polynomial_p = register(Primitive(
    "polynomial", shape_rule=_polynomial_shape, jvp=_polynomial_jvp, decomposition=horner))
polynomial_p.define(batch=elementwise_batch(polynomial_p))


def polynomial(x: ArrayLike, coeffs: Any, *, unroll: int | None = None) -> Array:
    """The polynomial c_0 + c_1 x + ... + c_n x^n, by Horner's rule.

    Args:
      x: an array.
      coeffs: the coefficients (c_0, ..., c_n): a sequence of scalars or of arrays that broadcast
        with `x`, or one array whose leading axis counts them. They are cast to the dtype of `x`.
      unroll: how many terms the program may hold written out; accepted for compatibility.

    Raises:
      TypeError: `x` is boolean.

    >>> import pyjx as jax
    >>> float(jax.lax.polynomial(3.0, [1.0, 5.0, 2.0]))
    34.0
    """
    if unroll is not None and as_int("polynomial", "unroll", unroll) < 0:
        raise ValueError(f"polynomial: unroll must not be negative, got {unroll}")
    x = operand("polynomial", x)
    dtype = get_aval(x).dtype
    if not accepts(REAL_OR_COMPLEX, dtype):
        check_kinds("polynomial", (REAL_OR_COMPLEX,), (get_aval(x),))
    terms = [scalar_constant(c, dtype) if isinstance(c, (int, float)) else
             operand("polynomial", c, i) for i, c in enumerate(_unstacked(coeffs), 1)]
    if not terms:
        return broadcast_in_dim(like(x, 0), get_aval(x).shape, ())
    beside_arrays = get_aval(x).ndim or not all(map(is_scalar_constant, terms))
    terms = [c if get_aval(c).dtype == dtype else cast(c, dtype) for c in terms]
    if any(get_aval(c).shape != get_aval(x).shape for c in terms):
        x, *terms = broadcast_operands("polynomial", x, *terms)
    if beside_arrays:  # which are of strong type
        x = cast(x, dtype)
    return polynomial_p.bind(x, *terms, unroll=unroll)


def _unstacked(coeffs: Any) -> Values:
    """The coefficients as a list; NumPy's scalars stay scalars."""
    if isinstance(coeffs, (list, tuple)):
        return coeffs
    shape = get_aval(operand("polynomial", coeffs, 1)).shape
    if not shape:
        raise TypeError("polynomial: coeffs must be a sequence or an array of coefficients, "
                        f"got the scalar {coeffs}")
    return [coeffs[i] for i in range(shape[0])]
