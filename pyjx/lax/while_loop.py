"""`while_loop`: repeats a body for as long as a condition holds.

It has forward-mode derivatives and batching. Reverse mode would need the carry of every iteration,
whose number is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import Tracer, eval_jaxpr, jaxpr_as_fun, state, trace_to_jaxpr
from pyjx.engine.axes import at_front, broadcast_in_dim
from pyjx.engine.batching import batch_flat, match_axis
from pyjx.engine.calls import hoisted
from pyjx.engine.forward import jvp_flat
from pyjx.engine.linearize import LinearTracer
from pyjx.engine.tangents import Zero, instantiate
from pyjx.lax.compare import select
from pyjx.lax.convert import convert_element_type
from pyjx.lax.nary import operand
from pyjx.lax.reductions import reduce_or
from pyjx.tree_util import tree_flatten, tree_unflatten


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
               ) -> Any:
    """`val = body_fun(val)` for as long as `cond_fun(val)` holds, starting from `init_val`.

    Args:
      cond_fun: gives a boolean scalar.
      body_fun: gives a value with the structure, shapes and dtypes of its argument.
      init_val: pytree of arrays.

    Raises:
      TypeError: the condition is no boolean scalar, or the body changes a type.

    >>> import pyjx as jax
    >>> int(jax.lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3))
    192
    """
    if not callable(cond_fun) or not callable(body_fun):
        raise TypeError("lax.while_loop: cond_fun and body_fun arguments should be callable.")
    leaves, tree = tree_flatten(init_val)
    leaves = [operand("while_loop (init_val)", x, i) for i, x in enumerate(leaves)]
    avals = [get_aval(x) for x in leaves]
    body, out_tree = _trace(body_fun, tree, avals, "body_fun")
    if out_tree == tree:
        weak = [a.weak_type and not b.weak_type
                for a, b in zip(avals, body.out_avals, strict=True)]
        if any(weak):  # the carry is strongly typed from the second iteration on
            leaves = [convert_element_type(x, a.dtype) if w else x
                      for x, a, w in zip(leaves, avals, weak, strict=True)]
            avals = [a.strip_weak_type() if w else a for a, w in zip(avals, weak, strict=True)]
            body, out_tree = _trace(body_fun, tree, avals, "body_fun")
    _check_body(tree, avals, out_tree, body.out_avals)
    cond, cond_tree = _trace(cond_fun, tree, avals, "cond_fun")
    _check_cond(cond_tree, cond.out_avals)
    outs = while_p.bind(
        *cond.consts, *body.consts, *leaves,
        cond_jaxpr=ClosedJaxpr(hoisted(cond), []), cond_nconsts=len(cond.consts),
        body_jaxpr=ClosedJaxpr(hoisted(body), []), body_nconsts=len(body.consts),
    )
    return tree_unflatten(tree, outs)


def _trace(fun: Callable[[Any], Any], tree: Any, avals: Sequence[Any], what: str
           ) -> tuple[ClosedJaxpr, Any]:
    out_tree = None

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree
        outs, out_tree = tree_flatten(fun(tree_unflatten(tree, xs)))
        return [operand(f"the result of {what} in while_loop", x, i) for i, x in enumerate(outs)]

    name = getattr(fun, "__name__", what)
    return trace_to_jaxpr(flat, avals, DebugInfo("while_loop", name)), out_tree


def _check_cond(tree: Any, avals: Sequence[ShapedArray]) -> None:
    if len(avals) != 1 or avals[0].shape != () or avals[0].dtype != np.bool_:
        got = ", ".join([a.str_short() for a in avals]) if len(avals) != 1 else avals[0].str_short()
        raise TypeError(f"while_loop: cond_fun must return a boolean scalar, but got: {got}.")


def _check_body(tree: Any, avals: Sequence[Any], out_tree: Any, out_avals: Sequence[Any]) -> None:
    if out_tree != tree:
        raise TypeError(
            "while_loop: body_fun output and input must have identical types, but their tree "
            f"structures differ: the input carry has {tree}, the output {out_tree}."
        )
    wrong = [f"component {i} of the carry is {a.str_short()} in the input and {b.str_short()} in "
             "the output" for i, (a, b) in enumerate(zip(avals, out_avals, strict=True))
             if (a.shape, a.dtype) != (b.shape, b.dtype)]
    if wrong:
        raise TypeError("while_loop: body_fun output and input must have identical types, but "
                        + "; ".join(wrong) + ".")


# -- the primitive ---------------------------------------------------------------------------------


def _while_shape(*avals: Any, cond_jaxpr: ClosedJaxpr, cond_nconsts: int,
                 body_jaxpr: ClosedJaxpr, body_nconsts: int) -> list[Any]:
    return list(avals[cond_nconsts + body_nconsts:])


def _split(xs: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Constants of the condition, constants of the body, carry."""
    a = params["cond_nconsts"]
    b = a + params["body_nconsts"]
    return list(xs[:a]), list(xs[a:b]), list(xs[b:])


