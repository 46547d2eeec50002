"""Convolutions: the primitive, its rules, and the functions that are defined by it.

With the axes ordered (batch, feature, space...) and (out, in, space...) a convolution in one
dimension is

    out[n, o, p] = sum over i, k of padded[n, i, p * stride + k * rhs_dilation] * rhs[o, i, k]

where `padded` is lhs with `lhs_dilation - 1` zeros between elements and padding at the ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import EACH, products, scale
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, SymbolicDim, get_aval
from pyjx.core.dtypes import DType
from pyjx.core.explicit import Entries, entries_of, replicated, resolved_sharding, sharding_for
from pyjx.core.integers import as_int, as_ints
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.layouts import ShardingLike
from pyjx.core.places import parts_along
from pyjx.core.primitive import Primitive, register
from pyjx.core.specs import axes_of, spec_to_give
from pyjx.engine.axes import all_at_front, inverse_permutation, moveaxis, transpose
from pyjx.engine.primitives import cast
from pyjx.engine.rules import jvp_bilinear
from pyjx.engine.tangents import first_is_linear, full_aval
from pyjx.engine.types import Operand, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.jaxlib_api import Sharding
from pyjx.lax.common import check_same_dtypes
from pyjx.lax.common import operand as _operand
from pyjx.lax.contractions import (
    PrecisionLike,
    canonicalize_precision,
    convert,
    dot_general,
    preferred_dtype,
    product_dtype,
)
from pyjx.lax.convolution_shapes import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    Padding,
    check_transposable,
    conv_dimension_numbers,
    conv_general_permutations,
    default_transpose_dimension_numbers,
    dilated,
    named_conv_shape,
    named_pads,
    permuted,
    transpose_pads,
)
from pyjx.lax.shapes import axes_in_one, axis_in_two

# -- the primitive ---------------------------------------------------------------------------------

_NAME = "conv_general_dilated"


def _check_groups(lhs: ShapedArray, rhs: ShapedArray, dn: ConvDimensionNumbers,
                  feature_groups: int, batch_groups: int) -> None:
    features, batch = lhs.shape[dn.lhs_spec[1]], lhs.shape[dn.lhs_spec[0]]
    outs, ins = rhs.shape[dn.rhs_spec[0]], rhs.shape[dn.rhs_spec[1]]
    groups = ("feature", feature_groups, features), ("batch", batch_groups, batch)
    for name, count, size in groups:
        if count <= 0:
            raise ValueError(f"{_NAME} {name}_group_count must be a positive integer, got {count}.")
        if size % count:
            raise ValueError(f"{_NAME} {name}_group_count must divide lhs {name} dimension size, "
                             f"but {count} does not divide {size}.")
    if features // feature_groups != ins:
        raise ValueError(
            f"{_NAME} lhs feature dimension size divided by feature_group_count must equal the "
            f"rhs input feature dimension size, but {features} // {feature_groups} != {ins}: axis "
            f"{dn.lhs_spec[1]} of the input, of shape {lhs.shape}, has its features, and axis "
            f"{dn.rhs_spec[1]} of the kernel, of shape {rhs.shape}; the dimension_numbers "
            "of conv_general_dilated name them.")
    for name, count, _ in groups:
        if outs % count:
            raise ValueError(f"{_NAME} rhs output feature dimension size must be a multiple of "
                             f"{name}_group_count, but {outs} is not a multiple of {count}.")
    if 1 not in (batch_groups, feature_groups):
        raise ValueError(
            "At most one of batch_group_count and feature_group_count may be > 1, got "
            f"batch_group_count={batch_groups} and feature_group_count={feature_groups}")


def _check_ranks(rank: int, **sizes: Sequence[int]) -> None:
    for what, values in sizes.items():
        if len(values) != rank:
            raise ValueError(f"{_NAME} window and {what} must have the same number of dimensions, "
                             f"but got {rank} and {len(values)}")


def _check_windows(rank: int, strides: Sequence[int], padding: Sequence[Sequence[int]],
                   lhs_dilation: Sequence[int], rhs_dilation: Sequence[int]) -> None:
    sizes = {"window_strides": strides, "lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation}
    _check_ranks(rank, **sizes)
    if len(padding) != rank:
        raise TypeError(f"{_NAME} padding: Wrong number of explicit pads for convolution: expected "
                        f"{rank}, got {len(padding)}.")
    for what, values in sizes.items():
        if any(v <= 0 for v in values):
            raise ValueError(f"{_NAME} {what} must be positive, got {tuple(values)}")


def _check_preferred(dtype: DType, preferred: Any) -> None:
    """Raise TypeError unless sums of `dtype` can be of the dtype `preferred`."""
    kinds = np.integer, np.floating, np.complexfloating
    own, wanted = ([k for k in kinds if dtypes.issubdtype(d, k)] for d in (dtype, preferred))
    if own != wanted and (own, wanted) != ([np.integer], [np.floating]):
        raise TypeError(f"{_NAME}: Input type is incompatible with `preferred_element_type`. The "
                        "compatible combinations of (input_type, preferred_element_type) are "
                        "(integral, integral), (integral, floating), (floating, floating), "
                        f"(complex, complex), got ({dtype}, {preferred}).")
    if dtypes.issubdtype(dtype, np.signedinteger) and dtypes.issubdtype(
            preferred, np.unsignedinteger):
        raise TypeError(f"{_NAME}: `preferred_element_type` must have the same signedness as the "
                        f"original type, got {preferred} for {dtype}.")
    if dtypes.bit_width(preferred) < dtypes.bit_width(dtype):
        raise TypeError(f"{_NAME}: `preferred_element_type` must not be narrower than the original "
                        f"type, got {preferred} for {dtype}.")


def _conv_shape(lhs: ShapedArray, rhs: ShapedArray, *, window_strides: tuple[int, ...],
                padding: Padding, lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
                dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
                batch_group_count: int, precision: PrecisionLike, preferred_element_type: DType,
                out_sharding: ShardingLike = None) -> ShapedArray:
    check_same_dtypes(_NAME, lhs, rhs)
    dtype = product_dtype(_NAME, lhs, rhs, preferred_element_type)
    _check_preferred(lhs.dtype, dtype)
    dn = dimension_numbers
    _check_groups(lhs, rhs, dn, feature_group_count, batch_group_count)
    _check_windows(lhs.ndim - 2, window_strides, padding, lhs_dilation, rhs_dilation)
    lhs_shape = permuted(lhs.shape, dn.lhs_spec)
    rhs_shape = permuted(rhs.shape, dn.rhs_spec)
    space = [dilated(n, d) for n, d in zip(lhs_shape[2:], lhs_dilation, strict=True)]
    window = [dilated(n, d) for n, d in zip(rhs_shape[2:], rhs_dilation, strict=True)]
    out = named_conv_shape(_NAME, (*lhs_shape[:2], *space), (*rhs_shape[:2], *window),
                           window_strides, padding, batch_group_count)
    shape = permuted(out, inverse_permutation(dn.out_spec))
    return ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)


# -- axes ------------------------------------------------------------------------------------------


def _merge_axis(x: Value, source: int, target: int) -> Array:
    """`x` with axis `source` merged into another axis as its slower part.

    `target` counts the axes without `source`.
    """
    return axes_in_one(moveaxis(x, source, target), target)


def _regroup(x: Value, count: int, source: int, target: int) -> Array:
    """`x` with the slower part, of size `count`, of one axis moved into another axis."""
    x = axis_in_two(x, source, count)
    return _merge_axis(x, source, target)


# -- transposition ---------------------------------------------------------------------------------


def _lhs_pads(lhs_space: Sequence[int], window: Sequence[int], out_space: Sequence[int],
              strides: Sequence[int], padding: Padding, lhs_dilation: Sequence[int]) -> Padding:
    """Padding of the convolution, of the cotangent with the reversed kernel, that gives lhs's."""
    pads = []
    for n, w, p, s, (low, _), d in zip(lhs_space, window, out_space, strides, padding, lhs_dilation,
                                       strict=True):
        before = w - 1 - low
        pads.append((before, dilated(n, d) + w - 1 - dilated(p, s) - before))
    return tuple(pads)


