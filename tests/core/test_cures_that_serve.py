"""Cures for mistakes that look alike: each does what was meant, for the value that came, under the
name of jax as under pyjx's own."""

from __future__ import annotations

import cmath
import contextlib
import dataclasses
import functools
import itertools
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax, nn
from pyjx.ad_checkpoint import checkpoint_name
from pyjx.custom_derivatives import linear_call
from pyjx.experimental import checkify
from pyjx.experimental import pallas as pl
from pyjx.numpy.array_methods import FORWARDED
from pyjx.scipy.sparse.linalg import cg
from tests.mistakes import mistake

pytestmark = pytest.mark.smoke  # what code looks like differs by Python's release

ROOT = Path(__file__).parent.parent.parent
V, INTEGERS = jnp.ones(3), jnp.arange(6)
X, KEY = jnp.float32(0.25), jax.random.key(0)


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
    check(lambda: X * [1.0, 2.0], "make it an array with jnp.asarray", without="tree.map")
    check(lambda: X * [V, V], "jnp.asarray, or jax.tree.map(lambda y: x * y, y) computes with each")


# -- cures of functions, which are followed --------------------------------------------------------


def read(i: Any, ref: Any) -> Any:
    return ref[i:i + 2]


def write(i: Any, ref: Any) -> None:
    ref[i:i + 2] = 0.0


def reference() -> Any:
    return jax.new_ref(INTEGERS)


MATRIX = jnp.arange(6.0).reshape(2, 3)
PART = "A part of known size is x_ref[pl.ds(start, size)]. pl is jax.experimental.pallas."
STORED = "store jnp.asarray(value, ref.dtype)"


