"""Changing programs while XLA compiles them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from pyjx import jaxlib_api
from pyjx.lazy import directory

__all__ = ["PipelineStage", "clear_hlo_module_transformation", "register_hlo_module_transformation"]


class PipelineStage(enum.Enum):
    """When a transformation runs: before or after operations are put in order."""

    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


_Platforms = str | Sequence[str] | None


def register_hlo_module_transformation(callback: Callable[[bytes], bytes | None], *, name: str,
                                       stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
                                       platforms: _Platforms = None) -> None:
    """Let XLA call a function with each module that it compiles.

    Programs that are compiled already, in the cache on disk too, stay as they are: call
    `jax.clear_caches()`, and switch that cache off (`jax_enable_compilation_cache`).

    Args:
      callback: is given an HloModuleProto as bytes, and gives the changed one, or None.
      name: of the transformation, to undo it.
      stage: when it runs.
      platforms: for which it is: None or "cpu".

    Raises:
      NotImplementedError: this jaxlib has no such hook.
    """
    _check(platforms)
    _hook("register_xla_transform")(name, stage.value, callback)


def clear_hlo_module_transformation(name: str, stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
                                    platforms: _Platforms = None) -> bool:
    """Undo `register_hlo_module_transformation`; whether there was such a transformation.

    Raises:
      NotImplementedError: this jaxlib has no such hook.
    """
    _check(platforms)
    return bool(_hook("clear_xla_transform")(name, stage.value))


def _check(platforms: _Platforms) -> None:
    wanted = (platforms,) if isinstance(platforms, str) else platforms or ()
    if any([p not in ("cpu", "host") for p in wanted]):
        raise NotImplementedError("extend.xla: programs for a CPU can be changed, those that "
                                  f"plugins compile cannot; got platforms={platforms!r}")


def _hook(name: str) -> Any:
    try:
        found = getattr(jaxlib_api.submodule("_xla"), name)
    except AttributeError:
        found = None
    if found is None:
        raise NotImplementedError(f"extend.xla: jaxlib {jaxlib_api.JAXLIB_RELEASE} does not let "
                                  "Python change programs while they are compiled")
    return found


__dir__ = directory(__name__, __all__)
