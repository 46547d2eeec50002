"""NumPy's universal functions: objects that apply a function of numbers to arrays, in several ways.

A call is that of the C++ callable in the object's slot `__call__`: it costs what the callable
costs alone, as no Python runs. Reductions and the like go to an operation of arrays where there is
one, and otherwise through the elements one by one.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from pyjx import configuration, lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import moveaxis, transpose
from pyjx.lax.elementwise import stretch
from pyjx.lazy import deferred
from pyjx.numpy.operands import canonical_axes, canonical_axis, is_integer, numpy_function
from pyjx.numpy.promotion import as_operand, convert, fitted, is_arraylike, operands
from pyjx.runtime.abstract import eval_shape
from pyjx.runtime.operations import op_jit

inspect = deferred("inspect")  # slow to load, and seldom needed

_Body = Callable[..., Any]


class _Signature:
    """What `inspect` says of the call of any of them."""

    def __get__(self, instance: object, owner: object = None) -> Any:
        if instance is None:
            raise AttributeError("__signature__")  # the class has that of its constructor
        return inspect.signature(_any_call)


def _any_call(*args: Any, out: None = None, where: None = None) -> Any: ...


def unsupported(name: str, out: object) -> NotImplementedError:
    """What a call raises whose `out` or `where` is not None: arrays do not change."""
    given, cure = ("where", "use jnp.where on the result") if out is None else (
        "out", f"arrays do not change: x = jnp.{name}(...) names the new one")
    return NotImplementedError(f"{given} argument of <jnp.ufunc {name!r}> is not supported; {cure}")


class ufunc:
    """A function of numbers that is applied to arrays element by element.

    Args:
      func: a function of `nin` scalars that gives `nout`.
      nin, nout: how many arguments and results it has.
      name: what it is called; by default as `func`.
      nargs: the number of arguments; nin by default.
      identity: the value that changes no other, with which reductions begin; None if there is none.
      call: a function of arrays that does the same; by default `func` is mapped.

    >>> import pyjx as jax
    >>> jax.numpy.add, jax.numpy.add.reduce(jax.numpy.arange(4)).item()
    (<jnp.ufunc 'add'>, 6)
    """

    __slots__ = ("__call__", "__dict__", "__weakref__")

    __call__: Callable[..., Any]
    __wrapped__: _Body
    _reduce: _Body | None
    _accumulate: _Body | None
    _at: _Body | None
    __signature__ = _Signature()

    def __init__(self, func: _Body, /, nin: int, nout: int, *, name: str | None = None,
                 nargs: int | None = None, identity: ArrayLike | None = None,
                 call: _Body | None = None) -> None:
        if not callable(func):
            raise TypeError(f"ufunc: func must be a function, got {shortened(func)}")
        self.__name__ = name or str(getattr(func, "__name__", "func"))
        self.__qualname__ = self.__name__
        self.__doc__ = func.__doc__
        self.__module__ = "pyjx.numpy"
        self.nin = operator.index(nin)
        self.nout = operator.index(nout)
        self.nargs = self.nin if nargs is None else operator.index(nargs)
        self.identity = identity
        self._func = func
        self._reduce = self._accumulate = self._at = None
        self._call = call
        self.__wrapped__ = call or self._mapped(func)
        self.__call__ = op_jit(self.__wrapped__)

    def define(self, *, identity: ArrayLike | None = None, reduce: _Body | None = None,
               accumulate: _Body | None = None, at: _Body | None = None) -> None:
        """Give it its identity, and functions of arrays that do what its methods do at once, which
        take the same arguments as keywords."""
        self.identity = identity
        self._reduce, self._accumulate, self._at = reduce, accumulate, at

    def _mapped(self, func: _Body) -> _Body:
        """`func` of arrays, element by element."""
        mapped = jnp.vectorize(func)
        name = self.__name__

        def body(*args: Any, out: None = None, where: None = None) -> Any:
            if out is not None or where is not None:
                raise unsupported(name, out)
            return mapped(*operands(name, *args))

        body.__name__ = body.__qualname__ = name
        return body

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__name__!r}>"

    def _key(self) -> tuple[Any, ...]:
        return (self._func, self.__name__, self.nin, self.nout, self.nargs, self._call,
                self._reduce, self._at)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ufunc) and self._key() == other._key()
                                 and bool(self.identity == other.identity))

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        if getattr(sys.modules["pyjx.numpy"], self.__name__, None) is self:
            return self.__name__
        return functools.partial(ufunc, name=self.__name__, nargs=self.nargs,
                                 identity=self.identity), (self._func, self.nin, self.nout)

    def _check(self, method: str, out: object) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value")
        if out is not None:
            raise NotImplementedError(f"out argument of {self.__name__}.{method}()")

    def reduce(self, a: ArrayLike, axis: int | Sequence[int] = 0, dtype: DTypeLike | None = None,
               out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
               where: ArrayLike | None = None) -> Array:
        """All elements along an axis combined to one, from the first to the last.

        Args:
          a: array.
          axis: the axis, several, or None for all.
          dtype: what is computed in; by default the function's own of the array's dtype.
          out: must be None.
          keepdims: whether the axis stays, with size 1.
          initial: what to begin with; the identity by default.
          where: a mask of the elements to combine.

        Raises:
          ValueError: the function is not binary, or there is nothing to begin with.

        >>> import pyjx as jax
        >>> jax.numpy.subtract.reduce(jax.numpy.array([7, 2, 1])).item()
        4
        """
        self._check("reduce", out)
        if where is not None and initial is None and self.identity is None:
            raise ValueError(f"reduction operation {self.__name__!r} does not have an identity, so "
                             "to use a where mask one has to specify 'initial'.")
        (a,) = operands(f"{self.__name__}.reduce", a)
        if where is not None and is_arraylike(where) and (
                get_aval(as_operand(where)).dtype != np.bool_):
            raise ValueError(f"{self.__name__}.reduce: where argument must have dtype=bool; got "
                             f"dtype={get_aval(as_operand(where)).dtype}")
        if not get_aval(a).ndim and axis is not None and axis != ():
            canonical_axes(axis, 0)
        if self._reduce is not None:
            return self._reduce(a, axis=axis, dtype=dtype, keepdims=keepdims,  # type: ignore
                                initial=initial, where=where)
        return fold(self, a, axis, dtype, keepdims, initial, where)

    def accumulate(self, a: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Array:
        """The results of `reduce` of the first element, the first two, and so on.

        Args:
          a: array.
          axis: the axis.
          dtype: what is computed in.
          out: must be None.

        Raises:
          ValueError: the function is not binary, or there is no such axis.

        >>> import pyjx as jax
        >>> jax.numpy.subtract.accumulate(jax.numpy.array([7, 2, 1])).tolist()
        [7, 5, 4]
        """
        self._check("accumulate", out)
        (a,) = operands(f"{self.__name__}.accumulate", a)
        if self._accumulate is not None:
            return self._accumulate(a, axis=axis, dtype=dtype)  # type: ignore[no-any-return]
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError("accumulate does not allow multiple axes")
        return _accumulated(self, a, axis, dtype)

    def at(self, a: ArrayLike, indices: object, b: ArrayLike | None = None, /, *,
           inplace: bool = True) -> Array:
        """A copy of `a` whose elements at an index are replaced by the function of them, and of b.

        It has the dtype of the function's results, but for those of `add`, `multiply` and
        `subtract`, which are cast to that of `a`.

        Args:
          a: array.
          indices: an index, as of `a.at`; what it names several times is replaced as often.
          b: the second operands of a binary function; broadcast to `a[indices]`.
          inplace: must be False, as arrays do not change.

        Raises:
          NotImplementedError: `inplace` is not False.

        >>> import pyjx as jax
        >>> index = jax.numpy.array([0, 0])
        >>> jax.numpy.add.at(jax.numpy.zeros(2), index, 1.0, inplace=False).tolist()
        [2.0, 0.0]
        """
        if inplace:
            raise NotImplementedError(
                "Because JAX arrays are immutable, jnp.ufunc.at() cannot operate inplace like "
                "np.ufunc.at(). Instead, you can pass inplace=False and capture the result; e.g.\n"
                f">>> arr = jnp.{self.__name__}.at(arr, ind, val, inplace=False)")
        name = f"{self.__name__}.at"
        (a,) = operands(name, a)
        if self.nout != 1:
            raise ValueError("at only supported for functions returning a single value")
        if (self.nin == 2) != (b is not None) or self.nin > 2:
            raise TypeError(f"{name}: b is for functions of two numbers, which need it; "
                            f"{self.__name__} has {self.nin}.")
        a = jnp.asarray(a)
        if self._at is not None:
            return self._at(a, indices, b)  # type: ignore[no-any-return]
        size = get_aval(a).size
        places = lax.reshape(jnp.arange(size), get_aval(a).shape).at[indices].get(
            mode="fill", fill_value=size)
        if b is None:
            return _replaced(self, a, places)
        (b,) = operands(name, b)
        return _replaced(self, a, places, fitted(b, get_aval(places).shape))

    def reduceat(self, a: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: None = None
                 ) -> Array:
        """`reduce` of the elements from `indices[i]` up to `indices[i + 1]`, for each i.

        Where the next index is not greater, it is the element at the first; the last range goes
        to the end.

        Args:
          a: array.
          indices: array of ints of rank 1.
          axis: the axis.
          dtype: what is computed in.
          out: must be None.

        Raises:
          ValueError: the function is not binary, or `indices` is of another rank.

        >>> import pyjx as jax
        >>> jax.numpy.add.reduceat(jax.numpy.arange(5), jax.numpy.array([0, 3])).tolist()
        [3, 7]
        """
        self._check("reduceat", out)
        a, indices = operands(f"{self.__name__}.reduceat", a, indices)
        if get_aval(indices).ndim != 1:
            raise ValueError("reduceat: indices must be one-dimensional, got indices.shape="
                             f"{get_aval(indices).shape}")
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError("reduceat requires a single integer axis.")
        if not get_aval(a).ndim:
            raise ValueError("reduceat: a must have 1 or more dimension, got a.shape=()")
        if is_integer(indices):
            indices = convert(indices, dtypes.default_int_dtype())
        return _reduced_at(self, a, indices, axis, dtype)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function of each element of A with each element of B, of shape `A.shape + B.shape`.

        >>> import pyjx as jax
        >>> jax.numpy.subtract.outer(jax.numpy.arange(2), jax.numpy.arange(3)).tolist()
        [[0, -1, -2], [1, 0, -1]]
        """
        self._check("outer", None)
        A, B = operands(f"{self.__name__}.outer", A, B)
        return _outer(self, A, B)


