"""Objects of which there is one for each key."""

import gc
import threading
import weakref

from pyjx.interning import Interned


class Made:
    def __init__(self, *key):
        self.key = key


def test_all_threads_get_the_same_object():
    table, barrier, found = Interned(), threading.Barrier(8), []

    def ask():
        barrier.wait(30)
        found.append([table.of((i,), Made) for i in range(200)])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert all(a is b for objects in found for a, b in zip(objects, found[0], strict=True))


def test_what_nobody_holds_goes():
    table = Interned()
    gone = weakref.ref(table.of((1, 2), Made))
    gc.collect()
    assert gone() is None
    kept = table.of((1, 2), Made)
    assert kept.key == (1, 2) and table.of((1, 2), Made) is kept
