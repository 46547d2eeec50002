# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.sparse.coo.

from pyjx.experimental.sparse.matrices import COO as COO
from pyjx.experimental.sparse.matrices import COOInfo as COOInfo
from pyjx.experimental.sparse.matrices import coo_fromdense as coo_fromdense
from pyjx.experimental.sparse.matrices import coo_fromdense_p as coo_fromdense_p
from pyjx.experimental.sparse.matrices import coo_matmat as coo_matmat
from pyjx.experimental.sparse.matrices import coo_matmat_p as coo_matmat_p
from pyjx.experimental.sparse.matrices import coo_matvec as coo_matvec
from pyjx.experimental.sparse.matrices import coo_matvec_p as coo_matvec_p
from pyjx.experimental.sparse.matrices import coo_todense as coo_todense
from pyjx.experimental.sparse.matrices import coo_todense_p as coo_todense_p

__all__ = [
    "COO",
    "COOInfo",
    "coo_fromdense",
    "coo_fromdense_p",
    "coo_matmat",
    "coo_matmat_p",
    "coo_matvec",
    "coo_matvec_p",
    "coo_todense",
    "coo_todense_p",
]
