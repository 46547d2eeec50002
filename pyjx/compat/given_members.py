"""Members of classes of pyjx that libraries alone ask for, given as this is imported."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import attrgetter
from typing import Any, NoReturn

from pyjx.core.avals import AbstractValue, ShapedArray
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var
from pyjx.core.meshes import AbstractMesh, AxisType, Mesh
from pyjx.core.primitive import Primitive
from pyjx.core.records import of_field
from pyjx.core.specs import PartitionSpec
from pyjx.core.trace import DynamicJaxprTrace, DynamicJaxprTracer, Trace, Tracer, outside_of
from pyjx.engine.forward import JVPTrace
from pyjx.guards import guard
from pyjx.jaxlib_api import PjitFunction
from pyjx.tree_util import keystr, tree_flatten_with_path


def give(owner: type, **members: Any) -> None:
    """Let a class have members that the library itself has no use for.

    Raises:
      TypeError: the class has one of that name already.

    >>> class Own:
    ...     pass
    ...
    >>> give(Own, answer=42)
    >>> Own().answer
    42
    """
    for name, member in members.items():
        if name in vars(owner):
            raise TypeError(f"{owner.__name__} has a member {name!r} already.")
        guard(getattr(member, "fget", member))
        setattr(owner, name, member)


def _is_valid(self: Trace) -> bool:
    """Whether the function that it watches has not returned yet."""
    return self.alive


def _invalidate(self: Trace) -> None:
    """Refuse operations from now on."""
    self.alive = False


def _recorded(self: DynamicJaxprTrace, val: Any) -> Any:
    is_own = isinstance(val, DynamicJaxprTracer) and val._trace is self
    return val if is_own else self.constant(val)


def _full_raise(self: Trace, x: Any) -> Any:
    """By its older name, `stage_value` of what may be here.

    Raises:
      UnexpectedTracerError: it is a tracer of an interpreter that has ended, or inside of this.
    """
    if not (isinstance(x, Tracer) and x._trace is self):
        self.check_outer(x)
    return x


def _constant_of(self: DynamicJaxprTracer) -> Any:
    """The value of a constant of the program; of others None."""
    trace = self._trace
    return next((trace.consts[k] for k, v in trace.const_vars.items() if v is self._var), None)


def bind_with_trace(primitive: Primitive, trace: Trace, operands: Sequence[Any],
                     *avals_and_params: Any) -> Any:
    """Apply the primitive under `trace`, or the interpreter of the operands if it is inside."""
    top = trace
    for x in operands:
        if isinstance(x, Tracer) and x._trace.level > top.level:
            top = x._trace
    with outside_of(trace):
        return top.process(primitive, tuple(operands), avals_and_params[-1])


def _nothing_more(x: Tracer) -> NoReturn:
    raise TypeError(f"cur_qdd: of a value of type {x.aval} nothing is known but that. A value "
                    "whose content changes has references in it, made by jax.new_ref.")


def _as_operation(self: Trace, *_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError(
        f"{type(self).__name__}: functions with rules of their own, and those of shard_map, come "
        "to `process` as operations, whose parameters hold them: call `primitive.bind`.")


def _unspecified(self: ShapedArray, mesh: Any, check_vma: bool, all_names: Sequence[Any]
                 ) -> PartitionSpec:
    """How a result lies of which nothing is said: along all axes it may differ along."""
    names = tuple([n for n in all_names if not check_vma or n in self.vma])
    return PartitionSpec(names) if names else PartitionSpec()


def _known(names: tuple[str, ...] | None, count: int) -> tuple[str, ...]:
    """The names of parts; empty ones if they are not known.

    Raises:
      AssertionError: there are more or fewer.
    """
    if names is not None and len(names) != count:
        raise AssertionError((count, names))
    return ("",) * count if names is None else names


def _filtered(names: tuple[str, ...] | None, keep: Sequence[bool]) -> tuple[str, ...] | None:
    return None if names is None else tuple(compress(_known(names, len(keep)), keep))


def _renamed(self: DebugInfo, name: str) -> DebugInfo:
    """That of a function with another name."""
    _, space, place = self.func_src_info.partition(" ")
    return self._replace(func_src_info=f"{name}{space}{place}")


def _with_paths(self: DebugInfo, ans: Any) -> DebugInfo:
    """That with the places of the leaves of a function's result."""
    leaves, _ = tree_flatten_with_path(ans)
    return self._replace(result_paths=tuple([f"result{keystr(path)}" for path, _ in leaves]))


