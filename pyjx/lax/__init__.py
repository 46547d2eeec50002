"""The operations: thin public functions over the primitives, one file a family.

Names load their family when they are first used.
"""

from __future__ import annotations

from pyjx.lazy import attach

# Public names by family.
FAMILIES: dict[str, str] = {
    "pyjx.transforms.structural": "broadcast_in_dim broadcast_in_dim_p reduce_sum_p transpose_p",
}

__getattr__, __dir__ = attach(__name__, FAMILIES)
