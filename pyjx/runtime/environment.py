"""What a report of a fault should say of the machine: `print_environment_info`."""

from __future__ import annotations

import platform
import sys

import numpy as np

from pyjx import jaxlib_api
from pyjx.runtime import backends
from pyjx.version import PYJX_VERSION


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions of pyjx, jaxlib, NumPy and Python, the devices and the platform.

    Args:
      return_string: return the text in place of printing it.

    >>> import pyjx as jax
    >>> "jaxlib" in jax.print_environment_info(return_string=True)
    True
    """
    devices = backends.devices()
    kinds = ", ".join(sorted({d.device_kind for d in devices}))
    lines = [
        f"pyjx:   {PYJX_VERSION}",
        f"jaxlib: {jaxlib_api.JAXLIB_RELEASE}",
        f"numpy:  {np.__version__}",
        f"python: {sys.version}",
        f"device info: {kinds}-{len(devices)}, {backends.local_device_count()} local devices",
        f"process_count: {backends.process_count()}",
        f"platform: {platform.uname()}",
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
