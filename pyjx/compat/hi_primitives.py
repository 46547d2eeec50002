"""Operations that bring their own derivatives and batches: functions with rules as methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from pyjx import lax
from pyjx.compat import open_primitives
from pyjx.core import dtypes
from pyjx.core.avals import AbstractValue, get_aval, is_valid_value
from pyjx.core.effects import Effects, has_own_types
from pyjx.core.explicit import spec_of
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.named_axes import Axis
from pyjx.core.places import joined
from pyjx.core.prefixes import broadcast_argument
from pyjx.core.primitive import RULE_KINDS, Holding, Primitive
from pyjx.core.source_info import current as current_source_info
from pyjx.core.trace import DynamicJaxprTrace, Trace
from pyjx.engine.axes import at_front
from pyjx.engine.batching import BatchTrace, batch_again, batch_flat, match_axis
from pyjx.engine.custom_derivative_calls import tangent_result
from pyjx.engine.forward import jvp_flat
from pyjx.engine.linearize import LinearTrace
from pyjx.engine.own_types import part_types
from pyjx.engine.subjaxprs import negated, nonzero_flags, selected
from pyjx.engine.tangents import Zero, instantiate, is_undefined_primal
from pyjx.engine.types import Dims, Flags, Operand, Params, Tangent, Tangents, Values
from pyjx.lax.references import new_ref
from pyjx.transforms.custom_vjp import GradAccum, NullAccum, ValAccum, is_nothing
from pyjx.transforms.linearize import linear_transpose
from pyjx.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

# -- where gradients go ----------------------------------------------------------------------------


class RefAccum(GradAccum):
    """A sum in a reference, made when something is added, or asked for by `inst`."""

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


# The operations whose `staging` runs, in this thread: what it calls of them is recorded.
_staged: ContextVar[tuple[HiPrim, ...]] = ContextVar("operations being staged", default=())


class HiPrim:
    """An operation. A subclass sets, before it calls `super().__init__()`, `in_avals` (a tuple of
    pytrees of types, one for each operand), `out_aval` (a pytree of types) and `params` (a dict,
    whose entries are attributes afterwards), and has the method `expand(*args)`: what it computes,
    on values. Two with equal types and parameters are one operation. Rules are methods, too:

      jvp(primals, tangents): result and tangent.
      vjp_fwd(nzs_in, *args), which gives the result and residuals, and vjp_bwd_retval(residuals,
        ct), which gives the operands' cotangents, or vjp_bwd(residuals, ct, *accums), which adds
        them to accumulators. Without these reverse mode transposes one of the other two.
      lin(nzs_in, *primals), which gives the result and residuals, and linearized(residuals,
        *tangents), which gives the tangent.
      transpose(out_ct, *maybe_accums): of one that is linear in operands, which are accumulators.
      batch(axis_data, args, dims): result and the places of its axis.
      dce(used_outs, live_ins): see there.

    Where there is none of the first three and all types are those of arrays it has the derivatives
    of `expand`, and is mapped as that is. Tangents that are zero are `Zero`s.

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
        self._in_types, self._in_tree = tree_flatten(tuple(self.in_avals))
        self._out_types, self._out_tree = tree_flatten(self.out_aval)

    def __call__(self, *args: Any) -> Any:
        if len(args) != len(self.in_avals):
            raise TypeError(f"{type(self).__name__} takes {len(self.in_avals)} operands, got "
                            f"{len(args)}")
        leaves, tree = tree_flatten(args)
        if tree != self._in_tree:
            raise TypeError(f"{type(self).__name__}: expected operands of the structure "
                            f"{self._in_tree}, that of its in_avals, got {tree}")
        if _has(self, "check"):
            self.check(*map(_types_of, args))
        return tree_unflatten(self._out_tree, call_hi_primitive_p.bind(*leaves, _prim=self))

    def __repr__(self) -> str:
        shown = ", ".join([f"{k}={v}" for k, v in self.pp_params().items()])
        return f"{type(self).__name__}[{shown}]" if shown else type(self).__name__

    def _key(self) -> tuple[Any, ...]:
        return (type(self), self._in_tree, self._out_tree, *self._in_types, *self._out_types,
                *sorted(self.params.items()))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, HiPrim) and self._key() == other._key())

    def __hash__(self) -> int:
        try:
            return hash(self._key())
        except TypeError:  # a parameter is none to hash
            return hash(type(self))

    def pp_params(self) -> dict[str, Any]:
        """The parameters that programs show."""
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
        self._lacks("jvp", "jvp")

    def lin(self, nzs_in: Any, *primals: Any) -> Any:
        self._lacks("linearize", "lin")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        self._lacks("linearize", "linearized")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        self._lacks("grad", "vjp_fwd")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        for accum, ct in zip(arg_accums, self.vjp_bwd_retval(res, outgrad), strict=True):
            _add_to(accum, ct)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        self._lacks("grad", "vjp_bwd_retval")

    def vjp_bwd_retval_logs(self, res: Any, outgrad: Any, /) -> tuple[Any, dict[str, Any]]:
        return self.vjp_bwd_retval(res, outgrad), {}

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        self._lacks("vmap", "batch")

    def batch_dim_rule(self, axis_data: Any, dims: Any) -> Any:
        """Where the result has its axis, of one whose batch is itself on batches."""
        self._lacks("vmap", "batch_dim_rule")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        self._lacks("transpose", "transpose")

    # -- what else it may say

    def dce(self, used_outs: Any, live_ins: Any) -> Any:
        """Where only some results are used: for each operand whether it is read, and the operation
        in its place, which takes all operands all the same."""
        return (*live_ins, self)

    def _without_unused(self, used: Any, live: Any) -> Any:
        return self.dce(used, live)[-1]

    def remat(self, trace: Any, *args: Any) -> Any:
        """What it is in a backward pass that computes it again: itself."""
        return self(*args)

    def staging(self, trace: Trace, source_info: Any, *args: Any) -> Any:
        """What it is where a program is recorded: an operation of it."""
        token = _staged.set((*_staged.get(), self))
        try:
            return self(*args)
        finally:
            _staged.reset(token)

    def _lacks(self, what: str, rule: str) -> Any:
        raise NotImplementedError(f"for {what} support, subclass {type(self)} must implement "
                                  f"`{rule}`{_DERIVATIONS.get(what, '')}")


