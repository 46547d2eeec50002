"""What serves in the place of an instruction of the user's that asks for a value which is traced:
an index, a condition, a print, a function of Python's, NumPy's or SciPy's. The instruction is read
in the code of the caller. Loaded as the first error is completed."""

from __future__ import annotations

import ast
import cmath
import math
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from opcode import opname
from operator import attrgetter
from types import FrameType, ModuleType, TracebackType
from typing import Any, NamedTuple

import numpy as np

from pyjx.core import call_code
from pyjx.core.call_code import CALLS, UNKNOWN, arguments_at, attribute, callee, value_called
from pyjx.core.frames import is_internal, is_of_foundation, tracebacks_of
from pyjx.core.value_texts import OF_SPARSE, is_of_scipy
from pyjx.errors import ConcretizationTypeError, Said, told_otherwise
from pyjx.tree_util import tree_flatten_with_path, tree_structure

# What serves in the place of Python's functions, where it is no function of the same name. Those of
# complex numbers take real ones out of the domain of `jax.numpy`'s.
_OTHERS = {
    **{name: f"jax.scipy.special.{name}" for name in ("erf", "erfc", "factorial", "gamma")},
    "dist": "jnp.linalg.norm(jnp.asarray(p) - jnp.asarray(q))",
    "fsum": "jnp.sum(jnp.asarray(xs))", "lgamma": "jax.scipy.special.gammaln",
    "phase": "jnp.angle", "polar": "(jnp.abs(z), jnp.angle(z))", "rect": "r * jnp.exp(1j * phi)",
    "remainder": "x - y * jnp.round(x / y)", "ulp": "jnp.spacing"}
_OF_COMPLEX = {name: f"jnp.{name}(x + 0j)" for name in (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "log", "log10", "sqrt")}
_ALIKE = {name: f"jnp.{name}" for name in sys.modules["pyjx"].numpy.__all__}
_FOR_ARRAYS: dict[Any, str] = {
    **{f: f"jnp.{f.__name__}" for f in (max, min, any, all)}, sorted: "jnp.sort",
    **{f: known[name] for package, known in (
        (math, _ALIKE | _OTHERS), (cmath, _ALIKE | _OTHERS | _OF_COMPLEX))
       for name, f in vars(package).items() if callable(f) and name in known}}
_OF_BASE = {math.log: "jnp.log(x) / jnp.log(base)",
            cmath.log: "jnp.log(x + 0j) / jnp.log(base + 0j)"}


def as_asked(exc: Any, found: re.Match[str], last: TracebackType) -> str | None:
    """What serves in the place of the user's instruction, or of the function of Python's or another
    package's, that has asked for a value which is traced."""
    users = [tb for tb in tracebacks_of(exc) if not is_internal(tb.tb_frame.f_code.co_filename)
             and not is_of_foundation(tb.tb_frame.f_code.co_filename)]
    if not users or not exc.said:
        return None
    cure, what = _of_maker(users[-1], exc.said) or _in_place(users[-1], exc.said), exc.said.what
    if cure is None:
        return None
    if cure.replaces:
        what = what.partition(cure.replaces)[0]
    return told_otherwise(exc, what=what, cure=cure.text)


class _Cure(NamedTuple):
    """What serves in the place of an instruction, and with what begins that part of what the
    message has said before which it replaces, if it does."""

    text: str
    replaces: str = " To change its dtype"


SHOWN = ("While the function is traced, the array has no value. Print it as the program runs by "
         "jax.debug.print('{x}', x=x).")
_AS_SIZE = ("As a size or a number of rounds of Python's it must be known while the function is "
            "traced: mark what it is made of as static (static_argnums or static_argnames of jit), "
            "or take the largest size and choose by jnp.where(jnp.arange(size) < n, x, 0).")
_NOTHING = _Cure("", replaces="")


def _of_maker(tb: TracebackType, said: Said) -> _Cure | None:
    """What serves in the place of the index of what makes arrays by it, and takes none of one:
    what is asked for is a size, not a position."""
    inner = tb.tb_next
    made_by = inner and inner.tb_frame.f_code.co_name == "__getitem__" and (
        inner.tb_frame.f_locals.get("self"))
    name = next((name for name in _MAKERS if made_by is getattr(np, name)), None)
    if name is not None:
        return _Cure(_INSTEAD.format(f"np.{name}", f"numpy.{name}") + _OF_SIZES)
    makers = [getattr(sys.modules["pyjx"].numpy, name) for name in _MAKERS]
    return _Cure(said.cure) if any([made_by is x for x in makers]) else None


