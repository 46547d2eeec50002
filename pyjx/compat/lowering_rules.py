"""Lowering rules of other libraries: functions that build MLIR operations with the bindings.

Such a rule runs inside a function of a module of its own; the text of that function goes to the
program, which calls it. A rule that is a Python function of arrays (`lower_fun`) needs no MLIR: it
is what the primitive is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lowering.builder import Block, in_avals
from lowering.foreign_calls import add_functions
from lowering.module import HostCall
from lowering.rules import rule as lowering_rule
from pyjx import jaxlib_api
from pyjx.compat.mlir_values import (
    LoweringRuleContext,
    ModuleContext,
    TokenSet,
    aval_to_ir_type,
    flatten_ir_values,
    i32_attr,
    ir_attribute,
    ir_constant,
)
from pyjx.configuration import known_platforms
from pyjx.core import bounded
from pyjx.core.effects import Effect, keeps_alive
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from pyjx.core.layouts import Layout
from pyjx.core.primitive import Primitive
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.decompose import decompose
from pyjx.engine.physical import physicalize
from pyjx.guards import guard
from pyjx.runtime import backends

Rule = Callable[..., Any]


# ---- rules --------------------------------------------------------------------------------


@guard
class LoweredFun:
    """A rule that is a Python function of arrays."""

    def __init__(self, fun: Callable[..., Any], multiple_results: bool) -> None:
        self.fun = fun
        self.multiple_results = multiple_results

    def __call__(self, ctx: LoweringRuleContext, *values: Any, **params: Any) -> list[Any]:
        """Call the function, as a program of its own, from a rule that builds operations."""
        def flat(*args: Any) -> Sequence[Any]:
            out = self.fun(*args, **params)
            return out if self.multiple_results else [out]

        closed = trace_to_jaxpr(flat, ctx.avals_in)
        return call_program(ctx, closed, values)


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweredFun:
    """The lowering rule that a function of other operations stands for.

    Args:
      multiple_results: `fun` gives a sequence of arrays, as the primitive does.
    """
    return LoweredFun(fun, multiple_results)


_rules: dict[tuple[Primitive, str | None], Rule] = {}
_emitted: set[tuple[str, str | None]] = set()  # which names the lowering looks for here, and where


def register_lowering(prim: Primitive, rule: Rule, platform: str | None = None,
                      inline: bool = True, cacheable: bool = True) -> Rule:
    """Give a primitive its lowering rule, `(ctx, *values, **params) -> values`; what is traced from
    now on has it.

    Args:
      rule: builds MLIR operations, or is what `lower_fun` gives.
      platform: the only one it is for; gpu stands for cuda and rocm.
      inline, cacheable: rules are functions of the program in any case.

    Raises:
      NotImplementedError: there is no such platform.
      ValueError: pyjx has a rule for operations of this name.
    """
    known = known_platforms
    if platform is not None and platform.lower() not in known:
        raise NotImplementedError(
            f"register_lowering: a rule for {prim} on an unknown platform {platform}. Known "
            f"platforms are {', '.join(sorted(known))}; a plugin's are known once it is loaded.")
    if prim.decomposition is not None or any([p is prim for p, _ in _rules]):
        bounded.clear_all()  # eager loops are found by their operations, whatever the rules are
    if platform is None and isinstance(_rules.get((prim, None)), LoweredFun):
        prim.decomposition = None
    for named in (None,) if platform is None else \
            backends.platforms_named(platform, "register_lowering"):
        if named is None and isinstance(rule, LoweredFun):
            prim.decomposition = rule.fun
        elif (prim.name, named) not in _emitted:
            lowering_rule(prim.name, platform=named)(_emit)
            _emitted.add((prim.name, named))
        _rules[prim, named] = rule
    return rule


def _emit(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    platform = b.module.platform
    rule = _rules.get((eqn.primitive, platform)) or _rules.get((eqn.primitive, None))
    if rule is None:
        raise NotImplementedError(
            f"MLIR translation rule for primitive '{eqn.primitive.name}' not found for platform "
            f"{platform}. Rules are registered for another primitive of this name: give one of "
            "the two another name, or register a rule for this one, too.")
    outs = [v.aval for v in eqn.outvars]
    function = add_functions(b, _functions(b, rule, eqn), eqn.primitive.name)
    results = b.call(function, operands, in_avals(eqn), outs)
    return results if eqn.primitive.multiple_results else results[0]


def _functions(b: Block, rule: Rule, eqn: JaxprEqn) -> list[tuple[str, str]]:
    """The functions of the module that a rule builds: names and texts, the one to call first."""
    mlir = jaxlib_api.mlir_bindings()
    ir, func = mlir.ir, mlir.func
    context = jaxlib_api.mlir_context()
    outs = [v.aval for v in eqn.outvars]
    with context, ir.Location.unknown(context):
        module = ir.Module.create()
        ctx = LoweringRuleContext(
            ModuleContext.of_block(b, context, module), eqn.source_info.name_stack,
            eqn.source_info.traceback, eqn.primitive, in_avals(eqn), outs)
        with ir.InsertionPoint(module.body):
            types = [[aval_to_ir_type(ctx, a) for a in avals] for avals in (ctx.avals_in, outs)]
            function = func.FuncOp("main", ir.FunctionType.get(*types))
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        body = function.add_entry_block()
        with ir.InsertionPoint(body):
            given = rule(ctx, *body.arguments, **eqn.params)
            func.ReturnOp(flatten_ir_values(given if isinstance(given, (list, tuple)) else [given]))
        keepalives = ctx.module_context.keepalives
        b.module.keepalives.extend(keepalives)
        texts = {ir.StringAttr(op.attributes["sym_name"]).value: str(op)
                 for op in module.body.operations}
    main = texts.pop("main")
    return [("main", main), *[(name, text) for name, text in texts.items()
                              if name not in ctx.module_context.declared]]


def call_program(ctx: LoweringRuleContext, closed: ClosedJaxpr, values: Sequence[Any],
                 name: str = "lowered_fun") -> list[Any]:
    """Call a program of pyjx's from a rule that builds operations."""
    mlir = jaxlib_api.mlir_bindings()
    closed = decompose(physicalize(closed), ctx.module_context.platforms[0])
    function = declared_function(ctx.module_context, name, closed)
    constants = [ir_constant(np.asarray(c)) for c in closed.consts]
    outs = [aval_to_ir_type(ctx, a) for a in closed.out_avals]
    callee = mlir.ir.FlatSymbolRefAttr.get(function.name.value)
    return list(mlir.func.CallOp(outs, callee, [*constants, *values]).results)


