"""Tracing without running: `make_jaxpr`, `eval_shape`, `ShapeDtypeStruct`, `typeof`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import (
    AbstractRef,
    AbstractValue,
    ShapedArray,
    canonical_shape,
    get_aval,
    is_valid_value,
    length,
)
from pyjx.core.layouts import Format, Layout
from pyjx.core.named_axes import Axis, named_axis
from pyjx.core.passes.literals import shown
from pyjx.core.places import UNIFORM, names_no_mesh, place_of
from pyjx.core.records import filled
from pyjx.core.scalars import check_int_fits
from pyjx.core.specs import ManualAxisType, P
from pyjx.core.trace import DynamicJaxprTrace, Tracer, eager_trace
from pyjx.engine.tangents import full_aval
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.jit import JitSpec, Options, TracedCall
from pyjx.runtime.meshes import NO_MESH, get_abstract_mesh
from pyjx.runtime.placement import Described
from pyjx.runtime.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    single_device_sharding,
)
from pyjx.runtime.signature import argument_sets, check_jittable, own_attributes, static_positions
from pyjx.tree_util import tree_map, tree_unflatten


def _derived(cls: type[ShapeDtypeStruct], own: dict[str, Any] | None, slots: dict[str, Any]
             ) -> Any:
    """The object of a class that derives from that one."""
    return filled(object.__new__(cls), **{**(own or {}), **slots})


class ShapeDtypeStruct:
    """Shape, dtype and placement of an array without its data; it can't be changed.

    Args:
      shape: a sequence of dimensions.
      dtype: of the elements.
      sharding: a Sharding, a Format, or a PartitionSpec, which is along the mesh that is set as
        `sharding` is read.
      weak_type: whether it gives way to other dtypes in promotions.
      is_ref: whether it describes a reference to such an array.
      manual_axis_type: the axes of a mesh along which devices hold different values.

    Raises:
      TypeError: the shape is no sequence, the layout of the Format is `Layout.AUTO`, or an argument
        is of another type than it should be.
      ValueError: the dtype is None, or the sharding is for arrays of more dimensions.

    >>> import pyjx as jax
    >>> jax.ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("_placed", "dtype", "is_ref", "layout", "manual_axis_type", "shape", "weak_type")

    shape: tuple[Any, ...]
    dtype: Any
    layout: Any
    weak_type: bool
    is_ref: bool
    manual_axis_type: Any
    _placed: Any  # the sharding or the spec that was given

    def __init__(self, shape: Any, dtype: DTypeLike, *, sharding: Sharding | None = None,
                 weak_type: bool = False, vma: Any = None, is_ref: bool = False,
                 manual_axis_type: Any = None) -> None:
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        if isinstance(shape, (int, np.integer)):
            raise TypeError("ShapeDtypeStruct: the shape is a sequence of dimensions, such as "
                            f"({shape},); got {shape!r}, which is not iterable.")
        shape = canonical_shape(shape)
        placed, layout = _placed_as(sharding, len(shape))
        mat = manual_axis_type
        if mat is None and vma is not None:
            mat = ManualAxisType(varying=vma)
        if mat is not None and not isinstance(mat, ManualAxisType):
            raise TypeError("`manual_axis_type` argument passed to ShapeDtypeStruct should be of "
                            f"type `jax.sharding.ManualAxisType`. Got type {type(mat)}")
        if mat is UNIFORM:
            mat = None
        filled(self, shape=shape, dtype=dtype if dtypes.is_extended(dtype) else np.dtype(dtype),
               layout=layout, _placed=placed, weak_type=weak_type, is_ref=is_ref,
               manual_axis_type=mat)

    def __setattr__(self, name: str, value: Any = None) -> None:
        if hasattr(ShapeDtypeStruct, name) or hasattr(self, name):  # what derives from it has more
            raise RuntimeError(f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct "
                               "objects; update() gives a copy with other ones.")
        super().__setattr__(name, value)

    __delattr__ = __setattr__

    def __reduce__(self) -> Any:
        if type(self) is not ShapeDtypeStruct:  # only that knows what its constructor takes
            return _derived, (type(self), *object.__getstate__(self))  # type: ignore[misc]
        told = {"sharding": self._target(), "weak_type": self.weak_type, "is_ref": self.is_ref,
                "manual_axis_type": self.manual_axis_type}
        return partial(ShapeDtypeStruct, **{k: v for k, v in told.items() if v}), (
            self.shape, self.dtype)

    def _target(self) -> Any:
        """What was given as `sharding`."""
        return self._placed if self.layout is None else Format(self.layout, self._placed)

    @property
    def sharding(self) -> Any:
        """How it lies on devices, or None.

        Raises:
          TypeError: it is a PartitionSpec, and no mesh is set.
          ValueError: the mesh that is set has no such axes.
        """
        placed = self._placed
        if not isinstance(placed, P):
            return placed
        mesh = configuration.mesh.value or get_abstract_mesh()
        if mesh.empty:
            raise TypeError(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be "
                f"empty. Please use `jax.set_mesh` to set the mesh context. Got {placed}")
        return NamedSharding(mesh, placed)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def format(self) -> Format:
        """The layout and the sharding."""
        return Format(self.layout, self.sharding)

    __len__ = length

    def value_in(self, trace: DynamicJaxprTrace) -> Any:
        """What it describes, as a constant without a value of the program being recorded."""
        return trace.valueless(self, described(self).aval)

    def update(self, **fields: Any) -> ShapeDtypeStruct:
        """A copy with some fields replaced.

        Raises:
          TypeError: there is no such field.
          ValueError: a sharding is given, and this one has a layout: give a Format.
        """
        names = ("shape", "dtype", "weak_type", "is_ref", "manual_axis_type", "sharding")
        unknown = fields.keys() - set(names)
        if unknown:
            raise TypeError(f"ShapeDtypeStruct.update: unknown fields {sorted(unknown)}")
        if self.layout is not None and isinstance(fields.get("sharding"), (Sharding, P)):
            raise ValueError(
                f"You are updating ShapeDtypeStruct with a {type(fields['sharding'])}, but it has "
                f"the layout {self.layout}, which was for {self._placed}. Pass a Format, whose "
                "layout is for the new sharding.")
        values = {name: getattr(self, name) for name in names[:-1]}
        return ShapeDtypeStruct(**{**values, "sharding": self._target(), **fields})

    @staticmethod
    def like(x: Any) -> ShapeDtypeStruct:
        """The struct that describes the array `x`: where and how it lies too, if it was put there
        or its type says so."""
        placed = place_of(x).sharding
        if type(x) is ArrayImpl and x._committed:
            placed = x.format
        mat = getattr(x, "manual_axis_type", None)
        return ShapeDtypeStruct(
            x.shape, dtypes.canonicalize_dtype(x.dtype) if isinstance(x, np.ndarray) else x.dtype,
            weak_type=getattr(x, "weak_type", False), sharding=placed, manual_axis_type=mat)

    def _known_place(self) -> Any:
        """The sharding, or the spec where it is not known yet along which mesh."""
        if isinstance(self._placed, P) and get_abstract_mesh().empty:
            return self._placed
        return self.sharding

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self._known_place(), self.layout, self.weak_type,
                self.is_ref, self.manual_axis_type)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        text = f"ShapeDtypeStruct(shape={self.shape}, dtype={dtypes.name(self.dtype)}"
        if self._placed is not None:
            text += f", sharding={self._known_place()}"
        if self.layout is not None:
            text += f", format={self.layout}"
        if self.weak_type:
            text += ", weak_type=True"
        if self.manual_axis_type is not None:
            text += f", manual_axis_type={self.manual_axis_type}"
        return f"{text}, is_ref=True)" if self.is_ref else f"{text})"


