"""From a closed jaxpr to its program: made physical, prepared and lowered.

It warns of large constants."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from lowering.program import LoweredProgram, lower
from lowering.shardings import ONE, Partitioning
from pyjx import configuration
from pyjx.core.avals import get_aval, nbytes
from pyjx.core.effects import is_ordered
from pyjx.core.frames import warn
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, Var, subjaxprs
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.passes.dce import dce
from pyjx.core.passes.outline import is_long
from pyjx.core.passes.outline import outline as with_functions
from pyjx.core.passes.tokens import threaded
from pyjx.core.source_info import summarize
from pyjx.core.trace import collector_paused
from pyjx.engine.axes import check_reductions
from pyjx.engine.decompose import are_few_by_elements, decompose
from pyjx.engine.metadata import metadata_as_programs
from pyjx.engine.one_cpu import for_one_cpu
from pyjx.engine.physical import physicalize
from pyjx.monitoring import timed
from pyjx.runtime import ledger
from pyjx.runtime.dumps import dump
from pyjx.runtime.placement import Placement
from pyjx.runtime.typed_shardings import types_as_constraints, with_open_results


def lower_closed(closed: ClosedJaxpr, name: str, *, donated: Sequence[bool] = (),
                 keep_unused: bool = False, platform: str | None = None,
                 placement: Placement | None = None, for_export: bool = False,
                 paths: Sequence[str] = (), fitted: Callable[..., Any] | None = None
                 ) -> LoweredProgram:
    """The program of a jaxpr for a placement, and for a platform: by default that of its devices;
    `for_export` writes constants into it, and leaves it in its functions. With `paths`, which
    messages call the arguments, it checks their shapes. `fitted` makes it fit into memory
    (runtime/budgets.py)."""
    if closed.consts and not for_export:
        warn_of_captured(closed)
    platform = platform or (placement.platform if placement and placement.devices else "cpu")
    ledger.note_lowering(closed, name)
    with timed("/jax/core/compile/jaxpr_to_mlir_module_duration", name) as time, \
            collector_paused():
        devices = () if placement is None else placement.devices
        alone = not for_export and len(devices) < 2
        decomposed = in_own_operations(closed, placement, platform, alone)
        prepared, keeps_barriers = as_lowered(decomposed, platform, alone, not for_export)

        def written(prepared: ClosedJaxpr) -> LoweredProgram:
            parts = ONE if placement is None else placement.partitioning(prepared.consts)
            return lower(prepared, name, platform=platform, donated=donated,
                         keep_unused=keep_unused, inline_constants=for_export, paths=paths,
                         partitioning=parts, devices=devices)

        fit = None
        if fitted is not None:
            fit = fitted(decomposed, prepared, name, donated=donated, platform=platform,
                         n_devices=len(devices) or 1, text=lambda: written(prepared).text)
            if fit.plan is not None:  # what calls of functions read stays until they end
                prepared = as_lowered(fit.closed, platform, alone, False)[0]
                keeps_barriers = keeps_barriers or platform == "cpu"
        program = written(prepared)
        program.keeps_barriers, program.fit = keeps_barriers, fit
        full = configuration.include_full_tracebacks_in_locations.value
        program.places = (configuration.traceback_in_locations_limit.value if full else 1,
                          configuration.hlo_source_file_canonicalization_regex.value)
    ledger.note_lowered(closed, name, time.seconds)
    if configuration.dump_ir_to.value:
        dump(closed, program, name)
    if program.unused_donations:
        _warn_of_unused(program.unused_donations)
    return program


# Is told the name of each pass, and the program after it.
Told = Callable[[str, ClosedJaxpr], object]


def _unheard(name: str, after: ClosedJaxpr) -> None:
    pass


def in_own_operations(closed: ClosedJaxpr, placement: Placement | None, platform: str,
                      alone: bool, told: Told = _unheard) -> ClosedJaxpr:
    """The program in operations that the platform has rules for; `alone`: for one device."""
    if placement is not None and placement.mesh is not None:
        closed = with_open_results(types_as_constraints(closed), closed.out_avals,
                                   placement.out_shardings)
        told("constrain", closed)
    if not configuration.allow_f16_reductions.value:
        check_reductions(closed.jaxpr)
    closed = physicalize(metadata_as_programs(closed))
    told("physicalize", closed)
    # XLA's partitioner knows how to cut a product, and what is exported is for all machines.
    with configuration.small_kernels(platform == "cpu" and alone
                                     and configuration.small_kernels.value
                                     and are_few_by_elements(closed)):
        closed = decompose(closed, platform)
    told("decompose", closed)
    return closed


def as_lowered(decomposed: ClosedJaxpr, platform: str, alone: bool, outline: bool,
               told: Told = _unheard) -> tuple[ClosedJaxpr, bool]:
    """The program as it is lowered, `outline`d or not, and whether its barriers count in loops."""
    mode, keeps_barriers = configuration.outline.value, False
    if alone and platform == "cpu":
        decomposed, keeps_barriers = for_one_cpu(decomposed)
        told("one-cpu", decomposed)
    return prepare(decomposed, outline=outline and (mode == "on" or (
        mode == "auto" and platform == "cpu" and is_long(decomposed))), told=told), keeps_barriers


def prepare(closed: ClosedJaxpr, *, outline: bool, told: Told = _unheard) -> ClosedJaxpr:
    """The program as it is lowered: without dead code and, with `outline`, with each repeated
    block as one function. With ordered effects it takes and gives a token first."""
    closed = dce(closed)
    told("dce", closed)
    if is_ordered(closed.effects):
        closed = threaded(closed)
        told("tokens", closed)
    elif outline:
        closed = with_functions(closed)
        told("outline", closed)
    return closed


def in_known_operations(closed: ClosedJaxpr, platform: str) -> ClosedJaxpr:
    """The program in operations that the platform has rules for, before it is prepared."""
    return decompose(physicalize(types_as_constraints(closed)), platform)


def lowered_for_each(closed: ClosedJaxpr, mesh: Mesh | AbstractMesh, platform: str) -> str:
    """The text of what one device does in a jaxpr that is nothing but a `shard_map` over all axes
    of a mesh."""
    prepared = prepare(decompose(physicalize(closed), platform), outline=False)
    (eqn,) = prepared.jaxpr.eqns
    inner = eqn.params["jaxpr"]
    known = dict(zip(prepared.jaxpr.constvars, prepared.consts, strict=True))
    pairs = list(zip(inner.jaxpr.invars, eqn.invars, strict=True))
    jaxpr = Jaxpr([*inner.jaxpr.constvars, *[v for v, x in pairs if x in known]],
                  [v for v, x in pairs if x not in known], inner.jaxpr.outvars, inner.jaxpr.eqns,
                  inner.jaxpr.effects)
    local = ClosedJaxpr(jaxpr, [*inner.consts, *[known[x] for _, x in pairs if x in known]])
    return lower(local, "partition", platform=platform, inline_constants=True,
                 partitioning=Partitioning(mesh.size, manual=(mesh, frozenset(mesh.axis_names)))
                 ).text


def _warn_of_unused(avals: Sequence[Any]) -> None:
    shapes = ", ".join([a.str_short() for a in avals])
    warn(
        f"Some donated buffers were not usable: {shapes}.\nThe memory of a donated argument is "
        "for a result of the same shape and dtype, or at least of the same number of elements.",
    )


_SHOWN = 10  # of the largest constants


def warn_of_captured(closed: ClosedJaxpr) -> None:
    """Warn where the constants have `jax_captured_constants_warn_bytes` or more in all.

    A captured array stays in memory as long as the program, and is compiled for its value's shape
    anew with each function that captures it; an argument is neither.
    """
    limit = configuration.captured_constants_warn_bytes.value
    if limit < 0:
        return
    sizes = [nbytes(get_aval(c)) for c in closed.consts]
    total = sum(sizes)
    if total < limit:
        return
    text = (f"A large amount of constants were captured during lowering ({_readable(total)} "
            "total): arrays that the function uses without getting them as arguments. Pass them as "
            "arguments, or set JAX_CAPTURED_CONSTANTS_WARN_BYTES=-1 if it is meant so.")
    frames = configuration.captured_constants_report_frames.value
    if frames:
        text += (" The report that follows goes with JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=0.\n\n"
                 + _report(closed, sizes, frames if frames > 0 else sys.maxsize))
    else:
        text += (" JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=-1 brings a report of where they are used.")
    warn(text)


def _report(closed: ClosedJaxpr, sizes: list[int], frames: int) -> str:
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])[:_SHOWN]
    lines = [f"Largest {len(order)} allocation(s):"]
    for i in order:
        value, var = closed.consts[i], closed.constvars[i]
        places = _first_use(closed.jaxpr, var, frames) or "unknown"
        places = "\n".join([f"    {place}" for place in places.splitlines()])
        lines.append(f"  Constant {type(value)}, {get_aval(value).str_short()}, "
                     f"{_readable(sizes[i])} captured at:\n{places}\n")
    return "\n".join(lines)


def _first_use(jaxpr: Jaxpr, var: Var, frames: int) -> str | None:
    """Where the first operation that reads a variable was made; in a program that gets it as an
    argument, if that is what reads it."""
    for eqn in jaxpr.eqns:
        if var not in eqn.invars:
            continue
        position = list(eqn.invars).index(var)
        for inner in subjaxprs(eqn):
            if len(inner.invars) == len(eqn.invars):
                place = _first_use(inner, inner.invars[position], frames)
                if place is not None:
                    return place
        return summarize(eqn.source_info, frames)
    return None


def _readable(n: int) -> str:
    size, unit = float(n), "B"
    for larger in ("KB", "MB", "GB"):
        if size >= 1000:
            size, unit = size / 1000, larger
    return f"{n}B" if unit == "B" else f"{size:.2f}{unit}"
