"""Warnings of what is deprecated, by identifiers: errors, where users ask for that."""

from __future__ import annotations

from pyjx.core.frames import warn

# Whether its use is an error: of what JAX knows as deprecated, what pyjx warns of.
accelerated: dict[str, bool] = {
    "jax-nn-one-hot-float-input": False,
    "jax-numpy-astype-complex-to-real": False,
}


def warn_deprecated(deprecation_id: str, message: str,
                    error_class: type[Exception] = ValueError) -> None:
    """Tell that something deprecated is used: by a DeprecationWarning, or an error."""
    if accelerated[deprecation_id]:
        raise error_class(message)
    warn(message, DeprecationWarning)
