"""What of Pallas is arithmetic of sizes, a question about the device, or a function of references,
and serves without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn

import pyjx

__all__ = ["align_to", "cdiv", "get_gpu_info", "get_tpu_info", "is_gpu_device", "is_tpu_device",
           "next_power_of_2", "run_state", "strides_from_shape"]


def cdiv(a: Any, b: Any) -> Any:
    """How many blocks of `b` hold `a`, ints or integer arrays.

    >>> from pyjx.experimental import pallas as pl
    >>> pl.cdiv(7, 2)
    4
    """
    return (a + b - 1) // b


def align_to(a: Any, alignment: Any) -> Any:
    """The next multiple of `alignment` from `a` on.

    >>> from pyjx.experimental import pallas as pl
    >>> pl.align_to(100, 128)
    128
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The next power of two from `x` on.

    Raises:
      ValueError: it is negative.

    >>> from pyjx.experimental import pallas as pl
    >>> pl.next_power_of_2(5)
    8
    """
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 << max(x - 1, 0).bit_length()


def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """How many elements apart the entries of each axis lie, the last axis densest.

    >>> from pyjx.experimental import pallas as pl
    >>> pl.strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(prod(shape[axis + 1:]) for axis in range(len(shape)))


def _is(platform: str) -> bool:
    return pyjx.default_backend() == platform


def _unknown(platform: str) -> NoReturn:
    if _is(platform):
        raise NotImplementedError(f"What Pallas knows of {platform.upper()}s is not there yet.")
    kind = pyjx.devices()[0].device_kind
    raise ValueError(f"Unsupported {platform.upper()} device kind: {kind}")


def is_tpu_device() -> bool:
    """Whether the default device is a TPU."""
    return _is("tpu")


def is_gpu_device() -> bool:
    """Whether the default device is a GPU."""
    return _is("gpu")


def get_tpu_info() -> NoReturn:
    """What is known of the default device as a TPU.

    Raises:
      ValueError: it is none.
    """
    _unknown("tpu")


def get_gpu_info() -> NoReturn:
    """What is known of the default device as a GPU.

    Raises:
      ValueError: it is none.
    """
    _unknown("gpu")


def run_state(f: Callable[..., None]) -> Callable[[Any], Any]:
    """The function from a pytree of values to the values that references to them have after `f`.

    Args:
      f: takes the pytree of references.

    >>> from pyjx.experimental import pallas as pl
    >>> def double(ref):
    ...     ref[...] = ref[...] * 2
    ...
    >>> pl.run_state(double)(3)
    Array(6, dtype=int32)
    """
    def values_after(args: Any) -> Any:
        refs = pyjx.tree.map(pyjx.new_ref, args)
        f(refs)
        return pyjx.tree.map(pyjx.freeze, refs)

    return values_after
