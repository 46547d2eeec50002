"""`f.explain()` and `pyjx.explain()`: each trace with its cause, its place and its cost."""

import dataclasses
import functools
import gc
import logging
import sys
import threading
import time
import warnings
import weakref
from collections import namedtuple

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.runtime import ledger
from pyjx.runtime.explain import changes_of
from pyjx.runtime.jit import _traces
from pyjx.tree_util import register_pytree_node_class

Pair = namedtuple("Pair", "left right")


@pytest.fixture(autouse=True)
def empty_ledger():
    ledger.clear()


def causes(f):
    """The causes of all traces but the first."""
    return [t.cause for t in f.explain().traces[1:]]


def one(x, y=None, *, scale=1):
    return jnp.sum(jnp.asarray(jax.tree.leaves(x)[0])) * scale


def retrace(*calls, **options):
    """What explains the calls, each a tuple of positional arguments or a dict of keywords."""
    f = jax.jit(functools.wraps(one)(lambda *args, **kwargs: one(*args, **kwargs)), **options)
    for call in calls:
        f(**call) if isinstance(call, dict) else f(*call)
    return causes(f)


X = np.ones((8, 128), np.float32)
BY_KEYWORD = "x: by position -> by keyword; y: by position -> by keyword"

SIGNATURES = {
    "shape": ([(X,), (X[:7],)], {}, ["x: f32[8,128] -> f32[7,128]"]),
    "rank": ([(X,), (X[0],)], {}, ["x: f32[8,128] -> f32[128]"]),
    "dtype": ([(X,), (X.astype(np.int32),)], {}, ["x: f32[8,128] -> i32[8,128]"]),
    "weak type, and a number beside an array": (
        [(np.float32(1),), (1.0,)], {}, ["x: f32[] -> weak f32[]"]),
    "int and float": ([(1,), (1.5,)], {}, ["x: weak i32[] -> weak f32[]"]),
    "bool and int": ([(True,), (1,)], {}, ["x: bool[] -> weak i32[]"]),
    "the path within a tree": (
        [({"x": X, "z": [X]},), ({"x": X, "z": [X[:1]]},)], {},
        ["x['z'][0]: f32[8,128] -> f32[1,128]"]),
    "several leaves": ([(X, X), (X[:1], X[:2])], {}, [
        "x: f32[8,128] -> f32[1,128]; y: f32[8,128] -> f32[2,128]"]),
    "dict key added": ([({"a": X},), ({"a": X, "b": X},)], {}, ["x['b']: new key"]),
    "dict key gone": ([({"a": X, "b": X},), ({"a": X},)], {}, ["x['b']: key gone"]),
    "dict key renamed": ([({"a": X},), ({"b": X},)], {}, [
        "x['b']: not given -> f32[8,128]; x['a']: f32[8,128] -> not given"]),
    "keys with brackets": ([({"a": {"b]c": X, "b": X}},), ({"a": {"b]d": X, "b": X}},)], {}, [
        "x['a']['b]d']: not given -> f32[8,128]; x['a']['b]c']: f32[8,128] -> not given"]),
    "a key with brackets added": ([({"a": X},), ({"a": X, "b]['c": [X]},)], {}, [
        "x[\"b]['c\"]: new key"]),
    "a key that looks like a path": (
        [({"a": {"b": X}, "a']['b": X},), ({"a": {"b": X}, "a']['b": X[0]},)], {},
        ["x[\"a']['b\"]: f32[8,128] -> f32[128]"]),
    "None and an array": ([(X, None), (X, X)], {}, ["y: None -> f32[8,128]"]),
    "an array and None": ([(X, X), (X, None)], {}, ["y: f32[8,128] -> None"]),
    "left out": ([(X, X), (X,)], {}, ["y: f32[8,128] -> not given"]),
    "list and tuple": ([([X],), ((X,),)], {}, ["x: list of 1 -> tuple of 1"]),
    "longer list": ([([X],), ([X, X],)], {}, ["x: list of 1 -> list of 2"]),
    "array and list": ([(X,), ([X],)], {}, ["x: f32[8,128] -> list of 1"]),
    "named tuple": ([(Pair(X, X),), ((X, X),)], {}, ["x: Pair -> tuple of 2"]),
    "field of a named tuple": ([(Pair(X, X),), (Pair(X, X[0]),)], {}, [
        "x.right: f32[8,128] -> f32[128]"]),
    "keyword": ([(X, X), {"x": X, "y": X}], {}, [BY_KEYWORD]),
    "keyword-only": ([{"x": X}, {"x": X, "scale": 2}], {}, ["scale: not given -> weak i32[]"]),
    "static value": ([{"x": X, "scale": 2}, {"x": X, "scale": 3}],
                     {"static_argnames": "scale"}, ["scale: 2 -> 3"]),
    "static value by position": ([(X, "a"), (X, "b")], {"static_argnums": 1}, ["y: 'a' -> 'b'"]),
    "static type": ([{"x": X, "scale": 1}, {"x": X, "scale": 1.0}, {"x": X, "scale": True}],
                    {"static_argnames": "scale"}, ["scale: 1 -> 1.0", "scale: 1.0 -> True"]),
    "static left out": ([{"x": X, "scale": 1}, {"x": X}],
                        {"static_argnames": "scale"}, ["scale: 1 -> 1 by default"]),
    "static by keyword": ([(X, 1), {"x": X, "y": 1}], {"static_argnames": "y"}, [BY_KEYWORD]),
    "the nearest of several": (
        [({"a": X, "b": X}, 1), ({"a": X[0], "b": X[0]}, 2.0), ({"a": X, "b": X}, 2.0)], {},
        ["x['a']: f32[8,128] -> f32[128]; x['b']: f32[8,128] -> f32[128]; "
         "y: weak i32[] -> weak f32[]", "y: weak i32[] -> weak f32[]"]),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    calls, options, expected = SIGNATURES[name]
    found = retrace(*calls, **options)
    if name == "static type":
        assert found[0] in expected[0] and found[1].startswith("scale: ")
    else:
        assert found == expected


class Opaque:
    """Equal to itself alone."""


@dataclasses.dataclass(frozen=True)
class Config:
    width: int
    name: str = "net"


def test_static_objects():
    f = jax.jit(lambda x, config: x * 2, static_argnames="config")
    for config in (Opaque(), Opaque(), Config(3), Config(4), Config(4)):
        f(1.0, config)
    found = causes(f)
    assert found[0] == "config: <Opaque> -> another Opaque that does not equal it"
    assert found[2] == "config: Config(width=3, name='net') -> Config(width=4, name='net')"
    assert len(found) == 3
    assert "__eq__" in jax_cure(f, 1)


def jax_cure(f, index):
    from pyjx.runtime.explain import cure_for

    return cure_for(f.explain().traces[index].changes[0])


def test_static_objects_are_not_shown_by_code_of_theirs():
    class Loud:
        def __repr__(self):
            raise AssertionError("called")

    jax.jit(lambda x, loud: x, static_argnums=1)(1.0, Loud())


class Proxy:
    """Fails when it is asked for what it stands for."""

    __slots__ = ()

    @property
    def __class__(self):
        raise RuntimeError("there is nothing behind it")

    def __getattr__(self, name):
        raise RuntimeError("there is nothing behind it")

    def __hash__(self):
        return 1


def test_proxies_are_not_asked_what_they_stand_for():
    proxy = Proxy()
    f = jax.jit(lambda x, p: x if p is proxy else -x, static_argnums=1)
    assert f(2.0, proxy) == 2.0
    assert f.explain().traces[0].arguments[1] == "p = <Proxy>"


def test_nodes_of_the_user():
    @register_pytree_node_class
    class Tagged:
        def __init__(self, value, tag):
            self.value, self.tag = value, tag

        def tree_flatten(self):
            return (self.value,), self.tag

        @classmethod
        def tree_unflatten(cls, tag, children):
            return cls(*children, tag)

    f = jax.jit(lambda t: t.value)
    for tagged in (Tagged(1.0, "a"), Tagged(1.0, "b"), Tagged(jnp.ones(2), "b")):
        f(tagged)
    name = Tagged.__qualname__
    assert causes(f) == [f"t: {name} ('a') -> {name} ('b')",
                         "t[0]: weak f32[] -> f32[2]"]


# -- functions -------------------------------------------------------------------------------------


def test_a_function_made_in_a_loop():
    for i in range(3):
        f = jax.jit(lambda x: x + 1)
        f(float(i))
    assert causes(f) == ["a function made anew by the same code"] * 2
    assert f.explain().n_traces == 3


def test_a_jit_of_one_function_in_a_loop_is_traced_once():
    def double(x):
        return 2 * x

    for _ in range(3):
        f = jax.jit(double)
        f(1.0)
    assert f.explain().n_traces == 1


def test_a_changed_closure():
    def make(n):
        return jax.jit(lambda x: x * n)

    for n in (2, 3):
        f = make(n)
        f(1.0)
    assert causes(f) == ["a function made anew by the same code, with n: 2 -> 3"]


def test_a_changed_default():
    for n in (2, 3):
        def f(x, n=n):
            return x * n

        f = jax.jit(f)
        f(1.0)
    assert causes(f) == ["a function made anew by the same code, with n: 2 -> 3"]


def test_a_partial_made_anew():
    for scale in (2.0, 2.0, 3.0):
        f = jax.jit(functools.partial(one, scale=scale))
        f(1.0)
    assert causes(f) == ["a functools.partial made anew",
                         "a functools.partial made anew, with scale: 2.0 -> 3.0"]
    assert f.explain().traces[2].arguments == ("x: weak f32[]",)


def test_the_method_of_a_new_object():
    class Model:
        def apply(self, x):
            return x * 2

    for _ in range(2):
        f = jax.jit(Model().apply)
        f(1.0)
    assert causes(f) == ["a method of another object"]
    assert f.explain().traces[0].arguments == ("x: weak f32[]",)


def test_another_callable_object():
    class Callable:
        def __call__(self, x):
            return x * 2

    for _ in range(2):
        f = jax.jit(Callable())
        f(1.0)
    assert causes(f) == ["another callable object"]


def test_a_transformation_made_anew():
    def square(x):
        return x * x

    for _ in range(2):
        f = jax.jit(jax.grad(square))
        f(1.0)
    assert causes(f) == ["a transformed function made anew"]
    assert f.explain().traces[0].arguments == ("x: weak f32[]",)


def test_other_options_of_checkpoint():
    def f(x, n, m):
        return x * n * m

    jax.checkpoint(f, static_argnums=1)(1.0, 2, 3)
    jax.checkpoint(f, static_argnums=2)(1.0, 2, 3)
    (first, second), = [h.entries for h in ledger.histories() if h.name == "f"]
    changes = changes_of(second, [first])
    assert "jit(..., static_argnums): (1,) -> (2,)" in map(str, changes)


def test_other_options():
    def square(x):
        return x * x

    jax.jit(square)(1.0)
    f = jax.jit(square, donate_argnums=0)
    f(jnp.ones(3) * 1)
    assert causes(f)[0].startswith("jit(..., donate_argnums): () -> (0,)")
    f = jax.jit(square, keep_unused=True)
    f(1.0)
    assert causes(f)[-1] == "jit(..., keep_unused): False -> True"


# -- what is around --------------------------------------------------------------------------------


@pytest.mark.parametrize(("flag", "value", "text"), [
    ("default_matmul_precision", "highest", "jax_default_matmul_precision: default -> 'highest'"),
    ("debug_nans", True, "jax_debug_nans: default -> True"),
    ("numpy_rank_promotion", "warn", "jax_numpy_rank_promotion: default -> 'warn'"),
    ("enable_x64", True, "jax_enable_x64: default -> True"),
])
def test_a_changed_flag(flag, value, text):
    f = jax.jit(lambda x: x * 2)
    x = jnp.ones(3)
    f(x)
    with getattr(jax, flag)(value):
        f(x)
    f(x)
    assert causes(f) == [text]


def test_the_default_device_is_a_flag():
    f = jax.jit(lambda x: x * 2)
    f(1.0)
    with jax.default_device(jax.devices()[0]):
        f(1.0)
    assert causes(f)[0].startswith("jax_default_device: default -> ")


def test_a_user_context():
    context = jax.make_user_context(0)
    f = jax.jit(lambda x: x + context.value)
    f(1.0)
    with context(1):
        f(1.0)
    assert causes(f) == ["user_context: default -> 1"]


def test_clear_caches_and_clear_cache():
    f = jax.jit(lambda x: x * 2)
    f(1.0)
    f.clear_cache()
    f(1.0)
    jax.clear_caches()
    f(1.0)
    assert causes(f) == ["the traces had been cleared (clear_caches, clear_cache)"] * 2


def test_a_trace_that_was_dropped():
    f = jax.jit(lambda x: x * 2)
    f(1.0)
    f._jit_spec.traces.capacity = 1
    f(1)
    f._clear_cache()  # what C++ knows
    f(1.0)
    assert causes(f)[1] == "the trace had been dropped: only so many signatures are kept"


def test_nested_functions_say_within_what():
    @jax.jit
    def inner(x):
        return x * 2

    @jax.jit
    def outer(x):
        return inner(x) + inner(x[:2]).sum()

    outer(jnp.ones(3))
    first, second = inner.explain().traces
    assert first.within == second.within == "outer" and second.cause == "x: f32[3] -> f32[2]"
    assert outer.explain().traces[0].within == ""
    assert not first.programs and len(outer.explain().traces[0].programs) == 1


def test_a_function_that_closes_over_a_traced_value():
    found = []

    @jax.jit
    def outer(x):
        inner = jax.jit(lambda y: x * y)
        found.append(inner)
        return inner(1.0)

    outer(1.0)
    outer(jnp.ones(3))
    assert causes(found[-1])[0].startswith("a function made anew by the same code, with x: ")


def test_derivatives_and_batches_do_not_trace_again():
    f = jax.jit(lambda x: jnp.sin(x) * x)
    f(1.0)
    jax.grad(f)(1.0)
    jax.vmap(f)(np.ones(3, np.float32))
    assert causes(f) == ["x: weak f32[] -> f32[]"]
    assert [p.derived for p in f.explain().traces[0].programs] == [False, True, True]
    assert "2 programs of derivatives, batches or buckets of it" in str(f.explain())


def test_programs_with_references_and_captured_arrays_are_the_function_s_own():
    ref, other, captured = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.zeros(3)), jnp.arange(3.0)

    def takes(r, x):
        r[...] += x * captured

    def closes_over(x):
        ref[...] += x * captured

    def makes(x):
        own = jax.new_ref(x)
        own[0] = 1.0
        return own[...]

    def calls(x):
        jax.debug.callback(lambda x: None, x, ordered=True)
        return x + captured

    functions = [jax.jit(f) for f in (takes, closes_over, makes, calls)]
    x = jnp.ones(3)
    for f, args in zip(functions, [(other, x), (x,), (x,), (x,)], strict=True):
        for _ in range(2):
            f(*args)
        assert [p.derived for p in f.explain().traces[0].programs] == [False]
    jax.vmap(functions[2])(jnp.ones((2, 3)))
    assert [p.derived for p in functions[2].explain().traces[0].programs] == [False, True]


