"""Interpreters: which one an operation goes to, and the one that records jaxprs.

Each active transformation is a `Trace` with a level. A `Tracer` is a value seen by a trace. An
operation goes to the trace of the highest level among its operands; where all operands are plain
values it goes to the thread's dynamic trace: the eager one, or the innermost recording one.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from pyjx import configuration, errors
from pyjx.core import dtypes, source_info
from pyjx.core.avals import (
    AbstractRef,
    ShapedArray,
    SymbolicDim,
    aval_makers,
    get_aval,
    is_ref_type,
)
from pyjx.core.bounded import BoundedDict
from pyjx.core.check import check_jaxpr
from pyjx.core.contents import are_plain, copied, kept_with, params_key, places
from pyjx.core.effects import Effects, has_own_types, join_effects, no_effects, reads
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn, Literal, Var, no_debug_info
from pyjx.core.name_stack import reset_name_stack
from pyjx.core.origins import is_of_arrays, leaked_origin, origin, referrers
from pyjx.core.records import Field, of_field
from pyjx.core.scalars import Constant, check_int_fits, literal_types
from pyjx.core.source_info import thread_state as source_state

if TYPE_CHECKING:
    # A tracer is an array; what it has in common with arrays, other rooms give it.
    from pyjx.core.array_type import Array as _Array
    from pyjx.core.named_axes import AxisFrame
    from pyjx.core.primitive import Primitive
else:
    _Array = object


class Trace:
    """An interpreter. Subclasses say what an operation means."""

    __slots__ = ("__weakref__", "alive", "level", "parent", "thread")

    maps: ClassVar[bool] = False  # whether what it runs stands for that of each of many examples
    level: int
    alive: bool
    parent: Trace  # the innermost one around it
    thread: int  # where it is active

    def __repr__(self) -> str:
        return type(self).__name__

    def process(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must override process")

    def make_ref(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                 ) -> Any:
        """What makes a reference goes to all active interpreters, whatever its operands: one made
        under `grad` has a tangent, one made under `vmap` may get a part for each example."""
        return self.parent.make_ref(primitive, operands, params)

    def check_outer(self, x: Any) -> None:
        """Raise UnexpectedTracerError if `x` is a tracer of a trace that is not outside this one,
        is another thread's, or has ended."""
        if isinstance(x, Tracer):
            trace = x._trace
            if (trace.level >= self.level or not trace.alive
                    or (trace.thread != self.thread and trace is not eager_trace)):  # a reference
                raise_leaked(x)

    def check_alive(self, operands: Sequence[Any]) -> None:
        """Raise UnexpectedTracerError if the function that this trace watched has returned."""
        if not self.alive:
            for x in operands:
                if isinstance(x, Tracer) and x._trace is self:
                    raise_leaked(x)


