"""`inspect.find`: the operation and the line of the first bad value."""

from __future__ import annotations

import linecache
import subprocess
import sys

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import inspect, lax
from pyjx.core.frames import shown_path
from pyjx.experimental import io_callback
from pyjx.experimental import pallas as pl
from pyjx.inspect import finding
from pyjx.runtime import ledger
from tests.wrong.faults import FAULTS


@pytest.mark.parametrize("name", FAULTS)
def test_operation_and_line_of_planted_faults(name):
    fun, args, operation, what, steps = FAULTS[name]
    found = inspect.find(fun, *args, what=what)
    line = linecache.getline(found.line.file_name, found.line.start_line)
    assert (found.operation, "HERE" in line) == (operation, True), f"{found}\n{line}"
    assert tuple([step.text for step in found.steps]) == steps


def test_large_programs_are_looked_at_by_flags(monkeypatch):
    monkeypatch.setattr(finding, "MOST_BYTES", 0)
    for name in ("in_a_long_program", "behind_a_mask", "in_a_branch_in_a_scan", "where_under_grad"):
        test_operation_and_line_of_planted_faults(name)


def test_what_is_told_of_it():
    found = inspect.find(jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0).sum()),
                         jnp.arange(4.0))
    assert found.transformation == "the transpose of the derivative" and found.element == (0,)
    first, second = found.operands
    assert (first.there, second.there, second.infs, second.nans) == (0, np.inf, 1, 0)
    text = str(found)
    assert "mul makes the first nan, at" in text and "0 times inf is nan" in text
    assert "operand 1: float32[4], from 0.288675 to 0.5, 1 inf of 4, inf there" in text


def test_the_element_of_a_batch():
    found = inspect.find(jax.vmap(lambda x: jnp.log(x), 1, 1), jnp.ones((2, 4)).at[1, 3].set(-1))
    assert found.element == (1, 3) and found.transformation == "a batch"
    assert "at element [1, 3] of its result" in str(found)


def test_values_that_come_in():
    found = inspect.find(lambda weights, x: weights * x, jnp.ones(2), jnp.array([1, np.nan]))
    assert (found.operation, found.argument, found.element) == (None, "x", (1,))
    assert "comes in with x, at element [1]" in str(found) and bool(found)
    looped = inspect.find(lambda c, x: lax.scan(lambda c, x: (c, c + x), c, x),
                          jnp.float32(0), jnp.array([1, np.nan]))
    assert looped.argument == "x"
    carried = inspect.find(lambda c: lax.fori_loop(0, 4, lambda i, c: c + 1, c), np.nan)
    assert carried.argument == "c"
    constant = jnp.array([1, np.inf])
    assert inspect.find(lambda x: x + constant, 1.0, what="inf").argument.startswith("a constant")


@pytest.mark.parametrize(("fun", "operation"), [
    (jax.grad(lambda x: jnp.where(x > 0, x * jnp.log(x), 0.0)), "log"),
    (lambda x: jnp.exp(x + 500) - jnp.exp(x + 500), "exp"),
    (lambda x: jax.lax.fori_loop(0, 5, lambda i, c: c * 1e30, x + 1) * x, "mul"),
    (lambda x: x / x, None), (lambda x: (x / x, 1 / x), "div"),
    (lambda x: jnp.where(jnp.array([x - 1, x]) < 0, jnp.log(jnp.array([x - 1, x])), 0), None),
    (lambda x: jax.jit(lambda x: jnp.exp(x + 500) - jnp.exp(x + 500))(x) if x == 0 else x, "exp")])
def test_an_infinite_value_that_a_nan_comes_of(fun, operation):
    found = inspect.find(fun, 0.0, what="inf")
    assert found.operation == operation and bool(found) == (operation is not None)
    assert "0 times inf" not in str(found)


def _less_itself(c):
    return jnp.exp(c) - jnp.exp(c)


