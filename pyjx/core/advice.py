"""Advice on calls that Python or C++ refuse, who know the words of the call alone, and the table of
what completes which error. Loaded as the first one is completed."""

from __future__ import annotations

import ast
import builtins
import errno
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from inspect import signature, unwrap
from types import FrameType, ModuleType, TracebackType
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import cures, dtypes, misspelt, passed_values
from pyjx.core.call_code import (
    UNKNOWN,
    arguments_at,
    attribute,
    before,
    callee,
    is_compared,
    method_called,
    value_called,
)
from pyjx.core.call_notes import ASKED, say
from pyjx.core.frames import is_internal, is_of_foundation, tracebacks_of
from pyjx.core.value_texts import (
    ARRAYS,
    MADE_MESH,
    VALUES,
    in_short,
    own_call,
    shortened,
    shortened_lines,
    shortened_text,
    without_addresses,
)
from pyjx.errors import ConcretizationTypeError
from pyjx.jaxlib_api import NamedSharding
from pyjx.not_yet import hint
from pyjx.states import State
from pyjx.tree_util import keystr, of_each_leaf, tree_flatten_with_path, tree_map, tree_structure

# -- what C++ says ---------------------------------------------------------------------------------


_REFUSED = re.compile(r"(\w+)\(\): incompatible function arguments\..*?\n +1\. (.*?)\n"
                      r".*with types: (.*)", re.DOTALL)
_KINDS = {"Iterable": "list tuple dict set str generator", "Sequence": "list tuple",
          "Callable": "function builtin_function_or_method method type", "float": "int bool",
          "int": "bool", "None": "NoneType"}
_PLAIN = {*dir(builtins), "NoneType", "function", "module"}


def refusal(text: str) -> str:
    """What jaxlib says of arguments that a function of its does not take, as Python does of one."""
    refused = _REFUSED.match(text)
    if refused is None:
        return text
    own, types = [re.sub(r"\b(?:\w+\.)+(?=[A-Za-z])", "", part) for part in refused.groups()[1:]]
    positional, _, named = types.partition("kwargs = {")
    name, kinds = refused[1], [kind for kind in positional.split(", ") if kind]
    try:
        (function,) = ast.parse(f"def {own}: ...").body
    except SyntaxError:
        return f"{name}(): expected {own}, got {types}"
    args = function.args  # type: ignore[attr-defined]
    parameters = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    wanted = {p.arg: ast.unparse(p.annotation or ast.Name("object")) for p in parameters}
    if "self" in wanted:
        made, _ = kinds.pop(0), wanted.pop("self")
        name = made if name == "__init__" else name
    given = dict(zip(wanted, kinds, strict=False))
    given.update(re.findall(r"(\w+): ([^,}\s]+)", named))
    misfits = [p for p, kind in given.items() if p in wanted and not _fits(kind, wanted[p])]
    for p in sorted(misfits, key=lambda p: given[p] not in _PLAIN):
        if wanted[p] == "object":
            return f"{name}(): {p} must not be None"
        return f"{name}(): {p} must be {wanted[p]}, got {given[p]!r} object"
    for p in given.keys() - wanted:
        return f"{name}() got an unexpected keyword argument {p!r}"
    required = parameters[:len(parameters) - len(args.defaults) - len(args.kwonlyargs)]
    missing = [repr(p.arg) for p in required if p.arg in wanted and p.arg not in given]
    if missing:
        return (f"{name}() missing {len(missing)} required positional argument"
                f"{'s' * (len(missing) > 1)}: {' and '.join(missing)}")
    takes = ", ".join([f"{p}: {annotation}" for p, annotation in wanted.items()])
    got = ", ".join(kinds + [f"{p}: {kind}" for p, kind in given.items() if p not in wanted])
    return f"{name}() takes ({takes}), got ({got})"


def _fits(kind: str, annotation: str) -> bool:
    words = re.findall(r"\w+", re.sub(r"\[.*?\](?= \||$)", "", annotation))
    return any([kind == word or (word in ("object", "Any") and kind != "NoneType")
                or kind in _KINDS.get(word, "").split()
                or (word == "Callable" and kind not in _PLAIN) for word in words])


# -- what completes which error --------------------------------------------------------------------


_UNHASHABLE = re.compile("^(Non-hashable static arguments are not supported. An error occurred "
                         "while trying to hash an object of type <class '(.+?)'>, )(.*?)"
                         r"\.? The error was:", re.DOTALL)
_ARITY = re.compile(r"\) (takes .*positional|missing \d+ required (positional|keyword-only))")
_SURPLUS = re.compile(r"^(?:(?:.*\.)?(\w+)\.)?(\w+)\(\) (?:takes (?:from \d+ to )?\d+ positional "
                      r"arguments? but (\d+) |got multiple values for argument )")
