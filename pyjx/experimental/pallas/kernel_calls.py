"""`pallas_call`: a kernel that runs for each program of a grid on blocks of arrays; and
`kernel`, one that the cores of a mesh run on whole arrays.

As a program on values, which is how it is interpreted, derived and batched, a call is a loop over
the grid: the blocks of a program are read, the kernel runs on their values, with its references
discharged, and what it has written goes back into the arrays.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.arithmetic import Runs
from pyjx.core.avals import AbstractRef, ShapedArray, SymbolicDim, get_aval
from pyjx.core.derived import derived
from pyjx.core.effects import Effects, RefEffect, axis_names, reads
from pyjx.core.evaluation import all_eqns, jaxpr_as_fun, program_of
from pyjx.core.integers import as_int
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal
from pyjx.core.options import Inline
from pyjx.core.places import joined
from pyjx.core.prefixes import structure_differences
from pyjx.core.primitive import Holding, Primitive, register, vary
from pyjx.core.records import Record
from pyjx.core.source_info import summarize
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import at_front
from pyjx.engine.batching import BatchTrace, batch_flat
from pyjx.engine.discharge import Box, discharged, run
from pyjx.engine.functions import source_of
from pyjx.engine.types import Dims, Params, TreeDef
from pyjx.experimental.pallas.kernel_generators import GeneratorEffect, draws, with_generator
from pyjx.experimental.pallas.kernel_grids import (
    ANY,
    BlockMapping,
    BlockSpec,
    CostEstimate,
    Grid,
    GridMapping,
    GridSpec,
    MemorySpace,
    Place,
    RefLike,
    along,
    block_mapping,
    is_spec,
    no_block_spec,
    placed,
)
from pyjx.experimental.pallas.mosaic_calls import compiled, kept_effects
from pyjx.experimental.pallas.watched_kernels import watched, watches
from pyjx.lax.agreement import trace_function
from pyjx.lax.collectives import axis_index_p
from pyjx.lax.common import operand
from pyjx.lax.convert import convert_element_type, full
from pyjx.lax.fori import fori_loop
from pyjx.lax.joining import pad
from pyjx.lax.joining import slice as slice_of
from pyjx.lax.mapping import map as loop_map
from pyjx.lax.references import target_of
from pyjx.lax.shapes import reshape
from pyjx.lax.slicing import dynamic_slice, dynamic_update_slice
from pyjx.runtime.jit import jit
from pyjx.runtime.signature import names_when_asked
from pyjx.tree_util import (
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_map,
    tree_structure,
    tree_unflatten,
)

_INDEX = ShapedArray((), np.dtype(np.int32))


class Alias(Record):
    """A result that has an argument's memory, and its values until it is written."""

    input: int
    output: int


# -- the operation ---------------------------------------------------------------------------------


def uninitialized(aval: Any) -> Any:
    """An array of values that nobody is to rely on: NaN, the least integers, False."""
    dtype = aval.dtype
    if dtypes.issubdtype(dtype, np.inexact):
        value: Any = np.nan
    else:
        value = dtypes.iinfo(dtype).min if dtype.kind in "iu" else 0
    return vary(full(aval.shape, value, dtype), aval.place.mat.varying)


def scratch_value(ref: AbstractRef) -> Any:
    """What scratch space holds first; semaphores begin with 0."""
    if getattr(ref.memory_space, "value", "") == "semaphore_mem":
        return vary(full(ref.shape, 0, ref.dtype), ref.place.mat.varying)
    return uninitialized(ref.inner_aval)


