"""The rules of all families: they are registered when this module is imported."""

from lowering import (
    calls,
    contractions,
    convolution,
    cumulative,
    elementwise,
    indexing,
    loops,
    random_bits,
    reductions,
    shapes,
    sorting,
    windows,
)

__all__ = [
    "calls", "contractions", "convolution", "cumulative", "elementwise", "indexing",
    "loops", "random_bits", "reductions", "shapes", "sorting", "windows",
]
