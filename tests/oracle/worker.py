"""One of the two processes that run programs: `python worker.py pyjx|jax`.

Requests and answers are lines of JSON over pipes. A request is a list of programs, each an id, its
source and whether 64-bit types are on; each is answered by a line of its own, so that the other
side knows which one does not come back. This file imports nothing of the project.
"""

from __future__ import annotations

import base64
import gc
import importlib
import inspect
import json
import os
import sys
import warnings
from types import ModuleType
from typing import Any

import ml_dtypes  # noqa: F401  (NumPy learns its dtypes)
import numpy as np

MODULES = {"jnp": "numpy", "lax": "lax", "nn": "nn", "random": "random", "tree_util": "tree_util",
           "jax": "", "pl": "experimental.pallas", "pltpu": "experimental.pallas.tpu"}
SHOWN = 400  # characters of a message


def loaded(package: str) -> dict[str, ModuleType]:
    found = {}
    for short, name in MODULES.items():
        found[short] = importlib.import_module(f"{package}.{name}" if name else package)
    return found


# -- signatures ------------------------------------------------------------------------------------


def parameters(function: Any) -> list[list[str]] | None:
    """[name, kind, default] of each parameter; an absent default is an empty string."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return [[p.name, p.kind.name, "" if p.default is p.empty else repr(p.default)[:40]]
            for p in signature.parameters.values()]


def names(modules: dict[str, ModuleType]) -> dict[str, Any]:
    """The public functions, as `jnp.sum`, with their parameters."""
    found: dict[str, Any] = {}
    for short, module in modules.items():
        for name in dir(module):
            if name.startswith("_"):
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    value = getattr(module, name)
            except Exception:
                continue
            if callable(value) and not isinstance(value, type):
                found[f"{short}.{name}"] = parameters(value)
    return found


# -- values ----------------------------------------------------------------------------------------


class Describer:
    """Results as JSON: what they are, and the bytes of their elements."""

    def __init__(self, jax: ModuleType, package: str) -> None:
        self.jax = jax
        self.package = package

    def __call__(self, x: Any, depth: int = 0) -> Any:
        if x is None or (isinstance(x, (bool, str, int)) and type(x) in (bool, str, int)):
            return {"is": "plain", "type": type(x).__name__, "value": repr(x)}
        if type(x) in (float, complex):
            return {"is": "plain", "type": type(x).__name__, "value": repr(x)}
        if isinstance(x, self.jax.Array):
            return self.array(x)
        if isinstance(x, (np.ndarray, np.generic)):
            return {"is": "ndarray" if isinstance(x, np.ndarray) else "npscalar",
                    **self.elements(np.asarray(x))}
        if depth < 8 and isinstance(x, dict):
            return {"is": "dict", "type": type(x).__name__,
                    "items": [[repr(k), self(v, depth + 1)] for k, v in x.items()]}
        if depth < 8 and isinstance(x, (tuple, list)):
            return {"is": "sequence", "type": type(x).__name__,
                    "items": [self(v, depth + 1) for v in x]}
        return self.other(x)

    def elements(self, x: np.ndarray) -> dict[str, Any]:
        whole = x if x.dtype.names is None else np.zeros(x.shape, bool)  # float0
        return {"dtype": str(x.dtype), "shape": list(x.shape),
                "data": base64.b64encode(np.ascontiguousarray(whole).tobytes()).decode()
                if whole.dtype != object else repr(x.tolist())}

    def array(self, x: Any) -> dict[str, Any]:
        dtype = str(x.dtype)
        if dtype.startswith("key<"):
            bits = np.asarray(self.jax.random.key_data(x))
            return {"is": "keys", "dtype": dtype, "shape": list(x.shape),
                    "data": base64.b64encode(bits.tobytes()).decode()}
        aval = x.aval
        found = self.elements(np.asarray(x))
        return {"is": "array", "weak": bool(aval.weak_type), **found, "dtype": dtype,
                "aval": list(aval.shape)}

    def other(self, x: Any) -> dict[str, Any]:
        """Objects are compared by their types, and by their text where it holds no address."""
        shown = "" if callable(x) and not isinstance(x, type) else repr(x)
        shown = "" if " at 0x" in shown else shown.replace("pyjx", "jax")
        if type(x).__name__ != "ShapeDtypeStruct":
            shown = shown.replace(", weak_type=True", "")  # arrays in trees of other types
        return {"is": "object", "type": type(x).__name__, "value": shown[:SHOWN]}


def failure(error: BaseException) -> dict[str, Any]:
    bases = [c.__name__ for c in type(error).__mro__ if c not in (object, BaseException)]
    builtin = next((c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"), "")
    try:
        message = str(error)
    except Exception as again:
        message = f"<no message: {again!r}>"
    return {"is": "error", "type": type(error).__name__, "bases": bases, "builtin": builtin,
            "message": message[:SHOWN]}


# -- the loop --------------------------------------------------------------------------------------


class Runner:
    """Runs programs one after the other, each in a namespace of its own."""

    def __init__(self, package: str) -> None:
        self.modules = loaded(package)
        self.jax = self.modules["jax"]
        self.describe = Describer(self.jax, package)
        self.x64 = False

    def run(self, source: str, x64: bool) -> dict[str, Any]:
        if x64 != self.x64:
            self.jax.config.update("jax_enable_x64", x64)
            self.x64 = x64
        space: dict[str, Any] = {"np": np, "__name__": "program", **self.modules}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                exec(compile(source, "<program>", "exec"), space)
                found = {"is": "value", "value": self.describe(space.get("result"))}
            except Exception as error:
                found = failure(error)
        found["warnings"] = sorted({w.category.__name__ for w in caught})
        return found


def main() -> None:
    package = sys.argv[1]
    gc.set_threshold(50_000, 20, 100)  # tracing makes many objects, and frees them itself
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever is printed goes to the log
    runner = Runner(package)
    answers.write(json.dumps({"ready": names(runner.modules),
                              "version": runner.jax.__version__}) + "\n")
    for line in sys.stdin:
        for number, source, x64 in json.loads(line):
            answers.write(json.dumps({"id": number, **runner.run(source, x64)}) + "\n")


if __name__ == "__main__":
    main()
