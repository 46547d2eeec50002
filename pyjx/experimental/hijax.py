"""Types of a library's own, which programs hold until they are lowered.

pyjx has no such types yet: the classes are there so that libraries which define some can be
imported, and registering one says nothing. Values of these types cannot be traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx.core.avals import AbstractRef, AbstractValue, ShapedArray
from pyjx.engine.tangents import Zero, instantiate, is_undefined_primal
from pyjx.lazy import directory, refuse

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "HiPrim", "HiPrimitive", "HiType",
    "MutableHiType", "ShapedArray", "VJPHiPrimitive", "Zero", "aval_method", "aval_property",
    "control_flow_allowed_effects", "instantiate_zeros", "is_undefined_primal", "register_hitype",
]
__dir__ = directory(__name__, __all__)
__getattr__ = refuse(__name__)


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent, where it is a symbolic zero as an array."""
    return instantiate(tangent)


class HiType(AbstractValue):
    """A type whose values are made of values of other types."""


class MutableHiType(HiType):
    """A type whose values change."""


class AvalQDD:
    """A type with what else is known of a value."""

    def __init__(self, aval: Any, qdd: Any) -> None:
        self.aval = aval
        self.qdd = qdd


class AvalMutableQDD:
    """A type with what else is known of a value, which changes."""

    def __init__(self, aval: Any, mutable_qdd: Any) -> None:
        self.aval = aval
        self.mutable_qdd = mutable_qdd


class HiPrim:
    """An operation on values of such types.

    Raises:
      NotImplementedError: it is applied.
    """

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: operations on types of a library's own "
                                  "(hijax) are not there yet; use arrays and pytrees of arrays")


class HiPrimitive(HiPrim):
    """As `HiPrim`, by its older name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        return self(*args)


VJPHiPrimitive = HiPrim


class aval_method:
    """A method that values of a type have."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class aval_property:
    """A property that values of a type have."""

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget = fget


class EffectTypeSet:
    """The effects that are allowed somewhere, by their types."""

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        self._types.add(effect_type)

    def contains(self, effect: Any) -> bool:
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = EffectTypeSet()

registered: dict[type, Callable[[Any], Any]] = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Note the type of values of a class."""
    registered[val_cls] = typeof_fn
