"""Interpreters: which one an operation goes to, recording, evaluation of jaxprs."""

import copy
import gc
import threading

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import errors
from pyjx.core.avals import ShapedArray
from pyjx.core.check import check_jaxpr
from pyjx.core.evaluation import eval_jaxpr, jaxpr_as_fun
from pyjx.core.primitive import Primitive
from pyjx.core.trace import (
    EagerTrace,
    collector_paused,
    concrete_or_error,
    eager_trace,
    is_concrete,
    state,
    trace_to_jaxpr,
)

pytestmark = pytest.mark.smoke

F32 = ShapedArray((3,), np.float32)
x = np.arange(3, dtype=np.float32)


def test_recording():
    closed = trace_to_jaxpr(lambda a, b: [jnp.sin(a) * b, 2.0, x], [F32, F32])
    check_jaxpr(closed)
    assert [e.primitive.name for e in closed.eqns] == ["sin", "mul"]
    assert closed.consts[0] is x
    out = jaxpr_as_fun(closed)(x, x)
    np.testing.assert_allclose(out[0], np.sin(x) * x, rtol=1e-6)
    assert out[1] == 2.0


def test_constants_are_shared_by_identity():
    y = x.copy()
    closed = trace_to_jaxpr(lambda a: [a * x + x, a * y], [F32])
    assert len(closed.consts) == 2


def test_operations_on_plain_values_are_recorded_too():
    closed = trace_to_jaxpr(lambda: [jnp.sin(x) + jnp.cos(2.0)], [])
    assert {e.primitive.name for e in closed.eqns} >= {"sin", "cos", "add"}


def test_evaluation():
    closed = trace_to_jaxpr(lambda a: [jnp.sin(a), a], [F32])
    assert isinstance(eval_jaxpr(closed.jaxpr, closed.consts, x)[0], jax.Array)
    with pytest.raises(TypeError, match="expected 1 argument, got 2"):
        eval_jaxpr(closed.jaxpr, closed.consts, x, x)
    again = trace_to_jaxpr(jaxpr_as_fun(closed), [F32])
    assert str(again) == str(closed)
    tangent = jax.jvp(lambda a: eval_jaxpr(closed.jaxpr, [], a)[0], (x,), (np.ones(3, "f4"),))[1]
    np.testing.assert_allclose(tangent, np.cos(x), rtol=1e-6)


def test_state_is_restored_after_an_error():
    for transform in (jax.jit, jax.grad, jax.vmap, jax.make_jaxpr):
        with pytest.raises(ZeroDivisionError):
            transform(lambda a: 1 / 0)(x if transform is jax.vmap else 1.0)
        assert state.dynamic is eager_trace
        assert state.level == 0


def test_concrete_values_flow_through_derivatives():
    seen = []

    def f(a):
        seen.append(int(a))
        while a < 100:
            a = a * a
        return a

    assert float(jax.grad(f)(2.0)) == 1024  # of x^8
    assert seen == [2]
    with pytest.raises(errors.ConcretizationTypeError):
        jax.jit(jax.grad(f))(2.0)


def test_concreteness():
    assert is_concrete(1.0)
    assert concrete_or_error(int, 3.0) == 3
    jax.grad(lambda a: (is_concrete(a) or 1 / 0, a)[1])(1.0)

    def f(a):
        assert not is_concrete(a)
        with pytest.raises(errors.ConcretizationTypeError, match="for the test"):
            concrete_or_error(int, a, "for the test")
        return a

    jax.jit(f)(1.0)


@pytest.mark.parametrize(("use", "error"), [
    (bool, errors.TracerBoolConversionError),
    (int, errors.ConcretizationTypeError),
    (float, errors.ConcretizationTypeError),
    (complex, errors.ConcretizationTypeError),
    (lambda a: [1, 2][a], errors.TracerIntegerConversionError),
    (range, errors.TracerIntegerConversionError),
    (np.asarray, errors.TracerArrayConversionError),
    (np.sin, errors.TracerArrayConversionError),
    (lambda a: a.tolist(), errors.ConcretizationTypeError),
    (hash, TypeError),
    (len, TypeError),
])
def test_uses_that_need_a_value(use, error):
    def f(a):
        with pytest.raises(error):
            use(a)
        return a

    jax.jit(f)(1)


