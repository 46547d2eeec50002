"""`custom_linear_solve`: a solver of linear equations, differentiated by what it solves.

From A x = b follows A dx = db - dA x: a derivative is another solve of the same equation, and its
transpose one of the transposed equation. The solver itself is never differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.records import Record
from pyjx.engine.axes import at_front
from pyjx.engine.batching import BatchTrace
from pyjx.engine.subjaxprs import (
    Places,
    batch_jaxpr,
    fixpoint,
    in_front,
    jvp_jaxpr,
    linear_flags,
    nonzero_flags,
    selected,
    with_zeros,
)
from pyjx.engine.tangents import UndefinedPrimal, Zero, add_tangents, instantiate
from pyjx.engine.types import Dims, Flags, Operand, Tangents, TreeDef, Values
from pyjx.lax.common import operand
from pyjx.lax.defined import DefinedValue
from pyjx.lax.elementwise import neg
from pyjx.lax.traced_functions import TracedFunction, trace_function
from pyjx.transforms.linearize import linear_transpose
from pyjx.tree_util import tree_flatten, tree_unflatten

# -- the function ----------------------------------------------------------------------------------


def custom_linear_solve(matvec: Callable[[Any], Any], b: Any,
                        solve: Callable[[Callable[[Any], Any], Any], Any],
                        transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
                        symmetric: bool = False, has_aux: bool = False) -> Any:
    """The x with `matvec(x) == b` that `solve(matvec, b)` finds, with derivatives of that equation.

    `solve` may hold anything, such as a `while_loop`, as it is not differentiated. That x is the
    solution is not checked.

    Args:
      matvec: a linear function from values like `b` to values like `b`.
      b: pytree of arrays, the right-hand side.
      solve: gives, for a linear function and a right-hand side, the solution.
      transpose_solve: the same for the transpose of `matvec`; reverse mode needs it.
      symmetric: whether `matvec` is its own transpose; then `solve` serves for both.
      has_aux: whether the solvers give a pair of the solution and anything else, which is returned
        too and has no derivative.

    Raises:
      TypeError: an argument is no function, or a result has another structure than `b`.
      ValueError: a result has other shapes than `b`, or is no pair where one is expected.

    >>> import pyjx as jax
    >>> solve = lambda matvec, b: b / matvec(1.0)
    >>> f = lambda a, b: jax.lax.custom_linear_solve(lambda x: a * x, b, solve, solve)
    >>> float(f(4.0, 2.0)), float(jax.grad(f)(4.0, 2.0))
    (0.5, -0.125)
    """
    given = {"matvec": matvec, "solve": solve}
    if transpose_solve is not None:
        given["transpose_solve"] = transpose_solve
    elif symmetric:
        transpose_solve = solve
    for name, fun in given.items():
        if not callable(fun):
            raise TypeError(f"custom_linear_solve: {name} must be callable, got {fun!r}.")
    leaves, tree = tree_flatten(b)
    leaves = [operand("custom_linear_solve (b)", x, i) for i, x in enumerate(leaves)]
    like = _RightHandSide(leaves, tree)
    programs: list[ClosedJaxpr | None] = [like.trace("matvec", matvec, False).closed, None]
    solved = like.trace("solve", partial(solve, matvec), has_aux)
    programs += [solved.closed, None]
    if transpose_solve is not None:
        vecmat = matvec
        programs[1] = programs[0]
        if not symmetric:
            transposed = linear_transpose(matvec, tree_unflatten(tree, leaves))
            vecmat = lambda x: transposed(x)[0]  # noqa: E731
            programs[1] = like.trace("vecmat", vecmat, False).closed
        programs[3] = like.trace("transpose_solve", partial(transpose_solve, vecmat),
                                 has_aux).closed
    outs = _solve.bind(_Four(*programs), 0, leaves)
    return tree_unflatten(solved.out_tree, outs)


class _RightHandSide:
    """The type of b, which all functions of a linear equation take and give."""

    def __init__(self, leaves: Sequence[Any], tree: TreeDef) -> None:
        self.avals = list(map(get_aval, leaves))
        self.tree = tree

    def trace(self, name: str, fun: Callable[[Any], Any], has_aux: bool) -> TracedFunction:
        """The program of a function, whose result has been checked."""
        body = trace_function("custom_linear_solve", name, fun, self.tree, self.avals)
        tree = body.out_tree
        if has_aux:
            tree = solution_tree("custom_linear_solve", name, tree)
        shapes = [a.shape for a in body.closed.out_avals[:tree.num_leaves]]
        wanted = [a.shape for a in self.avals]
        if shapes != wanted:
            raise ValueError(f"custom_linear_solve: {name}() output shapes must match b, got "
                             f"{shapes} and {wanted}")
        check_tree("custom_linear_solve", name, "b", tree, self.tree)
        return body


def solution_tree(op: str, name: str, tree: TreeDef) -> Any:
    """The tree of the solution in that of a pair of the solution and something else."""
    children = tree.children()
    if len(children) != 2 or tree.node_data() is None:
        raise ValueError(f"{op}: {name}() produced a pytree with structure {tree}, but a pytree "
                         "tuple with auxiliary output was expected because has_aux was set to "
                         "True.")
    return children[0]


def check_tree(op: str, name: str, expected_name: str, tree: TreeDef, expected: TreeDef) -> None:
    """Raise TypeError unless the tree of a function's result is the expected one."""
    if tree != expected:
        raise TypeError(f"{op}: {name}() output pytree structure must match {expected_name}, got "
                        f"{tree} and {expected}.")