def _while_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    """The tangents of the carry are carried along with it."""
    cond_consts, consts, init = _split(primals, params)
    _, const_ts, init_ts = _split(tangents, params)
    body: ClosedJaxpr = params["body_jaxpr"]
    const_nonzero = [type(t) is not Zero for t in const_ts]
    nonzero = [type(t) is not Zero for t in init_ts]
    while True:  # until the tangents that the body makes nonzero are all carried
        derived, out_nonzero = _body_jvp(body, tuple(const_nonzero), tuple(nonzero))
        if not any(o and not n for o, n in zip(out_nonzero, nonzero, strict=True)):
            break
        nonzero = [n or o for o, n in zip(out_nonzero, nonzero, strict=True)]
    if not any(nonzero):
        outs = while_p.bind(*primals, **params)
        return outs, [Zero.of_primal(x) for x in outs]
    moving = [instantiate(t) for t, n in zip(init_ts, nonzero, strict=True) if n]
    const_moving = [t for t, n in zip(const_ts, const_nonzero, strict=True) if n]
    n_carry = len(init)
    outs = while_p.bind(
        *cond_consts, *consts, *const_moving, *init, *moving,
        cond_jaxpr=_with_more_inputs(params["cond_jaxpr"], [get_aval(t) for t in moving]),
        cond_nconsts=params["cond_nconsts"], body_jaxpr=derived,
        body_nconsts=len(consts) + len(const_moving),
    )
    made = iter(outs[n_carry:])
    out_ts = [next(made) if n else Zero(get_aval(x).to_tangent_aval())
              for x, n in zip(init, nonzero, strict=True)]
    if any(isinstance(t, LinearTracer) for t in (*moving, *const_moving)):
        # under linearization the carry is computed now, only the tangents are recorded
        return while_p.bind(*primals, **params), out_ts
    return outs[:n_carry], out_ts


def _body_jvp(body: ClosedJaxpr, const_nonzero: tuple[bool, ...], nonzero: tuple[bool, ...]
              ) -> tuple[ClosedJaxpr, list[bool]]:
    """From (consts, their tangents, carry, its tangents) to (carry, its tangents)."""
    key = "while_jvp", const_nonzero, nonzero
    if key not in body.memo:
        n_consts = len(const_nonzero)
        const_avals, avals = body.in_avals[:n_consts], body.in_avals[n_consts:]
        out_nonzero: list[bool] = []

        def fun(*args: Any) -> list[Any]:
            given = iter(args)
            consts = [next(given) for _ in const_avals]
            const_ts = _tangents(given, const_nonzero, const_avals)
            carry = [next(given) for _ in avals]
            carry_ts = _tangents(given, nonzero, avals)
            outs, ts = jvp_flat(jaxpr_as_fun(body), [*consts, *carry], [*const_ts, *carry_ts])
            out_nonzero[:] = [type(t) is not Zero for t in ts]
            return [*outs, *[instantiate(t) for t, n in zip(ts, nonzero, strict=True) if n]]

        in_avals = [
            *const_avals, *_tangent_avals(const_avals, const_nonzero),
            *avals, *_tangent_avals(avals, nonzero),
        ]
        body.memo[key] = trace_to_jaxpr(fun, in_avals, body.jaxpr.debug_info), out_nonzero
    return body.memo[key]  # type: ignore[no-any-return]


def _tangents(given: Any, nonzero: Sequence[bool], avals: Sequence[Any]) -> list[Any]:
    return [next(given) if n else Zero(a.to_tangent_aval())
            for n, a in zip(nonzero, avals, strict=True)]


def _tangent_avals(avals: Sequence[Any], nonzero: Sequence[bool]) -> list[Any]:
    return [a.to_tangent_aval() for a, n in zip(avals, nonzero, strict=True) if n]


def _with_more_inputs(cond: ClosedJaxpr, avals: Sequence[Any]) -> ClosedJaxpr:
    """The condition over a carry with more components, which it does not read."""
    n = len(cond.in_avals)
    return trace_to_jaxpr(
        lambda *xs: eval_jaxpr(cond.jaxpr, cond.consts, *xs[:n]), [*cond.in_avals, *avals],
        cond.jaxpr.debug_info,
    )


