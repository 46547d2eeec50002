"""The filtering of tracebacks at the boundary of the public API."""

import traceback
import types

import pytest

from pyjx import configuration
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


@tracebacks.api_boundary
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
