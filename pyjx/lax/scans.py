"""`scan`: a body applied to one element of its arrays after another, with a carry between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx import configuration, lax
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.brief import shortened
from pyjx.core.derived import derived
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.explicit import entries_of, with_dim, without_dim
from pyjx.core.integers import as_int
from pyjx.core.jaxpr import Atom, ClosedJaxpr, DebugInfo, JaxprEqn, Var
from pyjx.core.open_sums import cotangent_aval
from pyjx.core.passes.tokens import threaded
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import Record
from pyjx.core.references import check_undivided, is_ref
from pyjx.core.trace import concrete_or_error, trace_to_jaxpr
from pyjx.core.tracebacks import api_boundary
from pyjx.engine import logs
from pyjx.engine.axes import at_front, moveaxis
from pyjx.engine.batching import BatchTrace
from pyjx.engine.discharge import discharged, store, values_of
from pyjx.engine.functions import source_of
from pyjx.engine.linearize import LinearTrace
from pyjx.engine.references import Box
from pyjx.engine.residuals import CutEqn, Policy, cut_jaxpr, results_saved
from pyjx.engine.subjaxprs import (
    Places,
    batch_jaxpr,
    carry_as_consts,
    check_operands,
    consts_as_inputs,
    dependent_outputs,
    fixpoint,
    in_front,
    jvp_jaxpr,
    linear_flags,
    linearize_jaxpr,
    live_inputs,
    negated,
    nonzero_flags,
    part_of,
    selected,
    split_jaxpr,
    transpose_with_log,
    unchanged_carry,
    with_cotangents,
    with_inputs,
    with_outputs,
    with_totals,
    with_zeros,
    without_tracers,
)
from pyjx.engine.tangents import Zero, instantiate
from pyjx.engine.types import Dims, Flags, Operand, Params, Tangents, Values
from pyjx.lax.bodies import TracedBody, check_operands_distinct, trace_body
from pyjx.lax.carries import as_in_program, check_carry, promote_carry, varied
from pyjx.lax.nary import operand
from pyjx.tree_util import tree_flatten, tree_map, tree_structure, tree_unflatten

# -- the function ----------------------------------------------------------------------------------


@api_boundary
def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None,
         length: int | None = None, reverse: bool = False, unroll: int | bool = 1,
         _split_transpose: bool = False) -> tuple[Any, Any]:
    """`carry, y = f(carry, x)` for each element x of `xs`; the last carry and the stacked ys.

    The body is traced and compiled once, whatever the number of elements, and has derivatives in
    both modes.

    Args:
      f: from a carry and an element of `xs` to the next carry and a result.
      init: the first carry, a pytree of arrays. The carry keeps its types; components that are
        Python scalars take those that the body gives them.
      xs: pytree of arrays, which are taken apart along their first axis; or None.
      length: the number of elements, which must be that of `xs` where both are given.
      reverse: whether the elements are taken from the last to the first. The results stand where
        their elements do.
      unroll: how many elements an iteration of the compiled loop handles; True stands for all.
      _split_transpose: accepted; the backward pass is one scan in any case.

    Raises:
      TypeError: the body gives no pair, or a carry of another type.
      ValueError: the arrays differ in their length, or there is none.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> total, sums = jax.lax.scan(lambda c, x: (c + x, c + x), 0, jnp.arange(4))
    >>> int(total), sums.tolist()
    (6, [0, 1, 3, 6])
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable, got {shortened(f)}.")
    x_leaves, x_tree = tree_flatten(xs)
    x_leaves = [operand("scan (xs)", x, i) for i, x in enumerate(x_leaves)]
    n = _length(x_leaves, length)
    if configuration.disable_jit.value:
        return _scan_in_python(f, init, x_leaves, x_tree, n, reverse)
    leaves, tree = tree_flatten(init)
    leaves = [operand("scan (init)", x, i) for i, x in enumerate(leaves)]
    element_avals = [_element(get_aval(x)) for x in x_leaves]
    args_tree = tree_structure((tree_unflatten(tree, leaves), tree_unflatten(x_tree, x_leaves)))

    def traced(carry: Sequence[Any]) -> TracedBody:
        body = trace_body("scan", "f", f, args_tree, [*map(get_aval, carry), *element_avals],
                          unpacked=True)
        _check_pair(body.out_tree, body.closed.out_avals)
        return body

    check_operands_distinct("scan", f, args_tree, [*leaves, *x_leaves])
    if any(map(is_ref, x_leaves)):
        check_undivided(x_tree, [True] * len(x_leaves), lambda: DebugInfo("scan", source_of(f)))
    body = traced(leaves)
    if body.closed.consts:
        check_operands_distinct("scan", f, args_tree, [*leaves, *x_leaves], body.closed.consts)
    carry_tree = body.out_tree.children()[0]
    if carry_tree == tree:
        leaves, changed = promote_carry(leaves, body.closed.out_avals[:len(leaves)])
        if changed:
            body = traced(leaves)
        while (more := varied(leaves, body.closed.out_avals[:len(leaves)])) is not None:
            leaves = more
            body = traced(leaves)
    closed = body.closed
    check_carry("scan", "f", f, tree, list(map(get_aval, leaves)), carry_tree,
                closed.out_avals[:carry_tree.num_leaves])
    outs = bind_scan(consts_as_inputs(closed), closed.consts, leaves, x_leaves, {
        "length": n, "reverse": bool(reverse), "unroll": _unroll(unroll, n),
        "_split_transpose": bool(_split_transpose)})
    return tree_unflatten(body.out_tree, outs)  # type: ignore[no-any-return]


