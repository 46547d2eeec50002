# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.integrate.

from pyjx.numpy.differences import trapezoid as trapezoid

__all__ = [
    "trapezoid",
]
