"""Where the time of a run went, by operation and by line of the source."""

from __future__ import annotations

import base64
import inspect as python
import json
import re
import zlib
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration, inspect, lax
from pyjx.inspect import running
from pyjx.inspect.running import LineTime, Measurement, OperationTime


def sorted_then_multiplied(x: Any) -> Any:
    y = jnp.sort(x, axis=0)
    y = jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y @ x), y)
    return y


FIRST = python.getsourcelines(sorted_then_multiplied)[1]
SORT, LOOP = (f"{__file__}:{FIRST + i}" for i in (1, 2))


@pytest.fixture
def measured() -> Measurement:
    # Nothing else of the size of a product: rows of a hundred kilobytes.
    x = jax.ShapeDtypeStruct((128, 128), "float32")
    return inspect.measure(inspect.trace(sorted_then_multiplied, x), runs=2)


def test_operations_have_their_lines_and_loops_their_iterations(measured: Measurement) -> None:
    times = {lines: max([o.times for o in measured.operations if o.lines == lines], default=0)
             for lines in ((SORT,), (LOOP,))}
    assert times == {(SORT,): 2, (LOOP,): 6}  # of two runs
    assert not [o.name for o in measured.operations if o.name.startswith("while")]


def test_lines_have_the_time_of_their_operations(measured: Measurement) -> None:
    alone = {row.line: row.seconds for row in measured.by_line}
    assert alone[SORT] > 0 and alone[LOOP] > 0
    shared = sum([o.seconds for o in measured.operations if len(o.lines) > 1])
    assert sum(alone.values()) + shared == pytest.approx(measured.seconds)


def test_the_page_shows_what_was_measured() -> None:
    x = jax.ShapeDtypeStruct((128, 128), "float32")
    program = inspect.trace(sorted_then_multiplied, x)
    assert not _document(program)["measured"]
    found = inspect.measure(program, runs=2)
    document = _document(program)
    assert document["measured"]
    shares = {f"{document['strings'][file]}:{line}": share
              for file, line, share, *_ in document["costs"]["time"]["lines"]}
    # What does not run by itself is in a loop or a call that does.
    for line in (SORT, LOOP):
        wanted = sum([o.seconds for o in found.operations if o.lines == (line,)]) / found.seconds
        assert shares[line] == pytest.approx(wanted, abs=0.15)


def _document(program: inspect.Program) -> Any:
    (data,) = re.findall(r'<script id="program"[^>]*>([^<]*)<', str(program.emit("html")))
    return json.loads(zlib.decompress(base64.b64decode(data)))


def test_what_computes_for_several_lines_counts_for_each() -> None:
    found = Measurement(1, [OperationTime("fusion", 1, 3.0, ("a.py:1", "a.py:2")),
                            OperationTime("dot", 1, 2.0, ("a.py:2",)),
                            OperationTime("copy", 1, 1.0, ())])
    assert found.seconds == 6
    assert found.by_line == [LineTime("a.py:2", 2.0, 3.0), LineTime("a.py:1", 0.0, 3.0),
                             LineTime("", 1.0, 0.0)]


def test_runs_need_a_number_and_all_arguments() -> None:
    program = inspect.trace(lambda x, y: x + y, *[jax.ShapeDtypeStruct((8,), "float32")] * 2)
    with pytest.raises(ValueError, match=r"inspect\.measure: a program runs at least once, got 0"):
        inspect.measure(program, runs=0)
    with pytest.raises(ValueError, match=r"inspect\.run: a program runs at least once, got -1"):
        inspect.run(program, times=-1)
    calls: dict[str, Any] = {"run": inspect.run, "measure": inspect.measure,
                             "check": lambda p, args: inspect.check(p, "eager", args)}
    for name, call in calls.items():
        with pytest.raises(TypeError, match=rf"inspect\.{name}: the program takes 2 .*, got 1"):
            call(program, [1.0])


def operations_of(monkeypatch: Any, modules: dict[str, str], events: Sequence[tuple[str, str, int]],
                  platform: str = "cpu") -> list[OperationTime]:
    """What a program of these modules is measured to take, if the profiler tells such events."""
    told = [SimpleNamespace(stats=[("hlo_module", module), ("hlo_op", name)], duration_ns=time)
            for module, name, time in events]
    monkeypatch.setattr(running, "runner", lambda *_: lambda: None)
    monkeypatch.setattr(running, "recorded", lambda work, read: (work(), list(map(read, told))))
    program: Any = SimpleNamespace(
        executable=SimpleNamespace(hlo_modules=lambda: [
            SimpleNamespace(name=name, to_string=partial(str, text))
            for name, text in modules.items()]),
        jaxpr=jax.make_jaxpr(lambda x: x + x)(1.0), platform=SimpleNamespace(name=platform))
    return inspect.measure(program).operations


