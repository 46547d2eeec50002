"""What is kept of calls, how much of it, and when it goes. `explain().caches` counts it.

Traces are kept with the function, by signature; what is derived from a jaxpr, and its compiled
programs, with the jaxpr. One thread traces a signature, or compiles a program, for all that need
it.

A function that is called with ever new shapes would keep all its programs. When those of the
process take more than `jax_pyjx_programs_max_bytes`, the oldest half of them goes, and C++ forgets
the calls it knows; a program that is wanted again comes from the disk cache, or is compiled again.

Of the programs of the library's own operations a bounded number stays loaded. Data of many lengths
make a program a length, each of 0.1 to 0.2 MB and up to six memory maps, of which Linux gives a
process 65,530; nearly all of them are used once or twice. So calls of a new program go through
Python. One that was called a few times, or is wanted again after it went, is called often: C++
makes its calls, from a cache whose least recently used entries go. Python holds the programs of
either kind that it called last: new ones, which nobody else holds, and those called often, which
C++ asks for again where arguments come in another way, such as committed to a device.

They are compiled, on CPU, in the cheapest way. XLA's newer emitters make kernels through MLIR,
which takes as long as all the rest: a product is compiled in 25 ms with them and in 13 without.
Single operations that the older ones, straight to LLVM, make as fast are compiled by these. LLVM's
first level of optimisation gives the speed of its third to all single operations, and compiles them
sooner, but for those on 8-bit floats; the third unrolls loops of some sizes whole: `exp` of shape
(32, 32) takes it 140 ms, the first 21.

In which order a sum of floats is taken depends on all of this, and on the processor's vectors. So
what adds up is compiled without any option, as programs are, and has their bits on every processor:
test suites compare functions with their compiled selves. Functions of single elements have the same
bits but for a few sizes.

All other tables of what users' values, functions and programs are made into are `BoundedDict`s,
which forget what came first. `jax.clear_caches()` empties all. What `functools` caches are facts of
this machine, of files, of dtypes and of the library itself, and those tables stay."""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import configuration, jaxlib_api
from pyjx.core import dtypes
from pyjx.core.derived import derived_under
from pyjx.core.evaluation import all_eqns, holds_jaxprs
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.options import parted
from pyjx.core.primitive import ANY_WAY, ANY_WAY_IF_SMALL, AS_PROGRAMS
from pyjx.lazy import deferred
from pyjx.runtime.executable import Executable
from pyjx.runtime.placement import Placement
from pyjx.states import with_traced_flags

if TYPE_CHECKING:
    from lowering.program import LoweredProgram

# Passes, lowering and compiler, which need not load before the first program.
lower = deferred("pyjx.runtime.lower")
compiler = deferred("pyjx.runtime.compile")
budgets = deferred("pyjx.runtime.budgets")  # few programs have a budget
exhaustion = deferred("pyjx.runtime.exhaustion")  # for errors

TRACES = 2048  # of a function, by signature; of more the oldest goes
OPERATIONS = 192  # programs of single operations: of new ones, and of those that are called often
OPERATION_CALLS = 8  # through Python, after which an operation is one of those called often
FAST_PATHS = 8192  # calls that C++ makes by itself

fast_paths = jaxlib_api.pjit_cache(FAST_PATHS)

# XLA does not tell how large the code for a CPU is. Measured, in resident memory: a quarter of a
# megabyte, and 100 bytes for each character of the program's text.
_LEAST, _PER_CHARACTER = 1 << 18, 100

# The oldest first. A program may go in any thread, whatever lock that has, so there is none here.
_sizes: dict[weakref.ref[Program], int] = {}


