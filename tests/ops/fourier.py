"""Samples of Fourier transforms."""

from __future__ import annotations

import numpy as np

from pyjx import lax
from tests.op_table import Sample

rng = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def complexes(*shape: int) -> np.ndarray:
    return (floats(*shape) + 1j * floats(*shape)).astype(np.complex64)


SAMPLES = [
    Sample("fft", lambda x: lax.fft(x, "fft", (5,)), (complexes(3, 5),), np.fft.fft),
    Sample("fft", lambda x: lax.fft(x, lax.FftType.IFFT, (2, 3, 4)), (complexes(2, 3, 4),),
           np.fft.ifftn, id="ifft-3"),
    Sample("fft", lambda x: lax.fft(x, "FFT", (2, 0)), (complexes(2, 0),), lambda x: x,
           id="fft-empty"),
    Sample("fft", lambda x: lax.fft(x, "fft", (4,)), (floats(4),), np.fft.fft, id="fft-of-real"),
    Sample("fft", lambda x: lax.fft(x, "rfft", (6,)), (floats(2, 6),), np.fft.rfft, id="rfft"),
    Sample("fft", lambda x: lax.fft(x, "rfft", (3, 5)), (floats(2, 3, 5),),
           lambda x: np.fft.rfftn(x, axes=(1, 2)), id="rfft-odd"),
    Sample("fft", lambda x: lax.fft(x, "rfft", (1,)), (floats(2, 1),), np.fft.rfft, id="rfft-one"),
    Sample("fft", lambda x: lax.fft(x, "irfft", (6,)), (complexes(2, 4),), np.fft.irfft,
           id="irfft"),
    Sample("fft", lambda x: lax.fft(x, "irfft", (3, 5)), (complexes(2, 3, 3),),
           lambda x: np.fft.irfftn(x, (3, 5), axes=(1, 2)), id="irfft-odd"),
    Sample("fft", lambda x: lax.fft(x, "irfft", (1,)), (complexes(2, 1),),
           lambda x: np.fft.irfft(x, 1), id="irfft-one"),
]
