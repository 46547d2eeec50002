"""Semaphores and copies: what kernels for TPUs say between memories, and between devices; pipelines
of them.

Where kernels are interpreted a copy happens as it is started, and the devices of a mesh meet there:
each gives what it sends, and takes what was sent to it.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import AbstractRef, ShapedArray, get_aval
from pyjx.core.effects import Effects, NamedAxisEffect, reads, writes
from pyjx.core.integers import ds
from pyjx.core.primitive import Primitive, register
from pyjx.engine.discharge import Box
from pyjx.engine.types import Params
from pyjx.experimental.pallas.in_kernels import run_scoped, scratch, when
from pyjx.experimental.pallas.kernel_calls import indices
from pyjx.experimental.pallas.kernel_grids import (
    ANY,
    Element,
    MemoryRef,
    Place,
    RefLike,
    Size,
    Squeezed,
    block_dim,
    is_spec,
    no_block_spec,
    placed,
    size_of,
    start_of,
)
from pyjx.experimental.pallas.tpu_kernels import MemorySpace
from pyjx.lax.collectives import axis_index
from pyjx.lax.convert import convert_element_type
from pyjx.lax.exchanges import all_gather
from pyjx.lax.fori import fori_loop
from pyjx.lax.ref_views import Indexers, count_integers, read, write
from pyjx.lax.references import target_of
from pyjx.numpy.ufuncs import where
from pyjx.tree_util import tree_leaves

# -- semaphores ------------------------------------------------------------------------------------


class SemaphoreType(enum.Enum):
    """The kinds of semaphores: one, or called with a shape an array of them."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int]) -> MemoryRef:
        return Semaphores(ShapedArray(tuple(shape), np.dtype(np.int32)), MemorySpace.SEMAPHORE,
                          self)

    def get_ref_aval(self) -> AbstractRef:
        """The type of the reference to one."""
        return self(()).get_ref_aval()


@dataclass(frozen=True)
class Semaphores(MemoryRef):
    """Semaphores of a kind."""

    kind: SemaphoreType

    def get_ref_aval(self) -> AbstractRef:
        return AbstractRef(self.inner_aval, self.memory_space, self.kind.value)


def _of_parts(name: str, discharge: Callable[..., list[Any]], results: Sequence[Any] = ()
              ) -> Primitive:
    """An operation on parts of references: its operands are these, each with the integers of its
    index, and then values; `indexers` are those of each part. `discharge` takes the parts. Those
    of other devices have `axes`, along which devices meet."""
    def on_boxes(operands: Sequence[Any], params: Params, derivable: bool) -> list[Any]:
        given, parts = iter(operands), []
        for steps in params["indexers"]:
            box = next(given)
            parts.append(_BoxPart(box, steps, [next(given) for _ in range(count_integers(steps))]))
        return discharge(*parts, *given, **{k: v for k, v in params.items() if k != "indexers"})

    def effects(params: Params) -> Effects:
        return reads | writes | frozenset(map(NamedAxisEffect, params.get("axes", ())))

    return register(Primitive(
        name, multiple_results=True, cached=False, effects=effects,
        discharge=on_boxes, shape_rule=lambda *avals, **params: list(results)))


class _BoxPart(NamedTuple):
    """A part of a reference that is discharged."""

    box: Box
    steps: Indexers
    integers: list[Any]

    def get(self) -> Any:
        return read(self.box.value, self.steps, self.integers)

    def set(self, value: Any) -> list[Any]:
        self.box.value = write(self.box.value, value, self.steps, self.integers)
        return []


def _bind(primitive: Primitive, refs: Sequence[RefLike], *values: ArrayLike, **params: Any
          ) -> list[Any]:
    parts = [target_of(primitive.name, ref, None) for ref in refs]
    flat = [x for base, _, integers in parts for x in (base, *integers)]
    return primitive.bind(  # type: ignore[no-any-return]
        *flat, *values, indexers=tuple([steps for _, steps, _ in parts]), **params)


def _from_all(part: _BoxPart, value: Any, device: Any, axes: tuple[Any, ...]
              ) -> Iterator[tuple[_BoxPart, Any, Any]]:
    """Of each device in turn the part that it means, by its own indices, what it gives, and whether
    that is for this one."""
    mine = all_gather(device, axes) == axis_index(axes)
    values, places = all_gather((value, part.integers), axes)
    for k in range(mine.size):
        yield _BoxPart(part.box, part.steps, [i[k] for i in places]), values[k], mine[k]


