"""Callbacks: what they get, what they may give, and how often they are called."""

import functools
import gc
import os
import subprocess
import sys
import threading
import traceback
import weakref
from collections import deque
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.frames import is_internal
from pyjx.core.passes.dce import dce
from pyjx.experimental import io_callback
from pyjx.runtime import host_calls

X = np.arange(3, dtype=np.float32)
LIKE = jax.ShapeDtypeStruct((3,), np.float32)


def double(x):
    return np.asarray(x) * 2


def pure(x, **options):
    return jax.pure_callback(double, jax.ShapeDtypeStruct(x.shape, x.dtype), x, **options)


def eager(f):
    return f


def called(run):
    """What a function that is given a `say` has said when its effects are over."""
    said = []
    run(lambda *xs: said.append(tuple(np.asarray(x).tolist() for x in xs)))
    jax.effects_barrier()
    return said


# -- pure_callback ---------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.smoke
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_pure_callback(wrap):
    np.testing.assert_array_equal(wrap(pure)(X), X * 2)
    tree = wrap(lambda d: jax.pure_callback(
        lambda d, scale: {"r": np.asarray(d["a"]) * scale}, {"r": LIKE}, d, scale=jnp.float32(3)))
    np.testing.assert_array_equal(tree({"a": X})["r"], X * 3)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float16", "complex64", "uint32"])
def test_dtypes(dtype):
    x = jnp.asarray(X).astype(dtype)
    out = jax.jit(lambda x: jax.pure_callback(
        lambda x: np.asarray(x)[::-1], jax.ShapeDtypeStruct((3,), dtype), x))(x)
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(out, np.asarray(x)[::-1])


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
def test_shapes(shape):
    x = jnp.zeros(shape)
    assert jax.jit(pure)(x).shape == pure(x).shape == shape


def test_arguments_are_arrays_that_may_be_kept():
    kept = []
    f = jax.jit(lambda x: jax.pure_callback(lambda x: kept.append(x) or double(x), LIKE, x))
    f(X), f(X + 1), f(X + 2)
    assert all(isinstance(x, jax.Array) for x in kept)
    for i, x in enumerate(kept):
        np.testing.assert_array_equal(x, X + i)


@pytest.mark.parametrize(("method", "shapes"), [
    ("sequential", [((), ())] * 3), ("sequential_unrolled", [((), ())] * 3),
    ("expand_dims", [((3,), (1,))]), ("broadcast_all", [((3,), (3,))]),
    ("legacy_vectorized", [((3,), ())]),
])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_vmap_methods(method, shapes, wrap):
    seen = []

    def one(x, y):
        def host(x, y):
            seen.append((x.shape, y.shape))
            return np.asarray(x) + np.asarray(y)

        return jax.pure_callback(host, jax.ShapeDtypeStruct((), np.float32), x, y,
                                 vmap_method=method)

    out = wrap(jax.vmap(one, in_axes=(0, None)))(X, np.float32(2))
    np.testing.assert_array_equal(out, X + 2)
    assert seen == shapes


def test_nested_vmap():
    f = jax.vmap(jax.vmap(lambda x, y: jax.pure_callback(
        lambda x, y: np.asarray(x) - np.asarray(y), jax.ShapeDtypeStruct((), np.float32), x, y,
        vmap_method="expand_dims"), (0, None)), (None, 0))
    np.testing.assert_array_equal(f(X, X), X[None] - X[:, None])


def test_derivatives_come_from_custom_rules():
    with pytest.raises(ValueError, match=r"do not support JVP. Please use `jax.custom_jvp`"):
        jax.grad(lambda x: pure(x).sum())(X)
    f = jax.custom_jvp(pure)
    f.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0]))
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(X), [2, 2, 2])


def test_what_nobody_needs_is_not_called():
    closed = jax.make_jaxpr(lambda x: (pure(x), x)[1])(X)
    assert not dce(closed).eqns
    assert called(lambda say: jax.jit(lambda x: (jax.pure_callback(say, None, x), x)[1])(X)) == []


