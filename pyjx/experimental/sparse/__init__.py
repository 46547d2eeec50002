"""Sparse arrays."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.experimental.sparse.base": "JAXSparse",
    "pyjx.experimental.sparse.util": (
        "CuSparseEfficiencyWarning SparseEfficiencyError SparseEfficiencyWarning"
    ),
    "pyjx.experimental.sparse.bcoo.array": "BCOO",
    "pyjx.experimental.sparse.bcoo.conversion": (
        "bcoo_extract bcoo_extract_p bcoo_fromdense bcoo_fromdense_p bcoo_todense bcoo_todense_p"
    ),
    "pyjx.experimental.sparse.bcoo.duplicates": (
        "bcoo_sort_indices bcoo_sort_indices_p bcoo_sum_duplicates bcoo_sum_duplicates_p"
    ),
    "pyjx.experimental.sparse.bcoo.layout": "bcoo_update_layout",
    "pyjx.experimental.sparse.bcoo.contractions": (
        "bcoo_dot_general bcoo_dot_general_p bcoo_dot_general_sampled bcoo_dot_general_sampled_p "
        "bcoo_multiply_dense bcoo_multiply_sparse bcoo_spdot_general_p"
    ),
    "pyjx.experimental.sparse.bcoo.shapes": (
        "bcoo_broadcast_in_dim bcoo_concatenate bcoo_dynamic_slice bcoo_gather bcoo_reduce_sum "
        "bcoo_reshape bcoo_rev bcoo_slice bcoo_squeeze bcoo_transpose bcoo_transpose_p"
    ),
    "pyjx.experimental.sparse.bcoo.convolution": "bcoo_conv_general_dilated",
    "pyjx.experimental.sparse.bcsr": (
        "BCSR bcsr_broadcast_in_dim bcsr_concatenate bcsr_dot_general bcsr_dot_general_p "
        "bcsr_extract bcsr_extract_p bcsr_fromdense bcsr_fromdense_p bcsr_sum_duplicates "
        "bcsr_todense bcsr_todense_p"
    ),
    "pyjx.experimental.sparse.coo": (
        "COO coo_fromdense coo_fromdense_p coo_matmat coo_matmat_p coo_matvec coo_matvec_p "
        "coo_todense coo_todense_p"
    ),
    "pyjx.experimental.sparse.csr": (
        "CSC CSR csr_fromdense csr_fromdense_p csr_matmat csr_matmat_p csr_matvec csr_matvec_p "
        "csr_todense csr_todense_p"
    ),
    "pyjx.experimental.sparse.api": "empty eye todense todense_p",
    "pyjx.experimental.sparse.ad": "grad jacfwd jacobian jacrev value_and_grad",
    "pyjx.experimental.sparse.random": "random_bcoo",
    "pyjx.experimental.sparse.transform": "SparseTracer sparsify",
}

SUBMODULES = "ad api bcoo bcsr coo csr linalg random test_util transform util"

# The first name that is used loads what methods of sparse arrays call.
__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES,
                                       first="pyjx.experimental.sparse.transform")
