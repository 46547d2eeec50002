"""Kernels by the user, which run for each program of a grid on blocks of arrays."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.configuration": "enable_debug_checks=pallas_enable_debug_checks",
    "pyjx.core.integers": "Slice ds dslice=ds",
    "pyjx.experimental.pallas.kernel_grids": (
        "ANY BlockDim BlockSpec Blocked BoundedSlice Buffered CostEstimate Element GridSpec "
        "Indirect MemoryRef MemorySpace RevisitMode Squeezed no_block_spec num_programs "
        "program_id squeezed"),
    "pyjx.experimental.pallas.in_kernels": (
        "align_to cdiv debug_check debug_print delay empty_like empty_ref_like estimate_cost loop "
        "lower_as_mlir multiple_of next_power_of_2 run_scoped run_state strides_from_shape when "
        "with_scoped"),
    "pyjx.experimental.pallas.kernel_calls": (
        "kernel pallas_call pallas_call_p pallas_export_experimental"),
    "pyjx.experimental.pallas.rest": (
        "CompilerParams HOST enable_poison_buffers get_global semaphore"),
    "pyjx.experimental.pallas.copies": (
        "DeviceIdType select_ref semaphore_read semaphore_signal semaphore_wait"),
    "pyjx.experimental.pallas.tpu_kernels": "reciprocal",
    "pyjx.lax.creation": "empty",
    "pyjx.numpy": "broadcast_to",
}

SUBMODULES = "fuser mosaic_gpu ops tpu tpu_sc triton"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
