"""The user's call on an error: the function that was called in the place of one that it is made of,
which argument it is about that Python itself, or a function within the one that was called, raises
in words of its own, and the call as a note where the message does not name the function."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from inspect import Parameter
from opcode import opmap
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from numpy.exceptions import AxisError

from pyjx import errors
from pyjx.core.call_code import (
    UNKNOWN,
    Call,
    call_in,
    call_with,
    function_of,
    is_listed,
    is_primitive,
    operands,
    path_of,
    public_name,
    written,
)
from pyjx.core.frames import is_internal, is_of_foundation, tracebacks_of
from pyjx.core.trace import Tracer
from pyjx.core.value_texts import in_short, shortened, shortened_text
from pyjx.guards import is_guarded
from pyjx.tree_util import tree_structure

_NOTE = "The call was"
_LONGEST = 600  # characters of its arguments


def note_call(exc: Exception, fun: Any, args: Sequence[Any], kwargs: Mapping[str, Any],
              static: Collection[str] = ()) -> None:
    """Tell an error of the function `fun`, which was called with these arguments and calls this in
    an `except` clause, in words of the user's call, and show that where they do not name it. Of
    its arguments those in `static` must be known while it is traced.

    A function of the library that had called it is told of in its place. There is no note where a
    function of the user's, or of another package, was running. Whatever goes wrong here, the error
    stays as it was.
    """
    caller = sys._getframe(1).f_back
    try:
        frame = _outermost_internal(caller)
        if frame is None:
            call = call_with(fun, args, kwargs)
        else:  # what is guarded does this as the error leaves it
            at = next((tb.tb_lasti for tb in tracebacks_of(exc) if tb.tb_frame is frame),
                      frame.f_lasti)  # which is that of the handler
            call = None if fun is not None and is_guarded(frame.f_code) else call_in(frame, at)
        if call is None or _users_function_ran(exc):
            return
        text = None if hasattr(exc, "_is_told") else _of_array(exc, call)
        if text is None and isinstance(exc, ASKED):
            _tell_traced(exc, call, static)
        text = text or (None if hasattr(exc, "_is_told") else (
            _of_flag(exc, call) or _exchanged(exc, call) or _of_function(
                exc, told(exc, call, list(tracebacks_of(exc))), call)))
        if text is not None:
            say(exc, text)
            exc._is_told = True  # type: ignore[attr-defined]
        if type(exc) is TypeError and not call.functions() and call.then is None:
            say(exc, _SCOPE.sub("", str(exc)))  # as no function could have it otherwise
        renamed = _name_called(exc, call) and text is None
        if renamed or not _tells(exc, call.name):
            shown = _by_position_and_name(args, kwargs) if frame is None else _as_given(
                call, frame)
            text = shortened_text(", ".join(shown), _LONGEST)
            then = ", ".join(_by_position_and_name(*call.then)) if call.then else None
            further = "" if then is None else f"({shortened_text(then, _LONGEST)})"
            exc.add_note(f"{_NOTE} {call.name}({text}){further}.")
    except Exception:  # of a name or an argument whose class raises as it is looked at
        pass


def _of_flag(exc: Exception, call: Call) -> str | None:
    """That a flag, which was given as the argument before it, has a name."""
    *_, last = tracebacks_of(exc)
    flag = call.given.get("out", last.tb_frame.f_locals.get("dtype"))  # which that refuses
    return None if type(flag) is not bool or "keepdims" not in call.parameters else (
        f"{str(exc).removesuffix('.')}. A flag is given by its name, as in keepdims={flag}.")


_OF_NONE = {"", "None"}  # as of `out`, which a function refuses in words of its own
_OF_ONE = {*_OF_NONE, "SupportsIndex", "SymbolicDim", "bool", "int"}  # of one number, at most
_OF_WHOLE = {*_OF_ONE, "Axes", "Axis", "AxisLike", "Sequence", "Shape", "tuple"}
_UNNAMED = ("The truth value of an ", "Only integer scalar arrays can", "Only scalar arrays can",
            "axis must be an integer, got (")  # what does not say which argument it is about
_OF_TWO = {"max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum", "sum": "add",
           "prod": "multiply", "any": "logical_or", "all": "logical_and"}


def _of_array(exc: Any, call: Call) -> str | None:
    """That an array was given for a flag, a number or an axis of Python's, and what it may have
    been meant for. Here, and not where functions read these, as each of them has some, and arrays
    fail in many ways: asked whether they are true, or with what was exchanged for them."""
    message, asked = str(exc), isinstance(exc, ASKED)
    for p, x in call.given.items():
        of_two = p == "axis" and call.name in _OF_TWO and (_has_arrays(x) or (
            isinstance(x, float) and not _rank(next(iter(call.given.values())))) or (
            hasattr(x, "dtype") and not _is_whole(x)))
        if not of_two and not _is_for_one(call, p, x):
            continue
        shown = shortened(x)
        cure = _meant(call, p) if not of_two else (
            f"Of two arrays, element by element: jnp.{_OF_TWO[call.name]}(x, y).")
        if f"{p} must be " in message and shown in message and not asked:
            return f"{message.removesuffix('.')}. {cure}" if cure else None
        of_element = f"{p} must be an integer, got " in message
        if not (cure or asked or of_element or message.startswith(_UNNAMED)):
            return None
        if not (cure or asked or message.startswith(_UNNAMED[0])):
            cure = message.partition(". ")[2]
        text = f"{call.name}: {p} {_wanted(call.annotations.get(p), UNKNOWN)}{shown}. {cure}"
        if asked:
            return errors.told_otherwise(exc, cure=text.strip(), known="") if exc.said else None
        if isinstance(exc, AxisError) and exc.axis is not None:  # which makes its message anew
            exc.add_note(text)
            return None
        return text.strip()
    return None


def _is_for_one(call: Call, parameter: str, x: Any) -> bool:
    """Whether a parameter takes none but flags, numbers or axes, and was given arrays, which it
    cannot be."""
    parts = {part for pair in _PART.findall(str(call.annotations.get(parameter)))
             for part in pair}
    own = call.parameters.get(parameter)
    variadic = own is not None and own.kind is own.VAR_POSITIONAL
    return _has_arrays(x) and not variadic and not parts <= _OF_NONE and (
        parts <= (_OF_ONE if _is_whole(x) else _OF_WHOLE))


def _has_arrays(x: Any) -> bool:
    return any(map(_has_arrays, x[:64])) if type(x) in (list, tuple) else (
        hasattr(x, "dtype") and _rank(x) > 0)


def _meant(call: Call, parameter: str) -> str:
    """What an array was meant for that came as another parameter: to be in the tree before it,
    which a function takes apart, or before a number that came first; empty where neither is so."""
    before = list(call.given)[:list(call.given).index(parameter)]
    if call.parameters and call.parameters[parameter].kind is Parameter.KEYWORD_ONLY:
        return ""
    names = [*call.parameters] or [*call.code.co_varnames]
    if parameter in names[len(before) + 1:]:  # it was given by its name
        return ""
    if any([_OF_FUNCTIONS.search(str(call.annotations.get(p))) for p in before]):
        trees = [p for p in before if str(call.annotations.get(p)) == "Any"]
        return f"{trees[-1]} is one tree: (a, b) for several arrays." if trees else ""
    numbers = [p for p in before if type(call.given[p]) is int and not _is_for_python(
        call.annotations.get(p))]
    return _order(call) if numbers else ""


_NO_FUNCTION = re.compile(r"(?=.*(?:\bcallable|must be a function))(.*?)(?:\.$|\. (?=[A-Za-z])|$)")


_OF_FUNCTIONS = re.compile("Callable|Linear")  # annotations; of solvers the latter


def _of_function(exc: Exception, text: str | None, call: Call) -> str | None:
    """The message, if it is told, and what to do where something else was given for a function: the
    order of the arguments, if there was one among the others."""
    own = [p for p in call.given if p[-4:] == "_fun" or _OF_FUNCTIONS.search(
        str(call.annotations.get(p)))]
    others = [x for p, value in call.given.items() if p not in own
              for x in (value if type(value) is tuple else (value,))]
    wrong = {p: shortened(x) for p in own if not _is_function(x := call.given[p])}
    found = _NO_FUNCTION.match(text or str(exc))
    exchanged = any(map(_is_function, others))
    if not wrong or type(exc) not in (TypeError, ValueError) or not (found or exchanged):
        return text
    first, cure, shown = (text or str(exc)).removesuffix("."), "", ""
    if found:
        first, cure = found[1], found.string[found.end():]
        shown = "".join([f". {p} is {x}" for p, x in wrong.items() if f"got {x}" not in first])
    if exchanged:
        cure = _order(call)
    return f"{first}{shown}. {cure or 'Give the function itself, not what it returns.'}"


def _order(call: Call) -> str:
    order = ["*" * (p.kind is p.VAR_POSITIONAL) + name for name, p in call.parameters.items()
             if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD) and (
                 p.default is p.empty or name in call.given)]
    return f"The order of the arguments is {call.name}({', '.join(order)})."


def _is_name(x: Any) -> bool:
    return isinstance(x, str) or (type(x) is tuple and bool(x) and all(map(_is_name, x)))


def _rank(x: Any) -> int:
    return len(x.shape) if hasattr(x, "shape") else type(x) in (list, tuple)


def _is_whole(x: Any) -> bool:
    return all(map(_is_whole, x)) if type(x) in (list, tuple) else isinstance(x, int) or (
        getattr(getattr(x, "dtype", None), "kind", "f") in "iu")


def _has_axes(x: Any) -> bool:
    return _rank(x) > 0 and type(x) not in (list, tuple)


def _is_value(x: Any) -> bool:
    return hasattr(x, "dtype") or isinstance(x, (int, float, complex))


# What fits a parameter of this name: of operations, NumPy's functions and `checkify.check`. Here,
# and not where these check what they are given, as exchanged arguments fail in many places: at a
# rank, a dtype, an axis, or in the loop over a sequence, where only one of them is known.
_KINDS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(["operand", "a", "arr"], _has_axes),
    "update": _is_value,
    "q": lambda x: True,  # whose rank may be too high by itself
    **dict.fromkeys(["start_indices", "scatter_indices", "indices"], _is_whole),
    **dict.fromkeys(["start_index", "index"], lambda x: _is_value(x) and not _rank(x)),
    "updates": lambda x: _is_value(x) or isinstance(x, list),
    "dimension_numbers": lambda x: type(x).__name__.endswith("DimensionNumbers"),
    "axis_name": _is_name, "perm": lambda x: not isinstance(x, str),
    "concat_axis": lambda x: isinstance(x, int), "split_axis": lambda x: isinstance(x, int),
    "pred": lambda x: not isinstance(x, str), "msg": lambda x: isinstance(x, str),
}
_SENTENCE = re.compile("[.;](?= [A-Za-z])")


def _exchanged(exc: Exception, call: Call) -> str | None:
    """The order of the arguments, where two were given for each other: each fits the other's
    parameter, and one of them not its own."""
    body = next((tb.tb_frame.f_locals for tb in tracebacks_of(exc)
                 if tb.tb_frame.f_code is call.code), {})
    known = {p: body.get(p, x) if x is UNKNOWN else x for p, x in call.given.items() if p in _KINDS}
    wrong = [p for p, x in known.items() if not _KINDS[p](x)]
    for one, other in [(p, o) for p in wrong for o in known if p != o and {*wrong} <= {p, o} and (
            o in wrong or type(known[p]) is not list)]:  # such a one may be where it belongs
        if _KINDS[one](known[other]) and _KINDS[other](known[one]):
            said = str(exc)
            if isinstance(exc, AxisError):  # which makes its message anew
                exc.add_note(_order(call))
                return None
            ends = [m.start() for m in _SENTENCE.finditer(said)][
                said.startswith("Error interpreting"):]
            return f"{said[:ends[0]] if ends else said.removesuffix('.')}. {_order(call)}"
    return None


def _is_function(x: Any) -> bool:
    return all(map(_is_function, x)) if type(x) in (list, tuple) else callable(x) or x is UNKNOWN


def say(exc: Any, text: str) -> None:
    """Let this be the message."""
    exc.args = (text,)
    for name in ("_msg", "_error_message"):  # of NumPy's AxisError, and of jaxlib's errors
        if hasattr(exc, name):
            setattr(exc, name, text)


_LEADING = re.compile(r"((?:[a-z]\w*\.)*)(\w+)((?:\(\))?: (?:(?=(\w+) must ))?|"
                      r"\(\) | (?:got|requires) |(?= [a-z]))")
_OPERATIONS = ("pyjx.lax.", "pyjx.engine.", "pyjx.core.")  # programs match on their words
_TRANSFORMATIONS = ("grad", "jvp", "linearize", "vjp", "vmap")  # which rules of operations tell of


def _name_called(exc: Exception, call: Call) -> bool:
    """Let a message that begins with another function of this package begin with the one that the
    user called, and did not give the other one."""
    name, given = call.name, call.functions()
    ran = [public_name(function_of(tb.tb_frame)) for tb in tracebacks_of(exc)] if given else []
    name = next((own for own in ran if own in given and own), name)  # which it calls
    message = getattr(exc, "_msg", exc.args[0] if len(exc.args) == 1 else None)
    found = _LEADING.match(message) if isinstance(message, str) else None
    if found is None:
        return False
    path, other, after, subject = found.groups()
    text = f"{'' if name.startswith(path) else path}{name}{str(message)[found.end(2):]}"
    if subject in call.given and other != name:
        say(exc, text)
        return False  # as it tells what was given
    if other == name or other in call.parameters or other in call.functions() or (
            f"pyjx.{path}{other}" in sys.modules):  # which is no function
        return False
    *_, raised = tracebacks_of(exc)
    listed, module = is_listed(other), str(raised.tb_frame.f_globals.get("__name__"))
    outer = other in _TRANSFORMATIONS and raised.tb_frame.f_code.co_filename != (
        call.code.co_filename)
    method = other == name.rpartition(".")[2]
    before = name[:1].isupper() and not method  # what has been called is told of as it is compiled
    if outer or before or module.startswith("pyjx.engine."):
        return False
    if after == ": ":
        ours = listed or is_primitive(other)
    elif listed:
        ours = bool(after or "_" in other) and not module.startswith(_OPERATIONS)
        ours |= any([_is_of(tb.tb_frame, other) for tb in tracebacks_of(exc)])
    else:
        ours = "_" in other and is_primitive(other)
    ours |= method or other == call.other_name
    if ours:
        say(exc, text)
    return ours


def _is_of(frame: FrameType, name: str) -> bool:
    """Whether a public function of this name, which is no operation, runs in the frame."""
    return frame.f_code.co_name == name and public_name(function_of(frame)) == name and not str(
        frame.f_globals.get("__name__")).startswith(_OPERATIONS)


def _users_function_ran(exc: Exception) -> bool:
    files = [tb.tb_frame.f_code.co_filename for tb in tracebacks_of(exc)]
    return not all([is_internal(file) or is_of_foundation(file) for file in files])


def _outermost_internal(frame: FrameType | None) -> FrameType | None:
    """The frame of the function that the user called to come to this one; None if that is the
    user's own."""
    found = None
    while frame is not None and is_internal(frame.f_code.co_filename):
        found, frame = frame, frame.f_back
    return found


