"""Taylor mode: derivatives of high order along a curve, at polynomial cost.

A value is pushed along as the coefficients of its Taylor series in the curve's parameter. Linear
operations act on each coefficient; products, quotients and elementary functions have recurrences
(Griewank and Walther 2008, Evaluating Derivatives, chapter 13). Every other operation with a
forward derivative has y'(t) = J(x(t)) x'(t), whose series is one order shorter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.core.primitive import Primitive
from pyjx.core.trace import Trace, Tracer, jaxpr_as_fun, new_level
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.calls import jit_p
from pyjx.engine.conversion import cast
from pyjx.engine.custom_derivative_calls import (
    called_function,
    custom_jvp_call_p,
    custom_vjp_call_p,
)
from pyjx.engine.tangents import Zero, instantiate, zero_tangent
from pyjx.lax.common import broadcast_to
from pyjx.lazy import directory, refuse
from pyjx.tree_util import tree_flatten, tree_unflatten

__all__ = ["JetTrace", "JetTracer", "jet", "jet_rules"]
__dir__ = directory(__name__, __all__)
if not TYPE_CHECKING:
    __getattr__ = refuse(__name__)

Terms = tuple[Any, ...]  # Taylor coefficients of order 1, 2, ...


@api_boundary
def jet(fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]],
        factorial_scaled: bool = True, **_: Any) -> tuple[Any, Any]:
    """The derivatives of `fun` along a curve.

    Args:
      fun: of as many arguments as there are primals, pytrees of floating or complex arrays.
      primals: where the curve starts.
      series: for each primal a list of the curve's derivatives there, of order 1, 2, ...; all
        lists have the same length. A derivative has the structure of its primal, and the shapes or
        none.
      factorial_scaled: whether series hold derivatives, or (false) Taylor coefficients, which are
        derivatives divided by the factorial of their order.

    Returns:
      `(primals_out, series_out)`; in `series_out` each array of the output is a list.

    Raises:
      ValueError: the lists differ in length, or a derivative in shape from its primal.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental.jet import jet
    >>> y, (first, second) = jet(lambda x: x**3, (2.0,), ([1.0, 0.0],))
    >>> float(y), float(first), float(second)
    (8.0, 12.0, 12.0)
    """
    leaves, in_tree = tree_flatten(tuple(primals))
    terms = _input_terms(primals, series, factorial_scaled)
    trace = JetTrace()
    with new_level(trace):
        tracers = [JetTracer(trace, x, t) for x, t in zip(leaves, terms, strict=True)]
        outs, out_tree = tree_flatten(fun(*tree_unflatten(in_tree, tracers)))
        pairs = [trace.primal_and_terms(x) for x in outs]
    order = len(terms[0]) if terms else 0
    found = []
    for primal, own in pairs:
        zero = zero_tangent(get_aval(primal))
        full = [instantiate(zero)] * order if own is None else own
        found.append([_scaled(t, math.factorial(k)) if factorial_scaled else t
                      for k, t in enumerate(full, 1)])
    return tree_unflatten(out_tree, [p for p, _ in pairs]), tree_unflatten(out_tree, found)


def _input_terms(primals: Sequence[Any], series: Sequence[Sequence[Any]], factorial_scaled: bool
                 ) -> list[Terms]:
    """The Taylor coefficients of each leaf of the primals."""
    if len(primals) != len(series):
        raise ValueError(f"jet: there must be a list of terms for each primal, got {len(primals)} "
                         f"primals and {len(series)} lists.")
    if len({len(terms) for terms in series}) > 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    found: list[Terms] = []
    for i, (primal, terms) in enumerate(zip(primals, series, strict=True)):
        leaves, tree = tree_flatten(primal)
        columns: list[list[Any]] = [[] for _ in leaves]
        for k, term in enumerate(terms, 1):
            own, term_tree = tree_flatten(term)
            if term_tree != tree:
                raise ValueError(f"jet: term {k} for argument {i} has the structure {term_tree}, "
                                 f"its primal {tree}.")
            for column, x, t in zip(columns, leaves, own, strict=True):
                column.append(_term(x, t, i, k, math.factorial(k) if factorial_scaled else 1))
        found += map(tuple, columns)
    return found


def _term(primal: Any, term: Any, i: int, k: int, divisor: int) -> Any:
    aval = get_aval(primal)
    if not dtypes.issubdtype(aval.dtype, np.inexact):
        raise TypeError(f"jet: argument {i} must be floating or complex, got "
                        f"{aval.str_short()}.")
    shape = get_aval(term).shape
    if shape not in ((), aval.shape):
        raise ValueError(f"jet: term {k} for argument {i} has shape {shape}, its primal "
                         f"{aval.shape}.")
    weak = aval.weak_type and get_aval(term).weak_type
    return _scaled(broadcast_to(cast(term, aval.dtype, weak), aval.shape), 1 / divisor)


def _scaled(x: Any, factor: float) -> Any:
    return x if factor == 1 else lax.mul(x, lax.full_like(x, factor))


class JetTracer(Tracer):
    """A value with the Taylor coefficients of its curve, up to some order."""

    __slots__ = ("primal", "terms")

    def __init__(self, trace: JetTrace, primal: Any, terms: Terms) -> None:
        self._trace = trace
        self.aval = get_aval(primal)
        self.primal = primal
        self.terms = terms

    def to_concrete_value(self) -> Any:
        primal = self.primal
        return primal.to_concrete_value() if isinstance(primal, Tracer) else primal

    def __repr__(self) -> str:
        return f"JetTracer(primal={self.primal}, terms={self.terms})"


# Rules of users, as those of JAX: `(primals, series, **params) -> (primal, series)`, where series
# hold derivatives.
jet_rules: dict[Primitive, Callable[..., Any]] = {}


class JetTrace(Trace):
    """Pushes Taylor coefficients through operations."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "JetTrace"

    def primal_and_terms(self, x: Any) -> tuple[Any, Terms | None]:
        """None in place of terms stands for a constant, of which all are zero."""
        if type(x) is JetTracer and x._trace is self:
            return x.primal, x.terms
        self.check_outer(x)
        return x, None

    def process(self, primitive: Primitive, operands: tuple[Any, ...], params: dict[str, Any]
                ) -> Any:
        if not self.alive:
            self.check_alive(operands)
        if primitive is jit_p:
            return jaxpr_as_fun(params["jaxpr"])(*operands)
        if primitive in (custom_jvp_call_p, custom_vjp_call_p):
            return called_function(params["call_jaxpr"])(*operands)
        pairs = [self.primal_and_terms(x) for x in operands]
        primals = [p for p, _ in pairs]
        order = min([len(t) for _, t in pairs if t is not None])
        terms = [None if t is None else t[:order] for _, t in pairs]
        if primitive in jet_rules:
            return self._by_users_rule(primitive, primals, terms, order, params)
        rule = _RULES.get(primitive.name)
        if rule is not None:
            out, out_terms = rule(primitive, primals, terms, order, params)
            return JetTracer(self, out, tuple(out_terms))
        out = primitive.bind(*primals, **params)
        tangent = self._derivative(primitive, primals, terms, order, params) if order else None
        if not primitive.multiple_results:
            return self._integrated(out, tangent, order)
        return [self._integrated(o, None if tangent is None else t, order)
                for o, t in zip(out, tangent or out, strict=True)]

    def _derivative(self, primitive: Primitive, primals: Sequence[Any],
                    terms: Sequence[Terms | None], order: int, params: dict[str, Any]) -> Any:
        """The derivative of the results along the curve, as a curve of one order less."""
        shorter = [x if t is None else JetTracer(self, x, t[:order - 1])
                   for x, t in zip(primals, terms, strict=True)]
        moving = [Zero.of_primal(x) if t is None or not t or _is_discrete(x) else JetTracer(
            self, t[0], tuple([_scaled(c, k) for k, c in enumerate(t[1:], 2)]))
            for x, t in zip(primals, terms, strict=True)]
        if primitive.jvp is None:
            raise NotImplementedError(f"jet: '{primitive}' has no forward derivative.")
        return primitive.jvp(shorter, moving, **params)[1]

    def _integrated(self, out: Any, tangent: Any, order: int) -> Any:
        """The curve that starts at `out` and has this derivative."""
        if tangent is None:
            return JetTracer(self, out, ())
        if _is_discrete(out):
            return out
        if type(tangent) is Zero:
            return JetTracer(self, out, (instantiate(tangent),) * order)
        first, rest = self.primal_and_terms(tangent)
        if rest is None:
            rest = (instantiate(zero_tangent(get_aval(first))),) * (order - 1)
        return JetTracer(self, out, tuple(
            [_scaled(t, 1 / k) for k, t in enumerate((first, *rest), 1)]))

    def _by_users_rule(self, primitive: Primitive, primals: Sequence[Any],
                       terms: Sequence[Terms | None], order: int, params: dict[str, Any]) -> Any:
        series = [[instantiate(Zero.of_primal(x))] * order if t is None else
                  [_scaled(c, math.factorial(k)) for k, c in enumerate(t, 1)]
                  for x, t in zip(primals, terms, strict=True)]
        out, out_series = jet_rules[primitive](tuple(primals), tuple(series), **params)
        outs = out if primitive.multiple_results else [out]
        lists = out_series if primitive.multiple_results else [out_series]
        tracers = [JetTracer(self, o, tuple([_scaled(c, 1 / math.factorial(k))
                                            for k, c in enumerate(s, 1)]))
                   for o, s in zip(outs, lists, strict=True)]
        return tracers if primitive.multiple_results else tracers[0]


