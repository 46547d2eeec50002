"""What XLA is told of operations: of those of a program that is called, of a value's, or of all
that are made in a context, which have it in their name stacks.

A call with metadata is a private function in the lowered program; XLA puts the metadata of the call
on the operations as it inlines the function. Before a program is lowered an operation with metadata
becomes a program that holds it alone, which is written in place.
"""

from __future__ import annotations

from typing import Any

from pyjx.core.arithmetic import TOGETHER
from pyjx.core.derived import derived_structure
from pyjx.core.effects import no_effects
from pyjx.core.evaluation import holds_jaxprs, map_jaxprs
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in_params
from pyjx.core.primitive import Primitive, register
from pyjx.engine.calls import define_call
from pyjx.engine.types import Dims, Params

Items = tuple[tuple[str, Any], ...]


def _printed(params: Params) -> list[tuple[str, Any]]:
    return sorted(params.items())


def _derived(params: Params, origins: Dims, linear: bool) -> Params:
    """The metadata of a program derived from that of a call: `ad_metadata` says what the linear
    part of a derivative has."""
    said = params["ad_metadata"]
    if not linear or said == "same":
        return params
    return {**params, "xla_metadata": () if said == "drop" else said}


xla_metadata_call_p = register(Primitive(
    "xla_metadata_call", multiple_results=True, cached=False, printed=_printed))
define_call(xla_metadata_call_p, _derived)

# One operation of a program that is to be lowered: nothing is derived from it.
xla_metadata_operation_p = register(Primitive(
    "xla_metadata_operation", multiple_results=True, cached=False, outlined=False))
define_call(xla_metadata_operation_p, lambda params, origins, linear: params)


# -- of a value ------------------------------------------------------------------------------------


# The operand, whose operation has metadata.
xla_metadata_value_p: Primitive = register(Primitive(
    "xla_metadata_value", shape_rule=lambda x, **_: x, impl=lambda x, **_: x,
    batch=lambda xs, dims, **params: (xla_metadata_value_p.bind(xs[0], **params), dims[0]),
    transpose=lambda ct, x, **params: [xla_metadata_value_p.bind(ct, **params)],
    linear=TOGETHER, outlined=False))


# -- from name stacks to programs ------------------------------------------------------------------


def _is_tagged(jaxpr: Jaxpr) -> bool:
    return any([e.source_info.name_stack.metadata is not None
                or e.primitive is xla_metadata_value_p
                or (holds_jaxprs(e) and any(map(_is_tagged, jaxprs_in_params(e.params))))
                for e in jaxpr.eqns])


@derived_structure
def metadata_as_programs(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with one for each operation that has metadata; the same one if none has."""
    if not _is_tagged(closed.jaxpr):
        return closed
    return ClosedJaxpr(_with_programs(closed.jaxpr), closed.consts)


def _with_programs(jaxpr: Jaxpr) -> Jaxpr:
    eqns: list[JaxprEqn] = []
    makers: dict[Var, int] = {}
    metadata: list[dict[str, Any]] = []
    same: dict[Var, Any] = {}  # values with metadata, and the values that they are

    def read(v: Any) -> Any:
        while isinstance(v, Var) and v in same:
            v = same[v]
        return v

    for eqn in jaxpr.eqns:
        invars = [read(v) for v in eqn.invars]
        if eqn.primitive is xla_metadata_value_p:
            (x,) = invars
            same[eqn.outvars[0]] = x
            if isinstance(x, Var) and x in makers:  # else it is no operation's
                metadata[makers[x]].update(eqn.params["xla_metadata_kvs"])
            continue
        params = eqn.params
        if holds_jaxprs(eqn):
            params = map_jaxprs(params, metadata_as_programs, _with_programs)
        makers.update(dict.fromkeys(eqn.outvars, len(eqns)))
        eqns.append(eqn.replace(invars, params=params))
        metadata.append(dict(eqn.source_info.name_stack.metadata or ()))
    tagged = [_as_program(e, tuple(sorted(m.items()))) if m else e
              for e, m in zip(eqns, metadata, strict=True)]
    return jaxpr.replace(eqns=tagged, outvars=[read(v) for v in jaxpr.outvars])


def _as_program(eqn: JaxprEqn, items: Items) -> JaxprEqn:
    """A program that is nothing but the equation; one with an effect stays as it is."""
    if eqn.effects:
        return eqn
    outer = list(dict.fromkeys([v for v in eqn.invars if not isinstance(v, Literal)]))
    inner = {v: Var(v.aval) for v in outer}
    outs = [Var(v.aval) for v in eqn.outvars]
    own = eqn.replace([v if isinstance(v, Literal) else inner[v] for v in eqn.invars], outs)
    program = ClosedJaxpr(Jaxpr([], list(inner.values()), outs, [own]), [])
    return JaxprEqn(xla_metadata_operation_p, outer, eqn.outvars,
                    {"jaxpr": program, "xla_metadata": items}, no_effects, eqn.source_info)


def items_of(metadata: dict[str, Any]) -> Items:
    """Metadata as XLA takes it: texts, in the order of their names.

    >>> items_of({"n": 1, "flag": True})
    (('flag', 'true'), ('n', '1'))
    """
    return tuple(sorted([(k, str(v).lower() if isinstance(v, bool) else str(v))
                         for k, v in metadata.items()]))
