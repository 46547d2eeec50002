"""A second value of a number that an eager function takes compiles nothing: numbers are arguments
of programs, except where they say how many, or which formula."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import image, lax, monitoring, nn, ops, random
from pyjx.scipy import integrate, linalg, ndimage, signal, special, stats

# A call in which V stands for a number, and two values of it; pairs of spaces part them.
CALLS = """
nn.leaky_relu(x,V)  0.1  0.2
nn.elu(x,V)  0.5  0.7
nn.celu(x,V)  0.5  0.7
nn.standardize(x,epsilon=V)  1e-5  1e-4
nn.squareplus(x,V)  4.  5.
nn.dot_product_attention(q4,q4,q4,scale=V)  0.5  0.7
nn.logsumexp(x,b=V)  1.  2.
nn.softmax(x,where=V)  x>0.2  x>0.5
jnp.clip(x,V,0.5)  0.2  0.3
jnp.clip(x,max=V)  0.2  0.3
jnp.nan_to_num(x,nan=V)  0.1  0.2
jnp.nan_to_num(x,posinf=V)  0.1  0.2
jnp.isclose(x,x,rtol=V)  1e-5  1e-4
jnp.isclose(x,x,atol=V)  1e-5  1e-4
jnp.allclose(x,x,rtol=V)  1e-5  1e-4
jnp.linspace(V,1.,5)  0.1  0.2
jnp.linspace(0,V,5)  1  2
jnp.logspace(0.,1.,5,base=V)  2.  3.
jnp.geomspace(V,4.,5)  1.  2.
jnp.arange(V,V+5)  1  2
jnp.arange(V,V+5.,1.)  1.  2.
jnp.arange(0,5*V,V)  2  3
jnp.full((3,),V)  1.  2.
jnp.full_like(x,V)  1.  2.
jnp.eye(5,k=V)  1  2
jnp.tri(5,k=V)  1  2
jnp.roll(x,V)  1  2
jnp.roll(M,(V,1),(0,1))  1  2
jnp.nanvar(x,ddof=V)  0  1
jnp.percentile(x,V)  30.  40.
jnp.quantile(x,V)  0.3  0.4
jnp.nanquantile(x,V)  0.3  0.4
jnp.interp(x,x,x,left=V)  1.  2.
jnp.unwrap(x,V)  1.  2.
jnp.unwrap(x,period=V)  1.  2.
jnp.gradient(x,V)  1.  2.
jnp.trapezoid(x,dx=V)  1.  2.
jnp.diff(x,prepend=V)  1.  2.
jnp.power(x,V)  2.5  3.5
x**V  2.5  3.5
jnp.float_power(x,V)  2  3
V**x  2.  3.
jnp.polyint(x,k=V)  1.  2.
x.at[V].set(1.)  1  2
x.at[1].set(V)  1.  2.
x[V]  1  2
x[V:V+3]  1  2
lax.dynamic_slice(x,(V,),(3,))  1  2
jnp.pad(x,2,constant_values=V)  1.  2.
jnp.where(x>V,x,0)  0.1  0.2
jnp.where(x>0.2,x,V)  0.1  0.2
jnp.heaviside(x,V)  0.1  0.2
jnp.kaiser(6,V)  1.  2.
jnp.insert(x,V,0.)  1  2
jnp.insert(x,1,V)  1.  2.
jnp.left_shift(i,V)  1  2
jnp.ediff1d(x,to_end=V)  1.  2.
jnp.fill_diagonal(M,V,inplace=False)  1.  2.
jnp.linalg.matrix_rank(M,rtol=V)  1e-3  1e-4
jnp.linalg.pinv(M,rtol=V)  1e-3  1e-4
jnp.linalg.lstsq(M,M,rcond=V)  1e-3  1e-4
jnp.fft.fftfreq(8,d=V)  0.1  0.2
jnp.fft.rfftfreq(8,d=V)  0.1  0.2
lax.clamp(V,x,0.5)  0.1  0.2
lax.pad(x,V,[(1,1,0)])  0.1  0.2
lax.full((3,),V)  1.  2.
lax.rng_uniform(V,1.,(3,))  0.  0.1
lax.random_gamma_grad(V,x)  1.  2.
special.polygamma(V,x)  2  3
special.expn(V,x)  2  3
special.gammainc(V,x)  1.  2.
special.zeta(x+2,V)  1.  2.
special.xlogy(V,x)  1.  2.
special.logsumexp(x,b=V)  1.  2.
special.betainc(V,1.,x)  1.  2.
special.hyp1f1(V,1.,x)  1.  2.
special.comb(5,V)  2  3
special.factorial(V)  2  3
stats.norm.pdf(x,V)  0.  1.
stats.norm.pdf(x,0.,V)  1.  2.
stats.t.pdf(x,V)  1.  2.
stats.truncnorm.pdf(x,V,1.)  -1.  -2.
stats.beta.pdf(x,V,2.)  1.  2.
stats.gamma.cdf(x,V)  1.  2.
stats.poisson.pmf(i,V)  1.  2.
stats.binom.pmf(i,V,0.3)  12  13
stats.nbinom.pmf(i,V,0.3)  12  13
stats.gaussian_kde(x,V)(x)  0.3  0.4
signal.welch(x,V,nperseg=4)[1]  1.  2.
signal.stft(x,V,nperseg=4)[2]  1.  2.
ndimage.map_coordinates(M,[x,x],1,mode="constant",cval=V)  0.  1.
image.scale_and_translate(img,(4,4),(0,1),jnp.array([V,V]),jnp.zeros(2),"linear")  0.5  0.7
image.scale_and_translate(img,(4,4),(0,1),jnp.ones(2),jnp.array([V,V]),"cubic")  0.5  0.7
random.uniform(key,(3,),maxval=V)  2.  3.
random.truncated_normal(key,V,1.,(3,))  -1.  -2.
random.bernoulli(key,V,(3,))  0.3  0.4
random.poisson(key,V,(3,))  2.  3.
random.randint(key,(3,),V,9)  1  2
random.gamma(key,V,(3,))  2.  3.
random.beta(key,V,1.,(3,))  2.  3.
random.t(key,V,(3,))  2.  3.
random.pareto(key,V,(3,))  2.  3.
random.weibull_min(key,V,1.,(3,))  2.  3.
random.binomial(key,V,0.3,(3,))  5.  6.
random.geometric(key,V,(3,))  0.3  0.4
random.chisquare(key,V,shape=(3,))  2.  3.
random.f(key,V,2.,shape=(3,))  2.  3.
random.wald(key,V,(3,))  2.  3.
random.triangular(key,V,2.,3.,(3,))  0.  1.
random.rayleigh(key,V,(3,))  1.  2.
random.lognormal(key,V,(3,))  1.  2.
random.generalized_normal(key,V,(3,))  1.  2.
random.ball(key,2,V,(3,))  1.  2.
random.double_sided_maxwell(key,V,1.,(3,))  0.  1.
random.fold_in(key,V)  1  2
random.PRNGKey(V)  1  2
sl.expm(M*V)  0.1  0.2
integrate.trapezoid(x,dx=V)  1.  2.
jnp.hypot(x,V)  1.  2.
x+V  1  2
x+V  1.  2.
i+V  1  2
i%V  3  4
i//V  3  4
jnp.mod(x,V)  1.  2.
jnp.ldexp(x,V)  1  2
jnp.arctan2(x,V)  1.  2.
jnp.copysign(x,V)  1.  -2.
jnp.searchsorted(x,V)  0.2  0.3
jnp.digitize(x,jnp.array([V]))  0.2  0.3
jnp.count_nonzero(x>V)  0.2  0.3
jnp.sum(x,initial=V)  1.  2.
jnp.max(x,initial=V)  0.  1.
jnp.average(x,weights=x*V)  1.  2.
jnp.apply_along_axis(lambda r: r*V,0,M)  1.  2.
jnp.piecewise(x,[x>V],[1.,2.])  0.2  0.3
jnp.select([x>V],[x],V)  0.2  0.3
""".strip().splitlines()

# What is compiled anew, by the reason.
ANEW = {
    "says how many elements there are": """
