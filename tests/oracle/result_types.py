"""The types of results of numpy's functions, over all pairs of dtypes and scalars, as JSON.

    python result_types.py jax|pyjx 0|1

The second argument says whether 64-bit types are on. Nothing is computed: the results are traced.
"""

import importlib
import itertools
import json
import sys
import warnings
from typing import Any

import numpy as np


def words(text: str) -> list[str]:
    return text.split()


BINARY = words("""
    add subtract multiply divide floor_divide remainder fmod divmod power float_power equal
    not_equal greater less_equal maximum minimum fmax fmin logical_and logical_or logical_xor
    bitwise_and bitwise_xor left_shift right_shift arctan2 hypot copysign nextafter logaddexp
    logaddexp2 heaviside ldexp gcd lcm isclose array_equal dot matmul inner outer kron vdot
    vecdot tensordot convolve correlate append hstack where_ clip searchsorted full_like
    linspace select_ insert_ polyadd polymul polydiv isin setdiff1d union1d
""")
UNARY = words("""
    abs positive negative sign square sqrt exp log1p log10 log2 sin arccos tanh cbrt fabs
    reciprocal deg2rad floor trunc rint conj real imag angle invert isfinite isneginf signbit
    iscomplex logical_not frexp modf nan_to_num i0 sinc sum prod max mean var std median
    cumsum nansum nanmean nanmedian any argsort sort diff gradient trapezoid average cov
    corrcoef zeros_like ones_like full_like_ trace_ diag tril flip ravel roll_ copy array
    asarray unwrap cumulative_sum minmax polyder polyint fft_ einsum_ add_reduce
    logaddexp_reduce
""")
DTYPES = words("""
    bool int8 int16 int32 uint8 uint16 uint32 bfloat16 float16 float32 complex64
""")
WIDE = ["int64", "uint64", "float64", "complex128"]


def functions(jnp: Any) -> dict[str, Any]:
    own = {
        "where_": lambda x, y: jnp.where(True, x, y),
        "select_": lambda x, y: jnp.select([True], [x], y),
        "insert_": lambda x, y: jnp.insert(x, 0, y),
        "full_like_": lambda x: jnp.full_like(x, 2),
        "trace_": lambda x: jnp.trace(jnp.outer(x, x)),
        "roll_": lambda x: jnp.roll(x, 1),
        "fft_": lambda x: jnp.fft.fft(x),
        "einsum_": lambda x: jnp.einsum("i,i->", x, x),
        "add_reduce": lambda x: jnp.add.reduce(x),
        "logaddexp_reduce": lambda x: jnp.logaddexp.reduce(x),
    }
    return {name: own.get(name) or getattr(jnp, name) for name in (*BINARY, *UNARY)}


def operands(jnp: Any, x64: bool) -> dict[str, Any]:
    """Arrays, weakly typed ones, and scalars of Python and NumPy, by what they are called."""
    found: dict[str, Any] = {d: jnp.ones(2, d) for d in (*DTYPES, *(WIDE if x64 else []))}
    for number in (1, 1.0, 1j):
        weak = jnp.broadcast_to(number, (2,))
        found[f"weak {weak.dtype}"] = weak
    for scalar in (True, 1, 1.0, 1j):
        found[f"Python {type(scalar).__name__}"] = scalar
    for scalar in (np.bool_(True), np.int8(1), np.int64(1), np.float32(1), np.float64(1)):
        found[f"NumPy {scalar.dtype}"] = scalar
    found["NumPy array"] = np.ones(2)
    return found


def result_type(jax: Any, function: Any, arguments: tuple[Any, ...]) -> Any:
    """Shapes, dtypes and weak types; the name of the exception where it raises."""
    python = [type(x) in (bool, int, float, complex) for x in arguments]
    arrays = [x for x, p in zip(arguments, python, strict=True) if not p]

    def call(*traced: Any) -> Any:
        supply = iter(traced)
        return function(*[x if p else next(supply)
                          for x, p in zip(arguments, python, strict=True)])

    try:
        leaves = jax.tree.leaves(jax.eval_shape(call, *arrays))
    except Exception as error:
        return type(error).__name__
    return [f"{x.dtype}{list(x.shape)}{' weak' if x.weak_type else ''}" for x in leaves]


def main(package: str, x64: str) -> None:
    warnings.simplefilter("ignore")
    jax = importlib.import_module(package)
    jnp = importlib.import_module(f"{package}.numpy")
    jax.config.update("jax_enable_x64", x64 == "1")
    values, calls, found = operands(jnp, x64 == "1"), functions(jnp), {}
    for name in BINARY:
        for (a, x), (b, y) in itertools.product(values.items(), repeat=2):
            found[f"{name}({a}, {b})"] = result_type(jax, calls[name], (x, y))
    for name in UNARY:
        for a, x in values.items():
            found[f"{name}({a})"] = result_type(jax, calls[name], (x,))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
