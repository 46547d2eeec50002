"""Differences that are known and intended, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tests.oracle.comparison import Difference
from tests.oracle.language import Program


class Explained(NamedTuple):
    """A reason, and where it holds: causes, a pattern of the source, a pattern of the outcomes."""

    reason: str
    causes: tuple[str, ...]
    source: str = ""
    ours: str = ""
    theirs: str = ""
    also: Callable[[Program], bool] | None = None

    def holds(self, program: Program, d: Difference) -> bool:
        return (d.cause in self.causes
                and bool(re.search(self.source, program.source(), re.DOTALL))
                and bool(re.search(self.ours, d.ours)) and bool(re.search(self.theirs, d.theirs))
                and (self.also is None or self.also(program)))


EXPLAINED: list[Explained] = []


def reason(program: Program, d: Difference) -> str | None:
    return next((e.reason for e in EXPLAINED if e.holds(program, d)), None)
