"""Gradients for users: `grad` and `value_and_grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NoReturn

from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import ShapedArray, get_aval, is_ref_type
from pyjx.core.scalars import scalar_of
from pyjx.engine.functions import FlatFun, check_values, flatten
from pyjx.engine.logs import logging
from pyjx.engine.tangents import Zero, materialized
from pyjx.engine.types import P, R, TreeDef
from pyjx.guards import guard
from pyjx.runtime.jit import jit
from pyjx.runtime.signature import leaf_names, parameters_of
from pyjx.transforms.arguments import (
    at_argnums,
    canonical_argnums,
    check_callable,
    is_inexact,
    linearized,
    require_argnums,
    wraps,
)

_GRAD_DOC = (
    "Gradient of {{fun}} with respect to positional argument(s) {argnums}. Takes the same "
    "arguments as {{fun}} but returns the gradient, which has the same shape as the arguments at "
    "positions {argnums}."
)
_VALUE_AND_GRAD_DOC = (
    "Value and gradient of {{fun}} with respect to positional argument(s) {argnums}. Takes the "
    "same arguments as {{fun}} but returns a two-element tuple where the first element is the "
    "value of {{fun}} and the second element is the gradient, which has the same shape as the "
    "arguments at positions {argnums}."
)


def grad(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
    memory_budget: str | float | None = None,
) -> Callable[P, Any]:
    """A function that computes the gradient of a scalar function.

    Args:
      fun: returns a scalar of a floating dtype, or a pair of one and auxiliary data with
        `has_aux`. The arguments at `argnums` are pytrees of arrays.
      argnums: position or positions of the arguments to differentiate by. Keyword arguments are
        constants.
      has_aux: `fun` returns a pair whose second element is passed on undifferentiated.
      holomorphic: `fun` is complex and complex differentiable; the result is its complex
        derivative. Without it the gradient by a complex argument z = x + iy of a real function f
        is df/dx - i df/dy.
      allow_int: integer and boolean arguments are allowed; their gradients have dtype float0.
      memory_budget: the function is jitted, within so much memory, as `jit` takes it. In a program
        around it this part is planned by itself.

    Returns:
      A function of the same arguments. It returns the gradient by the argument at `argnums`, or a
      tuple of gradients if that is a sequence, and with `has_aux` a pair of that and the auxiliary
      data.

    Raises:
      TypeError: the inputs or outputs are not of the dtypes above, the output is not a scalar, or
        there are too few positional arguments.

    >>> import pyjx as jax
    >>> float(jax.grad(lambda x: x * x)(3.0))
    6.0
    """
    value_and_grad_of = _value_and_grad(
        "grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes
    )
    if has_aux:
        def grad_f(*args: Any, **kwargs: Any) -> Any:
            (_, aux), g = value_and_grad_of(*args, **kwargs)
            return g, aux
    else:
        def grad_f(*args: Any, **kwargs: Any) -> Any:
            return value_and_grad_of(*args, **kwargs)[1]

    return _within(memory_budget, wraps(fun, grad_f, _GRAD_DOC.format(argnums=argnums)))


def value_and_grad(
    fun: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
    memory_budget: str | float | None = None,
) -> Callable[P, tuple[R, Any]]:
    """A function that computes both a scalar function and its gradient.

    Arguments and errors are those of `grad`.

    Returns:
      A function that returns `(value, gradient)`, or `((value, aux), gradient)` with `has_aux`.

    >>> import pyjx as jax
    >>> value, gradient = jax.value_and_grad(lambda x: x * x)(3.0)
    >>> float(value), float(gradient)
    (9.0, 6.0)
    """
    inner = _value_and_grad(
        "value_and_grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes
    )
    return _within(memory_budget,
                   wraps(fun, inner, _VALUE_AND_GRAD_DOC.format(argnums=argnums)))


def _within(memory_budget: str | float | None, fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function, jitted within so much memory if that is bounded."""
    return fun if memory_budget is None else jit(fun, memory_budget=memory_budget)


@guard
def _value_and_grad(
    name: str, fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool,
    holomorphic: bool, allow_int: bool, reduce_axes: Sequence[Any],
) -> Callable[..., Any]:
    if reduce_axes:
        raise NotImplementedError(f"reduce_axes argument to {name} is deprecated")
    check_callable(fun)
    numbers = canonical_argnums(name, argnums)

    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        require_argnums(numbers, len(args))
        f, dynamic = at_argnums(fun, numbers, args, kwargs)
        leaves, in_tree = flatten(dynamic)
        check_values(leaves)
        wanted = _differentiable(leaves, holomorphic, allow_int,
                                 lambda: _input_names(fun, numbers, args))
        flat = FlatFun(f, in_tree, has_aux, fun)
        outs, program = linearized(flat, leaves, wanted)
        aval = _scalar_aval(outs, flat.out_tree, holomorphic)
        with logging():
            cotangents = program.backward([scalar_of(aval, 1)])
        gradients = in_tree.unflatten([
            materialized(Zero.cotangent_of(get_aval(x)) if g is None else g)
            for g, x in zip(cotangents, leaves, strict=True)
        ])
        g = gradients[0] if isinstance(numbers, int) else gradients
        return flat.unflatten(outs), g

    return value_and_grad_f


