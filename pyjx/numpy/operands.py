"""What the functions of this package ask of their arguments: operands, and what is made in their
likeness; axes, checked and made tuples; and how functions that take lists are called.
"""

from __future__ import annotations

import functools
import inspect
import operator
import warnings
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NoReturn, TypeVar, overload

import numpy as np

from pyjx import lax
from pyjx.core import dtypes, integers
from pyjx.core.array_type import Array, ArrayLike, AxisLike, DTypeLike
from pyjx.core.avals import entries, get_aval
from pyjx.core.scalars import wrapped_constant
from pyjx.core.trace import Tracer, concrete_or_error, eager_trace, state
from pyjx.core.value_texts import shortened
from pyjx.engine.tangents import full_aval
from pyjx.guards import guard
from pyjx.lax.elementwise import stretch
from pyjx.lazy import deferred
from pyjx.numpy.promotion import convert
from pyjx.runtime.operations import as_arrays, op_jit
from pyjx.runtime.signature import argument_sets
from pyjx.runtime.transfers import array_for

call_notes = deferred("pyjx.core.call_notes")  # for errors alone

# Lists of operands go through C++ as trees, which those who call with them need not know.
warnings.filterwarnings("ignore", "Python iterable type", DeprecationWarning, __name__)

# -- operands --------------------------------------------------------------------------------------


def dtype_of(x: ArrayLike) -> Any:
    return get_aval(x).dtype


def is_integer(x: ArrayLike) -> bool:
    return dtype_of(x) in dtypes.integer_dtypes


def is_inexact(x: ArrayLike) -> bool:
    dtype = dtype_of(x)
    return dtype in dtypes.floating_dtypes or dtype in dtypes.complex_dtypes


def is_complex(x: ArrayLike) -> bool:
    return dtype_of(x) in dtypes.complex_dtypes


def constant_like(x: ArrayLike, value: ArrayLike) -> Any:
    """`value` as a scalar of the type of `x`, to stand beside it in an operation."""
    aval = get_aval(x)
    return wrapped_constant(value, aval.dtype, aval.weak_type)


def beside_constants(x: ArrayLike) -> Any:
    """`x` as it is beside an array of constants, which is of strong type; scalars stay weak."""
    aval = get_aval(x)
    return convert(x, aval.dtype) if aval.weak_type and aval.ndim else x


def as_bool(x: ArrayLike) -> Any:
    """Where x is not zero."""
    dtype = dtype_of(x)
    if dtype == dtypes.bool_dtype:
        return x
    if dtype == dtypes.float0:
        raise dtypes.float0_error("a logical function")
    return lax.ne(beside_constants(x), constant_like(x, 0))


def filled_like(x: ArrayLike, value: ArrayLike, dtype: DTypeLike | None = None) -> Any:
    """An array of the shape of `x` filled with a number; without `dtype`, of the type of `x`."""
    aval = get_aval(x)
    if dtype is not None:
        return full_aval(aval.update(dtype=np.dtype(dtype), weak_type=False), value)
    if aval.place.sharding is not None:
        return full_aval(aval, value)
    return stretch(constant_like(x, value), aval.shape)


# -- axes ------------------------------------------------------------------------------------------

_all_axes: list[tuple[int, ...]] = [tuple(range(n)) for n in range(16)]


def all_axes(ndim: int) -> tuple[int, ...]:
    """Every axis of an array of `ndim` dimensions."""
    return _all_axes[ndim] if ndim < 16 else tuple(range(ndim))


def canonical_axis(axis: Any, ndim: int) -> int:
    """`axis` counted from the front.

    Raises:
      TypeError: it is no integer.
      AxisError: there is no such axis; a ValueError and an IndexError.

    >>> canonical_axis(-1, 3)
    2
    """
    try:
        axis = operator.index(axis)
    except TypeError as error:
        _refuse(axis, error)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis + ndim if axis < 0 else axis


