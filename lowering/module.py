"""The functions of a module, and the equations of a jaxpr as lines of one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowering.builder import Block
from lowering.locations import Locations, Scope
from lowering.rules import PLATFORMS, rules_for
from lowering.shardings import Meshes
from lowering.types import quoted, tensor_type
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.records import Record
from pyjx.core.source_info import note_origin

_TOKEN = "jax.token = true"
KEEP_CALL = ' {mhlo.frontend_attributes = {inlineable = "false"}}'


def clean_name(wanted: str) -> str:
    """`wanted` as one of MLIR's symbols."""
    known = [c if c.isascii() and (c.isalnum() or c == ".") else "_" for c in wanted]
    return "".join(known).rstrip("_") or "f"


class Function:
    """A function of a module: its signature, and its body as a block."""

    __slots__ = ("block", "name", "names", "param_attributes", "params",
                 "result_attributes", "results", "visibility")

    def __init__(self, block: Block, name: str, params: Sequence[Any], results: Sequence[Any]
                 ) -> None:
        self.block = block
        self.name = name
        self.params = [f"%arg{i}: {tensor_type(a)}" for i, a in enumerate(params)]
        self.results = [tensor_type(a) for a in results]
        self.param_attributes: list[list[str]] = [[] for _ in self.params]
        self.result_attributes: list[list[str]] = [[] for _ in self.results]
        self.visibility = "private"
        # The user's names of parameters and results, "" where there is none, for who asks.
        self.names: Callable[[], tuple[Sequence[str], Sequence[str]]] | None = None

    def mark_tokens(self, position: int) -> None:
        """Say of the parameter at this position, and of the first result, that they are tokens."""
        self.param_attributes[position].append(_TOKEN)
        self.result_attributes[0].append(_TOKEN)

    def close(self, outs: Sequence[str]) -> None:
        """Write the end of the body, which returns the values of these names."""
        self.block.raw(f"return {', '.join(outs)} : {', '.join(self.results)}" if outs
                       else "return")
        del self.block.module  # which holds this function

    def text(self, places: Locations | None = None, names_results: bool = False) -> str:
        """MLIR's text; with `places` operations and arguments have locations, and with
        `names_results` results the user's names."""
        params = list(map(_with, self.params, self.param_attributes))
        attributes, lines = self.result_attributes, self.block.lines
        if places is not None:
            lines = places.located(self.block)
        if self.names is not None and (places is not None or names_results):
            of_params, of_results = self.names()
            if places is not None:
                params = [f"{p} loc({quoted(n)})" if n else p
                          for p, n in zip(params, of_params, strict=True)]
            if names_results:
                attributes = [[*a, f"jax.result_info = {quoted(n)}"] if n else a
                              for a, n in zip(attributes, of_results, strict=True)]
        results = ", ".join(map(_with, self.results, attributes))
        if results:
            plain = len(attributes) == 1 and not attributes[0]
            results = f" -> {results}" if plain else f" -> ({results})"
        body = "\n".join(lines)
        return (f"  func.func {self.visibility} @{self.name}({', '.join(params)}){results} {{\n"
                f"{body}\n  }}")


def _with(text: str, attributes: Sequence[str]) -> str:
    """A parameter or a result with its attributes."""
    return f"{text} {{{', '.join(attributes)}}}" if attributes else text


class HostTransfers(Record):
    """How a program hands arrays to the host and gets some back: their types and their channels.
    The function takes the first `taken` of those that are sent."""

    taken: int
    sent: Sequence[ShapedArray]
    send_channels: Sequence[int]
    received: Sequence[ShapedArray]
    receive_channels: Sequence[int]


class HostCall(Record):
    """A Python function that a program calls: it takes and gives arrays, and if `ordered` a token
    before them. Where the device cannot call it, `transfers` says how the arrays travel. Errors
    show where the program calls it: there it was traced with this `traceback`."""

    function: Callable[..., Sequence[Any]]
    result_avals: Sequence[ShapedArray]
    ordered: bool
    transfers: HostTransfers | None = None
    traceback: Any = None


class Inspection:
    """A function that is to be called with the sharding of a value of the program.

    Attributes:
      callback: the function.
      ndim: the rank of the value.
      chosen: what the partitioner has said of it, in XLA's form; None where it was not asked.
    """

    __slots__ = ("callback", "chosen", "found", "ndim")

    def __init__(self, callback: Callable[[Any], None], ndim: int) -> None:
        self.callback = callback
        self.ndim = ndim
        self.chosen: Any = None

        def found(sharding: Any) -> None:
            self.chosen = sharding.to_proto()

        self.found = found  # XLA knows it by its address


