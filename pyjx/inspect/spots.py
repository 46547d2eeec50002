"""Where in values: the devices on which programs run, and the elements that another is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.specs import PartitionSpec
from pyjx.inspect.numpy_interpreter import rule_of
from pyjx.lax.elementwise import elementwise_names
from pyjx.parallel.calls import ordered

Element = tuple[int, ...]
# Those of an operand: what its array is indexed with, slices of step 1 for the first axes, or a
# mask.
Elements = tuple[slice, ...] | np.ndarray
ALL: Elements = ()

# What gives each element in its own place, though it may be declared to move others.
_IN_PLACE = frozenset(["convert_element_type", "imag", "polynomial", "pvary", "preduced", "real",
                       "reduce_precision", "reduced_vary_cast", "reshard", "sharding_constraint",
                       "vary_unreduced_cast"])
_OF_MATRICES = frozenset([
    "cholesky", "det", "eig", "eigh", "geqrf", "getrf", "householder_product", "lu", "qr", "schur",
    "slogdet", "solve", "svd", "symmetric_product", "triangular_solve", "tridiagonal_solve"])
# What takes of the same elements as a linear operation does, and is not linear.
_READS_AS = {"reduce_window_max": lax.reduce_window_sum_p,
             "reduce_window_min": lax.reduce_window_sum_p, "scatter-max": lax.scatter_add_p,
             "scatter-min": lax.scatter_add_p, "scatter-mul": lax.scatter_add_p}
_LINE = slice(None)


class Spot(NamedTuple):
    """Where in a value: on which device, by its number, and at which element; None where any."""

    device: int | None
    element: Element | None


class Whole:
    """Programs run as they are."""

    devices: Sequence[Any] = (None,)
    sizes: Sequence[int] = ()

    def compiled(self, fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        return jax.jit(fun, **options)  # type: ignore[no-any-return]

    def number(self, n: int) -> Any:
        return np.int32(n)

    def of(self, x: Any, device: int) -> Any:
        return x

    def stacked(self, x: Any) -> Any:
        return x


WHOLE = Whole()


class OnDevices(Whole):
    """Programs run on each device of a mesh, or on each of those within each of `outer`. Outside,
    values are those of all, one after the other along a new first axis."""

    mesh: Any
    names: tuple[Any, ...]

    def __init__(self, params: dict[str, Any], outer: Whole) -> None:
        self.outer = outer.names if isinstance(outer, OnDevices) else ()
        self.mesh = mesh = outer.mesh if isinstance(outer, OnDevices) else params["mesh"]
        self.names = (*self.outer, *ordered(mesh, params["newly_manual_axes"]))
        self.sizes = [mesh.shape[n] for n in self.names]
        self.devices = [", ".join([f"{n}={i}" for n, i in zip(self.names, place, strict=True)])
                        for place in np.ndindex(*self.sizes)]
        self.spec = PartitionSpec(self.names)

    def _mapped(self, fun: Callable[..., Any], in_specs: Any, **options: Any) -> Callable[..., Any]:
        return jax.jit(jax.shard_map(  # type: ignore[no-any-return]
            lambda *xs: [y[None] for y in fun(*xs)], mesh=self.mesh, in_specs=in_specs,
            out_specs=self.spec, axis_names=set(self.names), check_vma=False), **options)

    def entered(self, operands: Sequence[Any], in_specs: Any) -> list[Any]:
        """The parts of the operands that devices have."""
        if not self.outer:
            return list(self._mapped(lambda *xs: xs, tuple(in_specs))(*operands))
        specs = tuple([PartitionSpec(self.outer, *spec) for spec in in_specs])
        return list(self._mapped(lambda *xs: [x[0] for x in xs], specs)(*operands))

    def compiled(self, fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        return self._mapped(lambda *xs: fun(*[x[0] for x in xs]), self.spec, **options)

    def number(self, n: int) -> Any:
        return np.full(len(self.devices), n, np.int32)

    def stacked(self, x: Any) -> Any:
        return jnp.broadcast_to(x, (len(self.devices), *np.shape(x)))

    def of(self, x: Any, device: int) -> Any:
        return x[device]

    def _corner(self, spec: PartitionSpec, device: int, shape: Sequence[int]) -> list[int]:
        """Where the part that a device has of a value begins, whose shape is that."""
        at = dict(zip(self.names, np.unravel_index(device, self.sizes), strict=True))
        corner = [0] * len(shape)
        for i, axes in enumerate(spec):
            for name in () if axes is None else (axes,) if isinstance(axes, str) else axes:
                corner[i] = corner[i] * self.mesh.shape[name] + int(at[name]) * shape[i]
        return corner

    def inward(self, element: Element | None, spec: PartitionSpec, shape: Sequence[int]) -> Spot:
        """Where in its parts, of that shape, an element of a value is."""
        if element is None or self.outer:
            return Spot(None, None)
        for device in range(len(self.devices)):
            own = [i - n for i, n in zip(element, self._corner(spec, device, shape), strict=True)]
            if all([0 <= i < n for i, n in zip(own, shape, strict=True)]):
                return Spot(device, tuple(own))
        return Spot(None, None)

    def outward(self, spot: Spot, spec: PartitionSpec, shape: Sequence[int]) -> Element | None:
        """Which element of a value one of a part is, where no mesh is around this one."""
        if spot.element is None or self.outer:
            return None
        corner = self._corner(spec, spot.device or 0, shape)
        return tuple([i + n for i, n in zip(spot.element, corner, strict=True)])


def sources(eqn: JaxprEqn, operands: Sequence[Any], k: int, element: Element
            ) -> Iterator[tuple[int, Elements]]:
    """Of which operands, and of which elements of them, an element of result `k` is made. Where
    nobody knows it is all of them."""
    primitive, params, name = eqn.primitive, eqn.params, eqn.primitive.name
    in_place = name in _IN_PLACE or name in elementwise_names or (
        primitive.of_elements and not primitive.moves)
    if primitive.moves and not in_place:
        yield from _moved(eqn, operands, k, element)
        return
    shape = eqn.outvars[k].aval.shape
    for i, v in enumerate(eqn.invars):
        if not dtypes.has_dtype(v.aval, np.inexact):
            continue
        if in_place:
            yield i, _at(element if v.aval.shape == shape else ())
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
            yield i, _at(element[:v.aval.ndim - 2])
        elif primitive.linear or name in _READS_AS:
            yield i, _mask(eqn, operands, k, element, i)
        else:
            yield i, ALL


def first_of(bad: Callable[[Any], Any], x: Any, elements: Elements) -> Element | None:
    """The first bad element of an array among some of its elements."""
    if isinstance(elements, np.ndarray):
        places = np.argwhere(bad(x) & elements)
        return tuple(map(int, places[0])) if len(places) else None
    places = np.argwhere(bad(np.asarray(x)[elements]))
    starts = [part.start or 0 for part in elements] + [0] * (np.ndim(x) - len(elements))
    return tuple([int(i) + n for i, n in zip(places[0], starts, strict=True)]
                 ) if len(places) else None


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
    """The one element that another is, if it is one: the operation moves their numbers."""
    dtype, last = eqn.outvars[k].aval.dtype, 0
    numbers: list[Any] = [*map(np.asarray, operands)]
    for i, v in enumerate(eqn.invars):
        if v.aval.dtype == dtype:
            numbers[i] = np.arange(last, last + v.aval.size, dtype=np.int32).reshape(v.aval.shape)
            last += v.aval.size
    outs = (rule_of(eqn.primitive) or eqn.primitive.bind)(*numbers, **eqn.params)
    number = int(np.asarray(outs[k] if eqn.primitive.multiple_results else outs)[element])
    for i, v in enumerate(eqn.invars):
        if v.aval.dtype == dtype:
            if 0 <= number < v.aval.size:
                yield i, _at(tuple(map(int, np.unravel_index(number, v.aval.shape))))
            number -= v.aval.size


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