def declared_function(ctx: ModuleContext, name: str, closed: ClosedJaxpr) -> Any:
    """The function of a program of pyjx's, declared in the module that a rule builds. The
    constants of the program are its first parameters."""
    mlir = jaxlib_api.mlir_bindings()
    ir = mlir.ir
    b = ctx.block
    name = b.module.function(closed, name, b.scope)
    if name not in ctx.declared:
        with ir.InsertionPoint(ctx.module.body):
            ins = [aval_to_ir_type(ctx, v.aval) for v in closed.jaxpr.all_invars]
            outs = [aval_to_ir_type(ctx, a) for a in closed.out_avals]
            ctx.declared[name] = mlir.func.FuncOp(
                name, ir.FunctionType.get(ins, outs), visibility="private")
    return ctx.declared[name]


def emit_python_callback(ctx: LoweringRuleContext, callback: Callable[..., Any], token: Any,
                         operands: Sequence[Any], operand_avals: Sequence[Any],
                         result_avals: Sequence[Any], *, has_side_effect: bool, **options: Any
                        ) -> tuple[list[Any], Any, Any]:
    """A call of a Python function on the host: its results, the token after it, and what has to
    stay alive."""
    mlir = jaxlib_api.mlir_bindings()
    ir = mlir.ir
    b = ctx.module_context.block
    calls = b.module.host_calls
    calls.append(HostCall(callback, tuple(result_avals), False))
    b.module.custom_calls.add("callbacks")
    index = ir.IntegerAttr.get(ir.IntegerType.get_unsigned(64), len(calls) - 1)
    kind = "cpu" if b.module.platform == "cpu" else "gpu"
    call = mlir.stablehlo.CustomCallOp(
        [aval_to_ir_type(ctx, a) for a in result_avals], list(operands),
        call_target_name=ir.StringAttr.get(f"xla_ffi_python_{kind}_callback"),
        has_side_effect=ir.BoolAttr.get(has_side_effect), api_version=i32_attr(4),
        backend_config=ir.DictAttr.get({"index": index}))
    return list(call.results), token, None


