"""What happens as an error leaves a public function: a handler around the whole body of it.

Python finds handlers in a table beside the code of a function, which it reads once something has
been raised. So one more costs a call that succeeds nothing: no instruction, and no call as that of
a decorator's function. A public function gets it when its name is first used (`pyjx.lazy`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from opcode import opmap
from types import CodeType, FunctionType
from typing import Any, TypeVar

_T = TypeVar("_T")

_guarded: dict[tuple[str, CodeType], CodeType] = {}
_guarded_classes: dict[type, int] = {}  # and how many members they had

_PACKAGE = __name__.rpartition(".")[0]
_BELOW = _PACKAGE + "."
ASKED = "__path__"  # by each `from module import name`, which no user sees
_FUNCTIONS = 0x1  # the flag of code of functions, and those of code that runs after a call
_GENERATORS = 0x20 | 0x80 | 0x200
_ANSWERS = ("__getattribute__", "__next__", "__del__")  # their errors are answers


def guard(value: _T) -> _T:
    """Lets errors leave a function of this package, also one with arguments given, the functions
    that it defines, and the methods of a class of it, of an object of such a class, or of what a
    function says that it returns with the user's frames only."""
    if isinstance(value, FunctionType):
        code, names = value.__code__, value.__globals__
        if _is_ours(value.__module__) and not is_guarded(code):
            value.__code__ = guarded = _code_with_handler(code)
            if guarded is code:  # a generator, which may call itself
                return value
            for name in code.co_names:  # what it returns may be a function that another one makes
                maker = names.get(name)
                if type(maker) is FunctionType and maker.__module__ == value.__module__ and any(
                        [type(x) is CodeType for x in maker.__code__.co_consts]):
                    guard(maker)
            returned = names.get(str(value.__annotations__.get("return")))
            if isinstance(returned, type):
                guard(returned)
    elif isinstance(value, partial):
        guard(value.func)
    else:
        for cls in (*type(value).__mro__, *(value.__mro__ if isinstance(value, type) else ())):
            if _is_ours(cls.__module__):
                guard_methods(cls)
    return value


def is_guarded(code: CodeType) -> bool:
    return code.co_consts[-1:] == (leaving,)


def guard_classes(module: str, names: Mapping[str, Any]) -> None:
    """Lets errors leave the methods of the classes that a module defines, among what is in it, as
    `guard` says: its public functions return objects of them."""
    for value in list(names.values()):
        if isinstance(value, type) and value.__module__ == module:
            guard_methods(value)


def guard_methods(cls: type) -> None:
    """Lets errors leave those methods of a class that are of this package as `guard` says."""
    if _guarded_classes.get(cls) != len(vars(cls)):
        _guarded_classes[cls] = len(vars(cls))
        for name, member in list(vars(cls).items()):
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if name not in _ANSWERS and isinstance(function, FunctionType):
                guard(function)


def _is_ours(module: str | None) -> bool:
    return module is not None and (module == _PACKAGE or module.startswith(_BELOW))


class _Leaving:
    """The handler is the code of `-x`, and this is x. No shorter instruction calls Python without
    looking a name up."""

    work: Callable[[BaseException], None] | None = None  # core/tracebacks.py gives it

    def __neg__(self) -> None:
        error = sys.exception()
        if (isinstance(error, Exception | KeyboardInterrupt) and self.work is not None
                and error.args != (ASKED,)):
            try:  # noqa: SIM105  near the limit of recursion there is no room for a context
                self.work(error)
            except Exception:  # of that limit, or of what the error's class does
                pass

    def __reduce__(self) -> str:  # libraries pickle the code of functions
        return "leaving"


leaving = _Leaving()


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


def _packed(*entry: int) -> bytes:
    packed = bytearray()
    for value in entry:
        if value > 0x3F:
            for shift in range((value.bit_length() - 1) // 6 * 6, 0, -6):
                packed.append(0x40 | value >> shift & 0x3F)
        packed.append(value & 0x3F)
    packed[0] |= 0x80
    return bytes(packed)


# What the compiler makes of `finally: -x`, but that the first RERAISE takes the failed instruction
# from below what PUSH_EXC_INFO puts: the frame is left at the line of that.
_HANDLER = (("PUSH_EXC_INFO", 0), ("EXTENDED_ARG", 0), ("LOAD_CONST", 0), ("UNARY_NEGATIVE", 0),
            ("POP_TOP", 0), ("RERAISE", 2), ("COPY", 3), ("POP_EXCEPT", 0), ("RERAISE", 1))
_LINES = bytes([0x80 | 13 << 3 | 7, 0, 0x80 | 13 << 3, 0])  # of eight and of one: the last line


def _code_with_handler(code: CodeType) -> CodeType:
    """The code with a handler for what it does not handle itself, and so in what it defines."""
    if is_guarded(code) or code.co_flags & (_FUNCTIONS | _GENERATORS) != _FUNCTIONS or not _handler:
        return code
    key = code.co_filename, code  # which is equal to one of another file
    found = _guarded.get(key)
    if found is None:
        constants = [_code_with_handler(x) if isinstance(x, CodeType) else x
                     for x in code.co_consts]
        found = _guarded[key] = _with_handler(code, (*constants, leaving), _handler)
    return found


def _with_handler(code: CodeType, constants: tuple[Any, ...], handler: bytes) -> CodeType:
    body, last = code.co_code, len(constants) - 1
    end, table, place = len(body) // 2, b"", 0
    for entry in _entries(code.co_exceptiontable):
        if entry[0] > place:
            table += _packed(place, entry[0] - place, end, 1)
        table += _packed(*entry)
        place = entry[0] + entry[1]
    if place < end:
        table += _packed(place, end - place, end, 1)
    return code.replace(
        co_code=body + handler[:3] + bytes([last >> 8, handler[4], last & 0xFF]) + handler[6:],
        co_consts=constants,
        # the last entry is for an error of the handler itself
        co_exceptiontable=table + _packed(end, 6, end + 6, 5),
        co_linetable=code.co_linetable + _LINES,
        co_stacksize=max(code.co_stacksize, 5))


def _tried() -> bytes:
    """The instructions of the handler, if this Python makes such handlers, and they work. Where
    there are none, functions stay as they are, and all that is lost is that tracebacks are short.
    """
    seen: list[BaseException] = []
    try:
        made = compile("try:\n    body\nfinally:\n    -''", __file__, "exec")
        (_, _, start, outer), inner = _entries(made.co_exceptiontable)
        code = made.co_code[2 * start:]
        own = bytes([x for name, operand in _HANDLER for x in (opmap[name], operand)])
        if sys.version_info >= (3, 14) or made.co_stacksize != 4 or (
                [outer, *inner, code[:3] + code[4:9], code[9], code[10:]] != [
                0, start, 5, start + 5, 3, own[:2] + own[4:5] + own[6:11], 0, own[12:]]):
            return b""
        trial = FunctionType(compile("lambda x: 1 // x", __file__, "eval").co_consts[0], {})
        left = _Leaving()
        left.work = seen.append
        trial.__code__ = _with_handler(trial.__code__, (*trial.__code__.co_consts, left), own)
        trial(trial(1) - 1)
    except Exception as error:
        if seen == [error] and type(error) is ZeroDivisionError:
            return own
    finally:
        seen.clear()  # the collector does not see it in code, and it holds the frames up to here
    return b""


_handler = _tried()
