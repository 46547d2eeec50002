"""What a notebook asks first: where it runs, and on which devices.

    import pyjx.tools.colab_tpu
    pyjx.tools.colab_tpu.setup_tpu()

The TPUs of Colab, of Kaggle and of Cloud TPU machines are attached to the machine that runs Python,
so there is nothing to connect to: `setup_tpu` looks, and says what it found.
"""

from __future__ import annotations

import os
import platform
from importlib import metadata, util

from pyjx import jaxlib_api
from pyjx.core.value_texts import counted
from pyjx.lazy import directory
from pyjx.runtime import backends
from pyjx.version import PYJX_VERSION

__all__ = ["report", "setup_tpu"]

_CHOOSE = ("In Colab choose Runtime > Change runtime type > v5e-1 TPU (or another TPU), then run "
           "the notebook again from its first cell.")
_SHOWN = ("numpy", "ml_dtypes", "libtpu", "jax-cuda13-plugin", "jax-cuda12-plugin")


def setup_tpu(tpu_driver_version: object = None) -> None:
    """Start the TPU if there is one and print the devices; say what to choose if there is none.

    The program goes on either way: without a TPU it runs on what there is.

    Args:
      tpu_driver_version: is ignored. It named a driver when TPUs were reached over the network.

    Raises:
      RuntimeError: there is a TPU, but it cannot be used; the message says why and what helps.

    >>> from pyjx.tools import colab_tpu
    >>> colab_tpu.setup_tpu()  # doctest: +SKIP
    Colab TPU: pyjx 0.1.0, jaxlib 0.7.2, numpy 2.1.3, ml_dtypes 0.6.0, libtpu 0.0.21.1
    1 device: TPU v5 lite
    """
    platform_in_use = backends.default_backend()
    if platform_in_use == "tpu" or not backends.has_hardware("tpu"):
        print(report())
        if platform_in_use != "tpu":
            print(f"There is no TPU here; what follows runs on the {platform_in_use.upper()}. "
                  f"{_CHOOSE}")
        return
    reason = backends.report().get("tpu", f"JAX_PLATFORMS={os.environ.get('JAX_PLATFORMS', '')}")
    raise RuntimeError(f"There is a TPU, but it cannot be used: {reason}. {_advice(reason)}")


def _advice(reason: str) -> str:
    """What helps against a reason why a TPU did not start."""
    if "not installed" in reason:
        return f"Install it: pip install {backends.libtpu_requirement()}, then restart the runtime."
    if "PJRT" in reason and "version" in reason:
        return (f"jaxlib {jaxlib_api.JAXLIB_RELEASE} and libtpu {_version('libtpu')} do not belong "
                f"together: pip install {backends.libtpu_requirement()}, then restart the runtime.")
    return "Another process may hold it: end that one, or restart the runtime."


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def report() -> str:
    """Where this runs, the versions of what is installed, and the devices.

    >>> from pyjx.tools import colab_tpu
    >>> print(colab_tpu.report())  # doctest: +SKIP
    CPU: pyjx 0.1.0, jaxlib 0.12.0.1, numpy 2.4.6, ml_dtypes 0.6.0
    1 device: cpu
    """
    devices = backends.devices()
    kinds = ", ".join(sorted({d.device_kind for d in devices}))
    versions = [("pyjx", PYJX_VERSION), ("jaxlib", jaxlib_api.JAXLIB_RELEASE),
                *[(name, _version(name)) for name in _SHOWN]]
    place = "Colab " if "COLAB_RELEASE_TAG" in os.environ or _is_colab() else ""
    return (f"{place}{backends.default_backend().upper()}: "
            + ", ".join(f"{name} {version}" for name, version in versions if version)
            + f", Python {platform.python_version()}\n"
            + f"{counted(len(devices), 'device')}: {kinds}")


def _is_colab() -> bool:
    return util.find_spec("google") is not None and util.find_spec("google.colab") is not None


__dir__ = directory(__name__, __all__)