@derived
def _program(kernel: ClosedJaxpr, mapping: GridMapping, aliases: tuple[Alias, ...]) -> ClosedJaxpr:
    """The call as a program on values: the sizes of the grid that are traced, the arguments that
    are fetched before, and the others, to the results."""
    blocks, rank = mapping.block_mappings, len(mapping.grid)
    fetched_avals = [a.inner_aval for a in _refs(kernel, mapping)[:mapping.num_index_operands]]
    ins, outs = blocks[:mapping.num_inputs], blocks[mapping.num_inputs:]

    def fun(*operands: Any) -> list[Any]:
        dynamic = mapping.num_dynamic_grid_bounds
        bounds = iter(operands[:dynamic])
        sizes = [next(bounds) if n is None else n for n in mapping.grid]
        fetched = operands[dynamic:dynamic + len(fetched_avals)]
        inputs = operands[dynamic + len(fetched_avals):]
        body = discharged(kernel, (False,) * (dynamic + rank) + (True,) * (
            len(kernel.in_avals) - dynamic - rank))
        started = {alias.output: operands[dynamic + alias.input] for alias in aliases}
        arrays = [_padded(m, x) for m, x in zip(ins, inputs, strict=True)]
        arrays += [_padded(m, started[k] if k in started else uninitialized(m.array))
                   for k, m in enumerate(outs)]
        scratch = list(map(scratch_value, mapping.scratch))
        written = body.written[dynamic + rank:]

        def step(k: Any, state: Any) -> Any:
            fetched, arrays, scratch = state
            ids = indices(convert_element_type(k, np.int32), sizes)
            starts = [m.starts(run(m.index_map, [*ids, *map(Box, fetched)], False)) for m in blocks]
            values = [_block(m, x, s) for m, x, s in zip(blocks, arrays, starts, strict=True)]
            given = [*fetched, *values, *scratch]
            out = iter(jaxpr_as_fun(body.jaxpr)(*operands[:dynamic], *ids, *given))
            new = [next(out) if w else x for w, x in zip(written, given, strict=True)]
            first, last = len(fetched), len(fetched) + len(blocks)
            arrays = [_put(m, x, b, s) if w else x for m, x, b, s, w in zip(
                blocks, arrays, new[first:last], starts, written[first:last], strict=True)]
            for i, k in aliases:  # what is written to a result is read of its argument
                i -= first
                arrays[i] = _padded(ins[i], _cut(outs[k], arrays[len(ins) + k]))
            return new[:first], arrays, new[last:]

        total = reduce(operator.mul, sizes) if sizes else 1
        state = fori_loop(0, total, step, (list(fetched), arrays, scratch))
        return [_cut(m, x) for m, x in zip(outs, state[1][len(ins):], strict=True)]

    return trace_to_jaxpr(fun, _operand_avals(kernel, mapping),
                          kernel.debug_info.with_unknown_names())


def _differing(jaxpr: Jaxpr, given: Sequence[bool]) -> list[bool]:
    """Which results may be others on each device of a mesh, where some of what is given may.

    Raises:
      NotImplementedError: devices meet, as in copies to others, where some may not come: there they
        would wait for ever.
    """
    apart = {v for v, differs in zip(jaxpr.invars, given, strict=True) if differs}
    for eqn in jaxpr.eqns:
        here = [type(v) is not Literal and v in apart for v in eqn.invars]
        holder, program = eqn.primitive.holder, program_of(eqn.primitive, eqn.params)
        if holder.held is not None:
            outs = _held_differing(eqn, here)
        elif program is not None:
            outs = _differing(program.jaxpr, here)
        else:
            read = not reads.isdisjoint(eqn.effects) or bool(axis_names(eqn.effects))
            outs = [read or any(here)] * len(eqn.outvars)
        apart.update([v for v, differs in zip(eqn.outvars, outs, strict=True) if differs])
    return [type(v) is not Literal and v in apart for v in jaxpr.outvars]


def _held_differing(eqn: JaxprEqn, here: Sequence[bool]) -> list[bool]:
    holder, held = eqn.primitive.holder, eqn.primitive.holder.held(eqn.params)
    before, ins, outs = here[:held.head], list(here[held.head:]), [False] * len(eqn.outvars)
    carry = slice(held.first, held.first + held.carry)
    for _ in range(1 + held.carry):  # what differs grows in the carry
        outs = [*map(any, zip(*[_differing(p.jaxpr, ins) for p in held.programs], strict=True))]
        ins[carry] = [*map(operator.or_, ins[carry], outs)]
    if holder.loops:
        asked = [*before, *ins[carry]]
        alone = any([_differing(c.jaxpr, asked)[0] for c in holder.conditions(eqn.params)])
    else:
        alone = any(before)
    if alone and any([axis_names(e.effects) and e.primitive is not axis_index_p
                      for p in held.programs for e in all_eqns(p)]):
        raise NotImplementedError(
            "pallas_call: devices meet in an interpreted kernel as they send to others, and here "
            "some may not come, by a condition that differs from device to device. Let all do it: "
            f"those that have nothing to send may send to themselves. {summarize(eqn.source_info)}")
    return [alone or differs for differs in outs]


