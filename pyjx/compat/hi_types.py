"""Types of a library's own: values that are made of arrays, with operations of their own.

A value of such a type is one operand of programs, a leaf of pytrees; engine/own_types.py says how
programs with such values are compiled. Operations on them are in `hi_primitives`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.compat.hi_primitives import HiPrim
from pyjx.compat.values import aval_method, let_tracers_ask
from pyjx.core.avals import AbstractValue, own_makers
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.records import Field, of_field
from pyjx.core.specs import HiPspec
from pyjx.engine.own_types import made_of, part_types, parts_of
from pyjx.engine.tangents import Zero, add_tangents, instantiate


class HiType(AbstractValue):
    """A type whose values are made of values of other types.

    A subclass says of which (`lo_ty`), and how values are taken apart (`lower_val`) and made
    (`raise_val`); `register_hitype` says which values have it. Types are compared and hashed.
    What operations there are on the values is said by those (`HiPrim`). For transformations a
    subclass has, where it is to be

      differentiated: `to_tangent_aval`, and `to_ct_aval` where that differs; if these are types
        like it, `vspace_zero` and `vspace_add` where those by parts are not right;
      mapped: `dec_rank` and `inc_rank`, by a `MappingSpec`;
      an array of a `scan`: `leading_axis_spec`;
      mapped over devices: `shard` and `unshard`, by a `HiPspec`.

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
    >>> class Swap(hijax.HiPrim):
    ...     def __init__(self, kind):
    ...         self.in_avals, self.out_aval, self.params = (kind,), kind, {}
    ...         super().__init__()
    ...     def expand(self, pair): return Pair(pair.second, pair.first)
    ...
    >>> jax.jit(lambda p: Swap(jax.typeof(p))(p))(Pair(1.0, 2.0)).first
    Array(2., dtype=float32, weak_type=True)
    """

    is_high = True
    weak_type = False

    def __getattr__(self, name: str) -> Any:
        raise NotAnArrayError(
            f"{self} has no {name!r}." + " Its values are no arrays: they are operands of the "
            "operations of their library alone." * (name in _OF_ARRAYS))

    def lo_ty(self) -> list[Any]:
        self._must_override("lo_ty")

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        self._must_override("lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        self._must_override("raise_val")

    def array_of(self, value: Any) -> Any:
        convert = getattr(type(self), "__jax_array__", None)
        return convert.fun(value) if type(convert) is aval_method else None

    def vspace_zero(self) -> Any:
        """The value whose parts are zeros."""
        return _Zeros(self)()

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The value whose parts are the sums of parts."""
        return _Sum(self)(x, y)

    def nospec(self, mesh: Mesh | AbstractMesh, check_vma: bool, all_names: Sequence[Any]
              ) -> HiPspec:
        """How a result lies of which nothing is said."""
        self._must_override("nospec")

    def leading_axis_spec(self) -> Any:
        self._must_override("leading_axis_spec")


_OF_ARRAYS = ("dtype", "ndim", "shape", "size")


class NotAnArrayError(TypeError, AttributeError):
    """A type of a library is asked for what types of arrays have: by the user, or by an operation
    that takes arrays.

    Ways out: give the operation the arrays that the value is made of.
    """


class MutableHiType(HiType):
    """A type whose values change, of JAX before 0.12: what is known beyond the type (`qdd`, of
    "quasi-dynamic data") comes with the values. Classes derive from it; programs take no values of
    it, but those of a `HiType` that hold references."""

    has_qdd = True

    def lo_ty(self) -> list[Any]:
        raise NotImplementedError(
            f"{self}: values whose content changes with their type are operands of no program, and "
            "JAX 0.12 knows them no more. Derive the type from HiType, and have values hold "
            "references (jax.new_ref), which programs write.")

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

    def __init__(self, aval: AbstractValue, qdd: Any) -> None:
        self.aval = aval
        self.qdd = qdd

    is_high: Field[bool] = of_field("aval.is_high")

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
    """Say which type the values of a class have: then they are operands of programs, each as one.

    What their type has as `aval_method` and `aval_property` tracers have. Of a type that forwards
    names (`__getattr__`) they get whatever it gives for one, and of one that has methods such as
    `_add` and `_getitem` they have the operators.

    Raises:
      TypeError: `val_cls` is no class.
    """
    if not isinstance(val_cls, type):
        raise TypeError(f"register_hitype: val_cls must be a class, got {val_cls!r}")
    known: set[type] = set()

    def type_of(value: Any) -> Any:
        found = typeof_fn(value)
        if type(found) not in known:
            known.add(type(found))
            let_tracers_ask(found)
        return found

    own_makers[val_cls] = type_of


class _Zeros(HiPrim):
    """The zero of a type."""

    def __init__(self, kind: HiType) -> None:
        self.out_aval, self.params = kind, {}
        super().__init__()

    def expand(self) -> Any:
        return made_of(self.out_aval, iter([instantiate(Zero(a)) for a in
                                            part_types(self.out_aval)]))


class _Sum(HiPrim):
    """The sum of two values of a type that is its own tangents'."""

    def __init__(self, kind: HiType) -> None:
        self.in_avals, self.out_aval, self.params = (kind, kind), kind, {}
        super().__init__()

    def expand(self, x: Any, y: Any) -> Any:
        kind = self.out_aval
        return made_of(kind, map(add_tangents, parts_of(kind, x), parts_of(kind, y)))

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(*primals), add_tangents(*tangents)

    def transpose(self, out_ct: Any, *accums: Any) -> None:
        for accum in accums:
            accum.accum(out_ct)

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        if dims[0] != dims[1]:
            raise NotImplementedError(f"vmap: the sum of values of {self.out_aval} that are mapped "
                                      f"as {dims[0]} and as {dims[1]}")
        return add_tangents(*args), dims[0]
