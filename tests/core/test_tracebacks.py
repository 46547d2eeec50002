"""The filtering of tracebacks at the boundary of the public API."""

import re
import signal
import traceback
import types
from collections.abc import Hashable

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration
from pyjx.compat.callables import api_boundary
from pyjx.core import tracebacks

THIS_FILE = __file__


def internal_call(fun, *args):
    """Calls `fun` from a frame that counts as the library's own."""
    file_name = tracebacks.__file__.replace("core", "fake")
    scope: dict = {}
    source = "def call(fun, *args):\n    return fun(*args)\n"
    exec(compile(source, file_name, "exec"), scope)
    return scope["call"](fun, *args)


@pytest.fixture
def filtering(monkeypatch):
    def set_mode(mode):
        flag = types.SimpleNamespace(value=mode)
        monkeypatch.setattr(configuration, "traceback_filtering", flag)

    return set_mode


def raises_inside_user_code():
    raise KeyError("lost")


@api_boundary
def entry(fun):
    return internal_call(fun)


def caught(fun, *args):
    try:
        fun(*args)
    except KeyError as e:
        return e
    raise AssertionError("no error")


def frames_of(tb):
    return [(f.filename == THIS_FILE, f.name) for f in traceback.extract_tb(tb)]


def test_boundary_passes_results_and_names_through():
    assert entry(lambda: 5) == 5
    assert entry.__name__ == "entry"


@pytest.mark.parametrize("mode", ["auto", "quiet_remove_frames"])
def test_quiet_filtering_leaves_the_users_frames_and_one_note(filtering, mode):
    filtering(mode)
    error = caught(entry, lambda: entry(raises_inside_user_code))
    names = [name for _, name in frames_of(error.__traceback__)]
    assert names[0] == "caught"
    assert names[-1] == "raises_inside_user_code"
    assert "boundary" not in names
    assert "call" not in names
    assert len(error.__notes__) == 1
    assert "JAX_TRACEBACK_FILTERING=off" in error.__notes__[0]
    assert error.__cause__ is None


def test_off_leaves_everything(filtering):
    filtering("off")
    error = caught(entry, raises_inside_user_code)
    assert [name for _, name in frames_of(error.__traceback__)] == [
        "caught", "boundary", "entry", "internal_call", "call", "raises_inside_user_code",
    ]
    assert not hasattr(error, "__notes__")


def test_remove_frames_keeps_the_whole_traceback_as_the_cause(filtering):
    filtering("remove_frames")
    error = caught(entry, raises_inside_user_code)
    assert "boundary" not in [name for _, name in frames_of(error.__traceback__)]
    assert isinstance(error.__cause__, tracebacks.UnfilteredStackTrace)
    assert "boundary" in [name for _, name in frames_of(error.__cause__.__traceback__)]
    assert "lost" in str(error.__cause__)


def test_tracebackhide_marks_internal_frames(filtering):
    filtering("tracebackhide")
    error = caught(entry, raises_inside_user_code)
    marks = {}
    tb = error.__traceback__
    while tb is not None:
        marks[tb.tb_frame.f_code.co_name] = "__tracebackhide__" in tb.tb_frame.f_locals
        tb = tb.tb_next
    hidden = {name for name, mark in marks.items() if mark}
    assert hidden == {"boundary", "call"}


def test_an_error_with_only_user_frames_gets_no_note(filtering):
    filtering("quiet_remove_frames")
    error = caught(raises_inside_user_code)
    tracebacks.filter_exception(error)
    assert not hasattr(error, "__notes__")


# -- the public functions --------------------------------------------------------------------------

x = jnp.ones((2, 3))
y = jnp.ones((4, 5))
leaked: list = []


def leaking(a):
    leaked.append(a * 2)
    return a


@pytest.mark.parametrize("call", [
    lambda: x + y,
    lambda: np.ones(7) + x,
    lambda: jnp.add(x, y),
    lambda: jnp.dot(x, y),
    lambda: jnp.sum(x, axis=5),
    lambda: x.sum(axis=5),
    lambda: jnp.concatenate([x, y]),
    lambda: jax.nn.softmax("a"),
    lambda: jax.nn.one_hot(x, 3.5),
    lambda: x[1, 2, 3],
    lambda: x.at[0].set(jnp.ones(7)),
    lambda: jax.lax.while_loop(lambda a: True, lambda a: (a, a), 1),
    lambda: jax.vmap(lambda a: a + y)(x),
    lambda: leaked[-1] + 1,
])
def test_operations_show_the_users_frames_only(call):
    jax.grad(leaking)(1.0)
    with pytest.raises(Exception) as error:
        call()
    files = {f.filename for f in traceback.extract_tb(error.value.__traceback__)}
    assert files == {THIS_FILE}


