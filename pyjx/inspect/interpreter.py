"""StableHLO's reference interpreter, in a process of its own: it aborts where it meets an
operation that it does not know."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.elementwise import is_complex, part_aval, parts
from lowering.locations import Scope
from lowering.module import Module
from pyjx import jaxlib_api
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.inspect.platforms import stablehlo_versions
from pyjx.runtime.shield import environment_of_child


class RefusedError(RuntimeError):
    """The interpreter does not know an operation of the program.

    Ways out: check against `numpy-float64` or `eager`, which know them all.
    """


def closed_program(text: str, args: Sequence[Any], results: Sequence[ShapedArray]) -> str:
    """A program without arguments: that of `text` on these arrays, its results of types that NumPy
    has."""
    module = Module("interpreted", "cpu")
    shown = [p for a in results for p in ([part_aval(a)] * 2 if is_complex(a) else [_plain(a)])]
    main = module.add("main", [], shown, Scope(""))
    main.visibility = "public"
    block = main.block
    avals = [ShapedArray(np.shape(x), np.asarray(x).dtype) for x in args]
    names = [block.dense(np.asarray(x)) for x in args]
    outs = block.call("program", names, avals, list(results))
    main.close([name for n, a in zip(outs, results, strict=True) for name in (
        parts(block, n, a) if is_complex(a) else [block.convert(n, a, _plain(a))])])
    called = _PRODUCT.sub(_wide_product, text).replace(
        "func.func public @main(", "func.func private @program(", 1)
    head, _, rest = called.partition("\n")
    return f"{head}\n{main.text()}\n{rest}"


# A dot_general or convolution of this room's text: the name it gives, its operands, the types.
_PRODUCT = re.compile(
    r"^( *)(%\w+)( = stablehlo\.(?:dot_general|convolution)\(?) ?(%\w+), (%\w+)(.*: )"
    r"\((tensor<[^>]*>), (tensor<[^>]*>)\) -> (tensor<[^>]*>)$", re.MULTILINE)


def _wide_product(found: re.Match[str]) -> str:
    """The product with its operands in the type of the result: the interpreter multiplies and adds
    in theirs, where XLA sums bfloat16 in float32 and int8 in int32."""
    indent, name, operation, left, right, options, left_type, right_type, out = found.groups()
    element = out.rstrip(">").rpartition("x")[2].removeprefix("tensor<")
    lines, operands, types = [], [], []
    for side, operand, given in (("left", left, left_type), ("right", right, right_type)):
        wide = re.sub(r"[^x<]+>$", f"{element}>", given)
        converted = operand if wide == given else f"%{side}_{name[1:]}"
        if wide != given:
            lines.append(
                f"{indent}{converted} = stablehlo.convert {operand} : ({given}) -> {wide}\n")
        operands.append(converted)
        types.append(wide)
    space = "" if operation.endswith("(") else " "
    return (f"{''.join(lines)}{indent}{name}{operation}{space}{', '.join(operands)}{options}"
            f"({', '.join(types)}) -> {out}")


def _plain(aval: ShapedArray) -> ShapedArray:
    """The type of NumPy's that holds all values of another one."""
    if aval.dtype == np.bool_:
        return aval.update(dtype=np.dtype(np.uint8))
    if dtypes.issubdtype(aval.dtype, np.floating) and aval.dtype.itemsize < 4:
        return aval.update(dtype=np.dtype(np.float32))
    if aval.dtype.name in ("int4", "int2"):
        return aval.update(dtype=np.dtype(np.int8))
    if aval.dtype.name in ("uint4", "uint2"):
        return aval.update(dtype=np.dtype(np.uint8))
    return aval


def interpret(text: str, args: Sequence[Any], results: Sequence[ShapedArray]) -> list[Any]:
    """The results of StableHLO text on these arrays.

    Raises:
      RefusedError: it has an operation that the interpreter does not know.
    """
    program = closed_program(text, args, results)
    try:
        artifact = jaxlib_api.portable_artifact(program, stablehlo_versions()[1])
    except Exception as error:
        raise RefusedError(str(error).splitlines()[0]) from None
    done = subprocess.run([sys.executable, "-m", "pyjx.inspect.interpreter"], input=artifact,
                          capture_output=True, env=environment_of_child())
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it ended"]
        reason = next((x for x in said if "LLVM ERROR" in x or "rror:" in x), said[-1])
        raise RefusedError(reason.removeprefix("LLVM ERROR: ")[:200])
    found = pickle.loads(done.stdout)  # of this program's own child
    values = iter(found)
    return [np.asarray(next(values) + 1j * next(values) if is_complex(a) else next(values)
                       ).astype(a.dtype) for a in results]


def _interpreted(artifact: bytes) -> list[Any]:
    """The results of a program without arguments."""
    bindings, context = jaxlib_api.mlir_bindings(), jaxlib_api.mlir_context()
    with context:
        module = bindings.stablehlo.deserialize_portable_artifact(context, artifact)
        return [np.array(x) for x in bindings.stablehlo.eval_module(module, [])]


if __name__ == "__main__":
    outs = _interpreted(sys.stdin.buffer.read())
    sys.stdout.buffer.write(pickle.dumps([np.array(x) for x in outs]))