def test_operations_of_one_name_in_two_modules_are_two(monkeypatch: Any) -> None:
    modules = {name: f"""HloModule {name}
ENTRY main {{
  p = f32[8] parameter(0)
  ROOT add.1 = f32[8] add(p, p), metadata={{source_file="a.py" source_line={line}}}
}}
""" for line, name in enumerate(("one", "two"), 1)}
    times = zip(("one", "two", "three"), ["add.1"] * 3, (1000, 5000, 9000), strict=True)
    assert operations_of(monkeypatch, modules, [*times]) == [
        OperationTime("add.1", 1, 5e-6, ("a.py:2",)), OperationTime("add.1", 1, 1e-6, ("a.py:1",))]


@pytest.mark.parametrize(("platform", "lines"), [
    ("cpu", ("a.py:1", "a.py:2")), ("tpu", ("a.py:2", "a.py:1"))])
def test_which_line_is_the_dearest_is_a_question_of_the_device(
        monkeypatch: Any, platform: str, lines: tuple[str, ...]) -> None:
    text = """HloModule m
both {
  p = (f32[64,64], f32[4224]) parameter(0)
  a = f32[64,64] get-tuple-element(p), index=0
  b = f32[4224] get-tuple-element(p), index=1
  d = f32[64,64] dot(a, a), lhs_contracting_dims={1}, metadata={source_file="a.py" source_line=1}
  sum = f32[4224] add(b, b), metadata={source_file="a.py" source_line=2}
  ROOT t = (f32[64,64], f32[4224]) tuple(d, sum)
}

ENTRY main {
  p = (f32[64,64], f32[4224]) parameter(0)
  ROOT c = (f32[64,64], f32[4224]) call(p), to_apply=both
}
"""
    assert operations_of(monkeypatch, {"m": text}, [("m", "c", 1000)], platform) == [
        OperationTime("c", 1, 1e-6, lines)]


def test_one_profile_at_a_time(tmp_path: Any) -> None:
    like = jax.ShapeDtypeStruct((8,), "float32")
    program, other = (inspect.trace(lambda x: x + 1, like) for _ in range(2))
    with jax.profiler.trace(tmp_path), pytest.raises(
            inspect.UnsupportedError, match="the process is profiled already"):
        inspect.measure(program)
        other.watch_compiler()
        assert other.executable is not None and other.xla_seconds == []


def test_options_of_the_compiler_hold_for_runs() -> None:
    program = inspect.trace(lambda x: x + 1, jax.ShapeDtypeStruct((8,), "float32"),
                            compiler_options={"xla_no_such_option": True})
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_no_such_option"):
        inspect.run(program)


def test_lines_are_of_the_program_that_runs_not_of_one_on_disk(tmp_path: Any) -> None:
    old, new = (eval(compile("\n" * i + "lambda x: jnp.cos(x) * 3", "model.py", "eval"))
                for i in range(2))
    with configuration.cache_dir(str(tmp_path)):
        jax.jit(old)(jnp.zeros(64))
        program = inspect.trace(new, jax.ShapeDtypeStruct((64,), "float32"))
        inspect.run(program)
        measured = inspect.measure(program)
    assert {line for o in measured.operations for line in o.lines} == {"model.py:2"}


def test_what_loops_are_to_a_cpu() -> None:
    def f(x: Any, y: Any) -> Any:
        x = lax.fori_loop(0, 7, lambda _, x: jnp.sin(x) * jnp.cos(x), x)
        y = lax.fori_loop(0, 3, lambda _, y: jnp.linalg.inv(y @ y), y)
        return lax.while_loop(lambda x: x[0] < 9, lambda x: x + 1, x), y

    program = inspect.trace(f, np.ones(5, "f"), np.eye(200, dtype="f"))
    loops = {x.line.rpartition(":")[2]: x for x in reversed(program.loops)}
    first = f.__code__.co_firstlineno
    small, large, unknown = (loops[str(first + n)] for n in (1, 2, 3))
    assert (small.iterations, large.iterations, unknown.iterations) == (7, 3, None)
    assert not small.kernels and "one kernel for all" in str(small) and not small.apart
    assert large.kernels > 3 and any(x.startswith("dot_general") for x in large.apart)
    text = program.emit("cost")
    assert str(large) in text and "kernels each time" in text
    assert len(inspect.data(program)["cost"]["loops"]) >= 3
    names = [p.name for p in inspect.passes(program.jaxpr)]
    assert names == ["physicalize", "decompose", "one-cpu", "dce"]  # too short for blocks


@pytest.mark.parametrize(("options", "said"), [
    (("--find", "nan"), "log makes the first nan"), (("--check", "eager"), "check eager:\nagrees"),
    (("--run",), "result result: float32"), (("--run=2", "--check", "eager"), "2 runs: least")])
def test_what_comes_of_running_is_told_alone(run, options, said):
    function = ("-c", "lambda x: jnp.log(x - x * 2).sum()" if "nan" in options else "jnp.sum",
                "f32[4]")
    status, out, err = run(*function, *options)
    assert (status, out) == (int("nan" in options), "") and said in err
    text = run(*function)[1]
    for asked in (("--emit", "stablehlo"), ("-o", "-"), ("--stats",)):
        assert run(*function, *options, *asked)[1] == text