def _operand_avals(kernel: ClosedJaxpr, mapping: GridMapping) -> list[Any]:
    """The types of what a call takes."""
    fetched = _refs(kernel, mapping)[:mapping.num_index_operands]
    ins = mapping.block_mappings[:mapping.num_inputs]
    return [*[_INDEX] * mapping.num_dynamic_grid_bounds, *[a.inner_aval for a in fetched],
            *[m.array for m in ins]]


def _refs(kernel: ClosedJaxpr, mapping: GridMapping) -> list[Any]:
    """The types of the kernel's references."""
    return kernel.in_avals[mapping.num_dynamic_grid_bounds + len(mapping.grid):]


def indices(k: Any, sizes: Sequence[Any]) -> list[Any]:
    """Those of the k-th program of the grid, whose last axis runs fastest."""
    found: list[Any] = []
    for n in reversed(sizes):
        found.insert(0, k % n if len(found) + 1 < len(sizes) else k)
        k = k // n
    return found


def _padded(mapping: BlockMapping, x: Any) -> Any:
    if not any([sum(sides) for sides in mapping.padding]):
        return x
    unknown = uninitialized(ShapedArray((), mapping.array.dtype))
    return pad(x, unknown, [(*sides, 0) for sides in mapping.padding])


def _cut(mapping: BlockMapping, x: Any) -> Any:
    lows = [low for low, _ in mapping.padding]
    if get_aval(x).shape == mapping.array.shape:
        return x
    return slice_of(x, lows, [low + n for low, n in zip(lows, mapping.array.shape, strict=True)])


def _block(mapping: BlockMapping, x: Any, starts: Sequence[Any]) -> Any:
    return reshape(dynamic_slice(x, starts, mapping.sizes), mapping.ref_aval.shape)


def _put(mapping: BlockMapping, x: Any, block: Any, starts: Sequence[Any]) -> Any:
    return dynamic_update_slice(x, reshape(block, mapping.sizes), starts)


def _stands_for(params: Params) -> ClosedJaxpr:
    """The call by other operations: a loop over the grid or, for TPUs, the compiled kernel."""
    kernel, mapping = params["jaxpr"], params["grid_mapping"]
    if params["interpret"]:
        _differing(kernel.jaxpr, [False] * len(kernel.in_avals))
        aliases = params["input_output_aliases"]
        if draws(kernel):
            kernel, mapping = with_generator(kernel, mapping)
        if watches(params["interpret"]):
            name = params["name"] or kernel.debug_info.func_src_info
            return _program(*watched(kernel, mapping, frozenset([a.output for a in aliases]), name,
                                     params["interpret"]), aliases)
        return _program(kernel, mapping, aliases)
    return trace_to_jaxpr(lambda *operands: compiled(params, operands),
                          _operand_avals(kernel, mapping),
                          kernel.debug_info.with_unknown_names())


def _arithmetic(eqn: JaxprEqn) -> list[Runs]:
    return [Runs(eqn.params["jaxpr"], eqn.params["grid_mapping"].known_programs)]


def _effects(params: Params) -> Effects:
    return kept_effects(params) | {
        e for e in params["jaxpr"].effects if not isinstance(e, (RefEffect, GeneratorEffect))}