def along(a: ArrayLike, axis: Any) -> tuple[Any, int]:
    """The array, and its axis counted from the front; None is that of the flat array.

    Raises:
      TypeError: it is no integer.
      AxisError: there is no such axis.
    """
    if axis is None:
        return lax.reshape(a, (get_aval(a).size,)), 0
    return a, canonical_axis(axis, get_aval(a).ndim)


def _refuse(axis: AxisLike, error: TypeError) -> NoReturn:
    if type(error) is not TypeError:  # one that says where the traced value comes from
        raise error
    raise TypeError(f"axis must be an integer, got {shortened(axis)}: {error}") from None


def canonical_axes(axis: int | Sequence[int | str] | None, ndim: int) -> tuple[int, ...]:
    """The axes that an int, a sequence of ints or None (for all) stands for.

    Raises:
      TypeError: `axis` is none of these; ConcretizationTypeError where it is traced.
      AxisError: an axis is out of bounds.
      ValueError: an axis is named twice.

    >>> canonical_axes((0, -1), 3)
    (0, 2)
    """
    if axis is None:
        return all_axes(ndim)
    if type(axis) is int:
        return (canonical_axis(axis, ndim),)
    axis = _known(axis)
    if hasattr(axis, "__index__") and not (isinstance(axis, np.ndarray) and axis.ndim):
        return (canonical_axis(axis, ndim),)
    try:
        given = tuple(entries(axis))
    except TypeError:
        return (canonical_axis(axis, ndim),)  # which says what an axis is
    axes = tuple([canonical_axis(a, ndim) for a in given])
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {shortened(given)}")
    return axes


def names_in(axis: object) -> tuple[str, ...]:
    """The names of mapped axes among those that `axis` gives: see `pyjx.vmap`.

    >>> names_in((0, "i"))
    ('i',)
    """
    if type(axis) is str:
        return (axis,)
    if isinstance(axis, (tuple, list)):
        return tuple([a for a in axis if isinstance(a, str)])
    return ()