@pytest.mark.parametrize("fun", [
    lambda x: lax.scan(lambda c, _: (c * 3, _less_itself(c)), x, None, length=6),
    lambda x: lax.scan(lambda c, _: (c * 3, _less_itself(c)), x, None, length=6)[1].sum(),
    lambda x: lax.fori_loop(0, 6, lambda i, c: (c[0] * 3, c[1] + _less_itself(c[0])), (x, 0.0)),
    lambda x: lax.while_loop(
        lambda c: c[0] < 400, lambda c: (c[0] * 3, c[1] + _less_itself(c[0])), (x, 0.0)),
    lambda x: jax.vmap(lambda x: lax.scan(lambda c, _: (c * 3, _less_itself(c)), x, None, length=6)
                       )(x[None])])
def test_an_infinite_value_that_a_nan_of_a_loop_comes_of(fun):
    found = inspect.find(fun, jnp.float32(2), what="inf")
    assert (found.operation, found.steps[0].text[:11]) == ("exp", "iteration 4"), found
    assert not found.notes


def test_where_there_is_nothing():
    found = inspect.find(lambda x: x + 1, 1.0)
    assert not found and str(found) == "No nan was found."
    assert not inspect.find(lambda x: jnp.where(x > 9, jnp.log(-x), 0.0), 1.0)  # it is kept out


@pytest.mark.parametrize(("fun", "x", "what", "operation"), [
    (lambda x: 1 / jnp.exp(x), 100.0, "inf", "exp"),
    (lambda x: jnp.where(x > 9, jnp.log(-x), 0.0), 1.0, "nan", "log"),
    (lambda x: jnp.exp(jnp.where(x > 9, x, -jnp.inf)), 1.0, "inf", None),
    (lambda x: jnp.isinf(x + 1), np.inf, "inf", None)])
def test_what_no_result_shows_is_told_of(fun, x, what, operation):
    found = inspect.find(fun, jnp.float32(x), what=what)
    told = f"only what the results show is looked for: {operation} at {__file__}"
    assert not found
    assert (told.replace(__file__, shown_path(__file__)) in str(found)) == bool(operation)
    assert bool(found.notes) == bool(operation)


def test_loops_that_were_not_opened_are_told_of():
    found = inspect.find(lambda x: lax.scan(lambda c, a: (c + 1 / jnp.exp(a), None), 0.0, x)[0],
                         jnp.array([100.0, 1.0]), what="inf")
    assert not found and found.notes == ("of scan only the results were looked at.",)


def test_values_of_a_condition_are_told_in_words():
    def is_large(x):
        return x > 4

    for what, words in ((is_large, "value of which is_large holds"),
                        (lambda x: x > 4, "value of which the condition holds")):
        assert str(inspect.find(jnp.sin, 1.0, what=what)) == f"No {words} was found."
        assert f"mul makes the first {words}, at" in str(inspect.find(
            lambda x: x * x, 3.0, what=what))


@pytest.mark.parametrize("fun", [
    lambda x: jnp.log(jnp.sum(x)), jnp.prod, lambda x: x[0] * x[1], lambda x: x @ x,
    lambda x: jnp.cumsum(x)[-1], lambda x: jnp.sum(x**8), lambda x: x.astype("f2").sum()])
@pytest.mark.parametrize("derived", [False, True])
def test_the_cure_of_what_leaves_the_range_is_no_choice_of_operands(fun, derived):
    text = str(inspect.find(jax.value_and_grad(fun) if derived else fun, jnp.full(3, 3e38),
                            what="inf"))
    assert "beyond the range of its type: scale" in text and "jnp.where" not in text, text


@pytest.mark.parametrize("fun", [
    lambda x: x**-1, lax.reciprocal, lambda x: jnp.arctanh(x + 1), lax.lgamma,
    lambda x: lax.erf_inv(x + 1), lambda x: jnp.log1p(x - 1), jnp.log2, lambda x: x**-1.5,
    lambda x: jax.pure_callback(lambda x: x + np.float32(np.inf), x, x)])
def test_poles_are_not_told_to_be_beyond_the_range(fun):
    found = inspect.find(fun, jnp.float32(0), what="inf")
    assert found and "beyond the range" not in str(found), found


