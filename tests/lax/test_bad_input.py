"""Every public function of `pyjx.lax` refuses bad input with an error that names it."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.primitive import Primitive
from tests.lax.bad_calls import CALLS, Bad

# Public names that are not functions of arrays: a type alias.
EXEMPT = {"DotDimensionNumbers"}

# What an error may call a function instead: the primitive or the function that it is made of.
ALIASES = {
    "approx_max_k": "approx_top_k", "approx_min_k": "approx_top_k",
    "bitwise_and": "and does not", "bitwise_or": "or does not", "bitwise_xor": "xor does not",
    "bitwise_not": "not does not", "broadcasted_iota": "iota", "empty": "full",
    "batch_matmul": "dot_general", "dot": "dot_general", "scaled_dot": "dot_general",
    "dynamic_index_in_dim": "dynamic_slice(_in_dim)?", "dynamic_slice_in_dim": "dynamic_slice",
    "dynamic_update_index_in_dim": "dynamic_update_slice(_in_dim)?",
    "dynamic_update_slice_in_dim": "dynamic_update_slice", "expand_dims": "broadcast_in_dim",
    "index_in_dim": "slice(_in_dim)?", "slice_in_dim": "slice", "reciprocal": "integer_pow",
    "scatter_add": "scatter", "scatter_apply": "scatter", "scatter_max": "scatter",
    "scatter_min": "scatter", "scatter_mul": "scatter", "scatter_sub": "scatter",
    "select": "select_n", "select_n": "select", "sort_key_val": "sort",
    "ragged_dot": "(ragged_)?dot_general", "ragged_dot_general": "dot_general",
    "betainc": "regularized_incomplete_beta", "pmean": "psum", "pswapaxes": "all_to_all",
    "fori_loop": "scan|while_loop", "map": "scan", "fft": "i?r?fft",
}
CONVOLUTION = r"convolution|conv_general_dilated\w*"


def public_functions() -> list[str]:
    names = [e.partition("=")[0] for names in lax.FAMILIES.values() for e in names.split()]
    values = {name: getattr(lax, name) for name in names}
    return sorted(n for n, v in values.items() if callable(v) and not isinstance(v, type)
                  and not isinstance(v, Primitive) and n not in EXEMPT)


def traceable(x: Any) -> bool:
    """Whether `x` is an array that can be an argument of a compiled function."""
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype in dtypes.all_dtypes


def traced_call(fun: Any, call: Bad) -> Any:
    """The call inside `jit`, with its arrays traced."""
    leaves, tree = jax.tree_util.tree_flatten((call.args, call.kwargs),
                                              is_leaf=lambda x: x is None)
    places = [i for i, x in enumerate(leaves) if isinstance(x, np.ndarray) and traceable(x)]

    def run(*arrays: Any) -> Any:
        full = list(leaves)
        for i, x in zip(places, arrays, strict=True):
            full[i] = x
        args, kwargs = jax.tree_util.tree_unflatten(tree, full)
        fun(*args, **kwargs)
        return 0

    return jax.jit(run)(*[leaves[i] for i in places])


def problem(name: str, call: Bad, traced: bool) -> str | None:
    """What is wrong with how the call fails; None if nothing is."""
    fun = getattr(lax, name)
    try:
        out = traced_call(fun, call) if traced else fun(*call.args, **call.kwargs)
    except call.error as error:
        text = str(error)
        own = rf"\b{name}\b"
        alias = ALIASES.get(name, CONVOLUTION if name.startswith("conv") else own)
        if not re.search(rf"{own}|\b({alias})\b", text, re.IGNORECASE):
            return f"does not name {name}: {error!r}"
        if call.says not in text:
            return f"does not mention {call.says!r}: {error!r}"
        return None
    except Exception as error:
        return f"raises {error!r}"
    return f"gives {out!r}"


def problems(name: str, traced: bool) -> list[str]:
    found = [(i, problem(name, call, traced)) for i, call in enumerate(CALLS[name])]
    return [f"call {i} of {name} {text}\n{CALLS[name][i]}" for i, text in found if text]


def test_every_function_has_bad_calls() -> None:
    assert sorted(CALLS) == public_functions()


@pytest.mark.parametrize("name", sorted(CALLS))
def test_eagerly(name: str) -> None:
    found = problems(name, False)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_under_jit(name: str) -> None:
    found = problems(name, True)
    assert not found, "\n".join(found)


# Static arguments, given a traced value.
STATIC = {
    "reduce_sum": lambda t: lax.reduce_sum(np.ones(3), (t,)),
    "reshape": lambda t: lax.reshape(np.ones(3), (t,)),
    "iota": lambda t: lax.iota("int32", t),
    "full": lambda t: lax.full((t,), 1.0),
    "transpose": lambda t: lax.transpose(np.ones(3), (t,)),
    "concatenate": lambda t: lax.concatenate([np.ones(3)] * 2, t),
    "top_k": lambda t: lax.top_k(np.ones(3), t),
    "cumsum": lambda t: lax.cumsum(np.ones(3), t),
    "sort": lambda t: lax.sort(np.ones(3), t),
    "slice": lambda t: lax.slice(np.ones(3), (t,), (2,)),
    "dynamic_slice": lambda t: lax.dynamic_slice(np.ones(3), (0,), (t,)),
    "integer_pow": lambda t: lax.integer_pow(np.float32(2), t),
    "pad": lambda t: lax.pad(np.ones(3, "float32"), np.float32(0), [(t, 0, 0)]),
    "broadcast_in_dim": lambda t: lax.broadcast_in_dim(np.float32(1), (t,), ()),
    "split": lambda t: lax.split(np.ones(3), (t, t)),
    "argmax": lambda t: lax.argmax(np.ones(3), t, "int32"),
    "round": lambda t: lax.round(np.ones(3), t),
    "reduce_precision": lambda t: lax.reduce_precision(np.ones(3), t, 3),
    "conv": lambda t: lax.conv(np.ones((1, 1, 3)), np.ones((1, 1, 1)), (t,), "VALID"),
    "reduce_window": lambda t: lax.reduce_window(np.ones(3), 0.0, lax.add, (t,)),
}


@pytest.mark.parametrize("name", sorted(STATIC))
def test_traced_static_argument(name: str) -> None:
    """A traced value where an integer must be known: the error says where it comes from."""
    with pytest.raises(TypeError, match=r"(?s)traced|Tracer|tracing"):
        jax.jit(STATIC[name])(1)


def test_nothing_aborts_the_process() -> None:
    code = (
        "from tests.lax.test_bad_input import CALLS, problem\n"
        "for name, calls in CALLS.items():\n"
        "    for call in calls:\n"
        "        for traced in (False, True):\n"
        "            problem(name, call, traced)\n"
        "print('alive')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().endswith("alive")
