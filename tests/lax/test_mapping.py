"""fori_loop, map and associative_scan."""

import itertools

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax

X = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)


def check(got, want):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


# -- fori_loop -------------------------------------------------------------------------------------


def body(i, x):
    return jnp.sin(x) * i + x


def in_python(lower, upper, x):
    for i in range(lower, upper):
        x = body(i, x)
    return x


@pytest.mark.parametrize(("lower", "upper"), [(0, 4), (2, 3), (3, 3), (5, 2), (-2, 2)])
@pytest.mark.parametrize("unroll", [None, 2, True])
def test_known_bounds(lower, upper, unroll):
    def f(x):
        return lax.fori_loop(lower, upper, body, x, unroll=unroll).sum()

    def want(x):
        return in_python(lower, upper, x).sum()

    check(f(X), want(X))
    check(jax.grad(f)(X), jax.grad(want)(X))
    check(jax.jit(jax.vmap(jax.grad(f)))(X), jax.vmap(jax.grad(want))(X))


def test_bounds_known_at_run_time():
    f = jax.jit(lambda n, x: lax.fori_loop(0, n, body, x))
    for n in (0, 1, 5):
        check(f(n, X), in_python(0, n, X))
    check(jax.jvp(lambda x: f(3, x), (X,), (X,))[1],
          jax.jvp(lambda x: in_python(0, 3, x), (X,), (X,))[1])
    check(jax.vmap(f, (0, None))(np.arange(3), X), np.stack([in_python(0, n, X) for n in range(3)]))
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        jax.grad(lambda x: f(3, x).sum())(X)


def test_the_index_is_as_weakly_typed_as_the_bounds():
    def last(lower, upper, init):
        return lax.fori_loop(lower, upper, lambda i, x: x + i, init)

    assert last(0, 3, 0).weak_type
    assert last(5, 2, 0).weak_type
    assert last(0, 3, np.int8(0)).dtype == np.int8
    assert last(np.int8(0), 3, np.int16(0)).dtype == np.int16
    assert jax.jit(last)(0, 3, 0).weak_type
    assert not jax.jit(last)(jnp.int32(0), jnp.int32(3), 0).weak_type


@pytest.mark.parametrize(("lower", "upper"), [
    (0, np.uint8(3)), (jnp.int8(0), np.int32(3)), (jnp.asarray(0), jnp.uint8(3)), (True, 3.0),
])
def test_bounds_of_two_types(lower, upper):
    with pytest.raises(TypeError, match="must have equal types, got"):
        lax.fori_loop(lower, upper, lambda i, x: x, 0)


def test_a_weak_bound_takes_the_type_of_the_other():
    seen = []
    jax.jit(lambda n: lax.fori_loop(0, n, lambda i, x: seen.append(i.dtype) or x, 0))(np.int8(3))
    assert seen == [np.int8]


def test_the_body_is_traced_once():
    traces = []

    def step(i, x):
        traces.append(i)
        return x + i

    for n in (3, 4):
        assert lax.fori_loop(0, n, step, np.int32(0)) == sum(range(n))
    assert len(traces) == 1


def test_bound_methods_and_partials():
    class Adder:
        def step(self, i, x):
            return x + i + self.n

    adder = Adder()
    adder.n = 1
    assert lax.fori_loop(0, 3, adder.step, 0) == 6
    adder.n = 2
    assert lax.fori_loop(0, 3, adder.step, 0) == 9


@pytest.mark.parametrize(("args", "error", "message"), [
    ((0, 3, 5, 5.0), TypeError, "body_fun argument should be callable"),
    ((0, 3.5, lambda i, x: x, 0), TypeError, "must have equal types, got int32 and float32"),
    ((jnp.int8(0), jnp.int32(4), lambda i, x: x, 0), TypeError, "got int8 and int32"),
    ((0, 5, lambda i, x: (x, x), 5.0), TypeError, "fori_loop: scan body function carry input and "
     "carry output must have the same pytree structure(.|\n)*input carry x is a pytree leaf"),
    ((0, 5, lambda i, x: {"a": jnp.ones(4)}, {"a": jnp.ones(3)}), TypeError, "fori_loop: scan body "
     "function carry input and carry output must have equal types(.|\n)*component x\\['a'\\] has"),
])
def test_bad_loops(args, error, message):
    with pytest.raises(error, match=message):
        lax.fori_loop(*args)
    with pytest.raises(TypeError, match=r"fori_loop: while_loop body func(.|\n)*carry x has"):
        jax.jit(lambda n: lax.fori_loop(0, n, lambda i, x: jnp.ones(4), jnp.ones(3)))(3)
    with pytest.raises(ValueError, match="Can only use `unroll`"):
        jax.jit(lambda n: lax.fori_loop(0, n, lambda i, x: x, 0, unroll=2))(3)


