# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.source_mapper.mlir.

from pyjx.experimental.source_maps import create_mlir_sourcemap as create_mlir_sourcemap

__all__ = [
    "create_mlir_sourcemap",
]
