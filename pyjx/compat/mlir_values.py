"""Types, attributes, constants and modules of MLIR, as lowering rules of other libraries make
them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from lowering.types import tensor_type, with_symbols
from pyjx import jaxlib_api
from pyjx.compat.mlir_contexts import LoweringResult, ShapePolyLoweringState
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import AbstractToken, ShapedArray, get_aval
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr
from pyjx.runtime.lower import lower_closed


def __getattr__(name: str) -> Any:
    if name in ("Token", "Value"):
        return jaxlib_api.mlir_bindings().ir.Value
    if name == "ir":
        return jaxlib_api.mlir_bindings().ir  # large: loaded when somebody builds operations
    if name == "ir_tree_registry":
        return jaxlib_api.pytree.PyTreeRegistry(
            enable_none=False, enable_tuple=True, enable_namedtuple=False, enable_list=True,
            enable_dict=False)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---- types, attributes and constants ------------------------------------------------------


def make_ir_context() -> Any:
    """The MLIR context, which knows every dialect that XLA takes."""
    return jaxlib_api.mlir_context()


def _array_type(aval: Any) -> Any:
    return jaxlib_api.mlir_bindings().ir.Type.parse(tensor_type(aval))


def token_type() -> Any:
    """The MLIR type of tokens."""
    return jaxlib_api.mlir_bindings().ir.Type.parse("!stablehlo.token")


# What makes MLIR types of types, by their classes; libraries put theirs here. A value may be
# several in MLIR: then a sequence of types is made.
ir_type_handlers: dict[type, Callable[[Any], Any]] = {
    ShapedArray: _array_type, AbstractToken: lambda _: token_type(),
}


def aval_to_ir_type(ctx: Any, aval: Any = None) -> Any:
    """The MLIR type of a type; the context before it may be left out."""
    aval = ctx if aval is None else aval
    return ir_type_handlers.get(type(aval), _array_type)(aval)


def aval_to_ir_types(ctx: Any, aval: Any = None) -> tuple[Any, ...]:
    """The MLIR types of the values behind a value of a type, nearly always one."""
    found = aval_to_ir_type(ctx, aval)
    return tuple(found) if isinstance(found, (list, tuple)) else (found,)


def dtype_to_ir_type(dtype: DTypeLike) -> Any:
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


def ir_attribute(val: Any) -> Any:
    """A Python or NumPy value as an attribute.

    Raises:
      TypeError: there is no attribute for such values.
    """
    ir = jaxlib_api.mlir_bindings().ir
    value = val
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


class ConstantHandler(Protocol):
    """What makes the constant for a value of a type."""

    def __call__(self, val: Any, aval: Any) -> Any: ...


_constant_handlers: dict[type, ConstantHandler] = {}


def register_constant_handler(type_: type, handler_fun: ConstantHandler) -> None:
    """Let `handler_fun(value, aval)` make the constants for values of a Python type."""
    _constant_handlers[type_] = handler_fun


def ir_constants(val: Any, *, const_lowering: Any = None, aval: Any = None) -> list[Any]:
    """The constants behind a value, nearly always one."""
    found = ir_constant(val, const_lowering=const_lowering, aval=aval)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def ir_constant(val: Any, *, const_lowering: Any = None, aval: Any = None) -> Any:
    """A constant operation for an array or a scalar.

    Args:
      const_lowering: the operations of constants that there are, by the ids of the values.
      aval: its type, where a registered handler wants it.
    """
    if const_lowering and id(val) in const_lowering:
        return const_lowering[id(val)]
    handler = _constant_handlers.get(type(val))
    if handler is not None:
        return handler(val, aval)
    mlir = jaxlib_api.mlir_bindings()
    value = val
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


def flatten_ir_values(xs: Sequence[Any]) -> list[Any]:
    """The values in a list of values, of operations with results, and of lists of them."""
    out: list[Any] = []
    for x in xs:
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


def unflatten_ir_values_like_types(xs: Any, ys: Sequence[Any]) -> list[Any]:
    """Values as `ys` has types: one for a type, a tuple for a sequence of some.

    >>> from pyjx.interpreters.mlir import unflatten_ir_values_like_types
    >>> unflatten_ir_values_like_types([1, 2, 3], ["t", ("t", "t")])
    [1, (2, 3)]
    """
    values = iter(xs)
    found = [tuple([next(values) for _ in y]) if isinstance(y, (list, tuple)) else next(values)
             for y in ys]
    if next(values, None) is not None:
        raise ValueError("unflatten_ir_values_like_types: there are more values than types")
    return found


def shape_tensor(ctx: Any, sizes: Sequence[Any]) -> Any:
    """Sizes, ints or operations that give some, as an array of int32."""
    stablehlo = jaxlib_api.mlir_bindings().stablehlo
    if all([isinstance(n, int) for n in sizes]):
        return ir_constant(np.array(sizes, np.int32))
    one = aval_to_ir_type(ShapedArray((1,), np.int32))
    parts = [ir_constant(np.array([n], np.int32)) if isinstance(n, int) else stablehlo.reshape(
        one, stablehlo.convert(aval_to_ir_type(ShapedArray((), np.int32)), n)) for n in sizes]
    return stablehlo.concatenate(parts, i64_attr(0))


# ---- modules ------------------------------------------------------------------------------


def lower_jaxpr_to_module(module_name: str, jaxpr: ClosedJaxpr | Jaxpr, *,
                          platforms: Sequence[str], donated_args: Sequence[bool] = (),
                          **options: Any) -> LoweringResult:
    """A program as an MLIR module, for the first of the platforms.

    Args:
      donated_args: whose memory is for results.
      options: accepted; where the program runs is said when it is compiled.
    """
    closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, [])
    program = lower_closed(closed, module_name, donated=donated_args, platform=platforms[0],
                           keep_unused=True, for_export=True)
    return LoweringResult(jaxlib_api.parse_module(program.text), list(program.keepalives),
                          list(program.host_calls), ShapePolyLoweringState((), None))


def merge_mlir_modules(dst_module: Any, sym_name: str, src_module: Any, dst_symtab: Any = None
                       ) -> str:
    """Put the functions of a module into another one, which is left with a function more, the
    other's `main`.

    Args:
      sym_name: what `main` is to be called there.

    Returns:
      What it is called: a number follows where the name is taken.
    """
    ir = jaxlib_api.mlir_bindings().ir
    taken = {ir.StringAttr(op.attributes["sym_name"]).value for op in dst_module.body.operations
             if "sym_name" in op.attributes}
    fresh: dict[str, str] = {}
    for op in src_module.body.operations:
        own = ir.StringAttr(op.attributes["sym_name"]).value
        name = wanted = sym_name if own == "main" else own
        n = 0
        while name in taken:
            name, n = f"{wanted}_{n}", n + 1
        taken.add(name)
        fresh[own] = name
    with dst_module.context:
        renamed = ir.Module.parse(with_symbols(str(src_module.operation), fresh))
        for op in list(renamed.body.operations):
            op.attributes["sym_visibility"] = ir.StringAttr.get("private")
            dst_module.body.append(op)
    return fresh["main"]