def _updated(tb: TracebackType, why: str = "NumPy's arrays hold no value") -> str:
    """What serves in the place of an assignment to a part of an array or a list."""
    x, i = call_code.subscript_at(tb.tb_frame, tb.tb_lasti)
    return (f"{why} that is traced: make this one by jax.numpy, and write "
            f"{x} = {x}.at[{i}].set(value).")


_MAKERS = ("mgrid", "ogrid", "r_", "c_")
_INSTEAD = "In place of {} use jax.{}; or run it outside of the traced function."
_OF_SIZES = " A size must be known as it is traced, like a static argument of jit."


def _in_place(tb: TracebackType, said: Said) -> _Cure | None:
    """What serves in the place of what failed; None where nothing else is known."""
    frame, at, code = tb.tb_frame, tb.tb_lasti, tb.tb_frame.f_code.co_code
    operation, before = call_code.failed_at(frame, at).opname, opname[code[max(at - 2, 0)]]
    kernel, of_ref = " for pallas_call." in said.origin, _is_of_ref(tb)
    sliced = before == "BUILD_SLICE" or operation.endswith("_SLICE")
    if of_ref and sliced:
        return _Cure(_OF_REF + " pl is jax.experimental.pallas." * (not kernel))
    if operation in ("STORE_SUBSCR", "STORE_SLICE"):
        return _Cure(_updated(tb, *["Lists take no index"] * bool(said.known)))
    if of_sparse := _of_sparse(tb):
        return _Cure(of_sparse)
    if operation == "BINARY_OP" and code[at + 1] == 6:  # `"%.2f" % x`
        return _Cure(SHOWN, replaces="\n")
    if sliced:
        return _Cure("For a part of known size use lax.dynamic_slice_in_dim("
                     f"jnp.asarray({call_code.subscript_at(frame, at)[0]}), start, size).")
    if operation == "BINARY_SUBSCR":
        return _Cure(_chosen(frame, at))
    if call_code.is_chained(frame, at):
        return _Cure(_CHAINED)
    if operation == "UNARY_NOT":
        static = said.cure.partition(" If the value is the same ")[1:]  # which flags may be
        return _Cure(_PYTHONS.format("not", "~x of Booleans, or jnp.logical_not(x)")
                     + "".join(static))
    if operation == "CONTAINS_OP":
        x, xs = call_code.compared_at(frame, at)
        return _Cure(_PYTHONS.format("in", f"jnp.isin({x}, jnp.asarray({xs}))"))
    outside = list(call_code.around(tb))
    if any([name == "LOAD_ASSERTION_ERROR" for name, _ in outside]):
        return _Cure(_ASSERTED.format("assert", "x"))
    if operation.startswith("POP_JUMP") and call_code.only_raises(tb):
        return _Cure(_ASSERTED.format("raise", "~x" if operation.endswith("FALSE") else "x"))
    if operation.startswith("POP_JUMP") and kernel:
        return _Cure("What a kernel does under a condition is a function of no arguments, "
                     "decorated by pl.when(condition).")
    name, called = ("", None) if operation not in CALLS else value_called(frame, at)
    if called in (int, float, bool, complex) and any(
            [name.startswith("FORMAT_") or function is print for name, function in outside]):
        return _Cure(SHOWN, replaces="\n")
    if called in (int, float, complex) and "static_argnames of jit" in said.cure:
        within = any([name in CALLS or "SUBSCR" in name or "SLICE" in name
                      for name, _ in outside])
        if called is int and not within and call_code.is_stored(tb):
            return _Cure(_AS_SIZE, replaces="")
        # a number there, else an array
        return _Cure(said.cure) if called is int and within else _NOTHING
    if called is range:
        return _Cure("To loop a traced number of times use lax.fori_loop or lax.while_loop.")
    if name.rpartition(".")[2] in _FILES:
        return _Cure(OF_FILES)
    if other := _in_place_of(name, called, frame, at, said.origin):
        return _Cure(other)
    if said.known:
        return _NOTHING
    if operation == "BINARY_OP" and "NumPy's" in said.cure:  # no operand is traced itself
        return _Cure(_OF_SCIPY.format("operators") if _is_in_scipy(tb) else (
            "NumPy cannot make an array of a list of traced values: give jnp.asarray(x) in its "
            "place."))
    of_package = _of_package(tb, bool(name)) if operation in CALLS else None
    return None if of_package is None else _Cure(of_package)


