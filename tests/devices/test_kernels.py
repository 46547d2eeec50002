"""Kernels that send to other devices."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.experimental import pallas as pl
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.sharding import PartitionSpec as P

X = jnp.arange(64 * 128.0).reshape(64, 128)
PART = jax.ShapeDtypeStruct((8, 128), "float32")
DMA = pltpu.SemaphoreType.DMA


@pytest.fixture
def ring():
    return jax.sharding.Mesh(np.array(jax.devices()), ("x",))


ALONG_X = P("x")


def over(mesh, kernel, spec=ALONG_X, interpret=True, check_vma=False, scratch=(), **options):
    call = pl.pallas_call(kernel, PART, scratch_shapes=[*scratch, DMA, DMA], interpret=interpret,
                          **options)
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=spec, out_specs=spec,
                                 check_vma=check_vma))


def to_the_right(device_id):
    def kernel(x_ref, o_ref, sent, came):
        right = (lax.axis_index("x") + 1) % lax.axis_size("x")
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, device_id=device_id(right))
        pl.semaphore_wait(barrier)
        pltpu.async_remote_copy(x_ref, o_ref, sent, came, device_id(right)).wait()

    return kernel


@pytest.mark.parametrize("check_vma", [False, True])
@pytest.mark.parametrize("interpret", [True, pltpu.InterpretParams(detect_races=True)])
@pytest.mark.parametrize("device_id", [lambda k: k, lambda k: (k,), lambda k: {"x": k}])
def test_a_shift(ring, device_id, interpret, check_vma):
    out = over(ring, to_the_right(device_id), interpret=interpret, check_vma=check_vma)(X)
    np.testing.assert_array_equal(out, jnp.roll(X, 8, 0))


def test_a_shift_along_one_of_two_axes(mesh):
    spec = P(("x", "y"))
    expected = jnp.roll(X.reshape(4, 2, 8, 128), 1, 0).reshape(64, 128)
    out = over(mesh, to_the_right(lambda k: {"x": k}), spec)(X)
    np.testing.assert_array_equal(out, expected)
    out = over(mesh, to_the_right(lambda k: (k, lax.axis_index("y"))), spec)(X)
    np.testing.assert_array_equal(out, expected)


def summed(slots):
    """The sum over a ring: each device sends on what has come, to the next slot."""
    def kernel(x_ref, o_ref, buffer, sent, came):
        right = (lax.axis_index("x") + 1) % 8
        o_ref[...] = x_ref[...]
        buffer[0] = x_ref[...]
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, device_id=(right - 2) % 8)  # the left one may send
        pl.semaphore_wait(barrier)

        @pl.loop(0, 7)
        def _(i):
            copy = pltpu.make_async_remote_copy(
                buffer.at[i % slots], buffer.at[(i + 1) % slots], sent, came, right)
            copy.start()
            copy.wait()
            o_ref[...] += buffer[(i + 1) % slots]

    return kernel


@pytest.mark.parametrize("interpret", [True, pltpu.InterpretParams(detect_races=True)])
def test_a_sum_over_a_ring(ring, interpret):
    space = [pltpu.VMEM((8, 8, 128), "float32")]
    out = over(ring, summed(8), interpret=interpret, scratch=space)(X)
    np.testing.assert_allclose(out, np.tile(X.reshape(8, 8, 128).sum(0), (8, 1)))


def test_slots_that_are_used_again_too_soon(ring):
    """Nobody says that the neighbour has done with the slot that is sent to."""
    space = [pltpu.VMEM((2, 8, 128), "float32")]
    watched = pltpu.InterpretParams(detect_races=True)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"device \d .*buffer .*nothing orders"):
        jax.block_until_ready(over(ring, summed(2), interpret=watched, scratch=space)(X))


def test_parts_may_be_sent_by_an_index(ring):
    def kernel(x_ref, o_ref, sent, came):
        me = lax.axis_index("x")
        for k in range(8):  # row k of each goes to device k, to the row of the sender
            pltpu.async_remote_copy(x_ref.at[k], o_ref.at[me], sent, came, k).wait()

    out = over(ring, kernel)(X)
    np.testing.assert_array_equal(
        out, X.reshape(8, 8, 128).transpose(1, 0, 2).reshape(64, 128))


def test_semaphores_are_those_that_the_sender_means(ring):
    """Each signals all others, at the semaphore with its own number, as often as that says."""
    def kernel(x_ref, o_ref, sems, sent, came):
        me = lax.axis_index("x")
        for k in range(8):
            pl.semaphore_signal(sems.at[me], me + 1, device_id=k)
        for k in range(8):
            o_ref[k] = jnp.full((128,), pl.semaphore_read(sems.at[k]), "float32")
            pl.semaphore_wait(sems.at[k], k + 1)

    out = over(ring, kernel, scratch=[pltpu.SemaphoreType.REGULAR((8,))])(X)
    np.testing.assert_array_equal(out[:, 0], np.tile(np.arange(1.0, 9.0), 8))


def some_only(condition):
    def kernel(x_ref, o_ref, sent, came):
        me = lax.axis_index("x")
        o_ref[...] = x_ref[...]
        pl.when(condition(me, x_ref))(lambda: pltpu.async_remote_copy(
            x_ref, o_ref, sent, came, (me + 1) % 8).wait())

    return kernel


@pytest.mark.parametrize("condition", [
    lambda me, x_ref: me == 0, lambda me, x_ref: x_ref[0, 0] > 9])
def test_all_devices_come_to_a_copy(ring, condition):
    with pytest.raises(NotImplementedError, match=r"some may not come.*test_kernels\.py:\d+"):
        over(ring, some_only(condition))(X)


def test_a_condition_that_is_the_same_everywhere(ring):
    out = over(ring, some_only(lambda me, x_ref: pl.program_id(0) == 1), grid=(2,),
               in_specs=[pl.BlockSpec((8, 128), lambda i: (0, 0))],
               out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)))(X)
    np.testing.assert_array_equal(out, jnp.roll(X, 8, 0))


@pytest.mark.parametrize(("device_id", "said"), [
    (lambda k: (k, 0), "has 2 places, and the mesh has the axes"),
    (lambda k: {"y": 0}, "names the axes")])
def test_devices_that_are_not_there(ring, device_id, said):
    with pytest.raises(ValueError, match=said):
        over(ring, to_the_right(device_id))(X)


def test_outside_of_a_mesh():
    with pytest.raises(ValueError, match=r"Call the kernel in jax\.shard_map over all axes"):
        pl.pallas_call(lambda x_ref, o_ref, sem: pl.semaphore_signal(sem, device_id=0), PART,
                       scratch_shapes=[pltpu.SemaphoreType.REGULAR], interpret=True)(X[:8])


@pytest.mark.parametrize("check_vma", [False, True])
def test_scratch_space_varies_as_arguments_do(ring, check_vma):
    def kernel(x_ref, o_ref, buffer, sent, came):
        buffer[...] = x_ref[...]
        pl.run_scoped(lambda space: (space.set(buffer[...] + 1), o_ref.set(space[...])),
                      pltpu.VMEM((8, 128), "float32"))

    out = over(ring, kernel, check_vma=check_vma, scratch=[pltpu.VMEM((8, 128), "float32")])(X)
    np.testing.assert_array_equal(out, X + 1)


def test_splash_attention_over_heads_and_queries(mesh):
    from pyjx.experimental.pallas.ops.tpu import splash_attention as splash
    mask = splash.MultiHeadMask([splash.LocalMask((512, 256), (100, 20), 0)] * 4)
    attend = splash.make_splash_mha(mask, head_shards=4, q_seq_shards=2, interpret=True)
    spec = attend.manual_sharding_spec(jax.sharding.NamedSharding(mesh, P("x", "y")))
    over_mesh = jax.shard_map(lambda f, q, k, v: f(q, k, v), mesh=mesh, in_specs=(
        spec, P("x", "y"), P("x"), P("x")), out_specs=P("x", "y"))
    q, k = [jax.random.normal(jax.random.key(n), (4, n, 64)) for n in (512, 256)]
    plain = splash.make_masked_mha_reference(mask)
    out = over_mesh(attend, q, k, k)
    np.testing.assert_allclose(out[:, :356], plain(q, k, k)[:, :356], atol=1e-5)
    assert not out[:, 356:].any()  # those that see nothing
    found = jax.grad(lambda k: jnp.sin(over_mesh(attend, q, k, k)).sum())(k)
    expected = jax.grad(lambda k: jnp.sin(plain(q, k, k)[:, :356]).sum())(k)
    np.testing.assert_allclose(found, expected, atol=1e-4)
