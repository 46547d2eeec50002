# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.

from types import ModuleType as _ModuleType
from typing import Any as _Any
from pyjx.experimental.pallas import ops as ops
from pyjx.configuration import pallas_enable_debug_checks as enable_debug_checks
from pyjx.core.integers import Slice as Slice
from pyjx.core.integers import ds as ds
from pyjx.core.integers import ds as dslice
from pyjx.experimental.pallas.kernel_grids import ANY as ANY
from pyjx.experimental.pallas.kernel_grids import BlockDim as BlockDim
from pyjx.experimental.pallas.kernel_grids import BlockSpec as BlockSpec
from pyjx.experimental.pallas.kernel_grids import Blocked as Blocked
from pyjx.experimental.pallas.kernel_grids import BoundedSlice as BoundedSlice
from pyjx.experimental.pallas.kernel_grids import Buffered as Buffered
from pyjx.experimental.pallas.kernel_grids import CostEstimate as CostEstimate
from pyjx.experimental.pallas.kernel_grids import Element as Element
from pyjx.experimental.pallas.kernel_grids import GridSpec as GridSpec
from pyjx.experimental.pallas.kernel_grids import Indirect as Indirect
from pyjx.experimental.pallas.kernel_grids import MemoryRef as MemoryRef
from pyjx.experimental.pallas.kernel_grids import MemorySpace as MemorySpace
from pyjx.experimental.pallas.kernel_grids import RevisitMode as RevisitMode
from pyjx.experimental.pallas.kernel_grids import Squeezed as Squeezed
from pyjx.experimental.pallas.kernel_grids import no_block_spec as no_block_spec
from pyjx.experimental.pallas.kernel_grids import num_programs as num_programs
from pyjx.experimental.pallas.kernel_grids import program_id as program_id
from pyjx.experimental.pallas.kernel_grids import squeezed as squeezed
from pyjx.experimental.pallas.in_kernels import align_to as align_to
from pyjx.experimental.pallas.in_kernels import cdiv as cdiv
from pyjx.experimental.pallas.in_kernels import debug_check as debug_check
from pyjx.experimental.pallas.in_kernels import debug_print as debug_print
from pyjx.experimental.pallas.in_kernels import delay as delay
from pyjx.experimental.pallas.in_kernels import empty_like as empty_like
from pyjx.experimental.pallas.in_kernels import empty_ref_like as empty_ref_like
from pyjx.experimental.pallas.in_kernels import estimate_cost as estimate_cost
from pyjx.experimental.pallas.in_kernels import loop as loop
from pyjx.experimental.pallas.in_kernels import lower_as_mlir as lower_as_mlir
from pyjx.experimental.pallas.in_kernels import multiple_of as multiple_of
from pyjx.experimental.pallas.in_kernels import next_power_of_2 as next_power_of_2
from pyjx.experimental.pallas.in_kernels import run_scoped as run_scoped
from pyjx.experimental.pallas.in_kernels import run_state as run_state
from pyjx.experimental.pallas.in_kernels import strides_from_shape as strides_from_shape
from pyjx.experimental.pallas.in_kernels import when as when
from pyjx.experimental.pallas.in_kernels import with_scoped as with_scoped
from pyjx.experimental.pallas.kernel_calls import kernel as kernel
from pyjx.experimental.pallas.kernel_calls import pallas_call as pallas_call
from pyjx.experimental.pallas.kernel_calls import pallas_call_p as pallas_call_p
from pyjx.experimental.pallas.kernel_calls import pallas_export_experimental as pallas_export_experimental
from pyjx.experimental.pallas.copies import DeviceIdType as DeviceIdType
from pyjx.experimental.pallas.copies import select_ref as select_ref
from pyjx.experimental.pallas.copies import semaphore_read as semaphore_read
from pyjx.experimental.pallas.copies import semaphore_signal as semaphore_signal
from pyjx.experimental.pallas.copies import semaphore_wait as semaphore_wait
from pyjx.experimental.pallas.tpu_kernels import reciprocal as reciprocal
from pyjx.lax.creation import empty as empty
from pyjx.numpy import broadcast_to as broadcast_to

fuser: _ModuleType
mosaic_gpu: _ModuleType
tpu: _ModuleType
tpu_sc: _ModuleType
triton: _ModuleType
CompilerParams: _Any
HOST: _Any
enable_poison_buffers: _Any
get_global: _Any
semaphore: _Any

__all__ = [
    "fuser",
    "mosaic_gpu",
    "ops",
    "tpu",
    "tpu_sc",
    "triton",
    "enable_debug_checks",
    "Slice",
    "ds",
    "dslice",
    "ANY",
    "BlockDim",
    "BlockSpec",
    "Blocked",
    "BoundedSlice",
    "Buffered",
    "CostEstimate",
    "Element",
    "GridSpec",
    "Indirect",
    "MemoryRef",
    "MemorySpace",
    "RevisitMode",
    "Squeezed",
    "no_block_spec",
    "num_programs",
    "program_id",
    "squeezed",
    "align_to",
    "cdiv",
    "debug_check",
    "debug_print",
    "delay",
    "empty_like",
    "empty_ref_like",
    "estimate_cost",
    "loop",
    "lower_as_mlir",
    "multiple_of",
    "next_power_of_2",
    "run_scoped",
    "run_state",
    "strides_from_shape",
    "when",
    "with_scoped",
    "kernel",
    "pallas_call",
    "pallas_call_p",
    "pallas_export_experimental",
    "CompilerParams",
    "HOST",
    "enable_poison_buffers",
    "get_global",
    "semaphore",
    "DeviceIdType",
    "select_ref",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "reciprocal",
    "empty",
    "broadcast_to",
]
