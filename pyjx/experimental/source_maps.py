"""Source maps of the forms of a program: from which lines of the user's each line came."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyjx.core.frames import user_frame
from pyjx.core.jaxpr import JaxprEqn
from pyjx.jaxlib_api import set_environment
from pyjx.runtime.abstract import make_jaxpr
from pyjx.runtime.jit import jit

# A segment: column; and the source, line and column that it came from; and a name.
Segment = tuple[int, ...]
Mappings = Sequence[Sequence[Segment]]  # of each line of the text

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _encoded(n: int) -> str:
    """A number in groups of five bits, the lowest first; the very lowest bit is the sign."""
    rest = (-n << 1 | 1) if n < 0 else n << 1
    text = ""
    while True:
        rest, group = rest >> 5, rest & 31
        text += _DIGITS[group | (32 if rest else 0)]
        if not rest:
            return text


def _decoded(text: str) -> Iterator[int]:
    n = shift = 0
    for digit in text:
        value = _DIGITS.index(digit)
        n |= (value & 31) << shift
        shift += 5
        if not value & 32:
            yield -(n >> 1) if n & 1 else n >> 1
            n = shift = 0


@dataclass(frozen=True)
class SourceMap:
    """A source map.

    >>> maps = SourceMap(3, ["a.py"], [], [], [[(0, 0, 4, 2)], [(3, 0, 1, 0)]])
    >>> SourceMap.from_json(maps.to_json()).mappings
    [[(0, 0, 4, 2)], [(3, 0, 1, 0)]]
    """

    version: int
    sources: Sequence[str]
    sources_content: Sequence[str]
    names: Sequence[str]
    mappings: Mappings

    def to_json(self) -> str:
        """As a text."""
        before = [0] * 5
        lines = []
        for line in self.mappings:
            before[0] = 0
            parts = []
            for segment in line:
                parts.append("".join([_encoded(n - b) for n, b in
                                      zip(segment, before, strict=False)]))
                before[:len(segment)] = segment
            lines.append(",".join(parts))
        return json.dumps({"version": self.version, "sources": list(self.sources),
                           "sourcesContent": list(self.sources_content),
                           "names": list(self.names), "mappings": ";".join(lines)})

    @classmethod
    def from_json(cls, json_data: str) -> SourceMap:
        """The map that a text holds."""
        data = json.loads(json_data)
        before = [0] * 5
        lines: list[list[Segment]] = []
        for line in data["mappings"].split(";"):
            before[0] = 0
            lines.append([])
            for part in filter(None, line.split(",")):
                segment = tuple([n + b for n, b in zip(_decoded(part), before, strict=False)])
                before[:len(segment)] = segment
                lines[-1].append(segment)
        return cls(data["version"], data["sources"], data.get("sourcesContent", []),
                   data.get("names", []), lines)


class MappingsGenerator:
    """Makes mappings, line by line."""

    def __init__(self) -> None:
        self._lines: list[list[Segment]] = []

    def new_group(self) -> None:
        """Begin the next line of the text."""
        self._lines.append([])

    def new_segment(self, *seg: int) -> None:
        """Add a segment to the line: its column and, if it came from somewhere, the number of the
        source, the line and the column there, counted from 0, and the number of a name."""
        self._lines[-1].append(tuple(seg))

    def mappings(self) -> Mappings:
        """What has been added."""
        return self._lines


def canonicalize_filename(file_name: str) -> str:
    """A name without the folder of the user, or of temporary files, which differs from machine to
    machine."""
    return re.sub(r"^(/tmp|/var/folders)/(.*/)?", "", os.path.normpath(file_name))


class Places:
    """The sources of a map, by number."""

    def __init__(self) -> None:
        self.sources: dict[str, int] = {}
        self.generator = MappingsGenerator()

    def segment(self, column: int, file: str, line: int, source_column: int) -> None:
        number = self.sources.setdefault(canonicalize_filename(file), len(self.sources))
        self.generator.new_segment(column, number, line - 1, max(source_column - 1, 0))

    def map(self) -> SourceMap:
        return SourceMap(3, list(self.sources), [], [], self.generator.mappings())


@dataclass(frozen=True)
class SourceMapDump:
    """The text of a stage and its map."""

    source_map: SourceMap
    generated_code: str
    pass_name: str


class CompileFn(Protocol):
    """Brings a function to a stage: `(work_dir, f, f_args, f_kwargs) -> what it is there`."""

    def __call__(self, work_dir: str, f: Any, f_args: Any, f_kwargs: Any, **kwargs: Any) -> Any: ...


class GenerateDumpFn(Protocol):
    """Makes the text and the map of what a `CompileFn` gives."""

    def __call__(self, compile_result: Any, **kwargs: Any) -> SourceMapDump: ...


@dataclass(frozen=True)
class Pass:
    """A stage of compilation."""

    name: str
    compile_fn: CompileFn
    generate_dump: GenerateDumpFn


_passes: dict[str, Pass] = {}


def register_pass(pass_: Pass) -> None:
    """Add a stage.

    Raises:
      ValueError: there is one of its name.
    """
    if pass_.name in _passes:
        raise ValueError(f"register_pass: there is a pass named {pass_.name!r} already")
    _passes[pass_.name] = pass_


def all_passes() -> Sequence[Pass]:
    """The stages: `jaxpr`, `hlo:stable-hlo`, `hlo:original` and `hlo:optimized`, and those that
    have been added."""
    return list(_passes.values())


def filter_passes(regex: str) -> Sequence[Pass]:
    """The stages whose names match.

    >>> [p.name for p in filter_passes("hlo:.*")]
    ['hlo:stable-hlo', 'hlo:original', 'hlo:optimized']
    """
    return [p for p in _passes.values() if re.match(regex, p.name)]


def compile_with_env(f: Callable[..., Any], f_args: Any, f_kwargs: Any,
                     env_flags: Mapping[str, str], compiler_flags: Mapping[str, Any]) -> Any:
    """Compile a function under environment variables, and with flags of XLA."""
    saved = {name: os.environ.get(name) for name in env_flags}
    os.environ.update(env_flags)
    try:
        return jit(f).lower(*f_args, **f_kwargs).compile(dict(compiler_flags))
    finally:
        for name, value in saved.items():
            set_environment(name, value)


_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_NAMED_LOCATION = re.compile(r"^(#loc\d*) = loc\((.*)\)$")


def create_mlir_sourcemap(mlir_dump: str) -> SourceMap:
    """The map of the text of an MLIR module that has locations."""
    lines = mlir_dump.split("\n")
    named = {found[1]: found[2] for found in map(_NAMED_LOCATION.match, lines) if found}

    def place(text: str, depth: int = 0) -> tuple[str, int, int] | None:
        """The innermost place in a location: of a call it comes first."""
        direct = _PLACE.search(text)
        if direct is not None or depth > 32:
            return None if direct is None else (direct[1], int(direct[2]), int(direct[3]))
        inner = [place(named.get(n, ""), depth + 1) for n in re.findall(r"#loc\d*", text)]
        return next((p for p in inner if p is not None), None)

    out = Places()
    for line in lines:
        out.generator.new_group()
        start = line.rfind(" loc(")
        found = None if start < 0 or line.startswith("#loc") else place(line[start:])
        if found is not None:
            out.segment(len(line) - len(line.lstrip()), *found)
    return out.map()


def _jaxpr(work_dir: str, f: Any, f_args: Any, f_kwargs: Any, **_: Any) -> Any:
    return make_jaxpr(f)(*f_args, **f_kwargs)


def _jaxpr_dump(compile_result: Any, **_: Any) -> SourceMapDump:
    out = Places()
    lines = []

    def write(text: str, eqn: JaxprEqn | None = None) -> None:
        for line in text.split("\n"):
            lines.append(line)
            out.generator.new_group()
            frame = None if eqn is None else user_frame(eqn.source_info.traceback)
            if frame is not None:
                out.segment(len(line) - len(line.lstrip()), frame.file_name, frame.start_line,
                            frame.start_column + 1)

    write("{ lambda . let")
    for eqn in compile_result.eqns:
        write(f"    {eqn}", eqn)
    write("}")
    return SourceMapDump(out.map(), "\n".join(lines), "jaxpr")


__all__: list[str] = []


def _hlo_frames(text: str) -> dict[str, tuple[str, int, int]]:
    """The places of the stack frames that the tables before an HLO module list."""
    files = dict(re.findall(r'^(\d+) "(.*)"$', text.partition("FunctionNames")[0], re.MULTILINE))
    places = {number: (files.get(file, ""), int(line), int(column)) for number, file, line, column
              in re.findall(r"^(\d+) \{file_name_id=(\d+).* line=(\d+).* column=(\d+)", text,
                            re.MULTILINE)}
    frames = re.findall(r"^(\d+) \{file_location_id=(\d+)", text, re.MULTILINE)
    return {frame: places[number] for frame, number in frames if number in places}


def _hlo_sourcemap(text: str) -> SourceMap:
    frames = _hlo_frames(text)
    out = Places()
    for line in text.split("\n"):
        out.generator.new_group()
        indent = len(line) - len(line.lstrip())
        frame = re.search(r"stack_frame_id=(\d+)", line)
        old = re.search(r'source_file="([^"]*)" source_line=(\d+)', line)
        if frame is not None and frame[1] in frames:
            out.segment(indent, *frames[frame[1]])
        elif old is not None:
            out.segment(indent, old[1], int(old[2]), 1)
    return out.map()


def _lowered(work_dir: str, f: Callable[..., Any], f_args: Any, f_kwargs: Any, **_: Any) -> Any:
    return jit(f).lower(*f_args, **f_kwargs)


def _compiled(work_dir: str, f: Callable[..., Any], f_args: Any, f_kwargs: Any, **_: Any) -> Any:
    return _lowered(work_dir, f, f_args, f_kwargs).compile()


def _of_module(name: str, compile_fn: CompileFn, map_of: Callable[[str], SourceMap], *form: str,
               **options: Any) -> Pass:
    """The stage of a module, whose text `as_text` gives with these arguments."""
    def dump(compile_result: Any, **_: Any) -> SourceMapDump:
        text = compile_result.as_text(*form, **options)
        return SourceMapDump(map_of(text), text, name)

    return Pass(name, compile_fn, dump)


for _stage in (
    Pass("jaxpr", _jaxpr, _jaxpr_dump),
    _of_module("hlo:stable-hlo", _lowered, create_mlir_sourcemap, debug_info=True),
    _of_module("hlo:original", _lowered, _hlo_sourcemap, "hlo", debug_info=True),
    _of_module("hlo:optimized", _compiled, _hlo_sourcemap),
):
    register_pass(_stage)


@dataclass(frozen=True)
class SourceMapGenerator:
    """A function whose calls give the dumps of stages."""

    f: Callable[..., Any]
    passes: Sequence[Pass]
    options: dict[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[SourceMapDump]:
        return [p.generate_dump(p.compile_fn("", self.f, args, kwargs), **self.options)
                for p in self.passes]


def generate_sourcemaps(f: Callable[..., Any], passes: Sequence[Pass], **pass_kwargs: Any
                        ) -> SourceMapGenerator:
    """A function of the arguments of `f` that gives, for each stage, its text and its map.

    Args:
      pass_kwargs: for the stages that make dumps.

    >>> import pyjx as jax
    >>> from pyjx.experimental import source_mapper
    >>> stages = source_mapper.filter_passes("jaxpr")
    >>> maps = source_mapper.generate_sourcemaps(jax.numpy.sin, stages)
    >>> [dump.pass_name for dump in maps(1.0)]
    ['jaxpr']
    """
    return SourceMapGenerator(f, passes, pass_kwargs)
