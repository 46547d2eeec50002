"""Operations that a platform has no lowering rule for, as the programs of others that they are;
and those on few numbers that a CPU computes sooner so.

The lowering writes text and traces nothing, so this comes before it: dead code elimination and
outlining see what the operations are made of. A short program takes the operation's place; a
longer one becomes a function, one for all uses with the same types and parameters. A function of
the user's that asks to be inlined takes its call's place, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from lowering.rules import rules_for, without_gpu_kernels
from pyjx import configuration
from pyjx.core.bounded import BoundedDict
from pyjx.core.contents import are_plain, params_key
from pyjx.core.derived import derived
from pyjx.core.effects import is_replaced, join_effects
from pyjx.core.evaluation import all_eqns, holders, holders_in, map_jaxprs, replaced, within
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from pyjx.core.name_stack import NameStack
from pyjx.core.options import Inline
from pyjx.core.primitive import Unrolled
from pyjx.core.source_info import SourceInfo, note_origin, nowhere
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.calls import call_eqn
from pyjx.engine.discharge import pure
from pyjx.engine.own_types import on_parts
from pyjx.jaxlib_api import SMALL_CALLS, WITHOUT_GPU_KERNEL

# -- programs of what operations are made of -------------------------------------------------------

_programs = BoundedDict(4096, "decompositions")


def traced(fun: Callable[..., Any], avals: Sequence[Any], params: Mapping[str, Any],
           multiple_results: bool = False) -> ClosedJaxpr:
    """The program of `fun(*operands, **params)` for operands of these types.

    It is kept by the function itself, as an operation may get another one, unless a parameter is
    something of the user's, which is to go with its operation, or has no key.
    """
    def flat(*args: Any) -> Any:
        out = fun(*args, **params)
        return out if multiple_results else [out]

    def program_of() -> ClosedJaxpr:
        with nowhere():
            closed = trace_to_jaxpr(flat, avals)
        # What is decomposed is compiled, which takes arrays alone.
        return pure(on_parts(closed)).jaxpr if is_replaced(closed.effects) else closed

    given = params_key(params) if are_plain(params) else None
    if given is None:
        return program_of()
    key = fun, multiple_results, tuple(avals), given, configuration.trace_context()
    program = _programs.get(key)
    if program is None:
        program = _programs[key] = program_of()
    return program  # type: ignore[no-any-return]


def decomposition_of(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The program of the operations that one is made of; None if nobody has said."""
    fun = eqn.primitive.decomposition
    return None if fun is None else program_of(eqn, fun)


def program_of(eqn: JaxprEqn, fun: Callable[..., Any]) -> ClosedJaxpr:
    """The program of a function that computes what an equation does."""
    avals = [v.aval for v in eqn.invars]
    if eqn.primitive.batch_axis is None:  # it reads no axes of a mesh: its types have been checked
        avals = [a.placed(manual_axis_type=None) for a in avals]
    return traced(fun, avals, eqn.params, eqn.primitive.multiple_results)


# -- programs without what has no rule -------------------------------------------------------------

without_gpu_kernels(WITHOUT_GPU_KERNEL)

# A program of up to so many equations stands where it is used.
IN_PLACE_EQNS = 6

# So many operations on elements of small matrices, of a loop or outside of loops, are worth the
# time to compile them: Kalman filters of eight states and four or five seen, of 880 and 1150, take
# 0.33 and 0.48 s, and 0.14 with XLA's calls of libraries, and then a tenth of the time.
MOST_ELEMENTS = 1200


@derived
def decompose(closed: ClosedJaxpr, platform: str, repeated: int = 0) -> ClosedJaxpr:
    """The program, and those nested in it, in operations that have a lowering rule for the
    platform; the same one if it is so already. `repeated` is the number of operations of the
    loop that runs it, if one does, or 1 if they cannot be one kernel."""
    holding = {id(e) for e in holders(closed)}
    return closed.with_jaxpr(_rewritten(closed.jaxpr, platform, repeated, holding))


def _rewritten(jaxpr: Jaxpr, platform: str, repeated: int, holding: Collection[int]) -> Jaxpr:
    """`holding` are the ids of the equations that hold jaxprs."""
    rules = rules_for(platform)
    unrolls = platform == "cpu" and configuration.small_kernels.value
    if not holding and all([rules[p.name] is not None and not (unrolls and p.unrolled)
                            for p in {e.primitive for e in jaxpr.eqns}]):
        return jaxpr
    eqns: list[JaxprEqn] = []
    values: dict[Var, Any] = {}  # results that are other values of the program
    for eqn in jaxpr.eqns:
        holds = id(eqn) in holding
        if values:
            eqn = eqn.replace(invars=replaced(eqn.invars, values))
        if _asks_to_be_inlined(eqn):
            inlined = decompose(eqn.params["jaxpr"], platform, repeated).jaxpr
            put_in_place(eqn, inlined, eqns, values, _names_inside(eqn))
            continue
        unrolled = eqn.primitive.unrolled if unrolls else None
        program = None
        if unrolled and unrolled.when(eqn, repeated):
            program = decompose(_by_elements(eqn, unrolled, repeated), platform, repeated)
        elif rules[eqn.primitive.name] is None:
            program = _program_of(eqn, platform, repeated)
        users = eqn.primitive.holder.stands_for is not None
        if program is None:
            eqns.append(_with_rewritten_jaxprs(eqn, platform, repeated) if holds else eqn)
        elif program.consts or (len(program.eqns) > IN_PLACE_EQNS and not users
                                and not eqn.primitive.in_place):
            name = program.jaxpr.debug_info.func_name if users else eqn.primitive.name
            eqns.append(call_eqn(eqn, program, name, eqn.invars, eqn.outvars))
        else:
            put_in_place(eqn, program.jaxpr, eqns, values,
                          eqn.source_info.name_stack if users else None)
    return jaxpr.replace(eqns=eqns, outvars=replaced(jaxpr.outvars, values),
                         effects=join_effects(eqns))


