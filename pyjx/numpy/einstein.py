"""Einstein summation.

A call becomes a list of steps on a list of operands: sums, squeezes, transposes and pairwise
contractions, each contraction one `dot_general`. The list depends on the subscripts and the shapes
only and is kept by them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import SymbolicDim, get_aval
from pyjx.core.bounded import kept
from pyjx.core.explicit import abstract_sharding
from pyjx.core.layouts import ShardingLike
from pyjx.lax.contractions import (
    PrecisionLike,
    canonicalize_precision,
    product_entries,
    takes_real_part,
)
from pyjx.lazy import deferred
from pyjx.numpy.operands import numpy_function
from pyjx.numpy.promotion import convert, no_out
from pyjx.numpy.promotion import operands as as_operands
from pyjx.runtime.jit import jit
from pyjx.runtime.operations import body_of
from pyjx.runtime.resharding import in_auto_mode, reshard

opt_einsum = deferred("opt_einsum")  # for contractions of three operands and more

Shapes = tuple[tuple[int, ...], ...]
Step = tuple[Any, ...]  # the name of the step, the operand it changes, what to do

_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


# -- subscripts ------------------------------------------------------------------------------------


def _interleaved(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts and operands of the form `einsum(x, [0, 1], y, [1, 2], [0, 2])`."""
    if any([isinstance(x, str) for x in args]):
        raise TypeError("einsum: the subscripts come first, as in einsum('ij,jk->ik', x, y).")
    output = args[-1] if len(args) % 2 else None
    arrays, lists = args[:len(args) // 2 * 2:2], args[1:len(args) // 2 * 2:2]
    try:
        labels = sorted({i for part in (*lists, output or ()) for i in part if i is not Ellipsis})
    except TypeError as error:
        raise ValueError("einsum: subscripts are a string, or follow each operand as a list of "
                         f"integers. For this input type lists must contain Ellipsis or hashable "
                         f"and comparable objects: {error}") from None
    name = {label: _letters[k] for k, label in enumerate(labels)}
    name[Ellipsis] = "..."
    terms = ",".join(["".join([name[i] for i in part]) for part in lists])
    if output is not None:
        terms += "->" + "".join([name[i] for i in output])
    return terms, arrays


def parse(subscripts: str, shapes: Shapes) -> tuple[list[str], str]:
    """The subscripts of each operand and of the result, one letter an axis.

    Raises:
      ValueError: the subscripts do not fit the operands.

    >>> parse("...j,jk", ((2, 3), (3, 4)))
    (['Zj', 'jk'], 'Zk')
    """
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f"Number of einsum subscripts, {len(terms)}, must be equal to the number "
                         f"of operands, {len(shapes)}.")
    free = [c for c in reversed(_letters) if c not in subscripts]
    dots = ""
    if "..." in inputs:
        extra = [len(s) - len(t.replace("...", "")) if "..." in t else 0
                 for t, s in zip(terms, shapes, strict=True)]
        dots = "".join(free[:max(0, *extra)])[::-1]
        terms = [t.replace("...", dots[len(dots) - max(n, 0):])
                 for t, n in zip(terms, extra, strict=True)]
    if not arrow:
        flat = "".join(terms)
        output = dots + "".join(sorted({c for c in flat if flat.count(c) == 1 and c not in dots}))
    output = output.replace("...", dots)
    for k, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        if len(term) != len(shape):
            raise ValueError(f"Einstein sum subscript '{term}' does not contain the correct number "
                             f"of indices for operand {k}.")
    for c in output:
        if output.count(c) > 1:
            raise ValueError(f"Output character '{c}' appeared more than once in the output.")
        if c not in "".join(terms):
            raise ValueError(f"Output character '{c}' did not appear in the input")
    return terms, output


def _sizes(terms: list[str], shapes: Shapes, subscripts: str) -> dict[str, int]:
    """The size of each letter; 1 gives way to others. Messages have the `subscripts` as given."""
    sizes: dict[str, int] = {}
    for k, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        for c, n in zip(term, shape, strict=True):
            known = sizes.get(c, 1)
            if known not in (1, n) and n != 1:
                first = next(i for i in range(k + 1) if known in [
                    m for d, m in zip(terms[i], shapes[i], strict=True) if d == c])
                given = subscripts.replace(" ", "").partition("->")[0].split(",")
                label = c if c in subscripts else "..."
                raise ValueError(f"Size of label '{label}' for operand {k} ({n}) does not match "
                                 f"previous terms ({known}). Operand {first}, '{given[first]}' of "
                                 f"shape {shapes[first]}, has size {known} along '{label}', and "
                                 f"operand {k}, '{given[k]}' of shape {shape}, has {n}.")
            sizes[c] = known if n == 1 else n
    return sizes


