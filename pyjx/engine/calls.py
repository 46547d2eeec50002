"""The `jit` primitive: a jaxpr called as one operation, and how transformations go through it.

Each rule derives another jaxpr from the one called and keeps it there (`ClosedJaxpr.memo`), so a
function that is called many times is transformed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core import name_stack, source_info
from pyjx.core.avals import get_aval
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from pyjx.core.passes.dce import dce_jaxpr
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import (
    Tracer,
    eval_jaxpr,
    jaxpr_as_fun,
    literal_value,
    state,
    trace_to_jaxpr,
)
from pyjx.engine.batching import batch_flat, match_axis
from pyjx.engine.forward import jvp_flat
from pyjx.engine.linearize import (
    LinearEqn,
    LinearTrace,
    LinearTracer,
    accumulate,
    backward_eqns,
    linearize_flat,
    split_rules,
)
from pyjx.engine.tangents import UndefinedPrimal, Zero


def _call_shape(*avals: Any, jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return jaxpr.out_avals


jit_p = register(Primitive(
    "jit", shape_rule=_call_shape, multiple_results=True, cached=False,
    effects=lambda params: params["jaxpr"].effects,
))


def call(closed: ClosedJaxpr, name: str, *args: Any, **params: Any) -> list[Any]:
    """Bind `jit_p` with default parameters for all that is not given."""
    return jit_p.bind(
        *args, jaxpr=closed, name=name,
        donated_invars=params.get("donated_invars", (False,) * len(args)),
        keep_unused=params.get("keep_unused", False), inline=params.get("inline", False),
        compiler_options_kvs=params.get("compiler_options_kvs", ()),
    )


def _bind_derived(derived: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Call a jaxpr derived from that of a call."""
    derived, consts = _without_tracers(derived)
    args = [*consts, *args]
    return jit_p.bind(*args, jaxpr=derived, **_derived_params(params, len(args)))


def _without_tracers(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, Sequence[Any]]:
    """The jaxpr, and what it takes as leading arguments: its constants, if some are tracers.

    A derived jaxpr has such constants where a rule that the user gave closes over tracers.
    """
    if not any(isinstance(c, Tracer) for c in closed.consts):
        return closed, ()
    if "hoisted" not in closed.memo:
        closed.memo["hoisted"] = ClosedJaxpr(hoisted(closed), [])
    return closed.memo["hoisted"], closed.consts


def _derived_params(params: dict[str, Any], n_args: int) -> dict[str, Any]:
    """Parameters for a jaxpr derived from the call's: its arguments are others, none donated."""
    return {**params, "donated_invars": (False,) * n_args, "keep_unused": False}


# -- forward mode ----------------------------------------------------------------------------------


def jvp_jaxpr(closed: ClosedJaxpr, nonzero: tuple[bool, ...]) -> tuple[ClosedJaxpr, list[bool]]:
    """From (primals, tangents where `nonzero`) to (outs, nonzero out tangents), and which are."""
    key = "jvp", nonzero
    if key not in closed.memo:
        avals = closed.in_avals
        out_nonzero: list[bool] = []

        def fun(*args: Any) -> list[Any]:
            primals = args[:len(avals)]
            given = iter(args[len(avals):])
            tangents = [
                next(given) if nz else Zero(a.to_tangent_aval())
                for nz, a in zip(nonzero, avals, strict=True)
            ]
            outs, out_tangents = jvp_flat(jaxpr_as_fun(closed), primals, tangents)
            out_nonzero[:] = [type(t) is not Zero for t in out_tangents]
            return outs + [t for t in out_tangents if type(t) is not Zero]

        tangent_avals = [
            a.to_tangent_aval() for a, nz in zip(avals, nonzero, strict=True) if nz
        ]
        derived = trace_to_jaxpr(fun, [*avals, *tangent_avals], closed.jaxpr.debug_info)
        closed.memo[key] = derived, out_nonzero
    return closed.memo[key]