def test_named_axes():
    f = jax.jit(lambda x: x * 2)
    x = np.ones((3, 2), np.float32)
    jax.vmap(f, axis_name="i")(x)
    jax.vmap(f, axis_name="j")(x)
    assert causes(f) == ["named axes: 'i': 3 -> 'j': 3"]


def test_devices_compile_again_and_do_not_trace(run_python):
    printed = run_python("""
import pyjx as jax, pyjx.numpy as jnp
jax.config.update("jax_num_cpu_devices", 2)
f = jax.jit(lambda x: x * 2)
x = jnp.ones(3)
f(x)
f(jax.device_put(x, jax.devices()[0]))  # committed: the same program
f(jax.device_put(x, jax.devices()[1]))
print(f.explain().n_traces, [p.device for p in f.explain().traces[0].programs])
print(f.explain())
""")
    assert printed.startswith("1 ['cpu:0', 'cpu:1']\n")
    assert "compiled again, not traced: device cpu:0 -> cpu:1" in printed


def test_a_dropped_program_is_compiled_again():
    f = jax.jit(lambda x: x * 2)
    f(1.0)
    with_limit = jax.config.jax_pyjx_programs_max_bytes
    jax.config.update("jax_pyjx_programs_max_bytes", 0)
    try:
        jax.jit(lambda x: x * 3)(1.0)
    finally:
        jax.config.update("jax_pyjx_programs_max_bytes", with_limit)
    f(1.0)
    assert f.explain().n_traces == 1
    assert "compiled again, not traced: its program had been dropped" in str(f.explain())


