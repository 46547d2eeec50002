"""Bringing operands together: which values are arrays, dtype promotion, rank promotion.

Python scalars whose type agrees with the common dtype stay as they are, and others become NumPy
scalars of it: both are literals in jaxprs and go with operands of any shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx import configuration, lax
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, SymbolicDim, aval_makers, get_aval
from pyjx.core.frames import warn
from pyjx.core.places import Space, are_elsewhere
from pyjx.core.scalars import int_fits, is_scalar_constant, typed
from pyjx.core.trace import Tracer
from pyjx.core.value_texts import array_cure
from pyjx.engine.axes import broadcast_in_dim_p
from pyjx.engine.moves import number_beside
from pyjx.lax.common import broadcast_shapes, misfit, real_part_on_host, warn_of_complex
from pyjx.lax.elementwise import stretch
from pyjx.runtime.device_put import device_put
from pyjx.runtime.operations import as_arrays

_bool = dtypes.bool_dtype
_python_scalars = frozenset((bool, int, float, complex))


# -- which values are arrays -----------------------------------------------------------------------


def is_arraylike(x: object) -> bool:
    """Whether NumPy-like functions take `x` as an array: lists and strings are none."""
    return takes_part(x) or hasattr(x, "aval")


def takes_part(x: object) -> bool:
    """Whether operators of arrays take `x` as an operand; others have their own say."""
    return (
        type(x) in aval_makers
        or isinstance(x, (np.ndarray, np.generic, int, float, complex))
        or hasattr(x, "__jax_array__"))


def check_arraylike(name: str, *args: Any) -> None:
    """Raise TypeError unless all arguments of the function `name` are arrays or scalars."""
    for i, x in enumerate(args):
        if type(x) not in aval_makers and not is_arraylike(x):
            raise TypeError(f"{name} requires ndarray or scalar arguments, got {type(x)} at "
                            f"position {i}. {array_cure(x)}".rstrip())


def as_operand(x: object) -> Any:
    """`x`, which is array-like, as a value that primitives take: `__jax_array__` is called."""
    if type(x) in aval_makers:
        return x
    convert = getattr(x, "__jax_array__", None)
    return x if convert is None else convert()


def operands(name: str, *args: Any) -> list[Any]:
    """The arguments of the function `name` as values that primitives take.

    Raises:
      TypeError: an argument is no array or scalar.
    """
    check_arraylike(name, *args)
    return [as_operand(x) for x in args]


def no_out(name: str, out: object) -> None:
    """Refuse the `out` argument, which has no meaning for immutable arrays."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported. No array is "
                                  f"written to: take the result, as in x = jnp.{name}(...).")


def numbers(name: str, x: ArrayLike, out: object = None) -> Any:
    """The argument of the function `name` as a value that primitives take; `out` is that argument.

    Raises:
      TypeError: it is no array or scalar, or one of keys.
      NotImplementedError: `out` is given.
    """
    no_out(name, out)
    (x,) = operands(name, x)
    dtype = get_aval(x).dtype
    if dtypes.is_extended(dtype):
        raise TypeError(f"jnp.{name} requires numbers, got values of dtype {dtype}")
    return x


# -- dtypes ----------------------------------------------------------------------------------------


def literal(x: Any, dtype: Any, weak: bool = False) -> Any:
    """The Python scalar `x` as a scalar of `dtype`, which is that type's own if it is `weak`."""
    kind = type(x)
    if kind in _python_scalars and dtypes.python_scalar_dtype(kind) == dtype:
        return x if weak or kind is bool else typed(dtype.type(x))
    if isinstance(x, SymbolicDim):
        return x.as_scalar(dtype)
    return typed(np.asarray(x, dtypes.dtype(x)).astype(dtype)[()], weak)


def size_literal(n: float, dtype: DTypeLike) -> Any:
    """A size as a scalar of a dtype; of a symbolic one the value."""
    return literal(float(n) if type(n) is int else n, dtype)


def strong(x: ArrayLike) -> Any:
    """The value without a weak type, where a function's result has none in JAX."""
    return convert(x, get_aval(x).dtype)


