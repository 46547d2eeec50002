"""Which word was meant by one that nothing has: a keyword, an option, a dtype, an attribute. Loaded
as the first error is completed."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from itertools import islice
from opcode import opname
from types import FunctionType, ModuleType, TracebackType
from typing import Any

from pyjx.core import call_code, dtypes
from pyjx.core.frames import is_internal, tracebacks_of
from pyjx.lazy import own_dictionary
from pyjx.not_yet import hint, names_elsewhere

UNEXPECTED = re.compile(
    r"^(?:.*?(\w+)?\.)?([^.]+)\(\) got an unexpected keyword argument '(\w+)'"
    r"(?:\. Did you mean '\w+'\?)?$")  # as Python 3.13 guesses
DTYPE = re.compile(r"^data type '(\w+)' not understood")
# What other libraries, or other functions of these, call an argument.
_OTHER_NAMES = {
    "dim": "axis", "dims": "axis", "axes": "axis", "size": "shape",
    "low": "minval", "high": "maxval", "seed": "key", "rng": "key", "input": "x", "other": "y",
    "decimals": "ndigits", "initial": "init", "initializer": "init", "n": "length",
    "len": "length", "steps": "num", "step": "num", "check_rep": "check_vma", "sharding": "device",
    "axis": "dimension in_axes axis_name", "static_argnums": "static_broadcasted_argnums",
    "depth": "num_classes", "reverse": "descending", "interpolation": "method",
    "alpha": "negative_slope", "in_axis_resources": "in_shardings",
    "out_axis_resources": "out_shardings",
}
_OTHER_METHODS = {  # what others say for an update, some of which are close to another one
    "add": "plus increment inc accumulate index_add scatter_add add_at",
    "subtract": "minus decrement dec difference index_sub",
    "multiply": "times mult product scale index_mul", "divide": "over by truediv div_by divided",
    "power": "pow", "max": "maximum fmax amax", "min": "minimum fmin amin",
    "set": "assign update replace put write to index_update copy fill",
    "get": "take read value", "apply": "map call func",
}
_WORD = re.compile("['\"]([\\w.-]+)['\"]")
_NAMED = re.compile(r" are ((?:\w+, )+\w+)")
_LISTED = re.compile(f"[\\[({{]{_WORD.pattern}(?!}})|"
                     f"{_WORD.pattern},? ?(?:or|and)? ?(?={_WORD.pattern})")


def as_option(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """Which word of those that a message of the library's lists was meant by one that the user
    gave."""
    if not is_internal(last.tb_frame.f_code.co_filename):
        return None
    own, given = list[str](), dict[str, None]()  # `own`: keywords, and names of options
    parts = list[str]()  # of texts that the user gave, such as the subscripts of einsum
    text = found.string[:4000]  # some show whole programs, whose words would be compared for long
    for frame in [tb.tb_frame for tb in tracebacks_of(exc)]:
        code, known = frame.f_code, frame.f_locals
        if not is_internal(code.co_filename):
            own, given = [], {}
            continue
        if not given:
            n = code.co_argcount + code.co_kwonlyargcount + (code.co_flags >> 2 & 1) + (
                code.co_flags >> 3 & 1)  # with *args and **kwargs
            values = list(map(known.get, code.co_varnames[:n]))
            own = [word for x in values if isinstance(x, dict) for word in _strings(x)]
            parts = [word for x in values for y in _strings(x) if not y.isidentifier()
                     for word in re.findall(r"\w+", y)]
            given = dict.fromkeys(own)
        given = {**given, **dict.fromkeys([y for x in list(known.values()) for y in _strings(x)])}
    # No types, calls, paths in trees, nor keys of dictionaries.
    text = re.sub(r"<class '[^']*'>|\b[A-Z]\w*\([^()]*\)|(?<=[\w\])])\['[^']*'\]|'[^']*': |"
                  r"\b(?:keys?|tree)\b:?\s*[\[({][^\])}]*", "", text)
    words = [word for group in _LISTED.findall(text) for word in group if word]
    words += [word for names in _NAMED.findall(text) for word in names.split(", ")]
    listed = {word.lower(): word for word in [*words, *_WORD.findall(text)[-1:]] if word not in own}
    for word in given:
        if (word in own or word not in words) and re.search(rf"\b{re.escape(word)}\b", text):
            if listed.get(word.lower()) == word:
                del listed[word.lower()]
            close = difflib.get_close_matches(word.lower(), listed, 1, 0.7)
            if close and "Did you mean" not in text and listed[close[0]] not in parts:
                end = "" if text.endswith(".") else "."
                return f"{found.string}{end} Did you mean {listed[close[0]]!r}?"
    return None


def _strings(x: Any) -> list[str]:
    return [y for y in islice(x if isinstance(x, _COLLECTIONS) else (x,), 8)
            if isinstance(y, str) and 2 < len(y) < 40]


_COLLECTIONS = (list, tuple, dict, set, frozenset)


def as_meant(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """Which keyword was meant where a function, of a class if that is named, got one that it does
    not take."""
    owner, name, given = found.groups()
    said = found.string.partition(". Did you mean")[0]
    called = call_code.value_called(last.tb_frame, last.tb_lasti)[1]
    if not is_ours(last):
        return None
    known: dict[str, bool] = {}  # whether it may be given by its name
    of_numpy = False
    for fun in islice(functions_named(owner, name, last), 3):
        if name == "__init__" and (made := _class_called(called, fun.__globals__.get(owner), last)):
            said = of_class(said, made)
        of_numpy |= fun.__globals__["__name__"].startswith("pyjx.numpy.")
        known.update({
            "*" * (p.kind is p.VAR_POSITIONAL) + p.name: p.kind in (
                p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
            for p in signature(fun).parameters.values()
            if p.kind is not p.VAR_KEYWORD and p.name not in ("self", "cls")})
    at = call_code.arguments_at(last.tb_frame, last.tb_lasti) if (
        call_code.callee(last.tb_frame, last.tb_lasti)[0][-1:] == [name]) else None
    by_position = [*known][:len(at[0]) if at else 0]
    named = [p for p, by_name in known.items() if by_name and p not in by_position]
    others = [p for p in _OTHER_NAMES.get(given, "").split() if p in named]
    close = others[:1] or _nearest(given, named, 0.7) or [
        p for p in named if p.startswith(f"{given}_")]
    if name == "normal" and "key" in known and given in ("loc", "scale", "mean", "std", "stddev"):
        return f"{said}. With these it is loc + scale * jax.random.normal(key, shape)."
    if given == "out" and of_numpy:
        return f"{said}. No array is written to: take the result, as in x = {name}(...)."
    if len(close) == 1:
        return f"{said}. Did you mean '{close[0]}'?"
    shown = ", ".join([p for p in known if p[0] != "_"])
    return f"{said}. The arguments are {shown}." if known else None


def _class_called(called: Any, base: Any, last: TracebackType) -> type | None:
    """Of which class an object was to be made, where that has `__init__` of its base: what was
    called, or what the expression names that was to make one later."""
    called = called.func if isinstance(called, partial) else called
    if isinstance(called, type) or not isinstance(base, type):
        return called if isinstance(called, type) else None
    named = [x for x in call_code.values_in(last) if isinstance(x, type) and issubclass(x, base)]
    return named[0] if len(named) == 1 else None


def of_class(text: str, called: type) -> str:
    """What Python says of the arguments of `__init__`, of those of the class that was called."""
    return re.sub(r"\S+\.__init__\(", f"{called.__name__}(", text)


def functions_named(owner: str | None, name: str, last: TracebackType
                    ) -> Iterator[FunctionType]:
    """Those that a frame may have called by this name: its own, else this package's."""
    frame = last.tb_frame
    called = {"": call_code.value_called(last.tb_frame, last.tb_lasti)[1]}
    own = next(_named(owner, name, {**called, **frame.f_globals, **frame.f_locals}), None)
    if own is not None:
        yield own
        return
    for module, value in list(sys.modules.items()):
        if module.startswith("pyjx."):
            yield from _named(owner, name, {"": own_dictionary(value).get(owner or name)})


