"""What functions may ask of sizes that have names, and what they may not."""

import gc
import math
import sys
import weakref

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration as config
from pyjx import lax
from pyjx.core import tracebacks
from pyjx.errors import InconclusiveDimensionOperation
from pyjx.runtime.explain import RetraceWarning, cure_for


def ones(n):
    return np.arange(1, n + 1, dtype="f")


def halved(x):
    n = x.shape[0]
    return x.reshape(2, -1).sum(0) if n % 2 == 0 else x[:n - 1].reshape(-1, 2).sum(1)


def levels(x):
    k = 0
    while 2 ** k < x.shape[0]:
        k += 1
    return x * k


def pooled(x):
    first, *others = jnp.array_split(x, 2)
    return first[:2] + sum(o.sum() for o in others) + jnp.median(x)


@pytest.mark.parametrize(("fun", "at_most"), [
    (lambda x: x.sum() if x.shape[0] > 3 else x.max(), 4),
    (lambda x: x[:min(x.shape[0], 3)] if x.shape[0] <= 10 else x, 5),
    (halved, 8), (levels, 7), (pooled, 7),
    (lambda x: x * 2 if x.shape[0] == 5 else x, 4),
    (lambda x: x.sum() if x.shape[0] not in (2, 3) and x.shape[0] < 12 else x, 7),
])
def test_what_is_asked_is_answered_for_the_size_at_hand(fun, at_most):
    dynamic = jax.jit(fun, dynamic={"x": ("n",)})
    for n in [*range(1, 20), 3, 11]:
        np.testing.assert_allclose(dynamic(ones(n)), fun(jnp.asarray(ones(n))), rtol=1e-6)
    plans = [*dynamic._jit_spec.padded.values()]
    assert len({plan.plan.bucket for plan in plans if plan}) + plans.count(None) <= at_most


def test_which_answer_another_trace_is_of():
    @jax.jit(dynamic={"x": ("n",)})
    def fun(x):
        return x.sum() if x.shape[0] > 10 else x.max()

    for n in (20, 5, 300, 3):
        fun(ones(n))
    first, second = fun.explain().traces
    change, = second.changes
    assert (first.changes, change.kind, change.where, change.before) == (
        (), "answer", "its sizes", "n >= 11")
    line = fun.__wrapped__.__code__.co_firstlineno + 2
    assert change.after.startswith("n <= 10, asked at ") and f"py:{line} (" in change.after
    assert "by its option dynamic" not in cure_for(change)
    assert [str(use).split(":")[0] for use in fun.explain().buckets] == [
        "bucket n <= 32, n >= 11", "bucket n <= 8, n <= 10", "bucket n <= 512, n >= 11"]
    sliced = jax.jit(lambda x: x[:5].sum(), dynamic={"x": ("n",)})
    for n in (20, 3):
        sliced(ones(n))
    assert sliced.explain().traces[1].cause == "its sizes: min(n, 5) == n"


def test_what_inner_functions_and_rules_remember_was_asked_too():
    inner = jax.jit(lambda x: x * 100 if x.shape[0] == 5 else x)
    fun = jax.jit(lambda x, k: inner(x) * k, static_argnums=1, dynamic={"x": ("n",)})
    for k in (1, 2):
        for n in (4, 5, 6):
            np.testing.assert_array_equal(fun(ones(n), k), ones(n) * k * (100 if n == 5 else 1))
    n, = jax.export.symbolic_shape("n")
    first, second = [jax.jit(lambda x, k=k: inner(x) * k, dynamic={"x": (n,)}) for k in (1, 2)]
    for size in (4, 5, 6):
        np.testing.assert_array_equal(2 * first(ones(size)), second(ones(size)))


def test_two_sizes_are_compared():
    def fun(x, y):
        return x.sum() + y.sum() if x.shape[0] < y.shape[0] else x + y[:1] \
            if x.shape != y.shape else x * y

    dynamic = jax.jit(fun, dynamic={"x": ("n",), "y": ("m",)})
    for n in range(1, 8):
        for m in range(1, 8):
            np.testing.assert_allclose(dynamic(ones(n), ones(m)), jax.jit(fun)(ones(n), ones(m)))
    assert len({p.plan.bucket for p in dynamic._jit_spec.padded.values() if p}) == 3


