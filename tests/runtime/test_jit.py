"""`jit`: signatures, static and donated arguments, constants, caches, errors, threads."""

import copy
import enum
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import threading
import warnings
import weakref
from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import errors

pytestmark = pytest.mark.smoke


def scaled(x, n=3):
    """n is used as a Python number: a tracer would not do."""
    return x * int(n)


@pytest.fixture
def x():
    return jnp.arange(3.0)


def equal(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-6)


# -- static arguments ------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [
    {"static_argnums": 1}, {"static_argnums": (1,)}, {"static_argnums": -1},
    {"static_argnames": "n"}, {"static_argnames": ["n"]},
])
def test_static_arguments_by_position_or_name(x, options):
    f = jax.jit(scaled, **options)
    equal(f(x), [0, 3, 6])
    equal(f(x, 2), [0, 2, 4])
    equal(f(x, n=2), [0, 2, 4])
    equal(f(x, 2), [0, 2, 4])


def test_static_arguments_counted_from_the_end_of_varargs(x):
    f = jax.jit(lambda *a: a[0] * int(a[-1]), static_argnums=-1)
    equal(f(x, 2), [0, 2, 4])
    equal(f(x, x, 3), [0, 3, 6])


def test_positions_and_names_together(x):
    f = jax.jit(lambda x, a, b: x * int(a) * int(b), static_argnums=1, static_argnames="b")
    equal(f(x, 2, b=3), [0, 6, 12])


def test_equal_static_arguments_of_different_types_are_different(x):
    seen = []
    f = jax.jit(lambda x, n: (seen.append(n), x * n)[1], static_argnums=1)
    for n in (1, 1.0, True, 1, 1.0, True):
        f(x, n)
    assert [type(n) for n in seen] == [int, float, bool]


@pytest.mark.parametrize(("options", "message"), [
    ({"static_argnums": 5}, r"static_argnums=\(5,\), but only accepts 2 positional"),
    ({"static_argnums": -5}, r"static_argnums=\(-5,\), but only accepts 2 positional"),
    ({"donate_argnums": 7}, r"donate_argnums=\(7,\), but only accepts 2 positional"),
    ({"static_argnames": "q"}, r"invalid argnames \{'q'\} in static_argnames"),
    ({"donate_argnames": "q"}, r"invalid argnames \{'q'\} in donate_argnames"),
    ({"static_argnums": 1, "donate_argnums": 1}, "cannot intersect"),
    ({"static_argnames": "n", "donate_argnames": "n"}, r"\{'n'\} appear in both"),
])
def test_impossible_sets_of_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        jax.jit(scaled, **options)


@pytest.mark.parametrize("options", [
    {"static_argnums": "n"}, {"static_argnums": 1.5}, {"static_argnames": 1},
    {"static_argnames": [1]},
])
def test_sets_of_arguments_of_wrong_types(options):
    with pytest.raises(TypeError):
        jax.jit(scaled, **options)


def test_unhashable_static_argument(x):
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        jax.jit(scaled, static_argnums=1)(x, [2])
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        jax.jit(scaled, static_argnames="n")(x, n=np.arange(2))


# -- arguments -------------------------------------------------------------------------------------


def test_python_and_numpy_scalars_keep_their_weakness():
    f = jax.jit(lambda a, b: a + b)
    out = f(1, 2.5)
    assert (out.dtype, out.weak_type) == (np.float32, True)
    out = f(np.float16(1), 2)
    assert (out.dtype, out.weak_type) == (np.float16, False)
    assert f(np.int64(1), np.float64(2)).dtype == np.float32
    assert f(True, False).dtype == np.bool_
    assert f(1j, 2).dtype == np.complex64


def test_int_enum():
    kind = enum.IntEnum("Kind", "A B")
    assert int(jax.jit(lambda v: v + 1)(kind.B)) == 3


def test_python_int_that_does_not_fit():
    f = jax.jit(lambda x: x["a"] + 1)
    for value in (2**40, 2**31, -2**31 - 1):
        with pytest.raises(OverflowError, match=r"argument path is x\['a'\]"):
            f({"a": value})
    f({"a": 1})
    with pytest.raises(OverflowError, match=r"argument path is x\['a'\]"):
        f({"a": 2**40})
    assert int(f({"a": -2**31})) == -2**31 + 1
    with pytest.raises(OverflowError, match="too large"):
        jax.jit(lambda: 2**40)()


