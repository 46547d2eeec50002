"""Arrays that several processes have parts of, and programs over them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MESH = """
mesh = Mesh(np.array(jax.devices()).reshape(N, -1), ("process", "device"))
rows, whole = NamedSharding(mesh, P(("process", "device"))), NamedSharding(mesh, P())
def tried(f):
    try:
        return f()
    except Exception as error:
        return f"{type(error).__name__} {error}"
"""


def test_arrays_and_programs(together):
    outs = together(MESH + """
x = jax.device_put(np.arange(8.), rows)
print(x.is_fully_addressable, x.is_fully_replicated, repr(x), x.sharding == rows)
print([(s.index[0].start, s.data.tolist()) for s in x.addressable_shards])
print([s.data is None for s in x.global_shards])
for _ in range(3):  # by Python, then by C++
    double, total = jax.jit(lambda x: (2 * x, x.sum()))(x)
    assert double.sharding == rows and float(total) == 28 and total.is_fully_replicated
    assert float((x * x).sum()) == 140 and (x + 1).sharding == rows  # operations
    assert jax.grad(lambda x: (x ** 2).sum())(x).sharding == rows
# host values are whole on each process, arrays on one device may be moved
for other in (np.arange(8.), jnp.arange(8.), list(range(8))):
    assert float(jax.jit(lambda a, b: (a * jnp.asarray(b)).sum())(x, other)) == 140
assert float(jax.jit(lambda a: a.sum(), in_shardings=rows)(np.arange(8.))) == 28
captured = np.arange(8.)
assert float(jax.jit(lambda a: (a * captured).sum())(x)) == 140
assert jax.device_put(jnp.arange(8.), rows).sharding == rows
assert jax.device_put(x, whole).tolist() == list(range(8))  # exchanged between processes
back = Mesh(mesh.devices[::-1, ::-1], mesh.axis_names)
turned = jax.device_put(x, NamedSharding(back, rows.spec))
print([(s.index[0].start, s.data.tolist()) for s in turned.addressable_shards])
assert float(x[5]) == 5 and x.copy().sharding == rows and bool((x == x).all())
keys = jax.device_put(jax.random.split(jax.random.key(0), 4), rows)
assert jax.vmap(jax.random.normal)(keys).sharding == rows
with jax.set_mesh(mesh):
    assert float(jax.jit(jnp.sum, out_shardings=P())(np.ones(4, "f4"))) == 4
""", devices=2)
    for out, mine, theirs in zip(outs, ("[(0, [0.0, 1.0]), (2, [2.0, 3.0])]",
                                        "[(4, [4.0, 5.0]), (6, [6.0, 7.0])]"),
                                 ("[(6, [6.0, 7.0]), (4, [4.0, 5.0])]",
                                  "[(2, [2.0, 3.0]), (0, [0.0, 1.0])]"), strict=True):
        lines = out.splitlines()
        assert lines[0] == "False False Array(shape=(8,), dtype=float32) True"
        assert lines[1] == mine and eval(lines[3]) == sorted(eval(theirs))
    assert outs[0].splitlines()[2] == "[False, False, True, True]"


def test_what_is_not_here(together):
    outs = together(MESH + """
x = jax.device_put(np.arange(4.), rows)
print(tried(lambda: np.asarray(x)))
print(tried(lambda: jax.device_put(x, jax.local_devices()[0])))
print(tried(lambda: jax.device_put(np.arange(4.) * ME, rows)))
print(tried(lambda: jax.device_put(np.arange(4) if ME else np.arange(8), rows)))
elsewhere = jax.device_put(np.ones(3), jax.devices()[1 - ME])
print(repr(elsewhere), elsewhere.addressable_shards, tried(lambda: elsewhere.tolist()))
print(tried(lambda: jax.jit(lambda a: a, in_shardings=rows)(
    jax.device_put(np.arange(4.), jax.local_devices()[0]))))
""")
    for out in outs:
        value, moved, unequal, shapes, elsewhere, committed, *_ = out.splitlines()
        assert value.startswith("RuntimeError Fetching value for `jax.Array` that spans non-addr")
        assert moved.startswith("ValueError When the second argument to `device_put` is a Device")
        assert unequal.startswith("AssertionError <class 'numpy.ndarray'> passed to device_put is "
                                  "not the same on each process")
        assert "that of processes [1] is not that of process 0" in shapes
        assert elsewhere.startswith("Array(shape=(3,), dtype=float32) [] RuntimeError Fetching")
        assert committed.startswith("ValueError Sharding passed to jit does not match the sharding")


def test_arrays_of_parts(together):
    outs = together(MESH + """
make = jax.make_array_from_process_local_data
mine = np.arange(4.) + 4 * ME
x = make(rows, mine)
assert x.shape == (8,) and jax.device_put(x, whole).tolist() == list(range(8))
assert make(rows, mine, (8,)).shape == (8,) and make(rows, mine, (None,)).shape == (8,)
assert make(rows, np.arange(8.), (8,))[6] == 6 and make(whole, np.arange(8.)).shape == (8,)
columns = NamedSharding(mesh, P("device", "process"))
y = make(columns, mine.reshape(4, 1))
assert y.shape == (4, 2) and jax.device_put(y, whole).sum(0).tolist() == [6, 22]
trees = make((rows, whole), (mine, {"a": np.ones(3)}))
assert trees[0].shape == (8,) and trees[1]["a"].shape == (3,)
print(tried(lambda: make(rows, mine, (16,))))
print(tried(lambda: make(rows, mine[:3])))
x = jax.make_array_from_callback((8,), rows, lambda i: np.arange(8.)[i])
assert float(x.sum()) == 28
parts = [jax.device_put(np.full(1, 2. * ME), d) for d in jax.local_devices()]
assert jax.make_array_from_single_device_arrays((4,), rows, parts).sum() == 4
first = NamedSharding(Mesh(np.array(jax.devices()[:1]), "x"), P())
there = jax.make_array_from_callback((2,), first, lambda i: np.ones(2), dtype="float32")
assert len(there.addressable_shards) == 1 - ME and (there + 1).shape == (2,)
""", devices=2)
    for out in outs:
        shape, multiple = out.splitlines()
        assert shape.startswith("ValueError Invalid host data, each dimension should match either")
        assert "In dimension 0, the process data has 4 elements. Process addresses 8" in shape
        assert "which is not a multiple of the 2 parts" in multiple


def test_programs_come_from_the_disk_cache(together, tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    script = MESH + """
x = jax.device_put(np.arange(8.), rows)
f = jax.jit(lambda x: jnp.tanh(x).sum() + x)
before = len(os.listdir(os.environ["JAX_COMPILATION_CACHE_DIR"]))
print(f(x).addressable_shards[0].data.tolist(), before > 0)
"""
    first, second = together(script), together(script)
    assert [a.split("]")[0] for a in first] == [b.split("]")[0] for b in second]
    assert all(out.endswith("True") for out in second)


def test_the_example():
    """Four processes train the digits as one does; the script compares them itself."""
    pytest.importorskip("sklearn")
    env = {k: v for k, v in os.environ.items() if k != "JAX_NUM_CPU_DEVICES"}
    run = subprocess.run([sys.executable, str(ROOT / "examples/data_parallel.py"), "--epochs", "1"],
                         env={**env, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
                         timeout=200)
    assert "one process gives the same" in run.stdout, run.stdout + run.stderr
