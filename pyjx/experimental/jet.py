"""Taylor mode: derivatives of high order along a curve.

A value is pushed along as the coefficients of its Taylor series in the curve's parameter. Linear
operations act on each coefficient; products, quotients and elementary functions have recurrences
(Griewank and Walther 2008, Evaluating Derivatives, chapter 13). Loops and branches become loops and
branches on coefficients (`_jet_jaxpr`). All of these cost a polynomial in the order. Every other
operation with a forward derivative has y'(t) = J(x(t)) x'(t), whose series is one order shorter;
where J is an operation of the same kind, as for `pow`, this costs a power of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from itertools import islice
from typing import Any, Protocol

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.core.derived import derived
from pyjx.core.evaluation import bind_all, jaxpr_as_fun, program_of
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.primitive import Primitive
from pyjx.core.records import Field, Record, of_field
from pyjx.core.trace import Trace, Tracer, new_level, trace_to_jaxpr
from pyjx.core.value_texts import counted
from pyjx.engine.custom_batching_calls import custom_vmap_call_p
from pyjx.engine.custom_derivative_calls import (
    called_function,
    custom_jvp_call_p,
    custom_vjp_call_p,
)
from pyjx.engine.forward import JVPTracer
from pyjx.engine.primitives import cast
from pyjx.engine.rules import forward_rule
from pyjx.engine.tangents import Zero, instantiate, materialized, zero_tangent
from pyjx.engine.types import Flags, TreeDef
from pyjx.lax.elementwise import by_squaring, stretch
from pyjx.lazy import directory
from pyjx.tree_util import tree_flatten, tree_unflatten

__all__ = [
    "JetTrace", "JetTracer", "ZeroSeries", "ZeroTerm", "call_param_updaters", "def_comp",
    "def_deriv", "deflinear", "defzero", "deriv_prop", "fact", "jet", "jet2", "jet_fun",
    "jet_rules", "jet_subtrace", "linear_prop", "traceable", "zero_prop", "zero_series",
    "zero_term",
]


class _WrappedFun(Protocol):
    """A function that is wrapped by `pyjx.extend.linear_util`."""

    def wrap(self, gen: Callable[..., Any], gen_static_args: tuple[Any, ...], out_store: None
             ) -> Any: ...

    def call_wrapped(self, *args: Any) -> Any: ...


Terms = tuple[Any, ...]  # Taylor coefficients of order 1, 2, ...


def jet(fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]],
        factorial_scaled: bool = True, **_: Any) -> tuple[Any, Any]:
    """The derivatives of `fun` along a curve.

    Args:
      fun: of as many arguments as there are primals, pytrees of arrays.
      primals: where the curve starts. Integers and bools among them are constants, whatever their
        series.
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
    out_tree: Any = None

    def flat(*args: Any) -> list[Any]:
        nonlocal out_tree
        outs, out_tree = tree_flatten(fun(*tree_unflatten(in_tree, args)))
        return outs

    pairs = jet_flat(flat, list(zip(leaves, terms, strict=True)))
    order = len(series[0]) if series else 0
    found = []
    for primal, own in pairs:
        if own is None:
            terms_out = list(no_change(primal, order))
        else:
            terms_out = [_scaled(t, math.factorial(k)) if factorial_scaled else t
                         for k, t in enumerate(own, 1)]
        found.append(list(map(materialized, terms_out)))
    return tree_unflatten(out_tree, [p for p, _ in pairs]), tree_unflatten(out_tree, found)


def jet_flat(fun: Callable[..., Sequence[Any]], pairs: Sequence[tuple[Any, Terms | None]]
             ) -> list[tuple[Any, Terms | None]]:
    """The results of a function on flat values, each with its terms; None stands for none."""
    trace = JetTrace()
    with new_level(trace):
        outs = fun(*[x if t is None else JetTracer(trace, x, t) for x, t in pairs])
        return [trace.primal_and_terms(x) for x in outs]


def no_change(primal: Any, order: int) -> Terms:
    """The terms of a constant; those of a discrete one are of its dtype."""
    zero = lax.full_like(primal, 0) if is_discrete(primal) else instantiate(
        zero_tangent(get_aval(primal)))
    return (zero,) * order


