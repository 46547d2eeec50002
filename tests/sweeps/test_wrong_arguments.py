"""Calls of all public functions with one argument replaced by what it cannot be: the error names
the function that was called and the argument, and says nothing in Python's words alone.

The calls are those of the examples in docstrings. The sweep runs in a process of its own, as some
calls register what they are given."""

from __future__ import annotations

import ast
import contextlib
import copy
import doctest
import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import pyjx.numpy as jnp
from pyjx.core.advice import complete
from pyjx.core.frames import is_internal, is_of_foundation
from tests.test_guards import ROOT, public_callables


class Thing:
    """What no function takes."""


def function(*args: Any) -> Any:
    return args


ARRAYS = r"float|[aA]rray|1\.|rank|dim|2D|size"
# What is planted, and how messages show it.
PLANTS: dict[str, tuple[Any, str]] = {
    "text": ("x", "'x'|str|got x"), "none": (None, "None"),
    "half": (1.5, r"1\.5|float|\(\)|scalar"),
    "object": (Thing(), "Thing"), "function": (function, "function"),
    "objects": ([Thing()], "Thing|list"),
    "texts": (["a", "b"], "'a'|list|tuple"), "dictionary": ({"k": 1.0}, "'k'|dict|str"),
    "negative": (-1, r"-1|int|\(\)|scalar"), "far": (99, r"99|int|\(\)|scalar"),
    "pair": ((-1, -3), r"-1|-2|-3|tuple|\(2,\)"),
    "vector": (np.ones(7, np.float32), "7|" + ARRAYS),
    "matrix": (np.ones((3, 5), np.float32), "3, ?5|" + ARRAYS),
    "deep": (np.ones((2, 1, 2, 1, 2), np.float32), "2, ?1, ?2|" + ARRAYS),
    # What is large, where a size or an axis belongs.
    "data": (jnp.zeros(6000, int), "6000|int32|" + ARRAYS),
    "paragraph": ("x" * 50_000, "'?xxx|str|'x', 'x'"),
    "many": (list(range(3000)), r"[\[(]?0, 1, 2|\b3000\b|list|tuple"),
}
# Flags last longer than a call; an endless loop, or a sleep, is what some are asked for.
# Classes of the core are made where programs are traced, so nothing is around them.
LEFT_OUT = re.compile(r"make_user_context|while_loop|enable_|disable_jit|\.no_|config|hijax|ffi|"
                      r"jax\.core|EArray|ManualAxisType|Partial$")
# What tells of another thing that is wrong then, or is raised where the results of functions are
# called, which nothing is around.
EXPLAINED = re.compile(
    r"jax\.(pmap|make_jaxpr)|sparse\.(grad|jacfwd|jacobian|jacrev|value_and_grad|sparsify)|"
    r"roofline|gaussian_kde|(value_and_grad|grad|jac\w*|hessian)\((has_aux|holomorphic|argnums)=|"
    r"is not implemented|split\(indices|: Arguments to batch_matmul|input operand 1 must have|"
    r"The second argument to householder_product|einsum_path|tensordot\(axes|jet\.jet|"
    r"lax\.(scatter|gather)|for a product of rank|tree_broadcast")
# A name that a message begins with, unless it is an operation's, whose words are JAX's.
LEADING = re.compile(r"(?:[a-z]\w*\.)*(\w+)(?:\(\))?(?:: | requires ndarray)")
NAMES = {name.rpartition(".")[2] for name, _ in public_callables()}
PYTHONS = re.compile(r"' object |not supported between|has no len|unsupported operand|unpack|"
                     r"invalid literal|could not convert|unhashable|index out of range|modulo by|"
                     r"\) argument must be|incompatible function arguments|local variable")


class Sample(NamedTuple):
    """A call of a public function, and of what it returns, if that is called."""

    name: str
    fun: Callable[..., Any]
    arguments: inspect.BoundArguments
    then: tuple[Any, ...] | None


