"""Discrete Fourier transforms. Names load their module when they are first used."""

from __future__ import annotations

from pyjx.documentation import describe
from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.numpy.fft.transforms": (
        "fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 "
        "irfftn rfft rfft2 rfftfreq rfftn"),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, describe=describe)
