"""SciPy's functions for arrays on any device. Modules load when they are first used.

Each has a table of its names: that of linear algebra, special functions and statistics is in a
package, the others' here. SciPy itself is not imported.
"""

from __future__ import annotations

from pyjx.lazy import attach, views

MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "cluster": ("Clusters.", {}),
    "cluster.vq": ("Codes of observations.", {
        "pyjx.scipy.clustering": "vq",
    }),
    "fft": ("Cosine transforms.", {
        "pyjx.scipy.cosine_transforms": "dct dctn idct idctn",
    }),
    "integrate": ("Integration of samples.", {
        "pyjx.numpy.differences": "trapezoid",
    }),
    "interpolate": ("Interpolation.", {
        "pyjx.scipy.interpolation": "RegularGridInterpolator",
    }),
    "ndimage": ("Images of any number of axes.", {
        "pyjx.scipy.interpolation": "map_coordinates",
    }),
    "optimize": ("Minimization.", {
        "pyjx.scipy.quasi_newton": "OptimizeResults minimize",
    }),
    "signal": ("Signals: convolutions and spectra.", {
        "pyjx.scipy.signals": (
            "convolve convolve2d correlate correlate2d csd detrend fftconvolve istft stft welch"),
    }),
    "sparse": ("Linear systems whose matrices are functions.", {}),
    "sparse.linalg": ("Iterative solvers of linear systems.", {
        "pyjx.scipy.iterative_solvers": "bicgstab cg gmres",
    }),
    "spatial": ("Space.", {}),
    "spatial.transform": ("Rotations of space.", {
        "pyjx.scipy.rotations": "Rotation Slerp",
    }),
}

FAMILIES: dict[str, str] = {}

SUBMODULES = f"{views(__name__, MODULES)} linalg special stats"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