@pytest.mark.parametrize("value", ["text", object(), np.array(["a"]), np.array([None]),
                                   np.array(["2020-01-01"], "M8[D]"), np.zeros(2, "g")])
def test_argument_that_is_no_array(value):
    def named(first, tree=None, **rest):
        return 0

    f = jax.jit(named)
    with pytest.raises(TypeError, match=r"at path first\."):
        f(value)
    with pytest.raises(TypeError, match=r"at path tree\[1\]\['k'\]\."):
        f(1, [2, {"k": value}])
    with pytest.raises(TypeError, match=r"at path rest\['other'\]\."):
        f(1, other=value)


def test_strided_and_foreign_byte_order(x):
    a = np.arange(6, dtype=">f4").reshape(2, 3).T[:, ::-1]
    equal(jax.jit(lambda v: v * 2)(a), a * 2)


def test_masked_array_is_refused():
    with pytest.raises((TypeError, ValueError)):
        jax.jit(lambda v: v)(np.ma.array([1.0, 2.0], mask=[0, 1]))


def test_float0_passes_through():
    out = jax.jit(lambda v: v)(np.zeros(2, jax.float0))
    assert out.shape == (2,)
    assert out.dtype == jax.float0
    primal, tangent = jax.jit(lambda p, t: jax.jvp(lambda i: i * 2, (p,), (t,)))(
        3, np.zeros((), jax.float0))
    assert int(primal) == 6
    assert tangent.dtype == jax.float0


def test_keyword_arguments_defaults_and_pytrees(x):
    @jax.jit
    def f(a, *, b=2.0, c):
        return {"out": (a * b + c["k"][0], None)}

    equal(f(x, c={"k": [1.0]})["out"][0], [1, 3, 5])
    equal(f(a=x, b=1.0, c={"k": [0.0]})["out"][0], x)
    assert f(x, c={"k": [1.0]})["out"][1] is None


def test_wrong_calls_are_those_of_python(x):
    f = jax.jit(scaled)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        f()
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(x, q=1)


def test_custom_node():
    @jax.tree_util.register_pytree_node_class
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def tree_flatten(self):
            return (self.a, self.b), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    f = jax.jit(lambda p: Pair(p.b, p.a))
    for _ in range(2):
        out = f(Pair(1, np.ones(2)))
        assert isinstance(out, Pair)
        assert int(out.b) == 1


def test_zero_sized_and_empty():
    equal(jax.jit(lambda a: a + 1)(np.zeros((0, 3), np.float32)), np.zeros((0, 3)))
    assert float(jax.jit(lambda a: a.sum())(np.zeros((0, 3), np.float32))) == 0
    assert jax.jit(lambda x: ({}, [], (), None))(1) == ({}, [], (), None)
    assert jax.jit(lambda x: None)(1) is None
    equal(jax.jit(lambda: jnp.ones(2))(), [1, 1])


def test_results_that_are_inputs_or_constants(x):
    outs = jax.jit(lambda a: (a, a, 1, 2.0, True, np.arange(2), x))(x)
    for out in outs:
        assert isinstance(out, jax.Array)
    equal(outs[0], x)
    assert outs[2].weak_type
    assert not outs[4].weak_type
    equal(outs[6], x)


def test_result_that_is_no_array():
    with pytest.raises(TypeError, match=r"returned a value of type .*str"):
        jax.jit(lambda x: "a")(1)
    with pytest.raises(TypeError, match=r"at output component \['a'\]\[1\]"):
        jax.jit(lambda x: {"a": [x, object()]})(1)


# -- what can be jitted ----------------------------------------------------------------------------


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def apply(self, x):
        return x * self.factor

    def __call__(self, x):
        return x + self.factor

    @partial(jax.jit, static_argnums=0)
    def decorated(self, x):
        return x - self.factor

    @jax.jit
    def undecorated(self, x):
        return x


