"""Arrays of several devices, and the mesh of this thread, as libraries look at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx import configuration, jaxlib_api
from pyjx.core.avals import ShapedArray
from pyjx.core.meshes import empty_mesh


class ResourceEnv:
    """What the mesh context manager has set."""

    @property
    def physical_mesh(self) -> Any:
        """The mesh that this thread has entered, or an empty one."""
        mesh = configuration.entered_mesh.value
        return empty_mesh() if mesh is None else mesh


class ThreadResources:
    """The resources of this thread."""

    env = ResourceEnv()


thread_resources = ThreadResources()


def global_aval_to_result_handler(aval: Any, out_sharding: Any, committed: bool
                                  ) -> Callable[..., Any]:
    """What makes an array of the buffers that a program gives."""
    return global_result_handlers[type(aval)](aval, out_sharding, committed)


def global_avals_to_results_handler(global_out_avals: Sequence[Any], shardings: Sequence[Any],
                                    committed: bool) -> list[Callable[..., Any]]:
    """As `global_aval_to_result_handler`, for each result of a program."""
    return [global_aval_to_result_handler(a, s, committed)
            for a, s in zip(global_out_avals, shardings, strict=True)]


global_result_handlers: dict[type, Callable[..., Any]] = {
    ShapedArray: jaxlib_api.result_handler,
}
