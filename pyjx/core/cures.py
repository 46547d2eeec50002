"""What serves in the place of an instruction of the user's that asks for a value which is traced:
an index, a condition, a print, a function of Python's, NumPy's or SciPy's. The instruction is read
in the code of the caller. Loaded as the first error is completed."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from opcode import opname
from operator import attrgetter
from types import FrameType, ModuleType, TracebackType
from typing import Any

import numpy as np

from pyjx.core import call_code
from pyjx.core.call_code import CALLS, UNKNOWN, arguments_at, attribute, callee, value_called
from pyjx.core.frames import is_internal, is_of_foundation, tracebacks_of
from pyjx.errors import ConcretizationTypeError, Said, told_otherwise
from pyjx.tree_util import tree_flatten_with_path, tree_structure

_FOR_ARRAYS: dict[Any, str] = {
    **{f: f"jnp.{f.__name__}" for f in (max, min, any, all)}, sorted: "jnp.sort",
    **{f: f"jnp.{name}" for name, f in vars(math).items()  # math.remainder is another one
       if hasattr(np, name) and callable(f) and name != "remainder"}}


def as_asked(exc: Any, found: re.Match[str], last: TracebackType) -> str | None:
    """What serves in the place of the user's instruction, or of the function of Python's or another
    package's, that has asked for a value which is traced."""
    users = [tb for tb in tracebacks_of(exc) if not is_internal(tb.tb_frame.f_code.co_filename)
             and not is_of_foundation(tb.tb_frame.f_code.co_filename)]
    if not users or not exc.said:
        return None
    cure, what = _in_place(users[-1], exc.said), exc.said.what
    if cure is SHOWN:
        what = what.partition("\n")[0]
    elif cure and cure is not _AS_SIZE:
        what = what.partition(" To change its dtype")[0]
    return None if cure is None else told_otherwise(exc, what=what, cure=cure)


SHOWN = ("While the function is traced, the array has no value. Print it as the program runs by "
         "jax.debug.print('{x}', x=x).")
_AS_SIZE = ("As a size or a number of rounds of Python's it must be known while the function is "
            "traced: mark what it is made of as static (static_argnums or static_argnames of jit), "
            "or take the largest size and choose by jnp.where(jnp.arange(size) < n, x, 0).")
_WRITTEN = "{} that is traced: make this one by jax.numpy, and write x = x.at[i].set(value)."
_OF_NUMPY = _WRITTEN.format("NumPy's arrays hold no value")


def _in_place(tb: TracebackType, said: Said) -> str | None:
    """What serves in the place of what failed; None where nothing else is known."""
    frame, at, code = tb.tb_frame, tb.tb_lasti, tb.tb_frame.f_code.co_code
    operation, before = call_code.failed_at(tb).opname, opname[code[max(at - 2, 0)]]
    if operation in ("STORE_SUBSCR", "STORE_SLICE"):
        return _WRITTEN.format("Lists take no index") if said.known else _OF_NUMPY
    if operation == "BINARY_OP" and code[at + 1] == 6:  # `"%.2f" % x`
        return SHOWN
    kernel = " for pallas_call." in said.origin
    if operation == "BINARY_SLICE" or before == "BUILD_SLICE":
        return "A part of known size is x_ref[pl.ds(start, size)]." if kernel else (
            "For a part of known size use lax.dynamic_slice_in_dim(jnp.asarray(x), start, size).")
    if operation == "BINARY_SUBSCR":
        return _chosen(call_code.indexed_at(tb))
    if operation == "UNARY_NOT":
        return _PYTHONS.format("not", "~x of Booleans, or jnp.logical_not(x)")
    if operation == "CONTAINS_OP":
        return _PYTHONS.format("in", "jnp.any(x == y) or jnp.isin")
    outside = list(call_code.around(tb))
    if any([name == "LOAD_ASSERTION_ERROR" for name, _ in outside]):
        return _ASSERTED.format("assert", "x")
    if operation.startswith("POP_JUMP") and call_code.only_raises(tb):
        return _ASSERTED.format("raise", "~x" if operation.endswith("FALSE") else "x")
    if operation.startswith("POP_JUMP") and kernel:
        return ("What a kernel does under a condition is a function of no arguments, decorated by "
                "pl.when(condition).")
    name, called = ("", None) if operation not in CALLS else value_called(frame, at)
    if called in (int, float, bool, complex) and any(
            [name.startswith("FORMAT_") or function is print for name, function in outside]):
        return SHOWN
    if called in (int, float, complex) and "static_argnums" in said.cure:
        within = any([name in CALLS or "SUBSCR" in name or "SLICE" in name
                      for name, _ in outside])
        if called is int and not within and call_code.is_stored(tb):
            return _AS_SIZE
        return said.cure if called is int and within else ""  # a number there, else an array
    if called is range:
        return "To loop a traced number of times use lax.fori_loop or lax.while_loop."
    if name.rpartition(".")[2] in _OF_FILES:
        return "Save what the traced function returns."
    if other := _in_place_of(name, called, frame, at, said.origin):
        return other
    return "" if said.known else _of_package(tb)


