"""Chains of operations that XLA fuses, and how much of them it computes again for blocks.

A fusion computes again whatever it reads of operations that are fused. Within one computation a
long chain of elementwise operations ends in few fusions; but each of its values that a call reads
ends one, so calls that read every value of a chain of n cost n² / 2 operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.jaxpr import JaxprEqn, Literal
from pyjx.core.passes.blocks import Group, Program

# How many operations may be computed again for the blocks of a group, for each of the program.
LIMIT = 4


def without_cut_chains(groups: Sequence[Group], program: Program) -> list[Group]:
    """The groups but those for whose calls XLA would compute too much again."""
    depths = _depths(program.eqns, program.block)
    most = LIMIT * len(program.eqns)
    return [g for g in groups
            if sum([depths.get(v, 0) for v in set().union(*g.inputs)]) <= most]


def _depths(eqns: Sequence[JaxprEqn], block: Sequence[int]) -> dict[Any, int]:
    """For what is made by fused operations outside of blocks the length of the chain of these that
    ends there."""
    depths: dict[Any, int] = {}
    for eqn, start in zip(eqns, block, strict=True):
        if start < 0 and eqn.primitive.cost is not None:
            before = [depths.get(v, 0) for v in eqn.invars if type(v) is not Literal]
            depths.update(dict.fromkeys(eqn.outvars, 1 + max(before, default=0)))
    return depths
