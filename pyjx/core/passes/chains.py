"""Chains of operations that XLA fuses: where calls would cut them.

A fusion computes again whatever it reads of operations that are fused. Within one computation a
long chain of elementwise operations ends in few fusions; but each of its values that a call reads
ends one, so calls that read every value of a chain of n cost n² / 2 operations.

Blocks whose results are read once each are one fusion with what reads them, which keeps nothing of
them in memory and computes nothing again: the terms of a sum, as an interpolation has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyjx.core.jaxpr import Jaxpr, JaxprEqn, Literal
from pyjx.core.passes.blocks import Group, Program

# How many operations may be computed again for the blocks of a group, for each of the program.
LIMIT = 4
# What XLA fuses beside operations with a cost. They compute nothing, so nothing is computed again.
_FUSED = frozenset(["concatenate", "dynamic_slice", "gather", "pad", "rev", "split", "stack",
                    "unstack"])
# How many equations less there must be for blocks that XLA would fuse to be functions all the same:
# those of a program that takes long to compile.
MIN_FUSED_SAVING = 1024


def without_cut_chains(groups: Sequence[Group], program: Program) -> list[Group]:
    """The groups but those for whose calls XLA would compute too much again."""
    depths = _depths(program.eqns, program.block)
    most = LIMIT * len(program.eqns)
    return [g for g in groups
            if sum([depths.get(v, 0) for v in set().union(*g.inputs)]) <= most]


def without_fused(groups: Sequence[Group], jaxpr: Jaxpr) -> list[Group]:
    """The groups but those whose blocks XLA fuses with what reads them."""
    fused = [g for g in groups if all(map(_is_fused, g.body))]
    if not fused or sum([(len(g.starts) - 1) * g.length for g in fused]) >= MIN_FUSED_SAVING:
        return list(groups)
    readers: dict[Any, list[JaxprEqn | None]] = {}  # None for the program's result
    for eqn in jaxpr.eqns:
        for v in set(eqn.invars):
            readers.setdefault(v, []).append(eqn)
    for v in jaxpr.outvars:
        readers.setdefault(v, []).append(None)
    left = {g for g in fused if _are_fused(jaxpr.eqns, g, readers)}
    return [g for g in groups if g not in left]


def _are_fused(eqns: Sequence[JaxprEqn], group: Group,
               readers: Mapping[Any, Sequence[JaxprEqn | None]]) -> bool:
    """Whether whatever leaves the blocks is read once, and by fused operations. Results of the
    program are stored anyway: blocks that have no other reader are functions."""
    leaving: set[JaxprEqn | None] = set()
    for start in group.starts:
        block = set(eqns[start:start + group.length])
        for v in group.results(eqns, start):
            reading = readers.get(v, ())
            if not block.issuperset(reading):
                if len(reading) > 1:
                    return False
                leaving.update(reading)
    others = [e for e in leaving if e is not None]
    return bool(others) and all(map(_is_fused, others))


def _is_fused(eqn: JaxprEqn) -> bool:
    return eqn.primitive.cost is not None or eqn.primitive.name in _FUSED


def _depths(eqns: Sequence[JaxprEqn], block: Sequence[int]) -> dict[Any, int]:
    """For what is made by fused operations outside of blocks the length of the chain of these that
    ends there."""
    depths: dict[Any, int] = {}
    for eqn, start in zip(eqns, block, strict=True):
        if start < 0 and eqn.primitive.cost is not None:
            before = [depths.get(v, 0) for v in eqn.invars if type(v) is not Literal]
            depths.update(dict.fromkeys(eqn.outvars, 1 + max(before, default=0)))
    return depths
