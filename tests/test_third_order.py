"""Third derivatives of every operation, in all mixtures of modes, also inside what holds programs.

A sample becomes a function of one number: phi(t) = sum of c f(x + t v) for random directions c, v.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core import dtypes
from tests.op_table import Sample
from tests.test_ops import _WIDE, DIFFERENTIABLE, _differentiable, _direction, leaves

pytestmark = pytest.mark.slow

Scalar = Callable[[Any], Any]


def forward(phi: Scalar) -> Scalar:
    return lambda t: jax.jvp(phi, (t,), (jnp.ones_like(t),))[1]


def reverse(phi: Scalar) -> Scalar:
    return jax.grad(phi)


MIXTURES = list(product([forward, reverse], repeat=3))  # the innermost derivative first


def derived(phi: Scalar, modes: tuple[Any, ...]) -> Scalar:
    for mode in modes:
        phi = mode(phi)
    return phi


def in_scan(phi: Scalar) -> Scalar:
    return lambda t: lax.scan(lambda c, x: (c + phi(x), None), 0.0 * t, jnp.stack([t, t]))[0] / 2


def in_while(phi: Scalar) -> Scalar:
    return lambda t: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, phi(t)), (0, t))[1]


def in_bounded_while(phi: Scalar) -> Scalar:
    return lambda t: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, phi(t)), (0, t),
                                    max_steps=2)[1]


def in_cond(phi: Scalar) -> Scalar:
    return lambda t: lax.cond(t > -1.0, phi, lambda t: 0.0 * t, t)


def in_vmap(phi: Scalar) -> Scalar:
    return lambda t: jnp.mean(jax.vmap(phi)(jnp.stack([t, t])))


def in_custom_jvp(phi: Scalar) -> Scalar:
    held = jax.custom_jvp(phi)
    held.defjvp(lambda primals, tangents: jax.jvp(phi, primals, tangents))
    return held


def in_custom_vjp(phi: Scalar) -> Scalar:
    held = jax.custom_vjp(phi)
    held.defvjp(lambda t: jax.vjp(phi, t), lambda pull, ct: pull(ct))
    return held


HOLDERS: dict[str, Any] = {
    "jit": jax.jit, "checkpoint": jax.checkpoint, "scan": in_scan, "while": in_while,
    "bounded while": in_bounded_while, "cond": in_cond, "vmap": in_vmap,
    "custom_jvp": in_custom_jvp, "custom_vjp": in_custom_vjp,
}


def works(holder: str, modes: tuple[Any, ...]) -> bool:
    if holder == "while":
        return reverse not in modes
    return holder != "custom_vjp" or modes[0] is reverse


# Arguments that have derivatives of every order, where not all have: of the incomplete gamma
# functions the second one with respect to a is refused, by name.
ARGUMENTS = {"igamma": [1], "igammac": [1]}


def line(sample: Sample) -> Scalar | None:
    """The sample as a function of one number; None if its results have no derivative."""
    args = [np.asarray(x) for x in sample.args]
    wide: list[Any] = [x.astype(_WIDE.get(x.dtype, x.dtype)) for x in args]
    try:
        jax.eval_shape(sample.fun, *wide)
    except TypeError:  # the sample is of one dtype
        wide = args
    rng = np.random.default_rng(0)
    argnums = ARGUMENTS.get(sample.primitive, _differentiable(sample))
    tangents = {i: _direction(rng, wide[i]) for i in argnums}

    def outputs(t: Any) -> list[Any]:
        given = [x + (t * tangents[i]).astype(x.dtype) if i in tangents else x
                 for i, x in enumerate(wide)]
        outs = jax.tree_util.tree_leaves(sample.fun(*given))
        return [o for o in outs if dtypes.issubdtype(o.dtype, np.inexact)]

    shapes = jax.eval_shape(outputs, 0.0)
    if not shapes or any(s.dtype not in (np.float64, np.complex128) for s in shapes):
        return None
    cts = [_direction(rng, np.zeros(s.shape, s.dtype)) for s in shapes]
    return lambda t: sum(jnp.sum(jnp.real(c * o)) for c, o in zip(cts, outputs(t), strict=True))


@pytest.mark.parametrize(("at", "sample"), [
    pytest.param(i, s, id=s.id or s.primitive) for i, s in enumerate(DIFFERENTIABLE)])
def test_third_derivatives(at: int, sample: Sample) -> None:
    with jax.enable_x64(True):
        phi = line(sample)
        if phi is None:
            pytest.skip("its results are of lower precision or have no derivatives")

        def all_mixtures(t: Any) -> list[Any]:
            return [derived(phi, modes)(t) for modes in MIXTURES]

        def all_holders(t: Any) -> dict[str, Any]:
            """Each holder with two mixtures, others for each sample."""
            found = {}
            for i, (name, holder) in enumerate(HOLDERS.items()):
                possible = [modes for modes in MIXTURES if works(name, modes)]
                for k in range(min(2, len(possible))):
                    modes = possible[(at + 3 * i + 5 * k) % len(possible)]
                    key = f"{name}: {'-'.join([m.__name__ for m in modes])}"
                    found[key] = derived(holder(phi), modes)(t)
            return found

        want, *others = leaves(jax.jit(all_mixtures)(0.0))
        step = 1e-5
        second = jax.jit(derived(phi, (forward, forward)))
        slope = (second(step) - second(-step)) / (2 * step)
        scale = 1 + abs(want)
        for modes, got in zip(MIXTURES[1:], others, strict=True):
            assert abs(got - want) <= 1e-8 * scale, [m.__name__ for m in modes]
        assert abs(slope - want) <= 1e-4 * (scale + abs(second(0.0)))
        for name, got in jax.jit(all_holders)(0.0).items():
            assert abs(got - want) <= 1e-8 * scale, name
