"""Sparse arrays."""

from __future__ import annotations

from pyjx.lazy import attach, views

MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "api": ("Functions for sparse arrays of all formats.", {
        "pyjx.experimental.sparse.creation": "empty eye todense todense_p",
    }),
    "coo": ("COO: matrices of which elements are stored with their row and column.", {
        "pyjx.experimental.sparse.matrices": (
            "COO COOInfo coo_fromdense coo_fromdense_p coo_matmat coo_matmat_p coo_matvec "
            "coo_matvec_p coo_todense coo_todense_p"),
    }),
    "csr": ("CSR and CSC: matrices whose elements are stored row by row, or by columns.", {
        "pyjx.experimental.sparse.matrices": (
            "CSC CSR csr_fromdense csr_fromdense_p csr_matmat csr_matmat_p csr_matvec "
            "csr_matvec_p csr_todense csr_todense_p"),
    }),
    "linalg": ("Linear algebra for sparse matrices.", {
        "pyjx.experimental.sparse.solvers": "lobpcg_standard spsolve spsolve_p",
    }),
    "random": ("Random sparse arrays.", {
        "pyjx.experimental.sparse.creation": "random_bcoo",
    }),
    "test_util": ("Sparse arrays for tests.", {
        "pyjx.experimental.sparse.creation": "rand_sparse",
    }),
    "util": ("What all formats share: warnings, and facts about a sparse array.", {
        "pyjx.experimental.sparse.formats": (
            "CuSparseEfficiencyWarning SparseEfficiencyError SparseEfficiencyWarning SparseInfo"),
    }),
}

FAMILIES: dict[str, str] = {
    "pyjx.experimental.sparse.ad": "grad jacfwd jacobian jacrev value_and_grad",
    "pyjx.experimental.sparse.bcoo.array": "BCOO",
    "pyjx.experimental.sparse.bcoo.buffers": (
        "bcoo_extract bcoo_extract_p bcoo_fromdense bcoo_fromdense_p bcoo_sort_indices "
        "bcoo_sort_indices_p bcoo_sum_duplicates bcoo_sum_duplicates_p bcoo_todense "
        "bcoo_todense_p bcoo_update_layout"),
    "pyjx.experimental.sparse.bcoo.products": (
        "bcoo_conv_general_dilated bcoo_dot_general bcoo_dot_general_p bcoo_dot_general_sampled "
        "bcoo_dot_general_sampled_p bcoo_multiply_dense bcoo_multiply_sparse "
        "bcoo_spdot_general_p"),
    "pyjx.experimental.sparse.bcoo.shapes": (
        "bcoo_broadcast_in_dim bcoo_concatenate bcoo_dynamic_slice bcoo_gather bcoo_reduce_sum "
        "bcoo_reshape bcoo_rev bcoo_slice bcoo_squeeze bcoo_transpose bcoo_transpose_p"),
    "pyjx.experimental.sparse.bcsr": (
        "BCSR bcsr_broadcast_in_dim bcsr_concatenate bcsr_dot_general bcsr_dot_general_p "
        "bcsr_extract bcsr_extract_p bcsr_fromdense bcsr_fromdense_p bcsr_sum_duplicates "
        "bcsr_todense bcsr_todense_p"),
    "pyjx.experimental.sparse.creation": "empty eye random_bcoo todense todense_p",
    "pyjx.experimental.sparse.formats": (
        "CuSparseEfficiencyWarning JAXSparse SparseEfficiencyError SparseEfficiencyWarning"),
    "pyjx.experimental.sparse.matrices": (
        "COO coo_fromdense coo_fromdense_p coo_matmat coo_matmat_p coo_matvec coo_matvec_p "
        "coo_todense coo_todense_p CSC CSR csr_fromdense csr_fromdense_p csr_matmat "
        "csr_matmat_p csr_matvec csr_matvec_p csr_todense csr_todense_p"),
    "pyjx.experimental.sparse.transform": "SparseTracer sparsify",
}

SUBMODULES = f"{views(__name__, MODULES)} ad bcoo bcsr transform"

# The first name that is used loads what methods of sparse arrays call.
__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES,
                                       first="pyjx.experimental.sparse.transform")
