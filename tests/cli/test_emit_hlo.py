"""The command `emit-hlo`."""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import emit_hlo
import pyjx as jax
from pyjx import configuration, jaxlib_api
from pyjx.cli.emit import messages, targets

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]

@pytest.mark.parametrize(("spec", "shape", "dtype"), [
    ("f32[8,128]", (8, 128), "float32"), ("bf16[2]", (2,), "bfloat16"), ("i32[]", (), "int32"),
    ("f32", (), "float32"), ("float32[3, 4]", (3, 4), "float32"), ("bool[2]", (2,), "bool"),
    ("u8[0]", (0,), "uint8"), ("c64[1]", (1,), "complex64"), ("int8[5]", (5,), "int8"),
    ("key<fry>[4]", (4,), "key<fry>"), ("key<urbg>", (), "key<urbg>"),
    ("key<unsafe_rbg>", (), "key<urbg>"), ("key[]", (), "key<fry>"),
    ("8x128xf32", (8, 128), "float32"), ("tensor<2x3xbf16>", (2, 3), "bfloat16"),
    ("tensor<f32>", (), "float32"), ("4xi1", (4,), "bool"),
])
def test_types(spec, shape, dtype):
    s = targets.Reader().value(spec)
    assert s.shape == shape
    assert s.dtype.name == dtype


def test_numbers_and_trees_as_specs():
    read = targets.Reader().value
    assert [read(x) for x in ("3", "-2.5", "1j", "1e-3", "True", "None")] == [
        3, -2.5, 1j, 1e-3, True, None]
    pair = read("(f32[2], {w: f32[4,4], 'b': [f32[4], 3]},)")
    assert [x.shape for x in jax.tree.leaves(pair) if hasattr(x, "shape")] == [
        (2,), (4,), (4, 4)]
    assert isinstance(pair, tuple) and isinstance(pair[1]["b"], list)
    assert read("()") == () and read("{}") == {}


def test_sizes_by_name(run):
    status, text, err = run("-c", "lambda x, y: x @ y", "f32[B,4]", "f32[4,2*B]")
    assert (status, err) == (0, "")
    assert "tensor<?x4xf32>, %arg1: tensor<4x?xf32>" in text
    text = run("-c", "lambda x, y: x @ y", "f32[B,4]", "f32[4,2*B]", "--emit", "jaxpr")[1]
    assert "f32[B,2*B]" in text


def test_budgets_of_memory(run):
    program = ("-c", "lambda x: x @ x", "f32[64,64]", "--emit", "memory", "--memory-budget")
    status, text, err = run(*program, "1MiB")
    assert (status, err) == (0, "") and "within 1.0 MiB about 32.0 KiB" in text
    assert re.search(r"in all +32,768 bytes", text)
    status, text, err = run(*program, "20KiB")
    assert (status, text) == (5, "") and "does not fit in its memory_budget of 20.0 KiB" in err
    status, text, err = run(*program, "rubbish")
    assert (status, text) == (2, "") and "--memory-budget: memory_budget is bytes" in err