def _tells(exc: Exception, name: str) -> bool:
    """Whether the exception names the function, or shows another call of it."""
    if any(note.startswith(_NOTE) for note in getattr(exc, "__notes__", ())):
        return True
    message = str(exc)
    return name in message and re.search(rf"\b{name}\b", message) is not None and (
        _GIVEN.search(message.replace(f"{name}()", "")) is not None)


_GIVEN = re.compile(r"\bgot\b|[(\[='\"]|\d, ")  # what a message shows what came by


def _as_given(call: Call, frame: FrameType) -> list[str]:
    variadic = any(p.kind is p.VAR_POSITIONAL for p in call.parameters.values())
    texts: dict[str, str] = {}
    if any([x is UNKNOWN for x in call.given.values()]):
        with suppress(Exception):  # there is no source, or that is of another call
            texts = written(frame, call.parameters, "." not in call.name)
    shown: list[str] = []
    for name, x in call.given.items():
        kind = call.parameters[name].kind if call.parameters else Parameter.KEYWORD_ONLY
        if kind is Parameter.VAR_POSITIONAL:
            shown += _by_position_and_name(x, {})
        elif kind is Parameter.VAR_KEYWORD:
            shown += _by_position_and_name((), x)
        else:
            unnamed = kind is Parameter.POSITIONAL_ONLY or (
                variadic and kind is not Parameter.KEYWORD_ONLY)
            text = texts.get(name, "...") if x is UNKNOWN else _shown(x)
            shown.append(("" if unnamed else f"{name}=") + text)
    return shown if call.complete else [*shown, "..."]


