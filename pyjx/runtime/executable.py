"""A compiled program and its arguments: where they are put, and what becomes of the results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.core import dtypes
from pyjx.core.avals import AbstractValue, ShapedArray, Token, abstract_token, get_aval
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.specs import PartitionSpec
from pyjx.engine.types import TreeDef
from pyjx.jaxlib_api import Sharding
from pyjx.runtime.array import ArrayImpl, ExtendedArray, as_of_programs, for_programs, put
from pyjx.runtime.placement import Placement, in_memories
from pyjx.runtime.sharding import NamedSharding, SingleDeviceSharding
from pyjx.runtime.transfers import moved, put_host
from pyjx.states import FlagValues

if TYPE_CHECKING:
    from lowering.program import LoweredProgram


class Executable:
    """A compiled program with what is needed to call it.

    `kept` says which arguments of the jaxpr the program takes; the others are not used. Before
    them it takes `const_args`, the constants that were too large to write into its text.
    `in_shardings` are those of the arguments it takes, `out_shardings` those of its results.
    `in_layouts` are the layouts of these arguments, None where the device cannot say.
    `from_disk` are the options and flags that one was compiled with which the disk cache had; else
    None. `was_run` says whether its first run was timed.
    """

    __slots__ = ("_const_shardings", "_handlers", "const_args", "from_disk", "in_avals",
                 "in_layouts", "in_shardings", "keepalives", "kept", "loaded", "logical_out_avals",
                 "out_avals", "out_shardings", "placement", "was_run")

    def __init__(self, loaded: Any, closed: ClosedJaxpr, program: LoweredProgram,
                 placement: Placement) -> None:
        self.loaded = loaded
        self.in_avals = closed.in_avals
        self.logical_out_avals = closed.out_avals
        self.kept = program.kept
        self.keepalives = program.keepalives
        self.placement = placement
        self.out_avals = [physical_aval(a) for a in closed.out_avals]
        self._const_shardings = [placement.of_constant(c) for c in program.const_args]
        sharding = placement.sharding
        if sharding is not None:
            ins, outs = placement.kinds
            self.in_shardings = in_memories([sharding] * sum(program.kept),
                                            ins and tuple(compress(ins, program.kept)))
            self.out_shardings = in_memories([sharding] * len(self.out_avals), outs)
        else:
            self.in_shardings, self.out_shardings = settled(
                loaded, placement, program, list(map(physical_aval, closed.in_avals)),
                self.out_avals)
        if placement.mesh is not None or any(placement.kinds):
            self.out_avals = [
                a.reshard(s) for a, s in zip(self.out_avals, self.out_shardings, strict=True)]
        self.in_layouts = jaxlib_api.parameter_layouts(loaded, sum(program.kept))
        self.const_args = self._constants(program)
        self._handlers: dict[bool, list[Any]] = {}
        self.from_disk: tuple[dict[str, Any], FlagValues] | None = None
        self.was_run = False

    @property
    def device(self) -> Any:
        """The device, or the first one."""
        return self.placement.devices[0]

    @property
    def sharding(self) -> Any:
        """Where it runs: on one device, or as copies on several."""
        placement = self.placement
        return placement.sharding or NamedSharding(placement.mesh, PartitionSpec())

    def _constants(self, program: LoweredProgram) -> list[Any]:
        values = [for_programs(c) if type(c) is ArrayImpl else c for c in program.const_args]
        return [as_of_programs(argument(c, get_aval(c), s))
                for c, s in zip(values, self._const_shardings, strict=True)]

    def handlers(self, committed: bool) -> list[Any]:
        handlers = self._handlers.get(committed)
        if handlers is None:
            handlers = self._handlers[committed] = [
                jaxlib_api.result_handler(a, s, committed)
                for a, s in zip(self.out_avals, self.out_shardings, strict=True)]
        return handlers

    def call(self, args: Sequence[Any], committed: bool = False) -> list[Any]:
        """Run on flat arguments; results are arrays."""
        kept = self.kept
        operands = [argument(x, a, s) for x, a, s in zip(
            compress(args, kept), compress(self.in_avals, kept), self.in_shardings, strict=True)]
        outs = self.run(operands, self.handlers(committed))
        return [wrap_extended(o, a) for o, a in zip(outs, self.logical_out_avals, strict=True)]

    def run(self, operands: Sequence[Any], handlers: list[Any]) -> list[Any]:
        """Run on arrays that are where the program wants them."""
        results = self.loaded.execute_sharded([*self.const_args, *operands])
        return results.consume_with_handlers(handlers)  # type: ignore[no-any-return]

    def fast_path(self, out_tree: TreeDef, committed: bool) -> Any:
        """What C++ needs to make the next call itself."""
        in_shardings = [*self._const_shardings, *self.in_shardings]
        outs = self.out_avals
        return jaxlib_api.FastPath(self.loaded, out_tree, in_shardings, self.out_shardings, outs,
                                   [committed] * len(outs), self.kept, [None] * len(in_shardings),
                                   self.const_args)


class DescribedExecutable(Executable):
    """A program compiled for a device that is only described: it can be looked at, not run."""

    __slots__ = ()

    def _constants(self, program: LoweredProgram) -> list[Any]:
        return []  # there is no memory to put them into

    def call(self, args: Sequence[Any], committed: bool = False) -> list[Any]:
        raise RuntimeError(f"This program was compiled for {self.device}, which is not attached: "
                           "it is one of a topology's. It can be looked at (`as_text`, "
                           "`cost_analysis`, `memory_analysis`), not run.")


def physical_aval(aval: AbstractValue) -> Any:
    """The aval of the buffer behind a value: key arrays are arrays of unsigned integers, and
    tokens and arrays of dtype float0 are lowered as booleans."""
    if isinstance(aval, ShapedArray):
        if dtypes.is_extended(aval.dtype):
            return aval.dtype.physical_aval(aval)
        if aval.dtype == dtypes.float0:
            return ShapedArray(aval.shape, np.bool_)
    return ShapedArray((0,), np.bool_) if aval is abstract_token else aval


def wrap_extended(x: Any, aval: AbstractValue) -> Any:
    if isinstance(aval, ShapedArray):
        if dtypes.is_extended(aval.dtype):
            wrap = getattr(aval.dtype, "from_physical", None)
            return ExtendedArray(aval, x) if wrap is None else wrap(x)
        if aval.dtype == dtypes.float0:
            return np.zeros(aval.shape, dtypes.float0)
    return Token() if aval is abstract_token else x


def settled(loaded: Any, placement: Placement, program: LoweredProgram, in_avals: Sequence[Any],
            out_avals: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The shardings of a program's arguments and results, with those that XLA has chosen."""
    ins = list(compress(placement.in_shardings, program.kept))
    outs = list(placement.out_shardings)
    if None in ins:
        chosen = loaded.get_parameter_shardings()
        chosen = chosen and chosen[len(chosen) - len(ins):]
        _fill(ins, chosen, list(compress(in_avals, program.kept)), placement, None)
    if None in outs:
        chosen = loaded.get_output_shardings()
        first = next(compress(in_avals, program.kept), None)
        _fill(outs, chosen and chosen[len(chosen) - len(outs):], out_avals, placement,
              None if first is None else (ins[0], first.ndim))
    return ins, in_memories(outs, placement.kinds[1])


