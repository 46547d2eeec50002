"""Layers of neural networks as pairs of functions.

A layer is `(init, apply)`: `init(key, input_shape)` gives `(output_shape, params)`, and
`apply(params, inputs, **kwargs)` the outputs. Layers without parameters have `()`.

    >>> import pyjx as jax
    >>> from pyjx.example_libraries.stax import Dense, Relu, serial
    >>> init, apply = serial(Dense(4), Relu, Dense(2))
    >>> shape, params = init(jax.random.key(0), (-1, 3))
    >>> shape, apply(params, jax.numpy.ones((5, 3))).shape
    ((-1, 2), (5, 2))
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from pyjx import lax, nn, random
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike, KeyLike
from pyjx.lazy import directory
from pyjx.nn.activations import elu, gelu, leaky_relu, relu, selu, sigmoid, softplus
from pyjx.nn.initializers import glorot_normal, normal, ones, zeros
from pyjx.nn.normalization import log_softmax, softmax, standardize
from pyjx.tree_util import PyTree

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "elu", "gelu", "glorot",
    "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal", "ones", "parallel",
    "randn", "relu", "selu", "serial", "shape_dependent", "sigmoid", "softmax", "softplus",
    "standardize", "zeros",
]

Layer = tuple[Callable[..., Any], Callable[..., Any]]

_GLOROT, _NORMAL, _SMALL = glorot_normal(), normal(), normal(1e-6)

randn = normal
glorot = glorot_normal
logsoftmax = log_softmax

# -- layers with parameters ------------------------------------------------------------------------


def Dense(out_dim: int, W_init: Any = _GLOROT, b_init: Any = _NORMAL) -> Layer:
    """inputs @ W + b."""

    def init(rng: KeyLike, input_shape: Sequence[int]) -> Any:
        k1, k2 = random.split(rng)
        W, b = W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,))
        return (*input_shape[:-1], out_dim), (W, b)

    def apply(params: PyTree, inputs: Array, **kwargs: Any) -> Array:
        W, b = params
        return jnp.dot(inputs, W) + b

    return init, apply


def _convolution(name: str, dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
                 strides: Sequence[int] | None, padding: Any, W_init: Any, b_init: Any) -> Layer:
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    steps = tuple(strides or (1,) * len(filter_shape))
    make = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))
    transposed = name == "transpose"

    def init(rng: KeyLike, input_shape: Sequence[int]) -> Any:
        sizes = iter(filter_shape)
        channels = input_shape[lhs_spec.index("C")]
        kernel_shape = tuple(out_chan if c == "O" else channels if c == "I" else next(sizes)
                             for c in rhs_spec)
        shape_of = lax.conv_transpose_shape_tuple if transposed else lax.conv_general_shape_tuple
        output_shape = tuple(map(int, shape_of(tuple(input_shape), kernel_shape, steps, padding,
                                               dimension_numbers)))
        bias_shape = tuple(out_chan if c == "C" else 1 for c in out_spec)
        k1, k2 = random.split(rng)
        return output_shape, (make(k1, kernel_shape), b_init(k2, bias_shape))

    def apply(params: PyTree, inputs: Array, **kwargs: Any) -> Array:
        W, b = params
        if transposed:
            return lax.conv_transpose(inputs, W, steps, padding,
                                      dimension_numbers=dimension_numbers) + b
        return lax.conv_general_dilated(inputs, W, steps, padding,
                                        dimension_numbers=dimension_numbers) + b

    return init, apply


def GeneralConv(dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
                strides: Sequence[int] | None = None, padding: Any = "VALID", W_init: Any = None,
                b_init: Any = _SMALL) -> Layer:
    """A convolution with any layout, such as ("NHWC", "HWIO", "NHWC"), and a bias."""
    return _convolution("conv", dimension_numbers, out_chan, filter_shape, strides, padding, W_init,
                        b_init)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def GeneralConvTranspose(dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
                         strides: Sequence[int] | None = None, padding: Any = "VALID",
                         W_init: Any = None, b_init: Any = _SMALL) -> Layer:
    """A transposed convolution with any layout, and a bias."""
    return _convolution("transpose", dimension_numbers, out_chan, filter_shape, strides, padding,
                        W_init, b_init)


Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(axis: int | Sequence[int] = (0, 1, 2), epsilon: float = 1e-5, center: bool = True,
              scale: bool = True, beta_init: Callable[..., Any] = zeros,
              gamma_init: Callable[..., Any] = ones) -> Layer:
    """`nn.standardize` over the given axes, then times gamma, plus beta."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: KeyLike, input_shape: Sequence[int]) -> Any:
        shape = tuple(d for i, d in enumerate(input_shape) if i not in axes)
        k1, k2 = random.split(rng)
        beta = beta_init(k1, shape) if center else ()
        gamma = gamma_init(k2, shape) if scale else ()
        return tuple(input_shape), (beta, gamma)

    def apply(params: PyTree, x: Array, **kwargs: Any) -> Array:
        beta, gamma = params
        place = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(x)))
        z = nn.standardize(x, axes, epsilon=epsilon)
        z = gamma[place] * z if scale else z
        return z + beta[place] if center else z

    return init, apply


# -- layers without parameters ---------------------------------------------------------------------


