"""Programs within programs: calls of nested jaxprs, written once as private functions; loops; one
of several programs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.builder import Block, in_avals, out_aval
from lowering.locations import Scope
from lowering.module import KEEP_CALL, call_closed, captured, write_in_place
from lowering.rules import rule, rules_for
from lowering.shardings import placed_in_memory
from lowering.types import quoted, tensor_type, tensor_types
from pyjx.core.avals import ShapedArray
from pyjx.core.derived import derived_structure
from pyjx.core.evaluation import all_eqns
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.options import ONE_KERNEL, Inline

# -- calls -----------------------------------------------------------------------------------------


@rule("jit")
def _jit(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    closed, name = eqn.params["jaxpr"], eqn.params["name"]
    if eqn.params["compiler_options_kvs"]:
        raise ValueError(
            "`compiler_options` can only be passed to top-level `jax.jit`: XLA compiles a program "
            f"as a whole. Got compiler_options={dict(eqn.params['compiler_options_kvs'])} of the "
            f"function {name}, which is called in another one that is jitted.")
    debug = closed.debug_info
    function = debug.func_name.rpartition(".")[2], debug.func_filename
    inline = eqn.params["inline"]
    if inline is Inline.JAX_LATE:  # one with constants: the others are in place already
        return write_in_place(b, closed, operands)
    attributes = _XLA_INLINES.get(inline, "") if inline else ""
    return call_closed(b, closed, name, operands, scope=Scope("", function),
                       attributes=attributes)


_XLA_INLINES: dict[Any, str] = {
    choice: f' {{mhlo.frontend_attributes = {{inlineable = "{choice.value}"}}}}'
    for choice in (Inline.XLA_EARLY, Inline.XLA_LATE)}
_XLA_INLINES[ONE_KERNEL] = (
    ' {mhlo.frontend_attributes = {inlineable = "false", xla_cpu_small_call = "true"}}')


@rule("outlined_call")
def _outlined_call(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    closed: ClosedJaxpr = eqn.params["jaxpr"]
    return call_closed(b, closed, eqn.params["name"], operands, scope=b.scope,
                       attributes="" if _calls_foreign(closed, b.module.platform) else KEEP_CALL)


@derived_structure
def _calls_foreign(closed: ClosedJaxpr, platform: str) -> bool:
    """Whether a foreign function is called in the program, or in one inside it.

    XLA gives a parameter that such a call reads the layout which it wants. Of a computation that
    stays one (0.12 on CPU) the caller's operand may then come in another layout, that is, as the
    transposed matrix. So XLA is to inline such a function, as it does by default.
    """
    rules = rules_for(platform)
    found = [rules[eqn.primitive.name] for eqn in all_eqns(closed)]
    return any([rule is None or rule.foreign for rule in found])


def _frontend(items: Sequence[tuple[str, str]]) -> str:
    """The attribute by which XLA is told something of an operation."""
    pairs = ", ".join([f"{key if key.isidentifier() else quoted(key)} = {quoted(value)}"
                       for key, value in items])
    return f" {{{_FRONTEND}{pairs}}}}}" if pairs else ""


_FRONTEND = "mhlo.frontend_attributes = {"


@rule("xla_metadata_operation")
def _xla_metadata_operation(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    closed, first = eqn.params["jaxpr"], len(b.marks)
    outs = write_in_place(b, closed, operands)
    own = set(map(id, closed.eqns))
    for start, stop, inner, _ in b.marks[first:]:
        if id(inner) in own and stop > start:  # the last line gives the result
            line = b.lines[stop - 1]
            new = [item for item in eqn.params["xla_metadata"] if not _says(line, item[0])]
            if new:
                b.lines[stop - 1] = _with_attribute(line, _frontend(new)[2:-1])
    return outs


def _says(line: str, key: str) -> bool:
    """Whether XLA is told something by this name already, as what is nearer to the operation."""
    said = line.partition(_FRONTEND)[2].partition("}")[0]
    return f"{key if key.isidentifier() else quoted(key)} = " in said


def _with_attribute(line: str, said: str) -> str:
    """The line of an operation with what XLA is told of it, besides the attributes that it has."""
    head, colon, types = line.rpartition(" : ")
    if not colon or "stablehlo.constant" in head or "stablehlo.optimization_barrier" in head:
        return line
    if head.endswith("}"):  # attributes, unless nothing stands before the brace or it is a region
        depth = 0
        for at in range(len(head) - 1, -1, -1):
            depth += (head[at] == "}") - (head[at] == "{")
            if not depth:
                break
        known = head[at + 1:-1]
        if _FRONTEND in known:
            inner = said.removeprefix(_FRONTEND).removesuffix("}")
            known = known.replace(_FRONTEND, f"{_FRONTEND}{inner}, ", 1)
        else:
            known = f"{known}, {said}"
        return f"{head[:at]}{{{known}}}{colon}{types}"
    return f"{head} {{{said}}}{colon}{types}"


@rule("xla_metadata_call")
def _xla_metadata_call(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    return call_closed(b, eqn.params["jaxpr"], "xla_metadata_call", operands, scope=b.scope,
                       attributes=_frontend(eqn.params["xla_metadata"]))


@rule("fused_call")
def _fused_call(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    outs = call_closed(b, eqn.params["jaxpr"], "fused_call", operands, scope=b.scope,
                       attributes=_frontend([("MUST_FUSE", "fused_call")]))
    return _in_memories(b, outs, eqn, eqn.params["out_spaces"])


@rule("compute_on")
def _compute_on(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    outs = call_closed(b, eqn.params["jaxpr"], "compute_on", operands, scope=b.scope,
                       attributes=_frontend(compute_attributes(eqn.params)))
    return _in_memories(b, outs, eqn, eqn.params["out_memory_spaces"])


def compute_attributes(params: dict[str, Any]) -> list[tuple[str, str]]:
    """What tells XLA where a program of `compute_on` is computed."""
    kind, options = params["compute_type"], params["compiler_options_json"]
    found = [("_xla_compute_type", {"device_host": "host", "tpu_sparsecore": "sparse"}.get(
        kind, kind))]
    if kind.startswith("gpu_stream:"):
        found = [("_scheduling_group_id", kind.partition(":")[2])]
    return found + ([] if options is None else [("backend_config", options)])


def _in_memories(b: Block, outs: Sequence[str], eqn: JaxprEqn, spaces: Sequence[Any] | None
                 ) -> list[str]:
    """The results, those that are to be in the device's own memory there; a CPU has one. Others
    are moved by operations that follow."""
    if b.module.platform == "cpu":
        return list(outs)
    if spaces is None:
        return [placed_in_memory(b, x, v.aval, "device")
                for x, v in zip(outs, eqn.outvars, strict=True)]
    return [placed_in_memory(b, x, v.aval, "device") if space.name == "Device" else x
            for x, v, space in zip(outs, eqn.outvars, spaces, strict=True)]


_COMPOSITE_NAME = r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+"


@rule("composite")
def _composite(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    name, closed = eqn.params["name"], eqn.params["call_jaxpr"]
    if not isinstance(name, str) or not re.fullmatch(_COMPOSITE_NAME, name):
        raise ValueError("composite: name must be that of an operation in a namespace, such as "
                         f"'my_namespace.my_op', got {name!r}.")
    jaxpr = closed.jaxpr
    function = b.module.function(closed, name, Scope(name))
    attributes = [f"decomposition = @{function}"]
    if eqn.params["attributes"]:
        pairs = ", ".join([f"{key} = {text}" for key, text in eqn.params["attributes"]])
        attributes.insert(0, f"composite_attributes = {{{pairs}}}")
    if eqn.params["version"]:
        attributes.append(f"version = {eqn.params['version']} : i32")
    results = jaxpr.out_avals
    types = tensor_types(results) if len(results) == 1 else f"({tensor_types(results)})"
    return b.multi(
        f"stablehlo.composite {quoted(name)} {', '.join([*captured(b, closed), *operands])} "
        f"{{{', '.join(attributes)}}} : ({tensor_types([v.aval for v in jaxpr.all_invars])}) -> "
        f"{types}", len(results))


@rule("dce_sink")
def _dce_sink(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    if eqn.params["prevent_mlir_dce"]:
        b.custom_call("dce_sink", operands, [v.aval for v in eqn.invars], [], has_side_effect=True)
    return ()


@rule("custom_lin")
def _custom_lin(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    raise TypeError("can't apply forward-mode autodiff (jvp) to a custom_vjp function.")


@rule("control_dep")
def _control_dep(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    if b.module.platform in ("cuda", "rocm"):  # other compilers do not know it
        b.custom_call("control_dep", operands, [v.aval for v in eqn.invars], [],
                      has_side_effect=True)
    return ()


# -- loops and conditionals ------------------------------------------------------------------------


@rule("while")
def _while(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    params = eqn.params
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond_consts, body_consts = operands[:n_cond], operands[n_cond:n_cond + n_body]
    init, avals = operands[n_cond + n_body:], in_avals(eqn)[n_cond + n_body:]
    if not init:
        return []
    count = len(init)
    result = b.name()
    state = [b.name() for _ in init]
    pairs = ", ".join([f"{s} = {x}" for s, x in zip(state, init, strict=True)])
    head = f"{result}:{count}" if count > 1 else result
    b.opening(f"{head} = stablehlo.while({pairs}) : {tensor_types(avals)} cond {{")
    _region(b, params["cond_jaxpr"], [*cond_consts, *state], b.scope.inside(eqn, "while/cond"))
    b.opening("} do {")
    _region(b, params["body_jaxpr"], [*body_consts, *state], b.scope.inside(eqn, "while/body"))
    b.raw("}")
    return [f"{result}#{i}" for i in range(count)] if count > 1 else [result]


@rule("scan")
def _scan(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    """A while loop over (index, carry, stacked results), which reads the other operands from around
    it. What `unroll` leaves over comes after the loop."""
    params = eqn.params
    avals, first, n = in_avals(eqn), params["num_consts"], params["num_carry"]
    length, unroll = params["length"], params["unroll"]
    body = _Body(b, params, operands, avals)
    init = [*operands[first:first + n], *[_zeros(b, v.aval) for v in eqn.outvars[n:]]]
    if not length:
        return init
    turns = length // unroll
    if turns == 1:
        turns = 0  # the whole scan is unrolled
    state = [b.constant(0, _INDEX), *init]
    if turns:
        types = tensor_types([_INDEX, *[v.aval for v in eqn.outvars]])
        names = [b.name() for _ in state]
        pairs = ", ".join([f"{s} = {x}" for s, x in zip(names, state, strict=True)])
        result = b.name()
        b.opening(f"{result}:{len(state)} = stablehlo.while({pairs}) : {types} cond {{")
        with b.region(scope=b.scope.inside(eqn, "while/cond")):
            end = b.constant(turns * unroll, _INDEX)
            b.raw(f"stablehlo.return {b.compare('LT', names[0], end, _INDEX)} : tensor<i1>")
        b.opening("} do {")
        with b.region(scope=b.scope.inside(eqn, "while/body")):
            outs = body.repeated(unroll, names)
            b.raw(f"stablehlo.return {', '.join(outs)} : {types}")
        b.raw("}")
        state = [f"{result}#{i}" for i in range(len(state))]
    return body.repeated(length - turns * unroll, state)[1:]


_INDEX = ShapedArray((), np.dtype(np.int32))


def _zeros(b: Block, aval: ShapedArray) -> str:
    return b.constant(0, aval)


class _Body:
    """The body of a scan, written where it is wanted."""

    def __init__(self, b: Block, params: dict[str, Any], operands: Sequence[str],
                 avals: Sequence[ShapedArray]) -> None:
        self.b = b
        self.params = params
        first = params["num_consts"]
        self.consts = operands[:first]
        past = first + params["num_carry"]
        self.xs = list(zip(operands[past:], avals[past:], strict=True))

    def repeated(self, times: int, state: Sequence[str]) -> list[str]:
        """The state after so many iterations."""
        now = list(state)
        for _ in range(times):
            now = self._once(*now)
        return now

    def _once(self, index: str, *state: str) -> list[str]:
        b, params = self.b, self.params
        n = params["num_carry"]
        place = index
        if params["reverse"]:
            last = b.constant(params["length"] - 1, _INDEX)
            place = b.binary("stablehlo.subtract", last, index, _INDEX)
        outs = write_in_place(
            b, params["jaxpr"],
            [*self.consts, *state[:n], *[self._element(x, aval, place) for x, aval in self.xs]])
        ys = [self._stored(stack, y, aval, place) for stack, y, aval in zip(
            state[n:], outs[n:], params["jaxpr"].out_avals[n:], strict=True)]
        return [b.binary("stablehlo.add", index, b.constant(1, _INDEX), _INDEX), *outs[:n], *ys]

    def _element(self, x: str, aval: ShapedArray, place: str) -> str:
        row = aval.update(shape=(1, *aval.shape[1:]))
        sizes = ", ".join(map(str, row.shape))
        part = self.b.line(
            f"stablehlo.dynamic_slice {x}, {self._starts(place, aval)}, sizes = [{sizes}] : "
            f"({tensor_type(aval)}{', tensor<i32>' * aval.ndim}) -> {tensor_type(row)}")
        return self._reshaped(part, row, aval.update(shape=aval.shape[1:]))

    def _stored(self, stack: str, y: str, aval: ShapedArray, place: str) -> str:
        row = aval.update(shape=(1, *aval.shape))
        stacked = aval.update(shape=(self.params["length"], *aval.shape))
        part = self._reshaped(y, aval, row)
        return self.b.line(
            f"stablehlo.dynamic_update_slice {stack}, {part}, {self._starts(place, stacked)} : "
            f"({tensor_type(stacked)}, {tensor_type(row)}{', tensor<i32>' * stacked.ndim}) -> "
            f"{tensor_type(stacked)}")

    def _starts(self, place: str, aval: ShapedArray) -> str:
        zero = self.b.constant(0, _INDEX)
        return ", ".join([place, *[zero] * (aval.ndim - 1)])

    def _reshaped(self, x: str, before: ShapedArray, after: ShapedArray) -> str:
        return self.b.line(
            f"stablehlo.reshape {x} : ({tensor_type(before)}) -> {tensor_type(after)}")


def _region(b: Block, closed: ClosedJaxpr, operands: Sequence[str], scope: Scope) -> None:
    with b.region(scope=scope):
        outs = write_in_place(b, closed, operands)
        b.raw(f"stablehlo.return {', '.join(outs)} : {tensor_types(closed.out_avals)}")


# -- one of several programs -----------------------------------------------------------------------


def branch_of(platforms: Sequence[tuple[str, ...] | None], platform: str) -> int:
    """Which of the branches serves a platform, from those of each; None stands for all others.

    Raises:
      NotImplementedError: none does.
    """
    for i, own in enumerate(platforms):
        if own is None or platform in own:
            return i
    raise NotImplementedError(
        f"MLIR translation rule for primitive 'platform_index(platforms={tuple(platforms)})' not "
        f"found for platform {platform}: platform_dependent has no branch for it. Give it one, "
        "or a default.")


@rule("platform_index")
def _platform_index(b: Block, eqn: JaxprEqn) -> str:
    return b.constant(branch_of(eqn.params["platforms"], b.module.platform), out_aval(eqn))


@rule("cond")
def _cond(b: Block, eqn: JaxprEqn, index: str, *operands: str) -> list[str]:
    branches = eqn.params["branches"]
    platforms = eqn.params.get("branches_platforms")
    if platforms is not None:
        return write_in_place(b, branches[branch_of(platforms, b.module.platform)], operands)
    count = len(eqn.outvars)
    out_types = tensor_types([v.aval for v in eqn.outvars])
    result = b.name()
    head = f"{result}:{count} = " if count > 1 else f"{result} = " if count else ""
    b.opening(f'{head}"stablehlo.case"({index}) ({{')
    for i, branch in enumerate(branches):
        if i:
            b.opening("}, {")
        with b.region(scope=b.scope.inside(eqn, f"cond/branch_{i}_fun")):
            outs = write_in_place(b, branch, operands)
            values = f" {', '.join(outs)} : {out_types}" if outs else ""
            b.raw(f"stablehlo.return{values}")
    b.raw(f"}}) : ({tensor_type(eqn.invars[0].aval)}) -> ({out_types})")
    return [f"{result}#{i}" for i in range(count)] if count > 1 else [result] * count
