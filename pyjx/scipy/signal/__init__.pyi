# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.signal.

from pyjx.scipy.signal.convolutions import convolve as convolve
from pyjx.scipy.signal.convolutions import convolve2d as convolve2d
from pyjx.scipy.signal.convolutions import correlate as correlate
from pyjx.scipy.signal.convolutions import correlate2d as correlate2d
from pyjx.scipy.signal.convolutions import fftconvolve as fftconvolve
from pyjx.scipy.signal.spectra import csd as csd
from pyjx.scipy.signal.spectra import detrend as detrend
from pyjx.scipy.signal.spectra import istft as istft
from pyjx.scipy.signal.spectra import stft as stft
from pyjx.scipy.signal.spectra import welch as welch

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "fftconvolve",
    "csd",
    "detrend",
    "istft",
    "stft",
    "welch",
]
