"""Changes of dtype, parts of complex numbers, constants, and identities that mark something."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import LAST, TOGETHER, nothing
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.integers import as_int, as_sizes
from pyjx.core.layouts import ShardingLike
from pyjx.core.primitive import CHEAP, ON_PURPOSE, Primitive, register, vary_like
from pyjx.core.scalars import int_fits, is_scalar_constant, scalar_constant
from pyjx.core.trace import Tracer
from pyjx.engine.axes import broadcast_in_dim
from pyjx.engine.primitives import cast, optimization_barrier_p
from pyjx.engine.primitives import convert_element_type_p as convert_element_type_p
from pyjx.engine.primitives import reduce_precision_p as reduce_precision_p
from pyjx.engine.rules import elementwise_batch, jvp_zero
from pyjx.engine.tangents import Zero, full_aval, is_undefined_primal
from pyjx.engine.types import Value
from pyjx.jaxlib_api import Sharding
from pyjx.lax.common import host_converted, operand, warn_of_complex
from pyjx.lax.elementwise import (
    ANY,
    COMPLEX,
    FLOATING,
    check_kinds,
    complex_dtype,
    elementwise,
    neg,
    operands,
    real_dtype,
    transpose_nary,
    transpose_unary,
)
from pyjx.runtime.resharding import placed, sharding_like
from pyjx.tree_util import tree_flatten, tree_map, tree_unflatten

# -- conversion of dtypes --------------------------------------------------------------------------


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike | None) -> Array:
    """The operand with another dtype.

    Floats become integers by rounding toward zero, and anything becomes bool by comparison with 0.
    Of complex numbers the real part is taken, with a ComplexWarning, unless the dtype is complex.

    Args:
      operand: an array or scalar.
      new_dtype: a dtype, or what NumPy makes one of. 64-bit dtypes stand for 32-bit ones unless
        x64 is enabled.

    Raises:
      TypeError: there is no such dtype, or arrays cannot have it.
      ValueError: `new_dtype` is None.

    >>> import pyjx as jax
    >>> int(jax.lax.convert_element_type(2.7, "int32"))
    2
    """
    x = _operand("convert_element_type", operand)
    if new_dtype is None:
        raise ValueError("convert_element_type: new_dtype must be specified, got None")
    dtype = dtypes.check_and_canonicalize_user_dtype(new_dtype, "convert_element_type")
    aval = get_aval(x)
    if aval.dtype == dtypes.float0:
        return full(aval.shape, 0, dtype)
    if dtypes.is_extended(aval.dtype) or dtypes.is_extended(dtype):
        if aval.dtype == dtype:
            return x
        return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False, sharding=None)
    if aval.dtype in dtypes.complex_dtypes and dtype not in dtypes.complex_dtypes:
        warn_of_complex()
        if isinstance(x, np.ndarray | np.generic):
            x = x.real if dtype != np.bool_ else x != 0
        elif not is_scalar_constant(x):
            x = real(x)
        aval = get_aval(x)
    if _loses(x, aval, dtype) or (
            is_scalar_constant(x) and aval.dtype not in dtypes.complex_dtypes):
        x = host_converted(x, dtype)
    if is_scalar_constant(x):
        return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False, sharding=None)
    return cast(x, dtype)


def _loses(x: ArrayLike, aval: ShapedArray, dtype: dtypes.DType) -> bool:
    """Whether the dtype that a host value has as an operand holds less of it than the wanted one
    may: it is then converted from what it is."""
    if type(x) is int:
        return not int_fits(x, aval)
    if type(x) is float:
        return dtype == np.bool_ or dtype in dtypes.integer_dtypes
    return isinstance(x, np.generic | np.ndarray) and x.dtype != aval.dtype


_operand = operand


def _precision_shape(x: ShapedArray, *, exponent_bits: int, mantissa_bits: int) -> ShapedArray:
    check_kinds("reduce_precision", (FLOATING,), (x,))
    return x


# Almost everywhere a step function, but its tangents are rounded as it rounds.
reduce_precision_p.define(shape_rule=_precision_shape, batch=elementwise_batch(reduce_precision_p),
    transpose=transpose_unary(lambda ct, x, **bits: reduce_precision_p.bind(ct, **bits)),
)


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """The operand rounded to a format with fewer bits; its dtype stays.

    Args:
      operand: an array of a floating dtype.
      exponent_bits: how many bits the exponent keeps, at least 1.
      mantissa_bits: how many bits the fraction keeps, at least 0.

    Raises:
      TypeError: `operand` is not of a floating dtype.
      ValueError: there are too few bits.

    >>> import pyjx as jax
    >>> float(jax.lax.reduce_precision(1.1, 5, 2))
    1.0
    """
    exponent_bits = as_int("reduce_precision", "exponent_bits", exponent_bits)
    mantissa_bits = as_int("reduce_precision", "mantissa_bits", mantissa_bits)
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}")
    return reduce_precision_p.bind(_operand("reduce_precision", operand),
                                   exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


# -- complex numbers -------------------------------------------------------------------------------
#
# Cotangents of complex numbers are such that <ct, z> = Re(ct z), without conjugation.

_PARTS = "float32, float64"

complex_p = elementwise("complex", _PARTS, _PARTS, out=complex_dtype, arithmetic=nothing,
                        linear=TOGETHER, cost=CHEAP, keeps_nans=True)
real_p = elementwise("real", COMPLEX, moves=True, out=real_dtype, linear=TOGETHER, cost=CHEAP)
imag_p = elementwise("imag", COMPLEX, moves=True, out=real_dtype, linear=TOGETHER, cost=CHEAP)


# Re(ct (x + iy)) = Re(ct) x - Im(ct) y
complex_p.define(
    transpose=transpose_nary(lambda ct, x, y: real(ct), lambda ct, x, y: neg(imag(ct))))


def _zero(ct: Value) -> Array:
    """Never of a weak type, so that no cotangent of a complex number is."""
    aval = get_aval(ct)
    return full_aval(aval, 0) if aval.place.is_open else scalar_constant(0, aval.dtype)


# ct Re(z) = Re(ct z)
real_p.define(transpose=transpose_unary(lambda ct, z: complex(ct, _zero(ct))))
# ct Im(z) = Re(-i ct z)
imag_p.define(transpose=transpose_unary(lambda ct, z: complex(_zero(ct), neg(ct))))


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """x + iy.

    Args:
      x, y: real and imaginary parts, both float32 or both float64. Shapes are equal, but for axes
        of size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes are not both float32 or both float64; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> jax.lax.complex(1.0, 2.0).item()
    (1+2j)
    """
    return complex_p.bind(*operands("complex", x, y))


def real(x: ArrayLike) -> Array:
    """The real part.

    Args:
      x: an array or a number, of a complex dtype; the result has the floating dtype of its parts.

    Raises:
      TypeError: `x` is not complex.

    >>> import pyjx as jax
    >>> float(jax.lax.real(1 + 2j))
    1.0
    """
    return real_p.bind(operand("real", x))


def imag(x: ArrayLike) -> Array:
    """The imaginary part.

    Args:
      x: an array or a number, of a complex dtype; the result has the floating dtype of its parts.

    Raises:
      TypeError: `x` is not complex.

    >>> import pyjx as jax
    >>> float(jax.lax.imag(1 + 2j))
    2.0
    """
    return imag_p.bind(operand("imag", x))


def _conj_shape(x: ShapedArray, *, input_dtype: dtypes.DType) -> ShapedArray:
    check_kinds("conj", ("float32, float64, complexfloating",), (x,))
    return x.update(dtype=complex_dtype(x.dtype))


def _conj_back(ct: Value, z: ShapedArray, *, input_dtype: dtypes.DType) -> Array:
    # Re(ct conj(z)) = Re(conj(ct) z)
    back = conj(ct)
    return back if dtypes.issubdtype(z.dtype, np.complexfloating) else real(back)


conj_p = register(Primitive("conj", shape_rule=_conj_shape, linear=TOGETHER, cost=CHEAP,
                            keeps_nans=True))
conj_p.define(batch=elementwise_batch(conj_p), transpose=transpose_unary(_conj_back))


def conj(x: ArrayLike) -> Array:
    """The complex conjugate; of a real number, itself as a complex one.

    Args:
      x: an array or a number, of a floating or complex dtype.

    Raises:
      TypeError: `x` is neither complex, float32 nor float64.

    >>> import pyjx as jax
    >>> jax.lax.conj(1 + 2j).item()
    (1-2j)
    """
    x = operand("conj", x)
    return conj_p.bind(x, input_dtype=get_aval(x).dtype)


# -- constants -------------------------------------------------------------------------------------


def full(shape: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, *,
         sharding: ShardingLike = None) -> Array:
    """An array filled with one value.

    Args:
      shape: the shape, a sequence of integers or an integer.
      fill_value: a scalar.
      dtype: the dtype; by default that of `fill_value`.
      sharding: where the array is to be.

    Raises:
      TypeError: `fill_value` is not a scalar, or `shape` is not one.

    >>> import pyjx as jax
    >>> jax.lax.full((2,), 7).tolist()
    [7, 7]
    """
    return _full("full", as_sizes("full", "shape", shape), fill_value, dtype, sharding)


def _full(name: str, shape: tuple[int, ...], fill_value: ArrayLike, dtype: DTypeLike | None,
          sharding: Sharding | None) -> Any:
    fill_value = operand(name, fill_value, 1)
    aval = get_aval(fill_value)
    if aval.shape:
        raise TypeError(
            f"{name} must be called with scalar fill_value, got fill_value.shape {aval.shape}.")
    weak = dtype is None and aval.weak_type
    dtype = aval.dtype if dtype is None else dtypes.check_and_canonicalize_user_dtype(dtype, name)
    if dtype not in dtypes.all_dtypes and is_scalar_constant(fill_value):  # keys, float0
        return placed(full_aval(ShapedArray(shape, dtype), fill_value), sharding)
    return placed(broadcast_in_dim(filler(fill_value, dtype, weak), shape, ()), sharding)


def real_part_for(value: ArrayLike, dtype: DTypeLike | None) -> Any:
    """The value for an array of the dtype: where that is real, a complex scalar loses its imaginary
    part, with NumPy's warning. `filler` refuses Python's complex numbers there."""
    known = is_scalar_constant(value) and get_aval(value).dtype in dtypes.complex_dtypes
    if known and dtype not in dtypes.complex_dtypes:
        return np.asarray(value).astype(dtype)[()]
    return value


def filler(value: Any, dtype: DTypeLike, weak: bool) -> Any:
    """A rank-0 value of the dtype and weak type; a scalar, which jaxprs show inline, if it can.

    Python integers wrap around, and Python floats go to the nearest integer dtype's end.

    Raises:
      TypeError: the value is a Python complex number, and the dtype real.
    """
    aval = get_aval(value)
    if aval.dtype == dtype and aval.weak_type == weak and not isinstance(value, int):
        return value
    if not is_scalar_constant(value) and type(value) is not np.ndarray:
        return cast(value, dtype, weak)
    scalar = host_converted(value, dtype)
    if not weak:
        return scalar
    item = scalar.item()
    return item if get_aval(item).dtype == dtype else cast(scalar, dtype, True)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: Any = None
              ) -> Array:
    """An array like `x`, filled with one value.

    Args:
      x: an array, or anything with a shape and a dtype.
      fill_value: a scalar.
      dtype: the dtype; by default that of `x`.
      shape: the shape; by default that of `x`.
      sharding: where the array is to be.

    Raises:
      TypeError: `fill_value` is not a scalar.

    >>> import pyjx as jax
    >>> jax.lax.full_like(jax.numpy.arange(2), 7).tolist()
    [7, 7]
    """
    if hasattr(x, "shape") and hasattr(x, "dtype"):  # a ShapeDtypeStruct will do
        like_shape, like_dtype = x.shape, x.dtype
        weak = getattr(x, "weak_type", False)
    else:
        aval = get_aval(operand("full_like", x))
        like_shape, like_dtype, weak = aval.shape, aval.dtype, aval.weak_type
    zero = type(fill_value) in (int, float) and fill_value == 0
    asked = shape
    shape = like_shape if shape is None else as_sizes("full_like", "shape", shape)
    if sharding is None:
        sharding = sharding_like(x, shape, asked)
    if dtype is not None or not weak or dtypes.is_extended(like_dtype):
        dtype = dtypes.canonicalize_dtype(like_dtype, True) if dtype is None else dtype
        out = _full("full_like", tuple(shape), fill_value, dtype, sharding)
        return vary_like(out, x, zero)
    fill_value = real_part_for(operand("full_like", fill_value, 1), like_dtype)
    if get_aval(fill_value).shape:
        raise TypeError("full_like: full must be called with scalar fill_value, got "
                        f"fill_value.shape {get_aval(fill_value).shape}.")
    out = broadcast_in_dim(filler(fill_value, like_dtype, True), shape, ())
    return vary_like(placed(out, sharding), x, zero)


# -- identities ------------------------------------------------------------------------------------

copy_p = elementwise("copy", ANY, moves=True, linear=TOGETHER, cost=CHEAP)
copy_p.define(transpose=transpose_unary(lambda ct, x: copy_p.bind(ct)))

# tie(x, y) is y, and keeps x from being dropped before it.
tie_p: Primitive = register(Primitive(
    "tie", moves=True, shape_rule=lambda x, y: y, linear=LAST,
    jvp=lambda primals, tangents: (tie_p.bind(*primals), tangents[1]),
    transpose=lambda ct, x, y: (Zero(x.aval) if is_undefined_primal(x) else None,
                                ct if is_undefined_primal(y) else None),
    batch=lambda operands, dims: (tie_p.bind(*operands), dims[1]),
))

stop_gradient_p = elementwise("stop_gradient", ANY, moves=True, linear=TOGETHER,
                              derivative=ON_PURPOSE)
stop_gradient_p.define(jvp=jvp_zero(stop_gradient_p))


def stop_gradient(x: Any) -> Any:
    """`x`, taken as a constant by differentiation.

    Args:
      x: an array, or a tree of arrays.

    Raises:
      TypeError: a leaf is not an array.

    >>> import pyjx as jax
    >>> float(jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0))
    3.0

    A target that is no part of what is learned:

    >>> loss = lambda w: (w - jax.lax.stop_gradient(2 * w)) ** 2
    >>> float(jax.grad(loss)(3.0))
    -6.0
    """
    return tree_map(_stop, x)


def _stop(x: Value) -> Array:
    return stop_gradient_p.bind(x) if isinstance(x, Tracer) else operand("stop_gradient", x)


def optimization_barrier(operand: Any, /) -> Any:
    """`operand`, which the compiler may not look through.

    All of it is computed before anything that uses a part of the result. It is not fused with,
    moved past or merged with operations on the other side.

    Args:
      operand: a tree of arrays.

    Returns:
      A tree of the same structure.

    >>> import pyjx as jax
    >>> float(jax.jit(lambda x: jax.lax.optimization_barrier(x) + 1)(1.0))
    2.0
    """
    leaves, tree = tree_flatten(operand)
    leaves = [_operand("optimization_barrier", x, i) for i, x in enumerate(leaves)]
    return tree_unflatten(tree, optimization_barrier_p.bind(*leaves) if leaves else [])

