"""Whole derivatives, by mapping `jvp` or `vjp` over the vectors of a basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import cotangent_aval, get_aval
from pyjx.core.explicit import with_dim
from pyjx.core.places import UNIFORM
from pyjx.core.primitive import cast_like
from pyjx.core.trace import eager_trace, ensure_compile_time_eval, state
from pyjx.engine.axes import broadcast_in_dim_p
from pyjx.engine.functions import check_values, flatten
from pyjx.engine.moves import lying_as
from pyjx.engine.primitives import cast, iota_p
from pyjx.engine.tangents import full_aval
from pyjx.engine.types import P
from pyjx.transforms.arguments import (
    at_argnums,
    canonical_argnums,
    check_callable,
    require_argnums,
    wraps,
)
from pyjx.transforms.grad import check_output_dtype, raise_not_inexact
from pyjx.transforms.linearize import jvp
from pyjx.transforms.vjp import vjp
from pyjx.transforms.vmap import vmap

if TYPE_CHECKING:
    from pyjx.core.avals import AbstractRef, ShapedArray

_DOC = (
    "Jacobian of {{fun}} with respect to positional argument(s) {argnums}. Takes the same "
    "arguments as {{fun}} but returns the jacobian of the output with respect to the arguments at "
    "positions {argnums}."
)


def jacfwd(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Callable[P, Any]:
    """A function that computes the Jacobian of `fun`, column by column, in forward mode.

    It costs one pass for each element of the argument, all in one vectorized computation: right
    for functions with at least as many outputs as inputs.

    Args:
      fun: arguments and results are pytrees of arrays.
      argnums: position or positions of the arguments to differentiate by.
      has_aux: `fun` returns a pair whose second element is passed on undifferentiated.
      holomorphic: `fun` is complex and complex differentiable.

    Returns:
      A function of the same arguments. For each output leaf of shape s and each argument leaf of
      shape t the result has an array of shape s + t: a tree with the structure of the output whose
      leaves are trees with the structure of the argument.

    Raises:
      TypeError: an input is not real (or not complex with `holomorphic`).

    >>> import pyjx as jax
    >>> import numpy as np
    >>> jax.jacfwd(lambda x: x * x)(np.array([1.0, 2.0], "float32")).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _jacfwd("jacfwd", fun, argnums, has_aux, holomorphic)


def _jacfwd(name: str, fun: Callable[P, Any], argnums: int | Sequence[int], has_aux: bool,
            holomorphic: bool) -> Callable[P, Any]:
    """The function that the public one of this name, which errors tell, gives."""
    check_callable(fun)
    numbers = canonical_argnums(name, argnums)

    def jacobian_f(*args: Any, **kwargs: Any) -> Any:
        f, dynamic = at_argnums(fun, numbers, args, kwargs)
        leaves, in_tree = flatten(dynamic)
        check_values(leaves)
        for x in leaves:
            _check_forward_input(name, get_aval(x).dtype, holomorphic)

        def push(*tangents: Any) -> Any:
            result = jvp(f, dynamic, in_tree.unflatten(tangents), has_aux)
            return result[1], ((result[0], result[2]) if has_aux else (result[0], None))

        out_tangents, (out, aux) = vmap(push, out_axes=(-1, None))(*_basis(leaves))
        if holomorphic:
            for y in flatten(out)[0]:
                _check_complex_output(name, get_aval(y).dtype)
        outs, out_tree = flatten(out)
        columns = flatten(out_tangents)[0]
        one = isinstance(numbers, int)
        rows = [in_tree.unflatten(_blocks(t, y, leaves, False))
                for t, y in zip(columns, outs, strict=True)]
        jacobian = out_tree.unflatten([row[0] if one else row for row in rows])
        return (jacobian, aux) if has_aux else jacobian

    return wraps(fun, jacobian_f, _DOC.format(argnums=argnums))