def _differentiable(leaves: Sequence[Any], holomorphic: bool, allow_int: bool,
                    names: Callable[[], Sequence[str]]) -> list[bool] | None:
    """Which inputs of `grad` have a derivative; None stands for all. `names` are for errors.

    Raises:
      TypeError: one has not, and should.
    """
    all_wanted = True
    for i, x in enumerate(leaves):
        aval = get_aval(x)
        if is_ref_type(aval):
            raise TypeError(
                "grad cannot differentiate with respect to a Ref-typed argument, because the "
                "gradient for a ref must itself be accumulated into a ref. Instead, use `jax.vjp` "
                "and bind a gradient ref using the returned VJP function's `with_refs` method. "
                "(Ref arguments not selected by grad's argnums are fine: they are not "
                "differentiated.)")
        if aval.is_high:
            continue
        dtype = aval.dtype
        if dtype in dtypes.complex_dtypes:
            continue
        if holomorphic:
            raise TypeError("grad with holomorphic=True requires inputs with complex dtype, but "
                            f"got {dtypes.name(dtype)}.")
        if dtype not in dtypes.floating_dtypes:
            if not allow_int:
                raise_not_inexact("grad", dtype, _integer_input(names()[i], x))
            all_wanted = False
    return None if all_wanted else [is_inexact(x) for x in leaves]


def _input_names(fun: Callable[..., Any], numbers: int | tuple[int, ...], args: Sequence[Any]
                 ) -> list[str]:
    """A name such as `params['w']` for each leaf of the arguments that are differentiated."""
    chosen = [i % len(args) for i in ((numbers,) if isinstance(numbers, int) else numbers)]
    # the others may be what is no pytree
    given = tuple([x if i in chosen else 0 for i, x in enumerate(args)])
    tree = flatten((given, {}))[1]
    left = iter(leaf_names(parameters_of(fun), tree, ()))
    own = [list(islice(left, child.num_leaves)) for child in tree.children()[0].children()]
    return [name for i in chosen for name in own[i]]


def _integer_input(name: str, x: Any) -> str:
    if isinstance(x, int):
        return f" The input is {name}, which is {x!r}: write {float(x)!r}."
    aval = get_aval(x)
    cure = "" if dtypes.is_extended(aval.dtype) else f": {name}.astype(float) has a gradient"
    return f" The input is {name}, of type {aval.str_short()}{cure}."


def raise_not_inexact(name: str, dtype: DTypeLike, which: str = "") -> NoReturn:
    """Say that `name` cannot differentiate by an input of this dtype; `which` tells more of it."""
    raise TypeError(
        f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
        f"np.inexact), but got {dtypes.name(dtype)}. If you want to use Boolean- or integer-valued "
        f"inputs, use vjp or set allow_int to True.{which}"
    )


def _scalar_aval(outs: Sequence[Any], out_tree: TreeDef, holomorphic: bool) -> ShapedArray:
    """The aval of the output of a function that `grad` may differentiate."""
    if out_tree.num_nodes != 1 or len(outs) != 1:
        raise TypeError("Gradient only defined for scalar-output functions. Output was "
                        f"{out_tree.unflatten(outs)}.{_cure(out_tree)}")
    aval = get_aval(outs[0])
    if aval.shape:
        cure = "reduce the output to a scalar with output.sum()"
        if aval.size == 1:
            cure = f"extract the scalar with output.reshape(()) or output[0], {cure}"
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. "
            f"To get the gradient, {cure}, or use jax.jacobian to differentiate a function with a "
            "non-scalar output."
        )
    check_output_dtype("grad", aval.dtype, holomorphic)
    return aval


def _cure(out_tree: TreeDef) -> str:
    if out_tree.node_data() is not None and out_tree.node_data()[0] is type(None):
        return " The function must return its value."
    if out_tree.node_data()[0] in (tuple, list) and len(out_tree.children()) == 2:
        return (" If the second element is auxiliary data and the first one the value to "
                "differentiate, use has_aux=True.")
    return " To differentiate several values, use jax.jacobian."


def check_output_dtype(name: str, dtype: DTypeLike, holomorphic: bool) -> None:
    """Raise TypeError unless reverse mode `name` may differentiate an output of this dtype."""
    if dtype in dtypes.complex_dtypes:
        if not holomorphic:
            raise TypeError(
                f"{name} requires real-valued outputs (output dtype that is a sub-dtype of "
                f"np.floating), but got {dtypes.name(dtype)}. For holomorphic differentiation, "
                "pass holomorphic=True. For differentiation of non-holomorphic functions involving "
                "complex outputs, use jax.vjp directly."
            )
    elif holomorphic:
        raise TypeError(f"{name} with holomorphic=True requires outputs with complex dtype, but "
                        f"got {dtypes.name(dtype)}.")
    elif dtype not in dtypes.floating_dtypes:
        raise TypeError(
            f"{name} requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {dtypes.name(dtype)}. For differentiation of functions with "
            "integer outputs, use jax.vjp directly."
        )
