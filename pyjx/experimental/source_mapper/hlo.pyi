# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.source_mapper.hlo.


__all__ = [
]
