"""`inspect.compare`: the first operation that deviates, and no rounding that is taken for one."""

from __future__ import annotations

import linecache
import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from lowering import rules
from lowering.builder import out_aval
from pyjx import inspect, lax
from pyjx.inspect import deviations, running
from tests.oracle import programs
from tests.oracle.values import Gen

X = np.linspace(-1, 1, 8, dtype="f4")
WAYS = ["eager", "numpy-float64", {"xla_disable_hlo_passes": "fusion"}]


def plain(x):
    return jnp.tanh(jnp.sinh(x) * 2).sum()  # HERE


def looped(x):
    def body(c, i):
        grown = lax.cond(i == 2, jnp.sinh, lambda c: c * 0.5, c)  # HERE
        return jnp.tanh(c) + grown, c.sum()

    return lax.scan(body, x, jnp.arange(4.0))


def reversed_loop(x):
    return lax.scan(lambda c, y: (jnp.cos(c) + y, jnp.sinh(c + y)), 0.5, x, reverse=True)  # HERE


def differentiated(x):
    def f(x):
        y = jnp.cosh(x)  # HERE
        return (y * y).sum()
    return jax.grad(f)(x)


def batched(x):
    return jax.vmap(lambda r: jax.jit(jnp.sinh)(r).sum())(x.reshape(2, 4))  # HERE


FAULTS = {"plain": (plain, []), "looped": (looped, ["iteration 2 of scan", "branch 1 of cond"]),
          "reversed_loop": (reversed_loop, ["iteration 7 of scan, which runs backwards"]),
          "differentiated": (differentiated, []), "batched": (batched, [])}


@pytest.fixture
def wrong_rule(monkeypatch):
    """The compiled `sinh` is that of `cosh`."""
    known = rules.rules_for("cpu")
    monkeypatch.setitem(known, "sinh", known["cosh"])
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.parametrize("name", FAULTS)
def test_operation_and_line_of_planted_faults(name, wrong_rule):
    fun, steps = FAULTS[name]
    found = inspect.compare(fun, X)
    assert not found and (found.first.operation, [s.text for s in found.first.steps]) == (
        "sinh", steps), found
    line = linecache.getline(__file__, found.first.line.start_line)
    assert "HERE" in line, found
    assert found.first.found > 1000 * found.first.allowed and found.growth
    assert "compiled and numpy-float64 differ, first in sinh at" in str(found)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("fun", [plain, looped, differentiated, batched])
def test_what_is_right(fun, way):
    assert inspect.compare(fun, X, b=way)


@pytest.mark.parametrize("fun", [
    lambda x: x * jnp.exp(-lax.broadcasted_iota(jnp.float32, (3, 4), 1) / 8),
    lambda x: x * lax.integer_pow(lax.iota(jnp.float32, 4) + 50, 13),
    lambda x: x + lax.iota(jnp.bfloat16, 4) / 2])
def test_numbers_in_order_are_of_their_type(fun):
    assert "taken as they are" not in str(inspect.compare(fun, jnp.ones((3, 4)), b="numpy-float64"))
    assert inspect.compare(fun, jnp.ones((3, 4)), b="numpy-float64")


@pytest.mark.parametrize("wrap", [
    jax.checkpoint, jax.custom_jvp, jax.custom_vjp, jax.vmap,
    lambda f: lambda x: lax.scan(lambda c, x: (c, jax.checkpoint(f)(x)), 0, x)[1]])
def test_what_is_computed_again_and_has_rules_is_opened(wrap):
    def variance(x):
        return (x * x).mean() - x.mean() ** 2

    fun = wrap(variance)
    if hasattr(fun, "defjvp"):
        fun.defjvp(lambda primals, tangents: (variance(*primals), tangents[0].sum()))
    if hasattr(fun, "defvjp"):
        fun.defvjp(lambda x: (variance(x), None), lambda _, ct: (ct * jnp.ones(8),))
    x = jnp.arange(8.0) + 1e4
    whole = fun.__name__ == "variance" and wrap is not jax.vmap
    found = inspect.compare(fun, x if whole else x[None], b="numpy-float64")
    assert not found and found.lost.operation == "sub" and not found.whole


def chaotic(x, n=60):
    def body(i, x):
        return 4 * x * (1 - x)  # HERE
    return lax.fori_loop(0, n, body, x)


def cancels(x):
    y = x * x * 1e4
    z = y * y - (y - 1) * (y + 1)  # HERE
    return jnp.exp(z)


@pytest.mark.parametrize(("fun", "operation", "step"), [
    (chaotic, None, "of scan"), (cancels, "sub", None)])