def test_methods_partials_and_callables(x):
    scale = Scale(2)
    equal(jax.jit(scale.apply)(x), [0, 2, 4])
    equal(jax.jit(scale)(x), [2, 3, 4])
    equal(scale.decorated(x), [-2, -1, 0])
    equal(jax.jit(partial(scaled, n=4))(x), [0, 4, 8])
    equal(jax.jit(jax.jit(scaled))(x), [0, 3, 6])
    with pytest.raises(TypeError, match="at path self"):
        scale.undecorated(x)


def test_what_cannot_be_jitted():
    def generator():
        yield 1

    for fun, message in ((3, "Expected a callable value, got 3"), (None, "callable"),
                         (generator, "generator function"),
                         (staticmethod(scaled), "staticmethod")):
        with pytest.raises(TypeError, match=message):
            jax.jit(fun)


def test_decorator_with_options(x):
    @jax.jit(static_argnums=1)
    def f(x, n):
        return x * int(n)

    equal(f(x, 2), [0, 2, 4])


def test_names_and_wrapped_function():
    f = jax.jit(scaled)
    assert f.__name__ == "scaled"
    assert f.__wrapped__ is scaled
    assert f.__doc__ == scaled.__doc__
    assert f.__module__ == __name__
    assert isinstance(f, jax.stages.Wrapped)
    assert functools.wraps(f)(lambda: 0).__name__ == "scaled"


def test_copies(x):
    f = jax.jit(scaled)
    f(x)
    for copied in (copy.copy(f), copy.deepcopy(f), copy.deepcopy({"f": f})["f"]):
        equal(copied(x), [0, 3, 6])
        equal(copied.lower(x).compile()(x), [0, 3, 6])
    assert str(inspect.signature(f)) == "(x, n=3)"


def test_shardings_on_one_device(x):
    sharding = x.sharding
    equal(jax.jit(scaled, in_shardings=(sharding,), out_shardings=sharding)(x), [0, 3, 6])
    assert jax.jit(scaled, out_shardings=sharding)(x).committed


# -- constants -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.arange, jnp.arange])
def test_captured_constants(make):
    large, small = make(1000.0), make(3.0)
    f = jax.jit(lambda unused, a, also: (a.sum() + large, small * 2, large.sum()))
    for _ in range(3):  # by Python, then by C++
        outs = f(1.0, jnp.ones(3), 2.0)
        equal(outs[0], np.arange(1000.0) + 3)
        equal(outs[1], [0, 2, 4])
        equal(outs[2], 499500.0)
    assert len(f.lower(1.0, jnp.ones(3), 2.0).as_text()) < 2000


def test_constant_of_an_outer_trace(x):
    @jax.jit
    def f(a):
        inner = jax.jit(lambda b: a * b)
        return inner(2.0) + inner(3.0)

    equal(f(x), x * 5)


def test_tracer_in_a_global_is_the_one_of_the_call(x):
    """A function that reads a global is traced again where the global is another tracer."""
    weight = [None]
    g = jax.jit(lambda y: weight[0] * y)

    def loss(w):
        weight[0] = w
        return g(3.0)

    def outer(w):
        weight[0] = w
        value = g(3.0)
        return value + jax.grad(loss)(w * 1.0)

    equal(jax.grad(loss)(2.0), 3.0)
    equal(jax.jit(outer)(2.0), 9.0)
    equal(jax.grad(loss)(5.0), 3.0)


# -- donation --------------------------------------------------------------------------------------


def fresh():
    return jnp.arange(4.0) + 1


@pytest.mark.parametrize("options", [{"donate_argnums": 0}, {"donate_argnums": (0,)},
                                     {"donate_argnames": "a"}, {"donate_argnums": -2}])
def test_donated_argument_is_deleted(options):
    f = jax.jit(lambda a, b: (a + 1, b * 2), **options)
    a, b = fresh(), fresh()
    out = f(a, b)
    assert a.is_deleted()
    assert not b.is_deleted()
    equal(out[0], [2, 3, 4, 5])
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[4\]"):
        np.asarray(a)