@pytest.mark.parametrize(("call", "words", "followed"), [
    # which of several operands is to be converted, and one that may be a number of Python's
    (lambda: INTEGERS & 1.0, "convert them: jnp.asarray(x, int).",
     lambda: INTEGERS & jnp.asarray(1.0, int)),
    (lambda: jnp.left_shift(INTEGERS, 1.0), "Convert floats: jnp.asarray(x, int).",
     lambda: jnp.left_shift(INTEGERS, jnp.asarray(1.0, int))),
    (lambda: jnp.invert(2.0), "convert them: jnp.asarray(x, int).",
     lambda: jnp.invert(jnp.asarray(2.0, int))),
    (lambda: lax.clamp(0, V, 1), "Give all one dtype, as in jnp.asarray(x, 'float32').",
     lambda: lax.clamp(jnp.asarray(0, "float32"), V, jnp.asarray(1, "float32"))),
    (lambda: lax.igamma(V, jnp.arange(3)), "Give all one dtype, as in jnp.asarray(x, 'float32').",
     lambda: lax.igamma(V, jnp.asarray(jnp.arange(3), "float32"))),
    (lambda: lax.dynamic_update_slice(INTEGERS, V[:1], (0,)), "jnp.asarray(update, 'int32').",
     lambda: lax.dynamic_update_slice(INTEGERS, jnp.asarray(V[:1], "int32"), (0,))),
    (lambda: lax.rem(V, 2), "jnp.fmod is a similar", lambda: jnp.fmod(V, 2)),
    (lambda: lax.shift_right_logical(INTEGERS, jnp.int8(2)), "jnp.asarray(x, 'int32').",
     lambda: lax.shift_right_logical(INTEGERS, jnp.asarray(2, "int32"))),
    (lambda: lax.pad(V, 0, [(1, 1, 0)]), "as in jnp.asarray(y, x.dtype).",
     lambda: lax.pad(V, jnp.asarray(0, V.dtype), [(1, 1, 0)])),
    (lambda: jnp.take(V, 1.0), "jnp.asarray(indices, int)",
     lambda: jnp.take(V, jnp.asarray(1.0, int))),
    (lambda: jax.ops.segment_sum(X, 0.0), "jnp.asarray(segment_ids, int).",
     lambda: jax.ops.segment_sum(X, jnp.asarray(0.0, int))),
    (lambda: reference().__setitem__(0, 1.5), STORED,
     lambda: reference().__setitem__(0, jnp.asarray(1.5, int))),
    # what holds what is no array
    (lambda: jnp.concatenate([V, [1, 2]]), "at position 1. That is the argument arrays[1]. Make",
     lambda: jnp.concatenate([V, jnp.asarray([1, 2])])),
    (lambda: jnp.stack((V, (1, 2, 3))), "at position 1. That is the argument arrays[1]. Make",
     lambda: jnp.stack((V, jnp.asarray((1, 2, 3))))),
    (lambda: jnp.concatenate([[1, 2], [3]]), "at position 0. That is the argument arrays[0]. Make",
     lambda: jnp.concatenate([jnp.asarray([1, 2]), jnp.asarray([3])])),
    (lambda: jnp.choose(np.arange(3), [V, [1, 2, 3], V]), "That is the argument choices[1]. Make",
     lambda: jnp.choose(np.arange(3), [V, jnp.asarray([1, 2, 3]), V])),
    (lambda: jnp.block([V, None]), "the argument arrays[1].", lambda: jnp.block([V])),
    (lambda: lax.concatenate([V, [1.0]], 0), "operands[1]. Argument [1.0] is not a valid",
     lambda: lax.concatenate([V, jnp.asarray([1.0])], 0)),
    (lambda: jnp.sin([[1.0], [2.0]]), "at position 0. That is the argument x. Make",
     lambda: jnp.sin(jnp.asarray([[1.0], [2.0]]))),
    # a shape or axes where the array goes, and lists which are where they belong
    (lambda: jnp.reshape((3, 2), MATRIX), "The order of the arguments is reshape(a, shape).",
     lambda: jnp.reshape(MATRIX, (3, 2))),
    (lambda: jnp.pad((1, 1), V), "The order of the arguments is pad(array, pad_width).",
     lambda: jnp.pad(V, (1, 1))),
    (lambda: jax.image.resize((4, 4), MATRIX, "linear"), "is resize(image, shape, method).",
     lambda: jax.image.resize(MATRIX, (4, 4), "linear")),
    (lambda: lax.expand_dims((0,), V), "The order of the arguments is expand_dims(array, dim",
     lambda: lax.expand_dims(V, (0,))),
    (lambda: lax.clamp(V, 0.0, 1.0), "The order of the arguments is clamp(min, x, max).",
     lambda: lax.clamp(0.0, V, 1.0)),
    (lambda: jnp.take([1, 2, 3], INTEGERS[:2]), "the argument a. Make an array of it",
     lambda: jnp.take(jnp.asarray([1, 2, 3]), INTEGERS[:2])),
    (lambda: jnp.quantile([1.0, 2.0], V), "the argument a. Make an array of it",
     lambda: jnp.quantile(jnp.asarray([1.0, 2.0]), V)),
    # references, whose parts have a size
    (lambda: jax.jit(read)(1, reference()), PART,
     lambda: jax.jit(lambda i, ref: ref[pl.ds(i, 2)])(1, reference())),
    (lambda: jax.jit(write)(1, reference()), PART,
     lambda: jax.jit(lambda i, ref: ref.__setitem__(pl.ds(i, 2), jnp.zeros(2, int)))(
         1, reference())),
    # what is static in functions of the library
    (lambda: jnp.tril(MATRIX, jnp.array(1)), "static arguments: give int(k) of a number, or",
     lambda: jnp.tril(MATRIX, int(jnp.array(1)))),
    (lambda: jnp.linalg.norm(MATRIX, axis=jnp.arange(2)), "or tuple(axis.tolist()).",
     lambda: jnp.linalg.norm(MATRIX, axis=tuple(jnp.arange(2).tolist()))),
    # sizes that are no part of a shape
    (lambda: jnp.reshape(MATRIX, (3, 2), 1), "as one tuple: (3, 2, 1).",
     lambda: MATRIX.reshape((3, 2, 1))),
    (lambda: jnp.reshape(V, 3, 1), "'order' argument: 1. If the last one is a size, give the "
     "shape as one tuple: (3, 1).", lambda: jnp.reshape(V, (3, 1))),
    (lambda: jax.grad(lambda x: jnp.linalg.eig(x)[0].real.sum())(jnp.eye(2)),
     "as jnp.linalg.eigvals gives them, have derivatives",
     lambda: jax.grad(lambda x: jnp.linalg.eigvals(x).real.sum())(jnp.eye(2))),
    (lambda: lax.scan(lambda c, x: (c, x), 0, np.int32(3)), "For that many give jnp.arange(3), or",
     lambda: lax.scan(lambda c, x: (c, x), 0, jnp.arange(3))),
    (lambda: MATRIX.flatten(1), "From an axis on it is x.reshape(*x.shape[:1], -1).",
     lambda: MATRIX.reshape(*MATRIX.shape[:1], -1)),
    (lambda: MATRIX[MATRIX > 1, 0], "indexed. A mask counts for as many axes as it has.",
     lambda: MATRIX[MATRIX > 1]),
    (lambda: jnp.linalg.norm(X, 2), "axis=(). Of a number it is jnp.abs(x).", lambda: jnp.abs(X)),
    (lambda: lax.fori_loop(2**40, 2**40 + 2, lambda i, x: x + i, 0), "Enable x64, or count from 0",
     lambda: lax.fori_loop(0, 2, lambda i, x: x + i, 0)),
    (lambda: jax.image.resize(MATRIX, (4, 4), "LINEAR"), "Did you mean 'linear'?",
     lambda: jax.image.resize(MATRIX, (4, 4), "linear")),
])
def test_cures_of_functions_are_followed(call: Callable[[], Any], words: str,
                                         followed: Callable[[], Any]) -> None:
    check(call, words)
    followed()


