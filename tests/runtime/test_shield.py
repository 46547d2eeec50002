"""Compilers that end the process: a note is left, and the next process has an error."""

from __future__ import annotations

import os
import signal

import pytest

from pyjx import configuration as config
from pyjx.runtime import shield
from pyjx.runtime.compile import compile
from tests.runtime.test_cache import check, entries, program

# XLA aborts where floats of six bits are joined; pyjx refuses such programs, so it is told not to.
ABORTS = """
import warnings
warnings.simplefilter("ignore")
import pyjx as jax, pyjx.numpy as jnp
from pyjx.runtime import compile
compile.check_small_floats = lambda *args: None
jax.jit(lambda x: x + 1)(1.0)

def joins(x):
    return jnp.concatenate([x, x])

x = jax.ShapeDtypeStruct((4 + SIZE,), "float6_e2m3fn")
try:
    jax.jit(joins).lower(x).compile()
except jax.errors.JaxRuntimeError as error:
    print(error)
    raise SystemExit(7)
"""


def run(start_python, code=ABORTS, n=0, **environment):
    process = start_python(code.replace("SIZE", str(n)), **environment)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def notes(folder):
    return sorted(folder.glob("*.note"))


def test_the_second_process_is_told(start_python, tmp_path):
    folder = tmp_path / "cache"
    for n in range(2):
        status, _, _ = run(start_python, n=n)
        assert status == -signal.SIGABRT
    kept = entries(folder)
    assert len(notes(folder)) == 2 and kept
    for _ in range(2):  # the note stays
        status, out, err = run(start_python)
        assert status == 7, err
        assert "XLA ends the process that compiles joins, of joins at <string>:" in out
        assert "SIGABRT" in out and "jax.inspect.reduce(f, args)" in out
    assert "emit-hlo <string>:joins 'f6_e2m3fn[4]' --reduce crash" in out
    assert entries(folder) == kept and len(notes(folder)) == 2


def test_what_has_become_right_is_compiled(start_python, tmp_path, cache_folder, monkeypatch):
    compile(program(5))
    (entry,) = entries(cache_folder)
    note = entry.with_suffix(".note")
    entry.unlink()
    note.write_text(f"999999999 {os.uname().nodename}\nf\n")
    children = []
    plain = shield._try_in_child
    monkeypatch.setattr(shield, "_try_in_child", lambda *a: (children.append(a), plain(*a)))
    with pytest.warns(UserWarning, match="The process 999999999 ended while XLA compiled f"):
        check(5)
    assert len(children) == 1 and not note.exists() and entry.exists()


@pytest.mark.parametrize(("platform", "children", "said"), [
    ("cpu", 1, "in a process of its own first"), ("tpu", 0, "again. emit-hlo shows what")])
def test_what_one_process_can_use_has_no_child(platform, children, said, tmp_path, monkeypatch):
    note, tried = tmp_path / "f.note", []
    note.write_text(f"999999999 {os.uname().nodename}\nf\n")
    monkeypatch.setattr(shield, "_try_in_child", lambda *a: tried.append(a))
    with pytest.warns(UserWarning, match=f"ended while XLA compiled f. Compiling it {said}"):
        assert shield.guarded(str(note), shield.Subject("f", None), lambda: 3,
                              lambda: {"platform": platform}) == 3
    assert len(tried) == children and not note.exists()


def test_who_is_alive_is_not_minded(cache_folder, monkeypatch):
    compile(program(6))
    (entry,) = entries(cache_folder)
    note = entry.with_suffix(".note")
    monkeypatch.setattr(shield, "_try_in_child", None)
    for content in (f"{os.getpid()} {os.uname().nodename}\nf\n", "12 elsewhere\nf\n"):
        entry.unlink()
        note.write_text(content)
        check(6)
        assert note.exists()


def test_no_note_is_left_by_what_compiles_or_is_refused(cache_folder):
    check(7)
    with pytest.raises(Exception, match="error"):
        compile(program(8).replace("stablehlo.add %a, %c", "stablehlo.add %a, %d"))
    assert not notes(cache_folder)


def test_always(start_python):
    status, out, _ = run(start_python, PYJX_COMPILE_IN_CHILD="1")
    assert status == 7 and "XLA ends the process" in out
    with config.compile_in_child(True):
        check(9)
