"""Types of a library's own: values that are made of arrays, with operations of their own.

Here a value of such a type is a node of pytrees whose children are the values that it is made of
(`HiType.lower_val`), so every transformation takes it apart and hands a value made of traced arrays
to the function. Tangents have the types that the tangents of its parts have. Operations
on them are in `hi_primitives`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.compat.values import aval_method, aval_property
from pyjx.core.avals import AbstractValue, aval_makers
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.engine.tangents import Zero, add_tangents, instantiate
from pyjx.tree_util import register_pytree_node


class MappingSpec:
    """How a batch of values of a type is made: base of what types bring."""


class HiPspec:
    """How a value of a type lies on a mesh: base of what types bring."""

    def to_lo(self) -> Sequence[Any]:
        """The specs of the values that it is made of."""
        raise NotImplementedError(f"{type(self).__name__} must override to_lo")

    def to_tangent_spec(self) -> HiPspec:
        """That of its tangents."""
        raise NotImplementedError(f"{type(self).__name__} must override to_tangent_spec")

    def to_ct_spec(self) -> HiPspec:
        """That of its cotangents."""
        raise NotImplementedError(f"{type(self).__name__} must override to_ct_spec")


class HiType(AbstractValue):
    """A type whose values are made of values of other types.

    A subclass says of which (`lo_ty`), and how values are taken apart (`lower_val`) and made
    (`raise_val`); `register_hitype` says which values have it.

    >>> from dataclasses import dataclass
    >>> import pyjx as jax
    >>> from pyjx.experimental import hijax
    >>> @dataclass(frozen=True)
    ... class PairType(hijax.HiType):
    ...     part: jax.core.ShapedArray
    ...     def lo_ty(self): return [self.part, self.part]
    ...     def lower_val(self, val): return [val.first, val.second]
    ...     def raise_val(self, first, second): return Pair(first, second)
    ...
    >>> @dataclass
    ... class Pair:
    ...     first: jax.Array
    ...     second: jax.Array
    ...
    >>> hijax.register_hitype(Pair, lambda x: PairType(jax.typeof(x.first)))
    >>> jax.jit(lambda p: Pair(p.second, p.first))(Pair(1.0, 2.0)).first
    Array(2., dtype=float32, weak_type=True)
    """

    is_high = True

    def lo_ty(self) -> list[Any]:
        self._must_override("lo_ty")

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        self._must_override("lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        self._must_override("raise_val")

    def vspace_zero(self) -> Any:
        """The value whose parts are zeros."""
        return self.raise_val(*[instantiate(Zero(a)) for a in self.lo_ty()])

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The value whose parts are the sums of parts."""
        parts = zip(self.lower_val(x), self.lower_val(y), strict=True)
        return self.raise_val(*[add_tangents(a, b) for a, b in parts])

    def nospec(self, mesh: Mesh | AbstractMesh, check_vma: bool, all_names: Sequence[Any]
              ) -> HiPspec:
        """How a result lies of which nothing is said."""
        self._must_override("nospec")

    def leading_axis_spec(self) -> Any:
        self._must_override("leading_axis_spec")


class MutableHiType(HiType):
    """A type whose values change: they are made of references. What is known beyond the type
    (`qdd`, of "quasi-dynamic data") comes with the values."""

    has_qdd = True

    def lo_ty_qdd(self, qdd: Any) -> list[Any]:
        self._must_override("lo_ty_qdd")

    def new_from_loval(self, qdd: Any, *lo_vals: Any) -> Any:
        """A new value of these parts."""
        self._must_override("new_from_loval")

    def read_loval(self, qdd: Any, hi_val: Any) -> list[Any]:
        """The parts of a value."""
        self._must_override("read_loval")

    def update_from_loval(self, qdd: Any, hi_val: Any, *lo_vals: Any) -> None:
        """Give a value other parts."""
        self._must_override("update_from_loval")

    def update_from_loval2(self, qdd: Any, hi_val: Any, lo_vals: Any) -> None:
        self.update_from_loval(qdd, hi_val, *lo_vals)

    def read_loval_in(self, qdd: Any, hi_val: Any) -> list[Any]:
        """The parts before a program runs."""
        return self.read_loval(qdd, hi_val)

    def read_loval_out(self, qdd: Any, hi_val: Any) -> list[Any]:
        """The parts after it has run."""
        return self.read_loval(qdd, hi_val)

    def is_writer(self, qdd: Any = None) -> bool:
        """Whether values may be written."""
        return True