def test_truth_of_arrays():
    def f(a):
        with pytest.raises(ValueError, match="more than one element"):
            bool(a)
        with pytest.raises(ValueError, match="empty array"):
            bool(a[:0])
        return a

    jax.jit(f)(x)


def test_texts_of_tracers():
    seen = []
    jax.jit(lambda a: (seen.append(repr(a)), a)[1])(x)
    jax.jit(lambda a: (seen.append(f"{a}"), a)[1])(1)
    jax.vmap(lambda a: (seen.append(repr(a)), a)[1])(x)
    jax.grad(lambda a: (seen.append(repr(a)), a)[1])(1.0)
    jax.jvp(lambda a: (seen.append(repr(a)), a)[1], (1.0,), (2.0,))
    assert seen == [
        "JitTracer(float32[3])", "JitTracer(~int32[])",
        "VmapTracer(aval=float32[], batched=float32[3])",
        "GradTracer(primal=1.0, typeof(tangent)=f32[])", "JVPTracer(primal=1.0, tangent=2.0)",
    ]


def test_names_of_tracers_and_their_traces():
    seen = []

    def look(a):
        seen.append((type(a).__name__, repr(a._trace)))
        return a * 2.0

    jax.jit(look)(1.0)
    jax.vmap(look)(x)
    jax.grad(look)(1.0)
    jax.vjp(look, 1.0)
    jax.jvp(look, (1.0,), (2.0,))
    jax.linear_transpose(look, 1.0)(1.0)
    assert seen == [
        ("DynamicJaxprTracer", "DynamicJaxprTrace"), ("BatchTracer", "BatchTrace"),
        ("LinearizeTracer", "LinearizeTrace"), ("LinearizeTracer", "LinearizeTrace"),
        ("JVPTracer", "JVPTrace"), ("LinearTracer", "LinearTrace"),
    ]
    outer = []
    jax.grad(lambda a: jax.jvp(lambda b: (outer.append(type(b.primal).__name__), b)[1], (a,), (a,))
             [1])(1.0)
    assert outer == ["LinearizeTracer"]


def test_tracers_are_arrays():
    def f(a):
        assert isinstance(a, jax.Array)
        assert isinstance(a, jax.core.Tracer)
        assert copy.copy(a) is copy.deepcopy(a) is a
        assert (a.shape, a.ndim, a.size, a.dtype, len(a)) == ((3,), 1, 3, np.float32, 3)
        return a

    jax.jit(f)(x)
    jax.vmap(f)(np.ones((2, 3), np.float32))


@pytest.mark.parametrize("transform", [
    jax.grad, lambda f: lambda a: jax.vmap(f)(jnp.full(2, a)),
    lambda f: lambda a: jax.jvp(f, (a,), (a,)),
])
def test_leaks_out_of_other_transformations(transform):
    store = []
    transform(lambda a: (store.append(a * 2), a)[1])(1.0)
    for use in (lambda leaked: leaked + 1, jax.jit(lambda: store[0] + 1) and
                (lambda leaked: jax.jit(lambda b: b + leaked)(1.0)),
                lambda leaked: jax.grad(lambda b: b * leaked)(1.0)):
        with pytest.raises(errors.UnexpectedTracerError, match="Encountered an unexpected tracer"):
            use(store[0])


def test_tracer_of_an_inner_transformation_leaks_into_the_outer_one():
    store = []

    def f(a):
        jax.grad(lambda b: (store.append(b), b * a)[1])(1.0)
        return a * store[0]

    for transform in (jax.jit, jax.grad):
        with pytest.raises(errors.UnexpectedTracerError):
            transform(f)(1.0)


@pytest.mark.parametrize("inner", [
    jax.grad, lambda f: jax.vmap(f, axis_size=2), lambda f: lambda x: jax.jvp(f, (x,), (x,))])
@pytest.mark.parametrize("use", [lambda h: h * 2, lambda h: 1 if h else 2])
def test_a_leak_within_a_traced_function_asks_for_no_value(inner, use):
    def f(x):
        kept = []
        inner(lambda y: (kept.append(y * 2), y)[1])(x)
        return use(kept[0])

    with pytest.raises(Exception, match="The value came from the operation `mul` at ") as raised:
        jax.jit(f)(1.0) if inner is jax.grad else jax.jit(f)(jnp.ones(2))
    text = str(raised.value)
    assert "concrete value" not in text and text.count("The value was made in the function") == 1


