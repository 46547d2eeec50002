"""Signals: convolutions and spectra. Names load their module when they are first used."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.scipy.signal.convolutions": (
        "convolve convolve2d correlate correlate2d fftconvolve"
    ),
    "pyjx.scipy.signal.spectra": "csd detrend istft stft welch",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