def _length(xs: Sequence[Any], length: Any) -> int:
    """The number of iterations."""
    scalars = [x for x in xs if not get_aval(x).shape]
    if scalars:
        raise ValueError("scan got value with no leading axis to scan over: "
                         f"{', '.join(map(str, scalars))}.")
    sizes = {get_aval(x).shape[0] for x in xs}
    if length is not None:
        length = concrete_or_error(
            None, length, "The `length` argument to `scan` expects a concrete `int` value.")
        length = as_int("scan", "length", int(length) if isinstance(length, float) else length)
        if any([size != length for size in sizes]):
            raise ValueError(f"scan got `length` argument of {length} which disagrees with leading "
                             f"axis sizes {[get_aval(x).shape[0] for x in xs]}.")
        if length < 0:
            raise ValueError(f"scan got a negative `length` argument: {length}.")
        return length  # type: ignore[no-any-return]
    if not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    if len(sizes) > 1:
        raise ValueError("scan got values with different leading axis sizes: "
                         f"{', '.join([str(get_aval(x).shape[0]) for x in xs])}.")
    return sizes.pop()  # type: ignore[no-any-return]


def _unroll(unroll: Any, length: int) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    n = as_int("scan", "unroll", concrete_or_error(None, unroll, "The `unroll` argument of scan"))
    if n < 0:
        raise ValueError("scan: `unroll` must be a `bool` or a non-negative `int`.")
    return max(min(n, length), 1)


def _check_pair(tree: Any, avals: Sequence[ShapedArray]) -> None:
    if tree.node_data() is None or tree.node_data()[0] not in (
            tuple, list) or len(tree.children()) != 2:
        got = tree_unflatten(tree, [a.str_short() for a in avals])
        raise TypeError(f"scan body output must be a pair, got {got}.")


def _scan_in_python(f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Sequence[Any],
                    tree: Any, length: int, reverse: bool) -> tuple[Any, Any]:
    """What `disable_jit` asks for."""
    if length == 0:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the "
                         "output type is unknown.")
    ys = []
    carry = tree_map(as_in_program, carry)
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = tree_map(as_in_program, f(carry, tree_unflatten(
            tree, [lax.index_in_dim(x, i, keepdims=False) for x in xs])))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, tree_map(lambda *each: lax.concatenate(
        [lax.expand_dims(y, (0,)) for y in each], 0), *ys)


# -- the primitive ---------------------------------------------------------------------------------


class _Parts(Record):
    """What a scan has one entry of each for: an operand, a tangent, a dim or a flag."""

    consts: list[Any]
    carry: list[Any]
    xs: list[Any]


def _parts(entries: Sequence[Any], params: Params) -> _Parts:
    a = params["num_consts"]
    b = a + params["num_carry"]
    return _Parts(list(entries[:a]), list(entries[a:b]), list(entries[b:]))


def _derived_params(params: Params, body: ClosedJaxpr, num_consts: int, num_carry: int) -> Params:
    return {**params, "jaxpr": body, "num_consts": num_consts, "num_carry": num_carry}