def _is_discrete(x: Any) -> bool:
    return not dtypes.issubdtype(get_aval(x).dtype, np.inexact)


# -- rules: (primitive, primals, terms, order, params) -> (result, terms) --------------------------

Coefficients = list[Any]  # from order 0 on


def _all(primal: Any, terms: Terms | None, order: int) -> Coefficients:
    if terms is None:
        return [primal, *[instantiate(Zero.of_primal(primal))] * order]
    return [primal, *terms]


def _sum(values: Sequence[Any]) -> Any:
    total = values[0]
    for x in values[1:]:
        total = lax.add(total, x)
    return total


def _linear(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None], order: int,
            params: dict[str, Any]) -> tuple[Any, Coefficients]:
    """Each coefficient of the floating operands is mapped alone; the others are parameters."""
    operands = [x if _is_discrete(x) else _all(x, t, order)
                for x, t in zip(primals, terms, strict=True)]
    outs = [primitive.bind(*[x[k] if isinstance(x, list) else x for x in operands], **params)
            for k in range(order + 1)]
    return outs[0], outs[1:]


def _bilinear(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None],
              order: int, params: dict[str, Any]) -> tuple[Any, Coefficients]:
    """Leibniz: z_k is the sum of a_i b_(k-i)."""
    (a, b), (a_terms, b_terms) = primals, terms

    def times(x: Any, y: Any) -> Any:
        return primitive.bind(x, y, **params)

    out = times(a, b)
    if a_terms is None:
        return out, [times(a, t) for t in b_terms or ()]
    if b_terms is None:
        return out, [times(t, b) for t in a_terms]
    x, y = [a, *a_terms], [b, *b_terms]
    return out, [_sum([times(x[i], y[k - i]) for i in range(k + 1)]) for k in range(1, order + 1)]


