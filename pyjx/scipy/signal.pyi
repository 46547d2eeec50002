# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.signal.

from pyjx.scipy.signals import convolve as convolve
from pyjx.scipy.signals import convolve2d as convolve2d
from pyjx.scipy.signals import correlate as correlate
from pyjx.scipy.signals import correlate2d as correlate2d
from pyjx.scipy.signals import csd as csd
from pyjx.scipy.signals import detrend as detrend
from pyjx.scipy.signals import fftconvolve as fftconvolve
from pyjx.scipy.signals import istft as istft
from pyjx.scipy.signals import stft as stft
from pyjx.scipy.signals import welch as welch

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "istft",
    "stft",
    "welch",
]