def _placed_as(sharding: Sharding | None, ndim: int) -> tuple[Any, Any]:
    """The sharding or spec, and the layout, that were given for arrays of this rank."""
    layout = None
    if isinstance(sharding, Format):
        layout, given = sharding.layout, sharding.sharding
        if layout is Layout.AUTO:
            raise TypeError(
                "`Layout.AUTO` cannot be used in place of a device-local layout in a "
                f"`ShapeDtypeStruct`. Got {sharding}. Leave the layout out: XLA then chooses it.")
        sharding = given
    if sharding is None:
        return None, layout
    if isinstance(sharding, P):
        if len(sharding) > ndim:
            raise ValueError(f"PartitionSpec {sharding} is only valid for values of rank at least "
                             f"{len(sharding)}, but was applied to a value of rank {ndim}.")
    elif isinstance(sharding, Sharding):
        sharding.check_compatible_aval((1,) * ndim)
    else:
        raise ValueError("sharding should be an instance of `jax.sharding.Sharding`, "
                         "`jax.sharding.PartitionSpec` or `jax.experimental.layout.Format`. Got "
                         f"{sharding} of type {type(sharding)}.")
    return sharding, layout


def described(x: Any) -> Any:
    """Structs, and other objects with a shape and a dtype, as leaves that can be traced."""
    if isinstance(x, AbstractValue) and x.is_high:
        return Described(x)  # type: ignore[arg-type]
    if isinstance(x, ShapedArray):  # it may name a mesh for readers
        return Described(x if x.place.sharding is None else x.reshard(x.place.sharding))
    if isinstance(x, ShapeDtypeStruct) or (
        not is_valid_value(x) and hasattr(x, "shape") and hasattr(x, "dtype")
    ):
        dtype = x.dtype if dtypes.is_extended(x.dtype) else dtypes.canonicalize_dtype(x.dtype)
        sharding = getattr(x, "sharding", None)
        aval = ShapedArray(x.shape, dtype, getattr(x, "weak_type", False))
        if isinstance(x, ShapeDtypeStruct):
            aval = aval.update_manual_axis_type(x.manual_axis_type)
            if x.is_ref:  # whose tracers get their methods from there
                importlib.import_module("pyjx.lax.references")
                return Described(AbstractRef(aval))
        if not isinstance(sharding, Sharding) or names_no_mesh(sharding):
            return Described(aval)
        return Described(aval.reshard(sharding), sharding, getattr(x, "layout", None))
    return x


