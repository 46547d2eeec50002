"""Functions at the edges of their domains against SciPy and NumPy in double precision: zeros of
both signs, infinities, nan, poles, branch cuts, the tiny and the huge; and their slopes there
against closed forms. Every element of a grid is a case."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import special as scipy_special
from scipy import stats as scipy_stats

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.jaxlib_api import JAXLIB_VERSION

EDGES = np.array([
    0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3, -3, 10, -10, 1e-3, -1e-3, 1e-10,
    -1e-10, 1e-20, -1e-20, 1e-30, 1e10, -1e10, 1e20, -1e20, 1e30, np.inf, -np.inf, np.nan, 100,
    -100, 0.9999, 1.0001, 30.25, -30.25, 171.5, 87, -87, 0.1, 5, -5, 7.5, 1e4, -1e4])
MODERATE = EDGES[abs(EDGES) < 200]  # for what SciPy loops over, or is itself inexact in
UNIT = np.array([0.0, -0.0, 1, 0.5, 0.25, 0.75, 0.9999, 1e-3, 1e-10, 1e-20, 1e-30, -1e-3, 1.0001,
                 -1, 2, np.inf, -np.inf, np.nan])
ORDERS = np.array([0.0, 1, -1, 2, -3, 0.5, -0.5, -2.5, 5, 4.5])
FEW = np.array([0.0, -0.0, 1, -1, 0.5, -2, 1e-20, 1e20, np.inf, -np.inf, np.nan])


class Case(NamedTuple):
    """A function of `scipy.special` and the edges that each argument goes through."""

    name: str
    grids: tuple[np.ndarray, ...]
    factor: float = 64  # how many roundings of the dtype the result may be off
    left_out: Callable[..., Any] | None = None  # arguments that are no cases


def _nan_beside_pole(*args: Any) -> Any:
    """SciPy's beta functions are infinite at a pole even of nan, and count beyond 2^31 as one."""
    return sum(np.isnan(x) for x in args) + sum(abs(x) > 1e9 for x in args) > 0


def _tiny_first(a: Any, x: Any) -> Any:
    """Q(a, x) of small a is 1 - P(a, x) here, which is exact to a rounding of 1 alone."""
    return (a < 0.5) & (a > 0)


def _nan_of_polynomials(a: Any, b: Any, x: Any) -> Any:
    """SciPy takes a function of b = 0, -1, ... for infinite where a = 0, though it is 1, and has
    nan at a zero."""
    return ((a == 0) & (b <= 0) & (b == np.floor(b))) | np.isnan(scipy_special.hyp1f1(a, b, x))


def _beyond_scipy(a: Any, b: Any, c: Any, x: Any) -> Any:
    """SciPy has 1 of nan, nan where a polynomial ends at the pole, and half of the digits far from
    0; beyond 1 the function is complex."""
    pole = (c <= 0) & (c == np.floor(c))
    ends = (a <= 0) & (a == np.floor(a)) | (b <= 0) & (b == np.floor(b))
    return np.isnan(x) | (pole & ends) | (np.isinf(x) & (x > 0)) | (
        (x < -1e9) & np.isfinite(x)) | np.isnan(
        scipy_special.hyp2f1(a, b, c, x))


def _cases(names: str, *grids: np.ndarray) -> list[Case]:
    return [Case(name, grids) for name in names.split()]


SPECIAL = [
    *_cases("entr erf erfc erfcx exp1 expi expit gammasgn i0 i0e i1 i1e log_ndtr ndtr sici fresnel "
            "spence gammaln gamma dawsn", EDGES),
    *_cases("erfinv logit ndtri", UNIT), *_cases("xlogy xlog1py rel_entr", EDGES, EDGES),
    # XLA of older versions has nan at 0.
    Case("digamma", (EDGES,), left_out=lambda x: (x == 0) & (JAXLIB_VERSION < (0, 12))),
    Case("kl_div", (EDGES, EDGES), 1024, left_out=lambda x, y: abs(x - y) < 1e-2),
    Case("beta", (MODERATE, MODERATE), 1024, _nan_beside_pole),
    Case("betaln", (MODERATE, MODERATE), 1024, _nan_beside_pole),
    Case("gammainc", (EDGES, EDGES), 1024),
    Case("gammaincc", (EDGES, EDGES), 1024, _tiny_first),
    Case("comb", (np.arange(0.0, 9), np.arange(-2.0, 10))),
    Case("poch", (MODERATE, np.arange(-3.0, 8)), 1024),
    # XLA's sum of a zeta function begins with ten terms, which must come to positive numbers.
    Case("polygamma", (np.arange(4), MODERATE), 1024),
    Case("polygamma", (np.arange(4, 8), MODERATE[MODERATE > -9]), 1024),
    Case("zeta", (np.array([1.0, 1.5, 2, 5, 0.5, -1]), MODERATE[MODERATE > -9]), 256),
    Case("expn", (np.array([0, 1, 2, 3, 5]), EDGES), 256),
    Case("betainc", (MODERATE[::2], MODERATE[1::2], UNIT), 4096,
         lambda a, b, x: (abs(a) < 1e-3) & (a != 0)),
    Case("hyp1f1", (ORDERS, ORDERS, np.array([
        0.0, 1, -1, 0.5, 10, -10, 50, -50, 80, -80, 300, -300, 600, -700, 1e4, -1e4, 1e-10])),
        1024, _nan_of_polynomials),
    Case("hyp2f1", (ORDERS, ORDERS, ORDERS, np.array([
        0.0, 0.5, -0.5, 0.74, 0.76, 0.9, 0.99, 0.9999, 1, -0.99, -1, -1.0001, -2, -10, -100, -1e4,
        -1e10, 2, 1e-10, np.inf, -np.inf, np.nan])), 2 ** 14, _beyond_scipy),
]


