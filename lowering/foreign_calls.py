"""Calls of what is no jaxpr: foreign functions, exported programs, jaxlib's products of sparse
matrices, and Python functions on the host.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from lowering import rules
from lowering.builder import Block, in_avals, out_aval
from lowering.locations import Locations
from lowering.manual import free_axes, on_first_along
from lowering.module import HostCall, HostTransfers, Inspection
from lowering.shardings import lying_as, whole_along
from lowering.types import tensor_type, with_symbols
from pyjx.core.avals import ShapedArray, abstract_token
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.meshes import AbstractMesh

rule = partial(rules.rule, foreign=True)

# -- foreign functions, exported programs, products of sparse matrices -----------------------------


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
    raise NotImplementedError(f"pallas_call: kernels are not compiled for {b.module.platform}. "
                              "Give it interpret=True, which makes XLA's operations of the kernel; "
                              "or call one of your own by jax.ffi.ffi_call.")


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
    return [x if s is None else lying_as(b, x, a, s)
            for x, a, s in zip(xs, avals, shardings, strict=True)]


@rule("call_exported")
def _call_exported(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    avals, outs = in_avals(eqn), [v.aval for v in eqn.outvars]
    program = eqn.params["program"].for_call(tuple(avals), b.module.platform)
    if program.devices not in (1, b.module.partitions):
        raise ValueError(f"Function {program.name} was exported for {program.devices} devices and "
                         f"is called in a context with {b.module.partitions} devices, which is not "
                         "allowed. Put an argument on a mesh of so many devices.")
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


# -- Python functions ------------------------------------------------------------------------------

_NAMES = ("debug_callback", "io_callback", "pure_callback")


def _host_call(eqn: JaxprEqn, ordered: bool, transfers: HostTransfers | None = None) -> HostCall:
    params = eqn.params
    return HostCall(params["callback"], params.get("result_avals", ()), ordered, transfers,
                    eqn.source_info.traceback)


def _call(b: Block, eqn: JaxprEqn, operands: tuple[str, ...], target: str) -> list[str]:
    """The function is known by its position among those of the module. With ordered effects the
    first operand and the first result are tokens. What is `partitioned` is called by each device
    with its parts, as the partitioner cuts the operands."""
    avals, results = in_avals(eqn), [v.aval for v in eqn.outvars]
    ordered = bool(avals) and avals[0] is abstract_token
    call = _host_call(eqn, ordered)
    place = _place(b, eqn)
    calls = b.module.host_calls
    calls.append(call)
    if eqn.params.get("partitioned") and b.module.partitions > 1 and b.module.manual is None:
        target = target.replace("_python_", "_partitioned_python_")

    def called(values: Sequence[str]) -> list[str]:
        return b.custom_call(target, values, avals, results, family="callbacks",
                             config={"index": np.uint64(len(calls) - 1)},
                             has_side_effect=eqn.primitive.effects is not None, on_device=place)

    free = free_axes(b) if b.module.partitions > 1 and eqn.primitive.effects is not None else ()
    if free and eqn.primitive.name != "debug_callback":
        raise NotImplementedError(
            f"{eqn.primitive.name}: callbacks are only supported in spmd computations when all "
            "mesh axes are partitioned manually (no partial automatic sharding). Call shard_map "
            f"over the axes {sorted(map(str, free))}, too.")
    if free:
        on_first_along(b, free, operands, avals, called)
        return []
    outs = called(operands)
    return [x if a is abstract_token else whole_along(b, x, a, range(a.ndim))  # on all devices
            for x, a in zip(outs, results, strict=True)]


def _place(b: Block, eqn: JaxprEqn) -> int:
    """The place of the device whose callback it is: the first, if none was named."""
    name, sharding = eqn.primitive.name, eqn.params.get("sharding")
    if sharding is None:
        return 0
    if b.module.manual is not None:
        raise NotImplementedError(f"{name}: callbacks do not support specifying sharding inside "
                                  "spmd computations. Leave sharding= out in shard_map.")
    (device,), devices = sharding.device_set, b.module.devices
    if not devices:  # only the platform is known
        return 0
    if device not in devices:
        platform, number = device.platform, device.id
        raise ValueError(f"Sharding provided to pure_callback specifies a device {platform}:"
                         f"{number} that is not in the device assignment ({tuple(devices)}). Give "
                         f"{name} one of these, or leave sharding= out.")
    return devices.index(device)


@rule("inspect_sharding")
def _inspect_sharding(b: Block, eqn: JaxprEqn, x: str) -> list[str]:
    """Nothing runs: the function is called when the program has been compiled. Over several devices
    the partitioner says how the value lies."""
    aval = in_avals(eqn)[0]
    inspection = Inspection(eqn.params["callback"], aval.ndim)
    b.module.inspections.append(inspection)
    if b.module.partitions > 1 and b.module.manual is None:
        b.line(f'stablehlo.custom_call @InspectSharding({x}) {{backend_config = '
               f'"{eqn.params["encode"](inspection.found)}", has_side_effect = true}} : '
               f"({tensor_type(aval)}) -> {tensor_type(aval)}")
    return []


@rule(*_NAMES, platform="cpu")
def _on_cpu(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    return _call(b, eqn, operands, "xla_ffi_python_cpu_callback")


@rule(*_NAMES, platform="cuda")
@rule(*_NAMES, platform="rocm")
def _on_gpu(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    return _call(b, eqn, operands, "xla_ffi_python_gpu_callback")


_DEVICE_TO_HOST, _HOST_TO_DEVICE = 2, 3  # kinds of channels
_FIRST_CHANNEL = 2  # the one before it is that of collectives


@rule(*_NAMES, platform="tpu")
def _on_tpu(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    """Each operand is sent and each result received by a channel of its own; the function is called
    when all has been sent, so at least a number is."""
    if b.module.partitions > 1:
        raise NotImplementedError(f"{eqn.primitive.name} in a program on several TPUs is not "
                                  "supported. Call it outside of the program, on its results.")
    avals, results = in_avals(eqn), [v.aval for v in eqn.outvars]
    ordered = bool(avals) and avals[0] is abstract_token
    if ordered:
        token, avals, operands, results = operands[0], avals[1:], operands[1:], results[1:]
    else:
        token = b.line("stablehlo.create_token : !stablehlo.token")
    taken = len(avals)
    if not taken:
        avals = [ShapedArray((), np.dtype(np.int32))]
        operands = (b.constant(0, avals[0]),)
    calls = b.module.host_calls
    first = _FIRST_CHANNEL + sum([
        len(c.transfers.send_channels) + len(c.transfers.receive_channels)
        for c in calls if c.transfers is not None])
    sending = range(first, first + len(avals))
    receiving = range(sending.stop, sending.stop + len(results))
    calls.append(_host_call(
        eqn, ordered, HostTransfers(taken, avals, list(sending), results, list(receiving))))
    for x, aval, channel in zip(operands, avals, sending, strict=True):
        token = b.line(f'"stablehlo.send"({x}, {token}) {_transfer(channel, _DEVICE_TO_HOST)} : '
                       f"({tensor_type(aval)}, !stablehlo.token) -> !stablehlo.token")
    outs = []
    for aval, channel in zip(results, receiving, strict=True):
        out, token = b.multi(
            f'"stablehlo.recv"({token}) {_transfer(channel, _HOST_TO_DEVICE)} : '
            f"(!stablehlo.token) -> ({tensor_type(aval)}, !stablehlo.token)", 2)
        outs.append(out)
    return [token, *outs] if ordered else outs


def _transfer(channel: int, kind: int) -> str:
    """The attributes of a transfer to or from the host."""
    return (f"<{{channel_handle = #stablehlo.channel_handle<handle = {channel}, type = {kind}>, "
            "is_host_transfer = true}> {mhlo.frontend_attributes = "
            f'{{_xla_host_transfer_handler_name = "xla_python_callback", '
            f'_xla_host_transfer_rendezvous = "channel_{channel}"}}}}')


def _on_buffers(b: Block, eqn: JaxprEqn, operands: tuple[str, ...], target: str) -> list[str]:
    params = eqn.params
    calls = b.module.host_calls
    calls.append(_host_call(eqn, False))
    return b.custom_call(
        target, operands, in_avals(eqn), [v.aval for v in eqn.outvars], family="callbacks",
        config={"index": np.uint64(len(calls) - 1)}, has_side_effect=params["has_side_effect"],
        aliases={result: operand for operand, result in params["input_output_aliases"]},
        on_device=0)


@rule("buffer_callback", platform="cpu")
def _on_cpu_buffers(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    return _on_buffers(b, eqn, operands, "xla_buffer_python_cpu_callback")


@rule("buffer_callback", platform="cuda")
@rule("buffer_callback", platform="rocm")
def _on_gpu_buffers(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    suffix = "_cmd_buffer" if eqn.params["command_buffer_compatible"] else ""
    return _on_buffers(b, eqn, operands, f"xla_buffer_python_gpu_callback{suffix}")
