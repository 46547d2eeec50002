"""`jax._src.cudnn.fused_attention_stablehlo`: cuDNN's attention, which pyjx does not call."""

from __future__ import annotations

import enum
from typing import Any, NoReturn

__all__ = ["MaskType", "check_compute_capability", "dot_product_attention"]


class MaskType(enum.Enum):
    """Which positions attend to which."""

    NO_MASK = 0
    PADDING = 1
    CAUSAL = 2
    PADDING_CAUSAL = 3
    ALIBI = 4


def check_compute_capability(capability: str) -> bool:
    """Whether cuDNN's attention may be used on the devices: never."""
    return False


def dot_product_attention(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: `jax.nn.dot_product_attention` is the attention there is."""
    raise NotImplementedError("dot_product_attention of cuDNN is not there; use "
                              "jax.nn.dot_product_attention")