def _with_zeros(tangents: Sequence[Any], nonzero: Sequence[bool], avals: Sequence[Any]
                ) -> list[Any]:
    given = iter(tangents)
    return [
        next(given) if nz else Zero(a.to_tangent_aval())
        for nz, a in zip(nonzero, avals, strict=True)
    ]


def _jit_jvp(primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    nonzero = tuple([type(t) is not Zero for t in tangents])
    derived, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
    args = [*primals, *[t for t in tangents if type(t) is not Zero]]
    flat = _bind_derived(derived, args, params)
    n = len(jaxpr.jaxpr.outvars)
    return flat[:n], _with_zeros(flat[n:], out_nonzero, jaxpr.out_avals)


# -- linearization ---------------------------------------------------------------------------------


class _Linearized:
    """A jaxpr split in two.

    `known` maps primals to (outs, residuals); `linear` maps (residuals, forwarded primals,
    tangents) to the nonzero out tangents. `forwarded` are the primals that are residuals as they
    are.
    """

    __slots__ = ("forwarded", "known", "linear", "out_nonzero")

    known: ClosedJaxpr
    linear: ClosedJaxpr
    forwarded: list[int]
    out_nonzero: list[bool]


def linearize_jaxpr(closed: ClosedJaxpr, nonzero: tuple[bool, ...]) -> _Linearized:
    key = "linearize", nonzero
    if key in closed.memo:
        return closed.memo[key]
    result = _Linearized()
    program: Any = None
    residual_avals: list[Any] = []

    def known(*primals: Any) -> list[Any]:
        nonlocal program
        outs, program = linearize_flat(jaxpr_as_fun(closed), primals, nonzero)
        program = program.pruned()
        position = {id(p): i for i, p in enumerate(primals)}
        residuals = [r for r in program.residuals() if isinstance(r, Tracer)]
        result.forwarded = [position[id(r)] for r in residuals if id(r) in position]
        computed = [r for r in residuals if id(r) not in position]
        residual_avals[:] = map(get_aval, computed)
        order = computed + [primals[i] for i in result.forwarded]
        program = program.abstracted(order)
        return [*outs, *computed]

    in_avals = closed.in_avals
    result.known = trace_to_jaxpr(known, in_avals, closed.jaxpr.debug_info)
    result.out_nonzero = [type(x) is not Zero for x in program.outs]
    forwarded_avals = [in_avals[i] for i in result.forwarded]
    tangent_avals = [
        a.to_tangent_aval() for a, nz in zip(in_avals, nonzero, strict=True) if nz
    ]
    n_residuals = len(residual_avals) + len(forwarded_avals)

    def linear(*args: Any) -> list[Any]:
        filled = program.filled(args[:n_residuals])
        given = iter(args[n_residuals:])
        tangents = [None if v is None else next(given) for v in filled.invars]
        outs = filled.forward(tangents)
        return [t for t, nz in zip(outs, result.out_nonzero, strict=True) if nz]

    result.linear = trace_to_jaxpr(
        linear, [*residual_avals, *forwarded_avals, *tangent_avals], closed.jaxpr.debug_info
    )
    closed.memo[key] = result
    return result


def _jit_linearize(trace: LinearTrace, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr,
                   **params: Any) -> Any:
    nonzero = tuple([type(t) is not Zero for t in tangents])
    if not any(nonzero):
        outs = jit_p.bind(*primals, jaxpr=jaxpr, **params)
        return outs, [Zero.of_primal(o) for o in outs]
    split = linearize_jaxpr(jaxpr, nonzero)
    flat = _bind_derived(split.known, primals, params)
    n = len(jaxpr.jaxpr.outvars)
    residuals = [*flat[n:], *[primals[i] for i in split.forwarded]]
    linear, consts = _without_tracers(split.linear)
    operands = [*consts, *residuals, *[t for t in tangents if type(t) is not Zero]]
    linear_params = {**_derived_params(params, len(operands)), "jaxpr": linear}
    out_tangents = trace.record(jit_p, operands, linear_params)
    return flat[:n], _with_zeros(out_tangents, split.out_nonzero, jaxpr.out_avals)


def _depends_on(jaxpr: Jaxpr, marked: Sequence[bool]) -> list[bool]:
    """Which outputs depend on the marked inputs."""
    dependent = {v for v, m in zip(jaxpr.invars, marked, strict=True) if m}
    for eqn in jaxpr.eqns:
        if any(v in dependent for v in eqn.invars):
            dependent.update(eqn.outvars)
    return [v in dependent for v in jaxpr.outvars]


def _part(closed: ClosedJaxpr, linear: tuple[bool, ...], of_linear: bool) -> ClosedJaxpr:
    """The jaxpr with only the outputs that depend on the linear inputs, or only the others."""
    key = "part", linear, of_linear
    if key not in closed.memo:
        jaxpr = closed.jaxpr
        wanted = [d is of_linear for d in _depends_on(jaxpr, linear)]
        part = dce_jaxpr(jaxpr, wanted)
        if not of_linear:
            part = part.replace(
                invars=[v for v, lin in zip(jaxpr.invars, linear, strict=True) if not lin])
        closed.memo[key] = ClosedJaxpr(part, closed.consts)
    return closed.memo[key]


def _jit_split(trace: LinearTrace, operands: Any, params: dict[str, Any]) -> list[Any]:
    """A call with tangents among its operands, which a rule that the user gave has made.

    Outputs that depend on no tangent are computed now.
    """
    closed: ClosedJaxpr = params["jaxpr"]
    linear = tuple([type(x) is LinearTracer and x._trace is trace for x in operands])
    out_linear = _depends_on(closed.jaxpr, linear)
    if all(out_linear):
        return trace.record(jit_p, operands, params)  # type: ignore[no-any-return]
    values = [x for x, lin in zip(operands, linear, strict=True) if not lin]
    params = {k: v for k, v in params.items() if k != "jaxpr"}
    known = iter(_bind_derived(_part(closed, linear, False), values, params))
    tangents = iter(trace.record(jit_p, operands, {**params, "jaxpr": _part(closed, linear, True)})
                    if any(out_linear) else ())
    return [next(tangents) if lin else next(known) for lin in out_linear]


split_rules[jit_p] = _jit_split


# -- transposition ---------------------------------------------------------------------------------


def backward_jaxpr(
    jaxpr: Jaxpr, consts: Sequence[Any], operands: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    """Cotangents of the operands that are `UndefinedPrimal`, None for the others.

    Equations without a linear operand are evaluated, the others are transposed.
    """
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, operands, strict=True))
    eqns: list[LinearEqn] = []
    with source_info.replaying() as replay:
        for eqn in jaxpr.eqns:
            primitive = eqn.primitive
            values = [literal_value(v) if isinstance(v, Literal) else env[v] for v in eqn.invars]
            if any(type(v) is UndefinedPrimal for v in values):
                results = [UndefinedPrimal(v.aval) for v in eqn.outvars]
                env.update(zip(eqn.outvars, results, strict=True))
                eqns.append((primitive, values, results, eqn.params, eqn.source_info))
                continue
            replay.source = eqn.source_info
            out = primitive.bind(*values, **eqn.params)
            outs = out if primitive.multiple_results else [out]
            env.update(zip(eqn.outvars, outs, strict=True))
    cts: dict[UndefinedPrimal, Any] = {}
    for v, ct in zip(jaxpr.outvars, cotangents, strict=True):
        linear = None if isinstance(v, Literal) else env[v]
        if type(linear) is UndefinedPrimal and type(ct) is not Zero:
            accumulate(cts, linear, ct)
    backward_eqns(eqns, cts)
    return [
        None if type(x) is not UndefinedPrimal else cts[x] if x in cts else Zero(x.aval)
        for x in operands
    ]


