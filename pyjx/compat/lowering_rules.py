"""Lowering rules of other libraries: functions that build MLIR operations with the bindings.

Such a rule runs inside a function of a module of its own; the text of that function goes to the
program, which calls it. A rule that is a Python function of arrays (`lower_fun`) needs no MLIR: it
is what the primitive is made of.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowering.builder import Block, in_avals
from lowering.foreign_programs import add_functions
from lowering.module import HostCall
from lowering.rules import rule as lowering_rule
from lowering.types import tensor_type
from pyjx import jaxlib_api
from pyjx.core.avals import get_aval
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.primitive import Primitive
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.decompose import decompose
from pyjx.engine.physical import physicalize

Rule = Callable[..., Any]


def __getattr__(name: str) -> Any:
    if name == "ir":
        return jaxlib_api.mlir_bindings().ir  # large: loaded when somebody builds operations
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---- the context of a rule ----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ModuleContext:
    """The module that a rule's operations are for."""

    context: Any
    module: Any
    block: Block
    declared: set[str] = dataclasses.field(default_factory=set)

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that the program is for: one."""
        return (self.block.module.platform,)

    def add_keepalive(self, keepalive: Any) -> None:
        """Keep an object alive as long as the program."""
        _keepalives.append(keepalive)


_keepalives: list[Any] = []


@dataclasses.dataclass(frozen=True)
class LoweringRuleContext:
    """What a rule knows of the equation that it lowers."""

    module_context: ModuleContext
    primitive: Primitive | None
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    name_stack: Any = None
    tokens_in: Any = None
    tokens_out: Any = None
    axis_size_env: Any = None
    dim_var_values: Sequence[Any] = ()

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)

    def set_tokens_out(self, tokens: Any) -> None:
        """The tokens behind the operation, which pyjx threads by itself."""


# ---- rules --------------------------------------------------------------------------------


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


def register_lowering(prim: Primitive, rule: Rule, platform: str | None = None,
                      inline: bool = True, cacheable: bool = True) -> Rule:
    """Give a primitive its lowering rule, `(ctx, *values, **params) -> values`.

    Args:
      rule: builds MLIR operations, or is what `lower_fun` gives.
      platform: the only one it is for.
      inline, cacheable: rules are functions of the program in any case.

    Raises:
      ValueError: pyjx has a rule for operations of this name.
    """
    if isinstance(rule, LoweredFun) and platform is None:
        prim.decomposition = rule.fun
        return rule
    platform = "cuda" if platform == "gpu" else platform
    known = any([p.name == prim.name and where == platform for p, where in _rules])
    _rules[prim, platform] = rule
    if not known:
        lowering_rule(prim.name, platform=platform)(_emit)
    return rule


def _emit(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    rule = _rules.get((eqn.primitive, b.module.platform)) or _rules[eqn.primitive, None]
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
        ctx = LoweringRuleContext(ModuleContext(context, module, b), eqn.primitive, in_avals(eqn),
                                  outs)
        with ir.InsertionPoint(module.body):
            types = [aval_to_ir_type(a) for a in ctx.avals_in], [aval_to_ir_type(a) for a in outs]
            function = func.FuncOp("main", ir.FunctionType.get(*types))
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        body = function.add_entry_block()
        with ir.InsertionPoint(body):
            func.ReturnOp(flatten_ir_values(_results(rule(ctx, *body.arguments, **eqn.params))))
        texts = {ir.StringAttr(op.attributes["sym_name"]).value: str(op)
                 for op in module.body.operations}
    main = texts.pop("main")
    return [("main", main), *[(name, text) for name, text in texts.items()
                              if name not in ctx.module_context.declared]]


def _results(given: Any) -> Sequence[Any]:
    return given if isinstance(given, (list, tuple)) else [given]


def call_program(ctx: LoweringRuleContext, closed: ClosedJaxpr, values: Sequence[Any]
                 ) -> list[Any]:
    """Call a program of pyjx's from a rule that builds operations."""
    mlir = jaxlib_api.mlir_bindings()
    ir, func = mlir.ir, mlir.func
    b = ctx.module_context.block
    closed = decompose(physicalize(closed), b.module.platform)
    name = b.module.function(closed, "lowered_fun", b.scope)
    constants = [ir_constant(np.asarray(c)) for c in closed.consts]
    outs = [aval_to_ir_type(a) for a in closed.out_avals]
    if name not in ctx.module_context.declared:
        ctx.module_context.declared.add(name)
        with ir.InsertionPoint(ctx.module_context.module.body):
            ins = [aval_to_ir_type(v.aval) for v in closed.jaxpr.all_invars]
            func.FuncOp(name, ir.FunctionType.get(ins, outs), visibility="private")
    call = func.CallOp(outs, ir.FlatSymbolRefAttr.get(name), [*constants, *values])
    return list(call.results)


