"""One walk through a program that runs in several ways side by side, for whoever asks with which
operation something begins to be wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyjx.core.jaxpr import ClosedJaxpr, DropVar, JaxprEqn
from pyjx.core.passes.dce import dce
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.inspect.bad_values import Deviation, Step
from pyjx.inspect.straight import line_of, operands_of, programs_within, straight

Env = dict[Any, Any]
Part = tuple[str, ClosedJaxpr, list[Any], list[Any], "Side"]


class Side:
    """A way in which a program runs. A key says where in the whole a part of it stands."""

    def run(self, key: str, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program."""
        raise NotImplementedError

    def constant(self, x: Any) -> Any:
        """A constant of the program as an argument."""
        return x

    def values(self, key: str, closed: ClosedJaxpr, args: Sequence[Any]) -> Env:
        """The values of all variables of a program without calls and constants."""
        made = made_by(closed)
        outs = self.run(key, closed.replace(outvars=list(made)), args)
        return dict(zip([*closed.jaxpr.invars, *made], [*args, *outs], strict=True))

    def within(self, key: str, eqn: JaxprEqn, xs: list[Any]) -> Iterator[Part]:
        """What an equation runs: as `programs_within`, each with the way in which it does."""
        for part in programs_within(eqn, xs, lambda text, *rest: self.run(f"{key}{text}/", *rest)):
            yield (*part, self)

    def opened(self, closed: ClosedJaxpr, args: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
        """The program without calls and constants, and its arguments."""
        closed = dce(straight(closed))
        return consts_as_inputs(closed), [*map(self.constant, closed.consts), *args]


class Judge:
    """Who says what is wrong."""

    def of(self, sides: Sequence[Side], eqns: Sequence[JaxprEqn], envs: Sequence[Env]
           ) -> tuple[float, ...] | None:
        """By how much the results of an operation are wrong, and what is let pass; None if they are
        right, and nothing where that is to be seen in the programs that it holds."""
        raise NotImplementedError

    def inside(self, parts: Sequence[Part]) -> bool:
        """Whether the results of what an equation runs are wrong."""
        raise NotImplementedError

    def fault(self, eqn: JaxprEqn, steps: tuple[Step, ...], wrong: tuple[float, ...]) -> Deviation:
        return Deviation(eqn.primitive.name, line_of(eqn), steps, *wrong[:2])


def made_by(closed: ClosedJaxpr) -> dict[Any, tuple[str, str]]:
    """The variables of a program, the place of each, and the operation that makes it."""
    return {v: (f"{i}.{k}", f"{eqn.primitive.name}:{v.aval.str_short()}")
            for i, eqn in enumerate(closed.eqns) for k, v in enumerate(eqn.outvars)
            if not isinstance(v, DropVar)}


def faults(judge: Judge, sides: Sequence[Side], programs: Sequence[ClosedJaxpr],
           args: Sequence[Sequence[Any]], steps: tuple[Step, ...] = (), key: str = ""
           ) -> Iterator[Deviation]:
    """The operations that are wrong, in order; of a loop those of the first iteration that is."""
    opened = [side.opened(closed, xs) for side, closed, xs in zip(
        sides, programs, args, strict=True)]
    envs = [side.values(key, *given) for side, given in zip(sides, opened, strict=True)]
    for i, eqns in enumerate(zip(*[closed.eqns for closed, _ in opened], strict=False)):
        wrong = judge.of(sides, eqns, envs)
        if wrong is None:
            continue
        inner = False
        for parts in zip(*[side.within(f"{key}{i}/", eqn, operands_of(eqn, env)) for side, eqn, env
                           in zip(sides, eqns, envs, strict=True)], strict=False):
            if not judge.inside(parts):
                continue
            texts, bodies, given, _, ways = zip(*parts, strict=True)
            for found in faults(judge, ways, bodies, given, (*steps, Step.of(texts[0], eqns[0])),
                                f"{key}{i}/{texts[0]}/"):
                inner = True
                yield found
            if inner:
                break
        if wrong and not inner:
            yield judge.fault(eqns[0], steps, wrong)
