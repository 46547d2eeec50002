"""Random arrays for tests, by shape and dtype.

Each function takes a `numpy.random.RandomState` and gives a function of a shape and a dtype, which
draws. Shapes may be `NUMPY_SCALAR_SHAPE` or `PYTHON_SCALAR_SHAPE`: the draw is then a scalar.

The draws are JAX's, but for `rand_fullrange`, which leaves no byte out, and indices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes

__all__ = [
    "NUMPY_SCALAR_SHAPE", "PYTHON_SCALAR_SHAPE", "ScalarShape", "complex_plane_sample",
    "dtype_str", "format_shape_dtype_string", "is_valid_shape", "rand_bool", "rand_default",
    "rand_fullrange", "rand_indices_unique_along_axis", "rand_int", "rand_nonzero",
    "rand_not_small", "rand_positive", "rand_small", "rand_small_positive", "rand_some_equal",
    "rand_some_inf", "rand_some_inf_and_nan", "rand_some_nan", "rand_some_zero", "rand_uniform",
    "rand_unique_int",
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


def _same(x: Any) -> Any:
    return x


def _drawing(draw: Callable[..., Any], scale: float = 1, post: Callable[[Any], Any] = _same
             ) -> Sampler:
    """Draws times a scale, and what is done to them; complex ones have two parts.

    Both can be given with each call, too.
    """
    def sampler(shape: Any, dtype: Any, *, scale: float = scale,
                post: Callable[[Any], Any] = post) -> Any:
        values: Any = scale * np.asarray(draw(*_axes(shape)))
        if dtypes.issubdtype(dtype, np.unsignedinteger):
            values = abs(values)
        elif dtypes.issubdtype(dtype, np.complexfloating):
            values = values + 1j * scale * np.asarray(draw(*_axes(shape)))
        with np.errstate(invalid="ignore"):
            return _given(post(values.astype(dtype)), shape, dtype)

    return sampler


def rand_default(rng: Rng, scale: float = 3) -> Sampler:
    """Normally distributed numbers.

    >>> rand_default(np.random.RandomState(0))((2,), np.float32)
    array([5.292157 , 1.2004716], dtype=float32)
    """
    return _drawing(rng.randn, scale)


def rand_nonzero(rng: Rng) -> Sampler:
    """Normally distributed numbers, and 1 where they are 0."""
    return _drawing(rng.randn, 3, lambda x: np.where(x == 0, np.array(1, x.dtype), x))


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
    """Integers from `low` on, below `high`; with one bound from 0 on, below it; with none from 0
    on, below the dtype's largest.

    Raises:
      ValueError: there is no bound, and the dtype has no largest integer.
    """
    def sampler(shape: Any, dtype: Any) -> Any:
        is_integer = np.dtype(dtype).kind in "iu"
        bounds: tuple[int, int | None] = (low, high)
        if bounds == (0, None):
            if not is_integer:
                raise ValueError(f"rand_int of {np.dtype(dtype)} needs a bound, `high`.")
            bounds = (0, np.iinfo(dtype).max)
        kind = dtype if is_integer else int
        return np.asarray(rng.randint(*bounds, size=_axes(shape), dtype=kind)).astype(dtype)

    return sampler


def rand_unique_int(rng: Rng, high: int | None = None) -> Sampler:
    """Integers from 0 on, below `high`, none twice; by default each that there are places for."""
    def sampler(shape: Any, dtype: Any) -> Any:
        shape = _axes(shape)
        bound = math.prod(shape) if high is None else high
        return rng.choice(bound, size=shape, replace=False).astype(dtype)

    return sampler


def rand_indices_unique_along_axis(rng: Rng) -> Callable[..., Any]:
    """A function of how many elements an axis has, a shape and the axis, along which no index comes
    twice. Some count from the end, unless `allow_negative=False`.

    >>> draw = rand_indices_unique_along_axis(np.random.RandomState(0))
    >>> draw(dim=4, shape=(4,), axis=0, allow_negative=False)
    array([2, 3, 1, 0])
    """
    def sampler(dim: int, shape: Sequence[int], axis: int, allow_negative: bool = True) -> Any:
        count = shape[axis]
        rest = [n for i, n in enumerate(shape) if i != axis % len(shape)]
        drawn = [rng.choice(dim, count, replace=False) for _ in range(math.prod(rest))]
        indices = np.moveaxis(np.reshape(drawn, (*rest, count)).astype(np.int64), -1, axis)
        from_end = allow_negative and rng.rand(*shape) < 0.5
        return np.where(from_end, indices - dim, indices)

    return sampler


def rand_fullrange(rng: Rng, standardize_nans: bool = False) -> Sampler:
    """Random bits: each number that the dtype has; nans all with the same bits if asked.

    Python's integers are signed ones, which fit in an array that is made of them.
    """
    def sampler(shape: Any, dtype: Any, post: Callable[[Any], Any] = _same) -> Any:
        dtype = np.dtype(dtype)
        axes = _axes(shape)
        if dtype.kind == "b":
            return _given(post(rng.rand(*axes) < 0.5), shape, dtype)
        n_bytes = math.prod(axes) * dtype.itemsize
        bits = rng.randint(0, 256, size=n_bytes, dtype=np.uint8)
        if (shape is PYTHON_SCALAR_SHAPE and dtype.kind == "u"
                and dtype.itemsize >= dtypes.default_int_dtype().itemsize):
            dtype = np.dtype(f"i{dtype.itemsize}")
        values = bits.view(dtype).reshape(axes)
        if standardize_nans and dtypes.issubdtype(dtype, np.inexact):
            values = np.where(np.isnan(values), np.array(np.nan, dtype), values)
        return _given(post(values), shape, dtype)

    return sampler


def complex_plane_sample(dtype: Any, size_re: int = 10, size_im: int | None = None) -> Any:
    """Numbers all over the complex plane, by imaginary parts and real ones: of each there are 0,
    infinities and, of each sign, as many between the smallest normal number and the largest one.

    >>> complex_plane_sample(np.complex64, 0, 0)[1]
    array([-inf+0.j,   0.+0.j,  inf+0.j], dtype=complex64)
    """
    facts = np.finfo(dtype)

    def parts(size: int) -> Any:
        with np.errstate(over="ignore"):  # of the last, which is set to the largest number then
            positive = np.geomspace(float(facts.tiny), float(facts.max), size)
        return np.array([-np.inf, *-positive[::-1], 0, *positive, np.inf], facts.dtype)

    real, imag = parts(size_re), parts(size_re if size_im is None else size_im)
    out = np.empty((len(imag), len(real)), dtype)
    out.real, out.imag = real, imag[:, None]
    return out


# -- draws some of which are something else --------------------------------------------------------


def _replaced(rng: Rng, special: Sequence[float]) -> Sampler:
    """Normally distributed draws, of reals with each special number at a tenth of the places."""

    def sampler(shape: Any, dtype: Any) -> Any:
        if not dtypes.issubdtype(dtype, np.floating):
            return rand_default(rng)(shape, dtype)
        axes = _axes(shape)
        places = [rng.rand(*axes) < 0.1 for _ in special]
        values = np.asarray(rand_default(rng)(axes, dtype))
        for number, there in zip(special, places, strict=True):
            values = np.where(there, np.array(number, dtype), values)
        return _given(values, shape, dtype)

    return sampler


def rand_some_inf(rng: Rng) -> Sampler:
    """Normally distributed numbers, some of which are infinite, of both signs; none of complex."""
    return _replaced(rng, (np.inf, -np.inf))


def rand_some_nan(rng: Rng) -> Sampler:
    """Normally distributed numbers, some of which are nan, of both signs; of complex numbers one
    part or both."""
    def real(axes: tuple[int, ...], dtype: Any) -> Any:
        chance = rng.rand(*axes)
        nans = np.where(chance < 0.05, np.array(-np.nan, dtype), np.array(np.nan, dtype))
        return np.where(chance < 0.1, nans, np.asarray(rand_default(rng)(axes, dtype)))

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


def rand_some_inf_and_nan(rng: Rng) -> Sampler:
    """Normally distributed numbers, some of which are infinite or nan; none of complex ones."""
    return _replaced(rng, (np.inf, -np.inf, np.nan))


def rand_some_zero(rng: Rng) -> Sampler:
    """Normally distributed numbers, half of which are 0."""
    def sampler(shape: Any, dtype: Any) -> Any:
        zero = rng.rand(*_axes(shape)) < 0.5
        values = np.asarray(rand_default(rng)(_axes(shape), dtype))
        return _given(np.where(zero, np.zeros((), dtype), values), shape, dtype)

    return sampler


def rand_some_equal(rng: Rng) -> Sampler:
    """Normally distributed numbers, half of which equal the first."""
    def equal(values: Any) -> Any:
        if not values.size:
            return values
        return np.where(rng.rand(*values.shape) < 0.5, values.ravel()[0], values)

    return _drawing(rng.randn, 100, equal)
