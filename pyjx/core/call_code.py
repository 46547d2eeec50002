"""What code tells of calls: what was called and given where an error came of, read from frames and
their instructions; and, of values that are lost, how they are written."""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dis import Instruction, get_instructions, hasjrel, stack_effect
from functools import partial
from inspect import Parameter, Signature, getattr_static, signature, unwrap
from itertools import takewhile
from opcode import opmap
from operator import is_
from types import (
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    TracebackType,
)
from typing import Any, NamedTuple, get_origin
from warnings import catch_warnings, simplefilter

import numpy as np

from pyjx.core.bounded import BoundedDict
from pyjx.core.frames import is_internal, tracebacks_of
from pyjx.core.unwrapping import place_of
from pyjx.guards import is_guarded
from pyjx.lazy import own_dictionary
from pyjx.tree_util import KeyPath, keystr, tree_flatten_with_path

_VARIADIC, _WITH_KEYWORDS = 0x04, 0x08  # the flags of code that takes *args and **kwargs
_MOST_WRITTEN = 60  # characters of an argument
# Instructions that call what code names; Python 3.12's intrinsics make a tuple of a list, or so.
CALLS = frozenset([op for op in opmap if op[:4] == "CALL" and op[5:14] != "INTRINSIC"])


class Call(NamedTuple):
    """What the user called, and gave it."""

    name: str
    code: CodeType
    annotations: Mapping[str, Any]
    parameters: Mapping[str, Parameter]
    given: dict[str, Any]  # by parameter; UNKNOWN where the value is lost
    complete: bool = True  # whether that is all
    then: tuple[Sequence[Any], Mapping[str, Any]] | None = None  # given to what the call gave
    other_name: str = ""  # of a function with two, which messages have

    def holders(self, x: Any, body: Mapping[str, Any]) -> list[str]:
        """The parameters that were given this object, or a container that holds it."""
        return [p for p, value in self.given.items() if any([
            _holds(v, x, 2) for v in (value, body.get(p, UNKNOWN))])]

    def functions(self) -> set[str]:
        """The names of the functions among what was given, of those that these are made of, and of
        their classes."""
        found, left = set[str](), [*self.given.values()]
        for value in left:
            if isinstance(value, (list, tuple)):
                left += value[:64]
            elif callable(value):
                found |= {str(attribute(value, "__name__")), type(value).__name__}
                left += [attribute(value, of) for of in ("__wrapped__", "func", "fun")]
        return found


def _holds(value: Any, x: Any, depth: int) -> bool:
    if value is x:
        return value is not UNKNOWN
    if type(x) is tuple and type(value) is list:  # made of a list
        return 0 < len(x) == len(value) and all(map(is_, x, value))
    if isinstance(x, np.generic):  # made of a number
        return type(value) is type(x.item()) and x.item() == value
    if type(value) is type(x) is str:  # made of a string's letters
        return len(x) == 1 and x in value
    if depth and type(value) in (list, tuple, dict):
        return any([_holds(v, x, depth - 1)
                    for v in list(value.values() if type(value) is dict else value)[:64]])
    return False


def _given_further(frame: FrameType) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """What came by `*args` and `**kwargs`."""
    code, known = frame.f_code, frame.f_locals
    n, star = code.co_argcount + code.co_kwonlyargcount, bool(code.co_flags & _VARIADIC)
    return (known.get(code.co_varnames[n], ()) if star else (),
            known.get(code.co_varnames[n + star], {}) if code.co_flags & _WITH_KEYWORDS else {})


def leaves_of(tree: Any) -> list[tuple[KeyPath, Any]]:
    """The leaves of what the user gave, with their paths; a warning would be of no tree of his."""
    with catch_warnings():
        simplefilter("ignore")
        return tree_flatten_with_path(tree)[0]


