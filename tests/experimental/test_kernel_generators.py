"""Random bits in kernels."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.experimental import pallas as pl
from pyjx.experimental.pallas import tpu as pltpu
from tests.experimental.kernels import for_tpus, struct

BITS = struct(32, 128, dtype="int32")
GRID = {"grid": 4, "in_specs": [pl.BlockSpec(memory_space=pltpu.SMEM)],
        "out_specs": pl.BlockSpec((8, 128), lambda i: (i, 0))}


def kernel(seed_ref, o_ref):
    """The first program sets the generator, all draw from it, in a loop."""
    pl.when(pl.program_id(0) == 0)(lambda: pltpu.prng_seed(seed_ref[0], 7))
    o_ref[...] = lax.fori_loop(0, 3, lambda i, c: c ^ pltpu.prng_random_bits((8, 128)),
                               jnp.zeros((8, 128), "int32"))


@pytest.mark.parametrize("interpret", [True, pltpu.InterpretParams(detect_races=True)])
def test_bits_are_those_of_their_seed(interpret):
    draw = pl.pallas_call(kernel, BITS, interpret=interpret, **GRID)
    one, again, other = [np.asarray(draw(jnp.array([k]))) for k in (1, 1, 2)]
    np.testing.assert_array_equal(one, again)
    assert not (one == other).any() and len(np.unique(one)) == one.size
    share = np.unpackbits(one.view(np.uint8)).mean()
    assert abs(share - 0.5) < 0.01


def test_batches():
    draw = pl.pallas_call(kernel, BITS, interpret=True, **GRID)
    both = jax.vmap(draw)(jnp.array([[1], [2]]))
    np.testing.assert_array_equal(both[1], draw(jnp.array([2])))


def test_the_form_for_tpus():
    text = for_tpus(pl.pallas_call(kernel, BITS, **GRID), struct(1, dtype="int32"))
    assert "tpu_custom_call" in text


def test_too_many_seeds():
    with pytest.raises(ValueError, match="one or two seeds are taken, got 3"):
        pl.pallas_call(lambda o_ref: pltpu.prng_seed(1, 2, 3), BITS, interpret=True)()


def drawn(draw, shape=(64, 128), dtype="float32"):
    def kernel(o_ref):
        pltpu.prng_seed(5)
        o_ref[...] = draw(o_ref.shape).astype(dtype)

    return np.asarray(pl.pallas_call(kernel, struct(*shape, dtype=dtype), interpret=True)())


def test_distributions():
    x = drawn(lambda shape: pltpu.stateful_uniform(shape, minval=-1.0, maxval=3.0))
    assert x.min() >= -1 and x.max() < 3
    np.testing.assert_allclose([x.mean(), x.var()], [1, 16 / 12], atol=0.05)
    x = drawn(pltpu.stateful_normal)
    np.testing.assert_allclose([x.mean(), x.var(), (x ** 3).mean()], [0, 1, 0], atol=0.1)
    x = drawn(lambda shape: pltpu.stateful_bernoulli(0.3, shape), dtype="int32")
    np.testing.assert_allclose(x.mean(), 0.3, atol=0.02)
    assert set(np.unique(x)) == {0, 1}
    words = drawn(pltpu.stateful_bits, dtype="uint32")
    np.testing.assert_allclose((words >> 31).mean(), 0.5, atol=0.02)
    with pytest.raises(NotImplementedError, match="dtype must be float32, got bfloat16"):
        pltpu.stateful_normal((2,), "bfloat16")


@pytest.mark.parametrize("block", [(4, 8), (2, 16), (8, 4)])
def test_a_sampled_array_is_the_same_whatever_its_blocks_are(block):
    key = jax.random.key(0)

    def kernel(o_ref):
        o_ref[...] = pltpu.sample_block(jax.random.uniform, key, block, (2, 4), (8, 16),
                                        dtype="float32")

    got = pl.pallas_call(
        kernel, struct(8, 16), grid=(8 // block[0], 16 // block[1]), interpret=True,
        out_specs=pl.BlockSpec(block, lambda i, j: (i, j)))()
    expected = np.block([[np.asarray(jax.random.uniform(jax.random.fold_in(key, i * 4 + j), (2, 4)))
                          for j in range(4)] for i in range(4)])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("sizes", "said"), [
    ([(4, 8), (4,), (8, 16)], r"block_size \(2\), tile_size \(1\) and total_size \(2\) must have"),
    ([(4, 8), (3, 4), (9, 16)], r"tiles \(3, 4\) must divide the block \(4, 8\)")])
def test_blocks_that_are_not_made_of_tiles(sizes, said):
    with pytest.raises(ValueError, match=said):
        pltpu.sample_block(jax.random.uniform, jax.random.key(0), *sizes, (0, 0))
