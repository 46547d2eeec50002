"""The array class: what it prints, converts to and refuses. Expected texts are JAX's own."""

import copy
import math
import operator
import pickle
import pydoc

import ml_dtypes
import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core.avals import ShapedArray
from pyjx.runtime.array import Array
from pyjx.runtime.device_put import device_put

pytestmark = pytest.mark.smoke


def f32(x):
    return device_put(np.asarray(x, np.float32))


@pytest.mark.parametrize(("x", "expected"), [
    (f32([0, 1, 2]), "Array([0., 1., 2.], dtype=float32)"),
    (f32(2.5), "Array(2.5, dtype=float32)"),
    (device_put(2.0), "Array(2., dtype=float32, weak_type=True)"),
    (device_put(1 + 2j), "Array(1.+2.j, dtype=complex64, weak_type=True)"),
    (device_put(True), "Array(True, dtype=bool)"),
    (f32(np.ones((2, 3))), "Array([[1., 1., 1.],\n       [1., 1., 1.]], dtype=float32)"),
    (f32(np.zeros((0, 3))), "Array([], shape=(0, 3), dtype=float32)"),
    (f32(np.zeros(0)), "Array([], shape=(0,), dtype=float32)"),
    (device_put(np.ones(3, ml_dtypes.bfloat16)), "Array([1, 1, 1], dtype=bfloat16)"),
    (device_put(np.ones(2, ml_dtypes.int4)), "Array([1, 1], dtype=int4)"),
    (device_put(np.arange(2000)),
     "Array([   0,    1,    2, ..., 1997, 1998, 1999], dtype=int32)"),
    (device_put(np.zeros(20, np.int32)), f"Array([{', '.join('0' * 20)}], dtype=int32)"),
    (device_put(np.zeros(21, np.int32)), f"Array([{', '.join('0' * 21)}],      dtype=int32)"),
    (device_put(np.zeros(24, np.int32)),
     f"Array([{', '.join('0' * 22)},\n       0, 0], dtype=int32)"),
])
def test_repr(x, expected):
    assert repr(x) == expected


def test_repr_follows_print_options():
    with np.printoptions(precision=2, threshold=5, edgeitems=1):
        assert repr(f32(np.linspace(0, 1, 7))) == "Array([0., ..., 1.], dtype=float32)"


def test_large_arrays_are_shown_by_their_type():
    large, small = f32(np.zeros(2**18)), f32(np.zeros(2**18 - 1))
    assert repr(large) == str(large) == "Array(shape=(262144,), dtype=float32)"
    assert repr(small) == "Array([0., 0., 0., ..., 0., 0., 0.], dtype=float32)"
    assert f"{large}" == "[0. 0. 0. ... 0. 0. 0.]"
    large.delete()
    assert str(large) == "Array(shape=(262144,), dtype=float32)"
    bits = device_put(np.zeros((2, 2**19), ml_dtypes.int4))  # a byte each, as they are told
    assert str([bits]) == "[Array(shape=(2, 524288), dtype=int4)]"


def test_str_and_format():
    x, scalar = f32([0, 1, 2]), f32(2.5)
    assert str(x) == f"{x}" == "[0. 1. 2.]"
    assert f"{scalar}" == "2.5"
    assert f"{scalar:.2f}" == "2.50"
    assert f"{device_put(255):x}" == "ff"
    with pytest.raises(TypeError, match="unsupported format string"):
        format(x, ".2f")


def test_attributes():
    x = f32(np.ones((2, 3)))
    assert (x.shape, x.dtype, x.ndim, x.size, x.itemsize, x.nbytes) == (
        (2, 3), np.float32, 2, 6, 4, 24)
    assert x.aval is ShapedArray((2, 3), np.float32)
    assert not x.weak_type and not x.committed
    assert x.is_fully_replicated and x.is_fully_addressable and x.is_ready()
    assert x.on_device_size_in_bytes() == 24
    assert x.devices() == {x.device}
    with pytest.raises(AttributeError, match="'shape'"):
        x.shape = (3, 2)


def test_is_an_array():
    assert isinstance(f32(1), Array)
    assert not isinstance(np.ones(3), Array)
    assert not isinstance(1.0, Array)


def test_tracers_are_arrays():
    from pyjx.core.trace import Tracer

    tracer = object.__new__(Tracer)
    tracer.aval = ShapedArray((), np.float32)
    assert isinstance(tracer, Array)


