"""The checker: whether a jaxpr is well formed and well typed."""

from __future__ import annotations

from typing import Any

from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
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
    if isinstance(jaxpr, ClosedJaxpr):
        jaxpr = jaxpr.jaxpr
    bound: set[Var] = set()
    printer = Printer()
    for v in (*jaxpr.constvars, *jaxpr.invars):
        _bind(v, bound, printer, "as an input")
    for eqn in jaxpr.eqns:
        _check_eqn(jaxpr, eqn, bound, printer)
    for out in jaxpr.outvars:
        _check_bound(out, bound, printer, "as an output")


def _bind(v: Var, bound: set[Var], printer: Printer, where: str) -> None:
    if v in bound:
        raise JaxprTypeError(f"Variable {printer.binder(v)} is bound a second time {where}.")
    bound.add(v)


def _check_bound(v: Any, bound: set[Var], printer: Printer, where: str) -> None:
    if not isinstance(v, Literal) and v not in bound:
        raise JaxprTypeError(f"Variable {printer.binder(v)} is used {where} but not bound before.")


def _check_eqn(jaxpr: Jaxpr, eqn: JaxprEqn, bound: set[Var], printer: Printer) -> None:
    where = f"in the equation `{printer.eqn(eqn, 0)}`"
    for atom in eqn.invars:
        _check_bound(atom, bound, printer, where)
    avals = tuple([v.aval for v in eqn.invars])
    try:
        expected = eqn.primitive.out_avals(avals, eqn.params)
    except (TypeError, ValueError) as error:
        raise JaxprTypeError(f"{eqn.primitive} does not take these {len(avals)} operands, {where}: "
                             f"{error}") from None
    outs = expected if eqn.primitive.multiple_results else [expected]
    if len(outs) != len(eqn.outvars):
        raise JaxprTypeError(
            f"{eqn.primitive} gives {len(outs)} results, {len(eqn.outvars)} are bound {where}.")
    for v, aval in zip(eqn.outvars, outs, strict=True):
        if not _same_type(v.aval, aval):
            raise JaxprTypeError(f"Variable {printer.binder(v)} is of type {v.aval}, expected "
                                 f"{aval}, {where}.")
        if not isinstance(v, DropVar):
            _bind(v, bound, printer, where)
    if not eqn.effects <= jaxpr.effects:
        raise JaxprTypeError(
            f"Effects {set(eqn.effects - jaxpr.effects)} are not among the jaxpr's, {where}.")
    for sub in subjaxprs(eqn):
        check_jaxpr(sub)
    if eqn.primitive.holder.check is not None:
        try:
            eqn.primitive.holder.check(eqn)
        except TypeError as error:
            raise JaxprTypeError(f"{error} {where}.") from None


def _same_type(a: Any, b: Any) -> bool:
    """Equal but for the weak type, which is a hint."""
    return a is b or (isinstance(a, ShapedArray) and a.same_type(b))