def test_digits_that_are_lost(fun, operation, step):
    x = np.linspace(0.1, 0.9, 8, dtype="f4")
    found = inspect.compare(fun, x)
    assert not found and found.first is None, found
    line = linecache.getline(__file__, found.lost.line.start_line)
    assert "HERE" in line and operation in (None, found.lost.operation), found
    assert found.lost.allowed < 0.5 <= 2 * found.lost.found
    assert step is None or step in found.lost.steps[0].text
    assert "nothing can be told of compiled and numpy-float64" in str(found)
    assert inspect.compare(fun, x, b="compiled")  # there is no difference
    checked = inspect.check(inspect.trace(fun, x), "numpy-float64", [x])
    assert checked.blind == ("result",) and not checked
    assert re.fullmatch(r"check numpy-float64:\nnothing can be told of result: largest difference "
                        r"\S+, and rounding explains \S+, as much as its numbers", str(checked))


@pytest.mark.parametrize(("fun", "x"), [
    (lambda b: (-b + jnp.sqrt(b * b - 4.0)) / 2, 1e4), (jnp.sum, [1e8, 1, -1e8]),
    (lambda x: (x ** 2).mean() - x.mean() ** 2, np.arange(8) + 1e5)])
def test_digits_that_are_lost_of_what_is_little_beside_the_arguments(fun, x):
    x = jnp.array(x, "f4")
    found = inspect.compare(lambda x: fun(x), x)
    assert not found and found.first is None and found.lost is not None, found
    checked = inspect.check(inspect.trace(lambda x: fun(x), x), "numpy-float64", [x])
    assert checked.blind == ("result",) and not checked


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_gradients_that_are_0_agree(way):
    def loss(bias, table, rows):
        y = jax.nn.sigmoid(table)[rows] + bias  # the bias is taken off again
        y = (y - y.mean(0)) / jnp.sqrt(y.var(0) + 1e-5)
        return jnp.take_along_axis(jnp.tanh(y), jnp.minimum(rows, 2)[:, None], 1).sum()

    args = np.ones(3, "f4"), 50 * np.sin(np.arange(30, dtype="f4")).reshape(10, 3), np.arange(9)
    assert inspect.compare(jax.grad(loss, (0, 1)), *args, b=way)
    program = inspect.trace(jax.grad(loss, (0, 1)), *args)
    assert not inspect.check(program, "numpy-float64", args).others


def test_a_fault_is_found_where_digits_are_lost(wrong_rule):
    found = inspect.compare(lambda x: chaotic(abs(jnp.tanh(jnp.sinh(x)))), X)
    assert not found and found.first.operation == "sinh" and found.lost is None, found


def test_rounding_that_grows_is_none():
    assert inspect.compare(chaotic, np.linspace(0.1, 0.9, 8, dtype="f4"), n=10)


@pytest.mark.parametrize("name", FAULTS)
def test_programs_that_were_recorded(name, tmp_path, monkeypatch):
    fun, steps = FAULTS[name]
    right, wrong = str(tmp_path / "right.npz"), str(tmp_path / "wrong.npz")
    inspect.record(right, fun, X)
    with monkeypatch.context() as changed:
        known = rules.rules_for("cpu")
        changed.setitem(known, "sinh", known["cosh"])
        jax.clear_caches()
        inspect.record(wrong, fun, X)
    jax.clear_caches()
    assert inspect.compare(fun, X, b=right) and inspect.compare(fun, X, a=right, b=right)
    for ways in ({"b": wrong}, {"a": wrong}, {"a": right, "b": wrong}, {"a": wrong, "b": right}):
        found = inspect.compare(fun, X, **ways)
        assert not found and (found.first.operation, [s.text for s in found.first.steps]) == (
            "sinh", steps), found
        assert "HERE" in linecache.getline(__file__, found.first.line.start_line)
        assert wrong in str(found)
    with pytest.raises(ValueError, match="is of another program: add:float32"):
        inspect.compare(lambda x: x + 1, X, b=wrong)


@pytest.mark.parametrize(("fun", "x", "wrong"), [
    (lambda x: jnp.cos(jnp.sin(x) + 1), X, lambda y: y + 0.1),
    (lambda x: jnp.cos(jnp.sin(x) + 1), X, lambda y: y * np.nan),
    (lambda x: jnp.cos(jnp.sin(x) + 1), X, lambda y: y.at[3].set(np.inf)),
    (lambda n: (n * 3 + 1) * 2, np.arange(4), lambda y: y + 7),
    (lambda x: jnp.floor(jnp.sin(x) * 1000 / 3).astype(int), X, lambda y: y + 99)])
