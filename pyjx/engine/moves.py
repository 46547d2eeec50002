"""Values moved to another memory or device: the primitive, for policies of rematerialization that
keep values elsewhere. Its rules stand with `device_put` (runtime/device_put.py).
"""

from __future__ import annotations

from typing import Any

from pyjx import jaxlib_api
from pyjx.core.effects import no_effects
from pyjx.core.jaxpr import JaxprEqn, Var
from pyjx.core.linearity import APART
from pyjx.core.primitive import Primitive, register
from pyjx.core.source_info import SourceInfo
from pyjx.core.spaces import MEMORY_KINDS, Space

device_put_p: Primitive = register(Primitive(
    "device_put", moves=True, multiple_results=True, linear=APART, cached=False))

_SPACES = {kind: space for space, kind in MEMORY_KINDS.items()}


def _space_of(kind: str) -> Space:
    if kind not in _SPACES:
        raise ValueError(f"values of programs are kept in memory of the kinds "
                         f"{' and '.join(map(repr, sorted(_SPACES)))}, got {kind!r}")
    return _SPACES[kind]


def moved(x: Any, space: Space) -> Any:
    """The value in this memory."""
    return device_put_p.bind(x, **_params(space))[0]


def moved_eqn(source: Var, target: Var, kind: str, source_info: SourceInfo) -> JaxprEqn:
    """`target` is `source` in memory of this kind.

    Raises:
      ValueError: programs have no values there.
    """
    return JaxprEqn(device_put_p, [source], [target], _params(_space_of(kind)), no_effects,
                    source_info)


def _params(space: Space) -> dict[str, Any]:
    return {"devices": (space,), "srcs": (None,),
            "copy_semantics": (jaxlib_api.ArrayCopySemantics.ALWAYS_COPY,)}
