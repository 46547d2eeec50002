"""Source maps: from the text of a program, at a stage of its compilation, to the user's source."""

from __future__ import annotations

from pyjx.experimental.source_mapper import common, generate_map, hlo, jaxpr, mlir
from pyjx.experimental.source_mapper.common import (
    Pass,
    SourceMapDump,
    all_passes,
    compile_with_env,
    filter_passes,
    register_pass,
)
from pyjx.experimental.source_mapper.generate_map import generate_sourcemaps
from pyjx.experimental.source_mapper.jaxpr import canonicalize_filename
from pyjx.experimental.source_mapper.maps import MappingsGenerator, SourceMap
from pyjx.experimental.source_mapper.mlir import create_mlir_sourcemap
from pyjx.lazy import directory

__all__ = [
    "MappingsGenerator", "Pass", "SourceMap", "SourceMapDump", "all_passes",
    "canonicalize_filename", "common", "compile_with_env", "create_mlir_sourcemap",
    "filter_passes", "generate_map", "generate_sourcemaps", "hlo", "jaxpr", "mlir",
    "register_pass",
]
__dir__ = directory(__name__, __all__)

for _pass in (jaxpr.PASS, *hlo.PASSES):
    register_pass(_pass)
