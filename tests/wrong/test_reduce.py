"""`inspect.reduce`: the smallest program that still fails."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from emit_hlo.arguments import UsageError, parse
from pyjx import inspect, lax
from pyjx.inspect import reducing, tries
from pyjx.inspect.python_text import array_text
from tests.wrong import plants

X = np.linspace(0.1, 1, 16, dtype="f4").reshape(4, 4)


def long(fault, n=24):
    """A function with a fault in the middle of other operations."""
    def f(x):
        for i in range(n):
            x = jnp.tanh(x) * 1.5 + jnp.cos(x @ np.eye(len(x), dtype="f4"))
            if i == n // 2:
                x = mark = fault(x)
        return x.sum(), mark

    return f


def runs(text, tmp_path):
    path = tmp_path / "reduced.py"
    path.write_text(text)
    return subprocess.run([sys.executable, "-m", "pyjx", str(path)], capture_output=True, text=True,
                          timeout=60)


def test_an_abort_in_a_loop_in_a_long_program(tmp_path):
    fault = plants.FAULTS["abort"][0]
    told = []
    found = inspect.reduce(long(lambda x: lax.scan(lambda c, i: (lax.cond(
        i == 2, fault, jnp.tanh, c), None), x, jnp.arange(4))[0]), [X], progress=told.append)
    assert found.operations == 1 and found.how.startswith("the process ends by SIGABRT")
    assert found.jaxpr.eqns[0].primitive.name == "pure_callback"
    assert [x.shape for x in found.args] == [(1, 1)] and len(told) > 3
    assert "import pyjx" not in found.python and "def aborts(x)" in found.python
    assert runs(found.python, tmp_path).returncode == -signal.SIGABRT
    assert "stablehlo.custom_call" in found.stablehlo


def test_an_endless_loop():
    found = inspect.reduce(long(plants.FAULTS["loop"][0], 4), [X], seconds=3.0)
    assert found.operations <= 4 and found.how == "it does not end in time"
    assert found.jaxpr.eqns[0].primitive.name == "while"


def test_a_wrong_rule():
    found = inspect.reduce(long(plants.FAULTS["wrong"][0]), [X], plants.differs)
    assert [e.primitive.name for e in found.jaxpr.eqns] == ["sinh"]
    assert found.how == "it does what was asked for"


def test_too_much_memory():
    found = inspect.reduce(long(plants.FAULTS["memory"][0], 4), [X], memory=2 << 30)
    assert found.operations <= 2 and found.how.startswith("it runs out of memory")


def test_a_command(tmp_path):
    script = tmp_path / "check.py"
    script.write_text("import sys\nsys.exit('lax.log' in open(sys.argv[1]).read())\n")
    found = inspect.reduce(long(lambda x: jnp.log(x * x)), [X], f"{sys.executable} {script} {{}}")
    assert [e.primitive.name for e in found.jaxpr.eqns] == ["log"]
    model = tmp_path / "model.py"
    model.write_text("import jax.numpy as jnp\n\n\ndef f(x):\n"
                     "    return jnp.log(jnp.sin(x) ** 2).sum()\n")
    done = subprocess.run(
        [sys.executable, "-m", "pyjx", "emit-hlo", "model.py:f", "f32[4]", "-o", "least.py",
         "--reduce", f"{sys.executable} {script}"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "1 operation left after" in done.stderr, done.stderr
    assert "lax.log" in (tmp_path / "least.py").read_text()
    assert "stablehlo.log" in (tmp_path / "least.mlir").read_text()


def test_an_interrupt_gives_the_smallest_so_far():
    def interrupt(text):
        told.append(text)
        if len(told) == 2:
            raise KeyboardInterrupt

    told: list[str] = []
    found = inspect.reduce(long(plants.FAULTS["abort"][0]), [X], progress=interrupt)
    assert told[-1].startswith("interrupted") and found.operations > 1


def test_what_cannot_be_reduced():
    with pytest.raises(inspect.NothingFailsError, match="the program does not fail: it runs to"):
        inspect.reduce(jnp.sin, [X])
    with pytest.raises(inspect.NothingFailsError, match="the command ends with 0"):
        inspect.reduce(jnp.sin, [X], "true {}")
    with pytest.raises(TypeError, match=r"args is the sequence of the arguments, got 1\.0"):
        inspect.reduce(jnp.sin, 1.0)
    with pytest.raises(ValueError, match="the shell cannot start the command 'no_such_command'"):
        inspect.reduce(jnp.sin, [X], "no_such_command")
    for bound, least in (("seconds", 0.0), ("seconds", -1.0), ("memory", 0)):
        with pytest.raises(ValueError, match=f"{bound} must be a positive number, got {least}"):
            inspect.reduce(jnp.sin, [X], **{bound: least})
    with pytest.raises(TypeError, match="which another process cannot import"):
        inspect.reduce(jnp.sin, [X], lambda program, args: True)
    with pytest.raises(TypeError, match="can't be imported by another process"):
        inspect.reduce(lambda x: jax.pure_callback(lambda y: y, x, x), [X])


SCRIPT = """
import pyjx as jax
import pyjx.numpy as jnp


