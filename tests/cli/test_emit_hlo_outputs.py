"""Where `emit-hlo` writes to: files, links, pipes, folders, the terminal."""

import os
import re
import stat
import subprocess
import sys
import time
import webbrowser
from pathlib import Path

import pytest

from pyjx.cli.emit import command, messages

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]


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


def test_the_page_that_is_opened_is_the_one_in_the_folder(run, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda place: opened.append(place) or True)
    assert run("-c", "lambda x: x", "f32[2]", "--emit", "jaxpr,html", "-o", f"{tmp_path}/",
               "--open")[0] == 0
    (page,) = tmp_path.glob("*.html")
    assert opened == [f"file://{page}"]


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
    assert status == 2
    assert "No space left on device" in err and str(out) in err and ".emit-hlo-" not in err
    assert out.read_text() == "old"
    assert names(place) == ["out.mlir"]


def test_a_folder_gets_every_kind(run, model, place):
    status, out, err = run(f"{model}:affine", "f32[2]", "-o", f"{place}/sub/")
    assert (status, out) == (0, "")
    found = names(place / "sub")
    assert found[0] == "01-affine.jaxpr" and found[1] == "02-affine.mlir"
    assert "06-affine.opt.hlo" in found and "14-affine.json" in found
    assert "note: no ptx" in err
    assert run(f"{model}:affine", "f32[2]", "--emit", "hlo,jaxpr", "-o", str(place / "two"))[0] == 0
    assert names(place / "two") == ["01-affine.jaxpr", "04-affine.hlo"]


def test_suffixes_choose_the_kind(run, model, place):
    for suffix, start in ((".jaxpr", "{ lambda"), (".hlo", "HloModule"), (".json", "{\n"),
                          (".opt.hlo", "HloModule"), (".cost", "operation"), (".txt", "module")):
        assert run(f"{model}:affine", "f32[2]", "-o", str(place / f"out{suffix}"))[0] == 0
        assert (place / f"out{suffix}").read_text().startswith(start)


def test_several_kinds_on_the_terminal(run, model):
    out = run(f"{model}:affine", "f32[2]", "--emit", "jaxpr,stablehlo")[1]
    assert out.startswith("==== jaxpr\n{ lambda") and "\n==== stablehlo\nmodule" in out


def test_programs_that_fail_leave_the_old_file(run, model, place):
    out = place / "out.mlir"
    out.write_text("old")
    assert run(f"{model}:refuses", "f32[2]", "-o", str(out))[0] == 3
    assert out.read_text() == "old"


def test_a_folder_that_cannot_be_written_is_said_by_its_name(run, model, place, monkeypatch):
    monkeypatch.chdir(place)
    (place / "file").write_text("old")
    for path in ("nowhere/out.mlir", "file/out.mlir", "file/"):
        status, out, err = run(f"{model}:affine", "f32[2]", "-o", path)
        assert (status, out) == (2, "")
        assert path in err and ".emit-hlo-" not in err
    assert names(place) == ["file"]


def test_the_file_that_the_output_goes_to_anyway(model, place, tmp_path):
    """The shell's `{ echo first; emit-hlo ... -o /dev/stdout; echo last; } > out`."""
    (place / "stdout").symlink_to("/proc/self/fd/1")
    command = [sys.executable, "-m", "emit_hlo", f"{model}:affine", "f32[2]",
               "-o", str(place / "stdout")]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYJX_CACHE_DIR": str(tmp_path / "cache")}
    with open(place / "out", "w") as out:
        print("first", file=out, flush=True)
        assert subprocess.run(command, env=env, stdout=out).returncode == 0
        print("last", file=out)
    lines = (place / "out").read_text().splitlines()
    assert (lines[0], lines[1][:18], lines[-1]) == ("first", "module @jit_affine", "last")
    assert names(place) == ["out", "stdout"]


@pytest.mark.parametrize(("kind", "options"), [
    ("cost", []), ("hlo-opt", []), ("stablehlo", ["--locs", "line"])])
