"""Records: tuples with named fields."""

from __future__ import annotations

import copy
import pickle

import pytest

from pyjx.core.records import Record


class Point(Record):
    """A point."""

    x: int
    y: int = 0

    def moved(self, by: int) -> Point:
        return self._replace(x=self.x + by)


def test_fields_by_position_by_name_and_by_default():
    assert Point(1, 2) == Point(1, y=2) == Point(y=2, x=1) == Point._make([1, 2]) == (1, 2)
    assert Point(1) == Point(x=1) == (1, 0)
    assert Point(1, 2).x == 1 and Point(1, 2).y == 2
    x, y = Point(3, 4)
    assert (x, y) == (3, 4)
    assert hash(Point(1, 2)) == hash((1, 2))


def test_what_named_tuples_have():
    p = Point(1, 2)
    assert Point._fields == ("x", "y") and Point._field_defaults == {"y": 0}
    assert p._asdict() == {"x": 1, "y": 2}
    assert p._replace(y=3) == (1, 3) and type(p._replace(y=3)) is Point
    assert p.moved(2) == Point(3, 2)
    assert repr(p) == "Point(x=1, y=2)"
    match p:
        case Point(a, b):
            assert (a, b) == (1, 2)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy,
                                    lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(copied):
    assert copied(Point(1, 2)) == Point(1, 2) and type(copied(Point(1, 2))) is Point


@pytest.mark.parametrize("args, kwargs", [
    ((), {}), ((1, 2, 3), {}), ((1,), {"x": 2}), ((1,), {"z": 2}), ((), {"y": 1}),
    ((1, 2), {"y": 3}), ((1, 2), {"z": 3}),
])
def test_wrong_values(args, kwargs):
    with pytest.raises(TypeError, match="Point takes a value for each of x, y; got"):
        Point(*args, **kwargs)


def test_fields_are_read_only():
    with pytest.raises(AttributeError):
        Point(1).x = 2
