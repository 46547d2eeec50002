"""How often loops run that count, from what is known of their numbers."""

from __future__ import annotations

import pytest

from pyjx.runtime.counted_loops import Carried, Number, trips

i = Carried(0)


def typed(x, name="int32"):
    """Numbers with their type."""
    match x:
        case int():
            return Number(x, name)
        case Carried() | str() | None:
            return x
    return type(x)([typed(y, name) for y in x])


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
    assert trips(typed(test), typed(carried), lambda x: x, lambda x: x) == times


@pytest.mark.parametrize("spelling", ["{}int8", "{}i8", "{}8"])
@pytest.mark.parametrize(("sign", "test", "start", "step", "times"), [
    ("u", ("LT", i, 250), 0, ("add", i, 100), None), ("u", ("LT", i, 250), 0, ("add", i, 85), 3),
    ("u", ("LE", i, 255), 0, ("add", i, 1), None), ("u", ("GE", i, 0), 9, ("sub", i, 1), None),
    ("u", ("GT", i, 0), 9, ("sub", i, 1), 9), ("u", ("NE", i, 255), 0, ("add", i, 1), 255),
    ("", ("LT", i, 100), 0, ("add", i, 50), 2), ("", ("LT", i, 127), 0, ("add", i, 50), None),
    ("", ("GE", i, -128), 0, ("sub", i, 1), None), ("", ("GT", i, -128), 0, ("sub", i, 1), 128)])
def test_what_leaves_the_range_of_its_type_begins_again(spelling, sign, test, start, step, times):
    name = spelling.format(sign or ("s" if spelling == "{}8" else ""))
    assert trips(typed(test, name), [(Number(start, name), typed(step, name))],
                 lambda x: x, lambda x: x) == times


def test_what_does_not_count_is_not_looked_at():
    asked = []

    def known(x):
        asked.append(x)
        return x

    carried = typed([(0, ("add", i, 1)), *[(k, Carried(k)) for k in range(1, 2000)]])
    assert trips(typed(("LT", i, 10)), carried, known, known) == 10
    assert len(asked) < 10
