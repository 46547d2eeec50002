"""The command `emit-hlo`."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
from pyjx import configuration, jaxlib_api
from pyjx.cli import emit_hlo

pytestmark = pytest.mark.smoke

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
    ("key<fry>[4]", (4,), "key<fry>"), ("key<urbg>", (), "key<urbg>"),
])
def test_specs(spec, shape, dtype):
    s = emit_hlo.parse_spec(spec)
    assert s.shape == shape
    assert s.dtype.name == dtype


def test_numbers_as_specs():
    assert emit_hlo.parse_spec("3") == 3
    assert emit_hlo.parse_spec("-2.5") == -2.5
    assert emit_hlo.parse_spec("1j") == 1j


def test_keys_as_arguments(run):
    status, text, err = run("pyjx.random:bits", "key<fry>[2]", "--vmap", "--emit", "jaxpr")
    assert (status, err) == (0, "")
    assert "a:key<fry>[2]. let" in text
    assert "random_bits" in text


def test_types_that_are_off_are_told(run, model):
    args = (f"{model}:affine", "f64[3]")
    status, text, err = run(*args)
    assert status == 0 and "tensor<3xf32>" in text
    assert err == ("emit-hlo: note: f64 is f32 here, as 64-bit types are off; set JAX_ENABLE_X64=1 "
                   "to have them.\n")
    with jax.enable_x64(True):
        status, text, err = run(*args)
    assert (status, err) == (0, "") and "tensor<3xf64>" in text


def test_optimized_program_is_not_of_an_older_source(run, model, tmp_path):
    path = Path(model)
    with configuration.cache_dir(str(tmp_path / "cache")):
        for shift in (0, 7):
            path.write_text("\n" * shift + MODEL)
            text = run(f"{model}:affine", "f32[3]", "--emit", "hlo-opt")[1]
            line = shift + 1 + MODEL.split("\n").index("    return x * 2.0 + 1.0")
            assert f"line={line} " in text
            sys.modules.pop("model", None)


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


def test_what_the_program_prints_is_no_output(run, tmp_path):
    path = tmp_path / "model.py"
    path.write_text("print('loading')\ndef f(x):\n    print('tracing', x.shape)\n    return x\n")
    status, out, err = run(f"{path}:f", "f32[2]", "--emit", "jaxpr")
    assert (status, err) == (0, "loading\ntracing (2,)\n")
    assert out.startswith("{ lambda ;") and "print" not in out


def test_targets(run, model):
    assert run(f"{model}:Namespace.inner", "f32[2]")[0] == 0
    status, text, _ = run("pyjx.numpy:sin", "f32[2]")
    assert status == 0
    assert "stablehlo.sine" in text


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.fixture
def place(tmp_path):
    """A folder for nothing but what is written."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def emit_to(run, model):
    """Write the same program to a path: (status, standard output, standard error)."""
    return lambda path: run(f"{model}:affine", "f32[2]", "-o", str(path))


def test_a_new_file(emit_to, place):
    umask = os.umask(0o027)
    try:
        assert emit_to(place / "out.mlir") == (0, "", "")
    finally:
        os.umask(umask)
    assert (place / "out.mlir").read_text().startswith("module @jit_affine")
    assert mode(place / "out.mlir") == 0o640
    assert names(place) == ["out.mlir"]


def test_a_file_that_is_replaced_keeps_its_mode(emit_to, place):
    out = place / "out.mlir"
    out.write_text("old\n" * 10000)
    out.chmod(0o604)
    before = out.stat()
    with open(out) as reader:  # the old file stays whole for who reads it
        assert emit_to(out)[0] == 0
        assert reader.read() == "old\n" * 10000
    assert out.read_text().startswith("module @jit_affine")
    assert "old" not in out.read_text()
    assert mode(out) == 0o604
    assert (out.stat().st_uid, out.stat().st_gid) == (before.st_uid, before.st_gid)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_stays_theirs(emit_to, place):
    out = place / "out.mlir"
    out.write_text("old")
    os.chown(out, 12345, 23456)
    assert emit_to(out)[0] == 0
    assert (out.stat().st_uid, out.stat().st_gid) == (12345, 23456)


@pytest.mark.parametrize("content", ["old", None], ids=["a file", "nothing"])
def test_links_are_followed(emit_to, place, content):
    (place / "sub").mkdir()
    target = place / "sub" / "target"
    if content:
        target.write_text(content)
    (place / "one").symlink_to("sub/target")
    (place / "two").symlink_to("one")
    assert emit_to(place / "two")[0] == 0
    assert (place / "one").is_symlink() and (place / "two").is_symlink()
    assert target.read_text().startswith("module @jit_affine")
    assert names(place) == ["one", "sub", "two"] and names(place / "sub") == ["target"]