def _transpose_lhs(ct: Value, lhs: ShapedArray, rhs: Value, *, window_strides: Sequence[int],
                   padding: Padding, lhs_dilation: Sequence[int], rhs_dilation: Sequence[int],
                   dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
                   batch_group_count: int, precision: PrecisionLike) -> Array:
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    groups = max(feature_group_count, batch_group_count)
    window = [dilated(get_aval(rhs).shape[a], d)
              for a, d in zip(rhs_spec[2:], rhs_dilation, strict=True)]
    pads = _lhs_pads([lhs.shape[a] for a in lhs_spec[2:]], window,
                     [get_aval(ct).shape[a] for a in out_spec[2:]],
                     window_strides, padding, lhs_dilation)
    if groups != 1:  # the kernel's inputs and outputs change places within each group
        rhs = _regroup(rhs, groups, rhs_spec[0], rhs_spec[1])
    out = conv_general_dilated_p.bind(
        ct, _reverse(rhs, rhs_spec[2:]), window_strides=lhs_dilation, padding=pads,
        lhs_dilation=window_strides, rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(
            out_spec, (rhs_spec[1], rhs_spec[0], *rhs_spec[2:]), lhs_spec),
        feature_group_count=groups, batch_group_count=1, precision=precision,
        preferred_element_type=None,
        out_sharding=_cotangent_sharding(lhs, ct, rhs) if batch_group_count == 1 else None,
    )
    if batch_group_count != 1:
        out = _regroup(out, batch_group_count, lhs_spec[1], lhs_spec[0])
    return out


