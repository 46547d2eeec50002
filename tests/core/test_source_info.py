"""Source information: user frames, name stacks and the filtering of tracebacks."""

import sys
import threading
import traceback
import types

import pytest

from pyjx import configuration
from pyjx.core import source_info
from pyjx.core.source_info import NameStack, named_scope

THIS_FILE = __file__


def here(depth: int = 1) -> int:
    return sys._getframe(depth).f_lineno


def internal_call(fun, *args):
    """Calls `fun` from a frame that counts as the library's own."""
    file_name = source_info.__file__.replace("core", "fake")
    scope: dict = {}
    source = "def call(fun, *args):\n    return fun(*args)\n"
    exec(compile(source, file_name, "exec"), scope)
    return scope["call"](fun, *args)


def test_name_stack_text_puts_a_transformation_around_the_next_entry_only():
    stack = NameStack().extend("outer").transform("jvp").extend("a").extend("b")
    assert str(stack) == "outer/jvp(a)/b"
    assert str(NameStack().transform("vmap").transform("jvp").extend("x")) == "vmap(jvp(x))"
    assert str(NameStack().extend("x").transform("jvp")) == "x/jvp()"
    assert str(NameStack()) == ""


def test_name_stack_equality_tells_scopes_from_transformations():
    assert NameStack().extend("a") == NameStack().extend("a")
    assert hash(NameStack().extend("a")) == hash(NameStack().extend("a"))
    assert NameStack().extend("jvp") != NameStack().transform("jvp")
    assert len(NameStack().extend("a").extend("b")) == 2


def test_transposition_is_named_inside_the_surrounding_scopes():
    base = NameStack().extend("outer")
    primal = base.transform("jvp").extend("inner")
    assert str(base.transform("transpose") + primal.relative_to(base)) == (
        "outer/transpose(jvp(inner))"
    )
    elsewhere = NameStack().extend("else")
    assert elsewhere.relative_to(base) is elsewhere


def test_named_scope_nests_is_reusable_and_survives_exceptions():
    scope = named_scope("a")
    with scope, named_scope("b"), scope:
        assert str(source_info.current_name_stack()) == "a/b/a"
    with pytest.raises(ZeroDivisionError), scope:
        1 / 0  # noqa: B018
    assert str(source_info.current_name_stack()) == ""


def test_named_scope_as_decorator_keeps_the_name_and_the_result():
    @named_scope("layer")
    def fun(x, *, y):
        """Doc."""
        return str(source_info.current_name_stack()), x + y

    assert fun(1, y=2) == ("layer", 3)
    assert (fun.__name__, fun.__doc__) == ("fun", "Doc.")


@pytest.mark.parametrize("name", [1, None, b"x"])
def test_named_scope_wants_a_string(name):
    with pytest.raises(TypeError, match="named_scope name argument must be a string"):
        named_scope(name)


def test_name_stacks_belong_to_threads():
    seen = []
    with named_scope("main"):
        thread = threading.Thread(
            target=lambda: seen.append(str(source_info.current_name_stack()))
        )
        thread.start()
        thread.join()
    assert seen == [""]


def test_set_and_reset_name_stack():
    stack = NameStack().extend("given")
    with named_scope("a"):
        with source_info.reset_name_stack(), source_info.transform_name_stack("jvp"):
            assert str(source_info.current_name_stack()) == "jvp()"
        with source_info.set_name_stack(stack):
            assert source_info.current().name_stack is stack
        assert str(source_info.current_name_stack()) == "a"


def test_user_frame_has_the_exact_position():
    def make():
        return [source_info.current(), here()]

    info, line = make()
    frame = source_info.user_frame(info.traceback)
    assert frame.file_name == THIS_FILE
    assert frame.function_name.endswith("has_the_exact_position.<locals>.make")
    assert (frame.start_line, frame.end_line) == (line, line)
    text = "        return [source_info.current(), here()]"
    assert text[frame.start_column : frame.end_column] == "source_info.current()"
    assert source_info.summarize(info) == f"{frame.file_name}:{line}:{frame.start_column} " + (
        f"({frame.function_name})"
    )