def _reference(name: str) -> Callable[..., Any]:
    return getattr(scipy_special, name)


def _spread(reference: Callable[..., Any], args: list[Any], eps: float) -> Any:
    """How far a result moves with the last digit of an argument."""
    with np.errstate(all="ignore"):
        value = np.asarray(reference(*args))
        most = np.zeros(value.shape)
        for i, x in enumerate(args):
            for scale in (1 + eps, 1 - eps) if x.dtype.kind == "f" else ():
                moved = abs(np.asarray(reference(*args[:i], x * scale, *args[i + 1:])) - value)
                most = np.maximum(most, np.where(np.isfinite(moved), moved, 0))
    return most


def disagreements(got: Any, want: Any, spread: Any, dtype: Any, factor: float) -> Any:
    """Where a result is another one, beyond roundings and what the dtype holds."""
    info = np.finfo(dtype)
    largest, least = float(info.max), float(info.tiny)
    with np.errstate(all="ignore"):
        got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
        want = np.where(abs(want) > largest, np.copysign(np.inf, want), want)
        near = abs(got - want) <= factor * float(info.eps) * abs(want) + 8 * spread + 4 * least
        same = (got == want) | (np.isnan(got) & np.isnan(want)) | near
        return ~(same | ((abs(want) > 0.99 * largest) & (abs(got) > 0.9 * largest)))


def _check(case: Case, grids: tuple[np.ndarray, ...], dtype: str) -> int:
    args = [x.ravel() if x.dtype.kind == "i" else x.ravel().astype(dtype)
            for x in np.meshgrid(*grids, indexing="ij")]
    if case.left_out is not None:
        with np.errstate(all="ignore"):
            kept = ~np.asarray(case.left_out(*[x.astype(float) for x in args]), bool)
        args = [x[kept] for x in args]
    wide = [x if x.dtype.kind == "i" else x.astype(np.float64) for x in args]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = _reference(case.name)(*wide)
        with jax.enable_x64(dtype == "float64"):
            got = getattr(jax.scipy.special, case.name)(*map(jnp.asarray, args))
        many = isinstance(want, tuple)
        for k, (x, y) in enumerate(zip(got, want, strict=True) if many else [(got, want)]):
            spread = _spread(lambda *a, k=k: _reference(case.name)(*a)[k] if many
                             else _reference(case.name)(*a), wide, float(np.finfo(dtype).eps))
            bad = disagreements(x, y, spread, dtype, case.factor)
            assert not bad.any(), [(*[a[i] for a in args], np.asarray(x)[i], y[i])
                                   for i in np.flatnonzero(bad)[:5]]
    return len(args[0])


def has(case: Case) -> bool:
    return hasattr(jax.scipy.special, case.name) and hasattr(scipy_special, case.name)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in SPECIAL if has(c)], ids=lambda c: c.name)
def test_special_functions(case):
    for dtype in ("float32", "float64"):
        assert _check(case, case.grids, dtype) > 10


@pytest.mark.parametrize("name", ["gamma", "betaln", "xlogy", "polygamma", "log_ndtr"])
def test_special_functions_at_few_edges(name):
    case = next(c for c in SPECIAL if c.name == name)
    grids = tuple([g if g.dtype.kind == "i" else FEW for g in case.grids])
    if name in ("betaln", "polygamma"):
        grids = tuple([g if g.dtype.kind == "i" else FEW[abs(FEW) < 200] for g in case.grids])
    _check(case, grids, "float32")


# -- slopes ----------------------------------------------------------------------------------------


def _expit_slope(x: Any) -> Any:
    return np.exp(-abs(x)) / (1 + np.exp(-abs(x))) ** 2


TAILS = np.array([0.0, -0.0, 1e-30, 1e-10, 1e-3, 0.3, 1, 3, 8, 12, 17, 30, 44, 60, 80, 200, 1e10,
                  1e30, np.inf])