# ---- programs -----------------------------------------------------------------------------


def _closed(jaxpr: Jaxpr | ClosedJaxpr) -> ClosedJaxpr:
    """The program with its constants, if it has no values for them, as its first inputs."""
    if isinstance(jaxpr, ClosedJaxpr):
        return jaxpr
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=jaxpr.all_invars), [])


def jaxpr_subcomp(ctx: ModuleContext, jaxpr: Jaxpr | ClosedJaxpr, name_stack: Any, tokens: Any,
                  consts_for_constvars: Sequence[Any], *args: Any,
                  dim_var_values: Sequence[Any] = (), const_lowering: Any = None,
                  outer_traceback: Any = None) -> tuple[list[Any], Any]:
    """Run a program from a rule that builds operations: the values of its results, and the tokens
    behind it.

    Args:
      consts_for_constvars: the values of its constants.
      args: the values of its inputs.
    """
    outer = LoweringRuleContext(ctx, None, None, None, jaxpr.in_avals, jaxpr.out_avals)
    values = flatten_ir_values([*consts_for_constvars, *args])
    return call_program(outer, _closed(jaxpr), values), TokenSet() if tokens is None else tokens


def lower_jaxpr_to_fun(ctx: ModuleContext, name: str, jaxpr: ClosedJaxpr,
                       effects: Sequence[Any] = (), *, num_const_args: int = 0,
                       in_avals: Sequence[Any] | None = None,
                       out_avals: Sequence[Any] | None = None, **options: Any) -> Any:
    """The function of a program, for rules that build calls of it. Constants of the program are
    its first parameters.

    Args:
      options: accepted; what they say is decided where the whole program is placed.
    """
    return declared_function(ctx, name, decompose(physicalize(_closed(jaxpr)), ctx.platforms[0]))


def core_call_lowering(ctx: LoweringRuleContext, *args: Any, name: str, backend: Any = None,
                       inline_jax_late: bool = False, call_jaxpr: Jaxpr | ClosedJaxpr,
                       **params: Any) -> list[Any]:
    """The rule of primitives that call a program, their parameter `call_jaxpr`."""
    return call_program(ctx, _closed(call_jaxpr), args, name)


# ---- rules that call foreign functions ----------------------------------------------------

Order = Sequence[int] | Layout | None
Layouts = Sequence[Order] | None