def _input_terms(primals: Sequence[Any], series: Sequence[Sequence[Any]], factorial_scaled: bool
                 ) -> list[Terms | None]:
    """The Taylor coefficients of each leaf of the primals; None for one that is discrete."""
    if len(primals) != len(series):
        raise ValueError("jet terms have inconsistent lengths for different arguments: there must "
                         f"be a list of terms for each primal, got "
                         f"{counted(len(primals), 'primal')} and {counted(len(series), 'list')}.")
    for i, terms in enumerate(series):
        if not isinstance(terms, (list, tuple)) and not getattr(terms, "ndim", 0):
            raise TypeError(f"jet: series[{i}] must be a list of terms, such as [{terms}], got "
                            f"{terms}")
    if len({len(terms) for terms in series}) > 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    found: list[Terms | None] = []
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
        found += [None if is_discrete(x) else tuple(column)
                  for x, column in zip(leaves, columns, strict=True)]
    return found


def _term(primal: Any, term: Any, i: int, k: int, divisor: int) -> Any:
    aval = get_aval(primal)
    shape = get_aval(term).shape
    if shape not in ((), aval.shape):
        raise ValueError(f"jet: term {k} for argument {i} has shape {shape}, its primal "
                         f"{aval.shape}.")
    if is_discrete(primal):
        return None
    weak = aval.weak_type and get_aval(term).weak_type
    return _scaled(stretch(cast(term, aval.dtype, weak), aval.shape), 1 / divisor)


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

    to_concrete_value = JVPTracer.to_concrete_value

    def __repr__(self) -> str:
        return f"JetTracer(primal={self.primal}, terms={self.terms})"


# Rules of users, as those of JAX: `(primals, series, **params) -> (primal, series)`, where series
# hold derivatives.
jet_rules: dict[Primitive, Callable[..., Any]] = {}

# What changes the parameters of calls for more operands. Nothing reads what is put here: a call is
# pushed through as the program that it runs.
call_param_updaters: dict[Primitive, Callable[..., Any]] = {}


