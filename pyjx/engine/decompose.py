"""Operations that a platform has no lowering rule for, as the programs of others that they are.

The lowering writes text and traces nothing, so this comes before it: dead code elimination and
outlining see what the operations are made of. A short program takes the operation's place; a
longer one becomes a function, one for all uses with the same types and parameters. A function of
the user's that asks to be inlined takes its call's place, too.

On one CPU, long formulas on arrays of many short rows become formulas on one row: XLA writes a loop
for each axis there, and one over a few elements gets no vector instructions, so that rows of five
take up to twenty times as long as one row of as many elements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from lowering.rules import rules_for, without_gpu_kernels
from pyjx.core.arithmetic import transcendental
from pyjx.core.avals import ShapedArray
from pyjx.core.derived import derived
from pyjx.core.effects import join_effects, no_effects
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.name_stack import NameStack
from pyjx.core.nested import holders, holders_in, map_jaxprs, within
from pyjx.core.options import Inline
from pyjx.core.places import HERE
from pyjx.core.primitive import find_primitive
from pyjx.core.source_info import SourceInfo
from pyjx.engine.barriers import optimization_barrier_p
from pyjx.engine.calls import call_eqn
from pyjx.engine.decompositions import decomposition_of
from pyjx.jaxlib_api import WITHOUT_GPU_KERNEL

without_gpu_kernels(WITHOUT_GPU_KERNEL)

# A program of up to so many equations stands where it is used.
IN_PLACE_EQNS = 6


@derived
def decompose(closed: ClosedJaxpr, platform: str, rows: bool = False) -> ClosedJaxpr:
    """The program, and those nested in it, in operations that have a lowering rule for the
    platform; with `rows` with long formulas on short rows in one row. The same one if it is so
    already."""
    jaxpr = _rewritten(closed.jaxpr, platform, rows, {id(e) for e in holders(closed)})
    return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)


def _rewritten(jaxpr: Jaxpr, platform: str, rows: bool, holding: Collection[int]) -> Jaxpr:
    """`holding` are the ids of the equations that hold jaxprs."""
    rules = rules_for(platform)
    if not holding and all([rules[p.name] is not None
                            for p in {e.primitive for e in jaxpr.eqns}]):
        known = in_one_row(jaxpr.eqns, jaxpr.outvars) if rows else jaxpr.eqns
        return jaxpr if known is jaxpr.eqns else jaxpr.replace(eqns=known)
    eqns: list[JaxprEqn] = []
    values: dict[Var, Any] = {}  # results that are other values of the program
    for eqn in jaxpr.eqns:
        holds = id(eqn) in holding
        if values:
            eqn = eqn.replace(invars=_read(eqn.invars, values))
        if _asks_to_be_inlined(eqn):
            inlined = decompose(eqn.params["jaxpr"], platform, rows).jaxpr
            _put_in_place(eqn, inlined, eqns, values, _names_inside(eqn))
            continue
        program = _program_of(eqn, platform, rows) if rules[eqn.primitive.name] is None else None
        users = eqn.primitive.holder.stands_for is not None
        if program is None:
            eqns.append(_with_rewritten_jaxprs(eqn, platform, rows) if holds else eqn)
        elif program.consts or (len(program.eqns) > IN_PLACE_EQNS and not users):
            name = program.jaxpr.debug_info.func_name if users else eqn.primitive.name
            eqns.append(call_eqn(eqn, program, name, eqn.invars, eqn.outvars))
        else:
            _put_in_place(eqn, program.jaxpr, eqns, values,
                          eqn.source_info.name_stack if users else None)
    outvars = _read(jaxpr.outvars, values)
    return jaxpr.replace(eqns=in_one_row(eqns, outvars) if rows else eqns, outvars=outvars,
                         effects=join_effects(eqns))


def _asks_to_be_inlined(eqn: JaxprEqn) -> bool:
    return (eqn.primitive.is_call and eqn.params.get("inline") is Inline.JAX_LATE
            and not eqn.params["jaxpr"].consts)


def _names_inside(eqn: JaxprEqn) -> NameStack:
    """The name stack of what a call calls."""
    names = eqn.source_info.name_stack
    label = eqn.primitive.label
    return names if label is None else names.extend(label(eqn.params))


def _read(atoms: Sequence[Atom], values: dict[Any, Any]) -> list[Atom]:
    return [values.get(v, v) for v in atoms]


def _with_rewritten_jaxprs(eqn: JaxprEqn, platform: str, rows: bool) -> JaxprEqn:
    def rewrite(jaxpr: Jaxpr) -> Jaxpr:
        return _rewritten(jaxpr, platform, rows, {id(e) for e in holders_in(jaxpr)})

    with within(eqn):
        params = map_jaxprs(eqn.params, lambda closed: decompose(closed, platform, rows), rewrite)
    return eqn if params is eqn.params else eqn.replace(params=params)


def _program_of(eqn: JaxprEqn, platform: str, rows: bool) -> ClosedJaxpr | None:
    """What an operation without a rule is made of, decomposed; None if nobody has said."""
    stands_for = eqn.primitive.holder.stands_for
    program = decomposition_of(eqn) if stands_for is None else stands_for(eqn.params)
    return None if program is None else decompose(program, platform, rows)


def _put_in_place(eqn: JaxprEqn, program: Jaxpr, eqns: list[JaxprEqn], values: dict[Var, Any],
                  names: NameStack | None) -> None:
    """Append the equations of `program` for those of `eqn`.

    Those of a user's function keep their own place in the source, and their names in the stack
    `names`; those of a decomposition, where that is None, get the operation's.
    """
    results = dict(zip(program.outvars, eqn.outvars, strict=True))
    env: dict[Any, Any] = dict(zip(program.invars, eqn.invars, strict=True))
    here = SourceInfo(eqn.source_info.traceback,
                      eqn.source_info.name_stack.extend(eqn.primitive.name))
    for e in program.eqns:
        outvars = [results.get(v) or Var(v.aval) for v in e.outvars]
        info = e.source_info
        if names is None:
            info = here
        elif names:
            info = SourceInfo(info.traceback, names + info.name_stack)
        eqns.append(JaxprEqn(
            e.primitive, [v if type(v) is Literal else env[v] for v in e.invars], outvars,
            e.params, e.effects, info,
        ))
        env.update(zip(e.outvars, outvars, strict=True))
    for v, out in zip(program.outvars, eqn.outvars, strict=True):
        value = v if type(v) is Literal else env[v]
        if value is not out:  # an operand, a literal, or a result that is returned twice
            values[out] = value


# -- formulas on one row ---------------------------------------------------------------------------

SHORT, MANY = 16, 4096  # elements of a row, and of all
LONG = 24  # operations for each result that is read elsewhere
# What is a long formula alone, and as how many operations other functions count.
_FORMULAS, _TRANSCENDENTAL = ("digamma", "bessel_i1e"), 8


def in_one_row(eqns: Sequence[JaxprEqn], outvars: Sequence[Any]) -> Sequence[JaxprEqn]:
    """The equations of a program for one CPU, with each long run of arithmetic on arrays of one
    shape of short rows in one row."""
    short = {a for a in {v.aval for e in eqns for v in e.outvars} if _is_short(a)}
    if not short:
        return eqns
    shapes = [_shape(e) if len(e.outvars) == 1 and e.outvars[0].aval in short else None
              for e in eqns]
    last = {v: i for i, e in enumerate(eqns) for v in e.invars if type(v) is Var}
    last.update((v, len(eqns)) for v in outvars if type(v) is Var)
    done: list[JaxprEqn] = []
    run: list[JaxprEqn] = []
    made: dict[Any, None] = {}
    of: Any = None
    for i, (eqn, shape) in enumerate(zip(eqns, shapes, strict=True)):
        if run and (shape != of if shape else any([v in made for v in eqn.invars
                                                   if type(v) is Var])):
            done += _flat(run, [v for v in made if last.get(v, -1) >= i])
            run, made = [], {}
        if shape:
            of = shape
            run.append(eqn)
            made[eqn.outvars[0]] = None
        else:  # it reads nothing of the run, and may stand before it
            done.append(eqn)
    return done + _flat(run, [v for v in made if last.get(v, -1) >= len(eqns)])


def _is_short(aval: Any) -> bool:
    return type(aval) is ShapedArray and aval.ndim > 1 and aval.place is HERE and all(
        [type(n) is int for n in aval.shape]) and aval.shape[-1] < SHORT and aval.size >= MANY


def _shape(eqn: JaxprEqn) -> Any:
    """The shape of all operands but scalars, and of the result, of arithmetic."""
    shape = eqn.outvars[0].aval.shape
    rule = rules_for("cpu")[eqn.primitive.name]
    fits = {(), shape} if rule is not None and rule.elementwise else \
        {()} if eqn.primitive.name == "broadcast_in_dim" else set()
    return shape if fits.issuperset([v.aval.shape for v in eqn.invars]) else None


def _flat(run: list[JaxprEqn], outs: Sequence[Var]) -> list[JaxprEqn]:
    """A run of equations in one row, if it is long for so many results that are read elsewhere.

    Barriers keep XLA from moving the reshapes through the run, where they would cancel."""
    cost = sum([LONG if p.name in _FORMULAS else _TRANSCENDENTAL
                if p.arithmetic is transcendental else 1 for p in [e.primitive for e in run]])
    if not outs or cost < LONG * len(outs):
        return run
    reshape_p = find_primitive("reshape", "pyjx.lax.shapes")
    row = (run[0].outvars[0].aval.size,)
    made = {e.outvars[0] for e in run}
    given = list(dict.fromkeys([v for e in run for v in e.invars
                                if type(v) is Var and v.aval.shape and v not in made]))
    info = run[0].source_info

    def reshaped(xs: Iterable[Var], ys: Iterable[Var]) -> list[JaxprEqn]:
        return [JaxprEqn(reshape_p, [x], [y], {"dimensions": None, "new_sizes": y.aval.shape,
                                               "sharding": None}, no_effects, info)
                for x, y in zip(xs, ys, strict=True)]

    def in_row(vs: Iterable[Var]) -> list[Var]:
        return [Var(v.aval.update(shape=row)) for v in vs]

    def barred(xs: list[Var], ys: list[Var]) -> list[JaxprEqn]:
        return [JaxprEqn(optimization_barrier_p, xs, ys, {}, no_effects, info)] if xs else []

    before, behind = in_row(given), in_row(outs)
    flat: dict[Any, Any] = dict(zip(given, in_row(given), strict=True))
    flat.update(zip(made, in_row(made), strict=True))
    return [*reshaped(given, before), *barred(before, [flat[v] for v in given]),
            *[e.replace(invars=[flat.get(v, v) if type(v) is Var else v for v in e.invars],
                        outvars=[flat[e.outvars[0]]],
                        params={**e.params, "shape": row} if "shape" in e.params else e.params)
              for e in run], *barred([flat[v] for v in outs], behind), *reshaped(behind, outs)]
