"""`jax._src.state.primitives`: reading and writing references."""

from __future__ import annotations

from pyjx.engine.references import addupdate_p, get_p, swap_p
from pyjx.lax.references import addupdate as ref_addupdate
from pyjx.lax.references import get as ref_get
from pyjx.lax.references import set as ref_set
from pyjx.lax.references import swap as ref_swap

__all__ = ["addupdate_p", "get_p", "ref_addupdate", "ref_get", "ref_set", "ref_swap", "swap_p"]
