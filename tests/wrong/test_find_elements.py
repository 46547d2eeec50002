"""`inspect.find` where an array holds several bad values: the operation of the one asked for."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import inspect, lax
from pyjx.inspect import finding
from pyjx.runtime import flag_checks

X = jnp.array([0.0, 1.0])


def rows(x):
    """Two rows, whose first elements are NaN: of `div`, and of `mul`."""
    return jnp.stack([jnp.sin(x) / x, x * jnp.log(x)])


# Each gives, of the rows, values that come of row `i` alone.
WAYS = {
    "index": lambda r, i: r[i],
    "traced index": lambda r, i: jax.jit(lambda r, i: r[i])(r, jnp.int32(i)),
    "indices": lambda r, i: r[jnp.array([i, i])],
    "mask": lambda r, i: jnp.where(jnp.arange(2)[:, None] == i, r, 0.0),
    "select of three": lambda r, i: lax.select_n(jnp.int32(2 * i), r[0], X, r[1]),
    "split": lambda r, i: jnp.split(r, 2)[i],
    "slices of joined": lambda r, i: jnp.concatenate([r[1], r[0]])[2 - 2 * i:][:2],
    "transposed, reversed": lambda r, i: r.T[::-1, ::-1][:, 1 - i],
    "padded and tiled": lambda r, i: jnp.tile(jnp.pad(r, 1), (2, 1))[i + 5],
    "set": lambda r, i: jnp.ones((2, 2)).at[0].set(r[0]).at[1].set(r[1])[i],
    "added to": lambda r, i: jnp.ones((2, 2)).at[jnp.array([1, 0])].add(r)[1 - i],
    "the largest of segments": lambda r, i: jax.ops.segment_max(
        r.ravel(), jnp.array([1, 1, 0, 0]), 2)[1 - i],
    "the largest of windows": lambda r, i: lax.reduce_window(
        r, -jnp.inf, lax.max, (1, 2), (1, 1), "SAME")[i],
    "the windows' gradient": lambda r, i: jax.grad(lambda x: (r * lax.reduce_window(
        x, -jnp.inf, lax.max, (1, 2), (1, 1), "SAME")).sum())(jnp.ones((2, 2)))[i],
    "the two largest": lambda r, i: lax.top_k(r, 2)[0][i],
    "a reduction of one's own": lambda r, i: lax.reduce(r, 0.0, lambda a, b: a * b + a, (1,))[i],
    "segments": lambda r, i: jax.ops.segment_sum(r.ravel(), jnp.array([1, 1, 0, 0]), 2)[1 - i],
    "a sum": lambda r, i: r.sum(1)[i], "a maximum": lambda r, i: r.max(1)[i],
    "a product": lambda r, i: jnp.prod(r.T, 0)[i],
    "running": lambda r, i: jnp.cumsum(r, 1)[i],
    "running back": lambda r, i: lax.cumsum(r.ravel()[1:-1], reverse=True)[i] if i else r[0],
    "a product of matrices": lambda r, i: (r @ jnp.ones((2, 3)))[i],
    "from the right": lambda r, i: jnp.einsum("kb,bj->kj", jnp.ones((3, 2)), r.T)[:, i],
    "a batch of products": lambda r, i: jnp.einsum("bi,bj->bij", r, r)[i],
    "sorted": lambda r, i: jnp.sort(r, 1)[i],
    "matrices": lambda r, i: jnp.linalg.cholesky(r[:, :1, None] * jnp.eye(2))[i],
    "a Fourier transform": lambda r, i: jnp.fft.fft(r)[i].real,
    "a convolution": lambda r, i: jnp.convolve(
        jnp.concatenate([r[0], jnp.ones(8), r[1]]), jnp.ones(3), mode="same")[-2 if i else 1],
    "another type": lambda r, i: r.astype(jnp.bfloat16)[i].astype(jnp.float32),
    "vmap": lambda r, i: jax.vmap(lambda x: (x * 2).sum())(r)[i],
    "a branch": lambda r, i: lax.cond(i >= 0, lambda r: r * 2, lambda r: r, r)[i],
    "a loop's carry": lambda r, i: lax.fori_loop(0, 3, lambda _, c: c * 2, r)[i],
    "a loop's slices": lambda r, i: lax.scan(lambda c, x: (c, x * 2), 0, r, reverse=True)[1][i],
    "a carry that turns": lambda r, i: lax.fori_loop(0, 40, lambda _, c: jnp.roll(c, 1, 0), r)[i],
}


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("way", WAYS)
def test_the_operation_of_the_element(way, row):
    found = inspect.find(lambda x: WAYS[way](rows(x), row), X)
    assert (found.operation, found.element) == (("div", "mul")[row], (0,)), found
    text = linecache.getline(found.line.file_name, found.line.start_line)
    assert "jnp.stack" in text and not found.notes


@pytest.mark.parametrize("element", [(1, 0), (0, 2)])
def test_the_element_that_came_in(element):
    x = jnp.ones((2, 3)).at[1, 0].set(jnp.nan).at[0, 2].set(jnp.nan)
    found = inspect.find(lambda x: (x.T * 2)[element[::-1]] + 1, x)
    assert (found.argument, found.element) == ("x", element)


@pytest.mark.parametrize(("element", "iteration"), [(0, 13), (1, 3), (2, None)])
def test_the_iteration_of_an_element(element, iteration):
    def simulate(x):
        return lax.scan(lambda x, _: (x - 0.1 * jnp.sqrt(x), x), x, None, length=50)

    x = jnp.array([0.5, 0.03, 30.0])
    for found in (inspect.find(lambda x: jax.vmap(simulate)(x)[0][element], x),
                  inspect.find(lambda x: jax.vmap(simulate)(x)[1][element, -1], x)):
        assert [step.text for step in found.steps] == (
            [] if iteration is None else [f"iteration {iteration} of scan"]), found
        assert not found or found.element == (element,)


def test_iterations_of_a_transpose_are_those_of_the_loop():
    def total(x):
        def step(c, i):
            return 0.9 * c, jnp.sqrt(jnp.where(i == 9, 0.0 * c, c))

        return lax.scan(step, x, jnp.arange(12))[1].sum()

    texts = [inspect.find(jax.grad(total), 1.0, what=what).steps[0].text for what in ("nan", "inf")]
    assert texts == ["iteration 9 of scan, which runs backwards", "iteration 9 of scan"]


def test_others_that_were_bad_before_are_told_of():
    def chain(x):
        return lax.scan(lambda c, _: (jnp.sqrt(c) - 0.9, None), x, None, length=8)[0]

    found = inspect.find(jax.vmap(chain), jnp.array([50.0, 1.0]))
    assert found.steps[0].text == "iteration 4 of scan" and "Others were nan before" in str(found)
    assert "Others" not in str(inspect.find(jax.vmap(chain), jnp.array([50.0])))
    masked = inspect.find(lambda x: jnp.where(x > 0, x, -jnp.inf), X, what="inf")
    assert masked.operation == "select_n" and "Others" not in str(masked)


def test_what_is_filled_in_is_made_there():
    assert inspect.find(lambda x: x.at[5].get(mode="fill"), X).operation == "gather"
    found = inspect.find(lambda x: jnp.pad(x, 1, constant_values=jnp.nan)[0], X)
    assert found.argument.startswith("the literal nan at ") and "py:" in found.argument
    for fun in (lambda x: x + jnp.full(2, -jnp.inf), lambda x: x * jnp.inf + 1,
                lambda x: lax.scan(lambda c, x: (c + x, None), -jnp.inf, x)[0]):
        found = inspect.find(fun, X + 1, what="inf")
        line = fun.__code__.co_firstlineno
        assert f"inf at {__file__}:{line} (" in found.argument or (
            f"test_find_elements.py:{line} (" in found.argument), found
    found = inspect.find(lambda x: jnp.where(x > 0, x, jnp.nan), X)
    assert (found.operation, found.element) == ("select_n", (0,)) and found.line is not None
    for fun in (jnp.median, lambda y: jnp.where(jnp.isnan(y).any(), jnp.nan, y),
                lambda y: jnp.quantile(y, 0.3)):  # a literal is chosen, for what is nan
        assert inspect.find(lambda x, f=fun: f(jnp.log(x)), -X - 1).operation == "log"


@pytest.mark.parametrize("way", [
    lambda y: lax.bitcast_convert_type(y, jnp.float16),
    lambda y: lax.bitcast_convert_type(y.astype(jnp.float16).reshape(2, 2), jnp.float32),
    lambda y: lax.optimization_barrier((y, jax.random.key(0)))[0],
    lambda y: jnp.fft.rfft(y)[1], lambda y: jnp.fft.irfft(y)[2],
    lambda y: lax.linalg.tridiagonal_solve(jnp.array([0.0, 1, 1, 1]), y, jnp.array([1.0, 1, 1, 0]),
                                           jnp.ones((4, 1))),
    lambda y: lax.linalg.householder_product(jnp.ones((4, 4)), y),
    lambda y: y.at[jnp.array([1])].get(mode="fill", fill_value=jnp.nan),
    lambda y: lax.reduce((jnp.sqrt(y), y), (0.0, 0.0), lambda a, b: (
        a[0] + b[0] * 1, a[1] * b[1]), (0,))[1],
    lambda y: lax.reduce_max_p.bind(y, axes=()),
    lambda y: jnp.concatenate([jnp.zeros((0,)), y]), lambda y: jnp.clip(jnp.ones(4), y[1], 4)])
def test_what_is_made_of_one_value(way):
    found = inspect.find(lambda x: way(jnp.log(x)), jnp.array([1.0, -1.0, 2.0, 4.0]))
    assert (found.operation, found.element) == ("log", (1,)), found


def test_a_predicate_of_the_whole_array():
    found = inspect.find(lambda x: jnp.exp(x) + 1, jnp.array([0.0, 0.0, 9.0, 0.0]),
                         what=lambda x: abs(x) > 2 * jnp.mean(abs(x)))
    assert (found.argument, found.element) == ("x", (2,))


def test_large_programs_go_from_array_to_array(monkeypatch):
    monkeypatch.setattr(finding, "MOST_BYTES", 0)
    found = inspect.find(lambda x: rows(x)[1], X)
    assert found.operation in ("div", "mul") and found.element == (0,)


@pytest.mark.parametrize("results", [
    lambda x: (x / x, x * jnp.log(x)), lambda x: jnp.stack([x / x, x * jnp.log(x)]),
    lambda x: {"weights": jnp.full(50, x[0] / x[0]), "loss": (x * jnp.log(x)).sum()}])
def test_an_infinity_behind_any_result(results):
    found = inspect.find(jax.jit(results), X, what="inf")
    assert found.operation == "log" and not found.notes


def test_of_how_many_nans_an_infinity_was_not_found(monkeypatch):
    monkeypatch.setattr(finding, "_NANS", 3)
    found = inspect.find(lambda x: (x / x, jnp.full(4, x / x)), 0.0, what="inf")
    assert not found and "comes of none, nor do 2 others" in str(found)
    assert "behind 2 more was not looked at" in str(found)


def test_many_nans_take_no_longer():
    found = inspect.find(lambda x: x * 2, np.full(10**6, np.nan, "f4"), what="inf")
    assert not found and "behind 999968 more was not" in str(found)


def test_a_program_is_searched_once_where_nan_come_in(monkeypatch):
    searched = []
    monkeypatch.setattr(flag_checks, "FINDER", "tests.wrong.test_find_elements:look")
    monkeypatch.setattr(finding, "looked", searched, raising=False)
    step = jax.jit(lambda x: x / x * 2)
    with jax.debug_infs(True), flag_checks.behind_nans(True):
        x = step(0.0)
        for _ in range(3):
            x = step(x)
        assert len(searched) == 1
        step(0.0)  # it may come of one this time
    assert len(searched) == 2 and np.isnan(x)


def look(closed, args, what):
    finding.looked.append(closed)
    return finding.find_again(closed, args, what)
