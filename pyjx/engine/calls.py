"""Calls: primitives whose operands are the inputs of a jaxpr that they hold, such as `jit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.effects import Effects
from pyjx.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var
from pyjx.core.options import NEVER_OUTLINED
from pyjx.core.passes.tokens import threaded
from pyjx.core.primitive import Primitive, register
from pyjx.engine.batching import BatchTrace
from pyjx.engine.discharge import discharge_call
from pyjx.engine.linearize import LinearTrace
from pyjx.engine.residuals import CutEqn, Policy, cut_jaxpr, results_saved
from pyjx.engine.subjaxprs import (
    LinearizedJaxpr,
    batch_jaxpr,
    dependent_outputs,
    jvp_jaxpr,
    linear_flags,
    linearize_jaxpr,
    live_inputs,
    negated,
    nonzero_flags,
    part_of,
    parts_added,
    read_in_parts,
    selected,
    strong_cotangents,
    transpose_with_log,
    with_cotangents,
    with_totals,
    with_zeros,
    without_tracers,
)
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Dims, Flags, Operand, Params, Tangents, Values

# (parameters of a call, which of its operands each operand of the derived call is or None, whether
# that one is linear) -> parameters of the derived call; its jaxpr is put in their place.
Derive = Callable[[Params, Dims, bool], Params]
# (jaxpr, which inputs have tangents, parameters) -> its known and its linear part.
Linearized = Callable[[ClosedJaxpr, Flags, Params], LinearizedJaxpr]


def define_call(primitive: Primitive, derive: Derive = lambda params, origins, linear: params,
                jaxpr_name: str = "jaxpr", linearized: Linearized | None = None) -> Primitive:
    """Give a call all its rules, but for those that it has.

    Args:
      primitive: has several results, those of the jaxpr that is its parameter `jaxpr_name`.
      derive: the parameters of a call of a jaxpr derived from it.
      linearized: how its jaxpr is linearized, if not as any other.
    """
    call = _Call(primitive, derive, jaxpr_name, linearized)
    if primitive.transpose is None:
        primitive.define(accumulate=call.accumulate)
    for kind in ("shape_rule", "effects", "jvp", "linearize", "split", "transpose", "batch_axis",
                 "dce", "cut", "thread", "check", "discharge", "rebind", "runs"):
        if getattr(primitive, kind) is None:
            primitive.define(**{kind: getattr(call, kind)})
    return primitive


class _Call:
    """The rules of one primitive."""

    __slots__ = ("derive", "jaxpr_name", "linearized", "primitive")

    def __init__(self, primitive: Primitive, derive: Derive, jaxpr_name: str,
                 linearized: Linearized | None) -> None:
        self.primitive = primitive
        self.derive = derive
        self.jaxpr_name = jaxpr_name
        self.linearized = linearized

    def derived_params(self, closed: ClosedJaxpr, params: Params, origins: Dims,
                       linear: bool = False) -> Params:
        return {**self.derive(params, origins, linear), self.jaxpr_name: closed}

    def rebind(self, closed: ClosedJaxpr, args: Values, params: Params, origins: Dims,
               linear: bool = False) -> list[Any]:
        """A call of a jaxpr derived from that of a call with parameters `params`."""
        if closed.consts:
            closed, consts = without_tracers(closed)
            args = [*consts, *args]
            origins = [*[None] * len(consts), *origins]
        params = self.derived_params(closed, params, origins, linear)
        return self.primitive.bind(*args, **params)  # type: ignore[no-any-return]

    def runs(self, params: Params) -> ClosedJaxpr:
        closed: ClosedJaxpr = params[self.jaxpr_name]
        return closed

    def shape_rule(self, *avals: Any, **params: Any) -> list[Any]:
        out_avals: list[Any] = params[self.jaxpr_name].out_avals
        return out_avals

    def effects(self, params: Params) -> Effects:
        effects: Effects = params[self.jaxpr_name].effects
        return effects

    def jvp(self, primals: Values, tangents: Tangents, **params: Any) -> Any:
        closed: ClosedJaxpr = params[self.jaxpr_name]
        nonzero = nonzero_flags(tangents)
        pushed = jvp_jaxpr(closed, nonzero)
        operands = range(len(primals))
        results = self.rebind(pushed.jaxpr, [*primals, *selected(tangents, nonzero)], params,
                              [*operands, *selected(operands, nonzero)])
        n = len(closed.outvars)
        return results[:n], with_zeros(results[n:], pushed.nonzero, closed.out_avals)

    def linearize(self, trace: LinearTrace, primals: Values, tangents: Tangents, **params: Any
                  ) -> Any:
        nonzero = nonzero_flags(tangents)
        if not any(nonzero):
            outs = self.primitive.bind(*primals, **params)
            return outs, [Zero.of_primal(o) for o in outs]
        closed: ClosedJaxpr = params[self.jaxpr_name]
        parts = (linearize_jaxpr(closed, nonzero) if self.linearized is None
                 else self.linearized(closed, nonzero, params))
        results = self.rebind(parts.known, primals, params, [
            None if i in parts.forwarded else i for i in range(len(primals))])
        n = len(closed.outvars)
        linear, consts = without_tracers(parts.linear)
        before = [*consts, *results[n:]]
        after = selected(tangents, nonzero)
        operands = [*before, *[primals[i] for i in parts.forwarded], *after]
        origins = [*[None] * len(before), *parts.forwarded, *[None] * len(after)]
        out_tangents = trace.record(self.primitive, operands, self.derived_params(
            linear, params, origins, True), linear.out_avals)
        return results[:n], with_zeros(out_tangents, parts.nonzero, closed.out_avals)

    def split(self, trace: LinearTrace, operands: Any, params: Params) -> list[Any]:
        closed: ClosedJaxpr = params[self.jaxpr_name]
        linear = trace.linear_flags(operands)
        dependent = dependent_outputs(closed, linear)
        given = negated(linear)
        known = iter(() if all(dependent) else self.rebind(
            part_of(closed, negated(dependent), given), selected(operands, given), params,
            [None] * sum(given)))
        tangents = iter(() if not any(dependent) else trace.record(
            self.primitive, operands, self.derived_params(
                part_of(closed, dependent, (True,) * len(operands), False), params,
                range(len(operands)))))
        return [next(tangents) if d else next(known) for d in dependent]

    def transpose(self, cts: Tangents, *operands: Operand, **params: Any) -> list[Any]:
        return self.pulled_back(cts, operands, params, (), (False,) * len(operands))

    def accumulate(self, totals: Tangents, cts: Tangents, *operands: Operand, **params: Any
                   ) -> list[Any]:
        """Totals go into the program that is called where it reads parts of their operands."""
        added = parts_added(totals, read_in_parts(params[self.jaxpr_name]))
        return with_totals(
            self.pulled_back(cts, operands, params, selected(totals, added), added), totals, added)

    def pulled_back(self, cts: Tangents, operands: Sequence[Operand], params: Params,
                    totals: Sequence[Any], added: Flags) -> list[Any]:
        """Cotangents of the operands; those of the operands `added` contain their `totals`."""
        closed: ClosedJaxpr = params[self.jaxpr_name]
        linear = linear_flags(operands)
        pulled = transpose_with_log(closed, linear, nonzero_flags(cts), False, added, None,
                                    strong_cotangents(closed, cts))
        known = [i for i, lin in enumerate(linear) if not lin]
        given = [*[ct for ct in cts if type(ct) is not Zero], *totals]
        outs = self.rebind(pulled.jaxpr, [*[operands[i] for i in known], *given], params,
                           [*known, *[None] * len(given)], True)
        pulled.write_log(outs)
        return with_cotangents(operands, pulled.nonzero, iter(outs))

    def batch_axis(self, trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
        closed: ClosedJaxpr = params[self.jaxpr_name]
        batched = batch_jaxpr(closed, tuple(dims), trace.axis)
        return self.rebind(batched.jaxpr, operands, params, range(len(operands))), batched.dims

    def dce(self, eqn: JaxprEqn, used: tuple[bool, ...]) -> JaxprEqn:
        closed: ClosedJaxpr = eqn.params[self.jaxpr_name]
        live = live_inputs(closed, used)
        part = part_of(closed, used, live)
        if part is closed:
            return eqn
        kept = [i for i, flag in enumerate(live) if flag]
        return eqn.replace(
            invars=selected(eqn.invars, live), outvars=selected(eqn.outvars, used),
            params=self.derived_params(part, eqn.params, kept), effects=part.effects)

    def cut(self, eqn: JaxprEqn, policy: Policy, needed: Flags) -> CutEqn:
        closed: ClosedJaxpr = eqn.params[self.jaxpr_name]
        n, places = len(eqn.outvars), range(len(eqn.invars))
        cut = cut_jaxpr(closed, policy, (True,) * n, needed)
        inner = cut.known.outvars[n:]
        results = selected(eqn.outvars, needed)
        same = results_saved(cut, len(inner), results)
        saved = [same[i] if i in same else Var(v.aval) for i, v in enumerate(inner)]
        extra = tuple([i not in same for i in range(len(saved))])
        known = part_of(cut.known, (True,) * n + extra, (True,) * len(places))
        known_eqn = eqn.replace(
            outvars=[*eqn.outvars, *selected(saved, extra)], effects=known.effects,
            params=self.derived_params(known, eqn.params, places))
        rest = tuple([v not in saved for v in results])
        if not any(rest) and not cut.again.effects:
            return CutEqn(known_eqn, saved, None)
        again = part_of(cut.again, rest, (True,) * len(cut.again.invars))
        return CutEqn(known_eqn, saved, eqn.replace(
            invars=[*saved, *[eqn.invars[i] for i in cut.forwarded]],
            outvars=selected(results, rest), effects=again.effects,
            params=self.derived_params(
                again, eqn.params, [*[None] * len(saved), *cut.forwarded])))

    def thread(self, eqn: JaxprEqn, token: Atom, after: Var) -> list[JaxprEqn]:
        params = self.derived_params(threaded(eqn.params[self.jaxpr_name]), eqn.params,
                                     [None, *range(len(eqn.invars))])
        return [eqn.replace(invars=[token, *eqn.invars], outvars=[after, *eqn.outvars],
                            params=params)]

    def discharge(self, operands: Values, params: Params, derivable: bool) -> list[Any]:
        return discharge_call(
            params[self.jaxpr_name], operands, derivable,
            lambda closed, args: self.rebind(closed, args, params, range(len(args))))

    def check(self, eqn: JaxprEqn) -> None:
        inputs = eqn.params[self.jaxpr_name].jaxpr.invars
        if len(inputs) != len(eqn.invars):
            raise TypeError(f"The called jaxpr takes {len(inputs)} arguments, {len(eqn.invars)} "
                            "are given")
        for inner, outer in zip(inputs, eqn.invars, strict=True):
            if not inner.aval.same_type(outer.aval):
                raise TypeError(f"Argument of type {outer.aval}, expected {inner.aval}")


# -- jit -------------------------------------------------------------------------------------------

jit_p = register(Primitive(
    "jit", multiple_results=True, cached=False, is_call=True,
    label=lambda params: f"jit({params['name']})",
    printed=lambda params: [
        ("name", params["name"]),
        *[(key, params[key])
          for key in ("compiler_options_kvs", "donated_invars", "jaxpr", "keep_unused")
          if (any(params[key]) if isinstance(params[key], tuple) else params[key])],
    ],
))


def _derive_jit(params: Params, origins: Dims, linear: bool) -> Params:
    donated = params["donated_invars"]
    keep_unused = params["keep_unused"]
    if True not in donated and not keep_unused:
        return {**params, "donated_invars": (False,) * len(origins)}
    if linear:  # its operands are residuals
        origins = [None] * len(origins)
    return {
        **params,
        "donated_invars": tuple([i is not None and donated[i] for i in origins]),
        "keep_unused": keep_unused and None not in origins,
    }


define_call(jit_p, _derive_jit)


def call_params(closed: ClosedJaxpr, name: str, n_args: int) -> Params:
    """The parameters of a plain call."""
    return {"jaxpr": closed, "name": name, "donated_invars": (False,) * n_args,
            "keep_unused": False, "inline": False, "compiler_options_kvs": ()}


def call_eqn(eqn: JaxprEqn, closed: ClosedJaxpr, name: str, invars: Sequence[Atom],
             outvars: Sequence[Var]) -> JaxprEqn:
    """A plain call in the place of an equation."""
    return JaxprEqn(jit_p, invars, outvars, call_params(closed, name, len(invars)), closed.effects,
                    eqn.source_info)


def call(closed: ClosedJaxpr, name: str, *args: Any) -> list[Any]:
    """Call a jaxpr as one operation."""
    return jit_p.bind(*args, **call_params(closed, name, len(args)))  # type: ignore[no-any-return]


def call_in_place(closed: ClosedJaxpr, name: str, *args: Any) -> list[Any]:
    """`call`, of a program that XLA puts where it is called: of constants, and together with what
    follows, some of it rounds otherwise than in a function of its own."""
    params = {**call_params(closed, name, len(args)), "inline": NEVER_OUTLINED}
    return jit_p.bind(*args, **params)  # type: ignore[no-any-return]
