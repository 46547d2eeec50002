"""`jax._src.effects`: what programs do besides computing results, and which of it is allowed."""

from __future__ import annotations

from typing import Any

import pyjx.core.effects
from pyjx.core.effects import Effect
from pyjx.experimental.hijax import EffectTypeSet, control_flow_allowed_effects

__all__ = [
    "control_flow_allowed_effects", "lowerable_effects", "ordered_effects",
    "remat_allowed_effects",
]


class Marked:
    """The types of effects of which something is so, as they say themselves.

    Args:
      attribute: by which.

    >>> class Noise(Effect):
    ...     pass
    >>> Marked("repeatable").add_type(Noise)
    >>> Noise.repeatable, Marked("repeatable").contains(Noise()), Noise.ordered
    (True, True, False)
    """

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute

    def add_type(self, effect_type: type[Effect]) -> None:
        """Let effects of a type be among them."""
        setattr(effect_type, self._attribute, True)

    def contains(self, effect: Effect | type[Effect]) -> bool:
        """Whether an effect, or those of a type, are among them."""
        return bool(getattr(effect, self._attribute))

    def filter_in(self, effects: Any) -> list[Effect]:
        """Those of some effects that are among them."""
        return [effect for effect in effects if self.contains(effect)]

    def filter_not_in(self, effects: Any) -> list[Effect]:
        """Those of some effects that are not among them."""
        return [effect for effect in effects if not self.contains(effect)]


ordered_effects = Marked("ordered")
remat_allowed_effects = Marked("repeatable")
lowerable_effects = EffectTypeSet()
lowerable_effects.add_type(Effect)  # nothing is refused for its effects: what lowers is the rule


def __getattr__(name: str) -> Any:
    return getattr(pyjx.core.effects, name)
