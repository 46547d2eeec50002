"""The kinds of rules are a closed set."""

import subprocess
import sys

import numpy as np
import pytest

from pyjx.core.avals import ShapedArray
from pyjx.core.primitive import RULE_KINDS, Primitive, register
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
        assert f"      {kind}: " in Primitive.__doc__


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
    from pyjx.experimental.checkify import operations, transformation
    from pyjx.experimental.jet import _CALLS, _RULES
    from pyjx.experimental.sparse import rules

    for table in (operations._INDEXED, transformation._RULES, _RULES, _CALLS,
                  rules.RULES, rules._DENSIFYING, roofline._LINKS):
        assert table and all(isinstance(p, Primitive) for p in table)
