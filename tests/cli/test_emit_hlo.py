"""The command `emit-hlo`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
from pyjx import jaxlib_api
from pyjx.cli import emit_hlo

ROOT = Path(__file__).parents[2]

MODEL = '''
"""A model in a file."""
import pyjx.numpy as jnp
from neighbour import factor

CONSTANT = 3

def loss(w, x):
    return jnp.sum(jnp.tanh(x @ w) ** 2) * factor

def affine(x):
    return x * 2.0 + 1.0

class Namespace:
    @staticmethod
    def inner(x):
        return jnp.sin(x)

def broken(x):
    return undefined_name

def refuses(x):
    raise ValueError("not today")
'''


@pytest.fixture
def model(tmp_path):
    (tmp_path / "neighbour.py").write_text("factor = 0.5\n")
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return str(path)


@pytest.fixture(autouse=True)
def clean_path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("model", "neighbour"):
        sys.modules.pop(name, None)


@pytest.fixture
def run(capsys):
    def run(*argv):
        status = emit_hlo.main(list(argv))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.mark.parametrize(("spec", "shape", "dtype"), [
    ("f32[8,128]", (8, 128), "float32"), ("bf16[2]", (2,), "bfloat16"), ("i32[]", (), "int32"),
    ("f32", (), "float32"), ("float32[3, 4]", (3, 4), "float32"), ("bool[2]", (2,), "bool"),
    ("u8[0]", (0,), "uint8"), ("c64[1]", (1,), "complex64"), ("int8[5]", (5,), "int8"),
])
def test_specs(spec, shape, dtype):
    s = emit_hlo.parse_spec(spec)
    assert s.shape == shape
    assert s.dtype.name == dtype


def test_numbers_as_specs():
    assert emit_hlo.parse_spec("3") == 3
    assert emit_hlo.parse_spec("-2.5") == -2.5
    assert emit_hlo.parse_spec("1j") == 1j


@pytest.mark.parametrize("spec", ["f33[2]", "f32[a]", "f32[2", "", "f32[-1]", "[2]", "nonsense"])
def test_bad_specs(spec):
    with pytest.raises(emit_hlo.UsageError, match="argument"):
        emit_hlo.parse_spec(spec)


def test_each_stage(run, model):
    args = (f"{model}:loss", "f32[4,3]", "f32[2,4]")
    status, text, err = run(*args)
    assert (status, err) == (0, "")
    assert text.startswith("module @jit_loss")
    jaxlib_api.parse_module(text)
    assert run(*args, "--emit", "stablehlo")[1] == text
    jaxpr = run(*args, "--emit", "jaxpr")[1]
    assert jaxpr.startswith("{ lambda ; a:f32[4,3] b:f32[2,4]. let")
    assert "tanh" in jaxpr
    assert run(*args, "--emit", "hlo")[1].startswith("HloModule jit_loss")
    assert "ENTRY" in run(*args, "--emit", "hlo-opt")[1]
    costs = json.loads(run(*args, "--emit", "cost")[1])
    assert costs["flops"] > 0
    assert costs["argument size in bytes"] == 4 * (12 + 8)


def test_grad_and_vmap(run, model):
    status, text, _ = run(f"{model}:loss", "f32[4,3]", "f32[2,4]", "--grad", "--emit", "jaxpr")
    assert status == 0
    assert text.rstrip().endswith("in (" + text.rstrip().split("in (")[-1])
    assert "transpose" in text or "dot_general" in text
    status, text, _ = run(f"{model}:affine", "f32[5,3]", "--vmap", "--emit", "jaxpr")
    assert text.startswith("{ lambda ; a:f32[5,3]")
    status, text, _ = run(f"{model}:affine", "f32[5]", "--vmap", "--grad", "--emit", "jaxpr")
    assert status == 0
    assert "f32[5]" in text


def test_targets(run, model):
    assert run(f"{model}:Namespace.inner", "f32[2]")[0] == 0
    status, text, _ = run("pyjx.numpy:sin", "f32[2]")
    assert status == 0
    assert "stablehlo.sine" in text


def test_output_file(run, model, tmp_path):
    out = tmp_path / "out.mlir"
    status, text, _ = run(f"{model}:affine", "f32[2]", "-o", str(out))
    assert (status, text) == (0, "")
    assert out.read_text().startswith("module @jit_affine")
    assert [p.name for p in tmp_path.iterdir() if "tmp" in p.name] == []


@pytest.mark.parametrize(("argv", "message"), [
    (("missing.py:f",), "there is no file 'missing.py'"),
    (("no_such_module:f",), "there is no module 'no_such_module'"),
    (("nocolon",), "expected FILE.py:FUNCTION"),
    (("MODEL:nothing",), "has no function 'nothing'"),
    (("MODEL:CONSTANT",), "is a int, not a function"),
    (("MODEL:affine", "f99[2]"), "there is no dtype 'f99'"),
])
def test_wrong_usage_is_status_2(run, model, argv, message):
    status, out, err = run(argv[0].replace("MODEL", model), *argv[1:])
    assert (status, out) == (2, "")
    assert message in err
    assert err.startswith("emit-hlo: ")


@pytest.mark.parametrize(("argv", "message"), [
    (("MODEL:loss", "f32[4,3]", "f32[2,5]"), "dot_general"),
    (("MODEL:loss", "f32[4,3]"), "missing 1 required positional argument"),
    (("MODEL:refuses", "f32[2]"), "ValueError: not today"),
    (("MODEL:broken", "f32[2]"), "undefined_name"),
    (("MODEL:affine", "f32[2]", "--grad"), "scalar-output"),
    (("MODEL:affine", "f32[]", "--vmap"), "vmap"),
    (("MODEL:affine", "f32[2]", "-o", "/nonexistent/folder/out"), "/nonexistent/folder/out"),
])
def test_programs_that_fail_are_status_1(run, model, argv, message):
    status, out, err = run(argv[0].replace("MODEL", model), *argv[1:])
    assert (status, out) == (1, "")
    assert message in err
    assert "Traceback" not in err


def test_as_a_process(model, tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYJX_CACHE_DIR": str(tmp_path / "cache")}

    def process(*argv, **options):
        return subprocess.run([sys.executable, "-m", "pyjx.cli.emit_hlo", *argv], env=env,
                              capture_output=True, text=True, **options)

    done = process(f"{model}:affine", "f32[2]", "--emit", "jaxpr")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "{ lambda ; a:f32[2]. let\n    b:f32[2] = mul a 2.0:f32[]\n"
        "    c:f32[2] = add b 1.0:f32[]\n  in (c,) }\n")
    assert process("pyjx.numpy:sin").returncode == 1
    assert process(f"{model}:affine", "--emit", "nonsense").returncode == 2
    assert process("model:affine", "f32[2]", cwd=os.path.dirname(model)).returncode == 0
    assert "usage: emit-hlo" in process("--help").stdout


def test_the_text_compiles_and_runs(run, model):
    from pyjx.runtime.compile import compile

    text = run(f"{model}:affine", "f32[2]")[1]
    outs = compile(text).execute_sharded([jax.numpy.ones(2)])
    np.testing.assert_array_equal(outs.disassemble_into_single_device_arrays()[0][0], [3, 3])
