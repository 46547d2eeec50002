"""Derivatives of the operations that a program meets, against differences of their values: which
rule is wrong, at which operand, on which line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import pyjx as jax
from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.contents import params_key
from pyjx.core.effects import keeps_alive
from pyjx.core.evaluation import bind_eqn, eval_jaxpr, holds_jaxprs, program_of, walk
from pyjx.core.frames import Frame
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.primitive import OF_SYMMETRIC, ON_PURPOSE
from pyjx.core.records import Record
from pyjx.core.value_texts import counted
from pyjx.engine.custom_derivative_calls import custom_jvp_call_p, custom_vjp_call_p
from pyjx.inspect.bad_values import place_text
from pyjx.inspect.loops import programs_within
from pyjx.inspect.straight import check_keywords, line_of, repeatable_of, straight
from pyjx.lax.linalg import eigh_p, svd_p

_DIRECTIONS = 2  # along which each operand is moved
# Calls with a user's rules, and what these say.
_MODES = {custom_jvp_call_p: "tangent", custom_vjp_call_p: "cotangent"}
_REFUSALS = (TypeError, NotImplementedError, ValueError)
_KINK = 0.01  # how far derivatives from two sides may differ where a function is smooth
_OFF = 16  # steps by which a point leaves a kink


class WrongRule(Record):
    """A rule whose derivative or value is not that of the function, or which is refused.

    Attributes:
      operation: the name of the operation, or of the function that has the rule.
      line: the user's line that made it.
      mode: `cotangent` or `tangent`; `primal` where the rule gives another value than the function.
      operand: the number of the operand; None where it is not about one.
      found, expected: the derivative along a direction, by the rule and by differences; or the
        value, by the rule and by the function, of the first element where they differ, which may
        be complex.
      error: why the rule is refused, where `jax.grad` raises; empty otherwise.
    """

    operation: str
    line: Frame | None
    mode: str
    operand: int | None
    found: complex
    expected: complex
    error: str = ""

    def __str__(self) -> str:
        where = f"{self.operation}, at {place_text(self.line)},"
        if self.error:
            of = "" if self.operand is None else f" for operand {self.operand}"
            return f"the rule of {where} is refused{of}: {self.error}"
        if self.operand is None:
            return (f"the value by the rule of {where} has an element {self.found:.6g}, where the "
                    f"function gives {self.expected:.6g}")
        sign = ": the sign is wrong" if abs(self.found + self.expected) <= 1e-2 * abs(
            self.expected) else ""
        return (f"the {self.mode} of operand {self.operand} of {where} is {self.found:.6g} along a "
                f"direction, where differences of its values give {self.expected:.6g}{sign}")


class RuleCheck(Record):
    """What came of checking rules; true where some were and none is wrong, and printed as a report.

    Attributes:
      wrong: `WrongRule`, in the order of the program.
      checked: how many operations were.
      passed_by: pairs of the name of an operation that was not, and why.
    """

    wrong: tuple[WrongRule, ...]
    checked: int
    passed_by: tuple[tuple[str, str], ...]

    def __bool__(self) -> bool:
        return bool(self.checked) and not self.wrong

    def __str__(self) -> str:
        lines = [f"{counted(self.checked, 'operation')} checked, "
                 f"{counted(len(self.wrong), 'wrong rule')}",
                 *[f"  {rule}" for rule in self.wrong]]
        if not self.checked:
            lines.append("  nothing was checked: call it with real or complex numbers, at which "
                         "its operations are smooth")
        lines += [f"  not checked: {name}, {why}" for name, why in self.passed_by]
        return "\n".join(lines)


def check_rules(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> RuleCheck:
    """Check the derivative of each operation of a function, and of each function in it that has
    rules of its own, where the function meets them.

    Each operand is moved along random directions, in double precision, and what the rules say of
    that, forwards and backwards, is compared with central differences: beside the point where
    elements of the operand lie on kinks.

    Args:
      fun: a function of arrays; the operations in its loops and branches are checked, those of
        loops in the first iteration.
      args, kwargs: what it is called with.

    Returns:
      A `RuleCheck`: true where rules were checked and none is wrong, and printed as a report.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> @jax.custom_vjp
    ... def product(x, y):
    ...     return x * y
    ...
    >>> product.defvjp(lambda x, y: (x * y, (x, y)), lambda r, g: (g * r[1], -g * r[0]))
    >>> found = jax.inspect.check_rules(lambda x: jnp.sin(product(x, x + 1)), 0.5)
    >>> [(rule.operation, rule.mode, rule.operand) for rule in found.wrong]
    [('product', 'cotangent', 1)]
    """
    check_keywords("check_rules", fun, kwargs)
    check = _Check()
    with configuration.enable_x64(True), configuration.debug_nans(False):
        wide_args, wide_kwargs = jax.tree.map(_wide, (args, kwargs))
        closed, leaves, _ = repeatable_of(fun, wide_args, wide_kwargs)
        check.walk(closed, leaves)
    refused = [rule for rule in check.wrong if rule.error]
    if refused and not _refuses(fun, args, kwargs):  # in double precision alone
        check.wrong = [rule for rule in check.wrong if not rule.error]
        check.checked -= len(refused)
        check.passed_by |= {rule.operation: "which is refused in double precision alone"
                            for rule in refused}
    return RuleCheck(tuple(check.wrong), check.checked, tuple(sorted(check.passed_by.items())))


def _wide(x: Any) -> Any:
    """Real and complex numbers in double precision."""
    if dtypes.has_dtype(x, np.complexfloating):
        return jax.numpy.asarray(x, np.complex128)
    return jax.numpy.asarray(x, np.float64) if dtypes.has_dtype(x, np.floating) else x


def _refuses(fun: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a function has no gradient on the arguments as they are."""
    closed, leaves, _ = repeatable_of(fun, args, kwargs)
    moved = [k for k, v in enumerate(closed.jaxpr.invars) if _is_inexact(v.aval)]
    outs = [i for i, a in enumerate(closed.out_avals) if _is_inexact(a)]

    def call(*numbers: Any) -> list[Any]:
        results = eval_jaxpr(closed.jaxpr, closed.consts, *_put(leaves, moved, numbers))
        return [results[i] for i in outs]

    def pulled(*numbers: Any) -> Any:
        results, pull = jax.vjp(call, *numbers)
        return pull(results)

    try:
        jax.eval_shape(pulled, *[leaves[k] for k in moved])
    except _REFUSALS:
        return True
    return False


