"""Dimensions, which are ints or symbolic."""

from __future__ import annotations

from typing import Any


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger one of two dimensions.

    >>> max_dim(2, 3)
    3
    """
    return d1 if d1 is d2 else max(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller one of two dimensions.

    >>> min_dim(2, 3)
    2
    """
    return d1 if d1 is d2 else min(d1, d2)