_DERIVATIONS = {
    "grad": ", or have it made of another one: `vjp_fwd, vjp_bwd_retval = vjp_from_jvp` (or "
            "`= vjp_from_lin`)",
    "linearize": ", or have it made of `jvp`: `lin, linearized = linearize_from_jvp`",
}


def _has(prim: HiPrim, rule: str) -> bool:
    return getattr(type(prim), rule) is not getattr(HiPrim, rule)


class VJPHiPrimitive(HiPrim):
    """As `HiPrim`, by its older name."""

    def dce(self, used_outs: Any) -> Any:  # type: ignore[override]
        """Which operands it needs for some of its results, which of these it gives, and itself."""
        used = any(tree_leaves(used_outs))
        return used, used, self if used else None

    def _without_unused(self, used: Any, live: Any) -> Any:
        return self.dce(used)[-1]

    def remat(self, _policy: Any, *args: Any) -> Any:  # type: ignore[override]
        """Its result, and what computes it again in a backward pass: itself."""
        return self(*args), self


def _types_of(arg: Any) -> Any:
    try:
        return get_aval(arg)  # of a class that is registered, too
    except TypeError:
        return tree_map(get_aval, arg)


# -- as an operation of programs -------------------------------------------------------------------


def _is_zero(x: Any) -> bool:
    return type(x) is Zero


def _without_rules(prim: HiPrim) -> bool:
    """Whether it is what `expand` is to transformations, which run it on what they trace."""
    return not (_has(prim, "jvp") or _has(prim, "lin") or _has(prim, "vjp_fwd") or any(
        [a.is_high for a in (*prim._in_types, *prim._out_types)]))


def _flat(prim: HiPrim, out: Any, what: str) -> list[Any]:
    """The leaves of a result, or of its tangent."""
    leaves, tree = tree_flatten(out, _is_zero)
    if tree != prim._out_tree:
        raise TypeError(f"{type(prim).__name__}.{what}: expected a result of the structure "
                        f"{prim._out_tree}, that of its out_aval, got {tree}")
    return leaves


def _run(*leaves: Any, _prim: HiPrim) -> list[Any]:
    return _flat(_prim, _prim.expand(*tree_unflatten(_prim._in_tree, leaves)), "expand")


def _shape(*avals: Any, _prim: HiPrim) -> list[Any]:
    if any([a.is_high for a in (*avals, *_prim._out_types)]):
        axes = joined([t for a in avals for t in part_types(a)])
        for out in _prim._out_types:
            for part in part_types(out):
                if not axes <= part.place.mat.varying:
                    raise ValueError(
                        f"{_prim!r}: its operands vary along {sorted(map(str, axes))}, and its "
                        f"result of type {out} does not by its type (out_aval). Have the type say "
                        "so, or pass check_vma=False to shard_map.")
    return _prim._out_types


def _record(trace: DynamicJaxprTrace, leaves: Values, params: Params) -> Any:
    """The results where the operation has a say in it; None where it is recorded."""
    prim = params["_prim"]
    if not _has(prim, "staging") or any([prim is staged for staged in _staged.get()]):
        return None
    args = tree_unflatten(prim._in_tree, leaves)
    return _flat(prim, prim.staging(trace, current_source_info(), *args), "staging")


