"""Runs an example on the CPU, then compiles all of its programs for devices that are not here.

    python compile_programs.py SOURCE DEVICES TARGET...

prints, as JSON, for each target how many programs there were, those that take other kernels than
Triton's, and the name and the error of each that is refused. A target is as `pyjx.inspect.platform`
takes it. On one device all programs are compiled; on several those that run on several.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import run_cells

# What an example that is no notebook runs.
ENTRY = {"data_parallel": "train(1)", "parallel_transformer": "main()"}


class Recorded(NamedTuple):
    """A program, and what lowers it again for other devices: its text, and how they are used."""

    name: str
    n_devices: int
    on: Callable[[Sequence[Any]], tuple[Any, Any]]


def run(source: Path) -> None:
    namespace: dict[str, Any] = {"__name__": source.stem, "__file__": str(source)}
    text = source.read_text(encoding="utf-8")
    parts = [code for _, code in run_cells.cells(text)] or [text, ENTRY[source.stem]]
    for code in parts:
        exec(compile(code, str(source), "exec"), namespace)


@contextlib.contextmanager
def recording() -> Iterator[dict[str, Recorded]]:
    """The programs that are lowered for the CPU, by their texts."""
    from pyjx.runtime import lower

    original, found = lower.lower_closed, {}

    def lower_closed(closed: Any, name: str, *, placement: Any = None, **options: Any) -> Any:
        program = original(closed, name, placement=placement, **options)
        if placement is not None and placement.platform == "cpu":
            count = len(placement.devices)

            def on(devices: Sequence[Any]) -> tuple[Any, Any]:
                place = placement.on(tuple(devices[:count]))
                return original(closed, name, **{**options, "platform": place.platform},
                                placement=place), place

            found.setdefault(program.text, Recorded(name, count, on))
        return program

    lower.lower_closed = lower_closed
    try:
        yield found
    finally:
        lower.lower_closed = original


def compiled(program: Recorded, devices: Sequence[Any], options: Any) -> None:
    from pyjx.runtime.compile import compile_or_load

    source, place = program.on(devices)
    given = [None] * len(source.const_args) if place.mesh is None else [
        *[place] * len(source.const_args), *compress(place.in_shardings, source.kept)]
    compile_or_load(source, devices=place.devices, compiler_options=options,
                    propagate_to_parameters=[s is None for s in given] if place.mesh else (),
                    propagate_to_outputs=[s is None for s in place.out_shardings])


def outcome(programs: Sequence[Recorded], target: str, n_devices: int) -> dict[str, Any]:
    from pyjx import inspect, jaxlib_api

    devices = inspect.platform(target, n_devices).devices
    untried, refused = [], []
    for program in programs:
        try:
            try:
                compiled(program, devices, None)
            except Exception as error:
                if not jaxlib_api.lacks_tiles(error):
                    raise
                compiled(program, devices, {"xla_gpu_enable_triton_gemm": False})
                untried.append(program.name)
        except Exception as error:
            refused.append([program.name, f"{type(error).__name__}: {error}"])
    return {"programs": len(programs), "untried": untried, "refused": refused}


def main() -> None:
    source, n_devices, targets = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    os.environ.update(MPLBACKEND="Agg", JAX_NUM_CPU_DEVICES=str(n_devices), JAX_PLATFORMS="cpu")
    with contextlib.redirect_stdout(sys.stderr), recording() as found:
        run(source)
    chosen = [p for p in found.values() if n_devices == 1 or p.n_devices > 1]
    json.dump({target: outcome(chosen, target, n_devices) for target in targets}, sys.stdout)


if __name__ == "__main__":
    main()
