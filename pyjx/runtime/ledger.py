"""The ledger: what functions were traced for, from where, and what that cost.

It is written where a function is traced or a program compiled, never by a call whose program is
known. An entry holds types and texts: no arrays, no functions, nothing of the user's that could be
large. Entries are compared when somebody asks (`pyjx.runtime.explain`), or when a flag wants it.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import configuration
from pyjx.core import logs
from pyjx.core.bounded import BoundedDict
from pyjx.core.frames import called_by_user, own_line, tool_around
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo
from pyjx.core.named_axes import named_axes
from pyjx.core.records import Record
from pyjx.core.trace import Tracer, state
from pyjx.core.unwrapping import layers, place_of
from pyjx.core.value_texts import in_short
from pyjx.engine.functions import child_keys
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.engine.types import TreeDef
from pyjx.jaxlib_api import Traceback
from pyjx.runtime.signature import Parameters, parameters_of_code

if TYPE_CHECKING:
    from pyjx.runtime.jit import JitSpec
    from pyjx.runtime.placement import Placement

ENTRIES = 64  # of a function, the latest
FUNCTIONS = 1024  # those traced last
OPERATIONS = 1024  # of the library
# An operation outside of jit: its name, and the function of the library's that the user has called
# for it, unless that is C++.
Operation = tuple[str, CodeType | None]

_lock = threading.RLock()  # a finalizer may trace in a thread that has it
_histories: OrderedDict[Any, History] = OrderedDict()
_operations: dict[Operation, Costs] = {}
_operation_lines = defaultdict[str, float](float)  # seconds by the user's line, for reports
_operation_shapes = defaultdict[tuple[Operation, str], set[Any]](set)  # by line as well
_numbers = itertools.count(1)


class Costs:
    """What traces or programs have cost, in seconds; `run` is that of first runs, where the flag
    `jax_pyjx_report` wants it."""

    __slots__ = ("compile", "from_disk", "lower", "programs", "run", "trace", "traces")

    def __init__(self) -> None:
        self.traces = self.programs = self.from_disk = 0
        self.trace = self.lower = self.compile = self.run = 0.0

    @property
    def seconds(self) -> float:
        return self.trace + self.lower + self.compile


class Traces(BoundedDict):
    """What a function jitted with some options was traced to, by signature.

    Attributes:
      function: a number for the function, which no other one of the process has.
      options: those of the `JitSpec`.
      source: what the function is made of; None before the first trace.
      history: of the function; None before the first trace.
      clears: how often the traces were forgotten.
    """

    __slots__ = ("clears", "function", "history", "options", "source")

    def __init__(self, capacity: int, function: int = 0, options: Any = ()) -> None:
        super().__init__(capacity, "traces of functions")
        self.function = function
        self.options = options
        self.source: Source | None = None
        self.history: History | None = None
        self.clears = 0

    def clear(self) -> None:
        self.clears += 1
        super().clear()


def new_function() -> int:
    """The number of one more function."""
    return next(_numbers)


# Where something is among the arguments: the argument and the steps into it, ("batch", "['x']").
Path = tuple[str, ...]
WeakProgram = Callable[[], ClosedJaxpr | None]  # a weak reference, unless reports are wanted


class Static(Record):
    """A static argument: its name, its class, a short text, its hash, the way it came: `by
    keyword`, `by position` or `by default`, and its role: `static number`, of Python or NumPy,
    `static function`, `static object`, which equals itself alone, or `static`."""

    name: str
    kind: str
    text: str
    hash: int
    way: str
    role: str


class Layout(Record):
    """The structure of arguments: the path of each leaf, such as `("batch", "['x']")`, path and
    text of each node, such as `(("batch",), "dict with 2 keys")`, of objects of the user's the hash
    of what they hold besides arrays, and the arguments given by keyword."""

    leaves: tuple[Path, ...]
    nodes: tuple[tuple[Path, str], ...]
    metadata: tuple[tuple[Path, int], ...]
    keywords: tuple[str, ...]


class Program(Record):
    """A program that was compiled for a trace.

    Attributes:
      device: what it runs on, the first of several, such as `cpu:0`.
      shardings: those of its arguments, and the mesh that they are over.
      derived: whether it is that of a derivative or a batch of what was traced.
      options: the compiler's options.
      from_disk: whether the disk cache had it, or why it could not have it.
      seconds: what compiling or loading it took.
      memory: how it fits into its budget of memory; empty if it has none.
    """

    device: str
    shardings: str
    derived: bool
    options: str
    from_disk: bool | str
    seconds: float
    memory: str = ""


class Entry:
    """One trace of a function."""

    __slots__ = ("avals", "axes", "captures_tracers", "clears", "compiled", "costs", "flags",
                 "function", "layout", "number", "options", "program", "replacements", "source",
                 "static", "tool", "traceback", "tree", "tree_hash", "within")

    avals: tuple[Any, ...]
    axes: str
    captures_tracers: bool
    clears: int
    compiled: tuple[Program, ...]
    costs: Costs
    flags: tuple[tuple[str, str], ...]  # those that differ from their default
    function: int
    layout: Layout | None
    number: int  # among those that the program asked for, from 1; 0 of others
    options: Any
    program: WeakProgram
    replacements: tuple[WeakProgram, ...]  # what is compiled in the place of `program`
    source: Source
    static: tuple[Static, ...]
    tool: str  # that looked at the function, which is no call of the program's
    traceback: Traceback | None  # of the call
    tree: Any  # a structure, or None where the layout is known
    tree_hash: int
    within: str  # the function that was being traced around it


class History:
    """The traces of a function: of all that are made at one place in a program."""

    __slots__ = ("_start", "costs", "entries", "key", "name", "place", "retraces", "warned")

    def __init__(self, key: Any, name: str, place: str) -> None:
        self.key = key
        self.name = name
        self.place = place
        self.entries: deque[Entry] = deque(maxlen=ENTRIES)
        self.costs = Costs()
        self.retraces = 0  # outside of other traces
        self.warned = False
        self._start = time.monotonic()

    def seconds(self) -> float:
        """What the function has cost, by the clock: several threads may compile at once."""
        return min(self.costs.seconds, time.monotonic() - self._start)


class TracedInfo(DebugInfo):
    """Where a jaxpr came from, with its entry; what is derived from the jaxpr has the same."""

    __slots__ = ("entry", "history")

    entry: Entry | None
    history: History | None


# -- writing ---------------------------------------------------------------------------------------


def note_operation_traced(name: str, seconds: float) -> None:
    """A function of the library was traced."""
    with _lock:
        costs = _costs_of_operation(_operation(name))
        costs.traces += 1
        costs.trace += seconds
    if _logs():
        _log(f"Finished tracing {name} for jit in {seconds:.9f} sec")


def note_traced(spec: JitSpec, info: TracedInfo, closed: ClosedJaxpr, in_tree: TreeDef,
                avals: tuple[Any, ...], static: Any, seconds: float
                ) -> tuple[History, Entry, bool] | None:
    """A function was traced, to the jaxpr `closed`. What `explain.report_miss` is to report, where
    a flag wants it or the function was traced too often."""
    fun, name, traces = spec.fun, spec.name, spec.traces
    source = traces.source
    if source is None:
        source = traces.source = source_of(fun)
    entry = Entry()
    entry.function = traces.function
    entry.source = source
    entry.avals = avals
    entry.tree_hash = _hash(in_tree)
    parameters = source.parameters() if static else None
    entry.static = _statics(parameters, static) if static else ()
    if _is_plain(in_tree):
        entry.tree, entry.layout = in_tree, None
    else:  # it holds objects of the user's
        entry.tree, entry.layout = None, layout_of(source, in_tree, entry.static)
    entry.flags = tuple([(name, in_short(value)) for name, value in configuration.changed_traced()])
    entry.axes = ", ".join([f"{a.name!r}: {a.size}" for a in named_axes()]) \
        if state.axis_frames else ""
    entry.options = traces.options
    info_around = getattr(state.dynamic, "debug_info", None)
    entry.traceback = traceback = Traceback.get_traceback()
    entry.tool = tool = tool_around(traceback)
    entry.within = "" if info_around is None else info_around.func_name
    entry.captures_tracers = any([isinstance(c, Tracer) for c in closed.consts])
    entry.clears = traces.clears
    entry.costs = costs = Costs()
    costs.traces, costs.trace = 1, seconds
    entry.program = partial(_kept, closed) if configuration.report.value else weakref.ref(closed)
    entry.compiled = entry.replacements = ()
    info.entry = entry
    with _lock:
        info.history = history = _noted_history(spec, source)
        history.costs.traces += not tool
        history.costs.trace += seconds
        entry.number = 0 if tool else history.costs.traces
        latest = next((e for e in reversed(history.entries)
                       if e.options == entry.options and not e.tool), None)
        history.entries.append(entry)
        # Functions made by one code with other values are meant to be others.
        if latest is not None and not (tool or entry.within) and (
                latest.function == entry.function or latest.source.captured == source.captured):
            history.retraces += 1
        warns = (0 <= configuration.retraces_warn_count.value < history.retraces
                 and not (tool or history.warned)
                 and history.seconds() >= configuration.retraces_warn_seconds.value)
        history.warned |= warns
    if _logs():
        _log(f"Finished tracing {name} for {info.traced_for} in {seconds:.9f} sec")
    wanted = warns or (configuration.explain_cache_misses.value and not tool)
    return (history, entry, warns) if wanted else None


def _kept(closed: ClosedJaxpr) -> ClosedJaxpr:
    return closed


def note_lowered(closed: ClosedJaxpr, name: str, seconds: float) -> None:
    """A jaxpr was lowered to text."""
    with _lock:
        for costs in _costs_of(closed, name):
            costs.lower += seconds
    if _logs():
        _log(f"Finished jaxpr to MLIR module conversion jit({name}) in {seconds:.9f} sec")


def note_compiled(closed: ClosedJaxpr, name: str, placement: Placement, options: Any,
                  from_disk: bool | str, seconds: float, fit: Any = None) -> None:
    """A program was compiled, or loaded from disk; `fit` is how it fits into its budget."""
    entry = getattr(closed.debug_info, "entry", None)
    with _lock:
        for costs in _costs_of(closed, name):
            costs.programs += 1
            costs.compile += seconds
            costs.from_disk += from_disk is True
        if configuration.report.value and entry is None:
            line = own_line(Traceback.get_traceback())
            _operation_lines[line] += seconds
            _operation_shapes[_operation(name), line].add(tuple([
                getattr(a, "shape", ()) for a in (*closed.in_avals, *closed.out_avals)]))
            _drop_oldest(_operation_lines)
            _drop_oldest(_operation_shapes)
        if entry is not None and len(entry.compiled) < ENTRIES:
            device = placement.devices[0]
            entry.compiled += (Program(
                f"{device.platform}:{device.id}", _shardings(placement),
                not _is_own(entry, closed), in_short(options), from_disk, seconds,
                "" if fit is None else str(fit)),)
    if _logs():
        _log(f"Finished XLA compilation of jit({name}) in {seconds:.9f} sec")


def _shardings(placement: Placement) -> str:
    if placement.mesh is None:
        return "of one device"
    specs = [str(getattr(s, "spec", s)) for s in placement.in_shardings]
    axes = [f"{name}={n}" for name, n in placement.mesh.shape.items()]
    return f"({', '.join(specs)}) over {', '.join(axes)}"


def note_run(closed: ClosedJaxpr, name: str, seconds: float) -> None:
    """A program ran for the first time with a signature."""
    with _lock:
        for costs in _costs_of(closed, name):
            costs.run += seconds


def note_replaced(closed: ClosedJaxpr, by: ClosedJaxpr) -> None:
    """The program `by` is compiled in the place of `closed`."""
    entry = getattr(closed.debug_info, "entry", None)
    with _lock:
        if entry is not None and _is_own(entry, closed) and not _is_own(entry, by):
            entry.replacements += (weakref.ref(by),)


def _is_own(entry: Entry, closed: ClosedJaxpr) -> bool:
    """Whether `closed` is what was traced, rather than a derivative or a batch of that."""
    traced = entry.program()
    if traced is not None and (traced is closed or consts_as_inputs(traced) is closed):
        return True
    return any([program() is closed for program in entry.replacements])


def note_lowering(closed: ClosedJaxpr, name: str) -> None:
    """A jaxpr is about to be lowered."""
    if _logs():
        unspecified = "UnspecifiedValue, " * len(closed.in_avals)
        avals = ", ".join(map(repr, closed.in_avals)) + "," * (len(closed.in_avals) == 1)
        mapping = unspecified[:-1] if len(closed.in_avals) == 1 else unspecified[:-2]
        _log(f"Compiling jit({name}) with global shapes and types ({avals}). "
             f"Argument mapping: ({mapping}).")


def _costs_of(closed: ClosedJaxpr, name: str) -> tuple[Costs, ...]:
    """Where the costs of a program are added up, under the lock."""
    info = closed.debug_info
    if isinstance(info, TracedInfo) and info.entry is not None and info.history is not None:
        return info.entry.costs, info.history.costs
    return (_costs_of_operation(_operation(name)),)


def _operation(name: str) -> Operation:
    return name.strip("_"), called_by_user(Traceback.get_traceback())


def _costs_of_operation(operation: Operation) -> Costs:
    costs = _operations.get(operation)
    if costs is None:
        costs = _operations[operation] = Costs()
        _drop_oldest(_operations)
    return costs


def _drop_oldest(records: dict[Any, Any]) -> None:
    if len(records) > OPERATIONS:
        del records[next(iter(records))]


def _noted_history(spec: JitSpec, source: Source) -> History:
    """The history of a function that was traced just now, which is that of all others made at the
    same place. Under the lock."""
    history = spec.traces.history
    if history is None:
        key, code = _key(spec, source), source.code
        history = _histories.get(key) or History(
            key, spec.name, "" if code is None else place_of(code))
    spec.traces.history = history = _histories.setdefault(history.key, history)  # it may have gone
    _histories.move_to_end(history.key)
    if len(_histories) > FUNCTIONS:
        _histories.popitem(last=False)
    return history


def _key(spec: JitSpec, source: Source) -> Any:
    """What functions share that are made at the same place, and traced for the same."""
    code, outer = source.code, getattr(spec.fun, "__code__", None)
    place = None if code is None else (code.co_filename, code.co_firstlineno)
    around = None if outer is code or outer is None else (outer.co_filename, outer.co_firstlineno)
    return spec.name, place, source.made, around, spec.options.traced_for


def _statics(parameters: Parameters | None, static: Any) -> tuple[Static, ...]:
    names = () if parameters is None else parameters.positional
    statics = []
    for where, value, _ in (*static[0], *static[1]):
        name = where if isinstance(where, str) else (
            names[where] if where < len(names) else f"argument {where}")
        way = "by keyword" if isinstance(where, str) else "by position"
        statics.append(_static(name, value, way))
    return tuple(statics)


_NUMBERS = (bool, int, float, complex)


def _static(name: str, value: Any, way: str) -> Static:
    try:
        hashed = hash(value)
    except Exception:  # a default of the user's, which nobody has asked for one
        hashed = 0
    kind: Any = type(value)
    role = "number" if kind in _NUMBERS or issubclass(kind, (np.number, np.bool_)) else "function" \
        if kind is FunctionType else "object" if kind.__eq__ is object.__eq__ else ""
    return Static(name, kind.__qualname__, in_short(value), hashed, way, f"static {role}".rstrip())


_CONTAINERS = (tuple, list, dict, type(None))


def _is_plain(tree: TreeDef) -> bool:
    """Whether the structure of arguments holds nothing but Python's own containers and strings."""
    found = [] if tree.num_nodes - tree.num_leaves == 3 else tree.children()
    for part in found:  # which grows: trees may be deeper than Python's calls
        kind, data = part.node_data() or (None, ())
        if kind not in (*_CONTAINERS, None) or (
                kind is dict and not all([type(k) is str for k in data])):
            return False
        found += part.children()
    return True


