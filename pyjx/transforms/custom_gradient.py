"""Functions whose own pull-back or transpose the user gives, `custom_gradient` and `linear_call`,
and closures as functions of what they close over, `closure_convert`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from pyjx.core.arithmetic import LAST
from pyjx.core.avals import get_aval, is_valid_value
from pyjx.core.evaluation import eval_jaxpr, jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr
from pyjx.core.primitive import Holding, Primitive, register
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.engine.batching import BatchTrace, match_axis
from pyjx.engine.forward import jvp_flat
from pyjx.engine.functions import (
    FlatFun,
    check_values,
    flatten,
    name_of,
    raise_bad_result,
    source_of,
    tree_text,
)
from pyjx.engine.holders import with_all_consts
from pyjx.engine.subjaxprs import batch_jaxpr
from pyjx.engine.tangents import Zero, add_tangents, instantiate, materialized
from pyjx.engine.types import Dims, Operand, Tangent, Tangents, TreeDef, Value, Values
from pyjx.runtime.abstract import described
from pyjx.runtime.signature import debug_info_of
from pyjx.transforms.arguments import check_callable
from pyjx.transforms.custom_vjp import (
    ACCUMS_CONVENTION,
    CustomVJPPrimal,
    GradAccum,
    NullAccum,
    check_log,
    custom_vjp,
    custom_vjp_primal_tree_values,
)
from pyjx.tree_util import broadcast_prefix, register_pytree_node, tree_map


def _pair(fun: Callable[..., Any], made: Any) -> Any:
    """What a function with its derivative, or `rem` of it, has returned."""
    if isinstance(made, (tuple, list)) and len(made) == 2 and callable(made[1]):
        outs, tree = flatten(made[0])
        if not all(map(is_valid_value, outs)):
            raise_bad_result(f"function {source_of(fun)}", tree, outs)
        return made
    raise TypeError(f"custom_gradient: {source_of(fun)} must return a pair of its output and of a "
                    f"function, the derivative, got {tree_text(made)}.")


def custom_gradient(fun: Callable[..., Any] | None = None, *, with_logs: bool = False,
                    remat: bool = False, with_accums: Any = None) -> Any:
    """A `custom_vjp` function from one that returns its output and its pull-back.

    Args:
      fun: returns `(output, vjp)`, where `vjp` takes a cotangent of the output and returns a tuple
        of cotangents, one for each argument, or the cotangent alone for a single argument.
        Without it, a decorator is returned.
      with_logs: `vjp` returns a pair of the cotangents and a dict of arrays that it logs, as with
        `custom_vjp.defvjp_with_logs`.
      remat: `fun` returns `(output, rem)`, and `rem`, of the same arguments, `(output, vjp)`. In a
        `checkpoint` function `rem` runs in the backward pass; what it closes over is kept.
      with_accums: `vjp` takes a cotangent and, for each argument, accumulators in the argument's
        structure, to which it adds cotangents by their method `accum`; it returns None, or a dict
        of arrays that it logs. A prefix of the tuple of arguments says of which kind they are:
        `ValAccum` or `RefAccum` of `jax.experimental.hijax`. Those of arguments that are not
        differentiated are `NullAccum`.

    Raises:
      TypeError: an entry of `with_accums` is no such kind.
      NotImplementedError: `with_accums` together with `remat`.

    >>> import pyjx as jax
    >>> @jax.custom_gradient
    ... def square(x):
    ...     return x * x, lambda g: (g * 10.0,)
    ...
    >>> float(jax.grad(square)(3.0))
    10.0
    """
    if fun is None:
        return lambda f: custom_gradient(f, with_logs=with_logs, remat=remat,
                                         with_accums=with_accums)
    check_callable(fun)
    if with_accums is not None and remat:
        raise NotImplementedError("custom_gradient: with_accums together with remat is not "
                                  "supported. Use custom_vjp and its method defremat.")

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _pair(fun, fun(*args, **kwargs))[0]

    wrapped.__name__ = wrapped.__qualname__ = name_of(fun)
    wrapped.__doc__ = getattr(fun, "__doc__", None)
    wrapped.__wrapped__ = fun  # type: ignore[attr-defined]

    def pulling_back(out: Any, pull_back: Callable[..., Any], args: tuple[Any, ...]) -> _Closure:
        in_tree = flatten(args)[1]

        def to_tuple(cotangent: Tangent) -> Any:
            result = pull_back(cotangent)
            cts, log = result if with_logs else (result, None)
            if len(args) == 1 and flatten(cts)[1] != in_tree:
                cts = (cts,)
            return (cts, log) if with_logs else cts

        tangents = [get_aval(x).to_tangent_aval() for x in flatten(out)[0]]
        return _closure(to_tuple, flatten((out,))[1], tangents, pull_back)

    def fwd(*args: Any) -> Any:
        out, pull_back = _pair(fun, fun(*args))
        return out, pulling_back(out, pull_back, args)

    def fwd_saving(*args: Any) -> Any:
        out, rem = _pair(fun, fun(*args))

        def again(*args: Any) -> Any:
            out, pull_back = _pair(fun, rem(*args))
            return out, pulling_back(out, pull_back, args)

        leaves, in_tree = flatten(args)
        return out, _closure(again, in_tree, [get_aval(x) for x in leaves])

    def rem(saved: _Closure, *args: Any) -> Any:
        return saved(*args)

    def bwd(pull_back: _Closure, cotangent: Tangent) -> Any:
        return pull_back(cotangent)

    bwd.__name__ = bwd.__qualname__ = "vjp"  # as what it stands for is told of
    function = custom_vjp(wrapped)
    if with_accums is not None:
        function.defvjp_with_logs(*_accumulating(fun, with_accums), symbolic_zeros=True)
    elif remat:
        (function.defremat_with_logs if with_logs else function.defremat)(fwd_saving, rem, bwd)
    else:
        (function.defvjp_with_logs if with_logs else function.defvjp)(fwd, bwd)
    return function


def _accumulating(fun: Callable[..., Any], with_accums: Any
                  ) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The rules of a function whose pull-back adds to accumulators."""

    def fwd(*primals: Any) -> Any:
        args = custom_vjp_primal_tree_values(primals)
        out, pull_back = fun(*args)
        leaves, in_tree = flatten(args)
        perturbed = [p.perturbed for p in
                     flatten(primals, lambda x: isinstance(x, CustomVJPPrimal))[0]]
        avals = [get_aval(x).to_tangent_aval() for x in leaves]
        kinds = _kinds_of_accumulators(with_accums, args, perturbed)

        def to_tuple(cotangent: Tangent) -> Any:
            accumulators = [kind(a) for kind, a in zip(kinds, avals, strict=True)]
            log = pull_back(cotangent, *in_tree.unflatten(accumulators))
            check_log(log, ACCUMS_CONVENTION)
            return in_tree.unflatten([materialized(a.freeze()) for a in accumulators]), log

        tangents = [get_aval(x).to_tangent_aval() for x in flatten(out)[0]]
        return out, _closure(to_tuple, flatten((out,))[1], tangents, pull_back)

    def bwd(pull_back: _Closure, cotangent: Tangent) -> Any:
        return pull_back(tree_map(materialized, cotangent, is_leaf=lambda x: type(x) is Zero))

    return fwd, bwd


