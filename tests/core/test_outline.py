"""Repeated blocks become functions: how many, where, and with the same results."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration
from pyjx.core.check import check_jaxpr
from pyjx.core.passes.dce import dce
from pyjx.core.passes.outline import by_result, outline


def layer(x, w):
    """More than a minimal block's equations, which do not repeat among themselves."""
    h = jnp.tanh(x @ w)
    h = h * 2.0 + jnp.sin(x)
    h = h - jnp.mean(h, axis=-1, keepdims=True)
    h = h / jnp.sqrt(jnp.sum(h * h, axis=-1, keepdims=True) + 1e-6)
    h = jnp.exp(-h) + jnp.cos(h) * jnp.maximum(h, 0.0)
    h = jnp.log(jnp.abs(h) + 1.0) * 0.5 + jnp.arctan(x)
    return x + h @ w.T - jnp.square(h) * 0.1


def stack(x, ws):
    for w in ws:
        x = layer(x, w)
    return jnp.sum(x)


def weights(n, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(d, d)).astype(np.float32) / d for _ in range(n)]


@pytest.fixture
def x():
    return np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)


def lowered(f, *args, mode="on"):
    with configuration.outline(mode):
        return jax.jit(f).lower(*args).as_text()


def functions(text):
    return text.count("func.func private"), text.count('func.call @')


