"""Lowering rules that call foreign functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.compat.mlir_contexts import LoweringRuleContext
from pyjx.compat.mlir_values import aval_to_ir_type, flatten_ir_values, i32_attr, ir_attribute
from pyjx.core.layouts import Layout

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
