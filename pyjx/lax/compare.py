"""Comparisons, extrema, and the choice between arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import BUT_FIRST
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import Entries, agreed, mesh_of
from pyjx.core.primitive import ANY_WAY, CHEAP, Primitive, register
from pyjx.core.scalars import is_scalar_constant
from pyjx.engine.axes import at_front, batch_along, broadcast_in_dim, reduce_sum
from pyjx.engine.primitives import cast
from pyjx.engine.rules import elementwise_batch, jvp_by_operand, jvp_by_result, jvp_zero
from pyjx.engine.tangents import Zero, full_aval, instantiate, is_undefined_primal, zeros_like
from pyjx.engine.types import Avals, Dims, Operand, Rule, Tangent, Tangents, Value, Values
from pyjx.lax.bitwise import bitwise_and
from pyjx.lax.common import all_weak, check_same_dtypes, operand
from pyjx.lax.convert import complex, conj, imag, real
from pyjx.lax.elementwise import (
    COMPARABLE,
    FLOATING,
    NUMBER_OR_BOOL,
    ORDERED,
    REAL_OR_COMPLEX,
    check_kinds,
    differentiate_by_result,
    div,
    elementwise,
    floor,
    like,
    mul,
    neg,
    operands,
    real_dtype,
    stretch,
)

# -- comparisons -----------------------------------------------------------------------------------


def _comparison(name: str, kinds: str) -> Primitive:
    primitive = elementwise(name, kinds, kinds, out=np.bool_, cost=CHEAP)
    return primitive.define(jvp=jvp_zero(primitive))


eq_p = _comparison("eq", COMPARABLE)
ne_p = _comparison("ne", COMPARABLE)
ge_p = _comparison("ge", ORDERED)
gt_p = _comparison("gt", ORDERED)
le_p = _comparison("le", ORDERED)
lt_p = _comparison("lt", ORDERED)
# In the total order -nan < -inf < ... < -0 < +0 < ... < inf < nan, for sorting.
eq_to_p = _comparison("eq_to", COMPARABLE)
le_to_p = _comparison("le_to", ORDERED)
lt_to_p = _comparison("lt_to", ORDERED)


def _by_words(compare: Primitive) -> Rule:
    """How elements of an extended dtype, which are arrays of words, compare: by the number of words
    that differ."""

    def physical(avals: Avals, x: Value, y: Value) -> Array:
        differ = ne_p.bind(x, y)
        axes = range(avals[0].ndim, get_aval(differ).ndim)
        return compare.bind(reduce_sum(cast(differ, np.dtype(np.int32)), axes), np.int32(0))

    return physical


for _p in (eq_p, ne_p):
    _p.define(physical=_by_words(_p))


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x equals y, elementwise. Dtypes and shapes as for `lax.add`, but also bool.

    Args:
      x, y: arrays or numbers of one dtype, which may be boolean. Shapes are equal, but for axes of
        size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ, or the shapes do not broadcast.

    >>> import pyjx as jax
    >>> jax.lax.eq(jax.numpy.arange(3), 1).tolist()
    [False, True, False]
    """
    return eq_p.bind(*operands("eq", x, y))


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x differs from y, elementwise; true where one is nan.

    Args:
      x, y: arrays or numbers of one dtype, which may be boolean. Shapes are equal, but for axes of
        size 1; one may be a scalar. Nothing is promoted.

    >>> import pyjx as jax
    >>> bool(jax.lax.ne(1.0, 2.0))
    True
    """
    return ne_p.bind(*operands("ne", x, y))


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x >= y, elementwise; false where one is nan.

    Args:
      x, y: arrays or numbers of one boolean, integer or floating dtype; complex numbers have no
        order. Shapes are equal, but for axes of size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ or are complex, or the shapes do not broadcast.

    >>> import pyjx as jax
    >>> bool(jax.lax.ge(2.0, 2.0))
    True
    """
    return ge_p.bind(*operands("ge", x, y))


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x > y, elementwise; false where one is nan. Errors as for `ge`.

    Args:
      x, y: arrays or numbers of one boolean, integer or floating dtype; complex numbers have no
        order. Shapes are equal, but for axes of size 1; one may be a scalar. Nothing is promoted.

    >>> import pyjx as jax
    >>> bool(jax.lax.gt(2.0, 2.0))
    False
    """
    return gt_p.bind(*operands("gt", x, y))


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x <= y, elementwise; false where one is nan. Errors as for `ge`.

    Args:
      x, y: arrays or numbers of one boolean, integer or floating dtype; complex numbers have no
        order. Shapes are equal, but for axes of size 1; one may be a scalar. Nothing is promoted.

    >>> import pyjx as jax
    >>> bool(jax.lax.le(1.0, 2.0))
    True
    """
    return le_p.bind(*operands("le", x, y))


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x < y, elementwise; false where one is nan. Errors as for `ge`.

    Args:
      x, y: arrays or numbers of one boolean, integer or floating dtype; complex numbers have no
        order. Shapes are equal, but for axes of size 1; one may be a scalar. Nothing is promoted.

    >>> import pyjx as jax
    >>> bool(jax.lax.lt(1.0, 2.0))
    True
    """
    return lt_p.bind(*operands("lt", x, y))


is_finite_p = elementwise("is_finite", FLOATING, out=np.bool_, cost=CHEAP)
is_finite_p.define(jvp=jvp_zero(is_finite_p))


def is_finite(x: ArrayLike) -> Array:
    """Whether x is neither infinite nor nan.

    Args:
      x: an array or a number, of a floating dtype.

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> bool(jax.lax.is_finite(float("inf")))
    False
    """
    return is_finite_p.bind(operand("is_finite", x))


# -- extrema ---------------------------------------------------------------------------------------


def _share(x: Value, ans: Value, y: Value, beyond: Callable[..., Any]) -> Array:
    """The derivative of an extremum in x: 1 where x is it, shared where x and y both are."""
    aval = get_aval(ans)
    is_it = eq(x, ans) if dtypes.issubdtype(aval.dtype, np.complexfloating) else beyond(x, y)
    # to narrow floats truth values are converted by way of float32, and rounded
    whole = (cast(is_it, aval.dtype) if aval.dtype.itemsize >= 4 else
             select(is_it, full_aval(aval, 1), full_aval(aval, 0)))
    return select(eq(x, y), full_aval(aval, 0.5), whole)


def _extremum_jvp(primitive: Primitive, beyond: Callable[..., Any]) -> Rule:
    return jvp_by_result(
        primitive, lambda g, ans, x, y: mul(g, _share(x, ans, y, beyond)),
        lambda g, ans, x, y: mul(g, _share(y, ans, x, beyond)),
    )


max_p = elementwise("max", NUMBER_OR_BOOL, NUMBER_OR_BOOL, keeps_nans=True, cost=CHEAP)
min_p = elementwise("min", NUMBER_OR_BOOL, NUMBER_OR_BOOL, keeps_nans=True, cost=CHEAP)
max_p.define(jvp=_extremum_jvp(max_p, gt))
min_p.define(jvp=_extremum_jvp(min_p, lt))


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of x and y; nan where one is nan. Complex numbers are ordered by real part first.

    The derivative where they are equal is one half for each.

    Args:
      x, y: arrays or numbers of one dtype, which may be boolean. Shapes are equal, but for axes of
        size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ, or the shapes do not broadcast.

    >>> import pyjx as jax
    >>> jax.lax.max(jax.numpy.arange(3), 1).tolist()
    [1, 1, 2]
    """
    return max_p.bind(*operands("max", x, y))


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y; nan where one is nan. Complex numbers are ordered by real part first.

    The derivative where they are equal is one half for each.

    Args:
      x, y: arrays or numbers of one dtype, which may be boolean. Shapes are equal, but for axes of
        size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ, or the shapes do not broadcast.

    >>> import pyjx as jax
    >>> jax.lax.min(jax.numpy.arange(3), 1).tolist()
    [0, 1, 1]
    """
    return min_p.bind(*operands("min", x, y))


# -- clamp -----------------------------------------------------------------------------------------


def _clamp_shape(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
    check_kinds("clamp", (NUMBER_OR_BOOL,) * 3, (low, x, high))
    check_same_dtypes("clamp", low, x, high)
    for name, bound in (("min", low), ("max", high)):
        if bound.shape and bound.shape != x.shape:
            order = " The order of the arguments is clamp(min, x, max)." * (not x.shape)
            raise TypeError(f"clamp requires {name}.shape == operand.shape or {name}.shape == (), "
                            f"got {name}.shape={bound.shape}, operand.shape={x.shape}.{order}")
    return ShapedArray(x.shape, x.dtype, all_weak((low, x, high)))


def _inside(x: Value, low: Value, high: Value) -> Array:
    return bitwise_and(gt(x, low), lt(x, high))


clamp_p = register(Primitive("clamp", shape_rule=_clamp_shape, keeps_nans=True, cost=CHEAP))
# clamp is its operand between the bounds, and a bound where the operand is beyond it.
clamp_p.define(batch=elementwise_batch(clamp_p), jvp=jvp_by_operand(
    clamp_p,
    lambda g, low, x, high: select(
        stretch(_inside(low, x, high), get_aval(g).shape), g, zeros_like(g)),
    lambda g, low, x, high: select(_inside(x, low, high), g, zeros_like(g)),
    lambda g, low, x, high: select(lt(high, x), g, zeros_like(g)),
))


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """`x`, but `min` where it is less, and `max` where it is greater.

    Args:
      min: an array of the shape of `x`, or a scalar.
      x: an array of real numbers.
      max: an array of the shape of `x`, or a scalar.

    Raises:
      TypeError: the dtypes differ, or a bound has another shape.

    >>> import pyjx as jax
    >>> jax.lax.clamp(1, jax.numpy.arange(4), 2).tolist()
    [1, 1, 2, 2]
    """
    low, x, high = operand("clamp", min), operand("clamp", x, 1), operand("clamp", max, 2)
    shape = get_aval(x).shape
    low, high = [b if is_scalar_constant(b) or get_aval(b).shape else stretch(b, shape)
                 for b in (low, high)]
    return clamp_p.bind(low, x, high)


# -- select ----------------------------------------------------------------------------------------


def _select_shape(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if not dtypes.issubdtype(which.dtype, np.bool_) and \
            not dtypes.issubdtype(which.dtype, np.integer):
        raise TypeError(
            f"select `which` must be boolean or integer type, got {dtypes.name(which.dtype)}.")
    if which.dtype == np.bool_ and len(cases) > 2:
        raise TypeError("select with boolean `which` cannot have > 2 cases.")
    check_same_dtypes("select", *cases)
    shape = cases[0].shape
    if any(c.shape != shape for c in cases):
        raise TypeError(f"select cases must have the same shapes, got {[c.shape for c in cases]}.")
    if which.shape and which.shape != shape:
        raise TypeError("select `which` must be scalar or have the same shape as cases, got "
                        f"`which` shape {which.shape} but case shape {shape}.")
    return ShapedArray(shape, cases[0].dtype, all_weak(cases))


def _select_transpose(ct: Tangent, which: Operand, *cases: Operand) -> Any:
    if is_undefined_primal(which):  # it is not linear in it, as whoever called this will say
        return [None] * (1 + len(cases))
    zeros = full_aval(get_aval(ct), 0)

    def back(i: int) -> Any:
        return select_n_p.bind(which, *[ct if j == i else zeros for j in range(len(cases))])

    return [None, *[back(i) if is_undefined_primal(c) else None for i, c in enumerate(cases)]]


def _select_batch(operands: Values, dims: Dims) -> tuple[Value, int | None]:
    which, *cases = operands
    which_dim, *case_dims = dims
    if which_dim is None and len(set(case_dims)) == 1 and not get_aval(which).shape:
        return select_n_p.bind(*operands), case_dims[0]
    along = batch_along(operands, dims)
    cases = [at_front(c, d, along) for c, d in zip(cases, case_dims, strict=True)]
    if which_dim is None and not get_aval(which).shape:
        return select_n_p.bind(which, *cases), 0
    which = at_front(which, which_dim, along)
    if get_aval(which).ndim < get_aval(cases[0]).ndim:  # a scalar for each example
        which = broadcast_in_dim(which, get_aval(cases[0]).shape, (0,))
    elif get_aval(which).ndim > 1 and all(
            d is None and not c.shape for d, c in zip(case_dims, map(get_aval, operands[1:]),
                                                      strict=True)):
        # Numbers that are the same for every example are so for every element of it, too.
        cases = [broadcast_in_dim(c, get_aval(which).shape, (0,)) for c in cases]
    return select_n_p.bind(which, *cases), 0


def _select_sharding(out: ShapedArray, which: ShapedArray, *cases: ShapedArray) -> Entries:
    mesh = mesh_of([which, *cases])
    shardings = [str(c.place.sharding_along(mesh, c.ndim)) for c in cases]
    given = agreed(cases, "select cases must have the same shardings, got "
                   f"[{', '.join(shardings)}].")
    if not which.shape:
        return given
    return agreed([which, *cases], "select `which` must be scalar or have the same sharding as "
                  f"cases, got `which` sharding {which.place.sharding_along(mesh, which.ndim)} "
                  f"but case sharding {shardings[0]}.")


select_n_p = register(Primitive(
    "select_n", moves=True, shape_rule=_select_shape, sharding_rule=_select_sharding,
    transpose=_select_transpose, batch=_select_batch, linear=BUT_FIRST, cost=CHEAP,
))


def select_n(which: ArrayLike, *cases: Any) -> Array:
    """From each position, the element of the case whose number `which` gives.

    Args:
      which: integers, or booleans for two cases, of the shape of the cases; or a scalar. What
        numbers outside the range choose is not defined.
      *cases: arrays of one shape and dtype.

    Raises:
      ValueError: there are no cases.
      TypeError: shapes or dtypes do not agree; `which` is neither boolean nor integer.

    >>> import pyjx as jax
    >>> jnp = jax.numpy
    >>> jax.lax.select_n(jnp.array([True, False]), jnp.zeros(2), jnp.ones(2)).tolist()
    [1.0, 0.0]
    """
    if not cases:
        raise ValueError("select_n() must have at least one case")
    which = operand("select_n", which)
    return select_n_p.bind(which, *[operand("select_n", c, i) for i, c in enumerate(cases, 1)])


def select(pred: Any, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """`on_true` where `pred` holds, and `on_false` elsewhere.

    Args:
      pred: booleans, of the shape of the other arguments or a scalar.
      on_true: an array.
      on_false: an array of the same shape and dtype.

    Raises:
      TypeError: shapes or dtypes do not agree.

    >>> import pyjx as jax
    >>> jnp = jax.numpy
    >>> jax.lax.select(jnp.array([True, False]), jnp.zeros(2), jnp.ones(2)).tolist()
    [0.0, 1.0]
    """
    return select_n(pred, on_false, on_true)


# -- magnitude and sign ----------------------------------------------------------------------------


def _abs_tangent(g: Value, ans: Value, x: Value) -> Array:
    dtype = get_aval(x).dtype
    if not dtypes.issubdtype(dtype, np.complexfloating):
        return select(ge(x, like(x, 0)), g, neg(g))
    # d|z| = Re(conj(z) / |z| dz)
    size = cast(ans, dtype)
    size = select(eq(size, like(x, 0)), full_aval(get_aval(x), 1), size)
    return real(mul(g, div(conj(x), size)))


abs_p = elementwise("abs", "signedinteger, floating, complexfloating", out=real_dtype, cost=CHEAP,
                    keeps_nans=True)
differentiate_by_result(abs_p, _abs_tangent)


def abs(x: ArrayLike) -> Array:
    """|x|, of the real dtype for complex `x`.

    Args:
      x: an array or a number, of a signed integer, floating or complex dtype; of the latter the
        result is real.

    Raises:
      TypeError: `x` is boolean or unsigned.

    >>> import pyjx as jax
    >>> float(jax.lax.abs(3 + 4j))
    5.0
    """
    return abs_p.bind(operand("abs", x))


def _sign_jvp(primals: Values, tangents: Tangents) -> tuple[Value, Tangent]:
    (x,), (g,) = primals, tangents
    ans = sign_p.bind(x)
    if not dtypes.issubdtype(get_aval(x).dtype, np.complexfloating):
        return ans, Zero.of_primal(ans)
    # d(z / |z|) = i s Im(conj(s) dz) / |z|, where s = z / |z|
    size = abs(x)
    size = select(eq(size, like(size, 0)), full_aval(get_aval(size), 1), size)
    turn = div(imag(mul(conj(ans), instantiate(g))), size)
    return ans, mul(ans, complex(zeros_like(turn), turn))


sign_p = elementwise("sign", REAL_OR_COMPLEX, jvp=_sign_jvp, cost=CHEAP)


def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1 as `x` is negative, zero or positive; x / |x| for complex `x`, and 0 at 0.

    Args:
      x: an array or a number, of an integer, floating or complex dtype.

    >>> import pyjx as jax
    >>> jax.lax.sign(jax.numpy.array([-2.0, 0.0, 3.0])).tolist()
    [-1.0, 0.0, 1.0]
    """
    return sign_p.bind(operand("sign", x))


rem_p = elementwise("rem", "integer, floating", "integer, floating", compiled=ANY_WAY)
# rem(x, y) = x - y trunc(x / y), and trunc is constant almost everywhere
rem_p.define(jvp=jvp_by_operand(
    rem_p, lambda g, x, y: g,
    lambda g, x, y: mul(neg(g), mul(sign(div(x, y)), floor(abs(div(x, y))))),
))


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of x / y rounded toward zero: it has the sign of `x`, as C's fmod.

    Args:
      x, y: arrays or numbers of one integer or floating dtype. Shapes are equal, but for axes of
        size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ, or are boolean or complex; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> int(jax.lax.rem(-7, 3))
    -1
    """
    return rem_p.bind(*operands("rem", x, y))
