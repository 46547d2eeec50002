"""Functions that operations hold as programs, such as the bodies of loops: traced once for a
signature."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from pyjx import configuration
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.bounded import BoundedDict
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo
from pyjx.core.named_axes import named_axes
from pyjx.core.records import Record
from pyjx.core.references import Ref, check_distinct, check_not_returned
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.engine.functions import raise_bad_result, source_of
from pyjx.engine.types import TreeDef
from pyjx.lax.common import operand
from pyjx.runtime.jit import path_in
from pyjx.runtime.signature import names_when_asked
from pyjx.tree_util import tree_flatten, tree_structure, tree_unflatten, treedef_tuple


class TracedFunction(Record):
    """A function, traced: its program and the structure of its results."""

    closed: ClosedJaxpr
    out_tree: TreeDef


_NO_KEYWORDS = tree_structure({})


def debug_info_of(op: str, fun: Callable[..., Any], args: TreeDef) -> DebugInfo:
    """What messages say of a function that is traced for `op`, on a tuple of arguments."""
    return DebugInfo(op, source_of(fun), names_when_asked(fun, treedef_tuple([args, _NO_KEYWORDS])))


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
                raise_bad_result(f"function {described.func_src_info} traced for {op}", out_tree,
                                 outs)

        closed = trace_to_jaxpr(flat, avals, _described(
            op, fun, tree, tree if unpacked else treedef_tuple([tree])))
        if any([type(a) is AbstractRef for a in closed.out_avals]):
            debug = closed.debug_info
            check_not_returned(closed, debug.func_src_info, debug.traced_for,
                               lambda i: path_in(out_tree, i))
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
