# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.sparse.linalg.

from pyjx.experimental.sparse.linalg.eigenvectors import lobpcg_standard as lobpcg_standard
from pyjx.experimental.sparse.linalg.systems import spsolve as spsolve
from pyjx.experimental.sparse.linalg.systems import spsolve_p as spsolve_p

__all__ = [
    "lobpcg_standard",
    "spsolve",
    "spsolve_p",
]