def test_donation_of_a_tree_and_beside_static_arguments():
    f = jax.jit(lambda n, t, b: (jax.tree_util.tree_map(lambda v: v * n, t), b),
                static_argnums=0, donate_argnums=1)
    tree, b = {"a": fresh(), "b": [fresh()]}, fresh()
    f(3, tree, b)
    assert tree["a"].is_deleted()
    assert tree["b"][0].is_deleted()
    assert not b.is_deleted()


def test_loop_of_donations():
    f = jax.jit(lambda a: a + 1, donate_argnums=0)
    a = fresh()
    for _ in range(5):
        a = f(a)
    equal(a, [6, 7, 8, 9])


def test_use_after_donation_is_an_error():
    f = jax.jit(lambda a: a + 1, donate_argnums=0)
    a = fresh()
    f(a)
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        f(a)
    gone = fresh()
    gone.delete()
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        jax.jit(lambda v: v * 3)(gone)


def test_numpy_argument_is_not_overwritten():
    a = np.arange(4.0, dtype=np.float32)
    jax.jit(lambda v: v + 1, donate_argnums=0)(a)
    equal(a, np.arange(4.0))


def test_useless_donation_warns():
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[4\]"):
        jax.jit(lambda a: a.sum(), donate_argnums=0)(fresh())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(lambda a, b: b + 1, donate_argnums=0)(fresh(), fresh())  # not used at all


def test_aliases_in_the_text():
    text = jax.jit(lambda a, b: (b.sum(), a + 1, a.reshape(2, 2)), donate_argnums=(0, 1)).lower(
        fresh(), fresh()).as_text()
    assert "%arg0: tensor<4xf32> {tf.aliasing_output = 1 : i32}" in text
    assert "%arg1: tensor<4xf32> {jax.buffer_donor = true}" in text


# -- caches ----------------------------------------------------------------------------------------


def counting():
    calls = [0]

    def f(a):
        calls[0] += 1
        return a * 1.5 + 1

    return f, calls


def test_one_trace_for_each_signature(x):
    f, calls = counting()
    g, h = jax.jit(f), jax.jit(f)
    for _ in range(2):
        g(x), h(x), jax.jit(f)(x)
    assert calls == [1]  # wrappers of one function share
    g(jnp.arange(4.0)), g(1.0), g(2.0), g(1), g(np.float32(1)), g(np.ones(3, np.float32))
    assert calls == [5]
    jax.clear_caches()
    g(x)
    assert calls == [6]
    g.clear_cache()
    g(x)
    assert calls == [7]


def test_flags_are_in_the_key(x):
    f, calls = counting()
    g = jax.jit(f)
    g(1.0)
    with jax.enable_x64(True):
        assert g(1.0).dtype == np.float64
        assert g(2**40).dtype == np.float64
    assert g(1.0).dtype == np.float32
    assert calls == [3]
    add = jax.jit(lambda a, b: a + b)
    a, b = jnp.ones((2, 3)), jnp.ones(3)
    add(a, b)
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        add(a, b)
    add(a, b)


def test_functions_are_collected(x):
    class Big:
        pass

    def use():
        big = Big()
        f = jax.jit(lambda a: (big, a + x)[1])
        f(x), f(np.ones(3)), jax.make_jaxpr(f)(x), f.lower(x).compile()(x)
        return weakref.ref(big)

    reference = use()
    gc.collect()
    assert reference() is None


def test_traces_are_collected():
    seen = []

    class Watched(np.ndarray):
        pass

    def f(a):
        constant = np.ones(100).view(Watched)
        seen.append(weakref.ref(constant))
        return jnp.sqrt(2.0) * a + constant  # jnp.sqrt(2.0): a call within a trace, of no tracer

    jax.make_jaxpr(lambda a: f(a))(1.0)
    gc.collect()
    assert seen[0]() is None


def test_raising_function_works_afterwards(x):
    calls = [0]

    def f(a):
        calls[0] += 1
        if calls[0] == 1:
            raise KeyError("boo")
        return a + 1

    g = jax.jit(f)
    outer = jax.jit(lambda a: g(a) * 2)
    with pytest.raises(KeyError, match="boo"):
        outer(x)
    equal(outer(x), [2, 4, 6])
    equal(g(x), [1, 2, 3])