def _kinds_of_accumulators(spec: Any, args: tuple[Any, ...], perturbed: Sequence[bool]
                           ) -> list[type[GradAccum]]:
    """The kind of each leaf of the arguments."""
    kinds = broadcast_prefix(spec, args)
    for kind in kinds:
        if not isinstance(kind, type) or not issubclass(kind, GradAccum) or kind is NullAccum:
            raise TypeError(
                "custom_gradient's with_accums must be a pytree prefix of the function's arguments "
                f"with ValAccum or RefAccum leaves, but got a leaf {kind}.")
    return [kind if p else NullAccum for kind, p in zip(kinds, perturbed, strict=True)]


class _Closure:
    """A traced function as residuals: what it closes over are the leaves."""

    __slots__ = ("consts", "jaxpr", "tree")

    def __init__(self, jaxpr: Jaxpr, tree: TreeDef, consts: Sequence[Any]) -> None:
        self.jaxpr = jaxpr
        self.tree = tree
        self.consts = consts

    def __call__(self, *args: Any) -> Any:
        return self.tree.unflatten(eval_jaxpr(self.jaxpr, self.consts, *flatten(args)[0]))


def _closure(fun: Callable[..., Any], in_tree: TreeDef, avals: Sequence[Any],
             of: Callable[..., Any] | None = None) -> _Closure:
    flat = FlatFun(fun, in_tree, of=of)
    closed = trace_to_jaxpr(flat, avals, debug_info_of("custom_gradient", flat.of, in_tree))
    return _Closure(closed.jaxpr, flat.out_tree, closed.consts)


