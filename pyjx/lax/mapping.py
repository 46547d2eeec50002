"""A function over the elements of arrays: one after the other, or over all prefixes at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from pyjx.core.array_type import ArrayLike
from pyjx.core.avals import SymbolicDim, get_aval
from pyjx.core.integers import as_axis, as_int
from pyjx.core.prefixes import two_structures
from pyjx.core.value_texts import no_array, shortened
from pyjx.engine.axes import moveaxis
from pyjx.engine.functions import source_of, tree_text
from pyjx.engine.primitives import cast
from pyjx.lax.common import operands_in
from pyjx.lax.joining import concatenate, slice_in_dim
from pyjx.lax.scans import scan
from pyjx.lax.shapes import axes_in_one, axis_in_two, expand_dims, reshape, squeeze
from pyjx.lax.shapes import rev as reverse_axes
from pyjx.runtime.signature import debug_info_of
from pyjx.transforms.vmap import vmap
from pyjx.tree_util import tree_flatten, tree_map, tree_unflatten, treedef_tuple

_Y = TypeVar("_Y")


def map(f: Callable[[Any], _Y], xs: Any, *, batch_size: int | None = None) -> _Y:
    """The stacked results of `f` for each element of `xs`, one after the other.

    As `vmap`, but with the memory of one element, or of `batch_size` of them.

    Args:
      f: from an element to a pytree of arrays.
      xs: pytree of arrays, which are taken apart along their first axis.
      batch_size: how many elements `f` is applied to at a time, by `vmap`; 0 is as None.

    Raises:
      ValueError: the arrays differ in their length, or there is none.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> jax.lax.map(lambda x: x * x, jnp.arange(4)).tolist()
    [0, 1, 4, 9]
    """
    if not callable(f):
        raise TypeError(f"lax.map: f argument should be callable, got {shortened(f)}.")
    if batch_size is None or batch_size == 0:
        return scan(_body(f), (), xs)[1]
    if as_int("lax.map", "batch_size", batch_size) < 1:
        raise ValueError(f"lax.map: batch_size must be a nonnegative int, got {batch_size}.")
    leaves, tree = operands_in("map (xs)", xs)
    shapes = [get_aval(x).shape for x in leaves]
    if len({shape[:1] for shape in shapes}) != 1 or () in shapes:
        raise ValueError("lax.map with batch_size: the arrays must have one leading axis size, got "
                         f"shapes {shapes}.")
    size = shapes[0][0]
    whole = size // batch_size * batch_size
    parts = []
    if whole:
        stacks = [axis_in_two(slice_in_dim(x, 0, whole), 0, whole // batch_size) for x in leaves]
        ys = scan(_body(vmap(f)), (), tree_unflatten(tree, stacks))[1]
        parts.append(tree_map(lambda y: axes_in_one(y, 0), ys))
    if whole < size or not size:
        parts.append(vmap(f)(tree_unflatten(tree, [slice_in_dim(x, whole, size) for x in leaves])))
    return parts[0] if len(parts) == 1 else tree_map(lambda *ys: concatenate(ys, 0), *parts)


def _body(f: Callable[[Any], Any]) -> Callable[..., Any]:
    """`f` as the body of a scan, which is traced under the name of `f`."""
    def step(_: Any, x: ArrayLike) -> Any:
        return (), f(x)

    step.debug_info = lambda tree: debug_info_of(  # type: ignore[attr-defined]
        "map", f, treedef_tuple(tree.children()[1:]))
    return step


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False,
                     axis: int = 0) -> Any:
    """All prefix results of an associative operation, in a logarithmic number of steps.

    Result i is `fn(fn(elems[0], elems[1]), ...)` up to element i. (Blelloch 1990, Prefix Sums and
    Their Applications)

    Args:
      fn: associative, from two slices of `elems` along `axis`, element by element, to one.
      elems: pytree of arrays with the same size along `axis`.
      reverse: whether the results are those of suffixes.
      axis: along which the elements lie.

    Raises:
      TypeError: `fn` is not callable.
      ValueError: the sizes differ, or an array has no such axis.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> jax.lax.associative_scan(jnp.multiply, jnp.arange(1, 6)).tolist()
    [1, 2, 6, 24, 120]

    Running products of matrices, in a number of steps that grows with the logarithm of theirs:

    >>> a = jnp.array([[1.0, 1.0], [0.0, 1.0]])
    >>> jax.lax.associative_scan(jnp.matmul, jnp.stack([a] * 4))[-1].tolist()
    [[1.0, 4.0], [0.0, 1.0]]
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, tree = operands_in("associative_scan (elems)", elems)
    if not leaves:
        raise ValueError("lax.associative_scan: elems holds no arrays.")
    kind = (tree.node_data() or [None])[0]
    if kind in (list, tuple) and not any([get_aval(x).ndim for x in leaves]):
        raise np.exceptions.AxisError(
            f"associative_scan: elems holds numbers, which have no axis {axis}. "
            f"{no_array(kind, len(leaves), 'elems')}")
    axes = [as_axis("associative_scan", "axis", axis, get_aval(x).ndim) for x in leaves]
    if len({get_aval(x).shape[a] for x, a in zip(leaves, axes, strict=True)}) > 1:
        raise ValueError("Array inputs to associative_scan must have the same first dimension. "
                         f"(saw: {[get_aval(x).shape for x in leaves]})")
    if reverse:
        leaves = [reverse_axes(x, (a,)) for x, a in zip(leaves, axes, strict=True)]

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        outs, out_tree = tree_flatten(fn(tree_unflatten(tree, a), tree_unflatten(tree, b)))
        if out_tree != tree:
            raise ValueError("lax.associative_scan: fn must return what its arguments are, "
                             + two_structures("{}, got {}", tree, out_tree)
                             + f". fn is {source_of(fn)}.")
        if [get_aval(x).shape for x in outs] != [get_aval(x).shape for x in a]:
            raise ValueError(
                "lax.associative_scan: fn must combine slices along the axis element by element, "
                f"to arrays of their shapes, {tree_text(tree_unflatten(tree, a))}, got "
                f"{tree_text(tree_unflatten(tree, outs))}. fn is {source_of(fn)}.")
        return outs

    prefixes = _one_by_one if isinstance(
        get_aval(leaves[0]).shape[axes[0]], SymbolicDim) else _prefixes
    outs = prefixes(combine, leaves, axes)
    if reverse:
        outs = [reverse_axes(x, (a,)) for x, a in zip(outs, axes, strict=True)]
    return tree_unflatten(tree, outs)