def test_recursion(x):
    @partial(jax.jit, static_argnums=1)
    def f(a, n):
        return a if n == 0 else f(a * 2, n - 1)

    equal(f(x, 5), x * 32)


def test_threads(x):
    def deep(a):
        for _ in range(50):
            a = jnp.sin(a) * a
        return a

    shared = jax.jit(deep)
    expected = np.asarray(jax.jit(deep)(x))
    results = {}

    def work(i):
        try:
            results[i] = (
                np.allclose(shared(x), expected),
                np.allclose(jax.jit(lambda a: a * i)(x), x * i),
                np.allclose(jax.grad(lambda a: jnp.sin(a * i))(1.0), i * np.cos(i), atol=1e-5),
                np.allclose(jax.vmap(lambda a: a + i)(x), x + i),
            )
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == dict.fromkeys(range(8), (True,) * 4)


# -- options ---------------------------------------------------------------------------------------


def test_keep_unused(x):
    f = lambda a, b: a  # noqa: E731
    assert "%arg1" not in jax.jit(f).lower(x, x).as_text()
    assert "%arg1" in jax.jit(f, keep_unused=True).lower(x, x).as_text()
    equal(jax.jit(f, keep_unused=True)(x, 1.0), x)


@pytest.mark.parametrize("inline", [True, False, *jax.Inline])
def test_inline(x, inline):
    f = jax.jit(lambda a: jnp.sin(a) * 2, inline=inline)
    equal(f(x), np.sin(x) * 2)
    equal(jax.jit(jax.vmap(jax.grad(f)))(x.ravel()), np.cos(x.ravel()) * 2)
    early, late = inline is jax.Inline.JAX_EARLY, inline in (True, jax.Inline.JAX_LATE)
    assert ("jit[" in str(jax.make_jaxpr(lambda a: f(a) + 1)(x))) is not early
    text = jax.jit(lambda a: f(a) + 1).lower(x).as_text()
    assert ("call @" in text) is not (early or late)
    by_xla = inline in (jax.Inline.XLA_EARLY, jax.Inline.XLA_LATE)
    assert (f'inlineable = "{inline.value}"' in text if by_xla else "inlineable" not in text)


@pytest.mark.parametrize("inline", ["early", 3, None])
def test_other_values_of_inline(inline):
    with pytest.raises(ValueError, match="Invalid inline option"):
        jax.jit(lambda a: a, inline=inline)


@pytest.mark.parametrize("option", ["optimization_level", "memory_fitting_level"])
def test_effort_levels(x, option):
    for level in (*jax.CompilerEffortLevel, "O1"):
        equal(jax.jit(lambda a: a * 2, compiler_options={option: level})(x), x * 2)
    with pytest.raises(ValueError, match=f"'{option}' is one of"):
        jax.jit(lambda a: a * 2, compiler_options={option: 1})(x)


def test_compiler_options(x):
    equal(jax.jit(lambda a: a * 2, compiler_options={"xla_cpu_enable_fast_math": True})(x), x * 2)
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_nonsense"):
        jax.jit(lambda a: a * 2, compiler_options={"xla_nonsense": True})(x)


def test_disable_jit(x):
    seen = []
    f = jax.jit(lambda a, n: (seen.append(isinstance(a, jax.core.Tracer)), a * int(n))[1],
                static_argnums=1)
    with jax.disable_jit():
        equal(f(x, 2), x * 2)
        sign = jax.jit(lambda a: a if a > 0 else -a)  # looks at the value
        assert float(sign(jnp.float32(-2))) == 2
        assert float(jax.grad(jax.jit(lambda a: a * a if a > 0 else -a))(3.0)) == 6
        equal(jax.vmap(jax.jit(lambda a: a * 2))(x), x * 2)
    f(x, 2)
    assert seen == [False, True]


def test_ensure_compile_time_eval():
    @jax.jit
    def f(a):
        with jax.ensure_compile_time_eval():
            n = int(jnp.arange(3).sum())
            m = jax.jit(lambda v: v * 2)(jnp.ones(2))
            assert not isinstance(m, jax.core.Tracer)
        return a * n + m

    equal(f(2.0), [8, 8])


