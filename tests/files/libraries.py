"""Files of several kinds, each written and read by a function: of the package that is jax here."""

import importlib.util
import json
import os
import pickle
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable

TREE = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.arange(3, dtype=np.int32)}


def tree():
    return jax.tree_util.tree_map(jnp.asarray, TREE)


def write_npy(path):
    jnp.save(f"{path}.npy", tree()["w"])


def read_npy(path):
    return {"w": jnp.load(f"{path}.npy"), "n": TREE["n"]}


def write_npz(path):
    jnp.savez(f"{path}.npz", **tree())


def read_npz(path):
    return dict(jnp.load(f"{path}.npz"))


def write_objects(path):
    np.save(f"{path}.npy", np.array([tree()], dtype=object), allow_pickle=True)


def read_objects(path):
    return np.load(f"{path}.npy", allow_pickle=True)[0]


def write_joblib(path):
    import joblib
    joblib.dump(tree(), path)


def read_joblib(path):
    import joblib
    return joblib.load(path)


def write_safetensors(path):
    from safetensors import flax
    flax.save_file(tree(), path)


def read_safetensors(path):
    from safetensors import flax
    return flax.load_file(path)


def write_msgpack(path):
    from flax import serialization
    Path(path).write_bytes(serialization.to_bytes(tree()))


def read_msgpack(path):
    from flax import serialization
    return serialization.from_bytes(tree(), Path(path).read_bytes())


def write_orbax(path):
    from orbax import checkpoint
    with checkpoint.StandardCheckpointer() as writer:
        writer.save(path, tree())


def read_orbax(path):
    from orbax import checkpoint
    with checkpoint.StandardCheckpointer() as reader:
        return reader.restore(path)


def write_executable(path):
    compiled = jax.jit(lambda x: x + 1).lower(jnp.ones(3)).compile()
    Path(path).write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))


def read_executable(path):
    loaded = serialize_executable.deserialize_and_load(*pickle.loads(Path(path).read_bytes()))
    return {"w": TREE["w"], "n": (loaded(jnp.arange(3.0)) - 1).astype("int32")}


# Which module each kind needs.
KINDS = {"npy": "numpy", "npz": "numpy", "objects": "numpy", "joblib": "joblib",
         "safetensors": "safetensors", "msgpack": "flax", "orbax": "orbax",
         "executable": "numpy"}


def check(kind, path):
    """What is wrong with a file; nothing if it reads as it should."""
    try:
        found = globals()[f"read_{kind}"](path)
        assert found.keys() == TREE.keys(), found
        for name, wanted in TREE.items():
            assert found[name].dtype == wanted.dtype
            np.testing.assert_array_equal(found[name], wanted)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    what, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    here = [kind for kind, module in KINDS.items() if importlib.util.find_spec(module)]
    if what == "write":
        for kind in here:
            globals()[f"write_{kind}"](f"{folder}/{kind}")
    else:
        print(json.dumps({kind: check(kind, f"{folder}/{kind}") for kind in here}))
