"""What processes exchange outside of programs."""

import numpy as np
import pytest

from pyjx.experimental import multihost_utils as mu


def test_one_process():
    assert mu.process_allgather(np.arange(3)).shape == (1, 3)
    assert mu.process_allgather(np.float32(1), tiled=True).shape == (1,)
    assert mu.broadcast_one_to_all([1, {"a": np.ones(2)}])[1]["a"].tolist() == [1, 1]
    mu.sync_global_devices("here")
    mu.assert_equal({"a": 1.5})
    with pytest.raises(RuntimeError, match="not initialized"), mu.live_devices([]):
        pass


def test_several_processes(together):
    outs = together("""
from pyjx.experimental import multihost_utils as mu

mesh = Mesh(np.array(jax.devices()).reshape(N, -1), ("process", "device"))
tree = {"a": np.arange(3) + 10 * ME, "b": np.float32(ME), "c": jnp.full((2, 2), ME, jnp.bfloat16)}
stacked, joined = mu.process_allgather(tree), mu.process_allgather(tree, tiled=True)
print(stacked["a"].tolist(), stacked["b"].tolist(), stacked["c"].shape, stacked["c"].dtype)
print(joined["a"].tolist(), joined["b"].tolist(), joined["c"].shape)
x = jax.device_put(np.arange(8.), NamedSharding(mesh, P(("process", "device"))))
print(mu.process_allgather(x, tiled=True).tolist())
try:
    mu.process_allgather(x)
except ValueError as error:
    print(error)
values = [np.arange(2) + ME, np.array([True, False]), np.float32([np.nan, -1.5 - ME])]
print([v.tolist() for v in mu.broadcast_one_to_all(values)])
print(mu.broadcast_one_to_all(np.int32(ME), is_source=ME == N - 1))
mu.sync_global_devices("checkpoint")
mu.assert_equal({"a": np.ones(3), "x": x})
for wrong in (lambda: mu.assert_equal(np.arange(2) + ME, "they differ"),
              lambda: mu.sync_global_devices(f"step {ME}")):
    try:
        wrong()
    except AssertionError as error:
        print(str(error).partition(". Expected: ")[0])
mine = np.arange(4.) + 4 * ME
whole = mu.host_local_array_to_global_array((mine, {"k": jax.random.split(jax.random.key(0), 4)}),
                                            mesh, P(("process", "device")))
assert whole[0].shape == (8,) and whole[1]["k"].shape == (8,)
assert mu.process_allgather(whole[0], tiled=True).tolist() == list(range(8))
again = mu.global_array_to_host_local_array(whole, mesh, P(("process", "device")))
assert again[0].tolist() == mine.tolist() and again[0].is_fully_addressable
assert again[1]["k"].shape == (4,)
same = mu.host_local_array_to_global_array(np.ones(3), mesh, P())
assert same.shape == (3,) and same.tolist() == [1, 1, 1]
back = mu.global_array_to_host_local_array(jnp.ones(8) * 2, mesh, P("process"))
assert back.shape == (8,)
def loss(local):
    return mu.host_local_array_to_global_array(local, mesh, P(("process", "device"))).sum()
assert float(jax.jvp(loss, (mine,), (np.ones(4),))[1]) == 8
batched = jax.vmap(lambda a: mu.host_local_array_to_global_array(a, mesh, P("device")))(
    np.ones((3, 4)))
assert batched.shape == (3, 4)
print(mu.reached_preemption_sync_point(1))
with mu.live_devices(jax.devices()) as alive:
    print(len(alive))
""", devices=2)
    for i, out in enumerate(outs):
        assert out.splitlines() == [
            "[[0, 1, 2], [10, 11, 12]] [0.0, 1.0] (2, 2, 2) bfloat16",
            "[0, 1, 2, 10, 11, 12] [0.0, 1.0] (4, 2)",
            "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]",
            "Gathering global non-fully-addressable arrays only supports tiled=True",
            "[[0, 1], [True, False], [nan, -1.5]]", "1", "they differ",
            f"sync_global_devices name mismatch ('step {i}')", "False", "4"]