def _plain(shape_of: Callable[[Any], Any], apply: Callable[[Any], Any]) -> Layer:
    """A layer of a function of the inputs, and of one of their shape."""
    return (lambda rng, input_shape: (shape_of(input_shape), ()),
            lambda params, inputs, **kwargs: apply(inputs))


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer that applies a function to each element."""
    return _plain(lambda shape: shape, lambda inputs: fun(inputs, **fun_kwargs))


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = elementwise(lambda x: x)


def _pooling(reducer: Callable[..., Any], start: float, window_shape: Sequence[int],
             strides: Sequence[int] | None, padding: str, spec: str | None, average: bool = False
            ) -> Layer:
    steps = list(strides or (1,) * len(window_shape))
    window = list(window_shape)
    outer = (0, len(window) + 1) if spec is None else (spec.index("N"), spec.index("C"))
    for i in sorted(outer):
        window.insert(i, 1)
        steps.insert(i, 1)

    def shape_of(shape: Sequence[int]) -> Any:
        pads = lax.padtype_to_pads(shape, window, steps, padding)
        ones = (1,) * len(window)
        return tuple(map(int, lax.reduce_window_shape_tuple(
            tuple(shape), tuple(window), tuple(steps), pads, ones, ones)))

    def apply(inputs: Array) -> Array:
        out = lax.reduce_window(inputs, start, reducer, window, steps, padding)
        if not average:
            return out
        spatial = [1 if i in outer else n for i, n in enumerate(inputs.shape)]
        return out / lax.reduce_window(jnp.ones(spatial, inputs.dtype), start, reducer, window,
                                       steps, padding)

    return _plain(shape_of, apply)


def MaxPool(window_shape: Sequence[int], strides: Sequence[int] | None = None,
            padding: str = "VALID", spec: str | None = None) -> Layer:
    """The largest element in each window; `spec` is the layout, "NHWC" by default."""
    return _pooling(lax.max, -math.inf, window_shape, strides, padding, spec)


def SumPool(window_shape: Sequence[int], strides: Sequence[int] | None = None,
            padding: str = "VALID", spec: str | None = None) -> Layer:
    """The sum over each window."""
    return _pooling(lax.add, 0.0, window_shape, strides, padding, spec)


def AvgPool(window_shape: Sequence[int], strides: Sequence[int] | None = None,
            padding: str = "VALID", spec: str | None = None) -> Layer:
    """The average over each window, of the elements that are there."""
    return _pooling(lax.add, 0.0, window_shape, strides, padding, spec, average=True)


Flatten = _plain(lambda shape: (shape[0], math.prod(shape[1:])),
                 lambda inputs: jnp.reshape(inputs, (inputs.shape[0], -1)))


def Dropout(rate: ArrayLike, mode: str = "train") -> Layer:
    """Keeps elements with the probability `rate`, divided by it; others are 0.

    Other modes than "train" keep all. `apply` takes a key as `rng`.
    """

    def init(rng: KeyLike, input_shape: Sequence[Any]) -> Any:
        return input_shape, ()

    def apply(params: PyTree, inputs: Array, **kwargs: Any) -> Array:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError("Dropout layer requires apply_fun to be called with a PRNG key "
                             "argument: apply_fun(params, inputs, rng=key).")
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return init, apply


# -- combinations ----------------------------------------------------------------------------------


def FanOut(num: int) -> Layer:
    """The input, `num` times."""
    return _plain(lambda shape: [shape] * num, lambda inputs: [inputs] * num)


FanInSum = _plain(lambda shapes: shapes[0], lambda inputs: functools.reduce(operator.add, inputs))


def FanInConcat(axis: int = -1) -> Layer:
    """The inputs, concatenated along an axis."""
    def shape_of(shapes: Sequence[Any]) -> Any:
        place = axis % len(shapes[0])
        size = sum(shape[place] for shape in shapes)
        return (*shapes[0][:place], size, *shapes[0][place + 1:])

    return _plain(shape_of, lambda inputs: jnp.concatenate(inputs, axis))


def serial(*layers: Layer) -> Layer:
    """One layer after the other."""

    def init(rng: KeyLike, input_shape: Sequence[Any]) -> Any:
        params = []
        for init_layer, _ in layers:
            rng, layer_rng = random.split(rng)
            input_shape, param = init_layer(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params: PyTree, inputs: PyTree, **kwargs: Any) -> Any:
        rngs = _keys(kwargs.pop("rng", None), len(layers))
        for (_, apply_layer), param, rng in zip(layers, params, rngs, strict=True):
            inputs = apply_layer(param, inputs, rng=rng, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Layers beside each other: a list of inputs to a list of outputs."""

    def init(rng: KeyLike, input_shape: Sequence[Any]) -> Any:
        rngs = random.split(rng, len(layers))
        parts = [init_layer(key, shape)
                 for (init_layer, _), key, shape in zip(layers, rngs, input_shape, strict=True)]
        return tuple([shape for shape, _ in parts]), tuple([param for _, param in parts])

    def apply(params: PyTree, inputs: PyTree, **kwargs: Any) -> Any:
        rngs = _keys(kwargs.pop("rng", None), len(layers))
        return [apply_layer(p, x, rng=r, **kwargs)
                for (_, apply_layer), p, x, r in zip(layers, params, inputs, rngs, strict=True)]

    return init, apply


def _keys(rng: KeyLike, count: int) -> Any:
    return [None] * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[..., Layer]) -> Layer:
    """The layer that a function makes of the shape of the input."""

    def init(rng: KeyLike, input_shape: Sequence[Any]) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply(params: PyTree, inputs: Array, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init, apply


__dir__ = directory(__name__, __all__)
