"""Compiled programs as bytes."""

import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import serialize_executable

ROOT = Path(jax.__file__).parents[1]
X = np.arange(3, dtype=np.float32)


def compiled(fun, *args):
    return jax.jit(fun).lower(*args).compile()


def again(program):
    return serialize_executable.deserialize_and_load(*serialize_executable.serialize(program))


def test_it_runs_again():
    table = jnp.arange(100.0)
    program = compiled(lambda x, y: {"a": x + y + table[:3], "unused": y}, X, 2.0)
    loaded = again(program)
    np.testing.assert_array_equal(loaded(X, 2.0)["a"], 2 * X + 2)
    assert loaded.in_tree == program.in_tree and loaded.out_tree == program.out_tree
    assert loaded.args_info == program.args_info and loaded.in_avals == program.in_avals
    assert loaded.out_info == program.out_info
    assert loaded.as_text().startswith("HloModule")
    with pytest.raises(TypeError, match=r"'x' compiled with float32.3. and called with float32.4."):
        loaded(np.ones(4, np.float32), 2.0)
    with pytest.raises(TypeError, match="input pytree"):
        loaded(X)


def test_what_the_disk_cache_had_and_what_was_read():
    def fun(x):
        return jnp.cumsum(jnp.sin(x) * 2 + x)

    wanted = compiled(fun, X)(X)
    jax.clear_caches()
    program = compiled(fun, X)
    np.testing.assert_array_equal(again(program)(X), wanted)
    np.testing.assert_array_equal(again(again(program))(X), wanted)


def test_keys_donation_and_static_arguments():
    key = jax.random.key(1)
    loaded = again(compiled(lambda k: jax.random.split(k), key))
    assert (loaded(key) == jax.random.split(key)).all()
    program = jax.jit(lambda x, n: x * n, static_argnums=1, donate_argnums=0).lower(X, 3).compile()
    loaded = again(program)
    assert loaded.donate_argnums == (0,)
    assert loaded(jnp.asarray(X)).tolist() == [0, 3, 6]


def test_in_another_process(tmp_path):
    data, _, _ = serialize_executable.serialize(
        compiled(lambda x: jnp.linalg.cholesky(jnp.diag(x + 1)), X))
    (tmp_path / "program").write_bytes(data)
    source = f"""
import pyjx as jax
from pyjx.experimental.serialize_executable import deserialize_and_load
data = open({str(tmp_path / 'program')!r}, 'rb').read()
tree = jax.tree.structure
program = deserialize_and_load(data, tree(((0,), {{}})), tree(0))
print(program(jax.numpy.arange(3, dtype='float32')).diagonal().tolist())
"""
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True,
                          check=True)
    np.testing.assert_allclose(eval(done.stdout), np.sqrt(X + 1), rtol=1e-6)


def test_what_cannot_be_written():
    program = compiled(lambda x: jax.pure_callback(lambda v: v, x, x), X)
    with pytest.raises(ValueError, match="does not support serialization"):
        serialize_executable.serialize(program)


def test_wrong_bytes():
    data, in_tree, out_tree = serialize_executable.serialize(compiled(lambda x: x + 1, X))
    load = serialize_executable.deserialize_and_load
    rng = random.Random(0)
    for _ in range(300):
        changed = bytearray(data)
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        with pytest.raises(ValueError, match="deserialize"):
            load(bytes(changed), in_tree, out_tree)
    for n in (0, 8, 44, len(data) - 1):
        with pytest.raises(ValueError, match="deserialize"):
            load(data[:n], in_tree, out_tree)
    with pytest.raises(ValueError, match="version 2"):
        load(data[:8] + struct.pack("<I", 2) + data[12:], in_tree, out_tree)
    with pytest.raises(ValueError, match="number of arguments or results"):
        load(data, jax.tree.structure(((0, 0), {})), out_tree)
    with pytest.raises(RuntimeError, match="nowhere"):
        load(data, in_tree, out_tree, backend="nowhere")
    with pytest.raises(ValueError, match="Execution devices"):
        load(data, in_tree, out_tree, execution_devices=[])