def transpose_jaxpr(
    closed: ClosedJaxpr, linear: tuple[bool, ...], ct_nonzero: tuple[bool, ...]
) -> tuple[ClosedJaxpr, list[bool]]:
    """From (residuals, nonzero cotangents) to the nonzero cotangents of the linear inputs."""
    key = "transpose", linear, ct_nonzero
    if key not in closed.memo:
        in_avals, out_avals = closed.in_avals, closed.out_avals
        residual_avals = [a for a, lin in zip(in_avals, linear, strict=True) if not lin]
        nonzero: list[bool] = []

        def fun(*args: Any) -> list[Any]:
            values = iter(args)
            operands = [
                UndefinedPrimal(a) if lin else next(values)
                for a, lin in zip(in_avals, linear, strict=True)
            ]
            cts = _with_zeros(list(values), ct_nonzero, out_avals)
            with name_stack.reset_name_stack():
                outs = backward_jaxpr(closed.jaxpr, closed.consts, operands, cts)
            outs = [o for o in outs if o is not None]
            nonzero[:] = [type(o) is not Zero for o in outs]
            return [o for o in outs if type(o) is not Zero]

        ct_avals = [a for a, nz in zip(out_avals, ct_nonzero, strict=True) if nz]
        derived = trace_to_jaxpr(fun, [*residual_avals, *ct_avals], closed.jaxpr.debug_info)
        closed.memo[key] = derived, nonzero
    return closed.memo[key]


