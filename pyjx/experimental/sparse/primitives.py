"""How operations on buffers become primitives.

A primitive of this package is the name of an operation in jaxprs, so that programs that look at
them (`sparsify` is one) see the operation as a whole. Everything else about it follows from its
`decomposition`, a function of operations of `lax`: types of results, derivatives, batching,
transposes and the lowering. Operations that no program looks for are plain functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx.core.avals import ShapedArray
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import trace_to_jaxpr
from pyjx.runtime.operations import op_jit


def defined_by(name: str, fun: Callable[..., Any], *params: str, multiple_results: bool = False
               ) -> Primitive:
    """The primitive called `name` that does what `fun` does, which takes arrays and keyword
    parameters."""

    def shape_rule(*avals: ShapedArray, **params: Any) -> Any:
        def flat(*args: Any) -> Any:
            out = fun(*args, **params)
            return out if multiple_results else [out]

        outs = trace_to_jaxpr(flat, avals).out_avals
        return outs if multiple_results else outs[0]

    # On values whose derivative is wanted at once, it is compiled as a whole.
    return register(Primitive(name, multiple_results=multiple_results, shape_rule=shape_rule,
                              decomposition=op_jit(fun, static_argnames=params)))