SLOPES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "tanh": (jnp.tanh, lambda x: 4 * _expit_slope(2 * x)),
    "sigmoid": (jax.nn.sigmoid, _expit_slope),
    "softplus": (jax.nn.softplus, scipy_special.expit),
    "log_sigmoid": (jax.nn.log_sigmoid, lambda x: scipy_special.expit(-x)),
    "expit": (jax.scipy.special.expit, _expit_slope),
    "erf": (jax.scipy.special.erf, lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x)),
    "erfc": (jax.scipy.special.erfc, lambda x: -2 / np.sqrt(np.pi) * np.exp(-x * x)),
    "ndtr": (jax.scipy.special.ndtr, scipy_stats.norm.pdf),
    "log_ndtr": (jax.scipy.special.log_ndtr, lambda x: np.where(x < 0, np.where(
        x < -1e9, -x, np.sqrt(2 / np.pi) / scipy_special.erfcx(-x / np.sqrt(2))),
        scipy_stats.norm.pdf(x) / scipy_special.ndtr(x))),
    "arcsinh": (jnp.arcsinh, lambda x: 1 / np.hypot(1, x)),
    "arctan": (jnp.arctan, lambda x: 1 / np.hypot(1, x) ** 2),
    "log1p of exp": (lambda x: jnp.logaddexp(x, 0.0), scipy_special.expit),
    "sqrt": (jnp.sqrt, lambda x: np.where(x >= 0, 0.5 / np.sqrt(abs(x)), np.nan)),
    "cbrt": (jnp.cbrt, lambda x: 1 / (3 * np.cbrt(x) ** 2)),
    "digamma": (jax.scipy.special.digamma, lambda x: scipy_special.polygamma(1, x)),
    "i0": (jax.scipy.special.i0, lambda x: scipy_special.i1(x)),
    "entr": (jax.scipy.special.entr, lambda x: np.where(x > 0, -np.log(abs(x)) - 1, np.where(
        x < 0, np.nan, np.inf))),
    "softmax": (lambda x: jax.nn.softmax(jnp.stack([x, jnp.zeros_like(x)]))[0], _expit_slope),
    "logsumexp": (lambda x: jax.nn.logsumexp(jnp.stack([x, jnp.zeros_like(x)])),
                  scipy_special.expit),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_at_edges(name):
    function, slope = SLOPES[name]
    x = np.concatenate([TAILS, -TAILS])
    if name in ("softmax", "logsumexp"):
        x = x[np.isfinite(x)]  # where they are nan: inf - inf
    if name in ("entr", "sqrt", "i0"):
        x = x[np.isfinite(x) & ((x > 0) | (name == "i0"))]
    if name == "digamma":
        x = np.concatenate([x[abs(x) < 50], [-30.25, -99.5, -8.001, 33.3, np.inf]])
    for dtype in ("float32", "float64"):
        with jax.enable_x64(dtype == "float64"), np.errstate(all="ignore"):
            at = x.astype(dtype)
            got = jax.vmap(jax.grad(function))(jnp.asarray(at))
            wide = at.astype(np.float64)
            want = slope(wide)
            spread = _spread(slope, [wide], float(np.finfo(dtype).eps))
        bad = disagreements(got, want, spread, dtype, 64)
        assert not bad.any(), [(at[i], np.asarray(got)[i], want[i])
                               for i in np.flatnonzero(bad)[:5]]


# -- complex numbers -------------------------------------------------------------------------------

PARTS = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 1e-10, -1e-10, 1e-20, 1e10, -1e10, 30, -30])
COMPLEX = ("sqrt exp sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh log "
           "log2 log10 square conj abs angle sign")


def _complex_grid(dtype: str) -> np.ndarray:
    real, imag = (x.ravel() for x in np.meshgrid(PARTS, PARTS, indexing="ij"))
    z = np.empty(real.shape, dtype)
    z.real, z.imag = real, imag
    return z


@pytest.mark.parametrize("name", [
    n if n in ("sqrt", "arccos", "sinh") else pytest.param(n, marks=pytest.mark.slow)
    for n in COMPLEX.split()])
def test_complex_functions_on_both_sides_of_cuts(name):
    for dtype in ("complex64", "complex128"):
        z = _complex_grid(dtype)
        with jax.enable_x64(dtype == "complex128"), np.errstate(all="ignore"):
            got = np.asarray(getattr(jnp, name)(jnp.asarray(z)))
            want = getattr(np, name)(z.astype(np.complex128))
            # what overflows in one part takes the other one along
            kept = np.isfinite(got) & np.isfinite(want.astype(got.dtype))
            assert (np.isfinite(got) == np.isfinite(want.astype(got.dtype))).mean() > 0.98
            size = abs(want)
        for x, y in ((got.real, want.real), (got.imag, want.imag)):
            with np.errstate(all="ignore"):
                bad = kept & (abs(x - y) > 64 * np.finfo(dtype).eps * size + 1e-37)
            assert not bad.any(), [(z[i], got[i], want[i]) for i in np.flatnonzero(bad)[:5]]
