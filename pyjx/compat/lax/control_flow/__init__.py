"""`jax._src.lax.control_flow`: the names of `jax.lax`, as in the package above."""

from __future__ import annotations

from pyjx.compat import names_of

__getattr__ = names_of("lax.control_flow", "pyjx.lax")
