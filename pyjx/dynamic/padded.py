"""Padding: a program with symbolic sizes as one that runs on larger arrays, for all sizes up to
bounds.

Each value is as large as its dimensions can become, and carries which of them are padded (those
that are symbolic in its type) and what stands there: a constant, where that is known, or anything.
A rule gives the padded results of an operation, whose elements within the true sizes are those of
the operation itself. Masks go where an operation reads what stands in the padding, and nowhere
else: on operands, so that nothing which is not finite there meets what is true. The true sizes
are values of the program.

This comes last. A program is differentiated and batched with its symbolic sizes, so derivatives
know nothing of padding, and no rule needs one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes, source_info
from pyjx.core.avals import AbstractValue, ShapedArray, SymbolicDim, get_aval
from pyjx.core.derived import derived
from pyjx.core.evaluation import bind_eqn, literal_value
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from pyjx.core.primitive import Primitive
from pyjx.core.symbolic.expressions import FLOORDIV, MAX, MOD, DimExpr, Factor
from pyjx.core.symbolic.scopes import SymbolicScope
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.decompose import decomposition_of
from pyjx.engine.types import Value
from pyjx.lax.elementwise import elementwise_names

Dim = int | SymbolicDim  # of a shape
SIZE = np.dtype(np.int32)  # of the true sizes

Fills = Mapping[int, Any]  # by padded dimension the number that stands behind its true size
# What a rule gives for each result: the padded value, or it and what stands in its padding.
Result = Any
Rule = Callable[..., Sequence[Result]]


class Padded:
    """A value as large as its dimensions can become.

    Attributes:
      val: the array.
      aval: the type of the value, with symbolic dimensions.
      fills: for those of its padded dimensions where it is known, what stands there.
    """

    __slots__ = ("aval", "fills", "val")

    def __init__(self, val: Any, aval: Any, fills: Fills | None = None) -> None:
        self.val = val
        self.aval = aval
        self.fills = fills or {}

    @property
    def shape(self) -> tuple[Any, ...]:
        return getattr(self.aval, "shape", ())

    @property
    def padded(self) -> list[int]:
        """The dimensions that are padded."""
        return [i for i, n in enumerate(self.shape) if isinstance(n, SymbolicDim)]

    @property
    def room(self) -> tuple[int, ...]:
        """The shape of the array."""
        return get_aval(self.val).shape  # type: ignore[no-any-return]


class Padding:
    """The true sizes of one run, and how large they can become.

    Args:
      scope: of the variables.
      bounds: the largest value of each variable.
      sizes: the value of each variable, an int or a scalar of the program.
      planted: whether all padding of which nothing is known gets NaN, or numbers that no index is,
        and a value whose padding is not what it is said to be becomes NaN: for tests.
    """

    def __init__(self, scope: SymbolicScope, bounds: Mapping[str, int], sizes: Mapping[str, Any],
                 planted: bool = False) -> None:
        self.bounds = bounds
        self.sizes = sizes
        self.planted = planted
        self.exact = all([type(n) is int for n in sizes.values()]) and bool(sizes)
        self._scope = scope if self.exact else SymbolicScope([
            *[c.text for c in scope.constraints], *[f"{v} <= {n}" for v, n in bounds.items()]])
        self._rooms: dict[Any, int] = {}
        self._alike: dict[frozenset[str], dict[DimExpr, int]] = {}  # rooms, by variables
        self.eqn: JaxprEqn | None = None  # the equation at hand, for errors

    # -- sizes -------------------------------------------------------------------------------------

    def room(self, d: Dim) -> int:
        """How large a dimension can become."""
        if not isinstance(d, DimExpr):
            return d  # type: ignore[return-value]
        found = self._rooms.get(d)
        if found is None:
            found = self._rooms[d] = d.evaluate(self.sizes) if self.exact else self._largest(
                self._scope.parse(str(d)))
        return found

    def _largest(self, d: Any) -> int:
        """How large a dimension in its normal form can become."""
        if not isinstance(d, DimExpr):
            return max(d, 0)  # type: ignore[no-any-return]
        alike = self._alike.setdefault(frozenset(d.variables()), {})
        found = alike.get(d)
        if found is None:  # equal sizes have equal rooms, in whatever way they are written
            found = next((n for e, n in alike.items() if equal(d, e)), None)
        if found is None:
            high = self._scope.bounds(d)[1]
            if high == float("inf"):
                self.refuse(f"nothing bounds its size {d}", "Give the size as a number.")
            found = max(int(high), 0)
        alike[d] = found
        return found

    def rooms(self, shape: Iterable[Any]) -> tuple[int, ...]:
        return tuple(map(self.room, shape))

    def size(self, d: Dim) -> Any:
        """The true size of a dimension: an int, or a scalar of the program."""
        if not isinstance(d, DimExpr):
            return d
        total: Any = 0
        for monomial, coefficient in d.terms:
            product: Any = coefficient
            for factor, exponent in monomial:
                value = self._value(factor)
                for _ in range(exponent):
                    product = value if type(product) is int and product == 1 else product * value
            total = product if type(total) is int and total == 0 else total + product
        return total

    def _value(self, factor: Factor) -> Any:
        if not factor.operands:
            return self.sizes[factor.kind]
        x, y = map(self.size, factor.operands)
        if type(x) is type(y) is int:
            return DimExpr(self._scope, {((factor, 1),): 1}).evaluate(self.sizes)
        ways: dict[str, Any] = {FLOORDIV: jnp.floor_divide, MOD: jnp.remainder, MAX: jnp.maximum}
        return ways.get(factor.kind, jnp.minimum)(x, y).astype(SIZE)

    # -- values ------------------------------------------------------------------------------------

    def inside(self, x: Padded, dims: Sequence[int]) -> Any:
        """Where elements are within the true sizes along these dimensions."""
        found = None
        for d in dims:
            here = lax.broadcasted_iota(SIZE, x.room, d) < self.size(x.shape[d])
            found = here if found is None else found & here
        return found

    def masked(self, x: Padded, dims: Iterable[int], value: Any) -> Padded:
        """The value with a number in the padding of these dimensions."""
        dims = [d for d in dims if isinstance(x.shape[d], SymbolicDim)]
        need = [d for d in dims if not (d in x.fills and same(x.fills[d], value))]
        if self.exact or not need:
            return x
        val = lax.select(self.inside(x, need), x.val, lax.full_like(x.val, value))
        known = {d: v for d, v in x.fills.items() if d in dims or same(v, value)}
        return Padded(val, x.aval, {**known, **dict.fromkeys(dims, value)})

    def fitted(self, val: Value, aval: ShapedArray) -> Any:
        """A value with the room that its type asks for, cut off or with more padding behind."""
        own = get_aval(val).shape
        wanted = self.rooms(aval.shape)
        if own == wanted:
            return val
        val = lax.slice(val, (0,) * len(own), tuple(map(min, own, wanted)))
        return lax.pad(val, np.zeros((), get_aval(val).dtype)[()],
                       [(0, max(n - m, 0), 0) for m, n in zip(own, wanted, strict=True)])

    # -- programs ----------------------------------------------------------------------------------

    def run(self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Padded]) -> list[Padded]:
        """The padded results of a program."""
        env: dict[Any, Padded] = {}
        for v, c in zip(jaxpr.constvars, consts, strict=True):
            env[v] = Padded(c, v.aval)
        env.update(zip(jaxpr.invars, args, strict=True))

        def read(v: Atom) -> Padded:
            return Padded(literal_value(v), v.aval) if type(v) is Literal else env[v]

        with source_info.replaying() as replay:
            for eqn in jaxpr.eqns:
                replay.source = eqn.source_info
                outs = self.apply(eqn, [read(v) for v in eqn.invars])
                env.update(zip(eqn.outvars, outs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def run_closed(self, closed: ClosedJaxpr, args: Sequence[Padded]) -> list[Padded]:
        return self.run(closed.jaxpr, closed.consts, args)

    def apply(self, eqn: JaxprEqn, xs: Sequence[Padded]) -> list[Padded]:
        """The padded results of an operation."""
        if not is_symbolic(eqn):
            outs = bind_eqn(eqn, [x.val for x in xs])
            return [Padded(x, v.aval) for x, v in zip(outs, eqn.outvars, strict=True)]
        self.eqn = eqn
        name, holder = eqn.primitive.name, eqn.primitive.holder
        rule: Rule | None = RULES.get("select_n" if name in elementwise_names else name)
        if rule is None and (inner := holder.runs or holder.stands_for) is not None:
            return self.run_closed(inner(eqn.params), xs)
        if rule is None and eqn.primitive.decomposition is not None:
            program = decomposition_of(eqn)
            assert program is not None
            return self.run_closed(program, xs)
        if rule is None:
            self.refuse("nobody has said what padding does to it")
        outs = []
        for out, v in zip(rule(self, eqn, *xs), eqn.outvars, strict=True):
            val, fills = out if type(out) is tuple else (out, {})
            if isinstance(v.aval, ShapedArray) and (
                    fitted := self.fitted(val, v.aval)) is not val:
                val, fills = fitted, {}
            made = Padded(val, v.aval, fills)
            outs.append(self._planted(made) if self.planted and made.padded else made)
        return outs

    def _planted(self, x: Padded) -> Padded:
        dtype = get_aval(x.val).dtype
        if dtypes.is_extended(dtype):
            return x
        weed = garbage(dtype)
        unknown = [d for d in x.padded if d not in x.fills]
        val = x.val
        if unknown:
            val = lax.select(self.inside(x, unknown), val, lax.full_like(val, weed))
        for d, value in x.fills.items():
            rest = self.inside(x, [d]) | (val == np.asarray(value, dtype)[()])
            val = lax.select(rest, val, lax.full_like(val, weed))
        return Padded(val, x.aval, x.fills)

    def refuse(self, reason: str, cure: str = "") -> NoReturn:
        """Raise NotImplementedError for the equation at hand."""
        eqn = self.eqn
        assert eqn is not None
        dims = sorted({str(d) for v in (*eqn.invars, *eqn.outvars)
                       for d in getattr(v.aval, "shape", ()) if isinstance(d, SymbolicDim)})
        sizes = f" along the dimension {', '.join(dims)}" if dims else ""
        cure = cure or ("Take the operation out of the function, give that size as a number, or "
                        "jit the function without `dynamic`.")
        raise NotImplementedError(
            f"jit(dynamic=...): `{eqn.primitive.name}` at "
            f"{source_info.summarize(eqn.source_info)} cannot be padded{sizes}: {reason}. {cure}")


RULES: dict[str, Rule] = {}


def rule(*operations: Primitive | str) -> Callable[[Rule], Rule]:
    """Declare the rule of operations: `(padding, eqn, *operands) -> results`."""

    def declare(fun: Rule) -> Rule:
        RULES.update(dict.fromkeys(map(str, operations), fun))
        return fun

    return declare


def equal(d: Any, e: Any) -> bool:
    """Whether two sizes are always equal. Unlike `==` it is no question of the user's function,
    which would be noted in the scope."""
    difference = d - e
    if not isinstance(difference, DimExpr):
        return bool(difference == 0)
    some = {v: 1000 + 37 * i for i, v in enumerate(sorted(difference.variables()))}
    return difference.evaluate(some) == 0 and difference.scope.bounds(difference) == (0, 0)


def same(x: Any, y: Any) -> bool:
    """Whether two numbers are known to be the same one."""
    known = (int, float, bool, complex, np.ndarray, np.generic)
    if not (isinstance(x, known) and isinstance(y, known)):
        return x is y
    return bool(np.all((x == y) & (np.signbit(np.real(x)) == np.signbit(np.real(y)))))


def garbage(dtype: dtypes.DType) -> Any:
    """What no result may come from: NaN, or a number that is no index."""
    if dtype == np.bool_:
        return np.bool_(True)
    if dtypes.issubdtype(dtype, np.inexact):
        return np.asarray(np.nan, dtype)[()]
    return np.asarray(min(int(dtypes.iinfo(dtype).max), 1_000_003), dtype)[()]


# -- which equations read sizes --------------------------------------------------------------------


def is_symbolic(eqn: JaxprEqn) -> bool:
    """Whether a size of an equation, or in a program that it holds, is symbolic."""
    return (any([_has_dims(v.aval) for v in (*eqn.invars, *eqn.outvars)])
            or any(map(_mentions, eqn.params.values())))


def _has_dims(aval: AbstractValue) -> bool:
    return any([isinstance(d, SymbolicDim) for d in getattr(aval, "shape", ())])


def _mentions(value: Any) -> bool:
    if isinstance(value, (ClosedJaxpr, Jaxpr)):
        jaxpr = value.jaxpr
        return any([_has_dims(v.aval) for v in (*jaxpr.invars, *jaxpr.constvars)]) or any(
            map(is_symbolic, jaxpr.eqns))
    if isinstance(value, (tuple, list)):
        return any(map(_mentions, value))
    return isinstance(value, SymbolicDim) or _has_dims(value)


def scope_in(closed: ClosedJaxpr) -> SymbolicScope | None:
    """The scope of the sizes in a program."""
    parts: list[Jaxpr | JaxprEqn] = [closed.jaxpr, *closed.jaxpr.eqns]
    return next((d.scope for part in parts for v in (*part.invars, *part.outvars)
                 for d in getattr(v.aval, "shape", ()) if isinstance(d, DimExpr)), None)


# -- whole programs --------------------------------------------------------------------------------


@derived
def padded_jaxpr(closed: ClosedJaxpr, bounds: tuple[tuple[str, int], ...], planted: bool = False,
                 zeros: bool = True) -> ClosedJaxpr:
    """The program of all sizes up to `bounds`: from the values of the variables, in their order
    there, and padded arguments, in whose padding `zeros` stand or anything, to padded results."""
    return _traced(closed, dict(bounds), None, planted, zeros)


@derived
def sized_jaxpr(closed: ClosedJaxpr, sizes: tuple[tuple[str, int], ...]) -> ClosedJaxpr:
    """The program of one choice of sizes, without padding."""
    return _traced(closed, dict(sizes), dict(sizes), False, False)


def _traced(closed: ClosedJaxpr, bounds: dict[str, int], sizes: dict[str, int] | None,
            planted: bool, zeros: bool) -> ClosedJaxpr:
    scope = scope_in(closed) or SymbolicScope()
    rooms = Padding(scope, bounds, {}).rooms
    avals = [a.update(shape=rooms(a.shape)) if _has_dims(a) else a for a in closed.in_avals]
    names = [] if sizes is not None else list(bounds)

    def fun(*args: Any) -> list[Any]:
        n = len(names)
        p = Padding(scope, bounds, sizes or dict(zip(names, args[:n], strict=True)), planted)
        given = []
        for x, aval in zip(args[n:], closed.in_avals, strict=True):
            number = zeros and isinstance(aval, ShapedArray) and not dtypes.is_extended(aval.dtype)
            dims = [i for i, d in enumerate(getattr(aval, "shape", ()))
                    if isinstance(d, SymbolicDim)] if number else []
            given.append(Padded(x, aval, dict.fromkeys(dims, np.zeros((), aval.dtype)[()])
                                if dims else None))
        return [x.val for x in p.run_closed(closed, given)]

    own = closed.debug_info
    debug = copy.copy(own)  # which knows what it cost, too
    debug._arg_names = lambda: own.arg_names and (*names, *own.arg_names)
    return trace_to_jaxpr(fun, [ShapedArray((), SIZE)] * len(names) + avals, debug)