def test_powers_leave_the_range_elsewhere():
    for fun, x in ((lambda x: x**5, 1e10), (lambda x: x**-5, 1e-10), (lambda x: x**2.5, 1e20)):
        assert "beyond the range" in str(inspect.find(fun, jnp.float32(x), what="inf"))


@pytest.mark.parametrize(("fun", "x", "cure"), [
    (jnp.linalg.cholesky, -np.eye(3), "not positive definite"),
    (lambda a: jax.scipy.linalg.solve(a, a[0], assume_a="pos"), -np.eye(3),
     "not positive definite"),
    (lambda a: jnp.linalg.solve(a, jnp.ones(3)), np.zeros((3, 3)), "singular"),
    (lambda a: jax.scipy.linalg.solve_triangular(a, jnp.ones(3)), np.zeros((3, 3)), "singular")])
@pytest.mark.parametrize("derived", [False, True])
def test_matrices_that_have_no_factors_have_a_cure(fun, x, cure, derived):
    found = inspect.find(jax.value_and_grad(lambda a: fun(a).sum()) if derived else fun,
                         jnp.array(x, "f4"))
    assert f"Its matrix is {cure}" in str(found) and "1e-6 * jnp.eye" in str(found), found


def test_callbacks_are_not_called_again_by_a_flag():
    calls = []

    def give(x):
        calls.append(x)
        return np.float32(np.nan)

    f = jax.jit(lambda x: io_callback(give, jax.ShapeDtypeStruct((), "float32"), x) + 1)
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="it was not run again"):
        f(1.0)
    assert len(calls) == 1


def test_what_cannot_be_run_again_runs_once():
    calls = []

    def read(x):
        calls.append(1)
        return np.asarray(x) * 2

    def f(x):
        y = io_callback(read, jax.ShapeDtypeStruct((), "float32"), x)
        return jnp.log(y)

    found = inspect.find(f, -1.0)
    assert found.operation == "log" and len(calls) == 1 and "it was run once" in str(found)
    told = inspect.find(lambda x: (io_callback(calls.append, None, x), jnp.log(x))[1], -1.0)
    assert told.operation == "log" and len(calls) == 1 and "was left out" in str(told)


def test_donated_arguments_and_references_stay():
    x, ref = -jnp.ones(3), jax.new_ref(jnp.ones(3))
    found = inspect.find(jax.jit(lambda x: jnp.log(x), donate_argnums=0), x)
    assert found.operation == "log" and not x.is_deleted() and "donated" in str(found)

    def write(ref):
        ref[...] = jnp.log(-ref[...])

    found = inspect.find(write, ref)
    assert found.operation == "log" and "copies" in str(found) and ref[0] == 1


def test_kinds_are_checked():
    with pytest.raises(ValueError, match=r"one of \['nan', 'inf', 'subnormal'\], or a function"):
        inspect.find(lambda x: x, 1.0, what="none")


def test_debug_nans_gives_the_report():
    def f(x):
        return lax.scan(lambda c, i: (c + jnp.log(2.5 - i), None), x, jnp.arange(5.0))[0]

    with jax.debug_nans(True), pytest.raises(FloatingPointError) as raised:
        jax.jit(f)(1.0)
    assert raised.value.found.operation == "log"
    assert "in iteration 3 of scan" in raised.value.__notes__[1]
    for _ in range(2):  # the second is the program of the first, at another line
        with jax.debug_nans(True), pytest.raises(FloatingPointError) as raised:
            jnp.arccosh(jnp.float32(0))
        line = linecache.getline(__file__, raised.value.found.line.start_line)
        assert "arccosh" in line


@pytest.mark.parametrize("x", [-1.0, np.array([-1.0])])
def test_values_have_the_types_that_they_have_in_the_program(x):
    assert inspect.find(jnp.log, x).operands[0].type[:8] == "float32["


def log_kernel(**options):
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.log(x_ref[...] - 5)  # HERE

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8,), "f4"), **options)