# ---- types, attributes and constants ------------------------------------------------------


def make_ir_context() -> Any:
    """The MLIR context, which knows every dialect that XLA takes."""
    return jaxlib_api.mlir_context()


def aval_to_ir_type(*given: Any) -> Any:
    """The MLIR type of a type; a context may come first."""
    return jaxlib_api.mlir_bindings().ir.Type.parse(tensor_type(given[-1]))


def aval_to_ir_types(*given: Any) -> tuple[Any, ...]:
    """The MLIR types of the values behind a value of a type: one."""
    return (aval_to_ir_type(given[-1]),)


def dtype_to_ir_type(dtype: Any) -> Any:
    """The MLIR type of the elements of an array."""
    ir = jaxlib_api.mlir_bindings().ir
    scalar = aval_to_ir_type(get_aval(np.zeros((), dtype)))
    return ir.RankedTensorType(scalar).element_type


def i32_attr(i: int) -> Any:
    """An attribute of type i32."""
    ir = jaxlib_api.mlir_bindings().ir
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> Any:
    """An attribute of type i64."""
    ir = jaxlib_api.mlir_bindings().ir
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def dense_int_elements(xs: Sequence[int]) -> Any:
    """Integers as `dense<...> : tensor<Nxi64>`."""
    return jaxlib_api.mlir_bindings().ir.DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def dense_int_array(xs: Sequence[int]) -> Any:
    """Integers as `array<i64: ...>`."""
    return jaxlib_api.mlir_bindings().ir.DenseI64ArrayAttr.get(np.asarray(xs, np.int64))


def ir_attribute(value: Any) -> Any:
    """A Python or NumPy value as an attribute.

    Raises:
      TypeError: there is no attribute for such values.
    """
    ir = jaxlib_api.mlir_bindings().ir
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(value))
    if isinstance(value, int):
        return i64_attr(value)
    if isinstance(value, float):
        return ir.FloatAttr.get_f64(value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, np.integer):
        kind = ir.IntegerType.get_signless(8 * value.dtype.itemsize)
        return ir.IntegerAttr.get(kind, int(value))
    if isinstance(value, np.floating):
        return ir.FloatAttr.get(dtype_to_ir_type(value.dtype), float(value))
    if isinstance(value, (list, tuple)):
        return ir.ArrayAttr.get([ir_attribute(x) for x in value])
    if isinstance(value, dict):
        return ir.DictAttr.get({k: ir_attribute(x) for k, x in value.items()})
    raise TypeError(f"ir_attribute: there is no attribute for {value!r} of type {type(value)}")


def ir_constant(value: Any, *, const_lowering: Any = None, aval: Any = None) -> Any:
    """A constant operation for an array or a scalar."""
    mlir = jaxlib_api.mlir_bindings()
    kind = get_aval(value)
    array = np.asarray(value, kind.dtype)
    packed = np.packbits(array, axis=None, bitorder="little") if array.dtype == bool else array
    if array.size == 1 and array.dtype == bool:
        packed = np.full((1,), 255 if array.item() else 0, np.uint8)
    if array.dtype.kind == "V" or array.dtype.type.__module__ != "numpy":
        packed = array.view(f"u{array.dtype.itemsize}")
    element = dtype_to_ir_type(array.dtype)
    attribute = mlir.ir.DenseElementsAttr.get(np.ascontiguousarray(packed), type=element,
                                              shape=array.shape)
    return mlir.stablehlo.constant(attribute)


def flatten_ir_values(values: Sequence[Any]) -> list[Any]:
    """The values in a list of values, of operations with results, and of lists of them."""
    out: list[Any] = []
    for x in values:
        if isinstance(x, (list, tuple)):
            out += flatten_ir_values(x)
        elif hasattr(x, "results"):
            out += list(x.results)
        else:
            out.append(x)
    return out


flatten_ir_types = flatten_ir_values


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """The text of a module."""
    return str(module.operation.get_asm(enable_debug_info=bool(enable_debug_info)))


def module_to_bytecode(module: Any) -> bytes:
    """A module as bytes."""
    file = io.BytesIO()
    module.operation.write_bytecode(file=file)
    return file.getvalue()


def emit_python_callback(
    ctx: LoweringRuleContext, callback: Callable[..., Any], token: Any, operands: Sequence[Any],
    operand_avals: Sequence[Any], result_avals: Sequence[Any], *, has_side_effect: bool,
    **options: Any,
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
        [aval_to_ir_type(a) for a in result_avals], list(operands),
        call_target_name=ir.StringAttr.get(f"xla_ffi_python_{kind}_callback"),
        has_side_effect=ir.BoolAttr.get(has_side_effect), api_version=i32_attr(4),
        backend_config=ir.DictAttr.get({"index": index}))
    return list(call.results), token, None