def _in_place_of(name: str, called: Any, frame: FrameType, at: int, origin: str | None) -> str:
    """What serves in the place of a function of Python's that asks an array for its value, which
    is traced if it has an `origin`; empty where nothing is known, as of one with a key, which
    others lack."""
    args, kwargs = arguments_at(frame, at) or ([UNKNOWN], {})
    if name.endswith(".sort") and type(attribute(called, "__self__")) is list:
        called, args = sorted, [UNKNOWN]  # as it sorts, it has no elements
    other = _FOR_ARRAYS.get(called) if type(called) is type(max) else None
    if not other or kwargs:
        return ""
    if called not in (max, min, sorted, any, all):
        return _PYTHONS.format(name, other)
    asked, single = _PYTHONS.partition(" use")[0].format(name), UNKNOWN if args[1:] else args[0]
    xs = args if args[1:] else list(single) if type(single) in (list, tuple) else []
    pairs = [x for x in xs if type(x) in (list, tuple) and x]
    known = any([x is not UNKNOWN for x in xs]) or hasattr(single, "aval")
    may_be_pairs = called not in (any, all) and (
        pairs or (not known and (origin is None or "`eq`" in origin)))  # which tuples ask first
    by_key = _BY_KEY + f", or if that is traced {_of_pairs(other)}" * (origin is not None)
    if pairs and origin is not None:
        by_key = _of_pairs(other) if any([hasattr(x[0], "_trace") for x in pairs]) else _BY_KEY
    if may_be_pairs and (pairs or origin is not None):
        return f"{asked} {by_key}."
    several = f"{other}(jnp.asarray({'xs' if xs else 'list(xs)'}))"
    use = (f"{other}imum(x, y)" if args[1:] else several if xs else
           f"{other}(x)" if known else f"{other}(x) of an array, {several} of several")
    return f"{asked} use {use}{f'; of tuples with arrays {by_key}' if may_be_pairs else ''}."


_BY_KEY = "compare what tells them apart, with key=lambda t: t[0]"


def _of_pairs(other: str) -> str:
    """What orders tuples by a first element that is traced."""
    return (f"i = {other.replace('.', '.arg')}(jnp.asarray([t[0] for t in xs])) tells which; "
            f"{_OF_TREES}")


_ASSERTED = ("To check a traced value as the program runs, in the place of `{}`: "
             "checkify.check({}, 'message'), and call err, out = checkify.checkify(f)(...); "
             "err.throw(), by jax.experimental.checkify.")
_OF_ARRAYS = "To index numbers or arrays of one shape, make them an array: jnp.asarray(x)[i]; "
_OF_FUNCTIONS = "lax.switch chooses between functions."
_OF_TREES = ("trees of one structure are one of arrays by xs = jax.tree.map(lambda *x: "
             "jnp.stack(x), *xs): index these, jax.tree.map(lambda x: x[i], xs)")
_OF_OTHERS = ("These have different structures or shapes. Choose between functions of them: "
              "lax.switch(i, [lambda x=x: f(x) for x in xs]), where f gives one shape; or pad "
              "them to one.")


