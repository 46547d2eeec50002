"""Operations that bring their own derivatives and batches: functions with rules as methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx import lax
from pyjx.compat.open_primitives import Primitive
from pyjx.core.avals import AbstractValue, get_aval
from pyjx.core.named_axes import Axis
from pyjx.core.primitive import RULE_KINDS
from pyjx.core.source_info import current as current_source_info
from pyjx.core.trace import DynamicJaxprTrace, Trace, state
from pyjx.engine.batching import batch_flat
from pyjx.engine.tangents import Zero, instantiate
from pyjx.engine.types import Tangent
from pyjx.lax.references import new_ref
from pyjx.transforms.accumulators import GradAccum, ValAccum, is_nothing
from pyjx.transforms.custom_jvp import custom_jvp
from pyjx.transforms.custom_vjp import custom_vjp
from pyjx.transforms.custom_vmap import custom_vmap
from pyjx.transforms.linearize import linear_transpose
from pyjx.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

# -- where gradients go ----------------------------------------------------------------------------


class RefAccum(GradAccum):
    """A sum in a reference, made when something is added, or asked for by `inst`."""

    ref: Any

    def __init__(self, aval: AbstractValue, ref: Any = None) -> None:
        super().__init__(aval)
        self.ref = ref

    def accum(self, x: Any) -> None:
        if not is_nothing(self.aval, x):
            self.inst().ref[...] += x

    def inst(self) -> RefAccum:
        """The same, which has its reference now."""
        if self.ref is None:
            self.ref = new_ref(instantiate(Zero(self.aval)))
        return self

    def freeze(self) -> Any:
        return Zero(self.aval) if self.ref is None else self.ref[...]


# -- operations ------------------------------------------------------------------------------------


class HiPrim:
    """An operation. A subclass sets, before it calls `super().__init__()`, `in_avals` (a tuple of
    pytrees of types, one for each operand), `out_aval` (a pytree of types) and `params` (a dict,
    whose entries are attributes afterwards), and has methods:

      expand(*args): what it computes.
      jvp(primals, tangents): result and tangent; or
      lin(nzs_in, *primals), which gives the result and residuals, and linearized(residuals,
        *tangents), which gives the tangent; or
      vjp_fwd(nzs_in, *args), which gives the result and residuals, and vjp_bwd_retval(residuals,
        ct), which gives the operands' cotangents, or vjp_bwd(residuals, ct, *accums), which adds
        them to accumulators. Without any of these it has the derivative of `expand`.
      batch(axis_data, args, dims): result and the places of its axis; else `expand` is mapped.
      transpose(out_ct, *maybe_accums): of one that is linear in operands, which are accumulators.

    >>> import pyjx as jax
    >>> from pyjx.experimental.hijax import HiPrim
    >>> class Double(HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (jax.typeof(x),), jax.typeof(x), {}
    ...         super().__init__()
    ...     def expand(self, x): return 2 * x
    ...     def jvp(self, primals, tangents): return self(*primals), 20 * tangents[0]
    ...
    >>> double = lambda x: Double(x)(x)
    >>> float(double(1.0)), float(jax.jit(jax.grad(double))(1.0))
    (2.0, 20.0)
    """

    in_avals: tuple[Any, ...] = ()
    out_aval: Any = None
    params: dict[str, Any] = {}  # noqa: RUF012
    effects: frozenset[Any] = frozenset()
    skip_linearization_on_zero_tangents = False

    def __init__(self) -> None:
        vars(self).update(self.params)
        self._run = _with_rules(self)

    def __call__(self, *args: Any) -> Any:
        if len(args) != len(self.in_avals):
            raise TypeError(f"{type(self).__name__} takes {len(self.in_avals)} operands, got "
                            f"{len(args)}")
        self.check(*map(_types_of, args))
        trace = state.dynamic
        if _has(self, "staging") and type(trace) is DynamicJaxprTrace:
            return self.staging(trace, current_source_info(), *args)
        return self._run(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.pp_params()}]"

    def pp_params(self) -> dict[str, Any]:
        """The parameters, for messages."""
        return self.params

    def check(self, *arg_tys: Any) -> None:
        """Raise TypeError unless operands of these types are taken; all are."""

    def expand(self, *args: Any) -> Any:
        """What it computes."""
        raise NotImplementedError(f"{type(self).__name__} must override expand")

    def physicalize(self, ctx: Any, *args: Any) -> Any:
        """What it computes on the data of keys."""
        return self.expand(*args)

    # -- rules that subclasses may have; each of these raises NotImplementedError

    def jvp(self, primals: Any, tangents: Any) -> Any:
        self._lacks("jvp")

    def lin(self, nzs_in: Any, *primals: Any) -> Any:
        self._lacks("lin")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        self._lacks("linearized")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        self._lacks("vjp_fwd")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        for accum, ct in zip(arg_accums, self.vjp_bwd_retval(res, outgrad), strict=True):
            accum.accum(ct)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        self._lacks("vjp_bwd_retval")

    def vjp_bwd_retval_logs(self, res: Any, outgrad: Any, /) -> tuple[Any, dict[str, Any]]:
        return self.vjp_bwd_retval(res, outgrad), {}

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        self._lacks("batch")

    def batch_dim_rule(self, axis_data: Any, dims: Any) -> Any:
        """Where the result has its axis, of one whose batch is itself on batches."""
        self._lacks("batch_dim_rule")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        self._lacks("transpose")

    # -- what asks for more than a function with rules has

    def dce(self, used_outs: Any, live_ins: Any) -> Any:
        """Which operands it needs for some of its results: all, and itself."""
        return [True] * len(self.in_avals), self

    def remat(self, trace: Any, *args: Any) -> Any:
        """What it is in a backward pass that computes it again: itself."""
        return self(*args)

    def staging(self, trace: Trace, source_info: Any, *args: Any) -> Any:
        """What it is where a program is recorded: the program of `expand`, with its rules."""
        return self._run(*args)

    def _lacks(self, rule: str) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must override {rule}")


def _has(prim: HiPrim, rule: str) -> bool:
    return getattr(type(prim), rule) is not getattr(HiPrim, rule)


class VJPHiPrimitive(HiPrim):
    """As `HiPrim`, by its older name."""

    def dce(self, used_outs: Any) -> Any:  # type: ignore[override]
        """Which operands it needs for some of its results, which of these it gives, and itself."""
        used = any(tree_leaves(used_outs))
        return used, used, self if used else None

    def remat(self, _policy: Any, *args: Any) -> Any:
        """Its result, and what computes it again in a backward pass: itself."""
        return self(*args), self


def _is_type(x: Any) -> bool:
    return isinstance(x, AbstractValue)


def _types_of(arg: Any) -> Any:
    try:
        return get_aval(arg)  # of a class that is registered, too
    except TypeError:
        return tree_map(get_aval, arg)


def _with_rules(prim: HiPrim) -> Callable[..., Any]:
    """`expand` with the rules that the subclass has."""
    run: Any = prim.expand
    if _has(prim, "vjp_fwd") and type(prim).vjp_fwd not in _DERIVED:
        run = _with_backward(prim, run)
    elif _has(prim, "jvp") or _has(prim, "lin"):
        run = _with_forward(prim, run)
    if not _has(prim, "batch"):
        return run  # type: ignore[no-any-return]
    mapped = custom_vmap(run)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> Any:
        dims = tree_map(lambda batched: 0 if batched else None, tuple(in_batched))
        out, out_dims = prim.batch(_Axis(axis_size), args, dims)
        front = tree_map(lambda x, d: x if d is None else _front(x, d), out,
                         _dims_like(out, out_dims))
        return front, tree_map(lambda d: d is not None, _dims_like(out, out_dims),
                               is_leaf=lambda d: d is None)

    return mapped


def _front(x: Any, dim: int) -> Any:
    order = [dim, *[i for i in range(get_aval(x).ndim) if i != dim]]
    return lax.transpose(x, order) if dim else x


def _dims_like(out: Any, dims: Any) -> Any:
    """A place for each leaf of a result."""
    return tree_map(lambda _: dims, out) if dims is None or isinstance(dims, int) else dims


class _Axis:
    """What a batching rule is told of the axis."""

    name = spmd_name = explicit_mesh_axis = None

    def __init__(self, size: int) -> None:
        self.size = size


def _with_forward(prim: HiPrim, run: Callable[..., Any]) -> Any:
    fun = custom_jvp(run)

    @fun.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        if _has(prim, "jvp"):
            return prim.jvp(primals, tangents)
        out, residuals = prim.lin([True] * len(primals), *primals)
        return out, prim.linearized(residuals, *tangents)

    return fun


def _with_backward(prim: HiPrim, run: Callable[..., Any]) -> Any:
    fun = custom_vjp(run)

    def forward(*args: Any) -> Any:
        return prim.vjp_fwd([True] * len(args), *args)

    def backward(residuals: Any, ct: Tangent) -> tuple[Any, ...]:
        if _has(prim, "vjp_bwd_retval"):
            return tuple(prim.vjp_bwd_retval(residuals, ct))
        accums = [ValAccum(aval) for aval in prim.in_avals]
        prim.vjp_bwd(residuals, ct, *accums)
        return tuple([None if type(c) is Zero else c for c in [a.freeze() for a in accums]])

    fun.defvjp(forward, backward)
    return fun


# -- rules made of others --------------------------------------------------------------------------


def jvp_from_lin(self: HiPrim, primals: Any, tangents: Any) -> Any:
    """The rule `jvp` of an operation that has `lin` and `linearized`."""
    out, residuals = self.lin([type(t) is not Zero for t in tangents], *primals)
    return out, self.linearized(residuals, *tangents)


class _RulePair(tuple[Callable[..., Any], Callable[..., Any]]):
    """Two rules, which the body of a class takes apart."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        names = ", ".join([rule.__name__ for rule in self])
        raise TypeError(f"({names}) is a pair of rules, not a single rule; unpack it in the class "
                        f"body: `{names} = ...`")


def _lin(self: HiPrim, nzs_in: Any, *primals: Any) -> Any:
    zeros = tree_map(lambda x: instantiate(Zero(get_aval(x).to_tangent_aval())), primals)
    return self.jvp(primals, zeros)[0], primals


def _linearized(self: HiPrim, residuals: Any, *tangents: Any) -> Any:
    return self.jvp(residuals, tangents)[1]


def _fwd_from_jvp(self: HiPrim, nzs_in: Any, /, *primals: Any) -> Any:
    return self.expand(*primals), primals


def _bwd_from_jvp(self: HiPrim, res: Any, outgrad: Any, /) -> Any:
    return _pulled(lambda *ts: self.jvp(res, ts)[1], res, outgrad)


def _fwd_from_lin(self: HiPrim, nzs_in: Any, /, *primals: Any) -> Any:
    out, residuals = self.lin(nzs_in, *primals)
    return out, (residuals, primals)


def _bwd_from_lin(self: HiPrim, res: Any, outgrad: Any, /) -> Any:
    residuals, primals = res
    return _pulled(lambda *ts: self.linearized(residuals, *ts), primals, outgrad)


# `lin, linearized` of an operation that has `jvp`.
linearize_from_jvp = _RulePair((_lin, _linearized))
# `vjp_fwd, vjp_bwd_retval` of one that has `jvp`, and of one that has `lin` and `linearized`.
vjp_from_jvp = _RulePair((_fwd_from_jvp, _bwd_from_jvp))
vjp_from_lin = _RulePair((_fwd_from_lin, _bwd_from_lin))
_DERIVED = (_fwd_from_jvp, _fwd_from_lin)


def _pulled(linear: Callable[..., Any], primals: Any, ct: Tangent) -> Any:
    """The transpose of a map of tangents."""
    zeros = tree_map(lambda x: instantiate(Zero(get_aval(x).to_tangent_aval())), tuple(primals))
    return linear_transpose(linear, *zeros)(ct)


# -- batching rules --------------------------------------------------------------------------------


def bdims_at_front(axis_data: Any, args: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    """The batches with their axes in front; what all examples share is repeated."""
    return [tree_map(lambda x, d=d: lax.broadcast(x, (axis_data.size,)) if d is None
                     else _front(x, d), x) for x, d in zip(args, dims, strict=True)]


def unmap_avals(axis_data: Any, avals: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    """The types of batches from those of examples."""
    return [tree_map(lambda a, d=d: a.inc_rank(axis_data.size, d), aval, is_leaf=_is_type)
            for aval, d in zip(avals, dims, strict=True)]


def vmap_rule(axis_data: Any, f: Callable[..., Any], in_axes: Sequence[Any], out_axes: Any, *,
              sum_match: bool = False) -> Callable[..., Any]:
    """`f` mapped along the axis, for rules that are given whole batches.

    Args:
      in_axes, out_axes: as of `vmap`.
      sum_match: results whose axis `out_axes` does not have are summed over the examples.
    """
    from_axis = getattr(axis_data, "axis", axis_data)

    def mapped(*args: Any) -> Any:
        leaves, tree = tree_flatten(args)
        dims = [d for a, d in zip(args, in_axes, strict=True) for _ in tree_leaves(a)]
        found: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            outs, out_tree = tree_flatten(f(*tree_unflatten(tree, xs)))
            found[:] = [out_tree]
            return outs

        outs, places = batch_flat(flat, leaves, dims, _axis(from_axis))
        wanted = tree_leaves(_dims_like(tree_unflatten(found[0], outs), out_axes),
                             is_leaf=lambda d: d is None)
        results = [_placed(x, d, w, from_axis.size, sum_match)
                   for x, d, w in zip(outs, places, wanted, strict=True)]
        return tree_unflatten(found[0], results)

    return mapped


def _axis(axis: Any) -> Axis:
    return axis if isinstance(axis, Axis) else Axis(axis.name, axis.size)


def _placed(x: Any, dim: int | None, wanted: int | None, size: int, sum_match: bool) -> Any:
    if wanted is None:
        return x if dim is None or not sum_match else lax.reduce_sum(x, axes=(dim,))
    front = lax.broadcast(x, (size,)) if dim is None else _front(x, dim)
    order = list(range(1, get_aval(front).ndim))
    order.insert(wanted, 0)
    return lax.transpose(front, order)


class HiPrimitive(Primitive):
    """An operation by its name, with rules that subclasses have as methods: `abstract_eval(*avals,
    **params)`, which gives types and effects, `to_lojax`, which runs it, `jvp` and `transpose`."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name)
        for kind in RULE_KINDS:  # those of the class count
            vars(self).pop(kind, None)
        self.decomposition = self.to_lojax
        self.shape_rule = lambda *avals, **params: self.abstract_eval(*avals, **params)[0]