def test_in_control_flow():
    np.testing.assert_array_equal(
        lax.scan(lambda c, x: (c + 1, pure(x)), 0, np.stack([X, X + 1]))[1], [X * 2, X * 2 + 2])
    assert lax.while_loop(lambda c: c < 20, pure, jnp.float32(3)) == 24
    assert jax.jit(lambda p: lax.cond(p, pure, lambda x: x, jnp.float32(3)))(True) == 6
    assert lax.fori_loop(0, 3, lambda i, c: pure(c), jnp.float32(1)) == 8


@pytest.mark.parametrize(("result", "message"), [
    (np.zeros(4, np.float32), r"Expected: \(3,\), Actual: \(4,\)"),
    ((X, X), "Expected: 1, Actual: 2. result_shape_dtypes says the former.\nIt came from"),
    (X + 1j, "Actual: complex64. result_shape_dtypes"),
    (X.astype(np.int64), "Incorrect output dtype for return value #0: Expected: float32, Actual: "
     "int32. result_shape_dtypes says the former. Convert it in the callback"),
    (X.astype(np.float16), "Expected: float32, Actual: float16"),
])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_wrong_results(result, message, wrap):
    f = wrap(lambda x: jax.pure_callback(lambda x: result, LIKE, x))
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        f(X)


@pytest.mark.parametrize(("method", "maps", "message"), [
    ("expand_dims", 1, r"\(3,\), Actual: \(2,\). .* says \(\), and vmap puts \(3,\) in front"),
    ("broadcast_all", 2, r"\(1, 3\), Actual: .* says \(\), and vmap puts \(1, 3\) in front"),
    ("sequential", 1, r"Expected: \(\), Actual: \(2,\). result_shape_dtypes says the former"),
])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_wrong_results_of_batches(method, maps, message, wrap):
    def f(x):
        return jax.pure_callback(lambda x: X[:2], jax.ShapeDtypeStruct((), np.float32), x,
                                 vmap_method=method)
    for _ in range(maps):
        f = jax.vmap(f)
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        wrap(f)(X[(None,) * (maps - 1)])
    np.testing.assert_array_equal(wrap(pure)(X), X * 2)


def test_wide_results_are_narrowed_where_64_bits_are_off():
    for wide in (X.astype(np.float64), X.astype(np.float64).tolist()):
        out = jax.pure_callback(lambda x, wide=wide: np.asarray(wide), LIKE, X)
        assert out.dtype == np.float32 and out.tolist() == X.tolist()


@pytest.mark.parametrize(("op", "call"), [
    ("pure_callback", lambda f, x: jax.pure_callback(f, LIKE, x)),
    ("io_callback", lambda f, x: io_callback(f, LIKE, x)),
    ("io_callback", lambda f, x: io_callback(f, LIKE, x, ordered=True)),
    ("debug.callback", jax.debug.callback),
])
@pytest.mark.parametrize("wrap", [eager, jax.jit, lambda f: jax.jit(jax.jit(f))])
def test_failures_show_the_callback_and_its_call_and_the_cause_once(op, call, wrap, caplog):
    def host(x):
        raise KeyError("lost")

    def calls(x):
        return call(host, x)

    with pytest.raises((KeyError, jax.errors.JaxRuntimeError), match="lost") as caught:
        jax.block_until_ready(wrap(calls)(X))
        jax.effects_barrier()
    text = "".join(traceback.format_exception(caught.value))
    for error in (caught.value, caught.value.__cause__):
        assert error is None or not any(
            [is_internal(f.filename) for f in traceback.extract_tb(error.__traceback__)])
    assert str(Path(jax.__file__).parent) not in text
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", f"jax.{op} failed")
    assert record.exc_info[0] is KeyError
    assert text.count('raise KeyError("lost")') == 1
    if caught.type is not KeyError:
        assert isinstance(caught.value.__cause__, KeyError)
        of_call = calls if call is jax.debug.callback else call
        host_line, call_line = [f.__code__.co_firstlineno for f in (host, of_call)]
        assert str(caught.value).startswith(
            "INTERNAL: CpuCallback error calling callback: KeyError: 'lost'\n"
            f"It came from the callback host at {__file__}:{host_line}")
        called_at = f", which is called at {__file__}:{call_line + (of_call is calls)}:"
        assert wrap is eager or called_at in str(caught.value)