def leaves_given(exc: Exception) -> Iterator[tuple[str, list[tuple[str, KeyPath, Any]]]]:
    """The public functions that an error leaves, or the user's that they were to call with what
    came, and the leaves of what each was given: of which argument, where in it, and the value."""
    by_user = True
    for tb in tracebacks_of(exc):
        code, known = tb.tb_frame.f_code, tb.tb_frame.f_locals
        users: Any = None
        args, kwargs = _given_further(tb.tb_frame)
        called_by_user, by_user = by_user, not is_internal(code.co_filename)
        if by_user:
            if tb.tb_next is None:  # C++ alone has run
                users = value_called(tb.tb_frame, tb.tb_lasti)[1]
                args, kwargs = arguments_at(tb.tb_frame, tb.tb_lasti) or ((), {})
        elif code.co_flags & _VARIADIC:
            users = known.get("fun", getattr(known.get("self"), "fun", None))
        plain: Any = unwrap(users) if callable(users) else None
        own = getattr(plain, "__code__", None)
        if own is not None and not is_internal(own.co_filename):
            with suppress(TypeError, ValueError):  # it takes other arguments, or does not tell
                if len(args) >= len(signature(users).parameters):  # a rule has put all there
                    kwargs = {}
                given = signature(users).bind(*args, **kwargs).arguments
                yield f"{plain.__name__} at {place_of(own)}", [
                    (p, path, x) for p, value in given.items()
                    for path, x in leaves_of(value)]
        elif called_by_user and is_guarded(code) and (
                name := public_name(function_of(tb.tb_frame))):
            n, star = code.co_argcount + code.co_kwonlyargcount, bool(code.co_flags & _VARIADIC)
            yield name, [(p, path, x) for i, p in enumerate(code.co_varnames[:n + star])
                         for path, x in leaves_of(known.get(p)) if path[i == n:]]


def path_of(exc: Exception, x: Any) -> tuple[str, str, str] | None:
    """To what that an error leaves a value was given, as which argument, and where in that."""
    return next(((name, of, keystr(path)) for name, leaves in leaves_given(exc)
                 for of, path, leaf in leaves if leaf is x), None)


def public_name(fun: Any) -> str | None:
    """What users call a function of a module by; None for what has no such name: operators,
    methods, functions within functions, other callables."""
    name = getattr(fun, "__name__", None)
    public = isinstance(name, str) and name.isidentifier() and not name.startswith("_")
    return name if public and getattr(fun, "__qualname__", name) == name else None


