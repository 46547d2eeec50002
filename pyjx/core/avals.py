"""Abstract values: what a tracer knows of an array before it exists.

Avals are interned: two avals with the same shape, dtype and weak type are one object, so equality
is identity, hashing is free and every cache of pyjx can be keyed by avals.
"""

from __future__ import annotations

import math
import operator
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any, Literal, NoReturn

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.layouts import AutoLayout
from pyjx.core.meshes import AbstractMesh, AnyMesh
from pyjx.core.places import (
    HERE,
    Place,
    Space,
    axis_types_text,
    dims_text,
    manual_type,
    parts_along,
)
from pyjx.core.records import Field, Shared, filled, of_field, put_field, refuse_change
from pyjx.core.specs import Axes, ManualAxisType, PartitionSpec, axes_of, marks_text
from pyjx.core.value_texts import cure, in_short, shortened
from pyjx.errors import cure_of_known
from pyjx.interning import Interned
from pyjx.jaxlib_api import Sharding

Shape = tuple[int, ...]


class SymbolicDim:
    """Base of dimensions whose size is an expression and not yet a number.

    Subclasses are hashable, compare equal where they are always equal, and do arithmetic with each
    other and with ints. Shapes keep them as they are, and rules, which compute with dimensions,
    compute with them.
    """

    __slots__ = ()

    def as_scalar(self, dtype: Any = None) -> Any:
        """The size as a value of the program that is traced, by default a weak integer."""
        raise NotImplementedError

    def maximum(self, other: Any) -> Any:
        """The larger one of the two dimensions, whichever it is."""
        raise NotImplementedError

    def minimum(self, other: Any) -> Any:
        """The smaller one of the two dimensions."""
        raise NotImplementedError


def canonical_shape(shape: Any) -> Shape:
    """The tuple of dimensions that `shape` (an int or a sequence of ints) stands for.

    This is the one place where dimensions are made canonical: Python ints, or symbolic ones.
    """
    if type(shape) is tuple:
        for d in shape:
            if type(d) is not int:
                break
        else:
            return shape
    elif isinstance(shape, (int, np.integer, SymbolicDim)):
        shape = (shape,)
    try:
        sizes = shape if isinstance(shape, (tuple, list)) else _listed(shape)
        return tuple([d if type(d) is int else _dimension(d) for d in sizes])
    except (AttributeError, TypeError):
        raise shape_error(shape) from None


def _dimension(d: Any) -> Any:
    return d if isinstance(d, SymbolicDim) else int(d.__index__())


def shape_error(shape: Any) -> TypeError:
    """The error for what is no shape; of a traced size in it, it says where that comes from."""
    of_data = getattr(shape, "ndim", 0) > 0 and not _is_of_sizes(shape)
    shape = (shape,) if getattr(shape, "shape", None) == () else shape
    return TypeError("Shapes must be 1D sequences of concrete values of integer type, "
                     f"got {shortened(shape)}.{' Did you mean its .shape?' * of_data}"
                     f"{_traced_dimension(shape, of_data)}")


def _listed(shape: Any) -> list[Any]:
    """The elements of an array or another sequence; iterators, sets, dicts and texts are none.
    What is no sequence may be an integer, by `__index__`."""
    if isinstance(shape, (str, bytes)) or hasattr(shape, "keys"):
        raise TypeError
    is_sequence = isinstance(shape, Sequence) or hasattr(shape, "__getitem__")
    if not is_sequence or getattr(shape, "shape", None) == ():
        return [operator.index(shape)]
    return list(entries(shape))


_MOST_AXES = 1000  # of an array
_MOST_SIZES = 64  # in an array of them, as NumPy's arrays have no more axes: others are data


def entries(values: Any) -> Any:
    """The sequence that is given for sizes, axes or positions, one for each axis of an array.

    Raises:
      TypeError: it is an array of data, which came by mistake, and whose elements are not looked
        at.

    >>> entries(np.zeros(100, int))
    Traceback (most recent call last):
        ...
    TypeError: int64[100] is no array of one integer for each axis
    """
    size = getattr(values, "size", None)
    if getattr(values, "ndim", 0) > 1 or (type(size) is int and size > _MOST_SIZES):
        raise TypeError(f"{in_short(values)} is no array of one integer for each axis")
    return values