def test_files_below_the_working_directory_are_shown_from_there(run, model, monkeypatch, kind,
                                                                options):
    folder, name = os.path.split(model)
    monkeypatch.chdir(folder)
    text = run(f"{name}:affine", "f32[2]", "--emit", kind, *options)[1]
    assert name in text and folder not in text


def test_columns_of_costs_stand_below_their_heads(run, model, monkeypatch):
    folder, name = os.path.split(model)
    monkeypatch.chdir(folder)
    text = run(f"{name}:affine", "f32[2]", "--emit", "cost")[1]
    head, *rows = text[text.index("\nline "):].strip().splitlines()
    ends = [found.end() for found in re.finditer(r"\S+", head)][1:]
    assert rows
    for row in rows:
        assert [found.end() for found in re.finditer(r"\S+", row)][1:] == ends


SLOW = """
import time
import webbrowser

def slow(x):
    time.sleep(0.4)
    return x + 1
"""


@pytest.fixture
def slow(run, tmp_path, place, monkeypatch):
    """Emit a program that takes long to trace, in two forms: the standard error of it."""
    monkeypatch.setattr(messages, "_PATIENCE", {True: (0.1, 0.1), False: (0.1, 10.0)})
    path = tmp_path / "slow.py"
    path.write_text(SLOW)
    def emit(*words):
        status, out, err = run(f"{path}:slow", "f32[2]", "-o", f"{place}/", "--emit", "jaxpr",
                               "--emit", "stablehlo", *words)
        assert (status, out) == (0, "") and len(names(place)) == 2
        assert not [p for p in place.iterdir() if "for 0 s" in p.read_text()]
        return err

    return emit


def test_what_takes_long_is_told(slow):
    """Once in a while, as nobody may look."""
    assert slow().count("emit-hlo: tracing ") == 1
    assert slow("-q") == ""


def test_what_takes_long_is_told_on_a_line_that_goes(slow, monkeypatch):
    monkeypatch.setattr(messages, "is_terminal", lambda stream: True)
    monkeypatch.setenv("TERM", "xterm")
    err = slow()
    told = re.findall("\r\x1b\\[2Kemit-hlo: tracing [^\r]*slow, for 0 s", err)
    assert len(told) > 1 and err.endswith("\r\x1b[2K") and "\n" not in err


def test_the_form_that_takes_long_is_told(slow, monkeypatch):
    lowered = command.lowered
    monkeypatch.setattr(command, "lowered", lambda *a: (time.sleep(0.3), lowered(*a)))
    assert "emit-hlo: lowering slow for cpu (2 of 2 forms), for 0 s\n" in slow()


def test_results_that_are_keys(run):
    split = "lambda k: (jax.random.split(k), jax.random.split(k, 20), 1.0)"
    for options in ([], ["--time"]):
        status, _, err = run("-c", split, "key[]", "--run=2", *options)
        assert status == 0 and "result[0]: key<fry>[2] [[" in err, err
        assert "result[1]: key<fry>[20] ...\n" in err


def test_what_takes_no_time_is_not_told(run, model):
    """Nor where there is nobody to tell."""
    assert run(f"{model}:affine", "f32[2]", "--emit", "hlo-opt")[2] == ""


def test_a_long_name_of_an_operation_keeps_to_its_column(run, tmp_path):
    path = tmp_path / "named.py"
    path.write_text(f"""from pyjx.extend.core import Primitive
from pyjx.interpreters import mlir
import pyjx.numpy as jnp
p = Primitive("{'long' * 20}")
p.def_abstract_eval(lambda x: x)
mlir.register_lowering(p, mlir.lower_fun(jnp.sin, multiple_results=False))
""")
    _, _, err = run(f"{path}:p.bind", "f32[2]", "--roofline", "v5e")
    (row,) = [line for line in err.splitlines() if "longlong" in line]
    assert row.startswith(f"{'long' * 14} ")