# -- what a record says ----------------------------------------------------------------------------


def test_places_times_and_the_disk_cache():
    def step(batch):
        return batch["x"] * 2

    f = jax.jit(step)
    f({"x": X})
    f.clear_cache()
    f({"x": X})
    e = f.explain()
    code = step.__code__
    assert e.place == f"{code.co_filename}:{code.co_firstlineno}" and e.function == "step"
    assert [t.caller for t in e.traces] == [
        f"{code.co_filename}:{code.co_firstlineno + n}" for n in (4, 6)]
    assert [t.cache for t in e.traces] == ["compiled", "disk"]
    assert e.n_programs == 2 and e.n_from_disk == 1 and e.n_traces == 2
    for t in e.traces:
        assert t.trace_seconds > 0 and t.lower_seconds > 0 and t.compile_seconds > 0
    assert e.seconds == pytest.approx(e.trace_seconds + e.lower_seconds + e.compile_seconds)
    assert e.trace_seconds == pytest.approx(sum(t.trace_seconds for t in e.traces))
    with pytest.raises(AttributeError):
        e.traces[0].caller = "x"


def test_reports():
    def step(batch):
        return batch["x"] * 2

    f = jax.jit(step)
    assert str(f.explain()) == "step: not traced yet"
    f({"x": X})
    f({"x": X[:7]})
    lines = str(f.explain()).splitlines()
    assert lines[0] == f"step, defined at {f.explain().place}: 2 traces, 2 programs (0 from disk)"
    assert lines[2].endswith(": first trace (batch['x']: f32[8,128])")
    assert lines[4].endswith(": batch['x']: f32[8,128] -> f32[7,128]")
    assert repr(f.explain()) == str(f.explain())
    whole = jax.explain()
    assert any(e.place == f.explain().place for e in whole.functions)
    assert "operations outside of jit" in str(whole)
    assert [c.name for c in whole.caches][:2] == ["compiled programs", "operations outside of jit"]
    assert all(c.name for c in whole.caches), "a cache that does not say what it holds"
    traces = next(c for c in whole.caches if c.name == "traces of functions")
    assert traces.entries > 0 and "cache of traces of functions" in str(whole)
    assert "programs on disk" in str(whole)


