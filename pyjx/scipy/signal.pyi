# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.signal.

from pyjx.scipy.convolutions import convolve as convolve
from pyjx.scipy.convolutions import convolve2d as convolve2d
from pyjx.scipy.convolutions import correlate as correlate
from pyjx.scipy.convolutions import correlate2d as correlate2d
from pyjx.scipy.convolutions import fftconvolve as fftconvolve
from pyjx.scipy.spectra import csd as csd
from pyjx.scipy.spectra import detrend as detrend
from pyjx.scipy.spectra import istft as istft
from pyjx.scipy.spectra import stft as stft
from pyjx.scipy.spectra import welch as welch

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