def same_with_and_without(f, *args):
    with configuration.outline("on"):
        on = jax.jit(f)(*args)
    with configuration.outline("off"):
        off = jax.jit(f)(*args)
    for a, b in zip(jax.tree.leaves(on), jax.tree.leaves(off), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_layers_in_a_row_are_one_function(x):
    text = lowered(stack, x, weights(6))
    assert functions(text) == (1, 6)
    assert text.count('inlineable = "false"') == 6
    same_with_and_without(stack, x, weights(6))


def test_forward_and_backward_layers(x):
    step = jax.value_and_grad(stack, argnums=1)
    private, calls = functions(lowered(step, x, weights(6)))
    assert private <= 6 and calls >= 10
    same_with_and_without(step, x, weights(6))


class Block:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        for i in range(1, 9):
            x = jnp.sin(x * float(i)) + x @ self.w
        return x


def test_functions_have_the_names_of_the_users(x):
    def called(x, ws):
        for w in ws:
            x = Block(w)(x)
        return jnp.sum(x)

    def inline(x, ws):
        for w in ws:
            x = jnp.tanh(layer(x, w)) + jnp.cos(x)
        return jnp.sum(x)

    ws = weights(8)
    for f, name in ((stack, "layer"), (called, "Block"), (inline, "inline")):
        text = lowered(f, x, ws)
        assert text.count(f"call @{name}(") >= 6, name
        text = lowered(jax.grad(f), x, ws)
        assert text.count(f"call @{name}(") >= 6 and f"call @{name}_0(" in text, name


def test_size_of_the_text_stays(x):
    step = jax.value_and_grad(stack, argnums=1)
    short, long = (len(lowered(step, x, weights(n)).splitlines()) for n in (6, 18))
    assert long < 1.5 * short


def test_repeats_that_are_not_adjacent(x):
    def apart(x, ws):
        x = layer(x, ws[0])
        x = jnp.cumsum(x, axis=0)
        x = layer(x, ws[1])
        x = jnp.sort(x, axis=0)[::-1]
        return layer(x, ws[2])

    assert functions(lowered(apart, x, weights(3)))[1] >= 3
    same_with_and_without(apart, x, weights(3))


def test_nested_repeats(x):
    def block(x, w):
        for _ in range(3):
            x = layer(x, w)
        x = jnp.cumsum(x, axis=0) * 0.1
        return x - jnp.max(x)

    def deep(x, ws):
        for w in ws:
            x = block(x, w)
        return jnp.sum(x)

    text = lowered(deep, x, weights(5))
    _, calls = functions(text)
    assert calls < 15, "the inner layers are called within the function of the outer block"
    same_with_and_without(deep, x, weights(5))


def test_large_functions_have_functions_inside(x):
    def block(x, w):
        for _ in range(12):
            x = layer(x, w)
        return jnp.cumsum(x, axis=0) * 0.1 - jnp.max(x)

    def deep(x, ws):
        for w in ws:
            x = block(x, w)
        return jnp.sum(x)

    text = lowered(deep, x, weights(4))
    private, calls = functions(text)
    assert private == 2
    assert calls == 4 + 12
    same_with_and_without(deep, x, weights(4))


def test_bodies_of_loops(x):
    def f(x, ws):
        def body(state):
            i, x = state
            for w in ws:
                x = layer(x, w)
            return i + 1, x * 0.1

        return jax.lax.while_loop(lambda state: state[0] < 3, body, (0, x))[1]

    with configuration.small_kernels(False):  # products in loops would be functions, too
        assert functions(lowered(f, x, weights(6))) == (1, 6)
    same_with_and_without(f, x, weights(6))


def test_nothing_repeats(x):
    text = lowered(lambda x, w: layer(x, w), x, weights(1)[0])
    assert functions(text) == (0, 0)


def test_small_blocks_stay_inline(x):
    def small(x):
        for _ in range(8):
            x = jnp.cumsum(jnp.tanh(x), axis=0)
        return x

    assert functions(lowered(small, x))[1] <= 1


def test_it_can_be_switched_off(x):
    assert functions(lowered(stack, x, weights(6), mode="off")) == (0, 0)


def test_auto_is_on_for_cpu_only(x):
    traced = jax.jit(stack).trace(x, weights(40))
    assert functions(traced.lower(lowering_platforms=("cpu",)).as_text())[1] == 40
    assert functions(traced.lower(lowering_platforms=("cuda",)).as_text())[1] == 0


def test_auto_leaves_short_programs_whole(x):
    assert functions(lowered(stack, x, weights(6), mode="auto")) == (0, 0)
    inner = jax.jit(stack)  # what it holds counts
    held = lowered(lambda x, ws: inner(x, ws) + 1, x, weights(40), mode="auto")
    assert functions(held)[1] == 41  # that of `inner`, too


def test_shared_jitted_function_stays_one_function(x):
    inner = jax.jit(layer)

    def outer(x, a, b):
        x = inner(x, a)
        x = jnp.sort(x, axis=0)
        return inner(x, b)

    text = lowered(outer, x, *weights(2))
    assert functions(text) == (1, 2)
    assert text.count('inlineable = "false"') == 2


def test_weights_used_in_several_layers(x):
    def tied(x, w):
        for _ in range(6):
            x = layer(x, w)
        return jnp.sum(x)

    same_with_and_without(jax.grad(tied, argnums=1), x, weights(1)[0])


def test_results_of_blocks_that_only_some_copies_use(x):
    def taps(x, ws):
        kept = []
        for i, w in enumerate(ws):
            h = jnp.sin(x @ w)
            x = layer(x + h, w)
            if i % 2:
                kept.append(h)
        return x, kept

    same_with_and_without(taps, x, weights(6))


def test_outlined_program_is_legal(x):
    closed = dce(jax.make_jaxpr(jax.grad(stack, argnums=1))(x, weights(6)))
    check_jaxpr(outline(closed))


def test_time_is_linear_in_the_number_of_equations(x):
    """Counted, not timed: the numbers of equations looked at do not multiply."""
    closed = jax.make_jaxpr(stack)(x, weights(40))
    out = outline(dce(closed))
    assert len(out.eqns) < 40 + 30


def test_blocks_do_not_cut_chains_that_are_fused():
    """The forward pass has no block, as its numbers differ; if the backward pass were calls, each
    cosine that they read would be computed from the start."""

    def chain(numbers):
        def f(x):
            for number in numbers:
                x = jnp.sin(x) * 0.9 + number
            return jnp.sum(x)

        return jax.grad(f)

    x = np.arange(4, dtype=np.float32)
    different = chain(np.linspace(0, 1, 60).tolist())
    assert functions(lowered(different, x))[1] == 0
    assert functions(lowered(chain([0.5] * 60), x))[1] >= 4, "both passes are blocks"
    same_with_and_without(different, x)


def adam_in_stages(params, grads, first, second):
    """Each step of the update mapped over all parameters, as optimizers are composed."""
    first = jax.tree.map(lambda g, m: 0.1 * g + 0.9 * m, grads, first)
    second = jax.tree.map(lambda g, v: 0.01 * g * g + 0.99 * v, grads, second)
    scaled = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + 1e-8), first, second)
    decayed = jax.tree.map(lambda u, p: u + 1e-4 * p, scaled, params)
    return jax.tree.map(lambda p, u: p - 1e-3 * u, params, decayed), first, second