def test_conversions():
    assert float(f32(2.5)) == 2.5
    assert int(f32(2.5)) == 2
    assert complex(device_put(1 + 2j)) == 1 + 2j
    assert bool(f32(1)) and not bool(f32([0]))
    assert operator.index(device_put(3)) == 3
    assert [10, 20, 30, 40][device_put(3)] == 40
    assert operator.index(device_put(np.array(3, ml_dtypes.int4))) == 3
    assert hex(device_put(17)) == "0x11"
    assert math.sqrt(f32(4)) == 2
    assert type(float(device_put(ml_dtypes.bfloat16(2)))) is float
    assert type(bool(device_put(True))) is bool


@pytest.mark.parametrize(("convert", "error", "text"), [
    (lambda: float(f32([1])), TypeError,
     "Only scalar arrays can be converted to Python scalars; got arr.ndim=1. Its "
     "one number is x.item()."),
    (lambda: int(f32([[1]])), TypeError,
     "Only scalar arrays can be converted to Python scalars; got arr.ndim=2. Its "
     "one number is x.item()."),
    (lambda: complex(f32([1, 2])), TypeError,
     "Only scalar arrays can be converted to Python scalars; got arr.ndim=1. For "
     "each of its elements: x.astype(complex)."),
    (lambda: bool(f32([1, 2])), ValueError,
     "The truth value of an array with more than one element is ambiguous. "
     "Use a.any() or a.all(); to choose for each element use jnp.where(condition, x, y), and to "
     "combine conditions & | ~."),
    (lambda: bool(f32([])), ValueError,
     "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an "
     "array is not empty."),
    (lambda: operator.index(f32(1)), TypeError,
     "Only integer scalar arrays can be converted to a scalar index."),
    (lambda: operator.index(device_put(np.ones(1, int))), TypeError,
     "Only integer scalar arrays can be converted to a scalar index."),
    (lambda: operator.index(device_put(True)), TypeError,
     "Only integer scalar arrays can be converted to a scalar index."),
    (lambda: hash(f32(1)), TypeError, "unhashable type: 'jaxlib._jax.ArrayImpl'"),
    (lambda: len(f32(1)), TypeError, "len() of unsized object"),
    (lambda: iter(f32(1)), TypeError, "iteration over a 0-d array"),
    (lambda: f32([1, 2]).item(), ValueError,
     "can only convert an array of size 1 to a Python scalar"),
    (lambda: f32([1, 2]).item(9), IndexError,
     "Array.item: index 9 is out of bounds for axis 0 with size 2, that of the flat array"),
])
def test_refused_conversions(convert, error, text):
    with pytest.raises(error) as raised:
        convert()
    assert str(raised.value) == text


def test_item_assignment_names_the_cure():
    x = f32([1, 2])
    with pytest.raises(TypeError, match=r"JAX arrays are immutable .* x = x.at\[idx\].set\(y\)"):
        x[0] = 3


def test_item_tolist_tobytes():
    x = f32([[1, 2], [3, 4]])
    assert f32(2.5).item() == 2.5
    assert x.item(1) == x.item(0, 1) == x.item((0, 1)) == 2.0
    assert x.tolist() == [[1, 2], [3, 4]]
    assert x.tobytes() == np.asarray(x).tobytes()


def test_iteration_keeps_weak_type_and_commitment():
    x = f32(np.arange(6).reshape(3, 2))
    rows = list(x)
    assert [r.tolist() for r in rows] == [[0, 1], [2, 3], [4, 5]]
    assert not any(r.committed for r in rows)
    assert [r.tolist() for r in reversed(x)] == [[4, 5], [2, 3], [0, 1]]
    assert all(r.committed for r in device_put(x, x.device))
    assert [type(r) for r in f32([1, 2])] == [type(x)] * 2
    assert list(f32(np.zeros((0, 2)))) == []


def test_numpy_view_is_read_only_and_shares_memory():
    x = f32([1, 2, 3])
    view = np.asarray(x)
    assert not view.flags.writeable
    assert view.ctypes.data == x.unsafe_buffer_pointer()
    assert np.array(x).flags.writeable
    assert np.asarray(x, dtype=np.int32).tolist() == [1, 2, 3]
    assert np.array(x, copy=False).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.array(x, dtype=int, copy=False)


def test_dlpack():
    x = f32([1, 2, 3])
    assert x.__dlpack_device__() == (1, 0)
    shared = np.from_dlpack(x)
    assert shared.ctypes.data == x.unsafe_buffer_pointer()
    with pytest.raises(BufferError, match=r"is on device \(1, 0\)"):
        x.__dlpack__(dl_device=(2, 0))