register_pytree_node(_Closure, lambda r: (r.consts, (r.jaxpr, r.tree)),
                     lambda aux, consts: _Closure(aux[0], aux[1], consts))


def closure_convert(fun: Callable[..., Any], *example_args: Any
                    ) -> tuple[Callable[..., Any], list[Any]]:
    """Turn values that a function closes over, and that may be differentiated, into arguments.

    Args:
      fun: a function of positional arguments.
      *example_args: arguments, or types of arguments, that it will be called with.

    Returns:
      `(converted, values)`: `converted(*args, *values)` equals `fun(*args)`.

    >>> import pyjx as jax
    >>> converted, values = jax.closure_convert(lambda x: x * 2.0, 1.0)
    >>> float(converted(3.0, *values))
    6.0
    """
    leaves, in_tree = flatten(example_args)
    flat = FlatFun(fun, in_tree)
    closed = trace_to_jaxpr(flat, [get_aval(described(x)) for x in leaves],
                            debug_info_of("closure_convert", fun, in_tree))
    hoist = [_may_be_perturbed(c) for c in closed.consts]
    values = [c for c, h in zip(closed.consts, hoist, strict=True) if h]
    kept = [None if h else c for c, h in zip(closed.consts, hoist, strict=True)]
    n_values = len(values)

    def converted(*args: Any) -> Any:
        given = iter(args[len(args) - n_values:])
        flat_args, tree = flatten(args[:len(args) - n_values])
        if tree != in_tree:
            raise TypeError("closure_convert: the arguments have another tree structure than the "
                            f"example arguments: expected {in_tree}, got {tree}")
        consts = [next(given) if h else c for c, h in zip(kept, hoist, strict=True)]
        return flat.unflatten(eval_jaxpr(closed.jaxpr, consts, *flat_args))

    converted.__name__ = name_of(fun)
    return converted, values


def _may_be_perturbed(x: Any) -> bool:
    """Whether a constant could be under differentiation: a tracer of an inexact dtype."""
    return isinstance(x, Tracer) and not x.aval.to_tangent_aval().is_float0


# -- linear functions with transposes of the user's ------------------------------------------------

# Its operands are residuals, among them what the two programs close over, and linear arguments.


def _bind(callee: ClosedJaxpr, transpose: ClosedJaxpr, num_res: int, *operands: Value) -> list[Any]:
    programs, consts = with_all_consts([callee, transpose])
    return linear_call_p.bind(  # type: ignore[no-any-return]
        *consts, *operands, callee=programs[0], transpose=programs[1],
        num_res=len(consts) + num_res)