@pytest.mark.parametrize(("transformed", "how"), [
    (jax.grad(leaking), "differentiated"),
    (lambda a: jax.jvp(leaking, (a,), (a,)), "differentiated"),
    (lambda a: jax.grad(leaking, (0,))(a), "differentiated"),
    (lambda a: jax.vjp(leaking, a), "differentiated"),
    (lambda a: jax.vmap(leaking)(jnp.ones(2)), "mapped by vmap"),
])
def test_leaked_values_name_their_function(transformed, how):
    transformed(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError) as error:
        leaked[-1] + 1
    line = leaking.__code__.co_firstlineno
    inside = f"The value was made in the function leaking at {THIS_FILE}:{line}, which was {how}."
    assert inside in str(error.value)


METHODS = ("all", "any", "argmax", "argmin", "argsort", "cumprod", "cumsum", "max", "mean", "min",
           "prod", "ptp", "round", "sort", "std", "sum", "var")


@pytest.mark.parametrize("use", [
    lambda h: h @ h, lambda h: jnp.ones((2, 3)) @ h, lambda h: jnp.matmul(h, h),
    lambda h: jnp.dot(h, h), lambda h: jnp.vdot(h, h), lambda h: jnp.inner(h, h),
    lambda h: jnp.tensordot(h, h, 1), lambda h: jnp.einsum("i,i", h, h), lambda h: h.dot(h),
    lambda h: h.repeat(2), lambda h: h.take(0), lambda h: h.clip(0),
    *[lambda h, name=name: getattr(h, name)() for name in METHODS]])
def test_each_use_of_a_leaked_value_is_told_of_at_the_users_line(use):
    jax.jit(leaking)(jnp.ones(3))
    with pytest.raises(jax.errors.UnexpectedTracerError) as error:
        use(leaked[-1])
    assert {name for _, name in frames_of(error.value.__traceback__)} <= {
        "test_each_use_of_a_leaked_value_is_told_of_at_the_users_line", "<lambda>"}


@pytest.mark.parametrize("name", ["sum", "mean", "max", "argsort", "cumsum", "squeeze", "round"])
def test_methods_of_traced_values_name_the_call(name):
    argument = "decimals" if name == "round" else "axis"
    with pytest.raises(Exception) as error:
        jax.jit(lambda a: getattr(a, name)(**{argument: "no"}))(x)
    said = "\n".join([str(error.value), *error.value.__notes__])
    assert re.search(rf"\b{name}\b", said) and "'no'" in said


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap])
def test_classes_of_traced_values_say_that_they_have_no_hash(transform):
    found = []
    transform(lambda a: found.append(isinstance(a, Hashable)) or a)(
        jnp.ones(2) if transform is jax.vmap else 1.0)
    assert found == [False]


def test_errors_that_the_library_handles_are_not_shown():
    with pytest.raises(IndexError, match="Slice entries") as error:
        jax.jit(lambda x, i: x[:i])(x, 1)
    shown = "".join(traceback.format_exception(error.value))
    assert "During handling" not in shown and "Frames inside the library" in shown


def test_errors_that_the_user_handles_are_shown():
    with pytest.raises(IndexError, match="Too many indices") as error:
        try:
            jax.jit(lambda x: jnp.zeros(x))(2)
        except TypeError:
            x[0, 0, 0]
    assert "concrete values" in str(error.value.__context__)
    files = {f.filename for f in traceback.extract_tb(error.value.__context__.__traceback__)}
    assert files == {THIS_FILE}


@pytest.fixture
def heeding():
    """Jobs of a shell's background ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeding")
def test_an_interrupted_program_shows_the_users_frames():
    def interrupted():
        jax.tree.map(lambda leaf: signal.raise_signal(signal.SIGINT), [x])

    with pytest.raises(KeyboardInterrupt) as error:
        jax.jit(interrupted)()
    files = {f.filename for f in traceback.extract_tb(error.value.__traceback__)}
    assert files == {THIS_FILE}
    assert error.value.args == () and "Frames inside the library" in error.value.__notes__[0]


def test_causes_stay():
    def call(a):
        try:
            a + y
        except TypeError as error:
            raise ValueError("mine") from error

    with pytest.raises(ValueError, match="mine") as error:
        jax.jit(call)(x)
    cause = error.value.__cause__
    assert "add got incompatible" in str(cause)
    assert {f.filename for f in traceback.extract_tb(cause.__traceback__)} == {THIS_FILE}