class JetTrace(Trace):
    """Pushes Taylor coefficients through operations; `order` is told by whoever wants it."""

    __slots__ = ("order", "tag")

    def __init__(self, tag: object = None, parent_trace: Trace | None = None,
                 order: int | None = None) -> None:
        self.tag = tag
        self.order = order
        if parent_trace is not None:
            self.parent = parent_trace

    parent_trace: Field[Trace] = of_field("parent", "The interpreter around it.")

    def to_primal_terms_pair(self, val: Any) -> tuple[Any, Any]:
        """A value and its terms, which are `zero_series` of a constant."""
        primal, terms = self.primal_and_terms(val)
        return primal, zero_series if terms is None else list(terms)

    def process_primitive(self, primitive: Primitive, tracers: Sequence[Any],
                          params: dict[str, Any], /) -> Any:
        """`process`, by its name in JAX."""
        return self.process(primitive, tuple(tracers), params)

    def process_call(self, call_primitive: Primitive, f: _WrappedFun, tracers: Sequence[Any],
                     params: dict[str, Any], /) -> Any:
        """The results of a wrapped function: calls are pushed through as what they run."""
        return f.call_wrapped(*tracers)

    def process_custom_jvp_call(self, primitive: Primitive, fun: _WrappedFun, jvp: object,
                                tracers: Sequence[Any], /, *, symbolic_zeros: bool) -> Any:
        """The results of a wrapped function, whose rule is for one order alone."""
        return fun.call_wrapped(*tracers)

    def process_custom_vjp_call(self, primitive: Primitive, fun: _WrappedFun, fwd: object,
                                bwd: object, tracers: Sequence[Any], /, *, out_trees: object,
                                symbolic_zeros: bool) -> Any:
        """The results of a wrapped function, whose rules are for the other mode."""
        return fun.call_wrapped(*tracers)

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
        if primitive in _CALLS or not primitive.own_rules:
            program = program_of(primitive, params)
            if program is not None:
                return called_function(program)(*operands)
        pairs = [self.primal_and_terms(x) for x in operands]
        primals = [p for p, _ in pairs]
        order = min([len(t) for _, t in pairs if t is not None])
        terms = [None if t is None else t[:order] for _, t in pairs]
        if primitive in jet_rules:
            return self._by_users_rule(primitive, primals, terms, order, params)
        rule = _RULES.get(primitive)
        part = set() if rule is _still else _linear_part(primitive, terms)
        if rule is not None and not part:
            return self._joined(*rule(primitive, primals, terms, order, params))
        if part:
            pairs = _linear(primitive, primals, terms, order, params, part)
        elif order and primitive.holder.held is not None:
            pairs = _inside(primitive, primals, terms, order, params)
        else:
            pairs = self._along(primitive, primals, terms, order, params)
        outs = [self._joined(x, t) for x, t in pairs]
        return outs if primitive.multiple_results else outs[0]

    def _joined(self, out: Any, terms: Iterable[Any] | None) -> Any:
        """A result on its curve; where it is constant or discrete it has none."""
        if terms is None or is_discrete(out):
            return out
        return JetTracer(self, out, tuple(terms))

    def _along(self, primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None],
               order: int, params: dict[str, Any]) -> list[tuple[Any, Terms | None]]:
        """The results by the forward derivative: y' is a curve of one order less. The rule gives y
        as well, so that what has effects is bound once."""
        rule = forward_rule(primitive)
        if not order or rule is None:
            outs = bind_all(primitive, primals, params)
            if order and not all(map(is_discrete, outs)):
                raise NotImplementedError(f"jet: '{primitive}' has no forward derivative.")
            return [(out, ()) for out in outs]
        shorter = [x if t is None else JetTracer(self, x, t[:order - 1])
                   for x, t in zip(primals, terms, strict=True)]
        moving = [Zero.of_primal(x) if t is None else JetTracer(
            self, t[0], tuple([_scaled(c, k) for k, c in enumerate(t[1:], 2)]))
            for x, t in zip(primals, terms, strict=True)]
        found, tangents = rule(shorter, moving, **params)
        if not primitive.multiple_results:
            found, tangents = [found], [tangents]
        outs = [self.primal_and_terms(x)[0] for x in found]
        return [(x, None if type(t) is Zero or is_discrete(x) else self._integrated(t, order))
                for x, t in zip(outs, tangents, strict=True)]

    def _integrated(self, tangent: Any, order: int) -> Terms:
        """The terms of a curve with this derivative."""
        first, rest = self.primal_and_terms(tangent)
        if rest is None:
            rest = no_change(first, order - 1)
        return tuple([_scaled(t, 1 / k) for k, t in enumerate((first, *rest), 1)])

    def _by_users_rule(self, primitive: Primitive, primals: Sequence[Any],
                       terms: Sequence[Terms | None], order: int, params: dict[str, Any]) -> Any:
        series = [[instantiate(Zero.of_primal(x))] * order if t is None else list(t)
                  for x, t in zip(primals, terms, strict=True)]
        out, out_series = jet_rules[primitive](tuple(primals), series, **params)
        outs = out if primitive.multiple_results else [out]
        if isinstance(out_series, ZeroSeries):
            out_series = [out_series] * len(outs) if primitive.multiple_results else out_series
        lists = out_series if primitive.multiple_results else [out_series]
        tracers = [self._joined(o, _coefficients(o, s)) for o, s in zip(outs, lists, strict=True)]
        return tracers if primitive.multiple_results else tracers[0]


def _coefficients(out: Any, series: Any) -> Terms | None:
    if isinstance(series, ZeroSeries):
        return None
    zero = instantiate(Zero.of_primal(out))
    return tuple([zero if isinstance(c, ZeroTerm) else c for c in series])


# -- functions that are wrapped by linear_util -----------------------------------------------------


def jet_subtrace(fun: _WrappedFun, *gen_static_args: Any) -> Any:
    """A wrapped function of (tag, order, primals, series), on Taylor coefficients, that gives those
    of its results; of a constant `zero_series`."""
    return fun.wrap(_subtrace, gen_static_args, None)


