"""Avals: interning, fields, what has which aval."""

import copy
import gc
import pickle
import tracemalloc
import weakref

import ml_dtypes
import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core import avals, dtypes
from pyjx.core.avals import (
    AbstractToken,
    ShapedArray,
    abstract_token,
    canonical_shape,
    get_aval,
    is_valid_value,
)
from pyjx.core.meshes import AbstractMesh
from pyjx.core.places import Space
from pyjx.core.primitive import Primitive
from pyjx.core.specs import ManualAxisType, P
from pyjx.jaxlib_api import NamedSharding


def test_equal_avals_are_one_object():
    a = ShapedArray((2, 3), np.float32)
    assert ShapedArray([2, 3], "float32") is a
    assert ShapedArray((np.int64(2), 3), np.dtype("f4")) is a
    assert ShapedArray((2, 3), np.float32, weak_type=False) is a
    assert ShapedArray((2, 3), np.float32, weak_type=True) is not a
    assert ShapedArray((2, 3), np.float16) is not a
    assert ShapedArray(3, np.float32) is ShapedArray((3,), np.float32)
    for again in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert again is a


def test_fields():
    a = ShapedArray((2, 3), jnp.bfloat16, weak_type=True)
    assert (a.shape, a.ndim, a.size, len(a), a.weak_type) == ((2, 3), 2, 6, 2, True)
    assert a.dtype == ml_dtypes.bfloat16
    assert a.strip_weak_type() is ShapedArray((2, 3), jnp.bfloat16)
    assert a.update(shape=(4,)) is ShapedArray((4,), jnp.bfloat16, True)
    assert a.update(dtype=np.int8, weak_type=False) is ShapedArray((2, 3), np.int8)
    assert a.str_short() == "bfloat16[2,3]"
    assert a.str_short(short_dtypes=True) == "bf16[2,3]"
    assert repr(a) == "ShapedArray(bfloat16[2,3], weak_type=True)"
    assert str(ShapedArray((), np.bool_)) == "bool[]"
    with pytest.raises(TypeError, match="unsized"):
        len(ShapedArray((), np.float32))


@pytest.mark.parametrize("bad", [(1.5,), "ab", (None,), 2.0, [[1]]])
def test_bad_shapes(bad):
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
        canonical_shape(bad)


@pytest.mark.parametrize("data", [
    np.zeros(100, int), np.zeros((2, 2), int), jax.numpy.zeros(100, int), jax.numpy.ones((2, 3))])
def test_arrays_of_data_are_no_shapes(data, monkeypatch):
    monkeypatch.setattr(type(jax.numpy.ones(1)), "__iter__", None)  # nothing reads its elements
    with pytest.raises(TypeError) as caught:
        canonical_shape(data)
    shape = ",".join(map(str, data.shape))
    assert str(caught.value) == (
        "Shapes must be 1D sequences of concrete values of integer type, got "
        f"{data.dtype}[{shape}]. Did you mean its .shape?" if data.ndim == 1 else
        "Shapes must be 1D sequences of concrete values of integer type, got "
        f"{data!r}. Did you mean its .shape?")


def test_what_has_axes_and_no_size_is_read_as_a_sequence():
    assert jax.numpy.zeros(memoryview(b"ab")).shape == (97, 98)
    of_data = type("OfData", (), {"ndim": 1})()
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
        jax.numpy.zeros(of_data)


def test_arrays_have_at_most_1000_axes():
    assert jax.eval_shape(lambda: jax.numpy.zeros((1,) * 1000)).ndim == 1000
    with pytest.raises(TypeError, match="Arrays have at most 1000 axes, got 1001 sizes: "):
        jax.eval_shape(lambda: jax.numpy.zeros((1,) * 1001))


def test_tangents():
    assert ShapedArray((2,), np.float16).to_tangent_aval() is ShapedArray((2,), np.float16)
    assert ShapedArray((2,), np.complex64).to_ct_aval().dtype == np.complex64
    for dtype in (np.int32, np.bool_, np.uint8):
        assert ShapedArray((2,), dtype).to_tangent_aval().dtype == dtypes.float0


@pytest.mark.parametrize(("value", "expected"), [
    (True, ShapedArray((), np.bool_)),
    (1, ShapedArray((), np.int32, True)),
    (1.0, ShapedArray((), np.float32, True)),
    (1j, ShapedArray((), np.complex64, True)),
    (np.float64(1), ShapedArray((), np.float32)),
    (np.int8(1), ShapedArray((), np.int8)),
    (np.zeros((2, 0), np.int64), ShapedArray((2, 0), np.int32)),
    (np.zeros(3, ml_dtypes.float8_e4m3fn), ShapedArray((3,), ml_dtypes.float8_e4m3fn)),
    (np.zeros(3, ">f4"), ShapedArray((3,), np.float32)),
    (np.zeros(3, np.longlong), ShapedArray((3,), np.int32)),
    (np.zeros(3, dtypes.float0), ShapedArray((3,), dtypes.float0)),
])
def test_avals_of_values(value, expected):
    assert get_aval(value) is expected
    assert is_valid_value(value)


def test_avals_of_arrays_and_tracers():
    x = jnp.ones((2, 3))
    assert get_aval(x) is ShapedArray((2, 3), np.float32)
    jax.jit(lambda a: (get_aval(a) is get_aval(x) or 1 / 0, a)[1])(x)
    with jax.enable_x64(True):
        assert get_aval(1.0) is ShapedArray((), np.float64, True)
        assert get_aval(np.float64(1)) is ShapedArray((), np.float64)


