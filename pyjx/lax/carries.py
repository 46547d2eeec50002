"""Carries of loops: tracing a body over one, settling its types, and what to say if they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.types import TreeDef, Value
from pyjx.lax.convert import convert_element_type
from pyjx.lax.nary import operand
from pyjx.runtime.signature import parameters_of
from pyjx.tree_util import (
    flatten_one_level_with_keys,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_unflatten,
)


class TracedBody(NamedTuple):
    """A function of a carry, traced."""

    closed: ClosedJaxpr
    out_tree: TreeDef


def trace_body(op: str, what: str, fun: Callable[[Any], Any], tree: Any,
               avals: Sequence[ShapedArray]) -> TracedBody:
    """`fun`, which is the `what` of the operation `op`, on a carry of these types."""
    out_tree = None

    def flat(*xs: Value) -> list[Any]:
        nonlocal out_tree
        outs, out_tree = tree_flatten(fun(tree_unflatten(tree, xs)))
        return [operand(f"the result of {what} in {op}", x, i) for i, x in enumerate(outs)]

    name = getattr(fun, "__name__", what)
    return TracedBody(trace_to_jaxpr(flat, avals, DebugInfo(op, name)), out_tree)


def settled(leaves: Sequence[Any], out_avals: Sequence[ShapedArray]) -> tuple[list[Any], bool]:
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


def check_carry(op: str, fun: Callable[[Any], Any], tree: Any, avals: Sequence[ShapedArray],
                out_tree: TreeDef, out_avals: Sequence[ShapedArray]) -> None:
    """Raise TypeError unless the body gives a carry of the type it takes."""
    root = _carry_name(fun)
    if out_tree != tree:
        inputs, outputs = [tree_unflatten(t, [_leaf] * t.num_leaves) for t in (tree, out_tree)]
        _raise(f"{op} body function carry input and carry output must have the same pytree "
               "structure", list(_tree_differences(root, (), inputs, outputs)),
               "so that the carry output has the same pytree structure as the carry input")
    paths = tree_flatten_with_path(tree_unflatten(tree, list(range(tree.num_leaves))))[0]
    wrong = []
    for (path, _), aval, out in zip(paths, avals, out_avals, strict=True):
        if not aval.same_type(out):
            component = f"carry component {root}{keystr(path)}" if path else f"carry {root}"
            kinds = [kind for kind, a, b in (("dtypes", aval.dtype, out.dtype),
                                             ("shapes", aval.shape, out.shape)) if a != b]
            wrong.append(
                f"the input {component} has type {aval.str_short()} but the corresponding output "
                f"carry component has type {out.str_short()}, so the {' and the '.join(kinds)} do "
                "not match")
    if wrong:
        _raise(f"{op} body function carry input and carry output must have equal types", wrong,
               "so that all output types match the corresponding input types")


def _carry_name(fun: Callable[[Any], Any]) -> str:
    parameters = parameters_of(fun)
    return parameters.positional[0] if parameters and parameters.positional else "carry"


_leaf = object()  # in the place of a leaf


def _tree_differences(root: str, path: tuple[Any, ...], a: Any, b: Any) -> Any:
    """A sentence for each place where two trees differ."""
    place = f"carry component {root}{keystr(path)}" if path else f"carry {root}"
    if type(a) is not type(b):
        kinds = ["pytree leaf" if x is _leaf else f"{type(x)}" for x in (a, b)]
        yield (f"the input {place} is a {kinds[0]} but the corresponding component of the carry "
               f"output is a {kinds[1]}, so their Python types differ")
        return
    if a is _leaf:
        return
    ours, theirs = [dict(flatten_one_level_with_keys(x)[0]) for x in (a, b)]
    if len(ours) != len(theirs):
        counts = [f"{len(x)} child{'ren' if len(x) != 1 else ''}" for x in (ours, theirs)]
        keys = ""
        if isinstance(a, dict):
            keys = f", with the symmetric difference of key sets: {set(a) ^ set(b)}"
        yield (f"the input {place} is a {type(a)} with {counts[0]} but the corresponding component "
               f"of the carry output is a {type(b)} with {counts[1]}, so the numbers of children "
               f"do not match{keys}")
        return
    if ours.keys() != theirs.keys():
        yield (f"the input {place} is a {type(a)} whose children are {list(map(str, ours))} but "
               f"those of the carry output are {list(map(str, theirs))}")
        return
    for key in ours:
        yield from _tree_differences(root, (*path, key), ours[key], theirs[key])


def _raise(what: str, differences: list[str], cure: str) -> None:
    if len(differences) == 1:
        details = f"T{differences[0][1:]}."
    else:
        details = "\n".join([f"  * {d};" for d in differences])[:-1] + "."
    raise TypeError(
        f"{what}, but they differ:\n\n{details}\n\nRevise the function (body_fun) {cure}.")
