"""Special functions. Names load their module when they are first used."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.nn.normalization": "logsumexp",
    "pyjx.scipy.special.bessel": "bessel_jn i0 i0e i1 i1e",
    "pyjx.scipy.special.gammas": (
        "bernoulli beta betainc betaln comb digamma factorial gamma gammainc gammaincc gammaln "
        "gammasgn loggamma multigammaln poch polygamma zeta"),
    "pyjx.scipy.special.harmonics": "lpmn lpmn_values sph_harm_y",
    "pyjx.scipy.special.hypergeometric": "hyp1f1 hyp2f1",
    "pyjx.scipy.special.integrals": "exp1 expi expn fresnel sici spence",
    "pyjx.scipy.special.logarithms": (
        "boxcox boxcox1p entr expit kl_div log_softmax logit rel_entr softmax xlog1py xlogy"),
    "pyjx.scipy.special.normal": (
        "dawsn erf erfc erfcinv erfcx erfinv log_ndtr ndtr ndtri owens_t wofz"),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
