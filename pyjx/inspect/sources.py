"""Which elements of its operands an element of an operation's result is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.primitive import Primitive
from pyjx.inspect.numpy_interpreter import rule_of
from pyjx.lax.elementwise import elementwise_names

Element = tuple[int, ...]
# Elements of an operand: what its array is indexed with, slices of step 1 for its first axes, or a
# mask of its shape.
Elements = tuple[slice, ...] | np.ndarray
ALL: Elements = ()

# What gives each element, or its bits, in its own place, though it may be declared to move others.
_IN_PLACE = frozenset(["bitcast_convert_type", "convert_element_type", "polynomial", "pvary",
                       "preduced", "reduce_precision", "reduced_vary_cast", "reshard",
                       "sharding_constraint", "vary_unreduced_cast"])
_OF_MATRICES = frozenset([
    "cholesky", "det", "eig", "eigh", "geqrf", "getrf", "householder_product", "lu", "qr", "schur",
    "slogdet", "solve", "svd", "symmetric_product", "triangular_solve", "tridiagonal_solve"])
# What takes of the same elements as a linear operation does, and is not linear.
_READS_AS = {"reduce_window_max": lax.reduce_window_sum_p,
             "reduce_window_min": lax.reduce_window_sum_p, "scatter-max": lax.scatter_add_p,
             "scatter-min": lax.scatter_add_p, "scatter-mul": lax.scatter_add_p}
_LINE = slice(None)


def is_in_place(primitive: Primitive) -> bool:
    """Whether an operation makes each element of those that are in its own place."""
    return primitive.name in _IN_PLACE or primitive.name in elementwise_names or (
        primitive.of_elements and not primitive.moves)


def sources(eqn: JaxprEqn, operands: Sequence[Any], k: int, element: Element
            ) -> Iterator[tuple[int, Elements]]:
    """Of which operands, and of which elements of them, an element of result `k` is made. Where
    nobody knows it is all of them."""
    primitive, params, name = eqn.primitive, eqn.params, eqn.primitive.name
    in_place = is_in_place(primitive)
    if primitive.moves and not in_place:
        yield from _moved(eqn, operands, k, element)
        return
    rank = max([v.aval.ndim for v in eqn.invars])
    for i, v in enumerate(eqn.invars):
        if not dtypes.has_dtype(v.aval, np.inexact):
            continue
        if in_place:
            yield i, _at(element[:v.aval.ndim])
        elif name.startswith("reduce") and (axes := params.get("axes", params.get("dimensions"))):
            left = iter(element)
            yield i, tuple([_LINE if axis in axes else slice(at := next(left), at + 1)
                            for axis in range(v.aval.ndim)])
        elif name.startswith("cum"):
            at = element[params["axis"]]
            yield i, _along(params["axis"], slice(at, None) if params["reverse"]
                            else slice(0, at + 1), element)
        elif primitive is lax.sort_p:  # each operand for itself
            if i == k:
                yield i, _along(params["dimension"], _LINE, element)
        elif "top_k" in name:
            yield i, _along(params.get("axis", params.get("reduction_dimension", -1)) % v.aval.ndim,
                            _LINE, element)
        elif primitive is lax.dot_general_p:
            yield i, _line_of_product(params["dimension_numbers"], v.aval.ndim, i, element)
        elif name in _OF_MATRICES:
            yield i, _at(element[:rank - 2])
        elif primitive is lax.fft_p:
            yield i, _at(element[:v.aval.ndim - len(params["fft_lengths"])])
        elif primitive.linear or name in _READS_AS:
            yield i, _mask(eqn, operands, k, element, i)
        else:
            yield i, ALL


def first_of(bad: Callable[[Any], Any], x: Any, elements: Elements) -> Element | None:
    """The first bad element of an array among some of its elements."""
    mask = bad(x)
    part = mask & elements if isinstance(elements, np.ndarray) else mask[elements]
    if not part.any():
        return None
    at = np.unravel_index(part.argmax(), part.shape)
    starts = [s.start or 0 for s in elements] if isinstance(elements, tuple) else []
    return tuple([int(i) + n for i, n in zip(at, [*starts, *[0] * part.ndim], strict=False)])


def _at(element: Element) -> tuple[slice, ...]:
    return tuple([slice(i, i + 1) for i in element])


def _along(axis: int, elements: slice, element: Element) -> tuple[slice, ...]:
    """Some elements of the line along an axis in which an element is."""
    return (*_at(element[:axis]), elements, *_at(element[axis + 1:]))


def _line_of_product(numbers: Any, ndim: int, i: int, element: Element) -> tuple[slice, ...]:
    """The line, or more, of a factor that an element of a product is made of. A product's axes are
    those of the batch, the first factor's free ones, and the second's."""
    summed, batch = numbers[0][i], numbers[1][i]
    free = [axis for axis in range(ndim) if axis not in summed and axis not in batch]
    of_factor = element[len(batch):len(batch) + len(free)] if i == 0 else (
        element[len(element) - len(free):])
    known = dict(zip([*batch, *free], _at((*element[:len(batch)], *of_factor)), strict=True))
    return tuple([known.get(axis, _LINE) for axis in range(ndim)])


def _moved(eqn: JaxprEqn, operands: Sequence[Any], k: int, element: Element
           ) -> Iterator[tuple[int, Elements]]:
    """The one element that another is, if it is one: the operation moves their numbers, which count
    from 1, as what is filled in is 0."""
    sizes = {i: v.aval.size for i, v in enumerate(eqn.invars)
             if v.aval.dtype == eqn.outvars[k].aval.dtype}
    if sum(sizes.values()) >= 2**31:
        yield from [(i, ALL) for i in sizes]
        return
    numbers, last = list(operands), 1
    for i, size in sizes.items():
        numbers[i] = np.arange(last, last + size, dtype=np.int32).reshape(np.shape(operands[i]))
        last += size
    params = {**eqn.params, "fill_value": 0} if "fill_value" in eqn.params else eqn.params
    rule = rule_of(eqn.primitive)
    outs = eqn.primitive.bind(*numbers, **params) if rule is None else rule(
        *map(np.asarray, numbers), **params)
    number = int(np.asarray(outs[k] if eqn.primitive.multiple_results else outs)[element]) - 1
    for i, size in sizes.items():
        if 0 <= number < size:
            yield i, _at(tuple(map(int, np.unravel_index(number, np.shape(operands[i])))))
        number -= size


def _mask(eqn: JaxprEqn, operands: Sequence[Any], k: int, element: Element, i: int) -> np.ndarray:
    """The elements of an operand in which a linear operation makes an element: those to which it
    sends a cotangent back, were all others ones."""
    given: list[Any] = [jnp.ones_like(x) if dtypes.has_dtype(v.aval, np.inexact) else x
                        for v, x in zip(eqn.invars, operands, strict=True)]
    primitive = _READS_AS.get(eqn.primitive.name, eqn.primitive)

    def result(x: Any) -> Any:
        outs = primitive.bind(*given[:i], x, *given[i + 1:], **eqn.params)
        return outs[k] if primitive.multiple_results else outs

    out, transposed = jax.vjp(result, given[i])
    return np.asarray(transposed(jnp.zeros_like(out).at[element].set(1))[0]) != 0