def call_with(fun: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | None:
    """The call of a function with these arguments; None where it has no public name."""
    name, own = public_name(fun), signature(fun)
    return None if name is None else Call(name, fun.__code__, fun.__annotations__, own.parameters,
                                          own.bind(*args, **kwargs).arguments)


def call_in(frame: FrameType, at: int) -> Call | None:
    """The call of a public function, of a class, of a method, or of a function that a public one
    makes, which runs in a frame, whose body has come to the offset `at`."""
    code, known = frame.f_code, frame.f_locals
    fun = function_of(frame) or _class_of(frame)
    name = public_name(fun)
    if str(frame.f_globals.get("__name__")).startswith(("emit_hlo", "pyjx.cli")):  # a command
        return None
    of = known.get(code.co_varnames[0]) if code.co_argcount else None
    found = {method: (cls, getattr(member, "__func__", member))
             for cls in (of if isinstance(of, type) else type(of)).__mro__[::-1]
             for method, member in list(vars(cls).items())
             if getattr(getattr(member, "__func__", member), "__code__", None) is code}
    name = name if name and (not found or is_listed(name)) else None  # an operator runs as a method
    if name is None and len(found) == 1:
        ((method, (cls, fun)),) = found.items()
        if method[0] != "_" and (cls.__name__ in _ARRAYS or is_listed(cls.__name__)):
            name = f"{_ARRAYS.get(cls.__name__, cls.__name__)}.{method}"
    if name is not None:
        caller = frame.f_back
        called = None if caller is None else value_called(caller, caller.f_lasti)[1]
        # The class, too, may be asked for a method, which gets the object with the others then.
        by_class = (called.func if isinstance(called, partial) else called) is fun
        parameters = dict(list(signature(fun).parameters.items())["." in name and not by_class:])
        body: Any = fun
        if isinstance(fun, type):
            body = vars(fun).get("__init__") or fun.__new__
        return Call(name, code, body.__annotations__, parameters,
                    *_given_to(parameters, frame, at, isinstance(fun, FunctionType) and (
                        "." not in name)),
                    other_name=getattr(fun, "other_name", ""))
    owner, _, inner = code.co_qualname.partition(".<locals>.")
    maker, owner = frame.f_globals.get(owner), owner.removeprefix("_")
    if not (inner and isinstance(maker, FunctionType) and is_listed(owner)):
        return None
    made = maker.__globals__.get(str(maker.__annotations__.get("return")))
    if get_origin(made) is tuple:  # of functions, which are called by their own names
        cells = tuple([CellType() for _ in code.co_freevars])
        parameters = dict(signature(FunctionType(code, {}, closure=cells)).parameters)
        return Call(inner, code, {}, parameters, *_given_to(parameters, frame, at))
    of_both = {**dict.fromkeys(code.co_varnames[:code.co_argcount]), **{
        p.name: p.default for p in signature(maker).parameters.values()}}
    given = {p: known[p] for p, default in of_both.items() if known.get(p) is not default}
    for x in given.values():
        decorated = getattr(x, "__globals__", {}).get(public_name(x))
        if getattr(decorated, "__code__", None) is code:  # it has the name that the user called
            bound = signature(x).bind(*_given_further(frame)[0], **_given_further(frame)[1])
            return Call(x.__name__, code, x.__annotations__, signature(x).parameters,
                        bound.arguments)
    then = _given_further(frame) if code.co_flags & _VARIADIC else None
    return Call(owner, code, maker.__annotations__, {}, given,
                all([p in known for p in of_both]), then)


def is_listed(name: str) -> bool:
    """Whether a module that has been loaded shows this name to users."""
    return any([name in own_dictionary(module).get("__all__", ())  # which loads nothing
                for path, module in list(sys.modules.items()) if path.startswith("pyjx")])


def is_primitive(name: str) -> bool:
    """Whether it is the name of an operation, of which users may know none."""
    return any([f"{name}_p" in own_dictionary(module)
                for path, module in list(sys.modules.items()) if path.startswith("pyjx.")])


_ARRAYS = {"ArrayImpl": "Array", "Tracer": "Array"}  # what users call them


def function_of(frame: FrameType) -> Any:
    """The function of its module that runs in the frame; None if it is no such one."""
    code = frame.f_code
    fun = frame.f_globals.get(code.co_name)
    while fun is not None and getattr(fun, "__code__", None) is not code:
        fun = getattr(fun, "__wrapped__", None)
    return fun


def _class_of(frame: FrameType) -> Any:
    """The class of this package of which an object is being made."""
    made: Any = type(None)
    if frame.f_code.co_name in ("__init__", "__new__"):
        made = frame.f_locals.get(frame.f_code.co_varnames[0])
        made = made if isinstance(made, type) else type(made)
    return made if is_below(made) else None


def _before(frame: FrameType, at: int, with_object: bool) -> list[Any] | None:
    """What comes before the arguments in a frame's call at an offset: what a partial function was
    given, or if `with_object` the object whose method it is; nothing where it calls a function,
    None where that is what another call gave."""
    name, value = value_called(frame, at)
    if isinstance(value, partial):
        return [*value.args]
    if not method_called(frame, at) or (callable(value) and not hasattr(value, "__self__")):
        return [] if name else None
    return [getattr(value, "__self__", UNKNOWN)] * with_object


def _given_to(parameters: Mapping[str, Parameter], frame: FrameType, at: int,
              of_method: bool = False) -> tuple[dict[str, Any], bool]:
    """What a function, which is also a method of arrays if `of_method`, was called with, and
    whether that is all: what is read where the user calls it, else what its frame still tells,
    without what is the default. `UNKNOWN` stands for what its body has stored to since."""
    known, changed = frame.f_locals, _changed_names(frame.f_code, at)
    caller = frame.f_back
    read = None if caller is None else arguments_at(caller, caller.f_lasti)
    if caller is not None and read is not None:
        first = _before(caller, caller.f_lasti, of_method)
        try:
            given = Signature([*parameters.values()]).bind(
                *first, *read[0], **read[1]).arguments  # type: ignore[misc]  # of None as below
        except TypeError:  # what calls it is another function
            given = {}
        others = [p for p in parameters.values() if p.name not in given and p.name not in changed]
        if given and all([known.get(p.name) in ((), {}) if p.default is p.empty else (
                known.get(p.name) is p.default) for p in others]) and all(
                [p in changed or _may_be(x, known.get(p)) for p, x in given.items()]):
            return {p: x if p in changed else known[p] for p, x in given.items()}, True
    given, complete = {}, True
    for p in parameters.values():
        if p.name not in changed:
            if known.get(p.name) is not p.default:
                given[p.name] = known.get(p.name)
        elif p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            given[p.name] = UNKNOWN
        else:
            complete = False
    return given, complete


def _may_be(read: Any, known: Any) -> bool:
    """Whether what was read in the code that calls is what came."""
    if type(read) is tuple and type(known) is tuple:
        return len(read) == len(known) and all(map(_may_be, read, known))
    if type(read) is dict and type(known) is dict:
        return all([_may_be(x, known.get(name)) for name, x in read.items()])
    return read is UNKNOWN or read is known or type(read) is type(known) is list


# -- what code tells -------------------------------------------------------------------------------


UNKNOWN: Any = type("Unknown", (), {"__repr__": lambda _: "..."})()  # what an expression gave


_read = BoundedDict(256, "instructions of functions that errors passed")  # programs provoke many


def _instructions(code: CodeType) -> list[Instruction]:
    key = code.co_filename, code  # which is equal to one of another file
    found: list[Instruction] | None = _read.get(key)
    if found is None:
        found = _read[key] = _as_later([part for i in get_instructions(code) for part in _parts(i)])
    return found


def _as_later(every: list[Instruction]) -> list[Instruction]:
    """Instructions, with calls at one offset each, as from Python 3.12 on: in 3.11 the first one of
    two is what calls, once code has run some times."""
    return [i if was is None or was.opname != "PRECALL" else i._replace(offset=was.offset)
            for was, i in zip([None, *every], every, strict=False)]


def _parts(i: Instruction) -> list[Instruction]:
    """An instruction; the two that one of two variables stands for, which Python 3.13 has."""
    kinds = i.opname.replace("_FAST_", "_FAST ").split()
    if len(kinds) == 1 or type(i.argval) is not tuple:
        return [i]
    return [i._replace(opname=kind, opcode=opmap[kind], arg=0, argval=name)
            for kind, name in zip(kinds, i.argval, strict=True)]


def failed_at(frame: FrameType, at: int) -> Instruction:
    """The instruction that failed at an offset; of one that asks for a truth value alone, as Python
    3.13 has them, the next one, which that is for."""
    every = _instructions(frame.f_code)
    k = max([k for k, i in enumerate(every) if i.offset <= at])
    return every[k + (every[k].opname == "TO_BOOL" or every[k].argrepr[:5] == "bool(")]


def is_called_without(tb: TracebackType) -> bool:
    """Whether an attribute that was not found is called at once, without arguments."""
    after = [i for i in _instructions(tb.tb_frame.f_code)
             if i.offset > tb.tb_lasti and i.opname not in ("PRECALL", "PUSH_NULL")]
    return after[:1] != [] and after[0].opname == "CALL" and not after[0].arg


def arguments_at(frame: FrameType, at: int) -> tuple[list[Any], dict[str, Any]] | None:
    """What the call at an offset of a frame gives, by position and by name: constants, variables
    and what modules hold, and `UNKNOWN` for the results of other expressions. None where the call
    is of no such form."""
    before = [i for i in _instructions(frame.f_code) if i.offset <= at]
    call = before.pop()
    if call.opname not in ("CALL", "CALL_KW"):
        return None
    constants = frame.f_code.co_consts  # Python 3.11 does not look these up
    names: tuple[str, ...] = before.pop().argval if call.opname == "CALL_KW" else ()
    while before[-1].opname in ("PRECALL", "KW_NAMES"):
        passed = before.pop()
        names = constants[passed.arg or 0] if passed.opname == "KW_NAMES" else names
    values = _on_stack(call.arg or 0, before, frame)
    if values is None:
        return None
    first = len(values) - len(names)
    return values[:first], dict(zip(names, values[first:], strict=True))


def _on_stack(count: int, before: list[Instruction], frame: FrameType) -> list[Any] | None:
    """What the last instructions, which are taken off the list, have put there; None where there
    are branches."""
    values: list[Any] = []
    for _ in range(count):
        needed, taken = 1, list[Instruction]()
        while needed > 0:  # with a global function comes a NULL
            last = before.pop()
            if last.opcode in hasjrel or last.is_jump_target:
                return None
            needed -= stack_effect(last.opcode, last.arg)
            taken.insert(0, last)
        values.insert(0, _value(taken, frame))
    return values


def indexed_at(frame: FrameType, at: int) -> Any:
    """What a subscript at an offset of a frame is of; `UNKNOWN` where it is lost."""
    before = [i for i in _instructions(frame.f_code) if i.offset <= at][:-1]
    return (_on_stack(2, before, frame) or [UNKNOWN])[0]


def before(tb: TracebackType) -> int:
    """The offset of the instruction before the one that failed."""
    return max([i.offset for i in _instructions(tb.tb_frame.f_code) if i.offset < tb.tb_lasti])


def is_compared(tb: TracebackType) -> bool:
    """Whether a comparison takes what an operator that failed was to give."""
    starts, (first, *after) = _starts(tb.tb_frame.f_code), [
        i for i in _instructions(tb.tb_frame.f_code) if i.offset >= tb.tb_lasti]
    following = next((i for i in after if i.opname not in ("SWAP", "COPY")), first)
    return first.opname in ("BINARY_OP", "UNARY_INVERT") and (
        following.opname == "COMPARE_OP" or any([
            i.opname == "COMPARE_OP" and starts[i.offset // 2] == starts[first.offset // 2]
            for i in after]))


def is_chained(frame: FrameType, at: int) -> bool:
    """Whether what asks for a truth value at an offset is a comparison of three values."""
    done = [i.opname for i in _instructions(frame.f_code) if i.offset <= at]
    return "SWAP COPY COMPARE_OP" in " ".join(done[-6:])


def is_stored(tb: TracebackType) -> bool:
    """Whether a variable was to have what failed."""
    after = [i for i in _instructions(tb.tb_frame.f_code) if i.offset > tb.tb_lasti]
    return bool(after) and after[0].opname.startswith("STORE_")


def only_raises(tb: TracebackType) -> bool:
    """Whether an `if` that failed does nothing but raise, whatever else holds."""
    jump = failed_at(tb.tb_frame, tb.tb_lasti)
    body = [i for i in _instructions(tb.tb_frame.f_code) if jump.offset < i.offset < jump.argval]
    return bool(body) and body[-1].opname == "RAISE_VARARGS" and not any(
        [i.opcode in hasjrel for i in body])


def _value(taken: list[Instruction], frame: FrameType) -> Any:
    """What instructions give: a constant, a variable, a list or tuple, and of these attributes
    that need no call, and what dictionaries have at constant keys; `UNKNOWN` of all else."""
    last = taken[-1]
    if last.opname in ("BUILD_LIST", "BUILD_TUPLE") and last.arg:
        values = _on_stack(last.arg, taken[:-1], frame) or [UNKNOWN]
        made = list if last.opname == "BUILD_LIST" else tuple
        return UNKNOWN if any([x is UNKNOWN for x in values]) else made(values)
    if taken[0].opname == "BUILD_LIST" and [i.opname for i in taken[1:]] == [
            "LOAD_CONST", "LIST_EXTEND"]:
        return list(taken[1].argval)
    return [*_values(taken, frame)][-1]


def _values(taken: Sequence[Instruction], frame: FrameType) -> Iterator[Any]:
    """What an expression is, instruction by instruction: a constant or a variable, and of these
    attributes that need no call and elements; from where anything else is done, `UNKNOWN`."""
    stack = [_loaded(taken[0], frame)]
    yield stack[0]
    for i in taken[1:]:
        if i.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            stack[-1] = attribute(stack[-1], i.argval)
        elif i.opname == "BINARY_SUBSCR" and len(stack) > 1:
            key = stack.pop()
            stack[-1] = _element(stack[-1], key)
        elif i.opname.startswith("LOAD_"):
            stack.append(_loaded(i, frame))
        else:
            stack = [UNKNOWN]
        yield stack[0] if len(stack) == 1 else UNKNOWN


def _element(value: Any, key: Any) -> Any:
    if type(value) is dict and type(key) in (str, int):
        return value.get(key, UNKNOWN)
    indexed = type(value) in (list, tuple) and type(key) is int and -len(value) <= key < len(value)
    return value[key] if indexed else UNKNOWN


# What attributes are found by, where that calls nothing of the user's.
_BINDING = (FunctionType, classmethod, staticmethod, MemberDescriptorType, GetSetDescriptorType,
            MethodDescriptorType)


def attribute(value: Any, name: str) -> Any:
    """An attribute that needs no call of the user's, as his properties may do anything; `UNKNOWN`
    where there is no such one."""
    if type(value) is ModuleType or is_below(type(value)):
        return getattr(value, name, UNKNOWN)
    found = getattr_static(value, name, UNKNOWN)
    if not hasattr(type(found), "__get__"):
        return found
    if isinstance(value, type):
        owner, obj = value, None
    elif any([found is vars(c).get(name) for c in type(value).__mro__]):
        owner, obj = type(value), value
    else:  # of the object's own dictionary
        return found
    return found.__get__(obj, owner) if isinstance(found, _BINDING) or is_below(type(found)) else (
        UNKNOWN)


PACKAGES = ("jax", "jaxlib", "pyjx")  # what this one's classes are of: under the alias jax


def is_below(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in PACKAGES


def _loaded(i: Instruction, frame: FrameType) -> Any:
    if i.opname == "LOAD_CONST":
        return i.argval
    scopes: tuple[dict[str, Any], ...] = ()
    if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        scopes = frame.f_globals, vars(builtins)
    if i.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME")):
        scopes = frame.f_locals, *scopes
    return next((scope[i.argval] for scope in scopes if i.argval in scope), UNKNOWN)


def operands(tb: TracebackType) -> dict[str, Any]:
    """The variables in the expression that failed; those of its line where it has none."""
    code, known = tb.tb_frame.f_code, tb.tb_frame.f_locals
    places = list(code.co_positions())
    first, last, column, end = places[tb.tb_lasti // 2]
    for exact in (True, False):
        names: dict[str, None] = {}
        for i in _instructions(code):
            line, end_line, at, to = places[i.offset // 2]
            if line is None or first is None or i.opname[:5] != "LOAD_":
                continue
            if ((line, at or 0) >= (first, column or 0) and (end_line, to or 0) <= (last, end or 0)
                    if exact else line == first):
                names[i.argval] = None
        found = {name: known[name] for name in names if name in known}
        if found:
            return found
    return {}


def written(frame: FrameType, parameters: Mapping[str, Parameter], with_object: bool
            ) -> dict[str, str]:
    """The arguments that a frame was called with as they are written, where that is one line; but
    for long ones. The parameters begin with that for the object of a method if `with_object`."""
    caller = frame.f_back
    assert caller is not None
    call: Any = expression_at(caller, caller.f_lasti)
    before = _before(caller, caller.f_lasti, with_object)
    if call is None or before is None or any([isinstance(x, ast.Starred) for x in call.args]):
        return {}
    is_partial = isinstance(value_called(caller, caller.f_lasti)[1], partial)
    first: list[Any] = [None if is_partial else call.func.value for _ in before]
    given = Signature([*parameters.values()]).bind(
        *first, *call.args, **{k.arg: k.value for k in call.keywords}).arguments
    return {p: text for p, x in given.items()
            if isinstance(x, ast.expr) and (text := text_of(x))}


def expression_at(frame: FrameType, at: int) -> ast.expr | None:
    """The expression that is done at an offset, as it is written, where that is in one line."""
    line, last, start, end = list(frame.f_code.co_positions())[at // 2]
    if line is None or line != last:
        return None
    text = linecache.getline(frame.f_code.co_filename, line).encode()[start:end]
    with suppress(SyntaxError):  # of statements, and where there is no source
        return ast.parse(text.decode(errors="replace"), mode="eval").body
    return None


def text_of(written: ast.AST) -> str:
    """An expression as it is written; empty of a long one."""
    text = ast.unparse(written)
    return text if len(text) <= _MOST_WRITTEN else ""


def subscript_at(frame: FrameType, at: int) -> tuple[str, str]:
    """What a subscript at an offset is of, and its index, as they are written; others where that
    is not known, or a call gives it."""
    written = expression_at(frame, at)
    if isinstance(written, ast.Subscript) and not any(
            [isinstance(part, ast.Call) for part in ast.walk(written.value)]):
        bare = ast.Subscript(ast.Name("_"), written.slice)  # where a tuple needs no brackets
        return text_of(written.value) or "xs", text_of(bare)[2:-1] or "i"
    return "xs", "i"


def compared_at(frame: FrameType, at: int) -> tuple[str, str]:
    """What a comparison at an offset is of, as it is written; others where that is not known."""
    written = expression_at(frame, at)
    if isinstance(written, ast.Compare) and len(written.ops) == 1:
        return text_of(written.left) or "x", text_of(written.comparators[0]) or "xs"
    return "x", "xs"


def _changed_names(code: CodeType, at: int) -> set[str]:
    """The variables that code may have stored to, or deleted, on the way to an offset."""
    every, found = _instructions(code), set[str]()
    ends = [i.offset for i in every if i.opname.startswith(("JUMP_BACKWARD", "POP_JUMP_BACKWARD"))
            and i.argval <= at < i.offset]  # of loops that it is in
    for i in every:
        if i.offset < max([at, *ends]) and i.opname.startswith(
                ("STORE_FAST", "STORE_DEREF", "DELETE_FAST")):
            found.add(i.argval)
    return found


def _starts(code: CodeType) -> list[tuple[int | None, int | None]]:
    """Where the expression of each instruction begins, by half its offset."""
    return [(line, column) for line, _, column, _ in code.co_positions()]


def callee(frame: FrameType, at: int) -> tuple[list[str], Any]:
    """The names of what a frame calls at an offset, up to the first bracket, and what the first one
    stands for. They are read in the code, as there is no source of what a shell is given."""
    starts = _starts(frame.f_code)
    start = starts[at // 2]
    begun = [i for i in _instructions(frame.f_code)
             if starts[i.offset // 2] == start and i.opname != "PUSH_NULL"]
    names = [i.argval for i in takewhile(
        lambda i: i.opname.startswith("LOAD_") and isinstance(i.argval, str), begun)]
    if start[1] is None or not names or begun[0].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        return [], None  # of an expression in brackets, whose attribute has no value of its own
    scopes = frame.f_locals, frame.f_globals, frame.f_builtins
    return names, next((scope[names[0]] for scope in scopes if names[0] in scope), None)


def values_before(frame: FrameType, at: int) -> Iterator[Any]:
    """The values by which an expression comes to what it calls at an offset, from its first name
    on, as far as they are known."""
    starts = _starts(frame.f_code)
    every = _instructions(frame.f_code)
    begun = [i.offset for i in every if starts[i.offset // 2] == starts[at // 2]
             and i.opname.startswith("LOAD_")]
    taken = [i for i in every if begun and begun[0] <= i.offset < at and i.opname != "PUSH_NULL"]
    return (x for x in (_values(taken, frame) if taken else ()) if x is not UNKNOWN)


def values_in(tb: TracebackType) -> Iterator[Any]:
    """What the names stand for, with their attributes, in the statement's part that failed."""
    code, places = tb.tb_frame.f_code, list[Any](tb.tb_frame.f_code.co_positions())
    first, last, *_ = places[tb.tb_lasti // 2]
    run: list[Instruction] = []
    for i in _instructions(code):
        line = places[i.offset // 2][0]
        if i.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            if run:
                yield [*_values(run, tb.tb_frame)][-1]
            run = []
        if i.opname.startswith("LOAD_") and None not in (line, first, last) and (
                first <= line <= last):
            run.append(i)


def value_called(frame: FrameType, at: int) -> tuple[str, Any]:
    """What a frame calls at an offset, as it is written there, and its value; nothing of what
    another call gave."""
    names, value = callee(frame, at)
    starts = _starts(frame.f_code)
    calls = [i for i in _instructions(frame.f_code) if i.opname in CALLS and i.offset <= at
             and starts[i.offset // 2] == starts[at // 2]]
    if calls[1:]:
        return "", None
    for name in names[1:]:
        value = attribute(value, name)
    return ".".join(names), None if value is UNKNOWN else value


def method_called(frame: FrameType, at: int) -> str:
    """The name of the attribute that a frame calls at an offset, of whichever value."""
    starts, every = _starts(frame.f_code), _instructions(frame.f_code)
    call = max([i.offset for i in every if i.offset <= at])  # a frame that has called is behind it
    found = [i for i in every if i.offset < call and starts[i.offset // 2] == (
        starts[at // 2]) and i.opname in ("LOAD_ATTR", "LOAD_METHOD", *CALLS)]
    return str(found[-1].argval) if found and found[-1].opname not in CALLS else ""


def around(tb: TracebackType) -> Iterator[tuple[str, Any]]:
    """The instructions of the expressions and statements that what failed is a part of, each with
    the value that it calls."""
    frame = tb.tb_frame
    places: list[Any] = list(frame.f_code.co_positions())
    failed = places[tb.tb_lasti // 2]
    for i in _instructions(frame.f_code):
        place = places[i.offset // 2]
        if i.offset > tb.tb_lasti and None not in (*place, *failed) and (
                place[::2] <= failed[::2] and failed[1::2] <= place[1::2]):
            yield i.opname, value_called(frame, i.offset)[1] if i.opname in CALLS else None
