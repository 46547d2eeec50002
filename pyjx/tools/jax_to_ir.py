"""A function compiled for shapes that the command line names: its HLO, as bytes and as text.

    python -m pyjx.tools.jax_to_ir --fn model.apply --input_shapes "[('x', 'f32[8,3]')]" \\
        --constants "{'scale': 2.0}" --ir_dest apply.pb --ir_human_dest apply.txt

`emit-hlo` does more: StableHLO, other platforms, derivatives, costs.
"""

from __future__ import annotations

import argparse
import re
import sys
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from pyjx.core import dtypes
from pyjx.lazy import directory
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.jit import jit

__all__ = ["jax2tf", "jax_to_hlo", "jax_to_ir", "main", "parse_shape_str", "set_up_flags",
           "tf"]

tf = None  # as where TensorFlow is not installed
jax2tf = None

Shapes = Sequence[tuple[str, Any]]

_SHAPE = re.compile(r"\s*(\w+)\s*\[\s*((?:\d+\s*(?:,\s*\d+\s*)*)?)\]\s*")


def jax_to_ir(fn: Callable[..., Any], input_shapes: Shapes, *,
              constants: Mapping[str, Any] | None = None, format: str) -> tuple[bytes, str]:
    """The program of a function, as bytes and as text that people read.

    Args:
      fn: takes its arguments by name.
      input_shapes: pairs of the name of an argument and what tells its shape and dtype, in the
        order of the program's parameters.
      constants: values of the other arguments, by name.
      format: 'HLO': the bytes are those of XLA's HloModuleProto.

    Raises:
      ValueError: an argument is named twice, or there is no such format.

    >>> from pyjx.tools.jax_to_ir import jax_to_ir, parse_shape_str
    >>> shapes = [("x", parse_shape_str("f32[3]"))]
    >>> proto, text = jax_to_ir(lambda x, n: x * n, shapes, constants={"n": 2}, format="HLO")
    >>> "f32[3]" in text
    True
    """
    constants = {} if constants is None else constants
    names = [name for name, _ in input_shapes]
    twice = {name for name in names if names.count(name) > 1} | constants.keys() & set(names)
    if twice:
        raise ValueError("jax_to_ir: each argument has a shape or a constant value, but these are "
                         f"named twice: {', '.join(sorted(twice))}")
    if format != "HLO":
        raise ValueError(f"jax_to_ir: format must be 'HLO', got {format!r}; pyjx makes no graphs "
                         "of TensorFlow, whose XlaCallModule takes what jax.export serializes")

    def by_name(*args: Any) -> Any:
        return fn(**dict(zip(names, args, strict=True)), **constants)

    by_name.__name__ = getattr(fn, "__name__", "fn")
    computation = jit(by_name).lower(*[shape for _, shape in input_shapes]).compiler_ir("hlo")
    return computation.as_serialized_hlo_module_proto(), computation.as_hlo_text()


def jax_to_hlo(fn: Callable[..., Any], input_shapes: Shapes, *,
               constants: Mapping[str, Any] | None = None, format: str = "HLO"
               ) -> tuple[bytes, str]:
    """`jax_to_ir` with the format 'HLO'.

    >>> from pyjx.tools.jax_to_ir import jax_to_hlo, parse_shape_str
    >>> "HloModule" in jax_to_hlo(lambda x: -x, [("x", parse_shape_str("s32[]"))])[1]
    True
    """
    return jax_to_ir(fn, input_shapes, constants=constants, format=format)


def parse_shape_str(s: str) -> ShapeDtypeStruct:
    """The shape and dtype that XLA writes as `f32[8,3]`.

    Raises:
      ValueError: it is no such text.

    >>> from pyjx.tools.jax_to_ir import parse_shape_str
    >>> parse_shape_str("bf16[8, 3]")
    ShapeDtypeStruct(shape=(8, 3), dtype=bfloat16)
    """
    match = _SHAPE.fullmatch(s)
    if match is None:
        raise ValueError(f"Invalid shape {s}. Valid example: f32[1,2,3]. Note that dtype must be "
                         "one of the specified names.")
    name, sizes = match.groups()
    signed = re.sub(r"^s(?=\d)", "i", name)  # XLA's name of integers
    dtype = dtypes.dtype_of_short_name("bool" if name == "pred" else signed)
    if dtype is None:
        raise ValueError(f"Invalid shape {s}: there is no dtype {name!r}. They are called f32, "
                         "bf16, s32, u8, c64, pred and the like.")
    return ShapeDtypeStruct(tuple([int(n) for n in sizes.split(",") if n.strip()]), dtype)


def set_up_flags() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="jax_to_ir", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--fn", required=True, metavar="MODULE.FUNCTION")
    parser.add_argument("--input_shapes", required=True, metavar="PAIRS", type=literal_eval,
                        help="names and shapes in Python's syntax: \"[('x', 'f32[8,3]')]\"")
    parser.add_argument("--constants", default={}, metavar="DICT", type=literal_eval,
                        help="values of other arguments: \"{'scale': 2.0}\"")
    parser.add_argument("--eval_constants", default={}, metavar="DICT", type=literal_eval,
                        help="names of objects that are values: \"{'weights': 'model.weights'}\"")
    parser.add_argument("--ir_format", default="HLO", choices=["HLO"])
    parser.add_argument("--ir_dest", type=Path, metavar="FILE", help="the bytes")
    parser.add_argument("--ir_human_dest", type=Path, metavar="FILE", help="the text")
    return parser


def main(argv: Sequence[str]) -> None:
    """The command, whose name is the first of `argv`."""
    parser = set_up_flags()
    given = parser.parse_args(list(argv[1:]))
    if given.ir_dest is None and given.ir_human_dest is None:
        parser.error("at least one of --ir_dest and --ir_human_dest is required")
    shapes = [(name, parse_shape_str(shape)) for name, shape in given.input_shapes]
    constants = {**given.constants,
                 **{name: resolve_name(path) for name, path in given.eval_constants.items()}}
    program, text = jax_to_ir(resolve_name(given.fn), shapes, constants=constants,
                              format=given.ir_format)
    if given.ir_dest is not None:
        given.ir_dest.write_bytes(program)
    if given.ir_human_dest is not None:
        given.ir_human_dest.write_text(text)


if __name__ == "__main__":
    main(sys.argv)


__dir__ = directory(__name__, __all__)
