"""Products that sum over shared axes: `dot_general` and what is defined by it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import ml_dtypes as ml
import numpy as np

from pyjx import configuration, lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import EACH, on_results
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, cotangent_aval, get_aval
from pyjx.core.explicit import Entries, batched_sharding, entries_of, replicated, resolved_sharding
from pyjx.core.forbidden import check_collective, no_collectives
from pyjx.core.integers import as_ints
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.layouts import ShardingLike
from pyjx.core.primitive import Primitive, Unrolled, register
from pyjx.core.records import Record
from pyjx.core.specs import axes_of, reshard_first, spec_to_give
from pyjx.engine.axes import transpose
from pyjx.engine.primitives import cast
from pyjx.engine.rules import jvp_bilinear, unbatched_dims
from pyjx.engine.tangents import first_is_linear
from pyjx.engine.types import Operand, Params, Tangent, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.lax.common import operand as _operand

DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


# -- precision -------------------------------------------------------------------------------------


class _Named(Enum):
    """Values that are shown by their names alone, and hashed as objects."""

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name

    __hash__ = object.__hash__


class Precision(_Named):
    """How exactly a TPU or GPU multiplies; the CPU always does so in the operands' precision.

    `Precision(name)` takes the other names too: "fastest", "float32", "bfloat16", "tensorfloat32",
    "bfloat16_3x".
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return _precision_names.get(value)


_precision_names: dict[Any, Precision] = {
    "highest": Precision.HIGHEST, "float32": Precision.HIGHEST,
    "high": Precision.HIGH, "bfloat16_3x": Precision.HIGH, "tensorfloat32": Precision.HIGH,
    "default": Precision.DEFAULT, "bfloat16": Precision.DEFAULT, "fastest": Precision.DEFAULT,
    None: Precision.DEFAULT,
}


class DotAlgorithm(Record):
    """What a `dot_general` computes with: the types operands are rounded to, the type of the sums,
    and into how many parts operands are split.

    The fields are those of StableHLO's `dot_algorithm`.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(_Named):
    """The algorithms that accelerators have, named by the types of lhs, rhs and accumulation."""

    DEFAULT = 1
    ANY_F8_ANY_F8_F32 = 2
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 3
    ANY_F8_ANY_F8_ANY = 4
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 5
    F16_F16_F16 = 6
    F16_F16_F32 = 7
    BF16_BF16_BF16 = 8
    BF16_BF16_F32 = 9
    BF16_BF16_F32_X3 = 10
    BF16_BF16_F32_X6 = 11
    BF16_BF16_F32_X9 = 12
    TF32_TF32_F32 = 13
    TF32_TF32_F32_X3 = 14
    F32_F32_F32 = 15
    F64_F64_F64 = 16

    @property
    def accumulation_type(self) -> Any:
        """The type of the sums; None where the operands decide."""
        parts = self.name.split("_")
        if self.name.startswith("ANY_F8"):
            return np.float32 if parts[4] == "F32" else None
        return _preset_types[parts[2]] if len(parts) > 2 else None

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """The dtypes that lhs may have; the first is what others are converted to."""
        kind = self.name.split("_")[0]
        if kind in ("DEFAULT", "ANY"):
            return None
        if kind == "BF16":
            return (np.float32,) if "_X" in self.name else (dtypes.bfloat16, np.float32)
        return (_preset_types[kind],)

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """The dtypes that rhs may have."""
        return self.supported_lhs_types

    def supported_output_types(self, lhs_dtype: DTypeLike | None, rhs_dtype: DTypeLike | None
                              ) -> tuple[Any, ...] | None:
        """The dtypes that the result may have; the first is the accumulation's."""
        accumulation = self.accumulation_type
        if accumulation is None:
            return None
        if self.name.startswith("ANY_F8"):
            return (accumulation, np.float16, ml.bfloat16, ml.float8_e4m3fn, ml.float8_e5m2,
                    ml.float8_e5m2fnuz, ml.float8_e4m3fnuz, ml.float8_e4m3b11fnuz)
        narrow = {"F16_F16_F32": np.float16, "BF16_BF16_F32": dtypes.bfloat16}.get(self.name)
        if narrow is not None and np.dtype(lhs_dtype) == np.dtype(rhs_dtype) == np.dtype(narrow):
            return accumulation, narrow
        return (accumulation,)


