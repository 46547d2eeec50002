"""The operations on axes that the engines themselves need: transpose, broadcast, sum.

They stand here, and not in `pyjx.lax`, because batching moves and makes axes and reverse mode
undoes broadcasts. `pyjx.lax` exports them to users.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import TOGETHER, reduction
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.evaluation import all_eqns
from pyjx.core.explicit import (
    Entries,
    batched_sharding,
    entries_of,
    resolved_sharding,
    sharding_for,
    spec_of,
    with_dim,
)
from pyjx.core.integers import as_ints, as_sizes
from pyjx.core.jaxpr import Jaxpr, JaxprEqn
from pyjx.core.layouts import ShardingLike
from pyjx.core.named_axes import Axis, sharding_along
from pyjx.core.primitive import (
    ANY_WAY_IF_SMALL,
    AS_PROGRAMS,
    CHEAP,
    Primitive,
    Unrolled,
    find_primitive,
    register,
)
from pyjx.core.scalars import is_scalar_constant
from pyjx.core.source_info import summarize
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.engine.recording import unless_idle
from pyjx.engine.types import BatchDims, Operand, Tangent, Tangents, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.jaxlib_api import Sharding


def checked_aval(name: str, x: object, position: int = 0) -> ShapedArray:
    """The aval of an operand; the error names the operation."""
    try:
        return get_aval(x)
    except TypeError as error:
        why = str(error).replace(f" of type {type(x)}", "")
        raise TypeError(f"Error interpreting argument to {name} as a JAX value. The problematic "
                        f"value is of type {type(x)} and was passed to {name} at position "
                        f"{position}. {why}") from None


def check_permutation(permutation: Sequence[int], shape: Sequence[Any], given: Any) -> None:
    """Raise TypeError unless axes, which were `given` so, are those of a shape in some order."""
    if sorted(permutation) != list(range(len(shape))):
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, got "
                        f"permutation {given} for operand shape {shape}.")


def _transpose_shape(x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    check_permutation(permutation, x.shape, permutation)
    return x.update(shape=tuple([x.shape[i] for i in permutation]))


def inverse_permutation(permutation: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes this one."""
    inverse = [0] * len(permutation)
    for i, p in enumerate(permutation):
        inverse[p] = i
    return tuple(inverse)


def _transpose_batch(operands: Values, dims: BatchDims, *, permutation: tuple[int, ...]
                     ) -> tuple[Value, int]:
    (x,), (d,) = operands, dims
    moved = (d, *[i if i < d else i + 1 for i in permutation])
    return transpose_p.bind(x, permutation=moved), 0


def _transpose_sharding(out: ShapedArray, x: ShapedArray, *, permutation: tuple[int, ...]
                        ) -> Entries:
    entries = entries_of(x)
    return tuple([entries[i] for i in permutation])


transpose_p: Primitive = register(Primitive(
    "transpose", moves=True, compiled=ANY_WAY_IF_SMALL, shape_rule=_transpose_shape,
    sharding_rule=_transpose_sharding,
    batch=_transpose_batch, linear=TOGETHER, cost=CHEAP,
    record=unless_idle(lambda aval, permutation: permutation == tuple(range(aval.ndim))),
    transpose=lambda ct, x, *, permutation: (
        transpose_p.bind(ct, permutation=inverse_permutation(permutation)),
    ),
))