def _batch(trace: BatchTrace, operands: Sequence[Any], dims: Dims, **params: Any) -> Any:
    """A compiled kernel has a grid of one axis more. One that is interpreted is a loop of batches;
    where indices depend on the example, it is a loop over the examples."""
    mapping, axis = params["grid_mapping"], trace.axis
    if watches(params["interpret"]):
        raise NotImplementedError("vmap of a pallas_call that is watched (detect_races) is not "
                                  "there: a kernel is watched alone. Call it in a loop.")
    if params["interpret"]:
        return batch_flat(jaxpr_as_fun(_stands_for(params)), operands, dims, axis)
    values = [x if d is None else at_front(x, d, axis) for x, d in zip(operands, dims, strict=True)]
    shared = mapping.num_dynamic_grid_bounds
    for alias in params["input_output_aliases"]:  # each example has its own
        k = shared + alias.input
        values[k] = at_front(values[k], dims[k], axis)
        dims = [*dims[:k], 0, *dims[k + 1:]]
    batched = [d is not None for d in dims]
    first = shared + mapping.num_index_operands
    if any(batched[:first]) or any([m.is_whole for m in mapping.block_mappings]):
        def one(xs: Any) -> list[Any]:
            given = iter(xs)
            return pallas_call_p.bind(  # type: ignore[no-any-return]
                *[next(given) if b else x for x, b in zip(values, batched, strict=True)], **params)

        outs = loop_map(one, [x for x, b in zip(values, batched, strict=True) if b])
        return outs, [0] * len(outs)
    outs = pallas_call_p.bind(*values, **_of_batch(params, batched[first:], axis.size))
    return outs, [0] * len(outs)


def _of_batch(params: Params, batched: Sequence[bool], size: int) -> Params:
    """The parameters of the call of all examples, whose number in the grid comes first."""
    kernel, mapping = params["jaxpr"], params["grid_mapping"]
    dynamic = mapping.num_dynamic_grid_bounds
    avals = [*kernel.in_avals[:dynamic], _INDEX, *kernel.in_avals[dynamic:]]
    whole = trace_to_jaxpr(
        lambda *xs: jaxpr_as_fun(kernel)(*xs[:dynamic], *xs[dynamic + 1:]), avals,
        kernel.debug_info.with_unknown_names())
    flags = [*batched, *[True] * mapping.num_outputs]
    blocks = tuple([m.of_batch(size, b)
                    for m, b in zip(mapping.block_mappings, flags, strict=True)])
    options = params["compiler_params"]
    if getattr(options, "dimension_semantics", None):
        options = dataclasses.replace(
            options, dimension_semantics=("parallel", *options.dimension_semantics))
    return {**params, "jaxpr": whole, "compiler_params": options, "grid_mapping": mapping._replace(
        grid=(size, *mapping.grid), block_mappings=blocks),
        "out_avals": tuple([a.update(shape=(size, *a.shape)) for a in params["out_avals"]])}


pallas_call_p = register(Primitive(
    "pallas_call", multiple_results=True, cached=False, effects=_effects, batch_axis=_batch,
    holder=Holding(stands_for=_stands_for), arithmetic=_arithmetic,
    shape_rule=lambda *avals, out_avals, **params: list(out_avals),
    decomposition=lambda *operands, **params: jaxpr_as_fun(_stands_for(params))(*operands)))


# -- the function ----------------------------------------------------------------------------------