def _signalled(sem: _BoxPart, inc: Any, device: Any, *, axes: tuple[Any, ...]) -> list[Any]:
    for part, count, is_mine in _from_all(sem, inc, device, axes):
        part.set(part.get() + where(is_mine, count, 0))
    return []


def _sent(source: _BoxPart, target: _BoxPart, send_sem: _BoxPart, recv_sem: _BoxPart, device: Any,
          *, axes: tuple[Any, ...]) -> list[Any]:
    """Each device takes what others send to it, in their order, to where they say."""
    for part, value, is_mine in _from_all(target, source.get(), device, axes):
        part.set(where(is_mine, value, part.get()))
    return []


semaphore_signal_p = _of_parts("semaphore_signal", lambda sem, inc: sem.set(sem.get() + inc))
remote_signal_p = _of_parts("remote_signal", _signalled)
semaphore_wait_p = _of_parts("semaphore_wait", lambda sem, value: sem.set(sem.get() - value))
semaphore_read_p = _of_parts("semaphore_read", lambda sem: [sem.get()],
                             [ShapedArray((), np.dtype(np.int32))])
dma_start_p = _of_parts("dma_start", lambda source, target, sem: target.set(source.get()))
remote_dma_start_p = _of_parts("remote_dma_start", _sent)
dma_wait_p = _of_parts("dma_wait", lambda source, target, sem: [])

DeviceId = ArrayLike | tuple[ArrayLike, ...] | Mapping[Any, ArrayLike]


class DeviceIdType(enum.Enum):
    """How devices are named: by their places along the axes of the mesh, or by a number."""

    MESH = "mesh"
    LOGICAL = "logical"


def _numbered(caller: str, device_id: DeviceId, kind: DeviceIdType | None
              ) -> tuple[Array, tuple[Any, ...]]:
    """The number of a device among all of the mesh, whose last axis runs fastest, and the axes."""
    mesh = configuration.abstract_mesh.value
    names = () if mesh is None else mesh.axis_names
    if not names or set(mesh.manual_axes) != set(names):
        raise ValueError(f"{caller}: device_id={device_id!r} names a device of a mesh, and here is "
                         f"no function of each device of one along all its axes: {mesh}. Call the "
                         "kernel in jax.shard_map over all axes of the mesh.")
    if isinstance(device_id, Mapping):
        places = [device_id.get(name) for name in names]
        unknown = [name for name in device_id if name not in names]
        if unknown:
            raise ValueError(f"{caller}: device_id={device_id!r} names the axes {unknown}, and the "
                             f"mesh has {names}.")
    elif isinstance(device_id, tuple):
        places = [*device_id]
        if len(places) != len(names):
            raise ValueError(f"{caller}: device_id={device_id!r} has {len(places)} places, and the "
                             f"mesh has the axes {names}. Give a place for each.")
    elif kind is not None and kind.name == "MESH" and len(names) > 1:
        raise ValueError(f"{caller}: device_id={device_id!r} is one number, and the mesh has the "
                         f"axes {names}. Give a tuple of a place for each.")
    else:
        return convert_element_type(device_id, np.int32), names
    number: Any = np.int32(0)
    for name, place in zip(names, places, strict=True):
        here = axis_index(name) if place is None else convert_element_type(place, np.int32)
        number = number * np.int32(mesh.shape[name]) + here
    return number, names


def semaphore_signal(sem_or_view: RefLike, inc: ArrayLike = 1, *, device_id: DeviceId | None = None,
                     device_id_type: DeviceIdType | None = None, core_index: object = None) -> None:
    """Count a semaphore up.

    Args:
      sem_or_view: a reference to it.
      inc: by how much.
      device_id: whose it is, another device of the mesh: its number, a tuple of its places along
        the axes, or a dict of places by axis, in which those that it does not name are this
        device's. This device by default.
      device_id_type: how `device_id` is to be read, a `DeviceIdType`; by what it is.
      core_index: which core's: this one's alone.
    """
    if core_index is not None:
        raise NotImplementedError("semaphore_signal: the semaphores of other cores are not there. "
                                  "Leave core_index out.")
    count = convert_element_type(inc, np.int32)
    if device_id is None:
        _bind(semaphore_signal_p, [sem_or_view], count)
        return
    device, axes = _numbered("semaphore_signal", device_id, device_id_type)
    _bind(remote_signal_p, [sem_or_view], count, device, axes=axes)


