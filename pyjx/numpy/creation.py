"""Making arrays: from values, and filled."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from pyjx import configuration, jaxlib_api
from pyjx import lax as ops
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import (
    AbstractRef,
    ShapedArray,
    array_aval,
    aval_makers,
    canonical_shape,
    get_aval,
)
from pyjx.core.bounded import BoundedDict
from pyjx.core.explicit import check_out_sharding
from pyjx.core.frames import warn
from pyjx.core.layouts import DeviceLike, ShardingLike
from pyjx.core.primitive import vary_like
from pyjx.core.specs import PartitionSpec
from pyjx.core.trace import DynamicJaxprTrace, Tracer, eager_trace, state
from pyjx.engine.axes import broadcast_in_dim_p
from pyjx.engine.primitives import stands_for_constant
from pyjx.lax.common import host_converted
from pyjx.lax.convert import filler, real_part_for
from pyjx.numpy.operands import as_bool
from pyjx.numpy.promotion import (
    as_operand,
    cast_on_host,
    check_arraylike,
    convert,
    fitted,
    operands,
)
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.backends import local_devices
from pyjx.runtime.device_put import device_put, target_sharding
from pyjx.runtime.operations import as_arrays
from pyjx.runtime.resharding import placed, placed_array, sharding_like
from pyjx.runtime.transfers import array_from_numpy, default_placement, put_strings

_user_dtype = dtypes.check_and_canonicalize_user_dtype
_registry = jaxlib_api.pytree.default_registry()
_python_scalars = frozenset((bool, int, float, complex))

# Arrays of more elements are filled on the device, where the host's memory is not the device's.
MOST_FROM_HOST = 1 << 14
# As many where the two are one: what does not fit is refused by the device, as in a program.
MOST_FROM_SAME_MEMORY = 1 << 30


# -- from values -----------------------------------------------------------------------------------


def array(object: Any, dtype: Any = None, *, copy: bool = True, order: str | None = "K",
          ndmin: int = 0, device: DeviceLike = None, out_sharding: ShardingLike = None) -> Array:
    """The array of a value: a number, nested sequences, a NumPy array, anything like an array.

    Args:
      object: the value. Sequences may hold arrays and tracers.
      dtype: of the result; by default that of the value, 64-bit types narrowed unless x64 is on.
      copy: whether the result has buffers of its own.
      order: "K" or None, as arrays have no order in memory that can be seen.
      ndmin: axes of size 1 are put in front up to this rank.
      device: the Device or Sharding to put the result on.
      out_sharding: like `device`.

    Returns:
      An array; while a function is traced, a tracer, whose value Python cannot see.

    Raises:
      TypeError: the value has elements that are no numbers.
      ValueError: it is, or has, None, or its sequences are of different lengths.
      NotImplementedError: another order is given.

    >>> import pyjx as jax
    >>> jax.numpy.array([1, 2.5])
    Array([1. , 2.5], dtype=float32)
    >>> jax.numpy.array([[1, 2], [3, 4]], dtype="bfloat16").shape
    (2, 2)
    """
    if (type(object) is np.ndarray and dtype is None and order == "K" and not ndmin
            and device is None and out_sharding is None and object.dtype in _never_narrowed):
        return _made(object, array_aval(object.shape, object.dtype), copied=False)
    if order not in ("K", None):
        raise _unknown_order("array", order)
    target = target_of("array", device, out_sharding)
    if type(object) is np.ndarray and object.dtype.kind == "T":
        return put_strings(object, target_sharding(target), dtype)
    if dtype is not None:
        dtype = _user_dtype(dtype, "array")
    out = _array_for(target, object, dtype, bool(copy))
    if ndmin and out.ndim < ndmin:
        out = ops.expand_dims(out, range(ndmin - out.ndim))
    return placed_array(out, target, "array")


def _unknown_order(name: str, order: object) -> NotImplementedError:
    return NotImplementedError(f"{name}: Only implemented for order='K', got {order!r}: arrays "
                               "have no order in memory that can be seen. Leave it out.")


# Dtypes that NumPy arrays keep whether or not 64-bit types are on.
_never_narrowed = dtypes.all_dtypes - {np.dtype(t) for t in ("i8", "u8", "f8", "c16")}


def asarray(a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None,
            device: DeviceLike = None, out_sharding: ShardingLike = None) -> Array:
    """The array of a value, which is the value itself where that is an array of the dtype.

    Args and errors are those of `array`; `copy=True` asks for new buffers.

    Args:
      a: an array, a number, nested lists of such, or anything that NumPy makes an array of.
      dtype: of the result; None for that of `a`, or of Python's numbers: int32 and float32, unless
        64-bit types are on.
      order: None or "K": arrays have no order in memory that can be seen.
      copy: True makes a copy in any case; otherwise there is one where it is needed.
      device: the device or sharding of the result.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      An array: the argument itself, if it is one of that dtype and place already.

    >>> import pyjx as jax
    >>> jax.numpy.asarray([1, 2]).tolist()
    [1, 2]
    """
    if (type(a) is np.ndarray and dtype is None and order is None and copy is None
            and device is None and out_sharding is None and a.dtype in _never_narrowed):
        return _made(a, array_aval(a.shape, a.dtype), copied=False)
    if order not in ("K", None):
        raise _unknown_order("asarray", order)
    if type(a) is np.ndarray and a.dtype.kind == "T":
        return put_strings(a, target_sharding(target_of("asarray", device, out_sharding)), dtype)
    if dtype is not None:
        dtype = _user_dtype(dtype, "asarray")
    if type(a) is ArrayImpl and device is None and out_sharding is None and not copy and (
            dtype is None or (dtype == a.aval.dtype and not a.aval.weak_type)):
        return a
    target = target_of("asarray", device, out_sharding)
    return placed_array(_array_for(target, a, dtype, bool(copy)), target, "asarray")


def of_list(x: object) -> Any:
    """A list or tuple of numbers as an array; what else is given stays as it is, to be checked.

    Most functions refuse lists. This is for those arguments where JAX takes them.
    """
    return asarray(x) if isinstance(x, (list, tuple)) else x


def _array_for(target: DeviceLike, x: object, dtype: np.dtype[Any], copy: bool) -> Any:
    """`_array`, not copied to all devices of the mesh that is set if it goes to a target."""
    try:
        if target is None or configuration.mesh.value is None:
            return _array(x, dtype, copy)
        with configuration.mesh(None):
            return _array(x, dtype, copy)
    except OverflowError as error:  # `core/advice.py` tells what other dtype holds the integer
        error.is_of_asked_dtype = dtype is not None  # type: ignore[attr-defined]
        raise


def _array(x: Any, dtype: DTypeLike | None, copy: bool) -> Any:
    kind = type(x)
    if kind is ArrayImpl or isinstance(x, Tracer):
        return _of_array(x, dtype, copy)
    if kind is np.ndarray or kind in _numpy_scalars:
        return _of_numpy(x, dtype)
    if kind in _python_scalars:
        return _of_python(x, dtype)
    if kind is list or kind is tuple:
        return of_sequence(x, dtype)
    return _of_object(x, dtype, copy)


_numpy_scalars = frozenset(dtypes.numpy_scalar_types)


def _of_array(x: Any, dtype: DTypeLike | None, copy: bool) -> Any:
    aval = x.aval
    if type(aval) is AbstractRef:
        raise TypeError(f"jnp.asarray got a Ref of type {aval}, but a Ref can't be passed where an "
                        "array is expected. Did you forget to read its value with `ref[...]`?")
    weak = dtype is None and aval.weak_type
    if dtype is not None and (aval.dtype != dtype or aval.weak_type != weak):
        return convert(x, dtype)
    if not copy and not stands_for_constant(x):
        return x
    if type(x) is ArrayImpl and state.dynamic is eager_trace:
        x._check_if_deleted()
        return jaxlib_api.copy_on_device(x)
    return ops.copy_p.bind(x)


def _made(host: np.ndarray[Any, Any], aval: ShapedArray, copied: bool = True) -> Any:
    """The array of a NumPy array, which nobody else has if it is `copied`.

    While a program is recorded it is a value of the program, a literal if it has rank 0. Where a
    mesh is set all its devices have it.
    """
    trace = state.dynamic
    if trace is eager_trace or not isinstance(trace, DynamicJaxprTrace):
        mesh, out = configuration.mesh.value, array_from_numpy(host, aval, alias=copied)
        return out if mesh is None else placed(out, jaxlib_api.NamedSharding(mesh, PartitionSpec()))
    if not aval.shape:
        return trace.literal(host.item() if aval.weak_type else host[()], aval)
    return trace.constant(array_from_numpy(host, aval, alias=copied))


def _of_numpy(x: Any, dtype: Any) -> Any:
    if x.dtype == dtypes.float0 and dtype in (None, dtypes.float0):
        return x  # of no bytes: there is nothing to put on a device
    target = dtypes.canonicalize_dtype(x.dtype) if dtype is None else dtype
    if target not in dtypes.all_dtypes:
        raise dtypes.not_an_array_type(x, _of_host(target))
    if x.dtype == target:
        if type(x) is not np.ndarray:
            return _made(np.asarray(x), array_aval((), target))
        return _made(x, array_aval(x.shape, target), copied=False)
    if dtype is None:
        _check_numeric(x, x)
    return _made(cast_on_host(np.asarray(x), target), array_aval(x.shape, target))


def _of_python(x: Any, dtype: DTypeLike | None) -> Any:
    kind = type(x)
    own = dtypes.python_scalar_dtype(kind)
    if dtype is not None:
        return _made(_host_of_python(x, kind is complex, dtype), array_aval((), dtype))
    try:
        host = np.asarray(x, own)
    except OverflowError:
        raise OverflowError(f"Python int {x} too large to convert to {own.name}") from None
    return _made(host, array_aval((), own, kind is not bool))


def _host_of_python(x: complex | Sequence[object], has_complex: bool,
                    dtype: DTypeLike) -> np.ndarray[Any, Any]:
    """Python scalars, nested in sequences or not, as NumPy array; integers must fit the dtype."""
    if has_complex and dtype not in dtypes.complex_dtypes and dtype != np.bool_:
        raise TypeError(f"array: complex numbers cannot become {dtypes.name(dtype)}: take their "
                        "real parts first.")
    return np.array(x, _of_host(dtype))


def _of_host(dtype: DTypeLike) -> DTypeLike:
    """The dtype, which must be one that arrays of the host may have."""
    if dtypes.is_extended(dtype):
        raise TypeError(f"numbers of the host do not become an array of dtype {dtype}. "
                        "jax.random.wrap_key_data(x) makes keys of the numbers behind them.")
    return dtype


def _check_numeric(x: object, host: np.ndarray[Any, Any]) -> None:
    """Raise TypeError for an array of objects, texts or times: without a dtype nobody says which
    numbers they are to be."""
    if host.dtype.kind in "OSUMmV" and host.dtype not in dtypes.all_dtypes:
        raise dtypes.not_an_array_type(x, host.dtype)


def of_sequence(x: Any, dtype: DTypeLike | None) -> Any:
    """The array of nested sequences of values.

    Raises:
      TypeError: a value is no number, or arrays among them do not fit together.
      ValueError: a value is None, or numbers are nested unevenly.
      OverflowError: a Python integer does not fit the dtype.
    """
    host = host_sequence(x, dtype)
    if host is not None:
        return _made(host, array_aval(host.shape, host.dtype))
    return _of_arrays(x, _leaves(x), dtype)


def _leaves(x: object) -> list[Any]:
    """The values in nested sequences, of which none may be a tree of another kind."""
    return _registry.flatten(  # type: ignore[no-any-return]
        x, lambda leaf: not isinstance(leaf, (list, tuple)))[0]


def host_sequence(x: Any, dtype: Any) -> np.ndarray[Any, Any] | None:
    """Nested sequences as a NumPy array; None if there are arrays of other kinds among them.

    The errors are those of `of_sequence`.
    """
    leaves = _leaves(x)
    kinds = set(map(type, leaves))
    if kinds <= _python_scalars:
        if dtype is None:
            widest = next((k for k in (complex, float, int, bool) if k in kinds), float)
            dtype = dtypes.python_scalar_dtype(widest)
        return _host_of_python(x, complex in kinds, dtype)
    if type(None) in kinds:
        raise ValueError("None is not a valid value for jnp.array")
    if any(issubclass(kind, Tracer) or kind is ArrayImpl or hasattr(kind, "__jax_array__")
           or not issubclass(kind, _HOST_TYPES) for kind in kinds):
        return None
    return _host_of_numpy(x, leaves, dtype)


_HOST_TYPES = (np.ndarray, np.generic, int, float, complex)


def _host_of_numpy(x: object, leaves: Sequence[Any], dtype: DTypeLike) -> np.ndarray[Any, Any]:
    """Nested sequences of NumPy's and Python's values as a NumPy array."""
    target = dtypes.result_type(*leaves) if dtype is None else dtype
    real = target not in dtypes.complex_dtypes
    if dtype is not None and real and any(map(np.iscomplexobj, leaves)):
        return _cast_on_host(np.array(x), target)
    return _cast_on_host(np.array(x, _of_host(target)), target)


def _cast_on_host(host: np.ndarray[Any, Any], dtype: DTypeLike) -> np.ndarray[Any, Any]:
    return host if host.dtype == dtype else host.astype(dtype)


def of_host(host: np.ndarray[Any, Any], dtype: DTypeLike) -> Any:
    """The array of a NumPy array that nobody else has."""
    host = _cast_on_host(host, dtype)
    return _made(host, array_aval(host.shape, dtype))


def _of_arrays(x: Any, leaves: Sequence[Any], dtype: Any) -> Any:
    """Nested sequences of arrays: concatenated along new axes, or read back where that is cheap."""
    if state.dynamic is eager_trace and all(map(_is_cheap_to_read, leaves)):
        if dtype is None:
            dtype = dtypes.result_type(*leaves)
        try:
            return of_host(_host_of_numpy(_read(x), [_read(v) for v in leaves], dtype), dtype)
        except ValueError:
            pass  # what does not fit together
    if dtype is None:
        values = [v if type(v) in aval_makers else _array(v, None, False) for v in leaves]
        dtype = dtypes.result_type(*values)
    return _stacked(x, dtype)


def _is_cheap_to_read(x: Any) -> bool:
    if type(x) is ArrayImpl:
        return not x._committed and x.aval.size <= MOST_FROM_HOST and (
            default_placement()[0]._device.platform == "cpu")
    return isinstance(x, _HOST_TYPES)


def _read(x: object) -> Any:
    return [_read(v) for v in x] if isinstance(x, (list, tuple)) else (
        np.asarray(x) if type(x) is ArrayImpl else x)


def _stacked(x: Any, dtype: np.dtype[Any]) -> Any:
    if not isinstance(x, (list, tuple)):
        return _array(x, dtype, False)
    if not x:
        return zeros((0,), dtype)
    rows = [_stacked(v, dtype) for v in x]
    shape = rows[0].shape
    for row in rows:
        if row.shape != shape:
            raise TypeError("Cannot concatenate arrays with shapes that differ: the elements of a "
                            f"sequence given to jnp.array have shapes {shape} and {row.shape}.")
    return ops.concatenate([ops.expand_dims(row, (0,)) for row in rows], 0)


def _of_object(x: Any, dtype: Any, copy: bool) -> Any:
    if x is None:
        raise ValueError("None is not a valid value for jnp.array")
    if hasattr(x, "__jax_array__"):
        return _array(x.__jax_array__(), dtype, copy)
    if isinstance(getattr(x, "aval", None), ShapedArray):  # an array of an extended dtype
        if dtype is not None:
            return ops.convert_element_type(x, dtype)
        return x.copy() if copy and state.dynamic is eager_trace else x
    if isinstance(x, (bool, int, float, complex)):
        base: Any = next(kind for kind in (bool, int, float, complex) if isinstance(x, kind))
        return _of_python(base(x), dtype)
    if isinstance(x, np.ma.MaskedArray) and dtype is None and not copy:
        get_aval(x)  # which refuses it
    if isinstance(x, (np.ndarray, np.generic)):
        return _of_numpy(np.asarray(x), dtype)
    if hasattr(x, "__cuda_array_interface__") and hasattr(x, "__dlpack__"):
        return _of_array(from_dlpack(x), dtype, copy)
    if isinstance(x, Sequence) and not isinstance(x, (str, bytes, bytearray, memoryview, range)):
        return of_sequence(list(x), dtype)
    host = np.array(x)
    if dtype is None:
        _check_numeric(x, host)
    elif host.dtype.kind == "U":
        # An error of this line is one of `x`. Dtypes that are not NumPy's take no texts.
        host = np.array(x, dtype if dtype.isbuiltin == 1 else float)
    if isinstance(x, range) and dtype is None:
        dtype = dtypes.default_int_dtype()
    return of_host(host, dtypes.canonicalize_dtype(host.dtype) if dtype is None else dtype)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """The array in new buffers.

    Args:
      a: an array or a number.
      order: None or "K": arrays have no order in memory that can be seen.

    Returns:
      An array of the same shape, dtype and values with memory of its own.

    >>> import pyjx as jax
    >>> jax.numpy.copy(jax.numpy.arange(3)).tolist()
    [0, 1, 2]
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x: ArrayLike, dtype: Any, /, *, copy: bool = False, device: DeviceLike = None) -> Array:
    """The array with another dtype; complex values lose their imaginary part in real dtypes.

    Returns:
      An array of the argument's shape and the new dtype.

    >>> import pyjx as jax
    >>> jax.numpy.astype(jax.numpy.array([1.5, 2.7]), int)
    Array([1, 2], dtype=int32)
    """
    (x,) = operands("astype", x)
    dtype = dtypes.default_float_dtype() if dtype is None else dtype
    return cast(x, dtype, "astype", copy, device)