def pallas_call(kernel: Callable[..., None], out_shape: Any, *, grid_spec: GridSpec | None = None,
                grid: Grid = (), in_specs: object = no_block_spec,
                out_specs: object = no_block_spec, scratch_shapes: object = (),
                input_output_aliases: Mapping[int, int] = {}, debug: bool = False,
                interpret: object = False, name: str | None = None, compiler_params: object = None,
                cost_estimate: CostEstimate | None = None, metadata: dict[str, str] | None = None
               ) -> Callable[..., Any]:
    """The function that runs a kernel for each program of a grid.

    The kernel gets a reference to a block of each argument, then of each result, then to scratch
    space that all programs share; it reads and writes these and returns nothing. Programs run one
    after the other, the last axis of the grid fastest, so that a block which several of them get
    has what the one before wrote. Elements of results that no program writes, and of blocks that
    stick out of an array, have no known values: NaN where it is interpreted.

    Args:
      kernel: takes references: `kernel(*in_refs, *out_refs, *scratch_refs)`.
      out_shape: a tree of `jax.ShapeDtypeStruct`, of what the function returns.
      grid_spec: a `GridSpec`, in the place of the next arguments up to `scratch_shapes`.
      grid: the sizes of the grid's axes: a tuple, or an int for one; sizes may be traced, or pairs
        of a name and a size. `()` is one program.
      in_specs: a tree of `BlockSpec`, as that of the arguments; whole arrays by default.
      out_specs: the same for the results.
      scratch_shapes: memories with shapes, a sequence, or a dict for arguments by name.
      input_output_aliases: which argument has the memory of which result, by their positions in
        flat lists, and so gives it its first values.
      debug: accepted.
      interpret: make XLA's operations of the kernel, on any platform.
      name: what jaxprs and profiles call it; the kernel's name by default.
      compiler_params, cost_estimate, metadata: what compilers are told.

    Raises:
      ValueError: specs and arguments, or results, have other structures; blocks have other ranks
        than their arrays; the kernel returns something, or closes over traced values; without
        `interpret` on a CPU.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> def double(x_ref, out_ref):
    ...     out_ref[...] = 2 * x_ref[...]
    ...
    >>> rows = pl.BlockSpec((2, 4), lambda i: (i, 0))
    >>> x = jax.numpy.arange(16.0).reshape(4, 4)
    >>> doubled = pl.pallas_call(double, out_shape=x, grid=2, in_specs=[rows], out_specs=rows,
    ...                          interpret=True)
    >>> doubled(x)[3].tolist()
    [24.0, 26.0, 28.0, 30.0]
    """
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        for what, given, usual in (("grid", grid, ()), ("in_specs", in_specs, no_block_spec),
                                   ("out_specs", out_specs, no_block_spec),
                                   ("scratch_shapes", scratch_shapes, ())):
            if given is not usual and given != usual:
                raise ValueError(f"If `grid_spec` is specified, then `{what}` must be `{usual}`. "
                                 f"It is {given}")
    described = _results(out_shape)
    options = {"debug": debug, "compiler_params": compiler_params, "cost_estimate": cost_estimate,
               "metadata": metadata, "mesh": None}
    spec, aliases = grid_spec, tuple([Alias(*pair) for pair in input_output_aliases.items()])

    @partial(jit, static_argnums=0, inline=Inline.JAX_EARLY)
    def run(interpret: object, *args: Any) -> Any:
        call = _traced(kernel, spec, described, aliases, name, args)
        flat = tree_flatten(args)[0]
        outs = pallas_call_p.bind(*call.bounds, *flat, jaxpr=call.kernel, grid_mapping=call.mapping,
                                  input_output_aliases=aliases, out_avals=call.out_avals, name=name,
                                  interpret=interpret, **options)
        return tree_unflatten(described.tree, outs)

    return lambda *args: run(interpret or interpreted(), *args)


def interpreted() -> Any:
    """How kernels are interpreted that do not say it, False if they are not."""
    return configuration.interpret_kernels.value and configuration.interpreter.value


class _Results(Record):
    """What a call returns: the types of its leaves, how messages call them, and its structure."""

    avals: tuple[ShapedArray, ...]
    origins: tuple[str, ...]
    tree: TreeDef


def _results(out_shape: Any) -> _Results:
    if isinstance(out_shape, list):
        out_shape = tuple(out_shape)
    leaves, tree = tree_flatten_with_path(out_shape)
    avals = []
    for _, leaf in leaves:
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            raise ValueError(f"Invalid out_shape type: {type(leaf)}. Give a jax.ShapeDtypeStruct "
                             "for each result.")
        avals.append(ShapedArray(tuple(leaf.shape), leaf.dtype))
    return _Results(tuple(avals), tuple([f"outputs{keystr(path)}" for path, _ in leaves]), tree)


class _Traced(Record):
    """A kernel, traced, with what it is run on: the traced sizes of the grid, and its blocks."""

    kernel: ClosedJaxpr
    mapping: GridMapping
    bounds: tuple[Any, ...]
    out_avals: tuple[ShapedArray, ...]