# -- the plan --------------------------------------------------------------------------------------


class _Planner:
    """Writes the steps, and tracks what each operand's axes are."""

    def __init__(self, terms: list[str], shapes: Shapes) -> None:
        self.terms = list(terms)
        self.shapes = list(shapes)
        self.steps: list[Step] = []

    def diagonals(self, k: int) -> None:
        """Letters that an operand has twice: take the diagonal."""
        term = self.terms[k]
        for c in dict.fromkeys(term):
            axes = tuple([i for i, d in enumerate(self.terms[k]) if d == c])
            if len(axes) > 1:
                self.steps.append(("diagonal", k, axes))
                self._drop(k, axes[:-1])

    def drop_ones(self, k: int, sizes: dict[str, int]) -> None:
        """Axes of size 1 of letters that have another size elsewhere."""
        axes = tuple([i for i, c in enumerate(self.terms[k])
                      if self.shapes[k][i] == 1 and sizes[c] != 1])
        if axes:
            self.steps.append(("squeeze", k, axes))
            self._drop(k, axes)

    def sum_out(self, k: int, keep: str) -> None:
        """Letters that nothing else has."""
        axes = tuple([i for i, c in enumerate(self.terms[k]) if c not in keep])
        if axes:
            self.steps.append(("sum", k, axes))
            self._drop(k, axes)

    def _drop(self, k: int, axes: tuple[int, ...]) -> None:
        kept = [i for i in range(len(self.terms[k])) if i not in axes]
        self.terms[k] = "".join([self.terms[k][i] for i in kept])
        self.shapes[k] = tuple([self.shapes[k][i] for i in kept])

    def order(self, k: int, wanted: str) -> None:
        term = self.terms[k]
        if term != wanted:
            self.steps.append(("transpose", k, tuple([term.index(c) for c in wanted])))
            self.shapes[k] = tuple([self.shapes[k][term.index(c)] for c in wanted])
            self.terms[k] = wanted

    def contract(self, i: int, j: int, output: str, final: bool) -> None:
        """Replace operands i < j by their product, which is put at the end."""
        rest = "".join([t for k, t in enumerate(self.terms) if k not in (i, j)]) + output
        self.sum_out(i, self.terms[j] + rest)
        self.sum_out(j, self.terms[i] + rest)
        a, b = self.terms[i], self.terms[j]
        summed = [c for c in a if c in b and c not in rest]
        batch = [c for c in a if c in b and c in rest]
        forward = _product_term(a, b, summed, batch)
        wanted = output if final else forward
        # The result whose last axis stays the last is the cheaper one to transpose.
        swap = forward != wanted and (
            forward[-1:] != wanted[-1:] or _product_term(b, a, summed, batch) == wanted)
        x, y = (b, a) if swap else (a, b)
        dims = ((tuple([x.index(c) for c in summed]), tuple([y.index(c) for c in summed])),
                (tuple([x.index(c) for c in batch]), tuple([y.index(c) for c in batch])))
        self.steps.append(("dot", (j, i) if swap else (i, j), dims))
        size = {**dict(zip(a, self.shapes[i], strict=True)),
                **dict(zip(b, self.shapes[j], strict=True))}
        for k in (j, i):
            del self.terms[k], self.shapes[k]
        self.terms.append(_product_term(x, y, summed, batch))
        self.shapes.append(tuple([size[c] for c in self.terms[-1]]))


def _product_term(a: str, b: str, summed: list[str], batch: list[str]) -> str:
    """The letters of a dot_general's result."""
    used = {*summed, *batch}
    return "".join([*batch, *[c for c in a if c not in used], *[c for c in b if c not in used]])


def _path(terms: list[str], output: str, shapes: Shapes, optimize: Any) -> list[tuple[int, ...]]:
    """In which order to contract: positions among the operands, products are put at the end."""
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    if isinstance(optimize, (tuple, list)) and optimize and not isinstance(optimize[0], str):
        return [tuple(p) for p in optimize]
    if optimize is False:
        return [(0, 1)] * (len(terms) - 1)
    return _searched_path(terms, output, shapes, optimize)[0]


def _searched_path(terms: list[str], output: str, shapes: Shapes, optimize: Any
                   ) -> tuple[list[tuple[int, ...]], Any]:
    """The path that opt_einsum finds, and its description."""
    how = "auto" if optimize is True else optimize
    # Any order is right: one that is good for eight stands for sizes that are not known.
    sizes = [tuple([8 if isinstance(d, SymbolicDim) else d for d in s]) for s in shapes]
    path, info = opt_einsum.contract_path(",".join(terms) + "->" + output, *sizes, shapes=True,
                                          optimize=how)
    return [tuple(p) for p in path], info