def _chosen(xs: Any) -> str:
    """What serves in the place of an index that is traced."""
    if type(xs) not in (list, tuple) or any([isinstance(x, str) for x in xs]):
        return _OF_ARRAYS + f"{_OF_TREES}; " * (xs is UNKNOWN) + _OF_FUNCTIONS
    if all(map(callable, xs)):
        return f"{_OF_FUNCTIONS[:-1]}: lax.switch(i, functions, *operands)."
    if not are_alike(xs):
        return _OF_OTHERS
    return (f"T{_OF_TREES[1:]}." if tree_structure(xs[0]).num_nodes > 1 else
            _OF_ARRAYS + _OF_FUNCTIONS)


def are_alike(xs: Sequence[Any]) -> bool:
    """Whether these have one structure and the same shapes, so that they can be stacked."""
    flat = [(tree, [np.shape(x) for _, x in leaves])
            for leaves, tree in map(tree_flatten_with_path, xs)]
    return all([x == flat[0] for x in flat])


_PYTHONS = "Python's `{}` asks for the value: use {}."
_OF_FILES = ("dump", "dumps", "save", "savetxt", "savez", "savez_compressed", "tofile")


def _of_package(tb: TracebackType) -> str | None:
    """What serves in the place of a function of NumPy's or SciPy's."""
    names, value = callee(tb.tb_frame, tb.tb_lasti)
    owner = ""
    for name in names[1:]:
        owner = value.__name__ if isinstance(value, ModuleType) else owner
        value = attribute(value, name)
    owner = "numpy" if isinstance(value, np.ufunc) and not owner else (
        owner or str(getattr(value, "__module__", "")))
    if not owner.startswith(("numpy", "scipy")):
        return None
    if owner.startswith("numpy.random"):
        return "NumPy draws once, as it is traced: draw by jax.random, with a key."
    for place in (owner, "scipy.special", "numpy"):
        with suppress(AttributeError):
            if names and names[-1] in attrgetter(place)(sys.modules["pyjx"]).__all__:
                size = (" A size must be known as it is traced, like a static argument of jit."
                        ) * (names[-1] == "arange")
                return (f"In place of {'.'.join(names)} use jax.{place}.{names[-1]}; or run it "
                        f"outside of the traced function.{size}")
    return None


def as_number(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """What serves in the place of the user's instruction that has asked an array of several numbers
    for one, or one of floats for an integer."""
    x: Any = last.tb_frame.f_locals.get("self")
    asked = next(tb.tb_frame for tb in tracebacks_of(exc) if tb.tb_frame.f_locals.get(
        "self") is x)  # a method of the array, which Python has called
    frame: Any = asked.f_back
    at = frame.f_lasti
    if not hasattr(x, "aval") or is_internal(frame.f_code.co_filename):
        return None
    operation, said = opname[frame.f_code.co_code[at]], found[0].removesuffix(".")
    name, called = value_called(frame, at) if operation in CALLS else ("", None)
    if other := _in_place_of(name, called, frame, at, None):
        return f"{said}. {other}"
    if x.ndim and operation == "BINARY_SUBSCR":
        return f"{said}. {_OF_ARRAYS.partition(';')[0]}."
    traced = hasattr(x, "_trace")
    if called in (int, float, complex):
        return f"{said}. " + ("Its one number is x.item()." if x.size == 1 and not traced else
                              f"For each of its elements: x.astype({called.__name__}).")
    whole = called is range or "SUBSCR" in operation or "SLICE" in operation
    return f"{said}. Of one number int(x) is an integer." if whole and not traced else None


def as_buffer(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """That NumPy's arrays hold no traced values, in place of the error that says which asked."""
    cause = exc.__cause__
    if not isinstance(cause, ConcretizationTypeError) or cause.said is None:
        return None
    exc.__cause__, exc.__context__, exc.__suppress_context__ = None, cause, True
    return "\n".join([found.string, cause.said.origin, _OF_NUMPY])
