"""What a profile says of the instructions of programs, for profile guided optimization."""

from __future__ import annotations

import os
from pathlib import Path

from pyjx import jaxlib_api
from pyjx.lazy import directory

__all__ = ["get_profiled_instructions_proto"]
__dir__ = directory(__name__, __all__)


def get_profiled_instructions_proto(tensorboard_dir: str | os.PathLike[str]) -> bytes:
    """The costs of instructions in a profile, as XLA reads them (the proto ProfiledInstructions).

    Args:
      tensorboard_dir: the folder that `jax.profiler.start_trace` was given, or that of a run in
        it, `plugins/profile/TIME`. The costs are of the latest run; there are some for GPUs alone.

    Raises:
      FileNotFoundError: there is no profile.
    """
    root = Path(tensorboard_dir)
    runs = sorted(root.glob("plugins/profile/*")) or [root]
    if not list(runs[-1].glob("*.xplane.pb")):
        raise FileNotFoundError(f"get_profiled_instructions_proto: there is no profile in {root}")
    return jaxlib_api.profiler().get_profiled_instructions_proto(  # type: ignore[no-any-return]
        str(runs[-1]))
