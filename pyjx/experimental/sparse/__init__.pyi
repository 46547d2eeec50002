# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.sparse.

from pyjx.experimental.sparse import api as api
from pyjx.experimental.sparse import coo as coo
from pyjx.experimental.sparse import csr as csr
from pyjx.experimental.sparse import linalg as linalg
from pyjx.experimental.sparse import random as random
from pyjx.experimental.sparse import test_util as test_util
from pyjx.experimental.sparse import util as util
from pyjx.experimental.sparse import ad as ad
from pyjx.experimental.sparse import bcoo as bcoo
from pyjx.experimental.sparse import bcsr as bcsr
from pyjx.experimental.sparse import transform as transform
from pyjx.experimental.sparse.ad import grad as grad
from pyjx.experimental.sparse.ad import jacfwd as jacfwd
from pyjx.experimental.sparse.ad import jacobian as jacobian
from pyjx.experimental.sparse.ad import jacrev as jacrev
from pyjx.experimental.sparse.ad import value_and_grad as value_and_grad
from pyjx.experimental.sparse.bcoo.array import BCOO as BCOO
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
from pyjx.experimental.sparse.bcsr import BCSR as BCSR
from pyjx.experimental.sparse.bcsr import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from pyjx.experimental.sparse.bcsr import bcsr_concatenate as bcsr_concatenate
from pyjx.experimental.sparse.bcsr import bcsr_dot_general as bcsr_dot_general
from pyjx.experimental.sparse.bcsr import bcsr_dot_general_p as bcsr_dot_general_p
from pyjx.experimental.sparse.bcsr import bcsr_extract as bcsr_extract
from pyjx.experimental.sparse.bcsr import bcsr_extract_p as bcsr_extract_p
from pyjx.experimental.sparse.bcsr import bcsr_fromdense as bcsr_fromdense
from pyjx.experimental.sparse.bcsr import bcsr_fromdense_p as bcsr_fromdense_p
from pyjx.experimental.sparse.bcsr import bcsr_sum_duplicates as bcsr_sum_duplicates
from pyjx.experimental.sparse.bcsr import bcsr_todense as bcsr_todense
from pyjx.experimental.sparse.bcsr import bcsr_todense_p as bcsr_todense_p
from pyjx.experimental.sparse.creation import empty as empty
from pyjx.experimental.sparse.creation import eye as eye
from pyjx.experimental.sparse.creation import random_bcoo as random_bcoo
from pyjx.experimental.sparse.creation import todense as todense
from pyjx.experimental.sparse.creation import todense_p as todense_p
from pyjx.experimental.sparse.formats import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from pyjx.experimental.sparse.formats import JAXSparse as JAXSparse
from pyjx.experimental.sparse.formats import SparseEfficiencyError as SparseEfficiencyError
from pyjx.experimental.sparse.formats import SparseEfficiencyWarning as SparseEfficiencyWarning
from pyjx.experimental.sparse.matrices import COO as COO
from pyjx.experimental.sparse.matrices import coo_fromdense as coo_fromdense
from pyjx.experimental.sparse.matrices import coo_fromdense_p as coo_fromdense_p
from pyjx.experimental.sparse.matrices import coo_matmat as coo_matmat
from pyjx.experimental.sparse.matrices import coo_matmat_p as coo_matmat_p
from pyjx.experimental.sparse.matrices import coo_matvec as coo_matvec
from pyjx.experimental.sparse.matrices import coo_matvec_p as coo_matvec_p
from pyjx.experimental.sparse.matrices import coo_todense as coo_todense
from pyjx.experimental.sparse.matrices import coo_todense_p as coo_todense_p
from pyjx.experimental.sparse.matrices import CSC as CSC
from pyjx.experimental.sparse.matrices import CSR as CSR
from pyjx.experimental.sparse.matrices import csr_fromdense as csr_fromdense
from pyjx.experimental.sparse.matrices import csr_fromdense_p as csr_fromdense_p
from pyjx.experimental.sparse.matrices import csr_matmat as csr_matmat
from pyjx.experimental.sparse.matrices import csr_matmat_p as csr_matmat_p
from pyjx.experimental.sparse.matrices import csr_matvec as csr_matvec
from pyjx.experimental.sparse.matrices import csr_matvec_p as csr_matvec_p
from pyjx.experimental.sparse.matrices import csr_todense as csr_todense
from pyjx.experimental.sparse.matrices import csr_todense_p as csr_todense_p
from pyjx.experimental.sparse.transform import SparseTracer as SparseTracer
from pyjx.experimental.sparse.transform import sparsify as sparsify

__all__ = [
    "api",
    "coo",
    "csr",
    "linalg",
    "random",
    "test_util",
    "util",
    "ad",
    "bcoo",
    "bcsr",
    "transform",
    "grad",
    "jacfwd",
    "jacobian",
    "jacrev",
    "value_and_grad",
    "BCOO",
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
    "BCSR",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_dot_general_p",
    "bcsr_extract",
    "bcsr_extract_p",
    "bcsr_fromdense",
    "bcsr_fromdense_p",
    "bcsr_sum_duplicates",
    "bcsr_todense",
    "bcsr_todense_p",
    "empty",
    "eye",
    "random_bcoo",
    "todense",
    "todense_p",
    "CuSparseEfficiencyWarning",
    "JAXSparse",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "COO",
    "coo_fromdense",
    "coo_fromdense_p",
    "coo_matmat",
    "coo_matmat_p",
    "coo_matvec",
    "coo_matvec_p",
    "coo_todense",
    "coo_todense_p",
    "CSC",
    "CSR",
    "csr_fromdense",
    "csr_fromdense_p",
    "csr_matmat",
    "csr_matmat_p",
    "csr_matvec",
    "csr_matvec_p",
    "csr_todense",
    "csr_todense_p",
    "SparseTracer",
    "sparsify",
]