def axes_and_names(axis: Any, ndim: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """As `canonical_axes`, of what is no name; and the names.

    >>> axes_and_names((-1, "i"), 3)
    ((2,), ('i',))
    """
    names = names_in(axis)
    if names:
        axis = [a for a in ([] if type(axis) is str else axis) if not isinstance(a, str)]
    return canonical_axes(axis, ndim), names


def _known(x: object) -> Any:
    """What was given as an int or a sequence of ints; ConcretizationTypeError if that is traced."""
    return concrete_or_error(None, x, "The axes and sizes that an operation is given decide the "
                             "shape of its result.") if isinstance(x, Tracer) else x


def as_tuple(x: int | Sequence[int] | Array) -> tuple[int, ...]:
    """The ints that an int or a sequence of ints stands for.

    Raises:
      ConcretizationTypeError: it is traced.
    """
    found = _known(x)
    try:
        return (integers.index(found),)
    except TypeError:
        return tuple([integers.index(i) for i in entries(found)])


# -- how functions are called ----------------------------------------------------------------------

F = TypeVar("F", bound=Callable[..., Any])


@overload
def numpy_function(fun: F, /, *, static_argnames: tuple[str, ...] = ()) -> F: ...


@overload
def numpy_function(*, static_argnames: tuple[str, ...], known: bool = False,
                   unchanged: Callable[..., Any] | None = None) -> Callable[[F], F]: ...


@guard  # and so what it defines
def numpy_function(fun: Callable[..., Any] | None = None, /, *,
                   static_argnames: tuple[str, ...] = (), known: bool = False,
                   unchanged: Callable[..., Any] | None = None) -> Any:
    """`op_jit` for functions whose static arguments may be lists, which C++ refuses. Costs a
    Python call more. With `known` a NumPy array that it gives inside `jit` stays one.

    `unchanged` says of positional arguments which array the function returns as it is, or None: a
    compiled program would copy it."""
    if fun is None:
        return functools.partial(numpy_function, static_argnames=static_argnames, known=known,
                                 unchanged=unchanged)
    body: Callable[..., Any] = fun
    compiled = op_jit(body, static_argnames=static_argnames, lists=True)
    if not static_argnames:
        return compiled
    positions, names = argument_sets(body, None, static_argnames)

    @functools.wraps(body)
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            if state.dynamic is not eager_trace:
                out = body(*args, **kwargs)
                return out if known else array_for(out)
            if unchanged is not None and not kwargs:
                same = unchanged(*args)
                if same is not None:
                    return same
            try:
                return compiled(*args, **kwargs)
            except ValueError:  # from C++, for a list as a static argument, or from the function
                if any(_stays(x) for i, x in enumerate(args) if i in positions) or any(
                        _stays(x) for k, x in kwargs.items() if k in names):
                    return body(*args, **kwargs)  # which takes its value where that is known
                taken = inspect.signature(body).parameters
                order = list(taken.values())
                hashable = [_static(body, order[i], x) if i in positions else x
                            for i, x in enumerate(args)]
                named = {k: _static(body, taken.get(k), x) if k in names else x
                         for k, x in kwargs.items()}
                if (all(x is y for x, y in zip(hashable, args, strict=True))
                        and all(x is kwargs[k] for k, x in named.items())):
                    raise
            return compiled(*hashable, **named)
        except Exception as error:
            if (given := as_arrays(args, kwargs)) is not None:
                return function(*given[0], **given[1])
            call_notes.note_call(error, body, args, kwargs, static_argnames)
            raise

    return function


def refuse_in_place(name: str) -> None:
    """What a function of NumPy's does that is to write to an array."""
    raise ValueError(f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are "
                     "immutable. Pass inplace=False to instead return an updated array.")


def _holds_tracer(x: ArrayLike) -> bool:
    return isinstance(x, Tracer) or (isinstance(x, (list, tuple)) and any(map(_holds_tracer, x)))


def _stays(x: Any) -> bool:
    """Whether a static argument is given to the function as it is: one that is traced, or a large
    array, which may have come by mistake."""
    return _holds_tracer(x) or (hasattr(x, "__array__") and not isinstance(x, type)
                                and getattr(x, "size", 0) > _MOST_FROZEN)


_MOST_FROZEN = 1000


def alias(name: str, function: F, make: Callable[[Any], Any] = op_jit) -> F:
    """A function as another one, with a name of its own, which its messages begin with.

    Args:
      name: its name.
      function: the other function.
      make: what makes the callable of a body.
    """
    body: Any = getattr(function, "__wrapped__", function)
    other = body.__name__
    code = body.__code__.replace(co_name=name, co_qualname=name)  # errors are told by it
    copy = FunctionType(code, body.__globals__, name, body.__defaults__, body.__closure__)
    copy.__kwdefaults__, copy.__annotations__ = body.__kwdefaults__, body.__annotations__
    copy.__module__, copy.other_name = body.__module__, other  # type: ignore[attr-defined]
    copy.__doc__ = f"Alias of `jax.numpy.{other}`.\n\n{body.__doc__}"
    return make(copy)  # type: ignore[no-any-return]


def _static(function: Callable[..., Any], parameter: inspect.Parameter | None, x: Any) -> Any:
    """A static argument made hashable; several values are no flag, which Python takes for True."""
    frozen = _frozen(x)
    if parameter and frozen is not x and type(frozen) is tuple and (
            parameter.annotation == "bool" or type(parameter.default) is bool):
        integers.as_bool(function.__name__, parameter.name, x)
    if parameter and hasattr(x, "__array__") and parameter.default is parameter.empty and (
            parameter.annotation == "int"):
        integers.as_int(function.__name__.lstrip("_"), parameter.name, x)
    return frozen


def _frozen(x: Any) -> Any:
    """A static argument made hashable: lists and arrays become tuples."""
    if hasattr(x, "__array__") and not isinstance(x, (np.generic, Tracer, type)):
        x = x.tolist()
    if not isinstance(x, (list, tuple)):
        return x
    frozen = tuple([_frozen(y) for y in x])
    same = isinstance(x, tuple) and all(a is b for a, b in zip(x, frozen, strict=True))
    return x if same else frozen