# How functions of the user's are called, by what calls them.
_CALLS = {
    "_FlatJvp": "rule(primals, tangents)", "_FlatFwd": "",
    "defjvps": "rule(tangent, output, *primals)",
    "_FlatBwd": "bwd(residuals, cotangent)", "_on_leaves": "rule(axis_size, in_batched, *args)",
    "custom_gradient": "vjp(cotangent)", "scan": "f(carry, x)", "map": "f(x)",
    "fori_loop": "body_fun(i, value)", "while_loop": "cond_fun(value) and body_fun(value)",
    "associative_scan": "fn(a, b)", "reduce": "computation(a, b)", "cond": "branch(*operands)",
    "switch": "branch(*operands)", "tree_reduce": "function(total, leaf)",
    "custom_root": "f(x), solve(f, initial_guess) and tangent_solve(g, y)",
    "pallas_call": "kernel(*in_refs, *out_refs, *scratch_refs), each in the tree of its specs",
    "_traced_index_map": "index_map(*indices_in_the_grid, *prefetched_refs)",
    "tree_map": "f(*leaves) and is_leaf(node)",
    **dict.fromkeys(["tree_flatten", "tree_leaves", "tree_structure"], "is_leaf(node)"),
    "fromfunction": "function(*indices), an array for each axis of shape",
    "ufunc": "func(*args), of an element of each", "IndexUpdateRef": "func(x) by apply(func)",
    "make_array_from_callback": "data_callback(index), a slice for each axis",
    "apply_along_axis": "func1d(row, *args)", "apply_over_axes": "func(x, axis)",
    "reduce_window": "computation(a, b)", "scatter_apply": "func(x)", "cg": "A(x)",
    "gmres": "A(x)", "bicgstab": "A(x)", "platform_dependent": "branch(*args)",
    "linear_transpose": "fun(*primals)", "closure_convert": "fun(*example_args)",
    "_mapped": "fun(*args), with an element of each array", "check_grads": "f(*args)",
    "jet": "fun(*primals)", "when": "function(), without arguments",
    "minimize": "fun(x, *args)", "callback": "callback(*args)",
    "custom_linear_solve": "matvec(x) and solve(matvec, b)", "tree_map_with_path": "f(path, leaf)",
    "odeint": "func(y, t, *args)",
    "jvp": "fun(*primals) by jvp(fun, primals, tangents)",
    **{name: f"fun(*{args}) by {name}(fun, *{args})" for name, args in (
        ("eval_shape", "args"), ("linearize", "primals"), ("vjp", "primals"))},
}
_NARROW = re.compile(r"(-?\d+)[^\d]* (?:too large to convert to|out of bounds for|does not fit) "
                     r"(u?int(?:8|16|32|64))(?: \([\w.]+ is -?\d+\))?\.?$")
_HASHABLE = {
    "list": "a tuple", "set": "a frozenset", "bytearray": "bytes",
    "dict": "a frozen dataclass, or tuple(sorted(d.items())) of values with a hash"}

_OF_KEYS = re.compile(  # which are given to what takes numbers
    r"^(?!.* jax\.random).*?(?:(?:does not accept|of) dtypes? (?:\w+, )*|"
    r"Cannot convert_element_type from )key<|^\w+\(\) argument must be .* not 'PRNGKeyArray'$")


# Errors of arguments, by this package or one below; other classes tell what users want whole.
_SHORTENED = (AttributeError, IndexError, NameError, NotImplementedError, RuntimeError, TypeError,
              ValueError)


def complete(exc: Exception) -> None:
    """Add to the message of an error what helps the user, who is shown no addresses either."""
    *_, last = tracebacks_of(exc)
    message = exc.args[0] if len(exc.args) == 1 else None
    if isinstance(exc, AttributeError) and not exc.args and exc.name:  # as C++ raises it
        message = f"{type(exc.obj).__name__!r} object has no attribute {exc.name!r}"
        say(exc, message)
    if configuration.traceback_filtering.value == "off":
        return
    file = last.tb_frame.f_code.co_filename
    own = is_internal(file)
    below = own or is_of_foundation(file)
    if below and isinstance(exc, OSError) and exc.errno == errno.ENAMETOOLONG and (
            isinstance(exc.filename, str)):
        exc.filename = shortened_text(exc.filename)
    if not isinstance(message, str) or getattr(exc, "_is_complete", False):
        return
    plain = refusal(message) if type(exc) is TypeError else message
    if below and type(exc) in _SHORTENED:
        plain = shortened_lines(plain)
    if own and type(exc) is ValueError and (unhashable := _UNHASHABLE.match(message)) and (
            not _calls(last, users=True)):
        plain = f"unhashable type: {unhashable[2]!r}"
    if plain != message:
        say(exc, message := plain)  # which is told of the user's argument as what Python says
    text = without_addresses(message) if own else message
    for kind, words, completed in _RULES:
        if isinstance(exc, kind) and (found := re.search(words, text)):
            more = f"{text.removesuffix('.')}. {completed}" if isinstance(
                completed, str) else completed(exc, found, last)
            if more is not None:
                text = more
                break
    if text != message:
        say(exc, text)
        exc._is_complete = True  # type: ignore[attr-defined]


_MOST_LEAVES = 1000  # of trees whose paths are written for a note: programs may catch the error


def note_leaf(exc: Exception) -> None:
    """Tell which leaf of a tree of the user's it is of: of calls in each other, the outermost."""
    for tb in tracebacks_of(exc):
        if not is_internal(tb.tb_frame.f_code.co_filename):
            return
        if tb.tb_frame.f_code is of_each_leaf.__code__ or (
                tb is exc.__traceback__ and tb.tb_frame.f_code is tree_map.__code__):
            known, said = tb.tb_frame.f_locals, "The leaf is "
            _, _, *taken = known["left"].__reduce__()  # nothing, once there are none left
            tree = known.get("treedef") or tree_structure(known["tree"])
            if taken and tree.num_leaves <= _MOST_LEAVES:
                marked = tree.unflatten([i + 1 == taken[0] for i in range(tree.num_leaves)])
                of, at = known.get("of", "tree"), [
                    keystr(path) for path, x in tree_flatten_with_path(marked)[0] if x is True]
                notes = [n for n in getattr(exc, "__notes__", ()) if not n.startswith(said)]
                exc.__notes__ = notes + [
                    f"{said}{of}{path}." for path in at if path and of + path not in str(exc)]
            return