@pytest.mark.parametrize(("host", "shown"), [
    (lambda f: jax.debug.print("{:d}", f), "print('{:d}')"),
    (lambda f: jax.debug.callback(functools.partial(int, "x"), f), "int"),
    (lambda f: jax.debug.callback(Failing(), f), "<tests.lax.test_callbacks.Failing object>")])
def test_callbacks_that_are_no_functions_have_names(host, shown):
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(host)(1.5)
        jax.effects_barrier()
    assert f"It came from the callback {shown}" in str(caught.value)
    assert "string.py" not in "".join(traceback.format_exception(caught.value))


class Failing:
    def __call__(self, x):
        raise ValueError


def test_failures_are_printed_where_no_call_raises_them():
    """Programs for several devices run in threads of their own. Nobody handles messages here."""
    code = """
import sys
import pyjx as jax, pyjx.numpy as jnp
def host(x):
    raise KeyError("lost")
x = jax.device_put(jnp.ones(2), jax.NamedSharding(jax.make_mesh((2,), ("i",)), jax.P("i")))
try:
    y = jax.jit(lambda x: (jax.debug.callback(host, x), x + 1)[1])(x).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    assert "[host call" not in str(error) and "KeyError: 'lost'" in str(error)
print("so far", file=sys.stderr)
for f in (lambda x: jax.pure_callback(host, x, x), lambda x: jax.debug.callback(host, x)):
    for f in (f, jax.jit(f)):
        try:
            f(jnp.ones(()))
        except (KeyError, jax.errors.JaxRuntimeError):
            pass
print("again", file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, text=True, timeout=120,
                          capture_output=True, env={**os.environ, "JAX_NUM_CPU_DEVICES": "2"})
    assert "jax.debug.callback failed\nTraceback" in done.stderr
    assert "KeyError: 'lost'\nFrames inside the library are not shown" in done.stderr
    assert "so far\nagain\n" in done.stderr


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit, ValueError])
def test_exceptions_are_the_cause(error):
    def host(x):
        raise error("in the callback")

    f = jax.jit(lambda x: jax.pure_callback(host, LIKE, x))
    with pytest.raises(jax.errors.JaxRuntimeError, match="in the callback") as raised:
        f(X)
    assert isinstance(raised.value.__cause__, error)
    with pytest.raises(jax.errors.JaxRuntimeError, match="in the callback") as raised:
        f(X)  # as often as it is called
    assert isinstance(raised.value.__cause__, error) and "[host call" not in str(raised.value)
    np.testing.assert_array_equal(jax.jit(pure)(X), X * 2)


def test_bad_arguments():
    with pytest.raises(ValueError, match="vmap_method must be on of the allowed methods"):
        pure(X, vmap_method="each")
    with pytest.raises(NotImplementedError, match="vmap_method=None"):
        jax.vmap(pure)(X)
    with pytest.raises(ValueError, match="cannot specify 64-bit types"):
        jax.pure_callback(double, jax.ShapeDtypeStruct((3,), np.float64), X)
    with pytest.raises(TypeError, match="values with a shape and a dtype"):
        jax.pure_callback(double, 3, X)
    with pytest.raises(TypeError, match="callback must be callable"):
        jax.pure_callback(3, LIKE, X)


@pytest.mark.parametrize("size", [3, 1_000_000])
def test_callbacks_may_compute(size):
    def host(x):
        return np.asarray(jax.jit(lambda x: jnp.sin(x) * 2)(x) + jnp.cos(jnp.asarray(x)))

    x = np.linspace(0, 1, size, dtype=np.float32)
    out = jax.jit(lambda x: jax.pure_callback(
        host, jax.ShapeDtypeStruct(x.shape, x.dtype), x * 1) + 1)(x)
    np.testing.assert_allclose(out, np.sin(x) * 2 + np.cos(x) + 1, rtol=1e-5)


def test_threads():
    f = jax.jit(lambda x: pure(x) + pure(x + 1))
    wrong = []

    def work(k):
        for i in range(20):
            x = X + k + i
            if not np.array_equal(f(x), x * 4 + 2):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# -- io_callback -----------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_io_callback(ordered, wrap):
    state = [0]

    def host(x):
        state[0] += int(x)
        return np.int32(state[0])

    f = wrap(lambda x: io_callback(host, jax.ShapeDtypeStruct((), np.int32), x, ordered=ordered))
    assert [int(f(i)) for i in (1, 2, 3)] == [1, 3, 6]


def test_io_callbacks_stay_where_nobody_needs_their_results():
    assert called(lambda say: jax.jit(lambda x: (io_callback(say, None, x), x)[1])(X)) == [
        (X.tolist(),)]


def test_io_callback_under_transformations():
    def f(x, ordered=False):
        return io_callback(double, jax.ShapeDtypeStruct((), np.float32), x, ordered=ordered)

    np.testing.assert_array_equal(jax.vmap(f)(X), X * 2)
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback"):
        jax.vmap(lambda x: f(x, True))(X)
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        jax.grad(f)(1.0)
    with pytest.raises(NotImplementedError, match=r"Effects not supported in partial-eval"):
        jax.grad(jax.checkpoint(lambda x: (io_callback(lambda: None, None), jnp.sin(x))[1]))(1.0)


# -- order -----------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_ordered_callbacks_keep_their_order():
    def run(say):
        @jax.jit
        def f(x):
            jax.debug.callback(say, x, ordered=True)
            x = lax.fori_loop(0, 3, lambda i, x: (jax.debug.callback(
                say, x + i, ordered=True), x)[1], x)
            lax.cond(x > 0, lambda x: jax.debug.callback(say, x * 10, ordered=True),
                     lambda x: None, x)
            inner(x + 100)
            return x

        @jax.jit
        def inner(x):
            jax.debug.callback(say, x, ordered=True)

        f(1)
        f(2)

    assert called(run) == [(x,) for x in (1, 1, 2, 3, 10, 101, 2, 2, 3, 4, 20, 102)]


def test_ordered_callbacks_in_while_loops():
    def run(say):
        def cond(c):
            jax.debug.callback(say, c * 10, ordered=True)
            return c < limit

        def body(c):
            jax.debug.callback(say, c, ordered=True)
            return c + 1

        limit = jnp.int32(2)
        assert jax.jit(lambda c: lax.while_loop(cond, body, c))(0) == 2
        assert jax.jit(lambda c, n: lax.while_loop(lambda c: c < n, body, c))(7, 8) == 8

    assert called(run) == [(0,), (0,), (10,), (1,), (20,), (7,)]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize("max_steps", [None, 4])
def test_conditions_of_mapped_loops_are_asked_once_an_iteration(wrap, max_steps):
    starts = np.int32([0, 1, 5])

    def loop(say, x):
        def cond(c):
            jax.debug.callback(say, c, ordered=True)
            return c < 2

        return lax.while_loop(cond, lambda c: c + 1, x, max_steps=max_steps)

    def run(say):
        np.testing.assert_array_equal(wrap(jax.vmap(lambda x: loop(say, x)))(starts), [2, 2, 5])
        np.testing.assert_array_equal(wrap(jax.vmap(jax.vmap(lambda x: loop(say, x))))(
            starts[:, None]), [[2], [2], [5]])

    said = called(run)
    assert said[:5] == said[9:14] == [(0,), (1,), (5,), (1,), (2,)] and len(said) == 2 * 3 * 3


def test_derivatives_of_mapped_loops_with_conditions_in_order():
    def f(say, x):
        def cond(c):
            jax.debug.callback(say, c, ordered=True)
            return c < 2.0

        return lax.while_loop(cond, lambda c: c * c, x, max_steps=4)

    xs = np.float32([1.5, 1.2, 3.0])
    for transform in (jax.grad, jax.jacfwd):
        said = called(lambda say, t=transform: np.testing.assert_allclose(
            jax.vmap(t(lambda x: f(say, x)))(xs), [3.0, 4 * 1.2**3, 1.0], rtol=1e-5))
        assert len(said) == 3 * 3


def test_many_ordered_callbacks():
    n = 2000
    said = called(lambda say: lax.scan(lambda c, x: (
        jax.debug.callback(say, x, ordered=True), (c, None))[1], 0, np.arange(n)))
    assert said == [(i,) for i in range(n)]
    said = called(lambda say: lax.scan(lambda c, x: (
        jax.debug.callback(say, x), (c, None))[1], 0, np.arange(n)))
    assert sorted(said) == [(i,) for i in range(n)]


def test_programs_after_one_that_failed():
    def host(x):
        raise ValueError("once")

    f = jax.jit(lambda x: io_callback(host, None, x, ordered=True))
    with pytest.raises(jax.errors.JaxRuntimeError, match="once"):
        f(X)
        jax.effects_barrier()
    assert called(lambda say: jax.jit(lambda x: io_callback(say, None, x, ordered=True))(1)) == [
        (1,)]


# -- derivatives and batches of effects ------------------------------------------------------------


TWO = [1.0, float(np.sin(np.float32(1)))]  # of two iterations of sine


@pytest.mark.parametrize(("run", "said"), [
    (lambda f: jax.grad(f)(2.0), [2.0]),
    (lambda f: jax.jit(jax.grad(f))(2.0), [2.0]),
    (lambda f: jax.jvp(f, (2.0,), (1.0,)), [2.0]),
    (lambda f: jax.linearize(f, 2.0)[1](1.0), [2.0]),
    (lambda f: jax.vjp(f, 2.0)[1](1.0), [2.0]),
    (lambda f: jax.grad(jax.grad(f))(2.0), [2.0]),
    (lambda f: jax.jit(jax.hessian(f))(2.0), [2.0]),
    (lambda f: jax.vmap(f)(np.float32([1, 2])), [1.0, 2.0]),
    (lambda f: jax.vmap(jax.grad(f))(np.float32([1, 2])), [1.0, 2.0]),
    (lambda f: jax.grad(jax.jit(f))(2.0), [2.0]),
    (lambda f: jax.grad(jax.checkpoint(f))(2.0), [2.0, 2.0]),
    (lambda f: jax.jit(jax.grad(jax.checkpoint(f)))(2.0), [2.0, 2.0]),
    (lambda f: jax.jit(jax.grad(jax.checkpoint(
        f, policy=jax.checkpoint_policies.everything_saveable)))(2.0), [2.0]),
    (lambda f: jax.grad(lambda z: lax.scan(
        lambda c, x: (f(c) * x, None), z, np.ones(2, np.float32))[0])(1.0), TWO),
    (lambda f: jax.grad(lambda z: lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, z), max_steps=4)[1])(1.0), TWO),
    (lambda f: jax.grad(lambda z: lax.cond(z > 0, f, jnp.cos, z))(2.0), [2.0]),
    (lambda f: jax.grad(lambda z: jax.checkpoint(lambda z: lax.scan(
        lambda c, x: (f(c) * x, None), z, np.ones(2, np.float32))[0])(z))(1.0), TWO * 2),
])
@pytest.mark.parametrize("ordered", [False, True])
def test_debug_callbacks_see_primals(run, said, ordered):
    def program(say):
        def f(x):
            jax.debug.callback(say, x, ordered=ordered)
            return jnp.sin(x)

        run(f)

    found = [x for (x,) in called(program)]
    np.testing.assert_allclose(sorted(found), sorted(said), rtol=1e-6)


def test_what_is_linear_has_no_value():
    def program(say):
        f = lambda x: (jax.debug.callback(say, x), x * 2)[1]  # noqa: E731
        assert jax.linear_transpose(f, 1.0)(1.0)[0] == 2
        assert jax.linear_transpose(jax.jit(f), 1.0)(1.0)[0] == 2

    assert called(program) == []


def test_keys_are_handed_over_as_data():
    key = jax.random.key(3)
    said = called(lambda say: jax.jit(lambda k: jax.debug.callback(
        lambda k: say(np.asarray(k)), k))(key))
    assert said == [(jax.random.key_data(key).tolist(),)]


# -- what would be had more often, or not at all ---------------------------------------------------


def next_number():
    counter = iter(range(100))
    return lambda: io_callback(lambda: np.float32(next(counter)),
                               jax.ShapeDtypeStruct((), np.float32))


def test_residuals_of_io_are_those_of_their_iteration():
    number = next_number()
    gradient = jax.grad(lambda w: lax.scan(
        lambda c, _: (c + w * number(), None), 0.0, None, length=4)[0])
    assert gradient(1.0) == 0 + 1 + 2 + 3


def test_io_is_refused_where_it_would_be_repeated():
    number = next_number()
    with pytest.raises(NotImplementedError, match="IO effect not supported in vmap-of-cond"):
        jax.vmap(lambda p: lax.cond(p, number, lambda: 0.0))(np.array([True, False]))
    with pytest.raises(NotImplementedError, match="with a batched predicate"):
        jax.vmap(lambda n: lax.while_loop(lambda c: c < n, lambda c: c + number(), 0.0))(X)
    with pytest.raises(NotImplementedError, match="derivative of a while_loop"):
        jax.grad(lambda w: lax.while_loop(lambda c: c < 3, lambda c: c * w + number(), 1.0,
                                          max_steps=4))(2.0)


def test_named_axes_are_read_beside_effects():
    def f(x):
        inner = jax.jit(lambda x: (jax.debug.callback(lambda x: None, x), lax.psum(1, "i") * x)[1])
        return jax.linear_transpose(inner, x)(x)[0]

    np.testing.assert_array_equal(jax.vmap(f, axis_name="i")(X), 3 * X)


def test_ordered_effects_in_what_is_decomposed():
    def run(say):
        f = lax.composite(lambda x: (jax.debug.callback(say, x, ordered=True), x)[1], "my.say")
        jax.jit(lambda x: (f(x), f(x + 1), jax.debug.callback(say, x + 2, ordered=True))[0])(1)

    assert called(run) == [(1,), (2,), (3,)]


def test_keys_are_no_results():
    with pytest.raises(TypeError, match="wrap_key_data"):
        jax.pure_callback(lambda: 0, jax.eval_shape(jax.random.key, 0))


def test_types_of_64_bits():
    with jax.enable_x64(True):
        seen = []
        out = jax.jit(lambda x: jax.pure_callback(
            lambda x: seen.append(x.dtype) or np.asarray(x) * 2, jax.ShapeDtypeStruct((), float),
            x))(1.5)
    assert float(out) == 3 and out.dtype == seen[0] == np.float64


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims"])
def test_batches_of_none(method):
    like = jax.ShapeDtypeStruct((3,), np.float32)
    f = jax.vmap(lambda x: jax.pure_callback(lambda x: np.ones((*x.shape, 3), np.float32), like, x,
                                             vmap_method=method))
    out = f(np.zeros(0, np.float32))
    assert (out.shape, out.dtype) == ((0, 3), np.float32)


def test_the_first_programs_of_several_threads_may_have_callbacks():
    code = """
