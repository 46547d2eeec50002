"""Random arrays for tests, by shape and dtype.

Each function takes a `numpy.random.RandomState` and gives a function of a shape and a dtype, which
draws. Shapes may be `NUMPY_SCALAR_SHAPE` or `PYTHON_SCALAR_SHAPE`: the draw is then a scalar.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes

__all__ = [
    "NUMPY_SCALAR_SHAPE", "PYTHON_SCALAR_SHAPE", "ScalarShape", "dtype_str",
    "format_shape_dtype_string", "is_valid_shape", "rand_bool", "rand_default", "rand_fullrange",
    "rand_indices_unique_along_axis", "rand_int", "rand_nonzero", "rand_not_small",
    "rand_positive", "rand_small", "rand_small_positive", "rand_some_equal", "rand_some_inf",
    "rand_some_inf_and_nan", "rand_some_nan", "rand_some_zero", "rand_uniform", "rand_unique_int",
]

Sampler = Callable[[Any, Any], Any]
Rng = np.random.RandomState


class ScalarShape:
    """The shape of a scalar that is no array: it has no axes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __len__(self) -> int:
        return 0

    def __getitem__(self, i: Any) -> Any:
        raise IndexError(f"index {i} out of range: a scalar has no axes.")

    def __repr__(self) -> str:
        return self.name


NUMPY_SCALAR_SHAPE = ScalarShape("NUMPY_SCALAR_SHAPE")
PYTHON_SCALAR_SHAPE = ScalarShape("PYTHON_SCALAR_SHAPE")

_PYTHON_KINDS: dict[Any, type] = {np.bool_: bool, np.integer: int, np.floating: float,
                                  np.complexfloating: complex}


