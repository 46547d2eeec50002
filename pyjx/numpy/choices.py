"""Functions that choose, for each element, one of several values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.trace import concrete_or_error
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.elementwise import stretch
from pyjx.numpy.operands import as_bool, dtype_of, numpy_function
from pyjx.numpy.patterns import roomy
from pyjx.numpy.promotion import as_operand, check_arraylike, convert, operands, promote_dtypes


def _spread(arrays: Sequence[Any], shape: tuple[int, ...]) -> list[Any]:
    return [stretch(x, shape) for x in arrays]


def choose(a: ArrayLike, choices: Sequence[ArrayLike] | Array | np.ndarray, out: None = None,
           mode: str = "raise") -> Array:
    """For each element of `a` the element at its place of that choice whose number it is.

    Args:
      a: array of integers.
      choices: array whose first axis are the choices, or a sequence of arrays; they and `a`
        broadcast against each other.
      out: must be None.
      mode: what becomes of numbers out of range: "raise" refuses them and needs values that are
        known while tracing; "wrap" takes the remainder, "clip" the nearest.

    Returns:
      An array of the shape that the indices and choices are broadcast to.

    Raises:
      ValueError: `a` holds no integers, a number is out of range, or the mode is none of these.

    >>> import pyjx as jax
    >>> jax.numpy.choose(jax.numpy.array([1, 0]), [jax.numpy.array([1, 2]), 10]).tolist()
    [10, 2]
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.choose is not supported.")
    a, *arrays = operands("choose", a, *choices)
    if not dtypes.issubdtype(dtype_of(a), np.integer):
        raise ValueError("`a` array must be integer typed")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    if mode == "raise":
        known = concrete_or_error(
            np.asarray, a, "The error occurred because jnp.choose was jit-compiled with "
            "mode='raise'. Use mode='wrap' or mode='clip' instead.")
        if known.size and not (known.min() >= 0 and known.max() < len(arrays)):
            raise ValueError("invalid entry in choice array")
    return _chosen(a, arrays, mode == "wrap")


@numpy_function(static_argnames=("wrap",))
def _chosen(a: ArrayLike, choices: Any, wrap: bool) -> Any:
    choices = promote_dtypes(*choices)
    n, a = len(choices), roomy(a)
    a = jnp.mod(a, n) if wrap else jnp.clip(a, 0, n - 1)
    shape = broadcast_shapes(*[get_aval(x).shape for x in (a, *choices)])
    stacked = lax.stack(_spread(choices, shape))
    return convert(jnp.take_along_axis(stacked, stretch(a, shape)[None], 0)[0], dtype_of(stacked))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: ArrayLike = 0) -> Array:
    """For each element that of the choice whose condition is the first to hold.

    Args:
      condlist: arrays of booleans, or of numbers, which are true if they are not zero.
      choicelist: as many arrays; all broadcast against each other.
      default: the value where no condition holds.

    Returns:
      An array of the shape that conditions and choices are broadcast to, of the dtype to which the
      choices and `default` promote.

    Raises:
      ValueError: the lists differ in length or are empty.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(4)
    >>> jax.numpy.select([x < 1, x > 2], [x - 1, x * 10], 7).tolist()
    [-1, 7, 7, 30]
    """
    if len(condlist) != len(choicelist):
        raise ValueError("condlist must have length equal to choicelist "
                         f"({len(condlist)} vs {len(choicelist)})")
    if len(condlist) == 0:
        raise ValueError("condlist must be non-empty")
    check_arraylike("select", *condlist, *choicelist, default)
    return _selected(list(condlist), list(choicelist), default)


@numpy_function
def _selected(conditions: Sequence[ArrayLike], choices: Sequence[ArrayLike],
              default: ArrayLike) -> Any:
    conditions = [as_bool(as_operand(c)) for c in conditions]
    *choices, default = promote_dtypes(*[as_operand(x) for x in (*choices, default)])
    shape = broadcast_shapes(*[get_aval(x).shape for x in (*conditions, *choices, default)])
    out = stretch(default, shape)
    for condition, x in zip(reversed(conditions), reversed(choices), strict=True):
        out = lax.select_n(stretch(condition, shape), out, stretch(x, shape))
    return out


def piecewise(x: ArrayLike, condlist: Sequence[ArrayLike] | Array | np.ndarray,
              funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """A function that is given in pieces: for each element that whose condition is the last to
    hold.

    Args:
      x: array.
      condlist: conditions of the shape of `x`, or that broadcast with it.
      funclist: for each condition a function of a number, or a number; and one more for the
        elements where none holds, which are zero without it. All functions are computed for all
        elements.
      args, kw: further arguments of the functions.

    Returns:
      An array of the dtype of `x`, and of its shape or that of the conditions.

    Raises:
      ValueError: there are too few or too many functions.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(4.0)
    >>> jax.numpy.piecewise(x, [x < 1, x > 2], [-1, lambda v: v * 10]).tolist()
    [-1.0, 0.0, 0.0, 30.0]
    """
    (x,) = operands("piecewise", x)
    count, given = len(condlist), len(funclist)
    if given not in (count, count + 1):
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are "
                         f"expected; got {given}")
    masks = [jnp.asarray(as_bool(mask)) for mask in operands("piecewise", *condlist)]
    shape = broadcast_shapes(get_aval(x).shape, *[mask.shape for mask in masks])
    dtype = dtype_of(x)

    def values(piece: ArrayLike | Callable[..., ArrayLike], mask: Array) -> Any:
        if callable(piece):  # no slope comes from the elements of other pieces, be it infinite
            own = jnp.where(mask, x, lax.stop_gradient(x))
            piece = jnp.vectorize(_with_arguments(piece, args, kw))(own)
        return stretch(convert(jnp.asarray(piece), dtype), shape)

    later = jnp.zeros((), bool)
    chosen = []
    for mask in reversed(masks):
        chosen.append(mask & ~later)
        later = later | mask
    out = values(funclist[count] if given > count else 0, ~later)
    for mask, piece in zip(reversed(chosen), funclist, strict=False):
        out = jnp.where(mask, values(piece, mask), out)
    return out


def _with_arguments(function: Callable[..., Any], args: tuple[Any, ...], kw: dict[str, Any]
                    ) -> Callable[[Any], Any]:
    return lambda v: function(v, *args, **kw)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike = 0) -> Array:
    """The elements where a condition holds, as a flat array.

    Args:
      condition: array of as many elements; true if they are not zero. Without `size` its values
        must be known while tracing.
      arr: array.
      size: the number of elements of the result; the surplus is left out, what lacks is
        `fill_value`.
      fill_value: what stands in the places that `size` adds.

    Returns:
      A one-dimensional array of as many elements as are True, or of `size` elements: the latter is
      needed where the condition is traced.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(4)
    >>> jax.numpy.extract(x > 1, x).tolist()
    [2, 3]
    """
    condition, arr = operands("extract", condition, arr)
    return jnp.compress(jnp.ravel(condition), jnp.ravel(arr), size=size, fill_value=fill_value)