import threading
import subprocess
import sys

import numpy as np
import pyjx as jax

barrier = threading.Barrier(8)
failures = []

def run(n):
    barrier.wait()
    try:
        like = jax.ShapeDtypeStruct((), np.float32)
        f = jax.jit(lambda x: jax.pure_callback(lambda x: np.float32(x + n), like, x))
        assert f(1.0) == 1 + n
    except Exception as error:
        failures.append(error)

threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_an_error_is_of_the_program_that_failed(monkeypatch):
    monkeypatch.setattr(host_calls, "_MOST_PENDING", 2)
    calls = []

    def called(x):
        if x < 0:
            raise ValueError("negative")
        calls.append(float(x))

    @jax.jit
    def f(x):
        jax.debug.callback(called, x)
        return x + 1

    try:
        f(-1.0)
    except jax.errors.JaxRuntimeError:  # the call waits for its result on some versions
        return
    for n in range(5):
        assert f(float(n)) == n + 1
    with pytest.raises(jax.errors.JaxRuntimeError, match="negative"):
        jax.effects_barrier()
    jax.effects_barrier()
    assert sorted(calls) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("call", "let_go"), [
    (jax.pure_callback, gc.collect), (jax.pure_callback, jax.clear_caches),
    (io_callback, gc.collect)])
