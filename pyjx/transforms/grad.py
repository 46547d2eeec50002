"""Reverse mode for users: `grad`, `value_and_grad`, `vjp`, `linearize`, `linear_transpose`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.scalars import scalar_of
from pyjx.core.trace import new_level
from pyjx.engine.linearize import LinearProgram, LinearTrace, linearize_flat
from pyjx.engine.tangents import Zero, materialized
from pyjx.transforms.arguments import (
    Argnums,
    at_argnums,
    canonical_argnums,
    check_callable,
    check_values,
    flatten,
    require_argnums,
    source_of,
    split_aux,
    wraps,
)
from pyjx.transforms.vjp_object import VJP, LinearizedFunction

# -- gradients -------------------------------------------------------------------------------------

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
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
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

    return wraps(fun, grad_f, _GRAD_DOC.format(argnums=argnums))


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False, allow_int: bool = False, reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
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
    return wraps(fun, inner, _VALUE_AND_GRAD_DOC.format(argnums=argnums))


def _value_and_grad(
    name: str, fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool,
    holomorphic: bool, allow_int: bool, reduce_axes: Sequence[Any],
) -> Callable[..., Any]:
    if reduce_axes:
        raise NotImplementedError(f"reduce_axes argument to {name} is deprecated")
    check_callable(fun)
    numbers = canonical_argnums(argnums)

    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        require_argnums(numbers, len(args))
        f, dynamic = at_argnums(fun, numbers, args, kwargs)
        leaves, in_tree = flatten(dynamic)
        check_values(leaves, ".")
        wanted = _differentiable(leaves, holomorphic, allow_int)
        value, program, extra = _linearized(f, leaves, in_tree, has_aux, wanted)
        out = value[0][0] if len(value[0]) == 1 else None
        aval = _scalar_aval(value, out, holomorphic)
        cotangents = program.backward([scalar_of(aval, 1)])
        gradients = in_tree.unflatten([
            materialized(_zero_at(x) if g is None else g)
            for g, x in zip(cotangents, leaves, strict=True)
        ])
        g = gradients[0] if isinstance(numbers, int) else gradients
        return ((out, extra), g) if has_aux else (out, g)

    return value_and_grad_f


def _zero_at(primal: Any) -> Zero:
    return Zero.of_primal(primal)


def _differentiable(leaves: Sequence[Any], holomorphic: bool, allow_int: bool
                    ) -> list[bool] | None:
    """Which inputs of `grad` have a derivative; None stands for all.

    Raises:
      TypeError: one has not, and should.
    """
    all_wanted = True
    for x in leaves:
        dtype = get_aval(x).dtype
        if dtype in dtypes.complex_dtypes:
            continue
        if holomorphic:
            raise TypeError("grad with holomorphic=True requires inputs with complex dtype, but "
                            f"got {dtypes.name(dtype)}.")
        if dtype not in dtypes.floating_dtypes:
            if not allow_int or dtypes.is_extended(dtype):
                raise_not_inexact("grad", dtype)
            all_wanted = False
    return None if all_wanted else [is_inexact(x) for x in leaves]


def raise_not_inexact(name: str, dtype: Any) -> NoReturn:
    """Say that `name` cannot differentiate by an input of this dtype."""
    raise TypeError(
        f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
        f"np.inexact), but got {dtypes.name(dtype)}. If you want to use Boolean- or integer-valued "
        "inputs, use vjp or set allow_int to True."
    )


def is_inexact(x: Any) -> bool:
    dtype = get_aval(x).dtype
    return dtype in dtypes.floating_dtypes or dtype in dtypes.complex_dtypes


def _scalar_aval(value: Any, out: Any, holomorphic: bool) -> ShapedArray:
    """The aval of the output of a function that `grad` may differentiate."""
    outs, out_tree = value
    if out_tree.num_nodes != 1 or len(outs) != 1:
        raise TypeError("Gradient only defined for scalar-output functions. Output was "
                        f"{out_tree.unflatten(outs)}.")
    aval = get_aval(out)
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


def check_output_dtype(name: str, dtype: Any, holomorphic: bool) -> None:
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


# -- vjp -------------------------------------------------------------------------------------------


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False,
        reduce_axes: Sequence[Any] = (), saveable_args: Any = True, in_nzs: Any = None) -> Any:
    """The outputs of a function, and the function that pulls cotangents back through it.

    For f at x the second result maps a cotangent v of f(x) to the tuple of cotangents of the
    arguments, J(x)^T v: the vector-Jacobian product.

    Args:
      fun: takes positional arguments; arguments and results are pytrees of arrays.
      *primals: the arguments.
      has_aux: `fun` returns a pair, whose second element is passed on undifferentiated.
      saveable_args: a tree of bools, a prefix of `primals`. Arguments where it is False and that
        the derivative needs are left out of the function returned; its `args_res` then has
        `NotSaveable()` in their place, to be replaced before the call.
      in_nzs: a tree of bools, a prefix of `primals`: the arguments to differentiate by, None for
        all. The cotangents of the others are zero.

    Returns:
      `(outputs, function)`, and the auxiliary data as third element with `has_aux`. The function
      is a pytree whose leaves are the values it keeps, so it may be passed to and returned from
      transformed functions. It takes one argument, a cotangent of the structure of the outputs.

    Raises:
      TypeError: `fun` is not callable, or an argument or result is not an array.

    >>> import pyjx as jax
    >>> y, pull_back = jax.vjp(lambda a, b: a * b, 2.0, 3.0)
    >>> [float(ct) for ct in pull_back(1.0)]
    [3.0, 2.0]
    """
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to vjp is deprecated")
    check_callable(fun)
    leaves, in_tree = flatten(primals)
    check_values(leaves, ".")
    wanted = _wanted(leaves, primals, in_nzs)
    (outs, out_tree), program, aux = _linearized(fun, leaves, in_tree, has_aux, wanted)
    pull_back = VJP(program, in_tree, out_tree, [get_aval(x) for x in leaves],
                    [get_aval(x) for x in outs], leaves, source_of, fun)
    if saveable_args is not True:
        pull_back.forget(prefix_of_bools("saveable_args", saveable_args, primals))
    out = out_tree.unflatten(outs)
    return (out, pull_back, aux) if has_aux else (out, pull_back)


def prefix_of_bools(name: str, prefix: Any, primals: Any) -> list[bool]:
    """One bool for each leaf of `primals`. Containers of `prefix` count by their length only."""
    if isinstance(prefix, bool):
        return [prefix] * flatten(primals)[1].num_leaves
    children = flatten(primals, lambda x: x is not primals)[0]
    entries = list(prefix.values()) if isinstance(prefix, dict) else list(prefix)
    if len(entries) != len(children):
        raise ValueError(f"vjp: {name} must be a tree prefix of the primals, got {len(entries)} "
                         f"entries where the primals have {len(children)}")
    return [flag for entry, child in zip(entries, children, strict=True)
            for flag in prefix_of_bools(name, entry, child)]


def _wanted(leaves: Sequence[Any], primals: Any, in_nzs: Any) -> list[bool] | None:
    wanted = [is_inexact(x) for x in leaves]
    if in_nzs is not None:
        flags = prefix_of_bools("in_nzs", in_nzs, primals)
        wanted = [w and f for w, f in zip(wanted, flags, strict=True)]
    return None if all(wanted) else wanted


def _linearized(
    fun: Callable[..., Any], leaves: Sequence[Any], in_tree: Any, has_aux: bool,
    wanted: Sequence[bool] | None,
) -> tuple[tuple[list[Any], Any], LinearProgram, Any]:
    """(output leaves, their tree), the linear program, and the auxiliary data if there is any."""
    out_tree: Any = None
    aux_tree: Any = None
    aux: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree, aux_tree
        result = fun(*in_tree.unflatten(xs))
        if has_aux:
            result, extra = split_aux(result)
            aux[:], aux_tree = flatten(extra)
        outs, out_tree = flatten(result)
        check_values(outs)
        return outs  # type: ignore[no-any-return]

    outs, program = linearize_flat(flat, leaves, wanted, aux)
    extra = aux_tree.unflatten(aux) if has_aux else None
    return (outs, out_tree), program, extra


# -- linearize -------------------------------------------------------------------------------------


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, in_nzs: Any = None
              ) -> Any:
    """The outputs of a function, and its derivative there as a linear function.

    The second result computes the same as `jvp` at fixed primals, without computing the primal
    part again.

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
    wanted = _wanted(leaves, primals, in_nzs)
    (outs, out_tree), program, aux = _linearized(fun, leaves, in_tree, has_aux, wanted)
    f_jvp = LinearizedFunction(program.pruned(), in_tree, out_tree, [get_aval(x) for x in leaves])
    out = out_tree.unflatten(outs)
    return (out, f_jvp, aux) if has_aux else (out, f_jvp)