def _named(owner: str | None, name: str, scope: Mapping[str, Any]) -> Iterator[FunctionType]:
    for value in list(scope.values()):
        if owner is not None and getattr(value, "__name__", None) == owner:
            value = getattr(value, name, None)
        for fun in (value, getattr(value, "fun", None), getattr(value, "__wrapped__", None),
                    getattr(value, "__func__", None)):
            if isinstance(fun, FunctionType) and fun.__name__ == name:
                yield fun


def is_ours(last: TracebackType) -> bool:
    """Whether a call that failed is one of this package's, or of what begins with its name."""
    if is_internal(last.tb_frame.f_code.co_filename):
        return True
    for value in call_code.values_before(last.tb_frame, last.tb_lasti):
        if isinstance(value, partial):
            value = value.func
        elif value is partial or getattr(value, "__name__", "") == "functools":
            return True  # what it is given is called at once
        place = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", None)
        if str(place).partition(".")[0] in call_code.PACKAGES:
            return True
    return False


def as_elsewhere(exc: Any, found: re.Match[str], last: TracebackType) -> str | None:
    """What to use for an attribute that arrays have not, and which others an object has of a class
    with few; Python is to guess no other beside it."""
    code = last.tb_frame.f_code
    raised = opname[code.co_code[last.tb_lasti]] == "RAISE_VARARGS"
    if raised is not is_internal(code.co_filename):
        return None  # the user has raised it, or has not asked for the attribute
    if "Did you mean" in found.string:
        exc.name = ""
        return None
    if found.string[:1] != "'":
        return _of_module(exc, found.string)
    kind = type(exc.obj)
    ours = any(map(call_code.is_below, kind.__mro__))
    package = "pyjx.Array" if ours and hasattr(exc.obj, "aval") else f"jax.{kind.__name__}" * ours
    said = hint(package, exc.name) if package and exc.name else ""
    if kind is FunctionType and exc.name in ("lower", "trace") and not (
            call_code.is_called_without(last)):
        said = f". A jitted function has it: jax.jit(f).{exc.name}(*args)."
    if hasattr(exc.obj, "_trace") and "Use numpy." in said:
        said = ". It has no value while it is traced: let the function return it."
    if exc.name and not said and call_code.is_below(kind) and not (
            kind.__module__.startswith("jaxlib.")):
        names = [name for name in dir(exc.obj) if name[0] != "_"]
        close = [name for name, others in _OTHER_METHODS.items() if name in names
                 and exc.name.strip("_") in others.split()]
        close = close or _nearest(exc.name, names, 0.7)
        said = f". Did you mean: '{close[0]}'?" if close else (
            f". It has {', '.join(names)}." if len(names) <= FEW and not hasattr(
                exc.obj, "__wrapped__") else "")  # as of the function that it stands for
    if not said:
        return None
    exc.name = ""
    return f"{found.string}{said}"