def _traced(kernel: Callable[..., None], spec: GridSpec, results: _Results,
            aliases: Sequence[Alias], name: str | None, args: tuple[Any, ...]) -> _Traced:
    leaves, tree = tree_flatten_with_path(args)
    avals = [get_aval(operand("pallas_call", x)) for _, x in leaves]
    origins = [f"args{keystr(path)}" for path, _ in leaves]
    for aval, name in [*zip(avals, origins, strict=True),
                       *zip(results.avals, results.origins, strict=True)]:
        if any([isinstance(n, SymbolicDim) for n in aval.shape]):
            raise NotImplementedError(f"pallas_call: {name} is {aval.str_short()}, and sizes in "
                                      "kernels are numbers. Export a program for each size.")
    axes = joined(avals)  # along which what the kernel writes varies
    results = results._replace(avals=tuple([a.varying(axes) for a in results.avals]))
    fetched = len(tree_flatten(args[:spec.num_scalar_prefetch])[0])
    _check_aliases(aliases, avals, fetched, results)
    sizes = _axes(spec.grid)
    fetched_refs = [AbstractRef(a.strip_weak_type(), MemorySpace.INDEX) for a in avals[:fetched]]
    if isinstance(spec.in_specs, BlockSpec):
        raise ValueError(f"`in_specs` must be a tuple or a list. Found: {spec.in_specs}. Give a "
                         "list: in_specs=[spec].")
    if _is_memory(spec.scratch_shapes):
        raise TypeError("`scratch_shapes` must be a tuple or a list. Found: "
                        f"{spec.scratch_shapes}. Give a list: scratch_shapes=[memory].")
    in_specs = _flat_specs("in_specs", spec.in_specs, "inputs", args[spec.num_scalar_prefetch:])
    out_specs = _flat_specs("out_specs", spec.out_specs, "out_shape",
                            tree_unflatten(results.tree, results.avals))
    arrays = [*avals[fetched:], *results.avals]
    mappings = tuple([
        block_mapping(s, a.strip_weak_type(), o, len(sizes), fetched_refs) for s, a, o in zip(
            [*in_specs, *out_specs], arrays, [*origins[fetched:], *results.origins], strict=True)])
    scratch, scratch_tree = tree_flatten(spec.scratch_shapes, is_leaf=_is_memory)
    mapping = GridMapping(
        tuple([None if isinstance(n, Tracer) else n for n in sizes]), mappings, fetched,
        len(in_specs), tuple([scratch_type(x).varying(axes) for x in scratch]))
    refs: list[Any] = [*fetched_refs, *[m.ref_aval for m in mappings], *mapping.scratch]
    bounds = tuple([n for n in sizes if isinstance(n, Tracer)])
    def run_kernel(*inputs: Tracer) -> list[Tracer]:
        with along(axes):
            return _run_kernel(kernel, mapping, tree, results.tree, scratch_tree, *inputs)

    inputs: list[Any] = [_INDEX] * (len(bounds) + len(sizes)) + refs
    names = names_when_asked(kernel, tree_structure(
        _arguments(tree, results.tree, scratch_tree, range(len(refs)))))
    named = DebugInfo("pallas_call", source_of(kernel),
                      lambda: ("",) * (len(inputs) - len(refs)) + names())
    run_kernel.debug_info = lambda _: named  # type: ignore[attr-defined]
    traced = trace_function("pallas_call", "kernel", run_kernel,
                            tree_structure((0,) * len(inputs)), inputs, unpacked=True)
    where = source_of(kernel)
    if traced.out_tree != tree_structure(None):
        raise ValueError(f"The kernel function in the pallas_call {where} should return None. It "
                         f"returns a PyTree: {traced.out_tree}. What it makes it writes into its "
                         "output references: o_ref[...] = value.")
    # Arrays that are made in it, such as ranges, may be constants.
    captured = [get_aval(c) for c in traced.closed.consts if isinstance(c, Tracer)]
    if captured:
        raise ValueError(f"The kernel function in the pallas_call {where} captures constants "
                         f"[{', '.join([a.str_short(short_dtypes=True) for a in captured])}]. You "
                         "should pass them as inputs.")
    return _Traced(traced.closed.replace(debug_info=named), mapping, bounds, results.avals)


