"""`jax._src.numpy`: the names of `jax.numpy`; modules below it are in the table of `pyjx.compat`.

A package of its own, because importing a module sets an attribute of the package that it is in:
`einsum` and `fft` are modules here, and functions there.
"""

from __future__ import annotations

from pyjx.compat import names_of

__getattr__ = names_of("numpy", "pyjx.numpy")
