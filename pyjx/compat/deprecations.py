"""`jax._src.deprecations`: what is deprecated, by identifiers, and names of modules that are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from pyjx.core.deprecations import accelerated, warn_deprecated
from pyjx.core.frames import warn as _warn
from pyjx.lazy import own_dictionary

__all__ = [
    "accelerate", "accelerate_getattr_deprecation", "deprecation_getattr", "is_accelerated",
    "is_accelerated_attribute", "register", "unregister", "warn",
]

def register(deprecation_id: str) -> None:
    """Make an identifier known; its use is warned of.

    >>> register("mine"); is_accelerated("mine"); unregister("mine")
    False
    """
    accelerated[deprecation_id] = False


def unregister(deprecation_id: str) -> None:
    """Forget an identifier."""
    _check(deprecation_id)
    del accelerated[deprecation_id]


def accelerate(deprecation_id: str) -> None:
    """From now on its use is an error, where `warn` tells of it."""
    _check(deprecation_id)
    accelerated[deprecation_id] = True


def is_accelerated(deprecation_id: str) -> bool:
    """Whether its use is an error."""
    _check(deprecation_id)
    return accelerated[deprecation_id]


def warn(deprecation_id: str, message: str, stacklevel: int, *,
         error_class: type[Exception] = ValueError) -> None:
    """Tell that something deprecated is used: by a DeprecationWarning, or an error.

    Args:
      deprecation_id: which one.
      message: what users read.
      stacklevel: no meaning here: the warning is at the line of the user's program.
      error_class: of the error.
    """
    _check(deprecation_id)
    warn_deprecated(deprecation_id, message, error_class)


def _check(deprecation_id: str) -> None:
    if deprecation_id not in accelerated:
        raise ValueError(f"{deprecation_id=!r} not registered.")


# -- names of modules ------------------------------------------------------------------------------

Deprecated = Mapping[str, tuple[str, Any]]


def deprecation_getattr(module: str, deprecations: Deprecated) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has deprecated names.

    Args:
      module: its name.
      deprecations: for each name the message, and the value; None where the name is gone.

    >>> find = deprecation_getattr("mine", {"old": ("mine.old is gone.", None)})
    >>> find("old")
    Traceback (most recent call last):
    AttributeError: mine.old is gone.
    """
    def find(name: str) -> Any:
        if name not in deprecations:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        message, value = deprecations[name]
        if value is None:
            raise AttributeError(message)
        _warn(message, DeprecationWarning)
        return value

    return find


def accelerate_getattr_deprecation(module: ModuleType, *names: str) -> None:
    """From now on these deprecated names of a module are gone; its table is `_deprecations`."""
    table = own_dictionary(module)["_deprecations"]
    for name in names:
        table[name] = table[name][0], None


def is_accelerated_attribute(module: ModuleType, name: str) -> bool:
    """Whether a deprecated name of a module is gone."""
    return own_dictionary(module)["_deprecations"][name][1] is None
