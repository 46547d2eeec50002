"""Calls of Python functions on the host."""

from __future__ import annotations

import numpy as np

from lowering.builder import Block, in_avals
from lowering.module import HostCall
from lowering.rules import rule
from lowering.shardings import whole_along
from pyjx.core.avals import abstract_token
from pyjx.core.jaxpr import JaxprEqn

_NAMES = ("debug_callback", "io_callback", "pure_callback")


def _call(b: Block, eqn: JaxprEqn, operands: tuple[str, ...], target: str) -> list[str]:
    """The function is known by its position among those of the module. With ordered effects the
    first operand and the first result are tokens."""
    avals, results = in_avals(eqn), [v.aval for v in eqn.outvars]
    ordered = bool(avals) and avals[0] is abstract_token
    call = HostCall(eqn.params["callback"], eqn.params.get("result_avals", ()), ordered)
    calls = b.module.host_calls
    calls.append(call)
    outs = b.custom_call(target, operands, avals, results,
                         config={"index": np.uint64(len(calls) - 1)},
                         has_side_effect=eqn.primitive.effects is not None,
                         on_one_device=True)
    return [x if a is abstract_token else whole_along(b, x, a, range(a.ndim))  # on all devices
            for x, a in zip(outs, results, strict=True)]


@rule("inspect_sharding")
def _inspect_sharding(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    """Nothing runs: the function is called when the program has been compiled."""
    b.module.inspections.append(eqn.params["callback"])
    return []


@rule(*_NAMES, platform="cpu")
def _on_cpu(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    return _call(b, eqn, operands, "xla_ffi_python_cpu_callback")


@rule(*_NAMES, platform="cuda")
@rule(*_NAMES, platform="rocm")
def _on_gpu(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    return _call(b, eqn, operands, "xla_ffi_python_gpu_callback")


def _on_buffers(b: Block, eqn: JaxprEqn, operands: tuple[str, ...], target: str) -> list[str]:
    params = eqn.params
    calls = b.module.host_calls
    calls.append(HostCall(params["callback"], params["result_avals"], False))
    return b.custom_call(
        target, operands, in_avals(eqn), [v.aval for v in eqn.outvars],
        config={"index": np.uint64(len(calls) - 1)}, has_side_effect=params["has_side_effect"],
        aliases={result: operand for operand, result in params["input_output_aliases"]},
        on_one_device=True)


@rule("buffer_callback", platform="cpu")
def _on_cpu_buffers(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    return _on_buffers(b, eqn, operands, "xla_buffer_python_cpu_callback")


@rule("buffer_callback", platform="cuda")
@rule("buffer_callback", platform="rocm")
def _on_gpu_buffers(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    suffix = "_cmd_buffer" if eqn.params["command_buffer_compatible"] else ""
    return _on_buffers(b, eqn, operands, f"xla_buffer_python_gpu_callback{suffix}")