def bind_scan(body: ClosedJaxpr, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any],
              params: Params) -> list[Any]:
    """The last carry and the stacked results of a scan with these parameters over another body.

    What the body does not change of the carry is a constant of it.
    """
    body, more = without_tracers(body)
    consts = [*more, *consts]
    n = len(consts)
    same = unchanged_carry(body, n, len(carry))
    if any(same):
        body = with_outputs(carry_as_consts(body, n, same), (
            *selected(range(len(carry)), negated(same)),
            *range(len(carry), len(body.out_avals))))
    changed = selected(carry, negated(same))
    outs = iter(scan_p.bind(*consts, *selected(carry, same), *changed, *xs,
                            **_derived_params(params, body, n + sum(same), len(changed))))
    return [*[x if flag else next(outs) for x, flag in zip(carry, same, strict=True)], *outs]


def _element(aval: ShapedArray) -> ShapedArray:
    """The type of what an iteration gets of an array."""
    if entries_of(aval)[0] is not None:
        raise ValueError("0th dimension of all xs should be replicated. Got "
                         f"{aval.sharding.spec}")
    return without_dim(aval, 0)


def _stacked(aval: ShapedArray, length: int) -> ShapedArray:
    return with_dim(aval, 0, length)


def _scan_shape(*avals: Any, jaxpr: ClosedJaxpr, length: int, num_carry: int, **_: Any
                ) -> list[Any]:
    outs = jaxpr.out_avals
    return [*outs[:num_carry], *[_stacked(a, length) for a in outs[num_carry:]]]


def _in_turn(first: _Parts, second: _Parts) -> tuple[int, ...]:
    """The places of all entries of `first`, then of all of `second`, in the order part by part."""
    order: list[int] = []
    a, b = 0, sum(map(len, first))
    for ours, theirs in zip(first, second, strict=True):
        order += [*range(a, a + len(ours)), *range(b, b + len(theirs))]
        a += len(ours)
        b += len(theirs)
    return tuple(order)


# -- references ------------------------------------------------------------------------------------


def _scan_discharge(operands: Values, params: Params, derivable: bool) -> list[Any]:
    """A reference that the body writes is carried; one that is scanned over gives its new elements
    as results."""
    n_out = len(params["jaxpr"].out_avals)
    found = discharged(params["jaxpr"], tuple([isinstance(x, Box) for x in operands]), derivable)
    values, written = _parts(values_of(operands), params), _parts(found.written, params)
    n_consts = len(values.consts)
    moved = [i for i, w in enumerate(written.consts) if w]
    fixed = [i for i, w in enumerate(written.consts) if not w]
    n_moved = len(moved)
    body = with_inputs(found.jaxpr, (*fixed, *moved, *range(n_consts, len(operands))))
    body = with_outputs(body, (
        *range(n_out, n_out + n_moved), *range(n_out), *range(n_out + n_moved,
                                                              len(found.jaxpr.out_avals))))
    outs = bind_scan(body, [values.consts[i] for i in fixed],
                     [values.consts[i] for i in moved] + values.carry, values.xs, params)
    ends, results = outs[:n_moved], outs[n_moved:]
    store(operands, found.written, [*ends, *results[n_out:]])
    return results[:n_out]


# -- forward mode ----------------------------------------------------------------------------------


def _moving(given: _Parts, nonzero_carry: Flags) -> _Parts:
    """The tangents that are pushed along: those of the carry that are, or become, nonzero."""
    return _Parts([t for t in given.consts if type(t) is not Zero],
                  [instantiate(t) for t in selected(given.carry, nonzero_carry)],
                  [t for t in given.xs if type(t) is not Zero])


def _scan_jvp(primals: Values, tangents: Tangents, **params: Any) -> Any:
    """The tangents of the carry are carried along with it."""
    body, n = params["jaxpr"], params["num_carry"]
    values, given = _parts(primals, params), _parts(tangents, params)
    consts, xs = nonzero_flags(given.consts), nonzero_flags(given.xs)
    carry = fixpoint(lambda flags: jvp_jaxpr(body, consts + flags + xs).nonzero[:n],
                     nonzero_flags(given.carry))
    pushed = jvp_jaxpr(body, consts + carry + xs, _only_carry(carry, body))
    moving = _moving(given, carry)
    ys = body.out_avals[n:]
    outs_order = _in_turn(_Parts([], values.carry, ys),
                          _Parts([], moving.carry, selected(ys, pushed.nonzero[n:])))
    both = with_outputs(with_inputs(pushed.jaxpr, _in_turn(values, moving)), outs_order)
    results = bind_scan(both, values.consts + moving.consts, values.carry + moving.carry,
                        values.xs + moving.xs, params)
    outs: list[Any] = [None] * len(results)
    for place, x in zip(outs_order, results, strict=True):
        outs[place] = x
    count = len(body.out_avals)
    return outs[:count], with_zeros(outs[count:], pushed.nonzero, list(map(get_aval, outs[:count])))


