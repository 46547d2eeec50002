"""Running jaxprs on values, under whichever interpreters are active; and jaxprs among the
parameters of equations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import is_
from typing import Any

from pyjx.core import source_info
from pyjx.core.derived import derived_structure
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from pyjx.core.primitive import Primitive
from pyjx.core.scalars import as_recorded
from pyjx.core.trace import eager_trace, state
from pyjx.core.value_texts import counted

# -- programs run ----------------------------------------------------------------------------------


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any,
               propagate_source_info: bool = True) -> list[Any]:
    """Run a jaxpr, under whichever interpreters are active.

    Args:
      consts: values of its constants.
      args: values of its inputs.
      propagate_source_info: whether operations recorded now get the places in the source that those
        of the jaxpr have.

    Raises:
      TypeError: wrong number of arguments.
    """
    _check_number(jaxpr, args)
    return walk(jaxpr, consts, args, None, propagate_source_info)


def _check_number(jaxpr: Jaxpr, args: Sequence[Any]) -> None:
    if len(args) != len(jaxpr.invars):
        raise TypeError(f"eval_jaxpr: expected {counted(len(jaxpr.invars), 'argument')}, got "
                        f"{len(args)}. Before them come the values of its constants: "
                        "eval_jaxpr(closed.jaxpr, closed.consts, *args).")


def bind_all(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The results of an operation, be it one or several."""
    out = primitive.bind(*operands, **params)
    return list(out) if primitive.multiple_results else [out]


def bind_eqn(eqn: JaxprEqn, operands: Sequence[Any]) -> Sequence[Any]:
    """The results of an equation, under whichever interpreters are active."""
    out = eqn.primitive.bind(*operands, **eqn.params)
    return out if eqn.primitive.multiple_results else (out,)


def walk(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any],
         apply: Callable[[JaxprEqn, list[Any]], Sequence[Any]] | None,
         propagate_source_info: bool = True) -> list[Any]:
    """The results of a jaxpr, where `apply(eqn, operands)` gives those of an equation.

    Without `apply` equations are bound as they are. Values are let go after their last use where
    operations run at once.
    """
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    ends = jaxpr.last_uses() if state.dynamic is eager_trace and len(jaxpr.eqns) > 1 else None
    with source_info.replaying() as replay:
        for i, eqn in enumerate(jaxpr.eqns):
            operands = [env[v] if type(v) is not Literal else literal_value(v) for v in eqn.invars]
            if propagate_source_info:
                replay.source = eqn.source_info
            if apply is not None:
                env.update(zip(eqn.outvars, apply(eqn, operands), strict=True))
            else:
                out = eqn.primitive.bind(*operands, **eqn.params)
                if eqn.primitive.multiple_results:
                    env.update(zip(eqn.outvars, out, strict=True))
                else:
                    env[eqn.outvars[0]] = out
            if ends is not None:
                for v in ends[i]:
                    del env[v]
    return [env[v] if type(v) is not Literal else literal_value(v) for v in jaxpr.outvars]


def literal_value(literal: Literal) -> Any:
    """The literal as an operand, of the type that it had when it was recorded."""
    return as_recorded(literal.val, literal.aval)


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Callable[..., list[Any]]:
    """A function that runs a program on its arguments, the first of which may be given here."""
    jaxpr, consts = closed_jaxpr.jaxpr, closed_jaxpr.consts

    def fun(*rest: Any) -> list[Any]:
        given = (*args, *rest)
        _check_number(jaxpr, given)
        return walk(jaxpr, consts, given, None)

    return fun


# -- programs inside -------------------------------------------------------------------------------

_JAXPRS = (ClosedJaxpr, Jaxpr)


def holds_jaxprs(eqn: JaxprEqn) -> bool:
    """Whether a parameter is a jaxpr or a sequence of some.

    It is asked of every equation, so it looks at the first element of a sequence alone.
    """
    for value in eqn.params.values():
        kind = type(value)
        if (kind is tuple or kind is list) and value:
            kind = type(value[0])
        if kind in _JAXPRS:
            return True
    return False


@derived_structure
def holders(closed: ClosedJaxpr) -> tuple[JaxprEqn, ...]:
    """The equations of a program that hold jaxprs."""
    return holders_in(closed.jaxpr)


def holders_in(jaxpr: Jaxpr) -> tuple[JaxprEqn, ...]:
    return tuple([e for e in jaxpr.eqns if e.params and holds_jaxprs(e)])


def read_in(jaxpr: Jaxpr) -> set[Atom]:
    """The values that a program reads or gives."""
    return {v for eqn in jaxpr.eqns for v in eqn.invars}.union(jaxpr.outvars)


def all_eqns(jaxpr: Jaxpr | ClosedJaxpr) -> Iterator[JaxprEqn]:
    """The equations of a program, each before those of the programs that it holds."""
    for eqn in jaxpr.eqns:
        yield eqn
        if eqn.params and holds_jaxprs(eqn):
            for inner in jaxprs_in_params(eqn.params):
                yield from all_eqns(inner)


def variables(atoms: Iterable[Atom]) -> list[Var]:
    """The atoms that are no literals."""
    return [x for x in atoms if type(x) is not Literal]  # type: ignore[misc]


def replaced(atoms: Iterable[Atom], values: Mapping[Any, Any]) -> list[Any]:
    """The atoms, and for those that have one the value in their place."""
    return [x if type(x) is Literal else values.get(x, x) for x in atoms]


def program_of(primitive: Primitive, params: dict[str, Any]) -> ClosedJaxpr | None:
    """The program whose results on its operands are those of an operation, if it has one."""
    rule = primitive.holder.runs or primitive.holder.stands_for
    if rule is None:
        return None
    with source_info.nowhere():
        return rule(params)


def jaxprs_of(eqn: JaxprEqn) -> Sequence[ClosedJaxpr]:
    """The programs that an equation runs, or runs one of."""
    program = program_of(eqn.primitive, eqn.params)
    if program is not None:
        return [program]
    held = eqn.primitive.holder.held
    return () if held is None else held(eqn.params).programs  # type: ignore[no-any-return]


def within(eqn: JaxprEqn) -> AbstractContextManager[Any]:
    """The context in which programs that an equation holds are traced anew."""
    rule = eqn.primitive.holder.within
    return nullcontext() if rule is None else rule(eqn.params)


def map_jaxprs(params: dict[str, Any], closed: Callable[[ClosedJaxpr], ClosedJaxpr],
               jaxpr: Callable[[Jaxpr], Jaxpr]) -> dict[str, Any]:
    """The parameters with each jaxpr replaced by what the functions give for it; the same ones if
    these give back what they get."""
    mapped = dict(params)
    for name, value in params.items():  # in one frame, as programs are nested deeply
        if isinstance(value, ClosedJaxpr):
            mapped[name] = closed(value)
        elif isinstance(value, Jaxpr):
            mapped[name] = jaxpr(value)
        elif type(value) in (tuple, list) and any([isinstance(v, _JAXPRS) for v in value]):
            parts = []
            for v in value:
                parts.append(closed(v) if isinstance(v, ClosedJaxpr)
                             else jaxpr(v) if isinstance(v, Jaxpr) else v)
            if not all(map(is_, parts, value)):
                mapped[name] = type(value)(parts)
    return params if all(map(is_, mapped.values(), params.values())) else mapped
