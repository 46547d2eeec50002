"""A program as JSON, for other programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyjx import jaxlib_api
from pyjx.core.frames import user_frame
from pyjx.core.jaxpr import Literal, subjaxprs
from pyjx.inspect.versions import stablehlo_versions
from pyjx.runtime.costs import Cost, cost_of
from pyjx.version import PYJX_VERSION

if TYPE_CHECKING:
    from pyjx.inspect.program import Program

FORMAT = 1


def document(program: Program) -> str:
    """The program as JSON; `data` says what is in it."""
    return json.dumps(data(program), indent=2, sort_keys=True)


def data(program: Program) -> dict[str, Any]:
    """What is known of a program.

    Keys of the document, of which those that make no sense for a program are absent:

    - `format`: 1; a later number is for documents that older readers do not understand.
    - `name`, `platform`, `versions` (of `pyjx`, `jaxlib` and `stablehlo`).
    - `arguments`, `results`: for each leaf its `name`, `type` (such as `f32[8,128]`), `shape` and
      `dtype`.
    - `equations`: of the jaxpr in order, nested ones after the equation that holds them: `depth`,
      `primitive`, `inputs`, `outputs` (types), `source` (`file`, `line`, `function`; or null),
      `flops`, `transcendentals` and `bytes` of one run.
    - `operations`: how many there are of each kind, in `jaxpr` and `stablehlo`, and where it was
      compiled in `hlo-opt`.
    - `cost`: `total`, `by_operation` and `by_line`, each with `name`, `times`, `flops`,
      `transcendentals` and `bytes`; `exact`, `unknown`; `xla`, XLA's own estimate.
    - `memory`: `argument`, `output`, `temp`, `alias`, `generated_code`, `peak`, in bytes.

    >>> import pyjx as jax
    >>> from pyjx import inspect
    >>> program = inspect.trace(lambda x: x + 1, jax.ShapeDtypeStruct((3,), "float32"))
    >>> inspect.data(program)["results"]
    [{'name': 'result', 'type': 'f32[3]', 'shape': [3], 'dtype': 'float32'}]
    """
    found: dict[str, Any] = {
        "format": FORMAT, "name": program.name, "platform": str(program.platform),
        "versions": {"pyjx": PYJX_VERSION, "jaxlib": jaxlib_api.JAXLIB_RELEASE,
                     "stablehlo": stablehlo_versions()[1]},
        "operations": {"stablehlo": dict(sorted(program.statistics().items()))},
    }
    if hasattr(program, "traced"):
        closed = program.jaxpr
        debug = closed.jaxpr.debug_info
        found["arguments"] = _typed(debug.arg_names, closed.in_avals, "arg")
        found["results"] = _typed(debug.result_paths, closed.out_avals, "result")
        found["equations"] = _equations(closed, 0)
        found["operations"]["jaxpr"] = dict(sorted(program.statistics("jaxpr").items()))
    if not program.is_symbolic:
        found["operations"]["hlo-opt"] = dict(sorted(program.statistics("hlo-opt").items()))
        memory = program.memory
        if memory is not None:
            found["memory"] = dict(zip(memory._fields, memory, strict=True))
        if hasattr(program, "traced"):
            found["cost"] = _costs(program)
        else:
            found["cost"] = {"xla": program.xla_cost}
    return found


def _typed(names: Any, avals: Any, other: str) -> list[dict[str, Any]]:
    names = names or [f"{other}{i}" for i in range(len(avals))]
    return [{"name": n, "type": a.str_short(short_dtypes=True),
             "shape": [d if isinstance(d, int) else str(d) for d in getattr(a, "shape", ())],
             "dtype": str(getattr(a, "dtype", ""))} for n, a in zip(names, avals, strict=True)]


def _equations(closed: Any, depth: int) -> list[dict[str, Any]]:
    rows = []
    for eqn in closed.eqns:
        frame = user_frame(eqn.source_info.traceback)
        cost = cost_of(eqn)
        rows.append({
            "depth": depth, "primitive": eqn.primitive.name,
            "inputs": [_type(v) for v in eqn.invars], "outputs": [_type(v) for v in eqn.outvars],
            "source": None if frame is None else {
                "file": frame.file_name, "line": frame.start_line,
                "function": frame.function_name},
            "flops": cost.flops, "transcendentals": cost.transcendentals, "bytes": cost.bytes})
        for inner in subjaxprs(eqn):
            rows += _equations(inner, depth + 1)
    return rows


def _type(atom: Any) -> str:
    text = atom.aval.str_short(short_dtypes=True)
    return f"{atom.val}:{text}" if isinstance(atom, Literal) else str(text)


def _costs(program: Program) -> dict[str, Any]:
    cost = program.cost

    def row(c: Cost) -> dict[str, Any]:
        return dict(zip(c._fields, c, strict=True))

    return {"total": row(cost.total), "by_operation": list(map(row, cost.by_operation)),
            "by_line": list(map(row, cost.by_line)), "exact": cost.exact,
            "unknown": list(cost.unknown), "xla": program.xla_cost}

