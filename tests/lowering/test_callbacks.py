"""How programs of other platforms call Python functions."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import jaxlib_api
from pyjx.runtime.lower import lower_closed

X = np.ones(3, np.float32)


def lowered(fun, platform):
    return lower_closed(jax.make_jaxpr(fun)(X), "f", platform=platform, keep_unused=True)


def calls_two(x):
    jax.debug.print("{} {}", x, x.sum(), ordered=True)
    jax.debug.callback(lambda: None)
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), np.float32), x)


def test_a_tpu_sends_and_receives():
    program = lowered(calls_two, "tpu")
    jaxlib_api.parse_module(program.text)
    printing, bare, pure = [call.transfers for call in program.host_calls]
    assert [a.str_short() for a in printing.sent] == ["float32[3]", "float32[]"]
    assert printing.taken == 2 and not printing.received
    assert bare.taken == 0 and len(bare.sent) == 1  # what is sent makes the call
    assert [a.str_short() for a in pure.received] == ["float32[3]"]
    channels = [c for t in (printing, bare, pure) for c in
                (*t.send_channels, *t.receive_channels)]
    assert channels == list(range(2, 7))
    assert program.text.count('"stablehlo.send"') == 4
    assert program.text.count('"stablehlo.recv"') == 1


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_the_handlers_of_gpus_are_registered(platform):
    """Also where nothing else in the program is foreign."""
    assert set(lowered(calls_two, platform).custom_calls) == {"callbacks"}
