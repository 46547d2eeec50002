"""Derivatives with respect to the elements of sparse arrays.

The transformations are the dense ones, on functions of the data: indices are constants, and a
derivative by a sparse array is a sparse array with the same indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.engine.functions import source_of
from pyjx.engine.types import TreeDef
from pyjx.experimental.sparse.formats import JAXSparse, with_data
from pyjx.guards import guard
from pyjx.transforms import grad as _grad
from pyjx.transforms import grad as _jacobians
from pyjx.transforms.arguments import at_argnums, canonical_argnums, wraps
from pyjx.transforms.vmap import is_vmappable
from pyjx.tree_util import tree_flatten, tree_map, tree_unflatten

_DOC = ("{doc} of {{fun}}. Arguments may be sparse arrays: the derivative by one has the same "
        "indices.")


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def _with_data(mat: Any, data: Array) -> Any:
    """The derivative by the elements of `mat`, whose leading axes are those of the output."""
    children, aux = mat.tree_flatten()
    more = data.ndim - children[0].ndim
    if not more:
        return with_data(mat, data)
    if not is_vmappable(mat):
        raise NotImplementedError(f"Jacobian by a {type(mat).__name__} array of an output that is "
                                  "no scalar.")
    batch = data.shape[:more]
    buffers = [data, *[jnp.broadcast_to(x, (*batch, *get_aval(x).shape)) for x in children[1:]]]
    aux = {**aux, "shape": (*batch, *aux["shape"])}
    return mat.tree_unflatten(aux, buffers)


@guard
def _on_data(name: str, transform: Callable[..., Any], fun: Callable[..., Any], argnums: Any,
             has_aux: bool, value: bool, options: dict[str, Any]) -> Callable[..., Any]:
    """The transformation of `fun`, with respect to the elements of sparse arguments."""
    numbers = canonical_argnums(name, argnums)

    def run(*args: Any, **kwargs: Any) -> Any:
        f, chosen = at_argnums(fun, numbers, args, kwargs)
        leaves, tree = tree_flatten(chosen, is_leaf=_is_sparse)
        data = [x.data if _is_sparse(x) else x for x in leaves]

        def of_data(data: Sequence[Any]) -> Any:
            full = [with_data(x, d) if _is_sparse(x) else d
                    for x, d in zip(leaves, data, strict=True)]
            return f(*tree_unflatten(tree, full))

        of_data.__name__ = of_data.__qualname__ = source_of(fun)  # which messages tell of
        result = transform(of_data, has_aux=has_aux, **options)(data)
        first, rest = (result[0], result[1]) if value or has_aux else (result, None)
        derivative = rest if value else first
        derivative = _restored(derivative, leaves, tree)
        chosen_derivative = derivative if not isinstance(numbers, int) else _only(derivative)
        if value:
            return first, chosen_derivative
        return (chosen_derivative, rest) if has_aux else chosen_derivative

    return wraps(fun, run, _DOC.format(doc=name))


def _restored(derivative: Any, leaves: Sequence[Any], tree: TreeDef) -> Any:
    """Derivatives by data, a list for each leaf of the output, as trees of the arguments."""
    def one(parts: Sequence[Any]) -> Any:
        return tree_unflatten(tree, [_with_data(x, d) if _is_sparse(x) else d
                                     for x, d in zip(leaves, parts, strict=True)])

    return tree_map(one, derivative, is_leaf=lambda x: isinstance(x, list))


def _only(derivative: Any) -> Any:
    return tree_map(lambda parts: parts[0], derivative, is_leaf=lambda x: isinstance(x, tuple))


def grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
         **kwargs: Any) -> Callable[..., Any]:
    """As `jax.grad`, for functions of sparse arrays.

    Args:
      fun: function with a scalar result.
      argnums: by which arguments it is differentiated.
      has_aux: whether `fun` returns a pair of the result and of auxiliary data.
      kwargs: further arguments of `jax.grad`.

    Returns:
      A function that gives the gradient: by a sparse argument a sparse array with its indices.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.grad(lambda M: (M @ jnp.array([3., 4.])).sum())(sparse.eye(2)).data.tolist()
    [3.0, 4.0]
    """
    return _on_data("grad", _grad.grad, fun, argnums, has_aux, False, kwargs)


def value_and_grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0,
                   has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """As `jax.value_and_grad`, for functions of sparse arrays; see `grad`.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> value, g = sparse.value_and_grad(lambda M: M.sum())(sparse.eye(2))
    >>> float(value), g
    (2.0, BCOO(float32[2, 2], nse=2))
    """
    return _on_data("value_and_grad", _grad.value_and_grad, fun, argnums, has_aux, True, kwargs)


def jacfwd(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           **kwargs: Any) -> Callable[..., Any]:
    """As `jax.jacfwd`, for functions of sparse arrays with dense results.

    The Jacobian by a BCOO or BCSR array has the axes of the result as batch dimensions.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.jacfwd(lambda M: M @ jnp.ones(2))(sparse.eye(2))
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _on_data("jacfwd", _jacobians.jacfwd, fun, argnums, has_aux, False, kwargs)


def jacrev(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           **kwargs: Any) -> Callable[..., Any]:
    """As `jax.jacrev`, for functions of sparse arrays with dense results; see `jacfwd`.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.jacrev(lambda M: M @ jnp.ones(2))(sparse.eye(2))
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _on_data("jacrev", _jacobians.jacrev, fun, argnums, has_aux, False, kwargs)


jacobian = jacrev
