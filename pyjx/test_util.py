"""Checks of derivatives against differences of the function's values.

They look along one random direction, so that they cost a few calls whatever the number of inputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.core.value_texts import shortened
from pyjx.lazy import deferred, directory
from pyjx.transforms.linearize import jvp, linearize
from pyjx.transforms.vjp import vjp
from pyjx.tree_util import tree_leaves, tree_map

rule_checks = deferred("pyjx.inspect.rule_checks")  # for derivatives that are wrong

__all__ = ["check_grads", "check_jvp", "check_vjp"]

# A tolerance: a number, or one for each dtype.
Tolerance = float | Mapping[Any, float] | None

_EPS = 1e-4  # the step

_FLOAT8 = ("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
           "float8_e5m2", "float8_e5m2fnuz")


def _by_dtype(**tolerances: float) -> dict[Any, float]:
    small = {"float4_e2m1fn": 1.0, "float8_e8m0fnu": 1.0, **dict.fromkeys(_FLOAT8, 1e-1)}
    return {np.dtype(getattr(ml_dtypes, name, name)): tolerance
            for name, tolerance in {**small, **tolerances}.items()}


# Relative and absolute tolerances, unless told otherwise: of derivatives, and of values.
default_gradient_tolerance = _by_dtype(bfloat16=1e-1, float16=1e-2, float32=2e-3, float64=1e-5,
                                       complex64=1e-3, complex128=1e-5)
value_tolerance = _by_dtype(bfloat16=1e-2, float16=1e-3, float32=1e-6, float64=1e-15,
                            complex64=1e-6, complex128=1e-15)


def check_jvp(f: Callable[..., Any], f_jvp: Callable[..., Any], args: Sequence[Any],
              atol: Tolerance = None, rtol: Tolerance = None, eps: float = _EPS,
              err_msg: str = "") -> None:
    """Compare forward-mode derivatives with central differences, along a random direction.

    Args:
      f: a function of pytrees of arrays.
      f_jvp: `(args, tangents) -> (f(*args), its tangent)`, such as `partial(jax.jvp, f)`.
      args: the arguments, as a tuple.
      atol, rtol: tolerances, numbers or dictionaries from dtypes to numbers; by default they are
        those of the dtypes.
      eps: the step of the differences.
      err_msg: what the error begins with.

    Raises:
      AssertionError: they differ.

    >>> from functools import partial
    >>> import numpy as np
    >>> import pyjx as jax
    >>> jax.test_util.check_jvp(jax.numpy.sin, partial(jax.jvp, jax.numpy.sin), (np.float32(1),))
    """
    atol, rtol = [default_gradient_tolerance if t is None else t for t in (atol, rtol)]
    args = tuple(args)
    tangents = rand_like(np.random.RandomState(0), args)
    out, out_tangent = f_jvp(args, tangents)
    expected = f(*args)
    _check_dtypes(out, out_tangent)
    _check_dtypes(out, expected)
    check_close(out, expected, atol, rtol, _said(err_msg, "primal"))
    check_close(out_tangent, _difference(f, args, tangents, eps), atol, rtol,
                _said(err_msg, "tangent"))


def check_vjp(f: Callable[..., Any], f_vjp: Callable[..., Any], args: Sequence[Any],
              atol: Tolerance = None, rtol: Tolerance = None, eps: float = _EPS,
              err_msg: str = "") -> None:
    """Compare reverse-mode derivatives with central differences, along a random direction.

    Args:
      f: a function of pytrees of arrays.
      f_vjp: `(*args) -> (f(*args), function of cotangents)`, such as `partial(jax.vjp, f)`.
      args, atol, rtol, eps, err_msg: as those of `check_jvp`.

    Raises:
      AssertionError: they differ.

    >>> from functools import partial
    >>> import numpy as np
    >>> import pyjx as jax
    >>> jax.test_util.check_vjp(jax.numpy.sin, partial(jax.vjp, jax.numpy.sin), (np.float32(1),))
    """
    atol, rtol = [default_gradient_tolerance if t is None else t for t in (atol, rtol)]
    args = tuple(args)
    rng = np.random.RandomState(0)
    out, pull = f_vjp(*args)
    check_close(out, f(*args), atol, rtol, _said(err_msg, "primal"))
    tangents = rand_like(rng, args)
    out_tangent = _difference(f, args, tangents, eps)
    cotangent = rand_like(rng, out)
    pulled = tree_map(np.conj, pull(tree_map(_conjugated, cotangent)))
    # the same number by both ways: <tangent, pulled cotangent> = <pushed tangent, cotangent>
    check_close(inner_product(tangents, pulled), inner_product(out_tangent, cotangent), atol, rtol,
                _said(err_msg, "cotangent projection"))


def check_grads(f: Callable[..., Any], args: Sequence[Any], order: int,
                modes: Sequence[str] = ("fwd", "rev"), atol: Tolerance = None,
                rtol: Tolerance = None, eps: float | None = None) -> None:
    """Compare derivatives up to an order with central differences, along random directions.

    Args:
      f: a function of pytrees of arrays.
      args: the arguments, as a sequence.
      order: of the highest derivatives.
      modes: which of forward mode ("fwd"), reverse mode ("rev") and `linearize` ("lin") are
        checked, nested in all ways: a sequence, or one text such as "fwd,rev".
      atol, rtol: as those of `check_jvp`.
      eps: the step of the differences; by default 1e-4.

    Raises:
      ValueError: there is no mode of such a name.
      AssertionError: they differ; notes say which rules are wrong, if one operation's is.

    >>> import numpy as np
    >>> import pyjx as jax
    >>> jax.test_util.check_grads(jax.numpy.sin, (np.float32(1),), order=2)
    """
    given = re.findall(r"fwd|rev|lin|\w+", modes) if isinstance(modes, str) else modes
    if not {*given} <= {"fwd", "rev", "lin"}:
        raise ValueError("check_grads: modes must be of 'fwd', 'rev' and 'lin', got "
                         f"{shortened(modes)}")
    options: dict[str, Any] = {"atol": atol, "rtol": rtol, "eps": eps or _EPS}

    def check(f: Callable[..., Any], args: tuple[Any, ...], order: int, what: str) -> None:
        for mode, name, pushed in (("fwd", "JVP", partial(jvp, f)), ("rev", "VJP", partial(vjp, f)),
                                   ("lin", "LIN", partial(_pushed_by_linearize, f))):
            if mode not in given:
                continue
            message = f"{name} of {what}" if what else name
            (check_vjp if mode == "rev" else check_jvp)(f, pushed, args, **options, err_msg=message)
            if order > 1 and mode == "rev":
                check(partial(_pulled, f), args, order - 1, message)
            elif order > 1:
                check(pushed, (args, args), order - 1, message)

    try:
        check(f, tuple(args), order, "")
    except AssertionError as error:
        for rule in rule_checks.check_rules(f, *args).wrong:
            error.add_note(f"Wrong: {rule}.")
        raise


def _pushed_by_linearize(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    out, push = linearize(f, *primals)
    return out, push(*tangents)


def _pulled(f: Callable[..., Any], *args: Any) -> Any:
    out, pull = vjp(f, *args)
    return pull(out)


def _said(message: str, what: str) -> str:
    return f"{message} {what}" if message else what


# -- arithmetic on pytrees -------------------------------------------------------------------------


def _dtype(x: Any) -> Any:
    return x.dtype if hasattr(x, "dtype") else get_aval(x).dtype


def _like(x: Any, value: Any) -> Any:
    """A value in the dtype of x; a Python scalar if that is one."""
    array = np.asarray(value).astype(_dtype(x))
    of_python = isinstance(x, (int, float, complex)) and not isinstance(x, np.generic)
    return array.item() if of_python else array


def rand_like(rng: np.random.RandomState, tree: Any) -> Any:
    """Normally distributed numbers in the shapes and dtypes of a pytree's leaves.

    >>> rand_like(np.random.RandomState(0), np.ones(2, np.float32))
    array([1.7640524, 0.4001572], dtype=float32)
    """
    def one(x: Any) -> Any:
        dtype = _dtype(x)
        value = rng.randn(*np.shape(x))
        if dtype in dtypes.complex_dtypes:
            value = value + 1j * rng.randn(*np.shape(x))
        return _like(x, value)

    return tree_map(one, tree)


def _conjugated(x: Any) -> Any:
    return _like(x, np.conj(x))


def _difference(f: Callable[..., Any], args: Any, tangents: Any, eps: float) -> Any:
    """(f(x + eps t) - f(x - eps t)) / (2 eps), where equal infinities differ by 0."""
    steps = tree_map(lambda t: _like(t, np.multiply(t, np.asarray(eps).astype(_dtype(t)))),
                     tangents)
    ahead = f(*tree_map(lambda x, h: _like(x, np.add(x, h)), args, steps))
    behind = f(*tree_map(lambda x, h: _like(x, np.subtract(x, h)), args, steps))

    def slope(a: Any, b: Any) -> Any:
        dtype = _dtype(a)
        with np.errstate(invalid="ignore"):
            change = np.where(np.equal(a, b), np.zeros((), dtype), np.subtract(a, b))
        return change.astype(dtype) * np.asarray(0.5 / eps).astype(dtype)

    return tree_map(slope, ahead, behind)


def inner_product(xs: Any, ys: Any) -> Any:
    """The real part of the inner product of two pytrees."""
    products = tree_map(lambda x, y: np.real(np.dot(np.conj(x).reshape(-1),
                                                    np.asarray(y).reshape(-1))), xs, ys)
    return sum(tree_leaves(products))


# -- comparison ------------------------------------------------------------------------------------


def _tolerance(dtype: np.dtype[Any], given: Tolerance) -> float:
    if given is not None and not isinstance(given, Mapping):
        return given
    own = {np.dtype(k): v for k, v in (given or {}).items()}
    return own.get(dtype, value_tolerance.get(dtype, 0))


def check_close(xs: Any, ys: Any, atol: Tolerance = None, rtol: Tolerance = None,
                err_msg: str = "") -> None:
    """Raise AssertionError where the leaves of two pytrees differ.

    >>> check_close({"a": np.float32([1, 2])}, {"a": np.float32([1, 2.001])}, rtol=1e-3)
    """
    def close(x: Any, y: Any) -> None:
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape, f"{err_msg}: shapes {x.shape} and {y.shape} differ"
        if x.dtype == y.dtype == dtypes.float0:
            return
        absolute, relative = [max(_tolerance(x.dtype, t), _tolerance(y.dtype, t))
                              for t in (atol, rtol)]
        x, y = [a if a.dtype.kind in "biufc" and a.dtype.isbuiltin == 1 else a.astype(np.float32)
                for a in (x, y)]
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(
                x, y, atol=absolute * x.size, rtol=relative * y.size or 1e-7, err_msg=err_msg)

    tree_map(close, xs, ys)


def _check_dtypes(xs: Any, ys: Any) -> None:
    def same(x: Any, y: Any) -> None:
        a, b = [dtypes.canonicalize_dtype(_dtype(v)) for v in (x, y)]
        assert a == b, f"dtypes {a} and {b} differ"

    tree_map(same, xs, ys)


__dir__ = directory(__name__, __all__)
