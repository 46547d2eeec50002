"""Forward mode, linearization and transposition for users: `jvp`; `linearize` and the function that
it returns; `linear_transpose`.

The functions that `vjp` and `linearize` return are pytrees, whose leaves are the residuals: what
the linear program keeps from the forward pass. What remains, the program with holes for them, is
compared by structure, so that a jitted function that takes such a function as argument is traced
once for all functions of the same form.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, overload

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, cotangent_aval, get_aval
from pyjx.core.contents import params_key
from pyjx.core.jaxpr import Literal
from pyjx.core.name_stack import transform_name_stack
from pyjx.core.open_sums import same_over_mesh
from pyjx.core.prefixes import two_structures
from pyjx.core.records import Record
from pyjx.core.references import is_ref
from pyjx.core.scalars import is_scalar_constant, literal_types, scalar_of
from pyjx.core.trace import new_level
from pyjx.engine.forward import jvp_flat
from pyjx.engine.functions import FlatFun, check_values, flatten, source_of
from pyjx.engine.linearize import Hole, LinearProgram, LinearTrace, LinearVar
from pyjx.engine.primitives import cast
from pyjx.engine.tangents import Zero, as_given
from pyjx.engine.types import R, S, TreeDef
from pyjx.guards import guard
from pyjx.runtime.abstract import ShapeDtypeStruct, make_jaxpr
from pyjx.transforms.arguments import check_callable, linearized, wanted_inputs
from pyjx.tree_util import Partial, of_each_leaf, register_pytree_node, tree_leaves, tree_structure

# -- jvp -------------------------------------------------------------------------------------------


@overload
def jvp(fun: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any],
        has_aux: typing.Literal[False] = False) -> tuple[R, R]: ...


@overload
def jvp(fun: Callable[..., tuple[R, S]], primals: Sequence[Any], tangents: Sequence[Any],
        has_aux: typing.Literal[True]) -> tuple[R, R, S]: ...


@overload  # of a flag that is not known
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any],
        has_aux: bool = False) -> Any: ...


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any],
        has_aux: bool = False) -> Any:
    """The outputs of a function and its derivative along a direction, in one pass.

    For f at x it gives f(x) and J(x) v, where J is the Jacobian of f: the Jacobian-vector product.

    Args:
      fun: takes positional arguments; arguments and results are pytrees of arrays.
      primals: tuple or list of the arguments x.
      tangents: the direction v, of the same structure, shapes and dtypes as `primals`; for an
        integer or boolean primal an array of dtype `float0`.
      has_aux: `fun` returns a pair, whose second element is passed on undifferentiated.

    Returns:
      `(outputs, output tangents)`, and the auxiliary data as third element with `has_aux`.

    Raises:
      TypeError: structures or dtypes of primals and tangents do not match.
      ValueError: their shapes do not match.

    >>> import pyjx as jax
    >>> y, dy = jax.jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> float(y), float(dy)
    (9.0, 6.0)
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("primal and tangent arguments to jax.jvp must be tuples or lists; found "
                        f"{type(primals).__name__} and {type(tangents).__name__}. Each holds one "
                        "for each argument, as in jvp(fun, (x,), (t,)).")
    leaves, in_tree = flatten(primals)
    given, tangent_tree = flatten(tangents)
    if in_tree != tangent_tree:
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals "
            + two_structures("have tree structure {} whereas tangents have tree structure {}",
                             in_tree, tangent_tree) + ".")
    check_values(leaves)
    check_values(given)
    flat_tangents = of_each_leaf(_checked, "tangents", tangents, given, leaves)
    flat = FlatFun(fun, in_tree, has_aux)
    with transform_name_stack("jvp"):
        outs, out_tangents = jvp_flat(flat, leaves, flat_tangents, flat.aux)
    derivative = flat.out_tree.unflatten(as_given(out_tangents, given))
    return flat.with_derivative(outs, derivative)


def _checked(tangent: Any, primal: Any) -> Any:
    """The tangent, if it is one of `primal`."""
    aval = get_aval(primal)
    expected = aval.to_tangent_aval()
    found = get_aval(tangent) if getattr(tangent, "dtype", None) != dtypes.float0 else ShapedArray(
        tangent.shape, dtypes.float0)
    if expected.is_high or found.is_high:
        if found != expected:
            raise TypeError("primal and tangent arguments to jax.jvp do not match: a value of type "
                            f"{aval.str_short()} has tangents of type {expected.str_short()}, but "
                            f"got one of type {found.str_short()}")
        return tangent
    if found.dtype != expected.dtype:
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in "
            "case of int/bool primal dtype the tangent dtype must be float0. Got primal dtype "
            f"{getattr(aval, 'dtype', aval)} and so expected tangent dtype {expected.dtype}, but "
            f"got tangent dtype {found.dtype} instead." + (
                " An integer has no other: give the primal as a float."
                if expected.dtype == dtypes.float0 else ""))
    if found.shape != expected.shape:
        raise ValueError("jvp called with different primal and tangent shapes; Got primal shape "
                         f"{expected.shape} and tangent shape as {found.shape}")
    if expected.dtype == dtypes.float0:
        return Zero(expected)
    if found.weak_type == expected.weak_type:
        return tangent
    if is_scalar_constant(tangent):
        return scalar_of(expected, tangent)
    return cast(tangent, expected.dtype, expected.weak_type)


