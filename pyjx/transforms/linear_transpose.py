"""Transposition for users: `linear_transpose`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.open_sums import cotangent_aval, same_over_mesh
from pyjx.core.trace import new_level
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.functions import FlatFun, check_values, flatten, source_of
from pyjx.engine.linearize import LinearProgram, LinearTrace
from pyjx.engine.tangents import as_given
from pyjx.transforms.arguments import check_callable
from pyjx.transforms.linear_form import LinearForm
from pyjx.tree_util import Partial


@api_boundary
def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()
                     ) -> Callable[..., Any]:
    """The transpose of a function that is known to be linear.

    Args:
      fun: a linear function; arguments and results are pytrees of arrays.
      *primals: arrays, or anything with `shape` and `dtype`, such as `ShapeDtypeStruct`; only the
        types matter.

    Returns:
      A function from a cotangent, of the structure and types of the output of `fun`, to the tuple
      of cotangents of the arguments: a `tree_util.Partial`, whose leaves are the arrays that it
      keeps, so it may be passed to and returned from transformed functions.

    Raises:
      TypeError: the dtypes are neither all inexact nor all integers, the cotangent is not of the
        type of the output, or `fun` is not linear.
      NotImplementedError: `fun` uses an operation that is linear in no operand.

    >>> import pyjx as jax
    >>> f_transposed = jax.linear_transpose(lambda x: 2.0 * x, 1.0)
    >>> [float(ct) for ct in f_transposed(3.0)]
    [6.0]
    """
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to transpose is deprecated")
    check_callable(fun)
    leaves, in_tree = flatten(primals)
    in_avals = [_aval_of_type(x) for x in leaves]
    flat = FlatFun(fun, in_tree)
    trace = LinearTrace()
    with new_level(trace):
        args = [trace.new_arg(a) for a in in_avals]
        outs = flat(*args)
        out_avals = [get_aval(x) for x in outs]
        program = LinearProgram([a._var for a in args], trace.eqns, [trace.unwrap(x) for x in outs])
    _check_linear_dtypes([a.dtype for a in in_avals], [a.dtype for a in out_avals])

    program = program.pruned()
    residuals = program.residuals()
    form = LinearForm(program.abstracted(residuals), in_tree, flat.out_tree, in_avals, out_avals,
                      source_of(fun))
    return Partial(_Transposed(form), residuals)


class _Transposed:
    """Cotangents of the arguments, of residuals and a cotangent of the output. Compared by form."""

    __slots__ = ("form",)

    def __init__(self, form: LinearForm) -> None:
        self.form = form

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Transposed) and self.form == other.form

    def __hash__(self) -> int:
        return hash(self.form)

    @api_boundary
    def __call__(self, residuals: Sequence[Any], out_cotangent: Any) -> Any:
        form = self.form
        cotangents, tree = flatten(out_cotangent)
        if tree != form.out_tree:
            raise TypeError("cotangent tree does not match function output, expected "
                            f"{form.out_tree} but got {tree}")
        if not all(map(_same_type, map(get_aval, cotangents), form.out_avals)):
            raise TypeError("cotangent type does not match function output, expected "
                            f"{tuple(form.out_avals)} but got {cotangents}")
        in_cts = form.program.filled(residuals).backward(cotangents)
        return form.in_tree.unflatten(as_given(in_cts, cotangents))

    def __repr__(self) -> str:
        return f"transpose of {self.form.name}"


def _same_type(found: Any, wanted: Any) -> bool:
    return (found.shape == wanted.shape and found.dtype == wanted.dtype
            and same_over_mesh(found, cotangent_aval(wanted)))


def _aval_of_type(x: Any) -> ShapedArray:
    """The aval of an array, or of what has only a shape and a dtype."""
    if type(x) is ShapedArray:
        return x
    try:
        return get_aval(x)
    except TypeError:
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            check_values([x])
        return ShapedArray(x.shape, x.dtype, bool(getattr(x, "weak_type", False)))


def _check_linear_dtypes(ins: list[Any], outs: list[Any]) -> None:
    every = [*ins, *outs]
    inexact = all(d in dtypes.floating_dtypes or d in dtypes.complex_dtypes or d == dtypes.float0
                  for d in every)
    if not inexact and not all(d in dtypes.integer_dtypes for d in every):
        raise TypeError(
            "linear_transpose only supports [float, complex, or float0] -> [float, complex, or "
            f"float0], and integer -> integer functions, but got {ins} -> {outs}."
        )
