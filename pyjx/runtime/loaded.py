"""How much memory compiled programs take, and which go where that is too much.

Programs are kept with the jaxprs that they were made from, and these with functions: one that is
called with ever new shapes would keep them all. When the programs of the process take more than
`jax_pyjx_programs_max_bytes`, the oldest half of them goes, and C++ forgets the calls it knows; a
program that is wanted again comes from the disk cache, or is compiled again.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

from pyjx import configuration, jaxlib_api

if TYPE_CHECKING:
    from pyjx.runtime.programs import Program

# What C++ knows of calls.
fast_paths = jaxlib_api.pjit_cache(8192)

# XLA does not tell how large the code for a CPU is. Measured, in resident memory: a quarter of a
# megabyte, and 100 bytes for each character of the program's text.
_LEAST, _PER_CHARACTER = 1 << 18, 100

_lock = threading.RLock()  # a finalizer may run in a thread that has it
_sizes: dict[weakref.ref[Program], int] = {}  # the oldest first
_total = 0


def add(program: Program, characters: int) -> None:
    """Note a program that was compiled from a text of this length."""
    global _total
    size = _LEAST + _PER_CHARACTER * characters
    limit = configuration.programs_max_bytes.value
    oldest: list[Program] = []
    with _lock:
        remove(program)
        _sizes[weakref.ref(program, _forget)] = size
        _total += size
        if 0 <= limit < _total:
            oldest = _popped(limit // 2, program)
    if oldest:
        for old in oldest:
            old.drop()
        fast_paths.clear()


def remove(program: Program) -> None:
    """Note that a program has let its executable go."""
    _forget(weakref.ref(program))


def total() -> int:
    """The bytes, about, that the programs of the process take."""
    return _total


def count() -> int:
    """How many programs are loaded."""
    return len(_sizes)


def _popped(limit: int, newest: Program) -> list[Program]:
    """The oldest programs, as many as there are beyond `limit` bytes."""
    oldest = []
    for reference in list(_sizes):
        if _total <= limit:
            break
        program = reference()
        if program is not newest:
            _forget(reference)
            if program is not None:
                oldest.append(program)
    return oldest


def _forget(reference: weakref.ref[Program]) -> None:
    global _total
    with _lock:
        _total -= _sizes.pop(reference, 0)