_preset_types: dict[str, Any] = {
    "F16": np.float16, "BF16": dtypes.bfloat16, "TF32": np.float32, "F32": np.float32,
    "F64": np.float64,
}

PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm
    | DotAlgorithmPreset)


def canonicalize_precision(precision: PrecisionLike, function: str = "dot_general") -> Any:
    """The `precision` parameter of a primitive from any of its spellings.

    Raises:
      ValueError: it is none of them.

    >>> canonicalize_precision("high")
    (Precision.HIGH, Precision.HIGH)
    """
    if precision is None:
        precision = configuration.default_matmul_precision.value
        if precision is None:
            return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, Precision):
        return precision, precision
    if isinstance(precision, str):
        if precision in _precision_names:
            p = _precision_names[precision]
            return p, p
        if precision in DotAlgorithmPreset.__members__:
            return DotAlgorithmPreset[precision]
    elif isinstance(precision, (tuple, list)) and len(precision) == 2:
        pair = [_precision_names.get(p, p) if isinstance(p, str) else p for p in precision]
        if all(isinstance(p, Precision) for p in pair):
            return tuple(pair)
    raise ValueError(f"{function}: Precision argument must be one of:\n- None,\n- a string in "
                     f"{list(_precision_names)},\n- a lax.Precision value,\n- a tuple of two "
                     "lax.Precision values or strings,\n- a lax.DotAlgorithmPreset or the name of "
                     f"one of these presets, or\n- a lax.DotAlgorithm value;\nbut got {precision}.")


# -- dot_general -----------------------------------------------------------------------------------


def _check_axes(side: str, ndim: int, contract: Sequence[int], batch: Sequence[int]) -> None:
    """Check the contracting and batch axes of one operand."""
    if not all(0 <= d < ndim for d in (*contract, *batch)):
        raise TypeError(
            f"dot_general requires {side} dimension numbers to be nonnegative and less than the "
            f"number of axes of the {side} value, got {side}_batch of {tuple(batch)} and "
            f"{side}_contracting of {tuple(contract)} for {side} of rank {ndim}")
    for kind, axes in (("batch", batch), ("contracting", contract)):
        if len(set(axes)) != len(axes):
            raise TypeError(f"dot_general requires {side} {kind} dimensions to be distinct, got "
                            f"{side}_{kind} {tuple(axes)}.")
    if set(batch) & set(contract):
        raise TypeError(f"dot_general requires {side} batch dimensions to be disjoint from "
                        f"contracting dimensions, got {side}_batch {tuple(batch)} and "
                        f"{side}_contracting {tuple(contract)}.")


def other_axes(ndim: int, *used: Sequence[int]) -> list[int]:
    """The axes that are in none of `used`, in order."""
    taken = {d for axes in used for d in axes}
    return [d for d in range(ndim) if d not in taken]


def _mismatch(lhs: ShapedArray, rhs: ShapedArray, of_lhs: Sequence[int], of_rhs: Sequence[int],
              taken: str) -> str:
    """For messages: the first axes whose sizes differ, of those that are taken together; empty
    where there are more of one operand."""
    x, y = lhs.shape, rhs.shape
    for i, j in zip(of_lhs, of_rhs, strict=False):
        if x[i] != y[j]:
            return (f" Axis {i} of the first operand, of shape {x}, has size {x[i]}, and axis {j} "
                    f"of the second, of shape {y}, has size {y[j]}; they are {taken} together and "
                    "must be equal.")
    return ""