def semaphore_wait(sem_or_view: RefLike, value: ArrayLike = 1, *, decrement: bool = True) -> None:
    """Wait until a semaphore has reached a value, and count it down by that.

    Args:
      sem_or_view: a reference to it.
      value: what it waits for.
      decrement: must be true.
    """
    if not decrement:
        raise NotImplementedError("semaphore_wait: semaphores are counted down by what they are "
                                  "waited for. Leave decrement out, and signal it again.")
    _bind(semaphore_wait_p, [sem_or_view], convert_element_type(value, np.int32))


def get_barrier_semaphore(tag: object = None) -> RefLike:
    """The semaphore by which devices meet, of the kernel's `collective_id`. It must be waited for
    until it is 0 again.

    Args:
      tag: must be None.
    """
    if tag is not None:
        raise NotImplementedError(f"get_barrier_semaphore: {tag=} is not supported. Leave it out: "
                                  "collective_id in pltpu.CompilerParams tells kernels apart.")
    return scratch(SemaphoreType.BARRIER.get_ref_aval())


def semaphore_read(sem_or_view: RefLike) -> Array:
    """What a semaphore has counted up to, an int32."""
    return _bind(semaphore_read_p, [sem_or_view])[0]  # type: ignore[no-any-return]


# -- copies ----------------------------------------------------------------------------------------


class SelectedRef(NamedTuple):
    """One of several references, for copies."""

    index: Any
    refs: tuple[Any, ...]


def select_ref(idx: ArrayLike, *refs: RefLike) -> SelectedRef:
    """One of several references, for `pltpu.make_async_copy` and its kin.

    Args:
      idx: which, an integer, also a traced one; beyond the ends it is the end.
      refs: references, or parts of them, of one shape and dtype.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> def kernel(i_ref, x_ref, y_ref, o_ref):
    ...     pltpu.sync_copy(pl.select_ref(i_ref[0], x_ref, y_ref), o_ref)
    ...
    >>> x = jax.numpy.arange(3.0)
    >>> pl.pallas_call(kernel, x, interpret=True)(jax.numpy.array([1]), x, x * 2).tolist()
    [0.0, 2.0, 4.0]
    """
    kinds = [f"{dtypes.name(ref.dtype)}{list(ref.shape)}" for ref in refs]
    if len(set(kinds)) != 1:
        raise ValueError("select_ref: references of one shape and dtype are needed, got "
                         f"{', '.join(kinds) or 'none'}.")
    index, last = convert_element_type(idx, np.int32), np.int32(len(refs) - 1)
    return SelectedRef(where(index < 0, np.int32(0), where(index > last, last, index)), refs)


class Copy:
    """A copy from one reference to another, which `start` begins and `wait` waits for. Where
    kernels are interpreted it happens as it is started.

    One to another device has two semaphores: `send_sem` here, `recv_sem` there.
    """

    def __init__(self, src_ref: RefLike, dst_ref: RefLike, sem: RefLike | None,
                 send_sem: RefLike | None = None,
                 device: tuple[Array, tuple[Any, ...]] | None = None) -> None:
        self.src_ref, self.dst_ref, self.sem, self.send_sem = src_ref, dst_ref, sem, send_sem
        self.device = device
        self._added = False
        if (src_ref.shape, src_ref.dtype) != (dst_ref.shape, dst_ref.dtype):
            source, target = [f"{dtypes.name(ref.dtype)}{list(ref.shape)}"
                              for ref in (src_ref, dst_ref)]
            raise ValueError(f"A copy keeps shape and dtype: src_ref is {source}, and dst_ref "
                             f"{target}. Copy as large a part of both, by ref.at[...].")

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Begin it; with `add` it adds to what is there."""
        self._added = add
        if self.device is not None and self.send_sem is not None:
            if add:
                raise NotImplementedError("A copy to another device adds nothing. Leave add out.")
            number, axes = self.device
            _bind(remote_dma_start_p, [self.src_ref, self.dst_ref, self.send_sem, self._told],
                  number, axes=axes)
        elif add:
            self.dst_ref[...] += self.src_ref[...]
        else:
            _bind(dma_start_p, [self.src_ref, self.dst_ref, self._told])

    def wait(self) -> None:
        """Wait until it is done; with another device, that what is sent to this one has come."""
        if self.device is not None:
            self.wait_send()
            self.wait_recv()
        elif not self._added:  # which is done as it is started
            _bind(dma_wait_p, [self.src_ref, self.dst_ref, self._told])

    def wait_send(self) -> None:
        """Wait until `src_ref` has been sent, and may be written."""
        if self.send_sem is None:
            self.wait()
        else:
            _bind(dma_wait_p, [self.src_ref, self.src_ref, self.send_sem])

    def wait_recv(self) -> None:
        """Wait until what another device sends to `dst_ref` here has come."""
        if self.send_sem is None:
            self.wait()
        else:
            _bind(dma_wait_p, [self.dst_ref, self.dst_ref, self._told])

    @property
    def _told(self) -> RefLike:
        if self.sem is None:
            raise ValueError("A copy tells by a semaphore when it is done: give one, such as "
                             "scratch_shapes=[pltpu.SemaphoreType.DMA].")
        return self.sem


class ChosenCopy(NamedTuple):
    """One of several copies, as large as each other."""

    index: Any
    copies: tuple[Copy | ChosenCopy, ...]

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Begin it; with `add` it adds to what is there."""
        for i, copy in enumerate(self.copies):
            when(self.index == i)(partial(copy.start, priority, add=add))

    def wait(self) -> None:
        """Wait until it is done."""
        self.copies[0].wait()


