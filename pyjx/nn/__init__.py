"""Functions for neural networks. Names load their module when they are first used."""

from __future__ import annotations

from pyjx.documentation import describe
from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.nn.activations": (
        "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu "
        "log1mexp log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus "
        "sparse_sigmoid squareplus swish tanh"),
    "pyjx.nn.normalization": "log_softmax logmeanexp logsumexp softmax standardize",
    "pyjx.nn.encoding": "one_hot",
    "pyjx.nn.attention": "dot_product_attention",
    "pyjx.nn.scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
}

SUBMODULES = "initializers"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES, describe=describe)
