"""Ordered effects made explicit: a token goes from each operation that has one to the next.

A program with ordered effects takes a token before its inputs and gives one before its results;
what holds programs says how the token is passed through them (`Holding.thread`).
"""

from __future__ import annotations

from pyjx.core.avals import abstract_token
from pyjx.core.derived import derived_structure
from pyjx.core.effects import is_ordered
from pyjx.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var


@derived_structure
def threaded(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program from (token, inputs) to (token, results)."""
    jaxpr = closed.jaxpr
    first: Var = Var(abstract_token)
    token: Atom = first
    eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if eqn.effects and is_ordered(eqn.effects):
            after = Var(abstract_token)
            rule = eqn.primitive.holder.thread
            if eqn.primitive.takes_token:
                eqns.append(eqn.replace(invars=[token, *eqn.invars], outvars=[after, *eqn.outvars]))
            elif rule is None:
                raise NotImplementedError(f"Ordered effects are not supported in "
                                          f"'{eqn.primitive}': {sorted(map(str, eqn.effects))}")
            else:
                eqns += rule(eqn, token, after)
            token = after
        else:
            eqns.append(eqn)
    return ClosedJaxpr(jaxpr.replace(invars=[first, *jaxpr.invars], eqns=eqns,
                                     outvars=[token, *jaxpr.outvars]), closed.consts)
