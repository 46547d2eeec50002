"""Functions of the user's applied to parts of arrays: `vectorize`, for functions of single values
or of small arrays, and functions along axes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import entries, get_aval
from pyjx.core.value_texts import shortened
from pyjx.engine.functions import with_at
from pyjx.lax.common import broadcast_shapes
from pyjx.numpy.creation import asarray
from pyjx.numpy.operands import canonical_axis
from pyjx.numpy.promotion import check_batch_ranks, operands
from pyjx.transforms.arguments import wraps
from pyjx.transforms.vmap import vmap

Names = tuple[str, ...]  # of the axes of one operand

_NAME = r"\w+"
_ONE = rf"\((?:{_NAME}(?:,{_NAME})*)?\)"
_SEVERAL = rf"{_ONE}(?:,{_ONE})*"
_SIGNATURE = re.compile(rf"{_SEVERAL}->{_SEVERAL}")


def parse_signature(signature: str) -> tuple[list[Names], list[Names]]:
    """The names of the axes of each argument and result of `(n),(m,n)->(m)`.

    Raises:
      ValueError: it is not of this form.

    >>> parse_signature("(n),(m,n)->(m)")
    ([('n',), ('m', 'n')], [('m',)])
    """
    if not _SIGNATURE.fullmatch(signature):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    arguments, results = [
        [tuple(re.findall(_NAME, one)) for one in re.findall(_ONE, side)]
        for side in signature.split("->")]
    return arguments, results


def vectorize(pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(),
              signature: str | None = None) -> Callable[..., Any]:
    """A function of arrays that applies `pyfunc` to their elements, or parts; by `vmap`.

    Args:
      pyfunc: takes values of rank 0 or, with `signature`, small arrays, and returns such. It must
        be traceable.
      excluded: positions and names of arguments that are passed as they are.
      signature: such as "(m,n),(n)->(m)": the axes that a call of `pyfunc` takes and gives. Axes of
        one name have one size. The axes before them are broadcast against each other and mapped.

    Returns:
      A function of as many arrays. Keyword arguments must be excluded ones.

    Raises:
      TypeError: `excluded` holds something else, or a call has another number of arguments.
      ValueError: the signature is none, or an array does not agree with it.

    >>> import pyjx as jax
    >>> dot = jax.numpy.vectorize(jax.numpy.dot, signature="(n),(n)->()")
    >>> dot(jax.numpy.ones((2, 3)), jax.numpy.arange(3)).tolist()
    [3.0, 3.0]
    """
    if not callable(pyfunc):
        raise TypeError(f"vectorize: Expected a callable value, got {shortened(pyfunc)}")
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError("jax.numpy.vectorize can only exclude integer or string arguments, but "
                        f"excluded={excluded!r}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")

    @functools.wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        unknown = [key for key in kwargs if key not in excluded]
        if unknown:
            raise TypeError(f"vectorize: keyword arguments are passed as they are, so they must be "
                            f"in excluded, which {unknown[0]!r} is not, {context()}: pass it by "
                            "position.")
        mapped = [i for i in range(len(args)) if i not in excluded and args[i] is not None]

        function = wraps(pyfunc, lambda *values: pyfunc(*with_at(args, mapped, values), **kwargs))
        arrays = [jnp.asarray(args[i]) for i in mapped]
        if signature is None:
            cores: list[Names] = [()] * len(arrays)
        else:
            cores, results = parse_signature(signature)
            missing = {i for i in range(len(args)) if i not in excluded and args[i] is None}
            if missing:
                raise ValueError(f"vectorize: Cannot pass None at locations {missing} with "
                                 f"{signature=}. Put them in excluded.")
            if len(arrays) != len(cores):
                raise TypeError(f"wrong number of positional arguments: expected {len(cores)}, got "
                                f"{len(arrays)} {context()}")
            sizes = core_sizes(arrays, cores, context)
            function = checked(function, results, sizes, context)
        check_batch_ranks(str(signature), [get_aval(x).shape for x in arrays],
                          list(map(len, cores)))
        return _mapped(function, arrays, cores)

    def context() -> str:
        return f"on vectorized function with excluded={excluded!r} and signature={signature!r}"

    return vectorized


Context = Callable[[], str]


def core_sizes(arrays: Sequence[Any], cores: Sequence[Names], context: Context) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for x, names in zip(arrays, cores, strict=True):
        shape = x.shape
        if len(shape) < len(names):
            raise ValueError(f"input with shape {shape} does not have enough dimensions for all "
                             f"core dimensions {names} {context()}")
        _note_sizes(sizes, shape[len(shape) - len(names):], names, context)
    return sizes


def _note_sizes(sizes: dict[str, int], shape: tuple[int, ...], names: Names, context: Context
                ) -> None:
    for name, n in zip(names, shape, strict=True):
        if sizes.setdefault(name, n) != n:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {n} vs "
                             f"{sizes[name]} {context()}")


def checked(function: Callable[..., Any], results: Sequence[Names], sizes: dict[str, int],
            context: Context) -> Callable[..., Any]:
    """The function, whose results must have the axes that the signature says."""
    def with_check(*values: Any) -> Any:
        out = function(*values)
        if len(results) > 1 and not isinstance(out, (tuple, list)):
            raise TypeError("output must be a tuple when multiple outputs are expected, got: "
                            f"{out!r} {context()}")
        parts = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(parts) != len(results):
            raise TypeError(f"wrong number of output arguments: expected {len(results)}, got "
                            f"{len(parts)} {context()}")
        every = dict(sizes)
        for part, names in zip(parts, results, strict=True):
            shape = jnp.shape(part)
            if len(shape) != len(names):
                raise ValueError(f"output shape {shape} does not match core dimensions {names} "
                                 f"{context()}")
            _note_sizes(every, shape, names, context)
        return out

    return wraps(function, with_check)


def _mapped(function: Callable[..., Any], arrays: list[Any], cores: Sequence[Names]) -> Any:
    """The function mapped over the axes before those of a call."""
    outer = [get_aval(x).shape[:get_aval(x).ndim - len(names)]
             for x, names in zip(arrays, cores, strict=True)]
    shape = broadcast_shapes(*outer) if outer else ()
    # Axes of size 1 that others stretch are dropped: along these, the array is not mapped.
    kept = []
    for i, own in enumerate(outer):
        offset = len(shape) - len(own)
        stretched = [d for d, n in enumerate(own) if n != shape[offset + d]]
        arrays[i] = lax.squeeze(arrays[i], stretched)
        kept.append({offset + d for d in range(len(own)) if d not in stretched})
    for d in reversed(range(len(shape))):
        function = vmap(function, in_axes=tuple([0 if d in axes else None for axes in kept]))
    return function(*arrays)


# -- functions along axes --------------------------------------------------------------------------


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any,
                     **kwargs: Any) -> Array:
    """A function of vectors applied to those along an axis, all at once by `vmap`.

    Args:
      func1d: takes an array of rank 1 and `args` and `kwargs`; returns an array.
      axis: the axis, which the axes of the results replace.
      arr: array.
      *args, **kwargs: what the function gets besides.

    Returns:
      An array of the axes of `arr`, but that those of one result stand in the place of `axis`.

    Raises:
      ValueError: there is no such axis.

    >>> import pyjx as jax
    >>> jax.numpy.apply_along_axis(jax.numpy.sum, 1, jax.numpy.ones((2, 3))).tolist()
    [3.0, 3.0]
    """
    (arr,) = operands("apply_along_axis", arr)
    ndim = get_aval(arr).ndim
    axis = canonical_axis(axis, ndim)
    function: Any = with_arguments(func1d, args, kwargs)
    for _ in range(ndim - axis - 1):
        function = vmap(function, in_axes=-1, out_axes=-1)
    for _ in range(axis):
        function = vmap(function)
    return function(arr)  # type: ignore[no-any-return]


def with_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
                   ) -> Callable[[Any], Any]:
    """The function of its first argument alone, with the others given."""
    return wraps(function, lambda x: function(x, *args, **kwargs))


def apply_over_axes(func: Callable[[Any, int], Any], a: Array, axes: Sequence[int]) -> Array:
    """A function of an array and an axis applied for one axis after the other.

    Args:
      func: takes an array and an axis; returns an array with or without that axis. One that went
        comes again with size 1.
      a: array.
      axes: the axes.

    Returns:
      What the last call of the function gives: an array of as many axes as `a`.

    Raises:
      ValueError: a result has another rank.

    >>> import pyjx as jax
    >>> jax.numpy.apply_over_axes(jax.numpy.sum, jax.numpy.ones((2, 3)), [0, 1]).tolist()
    [[6.0]]
    """
    (a,) = operands("apply_over_axes", a)
    ndim = get_aval(a).ndim
    for axis in entries(axes):
        out = func(a, axis)
        if get_aval(out).ndim == ndim - 1:
            out = lax.expand_dims(out, (axis,))
        elif get_aval(out).ndim != ndim:
            raise ValueError("function is not returning an array of the correct shape")
        a = out
    return asarray(a)
