"""Long short-term memory: layers of recurrent networks with the weights of cuDNN in its layout.

S. Hochreiter and J. Schmidhuber, Long short-term memory, Neural Computation 9 (1997), 1735-1780.
They are ordinary operations, which run on every platform and have all derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import lax, random
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray
from pyjx.core.primitive import Primitive
from pyjx.lazy import directory
from pyjx.nn.activations import sigmoid, tanh
from pyjx.transforms.vjp import vjp

if TYPE_CHECKING:
    from pyjx.lax.contractions import PrecisionLike

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_bwd", "lstm_fwd", "lstm_ref",
    "rnn_abstract_eval", "rnn_bwd_abstract_eval", "rnn_bwd_p", "rnn_fwd_p", "sigmoid",
    "swap_lstm_gates", "tanh", "unpack_lstm_weights",
]

Weights = dict[int, Array]


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
            ) -> list[list[tuple[int, ...]]]:
    """The shapes of W_ih, W_hh, b_ih and b_hh for each layer and direction."""
    directions = 2 if bidirectional else 1
    gates = 4 * hidden_size
    return [[(gates, input_size if layer == 0 else directions * hidden_size), (gates, hidden_size),
             (gates,), (gates,)] for layer in range(num_layers) for _ in range(directions)]


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
                           ) -> int:
    """The number of weights.

    >>> import pyjx as jax
    >>> jax.experimental.rnn.get_num_params_in_lstm(3, 2, 1, False)
    56
    """
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum(math.prod(s) for parts in shapes for s in parts)


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int,
                     bidirectional: bool) -> Array:
    """Weights drawn uniformly from [-k, k], k = sqrt(1/hidden_size): a vector in cuDNN's layout."""
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    k = math.sqrt(1 / hidden_size)
    return random.uniform(rng, (count,), dtype=jnp.float32, minval=-k, maxval=k)


def unpack_lstm_weights(weights: Any, input_size: int, hidden_size: int, num_layers: int,
                        bidirectional: bool) -> tuple[Weights, Weights, Weights, Weights]:
    """The matrices and biases in a vector of weights.

    All matrices come before all biases; the gates of each are input, forget, cell, output.

    Returns:
      `(W_ih, W_hh, b_ih, b_hh)`: dictionaries by layer * directions + direction.
    """
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    unpacked: tuple[Weights, Weights, Weights, Weights] = ({}, {}, {}, {})
    start = 0
    for kinds in ((0, 1), (2, 3)):
        for i, parts in enumerate(shapes):
            for kind in kinds:
                size = math.prod(parts[kind])
                unpacked[kind][i] = jnp.reshape(weights[start:start + size], parts[kind])
                start += size
    return unpacked


def swap_lstm_gates(weights: ArrayLike, input_size: int, hidden_size: int, num_layers: int,
                    bidirectional: bool) -> Array:
    """A vector of weights with the cell and the output gates in each other's place."""
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)

    def swapped(x: Array) -> Array:
        gates = x.reshape(4, -1)
        return jnp.concatenate([gates[:2], gates[3:], gates[2:3]]).ravel()

    W_ih, W_hh, b_ih, b_hh = parts
    vectors = [swapped(x[i]) for pair in ((W_ih, W_hh), (b_ih, b_hh)) for i in sorted(W_ih)
               for x in pair]
    return jnp.concatenate(vectors)


