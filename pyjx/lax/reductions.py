"""Reductions over axes: sums, products, extrema, logic, positions of extrema, any monoid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax, tree_util
from pyjx.core import dtypes
from pyjx.core.arithmetic import reduction, reduction_by_function
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, SymbolicDim, get_aval
from pyjx.core.contents import deduplicated
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.explicit import check_out_sharding, resolved_sharding
from pyjx.core.integers import as_int, as_ints
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.layouts import ShardingLike
from pyjx.core.prefixes import two_structures
from pyjx.core.primitive import ANY_WAY_IF_SMALL, AS_PROGRAMS, Primitive, register
from pyjx.core.records import Alike, of_field
from pyjx.core.scalars import greatest, least
from pyjx.core.trace import Tracer, is_concrete, trace_to_jaxpr
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import (
    at_front,
    batch_along,
    broadcast_in_dim,
    few_to_one,
    reduce_sum,
    reduce_sum_p,
    reduced_shape,
    reduced_sharding,
    reduction_batch,
    stretched_along,
)
from pyjx.engine.batching import batch_flat
from pyjx.engine.forward import jvp_flat
from pyjx.engine.functions import name_of
from pyjx.engine.moves import constant_beside, whole
from pyjx.engine.primitives import cast
from pyjx.engine.rules import jvp_by_result, jvp_zero, unbatched_dims
from pyjx.engine.tangents import full_aval
from pyjx.engine.types import Dims, Tangent, Tangents, TreeDef, Value, Values
from pyjx.lax.common import accepted, as_dtype, host_converted
from pyjx.lax.common import operand as _operand
from pyjx.lax.compare import eq
from pyjx.lax.convert import convert_element_type
from pyjx.lax.elementwise import NUMBER_OR_BOOL, ORDERED, accepts, check_kinds, div, mul
from pyjx.lax.joining import concatenate, split
from pyjx.lax.shapes import reshape, squeeze
from pyjx.runtime.signature import debug_info_of

# -- reductions whose results have the operand's dtype ---------------------------------------------


def _reduction(name: str, check: Callable[[str, ShapedArray], None] | None = None,
               keeps_weak: bool = True, compiled: int = ANY_WAY_IF_SMALL, **facts: Any
               ) -> Primitive:
    """A reduction; one of bits, which are those of one width, has no weak type."""
    def shape_rule(x: ShapedArray, *, axes: tuple[int, ...], out_sharding: ShardingLike = None
                   ) -> ShapedArray:
        if check is not None:
            check(name, x)
        weak = x.weak_type and keeps_weak
        return ShapedArray(reduced_shape(name, x, axes), x.dtype, weak)

    primitive = register(Primitive(name, compiled=compiled, arithmetic=reduction,
                                   shape_rule=shape_rule, sharding_rule=reduced_sharding, **facts))
    return primitive.define(batch=reduction_batch(primitive))


def _check_number(name: str, x: ShapedArray) -> None:
    accepted(name, x, (np.number,), "subtypes of number")


def _check_logical(name: str, x: ShapedArray) -> None:
    if x.dtype != np.bool_ and not dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(f"{name}: logical reduction requires operand dtype bool or int, "
                        f"got {dtypes.name(x.dtype)}.")


def _check_comparable(name: str, x: ShapedArray) -> None:
    check_kinds(name, (NUMBER_OR_BOOL,), (x,))


reduce_max_p = _reduction("reduce_max", _check_comparable, keeps_nans=True,
                          unrolled=few_to_one(5, "max", "pyjx.lax.compare"))
reduce_min_p = _reduction("reduce_min", _check_comparable, keeps_nans=True,
                          unrolled=few_to_one(5, "min", "pyjx.lax.compare"))
reduce_prod_p = _reduction("reduce_prod", _check_number, compiled=AS_PROGRAMS)
reduce_prod_p.asked = True
reduce_and_p = _reduction("reduce_and", _check_logical, keeps_weak=False)
reduce_or_p = _reduction("reduce_or", _check_logical, keeps_weak=False)
reduce_xor_p = _reduction("reduce_xor", _check_logical, keeps_weak=False)
for _p in (reduce_and_p, reduce_or_p, reduce_xor_p):
    _p.define(jvp=jvp_zero(_p))


def _extremum_jvp(g: Value, ans: Value, x: Value, *, axes: tuple[int, ...],
                  out_sharding: ShardingLike = None) -> Array:
    # The mean of the tangents at the places where the extremum is attained.
    attained = eq(x, stretched_along(ans, get_aval(x).shape, axes))
    places = convert_element_type(attained, get_aval(g).dtype)
    return div(reduce_sum(mul(g, places), axes), reduce_sum(places, axes))


reduce_max_p.define(jvp=jvp_by_result(reduce_max_p, _extremum_jvp))
reduce_min_p.define(jvp=jvp_by_result(reduce_min_p, _extremum_jvp))


def _halves(x: Value, axis: int) -> tuple[Any, Any, Any]:
    """The first and second half along an axis, and what is left (None, or one element)."""
    half, odd = divmod(get_aval(x).shape[axis], 2)
    first, second, *rest = split(x, (half, half, *[1] * odd), axis)
    return first, second, rest[0] if rest else None


def _product_tree(x: Array, axes: tuple[int, ...]) -> Array:
    """The product as a tree of multiplications: its derivatives need no division."""
    x = whole(x, axes)
    for axis in sorted(axes, reverse=True):
        n = get_aval(x).shape[axis]
        if n == 0:
            aval = get_aval(x)
            shape = aval.shape[:axis] + aval.shape[axis + 1:]
            x = full_aval(ShapedArray(shape, aval.dtype), 1)
            continue
        if isinstance(n, SymbolicDim):  # nobody knows how tall a tree is
            x, n = split(lax.cumprod(x, axis), (n - 1, 1), axis)[1], 1
        while n > 1:
            first, second, rest = _halves(x, axis)
            x = mul(first, second)
            if rest is not None:
                x = concatenate([x, rest], axis)
            n = get_aval(x).shape[axis]
        x = squeeze(x, (axis,))
    return x


def _prod_jvp(primals: Values, tangents: Tangents, *, axes: tuple[int, ...]
              ) -> tuple[Value, Tangent]:
    (out,), (tangent,) = jvp_flat(lambda x: [_product_tree(x, axes)], primals, tangents)
    return out, tangent


reduce_prod_p.define(jvp=_prod_jvp)


def _bind(primitive: Primitive, operand: Value, axes: Sequence[int], **params: Any) -> Array:
    name = primitive.name
    operand, dims = _operand(name, operand), as_ints(name, "axes", axes)
    if params.get("out_sharding") is not None:
        shape = reduced_shape(name, get_aval(operand), dims)
        params["out_sharding"] = resolved_sharding(params["out_sharding"], shape, name)
    return primitive.bind(operand, axes=dims, **params)


def reduce_max(operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike = None
              ) -> Array:
    """The maximum over `axes`; of nothing, the least value of the dtype. A NaN wins.

    Its derivative is the mean over the places where the maximum is attained.

    Args:
      operand: an array.
      axes: the axes that go, a sequence of ints, none of which is negative.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: the axes are not distinct or out of range.

    >>> import pyjx as jax
    >>> jax.lax.reduce_max(jax.numpy.array([[1, 5], [3, 2]]), (0,)).tolist()
    [3, 5]
    """
    return _bind(reduce_max_p, operand, axes, out_sharding=out_sharding)


def reduce_min(operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike = None
              ) -> Array:
    """The minimum over `axes`; of nothing, the greatest value of the dtype. A NaN wins.

    Its derivative is the mean over the places where the minimum is attained.

    Args:
      operand: an array.
      axes: the axes that go, a sequence of ints, none of which is negative.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: the axes are not distinct or out of range.

    >>> import pyjx as jax
    >>> jax.lax.reduce_min(jax.numpy.array([[1, 5], [3, 2]]), (0,)).tolist()
    [1, 2]
    """
    return _bind(reduce_min_p, operand, axes, out_sharding=out_sharding)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product over `axes`.

    Args:
      operand: an array of numbers.
      axes: the axes that go, a sequence of ints, none of which is negative.

    Raises:
      ValueError: the axes are not distinct or out of range.
      TypeError: the operand is not of a numeric dtype.

    >>> import pyjx as jax
    >>> jax.lax.reduce_prod(jax.numpy.array([[1, 5], [3, 2]]), (1,)).tolist()
    [5, 6]
    """
    return _bind(reduce_prod_p, operand, axes)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise (of booleans: logical) conjunction over `axes`.

    Args:
      operand: an array, boolean or of integers.
      axes: the axes that go, a sequence of ints, none of which is negative.

    Raises:
      ValueError: the axes are not distinct or out of range.
      TypeError: the operand is neither boolean nor integer.

    >>> import pyjx as jax
    >>> jax.lax.reduce_and(jax.numpy.array([6, 3]), (0,)).item()
    2
    """
    return _bind(reduce_and_p, operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise (of booleans: logical) disjunction over `axes`.

    Args:
      operand: an array, boolean or of integers.
      axes: the axes that go, a sequence of ints, none of which is negative.

    Raises:
      ValueError: the axes are not distinct or out of range.
      TypeError: the operand is neither boolean nor integer.

    >>> import pyjx as jax
    >>> jax.lax.reduce_or(jax.numpy.array([6, 3]), (0,)).item()
    7
    """
    return _bind(reduce_or_p, operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise (of booleans: logical) exclusive disjunction over `axes`.

    Args:
      operand: an array, boolean or of integers.
      axes: the axes that go, a sequence of ints, none of which is negative.

    Raises:
      ValueError: the axes are not distinct or out of range.
      TypeError: the operand is neither boolean nor integer.

    >>> import pyjx as jax
    >>> jax.lax.reduce_xor(jax.numpy.array([6, 3]), (0,)).item()
    5
    """
    return _bind(reduce_xor_p, operand, axes)


# -- argmax, argmin --------------------------------------------------------------------------------


def _arg_shape(x: ShapedArray, *, axes: tuple[int, ...], index_dtype: dtypes.DType) -> ShapedArray:
    axis, = axes
    if not 0 <= axis < x.ndim:
        raise ValueError(f"argmin and argmax: Invalid axis {axis} for operand shape {x.shape}")
    if x.shape[axis] < 1:
        raise ValueError("argmin and argmax require non-empty reduced dimension. "
                         f"operand.shape={x.shape} {axis=}")
    if not dtypes.issubdtype(index_dtype, np.integer):
        raise TypeError("argmin and argmax: index_dtype must be an integer type, "
                        f"but got {dtypes.name(np.dtype(index_dtype))}")
    if not accepts(ORDERED, x.dtype):
        raise TypeError(f"argmin and argmax do not accept dtype {dtypes.name(x.dtype)}. Accepted "
                        "dtypes are subtypes of integer, floating, bool.")
    return ShapedArray(x.shape[:axis] + x.shape[axis + 1:], index_dtype)


argmax_p = register(Primitive("argmax", compiled=ANY_WAY_IF_SMALL, arithmetic=reduction,
                              shape_rule=_arg_shape, sharding_rule=reduced_sharding))
argmin_p = register(Primitive("argmin", compiled=ANY_WAY_IF_SMALL, arithmetic=reduction,
                              shape_rule=_arg_shape, sharding_rule=reduced_sharding))
for _p in (argmax_p, argmin_p):
    _p.define(batch=reduction_batch(_p), jvp=jvp_zero(_p))


def _arg(primitive: Primitive, operand: Value, axis: int, index_dtype: DTypeLike) -> Array:
    name = primitive.name
    index_dtype = dtypes.check_and_canonicalize_user_dtype(index_dtype, name)
    return primitive.bind(_operand(name, operand), axes=(as_int(name, "axis", axis),),
                          index_dtype=index_dtype)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The position of the first maximum along `axis`, or of the first NaN if there is one.

    Args:
      operand: an array of any dtype but complex.
      axis: the axis; it goes away.
      index_dtype: the integer dtype of the result.

    Raises:
      ValueError: the axis is out of range, or of size 0.
      TypeError: `index_dtype` is not an integer dtype; the operand is complex.

    >>> import pyjx as jax
    >>> jax.lax.argmax(jax.numpy.array([1., 3., 3.]), 0, "int32").item()
    1
    """
    return _arg(argmax_p, operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The position of the first minimum along `axis`, or of the first NaN if there is one.

    Args:
      operand: an array of any dtype but complex.
      axis: the axis; it goes away.
      index_dtype: the integer dtype of the result.

    Raises:
      ValueError: the axis is out of range, or of size 0.
      TypeError: `index_dtype` is not an integer dtype; the operand is complex.

    >>> import pyjx as jax
    >>> jax.lax.argmin(jax.numpy.array([1., 0., 0.]), 0, "int32").item()
    1
    """
    return _arg(argmin_p, operand, axis, index_dtype)


# -- reduce: any monoid ----------------------------------------------------------------------------


def _reduce_shape(*avals: ShapedArray, computation: Callable[..., Any], jaxpr: ClosedJaxpr,
                  dimensions: tuple[int, ...]) -> list[ShapedArray]:
    operands, inits = avals[:len(avals) // 2], avals[len(avals) // 2:]
    if any(a.shape for a in inits):
        raise ValueError(f"reduce found non-scalar initial value: {[a.shape for a in inits]}")
    if any(a.shape != operands[0].shape for a in operands):
        raise ValueError("reduce requires operands of equal shapes, "
                         f"got {[a.shape for a in operands]}")
    if [a.dtype for a in operands] != [a.dtype for a in inits]:
        raise TypeError(
            "reduce got inconsistent dtypes for operands and init_values: got operand dtypes "
            f"{[a.dtype for a in operands]} and init_value dtypes {[a.dtype for a in inits]}.")
    shape = reduced_shape("reduce", operands[0], dimensions)
    return [ShapedArray(shape, a.dtype) for a in operands]


def pointwise(closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    """A jaxpr on scalars applied to each element of arrays of one shape."""
    shape = get_aval(operands[0]).shape
    size = get_aval(operands[0]).size
    flat = [reshape(x, (size,)) for x in operands]
    outs, dims = batch_flat(jaxpr_as_fun(closed), flat, [0] * len(flat), size)
    return [broadcast_in_dim(y, shape, ()) if d is None else reshape(y, shape)
            for y, d in zip(outs, dims, strict=True)]


def _reduce_tree(closed: ClosedJaxpr, dimensions: tuple[int, ...], operands: Values,
                 inits: Sequence[Any]) -> list[Any]:
    """`reduce` by halving the axes: for derivatives, and for initial values that differ."""
    xs = list(operands)
    if not dimensions:  # XLA takes no initial value then
        return xs
    for axis in sorted(dimensions, reverse=True):
        while (n := get_aval(xs[0]).shape[axis]) > 1:
            firsts, seconds, rests = zip(*[_halves(x, axis) for x in xs], strict=True)
            xs = pointwise(closed, [*firsts, *seconds])
            if n % 2:
                xs = [concatenate([x, r], axis) for x, r in zip(xs, rests, strict=True)]
    shape = get_aval(xs[0]).shape
    kept = tuple([n for i, n in enumerate(shape) if i not in dimensions])
    starts = [v if get_aval(v).shape else
              constant_beside(broadcast_in_dim(v, kept, ()), get_aval(x))
              for v, x in zip(inits, xs, strict=True)]
    if any(shape[a] == 0 for a in dimensions):
        return starts
    return pointwise(closed, [*starts, *[squeeze(x, dimensions) for x in xs]])


def _reduce_jvp(primals: Values, tangents: Tangents, *, computation: Callable[..., Any],
                jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]) -> tuple[Values, Tangents]:
    n = len(primals) // 2
    return jvp_flat(lambda *args: _reduce_tree(jaxpr, dimensions, args[:n], args[n:]),
                    primals, tangents)


def _reduce_batch(operands: Values, dims: Dims, *, computation: Callable[..., Any],
                  jaxpr: ClosedJaxpr, dimensions: tuple[int, ...]) -> tuple[Values, Dims]:
    n = len(operands) // 2
    if not dimensions:
        return operands[:n], dims[:n]
    along = batch_along(operands, dims)
    xs = [at_front(x, d, along) for x, d in zip(operands[:n], dims[:n], strict=True)]
    moved = unbatched_dims(0, dimensions)
    if all(d is None for d in dims[n:]):
        outs = reduce_p.bind(*xs, *operands[n:], computation=computation, jaxpr=jaxpr,
                             dimensions=moved)
        return outs, [0] * n
    kept = [m for i, m in enumerate(get_aval(xs[0]).shape) if i not in moved]
    starts = [broadcast_in_dim(v, kept, () if d is None else (0,))
              for v, d in zip(operands[n:], dims[n:], strict=True)]
    return _reduce_tree(jaxpr, moved, xs, starts), [0] * n


def _reduce_sharding(outs: Any, *xs: ShapedArray, dimensions: tuple[int, ...], **params: Any
                     ) -> list[Any]:
    return [reduced_sharding(o, x, axes=dimensions)
            for o, x in zip(outs, xs[:len(outs)], strict=True)]


reduce_p = register(Primitive(
    "reduce", compiled=AS_PROGRAMS, shape_rule=_reduce_shape, sharding_rule=_reduce_sharding,
    arithmetic=reduction_by_function, jvp=_reduce_jvp,
    batch=_reduce_batch, multiple_results=True, asked=True))


def known_value(x: Any) -> Any:
    """A rank-0 value as a NumPy scalar where it is known, else None."""
    if isinstance(x, Tracer):
        if not is_concrete(x):
            return None
        x = x.to_concrete_value()
    array = np.asarray(x)
    return array[()] if array.ndim == 0 else None


# Functions of `pyjx.lax` that with their identity have a primitive of their own.
_MONOIDS: dict[str, tuple[Primitive, Callable[[Any], Any]]] = {
    "add": (reduce_sum_p, lambda dtype: 0),
    "mul": (reduce_prod_p, lambda dtype: 1),
    "max": (reduce_max_p, least),
    "min": (reduce_min_p, greatest),
    "bitwise_and": (reduce_and_p, lambda dtype: np.invert(np.zeros((), dtype))),
    "bitwise_or": (reduce_or_p, lambda dtype: 0),
    "bitwise_xor": (reduce_xor_p, lambda dtype: 0),
}


def _monoid(computation: Callable[..., Any], operand: Value, init: Value,
            dimensions: tuple[int, ...], out_sharding: ShardingLike) -> Array | None:
    """The result if `computation` and `init` are a monoid that has its own primitive."""
    value = known_value(init)
    dtype = get_aval(operand).dtype
    for name, (primitive, identity) in _MONOIDS.items():
        if computation is getattr(lax, name):
            if value is None or (dtype == np.bool_ and name in ("add", "mul")) \
                    or value != identity(dtype):
                return None
            params = {"out_sharding": out_sharding} if name in ("add", "max", "min") else {}
            return primitive.bind(operand, axes=dimensions, **params)
    return None


class Computation(Alike):
    """What a parameter shows of a reducing function: its name. It is equal to that of the same
    program, and what it runs is the program, so that the function itself may go."""

    __slots__ = ("__name__", "jaxpr")

    _key = of_field("jaxpr")

    def __init__(self, fun: Callable[..., Any], jaxpr: ClosedJaxpr) -> None:
        self.__name__ = name_of(fun)
        self.jaxpr = jaxpr

    def __call__(self, *args: Value) -> list[Value]:
        return jaxpr_as_fun(self.jaxpr)(*args)


def trace_reducer(name: str, computation: Callable[..., Any], avals: Sequence[ShapedArray],
                  in_tree: TreeDef) -> tuple[ClosedJaxpr, TreeDef]:
    """The jaxpr of a function of two scalars, or two trees of them, that gives one such, and the
    structure of what it gives."""
    if not callable(computation):
        raise TypeError(f"{name}: computation must be a function, got {shortened(computation)}")
    scalars = [ShapedArray((), a.dtype) for a in avals]
    tree: Any = None

    def flat(*args: Value) -> list[Any]:
        nonlocal tree
        left = tree_util.tree_unflatten(in_tree, args[:len(avals)])
        right = tree_util.tree_unflatten(in_tree, args[len(avals):])
        leaves, tree = tree_util.tree_flatten(computation(left, right))
        got = [get_aval(_operand(f"the result of computation in {name}", x)) for x in leaves]
        if len(leaves) != len(avals):
            raise ValueError(f"{name}: the computation must return as many values as there are "
                             f"operands, {len(avals)}, got {tree}")
        if [(a.shape, a.dtype) for a in got] != [((), a.dtype) for a in avals]:
            raise TypeError(f"{name}: the computation must return values of types {scalars}, "
                            f"got {got}")
        return leaves

    closed = trace_to_jaxpr(flat, scalars + scalars, debug_info_of(
        name, computation, tree_util.treedef_tuple([in_tree, in_tree])))
    if any(isinstance(c, Tracer) for c in closed.consts):
        raise NotImplementedError(
            f"Reduction computations can't close over Tracers ({name}). Please file an issue.")
    return deduplicated(closed), tree


def initial_scalar(x: Value, dtype: DTypeLike) -> Any:
    """The value that a reduction starts with: of infinity in integers the last one before it; other
    floats are no integers."""
    if type(x) is float and not dtypes.issubdtype(dtype, np.inexact):
        return host_converted(x, dtype) if x in (np.inf, -np.inf) else x
    return as_dtype(x, dtype)


def reduce(operands: Any, init_values: Any, computation: Callable[[Any, Any], Any],
           dimensions: Sequence[int], out_sharding: ShardingLike = None) -> Any:
    """Combine all elements along `dimensions` with a function, starting from `init_values`.

    Args:
      operands: an array, or a tree of arrays of one shape.
      init_values: a scalar for each; should be the identity of `computation`, as it may be used
        more than once.
      computation: `(accumulated, element) -> accumulated`, on scalars or trees of them. Must be
        associative and commutative up to rounding; the order is not specified.
      dimensions: the axes to reduce.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      What `computation` gives, a tree with as many leaves as the operands', without the axes.

    Raises:
      ValueError: `operands` and `init_values` differ in structure; a value of `init_values` is not
        a scalar; the axes are not distinct or out of range.
      TypeError: dtypes of `operands`, `init_values` and results of `computation` differ.

    >>> import pyjx as jax
    >>> x = jax.numpy.array([[3., 1.], [2., 5.]])
    >>> jax.lax.reduce(x, 0., lambda a, b: jax.lax.max(a, b), (0,)).tolist()
    [3.0, 5.0]
    """
    flat, tree = tree_util.tree_flatten(operands)
    inits, init_tree = tree_util.tree_flatten(init_values)
    if tree != init_tree:
        raise ValueError("reduce: Operands must have the same tree structure as init_values: "
                         + two_structures("{} vs. {}", tree, init_tree))
    if not flat:
        raise ValueError("reduce must have at least one operand.")
    axes = as_ints("reduce", "dimensions", dimensions)
    if out_sharding is not None:
        check_out_sharding(out_sharding, "reduce")
    flat = [_operand("reduce", x, i) for i, x in enumerate(flat)]
    inits = [_operand("reduce (init_values)", x, i) for i, x in enumerate(inits)]
    avals = [get_aval(x) for x in flat]
    reduced_shape("reduce", avals[0], axes)
    weak = [a.weak_type and get_aval(v).weak_type for a, v in zip(avals, inits, strict=True)]
    inits = [initial_scalar(v, a.dtype) for v, a in zip(inits, avals, strict=True)]
    for v in inits:
        if get_aval(v).shape:
            raise ValueError("reduce found non-scalar initial value: "
                             f"{[get_aval(v).shape for v in inits]}")
    if len(flat) == 1:
        out = _monoid(computation, flat[0], inits[0], axes, out_sharding)
        if out is not None:
            return tree_util.tree_unflatten(tree, [_typed(out, weak[0])])
    jaxpr, out_tree = trace_reducer("reduce", computation, avals, tree)
    outs = reduce_p.bind(*flat, *inits, computation=Computation(computation, jaxpr), jaxpr=jaxpr,
                         dimensions=axes)
    return tree_util.tree_unflatten(out_tree, list(map(_typed, outs, weak)))


def _typed(x: ArrayLike, weak: bool) -> Any:
    return cast(x, get_aval(x).dtype, weak)
