# Written by `python -m pyjx.cli.stubs` from pyjx.scipy.stats.univariate.

from pyjx.core.array_type import Array, ArrayLike
from pyjx.numpy.operands import numpy_function

@numpy_function
def cdf(x: ArrayLike, loc: ArrayLike = ..., scale: ArrayLike = ...) -> Array: ...

@numpy_function
def logcdf(x: ArrayLike, loc: ArrayLike = ..., scale: ArrayLike = ...) -> Array: ...

@numpy_function
def logpdf(x: ArrayLike, loc: ArrayLike = ..., scale: ArrayLike = ...) -> Array: ...

@numpy_function
def logsf(x: ArrayLike, loc: ArrayLike = ..., scale: ArrayLike = ...) -> Array: ...

@numpy_function
def pdf(x: ArrayLike, loc: ArrayLike = ..., scale: ArrayLike = ...) -> Array: ...

@numpy_function
def ppf(p: ArrayLike, loc: ArrayLike = ..., scale: ArrayLike = ...) -> Array: ...

@numpy_function
def sf(x: ArrayLike, loc: ArrayLike = ..., scale: ArrayLike = ...) -> Array: ...
