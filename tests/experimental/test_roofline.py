"""What functions cost. Figures are those of JAX 0.12 for operations that it counts."""

from __future__ import annotations

import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.experimental import roofline as rl
from pyjx.experimental.custom_partitioning import custom_partitioning
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
    def loop(x, length):
        return jax.lax.scan(lambda c, _: (c * 2, None), x, length=length)[0]

    for length in (3, 0):
        found = rl.roofline(lambda x, n=length: loop(x, n))(X)[1]
        assert found.unfused_flops == length * 128
    cost = rl.roofline(lambda x: jax.lax.cond(x[0, 0] > 0, lambda: x, lambda: jnp.sin(x) * 2))(X)[1]
    assert cost.unfused_flops == 2 * 128 + 1
    once = rl.roofline(lambda x: jax.lax.while_loop(
        lambda x: x[0, 0] < 9, lambda x: x * 2, x))(X)[1]
    assert once.unfused_flops == 128 + 1
    for times in (3, 0):  # and the counter's: a comparison more, an addition
        cost = rl.roofline(lambda x, n=times: jax.lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (0, x)))(X)[1]
        assert cost.unfused_flops == times * (128 + 1) + times + 1


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
    assert cost.ici_bytes == {"x": 2 * 32 * 3} and cost.ici_latency == {"x": 8}
    assert cost.peak_hbm_bytes == 128 and cost.unfused_hbm_bytes == 0  # of one device
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


AXES = ("x", "y", "z")
COLLECTIVES = {
    "psum": lambda v, axes: jax.lax.psum(v, axes),
    "pmax": lambda v, axes: jax.lax.pmax(v, axes),
    "all_gather": lambda v, axes: jax.lax.all_gather(v, axes, tiled=True),
    "psum_scatter": lambda v, axes: jax.lax.psum_scatter(v, axes, tiled=True),
    "all_to_all": lambda v, axes: jax.lax.all_to_all(v, axes, 1, 0, tiled=True),
    "shift": lambda v, axes: jax.lax.ppermute(v, axes, [(i, (i + 1) % 8) for i in range(8)]),
    "reverse": lambda v, axes: jax.lax.ppermute(v, axes, [(i, 7 - i) for i in range(8)]),
    "nothing": lambda v, axes: jax.lax.ppermute(v, axes, [(i, i) for i in range(8)]),
}


@pytest.mark.parametrize(("name", "sizes", "figures"), [
    ("psum", (8,), (448, 16)), ("psum", (4, 2), (224, 16)), ("psum", (2, 2, 2), (140, 12)),
    ("pmax", (8,), (28, 8)), ("pmax", (4, 2), (14, 8)), ("all_gather", (8,), (1792, 8)),
    ("all_gather", (4, 2), (896, 8)), ("all_gather", (8, 1), (896, 16)),
    ("psum_scatter", (4, 2), (112, 8)), ("all_to_all", (8,), (512, 4)),
    ("all_to_all", (4, 2), (512, 3)), ("all_to_all", (2, 2, 2), (256, 3)),
    ("all_to_all", (8, 1), (1024, 4)), ("shift", (8,), (256, 1)), ("shift", (4, 2), (512, 2)),
    ("reverse", (8,), (1024, 3)), ("nothing", (8,), (0, 0)),
])
def test_bytes_over_links(name, sizes, figures):
    names = AXES[:len(sizes)]
    mesh = jax.sharding.AbstractMesh(sizes, names, (AxisType.Auto,) * len(sizes))
    spec, f = jax.P(names), COLLECTIVES[name]
    cost = rl.roofline(lambda v: f(v, names), mesh, spec, spec)(jnp.ones((64, 8)))[1]
    assert cost.ici_bytes == dict.fromkeys(names, figures[0])
    assert cost.ici_latency == dict.fromkeys(names, figures[1])


def test_functions_that_say_how_they_are_cut_cost_what_they_do():
    @custom_partitioning
    def own(x):
        return jnp.sin(x) * x

    own.def_partition(infer_sharding_from_operands=lambda *a: None, partition=lambda *a: None)
    x = jax.ShapeDtypeStruct((8, 128), "float32")
    found, plain = [rl.roofline(f)(x)[1] for f in (own, lambda x: jnp.sin(x) * x)]
    assert found == plain and found.unfused_flops == 2 * 8 * 128
