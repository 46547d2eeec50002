"""`jax._src.hardware_utils`: what this machine has."""

from __future__ import annotations

from pathlib import Path

from pyjx.runtime.backends import has_hardware

__all__ = ["has_visible_nvidia_gpu", "transparent_hugepages_enabled"]

_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def has_visible_nvidia_gpu() -> bool:
    """Whether there seems to be one of NVIDIA's GPUs."""
    return has_hardware("cuda")


def transparent_hugepages_enabled() -> bool:
    """Whether Linux gives large pages of memory to who does not ask for them."""
    return _HUGE_PAGES.exists() and "[always]" in _HUGE_PAGES.read_text()
