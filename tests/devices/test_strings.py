"""Arrays of strings, on devices and back."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.sharding import AxisType, NamedSharding, SingleDeviceSharding
from pyjx.sharding import PartitionSpec as P

if not hasattr(np.dtypes, "StringDType"):
    pytest.skip("NumPy 1 has no such arrays", allow_module_level=True)


STRINGS = np.array([["one", "two"], ["a", "béä" * 30]], "T")


@pytest.mark.parametrize("put", [
    jax.device_put, lambda x, where: jnp.asarray(x, device=where),
    lambda x, where: jnp.array(x, dtype=x.dtype, device=where),
    lambda x, where: jax.device_put({"a": x}, where)["a"],
])
def test_arrays_of_strings_on_devices(put):
    mesh = jax.make_mesh((2,), ("a",), axis_types=(AxisType.Auto,))
    places = [jax.devices()[1], SingleDeviceSharding(jax.devices()[2]),
              NamedSharding(mesh, P("a")), NamedSharding(mesh, P(None, "a")),
              NamedSharding(mesh, P())]
    for first in places:
        x = put(STRINGS, first)
        assert x.shape == (2, 2) and x.dtype == STRINGS.dtype and x.committed
        assert x.tolist() == jax.device_get(x).tolist() == np.asarray(x).tolist() == \
            STRINGS.tolist()
        assert jax.device_get(x).dtype == STRINGS.dtype
        if isinstance(first, NamedSharding):
            assert x.sharding == first
        for second in places:
            there = jax.device_put(x, second)
            assert there.tolist() == STRINGS.tolist()
            if isinstance(second, NamedSharding):
                assert there.sharding.spec == second.spec
    cut = put(STRINGS, places[2])
    assert [s.data.tolist() for s in cut.addressable_shards] == [
        STRINGS[:1].tolist(), STRINGS[1:].tolist()]
    assert repr(put(STRINGS[0], places[0])) == "Array(['one', 'two'], dtype=StringDType128)"


def test_arrays_of_strings_of_parts():
    mesh = jax.make_mesh((2,), ("a",), axis_types=(AxisType.Auto,))
    cut = NamedSharding(mesh, P("a"))
    parts = [jax.device_put(STRINGS[i:i + 1], d) for i, d in enumerate(jax.devices()[:2])]
    for x in (jax.make_array_from_callback((2, 2), cut, lambda i: STRINGS[i]),
              jax.make_array_from_single_device_arrays((2, 2), cut, parts)):
        assert x.tolist() == STRINGS.tolist()
    assert [str(s) for s in jax.device_put(STRINGS[0], jax.devices()[0])] == ["one", "two"]


@pytest.mark.parametrize("dtype, name", [
    (jnp.bfloat16, "bfloat16"), (float, "float32"), (int, "int32"), ("complex64", "complex64")])
def test_strings_are_no_numbers(dtype, name):
    device = jax.devices()[0]
    for make in (jnp.asarray, jnp.array):
        with pytest.raises(TypeError, match=f"Cannot make an array with dtype {name} from an "
                                            "object with dtype StringDType"):
            make(STRINGS, dtype=dtype, device=device)
    x = jax.device_put(STRINGS, device)
    for f in (lambda: x + x, lambda: x == x, lambda: x[0], lambda: jnp.sin(x), lambda: x.reshape(4),
              lambda: x.astype(dtype), lambda: jnp.zeros_like(x), lambda: jnp.stack([x, x])):
        with pytest.raises(TypeError):
            f()
    for y in (x, STRINGS):
        for program in (jax.jit(lambda y: y), jax.grad(lambda y: 1.0)):
            with pytest.raises(TypeError):
                program(y)


def test_strings_go_to_cpu_devices_that_are_named():
    for put in (jax.device_put, jnp.asarray, jnp.array):
        with pytest.raises(TypeError, match="can only be sharded to CPU devices"):
            put(STRINGS)
    with pytest.raises(TypeError, match=r"na_object=None. is not a valid JAX array"):
        jax.device_put(np.array([None], np.dtypes.StringDType(na_object=None)), jax.devices()[0])
    with pytest.raises(TypeError, match="Arrays of no strings"):
        jax.device_put(STRINGS[:0], jax.devices()[0])
