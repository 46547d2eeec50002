"""Bad calls of every public function of `pyjx.lax`, for `test_bad_input`."""

from __future__ import annotations

from tests.lax.bad_calls import contractions, control_flow, elementwise, reductions, shapes
from tests.lax.bad_calls.calls import Bad

__all__ = ["CALLS", "Bad"]

CALLS: dict[str, list[Bad]] = {}
for _module in (elementwise, shapes, reductions, contractions, control_flow):
    assert not CALLS.keys() & _module.CALLS.keys()
    CALLS |= _module.CALLS
