# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.optimize.

from pyjx.scipy.optimize.minimization import OptimizeResults as OptimizeResults
from pyjx.scipy.optimize.minimization import minimize as minimize

__all__ = [
    "OptimizeResults",
    "minimize",
]