@pytest.mark.parametrize("transform", [
    jax.jit, jax.grad, lambda f: lambda a: jax.vmap(f)(jnp.full(2, a)),
    lambda f: lambda a: jax.jvp(f, (a,), (a,)),
])
@pytest.mark.parametrize("use", [
    lambda a: a + 1, lambda a: jax.jit(lambda b: b + a)(1.0),
    lambda a: jax.grad(lambda b: b * a)(1.0),
])
def test_tracers_stay_in_their_thread(transform, use):
    raised = []

    def in_thread(a):
        try:
            use(a)
        except Exception as error:
            raised.append(error)

    def f(a):
        thread = threading.Thread(target=in_thread, args=(a,))
        thread.start()
        thread.join()
        return a

    transform(f)(1.0)
    (error,) = raised
    assert isinstance(error, errors.UnexpectedTracerError)


def test_threads_do_not_see_each_others_traces():
    inside, go_on = threading.Event(), threading.Event()

    def f(a):
        inside.set()
        go_on.wait(30)
        return a * 2

    thread = threading.Thread(target=lambda: jax.jit(f)(1.0))
    thread.start()
    inside.wait(30)
    eager = jnp.sin(x) * 2
    go_on.set()
    thread.join(30)
    assert not isinstance(eager, jax.core.Tracer)


def test_tracers_take_no_format():
    cure = r"Print it as the program runs by jax.debug.print\('{x:.2f}', x=x\)"
    with pytest.raises(TypeError, match=f"unsupported format string.* the type float32.* {cure}"):
        jax.jit(lambda x: f"{x:.2f}")(1.0)
    jax.jit(lambda x: print(f"{x}") or x)(1.0)


def test_operations_on_values_without_a_runtime():
    sin_p = jax.lax.sin_p
    with pytest.raises(RuntimeError, match="'sin' runs on values once"):
        EagerTrace().process(sin_p, (x,), {})


def test_tracers_of_shallower_traces_of_another_thread_are_refused():
    raised = []

    def in_thread(a):
        def use(b):
            try:
                return a * b
            except errors.UnexpectedTracerError as error:
                raised.append(error)
                return b

        jax.vmap(jax.vmap(use))(jnp.ones((2, 3)))
        jax.make_jaxpr(jax.grad(use))(1.0)

    def f(a):
        thread = threading.Thread(target=in_thread, args=(a,))
        thread.start()
        thread.join()
        return a

    jax.jit(f)(1.0)
    jax.vmap(f)(jnp.ones(2))
    assert len(raised) == 4


def test_values_go_after_their_last_use():
    live = []
    probe_p = Primitive("probe", shape_rule=lambda x: x)

    def probe(x):
        live.append(sum(a.shape == (12345,) for a in jax.live_arrays()))
        return x

    probe_p.define(impl=probe)

    def f(x):
        for _ in range(20):
            x = jnp.sin(x)
        return probe_p.bind(x)

    closed = jax.make_jaxpr(f)(jnp.zeros(12345))
    eval_jaxpr(closed.jaxpr, closed.consts, jnp.zeros(12345))
    assert live[-1] <= 4


def test_last_uses_are_found_once():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) * jnp.cos(x))(1.0)
    found = closed.jaxpr.last_uses()
    assert list(map(len, found)) == [0, 1, 2]
    eval_jaxpr(closed.jaxpr, closed.consts, jnp.ones(2))
    assert closed.jaxpr.last_uses() is found


def test_values_that_leaked_name_the_function_and_the_line():
    leaked = []

    def body(x):
        leaked.extend([x, x + 1])
        return leaked[1]

    line = body.__code__.co_firstlineno
    for run, kind in ((lambda: jax.jit(body)(1.0), "jit"),
                      (lambda: jax.lax.while_loop(lambda x: x < 3, body, 1.0), "while_loop"),
                      (lambda: jax.lax.scan(lambda x, _: (body(x), x), 1.0, length=2), "scan")):
        leaked.clear()
        run()
        made = (f"created on line {__file__}:{line + 1}:.* by the operation `add`.(.|\n)*"
                "nor hand it to another thread. Where it leaks from jit, vmap or grad, jax")
        with pytest.raises(errors.UnexpectedTracerError, match=made) as caught:
            jnp.sin(leaked[1])
        assert "The function being traced when the value leaked was " in str(caught.value)
        assert f" traced for {kind}." in str(caught.value)
        with pytest.raises(errors.UnexpectedTracerError, match=f"traced for {kind}") as caught:
            leaked[0] + 1
        assert "by the operation" not in str(caught.value)