# -- structures ------------------------------------------------------------------------------------


def layout_of(source: Source, tree: TreeDef, static: tuple[Static, ...]) -> Layout:
    """The structure of arguments as texts."""
    parameters = source.parameters() or Parameters((), (), "args", None)
    given = {name for name, *_ in static}
    free = [p for p in parameters.positional if p not in given]
    args, kwargs = tree.children()
    keywords: tuple[str, ...] = tuple(kwargs.node_data()[1])
    found: tuple[list[Path], list[tuple[Path, str]], list[tuple[Path, int]]] = [], [], []
    for i, child in enumerate(args.children()):
        name = free[i] if i < len(free) else f"{parameters.variadic}[{i - len(free)}]"
        _walk(child, (name,), *found)
    for key, child in zip(keywords, kwargs.children(), strict=True):
        known = parameters.keywords is None or key in parameters.every
        _walk(child, (key if known else f"{parameters.keywords}[{key!r}]",), *found)
    leaves, nodes, metadata = found
    return Layout(tuple(leaves), tuple(nodes), tuple(metadata), keywords)


def _walk(tree: TreeDef, path: Path, leaves: list[Path], nodes: list[tuple[Path, str]],
          metadata: list[tuple[Path, int]]) -> None:
    waiting = [(tree, path)]  # trees may be deeper than Python's calls
    while waiting:
        tree, path = waiting.pop()
        node = tree.node_data()
        if node is None:
            leaves.append(path)
            continue
        kind, data = node
        children = tree.children()
        steps: list[str]
        if kind is dict:
            nodes.append((path, f"dict with {len(data)} keys"))
            steps = [f"[{in_short(k)}]" for k in data]
        elif kind in (tuple, list):
            nodes.append((path, f"{kind.__name__} of {len(children)}"))
            steps = [f"[{i}]" for i in range(len(children))]
        elif kind is type(None):
            nodes.append((path, "None"))
            continue
        else:
            held = "" if data is None else f" ({in_short(data)})"
            nodes.append((path, f"{kind.__qualname__}{held}"))
            metadata.append((path, _hash(data)))
            steps = child_keys(tree)
        parts = zip(children, [(*path, step) for step in steps], strict=True)
        waiting += reversed([*parts])


