"""From a closed jaxpr to its program: made physical, prepared and lowered.

It warns of large constants, and writes programs to the folder that the flag `jax_dump_ir_to` names.
`jax_dump_ir_modes` says which forms: `stablehlo`, `jaxpr`, and `eqn_count_pprof`, a profile for
pprof in which each equation is a sample at its place in the source."""

from __future__ import annotations

import gzip
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lowering.program import LoweredProgram, lower
from lowering.shardings import ONE, Partitioning
from pyjx import configuration
from pyjx.core.avals import get_aval
from pyjx.core.effects import is_ordered
from pyjx.core.frames import frame_at, user_code, warn
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, Var, subjaxprs
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.nested import all_eqns
from pyjx.core.passes.dce import dce
from pyjx.core.passes.outline import is_long
from pyjx.core.passes.outline import outline as with_functions
from pyjx.core.passes.tokens import threaded
from pyjx.core.source_info import summarize
from pyjx.core.trace import collector_paused
from pyjx.engine.axes import check_reductions
from pyjx.engine.decompose import decompose
from pyjx.engine.metadata import metadata_as_programs
from pyjx.engine.physical import physicalize
from pyjx.monitoring import timed
from pyjx.runtime import ledger
from pyjx.runtime.placement import Placement
from pyjx.runtime.typed_shardings import types_as_constraints, with_open_results


def lower_closed(closed: ClosedJaxpr, name: str, *, donated: Sequence[bool] = (),
                 keep_unused: bool = False, platform: str = "cpu",
                 placement: Placement | None = None, for_export: bool = False,
                 paths: Sequence[str] = ()) -> LoweredProgram:
    """The program of a jaxpr for a placement or, for one device, for a platform; `for_export`
    writes constants into it, and leaves it in the functions that it has. With `paths`, which say
    what messages call the arguments, it checks their shapes."""
    if closed.consts and not for_export:
        warn_of_captured(closed)
    if placement is not None and placement.devices and not for_export:
        platform = placement.platform
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
        alone = not for_export and (placement is None or len(placement.devices) < 2)
        decomposed = decompose(physicalize(closed), platform, alone and platform == "cpu")
        mode = configuration.outline.value
        prepared = prepare(decomposed, outline=not for_export and (mode == "on" or (
            mode == "auto" and platform == "cpu" and is_long(decomposed))))
        program = lower(prepared, name, platform=platform, donated=donated,
                        keep_unused=keep_unused, inline_constants=for_export, paths=paths,
                        partitioning=ONE if placement is None
                        else placement.partitioning(prepared.consts),
                        devices=() if placement is None else placement.devices)
        full = configuration.include_full_tracebacks_in_locations.value
        program.places = (configuration.traceback_in_locations_limit.value if full else 1,
                          configuration.hlo_source_file_canonicalization_regex.value)
    ledger.note_lowered(closed, name, time.seconds)
    if configuration.dump_ir_to.value:
        dump(closed, program, name)
    if program.unused_donations:
        _warn_of_unused(program.unused_donations)
    return program


def prepare(closed: ClosedJaxpr, *, outline: bool) -> ClosedJaxpr:
    """The program as it is lowered: without dead code and, with `outline`, with each repeated
    block as one function. With ordered effects it takes and gives a token first."""
    live = dce(closed)
    if is_ordered(live.effects):
        return threaded(live)
    return with_functions(live) if outline else live


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


_MODES = ("stablehlo", "jaxpr", "eqn_count_pprof")
_counts = {mode: itertools.count() for mode in ("stablehlo", "jaxpr")}  # of files, in the process


def dump(closed: ClosedJaxpr, program: LoweredProgram, name: str) -> None:
    """Write the forms that are wanted of a program called `name`.

    Raises:
      ValueError: the flag names a form that there is not.
      OSError: the folder cannot be written.
    """
    modes = [mode.strip() for mode in configuration.dump_ir_modes.value.split(",")]
    for mode in modes:
        if mode and mode not in _MODES:
            raise ValueError(f"jax_dump_ir_modes: expected some of {', '.join(_MODES)}, separated "
                             f"by commas; got {mode!r}")
    folder = os.path.expanduser(configuration.dump_ir_to.value)
    os.makedirs(folder, exist_ok=True)
    safe = re.sub(r"[^\w.)( -]", "", name)
    if "stablehlo" in modes:
        with_places = configuration.include_debug_info_in_dumps.value
        text = program.located_text() if with_places else program.text
        stem = f"jax_ir{next(_counts['stablehlo']):04d}_jit_{safe}_compile"
        _write(folder, f"{stem}.mlir", text.encode())
    if "jaxpr" in modes or "eqn_count_pprof" in modes:
        stem = f"jax_{next(_counts['jaxpr']):06d}_{safe}"
        if "jaxpr" in modes:
            _write(folder, f"{stem}.jaxpr.txt", closed.pretty_print(use_color=False).encode())
        if "eqn_count_pprof" in modes:
            _write(folder, f"{stem}.eqn_count_pprof", equation_profile(closed.jaxpr))


