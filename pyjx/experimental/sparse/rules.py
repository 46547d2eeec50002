"""What operations of `lax` mean for sparse operands: the rules of `sparsify`.

A rule takes the operands, of which at least one is a BCOO or BCSR array, and the parameters of the
primitive, and gives the result. Rules of programs that hold programs stand in `transform`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.primitive import Primitive
from pyjx.engine.tangents import add_any_p
from pyjx.experimental.sparse import bcoo, bcsr
from pyjx.experimental.sparse.bcoo.products import data_times
from pyjx.experimental.sparse.bcoo.shapes import gathered
from pyjx.experimental.sparse.creation import todense_p
from pyjx.experimental.sparse.formats import refuse_dense_sum, stretched

SparseRule = Callable[..., Any]

BCOO, BCSR = bcoo.BCOO, bcsr.BCSR


def is_sparse(x: Any) -> bool:
    """Whether `x` is of a format that `sparsify` knows."""
    return isinstance(x, (BCOO, BCSR))


class Stretched:
    """A dense array that is broadcast only where somebody needs the whole of it: products with
    sparse arrays read it as it was, and sums are refused where it was smaller.

    Args:
      array: the array before.
      params: those of `broadcast_in_dim`.
    """

    __slots__ = ("_whole", "array", "params")

    def __init__(self, array: Any, params: dict[str, Any]) -> None:
        self.array = array
        self.params = params
        self._whole: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.params["shape"])

    @property
    def dtype(self) -> Any:
        return get_aval(self.array).dtype

    @property
    def narrow(self) -> Any:
        """The array with dimensions of size 1 in place of those that are stretched."""
        dims = self.params["broadcast_dimensions"]
        shape = [1] * len(self.shape)
        for d, size in zip(dims, get_aval(self.array).shape, strict=True):
            shape[d] = size
        return lax.broadcast_in_dim(self.array, shape, dims)

    @property
    def whole(self) -> Any:
        if self._whole is None:
            self._whole = lax.broadcast_in_dim_p.bind(self.array, **self.params)
        return self._whole


def whole(x: object) -> Any:
    """The value itself, of a stretched array the whole of it."""
    return x.whole if type(x) is Stretched else x


def narrow(x: object) -> Any:
    return x.narrow if type(x) is Stretched else x


def with_data(mat: Any, data: ArrayLike) -> Any:
    """The array with other elements at the same indices."""
    children, aux = mat.tree_flatten()
    return mat.tree_unflatten(aux, (data, *children[1:]))


# -- elementwise operations ------------------------------------------------------------------------

# f(0) = 0; those that are not linear need elements of the same index to be added first.
_LINEAR = (
    lax.conj_p, lax.copy_p, lax.imag_p, lax.neg_p, lax.real_p, lax.reduce_precision_p,
    lax.stage_p,
)
_ZERO_PRESERVING = (
    lax.abs_p, lax.asin_p, lax.asinh_p, lax.atan_p, lax.atanh_p, lax.bessel_i1e_p, lax.cbrt_p,
    lax.ceil_p, lax.erf_p, lax.erf_inv_p, lax.expm1_p, lax.floor_p, lax.integer_pow_p,
    lax.log1p_p, lax.round_p, lax.sign_p, lax.sin_p, lax.sinh_p, lax.sqrt_p, lax.square_p,
    lax.tan_p, lax.tanh_p,
)
_DENSIFYING = (
    lax.acos_p, lax.acosh_p, lax.bessel_i0e_p, lax.cos_p, lax.cosh_p, lax.eq_p, lax.erfc_p,
    lax.exp_p, lax.exp2_p, lax.ge_p, lax.gt_p, lax.le_p, lax.log_p, lax.logistic_p, lax.lt_p,
    lax.ne_p,
)


def _with_unique_indices(mat: Any) -> Any:
    if mat.unique_indices:
        return mat
    room = bcoo.bcoo_sum_duplicates if isinstance(mat, BCOO) else bcsr.bcsr_sum_duplicates
    return room(mat, nse=mat.nse)


def _elementwise(primitive: Primitive, operands: Any, linear: bool, params: Any) -> Any:
    (mat,) = operands
    if primitive is lax.integer_pow_p and params["y"] <= 0:
        raise NotImplementedError(
            f"sparse rule for {primitive} with non-positive exponent {params['y']} is not "
            "implemented because it would result in dense output. If this is your intent, use "
            "sparse.todense() to convert your argument to a dense array.")
    mat = mat if linear else _with_unique_indices(mat)
    return with_data(mat, primitive.bind(mat.data, **params))


def _convert(primitive: Primitive, operands: Any, params: Any) -> Any:
    (mat,) = operands
    old, new = mat.dtype, params["new_dtype"]
    linear = not dtypes.issubdtype(old, np.inexact) or dtypes.issubdtype(new, np.inexact)
    return _elementwise(primitive, operands, linear and new != np.bool_, params)


def _same_indices(x: bcoo.BCOO, y: bcoo.BCOO) -> bool:
    return x.indices is y.indices and x.shape == y.shape


def add(x: Any, y: Any) -> Any:
    """The sum: sparse if both are sparse."""
    if not (isinstance(x, BCOO) and isinstance(y, BCOO)):
        mat, dense = (x, y) if is_sparse(x) else (y, x)
        if is_sparse(dense):
            raise NotImplementedError("Addition between sparse arrays of formats "
                                      f"{type(x).__name__} and {type(y).__name__}.")
        if type(dense) is Stretched or get_aval(dense).shape != mat.shape:
            refuse_dense_sum()
        return lax.add(mat.todense(), dense)
    if _same_indices(x, y) and x.data.shape == y.data.shape:
        return with_data(x, lax.add(x.data, y.data))
    n_batch, n_dense = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
    return _joined(*[m.update_layout(n_batch=n_batch, n_dense=n_dense) for m in (x, y)])


def _joined(x: bcoo.BCOO, y: bcoo.BCOO) -> Any:
    """The elements of one array after those of the other."""
    n_batch = x.n_batch
    batch = x.shape[:n_batch]
    data = [stretched(m.data, batch) for m in (x, y)]
    indices = [stretched(m.indices, batch) for m in (x, y)]
    return BCOO._of(jnp.concatenate(data, n_batch), jnp.concatenate(indices, n_batch), x.shape)


def _subtract(x: Any, y: Any) -> Any:
    if not (is_sparse(x) and is_sparse(y)):
        raise NotImplementedError("Subtraction between sparse and dense array.")
    if isinstance(x, BCOO) and isinstance(y, BCOO) and _same_indices(x, y):
        return with_data(x, lax.sub(x.data, y.data))
    return add(x, with_data(y, lax.neg(y.data)))


def _multiply(x: Any, y: Any, *, out_dtype: DTypeLike | None = None) -> Any:
    x, y = narrow(x), narrow(y)
    if out_dtype is not None:
        x, y = [with_data(m, lax.convert_element_type(m.data, out_dtype)) if is_sparse(m)
                else lax.convert_element_type(m, out_dtype) for m in (x, y)]
    if isinstance(x, BCOO) and isinstance(y, BCOO):
        if _same_indices(x, y) and x.unique_indices and x.data.shape == y.data.shape:
            return with_data(x, lax.mul(x.data, y.data))
        return bcoo.bcoo_multiply_sparse(x, y)
    mat, v = (x, y) if is_sparse(x) else (y, x)
    if not isinstance(mat, BCOO):
        raise NotImplementedError("sparse rule for mul is not implemented.")
    return with_data(mat, data_times(mat, v, "multiply"))


def _divide(x: Any, y: Any) -> Any:
    if is_sparse(y):
        raise NotImplementedError(
            "Division by a sparse array is not implemented because it would result in dense "
            "output. If this is your intent, use sparse.todense() to convert your arguments to a "
            "dense array.")
    if not isinstance(x, BCOO):
        raise NotImplementedError("sparse rule for div is not implemented.")
    return with_data(x, data_times(x, narrow(y), "divide"))


# -- products and rearrangements -------------------------------------------------------------------


def _dot_general(x: Any, y: Any, *, dimension_numbers: Any,
                 preferred_element_type: DTypeLike | None = None, **_: Any) -> Any:
    room = (bcsr.bcsr_dot_general if isinstance(x, BCSR) or isinstance(y, BCSR)
            else bcoo.bcoo_dot_general)
    return room(x, y, dimension_numbers=dimension_numbers,
                preferred_element_type=preferred_element_type)


def _reduce_sum(mat: Any, *, axes: Any, **_: Any) -> Any:
    out = bcoo.bcoo_reduce_sum(mat, axes=axes)
    return out if out.shape else out.todense()


def _concatenate(*operands: Any, dimension: int) -> Any:
    if all([isinstance(x, BCSR) for x in operands]):
        return bcsr.bcsr_concatenate(operands, dimension=dimension)
    return bcoo.bcoo_concatenate(operands, dimension=dimension)


def _broadcast(mat: Any, *sizes: Any, shape: Any, broadcast_dimensions: Any, **_: Any) -> Any:
    room = (bcsr.bcsr_broadcast_in_dim if isinstance(mat, BCSR) else bcoo.bcoo_broadcast_in_dim)
    return room(mat, shape=shape, broadcast_dimensions=broadcast_dimensions)


def _stack(*operands: Any, axis: int) -> Any:
    ndim = len(operands[0].shape) + 1
    dims = [d for d in range(ndim) if d != axis % ndim]
    expanded = [_broadcast(x, shape=(*x.shape[:axis], 1, *x.shape[axis:]),
                           broadcast_dimensions=dims) if is_sparse(x)
                else lax.expand_dims(x, (axis,)) for x in operands]
    return _concatenate(*expanded, dimension=axis)


def _gather(mat: Any, indices: ArrayLike, *, dimension_numbers: Any, slice_sizes: Any, **_: Any
           ) -> Any:
    return gathered(mat, indices, dimension_numbers, slice_sizes)


def _only_bcoo(fun: SparseRule) -> SparseRule:
    def rule(primitive: Primitive, operands: Any, params: Any) -> Any:
        if any([isinstance(x, BCSR) for x in operands]):
            refuse(primitive)
        return fun(*operands, **params)

    return rule


def _any_format(fun: SparseRule) -> SparseRule:
    return lambda primitive, operands, params: fun(*operands, **params)


# What asks less of a dense operand that was stretched than the whole of it.
TAKES_STRETCHED = frozenset({lax.add_p, add_any_p, lax.mul_p, lax.div_p})

RULES: dict[Primitive, SparseRule] = {
    **dict.fromkeys(_LINEAR, lambda p, operands, params: _elementwise(p, operands, True, params)),
    **dict.fromkeys(_ZERO_PRESERVING,
                    lambda p, operands, params: _elementwise(p, operands, False, params)),
    lax.convert_element_type_p: _convert,
    lax.add_p: _any_format(add),
    add_any_p: _any_format(add),
    lax.sub_p: _any_format(_subtract),
    lax.mul_p: _any_format(_multiply),
    lax.div_p: _any_format(_divide),
    lax.dot_general_p: _any_format(_dot_general),
    lax.broadcast_in_dim_p: _any_format(_broadcast),
    lax.concatenate_p: _any_format(_concatenate),
    lax.stack_p: _any_format(_stack),
    todense_p: _any_format(lambda mat, tree: mat.todense()),
    lax.reduce_sum_p: _only_bcoo(_reduce_sum),
    lax.transpose_p: _only_bcoo(bcoo.bcoo_transpose),
    lax.reshape_p: _only_bcoo(bcoo.bcoo_reshape),
    lax.squeeze_p: _only_bcoo(bcoo.bcoo_squeeze),
    lax.slice_p: _only_bcoo(bcoo.bcoo_slice),
    lax.dynamic_slice_p: _only_bcoo(
        lambda mat, *starts, slice_sizes: bcoo.bcoo_dynamic_slice(mat, starts, slice_sizes)),
    lax.gather_p: _only_bcoo(_gather),
    lax.rev_p: _only_bcoo(bcoo.bcoo_rev),
    lax.conv_general_dilated_p: _only_bcoo(bcoo.bcoo_conv_general_dilated),
}


def refuse(primitive: Primitive) -> NoReturn:
    """Raise NotImplementedError for an operation without a rule."""
    if primitive in _DENSIFYING:
        raise NotImplementedError(
            f"sparse rule for {primitive} is not implemented because it would result in dense "
            "output. If this is your intent, use sparse.todense() to convert your arguments to "
            "dense matrices.")
    raise NotImplementedError(f"sparse rule for {primitive} is not implemented.")
