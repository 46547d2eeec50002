"""The iterations of a loop from the last to the first, from few carries that are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx.core.avals import get_aval
from pyjx.engine.axes import broadcast_in_dim
from pyjx.lax.bitwise import bitwise_and
from pyjx.lax.compare import gt, lt
from pyjx.lax.elementwise import add, sub
from pyjx.lax.slicing import dynamic_index_in_dim, dynamic_update_index_in_dim

# How many carries a level keeps at most.
_BRANCHES = 8


class Replay:
    """The iterations of a loop from the last to the first.

    A level keeps the carries at the starts of equal parts of the iterations, and reverses these,
    last first, by the level below; the lowest reverses an iteration. With b parts on each of L
    levels, b^L iterations need the memory of b L carries and L times the work of the loop. All of
    it is loops with bounds, so it has itself a reverse mode.

    Args:
      holds: whether there is an iteration after this carry.
      step: the next carry.
      pull: `(carry, back)` to `back` before the iteration that starts with this carry.
      bound: of the number of iterations.
      loop: `(holds, step, start, max_steps)` to the last of the values that begin with `start`.
    """

    def __init__(self, holds: Callable[[Any], Any], step: Callable[[Any], list[Any]],
                 pull: Callable[[Any, Any], list[Any]], bound: int,
                 loop: Callable[..., list[Any]]) -> None:
        self.holds = holds
        self.step = step
        self.pull = pull
        self.loop = loop
        self.levels = 1
        while _BRANCHES ** self.levels < bound:
            self.levels += 1
        self.branches = 1
        while self.branches ** self.levels < bound:
            self.branches += 1

    def reverse(self, level: int, carry: Sequence[Any], back: Sequence[Any]) -> list[Any]:
        """`back` before the iterations of this level that follow the carry."""
        if level == 0:
            return self.pull(carry, back)
        count, kept = self.keep(level, carry)

        def part_before(count: Any, *back: Any) -> list[Any]:
            i = sub(count, np.int32(1))
            carry = [dynamic_index_in_dim(x, i, 0, False) for x in kept]
            return [i, *self.reverse(level - 1, carry, back)]

        return self.loop(lambda count, *_: gt(count, np.int32(0)), part_before, [count, *back],
                     self.branches)[1:]

    def keep(self, level: int, carry: Sequence[Any]) -> tuple[Any, list[Any]]:
        """How many parts there are, and the carries at their starts."""
        n = len(carry)

        def goes_on(i: Any, *rest: Any) -> Any:
            return bitwise_and(lt(i, np.int32(self.branches)), self.holds(rest[:n]))

        def keep_one(i: Any, *rest: Any) -> list[Any]:
            carry, kept = rest[:n], rest[n:]
            return [add(i, np.int32(1)), *self.advance(level - 1, carry),
                    *[dynamic_update_index_in_dim(xs, x, i, 0)
                      for xs, x in zip(kept, carry, strict=True)]]

        places = [broadcast_in_dim(x, (self.branches, *get_aval(x).shape),
                                   tuple(range(1, get_aval(x).ndim + 1))) for x in carry]
        outs = self.loop(goes_on, keep_one, [np.int32(0), *carry, *places], self.branches)
        return outs[0], outs[1 + n:]

    def advance(self, level: int, carry: Sequence[Any]) -> list[Any]:
        """The carry after a part of this level."""
        if level == 0:
            return self.step(carry)
        count = self.branches ** level
        return self.loop(
            lambda i, *carry: bitwise_and(lt(i, np.int32(count)), self.holds(carry)),
            lambda i, *carry: [add(i, np.int32(1)), *self.step(carry)], [np.int32(0), *carry],
            count)[1:]
