"""Arrays in files: specs as JAX makes them, and arrays that come back as they were."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.experimental.array_serialization import pytree_serialization as pytrees
from pyjx.experimental.array_serialization import pytree_serialization_utils as structures
from pyjx.experimental.array_serialization import serialization, tensorstore_impl

X = jnp.arange(12.0).reshape(3, 4)
HERE = jax.sharding.SingleDeviceSharding(jax.devices()[0])
FILE = {"driver": "file", "path": "/tmp/a"}
REGULAR = {"name": "regular", "configuration": {"chunk_shape": [3, 4]}}


@pytest.fixture
def tensorstore():
    return pytest.importorskip("tensorstore")


@pytest.mark.parametrize(("spec", "expected"), [
    (lambda: serialization.get_tensorstore_spec("/tmp/a/b"),
     {"driver": "zarr", "kvstore": {"driver": "file", "path": "/tmp/a/b"}}),
    (lambda: serialization.get_tensorstore_spec("/tmp/a/b", ocdbt=True),
     {"driver": "zarr", "kvstore": {"driver": "ocdbt", "base": FILE, "path": "b"}}),
    (lambda: serialization.get_tensorstore_spec("/tmp/a/b", ocdbt=True, process_idx=3, arr=X,
                                                driver="zarr3"),
     {"driver": "zarr3", "kvstore": {"driver": "ocdbt", "base": {
         "driver": "file", "path": "/tmp/a/process_3"}, "path": "b"},
      "metadata": {"codecs": [], "shape": (3, 4), "data_type": "float32", "chunk_grid": REGULAR}}),
    (lambda: serialization.get_tensorstore_spec("gs://bucket/x/y"),
     {"driver": "zarr", "kvstore": {"driver": "gcs", "bucket": "bucket", "path": "x/y"}}),
    (lambda: serialization.get_tensorstore_spec("s3://bucket/x/y", ocdbt=True),
     {"driver": "zarr", "kvstore": {"driver": "ocdbt", "base": {
         "driver": "s3", "bucket": "bucket", "path": "x"}, "path": "y"}}),
    (lambda: tensorstore_impl.get_tensorstore_spec("/tmp/a/b"),
     {"driver": "zarr3", "kvstore": {"driver": "ocdbt", "base": FILE, "path": "b"}}),
    (lambda: tensorstore_impl.get_tensorstore_spec("/tmp/a/b", process_idx=3, arr=X),
     {"driver": "zarr3", "kvstore": {"driver": "ocdbt", "base": {
         "driver": "file", "path": "/tmp/a/process_3"}, "path": "b"},
      "metadata": {"codecs": [], "shape": (3, 4), "data_type": "float32", "chunk_grid": REGULAR}}),
    (lambda: tensorstore_impl.get_tensorstore_spec("/tmp/a/b", arr=X, driver="zarr"),
     {"driver": "zarr", "kvstore": {"driver": "ocdbt", "base": FILE, "path": "b"},
      "metadata": {"compressor": {"id": "zstd"}, "shape": (3, 4), "chunks": [3, 4]}}),
])
def test_specs(spec, expected):
    assert spec() == expected


def test_what_specs_are_of():
    spec = tensorstore_impl.get_tensorstore_spec("/tmp/a/b", arr=X)
    with pytest.raises(ValueError, match="should be absolute"):
        tensorstore_impl.get_tensorstore_spec("relative/b")
    tensorstore_impl.verify_tensorstore_spec(spec, X, "/tmp/a", True)
    for other, array, match in ((spec, jnp.ones(3), "doesn't match"),
                                ({}, X, "Expected ocdbt driver")):
        with pytest.raises(ValueError, match=match):
            tensorstore_impl.verify_tensorstore_spec(other, array, "/tmp/a", True)
    assert serialization.is_remote_storage({"driver": "zarr", "kvstore": {"driver": "gcs"}})
    assert not serialization.is_remote_storage(spec)
    assert tensorstore_impl.merge_nested_ts_specs({"a": {"b": 1}, "c": 2}, {"a": {"d": 3}}) == {
        "a": {"d": 3}, "c": 2, "kvstore": {}}
    assert tensorstore_impl.chunk_shape((1024, 1024), 4, 1 << 20) == [512, 512]


def test_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "tensorstore", None)
    with pytest.raises(ImportError, match="pip install tensorstore"):
        serialization.run_serialization([X], [serialization.get_tensorstore_spec(tmp_path / "x")])


def test_structures():
    tree = {"a": ["x", None], "b": ("y",)}
    assert structures.deserialize_pytreedef(structures.serialize_pytreedef(tree)) == tree
    with pytest.raises(ValueError, match="another package"):
        structures.deserialize_pytreedef({"__jax_pytreedef_repr": ""})
    with pytest.raises(ValueError, match=r"either None or jax\.Array-like"):
        pytrees.save({"a": "text"}, "/tmp/nowhere")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "complex64", "bool",
                                   "float8_e4m3fn", "uint8"])
def test_arrays_come_back(tensorstore, tmp_path, dtype):
    x = X.astype(dtype)
    manager = serialization.GlobalAsyncCheckpointManager()
    done = []
    manager.serialize_with_paths([x, X], [f"{tmp_path}/x", f"{tmp_path}/y"],
                                 on_commit_callback=lambda: done.append(1))
    manager.wait_until_finished()
    found, other = manager.deserialize_with_paths([HERE, HERE], [f"{tmp_path}/x", f"{tmp_path}/y"])
    assert done == [1] and found.dtype == x.dtype
    np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(other, X)


def test_other_shapes_and_dtypes(tensorstore, tmp_path):
    spec = serialization.get_tensorstore_spec(tmp_path / "x")
    serialization.run_serialization([X], [spec])
    found, = serialization.run_deserialization([HERE], [spec], [(5, 3)], [jnp.bfloat16])
    np.testing.assert_array_equal(found, np.pad(np.asarray(X)[:, :3], [(0, 2), (0, 0)]))
    assert found.dtype == jnp.bfloat16


def test_errors_come_when_one_waits(tensorstore, tmp_path):
    (tmp_path / "file").write_text("")
    manager = serialization.GlobalAsyncCheckpointManager()
    with pytest.raises(ValueError, match="file"):
        manager.serialize_with_paths([X], [f"{tmp_path}/file/x"])
        manager.wait_until_finished()
    manager.check_for_errors()


def test_pytrees_come_back(tensorstore, tmp_path):
    tree = {"a": X, "b": [jnp.arange(5, dtype=jnp.bfloat16), jnp.int32(3)], "c": None}
    pytrees.save(tree, tmp_path / "t")
    types = pytrees.load_pytreedef(tmp_path / "t")
    assert types["b"][0] == jax.ShapeDtypeStruct((5,), jnp.bfloat16) and types["c"] is None
    found = pytrees.load(tmp_path / "t", HERE)
    jax.tree.map(np.testing.assert_array_equal, found, tree)
    part = pytrees.load(tmp_path / "t", HERE, mask={"a": True, "b": False, "c": True})
    assert part["b"] == [None, None]
    with pytest.raises(ValueError, match="overwrite=False"):
        pytrees.save(tree, tmp_path / "t", overwrite=False)
    pytrees.save({"a": X + 1}, tmp_path / "t")
    np.testing.assert_array_equal(pytrees.load(tmp_path / "t", HERE)["a"], X + 1)
    with pytest.raises(AssertionError, match="does not exist"):
        pytrees.load(tmp_path / "nothing", HERE)
    future = pytrees.nonblocking_save(tree, tmp_path / "u")
    assert future.result() is None and future.done()
    later = pytrees.nonblocking_load(tmp_path / "u", HERE)
    assert later.pytree["a"].shape == (3, 4)
    np.testing.assert_array_equal(later.result()["a"], X)
