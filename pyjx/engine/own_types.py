"""Values of types that libraries bring, in programs: these are compiled as programs on the parts
that the values are made of.

A type says itself which these are, how a value is taken apart and made of them
(`AbstractValue.lo_ty`, `lower_val`, `raise_val`), and what its tangents and batches are; all else
treats such a value as one. So transformations come first. What is compiled is `on_parts` of a
program: its equations run on values that are made of the parts, each operation as what it
is made of, and what holds programs takes parts for each of its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pyjx.core.arithmetic import APART, TOGETHER
from pyjx.core.avals import get_aval
from pyjx.core.derived import derived
from pyjx.core.effects import Effects, has_own_types, has_types, no_effects
from pyjx.core.evaluation import bind_eqn, walk
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.primitive import Primitive
from pyjx.core.trace import trace_to_jaxpr


def part_types(aval: Any) -> list[Any]:
    """The types of what a value is made of, down to what programs are compiled with."""
    return [t for part in aval.lo_ty() for t in part_types(part)] if aval.is_high else [aval]


def parts_of(aval: Any, value: Any) -> list[Any]:
    """What a value is made of."""
    if not aval.is_high:
        return [value]
    return [x for a, part in zip(aval.lo_ty(), aval.lower_val(value), strict=True)
            for x in parts_of(a, part)]


def made_of(aval: Any, parts: Iterator[Any]) -> Any:
    """The value that is made of the next ones of these parts."""
    if not aval.is_high:
        return next(parts)
    return aval.raise_val(*[made_of(part, parts) for part in aval.lo_ty()])


def all_parts(avals: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    return [x for a, value in zip(avals, values, strict=True) for x in parts_of(a, value)]


def all_made(avals: Iterable[Any], parts: Iterable[Any]) -> list[Any]:
    given = iter(parts)
    return [made_of(a, given) for a in avals]


def flags_of_parts(avals: Iterable[Any], flags: Iterable[bool]) -> list[bool]:
    """For each part the flag of the value that it is of."""
    return [flag for a, flag in zip(avals, flags, strict=True) for _ in part_types(a)]


@derived
def on_parts(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program on the parts of its inputs, which gives those of its results; the same one where
    it has none of such types."""
    if not has_types(closed.effects):
        return closed

    def fun(*parts: Any) -> list[Any]:
        values = all_made(closed.in_avals, parts)
        return all_parts(closed.out_avals, walk(closed.jaxpr, closed.consts, values, _run))

    return trace_to_jaxpr(fun, [t for a in closed.in_avals for t in part_types(a)],
                          closed.debug_info)


def _run(eqn: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
    """The results of an equation, on values that are made of their parts."""
    avals = [v.aval for v in eqn.invars]
    if not has_types(eqn.effects) and not any([a.is_high for a in avals]):
        return bind_eqn(eqn, operands)
    primitive, params = eqn.primitive, eqn.params
    holder = primitive.holder
    if holder.stands_for is not None:
        program = holder.stands_for(params)
        return walk(program.jaxpr, program.consts, operands, _run)
    results = [v.aval for v in eqn.outvars]
    if holder.held is not None:
        return all_made(results, _bind_on_parts(holder, all_parts(avals, operands), params))
    if primitive.linear is APART:  # it passes its operands on
        return all_made(results, primitive.bind(*all_parts(avals, operands), **params))
    if primitive.decomposition is None or not has_types(eqn.effects):
        raise NotImplementedError(
            f"'{primitive}' takes no values of the type {next(a for a in avals if a.is_high)}. "
            "Take what it is to compute with out of the value by an operation of its library.")
    out = primitive.decomposition(*operands, **params)
    outs = list(out) if primitive.multiple_results else [out]
    for aval, x in zip(results, outs, strict=True):
        if not aval.same_type(get_aval(x)):
            raise TypeError(f"{primitive.label(params) if primitive.label else primitive}: what it "
                            f"is made of gives a result of type {get_aval(x)}, where it says that "
                            f"it is of type {aval}.")
    return outs


def _bind_on_parts(holder: Any, parts: list[Any], params: dict[str, Any]) -> list[Any]:
    """The parts of the results of what holds programs, for those of its operands."""
    held = holder.held(params)
    program = held.programs[0]
    ins, outs = [holder.roles_of_parts(roles, [len(part_types(a)) for a in avals])
                 for roles, avals in ((held.ins, program.in_avals), (held.outs, program.out_avals))]
    return holder.bind(  # type: ignore[no-any-return]
        [holder.derived(params, on_parts, p) for p in held.programs], parts,
        holder.asked_on_parts(params, on_parts), ins, outs)


def each_part(fun: Callable[[Any], Any], x: Any, effects: Effects = no_effects) -> Any:
    """What `fun` makes of an array or, of a value of a library's type, of each of its parts. It is
    linear and keeps types; `effects` are those that it has."""
    aval: Any = get_aval(x)
    return each_part_p.bind(x, fun=fun, reads=effects) if aval.is_high else fun(x)


def _each_part(x: Any, *, fun: Callable[[Any], Any], reads: Effects) -> Any:
    aval: Any = get_aval(x)
    return made_of(aval, map(fun, parts_of(aval, x)))


each_part_p = Primitive(
    "each_part", cached=False, linear=TOGETHER, decomposition=_each_part, impl=_each_part,
    shape_rule=lambda aval, **_: aval, effects=lambda params: has_own_types | params["reads"])
