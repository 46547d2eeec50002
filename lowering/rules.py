"""The table of lowering rules: which text a primitive becomes, on all platforms or on one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, update_wrapper
from importlib import import_module
from typing import Any

Emit = Callable[..., Any]

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")

# The modules that hold the rules, those first that most programs need: they load in this order,
# until what is asked for is among them.
_FAMILIES = (
    "elementwise", "shapes", "reductions", "calls", "contractions", "indexing", "loops",
    "random_bits", "sorting", "shardings", "convolution", "fourier", "linalg.expanders",
    "foreign_calls", "manual",
)
# Those of one platform load with the first program for it.
_OF_PLATFORM = {**dict.fromkeys(("cpu", "cuda", "rocm"), "linalg.libraries"), "tpu": "mosaic"}


class LoweringRule:
    """How a primitive is written.

    `emit` is `(block, eqn, *operands) -> name`, or a sequence of names for primitives with several
    results, where `operands` are the SSA names of the equation's operands. With `widens` the
    operands of rank 0 have been brought to the shape of the result. What is `elementwise` makes
    each element of operands' elements at the same place. What is `foreign` may be a call of a
    foreign function, which has its operands' layouts fixed. No kernel of a CPU holds what is
    `apart` together with other operations.
    """

    __slots__ = ("apart", "elementwise", "emit", "foreign", "platform", "widens")

    def __init__(self, emit: Emit, platform: str | None, widens: bool, elementwise: bool,
                 foreign: bool, apart: bool) -> None:
        self.emit = emit
        self.platform = platform
        self.widens = widens
        self.elementwise = elementwise
        self.foreign = foreign or not _is_own(emit)  # nobody knows what users' rules write
        self.apart = self.foreign or apart


def _is_own(emit: Emit) -> bool:
    return emit.__module__.startswith("lowering.")


class _PlatformRules(dict[str, LoweringRule | None]):
    """The rules for one platform by the primitives' names, looked for when they are asked for."""

    __slots__ = ("platform",)

    def __init__(self, platform: str) -> None:
        super().__init__()
        self.platform = platform
        if platform in _OF_PLATFORM:
            import_module(f"lowering.{_OF_PLATFORM[platform]}")  # which imports this file

    def __missing__(self, name: str) -> LoweringRule | None:
        own, common = _RULES.get(self.platform, {}), _RULES[None]
        for family in _FAMILIES:
            if name in own or name in common:
                break
            import_module(f"lowering.{family}")  # likewise
        found = self[name] = own.get(name) or common.get(name)
        return found


_RULES: dict[str | None, dict[str, LoweringRule]] = {p: {} for p in (None, *PLATFORMS)}
_by_platform: dict[str, _PlatformRules] = {}
_without_gpu_kernels: set[str] = set()


def without_gpu_kernels(names: Collection[str]) -> None:
    """Let the rules of some operations for GPUs be: the plugins have no kernels for them."""
    _without_gpu_kernels.update(names)


def rule(*names: str, platform: str | Sequence[str] | None = None, widens: bool = False,
         elementwise: bool = False, foreign: bool = False, apart: bool = False,
         within: Callable[..., Any] | None = None) -> Callable[[Emit], Emit]:
    """Declare the lowering of the primitives with these names, on a platform, several, or all,
    or what `within(emit, b, eqn, *operands)` makes of it. `LoweringRule` tells of the options.

    A rule for one platform goes before one for all; a primitive without a rule for a platform is
    decomposed there.

    Raises:
      ValueError: an unknown platform, or a second rule for a primitive and platform.
    """
    platforms = (platform,) if platform is None or isinstance(platform, str) else platform
    if not _RULES.keys() >= set(platforms):
        raise ValueError(f"rule: platform is one of {', '.join(PLATFORMS)}, got {platform!r}")

    def register(emit: Emit) -> Emit:
        made = emit if within is None else update_wrapper(partial(within, emit), emit)
        for p in platforms:
            for name in names:
                _register(name, p, LoweringRule(made, p, widens, elementwise, foreign, apart))
        return emit

    return register


def _register(name: str, platform: str | None, declared: LoweringRule) -> None:
    if not _is_own(declared.emit):
        rules_for(platform or "cpu").__getitem__(name)  # loads one that there may be
    if platform in ("cuda", "rocm") and name in _without_gpu_kernels:
        return
    if name in _RULES[platform]:
        where = f" on {platform}" if platform else ""
        raise ValueError(f"There are two lowering rules for {name!r}{where}.")
    _RULES[platform][name] = declared
    for found in _by_platform.values():
        found.pop(name, None)


def rules_for(platform: str) -> Mapping[str, LoweringRule | None]:
    """The rules for a platform by the primitives' names; None for a primitive that has none."""
    found = _by_platform.get(platform)
    if found is None:
        found = _by_platform.setdefault(platform, _PlatformRules(platform))
    return found
