"""Dimension expressions, what is known of them, and their text."""

import copy
import math
import pickle
import sys

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import export
from pyjx.core import frames
from pyjx.core.symbolic.solving import UnexpectedDimVar
from pyjx.errors import InconclusiveDimensionOperation

a, b = export.symbolic_shape("a, b")


@pytest.mark.parametrize(("text", "expected"), [
    ("b", "b"), ("2*b + 1", "2*b + 1"), ("a*b - 3", "a*b - 3"), ("a^2", "a^2"), ("a**2", "a^2"),
    ("max(a, b)", "max(a, b)"), ("min(a, 3)", "min(a, 3)"), ("floordiv(a, 2)", "floordiv(a, 2)"),
    ("a // 2", "floordiv(a, 2)"), ("mod(b, 3)", "mod(b, 3)"), ("b % 3", "mod(b, 3)"),
    ("-a + 4", "- a + 4"), ("3*a*b^2 + a", "3*a*b^2 + a"), ("a + b", "b + a"),
    ("(a + 1)*2", "2*a + 2"), ("(a + b)*(a - b)", "- b^2 + a^2"), ("7", "7"), ("a - a", "0"),
    ("non_negative(a - 2)", "max(a - 2, 0)"), ("non_negative(a)", "a"), ("+ 5", "5"),
    ("+a - b", "- b + a"), ("a + -2", "a - 2"), ("-2*a^2 + -1*b", "- 2*a^2 - b"), ("a*-2", "- 2*a"),
    ("a - -2", "a + 2"), ("-a^2", "- a^2"), ("mod(-a, 3)", "mod(- a, 3)"),
])
def test_text(text, expected):
    d, = export.symbolic_shape(text)
    assert str(d) == expected
    assert str(export.symbolic_shape(expected)[0]) == expected  # it can be read again


def test_formats():
    assert f"{a - 2:>8}|{a:_<3}|{b}|{b!r:4}" == "   a - 2|a__|b|b   "
    for spec in ("d", ",", ".2f", ">8d"):
        with pytest.raises(InconclusiveDimensionOperation, match=f"'a' .* the format '{spec}'"):
            format(a, spec)


