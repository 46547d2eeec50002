"""Calling a module that was exported: its functions, made static for the types of a call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from lowering.types import CLOSE, OPEN, tensor_type
from pyjx import jaxlib_api
from pyjx.core.avals import ShapedArray
from pyjx.core.bounded import BoundedDict
from pyjx.core.jaxpr import Jaxpr, subjaxprs
from pyjx.core.primitive import Primitive, register
from pyjx.core.symbolic.expressions import DimExpr
from pyjx.core.symbolic.solving import solve
from pyjx.runtime.compile import families_in
from pyjx.runtime.executable import physical_aval

# The function of a module for several platforms that is for one of them.
PLATFORM_FUNCTION = "on_platform_{}"

_SYMBOL = re.compile(r"@([A-Za-z_][\w.$-]*)")
_EXPRESSION = re.compile(f"{OPEN}[^{CLOSE}]*{CLOSE}")


def lowered_type(aval: Any) -> str:
    """The type of an argument or a result of an exported module."""
    return _EXPRESSION.sub("?", tensor_type(physical_aval(aval)))


class CallableProgram(NamedTuple):
    """Functions to be put into another module, of which the first is to be called."""

    functions: tuple[tuple[str, str], ...]
    name: str
    in_types: tuple[str, ...]
    out_types: tuple[str, ...]
    kept: tuple[int, ...]
    custom_calls: tuple[str, ...]
    devices: int
    in_shardings: tuple[Any, ...]
    out_shardings: tuple[Any, ...]


class ExportedProgram:
    """An exported module with the types of its arguments and results."""

    __slots__ = ("__weakref__", "_functions", "_made", "_physical", "artifact", "devices",
                 "in_avals", "in_shardings", "kept", "name", "out_avals", "out_shardings",
                 "platforms", "solutions")

    def __init__(self, artifact: bytes, name: str, in_avals: Sequence[Any],
                 out_avals: Sequence[Any], platforms: Sequence[str], kept: Sequence[int],
                 devices: int, in_shardings: Sequence[Any], out_shardings: Sequence[Any]) -> None:
        self.artifact = artifact
        self.name = name
        self.in_avals = tuple(in_avals)
        self.out_avals = tuple(out_avals)
        self.platforms = tuple(platforms)
        self.kept = tuple(kept)
        self.devices = devices
        self.in_shardings = tuple(in_shardings)
        self.out_shardings = tuple(out_shardings)
        self.solutions = solve(self.in_avals)
        self._functions: dict[str, str] | None = None
        self._physical: ExportedProgram | None = None
        self._made = BoundedDict(64)

    @property
    def physical(self) -> ExportedProgram:
        """The program on the data of extended dtypes."""
        if self._physical is None:
            self._physical = ExportedProgram(
                self.artifact, self.name, list(map(physical_aval, self.in_avals)),
                list(map(physical_aval, self.out_avals)), self.platforms, self.kept,
                self.devices, self.in_shardings, self.out_shardings)
        return self._physical

    def values(self, avals: Sequence[ShapedArray]) -> dict[str, Any]:
        """The values that the variables have for arguments of these types."""
        values: dict[str, Any] = {}
        for s in self.solutions:
            rest = s.rest.evaluate(values) if isinstance(s.rest, DimExpr) else s.rest
            values[s.name] = (avals[s.argument].shape[s.axis] - rest) // s.coefficient
        return values

    def result_avals(self, avals: Sequence[ShapedArray]) -> list[Any]:
        """The types of the results for arguments of these types."""
        values = self.values(avals)
        return [a.update(shape=[d.evaluate(values) if isinstance(d, DimExpr) else d
                                for d in a.shape]) for a in self.out_avals]

    def functions(self) -> dict[str, str]:
        """The texts of the module's functions by their names."""
        if self._functions is None:
            self._functions = jaxlib_api.functions_of(jaxlib_api.artifact_text(self.artifact))
        return self._functions

    def for_call(self, avals: tuple[Any, ...], platform: str) -> CallableProgram:
        """The functions for a call with arguments of these types on a platform."""
        key = avals, platform
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._for_call(avals, platform)
        return found  # type: ignore[no-any-return]

    def _for_call(self, avals: tuple[Any, ...], platform: str) -> CallableProgram:
        functions, entry = dict(self.functions()), "main"
        if len(self.platforms) > 1:
            index = self.platforms.index(platform) if platform in self.platforms else 0
            own = PLATFORM_FUNCTION.format(self.platforms[index])
            if own not in functions:
                raise ValueError(f"The module of '{self.name}' has no function {own}.")
            entry = own
        functions[entry] = functions[entry].replace("func.func public", "func.func private", 1)
        in_types = [lowered_type(a) for a in self.in_avals]
        out_types = [lowered_type(a) for a in self.out_avals]
        static = all([type(d) is int for a in avals for d in a.shape])
        if self.solutions and static:
            results = self.result_avals(avals)
            functions = jaxlib_api.functions_of(jaxlib_api.refined(
                self._static_module(functions, entry, avals, in_types, out_types)))
            entry = "main"
            functions[entry] = functions[entry].replace(
                "func.func public", "func.func private", 1)
            in_types = [lowered_type(a) for a in avals]
            out_types = [lowered_type(a) for a in results]
        reached = _reached(functions, entry)
        text = "\n".join([t for _, t in reached])
        return CallableProgram(tuple(reached), self.name, tuple(in_types), tuple(out_types),
                               self.kept, tuple(families_in(text)), self.devices,
                               self.in_shardings, self.out_shardings)

    def _static_module(self, functions: dict[str, str], entry: str, avals: Sequence[Any],
                       in_types: Sequence[str], out_types: Sequence[str]) -> str:
        """The module with a `main` for arguments of these types, which calls `entry`."""
        lines, given = [], []
        for n, i in enumerate(self.kept):
            own, wanted = lowered_type(avals[i]), in_types[i]
            given.append(f"%arg{n}")
            if own != wanted:
                lines.append(f"    %g{n} = stablehlo.convert %arg{n} : ({own}) -> {wanted}")
                given[-1] = f"%g{n}"
        params = ", ".join([f"%arg{n}: {lowered_type(avals[i])}" for n, i in enumerate(self.kept)])
        types, results = ", ".join([in_types[i] for i in self.kept]), ", ".join(out_types)
        count = len(out_types)
        name = "entry_of_module"
        called = f"func.call @{name}({', '.join(given)}) : ({types}) -> ({results})"
        names = ["%r"] if count == 1 else [f"%r#{i}" for i in range(count)]
        lines.append(f"    {f'%r:{count} = ' if count > 1 else '%r = ' if count else ''}{called}")
        lines.append(f"    return {', '.join(names)} : {results}" if count else "    return")
        body = "\n".join([_renamed(t, entry, name) for n, t in _reached(functions, entry)])
        main = "\n".join([f"  func.func public @main({params}) -> ({results}) {{", *lines, "  }"])
        return f"module @exported {{\n{main}\n{body}\n}}\n"


