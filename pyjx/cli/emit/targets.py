"""What the command looks at: a function in a file or module, an expression, or a program; and what
stands for its arguments on the command line.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import pyjx
from emit_hlo.arguments import instead_of
from emit_hlo.tables import PROGRAM_SUFFIXES
from pyjx import not_yet
from pyjx.cli.emit.messages import IMPORT, CommandError, described, pointing, told
from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.records import Record
from pyjx.lazy import deferred
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.shield import environment_of_child

# -- arguments -------------------------------------------------------------------------------------

#     spec  := [name "="] (value | "=" literal | "@" file | "@" module ":" function)
#     value := dtype ["[" sizes "]"] | "key" ["<" generator ">"] ["[" sizes "]"]
#            | sizes "x" dtype                             MLIR's form, such as 8x128xf32
#            | "{" key ":" value, ... "}" | "(" value, ... ")" | "[" value, ... "]"
#            | a Python number, True, False or None

export = deferred("pyjx.export")  # which few command lines need
base = deferred("pyjx.random.base")  # most programs draw no numbers
implementations = deferred("pyjx.random.implementations")

DTYPES = ("bool", "i4", "i8", "i16", "i32", "i64", "u4", "u8", "u16", "u32", "u64", "f16", "bf16",
          "f32", "f64", "c64", "c128", "f8_e4m3fn", "f8_e5m2", "key", "key<fry>")


# Names of kinds of numbers, which tell no size, and what they most often mean.
_WITHOUT_SIZE = {"float": "f32", "double": "f64", "half": "f16", "int": "i32", "uint": "u32",
                 "complex": "c64"}


class Static(Record):
    """A value that is known while tracing."""

    value: Any


class SpecError(CommandError):
    """A spec that cannot be read."""


_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+|inf|nan)([eE][+-]?\d+)?j?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_]\w*(<\w+>)?")
_MLIR = re.compile(r"tensor<(\w+)>|((?:\d|[A-Z]\w*?x)\w+)(?![\w\[.+*-])")
_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*=(.*)", re.DOTALL)
_CONSTANTS = {"True": True, "False": False, "None": None}


class Reader:
    """Reads specs; sizes with the same name are the same symbol in all of them."""

    def __init__(self) -> None:
        self._scope: Any = None
        self.text = ""
        self.at = 0

    def argument(self, text: str) -> tuple[str | None, Any]:
        """The name of an argument, if it has one, and the value that the spec stands for."""
        name, rest = None, text.strip()
        found = _NAME.fullmatch(text)
        if found is not None:
            name, rest = found[1], found[2].strip()
        if rest.startswith("@"):
            return name, data(rest[1:])
        if rest.startswith("="):
            return name, Static(python_value(rest[1:].strip(), text))
        return name, self.value(found[2] if found else text, text)

    def value(self, text: str, whole: str = "") -> Any:
        """The value of one spec."""
        self.text, self.at = text, 0
        self._shift, self._whole = (whole or text).rfind(text), whole or text
        value = self._value()
        self._skip()
        if self.at < len(text):
            number = isinstance(value, (int, float))
            self._fail("expected the end here; a type has its sizes in brackets, such as f32[8,128]"
                       if number or text[self.at] == "(" else "expected the end here")
        return value

    # -- the grammar

    def _value(self) -> Any:
        self._skip()
        if self.at >= len(self.text):
            self._fail("expected a type such as f32[8,128], or a number")
        first = self.text[self.at]
        if first == "{":
            return self._dict()
        if first in "([":
            items = self._items(")" if first == "(" else "]", self._value)
            return items if first == "[" else tuple(items)
        mlir = _MLIR.match(self.text, self.at)
        if mlir is not None and (mlir[1] or "x" in mlir[2]):
            self.at = mlir.end()
            return self._mlir(mlir[1] or mlir[2], mlir.start())
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            self.at = number.end()
            return _python_number(number[0])
        word = _WORD.match(self.text, self.at)
        if word is None:
            self._fail("expected a type such as f32[8,128], or a number")
        if word[0] in _CONSTANTS:
            self.at = word.end()
            return _CONSTANTS[word[0]]
        return self._type(word)

    def _dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {}

        def pair() -> None:
            self._skip()
            key = re.compile(r"\"[^\"]*\"|'[^']*'|[\w.-]+").match(self.text, self.at)
            if key is None:
                self._fail("expected a key, such as {w: f32[4]}")
            self.at = key.end()
            self._skip()
            if not self.text.startswith(":", self.at):
                self._fail("expected ':' behind the key")
            self.at += 1
            made[key[0].strip("\"'")] = self._value()

        self._items("}", pair)
        return made

    def _items(self, end: str, item: Callable[[], Any]) -> list[Any]:
        self.at += 1
        items: list[Any] = []
        while True:
            self._skip()
            if self.text.startswith(end, self.at):
                self.at += 1
                return items
            if items:
                if not self.text.startswith(",", self.at):
                    self._fail(f"expected ',' or '{end}'")
                self.at += 1
                self._skip()
                if self.text.startswith(end, self.at):  # a comma at the end
                    continue
            items.append(item())

    def _type(self, word: re.Match[str]) -> Any:
        dtype = self._dtype(word[0], word.start())
        self.at = word.end()
        if not self.text.startswith("[", self.at):
            return ShapeDtypeStruct((), dtype)
        end = self.text.find("]", self.at)
        if end < 0:
            self._fail("the '[' is not closed", self.at)
        inside, start = self.text[self.at + 1:end], self.at + 1
        self.at = end + 1
        sizes = []
        if inside.strip():
            for part in inside.split(","):
                sizes.append(self._size(part, start))
                start += len(part) + 1
        return self._struct(sizes, dtype)

    def _mlir(self, text: str, start: int) -> Any:
        *sizes, name = text.split("x")
        return self._struct([self._size(s, start) for s in sizes], self._dtype(name, start))

    def _struct(self, sizes: list[Any], dtype: DTypeLike) -> Any:
        try:
            return ShapeDtypeStruct(tuple(sizes), dtype)
        except (TypeError, ValueError) as error:
            self._fail(str(error))

    def _size(self, text: str, start: int) -> Any:
        stripped = text.strip()
        start += len(text) - len(text.lstrip())
        if re.fullmatch(r"[0-9]+", stripped):
            return int(stripped)
        if not re.fullmatch(r"[\w+\-*/() ]*[A-Za-z_][\w+\-*/() ]*", stripped, re.ASCII):
            self._fail(f"expected a size, got {stripped!r}", start)
        if self._scope is None:
            self._scope = export.SymbolicScope()
        try:
            return export.symbolic_shape(stripped, scope=self._scope)[0]
        except Exception as error:
            self._fail(f"{stripped!r} is no size: {str(error).splitlines()[0]}", start)

    def _dtype(self, name: str, start: int) -> Any:
        found = dtype_named(name)
        if found is None:
            meant = _WITHOUT_SIZE.get(name)
            cure = (f". Did you mean {meant}?" if meant else instead_of(name, DTYPES).rstrip("."))
            if name.isdigit():  # which is the last of sizes
                cure = "; it stands behind the sizes, as in 4x3xf32"
            self._fail(f"there is no dtype {name!r}{cure}", start)
        return found

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _fail(self, message: str, at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        raise SpecError(f"argument {self._whole!r}: {message}\n"
                        f"{pointing(self._whole, at + self._shift)}")


def _python_number(text: str) -> Any:
    if text.endswith("j"):
        return complex(text)
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)


def python_value(text: str, whole: str) -> Any:
    """A literal of Python, or the word itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if re.fullmatch(r"[A-Za-z_][\w.]*", text):
            return text
        raise SpecError(f"argument {whole!r}: expected a Python value such as 3, 'relu' or "
                        f"(1, 2), got {text!r}") from None