def dot_shape(lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: Any) -> tuple[int, ...]:
    """The result's shape: batch axes, the rest of lhs, the rest of rhs.

    Raises:
      TypeError: axes out of range, repeated, or of different sizes.
    """
    (lc, rc), (lb, rb) = dimension_numbers
    _check_axes("lhs", lhs.ndim, lc, lb)
    _check_axes("rhs", rhs.ndim, rc, rb)
    if len(lb) != len(rb):
        raise TypeError("dot_general requires equal numbers of lhs_batch and rhs_batch dimensions, "
                        f"got lhs_batch {lb} and rhs_batch {rb}.")
    lhs_batch = tuple([lhs.shape[d] for d in lb])
    rhs_batch = tuple([rhs.shape[d] for d in rb])
    if lhs_batch != rhs_batch:
        raise TypeError("dot_general requires lhs batch dimensions and rhs batch dimensions to "
                        f"have the same shape, got {lhs_batch} and {rhs_batch}."
                        f"{_mismatch(lhs, rhs, lb, rb, 'taken')}")
    lhs_sum = tuple([lhs.shape[d] for d in lc])
    rhs_sum = tuple([rhs.shape[d] for d in rc])
    if lhs_sum != rhs_sum:
        raise TypeError("dot_general requires contracting dimensions to have the same shape, got "
                        f"{lhs_sum} and {rhs_sum}.{_mismatch(lhs, rhs, lc, rc, 'summed over')}")
    lhs_rest = [lhs.shape[d] for d in other_axes(lhs.ndim, lc, lb)]
    rhs_rest = [rhs.shape[d] for d in other_axes(rhs.ndim, rc, rb)]
    return (*lhs_batch, *lhs_rest, *rhs_rest)


_CATEGORIES = (np.bool_, np.integer, np.floating, np.complexfloating)


def _width(dtype: dtypes.DType) -> tuple[Any, ...]:
    """Orders dtypes for a product of two: by category, size, and range."""
    category = [dtypes.issubdtype(dtype, c) for c in _CATEGORIES].index(True)
    span = float(dtypes.finfo(dtype).max) if category == 2 else 0.0
    return category, dtypes.bit_width(dtype), span, dtypes.issubdtype(dtype, np.signedinteger)


def _part_width(dtype: DTypeLike) -> int:
    """The bits of a number, or of the real part of a complex one."""
    return dtypes.bit_width(dtypes.to_floating_dtype(dtype) if dtype in dtypes.complex_dtypes
                            else dtype)


def product_dtype(name: str, lhs: ShapedArray, rhs: ShapedArray, preferred: Any) -> Any:
    """The dtype of a sum of products, which may be of two dtypes.

    Raises:
      TypeError: a dtype is not numeric, or `preferred` cannot hold sums of such integers.
    """
    for x in (lhs, rhs):
        if dtypes.is_extended(x.dtype) or x.dtype == dtypes.float0:
            raise TypeError(f"{name} does not accept dtype {dtypes.name(x.dtype)}. Accepted "
                            "dtypes are subtypes of bool and number.")
    dtype = lhs.dtype if lhs.dtype == rhs.dtype else max(lhs.dtype, rhs.dtype, key=_width)
    if preferred is None:
        return dtype
    if (dtype in dtypes.complex_dtypes or dtypes.issubdtype(dtype, np.integer)) and (
            preferred == np.bool_ or _part_width(preferred) < _part_width(dtype)):
        raise TypeError(
            f"{name}: `preferred_element_type` must not be narrower than the original type, got "
            f"preferred_element_type of {preferred} for result type of {dtype}.")
    if dtypes.issubdtype(dtype, np.complexfloating) and not dtypes.issubdtype(
            preferred, np.complexfloating):
        raise TypeError(
            f"{name}: `preferred_element_type` and the original type must both be complex, or "
            f"neither, got preferred_element_type of {preferred} for result type of {dtype}.")
    return preferred


def takes_real_part(preferred: Any, *types: Any) -> bool:
    """Whether products of numbers, one of which is complex, are to be of a real dtype that holds
    their real parts.
    """
    parts = [_part_width(dtype) for dtype in types if dtype in dtypes.complex_dtypes]
    return bool(parts) and preferred is not None and preferred not in dtypes.complex_dtypes \
        and preferred != np.bool_ and _part_width(preferred) >= max(parts)


def _dot_general_shape(lhs: ShapedArray, rhs: ShapedArray, *,
                       dimension_numbers: DotDimensionNumbers, precision: PrecisionLike,
                       preferred_element_type: dtypes.DType, out_sharding: ShardingLike = None
                      ) -> ShapedArray:
    shape = dot_shape(lhs, rhs, dimension_numbers)
    dtype = product_dtype("dot_general", lhs, rhs, preferred_element_type)
    weak = lhs.weak_type and rhs.weak_type
    return ShapedArray(shape, dtype, weak)


