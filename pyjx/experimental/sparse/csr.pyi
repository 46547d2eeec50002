# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.sparse.csr.

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

__all__ = [
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
]
