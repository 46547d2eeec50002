"""`name`, the operation that names values for policies of rematerialization."""

from __future__ import annotations

from typing import Any

from pyjx.core.linearity import TOGETHER
from pyjx.core.primitive import Primitive, register
from pyjx.engine.types import Tangents, Values


def _name_jvp(primals: Values, tangents: Tangents, *, name: str) -> Any:
    (x,), (t,) = primals, tangents
    return name_p.bind(x, name=name), t


name_p: Primitive = register(Primitive(
    "name", moves=True, shape_rule=lambda x, name: x, jvp=_name_jvp,
    batch=lambda operands, dims, name: (name_p.bind(operands[0], name=name), dims[0]),
    transpose=lambda ct, x, name: [ct], impl=lambda x, name: x,
    decomposition=lambda x, name: x, linear=TOGETHER,
))