def _is_of_sizes(values: Any) -> bool:
    """Whether an array is of sizes, as short vectors are: NumPy's of another dtype, or traced ones
    of integers."""
    try:
        entries(values)
    except TypeError:
        return False
    return isinstance(values, np.ndarray) or "int" in str(getattr(values, "dtype", ""))


def _traced_dimension(shape: Any, of_data: bool) -> str:
    """A hint for shapes that are computed from traced values, or are such `of_data`."""
    for d in shape if isinstance(shape, (tuple, list)) else (shape,):
        if hasattr(d, "_origin_msg"):
            d._check_alive()
            cure = "" if of_data else cure_of_known(
                d, "a tuple of Python's ints" if d.shape else "Python's int",
                "If using `jit`, try using `static_argnums` or applying `jit` to "
                "smaller subfunctions, and pass {} there: arrays cannot be static.")
            return f"{cure and chr(10)}{cure}{d._origin_msg()}"
        if isinstance(d, str) and d.isidentifier() and d is not shape:
            return f" Sizes with names are those of jax.export.symbolic_shape({d!r})."
    return ""


def length(x: Any) -> int:
    """How long what has a shape is."""
    if not x.shape:
        raise TypeError("len() of unsized object")
    return x.shape[0]  # type: ignore[no-any-return]


class AbstractValue:
    """Base of all types of values. A type of another library's own says here what it is made of,
    and how it is mapped, cut and differentiated.

    >>> import pyjx as jax
    >>> class Celsius(jax.core.AbstractValue):
    ...     def to_tangent_aval(self):
    ...         return jax.core.ShapedArray((), "float32")
    ...
    >>> Celsius().to_tangent_aval()
    ShapedArray(float32[])
    """

    __slots__ = ()

    place: Place = HERE
    is_high = False  # whether programs are compiled on what values are made of

    def __bool__(self) -> bool:
        return True  # also where values have no elements, or no length

    def same_type(self, other: Any) -> bool:
        """Whether a value of the one type may stand for one of the other."""
        return self is other or self == other

    def describes(self, other: Any) -> bool:
        """Whether values of the other type are of the shape and dtype of this, or of this type if
        one of a library is among the two."""
        return self.has_shape_of(other) and (
            self.is_high or self.dtype == other.dtype)  # type: ignore[attr-defined]

    def has_shape_of(self, other: Any) -> bool:
        """As `describes`, for values of any dtype."""
        if self.is_high or other.is_high:
            return self == other
        return self.shape == other.shape  # type: ignore[attr-defined,no-any-return]

    # -- what its values are made of ---------------------------------------------------------------

    def lo_ty(self) -> list[Any]:
        """The types of the parts of a value: of an array, or whatever programs are compiled with,
        its own."""
        return [self]

    def lower_val(self, val: Any, /) -> list[Any]:
        """The parts of a value."""
        return [val]

    def raise_val(self, *vals: Any) -> Any:
        """The value that has these parts."""
        (val,) = vals
        return val

    @property
    def is_float0(self) -> bool:
        """Whether it is the type of tangents that carry nothing."""
        return getattr(self, "dtype", None) == dtypes.float0

    def array_of(self, value: Any) -> Any:
        """The array that a value of a library's type stands for where operations of arrays take it;
        None where it is none."""
        return None

    # -- its tangents ------------------------------------------------------------------------------

    def to_tangent_aval(self) -> Any:
        """The type of a tangent of such a value."""
        self._must_override("to_tangent_aval")

    def to_ct_aval(self) -> Any:
        """The type of a cotangent of such a value."""
        return self.to_tangent_aval()

    # -- types derived from it ---------------------------------------------------------------------

    def dec_rank(self, size: int, spec: Any) -> Any:
        """The type of one of a batch of `size` values, which has its axis where `spec` says."""
        self._must_override("dec_rank")

    def inc_rank(self, size: int, spec: Any) -> Any:
        """The type of a batch of `size` such values, with its axis where `spec` says."""
        self._must_override("inc_rank")

    def strip_weak_type(self) -> Any:
        return self

    def update_weak_type(self, weak_type: bool) -> Any:
        return self

    def update_manual_axis_type(self, mat: ManualAxisType | None) -> Any:
        return self.placed(manual_axis_type=mat)

    def placed(self, **fields: Any) -> Any:
        """The type of such a value in another place, of which these fields are given."""
        return self

    def varying(self, axes: Axes, unreduced: Axes | None = None, reduced: Axes | None = None
                ) -> Any:
        """The type of such a value that varies, is unreduced, and is reduced along these axes."""
        mat = self.place.mat
        return self.placed(manual_axis_type=manual_type(
            axes, mat.unreduced if unreduced is None else unreduced,
            mat.reduced if reduced is None else reduced))

    def update(self, *args: Any, **kwargs: Any) -> Any:
        """The type with some of its fields replaced."""
        self._must_override("update")

    def reshard(self, sharding: Sharding | None) -> Any:
        """The type of such a value that lies otherwise."""
        self._must_override("reshard")

    def shard(self, mesh: AnyMesh, manual_axes: Iterable[Any], check_vma: bool, spec: Any) -> Any:
        """The type of the part that each device of a mesh has."""
        self._must_override("shard")

    def unshard(self, mesh: AnyMesh, check_vma: bool, spec: Any) -> Any:
        """The type of the value that the devices of a mesh have parts of this type of."""
        self._must_override("unshard")

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _must_override(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} must override {method}")