def build_ffi_lowering_function(
    call_target_name: str, *, operand_layouts: Layouts = None, result_layouts: Layouts = None,
    backend_config: Mapping[str, Any] | str | None = None, skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A function `(ctx, *operands, **attributes)` that builds the call of a foreign function.

    Args:
      call_target_name: what the function is registered as.
      operand_layouts, result_layouts: for each array its dimensions, minor to major, or its
        `Layout`; by default arrays are row-major.
      backend_config: attributes of the call, besides those that are given with it; or a text, for
        functions of an older interface.
      skip_ffi_layout_processing: accepted; layouts are always as XLA wants them.
      lowering_args: `has_side_effect`, `api_version`, `called_computations`, `extra_attributes`
        and `result_types` of the operation.

    Raises:
      ValueError: attributes are given beside a `backend_config` that is a text.
    """
    def build(ctx: LoweringRuleContext, *operands: Any, **attributes: Any) -> Any:
        mlir = jaxlib_api.mlir_bindings()
        ir = mlir.ir
        config: Any = backend_config
        if isinstance(config, str):
            if attributes:
                raise ValueError("When passing attributes to a foreign function, backend_config "
                                 "must be a dictionary and not a text")
            config = ir.StringAttr.get(config)
        else:
            config = ir.DictAttr.get({k: ir_attribute(v)
                                      for k, v in {**(config or {}), **attributes}.items()})
        types = lowering_args.get("result_types") or [
            aval_to_ir_type(ctx, a) for a in ctx.avals_out]
        version = lowering_args.get("api_version", 1 if isinstance(backend_config, str) else 4)
        call = mlir.stablehlo.CustomCallOp(
            types, flatten_ir_values(operands),
            call_target_name=ir.StringAttr.get(call_target_name),
            has_side_effect=ir.BoolAttr.get(lowering_args.get("has_side_effect", False)),
            backend_config=config, api_version=i32_attr(version),
            called_computations=ir.ArrayAttr.get([
                ir.FlatSymbolRefAttr.get(n) for n in lowering_args.get("called_computations", ())]),
            operand_layouts=_layouts(operand_layouts, ctx.avals_in),
            result_layouts=_layouts(result_layouts, ctx.avals_out))
        for name, value in lowering_args.get("extra_attributes", {}).items():
            call.operation.attributes[name] = value
        return call

    return build


def _layouts(given: Layouts, avals: Sequence[Any]) -> Any:
    """The layouts as MLIR writes them."""
    ir = jaxlib_api.mlir_bindings().ir
    orders = [None] * len(avals) if given is None else given
    index = ir.IndexType.get()
    return ir.ArrayAttr.get([
        ir.DenseIntElementsAttr.get(np.asarray(_minor_to_major(order, a.ndim), np.int64),
                                    type=index)
        for order, a in zip(orders, avals, strict=True)])


def _minor_to_major(order: Order, ndim: int) -> Sequence[int]:
    if order is None:
        return range(ndim - 1, -1, -1)
    return order.major_to_minor[::-1] if isinstance(order, Layout) else order


def ffi_lowering(
    call_target_name: str, *, operand_layouts: Layouts = None, result_layouts: Layouts = None,
    backend_config: Mapping[str, Any] | str | None = None, skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Sequence[Any]]:
    """A lowering rule that calls a foreign function; the primitive's parameters are attributes of
    the call. The arguments are those of `build_ffi_lowering_function`."""
    build = build_ffi_lowering_function(
        call_target_name, operand_layouts=operand_layouts, result_layouts=result_layouts,
        backend_config=backend_config, skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args)

    def rule(ctx: LoweringRuleContext, *operands: Any, **attributes: Any) -> Sequence[Any]:
        return list(build(ctx, *operands, **attributes).results)

    return rule


# -- effects ---------------------------------------------------------------------------------------


class EffectTypeSet:
    """The effects that are allowed somewhere, by their types."""

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        self._types.add(effect_type)

    def contains(self, effect: Any) -> bool:
        """Whether an effect, or those of a type, are among them."""
        kind = effect if isinstance(effect, type) else type(effect)
        return issubclass(kind, tuple(self._types))


control_flow_allowed_effects = EffectTypeSet()
lowerable_effects = EffectTypeSet()
lowerable_effects.add_type(Effect)  # nothing is refused for its effects: what lowers is the rule


# -- of calls with metadata ------------------------------------------------------------------------


def attr_get(x: Any) -> Any:
    """A piece of metadata as an MLIR attribute, which is made in the context that is entered.

    Raises:
      NotImplementedError: it is no text.
    """
    if not isinstance(x, str):
        raise NotImplementedError(f"mlir attr handler for type(x)={type(x)}: metadata are texts")
    return jaxlib_api.ir.StringAttr.get(x)


def dce_jaxpr_xla_metadata_rule(used_outputs: Sequence[bool], eqn: JaxprEqn
                                ) -> tuple[list[bool], JaxprEqn | None]:
    """Which operands a call with metadata needs for some of its results, and the call for these;
    None where nothing of it is left."""
    if not any(used_outputs) and not keeps_alive(eqn.effects):
        return [False] * len(eqn.invars), None
    new = eqn.primitive.holder.dce(eqn, tuple(used_outputs))
    kept = iter(new.invars)
    left = next(kept, None)
    flags = []
    for v in eqn.invars:
        flags.append(v is left)
        left = next(kept, None) if v is left else left
    return flags, new
