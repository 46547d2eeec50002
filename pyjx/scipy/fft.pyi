# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.fft.

from pyjx.scipy.cosine_transforms import dct as dct
from pyjx.scipy.cosine_transforms import dctn as dctn
from pyjx.scipy.cosine_transforms import idct as idct
from pyjx.scipy.cosine_transforms import idctn as idctn

__all__ = [
    "dct",
    "dctn",
    "idct",
    "idctn",
]
