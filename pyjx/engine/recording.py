"""Rules `record`: operations on numbers and arrays of Python's and NumPy's that a program does not
hold, because their results are known as it is recorded. Of traced values public functions know
where an operation does nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.jaxpr import Literal
from pyjx.core.scalars import literal_types
from pyjx.core.trace import DynamicJaxprTrace, DynamicJaxprTracer
from pyjx.engine.types import Params, Rule, Values


def unless_idle(does_nothing: Callable[..., bool]) -> Rule:
    """The rule of an operation of one operand: where `does_nothing(aval, **params)`, the operand is
    the result, as a value of the program."""
    def record(trace: DynamicJaxprTrace, operands: Values, params: Params) -> Any:
        x: Any = operands[0]
        kind = type(x)
        if kind is DynamicJaxprTracer or (kind is not np.ndarray and kind not in literal_types):
            return None
        return trace.constant(x) if does_nothing(get_aval(x), **params) else None

    return record


def converted(trace: DynamicJaxprTrace, operands: Values, params: Params) -> Any:
    """The rule of `convert_element_type`: a number becomes another one, which the program shows at
    its use; an array that has the type is left as it is."""
    x: Any = operands[0]
    kind = type(x)
    if kind is DynamicJaxprTracer:
        if type(x._var) is not Literal:
            return None
    elif kind is not np.ndarray and kind not in literal_types:
        return None
    aval = get_aval(x)
    dtype, weak_type = params["new_dtype"], params["weak_type"]
    if kind is np.ndarray:
        same = aval.dtype == dtype and aval.weak_type == weak_type
        return trace.constant(x) if same else None
    if not _is_exact(aval.dtype, dtype):
        return None
    value = np.asarray(x._var.val if kind is DynamicJaxprTracer else x)
    value = value.astype(aval.dtype).astype(dtype)
    return trace.literal(value.item() if weak_type else value[()],
                         ShapedArray((), dtype, weak_type))


_COMMON = frozenset(map(np.dtype, ("float32", "float64", "float16", "complex64", "complex128")))


def _is_exact(old: dtypes.DType, new: dtypes.DType) -> bool:
    """Whether NumPy converts as devices do: floats beyond the range of integers are integers there
    that NumPy does not make of them, and narrow types may be rounded twice."""
    if old == new:
        return old in dtypes.all_dtypes
    if old in _COMMON:
        return new in _COMMON and (old not in dtypes.complex_dtypes or new in dtypes.complex_dtypes)
    return (old == np.bool_ or old in dtypes.integer_dtypes) and (
        new in dtypes.integer_dtypes or (new in _COMMON and old.itemsize <= 4))
