"""Long short-term memory against a loop in NumPy."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import rnn

rng = np.random.default_rng(0)


def by_hand(x, h_0, c_0, parts, lengths, layers, directions):
    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    h_n, c_n = np.array(h_0, np.float64), np.array(c_0, np.float64)
    for layer in range(layers):
        out = np.zeros((*x.shape[:2], directions * h_n.shape[-1]))
        for d in range(directions):
            i = layer * directions + d
            W_ih, W_hh, b_ih, b_hh = (np.asarray(w[i], np.float64) for w in parts)
            for b, length in enumerate(lengths):
                h, c = h_n[i, b], c_n[i, b]
                for t in range(length) if d == 0 else reversed(range(length)):
                    gates = np.split(W_ih @ x[b, t] + b_ih + W_hh @ h + b_hh, 4)
                    c = sigmoid(gates[1]) * c + sigmoid(gates[0]) * np.tanh(gates[2])
                    h = sigmoid(gates[3]) * np.tanh(c)
                    out[b, t, d * h.size:(d + 1) * h.size] = h
                h_n[i, b], c_n[i, b] = h, c
        x = out
    return x, h_n, c_n


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm(layers, bidirectional):
    sizes = {"input_size": 3, "hidden_size": 2, "num_layers": layers,
             "bidirectional": bidirectional}
    weights = rnn.init_lstm_weight(jax.random.key(0), **sizes)
    assert weights.shape == (rnn.get_num_params_in_lstm(**sizes),)
    count = layers * (2 if bidirectional else 1)
    x = rng.normal(size=(3, 5, 3)).astype(np.float32)
    h_0, c_0 = (rng.normal(size=(count, 3, 2)).astype(np.float32) for _ in range(2))
    lengths = np.array([5, 2, 0])
    parts = rnn.unpack_lstm_weights(weights, **sizes)
    want = by_hand(x, h_0, c_0, parts, lengths, layers, 2 if bidirectional else 1)
    got = jax.jit(lambda w: rnn.lstm(x, h_0, c_0, w, lengths, dropout=0.0, **sizes))(weights)
    again = rnn.lstm_ref(x, h_0, c_0, *parts, lengths, dropout=0.0, **sizes)
    for y, other, z in zip(got, again, want, strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(other, z, rtol=1e-4, atol=1e-5)
    slope = jax.grad(lambda w: rnn.lstm(x, h_0, c_0, w, lengths, dropout=0.0, **sizes)[0].sum())(
        weights)
    assert np.isfinite(slope).all() and np.abs(slope).max() > 0


def test_gates_are_swapped():
    weights = jnp.arange(240.0)
    swapped = rnn.swap_lstm_gates(weights, 3, 2, 2, True)
    assert swapped[:24].tolist() == [*range(12), *range(18, 24), *range(12, 18)]
    assert sorted(swapped.tolist()) == weights.tolist()
    np.testing.assert_array_equal(rnn.swap_lstm_gates(swapped, 3, 2, 2, True), weights)


def test_dropout_is_refused():
    state = jnp.zeros((1, 1, 2))
    with pytest.raises(NotImplementedError, match="dropout"):
        rnn.lstm(jnp.ones((1, 2, 3)), state, state, jnp.ones(56), jnp.array([2]), 3, 2, 1, 0.5,
                 False)


def test_the_two_halves_of_a_derivative():
    sizes = {"input_size": 3, "hidden_size": 2, "num_layers": 1, "dropout": 0.0,
             "bidirectional": False, "precision": None}
    w = rnn.init_lstm_weight(jax.random.key(0), 3, 2, 1, False)
    operands = jnp.ones((2, 4, 3)), jnp.zeros((1, 2, 2)), jnp.ones((1, 2, 2)), w
    lengths = np.array([4, 1])
    out, pull_back = jax.vjp(lambda x, h, c, w: rnn.lstm(x, h, c, w, lengths, **sizes), *operands)
    again, residuals = rnn.lstm_fwd(*operands, lengths, **sizes)
    cts = rnn.lstm_bwd(**sizes, residuals=residuals, gradients=out)
    assert cts[4] is None
    for a, b in zip((*again, *cts[:4]), (*out, *pull_back(out)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_primitives():
    w = rnn.init_lstm_weight(jax.random.key(0), 3, 2, 1, False)
    state, x = jnp.zeros((1, 5, 2)), jax.random.normal(jax.random.key(1), (5, 4, 3))
    lengths = jnp.full(5, 4)
    sizes = {"input_size": 3, "hidden_size": 2, "num_layers": 1, "dropout": 0.0,
             "bidirectional": False}
    params = {**sizes, "cudnn_allow_tf32": False}
    expected, pull = jax.vjp(lambda x, h, c, w: rnn.lstm(x, h, c, w, lengths, **sizes),
                             x, state, state, w)
    *outs, reserved = rnn.rnn_fwd_p.bind(x, state, state, w, lengths, **params)
    assert reserved.shape == (0,)
    cts = jax.jit(lambda *args: rnn.rnn_bwd_p.bind(*args, **params))(
        *outs, x, state, state, w, outs[0], reserved, lengths)
    for found, wanted in ((outs, expected), (cts, pull(tuple(expected)))):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
