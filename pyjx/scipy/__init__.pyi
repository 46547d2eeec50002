# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.

from pyjx.scipy import cluster as cluster
from pyjx.scipy import fft as fft
from pyjx.scipy import integrate as integrate
from pyjx.scipy import interpolate as interpolate
from pyjx.scipy import ndimage as ndimage
from pyjx.scipy import optimize as optimize
from pyjx.scipy import signal as signal
from pyjx.scipy import sparse as sparse
from pyjx.scipy import spatial as spatial
from pyjx.scipy import linalg as linalg
from pyjx.scipy import special as special
from pyjx.scipy import stats as stats

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "linalg",
    "special",
    "stats",
]
