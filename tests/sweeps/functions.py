"""The functions that sweeps go through: what they take, and NumPy's or SciPy's of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import scipy.special

BOOL = ["bool"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = [*BOOL, *INTEGERS, *FLOATS]
ALL = [*REAL, *COMPLEX]
SHAPES = [(), (3,), (0,), (2, 3), (3, 1, 2), (2, 0, 3), (2, 1, 3, 2)]


class Function(NamedTuple):
    """A function of jax.numpy or jax.scipy.special, and how it is called."""

    name: str
    arity: int
    dtypes: list[str]
    axis: bool = False  # whether it reduces, or goes along, an axis
    empty: bool = True  # whether it takes axes of size 0
    least: float = -np.inf  # the least argument, and the greatest one, of its domain
    most: float = np.inf
    special: bool = False  # of scipy.special
    extreme: bool = True  # whether nan and infinities are swept too
    factor: float = 8  # how many roundings of the dtype the result may be off

    def reference(self) -> Callable[..., Any]:
        return getattr(scipy.special if self.special else np, self.name)


def table(names: str, arity: int, dtypes: list[str], **options: Any) -> list[Function]:
    return [Function(name, arity, dtypes, **options) for name in names.split()]


ELEMENTWISE = [
    *table("abs negative positive square conj", 1, [*INTEGERS, *FLOATS, *COMPLEX]),
    *table("sign", 1, [*INTEGERS, *FLOATS]),
    *table("sign", 1, COMPLEX, extreme=False),  # z / |z|: nan at infinity in JAX too, 1 in NumPy
    *table("sin cos exp tanh arctan arcsinh sinh cosh expm1 cbrt exp2 deg2rad rad2deg", 1, FLOATS),
    *table("tan arcsin arccos", 1, FLOATS, factor=16),
    *table("sqrt log log2 log10 arctanh arccosh reciprocal", 1, FLOATS, factor=16),
    # XLA before 2026 loses 6 bits of the double of log1p just above -0.4142.
    *table("log1p", 1, FLOATS, factor=128),
    *table("sinc", 1, FLOATS, extreme=False, factor=16),  # it is 0 at infinity
    *table("sin cos exp tanh sqrt log", 1, COMPLEX, extreme=False, factor=32),
    *table("floor ceil trunc rint fabs signbit isposinf isneginf spacing", 1, FLOATS),
    *table("isnan isinf isfinite logical_not iscomplex isreal real imag", 1, ALL),
    *table("bitwise_not invert", 1, [*BOOL, *INTEGERS]),
    *table("bitwise_count", 1, INTEGERS),
    *table("angle", 1, COMPLEX), *table("nan_to_num", 1, [*FLOATS, *COMPLEX]),
    *table("add multiply", 2, ALL), *table("subtract", 2, [*INTEGERS, *FLOATS, *COMPLEX]),
    *table("equal not_equal", 2, ALL),
    *table("maximum minimum fmax fmin less greater less_equal greater_equal", 2, REAL),
    *table("logical_and logical_or logical_xor", 2, ALL),
    *table("bitwise_and bitwise_or bitwise_xor", 2, [*BOOL, *INTEGERS]),
    *table("gcd lcm", 2, INTEGERS, extreme=False),
    *table("true_divide", 2, [*FLOATS]), *table("hypot arctan2", 2, FLOATS, factor=16),
    *table("logaddexp logaddexp2 copysign heaviside nextafter", 2, FLOATS),
    *table("floor_divide remainder fmod", 2, FLOATS, extreme=False),
    *table("power", 2, FLOATS, least=0.1, most=3, factor=32),
]
REDUCTIONS = [
    *table("sum prod", 1, ALL, axis=True, factor=64),
    *table("max min ptp", 1, [*INTEGERS, *FLOATS], axis=True, empty=False),
    *table("argmax argmin", 1, [*INTEGERS, *FLOATS], axis=True, empty=False),
    *table("nanargmax nanargmin", 1, FLOATS, axis=True, empty=False, extreme=False),
    *table("all any count_nonzero", 1, ALL, axis=True),
    *table("mean var std", 1, [*FLOATS, *COMPLEX], axis=True, empty=False, factor=64),
    *table("median", 1, FLOATS, axis=True, empty=False, factor=64),
    *table("nansum nanprod", 1, [*FLOATS, *COMPLEX], axis=True, factor=64),
    *table("nanmean nanmax nanmin nanmedian nanvar nanstd", 1, FLOATS, axis=True, empty=False,
           extreme=False, factor=64),
    *table("cumsum cumprod nancumsum nancumprod", 1, [*INTEGERS, *FLOATS], axis=True, factor=64),
    *table("sort", 1, REAL, axis=True), *table("diff", 1, [*INTEGERS, *FLOATS], axis=True),
    *table("flip", 1, ALL, axis=True),
]
SPECIAL = [
    *table("erf erfc ndtr i0 i0e i1 i1e expit", 1, FLOATS[2:], special=True, factor=64),
    *table("erfinv", 1, FLOATS[2:], special=True, least=-1, most=1, factor=64),
    *table("gammaln", 1, FLOATS[2:], special=True, least=0.1, factor=256),
    # At their poles JAX, and so this package, gives nan where SciPy gives infinities.
    *table("digamma", 1, FLOATS[2:], special=True, least=0.1, extreme=False, factor=256),
    *table("log_ndtr entr", 1, FLOATS[2:], special=True, factor=256),
    *table("logit", 1, FLOATS[2:], special=True, least=0.01, most=0.99, factor=64),
    *table("xlogy xlog1py", 2, FLOATS[2:], special=True, least=0.1, factor=64),
    *table("betaln beta", 2, FLOATS[2:], special=True, least=0.1, most=9, extreme=False,
           factor=1024),
    *table("gammainc gammaincc", 2, FLOATS[2:], special=True, least=0.1, most=9, factor=4096),
    *table("kl_div rel_entr", 2, FLOATS[2:], special=True, least=0.1, most=9, factor=1024),
]
EVERY = [*ELEMENTWISE, *REDUCTIONS, *SPECIAL]


def sample(dtype: str, shape: tuple[int, ...], function: Function, seed: int,
           extreme: bool) -> np.ndarray:
    """Numbers that the function takes; some nan and infinite, or the extremes of integers."""
    rng = np.random.default_rng(seed)
    given = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if dtype == "bool":
        return rng.random(shape) > 0.5
    if np.issubdtype(given, np.integer):
        info = np.iinfo(given)
        x = rng.integers(max(info.min, -9), 10, shape, dtype=given)
        edges = np.array([info.min, info.max], given)
    else:
        low, high = max(function.least, -4), min(function.most, 4)
        x = rng.uniform(low, high, shape)
        if np.issubdtype(given, np.complexfloating):
            x = x + 1j * rng.uniform(low, high, shape)
        x = np.asarray(x).astype(given)
        edges = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0]).astype(given)
    if extreme:
        chosen = rng.random(shape) < 0.4
        x = np.where(chosen, edges[rng.integers(0, len(edges), shape)], x).astype(given)
    return x


def wide(x: np.ndarray) -> np.ndarray:
    """The array in a dtype in which the reference is computed: integers stay as they are."""
    if x.dtype.kind in "biu":
        return x
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