# -- the primitive ---------------------------------------------------------------------------------


class _Four(Record):
    """The programs of the functions; all take what any of them closes over, and b."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any


def _jvp(primals: Values, tangents: Tangents, *, num_consts: int, jaxprs: Any) -> Any:
    programs, consts, rhs = _Four(*jaxprs), primals[:num_consts], tangents[num_consts:]
    n = len(rhs)
    x = linear_solve_p.bind(*primals, num_consts=num_consts, jaxprs=jaxprs)
    nonzero = nonzero_flags(tangents[:num_consts])
    if any(nonzero):
        pushed = jvp_jaxpr(programs.matvec, nonzero + (False,) * n)
        outs = jaxpr_as_fun(pushed.jaxpr)(
            *consts, *x[:n], *selected(tangents[:num_consts], nonzero))
        changes = with_zeros(outs[n:], pushed.nonzero, programs.matvec.out_avals)
        rhs = [t if type(change) is Zero else add_tangents(t, neg(change))
               for t, change in zip(rhs, changes, strict=True)]
    out_tangents: list[Any] = [Zero.of_primal(y) for y in x]
    if any(nonzero_flags(rhs)):
        out_tangents[:n] = _solve.bind(
            programs, num_consts, [*consts, *map(instantiate, rhs)])[:n]
    return x, out_tangents


def _transpose(cts: Tangents, *operands: Operand, num_consts: int, jaxprs: Any) -> list[Any]:
    matvec, vecmat, solve, transpose_solve = jaxprs
    consts, b = operands[:num_consts], operands[num_consts:]
    if transpose_solve is None:
        raise TypeError("transpose_solve required for backwards mode automatic differentiation of "
                        "custom_linear_solve")
    if any(linear_flags(consts)) or any(nonzero_flags(cts[len(b):])):
        raise NotImplementedError("custom_linear_solve is transposed as a function of b alone, "
                                  "without auxiliary results.")
    outs = _solve.bind((vecmat, matvec, transpose_solve, solve), num_consts,
                       [*consts, *map(instantiate, cts[:len(b)])])
    return [None] * num_consts + [
        ct if type(x) is UndefinedPrimal else None for x, ct in zip(b, outs, strict=False)]


def _batch(trace: BatchTrace, operands: Values, dims: Dims, *, num_consts: int, jaxprs: Any
           ) -> Any:
    """Solutions are batched where right-hand sides are, as each is the other's transposed one."""
    axis, n = trace.axis, len(operands) - num_consts
    own = in_front([d is not None for d in dims[:num_consts]])

    def out_dims(program: ClosedJaxpr, flags: Flags) -> Places:
        return batch_jaxpr(program, own + in_front(flags), axis).dims

    def grow(flags: Flags) -> list[bool]:
        each = [out_dims(p, flags)[:n] for p in jaxprs if p is not None]
        return [any([d is not None for d in ds]) for ds in zip(*each, strict=True)]

    flags = fixpoint(grow, [d is not None for d in dims[num_consts:]])
    b = in_front(flags)
    outs = [None if p is None else b + in_front([d is not None for d in out_dims(p, flags)[n:]])
            for p in jaxprs]
    batched = [None if p is None else batch_jaxpr(p, own + b, axis, places).jaxpr
               for p, places in zip(jaxprs, outs, strict=True)]
    values = [x if place is None else at_front(x, d, axis)
              for x, d, place in zip(operands, dims, own + b, strict=True)]
    return _solve.bind(batched, num_consts, values), _Four(*outs).solve


_solve = DefinedValue("custom_linear_solve", _Four, jvp=_jvp, transpose=_transpose,
                      batch_axis=_batch)
linear_solve_p = _solve.primitive