def _by_elements(eqn: JaxprEqn, unrolled: Unrolled, repeated: int) -> ClosedJaxpr:
    kernel = unrolled.kernel if SMALL_CALLS and not repeated else None
    with configuration.enable_x64(True):  # its constants have the operands' dtype
        return program_of(eqn, kernel or unrolled.program)


def are_few_by_elements(closed: ClosedJaxpr) -> bool:
    """Whether what the operations of a program on few numbers, but for those in loops, are written
    as is not so long together that compiling it takes longer than is won."""
    return _n_elements(closed.jaxpr, 0) <= MOST_ELEMENTS


def _n_elements(jaxpr: Jaxpr, repeated: int) -> int:
    own = [sum([1 for _ in all_eqns(_by_elements(e, unrolled, repeated))]) for e in jaxpr.eqns
           if (unrolled := e.primitive.unrolled) and unrolled.when(e, repeated)]
    return sum(own) + sum([_n_elements(inner, repeated) for e in holders_in(jaxpr)
                           if repeated or not e.primitive.holder.loops for inner in subjaxprs(e)])


def _n_together(eqns: Sequence[JaxprEqn]) -> int:
    """How many operations of a loop may be one kernel: one if there are some that none can hold."""
    rules, n = rules_for("cpu"), 1 + len(eqns)
    for eqn in eqns:
        rule, unrolled = rules[eqn.primitive.name], eqn.primitive.unrolled
        if rule is not None and rule.apart and not (unrolled and unrolled.when(eqn, n)):
            return 1
    return n


def _asks_to_be_inlined(eqn: JaxprEqn) -> bool:
    return (eqn.primitive.is_call and eqn.params.get("inline") is Inline.JAX_LATE
            and not eqn.params["jaxpr"].consts)


def _names_inside(eqn: JaxprEqn) -> NameStack:
    """The name stack of what a call calls."""
    names = eqn.source_info.name_stack
    label = eqn.primitive.label
    return names if label is None else names.extend(label(eqn.params))


def _with_rewritten_jaxprs(eqn: JaxprEqn, platform: str, repeated: int) -> JaxprEqn:
    unrolls = configuration.small_kernels.value
    if eqn.primitive.holder.loops and not repeated:
        repeated = 1
        if unrolls and platform == "cpu":
            programs = list(subjaxprs(eqn))
            repeated = _n_together([e for jaxpr in programs for e in all_eqns(jaxpr)])
            unrolls = sum([_n_elements(jaxpr, repeated) for jaxpr in programs]) <= MOST_ELEMENTS

    def rewrite(jaxpr: Jaxpr) -> Jaxpr:
        return _rewritten(jaxpr, platform, repeated, {id(e) for e in holders_in(jaxpr)})

    with within(eqn), configuration.small_kernels(unrolls):
        params = map_jaxprs(eqn.params, lambda closed: decompose(closed, platform, repeated),
                            rewrite)
    return eqn if params is eqn.params else eqn.replace(params=params)


def _program_of(eqn: JaxprEqn, platform: str, repeated: int) -> ClosedJaxpr | None:
    """What an operation without a rule is made of, decomposed; None if nobody has said."""
    stands_for = eqn.primitive.holder.stands_for
    try:
        with nowhere():
            program = decomposition_of(eqn) if stands_for is None else stands_for(eqn.params)
    except Exception as error:
        note_origin(error, eqn.source_info.traceback)
        raise
    return None if program is None else decompose(program, platform, repeated)


def put_in_place(eqn: JaxprEqn, program: Jaxpr, eqns: list[JaxprEqn], values: dict[Var, Any],
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
        info = here if names is None else e.source_info
        if names is not None and (names or info.traceback is None):
            info = SourceInfo(info.traceback or here.traceback, names + info.name_stack)
        eqns.append(JaxprEqn(
            e.primitive, [v if type(v) is Literal else env[v] for v in e.invars], outvars,
            e.params, e.effects, info,
        ))
        env.update(zip(e.outvars, outvars, strict=True))
    for v, out in zip(program.outvars, eqn.outvars, strict=True):
        value = v if type(v) is Literal else env[v]
        if value is not out:  # an operand, a literal, or a result that is returned twice
            values[out] = value