def _jvp(primals: Values, tangents: Tangents, _prim: HiPrim) -> Any:
    if _without_rules(_prim):
        return jvp_flat(lambda *xs: _run(*xs, _prim=_prim), primals, tangents)
    args, moving = [tree_unflatten(_prim._in_tree, xs) for xs in (primals, tangents)]
    if _has(_prim, "jvp") or not _has(_prim, "lin"):
        out, tangent = _prim.jvp(args, moving)
    else:
        out, tangent = jvp_from_lin(_prim, args, moving)
    return _flat(_prim, out, "jvp"), list(map(tangent_result, _flat(_prim, tangent, "jvp")))


def _linearize(trace: LinearTrace, primals: Values, tangents: Tangents, _prim: HiPrim) -> Any:
    """By the rules of reverse mode, if they are the user's; else by one of the others."""
    zeros = [Zero(a.to_tangent_aval()) for a in _prim._out_types]
    nonzero = nonzero_flags(tangents)
    if True not in nonzero:
        return call_hi_primitive_p.bind(*primals, _prim=_prim), zeros
    if _without_rules(_prim):
        return _jvp(primals, tangents, _prim)
    args = tree_unflatten(_prim._in_tree, primals)
    nzs = tree_unflatten(_prim._in_tree, nonzero)
    by_user = _has(_prim, "vjp_fwd") and type(_prim).vjp_fwd not in _DERIVED
    if not by_user and _has(_prim, "lin"):
        out, residuals = _prim.lin(nzs, *args)
        tangent = _prim.linearized(residuals, *tree_unflatten(_prim._in_tree, tangents))
        return _flat(_prim, out, "lin"), list(map(tangent_result, _flat(
            _prim, tangent, "linearized")))
    if not by_user and _has(_prim, "jvp"):
        return _jvp(primals, tangents, _prim)
    out, residuals = _prim.vjp_fwd(nzs, *args)
    leaves, tree = tree_flatten(residuals)
    is_value = tuple(map(is_valid_value, leaves))
    found = trace.record(backward_p, [*selected(leaves, is_value), *selected(tangents, nonzero)], {
        "_prim": _prim, "nonzero": nonzero, "is_value": is_value,
        "others": selected(leaves, negated(is_value)), "tree": tree}, [z.aval for z in zeros])
    return _flat(_prim, out, "vjp_fwd"), [
        zero if getattr(zero.aval, "dtype", None) == dtypes.float0 else t
        for zero, t in zip(zeros, found, strict=True)]


def _pull_back(cts: Tangents, *operands: Operand, _prim: HiPrim, nonzero: Flags, is_value: Flags,
               others: Sequence[Any], tree: Any) -> Sequence[Any]:
    n = is_value.count(True)
    known, rest = iter(operands[:n]), iter(others)
    residuals = tree_unflatten(tree, [next(known) if flag else next(rest) for flag in is_value])
    accums = [(ValAccum if flag else NullAccum)(a.to_ct_aval())
              for a, flag in zip(_prim._in_types, nonzero, strict=True)]
    _prim.vjp_bwd(residuals, tree_unflatten(_prim._out_tree, cts),
                  *tree_unflatten(_prim._in_tree, accums))
    return [*[None] * n, *[tangent_result(a.freeze()) for a in selected(accums, nonzero)]]


def _cannot_push(*_: Any, _prim: HiPrim, **__: Any) -> Any:
    HiPrim.lin(_prim, None)


def _transpose(cts: Tangents, *operands: Operand, _prim: HiPrim) -> list[Any]:
    accums = [ValAccum(x.aval) if is_undefined_primal(x) else x for x in operands]
    _prim.transpose(tree_unflatten(_prim._out_tree, cts), *tree_unflatten(_prim._in_tree, accums))
    return [tangent_result(a.freeze()) if is_undefined_primal(x) else None
            for x, a in zip(operands, accums, strict=True)]


def _batch(trace: BatchTrace, operands: Values, dims: Dims, _prim: HiPrim) -> Any:
    if not _has(_prim, "batch") and _without_rules(_prim):
        return batch_again(lambda *xs: _run(*xs, _prim=_prim), operands, dims, trace)[:2]
    specs = [None if d is None else spec_of(get_aval(x), d)
             for x, d in zip(operands, dims, strict=True)]
    args, places = [tree_unflatten(_prim._in_tree, xs) for xs in (operands, specs)]
    out, out_dims = _prim.batch(AxisData(trace.axis), args, places)
    return _flat(_prim, out, "batch"), broadcast_argument(
        f"{type(_prim).__name__}.batch dims", out_dims,
        tree_unflatten(_prim._out_tree, _prim._out_types))


