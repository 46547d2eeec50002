"""How much memory a program needs at each of its equations: an estimate from the jaxpr.

A value takes its bytes from the equation that makes it to the last one that reads it. XLA makes
less than that. What elementwise operations and rearrangements make for other such operations is
part of these, if it is read once or costs little to compute: it is never in memory, and what it is
made of lives for as long as it is read. The result of an elementwise operation stands where an
operand was that nothing reads any more; so do updates, barriers and the carries of loops. Results
and arguments are there all the time, a result where an argument was that is donated.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from pyjx.core.arithmetic import reduction
from pyjx.core.avals import nbytes, taken_over
from pyjx.core.evaluation import holds_jaxprs, jaxprs_of, read_in, variables
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from pyjx.core.places import Space
from pyjx.core.primitive import CHEAP, Primitive
from pyjx.core.records import Record

Sizes = Callable[[Any], int]  # the bytes of a value of a type


def device_bytes(aval: Any) -> int:
    """The bytes of a value in the memory of a device: none of what the host has."""
    return 0 if getattr(aval, "memory_space", None) is Space.Host else nbytes(aval)


def tiled_bytes(aval: Any, lanes: Sequence[int] | None = None, rows: Sequence[int] | None = None
                ) -> int:
    """As `device_bytes`, on a TPU: of tiles of 8 rows of 128 elements, along the axes that fit
    best, of some for each of both."""
    plain, shape = device_bytes(aval), getattr(aval, "shape", ())
    sides = [d for d, n in enumerate(shape) if n != 1]
    if not plain or not sides:
        return plain
    least = min([_up(shape[i], 128) * (_up(shape[j], 8) if i != j else 1.0)
                 for i in sides if lanes is None or i in lanes
                 for j in sides if (i != j and (rows is None or j in rows)) or len(sides) == 1],
                default=1.0)
    return int(plain * least)


def _up(n: int, tile: int) -> float:
    return math.ceil(n / tile) * tile / n


_MOST = 32  # values that a fusion reads
_LARGE = 3  # of them that are as large as its result, on a TPU
_PER_BYTE = 64.0


class Machine(Record):
    """What XLA's compiler of a platform does to the values of programs.

    Attributes:
      sizes: the bytes of a value of a type.
      fuses_dear: whether what costs much to compute is part of each of several that read it.
      joins_apart: whether operands that are joined are in memory before.
      copies: whether products and convolutions read copies of operands whose axes do not stand in
        the order of a library's: batch, rows, columns.
      rounds: whether 32-bit floats that only products read are kept as those of 16 bits.
      scratch: the bytes of another memory that temporaries are put into first.
      wait: how long they may be there without being read. Times are in bytes that the memory
        reads or writes meanwhile.
      flops: the arithmetic operations of products that take as long as a byte.
      reorders: whether operations may wait until their results are read, if that needs less.
      tiles: whether values lie in tiles: rows that are gathered are in memory, and batches of
        products are no axes of tiles.
      per_byte: what a byte of a result costs to make, in arithmetic operations: those of a vector
        unit in the time in which memory takes a byte.
      to_host: what it costs to move a byte to the host's memory and back, in such operations.
      new_page: what a byte of temporaries costs, in arithmetic operations, that programs get
        from the system anew each time that they run: where they need more than `pooled` bytes.
    """

    sizes: Sizes = device_bytes
    fuses_dear: bool = False
    joins_apart: bool = False
    copies: bool = False
    rounds: bool = False
    scratch: int = 0
    wait: float = math.inf
    flops: float = math.inf
    reorders: bool = False
    tiles: bool = False
    per_byte: float = _PER_BYTE
    to_host: float = math.inf
    new_page: float = 0.0
    pooled: float = math.inf

    def upkeep(self, temporaries: float) -> float:
        """What so many bytes of temporaries cost in each run."""
        return self.new_page * temporaries if temporaries > self.pooled else 0.0


# GB/s of a TPU's memory, 819 of a v5e (cloud.google.com/tpu/docs/v5e), and of its link to the host
# in each direction, 32 of PCIe 4.0 with 16 lanes, as nothing is published. Of GPUs none is known to
# the compiler ahead of time, and the CPU's memory is the host's.
_TPU, _TPU_LINK = 819, 32
# Of the 128 MiB of vector memory of a v5e fusions have 16 for themselves; what would be there for
# longer than it takes to copy all of it eight times is moved out, as libtpu's flags say
# (xla_tpu_scoped_vmem_limit_kib, xla_vf_vmem_max_overlap_to_mem_size_async_copy_ratio). Its
# products do 197 T operations a second.
_VMEM, _TPU_FLOPS = 112 << 20, 197e3
# glibc gives blocks of more than 32 MiB (DEFAULT_MMAP_THRESHOLD_MAX) back to the system when they
# are freed, and XLA's CPU client frees temporaries after each run. A new page of 4 KiB takes
# 0.25 us on bare metal and 1 to 2 us in virtual machines, in which a core does 25,000 to 500,000
# operations of a product: 6 to 120 a byte. 72 is chosen, below the 103 that were measured in a
# virtual machine (1.75 us a page, products of 240 GFlop/s); 24 more are for writing and reading
# what is in no cache.
_NEW_PAGE, _POOLED = 72.0 + 24.0, 32 << 20
MACHINES = {
    "cpu": Machine(joins_apart=True, copies=True, per_byte=4.0, new_page=_NEW_PAGE, pooled=_POOLED),
    "tpu": Machine(tiled_bytes, fuses_dear=True, rounds=True, scratch=_VMEM, wait=8 * _VMEM,
                   flops=_TPU_FLOPS / _TPU, reorders=True, tiles=True,
                   to_host=2 * _PER_BYTE * _TPU / _TPU_LINK)}
_OTHER = Machine(fuses_dear=True)


def machine_of(platform: str) -> Machine:
    return MACHINES.get(platform, _OTHER)


class Liveness:
    """When the values of a program are in memory.

    Attributes:
      eqns: its equations.
      size: the bytes of each value that is in memory.
      first, last: the equations that make and last read it, by their numbers.
      live: the bytes of temporaries while each equation runs, with what programs in it need.
      fixed: the bytes of results, and of arguments that are read.
      inside: what programs in an equation need, by its number.
      time: how long the program takes, where the machine has another memory; as `Machine.wait`.
    """

    __slots__ = ("_factor", "_inner", "_late", "_machine", "_padded", "_sizes", "eqns", "first",
                 "fixed", "inside", "last", "live", "size", "time")

    def __init__(self, jaxpr: Jaxpr, machine: Machine = _OTHER, donated: Sequence[bool] = (),
                 inner: dict[int, Any] | None = None, loop: bool = False) -> None:
        self._machine = machine
        self._sizes = machine.sizes
        self._inner: dict[int, Any] = {} if inner is None else inner
        self.eqns = jaxpr.eqns
        self.first: dict[Atom, int] = {}
        self.last: dict[Atom, int] = {}
        self.size: dict[Atom, int] = {}
        self.inside: dict[int, int] = {}
        self.time = 0.0
        self._late: set[Atom] = set()  # what is moved out of the other memory
        self.fixed = self._fixed(jaxpr, donated)
        self._padded = _padded(self.eqns) if machine.tiles else {}
        results = {} if loop else {v: None for v in jaxpr.outvars if type(v) is not Literal}
        self._find(jaxpr, results, loop)
        self.live = self._curve(len(jaxpr.eqns))

    @property
    def peak(self) -> int:
        return self.fixed + max(self.live, default=0)

    @property
    def at_peak(self) -> int:
        """The number of the equation at which the program needs most."""
        return max(range(len(self.live)), key=self.live.__getitem__, default=0)

    def alive(self, i: int) -> list[Atom]:
        """The values that are in memory while an equation runs, the largest first."""
        found = [v for v, n in self.size.items() if n and self.first[v] <= i <= self.last[v]]
        return sorted(found, key=lambda v: -self.size[v])

    def within(self, i: int) -> Liveness | None:
        """Of the programs that an equation holds that which needs most; None if it holds none."""
        found = [self._inner[id(j)][0] for j in jaxprs_of(self.eqns[i]) if id(j) in self._inner] \
            if i in self.inside else []
        return max(found, key=lambda live: max(live.live, default=0), default=None)

    def _fixed(self, jaxpr: Jaxpr, donated: Sequence[bool]) -> int:
        own = [self._sizes(aval) for aval in jaxpr.out_avals]
        donated = (*donated, *[False] * (len(jaxpr.invars) - len(donated)))
        shared = taken_over(jaxpr.in_avals, jaxpr.out_avals, donated) if any(donated) else {}
        read = read_in(jaxpr)
        return (sum([self._sizes(v.aval) for v in jaxpr.all_invars if v in read]) + sum(own)
                - sum([own[k] for k in shared.values()]))

    def _find(self, jaxpr: Jaxpr, results: dict[Atom, None], loop: bool) -> None:
        """Find out which values are in memory, and for how long."""
        eqns, last = jaxpr.eqns, self.last
        end = len(eqns)
        reads: dict[Atom, int] = {}  # how often a value is read
        whole: dict[Atom, int] = {}  # the last equation that reads it and is no part of a fusion
        fused: dict[Atom, int] = {}  # the last one that is
        exact: set[Atom] = {*jaxpr.outvars}  # what other operations than products read
        twice: set[Atom] = set()  # what products read copies of
        for v in jaxpr.outvars:
            last[v] = whole[v] = end
        made: dict[Atom, int] = {v: i for i, e in enumerate(eqns) for v in e.outvars}
        virtual: set[int] = set()
        ends = _ends(jaxpr) if self._machine.tiles else set()
        for i in range(end - 1, -1, -1):
            eqn = eqns[i]
            primitive = eqn.primitive
            if _is_barrier(primitive):
                results.update((x, None) for x, v in zip(eqn.invars, eqn.outvars, strict=True)
                               if v in results and x in made)
            out = eqn.outvars[0] if eqn.outvars else None
            if primitive.fuses and out not in ends and out in last and out not in whole and (
                    primitive.cost == CHEAP or primitive.moves or reads.get(out) == 1
                    or self._machine.fuses_dear):
                virtual.add(i)
                at = max([last.get(v, i) for v in eqn.outvars])
            elif out in results and results.keys() >= set(eqn.outvars):  # as soon as it can be
                at = max([made.get(x, 0) for x in eqn.invars if type(x) is not Literal], default=0)
            elif out and primitive.cost == CHEAP and _is_of_one(eqn, made, eqns):
                # Fusions make it again of what it is made of, which is not more.
                at = max(fused.get(out, i), i)
                last[out] = whole.get(out, i)
            else:
                at = i
            fuses = ((primitive.fuses and not (out in ends and _gathers(eqn)))
                     or primitive.arithmetic is reduction
                     or (self._machine.tiles and _is_product(eqn))) and not (
                len(eqn.invars) > 1 and primitive.moves and self._machine.joins_apart
                and _joins(eqn))
            kind = fused if fuses else whole
            for x in eqn.invars:
                if type(x) is not Literal:
                    reads[x] = reads.get(x, 0) + 1
                    if last.get(x, -1) < at:
                        last[x] = at
                    if kind.get(x, -1) < at:
                        kind[x] = at
            if self._machine.rounds:
                exact.update(self._read_exactly(eqn, exact))
            if primitive.contracts and self._machine.copies:
                twice.update(_copied(eqn))
        self._factor = {v: 0.5 for v in last if v not in exact} if self._machine.rounds else \
            dict.fromkeys(twice, 2.0)
        self._place(jaxpr, results, virtual, loop)

    def _read_exactly(self, eqn: JaxprEqn, exact: set[Atom]) -> Sequence[Any]:
        """The operands of an equation of which it matters that they have all their bits."""
        primitive = eqn.primitive
        if (primitive.contracts and not eqn.params.get("precision")) or (
                primitive.moves and exact.isdisjoint(eqn.outvars)):
            return ()
        programs = jaxprs_of(eqn) if eqn.params and holds_jaxprs(eqn) else ()
        if len(programs) != 1:
            return eqn.invars
        inner = self._of(programs[0], bool(primitive.holder.loops))
        names = programs[0].jaxpr.invars
        return [*eqn.invars[:-len(names)], *[x for x, v in zip(
            eqn.invars[-len(names):], names, strict=False) if v not in inner._factor]]

    def _place(self, jaxpr: Jaxpr, results: dict[Atom, None], virtual: set[int], loop: bool
               ) -> None:
        """Give the values that are in memory their places: the equations from which they are."""
        eqns, first, last, size, sizes = jaxpr.eqns, self.first, self.last, self.size, self._sizes
        given: dict[Atom, None] = {} if loop else dict.fromkeys(jaxpr.all_invars)
        touched: dict[Atom, float] = {}  # when a value was made or read
        roots: dict[Any, tuple[Any, ...]] = {}  # what is in memory of what a value is made of
        for i, eqn in enumerate(eqns):
            primitive = eqn.primitive
            read = list(dict.fromkeys([r for x in eqn.invars if type(x) is not Literal
                                       for r in roots.get(x, (x,))]))
            if i in virtual and len(read) <= _MOST:
                for v in eqn.outvars:
                    roots[v] = tuple(read)
                continue
            if _is_barrier(primitive):
                for x, v in zip(eqn.invars, eqn.outvars, strict=True):
                    roots[v] = roots.get(x, (x,))
                    for r in roots[v]:
                        last[r] = max(last.get(r, i), last.get(v, i))
                continue
            for v in eqn.outvars:
                first[v] = i
                last.setdefault(v, i)
                size[v] = 0 if v in results else sizes(v.aval)
                if v in self._factor and v.aval.dtype == np.float32:
                    size[v] = int(size[v] * self._factor[v])
                size[v] = int(size[v] * self._padded.get(v, 1.0))
            if self._machine.scratch:
                self._pass_time(eqn, read, touched)
            if primitive.cost is not None or primitive.in_place or primitive.holder.loops:
                self._take_over(i, eqn, read, given)
            if self._machine.tiles and primitive.in_place and "dimension_numbers" in eqn.params:
                # The rows that are scattered are copied.
                self.inside[i] = tiled_bytes(eqn.invars[2].aval, _last(eqn.invars[2]))
            elif eqn.params and holds_jaxprs(eqn):
                self.inside[i] = self._held(eqn)
            elif primitive.contracts and self._machine.copies:
                spec = getattr(eqn.params["dimension_numbers"], "lhs_spec", (0,))
                if spec[0]:  # the gradient of a kernel
                    self.inside[i] = sum([sizes(x.aval) for x in eqn.invars])

    def _take_over(self, i: int, eqn: JaxprEqn, read: Sequence[Any], given: dict[Atom, None]
                   ) -> None:
        """Let results stand where operands were that nothing else reads: these end before."""
        last, size = self.last, self.size
        free = [r for r in read if last.get(r) == i and size.get(r) and r not in given]
        for v in eqn.outvars:
            for r in free:
                if size[r] == self._sizes(v.aval):
                    last[r] = i - 1
                    free.remove(r)
                    break

    def _pass_time(self, eqn: JaxprEqn, read: Sequence[Any], touched: dict[Atom, float]) -> None:
        """Count the time that an equation takes, and find what has waited too long for it."""
        self._late.update([x for x in read if self.time - touched.get(x, self.time)
                           > self._machine.wait])
        values = [*read, *eqn.outvars]
        if eqn.params and holds_jaxprs(eqn):
            loops = bool(eqn.primitive.holder.loops)
            self.time += (eqn.primitive.holder.times(eqn.params) or 1) * max(
                [self._of(p, loops).time for p in jaxprs_of(eqn)], default=0.0)
        else:
            count = eqn.primitive.arithmetic if eqn.primitive.contracts else None
            work = count(eqn) if count else None
            self.time += max(sum([self.size.get(v, 0) for v in values]),
                             work[0] / self._machine.flops if isinstance(work, tuple) else 0.0)
        touched.update(dict.fromkeys(values, self.time))

    def _held(self, eqn: JaxprEqn) -> int:
        """What programs of an equation need beyond its operands and results."""
        loop = bool(eqn.primitive.holder.loops)
        return max([max(self._of(p, loop).live, default=0) for p in jaxprs_of(eqn)], default=0)

    def _of(self, closed: ClosedJaxpr, loop: bool) -> Liveness:
        found = self._inner.get(id(closed))
        if found is None:
            live = Liveness(closed.jaxpr, self._machine._replace(scratch=0), (), self._inner, loop)
            found = self._inner[id(closed)] = (live, closed)
        return found[0]  # type: ignore[no-any-return]

    def _curve(self, n: int) -> list[int]:
        change = [0] * (n + 2)
        apart: list[tuple[int, int, int]] = []
        for v, bytes_ in self.size.items():
            if bytes_ and self.last[v] >= self.first[v]:
                end = min(self.last[v], n - 1) + 1
                if self._machine.scratch and v not in self._late:
                    apart.append((self.first[v], end, bytes_))
                else:
                    change[self.first[v]] += bytes_
                    change[end] -= bytes_
        live = list(accumulate(change[:n]))
        for i, more in self.inside.items():
            live[i] += max(more - self._machine.scratch, 0)
        return self._with_what_is_beside(live, apart) if apart else live

    def _with_what_is_beside(self, live: list[int], apart: Sequence[tuple[int, int, int]]
                             ) -> list[int]:
        """The bytes while each equation runs, with those for which there is no room in the other
        memory of values that are made and freed then: values are there whole, small ones first."""
        changes: dict[int, list[int]] = {}
        for first, end, bytes_ in apart:
            changes.setdefault(first, []).append(bytes_)
            changes.setdefault(end, []).insert(0, -bytes_)
        held: list[int] = []
        beyond = 0
        for i in range(len(live)):
            for n in changes.get(i, ()):
                insort(held, n) if n > 0 else held.remove(-n)
            if i in changes or i in self.inside or i - 1 in self.inside:
                taken = accumulate(held, initial=self.inside.get(i, 0))
                next(taken)
                beyond = sum([n for n, all_ in zip(held, taken, strict=True)
                              if all_ > self._machine.scratch])
            live[i] += beyond
        return live


def as_it_is_read(jaxpr: Jaxpr) -> Jaxpr:
    """The program in which each operation stands just before the first that reads its result."""
    if jaxpr.effects:
        return jaxpr
    eqns = jaxpr.eqns
    made = {v: i for i, e in enumerate(eqns) for v in e.outvars}
    order: dict[int, None] = {}
    waiting = sorted({made[v] for v in variables(jaxpr.outvars) if v in made}, reverse=True)
    while waiting:
        reads = [made[x] for x in variables(eqns[waiting[-1]].invars) if x in made]
        if more := [i for i in reads if i not in order]:
            waiting += sorted(more, reverse=True)
        else:
            order[waiting.pop()] = None
    return jaxpr.replace(eqns=[eqns[i] for i in order])


def _is_barrier(primitive: Primitive) -> bool:
    return primitive.moves and primitive.multiple_results and not primitive.rearranges


def _ends(jaxpr: Jaxpr) -> set[Atom]:
    """The results of fusions on a TPU: rows that are gathered, what reads the result of a product
    that nothing else reads, and, where an operation would be made of many values in memory, the
    operand that is made of most of them."""
    found: set[Atom] = set()
    reads = Counter([x for e in jaxpr.eqns for x in e.invars] + [*jaxpr.outvars])
    products = {v for e in jaxpr.eqns if _is_product(e) for v in e.outvars if reads[v] == 1}
    roots: dict[Atom, set[Atom]] = {}
    for eqn in jaxpr.eqns:
        if not eqn.primitive.of_elements:
            continue
        (out,) = eqn.outvars
        read = [x for x in eqn.invars if type(x) is not Literal]
        large = [x for x in read if x.aval.size >= out.aval.size]
        made_of = {r for x in large for r in roots.get(x, (x,))}
        while len(made_of) > _LARGE and not roots.keys().isdisjoint(large):
            most = max(large, key=lambda x: len(roots.get(x, ())))
            found.add(most)
            del roots[most]
            made_of = {r for x in large for r in roots.get(x, (x,))}
        if _gathers(eqn) or not products.isdisjoint(read):
            found.add(out)
        else:
            roots[out] = made_of
    return found


def _gathers(eqn: JaxprEqn) -> bool:
    return eqn.primitive.rearranges and "dimension_numbers" in eqn.params


def _is_product(eqn: JaxprEqn) -> bool:
    """Whether it is a product of matrices, and no convolution."""
    return eqn.primitive.contracts and not hasattr(eqn.params["dimension_numbers"], "lhs_spec")


def _padded(eqns: Sequence[JaxprEqn]) -> dict[Atom, float]:
    """How many times as large values are in tiles as in those along the axes that fit best: rows
    that are gathered, what products of batches read and make, and what is made of these, or they of
    it, element by element."""
    found: dict[Atom, float] = {}

    def note(x: Any, lanes: Sequence[int], rows: Sequence[int] | None) -> None:
        if type(x) is not Literal and (plain := tiled_bytes(x.aval)):
            more = tiled_bytes(x.aval, lanes, rows) / plain
            if more > found.get(x, 1.0):
                found[x] = more

    for eqn in eqns:
        for x, batch in zip((*eqn.invars, *eqn.outvars), _batches(eqn), strict=False):
            axes = [d for d in range(len(x.aval.shape)) if d not in batch]
            note(x, axes, axes)
    passing = [e for e in eqns if e.primitive.of_elements] if found else []
    for eqn in passing:
        size = eqn.outvars[0].aval.size
        more = max([found.get(x, 1.0) for x in eqn.invars
                    if type(x) is not Literal and x.aval.size == size], default=1.0)
        if more > found.get(eqn.outvars[0], 1.0):
            found[eqn.outvars[0]] = more
    for eqn in reversed(passing):
        more, size = found.get(eqn.outvars[0], 1.0), eqn.outvars[0].aval.size
        found.update((x, more) for x in eqn.invars if type(x) is not Literal
                     and x.aval.size >= size and more > found.get(x, 1.0))
    for eqn in eqns:
        if _gathers(eqn):
            note(eqn.outvars[0], _last(eqn.outvars[0]), None)
    return found


def _last(x: Any) -> Sequence[int]:
    return (len(x.aval.shape) - 1,)


def _batches(eqn: JaxprEqn) -> Sequence[Sequence[int]]:
    """The axes of batches of the operands and the result of a product of matrices, if it has."""
    batches = eqn.params["dimension_numbers"][1] if _is_product(eqn) else [()]
    return (*batches, range(len(batches[0]))) if batches[0] else ()


def _is_of_one(eqn: JaxprEqn, made: dict[Atom, int], eqns: Sequence[JaxprEqn]) -> bool:
    """Whether an operation reads no more than one array of which it reads each element once."""
    size = eqn.outvars[0].aval.size
    large = [x for x in eqn.invars if type(x) is not Literal and x.aval.size >= size]
    return len([x for x in large if x not in made or not eqns[made[x]].primitive.moves
                or max([y.aval.size for y in eqns[made[x]].invars], default=0) >= size]) <= 1


def _joins(eqn: JaxprEqn) -> bool:
    """Whether an operation that moves values puts several arrays into one."""
    sizes = [x.aval.size for x in eqn.invars if getattr(x.aval, "shape", ())]
    return len(sizes) > 1 and sum(sizes) == eqn.outvars[0].aval.size


def _copied(eqn: JaxprEqn) -> list[Any]:
    """The operands of a product, unless it is one of matrices, whose axes do not stand in the order
    batch, rows, columns."""
    numbers = eqn.params["dimension_numbers"]
    if hasattr(numbers, "lhs_spec"):
        return []
    orders = []
    canonical = True
    for k, (x, contracted, batch) in enumerate(zip(eqn.invars, *numbers, strict=True)):
        free = [d for d in range(len(x.aval.shape)) if d not in contracted and d not in batch]
        canonical &= len(free) < 2 and len(contracted) < 2 and [*batch] == [*range(len(batch))]
        order = (*batch, *contracted, *free) if k else (*batch, *free, *contracted)
        orders.append([d for d in order if x.aval.shape[d] > 1])
    return [] if canonical else [x for x, order in zip(eqn.invars, orders, strict=True)
                                 if order != sorted(order) and type(x) is not Literal]
