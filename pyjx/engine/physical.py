"""Key arrays as the integer arrays that they are, and tokens as arrays without elements.

Programs are compiled without extended dtypes: an operation on a key array is the same operation on
uint32 arrays, mapped along the last axis, which holds a key's words. That is what the operation's
batching rule says, so only the operations that look into keys have rules here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike
from pyjx.core.avals import AbstractValue, ShapedArray, abstract_token, get_aval, is_ref_type
from pyjx.core.derived import derived, derived_structure
from pyjx.core.evaluation import eval_jaxpr, holders, holders_in, map_jaxprs, walk, within
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.axes import moveaxis
from pyjx.engine.calls import call_in_place
from pyjx.engine.decompose import decomposition_of
from pyjx.engine.tangents import add_any_p
from pyjx.engine.types import Params


def _is_key(aval: AbstractValue) -> bool:
    return aval is abstract_token or (type(aval) is ShapedArray and dtypes.is_extended(aval.dtype))


def _physical(aval: Any) -> Any:
    if aval is abstract_token:
        return ShapedArray((0,), bool)
    return aval.dtype.physical_aval(aval) if _is_key(aval) else aval


def _nested(eqn: JaxprEqn) -> bool:
    """Whether a parameter holds a program with keys."""
    return any(
        _has_keys(part)
        for value in eqn.params.values()
        for part in (value if isinstance(value, (tuple, list)) else (value,))
        if isinstance(part, (ClosedJaxpr, Jaxpr)))


def _has_keys(program: ClosedJaxpr | Jaxpr) -> bool:
    if isinstance(program, ClosedJaxpr):
        return closed_has_keys(program)
    return _makes_keys(program) or any(map(_nested, holders_in(program)))


@derived_structure
def closed_has_keys(closed: ClosedJaxpr) -> bool:
    """Whether key arrays are among the values of a program."""
    return _makes_keys(closed.jaxpr) or any(map(_nested, holders(closed)))


def _makes_keys(jaxpr: Jaxpr) -> bool:
    """Whether a variable of the jaxpr itself is a key array."""
    avals = {v.aval for e in jaxpr.eqns for v in e.outvars}
    avals.update([v.aval for v in jaxpr.all_invars])
    return any(map(_is_key, avals))


@derived
def physicalize(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with key arrays replaced by their data; the same one if it has none."""
    if not _has_keys(closed):
        return closed
    return _rewrite(closed.jaxpr, [getattr(c, "_base_array", c) for c in closed.consts])


def _rewrite(jaxpr: Jaxpr, consts: list[Any]) -> ClosedJaxpr:
    """`jaxpr` on data, with the constants as its first arguments, then closed over again."""
    params = [*jaxpr.constvars, *jaxpr.invars]

    def fun(*args: Any) -> list[Any]:
        n = len(jaxpr.constvars)
        return walk(jaxpr, args[:n], args[n:], _apply)

    program = trace_to_jaxpr(fun, [_physical(v.aval) for v in params], jaxpr.debug_info)
    n = len(jaxpr.constvars)
    inner = program.jaxpr
    return ClosedJaxpr(
        inner.replace(constvars=[*inner.constvars, *inner.invars[:n]], invars=inner.invars[n:]),
        [*program.consts, *consts],
    )


def _apply(eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    """The results of one equation, on data."""
    primitive = eqn.primitive
    params = eqn.params
    avals = [v.aval for v in eqn.invars]
    if _nested(eqn):
        stands_for = primitive.holder.stands_for
        if stands_for is not None and _on_references(params):
            return call_in_place(physicalize(stands_for(params)), primitive.name, *operands)
        with within(eqn):
            params = map_jaxprs(params, physicalize, _physical_jaxpr)
        return _results(eqn, primitive.bind(*operands, **params))
    in_keys = [_is_key(a) for a in avals]
    if not any(in_keys) and not any(_is_key(v.aval) for v in eqn.outvars):
        return _results(eqn, primitive.bind(*operands, **params))
    rule = primitive.physical
    if rule is not None:
        return _results(eqn, rule(avals, *operands, **params))
    if all(map(_has_rank_of_data, [*avals, *[v.aval for v in eqn.outvars]])):
        return _results(eqn, primitive.bind(*operands, **params))
    program = decomposition_of(eqn)
    if program is not None:
        return call_in_place(physicalize(program), primitive.name, *operands)
    if primitive.batch is None:
        raise TypeError(f"{primitive.name} does not accept dtype "
                        f"{dtypes.name(avals[in_keys.index(True)].dtype)}.")
    dims = [get_aval(x).ndim - 1 if is_key else None
            for x, is_key in zip(operands, in_keys, strict=True)]
    outs, out_dims = primitive.batch(operands, dims, **params)
    if not primitive.multiple_results:
        outs, out_dims = [outs], [out_dims]
    return [x if d is None else moveaxis(x, d, get_aval(x).ndim - 1)
            for x, d in zip(outs, out_dims, strict=True)]


def _on_references(params: Params) -> bool:
    """Whether a program that an equation holds reads and writes references, of keys maybe."""
    return any([isinstance(value, ClosedJaxpr) and any(map(is_ref_type, value.in_avals))
                for value in params.values()])


def _has_rank_of_data(aval: Any) -> bool:
    """Whether an element is one of the data, if it is of an extended dtype."""
    return not _is_key(aval) or (aval is not abstract_token and _physical(aval).ndim == aval.ndim)


def _added(avals: Sequence[Any], x: ArrayLike, y: ArrayLike) -> Any:
    """The sum of tangents of a dtype that says what that is."""
    dtype = avals[0].dtype
    program = physicalize(trace_to_jaxpr(lambda a, b: [dtype._rules.add(dtype, a, b)], avals))
    return eval_jaxpr(program.jaxpr, program.consts, x, y)[0]


add_any_p.define(physical=_added)  # here, as it is a program that is made physical again


def _results(eqn: JaxprEqn, out: Any) -> list[Any]:
    return list(out) if eqn.primitive.multiple_results else [out]


def _physical_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    return _rewrite(jaxpr, []).jaxpr if _has_keys(jaxpr) else jaxpr
