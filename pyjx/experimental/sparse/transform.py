"""`sparsify`: functions of dense arrays as functions of sparse ones.

The function is traced on arrays of the sparse ones' shapes, and the program is run with the sparse
arrays in their places: where an operand is sparse the operation's rule is applied, else the
operation itself. With `use_tracer` the function itself is run, on tracers that stand for sparse
arrays, and its operations come to the same rules.

What holds programs (loops, branches, calls) becomes the same operation on the buffers of the sparse
arrays, which are pytrees: its programs are run in the same way while it is traced.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike, DTypeLike
from pyjx.core.avals import AbstractValue, ShapedArray, get_aval
from pyjx.core.derived import derived
from pyjx.core.evaluation import bind_all, program_of, walk
from pyjx.core.explicit import without_dim
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, JaxprEqn
from pyjx.core.primitive import Primitive
from pyjx.core.records import Field, of_field
from pyjx.core.trace import Trace, Tracer, new_level, trace_to_jaxpr
from pyjx.engine.batching import may_close_over_values
from pyjx.engine.functions import check_values, name_of, with_at
from pyjx.engine.subjaxprs import live_inputs, selected
from pyjx.engine.tangents import add_any_p
from pyjx.experimental.sparse import bcoo, bcsr
from pyjx.experimental.sparse.bcoo.products import data_times
from pyjx.experimental.sparse.bcoo.shapes import gathered
from pyjx.experimental.sparse.creation import todense_p
from pyjx.experimental.sparse.formats import function, refuse_dense_sum, stretched, with_data
from pyjx.tree_util import PyTreeDef, tree_flatten, tree_leaves, tree_unflatten

# -- rules -----------------------------------------------------------------------------------------

# A rule takes the operands, of which at least one is a BCOO or BCSR array, and the parameters of
# the primitive, and gives the result; those of what holds programs come last.

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
        shape = with_at([1] * len(self.shape), dims, get_aval(self.array).shape)
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
        raise NotImplementedError("Subtraction between sparse and dense array. x + -y adds the "
                                  "negative one.")
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
        raise NotImplementedError("Division by a sparse array is not implemented because it would "
                                  "result in dense output. If this is your intent, use "
                                  "sparse.todense() to convert your arguments to a dense array.")
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
        raise NotImplementedError(f"sparse rule for {primitive} is not implemented because it "
                                  "would result in dense output. If this is your intent, use "
                                  "sparse.todense() to convert your arguments to dense matrices.")
    raise NotImplementedError(f"sparse rule for {primitive} is not implemented. The dense array "
                              "of x, sparse.todense(x), has this operation.")


# -- sparsify --------------------------------------------------------------------------------------

ArrayOrSparse = Any

__all__ = ["SparseTrace", "SparseTracer", "sparsify"]


@function
def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """`f` as a function that takes BCOO and BCSR arrays in place of dense ones.

    Results are sparse where the operations keep arrays sparse.

    Args:
      f: function of pytrees of arrays.
      use_tracer: whether `f` itself runs on tracers of sparse arrays, in place of the program that
        tracing it gives.

    Returns:
      A function of the same arguments, some of which may be sparse; `f` gets keyword arguments as
      they are unless there are sparse arrays in them. It raises NotImplementedError where an
      operation on a sparse operand would have a dense result, or has no rule.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> M = 2 * sparse.eye(3)
    >>> sparse.sparsify(lambda M, v: jnp.sin(M) @ v)(M, jnp.zeros(3)).tolist()
    [0.0, 0.0, 0.0]
    """
    run = _run_on_tracers if use_tracer else _run_program

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return run(f, args, kwargs)

    return wrapped


def _aval(x: Any) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype) if is_sparse(x) else get_aval(x)


def _run_program(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    named = {name: x for name, x in kwargs.items()
             if any(map(is_sparse, tree_leaves(x, is_leaf=is_sparse)))}
    f = functools.partial(f, **{name: x for name, x in kwargs.items() if name not in named})
    leaves, in_tree = tree_flatten((args, named), is_leaf=is_sparse)
    check_values([x for x in leaves if not is_sparse(x)])
    out_tree: Any = None

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree
        given, keywords = tree_unflatten(in_tree, xs)
        outs, out_tree = tree_flatten(f(*given, **keywords), is_leaf=is_sparse)
        check_values(outs)
        return outs

    closed = trace_to_jaxpr(flat, [_aval(x) for x in leaves], DebugInfo("sparsify", name_of(f)))
    outs = eval_sparse(closed.jaxpr, closed.consts, leaves)
    return tree_unflatten(out_tree, [
        x if is_sparse(x) or isinstance(x, Tracer) else jnp.asarray(x) for x in map(whole, outs)])


def eval_sparse(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[ArrayOrSparse]
                ) -> list[ArrayOrSparse]:
    """The results of a program, of whose arguments some are sparse."""
    return walk(jaxpr, consts, args, lambda eqn, operands: _apply(
        eqn.primitive, operands, eqn.params, eqn))


def _apply(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any],
           eqn: JaxprEqn | None = None) -> list[Any]:
    """The results of an operation."""
    sparse = any(map(is_sparse, operands))
    if primitive is lax.broadcast_in_dim_p and not sparse and \
            math.prod(params["shape"]) > math.prod(jnp.shape(whole(operands[0]))):
        return [Stretched(whole(operands[0]), params)]
    if not (sparse and primitive in TAKES_STRETCHED):
        operands = list(map(whole, operands))
    if not sparse:
        return bind_all(primitive, operands, params)
    if primitive in RULES:
        return [RULES[primitive](primitive, operands, params)]
    closed = program_of(primitive, params)
    holder = primitive.holder
    if holder.held is not None and holder.within is None and not primitive.own_rules:
        return _held(primitive, operands, params)
    if closed is None:
        refuse(primitive)
    return _run(closed, operands)


# -- use_tracer ------------------------------------------------------------------------------------


class SparseTracer(Tracer):
    """A sparse array as a function sees it.

    Args:
      trace: the interpreter.
      spvalue: the sparse array.
    """

    __slots__ = ("spvalue",)

    def __init__(self, trace: SparseTrace, *, spvalue: Any) -> None:
        self._trace = trace
        self.aval = _aval(spvalue)
        self.spvalue = spvalue

    spenv: Field[Any] = of_field("spvalue", "What holds the buffers: the sparse array itself.")

    def __repr__(self) -> str:
        return f"SparseTracer<{self.aval.str_short()}>"


class SparseTrace(Trace):
    """Runs operations on sparse arrays."""

    __slots__ = ()

    def value(self, x: Any) -> Any:
        """The sparse array that a tracer stands for; any other value as it is."""
        if type(x) is SparseTracer and x._trace is self:
            return x.spvalue
        self.check_outer(x)
        return x

    def join(self, x: Any) -> Any:
        return SparseTracer(self, spvalue=x) if is_sparse(x) else x

    def process(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                ) -> Any:
        if not self.alive:
            self.check_alive(operands)
        if may_close_over_values(primitive, params):
            return params["call_jaxpr"](*operands)
        outs = [self.join(x) for x in _apply(primitive, list(map(self.value, operands)), params)]
        return outs if primitive.multiple_results else outs[0]


def _run_on_tracers(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, in_tree = tree_flatten((args, kwargs), is_leaf=is_sparse)
    check_values([x for x in leaves if not is_sparse(x)])
    trace = SparseTrace()
    with new_level(trace):
        given, keywords = tree_unflatten(in_tree, list(map(trace.join, leaves)))
        outs, out_tree = tree_flatten(f(*given, **keywords), is_leaf=is_sparse)
        check_values([x for x in outs if not is_sparse(x)])
        outs = [trace.value(x) for x in outs]
    return tree_unflatten(out_tree, outs)


# -- programs in programs --------------------------------------------------------------------------


def _run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    return eval_sparse(closed.jaxpr, closed.consts, args)


def _flags(x: Any) -> tuple[bool, bool] | None:
    return (x.indices_sorted, x.unique_indices) if is_sparse(x) else None


def _with_flags(x: Any, flags: Sequence[tuple[bool, bool] | None]) -> Any:
    """A sparse array for which holds what holds in all cases."""
    if not is_sparse(x) or None in flags:
        return x
    children, aux = x.tree_flatten()
    aux = {**aux, "indices_sorted": all([f[0] for f in flags if f]),
           "unique_indices": all([f[1] for f in flags if f])}
    return x.tree_unflatten(aux, children)


def _held(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """What holds programs, on the buffers of sparse arrays, which have the roles of these. Of the
    indices of a carry is known what is before every run."""
    holder, held = primitive.holder, primitive.holder.held(params)
    head, given = operands[:held.head], list(operands[held.head:])
    first, n, behind = held.first, held.carry, held.first + held.carry
    for condition in holder.conditions(params):
        tested = selected([*head, *given[first:]], live_inputs(condition, (True,)))
        if any(map(is_sparse, [*head, *tested])):
            return eval_sparse(holder.asked_first(params).jaxpr, (), operands)
    if any(map(is_sparse, head)):
        raise NotImplementedError(f"sparse rule for {primitive} with a sparse predicate.")
    inside = [x if is_sparse(x) else a
              for x, a in zip(given, held.programs[0].in_avals, strict=True)]
    if holder.loops:
        given[behind:] = [_with_all_batches(x) if is_sparse(x) else x for x in given[behind:]]
        inside[behind:] = [_row(x) if is_sparse(x) else a
                           for x, a in zip(given[behind:], inside[behind:], strict=True)]
    while True:
        leaves, tree = tree_flatten(inside)
        made = [_sparsified(p, tree, tuple(map(_type, leaves))) for p in held.programs]
        outs = [tree_unflatten(out_tree, program.out_avals) for program, out_tree in made]
        if n:
            outs.append([*inside[first:behind], *outs[0][n:]])
        if len({tuple(map(_kind, each)) for each in outs}) > 1:
            what = "body_fun output and input" if n else "true_fun and false_fun output"
            raise TypeError(f"sparsified {what} must have same type structure, got {outs}.")
        common = [_with_flags(each[0], list(map(_flags, each))) for each in zip(*outs, strict=True)]
        if list(map(_flags, common[:n])) == list(map(_flags, inside[first:behind])):
            break
        inside[first:behind] = common[:n]
    results = holder.bind(
        [program for program, _ in made], [*head, *tree_flatten(given)[0]], params,
        _roles(holder, held.ins, given, first, behind), _roles(holder, held.outs, common, 0, n))
    found = tree_unflatten(tree_flatten(common)[1], results)
    return [*found[:n], *[
        y.whole_batch(lambda _size, rows, _axis: rows, holder.times(params), 0)
        if holder.loops and is_sparse(y) else y for y in found[n:]]]


def _roles(holder: Any, roles: Sequence[Any], values: Sequence[Any], first: int, behind: int
           ) -> list[Any]:
    """The roles of the buffers of values with these roles; a component of the carry is one of the
    first such, and what goes along with it."""
    found: list[Any] = []
    for i, (role, x) in enumerate(zip(roles, values, strict=True)):
        more = len(tree_leaves(x)) - 1
        found += [role, *[holder.carried if first <= i < behind else role] * more]
    return found


def _type(x: Any) -> Any:
    return x if isinstance(x, AbstractValue) else get_aval(x)


def _kind(x: Any) -> Any:
    """What values have in common that may stand for each other."""
    avals = tuple([(a.shape, a.dtype) for a in map(_type, tree_leaves(x))])
    return type(x) if is_sparse(x) else None, avals


@derived
def _sparsified(closed: ClosedJaxpr, tree: PyTreeDef, avals: tuple[Any, ...]
                ) -> tuple[ClosedJaxpr, Any]:
    """The program on the buffers of arguments of the structure `tree`."""
    out_tree: Any = None

    def flat(*leaves: Any) -> list[Any]:
        nonlocal out_tree
        outs, out_tree = tree_flatten(_run(closed, tree_unflatten(tree, leaves)))
        return outs

    program = trace_to_jaxpr(flat, avals, closed.debug_info)
    return program, out_tree


def _with_all_batches(mat: Any) -> Any:
    """The array with each buffer of its own for each batch."""
    if not mat.n_batch:
        raise NotImplementedError("sparse rule for scan with x values.")
    children, aux = mat.tree_flatten()
    return mat.tree_unflatten(aux, [stretched(x, mat.shape[:1]) for x in children])


def _row(full: Any) -> Any:
    """One row of a sparse array that is scanned over, of types in place of buffers."""
    return full.one_of_batch(lambda buffer, _axis: without_dim(_type(buffer), 0), 0)
