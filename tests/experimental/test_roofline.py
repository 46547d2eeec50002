"""What functions cost. Figures are those of JAX 0.12 for operations that it counts."""

from __future__ import annotations

import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.experimental import roofline as rl
from pyjx.lax import sin_p, tan_p
from pyjx.sharding import AxisType

X, Y = jnp.ones((8, 16)), jnp.ones((16, 4))


@pytest.mark.parametrize(("f", "args", "figures"), [
    (jnp.sin, (X,), (0, 128, 0, 1024, 512)),
    (lambda x: x * 2 + 1, (X,), (0, 256, 0, 2056, 512)),
    (lambda x, y: x @ y, (X, Y), (1024, 1024, 896, 896, 768)),
    (jnp.sum, (X,), (0, 127, 0, 516, 512)),
    (lambda x: jax.jit(jnp.sin)(x) * 2, (X,), (0, 256, 0, 2052, 512)),
])
def test_figures(f, args, figures):
    out, cost = rl.roofline(f)(*args)
    assert out.shape == f(*args).shape
    assert (cost.flops, cost.unfused_flops, cost.hbm_bytes, cost.unfused_hbm_bytes,
            cost.peak_hbm_bytes) == figures


def test_loops_and_branches():
    def loop(x):
        return jax.lax.scan(lambda c, _: (c * 2, None), x, length=3)[0]

    assert rl.roofline(loop)(X)[1].unfused_flops == 3 * 128
    cost = rl.roofline(lambda x: jax.lax.cond(x[0, 0] > 0, lambda: x, lambda: jnp.sin(x) * 2))(X)[1]
    assert cost.unfused_flops >= 256


def test_derivatives_and_pinned_operands():
    forward = rl.roofline(lambda x, y: (x @ y).sum())(X, Y)[1]
    both = rl.roofline(lambda x, y: (x @ y).sum(), vjp=True)(X, Y)[1]
    assert both.flops == 3 * forward.flops
    pinned = rl.roofline(lambda x, y: x @ y, pin_rhs_in_vmem=True)(X, Y)[1]
    assert pinned.hbm_bytes == 896 - 256


def test_meshes():
    def sums(kind):
        mesh = jax.sharding.AbstractMesh((4,), ("x",), (kind,))
        return rl.roofline(lambda x: jax.lax.psum(x, "x"), mesh, jax.P("x"), jax.P())

    out, cost = sums(AxisType.Auto)(X)
    assert out.shape == (2, 16)
    assert cost.ici_bytes == {"x": 128 * 6 // 4} and cost.ici_latency == {"x": 6}
    with pytest.raises(ValueError, match="does not match the specs of the input"):
        sums(AxisType.Explicit)(X)


def test_rules_of_libraries():
    try:
        @rl.register_roofline(sin_p)
        def rule(ctx, x, **params):
            assert ctx.primitive is sin_p and x.bytes == 512
            assert rl.RooflineShape.total_bytes(ctx.avals_out) == 512
            return rl.RooflineResult(flops=7, ici_bytes={"x": 1})

        rl.register_standard_roofline(tan_p)
        cost = rl.roofline(lambda x: jnp.tan(jnp.sin(x)))(X)[1]
        assert (cost.flops, cost.unfused_flops, cost.ici_bytes) == (7, 0, {"x": 1})
    finally:
        rl.rooflines.clear()
