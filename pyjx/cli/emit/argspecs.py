"""What stands for an argument on the command line: types, trees of them, numbers, data.

    spec  := [name "="] value | [name "="] "=" literal | "@" file | "@" module ":" function
    value := dtype ["[" sizes "]"] | "key" ["<" generator ">"] ["[" sizes "]"]
           | sizes "x" dtype                             MLIR's form, such as 8x128xf32
           | "{" key ":" value, ... "}" | "(" value, ... ")" | "[" value, ... "]"
           | a Python number, True, False or None
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from emit_hlo.arguments import instead_of
from pyjx.cli.emit.messages import CommandError, pointing
from pyjx.cli.emit.targets import load_function
from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.records import Record
from pyjx.lazy import deferred
from pyjx.runtime.abstract import ShapeDtypeStruct

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

    def argument(self, text: str) -> tuple[str | None, list[Any] | dict[str, Any]]:
        """The name of an argument, if it has one, and the values that the spec stands for: a list
        of arguments by position, or a dict of them by name."""
        if text.lstrip().startswith("@"):
            return None, data(text.strip()[1:])
        name, rest = None, text
        found = _NAME.fullmatch(text)
        if found is not None:
            name, rest = found[1], found[2]
        if rest.lstrip().startswith("="):
            literal = rest.lstrip()[1:].strip()
            return name, [Static(python_value(literal, text))]
        return name, [self.value(rest, text)]

    def value(self, text: str, whole: str = "") -> Any:
        """The value of one spec."""
        self.text, self.at = text, 0
        self._shift, self._whole = (whole or text).rfind(text), whole or text
        value = self._value()
        self._skip()
        if self.at < len(text):
            self._fail("expected the end here")
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
        return next((base.key_dtype(g) for g in found if name == f"key<{g.tag}>"), None)
    return dtypes.dtype_of_short_name({"i1": "bool"}.get(name, name))


def data(place: str) -> list[Any] | dict[str, Any]:
    """Arguments from a file of arrays, or from a function of a module."""
    if place.endswith((".npz", ".npy")):
        if not os.path.isfile(place):
            raise CommandError(f"@{place}: there is no such file.")
        try:
            loaded = np.load(place, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return [loaded]
            arrays = {name: loaded[name] for name in loaded.files}
        except Exception as error:
            raise CommandError(f"@{place}: NumPy cannot read it: {error}") from None
        positions = [f"arg_{i}" for i in range(len(arrays))]
        return [arrays[n] for n in positions] if set(arrays) == set(positions) else [arrays]
    made = load_function(place)
    made = made() if callable(made) else made
    if isinstance(made, dict):
        return made
    return list(made) if isinstance(made, (tuple, list)) else [made]


def narrowed(values: list[Any]) -> str:
    """Which 64-bit types of arguments are others as long as these are off."""
    given = {np.dtype(x.dtype) for x in values
             if hasattr(x, "dtype") and not dtypes.is_extended(x.dtype)}
    return ", ".join(sorted([
        f"{dtypes.short_dtype_name(d)} is {dtypes.short_dtype_name(used)}"
        for d in given if (used := dtypes.canonicalize_dtype(d, True)) != d]))