def _subtrace(call: Callable[..., Any], tag: object, order: int, primals: Sequence[Any],
              series: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    terms = [_coefficients(x, s) for x, s in zip(primals, series, strict=True)]
    pairs = jet_flat(call, list(zip(primals, terms, strict=True)))
    return [p for p, _ in pairs], [zero_series if t is None else list(t) for _, t in pairs]


def jet_fun(fun: _WrappedFun, *gen_static_args: Any) -> Any:
    """What `jet_subtrace` gives, for the order that follows, as a wrapped function of primals and
    series."""
    return fun.wrap(_along_order, gen_static_args, None)


def _along_order(call: Callable[..., Any], order: int, primals: Sequence[Any],
                 series: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    outs, found = call(object(), order, primals, series)
    return outs, [list(map(materialized, no_change(x, order))) if isinstance(s, ZeroSeries) else s
                  for x, s in zip(outs, found, strict=True)]


def traceable(fun: _WrappedFun, *gen_static_args: Any, use_eq_store: bool = False,
              unk_names: bool = False) -> tuple[Any, Callable[[], Any]]:
    """A wrapped function of primals and series as one of the leaves of both, whose structure
    follows; and what gives the structure of its results."""
    found: list[Any] = []

    def flat(call: Callable[..., Any], in_tree: TreeDef, *leaves: Any) -> list[Any]:
        outs, tree = tree_flatten(call(*tree_unflatten(in_tree, leaves)))
        found[:] = [tree]
        return outs

    return fun.wrap(flat, gen_static_args, None), lambda: found[0]


# -- rules of users: (primals, series, **params) -> (result, series), on Taylor coefficients -------


class ZeroTerm:
    """A Taylor coefficient that is zero."""


class ZeroSeries:
    """The Taylor coefficients of what does not change."""


zero_term = ZeroTerm()
zero_series = ZeroSeries()


def fact(n: Any) -> Any:
    """The factorial of n, as an array."""
    if isinstance(n, int):
        return lax.full((), float(math.factorial(n)))
    return lax.exp(lax.lgamma(lax.add(n, lax.full_like(n, 1))))


def deflinear(prim: Primitive) -> None:
    """Say that an operation is linear in its operands together."""
    jet_rules[prim] = partial(linear_prop, prim)


def linear_prop(prim: Primitive, primals_in: Sequence[Any], series_in: Sequence[Any],
                **params: Any) -> tuple[Any, Any]:
    """The rule of a linear operation: it is applied to the terms of each order."""
    outs = [prim.bind(*terms, **params) for terms in zip(*series_in, strict=True)]
    series = [list(own) for own in zip(*outs, strict=True)] if prim.multiple_results else outs
    return prim.bind(*primals_in, **params), series


def defzero(prim: Primitive) -> None:
    """Say that the results of an operation do not change with its operands."""
    jet_rules[prim] = partial(zero_prop, prim)


def zero_prop(prim: Primitive, primals_in: Sequence[Any], series_in: Sequence[Any],
              **params: Any) -> tuple[Any, ZeroSeries]:
    """The rule of an operation whose results do not change."""
    return prim.bind(*primals_in, **params), zero_series


def def_deriv(prim: Primitive, deriv: Callable[[Any], Any]) -> None:
    """Give an operation of one operand by its derivative, a function of the operand.

    >>> import pyjx as jax
    >>> from pyjx.experimental.jet import def_deriv, jet
    >>> cube_p = jax.extend.core.Primitive("cube")
    >>> _ = cube_p.def_impl(lambda x: x**3)
    >>> def_deriv(cube_p, lambda x: 3 * x**2)
    >>> jax.tree.map(float, jet(cube_p.bind, (2.0,), ([1.0, 0.0],)))
    (8.0, [12.0, 12.0])
    """
    jet_rules[prim] = partial(deriv_prop, prim, deriv)


def deriv_prop(prim: Primitive, deriv: Callable[[Any], Any], primals_in: Sequence[Any],
               series_in: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The rule of an operation with this derivative: y' = deriv(x) x', coefficient by coefficient:
    k y_k = sum of j x_j d_(k-j) for j from 1 to k, where d are those of deriv(x)."""
    (x,), (terms,) = primals_in, series_in
    (slope, others), = jet_flat(lambda x: [deriv(x)], [(x, tuple(terms[:-1]))])
    slopes = [slope, *(no_change(slope, len(terms) - 1) if others is None else others)]
    series = [_scaled(_sum([_scaled(lax.mul(terms[j - 1], slopes[k - j]), j)
                            for j in range(1, k + 1)]), 1 / k) for k in range(1, len(terms) + 1)]
    return prim.bind(x), series


def def_comp(prim: Primitive, comp: Callable[..., Any], **kwargs: Any) -> None:
    """Give an operation as a function of others, which is called with `kwargs`, too."""
    def rule(primals_in: Sequence[Any], series_in: Sequence[Any], **params: Any) -> Any:
        return jet2(partial(comp, **params, **kwargs), primals_in, series_in)

    jet_rules[prim] = rule


def jet2(fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]], *,
         factorial_scaled: bool = False, **_: Any) -> tuple[Any, Any]:
    """As `jet`, on Taylor coefficients."""
    return jet(fun, primals, series, factorial_scaled)  # type: ignore[no-any-return]


def is_discrete(x: Any) -> bool:
    return not dtypes.issubdtype(get_aval(x).dtype, np.inexact)


# -- rules: (primitive, primals, terms, order, params) -> (result, terms) --------------------------

Coefficients = list[Any]  # from order 0 on


def _all(primal: Any, terms: Terms | None, order: int) -> Coefficients:
    if terms is None:
        return [primal, *[instantiate(Zero.of_primal(primal))] * order]
    return [primal, *terms]


_sum = partial(reduce, lax.add)


def _linear_part(primitive: Primitive, terms: Sequence[Terms | None]) -> set[int]:
    """The operands in which an operation is linear together, if all that are moving are among
    them."""
    places = range(len(terms))
    moving = {i for i in places if terms[i] is not None}
    return max([set(places[part]) for part in primitive.linear if moving <= set(places[part])],
               key=len, default=set())


def _linear(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None], order: int,
            params: dict[str, Any], part: set[int]) -> list[tuple[Any, Terms | None]]:
    """Each coefficient of the floating operands in this part is mapped alone."""
    operands = [_all(x, t, order) if i in part and not is_discrete(x) else x
                for i, (x, t) in enumerate(zip(primals, terms, strict=True))]
    found = [primitive.bind(*[x[k] if isinstance(x, list) else x for x in operands], **params)
             for k in range(order + 1)]
    columns = zip(*found, strict=True) if primitive.multiple_results else [found]
    return [(column[0], tuple(column[1:])) for column in columns]


def _still(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None], order: int,
           params: dict[str, Any]) -> tuple[Any, None]:
    return primitive.bind(*primals, **params), None


def _power(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None], order: int,
           params: dict[str, Any]) -> tuple[Any, Coefficients]:
    """By repeated squaring; there is no quotient by x, so that x may be zero."""
    found = by_squaring(_product, _all(primals[0], terms[0], order), abs(params.get("y", 2)))
    out = primitive.bind(*primals, **params)
    if found is None:
        return out, list(no_change(out, order))
    if params.get("y", 2) < 0:
        one = lax.full_like(out, 1)
        return out, _quotient(lax.div_p, (one, found[0]), (None, tuple(found[1:])), order, {})[1]
    return out, found[1:]


def _product(x: Coefficients, y: Coefficients) -> Coefficients:
    return [_convolved(x, y, k) for k in range(len(x))]


def _bilinear(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None],
              order: int, params: dict[str, Any]) -> tuple[Any, Coefficients]:
    """Leibniz: z_k is the sum of a_i b_(k-i)."""
    (a, b), (a_terms, b_terms) = primals, terms

    def times(x: Any, y: Any) -> Any:
        return primitive.bind(x, y, **params)

    x, y = _all(a, a_terms, order), _all(b, b_terms, order)
    return times(a, b), [_sum([times(x[i], y[k - i]) for i in range(k + 1)])
                         for k in range(1, order + 1)]


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


def _recurrence(step: Callable[[Coefficients, Coefficients, Coefficients, int], tuple[Any, ...]],
                start: Callable[[Any, Any], Any] | None = None
                ) -> Callable[..., tuple[Any, Coefficients]]:
    """The rule of y = f(x) whose coefficients follow from those below: `step(x, y, z, k)` gives
    that of order k of y, and of another series z if need be, which begins with `start(x_0, y_0)`.
    """

    def rule(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None],
             order: int, params: dict[str, Any]) -> tuple[Any, Coefficients]:
        x = _all(primals[0], terms[0], order)
        y = [primitive.bind(primals[0], **params)]
        z = [] if start is None else [start(primals[0], y[0])]
        for k in range(1, order + 1):
            for series, coefficient in zip((y, z), step(x, y, z, k), strict=False):
                series.append(coefficient)
        return y[0], y[1:]

    return rule


def _coupled(slope: Callable[[Coefficients, Coefficients, int], Any],
             start: Callable[[Any, Any], Any]) -> Callable[..., tuple[Any, Coefficients]]:
    """The rule of y = f(x) with y' = s x', where `slope(y, s, k)` is the coefficient of order k of
    s from those of y up to k, and `start(x_0, y_0)` is s_0."""

    def step(x: Coefficients, y: Coefficients, s: Coefficients, k: int) -> tuple[Any, Any]:
        grown = _growing(x, s, k)
        return grown, slope([*y, grown], s, k)

    return _recurrence(step, start)


def _convolved(y: Coefficients, z: Coefficients, k: int) -> Any:
    return _sum([lax.mul(y[i], z[k - i]) for i in range(k + 1)])


_exp = _coupled(lambda y, s, k: y[k], lambda x, y: y)
_expm1 = _coupled(lambda y, s, k: y[k], lambda x, y: lax.add(y, lax.full_like(y, 1)))
_tanh = _coupled(lambda y, s, k: lax.neg(_convolved(y, y, k)),
                 lambda x, y: lax.sub(lax.full_like(y, 1), lax.mul(y, y)))
_logistic = _coupled(lambda y, s, k: lax.sub(y[k], _convolved(y, y, k)),
                     lambda x, y: lax.mul(y, lax.sub(lax.full_like(y, 1), y)))


def _circular(other: Callable[[Any], Any], signs: tuple[int, int]) -> Callable[..., Any]:
    """The rule of y with y' = p z x' and z' = q y x', as sine and cosine are."""
    return _recurrence(lambda x, y, z, k: (_scaled(_growing(x, z, k), signs[0]),
                                           _scaled(_growing(x, y, k), signs[1])),
                       lambda x, y: other(x))


def _logarithm(argument: Callable[[Any], Any]) -> Callable[..., Any]:
    """The rule of the logarithm of u = `argument(x)`, with u' = x': from u y' = x',
    y_k = (x_k - sum of i y_i x_(k-i) / k) / u_0."""

    def step(x: Coefficients, y: Coefficients, u: Coefficients, k: int) -> tuple[Any]:
        top = x[k]
        if k > 1:
            known = _sum([_scaled(lax.mul(y[i], x[k - i]), i) for i in range(1, k)])
            top = lax.sub(top, _scaled(known, 1 / k))
        return (lax.div(top, u[0]),)

    return _recurrence(step, lambda x, y: argument(x))


def _next_of_root(x: Coefficients, y: Coefficients, _: Coefficients, k: int) -> tuple[Any]:
    """From y y = x: y_k = (x_k - sum of y_i y_(k-i), i between 0 and k) / (2 y_0)."""
    top = x[k]
    if k > 1:
        top = lax.sub(top, _sum([lax.mul(y[i], y[k - i]) for i in range(1, k)]))
    return (lax.div(top, _scaled(y[0], 2)),)


# -- programs: (primals, terms, order, params) -> [(result, terms)] --------------------------------


class _JetJaxpr(Record):
    """From inputs to outs; behind each that is moving, not zero, stand its terms."""

    jaxpr: ClosedJaxpr
    nonzero: Flags


def _jet_jaxpr(closed: ClosedJaxpr, moving: Flags, instantiated: Flags | None = None, *,
               order: int) -> _JetJaxpr:
    """The program on curves. Outs `instantiated` have terms even if they are constant."""
    return _kept_jet_jaxpr(closed, moving, order, instantiated, tuple(jet_rules.items()))


@derived
def _kept_jet_jaxpr(closed: ClosedJaxpr, moving: Flags, order: int, instantiated: Flags | None,
                    rules: tuple[Any, ...]) -> _JetJaxpr:
    out_moving: Flags = ()

    def fun(*args: Any) -> list[Any]:
        nonlocal out_moving
        pairs = jet_flat(jaxpr_as_fun(closed), _gathered(args, moving, order))
        out_moving = tuple([t is not None for _, t in pairs])
        if instantiated is not None:
            out_moving = tuple([a or b for a, b in zip(out_moving, instantiated, strict=True)])
        return _spread([x for x, _ in pairs], [t for _, t in pairs], out_moving, order)

    avals: list[Any] = []
    for aval, flag in zip(closed.in_avals, moving, strict=True):
        avals += [aval, *[aval.to_tangent_aval()] * (order if flag else 0)]
    return _JetJaxpr(trace_to_jaxpr(fun, avals, closed.debug_info), out_moving)


def _spread(values: Sequence[Any], terms: Sequence[Terms | None], moving: Flags, order: int
            ) -> list[Any]:
    """The values, behind each that is moving its terms."""
    found: list[Any] = []
    for x, t, flag in zip(values, terms, moving, strict=True):
        found.append(x)
        if flag:
            found += no_change(x, order) if t is None else t
    return found


def _gathered(values: Sequence[Any], moving: Flags, order: int) -> list[tuple[Any, Terms | None]]:
    """The inverse of `_spread`."""
    left = iter(values)
    return [(next(left), tuple(islice(left, order)) if flag else None) for flag in moving]


def _inside(primitive: Primitive, primals: Sequence[Any], terms: Sequence[Terms | None], order: int,
            params: dict[str, Any]) -> list[tuple[Any, Terms | None]]:
    """What holds programs: of curves it holds those on curves, and terms have the roles of what
    they belong to."""
    holder = primitive.holder
    held = holder.held(params)
    head = held.head
    moving, pushed, wanted = holder.pushed(
        partial(_jet_jaxpr, order=order), held, params,
        tuple([t is not None for t in terms[head:]]))

    def roles(each: Sequence[Any], flags: Flags) -> list[Any]:
        return [role for role, flag in zip(each, flags, strict=True)
                for _ in range(1 + order * flag)]

    outs = holder.bind([p.jaxpr for p in pushed],
                       [*primals[:head], *_spread(primals[head:], terms[head:], moving, order)],
                       params, roles(held.ins, moving), roles(held.outs, wanted))
    return _gathered(outs, wanted, order)


# What is as the program that it stands for, though it has rules of its own.
_CALLS = (custom_jvp_call_p, custom_vjp_call_p, custom_vmap_call_p)


_RULES: dict[Primitive, Callable[..., tuple[Any, Coefficients | None]]] = {
    lax.stop_gradient_p: _still,
    **dict.fromkeys((lax.mul_p, lax.dot_general_p, lax.conv_general_dilated_p), _bilinear),
    lax.div_p: _quotient, lax.square_p: _power, lax.integer_pow_p: _power,
    lax.exp_p: _exp, lax.expm1_p: _expm1, lax.tanh_p: _tanh, lax.logistic_p: _logistic,
    lax.sin_p: _circular(lax.cos, (1, -1)), lax.cos_p: _circular(lax.sin, (-1, 1)),
    lax.sinh_p: _circular(lax.cosh, (1, 1)), lax.cosh_p: _circular(lax.sinh, (1, 1)),
    lax.log_p: _logarithm(lambda x: x),
    lax.log1p_p: _logarithm(lambda x: lax.add(x, lax.full_like(x, 1))),
    lax.sqrt_p: _recurrence(_next_of_root),
}


__dir__ = directory(__name__, __all__)
