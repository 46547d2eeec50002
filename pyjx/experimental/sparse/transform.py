"""`sparsify`: functions of dense arrays as functions of sparse ones.

The function is traced on arrays of the sparse ones' shapes, and the program is run with the sparse
arrays in their places: where an operand is sparse the operation's rule is applied (`rules`), else
the operation itself. With `use_tracer` the function itself is run, on tracers that stand for sparse
arrays, and its operations come to the same rules.

What holds programs (loops, branches, calls) becomes the same operation on the buffers of the sparse
arrays, which are pytrees: its programs are run in the same way while it is traced.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.avals import AbstractValue, ShapedArray, get_aval
from pyjx.core.derived import derived
from pyjx.core.evaluation import walk
from pyjx.core.explicit import without_dim
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn
from pyjx.core.nested import program_of
from pyjx.core.primitive import Primitive
from pyjx.core.trace import Trace, Tracer, new_level, trace_to_jaxpr
from pyjx.engine.batching import may_close_over_values
from pyjx.engine.functions import check_values, name_of
from pyjx.engine.subjaxprs import live_inputs, selected
from pyjx.experimental.sparse.formats import function, stretched
from pyjx.experimental.sparse.rules import (
    RULES,
    TAKES_STRETCHED,
    Stretched,
    is_sparse,
    refuse,
    whole,
)
from pyjx.tree_util import PyTreeDef, tree_flatten, tree_leaves, tree_unflatten

ArrayOrSparse = Any

__all__ = ["SparseTrace", "SparseTracer", "sparsify"]


@function
def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """`f` as a function that takes BCOO and BCSR arrays in place of dense ones.

    Results are sparse where the operations keep arrays sparse.

    Args:
      f: function of pytrees of arrays.
      use_tracer: whether `f` itself runs on tracers of sparse arrays, in place of the program that
        tracing it gives.

    Returns:
      A function of the same arguments, some of which may be sparse; `f` gets keyword arguments as
      they are unless there are sparse arrays in them. It raises NotImplementedError where an
      operation on a sparse operand would have a dense result, or has no rule.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = 2 * sparse.eye(3)
    >>> sparse.sparsify(lambda M, v: jnp.sin(M) @ v)(M, jnp.zeros(3)).tolist()
    [0.0, 0.0, 0.0]
    """
    run = _run_on_tracers if use_tracer else _run_program

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return run(f, args, kwargs)

    return wrapped


def _aval(x: Any) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype) if is_sparse(x) else get_aval(x)


def _run_program(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    named = {name: x for name, x in kwargs.items()
             if any(map(is_sparse, tree_leaves(x, is_leaf=is_sparse)))}
    f = functools.partial(f, **{name: x for name, x in kwargs.items() if name not in named})
    leaves, in_tree = tree_flatten((args, named), is_leaf=is_sparse)
    check_values([x for x in leaves if not is_sparse(x)])
    out_tree: Any = None

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree
        given, keywords = tree_unflatten(in_tree, xs)
        outs, out_tree = tree_flatten(f(*given, **keywords), is_leaf=is_sparse)
        check_values(outs)
        return outs

    closed = trace_to_jaxpr(flat, [_aval(x) for x in leaves], DebugInfo("sparsify", name_of(f)))
    outs = eval_sparse(closed.jaxpr, closed.consts, leaves)
    return tree_unflatten(out_tree, [
        x if is_sparse(x) or isinstance(x, Tracer) else jnp.asarray(x) for x in map(whole, outs)])


def eval_sparse(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[ArrayOrSparse]
                ) -> list[ArrayOrSparse]:
    """The results of a program, of whose arguments some are sparse."""
    return walk(jaxpr, consts, args, lambda eqn, operands: _apply(
        eqn.primitive, operands, eqn.params, eqn))


def _apply(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any],
           eqn: JaxprEqn | None = None) -> list[Any]:
    """The results of an operation."""
    sparse = any(map(is_sparse, operands))
    if primitive is lax.broadcast_in_dim_p and not sparse and \
            math.prod(params["shape"]) > math.prod(jnp.shape(whole(operands[0]))):
        return [Stretched(whole(operands[0]), params)]
    if not (sparse and primitive in TAKES_STRETCHED):
        operands = list(map(whole, operands))
    if not sparse:
        out = primitive.bind(*operands, **params)
        return list(out) if primitive.multiple_results else [out]
    if primitive in RULES:
        return [RULES[primitive](primitive, operands, params)]
    closed = program_of(primitive, params)
    holder = primitive.holder
    if holder.held is not None and holder.within is None and not primitive.own_rules:
        return _held(primitive, operands, params)
    if closed is None:
        refuse(primitive)
    return _run(closed, operands)


# -- use_tracer ------------------------------------------------------------------------------------


class SparseTracer(Tracer):
    """A sparse array as a function sees it.

    Args:
      trace: the interpreter.
      spvalue: the sparse array.
    """

    __slots__ = ("spvalue",)

    def __init__(self, trace: SparseTrace, *, spvalue: Any) -> None:
        self._trace = trace
        self.aval = _aval(spvalue)
        self.spvalue = spvalue

    @property
    def spenv(self) -> Any:
        """What holds the buffers: the sparse array itself."""
        return self.spvalue

    def full_lower(self) -> SparseTracer:
        return self

    def __repr__(self) -> str:
        return f"SparseTracer<{self.aval.str_short()}>"


class SparseTrace(Trace):
    """Runs operations on sparse arrays."""

    __slots__ = ()

    def value(self, x: Any) -> Any:
        """The sparse array that a tracer stands for; any other value as it is."""
        if type(x) is SparseTracer and x._trace is self:
            return x.spvalue
        self.check_outer(x)
        return x

    def join(self, x: Any) -> Any:
        return SparseTracer(self, spvalue=x) if is_sparse(x) else x

    def process(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                ) -> Any:
        if not self.alive:
            self.check_alive(operands)
        if may_close_over_values(primitive, params):
            return params["call_jaxpr"](*operands)
        outs = [self.join(x) for x in _apply(primitive, list(map(self.value, operands)), params)]
        return outs if primitive.multiple_results else outs[0]


def _run_on_tracers(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, in_tree = tree_flatten((args, kwargs), is_leaf=is_sparse)
    check_values([x for x in leaves if not is_sparse(x)])
    trace = SparseTrace()
    with new_level(trace):
        given, keywords = tree_unflatten(in_tree, list(map(trace.join, leaves)))
        outs, out_tree = tree_flatten(f(*given, **keywords), is_leaf=is_sparse)
        check_values([x for x in outs if not is_sparse(x)])
        outs = [trace.value(x) for x in outs]
    return tree_unflatten(out_tree, outs)


# -- programs in programs --------------------------------------------------------------------------


def _run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    return eval_sparse(closed.jaxpr, closed.consts, args)


def _flags(x: Any) -> tuple[bool, bool] | None:
    return (x.indices_sorted, x.unique_indices) if is_sparse(x) else None


def _with_flags(x: Any, flags: Sequence[tuple[bool, bool] | None]) -> Any:
    """A sparse array for which holds what holds in all cases."""
    if not is_sparse(x) or None in flags:
        return x
    children, aux = x.tree_flatten()
    aux = {**aux, "indices_sorted": all([f[0] for f in flags if f]),
           "unique_indices": all([f[1] for f in flags if f])}
    return x.tree_unflatten(aux, children)


def _held(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """What holds programs, on the buffers of sparse arrays, which have the roles of these. Of the
    indices of a carry is known what is before every run."""
    holder, held = primitive.holder, primitive.holder.held(params)
    head, given = operands[:held.head], list(operands[held.head:])
    first, n, behind = held.first, held.carry, held.first + held.carry
    for condition in holder.conditions(params):
        tested = selected([*head, *given[first:]], live_inputs(condition, (True,)))
        if any(map(is_sparse, [*head, *tested])):
            return eval_sparse(holder.asked_first(params).jaxpr, (), operands)
    if any(map(is_sparse, head)):
        raise NotImplementedError(f"sparse rule for {primitive} with a sparse predicate.")
    inside = [x if is_sparse(x) else a
              for x, a in zip(given, held.programs[0].in_avals, strict=True)]
    if holder.loops:
        given[behind:] = [_with_all_batches(x) if is_sparse(x) else x for x in given[behind:]]
        inside[behind:] = [_row(x) if is_sparse(x) else a
                           for x, a in zip(given[behind:], inside[behind:], strict=True)]
    while True:
        leaves, tree = tree_flatten(inside)
        made = [_sparsified(p, tree, tuple(map(_type, leaves))) for p in held.programs]
        outs = [tree_unflatten(out_tree, program.out_avals) for program, out_tree in made]
        if n:
            outs.append([*inside[first:behind], *outs[0][n:]])
        if len({tuple(map(_kind, each)) for each in outs}) > 1:
            what = "body_fun output and input" if n else "true_fun and false_fun output"
            raise TypeError(f"sparsified {what} must have same type structure, got {outs}.")
        common = [_with_flags(each[0], list(map(_flags, each)))
                  for each in zip(*outs, strict=True)]
        if list(map(_flags, common[:n])) == list(map(_flags, inside[first:behind])):
            break
        inside[first:behind] = common[:n]
    results = holder.bind(
        [program for program, _ in made], [*head, *tree_flatten(given)[0]], params,
        _roles(holder, held.ins, given, first, behind), _roles(holder, held.outs, common, 0, n))
    found = tree_unflatten(tree_flatten(common)[1], results)
    return [*found[:n], *[
        y.whole_batch(lambda _size, rows, _axis: rows, holder.times(params), 0)
        if holder.loops and is_sparse(y) else y for y in found[n:]]]


def _roles(holder: Any, roles: Sequence[Any], values: Sequence[Any], first: int, behind: int
           ) -> list[Any]:
    """The roles of the buffers of values with these roles; a component of the carry is one of the
    first such, and what goes along with it."""
    found: list[Any] = []
    for i, (role, x) in enumerate(zip(roles, values, strict=True)):
        more = len(tree_leaves(x)) - 1
        found += [role, *[holder.carried if first <= i < behind else role] * more]
    return found


def _type(x: Any) -> Any:
    return x if isinstance(x, AbstractValue) else get_aval(x)


def _kind(x: Any) -> Any:
    """What values have in common that may stand for each other."""
    avals = tuple([(a.shape, a.dtype) for a in map(_type, tree_leaves(x))])
    return type(x) if is_sparse(x) else None, avals


@derived
def _sparsified(closed: ClosedJaxpr, tree: PyTreeDef, avals: tuple[Any, ...]
                ) -> tuple[ClosedJaxpr, Any]:
    """The program on the buffers of arguments of the structure `tree`."""
    out_tree: Any = None

    def flat(*leaves: Any) -> list[Any]:
        nonlocal out_tree
        outs, out_tree = tree_flatten(_run(closed, tree_unflatten(tree, leaves)))
        return outs

    program = trace_to_jaxpr(flat, avals, closed.debug_info)
    return program, out_tree


def _with_all_batches(mat: Any) -> Any:
    """The array with each buffer of its own for each batch."""
    if not mat.n_batch:
        raise NotImplementedError("sparse rule for scan with x values.")
    children, aux = mat.tree_flatten()
    return mat.tree_unflatten(aux, [stretched(x, mat.shape[:1]) for x in children])


def _row(full: Any) -> Any:
    """One row of a sparse array that is scanned over, of types in place of buffers."""
    return full.one_of_batch(lambda buffer, _axis: without_dim(_type(buffer), 0), 0)
