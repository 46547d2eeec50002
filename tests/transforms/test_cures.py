"""Cures for calls of transformed functions: each names the argument at fault, and serves."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import export, lax
from pyjx.example_libraries import stax
from pyjx.experimental import checkify, io_callback
from tests.mistakes import mistake

pytestmark = pytest.mark.smoke  # what code looks like differs by Python's release

V = jnp.arange(3.0)


# -- arguments that are no arrays ------------------------------------------------------------------


class Model:
    w = 2.0

    def f(self, x: Any) -> Any:
        return self.w * x


MODEL = Model()
of_both = jax.custom_vjp(Model.f)
of_both.defvjp(lambda m, x: (m.w * x, None), lambda _, ct: (None, ct))
of_x = jax.custom_vjp(Model.f, nondiff_argnums=(0,))
of_x.defvjp(lambda m, x: (m.w * x, None), lambda m, _, ct: (m.w * ct,))
forward_of_both, forward_of_x = jax.custom_jvp(Model.f), jax.custom_jvp(Model.f, (0,))
forward_of_both.defjvp(lambda primals, tangents: (primals[1], tangents[1]))
forward_of_x.defjvp(lambda m, primals, tangents: (m.w * primals[0], m.w * tangents[0]))


@pytest.mark.parametrize(("made", "cured", "words"), [
    (jax.grad(Model.f), jax.grad(Model.f, argnums=1), "let argnums name others alone."),
    (jax.grad(Model.f, (0, 1)), jax.grad(Model.f, argnums=1), "let argnums name others alone."),
    (jax.value_and_grad(Model.f), jax.grad(Model.f, argnums=1), "let argnums name others alone."),
    (jax.jacfwd(Model.f), jax.jacfwd(Model.f, argnums=1), "let argnums name others alone."),
    (jax.jacrev(Model.f), jax.jacrev(Model.f, argnums=1), "let argnums name others alone."),
    (jax.hessian(Model.f), jax.hessian(Model.f, argnums=1), "let argnums name others alone."),
    (jax.vmap(Model.f), jax.vmap(Model.f, in_axes=(None, 0)), "let its entry of in_axes be None."),
    (jax.checkpoint(Model.f), jax.checkpoint(Model.f, static_argnums=0), "name it in static_argnu"),
    (jax.checkpoint(Model.f), jax.checkpoint(Model.f, static_argnames="self"),
     "static_argnums or static_argnames."),
    (jax.grad(of_both, argnums=1), jax.grad(of_x, argnums=1), "name it in nondiff_argnums."),
    (forward_of_both, forward_of_x, "name it in nondiff_argnums."),
])
def test_an_argument_that_is_no_array_is_left_as_it_is(
        made: Callable[..., Any], cured: Callable[..., Any], words: str) -> None:
    x = V if "in_axes" in words else 1.0
    said = mistake(lambda: made(MODEL, x))
    assert "It was the argument self of f: " in said and words in said
    cured(MODEL, x)


def test_what_no_option_leaves_as_it_is_names_none() -> None:
    for call in (lambda: jax.vmap(lambda x, mode: x)(V, mode="a"),
                 lambda: jax.custom_gradient(lambda m, x: (x, lambda ct: (None, ct)))(MODEL, 1.0),
                 lambda: jax.grad(lambda p: p["x"])({"x": 1.0, "mode": "a"}),
                 lambda: jax.grad(lambda x: x)("a"), lambda: jax.vmap(lambda m: 1.0)(MODEL),
                 lambda: jax.jacfwd(lambda m, n: n, (0, 1))(MODEL, "a"),
                 lambda: jax.vmap(lambda m, x: x)(MODEL, 1.0)):
        said = mistake(call)
        assert "as a closure." in said and ": name it" not in said and ": let" not in said


def test_the_option_is_of_what_refuses_the_argument() -> None:
    def f(model: Any, x: Any) -> Any:
        return x

    mapped = jax.custom_batching.custom_vmap(f)
    mapped.def_vmap(lambda n, batched, model, x: (x, True))  # type: ignore[no-untyped-call]
    for call in (lambda: jax.vmap(mapped, in_axes=(None, 0))(MODEL, V),
                 lambda: jax.grad(mapped, argnums=1)(MODEL, 1.0),
                 lambda: jax.grad(lambda x: jax.vjp(f, MODEL, x)[0])(1.0),
                 lambda: jax.grad(lambda x: jax.linearize(f, MODEL, x)[0])(1.0)):
        said = mistake(call)
        assert "It was the argument model of f. Its class" in said
    with_rule = jax.custom_vjp(f)
    with_rule.defvjp(lambda model, x: (x, None), lambda _, ct: (None, ct))
    said = mistake(lambda: jax.vmap(lambda x: with_rule(model=MODEL, x=x))(V))
    assert "It was the argument model of f: name it in nondiff_argnums." in said
    assert "let argnums name" in mistake(lambda: jax.vmap(jax.grad(f), in_axes=(None, 0))(MODEL, V))


def test_functions_with_rules_are_no_methods() -> None:
    class WithRule:
        f = of_x

    assert "so its object is to be given: Model.f(object, ...)." in mistake(
        lambda: WithRule().f(1.0))
    assert "object" not in mistake(lambda: jax.nn.relu())


def test_what_checkpoint_gets_by_name_has_no_position() -> None:
    def f(x: Any, n: int) -> Any:
        return x * n if n > 1 else x

    said = mistake(lambda: jax.checkpoint(f, static_argnums=1)(1.0, n=2))
    assert "What is given by name is not counted: name it in static_argnames." in said
    assert jax.checkpoint(f, static_argnames="n")(1.0, n=2) == 2.0
    assert "by name" not in mistake(lambda: jax.checkpoint(f, static_argnums=2)(1.0, 2))


@pytest.mark.parametrize("transform", [jax.jit, jax.checkpoint])
def test_arguments_beside_a_lambda_come_in_a_call_of_their_own(transform: Any) -> None:
    assert f"{transform.__name__}(fun)(x)." in mistake(lambda: transform(lambda x: x, V))
    assert "The arguments are fun, *, " in mistake(lambda: transform(jnp.sin, ("x",)))


def test_what_shard_map_takes_comes_by_name() -> None:
    mesh, spec = jax.make_mesh((1,), ("x",)), jax.P("x")
    for call in (lambda: jax.shard_map(jnp.sin, mesh, spec, spec),
                 lambda: jax.shard_map(lambda x: x, mesh, jax.P("x"), jax.P("x"))):
        assert "The arguments are f, *, out_specs, in_specs, mesh, " in mistake(call)


def test_transformations_are_lowered_not_what_was_compiled() -> None:
    compiled = jax.jit(jnp.sin).lower(1.0).compile()
    for call in (jax.grad(compiled), jax.jit(compiled)):
        assert "Transform the function itself, and lower" in mistake(lambda call=call: call(1.0))
    assert jax.jit(jax.grad(jnp.sin)).lower(0.0).compile()(0.0) == 1.0


def test_the_name_of_a_platform_in_the_place_of_a_device() -> None:
    assert "Did you mean jax.devices('cpu')[0]?" in mistake(lambda: jax.jit(abs, device="cpu"))


# -- what vmap maps --------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "in_axes", "words"), [
    ((V, 1.0), (0, None), "For the parts of the one argument it is in_axes=((0, None),)."),
    ([V, 1.0], (0, None), "For the parts of the one argument it is in_axes=([0, None],)."),
])
def test_axes_of_the_parts_of_one_argument(x: Any, in_axes: Any, words: str) -> None:
    assert words in mistake(lambda: jax.vmap(lambda x: x[0] * x[1], in_axes=in_axes)(x))
    entry = eval(words.partition("in_axes=")[2][:-1])
    assert jax.vmap(lambda x: x[0] * x[1], in_axes=entry)(x).shape == (3,)
    assert "parts" not in mistake(lambda: jax.vmap(abs, in_axes=in_axes)(V))


def test_axes_that_arrays_lack_and_what_all_examples_share() -> None:
    def scaled(x: Any, y: Any) -> Any:
        return x * y

    said = mistake(lambda: jax.vmap(scaled, in_axes=(0, 1))(V, V))
    assert "argument y; 0 in in_axes maps its first axis; where it is the same for all" in said
    assert "a tuple of numbers is no array" in mistake(lambda: jax.vmap(abs)((1.0, 2.0)))
    assert "What all examples share, such as weights, has None in in_axes." in mistake(
        lambda: jax.vmap(scaled)(V, jnp.ones(4)))
    assert "share" not in mistake(lambda: jax.vmap(jnp.sin, axis_size=2)(V))
    said = mistake(lambda: jax.vmap(scaled)(x=V, y=jnp.ones(4)))
    assert "for all examples by functools.partial." in said and "in_axes" not in said
    jax.vmap(functools.partial(scaled, y=jnp.ones(4)[0]))(x=V)


# -- arrays that are gone --------------------------------------------------------------------------


@functools.partial(jax.jit, donate_argnames="state")
def step(state: Any, batch: Any) -> Any:
    return jax.tree.map(lambda x: x + batch, state)


def test_arrays_that_were_donated_twice_are_told_as_what_they_were_given() -> None:
    x, tree = jnp.ones(3), {"w": jnp.ones(3)}
    step(x, 1.0)
    step(tree, 1.0)
    for call, where in ((lambda: step(x, 1.0), "It was the argument state of step."),
                        (lambda: step(state=x, batch=1.0), "It was the argument state of step."),
                        (lambda: step(tree, 1.0), f"It was passed to step at {__file__}")):
        said = mistake(call)  # type: ignore[arg-type]
        assert "It was donated to a jitted function" in said and where in said
    assert "at path state['w']." in said


def test_waiting_for_an_array_that_is_gone_says_why() -> None:
    x = jnp.ones(3)
    x.delete()
    for call in (x.block_until_ready, lambda: jax.block_until_ready(x)):
        assert "or its delete() was called. Use what the function returned" in mistake(call)


def test_no_function_of_the_library_that_users_know_not_is_named() -> None:
    x = jnp.ones(3)
    x.delete()
    lax.scan(lambda c, x: (c, x), 0.0, V)
    assert "bind_scan" not in mistake(lambda: lax.scan(lambda c, x: (c, x), 0.0, x))
    said = mistake(lambda: lax.fori_loop(0, 3, lambda i, c: c, MODEL))
    assert "argument init_val" in said and "scan" not in said


# -- symbolic sizes, callbacks and checks ----------------------------------------------------------


def test_symbolic_sizes_have_what_takes_them() -> None:
    n, = export.symbolic_shape("n")
    like = jax.ShapeDtypeStruct((n,), jnp.float32)
    for asked in (np.sqrt, math.sqrt, range, lambda n: np.zeros((n,))):
        said = mistake(lambda asked=asked: export.export(jax.jit(  # type: ignore[misc]
            lambda x: x * asked(x.shape[0])))(like))
        assert "jax.numpy's functions take it, as jnp.zeros(n) and jnp.sqrt(n) do" in said
    for served in (jnp.sqrt, jnp.zeros, lambda n: lax.fori_loop(0, n, lambda i, c: c, 1)):
        export.export(jax.jit(lambda x, served=served: x * served(x.shape[0])))(like)
    assert "Shapes take it as it is; in the program its value is jnp.asarray(n)." in mistake(
        lambda: jnp.zeros(int(n)))
    assert "requires a constant: the format 'd' is of numbers, and {} shows it." in mistake(
        lambda: f"{n:d}")
    assert "export(fun)(x)." in mistake(lambda: export.export(jax.jit(jnp.sin), V))


def test_what_is_not_batched_or_differentiated_has_another_way() -> None:
    exported = export.export(jax.jit(jnp.sin))(1.0)
    assert "jax.lax.map(f, xs) calls f for each example." in mistake(
        lambda: jax.vmap(exported.call)(V))
    assert lax.map(exported.call, V).shape == (3,)

    def called(x: Any, ordered: bool = False) -> Any:
        return io_callback(np.sin, x, x, ordered=ordered)

    assert "jax.lax.map(f, xs) keeps the order." in mistake(lambda: jax.vmap(
        functools.partial(called, ordered=True))(V))
    assert lax.map(functools.partial(called, ordered=True), V).shape == (3,)
    assert "Call it with jax.lax.stop_gradient(x)." in mistake(lambda: jax.grad(called)(1.0))
    assert jax.grad(lambda x: x * called(lax.stop_gradient(x)))(0.0) == 0.0
    assert "Give float32 for float64." in mistake(lambda: jax.pure_callback(
        np.sin, jax.ShapeDtypeStruct((), float), 1.0))


def test_a_reference_and_a_guarded_transfer_have_what_serves() -> None:
    ref = jax.new_ref(V)
    assert "read its value by ref[...]." in mistake(lambda: ref + 1)
    assert (ref[...] + 1).shape == (3,)
    with jax.transfer_guard("disallow"):
        assert "explicit transfers go on, jax.device_put(x) to" in mistake(lambda: jnp.sin(3.0))
        jnp.sin(jax.device_put(3.0))


def test_errors_to_look_for_are_one_set() -> None:
    for errors in ("nan", {"nan"}, [checkify.nan_checks]):
        said = mistake(lambda errors=errors: checkify.checkify(  # type: ignore[misc]
            jnp.log, errors=errors))
        assert "Several are one by |, as in user_checks | nan_checks." in said
    error, _ = checkify.checkify(jnp.log, errors=checkify.user_checks | checkify.nan_checks)(-1.0)
    assert "nan" in error.get()
    assert "checkify(fun)(x)." in mistake(lambda: checkify.checkify(jnp.log, V))


def test_one_is_told_as_one() -> None:
    f = jax.custom_jvp(jnp.multiply)
    f.defjvps(None)
    assert "defjvps gave 1 rule to the custom_jvp" in mistake(lambda: jax.grad(f)(1.0, 1.0))
    assert "names 1 dimension, ('n',), of an array" in mistake(
        lambda: jax.jit(jnp.sum, dynamic={"a": ("n",)})(jnp.ones((2, 2))))
    init, _ = stax.Dense(3)
    assert "The key comes first: init(key, ...)." in mistake(lambda: init((3,), jax.random.key(0)))


def test_values_of_arrays_are_not_called_and_functions_are_jitted_before_they_are_lowered() -> None:
    for call in (lambda: jnp.ones(3).T(), lambda: jax.jit(lambda x: (x + 1).T())(V)):
        assert "Without brackets it is the value: x.T." in mistake(call)
    assert "jax.jit(f).lower(*args)." in mistake(lambda: jax.grad(jnp.sum).lower(V))  # type: ignore
    assert jax.jit(jax.grad(jnp.sum)).lower(V).compile()(V).shape == (3,)


def test_rules_are_given_by_the_methods_of_their_kind() -> None:
    f = jax.custom_vjp(lambda x, *, k=1.0: x * k)
    said = mistake(lambda: f.defjvp)
    assert said.startswith("'custom_vjp' object has no attribute 'defjvp'. Did you mean: 'defvjp'?")
    assert "mean: 'defjvp'" in mistake(lambda: jax.custom_jvp(jnp.sin).defvjp)  # type: ignore
    assert "mean: 'def_vmap'" in mistake(
        lambda: jax.custom_batching.custom_vmap(jnp.sin).defvjp)  # type: ignore[attr-defined]
    for name in ("default", "lower"):
        said = mistake(lambda name=name: getattr(jax.custom_jvp(abs), name))  # type: ignore[misc]
        assert said == f"'custom_jvp' object has no attribute {name!r}"
    f.defvjp(lambda x, k: (x * k, k), lambda k, ct: (k * ct, None))
    assert "by position, too, without a * before." in mistake(lambda: f(1.0, k=2.0))
    for numbers, words in ((jnp.sin, "f.defvjp(fwd, bwd)."), ("x", "Names are nondiff_argnames, "),
                           (V, "custom_vjp(fun)(x).")):
        assert words in mistake(lambda numbers=numbers: jax.custom_vjp(  # type: ignore[misc]
            jnp.sin, numbers))