def note_loaded(program: Program, characters: int) -> None:
    """Note a program that was compiled from a text of this length."""
    limit = configuration.programs_max_bytes.value
    note_dropped(program)
    _sizes[weakref.ref(program, _forget)] = _LEAST + _PER_CHARACTER * characters
    if 0 <= limit < loaded_bytes():
        for old in _popped(limit // 2, program):
            old.drop()
        fast_paths.clear()


def note_dropped(program: Program) -> None:
    """Note that a program has let its executable go."""
    _forget(weakref.ref(program))


def loaded_bytes() -> int:
    """The bytes, about, that the programs of the process take."""
    return sum(list(_sizes.values()))


def loaded_count() -> int:
    """How many programs are loaded."""
    return len(_sizes)


def _popped(limit: int, newest: Program) -> list[Program]:
    """The oldest programs, as many as there are beyond `limit` bytes."""
    total, oldest = loaded_bytes(), list[Program]()
    for reference in list(_sizes):
        if total <= limit:
            break
        program = reference()
        if program is not newest:
            total -= _sizes.pop(reference, 0)
            if program is not None:
                oldest.append(program)
    return oldest


def _forget(reference: weakref.ref[Program]) -> None:
    _sizes.pop(reference, None)


class _Work:
    __slots__ = ("going", "thread")

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.going = threading.Lock()  # an event's own code runs with a lock that is no RLock
        self.going.acquire()


_working_lock = threading.RLock()  # a finalizer may trace in a thread that has it
_working: dict[Hashable, _Work] = {}
_awaited: dict[int, _Work | None] = {}  # by the thread that waits; a finalizer in it may wait, too
_PATIENCE = 60.0  # seconds; then the work is done twice, which costs time only


@contextmanager
def one_thread(key: Hashable) -> Iterator[None]:
    """Wait until no other thread is within a block of the same key, then run the block.

    The caller looks inside whether the work has been done meanwhile. A thread does not wait for one
    that waits, in the end, for itself: functions that call each other may be traced by two at once.
    """
    me = threading.get_ident()
    mine = None
    while mine is None:
        made = _Work(me)
        with _working_lock:
            work = _working.setdefault(key, made)
            if work is made:
                mine = made
                break
            if _waits_for(work.thread, me):
                break
            outer, _awaited[me] = _awaited.get(me), work
        finished = work.going.acquire(timeout=_PATIENCE)
        with _working_lock:
            _awaited[me] = outer
        if not finished:
            break
        work.going.release()
    try:
        yield
    finally:
        if mine is not None:
            with _working_lock:
                del _working[key]
            mine.going.release()


def _waits_for(thread: int, other: int) -> bool:
    """Whether one thread is, or waits for, another. Called with the lock."""
    while thread != other:
        work = _awaited.get(thread)
        if work is None:
            return False
        thread = work.thread
    return True


class Program:
    """A jaxpr lowered and compiled. Of an operation it is known how often it was called through
    Python, and whether its executable went; of a program within a budget, what was lowered."""

    __slots__ = ("__weakref__", "calls", "executable", "fitted", "was_dropped")

    def __init__(self) -> None:
        self.executable: Executable | None = None
        self.fitted: LoweredProgram | None = None
        self.calls = 0
        self.was_dropped = False

    def drop(self) -> None:
        """Let the executable go, for as long as nobody else holds it."""
        self.executable = None
        self.was_dropped = True
        note_dropped(self)


@derived_under(lambda: (configuration.trace_context(), configuration.outline.value))
def _program(closed: ClosedJaxpr, name: str, donated: tuple[bool, ...], keep_unused: bool,
             compiler_options: Any, placement: Placement) -> Program:
    return Program()


def compile_closed(closed: ClosedJaxpr, name: str, *, donated: Sequence[bool] = (),
                   keep_unused: bool = False, compiler_options: Any = (), placement: Placement,
                   lowered: LoweredProgram | None = None, is_operation: bool = False
                  ) -> tuple[Program, Executable]:
    """The program of a jaxpr for where it runs, kept with the jaxpr, and its executable.

    `lowered` is what `lower_closed` gave for it, if it is at hand; `is_operation` says that it is a
    single operation, which is to be compiled in little time.
    """
    key = (name, tuple(donated), keep_unused, compiler_options, placement)
    program = _program(closed, *key)
    executable = program.executable
    if executable is None:
        with one_thread((id(closed), key)):
            program = _program(closed, *key)
            executable = program.executable  # another thread may have been faster
            if executable is None:
                source, executable = _compiled(closed, name, donated, keep_unused,
                                               compiler_options, placement, lowered, is_operation)
                program.executable = executable
                program.fitted = None if source.fit is None else source
                note_loaded(program, len(source.text))
    return program, executable


def compiled_anew(executable: Executable, closed: ClosedJaxpr, name: str, donated: Sequence[bool],
                  keep_unused: bool) -> Executable:
    """An executable that the disk cache had, as this process compiles it."""
    assert executable.from_disk is not None
    options, flags = executable.from_disk
    with configuration.cache(False), with_traced_flags(flags):
        return _compiled(closed, name, donated, keep_unused, options, executable.placement)[1]


def _compiled(closed: ClosedJaxpr, name: str, donated: Sequence[bool], keep_unused: bool,
              compiler_options: Any, placement: Placement, lowered: LoweredProgram | None = None,
              is_operation: bool = False) -> tuple[LoweredProgram, Executable]:
    if not is_operation:
        budget = None
        if compiler_options or configuration.memory_budget.value is not None:
            budget, compiler_options = parted(compiler_options)
        if budget is not None:
            return budgets.compiled_within(  # type: ignore[no-any-return]
                budgets.bytes_on(budget, placement.devices[0]), closed, name, compiler_options,
                placement, lowered, donated=donated, keep_unused=keep_unused)
    source = lowered or lower.lower_closed(closed, name, donated=donated, keep_unused=keep_unused,
                                           placement=placement)
    if is_operation:
        compiler_options = operation_options(closed, placement.devices[0].platform)
    try:
        return source, compiler.compile_lowered(source, closed, name, compiler_options, placement)
    except jaxlib_api.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise exhaustion.completed(error, closed, name, placement.devices[0]) from None


_FIRST_LEVEL = (("xla_cpu_parallel_codegen_split_count", 1), ("xla_backend_optimization_level", 1))
_OLDER_EMITTERS = (("xla_cpu_use_fusion_emitters", False),)
_SMALL = 4096  # elements, for which the time of a kernel does not count
_LONGEST = 500  # operations; in longer programs it pays to compile kernels side by side


def operation_options(closed: ClosedJaxpr, platform: str) -> tuple[tuple[str, Any], ...]:
    """The compiler options for the program of one operation; none where they would be seen. With
    floats of 8 bits, of which each operation is a dozen branches, the first level takes seconds."""
    # What the user's own flags say is not overruled.
    if platform != "cpu" or re.search("xla_cpu|xla_backend", os.environ.get("XLA_FLAGS", "")):
        return ()
    eqns = list(all_eqns(lower.in_known_operations(closed, platform)))
    avals = {v.aval for eqn in eqns for v in (*eqn.invars, *eqn.outvars)}
    types = {dtype for a in avals if isinstance(dtype := getattr(a, "dtype", None), np.dtype)}
    if len(eqns) > _LONGEST or any([t.name.startswith("float8") for t in types]):
        return ()
    ways = set()
    for eqn in eqns:
        way = eqn.primitive.compiled
        if way == AS_PROGRAMS and any([dtypes.issubdtype(v.aval.dtype, np.inexact)
                                       for v in eqn.outvars]):
            return ()
        if not holds_jaxprs(eqn):
            ways.add(ANY_WAY_IF_SMALL if way == AS_PROGRAMS else way)
        elif not eqn.primitive.is_call:
            ways.add(None)
    # Elsewhere intermediate results are rounded, or products and sums contracted.
    elsewhere = np.dtype(np.float16) in types or any([t.kind == "c" for t in types])
    small = all([type(n := getattr(a, "size", 0)) is int and n <= _SMALL  # or an expression
                 for a in closed.in_avals + closed.out_avals])
    if (jaxlib_api.HAS_OLDER_CPU_EMITTERS and not elsewhere
            and ways <= ({ANY_WAY, ANY_WAY_IF_SMALL} if small else {ANY_WAY})):
        return _FIRST_LEVEL + _OLDER_EMITTERS
    return _FIRST_LEVEL


_operations_lock = threading.RLock()  # a finalizer may run operations in a thread that has it
# Programs of operations, the least recently called first.
_new: OrderedDict[Program, None] = OrderedDict()
_often: OrderedDict[Program, None] = OrderedDict()


def note_operation_called(program: Program, fast: bool) -> bool:
    """Note a call through Python; whether C++ is to make the next ones. `fast` says that it can."""
    with _operations_lock:
        program.calls += 1
        often = fast and (program.was_dropped or program.calls >= OPERATION_CALLS)
        _new.pop(program, None)
        _often.pop(program, None)
        programs = _often if often else _new
        programs[program] = None
        oldest = programs.popitem(last=False)[0] if len(programs) > OPERATIONS else None
    if oldest is not None:
        oldest.drop()
    return often


def operation_count() -> int:
    """How many programs of operations are held."""
    return len(_new) + len(_often)


def clear() -> None:
    """Forget all that C++ knows of calls, and let the programs of operations go."""
    fast_paths.clear()
    with _operations_lock:
        programs = [*_new, *_often]
        _new.clear()
        _often.clear()
    for program in programs:
        program.drop()
