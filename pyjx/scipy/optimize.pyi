# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.optimize.

from pyjx.scipy.quasi_newton import OptimizeResults as OptimizeResults
from pyjx.scipy.quasi_newton import minimize as minimize

__all__ = [
    "OptimizeResults",
    "minimize",
]