def convert(x: Any, dtype: Any, weak: bool = False) -> Any:
    """The value `x` with another dtype and weak type; of complex numbers the real part, but NumPy
    makes theirs true or false by both parts.
    """
    if type(x) in _python_scalars:
        scalar = literal(x, dtype, weak)
        if not weak or get_aval(scalar).weak_type or dtype == _bool:
            return scalar
        x = scalar  # of a dtype that no weakly typed scalar has
    elif isinstance(x, np.generic):
        return typed(cast_on_host(_held(x), dtype), weak)
    if isinstance(x, np.ndarray) and not weak:
        return cast_on_host(_held(x), dtype)
    aval = get_aval(x)
    if aval.dtype == dtype and aval.weak_type == weak:
        return x
    if dtypes.is_extended(aval.dtype):
        raise TypeError(f"expected an array of numbers, got dtype {aval.dtype}")
    if aval.dtype in dtypes.complex_dtypes and dtype not in dtypes.complex_dtypes:
        warn_of_complex()
        x = lax.real(x)
    return lax.convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak, sharding=None)


def _held(x: Any) -> Any:
    """The NumPy array or scalar, of a wide integer the low bits where arrays have 32."""
    if x.dtype.kind not in "iu" or x.dtype.itemsize != 8:
        return x
    return cast_on_host(x, get_aval(x).dtype)


def cast_on_host(x: Any, dtype: np.dtype[Any]) -> Any:
    """The NumPy array or scalar with another dtype, as `convert` does it."""
    return x if x.dtype == dtype else real_part_on_host(x, dtype).astype(dtype)


def narrowed(x: ArrayLike) -> Any:
    """`x` with the dtype that the flag `jax_enable_x64` allows: an array may outlive the flag."""
    aval = get_aval(x)
    dtype = dtypes.canonicalize_dtype(aval.dtype, allow_extended_dtype=True)
    return x if dtype == aval.dtype else convert(x, dtype, aval.weak_type)


def promote_dtypes(*args: Any) -> list[Any]:
    """The values with their common dtype."""
    dtype, weak = dtypes.lattice_result_type(*args)
    return [convert(x, dtype, weak) for x in args]


def _promoting(choose: Callable[[Any], Any]) -> Callable[..., list[Any]]:
    """The values with a dtype that is chosen by their common one."""
    def promote(*args: Any) -> list[Any]:
        dtype, weak = dtypes.lattice_result_type(*args)
        dtype = choose(dtype)
        return [convert(x, dtype, weak) for x in args]

    return promote


promote_dtypes_inexact = _promoting(dtypes.to_inexact_dtype)  # floats for integers
promote_dtypes_numeric = _promoting(dtypes.to_numeric_dtype)  # int32 for booleans
promote_dtypes_complex = _promoting(dtypes.to_complex_dtype)


def promote_dtypes_as_floats(*args: Any) -> list[Any]:
    """Like `promote_dtypes_inexact`, of Python integers of any size."""
    dtype, weak = dtypes.lattice_result_type(*args)
    dtype = dtypes.to_inexact_dtype(dtype)
    return [convert(float(x) if type(x) is int else x, dtype, weak) for x in args]


def check_promotion(*args: Any) -> None:
    """Raise TypePromotionError where dtypes of the user's arrays differ and promotion is strict: of
    functions that convert some of them before they meet."""
    if configuration.numpy_dtype_promotion.value == "strict":
        arrays = [x for x in args if not get_aval(x).weak_type]
        if arrays:
            dtypes.lattice_result_type(*arrays)


# -- shapes ----------------------------------------------------------------------------------------


def promote_shapes(name: str, *args: Any) -> list[Any]:
    """The values brought to one shape by NumPy's rules; literals stay as they are.

    Raises:
      TypeError, ValueError: the shapes do not broadcast.
      ValueError: the ranks differ, and the flag `jax_numpy_rank_promotion` forbids that.
    """
    avals = [get_aval(x) for x in args]
    shapes = [a.shape for a in avals]
    shape = shapes[0]
    for s in shapes:
        if s != shape:
            shape = common_shape(name, shapes)
            if are_elsewhere(avals):  # scalars go with arrays in any memory
                args = tuple([x if s or is_scalar_constant(x) else device_put(x, Space.Host)
                              for x, s in zip(args, shapes, strict=True)])
            return [x if is_scalar_constant(x) else stretch(
                        x if s else number_beside(x, avals), shape)
                    for x, s in zip(args, shapes, strict=True)]
    return list(args)