def _no_compiler(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    raise RuntimeError(f"Primitive '{primitive}' runs on values once pyjx.runtime is loaded.")


def names_lines() -> bool:
    """Whether the results of each program are looked at, and errors name the lines that made them;
    then none takes the C++ path."""
    return bool(configuration.debug_nans.value or configuration.debug_infs.value)


class EagerTrace(Trace):
    """Runs operations now: by their rule `impl`, or compiled.

    `compiler` gives the callable of a primitive with parameters. Compilers belong to the runtime,
    which sets it as it is loaded.
    """

    __slots__ = ("_compiled", "_programs", "compiler")

    def __init__(self) -> None:
        self.level = 0
        self.alive = True
        self.thread = 0  # all threads'
        self.compiler: Callable[[Primitive, dict[str, Any]], Callable[..., Any]] = _no_compiler
        self._compiled = BoundedDict(4096, "operations")  # callables by parameters, too
        self._programs = BoundedDict(512, "operations that hold programs")

    def process(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                ) -> Any:
        if primitive.own_impl is not None:
            return primitive.own_impl(*operands, **params)
        if primitive.exact:
            return self._program(primitive, params)(*operands)
        key = (primitive, *params.items()) if params else primitive
        for x in operands:
            if isinstance(x, Constant):  # C++ takes them for what they derive from
                key = (key, tuple(map(type, operands)))
                break
        try:
            run = self._compiled[key]
        except KeyError:
            run = self._compiled[key] = self.compiler(primitive, params)
        except TypeError:  # an unhashable parameter
            run = self.compiler(primitive, params)
        return run(*operands)

    def make_ref(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                 ) -> Any:
        return state.dynamic.process(primitive, operands, params)

    def _program(self, primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
        """The callable of a primitive with programs among its parameters: one for all that compute
        the same, as a function is often made, and traced, anew for each call. It is kept with the
        program where that holds something of the user's, which is to go with it."""
        key = params_key(params)
        if key is None:
            return self.compiler(primitive, params)
        if names_lines():  # errors name lines, which others have
            key = key, places(params)
        kept = self._programs if are_plain(params) else kept_with(params)
        run = kept.get((primitive, key))
        if run is None:
            run = kept[primitive, key] = self.compiler(primitive, copied(params))
        return run  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return "EvalTrace"


eager_trace = EagerTrace()


def run_compiled(primitive: Primitive, /, *operands: Any, **params: Any) -> Any:
    """Run an operation compiled, whatever its rule `impl` is."""
    return eager_trace.compiler(primitive, params)(*operands)


class _State(threading.local):
    """What is active in this thread."""

    def __init__(self) -> None:
        self.dynamic: Trace = eager_trace
        self.thread = threading.get_ident()
        self.innermost: Trace = eager_trace  # the active trace of the highest level
        self.level = 0  # its level
        self.axis_frames: tuple[AxisFrame, ...] = ()  # the named axes, innermost last


state = _State()


class Tracer(_Array):
    """A value as an interpreter sees it. It stands for an array wherever pyjx takes one."""

    __slots__ = ("__weakref__", "_trace", "aval")
    __array_priority__ = 1000

    aval: ShapedArray

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        aval_makers[cls] = attrgetter("aval")

    def __init__(self, trace: Any, aval: Any = None) -> None:
        self._trace = trace
        if aval is not None:
            self.aval = aval

    shape: Field[tuple[int, ...]] = of_field("aval.shape")
    dtype: Field[Any] = of_field("aval.dtype")
    ndim: Field[int] = of_field("aval.ndim")
    size: Field[int] = of_field("aval.size")
    weak_type: Field[bool] = of_field("aval.weak_type")
    mat: Field[Any] = of_field("aval.mat")  # along which axes of a mesh devices differ

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """Its type, as errors show it."""
        return self.aval.str_short(short_dtypes, mesh_axis_types)  # type: ignore[no-any-return]

    def _is_traced_array(self) -> bool:
        """Whether it is an instance of `Array`, which C++ asks too: a reference is none."""
        return not is_ref_type(self.aval)

    def to_concrete_value(self) -> Any:
        """The array behind the tracer, or None where there is none yet."""
        return None

    def full_lower(self) -> Any:
        """The value itself where its interpreter adds nothing to it."""
        return self

    def get_referent(self) -> Any:
        """What tells values apart that are the same object."""
        return self

    def _origin_msg(self) -> str:
        return ""

    def __len__(self) -> int:
        return len(self.aval)

    __hash__ = None  # type: ignore[assignment]  # libraries ask whether a class has one

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            self._check_alive()
            raise errors.ambiguous_truth(self.aval.size)  # whether or not the value is known
        value = self.to_concrete_value()
        if value is None:
            raise errors.TracerBoolConversionError(self)
        return bool(value)

    def __int__(self) -> int:
        self._check_scalar()
        return int(self._concrete("int", casts=True))

    # A number without its tangent would make derivatives wrong in silence: these are refused even
    # where the value is known. Integers and booleans have no derivative.

    def __float__(self) -> float:
        self._check_scalar()
        self._refuse("float", casts=True)

    def __complex__(self) -> complex:
        self._check_scalar()
        self._refuse("complex", casts=True)

    def __index__(self) -> int:
        aval = self.aval
        if aval.ndim or not dtypes.issubdtype(aval.dtype, np.integer):
            self._check_alive()
            raise TypeError("Only integer scalar arrays can be converted to a scalar index. Got a "
                            f"traced array of type {aval.str_short()}.")
        value = self.to_concrete_value()
        if value is None:
            raise errors.TracerIntegerConversionError(self)
        return value.__index__()

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise errors.TracerArrayConversionError(self)

    def tolist(self) -> Any:
        self._refuse("tolist")

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse("__dlpack__")

    def tobytes(self, order: str = "C") -> bytes:
        return self._concrete("tobytes").tobytes(order)

    def _check_alive(self) -> None:
        if not self._trace.alive:
            raise_leaked(self)

    def _check_scalar(self) -> None:
        if self.aval.ndim:
            self._check_alive()
            raise TypeError("Only scalar arrays can be converted to Python scalars; got "
                            f"arr.ndim={self.aval.ndim}")

    def _concrete(self, function: str, *, casts: bool = False) -> Any:
        """The value, which `function` needs; an error where it is not known."""
        value = self.to_concrete_value()
        if value is None:
            self._refuse(function, casts=casts)
        return value

    def _refuse(self, function: str, *, casts: bool = False) -> NoReturn:
        cure = f" To change its dtype, try using `x.astype({function})`." if casts else ""
        raise errors.ConcretizationTypeError(
            self, f"The problem arose with the `{function}` function.{cure}",
            None if casts else "Leave it out, or convert what the traced function returns.")

    def __reduce__(self) -> NoReturn:
        raise errors.ConcretizationTypeError(
            self, "The error occurred in the __reduce__ method: a traced value cannot be pickled.")

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.str_short()})"

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        self._check_alive()
        raise TypeError(
            f"unsupported format string passed to {type(self).__name__}.__format__: while the "
            f"function is traced, the array has the type {self.aval.str_short()} and no value. "
            "Print it as the program runs by jax.debug.print("
            f"'{{x{f':{spec}' * (not self.aval.shape)}}}', x=x).")