def _shown(x: Any) -> str:
    return "..." if x is UNKNOWN else in_short(x, places=False)


def _by_position_and_name(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    return [*[_shown(x) for x in args], *[f"{name}={_shown(x)}" for name, x in kwargs.items()]]


# -- which argument it is about --------------------------------------------------------------------


_BARE = (TypeError, ValueError, AttributeError, IndexError, KeyError, OverflowError,
         ZeroDivisionError)
_POSITION = re.compile(r"(?:[\w.]+ requires ndarray or scalar arguments, |Error interpreting "
                       r"argument to ).*? at position (?=\d)(\d+)", re.DOTALL)
_PASSED = re.compile(r"(?<= to )[\w.-]+(?: \(\w+\))?(?= as a JAX value| at position)")
_SCOPE = re.compile(r" (?:The function may|Its class may be a pytree).*", re.DOTALL)
_PYTHONS = re.compile(r"^'\w+' object (is|has|cannot) ")
_OF_VALUE = re.compile(r"(Expected a callable value, got |Argument .* is not a valid JAX type|"
                       "Invalid argument to dtype: .* not understood)")
_OTHER_KINDS = ("NoneType", "function", "ndarray")
_OF_CALLS = re.compile(r"\) (takes|missing|got an unexpected) ")  # which calls of functions get
_SUBJECT = re.compile(r"(?:((?:[\w.]+\.)?)(\w+): )?([a-z_]\w*|[A-Z])(?= must )")


def told(exc: Exception, call: Call, tbs: Sequence[TracebackType]) -> str | None:
    """The message in words of the call; None where it is so already, or nothing is known."""
    message = exc.args[0] if len(exc.args) == 1 else None
    if not (isinstance(message, str) or type(exc) is KeyError) or not (
            type(exc) in _BARE or message == "std::bad_cast"):
        return None
    text, last = str(message), tbs[-1]
    code: CodeType = last.tb_frame.f_code
    operation, argument = code.co_code[last.tb_lasti:last.tb_lasti + 2]
    said = is_internal(code.co_filename) and operation == opmap["RAISE_VARARGS"] and (
        argument > 0 and not _PYTHONS.search(text))  # it may raise again what Python has raised
    if said and (position := _POSITION.match(text)):
        return _told_of_position(exc, text, position, call, tbs)
    subject, of_value = _SUBJECT.match(text), _OF_VALUE.match(text)
    if said and any([_names(text, p) for p in call.given]):
        return None
    if hasattr(exc, "_is_complete") or "\n" in text or (
            not (subject or of_value) if said else _OF_CALLS.search(text)):
        return None
    about = _about(text, said and not of_value, call, tbs)
    if about is None:
        return None
    name, value = about
    shown = shortened(value)
    if said and subject and subject[2]:
        of_one = subject[2] == call.name and subject[3][-1] != "s"
        if of_one or re.search(rf"got {re.escape(shown)}(?![\w,)\]}}}}])", text):
            return f"{subject[1] or ''}{call.name}: {name}{text[subject.end():]}"
    if said and not (of_value and call.parameters) and shown not in text:
        return None
    return _told_of_value(text, name, value, call, bool(of_value))


def _told_of_position(exc: Exception, text: str, position: re.Match[str], call: Call,
                      tbs: Sequence[TracebackType]) -> str | None:
    """What an operation says of the position of its operand, of that of the user's argument."""
    about, passed = _about(text, False, call, tbs), _PASSED.search(text)
    if passed and passed[0] in call.functions():
        return None
    before, after = _PASSED.sub(call.name, text[:position.start(1)]), text[position.end():]
    for p, given in call.given.items():  # of several arrays, which came as one sequence
        if call.parameters and call.parameters[p].kind is Parameter.VAR_POSITIONAL and (
                type(given) is tuple and len(given) == 1 and type(given[0]) in (list, tuple)
                and any([hasattr(x, "shape") for x in given[0]])):
            after = ". Give what it holds one by one, as *x."
    if about is None:
        return passed and before.removesuffix(" at position ") + after
    name, value = about
    if name in ("lower", "pred", "upper") or not any(
            [callable(x) for p, x in call.given.items() if p != name]):
        after = _SCOPE.sub("", after)  # as no function is traced, which may have it otherwise
    refused = tbs[-1].tb_frame.f_locals.get("x", value)
    found = path_of(exc, refused)
    path = found[2] if found and found[1] == name else ""
    if type(value) in (list, tuple) and _is_whole(value) and any([
            _has_arrays(x) and (type(value) is tuple or not _is_whole(x)) and _is_for_python(
                call.annotations.get(p))
            for p, x in call.given.items() if p != name]):  # a shape or axes, in their place
        after = f". {_order(call)}"
    own = tree_structure(refused)
    part = type(value) in (list, tuple) and (
        str(type(value)) not in text or own != tree_structure(value))
    if part and not path:  # not all that are counted need be of this one
        path = next((f"[{i}]" for i, x in enumerate(value) if str(type(x)) in text and (
            tree_structure(x) == own)), f"[{position[1]}]")
    place: Any = list(call.given).index(name)
    if (part and not place) or text.partition(" ")[0] in call.functions():
        place = position[1]  # of joined ones, theirs, and that of the function that was given
    return f"{before}{place}. That is the argument {name}{path}{after}"


def _told_of_value(text: str, name: str, value: Any, call: Call, whole: bool) -> str | None:
    """What the argument `name` must be, with the message in brackets, or where that is not known
    the message with the value; if `whole`, it is of the value as it was given."""
    annotation, own, shown = call.annotations.get(name), call.parameters.get(name), shortened(value)
    wanted = _wanted(annotation, value)
    if whole:
        if "DType" in str(annotation):
            return None
        if own is not None and own.kind is own.VAR_POSITIONAL:
            name, shown = next(((f"{name}[{i}]", each) for i, each in enumerate(
                map(shortened, value)) if each in text), (name, shown))
            if len(shown) > 60:  # once is enough
                text = text.replace(f"Argument {shown} of", "An argument of")
        else:  # no function that is traced
            text = text.partition(". The function may")[0]
    if wanted:
        return f"{call.name}: {name} {wanted}{shown} ({text.removesuffix('.')})"
    first, *cures = text.split(". ", 1)
    return ". ".join([f"{call.name}: {first.removesuffix('.')} ({name} is {shown})", *cures])


def _names(text: str, parameter: str) -> bool:
    """Whether a message names a parameter. One of a single letter is no word of its sentence."""
    name = re.escape(parameter)
    plain = rf"\b{name}\b" if len(parameter) > 1 else rf"\b{name}(?= must |=|: )|`{name}`"
    return re.search(plain, text) is not None


def _about(text: str, said: bool, call: Call, tbs: Sequence[TracebackType]
           ) -> tuple[str, Any] | None:
    """The argument that the innermost expression with one in it failed with, and what it was."""
    own = next((tb.tb_frame for tb in tbs if tb.tb_frame.f_code is call.code), None)
    body = own.f_locals if own is not None else {}
    known = {*dir(builtins), *[type(x).__name__ for x in call.given.values()], *_OTHER_KINDS}
    kinds = {*re.findall(r"'(?:[\w.]+\.)?([A-Za-z_]+?)_?\d*'", text)} & known  # NumPy's, too
    left: dict[str, Any] = {}  # which were given one object, and some expression further out has
    for tb in reversed(tbs):
        used = operands(tb)
        found = {}
        for variable, x in used.items():
            holders = call.holders(x, body)  # of which one may have given it its name
            found.update(dict.fromkeys({variable}.intersection(holders) or holders, x))
        if tb.tb_frame is own:
            found.update({p: used[p] for p in used if p in call.given})
        if kinds:  # Python says of what type it is
            found = {p: x for p, x in found.items() if said or type(x).__name__ in kinds}
        left = {p: x for p, x in found.items() if not left or p in left} or left
        if len(left) == 1:
            ((p, x),) = left.items()
            return p, x if call.given[p] is UNKNOWN else call.given[p]
        if len({*map(id, left.values())}) > 1:
            break
    if left and (said or not kinds):
        return None
    of_kind = [(p, x) for p, x in call.given.items() if type(x).__name__ in kinds
               and _wanted(call.annotations.get(p), x)]
    return of_kind[0] if len(of_kind) == 1 else None


# -- what a function asks of a traced argument -----------------------------------------------------


ASKED = (errors.ConcretizationTypeError, errors.TracerArrayConversionError,
         errors.TracerIntegerConversionError)
_MADE = re.compile(r" The value came from the operation `.*?\)\.(?=\n|$)")


def _tell_traced(exc: Any, call: Call, static: Collection[str]) -> None:
    """Say which arguments the function had to know while it was traced, of the static ones if it
    tells these, in place of what serves where the user's own code asks for the value."""
    *_, last = tracebacks_of(exc)
    asked = _tracers(list(last.tb_frame.f_locals.values()))
    given = {p: found for p, x in call.given.items() if (found := _tracers(x))}
    itself = [p for p, found in given.items() if any([x is y for x in found for y in asked])]
    by_python = isinstance(exc, (errors.TracerBoolConversionError,
                                 errors.TracerIntegerConversionError))
    names = [p for p in given if (p in static if static else _is_for_python(
        call.annotations.get(p)) or (by_python and p in itself))]
    names = [p for p in names if p in itself] or names
    if not names or exc.said is None:
        return
    variadic = call.parameters and call.parameters[names[0]].kind is Parameter.VAR_POSITIONAL
    called = "" if variadic else f" {', '.join(map(repr, names))}"
    cure = (f"Argument{called} of {call.name} is a part of the program, and must be known while it "
            "is traced.")
    if variadic or len(names) > 1:
        cure = (f"Arguments{called} of {call.name} are parts of the program, and must be known "
                "while it is traced.")
    origin = exc.said.origin if itself else _MADE.sub("", exc.said.origin)  # made by the function
    say(exc, errors.told_otherwise(exc, origin=origin, cure=cure, known=errors.cure_of_known(
        given[names[0]][0], "Python's value")))


def _tracers(x: Any) -> list[Tracer]:
    """Those that a value is or holds; of long lists, as of data, in the first elements."""
    if isinstance(x, (list, tuple)):
        return [tracer for y in x[:64] for tracer in _tracers(y)]
    return [x] if isinstance(x, Tracer) else []


_OF_PYTHON = {"", "Axes", "Axis", "AxisLike", "None", "Sequence", "Shape", "SupportsIndex",
              "SymbolicDim", "bool", "complex", "float", "int", "list", "ndarray", "str", "tuple"}


def _is_for_python(annotation: Any) -> bool:
    """Whether an argument is of types that a traced value has none of."""
    parts = _PART.findall(str(annotation))
    return annotation is not None and all([part in _OF_PYTHON for pair in parts for part in pair])


# -- what an argument must be ----------------------------------------------------------------------

_TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "int": ("an integer", (int,)), "SupportsIndex": ("an integer", (int,)),
    "float": ("a number", (int, float)), "complex": ("a number", (int, float, complex)),
    "bool": ("True or False", (bool,)), "str": ("a string", (str,)),
    "None": ("None", (type(None),)), "Sequence": ("a sequence", (list, tuple)),
    "Iterable": ("a sequence", (list, tuple)), "tuple": ("a tuple", (tuple,)),
    "list": ("a list", (list,)), "Mapping": ("a dictionary", (dict,)),
    "dict": ("a dictionary", (dict,)), "Callable": ("a function", (FunctionType,)),
    "Shape": ("a shape", (tuple,)), "Axes": ("an integer or a sequence of integers", ()),
    "AxisLike": ("an integer, a sequence of integers or None", (int, list, tuple, type(None))),
    "ArrayLike": ("an array", (int, float, complex)), "Array": ("an array", ()),
    "DTypeLike": ("a dtype", (str, type)), "KeyLike": ("a key", ()),
    "IsLeaf": ("a function or None", (FunctionType,)),
    "ShardingLike": ("a sharding", ()), "DeviceLike": ("a device", ()),
    "Axis": ("an integer, a name, a sequence of these or None", ()),
}
_ELEMENTS = {"int": " of integers", "SupportsIndex": " of integers", "str": " of strings",
             "ArrayLike": " of arrays", "Array": " of arrays", "bool": " of bools"}
_PART = re.compile(r"(\w+)(?:\[(\w*).*?\])?(?: \| |$)")  # of a type: its name, and of what it is


def _wanted(annotation: Any, value: Any) -> str:
    """What an argument must be, by its annotation; empty where it is that."""
    words: dict[str, None] = {}
    if annotation is None:
        return ""
    for base, elements in _PART.findall(str(annotation)):
        named, kinds = _TYPES.get(base, (f"a{'n' * (base[0] in 'AEIO')} {base}", ()))
        if base not in _TYPES and not is_listed(base):  # another name of types
            return ""
        if base in ("Any", "object", "Literal", "PyTree", type(value).__name__) or (
                len(base) < 3 or type(value) in kinds or (not kinds and hasattr(value, "dtype"))
                or (base == "Callable" and callable(value))):
            return ""
        words[named + _ELEMENTS.get(elements, "")] = None
    *others, last = words
    return f"must be {', '.join(others)}{' or ' * bool(others)}{last}, got "