@pytest.mark.parametrize("by_link", [False, True])
def test_a_pipe_is_written_to(emit_to, place, by_link):
    pipe = place / "pipe"
    os.mkfifo(pipe)
    path = pipe
    if by_link:
        path = place / "link"
        path.symlink_to(pipe)
    end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        assert emit_to(path) == (0, "", "")
        assert stat.S_ISFIFO(os.stat(pipe).st_mode)
        assert os.read(end, 65536).startswith(b"module @jit_affine")
    finally:
        os.close(end)


def test_a_device_is_written_to(emit_to, place):
    """A terminal of our own, by a link in our own folder, stands for any character device."""
    master, slave = os.openpty()
    try:
        (place / "terminal").symlink_to(os.ttyname(slave))
        before = os.fstat(slave)
        assert emit_to(place / "terminal") == (0, "", "")
        after = os.stat(place / "terminal")
        assert (after.st_rdev, after.st_ino) == (before.st_rdev, before.st_ino)
        assert os.read(master, 65536).startswith(b"module @jit_affine")
    finally:
        os.close(master)
        os.close(slave)


def test_a_dash_is_the_terminal(emit_to, place, monkeypatch):
    monkeypatch.chdir(place)
    status, out, err = emit_to("-")
    assert (status, err) == (0, "")
    assert out.startswith("module @jit_affine")
    assert names(place) == []


@pytest.mark.parametrize("failing", ["replace", "chmod"])
def test_an_error_leaves_the_old_file(emit_to, place, monkeypatch, failing):
    out = place / "out.mlir"
    out.write_text("old")

    def full(*args):
        raise OSError(28, "No space left on device", args[0])

    monkeypatch.setattr(os, failing, full)
    status, _, err = emit_to(out)
    assert status == 1
    assert "No space left on device" in err and str(out) in err and ".emit-hlo-" not in err
    assert out.read_text() == "old"
    assert names(place) == ["out.mlir"]


def test_a_program_that_fails_leaves_the_old_file(run, model, place):
    out = place / "out.mlir"
    out.write_text("old")
    assert run(f"{model}:refuses", "f32[2]", "-o", str(out))[0] == 1
    assert out.read_text() == "old"


def test_a_folder_is_no_file(emit_to, place):
    status, _, err = emit_to(place)
    assert status == 1
    assert "IsADirectoryError" in err and str(place) in err


@pytest.mark.parametrize(("argv", "message"), [
    (("missing.py:f",), "there is no file 'missing.py'"),
    (("no_such_module:f",), "there is no module 'no_such_module'"),
    (("nocolon",), "expected FILE.py:FUNCTION"),
    (("MODEL:nothing",), "has no function 'nothing'. It has: Namespace, affine, broken, loss"),
    (("MODEL:Namespace.iner",), "has no function 'Namespace.iner'. It has: inner."),
    (("pyjx.numpy:arctg",), "has no function 'arctg'. Did you mean arctan"),
    (("pyjx.numpy:nothing_like_it",), "has no function 'nothing_like_it'.\n"),
    (("pyjx:collect_profile",), "has no function 'collect_profile': it is not there yet. Mean"),
    (("pyjx.tools.a:b",), "cannot import 'tools' from 'pyjx': it is not there yet."),
    (("MODEL:affine", "key<fly>[2]"), "there is no dtype 'key<fly>'"),
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


def test_the_file_that_the_output_goes_to_anyway(model, place):
    """The shell's `{ echo first; emit-hlo ... -o /dev/stdout; echo last; } > out`."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    (place / "stdout").symlink_to("/proc/self/fd/1")
    command = [sys.executable, "-m", "pyjx.cli.emit_hlo", f"{model}:affine", "f32[2]",
               "-o", str(place / "stdout")]
    with open(place / "out", "w") as out:
        print("first", file=out, flush=True)
        assert subprocess.run(command, env=env, stdout=out).returncode == 0
        print("last", file=out)
    lines = (place / "out").read_text().splitlines()
    assert (lines[0], lines[1][:18], lines[-1]) == ("first", "module @jit_affine", "last")
    assert names(place) == ["out", "stdout"]


def test_the_text_compiles_and_runs(run, model):
    from pyjx.runtime.compile import compile

    text = run(f"{model}:affine", "f32[2]")[1]
    outs = compile(text).execute_sharded([jax.numpy.ones(2)])
    np.testing.assert_array_equal(outs.disassemble_into_single_device_arrays()[0][0], [3, 3])
