"""Programs of the library's own operations, of which a bounded number stays loaded.

Data of many lengths make a program a length, each of 0.1 to 0.2 MB and up to six memory maps, of
which Linux gives a process 65,530; nearly all of them are used once or twice. So a new program is
on probation: calls go through Python. One that was called a few times, or is wanted again after it
went, passes: C++ makes its calls, from a cache whose least recently used entries go.

Python holds the programs of either kind that it called last: those on probation, which nobody else
holds, and those that passed, which C++ asks for again where arguments come in another way, such as
committed to a device.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from pyjx.runtime.programs import Program

CAPACITY = 192  # programs of a kind
CALLS = 8  # through Python, with which a program passes

_lock = threading.RLock()  # a finalizer may run operations in a thread that has it
# The least recently called first.
_on_probation: OrderedDict[Program, None] = OrderedDict()
_passed: OrderedDict[Program, None] = OrderedDict()


def passes(program: Program, fast: bool) -> bool:
    """Note a call through Python; whether C++ may make the next ones. `fast` says that it could."""
    with _lock:
        program.calls += 1
        passed = fast and (program.was_dropped or program.calls >= CALLS)
        _on_probation.pop(program, None)
        _passed.pop(program, None)
        programs = _passed if passed else _on_probation
        programs[program] = None
        oldest = programs.popitem(last=False)[0] if len(programs) > CAPACITY else None
    if oldest is not None:
        oldest.drop()
    return passed


def count() -> int:
    """How many programs are held."""
    return len(_on_probation) + len(_passed)


def clear() -> None:
    """Let all programs go."""
    with _lock:
        programs = [*_on_probation, *_passed]
        _on_probation.clear()
        _passed.clear()
    for program in programs:
        program.drop()
