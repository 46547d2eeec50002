"""`while_loop`: repeats a body for as long as a condition holds.

It has forward-mode derivatives and batching. Reverse mode would need the carry of every iteration,
whose number is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyjx import configuration
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.derived import derived
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import jaxpr_as_fun, trace_to_jaxpr
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.axes import at_front, broadcast_in_dim
from pyjx.engine.batching import BatchTrace
from pyjx.engine.linearize import LinearTracer
from pyjx.engine.subjaxprs import (
    BatchedJaxpr,
    Places,
    batch_jaxpr,
    consts_as_inputs,
    fixpoint,
    jvp_jaxpr,
    nonzero_flags,
    selected,
    with_inputs,
    with_zeros,
    without_tracers,
)
from pyjx.engine.tangents import Zero, instantiate
from pyjx.engine.types import Dims, Operand, Params, Tangent, Tangents, Value, Values
from pyjx.lax.carries import check_carry, settled, trace_body
from pyjx.lax.compare import select
from pyjx.lax.nary import operand
from pyjx.lax.reductions import reduce_or
from pyjx.tree_util import tree_flatten, tree_unflatten, treedef_is_leaf


@api_boundary
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
               ) -> Any:
    """`val = body_fun(val)` for as long as `cond_fun(val)` holds, starting from `init_val`.

    Args:
      cond_fun: gives a boolean scalar.
      body_fun: gives a value with the structure, shapes and dtypes of its argument.
      init_val: pytree of arrays.

    Components of `init_val` that are Python scalars take the types that the body gives them.

    Raises:
      TypeError: the condition is no boolean scalar, or the body changes a type.

    >>> import pyjx as jax
    >>> int(jax.lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3))
    192
    """
    if not callable(cond_fun) or not callable(body_fun):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    if configuration.disable_jit.value:
        while cond_fun(init_val):
            init_val = body_fun(init_val)
        return init_val
    leaves, tree = tree_flatten(init_val)
    leaves = [operand("while_loop (init_val)", x, i) for i, x in enumerate(leaves)]
    avals = list(map(get_aval, leaves))
    body, out_tree = trace_body("while_loop", "body_fun", body_fun, tree, avals)
    if out_tree == tree:
        leaves, changed = settled(leaves, body.out_avals)
        if changed:
            avals = list(map(get_aval, leaves))
            body, out_tree = trace_body("while_loop", "body_fun", body_fun, tree, avals)
    check_carry("while_loop", "body_fun", body_fun, tree, avals, out_tree, body.out_avals)
    cond, cond_tree = trace_body("while_loop", "cond_fun", cond_fun, tree, avals)
    _check_cond(cond_tree, cond.out_avals)
    outs = while_p.bind(
        *cond.consts, *body.consts, *leaves,
        cond_jaxpr=consts_as_inputs(cond), cond_nconsts=len(cond.consts),
        body_jaxpr=consts_as_inputs(body), body_nconsts=len(body.consts),
    )
    return tree_unflatten(tree, outs)


def _check_cond(tree: Any, avals: Sequence[ShapedArray]) -> None:
    if not treedef_is_leaf(tree) or len(avals) != 1:  # None is a leaf of no values
        raise TypeError("while_loop: cond_fun must return a boolean scalar, but got pytree "
                        f"{tree}.")
    if avals[0].shape != () or avals[0].dtype != np.bool_:
        raise TypeError("while_loop: cond_fun must return a boolean scalar, but got output type(s) "
                        f"{list(avals)}.")


# -- the primitive ---------------------------------------------------------------------------------


class _Parts(NamedTuple):
    """What a while equation has one entry of each for: an operand, a tangent or a dim."""

    cond_consts: list[Any]
    body_consts: list[Any]
    carry: list[Any]


def _parts(xs: Values, params: Params) -> _Parts:
    a = params["cond_nconsts"]
    b = a + params["body_nconsts"]
    return _Parts(list(xs[:a]), list(xs[a:b]), list(xs[b:]))


def _bind_while(cond: ClosedJaxpr, cond_consts: Sequence[Any], body: ClosedJaxpr,
                body_consts: Sequence[Any], carry: Sequence[Any]) -> list[Any]:
    cond, more_cond = without_tracers(cond)
    body, more_body = without_tracers(body)
    return while_p.bind(  # type: ignore[no-any-return]
        *more_cond, *cond_consts, *more_body, *body_consts, *carry,
        cond_jaxpr=cond, cond_nconsts=len(more_cond) + len(cond_consts),
        body_jaxpr=body, body_nconsts=len(more_body) + len(body_consts),
    )


def _while_shape(*avals: ShapedArray, cond_jaxpr: ClosedJaxpr, cond_nconsts: int,
                 body_jaxpr: ClosedJaxpr, body_nconsts: int) -> list[Any]:
    return list(avals[cond_nconsts + body_nconsts:])


def _while_jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
    """The tangents of the carry are carried along with it."""
    values, given = _parts(primals, params), _parts(tangents, params)
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    const_nonzero = nonzero_flags(given.body_consts)
    nonzero = fixpoint(lambda flags: jvp_jaxpr(body, const_nonzero + flags).nonzero,
                       nonzero_flags(given.carry))
    if not any(nonzero):
        outs = while_p.bind(*primals, **params)
        return outs, [Zero.of_primal(x) for x in outs]
    pushed = jvp_jaxpr(body, const_nonzero + nonzero, nonzero).jaxpr
    const_moving = selected(given.body_consts, const_nonzero)
    moving = [instantiate(t) for t in selected(given.carry, nonzero)]
    m, n, k = len(values.body_consts), len(values.carry), len(const_moving)
    # from (consts, carry, tangents of consts, of carry) to (consts, their tangents, carry, ...)
    order = (*range(m), *range(m + n, m + n + k), *range(m, m + n),
             *range(m + n + k, m + n + k + len(moving)))
    outs = _bind_while(
        with_inputs(cond, (*range(len(cond.in_avals)), *map(get_aval, moving))),
        values.cond_consts, with_inputs(pushed, order), [*values.body_consts, *const_moving],
        [*values.carry, *moving])
    out_tangents = with_zeros(outs[n:], nonzero, list(map(get_aval, values.carry)))
    if any([isinstance(t, LinearTracer) for t in (*moving, *const_moving)]):
        # under linearization the carry is computed now, only the tangents are recorded
        return while_p.bind(*primals, **params), out_tangents
    return outs[:n], out_tangents


def _while_transpose(cts: Tangents, *operands: Operand, **params: Any) -> Tangents:
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "dynamic start/stop values. Use lax.scan, or lax.fori_loop with bounds that are known when "
        "it is traced, or forward mode (jax.jvp, jax.jacfwd)."
    )


def _while_batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any
                 ) -> tuple[Values, Dims]:
    """Components that an iteration batches are batched from the start.

    With a batched condition the loop goes on while any example does, and the examples that are
    done keep their values.
    """
    axis = trace.axis
    size = axis.size
    values, given = _parts(operands, params), _parts(dims, params)
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    cond_dims, body_dims = _in_front(given.cond_consts), _in_front(given.body_consts)

    def batched_cond(flags: Sequence[bool]) -> BatchedJaxpr:
        return batch_jaxpr(cond, (*cond_dims, *_dims(flags)), axis)

    def grow(flags: Sequence[bool]) -> list[bool]:
        each = batched_cond(flags).dims[0] is not None
        made = batch_jaxpr(body, (*body_dims, *_dims(flags)), axis).dims
        return [d is not None or each for d in made]

    flags = fixpoint(grow, [d is not None for d in given.carry])
    places = _dims(flags)
    new_cond, cond_out = batched_cond(flags)
    new_body = batch_jaxpr(body, (*body_dims, *places), axis, places).jaxpr
    cond_consts = [x if d is None else at_front(x, d, size)
                   for x, d in zip(values.cond_consts, given.cond_consts, strict=True)]
    body_consts = [x if d is None else at_front(x, d, size)
                   for x, d in zip(values.body_consts, given.body_consts, strict=True)]
    carry = [at_front(x, d, size) if flag else x
             for x, d, flag in zip(values.carry, given.carry, flags, strict=True)]
    if cond_out[0] is not None:
        body_consts = [*cond_consts, *body_consts]
        new_body = _keeping_what_is_done(new_cond, new_body, len(cond_consts), len(carry))
        new_cond = _while_any(new_cond)
    return _bind_while(new_cond, cond_consts, new_body, body_consts, carry), places


def _in_front(dims: Sequence[int | None]) -> Places:
    return tuple([None if d is None else 0 for d in dims])


def _dims(flags: Sequence[bool]) -> Places:
    return tuple([0 if flag else None for flag in flags])


@derived
def _while_any(cond: ClosedJaxpr) -> ClosedJaxpr:
    """Whether a condition holds for one of a batch of examples."""
    return trace_to_jaxpr(lambda *xs: [reduce_or(jaxpr_as_fun(cond)(*xs)[0], (0,))], cond.in_avals)


@derived
def _keeping_what_is_done(cond: ClosedJaxpr, body: ClosedJaxpr, n_cond: int, n_carry: int
                          ) -> ClosedJaxpr:
    """The body, from (constants of the condition, its own, carry), where the condition holds; the
    old carry elsewhere."""

    def fun(*args: Value) -> list[Any]:
        carry = args[len(args) - n_carry:]
        holding = jaxpr_as_fun(cond)(*args[:n_cond], *carry)[0]
        outs = jaxpr_as_fun(body)(*args[n_cond:])
        return [select(broadcast_in_dim(holding, get_aval(old).shape, (0,)), new, old)
                for new, old in zip(outs, carry, strict=True)]

    return trace_to_jaxpr(fun, [*cond.in_avals[:n_cond], *body.in_avals])


while_p = register(Primitive(
    "while", shape_rule=_while_shape, multiple_results=True, cached=False, jvp=_while_jvp,
    batch_axis=_while_batch, transpose=_while_transpose,
    effects=lambda params: params["cond_jaxpr"].effects | params["body_jaxpr"].effects,
))
