"""Rules of primitives as the mappings in which libraries look for them, and put theirs.

The mappings hold nothing: they read and write the rules of the primitives themselves. A primitive
that has a rule of another kind (one that records, or that knows the axis) is read as a function
that runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from functools import wraps
from typing import Any

from pyjx.core.avals import AbstractValue, get_aval
from pyjx.core.evaluation import bind_all
from pyjx.core.named_axes import Axis
from pyjx.core.primitive import Primitive, all_primitives
from pyjx.engine.batching import BatchTrace, batch_flat
from pyjx.engine.forward import jvp_flat
from pyjx.engine.rules import elementwise_batch, forward_rule
from pyjx.engine.tangents import Zero, add_tangents, instantiate, is_undefined_primal
from pyjx.engine.types import Tangent

Rule = Callable[..., Any]


class RuleTable(MutableMapping[Primitive, Rule]):
    """The rules of one kind, by primitive.

    Args:
      read: the rule of a primitive as libraries call it, or None.
      write: gives a primitive a rule; None takes it away.
    """

    def __init__(self, read: Callable[[Primitive], Rule | None],
                 write: Callable[[Primitive, Rule | None], None]) -> None:
        self._read = read
        self._write = write

    def __getitem__(self, primitive: Primitive) -> Rule:
        rule = self._read(primitive)
        if rule is None:
            raise KeyError(primitive)
        return rule

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        self._write(primitive, rule)

    def __delitem__(self, primitive: Primitive) -> None:
        if primitive not in self:
            raise KeyError(primitive)
        self._write(primitive, None)

    def __iter__(self) -> Iterator[Primitive]:
        return iter([p for p in all_primitives().values() if self._read(p) is not None])

    def __len__(self) -> int:
        return sum([1 for _ in self])


# ---- derivatives --------------------------------------------------------------------------


def _jvp(primitive: Primitive) -> Rule | None:
    if (rule := forward_rule(primitive)) is not None:
        return rule
    if primitive.holder.linearize is None and primitive.decomposition is None:
        return None

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        outs, out_tangents = jvp_flat(
            lambda *xs: bind_all(primitive, xs, params), list(primals), list(tangents))
        return (outs, out_tangents) if primitive.multiple_results else (outs[0], out_tangents[0])

    return jvp


def _transpose(primitive: Primitive) -> Rule | None:
    return getattr(primitive.transpose, "__wrapped__", primitive.transpose)


def _set_transpose(primitive: Primitive, rule: Rule | None) -> None:
    """Rules of other libraries may give None for a cotangent that is zero."""
    if rule is None:
        primitive.transpose = None
        return
    given = rule

    @wraps(given)
    def transpose(ct: Any, *operands: Any, **params: Any) -> list[Any]:
        cts = given(ct, *operands, **params)
        return [Zero(x.aval) if is_undefined_primal(x) and (c is None or c is Zero) else c
                for x, c in zip(operands, cts, strict=True)]

    primitive.transpose = transpose


primitive_jvps = RuleTable(_jvp, lambda primitive, rule: setattr(primitive, "jvp", rule))
primitive_transposes = RuleTable(_transpose, _set_transpose)


def get_primitive_transpose(p: Primitive) -> Rule:
    """The rule. Raises NotImplementedError where there is none."""
    try:
        return primitive_transposes[p]
    except KeyError:
        raise NotImplementedError("Transpose rule (for reverse-mode differentiation) for "
                                  f"'{p}' not implemented") from None


def deflinear(primitive: Primitive, transpose_rule: Rule) -> None:
    """Say that a primitive is linear; `transpose_rule(ct, **params)` gives the cotangents of its
    operands."""
    deflinear2(primitive, lambda ct, *_, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Rule) -> None:
    """As `deflinear`, for a rule that is given the operands, too."""
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        if all([type(t) is Zero for t in tangents]):
            if primitive.multiple_results:
                return out, [Zero.of_primal(x) for x in out]
            return out, Zero.of_primal(out)
        return out, primitive.bind(*map(instantiate, tangents), **params)

    def transposed(ct: Tangent, *operands: Any, **params: Any) -> Any:
        if not primitive.multiple_results and type(ct) is Zero:
            return [None] * len(operands)
        return transpose_rule(ct, *operands, **params)

    primitive_jvps[primitive] = jvp
    primitive_transposes[primitive] = transposed


def defjvp(primitive: Primitive, *rules: Rule | None) -> None:
    """Give a rule `(tangent, *primals, **params) -> tangent` for each operand; the tangent of the
    result is their sum. None stands for an operand without derivative."""
    defjvp2(primitive, *[None if rule is None else _without_result(rule) for rule in rules])


def _without_result(rule: Rule) -> Rule:
    return lambda t, _, *primals, **params: rule(t, *primals, **params)


def defjvp2(primitive: Primitive, *rules: Rule | None) -> None:
    """As `defjvp`, for rules that read the result: `(tangent, result, *primals, **params)`."""
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        total: Any = Zero.of_primal(out)
        for rule, t in zip(rules, tangents, strict=True):
            if rule is not None and type(t) is not Zero:
                total = add_tangents(total, rule(t, out, *primals, **params))
        return out, total

    primitive_jvps[primitive] = jvp


def defbilinear(prim: Primitive, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Say that a primitive is linear in each of its two operands. `lhs_rule(ct, x, y, **params)`
    and `rhs_rule` give the cotangents of the first and of the second one."""
    defjvp(prim, lambda t, x, y, **params: prim.bind(t, y, **params),
           lambda t, x, y, **params: prim.bind(x, t, **params))

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> list[Any]:
        if is_undefined_primal(x):
            return [lhs_rule(ct, x, y, **params), None]
        return [None, rhs_rule(ct, x, y, **params)]

    primitive_transposes[prim] = transpose