def test_copies():
    x = device_put(2.0)
    for y in (copy.copy(x), copy.deepcopy(x)):
        assert y is not x and float(y) == 2.0 and y.weak_type
        assert y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


@pytest.mark.parametrize("x", [
    device_put(2.0), device_put(np.arange(6).reshape(2, 3)),
    device_put(np.ones(3, ml_dtypes.bfloat16)), device_put(np.zeros((0, 2), bool)),
])
def test_pickle(x):
    y = pickle.loads(pickle.dumps(x))
    assert y.aval is x.aval
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("use", [
    repr, str, np.asarray, list, lambda x: x.item(), lambda x: x.devices(), copy.copy,
    pickle.dumps, lambda x: x.addressable_shards, lambda x: x.is_ready(),
    lambda x: x.unsafe_buffer_pointer(), lambda x: x.copy_to_host_async(),
    lambda x: x.__dlpack__(),
])
def test_deleted(use):
    x = f32([0, 1, 2])
    x.delete()
    assert x.is_deleted() and x.shape == (3,)
    with pytest.raises(RuntimeError) as raised:
        use(x)
    assert str(raised.value) == "Array has been deleted with shape=float32[3]."


def test_shards_of_one_device():
    x = f32([0, 1, 2])
    (shard,) = x.addressable_shards
    assert repr(shard) == ("Shard(device=CpuDevice(id=0), index=(slice(None, None, None),), "
                           "replica_id=0, data=[0. 1. 2.])")
    assert x.global_shards[0].data.tolist() == [0, 1, 2]
    assert x.addressable_data(0).tolist() == [0, 1, 2]


def test_shards_on_a_mesh_of_one_device():
    mesh = jax.sharding.Mesh(jax.devices()[:1], "a")
    whole = jax.NamedSharding(mesh, jax.P("a"))
    x = jax.device_put(np.arange(3), whole)
    for y in (x, jax.jit(lambda x: x + x)(x), jax.jit(jnp.sin, out_shardings=whole)(x)):
        assert y.sharding == whole
        for shards in (y.addressable_shards, y.global_shards):
            (shard,) = shards
            assert shard.device is jax.devices()[0] and shard.replica_id == 0
            np.testing.assert_array_equal(shard.data, y)
        np.testing.assert_array_equal(y.addressable_data(0), y)
        again = jax.make_array_from_single_device_arrays(y.shape, whole, [shard.data])
        np.testing.assert_array_equal(again, y)


def test_keys_are_made_of_parts():
    mesh = jax.sharding.Mesh(jax.devices()[:1], "a")
    for key, where in ((jax.random.key(0), jax.P()), (jax.random.split(jax.random.key(1)),
                                                      jax.P("a"))):
        sharding = jax.NamedSharding(mesh, where)
        made = jax.make_array_from_single_device_arrays(
            key.shape, sharding, [key.addressable_data(0)])
        assert made.sharding == sharding and made.dtype == key.dtype
        assert (made == key).all()


def test_an_array_on_a_mesh_of_one_device_is_on_one_device():
    mesh = jax.sharding.Mesh(jax.devices()[:1], "a")
    x = jax.jit(jnp.sin)(jax.device_put(f32([0, 1, 2]), jax.NamedSharding(mesh, jax.P("a"))))
    assert x.device is jax.devices()[0]
    assert x.__dlpack_device__() == (1, 0)
    np.testing.assert_array_equal(np.from_dlpack(x), x)
    np.testing.assert_array_equal(jnp.from_dlpack(x), x)


def test_dlpack_device_can_be_pickled():
    device = f32([0, 1, 2]).__dlpack_device__()
    assert pickle.loads(pickle.dumps(device)) == device == (1, 0)
    assert device[0].name == "kDLCPU"


def test_the_class_that_users_name_shows_what_arrays_have():
    for name in ("at", "shape", "dtype", "sum", "reshape", "tolist", "sharding", "T"):
        attribute = getattr(jax.Array, name)
        assert attribute.__doc__ and "attrgetter" not in attribute.__doc__
    assert jax.Array.__doc__.startswith("The type of arrays")
    assert jax.Array.at is jax.numpy.ndarray.at
    text = pydoc.render_doc(jax.Array, renderer=pydoc.plaintext)
    assert "The sizes of its axes, a tuple of ints." in text and "tolist(" in text
