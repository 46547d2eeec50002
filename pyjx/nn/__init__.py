"""Functions for neural networks. Names load their module when they are first used."""

from __future__ import annotations

from pyjx.documentation import describe
from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.nn.activations": (
        "gelu glu identity log_sigmoid mish sigmoid silu soft_sign softplus sparse_plus "
        "sparse_sigmoid squareplus swish tanh"
    ),
    "pyjx.nn.rectifiers": (
        "celu elu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu relu relu6 selu"
    ),
    "pyjx.nn.complements": "log1mexp",
    "pyjx.nn.exponentials": "log_softmax logmeanexp logsumexp",
    "pyjx.nn.normalization": "softmax standardize",
    "pyjx.nn.encoding": "one_hot",
    "pyjx.nn.attention": "dot_product_attention",
    "pyjx.nn.scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
}

SUBMODULES = "initializers"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES, describe=describe)