class AbstractSpec(JitSpec):
    """How a function is traced whose results are only described: structs may be among them."""

    __slots__ = ("_stands_in",)

    _stands_in: bool

    def trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[TracedCall, list[Any]]:
        self._stands_in = False
        traced, leaves = super().trace(args, kwargs)
        if self._stands_in:  # `jit`, with which traces are shared, refuses the function
            for key in [key for key, known in list(self.traces.items()) if known is traced]:
                self.traces.pop(key, None)
        return traced, leaves

    def stand_in(self, outs: list[Any]) -> bool:
        self._stands_in = True
        outs[:] = [full_aval(described(x).aval, 0) if isinstance(x, ShapeDtypeStruct) else x
                   for x in outs]
        return all(map(is_valid_value, outs))


def describe_arguments(spec: JitSpec, args: tuple[Any, ...], kwargs: dict[str, Any]
                       ) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`described` over all leaves of the arguments that are not static."""
    static = static_positions(spec.options.static_argnums, len(args))
    args = tuple([x if i in static else tree_map(described, x) for i, x in enumerate(args)])
    names = spec.options.static_argnames
    return args, {k: v if k in names else tree_map(described, v) for k, v in kwargs.items()}


def struct_of(aval: ShapedArray | AbstractRef) -> ShapeDtypeStruct:
    if aval.is_high:
        return aval  # type: ignore[return-value]
    place, mesh = aval.place, get_abstract_mesh()
    sharding = place.sharding_along(mesh, aval.ndim) if mesh.explicit_axes else place.sharding
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=sharding,
                            manual_axis_type=place.mat)


def results_of(traced: TracedCall) -> Any:
    """Shapes and dtypes of what a traced function returns, with the shardings asked for."""
    structs = list(map(struct_of, traced.closed.out_avals))
    asked = traced.request.out_shardings
    if asked:
        structs = [s.update(sharding=a) for s, a in zip(structs, asked, strict=True)]
    return tree_unflatten(traced.out_tree, structs)


def make_jaxpr(fun: Callable[..., Any], static_argnums: Any = (), axis_env: Any = None,
               return_shape: bool = False, abstracted_axes: Any = None) -> Callable[..., Any]:
    """A function that gives the jaxpr of `fun` for the arguments it is called with.

    With `return_shape` it gives the pair of the jaxpr and the results' shapes and dtypes.
    `axis_env` holds pairs (name, size): the named axes that `fun` finds around it. Axes of unknown
    size, `abstracted_axes`, are refused: `jax.export.symbolic_shape` gives them.

    >>> import pyjx as jax
    >>> jax.make_jaxpr(lambda x: x * 2.0)(jax.numpy.ones(3))
    { lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:f32[] in (b,) }
    """
    check_jittable(fun)
    if abstracted_axes is not None:
        raise NotImplementedError("make_jaxpr: abstracted_axes must be None, got "
                                  f"{abstracted_axes!r}. Shapes that are not known are those of "
                                  "jax.export.symbolic_shape, in a jax.ShapeDtypeStruct.")
    numbers, names = argument_sets(fun, () if static_argnums is None else static_argnums, None)
    spec = AbstractSpec(fun, Options(numbers, names))

    def jaxpr_of(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = describe_arguments(spec, args, kwargs)
        with ExitStack() as axes:
            for name, size in axis_env or ():
                axes.enter_context(named_axis(Axis(name, size), eager_trace))
            traced, _ = spec.trace(args, kwargs)
        closed = shown(traced.closed)
        if return_shape:
            shapes = tree_unflatten(traced.out_tree, list(map(struct_of, closed.out_avals)))
            return closed, shapes
        return closed

    jaxpr_of.__dict__.update(own_attributes(fun), __wrapped__=fun)
    jaxpr_of.__name__ = f"make_jaxpr({spec.name})"
    jaxpr_of.__qualname__ = f"make_jaxpr({getattr(fun, '__qualname__', spec.name)})"
    jaxpr_of.__module__ = "pyjx"
    jaxpr_of.__doc__ = getattr(fun, "__doc__", None)
    return jaxpr_of


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of `fun(*args, **kwargs)`, without computing it.

    >>> import pyjx as jax
    >>> jax.eval_shape(lambda x: x.sum(), jax.ShapeDtypeStruct((2, 3), "float32"))
    ShapeDtypeStruct(shape=(), dtype=float32)
    """
    spec = getattr(fun, "_jit_spec", None)
    if not isinstance(spec, JitSpec):
        check_jittable(fun)
        spec = AbstractSpec(fun)
    args, kwargs = describe_arguments(spec, args, kwargs)
    traced, _ = spec.trace(args, kwargs)
    return results_of(traced)


