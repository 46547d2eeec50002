"""Densities, probabilities and quantiles of scipy.stats at the edges of their domains against
SciPy's in double precision. Every element of a grid is a case."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats as reference

import pyjx as jax
import pyjx.numpy as jnp
from tests.sweeps.test_edges import disagreements

X = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, 5, 10, -10, 100, -100, 1e-3, -1e-3, 1e-10,
              1e-20, 1e10, -1e10, np.inf, -np.inf, np.nan, 0.25, 0.999])
COUNTS = np.array([0.0, 1, 2, 5, 10, -1, 0.5, 2.5, 100, np.inf, np.nan])
SHARES = np.array([0.0, 1.0, 0.5, 0.25, 1e-3, 0.999, -0.1, 1.1, np.nan])
SHAPES = np.array([0.5, 1.0, 2.0, 3.5, 1e-3, 10.0, 0.0, -1.0])
CHANCES = np.array([0.0, 0.3, 0.5, 1.0, -0.1, 1.1])

CONTINUOUS: dict[str, tuple[np.ndarray, ...]] = {
    **dict.fromkeys(["cauchy", "expon", "gumbel_l", "gumbel_r", "laplace", "logistic", "norm",
                     "uniform"], ()),
    **dict.fromkeys(["chi2", "gamma", "t", "pareto", "gennorm", "vonmises"], (SHAPES,)),
    "beta": (SHAPES, SHAPES), "wrapcauchy": (np.array([0.1, 0.5, 0.9]),),
    "truncnorm": (np.array([-2.0, 0, 1]), np.array([3.0, 4, 10])),
}
DISCRETE: dict[str, tuple[np.ndarray, ...]] = {
    "bernoulli": (CHANCES,), "geom": (CHANCES,), "poisson": (SHAPES,),
    "binom": (np.array([0.0, 1, 5, 20]), CHANCES), "nbinom": (np.array([1.0, 5, 0.5]), CHANCES),
    "betabinom": (np.array([0.0, 5, 10]), SHAPES[:4], SHAPES[:4]),
}
FUNCTIONS = ("pdf", "logpdf", "cdf", "sf", "ppf", "isf", "pmf", "logpmf")
# What cancels in single precision, or is beyond what it holds, and is asked for in double.
WIDE = {("gamma", "sf"), ("chi2", "sf"), ("gennorm", "cdf"), ("gennorm", "logpdf"), ("beta", "sf"),
        ("truncnorm", "cdf"), ("pareto", "ppf"), ("gumbel_l", "logpdf"), ("gumbel_r", "logpdf")}


def _left_out(name: str, function: str, args: list[np.ndarray]) -> Any:
    """Where SciPy has nan that are no density, XLA's incomplete beta function is not exact, or
    probabilities are interpolated between whole numbers, where SciPy's are 0; and next to an end of
    a truncated distribution, where SciPy's differences cancel."""
    if function == "pmf":
        return args[0] > np.floor(args[0])
    if (name, function) == ("truncnorm", "cdf"):
        return (args[0] > args[1]) & (args[0] - args[1] < 1e-8)
    if name in ("gumbel_l", "gumbel_r"):
        return np.isinf(args[0])
    if name == "beta" and function == "sf":
        return (args[0] < 1e-3) & (args[0] > 0)
    return np.zeros(args[0].shape, bool)


def _spread(call: Any, args: list[np.ndarray], value: Any, eps: float) -> Any:
    most = np.zeros(value.shape)
    for i, x in enumerate(args):
        for scale in (1 + eps, 1 - eps):
            moved = abs(call(*args[:i], x * scale, *args[i + 1:]) - value)
            most = np.maximum(most, np.where(np.isfinite(moved), moved, 0))
    return most


CASES = [(name, function) for name in (*CONTINUOUS, *DISCRETE) for function in FUNCTIONS
         if hasattr(getattr(jax.scipy.stats, name), function)]


@pytest.mark.parametrize("name, function", [
    pytest.param(*c, marks=() if c in (("t", "pdf"), ("binom", "pmf")) else pytest.mark.slow)
    for c in CASES])
def test_distributions(name, function):
    first = SHARES if function in ("ppf", "isf") else COUNTS if name in DISCRETE else X
    grids = (first, *{**CONTINUOUS, **DISCRETE}[name])
    for dtype in ("float32", "float64"):
        if dtype == "float32" and (name, function) in WIDE:
            continue
        args = [x.ravel().astype(dtype) for x in np.meshgrid(*grids, indexing="ij")]
        kept = ~_left_out(name, function, args)
        args = [x[kept] for x in args]
        wide = [x.astype(np.float64) for x in args]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            theirs = getattr(getattr(reference, name), function)
            want = np.asarray(theirs(*wide))
            spread = _spread(theirs, wide, want, float(np.finfo(dtype).eps))
            with jax.enable_x64(dtype == "float64"):
                got = getattr(getattr(jax.scipy.stats, name), function)(*map(jnp.asarray, args))
            # logarithms near 0 are as exact as the probabilities
            near = 64 * float(np.finfo(dtype).eps) if function.startswith("log") else 0.0
            bad = disagreements(got, want, spread + near, dtype, 4096)
        assert not bad.any(), [(*[a[i] for a in args], np.asarray(got)[i], want[i])
                               for i in np.flatnonzero(bad)[:5]]
