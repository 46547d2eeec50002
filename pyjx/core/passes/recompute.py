"""Which values cross the border of a block, and which are computed again inside it.

What a block reads must stay in memory from where it is made, and a block of the backward pass reads
much that elementwise operations made of few values. So its border is moved to a minimum cut of what
lies before it, where each value v has two costs: its bytes, if it is kept for the block, and a
fraction of them, if it is computed again from its operands,

    source --cost of computing v--> v.in --cost of keeping v--> v.out --inf--> block
                                     ^
                        u.out --inf--+   for each operand u of v

Values that are in memory at that time for others cost nothing to keep; what has no
`Primitive.cost` is never computed again. Of equal cuts the one nearest to the block is taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from pyjx.core.avals import nbytes
from pyjx.core.flows import NEVER, Network
from pyjx.core.jaxpr import Atom, JaxprEqn, Literal, Var
from pyjx.core.passes.blocks import Group, Program, Users
from pyjx.core.primitive import KEPT

# Borders over which less than 256 KiB pass, at all places of the block together, stay.
WORTH = KEPT << 18


class _Value:
    """A value at each place of a block; `eqn`, if it can be computed again, makes it at the first
    one, of `operands`."""

    __slots__ = ("compute", "eqn", "keep", "made", "number", "operands", "variables")

    def __init__(self, variables: tuple[Var, ...], number: int) -> None:
        self.variables = variables
        self.number = number
        self.eqn: JaxprEqn | None = None
        self.operands: list[_Value | Literal] = []
        self.keep = 0
        self.compute = NEVER
        self.made: Var | None = None  # in the block's function


class _Border:
    """The values before the blocks of a group: those that they read, and what these are made of in
    the blocks, or between blocks, where they are made; at most twice as many as equations."""

    __slots__ = ("_program", "group", "inputs", "values")

    def __init__(self, group: Group, program: Program) -> None:
        self.group = group
        self._program = program
        self.values: dict[tuple[Var, ...], _Value] = {}
        self.inputs = [self._value(variables) for variables in zip(*group.inputs, strict=True)]
        if self.passing() < WORTH:
            return
        queue = deque(self.inputs)
        limit = 2 * group.length
        while queue and len(self.values) < limit:
            value = queue.popleft()
            if value.keep and value.eqn is None:
                queue.extend(self._expand(value))

    def passing(self) -> int:
        return sum([v.keep for v in self.inputs])

    def _value(self, variables: tuple[Var, ...]) -> _Value:
        value = self.values.get(variables)
        if value is None:
            value = self.values[variables] = _Value(variables, len(self.values))
            program = self._program
            kept = [v for v, start in zip(variables, self.group.starts, strict=True)
                    if v in program.defined and not program.users.after(v, start)]
            value.keep = KEPT * len(kept) * nbytes(variables[0].aval)
        return value

    def _expand(self, value: _Value) -> list[_Value]:
        """Say how a value can be computed again, if it can: alike at all places. The operands that
        are made in the same block are returned."""
        eqns, numbers, defined = self._program.eqns, self._program.numbers, self._program.defined
        places = [defined.get(v, -1) for v in value.variables]
        eqn, number = eqns[places[0]], numbers[places[0]]
        rate = eqn.primitive.cost
        if (rate is None or -1 in places or len(eqn.outvars) > 1
                or any([numbers[i] != number for i in places])):
            return []
        value.eqn = eqn
        value.compute = rate * len(places) * nbytes(value.variables[0].aval)
        block, near = self._program.block, []
        for k, v in enumerate(eqn.invars):
            if type(v) is Literal:
                value.operands.append(v)
            else:
                operand = self._value(tuple([eqns[i].invars[k] for i in places]))  # type: ignore
                value.operands.append(operand)
                if v in defined and block[defined[v]] == block[places[0]]:
                    near.append(operand)
        return near

    def cut(self) -> set[_Value]:
        """The values to compute again."""
        network = Network(2 * len(self.values) + 2)
        source, sink = 0, 1
        for value in self.values.values():
            before, after = 2 * value.number + 2, 2 * value.number + 3
            if value.eqn is None:
                network.edge(source, after, value.keep)
                continue
            network.edge(source, before, value.compute)
            network.edge(before, after, value.keep)
            for operand in value.operands:
                if type(operand) is _Value:
                    network.edge(2 * operand.number + 3, before, NEVER)
        for value in self.inputs:
            network.edge(2 * value.number + 3, sink, NEVER)
        near = network.sink_side(source, sink)
        return {v for v in self.values.values() if v.eqn is not None and near[2 * v.number + 2]}


def narrow_borders(groups: Sequence[Group], program: Program) -> bool:
    """Move the borders of blocks, the last block first; whether any was moved."""
    moved = False
    for group in sorted(groups, key=lambda g: -g.starts[0]):
        border = _Border(group, program)
        if border.passing() >= WORTH:
            computed = border.cut()
            if computed:
                _rewrite(border, computed, program.users)
                moved = True
    return moved


def _rewrite(border: _Border, computed: set[_Value], users: Users) -> None:
    """Compute values in the body of a block, each just before its first use."""
    group = border.group
    body: list[JaxprEqn] = []
    formals: list[Var] = []
    kept: list[_Value] = []
    inputs = dict(zip(group.formals, border.inputs, strict=True))

    def read(value: _Value) -> Var:
        if value.made is None:
            if value not in computed:
                value.made = Var(value.variables[0].aval)
                formals.append(value.made)
                kept.append(value)
            else:
                eqn = value.eqn
                assert eqn is not None
                operands: list[Atom] = [
                    v if isinstance(v, Literal) else read(v) for v in value.operands]
                value.made = Var(value.variables[0].aval)
                body.append(eqn.replace(invars=operands, outvars=[value.made]))
        return value.made

    for eqn in group.body:
        invars = [read(inputs[v]) if v in inputs else v for v in eqn.invars]  # type: ignore[index]
        body.append(eqn.replace(invars=invars))
    group.body, group.formals = body, formals
    for i, start in enumerate(group.starts):
        users.remove(group.inputs[i], start)
        group.inputs[i] = [v.variables[i] for v in kept]
        users.add(group.inputs[i], start)