def test_operations_are_added_up_by_name():
    def programs():
        return {row[0]: row[2] for row in jax.explain().operations}.get("nextafter", 0)

    before = programs()
    jnp.nextafter(jnp.ones(1237), 2.0)
    assert programs() > before


def test_a_call_whose_program_is_known_does_not_touch_the_ledger(monkeypatch):
    f = jax.jit(lambda x: x * 2)
    f(1.0)

    def touched(*args):
        raise AssertionError("the ledger was written")

    for name in ("note_traced", "note_operation_traced", "note_lowered", "note_compiled"):
        monkeypatch.setattr(ledger, name, touched)
    f(1.0)
    f.trace(1.0)


def test_nothing_is_kept_alive():
    class Big:
        pass

    big, array = Big(), jnp.ones(3) * 2
    held = weakref.ref(big)

    def make(big, array):
        return jax.jit(lambda x, other: x + array, static_argnums=1)

    f = make(big, array)
    f(1.0, big)
    fun = weakref.ref(f.__wrapped__)
    assert jax.explain().functions
    del f, big
    gc.collect()
    assert fun() is None and held() is None


def test_keys_of_dicts_are_not_kept_alive():
    class Key:
        pass

    key = Key()
    f = jax.jit(lambda d: sum(d.values()))
    f({key: 1.0})
    known, key = weakref.ref(key), None
    del f
    gc.collect()
    assert known() is None and ledger.histories()


