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