class AbstractToken(AbstractValue):
    """The type of a token, which orders side effects. There is one instance, `abstract_token`."""

    __slots__ = ()

    # It has no tangent but zero.
    shape = (0,)
    dtype = dtypes.float0
    weak_type = False

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return "Tok"

    def to_tangent_aval(self) -> AbstractToken:
        return self

    def reshard(self, sharding: Sharding | None) -> AbstractToken:
        return self

    def __repr__(self) -> str:
        return "Token()"


abstract_token = AbstractToken()


class Token:
    """A value of the type `abstract_token`."""

    __slots__ = ()

    aval = abstract_token

    @property
    def _base_array(self) -> np.ndarray[Any, Any]:
        """What stands for it in a compiled program."""
        return np.zeros(0, bool)

    def block_until_ready(self) -> Token:
        """The token, of which nothing is to be waited for."""
        return self


class AbstractRef(Shared, AbstractValue):
    """The type of a mutable reference to an array.

    Args:
      inner_aval: the type of the array.
      memory_space: the memory the array lies in; None is the device's.
      kind: what distinguishes the reference from others; hashable.

    >>> import pyjx as jax
    >>> jax.ref.AbstractRef(jax.core.ShapedArray((3,), "float32"))
    Ref{float32[3]}
    """

    __slots__ = ("__weakref__", "inner_aval", "kind", "memory_space")

    inner_aval: ShapedArray
    memory_space: Any
    kind: Any

    def __new__(cls, inner_aval: Any = None, memory_space: Any = None, kind: Any = None
                ) -> AbstractRef:
        if inner_aval is None:  # a pickle of jax, which has the state of one without it
            return object.__new__(cls)
        return _refs.of((inner_aval, memory_space, kind), AbstractRef._made)  # type: ignore[no-any-return]

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None
                 ) -> None:
        """Whoever calls the class gives the type of the array; pickles do not call this."""

    @classmethod
    def _made(cls, inner_aval: ShapedArray, memory_space: Any, kind: Any) -> AbstractRef:
        self = object.__new__(cls)
        self.inner_aval = inner_aval
        self.memory_space = memory_space
        self.kind = kind
        return self

    def __reduce__(self) -> Any:
        return AbstractRef, (self.inner_aval, self.memory_space, self.kind)

    shape: Field[Shape] = of_field("inner_aval.shape")
    dtype: Field[Any] = of_field("inner_aval.dtype")
    ndim: Field[int] = of_field("inner_aval.ndim")
    size: Field[int] = of_field("inner_aval.size")
    weak_type: Field[bool] = of_field("inner_aval.weak_type")
    sharding: Field[Any] = of_field("inner_aval.sharding")
    place: Field[Place] = of_field("inner_aval.place")
    manual_axis_type: Field[ManualAxisType] = of_field("inner_aval.place.mat")
    mat = manual_axis_type

    def update(self, inner_aval: Any = None, memory_space: Any = None, kind: Any = None
               ) -> AbstractRef:
        """The type with some of its fields replaced."""
        return AbstractRef(self.inner_aval if inner_aval is None else inner_aval,
                           self.memory_space if memory_space is None else memory_space,
                           self.kind if kind is None else kind)

    def update_weak_type(self, weak_type: bool) -> AbstractRef:
        return self.update(self.inner_aval.update(weak_type=weak_type))

    def placed(self, **fields: Any) -> AbstractRef:
        return self.update(self.inner_aval.placed(**fields))

    def reshard(self, sharding: Sharding | None) -> AbstractRef:
        return self.update(self.inner_aval.reshard(sharding))

    def shard(self, mesh: AnyMesh, manual_axes: Iterable[Any], check_vma: bool, spec: Any
              ) -> AbstractRef:
        return self.update(self.inner_aval.shard(mesh, manual_axes, check_vma, spec))

    def with_shape(self, shape: Shape) -> AbstractRef:
        """The type of a reference to an array of another shape."""
        return self.update(self.inner_aval.update(shape=shape))

    def strip_weak_type(self) -> AbstractRef:
        return self.update_weak_type(False)

    def to_tangent_aval(self) -> AbstractRef:
        return self.update(self.inner_aval.to_tangent_aval())

    def to_ct_aval(self) -> AbstractRef:
        return self.update(self.inner_aval.to_ct_aval())

    def same_type(self, other: Any) -> bool:
        """Whether the two are equal but for the weak type, which is a hint."""
        return self is other or (
            type(other) is AbstractRef and self.inner_aval.same_type(other.inner_aval))

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """`Ref{float32[3]}`, or `Ref<vmem>{f32[3]}` with `short_dtypes` and in a memory."""
        space = "" if self.memory_space is None else f"<{self.memory_space}>"
        return f"Ref{space}{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __len__(self) -> int:
        return len(self.inner_aval)

    def __repr__(self) -> str:
        return self.str_short()


