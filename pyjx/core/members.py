"""What the core's classes have for others alone, and who gives it to them."""

from __future__ import annotations

from typing import Any


def give(owner: type, **members: Any) -> None:
    """Let a class have members that the library itself has no use for.

    Libraries that look into JAX's internals ask for them: `compat`, which knows of those, gives
    them all, as it is imported.

    Raises:
      TypeError: the class has one of that name already.

    >>> class Own:
    ...     pass
    >>> give(Own, answer=42)
    >>> Own().answer
    42
    """
    for name, member in members.items():
        if name in vars(owner):
            raise TypeError(f"{owner.__name__} has a member {name!r} already.")
        setattr(owner, name, member)
