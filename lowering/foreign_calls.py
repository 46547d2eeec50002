"""Calls of foreign functions, of exported programs, and of jaxlib's products of sparse matrices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lowering.builder import Block, in_avals, out_aval
from lowering.locations import Locations
from lowering.rules import rule
from lowering.shardings import sharding_text
from lowering.types import tensor_type, with_symbols
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.meshes import AbstractMesh


@rule("ffi_call")
def _ffi_call(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    params = eqn.params
    config: Any = params["legacy_backend_config"] or ""
    if params["custom_call_api_version"] >= 4:
        config = dict(params["attributes"])
    return b.custom_call(
        params["target_name"], operands, in_avals(eqn), [v.aval for v in eqn.outvars],
        family="lapack" if params["target_name"].startswith("lapack_") else "", config=config,
        has_side_effect=params["has_side_effect"],
        aliases={result: operand for operand, result in params["input_output_aliases"]},
        api_version=params["custom_call_api_version"],
        layouts=(params["input_layouts"], params["output_layouts"]))


@rule("mosaic_call")
def _kernel_of_tpus(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    if b.module.platform == "cpu":
        raise ValueError("Only interpret mode is supported on CPU backend. Give pallas_call "
                         "interpret=True, or run what calls it within "
                         "pltpu.force_tpu_interpret_mode().")
    raise NotImplementedError(
        f"pallas_call: kernels are not compiled for {b.module.platform}. Give it interpret=True, "
        "which makes XLA's operations of the kernel; or call one of your own by "
        "jax.ffi.ffi_call.")


class ForeignFunction:
    """A function of a module whose text comes from elsewhere."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self, places: Locations | None = None, names_results: bool = False) -> str:
        return self._text


def add_functions(b: Block, functions: Sequence[tuple[str, str]], name: str) -> str:
    """Add functions, given by their names and texts, to the module under names that are free there.
    The new name of the first is returned."""
    meshes = {own: _mesh_symbol(b, text) for own, text in functions if text.startswith("sdy.mesh")}
    functions = [(own, text) for own, text in functions if own not in meshes]
    fresh = {own: b.module.fresh_name(f"{name}.{own}") for own, _ in functions} | meshes
    for _, text in functions:
        b.module.functions.append(ForeignFunction(  # type: ignore[arg-type]
            with_symbols(text, fresh)))
    return fresh[functions[0][0]]


def _mesh_symbol(b: Block, text: str) -> str:
    """The symbol of the mesh of this module that is like the declared one."""
    axes = re.findall(r'"([^"]*)"=(\d+)', text)
    if "device_ids" in text:
        return b.module.meshes.device(0)
    return b.module.meshes.name(AbstractMesh(tuple([int(size) for _, size in axes]),
                                             tuple([name for name, _ in axes])))


def _laid_out(b: Block, xs: Sequence[str], avals: Sequence[Any], shardings: Sequence[Any]
              ) -> list[str]:
    """Values that lie as shardings say; None leaves one as it is."""
    return [x if s is None else b.line(
        f"sdy.sharding_constraint {x} {sharding_text(b.module.meshes, s, a.ndim)} : "
        f"{tensor_type(a)}") for x, a, s in zip(xs, avals, shardings, strict=True)]


@rule("call_exported")
def _call_exported(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    avals, outs = in_avals(eqn), [v.aval for v in eqn.outvars]
    program = eqn.params["program"].for_call(tuple(avals), b.module.platform)
    if program.devices not in (1, b.module.partitions):
        raise ValueError(
            f"Function {program.name} was exported for {program.devices} devices and is called in "
            f"a context with {b.module.partitions} devices, which is not allowed. Put an argument "
            "on a mesh of so many devices.")
    if program.devices > 1:
        operands = tuple(_laid_out(b, operands, avals, program.in_shardings))
    key = program, b.module.platform
    function = b.module.foreign.get(key)
    if function is None:
        function = b.module.foreign[key] = add_functions(b, program.functions, program.name)
        b.module.custom_calls.update(program.custom_calls)
    given = [b.line(f"stablehlo.convert {x} : ({tensor_type(a)}) -> {t}")
             if t != tensor_type(a) else x
             for x, a, t in zip(operands, avals, program.in_types, strict=True)]
    kept = [given[i] for i in program.kept]
    types = [program.in_types[i] for i in program.kept]
    results = b.multi(f"func.call @{function}({', '.join(kept)}) : ({', '.join(types)}) -> "
                      f"({', '.join(program.out_types)})", len(outs))
    results = [b.line(f"stablehlo.convert {y} : ({t}) -> {tensor_type(a)}")
               if t != tensor_type(a) else y
               for y, a, t in zip(results, outs, program.out_types, strict=True)]
    return _laid_out(b, results, outs, program.out_shardings) if program.devices > 1 else results


@rule("csr_product", platform="cpu")
def _csr_product(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    return b.custom_call("cpu_csr_sparse_dense_ffi", operands, in_avals(eqn), [out_aval(eqn)],
                         family="sparse")