class new_level:
    """A context in which `trace` is alive and has the next level."""

    __slots__ = ("_saved", "_trace")

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __enter__(self) -> None:
        self._saved = state.level
        trace = self._trace
        trace.level = state.level = self._saved + 1
        trace.thread = state.thread
        trace.alive = True
        trace.parent = state.innermost
        state.innermost = trace

    def __exit__(self, *exc: object) -> None:
        state.level = self._saved
        self._trace.alive = False
        state.innermost = self._trace.parent


def raise_leaked(tracer: Tracer) -> NoReturn:
    raise errors.escaped_tracer_error(tracer, _leaked_origin(tracer).strip())


def _leaked_origin(tracer: Tracer) -> str:
    return (leaked_origin(tracer._trace, tracer._eqn) if isinstance(tracer, DynamicJaxprTracer)
            else tracer._origin_msg())


class DynamicJaxprTracer(Tracer):
    """A value of the program being recorded."""

    __slots__ = ("_eqn", "_var")

    _eqn: JaxprEqn | None  # the equation that made it; None for an argument
    _is_of_arrays = is_of_arrays

    def __init__(self, trace: DynamicJaxprTrace, var: Var, eqn: JaxprEqn | None) -> None:
        self._trace = trace
        self.aval = var.aval
        self._var = var
        self._eqn = eqn

    def __repr__(self) -> str:
        weak = "~" if self.aval.weak_type else ""
        return f"JitTracer({weak}{self.aval.str_short()})"

    def _origin_msg(self) -> str:
        return origin(self._trace, self._var, self._eqn)


