"""Which frames of a traceback are the user's, and their positions."""

import sys

from pyjx.core import frames, source_info

THIS_FILE = __file__


def here(depth: int = 1) -> int:
    return sys._getframe(depth).f_lineno


def internal_call(fun, *args):
    """Calls `fun` from a frame that counts as the library's own."""
    file_name = frames.__file__.replace("core", "fake")
    scope: dict = {}
    source = "def call(fun, *args):\n    return fun(*args)\n"
    exec(compile(source, file_name, "exec"), scope)
    return scope["call"](fun, *args)


def test_user_frame_has_the_exact_position():
    def make():
        return [source_info.current(), here()]

    info, line = make()
    frame = frames.user_frame(info.traceback)
    assert frame.file_name == THIS_FILE
    assert frame.function_name.endswith("has_the_exact_position.<locals>.make")
    assert (frame.start_line, frame.end_line) == (line, line)
    text = "        return [source_info.current(), here()]"
    assert text[frame.start_column : frame.end_column] == "source_info.current()"


def test_user_frames_skip_the_library_and_start_with_the_innermost():
    def inner():
        return internal_call(source_info.current)

    info = internal_call(inner)
    names = [f.function_name for f in frames.user_frames(info.traceback)]
    test = "test_user_frames_skip_the_library_and_start_with_the_innermost"
    assert names[:4] == ["internal_call", f"{test}.<locals>.inner", "internal_call", test]
    assert "call" not in names
    assert len(frames.user_frames(info.traceback, limit=2)) == 2


def test_register_exclusion_moves_the_user_frame_outwards(monkeypatch):
    monkeypatch.setattr(frames, "excluded", frames.Exclusions(frames.excluded))
    monkeypatch.setattr(frames, "_is_internal_file", {})
    path = "/somewhere/library.py"
    scope: dict = {}
    exec(compile("def make(f):\n    return f()\n", path, "exec"), scope)
    info = scope["make"](source_info.current)
    assert frames.user_frame(info.traceback).file_name == path
    frames.register_exclusion(path)
    assert frames.user_frame(info.traceback).file_name == THIS_FILE
    assert not frames.is_internal("/somewhere/library.pyx")
    frames.register_exclusion(path)  # by another name of this function, say
    frames.excluded.remove(path)
    assert frames.user_frame(info.traceback).file_name == path
    frames.excluded[-1:] = [path]
    assert frames.user_frame(info.traceback).file_name == THIS_FILE
