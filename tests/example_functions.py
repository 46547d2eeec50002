"""Functions of the examples, and models of the benchmarks, with what they take."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np

import pyjx as jax

ROOT = Path(__file__).parents[1]
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
    sys.modules.update({name: MagicMock() for name in ABSENT})
    try:
        exec(compile(tree, str(path), "exec"), found)
    finally:
        for absent in ABSENT:
            del sys.modules[absent]
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