_OF_REF = "A part of known size is x_ref[pl.ds(start, size)]."


def _is_of_ref(tb: TracebackType) -> bool:
    """Whether it is an index of a reference that failed."""
    inner: TracebackType | None = tb
    while inner and inner.tb_frame.f_globals.get("__name__") != "pyjx.lax.ref_views":
        inner = inner.tb_next
    return inner is not None


def _of_sparse(tb: TracebackType) -> str:
    """What serves in the place of a sparse matrix of SciPy's, if an operator or a method of one has
    asked; empty of anything else."""
    inner = tb.tb_next
    matrix = inner and inner.tb_frame.f_locals.get("self")
    if inner is None or not is_of_scipy(matrix):
        return ""
    written: Any = call_code.expression_at(tb.tb_frame, tb.tb_lasti)
    of = "right" if inner.tb_frame.f_code.co_name.startswith("__r") else "left"
    owner = getattr(written, of, getattr(getattr(written, "func", written), "value", None))
    name = call_code.text_of(owner) if owner else ""
    by_star = isinstance(getattr(written, "op", None), ast.Mult) and (
        type(matrix).__name__.endswith("_matrix"))
    return OF_SPARSE.format(name or "An operand", name or "matrix") + (
        " The product of matrices is then `@`, not `*`." * by_star)


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
    if args[1:]:
        other = _OF_BASE.get(called, other)
    if called in (math.hypot, math.gcd, math.lcm) and args[2:]:
        other = f"functools.reduce({other}, (x, y, ...))"
    if called not in (max, min, sorted, any, all):
        return _PYTHONS.format(name, other)
    asked, xs = _PYTHONS.partition(" use")[0].format(name), args
    if not args[1:]:
        xs = list(args[0]) if type(args[0]) in (list, tuple) else []
    pairs = [x for x in xs if type(x) in (list, tuple) and x]
    known = any([x is not UNKNOWN for x in xs]) or hasattr(args[0], "aval")
    asks_first = origin is None or "`eq`" in origin  # as tuples do
    may_be_pairs = called not in (any, all) and (bool(pairs) or (not known and asks_first))
    if may_be_pairs and (pairs or origin is not None):
        return f"{asked} {_of_pairs(other, pairs, origin is not None)}."
    also = f"; of tuples with arrays {_BY_KEY}" * may_be_pairs
    return f"{asked} use {_of_several(other, args, xs, known)}{also}."


def _of_several(other: str, args: Sequence[Any], xs: Sequence[Any], known: bool) -> str:
    """What serves for several values: `xs`, as far as they are known, which are the arguments or
    the elements of the only one."""
    if args[2:]:
        return f"{other}(jnp.asarray((x, y, ...)))"
    if args[1:]:
        return f"{other}imum(x, y)"
    several = f"{other}(jnp.asarray({'xs' if xs else 'list(xs)'}))"
    if xs:
        return several
    return f"{other}(x)" if known else f"{other}(x) of an array, {several} of several"


def _of_pairs(other: str, pairs: Sequence[Any], traced: bool) -> str:
    """What orders tuples, which are `pairs` as far as they are known, and may hold traced values.
    """
    by_index = (f"i = {other.replace('.', '.arg')}(jnp.asarray([t[0] for t in xs])) tells which; "
                f"{_OF_TREES}")
    if not pairs and traced:
        return f"{_BY_KEY}, or if that is traced {by_index}"
    return by_index if any([hasattr(x[0], "_trace") for x in pairs]) and traced else _BY_KEY


_BY_KEY = "compare what tells them apart, with key=lambda t: t[0]"
_ASSERTED = ("To check a traced value as the program runs, in the place of `{}`: "
             "checkify.check({}, 'message'), and call err, out = checkify.checkify(f)(...); "
             "err.throw(), by jax.experimental.checkify.")