AnyRef = RefLike | SelectedRef


def make_async_copy(src_ref: AnyRef, dst_ref: AnyRef, sem: RefLike | None = None, *,
                    src_sem: RefLike | None = None) -> Copy | ChosenCopy:
    """A copy between references, not begun.

    Args:
      src_ref, dst_ref: from where to where; of one shape and dtype.
      sem, src_sem: semaphores that say when it is done.
    """
    if isinstance(src_ref, SelectedRef):
        return ChosenCopy(src_ref.index, tuple([
            make_async_copy(ref, dst_ref, sem) for ref in src_ref.refs]))
    if isinstance(dst_ref, SelectedRef):
        return ChosenCopy(dst_ref.index, tuple([
            make_async_copy(src_ref, ref, sem) for ref in dst_ref.refs]))
    return Copy(src_ref, dst_ref, sem)


def async_copy(src_ref: AnyRef, dst_ref: AnyRef, sem: RefLike | None = None, *,
               src_sem: RefLike | None = None, priority: int = 0, add: bool = False
               ) -> Copy | ChosenCopy:
    """A copy between references, begun: call `wait` of it.

    Args:
      src_ref, dst_ref, sem, src_sem: as of `make_async_copy`.
      priority: of the copy among others.
      add: whether it adds to what is there.
    """
    copy = make_async_copy(src_ref, dst_ref, sem)
    copy.start(priority, add=add)
    return copy


def sync_copy(src_ref: AnyRef, dst_ref: AnyRef, *, add: bool = False) -> None:
    """Copy between references, and wait until it is done.

    Args:
      src_ref, dst_ref: from where to where; of one shape and dtype.
      add: whether it adds to what is there.
    """
    def body(sem: RefLike) -> None:
        async_copy(src_ref, dst_ref, sem, add=add).wait()

    run_scoped(body, SemaphoreType.DMA)


def make_async_remote_copy(src_ref: RefLike, dst_ref: RefLike, send_sem: RefLike, recv_sem: RefLike,
                           device_id: DeviceId, device_id_type: DeviceIdType | None = None) -> Copy:
    """A copy to another device of the mesh, not begun. The kernel runs in `jax.shard_map` over all
    axes; where it is interpreted all devices start it, those that have nothing to send to
    themselves.

    Args:
      src_ref: from where, on this device.
      dst_ref: to where, on the other one: of the same shape and dtype.
      send_sem: the semaphore here that says that it has been sent.
      recv_sem: the semaphore there that says that it has come.
      device_id, device_id_type: to which device, as of `semaphore_signal`.
    """
    device = _numbered("make_async_remote_copy", device_id, device_id_type)
    return Copy(src_ref, dst_ref, recv_sem, send_sem, device)


def async_remote_copy(src_ref: RefLike, dst_ref: RefLike, send_sem: RefLike, recv_sem: RefLike,
                      device_id: DeviceId, device_id_type: DeviceIdType | None = None) -> Copy:
    """A copy to another device, begun: call `wait` of it.

    Args:
      src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type: as of
        `make_async_remote_copy`.
    """
    copy = make_async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type)
    copy.start()
    return copy


# -- pipelines -------------------------------------------------------------------------------------


