"""Linearization for users: `linearize`, and the function that it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, overload

from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.core.open_sums import same_over_mesh
from pyjx.core.references import is_ref
from pyjx.core.tracebacks import api_boundary
from pyjx.core.varying import varying_axes
from pyjx.engine.functions import FlatFun, check_values, flatten
from pyjx.engine.linearize import LinearProgram
from pyjx.engine.tangents import as_given
from pyjx.engine.types import R, S, TreeDef
from pyjx.runtime.abstract import ShapeDtypeStruct, make_jaxpr
from pyjx.transforms.arguments import check_callable, linearized, wanted_inputs
from pyjx.transforms.linear_form import LinearForm
from pyjx.tree_util import register_pytree_node, tree_leaves, tree_structure


@overload
def linearize(fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False,
              in_nzs: Any = None) -> tuple[R, Callable[..., R]]: ...


@overload
def linearize(fun: Callable[..., tuple[R, S]], *primals: Any, has_aux: Literal[True],
              in_nzs: Any = None) -> tuple[R, Callable[..., R], S]: ...


@overload  # of a flag that is not known
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, in_nzs: Any = None
              ) -> Any: ...


@api_boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, in_nzs: Any = None
              ) -> Any:
    """The outputs of a function, and its derivative there as a linear function.

    The second result computes the same as `jvp` at fixed primals. It does not compute the primal
    part again, but inside `while_loop` and `checkpoint`, which keep less in memory instead.

    Args:
      fun: takes positional arguments; arguments and results are pytrees of arrays.
      *primals: the point.
      has_aux: `fun` returns a pair, whose second element is passed on undifferentiated.
      in_nzs: a tree of bools, a prefix of `primals`: the arguments whose tangents are not zero;
        None for all.

    Returns:
      `(outputs, f_jvp)`, and the auxiliary data as third element with `has_aux`. `f_jvp` takes
      tangents of the structure, shapes and dtypes of `primals`; it is a pytree.

    Raises:
      TypeError: `fun` is not callable, or an argument or result is not an array.

    >>> import pyjx as jax
    >>> y, f_jvp = jax.linearize(lambda x: x * x, 3.0)
    >>> float(y), float(f_jvp(1.0))
    (9.0, 6.0)
    """
    check_callable(fun)
    leaves, in_tree = flatten(primals)
    check_values(leaves)
    flat = FlatFun(fun, in_tree, has_aux)
    outs, program = linearized(flat, leaves, wanted_inputs(leaves, primals, in_nzs))
    f_jvp = LinearizedFunction(program.pruned(), in_tree, flat.out_tree, leaves)
    if has_aux:
        out, aux = flat.unflatten(outs)
        return out, f_jvp, aux
    return flat.unflatten(outs), f_jvp


class LinearizedFunction:
    """The derivative of a function at a point: maps tangents of the arguments to output tangents.
    """

    __slots__ = ("_form", "_residuals")

    def __init__(self, program: LinearProgram, in_tree: TreeDef, out_tree: TreeDef,
                 primals: Sequence[Any]) -> None:
        self._residuals = program.residuals(primals)
        abstracted = program.abstracted(self._residuals)
        in_avals = [get_aval(x) for x in primals]
        self._form = LinearForm(abstracted, in_tree, out_tree, in_avals, (), "")

    @api_boundary
    def __call__(self, *tangents: Any) -> Any:
        form = self._form
        leaves, tree = flatten(tangents)
        if tree != form.in_tree:
            raise TypeError(
                "linearized function: the tangents must have the structure of the primals, "
                f"expected {form.in_tree}, got {tree}. Pass a tangent for each argument.")
        check_values([x for x in leaves if getattr(x, "dtype", None) != dtypes.float0])
        for x, aval in zip(leaves, form.in_avals, strict=True):
            expected = aval.to_tangent_aval()
            found = x if getattr(x, "dtype", None) == dtypes.float0 else get_aval(x)
            if found.shape != expected.shape or found.dtype != expected.dtype or (
                    expected.dtype != dtypes.float0 and not same_over_mesh(found, expected)):
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original "
                    f"primal values:\nGot tangent aval {get_aval(x).str_short()} for primal aval "
                    f"{aval.str_short()} but expected {expected.str_short()}."
                    f"{_cast_advice(found, expected)}"
                )
        refs = [x for x in leaves if is_ref(x)]
        outs = form.program.filled(self._residuals).forward(
            [x[...] if is_ref(x) else x for x in leaves])
        for ref, new in zip(refs[::-1], outs[::-1], strict=False):
            ref[...] = new
            outs.pop()
        return form.out_tree.unflatten(as_given(outs, leaves))

    @property
    def args(self) -> tuple[Any, ...]:
        """The values of the primal computation that the derivative reads."""
        return tuple(tree_leaves(self._residuals))

    @property
    def func(self) -> partial[Any]:
        """What gives output tangents of `args` and tangents; its first argument is the jaxpr, for
        which the program is traced again."""
        structs = [ShapeDtypeStruct(t.shape, t.dtype) for t in (
            a.to_tangent_aval() for a in self._form.in_avals)]
        closed = make_jaxpr(self)(*self._form.in_tree.unflatten(structs))
        return partial(_applied, closed, self._form, tree_structure(self._residuals))

    def __repr__(self) -> str:
        return f"LinearizedFunction({self._form.in_tree} -> {self._form.out_tree})"


def _applied(closed: Any, form: LinearForm, tree: TreeDef, *operands: Any) -> Any:
    """The output tangents, of residuals and tangents; `closed` is for who looks at the program."""
    n = tree.num_leaves
    residuals = tree.unflatten(operands[:n])
    return _unflatten_linearized(form, (residuals,))(*operands[n:])


def _unflatten_linearized(form: LinearForm, residuals: Any) -> LinearizedFunction:
    f = object.__new__(LinearizedFunction)
    f._form = form
    (f._residuals,) = residuals
    return f


register_pytree_node(LinearizedFunction, lambda f: ((f._residuals,), f._form),
                     _unflatten_linearized)


def _cast_advice(found: Any, expected: Any) -> str:
    """How a tangent and its primal value come to vary along the same axes of a mesh."""
    given, wanted = varying_axes(found), varying_axes(expected)
    lines = []
    for axes, what in ((wanted - given, "tangent value that it is called on"),
                       (given - wanted, "primal value passed to `jax.linearize`")):
        if axes:
            names = tuple(sorted(axes, key=str))
            lines.append(f"\nApply `jax.lax.pcast(..., {names}, to='varying')` to the {what}.")
    return "".join(lines)
