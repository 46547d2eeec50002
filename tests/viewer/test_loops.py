"""How often loops run, in all forms of a program and in what it costs."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.engine.lanes import keeping_lanes
from pyjx.inspect.figures import loops
from pyjx.runtime.costs import Costs
from pyjx.viewer.hlo import hlo_listing
from pyjx.viewer.jaxprs import jaxpr_listing
from pyjx.viewer.listing import Places
from pyjx.viewer.ranking import costs
from pyjx.viewer.stablehlo import stablehlo_listing

LINE = jax.ShapeDtypeStruct((1000,), np.float32)
TEN = np.int32(10)


def loop(test, step, start=0):
    return lambda x: lax.while_loop(
        lambda s: test(s[0]), lambda s: (step(s[0]), s[1] * 2), (start, x))[1]


@pytest.mark.parametrize("f", [
    loop(lambda i: i < TEN, lambda i: i + 1), loop(lambda i: i < 10, lambda i: 1 + i),
    loop(lambda i: lax.gt(TEN, i), lambda i: i + 1, np.int32(0)),
    loop(lambda i: i != 10, lambda i: i + 1), loop(lambda i: i != 0, lambda i: i - 1, 10),
    lambda x: lax.while_loop(
        lambda s: s[0] < s[2], lambda s: (s[0] + s[3], s[1] * 2, *s[2:]), (0, x, 20, 2))[1]])
def test_all_forms_know_the_same_loops(f):
    traced = jax.jit(f).trace(LINE)
    lowered = traced.lower()
    cost = traced.cost()
    assert cost.exact and cost.total.flops == 10 * (1000 + 1) + 11  # the last test fails
    for listing in (jaxpr_listing(traced.jaxpr, Places()),
                    stablehlo_listing(lowered.as_text(), Places()),
                    hlo_listing(lowered.as_text("hlo"), Places(), "HLO")):
        assert listing.exact and listing.flops[listing.entry] == cost.total.flops


@pytest.mark.parametrize(("limit", "start", "exact"), [
    (np.uint8(250), np.uint8(0), False), (np.uint8(200), np.uint8(0), True),
    (np.int8(127), np.int8(-100), False), (np.int8(0), np.int8(-100), True)])
def test_numbers_that_begin_again_behind_the_largest_one_are_not_counted(limit, start, exact):
    traced = jax.jit(loop(lambda i: i < limit, lambda i: i + type(limit)(100), start)).trace(LINE)
    lowered = traced.lower()
    assert traced.cost().exact == exact
    optimised = lowered.compile().as_text()  # XLA says how often, and overlooks it
    for listing in (jaxpr_listing(traced.jaxpr, Places()),
                    stablehlo_listing(lowered.as_text(), Places()),
                    *[hlo_listing(text, Places(), "HLO") for text in (
                        lowered.as_text("hlo"), optimised)]):
        assert listing.exact == exact
    assert exact or [found.iterations for found in loops(optimised)] == [None]


def test_a_limit_may_be_a_constant_of_the_program():
    limit = jnp.array(10)
    traced = jax.jit(loop(lambda i: i < limit, lambda i: i + 1)).trace(LINE)
    cost, listing = traced.cost(), jaxpr_listing(traced.jaxpr, Places())
    assert cost.exact and listing.exact
    assert cost.total.flops == listing.flops[listing.entry] == 10 * (1000 + 1) + 11


def test_a_loop_may_carry_its_number_alone():
    lowered = jax.jit(lambda: lax.while_loop(lambda i: i < 10, lambda i: i + 1, 0)).lower()
    for listing in (stablehlo_listing(lowered.as_text(), Places()),
                    hlo_listing(lowered.as_text("hlo"), Places(), "HLO")):
        assert listing.exact


@pytest.mark.parametrize("length", [1000, 1003])
def test_loops_that_lowering_writes_are_read(length):
    lowered = jax.jit(jnp.cumsum).lower(jax.ShapeDtypeStruct((length,), np.float32))
    listing = stablehlo_listing(lowered.as_text(), Places())
    assert listing.exact  # an addition each, and what finds its place and counts
    assert length < listing.flops[listing.entry] < 3 * length + 100
    assert all(listing.in_place[row] for row, name in enumerate(listing.operation)
               if name == "stablehlo.while")


@pytest.mark.parametrize("options", [{"unroll": 5}, {"unroll": 7, "reverse": True}])
def test_unrolled_loops_run_as_often(options):
    """Those that the number of runs divides, and others."""
    traced = jax.jit(lambda xs: lax.scan(
        lambda c, x: (c + jnp.tanh(x), c), jnp.zeros(1000), xs, **options)).trace(
            jax.ShapeDtypeStruct((100, 1000), np.float32))
    lowered = traced.lower()
    for listing in (jaxpr_listing(traced.jaxpr, Places()),
                    stablehlo_listing(lowered.as_text(), Places()),
                    hlo_listing(lowered.as_text("hlo"), Places(), "HLO")):
        assert listing.exact and 0 <= listing.flops[listing.entry] - 200_000 < 1000


def test_pages_run_the_test_of_a_loop_once_more():
    def f(x):
        for _ in range(2):
            x = lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, jnp.tanh(s[1])),
                               (0, x))[1]
        return x

    lowered = jax.jit(f).lower(LINE)
    for listing, test, body in (
            (jaxpr_listing(jax.make_jaxpr(f)(LINE), Places()), "lt", "tanh"),
            (stablehlo_listing(lowered.as_text(), Places()), "stablehlo.compare",
             "stablehlo.tanh"),
            (hlo_listing(lowered.as_text("hlo"), Places(), "HLO"), "compare", "tanh")):
        runs = dict.fromkeys((test, body), 0.0)
        for row, operation in enumerate(listing.operation):
            if operation in runs:
                runs[operation] += costs(listing).runs[row]
        assert runs == {test: 22, body: 20}


def test_a_limit_that_is_traced_or_deleted_is_not_known():
    def counts(limit):
        f = loop(lambda i: i < limit, lambda i: i + 1)
        closed = jax.make_jaxpr(f)(LINE)
        if limit is deleted:
            limit.delete()
        assert not jaxpr_listing(closed, Places()).exact and not Costs(closed, dict).exact
        return limit

    deleted = jnp.array(10)
    counts(deleted)
    jax.jit(counts)(10)


def lanes(x):
    """The equation of a branch holds the program of an example, and runs that of all."""
    with keeping_lanes(True):
        return jax.vmap(lambda a: lax.cond(a > 0, lambda: jnp.sin(print_of(a)) * 2, lambda: a))(x)


def print_of(a):
    jax.debug.print("{}", a)
    return a


MATRIX = np.eye(64, dtype=np.float32) * 3


def halved(_, b):
    return b / 3


@pytest.mark.parametrize(("f", "exact"), [
    (lambda b: lax.custom_linear_solve(lambda v: MATRIX @ v, b, halved, halved), True),
    (lambda b: lax.custom_linear_solve(lambda v: MATRIX @ v, b, halved, halved, symmetric=True),
     True),
    (lambda b: lax.custom_linear_solve(lambda v: MATRIX @ v, b, halved, lambda mv, b: (
        lax.while_loop(lambda c: c[0] < 9, mv, b))), True),
    (lambda b: jax.scipy.sparse.linalg.cg(lambda v: MATRIX @ v, b, maxiter=10)[0], False),
    (lambda b: lax.custom_root(lambda v: MATRIX @ v - b, b, lambda f, x: x + 1, halved), True),
    (lambda b: lax.cond(b[0] > 0, lambda: b + 1, lambda: jnp.sin(b) * 2), False),
    (lambda b: lax.igamma(b, b), False), (jax.nn.relu, True), (lanes, True)])
def test_pages_count_what_runs_as_costs_do(f, exact):
    """Programs for derivatives do not run, nor does what is known of them count; of branches the
    dearest counts, which is an estimate."""
    vector = jax.ShapeDtypeStruct((64,), np.float32)
    traced = jax.jit(f).trace(vector)
    found, listing = traced.cost(), jaxpr_listing(traced.jaxpr, Places())
    assert listing.flops[listing.entry] == found.total.flops + found.total.transcendentals
    assert listing.exact == found.exact == exact
    assert stablehlo_listing(traced.lower().as_text(), Places()).exact == exact