def emit_pipeline(body: Callable[..., None], *, grid: Size | Sequence[Size],
                  in_specs: object = (), out_specs: object = (), tiling: object = None,
                  core_axis: object = None, core_axis_name: object = None,
                  dimension_semantics: object = None, trace_scopes: bool = True,
                  no_pipelining: bool = False, output_wait_read_only: bool = False,
                  _explicit_indices: bool = False) -> Callable[..., None]:
    """The function that runs `body` for each program of a grid within a kernel, on blocks of
    references, one after the other.

    Blocks of a reference to the large memory, `pl.ANY` or `pltpu.HBM`, are copied to scratch space
    and back: those that are read one program ahead. What is written begins with no known values,
    and stays while programs have the same block.

    Args:
      body: takes a reference to a block of each reference, and `scratches` behind them.
      grid: the sizes of the grid's axes, which may be traced.
      in_specs, out_specs: `BlockSpec` for what is read, and for what is written.
      tiling, core_axis, core_axis_name, dimension_semantics, trace_scopes, no_pipelining,
        output_wait_read_only: accepted.

    Raises:
      NotImplementedError: a block sticks out of its array.
    """
    read, written = [[s for s in tree_leaves(specs, is_leaf=is_spec) if is_spec(s)]
                     for specs in (in_specs, out_specs)]
    sizes: list[Any] = [*grid] if isinstance(grid, (tuple, list)) else [grid]
    total = math.prod(sizes)

    def pipeline(*refs: RefLike, scratches: Sequence[RefLike] = ()) -> None:
        sources = [_Blocks(ref, spec, sizes) for ref, spec in zip(refs, read, strict=False)]
        targets = [_Blocks(ref, spec, sizes)
                   for ref, spec in zip(refs[len(read):], written, strict=True)]
        ahead = [b for b in sources if b.is_far]

        def run(*spaces: Any) -> None:
            sems = spaces[-1]
            slots = dict(zip(ahead, spaces[:len(ahead)], strict=True))
            results = dict(zip([b for b in targets if b.is_far], spaces[len(ahead):-1],
                               strict=True))

            def coming(k: Any) -> list[Any]:
                return [make_async_copy(b.block(k), slots[b].at[k % 2], sems.at[n, k % 2])
                        for n, b in enumerate(ahead)]

            def start(k: Any) -> None:
                for copy in coming(k):
                    copy.start()

            def step(k: Any, carry: None) -> None:
                when(k + 1 < total)(lambda: start(k + 1))
                for copy in coming(k):
                    copy.wait()
                ids = indices(k, sizes)
                with placed(Place(ids, sizes)):
                    body(*((tuple(ids),) if _explicit_indices else ()),
                         *[slots[b].at[k % 2] if b in slots else b.block(k) for b in sources],
                         *[results[b] if b in results else b.block(k) for b in targets], *scratches)
                for b, space in results.items():
                    sync_copy(space, b.block(k))

            when(total > 0)(lambda: start(0))
            fori_loop(0, total, step, None)

        run_scoped(run, *[b.space(2) for b in ahead], *[b.space() for b in targets if b.is_far],
                   SemaphoreType.DMA((max(len(ahead), 1), 2)))

    return pipeline


class _Blocks:
    """The blocks of a reference, one for each program of a grid."""

    def __init__(self, ref: RefLike, spec: Any, sizes: Sequence[Any]) -> None:
        self.ref, self.spec, self.sizes = ref, spec, sizes
        self.is_whole = spec is no_block_spec or spec.block_shape is None
        aval: Any = get_aval(ref)
        self.is_far = aval.memory_space in (ANY, MemorySpace.HBM) and not self.is_whole

    def block(self, k: Any) -> Any:
        """The reference to that of the k-th program."""
        if self.is_whole:
            return self.ref
        shape, index_map = self.spec.block_shape, self.spec.index_map
        places = (0,) * len(shape) if index_map is None else index_map(*indices(k, self.sizes))
        return self.ref.at[tuple([
            i if isinstance(dim := block_dim(entry), Squeezed) else
            ds(start_of(dim, i), self._size(n, dim))
            for n, entry, i in zip(self.ref.shape, shape, places, strict=True)])]

    def space(self, *slots: int) -> Any:
        """Scratch space for a block, in so many slots."""
        dims = [block_dim(entry) for entry in self.spec.block_shape]
        shape = [self._size(n, dim) for n, dim in zip(self.ref.shape, dims, strict=True)
                 if not isinstance(dim, Squeezed)]
        return MemorySpace.VMEM((*slots, *shape), self.ref.dtype)

    def _size(self, n: int, dim: Any) -> int:
        size = size_of(dim)
        if n % size or (isinstance(dim, Element) and dim.padding != (0, 0)):
            raise NotImplementedError(f"emit_pipeline: blocks of {size} stick out of an axis of "
                                      f"{n}. Choose a block size that divides it.")
        return size
