"""Records: tuples with named fields."""

from __future__ import annotations

import copy
import pickle
from unittest import mock

import pytest

import pyjx as jax
from pyjx.core.records import Alike, Record, of_field


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


def test_fields_have_words_of_their_own():
    assert Point.y.__doc__ == "Field 1."
    assert of_field("aval.shape").__doc__ == "`self.aval.shape`."


class Named(Alike):
    __slots__ = ("name",)

    def __init__(self, name, *rest):
        self.name = name
        for slot, value in zip(type(self).__slots__, rest, strict=False):
            setattr(self, slot, value)


class Sized(Named):
    __slots__ = ("size",)


class Bare(Named):
    pass


class Nothing(Alike):
    __slots__ = ()


class Keyed(Alike):
    @property
    def _key(self):
        return self.shown


def test_alike_objects_have_one_class_and_equal_slots():
    assert Named(1) == Named(1) and hash(Named(1)) == hash(Named(1))
    assert Named(1) != Named(2) and Named(1) != Bare(1) and Bare(1) != Bare(2)
    assert Sized(1, 2) == Sized(1, 2) and hash(Sized(1, 2)) == hash(Sized(1, 2))
    assert Sized(1, 2) != Sized(0, 2) and Sized(1, 2) != Sized(1, 0)
    assert Nothing() == Nothing() and len({Nothing(), Nothing()}) == 1
    one, other = Keyed(), Keyed()
    one.shown, other.shown, other.hidden = 1, 1, 2
    assert one == other


def test_strangers_may_say_that_they_are_equal():
    assert Named(1) == mock.ANY and Named(1) != 1
    assert jax.extend.random.PRNGSpec(None) == mock.ANY


def test_objects_that_would_all_be_equal_are_refused():
    with pytest.raises(TypeError, match=r"^Lost has neither slots nor a _key to be compared by"):
        type("Lost", (Alike,), {})
    with pytest.raises(TypeError, match=r"^Lost has neither slots nor a _key"):
        type("Lost", (Nothing,), {})