def _hash(x: Any) -> int:
    try:
        return hash(x)
    except TypeError:  # of what a class of the user's holds besides its arrays
        return 0


# -- what callables are made of --------------------------------------------------------------------


class Source(Record):
    """What a callable is made of, as far as a record may hold it.

    Attributes:
      made: what kind of callable it is: `function`, `partial`, `method`, `wrapper` or `object`.
      code: of the innermost function of the user's; None for what is not written in Python.
      skipped: how many of its first parameters are already given.
      captured: names and short texts of what it has with it: the values of its closure and its
        defaults, the arguments of a partial, the object of a method.
      defaults: its arguments with a default value, as they are when they are left out.
    """

    made: str
    code: CodeType | None
    skipped: int
    captured: tuple[tuple[str, str], ...]
    defaults: tuple[Static, ...] = ()

    def parameters(self) -> Parameters | None:
        """The names of its parameters."""
        if self.code is None:
            return None
        p = parameters_of_code(self.code)
        n = self.skipped
        return Parameters(p.positional[n:], p.every[n:], p.variadic, p.keywords) if n else p


def source_of(fun: Callable[..., Any]) -> Source:
    """What `fun` is made of."""
    found, skipped = layers(fun), 0
    captured: list[tuple[str, str]] = []
    for x in found:
        if isinstance(x, partial):
            captured += [(f"argument {i}", in_short(given)) for i, given in enumerate(x.args)]
            captured += [(k, in_short(given)) for k, given in x.keywords.items()]
            skipped += len(x.args)
        elif type(x) is MethodType:
            captured.append(("self", in_short(x.__self__)))
            skipped += 1
    inner, outer = found[-1], found[0]
    made = "function" if inner is outer else "partial" if isinstance(outer, partial) else (
        "method" if type(outer) is MethodType else "wrapper")
    if type(inner) is not FunctionType:
        call = type(inner).__call__
        captured.append(("self", in_short(inner)))
        return Source("object" if inner is outer else made, call.__code__ if type(
            call) is FunctionType else None, skipped + 1, tuple(captured))
    known = {name for name, _ in captured}
    defaults = {k: x for k, x in _defaults_of(inner).items() if k not in known}
    captured += [pair for pair in _closed_over(inner) if pair[0] not in known]
    captured += [(k, in_short(x)) for k, x in defaults.items()]
    return Source(made, inner.__code__, skipped, tuple(captured), tuple([
        _static(k, x, "by default") for k, x in defaults.items()]))


