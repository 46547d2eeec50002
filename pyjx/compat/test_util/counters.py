"""What functions trace, lower, compile, hold and print."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, TextIO

import pyjx
from pyjx import monitoring
from pyjx.core.jaxpr import Jaxpr, JaxprEqn, jaxprs_in_params
from pyjx.runtime import ledger
from pyjx.runtime.jit import CALL_MISS

__all__ = [
    "assert_dot_precision", "assert_dot_preferred_element_type",
    "assert_num_jit_and_pmap_compilations", "capture_stderr", "capture_stdout",
    "count_events", "count_jit_and_pmap_lowerings", "count_jit_compilation_cache_miss",
    "count_jit_tracing_cache_miss", "count_pjit_cpp_cache_miss", "count_primitive_compiles",
    "fwd_bwd_jaxprs", "iter_eqns", "register_event_duration_listener",
]

_STEPS = "/jax/core/compile/"


def count_events(event: str) -> Callable[[], AbstractContextManager[Callable[[], int]]]:
    """A function of no arguments that gives contexts, in each of which a function says how often an
    event has happened in this thread.

    >>> with count_events("/jax/core/compile/jaxpr_trace_duration")() as count:
    ...     _ = pyjx.jit(lambda x: x + 1)(1.0)
    >>> count()
    1
    """
    @contextmanager
    def counting() -> Iterator[Callable[[], int]]:
        happened: list[str] = []
        thread = threading.get_ident()

        def listener(name: str, /, *_: Any, **__: Any) -> None:
            if name == event and threading.get_ident() == thread:
                happened.append(name)

        monitoring.register_event_listener(listener)
        monitoring.register_event_duration_secs_listener(listener)
        try:
            yield lambda: len(happened)
        finally:
            monitoring.unregister_event_listener(listener)
            monitoring.unregister_event_duration_listener(listener)

    return counting


count_pjit_cpp_cache_miss = count_events(CALL_MISS)
count_jit_tracing_cache_miss = count_events(f"{_STEPS}jaxpr_trace_duration")
count_jit_and_pmap_lowerings = count_events(f"{_STEPS}jaxpr_to_mlir_module_duration")
count_jit_compilation_cache_miss = count_events(f"{_STEPS}backend_compile_duration")


@contextmanager
def count_primitive_compiles() -> Iterator[Callable[[], int]]:
    """A context that gives a function, which says how many programs of single operations, those of
    `jax.numpy` too, have been compiled in it; functions that users jit do not count.

    >>> with count_primitive_compiles() as count:
    ...     _ = pyjx.numpy.sin(pyjx.numpy.ones((3, 1, 2)))
    >>> count()
    1
    """
    def programs() -> dict[str, int]:
        return {name: costs.programs for name, costs in ledger.operations().items()}

    before = programs()
    yield lambda: sum([n - before.get(name, 0) for name, n in programs().items()])


@contextmanager
def register_event_duration_listener(callback: Callable[..., None]) -> Iterator[None]:
    """A context in which `callback(event, seconds, **kwargs)` is called for each duration."""
    monitoring.register_event_duration_secs_listener(callback)
    try:
        yield
    finally:
        monitoring.unregister_event_duration_listener(callback)


@contextmanager
def assert_num_jit_and_pmap_compilations(times: int) -> Iterator[None]:
    """A context that raises AssertionError unless so many programs are lowered in it."""
    with count_jit_and_pmap_lowerings() as count:
        yield
    if count() != times:
        raise AssertionError(f"Expected exactly {times} XLA compilations, but executed {count()}")


# -- programs --------------------------------------------------------------------------------------


def iter_eqns(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """The equations of a jaxpr, those of the jaxprs in it after the ones that hold them."""
    yield from jaxpr.eqns
    for eqn in jaxpr.eqns:
        for inner in jaxprs_in_params(eqn.params):
            yield from iter_eqns(inner)


def _products(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> list[JaxprEqn]:
    jaxpr = pyjx.make_jaxpr(partial(fun, **kwargs))(*args).jaxpr
    found = [eqn for eqn in iter_eqns(jaxpr)
             if eqn.primitive.name in ("dot_general", "conv_general_dilated")]
    assert found, "the function has no matrix product and no convolution"
    return found


def assert_dot_precision(expected_precision: Any, fun: Callable[..., Any], *args: Any) -> None:
    """Raise AssertionError unless all products have the precision: one, a pair of one, or None."""
    for eqn in _products(fun, *args):
        precision = eqn.params["precision"]
        if precision is None:
            assert expected_precision is None, precision
        else:
            assert tuple(precision) == (expected_precision,) * 2, precision


def assert_dot_preferred_element_type(expected: Any, fun: Callable[..., Any], *args: Any,
                                      **kwargs: Any) -> None:
    """Raise AssertionError unless all products have the preferred element type."""
    for eqn in _products(fun, *args, **kwargs):
        assert eqn.params["preferred_element_type"] == expected, eqn


def fwd_bwd_jaxprs(f: Callable[..., Any], *example_args: Any) -> tuple[Any, Any]:
    """The jaxprs of `f` that keeps what its derivative needs, and of its cotangents."""
    fwd, (out, pull) = pyjx.make_jaxpr(lambda *args: pyjx.vjp(f, *args), return_shape=True)(
        *example_args)
    return fwd, pyjx.make_jaxpr(lambda pull, ct: pull(ct))(pull, out)


# -- output ----------------------------------------------------------------------------------------


@contextmanager
def _captured(stream: TextIO) -> Iterator[Callable[[], str]]:
    """A context that gives a function, which says what has been written to the stream's file since,
    that of C++ too; the function is called when the context has ended."""
    text = ""
    with tempfile.NamedTemporaryFile(mode="w+") as file:
        saved = os.dup(stream.fileno())
        stream.flush()
        os.dup2(file.fileno(), stream.fileno())
        try:
            yield lambda: text
        finally:
            stream.flush()
            os.dup2(saved, stream.fileno())
            os.close(saved)
            file.seek(0)
            text = file.read()


@contextmanager
def capture_stdout() -> Iterator[Callable[[], str]]:
    """A context that gives a function, which says what was printed in it."""
    with _captured(sys.stdout) as text:
        yield text


@contextmanager
def capture_stderr() -> Iterator[Callable[[], str]]:
    """As `capture_stdout`, of standard error."""
    with _captured(sys.stderr) as text:
        yield text
