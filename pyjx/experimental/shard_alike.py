"""Two values that are to lie alike on devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.linearity import APART
from pyjx.core.primitive import Primitive, register
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.axes import moveaxis
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Dims, Operand, Tangents, Values
from pyjx.lazy import directory, refuse
from pyjx.runtime.device_put import device_put

__all__ = ["shard_alike"]
__dir__ = directory(__name__, __all__)

if not TYPE_CHECKING:
    __getattr__ = refuse(__name__)


@api_boundary
def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """The two arrays; XLA is to lay them out alike.

    Raises:
      ValueError: their shapes differ.

    >>> import pyjx as jax
    >>> from pyjx.experimental.shard_alike import shard_alike
    >>> x, y = jax.jit(shard_alike)(jax.numpy.ones(3), jax.numpy.zeros(3))
    >>> y.tolist()
    [0.0, 0.0, 0.0]
    """
    a, b = get_aval(x), get_aval(y)
    if a.shape != b.shape:
        raise ValueError("The leaves shapes of `x` and `y` should match. Got `x` leaf shape: "
                         f"{a.shape} and `y` leaf shape: {b.shape}.")
    first, second = shard_alike_p.bind(x, y)
    return first, second


def _shape(x: ShapedArray, y: ShapedArray) -> list[ShapedArray]:
    return [x, y]


def _impl(x: Any, y: Any) -> list[Any]:
    x = device_put(x)
    return [x, device_put(y, x.sharding if x.committed else None)]


def _jvp(primals: Values, tangents: Tangents) -> tuple[Any, Any]:
    outs = shard_alike_p.bind(*primals)
    if any([type(t) is Zero for t in tangents]):
        return outs, tangents
    return outs, shard_alike_p.bind(*tangents)


def _transpose(cts: Any, x: Operand, y: Operand) -> Any:
    return cts if any([type(ct) is Zero for ct in cts]) else shard_alike_p.bind(*cts)


def _batch(operands: Values, dims: Dims) -> tuple[Any, Any]:
    (x, y), (at_x, at_y) = operands, dims
    if at_x is None or at_y is None:
        return [x, y], list(dims)
    return shard_alike_p.bind(x, moveaxis(y, at_y, at_x)), [at_x, at_x]


shard_alike_p = register(Primitive(
    "shard_alike", shape_rule=_shape, impl=_impl, jvp=_jvp, transpose=_transpose, batch=_batch,
    multiple_results=True, linear=APART,
))