@pytest.mark.parametrize("wrap", [lambda f: lambda x: f(x[0]), jax.vmap,
                                  lambda f: jax.jit(jax.vmap(f))], ids=["plain", "vmap", "jit"])
def test_interpreted_kernels_are_opened(wrap):
    call = log_kernel(interpret=True)
    found = inspect.find(wrap(lambda x: call(x) * 2), jnp.arange(16.0).reshape(2, 8))
    assert found.operation == "log" and "HERE" in linecache.getline(
        __file__, found.line.start_line), found


def test_loops_of_no_iteration():
    def f(x):
        y = jnp.log(x)  # HERE
        return lax.scan(lambda c, a: (c + a, c), y, x[:0])[0]

    x = -jnp.ones(3)
    found = inspect.find(lambda x: f(x), x)
    assert found.operation == "log" and not found.steps, found
    assert "HERE" in linecache.getline(__file__, found.line.start_line)
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        jax.jit(f)(x)


def test_debug_nans_names_the_argument():
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=(
            r"comes in with weights, at element \[1\]")) as raised:
        jax.jit(lambda x, weights: x * weights)(1.0, np.array([1, np.nan], "f4"))
    assert raised.value.found.argument == "weights"


def test_the_commands(tmp_path):
    program = tmp_path / "step.py"
    program.write_text("import sys\nimport jax\nimport jax.numpy as jnp\n\n\ndef f(x):\n"
                       "    return jnp.log(x) * 2\n\n\nif __name__ == '__main__':\n"
                       "    print(jax.jit(f)(float(sys.argv[1])))\n")

    def run(*words):
        done = subprocess.run([sys.executable, "-m", "pyjx", *words], capture_output=True,
                              text=True, cwd=tmp_path)
        return done.returncode, done.stderr

    status, said = run("why", "step.py", "-1")
    assert status == 1 and "log makes the first nan, at step.py:7 (f)" in said
    status, said = run("why", "--inf", "step.py", "0")
    assert status == 1 and "log makes the first inf" in said
    status, said = run("why", "step.py", "1")
    assert status == 0 and "no result of a compiled program had a nan" in said
    status, said = run("why", "--inf", "step.py", "1")
    assert status == 0 and "no inf was found in a result" in said
    status, said = run("why", "--inf", "step.py", "-1")  # its nan comes of none
    assert status == 0 and "no inf was found in a result" in said
    program.write_text(program.read_text().replace("    print", "    try:\n        print") +
                       "    except FloatingPointError:\n        sys.exit(4)\n")
    status, said = run("why", "step.py", "-1")
    assert status == 4 and "went on after this error" in said
    assert "log makes the first nan, at step.py:7 (f)" in said
    (tmp_path / "jitted.py").write_text(
        "import jax\nimport jax.numpy as jnp\n\n\n@jax.jit\ndef f(x):\n    w = jnp.exp(x)\n"
        "    return w / w.sum()\n\n\nprint(f(jnp.array([1.0, 100.0])))\n")
    status, said = run("why", "jitted.py")
    assert status == 1 and "`python -m pyjx why --inf`" in said
    status, said = run("why", "--inf", "jitted.py")
    assert status == 1 and "exp makes the first inf, at jitted.py:7 (f)" in said
    status, said = run("why", "none.py")
    assert status == 2 and "there is no file none.py" in said
    status, said = run("emit-hlo", "step.py:f", "f32[4]", "-o", "f.mlir", "--find", "nan")
    assert status == 1 and "log makes the first nan, at step.py:7 (f)" in said


def test_what_it_traces_of_its_own_is_in_no_report():
    ledger.clear()  # of what other tests have traced
    jax.inspect.find(lambda x: lax.scan(lambda c, x: (jnp.log(c - 1), c), x, jnp.ones(3)), 1.0)
    found = jax.explain()  # whose text has the costliest functions alone
    said = str(found) + repr(found.functions)
    assert "test_find.py" in said and "loops.py" not in said
