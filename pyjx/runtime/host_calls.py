"""Python functions on the host that programs call.

XLA hands the arguments over as NumPy arrays that live as long as the call; the functions get arrays
on the CPU. An exception in a function becomes the program's error: its text goes through XLA, the
exception itself waits here to be its cause.

Programs run while Python goes on, but those over several CPUs that take results from the host. One
leaves a token that is ready when it is done; one with ordered effects takes the token that the last
such program of its thread and devices gave.
"""

from __future__ import annotations

import atexit
import itertools
import re
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.core import dtypes, logs
from pyjx.core.avals import ShapedArray
from pyjx.core.bounded import BoundedDict
from pyjx.core.effects import keeps_alive
from pyjx.core.frames import user_frame
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.trace import ensure_compile_time_eval
from pyjx.core.tracebacks import filter_exception
from pyjx.core.value_texts import shortened
from pyjx.engine.functions import source_of
from pyjx.engine.moves import moved
from pyjx.engine.types import TreeDef
from pyjx.jaxlib_api import Sharding
from pyjx.runtime import backends
from pyjx.runtime.executable import Executable
from pyjx.runtime.placement import Placement
from pyjx.runtime.sharding import single_device_sharding
from pyjx.runtime.transfers import array_from_numpy, put_host

if TYPE_CHECKING:
    from lowering.module import HostCall
    from lowering.program import LoweredProgram


_MOST_LEFT_OUT = 10_000  # calls of a run that goes on without end, as it has no results


class Failures:
    """The first failure of the calls of a program over several CPUs. The program goes on, as a
    device that waits for one that has failed ends the process. If calls have results, there are
    none after a failure: no further function is called, and whoever runs the program waits for its
    end, to raise the failure. Such runs are one after the other."""

    __slots__ = ("_first", "_left_out", "_lock", "waits")

    def __init__(self, waits: bool) -> None:
        self.waits = waits
        self._first: Exception | None = None
        self._left_out = 0
        self._lock = threading.RLock()

    def keep(self, error: BaseException, call: HostCall) -> None:
        if not self.waits:
            _log(error, call)
        if self._first is None:
            self._first = _failure(error, _told(error, call.function, call.traceback))

    def leaves_out(self) -> bool:
        """Whether a function is not called any more."""
        if not self.waits or self._first is None:
            return False
        self._left_out += 1
        if self._left_out > _MOST_LEFT_OUT:
            raise self._first
        return True

    @contextmanager
    def until_the_end(self) -> Iterator[None]:
        """Around what waits for the end of a run; raises its failure."""
        with self._lock:
            try:
                yield
            finally:
                first, self._first, self._left_out = self._first, None, 0
            if first is not None:
                raise first


def host_functions(program: LoweredProgram, devices: Sequence[Any]
                   ) -> tuple[list[Any], Failures | None]:
    """What XLA is given for the host calls of a program, in their order, and what keeps the errors
    of these, if the program goes on."""
    failures, client = None, devices[0].client
    if len(devices) > 1 and client.platform == "cpu":
        failures = Failures(any([call.result_avals for call in program.host_calls]))
    return [_function(call, client, failures) for call in program.host_calls], failures


def _function(call: HostCall, client: Any, failures: Failures | None) -> Any:
    transfers = call.transfers
    if transfers is None:
        return _for_xla(call, call.ordered, failures)
    function = _for_xla(call, False, failures)  # no token leaves the device
    return jaxlib_api.transferring_callback(
        client, lambda *arrays: function(*arrays[:transfers.taken]), transfers.sent,
        transfers.received, transfers.send_channels, transfers.receive_channels)


