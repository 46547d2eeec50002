"""Values as error messages show them: an argument that came by mistake may be a large array."""

from __future__ import annotations

import re
from typing import Any

_LONGEST = 100
_OF_PYTHON = 1 << 9  # the flag of classes that are made by a class statement
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def without_addresses(text: str) -> str:
    """The text without the addresses that Python shows objects by, which tell a user nothing.

    >>> without_addresses("<function f at 0x7f89c2d9a480>")
    '<function f>'
    """
    return _ADDRESS.sub("", text) if " at 0x" in text else text


def shortened(x: Any) -> str:
    """`repr(x)` of at most 100 characters, without an address: a longer one loses its middle.

    Where that raises, as it may for any class of the user's, the type is shown instead: a message
    must not fail for another reason than the one that it tells.
    """
    try:
        return shortened_text(without_addresses(repr(x)))
    except Exception:
        return f"<{type(x).__name__} object>"


def shortened_text(text: str) -> str:
    """The text, of at most 100 characters: a longer one loses its middle."""
    if len(text) <= _LONGEST:
        return text
    kept = _LONGEST - 3
    return f"{text[:kept // 2]}...{text[kept // 2 - kept:]}"


def cure(x: Any) -> str:
    """The sentence that says how a function that is traced may have a value that no program takes.

    >>> cure([1, 2])
    'Make an array of it: jnp.asarray(x).'
    """
    if isinstance(x, (list, tuple)):
        return "Make an array of it: jnp.asarray(x)."
    scope, made = "he function may take it from the enclosing scope, as a closure.", as_pytree(x)
    return f"{made[1:-1]}; or t{scope}" if made else f"T{scope}"


def as_pytree(x: Any) -> str:
    """The sentence, behind others, that says what makes an object of a Python class a pytree."""
    if type(x).__flags__ & _OF_PYTHON and not hasattr(x, "__name__"):  # no function, no class
        return (" Its class may be a pytree, whose arrays are traced "
                "(jax.tree_util.register_dataclass).")
    return ""


def size_text(n: float) -> str:
    """`1.5 GiB`."""
    for unit in ("bytes", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"
