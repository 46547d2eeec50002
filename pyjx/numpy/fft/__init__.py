"""Discrete Fourier transforms. Names load their module when they are first used."""

from __future__ import annotations

from pyjx.documentation import describe
from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.numpy.fft.complex_transforms": "fft fft2 fftn ifft ifft2 ifftn",
    "pyjx.numpy.fft.real_transforms": (
        "hfft ihfft irfft irfft2 irfftn rfft rfft2 rfftn"
    ),
    "pyjx.numpy.fft.frequencies": "fftfreq fftshift ifftshift rfftfreq",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, describe=describe)