def cast(x: Any, dtype: np.dtype[Any], name: str, copy: bool, device: DeviceLike) -> Any:
    """`x` with the dtype given to the public function `name`."""
    dtype = _user_dtype(dtype, name)
    aval = get_aval(x)
    if aval.dtype in dtypes.complex_dtypes and dtype not in dtypes.complex_dtypes \
            and dtype != np.bool_:
        warn("Casting from complex to real dtypes will soon raise a ValueError. Please first use "
             "jnp.real or jnp.imag to take the real/imaginary component of your input.",
             DeprecationWarning)
        x = x.real
    if dtype == np.bool_ and aval.dtype != np.bool_:
        return placed_array(convert(as_bool(x), dtype), device, "astype")
    if isinstance(x, int):  # which wraps round like any other
        x = asarray(x)
    return placed_array(_array(x, dtype, copy), device, "astype")


def frombuffer(buffer: bytes | bytearray | memoryview, dtype: DTypeLike | None = float,
               count: int = -1, offset: int = 0) -> Array:
    """The elements of a buffer of bytes as array of rank 1; see `numpy.frombuffer`.

    Args:
      buffer: an object with a buffer of bytes, such as `bytes`.
      dtype: of the elements.
      count: the number of elements; -1 for all.
      offset: how many bytes are left out in front.

    Returns:
      A one-dimensional array with a copy of the bytes.

    >>> import pyjx as jax
    >>> jax.numpy.frombuffer(b"\x01\x02", "uint8").tolist()
    [1, 2]
    """
    return asarray(np.frombuffer(buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """The array of an object that exports itself through DLPack, sharing its memory if it can.

    Args:
      x: an object with the methods `__dlpack__` and `__dlpack_device__`, such as an array of NumPy,
        PyTorch or CuPy.
      device: the device or sharding of the result; by default where the memory is.
      copy: True makes a copy; None or False share the memory where that can be.

    Returns:
      An array of the same shape and dtype, which shares the memory where `copy` does not say
      otherwise.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> jax.numpy.from_dlpack(np.arange(3, dtype="int32")).tolist()
    [0, 1, 2]
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and "
                        f"__dlpack_device__ methods, got {type(x)}.")
    kind, number = x.__dlpack_device__()
    platform = _DLPACK_PLATFORMS.get(int(kind))
    if platform is None:
        raise BufferError(f"from_dlpack: there is no platform for DLPack device type {kind}")
    source = local_devices(backend=platform)[0 if platform == "cpu" else number]
    out = jaxlib_api.from_dlpack(x.__dlpack__(), source)
    if dtypes.canonicalize_dtype(out.dtype) != out.dtype:
        out = convert(out, dtypes.canonicalize_dtype(out.dtype))
    if device is not None:
        return device_put(out, device, may_alias=None if copy is None else not copy)
    return jaxlib_api.copy_on_device(out) if copy else out


_DLPACK_PLATFORMS = {1: "cpu", 2: "cuda", 10: "rocm"}


# -- filled ----------------------------------------------------------------------------------------


def _shape_of(shape: SupportsIndex | Sequence[SupportsIndex], name: str) -> tuple[int, ...]:
    if type(shape) is int or (isinstance(shape, ArrayImpl) and not shape.ndim):
        shape = (operator.index(shape),)
    else:
        shape = canonical_shape(shape)
    for n in shape:
        if n < 0:
            raise TypeError(f"{name}: broadcast_in_dim shape must have every element be "
                            f"nonnegative, got {shape}.")
    return shape  # type: ignore[no-any-return]


# Small arrays of one number on the host, by aval and number: copying one is cheaper than making it.
_kept_fills = BoundedDict(128, "filled arrays")
_MOST_KEPT = 1024


def _host_filled(shape: tuple[int, ...], value: ArrayLike, dtype: DTypeLike
                ) -> np.ndarray[Any, Any]:
    if value == 0 and type(value) is int:
        return np.zeros(shape, dtype)  # of pages that are not touched
    host = np.empty(shape, dtype)
    host.fill(1 if type(value) is int and value == 1 else host_converted(value, dtype))
    return host


def filled(shape: tuple[int, ...], value: Any, dtype: Any, weak_type: bool = False,
           device: DeviceLike = None) -> Any:
    """An array of one number: made on the host where its memory is the device's."""
    if dtype not in dtypes.all_dtypes:
        if dtype == dtypes.float0:
            return np.zeros(shape, dtype)
        dtypes.check_valid_dtype(dtype)
        return placed(dtype.filled(shape, value), device)
    aval = array_aval(shape, dtype, weak_type)
    if state.dynamic is eager_trace and configuration.mesh.value is None and (
            type(aval.size) is int) and (
            aval.size <= MOST_FROM_HOST or (
                aval.size <= MOST_FROM_SAME_MEMORY
                and default_placement()[1][0].platform == "cpu")):
        if aval.size <= _MOST_KEPT and (
                # 0.0 equals -0.0, and no nan another
                type(value) is int or (type(value) is float and value and value == value)):
            key = aval, type(value), value
            host = _kept_fills.get(key)
            if host is None:
                host = _kept_fills[key] = _host_filled(shape, value, dtype)
            out = array_from_numpy(host, aval)
        else:
            out = array_from_numpy(_host_filled(shape, value, dtype), aval, alias=True)
    else:
        scalar = filler(value, dtype, weak_type)
        out = broadcast_in_dim_p.bind(scalar, shape=shape, broadcast_dimensions=(), sharding=None)
    return out if device is None else placed(out, device)


def zeros(shape: SupportsIndex | Sequence[SupportsIndex], dtype: DTypeLike | None = None, *,
          device: DeviceLike = None, out_sharding: ShardingLike = None) -> Array:
    """An array of zeros.

    Args:
      shape: an int or a sequence of ints.
      dtype: by default the default float dtype.
      device, out_sharding: where to put it.

    Returns:
      An array of that shape. The default dtype is float32, where NumPy's is float64, unless 64-bit
      types are on; for `full` it is that of the value.

    Raises:
      TypeError: `shape` is no shape.

    >>> import pyjx as jax
    >>> jax.numpy.zeros((2, 2)).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    >>> jax.numpy.zeros((), int)
    Array(0, dtype=int32)
    """
    dtype = dtypes.default_float_dtype() if dtype is None else _user_dtype(dtype, "zeros")
    target = target_of("zeros", device, out_sharding)
    return filled(_shape_of(shape, "zeros"), 0, dtype, False, target)


def ones(shape: SupportsIndex | Sequence[SupportsIndex], dtype: DTypeLike | None = None, *,
         device: DeviceLike = None, out_sharding: ShardingLike = None) -> Array:
    """An array of ones; arguments as those of `zeros`.

    Returns:
      An array of that shape. The default dtype is float32, where NumPy's is float64, unless 64-bit
      types are on; for `full` it is that of the value.

    >>> import pyjx as jax
    >>> jax.numpy.ones(2).tolist()
    [1.0, 1.0]
    """
    dtype = dtypes.default_float_dtype() if dtype is None else _user_dtype(dtype, "ones")
    target = target_of("ones", device, out_sharding)
    return filled(_shape_of(shape, "ones"), 1, dtype, False, target)


def empty(shape: SupportsIndex | Sequence[SupportsIndex], dtype: DTypeLike | None = None, *,
          device: DeviceLike = None, out_sharding: ShardingLike = None) -> Array:
    """An array whose elements do not matter; they are zeros.

    Returns:
      An array of that shape. The default dtype is float32, where NumPy's is float64, unless 64-bit
      types are on; for `full` it is that of the value.

    >>> import pyjx as jax
    >>> jax.numpy.empty((2, 3)).shape
    (2, 3)
    """
    dtype = dtypes.default_float_dtype() if dtype is None else _user_dtype(dtype, "empty")
    target = target_of("empty", device, out_sharding)
    return filled(_shape_of(shape, "empty"), 0, dtype, False, target)


def target_of(name: str, device: DeviceLike, out_sharding: ShardingLike) -> Any:
    """Where an array of the function `name` is to be; None leaves it open."""
    if out_sharding is None:
        return device
    if device is not None:
        raise ValueError(f"{name}: Only one of `device` or `out_sharding` can be set. Got "
                         f"{device=} and {out_sharding=}")
    check_out_sharding(out_sharding, name)
    return out_sharding


def full(shape: SupportsIndex | Sequence[SupportsIndex], fill_value: ArrayLike,
         dtype: DTypeLike | None = None, *, device: DeviceLike = None,
         out_sharding: ShardingLike = None) -> Array:
    """An array filled with a value, which is broadcast to the shape.

    Returns:
      An array of that shape. The default dtype is float32, where NumPy's is float64, unless 64-bit
      types are on; for `full` it is that of the value.

    >>> import pyjx as jax
    >>> jax.numpy.full((2,), 7).tolist()
    [7, 7]
    """
    if type(fill_value) not in _python_scalars:
        (fill_value,) = operands("full", fill_value)
    if dtype is not None:
        dtype = _user_dtype(dtype, "full")
    target = target_of("full", device, out_sharding)
    return _full(_shape_of(shape, "full"), fill_value, dtype, target)


def _full(shape: tuple[int, ...], fill_value: ArrayLike, dtype: DTypeLike | None,
          device: DeviceLike) -> Any:
    aval = get_aval(fill_value)
    weak = dtype is None and aval.weak_type
    dtype = aval.dtype if dtype is None else dtype
    scalar = type(fill_value) in _python_scalars or isinstance(fill_value, np.generic)
    if scalar or (dtypes.is_extended(dtype) and not dtypes.is_extended(aval.dtype)):
        return filled(shape, fill_value, dtype, weak, device)
    return placed(fitted(convert(fill_value, dtype, weak), shape), device)


def _like(name: str, a: Any, dtype: DTypeLike | None, shape: Any
         ) -> tuple[tuple[int, ...], Any, bool]:
    """Shape, dtype and weak type of an array like `a`; objects with shape and dtype will do."""
    if type(a) is ArrayImpl and dtype is None and shape is None:
        aval = a.aval
        return aval.shape, aval.dtype, aval.weak_type
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        (a,) = operands(name, a)
    elif isinstance(a, (np.ndarray, np.generic)) and a.dtype.kind in "OSUMm":
        raise dtypes.not_an_array_type(a, a.dtype)
    weak = dtype is None and dtypes.is_weakly_typed(a)
    if dtype is None:
        dtype = dtypes.dtype(a) if not hasattr(a, "dtype") else \
            a.dtype if isinstance(a, (ArrayImpl, Tracer)) else \
            dtypes.canonicalize_dtype(a.dtype, allow_extended_dtype=True)
    else:
        dtype = _user_dtype(dtype, name)
    own = tuple(a.shape) if hasattr(a, "shape") else np.shape(a)
    return own if shape is None else _shape_of(shape, name), dtype, weak


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: DeviceLike = None,
               out_sharding: ShardingLike = None) -> Array:
    """Zeros with the shape and dtype of `a`, unless others are given.

    Returns:
      An array of the shape and dtype of the argument, where no other ones are asked for.

    >>> import pyjx as jax
    >>> jax.numpy.zeros_like(jax.numpy.arange(2)).tolist()
    [0, 0]
    """
    target = target_of("zeros_like", device, out_sharding)
    return _filled_like("zeros_like", a, 0, dtype, shape, target)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: DeviceLike = None,
              out_sharding: ShardingLike = None) -> Array:
    """Ones with the shape and dtype of `a`, unless others are given.

    Returns:
      An array of the shape and dtype of the argument, where no other ones are asked for.

    >>> import pyjx as jax
    >>> jax.numpy.ones_like(jax.numpy.arange(2)).tolist()
    [1, 1]
    """
    target = target_of("ones_like", device, out_sharding)
    return _filled_like("ones_like", a, 1, dtype, shape, target)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: DeviceLike = None
              ) -> Array:
    """An array like `prototype` whose elements do not matter; they are zeros.

    Returns:
      An array of the shape and dtype of the argument, where no other ones are asked for.

    >>> import pyjx as jax
    >>> jax.numpy.empty_like(jax.numpy.arange(3)).shape
    (3,)
    """
    return _filled_like("empty_like", prototype, 0, dtype, shape, device)


