"""Integers of 2 and 4 bits in operations that only move or compare them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.jaxlib_api import JAXLIB_VERSION

OPERATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "append": (lambda x: jnp.append(x, x), lambda x: np.append(x, x)),
    "stack": (lambda x: jnp.stack([x, x], 1), lambda x: np.stack([x, x], 1)),
    "pad": (lambda x: jnp.pad(x, 2), lambda x: np.pad(x, 2)),
    "interior": (lambda x: lax.pad(x, x[1], ((0, 0, 1),)),
                 lambda x: np.array([[v, x[1]] for v in x]).ravel()[:-1]),
    "sort": (jnp.sort, np.sort),
    "argsort": (jnp.argsort, lambda x: np.argsort(x, stable=True)),
    "sort_pairs": (lambda x: lax.sort((x, x[::-1]), num_keys=2)[1],
                   lambda x: x[::-1][np.lexsort((x[::-1], x))]),
    "unique": (lambda x: jnp.unique(x, size=4), np.unique),
    "roll": (lambda x: jnp.roll(x, 2), lambda x: np.roll(x, 2)),
    "repeat": (lambda x: jnp.repeat(x, 2), lambda x: np.repeat(x, 2)),
    "gather": (lambda x: x[jnp.array([3, 1, 1])], lambda x: x[[3, 1, 1]]),
    "slice": (lambda x: x[::2], lambda x: x[::2]),
}


@pytest.mark.smoke
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", ["int2", "uint2", "int4", "uint4"])
def test_values(name: str, dtype: str) -> None:
    if JAXLIB_VERSION < (0, 8) and dtype.endswith("2"):
        pytest.skip("this jaxlib reads 2-bit integers wrongly")
    ours, numpys = OPERATIONS[name]
    values = np.array([1, 0, 3, 2, 1] if dtype[0] == "u" else [1, 0, -2, -1, 1], np.int8)
    x = jnp.asarray(values, dtype)
    want = numpys(values)
    for fun in (ours, jax.jit(ours)):
        assert np.asarray(fun(x)).astype(np.int8).tolist() == want.tolist()


def test_abs_is_of_whole_bytes() -> None:
    for dtype in ("int2", "int4"):
        with pytest.raises(TypeError, match=f"abs does not accept dtype {dtype}.*cast them"):
            lax.abs(lax.iota(dtype, 2))
        assert lax.neg(lax.iota(dtype, 2)).dtype == dtype
    assert lax.abs(lax.iota("int8", 2)).dtype == "int8"
