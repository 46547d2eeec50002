"""Type checkers understand pyjx: right programs pass, and each mistake in a wrong one is found."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from pyjx import numpy as jnp
from pyjx.core.trace import Tracer
from pyjx.runtime.array import ArrayImpl
from tests.typing.checking import reported_by_mypy

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """What mypy reports, as users run it: for each program the message of each line."""
    folder = tmp_path_factory.mktemp("mypy")
    config = folder / "mypy.ini"
    config.write_text(f"[mypy]\nstrict = True\nwarn_unreachable = True\nmypy_path = {ROOT}\n"
                      "follow_imports = silent\ndisable_error_code = unused-ignore\n")
    lines = reported_by_mypy("--config-file", str(config), "--cache-dir", str(folder / "cache"),
                             *map(str, sorted(PROGRAMS.glob("*.py"))))
    messages: dict[str, dict[int, str]] = {path.name: {} for path in PROGRAMS.glob("*.py")}
    for line in lines:
        match = re.match(r".*?(\w+\.py):(\d+): error: (.*)", line)
        if match:
            messages[match[1]][int(match[2])] = match[3]
    return messages


def test_right_programs_pass(reported: dict[str, dict[int, str]]) -> None:
    assert reported["right.py"] == {}


def test_each_mistake_is_found(reported: dict[str, dict[int, str]]) -> None:
    lines = (PROGRAMS / "wrong.py").read_text().splitlines()
    planted = {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}
    found = reported["wrong.py"]
    assert len(planted) >= 40
    assert {i: lines[i - 1] for i in planted - set(found)} == {}
    assert {i: found[i] for i in set(found) - planted} == {}


def test_right_programs_run(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(PROGRAMS / "right.py"))


# -- the declared class and the one at run time ----------------------------------------------------

STUB = ast.parse((ROOT / "pyjx" / "core" / "array_type.pyi").read_text())
(DECLARED,) = [n for n in STUB.body if isinstance(n, ast.ClassDef) and n.name == "Array"]
METHODS = {n.name: n for n in DECLARED.body
           if isinstance(n, ast.FunctionDef) and not n.decorator_list}
PROPERTIES = {n.name for n in DECLARED.body
              if isinstance(n, ast.FunctionDef) and n.decorator_list}
UPDATES = {n.name: n for c in STUB.body
           if isinstance(c, ast.ClassDef) and c.name in ("_IndexUpdateRef", "_Update")
           for n in c.body if isinstance(n, ast.FunctionDef)}


def parameters_of_stub(method: ast.FunctionDef) -> list[tuple[str, Any]]:
    """Names and defaults, without self."""
    positional = method.args.posonlyargs + method.args.args
    none = [None] * (len(positional) - len(method.args.defaults))
    pairs = [*zip(positional, none + method.args.defaults, strict=True),
             *zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True)]
    return [(a.arg, d and ast.literal_eval(d)) for a, d in pairs[1:]]


def parameters_of(function: Any) -> list[tuple[str, Any]]:
    parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
    return [(p.name, None if p.default is p.empty else p.default) for p in parameters
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)][1:]


def test_what_is_declared_is_there() -> None:
    names = {*METHODS, *PROPERTIES}
    assert sorted(n for n in names if not hasattr(ArrayImpl, n)) == []
    concrete = {"__dlpack__", "__dlpack_device__", "device", "is_ready", "platform"}
    assert sorted(n for n in names - concrete if not hasattr(Tracer, n)) == []


def test_what_is_there_is_declared() -> None:
    public = {n for n in dir(ArrayImpl) if n[0] != "_" and hasattr(ArrayImpl, n)}
    # what jaxlib's class has beside what users are meant to use
    undocumented = {"clone", "format", "traceback", "unsafe_raw_buffer", "flat", "device_buffer",
                    "device_buffers"}
    assert sorted(public - {*METHODS, *PROPERTIES, "aval"} - undocumented) == [], (
        "declare it in pyjx/core/array_type.pyi")


@pytest.mark.parametrize("name", sorted(n for n in METHODS if n[0] != "_"))
def test_declared_signatures(name: str) -> None:
    method = getattr(ArrayImpl, name)
    if not hasattr(inspect.unwrap(method), "__code__") or name == "reshape":
        return  # C++, and what passes its arguments on, tell no signature
    assert parameters_of_stub(METHODS[name]) == parameters_of(method)


@pytest.mark.parametrize("name", ["get", "apply", "set", "add", "min"])
def test_declared_signatures_of_updates(name: str) -> None:
    declared = UPDATES[name] if name in ("get", "apply") else UPDATES["__call__"]
    method = getattr(type(jnp.zeros(2).at[0]), name)
    assert parameters_of_stub(declared) == parameters_of(method)


@pytest.mark.parametrize(("call", "shown"), [
    ("jnp.sum", "sum(a: Any, axis: "), ("jnp.sin", "(x: ArrayLike, /) -> Array"),
    ("jnp.linalg.norm", "norm(x: ArrayLike, ord: "), ("nn.softmax", "softmax(x: ArrayLike, axis: "),
    ("jnp.add", "add(x: ArrayLike, y: "), ("random.normal", "normal(key: KeyLike, shape: "),
    ("lax.scan", "scan(f: Callable[[Array, Array], "), ("jnp.fft.fft", "fft(a: ArrayLike, n: ")])
def test_editors_show_the_signatures_of_functions(call: str, shown: str) -> None:
    """Those that read types by jedi, which does not follow parameters through decorators."""
    jedi = pytest.importorskip("jedi")
    line = f"{call}("
    program = jedi.Script(f"from pyjx import lax, nn, numpy as jnp, random\n{line}",
                          project=jedi.Project(ROOT, smart_sys_path=False,
                                               added_sys_path=[str(ROOT)]))
    signatures = [s.to_string() for s in program.get_signatures(2, len(line))]
    assert shown in signatures[0]
