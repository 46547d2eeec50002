"""Functions that are compared, vectorized and shown in tracebacks, as libraries ask for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import wraps
from types import FrameType
from typing import Any, TypeVar

from pyjx.core import frames
from pyjx.guards import guard
from pyjx.lax.common import broadcast_shapes
from pyjx.numpy.vectorization import Names, checked, core_sizes

_F = TypeVar("_F", bound=Callable[..., Any])
Out = TypeVar("Out")


class HashablePartial:
    """A partial application that equals those of the same function and arguments.

    >>> HashablePartial(lambda x, y: x + y, 1)(2)
    3
    """

    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def _parts(self) -> Iterator[Any]:
        yield from (self.f.__code__, self.args, tuple(self.kwargs.items()))

    def __eq__(self, other: object) -> bool:
        return type(other) is HashablePartial and [*self._parts()] == [*other._parts()]

    def __hash__(self) -> int:
        return hash(tuple(self._parts()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)


def api_boundary(fun: _F, **options: Any) -> _F:
    """Let exceptions that leave a function show the user's frames only."""
    @guard
    def boundary(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    return wraps(fun)(boundary)  # type: ignore[return-value]


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is the user's."""
    return not frames.is_internal(frame.f_code.co_filename)


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
