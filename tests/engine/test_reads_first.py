"""What a loop carries is read before it is updated in place, so that XLA does not copy it, and
donated weights become new ones as soon as they have been read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.check import check_jaxpr
from pyjx.core.evaluation import all_eqns
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.engine.one_cpu import with_reads_first, with_updates_at_once
from pyjx.runtime.cuts import flattened

TABLE = np.random.default_rng(0).random(20_000).astype(np.float32)
PLACES = np.random.default_rng(1).integers(0, 300, 40)


def counted(t: Any, i: Any) -> Any:
    return t.at[i].add(1.0), t[i]


def one_after_the_other(t: Any, i: Any) -> Any:
    j = (t[i] * 1000).astype(int) % 300
    v = t[j]
    return t.at[i].set(v * 0.5 + t[i]), v + t[j]


def also_read_behind(t: Any, i: Any) -> Any:
    u = t.at[i].multiply(0.5)
    return u, u[i] + t[(i + 1) % 300]


def in_a_function(t: Any, i: Any) -> Any:
    return jax.jit(lambda t, i: (lax.dynamic_update_slice(t, t[i][None], ((i + 7) % 300,)), t[i])
                   )(t, i)


def in_a_branch(t: Any, i: Any) -> Any:
    y = t[i]
    return lax.cond(y > 0.5, lambda t: t.at[i].set(0.0), lambda t: t.at[i].add(t[0]), t), y


def read_by_what_it_becomes(t: Any, i: Any) -> Any:
    u = t.at[i].add(1.0)
    return u, t[(u[i] * 100).astype(int) % 300]


def kept(t: Any, i: Any) -> Any:
    return t, t.at[i].add(t[0])[:3]


def between_two_updates(t: Any, i: Any) -> Any:
    u = t.at[i].add(1.0)
    return u.at[(i + 1) % 300].set(u[i] * 0.5), u[i]


def whole(t: Any, i: Any) -> Any:
    return t.at[i].set(t[i] / 2), jnp.sum(t)


LOOPS: dict[Callable[..., Any], int] = {
    counted: 1, one_after_the_other: 1, also_read_behind: 1, in_a_function: 1, in_a_branch: 0,
    read_by_what_it_becomes: 0, kept: 0, between_two_updates: 1, whole: 0,
}


@pytest.mark.parametrize("body", LOOPS)
def test_same_values(body: Callable[..., Any]) -> None:
    def f(t: Any, places: Any) -> Any:
        return lax.scan(body, t, places)

    closed = jax.make_jaxpr(f)(TABLE, PLACES)
    changed = with_reads_first(closed)
    check_jaxpr(changed)
    assert sum([e.primitive.name == "optimization_barrier" for e in all_eqns(changed)]
               ) == LOOPS[body]
    if not LOOPS[body]:
        assert changed is closed
    got = jax.jit(f)(TABLE, PLACES)
    with jax.disable_jit():
        want = f(TABLE, PLACES)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)


def test_it_is_done_on_cpu() -> None:
    text = jax.jit(lambda t, i: lax.scan(counted, t, i)).lower(TABLE, PLACES).as_text()
    assert ("optimization_barrier" in text) == (jax.default_backend() == "cpu")


def test_a_large_carry_is_not_copied() -> None:
    """XLA says how much memory an iteration takes besides the carry."""
    if jax.default_backend() != "cpu":
        pytest.skip("XLA for CPU alone")
    table = np.zeros(100_000, np.float32)
    f = jax.jit(lambda t, i: lax.scan(counted, t, i), donate_argnums=0)
    compiled = f.lower(table, PLACES).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < table.nbytes


def test_effects_stay_in_order() -> None:
    seen = []

    def body(t: Any, i: Any) -> Any:
        jax.debug.callback(lambda x: seen.append(int(x)), i, ordered=True)
        return counted(t, i)

    jax.jit(lambda t, i: lax.scan(body, t, i))(TABLE, PLACES)
    jax.effects_barrier()
    assert seen == PLACES.tolist()


def step(ws: Any, velocity: Any, x: Any) -> Any:
    def loss(ws: Any) -> Any:
        y = x
        for w in ws:
            y = jnp.tanh(y @ w.T)
        return (y**2).mean()

    velocity = [0.9 * v + g for v, g in zip(velocity, jax.grad(loss)(ws), strict=True)]
    return [w - 0.1 * v for w, v in zip(ws, velocity, strict=True)], velocity, ws[0].sum()


def test_weights_are_updated_as_soon_as_they_have_been_read() -> None:
    rng = np.random.default_rng(2)
    ws, velocity = [[rng.random((128, 128), np.float32) for _ in range(5)] for _ in range(2)]
    x = rng.random((4, 128), np.float32)
    closed = flattened(jax.make_jaxpr(step)(ws, velocity, x))
    changed = with_updates_at_once(closed.jaxpr, [*[True] * 10, False])
    check_jaxpr(ClosedJaxpr(changed, closed.consts))
    names = [e.primitive.name for e in changed.eqns]
    updates = [i for i, name in enumerate(names) if name == "sub"][-5:]
    products = [sum([name == "dot_general" for name in names[i:]]) for i in updates]
    assert products == [7, 5, 3, 1, 0]  # two for each layer but the first
    assert with_updates_at_once(closed.jaxpr, [False] * 11) is closed.jaxpr
    for g, w in zip(jax.core.jaxpr_as_fun(ClosedJaxpr(changed, closed.consts))(
            *ws, *velocity, x), jax.tree.leaves(step(ws, velocity, x)), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5)