_OF_ARRAYS = "To index numbers or arrays of one shape, make them an array: jnp.asarray({})[{}]"
_OF_FUNCTIONS = "lax.switch chooses between functions."
_OF_TREES = ("trees of one structure are one of arrays by xs = jax.tree.map(lambda *x: "
             "jnp.stack(x), *xs): index these, jax.tree.map(lambda x: x[i], xs)")
_OF_OTHERS = ("These have different structures or shapes. Choose between functions of them: "
              "lax.switch(i, [lambda x=x: f(x) for x in xs]), where f gives one shape; or pad "
              "them to one.")


def _chosen(frame: FrameType, at: int) -> str:
    """What serves in the place of an index that is traced."""
    xs, written = call_code.indexed_at(frame, at), call_code.subscript_at(frame, at)
    of_arrays = _OF_ARRAYS.format(*written)
    if texts := _of_texts(xs, *written):
        return texts
    if type(xs) not in (list, tuple):
        return f"{of_arrays}; " + f"{_OF_TREES}; " * (xs is UNKNOWN) + _OF_FUNCTIONS
    if all(map(callable, xs)):
        return f"{_OF_FUNCTIONS[:-1]}: lax.switch(i, functions, *operands)."
    if not are_alike(xs):
        return _OF_OTHERS
    return (f"T{_OF_TREES[1:]}." if tree_structure(xs[0]).num_nodes > 1 else
            f"{of_arrays}; {_OF_FUNCTIONS}")


def _of_texts(xs: Any, name: str, i: str) -> str:
    """What serves in the place of an index of a text, or of several; empty of anything else."""
    several = type(xs) in (list, tuple) and any([isinstance(x, str) for x in xs])
    if not several and not isinstance(xs, str):
        return ""
    listed = name if several else f"list({name})"
    return (f"Texts are in no array: index them outside of what is traced, by int({i}) of a number,"
            f" or np.asarray({listed})[np.asarray({i})] of several.")


def are_alike(xs: Sequence[Any]) -> bool:
    """Whether these have one structure and the same shapes, so that they can be stacked."""
    flat = [(tree, [np.shape(x) for _, x in leaves])
            for leaves, tree in map(tree_flatten_with_path, xs)]
    return all([x == flat[0] for x in flat])


_PYTHONS = "Python's `{}` asks for the value: use {}."
_CHAINED = ("To compare a < b < c Python asks a < b for its truth value: write (a < b) & (b < c). "
            "`&` and `|` bind closer than comparisons, which stand in brackets.")
OF_FILES = "Save what the traced function returns."
_FILES = ("dump", "dumps", "save", "savetxt", "savez", "savez_compressed", "tofile")


def _of_package(tb: TracebackType, direct: bool) -> str | None:
    """What serves in the place of a function of NumPy's or SciPy's, if that is called `direct`ly,
    or of a distribution's method."""
    names, value = callee(tb.tb_frame, tb.tb_lasti)
    owner, values = "", [value]
    for name in names[1:]:
        owner = value.__name__ if isinstance(value, ModuleType) else owner
        value = attribute(value, name)
        values.append(value)
    distributions = [type(x).__name__ for x in [getattr(x, "dist", x) for x in values]
                     if str(type(x).__module__).startswith("scipy.stats.")]
    if distributions:
        return _of_distribution(re.sub("_(gen|frozen)$", "", distributions[0]),
                                call_code.method_called(tb.tb_frame, tb.tb_lasti))
    modules = [owner, *[str(getattr(x, "__module__", type(x).__module__)) for x in values]]
    if any([module.startswith("numpy.random") for module in modules]):
        return "NumPy draws once, as it is traced: draw by jax.random, with a key."
    owner = owner or ("numpy" if isinstance(value, np.ufunc) else modules[-1])
    package = owner.partition(".")[0]
    if direct and package in ("numpy", "scipy") and (other := _namesake(
            names, getattr(value, "__name__", ""), owner.partition("._")[0])):
        return _INSTEAD.format(".".join(names), other) + _OF_SIZES * other.endswith(".arange")
    return _OF_SCIPY.format("functions") if package == "scipy" or _is_in_scipy(tb) else None


