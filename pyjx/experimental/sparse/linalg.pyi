# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.sparse.linalg.

from pyjx.experimental.sparse.solvers import lobpcg_standard as lobpcg_standard
from pyjx.experimental.sparse.solvers import spsolve as spsolve
from pyjx.experimental.sparse.solvers import spsolve_p as spsolve_p

__all__ = [
    "lobpcg_standard",
    "spsolve",
    "spsolve_p",
]