def test_what_differs_together(fun, x, wrong, monkeypatch):
    monkeypatch.setattr(deviations._Way, "run", changed(deviations._Way.run, wrong))
    found = inspect.compare(fun, x)
    assert not found and found.first is None and "No operation deviates alone" in str(found)


def changed(run, how):
    """Programs of several operations are wrong, if they are not run by NumPy."""
    def wrong(self, key, closed, args):
        outs = run(self, key, closed, args)
        several = len(closed.eqns) > 1 and len(outs) == 1 and self.name == "compiled"
        return list(map(how, outs)) if several else outs

    return wrong


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("n", [8, 1000])
def test_sums_that_cancel_agree(n, way):
    def sums(x, rate):
        return x.sum(), jnp.tanh(jnp.sinh(x) * 2).sum() * rate, x @ jnp.cos(x), jax.grad(
            lambda x: jax.nn.softmax(x).sum())(x)

    found = inspect.compare(sums, np.linspace(-1, 1, n, dtype="f4"), np.float32(1e-3), b=way)
    assert found, found


def test_integers_of_rounded_numbers_agree():
    x = (np.arange(100) / 10).astype("f4")
    found = inspect.compare(lambda x: jnp.floor(x * x * 100 / 3 * 3).astype(int), x)
    assert found, found
    assert inspect.compare(lax.digamma, np.float32(1.4616321))  # where it is 0, by a difference


def test_what_leaves_the_range_of_numbers():
    def f(x):
        y = jnp.exp(x)  # HERE
        return y / (1 + y)

    found = inspect.compare(f, np.float32(100))
    assert not found and found.first is None and found.lost.operation == "exp", found
    assert "HERE" in linecache.getline(__file__, found.lost.line.start_line)


def left(x):
    return lax.fori_loop(0, 12, lambda i, c: c * 1e-5, x) * 1e30 * 1e27  # HERE


@pytest.mark.parametrize(("fun", "x", "operation", "leaves"), [
    (lambda v: jnp.exp(-v) * jnp.exp(v - 10), 90, "exp", "underflows to 0 in float32"),  # HERE
    (lambda v: jnp.exp(-v) * jnp.exp(v - 10), 110, "exp", "underflows to 0 in float32"),  # HERE
    (lambda v: jnp.exp(-v) * jnp.exp(v), [1, 90, 3], "exp", "underflows to 0 in float32"),  # HERE
    (lambda v: v * 1e-30 * 1e-10 * 1e30, 1, "mul", "underflows to 0 in float32"),  # HERE
    (lambda d: jnp.prod(jnp.exp(-d**2 / 2)) * 1e30, [3.02] * 20, "reduce_prod",  # HERE
     "underflows to 0 in float32"),
    (lambda x: jnp.log(jnp.exp(x).sum()), [80, 90], "exp", "overflows in float32"),  # HERE
    (lambda x: jnp.exp(x) / jnp.exp(x).sum(), [1, 100], "exp", "overflows in float32"),  # HERE
    (jax.grad(lambda x: jnp.log(jnp.exp(x).sum())), [80, 90], "exp",  # HERE
     "overflows in float32"),
    (lambda x: jnp.log(abs(jnp.exp(x + 1j))), 100, "exp", "overflows in complex64"),  # HERE
    (lambda x: (x.astype("f2") * 1e-4) * 1e4, 1e-5, "mul", "underflows to 0 in float16"),  # HERE
    (left, 1, "mul", "underflows to 0 in float32")])
def test_numbers_that_leave_their_range_are_the_cause(fun, x, operation, leaves):
    x = jnp.array(x, "f4")
    found = inspect.compare(fun, x, a="eager")
    assert not found and found.first is None, found
    assert (found.lost.operation, found.lost.leaves) == (operation, leaves), found
    assert "HERE" in linecache.getline(__file__, found.lost.line.start_line)
    assert "deviates" not in str(found) and "rounding" not in str(found)
    assert [step.text for step in found.lost.steps] == ["iteration 7 of scan"] * (fun is left)


SMALL, LARGE = [1e-3] * 64, [1e3] * 64


@pytest.mark.parametrize(("fun", "x", "leaves"), [
    (jnp.prod, LARGE + LARGE + SMALL + SMALL, "overflows in float32"),
    (jnp.cumprod, LARGE + SMALL, "overflows in float32"),
    (lambda x: jnp.cumprod(x)[-1], SMALL + LARGE, "underflows to 0 in float32"),
    (jnp.sum, [3e38] * 20 + [-3e38] * 20, "overflows in float32"),
    (lambda x: x @ x[::-1], [1e20, 1e20, -1e20, 1e20], "overflows in float32"),
    (jax.grad(lambda x: jnp.cumprod(x)[-1]), LARGE + SMALL, "overflows in float32"),
    (lambda x: jnp.convolve(x, x[:2], "valid"), [1e20, -1e20, -1e20], "overflows in float32")])