class AvalQDD:
    """A type with what else is known of a value."""

    has_qdd = True
    aval: Any
    qdd: Any

    def __init__(self, aval: AbstractValue, qdd: Any) -> None:
        self.aval = aval
        self.qdd = qdd

    @property
    def is_high(self) -> bool:
        return self.aval.is_high  # type: ignore[no-any-return]

    def is_writer(self) -> bool:
        """Whether the value may be written."""
        return self.aval.is_writer(self.qdd)  # type: ignore[no-any-return]

    def lo_ty(self) -> list[Any]:
        """The types of the parts."""
        return self.aval.lo_ty_qdd(self.qdd)  # type: ignore[no-any-return]

    def read_loval(self, val: Any) -> list[Any]:
        """The parts of a value."""
        return self.aval.read_loval(self.qdd, val)  # type: ignore[no-any-return]

    def read_loval_in(self, val: Any) -> list[Any]:
        """The parts of a value that a program takes."""
        return self.aval.read_loval_in(self.qdd, val)  # type: ignore[no-any-return]

    def read_loval_out(self, val: Any) -> list[Any]:
        """The parts of a value that a program gives."""
        return self.aval.read_loval_out(self.qdd, val)  # type: ignore[no-any-return]

    def new_from_loval(self, *lo_vals: Any) -> Any:
        """A new value of these parts."""
        return self.aval.new_from_loval(self.qdd, *lo_vals)

    def to_tangent_aval(self) -> AvalQDD:
        """The type of tangents, of which as much is known."""
        return AvalQDD(self.aval.to_tangent_aval(), self.qdd)


class AvalMutableQDD:
    """A type with what else is known of a value, which changes."""

    aval: Any
    mutable_qdd: Any

    def __init__(self, aval: AbstractValue, mutable_qdd: Any) -> None:
        self.aval = aval
        self.mutable_qdd = mutable_qdd


def cur_qdd(x: Any) -> Any:
    """What is known of a value now, beyond its type: what its method `cur_qdd` gives.

    Raises:
      TypeError: its type says that there is nothing.

    >>> from pyjx.experimental import cur_qdd
    >>> class Cell:
    ...     content = None
    ...     def cur_qdd(self):
    ...         return type(self.content)
    ...
    >>> cur_qdd(Cell())
    <class 'NoneType'>
    """
    method = getattr(x, "cur_qdd", None)
    if method is None:
        raise TypeError("cur_qdd: of a value nothing is known but its type unless it has a method "
                        f"`cur_qdd`, got {type(x)}")
    return method()


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Say which type the values of a class have.

    The class becomes a node of pytrees, if it is none. What its type has as `aval_method` and
    `aval_property` its values have, too, unless they have attributes of that name.

    Raises:
      TypeError: `val_cls` is no class.
    """
    if not isinstance(val_cls, type):
        raise TypeError(f"register_hitype: val_cls must be a class, got {val_cls!r}")
    aval_makers[val_cls] = typeof_fn

    def taken_apart(value: Any) -> tuple[Sequence[Any], Any]:
        kind = typeof_fn(value)
        return tuple(kind.lower_val(value)), kind

    try:
        register_pytree_node(val_cls, taken_apart, lambda kind, parts: kind.raise_val(*parts))
    except ValueError:  # it is one already
        return
    own = getattr(val_cls, "__getattr__", None)
    val_cls.__getattr__ = _of_type(typeof_fn, own)  # type: ignore[attr-defined]


def _of_type(typeof_fn: Callable[[Any], Any], own: Callable[[Any, str], Any] | None
             ) -> Callable[[Any, str], Any]:
    """What a class does for names that it has not: asks the type, and then itself."""

    def getattribute(value: Any, name: str) -> Any:
        found = None if name.startswith("__") else getattr(type(typeof_fn(value)), name, None)
        if isinstance(found, aval_property):
            return found.fget(value)
        if isinstance(found, aval_method):
            return found.fun.__get__(value)  # type: ignore[attr-defined]
        if own is not None:
            return own(value, name)
        raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")

    return getattribute
