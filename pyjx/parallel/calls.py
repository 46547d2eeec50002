"""`shard_map` as a primitive: a call of the program of each device along some axes of a mesh.

At its border values change shape: a spec for each operand and result says which axes of the mesh
cut which of its dimensions. Inside there are the named axes of the mesh. What is derived from the
program is derived there, and gets specs from those that there are: a tangent that of its primal, a
cotangent that of its value. A residual of the derivative gets all axes along which it may vary,
along its first dimension, so that each device finds its own again.

Without the types that say what varies (`check_vma=False`) all values may vary. A result whose spec
leaves an axis out has then the same value on all devices along it, whose cotangent they share; and
the cotangents of an operand whose spec leaves an axis out are added up along it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from pyjx import lax
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.contents import contents
from pyjx.core.derived import derived
from pyjx.core.effects import Effects, NamedAxisEffect
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var
from pyjx.core.local_types import global_aval, local_aval
from pyjx.core.named_axes import Axis, mesh_axes, spmd_names
from pyjx.core.passes.tokens import threaded
from pyjx.core.primitive import Primitive, register
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.core.trace import trace_to_jaxpr
from pyjx.core.varying import reduced_axes, unreduced_axes, varying_axes, with_varying
from pyjx.engine.batching import BatchTrace, batch_flat
from pyjx.engine.calls import call
from pyjx.engine.discharge import check_distinct, discharged, store, values_of
from pyjx.engine.linearize import LinearTrace
from pyjx.engine.references import Box
from pyjx.engine.residuals import CutEqn, Policy, cut_jaxpr, results_saved
from pyjx.engine.subjaxprs import (
    BatchedJaxpr,
    Places,
    TransposedJaxpr,
    batched_aval,
    check_operands,
    consts_as_inputs,
    dependent_outputs,
    jvp_jaxpr,
    linear_flags,
    linearize_jaxpr,
    live_inputs,
    negated,
    nonzero_flags,
    part_of,
    selected,
    transpose_jaxpr,
    with_cotangents,
    with_zeros,
)
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Dims, Flags, Operand, Params, Tangents, Values
from pyjx.lax.collectives import psum_p
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.device_put import device_put
from pyjx.runtime.eager import single_eqn_jaxpr
from pyjx.runtime.sharding import NamedSharding

Specs = tuple[PartitionSpec, ...]
WHOLE = PartitionSpec()


# -- types at the border ---------------------------------------------------------------------------


def ordered(mesh: Any, names: Any) -> tuple[Any, ...]:
    """Axes of a mesh in the order that they have there."""
    return tuple([n for n in mesh.axis_names if n in names])


def _within(params: Params) -> AbstractContextManager[None]:
    mesh = params["mesh"]
    names = ordered(mesh, params["newly_manual_axes"])
    return mesh_axes(mesh.abstract_mesh, names, params["check_vma"])


def _out_avals(params: Params) -> list[Any]:
    return [global_aval(a, spec, params["mesh"], params["newly_manual_axes"])
            for a, spec in zip(params["jaxpr"].out_avals, params["out_specs"], strict=True)]


def _residual_spec(aval: Any, params: Params) -> PartitionSpec:
    names = params["newly_manual_axes"]
    axes = ordered(params["mesh"], varying_axes(aval) & names if params["check_vma"]
                   else names - spmd_names())
    return PartitionSpec(*[axes] if axes else (), unreduced=unreduced_axes(aval) & names,
                         reduced=reduced_axes(aval) & names)


def _unmentioned(spec: PartitionSpec, params: Params) -> tuple[Any, ...]:
    """The manual axes that a spec leaves out, and no mapped axis lies along."""
    return ordered(params["mesh"], params["newly_manual_axes"] - spmd_names() - set(axes_of(spec)))


# -- calls of derived programs ---------------------------------------------------------------------


def _derived_params(params: Params, closed: ClosedJaxpr, in_specs: Sequence[Any],
                    out_specs: Sequence[Any]) -> Params:
    return {**params, "jaxpr": closed, "in_specs": tuple(in_specs), "out_specs": tuple(out_specs)}


def _with_consts(closed: ClosedJaxpr, args: Sequence[Any], specs: Sequence[Any]
                 ) -> tuple[ClosedJaxpr, list[Any], list[Any]]:
    """A program with its constants as its first arguments, which are the same on all devices."""
    consts = closed.consts
    return consts_as_inputs(closed), [*consts, *args], [*[WHOLE] * len(consts), *specs]


def bind_closed(closed: ClosedJaxpr, args: Sequence[Any], params: Params, in_specs: Sequence[Any],
                out_specs: Sequence[Any]) -> list[Any]:
    """Run a program on each device; `params` say along which axes of which mesh."""
    closed, args, in_specs = _with_consts(closed, args, in_specs)
    return shard_map_p.bind(  # type: ignore[no-any-return]
        *args, **_derived_params(params, closed, in_specs, out_specs))


@derived
def with_vectors(closed: ClosedJaxpr, inputs: Flags, outputs: Flags) -> ClosedJaxpr:
    """The program with those scalars of its inputs and outputs that have a flag as vectors of one
    element, which a spec may cut."""
    def fun(*args: Any) -> list[Any]:
        outs = jaxpr_as_fun(closed)(*[lax.reshape(x, ()) if flag else x
                                      for x, flag in zip(args, inputs, strict=True)])
        return [lax.reshape(x, (1,)) if flag else x for x, flag in zip(outs, outputs, strict=True)]

    if not any(inputs) and not any(outputs):
        return closed
    avals = [a.update(shape=(1,)) if flag else a
             for a, flag in zip(closed.in_avals, inputs, strict=True)]
    return trace_to_jaxpr(fun, avals, closed.debug_info)


def _is_cut_scalar(aval: Any, spec: PartitionSpec) -> bool:
    return not aval.shape and len(spec) > 0


# -- forward and reverse mode ----------------------------------------------------------------------


def _jvp(primals: Values, tangents: Tangents, **params: Any) -> Any:
    closed: ClosedJaxpr = params["jaxpr"]
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    nonzero = nonzero_flags(tangents)
    with _within(params):
        pushed = jvp_jaxpr(closed, nonzero)
    results = bind_closed(
        pushed.jaxpr, [*primals, *selected(tangents, nonzero)], params,
        [*in_specs, *selected(in_specs, nonzero)], [*out_specs, *selected(out_specs,
                                                                          pushed.nonzero)])
    n = len(closed.outvars)
    return results[:n], with_zeros(results[n:], pushed.nonzero, _out_avals(params))


def _linearize(trace: LinearTrace, primals: Values, tangents: Tangents, **params: Any) -> Any:
    nonzero = nonzero_flags(tangents)
    if not any(nonzero):
        outs = shard_map_p.bind(*primals, **params)
        return outs, [Zero.of_primal(o) for o in outs]
    closed: ClosedJaxpr = params["jaxpr"]
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    n = len(closed.outvars)
    with _within(params):
        parts = linearize_jaxpr(closed, nonzero)
        saved = parts.known.out_avals[n:]
        specs = [_residual_spec(a, params) for a in saved]
        scalars = tuple(map(_is_cut_scalar, saved, specs))
        known = with_vectors(parts.known, (False,) * len(primals), (False,) * n + scalars)
        rest = len(parts.linear.in_avals) - len(saved)
        linear = with_vectors(parts.linear, scalars + (False,) * rest,
                           (False,) * len(parts.linear.out_avals))
    results = bind_closed(known, primals, params, in_specs, [*out_specs, *specs])
    linear, operands, specs = _with_consts(
        linear,
        [*results[n:], *[primals[i] for i in parts.forwarded], *selected(tangents, nonzero)],
        [*specs, *[in_specs[i] for i in parts.forwarded], *selected(in_specs, nonzero)])
    out_tangents = trace.record(shard_map_p, operands, _derived_params(
        params, linear, specs, selected(out_specs, parts.nonzero)))
    return results[:n], with_zeros(out_tangents, parts.nonzero, _out_avals(params))


def _split(trace: LinearTrace, operands: Values, params: Params) -> list[Any]:
    closed: ClosedJaxpr = params["jaxpr"]
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    linear = trace.linear_flags(operands)
    dependent = dependent_outputs(closed, linear)
    given, independent = negated(linear), negated(dependent)
    known = iter(() if all(dependent) else bind_closed(
        part_of(closed, independent, given), selected(operands, given), params,
        selected(in_specs, given), selected(out_specs, independent)))
    tangents = iter(() if not any(dependent) else trace.record(
        shard_map_p, operands, _derived_params(
            params, part_of(closed, dependent, (True,) * len(operands), False), in_specs,
            selected(out_specs, dependent))))
    return [next(tangents) if d else next(known) for d in dependent]


@derived
def _transposed_untyped(closed: ClosedJaxpr, linear: Flags, ct_nonzero: Flags,
                        shares: tuple[int, ...], sums: tuple[tuple[Any, ...], ...]
                        ) -> TransposedJaxpr:
    """The transposed program without types that say what varies.

    Args:
      shares: for each cotangent that is given, among how many devices it is shared.
      sums: for each linear operand the axes along which its cotangent is added up.
    """
    pulled = transpose_jaxpr(closed, linear, ct_nonzero)
    first = len(pulled.jaxpr.in_avals) - len(shares)
    axes = selected(sums, pulled.nonzero)

    def fun(*args: Any) -> list[Any]:
        cts = [lax.div(ct, lax.full_like(ct, k)) if k > 1 else ct
               for ct, k in zip(args[first:], shares, strict=True)]
        outs = jaxpr_as_fun(pulled.jaxpr)(*args[:first], *cts)
        return [psum_p.bind(x, axes=names, axis_index_groups=None) if names else x
                for x, names in zip(outs, axes, strict=True)]

    program = trace_to_jaxpr(fun, pulled.jaxpr.in_avals, closed.debug_info)
    return TransposedJaxpr(program, pulled.nonzero)


def _transpose(cts: Tangents, *operands: Operand, **params: Any) -> list[Any]:
    closed: ClosedJaxpr = params["jaxpr"]
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    linear, nonzero = linear_flags(operands), nonzero_flags(cts)
    given_specs, linear_specs = [
        tuple([s.to_ct_spec() for s in selected(specs, flags)])
        for specs, flags in ((out_specs, nonzero), (in_specs, linear))]
    with _within(params):
        if params["check_vma"]:
            pulled = transpose_jaxpr(closed, linear, nonzero)
        else:
            sizes = params["mesh"].shape
            pulled = _transposed_untyped(
                closed, linear, nonzero,
                tuple([math.prod([sizes[a] for a in _unmentioned(s, params)])
                       for s in given_specs]),
                tuple([_unmentioned(s, params) for s in linear_specs]))
    known = negated(linear)
    outs = bind_closed(
        pulled.jaxpr, [*selected(operands, known), *selected(cts, nonzero)], params,
        [*selected(in_specs, known), *given_specs], selected(linear_specs, pulled.nonzero))
    return with_cotangents(operands, pulled.nonzero, iter(outs))


# -- batching --------------------------------------------------------------------------------------


@derived
def _batched(closed: ClosedJaxpr, dims: Places, axis: Axis, varying: frozenset[Any]
             ) -> BatchedJaxpr:
    """The program of the examples that each device has; those vary along more axes of the mesh."""
    found: Places = ()

    def fun(*args: Any) -> list[Any]:
        nonlocal found
        outs, out = batch_flat(jaxpr_as_fun(closed), args, dims, axis)
        found = tuple(out)
        return outs

    avals = [a if d is None else with_varying(batched_aval(a, d, axis),
                                              varying_axes(a) | varying)
             for a, d in zip(closed.in_avals, dims, strict=True)]
    return BatchedJaxpr(trace_to_jaxpr(fun, avals, closed.debug_info), found)


def _batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
    axis = trace.axis
    spmd = axes_of(axis.sharding.spec if axis.sharding is not None else
                   axis.spmd_name if isinstance(axis.spmd_name, tuple) else (axis.spmd_name,))
    names = tuple([n for n in spmd if n in params["newly_manual_axes"]])
    if names:
        if any([not set(axes_of(s)).isdisjoint(names) for s in params["in_specs"]]):
            raise ValueError("vmap spmd_axis_name cannot appear in shard_map in_specs, got "
                             f"{tuple(names)} and {params['in_specs']}")
        if any([not set(axes_of(s)).isdisjoint(names) for s in params["out_specs"]]):
            raise ValueError("vmap spmd_axis_name cannot appear in shard_map out_specs, got "
                             f"{tuple(names)} and {params['out_specs']}")
        parts = math.prod([params["mesh"].shape[n] for n in names])
        if axis.size % parts:
            raise ValueError(f"vmap: the mapped axis of size {axis.size} cannot be cut into "
                             f"{parts} parts along {names}")
        rest = tuple([n for n in spmd if n not in params["newly_manual_axes"]])
        axis = Axis(axis.name, axis.size // parts, sharding=axis.sharding.update(
            spec=PartitionSpec(rest)) if rest and axis.sharding is not None else None)
    with _within(params):
        batched = _batched(params["jaxpr"], tuple(dims), axis,
                           frozenset(names if params["check_vma"] else ()))
    results = bind_closed(
        batched.jaxpr, operands, params,
        [_inserted(s, d, names) for s, d in zip(params["in_specs"], dims, strict=True)],
        [_inserted(s, d, names) for s, d in zip(params["out_specs"], batched.dims, strict=True)])
    return results, batched.dims


def _inserted(spec: PartitionSpec, dim: int | None, names: tuple[Any, ...]) -> PartitionSpec:
    """A spec of examples as that of batches."""
    if dim is None or (len(spec) <= dim and not names):
        return spec
    entries = [*spec, *[None] * (dim - len(spec))]
    entries.insert(dim, names or None)
    return spec.update(partitions=entries)


# -- dead code, rematerialization, checks ----------------------------------------------------------


def _dce(eqn: JaxprEqn, used: tuple[bool, ...]) -> JaxprEqn:
    params = eqn.params
    closed: ClosedJaxpr = params["jaxpr"]
    live = live_inputs(closed, used)
    part = part_of(closed, used, live)
    if part is closed:
        return eqn
    new = _derived_params(params, part, selected(params["in_specs"], live),
                          selected(params["out_specs"], used))
    return eqn.replace(invars=selected(eqn.invars, live), outvars=selected(eqn.outvars, used),
                       params=new, effects=_effects(new))


def _cut(eqn: JaxprEqn, policy: Policy, needed: Flags) -> CutEqn:
    params = eqn.params
    closed: ClosedJaxpr = params["jaxpr"]
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    n, places = len(eqn.outvars), len(eqn.invars)
    with _within(params):
        cut = cut_jaxpr(closed, policy, (True,) * n, needed)
        inner = [v.aval for v in cut.known.outvars[n:]]
        results = selected(eqn.outvars, needed)
        same = results_saved(cut, len(inner), results)
        specs = [selected(out_specs, needed)[_index(results, same[i])] if i in same
                 else _residual_spec(a, params) for i, a in enumerate(inner)]
        extra = tuple([i not in same for i in range(len(inner))])
        scalars = tuple([e and _is_cut_scalar(a, s)
                         for e, a, s in zip(extra, inner, specs, strict=True)])
        known = with_vectors(cut.known, (False,) * places, (False,) * n + scalars)
        known = part_of(known, (True,) * n + extra, (True,) * places)
        saved = [same[i] if i in same else Var(global_aval(
            a.update(shape=(1,)) if scalars[i] else a, specs[i], params["mesh"],
            params["newly_manual_axes"])) for i, a in enumerate(inner)]
        rest = tuple([v not in saved for v in results])
        again = part_of(cut.again, rest, (True,) * len(cut.again.invars))
        again = with_vectors(again, scalars + (False,) * len(cut.forwarded), (False,) * sum(rest))
    new = _derived_params(params, known, in_specs, [*out_specs, *selected(specs, extra)])
    known_eqn = eqn.replace(outvars=[*eqn.outvars, *selected(saved, extra)], params=new,
                            effects=_effects(new))
    if not any(rest) and not again.effects:
        return CutEqn(known_eqn, saved, None)
    new = _derived_params(params, again, [*specs, *[in_specs[i] for i in cut.forwarded]],
                          selected(selected(out_specs, needed), rest))
    return CutEqn(known_eqn, saved, eqn.replace(
        invars=[*saved, *[eqn.invars[i] for i in cut.forwarded]], outvars=selected(results, rest),
        params=new, effects=_effects(new)))


def _index(xs: Sequence[Any], x: Any) -> int:
    return next(i for i, y in enumerate(xs) if y is x)


def _effects(params: Params) -> Effects:
    own = params["newly_manual_axes"]
    return frozenset([e for e in params["jaxpr"].effects
                      if not (type(e) is NamedAxisEffect and e.name in own)])


def _thread(eqn: JaxprEqn, token: Atom, after: Var) -> list[JaxprEqn]:
    """The token is the same on all devices, each of which goes through its effects in order."""
    params = eqn.params
    new = _derived_params(params, threaded(params["jaxpr"]), (WHOLE, *params["in_specs"]),
                          (WHOLE, *params["out_specs"]))
    return [eqn.replace(invars=[token, *eqn.invars], outvars=[after, *eqn.outvars], params=new)]


def _check(eqn: JaxprEqn) -> None:
    params = eqn.params
    names = params["newly_manual_axes"]
    given = [Var(local_aval(v.aval, s, params["mesh"], names, params["check_vma"]))
             for v, s in zip(eqn.invars, params["in_specs"], strict=True)]
    check_operands("shard_map", given, params["jaxpr"].in_avals)


def _shape_rule(*avals: Any, **params: Any) -> list[ShapedArray]:
    return _out_avals(params)


# -- references ------------------------------------------------------------------------------------


def _discharge(operands: Sequence[Any], params: Params, derivable: bool) -> list[Any]:
    """The new values of references lie as the references do."""
    closed: ClosedJaxpr = params["jaxpr"]
    check_distinct(closed, operands)
    with _within(params):
        found = discharged(closed, tuple([isinstance(x, Box) for x in operands]), derivable)
    n = len(closed.outvars)
    specs = selected(params["in_specs"], found.written)
    if params["check_vma"]:
        for aval, spec in zip(found.jaxpr.out_avals[n:], specs, strict=True):
            beyond = (varying_axes(aval) & params["newly_manual_axes"]).difference(axes_of(spec))
            if beyond:
                raise ValueError(
                    f"shard_map: a reference that is cut as {spec} is written a value of type "
                    f"{aval.str_short()}, which varies along {sorted(map(str, beyond))}, too. Name "
                    "these axes in the spec of the reference, or reduce the value over them.")
    outs = bind_closed(found.jaxpr, values_of(operands), params, params["in_specs"],
                       [*params["out_specs"], *specs])
    store(operands, found.written, outs[n:])
    return outs[:n]


# -- on values -------------------------------------------------------------------------------------

_programs = BoundedDict(256)  # by what they compute: each call of a mapped function traces it anew


def _impl(*operands: Any, **params: Any) -> list[Any]:
    closed: ClosedJaxpr = params["jaxpr"]
    avals = tuple(map(get_aval, operands))
    key = avals, contents(closed), *[params[k] for k in _BORDER]
    program = None if key[1] is None else _programs.get(key)
    if program is None:
        _check_places(operands, params["mesh"])
        program = single_eqn_jaxpr(shard_map_p, avals, params)
        if key[1] is not None:
            _programs[key] = program
    outs = call(program, "shard_map", *operands)
    return [_named(x, params["mesh"], s) for x, s in zip(outs, params["out_specs"], strict=True)]


def _check_places(operands: Sequence[Any], mesh: Any) -> None:
    """Raise ValueError for an array that has been put on one device of several."""
    for x in operands:
        if type(x) is ArrayImpl and x._committed and x.sharding.num_devices == 1 < mesh.size:
            raise ValueError(
                "device_put with explicit device not allowed within shard_map-decorated functions, "
                f"nor what it has made among their arguments, but got {x.aval.str_short()} on "
                f"{next(iter(x.sharding.device_set))}, while the function is for the devices of "
                f"{mesh}. Call device_put without a device, or with a sharding over the mesh.")


def _named(x: Any, mesh: Any, spec: PartitionSpec) -> Any:
    """The result, whose sharding has the spec as it was given."""
    found = x.sharding
    if type(x) is not ArrayImpl or found.spec == spec or (
            mesh.abstract_mesh != found.mesh.abstract_mesh):
        return x
    named = NamedSharding(found.mesh, spec, memory_kind=found.memory_kind)
    return device_put(x, named) if named.is_equivalent_to(found, x.ndim) else x


_BORDER = ("mesh", "in_specs", "out_specs", "check_vma", "newly_manual_axes")


def _count(counted: Any, params: Params, times: int) -> None:
    """Each of the devices runs the program."""
    sizes = params["mesh"].shape
    counted.program(params["jaxpr"], times * math.prod(
        [sizes[name] for name in params["newly_manual_axes"]]))



shard_map_p: Primitive = register(Primitive(
    "shard_map", count=_count, multiple_results=True, cached=False, shape_rule=_shape_rule,
    effects=_effects,
    jvp=_jvp, linearize=_linearize, split=_split, transpose=_transpose, batch_axis=_batch,
    dce=_dce, cut=_cut, thread=_thread, check=_check, within=_within, discharge=_discharge,
    impl=_impl, placed=lambda params: (params["mesh"],),
    physical=lambda avals, *operands, **params: shard_map_p.bind(*operands, **params),
))

