"""Fourier and cosine transforms, convolutions, spectra and values between pixels at the edges of
their arguments against NumPy and SciPy: one element, none, other lengths, a longer second operand,
nan and infinities, borders. Every call is a case; a call that SciPy refuses is none, and one that
this package refuses has to be meant."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
import scipy.signal

import pyjx as jax
import pyjx.numpy as jnp

Call = tuple[tuple[Any, ...], dict[str, Any]]
MODES = ("full", "same", "valid")


def sample(shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Numbers of a shape: real, complex, integers, or with one that is nan or infinite."""
    rng = np.random.default_rng(len(shape) + sum(shape))
    x = np.asarray(rng.normal(size=shape))
    if kind == "complex":
        return x + 1j * rng.normal(size=shape)
    if kind == "integer":
        return rng.integers(-9, 9, size=shape)
    if kind in ("nan", "inf"):
        x.flat[x.size // 2:x.size // 2 + 1] = float(kind)
    return x


def _fft() -> Iterator[Call]:
    for shape, kind in itertools.product(
            [(1,), (2,), (5,), (0,), (1, 1), (3, 0), (2, 3, 4)],
            ["real", "complex", "integer", "nan", "inf"]):
        for n, axis, norm in [(None, -1, None), (None, 0, "ortho"), (5, 0, None), (1, -1, None),
                              (2, -1, "ortho"), (8, -1, None)]:
            yield (sample(shape, kind),), {"n": n, "axis": axis, "norm": norm}


def _fftn() -> Iterator[Call]:
    for shape, kind in itertools.product([(1, 1), (2, 3), (0, 3), (3, 4, 5), (2, 2, 2, 2, 3)],
                                         ["real", "complex", "nan"]):
        for s, axes in [(None, None), ((2, 5), (-2, -1)), ((3, 1), (0, 1)), (None, (1, 0)),
                        ((5, 2), (-1, 0))]:
            yield (sample(shape, kind),), {"s": s, "axes": axes}


def _dctn() -> Iterator[Call]:
    yield from _fftn()
    for axes, s in [(0, None), (1, 4), ((), None)]:
        yield (sample((2, 3), "real"),), {"s": s, "axes": axes}


def _pairs(shapes: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> Iterator[Call]:
    for (first, second), mode in itertools.product(shapes, MODES):
        for kinds in [("real", "real"), ("complex", "real"), ("integer", "integer"),
                      ("real", "complex"), ("nan", "real"), ("inf", "real")]:
            yield (sample(first, kinds[0]), sample(second, kinds[1])), {"mode": mode}


PLANE = [((1, 1), (2, 3)), ((2, 3), (3, 2)), ((1, 4), (2, 1)), ((3, 4), (2, 2)), ((2, 2), (3, 5)),
         ((3, 4), (3, 4))]


def _convolve() -> Iterator[Call]:
    for args, options in _pairs([((1,), (1,)), ((1,), (3,)), ((5,), (2,)), ((2,), (5,)), ((), ()),
                                 *PLANE, ((2, 3, 4), (1, 2, 2))]):
        finite = np.isfinite(args[0]).all()
        # SciPy multiplies what is not finite with zeros around a longer second operand.
        if finite or args[0].size >= args[1].size:
            yield args, {**options, "method": "direct"}
        if finite:
            yield args, {**options, "method": "fft"}


def _fftconvolve() -> Iterator[Call]:
    for first, second in [((3, 4), (3, 4)), ((3, 4), (1, 4)), ((1, 4), (3, 2)), ((3, 1), (3, 5)),
                          ((1, 3), (2, 1))]:
        for axes, mode in itertools.product([None, 0, -1, (0,), (1, 0)], MODES):
            if mode == "valid" and (first[0] - second[0]) * (first[1] - second[1]) < 0:
                continue  # which is refused, and SciPy takes along axes of one element
            kind = "nan" if 1 in (first[0], second[0]) and 1 in (first[1], second[1]) else "real"
            yield (sample(first, kind), sample(second, "real")), {"axes": axes, "mode": mode}


def _convolve2d() -> Iterator[Call]:
    yield from _pairs(PLANE)


def _detrend() -> Iterator[Call]:
    for shape, kind in itertools.product([(1,), (2,), (7,), (1, 5), (5, 1), (3, 4, 2)],
                                         ["real", "complex", "integer"]):
        for options in [{}, {"axis": 0}, {"type": "constant"}, {"bp": 1}, {"bp": [1, 2]},
                        {"axis": 0, "bp": [1, 1]}]:
            yield (sample(shape, kind),), options


SEGMENTS: list[dict[str, Any]] = [
    {"nperseg": 1}, {"nperseg": 2}, {"nperseg": 5, "noverlap": 4}, {"nperseg": 50},
    {"nperseg": 4, "noverlap": 1, "nfft": 9}, {"nperseg": 4, "window": "boxcar"},
    {"nperseg": 4, "detrend": "linear"}, {"nperseg": 4, "return_onesided": False, "fs": 2.0},
    {"nperseg": 3, "axis": 0}]
SIGNALS = [((1,), "real"), ((2,), "real"), ((12,), "complex"), ((5,), "integer"), ((9, 2), "real"),
           ((0,), "real"), ((4, 0), "real"), ((12,), "nan"), ((1, 1, 6), "real")]


def _refused_by_scipy(kind: str, options: dict[str, Any]) -> bool:
    return kind == "nan" and options.get("detrend") == "linear"


def _stft() -> Iterator[Call]:
    for (shape, kind), options in itertools.product(SIGNALS, SEGMENTS):
        for more in [{}, {"boundary": "even"}, {"boundary": None, "padded": False}]:
            if not _refused_by_scipy(kind, options):
                yield (sample(shape, kind),), {**options, **more}


def _welch() -> Iterator[Call]:
    for (shape, kind), options in itertools.product(SIGNALS, SEGMENTS):
        for more in [{}, {"scaling": "spectrum"}, {"average": "median"}]:
            yield (sample(shape, kind),), {**options, **more}


def _csd() -> Iterator[Call]:
    for (shape, kind), options in itertools.product(SIGNALS, SEGMENTS):
        other = (*shape[:-1], max(shape[-1] - 1, 1))
        for second in (shape, other):
            yield (sample(shape, kind), sample(second, "real")), options
            yield (sample(second, "real"), sample(shape, kind)), options


def _istft() -> Iterator[Call]:
    for shape in [(2, 1), (3, 1), (3, 4), (5, 6), (4, 2)]:
        for options in [{}, {"input_onesided": False}, {"boundary": False}, {"nperseg": 4},
                        {"nperseg": 4, "noverlap": 3}, {"nperseg": 3, "nfft": 4}]:
            yield (sample(shape, "complex"),), options


PLACES = np.array([0.0, -0.0, 0.4999, 0.5001, 1, 1.25, 2, 2.999, 3, 3.001, 3.4999, 3.5001, 4, 5, 7,
                   9.25, 12, 100.25, -0.001, -0.4999, -0.5001, -1, -1.25, -2, -3.75, -7.25, -99.75])
# Its "constant" and "wrap" are what SciPy has had since 1.6 as modes of the grid of pixels.
GRID_MODES = {"constant": "grid-constant", "wrap": "grid-wrap"}


def _map_coordinates() -> Iterator[Call]:
    for size, kind, order, mode in itertools.product(
            [1, 2, 4, 5], ["real", "complex", "integer"], [0, 1],
            ["constant", "nearest", "wrap", "mirror", "reflect"]):
        yield (sample((size,), kind), PLACES[None]), {"order": order, "mode": mode, "cval": 3}


def _grid(image: Any, places: Any, order: int, mode: str, cval: float) -> Any:
    return scipy.ndimage.map_coordinates(image, places, order=order, cval=cval,
                                         mode=GRID_MODES.get(mode, mode))


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[], Iterator[Call]]]] = {
    **{f"numpy.fft.{name}": (getattr(np.fft, name), _fft)
       for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"numpy.fft.{name}": (getattr(np.fft, name), _fftn)
       for name in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{f"scipy.fft.{name}": (getattr(scipy.fft, name), _fft) for name in ("dct", "idct")},
    **{f"scipy.fft.{name}": (getattr(scipy.fft, name), _dctn) for name in ("dctn", "idctn")},
    **{f"scipy.signal.{name}": (getattr(scipy.signal, name), calls) for name, calls in {
        "convolve": _convolve, "correlate": _convolve, "fftconvolve": _fftconvolve,
        "convolve2d": _convolve2d, "correlate2d": _convolve2d, "detrend": _detrend, "stft": _stft,
        "welch": _welch, "csd": _csd, "istft": _istft}.items()},
    "scipy.ndimage.map_coordinates": (_grid, _map_coordinates),
}


def agree(got: Any, want: Any) -> bool:
    """Whether shapes and numbers are the same; parts of what is not finite are not compared."""
    for x, y in zip(got, want, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape:
            return False
        with np.errstate(all="ignore"):
            size = np.max(abs(y), where=np.isfinite(y), initial=1)
            near = (abs(x - y) <= 1e-9 * size) | (~np.isfinite(x) & ~np.isfinite(y))
        if not near.all():
            return False
    return True


def failures(name: str, every: int = 1) -> tuple[int, list[str]]:
    """How many cases there are, and those whose results differ."""
    reference, calls = FUNCTIONS[name]
    function: Any = jax
    for part in name.split("."):
        function = getattr(function, part)
    count, out = 0, []
    for args, options in itertools.islice(calls(), 0, None, every):
        with warnings.catch_warnings(), np.errstate(all="ignore"), jax.enable_x64(True):
            warnings.simplefilter("ignore")
            try:
                want = reference(*args, **options)
            except (ValueError, TypeError):
                continue  # what is no case, as it has no right result
            got = function(*map(jnp.asarray, args), **options)
        count += 1
        pair = (got, want) if isinstance(want, tuple) else ((got,), (want,))
        if not agree(*pair):
            out.append(f"{[a.shape for a in args]} {[a.dtype.name for a in args]} {options}")
    return count, out


@pytest.mark.parametrize("name", [
    name if name.endswith(("map_coordinates", "fftconvolve"))
    else pytest.param(name, marks=pytest.mark.slow) for name in FUNCTIONS])
def test_signals_at_edges(name):
    count, different = failures(name)
    assert count > 25 and not different, (len(different), different[:5])


@pytest.mark.parametrize("name", ["numpy.fft.irfft", "scipy.fft.dctn", "scipy.signal.csd"])
def test_some_signals_at_edges(name):
    count, different = failures(name, 13)
    assert count > 4 and not different, (len(different), different[:5])
