"""The tester's own parts: programs print, comparison tells, shrinking keeps the difference."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from tests.oracle import devices, indexing, kernels, programs, pytrees, references, rules
from tests.oracle.arguments import arguments
from tests.oracle.calls import wrapped
from tests.oracle.comparison import compare, missing
from tests.oracle.conditioning import as_precise, vanishing
from tests.oracle.forward import FORWARD
from tests.oracle.language import Assign, Data, Program, Text, call, form
from tests.oracle.nesting import layered, written
from tests.oracle.shrinking import shrunk
from tests.oracle.values import Gen


def value(x: Any, weak: bool = False) -> dict[str, Any]:
    x = np.asarray(x)
    return {"is": "value", "warnings": [], "value": {
        "is": "array", "weak": weak, "dtype": str(x.dtype), "shape": list(x.shape),
        "data": base64.b64encode(x.tobytes()).decode()}}


def error(kind: type[Exception], message: str) -> dict[str, Any]:
    return {"is": "error", "type": kind.__name__, "builtin": kind.__name__, "warnings": [],
            "bases": [kind.__name__, "Exception"], "message": message}


def cause(a: dict[str, Any], b: dict[str, Any]) -> str | None:
    found = compare(a, b)
    return found and found.cause


MAKERS = [module.program for module in (
    devices, indexing, kernels, programs, pytrees, references, rules)]


@pytest.mark.parametrize("maker", MAKERS)
def test_generated_programs_compile_and_repeat(maker):
    for number in range(60):
        source = maker(Gen(f"a/{number}")).snippet()
        compile(source, "snippet", "exec")
        assert source == maker(Gen(f"a/{number}")).snippet()


def test_options_are_chosen():
    found = {written(Gen(str(i)), "f(<<x|<<y|z>> + 1>><<|, 2>>)") for i in range(60)}
    assert found == {f"f({a}{b})" for a in ("x", "y + 1", "z + 1") for b in ("", ", 2")}


def test_layers_can_be_taken_away_one_by_one():
    body, name = layered(Gen("1"), "f")
    program = Program("rules", (*body, Assign("result", call(name, Text("x"), Text("w")))))
    assert len(body) > 1

    def calls_f(program):
        called = []
        space = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "x": jax.numpy.ones(2), "w": 1.0,
                 "f": lambda x, w: called.append(x) or x}
        try:
            exec(program.source(), space)
        except Exception:
            return False
        return bool(called)

    small = shrunk(program, lambda ps: [calls_f(p) for p in ps])
    assert small.source() == "result = f(x, w)"


def test_arguments_follow_the_signature():
    signature = [["a", "POSITIONAL_OR_KEYWORD", ""], ["axis", "POSITIONAL_OR_KEYWORD", "None"],
                 ["where", "KEYWORD_ONLY", "None"]]
    for number in range(50):
        args, keywords = arguments(Gen(str(number)), "jnp.sum", signature)
        assert 1 <= len(args) <= 2
        assert {name for name, _ in keywords} <= {"axis", "where"}


def test_calls_are_wrapped_in_transformations():
    e = call("jnp.sin", Data("jnp", "float32", (2,), (1.0, 2.0)))
    sources = {wrapped(Gen(str(i)), "calls", e, "jnp.sin").source() for i in range(80)}
    assert any("jax.vmap" in s for s in sources)
    assert any("jax.grad" in s for s in sources)


def test_comparison_names_the_cause():
    x = np.array([1.0, 2.0], np.float32)
    assert cause(value(x), value(x)) is None
    assert cause(value(x), value(x.astype(np.float16))) == "dtype"
    assert cause(value(x), value(x[None])) == "shape"
    assert cause(value(x, weak=True), value(x)) == "weak"
    assert cause(value(x + 1), value(x)) == "value"
    assert cause(value(np.nextafter(x, x + 1)), value(x)) == "rounding"
    assert cause(value(-0.0 * x), value(0.0 * x)) == "sign of zero"
    assert cause(error(TypeError, "a"), value(x)) == "raises"
    assert cause(value(x), error(TypeError, "a")) == "accepts"
    assert cause(error(ValueError, "a"), error(TypeError, "a")) == "error"
    assert cause(error(TypeError, "a"), error(TypeError, "b")) is None
    assert cause({"is": "crash", "message": "SIGSEGV"}, value(x)) == "crash"
    assert missing(error(AttributeError, "module 'pyjx.lax' has no attribute 'scan'"))


class Answers:
    """A worker that gives one outcome for whatever it is sent."""

    def __init__(self, outcome):
        self.outcome = outcome

    def send(self, programs):
        pass

    def collect(self):
        return [self.outcome]


def test_integers_are_not_rounded():
    program = Program("calls", (Assign("result", Text("jnp.arange(2)")),))
    ours, theirs = value(np.array([0, 1])), value(np.array([0, 2]))
    assert not as_precise(Answers(theirs), program, ours, theirs)
    assert as_precise(Answers(ours), program, ours, theirs)  # the oracle's was rounded elsewhere


def test_results_are_as_coarse_as_the_steps_before():
    program = Program("programs", (Assign("result", Text("x.astype('float32').astype(float)")),))
    exact, theirs, ours = (value(np.array([x])) for x in (1.0, 1.0, 1.0 + 1e-6))
    assert as_precise(Answers(exact), program, ours, theirs)
    assert not as_precise(Answers(exact), program, value(np.array([1.01])), theirs)


def test_what_numbers_leave_that_cancel_out_vanishes_with_their_unit():
    def told(ours, then):
        workers = Answers(value(np.array([then]))), Answers(value(np.zeros(1)))
        return vanishing(*workers, program, value(np.array([ours])), value(np.zeros(1)))

    program = Program("calls", (Assign("result", Text("x.astype('float32')")),))
    assert told(2e-7, 3e-16)
    assert not told(2e-7, 2e-7)
    assert not told(2e-5, 3e-16)


def test_shrinking_keeps_the_difference():
    x = Data("np", "float16", (2, 3), tuple(range(6)))
    e = form("jnp.sin({} + {})", x, call("jnp.cos", x, out=None))
    program = Program("calls", (Assign("y", Text("3")), Assign("result", e)))
    small = shrunk(program, lambda ps: ["jnp.cos" in p.source() for p in ps])
    assert small.source() == "result = jnp.cos()"


def test_reverse_mode_can_be_made_of_forward_mode():
    def f(x, w):
        return jax.numpy.sin(x) * w, x.sum() * w

    def total(x, w):
        return sum(map(jax.numpy.sum, f(x, w)))

    x, w = jax.numpy.array([1.0, 2.0]), jax.numpy.array(3.0)
    space = {"jax": jax, "jnp": jax.numpy}
    exec(FORWARD.text, space)
    made = space["jax"]
    cts = (x, w)
    for a, b in ((made.vjp(f, x, w)[1](cts), jax.vjp(f, x, w)[1](cts)),
                 (made.grad(total, (0, 1))(x, w), jax.grad(total, (0, 1))(x, w)),
                 (made.jacrev(f)(x, w), jax.jacrev(f)(x, w)),
                 (made.jacfwd(f, (0, 1))(x, w), jax.jacfwd(f, (0, 1))(x, w)),
                 (made.hessian(total)(x, w), jax.hessian(total)(x, w)),
                 (made.linearize(f, x, w)[1](x, w), jax.linearize(f, x, w)[1](x, w))):
        jax.tree.map(lambda p, q: np.testing.assert_allclose(p, q, rtol=1e-6), a, b)
