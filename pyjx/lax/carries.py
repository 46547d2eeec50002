"""Carries of loops: tracing a body over one, settling its types, and what to say if they differ."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, NamedTuple, NoReturn

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.engine.types import TreeDef, Value
from pyjx.lax.convert import convert_element_type
from pyjx.lax.differences import Path, in_full, tree_differences, type_differences
from pyjx.lax.nary import operand
from pyjx.runtime.signature import parameters_of
from pyjx.tree_util import keystr, tree_flatten, tree_unflatten


class TracedBody(NamedTuple):
    """A function of a carry, traced."""

    closed: ClosedJaxpr
    out_tree: TreeDef


_bodies: Any = weakref.WeakKeyDictionary()  # function -> {what it was traced for: TracedBody}


def trace_body(op: str, what: str, fun: Callable[..., Any], tree: TreeDef,
               avals: Sequence[ShapedArray], unpacked: bool = False) -> TracedBody:
    """`fun`, which is the `what` of the operation `op`, on arguments of these types.

    `tree` is that of its argument or, if they are `unpacked`, that of the tuple of its arguments. A
    function is traced once for each signature, but where it closes over traced values.
    """
    key = (op, what, tree, tuple(avals), unpacked, configuration.trace_context())
    try:
        known = _bodies.setdefault(fun, BoundedDict(256))
    except TypeError:  # neither hashable nor weakly referenced
        known = BoundedDict(1)
    body = known.get(key)
    if body is None:
        body = _traced(op, what, fun, tree, avals, unpacked)
        if not any([isinstance(c, Tracer) for c in body.closed.consts]):
            known[key] = body
    return body  # type: ignore[no-any-return]


def _traced(op: str, what: str, fun: Callable[..., Any], tree: TreeDef,
            avals: Sequence[ShapedArray], unpacked: bool) -> TracedBody:
    out_tree = None

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree
        given = tree_unflatten(tree, xs)
        outs, out_tree = tree_flatten(fun(*given) if unpacked else fun(given))
        return [operand(f"the result of {what} in {op}", x, i) for i, x in enumerate(outs)]

    name = getattr(fun, "__name__", what)
    return TracedBody(trace_to_jaxpr(flat, avals, DebugInfo(op, name)), out_tree)


def settled(leaves: Sequence[Value], out_avals: Sequence[ShapedArray]
            ) -> tuple[list[Value], bool]:
    """The carry with each weakly typed leaf that the body changes the type of in the dtype that the
    two promote to; and whether there are any."""
    changed = False
    new = []
    for x, out in zip(leaves, out_avals, strict=True):
        aval = get_aval(x)
        if aval.weak_type and aval is not out and aval.shape == out.shape:
            x = convert_element_type(x, dtypes.result_type(x, out))
            changed = True
        new.append(x)
    return new, changed


def check_carry(op: str, what: str, fun: Callable[..., Any], tree: TreeDef,
                avals: Sequence[ShapedArray], out_tree: TreeDef,
                out_avals: Sequence[ShapedArray]) -> None:
    """Raise TypeError unless the body gives a carry of the type it takes."""
    if out_tree is tree and all(map(is_, avals, out_avals)):
        return
    parameters = parameters_of(fun)
    root = parameters.positional[0] if parameters and parameters.positional else "carry"

    def component(path: Path) -> str:
        return f"carry component {root}{keystr(path)}" if path else f"carry {root}"

    if out_tree != tree:
        _raise(f"{op} body function carry input and carry output must have the same pytree "
               "structure",
               tree_differences(lambda path: f"the input {component(path)}",
                                lambda path: "the corresponding component of the carry output",
                                tree, out_tree),
               f"({what}) so that the carry output has the same pytree structure as the carry "
               "input")
    wrong = type_differences(lambda path: f"the input {component(path)}",
                             lambda path: "the corresponding output carry component",
                             tree, avals, out_avals)
    if wrong:
        _raise(f"{op} body function carry input and carry output must have equal types", wrong,
               f"({what}) so that all output types match the corresponding input types")


def _raise(what: str, differences: list[str], cure: str) -> NoReturn:
    raise TypeError(f"{what}, but they differ:\n\n{in_full(differences)}\n\nRevise the function "
                    f"{cure}.")
