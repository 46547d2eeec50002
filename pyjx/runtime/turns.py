"""Work that one thread does for all that need it: tracing a signature, compiling a program."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class _Work:
    __slots__ = ("done", "thread")

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.done = threading.Event()


_lock = threading.Lock()
_working: dict[Hashable, _Work] = {}
_awaited: dict[int, _Work] = {}  # by the thread that waits
_PATIENCE = 60.0  # seconds; then the work is done twice, which costs time only


@contextmanager
def turn(key: Hashable) -> Iterator[None]:
    """Wait until no other thread is within a block of the same key, then run the block.

    The caller looks inside whether the work has been done meanwhile. A thread does not wait for one
    that waits, in the end, for itself: functions that call each other may be traced by two at once.
    """
    me = threading.get_ident()
    mine = None
    while mine is None:
        with _lock:
            work = _working.get(key)
            if work is None:
                mine = _working[key] = _Work(me)
                break
            if _waits_for(work.thread, me):
                break
            _awaited[me] = work
        finished = work.done.wait(_PATIENCE)
        with _lock:
            del _awaited[me]
        if not finished:
            break
    try:
        yield
    finally:
        if mine is not None:
            with _lock:
                del _working[key]
            mine.done.set()


def _waits_for(thread: int, other: int) -> bool:
    """Whether one thread is, or waits for, another. Called with the lock."""
    while thread != other:
        work = _awaited.get(thread)
        if work is None:
            return False
        thread = work.thread
    return True