def test_user_frames_skip_the_library_and_start_with_the_innermost():
    def inner():
        return internal_call(source_info.current)

    info = internal_call(inner)
    names = [f.function_name for f in source_info.user_frames(info.traceback)]
    test = "test_user_frames_skip_the_library_and_start_with_the_innermost"
    assert names[:4] == ["internal_call", f"{test}.<locals>.inner", "internal_call", test]
    assert "call" not in names
    assert len(source_info.user_frames(info.traceback, limit=2)) == 2
    assert source_info.summarize(info, num_frames=2).count("\n") == 1


def test_register_exclusion_moves_the_user_frame_outwards(monkeypatch):
    monkeypatch.setattr(source_info, "_excluded", list(source_info._excluded))
    monkeypatch.setattr(source_info, "_is_internal_file", {})
    path = "/somewhere/library.py"
    scope: dict = {}
    exec(compile("def make(f):\n    return f()\n", path, "exec"), scope)
    info = scope["make"](source_info.current)
    assert source_info.user_frame(info.traceback).file_name == path
    source_info.register_exclusion(path)
    assert source_info.user_frame(info.traceback).file_name == THIS_FILE
    assert not source_info.is_internal("/somewhere/library.pyx")


def test_no_traceback_is_unknown():
    info = source_info.new_source_info()
    assert source_info.user_frame(info.traceback) is None
    assert source_info.summarize(info) == "unknown"


def test_user_context_attributes_operations_to_the_given_traceback():
    info = source_info.current()
    stack = NameStack().extend("replayed")
    with source_info.user_context(info.traceback, name_stack=stack):
        replayed = source_info.current()
    assert replayed.traceback is info.traceback
    assert replayed.name_stack is stack
    assert source_info.current().traceback is not info.traceback


def test_user_context_notes_the_origin_of_an_error_once():
    info = source_info.current()
    line = here() - 1
    with (
        pytest.raises(ValueError, match="bad") as caught,
        source_info.user_context(info.traceback),
        source_info.user_context(info.traceback),
    ):
        raise ValueError("bad")
    (note,) = caught.value.__notes__
    assert f"{THIS_FILE}:{line}:" in note


@pytest.fixture
def filtering(monkeypatch):
    def set_mode(mode):
        flag = types.SimpleNamespace(value=mode)
        monkeypatch.setattr(configuration, "traceback_filtering", flag)

    return set_mode


def raises_inside_user_code():
    raise KeyError("lost")


@source_info.api_boundary
def entry(fun):
    return internal_call(fun)


def caught(fun, *args):
    try:
        fun(*args)
    except KeyError as e:
        return e
    raise AssertionError("no error")


def frames(tb):
    return [(f.filename == THIS_FILE, f.name) for f in traceback.extract_tb(tb)]


def test_boundary_passes_results_and_names_through():
    assert entry(lambda: 5) == 5
    assert entry.__name__ == "entry"


@pytest.mark.parametrize("mode", ["auto", "quiet_remove_frames"])
def test_quiet_filtering_leaves_the_users_frames_and_one_note(filtering, mode):
    filtering(mode)
    error = caught(entry, lambda: entry(raises_inside_user_code))
    names = [name for _, name in frames(error.__traceback__)]
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
    assert [name for _, name in frames(error.__traceback__)] == [
        "caught", "boundary", "entry", "internal_call", "call", "raises_inside_user_code",
    ]
    assert not hasattr(error, "__notes__")


def test_remove_frames_keeps_the_whole_traceback_as_the_cause(filtering):
    filtering("remove_frames")
    error = caught(entry, raises_inside_user_code)
    assert "boundary" not in [name for _, name in frames(error.__traceback__)]
    assert isinstance(error.__cause__, source_info.UnfilteredStackTrace)
    assert "boundary" in [name for _, name in frames(error.__cause__.__traceback__)]
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
    source_info.filter_exception(error)
    assert not hasattr(error, "__notes__")


def test_replaying_sets_the_source_and_restores_the_thread():
    with named_scope("layer"):
        made = source_info.current()
    with named_scope("outer"):
        with source_info.replaying() as replay:
            replay.source = made
            again = source_info.current()
            assert again.traceback is made.traceback
            assert str(again.name_stack) == "outer/layer"
        with source_info.replaying(transpose=True) as replay:
            replay.source = made
            assert str(source_info.current_name_stack()) == "outer/transpose(layer)"
        assert str(source_info.current_name_stack()) == "outer"
    assert source_info.current().traceback is not made.traceback