def _only_carry(carry: Flags, body: ClosedJaxpr) -> Flags:
    return carry + (False,) * (len(body.out_avals) - len(carry))


# -- reverse mode ----------------------------------------------------------------------------------


class _Residuals(Record):
    """What the linear part reads, in its order: values, and whether they are stacked."""

    values: list[Any]
    stacked: list[bool]


def _run_known(known: ClosedJaxpr, args: _Parts, n_out: int, forwarded: Sequence[int],
               params: Params) -> tuple[list[Any], _Residuals]:
    """The known part of a scan: its results and its residuals.

    What does not depend on the iteration is computed once, before; what is a result or an argument
    is not stacked again.
    """
    n_consts, n_carry = len(args.consts), len(args.carry)
    outvars = known.jaxpr.outvars
    per_iteration = dependent_outputs(
        known, (False,) * n_consts + (True,) * (n_carry + len(args.xs)), True)
    fixed = tuple([i >= n_out and not v for i, v in enumerate(per_iteration)])
    once = iter(jaxpr_as_fun(part_of(known, fixed, (True,) * n_consts + (False,) * (
        n_carry + len(args.xs)), False))(*args.consts) if any(fixed) else ())
    order = list(range(n_out))  # of the results of the scan; the ones after n_out are stacked
    place = {v: i for i, v in enumerate(outvars[:n_out]) if i >= n_carry and type(v) is Var}

    def stacked_at(var: Var, source: int) -> int:
        if var not in place:
            place[var] = len(order)
            order.append(source)
        return place[var]

    found: list[Any] = []  # a value, or its place among the results
    for i in range(n_out, len(outvars)):
        found.append((next(once), None) if fixed[i]
                     else (None, stacked_at(outvars[i], i)))  # type: ignore[arg-type]
    for i in forwarded:
        if i < n_consts:
            found.append((args.consts[i], None))
        elif i < n_consts + n_carry:
            found.append((None, stacked_at(known.jaxpr.invars[i], ~i)))
        else:
            found.append((args.xs[i - n_consts - n_carry], -1))
    results = bind_scan(with_outputs(known, tuple(order)), *args, params)
    return results[:n_out], _Residuals(
        [results[at] if at is not None and at >= 0 else x for x, at in found],
        [at is not None for _, at in found])


def _record(trace: LinearTrace, linear: ClosedJaxpr, residuals: _Residuals, tangents: _Parts,
            params: Params) -> list[Any]:
    """Add the linear part of a scan to a linear program; its results are tangents."""
    fixed, stacked = negated(residuals.stacked), residuals.stacked
    given = _Parts(selected(residuals.values, fixed), [], selected(residuals.values, stacked))
    n = len(stacked)
    sorted_residuals = [*selected(range(n), fixed), *selected(range(n), stacked)]
    order = [sorted_residuals[i] if i < n else i for i in _in_turn(given, tangents)]
    linear, more = without_tracers(with_inputs(linear, tuple(order)))
    consts = [*more, *given.consts, *tangents.consts]
    return trace.record(  # type: ignore[no-any-return]
        scan_p, [*consts, *tangents.carry, *given.xs, *tangents.xs],
        _derived_params(params, linear, len(consts), len(tangents.carry)))


def _scan_linearize(trace: LinearTrace, primals: Values, tangents: Tangents, **params: Any) -> Any:
    body, n = params["jaxpr"], params["num_carry"]
    values, given = _parts(primals, params), _parts(tangents, params)
    consts, xs = nonzero_flags(given.consts), nonzero_flags(given.xs)
    carry = fixpoint(lambda flags: linearize_jaxpr(body, consts + flags + xs).nonzero[:n],
                     nonzero_flags(given.carry))
    if not any((*consts, *carry, *xs)):
        outs = scan_p.bind(*primals, **params)
        return outs, [Zero.of_primal(o) for o in outs]
    parts = linearize_jaxpr(body, consts + carry + xs)
    if parts.nonzero[:n] != carry:
        parts = linearize_jaxpr(body, consts + carry + xs, _only_carry(carry, body))
    outs, residuals = _run_known(parts.known, values, len(body.out_avals), parts.forwarded, params)
    out_tangents = _record(trace, parts.linear, residuals, _moving(given, carry), params)
    return outs, with_zeros(out_tangents, parts.nonzero, list(map(get_aval, outs)))


