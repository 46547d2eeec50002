"""A compiled program and its arguments: where they are put, and what becomes of the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, Token, abstract_token, get_aval
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.engine.types import TreeDef
from pyjx.runtime import backends
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.sharding import single_device_sharding

if TYPE_CHECKING:
    from lowering.program import LoweredProgram


class Executable:
    """A compiled program with what is needed to call it.

    `kept` says which arguments of the jaxpr the program takes; the others are not used. Before
    them it takes `const_args`, the constants that were too large to write into its text.
    `from_disk` are the options that one was compiled with which the disk cache had; else None.
    """

    __slots__ = ("_handlers", "const_args", "device", "from_disk", "in_avals", "kept", "loaded",
                 "logical_out_avals", "out_avals", "sharding")

    def __init__(self, loaded: Any, closed: ClosedJaxpr, program: LoweredProgram, device: Any
                 ) -> None:
        self.loaded = loaded
        self.in_avals = closed.in_avals
        self.logical_out_avals = closed.out_avals
        self.kept = program.kept
        self.device = device
        self.sharding = single_device_sharding(device)
        self.const_args = self._constants(program)
        self.out_avals = [physical_aval(a) for a in closed.out_avals]
        self._handlers: dict[bool, list[Any]] = {}
        self.from_disk: dict[str, Any] | None = None

    def _constants(self, program: LoweredProgram) -> list[Any]:
        return [self.put(c, get_aval(c)) for c in program.const_args]

    def put(self, x: Any, aval: ShapedArray) -> Any:
        """The argument as an array on the program's device."""
        if type(x) is ArrayImpl:
            if x.sharding == self.sharding:
                x._check_if_deleted()
                return x
            return _array_on(x, self.sharding, self.device)
        physical = getattr(x, "_base_array", None)
        if physical is not None:  # an array of an extended dtype, such as PRNG keys
            return self.put(physical, get_aval(physical))
        if aval.dtype == dtypes.float0:
            x, aval = False, physical_aval(aval)
        host = np.asarray(x, dtype=aval.dtype)
        if host.shape != aval.shape:
            host = np.broadcast_to(host, aval.shape)
        return jaxlib_api.batched_device_put(aval, self.sharding, [host], [self.device], False)

    def handlers(self, committed: bool) -> list[Any]:
        handlers = self._handlers.get(committed)
        if handlers is None:
            handlers = self._handlers[committed] = [
                jaxlib_api.result_handler(a, self.sharding, committed) for a in self.out_avals
            ]
        return handlers

    def call(self, args: Sequence[Any], committed: bool = False) -> list[Any]:
        """Run on flat arguments; results are arrays."""
        operands = [self.put(x, a)
                    for x, a, keep in zip(args, self.in_avals, self.kept, strict=True) if keep]
        outs = self.run(operands, self.handlers(committed))
        return [wrap_extended(o, a) for o, a in zip(outs, self.logical_out_avals, strict=True)]

    def run(self, operands: Sequence[Any], handlers: list[Any]) -> list[Any]:
        """Run on arrays that are where the program wants them."""
        results = self.loaded.execute_sharded([*self.const_args, *operands])
        return results.consume_with_handlers(handlers)  # type: ignore[no-any-return]

    def fast_path(self, out_tree: TreeDef, committed: bool) -> Any:
        """What C++ needs to make the next call itself."""
        n = len(self.const_args) + sum(self.kept)
        outs = self.out_avals
        return jaxlib_api.FastPath(
            self.loaded, out_tree, [self.sharding] * n, [self.sharding] * len(outs), outs,
            [committed] * len(outs), self.kept, [None] * n, self.const_args,
        )


class DescribedExecutable(Executable):
    """A program compiled for a device that is only described: it can be looked at, not run."""

    __slots__ = ()

    def _constants(self, program: LoweredProgram) -> list[Any]:
        return []  # there is no memory to put them into

    def call(self, args: Sequence[Any], committed: bool = False) -> list[Any]:
        raise RuntimeError(f"This program was compiled for {self.device}, which is not attached: "
                           "it is one of a topology's. It can be looked at (`as_text`, "
                           "`cost_analysis`, `memory_analysis`), not run.")


def physical_aval(aval: Any) -> Any:
    """The aval of the buffer behind a value: key arrays are arrays of unsigned integers, and
    tokens and arrays of dtype float0 are lowered as booleans."""
    if isinstance(aval, ShapedArray):
        if dtypes.is_extended(aval.dtype):
            return aval.dtype.physical_aval(aval)
        if aval.dtype == dtypes.float0:
            return ShapedArray(aval.shape, np.bool_)
    return ShapedArray((0,), np.bool_) if aval is abstract_token else aval


def wrap_extended(x: Any, aval: Any) -> Any:
    if isinstance(aval, ShapedArray):
        if dtypes.is_extended(aval.dtype):
            return aval.dtype.from_physical(x)
        if aval.dtype == dtypes.float0:
            return np.zeros(aval.shape, dtypes.float0)
    return Token() if aval is abstract_token else x


def _array_on(x: Any, sharding: Any, device: Any) -> Any:
    x._check_if_deleted()
    if len(x.sharding.device_set) > 1:
        raise ValueError(
            f"A program for one device got an array that is spread over "
            f"{len(x.sharding.device_set)} devices (sharding {x.sharding})."
        )
    if x.committed and x.sharding.device_set != sharding.device_set:
        raise ValueError(
            "Received incompatible devices for jitted computation: the program runs on "
            f"{device}, an argument of shape {x.aval.str_short()} is committed to "
            f"{next(iter(x.sharding.device_set))}."
        )
    return jaxlib_api.batched_device_put(x.aval, sharding, [x], [device], x.committed)


def device_of(args: Sequence[Any]) -> tuple[Any, bool]:
    """Where a program on `args` runs: the device that one is committed to, or the default one."""
    for x in args:
        x = getattr(x, "_base_array", x)
        if type(x) is ArrayImpl and x.committed:
            return next(iter(x.sharding.device_set)), True
    return backends.default_device(), False


def shard_argument(x: Any, sharding: Any, layout: Any) -> Any:
    """Called by C++ for an argument that is not where the program wants it."""
    device = next(iter(sharding.device_set))
    if type(x) is ArrayImpl:
        return _array_on(x, sharding, device)
    aval = get_aval(x)
    return jaxlib_api.batched_device_put(
        aval, sharding, [np.asarray(x, dtype=aval.dtype)], [device], False
    )