@pytest.mark.parametrize("value", ["text", None, object(), [1], {}])
def test_values_that_are_none(value):
    assert not is_valid_value(value)
    with pytest.raises(TypeError, match="is not a valid JAX type"):
        get_aval(value)


@pytest.mark.parametrize("dtype", [object, "U3", "S2", "M8[s]", "V4", [("a", "i4")]])
def test_arrays_that_are_no_values(dtype):
    value = np.zeros(2, dtype)
    assert not is_valid_value(value)
    with pytest.raises(TypeError, match="is not a valid JAX array type"):
        get_aval(value)


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([None]), np.zeros(1, "M8[s]"),
                                   np.zeros(1, "g"), np.zeros(1, [("a", "f4")])])
def test_arrays_of_other_dtypes(value):
    with pytest.raises(TypeError, match="not a valid JAX array type"):
        get_aval(value)


def test_token():
    assert isinstance(abstract_token, AbstractToken)
    assert abstract_token.to_tangent_aval() is abstract_token
    assert abstract_token.str_short() == "Tok"


def test_unknown_keywords_are_refused():
    with pytest.raises(TypeError, match="shardnig"):
        ShapedArray((2,), np.float32, shardnig=3)
    with pytest.raises(TypeError, match="dtpye"):
        ShapedArray((2,), np.float32).update(dtpye=np.float16)


def test_placement_is_part_of_the_type():
    plain = ShapedArray((2,), np.float32)
    mesh = AbstractMesh((2,), ("x",))
    for field, value in (("sharding", NamedSharding(mesh, P("x"))),
                         ("manual_axis_type", ManualAxisType(varying={"x"})),
                         ("memory_space", Space.Host)):
        placed = ShapedArray((2,), np.float32, **{field: value})
        assert placed is not plain
        assert placed is ShapedArray((2,), "float32", **{field: value})
        assert getattr(placed, field) == value
        assert placed.update(**{field: None}) is plain is placed.placed(**{field: None})
        assert placed.update(shape=(4,)) is ShapedArray((4,), np.float32, **{field: value})
        assert placed.strip_weak_type() is placed
        assert pickle.loads(pickle.dumps(placed)) is placed
    with pytest.raises(TypeError, match="memory"):
        plain.update(memory=Space.Host)


def test_the_table_holds_avals_weakly():
    aval = ShapedArray((2, 3, 5, 7, 11, 13), np.float32)
    assert ShapedArray([2, 3, 5, 7, 11, 13], "float32") is aval
    assert aval.to_tangent_aval() is aval
    before = len(avals._interned)
    gone = weakref.ref(aval)
    gc.disable()
    try:
        del aval
        avals._latest.clear()
        assert gone() is None
    finally:
        gc.enable()
    assert len(avals._interned) < before


class Size(avals.SymbolicDim):
    """n times a variable."""

    def __init__(self, n):
        self.n = n

    def __mul__(self, k):
        return Size(self.n * k)

    __rmul__ = __mul__

    def __eq__(self, other):
        return type(other) is Size and other.n == self.n

    def __hash__(self):
        return hash(self.n)


def test_symbolic_dimensions():
    aval = ShapedArray((Size(1), 3), np.float32)
    assert aval is ShapedArray([Size(1), np.int32(3)], np.float32)
    assert aval is not ShapedArray((Size(2), 3), np.float32)
    assert aval.size == Size(3)
    assert aval.ndim == 2
    primitive = Primitive("test_flip", shape_rule=lambda x: x.update(shape=x.shape[::-1]))
    assert primitive.out_avals((aval,), {}).shape == (3, Size(1))


def test_what_is_a_shape_does_not_depend_on_what_was_made_before():
    made = ShapedArray((1, 3), np.float32)
    for shape in ((1.0, 3), (1, 3.0)):
        with pytest.raises(TypeError):
            ShapedArray(shape, np.float32)
    assert ShapedArray((1, 3), np.float32) is made is ShapedArray([1, 3], np.float32)


def test_a_sharding_over_no_mesh_is_none():
    plain = ShapedArray((2, 3), np.float32)
    assert ShapedArray((2, 3), np.float32, sharding=plain.sharding) is plain
    assert plain.update(sharding=plain.sharding) is plain


@pytest.mark.parametrize("step", range(5))
def test_an_aval_made_while_an_equal_one_goes_is_the_one(step):
    """As another thread may make it, between any two steps of what forgets the old one."""
    steps, f32 = [], np.dtype(np.float32)

    class Odd(Size):
        def __hash__(self):
            if steps and steps.pop() == step:
                made.append(ShapedArray((Odd(3),), f32))
            return super().__hash__()

        def __eq__(self, other):
            return isinstance(other, Odd)

    made, aval = [], ShapedArray((Odd(3),), f32)
    assert aval is ShapedArray((Odd(3),), f32)
    avals._latest.clear()
    steps += range(5)[::-1]
    del aval
    steps.clear()
    avals._latest.clear()
    assert all(a is ShapedArray((Odd(3),), f32) for a in made)


def test_sizes_of_numpy_take_no_memory_at_each_use():
    def use():
        for _ in range(1000):
            ShapedArray((np.int64(3),), "float32")

    kept = ShapedArray((3,), "float32")
    use()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        use()
        assert tracemalloc.get_traced_memory()[0] - before < 10_000
    finally:
        tracemalloc.stop()
    assert kept is ShapedArray((np.int64(3),), "float32")