class BinaryUfunc(ufunc):
    """A ufunc of two arrays with one result, as type checkers see it."""

    if TYPE_CHECKING:
        def __call__(self, x: ArrayLike, y: ArrayLike, /, *,  # type: ignore[override]
                     out: None = None, where: None = None) -> Array: ...


@overload
def universal(nin: Literal[2]) -> Callable[[_Body], BinaryUfunc]: ...


@overload
def universal(nin: int) -> Callable[[_Body], ufunc]: ...


def universal(nin: int) -> Callable[[_Body], Any]:
    """Make a ufunc of a function of arrays.

    >>> universal(1)(abs)
    <jnp.ufunc 'abs'>
    """
    return lambda body: ufunc(body, nin, 1, call=body)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *,
               identity: ArrayLike | None = None) -> ufunc:
    """The universal function of a Python function of scalars, which must be traceable.

    Args:
      func: takes `nin` scalars and returns `nout`.
      nin, nout: how many arguments and results it has.
      identity: the value that changes no other; reductions begin with it.

    Returns:
      A `ufunc`.

    >>> import pyjx as jax
    >>> jax.numpy.frompyfunc(lambda x, y: x + 2 * y, 2, 1).reduce(jax.numpy.arange(3)).item()
    6
    """
    return ufunc(func, nin, nout, identity=identity)


