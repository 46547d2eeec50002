# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.special.

from pyjx.nn.normalization import logsumexp as logsumexp
from pyjx.scipy.special.bessel import bessel_jn as bessel_jn
from pyjx.scipy.special.bessel import i0 as i0
from pyjx.scipy.special.bessel import i0e as i0e
from pyjx.scipy.special.bessel import i1 as i1
from pyjx.scipy.special.bessel import i1e as i1e
from pyjx.scipy.special.gammas import bernoulli as bernoulli
from pyjx.scipy.special.gammas import beta as beta
from pyjx.scipy.special.gammas import betainc as betainc
from pyjx.scipy.special.gammas import betaln as betaln
from pyjx.scipy.special.gammas import comb as comb
from pyjx.scipy.special.gammas import digamma as digamma
from pyjx.scipy.special.gammas import factorial as factorial
from pyjx.scipy.special.gammas import gamma as gamma
from pyjx.scipy.special.gammas import gammainc as gammainc
from pyjx.scipy.special.gammas import gammaincc as gammaincc
from pyjx.scipy.special.gammas import gammaln as gammaln
from pyjx.scipy.special.gammas import gammasgn as gammasgn
from pyjx.scipy.special.gammas import loggamma as loggamma
from pyjx.scipy.special.gammas import multigammaln as multigammaln
from pyjx.scipy.special.gammas import poch as poch
from pyjx.scipy.special.gammas import polygamma as polygamma
from pyjx.scipy.special.gammas import zeta as zeta
from pyjx.scipy.special.harmonics import lpmn as lpmn
from pyjx.scipy.special.harmonics import lpmn_values as lpmn_values
from pyjx.scipy.special.harmonics import sph_harm_y as sph_harm_y
from pyjx.scipy.special.hypergeometric import hyp1f1 as hyp1f1
from pyjx.scipy.special.hypergeometric import hyp2f1 as hyp2f1
from pyjx.scipy.special.integrals import exp1 as exp1
from pyjx.scipy.special.integrals import expi as expi
from pyjx.scipy.special.integrals import expn as expn
from pyjx.scipy.special.integrals import fresnel as fresnel
from pyjx.scipy.special.integrals import sici as sici
from pyjx.scipy.special.integrals import spence as spence
from pyjx.scipy.special.logarithms import boxcox as boxcox
from pyjx.scipy.special.logarithms import boxcox1p as boxcox1p
from pyjx.scipy.special.logarithms import entr as entr
from pyjx.scipy.special.logarithms import expit as expit
from pyjx.scipy.special.logarithms import kl_div as kl_div
from pyjx.scipy.special.logarithms import log_softmax as log_softmax
from pyjx.scipy.special.logarithms import logit as logit
from pyjx.scipy.special.logarithms import rel_entr as rel_entr
from pyjx.scipy.special.logarithms import softmax as softmax
from pyjx.scipy.special.logarithms import xlog1py as xlog1py
from pyjx.scipy.special.logarithms import xlogy as xlogy
from pyjx.scipy.special.normal import dawsn as dawsn
from pyjx.scipy.special.normal import erf as erf
from pyjx.scipy.special.normal import erfc as erfc
from pyjx.scipy.special.normal import erfcinv as erfcinv
from pyjx.scipy.special.normal import erfcx as erfcx
from pyjx.scipy.special.normal import erfinv as erfinv
from pyjx.scipy.special.normal import log_ndtr as log_ndtr
from pyjx.scipy.special.normal import ndtr as ndtr
from pyjx.scipy.special.normal import ndtri as ndtri
from pyjx.scipy.special.normal import owens_t as owens_t
from pyjx.scipy.special.normal import wofz as wofz

__all__ = [
    "logsumexp",
    "bessel_jn",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "bernoulli",
    "beta",
    "betainc",
    "betaln",
    "comb",
    "digamma",
    "factorial",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "loggamma",
    "multigammaln",
    "poch",
    "polygamma",
    "zeta",
    "lpmn",
    "lpmn_values",
    "sph_harm_y",
    "hyp1f1",
    "hyp2f1",
    "exp1",
    "expi",
    "expn",
    "fresnel",
    "sici",
    "spence",
    "boxcox",
    "boxcox1p",
    "entr",
    "expit",
    "kl_div",
    "log_softmax",
    "logit",
    "rel_entr",
    "softmax",
    "xlog1py",
    "xlogy",
    "dawsn",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "log_ndtr",
    "ndtr",
    "ndtri",
    "owens_t",
    "wofz",
]
