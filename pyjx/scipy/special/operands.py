"""Arguments of special functions: floats of one shape, and when the type of a result is weak."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.engine.custom_derivative_calls import SymbolicZero
from pyjx.numpy.operands import is_complex, is_inexact
from pyjx.numpy.promotion import convert, is_arraylike, promote_args_as_floats, spread_all, strong
from pyjx.numpy.ufuncs import as_array
from pyjx.transforms.custom_jvp import custom_jvp
from pyjx.tree_util import tree_map

P = ParamSpec("P")


def floats(name: str, *args: Any) -> list[Array]:
    """The arguments of the function `name` as arrays of one inexact dtype and one shape; Python
    integers may be of any size.

    Raises:
      TypeError: an argument is no array or scalar, or the shapes do not broadcast.
    """
    return [as_array(x) for x in spread_all(name, *promote_args_as_floats(name, *args))]


def reals(name: str, *args: Any, refused: type[Exception] = ValueError) -> list[Array]:
    """Like `floats`, of a real dtype; complex arguments are refused by this error."""
    xs = floats(name, *args)
    if is_complex(xs[0]):
        raise refused(f"{name} does not support complex-valued inputs.")
    return xs


def strong_throughout(x: Array) -> Array:
    """The array with no weak type, whose cotangents have none either.

    It is a product with one, whose derivative is strong; that of `strong`, a conversion, has the
    weak type of the operand.
    """
    aval = get_aval(x)
    return lax.mul(x, np.ones((), aval.dtype)[()]) if aval.weak_type else x


def strongly(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arrays, whose weak types it is not told: its results have none."""

    @functools.wraps(fun)
    def wrapped(*xs: Array) -> Any:
        return fun(*map(strong, xs))

    return wrapped


def strong_of(*names: str) -> Callable[[Callable[P, Array]], Callable[P, Array]]:
    """Decorator: where one of these arguments is an array, the result has no weak type, as in JAX.
    """

    def decorated(fun: Callable[P, Array]) -> Callable[P, Array]:
        signature = inspect.signature(fun)

        @functools.wraps(fun)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> Array:
            out = fun(*args, **kwargs)
            given = signature.bind(*args, **kwargs).arguments
            ranked = [name for name in names if name in given and get_aval(given[name]).shape]
            return strong_throughout(out) if ranked else out

        return wrapped

    return decorated


def strong_of_arrays(fun: Callable[P, Array]) -> Callable[P, Array]:
    """The function, whose result for an array as first argument has no weak type, as in JAX."""
    return strong_of(next(iter(inspect.signature(fun).parameters)))(fun)


def strong_of_first(fun: Callable[P, Array]) -> Callable[P, Array]:
    """Like `strong_of_arrays`; where all arguments are weak, the first one already loses its weak
    type before the others come in, so that cotangents of the others are weak as they are."""
    signature = inspect.signature(fun)

    @functools.wraps(fun)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Array:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return fun(*args, **kwargs)  # Python's own error
        name, x = next(iter(bound.arguments.items()))
        given = bound.arguments.values()
        if all([is_arraylike(y) and get_aval(y).weak_type for y in given]) and is_inexact(x):
            bound.arguments[name] = strong_throughout(x) if get_aval(x).shape else x
        return fun(*bound.args, **bound.kwargs)

    return strong_of_arrays(wrapped)


def weak_as(x: Array, *args: Any) -> Array:
    """The array with a weak type where all of `args`, what it was computed from, have one."""
    return convert(x, get_aval(x).dtype, all([get_aval(a).weak_type for a in args]))


def in_single(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arrays of one dtype, computed in float32 where that is narrower."""

    @functools.wraps(fun)
    def wrapped(*xs: Array) -> Any:
        dtype = get_aval(xs[0]).dtype
        if dtype.itemsize >= 4:
            return fun(*xs)
        out = fun(*[convert(x, np.dtype(np.float32)) for x in xs])
        return tree_map(lambda y: convert(y, dtype), out)

    return wrapped


def partials(fun: custom_jvp, *rules: Callable[..., Array] | None) -> None:
    """Give a function of arrays of one shape its partial derivatives, `(out, *args) -> Array`.

    Those of arguments that are not differentiated are not computed. None stands for an argument
    in which there is no derivative.
    """

    def jvp(primals: Any, tangents: Any) -> Any:
        out = fun(*primals)
        total: Any = None
        for rule, t in zip(rules, tangents, strict=True):
            if rule is not None and type(t) is not SymbolicZero:
                part = t * rule(out, *primals)
                total = part if total is None else total + part
        return out, jnp.zeros_like(out) if total is None else total

    fun.defjvp(jvp, symbolic_zeros=True)