def _filled_like(name: str, a: Any, value: int, dtype: np.dtype[Any],
                 shape: SupportsIndex | Sequence[SupportsIndex] | None, device: DeviceLike) -> Any:
    asked = shape
    if type(a) not in aval_makers:
        a = as_operand(a)
    elif not hasattr(a, "dtype"):
        (a,), _ = as_arrays([a], {}) or ([a], {})
    shape, dtype, weak = _like(name, a, dtype, shape)
    if device is None:
        device = sharding_like(a, shape, asked)
    return vary_like(filled(shape, value, dtype, weak, device), a)


def full_like(a: Any, fill_value: ArrayLike | None, dtype: DTypeLike | None = None,
              shape: Any = None, *, device: DeviceLike = None,
              out_sharding: ShardingLike = None) -> Array:
    """An array with the shape and dtype of `a`, filled with a value broadcast to the shape.

    Returns:
      An array of the shape and dtype of the argument, where no other ones are asked for.

    >>> import pyjx as jax
    >>> jax.numpy.full_like(jax.numpy.arange(2), 7).tolist()
    [7, 7]
    """
    (fill_value,) = operands("full_like", fill_value)
    asked = shape
    shape, dtype, weak = _like("full_like", a, dtype, shape)
    weak = weak and not get_aval(fill_value).shape
    fill_value = real_part_for(fill_value, dtype) if weak else fill_value
    device = target_of("full_like", device, out_sharding)
    if device is None and not get_aval(fill_value).shape:
        device = sharding_like(a, shape, asked)  # an array of values lies as it does
    if not get_aval(fill_value).shape and type(fill_value) in _python_scalars:
        return vary_like(filled(shape, fill_value, dtype, weak, device), a)
    out = fitted(convert(fill_value, dtype, weak), shape)
    return vary_like(placed(out, device), a)
