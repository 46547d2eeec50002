"""`bounds_check`: a function whose indices out of bounds are errors."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pyjx.core.frames import user_frame
from pyjx.core.trace import Tracer
from pyjx.core.tracebacks import api_boundary
from pyjx.experimental.checkify.conditions import check_error
from pyjx.experimental.checkify.errors import Error, Site, index_checks
from pyjx.experimental.checkify.transformation import checkify
from pyjx.jaxlib_api import PjitFunction
from pyjx.runtime.jit import JitOptions, jit, spec_of

P = ParamSpec("P")
R = TypeVar("R")


def bounds_check(fun: Callable[P, R]) -> Callable[P, R]:
    """`fun`, where an index out of bounds raises an error in place of being clamped or dropped.

    It computes the same otherwise, with a comparison for each index, and waits for each result.

    Args:
      fun: a function of arrays, jitted or not; one with static arguments is to be jitted first.

    Returns:
      The compiled function, which raises IndexError with the index, the axis and the user's line.
      Within functions that are checked by `checkify` the error is passed on.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> second = jax.debug.bounds_check(jax.jit(lambda x: x[1]))
    >>> second(jnp.array([3.0, 4.0])).item()
    4.0
    >>> second(jnp.ones(1))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    IndexError: index 1 is out of bounds for axis 0, of size 1, of an array of shape (1,) ...
    """
    if not callable(fun):
        raise TypeError(f"bounds_check: fun must be callable, got {fun!r}.")
    options: JitOptions = {}
    body: Callable[..., Any] = fun
    if isinstance(fun, PjitFunction):
        spec = spec_of(fun)
        body = spec.fun
        options = {"static_argnums": spec.options.static_argnums,
                   "static_argnames": spec.options.static_argnames}
    checked: Callable[..., tuple[Error, Any]] = jit(checkify(body, index_checks), **options)

    @wraps(fun)
    @api_boundary
    def with_checks(*args: P.args, **kwargs: P.kwargs) -> R:
        error, result = checked(*args, **kwargs)
        if isinstance(error._pred, Tracer):
            check_error(error)
        else:
            failure = error.first_failure()
            if failure is not None:
                raise IndexError(_message(*failure))
        return result  # type: ignore[no-any-return]

    return with_checks


def _message(site: Site, payload: list[Any]) -> str:
    frame = user_frame(site.source.traceback)
    where = ""
    if frame is not None:
        line = linecache.getline(frame.file_name, frame.start_line).strip()
        code = f": `{line}`" if line else ""
        where = f" at {frame.file_name}:{frame.start_line} ({frame.function_name}){code}"
    text = site.message.as_written(*payload)  # type: ignore[attr-defined]
    return f"{text},{where}. Correct the index, or limit it with jnp.clip."
