"""The stage of jaxprs."""

from __future__ import annotations

from typing import Any

from pyjx.core.frames import user_frame
from pyjx.core.jaxpr import JaxprEqn
from pyjx.experimental.source_mapper.common import Pass, SourceMapDump
from pyjx.experimental.source_mapper.maps import Places, canonicalize_filename
from pyjx.lazy import directory
from pyjx.runtime.abstract import make_jaxpr

__all__ = ["canonicalize_filename"]
__dir__ = directory(__name__, __all__)


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


PASS = Pass("jaxpr", _jaxpr, _jaxpr_dump)
