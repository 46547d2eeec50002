"""Names of JAX that pyjx has not yet, and what to use meanwhile."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from types import FrameType, ModuleType

from pyjx.jax_imports import JaxFinder

_OF_JAX = re.compile(r"^jax(?=\.|$)")  # the other name that pyjx may have

NAMES: dict[str, str] = {
    "pyjx":
        "collect_profile",
    "pyjx.tools":
        "pgo_nsys_converter",
    "pyjx.tools.jax_to_ir":
        "jax_to_tf tf_wrap_with_input_names",
    "pyjx.experimental":
        "jax2tf mosaic pallas thunky",
    "pyjx.experimental.colocated_python":
        "func_backend obj_backend",
    "pyjx.experimental.jet":
        "call_param_updaters jet_fun jet_subtrace traceable",
    "pyjx.experimental.rnn":
        "rnn_abstract_eval rnn_bwd_abstract_eval rnn_bwd_p rnn_fwd_p",
    "pyjx.extend": "pallas",
}

# What serves meanwhile, and the names that it serves for.
SERVES: dict[str, str] = {
    "jax.jit(f).lower(*args).as_text(), which is StableHLO":
        "pyjx.experimental.jax2tf pyjx.tools.jax_to_ir.jax_to_tf "
        "pyjx.tools.jax_to_ir.tf_wrap_with_input_names",
    "jax.profiler":
        "pyjx.collect_profile",
}
INSTEAD: dict[str, str] = {name: said for said, names in SERVES.items() for name in names.split()}


def hint(package: str, name: str) -> str:
    """What to say of a name that a package has not: nothing, unless JAX has it.

    >>> hint("pyjx", "collect_profile")
    ': it is not there yet. Meanwhile use jax.profiler.'
    """
    if name not in NAMES.get(package, "").split():
        return ""
    instead = INSTEAD.get(f"{package}.{name}")
    return ": it is not there yet." + (f" Meanwhile use {instead}." if instead else "")


class ImportHint:
    """The last finder of modules: lets `import package.name` and `from package import name` say of
    a name that is not there yet what the attribute says."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> None:
        package, _, name = fullname.rpartition(".")
        under_alias = JaxFinder.answer is not None
        said = hint(_OF_JAX.sub("pyjx", package) if under_alias else package, name)
        if said and _imports(sys._getframe(1)):
            # It has no attribute `name`: `from` passes over an error that names what it looks for.
            raise ModuleNotFoundError(f"cannot import {name!r} from {package!r}{said}")


def _imports(frame: FrameType | None) -> bool:
    """Whether it is for an import that a finder was called from `frame`. Who only asks whether
    there is such a module, as `importlib.util.find_spec`, is to hear that there is none."""
    in_machinery = False
    while frame is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        in_machinery = True
        frame = frame.f_back
    return in_machinery and (frame is None or frame.f_globals.get("__name__") != "importlib.util")