def _while_transpose(cts: Any, *operands: Any, **params: Any) -> Any:
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "dynamic start/stop values. Try using lax.scan, or using fori_loop with static start/stop."
    )


def _while_batch(operands: Any, dims: Any, **params: Any) -> Any:
    size, axis_name = state.batch_trace.axis_size, state.batch_trace.axis_name
    cond_consts, consts, init = _split(operands, params)
    cond_dims, const_dims, init_dims = _split(dims, params)
    cond: ClosedJaxpr = params["cond_jaxpr"]
    body: ClosedJaxpr = params["body_jaxpr"]
    cond_consts = [x if d is None else at_front(x, d, size)
                   for x, d in zip(cond_consts, cond_dims, strict=True)]
    consts = [x if d is None else at_front(x, d, size)
              for x, d in zip(consts, const_dims, strict=True)]
    cond_at = [None if d is None else 0 for d in cond_dims]
    const_at = [None if d is None else 0 for d in const_dims]
    batched = [d is not None for d in init_dims]
    while True:  # until the components that the body batches are all batched
        at = [0 if b else None for b in batched]
        each = _batched_flags(cond, [*cond_at, *at], size, axis_name)[0]
        made = _batched_flags(body, [*const_at, *at], size, axis_name)
        grown = [b or m or each for b, m in zip(batched, made, strict=True)]
        if grown == batched:
            break
        batched = grown
    init = [at_front(x, d, size) if b else x
            for x, d, b in zip(init, init_dims, batched, strict=True)]
    n_cond, n_body = len(cond_consts), len(consts)

    def holds(cs: Sequence[Any], carry: Sequence[Any]) -> Any:
        outs, found = batch_flat(jaxpr_as_fun(cond), [*cs, *carry], [*cond_at, *at], size,
                                 axis_name)
        return match_axis(outs[0], found[0], 0 if each else None, size)

    def new_cond(*args: Any) -> list[Any]:
        holding = holds(args[:n_cond], args[n_cond:])
        return [reduce_or(holding, (0,)) if each else holding]

    def new_body(*args: Any) -> list[Any]:
        cs, bs, carry = args[:n_cond], args[n_cond:n_cond + n_body], args[n_cond + n_body:]
        outs, found = batch_flat(jaxpr_as_fun(body), [*bs, *carry], [*const_at, *at], size,
                                 axis_name)
        outs = [match_axis(o, f, a, size) for o, f, a in zip(outs, found, at, strict=True)]
        if each:  # examples that are done keep their values
            holding = holds(cs, carry)
            outs = [_where(holding, o, x) for o, x in zip(outs, carry, strict=True)]
        return outs

    avals = [get_aval(x) for x in init]
    cond_avals = [get_aval(x) for x in cond_consts]
    body_avals = [get_aval(x) for x in consts]
    outs = while_p.bind(
        *cond_consts, *cond_consts, *consts, *init,
        cond_jaxpr=_closed_over_nothing(new_cond, [*cond_avals, *avals]), cond_nconsts=n_cond,
        body_jaxpr=_closed_over_nothing(new_body, [*cond_avals, *body_avals, *avals]),
        body_nconsts=n_cond + n_body,
    )
    return outs, at


def _closed_over_nothing(fun: Callable[..., Any], avals: Sequence[Any]) -> ClosedJaxpr:
    closed = trace_to_jaxpr(fun, avals)
    assert not any(isinstance(c, Tracer) for c in closed.consts)
    return closed


def _batched_flags(closed: ClosedJaxpr, dims: Sequence[int | None], size: int, axis_name: Any
                   ) -> list[bool]:
    """Which results are batched where operands are batched at `dims`."""
    key = "while_batched", tuple(dims), size, axis_name
    if key not in closed.memo:
        found: list[Any] = []

        def fun(*args: Any) -> list[Any]:
            outs, out_dims = batch_flat(jaxpr_as_fun(closed), args, dims, size, axis_name)
            found[:] = out_dims
            return outs

        trace_to_jaxpr(fun, [a if d is None else a.update(shape=(size, *a.shape))
                             for a, d in zip(closed.in_avals, dims, strict=True)])
        closed.memo[key] = [d is not None for d in found]
    return closed.memo[key]  # type: ignore[no-any-return]


def _where(holding: Any, new: Any, old: Any) -> Any:
    return select(broadcast_in_dim(holding, get_aval(old).shape, (0,)), new, old)


while_p = register(Primitive(
    "while", shape_rule=_while_shape, multiple_results=True, cached=False, jvp=_while_jvp,
    batch=_while_batch, transpose=_while_transpose,
    effects=lambda params: params["cond_jaxpr"].effects | params["body_jaxpr"].effects,
))