def jacrev(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False, allow_int: bool = False) -> Callable[P, Any]:
    """A function that computes the Jacobian of `fun`, row by row, in reverse mode.

    It costs one backward pass for each element of the output, all in one vectorized computation:
    right for functions with fewer outputs than inputs. Arguments and results are those of
    `jacfwd`; `allow_int` allows integer and boolean arguments.

    Raises:
      TypeError: inputs or outputs are not of the dtypes that `grad` takes.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> jax.jacrev(lambda x: x * x)(np.array([1.0, 2.0], "float32")).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable(fun)
    numbers = canonical_argnums("jacrev", argnums)

    def jacobian_f(*args: Any, **kwargs: Any) -> Any:
        require_argnums(numbers, len(args))
        f, dynamic = at_argnums(fun, numbers, args, kwargs)
        leaves, in_tree = flatten(dynamic)
        check_values(leaves)
        for x in leaves:
            _check_reverse_input(get_aval(x).dtype, holomorphic, allow_int)
        result = vjp(f, *dynamic, has_aux=has_aux)
        outs, out_tree = flatten(result[0])
        for y in outs:
            check_output_dtype("jacrev", get_aval(y).dtype, holomorphic)
        one = isinstance(numbers, int)
        if not outs:
            jacobian = out_tree.unflatten([])
        else:
            rows = vmap(lambda *cts: result[1](out_tree.unflatten(cts)))(
                *_basis(outs, cotangent_aval))
            by_input = [_blocks(g, x, outs, True)
                        for g, x in zip(flatten(rows)[0], leaves, strict=True)]
            by_output = [in_tree.unflatten(list(column)) for column in zip(*by_input, strict=True)]
            if not by_input:
                by_output = [in_tree.unflatten([]) for _ in outs]
            jacobian = out_tree.unflatten([g[0] if one else g for g in by_output])
        return (jacobian, result[2]) if has_aux else jacobian

    return wraps(fun, jacobian_f, _DOC.format(argnums=argnums))


def jacobian(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
             holomorphic: bool = False, allow_int: bool = False) -> Callable[P, Any]:
    """Another name for `jacrev`.

    >>> import pyjx as jax
    >>> jax.jacobian(lambda x: x * x)(jax.numpy.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return jacrev(fun, argnums, has_aux, holomorphic, allow_int)


def hessian(fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Callable[P, Any]:
    """A function that computes the second derivatives of `fun`: forward over reverse mode.

    For each output leaf of shape s and argument leaves of shapes t and u the result has an array
    of shape s + t + u, in a tree whose levels are those of the output and twice the argument's.

    Raises:
      TypeError: inputs or outputs are not of the dtypes that `grad` takes.

    >>> import pyjx as jax
    >>> float(jax.hessian(lambda x: x * x * x)(2.0))
    12.0
    """
    return _jacfwd("hessian", jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux,
                   holomorphic)


# -- basis vectors ---------------------------------------------------------------------------------


def _basis(leaves: Sequence[Any], type_of: Callable[[Any], Any] = lambda aval: aval
           ) -> list[Any]:
    """For each leaf an array of shape (n, *shape): together the n unit vectors of the whole."""
    avals = [type_of(get_aval(x)) for x in leaves]
    n = sum([a.size for a in avals])
    if n == 1 and len(avals) == 1 and avals[0].weak_type:
        return [full_aval(avals[0].update(shape=(1, *avals[0].shape)), 1)]
    basis = []
    start = 0
    for aval in avals:
        dtype = aval.to_tangent_aval().dtype
        if type(n) is not int:
            basis.append(_symbolic_block(n, start, aval, dtype))
            start += aval.size
            continue
        block = np.zeros((n, aval.size), dtype)
        if dtype != dtypes.float0:
            np.fill_diagonal(block[start:start + aval.size], 1)
        vectors = _array(block.reshape((n, *aval.shape)))
        if aval.place.sharding is not None:  # they lie as the value that they are changes of
            vectors = lying_as(vectors, with_dim(aval, 0, n))
        if aval.place.mat is not UNIFORM and dtype != dtypes.float0:  # and vary as it does
            vectors = cast_like(vectors, aval)
        basis.append(vectors)
        start += aval.size
    return basis


def _symbolic_block(n: Any, start: Any, aval: ShapedArray | AbstractRef, dtype: np.dtype[Any]
                   ) -> Any:
    """The columns of an `n` by `n` identity from `start` on that belong to a value."""
    rows = iota_p.bind(dtype=np.dtype(np.int32), shape=(n, aval.size), dimension=0, sharding=None)
    columns = iota_p.bind(dtype=np.dtype(np.int32), shape=(n, aval.size), dimension=1,
                          sharding=None)
    return (rows == columns + start).astype(dtype).reshape((n, *aval.shape))


def _array(x: np.ndarray[Any, Any]) -> Any:
    """`x` on the device, or where something is recorded as it is."""
    if x.dtype != dtypes.float0 and x.dtype != dtypes.canonicalize_dtype(x.dtype):
        with ensure_compile_time_eval(), configuration.enable_x64(True):
            return _array(x)
    if state.dynamic is not eager_trace or x.dtype == dtypes.float0:
        return x
    return broadcast_in_dim_p.bind(x, shape=x.shape, broadcast_dimensions=tuple(range(x.ndim)),
                                   sharding=None)


def _blocks(x: Any, like: Any, leaves: Sequence[Any], front: bool) -> list[Any]:
    """Cut the axis over the basis, first with `front` and else last, into one block a leaf.

    The blocks have the axes of their leaf in place of that axis, beside those of `like`, and its
    weak type.
    """
    shape = get_aval(like).shape
    if getattr(x, "dtype", None) == dtypes.float0:  # of an integer: zeros
        x = full_aval(get_aval(like).update(shape=x.shape), 0)
    elif get_aval(x).weak_type != get_aval(like).weak_type:
        x = cast(x, x.dtype, get_aval(like).weak_type)
    blocks = []
    start = 0
    for leaf in leaves:
        aval = get_aval(leaf)
        block = x
        if len(leaves) > 1:
            cut = slice(start, start + aval.size)
            block = x[cut] if front else x[..., cut]
        start += aval.size
        if aval.ndim != 1:
            block = block.reshape((*aval.shape, *shape) if front else (*shape, *aval.shape))
        blocks.append(block)
    return blocks


# -- checks ----------------------------------------------------------------------------------------


def _check_forward_input(name: str, dtype: DTypeLike, holomorphic: bool) -> None:
    if holomorphic:
        if dtype not in dtypes.complex_dtypes:
            raise TypeError(f"{name} with holomorphic=True requires inputs with complex dtype, but "
                            f"got {dtypes.name(dtype)}.")
    elif dtype not in dtypes.floating_dtypes:
        raise TypeError(
            f"{name} requires real-valued inputs (input dtype that is a sub-dtype of np.floating), "
            f"but got {dtypes.name(dtype)}. For holomorphic differentiation, pass "
            "holomorphic=True. For differentiation of non-holomorphic functions involving complex "
            "inputs or integer inputs, use jax.jvp directly."
        )


def _check_complex_output(name: str, dtype: DTypeLike) -> None:
    if dtype not in dtypes.complex_dtypes:
        raise TypeError(f"{name} with holomorphic=True requires outputs with complex dtype, but "
                        f"got {dtypes.name(dtype)}.")


def _check_reverse_input(dtype: DTypeLike, holomorphic: bool, allow_int: bool) -> None:
    if holomorphic and dtype not in dtypes.complex_dtypes:
        raise TypeError("jacrev with holomorphic=True requires inputs with complex dtype, but got "
                        f"{dtypes.name(dtype)}.")
    inexact = dtype in dtypes.floating_dtypes or dtype in dtypes.complex_dtypes
    if not inexact and (not allow_int or dtypes.is_extended(dtype)):
        raise_not_inexact("jacrev", dtype)
