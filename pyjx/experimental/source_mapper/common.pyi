# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.source_mapper.common.

from pyjx.experimental.source_maps import CompileFn as CompileFn
from pyjx.experimental.source_maps import GenerateDumpFn as GenerateDumpFn
from pyjx.experimental.source_maps import Pass as Pass
from pyjx.experimental.source_maps import SourceMapDump as SourceMapDump
from pyjx.experimental.source_maps import all_passes as all_passes
from pyjx.experimental.source_maps import compile_with_env as compile_with_env
from pyjx.experimental.source_maps import filter_passes as filter_passes
from pyjx.experimental.source_maps import register_pass as register_pass

__all__ = [
    "CompileFn",
    "GenerateDumpFn",
    "Pass",
    "SourceMapDump",
    "all_passes",
    "compile_with_env",
    "filter_passes",
    "register_pass",
]
