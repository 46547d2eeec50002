"""Values rounded to their own type: the primitive, for policies of rematerialization that save
them. Its rules stand with `lax.reduce_precision` (lax/convert.py).

Inside a program XLA may compute with more bits than the type of a value has. What is saved has the
bits of its type, so the forward pass has to go on with these, too: else the backward pass would be
that of another point.
"""

from __future__ import annotations

import numpy as np

from pyjx.core import dtypes
from pyjx.core.effects import no_effects
from pyjx.core.jaxpr import JaxprEqn, Var
from pyjx.core.linearity import TOGETHER
from pyjx.core.primitive import Primitive, register
from pyjx.core.source_info import SourceInfo

reduce_precision_p = register(Primitive("reduce_precision", linear=TOGETHER, keeps_nans=True))

# Of exponent and mantissa.
_BITS = {np.dtype(dtypes.bfloat16): (8, 7), np.dtype(np.float16): (5, 10)}


def needs_rounding(v: Var) -> bool:
    """Whether XLA may compute a value of this type with more bits."""
    return getattr(v.aval, "dtype", None) in _BITS


def rounded_eqn(source: Var, target: Var, source_info: SourceInfo) -> JaxprEqn:
    """`target` is `source` rounded to its type."""
    exponent, mantissa = _BITS[target.aval.dtype]
    return JaxprEqn(reduce_precision_p, [source], [target],
                    {"exponent_bits": exponent, "mantissa_bits": mantissa}, no_effects, source_info)
