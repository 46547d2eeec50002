# Written by `python -m pyjx.cli.stubs` from pyjx.scipy.stats.univariate.

from pyjx.core.array_type import Array, ArrayLike
from pyjx.numpy.operands import numpy_function

@numpy_function
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = ...) -> Array: ...

@numpy_function
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = ...) -> Array: ...
