"""Cures for mistakes that look alike: each does what was meant, for the value that came, under the
name of jax as under pyjx's own."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax, nn
from pyjx.core import tracebacks
from pyjx.numpy.array_methods import FORWARDED

pytestmark = pytest.mark.smoke  # what code looks like differs by Python's release

ROOT = Path(__file__).parent.parent.parent
V, INTEGERS = jnp.ones(3), jnp.arange(6)
X = jnp.float32(0.25)


def mistake(call: Callable[[], Any]) -> str:
    """The message with its notes, as a program that ends with the error shows it."""
    with pytest.raises(Exception) as caught:
        call()
    tracebacks._advise(caught.value)
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def check(call: Callable[..., Any], *words: str, without: str = "no such words") -> None:
    said = mistake(call)
    for part in words:
        assert part in said
    assert without not in said


# -- names of the user's ---------------------------------------------------------------------------


def test_a_variable_called_policy_says_nothing_of_other_calls() -> None:
    policy = {"w": V}

    def loss(params: Any, batch: Any) -> Any:
        return params["w"] + batch

    check(lambda: loss(policy), "missing 1 required", without="policy(prim")  # type: ignore
    check(lambda: [policy, jax.jit(abs, static_argnum=0)],  # type: ignore[call-arg]
          "Did you mean 'static_argnums'?", without="policy(prim")
    check(lambda: jax.grad(jax.checkpoint(jnp.sin, policy=lambda prim: True))(1.0),
          "It is called as policy(prim, *avals, **params).")


@pytest.mark.parametrize(("module", "name", "meant"), [
    (nn, "Relu", "relu"), (nn, "Gelu", "gelu"), (nn, "Selu", "selu"), (nn, "Celu", "celu"),
    (jnp, "Clip", "clip"), (jnp, "Diag", "diag"), (lax, "Rsqrt", "rsqrt"), (jax, "Pmap", "pmap"),
    (jnp, "array_Equal", "array_equal"), (jnp, "Where", "where"), (V.at[0], "Set", "set"),
])
def test_a_name_with_a_capital_means_the_one_without(module: Any, name: str, meant: str) -> None:
    assert f"Did you mean{':' * (module not in (nn, jnp, lax, jax))} {meant!r}?" in mistake(
        lambda: getattr(module, name))


def test_a_name_with_a_capital_of_another_module_is_told_its_place() -> None:
    check(lambda: jnp.Relu, "Use jax.nn.relu.")  # type: ignore[attr-defined]


# -- texts and trees beside arrays -----------------------------------------------------------------


def unpacked() -> Any:
    x, _ = {"x": 3.0, "y": V}
    return x + V  # type: ignore[operator]


@pytest.mark.parametrize(("call", "words"), [
    (lambda: "loss: " + X, "can only concatenate str (not \"ArrayImpl\") to str; the text of a "
     "value is str(x), as in f'{x}'"),
    (lambda: X + "loss", "the text of a value is str(x)"),
    (lambda: jax.jit(lambda x: "loss: " + x)(X), "jax.debug.print('{x}', x=x) shows it"),
    (lambda: jax.grad(lambda x: "loss: " + x)(X), "jax.debug.print('{x}', x=x) shows it"),
    (lambda: "a" * X, "the text 'a' is no number: it is repeated by an integer, as int(x) is one"),
    (unpacked, "the text 'x' is no number. Where a dictionary is unpacked"),
    (lambda: [k * V for k in {"w": 1}], "d.values() are its values"),
    (lambda: "0.5" * X, "of a text float(text) is a number"),
])
def test_a_text_beside_an_array(call: Callable[[], Any], words: str) -> None:
    said = mistake(call)
    assert words in said
    assert ("float(text)" in said) == ("float(text)" in words)


@pytest.mark.parametrize("tree", [
    [{"w": V}], ({"w": V},), [(V, X), (V, V)], [V, jnp.ones(2)], {"w": [V]}, [{"w": 1.0}, None]])
def test_what_serves_for_an_operator_of_a_tree_computes_with_its_leaves(tree: Any) -> None:
    for call, meant in ((lambda x: x * tree, lambda y: X * y),
                        (lambda x: tree - x, lambda y: y - X)):
        said = mistake(lambda call=call: call(X))  # type: ignore[misc]
        made = eval(said.partition("; ")[2].partition(" computes")[0],
                    {"jax": jax, "x": X, "y": tree})
        assert str(made) == str(jax.tree.map(meant, tree))
        assert "computes with each leaf" in mistake(lambda call=call: jax.jit(call)(X))  # type: ignore
    check(lambda: X * {1, 2}, "jnp.asarray(list(y))")  # type: ignore[operator]
    check(lambda: X * [1.0, 2.0], "make it an array with jnp.asarray")


# -- traced values, and what is called -------------------------------------------------------------


def test_updates_of_what_an_object_or_a_tree_holds_are_told_the_keyword() -> None:
    held = {"a": [V]}
    a = held["a"]
    for call in (lambda: held["a"][0].at[0].set(1.0, unique=True),
                 lambda: (a[0].at[0].set(1.0, unique=True), a[0].at[0].set(1.0))):
        check(call, "Did you mean 'unique_indices'?")


PROGRAM = """
import functools, json, types
{}
x = jnp.ones(3)
s = types.SimpleNamespace(a=x)
for call in (
    jax.jit(lambda x: x.unsqueeze(0)), jax.jit(lambda x: x.float()), jax.jit(lambda x: x(0)),
    jax.jit(lambda x: x.masked_fill(0)), jax.jit(lambda x: x.gather(0)),
    jax.jit(lambda x: x.sigmoid()), jax.jit(lambda x: x.split(2)), jax.jit(lambda x: x.set(2)),
    jax.jit(lambda x: json.dumps({{"x": x}})), jax.vmap(lambda x: x.numpy()),
    jax.jit(lambda x: (s.a.at[0].set(x[0], unique=True), s.a.at[0].set(1.0))),
    functools.partial(jax.custom_jvp, static_argnums=0), jax.jit(lambda x: jnp.sum(x, out=x, b=1)),
    jax.jit(lambda x: x.at[0].Set(1)),
    lambda x: functools.partial(jax.custom_vjp, static_argnums=0)(jnp.sin)):
    try:
        call(x)
    except Exception as error:
        tracebacks._advise(error)
        print(str(error).replace("pyjx.", "jax."))