def test_data_as_arguments(run, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("batch.npz", w=np.ones((3, 2), np.float32), b=np.ones(2, np.float32))
    np.save("x.npy", np.ones((5, 3), np.float32))
    status, text, err = run("model.py:named", "@batch.npz", "@x.npy", "--emit", "jaxpr")
    assert (status, err) == (0, "")
    assert "a:f32[2] b:f32[3,2] c:f32[5,3]" in text
    Path("makers.py").write_text("def make():\n    return {'w': 1.0}, 2.0\n")
    assert run("-c", "lambda p, x: p['w'] * x", "@makers.py:make", "--emit", "jaxpr")[0] == 0


DATA = """
import numpy as np

def params(): return {"w": np.ones((3, 2), np.float32)}
def pair(): return np.ones((3, 2), np.float32), np.ones(2, np.float32)
def by_name(): return {"x": np.ones((4, 3), np.float32), "p": params()}
def needs(n): return n

def f(p, x): return x @ p["w"]
def of_dict(p): return p["w"].sum()
def three(w, b, x): return x @ w + b
def of_pair(p, x): return x @ p[0] + p[1]
"""


def test_data_is_one_argument_or_all(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "data", raising=False)
    Path("data.py").write_text(DATA)
    w, b, x = np.ones((3, 2), "f4"), np.ones(2, "f4"), np.ones((4, 3), "f4")
    np.savez("p.npz", w=w)
    np.savez("numbered.npz", w, b, x)
    for function, *specs in (
            ("f", "@data:params", "f32[4,3]"), ("f", "@data:params", "x=f32[4,3]"),
            ("f", "p=@data:params", "x=f32[4,3]"), ("f", "@p.npz", "f32[4,3]"),
            ("f", "x=f32[4,3]", "p = @p.npz"), ("f", "@data:by_name"), ("of_dict", "@data:params"),
            ("of_dict", "p=@data.py:params"), ("three", "@numbered.npz"),
            ("three", "@data:pair", "x=f32[4,3]"), ("of_pair", "@data:pair", "f32[4,3]"),
            ("of_pair", "@data:pair", "--static", "x=1")):
        status, text, err = run(f"data.py:{function}", *specs, "--emit", "jaxpr")
        if specs[-1] == "x=1":  # which it cannot multiply
            assert status == 3 and "for ((f32[3,2], f32[2]))" in err
        else:
            assert (status, err) == (0, "") and "a:f32[3,2]" in text
    for function, *specs, message in (
            ("f", "p=@data:params", "f32[4,3]", "'f32[4,3]' has no name, and stands behind one "
             "that has: p. Name it, too: x=f32[4,3]\n"),
            ("three", "@data:pair", "f32[4,3]", "Beside others by position @data:pair is one"),
            ("f", "@data:params", "not take ({w: f32[3,2]}): missing a required argument: 'x'"),
            ("f", "@data:pair", "x=f32[2]", "y=f32[2]", "there is no parameter 'y'"),
            ("f", "@data:needs", "TypeError while calling @data:needs: needs() missing 1"),
            ("f", "@data.py", "expected @FILE.py:FUNCTION or @module:FUNCTION. Did you mean "
             "@data.py:params? It has: params, pair"),
            ("f", "p=@data.pair", "Did you mean @data:pair?\n")):
        status, text, err = run(f"data.py:{function}", *specs)
        assert status in (2, 3) and text == "" and message in err, err


def test_targets_without_a_function(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("one.py").write_text("def only(x):\n    return x\n")
    Path("empty.py").write_text("")
    for target, meant in (
            ("one.py", "one.py:only"), ("one.py:", "one.py:only"), ("one", "one:only"),
            (":one", "one:only"), ("one.only", "one:only"), ("one.onyl", None),
            ("@one.py", "one.py:only"), ("empty.py", None), ("empty.py:", None)):
        status, _, err = run(target, "f32[3]")
        said = f" Did you mean {meant}?" if meant else ""
        assert status == 2 and f": expected FILE.py:FUNCTION or module:FUNCTION.{said}\n" in err


def test_programs_run_on_the_data_of_their_arguments(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("h.npy", np.full(4, 100.0, np.float32))
    np.savez("h.npz", x=np.full(4, -1.0, np.float32))
    Path("of_data.py").write_text("import numpy as np\n\ndef make():\n"
                                 "    return np.full(4, 100.0, 'f4'), 3\n")
    for function, *specs, said in (
            ("lambda x: x.sum()", "@h.npy", "400.0"),
            ("lambda h: h['x'].sum()", "@h.npz", "-4.0"),
            ("lambda x, n: x.sum() + n", "@of_data.py:make", "403.0"),
            ("lambda x, n: (x * n).sum()", "@h.npy", "0.5", "200.0"),
            ("jax.jit(lambda x, n: (x * n).sum(), static_argnums=1)", "@h.npy", "2", "800.0")):
        status, _, err = run("-c", function, *specs, "--run", "--check", "eager")
        assert status == 0 and f"result: float32[] {said}" in err, err
    log = ("-c", "lambda h: jnp.log(h['x'])", "@h.npz", "--find", "nan")
    assert run(*log)[0] == 1 and "log" in run(*log)[2]
    assert run("-c", "lambda x: jnp.log(x)", "@h.npy", "--find", "nan")[0] == 0


def test_flags_by_their_whole_names(run):
    status, text, err = run("-c", "lambda x: x", "f64[2]", "--flag", "jax_enable_x64=1")
    assert (status, err) == (0, "") and "tensor<2xf64>" in text


@pytest.mark.parametrize("option", ["--run", "--check=eager", "--find=nan", "--reduce=crash"])
def test_symbolic_sizes_cannot_be_run(run, tmp_path, option):
    status, _, err = run("-c", "lambda x: x.sum()", "f32[n]", option, "-o", f"{tmp_path}/o.mlir")
    assert status == 2 and "what is run has no symbolic sizes; give numbers for them" in err


@pytest.mark.parametrize("options", [
    ("--emit", "cost"), ("--emit", "hlo-opt"), ("--emit", "jaxpr", "--roofline", "v5e")])
def test_symbolic_sizes_are_not_counted(run, options):
    status, _, err = run("-c", "lambda x, w: jnp.tanh(x @ w)", "f32[n,4]", "f32[4,2]", *options)
    assert status == 2 and "is compiled or counted has no symbolic sizes; give numbers" in err
    assert "as in f32[8,4] for f32[n,4], or ask for jaxpr" in err and "fault" not in err


def test_of_symbolic_sizes_a_folder_has_the_other_forms(run, tmp_path):
    status, _, err = run("-c", "lambda x, w: jnp.tanh(x @ w)", "f32[n,4]", "f32[4,2]", "-o",
                         f"{tmp_path}/")
    assert status == 0 and [p.suffix for p in sorted(tmp_path.iterdir())] == [
        ".jaxpr", ".mlir", ".mlirbc", ".dot", ".html", ".json"]
    (line,) = [line for line in err.splitlines() if "symbolic" in line]
    assert line.startswith("emit-hlo: note: no hlo, hlo-proto, hlo-opt, llvm, asm, cost, memory: ")
    (text,) = [p.read_text() for p in tmp_path.iterdir() if p.suffix == ".json"]
    data = json.loads(text)
    assert "cost" not in data and all("flops" not in row for row in data["equations"])


def test_static_arguments(run, model):
    args = (f"{model}:named", "{w: f32[3,2], b: f32[2]}", "f32[5,3]", "--emit", "jaxpr")
    assert "tanh" in run(*args)[1]
    for more in (("--static", "activation=sin"), ("activation='sin'",), ("activation=='sin'",)):
        status, text, err = run(*args, *more)
        if more == ("activation='sin'",):
            assert status == 2 and "expected a type" in err
        else:
            assert (status, err) == (0, "") and "sin" in text and "tanh" not in text
    text = run("-c", "lambda x, n: x ** n", "f32[2]", "=3", "--emit", "jaxpr")[1]
    assert "integer_pow[y=3]" in text


def test_arguments_that_the_function_describes(run, model, tmp_path):
    status, text, err = run(f"{model}:described", "--emit", "jaxpr")
    assert (status, err) == (0, "") and "a:f32[3]. let" in text
    path = tmp_path / "examples.py"
    path.write_text("import numpy as np\nexample_args = (np.ones(5, np.float32),)\n"
                    "def f(x):\n    return x\n")
    assert "f32[5]" in run(f"{path}:f", "--emit", "jaxpr")[1]
    (tmp_path / "steps.py").write_text("def make(n):\n    return lambda x: x * n\n")
    path = tmp_path / "made_elsewhere.py"
    path.write_text("import numpy as np\nfrom steps import make\n"
                    "step, example_args = make(3), (np.ones(7, np.float32),)\n")
    assert "f32[7]" in run(f"{path}:step", "--emit", "jaxpr")[1]
    path = tmp_path / "annotated.py"
    path.write_text('from __future__ import annotations\n'
                    'def f(x: Float[Array, "8 n"], y: Int[Array, ""]):\n    return x + y\n')
    assert "a:f32[8,n] b:i32[]" in run(f"{path}:f", "--emit", "jaxpr")[1]


def test_keys_as_arguments(run):
    status, text, err = run("pyjx.random:bits", "key<fry>[2]", "--vmap", "--emit", "jaxpr")
    assert (status, err) == (0, "")
    assert "a:key<fry>[2]. let" in text
    assert "random_bits" in text


def test_types_that_are_off_are_told(run, model):
    args = (f"{model}:affine", "f64[3]")
    status, text, err = run(*args)
    assert status == 0 and "tensor<3xf32>" in text
    assert err == "emit-hlo: note: f64 is f32 here, as 64-bit types are off; --x64 has them.\n"
    assert run(*args, "-q")[2] == ""
    status, text, err = run(*args, "--x64")
    assert (status, err) == (0, "") and "tensor<3xf64>" in text
    assert not jax.config.jax_enable_x64


def test_optimized_program_is_not_of_an_older_source(run, model, tmp_path):
    path = Path(model)
    source = path.read_text()
    with configuration.cache_dir(str(tmp_path / "cache")):
        for shift in (0, 7):
            path.write_text("\n" * shift + source)
            text = run(f"{model}:affine", "f32[3]", "--emit", "hlo-opt")[1]
            line = shift + 1 + source.split("\n").index("    return x * 2.0 + 1.0")
            assert f"line={line} " in text
            sys.modules.pop("model", None)


def test_each_kind(run, model, tmp_path):
    args = (f"{model}:loss", "f32[4,3]", "f32[2,4]")
    status, text, err = run(*args)
    assert (status, err) == (0, "")
    assert text.startswith("module @jit_loss")
    jaxlib_api.parse_module(text)
    assert run(*args, "--emit", "stablehlo")[1] == text
    jaxpr = run(*args, "--emit", "jaxpr")[1]
    assert jaxpr.startswith("{ lambda ; a:f32[4,3] b:f32[2,4]. let")
    assert run(*args, "--emit", "hlo")[1].startswith("HloModule jit_loss")
    assert "ENTRY" in run(*args, "--emit", "hlo-opt")[1]
    assert "define " in run(*args, "--emit", "llvm")[1]
    cost = run(*args, "--emit", "cost")[1]
    assert "dot_general" in cost and "model.py:9" in cost and "by XLA" in cost
    assert "argument                       80 bytes" in run(*args, "--emit", "memory")[1]
    found = json.loads(run(*args, "--emit", "json")[1])
    assert found["arguments"][0] == {
        "name": "w", "type": "f32[4,3]", "shape": [4, 3], "dtype": "float32"}
    assert found["cost"]["total"]["flops"] > 0 and found["memory"]["argument"] == 80
    assert found["operations"]["stablehlo"]["stablehlo.tanh"] == 1
    assert [e["primitive"] for e in found["equations"]][:2] == ["dot_general", "tanh"]
    status, out, err = run(*args, "--emit", "ptx")
    assert (status, out) == (2, "") and "no PTX on cpu" in err
    for kind, start in (("bytecode", b"ML\xefR"), ("hlo-proto", b"\n\x08jit_loss")):
        path = tmp_path / "out"
        assert run(*args, "--emit", f"{kind}={path}") == (0, "", "")
        assert path.read_bytes().startswith(start)


def test_transformations_in_the_order_written(run, model):
    status, text, _ = run(f"{model}:loss", "f32[4,3]", "f32[2,4]", "--grad", "--emit", "jaxpr")
    assert status == 0 and "transpose" in text
    assert run(f"{model}:affine", "f32[5,3]", "--vmap", "--emit", "jaxpr")[1].startswith(
        "{ lambda ; a:f32[5,3]")
    assert run(f"{model}:affine", "f32[5]", "--grad", "--vmap", "--emit", "jaxpr")[0] == 0
    status, _, err = run(f"{model}:affine", "f32[5]", "--vmap", "--grad", "--emit", "jaxpr")
    assert status == 3 and "scalar-output" in err
    results = {"--value-and-grad": 2, "--jvp": 2, "--vjp": 1, "--jacfwd": 1, "--jacrev": 1,
               "--remat": 1, "--jit": 1, "--hessian": 1}
    for option, count in results.items():
        status, text, err = run("-c", "lambda x: jnp.sin(x) * x", "f32[]", option,
                                "--emit", "jaxpr")
        assert (status, err) == (0, "")
        assert len(text[text.rindex("in (") + 4:].split(")")[0].strip(",").split(",")) == count
    text = run(f"{model}:loss", "f32[4,3]", "f32[2,4]", "--grad=0,1", "--emit", "jaxpr")[1]
    assert text.rstrip().rstrip(" }").endswith(")") and text.count("dot_general") == 3
    text = run(f"{model}:loss", "f32[4,3]", "f32[9,2,4]", "--vmap=None,0", "--emit", "jaxpr")[1]
    assert "f32[9,2,3]" in text


def test_what_the_program_prints_is_no_output(run, tmp_path):
    path = tmp_path / "model.py"
    path.write_text("print('loading')\ndef f(x):\n    print('tracing', x.shape)\n    return x\n")
    status, out, err = run(f"{path}:f", "f32[2]", "--emit", "jaxpr")
    assert (status, err) == (0, "loading\ntracing (2,)\n")
    assert out.startswith("{ lambda ;") and "print" not in out


def test_targets(run, model):
    assert run(f"{model}:Namespace.inner", "f32[2]")[0] == 0
    assert run(f"{model}:Model.scaled", "f32[2]")[0] == 0
    status, text, _ = run("pyjx.numpy:sin", "f32[2]")
    assert status == 0
    assert "stablehlo.sine" in text
    assert "stablehlo.cosine" in run("-c", "jnp.cos", "f32[2]")[1]


def test_programs_in_files(run, model, tmp_path, monkeypatch):
    """A program that was emitted is a target, in each form that can be read."""
    text = run(f"{model}:loss", "f32[4,3]", "f32[2,4]")[1]
    optimized = run(f"{model}:loss", "f32[4,3]", "f32[2,4]", "--emit", "memory")[1]
    for name in ("out.mlir", "out.mlirbc", "out.hlo"):
        path = str(tmp_path / name)
        assert run(f"{model}:loss", "f32[4,3]", "f32[2,4]", "-o", path) == (0, "", "")
        status, again, err = run(path)
        assert (status, err) == (0, "") and "stablehlo.tanh" in again
        assert run(path, "--emit", "memory")[1] == optimized
        status, out, err = run(path, "--emit", "jaxpr")
        assert (status, out) == (2, "") and "no jaxpr" in err
        status, out, err = run(path, "--grad")
        assert (status, out) == (2, "") and "not a function" in err
    (tmp_path / "stdin").write_text(text)
    with open(tmp_path / "stdin") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert "HloModule" in run("-", "--emit", "hlo")[1]


@pytest.mark.parametrize("content", [
    b"", b"module {", b"nonsense", b"ML\xefR", b"ML\xefR\rStableHLO_v1.0.0\x00garbage\xff\xfe" * 9,
    b"\xff\xfe\x00", b"HloModule f\n junk",
    b"HloModule f, is_scheduled=true\n\nENTRY f {\n  ROOT c = f32[] constant(1)\n}\n",
], ids=["empty", "half", "words", "head", "damaged", "bytes", "hlo", "compiled"])
def test_files_that_are_no_programs(run, tmp_path, content):
    path = tmp_path / "bad.mlirbc"
    path.write_bytes(content)
    status, out, err = run(str(path), "--emit", "hlo")
    assert (status, out) == (2, "") and err.startswith("emit-hlo: ")
    assert "Traceback" not in err and (b"is_sch" in content) == ("viewer.page(title, hlo" in err)


def test_bytecode_for_a_version(run, model, tmp_path):
    path = tmp_path / "out.mlirbc"
    for version in ("min", "1.0.0"):
        assert run(f"{model}:loss", "f32[4,3]", "f32[2,4]", "--target", version, "-o", str(path)
                   ) == (0, "", "")
        assert (b"StableHLO_v0.9.0" if version == "min" else b"v1.0.0") in path.read_bytes()
        assert "stablehlo.tanh" in run(str(path))[1]
    status, _, err = run(f"{model}:loss", "f32[4,3]", "f32[2,4]", "--target", "99.0.0", "-o",
                         str(path))
    assert status == 2 and "99.0.0" in err


def test_names_of_the_user(run, model):
    status, text, _ = run(f"{model}:named", "{w: f32[3,2], b: f32[2]}", "f32[5,3]",
                          "--names", "user")
    assert status == 0
    jaxlib_api.parse_module(text)
    assert "%params.b: tensor<2xf32>, %params.w: tensor<3x2xf32>, %x: tensor<5x3xf32>" in text
    assert "%h = stablehlo.tanh %h.add" in text
    text = run(f"{model}:described", "--names", "user")[1]
    assert "%scaled = stablehlo.multiply %x" in text


def test_places_in_the_source(run, model):
    args = (f"{model}:loss", "f32[4,3]", "f32[2,4]")
    assert "loc(" not in run(*args)[1]
    line = run(*args, "--locs", "line")[1]
    assert 'loc("jit(loss)/tanh"(' in line and f'"{model}":9:' in line
    jaxlib_api.parse_module(line)
    optimized = run(*args, "--emit", "hlo-opt")[1]
    assert f'"{model}"' in optimized and 'op_name="jit(loss)/' in optimized


def test_programs_that_import_jax(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("import jax\nfrom jax import numpy as jnp\n"
                    "def f(x):\n    return jax.jit(jnp.sin)(x)\n")
    for command in ("emit_hlo", "pyjx emit-hlo"):
        done = subprocess.run(
            [sys.executable, "-m", *command.split(), f"{path}:f", "f32[2]", "--emit", "jaxpr"],
            env=environment(tmp_path), capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert "sin" in done.stdout
    loaded = "import sys; import atexit; " \
        "atexit.register(lambda: print('pyjx.alias' in sys.modules)); import emit_hlo; " \
        "sys.argv = ['emit-hlo', '-c', 'jnp.sin', 'f32[2]']; emit_hlo.command()"
    done = subprocess.run([sys.executable, "-c", loaded], env=environment(tmp_path),
                          capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_the_command_is_no_call_of_the_users(model):
    done = subprocess.run([sys.executable, "-m", "emit_hlo", f"{model}:loss", "f32[4,3]",
                           "f32[2,5]", "--vmap"], text=True, capture_output=True)
    assert "vmap got inconsistent sizes" in done.stderr and "The call was" not in done.stderr


def test_errors_point_at_no_library_of_python(model):
    assert messages.is_users(model) and messages.is_users(pytest.__file__)
    assert not messages.is_users(functools.__file__) and not messages.is_users(jax.__file__)


def test_what_is_no_function(run, model):
    status, _, err = run(f"{model}:Model", "f32[2]")
    assert status == 2 and "is a class, not a function; name a method" in err
    assert "Model.scaled." in err
    assert "is of type int, not a function" in run(f"{model}:CONSTANT")[2]
    assert "Did you mean affine?" in run(f"{model}:afine")[2]
    assert run("-c", "jnp.float32", "i32[2]")[0] == 0


def test_reports_go_beside_the_output(run, model):
    args = (f"{model}:loss", "f32[4,3]", "f32[2,4]")
    plain = run(*args)[1]
    status, out, err = run(*args, "--time", "--stats", "--roofline", "v5e", "--passes", "--run=2",
                           "--check", "eager")
    assert (status, out) == (0, plain)
    for word in ("import ", "trace ", "lower ", "1 stablehlo.tanh", "model.py:9", "bound by",
                 "==== decompose", "==== dce", "result result: float32", "2 runs: least",
                 "check eager:\nagrees"):
        assert word in err


def test_times_of_lines_and_operations(run, model):
    args = (f"{model}:loss", "f32[4,3]", "f32[2,4]", "--emit", "memory")
    err = run(*args, "--time", "--run=3")[2]
    assert re.search(r"^operations: [\d.]+ us a run, while XLA's profiler watches$", err, re.M)
    assert re.search(r"^ +[\d.]+ +[\d.]+  \S*model\.py:9$", err, re.M)
    assert re.search(r"^ +[\d.]+ +1  \w\S*  \(\S*model\.py:\d+", err, re.M)
    assert "a run" not in run(*args, "--run=3")[2]


def test_times_of_xla_passes(run, model):
    err = run(f"{model}:loss", "f32[4,3]", "f32[2,4]", "--time", "--emit", "memory")[2]
    assert "compile " in err and "XLA's passes" in err and " x " in err


def test_tracebacks_are_shown_when_asked_for(run, model):
    args = (f"{model}:refuses", "f32[2]")
    assert "Traceback" not in run(*args)[2]
    status, _, err = run(*args, "-v")
    assert status == 3 and "Traceback" in err and err.splitlines()[-2].startswith(" ")


@pytest.mark.parametrize("how", ["interpreter", "numpy-float64", "eager"])
def test_checks(run, model, how):
    status, _, err = run(f"{model}:loss", "f32[4,3]", "f32[2,4]", "--check", how, "--grad")
    assert status == 0 and "agrees   result: largest difference" in err


def test_a_check_that_fails_is_status_1(run, model, monkeypatch):
    from pyjx.inspect import running

    monkeypatch.setitem(running._WAYS, "eager", lambda program, args, others: [np.float32(1e9)])
    status, _, err = run(f"{model}:loss", "f32[4,3]", "f32[2,4]", "--check", "eager")
    assert status == 1 and "DIFFERS  result" in err


def test_a_check_of_which_nothing_can_be_told_is_status_7(run):
    status, _, err = run("-c", "lambda b: jnp.sqrt(b * b - 4.0) - b", "1e4", "--check",
                         "numpy-float64")
    assert status == 7 and "nothing can be told" in err, err
    code = "lambda x: lax.fori_loop(0, 60, lambda i, x: 4 * x * (1 - x), x * x / (1 + x * x))"
    status, _, err = run("-c", code, "f32[8]", "--check", "numpy-float64")
    assert status == 7 and "nothing can be told" in err and "in iteration" in err, err


def test_what_the_interpreter_does_not_know(run):
    status, _, err = run("-c", "jnp.linalg.eigvalsh", "f32[3,3]", "--check", "interpreter")
    assert status == 4 and "interpreter cannot run it" in err and "custom_call" in err


def test_differences(run, model):
    args = (f"{model}:affine", "f32[2]")
    status, out, err = run(*args, "--diff", f"{model}:affine")
    assert (status, out) == (0, "") and "do not differ" in err
    status, out, err = run(*args, "--diff", f"{model}:Namespace.inner")
    assert status == 1 and "-    %0 = stablehlo.sine" in out and "stablehlo.multiply" in out
    status, out, err = run(*args, "--diff", f"{model}:nothing")
    assert (status, out) == (2, "") and "has no function 'nothing'" in err


def test_differences_from_an_older_version(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True,
                       capture_output=True)

    path = tmp_path / "versioned.py"
    path.write_text("import pyjx.numpy as jnp\ndef f(x):\n    return jnp.sin(x)\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    for kind in ("cost", "json"):
        assert run("versioned.py:f", "f32[2]", "--diff", "HEAD", "--emit", kind)[0] == 0
    (tmp_path / "new.py").write_text(path.read_text())
    status, out, err = run("new.py:f", "f32[2]", "--diff", "HEAD")
    assert (status, out) == (2, "") and "new.py is not in that version; commit it" in err
    path.write_text("import pyjx.numpy as jnp\ndef f(x):\n    y = jnp.sin(x)\n    return y\n")
    assert run("versioned.py:f", "f32[2]", "--diff", "HEAD")[0] == 0
    sys.modules.pop("versioned")
    path.write_text("import pyjx.numpy as jnp\ndef f(x):\n    return jnp.cos(x)\n")
    status, out, _ = run("versioned.py:f", "f32[2]", "--diff", "HEAD")
    assert status == 1 and "-    %0 = stablehlo.sine" in out and "+    %0 = stablehlo.cosine" in out
    status, out, err = run("versioned.py:f", "f32[2]", "--diff", "HEAT")
    assert (status, out) == (2, "") and "HEAT is neither" in err


def test_expected_files(run, model, tmp_path):
    golden = tmp_path / "golden.mlir"
    args = (f"{model}:affine", "f32[2]", "--expect", str(golden))
    status, out, err = run(*args)
    assert (status, out) == (1, "") and "--update writes it" in err
    assert run(*args, "--update")[0] == 0 and golden.read_text().startswith("module")
    assert run(*args) == (0, "", "")
    kept = golden.read_text()
    golden.write_text(kept.replace("%0", "%first"))
    assert run(*args) == (0, "", "")
    golden.write_text(kept.replace("multiply", "divide"))
    status, out, err = run(*args)
    assert status == 1 and "-    %1 = stablehlo.divide" in out and "+    %1 =" in out


def test_meshes(run, model):
    args = (f"{model}:loss", "f32[4,3]", "f32[2,4]", "--mesh", "x=1")
    status, _, err = run(*args, "--in-shardings", "*; x,None")
    assert (status, err) == (0, "")
    for wrong in ("--in-shardings *;z", "--in-shardings x,None,None;*", "--in-shardings x,x",
                  "--out-shardings x;x", "--out-shardings x,None,None"):
        status, _, err = run(*args, *wrong.split())
        assert status == 2 and err.startswith(f"emit-hlo: {wrong}: "), err
    assert "with JAX_NUM_CPU_DEVICES=64 in the environment" in run(*args[:-1], "x=64")[2]
    assert "axis x is given twice" in run(*args[:-1], "x=1,x=1")[2]


def test_lists_and_completion(run):
    for what in ("kinds", "platforms", "passes", "transforms", "chips"):
        assert run("--list", what)[1].count("\n") > 2
    for shell in ("bash", "zsh", "fish"):
        assert "value-and-grad" in run("--completion", shell)[1]
    assert "usage: emit-hlo" in run("--help")[1] and "examples:" in run("--help")[1]
    assert "7 a check that can tell nothing" in run("--help")[1]
    assert run("--version")[1].startswith("emit-hlo of pyjx ")


def test_help_loads_nothing():
    """It answers at once: no jaxlib, no NumPy, no pyjx."""
    code = ("import sys, emit_hlo; emit_hlo.main(['--help']); emit_hlo.main(['--emit', 'no', 'x']);"
            "print(sorted({'jaxlib', 'numpy', 'pyjx', 'rich'} & set(sys.modules)))")
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("argv", "message"), [
    (("missing.py:f",), "there is no file 'missing.py'"),
    (("no_such_module:f",), "there is no module 'no_such_module'"),
    (("nocolon",), "expected FILE.py:FUNCTION"),
    (("MODEL::loss",), "one colon stands before the function: MODEL:loss."),
    (("pyjx.numpy.sin",), "expected FILE.py:FUNCTION or module:FUNCTION."),
    (("MODEL:affine", "f32(2)"), "a type has its sizes in brackets, such as f32[8,128]"),
    (("MODEL:affine", "4,3"), "a type has its sizes in brackets, such as f32[8,128]"),
    (("MODEL:affine", "4x3"), "there is no dtype '3'; it stands behind the sizes, as in 4x3xf32"),
    (("MODEL:affine", "f32[2]", "--time=3"), "--time takes no value, got '3'"),
    (("MODEL",), "It has: loss, affine, broken"),
    (("MODEL:nothing",), "has no function 'nothing'. It has: "),
    (("MODEL:Namespace.iner",), "has no function 'Namespace.iner'. Did you mean inner?"),
    (("pyjx.numpy:arctg",), "has no function 'arctg'. Did you mean arctan"),
    (("pyjx.numpy:nothing_like_it",), "has no function 'nothing_like_it'.\n"),
    (("pyjx.tools.jax_to_ir:jax_to_tf",), "has no function 'jax_to_tf': it is not there yet."),
    (("MODEL:affine", "key<fly>[2]"), "there is no dtype 'key<fly>'"),
    (("MODEL:CONSTANT",), "is of type int, not a function"),
    (("MODEL:jnp",), "is a module, not a function"),
    (("MODEL:affine", "f99[2]"), "there is no dtype 'f99'"),
    (("MODEL:loss", "f32[4,3]"), "missing a required argument: 'x'"),
    (("MODEL:affine", "y=f32[2]"), "missing a required argument: 'x'"),
    (("MODEL:affine", "y=f32[2]"), "there is no parameter 'y'; parameters are: x."),
    (("MODEL:loss", "f32[4,3]", "xx=f32[2,4]"), "there is no parameter 'xx'. Did you mean x?"),
    (("MODEL:loss",), "which type has w?"),
    (("MODEL:affine", "f32[2]", "-o", "x.foo"), "no kind has the suffix .foo; suffixes are: .ja"),
    (("MODEL:affine", "f32[2]", "-o", "x.mlr"), ".mlr. Did you mean .mlir"),
    (("MODEL:affine", "f32[2]", "--memory-budget", "12XB"), "got '12XB'"),
    (("MODEL:affine", "f32[2]", "--flag", "jax_memory_budget=12XB"), "got '12XB'"),
    (("MODEL:affine", "f32[2]", "--platform", "gpu"),
     "there is no platform 'gpu'. NVIDIA's GPUs are cuda."),
    (("MODEL:affine", "f32[2]", "--platform", "tpu:v9"), "; there are: tpu:v2:2x2, tpu:v3:2x2, "),
    (("MODEL:affine", "f32[2]", "--platform", "cuda:h10"), "Did you mean cuda:h100?"),
    (("MODEL:affine", "f32[2]", "--vmap", "0"), "What belongs to --vmap is written --vmap=0"),
    (("MODEL:affine", "float[2]"), "there is no dtype 'float'. Did you mean f32?"),
    (("MODEL:affine", "f32[2]", "--emit", "stablhlo"), "Did you mean stablehlo"),
    (("MODEL:affine", "f32[2]", "--gard"), "Did you mean --grad"),
    (("MODEL:affine", "f32[2]", "--jaxpr"), "no option --jaxpr. Did you mean --emit jaxpr?"),
    (("MODEL:affine", "f32[B]", "--emit", "hlo"), "no symbolic sizes"),
    (("MODEL:affine", "f32[2]", "--flag", "enable_x46=1"), "Did you mean enable_x64"),
    (("MODEL:affine", "f32[2]", "--flag", "enable_x64=perhaps"), "perhaps"),
    (("-c", "lambda x: (x"), "'(' was never closed"),
    ((), "which function?"),
])
def test_wrong_usage_is_status_2(run, model, argv, message):
    status, out, err = run(*[a.replace("MODEL", model) for a in argv])
    assert (status, out) == (2, "")
    assert message.replace("MODEL", model) in err
    assert err.startswith("emit-hlo: ")


@pytest.mark.parametrize("option", ["--run", "--check=eager", "--find=nan", "--reduce=crash"])
def test_programs_in_files_are_not_run(run, tmp_path, option):
    path = f"{tmp_path}/kept.mlir"
    assert run("-c", "lambda x: x + 1", "f32[2]", "-o", path)[0] == 0
    status, out, err = run(path, option)
    assert (status, out) == (2, "") and (
        f"a program, not a function: {option.partition('=')[0]} is for functions. Name the one that"
        in err)


def test_differences_of_one_line_and_of_pages(run, tmp_path):
    kept, page = f"{tmp_path}/kept.mlir", f"{tmp_path}/kept.html"
    program = ("-c", "lambda x: x + 1", "f32[2]")
    assert run(*program, "-o", kept)[0] == run(*program, "--emit=html", "-o", page)[0] == 0
    other = ("-c", "lambda x: x + 2", "f32[2]")
    assert "emit-hlo: 1 line differs from 1\n" in run(*other, "--diff", kept)[2]
    status, out, err = run(*other, "--emit", "html", "--diff", kept)
    assert (status, out) == (2, "") and "compares texts; html is none. --emit stablehlo or" in err
    status, out, err = run(*other, "--emit", "html", "--expect", page)
    assert (status, out) == (1, "") and "kept.html differs: " in err


@pytest.mark.parametrize(("code", "meant"), [
    ("lambda x: jnp.sine(x)", "sin"), ("jnp.sine", "sin"), ("lambda x: jax.hess(x)", "hessian"),
    ("lambda x: x.summ()", "sum"),
    ("lambda x: jnp.sum(x, axs=0)", "axis"),
])
def test_errors_of_programs_say_what_is_meant(run, code, meant):
    status, out, err = run("-c", code, "f32[3]")
    assert (status, out) == (3, "")
    assert re.findall("Did you mean:? '(.*?)'", err) == [meant]


@pytest.mark.parametrize(("argv", "message"), [
    (("MODEL:loss", "f32[4,3]", "f32[2,5]"), "return jnp.sum(jnp.tanh(x @ w)"),
    (("MODEL:loss", "f32[4,3]", "f32[2,5]"), "for (f32[4,3], f32[2,5])"),
    (("MODEL:refuses", "f32[2]"), "ValueError while tracing"),
    (("MODEL:broken", "f32[2]"), "undefined_name"),
    (("-c", "x + 1", "f32[2]"), "-c takes a function, such as 'lambda x: x + 1'"),
    (("MODEL:affine", "f32[2]", "--grad"), "scalar-output"),
    (("MODEL:affine", "f32[]", "--vmap"), "vmap"),
])
def test_programs_that_fail_are_status_3(run, model, argv, message):
    status, out, err = run(argv[0].replace("MODEL", model), *argv[1:])
    assert (status, out) == (3, "")
    assert message in err
    assert "Traceback" not in err and len(err.splitlines()) < 12


@pytest.mark.parametrize(("source", "message"), [
    ("def f(x:\n    pass\n", "SyntaxError while importing"),
    ("import no_such_module_at_all\n", "No module named 'no_such_module_at_all'"),
    ("raise RuntimeError('no')\n", "RuntimeError while importing"),
    ("import sys\nsys.exit(3)\n", "ended the process"),
])
def test_files_that_cannot_be_imported(run, tmp_path, source, message):
    path = tmp_path / "failing.py"
    path.write_text(source)
    status, out, err = run(f"{path}:f", "f32[2]")
    assert (status, out) == (3, "") and message in err
    assert "failing.py" in err and "Traceback" not in err


def test_carets_point_at_what_is_wrong(run, model):
    err = run(f"{model}:affine", "x=f32[2,%]")[2]
    line, carets = err.splitlines()[1:3]
    assert line == "  x=f32[2,%]" and carets == "          ^"


def test_what_xla_refuses_is_status_5(run, model):
    status, out, err = run(f"{model}:affine", "f32[2]", "--emit", "hlo-opt", "--xla", "no_such=1")
    assert (status, out) == (5, "") and "no_such" in err


def test_what_cannot_be_lowered_is_status_4(run):
    status, out, err = run("-c", "lambda x: lax.psum(x, 'i')", "f32[2]")
    assert (status, out) == (3, "") and "unbound axis name" in err
    status, out, err = run("-c", "lambda x: jnp.linalg.eig(x)[0]", "f32[3,3]", "--mesh", "x=1",
                           "--emit", "stablehlo", "--flag", "pyjx_outline=off")
    assert status == 0


@pytest.mark.parametrize(("platform", "package"), [
    ("cuda:h100", "jax-cuda13-pjrt"), ("tpu:v5e:2x2", "libtpu")])
def test_platforms_that_are_not_installed_are_status_6(run, model, monkeypatch, platform, package):
    monkeypatch.setattr("pyjx.runtime.backends.plugin_library", lambda name: None)
    status, out, err = run(f"{model}:affine", "f32[2]", "--emit", "hlo-opt", "--platform", platform)
    assert (status, out) == (6, "") and package in err and "pip install" in err


def environment(tmp_path):
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYJX_CACHE_DIR": str(tmp_path / "cache")}


def process(tmp_path, *argv, module="emit_hlo", **options):
    return subprocess.run([sys.executable, "-m", *module.split(), *argv],
                          env=environment(tmp_path), capture_output=True, text=True, **options)


def test_as_a_process(model, tmp_path):
    done = process(tmp_path, f"{model}:affine", "f32[2]", "--emit", "jaxpr")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "{ lambda ; a:f32[2]. let\n    b:f32[2] = mul a 2.0:f32[]\n"
        "    c:f32[2] = add b 1.0:f32[]\n  in (c,) }\n")
    assert process(tmp_path, f"{model}:affine", "--emit", "nonsense").returncode == 2
    located = process(tmp_path, f"{model}:affine", "f32[2]", "--locs", "stack").stdout
    assert located.count('.py"') == located.count(f'"{model}"') > 0  # and no frame of the command
    done = process(tmp_path, "model:affine", "f32[2]", module="pyjx emit-hlo",
                   cwd=os.path.dirname(model))
    assert done.returncode == 0 and done.stdout.startswith("module")


def test_readers_that_go_and_outputs_that_are_closed_are_silent(model, tmp_path):
    command = f"{sys.executable} -m emit_hlo {model}:affine 'f32[2]'"
    for tail in ("| true", "| head -c 1", ">&-"):
        done = subprocess.run(["sh", "-c", f"{command} {tail}"], env=environment(tmp_path),
                              capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def interruptible(tmp_path, *words):
    """The command in a process that heeds Ctrl-C also where those in the background do not."""
    heeding = ("import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
               "runpy.run_module('emit_hlo', run_name='__main__', alter_sys=True)")
    return subprocess.Popen(
        [sys.executable, "-c", heeding, *words], env=environment(tmp_path), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_an_interrupt_ends_what_xla_compiles(tmp_path):
    """A Ctrl-C while C++ runs: at once, with its status, and without a word."""
    path = tmp_path / "slow.py"
    path.write_text("import pyjx.numpy as jnp\ndef f(x):\n    for i in range(3000):\n"
                    "        x = jnp.sin(x) @ x * i\n    return x\n")
    running = interruptible(
        tmp_path, f"{path}:f", "f32[64,64]", "--outline", "off", "--emit", "stablehlo,hlo-opt")
    assert running.stdout.readline() == "==== stablehlo\n"  # tracing and lowering are over
    while "return" not in running.stdout.readline():
        pass
    time.sleep(1)
    assert running.poll() is None
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=20)
    assert (running.returncode, err) == (130, "")


@pytest.mark.parametrize("pause", [0, 1])  # a change while the command runs counts, too
def test_watching_runs_again(model, tmp_path, pause):
    later = time.time() + 3600  # clocks of other machines
    os.utime(model, (later, later))
    running = interruptible(
        tmp_path, f"{model}:affine", "f32[2]", "--watch", "-q", "--emit", "jaxpr")

    def next_program():
        lines = [running.stdout.readline()]
        while not lines[-1].rstrip().endswith("}"):
            lines.append(running.stdout.readline())
            assert lines[-1], "the command has ended"
        return "".join(lines)

    assert "mul a 2.0" in next_program()
    time.sleep(pause)
    Path(model).write_text(Path(model).read_text().replace("x * 2.0", "x * 3.0"))
    assert "mul a 3.0" in next_program()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=20)
    assert running.returncode == 130


def test_the_text_compiles_and_runs(run, model):
    from pyjx.runtime.compile import compile

    text = run(f"{model}:affine", "f32[2]")[1]
    outs = compile(text).execute_sharded([jax.numpy.ones(2)])
    np.testing.assert_array_equal(outs.disassemble_into_single_device_arrays()[0][0], [3, 3])


def test_callers_keep_what_their_process_logs(model, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
    assert emit_hlo.main([f"{model}:affine", "f32[2]"]) == 0
    assert "TF_CPP_MIN_LOG_LEVEL" not in os.environ