def _put(xs: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    new = dict(zip(places, values, strict=True))
    return [new.get(k, x) for k, x in enumerate(xs)]


class _Check:
    """A walk through a program, in which operations are checked on their operands."""

    def __init__(self) -> None:
        self.wrong: list[WrongRule] = []
        self.checked = 0
        self.passed_by: dict[str, str] = {}  # and why
        self._known: set[Any] = set()

    def walk(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program."""
        closed = straight(closed, lambda eqn: not eqn.primitive.own_rules)
        return walk(closed.jaxpr, closed.consts, args, self.met)

    def met(self, eqn: JaxprEqn, xs: list[Any]) -> Sequence[Any]:
        """The results of an equation, which is checked."""
        if holds_jaxprs(eqn) and not eqn.primitive.own_rules:
            ran = next(programs_within(eqn, xs, lambda _, *given: self.walk(*given)), None)
            self.passed_by[eqn.primitive.name] = (
                "whose program was not looked into" if ran is None
                else f"as the operations in it are, in {ran[0]}")
        elif eqn.primitive.derivative is ON_PURPOSE:
            self.passed_by[eqn.primitive.name] = "which has another derivative on purpose"
        elif eqn.primitive in (eigh_p, svd_p) and np.iscomplexobj(xs[0]):
            self.passed_by[eqn.primitive.name] = "whose vectors may have any phase"
        elif not keeps_alive(eqn.effects):
            self.check(eqn, xs)
        return bind_eqn(eqn, xs)

    def check(self, eqn: JaxprEqn, xs: Sequence[Any]) -> None:
        line = line_of(eqn)
        key = (eqn.primitive, params_key(eqn.params) if not eqn.primitive.own_rules else None, line,
               tuple([v.aval for v in eqn.invars]))
        moved = [k for k, v in enumerate(eqn.invars) if _is_inexact(v.aval)]
        outs = [i for i, v in enumerate(eqn.outvars) if _is_inexact(v.aval)]
        if key in self._known or not moved or not outs:
            return
        self._known.add(key)
        wrong = self._refused(eqn, xs, moved, outs, line)
        if wrong is not None:
            self.wrong.append(wrong)
        smooth = [wrong is not None or self._operand(eqn, xs, k, outs, line) for k in moved]
        if any(smooth):
            self.checked += 1
        else:
            self.passed_by[eqn.primitive.name] = "which is not smooth at its operands"

    def _refused(self, eqn: JaxprEqn, xs: Sequence[Any], moved: Sequence[int],
                 outs: Sequence[int], line: Frame | None) -> WrongRule | None:
        """What is wrong with a user's rules before their derivatives are looked at."""
        mode, n = _MODES.get(eqn.primitive), eqn.params.get("num_consts", 0)
        moved = [k for k in moved if k >= n]  # what a function closes over has no derivative
        if mode is None or not moved:
            return None
        numbers = [jax.numpy.asarray(xs[k]) for k in moved]

        def fun(*numbers: Any) -> list[Any]:
            results = bind_eqn(eqn, _put(xs, moved, numbers))
            return [results[i] for i in outs]

        expected = fun(*numbers)
        try:
            if mode == "tangent":
                found, _ = jax.jvp(fun, numbers, numbers)
            else:
                found, pull = jax.vjp(fun, *numbers)
                pull(found)
        except _REFUSALS as error:
            at = getattr(error, "argument", None)
            return WrongRule(_name(eqn), line, mode, None if at is None else at + n, np.nan, np.nan,
                             str(error))
        for a, b in zip(map(np.asarray, found), map(np.asarray, expected), strict=True):
            near = 1e-3 * np.abs(b[np.isfinite(b)]).max(initial=0)
            differs = np.argwhere(~np.isclose(a, b, 1e-3, near, equal_nan=True))
            if len(differs):
                i = tuple(differs[0])
                return WrongRule(_name(eqn), line, "primal", None, a[i].item(), b[i].item())
        return None

    def _operand(self, eqn: JaxprEqn, xs: Sequence[Any], k: int, outs: Sequence[int],
                 line: Frame | None) -> bool:
        """Check an operand; whether the operation is smooth in it."""
        rng = np.random.default_rng(k)
        x = jax.numpy.asarray(xs[k])

        def along(y: Any) -> list[Any]:
            results = bind_eqn(eqn, [*xs[:k], y, *xs[k + 1:]])
            return [results[i] for i in outs]

        for _ in range(_DIRECTIONS):
            t = _drawn(rng, x)
            if eqn.primitive.derivative is OF_SYMMETRIC:
                t = (t + t.mT.conj()) / 2
            cts = [_drawn(rng, eqn.outvars[i].aval) for i in outs]
            smooth = _smooth(along, x, t, cts)
            if smooth is None:
                return False
            at, expected, error = smooth
            modes = {"cotangent": _pulled, "tangent": _pushed}
            first = _MODES.get(eqn.primitive, "cotangent")  # which the user wrote
            for mode, derivative in sorted(modes.items(), key=lambda item: item[0] != first):
                found = derivative(along, at, t, cts)
                if found is not None and not abs(found - expected) <= error + 1e-3 * abs(expected):
                    self.wrong.append(WrongRule(_name(eqn), line, mode, k, found, expected))
                    return True
        return True


def _name(eqn: JaxprEqn) -> str:
    inner = program_of(eqn.primitive, eqn.params)
    return eqn.primitive.name if inner is None else inner.jaxpr.debug_info.func_name


def _is_inexact(aval: Any) -> bool:
    return dtypes.has_dtype(aval, np.inexact) and 0 not in aval.shape


def _drawn(rng: np.random.Generator, aval: Any) -> Any:
    """Random numbers of a shape and dtype; of complex ones both parts are."""
    x = rng.standard_normal(aval.shape)
    if dtypes.issubdtype(aval.dtype, np.complexfloating):
        x = x + 1j * rng.standard_normal(aval.shape)
    return jax.numpy.asarray(x, aval.dtype)


def _dot(cts: Iterable[Any], ys: Iterable[Any]) -> float:
    """The real part of the sum of products, where nothing is conjugated: a cotangent is what
    multiplies a tangent."""
    return float(sum([np.dot(np.ravel(np.asarray(a, np.complex128)),
                             np.ravel(np.asarray(b, np.complex128))).real
                      for a, b in zip(cts, ys, strict=True)]))


def _smooth(fun: Callable[[Any], list[Any]], x: Any, t: Any, cts: Sequence[Any]
            ) -> tuple[Any, float, float] | None:
    """A point where a function is smooth along `t`, its derivative there, and how far that may be
    off: the point that is given, or where elements of it lie on kinks, one a little further along,
    as each of them leaves its kink by more than the differences take."""
    h = float(dtypes.finfo(x.dtype).eps) ** (1 / 3) * max(1.0, float(np.abs(x).max()))
    for at in (x, x + _OFF * h * t):
        found = _difference(fun, at, t, cts, h)
        if found is not None:
            return (at, *found)
    return None


def _difference(fun: Callable[[Any], list[Any]], x: Any, t: Any, cts: Sequence[Any], h: float
                ) -> tuple[float, float] | None:
    """The derivative along `t`, weighted by `cts`, by central differences of a step `h`, and how
    far that may be off; None where the function is not smooth."""
    values = [fun(x + s * h * t) for s in (-1, -0.5, 0, 0.5, 1)]
    low, near_low, here, near_high, high = [_dot(cts, ys) for ys in values]
    central, nearer = (high - low) / (2 * h), (near_high - near_low) / h
    # What derivatives from two sides differ by is halved with the step where there is no kink.
    wide, narrow = [(up - 2 * here + down) / step for up, down, step in (
        (high, low, h), (near_high, near_low, h / 2))]
    kink, parting = abs(2 * narrow - wide), abs(central - nearer)
    size = max([_dot(map(np.abs, cts), map(np.abs, ys)) for ys in values])
    noise = 16 * float(dtypes.finfo(x.dtype).eps) * size / h
    if not max(kink, parting) <= noise + _KINK * (abs(central) + abs(nearer)):
        return None  # nor is it where they are no numbers
    return nearer, noise + 8 * parting + kink + 1e-9


def _pulled(fun: Callable[[Any], list[Any]], x: Any, t: Any, cts: Sequence[Any]) -> float | None:
    try:
        _, pull = jax.vjp(fun, x)
        return _dot([t], pull(list(cts)))
    except _REFUSALS:  # there is no such derivative
        return None


def _pushed(fun: Callable[[Any], list[Any]], x: Any, t: Any, cts: Sequence[Any]) -> float | None:
    try:
        return _dot(cts, jax.jvp(fun, (x,), (t,))[1])
    except _REFUSALS:
        return None
