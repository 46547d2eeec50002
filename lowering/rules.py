"""The table of lowering rules: which text a primitive becomes, on all platforms or on one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Emit = Callable[..., Any]

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


class LoweringRule:
    """How a primitive is written.

    `emit` is `(block, eqn, *operands) -> name`, or a sequence of names for primitives with several
    results, where `operands` are the SSA names of the equation's operands. With `widens` the
    operands of rank 0 have been brought to the shape of the result.
    """

    __slots__ = ("emit", "platform", "widens")

    def __init__(self, emit: Emit, platform: str | None, widens: bool) -> None:
        self.emit = emit
        self.platform = platform
        self.widens = widens


_RULES: dict[str | None, dict[str, LoweringRule]] = {p: {} for p in (None, *PLATFORMS)}
_merged: dict[str, dict[str, LoweringRule]] = {}


def rule(*names: str, platform: str | None = None, widens: bool = False) -> Callable[[Emit], Emit]:
    """Declare the lowering of the primitives with these names.

    A rule for one platform goes before one for all; a primitive without a rule for a platform is
    decomposed there.

    Raises:
      ValueError: an unknown platform, or a second rule for a primitive and platform.
    """
    rules = _RULES.get(platform)
    if rules is None:
        raise ValueError(f"rule: platform is one of {', '.join(PLATFORMS)}, got {platform!r}")

    def register(emit: Emit) -> Emit:
        for name in names:
            if name in rules:
                where = f" on {platform}" if platform else ""
                raise ValueError(f"There are two lowering rules for {name!r}{where}.")
            rules[name] = LoweringRule(emit, platform, widens)
        _merged.clear()
        return emit

    return register


def rules_for(platform: str) -> Mapping[str, LoweringRule]:
    """The rules for a platform by the primitives' names."""
    merged = _merged.get(platform)
    if merged is None:
        merged = _merged[platform] = {**_RULES[None], **_RULES.get(platform, {})}
    return merged
