"""Grids of coordinates, and the objects whose indexing makes or joins arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from pyjx import configuration
from pyjx import lax as ops
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, DTypeLike
from pyjx.core.avals import SymbolicDim, canonical_shape, get_aval
from pyjx.core.integers import as_sizes
from pyjx.core.trace import concrete_or_error
from pyjx.engine.axes import broadcast_in_dim
from pyjx.lazy import deferred
from pyjx.numpy.creation import array, asarray
from pyjx.numpy.promotion import operands, promote_dtypes
from pyjx.numpy.ranges import arange

mapping = deferred("pyjx.transforms.vmap")  # loads the transformations

_user_dtype = dtypes.check_and_canonicalize_user_dtype


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
             ) -> tuple[Array, ...]:
    """The coordinates of a grid: for each vector an array in which it goes along its own axis.

    Args:
      xi: vectors or scalars.
      copy: must be true.
      sparse: leave the other axes at size 1.
      indexing: "ij": the axes are in the order of the vectors; "xy": the first two are swapped.

    Returns:
      A tuple of arrays, one for each argument, which are all of the shape of the grid, unless
      `sparse`.

    >>> import pyjx as jax
    >>> [x.tolist() for x in jax.numpy.meshgrid(jax.numpy.arange(2), jax.numpy.arange(2))]
    [[[0, 1], [0, 1]], [[0, 0], [1, 1]]]
    """
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    args = [asarray(x) for x in operands("meshgrid", *xi)]
    for x in args:
        if x.ndim > 1:
            raise ValueError("Arguments to jax.numpy.meshgrid must be 1D, got: "
                             f"{', '.join(str(x.shape) for x in args)}")
    sizes = [x.size for x in args]
    axes = list(range(len(args)))
    if indexing == "xy" and len(args) >= 2:
        axes[0], axes[1] = 1, 0
    shape = [0] * len(args)
    for axis, n in zip(axes, sizes, strict=True):
        shape[axis] = n
    out = []
    for x, axis in zip(args, axes, strict=True):
        own = [n if not sparse or d == axis else 1 for d, n in enumerate(shape)]
        out.append(broadcast_in_dim(ops.reshape(x, (x.size,)), own, (axis,)))
    return tuple(out)


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The indices of an array of the given shape, one array for each axis.

    With `sparse` a tuple of arrays that broadcast, otherwise they stand along a new first axis.

    Returns:
      An array (ndim, *dimensions) of integers; with `sparse` a tuple of arrays.

    >>> import pyjx as jax
    >>> jax.numpy.indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    dtype = dtypes.default_int_dtype() if dtype is None else _user_dtype(dtype, "indices")
    for n in dimensions if isinstance(dimensions, (tuple, list)) else ():
        concrete_or_error(None, n, "dimensions argument of jnp.indices")
    shape = as_sizes("indices", "shape", dimensions)
    if any([isinstance(n, SymbolicDim) for n in shape]):
        every = [ops.broadcasted_iota(dtype, [
            n if not sparse or d == axis else 1 for d, n in enumerate(shape)], axis)
            for axis in range(len(shape))]
        return tuple(every) if sparse else jnp.stack(every)
    if sparse:
        return tuple([array(x, dtype) for x in np.indices(shape, sparse=True)])
    return array(np.indices(shape), dtype)


def ix_(*args: Any) -> tuple[Array, ...]:
    """Index arrays that together select the grid of the given indices along each axis.

    Returns:
      A tuple of arrays of integers, each of which is long along an axis of its own.

    >>> import pyjx as jax
    >>> [i.shape for i in jax.numpy.ix_([0, 1], [2])]
    [(2, 1), (1, 1)]
    """
    out = []
    for i, x in enumerate(args):
        if isinstance(x, (list, tuple)):
            x = array(x)
        (x,) = operands("ix", x)
        if get_aval(x).ndim != 1:
            raise ValueError("Arguments to jax.numpy.ix_ must be 1-dimensional, got shape "
                             f"{get_aval(x).shape}")
        if get_aval(x).dtype == np.bool_:
            (x,) = jnp.nonzero(x)
        x = asarray(x) if get_aval(x).shape != (0,) else ops.full(
            (0,), 0, dtypes.default_int_dtype())
        shape = [1] * len(args)
        shape[i] = x.size
        out.append(ops.reshape(x, shape))
    return tuple(out)


def _axis_values(key: slice, name: str) -> Any:
    """The numbers that a slice stands for; one with its start alone goes from 0 up to that."""
    start, stop, step = (concrete_or_error(None, getattr(key, part), f"slice {part} of jnp.{name}")
                         for part in ("start", "stop", "step"))
    start = 0 if start is None else start
    if isinstance(step, complex):
        return jnp.linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Grid:
    """`mgrid` and `ogrid`: coordinates by slices."""

    __slots__ = ("name", "sparse")

    def __init__(self, name: str, sparse: bool) -> None:
        self.name = name
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _axis_values(key, self.name)
        axes = [_axis_values(k, self.name) for k in key]
        with configuration.numpy_dtype_promotion("standard"):  # the ranges are no user's arrays
            axes = promote_dtypes(*axes) if axes else []
        grids = list(meshgrid(*axes, indexing="ij", sparse=self.sparse))
        if self.sparse:
            return grids

        return jnp.stack(grids, 0) if grids else arange(0)

    def __repr__(self) -> str:
        return f"jax.numpy.{self.name}"


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)


class _Joiner:
    """Concatenation of slices, arrays and scalars."""

    __slots__ = ()

    name: ClassVar[str]
    axis: ClassVar[int]
    ndmin: ClassVar[int]
    trans1d: ClassVar[int]  # where the axes of an array of fewer than `ndmin` axes begin

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self.axis, self.ndmin, self.trans1d
        matrix = ""
        if items and isinstance(items[0], str):
            axis, ndmin, trans1d, matrix = self._directive(items.pop(0), axis, ndmin, trans1d)
        parts = []
        for item in items:
            if isinstance(item, str):
                raise ValueError(f"jnp.{self.name}: string directive must be placed at the "
                                 "beginning")
            scalar = np.ndim(item) == 0 and not isinstance(item, slice)
            x = _axis_values(item, self.name) if isinstance(item, slice) else \
                item if scalar else asarray(item)
            parts.append(self._raised(x, ndmin, trans1d))
        out = jnp.concatenate(promote_dtypes(*parts), axis=axis)
        if matrix:
            return out[:, None] if matrix == "c" and out.ndim == 1 else jnp.atleast_2d(out)
        return out

    def _directive(self, text: str, axis: int, ndmin: int, trans1d: int
                   ) -> tuple[int, int, int, str]:
        if text in ("r", "c"):
            return axis, ndmin, trans1d, text
        try:
            numbers = [int(n) for n in text.split(",")]
        except ValueError:
            raise ValueError(f"could not understand directive {text!r}") from None
        names = [axis, ndmin, trans1d]
        names[:len(numbers)] = numbers
        return names[0], names[1], names[2], ""

    def _raised(self, x: Array, ndmin: int, trans1d: int) -> Any:
        """`x` with at least `ndmin` axes; `trans1d` is where those of `x` then begin."""
        x = x if hasattr(x, "aval") else asarray(x)
        missing = ndmin - x.ndim
        if x.ndim == 0:
            return ops.reshape(x, (1,) * ndmin)
        if missing <= 0:
            return x
        begin = trans1d if trans1d >= 0 else missing + 1 + trans1d
        made = [d for d in range(ndmin) if not begin <= d < begin + x.ndim]
        return ops.expand_dims(x, made)

    def __repr__(self) -> str:
        return f"jax.numpy.{self.name}"


class RClass(_Joiner):
    """What `r_` is: it joins along the first axis."""

    __slots__ = ()

    name, axis, ndmin, trans1d = "r_", 0, 1, -1


class CClass(_Joiner):
    """What `c_` is: it joins along the last axis, and vectors are columns."""

    __slots__ = ()

    name, axis, ndmin, trans1d = "c_", -1, 2, 0


r_ = RClass()
c_ = CClass()
s_ = np.s_
index_exp = np.index_exp


def fromfunction(function: Callable[..., Any], shape: Sequence[int], *,
                 dtype: DTypeLike | None = float, **kwargs: Any) -> Array:
    """The array of the values of a function of its indices, which it gets one at a time.

    Args:
      function: a function of as many arrays of indices as there are axes, which may also work on
        single numbers: it is mapped.
      shape: the sizes of the axes.
      dtype: of the indices.
      **kwargs: what the function gets besides.

    Returns:
      What the function returns.

    >>> import pyjx as jax
    >>> jax.numpy.fromfunction(lambda i, j: i + j, (2, 2), dtype=int).tolist()
    [[0, 1], [1, 2]]
    """
    shape = canonical_shape(shape)
    fun: Any = partial(function, **kwargs)
    for axis in reversed(range(len(shape))):
        fun = mapping.vmap(fun, tuple([0 if i == axis else None for i in range(len(shape))]))
    return fun(*[jnp.arange(n, dtype=dtype) for n in shape])