# -- element by element ----------------------------------------------------------------------------


def _scalar_of(x: ArrayLike) -> ShapedArray:
    """The type of one element."""
    aval = get_aval(x)
    return ShapedArray((), aval.dtype, aval.weak_type)


def _dtype_of(function: ufunc, a: ArrayLike, dtype: DTypeLike | None) -> Any:
    """That in which the elements of `a` are combined."""
    if dtype is not None:
        return dtypes.check_and_canonicalize_user_dtype(dtype, function.__name__)
    one = _scalar_of(a)
    return eval_shape(function.__wrapped__, one, one).dtype


def _in_front(x: ArrayLike, axes: tuple[int, ...]) -> Any:
    """The array with the axes made one, which is the first."""
    aval = get_aval(x)
    rest = [i for i in range(aval.ndim) if i not in axes]
    x = transpose(x, (*axes, *rest)) if axes != tuple(range(len(axes))) else x
    count = math.prod([aval.shape[i] for i in axes])
    return lax.reshape(x, (count, *[aval.shape[i] for i in rest]))


@numpy_function(static_argnames=("function", "axis", "dtype", "keepdims"))
def fold(function: ufunc, a: ArrayLike, axis: int | Sequence[int] = 0, dtype: Any = None,
         keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None
        ) -> Any:
    """`ufunc.reduce`, element by element."""
    body, dtype = function.__wrapped__, _dtype_of(function, a, dtype)
    shape = get_aval(a).shape
    axes = canonical_axes(axis, len(shape))
    x = _in_front(convert(a, dtype), axes)
    kept = None if where is None else _in_front(fitted(jnp.asarray(where, bool), shape), axes)
    if initial is None:
        initial = function.identity
    if initial is not None:
        start = fitted(jnp.asarray(initial, dtype), get_aval(x).shape[1:])
    elif get_aval(x).shape[0] == 0:
        raise ValueError(f"zero-size array to reduction operation {function.__name__} which has "
                         "no identity")
    else:
        start, x = x[0], x[1:]

    def step(total: ArrayLike, element: Any) -> tuple[Any, None]:
        x, keep = element
        new = convert(body(total, x), dtype)
        return (new if keep is None else lax.select(keep, new, total)), None

    out, _ = lax.scan(step, start, (x, kept))
    return lax.reshape(out, [1 if i in axes else n for i, n in enumerate(shape)]) \
        if keepdims else out


