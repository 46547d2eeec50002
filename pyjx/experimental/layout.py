"""The order in which the elements of arrays stand in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from pyjx import tree_util
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.layouts import Format, Layout
from pyjx.core.linearity import TOGETHER
from pyjx.core.prefixes import broadcast_argument
from pyjx.core.primitive import Primitive, register
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.rules import jvp_linear
from pyjx.engine.types import Dims, Value, Values
from pyjx.lazy import directory, refuse
from pyjx.runtime.device_put import device_put

__all__ = ["Format", "Layout", "explicit_layout", "with_layout_constraint"]
__dir__ = directory(__name__, __all__)

if not TYPE_CHECKING:
    __getattr__ = refuse(__name__)


@api_boundary
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
    leaves, tree = tree_util.tree_flatten(x)
    given = broadcast_argument("with_layout_constraint layouts", layouts, x)
    return tree_util.tree_unflatten(tree, [
        _constrained(leaf, layout)
        for leaf, layout in zip(leaves, given, strict=True)])


def _constrained(x: Any, layout: Any) -> Any:
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


def _impl(x: Value, *, layout: Layout) -> Value:
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
layout_constraint_p.define(jvp=jvp_linear(layout_constraint_p))
