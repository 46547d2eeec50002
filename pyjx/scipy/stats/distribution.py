"""Distributions as modules: what their functions have in common, and which follow from others."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import own_dictionary
from pyjx.numpy.operands import is_integer, numpy_function
from pyjx.numpy.promotion import operands, promote_dtypes_as_floats
from pyjx.numpy.ufuncs import as_array
from pyjx.scipy.special.logarithms import log_probability
from pyjx.scipy.special.operands import reals as real_floats
from pyjx.scipy.special.operands import weak_as

Body = Callable[..., Array]

SUMMARIES = {
    "logpdf": "The logarithm of the density.",
    "pdf": "The density.",
    "logpmf": "The logarithm of the probability of k.",
    "pmf": "The probability of k.",
    "cdf": "The probability of values up to {}.",
    "logcdf": "The logarithm of `cdf`.",
    "sf": "The probability of values above {}: 1 - `cdf`.",
    "logsf": "The logarithm of `sf`.",
    "ppf": "The quantiles: the inverse of `cdf`.",
    "isf": "The inverse of `sf`.",
}


# Distributions refuse complex numbers by a TypeError, as comparisons do.
reals = partial(real_floats, refused=TypeError)


def of_one_dtype(name: str, *args: ArrayLike) -> list[Array]:
    """The arguments of the function `name` as arrays of one inexact dtype, each of its own shape.

    Raises:
      TypeError: an argument is no array or scalar.
    """
    return [as_array(x) for x in promote_dtypes_as_floats(*operands(name, *args))]


class Distribution:
    """A distribution, whose functions are a module of `scipy.stats`.

    Args:
      name: that of the module.
      doc: its documentation.
      parameters: of its functions, in Python's words: the value, parameters of the shape, and those
        of place and scale with their defaults.
      at: the arguments of examples.
      valid: which parameters are those of a distribution; elsewhere results are nan.
      setup: a line of examples, before the call.

    The bodies of its functions, and `valid`, take what they name of: the parameters; `y`, the value
    in units of `scale` from `loc`; `j`, the value less `loc`; and `whole`, whether both came as
    integers.
    """

    def __init__(self, name: str, doc: str, parameters: str, at: str, valid: Body | None = None,
                 setup: str = "") -> None:
        self.module = sys.modules[f"pyjx.scipy.stats.{name}"]
        self.name, self.parameters, self.at, self.valid = name, parameters, at, valid
        self.setup = f"    >>> {setup}\n" if setup else ""
        self.functions: dict[str, Any] = {}
        self.module.__doc__ = doc

    def __call__(self, name: str, value: float, at: str = "", parameters: str = "",
                 mark: Callable[[Any], Any] = lambda fun: fun, weak: bool = False,
                 arrays: Callable[..., list[Array]] = reals,
                 compiled: Callable[[Any], Any] = numpy_function) -> Callable[[Body], Body]:
        """Decorator: what it decorates computes a function.

        Args:
          value: of the example, rounded.
          at, parameters: where they are others than those of the distribution.
          mark: what decides, of the function, how weak the type of its result is.
          weak: the result has a weak type where all arguments have one.
          arrays: what makes arrays of the arguments.
          compiled: what makes the public function.
        """
        names = _names(parameters or self.parameters)

        def decorated(body: Body) -> Body:
            def compute(*args: ArrayLike) -> Array:
                xs = arrays(f"{self.name}.{name}", *args)
                given: dict[str, Any] = dict(zip(names, xs, strict=True))
                if "whole" in body.__code__.co_varnames:
                    given["whole"] = all([is_integer(x) for n, x in zip(names, args, strict=True)
                                          if n in (names[0], "loc")])
                if self.valid is not None:
                    given[names[0]] = jnp.where(_called(self.valid, given), xs[0], math.nan)
                out = _called(body, given)
                return weak_as(out, given[names[0]], *xs[1:]) if weak else out

            self._publish(name, compute, value, at, parameters, body.__doc__,
                          lambda fun: compiled(mark(fun)))
            return body

        return decorated

    def derived(self, **values: float) -> None:
        """Functions that are the exponential of one that there is, or its logarithm, and the
        values of their examples."""
        for name, value in values.items():
            turn = log_probability if name.startswith("log") else jnp.exp
            other = self.functions[name.removeprefix("log") if turn is log_probability
                                   else f"log{name}"]
            self._publish(name, _composed(turn, other), value)

    def _publish(self, name: str, compute: Body, value: float, at: str = "", parameters: str = "",
                 doc: str | None = None, compiled: Callable[[Any], Any] = numpy_function) -> None:
        parameters = parameters or self.parameters
        names = _names(parameters)
        scope: dict[str, Any] = {"compute": compute, "__name__": self.module.__name__}
        line = f"lambda {parameters}: compute({', '.join(names)})"  # of a declaration of ours
        made = scope[name] = eval(compile(line, __file__, "eval"), scope)
        made.__name__ = made.__qualname__ = name
        made.__code__ = made.__code__.replace(co_name=name, co_qualname=name)
        made.__annotations__ = {**dict.fromkeys(names, ArrayLike), "return": Array}
        made.__doc__ = (
            f"{(doc or SUMMARIES[name].format(names[0])).rstrip()}\n\n    >>> import pyjx as jax\n"
            f"{self.setup}    >>> round(float(jax.scipy.stats.{self.name}.{name}({at or self.at}))"
            f", 3)\n    {value}\n")
        self.functions[name] = compiled(made)
        own_dictionary(self.module).update(
            {name: self.functions[name], "__all__": sorted(self.functions)})


def _names(parameters: str) -> list[str]:
    return [p.partition("=")[0] for p in parameters.split(", ")]


def _composed(turn: Callable[[Array], Array], fun: Body) -> Body:
    return lambda *args: turn(fun(*args))


def _called(fun: Body, given: dict[str, Any]) -> Array:
    """A function of what it names."""
    code = fun.__code__
    wanted = code.co_varnames[:code.co_argcount]
    return fun(*[(given[w] if w in given else _standard(w, given)) for w in wanted])


def _standard(wanted: str, given: dict[str, Any]) -> Array:
    x = next(iter(given.values()))
    return x - given["loc"] if wanted == "j" else (x - given["loc"]) / given["scale"]
