"""What errors of kernels say is to be written, and that it serves."""

from collections.abc import Callable
from typing import Any

import pytest

import pyjx.numpy as jnp
from pyjx.experimental import pallas as pl
from pyjx.experimental.pallas import tpu as pltpu
from tests.mistakes import mistake

X = jnp.arange(8.0)
ROW = pl.BlockSpec((2,), lambda i: (i,))
MEMORY = pltpu.VMEM((8, 128), jnp.float32)


def call(kernel: Callable[..., Any], **options: Any) -> Any:
    return pl.pallas_call(kernel, out_shape=X, interpret=True, **options)(X)


def copies(x_ref: Any, o_ref: Any, *scratch: Any) -> None:
    o_ref[...] = x_ref[...]


def returns(x_ref: Any, o_ref: Any) -> Any:
    return x_ref[...]


def places(x_ref: Any, o_ref: Any, axis: int = 0) -> None:
    o_ref[...] = x_ref[...] + pl.program_id(axis)


def chooses(x_ref: Any, o_ref: Any) -> None:
    @pl.when(x_ref[0] > 0)
    def store(value: Any) -> None:
        o_ref[...] = value


def loads(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = pl.load(x_ref)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("made", "cure", "cured"), [
    (lambda: call(returns), "writes into its output references: o_ref[...] = value.",
     lambda: call(copies)),
    (lambda: call(places), "Axis 0 is out of bounds for grid (). The grid of pallas_call has a siz",
     lambda: call(places, grid=(1,))),
    (lambda: call(lambda x_ref, o_ref: places(x_ref, o_ref, 1), grid=(1,)),
     "for grid (1,). The grid of pallas_call has a size for each axis, and axes count from 0.",
     lambda: call(lambda x_ref, o_ref: places(x_ref, o_ref, 1), grid=(1, 1))),
    (lambda: pl.BlockSpec(2, lambda i: i), "block_shape must be a shape, such as (8, 128), got 2",
     lambda: pl.BlockSpec((2,), lambda i: i)),
    (lambda: pl.BlockSpec((2,), 3), "index_map must be a function of the indices in the grid, got",
     lambda: pl.BlockSpec((2,), lambda i: (3,))),
    (lambda: call(copies, grid=(4,), in_specs=[ROW]), "its shape (a kernel's out_specs and",
     lambda: call(copies, grid=(4,), in_specs=[ROW], out_specs=ROW)),
    (lambda: call(loads), "Use x_ref[...], or x_ref[pl.ds(start, size)] of a part.",
     lambda: call(copies)),
    (lambda: call(chooses), "It is called as function(), without arguments.", None),
    (lambda: call(copies, scratch_shapes=[(8,)]), "such as pltpu.VMEM((8, 128), jnp.float32), got",
     lambda: call(copies, scratch_shapes=[MEMORY])),
    (lambda: call(copies, scratch_shapes=MEMORY), "Give a list: scratch_shapes=[memory].", None),
])
def test_what_is_said_serves(made: Callable[[], Any], cure: str, cured: Any) -> None:
    assert cure in mistake(made)
    if cured:
        cured()