_OF_MODULE = re.compile(r"^module '((?:pyjx|jax)\b[\w.]*)' has no attribute '(\w+)'$")


def _of_module(exc: Any, text: str) -> str | None:
    """Which name of a module was meant by one that is like it, or begins as it does."""
    found = _OF_MODULE.match(text)
    module, name = found.groups() if found else ("", "")
    package = re.sub("^jax", "pyjx", module)  # under the alias, too
    known = getattr(sys.modules.get(package), "__all__", ())
    lower = name.lower()
    words = sorted(lower.split("_"))
    close = [x for x in known if sorted(x.lower().split("_")) == words]
    if found and not close and name != lower and (
            said := hint(package, lower)):
        exc.name = ""
        return f"{text}{said}"
    if found and not close and (of_others := _nearest(name, names_elsewhere(), 0.9)) and (
            not _nearest(name, known, 0.9)):
        exc.name = ""
        return f"{text}{hint(package, of_others[0])}"
    close = close or _nearest(name, known, 0.75) or sorted(
        [x for x in known if len(name) > 2 and x.lower().startswith(lower)], key=len)
    if not close:
        return None
    exc.name = ""
    return f"{text}. Did you mean '{close[0]}'?"


def _nearest(word: str, known: Sequence[str], least: float) -> list[str]:
    """The name that is most like a word, whatever is a capital in either; none where all differ by
    more than `least` says."""
    lower = {name.lower(): name for name in known}
    return [lower[x] for x in difflib.get_close_matches(word.lower(), lower, 1, least)]


FEW = 16  # names that are all told


def as_dtype(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    short = dtypes.dtype_of_short_name(found[1].replace("fp", "f"))
    close = [dtypes.name(short)] if short is not None else _nearest(found[1], [
        d.name for d in dtypes.all_dtypes if dtypes.canonicalize_dtype(d) == d
        and dtypes.itemsize_bits(d) >= 8], 0.6)
    return f"{found.string}. Did you mean '{close[0]}'?" if close else None
