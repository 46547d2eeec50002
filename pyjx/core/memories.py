"""Memories in types: values of the device's own memory, or of its host's.

A type says `elsewhere` where its values are in another memory than the device's own. No shape
rule knows of it: results are where the operands are, which must agree; a scalar of the device goes
with any. Only what moves values (`device_put`) and what holds programs says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyjx.core.avals import ShapedArray
from pyjx.core.spaces import MEMORY_KINDS, Space

if TYPE_CHECKING:
    from pyjx.core.avals import AbstractValue


def in_memory(aval: AbstractValue, kind: str | None) -> Any:
    """The type of values in the memory that devices call `kind`; None leaves it as it is."""
    if kind is None:
        return aval
    return in_space(aval, Space.Host if kind == MEMORY_KINDS[Space.Host] else None)


def in_space(aval: AbstractValue, space: Any) -> Any:
    """The type of values in this memory; None is the device's."""
    if type(aval) is not ShapedArray or aval.elsewhere is space:
        return aval
    return aval.update(memory_space=space)


def kind_of(aval: AbstractValue) -> str | None:
    """What devices call the memory of a type; None for their own."""
    space = aval.elsewhere if type(aval) is ShapedArray else None
    return None if space is None else MEMORY_KINDS.get(space)


def are_elsewhere(avals: Sequence[Any]) -> bool:
    """Whether a type among these is that of values in another memory than the device's."""
    return any([type(a) is ShapedArray and a.elsewhere is not None for a in avals])


def results_in_memory(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """A shape rule that says in which memory results are.

    Raises:
      ValueError: operands are in several memories.
    """

    def of(*avals: Any, **params: Any) -> Any:
        wide = [a for a in avals if type(a) is ShapedArray and (a.ndim or a.elsewhere)]
        space = next((a.elsewhere for a in wide if a.elsewhere is not None), None)
        if any([a.elsewhere is not space for a in wide]):
            types = " and another operand with type: ".join(
                dict.fromkeys([a.str_short() for a in wide]))
            raise ValueError(
                f"memory_space of all inputs passed to `{name}` must be the same. Got one operand "
                f"with type: {types}. Move one of them with "
                "jax.device_put(x, jax.memory.Space.Device).")
        out = rule(*[in_space(a, None) for a in avals], **params)
        if isinstance(out, (list, tuple)):
            return [in_space(a, space) for a in out]
        return in_space(out, space)

    return of