def typeof(x: Any) -> Any:
    """The aval of a value, or of what describes one: its shape, dtype and weak type. That of an
    array names the mesh that the array lies along.

    Raises:
      TypeError: it is no array or scalar.
      OverflowError: it is an int that its dtype cannot hold.

    >>> import pyjx as jax
    >>> jax.typeof(jax.numpy.ones(3))
    ShapedArray(float32[3])
    """
    aval = described(x).aval if isinstance(x, ShapeDtypeStruct) else get_aval(x)
    if type(x) is int:
        check_int_fits(x, aval)
    if type(aval) is ShapedArray and aval.place.sharding is None and not isinstance(
            x, (Tracer, ShapeDtypeStruct)):
        return _along_its_mesh(aval, x)
    return aval


def _along_its_mesh(aval: ShapedArray, x: Any) -> ShapedArray:
    """The type of a known value that is cut along no Explicit axis. It names the mesh that an array
    was put on, or none if that was a single device, where another one is set."""
    context = configuration.abstract_mesh.value
    sharding: Any = x._sharding if type(x) is ArrayImpl else None
    if type(sharding) is NamedSharding:
        mesh = sharding.mesh.abstract_mesh
        return aval if mesh == context else aval.along(mesh)
    if context is None or (type(sharding) is SingleDeviceSharding
                           and sharding is single_device_sharding(sharding._device)):
        return aval  # one that nobody asked for by a sharding
    return aval.along(NO_MESH)