def test_compiled_functions_are_recorded_within_a_trace(x):
    """Also where their arguments are plain values and C++ knows their program."""
    g = jax.jit(lambda v: v * 2)
    g(1.0), g(x)
    text = str(jax.make_jaxpr(lambda a: a + g(1.0) + g(x).sum())(1.0))
    assert text.count("jit[") == 2
    equal(jax.jit(lambda a: a + g(1.0) + g(x).sum())(1.0), 9.0)


# -- errors and flags of debugging -----------------------------------------------------------------


def test_errors_name_argument_and_line(x):
    def f(params):
        return 1 if params["k"][0] > 0 else 2

    with pytest.raises(errors.TracerBoolConversionError,
                       match=r"operation `gt` at .*test_jit\.py") as info:
        jax.jit(f)({"k": [1.0]})
    frames = [entry.path.name for entry in info.traceback]
    assert set(frames) == {"test_jit.py"}  # none of the library's own
    with pytest.raises(errors.ConcretizationTypeError, match=r"the argument params\['k'\]\[0\]"):
        jax.jit(lambda params: int(params["k"][0]))({"k": [1.0]})
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values") as info:
        jax.jit(lambda n: jnp.zeros(n))(3)
    assert "the argument n" in str(info.value)


@pytest.mark.parametrize("use", [
    lambda leaked: leaked + 1,
    lambda leaked: jax.jit(lambda b: b + leaked)(1.0),
    lambda leaked: jax.jit(lambda b: b)(leaked),
    lambda leaked: jax.jit(lambda b: leaked)(1.0),
    lambda leaked: jax.grad(lambda b: b * leaked)(1.0),
    lambda leaked: jax.vmap(lambda b: b * leaked)(np.ones(2)),
])
def test_leaked_tracer(use):
    store = []
    jax.jit(lambda a: (store.append(a * 2), a)[1])(1.0)
    with pytest.raises(errors.UnexpectedTracerError, match=r"`mul` at .*test_jit\.py"):
        use(store[0])


def test_checking_leaks():
    store = []
    with jax.checking_leaks():
        with pytest.raises(Exception, match=r"Leaked trace[\s\S]*JitTracer"):
            jax.jit(lambda a: (store.append(a), a)[1])(1.0)
        jax.jit(lambda a: jnp.sin(a) * 2)(1.0)


@pytest.mark.parametrize("leak", [
    lambda f: jax.grad(f)(1.0), lambda f: jax.vjp(f, 1.0), lambda f: jax.linearize(f, 1.0),
    lambda f: jax.vmap(f)(np.ones(2)), lambda f: jax.vmap(jax.grad(f))(np.ones(2)),
])
def test_checking_leaks_of_transformations(leak):
    store = []
    with jax.checking_leaks():
        with pytest.raises(Exception, match=r"Leaked trace[\s\S]*Tracer"):
            leak(lambda a: (store.append(a), jnp.sin(a))[1])
        leak(lambda a: jnp.sin(a) * 2)


def test_debug_nans(x):
    f = jax.jit(lambda a: (jnp.log(a) * 2).sum())
    f(-x - 1)
    with jax.debug_nans(True):
        with pytest.raises(FloatingPointError, match=r"invalid value \(nan\) encountered in log"):
            f(-x - 1)
        with pytest.raises(FloatingPointError, match=r"\(nan\)"):
            jnp.log(-x - 1)
        f(x + 1)
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\)"):
        jnp.log(x)
    f(-x - 1)


def test_no_tracing(x):
    f = jax.jit(lambda a: a + 1)
    f(x)
    with jax.no_tracing(True):
        f(x)
        with pytest.raises(RuntimeError, match="no_tracing"):
            f(jnp.ones(7))


def test_log_compiles(caplog):
    with jax.log_compiles(True):
        jax.jit(lambda a: a * 1.25)(1.0)
    assert "Compiling jit(<lambda>)" in caplog.text


