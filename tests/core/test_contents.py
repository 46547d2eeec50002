"""Programs that compute the same are known by their contents, however often they are traced."""

import gc
import weakref

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.contents import contents, deduplicated
from pyjx.core.derived import MOST_DERIVED
from pyjx.core.jaxpr import ClosedJaxpr

X = jnp.arange(3.0)


@pytest.fixture
def compilations():
    events = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))
    yield lambda: events.count("/jax/core/compile/backend_compile_duration")
    jax.monitoring.clear_event_listeners()


@pytest.mark.parametrize("call", [
    lambda: lax.scan(lambda c, x: (c + x, c * x), 0.0, X)[0],
    lambda: lax.map(lambda x: x * 2, X),
    lambda: lax.while_loop(lambda c: c < 5, lambda c: c + 1, 0),
    lambda: lax.cond(X[0] > 1, lambda x: x + 1, lambda x: x - 1, X),
    lambda: lax.reduce(X, 0.0, lambda a, b: a + b, (0,)),
    lambda: lax.reduce_window(X, 0.0, lambda a, b: a * b, (2,), (1,), "VALID"),
    lambda: X.at[0].apply(lambda x: jnp.cos(x)),
], ids=["scan", "map", "while", "cond", "reduce", "reduce_window", "apply"])
def test_eager_calls_with_new_functions_are_compiled_once(call, compilations):
    first = call()
    before = compilations()
    np.testing.assert_array_equal(call(), first)
    assert compilations() == before


def test_programs_differ_by_what_they_compute():
    def traced(f):
        return jax.make_jaxpr(f)(X)

    one = traced(lambda x: jnp.sin(x) * 2)
    assert contents(one) == contents(traced(lambda y: jnp.sin(y) * 2))
    assert deduplicated(traced(lambda y: jnp.sin(y) * 2)) is deduplicated(one)
    for other in (lambda x: jnp.sin(x) * 3, lambda x: jnp.cos(x) * 2, lambda x: jnp.sin(x) * -2.0,
                  lambda x: x * 2, lambda x: jnp.sin(x[:2]) * 2):
        assert contents(traced(other)) != contents(one)
    zeros = [traced(lambda x, z=z: x * z) for z in (0.0, -0.0)]
    assert contents(zeros[0]) != contents(zeros[1])


def test_map_sees_what_a_function_closes_over():
    factor = [1.0]

    def f(x):
        return x * factor[0]

    assert lax.map(f, X).tolist() == [0, 1, 2]
    factor[0] = 3.0
    assert lax.map(f, X).tolist() == [0, 3, 6]
    assert lax.map(f, X, batch_size=2).tolist() == [0, 3, 6]


def test_eager_programs_leave_no_cycles():
    def programs():
        return sum([isinstance(x, ClosedJaxpr) for x in gc.get_objects()])

    lax.scan(lambda c, x: (c + x, c), 0.0, X)
    gc.collect()
    gc.disable()
    try:
        before = programs()
        for n in range(10):
            lax.scan(lambda c, x, n=n: (c + x, c), 0.0, X)
        assert programs() <= before + 2
    finally:
        gc.enable()


def test_what_a_callback_closes_over_goes_with_it():
    class Big:
        pass

    def made():
        big = Big()

        def called(x):
            assert big
            return x

        like = jax.ShapeDtypeStruct((), np.float32)
        f = jax.jit(lambda x: jax.pure_callback(called, like, x))
        assert f(1.0) == 1
        return weakref.ref(big)

    ref = made()
    jax.clear_caches()
    jax.jit(lambda x: x * 7)(1.0)  # XLA lets go of functions when it is asked for something
    gc.collect()
    assert ref() is None


def test_what_is_derived_from_a_program_is_bounded():
    f = jax.jit(lambda x: x * 2 + 1)
    closed = f.trace(1.0).jaxpr
    call = jax.jit(lambda *xs: jax.vmap(f)(xs[0]))
    for n in range(1, MOST_DERIVED + 40):
        jax.eval_shape(call, jax.ShapeDtypeStruct((n,), np.float32))
    (closed,) = [e.params["jaxpr"] for e in jax.make_jaxpr(f)(1.0).eqns]
    assert len(closed.derived or ()) <= MOST_DERIVED + 1


def test_what_an_eager_branch_closes_over_goes_with_it_by_its_count():
    class Big:
        pass

    def made(n):
        big = Big()

        @jax.custom_jvp
        def branch(x):
            return x * n

        branch.defjvp(lambda primals, tangents: (primals[0] * n, (big, tangents[0])[1]))
        assert lax.cond(jnp.array(True), lambda x: branch(x), lambda x: x, 1.0) == n
        assert lax.cond(jnp.array(True), lambda x: branch(x), lambda x: x, 2.0) == 2 * n
        return weakref.ref(big)

    made(7.0)
    gc.collect()
    gc.disable()
    try:
        assert [made(n)() for n in (1.0, 2.0, 3.0)] == [None] * 3
    finally:
        gc.enable()
