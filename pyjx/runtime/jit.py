"""`jit`: a Python function traced once for each signature, compiled, and called through C++."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NoReturn,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from pyjx import configuration, jaxlib_api
from pyjx.core import bounded
from pyjx.core.avals import AbstractRef, get_aval, is_valid_value
from pyjx.core.effects import has_types, is_replaced
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.layouts import DeviceLike
from pyjx.core.named_axes import named_axes
from pyjx.core.options import MEMORY_BUDGET, Inline
from pyjx.core.records import Record
from pyjx.core.references import Ref, check_distinct, check_not_returned
from pyjx.core.scalars import is_minus_zero
from pyjx.core.source_info import nowhere
from pyjx.core.trace import DynamicJaxprTrace, Tracer, eager_trace, state, trace_to_jaxpr
from pyjx.engine.calls import jit_p
from pyjx.engine.functions import FlatFun, leaf_paths, name_of, raise_bad_result, source_of
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.engine.types import TreeDef
from pyjx.guards import guard
from pyjx.interning import missing
from pyjx.lazy import deferred
from pyjx.monitoring import record_event, timed
from pyjx.runtime import dispatch, ledger, programs, requests, signature
from pyjx.runtime.array import for_programs
from pyjx.runtime.placement import NO_REQUEST, Request
from pyjx.runtime.sharding import single_device_sharding

if TYPE_CHECKING:
    from pyjx.runtime.explain import Explanation, PaddedCalls
    from pyjx.runtime.stages import Lowered, Traced

reports = deferred("pyjx.runtime.explain")  # few programs ask for one
many_sizes = deferred("pyjx.dynamic")  # nor for this
budgets = deferred("pyjx.runtime.budgets")  # few programs have a budget

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)


class CompiledFunction(Protocol, Generic[P, R]):
    """A function of the library's own that is compiled, with its Python body."""

    @property
    def __wrapped__(self) -> Callable[P, R]: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


