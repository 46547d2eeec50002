# Written by `python -m pyjx.cli.stubs` from the table of pyjx.nn.

from pyjx.nn import initializers as initializers
from pyjx.nn.activations import celu as celu
from pyjx.nn.activations import elu as elu
from pyjx.nn.activations import gelu as gelu
from pyjx.nn.activations import glu as glu
from pyjx.nn.activations import hard_sigmoid as hard_sigmoid
from pyjx.nn.activations import hard_silu as hard_silu
from pyjx.nn.activations import hard_swish as hard_swish
from pyjx.nn.activations import hard_tanh as hard_tanh
from pyjx.nn.activations import identity as identity
from pyjx.nn.activations import leaky_relu as leaky_relu
from pyjx.nn.activations import log1mexp as log1mexp
from pyjx.nn.activations import log_sigmoid as log_sigmoid
from pyjx.nn.activations import mish as mish
from pyjx.nn.activations import relu as relu
from pyjx.nn.activations import relu6 as relu6
from pyjx.nn.activations import selu as selu
from pyjx.nn.activations import sigmoid as sigmoid
from pyjx.nn.activations import silu as silu
from pyjx.nn.activations import soft_sign as soft_sign
from pyjx.nn.activations import softplus as softplus
from pyjx.nn.activations import sparse_plus as sparse_plus
from pyjx.nn.activations import sparse_sigmoid as sparse_sigmoid
from pyjx.nn.activations import squareplus as squareplus
from pyjx.nn.activations import swish as swish
from pyjx.nn.activations import tanh as tanh
from pyjx.nn.normalization import log_softmax as log_softmax
from pyjx.nn.normalization import logmeanexp as logmeanexp
from pyjx.nn.normalization import logsumexp as logsumexp
from pyjx.nn.normalization import softmax as softmax
from pyjx.nn.normalization import standardize as standardize
from pyjx.nn.encoding import one_hot as one_hot
from pyjx.nn.attention import dot_product_attention as dot_product_attention
from pyjx.nn.scaled import get_scaled_dot_general_config as get_scaled_dot_general_config
from pyjx.nn.scaled import scaled_dot_general as scaled_dot_general
from pyjx.nn.scaled import scaled_matmul as scaled_matmul

__all__ = [
    "initializers",
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "swish",
    "tanh",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "softmax",
    "standardize",
    "one_hot",
    "dot_product_attention",
    "get_scaled_dot_general_config",
    "scaled_dot_general",
    "scaled_matmul",
]