def _jvp(primals: Values, tangents: Tangents, *, callee: ClosedJaxpr, transpose: ClosedJaxpr,
         num_res: int) -> Any:
    outs = _bind(callee, transpose, num_res, *primals)
    out_tangents: list[Any] = [Zero.of_primal(x) for x in outs]
    linear = tangents[num_res:]
    if any(type(t) is not Zero for t in tangents[:num_res]):  # by the function
        still = [*tangents[:num_res], *map(Zero.of_primal, primals[num_res:])]
        out_tangents = jvp_flat(jaxpr_as_fun(callee), primals, still)[1]
    if any(type(t) is not Zero for t in linear):
        out_tangents = list(map(add_tangents, out_tangents, _bind(
            callee, transpose, num_res, *primals[:num_res], *map(instantiate, linear))))
    return outs, out_tangents


def _transpose(cts: Tangents, *operands: Operand, callee: ClosedJaxpr, transpose: ClosedJaxpr,
               num_res: int) -> list[Any]:
    outs = _bind(transpose, callee, num_res, *operands[:num_res], *map(instantiate, cts))
    return [None] * num_res + outs


def _batch(trace: BatchTrace, operands: Values, dims: Dims, *, callee: ClosedJaxpr,
           transpose: ClosedJaxpr, num_res: int) -> Any:
    """Linear operands and results are mapped, all of them: what is the same for all examples has
    the sum of their cotangents."""
    axis, n = trace.axis, num_res
    linear = [match_axis(x, d, 0, axis) for x, d in zip(operands[n:], dims[n:], strict=True)]
    places = [(0,) * len(program.out_avals) for program in (transpose, callee)]
    run, back = [batch_jaxpr(program, (*dims[:n], *ins), axis, outs).jaxpr for program, ins, outs
                 in zip((callee, transpose), places, places[::-1], strict=True)]
    return _bind(run, back, n, *operands[:n], *linear), places[1]


linear_call_p = register(Primitive(
    "linear_call", shape_rule=lambda *avals, callee, **_: callee.out_avals, jvp=_jvp,
    batch_axis=_batch, transpose=_transpose, multiple_results=True, cached=False, linear=LAST,
    decomposition=lambda *operands, callee, **_: jaxpr_as_fun(callee)(*operands),
    effects=lambda params: params["callee"].effects, own_rules=True,
    holder=Holding(runs=itemgetter("callee")),
))


def linear_call(fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any,
                linear_args: Any) -> Any:
    """Call a linear function whose transpose is given.

    Args:
      fun: `(residual_args, linear_args) -> output`, linear in its second argument.
      fun_transpose: `(residual_args, cotangent of the output) -> cotangent of linear_args`.
      residual_args, linear_args: pytrees of arrays.

    Raises:
      TypeError: the result of `fun_transpose` has not the structure of `linear_args`.

    >>> import pyjx as jax
    >>> from pyjx.custom_derivatives import linear_call
    >>> f = lambda x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 2.0, x)
    >>> float(f(3.0)), float(jax.linear_transpose(f, 1.0)(3.0)[0])
    (1.5, 1.5)
    """
    operands, in_tree = flatten((residual_args, linear_args))
    linear, linear_tree = flatten(linear_args)
    check_values(operands)
    n = len(operands) - len(linear)
    flat = FlatFun(fun, in_tree)
    avals = [get_aval(x) for x in operands]
    callee = trace_to_jaxpr(flat, avals, debug_info_of("linear_call", fun, in_tree))
    tree = flatten((residual_args, flat.unflatten(callee.out_avals)))[1]
    backward = FlatFun(fun_transpose, tree)
    transposed = trace_to_jaxpr(
        backward, [*avals[:n], *[a.to_tangent_aval() for a in callee.out_avals]],
        debug_info_of("linear_call", fun_transpose, tree))
    if backward.out_tree != linear_tree:
        raise TypeError(
            "linear_call: transpose function's output structure must match that of linear inputs, "
            f"got output structure {backward.out_tree} and input structure {linear_tree}.")
    return flat.unflatten(_bind(callee, transposed, n, *operands))