NUMBERS_WANTED = {
    "range": lambda x: sum(x[i] for i in range(x.shape[0])),
    "len": lambda x: x / len(x),
    "rows": lambda x: sum(r for r in x),
    "zeros": lambda x: x + np.zeros(x.shape[0]),
    "arange": lambda x: x + np.arange(x.shape[0]),
    "sqrt": lambda x: x / math.sqrt(x.shape[0]),
    "np.sqrt": lambda x: x / np.sqrt(x.shape[0]),
    "float": lambda x: x / float(x.shape[0]),
    "int": lambda x: x / int(x.shape[0]),
    "quotient": lambda x: jnp.zeros(int(x.shape[0] / 2)),
    "list": lambda x: x * [1, 2, 3, 4, 5, 6, 7][x.shape[0]],
    "repeated": lambda x: x + jnp.array([1.0] * x.shape[0]),
    "bits": lambda x: x * x.shape[0].bit_length(),
    "derivative": lambda x: jax.grad(lambda x: lax.reduce(x, 1.0, lambda a, b: a * b + 0, (0,)))(x),
    "lookup": lambda x: x * {6: 2}.get(x.shape[0], 1),
}


@pytest.mark.parametrize("name", NUMBERS_WANTED)
def test_where_a_number_is_wanted_the_error_says_where_and_what_to_do(name):
    fun = NUMBERS_WANTED[name]
    dynamic = jax.jit(fun, dynamic={"x": ("n",)})
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        dynamic(ones(6))
    text = str(caught.value)
    line = fun.__code__.co_firstlineno
    for words in ("sizes n (6 here)", f"test_questions.py:{line}", "jax.numpy", "lax.fori_loop"):
        assert words in text
    assert "symbolic_shape" not in text and "DimExpr" not in text
    plain = jax.jit(fun)
    with config.dynamic_shapes("auto"):
        plain(ones(5))
        plain(ones(6))
        with pytest.warns(RetraceWarning, match=f"cannot run padded.*test_questions.py:{line}"):
            plain(ones(4))
        np.testing.assert_allclose(plain(ones(6)), jax.jit(fun)(ones(6)))
        assert not plain.explain().buckets


def test_what_is_wrong_at_these_sizes_is_said_of_these():
    dynamic = jax.jit(lambda x: x.reshape(-1, 2), dynamic={"x": ("n",)})
    assert dynamic(ones(6)).shape == (3, 2)
    with pytest.raises(TypeError, match=r"\(5,\)"):
        dynamic(ones(5))
    assert dynamic(ones(8)).shape == (4, 2)


def test_a_text_of_a_size_is_no_number_where_nobody_named_it():
    fun = jax.jit(lambda x: x * (2 if f"{x.shape[0]}" == "6" else 1))
    with config.dynamic_shapes("auto"):
        fun(ones(4))
        fun(ones(5))
        with pytest.warns(RetraceWarning, match="'d0'.* is asked for its text"):
            fun(ones(3))
        np.testing.assert_array_equal(fun(ones(6)), 2 * ones(6))


def test_a_function_that_asks_too_much_is_refused():
    def fun(x):
        return x * sum(x.shape[0] > k for k in range(40))

    with pytest.raises(InconclusiveDimensionOperation, match="asks more than 16 questions of its "
                       r"sizes n \(30 here\): at .*test_questions.py.* compare them less often"):
        jax.jit(fun, dynamic={"x": ("n",)})(ones(30))


def test_questions_keep_nothing_of_a_trace():
    kept = []

    class Values(list):
        pass

    def fun(x):
        values = Values([x])
        kept.append(weakref.ref(values))
        try:
            return {}["scale"]
        except KeyError:
            return x * 2 if x.shape[0] > 3 else x

    dynamic = jax.jit(fun, dynamic={"x": ("n",)})
    for n in (5, 2):
        dynamic(ones(n))
    gc.collect()
    assert len(kept) == 3 and not any(values() for values in kept)


def test_what_is_collected_asks_nothing(monkeypatch):
    """A table of the library's whose key is a size may lose its value while a function runs."""
    raised = []
    monkeypatch.setattr(sys, "unraisablehook", lambda caught: raised.append(caught.exc_value))
    scope, table = {}, weakref.WeakValueDictionary()
    exec(compile("def put(key, value): table[key] = value", tracebacks.__file__, "exec"),
         {"table": table}, scope)

    def f(x):
        scope["put"](x.shape[0], Kept())
        return x * 2

    class Kept:
        pass

    assert jax.jit(f, dynamic={"x": ("n",)})(jnp.ones(5)).shape == (5,)
    assert not raised and not table
