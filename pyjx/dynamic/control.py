"""What padding does to what holds programs: loops, conditionals, calls of Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core.avals import ShapedArray, SymbolicDim, get_aval
from pyjx.core.evaluation import bind_eqn
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.records import Record
from pyjx.core.trace import trace_to_jaxpr
from pyjx.dynamic.padded import SIZE, Padded, Padding, rule
from pyjx.dynamic.whole_arrays import Results
from pyjx.runtime.host_calls import checked


def _run(p: Padding, closed: ClosedJaxpr, consts: Sequence[Padded], values: Sequence[Any]
         ) -> list[Any]:
    """The padded results of a program that is held: of values whose padding is known, and others.
    """
    rest = closed.jaxpr.invars[len(consts):]
    args = [Padded(x, v.aval) for x, v in zip(values, rest, strict=True)]
    eqn = p.eqn
    outs = p.run_closed(closed, [*consts, *args])
    p.eqn = eqn
    return [p.fitted(x.val, v.aval) if isinstance(v.aval, ShapedArray) else x.val
            for x, v in zip(outs, closed.jaxpr.outvars, strict=True)]


def alike(xs: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    """Values of the strength of types that a carry has."""
    return [lax.convert_element_type_p.bind(x, new_dtype=a.dtype, weak_type=a.weak_type,
                                            sharding=None)
            if isinstance(a, ShapedArray) and get_aval(x).weak_type != a.weak_type else x
            for x, a in zip(xs, avals, strict=True)]


@rule(lax.scan_p)
def _scan(p: Padding, eqn: JaxprEqn, *xs: Padded) -> Results:
    """As many iterations as there are elements: a loop that counts to the true length, where that
    is symbolic."""
    params = eqn.params
    body, n_consts, n_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    consts, carry = xs[:n_consts], [x.val for x in xs[n_consts:n_consts + n_carry]]
    arrays = [x.val for x in xs[n_consts + n_carry:]]
    carry = alike(carry, body.in_avals[n_consts:n_consts + n_carry])
    length = params["length"]

    def step(now: Sequence[Any], slices: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs = _run(p, body, consts, [*now, *slices])
        return alike(outs[:n_carry], body.in_avals[n_consts:n_consts + n_carry]), outs[n_carry:]

    if not isinstance(length, SymbolicDim):
        last, ys = lax.scan(step, list(carry), arrays, length, params["reverse"], params["unroll"])
        return [*last, *ys]
    n, room = p.size(length), p.room(length)
    stacked = [lax.full((room, *p.rooms(v.aval.shape)), 0, v.aval.dtype)
               for v in body.jaxpr.outvars[n_carry:]]
    if not room:
        return [*carry, *stacked]

    def iterate(i: Any, state: Any) -> Any:
        now, ys = state
        at = n - 1 - i if params["reverse"] else i
        now, new = step(now, [lax.dynamic_index_in_dim(x, at, 0, False) for x in arrays])
        return now, [lax.dynamic_update_index_in_dim(y, v, at, 0)
                     for y, v in zip(ys, new, strict=True)]

    last, ys = lax.fori_loop(np.int32(0), n, iterate, (list(carry), stacked))
    return [*last, *ys]


@rule(lax.while_p)
def _while(p: Padding, eqn: JaxprEqn, *xs: Padded) -> Results:
    params = eqn.params
    a, b = params["cond_nconsts"], params["body_nconsts"]
    asked, consts, init = xs[:a], xs[a:a + b], [x.val for x in xs[a + b:]]
    avals = params["body_jaxpr"].in_avals[b:]
    init = alike(init, avals)
    return lax.while_loop(  # type: ignore[no-any-return]
        lambda now: _run(p, params["cond_jaxpr"], asked, now)[0],
        lambda now: alike(_run(p, params["body_jaxpr"], consts, now), avals), init)


@rule(lax.cond_p)
def _cond(p: Padding, eqn: JaxprEqn, index: Padded, *xs: Padded) -> Results:
    def branch(closed: ClosedJaxpr) -> ClosedJaxpr:
        return trace_to_jaxpr(lambda *values: alike(_run(p, closed, [
            Padded(v, x.aval, x.fills) for v, x in zip(values, xs, strict=True)], ()),
            [v.aval for v in eqn.outvars]), [get_aval(x.val) for x in xs])

    roles = (None,) * len(xs)
    return eqn.primitive.holder.bind(  # type: ignore[no-any-return, attr-defined]
        list(map(branch, eqn.params["branches"])), [index.val, *[x.val for x in xs]], eqn.params,
        roles, (None,) * len(eqn.outvars))


@rule("remat2")
def _remat(p: Padding, eqn: JaxprEqn, *xs: Padded) -> Results:
    """What is computed again in a backward pass stays behind its barrier."""
    params = eqn.params
    flags = params["prevent_cse"]
    if params["differentiated"] and (flags if isinstance(flags, bool) else any(flags)):
        vals = lax.optimization_barrier([x.val for x in xs])
        xs = tuple([Padded(v, x.aval, x.fills) for v, x in zip(vals, xs, strict=True)])
    return [(x.val, x.fills) for x in p.run_closed(params["jaxpr"], xs)]


# -- Python functions ------------------------------------------------------------------------------


class _Cut(Record):
    """A Python function that a program calls, on arrays of the true sizes; its results are padded.
    Shapes are those of the operands and of the results: a number, or the place ~i of a size among
    the first operands. `avals` are the types of the padded results."""

    callback: Callable[..., Sequence[Any]]
    n_sizes: int
    shapes: tuple[tuple[int, ...], ...]
    out_shapes: tuple[tuple[int, ...], ...]
    avals: tuple[ShapedArray, ...]

    @property
    def op(self) -> str:
        return self.callback.op  # type: ignore[attr-defined, no-any-return]

    @property
    def callback_func(self) -> Any:
        return self.callback.callback_func  # type: ignore[attr-defined]

    def __call__(self, *args: Any) -> list[Any]:
        sizes, arrays = list(map(int, args[:self.n_sizes])), args[self.n_sizes:]
        true, out_true = [[tuple([sizes[~n] if n < 0 else n for n in shape]) for shape in shapes]
                          for shapes in (self.shapes, self.out_shapes)]
        outs = self.callback(*[x[tuple(map(slice, shape))]
                               for x, shape in zip(arrays, true, strict=True)])
        if self.avals:
            outs = checked(self.callback, [a.update(shape=shape) for a, shape in zip(
                self.avals, out_true, strict=True)], outs)
        return [np.pad(x, [(0, n - m) for m, n in zip(x.shape, a.shape, strict=True)] or 0)
                for x, a in zip(outs, self.avals, strict=True)]


@rule("pure_callback", "io_callback", "debug_callback")
def _callback(p: Padding, eqn: JaxprEqn, *xs: Padded) -> Results:
    params = dict(eqn.params)
    avals = params.get("result_avals", ())
    dims = list(dict.fromkeys([n for x in (*xs, *avals) for n in x.shape
                               if isinstance(n, SymbolicDim)]))
    shapes, out_shapes = [tuple([tuple([
        ~dims.index(n) if isinstance(n, SymbolicDim) else n for n in x.shape]) for x in some])
        for some in (xs, avals)]
    padded = tuple([a.update(shape=p.rooms(a.shape)) for a in avals])
    params["callback"] = _Cut(params["callback"], len(dims), shapes, out_shapes, padded)
    if "result_avals" in params:
        params["result_avals"] = padded
    sizes = [lax.convert_element_type(p.size(n), SIZE) for n in dims]
    return bind_eqn(eqn.replace(params=params), [*sizes, *[x.val for x in xs]])