# -- linearize -------------------------------------------------------------------------------------


class LinearForm:
    """A linear program without its residuals, and the trees and avals of its ends.

    Equality is that of structure: the same operations, wired in the same way.
    """

    __slots__ = ("_key", "in_avals", "in_tree", "name", "out_avals", "out_tree", "program")

    def __init__(self, program: LinearProgram, in_tree: TreeDef, out_tree: TreeDef,
                 in_avals: Sequence[Any], out_avals: Sequence[Any], name: str) -> None:
        self.program = program
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.in_avals = in_avals
        self.out_avals = out_avals
        self.name = name
        self._key: Any = None

    @property
    def key(self) -> Any:
        if self._key is None:
            self._key = (self.in_tree, self.out_tree, tuple(self.in_avals),
                         tuple(self.out_avals), *_program_key(self.program))
        return self._key

    def __call__(self, residuals: Sequence[Any]) -> LinearProgram:
        """The program with its residuals."""
        return self.program.filled(residuals)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is LinearForm and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)


def _program_key(program: LinearProgram) -> tuple[Any, ...]:
    numbers: dict[LinearVar, int] = {}

    def number(x: Any) -> Any:
        if type(x) is LinearVar:
            return numbers.setdefault(x, len(numbers))
        if type(x) is Hole:
            return "hole", x.index
        if type(x) in literal_types:
            return Literal(x).key
        return x if x is None or type(x) is Zero else id(x)

    ins = tuple([number(v) for v in program.invars])
    eqns = []
    for eqn in program.eqns:
        primitive, operands, results, params, _ = eqn
        key = params_key(params) if params else ()
        eqns.append((primitive, tuple([number(x) for x in operands]),
                     id(eqn) if key is None else key,
                     tuple([(number(v), v.aval) for v in results])))
    return ins, tuple(eqns), tuple([number(x) for x in program.outs])


@overload
def linearize(fun: Callable[..., R], *primals: Any, has_aux: typing.Literal[False] = False,
              in_nzs: Any = None) -> tuple[R, Callable[..., R]]: ...


@overload
def linearize(fun: Callable[..., tuple[R, S]], *primals: Any, has_aux: typing.Literal[True],
              in_nzs: Any = None) -> tuple[R, Callable[..., R], S]: ...


@overload  # of a flag that is not known
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, in_nzs: Any = None
              ) -> Any: ...


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
    return flat.with_derivative(outs, f_jvp)


def _check_tangent(x: Any, aval: Any) -> None:
    expected = aval.to_tangent_aval()
    found = (ShapedArray(x.shape, x.dtype)
             if getattr(x, "dtype", None) == dtypes.float0 else get_aval(x))
    if not expected.describes(found) or (
            not expected.is_float0 and not same_over_mesh(found, expected)):
        raise ValueError("linearized function called on tangent values inconsistent with the "
                         f"original primal values:\nGot tangent aval {get_aval(x).str_short()} for "
                         f"primal aval {aval.str_short()} but expected "
                         f"{expected.str_short()}.{_cast_advice(found, expected)}")


@guard
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

    def __call__(self, *tangents: Any) -> Any:
        form = self._form
        leaves, tree = flatten(tangents)
        if tree != form.in_tree:
            raise TypeError(
                "linearized function: the tangents must have the structure of the primals, "
                + two_structures("expected {}, got {}", form.in_tree, tree)
                + ". Pass a tangent for each argument.")
        check_values([x for x in leaves if getattr(x, "dtype", None) != dtypes.float0],
                     "tangents")
        of_each_leaf(_check_tangent, "arguments", tangents, leaves, form.in_avals)
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


@guard
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
    given, wanted = found.place.mat.varying, expected.place.mat.varying
    lines = []
    for axes, what in ((wanted - given, "tangent value that it is called on"),
                       (given - wanted, "primal value passed to `jax.linearize`")):
        if axes:
            names = tuple(sorted(axes, key=str))
            lines.append(f"\nApply `jax.lax.pcast(..., {names}, to='varying')` to the {what}.")
    return "".join(lines)


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
    trace.placed = True  # messages name the line of what is not linear
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
    return Partial(_Transposed(form), residuals)  # type: ignore[arg-type]


@guard
class _Transposed(Record):
    """Cotangents of the arguments, of residuals and a cotangent of the output. Compared by form."""

    form: LinearForm

    def __call__(self, residuals: Sequence[Any], out_cotangent: Any) -> Any:
        form = self.form
        cotangents, tree = flatten(out_cotangent)
        if tree != form.out_tree:
            raise TypeError("cotangent tree does not match function output, "
                            + two_structures("expected {} but got {}", form.out_tree, tree))
        check_values(cotangents, "cotangents")
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
            f"float0], and integer -> integer functions, but got {ins} -> {outs}.")