@kept(4096, "plans of einsum")
def _plan(subscripts: str, shapes: Shapes, optimize: Any) -> list[Step]:
    terms, output = parse(subscripts, shapes)
    sizes = _sizes(terms, shapes, subscripts)
    plan = _Planner(terms, shapes)
    for k in range(len(terms)):
        plan.drop_ones(k, sizes)
        plan.diagonals(k)
    for group in _path(terms, output, shapes, optimize):
        positions = sorted(group)
        while len(positions) > 1:  # a step of several operands is done pair by pair
            i, j, *others = positions
            plan.contract(i, j, output, len(plan.terms) == 2)
            positions = [k - 2 for k in others] + [len(plan.terms) - 1] if others else []
    while len(plan.terms) > 1:
        plan.contract(0, 1, output, len(plan.terms) == 2)
    plan.sum_out(0, output)
    plan.order(0, output)
    return plan.steps


# -- running it ------------------------------------------------------------------------------------


def _diagonal(x: ArrayLike, axes: tuple[int, ...]) -> Any:
    """The diagonal of several axes, along the last of them."""
    shape = get_aval(x).shape
    dtype = np.dtype(np.uint32)
    for axis in axes[:-1]:
        same = lax.eq(lax.broadcasted_iota(dtype, shape, axis),
                      lax.broadcasted_iota(dtype, shape, axes[-1]))
        x = lax.select(same, x, lax.full(shape, 0, get_aval(x).dtype))
    fold = lax.reduce_or if get_aval(x).dtype == np.bool_ else lax.reduce_sum
    return fold(x, axes[:-1])


def _summed(x: ArrayLike, axes: tuple[int, ...], dtype: DTypeLike) -> Any:
    """The sum: of integers in `dtype` where that is one of integers, of halves in float32."""
    own = get_aval(x).dtype
    whole = own in dtypes.integer_dtypes and dtype in dtypes.integer_dtypes
    return body_of(jnp.sum)(x, axes, dtype=dtype if whole or own == np.bool_ else None)


def _run(steps: list[Step], values: list[Any], dot: Callable[..., Any], dtype: DTypeLike) -> Any:
    for step in steps:
        kind, k, what = step
        if kind == "dot":
            i, j = k
            out = dot(values[i], values[j], what)
            for position in sorted(k, reverse=True):
                del values[position]
            values.append(out)
        elif kind == "sum":
            values[k] = _summed(values[k], what, dtype)
        elif kind == "transpose":
            values[k] = lax.transpose(values[k], what)
        elif kind == "squeeze":
            values[k] = lax.squeeze(values[k], what)
        else:
            values[k] = _diagonal(values[k], what)
    return values[0]


def _einsum_of(operands: tuple[Any, ...], subscripts: str, optimize: Any, precision: Any,
               preferred_element_type: DTypeLike | None, dot_general: Any = None) -> Any:
    if len(operands) == 1 and type(operands[0]) in (list, tuple) and "," in subscripts:
        raise TypeError("einsum: give the operands one by one, as in einsum('ij,jk->ik', x, y).")
    values = as_operands("einsum", *operands)
    if preferred_element_type is None:
        dtype, weak = dtypes.result_type(*values, return_weak_type_flag=True)
        if dtype == np.complex64:
            # An operand of complex128 that is weak does not widen the result, but `dot_general`
            # refuses complex products narrower than what is multiplied.
            values = [convert(x, dtype) if get_aval(x).dtype == np.complex128 else x
                      for x in values]
    else:
        dtype = dtypes.check_and_canonicalize_user_dtype(preferred_element_type, "einsum")
        weak = False
        if takes_real_part(dtype, *[get_aval(x).dtype for x in values]):
            common = dtypes.to_complex_dtype(dtype)
            out = _einsum_of(tuple([convert(x, common) for x in values]), subscripts, optimize,
                             precision, None, dot_general)
            return convert(lax.real(out), dtype)
    steps = _plan(subscripts, tuple([get_aval(x).shape for x in values]), _hashable(optimize))
    if dot_general is None:
        precision = canonicalize_precision(precision)

        def dot(x: ArrayLike, y: ArrayLike, dims: Any) -> Any:
            return lax.dot_general_p.bind(x, y, dimension_numbers=dims, precision=precision,
                                          preferred_element_type=dtype, out_sharding=None)
    else:
        def dot(x: ArrayLike, y: ArrayLike, dims: Any) -> Any:
            return dot_general(x, y, dims, precision=precision, preferred_element_type=dtype)

    return convert(_run(steps, values, dot, dtype), dtype, weak)


_compiled_einsum = numpy_function(
    _einsum_of, static_argnames=("subscripts", "optimize", "precision", "preferred_element_type"))


