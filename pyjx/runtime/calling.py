"""Programs that call Python functions on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyjx import jaxlib_api
from pyjx.core.effects import keeps_alive
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.engine.types import TreeDef
from pyjx.runtime import tokens
from pyjx.runtime.executable import Executable
from pyjx.runtime.host_calls import for_xla, with_cause
from pyjx.runtime.placement import Placement

if TYPE_CHECKING:
    from lowering.module import HostCall
    from lowering.program import LoweredProgram


def host_functions(program: LoweredProgram, client: Any) -> list[Any]:
    """What XLA is given for the host calls of a program, in their order."""
    return [_function(call, client) for call in program.host_calls]


def _function(call: HostCall, client: Any) -> Any:
    transfers = call.transfers
    if transfers is None:
        return for_xla(call.function, call.result_avals, call.ordered)
    function = for_xla(call.function, call.result_avals, False)  # no token leaves the device
    return jaxlib_api.transferring_callback(
        client, lambda *arrays: function(*arrays[:transfers.taken]), transfers.sent,
        transfers.received, transfers.send_channels, transfers.receive_channels)


class CallingExecutable(Executable):
    """A compiled program with host calls; their exceptions are the causes of its errors."""

    __slots__ = ("_token_handler", "has_effects", "ordered")

    def __init__(self, loaded: Any, closed: ClosedJaxpr, program: LoweredProgram,
                 placement: Placement) -> None:
        super().__init__(loaded, closed, program, placement)
        self.has_effects = keeps_alive(closed.effects)
        self.ordered = program.ordered
        self._token_handler = jaxlib_api.result_handler(tokens.TOKEN, self.sharding, True)

    def run(self, operands: Sequence[Any], handlers: list[Any]) -> list[Any]:
        try:
            return self._with_tokens(operands, handlers) if self.has_effects else super().run(
                operands, handlers)
        except jaxlib_api.JaxRuntimeError as error:
            failure = with_cause(error)
            raise failure from failure.__cause__

    def _with_tokens(self, operands: Sequence[Any], handlers: list[Any]) -> list[Any]:
        given = [*self.const_args, *operands]
        if self.ordered:
            token = tokens.take_order(self.placement.devices, self.sharding)
            given.insert(len(self.const_args), token)
            handlers = [self._token_handler, *handlers]
        results = self.loaded.execute_sharded(given, with_tokens=True)
        tokens.add_pending(results.consume_token())
        outs: list[Any] = results.consume_with_handlers(handlers)
        if self.ordered:
            tokens.give_order(self.placement.devices, outs.pop(0))
        return outs

    def fast_path(self, out_tree: TreeDef, committed: bool) -> Any:
        """None: effects leave a token with each call, and errors are given their causes."""
        return None