@pytest.mark.parametrize(("name", "call"), [
    ("log", lambda x: jax.jit(jnp.log)(-x)),
    ("div", lambda x: (x - x) / (x - x)),
    ("sqrt", lambda x: jax.jit(lambda x: jax.jit(jnp.sqrt)(-x))(x)),
    ("div", lambda x: jax.jit(lambda x: (x * 0) / (x * 0) + 1)(x)),
    ("log", lambda x: jax.vmap(jnp.log)(-x)),
])
def test_debug_nans_names_the_operation(name, call):
    x = jnp.ones(2)
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as raised:
        call(x)
    assert str(raised.value) == f"invalid value (nan) encountered in {name}"


@jax.jit
def of_this_module(x):
    return x + 1


def plain(x, n=2):
    return x * n


def test_pickling():
    for fn in (of_this_module, jnp.sin, jnp.dot, jnp.linspace):
        assert pickle.loads(pickle.dumps(fn)) is fn
    for fn in (jax.jit(plain), jax.jit(partial(plain, n=3)),
               jax.jit(plain, static_argnames="n", inline=True,
                       compiler_options={"xla_cpu_enable_fast_math": True})):
        again = pickle.loads(pickle.dumps(fn))
        assert again is not fn and float(again(2.0)) == float(fn(2.0))
        assert float(jax.grad(again)(2.0)) == float(jax.grad(fn)(2.0))
    assert float(copy.copy(of_this_module)(1.0)) == float(copy.deepcopy(of_this_module)(1.0)) == 2
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(jax.jit(lambda x: x))


def test_pickling_of_what_has_been_called():
    fn = jax.jit(partial(plain, n=3))
    want = float(fn(2.0))
    assert float(pickle.loads(pickle.dumps(fn))(2.0)) == want


SCRIPT = """
import sys
import cloudpickle
import pyjx as jax

@jax.jit
def double(x):
    return x * 2

def task(x):
    return jax.grad(lambda x: double(x) ** 2)(x)

double(1.0)
sys.stdout.buffer.write(cloudpickle.dumps([task, jax.grad(task), jax.vmap(double), double]))
"""


def test_functions_of_scripts_go_to_other_scripts():
    cloudpickle = pytest.importorskip("cloudpickle")
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    task, second, mapped, double = cloudpickle.loads(done.stdout)
    assert float(task(3.0)) == 24 and float(second(3.0)) == 8 and float(double(3.0)) == 6
    assert mapped(jnp.arange(2.0)).tolist() == [0, 2]


def test_a_nested_function_is_traced_once_for_a_signature():
    calls = []

    @jax.jit
    def inner(x):
        calls.append(x.shape)
        return jnp.sin(x) * x

    def outer(x):
        for _ in range(4):
            x = inner(x)
        return x.sum()

    jax.jit(outer)(1.0)
    jax.jit(jax.grad(outer))(1.0)
    jax.hessian(outer)(1.0)
    jax.jvp(outer, (1.0,), (1.0,))
    assert calls == [()]
    jax.jit(jax.vmap(jax.grad(outer)))(jnp.ones(3))  # not a weak type
    assert calls == [(), ()]
    jaxpr = jax.make_jaxpr(jax.vmap(jax.grad(outer)))(jnp.ones(3))
    programs = {id(e.params["jaxpr"]) for e in jaxpr.eqns if e.primitive.name == "jit"}
    assert len(programs) == 3  # forwards, and backwards from one cotangent or from a batch


def test_donated_by_name():
    def add(x, y):
        return x + y

    for options, calls in (
        ({"donate_argnames": "y"}, [lambda f, a, b: f(a, b), lambda f, a, b: f(a, y=b)]),
        ({"donate_argnums": 1}, [lambda f, a, b: f(a, b), lambda f, a, b: f(a, y=b)]),
    ):
        for call in calls:
            a, b = jnp.ones(3), jnp.ones(3)
            call(jax.jit(add, **options), a, b)
            assert (a.is_deleted(), b.is_deleted()) == (False, True)


def test_options_that_jit_has_not():
    with pytest.raises(TypeError, match="abstracted_axes"):
        jax.jit(lambda x: x, abstracted_axes=("n",))
