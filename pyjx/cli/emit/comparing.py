"""Differences: from another program, from an older version, from a file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from emit_hlo.arguments import Options
from pyjx.cli.emit import targets, writing
from pyjx.cli.emit.messages import CommandError, say, working
from pyjx.inspect.comparison import diff

DIFFERS = 1


def expect(options: Options, made: str | bytes) -> int:
    """Compare with a file that is kept; 1 where they differ."""
    path = options.expect
    assert path is not None
    try:
        with open(path, "rb") as file:
            kept: bytes | None = file.read()
    except FileNotFoundError:
        kept = None
    except OSError as error:
        raise CommandError(f"--expect {path}: {error.strerror}.") from None
    content = made.encode() if isinstance(made, str) else made
    if options.update:
        if kept != content:
            writing.write(made, path)
            say(f"wrote {path}", options.quiet)
        return 0
    if kept is None:
        say(f"there is no {path}; --update writes it", options.quiet)
        return DIFFERS
    if kept == content:
        return 0
    if isinstance(made, bytes):
        say(f"{path} differs: {len(kept)} bytes are expected, there are {len(made)}", options.quiet)
        return DIFFERS
    found = diff(kept.decode(errors="replace"), made, (path, "now"))
    if not found:  # names or places alone
        return 0
    return _show(options, found, f"{path} differs; --update writes it anew")


def against(options: Options, program: Any, make: Callable[[], str]) -> int:
    """Compare with another target, a file, or a version in git; 1 where they differ."""
    other = options.diff
    assert other is not None
    ours = make()
    kind = options.emit[0].kind
    if other == "-" or (os.path.isfile(other) and not other.endswith(".py")):
        if kind == "stablehlo" and other.endswith(".mlirbc"):
            theirs = _emitted(options, [other], None)
        else:
            content = targets.read_program(other)
            theirs = content if isinstance(content, str) else _emitted(options, [other], None)
    elif ":" in other:
        theirs = _emitted(options, [other, *options.specs], None)
    else:
        theirs = _older(options, other)
    names = (other, options.target or "-c")
    found = diff(theirs, ours, names)
    if not found:
        say(f"{names[1]} and {other} do not differ", options.quiet)
        return 0
    return _show(options, found, "")


def _show(options: Options, found: Any, message: str) -> int:
    text = found.text + "\n"
    if writing.is_colored(options.color, sys.stdout) and options.output in (None, "-"):
        text = writing.colored(text, writing.DIFF)
    writing.write(text, options.output)
    say(f"{found.removed} lines differ from {found.added}" + (f": {message}" if message else ""),
        options.quiet)
    return DIFFERS


def _emitted(options: Options, words: list[str], folder: str | None) -> str:
    """What the same command says of another target, in a process of its own."""
    command = [sys.executable, "-m", "emit_hlo", *_others(options), "-q", "-o", "-", "--color",
               "never", "--", *words]
    paths = [os.path.dirname(os.path.dirname(os.path.abspath(sys.modules["emit_hlo"].__file__ or
                                                             ""))), os.environ.get("PYTHONPATH")]
    with working(f"making what {options.diff} is compared with", options.quiet):
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))})
    if done.returncode:
        said = done.stderr.strip().removeprefix("emit-hlo: ")
        raise CommandError(f"--diff {options.diff}: {said}", done.returncode)
    return done.stdout


_FLAGS = ("-q", "--quiet", "-v", "--verbose", "--watch", "--open", "--time", "--stats", "--update")
_VALUED = ("--diff", "-o", "--output", "--color", "--roofline", "--expect", "--check", "--find",
           "--reduce")
_KEPT = ("--emit", "--static", "--donate", "--memory-budget", "--flag", "--xla", "--platform",
         "--target", "--mesh", "--in-shardings", "--out-shardings", "--outline", "--names",
         "--locs", "-c")


def _others(options: Options) -> list[str]:
    """The options of this command line that say what is made, without target and arguments."""
    kept: list[str] = []
    words = iter(options.argv)
    for word in words:
        name, equals, _ = word.partition("=")
        if word == "-c":
            next(words, None)
        elif name in _VALUED:
            if not equals:
                next(words, None)
        elif name in _KEPT:
            kept += [word] if equals else [word, next(words, "")]
        elif word.startswith("--") and word not in _FLAGS and len(word) > 2:
            kept.append(word)
    return kept


def _older(options: Options, revision: str) -> str:
    """The same of an older version of the files, as git has it."""
    place = (options.target or "").rpartition(":")[0]
    near = place if place.endswith(".py") else ""
    folder = os.path.dirname(os.path.abspath(near)) if near else os.getcwd()
    if shutil.which("git") is None:
        raise CommandError(f"--diff {revision}: there is no such file, and git is not installed.")
    if options.code is not None or targets.is_program(options.target or ""):
        raise CommandError(f"--diff {revision}: there is no such file; an older version there is "
                           "of functions in files and modules.")
    root = _git(folder, "rev-parse", "--show-toplevel", refusal=(
        f"--diff {revision}: there is no such file, and {folder} is in no git repository."))
    commit = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", refusal=(
        f"--diff {revision}: {revision} is neither a file, nor a target with ':', nor a version in "
        "git."))
    with tempfile.TemporaryDirectory(prefix="emit-hlo-") as copy:
        archive = subprocess.run(["git", "-C", root, "archive", commit], capture_output=True)
        unpacked = subprocess.run(["tar", "-x", "-C", copy], input=archive.stdout,
                                  capture_output=True)
        if archive.returncode or unpacked.returncode:
            raise CommandError(f"--diff {revision}: git cannot unpack it.")
        here = os.path.join(copy, os.path.relpath(os.getcwd(), root)) if _inside(
            os.getcwd(), root) else copy
        target = options.target or ""
        if near:
            name, kept = target.rpartition(":")[2], os.path.relpath(os.path.realpath(near), root)
            if not os.path.exists(os.path.join(copy, kept)):
                raise CommandError(f"--diff {revision}: {near} is not in that version; commit it, "
                                   "or name a version that has it.")
            target = os.path.join(copy, kept) + f":{name}"
        os.makedirs(here, exist_ok=True)
        # Places in the older files are shown as those in the files that are here.
        return _emitted(options, [target, *options.specs], here).replace(
            os.path.realpath(copy), root).replace(copy, root)


def _inside(path: str, root: str) -> bool:
    return os.path.commonpath([os.path.realpath(path), os.path.realpath(root)]) == \
        os.path.realpath(root)


def _git(folder: str, *words: str, refusal: str) -> str:
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True)
    if done.returncode:
        raise CommandError(refusal)
    return done.stdout.strip()
