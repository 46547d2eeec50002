# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.sparse.bcoo.

from pyjx.experimental.sparse.bcoo.array import BCOO as BCOO
from pyjx.experimental.sparse.bcoo.array import BCOOProperties as BCOOProperties
from pyjx.experimental.sparse.bcoo.buffers import bcoo_eliminate_zeros as bcoo_eliminate_zeros
from pyjx.experimental.sparse.bcoo.buffers import bcoo_extract as bcoo_extract
from pyjx.experimental.sparse.bcoo.buffers import bcoo_extract_p as bcoo_extract_p
from pyjx.experimental.sparse.bcoo.buffers import bcoo_fromdense as bcoo_fromdense
from pyjx.experimental.sparse.bcoo.buffers import bcoo_fromdense_p as bcoo_fromdense_p
from pyjx.experimental.sparse.bcoo.buffers import bcoo_sort_indices as bcoo_sort_indices
from pyjx.experimental.sparse.bcoo.buffers import bcoo_sort_indices_p as bcoo_sort_indices_p
from pyjx.experimental.sparse.bcoo.buffers import bcoo_sum_duplicates as bcoo_sum_duplicates
from pyjx.experimental.sparse.bcoo.buffers import bcoo_sum_duplicates_p as bcoo_sum_duplicates_p
from pyjx.experimental.sparse.bcoo.buffers import bcoo_todense as bcoo_todense
from pyjx.experimental.sparse.bcoo.buffers import bcoo_todense_p as bcoo_todense_p
from pyjx.experimental.sparse.bcoo.buffers import bcoo_update_layout as bcoo_update_layout
from pyjx.experimental.sparse.bcoo.products import bcoo_conv_general_dilated as bcoo_conv_general_dilated
from pyjx.experimental.sparse.bcoo.products import bcoo_dot_general as bcoo_dot_general
from pyjx.experimental.sparse.bcoo.products import bcoo_dot_general_p as bcoo_dot_general_p
from pyjx.experimental.sparse.bcoo.products import bcoo_dot_general_sampled as bcoo_dot_general_sampled
from pyjx.experimental.sparse.bcoo.products import bcoo_dot_general_sampled_p as bcoo_dot_general_sampled_p
from pyjx.experimental.sparse.bcoo.products import bcoo_multiply_dense as bcoo_multiply_dense
from pyjx.experimental.sparse.bcoo.products import bcoo_multiply_sparse as bcoo_multiply_sparse
from pyjx.experimental.sparse.bcoo.products import bcoo_spdot_general_p as bcoo_spdot_general_p
from pyjx.experimental.sparse.bcoo.shapes import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from pyjx.experimental.sparse.bcoo.shapes import bcoo_concatenate as bcoo_concatenate
from pyjx.experimental.sparse.bcoo.shapes import bcoo_dynamic_slice as bcoo_dynamic_slice
from pyjx.experimental.sparse.bcoo.shapes import bcoo_gather as bcoo_gather
from pyjx.experimental.sparse.bcoo.shapes import bcoo_reduce_sum as bcoo_reduce_sum
from pyjx.experimental.sparse.bcoo.shapes import bcoo_reshape as bcoo_reshape
from pyjx.experimental.sparse.bcoo.shapes import bcoo_rev as bcoo_rev
from pyjx.experimental.sparse.bcoo.shapes import bcoo_slice as bcoo_slice
from pyjx.experimental.sparse.bcoo.shapes import bcoo_squeeze as bcoo_squeeze
from pyjx.experimental.sparse.bcoo.shapes import bcoo_transpose as bcoo_transpose
from pyjx.experimental.sparse.bcoo.shapes import bcoo_transpose_p as bcoo_transpose_p

__all__ = [
    "BCOO",
    "BCOOProperties",
    "bcoo_eliminate_zeros",
    "bcoo_extract",
    "bcoo_extract_p",
    "bcoo_fromdense",
    "bcoo_fromdense_p",
    "bcoo_sort_indices",
    "bcoo_sort_indices_p",
    "bcoo_sum_duplicates",
    "bcoo_sum_duplicates_p",
    "bcoo_todense",
    "bcoo_todense_p",
    "bcoo_update_layout",
    "bcoo_conv_general_dilated",
    "bcoo_dot_general",
    "bcoo_dot_general_p",
    "bcoo_dot_general_sampled",
    "bcoo_dot_general_sampled_p",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_spdot_general_p",
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_dynamic_slice",
    "bcoo_gather",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_squeeze",
    "bcoo_transpose",
    "bcoo_transpose_p",
]
