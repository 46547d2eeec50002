"""Programs of the library's own operations, of which a bounded number stays loaded.

Data of many lengths make a program a length, each of 0.1 to 0.2 MB and up to six memory maps, of
which Linux gives a process 65,530; nearly all of them are used once or twice. So a new program is
on probation: calls go through Python, and it goes when many others have been called since. One
that was called a few times, or is wanted again after it went, passes: C++ makes its calls and is
its only owner, in a cache whose least recently used entries go.
"""

from __future__ import annotations

from collections import OrderedDict

from pyjx.runtime.programs import Program

CAPACITY = 192  # programs on probation
CALLS = 8  # through Python, with which a program passes

_programs: OrderedDict[Program, None] = OrderedDict()  # least recently called first


def passes(program: Program, fast: bool) -> bool:
    """Note a call through Python; whether C++ may make the next ones. `fast` says that it could."""
    program.calls += 1
    if fast and (program.was_dropped or program.calls >= CALLS):
        _programs.pop(program, None)
        program.drop()
        return True
    _programs[program] = None
    _programs.move_to_end(program)
    if len(_programs) > CAPACITY:
        _programs.popitem(last=False)[0].drop()
    return False


def clear() -> None:
    """Forget all programs on probation."""
    while _programs:
        _programs.popitem()[0].drop()