def result_sharding(lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: DotDimensionNumbers,
                    out_sharding: ShardingLike, caller: str) -> Any:
    """The `out_sharding` of a product, as its parameter; None for None.

    Raises:
      ValueError, TypeError: it does not fit the result.
      ShardingTypeError: sums are to be left open along axes that the operands are not cut along.
    """
    if out_sharding is None:
        return None
    shape = dot_shape(lhs, rhs, dimension_numbers)
    found = resolved_sharding(out_sharding, shape, caller)
    unreduced = found and found.spec.unreduced
    (lc, rc), _ = dimension_numbers
    if no_collectives.value:
        along = axes_of([entries_of(x)[i] for x, axes in ((lhs, lc), (rhs, rc)) for i in axes])
        check_collective("dot_general", _CONTRACTS, along, unreduced or ())
    if unreduced:
        for x, axes in ((lhs, lc), (rhs, rc)):
            along = axes_of([entries_of(x)[i] for i in axes])
            if unreduced != frozenset(along):
                raise ShardingTypeError(
                    "out_sharding's unreduced axes should be equal to the contracting specs. Got "
                    f"unreduced axes={unreduced} and contracting spec={tuple(along) or (None,)}")
    return found


_CONTRACTS = "contracts over axis '{}' without marking it unreduced in the output"


def _dot_general_sharding(out: ShapedArray, lhs: ShapedArray, rhs: ShapedArray, *,
                          dimension_numbers: DotDimensionNumbers, **params: Any) -> Entries:
    (lc, rc), (lb, rb) = dimension_numbers
    a, b = entries_of(lhs), entries_of(rhs)
    if no_collectives.value:
        check_collective("dot_general", _CONTRACTS,
                         axes_of([*[a[i] for i in lc], *[b[i] for i in rc]]))
    lhs_batch, rhs_batch = tuple([a[i] for i in lb]), tuple([b[i] for i in rb])
    if lhs_batch != rhs_batch:
        raise ShardingTypeError(
            "dot_general requires lhs batch dimensions and rhs batch dimensions to have the same "
            f"sharding, got {lhs_batch} and {rhs_batch}. {reshard_first('one of them')}")
    lhs_sum, rhs_sum = tuple([a[i] for i in lc]), tuple([b[i] for i in rc])
    if any([x is not None and y is not None for x, y in zip(lhs_sum, rhs_sum, strict=True)]):
        raise ShardingTypeError(
            "Contracting dimensions are sharded and it is ambiguous how the output should be "
            "sharded. Please specify the output sharding via the `out_sharding` parameter. Got "
            f"lhs_contracting_spec={lhs_sum} and rhs_contracting_spec={rhs_sum}. As in "
            f"jnp.matmul(x, y, out_sharding=...), give it as {spec_to_give()}, or call "
            "jax.reshard on an operand before.")
    return product_entries(lhs, rhs, dimension_numbers)


def product_entries(lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: DotDimensionNumbers
                    ) -> Entries:
    """For each dimension of a product the axes that it is cut along in the operand that has it."""
    (lc, rc), (lb, rb) = dimension_numbers
    a, b = entries_of(lhs), entries_of(rhs)
    return (*[a[i] for i in lb], *[a[i] for i in other_axes(lhs.ndim, lc, lb)],
            *[b[i] for i in other_axes(rhs.ndim, rc, rb)])


def convert(x: Array, dtype: dtypes.DType) -> Array:
    """`x` as an array of `dtype`."""
    old = get_aval(x).dtype
    if old == dtype:
        return x
    if old in dtypes.complex_dtypes and dtype not in dtypes.complex_dtypes:
        x = lax.real(x)  # the cotangent of a real operand
    return lax.convert_element_type(x, dtype)


