"""The intermediate representation: variables, equations, jaxprs.

A jaxpr is a straight-line, typed, functional program. It is immutable by convention: passes and
transformations build new ones and may share equations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import configuration
from pyjx.core.avals import get_aval
from pyjx.core.effects import Effects, has_types, no_effects
from pyjx.core.records import EXPORT, Field, Unpickled, of_field
from pyjx.core.source_info import SourceInfo, no_source_info

if TYPE_CHECKING:
    from pyjx.core.primitive import Primitive

ParamDict = dict[str, Any]  # the parameters of an equation


class Var:
    """A variable. Identity is its name; the printer gives letters."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def pretty_print(self, context: Any, *, print_dtype: bool = True) -> str:
        """The letter of the variable in a `JaxprPpContext`."""
        return context.name(self)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """The variable of a result that nobody reads; printed `_`."""

    __slots__ = ()

    def pretty_print(self, context: Any, *, print_dtype: bool = True) -> str:
        return "_"

    def __repr__(self) -> str:
        return "_"


class Literal:
    """A constant written at its use: one number, unless a setting asks for arrays."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: Any = None) -> None:
        self.val = val
        self.aval = get_aval(val) if aval is None else aval

    @property
    def key(self) -> Any:
        """What two literals with the same meaning share: the aval and the bits (so -0.0 is not
        0.0, and nan equals itself)."""
        return self.aval, np.asarray(self.val).tobytes()

    @property
    def hash(self) -> int | None:
        """That of the value; None where it has none."""
        try:
            return hash(self.val)
        except TypeError:
            return None

    def pretty_print(self, context: Any, *, print_dtype: bool = True) -> str:
        """The value, by default with its type."""
        return context.literal(self, print_dtype)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Literal({self.val})"


Atom = Var | Literal


class JaxprEqn:
    """One application of a primitive."""

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "source_info")

    def __init__(self, primitive: Primitive, invars: Sequence[Atom], outvars: Sequence[Var],
                 params: dict[str, Any], effects: Effects, source_info: SourceInfo) -> None:
        self.primitive = primitive
        self.invars = invars
        self.outvars = outvars
        self.params = params
        self.effects = effects
        self.source_info = source_info

    def replace(self, invars: Sequence[Atom] | None = None, outvars: Sequence[Var] | None = None,
                primitive: Primitive | None = None, params: dict[str, Any] | None = None,
                effects: Effects | None = None, source_info: SourceInfo | None = None,
                ctx: JaxprEqnContext | None = None) -> JaxprEqn:
        """A copy with some fields replaced. `ctx` is the same for all equations."""
        return JaxprEqn(self.primitive if primitive is None else primitive,
                        self.invars if invars is None else invars,
                        self.outvars if outvars is None else outvars,
                        self.params if params is None else params,
                        self.effects if effects is None else effects,
                        self.source_info if source_info is None else source_info)

    @property
    def ctx(self) -> JaxprEqnContext:
        """The settings under which the equation is lowered."""
        metadata = self.source_info.name_stack.metadata
        return default_context if metadata is None else JaxprEqnContext(dict(metadata))


class JaxprEqnContext:
    """The settings under which an equation is lowered: one for all equations but those that have
    metadata, as flags that change a program are part of the key of each cache of programs."""

    __slots__ = ("xla_metadata",)

    compute_type = None

    def __init__(self, xla_metadata: dict[str, str] | None = None) -> None:
        self.xla_metadata = xla_metadata

    @property
    def threefry_partitionable(self) -> bool:
        return bool(configuration.threefry_partitionable.value)

    def __repr__(self) -> str:
        return (
            f"JaxprEqnContext(compute_type={self.compute_type}, "
            f"threefry_partitionable={self.threefry_partitionable}, "
            f"xla_metadata={self.xla_metadata})")


default_context = JaxprEqnContext()


class DebugInfo:
    """Where a jaxpr came from: for error messages and names in the lowered program.

    `arg_names` and `result_paths` may be given as functions, which are called when somebody asks.
    Paths of results may be set when the function has been traced.
    """

    __slots__ = ("_arg_names", "_result_paths", "func_src_info", "traced_for")

    def __init__(self, traced_for: str = "jit", func_src_info: str = "<unknown>",
                 arg_names: tuple[str, ...] | Callable[[], tuple[str, ...] | None] | None = None,
                 result_paths: tuple[str, ...] | Callable[[], tuple[str, ...] | None] | None = None
                ) -> None:
        self.traced_for = traced_for
        self.func_src_info = func_src_info
        self._arg_names = arg_names
        self._result_paths = result_paths

    @property
    def arg_names(self) -> tuple[str, ...] | None:
        """The name of each argument, such as `params['w']`; None if they are not known."""
        if callable(self._arg_names):
            self._arg_names = self._arg_names()
        return self._arg_names

    @property
    def result_paths(self) -> tuple[str, ...] | None:
        """The place of each result, such as `result[0]`; None if they are not known."""
        if callable(self._result_paths):
            self._result_paths = self._result_paths()
        return self._result_paths

    @result_paths.setter
    def result_paths(self, paths: Callable[[], tuple[str, ...] | None]) -> None:
        self._result_paths = paths

    @property
    def func_name(self) -> str:
        return self.func_src_info.split(" ")[0]

    @property
    def func_filename(self) -> str | None:
        place = self.func_src_info.partition(" at ")[2]
        return place.rpartition(":")[0] or None

    @property
    def func_lineno(self) -> int | None:
        line = self.func_src_info.partition(" at ")[2].rpartition(":")[2]
        return int(line) if line else None

    def _replace(self, **fields: Any) -> DebugInfo:
        """A copy with some fields replaced."""
        return DebugInfo(**{"traced_for": self.traced_for, "func_src_info": self.func_src_info,
                            "arg_names": self._arg_names, "result_paths": self._result_paths,
                            **fields})

    def with_unknown_names(self) -> DebugInfo:
        """The same without names of arguments and results."""
        return self._replace(arg_names=None, result_paths=None)

    def __repr__(self) -> str:
        return (
            f"DebugInfo(traced_for={self.traced_for!r}, func_src_info={self.func_src_info!r}, "
            f"arg_names={self.arg_names}, result_paths={self.result_paths})")


no_debug_info = DebugInfo()


class Jaxpr(Unpickled):
    """A program: constants and arguments in, equations, results out."""

    _instead = EXPORT

    __slots__ = ("__weakref__", "_last_uses", "constvars", "debug_info", "effects", "eqns",
                 "invars", "outvars")

    def __init__(self, constvars: Sequence[Var], invars: Sequence[Var], outvars: Sequence[Atom],
                 eqns: Sequence[JaxprEqn], effects: Effects = no_effects,
                 debug_info: DebugInfo = no_debug_info) -> None:
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.effects = effects
        self.debug_info = debug_info
        self._last_uses: list[list[Var]] | None = None

    def replace(self, **fields: Any) -> Jaxpr:
        """A copy with some fields replaced."""
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        unknown = fields.keys() - set(names)
        if unknown:
            raise TypeError(f"Jaxpr.replace: no field named {', '.join(sorted(unknown))}")
        return Jaxpr(**{n: fields[n] if n in fields else getattr(self, n) for n in names})

    @property
    def is_high(self) -> bool:
        """Whether values of types of libraries are among its own."""
        return has_types(self.effects)

    def last_uses(self) -> list[list[Var]]:
        """For each equation the variables that nothing behind it reads; found once."""
        if self._last_uses is None:
            last: dict[Any, int] = {}
            for i, eqn in enumerate(self.eqns):
                last.update(dict.fromkeys(eqn.outvars, i))
                last.update({x: i for x in eqn.invars if type(x) is not Literal})
            for x in self.outvars:
                if type(x) is not Literal:
                    last.pop(x, None)
            ends: list[list[Var]] = [[] for _ in self.eqns]
            for v, i in last.items():
                ends[i].append(v)
            self._last_uses = ends
        return self._last_uses

    @property
    def jaxpr(self) -> Jaxpr:
        return self

    @property
    def in_avals(self) -> list[Any]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[Any]:
        return [v.aval for v in self.outvars]

    @property
    def consts(self) -> list[Any]:
        """The values of its constants, of which it must have none.

        Raises:
          ValueError: it has some, whose values a `ClosedJaxpr` holds.
        """
        if self.constvars:
            raise ValueError(f"Jaxpr.consts: the values of its {len(self.constvars)} constants are "
                             "in the ClosedJaxpr that it belongs to; ask that one")
        return []

    literals = consts

    @property
    def all_invars(self) -> list[Var]:
        return [*self.constvars, *self.invars]

    @property
    def num_consts(self) -> int:
        return len(self.constvars)

    pretty_print: Callable[..., str]

    def __str__(self) -> str:
        return self.pretty_print(use_color=False)

    __repr__ = __str__


class ClosedJaxpr(Unpickled):
    """A jaxpr with the values of its constants. Hashed and compared by identity."""

    _instead = EXPORT

    __slots__ = ("__weakref__", "consts", "contents", "derived", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> None:
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(
                f"ClosedJaxpr: {len(consts)} constants for {len(jaxpr.constvars)} constvars")
        self.jaxpr = jaxpr
        self.consts = list(consts)
        self.derived: dict[Any, Any] | None = None  # of core.derived
        self.contents: Any = None  # of core.contents

    @property
    def in_avals(self) -> list[Any]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[Any]:
        return [v.aval for v in self.jaxpr.outvars]

    literals: Field[list[Any]] = of_field("consts")
    eqns: Field[list[JaxprEqn]] = of_field("jaxpr.eqns")
    effects: Field[Effects] = of_field("jaxpr.effects")
    constvars: Field[list[Var]] = of_field("jaxpr.constvars")
    invars: Field[list[Var]] = of_field("jaxpr.invars")
    outvars: Field[list[Atom]] = of_field("jaxpr.outvars")
    all_invars: Field[list[Var]] = of_field("jaxpr.all_invars")
    debug_info: Field[DebugInfo] = of_field("jaxpr.debug_info")
    is_high: Field[bool] = of_field("jaxpr.is_high")

    @property
    def num_consts(self) -> int:
        return len(self.consts)

    def with_jaxpr(self, jaxpr: Jaxpr) -> ClosedJaxpr:
        """What is made of its jaxpr, with the constants; the same program where nothing is."""
        return self if jaxpr is self.jaxpr else ClosedJaxpr(jaxpr, self.consts)

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None,
                **fields: Any) -> ClosedJaxpr:
        """A copy with some fields, of it or of its jaxpr, replaced."""
        inner = self.jaxpr if jaxpr is None else jaxpr.jaxpr
        return ClosedJaxpr(inner.replace(**fields) if fields else inner,
                           self.consts if consts is None else consts)

    def pretty_print(self, **options: Any) -> str:
        return self.jaxpr.pretty_print(**options)

    def __str__(self) -> str:
        return self.pretty_print(use_color=False)

    __repr__ = __str__


def print_by(of_jaxpr: Callable[..., str], of_eqn: Callable[[JaxprEqn], str]) -> None:
    """Let programs and equations show themselves so: core/printer.py says how, as it is loaded."""
    Jaxpr.pretty_print = of_jaxpr  # type: ignore[method-assign, assignment]
    JaxprEqn.__repr__ = of_eqn  # type: ignore[method-assign, assignment]


def subjaxprs(jaxpr: JaxprEqn | Jaxpr | ClosedJaxpr) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of an equation, or of all those of a jaxpr."""
    for eqn in (jaxpr,) if isinstance(jaxpr, JaxprEqn) else jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def _jaxprs_of(value: Any) -> Iterator[Jaxpr]:
    if isinstance(value, ClosedJaxpr):
        yield value.jaxpr
    elif isinstance(value, Jaxpr):
        yield value
    elif type(value) in (tuple, list):
        for item in value:
            yield from _jaxprs_of(item)


def jaxprs_in_params(params: ParamDict) -> Iterator[Jaxpr]:
    """The jaxprs among the parameters of an equation."""
    for value in params.values():
        yield from _jaxprs_of(value)


def new_jaxpr_eqn(invars: Sequence[Atom], outvars: Sequence[Var], primitive: Primitive,
                  params: ParamDict, effects: Effects, source_info: SourceInfo | None = None,
                  ctx: JaxprEqnContext | None = None) -> JaxprEqn:
    """An equation. `ctx` is the same for all."""
    return JaxprEqn(primitive, invars, outvars, params, effects,
                    no_source_info if source_info is None else source_info)
