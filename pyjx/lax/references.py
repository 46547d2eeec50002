"""Mutable references: making, reading, writing and freezing them.

A reference is read and written by operations that name it, in the order of the program. In jaxprs
they are equations with effects; engine/discharge.py makes values of them before anything is
compiled. Outside of programs a reference holds an array, whose memory the next write takes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NoReturn

import numpy as np

from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import AbstractRef, ShapedArray, get_aval, is_ref_type
from pyjx.core.bounded import kept
from pyjx.core.integers import as_bool
from pyjx.core.places import joined
from pyjx.core.primitive import Primitive
from pyjx.core.records import Field, Record, of_field
from pyjx.core.references import METHODS, Ref, Undivided, is_ref
from pyjx.core.scalars import is_scalar_constant, scalar_of
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.core.value_texts import array_cure, shortened
from pyjx.engine.axes import at_front, checked_aval, moveaxis
from pyjx.engine.batching import BatchTrace, batch_flat, match_axis
from pyjx.engine.discharge import (
    UNDIFFERENTIATED,
    Box,
    addupdate_p,
    empty_ref_p,
    free_ref_p,
    freeze_p,
    get_p,
    new_ref_p,
    swap_p,
)
from pyjx.engine.forward import jvp_flat
from pyjx.engine.tangents import Zero, instantiate
from pyjx.engine.types import Dims, Params, Tangent, Values
from pyjx.guards import guard_methods
from pyjx.lax import ref_views
from pyjx.lax.convert import convert_element_type, stop_gradient
from pyjx.lax.ref_views import Indexers
from pyjx.runtime.jit import jit
from pyjx.tree_util import GetAttrKey, register_pytree_with_keys

# -- functions -------------------------------------------------------------------------------------


def new_ref(init_val: Any, *, memory_space: Any = None, kind: Any = None, pin: bool = False) -> Ref:
    """A mutable reference to a new array, a copy of `init_val`.

    Args:
      init_val: array or scalar.
      memory_space, kind: what the type of the reference says of it. Through one of the kind
        "no_grad_no_remat" derivatives do not go: it may be written with differentiated values, of
        which it gets the values alone, once, and what is read from it is a constant.
      pin: inside `jit` alone; accepted.

    Raises:
      TypeError: `init_val` is no array.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> ref = jax.new_ref(jnp.zeros(3))
    >>> ref[1] = 2.0
    >>> ref[...] += 1.0
    >>> ref
    Ref([1., 3., 1.], dtype=float32)

    A jitted function writes references that it takes or closes over:

    >>> @jax.jit
    ... def count(ref):
    ...     ref[0] += 1.0
    ...
    >>> count(ref)
    >>> float(ref[0])
    2.0
    """
    aval = checked_aval("new_ref", init_val)
    if is_ref_type(aval):
        raise TypeError(f"new_ref got a Ref of type {aval} at position 0. Read its value with "
                        "`ref[...]`.")
    if aval.is_high:
        raise TypeError(f"new_ref got a value of type {aval}, which is no array. Make references "
                        "to what it is made of, and a value that has these.")
    _check_kept("new_ref", memory_space, pin)
    return new_ref_p.bind(  # type: ignore[no-any-return]
        init_val, memory_space=memory_space, kind=kind, pin=pin)


def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Ref:
    """A reference to an array of the shape and dtype of `ty`, whose elements are not to be relied
    on before they are written.

    Args:
      ty: what has a shape and a dtype.
      memory_space: what the type of the reference says of it: a member of an enumeration of spaces.
      pin: inside `jit` alone; accepted.

    Raises:
      TypeError: `memory_space` is no such member, or `pin` no bool.

    >>> import pyjx as jax
    >>> jax.empty_ref(jax.ShapeDtypeStruct((2,), "int32")).shape
    (2,)
    """
    _check_kept("empty_ref", memory_space, pin)
    aval = ShapedArray(ty.shape, ty.dtype)
    return empty_ref_p.bind(  # type: ignore[no-any-return]
        ty=aval, memory_space=memory_space, pin=pin)


def _check_kept(name: str, memory_space: Any, pin: Any) -> None:
    """Whether a reference may be kept so."""
    if not isinstance(memory_space, (Enum, type(None))):
        raise TypeError(f"{name}: memory_space must be a memory space, such as "
                        f"jax.memory.Space.Device, or None, got {shortened(memory_space)}.")
    if as_bool(name, "pin", pin) and state.dynamic is eager_trace:
        raise NotImplementedError("pinned array ref only works inside of a `jit`.")


def freeze(ref: Ref) -> Array:
    """The value of a reference that is not to be written any more.

    >>> import pyjx as jax
    >>> jax.freeze(jax.new_ref(1.0))
    Array(1., dtype=float32)
    """
    _check_ref("freeze", ref)
    return freeze_p.bind(ref)  # type: ignore[no-any-return]


def free_ref(ref: Ref) -> None:
    """Say that a reference is not used any more.

    >>> import pyjx as jax
    >>> jax.free_ref(jax.new_ref(1.0))
    """
    _check_ref("free_ref", ref)
    free_ref_p.bind(ref)


def get(ref: Any, idx: Any = None) -> Array:
    """The value of a reference or, with an index, of a part of it: `ref[idx]`.

    Slices, integers and arrays of integers are understood as NumPy does. Integers that are traced
    and out of bounds are moved to the nearest place.

    Raises:
      ValueError: it is no reference, or an index that is known is out of bounds.

    >>> import pyjx as jax
    >>> jax.ref.get(jax.new_ref(jax.numpy.arange(4)), slice(1, 3))
    Array([1, 2], dtype=int32)
    """
    base, indexers, integers = target_of("ref_get", ref, idx)
    if _runs_now(base, integers):
        return _reader(indexers)(base._refs, *integers)  # type: ignore[no-any-return]
    return get_p.bind(base, *integers, indexers=indexers)  # type: ignore[no-any-return]


def swap(ref: Any, idx: Any, value: ArrayLike, _function_name: str = "ref_swap") -> Array:
    """Write a part of a reference; the result is what was there.

    Raises:
      ValueError: it is no reference, `value` is one, or has another shape or dtype than the part.

    >>> import pyjx as jax
    >>> ref = jax.new_ref(5)
    >>> jax.ref.swap(ref, ..., 6), ref
    (Array(5, dtype=int32), Ref(6, dtype=int32))
    """
    base, indexers, integers = target_of(_function_name, ref, idx)
    _check_not_shared(SWAP, base)
    value = _stored("swap", base.aval, value, indexers, integers, adapts=True)
    return swap_p.bind(base, value, *integers, indexers=indexers)  # type: ignore[no-any-return]


def set(ref: Any, idx: Any, value: ArrayLike) -> None:
    """Write a part of a reference: `ref[idx] = value`.

    Raises:
      ValueError: it is no reference, `value` is one, or has another shape or dtype than the part.

    >>> import pyjx as jax
    >>> ref = jax.new_ref(jax.numpy.zeros(2))
    >>> jax.ref.set(ref, 0, 1.0)
    >>> ref
    Ref([1., 0.], dtype=float32)
    """
    base, indexers, integers = target_of("ref_set", ref, idx)
    _check_not_shared(SWAP, base)
    value = _stored("swap", base.aval, value, indexers, integers, adapts=True)
    if _runs_now(base, (value, *integers)):
        base._refs = _writer(indexers, False)(base._refs, value, *integers)
    else:
        swap_p.bind(base, value, *integers, indexers=indexers)


def addupdate(ref: Any, idx: Any, x: ArrayLike) -> None:
    """Add to a part of a reference. Places that an index has twice are added to twice.

    Raises:
      ValueError: it is no reference, `x` is one, or has another shape or dtype than the part.

    >>> import pyjx as jax
    >>> ref = jax.new_ref(jax.numpy.zeros(2))
    >>> jax.ref.addupdate(ref, jax.numpy.array([0, 0]), jax.numpy.ones(2))
    >>> ref
    Ref([2., 0.], dtype=float32)
    """
    base, indexers, integers = target_of("ref_addupdate", ref, idx)
    _check_not_shared(ADDUPDATE, base)
    x = _stored("addupdate", base.aval, x, indexers, integers)
    addupdate_p.bind(base, x, *integers, indexers=indexers)


SWAP, ADDUPDATE = "a set/swap operation", "an addupdate operation"  # as messages call them


def _check_not_shared(what: str, ref: Any) -> None:
    """Refuse a write inside of `vmap` to a reference from outside: whatever is written, each
    example would write it, and what they write at once is not known to be the same."""
    level = ref._trace.level
    if state.level > level:
        trace = state.innermost
        while trace.level > level:
            if trace.maps:
                _refuse_shared(what, ref)
            trace = trace.parent


def _refuse_shared(what: str, ref: Any) -> NoReturn:
    raise Exception(
        f"performing {what} with vmapped value on an unbatched array reference of type "
        f"{get_aval(ref)}. Move the array reference to be an argument to the vmapped function?")


class Part(Record):
    """A part of what is looked at: an indexer, and the integers in it."""

    indexer: ref_views.Indexer
    integers: tuple[Any, ...]


class TransformedRef(Undivided):
    """A part of a reference, or another look at it: read and written as a reference is.

    Args:
      ref: the reference.
      transforms: what is done to it, one after the other.

    >>> import pyjx as jax
    >>> ref = jax.new_ref(jax.numpy.arange(6).reshape(2, 3))
    >>> ref.at[:, 1:].T[0] = jax.numpy.array([10, 40])
    >>> ref.at[...].reshape(6)[...].tolist()
    [0, 10, 2, 3, 40, 5]
    """

    __slots__ = ("ref", "transforms")

    multiref = False  # it is of one reference

    def __init__(self, ref: Any, transforms: Sequence[Part | ref_views.Transform]) -> None:
        self.ref = ref
        self.transforms = tuple(transforms)

    @property
    def type(self) -> AbstractRef:
        """That of a reference to what is seen."""
        return ref_views.part_type(get_aval(self.ref), *_flat(self.transforms))  # type: ignore[arg-type]

    shape: Field[tuple[int, ...]] = of_field("type.shape")
    dtype: Field[Any] = of_field("type.dtype")

    memory_space: Field[Any] = of_field(
        "type.memory_space", "The memory it lies in; None is the device's.")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    size: Field[int] = of_field("type.size")

    @property
    def is_dynamic_size(self) -> bool:
        """Whether its shape has sizes that are no numbers."""
        return not all([isinstance(n, int) for n in self.shape])

    @property
    def at(self) -> _At:
        return _At(self)

    @property
    def T(self) -> TransformedRef:
        """It with its axes in reverse order."""
        return self.transpose(range(self.ndim)[::-1])

    def transpose(self, permutation: Sequence[int]) -> TransformedRef:
        """It with its axes in another order."""
        return self._seen(ref_views.transpose_of(self.shape, permutation))

    def reshape(self, *shape: Any) -> TransformedRef:
        """Its elements in another shape, a tuple or several ints; one may be -1."""
        return self._seen(ref_views.reshape_of(self.shape, shape))

    def bitcast(self, dtype: DTypeLike | None) -> TransformedRef:
        """Its bits as another dtype. If that has another width, so many elements along the last
        axis but one are one of the wider dtype.

        Raises:
          NotImplementedError: the width is another one, and there is one axis or none.
          ValueError: that axis holds no whole elements of the dtype.
        """
        return self._seen(ref_views.bitcast_of(self.shape, self.dtype, dtype))

    def memory_space_cast(self, memory_space: Any) -> TransformedRef:
        """It in another memory, by its type."""
        return self._seen(ref_views.MemorySpaceCast(memory_space))

    def _seen(self, transform: ref_views.Transform) -> TransformedRef:
        return TransformedRef(self.ref, (*self.transforms, transform))

    def get(self, idx: Any = ()) -> Array:
        """Its value, or a part of it."""
        return get(self, idx)

    def set(self, value: ArrayLike, idx: Any = ()) -> None:
        """Write it, or a part of it."""
        set(self, idx, value)

    def swap(self, value: ArrayLike, idx: Any = ()) -> Array:
        """Write it, or a part of it; the result is what was there."""
        return swap(self, idx, value)

    def addupdate(self, x: ArrayLike, idx: Any = ()) -> None:
        """Add to it, or to a part of it."""
        addupdate(self, idx, x)

    def __getitem__(self, index: Any) -> Array:
        return get(self, index)

    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        set(self, index, value)

    def __repr__(self) -> str:
        return f"TransformedRef({self.ref!r}, transforms={self.transforms})"


def _flat(transforms: Sequence[Any]) -> tuple[Indexers, tuple[Any, ...]]:
    """Indexers, and the integers of all of them."""
    return (tuple([t.indexer if type(t) is Part else t for t in transforms]),
            tuple([i for t in transforms if type(t) is Part for i in t.integers]))


def _flatten_view(view: TransformedRef) -> tuple[tuple[Any, ...], Any]:
    indexers, integers = _flat(view.transforms)
    return (view.ref, *integers), indexers


def _unflatten_view(indexers: Indexers, children: tuple[Any, ...]) -> TransformedRef:
    ref, *integers = children
    given = iter(integers)
    return TransformedRef(ref, [
        step if isinstance(step, ref_views.Transform) else
        Part(step, tuple([next(given) for e in step if ref_views.takes_operand(e)]))
        for step in indexers])


# So functions that are transformed take a part of a reference as they take the reference: with it
# come the integers of the index, which may be traced.
register_pytree_with_keys(
    TransformedRef,
    lambda view: (tuple([(GetAttrKey("ref" if i == 0 else f"transforms[{i - 1}]"), x)
                         for i, x in enumerate(_flatten_view(view)[0])]), _flatten_view(view)[1]),
    _unflatten_view, _flatten_view)


class _At:
    """`ref.at`: index it to name a part of a reference."""

    __slots__ = ("_ref",)

    def __init__(self, ref: Any) -> None:
        self._ref = ref

    def __getitem__(self, index: Any) -> TransformedRef:
        ref, parts = self._ref, ()  # type: Any, tuple[Any, ...]
        if type(ref) is TransformedRef:
            ref, parts = ref.ref, ref.transforms
        _check_ref("at", ref)
        steps = ref_views.parse(index, self._ref.shape)
        return TransformedRef(ref, (*parts, *[Part(step, tuple(ints)) for step, ints in steps]))


def target_of(function: str, ref: Any, index: Any) -> tuple[Any, Indexers, tuple[Any, ...]]:
    """The reference, and the part of it that `ref` and an index of that name."""
    base, indexers, integers = ref, (), ()  # type: tuple[Any, Indexers, tuple[Any, ...]]
    if type(ref) is TransformedRef:
        base, (indexers, integers) = ref.ref, _flat(ref.transforms)
    _check_ref(function, base)
    for step, ints in ref_views.parse(index, ref.shape):
        indexers, integers = (*indexers, step), (*integers, *ints)
    return base, indexers, integers


def _check_ref(function: str, ref: Any) -> None:
    if not is_ref(ref):
        raise ValueError(f"Can only call `{function}` on a `Ref`: {ref}.")


def _runs_now(ref: Any, others: Sequence[Any]) -> bool:
    if type(ref) is not Ref or state.dynamic is not eager_trace:
        return False
    return not any([isinstance(x, Tracer) for x in others])


def _stored(op: str, aval: AbstractRef, value: ArrayLike, indexers: Indexers,
            integers: Sequence[Any], *, adapts: bool = False) -> Any:
    """A value to be stored, of the type that the reference says. One of weak type may be of another
    dtype of the same kind, if it `adapts`."""
    try:
        found = get_aval(value)
    except TypeError:
        raise TypeError(f"Argument {shortened(value)} of type {type(value)} is not a valid JAX type"
                        f". {array_cure(value) or f'`{op}` stores arrays and numbers.'}") from None
    if is_ref_type(found):
        raise ValueError(f"Cannot store a Ref into another Ref: `{op}` got one of type {found}. "
                         "Read its value with `ref[...]`.")
    whole, aval = aval, ref_views.part_type(aval, indexers, integers)
    adapts = adapts and found.weak_type and _kind(found.dtype) is _kind(aval.dtype)
    if found.dtype != aval.dtype and not adapts:
        raise ValueError(f"Invalid dtype for `{op}`. Ref dtype: {dtypes.name(aval.dtype)}. Value "
                         f"dtype: {dtypes.name(found.dtype)}. A reference keeps its dtype: store "
                         "jnp.asarray(value, ref.dtype), or make the reference of another one.")
    if found.shape != aval.shape:
        names = ["i" if isinstance(x, Tracer) or x.ndim else str(x) for x in integers]
        index = ref_views.text(whole, indexers, integers, names)
        spread = len(found.shape) <= aval.ndim and all([
            n in (1, m) for n, m in zip(found.shape[::-1], aval.shape[::-1], strict=False)])
        cure = ("jnp.broadcast_to gives it" if spread else "jnp.reshape or jnp.transpose gives it"
                if found.size == aval.size else "store a part of the value, or let the reference "
                "have its shape (a kernel's out_specs and out_shape)")
        raise ValueError(f"Invalid shape for `{op}`. Ref shape: {whole.shape}. Expected shape: "
                         f"{aval.shape}. Value shape: {found.shape}. What is stored at ref{index} "
                         f"has the shape of that part: {cure}.")
    if not found.weak_type or (state.dynamic is eager_trace and not isinstance(value, Tracer)):
        return value
    if is_scalar_constant(value):
        return scalar_of(ShapedArray((), aval.dtype), value)
    return convert_element_type(value, aval.dtype)


def _kind(dtype: DTypeLike) -> Any:
    """Integers, floating or complex numbers."""
    return next((k for k in (np.integer, np.floating, np.complexfloating)
                 if dtypes.issubdtype(dtype, k)), dtype)


# -- on arrays -------------------------------------------------------------------------------------


@kept(1024)
def _reader(indexers: Indexers) -> Callable[..., Any]:
    return jit(lambda x, *integers: ref_views.read(x, indexers, integers))  # type: ignore[no-any-return]


@kept(1024)
def _writer(indexers: Indexers, adding: bool) -> Callable[..., Any]:
    def written(x: ArrayLike, value: ArrayLike, *integers: Any) -> Any:
        return ref_views.write(x, _strong(value, x), indexers, integers, adding)

    return jit(written, donate_argnums=0)  # type: ignore[no-any-return]


@kept(1024)
def _swapper(indexers: Indexers) -> Callable[..., Any]:
    return jit(  # type: ignore[no-any-return]
        lambda *values: _swapped(indexers, *values), donate_argnums=0)


def _swapped(indexers: Indexers, x: ArrayLike, value: ArrayLike, *integers: Any) -> list[Any]:
    """What the part was, and x with the value in its place."""
    return [ref_views.read(x, indexers, integers),
            ref_views.write(x, _strong(value, x), indexers, integers)]


def _strong(value: ArrayLike, x: ArrayLike) -> Any:
    return convert_element_type(value, get_aval(x).dtype) if get_aval(value).weak_type else value


@jit
def _copy(x: ArrayLike) -> Any:
    return _strong(x, x)


def _made(x: Any, *, memory_space: Any, kind: Any, pin: bool) -> Ref:
    array = _copy(x)
    return Ref(AbstractRef(get_aval(array), memory_space, kind), array)


@kept(256)
def _zeros(ty: ShapedArray) -> Callable[[], Any]:
    return jit(lambda: instantiate(Zero(ty)))  # type: ignore[no-any-return]


def _swap_now(ref: Ref, value: ArrayLike, *integers: Any, indexers: Indexers) -> Any:
    old, ref._refs = _swapper(indexers)(ref._refs, value, *integers)
    return old


def _add_now(ref: Ref, value: ArrayLike, *integers: Any, indexers: Indexers) -> list[Any]:
    ref._refs = _writer(indexers, True)(ref._refs, value, *integers)
    return []


# -- types -----------------------------------------------------------------------------------------


def _part_type(ref: AbstractRef, integers: Sequence[Any], indexers: Indexers) -> ShapedArray:
    if type(ref) is not AbstractRef:
        raise ValueError(f"`get` must be called on `Ref` types: {ref}.")
    part = ref_views.part_type(ref, indexers, integers).inner_aval
    return part.varying(joined((ref, *integers)))  # type: ignore[no-any-return]


def _check_varying(what: str, ref: Any, value: Any, integers: Sequence[Any]) -> None:
    """Raise ValueError for what varies along more axes of a mesh than the reference it is written
    to: the devices would hold different values of what is the same on all."""
    if not joined((value, *integers)) <= ref.place.mat.varying:
        raise ValueError(f"Primitive {what} requires the value's varying manual axes to match the "
                         "Ref's, and the index's varying manual axes to be a subset of them, but "
                         f"got {value.place.mat.varying} for the value, {joined(integers)} for the "
                         f"index, and {ref.place.mat.varying} for the Ref. Make the reference of a "
                         "value that varies: jax.lax.pcast(x, axes, to='varying').")


def _swap_shape(ref: AbstractRef, value: Array, *integers: Any, indexers: Indexers) -> ShapedArray:
    part = _part_type(ref, integers, indexers)
    _check_varying("swap", ref, value, integers)
    return part


def _addupdate_shape(ref: AbstractRef, value: Array, *integers: Any, indexers: Indexers
                    ) -> list[Any]:
    _check_varying("addupdate", ref, value, integers)
    return []


# -- derivatives -----------------------------------------------------------------------------------


def _get_jvp(primals: Values, tangents: Sequence[Any], *, indexers: Indexers) -> Any:
    out = get_p.bind(*primals, indexers=indexers)
    box = tangents[0]
    if not _carries_tangents(primals[0], box) or type(box.value) is Zero:
        return out, Zero.of_primal(out)
    ref_views.check_differentiated(indexers)
    return out, ref_views.read(box.value, indexers, primals[1:])


def _swap_jvp(primals: Values, tangents: Sequence[Any], *, indexers: Indexers) -> Any:
    box, t, *_ = tangents
    ref, value, *integers = primals
    carries = _carries_tangents(ref, box)
    if not carries:
        _check_not_differentiated("a set/swap operation", ref, t)
    if not carries or (type(box.value) is Zero and type(t) is Zero):
        out = swap_p.bind(*primals, indexers=indexers)
        return out, Zero.of_primal(out)
    ref_views.check_differentiated(indexers)
    if any([get_aval(i).shape for i in integers]):
        # A place may come twice: its tangent is that of the value that stays there.
        (out, new), (old, box.value) = jvp_flat(
            lambda x, value: _swapped(indexers, x, value, *integers),
            [get_p.bind(ref, indexers=()), value], [box.value, t])
        swap_p.bind(ref, new, indexers=())
        return out, old
    out = swap_p.bind(*primals, indexers=indexers)
    old = Zero.of_primal(out)
    if type(box.value) is not Zero:
        old = ref_views.read(box.value, indexers, integers)
    box.value = t if not indexers else ref_views.write(
        instantiate(box.value), instantiate(t), indexers, integers)
    return out, old


def _addupdate_jvp(primals: Values, tangents: Sequence[Any], *, indexers: Indexers) -> Any:
    box, t, *_ = tangents
    if not _carries_tangents(primals[0], box):
        _check_not_differentiated("an addupdate operation", primals[0], t)
    elif type(t) is not Zero:
        ref_views.check_differentiated(indexers)
        box.value = t if not indexers and type(box.value) is Zero else ref_views.write(
            instantiate(box.value), t, indexers, primals[2:], adding=True)
    return addupdate_p.bind(*primals, indexers=indexers), []


def _kind_of(ref: Any) -> Any:
    aval: Any = get_aval(ref)
    return aval.kind


def _carries_tangents(ref: Any, box: Any) -> bool:
    """Whether a reference has a box of tangents that derivatives go through."""
    return isinstance(box, Box) and _kind_of(ref) != UNDIFFERENTIATED


def _check_not_differentiated(what: str, ref: Any, t: Tangent) -> None:
    if type(t) is not Zero and _kind_of(ref) != UNDIFFERENTIATED:
        raise Exception(f"performing {what} with a differentiated value on a non-differentiated "
                        f"array reference of type {get_aval(ref)}. Move the array reference to be "
                        "an argument of the differentiated function? That is for jax.jvp and "
                        "jax.vjp. Under jax.grad write jax.lax.stop_gradient(value), return the "
                        "value by has_aux=True and write it behind, or make the reference inside.")


def _freeze_jvp(primals: Values, tangents: Sequence[Any]) -> Any:
    out = freeze_p.bind(*primals)
    box = tangents[0]
    return out, box.value if _carries_tangents(primals[0], box) else Zero.of_primal(out)


# -- batching --------------------------------------------------------------------------------------


def _moved(indexers: Indexers, dim: int, size: int, integers: Sequence[Any]
           ) -> tuple[Indexers, int] | None:
    """The same part for each example of a batch along `dim`, and where its batch axis is; None
    where arrays of integers index it."""
    if any([get_aval(i).shape for i in integers]):
        return None
    moved: list[Any] = []
    for step in indexers:
        if isinstance(step, ref_views.Transform):
            found = step.batched(dim, size)
            if found is None:
                return None
            moved.append(found[0])
            dim = found[1]
        else:
            moved.append((*step[:dim], (0, size, 1), *step[dim:]))
            dim -= step[:dim].count(None)
    return tuple(moved), dim


def _get_batch(trace: BatchTrace, operands: Values, dims: Dims, *, indexers: Indexers) -> Any:
    (ref, *integers), (dim, *others) = operands, dims
    size = trace.axis.size
    if dim is None and all([d is None for d in others]):
        return get_p.bind(*operands, indexers=indexers), None
    if dim is not None and all([d is None for d in others]):
        moved = _moved(indexers, dim, size, integers)
        if moved is not None:
            return get_p.bind(ref, *integers, indexers=moved[0]), moved[1]
    whole = get_p.bind(ref, indexers=())
    (out,), (out_dim,) = batch_flat(lambda x, *i: [ref_views.read(x, indexers, i)],
                                    [whole, *integers], dims, trace.axis)
    return out, out_dim


def _write_batch(primitive: Primitive, what: str, adding: bool) -> Callable[..., Any]:
    """The rule of `swap`, or of `addupdate`, which has no result."""

    def batch(trace: BatchTrace, operands: Values, dims: Dims, *, indexers: Indexers) -> Any:
        (ref, value, *integers), (dim, value_dim, *others) = operands, dims

        def write(ref: Any, value: ArrayLike, indexers: Indexers, out_dim: int | None) -> Any:
            out = primitive.bind(ref, value, *integers, indexers=indexers)
            return out, out_dim if not adding else []

        if not any([d is not None for d in dims]):
            return write(ref, value, indexers, None)
        if dim is None:
            _refuse_shared(what, ref)
        size = trace.axis.size
        moved = _moved(indexers, dim, size, integers) if all([d is None for d in others]) else None
        if moved is not None:
            return write(ref, match_axis(value, value_dim, moved[1], trace.axis), *moved)
        whole = get_p.bind(ref, indexers=())
        *old, new = _batched(
            trace, lambda x, v, *i: [*(() if adding else (ref_views.read(x, indexers, i),)),
                                     ref_views.write(x, v, indexers, i, adding)],
            [whole, value, *integers], dims)
        swap_p.bind(ref, moveaxis(new, 0, dim), indexers=())
        return ([], []) if adding else (old[0], 0)

    return batch


def _batched(trace: BatchTrace, fun: Callable[..., list[Any]], args: Values, dims: Dims
             ) -> list[Any]:
    outs, found = batch_flat(fun, args, dims, trace.axis)
    return [at_front(x, d, trace.axis) for x, d in zip(outs, found, strict=True)]


# -- values in the place of references -------------------------------------------------------------


def _get_discharge(operands: Sequence[Any], params: Params, derivable: bool) -> Any:
    box, *integers = operands
    return _seen(box, ref_views.read(box.value, params["indexers"], integers))


def _seen(box: Box, value: Any) -> Any:
    """A value as it is read: a constant, if derivatives do not go through the reference."""
    return value if box.differentiated else stop_gradient(value)


def _swap_discharge(operands: Sequence[Any], params: Params, derivable: bool) -> Any:
    box, value, *integers = operands
    old, box.value = _swapped(params["indexers"], box.value, value, *integers)
    return _seen(box, old)


def _addupdate_discharge(operands: Sequence[Any], params: Params, derivable: bool) -> Any:
    box, value, *integers = operands
    box.value = ref_views.write(box.value, value, params["indexers"], integers, adding=True)
    return []


def _free_discharge(operands: Sequence[Any], params: Params, derivable: bool) -> list[Any]:
    operands[0].free()
    return []


# -- rules -----------------------------------------------------------------------------------------

new_ref_p.define(impl=_made)
empty_ref_p.define(impl=lambda ty, **kinds: _made(_zeros(ty)(), kind=None, **kinds))
get_p.define(
    shape_rule=lambda ref, *integers, indexers: _part_type(ref, integers, indexers),
    impl=lambda ref, *integers, indexers: _reader(indexers)(ref._refs, *integers),
    jvp=_get_jvp, batch_axis=_get_batch, discharge=_get_discharge, text=ref_views.get_text)
swap_p.define(shape_rule=_swap_shape, impl=_swap_now, jvp=_swap_jvp, discharge=_swap_discharge,
              text=ref_views.swap_text, batch_axis=_write_batch(swap_p, SWAP, False))
addupdate_p.define(shape_rule=_addupdate_shape, impl=_add_now, jvp=_addupdate_jvp,
                   batch_axis=_write_batch(addupdate_p, ADDUPDATE, True),
                   discharge=_addupdate_discharge, text=ref_views.addupdate_text)
freeze_p.define(
    shape_rule=lambda ref: ref.inner_aval, impl=lambda ref: _copy(ref._refs), jvp=_freeze_jvp,
    batch=lambda operands, dims: (freeze_p.bind(*operands), dims[0]),
    discharge=lambda operands, params, derivable: _seen(operands[0], operands[0].value))
free_ref_p.define(
    shape_rule=lambda ref: [], impl=lambda ref: [],
    jvp=lambda primals, tangents: (free_ref_p.bind(*primals), []),
    batch=lambda operands, dims: (free_ref_p.bind(*operands), []),
    discharge=_free_discharge)


# -- methods ---------------------------------------------------------------------------------------


def _parts(self: Any) -> _At:
    """Index it to name a part of the reference."""
    return _At(self)


def _turned(self: Any) -> TransformedRef:
    """It with its axes in reverse order."""
    return TransformedRef(self, ()).T


def _method_of(name: str) -> Callable[..., Any]:
    """A method that references have, and what is seen of them."""
    method = getattr(TransformedRef, name)
    method.__qualname__ = f"Ref.{name}"  # as errors of arguments name it

    @functools.wraps(method)
    def of_ref(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(TransformedRef(self, ()), *args, **kwargs)

    return of_ref


def _deepcopy(self: Ref, memo: dict[int, Any]) -> Ref:
    """A reference to a copy: what is written to one, the other does not see."""
    return new_ref(get(self), memory_space=self.aval.memory_space, kind=self.aval.kind)


def _reduce(self: Ref) -> Any:
    """It is pickled as its value is, for a reference of its own."""
    return new_ref, (get(self),)


Ref.__deepcopy__ = _deepcopy  # type: ignore[assignment, method-assign]
Ref.__reduce__ = _reduce  # type: ignore[assignment, method-assign]
# Tracers of references have these methods, too (numpy/array_methods.py).
for _name, _method in (("__getitem__", get), ("__setitem__", set), ("at", property(_parts)),
                       ("T", property(_turned)), *[(n, _method_of(n)) for n in METHODS]):
    setattr(Ref, _name, _method)
guard_methods(Ref)