def note_body(exc: Exception) -> None:
    """Tell what a function of the user's that the library calls, such as the body of a loop, in
    which an error arose, was given as which argument."""
    _note_unflatten(exc)
    passed, _ = _passed_by(exc)
    of_tuple = re.search("tuple|sequence", str(exc))  # which a rule gets, and may pass on
    calls, body = next((x for x in reversed(passed) if of_tuple and "_FlatJvp" in x[0]),
                       passed[-1] if passed else ({}, None))
    by, frame = next(iter(calls.items()), ("", None))
    unpacked = type(exc) is ValueError and " to unpack" in str(exc)
    if by not in _NOTED or body is None or frame is None or not (
            unpacked or type(exc) in (AttributeError, IndexError, TypeError)):
        return
    known, own = body.f_locals, frame.f_locals.get("self")
    fun = next(x for x in (*map(frame.f_locals.get, ("body_fun", "f", "fn", "rule")),
                           getattr(own, "jvp", None), getattr(own, "bwd", None)) if callable(x))
    call, names = _call_of(by, frame), [*signature(fun).parameters]  # of a method, not `self`
    names = names[:None if "*" in call else call.count(",") + 1]
    if not all([p in known for p in names]):
        return
    given = [f"{p}={in_short(known[p])}" for p in names]
    name = body.f_code.co_name
    note = f"{_NOTED[by]} calls {name} as {call}, here with {', '.join(given)}."
    x, cure = known[names[-1]], ""
    if by in ("map", "scan") and type(x) is list and "list" in str(exc) and cures.are_alike(x):
        note += (" Not a list is scanned, but each of its arrays: stack them, "
                 "xs = jax.tree.map(lambda *x: jnp.stack(x), *xs).")
    elif _are_exchanged(names, re.findall(r"\w+", call)[1:]):
        first, second = names[::-1]
        cure = " The arguments are exchanged: let it be " + (
            f"{name}({first}, {second})." if name[0] != "<" else f"lambda {first}, {second}: ...")
    elif by == "_FlatJvp" and len(names) == 2 and of_tuple:
        primals = [*signature(own.fun.owner.fun).parameters]  # type: ignore[union-attr]
        primals, tangents = (primals, [f"{p}_dot" for p in primals]) if primals[1:] else (
            names[:1], names[1:])  # as a rule that takes them for the values goes on
        several = [f"({', '.join(x)}{',' * (len(x) == 1)})" for x in (primals, tangents)]
        cure = (" Each is a tuple of one for each argument: let it begin with "
                f"{', '.join(several)} = {', '.join(names)}.")
    if cure:  # which that of the value is not
        say(exc, _OF_VALUE.sub("", str(exc)))
    if note + cure not in getattr(exc, "__notes__", ()):
        exc.add_note(note + cure)


def _note_unflatten(exc: Exception) -> None:
    """Tell what a function that makes an object of a pytree's class was given as which argument."""
    *_, by, last = [None, *tracebacks_of(exc)]
    code, known = last.tb_frame.f_code, last.tb_frame.f_locals
    names = code.co_varnames[:code.co_argcount]
    if by is None or len(names) < 2 or is_internal(code.co_filename) or not (
            is_internal(by.tb_frame.f_code.co_filename) and "unflatten" in (
                method_called(by.tb_frame, by.tb_lasti),
                value_called(by.tb_frame, by.tb_lasti)[0])):
        return
    *first, aux, children = names
    given = ", ".join([f"{p}={in_short(known[p])}" for p in (aux, children)])
    note = f"JAX calls {code.co_name} with (aux, children), here with {given}."
    if children.startswith("aux") or _is_short_for(aux, "children") or aux in ("leaves", "arrays"):
        note += " The arguments are exchanged: let it be " + (
            f"lambda {children}, {aux}: ..." if code.co_name[0] == "<" else
            f"{code.co_name}({', '.join([*first, children, aux])}).")
    if note not in getattr(exc, "__notes__", ()):
        exc.add_note(note)


_NOTED = {
    **{name: name for name in ("associative_scan", "fori_loop", "map", "scan",
                               "tree_map_with_path")},
    "_FlatJvp": "custom_jvp", "_FlatFwd": "custom_vjp", "_FlatBwd": "custom_vjp",
    "_on_leaves": "custom_vmap"}
_OF_VALUE = re.compile(r" (Make an array of it by jnp\.asarray\.|"
                       r"Round it and make it integers: .*)$")


def _passed_by(exc: Exception
               ) -> tuple[list[tuple[dict[str, FrameType], FrameType]], dict[str, FrameType]]:
    """What called each function of the user's that an error passed, and its frame, the outermost
    first; and what has run within the innermost: of the library the public function, and what calls
    rules."""
    passed, frames = list[tuple[dict[str, FrameType], FrameType]](), dict[str, FrameType]()
    for frame in [tb.tb_frame for tb in tracebacks_of(exc)]:
        code = frame.f_code
        if is_internal(code.co_filename):
            name, _, inner = code.co_qualname.partition(".")
            name = "defjvps" if inner.startswith("defjvps.") else name
            if not frames or name[0] == "_" or name in ("custom_gradient", "defjvps"):
                frames[name] = frame
        elif not is_of_foundation(code.co_filename):
            passed.append((_calling(frames), frame))
            frames = {}
    return passed, _calling(frames)


def _calling(frames: Mapping[str, FrameType]) -> dict[str, FrameType]:
    """Those that call functions of the user's, the innermost first."""
    return {name: frame for name, frame in [*frames.items()][::-1] if name in _CALLS}


