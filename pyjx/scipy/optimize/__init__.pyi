# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.optimize.

from pyjx.scipy.optimize.minimization import minimize as minimize
from pyjx.scipy.optimize.quasi_newton import OptimizeResults as OptimizeResults

__all__ = [
    "minimize",
    "OptimizeResults",
]
