"""Loops, and one of several programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lowering.builder import Block, in_avals, out_aval
from lowering.module import write_in_place
from lowering.rules import rule
from lowering.shapes import reshape
from lowering.types import int_list, tensor_type, tensor_types
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn

# -- loops -----------------------------------------------------------------------------------------


@rule("while")
def _while(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    params = eqn.params
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond_consts, body_consts = operands[:n_cond], operands[n_cond:n_cond + n_body]
    init, avals = operands[n_cond + n_body:], in_avals(eqn)[n_cond + n_body:]
    if not init:
        return []
    return b.loop(
        init, avals,
        lambda state: write_in_place(
            b, params["cond_jaxpr"], [*cond_consts, *state], eqn, "while/cond")[0],
        lambda state: write_in_place(
            b, params["body_jaxpr"], [*body_consts, *state], eqn, "while/body"))


@rule("scan")
def _scan(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    """A while loop over (index, carry, stacked results), which reads the other operands from around
    it. What `unroll` leaves over comes after the loop."""
    params = eqn.params
    first, n = params["num_consts"], params["num_carry"]
    length, unroll = params["length"], params["unroll"]
    body = _Body(b, eqn, operands)
    init = [*operands[first:first + n], *[b.constant(0, v.aval) for v in eqn.outvars[n:]]]
    if not length:
        return init
    turns = length // unroll
    if turns == 1:
        turns = 0  # the whole scan is unrolled
    state = [b.constant(0, _INDEX), *init]
    if turns:
        state = b.loop(
            state, [_INDEX, *[v.aval for v in eqn.outvars]],
            lambda now: b.compare("LT", now[0], b.constant(turns * unroll, _INDEX), _INDEX),
            lambda now: body.repeated(unroll, now))
    return body.repeated(length - turns * unroll, state)[1:]


_INDEX = ShapedArray((), np.dtype(np.int32))


class _Body:
    """The body of a scan, written where it is wanted."""

    def __init__(self, b: Block, eqn: JaxprEqn, operands: Sequence[str]) -> None:
        self.b = b
        self.eqn = eqn
        self.params = eqn.params
        first = self.params["num_consts"]
        self.consts = operands[:first]
        past = first + self.params["num_carry"]
        self.xs = list(zip(operands[past:], in_avals(eqn)[past:], strict=True))

    def repeated(self, times: int, state: Sequence[str]) -> list[str]:
        """The state after so many iterations. Its number is changed once, as what reads programs
        expects of loops that count."""
        index, *now = state
        for k in range(times):
            now = self._once(self.b.plus(index, k, _INDEX), now)
        return [self.b.plus(index, times, _INDEX), *now]

    def _once(self, index: str, state: Sequence[str]) -> list[str]:
        b, params = self.b, self.params
        n = params["num_carry"]
        place = index
        if params["reverse"]:
            last = b.constant(params["length"] - 1, _INDEX)
            place = b.binary("stablehlo.subtract", last, index, _INDEX)
        outs = write_in_place(
            b, params["jaxpr"],
            [*self.consts, *state[:n], *[self._element(x, aval, place) for x, aval in self.xs]],
            self.eqn, "while/body")
        ys = [self._stored(stack, y, aval, place) for stack, y, aval in zip(
            state[n:], outs[n:], params["jaxpr"].out_avals[n:], strict=True)]
        return [*outs[:n], *ys]

    def _element(self, x: str, aval: ShapedArray, place: str) -> str:
        row = aval.update(shape=(1, *aval.shape[1:]))
        part = self.b.line(
            f"stablehlo.dynamic_slice {x}, {self._starts(place, aval)}, sizes = "
            f"{int_list(row.shape)} : ({tensor_type(aval)}{', tensor<i32>' * aval.ndim}) -> "
            f"{tensor_type(row)}")
        return reshape(self.b, part, row, aval.shape[1:])

    def _stored(self, stack: str, y: str, aval: ShapedArray, place: str) -> str:
        row = aval.update(shape=(1, *aval.shape))
        stacked = aval.update(shape=(self.params["length"], *aval.shape))
        part = reshape(self.b, y, aval, row.shape)
        return self.b.line(
            f"stablehlo.dynamic_update_slice {stack}, {part}, {self._starts(place, stacked)} : "
            f"({tensor_type(stacked)}, {tensor_type(row)}{', tensor<i32>' * stacked.ndim}) -> "
            f"{tensor_type(stacked)}")

    def _starts(self, place: str, aval: ShapedArray) -> str:
        zero = self.b.constant(0, _INDEX)
        return ", ".join([place, *[zero] * (aval.ndim - 1)])


# -- one of several programs -----------------------------------------------------------------------


def branch_of(platforms: Sequence[tuple[str, ...] | None], platform: str) -> int:
    """Which of the branches serves a platform, from those of each; None stands for all others.

    Raises:
      NotImplementedError: none does.
    """
    for i, own in enumerate(platforms):
        if own is None or platform in own:
            return i
    raise NotImplementedError(
        f"MLIR translation rule for primitive 'platform_index(platforms={tuple(platforms)})' not "
        f"found for platform {platform}: platform_dependent has no branch for it. Give it one, "
        f"{platform}=f, or a default.")


@rule("platform_index")
def _platform_index(b: Block, eqn: JaxprEqn) -> str:
    return b.constant(branch_of(eqn.params["platforms"], b.module.platform), out_aval(eqn))


@rule("cond")
def _cond(b: Block, eqn: JaxprEqn, index: str, *operands: str) -> list[str]:
    branches = eqn.params["branches"]
    platforms = eqn.params.get("branches_platforms")
    if platforms is not None:
        return write_in_place(b, branches[branch_of(platforms, b.module.platform)], operands, eqn)
    count = len(eqn.outvars)
    out_types = tensor_types([v.aval for v in eqn.outvars])
    result = b.name()
    head = f"{result}:{count} = " if count > 1 else f"{result} = " if count else ""
    b.opening(f'{head}"stablehlo.case"({index}) ({{')
    for i, branch in enumerate(branches):
        if i:
            b.opening("}, {")
        with b.region():
            outs = write_in_place(b, branch, operands, eqn, f"cond/branch_{i}_fun")
            values = f" {', '.join(outs)} : {out_types}" if outs else ""
            b.raw(f"stablehlo.return{values}")
    b.raw(f"}}) : ({tensor_type(eqn.invars[0].aval)}) -> ({out_types})")
    return [f"{result}#{i}" for i in range(count)] if count > 1 else [result] * count
