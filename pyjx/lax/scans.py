"""`scan`: a body applied to one element of its arrays after another, with a carry between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from pyjx import configuration, lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.explicit import entries_of, with_dim, without_dim
from pyjx.core.integers import as_int
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, Var
from pyjx.core.primitive import Primitive, register
from pyjx.core.references import check_undivided, is_ref
from pyjx.core.specs import spec_to_give
from pyjx.core.trace import concrete_or_error, is_concrete
from pyjx.core.value_texts import no_array, shortened
from pyjx.engine.functions import leaf_paths, short_types, source_of
from pyjx.engine.holders import Held, Holder, Programs, Roles, in_order
from pyjx.engine.subjaxprs import (
    consts_as_inputs,
    dependent_outputs,
    negated,
    part_of,
    selected,
    with_inputs,
    with_outputs,
    without_tracers,
    without_unchanged,
)
from pyjx.engine.types import Params, TreeDef
from pyjx.lax.agreement import (
    TracedFunction,
    as_in_program,
    check_operands_distinct,
    returns_nothing,
    trace_function,
    traced_with_carry,
)
from pyjx.lax.common import operands_in
from pyjx.lax.laying import run_laid
from pyjx.tree_util import tree_map, tree_structure, tree_unflatten

# -- the function ----------------------------------------------------------------------------------


_Carry = TypeVar("_Carry")
_X = TypeVar("_X")
_Y = TypeVar("_Y")


@overload
def scan(f: Callable[[Array, Array], tuple[ArrayLike, _Y]], init: ArrayLike, xs: ArrayLike,
         length: int | None = None, reverse: bool = False, unroll: int | bool = 1,
         _split_transpose: bool = False) -> tuple[Array, _Y]: ...


@overload
def scan(f: Callable[[Array, _X], tuple[ArrayLike, _Y]], init: ArrayLike, xs: _X | None = None,
         length: int | None = None, reverse: bool = False, unroll: int | bool = 1,
         _split_transpose: bool = False) -> tuple[Array, _Y]: ...


@overload
def scan(f: Callable[[_Carry, Array], tuple[_Carry, _Y]], init: _Carry, xs: ArrayLike,
         length: int | None = None, reverse: bool = False, unroll: int | bool = 1,
         _split_transpose: bool = False) -> tuple[_Carry, _Y]: ...


@overload
def scan(f: Callable[[_Carry, _X], tuple[_Carry, _Y]], init: _Carry, xs: _X | None = None,
         length: int | None = None, reverse: bool = False, unroll: int | bool = 1,
         _split_transpose: bool = False) -> tuple[_Carry, _Y]: ...


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

    A recurrent layer: the carry is its state, and each step gives an output.

    >>> w = jnp.array([[0.5, 0.0], [0.0, 0.5]])
    >>> def step(h, x):
    ...     h = jnp.tanh(h @ w + x)
    ...     return h, h.sum()
    ...
    >>> h, outputs = jax.lax.scan(step, jnp.zeros(2), jnp.ones((5, 2)))
    >>> h.shape, outputs.shape
    ((2,), (5,))
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f argument should be a callable, got {shortened(f)}.")
    x_leaves, x_tree = operands_in("scan (xs)", xs)
    n = _length(x_leaves, x_tree, length)
    if configuration.disable_jit.value:
        return _scan_in_python(f, init, x_leaves, x_tree, n, reverse)
    leaves, tree = operands_in("scan (init)", init)
    element_avals = [_element(get_aval(x), n) for x in x_leaves]
    args_tree = tree_structure((tree_unflatten(tree, leaves), tree_unflatten(x_tree, x_leaves)))

    def traced(carry: Sequence[ShapedArray]) -> TracedFunction:
        body = trace_function("scan", "f", f, args_tree, [*carry, *element_avals], unpacked=True)
        _check_pair(f, body.out_tree, body.closed.out_avals)
        if body.closed.consts:
            check_operands_distinct("scan", f, args_tree, [*leaves, *x_leaves], body.closed.consts)
        return body

    check_operands_distinct("scan", f, args_tree, [*leaves, *x_leaves])
    if any(map(is_ref, x_leaves)):
        check_undivided(x_tree, [True] * len(x_leaves), lambda: DebugInfo("scan", source_of(f)))
    body = traced(list(map(get_aval, leaves)))
    leaves, body, types = traced_with_carry("scan", "f", f, tree, leaves, body, traced,
                                            lambda pair: pair.children()[0])
    closed = body.closed
    params = {"length": n, "reverse": bool(reverse), "unroll": _unroll(unroll, n),
              "_split_transpose": bool(_split_transpose)}
    outs = run_laid(closed, types, lambda carry, consts, xs: bind_scan(
        consts_as_inputs(closed), consts, carry, xs, params), leaves, closed.consts, x_leaves)
    return tree_unflatten(body.out_tree, outs)  # type: ignore[no-any-return]


def _length(xs: Sequence[Any], tree: TreeDef, length: Any) -> int:
    """The number of iterations."""
    avals = list(map(get_aval, xs))
    for aval in avals:
        if aval.is_high and length is None:
            raise ValueError(f"scan: the type {aval} of one of the xs does not tell how many "
                             "elements it has. Say it by `length`.")
    scalars = [i for i, a in enumerate(avals) if not a.is_high and not a.shape]
    if scalars:
        steps = int(xs[0]) if len(xs) == 1 and is_concrete(xs[0]) and dtypes.issubdtype(
            avals[0].dtype, np.integer) else None
        shown = [str(xs[i]) for i in scalars[:4]] + ["..."] * (len(scalars) > 4)
        kind = (tree.node_data() or [None])[0]
        raise ValueError(
            f"scan got value with no leading axis to scan over: {', '.join(shown)}. "
            f"{'The first' if scalars[1:] else 'It'} is xs{leaf_paths(tree)[scalars[0]]}. "
            + (no_array(kind, len(xs), "xs")
               if kind in (list, tuple) and len(scalars) == len(xs) else
               "To have a key for each step give jax.random.split(key, n); one that all share "
               "comes from the enclosing scope of f."
               if dtypes.issubdtype(avals[scalars[0]].dtype, dtypes.prng_key) else
               "What all iterations share comes from the enclosing scope of f, or is init in "
               "lax.scan(f, init, xs)."
               if steps is None else
               f"For that many give jnp.arange({steps}), or to lax.scan None, length={steps}."))
    sizes = {i: a.shape[0] for i, a in enumerate(avals) if not a.is_high}
    if length is not None:
        length = concrete_or_error(
            None, length, "The `length` argument to `scan` expects a concrete `int` value.")
        length = as_int("scan", "length", int(length) if isinstance(length, float) else length)
        other = next((i for i, size in sizes.items() if size != length), None)
        if other is not None:
            raise ValueError(f"scan got `length` argument of {length} which disagrees with leading "
                             f"axis sizes {[*sizes.values()]}. xs{leaf_paths(tree)[other]} is of "
                             f"the shape {avals[other].shape}.")
        if length < 0:
            raise ValueError(f"scan got a negative `length` argument: {length}.")
        return length  # type: ignore[no-any-return]
    if not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided."
                         + " scan(f, init, xs) has init alone: give xs, or a length." * (
                             tree == tree_structure(None)))
    first, size = next(iter(sizes.items()))
    other = next((i for i, n in sizes.items() if n != size), None)
    if other is not None:
        paths = leaf_paths(tree)
        raise ValueError("scan got values with different leading axis sizes: "
                         f"{', '.join(map(str, sizes.values()))}. xs{paths[first]} is of the shape "
                         f"{avals[first].shape}, xs{paths[other]} of {avals[other].shape}.")
    return size  # type: ignore[no-any-return]


def _unroll(unroll: Any, length: int) -> int:
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    n = as_int("scan", "unroll", concrete_or_error(None, unroll, "The `unroll` argument of scan"))
    if n < 0:
        raise ValueError("scan: `unroll` must be a `bool` or a non-negative `int`.")
    return max(min(n, length), 1)


def _check_pair(fun: Callable[..., Any], tree: TreeDef, avals: Sequence[ShapedArray]) -> None:
    if tree.node_data() is None or tree.node_data()[0] not in (
            tuple, list) or len(tree.children()) != 2:
        raise TypeError(f"scan body output must be a pair, got {short_types(tree, avals)}. The "
                        f"body, {source_of(fun)}, returns the carry and what is stacked, or None "
                        f"for that.{returns_nothing(tree)}")


def _scan_in_python(f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Sequence[Any],
                    tree: TreeDef, length: int, reverse: bool) -> tuple[Any, Any]:
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


def bind_scan(body: ClosedJaxpr, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any],
              params: Params) -> list[Any]:
    """The last carry and the stacked results of a scan with these parameters over another body.

    What the body does not change of the carry is a constant of it.
    """
    body, more = without_tracers(body)
    consts = [*more, *consts]
    n = len(consts)
    body, same = without_unchanged(body, n, len(carry))
    changed = selected(carry, negated(same))
    outs = iter(scan_p.bind(
        *consts, *selected(carry, same), *changed, *xs,
        **{**params, "jaxpr": body, "num_consts": n + sum(same), "num_carry": len(changed)}))
    return [*[x if flag else next(outs) for x, flag in zip(carry, same, strict=True)], *outs]


def _element(aval: ShapedArray, length: int) -> ShapedArray:
    """The type of what an iteration gets of an array."""
    if not aval.is_high and entries_of(aval)[0] is not None:
        spec = aval.sharding.spec
        raise ValueError(f"0th dimension of all xs should be replicated. Got {spec}. Call "
                         "jax.reshard on it before, with "
                         f"{spec_to_give(spec.update(partitions=(None, *spec[1:])))}.")
    return without_dim(aval, 0, length)  # type: ignore[no-any-return]


scan_p = register(Primitive("scan", multiple_results=True, cached=False))

# The roles of operands and results, which stand in this order: what all iterations read, what goes
# from one to the next, and what each has a slice of.
CONST, CARRY, SLICE = range(3)


class _Scan(Holder):
    constant = CONST
    carried = CARRY
    loops = True
    keeps = True

    def held(self, params: Params) -> Held:
        body = params["jaxpr"].jaxpr
        a, n = params["num_consts"], params["num_carry"]
        return Held((params["jaxpr"],), 0,
                    (CONST,) * a + (CARRY,) * n + (SLICE,) * (len(body.invars) - a - n),
                    (CARRY,) * n + (SLICE,) * (len(body.outvars) - n), a, n)

    def derived_params(self, params: Params, programs: Programs, ins: Roles, outs: Roles,
                       linear: bool = False) -> Params:
        return {**params, "jaxpr": programs[0], "num_consts": ins.count(CONST),
                "num_carry": ins.count(CARRY)}

    def outside(self, aval: Any, role: Any, params: Params) -> Any:
        return with_dim(aval, 0, params["length"]) if role is SLICE else aval

    def times(self, params: Params) -> int:
        return params["length"]  # type: ignore[no-any-return]

    def arranged(self, programs: Programs, operands: Sequence[Any], ins: Roles, outs: Roles,
                 params: Params) -> Any:
        if sorted(ins) == [*ins] and sorted(outs) == [*outs]:
            return programs, operands, ins, outs, None
        (body,) = programs
        order, out_order = [sorted(range(len(roles)), key=roles.__getitem__)
                            for roles in (ins, outs)]
        if order != list(range(len(ins))):
            body = with_inputs(body, tuple(order))
            operands, ins = [operands[i] for i in order], [ins[i] for i in order]
        if out_order != list(range(len(outs))):
            body = with_outputs(body, tuple(out_order))
            outs = [outs[i] for i in out_order]
        return (body,), operands, ins, outs, out_order

    def bind(self, programs: Programs, operands: Sequence[Any], params: Params, ins: Roles,
             outs: Roles, linear: bool = False) -> list[Any]:
        programs, operands, ins, outs, order = self.ready(programs, operands, params, ins, outs)
        a, n = ins.count(CONST), ins.count(CARRY)
        results = bind_scan(programs[0], operands[:a], operands[a:a + n], operands[a + n:], params)
        return results if order is None else in_order(results, order)

    def batch_place(self, role: Any) -> int:
        return 1 if role is SLICE else 0

    def residual_roles(self, avals: Sequence[Any], params: Params) -> Roles:
        return (SLICE,) * len(avals)

    def apart(self, parts: Sequence[Any], operands: Sequence[Any], params: Params, ins: Roles,
              outs: Roles) -> tuple[list[Any], Programs, list[Any], Roles]:
        """What does not depend on the iteration is computed once, before; what is a result or an
        argument is not stacked again."""
        known, forwarded, n_out = parts[0].known, parts[0].forwarded, len(outs)
        outvars = known.jaxpr.outvars
        moving = tuple([role is not CONST for role in ins])
        still = negated(moving)
        per_iteration = dependent_outputs(known, moving, True)
        fixed = tuple([i >= n_out and not v for i, v in enumerate(per_iteration)])
        once = iter(jaxpr_as_fun(part_of(known, fixed, still, False))(*selected(operands, still))
                    if any(fixed) else ())
        order = list(range(n_out))  # of the results of the scan; the ones after n_out are stacked
        place = {v: i for i, v in enumerate(outvars[:n_out]) if outs[i] is SLICE and type(v) is Var}

        def stacked_at(var: Any, source: int) -> int:
            if var not in place:
                place[var] = len(order)
                order.append(source)
            return place[var]

        found: list[Any] = []  # a value, or its place among the results
        for i in range(n_out, len(outvars)):
            found.append((next(once), None) if fixed[i] else (None, stacked_at(outvars[i], i)))
        for i in forwarded:
            if ins[i] is CARRY:
                found.append((None, stacked_at(known.jaxpr.invars[i], ~i)))
            else:
                found.append((operands[i], None if ins[i] is CONST else -1))
        results = self.bind([with_outputs(known, tuple(order))], operands, params, ins,
                            [*outs, *[SLICE] * (len(order) - n_out)])
        return (results[:n_out], [parts[0].linear],
                [results[at] if at is not None and at >= 0 else x for x, at in found],
                [CONST if at is None else SLICE for _, at in found])

    def other_way(self, params: Params) -> Params:
        return {**params, "reverse": not params["reverse"]}


_Scan(scan_p)
