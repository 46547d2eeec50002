"""The stages of StableHLO and of HLO."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyjx.experimental.source_mapper.common import Pass, SourceMapDump
from pyjx.experimental.source_mapper.maps import Places, SourceMap
from pyjx.experimental.source_mapper.mlir import create_mlir_sourcemap
from pyjx.lazy import directory
from pyjx.runtime.jit import jit

__all__: list[str] = []
__dir__ = directory(__name__, __all__)


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


def _stablehlo_dump(compile_result: Any, **_: Any) -> SourceMapDump:
    text = compile_result.as_text(debug_info=True)
    return SourceMapDump(create_mlir_sourcemap(text), text, "hlo:stable-hlo")


def _original_dump(compile_result: Any, **_: Any) -> SourceMapDump:
    text = compile_result.as_text("hlo", debug_info=True)
    return SourceMapDump(_hlo_sourcemap(text), text, "hlo:original")


def _optimized_dump(compile_result: Any, **_: Any) -> SourceMapDump:
    text = compile_result.as_text()
    return SourceMapDump(_hlo_sourcemap(text), text, "hlo:optimized")


PASSES = (
    Pass("hlo:stable-hlo", _lowered, _stablehlo_dump),
    Pass("hlo:original", _lowered, _original_dump),
    Pass("hlo:optimized", _compiled, _optimized_dump),
)
