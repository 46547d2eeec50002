"""Malformed command lines: the right exit status, a message of one screen, no file changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

import emit_hlo
from pyjx.inspect.program import TracedProgram

MODEL = """
import pyjx.numpy as jnp
VALUE = 3
def f(x):
    return jnp.sin(x)
def two(x, y):
    return x @ y
def tree(p):
    return p["w"] * 2
class Needs:
    def __init__(self, size): pass
    def call(self, x): return x
"""

SPECS = """
f32[ | f32] | f32[8 | f32[8,, | f32[,] | f32[8,-1] | f32[-3] | f32[1.5] | f32[8;8] | f32[8 8]
f32[8][8] | f32[8]x | f32(8) | f32{8} | f33[8] | F32[8] | float[8] | int32[] extra | bf17[2]
key<fly>[] | key<>[] | key< | tensor<8xf99> | tensor< | 8x | x8xf32 | 8xx4xf32 | 8x4xf99 | f32[B*]
f32[*B]
f32[B**2] | f32[B/0] | f32[(B] | f32[1B] | f32['B'] | {w f32[2]} | {w: f32[2] | {: f32[2]} | {w:}
{w: f32[2],,}
(f32[2] | f32[2]) | (f32[2],, f32[2]) | [f32[2] | ((f32[2]) | ='unclosed | =[1, | =f(3) | ==3 | x==
x= | x | y=f32[2] | x=f32[2 | =x=3 | 3..5 | 3e | 0x10 | 1_000 | --3 | nan32 | Nonesense | truE | %
? | @ | @missing.npz
@missing.npy | @nowhere:make | @model.py | @model.py:nothing | @bad.npz | @bad.npy
f32[99999999999999999999999]x
\u00e9[2] | f32[\u00e9] | f32[2]\u200b | f32[٣]
"""
TARGETS = """
f | model | model.py | model.py: | :f | model.py:g | model.py:F | model.py:VALUE | model.py:f.g
model.py:Needs.call
model.py:Needs.nothing | missing.py:f | mdel.py:f | model.pyy:f | dir:f | dir/:f
./missing/model.py:f | model.py::f
no-module:f | no.such.module:f | 1module:f | pyjx:nothing | pyjx.numpy:arrange | pyjx.nothing:f
missing.mlir
missing.mlirbc | missing.hlo | bad.mlir | bad.mlirbc | bad.hlo | damaged.mlirbc | empty.mlir
dir.mlir | model.py:f:f
/:f | . | .. | * | model.py:1 | model.py:f() | syntax.py:f | raises.py:f | exits.py:f
"""
OPTIONS = """
--nope | --emit | --emit nope | --emit stablehlo,nope | --emit =x | --emit jaxpr= | --emit all=x
--emit jaxpr,
--platform | --platform gpu | --platform cud | --platform cuda:h10 | --platform tpu:v5e:2by2
--platform tpu:v99
--platform cpu:avx | --platform cuda:./missing.txt | --target | --target 1 | --target 1.x.0
--target 99.0.0
--target 0.0.1 | --mesh | --mesh x | --mesh x=0 | --mesh x=-1 | --mesh x=1,x=1 | --mesh =2
--mesh x=1y=1
--in-shardings x | --mesh x=1 --in-shardings z | --mesh x=1 --in-shardings x;x;x
--mesh x=1 --in-shardings (x
--mesh x=999 | --grad=1 | --grad=x | --grad=-1 | --vmap=0,0 | --vmap=x | --jvp=1 | --jit=yes
--donate x
--donate 5 | --donate -1 | --static x | --static =3 | --static z=3 | --flag x | --flag nope=1
--flag enable_x64=maybe
--flag num_cpu_devices=many | --passes=nope | --outline maybe | --names mine | --locs all
--roofline v99 | --roofline 1
--roofline 1,x | --roofline -1,2 | --run=x | --run=0 | --run=-1 | --check | --check nope | --update
--expect a --diff b | --emit jaxpr,hlo --diff x | --emit bytecode --diff x | --open --emit jaxpr
--color sometimes
--completion tcsh | --list nope | --diff missing.mlir | --diff model.py:nothing
--diff NO_SUCH_REV | -o | --x64=1
--in-shardings
"""
PATHS = """
-o dir/missing/out.mlir | -o missing/out.mlir | -o kept.mlir/out | -o kept.mlir/
--emit jaxpr=missing/out
--emit jaxpr,hlo -o kept.mlir | --emit jaxpr=dir | --emit jaxpr=dir.mlir
--expect missing/out.mlir --update | -o loop
"""


def cases() -> Iterator[tuple[str, ...]]:
    for spec in _words(SPECS):
        yield "model.py:f", spec
    for target in _words(TARGETS):
        yield target, "f32[2]"
    for text in (OPTIONS, PATHS):
        for words in _words(text):
            yield "model.py:f", "f32[2]", *words.split()
    yield ()
    yield ("-c",)
    yield "-c", ""
    yield "-c", "lambda x: x +", "f32[2]"
    yield "-c", "3", "f32[2]"
    yield "-c", "undefined", "f32[2]"
    yield ("model.py:two",)
    yield "model.py:two", "f32[2]"
    yield "model.py:two", "f32[2]", "f32[2]", "f32[2]"
    yield "model.py:two", "f32[2,3]", "f32[2,3]"
    yield "model.py:two", "y=f32[2]", "f32[2]"
    yield "model.py:two", "y=f32[2]", "y=f32[2]"
    yield "model.py:tree", "{v: f32[2]}"
    yield "model.py:f", "bool[2]", "--grad"


def _words(text: str) -> list[str]:
    return [w.strip() for line in text.strip("\n").split("\n") for w in line.split("|")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("malformed")
    (folder / "model.py").write_text(MODEL)
    (folder / "syntax.py").write_text("def f(:\n")
    (folder / "raises.py").write_text("1 / 0\n")
    (folder / "exits.py").write_text("raise SystemExit(7)\n")
    (folder / "kept.mlir").write_text("kept")
    (folder / "empty.mlir").write_text("")
    for suffix in ("mlir", "hlo", "npz", "npy"):
        (folder / f"bad.{suffix}").write_text("nonsense {")
    (folder / "bad.mlirbc").write_bytes(b"ML\xefR\x01\xff\x00nonsense")
    (folder / "damaged.mlirbc").write_bytes(b"ML\xefR\rStableHLO_v1.0.0\x00" + b"\xff\x07" * 99)
    (folder / "dir").mkdir()
    (folder / "dir.mlir").mkdir()
    (folder / "loop").symlink_to("loop")
    return folder


def state(folder: Path) -> dict[str, Any]:
    """Every file below a folder, with what it holds."""
    return {str(p): p.read_bytes() if p.is_file() else os.lstat(p).st_mode
            for p in sorted(folder.rglob("*")) if "__pycache__" not in p.parts}


def test_there_are_two_hundred() -> None:
    assert len(set(cases())) >= 200


@pytest.mark.parametrize("argv", sorted(set(cases())), ids=" ".join)
def test_malformed(argv: tuple[str, ...], place: Path, capfd: pytest.CaptureFixture[str],
                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("pyjx.runtime.backends.plugin_library", lambda platform: None)
    for name in ("model", "raises", "exits", "syntax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    before = state(place)
    status = emit_hlo.main(list(argv))
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert status in (2, 3, 4, 6), (status, err)
    assert out == ""
    assert lines[0].startswith("emit-hlo: ") and len(lines) <= 24
    assert "Traceback" not in err and max(map(len, lines)) < 500
    assert state(place) == before


@pytest.mark.parametrize("spec", ["3", "n=3"])
def test_values_that_a_program_asks_for_may_be_static(spec: str, run) -> None:
    size = "lambda x, n: x + jnp.zeros(n)"
    assert run("-c", size, "f32[]", "i32[]")[2].endswith("for (f32[], i32[])\n")
    cure = "Here a static argument is written n==3, or --static n=3.\n"
    assert run("-c", size, "f32[]", spec)[2].endswith(cure)
    for static in (["n==3"], ["--static", "n=3"]):
        assert run("-c", size, "f32[]", *static)[0] == 0


def test_auxiliary_outputs_are_said_on_the_command_line(run) -> None:
    loss = "lambda w, x: (jnp.sum(w * x), {'x': x})"
    for given, cured in (("--grad", "--grad=aux"),
                         ("--value-and-grad=1", "--value-and-grad=1,aux")):
        status, _, err = run("-c", loss, "f32[3]", "f32[3]", given)
        assert status == 3 and err.endswith(f"Here has_aux=True is written {cured}.\n")
    for cured in ("--grad=aux", "--value-and-grad=0,1,aux", "--jacfwd=aux", "--hessian=1,aux"):
        status, out, err = run("-c", loss, "f32[3]", "f32[3]", cured, "--emit", "jaxpr")
        assert status == 0 and "f32[3]" in out, err
    assert run("-c", loss, "f32[3]", "f32[3]", "--grad=aux", "--run", "--quiet")[0] == 0


@pytest.mark.parametrize("name", ["grad", "value-and-grad", "jacfwd", "jacrev", "hessian"])
def test_options_that_derivatives_lack_are_told_as_that(name: str, run) -> None:
    square = "lambda x, z: z ** 2"
    for spec, cure in (
            ("c64[]", "There is no option for holomorphic=True: use --vjp or --jvp, or give "
                      f"jax.{name.replace('-', '_')}(f, holomorphic=True) in the place of f."),
            ("i32[]", "Here an argument is given as floats, such as f32[3], or the others are "
                      f"named, as in --{name}=1.")):
        status, _, err = run("-c", square, "f32[]", spec, f"--{name}=1")
        assert status == 3 and err.endswith(f"\n  {cure}\n"), err
    for way in ("--vjp", "--jvp"):
        assert run("-c", square, "f32[]", "c64[]", way)[0] == 0
    called = f"jax.{name.replace('-', '_')}({square}, 1, holomorphic=True)"
    assert run("-c", called, "c64[]", "c64[]")[0] == 0
    assert run("-c", f"jax.grad({square}, 1)", "f32[]", "c64[]")[2].count("holomorphic=True") == 1


@pytest.mark.parametrize("static", ["static_argnums=1", "static_argnames='n'"])
def test_a_type_is_no_static_argument_of_jit(static: str, run) -> None:
    function = f"jax.jit(lambda x, n: x * n, {static})"
    for spec, shown in (("f32[2]", "f32[2]"), ("n=f32[2]", "f32[2]"), ("(3, i32[])", "(3, i32[])")):
        status, _, err = run("-c", function, "f32[2]", spec)
        assert status == 2 and err == (
            "emit-hlo: -c: n is a static argument: expected its value, such as n==3 or "
            f"--static n=3, but got a type, {shown}.\n")
    for value in (["3"], ["n==3"], ["--static", "n=3"]):
        assert run("-c", function, "f32[2]", *value)[0] == 0


METHODS = """
import functools
import pyjx as jax
class Model:
    @functools.partial(jax.jit, static_argnums=(0, 2))
    def step(self, x, n): return x * n
model = Model()
@functools.partial(jax.jit, static_argnums=(1, 2))
def several(x, *n): return x * len(n)
"""


def test_static_arguments_of_methods_and_of_several_are_found(run, tmp_path) -> None:
    (tmp_path / "methods.py").write_text(METHODS)
    target = str(tmp_path / "methods.py")
    assert run(f"{target}:model.step", "f32[2]", "3")[0] == 0
    assert ": n is a static argument: expected its value, such as n==3 or --static n=3, but" in run(
        f"{target}:model.step", "f32[2]", "i32[]")[2]
    assert ": i32[] is a static argument: expected its value, such as =3, but got a type" in run(
        f"{target}:several", "f32[2]", "3", "i32[]")[2]


@pytest.mark.parametrize(("loss", "given"), [
    ("lambda x: (x.sum(), x)", ("--jacfwd", "--grad")),
    ("lambda x: ((x.sum(), x), x)", ("--grad=aux",))])
def test_no_option_is_named_that_is_not_the_cure(loss, given, run) -> None:
    err = run("-c", loss, "f32[3]", *given)[2]
    assert "Gradient only defined" in err and "Here has_aux" not in err


BY_NAME = """
import numpy as np

def loss(w, b, scale=2.0): return (w * b).sum() * scale
def named(w, *, b): return (w * b).sum()
def any_names(**p): return (p["w"] * p["b"]).sum()
def args(): return {"b": np.ones(3, "f4"), "w": np.ones(3, "f4")}
def scalars(): return {"b": np.ones((), "f4"), "w": np.ones(3, "f4")}
"""


def test_arguments_by_name_are_counted(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "by_name.py").write_text(BY_NAME)
    loss, data = "by_name.py:loss", ("@by_name:args", "--emit", "jaxpr")
    for option in ("--grad", "--grad=1", "--vmap=0,None", "--jvp", "--donate=1"):
        found = run(loss, *data, option)
        assert found == run(loss, "f32[3]", "f32[3]", option, "--emit", "jaxpr")
        assert found[0] == 0
    assert run(loss, *data, "--grad=b,w")[2].endswith(" This is --grad=1,0.\n")
    assert run(loss, *data, "--grad=c")[2].endswith("output is auxiliary.\n")
    for target, option in (("named", "--grad=1"), ("named", "--jvp"), ("any_names", "--grad"),
                           ("any_names", "--vmap=0,None"), ("named", "--vmap"),
                           ("named", "--donate=1")):
        of = "scalars" if option == "--vmap" else "args"
        status, _, err = run(f"by_name.py:{target}", f"@by_name:{of}", option)
        assert status in (2, 3) and "What has a name alone (b" in err, err


CUSTOM = """
import pyjx as jax
import pyjx.numpy as jnp

@jax.custom_vjp
def f(x): return jnp.sin(x)

f.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g,))

def pushed(x):
    return jax.jvp(f, (x,), (x,))[1]
"""


def test_a_mistake_that_lowering_finds(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "custom.py").write_text(CUSTOM)
    for options in ((), ("--emit", "jaxpr", "--run"), ("--emit", "jaxpr", "--find", "nan")):
        status, _, err = run("custom.py:pushed", "f32[4]", *options)
        assert status == 3 and "--> custom.py:11:12\n" in err and "arose while" not in err, err
        assert err.endswith(f"|        {'^' * 22}\n")
    done = subprocess.run([sys.executable, "-m", "emit_hlo", "custom.py:f", "f32[4]", "--jvp"],
                          capture_output=True, text=True, timeout=60)  # no frames of pytest
    assert done.returncode == 3 and "--> custom.py:8\n" in done.stderr, done.stderr


RULE = """
from pyjx.extend.core import Primitive
from pyjx.interpreters import mlir

p = Primitive("mine")
p.def_abstract_eval(lambda x: x)
mlir.register_lowering(p, lambda context, x: {}["mine"])
"""


def test_a_fault_of_the_library_is_no_mistake_of_the_program(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rule.py").write_text(RULE)
    assert run("rule.py:p.bind", "f32[4]")[0] == 3  # its own rule is wrong
    for fault, status in ((partial(getitem, {}, "fault"), 4), (partial(int, "fault"), 3)):
        monkeypatch.setattr(TracedProgram, "stablehlo", fault)
        assert run("rule.py:p.bind", "f32[4]")[0] == status