_any_explicit = property(lambda mesh: AxisType.Explicit in mesh.axis_types)

# `main` is what all tracers of a trace have in common, `requires_low` whether it takes only what
# programs are lowered from.
give(Trace, main=property(lambda trace: trace), requires_low=False, is_valid=_is_valid,
     invalidate=_invalidate, stage_value=lambda self, val: val, full_raise=_full_raise)
give(DynamicJaxprTrace, stage_value=_recorded)
give(DynamicJaxprTracer, val=of_field("_var"), parent=of_field("_eqn"),
     get_const=_constant_of)
give(JVPTrace, to_primal_tangent_pair=JVPTrace.primal_and_tangent,
     cur_qdd=lambda self, x: _nothing_more(x),
     process_primitive=lambda self, primitive, tracers, params, /: self.process(
         primitive, tuple(tracers), params),
     process_call=lambda self, call_primitive, f, tracers, params, /: f.call_wrapped(*tracers),
     process_custom_jvp_call=_as_operation, process_custom_vjp_call=_as_operation,
     process_shard_map=_as_operation)
# Of an array nothing is known beyond its type.
give(Tracer, cur_qdd=_nothing_more, type_state=_nothing_more, mutable_qdd=None,
     aval_mutable_qdd=of_field("aval"))
give(Primitive, call_primitive=False, map_primitive=False, bind_with_trace=bind_with_trace,
     get_bind_params=lambda self, params: params)
give(AbstractMesh, _any_axis_explicit=_any_explicit)
give(Mesh, _any_axis_explicit=_any_explicit)
give(PjitFunction, _fun=of_field("__wrapped__"))

# What a value is made of: of itself. `qdd` is what is known of a value beyond its type, which
# changes, and by older names there are others of the same.
give(AbstractValue, has_qdd=False, lo_ty_qdd=lambda self, qdd: self.lo_ty(),
     lower_val2=lambda self, hi_val: self.lower_val(hi_val),
     raise_val2=lambda self, lo_vals_ft: self.raise_val(*lo_vals_ft),
     vspace_add=lambda self, x, y: x + y, normalize=lambda self: self.strip_weak_type(),
     at_least_vspace=lambda self: self.to_tangent_aval(), leading_axis_spec=lambda self: 0)
give(ShapedArray, nospec=_unspecified, array_abstraction_level=2)
give(Var, initial_qdd=None, final_qdd=None)
for _kind in (Jaxpr, ClosedJaxpr):
    give(_kind, in_aval_qdds=_kind.in_avals, final_aval_qdds=_kind.in_avals,
         with_consts=lambda self, consts: ClosedJaxpr(self.jaxpr, consts))
give(Jaxpr, map_jaxpr=lambda self, f: f(self))
give(ClosedJaxpr, map_jaxpr=lambda self, f: ClosedJaxpr(f(self.jaxpr), self.consts))
give(DebugInfo, replace_func_name=_renamed, set_result_paths=_with_paths,
     resolve_result_paths=lambda self: self._replace(result_paths=self.result_paths))
for _part in ("arg_names", "result_paths"):
    _get = attrgetter(_part)
    give(DebugInfo, **{
        f"safe_{_part}": lambda self, expected_count, get=_get: _known(get(self), expected_count),
        f"assert_{_part}": lambda self, expected_count, get=_get: _known(get(self), expected_count),
        f"filter_{_part}": lambda self, keep, get=_get: _filtered(get(self), keep)})