def _reverse(x: Any, axes: Sequence[int]) -> Array:
    return lax.rev(x, tuple(axes)) if axes else x


def _transpose_rhs(ct: Value, lhs: Value, rhs: ShapedArray, *, window_strides: Sequence[int],
                   padding: Padding, lhs_dilation: Sequence[int], rhs_dilation: Sequence[int],
                   dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
                   batch_group_count: int, precision: PrecisionLike) -> Array:
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    lhs_shape, ct_shape = get_aval(lhs).shape, get_aval(ct).shape
    pads = []
    for i, (low, _) in enumerate(padding, 2):
        d, s, r = lhs_dilation[i - 2], window_strides[i - 2], rhs_dilation[i - 2]
        reach = dilated(ct_shape[out_spec[i]], s) + dilated(rhs.shape[rhs_spec[i]], r) - 1
        pads.append((low, reach - dilated(lhs_shape[lhs_spec[i]], d) - low))

    def swapped(spec: Sequence[int]) -> tuple[int, ...]:
        return (spec[1], spec[0], *spec[2:])

    # Batch and feature axes change places, and so do groups along them.
    return conv_general_dilated_p.bind(
        lhs, ct, window_strides=rhs_dilation, padding=tuple(pads), lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides,
        dimension_numbers=ConvDimensionNumbers(swapped(lhs_spec), swapped(out_spec),
                                               swapped(rhs_spec)),
        feature_group_count=batch_group_count, batch_group_count=feature_group_count,
        precision=precision, preferred_element_type=None,
        out_sharding=_cotangent_sharding(rhs, ct, lhs),
    )


def _cotangent_sharding(x: ShapedArray, ct: Value, other: Value) -> Any:
    """The `out_sharding` of a convolution that gives the cotangent of an operand of type `x`; None
    where neither of its operands is cut."""
    given = get_aval(ct)
    if not any(entries_of(given)) and not any(entries_of(get_aval(other))):
        return None
    sharding = sharding_for(x, given) or replicated(x.ndim, get_aval(other))
    return sharding.update(spec=sharding.spec.update(
        unreduced=sharding.spec.unreduced & given.place.spec.unreduced, unreduced_kind=None))


def _conv_transpose_rule(ct: Value, lhs: Operand, rhs: Operand, *, preferred_element_type: DType,
                         out_sharding: ShardingLike = None, **params: Any) -> Sequence[Any]:
    dtype = get_aval(ct).dtype
    if first_is_linear("conv_general_dilated", lhs, rhs):
        grad = _transpose_lhs(ct, lhs.aval, convert(rhs, dtype), **params)
        return convert(grad, lhs.aval.dtype), None
    grad = _transpose_rhs(ct, convert(lhs, dtype), rhs.aval, **params)
    return None, convert(grad, rhs.aval.dtype)


# -- batching --------------------------------------------------------------------------------------


