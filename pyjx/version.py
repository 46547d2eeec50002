"""Versions: of pyjx, and of the JAX whose behaviour it follows."""

from __future__ import annotations

PYJX_VERSION = "0.1.0"  # the one place: setup.cfg and the documentation read it here
PYJX_VERSION_INFO = tuple([int(part) for part in PYJX_VERSION.split(".")])

# Where JAX's versions differ, pyjx does as this one.
FOLLOWED = "0.12.0"
# The first that programs may ask for: that of the oldest supported jaxlib.
OLDEST = "0.7.2"

# What `jax.version` says; `pyjx.as_jax` writes JAX's version here.
__version__ = PYJX_VERSION
__version_info__: tuple[int, ...] = PYJX_VERSION_INFO


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version.

    Raises:
      ValueError: it is not numbers with dots between them.

    >>> numbers("0.12.0")
    (0, 12, 0)
    """
    return tuple([int(part) for part in version.split(".")])
