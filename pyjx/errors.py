"""The errors that pyjx raises by name.

Each message says what happened, where the traced value came from, one way out, and where to read
more: each error has a page of its name in the documentation. All are subclasses of the built-in
error one would expect, so code that catches TypeError keeps working.
"""

from __future__ import annotations

from typing import Any

from pyjx.jaxlib_api import JaxRuntimeError
from pyjx.lazy import directory


class JAXTypeError(TypeError):
    """A TypeError that comes from tracing."""

    def __init__(self, message: str) -> None:
        super().__init__(_explained(self, message))


class JAXIndexError(IndexError):
    """An IndexError that comes from tracing."""

    def __init__(self, message: str) -> None:
        super().__init__(_explained(self, message))


class ConcretizationTypeError(JAXTypeError):
    """A value was needed that is not known while the function is traced.

    Inside a transformed function arrays are tracers: their shape and dtype are known, their value
    is not. Python code that needs the value, such as `int(x)` or a shape computed from `x`, cannot
    run.

    >>> import pyjx as jax
    >>> jax.jit(lambda x: float(x))(1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ConcretizationTypeError: Abstract tracer value encountered where concrete value is expected: ...
    """

    def __init__(self, tracer: Any, context: str = "") -> None:
        super().__init__(
            _lines(
                "Abstract tracer value encountered where concrete value is expected: "
                f"{_describe(tracer)}",
                context,
                _origin(tracer),
                "If the value is the same in every call, or takes few different ones, mark the "
                "argument it comes from as static (static_argnums or static_argnames of jit), and "
                "pass Python's number or a tuple of such there: arrays cannot be static.",
            )
        )


class TracerBoolConversionError(ConcretizationTypeError):
    """Python asked a traced array whether it is true, as `if`, `while`, `and` and `assert` do.

    >>> import pyjx as jax
    >>> jax.jit(lambda x: 1 if x > 0 else 2)(1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[].
    """

    def __init__(self, tracer: Any) -> None:
        JAXTypeError.__init__(
            self,
            _lines(
                f"Attempted boolean conversion of {_describe(tracer)}.",
                _origin(tracer),
                "To choose between values use jnp.where, to loop use lax.while_loop, "
                "and to combine conditions use & | ~ or jnp.logical_and and its like.",
            ),
        )


class TracerArrayConversionError(JAXTypeError):
    """A traced array was given to NumPy, which needs values.

    >>> import numpy as np, pyjx as jax
    >>> jax.jit(lambda x: np.sin(x))(1.0)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TracerArrayConversionError: The numpy.ndarray conversion method __array__() was called on ...
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__(
            _lines(
                "The numpy.ndarray conversion method __array__() was called on "
                f"{_describe(tracer)}",
                _origin(tracer),
                "Call the function of jax.numpy in place of NumPy's, or run NumPy code "
                "outside of the traced function.",
            )
        )


class TracerIntegerConversionError(JAXTypeError):
    """A traced array was used where Python needs an integer: an index of a list, a `range`.

    >>> import pyjx as jax
    >>> jax.jit(lambda i: [1, 2][i])(1)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    TracerIntegerConversionError: The __index__() method was called on traced array ...
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__(
            _lines(
                f"The __index__() method was called on {_describe(tracer)}",
                _origin(tracer),
                "To index, make the indexed sequence an array with jnp.asarray; to loop a traced "
                "number of times use lax.while_loop; or mark the argument as static in jit and "
                "pass Python's int there: arrays cannot be static.",
            )
        )


class NonConcreteBooleanIndexError(JAXIndexError):
    """An array was indexed by a traced mask, which would give it a shape that is not known.

    >>> import pyjx as jax
    >>> jax.jit(lambda x: x[x > 0])(jax.numpy.ones(3))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    NonConcreteBooleanIndexError: Array boolean indices must be concrete; got bool[3]
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__(
            _lines(
                f"Array boolean indices must be concrete; got {_type(tracer)}",
                _origin(tracer),
                "The number of selected elements would decide the shape of the result. Keep the "
                "shape: jnp.where(mask, x, 0), or x.at[mask].set(...) to assign, or give the "
                "number of elements as the size argument of jnp.nonzero or jnp.where.",
            )
        )


class UnexpectedTracerError(JAXTypeError):
    """A tracer was used after the transformation that made it had ended.

    That happens when a traced function stores an intermediate value outside itself, in a global, a
    closure or an attribute, and the value is used later.
    """

    def __init__(self, msg: str) -> None:
        super().__init__(msg)


class KeyReuseError(JAXTypeError):
    """A random key was used twice (see the flag `jax_debug_key_reuse`)."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


class InconclusiveDimensionOperation(Exception):
    """A question about symbolic dimensions whose answer depends on the dimensions' values."""

    def __init__(self, message: str) -> None:
        super().__init__(_explained(self, message))


class JaxprTypeError(TypeError):
    """A jaxpr breaks a rule of the IR: a bug of whoever built it."""

    def __init__(self, message: str) -> None:
        super().__init__(_explained(self, message))


def escaped_tracer_error(tracer: Any, details: str = "") -> UnexpectedTracerError:
    """The error for a tracer that is used outside the transformation that made it.

    Args:
      tracer: the tracer.
      details: what is known of the function that was traced and of the line that made the value;
        by default the tracer is asked.
    """
    return UnexpectedTracerError(
        _lines(
            "Encountered an unexpected tracer. A function transformed by JAX had a side effect: "
            f"an intermediate value with type {_type(tracer)} wrapped in a "
            f"{type(tracer).__name__} escaped the scope of the transformation.",
            details or _origin(tracer),
            "Return the value from the function in place of storing it in a global, a closure or "
            "an attribute; jax.checking_leaks() reports the leak where it happens.",
        )
    )


def _type(tracer: Any) -> str:
    aval = getattr(tracer, "aval", None)
    return type(tracer).__name__ if aval is None else str(aval.str_short())


def _describe(tracer: Any) -> str:
    return f"traced array with shape {_type(tracer)}"


def _origin(tracer: Any) -> str:
    origin = getattr(tracer, "_origin_msg", None)
    return "" if origin is None else str(origin()).strip("\n")


# Programs look for this link; what the page says holds here, too.
_PAGE = "https://docs.jax.dev/en/latest/101/errors.html"
_EXPLAINED_BY_JAX = (
    "ConcretizationTypeError", "KeyReuseError", "NonConcreteBooleanIndexError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "UnexpectedTracerError")


def _explained(error: BaseException, message: str) -> str:
    """A message, and where the error is explained."""
    name = next(c.__name__ for c in type(error).__mro__ if c.__module__ == __name__)
    page = f"More: help(jax.errors.{name}), or docs/errors/{name}.md."
    if name in _EXPLAINED_BY_JAX:
        page += f" JAX's page of it: {_PAGE}#jax.errors.{name}"
    return message if message.endswith(page) else f"{message}\n{page}"  # it has been pickled


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


__all__ = [
    "ConcretizationTypeError", "InconclusiveDimensionOperation", "JAXIndexError", "JAXTypeError",
    "JaxRuntimeError", "JaxprTypeError", "KeyReuseError", "NonConcreteBooleanIndexError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "UnexpectedTracerError", "escaped_tracer_error",
]
__dir__ = directory(__name__, __all__)
