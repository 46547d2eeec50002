"""Minimization of scalar functions: `minimize`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.scipy.optimize.quasi_newton import OptimizeResults, minimize_bfgs, minimize_lbfgs
from pyjx.transforms.arguments import wraps

# By name, with the options that each has.
_METHODS: dict[str, tuple[Callable[..., OptimizeResults], tuple[str, ...]]] = {
    "bfgs": (minimize_bfgs, ("maxiter", "norm", "gtol", "line_search_maxiter")),
    "l-bfgs-experimental-do-not-rely-on-this": (minimize_lbfgs, (
        "maxiter", "norm", "maxcor", "ftol", "gtol", "maxfun", "maxgrad", "maxls"))}


def minimize(fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] = (), *, method: str,
             tol: Any = None, options: Mapping[str, Any] | None = None) -> OptimizeResults:
    """A minimum of a function of a vector, near a start. It may be jitted and mapped.

    Args:
      fun: `fun(x, *args)` is a scalar that can be differentiated.
      x0: array of float or complex dtype and shape (n,): where to start. Of complex numbers the
        real parts and then the imaginary ones are the variables, which `hess_inv` is of.
      args: further arguments of `fun`.
      method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this" for L-BFGS, whose memory grows
        with n only.
      tol: what the norm of the gradient is to be below; the option `gtol`.
      options: `maxiter` (200 n by default), `gtol` (1e-5), `norm` (which norm of the gradient; inf,
        of L-BFGS 2); of BFGS `line_search_maxiter` (10); of L-BFGS `maxcor` (how many steps to
        remember; 10), `ftol` (2.2e-9: the least decrease of the value), `maxfun`, `maxgrad` (no
        limits) and `maxls` (20).

    Raises:
      TypeError: `args` is no tuple, the result of `fun` is no scalar, or an option is unknown.
      ValueError: the method is unknown, or `x0` is no vector.

    >>> import pyjx as jax
    >>> result = jax.scipy.optimize.minimize(
    ...     lambda x: ((x - 1.0) ** 2).sum(), jax.numpy.zeros(2), method="BFGS")
    >>> bool(result.success), result.x.tolist()
    (True, [1.0, 1.0])
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    if method.lower() not in _METHODS:
        raise ValueError(f"Method {method} not recognized; expected one of {', '.join(_METHODS)}")
    x0 = jnp.asarray(x0)
    if x0.ndim != 1:
        raise ValueError(f"minimize: expected x0 of shape (n,), got {x0.shape}")
    given = dict(options or {})
    if tol is not None:
        given.setdefault("gtol", tol)
    run, known = _METHODS[method.lower()]
    for option in given:
        if option not in known:
            raise TypeError(f"minimize: got an unexpected keyword argument {option!r} in options; "
                            f"those of {method} are {', '.join(known)}.")
    given_args = wraps(fun, lambda x: fun(x, *args))
    if not jnp.iscomplexobj(x0):
        return run(given_args, x0, **given)
    return _over_complex(run, given_args, x0, given)


def _over_complex(run: Callable[..., OptimizeResults], fun: Callable[..., Any], x0: Any,
                  options: dict[str, Any]) -> OptimizeResults:
    """The minimum over the real and imaginary parts, of which there are twice as many."""
    n = x0.size

    def whole(parts: Any) -> Any:
        return lax.complex(parts[:n], parts[n:])

    options.setdefault("maxiter", 200 * n)
    end = run(wraps(fun, lambda parts: fun(whole(parts))),
              jnp.concatenate([x0.real, x0.imag]), **options)
    return end._replace(x=whole(end.x), jac=jnp.conj(whole(end.jac)))
