# Written by `python -m pyjx.cli.stubs` from the table of pyjx.numpy.fft.

from pyjx.numpy.fft.transforms import fft as fft
from pyjx.numpy.fft.transforms import fft2 as fft2
from pyjx.numpy.fft.transforms import fftfreq as fftfreq
from pyjx.numpy.fft.transforms import fftn as fftn
from pyjx.numpy.fft.transforms import fftshift as fftshift
from pyjx.numpy.fft.transforms import hfft as hfft
from pyjx.numpy.fft.transforms import ifft as ifft
from pyjx.numpy.fft.transforms import ifft2 as ifft2
from pyjx.numpy.fft.transforms import ifftn as ifftn
from pyjx.numpy.fft.transforms import ifftshift as ifftshift
from pyjx.numpy.fft.transforms import ihfft as ihfft
from pyjx.numpy.fft.transforms import irfft as irfft
from pyjx.numpy.fft.transforms import irfft2 as irfft2
from pyjx.numpy.fft.transforms import irfftn as irfftn
from pyjx.numpy.fft.transforms import rfft as rfft
from pyjx.numpy.fft.transforms import rfft2 as rfft2
from pyjx.numpy.fft.transforms import rfftfreq as rfftfreq
from pyjx.numpy.fft.transforms import rfftn as rfftn

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
