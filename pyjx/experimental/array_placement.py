"""How arrays lie: the order of their elements in memory, and sharded alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from pyjx.core.arithmetic import APART, TOGETHER
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.layouts import Format, Layout
from pyjx.core.prefixes import of_each_with
from pyjx.core.primitive import Primitive, register
from pyjx.engine.axes import moveaxis
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Dims, Operand, Tangents, Value, Values
from pyjx.runtime.device_put import device_put


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Say in which order the elements of arrays stand in memory.

    Args:
      x: a pytree of arrays.
      layouts: a `Layout`, or a pytree prefix of `x` of them.

    Raises:
      ValueError: it is no layout, or has another number of dimensions than its array.

    >>> import pyjx as jax
    >>> from pyjx.experimental.layout import Layout, with_layout_constraint
    >>> with_layout_constraint(jax.numpy.ones((2, 3)), Layout((1, 0))).format.layout.major_to_minor
    (1, 0)
    """
    return of_each_with(_constrained, "x", x, "with_layout_constraint layouts", layouts)


def _constrained(x: ArrayLike, layout: Any) -> Any:
    if not isinstance(layout, Layout):
        raise ValueError("layouts passed to `with_layout_constraint` must be of type `Layout`. Got "
                         f"{layout!r} of type {type(layout)}.")
    layout.check_compatible_aval(get_aval(x).shape)
    return layout_constraint_p.bind(x, layout=layout)


def explicit_layout(f: Callable[..., Any] | None = None, /, *, in_layouts: Any = None) -> Any:
    """A function whose arguments stand in memory as `in_layouts` (a pytree prefix of them) say.

    Raises:
      TypeError: `in_layouts` is missing.
    """
    if in_layouts is None:
        raise TypeError("Missing required keyword argument: 'in_layouts'")
    if f is None:
        return partial(explicit_layout, in_layouts=in_layouts)

    @wraps(f)
    def with_layouts(*args: Any) -> Any:
        return f(*with_layout_constraint(args, in_layouts))

    return with_layouts


def _shape(x: ShapedArray, *, layout: Layout) -> ShapedArray:
    return x


def _impl(x: Array, *, layout: Layout) -> Array:
    x = device_put(x)
    return device_put(x, Format(layout, x.sharding))


def _batch(operands: Values, dims: Dims, *, layout: Layout) -> tuple[Value, Any]:
    """The batch dimension is the outermost one, as in an array of arrays."""
    (x,), (dim,) = operands, dims
    assert dim is not None  # the rule is asked for operands that are mapped
    return layout_constraint_p.bind(x, layout=layout.mapped(dim)), dim


layout_constraint_p: Primitive = register(Primitive(
    "layout_constraint", shape_rule=_shape, impl=_impl, batch=_batch, linear=TOGETHER,
    transpose=lambda ct, x, **params: [layout_constraint_p.bind(ct, **params)],
))


def shard_alike(x: ArrayLike, y: ArrayLike) -> tuple[Any, Any]:
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


def _alike_impl(x: Any, y: Any) -> list[Any]:
    x = device_put(x)
    return [x, device_put(y, x.sharding if x.committed else None)]


def _alike_jvp(primals: Values, tangents: Tangents) -> tuple[Any, Any]:
    outs = shard_alike_p.bind(*primals)
    if any([type(t) is Zero for t in tangents]):
        return outs, tangents
    return outs, shard_alike_p.bind(*tangents)


def _alike_transpose(cts: Any, x: Operand, y: Operand) -> Any:
    return cts if any([type(ct) is Zero for ct in cts]) else shard_alike_p.bind(*cts)


def _alike_batch(operands: Values, dims: Dims) -> tuple[Any, Any]:
    (x, y), (at_x, at_y) = operands, dims
    if at_x is None or at_y is None:
        return [x, y], list(dims)
    return shard_alike_p.bind(x, moveaxis(y, at_y, at_x)), [at_x, at_x]


shard_alike_p = register(Primitive(
    "shard_alike", shape_rule=lambda x, y: [x, y], impl=_alike_impl, jvp=_alike_jvp,
    transpose=_alike_transpose, batch=_alike_batch, multiple_results=True, linear=APART,
))
