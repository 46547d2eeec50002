"""What happens as an error leaves a public function: a handler around the whole body of it.

Python finds handlers in a table beside the code of a function, which it reads once something has
been raised. So one more costs a call that succeeds nothing: no instruction, and no call as that of
a decorator's function. A public function gets it when its name is first used (`pyjx.lazy`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from opcode import opmap
from types import CodeType, FunctionType
from typing import Any, TypeVar

_T = TypeVar("_T")

_guarded: dict[CodeType, CodeType] = {}
_guarded_classes: set[type] = set()

_PACKAGE = __name__.rpartition(".")[0]
_FUNCTIONS = 0x1  # the flag of code of functions, and those of code that runs after a call
_GENERATORS = 0x20 | 0x80 | 0x200
_ANSWERS = ("__getattr__", "__getattribute__", "__next__", "__del__")  # their errors are answers


def guard(value: _T) -> _T:
    """Lets errors leave a function of this package, the functions that it defines, and the methods
    of a class of it or of an object of such a class with the user's frames only."""
    if isinstance(value, FunctionType):
        if _is_ours(value.__module__) and not is_guarded(value.__code__):
            value.__code__ = _code_with_handler(value.__code__)
    else:
        for cls in (*type(value).__mro__, *(value.__mro__ if isinstance(value, type) else ())):
            if _is_ours(cls.__module__):
                guard_methods(cls)
    return value


def is_guarded(code: CodeType) -> bool:
    return code.co_consts[-1:] == (leaving,)


def guard_methods(cls: type) -> None:
    """Lets errors leave those methods of a class that are of this package as `guard` says."""
    if cls not in _guarded_classes:
        _guarded_classes.add(cls)
        for name, member in list(vars(cls).items()):
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if name not in _ANSWERS and isinstance(function, FunctionType):
                guard(function)


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] == _PACKAGE


class _Leaving:
    """The handler is the code of `-x`, and this is x."""

    work: Callable[[Exception], None] | None = None  # core/tracebacks.py gives it

    def __neg__(self) -> None:
        error = sys.exception()
        if isinstance(error, Exception) and self.work is not None:
            self.work(error)

    def __reduce__(self) -> str:  # libraries pickle the code of functions
        return "leaving"


leaving = _Leaving()
_TEMPLATE = compile("try:\n    body\nexcept:\n    -''\n    raise", __file__, "exec")


def _entries(table: bytes) -> Iterator[list[int]]:
    """What a table of handlers says: from where, how long, the place of the handler, and what is
    on the stack there. Numbers are in bytes of six bits; places count instructions."""
    numbers, value = [], 0
    for byte in table:
        value = value << 6 | byte & 0x3F
        if not byte & 0x40:
            numbers.append(value)
            value = 0
            if len(numbers) == 4:
                yield numbers
                numbers = []


def _packed(entries: list[list[int]]) -> bytes:
    packed = bytearray()
    for entry in entries:
        first = len(packed)
        for value in entry:
            for shift in range(max(value.bit_length() - 1, 0) // 6 * 6, 0, -6):
                packed.append(0x40 | value >> shift & 0x3F)
            packed.append(value & 0x3F)
        packed[first] |= 0x80
    return bytes(packed)


_START = next(_entries(_TEMPLATE.co_exceptiontable))[2]  # of the handler
_OPERAND = _TEMPLATE.co_code.index(opmap["LOAD_CONST"], 2 * _START)
_BEFORE, _AFTER = _TEMPLATE.co_code[2 * _START:_OPERAND], _TEMPLATE.co_code[_OPERAND + 2:]
_INNER = [entry for entry in _entries(_TEMPLATE.co_exceptiontable) if entry[0] >= _START]


def _code_with_handler(code: CodeType) -> CodeType:
    """The code with a handler for what it does not handle itself, and so in what it defines."""
    if is_guarded(code) or not code.co_flags & _FUNCTIONS or code.co_flags & _GENERATORS:
        return code
    found = _guarded.get(code)
    if found is None:
        constants = [_code_with_handler(x) if isinstance(x, CodeType) else x
                     for x in code.co_consts]
        found = _guarded[code] = _with_handler(code, (*constants, leaving))
    return found


def _with_handler(code: CodeType, constants: tuple[Any, ...]) -> CodeType:
    end, last = len(code.co_code) // 2, len(constants) - 1
    entries, place = [], 0
    for entry in _entries(code.co_exceptiontable):
        if entry[0] > place:
            entries.append([place, entry[0] - place, end, 0])
        entries.append(entry)
        place = entry[0] + entry[1]
    if place < end:
        entries.append([place, end - place, end, 0])
    # The instructions of the template, of which one takes two places here.
    handler = _BEFORE + bytes([opmap["EXTENDED_ARG"], last >> 8,
                               opmap["LOAD_CONST"], last & 0xFF]) + _AFTER
    entries += [[start - _START + end, length + 1, target - _START + end + 1, depth]
                for start, length, target, depth in _INNER]
    size = len(handler) // 2
    lines = [0x80 | 15 << 3 | min(8, size - done) - 1 for done in range(0, size, 8)]  # none
    return code.replace(
        co_code=code.co_code + handler, co_consts=constants, co_exceptiontable=_packed(entries),
        co_linetable=code.co_linetable + bytes(lines),
        co_stacksize=max(code.co_stacksize, _TEMPLATE.co_stacksize))