def _one_by_one(combine: Callable[..., list[Any]], xs: Sequence[Any], axes: Sequence[int]
                ) -> list[Any]:
    """Prefixes where the number of elements, and so that of levels of pairs, is not known."""
    first, rest = [[slice_in_dim(x, start, stop, axis=a) for x, a in zip(xs, axes, strict=True)]
                   for start, stop in ((0, 1), (1, None))]

    def step(before: list[Any], now: list[Any]) -> tuple[list[Any], list[Any]]:
        outs = combine(before, [expand_dims(x, (a,)) for x, a in zip(now, axes, strict=True)])
        return outs, [squeeze(x, (a,)) for x, a in zip(outs, axes, strict=True)]

    _, ys = scan(step, first, [moveaxis(x, a, 0) for x, a in zip(rest, axes, strict=True)])
    return [concatenate([x, moveaxis(y, 0, a)], a) for x, y, a in zip(first, ys, axes, strict=True)]


def _prefixes(combine: Callable[..., list[Any]], xs: Sequence[Any], axes: Sequence[int]
              ) -> list[Any]:
    """Pairs are combined, their prefixes found, and those between them from these."""
    n = get_aval(xs[0]).shape[axes[0]]
    if n < 2:
        return list(xs)

    def part(arrays: Sequence[Any], start: int, stop: int, stride: int = 1) -> list[Any]:
        return [slice_in_dim(x, start, stop, stride, a) for x, a in zip(arrays, axes, strict=True)]

    odd = _prefixes(combine, combine(part(xs, 0, n - 1, 2), part(xs, 1, n, 2)), axes)
    even = part(xs, 0, 1)
    if n > 2:
        more = combine(part(odd, 0, (n - 1) // 2), part(xs, 2, n, 2))
        even = [concatenate([x, y], a) for x, y, a in zip(even, more, axes, strict=True)]
    return [_interleaved(x, y, a) for x, y, a in zip(even, odd, axes, strict=True)]


def _interleaved(even: ArrayLike, odd: ArrayLike, axis: int) -> Any:
    """The elements of both in turn; `even` has as many as `odd`, or one more."""
    m, n = get_aval(even).shape[axis], get_aval(odd).shape[axis]
    shape = list(get_aval(odd).shape)
    shape[axis] = 2 * n
    paired = slice_in_dim(even, 0, n, axis=axis) if m > n else even
    both = reshape(concatenate([expand_dims(x, (axis + 1,)) for x in (paired, odd)], axis + 1),
                   tuple(shape))
    both = cast(both, get_aval(both).dtype)
    if m == n:
        return both
    return concatenate([both, slice_in_dim(even, n, m, axis=axis)], axis)
