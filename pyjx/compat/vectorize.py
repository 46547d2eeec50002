"""`jax._src.numpy.vectorize`: the parts of `vectorize`, for libraries with one of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from pyjx.lax.common import broadcast_shapes
from pyjx.numpy.vectorization import Names, checked, core_sizes, vectorize
from pyjx.numpy.vectorization import parse_signature as _parse_gufunc_signature

__all__ = ["_apply_excluded", "_check_output_dims", "_parse_gufunc_signature",
           "_parse_input_dimensions", "vectorize"]


def _apply_excluded(func: Callable[..., Any], excluded: Collection[int | str],
                    args: Sequence[Any], kwargs: dict[str, Any]
                    ) -> tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]:
    """A function of the arguments that are not excluded, and these.

    >>> fun, args, kwargs = _apply_excluded(lambda x, n, *, y: x * n + y, {1}, (3, 2), {"y": 1})
    >>> args, kwargs, fun(*args, **kwargs)
    ([3], {'y': 1}, 7)
    """
    mapped = [i for i in range(len(args)) if i not in excluded]
    fixed = {name: x for name, x in kwargs.items() if name in excluded}

    def applied(*values: Any, **others: Any) -> Any:
        every = list(args)
        for i, value in zip(mapped, values, strict=True):
            every[i] = value
        return func(*every, **fixed, **others)

    rest = {name: x for name, x in kwargs.items() if name not in excluded}
    return applied, [args[i] for i in mapped], rest


def _check_output_dims(func: Callable[..., Any], dim_sizes: dict[str, int],
                       expected_output_core_dims: list[Names], error_context: str = ""
                       ) -> Callable[..., Any]:
    """The function, whose results must have the axes that the signature says."""
    return checked(func, expected_output_core_dims, dim_sizes, lambda: error_context)


def _parse_input_dimensions(args: Sequence[Any], input_core_dims: list[Names],
                            error_context: str = "") -> tuple[tuple[int, ...], dict[str, int]]:
    """The shape of the axes that are mapped, and the sizes of those that have names.

    >>> import numpy as np
    >>> _parse_input_dimensions((np.ones((4, 2)), np.ones((3, 1, 2))), [("n",), ("n",)])
    ((3, 4), {'n': 2})
    """
    sizes = core_sizes(args, input_core_dims, lambda: error_context)
    outer = [x.shape[:len(x.shape) - len(names)]
             for x, names in zip(args, input_core_dims, strict=True)]
    return broadcast_shapes(*outer), sizes