class DynamicJaxprTrace(Trace):
    """Records operations as the equations of a jaxpr."""

    __slots__ = ("const_vars", "consts", "debug_info", "eqns", "invars")

    def __init__(self, debug_info: DebugInfo = no_debug_info) -> None:
        self.eqns: list[JaxprEqn] = []
        self.invars: list[Var] = []
        self.consts: dict[int, Any] = {}  # by id; holds the values, so ids stay theirs
        self.const_vars: dict[int, Var] = {}
        self.debug_info = debug_info

    def __repr__(self) -> str:
        return "DynamicJaxprTrace"

    def new_arg(self, aval: Any) -> DynamicJaxprTracer:
        var = Var(aval)
        self.invars.append(var)
        return DynamicJaxprTracer(self, var, None)

    def constant(self, x: Any) -> DynamicJaxprTracer:
        """The array `x` as a value of the program."""
        return DynamicJaxprTracer(self, self.atom(x), None)

    def valueless(self, x: Any, aval: ShapedArray) -> DynamicJaxprTracer:
        """A constant of which only the type is known: the program can be read, not run."""
        var = self.const_vars.setdefault(id(x), Var(aval))
        self.consts[id(x)] = x
        return DynamicJaxprTracer(self, var, None)

    def literal(self, x: Any, aval: ShapedArray) -> DynamicJaxprTracer:
        """The scalar `x`, which the program shows at its use, as a value of the program."""
        return DynamicJaxprTracer(self, Literal(x, aval), None)  # type: ignore[arg-type]

    def atom(self, x: Any) -> Any:
        """The variable or literal for an operand."""
        if isinstance(x, DynamicJaxprTracer) and x._trace is self:
            return x._var
        if isinstance(x, Tracer):
            self.check_outer(x)
        elif type(x) in literal_types:
            aval = get_aval(x)
            if type(x) is int:
                if x.bit_length() >= 32:
                    check_int_fits(x, aval)
            elif type(x) in _wide_integers and aval.dtype != x.dtype:
                x = x.astype(aval.dtype)  # its low bits, as C++ takes it as an argument
            return Literal(x, aval)
        elif type(x) is np.ndarray and not x.shape and x.dtype == dtypes.float0:
            return Literal(x)
        elif isinstance(x, SymbolicDim):
            return self.atom(x.as_scalar())
        key = id(x)
        var = self.const_vars.get(key)
        if var is None:
            var = self.const_vars[key] = Var(get_aval(x))
            self.consts[key] = x
        return var

    def process(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                ) -> Any:
        if primitive.record is not None:
            results = primitive.record(self, operands, params)
            if results is not None:
                return results
        invars: list[Any] = []
        avals: list[Any] = []
        for x in operands:
            if type(x) is DynamicJaxprTracer and x._trace is self:
                invars.append(x._var)
                avals.append(x.aval)
            else:
                atom = self.atom(x)
                invars.append(atom)
                avals.append(atom.aval)
        if not self.alive:
            self.check_alive(operands)
        out = primitive.out_avals(tuple(avals), params)
        effects = no_effects if primitive.effects is None else primitive.effects_of(avals, params)
        source = source_state.source or source_info.current()
        if not primitive.multiple_results:
            var = Var(out)
            eqn = JaxprEqn(primitive, invars, [var], params, effects, source)
            self.eqns.append(eqn)
            return DynamicJaxprTracer(self, var, eqn)
        outvars = [Var(a) for a in out]
        eqn = JaxprEqn(primitive, invars, outvars, params, effects, source)
        self.eqns.append(eqn)
        return [DynamicJaxprTracer(self, v, eqn) for v in outvars]

    def make_ref(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                 ) -> Any:
        return state.dynamic.process(primitive, operands, params)

    def finish(self, out_atoms: Sequence[Any]) -> ClosedJaxpr:
        """The recorded program. Its constants may be tracers of enclosing traces."""
        effects = join_effects(self.eqns)
        strange = {type(v.aval) for v in (*self.invars, *self.const_vars.values())} - _ARRAYS
        if strange:
            effects |= _effects_of_types([v.aval for v in self.invars], strange)
        jaxpr = Jaxpr(list(self.const_vars.values()), self.invars, out_atoms, self.eqns, effects,
                      self.debug_info)
        return ClosedJaxpr(jaxpr, [self.consts[k] for k in self.const_vars])


_ARRAYS = {ShapedArray}


def _effects_of_types(avals: Sequence[Any], types: set[Any]) -> Effects:
    """Those that a program has by the types of its inputs, and those of these and its constants."""
    effects = reads if any([type(a) is AbstractRef for a in avals]) else no_effects
    return effects | has_own_types if any([kind.is_high for kind in types]) else effects


class FoldingTrace(DynamicJaxprTrace):
    """Records operations, but runs those without effects whose operands are all known now."""

    __slots__ = ()

    def process(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                ) -> Any:
        if primitive.effects is None and not any([isinstance(x, Tracer) for x in operands]):
            with ensure_compile_time_eval():
                return primitive.bind(*operands, **params)
        return DynamicJaxprTrace.process(self, primitive, operands, params)


_wide_integers = frozenset(t for t in dtypes.numpy_scalar_types
                           if np.dtype(t).kind in "iu" and np.dtype(t).itemsize == 8)


_pausing = threading.RLock()
_paused: list[tuple[int, int, int]] = []  # the thresholds before, for each that has it wait


@contextmanager
def collector_paused() -> Iterator[None]:
    """Let Python's cyclic garbage collector wait. It would walk a growing program again and again,
    so that work on long ones is slower and slower."""
    # By its thresholds: whether it is enabled is the user's to say, while it waits, too.
    with _pausing:
        _paused.append(gc.get_threshold())
        gc.set_threshold(0)
    try:
        yield
    finally:
        with _pausing:
            thresholds = _paused.pop()
            if not _paused and not gc.get_threshold()[0]:
                gc.set_threshold(*thresholds)