def _write(folder: str, file: str, content: bytes) -> None:
    with open(os.path.join(folder, file), "wb") as f:
        f.write(content)


# -- the equations as a profile --------------------------------------------------------------------

Place = tuple[str, str, int]  # a primitive, or a function; its file; the line


def equation_profile(jaxpr: Jaxpr) -> bytes:
    """The number of equations by primitive and place, as a compressed profile of pprof.

    The format is that of github.com/google/pprof/blob/main/proto/profile.proto: messages with
    fields (number, varint or bytes), strings in one table, of which the first is empty.
    """
    samples = Counter(_stacks(jaxpr))
    strings = {"": 0}
    numbers: dict[Place, int] = {}
    for text in ("equations", "count"):
        strings.setdefault(text, len(strings))
    parts = [_field(1, _field(1, strings["equations"]) + _field(2, strings["count"]))]
    for stack, count in samples.items():
        ids = [numbers.setdefault(place, len(numbers) + 1) for place in stack]
        parts.append(_field(2, b"".join([_field(1, i) for i in ids]) + _field(2, count)))
    for (function, file, line), i in numbers.items():
        for text in (function, file):
            strings.setdefault(text, len(strings))
        parts.append(_field(4, _field(1, i) + _field(4, _field(1, i) + _field(2, line))))
        parts.append(_field(5, _field(1, i) + _field(2, strings[function])
                            + _field(4, strings[file])))
    parts += [_field(6, text.encode()) for text in strings]
    return gzip.compress(b"".join(parts))


def _stacks(jaxpr: Jaxpr) -> Iterator[tuple[Place, ...]]:
    """For each equation, also of the programs inside, its primitive and the user's frames,
    innermost first."""
    for eqn in all_eqns(jaxpr):
        frames = [frame_at(*at) for at in user_code(eqn.source_info.traceback)]
        yield ((eqn.primitive.name, "", 0), *_places(frames))


def _places(frames: Iterable[object]) -> Iterator[Place]:
    for f in frames:
        yield f.function_name, f.file_name, f.start_line  # type: ignore[attr-defined]


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


_SHOWN = 10  # of the largest constants
_ALL = sys.maxsize


def warn_of_captured(closed: ClosedJaxpr) -> None:
    """Warn where the constants have `jax_captured_constants_warn_bytes` or more in all.

    A captured array stays in memory as long as the program, and is compiled for its value's shape
    anew with each function that captures it; an argument is neither.
    """
    limit = configuration.captured_constants_warn_bytes.value
    if limit < 0:
        return
    sizes = [_n_bytes(c) for c in closed.consts]
    total = sum(sizes)
    if total < limit:
        return
    text = (f"A large amount of constants were captured during lowering ({_readable(total)} "
            "total): arrays that the function uses without getting them as arguments. Pass them as "
            "arguments, or set JAX_CAPTURED_CONSTANTS_WARN_BYTES=-1 if it is meant so.")
    frames = configuration.captured_constants_report_frames.value
    if frames:
        text += (" The report that follows goes with JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=0.\n\n"
                 + _report(closed, sizes, frames if frames > 0 else _ALL))
    else:
        text += (" JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=-1 brings a report of where they are "
                 "used.")
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


def _n_bytes(value: Any) -> int:
    aval = get_aval(value)
    size = getattr(aval, "size", 0)
    return int(size) * int(getattr(aval.dtype, "itemsize", 0))


def _readable(n: int) -> str:
    size, unit = float(n), "B"
    for larger in ("KB", "MB", "GB"):
        if size >= 1000:
            size, unit = size / 1000, larger
    return f"{n}B" if unit == "B" else f"{size:.2f}{unit}"
