# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.

from pyjx.scipy import fft as fft
from pyjx.scipy import linalg as linalg
from pyjx.scipy import special as special
from pyjx.scipy import stats as stats

__all__ = [
    "fft",
    "linalg",
    "special",
    "stats",
]