def f(x):
    return jnp.log(jnp.sin(x) - 2).sum()


def fails(program, args):
    return {says}


if {when}:
    print(jax.inspect.reduce(f, [jnp.ones(4)], fails).operations)
"""
GUARD = '__name__ == "__main__"'


@pytest.mark.parametrize("says, when, last", [
    ("bool(jnp.isnan(program(*args)[0]).any())", GUARD, "1"),
    ("bool(jnp.isnan(program(*args)))", GUARD, "ValueError: inspect.reduce: fails raises TypeError "
     "at script.py:11: isnan requires ndarray or scalar arguments, got <class 'tuple'>"),
    ("True", "True", "TypeError: inspect.reduce: fails is <function fails>, which another process "
     "cannot import: RuntimeError: it calls inspect.reduce as it is loaded. Write what its file"),
])
@pytest.mark.parametrize("by", [[], ["-m", "pyjx"]])
def test_a_function_of_the_script(by, says, when, last, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.format(says=says, when=when))
    done = subprocess.run([sys.executable, *by, "script.py"], capture_output=True, text=True,
                          cwd=tmp_path, timeout=60)
    assert [x for x in (done.stdout + done.stderr).splitlines() if x.startswith(last)], done.stderr


def test_a_function_that_raises_on_smaller_programs():
    found = inspect.reduce(lambda x: jnp.log(jnp.tanh(x - 2)), [X], plants.raises_without_tanh)
    assert sorted([e.primitive.name for e in found.jaxpr.eqns]) == ["log", "tanh"]


def test_a_program_that_raises_in_the_function():
    with pytest.raises(ValueError, match=r"fails raises SystemExit at .*plants.py:\d+: 3"):
        inspect.reduce(jnp.sin, [X], plants.leaves)
    found = inspect.reduce(long(lambda x: jax.pure_callback(plants.refuses, x, x), 2), [X],
                           plants.runs)
    assert found.operations == 1 and found.how.startswith("it raises JaxRuntimeError")


def test_the_file_computes_what_the_program_does():
    def f(w, x):
        c, ys = lax.scan(lambda c, y: (jnp.tanh(c @ w + y), c.sum()), x, jnp.ones((5, 3)))
        z = lax.while_loop(lambda c: c.sum() < 10, lambda c: c * c + 1, c)
        branch = lax.cond(c[0] > 0, lambda c: c.sum(), lambda c: jax.nn.softmax(c).sum(), c)
        drawn = jax.random.normal(jax.random.key(0), (3,)).sum()
        return branch + ys.sum() + z[jnp.argsort(x)].sum() + drawn, jnp.cumsum(x).at[0].add(1)

    w, x = np.full((3, 3), 0.1, "f4"), np.arange(3, dtype="f4")
    for fun in (f, lambda w, x: jax.grad(lambda w: lax.scan(
            lambda c, y: (jnp.tanh(c @ w + y), None), x, jnp.ones((5, 3)))[0].sum())(w)):
        closed = jax.make_jaxpr(fun)(w, x)
        assert not closed.consts
        names = {"__name__": "program"}
        exec(inspect.python_file(closed, [w, x], "It runs.").replace(
            "import jax\n", "import pyjx as jax\n").replace("from jax", "from pyjx"), names)
        for found, wanted in zip(names["program"](*names["args"]), jax.tree.leaves(fun(w, x)),
                                 strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_programs_of_a_hundred_to_two_thousand_equations(seed):
    fault, fails = list(plants.FAULTS.values())[seed % len(plants.FAULTS)]
    f, x = plants.program(seed, int(100 * 20 ** ((seed % 8) / 7)), fault)
    assert inspect.reduce(f, [x], fails).operations <= 10


@pytest.mark.parametrize("values", [
    [-0.0, -0.0], [0.0, -0.0], [0.0, 0.0], [complex(np.nan, np.inf), 1j], [np.nan, np.nan], [3, 3]])
def test_texts_of_arrays_give_their_bits(values):
    array = np.array(values)
    assert eval(array_text(array)).tobytes() == array.tobytes()


def test_the_command_does_nothing_besides():
    with pytest.raises(UsageError, match="--reduce writes the program that it finds"):
        parse(["pyjx.numpy:sin", "f32[2]", "--reduce", "crash", "--run=3"])


def waited_for(found):
    """What `found` gives as soon as that is true."""
    end = time.monotonic() + 60
    while not (value := found()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return value


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_process_is_left_where_a_try_is_broken_off():
    def run():
        with pytest.raises((EOFError, OSError, ValueError)):
            server.run("while True: pass", [X], 1000.0, 1000.0)

    with tries.Tries(None, 1 << 34) as server:
        pid = server._server.pid
        broken = threading.Thread(target=run)
        broken.start()
        child = waited_for(Path(f"/proc/{pid}/task/{pid}/children").read_text).split()[0]
    broken.join()
    waited_for(lambda: not Path("/proc", child).exists())


def test_no_command_is_left_that_is_broken_off(monkeypatch):
    started = []
    wait = subprocess.Popen.communicate

    def broken_off(process, timeout=None):
        if not started:
            started.append(process)
            raise KeyboardInterrupt
        return wait(process, timeout=timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", broken_off)
    with pytest.raises(KeyboardInterrupt):
        reducing._Commands("sleep 1000; true", 1 << 34).run("", [X], 1000.0, 1000.0)
    assert started[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize("fails", [3, lambda program: True])
def test_what_cannot_tell_whether_a_program_fails(fails):
    with pytest.raises(TypeError, match=r"fails is a function of a program and its arguments"):
        inspect.reduce(jnp.sin, [X], fails)


ENDLESS = pickle.dumps(("while True: pass", [], None, "fails", 1000.0, 1000.0, 1 << 34))
LARGE = pickle.dumps(("def program(): return [__import__('numpy').zeros(1 << 20, 'f4')]", [], None,
                      "values", 1000.0, 1000.0, 1 << 34))


@pytest.mark.parametrize(("request_", "seconds"), [
    (b"", 0), (b"", 2), (ENDLESS[:-9], 0), (ENDLESS, 0), (ENDLESS, 2), (LARGE, 4)],
    ids=["while it loads", "while it waits", "in a request", "before a try", "in a try",
         "in an answer"])
def test_a_server_ends_without_a_word(request_, seconds, capfd):
    with tries.Tries(None, 1 << 34) as server:
        server._server.stdin.write(request_)
        server._server.stdin.flush()
        time.sleep(seconds)
    assert server._server.returncode == 0
    assert capfd.readouterr() == ("", "")
