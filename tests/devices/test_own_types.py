"""Values of libraries' types over several devices."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.experimental.test_own_types import OnMesh, Pair, of_arrays, of_pair, pair, part

P = jax.P
X = np.random.default_rng(0).normal(size=(8, 4)).astype("f4")
Y = np.random.default_rng(1).normal(size=(8, 4)).astype("f4")
CUT = OnMesh((P("x"), P("x")))


def same(found, expected):
    found, expected = map(jax.tree.leaves, (found, expected))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("run", [lambda f: f, jax.jit])
def test_pairs_that_are_cut(mesh, run, check_vma):
    def smap(f, in_specs, out_specs):
        return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,
                             check_vma=check_vma)

    p = Pair(jnp.asarray(X), jnp.asarray(Y))
    whole = smap(of_pair, CUT, P("x"))
    same(run(whole)(p), of_arrays(X, Y))
    slope = run(jax.grad(lambda p: whole(p).sum()))(p)
    same((slope.first, slope.second), jax.grad(lambda x, y: of_arrays(x, y).sum(), (0, 1))(X, Y))
    same(run(lambda p: jax.jvp(whole, (p,), (p,)))(p), jax.jvp(of_arrays, (X, Y), (X, Y)))
    out = run(smap(lambda p: p.swapped(), CUT, CUT))(p)
    same((out.first, out.second), (Y, X))
    assert out.first.sharding.is_equivalent_to(jax.sharding.NamedSharding(mesh, P("x")), 2)

    def inside(x, y):
        def step(c, _):
            return pair(part(c, 0), 2 * part(c, 1)), None

        return of_pair(jax.lax.scan(step, pair(x, y), length=2)[0]) / 4

    mapped = smap(inside, (P("x"), P("x")), P("x"))
    same(run(mapped)(X, Y), of_arrays(X, Y))
    same(run(jax.grad(lambda x: mapped(x, Y).sum()))(X),
         jax.grad(lambda x: of_arrays(x, Y).sum())(X))


def test_parts_of_a_jitted_function_lie_as_they_do(mesh):
    cut = jax.sharding.NamedSharding(mesh, P("x"))
    p = Pair(jax.device_put(X, cut), jax.device_put(Y, cut))
    out = jax.jit(lambda p: p.swapped())(p)
    assert out.first.sharding.is_equivalent_to(cut, 2)
    same(jax.jit(of_pair)(p), of_arrays(X, Y))
