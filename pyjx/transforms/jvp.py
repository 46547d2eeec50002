"""Forward mode for users: `jvp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.name_stack import transform_name_stack
from pyjx.core.scalars import is_scalar_constant, scalar_of
from pyjx.engine.forward import jvp_flat
from pyjx.engine.functions import FlatFun, check_values, flatten
from pyjx.engine.primitives import cast
from pyjx.engine.tangents import Zero, as_given
from pyjx.engine.types import R, S
from pyjx.transforms.arguments import check_callable


@overload
def jvp(fun: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any],
        has_aux: Literal[False] = False) -> tuple[R, R]: ...


@overload
def jvp(fun: Callable[..., tuple[R, S]], primals: Sequence[Any], tangents: Sequence[Any],
        has_aux: Literal[True]) -> tuple[R, R, S]: ...


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
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    leaves, in_tree = flatten(primals)
    given, tangent_tree = flatten(tangents)
    if in_tree != tangent_tree:
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals "
            f"have tree structure {in_tree} whereas tangents have tree structure {tangent_tree}."
        )
    check_values(leaves)
    check_values(given)
    flat_tangents = [_checked(p, t) for p, t in zip(leaves, given, strict=True)]
    flat = FlatFun(fun, in_tree, has_aux)
    with transform_name_stack("jvp"):
        outs, out_tangents = jvp_flat(flat, leaves, flat_tangents, flat.aux)
    derivative = flat.out_tree.unflatten(as_given(out_tangents, given))
    if has_aux:
        out, aux = flat.unflatten(outs)
        return out, derivative, aux
    return flat.unflatten(outs), derivative


def _checked(primal: Any, tangent: Any) -> Any:
    """The tangent, if it is one of `primal`."""
    aval = get_aval(primal)
    expected = aval.to_tangent_aval()
    found = get_aval(tangent) if getattr(tangent, "dtype", None) != dtypes.float0 else ShapedArray(
        tangent.shape, dtypes.float0)
    if expected.is_high or found.is_high:
        if found != expected:
            raise TypeError(
                "primal and tangent arguments to jax.jvp do not match: a value of type "
                f"{aval.str_short()} has tangents of type {expected.str_short()}, but got one of "
                f"type {found.str_short()}")
        return tangent
    if found.dtype != expected.dtype:
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in "
            "case of int/bool primal dtype the tangent dtype must be float0. Got primal dtype "
            f"{getattr(aval, 'dtype', aval)} and so expected tangent dtype {expected.dtype}, but "
            f"got tangent dtype {found.dtype} instead."
        )
    if found.shape != expected.shape:
        raise ValueError(
            "jvp called with different primal and tangent shapes; Got primal shape "
            f"{expected.shape} and tangent shape as {found.shape}"
        )
    if expected.dtype == dtypes.float0:
        return Zero(expected)
    if found.weak_type == expected.weak_type:
        return tangent
    if is_scalar_constant(tangent):
        return scalar_of(expected, tangent)
    return cast(tangent, expected.dtype, expected.weak_type)
