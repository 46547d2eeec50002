"""Arrays of extended dtypes: a type over the array of their data."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from pyjx.core.avals import ShapedArray, aval_makers
from pyjx.jaxlib_pytrees import of_calls
from pyjx.runtime.array import Array


class DataArray(Array):
    """An array with a type of its own, `aval`, over that of its data, `_base_array`."""

    __slots__ = ("__weakref__", "_base_array", "aval")

    _base_array: Any
    aval: ShapedArray

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: False)
    itemsize = property(lambda self: self.aval.dtype.itemsize)
    nbytes = property(lambda self: self.aval.size * self.aval.dtype.itemsize)
    sharding = property(lambda self: self._base_array.sharding)
    device = property(lambda self: self._base_array.device)
    committed = property(lambda self: self._base_array.committed)
    _committed = committed
    traceback = property(lambda self: self._base_array.traceback)
    is_fully_addressable = property(lambda self: self._base_array.is_fully_addressable)
    is_fully_replicated = property(lambda self: self._base_array.is_fully_replicated)

    def devices(self) -> set[Any]:
        return self._base_array.devices()  # type: ignore[no-any-return]

    def is_deleted(self) -> bool:
        return self._base_array.is_deleted()  # type: ignore[no-any-return]

    def delete(self) -> None:
        self._base_array.delete()

    def block_until_ready(self) -> Self:
        self._base_array.block_until_ready()
        return self

    def is_ready(self) -> bool:
        return self._base_array.is_ready()  # type: ignore[no-any-return]

    def platform(self) -> str:
        return self._base_array.platform()  # type: ignore[no-any-return]

    def on_device_size_in_bytes(self) -> int:
        return self._base_array.on_device_size_in_bytes()  # type: ignore[no-any-return]

    def unsafe_buffer_pointer(self) -> int:
        return self._base_array.unsafe_buffer_pointer()  # type: ignore[no-any-return]

    def unsafe_raw_buffer(self) -> Any:
        return self._base_array.unsafe_raw_buffer()

    def __len__(self) -> int:
        return len(self.aval)


class ExtendedArray(DataArray):
    """An array of an extended dtype, whose rules are those of a library.

    Args:
      aval: its type.
      data: the array that programs have in its place.

    Raises:
      ValueError: the data has another shape or dtype than the type says.
    """

    __slots__ = ()

    def __init__(self, aval: ShapedArray, data: Any) -> None:
        physical = aval.dtype.physical_aval(aval)
        if (data.shape, data.dtype) != (physical.shape, physical.dtype):
            raise ValueError(f"EArray: the data of an array of type {aval} is {physical}, got "
                             f"shape {data.shape} and dtype {data.dtype}")
        self.aval = aval
        self._base_array = data

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"an array of dtype {self.dtype} cannot be converted to a NumPy array; "
                        "convert it to the dtype of its data by jax.lax.convert_element_type")

    def __repr__(self) -> str:
        return f"EArray({self.aval.str_short()}, {self._base_array})"


aval_makers[ExtendedArray] = lambda x: x.aval
of_calls.register_node(ExtendedArray, lambda x: ((x._base_array,), x.aval),
                       lambda aval, data: ExtendedArray(aval, data[0]))
