"""Samples of the special functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from pyjx import lax
from tests.op_table import Sample
from tests.ops.elementwise import BF16, F16, F32, array, samples


def _gamma_slope(a: Any, x: Any) -> Any:
    """dP(a, x)/da by central differences."""
    a, x = a.astype(np.float64), x.astype(np.float64)
    h = 1e-5 * a
    return (special.gammainc(a + h, x) - special.gammainc(a - h, x)) / (2 * h)


def _sample_slope(a: Any, x: Any) -> Any:
    a, x = a.astype(np.float64), x.astype(np.float64)
    density = np.exp((a - 1) * np.log(x) - x - special.gammaln(a))
    return (-_gamma_slope(a, x) / density).astype(np.float32)


SAMPLES: list[Sample] = [
    *samples("erf", lax.erf, special.erf, dtypes=(F32, BF16, F16)),
    *samples("erfc", lax.erfc, special.erfc, dtypes=(F32, BF16)),
    *samples("erf_inv", lax.erf_inv, special.erfinv, low=-0.9, high=0.9, rtol=1e-5),
    *samples("lgamma", lax.lgamma, special.gammaln, low=0.3, high=6.0, rtol=1e-5),
    *samples("digamma", lax.digamma, special.digamma, low=0.3, high=6.0, rtol=1e-5),
    *samples("bessel_i0e", lax.bessel_i0e, special.i0e, low=-12.0, high=12.0,
             dtypes=(F32, BF16, F16)),
    *samples("bessel_i1e", lax.bessel_i1e, special.i1e, low=-12.0, high=12.0, rtol=1e-5),
    *samples("igamma", lax.igamma, special.gammainc, 2, low=0.5, high=5.0, rtol=1e-5),
    *samples("igammac", lax.igammac, special.gammaincc, 2, low=0.5, high=5.0, rtol=1e-5),
    *samples("igamma_grad_a", lax.igamma_grad_a,
             lambda a, x: _gamma_slope(a, x).astype(np.float32), 2, low=0.5, high=5.0,
             dtypes=(F32,), diff=(1,), rtol=1e-4),
    *samples("random_gamma_grad", lax.random_gamma_grad, _sample_slope, 2, low=0.5, high=5.0,
             dtypes=(F32,), diff=False, rtol=1e-4),
    *samples("regularized_incomplete_beta", lax.betainc, special.betainc, 3, low=0.1, high=0.9,
             diff=(2,), rtol=1e-5),
    *samples("zeta", lax.zeta, special.zeta, 2, low=1.5, high=4.0, dtypes=(F32,),
             rtol=1e-5),
    Sample("polygamma", lambda x: lax.polygamma(1.0, x), (array((3, 5), F32, 0.5, 4.0),),
           lambda x: special.polygamma(1, x).astype(np.float32), rtol=1e-5, id="trigamma"),
    Sample("polygamma", lax.polygamma, (np.float32([1, 2, 3]), np.float32([0.5, 2.5, 4.0])),
           lambda m, x: special.polygamma(m.astype(int), x).astype(np.float32), diff=(1,),
           rtol=1e-5, id="polygamma"),
    Sample("igamma", lax.igamma, (np.float32([0, 0, 1, 1, np.inf, -1, 300, 4000]),
                                  np.float32([0, 1, 0, np.inf, 1, 1, 290, 4100])),
           special.gammainc, diff=False, rtol=1e-4, id="igamma-limits"),
    Sample("igammac", lax.igammac, (np.float32([0, 0, 1, 1, np.inf, -1, 300, 4000]),
                                    np.float32([0, 1, 0, np.inf, 1, 1, 290, 4100])),
           lambda a, x: np.where(np.isinf(a), 1, special.gammaincc(a, x)).astype(np.float32),
           diff=False, rtol=1e-4, id="igammac-limits"),
    Sample("regularized_incomplete_beta", lax.betainc,
           (np.float32([0, 1, 2, 2, 2, 50]), np.float32([1, 0, 2, 2, 2, 60]),
            np.float32([0.5, 0.5, 0, 1, 1.5, 0.45])), special.betainc, diff=False, rtol=1e-4,
           id="betainc-limits"),
]
