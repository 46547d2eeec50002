"""Branches of a conditional: traced, and what to say if their results differ in type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import ShapedArray
from pyjx.core.derived import derived
from pyjx.core.differences import Path
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.primitive import vary
from pyjx.core.trace import trace_to_jaxpr
from pyjx.core.varying import NO_AXES, joined, varying_axes
from pyjx.lax.bodies import TracedBody, trace_body
from pyjx.lax.differences import in_full, tree_differences, type_differences
from pyjx.tree_util import keystr


def trace_branches(op: str, names: Sequence[str], funs: Sequence[Callable[..., Any]], tree: Any,
                   avals: Sequence[ShapedArray], varying: frozenset[Any] = NO_AXES
                   ) -> tuple[list[ClosedJaxpr], Any]:
    """The programs of the branches and the structure of their results.

    Results may be weakly typed in one branch and not in another: the first one's types are those of
    the conditional. They vary along the axes of a mesh along which those of a branch do, or the
    choice, which is `varying`.

    Raises:
      TypeError: the branches give results of different structures or types.
    """
    traced = [trace_body(op, name, fun, tree, avals, unpacked=True)
              for name, fun in zip(names, funs, strict=True)]
    order = _as_written(op, names)
    for n in order[1:]:
        _check_equal(op, (order[0], n), names, funs, traced)
    return _varying_alike([t.closed for t in traced], varying), traced[0].out_tree


def _varying_alike(branches: list[ClosedJaxpr], varying: frozenset[Any]) -> list[ClosedJaxpr]:
    axes = tuple([joined(avals) | varying
                  for avals in zip(*[b.out_avals for b in branches], strict=True)])
    if not any(axes):
        return branches
    return [b if axes == tuple(map(varying_axes, b.out_avals)) else _with_varying_results(b, axes)
            for b in branches]


@derived
def _with_varying_results(closed: ClosedJaxpr, axes: tuple[frozenset[Any], ...]) -> ClosedJaxpr:
    def fun(*args: Any) -> list[Any]:
        return list(map(vary, jaxpr_as_fun(closed)(*args), axes))

    return trace_to_jaxpr(fun, closed.in_avals, closed.debug_info)


def _as_written(op: str, names: Sequence[str]) -> Sequence[int]:
    """The branches of `cond` are kept with that of the false predicate first."""
    return (1, 0) if op == "cond" else range(len(names))


def _check_equal(op: str, pair: tuple[int, int], names: Sequence[str],
                 funs: Sequence[Callable[..., Any]], traced: Sequence[TracedBody]) -> None:
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
        cure = "all output types match"
        text = in_full(wrong)
    described = f"{a} is {_described(funs[i])}\n{b} is {_described(funs[j])}"
    raise TypeError(f"{what}\n\n{described}\n\n{text}\n\n"
                    f"Revise {a} and/or {b} so that {cure}.")


def _described(fun: Callable[..., Any]) -> str:
    """A function's name and where it was written."""
    code = getattr(fun, "__code__", None)
    if code is None:
        return f"{fun!r}"
    return f"{fun.__name__} at {code.co_filename}:{code.co_firstlineno}"
