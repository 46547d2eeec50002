"""Symbolic shapes from their text, for arrays and for the arguments of a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.symbolic.expressions import DimExpr
from pyjx.core.symbolic.parser import Parser
from pyjx.core.symbolic.scopes import SymbolicScope
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.tree_util import tree_flatten, tree_flatten_with_path, tree_unflatten


def symbolic_shape(shape_spec: str | None, *, constraints: Sequence[str] = (),
                   scope: SymbolicScope | None = None, like: Sequence[Any] | None = None
                   ) -> tuple[Any, ...]:
    """The shape that a text stands for, such as `"b, 2*b + 1, ..."`.

    Names are dimension variables, which stand for ints >= 1. Dimensions are made of them and of
    integers by `+`, `-`, `*`, `//`, `%`, `^`, `floordiv`, `mod`, `max` and `min`. `_` stands for
    the dimension of `like` in its place, `...` for all that follow.

    Args:
      shape_spec: the text; None for `...`.
      constraints: comparisons of dimensions by `==`, `>=` or `<=`, which are taken to hold, and
        checked where the program is called.
      scope: the scope of the variables, which has constraints of its own; by default a new one.
        Dimensions of two scopes cannot be mixed.
      like: the shape that placeholders stand for.

    Raises:
      ValueError: the text cannot be read, or a constraint is never true.

    >>> from pyjx import export
    >>> export.symbolic_shape("b, _, 2*b + 1", like=(2, 3, 5))
    (b, 3, 2*b + 1)
    >>> a, b = export.symbolic_shape("a, b", constraints=["a >= b"])
    >>> a >= b
    True
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("symbolic_shape: Cannot specify both a `scope` and `constraints`. Give "
                         "the constraints to the scope.")
    text = "..." if shape_spec is None else shape_spec
    if not isinstance(text, str):
        raise ValueError(f"polymorphic shape spec should be None or a string. Found {text!r}.")
    return Parser(scope, text, like).shape()


def symbolic_args_specs(args: Any, shapes_specs: Any, constraints: Sequence[str] = (),
                        scope: SymbolicScope | None = None) -> Any:
    """`args` with symbolic shapes: a pytree of `ShapeDtypeStruct`.

    Args:
      args: a pytree of arrays, or of what has a shape and a dtype.
      shapes_specs: texts as for `symbolic_shape`, or None for the shape as it is; a prefix of the
        tree `args`, or one text for all. For a tuple of arguments it may be a list.
      constraints, scope: as for `symbolic_shape`.

    >>> import numpy as np
    >>> from pyjx import export
    >>> export.symbolic_args_specs([np.ones((3, 4)), np.ones(4)], ["b, ...", None])[0].shape
    (b, 4)
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("symbolic_args_specs: constraints belong to the scope, and cannot be "
                         "given together with `scope`.")
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    leaves, tree = tree_flatten(args)
    specs = _spread(shapes_specs, args)
    structs = []
    for x, spec in zip(leaves, specs, strict=True):
        shape = x.shape if hasattr(x, "shape") else get_aval(x).shape
        dtype = x.dtype if hasattr(x, "dtype") else get_aval(x).dtype
        structs.append(ShapeDtypeStruct(
            symbolic_shape(spec, scope=scope, like=shape), dtype,
            weak_type=getattr(x, "weak_type", False)))
    return tree_unflatten(tree, structs)


def _spread(specs: Any, args: Any) -> list[str | None]:
    """A text for each leaf of `args`, of whose tree `specs` is a prefix."""
    if specs is None or isinstance(specs, str):
        return [specs] * len(tree_flatten(args)[0])
    prefix, tree = tree_flatten(specs, is_leaf=lambda s: s is None or isinstance(s, str))
    try:
        parts = tree.flatten_up_to(args)
    except (TypeError, ValueError) as error:
        paths = tree_flatten_with_path(args)[0]
        raise ValueError("symbolic_args_specs: shapes_specs is no prefix of the tree of args, "
                         f"which has {len(paths)} leaves: {error}") from None
    return [s for s, part in zip(prefix, parts, strict=True)
            for _ in tree_flatten(part)[0]]


def symbolic_dim_bounds(dimension: Any) -> tuple[int | None, int | None]:
    """Between which ints a dimension lies: `(lower, upper)`, None where there is no bound known.

    >>> from pyjx import export
    >>> export.symbolic_dim_bounds(export.symbolic_shape("2*n + 1")[0])
    (3, None)
    """
    if not isinstance(dimension, DimExpr):
        return int(dimension), int(dimension)
    low, high = dimension.scope.bounds(dimension)
    return (None if low == -float("inf") else int(low),
            None if high == float("inf") else int(high))