def _is_in_scipy(tb: TracebackType) -> bool:
    """Whether the code that the user's has called is SciPy's."""
    inner = tb.tb_next
    return inner is not None and str(inner.tb_frame.f_globals.get("__name__")).startswith("scipy.")


def _namesake(names: Sequence[str], name: str, owner: str) -> str:
    """The function of the same name as one that is written so, and is the owner's; empty if there
    is none."""
    if (owner, name) == ("scipy.integrate", "odeint"):
        return "experimental.ode.odeint"
    for place in (owner, owner.replace("scipy", "numpy"), "scipy.special", "numpy"):
        for own in (*names[1:][-1:], name):  # which may have been imported by another
            with suppress(AttributeError):
                if own in attrgetter(place)(sys.modules["pyjx"]).__all__:
                    return f"{place}.{own}"
    return ""


_OF_SCIPY = ("SciPy's {} compute with values: run it outside of the traced function, or by "
             "jax.pure_callback.")


def _of_distribution(name: str, method: str) -> str:
    own = f"scipy.stats.{name}.{method}"
    try:
        attrgetter(own)(sys.modules["pyjx"])
    except AttributeError:
        return _OF_SCIPY.format("distributions")
    return _INSTEAD.format(f"SciPy's {name}.{method}",
                           f"{own}(x, ...), with the parameters behind x")


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
    operation, said = call_code.failed_at(frame, at).opname, found[0].removesuffix(".")
    name, called = value_called(frame, at) if operation in CALLS else ("", None)
    if other := _in_place_of(name, called, frame, at, None):
        return f"{said}. {other}"
    if call_code.is_chained(frame, at):
        return f"{said}. {_CHAINED}"
    if x.ndim and operation == "BINARY_SUBSCR":
        written = call_code.subscript_at(frame, at)
        texts = _of_texts(call_code.indexed_at(frame, at), *written)
        return f"{said}. {texts or _OF_ARRAYS.format(*written) + '.'}"
    traced = hasattr(x, "_trace")
    if called in (int, float, complex):
        return f"{said}. " + ("Its one number is x.item()." if x.size == 1 and not traced else
                              f"For each of its elements: x.astype({called.__name__}).")
    whole = called is range or "SUBSCR" in operation or "SLICE" in operation
    return f"{said}. Of one number int(x) is an integer." if whole and not traced else None


def as_buffer(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """That NumPy's arrays hold no traced values, in place of the error that says which asked, and
    of its grids, whose error is of what they try next."""
    of_grids = isinstance(exc, AttributeError)
    cause = exc.__context__ if of_grids else exc.__cause__
    if not isinstance(cause, ConcretizationTypeError) or cause.said is None:
        return None
    cures = [x.text for tb in tracebacks_of(exc) if (x := _of_maker(tb, cause.said))]
    users = [tb for tb in tracebacks_of(exc) if not is_internal(tb.tb_frame.f_code.co_filename)]
    if of_grids and not cures:
        return None
    exc.__cause__, exc.__context__, exc.__suppress_context__ = None, cause, True
    return "\n".join([found.string, cause.said.origin, *(cures or [_updated(users[-1])])])


_NESTED = 30  # calls of one function of the library's, where programs are


def as_endless(exc: Exception, found: re.Match[str], last: TracebackType) -> str | None:
    """The user's function that runs in itself, while something is traced."""
    codes = [tb.tb_frame.f_code for tb in tracebacks_of(exc)]
    users = Counter([code for code in codes if not is_internal(code.co_filename)])
    code, times = (*users.most_common(1), (None, 0))[0]
    frame, deeper = next(tracebacks_of(exc)).tb_frame.f_back, "sys.setrecursionlimit(n) lets"
    if code is None or times < 4:
        return None if max(Counter(codes).values()) < _NESTED else (
            f"{found.string}. Programs are nested too deeply in each other, as those of a function "
            f"that calls itself: loop by lax.scan or lax.fori_loop. {deeper} them be deeper.")
    while frame is not None:
        times, frame = times + (frame.f_code is code), frame.f_back
    return (f"{found.string}. Recursively calling {code.co_qualname} at {code.co_filename}:"
            f"{code.co_firstlineno}, {times} times. No traced value ends a recursion: loop by "
            f"lax.while_loop or lax.scan; {deeper} one that ends go deeper.")
