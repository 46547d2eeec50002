"""The intermediate representation: variables, equations, jaxprs.

A jaxpr is a straight-line, typed, functional program. It is immutable by convention: passes and
transformations build new ones and may share equations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx.core.avals import AbstractValue, ShapedArray, get_aval
from pyjx.core.source_info import SourceInfo

if TYPE_CHECKING:
    from pyjx.core.primitive import Primitive

Effects = frozenset[Any]
no_effects: Effects = frozenset()


class Var:
    """A variable. Identity is its name; the printer gives letters."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """The variable of a result that nobody reads; printed `_`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class Literal:
    """A rank-0 constant written at its use."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: Any = None) -> None:
        self.val = val
        self.aval = get_aval(val) if aval is None else aval

    @property
    def key(self) -> Any:
        """What two literals with the same meaning share: the aval and the bits (so -0.0 is not
        0.0, and nan equals itself)."""
        return self.aval, np.asarray(self.val).tobytes()

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal


class JaxprEqn:
    """One application of a primitive."""

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "source_info")

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        params: dict[str, Any],
        effects: Effects,
        source_info: SourceInfo,
    ) -> None:
        self.primitive = primitive
        self.invars = invars
        self.outvars = outvars
        self.params = params
        self.effects = effects
        self.source_info = source_info

    def replace(
        self,
        *,
        primitive: Primitive | None = None,
        invars: Sequence[Atom] | None = None,
        outvars: Sequence[Var] | None = None,
        params: dict[str, Any] | None = None,
        effects: Effects | None = None,
        source_info: SourceInfo | None = None,
    ) -> JaxprEqn:
        return JaxprEqn(
            self.primitive if primitive is None else primitive,
            self.invars if invars is None else invars,
            self.outvars if outvars is None else outvars,
            self.params if params is None else params,
            self.effects if effects is None else effects,
            self.source_info if source_info is None else source_info,
        )

    def __repr__(self) -> str:
        from pyjx.core.printer import eqn_to_string

        return eqn_to_string(self)


class DebugInfo:
    """Where a jaxpr came from: for error messages and names in the lowered program."""

    __slots__ = ("arg_names", "func_src_info", "result_paths", "traced_for")

    def __init__(
        self,
        traced_for: str = "jit",
        func_src_info: str = "<unknown>",
        arg_names: tuple[str, ...] | None = None,
        result_paths: tuple[str, ...] | None = None,
    ) -> None:
        self.traced_for = traced_for
        self.func_src_info = func_src_info
        self.arg_names = arg_names
        self.result_paths = result_paths

    @property
    def func_name(self) -> str:
        return self.func_src_info.split(" ")[0]


no_debug_info = DebugInfo()


class Jaxpr:
    """A program: constants and arguments in, equations, results out."""

    __slots__ = ("__weakref__", "constvars", "debug_info", "effects", "eqns", "invars",
                 "is_high", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: Effects = no_effects,
        debug_info: DebugInfo = no_debug_info,
    ) -> None:
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.effects = effects
        self.debug_info = debug_info
        self.is_high = False

    def replace(self, **fields: Any) -> Jaxpr:
        """A copy with some fields replaced."""
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        unknown = fields.keys() - set(names)
        if unknown:
            raise TypeError(f"Jaxpr.replace: no field named {', '.join(sorted(unknown))}")
        return Jaxpr(**{n: fields[n] if n in fields else getattr(self, n) for n in names})

    @property
    def in_avals(self) -> list[Any]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[Any]:
        return [v.aval for v in self.outvars]

    def pretty_print(self, **options: Any) -> str:
        from pyjx.core.printer import jaxpr_to_string

        return jaxpr_to_string(self, **options)

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__


class ClosedJaxpr:
    """A jaxpr with the values of its constants. Hashed and compared by identity."""

    __slots__ = ("__weakref__", "_cache", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> None:
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(
                f"ClosedJaxpr: {len(consts)} constants for {len(jaxpr.constvars)} constvars"
            )
        self.jaxpr = jaxpr
        self.consts = list(consts)
        self._cache: dict[Any, Any] | None = None

    @property
    def in_avals(self) -> list[Any]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[Any]:
        return [v.aval for v in self.jaxpr.outvars]

    @property
    def literals(self) -> list[Any]:
        return self.consts

    @property
    def eqns(self) -> list[JaxprEqn]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        return self.jaxpr.effects

    @property
    def memo(self) -> dict[Any, Any]:
        """Results that transformations derived from this jaxpr; they live as long as it does."""
        if self._cache is None:
            self._cache = {}
        return self._cache

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None
                ) -> ClosedJaxpr:
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    def map_jaxpr(self, f: Any) -> ClosedJaxpr:
        return ClosedJaxpr(f(self.jaxpr), self.consts)

    def pretty_print(self, **options: Any) -> str:
        from pyjx.core.printer import jaxpr_to_string

        return jaxpr_to_string(self.jaxpr, **options)

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__


def subjaxprs(eqn: JaxprEqn) -> Iterator[Jaxpr]:
    """The jaxprs among an equation's parameters."""
    for value in eqn.params.values():
        yield from _jaxprs_of(value)


def _jaxprs_of(value: Any) -> Iterator[Jaxpr]:
    if isinstance(value, ClosedJaxpr):
        yield value.jaxpr
    elif isinstance(value, Jaxpr):
        yield value
    elif type(value) in (tuple, list):
        for item in value:
            yield from _jaxprs_of(item)


def join_effects(eqns: Sequence[JaxprEqn]) -> Effects:
    """The union of the effects of `eqns`."""
    effects: Effects = no_effects
    for eqn in eqns:
        if eqn.effects:
            effects = effects | eqn.effects
    return effects


def count_eqns(jaxpr: Jaxpr) -> int:
    """The number of equations, those of nested jaxprs included."""
    return sum(1 + sum(map(count_eqns, subjaxprs(e))) for e in jaxpr.eqns)


__all__ = [
    "AbstractValue", "Atom", "ClosedJaxpr", "DebugInfo", "DropVar", "Effects", "Jaxpr", "JaxprEqn",
    "Literal", "ShapedArray", "Var", "count_eqns", "join_effects", "no_effects", "subjaxprs",
]
