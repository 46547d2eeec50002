"""Solvers of equations, differentiated by what they solve: `custom_linear_solve`, `custom_root`.

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
from pyjx.core.prefixes import two_structures
from pyjx.core.primitive import ON_PURPOSE
from pyjx.core.records import Record
from pyjx.engine.axes import at_front, moveaxis
from pyjx.engine.batching import BatchTrace
from pyjx.engine.calls import standing_for
from pyjx.engine.holders import with_all_consts
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
from pyjx.lax.agreement import TracedFunction, trace_function
from pyjx.lax.common import operands_in
from pyjx.lax.elementwise import neg
from pyjx.transforms.linearize import linear_transpose, linearize
from pyjx.tree_util import tree_structure, tree_unflatten

# -- values that functions define ------------------------------------------------------------------

# An equation of such a primitive holds the programs of the functions; its operands are what these
# close over, which all of them take, and then the operands of the one that is run.


class DefinedValue:
    """A primitive that holds functions.

    Args:
      name: of the primitive.
      functions: a record's type, whose fields are the functions; `solve` is the one that is run. A
        function may be None.
      rules: those that depend on what the functions mean.
    """

    def __init__(self, name: str, functions: Any, **rules: Any) -> None:
        self.functions = functions
        self.primitive = standing_for(name, lambda params: functions(*params["jaxprs"]).solve,
                                      own_rules=True, **rules)

    def bind(self, programs: Any, num_consts: int, operands: Sequence[Any]) -> list[Any]:
        """The results for operands of which so many are what the programs close over; what they
        have for constants comes before these."""
        held, consts = with_all_consts([p for p in programs if p is not None])
        given = iter(held)
        return self.primitive.bind(  # type: ignore[no-any-return]
            *consts, *operands, num_consts=len(consts) + num_consts,
            jaxprs=tuple([None if p is None else next(given) for p in programs]))


# -- custom_linear_solve ---------------------------------------------------------------------------


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
    leaves, tree = operands_in("custom_linear_solve (b)", b)
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
                        + two_structures("{} and {}", tree, expected) + ".")


# -- its primitive, linear equations ---------------------------------------------------------------


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
        out_tangents[:n] = _solve.bind(programs, num_consts, [*consts, *map(instantiate, rhs)])[:n]
    return x, out_tangents


def _transpose(cts: Tangents, *operands: Operand, num_consts: int, jaxprs: Any) -> list[Any]:
    matvec, vecmat, solve, transpose_solve = jaxprs
    consts, b = operands[:num_consts], operands[num_consts:]
    if transpose_solve is None:
        raise TypeError("transpose_solve required for backwards mode automatic differentiation of "
                        "custom_linear_solve. Give it, or symmetric=True where matvec is its own "
                        "transpose.")
    if any(linear_flags(consts)) or any(nonzero_flags(cts[len(b):])):
        raise NotImplementedError("custom_linear_solve is transposed as a function of b alone, "
                                  "without auxiliary results.")
    outs = _solve.bind((vecmat, matvec, transpose_solve, solve), num_consts,
                       [*consts, *map(instantiate, cts[:len(b)])])
    return [None] * num_consts + [
        ct if type(x) is UndefinedPrimal else None for x, ct in zip(b, outs, strict=False)]


def _batch(trace: BatchTrace, operands: Values, dims: Dims, *, num_consts: int, jaxprs: Any) -> Any:
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
                      batch_axis=_batch, derivative=ON_PURPOSE)
linear_solve_p = _solve.primitive


# -- nonlinear equations ---------------------------------------------------------------------------

# From f(x, p) = 0 follows f_x dx + f_p dp = 0 (the implicit function theorem), so a derivative is
# the solution of a linear equation. The solver itself is never differentiated.

# -- custom_root -----------------------------------------------------------------------------------


def custom_root(f: Callable[[Any], Any], initial_guess: Any,
                solve: Callable[[Callable[[Any], Any], Any], Any],
                tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
                has_aux: bool = False) -> Any:
    """The root of `f` that `solve(f, initial_guess)` finds, with derivatives by the implicit
    function theorem.

    The derivatives are with respect to what `f` closes over. That the result is a root is not
    checked.

    Args:
      f: from a value like `initial_guess` to one of the same structure.
      initial_guess: pytree of arrays.
      solve: gives, for a function and a guess, a root.
      tangent_solve: gives, for a linear function g and a value y, the x with `g(x) == y`; g is the
        derivative of `f` at the root. For scalars that is `lambda g, y: y / g(1.0)`.
      has_aux: whether `solve` gives a pair of the root and anything else, which is returned too
        and has no derivative.

    Raises:
      TypeError: an argument is no function, or a result has another structure than the guess.
      ValueError: the result of `solve` is no pair where one is expected.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> def root_of(a):
    ...     return jax.lax.custom_root(lambda x: x * x - a, 1.0, lambda f, x: jnp.sqrt(a),
    ...                                lambda g, y: y / g(1.0))
    ...
    >>> float(root_of(4.0)), float(jax.grad(root_of)(4.0))
    (2.0, 0.25)
    """
    for name, fun in (("f", f), ("solve", solve), ("tangent_solve", tangent_solve)):
        if not callable(fun):
            raise TypeError(f"custom_root: {name}: Expected a callable value, got {fun!r}")
    leaves, tree = operands_in("custom_root (initial_guess)", initial_guess)
    avals = list(map(get_aval, leaves))
    body = trace_function("custom_root", "f", f, tree, avals)
    check_tree("custom_root", "f", "initial_guess", body.out_tree, tree)
    solved = trace_function("custom_root", "solve", partial(solve, f), tree, avals)
    root_tree = solution_tree("custom_root", "solve", solved.out_tree) if has_aux else (
        solved.out_tree)
    check_tree("custom_root", "solve", "initial_guess", root_tree, tree)
    roots = solved.closed.out_avals[:len(leaves)]  # may be of other types than the guess
    if roots != avals:
        body = trace_function("custom_root", "f", f, tree, roots)
    pair = tree_structure((tree_unflatten(tree, leaves),) * 2)
    tangents = [a.to_tangent_aval() for a in body.closed.out_avals]
    tangent = trace_function(
        "custom_root", "tangent_solve", lambda x, y: tangent_solve(linearize(f, x)[1], y), pair,
        [*roots, *tangents], unpacked=True)
    check_tree("custom_root", "tangent_solve", "x", tangent.out_tree, tree)
    outs = _root.bind((body.closed, solved.closed, tangent.closed), 0, leaves)
    return tree_unflatten(solved.out_tree, outs)


# -- its primitive, nonlinear equations ------------------------------------------------------------


class _Three(Record):
    """The programs of the functions. They take what any of them closes over, and then `f` a root,
    `solve` a guess, `tangent_solve` a root and a tangent."""

    f: Any
    solve: Any
    tangent_solve: Any


def _root_jvp(primals: Values, tangents: Tangents, *, num_consts: int, jaxprs: Any) -> Any:
    programs, consts, n = _Three(*jaxprs), primals[:num_consts], len(primals) - num_consts
    outs = custom_root_p.bind(*primals, num_consts=num_consts, jaxprs=jaxprs)
    out_tangents: list[Any] = [Zero.of_primal(x) for x in outs]
    nonzero = nonzero_flags(tangents[:num_consts])
    if any(nonzero):
        root = outs[:n]
        pushed = jvp_jaxpr(programs.f, nonzero + (False,) * n)
        changes = jaxpr_as_fun(pushed.jaxpr)(
            *consts, *root, *selected(tangents[:num_consts], nonzero))[n:]
        changes = with_zeros(changes, pushed.nonzero, programs.f.out_avals)
        if any(pushed.nonzero):
            _check_tangents(programs.tangent_solve, root)
            out_tangents[:n] = map(neg, jaxpr_as_fun(programs.tangent_solve)(
                *consts, *root, *map(instantiate, changes)))
    return outs, out_tangents


def _check_tangents(tangent_solve: ClosedJaxpr, root: Values) -> None:
    """Raise TypeError unless what a function solves for is of the type of the root's tangent."""
    for found, x in zip(tangent_solve.out_avals, root, strict=True):
        wanted = get_aval(x).to_tangent_aval()
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            raise TypeError(
                f"custom_root: {tangent_solve.debug_info.func_name}, the function tangent_solve, "
                f"must return the type of its argument y, expected {wanted.str_short()}, got "
                f"{found.str_short()}.")


def _root_batch(trace: BatchTrace, operands: Values, dims: Dims, *, num_consts: int, jaxprs: Any
                ) -> Any:
    """The whole root is batched."""
    axis, programs, n = trace.axis, _Three(*jaxprs), len(operands) - num_consts
    values = [x if d is None else moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True)]
    places = in_front([d is not None for d in dims])
    own, roots = places[:num_consts], (0,) * n
    aux = in_front([d is not None for d in batch_jaxpr(programs.solve, places, axis).dims[n:]])
    batched = [batch_jaxpr(program, ins, axis, outs).jaxpr for program, ins, outs in (
        (programs.f, own + roots, roots), (programs.solve, places, roots + aux),
        (programs.tangent_solve, own + roots + roots, roots))]
    return _root.bind(batched, num_consts, values), roots + aux


_root = DefinedValue("custom_root", _Three, jvp=_root_jvp, batch_axis=_root_batch)
custom_root_p = _root.primitive
