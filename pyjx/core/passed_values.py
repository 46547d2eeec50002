"""What is said of a value that was passed to a function which cannot take it: as which argument, at
which path of that, and how the function may have it."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile
from opcode import opname
from types import TracebackType
from typing import Any

from pyjx.core.avals import SymbolicDim, is_valid_value
from pyjx.core.call_code import UNKNOWN, leaves_given, leaves_of, values_in
from pyjx.core.frames import is_internal, tracebacks_of
from pyjx.core.trace import Tracer
from pyjx.core.value_texts import DELETED
from pyjx.errors import as_field
from pyjx.jaxlib_api import ArrayImpl
from pyjx.tree_util import keystr, tree_leaves


def _passed(exc: Exception, is_refused: Callable[[Any], bool]) -> tuple[str, str]:
    """To what, and where in the trees that came, a value was passed that is refused; and of which
    argument it is the whole."""
    for name, leaves in leaves_given(exc):
        for of, path, leaf in leaves:
            if is_refused(leaf):
                return (f"passed to {name} at path {of}{keystr(path)}.", "") if path else (
                    f"the argument {of} of {name.partition(' at ')[0]}.", of)
    return "", ""


# How a transformation leaves an argument as it is.
_AS_IT_IS = {
    "vmap": "let its entry of in_axes be None",
    "checkpoint": "name it in static_argnums or static_argnames",
    **dict.fromkeys(["value_and_grad", "jacfwd", "jacrev"], "let argnums name others alone"),
    **dict.fromkeys(["custom_jvp", "custom_vjp"], "name it in nondiff_argnums"),
    "custom_vmap": "",
}


def as_leaf(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    frames = [tb.tb_frame for tb in tracebacks_of(exc)]
    own = [x for x in frames if is_internal(x.f_code.co_filename)]
    refused = next((x.f_locals["x"] for x in reversed(own) if "x" in x.f_locals), UNKNOWN)
    passed, whole = _passed(exc, lambda x: x is refused)
    traces = any([callable(x) for x in frames[0].f_locals.values()])
    further = found.string[found.end():] * traces + as_field(
        passed.rpartition(" at path ")[2][:-1])
    by = takewhile(lambda x: is_internal(x.f_code.co_filename), reversed(frames))
    option, known = next(((_AS_IT_IS[name], x.f_locals) for x in by if (
        name := x.f_code.co_qualname.partition(".")[0].lstrip("_")) in _AS_IT_IS), ("", {}))
    code = getattr(getattr(known.get("self"), "fun", None), "__code__", None)
    by_name = "in_axes" in option and whole in known.get("kwargs", ())
    others = [y for y in tree_leaves([known.get("args"), known.get("kwargs")])
              if is_valid_value(y) and ("in_axes" not in option or getattr(y, "ndim", 0) > 0)]
    if whole and option and not by_name and (others or "name it" in option) and not (
            code and is_internal(code.co_filename)):  # as of custom_gradient
        passed = f"{passed[:-1]}: {option}."
    return f"{found[0]} It was {passed}{further}" if passed else None


def as_deleted(exc: Exception, found: re.Match[str], last: TracebackType) -> None:
    """Why an array has no values, and as what it was passed; C++ says neither."""
    passed, _ = _passed(exc, lambda x: type(x) is ArrayImpl and x.is_deleted())
    if not passed and opname[last.tb_frame.f_code.co_code[last.tb_lasti]] == "RAISE_VARARGS":
        return  # an error of the user's
    for said in (DELETED, f"It was {passed}"):
        if said not in ("It was ", *getattr(exc, "__notes__", ())):
            exc.add_note(said)


def as_donated(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """Which arguments are one array."""
    places = [int(found[1]), int(found[2])]
    for name, leaves in leaves_given(exc):
        told = [leaves[i] for i in places if i < len(leaves)]
        if len(told) == 2 and told[0][2] is told[1][2]:  # all arguments are used
            first, second = sorted([of + keystr(path) for of, path, _ in told])
            return (f"{found.string}\n{first} and {second} of {name} are one array, which is "
                    "gone once it is donated: pass jnp.copy(x) as one of them.")
    return None


def as_size(exc: Exception, found: re.Match[str], last: TracebackType) -> str:
    """What takes a symbolic size, and which arrays have those that a line reads."""
    said = found.re.sub(f"{found[1]}a symbolic size", found.string) if found.re.groups else (
        found.string)
    read, own = [*values_in(last)], dict[str, str]()
    sizes = [x for value in read for x in (value if type(value) is tuple else [value])
             if isinstance(x, SymbolicDim)]
    users = [tb.tb_frame for tb in tracebacks_of(exc)
             if not is_internal(tb.tb_frame.f_code.co_filename)]
    for name, value in [item for frame in reversed(users) for item in frame.f_locals.items()]:
        is_read = any([value is x for x in read])
        for path, x in leaves_of(value):
            for i, d in enumerate(x.shape if isinstance(x, Tracer) else ()):
                if isinstance(d, SymbolicDim) and (is_read or d in sizes):
                    own.setdefault(str(d), f"{name}{keystr(path)}.shape[{i}]")
    whose = ", and ".join([f"{size} is {place}" for size, place in own.items()])
    return (f"{said}. It is known when the program runs: jax.numpy's functions take it, as "
            "jnp.zeros(n) and jnp.sqrt(n) do, and lax.fori_loop(0, n, ...)."
            + f" Here {whose}." * bool(whose))