def test_the_ledger_is_bounded(monkeypatch):
    f = jax.jit(lambda x: x * 2)
    for n in range(ledger.ENTRIES + 5):
        f.eval_shape(np.zeros(n + 1, np.float32))
    e = f.explain()
    assert len(e.traces) == ledger.ENTRIES and e.n_traces == ledger.ENTRIES + 5
    assert f"the latest {ledger.ENTRIES} traces:" in str(e)
    monkeypatch.setattr(ledger, "FUNCTIONS", 3)
    for code in range(5):
        exec(f"def g{code}(x): return x", names := {})
        jax.eval_shape(names[f"g{code}"], 1.0)
    assert len(ledger.histories()) == 3


def test_functions_in_use_stay_in_the_ledger(monkeypatch):
    monkeypatch.setattr(ledger, "FUNCTIONS", 3)
    step = jax.jit(lambda x: x * 2)
    for code in range(5):
        step.eval_shape(np.zeros(code, np.float32))
        exec(f"def h{code}(x): return x", names := {})
        jax.eval_shape(names[f"h{code}"], 1.0)
    assert step.explain().n_traces == 5
    assert [h.name for h in ledger.histories()] == ["h3", "<lambda>", "h4"]
    for code in range(5):  # it goes, and comes back with what it has cost
        exec(f"def k{code}(x): return x", names := {})
        jax.eval_shape(names[f"k{code}"], 1.0)
    assert "<lambda>" not in [h.name for h in ledger.histories()]
    step.eval_shape(np.zeros(9, np.float32))
    assert ledger.histories()[-1].name == "<lambda>" and ledger.histories()[-1].costs.traces == 6