@pytest.mark.parametrize(("call", "words", "without"), [
    (lambda: lax.fori_loop(0, 2**40, lambda i, x: x, 0), "to int32. Enable x64.", "count from 0"),
    (lambda: lax.scan(lambda c, x: (c, x), 0, []), "no values to scan over", "init alone"),
    (lambda: jnp.linalg.solve(jnp.ones((2, 3, 3)), jnp.ones((5, 3))), "shapes (2, 3, 3) and (5, 3)",
     "squeeze"),
    (lambda: V.at[0].apply(lambda x: None), "func must return a value of type float32[], got None.",
     "closure"),
    (lambda: jax.linear_transpose(lambda x: x / x, V)(V), "The function is not linear: an operand "
     "whose value is asked for depends on the arguments.", "UndefinedPrimal"),
    *[(functools.partial(lambda f: jax.linear_transpose(lambda a: f(a, V), jnp.eye(3))(V), f),
       "What is transposed must be linear", "UndefinedPrimal")
      for f in (jnp.linalg.solve, lax.linalg.triangular_solve)],
    (lambda: jax.linear_transpose(lambda x: lax.cond(x > 0, lambda: x, lambda: 2 * x), X)(X),
     "What is transposed must be linear", "UndefinedPrimal"),
    (lambda: jnp.histogramdd(jnp.ones((2, 3, 4))), "(points, coordinates), got (2, 3, 4).", "None"),
    (lambda: jnp.broadcast_arrays(V, V[:2], INTEGERS), "has the sizes 3, 2 and 6;", "and 2"),
    (lambda: jnp.trace(MATRIX, V), "trace: offset must be an integer, got Array(", "tuple"),
    (lambda: nn.softmax(V, V), "softmax: axis must be an integer, a name, a sequence of these or "
     "None, got Array(", "asarray"),
    (lambda: jax.ops.segment_sum(V, 0), "segment_sum: segment_ids must have the number of each "
     "row of data", "x.at"),
    (lambda: jax.random.orthogonal(jax.random.key(0), -1), "got -1 and -1", "None"),
    (lambda: jnp.vectorize(lambda x, y=1: x)(V, y=2), "signature=None: pass it by position.",
     "position on"),
])
def test_messages_of_functions_tell_what_came(call: Callable[[], Any], words: str,
                                              without: str) -> None:
    check(call, words, without=without)


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


def test_the_note_of_a_partial_function_tells_what_that_was_given() -> None:
    repeat = functools.partial(jnp.repeat, V)
    check(lambda: repeat(2, 3), "The call was repeat(a=float32[3], repeats=2, axis=3).")
    check(lambda: functools.partial(jnp.repeat, V)(2, 3), "The call was repeat(", without="a=2")
    check(lambda: [jnp.repeat][0](V, 2, 3), "The call was repeat(a=", without="a=2")


# -- static arguments ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class State:
    x: Any
    n: Any


STEP: Any = jax.jit(lambda s, y: y, static_argnums=0)
REGISTER = "others become one by jax.tree_util.register_dataclass."


@pytest.mark.parametrize(("call", "words"), [
    (lambda: jax.vmap(lambda x: STEP(State(x, 3), x))(V), ("It holds a traced value. It is mapped "
                                                           "by vmap", REGISTER)),
    (lambda: jax.jit(lambda x: STEP(State(x, 3), x))(V), ("It holds a traced value. It is traced",
                                                          REGISTER)),
    (lambda: STEP(State(V, 3), V), ("It holds a value of type ArrayImpl. Arrays are no static",
                                    REGISTER)),
    (lambda: jax.jit(lambda x: STEP((x, 2), x))(V), ("It holds a traced value.", "argnames.")),
    (lambda: STEP(State(1, [3]), V), ("It holds a value of type list.", "give a tuple in the")),
    (lambda: jax.jit(lambda x: STEP(State(1, [3]), x))(V), ("It holds a value of type list.",
                                                            "give a tuple in the place")),
    (lambda: STEP(jax.random.key(0), V), ("Keys are no static arguments: leave",)),
    (lambda: STEP(V, V), ("Arrays are no static arguments: leave",)),
    (lambda: STEP(X, V), ("Arrays are no static arguments: give float(s), or leave",)),
])
def test_what_a_static_argument_holds_is_told(call: Callable[[], Any], words: tuple[str, ...]
                                              ) -> None:
    check(call, *words, without="has __eq__ and no __hash__")