def _operand_cotangent(ct: Tangent, x: Array, y: Value, x_axes: Any, y_axes: Any,
                       ct_rest: Sequence[int], params: Params) -> Array:
    """Cotangent of the operand with aval `x`, the other one being `y`.

    It is the product of the cotangent and `y` over the axes that only `y` has, which stand in the
    cotangent at `ct_rest`. `x_axes` and `y_axes` are the contracting and batch axes.
    """
    (x_sum, x_batch), (y_sum, y_batch) = x_axes, y_axes
    y_rest = other_axes(get_aval(y).ndim, y_sum, y_batch)
    dims = ((tuple(ct_rest), tuple(y_rest)), (tuple(range(len(x_batch))), y_batch))
    # Its axes are those of x: batch, the rest, and the contracted ones in the order y has them.
    x_rest = other_axes(x.ndim, x_sum, x_batch)
    in_y_order = [xs for _, xs in sorted(zip(y_sum, x_sum, strict=True))]
    order = [*x_batch, *x_rest, *in_y_order]
    wanted = cotangent_aval(x).place.sharding
    if wanted is not None:
        given = get_aval(ct)
        summed = axes_of([entries_of(given)[i] for i in ct_rest])
        wanted = wanted.update(spec=wanted.spec.update(
            partitions=[wanted.spec[i] for i in order],
            unreduced=wanted.spec.unreduced & (given.place.spec.unreduced | set(summed)),
            unreduced_kind=None))
    params = {**params, "out_sharding": wanted or replicated(x.ndim, get_aval(ct), get_aval(y))}
    out = dot_general_p.bind(ct, y, dimension_numbers=dims, **params)
    out = transpose(out, [order.index(i) for i in range(x.ndim)])
    return convert(out, x.dtype)


def _dot_general_transpose(ct: Tangent, lhs: Operand, rhs: Operand, *,
                           dimension_numbers: DotDimensionNumbers, **params: Any) -> Sequence[Any]:
    (lc, rc), (lb, rb) = dimension_numbers
    n_batch = len(lb)
    n_lhs = get_aval(lhs).ndim - len(lc)  # axes of the result that lhs has
    ndim = n_lhs + get_aval(rhs).ndim - len(rc) - n_batch
    if first_is_linear("dot_general", lhs, rhs):
        grad = _operand_cotangent(ct, lhs.aval, rhs, (lc, lb), (rc, rb), range(n_lhs, ndim), params)
        return grad, None
    grad = _operand_cotangent(ct, rhs.aval, lhs, (rc, rb), (lc, lb), range(n_batch, n_lhs), params)
    return None, grad


def _dot_general_batch(operands: Values, dims: Any, *, dimension_numbers: DotDimensionNumbers,
                       **params: Any) -> tuple[Value, int]:
    (lhs, rhs), (dl, dr) = operands, dims
    (lc, rc), (lb, rb) = dimension_numbers
    if dl is not None:
        lc, lb = unbatched_dims(dl, lc), unbatched_dims(dl, lb)
    if dr is not None:
        rc, rb = unbatched_dims(dr, rc), unbatched_dims(dr, rb)
    if dl is not None and dr is not None:
        lb, rb = (dl, *lb), (dr, *rb)
        out_dim = 0
    elif dl is not None:
        out_dim = len(lb) + other_axes(get_aval(lhs).ndim, lc, lb).index(dl)
    else:
        n_lhs = get_aval(lhs).ndim - len(lc)
        out_dim = n_lhs + other_axes(get_aval(rhs).ndim, rc, rb).index(dr)
    if params["out_sharding"] is not None:
        x, d = (rhs, dr) if dl is None else (lhs, dl)
        params["out_sharding"] = batched_sharding(params["out_sharding"], out_dim, get_aval(x), d)
    out = dot_general_p.bind(lhs, rhs, dimension_numbers=((lc, rc), (lb, rb)), **params)
    return out, out_dim


def _dot_general_printed(params: Params) -> list[tuple[str, Any]]:
    numbers = tuple([tuple(map(list, pair)) for pair in params["dimension_numbers"]])
    return [("dimension_numbers", numbers), *[
        (key, params[key]) for key in ("out_sharding", "precision", "preferred_element_type")
        if params[key] is not None]]


