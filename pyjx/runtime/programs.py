"""Executables, kept with the jaxprs that they were made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyjx import configuration
from pyjx.core.derived import derived_under
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.runtime import loaded
from pyjx.runtime.executable import Executable
from pyjx.runtime.placement import Placement
from pyjx.runtime.turns import turn

if TYPE_CHECKING:
    from lowering.program import LoweredProgram


class Program:
    """A jaxpr lowered and compiled; `calls` and `was_dropped` are of its probation."""

    __slots__ = ("__weakref__", "calls", "executable", "was_dropped")

    def __init__(self) -> None:
        self.executable: Executable | None = None
        self.calls = 0
        self.was_dropped = False

    def drop(self) -> None:
        """Let the executable go, for as long as nobody else holds it."""
        self.executable = None
        self.was_dropped = True
        loaded.remove(self)


@derived_under(lambda: (configuration.trace_context(), configuration.outline.value))
def _program(closed: ClosedJaxpr, name: str, donated: tuple[bool, ...], keep_unused: bool,
             compiler_options: Any, placement: Placement) -> Program:
    return Program()


def compile_closed(
    closed: ClosedJaxpr, name: str, *, donated: Sequence[bool] = (), keep_unused: bool = False,
    compiler_options: Any = (), placement: Placement, lowered: LoweredProgram | None = None,
    quick: bool = False,
) -> tuple[Program, Executable]:
    """The program of a jaxpr for where it runs, kept with the jaxpr, and its executable.

    `lowered` is what `lower_closed` gave for it, if it is at hand; `quick` says that it is a single
    operation, which is to be compiled in little time.
    """
    key = (name, tuple(donated), keep_unused, compiler_options, placement)
    program = _program(closed, *key)
    executable = program.executable
    if executable is None:
        with turn((id(closed), key)):
            program = _program(closed, *key)
            executable = program.executable  # another thread may have been faster
            if executable is None:
                # Passes, lowering and compiler, which need not load before the first program.
                from pyjx.runtime import lower, pipeline

                source = lowered or lower.lower_closed(
                    closed, name, donated=donated, keep_unused=keep_unused,
                    placement=placement)
                executable = program.executable = pipeline.compile_lowered(
                    source, closed, name, compiler_options, placement, quick)
                loaded.add(program, len(source.text))
    return program, executable


def compiled_anew(executable: Executable, closed: ClosedJaxpr, name: str, donated: Sequence[bool],
                  keep_unused: bool) -> Executable:
    """An executable that the disk cache had, as this process compiles it."""
    from pyjx.runtime import lower, pipeline

    placement = executable.placement
    with configuration.cache(False):
        source = lower.lower_closed(closed, name, donated=donated, keep_unused=keep_unused,
                                    placement=placement)
        return pipeline.compile_lowered(source, closed, name, executable.from_disk, placement,
                                        quick=False)
