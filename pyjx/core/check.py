"""The checker: whether a jaxpr is well formed and well typed."""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from operator import is_not
from typing import Any

from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from pyjx.core.printer import Printer
from pyjx.errors import JaxprTypeError
from pyjx.guards import guard


@guard
def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Raise JaxprTypeError unless the jaxpr is legal.

    Each variable is bound once and before its use; each equation's result types are those that
    its primitive's shape rule gives for its operands; its effects are among the jaxpr's; calls of
    nested jaxprs agree with them; nested jaxprs are legal.
    """
    _Check(jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr).run()


class _Check:
    """Goes through a jaxpr. Nothing is printed but for an error."""

    __slots__ = ("at", "bound", "jaxpr")

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr = jaxpr
        self.bound: set[Var] = set()
        self.at: JaxprEqn | str = "as an input"

    def run(self) -> None:
        for v in (*self.jaxpr.constvars, *self.jaxpr.invars):
            self._bind(v)
        for eqn in self.jaxpr.eqns:
            self.at = eqn
            self._equation(eqn)
        self.at = "as an output"
        for out in self.jaxpr.outvars:
            self._read(out)

    def _error(self, before: str, after: str = ".", of: Var | None = None) -> JaxprTypeError:
        """The error with the place between what stands before and after it; the variable that it is
        of has the name of the printed jaxpr."""
        printer, where = Printer(), self.at
        for v in (*self.jaxpr.constvars, *self.jaxpr.invars):
            printer.binder(v)
        if isinstance(where, JaxprEqn):
            for eqn in takewhile(partial(is_not, where), self.jaxpr.eqns):
                printer.eqn(eqn, 0)
            where = f"in the equation `{printer.eqn(where, 0)}`"
        subject = "" if of is None else f"Variable {printer.binder(of)} "
        return JaxprTypeError(f"{subject}{before} {where}{after}")

    def _bind(self, v: Var) -> None:
        if v in self.bound:
            raise self._error("is bound a second time", of=v)
        self.bound.add(v)

    def _read(self, v: Atom) -> None:
        if not isinstance(v, Literal) and v not in self.bound:
            raise self._error("is used", " but not bound before.", v)

    def _equation(self, eqn: JaxprEqn) -> None:
        for atom in eqn.invars:
            self._read(atom)
        avals, primitive = tuple([v.aval for v in eqn.invars]), eqn.primitive
        try:
            expected = primitive.out_avals(avals, eqn.params)
        except (TypeError, ValueError) as error:
            raise self._error(f"{primitive} does not take these {len(avals)} operands,",
                              f": {error}") from None
        outs = expected if primitive.multiple_results else [expected]
        if len(outs) != len(eqn.outvars):
            raise self._error(
                f"{primitive} gives {len(outs)} results, {len(eqn.outvars)} are bound")
        for v, aval in zip(eqn.outvars, outs, strict=True):
            if not _same_type(v.aval, aval):
                raise self._error(f"is of type {v.aval}, expected {aval},", of=v)
            if not isinstance(v, DropVar):
                self._bind(v)
        if not eqn.effects <= self.jaxpr.effects:
            raise self._error(
                f"Effects {set(eqn.effects - self.jaxpr.effects)} are not among the jaxpr's,")
        for sub in subjaxprs(eqn):
            check_jaxpr(sub)
        if primitive.holder.check is not None:
            try:
                primitive.holder.check(eqn)
            except TypeError as error:
                raise self._error(str(error)) from None


def _same_type(a: Any, b: Any) -> bool:
    """Equal but for the weak type, which is a hint."""
    return a is b or (isinstance(a, ShapedArray) and a.same_type(b))
