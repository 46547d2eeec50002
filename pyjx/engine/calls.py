"""Calls: primitives whose operands are the inputs of a jaxpr that they hold, such as `jit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.effects import Effects
from pyjx.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var
from pyjx.core.options import NEVER_OUTLINED, ONE_KERNEL
from pyjx.core.primitive import Holding, Primitive, register
from pyjx.engine.batching import BatchTrace
from pyjx.engine.holders import Held, Holder, Programs, Roles
from pyjx.engine.linearize import LinearTrace
from pyjx.engine.subjaxprs import (
    LinearizedJaxpr,
    batch_jaxpr,
    linear_flags,
    linearize_jaxpr,
    nonzero_flags,
    selected,
    strong_cotangents,
    transpose_with_log,
    with_cotangents,
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
                linearized: Linearized | None = None,
                stands_for: Callable[[Params], ClosedJaxpr] | None = None) -> Primitive:
    """Give a call all its rules, but for those that it has.

    Args:
      primitive: has several results, those of the jaxpr that is its parameter `jaxpr`.
      derive: the parameters of a call of a jaxpr derived from it.
      linearized: how its jaxpr is linearized, if not as any other.
      stands_for: the program that is lowered in its place, if it has no lowering of its own.
    """
    _Call(primitive, derive, linearized).stands_for = stands_for
    return primitive


class _Call(Holder):
    """What runs a program once, on its operands. The role of one of these is its place; None stands
    for what is no operand of the call that a program is derived from."""

    def __init__(self, primitive: Primitive, derive: Derive, linearized: Linearized | None) -> None:
        self.derive = derive
        self.own_linearized = linearized
        super().__init__(primitive)

    def runs(self, params: Params) -> ClosedJaxpr:
        closed: ClosedJaxpr = params["jaxpr"]
        return closed

    def held(self, params: Params) -> Held:
        closed = params["jaxpr"]
        return Held((closed,), 0, range(len(closed.jaxpr.invars)),
                    (None,) * len(closed.jaxpr.outvars), 0, 0)

    def derived_params(self, params: Params, programs: Programs, ins: Roles, outs: Roles,
                       linear: bool = False) -> Params:
        return {**self.derive(params, ins, linear), "jaxpr": programs[0]}

    def shape_rule(self, *avals: Any, **params: Any) -> list[Any]:
        out_avals: list[Any] = params["jaxpr"].out_avals
        return out_avals

    def effects(self, params: Params) -> Effects:
        effects: Effects = params["jaxpr"].effects
        return effects

    # Calls are what most time goes to under transformations: these do what the engine does, without
    # asking for roles.

    def linearize(self, trace: LinearTrace, primals: Values, tangents: Tangents, **params: Any
                  ) -> Any:
        nonzero = nonzero_flags(tangents)
        if True not in nonzero:
            return self.still(primals, params)
        closed, own = params["jaxpr"], self.own_linearized
        parts = linearize_jaxpr(closed, nonzero) if own is None else own(closed, nonzero, params)
        forwarded, places = parts.forwarded, range(len(primals))
        results = self.bind([parts.known], primals, params,
                            self.roles_read_again(places, forwarded), ())
        n = len(closed.outvars)
        linear, consts = without_tracers(parts.linear)
        before = [*consts, *results[n:]]
        moving = selected(tangents, nonzero)
        out_tangents = trace.record(
            self.primitive, [*before, *[primals[i] for i in forwarded], *moving],
            self.derived_params(params, [linear], [
                *[None] * len(before), *forwarded, *[None] * len(moving)], (), True),
            linear.out_avals)
        return results[:n], with_zeros(out_tangents, parts.nonzero, closed.out_avals)

    def batch_axis(self, trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
        batched = batch_jaxpr(params["jaxpr"], tuple(dims), trace.axis)
        return self.bind([batched.jaxpr], operands, params, range(len(operands)), ()), batched.dims

    def pulled_back(self, cts: Tangents, operands: Sequence[Operand], params: Params,
                    totals: Sequence[Any], added: Flags | None) -> list[Any]:
        closed: ClosedJaxpr = params["jaxpr"]
        linear = linear_flags(operands)
        pulled = transpose_with_log(closed, linear, nonzero_flags(cts), None, added, None,
                                    strong_cotangents(closed, cts))
        known = [i for i, lin in enumerate(linear) if not lin]
        given = [*[ct for ct in cts if type(ct) is not Zero], *totals]
        outs = self.bind([pulled.jaxpr], [*[operands[i] for i in known], *given], params,
                         [*known, *[None] * len(given)], (), True)
        pulled.write_log(outs)
        return with_cotangents(operands, pulled.nonzero, iter(outs))

    def roles_read_again(self, roles: Roles, places: Sequence[int]) -> Roles:
        """They may not be donated."""
        return [None if i in places else role for i, role in enumerate(roles)] if places else roles

    def cotangent_roles(self, roles: Roles) -> Roles:
        return (None,) * len(roles)


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


def call_as_one_kernel(closed: ClosedJaxpr, name: str, *args: Any) -> list[Any]:
    """`call`, of a program that XLA's CPU compiler makes one kernel of."""
    params = {**call_params(closed, name, len(args)), "inline": ONE_KERNEL}
    return jit_p.bind(*args, **params)  # type: ignore[no-any-return]


def call_in_place(closed: ClosedJaxpr, name: str, *args: Any) -> list[Any]:
    """`call`, of a program that XLA puts where it is called: of constants, and together with what
    follows, some of it rounds otherwise than in a function of its own."""
    params = {**call_params(closed, name, len(args)), "inline": NEVER_OUTLINED}
    return jit_p.bind(*args, **params)  # type: ignore[no-any-return]


def standing_for(name: str, program: Callable[[Params], ClosedJaxpr],
                 holder: Holding | None = None, **rules: Any) -> Primitive:
    """A primitive that is typed, run and lowered as the program that it stands for, which `program`
    makes of its parameters; the other rules, and those that differ, are given."""
    def run(*args: Any, **params: Any) -> list[Any]:
        closed = program(params)
        return call(closed, closed.debug_info.func_name, *args)

    return register(Primitive(name, multiple_results=True, cached=False, **{
        "impl": run, "shape_rule": lambda *avals, **params: program(params).out_avals,
        "effects": lambda params: program(params).effects,
        "holder": Holding(stands_for=program) if holder is None else holder, **rules}))
