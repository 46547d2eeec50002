"""Outlining: repeated runs of equations become one function that is called.

XLA's compile time grows faster than linearly with the size of a computation, and an unrolled
Python loop over layers makes a large one out of equal parts. This pass finds the parts: the most
saving repeat first, its blocks cut where the fewest values cross the cut. Blocks with the same
code, that is, the same equations and the same flow of values between them, become calls of one
function. What is left is searched again, and so is the function's body.

All of it is linear in the number of equations for a bounded number of distances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import is_not
from typing import Any

import numpy as np

from pyjx.core.derived import derived_structure
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.nested import holders, map_jaxprs
from pyjx.core.passes.by_result import by_result
from pyjx.core.primitive import Primitive

# Blocks of fewer equations stay where they are: calling them costs more than compiling them.
MIN_BLOCK = 20

# Programs of fewer equations compile about as quickly whole, and run without calls, between which
# XLA fuses nothing.
MIN_PROGRAM = 768

# How many functions may be inside one another.
MAX_DEPTH = 4

outlined_call_p = Primitive(
    "outlined_call", shape_rule=lambda *avals, jaxpr, name: jaxpr.out_avals,
    multiple_results=True, cached=False, is_call=True, label=lambda params: params["name"],
    effects=lambda params: params["jaxpr"].effects, runs=lambda params: params["jaxpr"],
)


@derived_structure
def outline(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with each block that repeats as a function, called at each of its places."""
    calls: Counter[ClosedJaxpr] = Counter()
    _count_calls(closed, calls, set())
    return _outlined(closed, calls, {})


def is_long(closed: ClosedJaxpr) -> bool:
    """Whether outlining is worth its calls where nobody has asked for it."""
    if len(closed.jaxpr.eqns) >= MIN_PROGRAM:
        return True
    inside: set[ClosedJaxpr] = set()
    _count_calls(closed, Counter(), inside)
    return sum([len(program.jaxpr.eqns) for program in inside]) >= MIN_PROGRAM


def _count_calls(closed: ClosedJaxpr, calls: Counter[ClosedJaxpr], seen: set[ClosedJaxpr]) -> None:
    """Count the calls of each jaxpr in a program, and in the programs inside it."""
    seen.add(closed)
    for eqn in holders(closed):
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(inner, ClosedJaxpr):
                    calls[inner] += eqn.primitive.is_call
                    if inner not in seen:
                        _count_calls(inner, calls, seen)


def _outlined(closed: ClosedJaxpr, calls: Counter[ClosedJaxpr],
              done: dict[ClosedJaxpr, ClosedJaxpr]) -> ClosedJaxpr:
    """The program outlined, and those inside it; calls of a jaxpr that is called several times stay
    calls when compiled, unless their parameter `inline` says anything."""
    found = done.get(closed)
    if found is None:
        jaxpr = closed.jaxpr
        inside = {id(e): e for e in holders(closed)}
        if inside:
            eqns = [_shared(e, calls, done) if id(e) in inside else e for e in jaxpr.eqns]
            if any(map(is_not, eqns, jaxpr.eqns)):
                jaxpr = jaxpr.replace(eqns=eqns)
        jaxpr = outline_jaxpr(jaxpr, 0)
        found = closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)
        done[closed] = found
    return found


def _shared(eqn: JaxprEqn, calls: Counter[ClosedJaxpr], done: dict[ClosedJaxpr, ClosedJaxpr]
            ) -> JaxprEqn:
    params = map_jaxprs(
        eqn.params, lambda inner: _outlined(inner, calls, done), lambda jaxpr: jaxpr)
    if eqn.primitive.is_call and not eqn.params.get("inline"):
        called: ClosedJaxpr = eqn.params["jaxpr"]
        if calls[called] > 1 and len(called.eqns) >= MIN_BLOCK and not called.consts:
            return eqn.replace(primitive=outlined_call_p,
                               params={"jaxpr": params["jaxpr"], "name": params["name"]})
    return eqn if params is eqn.params else eqn.replace(params=params)


def outline_jaxpr(jaxpr: Jaxpr, depth: int) -> Jaxpr:
    """The jaxpr with its own repeats as functions; `depth` says inside how many others it is."""
    if len(jaxpr.eqns) < 2 * MIN_BLOCK or depth > MAX_DEPTH:
        return jaxpr
    ordered = by_result(jaxpr, 2 * MIN_BLOCK) if depth == 0 else jaxpr
    numbers = _number(ordered.eqns)
    if not _has_repeats(numbers):
        return jaxpr
    # most programs repeat nothing
    from pyjx.core.passes.functions import with_functions

    outlined = with_functions(ordered, numbers, depth)
    return jaxpr if outlined is ordered else outlined


def _number(eqns: Sequence[JaxprEqn]) -> list[int]:
    """An integer for each equation, equal where primitive, parameters, operand types and literals
    are: where all is equal but which values are operands."""
    known: dict[Any, int] = {}
    numbers: list[int] = []
    for eqn in eqns:
        types = [v.aval if type(v) is Var else _literal_key(v) for v in eqn.invars]
        primitive, params = eqn.primitive, eqn.params
        if not primitive.cached:  # its result types follow from more than operands and parameters
            types += [v.aval for v in eqn.outvars]
        key = (primitive, *types, *params.items()) if params else (primitive, *types)
        try:
            numbers.append(known.setdefault(key, len(known)))
        except TypeError:  # an unhashable parameter: like no other equation
            numbers.append(known.setdefault(id(eqn), len(known)))
    return numbers


def _has_repeats(numbers: Sequence[int]) -> bool:
    """Whether a run of so many numbers as make a block stands at two places."""
    width = 8
    runs = np.asarray(numbers, np.int64).tobytes()
    starts = range(0, len(runs) - MIN_BLOCK * width + 1, width)
    return len({runs[i:i + MIN_BLOCK * width] for i in starts}) < len(starts)


def _literal_key(literal: Any) -> Any:
    value = literal.val
    # Equal floats have equal bits, but for zeros; complex numbers have two parts to be zero.
    return (literal.aval, value) if value and type(value) is float else literal.key
