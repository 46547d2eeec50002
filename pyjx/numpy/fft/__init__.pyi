# Written by `python -m pyjx.cli.stubs` from the table of pyjx.numpy.fft.

from pyjx.numpy.fft.complex_transforms import fft as fft
from pyjx.numpy.fft.complex_transforms import fft2 as fft2
from pyjx.numpy.fft.complex_transforms import fftn as fftn
from pyjx.numpy.fft.complex_transforms import ifft as ifft
from pyjx.numpy.fft.complex_transforms import ifft2 as ifft2
from pyjx.numpy.fft.complex_transforms import ifftn as ifftn
from pyjx.numpy.fft.real_transforms import hfft as hfft
from pyjx.numpy.fft.real_transforms import ihfft as ihfft
from pyjx.numpy.fft.real_transforms import irfft as irfft
from pyjx.numpy.fft.real_transforms import irfft2 as irfft2
from pyjx.numpy.fft.real_transforms import irfftn as irfftn
from pyjx.numpy.fft.real_transforms import rfft as rfft
from pyjx.numpy.fft.real_transforms import rfft2 as rfft2
from pyjx.numpy.fft.real_transforms import rfftn as rfftn
from pyjx.numpy.fft.frequencies import fftfreq as fftfreq
from pyjx.numpy.fft.frequencies import fftshift as fftshift
from pyjx.numpy.fft.frequencies import ifftshift as ifftshift
from pyjx.numpy.fft.frequencies import rfftfreq as rfftfreq

__all__ = [
    "fft",
    "fft2",
    "fftn",
    "ifft",
    "ifft2",
    "ifftn",
    "hfft",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftn",
    "fftfreq",
    "fftshift",
    "ifftshift",
    "rfftfreq",
]
