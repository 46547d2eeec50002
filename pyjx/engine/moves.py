"""Values that are moved to another memory or device, or are to lie on devices as a sharding says.

Two primitives that the engines and the lowering make equations of. What applies them to arrays
stands above these, with the public functions: runtime/device_put.py, runtime/constraints.py.
"""

from __future__ import annotations

from typing import Any

from pyjx import jaxlib_api
from pyjx.core.effects import no_effects
from pyjx.core.jaxpr import JaxprEqn, Var
from pyjx.core.linearity import APART, TOGETHER
from pyjx.core.places import MEMORY_KINDS, Space
from pyjx.core.primitive import Primitive, register
from pyjx.core.source_info import SourceInfo

device_put_p: Primitive = register(Primitive(
    "device_put", moves=True, multiple_results=True, linear=APART, cached=False))

# Not cached: along Explicit axes a value lies as it does.
sharding_constraint_p: Primitive = register(Primitive(
    "sharding_constraint", shape_rule=lambda x, **params: x, linear=TOGETHER, cached=False))

_SPACES = {kind: space for space, kind in MEMORY_KINDS.items()}


def _space_of(kind: str) -> Space:
    if kind not in _SPACES:
        raise ValueError(f"values of programs are kept in memory of the kinds "
                         f"{' and '.join(map(repr, sorted(_SPACES)))}, got {kind!r}")
    return _SPACES[kind]


def moved(x: Any, place: Any) -> Any:
    """The value in this memory, or on this device."""
    return device_put_p.bind(x, **_params(place))[0]


def moved_eqn(source: Var, target: Var, kind: str, source_info: SourceInfo) -> JaxprEqn:
    """`target` is `source` in memory of this kind.

    Raises:
      ValueError: programs have no values there.
    """
    return JaxprEqn(device_put_p, [source], [target], _params(_space_of(kind)), no_effects,
                    source_info)


def _params(place: Any) -> dict[str, Any]:
    return {"devices": (place,), "srcs": (None,),
            "copy_semantics": (jaxlib_api.ArrayCopySemantics.ALWAYS_COPY,)}