def _quotient(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None],
              order: int, params: dict[str, Any]) -> tuple[Any, Coefficients]:
    """From z b = a: z_k = (a_k - sum of z_i b_(k-i)) / b_0."""
    (a, b), (a_terms, b_terms) = primals, terms
    x = _all(a, a_terms, order)
    z = [primitive.bind(a, b, **params)]
    for k in range(1, order + 1):
        top = x[k]
        if b_terms is not None:
            top = lax.sub(top, _sum([lax.mul(z[i], b_terms[k - i - 1]) for i in range(k)]))
        z.append(primitive.bind(top, b, **params))
    return z[0], z[1:]


def _growing(x: Coefficients, y: Coefficients, k: int) -> Any:
    """The coefficient of order k of the curve with derivative y(t) x'(t), from those of y below."""
    return _scaled(_sum([_scaled(lax.mul(x[i], y[k - i]), i) for i in range(1, k + 1)]), 1 / k)


def _coupled(slope: Callable[[Coefficients, Coefficients, int], Any],
             start: Callable[[Any, Any], Any]) -> Callable[..., tuple[Any, Coefficients]]:
    """The rule of y = f(x) with y' = s x', where `slope(y, s, k)` is the coefficient of order k of
    s from those of y up to k, and `start(x_0, y_0)` is s_0."""

    def rule(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None],
             order: int, params: dict[str, Any]) -> tuple[Any, Coefficients]:
        x = _all(primals[0], terms[0], order)
        y = [primitive.bind(primals[0], **params)]
        s = [start(primals[0], y[0])]
        for k in range(1, order + 1):
            y.append(_growing(x, s, k))
            s.append(slope(y, s, k))
        return y[0], y[1:]

    return rule