class Wrapped(CompiledFunction[P, R], Protocol):
    """A jitted function."""

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Wrapped[P, R]: ...

    @overload  # of a function whose parameters are not known
    def __get__(self: Wrapped[[], R], instance: Any, owner: Any = None) -> Callable[..., R]: ...

    @overload  # as a method
    def __get__(self: Wrapped[Concatenate[Any, Q], R], instance: Any, owner: Any = None
                ) -> Callable[Q, R]: ...

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Traced:
        """The function traced for arguments like these."""

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered:
        """The StableHLO program for arguments like these."""

    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Shapes and dtypes of the results for arguments like these."""

    def explain(self) -> Explanation:
        """What the function was traced for, why again, and what that cost."""

    def clear_cache(self) -> None:
        """Forget the traces and programs of this function."""


class JitOptions(TypedDict, total=False):
    """The options of `jit`."""

    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Iterable[str] | None
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool | Inline
    compiler_options: dict[str, Any] | None
    dynamic: dict[str, Any] | None
    dynamic_policy: Any
    memory_budget: str | float | None


_traces: Any = weakref.WeakKeyDictionary()  # function -> {options: {signature: TracedCall}}
_holders: Any = weakref.WeakKeyDictionary()  # functions that hold such a dict themselves
_numbering = threading.RLock()  # while a function gets its number; a finalizer may jit one


class TracedCall:
    """A function traced for one signature."""

    __slots__ = ("_copies", "_surroundings", "_tracers", "asks_shardings", "closed", "donated",
                 "in_tree", "name", "out_tree", "request", "static", "takes_refs")

    def __init__(self, closed: ClosedJaxpr, in_tree: TreeDef, out_tree: TreeDef, name: str,
                 donated: tuple[bool, ...], static: Any, request: Request) -> None:
        self.closed = closed
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.name = name
        self.donated = donated
        self.static = static
        self.request = request
        self.asks_shardings = request is not NO_REQUEST and not request.is_trivial
        self.takes_refs = any([type(a) is AbstractRef for a in closed.in_avals])
        # The tracers it closes over, and where it was traced: elsewhere these may be others.
        self._tracers = [c for c in closed.consts if isinstance(c, Tracer) and type(c) is not Ref]
        self._surroundings = (state.dynamic, state.level) if self._tracers else None
        self._copies: list[Any] | None = None

    @property
    def consts(self) -> list[Any]:
        """What it captured. Values are computed from copies, which stay when that is donated."""
        if state.dynamic is not eager_trace:
            return self.closed.consts
        if self._copies is None:
            self._copies = list(map(for_programs, self.closed.consts))
        return self._copies

    def but(self, request: Request | None = None, in_tree: TreeDef | None = None) -> TracedCall:
        """The same, of which something else is asked, or whose leaves come in other arguments."""
        return TracedCall(self.closed, self.in_tree if in_tree is None else in_tree, self.out_tree,
                          self.name, self.donated, self.static,
                          self.request if request is None else request)

    def check_is_whole(self, name: str) -> None:
        """Raise TypeError if it closes over tracers, in the words of the function `name`."""
        if self._tracers:
            raise TypeError(f"{name}: {self.name} closes over values of an outer transformation, "
                            "which are not known yet. Pass them as arguments.")

    def is_current(self) -> bool:
        """Whether what was traced then is what would be traced now."""
        if self._surroundings is None:
            return True
        here = state.dynamic, state.level
        return self._surroundings == here and all(t._trace.alive for t in self._tracers)


class Options(Record):
    """What a function is jitted with. Wrappers of one function that have the same options share
    what it was traced to and compiled programs, so these are a key."""

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    keep_unused: bool = False
    inline: Inline = Inline.AUTO
    compiler_options: tuple[tuple[str, Any], ...] = ()
    device: Any = None
    in_shardings: requests.Asked | None = None
    out_shardings: requests.Asked | None = None
    traced_for: str = "jit"  # for messages
    on_entered_mesh: bool = False  # whether it runs on the mesh of the `with` statement around
    dynamic: tuple[tuple[str, str], ...] | None = None  # as names of parameters and texts


_PLAIN = Options()

CALL_MISS = "/pyjx/jit/call_miss"  # the event of a call whose signature C++ does not know


class JitSpec:
    """A function with the options it is jitted with.

    One that `is_operation` is a function of the library's own, called by itself: its programs go
    when there are many, and it shares traces with none.
    """

    __slots__ = ("fun", "is_operation", "key", "name", "options", "padded", "traces")

    def __init__(self, fun: Callable[..., Any], options: Options = _PLAIN,
                 is_operation: bool = False) -> None:
        self.fun = fun
        self.name = name_of(fun)
        self.options = self.key = options  # wrappers with equal keys share what C++ knows
        self.is_operation = is_operation
        self.padded: PaddedCalls | None = None
        self.traces = ledger.Traces(programs.TRACES) if is_operation else _traces_of(fun, options)

    def __reduce__(self) -> tuple[Any, ...]:
        return JitSpec, (self.fun, self.options, self.is_operation)  # it is traced anew elsewhere

    def __deepcopy__(self, memo: dict[int, Any]) -> JitSpec:
        return self  # a copy of a jitted function shares traces, as functions share their code

    def without_static(self, args: tuple[Any, ...], kwargs: dict[str, Any]
              ) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        """Dynamic positional arguments, dynamic keyword arguments, and the static ones.

        Static arguments have their type beside them, as 1, 1.0 and True are equal.
        """
        options = self.options
        if not options.static_argnums and not options.static_argnames:
            return args, kwargs, ()
        n = len(args)
        positions = signature.static_positions(options.static_argnums, n)
        names = options.static_argnames
        static = (
            tuple([(i, args[i], type(args[i])) for i in sorted(positions) if 0 <= i < n]),
            tuple([(k, kwargs[k], type(kwargs[k])) for k in sorted(kwargs) if k in names]),
        )
        dynamic = tuple([x for i, x in enumerate(args) if i not in positions])
        return dynamic, {k: v for k, v in kwargs.items() if k not in names}, static

    def trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[TracedCall, list[Any]]:
        """The function traced for these arguments, and their leaves."""
        dynamic, dynamic_kw, static = self.without_static(args, kwargs)
        leaves, in_tree = dispatch.registry.flatten((dynamic, dynamic_kw))
        try:
            avals = tuple([get_aval(x) for x in leaves])
        except (TypeError, ValueError):
            valued = _of_structs(leaves)
            if valued is None:
                self.raise_bad_argument(in_tree, leaves, static)
            leaves, avals = valued, tuple([get_aval(x) for x in valued])
        key = (in_tree, avals, static, self.is_operation and _has_minus_zero(static),
               configuration.trace_context(), named_axes() if state.axis_frames else ())
        try:
            traced = self.traces.get(key)
        except TypeError:
            return self.trace_unhashable(in_tree, avals, static), leaves
        if traced is None or not traced.is_current():
            with programs.one_thread((id(self.traces), key)):
                traced = self.traces.get(key)  # another thread may have been faster
                if traced is None or not traced.is_current():
                    traced = self.traces[key] = self.trace_anew(in_tree, avals, static)
        if traced.takes_refs:
            check_distinct(leaves, traced.closed.consts, lambda: traced.closed.debug_info)
        return traced, leaves

    def stand_in(self, outs: list[Any]) -> bool:
        """Put values in the place of results that only describe some; whether all are values."""
        return False

    def raise_bad_argument(self, in_tree: TreeDef, leaves: Sequence[Any], static: Any) -> NoReturn:
        """Say which leaf cannot be traced."""
        signature.raise_bad_argument(self.fun, in_tree, leaves, static)

    def trace_unhashable(self, in_tree: TreeDef, avals: tuple[Any, ...], static: Any) -> TracedCall:
        """What is done where a static argument cannot be part of a key."""
        signature.raise_unhashable(self.name, static)

    def trace_anew(self, in_tree: TreeDef, avals: tuple[Any, ...], static: Any) -> TracedCall:
        if self.options.on_entered_mesh:
            with requests.on_entered_mesh() as mesh:
                return self._trace_on(mesh, in_tree, avals, static)
        return self._trace_on(None, in_tree, avals, static)

    def _trace_on(self, mesh: Any, in_tree: TreeDef, avals: tuple[Any, ...], static: Any
                  ) -> TracedCall:
        options = self.options
        if configuration.no_tracing.value:
            raise RuntimeError(f"re-tracing function {self.name} for `{options.traced_for}`, but "
                               "'no_tracing' is set")
        flat = _JittedFun(self, in_tree, static)
        debug = _debug_info(options.traced_for, self.fun, in_tree, static)
        # An operation's program stands for those of all lines that ask for it.
        with (nowhere() if self.is_operation else nullcontext(),
              timed("/jax/core/compile/jaxpr_trace_duration", self.name) as time):
            closed = trace_to_jaxpr(flat, avals, debug)
        if self.is_operation:
            ledger.note_operation_traced(self.name, time.seconds)
        else:
            missed = ledger.note_traced(self, debug, closed, in_tree, avals, static, time.seconds)
            if missed is not None:
                reports.report_miss(*missed)
        out_tree = flat.out_tree
        if any([type(a) is AbstractRef for a in closed.out_avals]):
            check_not_returned(closed, options.traced_for, lambda i: path_in(out_tree, i))
        debug.result_paths = lambda: tuple([f"result{path}" for path in leaf_paths(out_tree)])
        donated = self.donated_leaves(in_tree, static)
        request = NO_REQUEST if options.device is mesh is None else Request(
            options.device, mesh=mesh)
        if options.in_shardings is not None or options.out_shardings is not None:
            request = requests.request_for(options.device, options.in_shardings,
                                           options.out_shardings, flat, mesh)
            if has_types(closed.effects):
                signature.check_placed_alone(closed, request.in_shardings, request.out_shardings)
        return TracedCall(closed, in_tree, out_tree, self.name, donated, static, request)

    def donated_leaves(self, in_tree: TreeDef, static: Any) -> tuple[bool, ...]:
        """Which leaves are donated."""
        options = self.options
        if not options.donate_argnums and not options.donate_argnames:
            return (False,) * in_tree.num_leaves
        args_tree, kwargs_tree = in_tree.children()
        children = args_tree.children()
        absent = {i for i, _, _ in static[0]} if static else set()
        total = len(children) + len(absent)  # positions count the static arguments too
        donate = signature.static_positions(options.donate_argnums, total)
        dynamic = [i for i in range(total) if i not in absent]
        flags: list[bool] = []
        for i, child in zip(dynamic, children, strict=True):
            flags += [i in donate] * child.num_leaves
        names = kwargs_tree.node_data()[1] if kwargs_tree.node_data() else []
        for name, child in zip(names, kwargs_tree.children(), strict=True):
            flags += [name in options.donate_argnames] * child.num_leaves
        return tuple(flags)

    def bind(self, traced: TracedCall, leaves: Sequence[Any]) -> Any:
        """The call as an operation of the interpreters that are active."""
        if self.options.inline is not Inline.JAX_EARLY or traced.asks_shardings:
            return self.bind_call(traced, leaves)
        return traced.out_tree.unflatten(eval_jaxpr(traced.closed.jaxpr, traced.consts, *leaves))

    def bind_call(self, traced: TracedCall, leaves: Sequence[Any]) -> Any:
        """As `bind`, in one operation also where the function is to stand in line."""
        closed, options = traced.closed, self.options
        kvs = options.compiler_options
        if kvs and state.dynamic is not eager_trace and MEMORY_BUDGET in dict(kvs):
            closed, kvs = budgets.planned(closed, self.name, kvs)
        consts = traced.consts
        if traced.asks_shardings:
            leaves = requests.constrain(leaves, traced.request.in_shardings)
        outs = jit_p.bind(*consts, *leaves, jaxpr=consts_as_inputs(closed) if consts else closed,
                          name=self.name, donated_invars=(False,) * len(consts) + traced.donated,
                          keep_unused=options.keep_unused,
                          inline=False if options.inline is Inline.AUTO else options.inline,
                          compiler_options_kvs=kvs)
        if traced.asks_shardings:
            outs = requests.constrain(outs, traced.request.out_shardings)
        return traced.out_tree.unflatten(outs)

    @guard
    def miss(self, *args: Any, **kwargs: Any) -> dispatch.Miss:
        """A call whose signature C++ does not know."""
        record_event(CALL_MISS, fun_name=self.name)
        if configuration.dynamic_shapes.value == "auto" and not self.is_operation:
            found = many_sizes.automatic_call(self, args, kwargs)
            if found is not None:
                return found  # type: ignore[no-any-return]
        traced, leaves = self.trace(args, kwargs)
        closed = traced.closed
        if closed.effects and is_replaced(closed.effects) and not (
                dispatch.is_called_otherwise(closed)):
            closed = dispatch.pure(closed).jaxpr
        if state.dynamic is not eager_trace or closed.effects or any(
                [isinstance(x, Tracer) for x in (*leaves, *closed.consts)]):
            return self.bind(traced, leaves), None, False
        return self._compile_and_run(traced, closed, leaves)

    def _compile_and_run(self, traced: TracedCall, closed: ClosedJaxpr, leaves: Sequence[Any]
                         ) -> dispatch.Miss:
        try:
            out, fast, is_wrong = dispatch.compile_and_run(
                closed, self.name, leaves, traced.out_tree, request=traced.request,
                label=self.name if self.is_operation else f"jit({self.name})",
                donated=traced.donated, keep_unused=self.options.keep_unused,
                compiler_options=self.options.compiler_options,
                is_operation=self.is_operation,
            )
            if self.is_operation and _has_minus_zero(traced.static):
                fast = None  # C++, which tells static arguments apart by ==, would take 0.0 for it
            return out, fast, is_wrong
        except OverflowError as error:
            signature.raise_overflow(self.fun, traced.in_tree, leaves, traced.static, error)


def _has_minus_zero(static: Iterable[Sequence[tuple[object, object, type]]]) -> bool:
    return any([is_minus_zero(x) for group in static for _, x, _ in group])


def _of_structs(leaves: Sequence[Any]) -> list[Any] | None:
    """The leaves where structs are constants without values of the program being recorded; None
    where there is none, or other leaves are no arrays either."""
    trace = state.dynamic
    if not isinstance(trace, DynamicJaxprTrace):
        return None
    valued = [x.value_in(trace) if hasattr(type(x), "value_in") else x for x in leaves]
    return valued if all(map(is_valid_value, valued)) else None


class _JittedFun(FlatFun):
    """The function on the leaves of its dynamic arguments, for given static ones.

    It calls the function itself: functions that call each other may use up Python's stack, of which
    a level takes as many frames as there are between one call of a user's function and the next.
    """

    __slots__ = ("_spec", "_static")

    def __init__(self, spec: JitSpec, in_tree: TreeDef, static: Any) -> None:
        super().__init__(spec.fun, in_tree)
        self._spec = spec
        self._static = static

    def __call__(self, *leaves: Any) -> list[Any]:
        args, kwargs = self.in_tree.unflatten(leaves)
        if self._static:
            args = signature.with_static(args, self._static[0])
            kwargs = {**kwargs, **{k: v for k, v, _ in self._static[1]}}
        outs, self.out_tree = dispatch.registry.flatten(self.fun(*args, **kwargs))
        self.check(outs)
        return outs  # type: ignore[no-any-return]

    def check(self, outs: list[Any]) -> None:
        if not all(map(is_valid_value, outs)) and not self._spec.stand_in(outs):
            raise_bad_result(f"function {source_of(self._spec.fun)} traced for "
                             f"{self._spec.options.traced_for}", self.out_tree, outs)


def _traces_of(fun: Callable[..., Any], key: Any) -> ledger.Traces:
    own = None if type(fun) is FunctionType else getattr(fun, "jit_traces", None)
    if type(own) is dict:  # its traces hold it, so it must be what holds them
        _holders[fun] = True
    else:
        try:
            own = _traces.setdefault(fun, {})
        except TypeError:  # not hashable, or no weak references
            own = {}
    known = own.get(key)
    if known is None:  # the function has one number, whatever its options
        with _numbering:
            numbers = [t.function for t in own.values() if type(t) is ledger.Traces]
            number = numbers[0] if numbers else ledger.new_function()
            known = own.setdefault(key, ledger.Traces(programs.TRACES, number, key))
    return known  # type: ignore[no-any-return]


def _debug_info(traced_for: str, fun: Callable[..., Any], in_tree: TreeDef, static: Any
               ) -> ledger.TracedInfo:
    names = signature.names_when_asked(fun, in_tree, static)
    info = ledger.TracedInfo(traced_for, source_of(fun), names)
    info.entry = info.history = None
    return info


def path_in(tree: TreeDef, i: int) -> str:
    """Where leaf `i` of a result of this structure is; empty if it is the result."""
    path = leaf_paths(tree)[i]
    return f"result{path}" if path else ""


# -- the decorators --------------------------------------------------------------------------------


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[JitOptions]) -> Wrapped[P, R]: ...


@overload
def jit(**options: Unpack[JitOptions]) -> Callable[[Callable[P, R]], Wrapped[P, R]]: ...


def jit(  # type: ignore[misc]
    fun: Callable[..., Any] = missing, /, *, in_shardings: Any = None, out_shardings: Any = None,
    static_argnums: Any = None, static_argnames: Any = None, donate_argnums: Any = None,
    donate_argnames: Any = None, keep_unused: bool = False, device: DeviceLike = None,
    backend: str | None = None, inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None, dynamic: Any = None,
    dynamic_policy: Any = "pow2", memory_budget: str | float | None = None,
) -> Any:
    """Compile a function with XLA.

    The function is traced once for each signature: tree structure, shapes and dtypes of its
    arguments and values of its static ones. Then its compiled program runs.

    Args:
      fun: takes and returns pytrees of arrays. Without it, a decorator is returned.
      static_argnums, static_argnames: arguments that are compile-time constants; hashable.
      donate_argnums, donate_argnames: arguments whose memory results may take over; they must
        not be used after the call.
      keep_unused: pass arguments to XLA that the function does not use, and run where all are.
      in_shardings, out_shardings: how arguments and results lie on devices: pytree prefixes of
        them of shardings or, for the mesh that is set, PartitionSpecs. None leaves arguments
        where they are, and results to XLA.
      device, backend: where to run.
      inline: whether, in another jitted function, its operations stand there rather than a call of
        it; see `Inline`.
      compiler_options: XLA flags by name.
      dynamic: by parameter's name a name for each of its dimensions that varies and None for the
        others, such as `{"x": ("batch", None)}`, or a tree of such tuples; equal names have equal
        sizes, and expressions are as in `export.symbolic_shape`. Arguments are padded, and one
        program runs for all sizes in a bucket. An extension of pyjx.
      dynamic_policy: the buckets: "pow2", a number whose multiples they are, a list of sizes, a
        function from size to bucket, or a dict of these by the dimension's name.
      memory_budget: what the program may need of the memory of each device that it runs on:
        "12GiB" or "75%", a number of bytes, or a float below 1 for a part of it. Values that a
        backward pass reads are computed again for that, those that cost least. By default the flag
        `jax_memory_budget` says it.

    Raises:
      JaxRuntimeError: at the first call, if no program is found that needs as little.
      TypeError: `fun` is not callable, or what stands for a sharding is none.
      NotImplementedError: of an operation it is not known that padding cannot be seen.
      ValueError: the function has no such arguments, or shardings are no prefix of them.

    >>> import pyjx as jax
    >>> jax.jit(lambda x: x * 2 + 1)(3.0)
    Array(7., dtype=float32, weak_type=True)

    >>> mean = jax.jit(lambda x: x.mean(), dynamic={"x": ("n",)})
    >>> [float(mean(jax.numpy.arange(float(n)))) for n in (3, 4, 5)]  # by one program
    [1.0, 1.5, 2.0]
    """
    if fun is missing:
        return partial(jit, in_shardings=in_shardings, out_shardings=out_shardings,
                       static_argnums=static_argnums, static_argnames=static_argnames,
                       donate_argnums=donate_argnums, donate_argnames=donate_argnames,
                       keep_unused=keep_unused, device=device, backend=backend, inline=inline,
                       compiler_options=compiler_options, dynamic=dynamic,
                       dynamic_policy=dynamic_policy, memory_budget=memory_budget)
    signature.check_jittable(fun)
    signature.check_names(fun, static_argnames, "static")
    signature.check_names(fun, donate_argnames, "donate")
    static = signature.argument_sets(fun, static_argnums, static_argnames)
    donated = signature.argument_sets(fun, donate_argnums, donate_argnames, "donate")
    signature.check_disjoint(static, donated)
    device = requests.checked_device(device, backend)
    ins = outs = None
    if in_shardings is not None or out_shardings is not None:
        if device is not None:
            raise ValueError("If backend or device is specified on jit, then in_shardings and "
                             "out_shardings cannot be: they say where it runs.")
        ins = requests.asked(in_shardings, "in_shardings")
        outs = requests.asked(out_shardings, "out_shardings")
    if isinstance(inline, bool):
        inline = Inline.JAX_LATE if inline else Inline.AUTO
    elif not isinstance(inline, Inline):
        raise ValueError(f"Invalid inline option: {inline!r}. jit takes bool and jax.Inline.")
    if memory_budget is not None:
        compiler_options = {**(compiler_options or {}),
                            MEMORY_BUDGET: configuration.checked_budget(memory_budget)}
    flags = tuple(sorted((compiler_options or {}).items()))
    # all by position: functions are jitted while others are traced
    options = Options(*static, *donated, keep_unused, inline, flags, device, ins, outs, "jit")
    if dynamic is None and not (isinstance(dynamic_policy, str) and dynamic_policy == "pow2"):
        raise ValueError(f"jit: dynamic_policy={dynamic_policy!r} is of no use without `dynamic`, "
                         "which names the dimensions that vary.")
    spec = JitSpec(fun, options) if dynamic is None else many_sizes.dynamic_spec(
        fun, options, dynamic, dynamic_policy)
    return pjit_callable(spec, spec.miss, fun)


def pjit_callable(spec: JitSpec, miss: Callable[..., Any], fun: Callable[..., Any]) -> Any:
    """The C++ callable of a function, with the function's name, documentation and attributes."""
    options = spec.options
    fn = dispatch.compiled_callable(spec.name, miss, spec.key, fun, options.static_argnums,
                                    options.static_argnames)
    signature.take_names(fn, fun, spec.name)
    for attribute, value in signature.own_attributes(fun).items():
        if not hasattr(type(fn), attribute):
            setattr(fn, attribute, value)
    fn.__wrapped__ = fun
    fn._jit_spec = spec
    return fn


