"""Functions that operations hold as programs, such as bodies of loops and branches of conditionals:
traced once, and the types that they take and give.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import reduce
from operator import is_not
from types import FunctionType, MethodType
from typing import Any, NoReturn

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.effects import NamedAxisEffect
from pyjx.core.evaluation import all_eqns, holds_jaxprs
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo
from pyjx.core.named_axes import named_axes
from pyjx.core.open_sums import closed_alike
from pyjx.core.places import joined
from pyjx.core.prefixes import Path, structure_differences
from pyjx.core.primitive import vary
from pyjx.core.records import Record
from pyjx.core.references import Ref, check_distinct, check_not_returned
from pyjx.core.specs import NO_AXES
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.core.unwrapping import users_function
from pyjx.engine.functions import raise_bad_result, source_of
from pyjx.engine.tangents import UndefinedPrimal
from pyjx.engine.types import Operand, TreeDef, Value
from pyjx.lax.common import operand
from pyjx.lax.convert import convert_element_type
from pyjx.lax.laying import cut_as, laid_by_hand, laid_results, results_like
from pyjx.runtime.jit import path_in
from pyjx.runtime.signature import debug_info_of, parameters_of
from pyjx.runtime.transfers import array_from_host
from pyjx.tree_util import (
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_structure,
    tree_unflatten,
    treedef_tuple,
)

# -- traced functions ------------------------------------------------------------------------------


class TracedFunction(Record):
    """A function, traced: its program and the structure of its results."""

    closed: ClosedJaxpr
    out_tree: TreeDef


_bodies: Any = weakref.WeakKeyDictionary()  # function -> {what it was traced for: TracedFunction}


def trace_function(op: str, what: str, fun: Callable[..., Any], tree: TreeDef,
               avals: Sequence[ShapedArray], unpacked: bool = False) -> TracedFunction:
    """`fun`, which is the `what` of the operation `op`, on arguments of these types.

    `tree` is that of its argument or, if they are `unpacked`, that of the tuple of its arguments. A
    function is traced once for each signature, whatever it is there, but where it closes over
    traced values.
    """
    key = (op, tree, tuple(avals), unpacked, configuration.trace_context(), named_axes())
    own = None if type(fun) is FunctionType else getattr(fun, "jit_traces", None)
    try:
        # What a function with rules is traced to holds it: together they go.
        known = (own if type(own) is dict else _bodies.setdefault(fun, {})).setdefault(
            "body", BoundedDict(256, "traces of bodies"))
    except TypeError:  # neither hashable nor weakly referenced
        known = BoundedDict(1, "traces of bodies")
    body = known.get(key)
    if body is None:
        out_tree: Any = None

        def flat(*xs: Any) -> list[Any]:
            nonlocal out_tree
            given = tree_unflatten(tree, xs)
            outs, out_tree = tree_flatten(fun(*given) if unpacked else fun(given))
            try:
                return [operand(what, x) for x in outs]
            except TypeError:
                described = _described(op, fun, tree, tree if unpacked else treedef_tuple([tree]))
                if described.traced_for == "map":  # a scan, whose carry is empty
                    out_tree = out_tree.children()[1]
                raise_bad_result(f"function {described.func_src_info} traced for "
                                 f"{described.traced_for}", out_tree, outs)

        closed = trace_to_jaxpr(flat, avals, _described(
            op, fun, tree, tree if unpacked else treedef_tuple([tree])))
        check_not_returned(closed, closed.debug_info.traced_for, lambda i: path_in(out_tree, i))
        # What is derived from it has other arguments.
        closed = closed.replace(debug_info=closed.debug_info.with_unknown_names())
        body = TracedFunction(closed, out_tree)
        if not any([isinstance(c, Tracer) and type(c) is not Ref for c in closed.consts]):
            known[key] = body
    return body  # type: ignore[no-any-return]


class KeptFunctions:
    """The functions that an operation makes of functions: one for each, so that what was traced for
    it is found again, which lives as long as the other.

    Args:
      make: from a way to get the function (which must not be held) to the new one.
    """

    def __init__(self, make: Callable[[Callable[[], Any]], Callable[..., Any]]) -> None:
        self._make = make
        self._known: Any = weakref.WeakKeyDictionary()

    def of(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(fun, MethodType):  # made anew each time it is asked for
            return self._make(lambda: fun)
        try:
            found = self._known.get(fun)
            if found is None:
                found = self._known[fun] = self._make(weakref.ref(fun))
            return found  # type: ignore[no-any-return]
        except TypeError:  # neither hashable nor weakly referenced
            return self._make(lambda: fun)


def check_operands_distinct(op: str, fun: Callable[..., Any], tree: TreeDef,
                            operands: Sequence[Any], consts: Sequence[Any] = ()) -> None:
    """Raise ValueError if two operands are one reference, or one is closed over, too. `tree` is
    that of the tuple of the arguments of `fun`."""
    check_distinct(operands, consts, lambda: _described(op, fun, tree, tree))


def _described(op: str, fun: Callable[..., Any], tree: TreeDef, args: TreeDef) -> DebugInfo:
    """What messages say of a body that is traced on `tree`, or on the tuple of arguments."""
    if type(fun) is FunctionType and "debug_info" in vars(fun):  # of a body made of another
        return vars(fun)["debug_info"](tree)  # type: ignore[no-any-return]
    return debug_info_of(op, fun, args)


# -- where two pytrees, or the types of their leaves, differ ---------------------------------------

Place = Callable[[Path], str]  # how a component with this path is called


def tree_differences(ours: Place, theirs: Place, our_tree: TreeDef, their_tree: TreeDef
                     ) -> list[str]:
    """A sentence for each place where two structures differ."""
    return [f"{ours(path)} is a {one} but {theirs(path)} is a {other}, so {why}"
            for path, one, other, why in structure_differences(our_tree, their_tree)]


def type_differences(ours: Place, theirs: Place, tree: TreeDef, our_avals: Sequence[ShapedArray],
                     their_avals: Sequence[ShapedArray]) -> list[str]:
    """A sentence for each leaf of two equal trees whose types differ."""
    sentences = []
    for path, a, b in zip(_paths(tree), our_avals, their_avals, strict=True):
        open_apart = not closed_alike(a, b)
        if not a.same_type(b) or open_apart:
            kinds = ["types"] if a.is_high or b.is_high else [kind for kind, x, y in (
                ("dtypes", a.dtype, b.dtype), ("shapes", a.shape, b.shape),
                ("shardings", a.place.sharding, b.place.sharding),
                ("manual axis types", open_apart, False)) if x != y]
            sentences.append(
                f"{ours(path)} has type {a.str_short()} but {theirs(path)} has type "
                f"{b.str_short()}, so the {' and the '.join(kinds)} do not match")
    return sentences


def _paths(tree: TreeDef) -> list[Path]:
    leaves = tree_unflatten(tree, list(range(tree.num_leaves)))
    return [path for path, _ in tree_flatten_with_path(leaves)[0]]


def in_full(sentences: Sequence[str]) -> str:
    """One sentence, or a list of several."""
    if len(sentences) == 1:
        return f"{sentences[0][0].upper()}{sentences[0][1:]}."
    return "\n".join([f"  * {s};" for s in sentences])[:-1] + "."


# -- carries ---------------------------------------------------------------------------------------


def as_in_program(x: Any) -> Any:
    """A Python number, or an array of NumPy's, which a body may change, as the array that it would
    be in a program."""
    of_host = type(x) in (bool, int, float, complex) or isinstance(x, np.ndarray)
    return array_from_host(x) if of_host else x


def traced_with_carry(op: str, what: str, fun: Callable[..., Any], tree: TreeDef,
                      leaves: list[Value], body: TracedFunction,
                      trace: Callable[[list[ShapedArray]], TracedFunction],
                      carry_of: Callable[[TreeDef], TreeDef] = lambda tree: tree
                      ) -> tuple[list[Value], TracedFunction, list[ShapedArray] | None]:
    """The carry of a loop, and its body for that: the one given, as each call between nested
    programs counts against the depth of Python's stack, or what `trace` makes. `carry_of` gives
    the structure of the carry, which comes first, in that of the results.

    A weakly typed leaf that the body changes the type of is of the dtype that the two promote to;
    one that it makes vary along axes of a mesh varies so from the start. What is of no mesh lies
    as the other does: results in the body; leaves are yet to be laid (`run_laid`) as the types
    say that come third, where there are any.

    Raises:
      TypeError: the body gives a carry of another type than it takes.
    """
    carry_tree = carry_of(body.out_tree)
    if carry_tree == tree:
        now = [vary(_promoted(x, out), out.place.mat.varying)
               for x, out in zip(leaves, body.closed.out_avals, strict=False)]
        while any(map(is_not, now, leaves)):
            leaves, body = now, trace(list(map(get_aval, now)))
            now = [vary(x, out.place.mat.varying)
                   for x, out in zip(leaves, body.closed.out_avals, strict=False)]
    given = avals = list(map(get_aval, leaves))
    if carry_tree == tree:
        if body.closed.out_avals[:len(avals)] == avals:
            return leaves, body, None
        while (types := list(map(cut_as, avals, body.closed.out_avals))) != avals:
            avals, body = types, trace(types)
        body = TracedFunction(laid_results(body.closed, avals), body.out_tree)
    _check_carry(op, what, fun, tree, avals, carry_tree,
                 body.closed.out_avals[:carry_tree.num_leaves], trace)
    return leaves, body, None if avals == given else avals


def _promoted(x: Value, out: ShapedArray) -> Value:
    aval = get_aval(x)
    if not aval.weak_type or aval is out or aval.shape != out.shape:
        return x
    dtype = dtypes.result_type(x, out)
    return x if dtype == aval.dtype else convert_element_type(x, dtype)


def _check_carry(op: str, what: str, fun: Callable[..., Any], tree: TreeDef,
                 avals: Sequence[ShapedArray], out_tree: TreeDef,
                 out_avals: Sequence[ShapedArray],
                 trace: Callable[[list[ShapedArray]], TracedFunction]) -> None:
    """Raise TypeError unless the body, of which `trace` makes programs, gives a carry of the type
    it takes.

    A body made of another one tells by `user_body()` what to speak of: the operation, the name of
    the argument, the function, which of its parameters the carry is, and how deep that lies here.
    """
    place = depth = 0
    if type(fun) is FunctionType and "user_body" in vars(fun):  # of a loop made into this one
        loop, what, fun, place, depth = vars(fun)["user_body"]()
        op = f"{loop}: {op}"
    parameters = parameters_of(fun)
    named = parameters is not None and len(parameters.positional) > place
    root = parameters.positional[place] if parameters and named else "carry"

    def component(path: Path) -> str:
        path = path[depth:]
        return f"carry component {root}{keystr(path)}" if path else f"carry {root}"

    if out_tree != tree:
        _raise(f"{op} body function carry input and carry output must have the same pytree "
               "structure",
               tree_differences(lambda path: f"the input {component(path)}",
                                lambda path: "the corresponding component of the carry output",
                                tree, out_tree),
               f"({what}) so that the carry output has the same pytree structure as the carry "
               "input", fun, returns_nothing(out_tree.children()[-1] if depth else out_tree))
    wrong = type_differences(lambda path: f"the input {component(path)}",
                             lambda path: "the corresponding output carry component",
                             tree, avals, out_avals)
    if wrong:
        _raise(f"{op} body function carry input and carry output must have equal types", wrong,
               f"({what}) so that all output types match the corresponding input types", fun,
               laid_by_hand(avals, out_avals, " Or let the initial carry lie as the output does: "
                            "jax.reshard(init, {0}), or out_sharding={0} where it is made, as in "
                            "jnp.zeros(shape, out_sharding={0}).")
               or _other_start(op, fun, tree, avals, out_avals, trace, depth))


def _other_start(op: str, fun: Callable[..., Any], tree: TreeDef, avals: Sequence[ShapedArray],
                 out_avals: Sequence[ShapedArray],
                 trace: Callable[[list[ShapedArray]], TracedFunction], depth: int) -> str:
    """For messages: how the initial carry is made what a body of the user's gives, if the body,
    which runs once more for it, keeps that. The condition of a while loop takes no other shape."""
    starts: list[str] = []
    with suppress(Exception):  # of shapes and dtypes that do not go together, and of the body
        for path, a, b in zip(_paths(tree), avals, out_avals, strict=True):
            wide = a.shape if op == "while_loop" else np.broadcast_shapes(a.shape, b.shape)
            if b.shape != wide or b.dtype != dtypes.result_type(a, b):
                return ""
            start = ("init_val" if "loop" in op else "init") + keystr(path[depth:])
            if a.shape != b.shape:
                start = f"jnp.broadcast_to({start}, {b.shape})"
            if a.dtype != b.dtype:
                start = f"jnp.asarray({start}, '{b.dtype}')"
            starts += [start] if (a.shape, a.dtype) != (b.shape, b.dtype) else []
        if starts and users_function(fun) is not None and all(map(
                ShapedArray.same_type, out_avals, trace(list(out_avals)).closed.out_avals)):
            return f" Or start with a carry of the output's type: {', '.join(starts)}."
    return ""


def _raise(what: str, differences: list[str], cure: str, fun: Callable[..., Any], hint: str = ""
           ) -> NoReturn:
    raise TypeError(f"{what}, but they differ:\n\n{in_full(differences)}\n\nRevise the function "
                    f"{cure}. It is {source_of(fun)}.{hint}")


def returns_nothing(tree: TreeDef) -> str:
    """For messages: that a function gives None, as one does whose `return` is missing."""
    return " It returns None: is a `return` missing?" if tree == _NONE else ""


_NONE = tree_structure(None)


# -- branches --------------------------------------------------------------------------------------


def trace_branches(op: str, names: Sequence[str], funs: Sequence[Callable[..., Any]], tree: TreeDef,
                   avals: Sequence[ShapedArray], varying: frozenset[Any] = NO_AXES
                   ) -> tuple[list[ClosedJaxpr], Any]:
    """The programs of the branches and the structure of their results.

    Results may be weakly typed in one branch and not in another: the first one's types are those of
    the conditional. They vary along the axes of a mesh along which those of a branch do, or the
    choice, which is `varying`.

    Raises:
      TypeError: the branches give results of different structures or types, or one sends values
        along axes of a mesh along which the choice varies.
    """
    traced = [trace_function(op, name, fun, tree, avals, unpacked=True)
              for name, fun in zip(names, funs, strict=True)]
    (first, out_tree), *others = traced
    same_tree = all([tree == out_tree for _, tree in others])
    if not same_tree or any([c.out_avals != first.out_avals for c, _ in others]):
        if same_tree:
            types = [reduce(cut_as, of_one)
                     for of_one in zip(*[c.out_avals for c, _ in traced], strict=True)]
            traced = [TracedFunction(laid_results(c, types), out_tree) for c, _ in traced]
        order = (1, 0) if op == "cond" else range(len(names))  # that keeps the false branch first
        for n in order[1:]:
            _check_equal(op, (order[0], n), names, funs, traced)
    closed = [t.closed for t in traced]
    if len({tuple([a.place.mat.varying & varying for a in c.out_avals]) for c in closed}) > 1:
        check_sends_nothing(
            op, "choice varies", dict(zip(names, closed, strict=True)), varying,
            "take that branch would wait for the others", "where all devices choose alike, cast "
            "its result: jax.lax.pcast(y, {}, to='varying')")
    return _varying_alike(closed, varying), out_tree


def check_sends_nothing(op: str, varies: str, programs: dict[str, ClosedJaxpr],
                        varying: frozenset[Any], wait: str, cure: str) -> None:
    """Devices that do what others along these axes do not may send no values along them, as they
    would wait without end.

    Raises:
      TypeError: one of the programs, which are by the names of arguments, does.
    """
    for name, program in programs.items():
        for eqn in all_eqns(program):
            axes = [repr(e.name) for e in eqn.effects
                    if type(e) is NamedAxisEffect and e.name in varying]
            if axes and eqn.invars and not holds_jaxprs(eqn) and (
                    eqn.params.get("axis_index_groups") is None):
                sends = eqn.primitive.name.removesuffix("_invariant")
                raise TypeError(f"{op}: the {varies} along the mesh axis {axes[0]}, and {name} has "
                                f"{sends} along it: devices that {wait} without end. Move it out "
                                f"of the {op}; or, {cure.format(axes[0])}.")


def check_nothing_is_summed(op: str, apart: frozenset[Any], holds: str, operands: Sequence[Operand]
                            ) -> None:
    """The cotangent of what is one for all is a sum over devices, which stands in no program that
    some of them, along the axes `apart`, do not run.

    Raises:
      ValueError: an operand whose cotangent is wanted is one for all.
    """
    for x in operands if apart else ():
        if type(x) is UndefinedPrimal and not (
                apart <= x.aval.place.mat.varying | x.aval.place.mat.reduced):
            axes = tuple(sorted(apart, key=str))
            raise ValueError(
                f"{op}: devices along the axes {axes} {holds} of their own, which close over a "
                f"value of type {x.aval.str_short()} that is one for all, so its gradient is a sum "
                "over them. Give the value as an operand or in the carry, or cast it before: "
                f"lax.pcast(x, {axes}, to='varying').")


def _varying_alike(branches: list[ClosedJaxpr], varying: frozenset[Any]) -> list[ClosedJaxpr]:
    axes = tuple([joined(avals) | varying
                  for avals in zip(*[b.out_avals for b in branches], strict=True)])
    if not any(axes):
        return branches
    return [b if axes == tuple([a.place.mat.varying for a in b.out_avals])
            else results_like(b, tuple([a.varying(x) for a, x in zip(
                b.out_avals, axes, strict=True)])) for b in branches]


def _check_equal(op: str, pair: tuple[int, int], names: Sequence[str],
                 funs: Sequence[Callable[..., Any]], traced: Sequence[TracedFunction]) -> None:
    (i, j), (a, b) = pair, (names[pair[0]], names[pair[1]])

    def at(path: Path) -> str:
        return f" at path {keystr(path)}" if path else ""

    if traced[i].out_tree != traced[j].out_tree:
        what = f"{op} branch outputs must have the same pytree structure, but they differ:"
        wrong = tree_differences(lambda path: f"{a} output{at(path)}",
                                 lambda path: f"{b} output{at(path)}",
                                 traced[i].out_tree, traced[j].out_tree)
        cure = "they have the same pytree structure"
        text = wrong[0] + "." if len(wrong) == 1 else in_full(wrong)
    else:
        wrong = type_differences(lambda path: f"the output of {a}{at(path)}",
                                 lambda path: f"the corresponding output of {b}",
                                 traced[i].out_tree, traced[i].closed.out_avals,
                                 traced[j].closed.out_avals)
        if not wrong:
            return
        what = f"{op} branches must have equal output types but they differ."
        cure = "all output types match" + laid_by_hand(
            traced[j].closed.out_avals, traced[i].closed.out_avals,
            f", such as by jax.reshard(y, {{}}) of what {b} returns")
        text = in_full(wrong)
    described = "\n".join([
        f"{names[n]} is {source_of(funs[n])}" +
        returns_nothing(traced[n].out_tree).replace(" It", ", which", 1) for n in pair])
    raise TypeError(f"{what}\n\n{described}\n\n{text}\n\nRevise {a} and/or {b} so that {cure}.")
