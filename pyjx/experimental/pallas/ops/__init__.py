"""Kernels that are there: attention, grouped products."""

from __future__ import annotations

from pyjx.lazy import attach, views

MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "tpu": ("Kernels for TPUs.", {}),
    "tpu.flash_attention": ("Attention by blocks.", {
        "pyjx.experimental.pallas.ops.attention_kernels": (
            "DEFAULT_MASK_VALUE=MASK_VALUE MIN_BLOCK_SIZE=LANES NUM_LANES=LANES "
            "NUM_SUBLANES=SUBLANES SegmentIds TRANS_B_DIM_NUMBERS=BY_ROWS mha_reference "
            "mha_reference_bwd mha_reference_no_custom_vjp"),
        "pyjx.experimental.pallas.ops.flash": "BlockSizes below_or_on_diag flash_attention",
    }),
    "tpu.example_kernel": ("Twice an array.", {
        "pyjx.experimental.pallas.ops.grouped_products": "double double_kernel",
    }),
    "tpu.matmul": ("A product by blocks.", {
        "pyjx.experimental.pallas.ops.grouped_products": "matmul matmul_kernel",
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
        "pyjx.experimental.pallas.ops.attention_kernels": "MASK_VALUE",
        "pyjx.experimental.pallas.ops.paged": "grouped_query_attention_reference",
    }),
    "tpu.splash_attention": ("Attention whose masks leave blocks out.", {
        "pyjx.experimental.pallas.ops.attention_kernels": "SegmentIds",
        "pyjx.experimental.pallas.ops.splash": (
            "BlockSizes CausalMask FullMask LocalMask Mask MultiHeadMask NumpyMask QKVLayout "
            "make_causal_mask make_local_attention_mask make_masked_mha_reference "
            "make_masked_mqa_reference make_random_mask make_splash_mha "
            "make_splash_mha_single_device make_splash_mqa make_splash_mqa_single_device"),
    }),
    "tpu.splash_attention.splash_attention_kernel": ("Attention whose masks leave blocks out.", {
        "pyjx.experimental.pallas.ops.attention_kernels": (
            "DEFAULT_MASK_VALUE=MASK_VALUE NN_DIM_NUMBERS=PLAIN NT_DIM_NUMBERS=BY_ROWS "
            "NUM_LANES=LANES NUM_SUBLANES=SUBLANES SegmentIds"),
        "pyjx.experimental.pallas.ops.splash": (
            "BlockSizes QKVLayout SplashAttentionKernel attention_reference "
            "attention_reference_custom=attention_reference make_attention_reference "
            "make_masked_mha_reference make_masked_mqa_reference make_splash_mha "
            "make_splash_mha_single_device make_splash_mqa make_splash_mqa_single_device"),
    }),
    "tpu.splash_attention.splash_attention_mask": ("Masks of attention.", {
        "pyjx.experimental.pallas.ops.splash": (
            "CausalMask ChunkedCausalMask FullMask LocalMask LogicalAnd LogicalOr Mask "
            "MultiHeadMask NumpyMask make_causal_mask make_chunk_attention_mask "
            "make_local_attention_mask make_random_mask"),
    }),
    "tpu.splash_attention.splash_attention_mask_info": ("Tables of masks.", {
        "pyjx.experimental.pallas.ops.splash": "MaskInfo process_mask process_mask_dkv",
    }),
}

FAMILIES: dict[str, str] = {}

SUBMODULES = f"{views(__name__, MODULES)} gpu"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