def _conv_batch(operands: Values, dims: Any, *, dimension_numbers: ConvDimensionNumbers,
                feature_group_count: int, batch_group_count: int, **params: Any
               ) -> tuple[Value, int]:
    (lhs, rhs), (dl, dr) = operands, dims
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    groups = max(feature_group_count, batch_group_count)
    features, batches = feature_group_count, batch_group_count

    def conv(lhs: Value, rhs: Value) -> Array:
        return conv_general_dilated_p.bind(lhs, rhs, dimension_numbers=dimension_numbers,
                                           feature_group_count=features, batch_group_count=batches,
                                           **params)

    if dl is not None and dr is not None:  # each example is a group
        size = get_aval(lhs).shape[dl]
        if type(size) is int and size == 0:  # there is no convolution of no groups
            one = get_aval(conv(_without(lhs, dl), _without(rhs, dr)))
            return full_aval(one.update(shape=(0, *one.shape)), 0), 0
        if isinstance(size, SymbolicDim):  # StableHLO's number of groups is known: one by one
            return lax.map(lambda each: conv(*each), all_at_front(operands, dims)), 0
        rhs = _merge_axis(rhs, dr, rhs_spec[0])
        if batch_group_count != 1:
            batches *= size
            lhs = _merge_axis(lhs, dl, lhs_spec[0])
        else:
            features *= size
            lhs = _merge_axis(lhs, dl, lhs_spec[1])
        return axis_in_two(conv(lhs, rhs), out_spec[1], size), out_spec[1]
    if dl is not None:  # a larger batch
        size = get_aval(lhs).shape[dl]
        entry = entries_of(get_aval(lhs))[dl]
        lhs = _merge_within(lhs, dl, lhs_spec[0], batch_group_count)
        params["out_sharding"] = _merged_sharding(params.get("out_sharding"), out_spec[0], entry)
        return axis_in_two(conv(lhs, rhs), out_spec[0], size), out_spec[0]
    size = get_aval(rhs).shape[dr]  # more output features
    out = conv(lhs, _merge_within(rhs, dr, rhs_spec[0], groups))
    axis = out_spec[1]
    if groups == 1:
        return axis_in_two(out, axis, size), axis
    out = axis_in_two(axis_in_two(out, axis, groups), axis + 1, size)
    return axes_in_one(moveaxis(out, axis + 1, 0), axis + 1), 0  # groups, features of a group


def _merged_sharding(sharding: Sharding | None, axis: int, entry: Any) -> Any:
    """The `out_sharding` of examples, of which those that are cut along `entry` are merged into an
    axis as its slower part; None for None."""
    if sharding is None:
        return None
    entries = list(sharding.spec)
    entries[axis] = (*axes_of((entry,)), *axes_of((entries[axis],)))
    return sharding.update(spec=sharding.spec.update(partitions=entries))


def _without(x: Value, axis: int) -> Array:
    """Zeros of the type of an example."""
    aval = get_aval(x)
    return full_aval(aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1:]), 0)


def _merge_within(x: Value, source: int, target: int, groups: int) -> Array:
    """As `_merge_axis`, with the groups of the target axis still its slowest part."""
    if groups == 1:
        return _merge_axis(x, source, target)
    x = moveaxis(x, source, 0)
    x = axis_in_two(x, target + 1, groups)  # source, ..., groups, rest, ...
    return axes_in_one(_merge_axis(x, 0, target + 1), target)


# XLA chooses the memory layouts of convolutions with the whole computation in view; at the border
# of a called one it copies (ResNet-50's step on CPU: 14 % slower, and 1.5 times the compile time).
def _conv_sharding(out: ShapedArray, lhs: ShapedArray, rhs: ShapedArray, *,
                   dimension_numbers: ConvDimensionNumbers, **params: Any) -> Entries:
    """Examples and places stay where they are; sums over features that are cut are ambiguous."""
    dn, given = dimension_numbers, entries_of(lhs)
    entries: list[Any] = [None] * out.ndim
    for i, (source, target) in enumerate(zip(dn.lhs_spec, dn.out_spec, strict=True)):
        parts = 1 if given[source] is None else parts_along(lhs.place.sharding.mesh, given[source])
        if parts > 1 and (i == 1 or out.shape[target] % parts):
            entries = []
            break
        entries[target] = given[source]
    if not entries or any([e is not None for e in entries_of(rhs)]):
        raise ShardingTypeError("Please specify the output sharding via `out_sharding` parameter "
                                f"of `{_NAME}`, as {spec_to_give()}, or call jax.reshard on "
                                "the operands before.")
    return tuple(entries)


def _conv_arithmetic(eqn: JaxprEqn) -> tuple[float, float]:
    params, (x, kernel, out) = eqn.params, [v.aval.shape for v in (*eqn.invars, *eqn.outvars)]
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    made = [products(out[o], kernel[k], x[i], stride, before, dilation, of_kernel)
            for i, k, o, stride, (before, _), dilation, of_kernel in zip(
                lhs_spec[2:], rhs_spec[2:], out_spec[2:], params["window_strides"],
                params["padding"], params["lhs_dilation"], params["rhs_dilation"], strict=True)]
    outs = out[out_spec[0]] * out[out_spec[1]]
    return 2 * outs * kernel[rhs_spec[1]] * math.prod(made) * scale(eqn.outvars[0]), 0.0


conv_general_dilated_p = register(Primitive(
    _NAME, contracts=True, asked=True, linear=EACH, arithmetic=_conv_arithmetic,
    shape_rule=_conv_shape, sharding_rule=_conv_sharding, outlined=False))
conv_general_dilated_p.define(jvp=jvp_bilinear(conv_general_dilated_p),
                              transpose=_conv_transpose_rule, batch=_conv_batch)


