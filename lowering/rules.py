"""The table of lowering rules: which text a primitive becomes, on all platforms or on one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from lowering.families import module_of

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


class _PlatformRules(dict[str, LoweringRule | None]):
    """The rules for one platform by the primitives' names, looked for when they are asked for."""

    __slots__ = ("platform",)

    def __init__(self, platform: str) -> None:
        super().__init__()
        self.platform = platform

    def __missing__(self, name: str) -> LoweringRule | None:
        module = module_of(name, self.platform)
        if module is not None:
            import_module(module)
        found = _RULES.get(self.platform, {}).get(name) or _RULES[None].get(name)
        self[name] = found
        return found


_by_platform: dict[str, _PlatformRules] = {}


def rule(*names: str, platform: str | None = None, widens: bool = False) -> Callable[[Emit], Emit]:
    """Declare the lowering of the primitives with these names, which `families` lists, too.

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
            module = module_of(name, platform)
            if module is not None and module != emit.__module__:
                import_module(module)  # which may have one
            if name in rules:
                where = f" on {platform}" if platform else ""
                raise ValueError(f"There are two lowering rules for {name!r}{where}.")
            rules[name] = LoweringRule(emit, platform, widens)
            for found in _by_platform.values():
                found.pop(name, None)
        return emit

    return register


def rules_for(platform: str) -> Mapping[str, LoweringRule | None]:
    """The rules for a platform by the primitives' names; None for a primitive that has none."""
    found = _by_platform.get(platform)
    if found is None:
        found = _by_platform.setdefault(platform, _PlatformRules(platform))
    return found