def test_partial_results_that_leave_their_range_are_told_as_such(fun, x, leaves):
    found = inspect.compare(fun, jnp.array(x, "f4"))
    assert not found and found.first is None, found
    assert found.lost.leaves == f"(at worst, on the way) {leaves}", found
    assert (found.lost.found < found.lost.allowed) == leaves.startswith("underflows")
    assert f"{found.lost.found:.3g} (at worst" in str(found) and "deviates" not in str(found)


@pytest.mark.parametrize(("operation", "value", "fun"), [
    ("reduce_sum", np.nan, jnp.sum), ("reduce_prod", np.inf, jnp.prod),
    ("reduce_prod", 0, jnp.prod), ("dot_general", np.nan, lambda x: x @ x),
    ("cumsum", np.inf, jnp.cumsum), ("cumprod", 0, jnp.cumprod)])
def test_faults_of_sums_and_products_of_small_numbers_are_no_matter_of_range(
        operation, value, fun, monkeypatch):
    monkeypatch.setitem(rules.rules_for("cpu"), operation, rules.LoweringRule(
        lambda block, eqn, *_: block.constant(value, out_aval(eqn)), None, *[False] * 4))
    jax.clear_caches()
    found = inspect.compare(fun, jnp.linspace(0.9, 1.1, 64))
    jax.clear_caches()
    assert not found and found.first.operation == operation and found.lost is None, found


def test_checks_of_numbers_that_leave_their_range_differ():
    x = jnp.array([80, 90], "f4")
    checked = inspect.check(
        inspect.trace(lambda x: jnp.log(jnp.exp(x).sum()), x), "numpy-float64", [x])
    assert not checked and not checked.blind and "DIFFERS" in str(checked)


def test_numbers_that_leave_their_range_without_harm_are_no_cause(wrong_rule):
    found = inspect.compare(lambda x: jnp.sinh(x) + jnp.exp(-100 + x), X)
    assert found.first.operation == "sinh" and found.lost is None, found
    found = inspect.compare(lambda x: cancels(abs(x) + jnp.exp(x - 100)), X)
    assert found.lost is None or not found.lost.leaves, found


def test_arguments_that_have_lost_digits_are_0():
    found = inspect.compare(lambda x: x * 1e30, 1e-39)
    assert found.lost.leaves == "underflows to 0 in float32", found


def test_numbers_that_become_complex_are_rounded_as_such():
    found = inspect.compare(lambda x: jnp.sin(abs((x + 1j) * 1e9)), 0.3)
    assert found.lost.operation == "sin", found


def test_large_arguments_hide_nothing(wrong_rule):
    mask = np.float32(-1e9)
    found = inspect.compare(lambda x, m: (plain(x), m), X, mask)
    assert not found and found.first.operation == "sinh", found
    found = inspect.compare(lambda x, m: (chaotic(abs(jnp.tanh(jnp.sinh(x)))), m), X, mask)
    assert not found and found.first.operation == "sinh", found
    assert not inspect.check(inspect.trace(lambda x, m: (jnp.sinh(x), m), X, mask),
                             "numpy-float64", [X, mask])


def test_files_are_of_the_same_arguments(tmp_path):
    path = str(tmp_path / "one.npz")
    key, x = jax.random.key(0), jnp.array([1, np.nan], "bfloat16")
    inspect.record(path, lambda k, x: x * jax.random.uniform(k), key, x)
    assert inspect.compare(lambda k, x: x * jax.random.uniform(k), key, x, b=path)
    for i, args in enumerate([(jax.random.key(1), x), (key, x * 2)]):
        with pytest.raises(ValueError, match=f"recorded with another argument {i}"):
            inspect.compare(lambda k, x: x * jax.random.uniform(k), *args, b=path)
    missing = tmp_path / "none.npz"
    with pytest.raises(ValueError, match=r"none\.npz. is no file of inspect\.record that can be"):
        inspect.compare(jnp.sin, X, b=str(missing))
    missing.write_text("text")
    with pytest.raises(ValueError, match=r"none\.npz. is no file of inspect\.record that can be"):
        inspect.compare(jnp.sin, X, a=str(missing))