def interpolated(grid, at, walking=False):
    """Six terms of more than a block's equations each; each moves the place where `walking`."""
    total = 0.0
    for k in range(6):
        near = jnp.clip(jnp.floor(at).astype("int32") + k, 0, len(grid) - 1)
        far = jnp.abs(at - near)
        weight = jnp.where(far <= 1, 1.5 * far**3 - 2.5 * far**2 + 1,
                           jnp.where(far < 2, -0.5 * far**3 + 2.5 * far**2 - 4 * far + 2, 0.0))
        total = total + grid[near] * weight
        if walking:
            at = at + jnp.sin(total)
    return total


def test_terms_of_a_sum_stay_in_place():
    grid, at = np.linspace(-1, 1, 8, dtype=np.float32), np.linspace(0, 7, 20, dtype=np.float32)
    assert functions(lowered(interpolated, grid, at)) == (0, 0)
    same_with_and_without(interpolated, grid, at)


def test_so_many_terms_that_they_take_long_to_compile_are_functions():
    def terms(x):
        total = x
        for _ in range(60):
            total = total + layer_of_terms(x + 1.0)
        return total

    def layer_of_terms(x):
        for _ in range(10):
            x = jnp.sin(x) * 2.0 + jnp.cos(x)
        return x

    assert functions(lowered(terms, np.ones(3, np.float32)))[1] >= 4


def test_blocks_whose_results_are_read_several_times_are_functions():
    grid, at = np.linspace(-1, 1, 8, dtype=np.float32), np.linspace(0, 7, 20, dtype=np.float32)
    assert functions(lowered(lambda g, a: interpolated(g, a, walking=True), grid, at))[1] >= 4


def test_results_of_the_program_are_functions(x):
    def each(xs):
        return [interpolated(y, y) for y in xs]

    assert functions(lowered(each, list(x))) == (1, 4)


def test_an_update_in_stages_is_one_function_for_each_layer():
    layers = [{"bias": jnp.full(3, float(i)), "kernel": jnp.full((4, 3), i + 1.0)}
              for i in range(6)]
    args = layers, jax.tree.map(jnp.sin, layers), layers, layers
    text = lowered(adam_in_stages, *args)
    # the kernels and biases of a layer, not each stage of all layers
    assert functions(text) == (1, 6)
    same_with_and_without(adam_in_stages, *args)


def test_what_several_results_need_comes_first():
    def fun(x):
        scale = jnp.exp(x)
        return [jnp.sin(x) * scale, scale * 2.0, jnp.cos(x) * scale, jnp.log(scale)]

    jaxpr = jax.make_jaxpr(fun)(jnp.ones(3)).jaxpr
    ordered = by_result(jaxpr, 0)
    check_jaxpr(ordered)
    names = [e.primitive.name for e in ordered.eqns]
    assert sorted(names) == sorted([e.primitive.name for e in jaxpr.eqns])
    assert names.index("exp") < min(map(names.index, ("sin", "cos", "log")))
    assert names.index("cos") > names.index("sin") + 1  # with its product between them
    assert by_result(ordered, 0) is ordered
    assert by_result(jaxpr, len(names)) is jaxpr