@numpy_function(static_argnames=("function", "axis", "dtype"))
def _accumulated(function: ufunc, a: Array, axis: int, dtype: np.dtype[Any]) -> Any:
    body, dtype = function.__wrapped__, _dtype_of(function, a, dtype)
    axis = canonical_axis(axis, get_aval(a).ndim)
    x = moveaxis(convert(a, dtype), axis, 0)
    if not get_aval(x).size:
        return moveaxis(x, 0, axis)

    def step(total: ArrayLike, x: ArrayLike) -> tuple[Any, Any]:
        new = convert(body(total, x), dtype)
        return new, new

    _, rest = lax.scan(step, x[0], x[1:])
    return moveaxis(lax.concatenate([x[:1], rest], 0), 0, axis)


def _flat(x: ArrayLike) -> Any:
    return lax.reshape(x, (get_aval(x).size,))


@op_jit(static_argnames=("function",))
def _replaced(function: ufunc, a: ArrayLike, places: Any, *second: Any) -> Any:
    body = function.__wrapped__
    dtype = eval_shape(body, *[_scalar_of(x) for x in (a, *second)]).dtype
    # Results so far may be of another dtype than `a` was, which promotion need not allow.
    with configuration.numpy_dtype_promotion("standard"):
        combined = dtypes.result_type(dtype, *second)
    changes = dtype != get_aval(a).dtype
    a = convert(a, dtype)
    aval = get_aval(a)

    def step(flat: Any, element: Any) -> tuple[Any, None]:
        place, *others = element
        taken = (flat.at[place].get(mode="clip"), *others)
        new = body(*[convert(x, combined) for x in taken] if changes else taken)
        return flat.at[place].set(convert(new, dtype), mode="drop"), None

    if not aval.size:
        return a
    elements = tuple([_flat(x) for x in (places, *second)])
    flat, _ = lax.scan(step, _flat(a), elements)
    return lax.reshape(flat, aval.shape)


@numpy_function(static_argnames=("function", "axis", "dtype"))
def _reduced_at(function: ufunc, a: Array, indices: Array, axis: int, dtype: np.dtype[Any]) -> Any:
    weak = get_aval(a).weak_type and dtype is None
    body, dtype = function.__wrapped__, _dtype_of(function, a, dtype)
    axis = canonical_axis(axis, get_aval(a).ndim)
    x = moveaxis(convert(a, dtype), axis, 0)
    size = get_aval(x).shape[0]
    ends = lax.concatenate([indices[1:], lax.full((1,), size, get_aval(indices).dtype)], 0)
    apart = (get_aval(indices).shape[0],) + (1,) * (get_aval(x).ndim - 1)

    def step(totals: ArrayLike, element: Any) -> tuple[Any, None]:
        i, x = element
        inside = stretch(lax.reshape((i > indices) & (i < ends), apart), get_aval(totals).shape)
        return lax.select(inside, convert(body(totals, x[None]), dtype), totals), None

    out, _ = lax.scan(step, x.at[indices].get(mode="fill"), (jnp.arange(size), x))
    return convert(moveaxis(out, 0, axis), dtype, weak and get_aval(a).dtype == dtype)


@op_jit(static_argnames=("function",))
def _outer(function: ufunc, x: ArrayLike, y: ArrayLike) -> Any:
    a, b = get_aval(x), get_aval(y)
    out = function.__wrapped__(lax.reshape(x, a.shape + (1,) * b.ndim),
                               lax.reshape(y, (1,) * a.ndim + b.shape))
    if a.weak_type or b.weak_type:  # it is as that of two scalars
        one = eval_shape(function.__wrapped__, _scalar_of(x), _scalar_of(y))
        out = convert(out, one.dtype, one.weak_type)
    return out