def test_a_body_that_answers_every_name_gets_the_error_of_its_carry():
    class Proxy:
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return self

        def __call__(self, c, x):
            return (c, c), x

    with pytest.raises(TypeError, match="scan body function carry input and carry output"):
        lax.scan(Proxy(), 1.0, None, length=3)


# -- map -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 1, 2, 7, 10])
def test_map(batch_size):
    def f(x):
        return {"sum": x.sum(), "sin": jnp.sin(x)}

    def mapped(x):
        return lax.map(f, x, batch_size=batch_size)

    check(mapped(X), jax.vmap(f)(X))
    check(jax.jit(jax.grad(lambda x: sum(map(jnp.sum, mapped(x).values()))))(X), 1 + np.cos(X))
    check(jax.vmap(mapped)(np.stack([X, X * 2])), jax.vmap(jax.vmap(f))(np.stack([X, X * 2])))


def test_map_of_nothing():
    assert lax.map(jnp.sin, jnp.zeros((0, 2))).shape == (0, 2)
    assert lax.map(jnp.sin, jnp.zeros((0, 2)), batch_size=3).shape == (0, 2)


def test_bad_maps():
    with pytest.raises(ValueError, match="no values"):
        lax.map(jnp.sin, ())
    np.testing.assert_array_equal(lax.map(jnp.sin, X, batch_size=0), lax.map(jnp.sin, X))
    with pytest.raises(ValueError, match="batch_size must be a nonnegative"):
        lax.map(jnp.sin, X, batch_size=-1)
    with pytest.raises(ValueError, match="leading axis"):
        lax.map(lambda x: x, (X, X[:2]), batch_size=2)
    for scalars in (1.0, (1.0, X), ()):
        with pytest.raises(ValueError, match="leading axis size, got shapes"):
            lax.map(lambda x: x, scalars, batch_size=2)


# -- associative_scan ------------------------------------------------------------------------------


def affine(a, b):
    """Composition of x -> p x + q, which does not commute."""
    return a[0] * b[0], b[0] * a[1] + b[1]


@pytest.mark.parametrize("n", range(8))
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_associative_scan(n, reverse, axis):
    xs = X[:n] if axis == 0 else X.T[:, :n]
    rows = [(r, r + 1) for r in (xs if axis == 0 else xs.T)]
    order = rows[::-1] if reverse else rows
    want = list(itertools.accumulate(order, affine))
    got = lax.associative_scan(affine, (xs, xs + 1), reverse=reverse, axis=axis)
    if not n:
        assert [g.shape for g in got] == [xs.shape] * 2
        return
    want = [np.stack(w[::-1] if reverse else w, 0 if axis == 0 else 1)
            for w in zip(*want, strict=True)]
    check(got, want)


def test_derivatives_of_associative_scan():
    check(jax.grad(lambda x: (lax.associative_scan(jnp.multiply, x) ** 2).sum())(X),
          jax.grad(lambda x: (jnp.cumprod(x, 0) ** 2).sum())(X))
    check(jax.vmap(lambda x: lax.associative_scan(jnp.maximum, x))(X),
          np.maximum.accumulate(X, 1))


@pytest.mark.parametrize(("args", "error", "message"), [
    ((3, X), TypeError, "fn argument should be callable"),
    ((jnp.add, (X, X[:2])), ValueError, r"same first dimension. \(saw: \[\(7, 3\), \(2, 3\)\]\)"),
    ((jnp.add, X, False, 2), ValueError, "axis 2 is out of bounds for array of dimension 2"),
    ((lambda a, b: (a, b), X), ValueError, "must return what its arguments are"),
])
def test_bad_associative_scans(args, error, message):
    with pytest.raises(error, match=message):
        lax.associative_scan(*args)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_a_function_is_mapped_by_one_program(batch_size):
    def f(x):
        return x * 2

    events = []
    first = lax.map(f, jnp.arange(4), batch_size=batch_size)
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))
    try:
        again = lax.map(f, jnp.arange(1, 5), batch_size=batch_size)
    finally:
        jax.monitoring.clear_event_listeners()
    np.testing.assert_array_equal(again, first + 2)
    assert "/jax/core/compile/backend_compile_duration" not in events


def test_weak_types_of_prefixes():
    """What is put together of several is of strong type; so are derivatives of accumulations."""
    weak = jnp.broadcast_to(1.5, (3,))
    assert not lax.associative_scan(jnp.add, weak).weak_type
    assert lax.associative_scan(jnp.add, weak[:1]).weak_type
    for accumulation in (lax.cumlogsumexp, lax.cummax, lax.cummin, lax.cumprod):
        assert accumulation(weak).weak_type
        assert not any(y.weak_type for y in jax.jvp(accumulation, (weak,), (weak,)))
