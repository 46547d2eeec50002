"""Primitives: the vocabulary of jaxprs, each with its rules.

The kinds of rules are a closed set, the keyword arguments of `Primitive`, so a misspelt one fails
where it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx.core.avals import AbstractValue
from pyjx.core.jaxpr import Effects, no_effects
from pyjx.core.trace import Tracer, state

Rule = Callable[..., Any]


class Primitive:
    """An operation of the IR.

    Args:
      name: what jaxprs print, and the key of the lowering rule.
      shape_rule: `(*avals, **params) -> aval`, or a sequence of avals with `multiple_results`.
      jvp: `(primals, tangents, **params) -> (primal_out, tangent_out)`.
      transpose: `(ct, *operands, **params) -> cotangents`, where the linear operands are
        `UndefinedPrimal`.
      batch: `(operands, dims, **params) -> (out, out_dim)`.
      linearize: `(trace, primals, tangents, **params) -> (outs, tangents_out)`, for primitives that
        hold jaxprs: runs the nonlinear part at once and records the linear part in `trace`.
      decomposition: the primitive as a Python function of other primitives; the lowering uses it
        where it has no rule of its own.
      effects: `params -> effects` for primitives with side effects.
      linear: whether it is linear in the operands that its transpose rule accepts.
      cached: whether results of `shape_rule` are kept by avals and parameters.
    """

    __slots__ = ("__dict__", "__weakref__", "_out_avals", "batch", "cached", "decomposition",
                 "effects", "impl", "jvp", "linear", "linearize", "multiple_results", "name",
                 "shape_rule", "transpose")

    def __init__(
        self,
        name: str,
        *,
        shape_rule: Rule | None = None,
        jvp: Rule | None = None,
        transpose: Rule | None = None,
        batch: Rule | None = None,
        linearize: Rule | None = None,
        decomposition: Rule | None = None,
        effects: Callable[[dict[str, Any]], Effects] | None = None,
        impl: Rule | None = None,
        multiple_results: bool = False,
        linear: bool = False,
        cached: bool = True,
    ) -> None:
        self.name = name
        self.shape_rule = shape_rule
        self.jvp = jvp
        self.transpose = transpose
        self.batch = batch
        self.linearize = linearize
        self.decomposition = decomposition
        self.effects = effects
        self.impl = impl
        self.multiple_results = multiple_results
        self.linear = linear
        self.cached = cached
        self._out_avals: dict[Any, Any] = {}

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Apply the primitive, under whichever interpreter the operands or the thread call for."""
        top = state.dynamic
        level = top.level
        for x in operands:
            if isinstance(x, Tracer):
                trace = x._trace
                if trace.level > level:
                    top = trace
                    level = trace.level
        return top.process(self, operands, params)

    def out_avals(self, in_avals: tuple[AbstractValue, ...], params: dict[str, Any]) -> Any:
        """The shape rule's answer: an aval, or a list of avals with `multiple_results`."""
        if not self.cached:
            return self._shape_rule_result(in_avals, params)
        key = (in_avals, *params.items()) if params else in_avals
        try:
            return self._out_avals[key]
        except KeyError:
            out = self._out_avals[key] = self._shape_rule_result(in_avals, params)
            return out
        except TypeError:  # an unhashable parameter
            return self._shape_rule_result(in_avals, params)

    def _shape_rule_result(self, in_avals: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if self.shape_rule is None:
            raise NotImplementedError(
                f"Primitive '{self.name}' has no abstract evaluation rule: give it one with "
                "`def_abstract_eval`."
            )
        out = self.shape_rule(*in_avals, **params)
        return list(out) if self.multiple_results else out

    # How primitives of other libraries are given their rules.

    def def_impl(self, impl: Rule) -> Rule:
        self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Rule) -> Rule:
        self.shape_rule = rule
        self._out_avals.clear()
        return rule

    def clear_cache(self) -> None:
        self._out_avals.clear()

    def effects_of(self, params: dict[str, Any]) -> Effects:
        return no_effects if self.effects is None else self.effects(params)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return find_primitive, (self.name,)


_named: dict[str, Primitive] = {}


def register(primitive: Primitive) -> Primitive:
    """Make `primitive` findable by its name: for pickling, and for the test of completeness."""
    _named[primitive.name] = primitive
    return primitive


def find_primitive(name: str) -> Primitive:
    try:
        return _named[name]
    except KeyError:
        raise KeyError(f"There is no primitive named {name!r}.") from None


def all_primitives() -> dict[str, Primitive]:
    """The primitives defined so far, by name."""
    return dict(_named)
