"""Makers of elementwise primitives, and the checks of their public functions' operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.primitive import Primitive, register
from pyjx.core.scalars import is_scalar_constant, scalar_constant, scalar_of
from pyjx.engine.axes import broadcast_in_dim_p
from pyjx.engine.moves import number_beside
from pyjx.engine.rules import elementwise_batch, jvp_by_operand, jvp_by_result
from pyjx.engine.tangents import Zero, is_undefined_primal
from pyjx.engine.types import Operand, Tangent, Tangents, Value
from pyjx.lax.common import all_weak, check_same_dtypes, joint_shape, nary_shape, operand
from pyjx.lax.shapes import squeeze

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
_accepted = BoundedDict(4096, "dtypes that operations take")


def accepts(kinds: str, dtype: DTypeLike | None) -> bool:
    """Whether `dtype` is of one of the `kinds`, a list such as `integer, bool`."""
    found = _accepted.get((kinds, dtype))
    if found is None:
        found = _accepted[kinds, dtype] = kinds == ANY or any(
            dtypes.issubdtype(dtype, _CLASSES[k]) for k in kinds.split(", ")
            if not (k == "signedinteger" and dtype in _NARROW)
        )
    return found


def check_kinds(name: str, kinds: tuple[str, ...], avals: tuple[ShapedArray, ...]) -> None:
    """Raise TypeError unless each operand's dtype is of the kinds at its position."""
    for i, (kind, aval) in enumerate(zip(kinds, avals, strict=True)):
        if not accepts(kind, aval.dtype):
            at = f" at position {i}" if len(kinds) > 1 else ""
            if aval.dtype == dtypes.float0:
                raise dtypes.float0_error(name, at)
            rest = f"Accepted dtypes{at} are subtypes of {kind}."
            if "signedinteger" in kind and aval.dtype in _NARROW:
                rest = "Those of fewer than 8 bits are for storage and basic arithmetic; cast them."
            raise TypeError(f"{name} does not accept dtype {dtypes.name(aval.dtype)}{at}. {rest}")


elementwise_names: set[str] = set()  # of those that the next function has made


def elementwise(
    name: str, *kinds: str, out: Any = None, same_dtypes: bool = True, **rules: Any
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


def differentiate_by_result(
    primitive: Primitive, tangent: Callable[[Value, Value, Value], Value],
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

    def transpose(ct: Tangent, x: Operand, **params: Any) -> Tangents:
        return (Zero(x.aval) if type(ct) is Zero else rule(ct, x.aval, **params),)

    return transpose


def transpose_nary(*rules: Callable[..., Any] | None) -> Callable[..., Any]:
    """The transpose of an operation that is linear in some operands, with one rule for each.

    A rule is `(ct, *operands, **params) -> cotangent`.
    """

    def transpose(ct: Tangent, *xs: Operand, **params: Any) -> Any:
        return [
            None if rule is None or not is_undefined_primal(x)
            else Zero(x.aval) if type(ct) is Zero else rule(ct, *xs, **params)
            for rule, x in zip(rules, xs, strict=True)
        ]

    return transpose