@pytest.mark.parametrize(("x", "kind"), [
    (jnp.float32(0.5), float), (jnp.bool_(True), bool), (jnp.int32(3), int),
    (jnp.asarray(2.0), float), (jnp.complex64(1j), complex), (jnp.float32("nan"), float),
    (np.array(0.5), float), (np.array(False), bool), (np.array(-3), int),
    (np.array(1 + 2j), complex)])
def test_a_number_is_static_as_one_of_pythons_of_its_kind(x: Any, kind: type) -> None:
    f: Any = jax.jit(lambda y, rate: y, static_argnames="rate")
    words = f"Arrays are no static arguments: give {kind.__name__}(rate), or leave this one out"
    check(lambda: f(V, rate=x), words)
    if isinstance(x, np.ndarray):  # others are traced there
        check(lambda: jax.jit(lambda y: f(y, rate=x))(V), words)
    f(V, rate=kind(x))


def test_a_vector_that_is_static_as_a_tuple_is_an_array_again() -> None:
    rows: Any = jax.jit(lambda x, perm: x[perm], static_argnames="perm")
    cured: Any = jax.jit(lambda x, perm: x[jnp.array(perm)], static_argnames="perm")
    perm = jnp.array([1, 0])
    check(lambda: rows(M, perm=perm), "give tuple(perm.tolist()), or leave this one out of "
          "static_argnums and static_argnames. jnp.array(...) makes an array of the tuple again.")
    assert (cured(M, perm=tuple(perm.tolist())) == M[perm]).all()


# -- the order of arguments ------------------------------------------------------------------------


