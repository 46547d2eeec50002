"""Kernels that are watched as they are interpreted: whether something orders what they do
(`pltpu.InterpretParams(detect_races=True)`).

A watched kernel has one more reference, a clock. Before it reads, writes, copies, signals or waits
it calls Python, which notes that; the clock goes on by what the call gives, so that the notes of a
device are in its order. As soon as all devices have come to the end, what they did is gone through
once more. There each copy is a thread of its own, from where it is started to where a semaphore is
waited for that it counts up, and each thread has a vector clock (Fidge 1988, Mattern 1989): two
accesses of one element race if one of them writes and neither comes before the other.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from threading import RLock
from typing import Any, Literal

import numpy as np

from pyjx import configuration
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.evaluation import jaxpr_as_fun, program_of, walk
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from pyjx.core.jaxpr import Literal as Constant
from pyjx.core.records import Record
from pyjx.core.source_info import summarize
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.discharge import new_ref_p
from pyjx.experimental.pallas.kernel_generators import held_with
from pyjx.experimental.pallas.kernel_grids import ANY, Element, GridMapping
from pyjx.lax.callbacks import io_callback
from pyjx.lax.collectives import axis_index
from pyjx.lax.convert import convert_element_type
from pyjx.lax.ref_views import Indexers, Transform, count_integers, takes_operand

_ONE = ShapedArray((), np.dtype(np.int32))
_START = np.iinfo(np.int32).min  # what scratch space of integers holds first
_SPAN = 1 << 20  # the times of a run on the clock of a device
_numbers = count()
_MOST = 5  # findings that are told


@dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """How kernels are interpreted: `pallas_call(..., interpret=pltpu.InterpretParams(...))`.

    Args:
      detect_races: find accesses of one element that nothing orders, accesses beyond the ends of a
        reference and blocks beyond those of an array, reads of what nothing has written, and
        semaphores that nobody signals, and name their lines; kernels then call Python for each
        access. Without it an index beyond the ends is taken for the end.
      on_race: "raise" an error, or "print" it to the standard error.
      out_of_bounds_reads, skip_floating_point_ops, uninitialized_memory, num_cores_or_threads,
        vector_clock_size, logging_mode, dma_execution_mode, random_seed, grid_point_recorder,
        allow_hbm_allocation_in_run_scoped, buffer_bounds: accepted; copies happen as they are
        started, memory begins with NaN, and programs run in the order of the grid.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> def kernel(x_ref, out_ref, scratch_ref):
    ...     out_ref[...] = x_ref[...] + scratch_ref[...]
    ...
    >>> x = jax.numpy.ones(8)
    >>> pl.pallas_call(kernel, x, scratch_shapes=[pltpu.VMEM((8,), "float32")],
    ...                interpret=pltpu.InterpretParams(detect_races=True)
    ...                )(x)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    JaxRuntimeError: INTERNAL: ... reads scratch 0, where nothing has been written ...
    """

    detect_races: bool = False
    on_race: Literal["raise", "print"] = "raise"
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: object = None
    dma_execution_mode: str = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Callable[..., None] | None = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: str = "logical"


def watches(interpret: object) -> bool:
    """Whether a kernel that is interpreted so is watched."""
    return isinstance(interpret, InterpretParams) and interpret.detect_races


# -- in the kernel ---------------------------------------------------------------------------------


class Buffer(Record):
    """What a reference refers to, one of several of a name; it may be written before the kernel
    begins, or one block after another. `blocks` is how many there are along each axis of an array
    of which a program gets one."""

    number: int
    name: str
    shape: tuple[int, ...]
    written: bool = False
    moves: bool = False
    blocks: tuple[int, ...] | None = None


class Site(Record):
    """An access: the operation, the parts of buffers that it takes, and its line."""

    kind: str
    parts: tuple[tuple[Buffer, Indexers], ...]
    where: str


def watched(kernel: ClosedJaxpr, mapping: GridMapping, aliased: frozenset[int], name: str,
            params: InterpretParams) -> tuple[ClosedJaxpr, GridMapping]:
    """The kernel with a clock as its last reference, and what it is called with."""
    mesh, rank = configuration.abstract_mesh.value, len(mapping.grid)
    axes = () if mesh is None else tuple(mesh.manual_axes)
    devices = 1 if mesh is None else math.prod([mesh.shape[axis] for axis in axes])
    first = mapping.num_dynamic_grid_bounds + rank
    buffers = _buffers(kernel, mapping, aliased)
    book = Book(name, devices, params.on_race, buffers)

    def note(clock: Any, site: Site, *values: Any) -> None:
        now, device = clock[...], axis_index(axes) if axes else np.int32(0)
        clock[...] = now + io_callback(_Noting(book, site), _ONE, device, now, *values)

    def fun(*args: Any) -> list[Any]:
        given, clock = args[:-1], args[-1]
        ids = given[mapping.num_dynamic_grid_bounds:first]
        fetched = given[first:first + mapping.num_index_operands]
        starts = [s for m, b in zip(mapping.block_mappings, buffers[len(fetched):], strict=False)
                  if b.blocks is not None for s in jaxpr_as_fun(m.index_map)(*ids, *fetched)]
        note(clock, Site("program", (), ""), *starts)
        known = dict(zip(kernel.jaxpr.invars[first:], buffers, strict=True))
        _watch(kernel.jaxpr, kernel.consts, given, known, note, clock)
        sizes = iter(given)
        total = math.prod([next(sizes) if n is None else n for n in mapping.grid])
        note(clock, Site("end", (), ""), convert_element_type(total, np.int32))
        return []

    counter = AbstractRef(_ONE.varying(frozenset(axes)), ANY, None)
    program = trace_to_jaxpr(fun, [*kernel.in_avals, counter],
                             kernel.debug_info.with_unknown_names())
    return program, mapping._replace(scratch=(*mapping.scratch, counter))


def _buffers(kernel: ClosedJaxpr, mapping: GridMapping, aliased: frozenset[int]) -> list[Buffer]:
    """Those of the references that the kernel takes."""
    refs: list[Any] = kernel.in_avals[mapping.num_dynamic_grid_bounds + len(mapping.grid):]
    fetched, blocks = mapping.num_index_operands, mapping.block_mappings
    outs, last = fetched + mapping.num_inputs, fetched + len(blocks)
    names = kernel.debug_info.arg_names or [f"reference {i}" for i in range(len(refs))]

    def numbers(i: int) -> tuple[int, ...] | None:
        mapping = blocks[i - fetched] if fetched <= i < last else None
        return None if mapping is None or mapping.is_whole else tuple([
            n if isinstance(dim, Element) else -(-n // max(size, 1)) for n, size, dim in zip(
                mapping.array.shape, mapping.sizes, mapping.block_shape, strict=True)])

    return [Buffer(next(_numbers), names[i - len(refs)], ref.shape, i < outs or i - outs in aliased,
                   i >= outs, numbers(i)) for i, ref in enumerate(refs)]


def _watch(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any], known: dict[Any, Buffer],
           note: Callable[..., None], clock: Any) -> list[Any]:
    """The results of a program whose accesses are noted; `known` are its references.

    Args:
      note: `(clock, site, *values)`, notes an access.
    """
    read = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Constant}

    def apply(eqn: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
        buffers = [None if type(v) is Constant else known.get(v) for v in eqn.invars]
        holder, program = eqn.primitive.holder, program_of(eqn.primitive, eqn.params)
        if any(buffers) and holder.held is not None:
            return held_with(clock, eqn, operands, lambda p, args, clock: _watch(
                p.jaxpr, p.consts, args, _known(p, buffers), note, clock))
        if any(buffers) and program is not None:
            return _watch(program.jaxpr, program.consts, operands, _known(program, buffers), note,
                          clock)
        made = eqn.primitive is new_ref_p
        if made:
            aval: Any = eqn.outvars[0].aval
            place = f"the space made at {summarize(eqn.source_info)}"
            known[eqn.outvars[0]] = Buffer(next(_numbers), place, aval.shape,
                                           aval.memory_space is None)
        elif any(buffers) and "indexers" in eqn.params:
            note(clock, *_access(eqn, operands, buffers, bool(read.intersection(eqn.outvars))))
        outs = eqn.primitive.bind(*operands, **eqn.params)
        if made:
            note(clock, Site("made", ((known[eqn.outvars[0]], ()),), ""))
        return outs if eqn.primitive.multiple_results else [outs]

    return walk(jaxpr, consts, args, apply)


def _known(program: ClosedJaxpr, buffers: Sequence[Buffer | None]) -> dict[Any, Buffer]:
    invars = program.jaxpr.invars
    return {v: b for v, b in zip(invars, buffers[-len(invars):], strict=True) if b is not None}


def _access(eqn: JaxprEqn, operands: Sequence[Any], buffers: Sequence[Buffer | None],
            read: bool) -> tuple[Any, ...]:
    """The site of an equation, and the values that it is noted with: integers of its indices, in
    order, and what is behind them."""
    kind, steps = eqn.primitive.name, eqn.params["indexers"]
    where = summarize(eqn.source_info)
    if kind in ("get", "swap", "addupdate"):
        buffer = buffers[0]
        if kind == "swap" and read:
            kind = "exchange"
        assert buffer is not None
        return Site(kind, ((buffer, steps),), where), *operands[1 if kind == "get" else 2:]
    given = iter(zip(operands, buffers, strict=True))
    parts, values = [], []
    for part in steps:
        _, buffer = next(given)
        assert buffer is not None
        parts.append((buffer, part))
        values += [next(given)[0] for _ in range(count_integers(part))]
    return Site(kind, tuple(parts), where), *values, *[x for x, _ in given]


# -- what was noted --------------------------------------------------------------------------------


class _Access(Record):
    """That a thread, at a time of its own, reads or writes elements of a buffer."""

    thread: object
    time: int
    places: Any
    writes: bool
    where: str


class _Device:
    """A device as what it noted is gone through."""

    def __init__(self, number: int, notes: Sequence[tuple[Site, list[Any]]]) -> None:
        self.number = number
        self.notes = deque(notes)
        self.clock: dict[object, int] = {number: 0}
        self.starts: dict[Buffer, tuple[int, ...]] = {}


class Book:
    """What the devices note of one kernel, and what there is to say of it."""

    def __init__(self, name: str, devices: int, on_race: str, buffers: Sequence[Buffer]) -> None:
        self._name, self._on_race, self._buffers = name, on_race, buffers
        self._lock = RLock()
        self._open: dict[tuple[int, int], list[tuple[Site, list[Any]]]] = {}
        self._ended: dict[int, deque[Any]] = {k: deque() for k in range(devices)}

    def note(self, site: Site, device: Any, now: Any, *values: Any) -> Any:
        """Python's side of an access; the last one of the last device looks at all.

        Each run of a device has a span of times of its own, to which its first note moves the
        clock: several threads may call a kernel at once.
        """
        k, span = int(device), (int(now) - _START) // _SPAN
        moved = 1
        with self._lock:
            if not span:
                span = next(s for s in range(1, _SPAN) if (k, s) not in self._open)
                self._open[k, span] = []
                moved = span * _SPAN
            notes = self._open[k, span]
            notes.append((site, [np.asarray(v) for v in values]))
            if len(notes) == _SPAN:
                del self._open[k, span]
                raise RuntimeError(f"The kernel {self._name} reads and writes more than {_SPAN} "
                                   "times: watch it on smaller arrays.")
            if site.kind == "end" and int(values[0]) == sum(s.kind == "end" for s, _ in notes):
                self._ended[k].append(self._open.pop((k, span)))
            if all(self._ended.values()):
                run = _Run([ended.popleft() for ended in self._ended.values()], self._buffers)
                self._tell(run.findings())
        return np.int32(moved)

    def _tell(self, findings: Sequence[str]) -> None:
        if not findings:
            return
        told = [f"  {text}" for text in findings[:_MOST]]
        more = [f"  and {len(findings) - _MOST} more"] if len(findings) > _MOST else []
        text = "\n".join([f"The kernel {self._name} depends on luck:", *told, *more])
        if self._on_race == "raise":
            raise RuntimeError(text)
        print(text, file=sys.stderr)


class _Noting:
    """What XLA calls for an access; errors show it as the callback that they came from."""

    def __init__(self, book: Book, site: Site) -> None:
        self._book, self._site = book, site

    def __call__(self, *noted: Any) -> Any:
        return self._book.note(self._site, *noted)

    def __repr__(self) -> str:
        return "that watches the kernel"


class _Run:
    """One run of a kernel on all devices, gone through once more."""

    def __init__(self, notes: Sequence[Any], buffers: Sequence[Buffer]) -> None:
        self.devices = [_Device(k, found) for k, found in enumerate(notes)]
        self.buffers = buffers
        self.accesses: dict[object, list[_Access]] = {}
        self.written: dict[object, Any] = {}
        self.signals: dict[object, deque[tuple[int, dict[object, int], str]]] = {}
        self.found: dict[str, None] = {}
        self.copies = 0

    def findings(self) -> list[str]:
        going = True
        while going:
            going = False
            for device in self.devices:
                while device.notes and self._step(device, *device.notes[0]):
                    device.notes.popleft()
                    going = True
        for device in self.devices:
            if device.notes:
                self._find(device, "waits for a semaphore that nobody signals so often, at "
                           f"{device.notes[0][0].where}: start the copy, or signal it, as often "
                           "as it is waited for")
        for where in [where for left in self.signals.values() for _, _, where in left]:
            self.found[f"what is begun, or signalled, at {where} is never waited for: wait for it "
                       "before the kernel ends"] = None
        return list(self.found)

    def _find(self, device: _Device, text: str) -> None:
        self.found[text if len(self.devices) == 1 else f"device {device.number} {text}"] = None

    def _step(self, device: _Device, site: Site, values: list[Any]) -> bool:
        """Whether the device can do this now; if so it is done."""
        kind, me = site.kind, device.number
        device.clock[me] += 1
        given = iter(values)
        beyond: list[str] = []
        at = [elements(buffer, steps, given, beyond) for buffer, steps in site.parts]
        for text in beyond:
            self._find(device, f"goes beyond the ends of {text}, at {site.where}: keep indices "
                       "inside, as by pl.when or jnp.minimum")
        rest = [int(x) for x in given]
        if kind == "program":
            self._begin(device, values)
        elif kind == "made":
            self._forget(me, site.parts[0][0])
        elif kind in ("get", "swap", "addupdate", "exchange"):
            self._touch(device, me, site, 0, at[0], device.clock, me, kind != "swap", kind != "get")
        elif kind in ("dma_start", "remote_dma_start"):
            self._copy(device, site, at, rest[0] if rest else me)
        elif kind in ("semaphore_signal", "remote_signal"):
            target = rest[1] if kind == "remote_signal" else me
            self._signal(target, site.parts[0], at[0], rest[0], device.clock, site.where)
        elif kind in ("dma_wait", "semaphore_wait"):
            return self._wait(device, site.parts[-1], at[-1],
                              at[1].size if kind == "dma_wait" else rest[0])
        return True

    def _begin(self, device: _Device, values: list[Any]) -> None:
        """A block of a result that is another one than before has no known values."""
        places = iter(values)
        for buffer in self.buffers:
            if buffer.blocks is not None:
                start = tuple([int(next(places)) for _ in buffer.blocks])
                if any([not 0 <= i < n for i, n in zip(start, buffer.blocks, strict=True)]):
                    self._find(device, f"gets the block {start} of {buffer.name}, of "
                               f"{buffer.blocks} that there are: keep what the index map gives "
                               "inside")
                if buffer.moves and device.starts.get(buffer) != start and not buffer.written:
                    self._forget(device.number, buffer)
                device.starts[buffer] = start

    def _forget(self, number: int, buffer: Buffer) -> None:
        self.written.pop((number, buffer), None)
        self.accesses.pop((number, buffer), None)

    def _copy(self, device: _Device, site: Site, at: Sequence[Any], target: int) -> None:
        self.copies += 1
        thread = ("copy", self.copies)
        clock = {**device.clock, thread: 1}
        self._touch(device, device.number, site, 0, at[0], clock, thread, True, False)
        self._touch(device, target, site, 1, at[1], clock, thread, False, True)
        for k, number in zip(range(2, len(at)), (device.number, target)[4 - len(at):], strict=True):
            self._signal(number, site.parts[k], at[k], at[1].size, clock, site.where)

    def _touch(self, device: _Device, owner: int, site: Site, part: int, at: Any,
               clock: Mapping[object, int], thread: object, reads: bool, writes: bool) -> None:
        """An access by a thread of a device to elements of a buffer of the owner."""
        buffer = site.parts[part][0]
        key = owner, buffer
        if key not in self.written:
            self.written[key] = np.full(math.prod(buffer.shape), buffer.written)
        if reads and not self.written[key][at].all():
            self._find(device, f"reads {buffer.name}, where nothing has been written, at "
                       f"{site.where}: write it first")
        if writes:
            self.written[key][at] = True
        seen = self.accesses.setdefault(key, [])
        for other in seen:
            if (writes or other.writes) and other.time > clock.get(other.thread, 0) \
                    and np.intersect1d(at, other.places).size:
                self._find(device, f"{'writes' if writes else 'reads'} {buffer.name} at "
                           f"{site.where}, and nothing orders that and what "
                           f"{'writes' if other.writes else 'reads'} it at {other.where}: wait for "
                           "the copy, or the signal, between them")
        seen[:] = [e for e in seen if e.thread != thread or (e.writes and not writes)
                   or not np.isin(e.places, at).all()]
        seen.append(_Access(thread, clock[thread], at, writes, site.where))

    def _signal(self, owner: int, part: tuple[Buffer, Indexers], at: Any, amount: int,
                clock: Mapping[object, int], where: str) -> None:
        self.signals.setdefault((owner, part[0], int(at[0])), deque()).append(
            (amount, dict(clock), where))

    def _wait(self, device: _Device, part: tuple[Buffer, Indexers], at: Any, amount: int) -> bool:
        waiting = self.signals.setdefault((device.number, part[0], int(at[0])), deque())
        if sum([n for n, _, _ in waiting]) < amount:
            return False
        while amount > 0:
            n, clock, where = waiting.popleft()
            for thread, time in clock.items():
                device.clock[thread] = max(device.clock.get(thread, 0), time)
            amount -= n
            if amount < 0:
                waiting.appendleft((-amount, clock, where))
        return True


def elements(buffer: Buffer, steps: Indexers, integers: Any, beyond: list[str] | None = None
             ) -> Any:
    """Which elements of a buffer, by their number, an index takes; `integers` are its own, next.
    Of those beyond the ends `beyond` is told."""
    at = np.arange(math.prod(buffer.shape)).reshape(buffer.shape)
    of_bits = False
    for step in steps:
        if isinstance(step, Transform):
            of_bits = True  # all that is left, as one number may be several
            continue
        index = [next(integers) if takes_operand(e) else None for e in step]
        if not of_bits:
            for axis, (e, i, n) in enumerate(zip(step, index, at.shape, strict=True)):
                first: Any = i if e is None or e[0] is None else e[0]
                last: Any = first if e is None else first + (e[1] - 1) * e[2]
                if beyond is not None and n and (np.min(first) < 0 or np.max(last) >= n):
                    beyond.append(f"{buffer.name}, {np.min(first)} to {np.max(last)} of {n} along "
                                  f"axis {axis}")
            at = at[tuple([_entry(e, i, n) for e, i, n in zip(step, index, at.shape, strict=True)])]
    return at.ravel()


def _entry(entry: Any, integer: Any, n: int) -> Any:
    if entry is None:
        return np.clip(integer, 0, max(n - 1, 0))
    start, size, stride = entry
    if start is None:
        start = int(np.clip(integer, 0, max(n - (size - 1) * stride - 1, 0)))
    return slice(start, start + size * stride, stride)