def common_shape(name: str, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape to which shapes, not all of rank 0, broadcast."""
    check_ranks(name, shapes)
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        if len({len(s) for s in shapes if s}) > 1:
            raise ValueError(f"{name}: Incompatible shapes for broadcasting: shapes={shapes}"
                             f"{misfit(shapes)}") from None
        got = ", ".join(map(str, shapes))
        raise TypeError(f"{name} got incompatible shapes for broadcasting: {got}{misfit(shapes)}"
                        ) from None


RANKS_EXPLAINED = "https://docs.jax.dev/en/latest/101/rank_promotion_warning.html."


def check_ranks(name: str, shapes: list[tuple[int, ...]]) -> None:
    """Warn or raise, as the flag `jax_numpy_rank_promotion` says, where ranks differ."""
    if configuration.numpy_rank_promotion.value == "allow":
        return
    if len({len(s) for s in shapes if s}) < 2:
        return
    text = " ".join(map(str, shapes))
    if configuration.numpy_rank_promotion.value == "raise":
        raise ValueError(f"Operands could not be broadcast together for {name} on shapes {text} "
                         "and with the config option jax_numpy_rank_promotion='raise'. For more "
                         f"information, see {RANKS_EXPLAINED}")
    warn(
        f"Following NumPy automatic rank promotion for {name} on shapes {text}. Set the "
        "jax_numpy_rank_promotion config option to 'allow' to disable this warning; for more "
        f"information, see {RANKS_EXPLAINED}")


def check_batch_ranks(signature: str, shapes: list[tuple[int, ...]], core_ranks: list[int]) -> None:
    """`check_ranks` of the axes before those that a signature names."""
    if configuration.numpy_rank_promotion.value == "allow":
        return
    if len({len(s) - n for s, n in zip(shapes, core_ranks, strict=True) if s}) < 2:
        return
    message = (f"operands with shapes {shapes} require rank promotion for jnp.vectorize function "
               f"with signature {signature}. Set the jax_numpy_rank_promotion config option to "
               f"'allow' to disable this message; for more information, see {RANKS_EXPLAINED}")
    if configuration.numpy_rank_promotion.value == "raise":
        raise ValueError(message)
    warn(message)


# Decorates functions that broadcast whatever the flag `jax_numpy_rank_promotion` says.
any_ranks = configuration.numpy_rank_promotion("allow")


def spread_all(name: str, *args: Any) -> list[Any]:
    """The values broadcast to one shape, scalars too."""
    shape = common_shape(name, [get_aval(x).shape for x in args])
    return [stretch(x, shape) for x in args]


def spread(x: ArrayLike, shape: tuple[int, ...]) -> Any:
    """`x` stretched to `shape`, which fits, in one operation."""
    old = get_aval(x).shape
    if old == shape and isinstance(x, Tracer):
        return x
    offset = len(shape) - len(old)
    return broadcast_in_dim_p.bind(x, shape=shape, sharding=None,
                                   broadcast_dimensions=tuple(range(offset, len(shape))))


def fitted(x: ArrayLike, shape: tuple[int, ...]) -> Any:
    """`spread`, of what may not fit.

    Raises:
      ValueError: it does not.
    """
    aval = get_aval(x)
    old = aval.shape
    if len(shape) < len(old):
        return stretch(x, shape)  # which refuses it
    tail = shape[len(shape) - len(old):]
    if any(n not in (1, m) for n, m in zip(old, tail, strict=True)):
        raise ValueError(f"Incompatible types for broadcasting: input type={aval.str_short()} and "
                         f"requested type={aval.update(shape=shape).str_short()}")
    return spread(x, shape)


# -- dtypes and shapes together --------------------------------------------------------------------


def _with_numbers(name: str, *args: Any) -> list[Any]:
    """`operands`, none of which is a tangent of integers."""
    values = operands(name, *args)
    for x in values:
        if get_aval(x).dtype == dtypes.float0:
            raise dtypes.float0_error(name)
    return values


def _promoted(name: str, promote: Callable[..., list[Any]], args: tuple[Any, ...]) -> list[Any]:
    try:
        values = _with_numbers(name, *args)
    except AttributeError:
        if not (given := as_arrays(args, {})):
            raise
        values = _with_numbers(name, *given[0])
    try:
        values = promote(*values)
    except (TypeError, ValueError):
        found = [get_aval(x).dtype for x in values]
        if any(map(dtypes.is_extended, found)):  # keys have no common dtype with numbers
            raise TypeError(f"{name} does not accept dtypes "
                            f"{', '.join(map(dtypes.name, found))}.") from None
        raise
    return promote_shapes(name, *values)


def promote_args(name: str, *args: Any) -> list[Any]:
    """The arguments of the function `name` with their common dtype and shape.

    Raises:
      TypeError: an argument is no array or scalar, or the shapes do not broadcast.
    """
    return _promoted(name, promote_dtypes, args)


def promote_args_inexact(name: str, *args: Any) -> list[Any]:
    """Like `promote_args`, with the float dtype for integers."""
    return _promoted(name, promote_dtypes_inexact, args)


def promote_args_as_floats(name: str, *args: Any) -> list[Any]:
    """Like `promote_args_inexact`, of Python integers of any size."""
    return _promoted(name, promote_dtypes_as_floats, args)


def promote_args_numeric(name: str, *args: Any) -> list[Any]:
    """Like `promote_args`, with int32 for booleans."""
    return _promoted(name, promote_dtypes_numeric, args)


def _literal_beside(x: Any, a: ShapedArray) -> Any:
    """The Python scalar `x` as operand beside a value of aval `a`, or None: promote as usual."""
    kind = type(x)
    dtype = a.dtype
    if dtype == np.float64 and not configuration.enable_x64.value:
        return None  # made while 64-bit types were on: it is narrowed
    if kind is int and x.bit_length() >= 32 and not (
            dtypes.python_scalar_dtype(int) is dtype and int_fits(x, a)):
        return None  # no int of the default dtype, or one that a float would round twice
    if (kind is float or kind is int) and dtype in dtypes.floating_dtypes and not a.weak_type:
        return dtype.type(x)
    if dtypes.python_scalar_dtype(kind) is dtype:
        return x
    if kind is int and dtypes.python_scalar_dtype(float) is dtype:
        return float(x)
    return None


def promote_two(name: str, x: Any, y: ArrayLike) -> Any:
    """`promote_args` for two arguments, which costs next to nothing where they go together."""
    if isinstance(x, Tracer):
        if isinstance(y, Tracer):
            aval = x.aval
            if aval is y.aval and not (aval.weak_type and aval.dtype is _bool):
                return x, y
        elif type(y) in _python_scalars:
            scalar = _literal_beside(y, x.aval)
            if scalar is not None:
                return x, scalar
    elif type(x) in _python_scalars and isinstance(y, Tracer):
        scalar = _literal_beside(x, y.aval)
        if scalar is not None:
            return scalar, y
    return promote_args(name, x, y)


def promote_two_inexact(name: str, x: ArrayLike, y: ArrayLike) -> Any:
    """`promote_args_inexact` for two arguments, fast where nothing is to be done."""
    if isinstance(x, Tracer):
        dtype = x.aval.dtype
        if dtype in dtypes.floating_dtypes or dtype in dtypes.complex_dtypes:
            return promote_two(name, x, y)
    return promote_args_inexact(name, x, y)


def promote_inexact(name: str, x: ArrayLike) -> Any:
    """The argument of the function `name`, with the float dtype for integers."""
    if isinstance(x, Tracer):
        dtype = x.aval.dtype
        if dtype in dtypes.floating_dtypes or dtype in dtypes.complex_dtypes:
            return x
    return promote_dtypes_inexact(*_with_numbers(name, x))[0]
