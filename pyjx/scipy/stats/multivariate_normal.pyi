# Written by `python -m pyjx.cli.stubs` from pyjx.scipy.stats.vectors.

from pyjx.core.array_type import Array, ArrayLike
from pyjx.numpy.operands import numpy_function

@numpy_function
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: ArrayLike = ...) -> Array: ...

@numpy_function
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array: ...
