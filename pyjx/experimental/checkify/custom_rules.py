"""Rules of derivatives of functions with checks, whose results begin with what these found: where a
rule takes the place of the function, nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.engine.functions import name_of
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Tangents, Values
from pyjx.experimental.checkify.errors import Site
from pyjx.experimental.checkify.found import Found, n_values


class _Rule:
    """A rule of a function whose checks have these sites."""

    __slots__ = ("rule", "sites")

    def __init__(self, rule: Any, sites: tuple[Site, ...]) -> None:
        self.rule = rule
        self.sites = sites

    @property
    def __name__(self) -> str:
        return name_of(self.rule)

    def check(self, outs: Values, expected: Sequence[Any]) -> None:
        n = n_values(self.sites)
        self.rule.check(outs[n:], expected[n:])

    def nothing(self) -> list[Any]:
        return Found().values(self.sites)


class CheckedJvp(_Rule):
    """From (primals, tangents) to (outs, out tangents)."""

    __slots__ = ()

    def __call__(self, primals: Values, tangents: Tangents) -> tuple[list[Any], list[Any]]:
        outs, out_tangents = self.rule(primals, tangents)
        values = self.nothing()
        zeros = [Zero(get_aval(x).to_tangent_aval()) for x in values]
        return [*values, *outs], [*zeros, *out_tangents]


class CheckedFwd(_Rule):
    """From (primals, flags) to (outs, residuals, backward rule)."""

    __slots__ = ()

    def __call__(self, primals: Values, nonzero: Sequence[bool]) -> tuple[Any, Any, Any]:
        outs, residuals, pull_back = self.rule(primals, nonzero)
        return [*self.nothing(), *outs], residuals, _CheckedBwd(pull_back, self.sites)


class _CheckedBwd(_Rule):
    """From (residuals, cotangents) to cotangents."""

    __slots__ = ()

    def __call__(self, residuals: Values, cotangents: Tangents) -> Any:
        return self.rule(residuals, cotangents[n_values(self.sites):])
