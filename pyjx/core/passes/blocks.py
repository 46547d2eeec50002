"""Blocks of equations that hold the same code, and the values that pass between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pyjx.core.jaxpr import Jaxpr, JaxprEqn, Literal, Var


class Flow:
    """Where the variables of a program are defined and, last, used."""

    __slots__ = ("defined", "last_use")

    def __init__(self, jaxpr: Jaxpr) -> None:
        eqns = jaxpr.eqns
        self.defined = {v: i for i, e in enumerate(eqns) for v in e.outvars}
        self.last_use: dict[Any, int] = {v: i for i, e in enumerate(eqns) for v in e.invars}
        self.last_use.update(dict.fromkeys(jaxpr.outvars, len(eqns)))

    def crossing(self, n: int) -> np.ndarray:
        """For each position, how many values are made before it and used at or after it."""
        defined = np.fromiter(self.defined.values(), np.int64)
        used = np.fromiter(map(self.last_use.get, self.defined, self.defined.values()), np.int64)
        defined, used = defined[used > defined], used[used > defined]
        change = np.bincount(defined + 1, minlength=n + 2) - np.bincount(used + 1, minlength=n + 2)
        return np.cumsum(change)


class Group:
    """Places that hold the same block.

    The function of the block has `body`, the equations at the first place, over the parameters
    `formals`; `inputs` are their values at each place.
    """

    __slots__ = ("body", "formals", "inputs", "length", "starts")

    def __init__(self, length: int) -> None:
        self.length = length
        self.starts: list[int] = []
        self.inputs: list[list[Var]] = []
        self.formals: list[Var] = []
        self.body: list[JaxprEqn] = []

    def add(self, eqns: Sequence[JaxprEqn], start: int, inputs: list[Var]) -> None:
        if not self.starts:
            self.body = list(eqns[start:start + self.length])
            self.formals = inputs
        self.starts.append(start)
        self.inputs.append(inputs)

    def results(self, eqns: Sequence[JaxprEqn], start: int) -> list[Var]:
        """What the block computes at one of its places."""
        return [v for e in eqns[start:start + self.length] for v in e.outvars]


def groups_of(eqns: Sequence[JaxprEqn], starts: Iterable[int], length: int) -> list[Group]:
    """The blocks of `length` equations at `starts`, those of the same code together."""
    groups: dict[Any, Group] = {}
    for start in starts:
        code, inputs = _code(eqns, start, length)
        groups.setdefault(code, Group(length)).add(eqns, start, inputs)
    return [g for g in groups.values() if len(g.starts) > 1]


def _code(eqns: Sequence[JaxprEqn], start: int, length: int) -> tuple[Any, list[Var]]:
    """The flow of values in a block, and the values that it takes from outside."""
    place: dict[Any, int] = {}
    inputs: list[Any] = []
    flow: list[int] = []
    made = 1
    for i in range(start, start + length):
        eqn = eqns[i]
        for v in eqn.invars:
            if type(v) is not Literal:
                p = place.get(v)
                if p is None:  # inputs count down from -1, results up from 1
                    inputs.append(v)
                    p = place[v] = -len(inputs)
                flow.append(p)
        for v in eqn.outvars:
            place[v] = made
            made += 1
    return tuple(flow), inputs


class Users:
    """Who reads each variable: blocks by their start, equations outside of blocks by their
    position, and the results of the program."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[Any, list[int]] = {}

    def add(self, variables: Iterable[Any], user: int) -> None:
        for v in variables:
            self._of.setdefault(v, []).append(user)

    def remove(self, variables: Iterable[Any], user: int) -> None:
        for v in variables:
            self._of[v].remove(user)

    def any(self, variable: Var) -> bool:
        return bool(self._of.get(variable))

    def after(self, variable: Var, user: int) -> bool:
        """Whether somebody else reads the variable after `user`."""
        users = self._of.get(variable)
        return users is not None and any([u > user for u in users])


class Program:
    """Equations, and how they are parted into blocks.

    Attributes:
      numbers: equal for equations that are equal but for the operands' identity.
      defined: the position of the equation that makes a variable.
      block: for each position, where its block starts; -1 outside of blocks.
    """

    __slots__ = ("block", "defined", "eqns", "numbers", "users")

    def __init__(self, jaxpr: Jaxpr, numbers: np.ndarray, defined: dict[Var, int],
                 groups: Sequence[Group]) -> None:
        self.eqns = jaxpr.eqns
        self.numbers: list[int] = numbers.tolist()
        self.defined = defined
        self.block = [-1] * len(jaxpr.eqns)
        for group in groups:
            for start in group.starts:
                self.block[start:start + group.length] = [start] * group.length
        self.users = Users()
        for group in groups:
            for start, inputs in zip(group.starts, group.inputs, strict=True):
                self.users.add(inputs, start)
        for i, (eqn, start) in enumerate(zip(self.eqns, self.block, strict=True)):
            if start < 0:
                self.users.add(eqn.invars, i)
        self.users.add(jaxpr.outvars, len(self.eqns))
