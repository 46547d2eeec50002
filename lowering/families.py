"""The rules of all families: they are registered when this module is imported."""

from lowering import (
    calls,
    conditionals,
    contractions,
    convolution,
    cumulative,
    elementwise,
    fourier,
    indexing,
    loops,
    random_bits,
    reductions,
    shapes,
    sorting,
    windows,
)

__all__ = [
    "calls", "conditionals", "contractions", "convolution", "cumulative", "elementwise", "fourier",
    "indexing", "loops", "random_bits", "reductions", "shapes", "sorting", "windows",
]