def spec_of(fn: Any) -> JitSpec:
    """The function and the options that the C++ callable `fn` was made of."""
    spec = getattr(fn, "_jit_spec", None)
    if spec is None:  # C++ copies a jitted function without its attributes
        spec = fn._jit_spec = fn.__getstate__()["cache_miss"].__self__
    return spec  # type: ignore[no-any-return]


def clear_caches() -> None:
    """Forget what functions were traced to, and compiled programs that nothing else holds.

    Traced and compiled stages that the program has kept go on working.

    >>> import pyjx as jax
    >>> jax.clear_caches()
    """
    # Lists of references are made at once, whatever functions other threads trace meanwhile.
    known = [_traces.get(fun) for reference in _traces.keyrefs()
             if (fun := reference()) is not None]
    held = [getattr(reference(), "jit_traces", None) for reference in _holders.keyrefs()]
    for options in filter(None, [*known, *held]):
        for traces in list(options.values()):
            traces.clear()
    bounded.clear_all()
    programs.clear()
    jaxlib_api.collect_garbage()
    # The memory of what went goes back to the system; what stayed lies scattered among it.
    with suppress(AttributeError, OSError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


_process = os.getpid()


@atexit.register
def _let_clients_go() -> None:
    """Let nothing of this package hold clients as Python ends. One that goes waits for the programs
    that still run, whose threads must not outlive what they use; a fork has none of these."""
    if os.getpid() == _process:
        clear_caches()
        single_device_sharding.cache_clear()