def _scan_split(trace: LinearTrace, operands: Values, params: Params) -> list[Any]:
    body, n = params["jaxpr"], params["num_carry"]
    given = _parts(operands, params)
    consts, start, xs = map(trace.linear_flags, given)
    carry = fixpoint(lambda flags: dependent_outputs(body, consts + flags + xs)[:n], start)
    flags = consts + carry + xs
    if all(dependent_outputs(body, flags)) and not body.effects:
        return trace.record(scan_p, operands, params)  # type: ignore[no-any-return]
    parts = split_jaxpr(body, flags, _only_carry(carry, body))
    known = _Parts(*[selected(part, negated(lin))
                     for part, lin in zip(given, (consts, carry, xs), strict=True)])
    n_known = len(parts.dependent) - sum(parts.dependent)
    outs, residuals = _run_known(parts.known, known, n_known, parts.forwarded, params)
    linear = _Parts(*[selected(part, lin)
                      for part, lin in zip(given, (consts, carry, xs), strict=True)])
    known_outs = iter(outs)
    tangents = iter(_record(trace, parts.linear, residuals, linear, params))
    return [next(tangents) if dependent else next(known_outs) for dependent in parts.dependent]


class _Backward(Record):
    """The body of a transposed scan, and which cotangents it gives.

    It maps (residuals that are the same for all iterations; sums of cotangents of linear constants,
    cotangents of the carry; stacked residuals, nonzero cotangents of the stacked results) to (sums,
    cotangents of the carry; cotangents of linear xs, arrays of the log).
    """

    jaxpr: ClosedJaxpr
    consts_nonzero: Flags
    xs_nonzero: Flags
    log: logs.LogTree | None


@derived
def _backward(body: ClosedJaxpr, linear_consts: Flags, linear_xs: Flags, ys_nonzero: Flags
              ) -> _Backward:
    avals = body.in_avals
    n_consts, n_xs = len(linear_consts), len(linear_xs)
    n_carry = len(avals) - n_consts - n_xs
    linear = linear_consts + (True,) * n_carry + linear_xs
    ct_nonzero = (True,) * n_carry + ys_nonzero
    strong = (False,) * n_consts + tuple([not a.weak_type for a in body.out_avals[:n_carry]]) \
        + (False,) * n_xs
    pulled = transpose_with_log(body, linear, ct_nonzero, False,
                                linear_consts + (False,) * (n_carry + n_xs), strong)
    n_lin = sum(linear_consts)
    carry, xs = (pulled.nonzero[n_lin:n_lin + n_carry], pulled.nonzero[n_lin + n_carry:])
    program = pulled.jaxpr
    # A total that nothing is added to is not carried.
    given_sums = program.jaxpr.invars[len(program.jaxpr.invars) - n_lin:]
    consts = tuple([out is not total for out, total in
                    zip(program.jaxpr.outvars[:n_lin], given_sums, strict=True)])
    program = part_of(
        program, consts + (True,) * (len(program.jaxpr.outvars) - n_lin),
        (True,) * (len(program.jaxpr.invars) - n_lin) + consts)
    const_avals = list(map(cotangent_aval, selected(
        selected(avals[:n_consts], linear_consts), consts)))
    # A carry that becomes of strong type has cotangents of strong type.
    carry_avals = list(map(cotangent_aval, body.out_avals[:n_carry]))
    residual_avals = selected(avals[:n_consts], negated(linear_consts))
    stacked_avals = selected(avals[n_consts + n_carry:], negated(linear_xs))
    ys_avals = list(map(cotangent_aval, selected(body.out_avals[n_carry:], ys_nonzero)))

    def fun(*args: Any) -> list[Any]:
        given = iter(args)
        residuals, sums, cts, stacked, ys = [
            [next(given) for _ in part]
            for part in (residual_avals, const_avals, carry_avals, stacked_avals, ys_avals)]
        outs = iter(jaxpr_as_fun(program)(*residuals, *stacked, *cts, *ys, *sums))
        return [*[next(outs) for _ in sums],
                *[next(outs) if flag else instantiate(Zero(a))
                  for flag, a in zip(carry, carry_avals, strict=True)], *outs]

    traced = trace_to_jaxpr(fun, [*residual_avals, *const_avals, *carry_avals, *stacked_avals,
                                  *ys_avals], body.debug_info)
    return _Backward(traced, consts, xs, pulled.log)