@pytest.fixture
def warning_after():
    """Sets after how many retraces, and seconds of them, the warning comes."""
    names = ("jax_pyjx_retraces_warn_count", "jax_pyjx_retraces_warn_seconds")
    old = [jax.config.read(name) for name in names]

    def update(*new):
        for name, value in zip(names, new, strict=True):
            jax.config.update(name, value)

    yield update
    update(*old)


def test_threads():
    f = jax.jit(lambda x: x * 2)

    def work(first):
        for n in range(first, first + 10):
            f.eval_shape(np.zeros(n + 1, np.float32))

    threads = [threading.Thread(target=work, args=(n * 10,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert f.explain().n_traces == 40
    assert sorted(t.number for t in f.explain().traces) == list(range(1, 41))


# -- warning and logs ------------------------------------------------------------------------------


def test_threads_that_jit_one_function_with_many_options():
    failed = []

    def jitted(fun, k):
        try:
            for i in range(120):
                jax.jit(fun, compiler_options={f"{k}_{i}": True})
        except RuntimeError as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            def fun(x):
                return x

            threads = [threading.Thread(target=jitted, args=(fun, k)) for k in range(6)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failed


def test_a_function_has_one_number_though_threads_jit_it_at_once(monkeypatch):
    def slowly(number=ledger.new_function):
        n = number()
        time.sleep(0.01)
        return n

    monkeypatch.setattr(ledger, "new_function", slowly)

    def fun(x):
        return x

    threads = [threading.Thread(target=jax.jit, args=(fun,), kwargs={"keep_unused": k})
               for k in (False, True)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({t.function for t in _traces[fun].values()}) == 1


def test_one_warning_after_many_retraces(warning_after):
    warning_after(3, 0.0)
    f = jax.jit(lambda x: x * 2)
    for n in range(1, 5):
        f.eval_shape(np.zeros(n, np.float32))
    with pytest.warns(jax.RetraceWarning) as caught:
        f.eval_shape(np.zeros(5, np.float32))
    for n in range(6, 9):
        f.eval_shape(np.zeros(n, np.float32))
    (warning,) = caught
    text = str(warning.message)
    assert "was traced 5 times, which took " in text
    assert "Mostly the cause was: shape. Now x: f32[" in text
    assert "Cure: pad the argument to one of a few shapes" in text
    assert warning.filename == __file__


def test_the_warning_can_be_switched_off_and_is_for_what_takes_long(warning_after):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for thresholds in ((32, 3600.0), (-1, 0.0)):
            warning_after(*thresholds)
            for _ in range(70):
                jax.eval_shape(jax.jit(lambda x: x), 1.0)


def test_functions_that_capture_other_values_are_no_retraces(warning_after):
    warning_after(3, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(8):
            jax.eval_shape(jax.jit(lambda x, n=n: x * n), 1.0)
        warnings.simplefilter("error", jax.RetraceWarning)
        with pytest.raises(jax.RetraceWarning, match="made anew by the same code"):
            for _ in range(8):
                jax.eval_shape(jax.jit(lambda x: x), 1.0)


def test_where_all_warnings_are_errors_retraces_end_no_program(warning_after, caplog):
    warning_after(3, 0.0)
    f = jax.jit(lambda x: x * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(8):
            assert f.eval_shape(np.zeros(n, np.float32)).shape == (n,)
    assert sum("Mostly the cause was: shape" in r.getMessage() for r in caplog.records) == 1


def test_explain_cache_misses(caplog):
    f = jax.jit(lambda x, n=1: x * 2, static_argnames="n")
    with jax.explain_cache_misses(True):
        f(1.0)
        f(1.0, n=2)
        f(1.0, n=2)
    first, second = [r.getMessage() for r in caplog.records
                     if r.getMessage().startswith("TRACING CACHE MISS")]
    line = test_explain_cache_misses.__code__.co_firstlineno
    assert first.splitlines()[0] == \
        f"TRACING CACHE MISS at {__file__}:{line + 3} (test_explain_cache_misses):"
    assert f"never seen function: <lambda> defined at {__file__}:{line + 1}" in first
    assert "  * n: 1 by default -> 2" in second


def test_log_compiles(caplog):
    with jax.log_compiles(True):
        jax.jit(lambda a: a * 1.25)(1.0)
    texts = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert texts[0].startswith("Finished tracing <lambda> for jit in ")
    assert texts[1] == ("Compiling jit(<lambda>) with global shapes and types "
                        "(ShapedArray(float32[], weak_type=True),). "
                        "Argument mapping: (UnspecifiedValue,).")
    assert texts[2].startswith("Finished jaxpr to MLIR module conversion jit(<lambda>) in ")
    assert texts[3].startswith("Finished XLA compilation of jit(<lambda>) in ")
    caplog.clear()
    jax.jit(lambda a: a * 1.25)(1.0)
    assert not caplog.records


def test_compilations_are_logged_for_debugging(caplog):
    with caplog.at_level(logging.DEBUG, "pyjx"):
        jax.jit(lambda a: a * 1.25)(1.0)
    assert any(r.levelno == logging.DEBUG and "XLA compilation" in r.getMessage()
               for r in caplog.records)


def test_logging_level_shows_messages_on_stderr(run_python, start_python):
    process = start_python("""
import pyjx as jax
jax.config.update("jax_logging_level", "DEBUG")
jax.jit(lambda x: x + 1)(1.0)
jax.config.update("jax_logging_level", "NOTSET")
jax.jit(lambda x: x + 2)(1.0)
""")
    _, shown = process.communicate(timeout=120)
    assert process.returncode == 0
    assert shown.count("Finished XLA compilation of jit(<lambda>)") == 1
    assert shown.startswith("DEBUG:") and ":pyjx.runtime.ledger:" in shown


def test_no_execution():
    f = jax.jit(lambda x: x * 2)
    x = jnp.ones(3)
    f(x)
    compiled = f.lower(x).compile()
    with jax.no_execution(True):
        for call, name in ((lambda: f(x), "jit(<lambda>)"), (lambda: x + 1, "jit(__add__)"),
                           (lambda: compiled(x), "jit(<lambda>)"),
                           (lambda: jax.lax.sin(x), "jit(sin)"),
                           (lambda: jax.grad(f)(1.0), "jit(<lambda>)")):
            with pytest.raises(RuntimeError) as caught:
                call()
            assert str(caught.value) == (f"JAX tried to execute function {name}, but the "
                                         "no_execution config option is set")
        jax.make_jaxpr(f)(x)
        jax.eval_shape(f, x)
        f.lower(x).compile()
        jax.device_put(np.ones(3))
    assert f(x).tolist() == [2, 2, 2]


def test_no_message_is_made_that_nobody_sees(monkeypatch):
    def log(message):
        raise AssertionError(message)

    monkeypatch.setattr(ledger, "_log", log)
    jax.jit(lambda x: x * 77 - 7)(jnp.ones(7))