@contextmanager
def pallas_export_experimental(dynamic_shapes: bool) -> Iterator[None]:
    """A context in which kernels are exported: as elsewhere.

    Args:
      dynamic_shapes: whether sizes are symbolic: they may not be.
    """
    if dynamic_shapes:
        raise NotImplementedError("pallas_export_experimental: sizes in kernels are numbers. "
                                  "Export a program for each size.")
    yield


def _run_kernel(kernel: Callable[..., None], mapping: GridMapping, in_tree: TreeDef,
                out_tree: TreeDef, scratch_tree: TreeDef, *inputs: Any) -> Any:
    """The kernel on flat inputs: the traced sizes of the grid, the indices, and the references."""
    dynamic, rank = mapping.num_dynamic_grid_bounds, len(mapping.grid)
    bounds, ids = iter(inputs[:dynamic]), inputs[dynamic:dynamic + rank]
    sizes = [next(bounds) if n is None else n for n in mapping.grid]
    args, named = _arguments(in_tree, out_tree, scratch_tree, inputs[dynamic + rank:])
    with placed(Place(ids, sizes)):
        return kernel(*args, **named)


def _arguments(in_tree: TreeDef, out_tree: TreeDef, scratch_tree: TreeDef, refs: Sequence[Any]
               ) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a kernel is called with: its references, and scratch space that is given by names."""
    first = in_tree.num_leaves
    last = first + out_tree.num_leaves
    args = tree_unflatten(in_tree, refs[:first])
    outs = tree_unflatten(out_tree, refs[first:last])
    scratch = tree_unflatten(scratch_tree, refs[last:])
    named = scratch if isinstance(scratch, dict) else {}
    return (*args, *(outs if isinstance(outs, tuple) else (outs,)),
            *(() if named else scratch)), named


def _axes(grid: Grid) -> list[Any]:
    """The sizes of the axes of a grid."""
    axes = grid if isinstance(grid, (tuple, list)) else (grid,)
    if len(axes) == 2 and isinstance(axes[0], str):
        axes = (axes,)
    sizes = [axis[1] if isinstance(axis, (tuple, list)) else axis for axis in axes]
    if any([isinstance(n, str) for n in sizes]):
        raise TypeError("pallas_call: grid must be an integer or a tuple of integers, got "
                        f"{grid!r}.")
    sizes = [convert_element_type(n, np.int32) if isinstance(n, Tracer) else as_int(
        "pallas_call", "grid", n) for n in sizes]
    if any([isinstance(n, int) and n < 0 for n in sizes]):
        raise ValueError(f"pallas_call: sizes of the grid must not be negative, got {grid}.")
    return sizes


def _check_aliases(aliases: Sequence[Alias], avals: Sequence[ShapedArray], fetched: int,
                   results: _Results) -> None:
    for alias in aliases:
        if alias.input < fetched:
            raise ValueError(f"input_output_aliases: argument {alias.input} is fetched before, and "
                             "shares no memory with a result. Leave it out.")
        mapping = f"input_output_aliases contains the mapping '{alias.input}:{alias.output}' with"
        for what, k, n in (("input", alias.input, len(avals)),
                           ("output", alias.output, len(results.avals))):
            if not 0 <= k < n:
                raise ValueError(f"{mapping} {what} index {k} outside the range [0, {n})")
        one, other = avals[alias.input], results.avals[alias.output]
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            raise ValueError(f"{mapping} an input of type {one.str_short()} and an output of type "
                             f"{other.str_short()}. They share memory: give both one type.")


def _flat_specs(what: str, specs: Any, other: str, values: Any) -> list[Any]:
    """The specs of a tree of values, in order."""
    tree = tree_structure(values)
    if specs is no_block_spec:
        return [no_block_spec] * tree.num_leaves
    if isinstance(specs, list):
        specs = tuple(specs)
    leaves, own = tree_flatten(specs, is_leaf=is_spec)
    if own != tree:
        found = [f"\n    * {f'at {keystr(path)}, ' if path else ''}`{what}` is a {one} but "
                 f"`{other}` is a {two}, so {why}"
                 for path, one, two, why in structure_differences(own, tree)]
        raise ValueError(f"Pytree for `{what}` and `{other}` do not match. There are {len(found)} "
                         f"mismatches, including:{''.join(found)}")
    return leaves


def _is_memory(x: object) -> bool:
    return hasattr(x, "get_ref_aval") or hasattr(x, "dtype")


def scratch_type(x: Any) -> AbstractRef:
    """The type of a reference to scratch space that a memory with a shape, a semaphore, or anything
    with a shape and a dtype describes."""
    if hasattr(x, "get_ref_aval"):
        return x.get_ref_aval()  # type: ignore[no-any-return]
    if not hasattr(x, "shape"):
        raise TypeError("pallas_call: scratch_shapes must be memories with shapes, such as "
                        f"pltpu.VMEM((8, 128), jnp.float32), got {shortened(x)}.")
    return AbstractRef(ShapedArray(tuple(x.shape), x.dtype), MemorySpace.ANY)


# -- kernels on the cores of a mesh ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TensorCoreMesh:
    """The cores of a chip, as an axis.

    Args:
      axis_name: the name of the axis.
      num_cores: how many cores there are.
    """

    axis_name: str
    num_cores: int = 1

    @property
    def shape(self) -> OrderedDict[str, int]:
        """The size of the axis by its name."""
        return OrderedDict({self.axis_name: self.num_cores})


def create_tensorcore_mesh(axis_name: str, devices: object = None, num_cores: int | None = None
                           ) -> TensorCoreMesh:
    """A `TensorCoreMesh`, of one core by default."""
    return TensorCoreMesh(axis_name=axis_name, num_cores=num_cores or 1)


def run_on_first_core(core_axis_name: str) -> Callable[[Callable[[], None]], None]:
    """Run the decorated function, at once, on the first core of an axis: kernels of one core are
    there.

    Args:
      core_axis_name: the name of the axis.
    """
    return lambda function: function()


def core_barrier(sem: RefLike, *, core_axis_name: str) -> None:
    """Let the cores of an axis meet: kernels of one core are there, which waits for nobody.

    Args:
      sem: a semaphore.
      core_axis_name: the name of the axis.
    """
    target_of("core_barrier", sem, None)


def kernel(body: Callable[..., None] | None = None, out_type: Any = (), *, mesh: Any,
           scratch_types: Any = (), compiler_params: object = None, interpret: object = False,
           cost_estimate: CostEstimate | None = None, debug: bool = False, name: str | None = None,
           metadata: dict[str, str] | None = None) -> Any:
    """The function that runs a kernel on each core of a mesh, with references to whole arrays.

    Args:
      body: takes references: `body(*in_refs, *out_refs, *scratch_refs)`; without it `kernel` gives
        a decorator.
      out_type: a tree of `jax.ShapeDtypeStruct`, of what the function returns.
      mesh: a `pltpu.TensorCoreMesh` of one core.
      scratch_types: memories with shapes, for references to scratch space.
      compiler_params, interpret, cost_estimate, debug, name, metadata: as of `pallas_call`.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> one = pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    >>> @pl.kernel(out_type=jax.ShapeDtypeStruct((2,), "float32"), mesh=one, interpret=True)
    ... def copy(x_ref, out_ref):
    ...     pltpu.sync_copy(x_ref, out_ref)
    ...
    >>> copy(jax.numpy.array([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """
    if not isinstance(mesh, TensorCoreMesh) or mesh.num_cores != 1:
        raise NotImplementedError(f"kernel: the mesh is {mesh!r}. Kernels of one core are there: "
                                  "give pltpu.TensorCoreMesh(axis_name=..., num_cores=1).")

    def made(body: Callable[..., None]) -> Callable[..., Any]:
        whole = BlockSpec(memory_space=ANY)

        def run(*args: Any) -> Any:
            return pallas_call(
                body, out_type, in_specs=tree_map(lambda _: whole, args),
                out_specs=tree_map(lambda _: whole, out_type), scratch_shapes=scratch_types,
                compiler_params=compiler_params, interpret=interpret, cost_estimate=cost_estimate,
                debug=debug, name=name, metadata=metadata)(*args)

        return run

    return made if body is None else made(body)