class CallingExecutable(Executable):
    """A compiled program with host calls; their exceptions are the causes of its errors."""

    __slots__ = ("_failures", "_token_handler", "has_effects", "ordered")

    def __init__(self, loaded: Any, closed: ClosedJaxpr, program: LoweredProgram,
                 placement: Placement, failures: Failures | None) -> None:
        super().__init__(loaded, closed, program, placement)
        self._failures = failures
        self.has_effects = keeps_alive(closed.effects)
        self.ordered = program.ordered
        self._token_handler = jaxlib_api.result_handler(TOKEN, self.sharding, True)

    def run(self, operands: Sequence[Any], handlers: list[Any]) -> list[Any]:
        try:
            return self._run_with_token(operands, handlers)
        except jaxlib_api.JaxRuntimeError as error:
            failure = with_cause(error)
            raise failure from failure.__cause__

    def _run_with_token(self, operands: Sequence[Any], handlers: list[Any]) -> list[Any]:
        given = [*self.const_args, *operands]
        if self.ordered:
            token = take_order(self.placement.devices, self.sharding)
            given.insert(len(self.const_args), token)
            handlers = [self._token_handler, *handlers]
        if self._failures is not None and self._failures.waits:
            with self._failures.until_the_end():
                results = self.loaded.execute_sharded(given, with_tokens=True)
                results.consume_token().block_until_ready()
        else:
            results = self.loaded.execute_sharded(given, with_tokens=True)
            add_pending(results.consume_token(), self.has_effects, self._failures)
        outs: list[Any] = results.consume_with_handlers(handlers)
        if self.ordered:
            give_order(self.placement.devices, outs.pop(0))
        return outs

    def fast_path(self, out_tree: TreeDef, committed: bool) -> Any:
        """None: effects leave a token with each call, and errors are given their causes."""
        return None


FlatFunction = Callable[..., Sequence[Any]]

JaxRuntimeError = jaxlib_api.JaxRuntimeError


# -- calls -----------------------------------------------------------------------------------------

# What callbacks raised, and what the error of the program is to say, by the mark in its text.
_failures = BoundedDict(256, "failures of callbacks")
_numbers = itertools.count()
_MARK = re.compile(r" \[host call failure (\d+)\]")
_FAILED = "INTERNAL: CpuCallback error calling callback:"  # as XLA begins


def call_on_host(callback: FlatFunction, result_avals: Sequence[ShapedArray], args: Sequence[Any]
                 ) -> list[Any]:
    """Call a function with arrays on the CPU; its results are arrays of the types given.

    Raises:
      JaxRuntimeError: the function raises an exception, which is the cause, or gives other types.
    """
    try:
        with ensure_compile_time_eval():
            outs = checked(callback, result_avals, callback(*map(_on_cpu, args)))
    except Exception as error:
        raise JaxRuntimeError(f"{_FAILED} {_told(error, callback)}") from error
    return [array_from_numpy(np.asarray(x, dtype=aval.dtype), aval)
            for x, aval in zip(outs, result_avals, strict=True)]


def check_device(sharding: Sharding, args: Sequence[Any]) -> None:
    """Raise ValueError unless the device of a sharding is one on which an eager call of these
    arguments runs."""
    committed = [x.sharding.device_set for x in args if getattr(x, "committed", False)]
    devices = set().union(*committed) if committed else {backends.default_device()}
    (device,) = sharding.device_set
    if device not in devices:
        raise ValueError("Sharding provided to pure_callback specifies a device "
                         f"{device.platform}:{device.id} that is not in the device assignment "
                         f"({tuple(sorted(devices, key=lambda d: d.id))}). Put the arguments "
                         "there, or leave sharding= out.")


def show_on_host(callback: FlatFunction, args: Sequence[Any]) -> list[Any]:
    """Call a function whose results are not wanted; what it raises is raised as it is."""
    with ensure_compile_time_eval():
        callback(*map(_on_cpu, args))
    return []


def _for_xla(host_call: HostCall, ordered: bool, failures: Failures | None) -> Callable[..., Any]:
    """The function that XLA calls; where the calls are ordered it takes and gives a token first.

    One that takes buffers gets these as they are, and writes its results into some.
    """
    callback, result_avals = host_call.function, host_call.result_avals

    def fail(error: BaseException) -> None:
        if failures is None:
            raise _for_program(error, host_call) from None
        failures.keep(error, host_call)

    def call(*args: Any) -> tuple[Any, ...]:
        outs = None
        if failures is None or not failures.leaves_out():
            try:
                given = args[1:] if ordered else args
                with ensure_compile_time_eval():
                    outs = checked(callback, result_avals, callback(*map(_copied, given)))
            except BaseException as error:  # C++ ends the process for those that are no Exception
                fail(error)
        if outs is None:
            outs = [_nothing(aval) for aval in result_avals]
        return (args[0], *outs) if ordered else tuple(outs)

    def call_with_buffers(context: Any, *buffers: Any) -> None:
        try:
            with ensure_compile_time_eval():
                callback(context, *buffers)
        except BaseException as error:
            fail(error)

    return call_with_buffers if getattr(callback, "takes_buffers", False) else call