jnp.bincount(i,minlength=V)  12  13
jnp.delete(x,V)  1  2
jnp.diag(x,V)  0  1
jnp.diagonal(M,V)  0  1
jnp.trace(M,V)  0  1
jnp.repeat(x,V)  2  3
jnp.vander(x,V)  3  4
lax.top_k(x,V)  3  4
ops.segment_sum(x,i,V)  12  13
random.choice(key,V,(3,))  5  6
signal.detrend(x,bp=V)  0  4""",
    "chooses operations": """
jnp.argpartition(x,V)  3  4
jnp.linalg.cond(M,V)  1  2
jnp.linalg.matrix_power(M,V)  3  4
jnp.linalg.norm(x,V)  3  4
jnp.partition(x,V)  3  4
jnp.power(x,V)  3  4
jnp.rot90(M,V)  1  2
jnp.round(x,V)  1  2
lax.approx_max_k(x,3,recall_target=V)  0.9  0.95
lax.integer_pow(x,V)  3  4
lax.reduce_precision(x,5,V)  6  7
special.bessel_jn(x,v=V)  3  4
special.log_ndtr(x,series_order=V)  3  4
special.multigammaln(x+5,V)  2  3""",
    "is part of an operation, as jaxprs show": """
jnp.interp(x,x,x,period=V)  1.  2.
jnp.take(x,i,fill_value=V,mode="fill")  1.  2.
jnp.tril(M,V)  0  1
jnp.var(x,ddof=V)  0  1
stats.sem(x,ddof=V)  0  1""",
}

x = np.linspace(0.1, 0.9, 12, dtype=np.float32)
GIVEN: dict[str, Any] = {
    "jnp": jnp, "nn": nn, "lax": lax, "special": special, "stats": stats, "signal": signal,
    "ndimage": ndimage, "sl": linalg, "integrate": integrate, "image": image, "random": random,
    "ops": ops, "i": jnp.arange(12), "img": np.ones((8, 8), np.float32),
    "M": jnp.arange(9.0).reshape(3, 3) + 10 * jnp.eye(3), "q4": np.ones((1, 4, 2, 3), np.float32),
}


def compiled(call: str) -> int:
    """How many programs the second value compiles."""
    text, *values = call.split("  ")
    given = {**GIVEN, "x": jnp.asarray(x), "key": random.key(0)}
    times: list[str] = []
    jax.clear_caches()

    def note(event: str, seconds: float, **_: Any) -> None:
        times.append(event)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in values:
            times.clear()
            if value == values[-1]:
                monitoring.register_event_duration_secs_listener(note)
            jax.block_until_ready(eval(text.replace("V", "v"), {**given, "v": eval(value, given)}))
    monitoring.clear_event_listeners()
    return times.count("/jax/core/compile/backend_compile_duration")


@pytest.mark.parametrize("call", CALLS)
def test_a_second_value(call: str) -> None:
    assert compiled(call) == 0


@pytest.mark.parametrize("call", [c for calls in ANEW.values() for c in calls.split("\n") if c])
def test_what_is_compiled_anew(call: str) -> None:
    assert compiled(call)