def _axes(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _python_type(dtype: Any) -> type:
    return next(t for kind, t in _PYTHON_KINDS.items() if dtypes.issubdtype(dtype, kind))


def is_valid_shape(shape: Any, dtype: Any) -> bool:
    """Whether a value of the dtype can have the shape: Python's scalars have few dtypes.

    >>> is_valid_shape(PYTHON_SCALAR_SHAPE, np.int8), is_valid_shape((2,), np.int8)
    (False, True)
    """
    if shape is not PYTHON_SCALAR_SHAPE:
        return True
    return bool(np.dtype(dtype) == np.dtype(_python_type(dtype)))


def dtype_str(dtype: Any) -> str:
    """The name of a dtype.

    >>> dtype_str(np.float32)
    'float32'
    """
    return np.dtype(dtype).name


def format_shape_dtype_string(shape: Any, dtype: Any) -> str:
    """The dtype with the shape, for names of tests.

    >>> format_shape_dtype_string((2, 3), np.float32), format_shape_dtype_string((), np.int8)
    ('float32[2,3]', 'int8[]')
    """
    if isinstance(shape, ScalarShape):
        kind = "py" if shape is PYTHON_SCALAR_SHAPE else ""
        return kind + dtype_str(dtype)
    sizes = f"{shape}," if isinstance(shape, int) else ",".join(map(str, shape))
    return f"{dtype_str(dtype)}[{sizes}]"


def _given(values: Any, shape: Any, dtype: Any) -> Any:
    """The values as what stands for the shape: an array or a scalar."""
    if shape is NUMPY_SCALAR_SHAPE:
        return np.dtype(dtype).type(values)
    if shape is PYTHON_SCALAR_SHAPE:
        return _python_type(dtype)(np.asarray(values).astype(dtype))
    return np.asarray(values).astype(dtype)


def _drawing(draw: Callable[..., Any], scale: float = 1,
             then: Callable[[Any], Any] = lambda x: x) -> Sampler:
    """Draws times a scale, and what is done to them; complex ones have two parts."""

    def sampler(shape: Any, dtype: Any) -> Any:
        values: Any = scale * np.asarray(draw(*_axes(shape)))
        if dtypes.issubdtype(dtype, np.unsignedinteger):
            values = abs(values)
        elif dtypes.issubdtype(dtype, np.complexfloating):
            values = values + 1j * scale * np.asarray(draw(*_axes(shape)))
        with np.errstate(invalid="ignore"):
            return _given(then(values.astype(dtype)), shape, dtype)

    return sampler


def rand_default(rng: Rng, scale: float = 3) -> Sampler:
    """Normally distributed numbers.

    >>> rand_default(np.random.RandomState(0))((2,), np.float32)
    array([5.292157 , 1.2004716], dtype=float32)
    """
    return _drawing(rng.randn, scale)


def rand_nonzero(rng: Rng) -> Sampler:
    """Normally distributed numbers, and 1 where they are 0."""
    def sampler(shape: Any, dtype: Any) -> Any:
        values = np.asarray(rand_default(rng)(_axes(shape), dtype))
        return _given(np.where(values == 0, np.array(1, dtype), values), shape, dtype)

    return sampler


def rand_positive(rng: Rng) -> Sampler:
    """Numbers from 1 to 3."""
    return _drawing(rng.rand, 2, lambda x: x + 1)


def rand_small(rng: Rng) -> Sampler:
    """Normally distributed numbers near 0."""
    return _drawing(rng.randn, 1e-3)


def rand_small_positive(rng: Rng) -> Sampler:
    """Positive numbers near 0."""
    return _drawing(rng.rand, 2e-5)


def rand_not_small(rng: Rng, offset: float = 10.0) -> Sampler:
    """Numbers of which none is nearer to 0 than the offset."""
    return _drawing(rng.randn, 3, lambda x: np.where(x > 0, x + offset, x - offset))


def rand_uniform(rng: Rng, low: float = 0.0, high: float = 1.0) -> Sampler:
    """Numbers between two bounds."""
    return _drawing(rng.rand, 1, lambda x: x * (high - low) + low)


def rand_bool(rng: Rng) -> Sampler:
    """True, or 1, as often as not."""
    return lambda shape, dtype: _given(rng.rand(*_axes(shape)) < 0.5, shape, dtype)


def rand_int(rng: Rng, low: int = 0, high: int | None = None) -> Sampler:
    """Integers from `low` on, below `high`; with one bound from 0 on, below it."""
    def sampler(shape: Any, dtype: Any) -> Any:
        kind = dtype if np.dtype(dtype).kind in "iu" else int
        return np.asarray(rng.randint(low, high, size=_axes(shape), dtype=kind)).astype(dtype)

    return sampler


def rand_unique_int(rng: Rng, high: int | None = None) -> Sampler:
    """Integers from 0 on, below `high`, none twice; by default each that there are places for."""
    def sampler(shape: Any, dtype: Any) -> Any:
        shape = _axes(shape)
        bound = math.prod(shape) if high is None else high
        return rng.choice(bound, size=shape, replace=False).astype(dtype)

    return sampler


def rand_indices_unique_along_axis(rng: Rng) -> Callable[[int, Sequence[int], int], Any]:
    """A function of how many elements an axis has, a shape and the axis, along which no index comes
    twice."""
    def sampler(dim: int, shape: Sequence[int], axis: int) -> Any:
        count = shape[axis]
        rest = [n for i, n in enumerate(shape) if i != axis % len(shape)]
        drawn = [rng.permutation(dim)[:count] for _ in range(math.prod(rest))]
        return np.moveaxis(np.reshape(drawn, (*rest, count)).astype(np.int64), -1, axis)

    return sampler


def rand_fullrange(rng: Rng, standardize_nans: bool = False) -> Sampler:
    """Random bits: each number that the dtype has; nans all with the same bits if asked."""
    def sampler(shape: Any, dtype: Any) -> Any:
        dtype = np.dtype(dtype)
        axes = _axes(shape)
        if dtype.kind == "b":
            return _given(rng.rand(*axes) < 0.5, shape, dtype)
        n_bytes = math.prod(axes) * dtype.itemsize
        bits = rng.randint(0, 256, size=n_bytes, dtype=np.uint8)
        values = bits.view(dtype).reshape(axes)
        if standardize_nans and dtypes.issubdtype(dtype, np.inexact):
            values = np.where(np.isnan(values), np.array(np.nan, dtype), values)
        return _given(values, shape, dtype)

    return sampler


# -- draws some of which are something else --------------------------------------------------------


def _replaced(rng: Rng, share: float, special: Sequence[float]) -> Sampler:
    """Normally distributed draws with each of the special numbers at a share of the places."""

    def real(shape: Any, dtype: Any) -> Any:
        places = [rng.rand(*shape) < share for _ in special]
        values = np.asarray(rand_default(rng)(shape, dtype))
        for number, there in zip(special, places, strict=True):
            values = np.where(there, np.array(number, dtype), values)
        return values

    def sampler(shape: Any, dtype: Any) -> Any:
        axes = _axes(shape)
        if dtypes.issubdtype(dtype, np.complexfloating):
            part = np.zeros((), dtype).real.dtype
            values = np.empty(axes, dtype)
            values.real, values.imag = real(axes, part), real(axes, part)
            return _given(values, shape, dtype)
        if not dtypes.issubdtype(dtype, np.floating):
            return rand_default(rng)(shape, dtype)
        return _given(real(axes, dtype), shape, dtype)

    return sampler


def rand_some_inf(rng: Rng) -> Sampler:
    """Normally distributed numbers, some of which are infinite, of both signs."""
    return _replaced(rng, 0.1, (np.inf, -np.inf))


def rand_some_nan(rng: Rng) -> Sampler:
    """Normally distributed numbers, some of which are nan, of both signs."""
    return _replaced(rng, 0.1, (np.nan, -np.nan))


def rand_some_inf_and_nan(rng: Rng) -> Sampler:
    """Normally distributed numbers, some of which are infinite or nan."""
    return _replaced(rng, 0.1, (np.inf, -np.inf, np.nan))


def rand_some_zero(rng: Rng) -> Sampler:
    """Normally distributed numbers, half of which are 0."""
    def sampler(shape: Any, dtype: Any) -> Any:
        zero = rng.rand(*_axes(shape)) < 0.5
        values = np.asarray(rand_default(rng)(_axes(shape), dtype))
        return _given(np.where(zero, np.zeros((), dtype), values), shape, dtype)

    return sampler


def rand_some_equal(rng: Rng) -> Sampler:
    """Normally distributed numbers, half of which equal the first."""
    def sampler(shape: Any, dtype: Any) -> Any:
        values = np.asarray(rand_default(rng, scale=100)(_axes(shape), dtype))
        if not values.size:
            return _given(values, shape, dtype)
        equal = rng.rand(*_axes(shape)) < 0.5
        return _given(np.where(equal, values.ravel()[0], values), shape, dtype)

    return sampler