def test_a_chain_with_results_on_its_way_keeps_its_order():
    def fun(x):
        results = []
        for _ in range(8):
            x = jnp.sin(x) * 2.0
            results.append(jnp.tanh(jnp.exp(x) * 0.5) - jnp.abs(jnp.cos(x)) * 3.0)
        return results

    jaxpr = jax.make_jaxpr(fun)(jnp.ones(3)).jaxpr
    assert by_result(jaxpr, 0) is jaxpr


def test_the_order_stays_where_nothing_repeats():
    def fun(x):
        kinds = [jnp.sin, jnp.cos, jnp.tanh, jnp.exp, jnp.log1p, jnp.arctan, jnp.sqrt, jnp.square]
        stage = [f(x) for f in kinds]
        for i in range(6):
            stage = [v * float(8 * i + k) for k, v in enumerate(stage)]
        return stage

    jaxpr = jax.make_jaxpr(fun)(jnp.ones(3))
    assert by_result(jaxpr.jaxpr, 0) is not jaxpr.jaxpr
    assert outline(jaxpr) is jaxpr


def test_a_function_that_asks_to_be_inlined_is_no_function(x):
    plain, inline = jax.jit(layer), jax.jit(layer, inline=True)

    def twice(f, x, w):
        return f(f(x, w), w)

    (w,) = weights(1)
    assert functions(lowered(lambda x, w: twice(plain, x, w), x, w)) == (1, 2)
    with configuration.outline("off"):
        text = jax.jit(lambda x, w: twice(inline, x, w)).lower(x, w).as_text(debug_info=True)
    assert functions(text) == (0, 0)
    assert "jit(layer)/tanh" in text
    same_with_and_without(lambda x, w: twice(inline, x, w), x, w)


def test_functions_that_call_lapack_are_left_for_xla_to_inline():
    """As a computation of its own `back` got L transposed from XLA (jaxlib 0.12)."""
    def long(x):
        for i in range(22):
            x = jnp.sin(x) + i
        return x

    def factor(a, m):
        matrix = m @ m.T + (6 + long(a)) * jnp.eye(6)
        return jnp.linalg.cholesky(matrix), jnp.tril(jnp.ones((6, 6))) * 0.5

    def back(c, lower, d):
        x = (lower.T @ c) * d
        x = jax.lax.linalg.triangular_solve(lower, x, left_side=True, lower=True, transpose_a=True)
        x = jax.lax.linalg.triangular_solve(lower, x, left_side=False, lower=True)
        return long(x).sum(), x.sum(0)

    def program(factor, back, a, m, b):
        lower, d = factor(a, m)
        u = jax.lax.linalg.triangular_solve(lower, b, left_side=True, lower=True)
        w = jax.lax.linalg.triangular_solve(lower, jnp.sin(u), left_side=True, lower=True,
                                            transpose_a=True)
        v = jax.lax.linalg.triangular_solve(lower.T, b, left_side=True, lower=False)
        p, q = back(w, lower, d)
        again, d = factor(a + 1, m)
        return p, q, *back(v + q, again, d)

    def compiled(*args):
        return program(jax.jit(factor), jax.jit(back), *args)

    with jax.enable_x64(True), configuration.outline("on"):
        rng = np.random.default_rng(0)
        args = jnp.float64(1.0), jnp.asarray(rng.normal(size=(6, 6))), jnp.asarray(
            rng.normal(size=(6, 6)))
        for got, want in zip(jax.jit(compiled)(*args), program(factor, back, *args), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9)
        text = jax.jit(compiled).lower(*args).as_text()
        without = jax.jit(lambda a: jax.jit(long)(a) + jax.jit(long)(a + 1)).lower(1.0).as_text()
    assert text.count("func.func private") >= 2
    assert "inlineable" not in text
    assert 'inlineable = "false"' in without