def einsum(subscripts: Any, /, *operands: Any, out: None = None, optimize: Any = "auto",
           precision: Any = None, preferred_element_type: Any = None, _dot_general: Any = None,
           out_sharding: ShardingLike = None) -> Array:
    """Einstein summation: sums of products over named axes.

    Args:
      subscripts: a letter for each axis of each operand, and after "->" those of the result; a
        letter that is not among these is summed over. "..." stands for axes that are broadcast.
        Or operands and lists of labels in turn: `einsum(x, [0, 1], y, [1, 2], [0, 2])`.
      operands: arrays.
      optimize: in which order to contract three and more operands: a method of opt_einsum, such as
        "auto", "optimal" or "greedy", False (from left to right), or a path as `einsum_path` gives
        it.
      precision: what accelerators compute with: None, a `lax.Precision`, its name, or a pair.
      preferred_element_type: dtype to accumulate in and of the result.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.
      out: not supported, must be None.
      _dot_general: a function in the place of `lax.dot_general`.

    Returns:
      An array with an axis for each letter of the result, of the dtype to which the operands
      promote.

    Raises:
      ValueError: the subscripts do not fit the operands.

    >>> import pyjx as jax
    >>> jax.numpy.einsum("ij,j->i", jax.numpy.array([[1, 2], [3, 4]]), jax.numpy.ones(2)).tolist()
    [3.0, 7.0]

    A batch of matrix products, and the trace of each:

    >>> x = jax.numpy.ones((5, 2, 3))
    >>> jax.numpy.einsum("bij,bjk->bik", x, x.mT).shape, jax.numpy.einsum("bii->b", x @ x.mT).shape
    ((5, 2, 2), (5,))
    """
    no_out("einsum", out)
    text, arrays = (subscripts, operands) if isinstance(subscripts, str) else \
        _interleaved((subscripts, *operands))
    if not arrays:
        raise ValueError(f"einsum: an operand is missing for each term of {text!r}, got none")
    if out_sharding is not None:
        is_open = getattr(getattr(out_sharding, "spec", out_sharding), "unreduced", None)
        run = _placed_einsum if not is_open else _open_product if len(arrays) == 2 else _open_einsum
        return run(arrays, text, _hashable(optimize), precision, preferred_element_type,
                   _dot_general, out_sharding)
    if _dot_general is not None:
        return _einsum_of(arrays, text, optimize, precision, preferred_element_type, _dot_general)
    return _compiled_einsum(arrays, text, optimize, precision, preferred_element_type)


def _hashable(optimize: Any) -> Any:
    return tuple(map(_hashable, optimize)) if isinstance(optimize, (list, tuple)) else optimize


def _placed_einsum(operands: tuple[Any, ...], subscripts: str, optimize: Any,
                   precision: PrecisionLike, preferred_element_type: DTypeLike, dot_general: Any,
                   out_sharding: ShardingLike) -> Any:
    run = in_auto_mode(partial(einsum, optimize=optimize, precision=precision,
                               preferred_element_type=preferred_element_type,
                               _dot_general=dot_general), out_sharding, "einsum")
    return run(subscripts, *operands)


_open_einsum = jit(_placed_einsum, static_argnums=(1, 2, 3, 4, 5, 6))


@partial(jit, static_argnums=(1, 2, 3, 4, 5, 6))
def _open_product(operands: tuple[Any, ...], subscripts: str, optimize: Any,
                  precision: PrecisionLike, preferred_element_type: np.dtype[Any], dot_general: Any,
                  out_sharding: ShardingLike) -> Any:
    """The product of two operands whose sum over devices is left open."""
    wanted = abstract_sharding(out_sharding, "einsum")

    def dot(x: ArrayLike, y: ArrayLike, dims: Any, **params: Any) -> Any:
        lhs, rhs = get_aval(x), get_aval(y)
        entries = product_entries(lhs, rhs, dims)
        open_sharding = wanted.update(spec=wanted.spec.update(
            partitions=[None if e in wanted.spec.unreduced else e for e in entries]))
        return (dot_general or lax.dot_general)(x, y, dims, out_sharding=open_sharding, **params)

    out = _einsum_of(operands, subscripts, optimize, precision, preferred_element_type, dot)
    return reshard(out, wanted)


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto"
                ) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` contracts, and a description of it.

    Returns:
      (path, info): the path lists the positions of the operands of each contraction; a product is
      put behind the operands that are left. `info` prints as a table of the contractions.

    >>> import pyjx as jax
    >>> x = jax.numpy.ones((2, 2))
    >>> jax.numpy.einsum_path("ij,jk,kl->il", x, x, x)[0]
    [(0, 1), (0, 1)]
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _interleaved((subscripts, *operands))
    shapes = tuple([np.shape(x) if not hasattr(x, "shape") else tuple(x.shape) for x in operands])
    terms, output = parse(subscripts, shapes)
    return _searched_path(terms, output, shapes, optimize)