cotangent_aval = methodcaller("to_ct_aval")  # the type of cotangents of values of a type


def is_ref_type(aval: object) -> bool:
    """Whether an aval is that of a reference."""
    return type(aval) is AbstractRef


_refs = Interned()


_avals = Interned()
_interned = _avals.references
# The avals made last, held for a while: many live for one call only, and the next makes them again.
_latest: deque[ShapedArray] = deque(maxlen=4096)


class ShapedArray(Shared, AbstractValue):
    """The type of an array: shape, dtype and weak type, and where its parts may lie.

    Args:
      shape: dimensions.
      dtype: a dtype, an extended one too.
      weak_type: whether it gives way to other dtypes in promotions, as Python's numbers do.
      sharding: how the array lies on a mesh, where the type says so; hashable.
      manual_axis_type: the mesh axes over which per-device programs see other values; hashable.
      memory_space: the memory the array lies in; by default the device's own.
      layout: None or `Layout.AUTO`.

    Raises:
      TypeError: the shape is not one, or a keyword is unknown.
      NotImplementedError: the layout is another one.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> jax.core.ShapedArray((2, 3), np.float32) is jax.core.ShapedArray((2, 3), "float32")
    True
    >>> jax.core.ShapedArray((2, 3), np.float32)
    ShapedArray(float32[2,3])
    """

    __slots__ = ("__weakref__", "_tangent", "dtype", "lowered_type", "ndim", "place", "shape",
                 "size", "weak_type")

    shape: Shape
    dtype: Any
    weak_type: bool
    place: Place
    ndim: int
    size: int
    lowered_type: str | None  # the StableHLO spelling, filled in by the lowering
    _tangent: ShapedArray | Literal[False] | None  # False: not known yet; None: the aval itself

    def __new__(cls, shape: Sequence[int], dtype: Any, weak_type: bool = False, *,
                sharding: Sharding | None = None, manual_axis_type: ManualAxisType | None = None,
                memory_space: Space | None = None, layout: AutoLayout | None = None) -> ShapedArray:
        if not (layout is None or isinstance(layout, AutoLayout)):
            raise NotImplementedError("ShapedArray: layout must be Layout.AUTO, as types say none, "
                                      f"got {layout}. Give it to jit, in in_shardings.")
        if sharding is None and manual_axis_type is None and memory_space is None:
            return _checked(shape, dtype, weak_type, HERE)
        return _checked(shape, dtype, weak_type, Place(sharding, manual_axis_type, memory_space))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("lowered_type", "_tangent"):  # which are found out later
            refuse_change(self, name)
        put_field(self, name, value)

    __delattr__ = refuse_change

    def __reduce__(self) -> Any:
        p = self.place
        told = {"sharding": p.sharding, "manual_axis_type": p.mat, "memory_space": p.space}
        made = ShapedArray if p is HERE else partial(ShapedArray, **told)
        return made, (self.shape, self.dtype, self.weak_type)

    def update(self, shape: Any = None, dtype: Any = None, weak_type: bool | None = None,
               **placement: Any) -> ShapedArray:
        """The aval with some of its fields replaced.

        Raises:
          TypeError: there is no such field.
        """
        return _checked(self.shape if shape is None else shape,
                        self.dtype if dtype is None else dtype,
                        self.weak_type if weak_type is None else weak_type,
                        self.place.update(**placement) if placement else self.place)

    def placed(self, **fields: Any) -> ShapedArray:
        return self._at(self.place.update(**fields))

    def _at(self, place: Place) -> ShapedArray:
        if place is self.place:
            return self
        return array_aval(self.shape, self.dtype, self.weak_type, place)

    def with_shape(self, shape: Shape) -> ShapedArray:
        """The aval with another shape."""
        return self.update(shape=shape)

    @property
    def sharding(self) -> Any:
        """How the type says that the array lies along the Explicit axes of a mesh."""
        mesh = configuration.abstract_mesh.value
        return self.place.sharding_along(AbstractMesh((), ()) if mesh is None else mesh, self.ndim)

    memory_space: Field[Space] = of_field("place.space")
    # Devices hold different values there.
    manual_axis_type: Field[ManualAxisType] = of_field("place.mat")
    mat = manual_axis_type
    vma: Field[Axes] = of_field("place.mat.varying")

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The aval of a tangent of such a value: float0 where the dtype has no derivative."""
        tangent = self._tangent
        if tangent is False:
            dtype = dtypes.tangent_dtype(self.dtype)
            tangent = self._tangent = (
                None if dtype is self.dtype else self.update(dtype=dtype, weak_type=False))
        return self if tangent is None else tangent

    def to_ct_aval(self) -> ShapedArray:
        """The aval of a cotangent: as `to_tangent_aval`, in the place of cotangents."""
        tangent = self.to_tangent_aval()
        return tangent if tangent.place is HERE else tangent._at(tangent.place.of_cotangent())

    def inc_rank(self, size: int, spec: int | None) -> ShapedArray:
        """The type of a batch of `size` such arrays along the axis `spec`; None for one they share.

        >>> import pyjx as jax
        >>> batch = jax.core.ShapedArray((2, 3), "float32").inc_rank(5, 1)
        >>> batch, batch.dec_rank(5, 1)
        (ShapedArray(float32[2,5,3]), ShapedArray(float32[2,3]))
        """
        if spec is None:
            return self
        at = spec % (self.ndim + 1)
        return self.with_shape((*self.shape[:at], size, *self.shape[at:]))

    def dec_rank(self, size: int, spec: int | None) -> ShapedArray:
        """The type of one of a batch of `size` arrays along the axis `spec`.

        Raises:
          ValueError: the axis has another size.
        """
        if spec is None:
            return self
        at = spec % self.ndim
        if self.shape[at] != size:
            raise ValueError(f"dec_rank: axis {spec} of {self} has not the size {size}")
        return self.with_shape((*self.shape[:at], *self.shape[at + 1:]))

    def update_weak_type(self, weak_type: bool) -> ShapedArray:
        return self.update(weak_type=weak_type)

    def reshard(self, sharding: Sharding | None) -> ShapedArray:
        """The type of such an array that lies along the Explicit axes as `sharding` says."""
        return self._at(self.place.on(sharding, self.ndim))

    def along(self, mesh: AnyMesh) -> ShapedArray:
        """The type of a whole array that names the mesh which the array lies along, or none."""
        return self._at(self.place.along(mesh, self.ndim))

    def shard(self, mesh: AnyMesh, manual_axes: Iterable[Any], check_vma: bool, spec: PartitionSpec
              ) -> ShapedArray:
        """The type of the part that each device of a mesh has of an array, cut as `spec` says."""
        shape = list(self.shape)
        for i, entry in enumerate(spec):
            shape[i] //= parts_along(mesh, entry)
        return array_aval(tuple(shape), self.dtype, self.weak_type, self.place.of_part(
            mesh, spec, frozenset(manual_axes), check_vma, self.ndim))

    def unshard(self, mesh: AnyMesh, check_vma: bool, spec: PartitionSpec,
                manual_axes: Iterable[Any] | None = None) -> ShapedArray:
        """The type of the array that the devices of a mesh have parts of this type of, in a program
        along `manual_axes`, by default those that `spec` names."""
        shape = list(self.shape)
        for i, entry in enumerate(spec):
            shape[i] *= parts_along(mesh, entry)
        manual = axes_of(spec) if manual_axes is None else manual_axes
        return array_aval(tuple(shape), self.dtype, self.weak_type, self.place.of_whole(
            mesh, spec, frozenset(manual), self.ndim))

    # Types say nothing of the order of elements in memory: XLA chooses it.
    layout: Any = None

    def same_type(self, other: Any) -> bool:
        """Whether the two are equal but for the weak type, which is a hint."""
        return self is other or (
            type(other) is ShapedArray and self.shape == other.shape and self.dtype == other.dtype
            and self.place.sharding == other.place.sharding
            and self.place.space is other.place.space)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """`float32[2,3]`, or `f32[2,3]` with `short_dtypes`; `float32[2@x,3]` where the first
        dimension is cut along the axis x, `float32<host>[2,3]` in the memory of the host.
        `mesh_axis_types` adds the types of the axes."""
        name = dtypes.short_dtype_name(self.dtype) if short_dtypes else dtypes.name(self.dtype)
        place = self.place
        if place.memory_kind is not None:
            name = f"{name}<{place.space.name.lower()}>"
        marks = marks_text(U=place.spec.unreduced, R=place.spec.reduced) + place.mat.text()
        types = axis_types_text(self.sharding.mesh) if mesh_axis_types else ""
        return f"{name}[{dims_text(self.shape, place.spec)}]{marks}{types}"

    __len__ = length

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __str__(self) -> str:
        return f"~{self.str_short()}" if self.weak_type else self.str_short()


def _checked(shape: Sequence[int], dtype: Any, weak_type: bool, place: Place) -> ShapedArray:
    """The aval of what may be no canonical shape, or no dtype yet."""
    key: Any = (shape, dtype, weak_type, place)
    try:
        found = _interned[key]()
        if found is not None and (shape is found.shape or _same_kinds(shape, found.shape)):
            return found
    except KeyError:
        pass
    except TypeError:  # a list as the shape
        key = None
    return _new(key, canonical_shape(shape), dtype, bool(weak_type), place)


def _new(alias: Any, shape: Shape, dtype: Any, weak_type: bool, place: Place) -> ShapedArray:
    """The aval with these fields, which is also to be found under the key `alias`, if any."""
    if not dtypes.is_extended(dtype):
        dtype = np.dtype(dtype)
    aval: ShapedArray = _avals.of((shape, dtype, weak_type, place), _made)
    if alias is not None and alias not in _interned:
        _avals.also(alias, aval)
    return aval


def _made(shape: Shape, dtype: Any, weak_type: bool, place: Place) -> ShapedArray:
    if len(shape) > _MOST_AXES:
        raise TypeError(f"Arrays have at most {_MOST_AXES} axes, got {len(shape)} sizes: "
                        f"{shortened(shape)}.")
    aval: ShapedArray = filled(
        object.__new__(ShapedArray), shape=shape, dtype=dtype, weak_type=weak_type, place=place,
        ndim=len(shape), size=math.prod(shape), lowered_type=None, _tangent=False)
    _latest.append(aval)
    return aval


def _same_kinds(shape: Any, canonical: Shape) -> bool:
    """Whether a shape that is equal to a canonical one is one itself: 2.0 and True are not."""
    return type(shape) is tuple and all(
        [type(a) is type(b) for a, b in zip(shape, canonical, strict=True)])


def array_aval(shape: Shape, dtype: Any, weak_type: bool = False, place: Place = HERE
               ) -> ShapedArray:
    """The aval of a canonical shape, which is not checked."""
    try:
        found = _interned[shape, dtype, weak_type, place]()
    except KeyError:
        found = None
    return _checked(shape, dtype, weak_type, place) if found is None else found


def nbytes(aval: Any) -> int:
    """The bytes of a value; none of tokens, and of what has no known size."""
    size, dtype = getattr(aval, "size", 0), getattr(aval, "dtype", None)
    if not size or type(size) is not int or dtype is None:
        return 0
    physical = getattr(dtype, "physical_aval", None)
    return nbytes(physical(aval)) if physical is not None else size * int(dtype.itemsize)


def taken_over(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
               donated: Sequence[bool]) -> dict[int, int]:
    """For donated arguments the results that take their places: the first ones of their types."""
    free: dict[Any, list[int]] = {}
    for k, aval in reversed(list(enumerate(out_avals))):
        if type(aval) is ShapedArray:  # and no token
            free.setdefault((aval.shape, aval.dtype), []).append(k)
    return {i: free[key].pop() for i, (aval, given) in enumerate(
        zip(in_avals, donated, strict=True)) if given and free.get(key := (aval.shape, aval.dtype))}


# Makers of avals by the Python type of the value: the runtime adds its array class, and tracers
# their own.
aval_makers: dict[type, Callable[[Any], ShapedArray]] = {}
# Those of classes of values of libraries' types, which are no arrays.
own_makers: dict[type, Callable[[Any], Any]] = {}


def get_aval(x: Any) -> ShapedArray:
    """The aval of an array, a tracer, a NumPy array or scalar, or a Python scalar.

    Raises:
      TypeError: `x` is not a value that pyjx computes with.
      ValueError: it is a masked array, or one that only converts itself, by `__jax_array__`.

    >>> import pyjx as jax
    >>> jax.core.get_aval(1.0)
    ShapedArray(float32[], weak_type=True)
    """
    maker = aval_makers.get(type(x))
    if maker is not None:
        return maker(x)
    maker = own_makers.get(type(x))
    if maker is not None:
        return maker(x)
    aval = getattr(x, "aval", None)
    if type(aval) is ShapedArray or isinstance(aval, AbstractValue):
        return aval  # type: ignore[return-value]
    if isinstance(x, np.ma.MaskedArray):
        raise ValueError("numpy masked arrays are not supported as direct inputs to JAX functions. "
                         "Use arr.filled() to convert the value to a standard numpy array.")
    for cls in type(x).__mro__:
        maker = aval_makers.get(cls)
        if maker is not None:
            return maker(x)
    if hasattr(x, "__jax_array__"):
        raise ValueError(
            "Triggering __jax_array__() during abstractification is no longer supported: "
            f"{shortened(x)} is of type {type(x)}. Make it an array with jnp.asarray, or its class "
            "a pytree with jax.tree_util.register_pytree_node.")
    raise TypeError(f"Argument {shortened(x)} of type {type(x)} is not a valid JAX type. {cure(x)}")


def is_valid_value(x: Any) -> bool:
    """Whether `get_aval(x)` would succeed."""
    kind = type(x)
    if kind is np.ndarray and x.dtype not in _array_dtypes:
        return dtypes.is_array_dtype(dtypes.canonicalize_dtype(x.dtype))
    return (
        kind in aval_makers
        or kind in own_makers
        or isinstance(getattr(x, "aval", None), AbstractValue)
        or any(cls in aval_makers for cls in kind.__mro__))


def _of_numpy(x: Any) -> ShapedArray:
    dtype = dtypes.canonicalize_dtype(x.dtype)
    if dtype not in _array_dtypes:
        dtypes.check_valid_dtype(dtype, x)
    return array_aval(x.shape, dtype)


_array_dtypes = dtypes.all_dtypes


def _of_scalar(narrow: np.dtype[Any], wide: np.dtype[Any], weak: bool
               ) -> Callable[[Any], ShapedArray]:
    short, long = ShapedArray((), narrow, weak), ShapedArray((), wide, weak)
    return lambda x: long if configuration.enable_x64.value else short


aval_makers[np.ndarray] = _of_numpy
for _type in dtypes.numpy_scalar_types:
    aval_makers[_type] = _of_scalar(dtypes.narrowed(np.dtype(_type)), np.dtype(_type), False)
for _type in (bool, int, float, complex):
    _narrow, _wide = [table[_type] for table in dtypes.python_dtypes]
    aval_makers[_type] = _of_scalar(_narrow, _wide, _type is not bool)