def transpose(operand: Any, permutation: Sequence[int]) -> Array:
    """The operand with its axes in another order: axis i of the result is `permutation[i]`.

    Args:
      operand: an array.
      permutation: the axes 0, 1, ... in their new order; none is negative.

    Raises:
      TypeError: `permutation` is not a permutation of the operand's axes.

    >>> import pyjx as jax
    >>> jax.lax.transpose(jax.numpy.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    order = as_ints("transpose", "permutation", permutation)
    aval = checked_aval("transpose", operand)
    if order == tuple(range(aval.ndim)) and not isinstance(operand, np.ndarray) and not (
            is_scalar_constant(operand)):
        return operand
    return transpose_p.bind(operand, permutation=order)


def moveaxis(x: ArrayLike, source: int, destination: int) -> Any:
    """`x` with one axis moved."""
    if source == destination:
        return x
    if get_aval(x).is_high:
        return _of_own_type(x, source, destination)
    order = [i for i in range(get_aval(x).ndim) if i != source]
    order.insert(destination, source)
    return transpose_p.bind(x, permutation=tuple(order))


def _broadcast_shape(x: ShapedArray, *dynamic_shape: Any, shape: tuple[int, ...],
                     broadcast_dimensions: tuple[int, ...], sharding: Sharding | None = None
                    ) -> ShapedArray:
    shape = as_sizes("broadcast_in_dim", "shape", shape)
    if len(broadcast_dimensions) != x.ndim:
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; "
            f"got broadcast_dimensions {broadcast_dimensions} for operand ndim {x.ndim}.")
    if len(shape) < x.ndim:
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand "
            f"shape; got operand ndim {x.ndim} and target broadcast ndim {len(shape)}.")
    if any(not 0 <= d < len(shape) for d in broadcast_dimensions):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got "
            f"{broadcast_dimensions} for operand ndim {x.ndim} and shape {shape}.")
    if any(a >= b for a, b in pairwise(broadcast_dimensions)):
        raise TypeError("broadcast_in_dim broadcast_dimensions must not contain duplicates and, as "
                        "parameters of the primitive, be strictly increasing; got "
                        f"broadcast_dimensions {broadcast_dimensions}")
    for i, d in enumerate(broadcast_dimensions):
        if x.shape[i] != shape[d] and x.shape[i] != 1:
            raise TypeError("broadcast_in_dim operand dimension sizes must either be 1, or be "
                            "equal to their corresponding dimensions in the target broadcast "
                            f"shape; got operand of shape {x.shape}, target broadcast shape "
                            f"{shape}, broadcast_dimensions {broadcast_dimensions}")
    return ShapedArray(shape, x.dtype, x.weak_type)


def _broadcast_transpose(ct: Tangent, x: Operand, *, shape: tuple[int, ...],
                         broadcast_dimensions: tuple[int, ...], sharding: Sharding | None = None
                        ) -> Tangents:
    in_shape = x.aval.shape
    stretched = [d for d, n in zip(broadcast_dimensions, in_shape, strict=True) if n != shape[d]]
    new = [d for d in range(len(shape)) if d not in broadcast_dimensions]
    out = reduce_sum(ct, sorted(new + stretched))
    if stretched:
        kept = tuple([i for i, n in enumerate(in_shape) if n == shape[broadcast_dimensions[i]]])
        out = broadcast_in_dim(out, in_shape, kept, out_sharding=sharding_for(x.aval, get_aval(ct)))
    return (out,)


def _broadcast_batch(operands: Values, dims: BatchDims, *, shape: tuple[int, ...],
                     broadcast_dimensions: tuple[int, ...], sharding: Sharding | None = None
                     ) -> tuple[Value, int]:
    (x,), (d,) = operands, dims
    x = moveaxis(x, d, 0)
    aval = get_aval(x)
    moved = (0, *[i + 1 for i in broadcast_dimensions])
    return broadcast_in_dim_p.bind(
        x, shape=(aval.shape[0], *shape), broadcast_dimensions=moved,
        sharding=batched_sharding(sharding, 0, aval, 0)
    ), 0


def _broadcast_sharding(out: ShapedArray, x: ShapedArray, *dynamic_shape: Any,
                        broadcast_dimensions: tuple[int, ...], **params: Any) -> Entries:
    entries = [None] * out.ndim
    for d, n, entry in zip(broadcast_dimensions, x.shape, entries_of(x), strict=True):
        entries[d] = entry if n == out.shape[d] else None
    return tuple(entries)


broadcast_in_dim_p = register(Primitive(
    "broadcast_in_dim", moves=True, shape_rule=_broadcast_shape, sharding_rule=_broadcast_sharding,
    transpose=_broadcast_transpose, batch=_broadcast_batch, linear=TOGETHER,
    cost=CHEAP,
    record=unless_idle(lambda aval, shape, broadcast_dimensions, sharding=None: (
        aval.shape == shape and sharding is None and broadcast_dimensions == tuple(
            range(aval.ndim)))),
    printed=lambda params: [
        (key, params[key]) for key in ("broadcast_dimensions",) if params[key]],
))


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int],
                     *, out_sharding: ShardingLike = None) -> Array:
    """Stretch the operand to `shape`: its axis i becomes axis `broadcast_dimensions[i]`.

    Axes of size 1 are repeated, and so is the operand along the axes that are new.

    Args:
      operand: an array.
      shape: of the result.
      broadcast_dimensions: for each axis of the operand its place in the result, each another one.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      TypeError: the axes are out of range, not distinct, or of another size.

    >>> import pyjx as jax
    >>> jax.lax.broadcast_in_dim(jax.numpy.arange(2), (2, 3), (0,)).tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    if type(shape) is not tuple:  # the shape rule, whose answers are kept, checks what is in it
        shape = as_sizes("broadcast_in_dim", "shape", shape)
    dims = as_ints("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    aval = checked_aval("broadcast_in_dim", operand)
    if any(a > b for a, b in pairwise(dims)) and len(dims) == aval.ndim and (
            min(dims) >= 0 and max(dims) < len(shape)):  # the primitive takes them in order
        order = sorted(range(len(dims)), key=dims.__getitem__)
        operand, dims = transpose(operand, order), tuple(sorted(dims))
        aval = get_aval(operand)
    same = aval.shape == shape and dims == tuple(range(len(shape)))
    if out_sharding is not None:
        out_sharding = resolved_sharding(out_sharding, shape, "broadcast_in_dim")
        same = same and aval.reshard(out_sharding) is aval
    if same and not isinstance(operand, np.ndarray) and not is_scalar_constant(operand):
        return operand
    return broadcast_in_dim_p.bind(
        operand, shape=shape, broadcast_dimensions=dims, sharding=out_sharding)


def broadcast_axis(x: ArrayLike, along: Axis | int, axis: int) -> Any:
    """`x` repeated along a new axis of this size; along a mapped one it lies as that says."""
    aval, cut = get_aval(x), sharding_along(along) if isinstance(along, Axis) else None
    if aval.is_high:
        return _of_own_type(x, None, axis)
    size = along.size if isinstance(along, Axis) else along
    shape = list(aval.shape)
    dims = [i if i < axis else i + 1 for i in range(len(shape))]
    shape.insert(axis, size)
    return broadcast_in_dim_p.bind(
        x, shape=tuple(shape), broadcast_dimensions=tuple(dims), sharding=None if cut is None else
        with_dim(aval, axis, size, cut=cut).place.sharding.update(mesh=cut.mesh))


def _of_own_type(x: Any, source: Any, destination: Any) -> Any:
    """A batch of values of a library's type, which is nowhere else than where it is wanted."""
    aval: Any = get_aval(x)
    if source is not None and spec_of(aval, source) == spec_of(aval, destination):
        return x
    has = "is one for all examples" if source is None else f"has its examples as {source}"
    raise NotImplementedError(
        f"vmap: a value of type {aval} {has}, and is wanted with them as "
        f"{spec_of(aval, destination)}: only its library knows how. Have it so before.")


def batch_along(operands: Sequence[Any], dims: Sequence[int | None]) -> Axis:
    """The axis of the examples that the operands of a batching rule have."""
    size = None
    for x, d in zip(operands, dims, strict=True):
        if d is not None:
            aval = get_aval(x)
            size, sharding = aval.shape[d], aval.place.sharding
            if sharding is not None and sharding.spec[d] is not None:
                return Axis(None, size,
                            sharding=sharding.update(spec=PartitionSpec(sharding.spec[d])))
    assert size is not None
    return Axis(None, size)


def at_front(x: ArrayLike, dim: int | None, along: Axis | int) -> Any:
    """A batched value with its batch axis in front; one that is not batched is repeated."""
    return broadcast_axis(x, along, 0) if dim is None else moveaxis(x, dim, 0)


def all_at_front(operands: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
    """The operands of a batching rule, each with its batch axis in front."""
    along = batch_along(operands, dims)
    return [at_front(x, d, along) for x, d in zip(operands, dims, strict=True)]


def reduced_shape(name: str, x: ShapedArray, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without `axes`, which must be distinct and in range."""
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: duplicate value in 'axes' of reduction: {axes}")
    if any(not 0 <= a < x.ndim for a in axes):
        raise ValueError(f"{name}: reduction axes {axes} contains out-of-bounds indices for "
                         f"{x.str_short()}, an operand of shape {x.shape}")
    return tuple([n for i, n in enumerate(x.shape) if i not in axes])


def _reduce_sum_shape(x: ShapedArray, *, axes: tuple[int, ...], out_sharding: ShardingLike = None
                      ) -> ShapedArray:
    if not dtypes.issubdtype(x.dtype, np.number):
        raise TypeError(f"reduce_sum does not accept dtype {x.dtype}. Accepted dtypes are "
                        "subtypes of number.")
    return ShapedArray(reduced_shape("reduce_sum", x, axes), x.dtype, x.weak_type)


def reduced_sharding(out: Any, x: ShapedArray, *, axes: tuple[int, ...], **params: Any) -> Entries:
    """The sharding rule of a reduction over `axes`."""
    return tuple([e for i, e in enumerate(entries_of(x)) if i not in axes])


def reduction_batch(primitive: Primitive) -> Any:
    """The batching rule of a reduction over `axes`."""

    def batch(operands: Values, dims: BatchDims, *, axes: tuple[int, ...], **params: Any
              ) -> tuple[Value, int]:
        (x,), (d,) = operands, dims
        moved = tuple([a if a < d else a + 1 for a in axes])
        out_dim = d - sum(1 for a in moved if a < d)
        if params.get("out_sharding") is not None:
            params["out_sharding"] = batched_sharding(params["out_sharding"], out_dim, get_aval(x),
                                                      d)
        return primitive.bind(x, axes=moved, **params), out_dim

    return batch


def _reduce_sum_transpose(ct: Tangent, x: Operand, *, axes: tuple[int, ...],
                          out_sharding: ShardingLike = None) -> Tangents:
    return (stretched_along(ct, x.aval.shape, axes, sharding_for(x.aval, get_aval(ct))),)


def stretched_along(reduced: Any, shape: Sequence[int], axes: Sequence[Any],
                    out_sharding: ShardingLike = None) -> Array:
    """What an array of `shape` was reduced to over the axes, as one of that shape."""
    return broadcast_in_dim(reduced, shape, [i for i in range(len(shape)) if i not in axes],
                            out_sharding=out_sharding)


_MANY = 64  # results, from which on it matters outside of loops


def few_to_one(most: int, name: str, module: str) -> Unrolled:
    """The reduction of at most so many floats of a row to one, for many rows, by an operation on
    two.

    Sums of rows of three take an eighth of the time of XLA's library, which is for long rows; the
    times meet at ten for sums and six for extrema.
    """

    def when(eqn: JaxprEqn, repeated: int) -> bool:
        (x,), (out,) = eqn.invars, eqn.outvars
        return (x.aval.dtype.char in "fd" and all([type(n) is int for n in x.aval.shape])
                and x.aval.ndim - 1 in eqn.params["axes"]
                and 0 < 2 * out.aval.size <= x.aval.size <= most * out.aval.size
                and (repeated > 0 or out.aval.size >= _MANY))

    def one_by_one(x: Value, *, axes: tuple[int, ...], **_: Any) -> Value:
        slice_p, combine_p = (find_primitive(*key) for key in (
            ("slice", "pyjx.lax.joining"), (name, module)))
        squeeze_p = find_primitive("squeeze", "pyjx.lax.shapes")
        shape = get_aval(x).shape
        parts = []
        for place in np.ndindex(*[shape[a] for a in axes]):
            at = dict(zip(axes, place, strict=True))
            part = slice_p.bind(
                x, start_indices=tuple([at.get(a, 0) for a in range(len(shape))]), strides=None,
                limit_indices=tuple([at[a] + 1 if a in at else n for a, n in enumerate(shape)]))
            parts.append(squeeze_p.bind(part, dimensions=axes))
        return reduce(combine_p.bind, parts)

    return Unrolled(when, one_by_one)


reduce_sum_p: Primitive = register(Primitive(
    "reduce_sum", compiled=AS_PROGRAMS, arithmetic=reduction, shape_rule=_reduce_sum_shape,
    sharding_rule=reduced_sharding, unrolled=few_to_one(8, "add", "pyjx.lax.elementwise"),
    transpose=_reduce_sum_transpose, linear=TOGETHER,
))


reduce_sum_p.define(batch=reduction_batch(reduce_sum_p))

_FLOATS_OF_16_BITS = (np.dtype(np.float16), np.dtype(dtypes.bfloat16))


def check_reductions(jaxpr: Jaxpr) -> None:
    """Raise ValueError for a sum of 16-bit floats, here or in a program inside."""
    for eqn in all_eqns(jaxpr):
        if eqn.primitive is reduce_sum_p and eqn.invars[0].aval.dtype in _FLOATS_OF_16_BITS:
            raise ValueError(
                f"reduce_sum on operand {eqn.invars[0].aval.str_short(short_dtypes=True)} is not "
                "allowed when jax_allow_f16_reductions=False. Made at: "
                f"{summarize(eqn.source_info)}")


def _open_sum_sharding(sharding: Sharding, x: ShapedArray, axes: tuple[int, ...]) -> Any:
    """The `out_sharding` of a sum over `axes`, which may leave sums over the mesh open where the
    operand is cut along these; those of the operand stay as they are.

    Raises:
      ShardingTypeError: another sum would be open.
      ValueError: the result would be reduced.
    """
    spec, (unreduced, reduced) = sharding.spec, (x.place.spec.unreduced, x.place.spec.reduced)
    if not spec.reduced <= reduced:
        raise ValueError("out_sharding passed to reduce_sum cannot be reduced. Got "
                         f"out_sharding={spec} and operand type {x.str_short()}")
    summed = axes_of([entries_of(x)[i] for i in axes])
    if not spec.unreduced <= unreduced.union(summed):
        raise ShardingTypeError(
            "out_sharding's unreduced axes should be in operand's specs that were reduce_sum over. "
            f"Got operand={x.str_short()}, axes={axes} and out_sharding={spec}")
    return sharding.update(spec=spec.update(
        unreduced=spec.unreduced | unreduced, reduced=reduced, unreduced_kind=None))


def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: ShardingLike = None) -> Array:
    """The sum over `axes`.

    Args:
      operand: an array.
      axes: the axes that go, a sequence of ints, none of which is negative.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.lax.reduce_sum(jax.numpy.ones((2, 3)), (0,)).tolist()
    [2.0, 2.0, 2.0]
    """
    dims = as_ints("reduce_sum", "axes", axes)
    aval = checked_aval("reduce_sum", operand)
    if not dims:
        return operand
    if out_sharding is not None:
        out_sharding = resolved_sharding(out_sharding, reduced_shape("reduce_sum", aval, dims),
                                         "reduce_sum")
        if out_sharding is not None:
            out_sharding = _open_sum_sharding(out_sharding, aval, dims)
    return reduce_sum_p.bind(operand, axes=dims, out_sharding=out_sharding)