def zeros_like_aval(aval: AbstractValue) -> Any:
    """An array of zeros."""
    return instantiate(Zero(aval))


def instantiate_zeros(tangent: Tangent) -> Any:
    """A tangent, where it is a symbolic zero as an array."""
    return instantiate(tangent)


# ---- batching -----------------------------------------------------------------------------


class AxisData:
    """The axis that is mapped, as rules of other libraries know it.

    Args:
      name: None for an axis without a name.
      size: how many examples there are.
      spmd_name: the axes of a mesh along which they lie, or None.
      explicit_mesh_axis: likewise, of those that types know: None, as no types are mapped so.

    Raises:
      NotImplementedError: there is an explicit mesh axis.
    """

    __slots__ = ("name", "size", "spmd_name")

    explicit_mesh_axis = None

    def __init__(self, name: Any, size: int, spmd_name: Any = None, explicit_mesh_axis: Any = None
                 ) -> None:
        if explicit_mesh_axis is not None:
            raise NotImplementedError("AxisData: axes of types are not mapped over, got "
                                      f"explicit_mesh_axis={explicit_mesh_axis!r}")
        self.name = name
        self.size = size
        self.spmd_name = spmd_name


def axis_of(axis_data: Any) -> Axis:
    """The axis that a library's rule was told of, or made a description of."""
    return Axis(axis_data.name, axis_data.size, getattr(axis_data, "spmd_name", None))


def _batch(primitive: Primitive) -> Rule | None:
    if primitive.batch is not None:
        return primitive.batch
    if primitive.batch_axis is None and primitive.decomposition is None:
        return None

    def batch(operands: Sequence[Any], dims: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        size = next(get_aval(x).shape[d] for x, d in zip(operands, dims, strict=True)
                    if d is not None)
        return _run_batched(primitive, operands, dims, Axis(None, size), params)

    return batch


def _run_batched(primitive: Primitive, operands: Sequence[Any], dims: Sequence[Any], axis: Axis,
                 params: dict[str, Any]) -> tuple[Any, Any]:
    outs, out_dims = batch_flat(
        lambda *xs: bind_all(primitive, xs, params), list(operands), list(dims), axis)
    return (outs, out_dims) if primitive.multiple_results else (outs[0], out_dims[0])


def _set_batch(primitive: Primitive, rule: Rule | None) -> None:
    primitive.batch = rule
    if rule is not None:  # the latest rule counts
        primitive.batch_axis = None


def _batch_axis(primitive: Primitive) -> Rule | None:
    rule = primitive.batch_axis
    if rule is None:
        return None
    given = getattr(rule, "__wrapped__", None)
    if given is not None:
        return given  # type: ignore[no-any-return]
    return lambda axis_data, operands, dims, **params: _run_batched(
        primitive, operands, dims, axis_of(axis_data), params)


def _set_batch_axis(primitive: Primitive, rule: Rule | None) -> None:
    if rule is None:
        primitive.batch_axis = None
        return

    @wraps(rule)
    def batch_axis(trace: BatchTrace, operands: Sequence[Any], dims: Sequence[Any], **params: Any
                   ) -> Any:
        axis = trace.axis
        return rule(AxisData(axis.name, axis.size, axis.spmd_name), operands, dims, **params)

    primitive.batch_axis = batch_axis


def _batch_older(primitive: Primitive) -> Rule | None:
    rule = _batch_axis(primitive)
    if rule is None:
        return None

    def batch(axis_size: int, axis_name: Any, trace_type: Any, operands: Sequence[Any],
              dims: Sequence[Any], **params: Any) -> Any:
        return rule(AxisData(axis_name, axis_size), operands, dims, **params)

    return getattr(rule, "__wrapped__", batch)


def _set_batch_older(primitive: Primitive, rule: Rule | None) -> None:
    if rule is None:
        primitive.batch_axis = None
        return

    @wraps(rule)
    def batch(axis: AxisData, operands: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        return rule(axis.size, axis.name, None, operands, dims, **params)

    _set_batch_axis(primitive, batch)


primitive_batchers = RuleTable(_batch, _set_batch)
fancy_primitive_batchers = RuleTable(_batch_axis, _set_batch_axis)
# Rules with the signature `(axis_size, axis_name, trace_type, operands, dims, **params)`.
axis_primitive_batchers = RuleTable(_batch_older, _set_batch_older)


def defvectorized(prim: Primitive) -> None:
    """Say that a primitive works on each element, and has one operand."""
    primitive_batchers[prim] = lambda operands, dims, **params: (
        prim.bind(*operands, **params), dims[0])


def defbroadcasting(prim: Primitive) -> None:
    """Say that a primitive works on each element of operands of one shape."""
    primitive_batchers[prim] = elementwise_batch(prim)


def defreducer(prim: Primitive) -> None:
    """Say that a primitive reduces along the axes that are its parameter `axes`."""
    def batch(operands: Sequence[Any], dims: Sequence[Any], axes: Sequence[int], **params: Any
              ) -> tuple[Any, int]:
        (x,), (d,) = operands, dims
        moved = tuple([a + (a >= d) for a in axes])
        return (prim.bind(x, axes=moved, **params), d - sum([a < d for a in axes]))

    primitive_batchers[prim] = batch
