"""Optimizers against their formulas in NumPy, and layers against direct calls."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.example_libraries import optimizers, stax

rng = np.random.default_rng(0)
PARAMS = {"a": rng.normal(size=(3, 2)).astype(np.float32),
          "b": [np.float32(1.5), jnp.ones((2, 2, 2))]}
OPTIMIZERS = [
    ("sgd", (0.1,)), ("momentum", (0.05, 0.9)), ("nesterov", (0.05, 0.9)), ("adagrad", (0.5,)),
    ("rmsprop", (0.05,)), ("rmsprop_momentum", (0.01,)), ("adam", (0.1,)), ("adamax", (0.1,)),
    ("sm3", (0.5,)), ("sgd", (optimizers.exponential_decay(0.1, 100, 0.9),)),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_optimizers_find_a_minimum(name, options):
    init, update, get_params = getattr(optimizers, name)(*options)

    def loss(params):
        return sum(((x - 1) ** 2).sum() for x in jax.tree.leaves(params))

    @jax.jit
    def step(i, state):
        return update(i, jax.grad(loss)(get_params(state)), state)

    state = init(PARAMS)
    assert jax.tree.structure(get_params(state)) == jax.tree.structure(PARAMS)
    for i in range(200):
        state = step(i, state)
    assert float(loss(get_params(state))) < 1e-2


def test_adam_is_its_formula():
    init, update, get_params = optimizers.adam(0.1, 0.8, 0.9, 1e-3)
    x, m, v = 2.0, 0.0, 0.0
    state = init(jnp.float32(x))
    for i, g in enumerate([1.0, -0.5, 2.0]):
        state = update(i, jnp.float32(g), state)
        m, v = 0.2 * g + 0.8 * m, 0.1 * g * g + 0.9 * v
        x -= 0.1 * (m / (1 - 0.8 ** (i + 1))) / (np.sqrt(v / (1 - 0.9 ** (i + 1))) + 1e-3)
        assert float(get_params(state)) == pytest.approx(x, rel=1e-5)


def test_states_are_packed_and_unpacked():
    init, update, get_params = optimizers.momentum(0.1, 0.9)
    state = update(0, PARAMS, init(PARAMS))
    marked = optimizers.unpack_optimizer_state(state)
    assert isinstance(marked["a"], optimizers.JoinPoint)
    again = optimizers.pack_optimizer_state(marked)
    assert jax.tree.structure(again) == jax.tree.structure(state)
    for x, y in zip(jax.tree.leaves(again), jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(get_params(again)["a"], get_params(state)["a"])


@pytest.mark.parametrize(("name", "options", "inner"), [
    ("sgd", (0.1,), ["*", "*"]), ("momentum", (0.05, 0.9), ["(*, *)"] * 2),
    ("nesterov", (0.05, 0.9), ["(*, *)"] * 2), ("adagrad", (0.5,), ["(*, *, *)"] * 2),
    ("rmsprop", (0.05,), ["(*, *)"] * 2), ("rmsprop_momentum", (0.01,), ["(*, *, *)"] * 2),
    ("adam", (0.1,), ["(*, *, *)"] * 2), ("adamax", (0.1,), ["(*, *, *)"] * 2),
    ("sm3", (0.5,), ["(*, *, [*, *], (*, *))", "(*, *, [*], ())"])])
def test_states_have_the_structure_of_those_in_jax(name, options, inner):
    """So a state that was pickled there carries on here."""
    init, update, get_params = getattr(optimizers, name)(*options)
    params = {"a": jnp.ones((3, 2)), "b": jnp.float32(1.5)}
    for state in (init(params), update(0, params, init(params)),
                  optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(init(params)))):
        assert type(state.packed_state) is type(state.subtree_defs) is tuple
        assert [type(leaves) for leaves in state.packed_state] == [list, list]
        assert [str(tree) for tree in state.subtree_defs] == [f"PyTreeDef({t})" for t in inner]
        assert [jnp.shape(x) for x in jax.tree.leaves(get_params(state))] == [(3, 2), ()]
    last, _ = jax.jit(lambda s: jax.lax.scan(lambda s, i: (update(i, params, s), get_params(s)), s,
                                             jnp.arange(3)))(init(params))
    assert jax.tree.structure(last) == jax.tree.structure(init(params))


def test_optimizers_refuse():
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(TypeError, match="did not match the parameter tree"):
        update(0, [1.0], init(PARAMS))
    bad = optimizers.optimizer(lambda: ((lambda x: x), (lambda i, g, x: (x, x)), (lambda x: x)))
    init, update, _ = bad()
    with pytest.raises(TypeError, match="output structure that did not match"):
        update(0, 1.0, init(1.0))
    with pytest.raises(TypeError):
        optimizers.make_schedule(jnp.ones(3))
    with pytest.raises(ValueError, match="one shorter"):
        optimizers.piecewise_constant([1, 2], [1.0, 2.0])


def test_shapes_of_parallel_layers_are_a_tuple():
    init, _ = stax.parallel(stax.Dense(4), stax.Identity)
    assert init(jax.random.key(0), [(2, 3), (2, 3)])[0] == ((2, 4), (2, 3))


def test_schedules():
    assert optimizers.constant(0.1)(7) == 0.1
    assert optimizers.inverse_time_decay(1.0, 2, 0.5)(2) == pytest.approx(1 / 1.5)
    assert float(optimizers.inverse_time_decay(1.0, 2, 0.5, staircase=True)(3)) == pytest.approx(
        1 / 1.5)
    assert float(optimizers.polynomial_decay(1.0, 10, 0.1, 2.0)(5)) == pytest.approx(0.325)
    steps = optimizers.piecewise_constant([2, 4], [1.0, 0.5, 0.1])
    assert [round(float(steps(i)), 2) for i in range(6)] == [1, 1, 1, 0.5, 0.5, 0.1]


def test_clipping():
    tree = {"a": jnp.array([3.0]), "b": jnp.array([4.0])}
    assert float(optimizers.l2_norm(tree)) == 5
    assert float(optimizers.clip_grads(tree, 1.0)["b"][0]) == pytest.approx(0.8)
    assert float(optimizers.clip_grads(tree, 10.0)["b"][0]) == 4


LAYERS = {
    "dense": (stax.Dense(4), (2, 3)), "conv": (stax.Conv(4, (3, 3), padding="SAME"), (2, 5, 5, 3)),
    "strided": (stax.Conv(4, (3, 3), (2, 2)), (2, 8, 9, 3)),
    "general": (stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 4, (2, 2)), (2, 3, 5, 5)),
    "transpose": (stax.ConvTranspose(4, (3, 3), (2, 2), "SAME"), (2, 5, 5, 3)),
    "transpose1d": (stax.Conv1DTranspose(4, (3,), (2,)), (2, 5, 3)),
    "batchnorm": (stax.BatchNorm(), (2, 4, 4, 3)),
    "batchnorm_plain": (stax.BatchNorm(axis=0, center=False, scale=False), (5, 3)),
    "maxpool": (stax.MaxPool((2, 2), (2, 2)), (2, 5, 5, 3)),
    "sumpool": (stax.SumPool((2, 3), spec="NCHW"), (2, 3, 5, 5)),
    "avgpool": (stax.AvgPool((2, 2), padding="SAME"), (2, 5, 5, 3)),
    "flatten": (stax.Flatten, (2, 3, 4)), "gelu": (stax.Gelu, (2, 3)),
    "logsoftmax": (stax.LogSoftmax, (2, 3)), "dropout": (stax.Dropout(0.5), (2, 3)),
    "serial": (stax.serial(stax.Dense(4), stax.Relu, stax.Dense(2), stax.Softmax), (2, 3)),
    "fan": (stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(4), stax.Identity),
                        stax.FanInConcat()), (2, 3)),
    "sum": (stax.serial(stax.FanOut(3), stax.FanInSum), (2, 3)),
    "dependent": (stax.shape_dependent(lambda shape: stax.Dense(shape[-1] * 2)), (2, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_the_shape_that_they_say(name):
    (init, apply), shape = LAYERS[name]
    out_shape, params = init(jax.random.key(0), shape)
    inputs = rng.normal(size=shape).astype(np.float32)
    out = jax.jit(apply)(params, inputs, rng=jax.random.key(1))
    assert out.shape == tuple(out_shape)
    np.testing.assert_allclose(out, apply(params, inputs, rng=jax.random.key(1)), rtol=1e-4,
                               atol=1e-5)


def test_layers_compute():
    x = rng.normal(size=(2, 4)).astype(np.float32)
    init, apply = stax.Dense(3)
    _, (W, b) = init(jax.random.key(0), (2, 4))
    np.testing.assert_allclose(apply((W, b), x), x @ W + b, rtol=1e-5)
    pooled = stax.AvgPool((2,), padding="SAME", spec="NHC")[1]((), jnp.arange(3.0).reshape(1, 3, 1))
    np.testing.assert_allclose(pooled.ravel(), [0.5, 1.5, 2])
    normed = stax.BatchNorm(0)[1]((np.full(4, 2.0), np.ones(4)), x)
    np.testing.assert_allclose(normed.mean(0), np.full(4, 2.0), atol=1e-5)
    with pytest.raises(ValueError, match="PRNG key"):
        stax.Dropout(0.5)[1]((), x)
    kept = stax.Dropout(0.5)[1]((), jnp.ones(1000), rng=jax.random.key(0))
    assert set(kept.tolist()) == {0, 2}
    assert stax.Dropout(0.5, mode="test")[1]((), x, rng=jax.random.key(0)) is x