def _scan_transpose(cts: Tangents, *operands: Operand, **params: Any) -> list[Any]:
    return _scan_accumulate([None] * len(operands), cts, *operands, **params)


def _scan_accumulate(totals: Tangents, cts: Tangents, *operands: Operand, **params: Any
                     ) -> list[Any]:
    """The transposed body goes over the iterations the other way.

    The carry is linear in all its components: what is known of a scan is computed apart. Sums of
    cotangents of constants begin with their totals.
    """
    given = _parts(operands, params)
    n = params["num_carry"]
    linear = list(map(linear_flags, given))
    ys = cts[n:]
    backward = _backward(params["jaxpr"], linear[0], linear[2], nonzero_flags(ys))
    before = selected(_parts(totals, params).consts, linear[0])
    sums = [instantiate(Zero(cotangent_aval(x.aval))) if total is None else total
            for x, total in selected(
                list(zip(selected(given.consts, linear[0]), before, strict=True)),
                backward.consts_nonzero)]
    results = bind_scan(
        backward.jaxpr, selected(given.consts, negated(linear[0])),
        [*sums, *map(instantiate, cts[:n])],
        [*selected(given.xs, negated(linear[2])), *[ct for ct in ys if type(ct) is not Zero]],
        {**params, "reverse": not params["reverse"]})
    m = len(sums)
    if backward.log is not None:
        logs.write(backward.log.filled(results[m + n + sum(backward.xs_nonzero):]))
    in_cts = [*with_cotangents(given.consts, backward.consts_nonzero, iter(results[:m])),
              *[ct if lin else None for ct, lin in zip(results[m:m + n], linear[1], strict=True)],
              *with_cotangents(given.xs, backward.xs_nonzero, iter(results[m + n:]))]
    added = [type(ct) is not Zero for ct in in_cts[:len(given.consts)]]
    return with_totals(in_cts, totals, [*added, *[False] * (len(in_cts) - len(added))])


# -- batching, dead code ---------------------------------------------------------------------------


def _scan_batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
    """The batch axis is the first of each iteration, the second of what is stacked."""
    axis, body, n = trace.axis, params["jaxpr"], params["num_carry"]
    values, given = _parts(operands, params), _parts(dims, params)
    consts, start, xs = [[d is not None for d in part] for part in given]

    def batched(flags: Sequence[bool]) -> Places:
        return batch_jaxpr(body, in_front([*consts, *flags, *xs]), axis).dims

    carry = fixpoint(lambda flags: [d is not None for d in batched(flags)[:n]], start)
    outs = in_front([*carry, *[d is not None for d in batched(carry)[n:]]])
    new_body = batch_jaxpr(body, in_front([*consts, *carry, *xs]), axis, outs).jaxpr
    results = bind_scan(
        new_body,
        [x if d is None else moveaxis(x, d, 0)
         for x, d in zip(values.consts, given.consts, strict=True)],
        [at_front(x, d, axis) if flag else x
         for x, d, flag in zip(values.carry, given.carry, carry, strict=True)],
        [x if d is None else moveaxis(x, d, 1)
         for x, d in zip(values.xs, given.xs, strict=True)], params)
    return results, [d if i < n or d is None else 1 for i, d in enumerate(outs)]


def _scan_dce(eqn: JaxprEqn, used: tuple[bool, ...]) -> JaxprEqn:
    params = eqn.params
    body, n, first = params["jaxpr"], params["num_carry"], params["num_consts"]
    ys = used[n:]
    carry = fixpoint(lambda flags: live_inputs(body, flags + ys)[first:first + n], used[:n])
    live = list(live_inputs(body, carry + ys))
    live[first:first + n] = carry
    part = part_of(body, carry + ys, tuple(live))
    if part is body:
        return eqn
    return eqn.replace(
        invars=selected(eqn.invars, live), outvars=selected(eqn.outvars, carry + ys),
        params=_derived_params(params, part, sum(live[:first]), sum(carry)), effects=part.effects)


