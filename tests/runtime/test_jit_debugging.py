"""Errors of compiled functions, and the flags that help to find them."""

import dataclasses
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import errors

pytestmark = pytest.mark.smoke

NAN = jnp.float32(np.nan)
NANS = jnp.asarray(np.full(2, np.nan, "f4"))


@pytest.fixture
def x():
    return jnp.arange(3.0)


def test_errors_name_argument_and_line(x):
    def f(params):
        return 1 if params["k"][0] > 0 else 2

    with pytest.raises(errors.TracerBoolConversionError,
                       match=r"operation `gt` at .*test_jit_debugging\.py") as info:
        jax.jit(f)({"k": [1.0]})
    frames = [entry.path.name for entry in info.traceback]
    assert set(frames) == {"test_jit_debugging.py"}  # none of the library's own
    with pytest.raises(errors.ConcretizationTypeError, match=r"the argument params\['k'\]\[0\]"):
        jax.jit(lambda params: int(params["k"][0]))({"k": [1.0]})
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values") as info:
        jax.jit(lambda n: jnp.zeros(n))(3)
    assert "the argument n" in str(info.value)


def test_errors_name_arguments_of_classes_that_choose_their_leaves(x):
    class Mixed:  # its leaves are those of its values that are arrays
        def __init__(self, *values):
            self.values = values

    class Checked:
        def __init__(self, value):
            if not hasattr(value, "shape"):
                raise ValueError("takes arrays")
            self.values = [value]

    def flatten(mixed):
        leaves = [v for v in mixed.values if hasattr(v, "shape")]
        return leaves, len(leaves)

    jax.tree_util.register_pytree_node(Mixed, flatten, lambda _, leaves: Mixed(*leaves))
    jax.tree_util.register_pytree_node(Checked, lambda c: (c.values, None),
                                       lambda _, leaves: Checked(*leaves))
    for cls in (Mixed, Checked):
        value = cls(x[0])
        with pytest.raises(errors.ConcretizationTypeError, match=r"the argument a\[0\]"):
            jax.jit(lambda a, b: int(a.values[0]))(value, 1)
        with pytest.raises(errors.ConcretizationTypeError, match=r"the argument b\[0\]"):
            jax.jit(lambda a, b: int(b.values[0]))(value, b=value)
        with pytest.raises(errors.ConcretizationTypeError, match=r"the argument b\['k'\]"):
            jax.jit(lambda a, b: int(b["k"]))(value, {"k": x[0]})


class Arrays:
    """Takes no numbers for its child."""

    def __init__(self, child):
        if isinstance(child, int):
            raise KeyError("takes no numbers")
        self.child = child


jax.tree_util.register_pytree_node(Arrays, lambda a: ((a.child,), None),
                                   lambda _, children: Arrays(*children))


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Pair:
    a: object
    b: object


class Point(NamedTuple):
    a: object
    b: object


def test_a_class_that_refuses_numbers_takes_no_name_but_its_own(x):
    x = x[0]
    for value, get, name in (
        ({"b": Arrays(x), "w": x}, lambda p: p["w"], "p['w']"),
        ({"b": Arrays(x), "w": x}, lambda p: p["b"].child, "p['b'][0]"),
        ([x, (x, Arrays({"k": x}), None, x)], lambda p: p[1][1].child["k"], "p[1][1][0]['k']"),
        ([x, (x, Arrays({"k": x}), None, x)], lambda p: p[1][3], "p[1][3]"),
        (Pair([x], Arrays(x)), lambda p: p.a[0], "p.a[0]"),
        (Point(x, Arrays(x)), lambda p: p.b.child, "p.b[0]"),
        (OrderedDict(b=x, a=Arrays(x)), lambda p: p["b"], "p['b']"),
    ):
        with pytest.raises(errors.ConcretizationTypeError) as caught:
            jax.jit(lambda p, get=get: int(get(p)))(value)
        assert f"the value of the argument {name}.\n" in str(caught.value)
    with pytest.raises(TypeError, match=r"at output component \['w'\], which is not"):
        jax.jit(lambda x: {"b": Arrays(x), "w": "text"})(x)


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
    made = r"created on line .*test_jit_debugging\.py:.* by the operation `mul`"
    with pytest.raises(errors.UnexpectedTracerError, match=made):
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
    assert not any("transforming" in note for note in getattr(raised.value, "__notes__", []))


@pytest.mark.parametrize("call", [
    lambda: jax.jit(lambda x: x * 2.0)(np.nan), lambda: jax.jit(lambda x: x * 2.0)(NAN),
    lambda: jax.jit(lambda x: jnp.log(x) + 1)(NAN), lambda: jax.jit(lambda x: (x + 1, jnp.nan))(3),
    lambda: jax.jit(lambda x: x)(NAN), lambda: jnp.sin(NAN)],
    ids=["scalar", "array", "two operations", "literal", "identity", "eager"])
def test_debug_nans_says_which_values_no_operation_made(call):
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as raised:
        call()
    assert "did not make it: it is among the inputs or is a literal" in str(raised.value)
    assert "encountered in mul" not in str(raised.value)


@pytest.mark.parametrize(("call", "name", "argument"), [
    (lambda: 1 - NAN, "sub", "its right operand"), (lambda: NAN - 1, "sub", "its left operand"),
    (lambda: np.nan - jnp.ones(2), "sub", "its left operand"),
    (lambda: jnp.ones(2) @ NANS, "matmul", "its right operand"),
    (lambda: NAN >= 1 or NAN % 2, "mod", "its left operand"),
    (lambda: jnp.ones(2).at[0].set(np.nan), "x.at[...].set", "the value"),
    (lambda: NANS.at[0].multiply(2), "x.at[...].multiply", "the array"),
    (lambda: 2**NAN, "power", "x2")])
def test_debug_nans_uses_the_words_of_the_user(call, name, argument):
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as raised:
        call()
    assert f"encountered in {name}. " in str(raised.value)
    assert f"It comes in with {argument}" in str(raised.value)


def test_debug_nans_of_donated_arguments():
    x = -jnp.ones(3)
    f = jax.jit(lambda x: jnp.log(x) * 2, donate_argnums=0)
    compiled = f.lower(x).compile()
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="encountered in log"):
        f(x)
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\) encountered in l"):
        f(0 * x)
    assert f(1 + 0 * x).tolist() == [0, 0, 0] and not x.is_deleted()
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="take donate_argnums away"):
        compiled(x)


def test_debug_nans_says_where_the_operation_was_made():
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as raised:
        jax.jit(lambda x: jnp.log(x) + 1)(-1.0)
    assert raised.value.__notes__[0].startswith(
        f"The value is the result of the operation made at {__file__}")
