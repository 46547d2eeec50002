"""Calls of programs that read and write references: on the arrays that these hold now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import AbstractRef
from pyjx.core.derived import derived
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.records import Record
from pyjx.core.references import Ref
from pyjx.engine import discharge
from pyjx.engine.discharge import Discharged
from pyjx.runtime import ledger

# From a program and which of its inputs are donated to a callable of arrays.
Compile = Callable[[ClosedJaxpr, tuple[bool, ...]], Callable[..., Any]]


class Call(Record):
    """A program without references, as it is called: `refs` are the inputs that are references,
    `written` those of them whose new values stand behind the `n_out` results."""

    discharged: Discharged
    donated: tuple[bool, ...]
    refs: tuple[int, ...]
    written: tuple[int, ...]
    n_out: int

    def arguments(self, operands: Sequence[Any]) -> list[Any]:
        """The operands, with the arrays of references."""
        args = list(operands)
        for i in self.refs:
            args[i] = args[i]._refs
        return args

    def store(self, operands: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        """Give the references their new arrays; the results of the program."""
        for i, new in zip(self.written, outs[self.n_out:], strict=True):
            operands[i]._refs = new
        return list(outs[:self.n_out])


@derived
def pure(closed: ClosedJaxpr) -> Discharged:
    """The program on values that is compiled in the place of `closed`."""
    found = discharge.pure(closed)
    ledger.note_replaced(closed, found.jaxpr)
    return found


@derived
def call_of(closed: ClosedJaxpr, donated: tuple[bool, ...]) -> Call:
    """How a program is called whose inputs `donated` may be overwritten."""
    found = pure(closed)
    refs = tuple([i for i, a in enumerate(closed.in_avals) if type(a) is AbstractRef])
    written = tuple([i for i, w in enumerate(found.written) if w])
    taken = tuple([(d and i not in refs) or i in written for i, d in enumerate(donated)])
    return Call(found, taken, refs, written, len(closed.out_avals))


def run(closed: ClosedJaxpr, operands: Sequence[Any], donated: tuple[bool, ...],
        compile_pure: Compile) -> list[Any]:
    """The results of a program; the references among its operands have their new values then."""
    call = call_of(closed, donated)
    run_pure = compile_pure(call.discharged.jaxpr, call.donated)
    return call.store(operands, run_pure(*call.arguments(operands)))


def has_refs(closed: ClosedJaxpr) -> bool:
    """Whether a program takes references or closes over some."""
    return (any([type(a) is AbstractRef for a in closed.in_avals])
            or any([type(c) is Ref for c in closed.consts]))
