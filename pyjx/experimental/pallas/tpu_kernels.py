"""What kernels for TPUs use: memories, semaphores, copies between memories, pipelines, and
operations on registers. They run where kernels are interpreted: copies at once, one program after
the other."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from pyjx import configuration
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.experimental.pallas.kernel_grids import (
    MemoryRef,
    RefLike,
)
from pyjx.lax.convolution import conv_general_dilated
from pyjx.lax.convolution_shapes import conv_dimension_numbers
from pyjx.lax.joining import concatenate, slice_in_dim
from pyjx.lax.ref_views import bitcast_of
from pyjx.lax.references import target_of
from pyjx.lax.shapes import rev
from pyjx.numpy.manipulation import roll as rolled
from pyjx.numpy.ufuncs import where
from pyjx.runtime.backends import default_backend, devices

# -- memories --------------------------------------------------------------------------------------


class MemorySpace(enum.Enum):
    """The memories of a TPU. Called with a shape and a dtype, one describes an array in it.

    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> pltpu.VMEM((8, 128), "float32").shape
    (8, 128)
    """

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return self.name

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:
        return MemoryRef(ShapedArray(tuple(shape), dtype), self)


def has_memory_space(ref: object, memory_space: object) -> bool:
    """Whether a reference, or what describes one, lies in a memory."""
    return (ref if hasattr(ref, "memory_space") else get_aval(ref)).memory_space == memory_space


def with_memory_space_constraint(x: Array, memory_space: object) -> Array:
    """`x`, which a compiler is to keep in a memory: as it is where kernels are interpreted."""
    return x


# -- parts of references ---------------------------------------------------------------------------


def load(ref: RefLike, *, mask: ArrayLike | None = None) -> Array:
    """The value of a reference, of which only what `mask` has may be used."""
    return ref[...]  # type: ignore[no-any-return]


def store(ref: RefLike, val: ArrayLike, *, mask: ArrayLike | None = None) -> None:
    """Write a reference, where `mask` says so if it is given."""
    ref[...] = val if mask is None else where(mask, val, ref[...])


def annotate(ref: RefLike, *, no_store: bool = False, no_bank_conflict: bool = False,
             no_hazard: bool = False, no_hazard_no_deps: bool = False) -> RefLike:
    """A reference of which a compiler may assume what the flags say: they are accepted.

    Args:
      ref: the reference, or a part of one.
      no_store, no_bank_conflict, no_hazard, no_hazard_no_deps: what never happens to it.
    """
    target_of("annotate", ref, None)
    return ref


# -- operations on registers -----------------------------------------------------------------------


def roll(x: ArrayLike, shift: Any, axis: int, *, stride: int | None = None,
         stride_axis: int | None = None) -> Array:
    """`x` rolled along an axis.

    Args:
      x: array.
      shift: by how many places, not negative.
      axis: along which axis.
      stride: by how much more for each place along `stride_axis`.
      stride_axis: which axis that is; both or none.
    """
    if (stride is None) != (stride_axis is None):
        raise ValueError("roll: stride and stride_axis are given both or none; got stride="
                         f"{stride} and stride_axis={stride_axis}.")
    if isinstance(shift, int) and shift < 0:
        raise ValueError(f"roll: shift must not be negative, got {shift}. Roll by the size of the "
                         "axis less that.")
    if stride is None or stride_axis is None:
        return rolled(x, shift, axis)  # type: ignore[arg-type]
    count = get_aval(x).shape[stride_axis]
    parts = [rolled(slice_in_dim(x, k, k + 1, axis=stride_axis), shift + k * stride, axis)
             for k in range(count)]
    return concatenate(parts, stride_axis)


def reciprocal(x: Array, *, approx: bool = False, full_range: bool = True) -> Array:
    """1 / x, elementwise.

    Args:
      x: an array of a floating dtype.
      approx: whether fewer bits would do; all are computed.
      full_range: whether it must hold for the largest and the smallest numbers; it does.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> pl.reciprocal(jax.numpy.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return 1 / x  # type: ignore[return-value]


def conv(lhs: Array, rhs: Array, acc: Array | None = None, *, dimension_numbers: Any,
         window_strides: Sequence[int] | None = None,
         padding: str | Sequence[tuple[int, int]] | None = None,
         lhs_dilation: Sequence[int] | None = None, rhs_dilation: Sequence[int] | None = None,
         window_reversal: Sequence[bool] | None = None, feature_group_count: int = 1,
         batch_group_count: int = 1, precision: Any = None,
         preferred_element_type: DTypeLike | None = None) -> Array:
    """A convolution in a kernel that is interpreted; for TPUs write it as products of windows.

    Args:
      lhs, rhs, dimension_numbers, lhs_dilation, rhs_dilation, feature_group_count,
        batch_group_count, precision, preferred_element_type: as of
        `jax.lax.conv_general_dilated`.
      acc: what is added to the result.
      window_strides, padding: the same, by default 1 and none.
      window_reversal: along which axes the kernel is reversed.
    """
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    n = lhs.ndim - 2
    if window_reversal is not None:
        rhs = rev(rhs, [axis for axis, reverse in zip(
            numbers.rhs_spec[2:], window_reversal, strict=True) if reverse])
    out = conv_general_dilated(
        lhs, rhs, window_strides or (1,) * n, [(0, 0)] * n if padding is None else padding,
        lhs_dilation, rhs_dilation, numbers, feature_group_count, batch_group_count, precision,
        preferred_element_type)
    return out if acc is None else acc + out  # type: ignore[no-any-return,operator]


def bitcast(x: ArrayLike, ty: DTypeLike, dim: int = -2) -> Array:
    """The bits of `x` as another dtype, of which so many elements along an axis are one of the
    wider dtype.

    Args:
      x: array of two axes at least.
      ty: the dtype.
      dim: the axis, the last but one.
    """
    aval = get_aval(x)
    if dim % aval.ndim != aval.ndim - 2:
        raise NotImplementedError(f"bitcast: elements lie below each other along the last axis but "
                                  f"one, dim=-2; got dim={dim}.")
    return bitcast_of(aval.shape, aval.dtype, ty).read(x)  # type: ignore[no-any-return]


# -- interpretation --------------------------------------------------------------------------------


@contextmanager
def force_tpu_interpret_mode(params: object = None) -> Iterator[None]:
    """A context in which all kernels are interpreted.

    Args:
      params: how, a `InterpretParams`.
    """
    with configuration.interpret_kernels(True), configuration.interpreter(params or True):
        yield


def set_tpu_interpret_mode(params: object = True) -> None:
    """Interpret all kernels from now on, or with None no more.

    Args:
      params: how, a `InterpretParams`; None for as the calls say.
    """
    configuration.interpret_kernels.update(params is not None)
    configuration.interpreter.set_global(params or True)


def reset_tpu_interpret_mode_state() -> None:
    """Forget what the simulated memories hold: nothing stays here."""


# -- questions about the device --------------------------------------------------------------------


def _is(platform: str) -> bool:
    return default_backend() == platform


def is_tpu_device() -> bool:
    """Whether the default device is a TPU."""
    return _is("tpu")


def is_gpu_device() -> bool:
    """Whether the default device is a GPU."""
    return _is("gpu")


def get_gpu_info() -> NoReturn:
    """What is known of the default device as a GPU.

    Raises:
      ValueError: it is none.
    """
    if is_gpu_device():
        raise NotImplementedError("Kernels for GPUs are not there, nor what is known of them.")
    raise ValueError(f"Unsupported GPU device kind: {devices()[0].device_kind}")
