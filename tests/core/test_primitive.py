"""The kinds of rules are a closed set."""

import re
import subprocess
import sys

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core.avals import ShapedArray
from pyjx.core.primitive import RULE_KINDS, Primitive, register
from pyjx.extend.core import Primitive as OpenPrimitive
from pyjx.interpreters import mlir
from pyjx.lax import neg_p


def test_unknown_kinds_are_refused():
    with pytest.raises(TypeError, match="'test_p': there is no kind of rule named 'jpv'"):
        Primitive("test_p", jpv=lambda: None)
    with pytest.raises(TypeError, match="no kind of rule named 'lowering'"):
        Primitive("test_p").define(lowering=lambda: None)
    with pytest.raises(AttributeError):
        neg_p.jpv = lambda: None


def test_a_rule_is_given_once_and_is_a_function():
    with pytest.raises(TypeError, match="'neg' has a rule 'batch' already"):
        neg_p.define(batch=lambda: None)
    with pytest.raises(TypeError, match="the rule 'jvp' must be callable, got 3"):
        Primitive("test_p", jvp=3)


def test_every_kind_is_documented():
    for kind in RULE_KINDS:
        assert f"\n{kind}: " in re.sub(r"\n +", "\n", Primitive.__doc__)


def test_answers_of_shape_rules_are_kept_and_bounded(monkeypatch):
    asked = []

    def shape_rule(x, *, n):
        asked.append(n)
        return x

    monkeypatch.setattr("pyjx.core.primitive.OUT_AVALS_CAPACITY", 3)
    test_p = Primitive("test_p", shape_rule=shape_rule)
    aval = ShapedArray((2,), np.float32)
    for n in (0, 0, 1):
        assert test_p.out_avals((aval,), {"n": n}) is aval
    assert asked == [0, 1]
    for n in range(10):
        test_p.out_avals((aval,), {"n": n})
    assert len(test_p._out_avals) <= 3


def test_names_are_given_once():
    with pytest.raises(ValueError, match="primitive named 'neg' already"):
        register(Primitive("neg"))


def test_pickles_are_read_in_a_new_process():
    write = "import pickle, pyjx.lax as lax; print(pickle.dumps([lax.while_p, lax.neg_p]).hex())"
    data = subprocess.run([sys.executable, "-c", write], capture_output=True, text=True, check=True)
    read = f"import pickle; print(pickle.loads(bytes.fromhex({data.stdout.strip()!r})))"
    done = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True)
    assert done.stdout == "[while, neg]\n", done.stderr


def test_tables_of_rules_are_kept_by_operations():
    """A name that is misspelt, or an operation that is renamed, is an error where it is read."""
    from pyjx.experimental import roofline
    from pyjx.experimental.checkify import checks, transformation
    from pyjx.experimental.jet import _CALLS, _RULES
    from pyjx.experimental.sparse import transform

    for table in (checks._INDEXED, transformation._RULES, _RULES, _CALLS,
                  transform.RULES, transform._DENSIFYING, roofline._LINKS):
        assert table and all(isinstance(p, Primitive) for p in table)


@pytest.fixture
def filled_p():
    """An operation that takes its parameter as it is."""
    primitive = OpenPrimitive("filled")
    primitive.def_abstract_eval(lambda x, *, by: x.update(weak_type=False))
    mlir.register_lowering(primitive, mlir.lower_fun(
        lambda x, *, by: jnp.full_like(x, repr(by).count("-") + 2 * repr(by).count("True")),
        multiple_results=False))
    return primitive


PAIRS = [(0.0, -0.0), (1, True), (1.0, 1), ((1,), (True,)), ((0.0,), (-0.0,))]


@pytest.mark.parametrize(("one", "other"), [*PAIRS, *[pair[::-1] for pair in PAIRS]])
def test_parameters_that_are_equal_but_not_the_same_make_other_programs(filled_p, one, other):
    x = jnp.ones(2)

    def value(by):
        return repr(by).count("-") + 2 * repr(by).count("True")

    for by in (one, other):
        assert filled_p.bind(x, by=by).tolist() == [value(by)] * 2

    def blocks(by):  # which repeat, so that they become one function where they are one
        def f(x):
            for which in (one, other) * 8:
                x = filled_p.bind(x, by=which if by is None else by) + jnp.sin(x) * jnp.cos(x)
            return x
        return jax.jit(f)

    y = np.ones(2)
    for by in (one, other) * 8:
        y = value(by) + np.sin(y) * np.cos(y)
    np.testing.assert_allclose(blocks(None)(x), y, rtol=1e-5)


def test_a_new_shape_rule_is_that_of_values_too():
    primitive = OpenPrimitive("reshaped")
    mlir.register_lowering(primitive, mlir.lower_fun(
        lambda x, *, n: jnp.zeros(primitive.shape_rule(jax.typeof(x), n=n).shape),
        multiple_results=False))
    primitive.def_abstract_eval(lambda x, *, n: x.update(shape=(n,)))
    assert primitive.bind(jnp.ones(2), n=3).shape == (3,)
    primitive.def_abstract_eval(lambda x, *, n: x.update(shape=(n, n)))
    assert primitive.bind(jnp.ones(2), n=3).shape == (3, 3)