def _nothing(aval: ShapedArray) -> Any:
    """What stands for the result of a call that failed: with NaN most loops end."""
    inexact = dtypes.issubdtype(aval.dtype, np.inexact)
    return np.full(aval.shape, np.nan if inexact else 0, aval.dtype)


def _for_program(error: BaseException, call: HostCall) -> RuntimeError:
    """The error that XLA is given in the place of one that is kept here, to be the cause of the
    program's. That of a program which runs while Python goes on may come late, or to nobody, so
    the callback's own is printed then."""
    text = _told(error, call.function, call.traceback)
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not CallingExecutable.run.__code__:
        frame = frame.f_back
    if frame is None:
        _log(error, call)
    else:
        number = str(next(_numbers))
        _failures[number] = error, text
        text += f" [host call failure {number}]"
    return RuntimeError(text).with_traceback(error.__traceback__)


def _log(error: BaseException, call: HostCall) -> None:
    if not logs.heard(__name__):  # else the callback has logged it
        filter_exception(error)
        op = getattr(call.function, "op", "callback")
        logs.log(__name__, logs.ERROR, f"jax.{op} failed", error)


def _told(error: BaseException, callback: FlatFunction, traceback: Any = None) -> str:
    """What a callback raised, which one it was, and where the program calls it."""
    frame = user_frame(traceback)
    place = f", which is called at {frame}" if frame is not None else ""
    given, text = getattr(callback, "in_tree", None), f"{type(error).__name__}: {error}"
    if given is not None and not given.num_leaves and " positional argument" in text:
        place += (", without arguments: they come behind result_shape_dtypes, the types of what "
                  "it returns")
    return f"{text}\nIt came from the callback {_name(callback)}{place}."


def checked(callback: FlatFunction, avals: Sequence[ShapedArray], outs: Sequence[Any]) -> list[Any]:
    """The results as NumPy arrays, which XLA takes as they are."""
    if len(outs) != len(avals):
        raise TypeError("Mismatched number of outputs from callback. Expected: "
                        f"{len(avals)}, Actual: {len(outs)}. result_shape_dtypes says the former.")
    arrays = []
    for i, (x, aval) in enumerate(zip(outs, avals, strict=True)):
        host = np.asarray(x)
        if host.shape != aval.shape:
            n = getattr(callback, "n_mapped", 0)
            former = "the former." if not n else (
                f"{aval.shape[n:]}, and vmap puts {aval.shape[:n]} in front of it: by this "
                "vmap_method the callback is given all examples at once, by 'sequential' one.")
            raise ValueError(f"Incorrect output shape for return value #{i}: Expected: "
                             f"{aval.shape}, Actual: {host.shape}. result_shape_dtypes says "
                             f"{former}")
        if host.dtype != aval.dtype:
            narrow = dtypes.canonicalize_dtype(host.dtype)  # with 64-bit types off
            if narrow != aval.dtype:
                raise TypeError(f"Incorrect output dtype for return value #{i}: Expected: "
                                f"{aval.dtype}, Actual: {narrow}. result_shape_dtypes says the "
                                "former. Convert it in the callback: "
                                f"np.asarray(result, {str(aval.dtype)!r}).")
            host = host.astype(narrow)
        arrays.append(host)
    return arrays


def _name(callback: FlatFunction) -> str:
    """The user's function, by its name and place."""
    fun = getattr(callback, "callback_func", callback)
    fun = getattr(fun, "callback", fun)
    named = isinstance(fun, partial) or hasattr(fun, "__name__")
    return source_of(fun) if named else shortened(fun)


