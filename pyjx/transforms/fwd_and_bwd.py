"""The two halves of reverse mode as functions of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.runtime.jit import jit
from pyjx.transforms.arguments import at_argnums, canonical_argnums, check_callable, require_argnums
from pyjx.transforms.vjp import vjp


def fwd_and_bwd(fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False,
                jitted: bool = True) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of a function, compiled one by one.

    Args:
      fun: arguments and results are pytrees of arrays.
      argnums: position or positions of the arguments to differentiate by.
      has_aux: `fun` returns a pair, whose second element is passed on undifferentiated.
      jitted: compile both.

    Returns:
      `(fwd, bwd)`. `fwd` takes the arguments of `fun` and returns `(output, residuals)`, and the
      auxiliary data as third element with `has_aux`. `bwd` takes the residuals and a cotangent of
      the output, and returns the cotangent of the argument at `argnums`, or a tuple of cotangents.

    Raises:
      TypeError: `fun` is not callable.

    >>> import pyjx as jax
    >>> fwd, bwd = jax.fwd_and_bwd(lambda x, y: x * y, 0)
    >>> out, residuals = fwd(2.0, 3.0)
    >>> float(out), float(bwd(residuals, 1.0))
    (6.0, 3.0)
    """
    check_callable(fun)
    numbers = canonical_argnums("fwd_and_bwd", argnums)

    def fwd(*args: Any, **kwargs: Any) -> Any:
        require_argnums(numbers, len(args))
        f, dynamic = at_argnums(fun, numbers, args, kwargs)
        return vjp(f, *dynamic, has_aux=has_aux)

    def bwd(residuals: Callable[[Any], Any], outgrad: Any) -> Any:
        cotangents = residuals(outgrad)
        return cotangents[0] if isinstance(numbers, int) else cotangents

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
