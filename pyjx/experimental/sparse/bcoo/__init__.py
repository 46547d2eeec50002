"""BCOO, batched coordinate format: the class and its operations."""

from __future__ import annotations

from pyjx.lazy import attach

_ROOM = "pyjx.experimental.sparse.bcoo"

FAMILIES: dict[str, str] = {
    f"{_ROOM}.array": "BCOO BCOOProperties",
    f"{_ROOM}.buffers": (
        "bcoo_eliminate_zeros bcoo_extract bcoo_extract_p bcoo_fromdense bcoo_fromdense_p "
        "bcoo_sort_indices bcoo_sort_indices_p bcoo_sum_duplicates bcoo_sum_duplicates_p "
        "bcoo_todense bcoo_todense_p bcoo_update_layout"),
    f"{_ROOM}.products": (
        "bcoo_conv_general_dilated bcoo_dot_general bcoo_dot_general_p bcoo_dot_general_sampled "
        "bcoo_dot_general_sampled_p bcoo_multiply_dense bcoo_multiply_sparse "
        "bcoo_spdot_general_p"),
    f"{_ROOM}.shapes": (
        "bcoo_broadcast_in_dim bcoo_concatenate bcoo_dynamic_slice bcoo_gather bcoo_reduce_sum "
        "bcoo_reshape bcoo_rev bcoo_slice bcoo_squeeze bcoo_transpose bcoo_transpose_p"),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES,
                                       first="pyjx.experimental.sparse.transform")
