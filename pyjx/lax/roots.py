"""`custom_root`: a solver of nonlinear equations, differentiated by what it solves.

From f(x, p) = 0 follows f_x dx + f_p dp = 0 (the implicit function theorem), so a derivative is the
solution of a linear equation. The solver itself is never differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.records import Record
from pyjx.engine.axes import moveaxis
from pyjx.engine.batching import BatchTrace
from pyjx.engine.subjaxprs import (
    batch_jaxpr,
    in_front,
    jvp_jaxpr,
    nonzero_flags,
    selected,
    with_zeros,
)
from pyjx.engine.tangents import Zero, instantiate
from pyjx.engine.types import Dims, Tangents, Values
from pyjx.lax.common import operand
from pyjx.lax.defined import DefinedValue
from pyjx.lax.elementwise import neg
from pyjx.lax.linear_solves import check_tree, solution_tree
from pyjx.lax.traced_functions import trace_function
from pyjx.transforms.linearize import linearize
from pyjx.tree_util import tree_flatten, tree_structure, tree_unflatten

# -- the function ----------------------------------------------------------------------------------


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
    leaves, tree = tree_flatten(initial_guess)
    leaves = [operand("custom_root (initial_guess)", x, i) for i, x in enumerate(leaves)]
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


# -- the primitive ---------------------------------------------------------------------------------


class _Three(Record):
    """The programs of the functions. They take what any of them closes over, and then `f` a root,
    `solve` a guess, `tangent_solve` a root and a tangent."""

    f: Any
    solve: Any
    tangent_solve: Any


def _jvp(primals: Values, tangents: Tangents, *, num_consts: int, jaxprs: Any) -> Any:
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
            out_tangents[:n] = map(neg, jaxpr_as_fun(programs.tangent_solve)(
                *consts, *root, *map(instantiate, changes)))
    return outs, out_tangents


def _batch(trace: BatchTrace, operands: Values, dims: Dims, *, num_consts: int, jaxprs: Any
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


_root = DefinedValue("custom_root", _Three, jvp=_jvp, batch_axis=_batch)
custom_root_p = _root.primitive
