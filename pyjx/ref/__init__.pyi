# Written by `python -m pyjx.cli.stubs` from the table of pyjx.ref.

from pyjx.core.avals import AbstractRef as AbstractRef
from pyjx.core.references import Ref as Ref
from pyjx.lax.references import addupdate as addupdate
from pyjx.lax.references import empty_ref as empty_ref
from pyjx.lax.references import free_ref as free_ref
from pyjx.lax.references import freeze as freeze
from pyjx.lax.references import get as get
from pyjx.lax.references import new_ref as new_ref
from pyjx.lax.references import set as set
from pyjx.lax.references import swap as swap

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]
