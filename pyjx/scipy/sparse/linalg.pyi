# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.sparse.linalg.

from pyjx.scipy.iterative_solvers import bicgstab as bicgstab
from pyjx.scipy.iterative_solvers import cg as cg
from pyjx.scipy.iterative_solvers import gmres as gmres

__all__ = [
    "bicgstab",
    "cg",
    "gmres",
]