def _convolved(y: Coefficients, z: Coefficients, k: int) -> Any:
    return _sum([lax.mul(y[i], z[k - i]) for i in range(k + 1)])


def _one_minus_square(x: Any, y: Any) -> Any:
    return lax.sub(lax.full_like(y, 1), lax.mul(y, y))


_exp = _coupled(lambda y, s, k: y[k], lambda x, y: y)
_expm1 = _coupled(lambda y, s, k: y[k], lambda x, y: lax.add(y, lax.full_like(y, 1)))
_tanh = _coupled(lambda y, s, k: lax.neg(_convolved(y, y, k)), _one_minus_square)
_logistic = _coupled(lambda y, s, k: lax.sub(y[k], _convolved(y, y, k)),
                     lambda x, y: lax.mul(y, lax.sub(lax.full_like(y, 1), y)))


def _circular(other: Callable[[Any], Any], signs: tuple[int, int]) -> Callable[..., Any]:
    """The rule of y with y' = p z x' and z' = q y x', as sine and cosine are."""

    def rule(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None],
             order: int, params: dict[str, Any]) -> tuple[Any, Coefficients]:
        x = _all(primals[0], terms[0], order)
        y, z = [primitive.bind(primals[0], **params)], [other(primals[0])]
        for k in range(1, order + 1):
            step = _scaled(_growing(x, z, k), signs[0]), _scaled(_growing(x, y, k), signs[1])
            y.append(step[0])
            z.append(step[1])
        return y[0], y[1:]

    return rule


def _logarithm(argument: Callable[[Any], Any]) -> Callable[..., Any]:
    """The rule of the logarithm of u = `argument(x)`, with u' = x': from u y' = x',
    y_k = (x_k - sum of i y_i x_(k-i) / k) / u_0."""

    def rule(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None],
             order: int, params: dict[str, Any]) -> tuple[Any, Coefficients]:
        x = _all(primals[0], terms[0], order)
        u = argument(primals[0])
        y = [primitive.bind(primals[0], **params)]
        for k in range(1, order + 1):
            top = x[k]
            if k > 1:
                known = _sum([_scaled(lax.mul(y[i], x[k - i]), i) for i in range(1, k)])
                top = lax.sub(top, _scaled(known, 1 / k))
            y.append(lax.div(top, u))
        return y[0], y[1:]

    return rule


def _square_root(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None],
                 order: int, params: dict[str, Any]) -> tuple[Any, Coefficients]:
    """From y y = x: y_k = (x_k - sum of y_i y_(k-i), i between 0 and k) / (2 y_0)."""
    x = _all(primals[0], terms[0], order)
    y = [primitive.bind(primals[0], **params)]
    for k in range(1, order + 1):
        top = x[k]
        if k > 1:
            top = lax.sub(top, _sum([lax.mul(y[i], y[k - i]) for i in range(1, k)]))
        y.append(lax.div(top, _scaled(y[0], 2)))
    return y[0], y[1:]


_LINEAR = """
    add add_any broadcast_in_dim concatenate conj convert_element_type copy cumsum dynamic_slice
    dynamic_update_slice expand_dims gather imag neg optimization_barrier pad real reduce_precision
    reduce_sum reduce_window_sum reshape rev scatter-add select_n slice squeeze sub transpose"""

_RULES: dict[str, Callable[..., tuple[Any, Coefficients]]] = {
    **dict.fromkeys(_LINEAR.split(), _linear),
    **dict.fromkeys(("mul", "dot_general", "conv_general_dilated"), _bilinear),
    "div": _quotient,
    "exp": _exp, "expm1": _expm1, "tanh": _tanh, "logistic": _logistic,
    "sin": _circular(lax.cos, (1, -1)), "cos": _circular(lax.sin, (-1, 1)),
    "sinh": _circular(lax.cosh, (1, 1)), "cosh": _circular(lax.sinh, (1, 1)),
    "log": _logarithm(lambda x: x),
    "log1p": _logarithm(lambda x: lax.add(x, lax.full_like(x, 1))),
    "sqrt": _square_root,
}
