"""What distributions make of parameters outside their domain: nan, as SciPy does."""

from __future__ import annotations

import math

from pyjx import numpy as jnp
from pyjx.core.array_type import Array


def nan_unless(valid: Array, x: Array) -> Array:
    """The argument, nan where the parameters are not valid: what is computed from it is nan."""
    return jnp.where(valid, x, math.nan)