# -- linear_transpose ------------------------------------------------------------------------------


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()
                     ) -> Callable[..., Any]:
    """The transpose of a function that is known to be linear.

    Args:
      fun: a linear function; arguments and results are pytrees of arrays.
      *primals: arrays, or anything with `shape` and `dtype`, such as `ShapeDtypeStruct`; only the
        types matter.

    Returns:
      A function from a cotangent, of the structure and types of the output of `fun`, to the tuple
      of cotangents of the arguments.

    Raises:
      TypeError: the dtypes are neither all inexact nor all integers, or the cotangent is not of
        the type of the output.
      NotImplementedError: `fun` uses an operation that is not linear in them.

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
    trace = LinearTrace()
    with new_level(trace):
        args = [trace.new_arg(a) for a in in_avals]
        outs, out_tree = flatten(fun(*in_tree.unflatten(args)))
        check_values(outs)
        out_avals = [get_aval(x) for x in outs]
        program = LinearProgram([a._var for a in args], trace.eqns, [trace.unwrap(x) for x in outs])
    _check_linear_dtypes([a.dtype for a in in_avals], [a.dtype for a in out_avals])

    def transposed(out_cotangent: Any) -> Any:
        cotangents, tree = flatten(out_cotangent)
        if tree != out_tree:
            raise TypeError("cotangent tree does not match function output, expected "
                            f"{out_tree} but got {tree}")
        if not all(map(_same_type, map(get_aval, cotangents), out_avals)):
            raise TypeError("cotangent type does not match function output, expected "
                            f"{tuple(out_avals)} but got {cotangents}")
        return in_tree.unflatten(map(materialized, program.backward(cotangents)))

    return transposed


def _same_type(a: Any, b: Any) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype


def _aval_of_type(x: Any) -> ShapedArray:
    """The aval of an array, or of what has only a shape and a dtype."""
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


__all__ = ["Argnums", "grad", "linear_transpose", "linearize", "value_and_grad", "vjp"]
