"""Each form of real programs on each platform: there is one, or it is said why there is none."""

from __future__ import annotations

import ast
import importlib.util
import sys
import unittest.mock
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

import pyjx as jax
from emit_hlo import tables
from pyjx import configuration, inspect
from pyjx.inspect.platforms import UnavailableError
from pyjx.inspect.program import UnsupportedError
from pyjx.runtime import backends

ROOT = Path(__file__).parents[2]
PLATFORMS = ("cpu", "cuda:h100", "tpu:v5e:2x2")
Call = tuple[Callable[..., Any], tuple[Any, ...]]

# Data and pictures, which no function needs.
PICTURES = ("matplotlib", "matplotlib.pyplot", "sklearn", "sklearn.datasets", "tqdm")
ABSENT = [n for n in PICTURES if importlib.util.find_spec(n.partition(".")[0]) is None]

# -- the functions of the examples, without what the examples do with them -------------------------


def defined(name: str) -> dict[str, Any]:
    """What an example imports and defines."""
    path = ROOT / "examples" / f"{name}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [s for s in tree.body if _defines(s)]
    found: dict[str, Any] = {"__name__": name}
    with unittest.mock.patch.dict(sys.modules, {name: MagicMock() for name in ABSENT}):
        exec(compile(tree, str(path), "exec"), found)
    return found


def _defines(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):  # a constant, or a function of a function
        text = ast.unparse(statement.targets[0]).strip("()")
        made = ast.unparse(statement.value).startswith("jax.vmap(")
        return made or text.replace(", ", "").replace("_", "").isupper()
    return isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef))


def f32(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, np.float32)


def i32(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, np.int32)


def weights(functions: dict[str, Any]) -> Any:
    return jax.eval_shape(functions["init"], jax.random.key(0))


def gradient_of_layer() -> Call:
    f = defined("stablehlo_to_tpu")
    return jax.grad(f["loss"], (0, 1)), (f32(256, 128), f32(128), f32(512, 256), f32(512, 128))


def gradient_of_network() -> Call:
    f = defined("transformations")
    params = [(f32(4, 5), f32(5)), (f32(5, 2), f32(2))]
    return jax.vmap(jax.grad(f["loss"]), (None, 0, 0)), (params, f32(3, 4), f32(3, 2))


def step_of_spirals() -> Call:
    f = defined("quickstart")
    params = weights(f)
    return f["step"], (params, params, f32(16, 2), f32(16))


def step_of_digits() -> Call:
    f = defined("digits")
    params = weights(f)
    return f["train_step"], (params, (params, params), f32(), f32(), jax.random.key(0),
                             f32(64, 64), i32(64))


def step_of_processes() -> Call:
    f = defined("data_parallel")
    return f["step"], (weights(f), f32(16, 64), i32(16))


def step_of_transformer() -> Call:
    f = defined("transformer")
    params = weights(f)
    return f["step"], (params, params, params, f32(), i32(8, 9))


def answers_of_transformer() -> Call:
    f = defined("transformer")
    return f["answers"], (weights(f), i32(8, 9))


def attention() -> Call:
    f = defined("parallel_transformer")
    shapes = f["shapes"](layers=1, width=32, heads=4, vocabulary=16)["blocks"][0]
    block = {name: f32(*shape) for name, shape in shapes.items()}
    return f["attention"], (block, f32(2, 8, 32))


EXAMPLES: dict[str, Callable[[], Call]] = {
    "quickstart polynomial": lambda: (jax.grad(defined("quickstart")["polynomial"]), (f32(),)),
    "quickstart step": step_of_spirals,
    "digits step": step_of_digits,
    "data_parallel step": step_of_processes,
    "transformer step": step_of_transformer,
    "transformer answers": answers_of_transformer,
    "parallel_transformer attention": attention,
    "stablehlo_to_tpu gradient": gradient_of_layer,
    "transformations gradient": gradient_of_network,
    "transformations tanh": lambda: (
        jax.grad(jax.grad(defined("transformations")["tanh"])), (f32(),)),
    "thinking norm": lambda: (defined("thinking")["norm"], (f32(100, 10),)),
    "thinking steps_to_one": lambda: (defined("thinking")["steps_to_one"], (i32(),)),
}

# -- the models of the benchmarks ------------------------------------------------------------------

SMALL: dict[str, dict[str, int]] = {
    "transformer": {"layers": 2, "width": 16, "length": 8, "batch": 2, "vocabulary": 16},
    "resnet50": {"batch": 1, "size": 16, "classes": 10},
    "lstm": {"steps": 4, "width": 16, "inputs": 8, "batch": 2}, "hessian": {}, "per_example": {},
    "hessian_product": {}, "while_loop": {}, "batched_cond": {},
    "long_scan": {"steps": 10, "size": 8},
}


def model(name: str, **sizes: int) -> Call:
    models = importlib.import_module("benchmarks.models")
    fun, args = models.MODELS[name](**sizes)
    return fun, args


FUNCTIONS: dict[str, Callable[[], Call]] = {
    **EXAMPLES, **{name: lambda n=name, s=sizes: model(n, **s)  # type: ignore[misc]
                   for name, sizes in SMALL.items()}}


# XLA finds no tiles for a product of theirs without a GPU to try them on.
WITHOUT_TRITON = {("transformer answers", "cuda:h100")}


def program(name: str, platform: str) -> inspect.TracedProgram:
    if platform != "cpu" and backends.plugin_library(platform.partition(":")[0]) is None:
        pytest.skip(f"the plugin of {platform} is not installed")
    fun, args = FUNCTIONS[name]()
    options = {"xla_gpu_enable_triton_gemm": False} if (name, platform) in WITHOUT_TRITON else {}
    return inspect.trace(fun, *args, platform=platform, compiler_options=options)


def made(given: inspect.TracedProgram, kind: str) -> str | bytes | None:
    """A form, or None where it is said why there is none."""
    try:
        return given.emit(kind)
    except UnsupportedError as error:
        name = given.platform.name
        assert name in str(error) or name.upper() in str(error)
        assert name not in (tables.NAMED[kind].platforms or tables.PLATFORMS)
    except UnavailableError as error:
        assert kind == "asm" and "which is not installed" in str(error)
    return None


@pytest.mark.aot
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_form(name: str, platform: str) -> None:
    with configuration.platforms("cpu"):
        given = program(name, platform)
        if given.platform.name != "tpu":
            given.keep_kernels()
        missing = [kind for kind in tables.KIND_NAMES if not made(given, kind)]
    allowed = {"cpu": {"ptx", "asm"}, "cuda": {"asm"}, "tpu": {"llvm", "ptx", "asm"}}
    assert set(missing) <= allowed[given.platform.name]