def _fill(shardings: list[Any], chosen: Any, avals: Sequence[Any], placement: Placement,
          first: tuple[Any, int] | None) -> None:
    """Put XLA's choice where a sharding is None, by the name that the first argument's has, as in
    JAX, if both have one rank and are equivalent."""
    for i, sharding in enumerate(shardings):
        if sharding is None:
            ndim = avals[i].ndim
            proto = chosen[i] if chosen else None
            found = placement.named(proto, ndim)
            if first and first[1] == ndim and first[0].is_equivalent_to(found, ndim):
                found = first[0]
            shardings[i] = found


# ---- arguments ----------------------------------------------------------------------------


def argument(x: Any, aval: ShapedArray, sharding: Sharding) -> Any:
    """An argument of type `aval` as an array with this sharding."""
    if type(x) is ArrayImpl:
        x._check_if_deleted()
        old = x.sharding
        if old == sharding or old.is_equivalent_to(sharding, x.aval.ndim):
            return x
        return moved(x, sharding)
    physical = getattr(x, "_base_array", None)
    if physical is not None:  # an array of an extended dtype, such as PRNG keys
        return argument(physical, get_aval(physical), sharding)
    if aval.dtype == dtypes.float0:
        x, aval = False, physical_aval(aval)
    host = np.asarray(x, dtype=aval.dtype)
    if host.shape != aval.shape:
        host = np.broadcast_to(host, aval.shape)
    if type(sharding) is not SingleDeviceSharding:
        return put_host(host, aval, sharding, False)
    return put(aval, sharding, [host], [sharding._device], False)


def shard_argument(x: Any, sharding: Sharding | None, layout: Any) -> Any:
    """Called by C++ for an argument that is not where the program wants it."""
    return argument(x, get_aval(x), sharding)
