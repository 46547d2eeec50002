"""Calls of Python functions on the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lowering.builder import Block, in_avals
from lowering.manual import free_axes, on_first_along
from lowering.module import HostCall, HostTransfers, Inspection
from lowering.rules import rule
from lowering.shardings import whole_along
from lowering.types import tensor_type
from pyjx.core.avals import ShapedArray, abstract_token
from pyjx.core.jaxpr import JaxprEqn

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
                             has_side_effect=eqn.primitive.effects is not None,
                             on_device=place)

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
