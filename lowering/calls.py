"""Calls of programs within programs, written once as private functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lowering.builder import Block
from lowering.locations import Scope
from lowering.module import KEEP_CALL, call_closed, captured, write_in_place
from lowering.rules import rule, rules_for
from lowering.shardings import placed_in_memory
from lowering.types import quoted, tensor_types
from pyjx.core.derived import derived_structure
from pyjx.core.evaluation import all_eqns
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.options import ONE_KERNEL, Inline


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
        return write_in_place(b, closed, operands, eqn, f"jit({name})")
    attributes = _XLA_INLINES.get(inline, "") if inline else ""
    return call_closed(b, closed, name, operands, scope=Scope("", function), attributes=attributes)


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
    outs = write_in_place(b, closed, operands, eqn)
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


def _call_annotated(b: Block, eqn: JaxprEqn, operands: Sequence[str],
                    items: Sequence[tuple[str, str]]) -> list[str]:
    """A call of the program that an equation holds, with these attributes for XLA."""
    return call_closed(b, eqn.params["jaxpr"], eqn.primitive.name, operands,
                       scope=b.scope.inside(eqn, ""), attributes=_frontend(items))


@rule("xla_metadata_call")
def _xla_metadata_call(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    return _call_annotated(b, eqn, operands, eqn.params["xla_metadata"])


@rule("fused_call")
def _fused_call(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    outs = _call_annotated(b, eqn, operands, [("MUST_FUSE", "fused_call")])
    return _in_memories(b, outs, eqn, eqn.params["out_spaces"])


@rule("compute_on")
def _compute_on(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    outs = _call_annotated(b, eqn, operands, compute_attributes(eqn.params))
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
    own = [True] * len(outs) if spaces is None else [space.name == "Device" for space in spaces]
    return [placed_in_memory(b, x, v.aval, "device") if flag else x
            for x, v, flag in zip(outs, eqn.outvars, own, strict=True)]


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
    return eqn.primitive.impl(*operands, **eqn.params)  # type: ignore[misc]  # says what is wrong


@rule("control_dep")
def _control_dep(b: Block, eqn: JaxprEqn, *operands: str) -> Any:
    if b.module.platform in ("cuda", "rocm"):  # other compilers do not know it
        b.custom_call("control_dep", operands, [v.aval for v in eqn.invars], [],
                      has_side_effect=True)
    return ()