def _dot_general_arithmetic(eqn: JaxprEqn) -> tuple[float, float]:
    (contracting, _), _ = eqn.params["dimension_numbers"]
    shape = eqn.invars[0].aval.shape
    return 2 * on_results(eqn) * math.prod([shape[d] for d in contracting]), 0.0


# For each matrix of a batch XLA calls a library on CPU, and for each product in a loop: 200 to 800
# ns, where outer products of matrices of this size take 2 to 20. One product alone takes as long,
# and longer ones, and vectors outside of loops, take longer.
_FEW, _MANY, _MOST = 8, 8, 1024
# In loops of some operations, which are one kernel then, products of one pair of up to so many
# rows. Of 9 to 15 these take up to 0.4 us longer, where a filter takes a seventh.
_FEW_IN_LOOPS, _OPERATIONS, _MOST_IN_LOOPS = 16, 12, 4096
_UNROLLED = frozenset(map(np.dtype, "ilfdFD"))


def _is_small(eqn: JaxprEqn, repeated: int) -> bool:
    """Whether matrices of few rows and columns are multiplied, and it matters."""
    (x, y), out = (v.aval for v in eqn.invars), eqn.outvars[0].aval
    if not (x.dtype == y.dtype == out.dtype and x.dtype in _UNROLLED and all(
            [type(n) is int for n in (*x.shape, *y.shape)])) or isinstance(
                eqn.params["precision"], (DotAlgorithm, DotAlgorithmPreset)):
        return False
    (contracted, _), (batch, _) = eqn.params["dimension_numbers"]
    summed, count = (math.prod([x.shape[d] for d in dims]) for dims in (contracted, batch))
    shared = summed * count
    few, most = (_FEW_IN_LOOPS, _MOST_IN_LOOPS) if repeated > _OPERATIONS and count == 1 else (
        _FEW, _MOST)
    if not 0 < summed <= few or not shared or out.size * summed > most * count:
        return False
    narrow = min(x.size, y.size) // shared
    return narrow <= few and (
        repeated > 0 or (count >= _MANY and (narrow > 1 or 2 * summed <= _FEW)))


def _by_outer_products(x: Value, y: Value, *, dimension_numbers: Any, **params: Any) -> Value:
    """The sum of outer products, one for each index of what is contracted."""
    parts = []
    for v, contracted, batch in zip((x, y), *dimension_numbers, strict=True):
        free = [d for d in range(get_aval(v).ndim) if d not in (*contracted, *batch)]
        v = transpose(v, (*contracted, *batch, *free))
        shape, n = get_aval(v).shape, len(contracted)
        parts.append(lax.reshape(v, (math.prod(shape[:n]), *shape[n:])))
    n, n_batch = get_aval(parts[0]).ndim - 1, len(dimension_numbers[1][0])
    shape = (*get_aval(parts[0]).shape[1:], *get_aval(parts[1]).shape[1 + n_batch:])
    dims = range(n), (*range(n_batch), *range(n, len(shape)))
    total: Value = 0
    for k in range(get_aval(parts[0]).shape[0]):
        term = lax.mul(*[lax.broadcast_in_dim(lax.index_in_dim(v, k, 0, keepdims=False), shape, d)
                         for v, d in zip(parts, dims, strict=True)])
        total = lax.add(total, term) if k else term
    return total


dot_general_p = register(Primitive(
    "dot_general", contracts=True, linear=EACH, arithmetic=_dot_general_arithmetic,
    unrolled=Unrolled(_is_small, _by_outer_products),
    shape_rule=_dot_general_shape, sharding_rule=_dot_general_sharding,
    printed=_dot_general_printed))
dot_general_p.define(jvp=jvp_bilinear(dot_general_p), transpose=_dot_general_transpose,
                     batch=_dot_general_batch)


def preferred_dtype(preferred_element_type: DTypeLike | None, name: str) -> Any:
    """The `preferred_element_type` parameter: a dtype or None."""
    if preferred_element_type is None:
        return None
    return dtypes.check_and_canonicalize_user_dtype(preferred_element_type, name)


def axis_tuple(function: str, axes: Any) -> tuple[int, ...]:
    """Axes given as any sequence of integers, or one integer."""
    if isinstance(axes, (int, np.integer)):
        return (int(axes),)
    return as_ints(function, "dimension_numbers", axes)


