"""What is emitted is the same in every process, can be read back, and computes what it should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import inspect, jaxlib_api, lax
from pyjx.inspect import running
from pyjx.viewer import document as viewer_document
from tests.op_table import Sample, all_samples

ROOT = Path(__file__).parents[2]
SAMPLES = all_samples()
IDS = [f"{s.primitive} {s.id}" for s in SAMPLES]
PROGRAM = """
import pyjx as jax
import pyjx.numpy as jnp

def loss(params, x):
    for layer in params["layers"]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return jnp.sum(jax.random.normal(params["key"], x.shape) * x)
"""
SPEC = f"{{layers: [{', '.join(['{w: f32[8,8], b: f32[8]}'] * 6)}], key: key[]}}"
OUTPUT = ("--vjp", "--emit", "jaxpr,stablehlo,hlo,cost", "--locs", "stack", "--names", "user")


def texts(folder: Path, seeds: range) -> set[bytes]:
    """What the command prints in processes with these hash seeds."""
    (folder / "program.py").write_text(PROGRAM)
    found = set()
    for seed in seeds:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(seed)}
        done = subprocess.run(
            [sys.executable, "-m", "emit_hlo", "program.py:loss", SPEC, "f32[4,8]", *OUTPUT],
            env=env, cwd=folder, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")
        found.add(done.stdout)
    return found


def test_text_is_the_same_in_each_process(tmp_path: Path) -> None:
    assert len(texts(tmp_path, range(3))) == 1


@pytest.mark.slow
def test_text_is_the_same_in_a_hundred_processes(tmp_path: Path) -> None:
    assert len(texts(tmp_path, range(100))) == 1


def traced(sample: Sample) -> inspect.TracedProgram:
    return inspect.trace(sample.fun, *sample.args)


def arguments(sample: Sample) -> list[Any]:
    return list(jax.tree.leaves(sample.args))


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_artifacts_are_read_back_at_their_version(sample: Sample) -> None:
    program = traced(sample)
    oldest, newest = inspect.stablehlo_versions()
    read = 0
    for version in (oldest, "1.0.0", newest):
        try:
            artifact = program.bytecode(version)
        except inspect.UnsupportedError:
            assert version != newest
            continue
        assert f"StableHLO_v{version}".encode() in artifact[:40]
        assert "func.func public @main" in inspect.read(artifact).stablehlo()
        read += 1
    assert read


def wave(x):
    return jax.lax.scan(lambda c, _: (jax.numpy.sin(c), None), x, None, length=3)[0]


@pytest.mark.parametrize("locs", ["line", "stack", "none"])
@pytest.mark.parametrize("form", [str, lambda text: jaxlib_api.parse_module(text)])
def test_a_module_that_is_read_keeps_the_lines_that_it_names(locs: str, form: Any) -> None:
    """Where it names none it has none: those of its own text are no lines of a program."""
    text = form(inspect.trace(wave, jax.numpy.ones(8)).stablehlo(locs=locs))
    if not isinstance(text, str):  # MLIR's own, where locations have names of their own
        text = text.operation.get_asm(enable_debug_info=True) if locs != "none" else str(text)
    program = inspect.read(text)
    assert "loc(" not in program.stablehlo()
    page = viewer_document.program(
        stablehlo=program.stablehlo(locs="stack"), hlo=program.hlo_opt)
    lines = {line for _, line, *_ in page["costs"]["time"]["lines"]}
    assert lines == ({0} if locs == "none" else {wave.__code__.co_firstlineno + 1})
    assert (__file__ in page["source"]) == (locs != "none") and "-" not in page["source"]
    assert "loc(" not in page["forms"][0]["text"].replace('loc("x")', "")


def test_names_and_locations_are_of_those_that_there_are() -> None:
    traced = inspect.trace(wave, jax.numpy.ones(8))
    for program in (traced, inspect.read(traced.stablehlo())):
        for option, wrong in (("names", "file"), ("names", None), ("locs", "lines")):
            with pytest.raises(ValueError, match=f"stablehlo: {option} must be one of .*, got "):
                program.stablehlo(**{option: wrong})


@pytest.mark.slow
@pytest.mark.parametrize("how", ["numpy-float64", "eager"])
@pytest.mark.parametrize("sample", SAMPLES, ids=IDS)
def test_results_agree(sample: Sample, how: str) -> None:
    agreement = inspect.check(traced(sample), how, arguments(sample))
    assert agreement, str(agreement)


@pytest.mark.parametrize("narrow, wide", [("bfloat16", "float32"), ("int8", "int32")])
def test_the_interpreter_sums_products_in_the_type_of_the_result(narrow: str, wide: str) -> None:
    x = jax.numpy.full((2, 300), 3, narrow)  # their sum has no such number
    program = inspect.trace(lambda x: (
        lax.dot_general(x, x, (([1], [1]), ([], [])), preferred_element_type=wide),
        lax.conv_general_dilated(x[None], x[None], (1,), "VALID", preferred_element_type=wide)), x)
    agreement = inspect.check(program, "interpreter", [x])
    assert agreement, str(agreement)


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES[::7], ids=IDS[::7])
def test_the_interpreter_agrees(sample: Sample) -> None:
    try:
        agreement = inspect.check(traced(sample), "interpreter", arguments(sample))
    except inspect.CheckError:  # an operation that it does not know
        return
    assert agreement, str(agreement)


def test_what_rounding_makes_of_a_program_is_let_pass_and_no_more(monkeypatch: Any) -> None:
    def saturated(x: Any) -> Any:  # exponents of several thousands, of which float32 has the tens
        return lax.sin(1e7 * lax.reduce_max(x, (0,)) + x)

    x = np.linspace(1, 3, 5, dtype="float32")
    agreement = inspect.check(inspect.trace(saturated, x), "numpy-float64", [x])
    assert not agreement and agreement.blind and agreement.rows[0][1], str(agreement)
    assert 1 < agreement.rows[0][-1] < 20
    exact = inspect.trace(lambda x: x * 0.1, x)
    monkeypatch.setitem(running._WAYS, "eager", lambda *_: [x * 0.1 + 0.01])
    found = inspect.check(exact, "eager", [x])
    assert not found and found.rows[0][-1] < 1e-3


def test_differences_are_printed_and_texts_alone_compared() -> None:
    first, second = (inspect.trace(f, 1.0) for f in (lax.sin, lax.cos))
    found = inspect.diff(first.stablehlo(), second.stablehlo())
    assert str(found) == found.text and "-    %0 = stablehlo.sine" in str(found)
    program: Any = first
    with pytest.raises(TypeError, match=r"such as str\(program.jaxpr\).*, got TracedProgram"):
        inspect.diff(program, second.stablehlo())


def test_a_check_of_numbers_that_leave_their_range_names_the_operation(run, tmp_path):
    model = tmp_path / "model.py"
    model.write_text("import pyjx.numpy as jnp\n\n\n"
                     "def f(x):\n    return jnp.log(jnp.exp(90 + x).sum())\n")
    status, _, err = run(f"{model}:f", "f32[2]", "--check", "numpy-float64")
    assert status == 1 and "nothing can be told" not in err, err
    assert "exp at" in err and "e+39 overflows in float32" in err and "model.py:5 (f)" in err, err
