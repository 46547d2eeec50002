"""Values as error messages show them: an argument that came by mistake may be a large array."""

from __future__ import annotations

from typing import Any

_LONGEST = 100


def shortened(x: Any) -> str:
    """`repr(x)` of at most 100 characters: a longer one loses its middle.

    Where that raises, as it may for any class of the user's, the type is shown instead: a message
    must not fail for another reason than the one that it tells.
    """
    try:
        text = repr(x)
    except Exception:
        return f"<{type(x).__name__} at {id(x):#x}>"
    if len(text) <= _LONGEST:
        return text
    kept = _LONGEST - 3
    return f"{text[:kept // 2]}...{text[kept // 2 - kept:]}"