def _scan_cut(eqn: JaxprEqn, policy: Policy, needed: Flags) -> CutEqn:
    """What is saved of each iteration is stacked; the second scan takes it apart again."""
    params = eqn.params
    body, n, first = params["jaxpr"], params["num_carry"], params["num_consts"]
    n_out, ys = len(eqn.outvars), needed[n:]
    every = (True,) * n_out

    def grow(flags: Flags) -> list[bool]:
        read = cut_jaxpr(body, policy, every, flags + ys).forwarded
        return [first + i in read for i in range(n)]

    carry = fixpoint(grow, needed[:n])
    cut = cut_jaxpr(body, policy, every, carry + ys)
    n_saved, n_carry = len(cut.known.outvars) - n_out, sum(carry)
    same = results_saved(cut, n_saved, selected(eqn.outvars[n:], ys))
    saved = [same[i] if i in same else Var(_stacked(v.aval, params["length"]))
             for i, v in enumerate(cut.known.outvars[n_out:])]
    extra = [i for i in range(n_saved) if i not in same]
    known = with_outputs(cut.known, (*range(n_out), *[n_out + i for i in extra]))
    known_eqn = eqn.replace(
        outvars=[*eqn.outvars, *[saved[i] for i in extra]], effects=known.effects,
        params=_derived_params(params, known, first, n))
    outs = [v if wanted else Var(v.aval) for v, wanted in zip(eqn.outvars, needed, strict=True)]
    results = [*selected(outs[:n], carry), *selected(outs[n:], ys)]
    rest = tuple([i for i, v in enumerate(results) if i < n_carry or v not in saved])
    if not rest and not cut.again.effects:
        return CutEqn(known_eqn, saved, None)
    consts = [i for i in cut.forwarded if i < first]
    carried = selected(range(first, first + n), carry)
    xs = [i for i in cut.forwarded if i >= first + n]
    at = {i: n_saved + k for k, i in enumerate(cut.forwarded)}
    again = with_inputs(with_outputs(cut.again, rest), (
        *[at[i] for i in consts], *[at.get(i, body.in_avals[i]) for i in carried],
        *range(n_saved), *[at[i] for i in xs]))
    return CutEqn(known_eqn, saved, eqn.replace(
        invars=[*[eqn.invars[i] for i in (*consts, *carried)], *saved,
                *[eqn.invars[i] for i in xs]],
        outvars=[results[i] for i in rest], effects=again.effects,
        params=_derived_params(params, again, len(consts), len(carried))))


def _scan_thread(eqn: JaxprEqn, token: Atom, after: Var) -> list[JaxprEqn]:
    """The token is the first component of the carry."""
    params, n = eqn.params, eqn.params["num_consts"]
    body = threaded(params["jaxpr"])
    order = (*range(1, n + 1), 0, *range(n + 1, len(body.jaxpr.invars)))
    return [eqn.replace(
        invars=[*eqn.invars[:n], token, *eqn.invars[n:]], outvars=[after, *eqn.outvars],
        params=_derived_params(params, with_inputs(body, order), n, params["num_carry"] + 1))]


def _scan_check(eqn: JaxprEqn) -> None:
    params, length = eqn.params, eqn.params["length"]
    given, inner = _parts(eqn.invars, params), _parts(params["jaxpr"].in_avals, params)
    wanted = [*inner.consts, *inner.carry, *[_stacked(a, length) for a in inner.xs]]
    check_operands("scan", [*given.consts, *given.carry, *given.xs], wanted)
    for i, (before, after) in enumerate(
            zip(inner.carry, params["jaxpr"].out_avals, strict=False)):
        if not before.same_type(after):
            raise TypeError(f"scan: the body takes component {i} of the carry as {before} and "
                            f"gives it as {after}")


def _scan_count(counted: Any, params: Params, times: int) -> None:
    counted.program(params["jaxpr"], times * params["length"])


scan_p = register(Primitive(
    "scan", shape_rule=_scan_shape, count=_scan_count, multiple_results=True, cached=False,
    jvp=_scan_jvp,
    linearize=_scan_linearize, split=_scan_split, transpose=_scan_transpose,
    accumulate=_scan_accumulate,
    batch_axis=_scan_batch, dce=_scan_dce, cut=_scan_cut, thread=_scan_thread, check=_scan_check,
    effects=lambda params: params["jaxpr"].effects, discharge=_scan_discharge,
))