# -- public functions ------------------------------------------------------------------------------


def _explicit_pads(padding: Any, lhs: ShapedArray, rhs: ShapedArray, dn: ConvDimensionNumbers,
                   strides: Sequence[int], lhs_dilation: Sequence[int],
                   rhs_dilation: Sequence[int]) -> Padding:
    if isinstance(padding, str):
        if any(d != 1 for d in lhs_dilation):
            raise ValueError(
                f"{_NAME}: String padding is not implemented for transposed convolution using this "
                "op. Please either exactly specify the required padding or use conv_transpose.")
        window = [dilated(rhs.shape[a], d)
                  for a, d in zip(dn.rhs_spec[2:], rhs_dilation, strict=False)]
        space = [lhs.shape[a] for a in dn.lhs_spec[2:]]
        if len(strides) != len(space):
            raise ValueError(f"{_NAME} window and window_strides must have the same number of "
                             f"dimensions, but got {len(space)} and {len(strides)}. A window has "
                             f"two axes less than the operands, which have rank {lhs.ndim} here: "
                             f"window_strides is as for rank {len(strides) + 2}")
        return tuple(named_pads(_NAME, space, window, strides, padding))
    try:
        low_high: Any = [[n if isinstance(n, SymbolicDim) else index(n) for n in pair]
                         for pair in padding]
        return tuple([(low, high) for low, high in low_high])
    except (TypeError, ValueError):
        raise ValueError("padding argument to conv_general_dilated should be a string or a "
                         f"sequence of (low, high) pairs, got {padding}") from None


def conv_general_dilated(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                         padding: str | Sequence[tuple[int, int]],
                         lhs_dilation: Sequence[int] | None = None,
                         rhs_dilation: Sequence[int] | None = None,
                         dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                         feature_group_count: int = 1, batch_group_count: int = 1,
                         precision: PrecisionLike = None,
                         preferred_element_type: DTypeLike | None = None,
                         out_sharding: ShardingLike = None) -> Array:
    """Convolution in any number of dimensions, with strides, dilation, padding and groups.

    Args:
      lhs: the input, of rank n + 2.
      rhs: the kernel, of the same rank and dtype; it is not reversed.
      window_strides: n positive integers.
      padding: "SAME", "SAME_LOWER", "VALID", or n pairs (low, high), which may be negative.
      lhs_dilation: n integers: the input's elements stand so far apart, with zeros between.
      rhs_dilation: n integers: the same for the kernel.
      dimension_numbers: `ConvDimensionNumbers`, or three strings such as
        `("NHWC", "HWIO", "NHWC")` that name the axes of input, kernel and result; None stands for
        `("NCHW", "OIHW", "NCHW")`.
      feature_group_count: number of groups of input features with kernels of their own.
      batch_group_count: number of groups of examples with kernels of their own.
      precision: as for `dot_general`.
      preferred_element_type: dtype of the sums and of the result.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      TypeError: ranks or dtypes do not fit.
      ValueError: sizes, strides, dilations or groups do not fit.

    >>> import pyjx as jax
    >>> x, kernel = jax.numpy.ones((1, 8, 8, 3)), jax.numpy.ones((3, 3, 3, 4))
    >>> jax.lax.conv_general_dilated(
    ...     x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")).shape
    (1, 4, 4, 4)
    """
    lhs, rhs = _operand(_NAME, lhs), _operand(_NAME, rhs, 1)
    preferred = preferred_dtype(preferred_element_type, _NAME)
    if preferred is not None and get_aval(lhs).dtype == get_aval(rhs).dtype == np.bool_:
        lhs, rhs = cast(lhs, preferred), cast(rhs, preferred)  # sums of 0 and 1 are of any dtype
    x, y = get_aval(lhs), get_aval(rhs)
    dn = conv_dimension_numbers(x.shape, y.shape, dimension_numbers)
    ones = (1,) * (x.ndim - 2)
    strides = as_ints(_NAME, "window_strides", window_strides)
    ld = ones if lhs_dilation is None else as_ints(_NAME, "lhs_dilation", lhs_dilation)
    rd = ones if rhs_dilation is None else as_ints(_NAME, "rhs_dilation", rhs_dilation)
    _check_ranks(len(ones), lhs_dilation=ld, rhs_dilation=rd)
    params: dict[str, Any] = {
        "window_strides": strides, "padding": _explicit_pads(padding, x, y, dn, strides, ld, rd),
        "lhs_dilation": ld, "rhs_dilation": rd, "dimension_numbers": dn,
        "feature_group_count": as_int(_NAME, "feature_group_count", feature_group_count),
        "batch_group_count": as_int(_NAME, "batch_group_count", batch_group_count),
        "precision": canonicalize_precision(precision, _NAME),
        "preferred_element_type": preferred,
        "out_sharding": None,
    }
    if out_sharding is not None:
        out = _conv_shape(x.placed(sharding=None), y.placed(sharding=None), **params)
        params["out_sharding"] = resolved_sharding(out_sharding, out.shape, _NAME)
    return conv_general_dilated_p.bind(lhs, rhs, **params)


