"""The same programs as `shard_map`, as `pmap` and as `jit` over a mesh give the same."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.sharding import NamedSharding
from pyjx.sharding import PartitionSpec as P

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 4, 6)).astype("f4")  # a part for each of eight devices
W = RNG.normal(size=(6, 6)).astype("f4")

# Each is a function of one device's part and of what all have, and one of all parts.
PROGRAMS = {
    "elementwise": (lambda x, w: jnp.sin(x) * x, lambda xs, w: jnp.sin(xs) * xs),
    "matrix product": (lambda x, w: x @ w, lambda xs, w: xs @ w),
    "sum": (lambda x, w: lax.psum(x, "i"), lambda xs, w: alike(xs.sum(0))),
    "mean of a loss": (lambda x, w: lax.pmean(jnp.tanh(x @ w).mean(), "i"),
                       lambda xs, w: alike(jnp.tanh(xs @ w).mean())),
    "largest": (lambda x, w: lax.pmax(x, "i") - lax.pmin(x, "i"),
                lambda xs, w: alike(xs.max(0) - xs.min(0))),
    "gather": (lambda x, w: lax.all_gather(x, "i")[::2].sum(0) * x,
               lambda xs, w: xs[::2].sum(0) * xs),
    "scatter of sums": (
        lambda x, w: lax.psum_scatter(jnp.tile(x, (2, 1)), "i", tiled=True),
        lambda xs, w: jnp.tile(xs.sum(0), (2, 1))[:, None]),
    "exchange": (
        lambda x, w: lax.all_to_all(jnp.tile(x, (2, 1)), "i", 0, 0, tiled=True),
        lambda xs, w: jnp.stack([jnp.tile(xs, (1, 2, 1))[:, i] for i in range(8)])),
    "neighbours": (lambda x, w: lax.ppermute(x, "i", [(i, (i + 1) % 8) for i in range(8)]) - x,
                   lambda xs, w: jnp.roll(xs, 1, 0) - xs),
    "which device": (lambda x, w: x * (1 + lax.axis_index("i")),
                     lambda xs, w: xs * (1 + jnp.arange(8.)[:, None, None])),
    "loop": (lambda x, w: lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ w) + c, x),
             lambda xs, w: lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ w) + c, xs)),
    "normalization over all": (
        lambda x, w: (x - lax.pmean(x.mean(0), "i")) / (1e-3 + lax.pmean((x * x).mean(0), "i")),
        lambda xs, w: (xs - xs.mean((0, 1))) / (1e-3 + (xs * xs).mean((0, 1)))),
}


def alike(x):
    """What each of eight devices has the same of."""
    return jnp.broadcast_to(x, (8, *x.shape))


def forms(of_part, of_all):
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
    parts = NamedSharding(mesh, P("i"))
    return {
        "shard_map": jax.shard_map(lambda x, w: of_part(x[0], w)[None], mesh=mesh,
                                   in_specs=(P("i"), P()), out_specs=P("i")),
        "shard_map, no types": jax.shard_map(
            lambda x, w: of_part(x[0], w)[None], mesh=mesh, in_specs=(P("i"), P()),
            out_specs=P("i"), check_vma=False),
        "pmap": jax.pmap(of_part, axis_name="i", in_axes=(0, None)),
        "jit": jax.jit(of_all, in_shardings=(parts, NamedSharding(mesh, P())),
                       out_shardings=parts),
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_equal(name):
    of_part, of_all = PROGRAMS[name]
    expected = of_all(X, W)
    weights = RNG.normal(size=expected.shape).astype("f4")
    gradient = jax.grad(lambda x, w: (of_all(x, w) * weights).sum(), (0, 1))(X, W)
    for form, f in forms(of_part, of_all).items():
        out = f(X, W)
        assert len(out.devices()) == 8, form
        np.testing.assert_allclose(out, expected, rtol=2e-5, atol=1e-5, err_msg=form)
        found = jax.grad(lambda x, w, f=f: (f(x, w) * weights).sum(), (0, 1))(X, W)
        for a, b in zip(found, gradient, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4, err_msg=form)
