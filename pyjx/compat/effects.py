"""What programs may do besides computing results, as `jax.interpreters.mlir` says it."""

from __future__ import annotations

from pyjx.core.effects import Effect
from pyjx.experimental.hijax import EffectTypeSet

lowerable_effects = EffectTypeSet()
lowerable_effects.add_type(Effect)  # nothing is refused for its effects: what lowers is the rule