def conv(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str,
         precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """Convolution of an input (batch, feature, space...) with a kernel (out, in, space...).

    Args:
      lhs: the input (batch, feature, space...), of a dtype of numbers.
      rhs: the kernel (out, in, space...), of the same dtype.
      window_strides: how far the window moves each time, one int for each axis of space.
      padding: "SAME", for a result of ceil(size / stride), "SAME_LOWER", or "VALID", where the
        window stays inside.
      precision: what accelerators compute with: None, a `lax.Precision` or its name, such as
        "highest".
      preferred_element_type: the dtype that is summed in, and that of the result.

    >>> import pyjx as jax
    >>> jax.lax.conv(jax.numpy.ones((1, 3, 8)), jax.numpy.ones((4, 3, 2)), (1,), "VALID").shape
    (1, 4, 7)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                              padding: str | Sequence[tuple[int, int]],
                              lhs_dilation: Sequence[int] | None,
                              rhs_dilation: Sequence[int] | None, precision: PrecisionLike = None,
                              preferred_element_type: DTypeLike | None = None) -> Array:
    """`conv` with explicit padding and dilation.

    Args:
      lhs: the input (batch, feature, space...), of a dtype of numbers.
      rhs: the kernel (out, in, space...), of the same dtype.
      window_strides: how far the window moves each time, one int for each axis of space.
      padding: "SAME", "SAME_LOWER", "VALID", or a pair (low, high) for each axis of space.
      lhs_dilation: the distance at which the input's elements are set, with zeros in between; None
        for 1.
      rhs_dilation: the distance at which the kernel's elements are set; None for 1.
      precision: what accelerators compute with: None, a `lax.Precision` or its name, such as
        "highest".
      preferred_element_type: the dtype that is summed in, and that of the result.

    >>> import pyjx as jax
    >>> x, kernel = jax.numpy.ones((1, 3, 8)), jax.numpy.ones((4, 3, 2))
    >>> jax.lax.conv_with_general_padding(x, kernel, (1,), [(1, 1)], None, None).shape
    (1, 4, 9)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
                                precision=precision, preferred_element_type=preferred_element_type)


