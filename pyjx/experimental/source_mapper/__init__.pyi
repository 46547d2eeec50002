# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.source_mapper.

from pyjx.experimental.source_mapper import common as common
from pyjx.experimental.source_mapper import generate_map as generate_map
from pyjx.experimental.source_mapper import hlo as hlo
from pyjx.experimental.source_mapper import jaxpr as jaxpr
from pyjx.experimental.source_mapper import mlir as mlir
from pyjx.experimental.source_maps import MappingsGenerator as MappingsGenerator
from pyjx.experimental.source_maps import Pass as Pass
from pyjx.experimental.source_maps import SourceMap as SourceMap
from pyjx.experimental.source_maps import SourceMapDump as SourceMapDump
from pyjx.experimental.source_maps import all_passes as all_passes
from pyjx.experimental.source_maps import canonicalize_filename as canonicalize_filename
from pyjx.experimental.source_maps import compile_with_env as compile_with_env
from pyjx.experimental.source_maps import create_mlir_sourcemap as create_mlir_sourcemap
from pyjx.experimental.source_maps import filter_passes as filter_passes
from pyjx.experimental.source_maps import generate_sourcemaps as generate_sourcemaps
from pyjx.experimental.source_maps import register_pass as register_pass

__all__ = [
    "common",
    "generate_map",
    "hlo",
    "jaxpr",
    "mlir",
    "MappingsGenerator",
    "Pass",
    "SourceMap",
    "SourceMapDump",
    "all_passes",
    "canonicalize_filename",
    "compile_with_env",
    "create_mlir_sourcemap",
    "filter_passes",
    "generate_sourcemaps",
    "register_pass",
]