def sample(name: str, fun: Callable[..., Any]) -> Sample | None:
    """The first call in the example of a function; None where there is none of its name."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(fun) or ""):
        tree = ast.parse(example.source)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        outer = {id(call.func): call for call in calls}
        for call in calls:
            with contextlib.suppress(Exception):
                if eval(ast.unparse(call.func), scope) is fun:
                    args, kwargs = values(call, scope)
                    then = values(outer[id(call)], scope)[0] if id(call) in outer else None
                    return Sample(name, fun, inspect.signature(fun).bind(*args, **kwargs), then)
        with contextlib.suppress(Exception):
            exec(example.source, scope)
    return None


def values(call: ast.Call, scope: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    text = ast.unparse(ast.Call(ast.Name("given"), call.args, call.keywords))
    return eval(text, scope, {"given": lambda *args, **kwargs: (args, kwargs)})


def mistakes(of: Sample) -> Iterator[tuple[str, str, inspect.BoundArguments]]:
    """Parameters, what is planted for each of them, and the arguments with it."""
    for p in of.arguments.signature.parameters.values():
        for kind, (value, _) in PLANTS.items():
            given = dict(of.arguments.arguments)
            if p.kind is p.VAR_KEYWORD or (p.kind is p.VAR_POSITIONAL and not given.get(p.name)):
                continue
            value = copy.copy(value)  # NumPy writes into the width of a line
            given[p.name] = (value, *given[p.name][1:]) if p.kind is p.VAR_POSITIONAL else value
            in_order = {q: given[q] for q in of.arguments.signature.parameters if q in given}
            yield p.name, kind, inspect.BoundArguments(
                of.arguments.signature, in_order)  # type: ignore[arg-type]


def outcome(of: Sample, given: inspect.BoundArguments) -> Exception | None:
    """The error of a call, which is written out as users do."""
    name = of.name.rpartition(".")[2]
    names = [f"_{i}" for i in range(len(given.args))] + [f"{k}=_{k}" for k in given.kwargs]
    scope = {name: of.fun, **{f"_{i}": x for i, x in enumerate(given.args)},
             **{f"_{k}": x for k, x in given.kwargs.items()}}
    try:
        result = eval(f"{name}({', '.join(names)})", scope)
        if of.then is not None and callable(result):
            result(*of.then)
    except Exception as error:
        complete(error)  # as the hook for what nobody catches does
        return error
    return None


def faults(of: Sample, parameter: str, kind: str, error: Exception) -> Iterator[str]:
    """What is wrong with the message of an error."""
    frames = traceback.extract_tb(error.__traceback__)
    if any([is_internal(f.filename) for f in frames]):
        yield "a frame of the library"
    if any([f.filename == "<string>" and f.name != "<module>" for f in frames]) or any([
            not is_of_foundation(f.filename) and f.filename != "<string>" for f in frames[1:]]):
        return  # of the example's own function
    text = str(error)
    notes = [n for n in getattr(error, "__notes__", ()) if n.startswith("The call was")]
    name = of.name.rpartition(".")[2]
    names = {name, getattr(of.fun, "__name__", "")}
    everything = "\n".join([text, *notes])
    if len(everything) > 2000:
        yield "a long message"
    if not any([re.search(rf"\b{name}\b", everything) for name in names]):
        yield "the function is not named"
    leading = LEADING.match(text)
    given = {getattr(x, "__name__", "") for x in of.arguments.args}
    if leading and leading[1] in NAMES - names - given - {parameter}:
        yield "another function is named"
    if re.search("was passed to .* at position", text) and ". That is " not in text:
        yield "the position is not that in the call"
    shown = parameter in everything.lower() or re.search(PLANTS[kind][1], everything)
    if not shown:
        yield "neither the argument nor its value is shown"
    if PYTHONS.search(text) and parameter not in text and not notes:
        yield "Python's words alone"
    if isinstance(error, (RecursionError, SystemError, MemoryError)):
        yield "a crash"


def survey(part: int, parts: int) -> tuple[dict[str, list[str]], int]:
    """The faults, by what is wrong, of every `parts`-th function, and how many errors there are."""
    found: dict[str, list[str]] = {}
    seen = 0
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("too long")))
    for name, fun in public_callables()[part::parts]:
        if LEFT_OUT.search(name):
            continue
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            of = sample(name, fun)
            works = of is not None and outcome(of, of.arguments) is None
            for parameter, kind, given in mistakes(of) if of and works else ():
                signal.alarm(20)
                error = outcome(of, given)
                signal.alarm(0)
                seen += error is not None
                for fault in faults(of, parameter, kind, error) if error else ():
                    told = f"{name}({parameter}={kind}): {str(error)[:150]}"
                    if fault == "a frame of the library" or not EXPLAINED.search(told):
                        found.setdefault(fault, []).append(told)
    return found, seen


@pytest.mark.parametrize(("part", "parts"), [
    (0, 24), pytest.param(1, 8, marks=pytest.mark.slow)])
def test_errors_name_the_function_and_the_argument(part: int, parts: int, tmp_path: Any) -> None:
    code = ("import json, tests.sweeps.test_wrong_arguments as here; "
            f"print(json.dumps(here.survey({part}, {parts})))")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=tmp_path, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr[-2000:]
    found, seen = json.loads(done.stdout.splitlines()[-1])
    assert found == {}
    assert seen > 20_000 // parts