@pytest.mark.parametrize("use", [
    float, int, bool, complex, "{:.3f}".format, np.asarray, lambda x: np.mean([x]),
    lambda x: x.item(), "%.3f".__mod__, lambda x: x.tolist()])
def test_values_that_leaked_are_told_so_where_python_needs_them(use):
    leaked = []
    jax.jit(lambda x: leaked.append(x.sum()))(np.ones(3, np.float32))
    with pytest.raises(errors.JAXTypeError, match=r"^Encountered an unexpected tracer") as caught:
        use(leaked[0])
    assert "traced for jit.\nThe leaked intermediate value was created on line" in str(caught.value)
    assert "static" not in str(caught.value).partition("\nMore: ")[0]


def test_formats_by_percent_of_traced_values_have_a_cure():
    with pytest.raises(TypeError, match=r"^%d format: .* by jax\.debug\.print\('\{x\}', x=x\)"):
        jax.jit(lambda x: "%d".__mod__(x))(1.0)


@pytest.mark.parametrize("transform", [jax.jacfwd, jax.hessian])
def test_argnums_that_are_out_of_range_name_the_function(transform):
    def loss(x):
        return x

    with pytest.raises(ValueError, match=f"^argnums of loss at .*{__file__}:.* got value 2 for"):
        transform(loss, argnums=2)(1.0)


def test_values_of_no_argument_name_the_lines_that_trace_them():
    def f():
        return [1][jnp.add(jnp.zeros(2), 1)[0].astype(int) + jnp.ones((), int)]

    with pytest.raises(errors.TracerIntegerConversionError, match="on these lines") as caught:
        jax.jit(f)()
    line = f.__code__.co_firstlineno + 1
    lines = [text for text in str(caught.value).splitlines() if text.startswith("  `")]
    assert lines and all(f"{__file__}:{line}:" in text for text in lines)


class Store:
    kept = None


STORE = Store()


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad], ids=["jit", "vmap", "grad"])
def test_leaks_are_followed_to_a_variable(transform):
    def keep(x):
        STORE.kept = {"here": [lambda: x]}
        return x

    with pytest.raises(Exception, match="Leaked") as caught, jax.checking_leaks():
        transform(keep)(jnp.arange(3.0) if transform is jax.vmap else 1.0)
    text = str(caught.value)
    STORE.kept = None
    for words in ("which closes over the variable x", "['here']", ".kept", f"{__name__}.STORE"):
        assert f"is referred to by {words}" in text or words in text
    lines = [line for line in text.splitlines() if "is referred to by" in line]
    assert [line.split(" is referred")[0].split()[0] for line in lines[2:]] == [
        "<list", "<dict", "<Store"] or len(lines) == 5


def test_a_leak_that_many_hold_is_followed_to_a_variable():
    def keep(x):
        STORE.kept = [x], [[x] for _ in range(40)]
        return x

    with pytest.raises(Exception, match="Leaked") as caught, jax.checking_leaks():
        jax.jit(keep)(1.0)
    STORE.kept = None
    assert f"is referred to by {__name__}.STORE" in str(caught.value)


def collections():
    """How often the collector ran while much was made."""
    runs = []
    gc.callbacks.append(lambda phase, info: runs.append(phase))
    try:
        made = [[] for _ in range(10_000)]
        del made
    finally:
        gc.callbacks.pop()
    return len(runs)


def test_the_collector_waits_until_nobody_traces():
    """Threads begin and end in any order."""
    assert collections()
    first, second = collector_paused(), collector_paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not collections()
    second.__exit__(None, None, None)
    assert collections()


def test_what_the_user_says_of_the_collector_while_tracing_stays():
    try:
        jax.make_jaxpr(lambda x: (gc.disable(), x + 1)[1])(1.0)
        assert not gc.isenabled()
        jax.make_jaxpr(lambda x: (gc.enable(), x + 1)[1])(1.0)
        assert gc.isenabled() and collections()
    finally:
        gc.enable()
