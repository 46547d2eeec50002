"""Programs in the folder that the flag `jax_dump_ir_to` names.

`jax_dump_ir_modes` says in which forms: `stablehlo`, `jaxpr`, and `eqn_count_pprof`, a profile for
pprof in which each equation is a sample at its place in the source."""

from __future__ import annotations

import gzip
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from lowering.program import LoweredProgram
from pyjx import configuration
from pyjx.core.evaluation import all_eqns
from pyjx.core.frames import frame_at, user_code
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr

_counts = {"stablehlo": itertools.count(), "jaxpr": itertools.count()}  # of files, in the process


def dump(closed: ClosedJaxpr, program: LoweredProgram, name: str) -> None:
    """Write the forms that are wanted of a program called `name`.

    Raises:
      OSError: the folder cannot be written.
    """
    modes = [mode.strip() for mode in configuration.dump_ir_modes.value.split(",")]
    folder = os.path.expanduser(configuration.dump_ir_to.value)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise OSError(
            error.errno, f"{error.strerror}. jax_dump_ir_to, or JAX_DUMP_IR_TO in the environment, "
            "must name a folder that can be written, or '' for none", folder) from None
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
    parts = [proto(1, proto(1, strings["equations"]) + proto(2, strings["count"]))]
    for stack, count in samples.items():
        ids = [numbers.setdefault(place, len(numbers) + 1) for place in stack]
        parts.append(proto(2, b"".join([proto(1, i) for i in ids]) + proto(2, count)))
    for (function, file, line), i in numbers.items():
        for text in (function, file):
            strings.setdefault(text, len(strings))
        parts.append(proto(4, proto(1, i) + proto(4, proto(1, i) + proto(2, line))))
        parts.append(proto(5, proto(1, i) + proto(2, strings[function]) + proto(4, strings[file])))
    parts += [proto(6, text.encode()) for text in strings]
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


def proto(number: int, value: int | bytes) -> bytes:
    """A field of a message of protocol buffers, an integer or, of that length, other bytes."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value