def _renamed(text: str, old: str, new: str) -> str:
    return _SYMBOL.sub(lambda m: f"@{new}" if m[1] == old else m[0], text)


def _reached(functions: dict[str, str], entry: str) -> list[tuple[str, str]]:
    """The functions that `entry` needs, itself first."""
    names, done = [entry], {entry}
    for name in names:
        for found in _SYMBOL.findall(functions[name]):
            if found in functions and found not in done:
                done.add(found)
                names.append(found)
    return [(name, functions[name]) for name in names]


def _shape_rule(*avals: ShapedArray, program: ExportedProgram) -> list[Any]:
    return program.result_avals(avals)


def has_constants(jaxpr: Jaxpr) -> bool:
    """Whether a program calls exported ones whose sizes or platform are constants of a call."""
    for eqn in jaxpr.eqns:
        if eqn.primitive is call_exported_p:
            program: ExportedProgram = eqn.params["program"]
            if program.solutions or len(program.platforms) > 1:
                return True
    return any([has_constants(inner) for inner in subjaxprs(jaxpr)])


def _physical(avals: Any, *operands: Any, program: ExportedProgram) -> Any:
    return call_exported_p.bind(*operands, program=program.physical)


call_exported_p: Primitive = register(Primitive(
    "call_exported", multiple_results=True, cached=False, shape_rule=_shape_rule,
    physical=_physical,
    label=lambda params: f"call_exported({params['program'].name})",
    printed=lambda params: [("name", params["program"].name)],
))
