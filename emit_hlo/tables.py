"""Choices that the command offers: kinds of output, platforms, chips, passes."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """A form that a program takes, in the order of the pipeline.

    Attributes:
      name: as `--emit` takes it.
      suffixes: of files that hold it; the first is that of files in a folder.
      about: one line.
      platforms: where there is one; empty for all.
      binary: whether it is bytes and no text.
    """

    name: str
    suffixes: tuple[str, ...]
    about: str
    platforms: tuple[str, ...] = ()
    binary: bool = False


KINDS = (
    Kind("jaxpr", (".jaxpr",), "the traced program, typed"),
    Kind("stablehlo", (".mlir",), "the program that XLA is given (default)"),
    Kind("bytecode", (".mlirbc",), "StableHLO as a portable artifact, see --target", binary=True),
    Kind("hlo", (".hlo",), "HLO before XLA's optimisations"),
    Kind("hlo-proto", (".pb", ".hlo.pb"), "HLO as a protocol buffer", binary=True),
    Kind("hlo-opt", (".opt.hlo",), "HLO after XLA's optimisations"),
    Kind("llvm", (".ll",), "LLVM's code of each kernel", ("cpu", "cuda")),
    Kind("ptx", (".ptx",), "PTX of each kernel", ("cuda",)),
    Kind("asm", (".s",), "machine code of each kernel, disassembled", ("cpu", "cuda")),
    Kind("dot", (".dot",), "the graph, for Graphviz"),
    Kind("html", (".html",), "one page with all forms side by side"),
    Kind("cost", (".cost",), "arithmetic and bytes, by operation and by source line"),
    Kind("memory", (".memory",), "bytes of arguments, results, temporaries and code"),
    Kind("json", (".json",), "types, operations, costs and memory, for programs"),
    Kind("mosaic", (".mosaic",), "the modules of Pallas kernels", ("tpu",)),
)
KIND_NAMES = tuple(k.name for k in KINDS)
NAMED = {k.name: k for k in KINDS}
DEFAULT_KIND = "stablehlo"

# Which file a program is read from, and what it holds.
PROGRAM_SUFFIXES = {".mlir": "stablehlo", ".mlirbc": "bytecode", ".hlo": "hlo"}

PLATFORMS = {
    "cpu": "this machine's processor",
    "cuda": "an NVIDIA GPU: cuda, cuda:h100, cuda:h200, cuda:a100, or cuda:FILE with the text of a "
            "GpuTargetConfigProto",
    "tpu": "a TPU: tpu, or tpu:TOPOLOGY such as tpu:v5e:2x2",
}
GPUS = ("h100", "h200", "a100")
TPU_TOPOLOGIES = ("v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2", "v5e:2x4", "v5p:2x2x1", "v6e:2x2",
                  "tpu7x:2x2x1")
TPUS = tuple(dict.fromkeys(t.partition(":")[0] for t in TPU_TOPOLOGIES))


class Chip(NamedTuple):
    """Peak arithmetic operations (bfloat16, no sparsity) and bytes of memory, each a second."""

    flops: float
    bandwidth: float


# From the data sheets of their makers.
CHIPS = {
    "v2": Chip(45e12, 700e9), "v3": Chip(123e12, 900e9), "v4": Chip(275e12, 1228e9),
    "v5e": Chip(197e12, 819e9), "v5p": Chip(459e12, 2765e9), "v6e": Chip(918e12, 1640e9),
    "a100": Chip(312e12, 2039e9), "h100": Chip(989e12, 3352e9), "h200": Chip(989e12, 4800e9),
}

PASSES = {
    "constrain": "types that say where values lie become constraints",
    "physicalize": "key arrays become integer arrays",
    "decompose": "what has no lowering rule becomes a program of what has one",
    "budget": "what does not fit into the memory budget is computed again, or in another order",
    "one-cpu": "what XLA's compiler for CPUs does not see by itself, for one of them",
    "dce": "what nobody reads goes",
    "tokens": "ordered effects get a token that goes from one to the next",
    "outline": "repeated blocks become functions",
}

TRANSFORMS = {
    "grad": "the gradient; =0,2 names the arguments (default: 0), =aux of (value, aux)",
    "value-and-grad": "the value and the gradient",
    "jvp": "values and tangents; tangents come after the arguments",
    "vjp": "the pullback; cotangents come after the arguments",
    "vmap": "mapped over axes: =0,None names one for each argument (default: 0)",
    "jacfwd": "the Jacobian, column by column",
    "jacrev": "the Jacobian, row by row",
    "hessian": "the Hessian",
    "remat": "with intermediate values computed again",
    "jit": "as one call of a compiled function",
}
WITH_VALUE = ("grad", "value-and-grad", "vmap", "jacfwd", "jacrev", "hessian")

# Where the names of values in StableHLO come from, and how much of its place an operation tells.
NAMES = ("ssa", "user")
LOCS = ("none", "line", "stack")
CHECKS = ("interpreter", "numpy-float64", "eager")
FINDS = ("nan", "inf", "subnormal")