def in_vmap(f: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: jax.vmap(f, axis_name="i")(M)


U, M = jnp.ones((4, 4)), jnp.ones((2, 2))
UNEVEN = jnp.ones((3, 2))
NUMBERS: Any = lax.GatherDimensionNumbers((1,), (0,), (0,))


@pytest.mark.parametrize(("call", "order"), [
    (lambda: lax.dynamic_update_slice(U, (0, 0), M), "dynamic_update_slice(operand, update, st"),
    (lambda: lax.dynamic_update_slice(U, jnp.array([0, 0]), M), "(operand, update, start_indices)"),
    (lambda: jax.jit(lambda i: lax.dynamic_update_slice(V, (i,), V))(0), "(operand, update, st"),
    (lambda: lax.dynamic_slice((0, 0), U, (2, 2)), "dynamic_slice(operand, start_indices, slice"),
    (lambda: lax.dynamic_update_slice_in_dim(U, 0, U[:1], 0), "(operand, update, start_index,"),
    (lambda: lax.dynamic_update_index_in_dim(U, 0, U[:1], 0), "(operand, update, index, axis)"),
    (lambda: lax.dynamic_slice_in_dim(0, U, 2), "(operand, start_index, slice_size)"),
    (lambda: lax.gather(U, NUMBERS, jnp.zeros((1, 1), int), (1, 4)), "gather(operand, start_indic"),
    (lambda: lax.scatter(UNEVEN, jnp.ones((1, 2)), jnp.zeros((1, 1), int),
                         lax.ScatterDimensionNumbers((1,), (0,), (0,))),
     "scatter(operand, scatter_indices, updates, dimension_numbers)"),
    (in_vmap(lambda x: lax.ppermute(x, [(0, 1), (1, 0)], "i")), "name: (0, 1). The order of the arg"
     "uments is ppermute(x, axis_name, perm)."),
    (in_vmap(lambda x: lax.all_to_all(x, 0, 0, "i")), "(x, axis_name, split_axis, concat_axis)."),
    (lambda: checkify.checkify(lambda x: checkify.check("msg", x > 0))(1.0), "check(pred, msg, *f"),
    (lambda: jnp.quantile(0.5, UNEVEN, axis=0), "got shape (3, 2). The order of the arguments is "
     "quantile(a, q, axis)."),
    (lambda: jnp.quantile(0.5, V, axis=0), "quantile(a, q, axis)."),
    (lambda: jnp.percentile(50, UNEVEN), "percentile(a, q)."),
    (lambda: jnp.take(0, UNEVEN, axis=1), "take(a, indices, axis)."),
    (lambda: jnp.take_along_axis(jnp.zeros((1, 1), int), M, axis=1), "(arr, indices, axis)."),
])
def test_exchanged_arguments_are_told_their_order(call: Callable[[], Any], order: str) -> None:
    check(call, "The order of the arguments is ", order, without="jnp.asarray")


@pytest.mark.parametrize("call", [
    lambda: lax.dynamic_slice(U, (0, 0.5), (2, 2)), lambda: jnp.take(V, 1.5),
    lambda: jnp.quantile(V, jnp.full((2, 2), 0.5)), lambda: checkify.check(1.0, "msg"),
    in_vmap(lambda x: lax.ppermute(x, "j", [(0, 1)])), lambda: lax.dynamic_slice_in_dim(U, 0, 9),
])
def test_arguments_in_their_places_are_told_no_order(call: Callable[[], Any]) -> None:
    check(call, without="The order of the arguments")


# -- indices and comparisons -----------------------------------------------------------------------


VOCABULARY = ["a", "b"]


def test_texts_are_indexed_outside_of_what_is_traced() -> None:
    i = jnp.array([0, 1])
    for call in (lambda: VOCABULARY[i], lambda: jax.jit(lambda i: VOCABULARY[i])(0),
                 lambda: jax.jit(lambda i: [VOCABULARY[j] for j in i])(i), lambda: "abc"[i]):
        said = mistake(call)
        assert "jnp.asarray(" not in said
        made = re.search(r"of a number, or (.*?) of several", said)[1]  # type: ignore[index]
        assert [*eval(made, {"np": np, "VOCABULARY": VOCABULARY, "i": i, "j": i})] == ["a", "b"]
    check(lambda: jax.jit(lambda i: [1.0, 2.0][i])(0), "n array: jnp.asarray([1.0, 2.0])[i]")


@pytest.mark.parametrize("index", [
    lambda k: V[k], lambda k: V.at[k].set(1), lambda k: jnp.take(V, k), lambda k: [1, 2][k], range,
    jax.jit(lambda k: V[k]), lambda k: lax.dynamic_slice(V, (k,), (1,))])
def test_a_key_is_no_index(index: Callable[[Any], Any]) -> None:
    key = jax.random.key(0)
    check(lambda: index(key), "A key is no index: jax.random.randint(key, shape, 0, n) draws",
          without="astype")
    assert V[jax.random.randint(key, (2,), 0, 3)].shape == (2,)


@pytest.mark.parametrize(("text", "cure"), [
    ("x > 1e-4 & i < 100", "(a > b) & (c < d)"), ("x > 0. | x < 2.", "(a > b) | (c < d)"),
    ("(x > 0) & x < 1", "(a > b) & (c < d)"), ("jnp.where(~x > 0, 1, 2)", "~(a > b)"),
    ("jax.jit(lambda x: jnp.where(x > .5 & x < 2., x, 0))(x)", "(a > b) & (c < d)"),
    ("0 < x < 1", "(a < b) & (b < c)"), ("i > 0 & i < 2", "(a < b) & (b < c)"),
    ("jax.jit(lambda x: 0 < x < 1)(x[0])", "(a < b) & (b < c)"),
    ("(x == 1.) | x", ""), ("f(x & x) > 0", ""), ("x & x", ""), ("True if x else (x < 1)", ""),
])
def test_comparisons_beside_an_operator_stand_in_brackets(text: str, cure: str) -> None:
    known = {"x": V, "i": jnp.arange(3), "jnp": jnp, "jax": jax, "f": lambda x: x}
    check(lambda: eval(text, known), cure, without="no such" if cure else "stand in brackets")


# -- loops, shapes and shardings -------------------------------------------------------------------


def test_bounds_of_a_loop_that_are_traced_are_told_what_makes_integers_of_them() -> None:
    def loop(n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, c: c + 1, 0)

    check(lambda: jax.jit(lambda n: loop(n / 2))(4), "n // 2 in place of n / 2, or x.astype(int).",
          without=" int(x)")
    for f in (lambda n: n // 2, lambda n: (n / 2).astype(int)):
        assert jax.jit(lambda n, f=f: loop(f(n)))(4) == 2
    check(lambda: loop(4 / 2), "such as int(x)")


def test_a_traced_array_in_the_place_of_a_shape_means_its_own() -> None:
    key = jax.random.key(0)
    for call in (lambda x: jax.random.bernoulli(key, 0.5, x), jnp.zeros, lambda x: x.reshape(x)):
        check(lambda call=call: jax.jit(call)(V), "Did you mean its .shape?")  # type: ignore[misc]
    check(lambda: jax.jit(jnp.zeros)(3), without=".shape?")


@pytest.mark.parametrize("specs", [{"w": jax.P("x"), "b": jax.P()}, [jax.P("x"), jax.P()],
                                   ({"w": jax.P("x")}, jax.P())])
def test_a_tree_of_specs_has_a_sharding_for_each(specs: Any) -> None:
    mesh = jax.make_mesh((1,), ("x",))
    said = mistake(lambda: jax.NamedSharding(mesh, specs))
    made = re.search(r"jax\.tree\.map\(.*specs\)", said)[0]  # type: ignore[index]
    assert jax.tree.leaves(eval(made, {
        "jax": jax, "NamedSharding": jax.NamedSharding, "mesh": mesh, "specs": specs}))


# -- functions of Python's -------------------------------------------------------------------------


OPERANDS = [(0.3, 2.0), (-0.3,), (0.3,), (1.5,), ([0.3, 0.5],), ([0.3, 0.5], [0.25, 2.0]), (6, 4),
            (6,)]
# Of these the arguments are part of the program, or arrays are iterated over as they are.
WITHOUT = {"comb", "perm", "isqrt", "ldexp", "prod", "sumprod", "trunc"}


def computed(cure: str, args: Any) -> Any:
    """What a cure computes: the name of a function, or an expression of what it calls them."""
    known = {"jax": jax, "jnp": jnp, "functools": functools}
    if "(" not in cure and " " not in cure:
        return eval(cure, known)(*args)
    x, y = args[0], args[-1]
    names = {"x": x, "y": y, "base": y, "p": x, "q": y, "r": x, "phi": y, "z": x, "xs": x}
    return eval(cure.replace("...", str(y)), known | names)


@pytest.mark.parametrize("package", [math, cmath])
def test_functions_of_numbers_have_those_of_arrays(package: Any) -> None:
    for name, function in vars(package).items():
        if not callable(function) or name in WITHOUT or name[0] == "_":
            continue
        for args in OPERANDS:
            with contextlib.suppress(TypeError, ValueError):  # of another number, or its domain
                expected = function(*args)
                break
        else:
            continue
        call = (lambda x, y, f=function: f(x, y)) if args[1:] else (lambda x, f=function: f(x))
        said = mistake(lambda call=call, args=args: jax.jit(call)(*args))
        cure = re.search(r"asks for the value: use (.*?)\.(?: If|\n)", said)
        assert cure, (name, said)
        found = jax.jit(functools.partial(computed, cure[1]))(jax.tree.map(jnp.asarray, args))
        np.testing.assert_allclose(np.asarray(found), expected, 1e-5, 1e-7, err_msg=name)


def test_functions_of_several_numbers_have_those_of_as_many() -> None:
    for function in (max, min, math.hypot):
        said = mistake(lambda f=function: jax.jit(lambda x, y: f(x, y, 2 * y))(0.5, 2.0))
        cure = re.search(r"asks for the value: use (.*?)\.\n", said)
        assert cure, said
        np.testing.assert_allclose(computed(cure[1], (0.5, 2.0)), function(0.5, 2.0, 2.0), 1e-6)
    said = mistake(lambda: jax.jit(lambda x: x in (1, 2))(1))
    assert "use jnp.isin(x, jnp.asarray((1, 2))).\n" in said
    assert computed("jnp.isin(x, jnp.asarray((1, 2)))", (1, 0))


@pytest.mark.parametrize("made", [lambda s: jnp.zeros(s), lambda s: jnp.ones(6).reshape(s)])
def test_an_array_in_the_place_of_a_shape_is_told_of_a_tuple(made: Any) -> None:
    shape = jnp.array([2, 3])
    check(lambda: jax.jit(made)(shape), "and pass a tuple of Python's ints there", without=".shape")
    static = jax.jit(made, static_argnums=0)
    said = mistake(lambda: static(shape))
    cure = re.search(r"static arguments: give (.*?), or leave", said)
    assert cure and static(eval(cure[1], {"s": shape})).shape == (2, 3)
    check(lambda: static(V), "Arrays are no static arguments: leave this one out")


def test_truncation_has_that_of_arrays() -> None:
    for x in (X, jnp.float32(-1.5)):
        check(lambda x=x: math.trunc(x), "Use jnp.trunc(x), or x.astype(int).")  # type: ignore[misc]
        check(lambda x=x: jax.jit(math.trunc)(x), "Use jnp.trunc(x)")  # type: ignore[misc]


def test_calls_within_the_arguments_of_a_call_are_read() -> None:
    check(lambda: jnp.zeros([(0, jnp.ndim(V))], None, 1, 2, 3),  # type: ignore[call-overload,misc]
          "takes from 1 to 2 positional arguments but 5")


# -- what must be known ----------------------------------------------------------------------------

SIZED: dict[str, Callable[[Any], Any]] = {
    "one_hot": lambda n: nn.one_hot(INTEGERS, n), "zeros": jnp.zeros, "arange": jnp.arange,
    "slice": lambda n: V[:n], "linspace": lambda n: jnp.linspace(0.0, 1.0, n),
    "top_k": lambda n: lax.top_k(V, n),
}


@pytest.mark.parametrize("use", SIZED.values(), ids=SIZED)
def test_a_size_has_a_cure_by_what_it_is_made_of(use: Callable[[Any], Any]) -> None:
    check(lambda: jax.jit(lambda n: use(n + 1))(1), "static", without="made of an array")
    check(lambda: jax.jit(lambda n: use(n))(INTEGERS[1]), "static", without="made of an array")
    for call in (lambda: jax.jit(lambda y: use(y.max()))(INTEGERS),
                 lambda: jax.checkpoint(lambda y: use(y.max()))(INTEGERS),
                 lambda: jax.jit(lambda k: use(jax.random.randint(k, (), 1, 3)))(
                     jax.random.key(0))):
        check(call, "It is made of an array: compute it before the call and pass Python's",
              "an argument of its own that is static", without="mark the argument")
    for loop in (lambda: lax.fori_loop(0, 3, lambda i, c: (use(i + 1), c)[1], 0.0),
                 lambda: lax.map(lambda i: use(i + 1), INTEGERS)):
        check(loop, "that serves all of them (of a size, the largest), or loop by Python's `for` "
              "outside of jit.", without="jax.debug.print")
    check(lambda: jax.vmap(use)(INTEGERS), "that serves all of them (of a size, the largest)",
          "in_axes be None", without="ompute with it")


def test_a_size_that_is_differentiated_is_told_what_it_is_made_of() -> None:
    check(lambda: jax.jit(jax.grad(lambda x: jnp.arange(x).sum()))(3.0),
          "Compute it of numbers that Python has.", without="ompute with it")


class Model:
    def positive(self, *args: Any) -> Any:
        return args[0] if jnp.ravel(args[0])[0] > 0 else args[-1]

    scoped = jax.named_scope("scope")(positive)
    called = jax.named_call(positive)


def positive(*args: Any) -> Any:
    return Model().positive(*args)


def pulled_back(x: Any) -> tuple[Any, Any]:
    return x, positive


PART = functools.partial(positive)
TRACED: dict[str, Callable[[], Any]] = {
    "reduce": lambda: lax.reduce(V, 0.0, positive, (0,)),
    "reduce_window": lambda: lax.reduce_window(V, 0.0, positive, (2,), (2,), "VALID"),
    "scatter_apply": lambda: V.at[1].apply(PART),
    "custom_gradient": lambda: jax.grad(jax.custom_gradient(pulled_back))(1.0),
    "linear_call": lambda: linear_call(positive, positive, 1.0, 1.0),
    "custom_root": lambda: lax.custom_root(positive, 1.0, lambda f, x: x, lambda g, y: y),
    "cg": lambda: cg(positive, V), "jit": lambda: jax.jit(jax.hessian(positive))(1.0),
    "vectorize": lambda: jnp.vectorize(PART)(V),
    "signature": lambda: jnp.vectorize(positive, signature="(n)->()")(jnp.ones((2, 3))),
    "along": lambda: jnp.apply_along_axis(PART, 0, jnp.ones((2, 2))),
    "piecewise": lambda: jnp.piecewise(V, [V > 0], [PART]),
}


@pytest.mark.parametrize("name", TRACED)
def test_the_users_function_is_the_one_that_is_traced(name: str) -> None:
    place = f"function positive at {__file__}:{positive.__code__.co_firstlineno}"
    check(TRACED[name], place, f"{place} for {name}" if name in ("reduce", "cg") else place,
          without="<unknown>")


@pytest.mark.parametrize("name", ["positive", "scoped", "called"])
def test_the_users_method_is_the_one_that_is_traced(name: str) -> None:
    place = f"function positive at {__file__}:{Model.positive.__code__.co_firstlineno}"
    check(lambda: jax.jit(getattr(Model(), name))(1.0), place)


def test_functions_that_wrap_themselves_have_a_place() -> None:
    def around(x: Any) -> Any:
        return float(x)

    around.__wrapped__ = around  # type: ignore[attr-defined]
    check(lambda: jax.jit(around)(1.0), f"function around at {__file__}:")
    around.__code__ = (lambda x: x + 1).__code__
    assert jax.jit(around)(1.0) == 2


def test_a_computation_is_of_two_values() -> None:
    check(lambda: lax.reduce_window(V, -np.inf, jnp.max, (2,), (2,), "VALID"),
          "function max for reduce_window", "the argument axis", "as jnp.add and jnp.maximum do",
          without="static")
    for of_numbers in (lambda a, b: jnp.zeros(a).sum(), lambda a, axis: jnp.zeros(axis).sum()):
        check(lambda f=of_numbers: lax.reduce(V, 0.0, f, (0,)), "Shapes must be 1D",
              without="jnp.maximum")


def test_a_body_without_its_return_is_told() -> None:
    check(lambda: lax.scan(lambda c, x: None, 0.0, V), "is a `return` missing?")  # type: ignore


# -- cures that served in no case ------------------------------------------------------------------


class Norms(NamedTuple):
    mean: Any


def returning_nothing(w: Any, x: Any) -> None:
    (w * x).sum()


def test_a_named_tuple_of_arrays_is_a_pytree_already() -> None:
    f = jax.jit(lambda s, x: x - s.mean, static_argnums=0)
    check(lambda: f(Norms(V), V), "this one out of static_argnums", "a NamedTuple is one, others")


@pytest.mark.parametrize("make", [
    lambda: jnp.asarray(np.arange(2, dtype=np.uint32), dtype=KEY.dtype),
    lambda: jnp.array([0, 1], dtype=KEY.dtype), lambda: jnp.array(3, dtype=KEY.dtype),
    lambda: jnp.asarray(jnp.arange(2), dtype=KEY.dtype), lambda: V.astype(KEY.dtype)])
def test_numbers_become_keys_by_a_function_of_their_own(make: Callable[[], Any]) -> None:
    check(make, "key<fry>", "jax.random.wrap_key_data(x) makes keys", without="Value '")


@pytest.mark.parametrize("asked", [
    lambda: jax.jit(lambda x: np.issubdtype(x.dtype, np.floating))(KEY),
    lambda: np.zeros(3, KEY.dtype), lambda: jnp.finfo(KEY.dtype),
    lambda: jnp.promote_types(KEY.dtype, jnp.float32)])
def test_nobody_who_asks_for_the_dtype_of_keys_makes_any(asked: Callable[[], Any]) -> None:
    check(asked, "key<fry>", without="wrap_key_data")


def test_attributes_of_tracers_alone_are_told_of_arrays() -> None:
    class Tracer:
        __slots__ = ()
        name = "n"

    def f(x: Any) -> Any:
        Tracer().name = "m"  # type: ignore[misc]
        return x

    check(lambda: jax.jit(f)(V), "attribute 'name' is read-only", without="Arrays stay")


@pytest.mark.parametrize("name", ["map", "leaves", "flatten", "unflatten", "structure"])
def test_names_of_tree_are_not_those_of_tree_util(name: str) -> None:
    check(lambda: getattr(jax.tree_util, name), f"Use jax.tree.{name}.", without="lax")


def test_a_list_of_names_is_no_name() -> None:
    check(lambda: checkpoint_name(V, ["a"]), "such as a str, got ['a']: unhash")  # type: ignore
    nested: Any = ("a", ["b"])
    check(lambda: checkpoint_name(V, nested), "such as a str, got ('a', ['b']): unhashable")


def test_a_call_is_told_with_what_was_made_of_the_function() -> None:
    check(lambda: jax.vmap(jax.grad(returning_nothing), in_axes=(None, 0))(V, jnp.ones((2, 3))),
          "The call was vmap(fun=grad(returning_nothing), in_axes=(None, 0))")


def test_pmap_is_given_no_mesh() -> None:
    with jax.set_mesh(jax.make_mesh((1,), ("data",), (jax.sharding.AxisType.Auto,))):
        check(lambda: jax.pmap(lambda x: x)(jnp.ones((1, 2))), "pmap maps over a mesh of its own,",
              "which is set. Call it outside of set_mesh.", without="Leave `mesh` out")


def test_a_list_that_is_carried_is_made_an_array_where_it_starts() -> None:
    def step(carry: Any, d: Any) -> Any:
        carry = carry + jnp.array([1, 0])
        return carry, carry

    check(lambda: lax.scan(step, [0, 0], V), "if it is the carry where the loop starts, or jax")
    check(lambda: jax.jit(lambda x: [x, 1] + V)(1.0), "make it an array with jnp.asarray, or jax.")
    assert lax.scan(step, jnp.asarray([0, 0]), V)[0].tolist() == [3, 0]
    check(lambda: [1, 2.0] + V, "jnp.asarray", without="carry")
    check(lambda: lax.map(lambda x: [x, 1] + V, V), "jnp.asarray", without="carry")


def test_a_key_for_each_step_is_split_from_one() -> None:
    check(lambda: lax.scan(lambda c, key: (c, c), 0.0, KEY),
          "give jax.random.split(key, n); one that all share comes from", without="What all")
