# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.fft.

from pyjx.scipy.fft.cosine import dct as dct
from pyjx.scipy.fft.cosine import dctn as dctn
from pyjx.scipy.fft.cosine import idct as idct
from pyjx.scipy.fft.cosine import idctn as idctn

__all__ = [
    "dct",
    "dctn",
    "idct",
    "idctn",
]