def _call_of(name: str, frame: FrameType) -> str:
    """How that calls a function of the user's: before others come arguments that have no
    derivative."""
    rule: Any = getattr(frame.f_locals.get("self"), "fun", None)
    if name == "_FlatFwd":
        return f"fwd({', '.join(signature(rule.owner.fun).parameters)})"
    known = list(signature(rule.owner.fun).parameters) if getattr(rule, "static", ()) else []
    first = [f"{known[i]}, " for i in sorted(rule.owner.nondiff_argnums)] if known else []
    call = _CALLS[name].replace("(", "(" + "".join(first), 1)
    if name == "defjvps":
        call = call.replace("*primals", ", ".join(signature(rule).parameters))
    return call


def _are_exchanged(names: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the user's two names of what a function is given, as `words` say, are those of the
    other one each."""
    if len(names) != 2 or len(words) != 2 or _is_short_for(names[0], words[0]):
        return False
    first, second = names[::-1]
    return _is_short_for(first, words[0]) and (
        first == words[0] or len(first) > 2 or _is_short_for(second, words[1]))


def _is_short_for(name: str, word: str) -> bool:
    return name.startswith(word) or word.startswith(name)


def _as_static(exc: Exception, found: re.Match[str], last: TracebackType) -> str:
    said, kind, value = found.groups()
    said = re.sub("an object of type <class '.*Tracer'>", "a traced value", said)
    (called, argument), ours = _called(last, value), _calls(last, users=False)
    cure = _without_object(last) or hashable(
        kind.rpartition(".")[2], value, found.string, ours, argument or "x")
    return f"{said}{shortened_text(without_addresses(value))}.\n{called}{cure}"


def _as_narrow(exc: Exception, found: re.Match[str], last: TracebackType) -> str:
    """What holds an integer that a dtype does not: the narrowest dtype of as many bits or more."""
    number, own, text = int(found[1]), np.iinfo(found[2]), found.string.removesuffix(".")
    flag = " with jax.config.update('jax_enable_x64', True)" * (not configuration.enable_x64.value)
    asked = getattr(exc, "is_of_asked_dtype", False)
    kinds = [np.iinfo(kind) for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
             if asked or kind[0] == "i" or not own.min]  # signed ones may stand beside it
    held = next((x for x in kinds if x.bits >= own.bits and x.min <= number <= x.max), None)
    if held and held.dtype == np.int64 and flag and not asked:
        return f"{text}. Integers have 64 bits{flag}; floats are larger without."
    other = f"jnp.{held.dtype}{flag * (held.bits == 64)} or " if held else ""
    return f"{text}, which holds {own.min} to {own.max}: use {other}a float."


def _as_wide(exc: Exception, found: re.Match[str], last: TracebackType) -> str:
    """What holds an integer that no dtype of integers does; keys, bounds of them and lengths do
    not."""
    frame = next(tb.tb_frame for tb in tracebacks_of(exc) if is_internal(
        tb.tb_frame.f_code.co_filename))
    whole = str(frame.f_globals["__name__"]).startswith("pyjx.random.") or (
        frame.f_code.co_name == "arange")
    return f"{found.string}. Integers have at most 64 bits.{'' if whole else ' Use a float.'}"


def _as_unsorted(exc: Exception, found: re.Match[str], last: TracebackType) -> str:
    unsorted = next(_unsorted(list(last.tb_frame.f_locals.values()), 0), None)
    keys = f" {shortened(list(unsorted))}" if unsorted else ""
    return (f"{found.string} The keys of a dictionary are sorted to order its leaves, and these"
            f"{keys} cannot be ({exc.__cause__}). Let all be of one type, such as str.")


def _as_rule(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """How the library calls a function of the user's that takes other arguments."""
    calls = _passed_by(exc)[1].items()
    return next((f"{found.string}. It is called as {_call_of(name, frame)}."
                 for name, frame in calls), None)


def _as_called(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """What a call of a function or class of this package lacks."""
    name, called = value_called(last.tb_frame, last.tb_lasti)
    text, ours = found.string, misspelt.is_ours(last) and not is_internal(
        last.tb_frame.f_code.co_filename)
    own = list[str]()
    with suppress(TypeError, ValueError):  # of C++'s classes, whose parameters nobody knows
        own = [*signature(called).parameters]
    if isinstance(called, type) and ours:
        text = misspelt.of_class(text, called)
        if own == ["mesh"]:
            text += f". It takes a mesh: {MADE_MESH}"
        if hasattr(called, "fromdense") and "'shape'" in text:
            text += f". {name}.fromdense(x) makes one of a dense array."
    args, given = arguments_at(last.tb_frame, last.tb_lasti) or ((), {})
    if given and ours and re.search(r"missing 1 .*: '(fun|f|nodetype)'$", text):
        return (f"{text}. As a decorator with arguments it is @functools.partial({name}, "
                f"{', '.join([f'{p}=...' for p in given])}).")
    if ours and own[:1] == ["key"] and "missing" in text and "'key'" not in text and not (
            args and (args[0] is UNKNOWN or re.match("key|uint32", str(getattr(
                args[0], "dtype", ""))))):
        text += f". The key comes first: {name}(key, ...)."
    return text if text != found.string else None


def _as_surplus(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """What a function of this package takes where it got more, or one twice: of several integers
    in the place of a shape or of axes, or arrays in that of a sequence, that they are one tuple."""
    owner, name, given = found.groups()
    if is_internal(last.tb_frame.f_code.co_filename) or not misspelt.is_ours(last):
        return None
    fun = next(misspelt.functions_named(owner, name, last), None)
    if fun is None or not is_internal(fun.__code__.co_filename):
        return None
    args = (arguments_at(last.tb_frame, last.tb_lasti) or ([], {}))[0]
    own = [*signature(fun).parameters.values()][int(given) - len(args) if given and args else 0:]
    several = [i for i, p in enumerate(own) if re.search(
        r"Sequence\[(int|SupportsIndex)|AxisLike", str(p.annotation))]
    rest = args[several[0]:] if len(several) == 1 else []
    if len(rest) > 1 and {*map(type, rest)} - {type(UNKNOWN)} == {int}:
        shown = f": {tuple(rest)}" * (UNKNOWN not in rest)
        return f"{found.string}. Give {own[several[0]].name} as one tuple{shown}."
    first = own[0].name if own else ""  # nothing, where another function had called it
    if (given or args[1:]) and first in ("arrays", "tup") and all(
            [x is UNKNOWN or hasattr(x, "shape") for x in args]):
        return f"{found.string}. {ARRAYS.format(name)}"
    if given and first in ("fun", "f", "fun_jit", "pyfunc") and any(
            [x is UNKNOWN or callable(x) for x in args[:1]]) and (
            not own[1:] or own[1].kind is own[1].KEYWORD_ONLY) and all(
            [p.default is not p.empty for p in own[1:]]) and all(
            [x is UNKNOWN or hasattr(x, "shape") or type(x) in (int, float) for x in args[1:]]):
        return f"{found.string}. {own_call(name)}"
    if given and name in ("array", "asarray"):
        return f"{found.string}. {VALUES.format(name)}"
    named = [p.name for p in own if p.kind is p.KEYWORD_ONLY and p.name[0] != "_"]
    every = [*[p.name for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)],
             *["*"][:len(named)], *named, *[f"**{p.name}" for p in own if p.kind is p.VAR_KEYWORD]]
    return f"{found.string}. The arguments are {', '.join(every)}." if every else None


def _without_object(last: TracebackType) -> str:
    """That a method is called on its class, without an object; empty if it is not so."""
    names, owner = callee(last.tb_frame, last.tb_lasti)
    for name in names[1:-1]:
        owner = getattr(owner, name, None) if isinstance(owner, (type, ModuleType)) else None
    args = (arguments_at(last.tb_frame, last.tb_lasti) or ([], {}))[0]
    if not isinstance(owner, type) or not names[1:] or not args or args[0] is UNKNOWN or isinstance(
            args[0], owner) or [*signature(getattr(owner, names[-1])).parameters][:1] != ["self"]:
        return ""
    return (f"It is called on the class {owner.__name__}, so the first argument stands for the "
            f"object: call it on an object, as in {owner.__name__}(...).{names[-1]}(...).")


def _as_registered(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """How the functions are called that a class was registered as a pytree with."""
    name, value = value_called(last.tb_frame, last.tb_lasti)
    if is_internal(last.tb_frame.f_code.co_filename):
        is_leaf = getattr(last.tb_frame.f_locals.get("is_leaf"), "__qualname__", "")
        if "flatten" not in name or found.string.startswith(f"{is_leaf}()"):
            return None
    else:  # C++ flattens what jitted functions get
        args, kwargs = arguments_at(last.tb_frame, last.tb_lasti) or (None, {})
        try:
            if args is None or _static(value) is None:
                return None
            signature(value).bind(*args, **kwargs)
        except TypeError:  # it is the jitted function that refuses them, or a class is called
            return None
    if ".__init__() missing " in found.string:
        return (f"{found.string}. A node of register_dataclass is made again of its data_fields "
                "and meta_fields alone: name the field there, or give it a default.")
    return (f"{found.string}. What a class is registered as a pytree with is called as "
            "flatten(node), which gives (children, aux), and unflatten(aux, children).")


def _static(value: Any) -> Any:
    """The names of the static arguments of a jitted function; None of what is no such function."""
    state: Any = getattr(value, "__getstate__", dict)()
    return state.get("static_argnames") if isinstance(state, dict) else None


_TRACED_BY_OTHERS = (
    "It is traced by a function around this call: let it be static there, too, if that is jit")
_TRACED = {
    **dict.fromkeys(["LinearizeTracer", "JVPTracer"], "It is differentiated: differentiate by "
                    "other arguments (argnums of grad)"),
    "BatchTracer": "It is mapped by vmap: let in_axes be None for it"}


def hashable(kind: str, value: str, error: str, ours: bool = False, name: str = "x") -> str:
    """What may be static in the place of an object of this type and text, and perhaps a name, which
    has no hash, as the error says of it, or of what it holds; `ours` is whether a function of the
    library says what is."""
    inner = re.findall(r"unhashable type: (?:<class )?'(?:\w+\.)*(\w+)'", error)
    part = inner[0] if inner and inner[0] != kind else ""  # of what has a hash of its elements'
    name, held = ("x", f"It holds a value of type {part}. ") if part else (name, "")
    left_out = (f"give int({name}) of a number, or tuple({name}.tolist())." if ours else
                "leave this one out of static_argnums and static_argnames.")
    if part and kind not in ("tuple", "frozenset"):
        left_out = (f"{left_out[:-1]}, and let the class {kind} be a pytree: a "
                    "NamedTuple is one, others become one by jax.tree_util.register_dataclass.")
    kind = part or kind
    if kind.endswith("Tracer"):
        held = held and "It holds a traced value. "
        return f"{held}{_TRACED.get(kind, _TRACED_BY_OTHERS)}, or {left_out}"
    if "PRNGKeyArray" in kind:
        return f"{held}Keys are no static arguments: {left_out}"
    if "Array" in kind or "ndarray" in kind:
        of_array = "" if ours else _hashable_array(value, name)
        given = of_array and f"give {of_array}, or "
        again = " jnp.array(...) makes an array of the tuple again." * of_array.startswith("tuple")
        return f"{held}Arrays are no static arguments: {given}{left_out}{again}"
    if re.search(r"\b[Aa]rray\(", value):
        return f"It holds arrays, which are no static arguments: {left_out}"
    compared = f"{held}Static arguments are compared from call to call: "
    kind = "dict" if kind.lower().endswith("dict") else kind
    again = " dict(...) makes a dictionary of that again." if kind == "dict" else ""
    other = _HASHABLE.get(kind)
    return f"{compared}give {other} in the place of it.{again}" if other else (
        f"{compared}the class {kind} has __eq__ and no __hash__. Give it both, or let it be a "
        "@dataclasses.dataclass(frozen=True).")


def _hashable_array(text: str, name: str) -> str:
    """What has a hash in the place of the array `name` that shows as `text`: a number, or a tuple
    of integers, which may be a shape; empty of any other."""
    if text in ("True", "False"):
        return f"bool({name})"
    for kind in (int, float, complex):
        with suppress(ValueError):
            kind(text)
            return f"{kind.__name__}({name})"
    return f"tuple({name}.tolist())" * bool(re.fullmatch(r"\[\d+(?:\s+\d+){,7}\]", text))


def _unsorted(x: Any, depth: int) -> Iterator[dict[Any, Any]]:
    """The dictionaries in a tree whose keys cannot be sorted."""
    if type(x) is dict:
        try:
            sorted(x)
        except TypeError:
            yield x
    if depth < 6 and type(x) in (dict, list, tuple):
        for y in list(x.values() if type(x) is dict else x)[:64]:
            yield from _unsorted(y, depth + 1)


def _calls(last: TracebackType, users: bool) -> bool:
    """Whether what failed is a call of a jitted function, of the user's or of the library's."""
    value = value_called(last.tb_frame, last.tb_lasti)[1]
    code = getattr(unwrap(value), "__code__", None) if callable(value) else None
    return code is not None and is_internal(code.co_filename) != users


def _called(last: TracebackType, unhashable: str) -> tuple[str, str]:
    """The jitted function that a line calls, in words, and which of its static arguments is the one
    of that text, which cannot be hashed; empty if that is unclear."""
    name, value = value_called(last.tb_frame, last.tb_lasti)
    static, given = _static(value), dict[str, Any]()
    if static is None:
        return "", ""
    with suppress(TypeError):
        args, kwargs = arguments_at(last.tb_frame, last.tb_lasti) or ([], {})
        given = signature(value).bind_partial(*args, **kwargs).arguments
    by = [p for p in static if p in given and (
        given[p] is UNKNOWN or getattr(type(given[p]), "__hash__", None) is None)]
    by = [p for p in by[1:] and by if repr(given[p]) == unhashable][:1] or by or (
        [] if given or static[1:] else [*static])
    argument = " as " * bool(by) + " or ".join(by)
    if is_internal(last.tb_frame.f_code.co_filename):
        name = value.__name__
    return (f"It was given to {name}{argument}, whose static arguments are: {', '.join(static)}. ",
            by[0] if by else "")


def _as_no_key(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """That the key comes first, where it was given as another argument."""
    public = None  # the function that users call, of which another one may check the key
    for frame in reversed([tb.tb_frame for tb in tracebacks_of(exc)]):
        if not is_internal(frame.f_code.co_filename):
            break
        public = frame
    if public is None:
        return None
    given = [*public.f_locals.values()]
    if not any([dtypes.is_extended(getattr(x, "dtype", None)) or (  # later ones may be bounds
            i == 1 and hasattr(x, "aval") and x.dtype == np.uint32 and x.shape[-1:] == (2,))
            for i, x in enumerate(given)]):
        return None
    code = public.f_code
    name = code.co_name if code.co_varnames[:1] in (("key",), ("rng",)) else (
        last.tb_frame.f_locals["name"])
    said = found.string.partition(" If that is a seed")[0].partition(" A key is made")[0]
    return f"{said} The key comes first: {name}(key, ...)."


def _as_shape(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """The order of a sampler's arguments, where a shape was given as another one."""
    frame = next(tracebacks_of(exc)).tb_frame
    code, known = frame.f_code, frame.f_locals
    n, words = code.co_argcount, found[0].partition(". ")[0].rstrip(".")
    names = code.co_varnames[:n + code.co_kwonlyargcount]
    if not str(frame.f_globals.get("__name__")).startswith("pyjx.random.") or "shape" not in names:
        return None
    for p, x in [(p, known.get(p)) for p in names if p not in ("key", "shape")]:
        if type(x) is tuple and all([type(size) is int for size in x]) and (
                str(x) in words or str(tuple) in words):
            told = re.search(rf" at position |\b{p}(?: must|=)", words)
            given = "" if told else f" It was given as {p}."
            return (f"{words}.{given} The order of the arguments is {code.co_name}"
                    f"({', '.join(names[:n])}): a shape is shape={x}.")
    return None


def _as_sized(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """The size of the function that the user called, where that has one, in the place of another's
    that it is made of."""
    ran = [tb.tb_frame.f_code for tb in tracebacks_of(exc)]
    sized = [code.co_name for code in ran if is_internal(code.co_filename) and "size" in (
        code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])]
    return found.string.replace(f"jnp.{found[1]}", f"jnp.{sized[0]}").replace(
        "transformations.", f"transformations: jnp.{sized[0]}(..., size=n).") if sized else None


def _as_called_value(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """What is in the place of a call of what is no function: an attribute of an array has its
    value without one."""
    names, value = callee(last.tb_frame, last.tb_lasti)
    owner = None
    for name in names[1:]:
        owner, value = value, attribute(value, name)
    if isinstance(value, ModuleType) and value.__name__.startswith("pyjx"):
        known = [name for name in dir(value) if name[0] != "_"]
        return f"{'.'.join(names)} is a module, and not callable." + (
            f" It has {', '.join(known)}." if len(known) <= misspelt.FEW else "")
    axis = " That of an axis is x.shape[i]."
    if hasattr(owner, "aval") and type(value).__name__ == found[1]:
        return (f"{found.string}. Without brackets it is the value: {'.'.join(names)}."
                f"{axis * (names[-1] in ('shape', 'size'))}")
    method = method_called(last.tb_frame, last.tb_lasti)
    if {"size": "int", "shape": "tuple"}.get(method) == found[1] and misspelt.is_ours(last):
        return f"{found.string}. Without brackets it is the value: x.{method}.{axis}"
    kind = "ArrayImpl" if found[1].endswith("Tracer") else found[1]
    if kind == "ArrayImpl" and method in ("T", "mT", "real", "imag"):
        return f"{found.string}. Without brackets it is the value: x.{method}."
    return found.string + hint(f"pyjx.{kind}", "__call__") if misspelt.is_ours(last) else None


def _as_compared(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """That an operator which binds closer than comparisons has taken what they are to compare."""
    *_, users = [tb for tb in tracebacks_of(exc) if not is_internal(
        tb.tb_frame.f_code.co_filename)]
    symbol = {"and": "&", "or": "|", "xor": "^"}.get(found[1])
    meant = f"(a > b) {symbol} (c < d)" if symbol else "~(a > b)"
    return (f"{found[0]} `{symbol or '~'}` binds closer than comparisons, which stand in brackets: "
            f"{meant}.") if is_compared(users) else None


def _as_context(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """That what gives a context is called, where it stands behind `with` itself."""
    name, value = value_called(last.tb_frame, before(last))
    if not callable(value) or not str(attribute(value, "__module__")).startswith(("jax", "pyjx.")):
        return None
    needed = ["..."]  # of what C++ or a flag takes, of which True serves for most
    if type(value) is State:
        needed = ["True"] if value.value in (False, True) else needed
    else:
        with suppress(ValueError):
            needed = [p.name if p.kind is not p.VAR_POSITIONAL else "..."
                      for p in signature(value).parameters.values()
                      if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return f"{found.string}. It is called, as in `with {name}({', '.join(needed)}):`."


def _as_mesh(exc: Any, found: re.Match[str], last: TracebackType) -> str | None:
    """What C++ asks of the first argument of a class of its own."""
    _, called = value_called(last.tb_frame, last.tb_lasti)
    own = getattr(NamedSharding.__init__, "__code__", None)  # where the class is not C++'s alone
    return (f"NamedSharding: mesh must be a Mesh, such as jax.make_mesh((1,), ('x',)), got "
            f"{shortened(exc.obj)}."
            ) if called is NamedSharding or last.tb_frame.f_code is own else None


# What completes an error of a kind that has such words: the text, or None where it knows nothing
# more; or the sentence that stands behind the message.
_RULES: list[tuple[Any, str | re.Pattern[str], str | Callable[
    [Any, re.Match[str], TracebackType], str | None]]] = [
    (TypeError, f"{_ARITY.pattern}|{misspelt.UNEXPECTED.pattern}",
     lambda exc, found, last: f"{found.string}. It is called as policy(prim, *avals, **params)."
     if str(last.tb_frame.f_globals.get("__name__")).startswith("pyjx.engine.") and callee(
         last.tb_frame, last.tb_lasti)[0][-1:] == ["policy"] else None),
    (TypeError, misspelt.UNEXPECTED, misspelt.as_meant),
    (TypeError, _ARITY, lambda exc, found, last: f"{found.string}. {without}" if (
        without := _without_object(last)) else None),
    *[(TypeError, _ARITY, completed) for completed in (_as_registered, _as_rule, _as_called)],
    (TypeError, _SURPLUS, _as_surplus),
    (ValueError, "^The to_iterable(_with_keys)? function for a custom PyTree node",
     lambda exc, found, last: (
        f"{found.string}. Let the function that flattens its class return "
        f"{'(((key, x), ...), aux)' if found[1] else '((x, ...), aux)'}: the children in a tuple, "
        "also a single one, and aux, which holds no arrays and may be None.")),
    (ValueError, _UNHASHABLE, _as_static), (TypeError, misspelt.DTYPE, misspelt.as_dtype),
    ((TypeError, ValueError), r"^(?:.*\b(?:index|indices|Indexer)\b.*(?:key<\w+>|PRNGKeyArray)|"
     "'PRNGKeyArray' object cannot be interpreted as an integer)", lambda exc, found, last: (
        f"{found[0]}. A key is no index: jax.random.randint(key, shape, 0, n) draws integers, "
        "jax.random.choice(key, x) an element.")),
    ((TypeError, ValueError), _OF_KEYS,
     "Keys hold no numbers: jax.random.key_data(key) gives those behind one. Other keys are "
     "jax.random.fold_in(key, number) and jax.random.split(key)."),
    (TypeError, "(^|(?:number|slices|integers), not |sequence by )(?:non-int of type )?"
                "'?DimExpr'?(?: object(?= cannot be interpreted as an integer)|$)",
     passed_values.as_size), (TypeError, "^loop of ufunc does not support .* DimExpr ",
                              passed_values.as_size),
    (OverflowError, _NARROW, _as_narrow),
    (OverflowError, r"^(?:\w+: )?Python int too large to convert to C ", _as_wide),
    (Exception, "^Comparator raised exception while sorting pytree dictionary keys", _as_unsorted),
    (TypeError, r"^%\w format: .* not \w+Tracer$", lambda exc, found, last: (
        f"{found.string}: {cures.SHOWN[0].lower()}{cures.SHOWN[1:]}")),
    ((TypeError, ValueError), "(?s).*", _as_shape),
    ((TypeError, ValueError), r"(?s)^(?!.* returned a value ).* is not a valid JAX (?:array )?type"
     r"\.|^.*(?:masked arrays|__jax_array__\(\)) .*", passed_values.as_leaf),
    (TypeError, "invalid PRNG key data:|unexpected PRNG key type", _as_no_key),
    ((RuntimeError, ValueError), "^Array has been deleted|(?<!previously )deleted or donated",
     passed_values.as_deleted),
    (RecursionError, "^maximum recursion depth exceeded", cures.as_endless),
    (ConcretizationTypeError, r"The size argument of jnp\.(\w+) must", _as_sized),
    (ASKED, "", cures.as_asked),
    ((TypeError, ValueError), "^(?:Only (?:integer )?scalar arrays can be converted to|"
     r"The truth value of an array with).*?(?:\.(?= |$)|$)", cures.as_number),
    (ValueError, "^setting an array element with a sequence", cures.as_buffer),
    (AttributeError, "^'tuple' object has no attribute 'step'", cures.as_buffer),
    (TypeError, r"^expected a sequence of integers or a single integer, got '\w+Tracer",
     "NumPy makes arrays of known sizes: give Python's number, such as x.shape[0]."),
    (ValueError, "^Cannot convert_.* to key<.*$",
     "jax.random.wrap_key_data(x) makes keys of the numbers behind them."),
    (ValueError, "^assignment destination is read-only$",
     "What np.asarray gives of an array of JAX is; np.array(x) is a copy."),
    (TypeError, r"^Object of type (?:ArrayImpl|(\w+Tracer)) is not JSON serializable$",
     lambda exc, found, last: f"{found.string}. " + (
        cures.OF_FILES if found[1] else "Give x.tolist(), of a number its value.")),
    ((RuntimeError, ValueError), r"(?s)Attempt to .*donate.* argument (\d+),.* use: (\d+)",
     passed_values.as_donated),
    (AttributeError, "^'.*' object has no attribute 'size'$", _as_mesh),
    (AttributeError,
     r"^(?:property (?:'(\w+)' )?of '(?:ArrayImpl|\w+Tracer)' object has no setter|"
     r"'\w+Tracer' object attribute '\w+' is read-only)$",  # of one that libraries' types have
     lambda exc, found, last: f"{found.string}. Arrays stay as they are: make another one, such as "
     + ("x = jax.device_put(x, sharding)." if found[1] in ("sharding", "device") else
        "x = x.reshape(shape) or x = x.astype(dtype).")),
    (RuntimeError, r"(?s)^(INTERNAL: custom_partitioner: )Traceback .*?\n"
                   r"((?:\w+\.)*\w+: .*?)\n*Suspected Python",
     lambda exc, found, last: f"{found[1]}{found[2]}"),  # by C++, with every frame there is
    (TypeError, r"^unsupported operand type\(s\) for .*'Ref'(?! object)",
     "A Ref is no array: read its value by ref[...]."),
    (TypeError, r"^unsupported operand type\(s\) for .*'[a-z]{3}_(?:matrix|array)'",
     "A sparse matrix of SciPy's takes no array of JAX there: give matrix.toarray()."),
    (RuntimeError, "^INVALID_ARGUMENT: Disallowed ", "Under 'disallow' explicit transfers go on, "
     "jax.device_put(x) to a device and jax.device_get(x) from there; within "
     "jax.transfer_guard('allow') all do."),
    (RuntimeError, "^INVALID_ARGUMENT: No such compile option",
     "The compiler_options, of jit and of compile, are flags of XLA's by name, such as "
     "{'xla_cpu_enable_fast_math': True}."),
    (AttributeError, "", misspelt.as_elsewhere),
    (TypeError, r"^unhashable type: '(?:\w+\.)*ArrayImpl'$",
     "An array is no key of a dictionary or a cache, nor in a set: give x.item() of a number, "
     "tuple(x.tolist()) of a vector, or (x.shape, x.dtype, x.tobytes())."),
    (TypeError, r"^unhashable type: '\w+Tracer'$",
     "A traced value cannot be a key of a dictionary or in a set, as it is not known yet: let "
     "names or positions be the keys, and to look it up index an array by it."),
    (TypeError, "^'[\\w.]+' object does not support the .*context manager protocol", _as_context),
    (TypeError, r"^'(?:\w+\.)*(\w+)' object is not callable$", _as_called_value),
    (TypeError, "^(and|or|xor|not) does not accept dtype .*?(?= Compare floats)", _as_compared),
    (TypeError, r"^type [\w.]*(?:Tracer|ArrayImpl) doesn't define __trunc__ method$",
     "Use jnp.trunc(x), or x.astype(int)."),
    (TypeError, r"^Array\(\) takes no arguments$",
     "Make an array by jnp.asarray(values), or jnp.zeros(shape)."),
    (TypeError, r"^%\w format: .* not (?:\w+\.)*ArrayImpl$",
     "A format is of one number: %s shows an array."),
    (TypeError, "(?s)Shapes must be 1D .*?(?=, got .*dtype=key<)",
     lambda exc, found, last: f"{found.string[:found.end()]}, got a key. The key comes first."),
    ((TypeError, ValueError, NotImplementedError, NameError, RuntimeError), "",
     misspelt.as_option),
]
