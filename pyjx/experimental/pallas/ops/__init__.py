"""Kernels that are there: attention, grouped products."""

from __future__ import annotations

from pyjx.lazy import attach, views

MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "tpu": ("Kernels for TPUs.", {}),
    "tpu.flash_attention": ("Attention by blocks.", {
        "pyjx.experimental.pallas.ops.attention_blocks": (
            "DEFAULT_MASK_VALUE=MASK_VALUE MIN_BLOCK_SIZE=LANES NUM_LANES=LANES "
            "NUM_SUBLANES=SUBLANES SegmentIds TRANS_B_DIM_NUMBERS=BY_ROWS"),
        "pyjx.experimental.pallas.ops.attention_references": (
            "mha_reference mha_reference_bwd mha_reference_no_custom_vjp"),
        "pyjx.experimental.pallas.ops.flash": "BlockSizes below_or_on_diag flash_attention",
    }),
    "tpu.example_kernel": ("Twice an array.", {
        "pyjx.experimental.pallas.ops.simple_kernels": "double double_kernel",
    }),
    "tpu.matmul": ("A product by blocks.", {
        "pyjx.experimental.pallas.ops.simple_kernels": "matmul matmul_kernel",
    }),
    "tpu.megablox": ("Products of groups of rows.", {
        "pyjx.experimental.pallas.ops.grouped_products": "gmm",
    }),
    "tpu.megablox.gmm": ("Products of groups of rows.", {
        "pyjx.experimental.pallas.ops.grouped_products": "gmm make_group_metadata tgmm",
    }),
    "tpu.megablox.ops": ("Products of groups of rows.", {
        "pyjx.experimental.pallas.ops.grouped_products": "gmm",
    }),
    "tpu.paged_attention": ("Attention to keys that lie in pages.", {
        "pyjx.experimental.pallas.ops.paged": "paged_attention",
    }),
    "tpu.paged_attention.quantization_utils": ("Pages of eight bits.", {
        "pyjx.experimental.pallas.ops.paged": (
            "MAX_INT8 QuantizedTensor from_int8 get_quantization_scales quantize_to_int8 to_int8 "
            "unquantize_from_int8"),
    }),
    "tpu.paged_attention.util": ("Attention without kernels.", {
        "pyjx.experimental.pallas.ops.attention_blocks": "MASK_VALUE",
        "pyjx.experimental.pallas.ops.paged": "grouped_query_attention_reference",
    }),
}

FAMILIES: dict[str, str] = {}

SUBMODULES = f"{views(__name__, MODULES)} gpu"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
