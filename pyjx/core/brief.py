"""Values as error messages show them: an argument that came by mistake may be a large array."""

from __future__ import annotations

import reprlib

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 100

shortened = _repr.repr
"""`repr`, of which long texts lose their middle and containers their ends."""
