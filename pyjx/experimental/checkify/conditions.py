"""`check`: what a function asks of its values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.core.effects import Effect, Effects
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import Record
from pyjx.core.trace import Tracer
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import at_front
from pyjx.engine.batching import BatchTrace
from pyjx.engine.types import Dims, Tangents, TreeDef, Values
from pyjx.experimental.checkify.errors import Error, JaxRuntimeError, Site, on_host
from pyjx.lax.bitwise import bitwise_not
from pyjx.lax.callbacks import call_for_debugging
from pyjx.lax.reductions import argmax, reduce_or
from pyjx.lax.shapes import reshape
from pyjx.lax.slicing import dynamic_index_in_dim
from pyjx.runtime.transfers import array_from_host
from pyjx.tree_util import tree_flatten, tree_unflatten


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Say that `pred` must hold; `checkify` makes an error of it where it does not.

    Args:
      pred: a boolean scalar.
      msg: the text of the error, a format string.
      fmt_args, fmt_kwargs: pytrees of arrays that the text shows.
      debug: whether the check may be left out where nobody asks for its error, instead of the
        program being refused.

    Raises:
      TypeError: `pred` is no boolean scalar, or an argument is no array.
      JaxRuntimeError: outside of traced functions, if it does not hold.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "must be positive, got {}", x)
    ...     return jnp.log(x)
    ...
    >>> error, _ = checkify.checkify(jax.jit(f))(-2.0)
    >>> error.get()
    'must be positive, got -2.0 (`check` failed)'
    """
    aval = get_aval(pred)
    if aval.shape != () or aval.dtype != np.bool_:
        raise TypeError(f"check takes a scalar pred as argument, got {pred}")
    leaves, tree = tree_flatten((fmt_args, fmt_kwargs))
    for x in leaves:
        if not isinstance(x, (Array, Tracer, np.ndarray, np.generic)):
            raise TypeError("Formatting arguments to checkify.check need to be PyTrees of arrays, "
                            f"but got {shortened(x)} of type {type(x)}.")
    check_p.bind(bitwise_not(pred), *leaves, text=Text(msg, tree), debug=bool(debug))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A `check` that is left out where nobody asks for its error.

    >>> import pyjx as jax
    >>> from pyjx.experimental import checkify
    >>> jax.jit(lambda x: (checkify.debug_check(x > 0, "must be positive"), x)[1])(-2.0).item()
    -2.0
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise an error that another checked function has returned, or pass it on where this function
    is itself checked. Of errors of several examples, such as those that `scan` stacks, it is the
    first that counts.

    Raises:
      JaxRuntimeError: outside of traced functions, if the error is one.

    >>> from pyjx.experimental import checkify
    >>> checkify.check_error(checkify.init_error)
    """
    if not isinstance(error, Error):
        raise TypeError("check_error takes an Error as argument, got type "
                        f"{type(error)} instead.")
    failed = error._pred
    leaves = [x for first, payload in zip(error._code, error._payload, strict=True)
              for x in (first, *payload)]
    examples = get_aval(failed).shape
    if examples:
        flags = reshape(failed, (math.prod(examples),))
        if not get_aval(flags).size:
            return
        first = argmax(flags, 0, np.int32)
        failed, *leaves = [_example(x, first, len(examples)) for x in (failed, *leaves)]
    check_p.bind(failed, *leaves, text=ErrorText(tuple(error._metadata)), debug=False)


def _example(x: Any, i: Any, ndim: int) -> Any:
    """One of the examples that lie along the first `ndim` axes, counted through all of them."""
    shape = get_aval(x).shape
    return dynamic_index_in_dim(reshape(x, (math.prod(shape[:ndim]), *shape[ndim:])), i, 0, False)


class Text(Record):
    """The message of a check, which arrays complete."""

    fmt: str
    tree: TreeDef

    def __repr__(self) -> str:
        return repr(self.fmt)

    def __call__(self, *payload: Any) -> str:
        values = [x if isinstance(x, Array) else array_from_host(x) for x in payload]
        args, kwargs = tree_unflatten(self.tree, values)
        return f"{self.fmt.format(*args, **kwargs)} (`check` failed)"


class ErrorText(Record):
    """The message of an error that is checked again: that of the site that failed first."""

    sites: tuple[Site, ...]

    def __repr__(self) -> str:
        return f"one of {len(self.sites)} errors"

    def __call__(self, *payload: Any) -> str:
        left = iter(payload)
        entries = [(next(left), [next(left) for _ in site.payload_avals]) for site in self.sites]
        error = Error(np.True_, [e[0] for e in entries], self.sites, [e[1] for e in entries])
        first = error.failures()[0]
        return first.site.message(*first.payload)


class CheckEffect(Effect):
    """A check is made."""

    __slots__ = ()

    repeatable = True

    def __repr__(self) -> str:
        return "Check"


_effects: Effects = frozenset({CheckEffect()})


def _impl(failed: Any, *payload: Any, text: Any, debug: bool) -> list[Any]:
    if not debug and bool(failed):
        raise JaxRuntimeError(text(*[on_host(x) for x in payload]))
    return []


def _jvp(primals: Values, tangents: Tangents, **params: Any) -> Any:
    return check_p.bind(*primals, **params), []


def _batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
    """The first of the examples that fail speaks for all."""
    size = trace.axis.size
    failed, *payload = [x if d is None else at_front(x, d, size)
                        for x, d in zip(operands, dims, strict=True)]
    first: Any = np.int32(0)
    if dims[0] is not None:
        first = argmax(failed, 0, np.int32)
        failed = reduce_or(failed, (0,))
    check_p.bind(failed, *[
        x if d is None else dynamic_index_in_dim(x, first, 0, False)
        for x, d in zip(payload, dims[1:], strict=True)], **params)
    return [], []


def _not_functionalized(*operands: Any, debug: bool, **params: Any) -> list[Any]:
    if debug:
        return []
    if configuration.experimental_unsafe_xla_runtime_errors.value:
        call_for_debugging(lambda *values: _impl(*values, debug=False, **params), operands,
                           ordered=False, partitioned=False)
        return []
    raise ValueError(
        "Cannot abstractly evaluate a checkify.check which was not functionalized. This probably "
        "means you tried to stage (jit/scan/pmap/...) a `check` without functionalizing it through "
        "`checkify.checkify`. Wrap the function that is compiled, as in "
        "error, out = jax.jit(checkify.checkify(f))(x); error.throw() raises what failed. Of "
        "indices: jax.debug.bounds_check(jax.jit(f)), in this order.")


check_p: Primitive = register(Primitive(
    "check", multiple_results=True, shape_rule=lambda *avals, **params: [], impl=_impl, jvp=_jvp,
    batch_axis=_batch, decomposition=_not_functionalized, effects=lambda params: _effects,
))