def _cpu() -> Any:
    return backends.local_devices(backend="cpu")[0]


def _copied(x: Any) -> Any:
    """An array of NumPy's array that XLA will take back."""
    device, host = _cpu(), np.asarray(x)
    return jaxlib_api.batched_device_put(
        ShapedArray(host.shape, host.dtype), single_device_sharding(device), [host], [device], True)


def _on_cpu(x: Any) -> Any:
    return x if _is_on_cpu(x) else moved(x, _cpu())


def _is_on_cpu(x: Any) -> bool:
    sharding = getattr(getattr(x, "_base_array", x), "sharding", None)
    return sharding is not None and all(d.platform == "cpu" for d in sharding.device_set)


def with_cause(error: Exception) -> Exception:
    """The error of a program, with the exception of the callback that made it as its cause, if one
    did."""
    found = [_failures.pop(number, None) for number in _MARK.findall(str(error))]
    for cause, text in filter(None, found):
        return _failure(cause, text).with_traceback(error.__traceback__)
    return error


def _failure(cause: BaseException, text: str) -> Exception:
    """The error of a program whose callback has raised another one."""
    failure = JaxRuntimeError(f"{_FAILED} {text}")
    failure.__cause__ = cause
    return failure


# -- the order of effects --------------------------------------------------------------------------

TOKEN = ShapedArray((0,), np.dtype(np.bool_))  # what a token is as a buffer

_MOST_PENDING = 256  # programs whose end is waited for later; then the oldest is waited for


class _Order(threading.local):
    """The token of this thread's last program with ordered effects, by the devices it ran on."""

    def __init__(self) -> None:
        self.tokens: dict[Any, Any] = {}


_order = _Order()
# The tokens of programs that call the host, whether these have effects, and what their calls have
# raised; the oldest first.
_pending: deque[tuple[Any, bool, Failures | None]] = deque()
_failed: deque[Exception] = deque(maxlen=16)  # of those whose end was waited for


def take_order(devices: tuple[Any, ...], sharding: Any) -> Any:
    """What the next program with ordered effects takes. A program that fails gives none back."""
    token = _order.tokens.pop(devices, None)
    if token is None:
        token = put_host(np.zeros(0, np.bool_), TOKEN, sharding, False)
    return token


def give_order(devices: tuple[Any, ...], token: Any) -> None:
    """Keep the token that a program with ordered effects gives."""
    _order.tokens[devices] = token


def add_pending(token: Any, has_effects: bool, failures: Failures | None) -> None:
    """Keep the token of a program that calls the host until it has ended: Python must not end
    before.

    Where there are too many the oldest is waited for; that one with effects failed is for
    `effects_barrier` to say, not for the program that happens to come now.
    """
    _pending.append((token, has_effects, failures))
    if len(_pending) > _MOST_PENDING:
        _wait_for_oldest()


def _wait_for_oldest() -> None:
    """Others see that it is pending until it has ended, and may wait for it, too."""
    with suppress(IndexError, ValueError):  # another thread was faster
        oldest = token, has_effects, failures = _pending[0]
        try:
            with failures.until_the_end() if failures is not None else nullcontext():
                token.block_until_ready()
        except jaxlib_api.JaxRuntimeError as failure:
            if has_effects:
                _failed.append(failure)
        _pending.remove(oldest)


def effects_barrier() -> None:
    """Wait until the programs that have been called have had all their effects.

    Raises:
      JaxRuntimeError: one of them failed.

    >>> import pyjx as jax
    >>> jax.jit(lambda: jax.debug.print("done"))(), jax.effects_barrier()
    done
    (None, None)
    """
    while _pending:
        _wait_for_oldest()
    if _failed:
        _order.tokens.clear()  # they may hang on a program that failed
        error = _failed.popleft()
        while _failed:
            error.add_note(f"Another program failed: {_failed.popleft()}")
        raise error


@atexit.register
def _at_exit() -> None:
    try:
        effects_barrier()
    except Exception as error:
        print("pyjx: a program failed:", *traceback.format_exception_only(error), file=sys.stderr)
