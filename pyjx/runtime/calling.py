"""Programs that call Python functions on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyjx import jaxlib_api
from pyjx.core.effects import keeps_alive
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.engine.types import TreeDef
from pyjx.runtime import tokens
from pyjx.runtime.executable import Executable
from pyjx.runtime.host_calls import cause_of, for_xla

if TYPE_CHECKING:
    from lowering.program import LoweredProgram


def host_functions(program: LoweredProgram) -> list[Callable[..., Any]]:
    """What XLA is given for the host calls of a program, in their order."""
    return [for_xla(*call) for call in program.host_calls]


class CallingExecutable(Executable):
    """A compiled program with host calls; their exceptions are the causes of its errors."""

    __slots__ = ("has_effects", "ordered")

    def __init__(self, loaded: Any, closed: ClosedJaxpr, program: LoweredProgram, device: Any
                 ) -> None:
        super().__init__(loaded, closed, program, device)
        self.has_effects = keeps_alive(closed.effects)
        self.ordered = program.ordered

    def run(self, operands: Sequence[Any], handlers: list[Any]) -> list[Any]:
        try:
            if self.has_effects:
                return tokens.run(self.loaded, self.device, self.sharding, self.const_args,
                                  operands, self.ordered, handlers)
            return super().run(operands, handlers)
        except jaxlib_api.JaxRuntimeError as error:
            raise error from cause_of(error)

    def fast_path(self, out_tree: TreeDef, committed: bool) -> Any:
        """None where there are effects: each call leaves a token."""
        return None if self.has_effects else super().fast_path(out_tree, committed)