@pytest.mark.parametrize(("computed", "expected"), [
    (b // 1, "b"), ((4 * b) // 2, "2*b"), ((b * b) // b, "b"), ((4 * b + 3) // 2, "2*b + 1"),
    (((b + 1) * 4) // (b + 1), "4"), ((b * b + 2 * b + 1) // (b + 1), "b + 1"), (b % 1, "0"),
    ((2 * b + 1) % 2, "1"), ((2 * b) % b, "0"), (b ** 3, "b^3"), (-b, "- b"), (3 - b, "- b + 3"),
    ((b + 7) // 4, "floordiv(b + 3, 4) + 1"), ((a * b + a) % a, "0"), (7 // b, "floordiv(7, b)"),
    (divmod(b, 2)[1], "mod(b, 2)"), (+b, "b"),
    (b - b // 2 * 2 - b % 2, "- mod(b, 2) - 2*floordiv(b, 2) + b"),
])
def test_arithmetic(computed, expected):
    assert str(computed) == expected


@pytest.mark.parametrize("text", [
    "b >= 1", "b + 1 > b", "2*b >= b + 1", "b*b >= b", "(3*b)//2 <= 2*b", "(b + 1)//2 <= b",
    "(b + 1)//2 >= 1", "-(-b//3)*3 >= b", "b - b//2 >= 0", "b % 3 < 3", "b % 5 >= 0",
    "a.maximum(b) >= a", "a.minimum(b) <= b", "a*b >= a", "a*b + a >= b + a", "b != 0",
    "(b + a)//2 <= a + b", "0 <= b", "b == b + 0", "b.maximum(1) == b", "(2*b)//b == 2",
    "a.maximum(b) - a.minimum(b) >= 0", "a.minimum(b + 3).maximum(b) <= b + 3",
    "a*b.maximum(3) >= 3*a", "(a + 2).minimum(b + 2) >= 3", "a.maximum(7).minimum(9) <= 9",
    "3*a.maximum(b) >= a + b",
])
def test_what_always_holds(text):
    assert eval(text) is True


@pytest.mark.parametrize("text", ["b < 1", "b == 0", "b + 1 == b", "b == 2", "a == b", "b <= 0",
                                  "b == '1'", "2*b < b", "b % 2 > 1"])
def test_what_is_not_always_true(text):
    assert eval(text) is False


@pytest.mark.parametrize("text", ["b > 1", "a >= b", "b < 5", "b % 2 == 0 or b % 2 > 0"])
def test_inconclusive_comparisons(text):
    with pytest.raises(InconclusiveDimensionOperation, match="is inconclusive"):
        eval(text)


def test_constants_are_wanted():
    with pytest.raises(InconclusiveDimensionOperation, match="'b' used in a context that requires"):
        int(b)
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        range(b)
    with pytest.raises(ZeroDivisionError, match="dimension b by zero"):
        b // 0
    with pytest.raises(NotImplementedError, match=r"outside jax\.export"):
        b * 0.5


def test_constraints():
    m, n, k = export.symbolic_shape("m, n, k", constraints=[
        "m >= n", "mod(m, 4) == 0", "n <= 8", "k == 2*n"])
    assert m >= n and m % 4 == 0 and m // 4 * 4 == m
    assert n < 9 and k == 2 * n and k // 2 == n
    assert export.symbolic_dim_bounds(n) == (1, 8)
    assert export.symbolic_dim_bounds(k) == (2, 16)
    assert export.symbolic_dim_bounds(3) == (3, 3)
    assert export.symbolic_dim_bounds(m - n)[0] == 0


def test_bounds_that_are_not_known_are_infinite():
    n, m = export.symbolic_shape("n, m")
    assert export.symbolic_dim_bounds(2 * n + 1) == (3, math.inf)
    assert export.symbolic_dim_bounds(-n) == (-math.inf, -1)
    low, high = export.symbolic_dim_bounds(n - m)
    assert low < 5 < high
    for wrong in (2.5, "n", None):
        with pytest.raises(TypeError, match="symbolic_dim_bounds: dimension must be an integer"):
            export.symbolic_dim_bounds(wrong)


def test_equalities_of_multiples():
    u, v = export.symbolic_shape("u, v", constraints=["3*u == v"])
    assert v >= u and v >= 2 * u and 4 * u >= v + 1 and v != 2 * u and v == 3 * u
    with pytest.raises(InconclusiveDimensionOperation):
        assert v >= 3 * u + 1 or v < 4
    n, = export.symbolic_shape("n", constraints=["mod(n, 3) == 0"])
    assert n == 3 * (n // 3) and n >= n // 3 and n >= 2 * (n // 3)


@pytest.mark.parametrize(("constraints", "right", "wrong"), [
    (["a == b"], (3, 3), (3, 4)), (["b == a"], (3, 3), (3, 4)), (["b == 2*a"], (2, 4), (2, 3)),
    (["a == 4"], (4, 3), (3, 3)), (["a >= 3", "a == b"], (3, 3), (2, 2)),
    (["b == a + 1", "mod(b, 2) == 0"], (3, 4), (2, 3)),
    (["a == b", "mod(a, 2) == 0"], (4, 4), (3, 3)),
])
def test_variables_that_stand_for_others(constraints, right, wrong):
    scope = export.SymbolicScope(constraints)
    x = jax.ShapeDtypeStruct(export.symbolic_shape("a, b", scope=scope), np.float32)
    e = export.deserialize(export.export(jax.jit(lambda x: 2 * x))(x).serialize())
    assert e.call(np.ones(right, np.float32)).shape == right
    with pytest.raises(ValueError, match=r"do not match|mismatch"):
        e.call(np.ones(wrong, np.float32))


def test_inconclusive_comparisons_show_the_constraints():
    x, _ = export.symbolic_shape("x, y", constraints=["x >= 6", "y <= x"])
    with pytest.raises(InconclusiveDimensionOperation, match=r"x >= 6\n +y <= x"):
        assert x >= 8


@pytest.mark.parametrize(("constraint", "message"), [
    ("a", "must contain one of '==' or '>=' or '<='"), ("a >= a + 1", "Unsatisfiable"),
    ("a <= 0", "Unsatisfiable"), ("a + b == a*b + 1", "must be a single term"),
    ("a >= b >= 1", "one"),
])
def test_wrong_constraints(constraint, message):
    with pytest.raises(ValueError, match=message):
        export.symbolic_shape("a, b", constraints=[constraint])


def test_a_text_is_no_sequence_of_constraints():
    with pytest.raises(ValueError, match="sequence of strings"):
        export.SymbolicScope("a >= 1")


def test_placeholders():
    assert export.symbolic_shape("a, ...", like=(1, 2, 3))[1:] == (2, 3)
    assert export.symbolic_shape("_, _", like=(1, 2)) == (1, 2)
    assert export.symbolic_shape(None, like=(4,)) == (4,)
    assert export.symbolic_shape("()") == export.symbolic_shape("") == ()
    assert list(map(str, export.symbolic_shape("(a, b)"))) == ["a", "b"]
    assert list(map(str, export.symbolic_shape("(a,)"))) == ["a"]


@pytest.mark.parametrize(("text", "message"), [
    ("a, b c", "in dimension 2.*found 'c'.*remaining 'c'"), ("a, *", "in dimension 1"),
    ("a +", "found the end"), ("a^b", "an integer"), ("a^99999", "too large"), ("a$", "found"),
    ("(" * 5000, "nested too deeply"), ("9" * 40, "too large"), ("a" * 100000, "too long"),
    ("floordiv(a)", "2 operands"), ("a // 0", "divides by zero"), ("...", "like"), ("_", "like"),
    ("a + (b", r"'\)'"), ("mod(a, 0)", "zero"),
])
def test_wrong_texts(text, message):
    with pytest.raises(ValueError, match=message):
        export.symbolic_shape(text)


def test_wrong_ranks():
    with pytest.raises(ValueError, match="2 dimensions"):
        export.symbolic_shape("a, b", like=(1, 2, 3))


def test_scopes_do_not_mix():
    other, = export.symbolic_shape("b")
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        b + other
    assert b != other
    scope = export.SymbolicScope(("n >= 4",))
    n, = export.symbolic_shape("n", scope=scope)
    m, = export.symbolic_shape("n - 4", scope=scope)
    assert n - 4 == m >= 0
    with pytest.raises(ValueError, match="Cannot specify both a `scope` and `constraints`"):
        export.symbolic_shape("n", scope=scope, constraints=["n >= 2"])
    assert "n >= 4" in str(scope)


def test_scopes_name_the_line_of_the_program(monkeypatch):
    line = sys._getframe().f_lineno + 1
    assert str(export.SymbolicScope()).endswith(f" created at {__file__}:{line}")
    # a library on top has excluded its own lines
    monkeypatch.setattr(frames, "excluded", [*frames.excluded, __file__])
    monkeypatch.setattr(frames, "_is_internal_file", {})
    assert __file__ not in str(export.SymbolicScope())


def test_values_by_substitution():
    d, = export.symbolic_shape("floordiv(a, 2)*b + mod(a, 3) - max(a, b) + min(a, b)^2")
    assert d.evaluate({"a": 7, "b": 4}) == 3 * 4 + 1 - 7 + 16


def test_hashing_and_copies():
    assert hash(b + 1) == hash(1 + b)
    assert len({hash(d) for d in (b - 1, b - 2, b + 1, -b, -2 * b, b)}) == 6
    assert {b + 1: 1}[b + 1] == 1
    assert copy.deepcopy(b) is b
    assert str(pickle.loads(pickle.dumps(2 * b + 1))) == "2*b + 1"


def test_args_specs():


    specs = export.symbolic_args_specs(
        (np.ones((3, 4)), {"w": np.ones((4, 2), np.int32)}), ("n, ...", {"w": None}))
    assert str(specs[0].shape) == "(n, 4)" and specs[1]["w"].shape == (4, 2)
    assert specs[1]["w"].dtype == np.int32
    x, y = export.symbolic_args_specs((np.ones((3, 4)), np.ones((3, 2))), "n, ...")
    assert x.shape[0] == y.shape[0]
    x, y = export.symbolic_args_specs((np.ones((3, 4)), np.ones((3, 2))), ["n, ...", "n, ..."])
    assert x.shape[0] == y.shape[0]
    with pytest.raises(ValueError, match="no prefix"):
        export.symbolic_args_specs((np.ones(3),), ("a", "b"))
    with pytest.raises(ValueError, match="dimension 1: different size 5 for known dimension"):
        export.symbolic_args_specs((np.ones((3, 4)),), ("n, 5",))


@pytest.mark.parametrize(("text", "like", "message"), [
    ("a, 4", (2, 3), "in dimension 1: different size 4 for known dimension"),
    ("a - a + 2", (3,), "in dimension 0: different size 2 for known dimension"),
    ("a, _", (2, None), "in dimension 1: unexpected placeholder for unknown dimension"),
    ("...", (2, None), "in dimension 1: unexpected placeholder for unknown dimension"),
])
def test_what_is_known_of_an_argument_is_not_contradicted(text, like, message):
    with pytest.raises(ValueError, match=message):
        export.symbolic_shape(text, like=like)


@pytest.mark.parametrize("f", [
    lambda: jnp.ones((a,)), lambda: jnp.full((2, a), 3), lambda: jnp.arange(a),
    lambda: jnp.broadcast_to(jnp.ones(1), (a,)), lambda: jax.jit(lambda: jnp.ones((2 * a,)))(),
    lambda: jax.random.normal(jax.random.key(0), (a,)), lambda: jnp.ones(3)[:a],
    lambda: jnp.zeros_like(jax.ShapeDtypeStruct((a,), jnp.float32)),
    lambda: jax.vmap(lambda: 1.0, axis_size=a)()], ids=range(9))
def test_programs_that_run_have_no_sizes_that_are_not_known(f):
    with pytest.raises(UnexpectedDimVar, match="dimension variable 'a' that is not appearing"):
        f()
    assert jax.eval_shape(f) is not None


def test_programs_of_symbolic_arguments_are_not_compiled():
    lowered = jax.jit(lambda x: x * 2).lower(jax.ShapeDtypeStruct((a,), jnp.float32))
    with pytest.raises(ValueError, match="the program's arguments have symbolic dimensions"):
        lowered.compile()
