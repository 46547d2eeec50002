"""From a closed jaxpr to its program: made physical, prepared and lowered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowering.program import LoweredProgram, lower
from lowering.shardings import ONE, Partitioning
from pyjx import configuration
from pyjx.core.frames import warn
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr
from pyjx.core.passes.outline import is_long
from pyjx.core.passes.prepare import prepare
from pyjx.core.trace import collector_paused
from pyjx.engine.axes import check_reductions
from pyjx.engine.decompose import decompose
from pyjx.engine.metadata import metadata_as_programs
from pyjx.engine.physical import physicalize
from pyjx.monitoring import timed
from pyjx.runtime import ledger
from pyjx.runtime.explicit import types_as_constraints
from pyjx.runtime.open_sums import with_open_results
from pyjx.runtime.placement import Placement


def lower_closed(closed: ClosedJaxpr, name: str, *, donated: Sequence[bool] = (),
                 keep_unused: bool = False, platform: str = "cpu",
                 placement: Placement | None = None, for_export: bool = False,
                 paths: Sequence[str] = ()) -> LoweredProgram:
    """The program of a jaxpr for a placement or, for one device, for a platform; `for_export`
    writes constants into it, and leaves it in the functions that it has. With `paths`, which say
    what messages call the arguments, it checks their shapes."""
    if closed.consts and not for_export:
        from pyjx.runtime.captured import warn_of_captured  # most programs capture nothing

        warn_of_captured(closed)
    if placement is not None and placement.devices and not for_export:
        platform = placement.platform
    mode = configuration.outline.value
    outline = not for_export and (mode == "on" or (
        mode == "auto" and platform == "cpu" and is_long(closed)))
    ledger.note_lowering(closed, name)
    with timed("/jax/core/compile/jaxpr_to_mlir_module_duration", name) as time, \
            collector_paused():
        if placement is not None and placement.mesh is not None:
            types = closed.out_avals
            closed = with_open_results(types_as_constraints(closed), types,
                                       placement.out_shardings)
        if not configuration.allow_f16_reductions.value:
            check_reductions(closed.jaxpr)
        closed = metadata_as_programs(closed)
        prepared = prepare(decompose(physicalize(closed), platform), outline=outline)
        program = lower(prepared, name, platform=platform, donated=donated,
                        keep_unused=keep_unused, inline_constants=for_export, paths=paths,
                        partitioning=ONE if placement is None
                        else placement.partitioning(prepared.consts),
                        devices=() if placement is None else placement.devices)
    ledger.note_lowered(closed, name, time.seconds)
    if configuration.dump_ir_to.value:
        from pyjx.runtime.dumps import dump  # for those who debug

        dump(closed, program, name)
    if program.unused_donations:
        _warn_of_unused(program.unused_donations)
    return program


def lowered_for_each(closed: ClosedJaxpr, mesh: Any, platform: str) -> str:
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
