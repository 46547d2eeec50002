"""Source information: where an equation was made."""

import sys

import pytest

from pyjx.core import frames, source_info
from pyjx.core.name_stack import current_name_stack, named_scope

THIS_FILE = __file__


def here(depth: int = 1) -> int:
    return sys._getframe(depth).f_lineno


def test_a_summary_names_file_line_column_and_function():
    info, line = source_info.current(), here()
    (frame,) = frames.user_frames(info.traceback, limit=1)
    summary = source_info.summarize(info)
    assert summary.startswith(f"{THIS_FILE}:{line}:")
    assert summary.endswith(f":{frame.start_column} ({frame.function_name})")
    assert source_info.summarize(info, num_frames=2).count("\n") == 1


def test_no_traceback_is_unknown():
    info = source_info.no_source_info
    assert frames.user_frame(info.traceback) is None
    assert source_info.summarize(info) == "unknown"


def test_replaying_sets_the_source_and_restores_the_thread():
    with named_scope("layer"):
        made = source_info.current()
    with named_scope("outer"):
        with source_info.replaying() as replay:
            replay.source = made
            again = source_info.current()
            assert again.traceback is made.traceback
            assert str(again.name_stack) == "outer/layer"
        with source_info.replaying(transform="transpose") as replay:
            replay.source = made
            assert str(current_name_stack()) == "outer/transpose(layer)"
        with named_scope("around") as around, named_scope("layer"):
            made = source_info.current()
        with source_info.replaying(around, "transpose") as replay:
            replay.source = made
            assert str(current_name_stack()) == "outer/transpose(layer)"
        assert str(current_name_stack()) == "outer"
    assert source_info.current().traceback is not made.traceback


@pytest.mark.parametrize("pinned", [False, True])
def test_what_has_no_place_gets_that_of_the_operation_around(pinned):
    made = source_info.current()
    with source_info.nowhere():
        nameless = source_info.current()
        with source_info.replaying() as replay:
            replay.source = made
            assert source_info.current().traceback is made.traceback
            (replay.pin if pinned else lambda info: setattr(replay, "source", info))(nameless)
            assert source_info.current().traceback is None
    assert nameless.traceback is None
    with source_info.replaying() as outer:
        (outer.pin if pinned else lambda info: setattr(outer, "source", info))(made)
        with source_info.replaying() as replay:
            replay.source = nameless
            assert source_info.current().traceback is made.traceback
            replay.pin(nameless)
            assert source_info.current().traceback is made.traceback
    assert frames.user_frame(source_info.current().traceback) is not None


@pytest.mark.parametrize("pinned", [False, True])
def test_an_error_while_replaying_notes_the_origin_of_the_equation_once(pinned):
    first, info = source_info.current(), source_info.current()
    line = here() - 1

    def replay_and_fail():
        with source_info.replaying() as replay:
            for made in (info, first, info):
                if pinned:
                    replay.pin(made)
                else:
                    replay.source = made
            raise ValueError("bad")

    with (
        pytest.raises(ValueError, match="bad") as caught,
        source_info.replaying(),
    ):
        replay_and_fail()
    (note,) = caught.value.__notes__
    column = frames.user_frame(info.traceback).start_column
    assert f"{THIS_FILE}:{line}:{column} " in note
