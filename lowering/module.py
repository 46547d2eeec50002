"""Text of a whole module: the main function, private functions, constants as arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowering.builder import RULES, WIDENS, Block
from lowering.locations import Locations
from lowering.types import tensor_type
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.trace import trace_to_jaxpr

# Constants of up to so many bytes are written into the text; larger ones become arguments.
INLINE_CONSTANT_BYTES = 32
# A decomposition of up to so many equations is written where it is used.
INLINE_DECOMPOSITION_EQNS = 6

KEEP_CALL = ' {mhlo.frontend_attributes = {inlineable = "false"}}'


class Lowered:
    """A module's text, the constants that its main function takes before its arguments, and the
    types of donated arguments whose memory no result can take over."""

    __slots__ = ("const_args", "text", "unused_donations")

    def __init__(self, text: str, const_args: list[Any], unused_donations: list[ShapedArray]
                 ) -> None:
        self.text = text
        self.const_args = const_args
        self.unused_donations = unused_donations


class Module:
    """The functions of a module as they are written."""

    __slots__ = ("_by_jaxpr", "_names", "const_args", "functions", "locations", "platform")

    def __init__(self, platform: str, locations: Locations | None = None) -> None:
        self.platform = platform
        self.locations = locations
        self.functions: list[str] = []
        self.const_args: list[Any] = []
        self._names: set[str] = {"main"}
        self._by_jaxpr: dict[Any, str] = {}

    def fresh_name(self, wanted: str) -> str:
        base = name = re.sub(r"[^A-Za-z0-9_.]", "_", wanted) or "f"
        n = 0
        while name in self._names:
            name = f"{base}_{n}"
            n += 1
        self._names.add(name)
        return name

    def function(self, closed: ClosedJaxpr, name: str) -> str:
        """The name of a private function for `closed`, written at its first use.

        Its constants, if it has any, are its first parameters.
        """
        found = self._by_jaxpr.get(closed)
        if found is None:
            found = self._by_jaxpr[closed] = self.fresh_name(name)
            self.write_function(found, closed.jaxpr)
        return found

    def helper(self, key: Any, name: str, params: Sequence[Any], results: Sequence[Any],
               body: Callable[..., Sequence[str]]) -> str:
        """The name of a private function that `body(block, *names)` writes, one for each `key`."""
        found = self._by_jaxpr.get(key)
        if found is None:
            found = self._by_jaxpr[key] = self.fresh_name(name)
            block = Block(self)
            names = [f"%arg{i}" for i in range(len(params))]
            heads = [f"{n}: {tensor_type(a)}" for n, a in zip(names, params, strict=True)]
            outs = body(block, *names)
            types = ", ".join([tensor_type(a) for a in results])
            lines = "\n".join([*block.lines, f"    return {', '.join(outs)} : {types}"])
            self.functions.append(f"  func.func private @{found}({', '.join(heads)}) -> ({types}) "
                                  f"{{\n{lines}\n  }}")
        return found

    def write_function(self, name: str, jaxpr: Jaxpr, *, public: bool = False,
                       arg_attributes: Sequence[str] = (), result_attributes: Sequence[str] = (),
                       constants: Sequence[tuple[Var, Any]] = ()) -> None:
        block = Block(self)
        params = [*jaxpr.constvars, *jaxpr.invars]
        env: dict[Var, str] = {}
        heads = []
        for i, v in enumerate(params):
            env[v] = f"%arg{i}"
            attribute = arg_attributes[i] if arg_attributes else ""
            heads.append(f"%arg{i}: {tensor_type(v.aval)}{attribute}")
        slot = len(self.functions)
        self.functions.append("")  # callees come after their caller
        for v, value in constants:
            env[v] = constant_operand(block, value, v.aval)
        outs = emit_jaxpr(block, jaxpr, env)
        types = [tensor_type(v.aval) for v in jaxpr.outvars]
        marked = [t + a for t, a in zip(types, result_attributes, strict=True)] \
            if result_attributes else types
        result = f" -> ({', '.join(marked)})" if marked else ""
        visibility = "public" if public else "private"
        values = f" {', '.join(outs)} : {', '.join(types)}" if outs else ""
        body = "\n".join([*block.lines, f"    return{values}"])
        self.functions[slot] = (
            f"  func.func {visibility} @{name}({', '.join(heads)}){result} {{\n{body}\n  }}"
        )


def emit_jaxpr(b: Block, jaxpr: Jaxpr, env: dict[Var, str]) -> list[str]:
    """Write the equations of `jaxpr`; the names of its inputs are in `env`."""
    locations = b.module.locations
    for eqn in jaxpr.eqns:
        start = len(b.lines)
        name = eqn.primitive.name
        widens = name in WIDENS and eqn.outvars[0].aval.shape
        operands = [
            env[v] if type(v) is Var else "" if widens else b.constant(v.val, v.aval)  # type: ignore[union-attr]
            for v in eqn.invars
        ]
        emit = RULES.get(name)
        if emit is None:
            emit = _fallback_rule(eqn)
        out = emit(b, eqn, *operands)
        if type(out) is str:
            env[eqn.outvars[0]] = out
        else:
            env.update(zip(eqn.outvars, out, strict=True))
        if locations is not None:
            locations.mark(b.lines, start, eqn)
    return [
        b.constant(v.val, v.aval) if isinstance(v, Literal) else env[v] for v in jaxpr.outvars
    ]


def _fallback_rule(eqn: JaxprEqn) -> Any:
    if eqn.primitive.decomposition is not None:
        return _emit_decomposed
    raise NotImplementedError(
        f"MLIR translation rule for primitive '{eqn.primitive}' not found"
    )


_decompositions: dict[Any, ClosedJaxpr] = {}


def _emit_decomposed(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    primitive = eqn.primitive
    avals = tuple([v.aval for v in eqn.invars])
    key: Any = (primitive, avals, *eqn.params.items())
    try:
        closed = _decompositions.get(key)
    except TypeError:  # an unhashable parameter
        closed = key = None
    if closed is None:
        def fun(*args: Any) -> Any:
            out = primitive.decomposition(*args, **eqn.params)  # type: ignore[misc]
            return out if primitive.multiple_results else [out]

        closed = trace_to_jaxpr(fun, avals)
        if key is not None:
            _decompositions[key] = closed
    return call_closed(b, closed, primitive.name, operands,
                       inline=len(closed.eqns) <= INLINE_DECOMPOSITION_EQNS)


def call_closed(b: Block, closed: ClosedJaxpr, name: str, operands: Sequence[str], *,
                inline: bool = False, attributes: str = "") -> list[str]:
    """Use a jaxpr: written in place with `inline`, else as a call of a private function."""
    jaxpr = closed.jaxpr
    consts = [constant_operand(b, c, v.aval)
              for c, v in zip(closed.consts, jaxpr.constvars, strict=True)]
    operands = [*consts, *operands]
    params = [*jaxpr.constvars, *jaxpr.invars]
    if inline:
        return emit_jaxpr(b, jaxpr, dict(zip(params, operands, strict=True)))
    function = b.module.function(closed, name)
    return b.call(function, operands, [v.aval for v in params],
                  [v.aval for v in jaxpr.outvars], attributes)


def constant_operand(b: Block, value: Any, aval: ShapedArray) -> str:
    """A captured constant of a nested jaxpr, written into the text."""
    return b.dense(np.asarray(value).astype(aval.dtype, copy=False))


def lower(
    closed: ClosedJaxpr, name: str = "main", *, platform: str = "cpu",
    donated: Sequence[bool] = (), locations: int = 0,
) -> Lowered:
    """The StableHLO module of a jaxpr. The same jaxpr gives the same text.

    Args:
      closed: the program; none of its constants may be a tracer.
      name: the module is called `jit_<name>`.
      platform: `cpu`, `cuda` or `tpu`, for the rules that differ.
      donated: for each argument, whether its memory may be reused for a result.
      locations: how many of the user's stack frames each operation's location has; 0 for none.
    """
    from lowering import families  # noqa: F401  (imports this module)

    places = Locations(name, locations) if locations else None
    module = Module(platform, places)
    jaxpr = closed.jaxpr
    small = [np.asarray(c).nbytes <= INLINE_CONSTANT_BYTES if isinstance(c, np.ndarray) else False
             for c in closed.consts]
    hoisted = [v for v, s in zip(jaxpr.constvars, small, strict=True) if not s]
    consts = [c for c, s in zip(closed.consts, small, strict=True) if not s]
    donations, unused = _donation(jaxpr, donated)
    arg_attributes = ["" for _ in hoisted] + donations
    inlined = [(v, c) for v, c, s in zip(jaxpr.constvars, closed.consts, small, strict=True) if s]
    main = jaxpr.replace(constvars=[], invars=[*hoisted, *jaxpr.invars])
    module.write_function("main", main, public=True, arg_attributes=arg_attributes,
                          constants=inlined)
    body = "\n".join(module.functions)
    module_name = re.sub(r"[^A-Za-z0-9_.]", "_", f"jit_{name}")
    text = (
        f"module @{module_name} attributes {{mhlo.num_partitions = 1 : i32, "
        f"mhlo.num_replicas = 1 : i32}} {{\n{body}\n}}\n"
    )
    if places is not None:
        text += "\n".join([*places.lines, ""])
    return Lowered(text, consts, unused)


def _donation(jaxpr: Jaxpr, donated: Sequence[bool]) -> tuple[list[str], list[ShapedArray]]:
    """Attributes of the arguments: which result takes over a donated argument's memory; and the
    types of those donated in vain."""
    attributes = ["" for _ in jaxpr.invars]
    unused: list[ShapedArray] = []
    if not any(donated):
        return attributes, unused
    free: dict[Any, list[int]] = {}
    for i, v in reversed(list(enumerate(jaxpr.outvars))):
        free.setdefault((v.aval.shape, v.aval.dtype), []).append(i)
    left = []
    for i, (v, given) in enumerate(zip(jaxpr.invars, donated, strict=True)):
        results = free.get((v.aval.shape, v.aval.dtype))
        if given and results:
            attributes[i] = f" {{tf.aliasing_output = {results.pop()} : i32}}"
        elif given:
            left.append(i)
    # XLA may find a use for memory of another shape, if there is a result of the same size.
    free_sizes = [math.prod(shape) for (shape, _), results in free.items() for _ in results]
    for i in left:
        aval = jaxpr.invars[i].aval
        if aval.size in free_sizes:
            free_sizes.remove(aval.size)
            attributes[i] = " {jax.buffer_donor = true}"
        else:
            unused.append(aval)
    return attributes, unused