"""
SAID = [
    "'unsqueeze'. Use jax.numpy.expand_dims(x, axis).", "'float'. Use x.astype(float).",
    "not callable. Use x[index].", "Use jax.numpy.where(mask, value, x).",
    "Use jax.numpy.take_along_axis(x, index, axis).", "Use jax.nn.sigmoid.",
    "Use jax.numpy.split.", "Use x.at[index].set(values).",
    "not JSON serializable. Save what the traced function returns.",
    "'numpy'. It has no value while it is traced: let the function return it.",
    "Did you mean 'unique_indices'?", "The arguments are fun, nondiff_argnums, nondiff_argnames.",
    "got an unexpected keyword argument 'b'", "Did you mean: 'set'?",
    "custom_vjp() got an unexpected keyword argument 'static_argnums'",
]


@pytest.mark.parametrize("imports", [
    "import pyjx as jax, pyjx.numpy as jnp; from pyjx.core import tracebacks",
    "import pyjx.as_jax, jax, jax.numpy as jnp; from pyjx.core import tracebacks"])
def test_traced_values_have_the_cures_of_arrays_under_both_names(imports: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(imports)], cwd=ROOT, check=True,
                          capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(SAID)
    for line, said in zip(lines, SAID, strict=True):
        assert said in line


def test_the_note_of_a_method_tells_its_array_first() -> None:
    """Whatever is wrong of the arguments; the array is a variable, or an expression gives it."""
    told = set[str]()
    wrong = ("2, 7", "2, axis=7", "7", "axis=7", "[1, 2], mode='foo'", "'foo'", "1.5, 1.5")
    for name, given, made in itertools.product(FORWARDED, wrong, ("x", "held['x']", "x.copy()")):
        notes: list[str] = []
        try:
            exec(f"{made}.{name}({given})", {"x": INTEGERS, "held": {"x": INTEGERS}})
        except Exception as error:
            notes = getattr(error, "__notes__", [])
        for shown in [note for note in notes if note.startswith("The call was ")]:
            array = r"int32\[6\]" if made == "x" else r"(\.\.\.|int32\[6\])"
            assert re.match(rf"The call was (Array\.)?{name}\((\w+=)?{array}[,)]", shown)
            told.add(name)
    assert len(told) > 20