def _dce(eqn: JaxprEqn, used: Flags) -> JaxprEqn:
    prim = eqn.params["_prim"]
    if all(used) or not _has(prim, "dce"):
        return eqn
    live = tree_unflatten(prim._in_tree, [True] * len(eqn.invars))
    new = prim._without_unused(tree_unflatten(prim._out_tree, used), live)
    if new is None:
        return eqn
    if (new._in_tree, new._out_tree) != (prim._in_tree, prim._out_tree):
        raise NotImplementedError(f"{type(prim).__name__}.dce: expected an operation with operands "
                                  f"and results of the same structure, got {new!r}")
    return eqn if new is prim else eqn.replace(params={"_prim": new})


def _effects(params: Params) -> Effects:
    return has_own_types | params["_prim"].effects


def _text(eqn: JaxprEqn, operands: list[str], results: list[str]) -> str:
    results = [f"{r} = " if i == len(results) - 1 else r for i, r in enumerate(results)]
    return " ".join([" ".join(results) + repr(eqn.params["_prim"]), *operands])


call_hi_primitive_p = Primitive(
    "call_hi_primitive", multiple_results=True, cached=False, impl=_run, decomposition=_run,
    holder=Holding(linearize=_linearize, dce=_dce), record=_record, jvp=_jvp,
    transpose=_transpose, batch_axis=_batch, effects=_effects, text=_text,
    label=lambda params: type(params["_prim"]).__name__,
    shape_rule=_shape)

# From residuals and tangents to tangents: what reverse mode transposes by the user's rules.
backward_p = Primitive(
    "hi_primitive_backward", multiple_results=True, cached=False, impl=_cannot_push,
    decomposition=_cannot_push, jvp=_cannot_push, batch_axis=_cannot_push, transpose=_pull_back,
    effects=_effects,
    shape_rule=lambda *avals, _prim, **_: [a.to_tangent_aval() for a in _prim._out_types])


def _add_to(accums: Any, cts: Any) -> None:
    """Add cotangents, which may be None for zeros, to their accumulators."""
    if cts is not None:
        leaves = tree_leaves(accums)
        for accum, ct in zip(leaves, tree_leaves(cts, lambda x: x is None or _is_zero(x)),
                             strict=True):
            accum.accum(ct)


class AxisData:
    """What a batching rule is told of the axis."""

    spmd_name = explicit_mesh_axis = None

    def __init__(self, axis: Axis) -> None:
        self.axis = axis
        self.name, self.size = axis.name, axis.size


def _dims_like(out: Any, dims: Any) -> Any:
    """A place for each leaf of a result."""
    return tree_map(lambda _: dims, out) if dims is None or isinstance(dims, int) else dims


# -- rules made of others --------------------------------------------------------------------------


def jvp_from_lin(self: HiPrim, primals: Any, tangents: Any) -> Any:
    """The rule `jvp` of an operation that has `lin` and `linearized`."""
    nzs = tree_map(lambda t: not _is_zero(t), tuple(tangents), is_leaf=_is_zero)
    out, residuals = self.lin(nzs, *primals)
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
    return [tree_map(lambda x, d=d: at_front(x, d, axis_data.size), x)
            for x, d in zip(args, dims, strict=True)]


def unmap_avals(axis_data: Any, avals: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    """The types of batches from those of examples."""
    return [tree_map(lambda a, d=d: a.inc_rank(axis_data.size, d), aval)
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

        axis = from_axis if isinstance(from_axis, Axis) else Axis(from_axis.name, from_axis.size)
        outs, places = batch_flat(flat, leaves, dims, axis)
        wanted = tree_leaves(_dims_like(tree_unflatten(found[0], outs), out_axes),
                             is_leaf=lambda d: d is None)
        results = [_placed(x, d, w, from_axis.size, sum_match)
                   for x, d, w in zip(outs, places, wanted, strict=True)]
        return tree_unflatten(found[0], results)

    return mapped


def _placed(x: Any, dim: int | None, wanted: int | None, size: int, sum_match: bool) -> Any:
    if wanted is None:
        return x if dim is None or not sum_match else lax.reduce_sum(x, axes=(dim,))
    return match_axis(x, dim, wanted, size)


class HiPrimitive(open_primitives.Primitive):
    """An operation by its name, with rules that subclasses have as methods: `abstract_eval(*avals,
    **params)`, which gives types and effects, `to_lojax`, which runs it, `jvp` and `transpose`."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name)
        for kind in RULE_KINDS:  # those of the class count
            vars(self).pop(kind, None)
        self.decomposition = self.to_lojax
        self.shape_rule = lambda *avals, **params: self.abstract_eval(*avals, **params)[0]
