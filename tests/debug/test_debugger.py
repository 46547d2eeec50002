"""debug.breakpoint: the command line over the frames of a program."""

import io

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax


def session(commands, **options):
    """What a function says whose breakpoint gets these commands, without the prompts."""
    out = io.StringIO()

    def inner(a, b):
        tree = {"sum": a + b, "name": "tree"}
        jax.debug.breakpoint(stdin=io.StringIO("\n".join([*commands, "c", ""])), stdout=out,
                             **options)
        return tree["sum"]

    @jax.jit
    def outer(x):
        doubled = x * 2
        return inner(doubled, x)

    assert outer(2.0) == 6
    jax.effects_barrier()
    return out.getvalue().replace("(jdb) ", "")


def test_values_of_the_frames():
    said = session(["p a", "tree", "pp tree['name']", "u", "p doubled + 1", "d", "p b"])
    first, *rest = said.replace(", weak_type=True", "").splitlines()
    assert first == "Entering jdb:"
    assert rest[:3] == ["Array(4., dtype=float32)",
                        "{'name': 'tree', 'sum': Array(6., dtype=float32)}", "'tree'"]
    outer = rest.index("Array(5., dtype=float32)")
    assert any(line.startswith("->") and "inner(doubled, x)" in line for line in rest[3:outer])
    assert rest[-1] == "Array(2., dtype=float32)"


def test_source_and_stack():
    said = session(["l", "w"])
    (marked,) = [line for line in said.splitlines() if line.startswith("->")]
    assert "jax.debug.breakpoint(" in marked
    assert said.index("in session") < said.index("in outer") < said.index("in inner")


def test_ends_of_the_stack():
    assert "At bottommost frame." in session(["d"])
    assert "At topmost frame." in session(["u"], num_frames=1)


@pytest.mark.parametrize(("line", "message"), [
    ("p nothing", "*** NameError: name 'nothing' is not defined"),
    ("nothing", "*** NameError"), ("p 1 +", "*** SyntaxError"),
    ("p 1/0", "*** ZeroDivisionError: division by zero"),
])
def test_mistakes_on_the_line(line, message):
    assert message in session([line, "", "help"])


def test_quit_ends_the_program():
    @jax.jit
    def f(x):
        jax.debug.breakpoint(stdin=io.StringIO("q\n"), stdout=io.StringIO())
        return x

    with pytest.raises(jax.errors.JaxRuntimeError, match="left with quit"):
        f(1.0)
        jax.effects_barrier()
    assert jax.jit(lambda x: x + 1)(1.0) == 2


def test_only_where_a_condition_holds():
    out = io.StringIO()

    def stop_if_nonfinite(x):
        lax.cond(jnp.isfinite(x).all(), lambda x: None, lambda x: jax.debug.breakpoint(
            stdin=io.StringIO("p x\nc\n"), stdout=out), x)

    @jax.jit
    def f(x, y):
        z = x / y
        stop_if_nonfinite(z)
        return z

    assert f(2.0, 1.0) == 2
    jax.effects_barrier()
    assert out.getvalue() == ""
    f(2.0, 0.0)
    jax.effects_barrier()
    assert "Array(inf, dtype=float32" in out.getvalue()


@pytest.mark.parametrize("run", [
    lambda f: f(jnp.float32(2.0)), lambda f: jax.grad(f)(2.0),
    lambda f: jax.vmap(f)(jnp.array([2.0])),
])
def test_transformations(run):
    out = io.StringIO()

    def f(x):
        jax.debug.breakpoint(stdin=io.StringIO("p x\nc\n"), stdout=out, ordered=True)
        return jnp.sin(x)

    run(f)
    jax.effects_barrier()
    assert out.getvalue().count("Array(2., dtype=float32") == 1


def test_backends():
    with pytest.raises(ValueError, match="Invalid debugger: 'web'"):
        jax.debug.breakpoint(backend="web")
    assert jax.debug.breakpoint(stdin=io.StringIO("c\n"), stdout=io.StringIO(), token=3) == 3