class Module:
    """The functions of a module as they are written, and what they need at run time."""

    __slots__ = ("_by_key", "_names", "custom_calls", "devices", "foreign", "functions",
                 "host_calls", "inspections", "keepalives", "manual", "meshes", "name",
                 "partitions", "platform", "rules", "spread")

    def __init__(self, name: str, platform: str, partitions: int = 1) -> None:
        self.name = name
        self.platform = platform
        self.partitions = partitions
        self.spread = partitions > 1  # over a mesh, which may be one device: shardings are written
        self.devices: Sequence[Any] = ()
        self.meshes = Meshes()
        # What is being written is the program of each device along these axes of a mesh.
        self.manual: tuple[Any, frozenset[Any]] | None = None
        self.rules = rules_for(platform)
        self.functions: list[Function] = []
        self.custom_calls: set[str] = set()
        self.host_calls: list[HostCall] = []
        self.keepalives: list[Any] = []  # what the program needs as long as it lives
        self.foreign: dict[Any, str] = {}  # the names of programs that came as text
        self.inspections: list[Inspection] = []
        self._names: set[str] = {"main"}
        self._by_key: dict[Any, str] = {}

    def fresh_name(self, wanted: str) -> str:
        base = name = clean_name(wanted)
        n = 0
        while name in self._names:
            name = f"{base}_{n}"
            n += 1
        self._names.add(name)
        return name

    def function(self, closed: ClosedJaxpr, name: str, scope: Scope) -> str:
        """The name of a private function for `closed`, written at its first use.

        Its constants, if it has any, are its first parameters.
        """
        key = closed if self.manual is None else (closed, self.manual)
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = self.fresh_name(name)
            jaxpr = closed.jaxpr
            function = self.add(found, [v.aval for v in jaxpr.all_invars], jaxpr.out_avals, scope)
            function.close(emit_jaxpr(function.block, jaxpr, arguments(jaxpr)))
        return found

    def helper(self, key: Any, name: str, params: Sequence[Any], results: Sequence[Any],
               body: Callable[..., Sequence[str]]) -> str:
        """The name of a private function that `body(block, *names)` writes, one for each `key`."""
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = self.fresh_name(name)
            function = self.add(found, params, results, Scope(name))
            function.close(body(function.block, *[f"%arg{i}" for i in range(len(params))]))
        return found

    def add(self, name: str, params: Sequence[Any], results: Sequence[Any], scope: Scope
            ) -> Function:
        """A new function, whose body is still empty. Callees come after their caller."""
        function = Function(self.block(scope), name, params, results)
        self.functions.append(function)
        return function

    def block(self, scope: Scope) -> Block:
        """An empty body."""
        return Block(self, scope)

    def text(self, places: Locations | None = None, names_results: bool = False) -> str:
        """MLIR's text; with `places` operations have locations, and with `names_results` results
        the user's names, as an attribute, which nothing but a reader looks at."""
        body = "\n".join([f.text(places, names_results) for f in self.functions])
        text = (f"module @{clean_name(f'jit_{self.name}')} attributes {{mhlo.num_partitions = "
                f"{self.partitions} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
                f"{self.meshes.text()}{body}\n}}\n")
        return text if places is None else "\n".join([text[:-1], *places.lines, ""])


def arguments(jaxpr: Jaxpr) -> dict[Var, str]:
    """The names of a function's arguments."""
    return {v: f"%arg{i}" for i, v in enumerate(jaxpr.all_invars)}


def emit_jaxpr(b: Block, jaxpr: Jaxpr, env: dict[Var, str]) -> list[str]:
    """Write the equations of `jaxpr`; the names of its inputs are in `env`."""
    rules, lines, marks, scope = b.module.rules, b.lines, b.marks, b.scope
    try:
        for eqn in jaxpr.eqns:
            rule = rules[eqn.primitive.name]
            if rule is None:
                raise NotImplementedError(
                    f"MLIR translation rule for primitive '{eqn.primitive}' not found for platform "
                    f"{b.module.platform}{_where_else(eqn.primitive.name, b.module.platform)}")
            start = len(lines)
            if rule.widens:
                shape = eqn.outvars[0].aval.shape
                out = rule.emit(b, eqn, *[
                    env[v] if type(v) is Var and v.aval.shape == shape else b.widened(v, env, shape)
                    for v in eqn.invars])
            else:
                out = rule.emit(b, eqn, *[
                    b.literal(v) if type(v) is Literal else env[v]  # type: ignore[index]
                    for v in eqn.invars])
            if type(out) is str:
                env[eqn.outvars[0]] = out
            else:
                env.update(zip(eqn.outvars, out, strict=True))
            marks.append((start, len(lines), eqn, scope))
    except Exception as error:
        note_origin(error, eqn.source_info.traceback)
        raise
    return [
        b.literal(v) if type(v) is Literal else env[v]  # type: ignore[index]
        for v in jaxpr.outvars]


def _where_else(name: str, platform: str) -> str:
    """The end of the error for a primitive without a rule."""
    others = [p for p in PLATFORMS if rules_for(p)[name] is not None and platform in PLATFORMS]
    return f". It runs on {', '.join(others)}; move its operands there." if others else ""


def call_closed(b: Block, closed: ClosedJaxpr, name: str, operands: Sequence[str], *,
                scope: Scope, attributes: str = "") -> list[str]:
    """Call a jaxpr as a private function, whose operations are in `scope`."""
    jaxpr = closed.jaxpr
    function = b.module.function(closed, name, scope)
    return b.call(function, [*captured(b, closed), *operands], [v.aval for v in jaxpr.all_invars],
                  jaxpr.out_avals, attributes)


def write_in_place(b: Block, closed: ClosedJaxpr, operands: Sequence[str], eqn: JaxprEqn,
                   part: str = "") -> list[str]:
    """Write the equations of a jaxpr here, which `eqn` holds, as that part of it."""
    names, around = [*captured(b, closed), *operands], b.scope
    b.scope = around.inside(eqn, part)
    try:
        return emit_jaxpr(b, closed.jaxpr, dict(zip(closed.jaxpr.all_invars, names, strict=True)))
    finally:
        b.scope = around


def captured(b: Block, closed: ClosedJaxpr) -> list[str]:
    """The constants of a nested jaxpr, written into the text."""
    return [constant_operand(b, c, v.aval)
            for c, v in zip(closed.consts, closed.jaxpr.constvars, strict=True)]


def constant_operand(b: Block, value: Any, aval: ShapedArray) -> str:
    return b.dense(np.asarray(value).astype(aval.dtype, copy=False))
