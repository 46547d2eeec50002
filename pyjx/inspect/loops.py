"""Loops and branches, run step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.records import Record
from pyjx.engine.tangents import full_aval


class Loop(Record):
    """A loop: operands before those of the body, the body, its carry, and how far it goes.

    Attributes:
      body: the program of an iteration.
      before: the number of operands before those of the body.
      first: that of operands before the carry.
      n_carry: that of components of the carry.
      length: the most iterations.
      condition: the program that says of the first operands and the carry whether there is another
        iteration; None where `length` does.
      reverse: whether slices are taken from the last to the first.
      eqn: its equation.
    """

    body: ClosedJaxpr
    before: int
    first: int
    n_carry: int
    length: int
    condition: ClosedJaxpr | None
    reverse: bool
    eqn: JaxprEqn

    @classmethod
    def of(cls, eqn: JaxprEqn) -> Loop:
        p = eqn.params
        if eqn.primitive.name == "scan":
            return cls(p["jaxpr"], 0, p["num_consts"], p["num_carry"], p["length"], None,
                       p["reverse"], eqn)
        a = p["cond_nconsts"]
        return cls(p["body_jaxpr"], a, a + p["body_nconsts"], len(eqn.outvars), 2**31 - 1,
                   p["cond_jaxpr"], False, eqn)

    def goes_on(self, operands: Sequence[Any], carry: Sequence[Any]) -> Any:
        """Whether there is another iteration, but for what `length` says."""
        asked = self.condition
        return asked is None or jaxpr_as_fun(asked)(*operands[:self.before], *carry)[0]

    def row(self, i: Any) -> Any:
        """Which slice iteration `i` takes."""
        return self.length - 1 - i if self.reverse else i

    def words(self, i: int) -> str:
        """Which iteration the `i`-th is, by the slices that it takes: those of the transpose of a
        loop are in the order of the loop."""
        backwards = ", which runs backwards" if self.reverse else ""
        return f"iteration {self.row(i)} of {self.eqn.primitive}{backwards}"

    def watched(self, flag: Callable[[Any, Any], Any]) -> Callable[..., list[Any]]:
        """A function of an iteration to stop before, since when each result has been bad, numbers
        of their elements for `flag(result, number)`, and the operands of the loop. It gives the
        results up to there, and since which iteration, counted from 1, each has been bad then: 0
        where it came in so, -1 where it is not; of stacked results it is the first bad slice. Last
        come the slices that the iteration takes."""
        n, first, body = self.n_carry, self.first, self.body

        def run(stop: Any, since: Any, numbers: Any, *operands: Any) -> list[Any]:
            start, slices = operands[first:first + n], operands[first + n:]

            def row(i: Any) -> list[Any]:
                return [lax.dynamic_index_in_dim(x, self.row(i), keepdims=False) for x in slices]

            def step(state: Any) -> Any:
                i, carry, stacked, since = state
                outs = jaxpr_as_fun(body)(*operands[self.before:first], *carry, *row(i))
                stacked = [lax.dynamic_update_index_in_dim(x, y, self.row(i), 0)
                           for x, y in zip(stacked, outs[n:], strict=True)]
                bad = jnp.array([*map(flag, outs, numbers)])
                began = jnp.where(since < 0, i + 1, since)
                kept = jnp.where(jnp.arange(len(outs)) < n, -1, since)
                return i + 1, outs[:n], stacked, jnp.where(bad, began, kept)

            stacked = [full_aval(v.aval, 0) for v in self.eqn.outvars[n:]]
            _, carry, stacked, since = lax.while_loop(
                lambda state: (state[0] < stop) & self.goes_on(operands, state[1]), step,
                (jnp.zeros((), np.int32), list(start), stacked, since))
            return [*carry, *stacked, since, *row(stop)]

        return run


def programs_within(eqn: JaxprEqn, xs: Sequence[Any],
                    run: Callable[[str, ClosedJaxpr, list[Any]], list[Any]]
                    ) -> Iterator[tuple[str, ClosedJaxpr, list[Any], list[Any]]]:
    """What a branch or a loop runs on operands, one after the other: in words, the program, its
    operands, and its results, which `run(words, program, operands)` gives."""
    name = eqn.primitive.name
    if name == "cond":
        branches = eqn.params["branches"]
        k = int(np.clip(int(xs[0]), 0, len(branches) - 1))
        words, given = f"branch {k} of cond", list(xs[1:])
        yield words, branches[k], given, run(words, branches[k], given)
    elif name in ("scan", "while"):
        loop = Loop.of(eqn)
        asked, first, n = loop.condition, loop.first, loop.n_carry
        carry, slices = xs[first:first + n], xs[first + n:]
        for i in range(loop.length):
            if asked is not None and not np.any(
                    run(f"condition {i} of while", asked, [*xs[:loop.before], *carry])[0]):
                return
            words = loop.words(i)
            given = [*xs[loop.before:first], *carry, *[x[loop.row(i)] for x in slices]]
            outs = run(words, loop.body, given)
            yield words, loop.body, given, outs
            carry = outs[:n]