def _jit_transpose(cts: Any, *operands: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    linear = tuple([type(x) is UndefinedPrimal for x in operands])
    ct_nonzero = tuple([type(ct) is not Zero for ct in cts])
    derived, nonzero = transpose_jaxpr(jaxpr, linear, ct_nonzero)
    args = [x for x in operands if type(x) is not UndefinedPrimal]
    args += [ct for ct in cts if type(ct) is not Zero]
    outs = iter(_bind_derived(derived, args, params))
    flags = iter(nonzero)
    return [
        None if not lin else next(outs) if next(flags) else Zero(x.aval)
        for x, lin in zip(operands, linear, strict=True)
    ]


# -- batching --------------------------------------------------------------------------------------


def batch_jaxpr(
    closed: ClosedJaxpr, dims: tuple[int | None, ...], size: int, axis_name: Any = None,
    out_dims: tuple[int | None, ...] | None = None,
) -> tuple[ClosedJaxpr, list[int | None]]:
    """The jaxpr of the whole batch, and where its outputs have their batch axes.

    With `out_dims`, outputs are moved (or repeated) to have them there.
    """
    key = "batch", dims, size, axis_name, out_dims
    if key not in closed.memo:
        got: list[int | None] = []

        def fun(*args: Any) -> list[Any]:
            outs, found = batch_flat(jaxpr_as_fun(closed), args, dims, size, axis_name)
            if out_dims is not None:
                outs = [match_axis(o, d, to, size)
                        for o, d, to in zip(outs, found, out_dims, strict=True)]
                found = list(out_dims)
            got[:] = found
            return outs

        in_avals = [
            a if d is None else a.update(shape=(*a.shape[:d], size, *a.shape[d:]))
            for a, d in zip(closed.in_avals, dims, strict=True)
        ]
        closed.memo[key] = trace_to_jaxpr(fun, in_avals, closed.jaxpr.debug_info), got
    return closed.memo[key]


def _jit_batch(operands: Any, dims: Any, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    size = state.batch_trace.axis_size
    derived, out_dims = batch_jaxpr(jaxpr, tuple(dims), size, state.batch_trace.axis_name)
    return _bind_derived(derived, operands, params), out_dims


jit_p.jvp = _jit_jvp
jit_p.linearize = _jit_linearize
jit_p.transpose = _jit_transpose
jit_p.batch = _jit_batch


def inline_call(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    """The operations of a jaxpr, one by one, where a call of it would stand."""
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


def hoisted(closed: ClosedJaxpr) -> Jaxpr:
    """The jaxpr with its constants as leading arguments."""
    jaxpr = closed.jaxpr
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