def test_a_callback_goes_with_its_program(call, let_go):
    class Same:
        def __call__(self, x):
            return x

    def run():
        same = Same()
        jax.jit(lambda x: call(same, x, x))(jnp.ones(2)).block_until_ready()
        return weakref.ref(same)

    kept = [run() for _ in range(3)]
    let_go()
    assert [k() for k in kept] == [None] * 3


@pytest.mark.parametrize("run", [lambda f: f(X), lambda f: jax.jit(f)(X)])
def test_leaves_are_counted_whatever_holds_them(run):
    pair = run(lambda x: jax.pure_callback(lambda x: [x, x + 1], (LIKE, LIKE), x))
    assert type(pair) is tuple
    np.testing.assert_array_equal(pair, [X, X + 1])
    np.testing.assert_array_equal(run(lambda x: jax.pure_callback(lambda x: (x,), LIKE, x)), X)


@pytest.mark.parametrize("ordered", [False, True])
def test_what_an_eager_debug_callback_raises(ordered):
    with pytest.raises(ZeroDivisionError):
        jax.debug.callback(lambda x: 1 / 0, X, ordered=ordered)


def test_a_barrier_waits_for_what_another_one_waits_for(monkeypatch):
    """Even if the other one came first."""
    ready, waiting, found = threading.Event(), threading.Semaphore(0), []

    class Token:
        def block_until_ready(self):
            waiting.release()
            assert ready.wait(30)

    monkeypatch.setattr(host_calls, "_pending", deque([(Token(), True, None)]))
    threads = [threading.Thread(
        target=lambda: (jax.effects_barrier(), found.append(ready.is_set()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    both = [waiting.acquire(timeout=5) for _ in threads]
    ready.set()
    for thread in threads:
        thread.join(30)
    assert both == found == [True, True] and not host_calls._pending


def test_failures_at_the_end_of_the_process_are_all_errors():
    done = subprocess.run([sys.executable, "-c", """
import pyjx as jax
from pyjx.runtime import host_calls

class Failing:
    def __init__(self, why):
        self.why = why

    def block_until_ready(self):
        raise jax.errors.JaxRuntimeError(self.why)

for why in ("the first", "the second", "the third"):
    host_calls.add_pending(Failing(why), True, None)
"""], capture_output=True, text=True, timeout=120)
    assert not done.stdout
    assert "a program failed" in done.stderr
    for which in ("first", "second", "third"):
        assert f"the {which}" in done.stderr


@pytest.mark.parametrize("call", [jax.pure_callback, jax.experimental.io_callback])
def test_arguments_in_the_place_of_their_types_are_missed(call):
    with pytest.raises(jax.errors.JaxRuntimeError, match="they come behind result_shape_dtypes"):
        jax.block_until_ready(call(np.sin, jnp.ones(3)))
    assert call(np.sin, jnp.ones(3), jnp.ones(3)).shape == (3,)


@pytest.mark.parametrize("callback", [jax.pure_callback, jax.experimental.io_callback])
def test_a_dtype_is_no_type_of_results(callback):
    for like in (np.float32, np.dtype("f4"), jnp.float32):
        with pytest.raises(TypeError, match="result_shape_dtypes must hold values with a sha"):
            callback(np.sin, like, 1.0)
