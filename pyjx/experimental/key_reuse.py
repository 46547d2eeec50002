"""Random keys that are used twice: what functions do to keys.

With the flag `jax_debug_key_reuse` each call is checked, and keys remember from call to call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr
from pyjx.engine.key_reuse import Forward, KeyReuseSignature, Sink, Source, jaxpr_signature
from pyjx.errors import KeyReuseError
from pyjx.lazy import directory
from pyjx.runtime.abstract import make_jaxpr

__all__ = ["Forward", "KeyReuseError", "KeyReuseSignature", "Sink", "Source", "check_key_reuse",
           "check_key_reuse_jaxpr", "function_type_signature", "jaxpr_type_signature"]


def jaxpr_type_signature(jaxpr: Jaxpr | ClosedJaxpr) -> KeyReuseSignature:
    """What a program does to the keys among its constants and arguments, numbered in this order.

    Raises:
      KeyReuseError: it uses a key twice.
    """
    return jaxpr_signature(jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr)


def function_type_signature(fun: Callable[..., Any], *args: Any) -> KeyReuseSignature:
    """What a function does to the keys among its arguments: which it consumes (`Sink`), which
    results are new keys (`Source`), and which are arguments (`Forward`).

    Raises:
      KeyReuseError: it uses a key twice.

    >>> import pyjx as jax
    >>> from pyjx.experimental.key_reuse import function_type_signature
    >>> function_type_signature(jax.random.split, jax.random.key(0))
    KeyReuseSignature(Sink(0), Source(0))
    """
    return jaxpr_type_signature(make_jaxpr(fun)(*args))


def check_key_reuse_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Raise KeyReuseError if a program uses a key twice."""
    jaxpr_type_signature(jaxpr)


def check_key_reuse(fun: Callable[..., Any], /, *args: Any) -> None:
    """Raise KeyReuseError if a function uses a key twice.

    >>> import pyjx as jax
    >>> from pyjx.experimental.key_reuse import check_key_reuse
    >>> check_key_reuse(lambda k: jax.random.normal(jax.random.split(k)[0]), jax.random.key(0))
    """
    function_type_signature(fun, *args)


__dir__ = directory(__name__, __all__)
