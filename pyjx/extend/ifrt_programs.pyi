# Written by `python -m pyjx.cli.stubs` from the table of pyjx.extend.ifrt_programs.

from pyjx.extend.bindings import ifrt_programs as ifrt_programs

__all__ = [
    "ifrt_programs",
]
