"""Programs as those who look for a fault want them: traced, with the values that they are given,
and straight, which is without calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyjx import jaxlib_api
from pyjx.core.effects import is_replaced, join_effects, keeps_alive, unrepeatable
from pyjx.core.evaluation import all_eqns, holds_jaxprs, literal_value, map_jaxprs, program_of
from pyjx.core.frames import Frame, own_frame, user_frame
from pyjx.core.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.name_stack import NameStack, Transform
from pyjx.core.passes.dce import dce, without_effects
from pyjx.core.references import Ref
from pyjx.core.source_info import SourceInfo, no_source_info
from pyjx.core.value_texts import shortened
from pyjx.runtime.dispatch import pure
from pyjx.runtime.jit import jit, spec_of
from pyjx.runtime.signature import parameters_of


def check_keywords(name: str, fun: Callable[..., Any], kwargs: dict[str, Any], *own: str) -> None:
    """Raise TypeError for a keyword that neither `inspect`'s function nor the one that it is called
    with has, and for what is no function."""
    if not callable(fun):
        raise TypeError(f"inspect.{name}: fun must be a function, got {shortened(fun)}.")
    parameters = parameters_of(fun)
    known = [] if parameters is None else [*own, *parameters.every]
    for key in kwargs if parameters is not None and parameters.keywords is None else ():
        if key not in known:
            raise TypeError(f"inspect.{name} and the function got an unexpected keyword argument "
                            f"{key!r}. Together they have {known}.")


def traced(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
           ) -> tuple[ClosedJaxpr, list[Any], list[str]]:
    """The program of a function on values, its flat arguments, and what is to be said of it."""
    jitted = fun if isinstance(fun, jaxlib_api.PjitFunction) else jit(fun)
    call, leaves = spec_of(jitted).trace(tuple(args), kwargs)
    notes = []
    if any(call.donated):
        notes.append("donated arguments were kept, as the program is run on them several times.")
    return call.closed, leaves, notes


def repeatable(closed: ClosedJaxpr, leaves: Sequence[Any]
               ) -> tuple[ClosedJaxpr, list[Any], list[str]]:
    """The program, its arguments, and what was done to it, so that it can be run again and again:
    without references, and without what it does besides computing."""
    notes = []
    values = [x[...] if isinstance(x, Ref) else x for x in leaves]
    if is_replaced(closed.effects) or any([isinstance(x, Ref) for x in leaves]):
        found = pure(closed).jaxpr
        closed = found.replace(consts=[x[...] if isinstance(x, Ref) else x for x in found.consts])
        notes.append("references were left as they are: the program was run on copies of them.")
    if keeps_alive(closed.effects):
        closed = without_printing(closed)
        if not keeps_alive(closed.effects):
            notes.append("what the program does besides computing, such as printing, was left out.")
    return closed, values, notes


def repeatable_of(fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
                  ) -> tuple[ClosedJaxpr, list[Any], list[str]]:
    """As `repeatable`, of the program of a function on values."""
    closed, leaves, notes = traced(fun, args, kwargs)
    closed, leaves, more = repeatable(closed, leaves)
    return closed, leaves, notes + more


def without_printing(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without what it does for its effects alone, such as printing; the same one where
    it reads what an effect gives that must not be had again."""
    used = dce(without_effects(closed))
    for eqn in all_eqns(used):
        if eqn.primitive.effects is not None and not holds_jaxprs(eqn) and unrepeatable(
                eqn.primitive.effects(eqn.params)):
            return closed
    return used


def opened(eqn: JaxprEqn) -> bool:
    """Whether the program of a call is looked into: that of a kernel if it runs as such."""
    return eqn.primitive.name != "pallas_call" or bool(eqn.params["interpret"])


def straight(closed: ClosedJaxpr, opens: Callable[[JaxprEqn], bool] = opened) -> ClosedJaxpr:
    """The program with the equations of those that it calls in the place of the calls: of jitted
    functions, functions with rules of their own, and what is computed again. Each names the
    transformations around it, and its line, or that of the call. `opens` says which calls go."""
    consts: dict[int, tuple[Var, Any]] = {}
    eqns: list[JaxprEqn] = []
    env: dict[Any, Atom] = {}
    inputs = [(v, v) for v in closed.jaxpr.invars]
    _inlined(closed, inputs, no_source_info, eqns, consts, env, opens)
    outvars = [v if isinstance(v, Literal) else env[v] for v in closed.jaxpr.outvars]
    jaxpr = closed.jaxpr.replace(constvars=[v for v, _ in consts.values()], eqns=eqns,
                                 outvars=outvars)
    return ClosedJaxpr(jaxpr, [x for _, x in consts.values()])


