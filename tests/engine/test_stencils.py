"""Values that stencils read in several places are computed once, on one CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.configuration import small_kernels
from pyjx.core.check import check_jaxpr
from pyjx.core.evaluation import all_eqns
from pyjx.engine.one_cpu import with_stencils_kept

GRID = np.random.default_rng(0).standard_normal((24, 24)).astype(np.float32)


def laplacian(u: Any) -> Any:
    return sum([jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1)]) - 4 * u


def fourth_order(u: Any, slope: Callable[[Any], Any] = laplacian) -> Any:
    a = slope(u)
    b = slope(u + 0.05 * a)
    c = slope(u + 0.05 * b)
    return u + 0.1 / 6 * (a + 2 * b + 2 * c + slope(u + 0.1 * c))


def by_calls(u: Any) -> Any:
    return fourth_order(u, jax.jit(laplacian))


def steps(u: Any) -> Any:
    return lax.fori_loop(0, 3, lambda _, u: fourth_order(u), u)


def steps_or_not(u: Any) -> Any:
    def body(u: Any, _: None) -> Any:
        u = lax.cond(jnp.sum(u) > 0, fourth_order, lambda u: u, u)
        return lax.while_loop(lambda u: jnp.max(u) > 1, lambda u: u / 2, u), jnp.max(u)

    return lax.scan(body, u, None, length=3)


def edges(u: Any) -> Any:
    def slope(u: Any) -> Any:
        u = jnp.pad(u, 1, mode="edge")
        return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]

    return slope(slope(u))


def slope_of_sum(u: Any) -> Any:
    return jax.grad(lambda u: jnp.sum(fourth_order(u) ** 2))(u)


def one_place(u: Any) -> Any:
    for _ in range(9):
        u = jnp.roll(u * u + u, 1, 0)
    return u


def parts(u: Any) -> Any:
    u = u * u + u - 3 * u * u
    return [x * 2 for x in jnp.split(u, 4)]


def of_functions(u: Any) -> Any:
    u = jnp.sin(u) / 3
    return jnp.roll(u, 1) + jnp.roll(u, -1) + u


def of_what_is_given(u: Any) -> Any:
    return laplacian(u)


def with_zeros_around(u: Any) -> Any:
    def slope(u: Any) -> Any:
        u = jnp.pad(u, 1)
        return u[2:, 1:-1] + u[:-2, 1:-1] - u[1:-1, 1:-1]

    return slope(slope(u))


# How many values are computed once; those of the last are by themselves, or in one place.
KEPT = {fourth_order: 3, by_calls: 3, steps: 3, steps_or_not: 3, edges: 5, slope_of_sum: 7,
        one_place: 0, parts: 0, of_functions: 0, of_what_is_given: 0, with_zeros_around: 0}


def barriers(closed: Any) -> int:
    return sum([e.primitive.name == "optimization_barrier" for e in all_eqns(closed)])


@pytest.mark.parametrize("f", KEPT)
def test_what_is_kept(f: Callable[..., Any]) -> None:
    closed = jax.make_jaxpr(f)(GRID)
    changed = with_stencils_kept(closed)
    check_jaxpr(changed)
    assert barriers(changed) == KEPT[f]
    assert KEPT[f] or changed is closed


@pytest.mark.parametrize("f", KEPT)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, jnp.bfloat16])
def test_values_are_the_same(f: Callable[..., Any], dtype: Any) -> None:
    if f in (slope_of_sum, steps_or_not) and dtype != np.float32:
        return
    u = GRID.astype(dtype)
    got = jax.jit(f)(u)
    with small_kernels(False):
        want = jax.jit(f)(u)
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(g, complex), np.asarray(w, complex),
                                   rtol=0.05 if dtype == jnp.bfloat16 else 1e-5, atol=1e-4)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (2, 300)])
def test_shapes(shape: tuple[int, ...]) -> None:
    u = np.ones(shape, np.float32)
    np.testing.assert_allclose(jax.jit(fourth_order)(u), u, atol=1e-6)
    batch = np.stack([GRID, 2 * GRID])
    np.testing.assert_allclose(jax.vmap(fourth_order)(batch)[1], fourth_order(2 * GRID),
                               rtol=1e-4, atol=1e-5)


def test_long_formulas_take_no_longer_to_look_at() -> None:
    def f(x: Any) -> Any:
        y = x
        for _ in range(3000):
            x, y = x * y, x + y
        return jnp.roll(x, 1) + jnp.roll(x, -1)

    assert barriers(with_stencils_kept(jax.make_jaxpr(f)(GRID))) == 1


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="for one CPU alone")
def test_where_it_is_done() -> None:
    def kept(**options: Any) -> bool:
        return "optimization_barrier" in jax.jit(steps, **options).lower(GRID).as_text()

    assert kept()
    with small_kernels(False):
        assert not kept()
    exported = jax.export.export(jax.jit(steps))(GRID)
    assert "optimization_barrier" not in exported.mlir_module()
    symbolic = jax.export.symbolic_args_specs(GRID, "a, b")
    assert jax.jit(fourth_order).lower(symbolic).out_info.shape == symbolic.shape


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="for one CPU alone")
def test_what_the_user_says_of_loops_goes_first() -> None:
    """Kernels of whole loops know no barriers: XLA would abort the process."""
    f = jax.jit(steps, compiler_options={"xla_cpu_small_while_loop_byte_threshold": 1 << 20})
    np.testing.assert_allclose(f(GRID), jax.jit(steps)(GRID), rtol=1e-4, atol=1e-5)