def dtype_named(name: str) -> Any:
    """The dtype of a short or NumPy name, or of keys; None if there is none."""
    if name == "key":
        name = "key<fry>"
    if name.startswith("key<"):
        found = implementations.implementations.values()
        return next((base.key_dtype(g) for g in found if name[4:-1] in (g.tag, g.name)), None)
    return dtypes.dtype_of_short_name({"i1": "bool"}.get(name, name))


def data(place: str) -> Any:
    """An argument from a file of arrays, or from a function of a module. Arrays of a file are a
    tuple if NumPy has numbered them, else a dict."""
    if not place.endswith((".npz", ".npy")):
        made = load_function(place, "@")
        try:
            return made() if callable(made) else made
        except Exception as error:
            raise CommandError(described(error, f"calling @{place}"), IMPORT) from error
    if not os.path.isfile(place):
        raise CommandError(f"@{place}: there is no such file.")
    try:
        loaded = np.load(place, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        arrays = {name: loaded[name] for name in loaded.files}
    except Exception as error:
        raise CommandError(f"@{place}: NumPy cannot read it: {error}") from None
    numbered = [f"arr_{i}" for i in range(len(arrays))]
    return tuple(map(arrays.get, numbered)) if set(arrays) == set(numbered) else arrays


def narrowed(values: list[Any]) -> str:
    """Which 64-bit types of arguments are others as long as these are off."""
    given = {np.dtype(x.dtype) for x in values
             if hasattr(x, "dtype") and not dtypes.is_extended(x.dtype)}
    return ", ".join(sorted([
        f"{dtypes.short_dtype_name(d)} is {dtypes.short_dtype_name(used)}"
        for d in given if (used := dtypes.canonicalize_dtype(d, True)) != d]))


# -- targets ---------------------------------------------------------------------------------------


def load_function(target: str, prefix: str = "") -> Any:
    """The function that `FILE.py:NAME` or `module:NAME` names, which has a prefix where it is
    written."""
    place, colon, name = target.rpartition(":")
    if place.endswith(":") and name:
        raise CommandError(f"{prefix + target!r}: one colon stands before the function: "
                           f"{prefix}{place.rstrip(':')}:{name}.")
    if not (colon and place and name) or target.endswith(".py"):
        raise CommandError(_no_colon(target, prefix))
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


def _no_colon(target: str, prefix: str) -> str:
    text = f"{prefix + target!r}: expected {prefix}FILE.py:FUNCTION or {prefix}module:FUNCTION."
    place = target.strip("@:")
    module, _, name = place.rpartition(".")
    for written, asked in ((place, ""), (module, name), (target.partition(":")[0], "")):
        path = written if written.endswith(".py") else f"{written.replace('.', os.sep)}.py"
        names = functions_in(path)
        if asked in names or (names and not asked):
            meant = f" Did you mean {prefix}{written}:{asked or names[0]}?"
            return text + (meant if asked or len(names) == 1 else
                           f"{meant} It has: {', '.join(names[:12])}.")
    return text


def functions_in(path: str) -> list[str]:
    """The names of the functions that a file defines, without running it."""
    try:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
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
        raise CommandError(f"{target}: {name} is a method, and {owner.__name__} cannot be made "
                           f"without arguments ({error}). Make an instance in the file, and name "
                           f"its method: model.{name}.") from None


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
        cure = ". -c takes a function, such as 'lambda x: x + 1'" * isinstance(error, NameError)
        raise CommandError(f"-c {code!r}: {type(error).__name__}: {told(error)}{cure}", IMPORT
                           ) from error


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
            found = Path(target).read_bytes()
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
    done = subprocess.run([sys.executable, "-c", _READ], input=program, capture_output=True,
                          env=environment_of_child())
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if done.returncode == 1 and said else "MLIR cannot read it"
        raise CommandError(f"{target} is no program, or a damaged one: {reason[:300]}")