def _inlined(closed: ClosedJaxpr, operands: Iterable[tuple[Var, Atom]], around: SourceInfo,
             eqns: list[JaxprEqn], consts: dict[int, tuple[Var, Any]], env: dict[Any, Atom],
             opens: Callable[[JaxprEqn], bool]) -> None:
    """Append the equations of a program, on operands; `env` gets what its variables are."""
    env.update(operands)
    for v, x in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        env[v] = consts.setdefault(id(x), (v, x))[0]
    for eqn in closed.eqns:
        invars = [v if isinstance(v, Literal) else env[v] for v in eqn.invars]
        own = eqn.source_info
        source = SourceInfo(own.traceback or around.traceback, around.name_stack + own.name_stack)
        inner = program_of(eqn.primitive, eqn.params) if opens(eqn) else None
        if inner is None:
            outvars = [type(v)(v.aval) for v in eqn.outvars]  # a program may be called twice
            env.update(zip(eqn.outvars, outvars, strict=True))
            eqns.append(eqn.replace(invars=invars, outvars=outvars, source_info=source))
            continue
        _inlined(inner, zip(inner.jaxpr.invars, invars, strict=True), source, eqns, consts, env,
                 opens)
        for v, out in zip(eqn.outvars, inner.jaxpr.outvars, strict=True):
            env[v] = out if isinstance(out, Literal) else env[out]


def changed(closed: ClosedJaxpr, change: Callable[[JaxprEqn], JaxprEqn]) -> ClosedJaxpr:
    """The program without calls, each equation changed, also in the programs that they hold."""
    def inside(program: ClosedJaxpr) -> ClosedJaxpr:
        program = straight(program)
        return program.replace(jaxpr=plain(program.jaxpr))

    def plain(jaxpr: Jaxpr) -> Jaxpr:
        return jaxpr.replace(eqns=[change(e.replace(params=map_jaxprs(e.params, inside, plain)))
                                   for e in jaxpr.eqns])

    return inside(closed)


def operands_of(eqn: JaxprEqn, env: dict[Any, Any]) -> list[Any]:
    """The operands of an equation, where variables have values."""
    return [literal_value(v) if isinstance(v, Literal) else env[v] for v in eqn.invars]


def stretch(eqns: Sequence[JaxprEqn], outvars: Sequence[Atom] | None = None) -> ClosedJaxpr:
    """Equations as a program on what they read, that gives `outvars`, or all that they make."""
    made = [v for e in eqns for v in e.outvars if not isinstance(v, DropVar)]
    read = dict.fromkeys([v for e in eqns for v in e.invars if not isinstance(v, Literal)])
    inside = set(made)
    return program_on([v for v in read if v not in inside], made if outvars is None else outvars,
                      eqns)


def program_on(invars: Sequence[Any], outvars: Sequence[Any], eqns: Sequence[JaxprEqn]
               ) -> ClosedJaxpr:
    """Equations as a program without constants."""
    return ClosedJaxpr(Jaxpr([], list(invars), list(outvars), list(eqns), join_effects(eqns)), [])


def line_of(eqn: JaxprEqn) -> Frame | None:
    """The user's line that made an equation."""
    return own_frame(eqn.source_info.traceback)


def package_line_of(eqn: JaxprEqn) -> Frame | None:
    """The line of an installed package that the user's line calls to make an equation, if any."""
    frame = user_frame(eqn.source_info.traceback)
    return None if frame == line_of(eqn) else frame


_PARTS = {"jvp": "the derivative", "transpose": "the transpose", "vmap": "a batch"}


def transformation(stacks: Sequence[NameStack]) -> str:
    """Inside which transformations an equation is, in words, from the name stacks of what holds it
    and its own: `the transpose of the derivative of a batch`; empty for none."""
    names = [_PARTS.get(str(e), str(e)) for stack in stacks for e in stack.stack
             if isinstance(e, Transform)]
    return " of ".join(names)
