"""What distributions ask of their arguments, and what they make of those outside their domain."""

from __future__ import annotations

import math
from typing import Any

from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.numpy.operands import is_complex
from pyjx.scipy.special.operands import floats


def reals(name: str, *args: Any) -> list[Array]:
    """The arguments of the function `name` as arrays of one real dtype and one shape.

    Raises:
      TypeError: an argument is no array or scalar, or complex, which comparisons refuse so; or the
        shapes do not broadcast.
    """
    xs = floats(name, *args)
    if is_complex(xs[0]):
        raise TypeError(f"{name} does not support complex-valued inputs.")
    return xs


def nan_unless(valid: Array, x: Array) -> Array:
    """The argument, nan where the parameters are not valid: what is computed from it is nan."""
    return jnp.where(valid, x, math.nan)
