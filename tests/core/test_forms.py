"""What the forms of a program say in words of their own."""

from __future__ import annotations

import pytest

from pyjx.core.forms import Carried, trips

i = Carried(0)


@pytest.mark.parametrize(("test", "start", "step", "times"), [
    (("LT", i, 10), 0, ("add", i, 3), 4), (("lt", i, 10), 0, ("add", 3, i), 4),
    (("GT", 10, i), 0, ("add", i, 3), 4), (("ge", 10, i), 0, ("add", i, 5), 3),
    (("GT", i, -3), 4, ("subtract", i, 2), 4), (("LE", -2, i), 4, ("add", -2, i), 4),
    (("NE", i, 10), 0, ("add", i, 1), 10), (("ne", 0, i), 8, ("sub", i, 2), 4),
    (("NE", i, 10), 0, ("add", i, 3), None), (("NE", i, 0), 1, ("add", i, 1), None),
    (("LT", i, 10), 10, ("add", i, 1), 0), (("LT", i, 10), 0, ("subtract", 1, i), None),
    (("LT", i, 10), 0, ("add", i, 0), None), (("LT", i, 10), 0, ("add", i, i), None),
    (("EQ", i, 10), 0, ("add", i, 1), None), (("", i, 10), 0, ("add", i, 1), None),
    (("LT", i, 10), 0, ("", i, 1), None), (("LT", Carried(7), 10), 0, ("add", i, 1), None),
    (("LT", i, Carried(1)), 0, ("add", i, Carried(2)), 4), (None, 0, None, None)])
def test_how_often_a_loop_runs(test, start, step, times):
    """However it is written: its number or the limit first, these among what it carries."""
    carried = [(start, step), (11, Carried(1)), (3, Carried(2))]
    assert trips(test, carried, lambda x: x, lambda x: x) == times


def test_what_does_not_count_is_not_looked_at():
    asked = []

    def known(x):
        asked.append(x)
        return x

    carried = [(0, ("add", Carried(0), 1)), *[(k, Carried(k)) for k in range(1, 2000)]]
    assert trips(("LT", Carried(0), 10), carried, known, known) == 10
    assert len(asked) < 10
