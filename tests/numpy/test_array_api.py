"""What the namespace says of itself, and exchange of arrays through DLPack."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp


def test_namespace_info():
    info = jnp.__array_namespace_info__()
    assert info.default_device() is None
    assert info.devices() == (None, *jax.devices())
    assert info.capabilities() == {
        "boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}
    defaults = {"real floating": "float32", "complex floating": "complex64", "integral": "int32",
                "indexing": "int32"}
    assert info.default_dtypes(device=jax.devices()[0]) == {
        kind: np.dtype(name) for kind, name in defaults.items()}
    assert set(info.dtypes()) == {"bool", "int8", "int16", "int32", "uint8", "uint16", "uint32",
                                  "float32", "complex64"}
    assert set(info.dtypes(kind="real floating")) == {"float32"}
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {"bool", "complex64"}
    assert info.dtypes(kind=()) == {}
    with pytest.raises(ValueError, match="Unrecognized kind"):
        info.dtypes(kind="no")
    with jax.enable_x64(True):
        assert set(info.dtypes(kind="numeric")) > {"int64", "uint64", "float64", "complex128"}
        assert info.default_dtypes()["integral"] == "int64"
    x = jnp.ones(2)
    assert x.__array_namespace__(api_version=jnp.__array_api_version__) is jnp
    with pytest.raises(ValueError, match="is not available; available versions are"):
        x.__array_namespace__(api_version="2021.12")


def test_dlpack():
    x = np.arange(3, dtype=np.float32)
    for copy in (None, True, False):
        assert jax.dlpack.from_dlpack(x, copy=copy).tolist() == [0, 1, 2]
    on = jax.dlpack.from_dlpack(x, jax.devices()[0])
    assert on.devices() == {jax.devices()[0]}
    assert jax.dlpack.from_dlpack(np.arange(3)).dtype == "int32"
    assert jax.dlpack.from_dlpack(np.arange(3.0)).dtype == "float32"
    with pytest.raises(TypeError, match="must have __dlpack__ and __dlpack_device__ methods"):
        jax.dlpack.from_dlpack(3)
    supported = ["bool", "int8", "uint64", "bfloat16", "float16", "complex128"]
    assert all(map(jax.dlpack.is_supported_dtype, supported))
    assert not any(map(jax.dlpack.is_supported_dtype, ["int4", "float8_e4m3fn", "str", "no"]))


@pytest.mark.parametrize(("name", "instead"), [
    ("device_buffer", r"arr\.addressable_data"), ("device_buffers", "addressable_shards")])
def test_attributes_that_are_no_more(name, instead):
    with pytest.raises(AttributeError, match=f"has been deprecated. Use .*{instead}"):
        getattr(jnp.ones(2), name)


def test_methods_take_their_arguments_by_keyword():
    x = jnp.ones(2)
    assert x.__array__(dtype="float64", context=None, copy=True).dtype == "float64"
    assert jnp.float32(1.5).__format__(format_spec=".1f") == "1.5"
    with pytest.raises(TypeError, match="JAX arrays are immutable"):
        x.__setitem__(i=0, x=1)