def test_tangents_of_integers_and_dead_operations():
    assert inspect.compare(lambda x: jax.vjp(lambda n: n * 1.5, 3)[1](x), np.float32(1))

    @jax.custom_vjp
    def f(x):
        return jnp.tanh(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g,))
    assert inspect.compare(lambda x: jax.jvp(lambda x: (f(x), x * 2)[1], (x,), (x,)), X)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_numpy_divides_integers_as_xla_does(dtype):
    info = np.iinfo(dtype)
    values = np.unique(np.array([info.min, info.max, info.max // 2, *range(8), 100], dtype))
    if info.min:
        values = np.concatenate([values, -values[1:]])
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    assert inspect.check(inspect.trace(lax.div, x, y), "numpy-float64", [x, y])
    program = inspect.trace(lambda x, y: (x // y, x % y), x, y)
    assert inspect.check(program, "numpy-float64", [x, y])


def test_results_that_are_nan_in_both_are_told():
    def f(x):
        return jnp.log(x), x.sum(), jnp.log(x).sum()

    x = np.arange(-3, 3, dtype="f4")
    told = "; nan in both: 3 numbers of result 0; nan in both: 1 number of result 2"
    for ways in ({}, {"b": "eager"}, {"b": "whole"}):
        found = inspect.compare(f, x, **ways)
        assert found and found.nans == (3, 0, 1) and str(found).endswith(f"agree{told}")
    lines = str(inspect.check(inspect.trace(f, x), "numpy-float64", [x])).splitlines()
    assert [line.partition("; ")[2] for line in lines[1:]] == [
        "nan in both: 3 numbers", "", "nan in both: 1 number"]


def test_wide_integers_that_differ_by_one_differ():
    a = np.array([2**60, 2**63 - 9])
    assert running.compared(a, a)[0] and not running.compared(a, a + 1)[0]
    assert not running.compared(a.astype("uint64"), a.astype("uint64") + np.uint64(1))[0]


def test_loops_that_give_keys_are_checked():
    def split(x):
        return lax.scan(lambda k, _: (jax.random.fold_in(k, 1), k), jax.random.key(0), x)[1]

    program = inspect.trace(lambda x: jax.random.key_data(split(x)), np.ones(3, "f"))
    assert inspect.check(program, "numpy-float64")


def test_integers_that_become_numbers_are_divided_as_such():
    assert inspect.compare(lambda n: n.sum().astype("f4") / 5, np.array([7, -2, 1]))


def test_ways_are_checked():
    with pytest.raises(ValueError, match="neither 'compiled', 'eager', 'numpy-float64', a file"):
        inspect.compare(jnp.sin, X, b="nowhere")
    with pytest.raises(ValueError, match="compared with a='compiled' alone, got a='eager'"):
        inspect.compare(jnp.sin, X, a="eager", b="whole")
    assert inspect.compare(jnp.sin, X, a="cpu", b="eager")


def compare_generated(number, way):
    """The comparison of a program of the oracle's; None where it is refused."""
    if number == 2432:  # a fifth derivative that takes 10 GB
        return None
    made = programs.program(Gen(f"compare/{number}"))
    space = {"np": np, "jnp": jnp, "jax": jax, "lax": lax, "nn": jax.nn, "random": jax.random,
             "tree_util": jax.tree_util, "__name__": "program"}
    call = made.body[-1].value
    try:
        exec("\n".join([line for s in made.body[:-1] for line in s.lines()]), space)
        fun, args = eval(call.function, space), [eval(x.render(), space) for x in call.args]
        jax.jit(fun).lower(*args)
    except (AttributeError, TypeError, ValueError):
        return None
    return inspect.compare(fun, *args, b=way)


@pytest.mark.parametrize("numbers", [
    range(6), pytest.param(range(6, 3000), marks=pytest.mark.slow)], ids=["a few", "all"])
def test_generated_programs_agree(numbers):
    found = [compare_generated(i, WAYS[1 + i % 2]) for i in numbers]
    compared = [x for x in found if x is not None]
    assert len([x for x in compared if not x]) <= len(compared) / 100


@pytest.mark.parametrize("args", [(jnp.ones(4),), (jnp.ones((3, 1)),), (jnp.ones(3, int),),
                                  (jnp.ones(3), 1.0), ()])
def test_programs_without_operations_are_of_the_recorded_types(tmp_path, args):
    path = str(tmp_path / "first.npz")
    jax.inspect.record(path, lambda *x: x, jnp.ones(3))
    assert jax.inspect.compare(lambda *x: x, jnp.ones(3), b=path)
    with pytest.raises(ValueError, match="is of another program, with an argument"):
        jax.inspect.compare(lambda *x: x, *args, b=path)