def _closed_over(fun: FunctionType) -> list[tuple[str, str]]:
    captured = []
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        with suppress(ValueError):  # it is not set yet
            captured.append((name, in_short(cell.cell_contents)))
    return captured


def _defaults_of(fun: FunctionType) -> dict[str, Any]:
    values = fun.__defaults__ or ()
    names = fun.__code__.co_varnames[:fun.__code__.co_argcount]
    return dict(zip(names[len(names) - len(values):], values, strict=True)) | (
        fun.__kwdefaults__ or {})


# -- reading ---------------------------------------------------------------------------------------


def clear() -> None:
    """Forget everything."""
    with _lock:
        _histories.clear()
        _operations.clear()
        _operation_lines.clear()
        _operation_shapes.clear()


def history_of(spec: JitSpec) -> History | None:
    """The history of a jitted function, also of one that was not called yet; None if none was that
    is made at the same place."""
    source = source_of(spec.fun)
    with _lock:
        return spec.traces.history or _histories.get(_key(spec, source))


def histories() -> list[History]:
    """All functions, the one that was traced last at the end."""
    with _lock:
        return list(_histories.values())


def operations() -> dict[Operation, Costs]:
    """What the library's own functions and operations have cost."""
    with _lock:
        return dict(_operations)


def operation_lines() -> list[str]:
    """The user's lines that compiled such, the dearest first, where `jax_pyjx_report` is on."""
    with _lock:
        return sorted(_operation_lines, key=_operation_lines.__getitem__, reverse=True)


def operation_sizes() -> list[tuple[int, str, Operation]]:
    """For how many shapes each line of the user's compiled an operation, where the flag is on."""
    with _lock:
        return [(len(shapes), line, operation)
                for (operation, line), shapes in _operation_shapes.items()]


# -- logs ------------------------------------------------------------------------------------------


def _logs() -> bool:
    """Whether anybody could see a message."""
    return configuration.log_compiles.value or logs.debugs(__name__)


def _log(message: str) -> None:
    logs.log(__name__, logs.WARNING if configuration.log_compiles.value else logs.DEBUG, message)