def lstm(x: ArrayLike, h_0: Any, c_0: Any, weights: ArrayLike, seq_lengths: Any, input_size: int,
         hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
         precision: Any = None) -> tuple[Array, Array, Array]:
    """Layers of long short-term memory.

    Args:
      x: array of shape (batch, length, input_size).
      h_0, c_0: the first states, of shape (num_layers * directions, batch, hidden_size).
      weights: vector, as `init_lstm_weight` gives it.
      seq_lengths: array of shape (batch,): how long each sequence is; the rest gives zeros.
      input_size, hidden_size, num_layers: ints.
      dropout: 0.
      bidirectional: whether each layer goes in both directions.
      precision: of the products.

    Returns:
      `(y, h_n, c_n)`: outputs of shape (batch, length, directions * hidden_size), and the last
      states.

    Raises:
      NotImplementedError: `dropout` is not 0.

    >>> import pyjx as jax
    >>> w = jax.experimental.rnn.init_lstm_weight(jax.random.key(0), 3, 2, 1, False)
    >>> state = jax.numpy.zeros((1, 5, 2))
    >>> x, lengths = jax.numpy.ones((5, 4, 3)), jax.numpy.full(5, 4)
    >>> y, h, c = jax.experimental.rnn.lstm(x, state, state, w, lengths, 3, 2, 1, 0.0, False)
    >>> y.shape, h.shape
    ((5, 4, 2), (1, 5, 2))
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _layers(x, h_0, c_0, parts, seq_lengths, num_layers, dropout, bidirectional, precision)


def lstm_fwd(x: ArrayLike, h_0: ArrayLike, c_0: ArrayLike, w: ArrayLike, seq_lengths: ArrayLike,
             input_size: int, hidden_size: int, num_layers: int, dropout: float,
             bidirectional: bool, precision: PrecisionLike) -> tuple[Any, Any]:
    """What `lstm` gives, and what `lstm_bwd` needs: the operands."""
    out = lstm(x, h_0, c_0, w, seq_lengths, input_size, hidden_size, num_layers, dropout,
               bidirectional, precision)
    return out, (x, h_0, c_0, w, seq_lengths)


def lstm_bwd(input_size: int, hidden_size: int, num_layers: int, dropout: float,
             bidirectional: bool, precision: PrecisionLike, residuals: Any, gradients: Any
             ) -> tuple[Any, ...]:
    """The cotangents of `x`, `h_0`, `c_0` and the weights, and None for the lengths. It computes
    the layers again; `jax.vjp(lstm, ...)` keeps what they gave.

    Args:
      residuals: of `lstm_fwd`.
      gradients: the cotangents of its results.
    """
    *operands, seq_lengths = residuals

    def run(x: ArrayLike, h_0: ArrayLike, c_0: ArrayLike, w: ArrayLike) -> Any:
        return lstm(x, h_0, c_0, w, seq_lengths, input_size, hidden_size, num_layers, dropout,
                    bidirectional, precision)

    return (*vjp(run, *operands)[1](gradients), None)


def lstm_ref(x: ArrayLike, h_0: Any, c_0: Any, W_ih: Mapping[int, Any], W_hh: Mapping[int, Any],
             b_ih: Mapping[int, Any], b_hh: Mapping[int, Any], seq_lengths: Any, input_size: int,
             hidden_size: int, num_layers: int, dropout: float, bidirectional: bool
             ) -> tuple[Array, Array, Array]:
    """`lstm` with weights as `unpack_lstm_weights` gives them."""
    return _layers(x, h_0, c_0, (W_ih, W_hh, b_ih, b_hh), seq_lengths, num_layers, dropout,
                   bidirectional, None)


def _layers(x: ArrayLike, h_0: Array, c_0: Array, parts: Any, seq_lengths: ArrayLike,
            num_layers: int, dropout: float, bidirectional: bool, precision: PrecisionLike
           ) -> tuple[Array, Array, Array]:
    if dropout != 0.0:
        raise NotImplementedError(f"lstm: dropout is not supported, expected 0, got {dropout}")
    directions = 2 if bidirectional else 1
    steps = jnp.moveaxis(jnp.asarray(x), 1, 0)
    inside = (jnp.arange(steps.shape[0])[:, None] < jnp.asarray(seq_lengths)[None])[..., None]
    ends = []
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            i = layer * directions + direction
            end, y = _direction(steps, h_0[i], c_0[i], [w[i] for w in parts], inside,
                                direction == 1, precision)
            ends.append(end)
            outs.append(y)
        steps = jnp.concatenate(outs, -1)
    return (jnp.moveaxis(steps, 0, 1), jnp.stack([h for h, _ in ends]),
            jnp.stack([c for _, c in ends]))


def _direction(steps: Array, h_0: Array, c_0: Array, weights: list[Any], inside: Array,
               backwards: bool, precision: PrecisionLike) -> tuple[tuple[Array, Array], Array]:
    """One direction of a layer: states stay as they are beyond the end of a sequence."""
    W_ih, W_hh, b_ih, b_hh = weights

    def step(carry: Any, entering: Any) -> Any:
        h, c = carry
        drive, active = entering
        gates = drive + jnp.matmul(h, W_hh.T, precision=precision)
        i, f, g, o = jnp.split(gates, 4, -1)
        following = sigmoid(f) * c + sigmoid(i) * tanh(g)
        out = sigmoid(o) * tanh(following)
        return ((jnp.where(active, out, h), jnp.where(active, following, c)),
                jnp.where(active, out, 0))

    # what the inputs contribute does not wait for the states
    drive = jnp.matmul(steps, W_ih.T, precision=precision) + (b_ih + b_hh)[None, None]
    return lax.scan(step, (h_0, c_0), (drive, inside), reverse=backwards)


# -- as primitives, whose operands and parameters are those of cuDNN's calls -----------------------


def rnn_abstract_eval(x_aval: ShapedArray, h_0_aval: ShapedArray, c_0_aval: ShapedArray,
                      w_aval: ShapedArray, seq_lengths_aval: ShapedArray, input_size: int,
                      hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
                      cudnn_allow_tf32: bool) -> tuple[ShapedArray, ...]:
    """The types of the outputs, of the last states, and of what is reserved for the backward pass,
    which is nothing: that computes the layers again."""
    y = (*x_aval.shape[:2], (2 if bidirectional else 1) * hidden_size)
    return x_aval.update(shape=y), h_0_aval, c_0_aval, ShapedArray((0,), np.float32)


def rnn_bwd_abstract_eval(
    dy_aval: ShapedArray, dhn_aval: ShapedArray, dcn_aval: ShapedArray, x_aval: ShapedArray,
    h0_aval: ShapedArray, c0_aval: ShapedArray, w_aval: ShapedArray, y_aval: ShapedArray,
    reserve_space_aval: ShapedArray, seq_lengths_aval: ShapedArray, input_size: int,
    hidden_size: int, num_layers: int, dropout: float, bidirectional: bool, cudnn_allow_tf32: bool,
) -> tuple[ShapedArray, ...]:
    """The types of the cotangents of `x`, the first states and the weights."""
    return x_aval, h0_aval, c0_aval, w_aval


def _run_rnn(x: Array, h_0: Array, c_0: Array, w: Array, seq_lengths: Array, *,
             cudnn_allow_tf32: bool, **params: Any) -> list[Array]:
    return [*lstm(x, h_0, c_0, w, seq_lengths, **params), jnp.zeros(0, np.float32)]


def _run_rnn_back(dy: Array, dhn: Array, dcn: Array, x: Array, h_0: Array, c_0: Array, w: Array,
                  y: Array, reserve_space: Array, seq_lengths: Array, *, cudnn_allow_tf32: bool,
                  **params: Any) -> list[Array]:
    return list(lstm_bwd(**params, precision=None, residuals=(x, h_0, c_0, w, seq_lengths),
                         gradients=(dy, dhn, dcn))[:4])


rnn_fwd_p = Primitive("rnn_fwd", multiple_results=True, shape_rule=rnn_abstract_eval,
                      decomposition=_run_rnn)
rnn_bwd_p = Primitive("rnn_bwd", multiple_results=True, shape_rule=rnn_bwd_abstract_eval,
                      decomposition=_run_rnn_back)

__dir__ = directory(__name__, __all__)
