"""`jit`: static arguments and others, what can be jitted, options."""

import copy
import enum
import functools
import inspect
from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.runtime.jitted import equal, scaled

pytestmark = pytest.mark.smoke


@pytest.fixture
def x():
    return jnp.arange(3.0)


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


@pytest.mark.parametrize("around", [
    "(x,)", "{'a': x}", "{1: x}", "[x]"])
def test_trees_may_be_as_deep_as_calls(run_python, around):
    assert run_python(f"""
import sys
import pyjx as jax
fun = jax.jit(lambda tree: jax.tree.map(lambda x: x + 1, tree))
def call(tree, frames):
    return call(tree, frames - 1) if frames else fun(tree)
for depth in (900, 901):
    x = 1.0
    for _ in range(depth):
        x = {around}
    print(jax.tree.leaves(call(x, 50))[0])
print("2 traces" in str(fun.explain()))
""") == "2.0\n2.0\nTrue\n"


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


def test_names_of_partials(x):
    named = partial(scaled, n=4)
    named.__name__ = "renamed"
    for f, name in ((partial(scaled, n=4), "scaled"), (partial(partial(scaled), n=4), "scaled"),
                    (named, "renamed"), (partial(named), "renamed"),
                    (jax.jit(partial(scaled, n=4)), "scaled"), (jax.vmap(named), "renamed")):
        jitted = jax.jit(f)
        assert jitted.__name__ == name and f"@jit_{name} " in jitted.lower(x).as_text()
        assert jax.grad(f).__name__ == jax.checkpoint(f).__name__ == name
        assert jax.make_jaxpr(f).__qualname__ == f"make_jaxpr({name})" or hasattr(f, "__qualname__")


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


def test_names_and_wrapped_function(monkeypatch):
    f = jax.jit(scaled)
    assert f.__name__ == "scaled"
    assert f.__wrapped__ is scaled
    monkeypatch.setattr(scaled, "tag", "mine", raising=False)
    monkeypatch.setattr(scaled, "lower", None, raising=False)
    tagged = jax.jit(scaled)
    assert tagged.tag == "mine" and tagged.lower is not None
    assert f.__doc__ == scaled.__doc__
    assert f.__module__ == scaled.__module__
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


def test_options_that_jit_has_not():
    with pytest.raises(TypeError, match="abstracted_axes"):
        jax.jit(lambda x: x, abstracted_axes=("n",))


def test_positions_in_numpy_arrays():
    equal(jax.jit(lambda n, x: x * n, static_argnums=np.array([0]))(2, 3.0), 6.0)


@pytest.mark.parametrize("none", [(), [], frozenset()])
def test_no_names_are_given_by_an_empty_sequence(none):
    def traced(options, *args, **kwargs):
        def are_traced(x, y):
            kinds.append((isinstance(x, jax.core.Tracer), isinstance(y, jax.core.Tracer)))
            return 1

        jax.jit(are_traced, **options)(*args, **kwargs)

    kinds = []
    for options in ({"static_argnums": 1, "static_argnames": none}, {"static_argnums": 1},
                    {"static_argnums": 1, "static_argnames": None},
                    {"static_argnums": none, "static_argnames": "y"}):
        traced(options, 1, 2)
        traced(options, 1, y=2)
    by_position, neither = (True, False), (True, True)
    assert kinds == [by_position, neither, *[by_position] * 4, neither, by_position]


@pytest.mark.parametrize("none", [(), []])
def test_no_donated_names_are_given_by_an_empty_sequence(none):
    x = jnp.ones(3)
    jax.jit(lambda y: y + 1, donate_argnums=0, donate_argnames=none)(y=x)
    assert not x.is_deleted()