def axis_tuples(function: str, dimension_numbers: Any) -> Any:
    """The dimension numbers of a product as tuples."""
    try:
        (lc, rc), (lb, rb) = dimension_numbers
    except (TypeError, ValueError):
        raise TypeError(f"{function}: dimension_numbers must be ((lhs_contracting, "
                        "rhs_contracting), (lhs_batch, rhs_batch)), each a sequence of axes, got "
                        f"{dimension_numbers!r}") from None
    return ((axis_tuple(function, lc), axis_tuple(function, rc)),
            (axis_tuple(function, lb), axis_tuple(function, rb)))


def dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers,
                precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None, *,
                out_sharding: ShardingLike = None) -> Array:
    """Sum of products over contracting axes, for each index of the batch axes.

    The result's axes are the batch axes, then the rest of `lhs`, then the rest of `rhs`:
    out[b, m, n] = sum_k lhs[b, m, k] * rhs[b, k, n].

    Args:
      lhs: an array.
      rhs: an array.
      dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`, each a
        sequence of axes; paired axes have the same size.
      precision: None (the flag `jax_default_matmul_precision`), a `Precision`, a name, a pair of
        them for `lhs` and `rhs`, or a `DotAlgorithm` or `DotAlgorithmPreset`.
      preferred_element_type: dtype of the sums and of the result; of a complex product with a real
        one the real part.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      TypeError: the axes are out of range, repeated, or of different sizes.
      ValueError: `precision` is none of the above.

    >>> import pyjx as jax
    >>> x, y = jax.numpy.ones((5, 2, 3)), jax.numpy.ones((5, 3, 4))
    >>> jax.lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    lhs, rhs = _operand("dot_general", lhs), _operand("dot_general", rhs, 1)
    preferred = preferred_dtype(preferred_element_type, "dot_general")
    if takes_real_part(preferred, get_aval(lhs).dtype, get_aval(rhs).dtype):
        product = dot_general(lhs, rhs, dimension_numbers, precision, out_sharding=out_sharding)
        return cast(lax.real(product), preferred, get_aval(product).weak_type)
    numbers = axis_tuples("dot_general", dimension_numbers)
    out_sharding = result_sharding(get_aval(lhs), get_aval(rhs), numbers, out_sharding,
                                   "dot_general")
    return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers,
                              precision=canonicalize_precision(precision),
                              preferred_element_type=preferred, out_sharding=out_sharding)


def dot(lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers | None = None,
        precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
        out_sharding: ShardingLike = None) -> Array:
    """Product of vectors and matrices, or `dot_general` with `dimension_numbers`.

    Args:
      lhs: an array of rank 1 or 2, or of any rank with `dimension_numbers`.
      rhs: likewise; its first axis has the size of the last one of `lhs`.
      dimension_numbers, precision, preferred_element_type: as for `dot_general`.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: the shapes are not those of such a product.

    >>> import pyjx as jax
    >>> jax.lax.dot(jax.numpy.arange(3.), jax.numpy.ones(3))
    Array(3., dtype=float32)
    """
    lhs, rhs = _operand("dot", lhs), _operand("dot", rhs, 1)
    if dimension_numbers is None:
        a, b = get_aval(lhs), get_aval(rhs)
        x, y = a.shape, b.shape
        if not (1 <= len(x) <= 2 and 1 <= len(y) <= 2):
            raise ValueError("jax.lax.dot: dimension_numbers must be specified when not performing "
                             "simple un-batched matrix-matrix, matrix-vector, or vector-vector "
                             f"products; got lhs_shape={x} rhs_shape={y}")
        dimension_numbers = (((len(x) - 1,), (0,)), ((), ()))
        if x[-1] != y[0]:
            raise ValueError(f"jax.lax.dot: got lhs_shape={x} rhs_shape={y}."
                             f"{_mismatch(a, b, *dimension_numbers[0], 'summed over')}")
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type,
                       out_sharding=out_sharding)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Matrix products along the last two axes, for each index of the others.

    Args:
      lhs, rhs: arrays (..., n, k) and (..., k, m), with equal axes in front.
      precision: what accelerators compute with: None, a `lax.Precision` or its name, such as
        "highest".

    Raises:
      ValueError: the operands have different ranks, or a rank below 2.

    >>> import pyjx as jax
    >>> jax.lax.batch_matmul(jax.numpy.ones((5, 2, 3)), jax.numpy.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    lhs, rhs = _operand("batch_matmul", lhs), _operand("batch_matmul", rhs, 1)
    n, m = get_aval(lhs).ndim, get_aval(rhs).ndim
    if min(n, m) < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {n}, {m}")
    if n != m:
        raise ValueError(f"Arguments to batch_matmul must have same ndim, got {n}, {m}")
    batch = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (batch, batch)), precision)


def scaled_dot(lhs: ArrayLike, rhs: ArrayLike, *, lhs_scale: ArrayLike | None = None,
               rhs_scale: ArrayLike | None = None,
               dimension_numbers: DotDimensionNumbers | None = None,
               preferred_element_type: DTypeLike | None = None) -> Any:
    """`dot_general` of `lhs * lhs_scale` and `rhs * rhs_scale`, for block-scaled formats.

    Args:
      lhs, rhs: arrays, usually of an 8-bit float dtype.
      lhs_scale, rhs_scale: arrays of the operands' ranks, or None. Along the contracting axis
        their size divides the operand's: one factor scales a block of elements.
      dimension_numbers: as for `dot_general`; by default the product of (batches of) matrices.
      preferred_element_type: bfloat16 (the default) or float32.

    Raises:
      TypeError: ranks or sizes do not fit, or the preferred dtype is another one.

    >>> import pyjx as jax
    >>> x, y = jax.numpy.ones((2, 4)), jax.numpy.ones((4, 3))
    >>> scale = jax.numpy.full((2, 2), 2.)
    >>> jax.lax.scaled_dot(x, y, lhs_scale=scale, preferred_element_type='float32').tolist()
    [[8.0, 8.0, 8.0], [8.0, 8.0, 8.0]]
    """
    lhs, rhs = _operand("scaled_dot", lhs), _operand("scaled_dot", rhs, 1)
    if dimension_numbers is None:
        n = get_aval(lhs).ndim
        if n not in (2, 3):
            raise TypeError("scaled_dot does not support 0-rank and 1-rank operands, and "
                            "dimension_numbers must be given for operands that are "
                            f"not of rank 2 or 3, got lhs of shape {get_aval(lhs).shape}")
        batch = tuple(range(n - 2))
        dimension_numbers = (((n - 1,), (n - 2,)), (batch, batch))
    dtype = np.dtype(dtypes.bfloat16) if preferred_element_type is None else \
        preferred_dtype(preferred_element_type, "scaled_dot (preferred_element_type)")
    if dtype not in (np.dtype(dtypes.bfloat16), np.dtype(np.float32)):
        raise TypeError("scaled_dot: preferred_element_type must be bfloat16 or float32, "
                        f"got {dtype}")
    x = _scaled("lhs", lhs, lhs_scale, dtype)
    y = _scaled("rhs", rhs, rhs_scale, dtype)
    return dot_general(x, y, dimension_numbers, preferred_element_type=dtype)


def _scaled(side: str, x: Any, scale: Any, dtype: DTypeLike) -> Array:
    """`x * scale` in `dtype`, each element of `scale` standing for a block of `x`."""
    x = convert(x, dtype)
    if scale is None:
        return x
    scale = _operand(f"scaled_dot ({side}_scale)", scale)
    shape, blocks = get_aval(x).shape, get_aval(scale).shape
    if len(shape) != len(blocks) or any(
            b == 0 or n % b for n, b in zip(shape, blocks, strict=True)):
        raise TypeError(f"scaled_dot: the sizes of {side}_scale must divide those of {side}, got "
                        f"shapes {blocks} and {shape}")
    split = [k for n, b in zip(shape, blocks, strict=True) for k in (b, n // b)]
    wide = lax.broadcast_in_dim(convert(scale, dtype), split, range(0, len(split), 2))
    return lax.mul(x, lax.reshape(wide, shape))