def conv_transpose(lhs: ArrayLike, rhs: ArrayLike, strides: Sequence[int],
                   padding: str | Sequence[tuple[int, int]],
                   rhs_dilation: Sequence[int] | None = None,
                   dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                   transpose_kernel: bool = False, precision: PrecisionLike = None,
                   preferred_element_type: DTypeLike | None = None,
                   use_consistent_padding: bool = False) -> Array:
    """Transposed ("fractionally strided") convolution, which makes the input larger.

    It is a convolution of the input dilated by `strides`. With `transpose_kernel` the kernel is
    reversed and its feature axes exchanged, which makes this the derivative of the convolution
    with the same kernel and strides with respect to its input.

    Args:
      lhs: the input, by default (batch, space..., feature).
      rhs: the kernel, by default (space..., in, out).
      strides: how many times larger the result is, along each axis.
      padding: "SAME", "VALID", or pairs (low, high) for the dilated input.
      rhs_dilation: dilation of the kernel.
      dimension_numbers: as for `conv_general_dilated`; other axes than the default ones.
      transpose_kernel: whether the kernel is the one of the convolution that this one undoes.
      precision, preferred_element_type: as for `dot_general`.
      use_consistent_padding: whether pairs are the padding of the convolution that this one
        undoes.

    >>> import pyjx as jax
    >>> x, kernel = jax.numpy.ones((1, 4, 4, 3)), jax.numpy.ones((3, 3, 3, 2))
    >>> jax.lax.conv_transpose(x, kernel, (2, 2), "SAME").shape
    (1, 8, 8, 2)
    """
    lhs, rhs = _operand("conv_transpose", lhs), _operand("conv_transpose", rhs, 1)
    x, y = get_aval(lhs), get_aval(rhs)
    check_transposable(x.shape, y.shape)
    if dimension_numbers is None:
        dimension_numbers = default_transpose_dimension_numbers(x.ndim)
    dn = conv_dimension_numbers(x.shape, y.shape, dimension_numbers)
    n = x.ndim - 2
    rd = (1,) * n if rhs_dilation is None else \
        as_ints("conv_transpose", "rhs_dilation", rhs_dilation)
    window = [dilated(y.shape[a], d) for a, d in zip(dn.rhs_spec[2:], rd, strict=True)]
    pads = transpose_pads("conv_transpose", window, strides, padding, use_consistent_padding)
    if transpose_kernel:
        out_axis, in_axis, *space = dn.rhs_spec
        order = list(range(y.ndim))
        order[out_axis], order[in_axis] = in_axis, out_axis
        rhs = transpose(_reverse(rhs, space), order)
    return conv_general_dilated(lhs, rhs, (1,) * n, pads, strides, rd, dn, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_general_dilated_patches(
    lhs: ArrayLike, filter_shape: Sequence[int], window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None, precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The windows of a convolution ("im2col"): each becomes the features of one position.

    The result's feature axis has the input's features, slowest, times the elements of a window of
    `filter_shape`. The other arguments are those of `conv_general_dilated`.

    Args:
      lhs: the input, of a dtype of numbers.
      filter_shape: the sizes of a window.
      window_strides: how far the window moves each time, one int for each axis of space.
      padding: "SAME", "SAME_LOWER", "VALID", or a pair (low, high) for each axis of space.
      lhs_dilation, rhs_dilation: the distances at which the elements of input and window are set;
        None for 1.
      dimension_numbers: the names of the axes, such as ("NCHW", "OIHW", "NCHW"), which is the
        default for two axes of space.
      precision: what accelerators compute with: None, a `lax.Precision` or its name, such as
        "highest".
      preferred_element_type: the dtype that is summed in, and that of the result.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(4.).reshape(1, 1, 4)
    >>> jax.lax.conv_general_dilated_patches(x, (2,), (1,), "VALID").tolist()
    [[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]]
    """
    name = "conv_general_dilated_patches"
    lhs = _operand(name, lhs)
    x = get_aval(lhs)
    filter_shape = as_ints(name, "filter_shape", filter_shape)
    if len(filter_shape) != x.ndim - 2 or any(n < 1 for n in filter_shape):
        raise ValueError(f"{name}: filter_shape must have one positive size for each spatial axis "
                         f"of lhs, got {filter_shape} for lhs of shape {x.shape}")
    dn = conv_dimension_numbers(x.shape, (1,) * x.ndim, dimension_numbers)
    features = x.shape[dn.lhs_spec[1]]
    n = math.prod(filter_shape)
    rows, columns = [lax.broadcasted_iota(np.int32, (n, n), axis) for axis in (0, 1)]
    eye = lax.convert_element_type(lax.eq(rows, columns), x.dtype)
    kernel = lax.broadcast_in_dim(eye, (features, n, n), (1, 2))
    kernel = lax.reshape(kernel, (features * n, 1, *filter_shape))
    kernel = transpose(kernel, inverse_permutation(dn.rhs_spec))
    return conv_general_dilated(lhs, kernel, window_strides, padding, lhs_dilation, rhs_dilation,
                                dn, feature_group_count=features, precision=precision,
                                preferred_element_type=preferred_element_type)


def conv_general_dilated_local(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                               padding: str | Sequence[tuple[int, int]],
                               filter_shape: Sequence[int],
                               lhs_dilation: Sequence[int] | None = None,
                               rhs_dilation: Sequence[int] | None = None,
                               dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                               precision: PrecisionLike = None) -> Array:
    """A convolution with a kernel of its own at each position of the result.

    `rhs` has the result's spatial sizes; its input-feature axis has the input's features, slowest,
    times the elements of a window of `filter_shape`. The other arguments are those of
    `conv_general_dilated`.

    Args:
      lhs: the input, of a dtype of numbers.
      rhs: the kernels, of the same dtype.
      window_strides: how far the window moves each time, one int for each axis of space.
      padding: "SAME", "SAME_LOWER", "VALID", or a pair (low, high) for each axis of space.
      filter_shape: the sizes of a window.
      lhs_dilation, rhs_dilation: the distances at which the elements of input and window are set;
        None for 1.
      dimension_numbers: the names of the axes, such as ("NCHW", "OIHW", "NCHW"), which is the
        default for two axes of space.
      precision: what accelerators compute with: None, a `lax.Precision` or its name, such as
        "highest".

    >>> import pyjx as jax
    >>> x, kernel = jax.numpy.ones((1, 3, 8)), jax.numpy.ones((4, 6, 7))
    >>> jax.lax.conv_general_dilated_local(x, kernel, (1,), "VALID", (2,)).shape
    (1, 4, 7)
    """
    name = "conv_general_dilated_local"
    lhs, rhs = _operand(name, lhs), _operand(name, rhs, 1)
    dn = conv_dimension_numbers(get_aval(lhs).shape, get_aval(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, dn, precision)
    (_, feature, *space), (_, ins, *rhs_space) = dn.out_spec, dn.rhs_spec
    shape, kernel = get_aval(patches).shape, get_aval(rhs).shape
    want = [shape[a] for a in (feature, *space)]
    if [kernel[a] for a in (ins, *rhs_space)] != want:
        raise ValueError(f"{name}: rhs must have an input-feature axis of size {want[0]} and "
                         f"spatial axes of sizes {tuple(want[1:])}, got shape {kernel}")
    out = dot_general(patches, rhs, (((feature,), (ins,)), (space, rhs_space)), precision)
    # Its axes: space, batch, feature.
    place = {axis: i for i, axis in enumerate((*space, dn.out_spec[0], feature))}
    return transpose(out, [place[i] for i in range(len(place))])


def conv_general_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                             window_strides: Sequence[int], padding: Any, dimension_numbers: Any
                             ) -> tuple[int, ...]:
    """The result's shape of a convolution without dilation.

    Args:
      lhs_shape, rhs_shape: the shapes of input and kernel.
      window_strides: how far the window moves each time, one int for each axis of space.
      padding: "SAME", "SAME_LOWER", "VALID", or a pair (low, high) for each axis of space.
      dimension_numbers: the names of the axes of input, kernel and result, such as ("NCHW", "OIHW",
        "NCHW").

    Raises:
      TypeError: an argument is no sequence of integers of the rank that the axes' names say.
      ValueError: strides are not positive, or there is no such padding.

    >>> import pyjx as jax
    >>> jax.lax.conv_general_shape_tuple((1, 8, 3), (2, 3, 4), (1,), "VALID", ("NHC", "HIO", "NHC"))
    (1, 7, 4)
    """
    name = "conv_general_shape_tuple"
    lhs, rhs, out_perm = _named_shapes(name, lhs_shape, rhs_shape, dimension_numbers)
    out = named_conv_shape(name, lhs, rhs, window_strides, padding)
    return permuted(out, inverse_permutation(out_perm))


def _named_shapes(name: str, lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                  dimension_numbers: Any
                  ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The shapes with their axes in the canonical order, and the order of the result's axes."""
    lhs_perm, rhs_perm, out_perm = conv_general_permutations(dimension_numbers)
    lhs, rhs = as_ints(name, "lhs_shape", lhs_shape), as_ints(name, "rhs_shape", rhs_shape)
    for what, shape in (("lhs_shape", lhs), ("rhs_shape", rhs)):
        if len(shape) != len(lhs_perm):
            raise TypeError(f"{name}: {what} must have one size for each axis in "
                            f"dimension_numbers {tuple(dimension_numbers)}, got {shape}")
    return permuted(lhs, lhs_perm), permuted(rhs, rhs_perm), out_perm


def conv_transpose_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                               window_strides: Sequence[int], padding: Any, dimension_numbers: Any
                               ) -> tuple[int, ...]:
    """The result's shape of `conv_transpose`.

    Args:
      lhs_shape, rhs_shape: the shapes of input and kernel.
      window_strides: how far the window moves each time, one int for each axis of space.
      padding: "SAME", "SAME_LOWER", "VALID", or a pair (low, high) for each axis of space.
      dimension_numbers: the names of the axes of input, kernel and result, such as ("NCHW", "OIHW",
        "NCHW").

    Raises:
      TypeError: an argument is no sequence of integers of the rank that the axes' names say.
      ValueError: strides are not positive, or there is no such padding.

    >>> import pyjx as jax
    >>> layouts = ("NHC", "HIO", "NHC")
    >>> jax.lax.conv_transpose_shape_tuple((1, 8, 3), (2, 3, 4), (2,), "SAME", layouts)
    (1, 16, 4)
    """
    name = "conv_transpose_shape_tuple"
    lhs, rhs, out_perm = _named_shapes(name, lhs_shape, rhs_shape, dimension_numbers)
    pads = transpose_pads(name, rhs[2:], window_strides, padding, False)
    space = [dilated(n, s) for n, s in zip(lhs[2:], window_strides, strict=True)]
    out = named_conv_shape(name, (*lhs[:2], *space), rhs, (1,) * len(space), pads)
    return permuted(out, inverse_permutation(out_perm))