@contextmanager
def recording(trace: DynamicJaxprTrace) -> Iterator[None]:
    """Make `trace` the thread's dynamic trace, so that operations on plain values are recorded."""
    with collector_paused(), new_level(trace), as_dynamic(trace):
        yield


@contextmanager
def as_dynamic(trace: Trace) -> Iterator[None]:
    """Let operations on plain values go to `trace`."""
    saved = state.dynamic
    state.dynamic = trace
    # C++ runs known calls by itself unless this flag says that something watches; it keeps what it
    # knows of a call by it, too, so that it is not the trace, which would live on.
    flag = configuration.trace_state.swap_local(None if trace is eager_trace else True)
    try:
        yield
    finally:
        state.dynamic = saved
        configuration.trace_state.set_local(flag)


def outside_of(trace: Trace) -> AbstractContextManager[None]:
    """A context for what the interpreter `trace` does: operations on plain values that it makes go
    to it, if it is one that takes them, and not to one inside of it."""
    takes_values = isinstance(trace, (EagerTrace, DynamicJaxprTrace)) or (
        type(trace).process is Trace.process)
    return as_dynamic(trace) if takes_values else nullcontext()


def ensure_compile_time_eval() -> AbstractContextManager[None]:
    """Run operations on plain values at once, even while a function is being traced.

    >>> import pyjx as jax
    >>> @jax.jit
    ... def f(x):
    ...     with jax.ensure_compile_time_eval():
    ...         n = int(jax.numpy.arange(3).sum())
    ...     return x * n
    ...
    >>> f(2.0)
    Array(6., dtype=float32, weak_type=True)
    """
    return as_dynamic(eager_trace)


def trace_to_jaxpr(fun: Callable[..., Sequence[Any]], in_avals: Sequence[Any],
                   debug_info: DebugInfo = no_debug_info) -> ClosedJaxpr:
    """Record `fun`, which takes one array for each aval and returns a sequence of arrays.

    Names of operations are relative to whatever will hold the jaxpr.
    """
    trace = FoldingTrace(debug_info) if configuration.eager_constant_folding.value \
        else DynamicJaxprTrace(debug_info)
    with reset_name_stack(), recording(trace):
        outs = fun(*[trace.new_arg(a) for a in in_avals])
        closed = trace.finish([trace.atom(x) for x in outs])
        del outs
    if configuration.enable_checks.value:
        check_jaxpr(closed)
    if configuration.check_tracer_leaks.value:
        check_leaks(trace)
    return closed


def _tracers(trace: Trace) -> list[Tracer]:
    """The tracers of a trace that are alive."""
    return [x for x in gc.get_referrers(trace) if isinstance(x, Tracer) and x._trace is trace]


def check_leaks(trace: Trace) -> None:
    """Raise if a tracer of `trace`, which has ended, is still alive."""
    leaked = _tracers(trace)
    if leaked and gc.collect():
        leaked.clear()
        leaked = _tracers(trace)
    if leaked:
        lines = "\n".join([f"{x!r}{_leaked_origin(x)}" for x in leaked]
                          + referrers(leaked[0], (leaked, trace)))
        raise Exception(f"Leaked trace {trace!r}. Leaked tracer(s):\n{lines}\nWhat outlives the "
                        "call (a global, an attribute, a list of the enclosing scope) must not "
                        "keep traced values: return them instead.")


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "",
                      cure: str | None = None) -> Any:
    """`force(val)`, or ConcretizationTypeError where `val` is a tracer with no value yet. Where the
    context says what to do, `cure` is empty; it is of an argument of the library's otherwise."""
    if isinstance(val, Tracer):
        value = val.to_concrete_value()
        if value is None:
            if context and cure is None:
                cure = errors.cure_for_argument(val, force is np.asarray and val.ndim > 0)
            raise errors.ConcretizationTypeError(val, context, cure)
        val = value
    return val if force is None else force(val)


def is_concrete(x: Any) -> bool:
    """Whether the value of `x` is known, and not only its shape and dtype."""
    return not isinstance(x, Tracer) or x.to_concrete_value() is not None
