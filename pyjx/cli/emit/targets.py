"""What the command looks at: a function in a file or module, an expression, or a program."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import pyjx
from emit_hlo.arguments import instead_of
from emit_hlo.tables import PROGRAM_SUFFIXES
from pyjx import not_yet
from pyjx.cli.emit.messages import IMPORT, CommandError, described, pointing


def load_function(target: str) -> Any:
    """The function that `FILE.py:NAME` or `module:NAME` names."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise CommandError(_no_colon(target))
    if target.endswith(".py"):
        raise CommandError(_no_colon(target))
    module = _file(place) if place.endswith(".py") else _module(place)
    value: Any = module
    owner: Any = None
    for part in name.split("."):
        if not hasattr(value, part):
            hint = not_yet.hint(getattr(value, "__name__", ""), part)
            raise CommandError(
                f"{place} has no function {name!r}{hint or _instead_of(part, value)}")
        owner, value = value, getattr(value, part)
    if isinstance(owner, type) and _is_method(owner, name.rpartition(".")[2]):
        value = _bound(owner, name.rpartition(".")[2], target)
    return value


def module_of(target: str) -> Any:
    """The module of a target that is loaded; None if it names none."""
    place = target.rpartition(":")[0]
    if not place.endswith(".py"):
        return sys.modules.get(place)
    module = sys.modules.get(os.path.splitext(os.path.basename(place))[0])
    file = getattr(module, "__file__", None)
    return module if file and os.path.abspath(file) == os.path.abspath(place) else None


def _no_colon(target: str) -> str:
    text = f"{target!r}: expected FILE.py:FUNCTION or module:FUNCTION."
    if os.path.isfile(target):
        names = functions_in(target)
        if names:
            text += f" It has: {', '.join(names[:12])}."
    return text


def functions_in(path: str) -> list[str]:
    """The names of the functions that a file defines, without running it."""
    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return []
    return [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name[0] != "_"]


def _instead_of(name: str, place: Any) -> str:
    """Which functions there are in the place of one that is not: those of similar names, or all if
    they are few."""
    known = [n for n in dir(place) if n[0] != "_" and callable(getattr(place, n, None))]
    near = instead_of(name, known)
    if near.startswith(". Did"):
        return near
    return f". It has: {', '.join(known)}." if 0 < len(known) <= 12 else "."


def _is_method(owner: type, name: str) -> bool:
    """Whether a name of a class is a function that takes an instance."""
    for base in owner.__mro__:
        if name in vars(base):
            return not isinstance(vars(base)[name], (staticmethod, classmethod)) and callable(
                vars(base)[name]) and not isinstance(vars(base)[name], type)
    return False


def _bound(owner: type, name: str, target: str) -> Any:
    try:
        return getattr(owner(), name)
    except TypeError as error:
        raise CommandError(
            f"{target}: {name} is a method, and {owner.__name__} cannot be made without arguments "
            f"({error}). Make an instance in the file, and name its method: model.{name}."
        ) from None


def _file(path: str) -> Any:
    if not os.path.isfile(path):
        folder = os.path.dirname(path) or "."
        there = os.listdir(folder) if os.path.isdir(folder) else []
        files = [f for f in there if f.endswith(".py")]
        near = instead_of(os.path.basename(path), files)
        raise CommandError(f"there is no file {path!r}{near if '?' in near else '.'}")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CommandError(f"Python cannot import {path!r}.")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    if before is None or getattr(before, "__file__", None) is None:
        sys.modules[name] = module
    else:
        sys.modules.setdefault(name, module)
    return _imported(path, lambda: spec.loader.exec_module(module) or module)  # type: ignore


def _module(name: str) -> Any:
    if not all(part.isidentifier() for part in name.split(".")):
        raise CommandError(f"{name!r} is no name of a module; a file is written with its .py: "
                           f"{name}.py:FUNCTION.")
    sys.path.insert(0, os.getcwd())

    def load() -> Any:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if "it is not there yet" in str(error):
                raise CommandError(str(error)) from None
            if error.name and f"{name}.".startswith(f"{error.name}."):
                raise CommandError(f"there is no module {error.name!r}.") from None
            raise

    return _imported(name, load)


def _imported(what: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except CommandError:
        raise
    except SystemExit as error:
        raise CommandError(f"{what} ended the process while it was imported (exit status "
                           f"{error.code}). Let it do so below `if __name__ == \"__main__\":`.",
                           IMPORT) from None
    except Exception as error:
        raise CommandError(described(error, f"importing {what}"), IMPORT) from error


def evaluate(code: str) -> Any:
    """The function that an expression gives."""
    names = {"jax": pyjx, "pyjx": pyjx, "jnp": pyjx.numpy, "lax": pyjx.lax, "np": np}
    try:
        compiled = compile(code, "-c", "eval")
    except SyntaxError as error:
        raise CommandError(f"-c: {error.msg}\n{pointing(code, (error.offset or 1) - 1)}") from None
    try:
        return eval(compiled, names)
    except Exception as error:
        raise CommandError(f"-c {code!r}: {type(error).__name__}: {error}", IMPORT) from error


def is_program(target: str) -> bool:
    """Whether a target is a file with a program, or the standard input."""
    return target == "-" or os.path.splitext(target)[1] in PROGRAM_SUFFIXES


def read_program(target: str) -> str | bytes:
    """What a file with a program holds."""
    if target == "-":
        target = "the standard input"
        found = sys.stdin.buffer.read() if sys.stdin is not None else b""
    else:
        try:
            with open(target, "rb") as file:
                found = file.read()
        except OSError as error:
            raise CommandError(f"{target}: {error.strerror or error}") from None
    if not found.strip():
        raise CommandError(f"{target} is empty.")
    if found.startswith(b"ML\xef"):
        check_bytecode(found, target)
        return found
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise CommandError(f"{target} is neither text nor MLIR's bytecode.") from None


_READ = """
import sys
from pyjx.inspect import read
try:
    read(sys.stdin.buffer.read())
except ValueError as error:
    sys.exit(str(error).splitlines()[0] if str(error) else "no program")
"""


def check_bytecode(program: bytes, target: str) -> None:
    """Let another process read it first: MLIR's reader may crash on bytes that are no module."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(pyjx.__file__)))
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run([sys.executable, "-c", _READ], input=program, capture_output=True,
                          env={**os.environ, "PYTHONPATH": path})
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if done.returncode == 1 and said else "MLIR cannot read it"
        raise CommandError(f"{target} is no program, or a damaged one: {reason[:300]}")
