# Written by `python -m pyjx.cli.stubs` from the table of pyjx.interpreters.xla.

from pyjx.compat.values import Backend as Backend
from pyjx.compat.values import canonicalize_dtype_handlers as canonicalize_dtype_handlers
from pyjx.compat.open_primitives import apply_primitive as apply_primitive
from pyjx.core.avals import aval_makers as pytype_aval_mappings

__all__ = [
    "Backend",
    "canonicalize_dtype_handlers",
    "apply_primitive",
    "pytype_aval_mappings",
]
