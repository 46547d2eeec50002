"""MLIR's verifier accepts the text that every operation is lowered to, for every platform."""

from __future__ import annotations

import pytest

import pyjx as jax
import pyjx.lax.random_bits  # defines threefry2x32, which samples name
from pyjx import jaxlib_api
from pyjx.runtime.lower import lower_closed
from tests.op_table import Sample, all_samples

SAMPLES = all_samples()


# Operations, or samples of them, and the platforms that have none of these.
NOT_ON = {"eig": ("tpu",), "geqp3": ("tpu",), "getrf": ("tpu",),
          "hessenberg": ("cuda", "tpu"), "pivoting": ("tpu",),
          "schur": ("cuda", "tpu"), "tridiagonal": ("tpu",)}


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
@pytest.mark.parametrize("sample", SAMPLES, ids=[s.id or s.primitive for s in SAMPLES])
def test_text_verifies(sample: Sample, platform: str) -> None:
    closed = jax.make_jaxpr(sample.fun)(*sample.args)
    if platform in NOT_ON.get(sample.id or sample.primitive, NOT_ON.get(sample.primitive, ())):
        with pytest.raises(NotImplementedError, match=r"not found for platform .* It runs on cpu"):
            lower_closed(closed, "f", platform=platform, keep_unused=True)
        return
    program = lower_closed(closed, "f", platform=platform, keep_unused=True)
    parsed = jaxlib_api.parse_module(program.text)
    assert parsed.operation.verify()
    # What MLIR prints of it is read again as the same module.
    printed = str(parsed)
    assert str(jaxlib_api.parse_module(printed)) == printed
    # Locations change nothing else.
    located = jaxlib_api.parse_module(program.located_text(frames=3))
    assert str(located) == printed
