"""How arrays are cut into the blocks that a kernel sees: block shapes, index maps and grids; and
what a program of a grid knows of its place.

Users describe them by `BlockSpec` and `GridSpec`. `BlockMapping` and `GridMapping` are what
`pallas_call` makes of these and the arrays: index maps become programs, from the indices of a
program in the grid, and references to arguments that are fetched before, to those of a block.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core.array_type import Array, DTypeLike
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.records import Record, by_names, of_field
from pyjx.core.references import Ref
from pyjx.core.specs import NO_AXES, Axes
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.engine.functions import source_of
from pyjx.lax.agreement import trace_function
from pyjx.lax.convert import convert_element_type
from pyjx.lax.references import TransformedRef
from pyjx.tree_util import tree_structure

RefLike = Ref | TransformedRef
Size = int | Tracer | Array
# The sizes of the axes of a grid, with their names or without; or the one of one axis.
Grid = Size | Sequence[Size | tuple[str, Size]]

# -- memories --------------------------------------------------------------------------------------


class MemorySpace(enum.Enum):
    """Where a kernel's reference lies. Called with a shape and a dtype, a memory describes an array
    in it, such as scratch space.

    >>> from pyjx.experimental import pallas as pl
    >>> pl.ANY((8, 128), "float32").shape
    (8, 128)
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"

    def __str__(self) -> str:
        return self.value

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:
        return MemoryRef(ShapedArray(shape, dtype), self)


ANY = MemorySpace.ANY


@dataclass(frozen=True)
class MemoryRef:
    """An array in a memory, which a kernel gets a reference to.

    Args:
      inner_aval: the type of the array.
      memory_space: where it lies.
    """

    inner_aval: ShapedArray
    memory_space: object

    shape = of_field("inner_aval.shape")
    dtype = of_field("inner_aval.dtype")

    def get_ref_aval(self) -> AbstractRef:
        """The type of the reference."""
        return AbstractRef(self.inner_aval, self.memory_space)


# -- dimensions of blocks --------------------------------------------------------------------------


class BlockDim:
    """How a dimension of an array is cut into blocks."""


@dataclass(frozen=True)
class Blocked(BlockDim):
    """Blocks of so many elements, side by side: the index map counts blocks. An int is one."""

    block_size: int


@dataclass(frozen=True)
class Squeezed(BlockDim):
    """Blocks of one element, whose dimension the kernel does not see. None stands for it."""


@dataclass(frozen=True)
class Element(BlockDim):
    """Blocks of so many elements that may overlap: the index map counts elements.

    Args:
      block_size: how many elements a block has.
      padding: how many elements, of no known value, stand before and behind the array.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class BoundedSlice(BlockDim):
    """Blocks of at most so many elements: the index map gives slices."""

    block_size: int


@dataclass(frozen=True)
class Indirect(BlockDim):
    """Blocks of so many elements, whose places the index map reads from an array."""

    block_size: int


squeezed = Squeezed()


def block_dim(entry: BlockDim | int | None) -> BlockDim:
    """What an entry of a block shape stands for."""
    if entry is None:
        return squeezed
    return entry if isinstance(entry, BlockDim) else Blocked(entry)


def size_of(dim: BlockDim) -> int:
    """How many elements a block has along a dimension."""
    return getattr(dim, "block_size", 1)


def start_of(dim: BlockDim, index: Any) -> Any:
    """Where the block of an index begins along a dimension."""
    return index * dim.block_size if isinstance(dim, Blocked) else index


# -- blocks ----------------------------------------------------------------------------------------


class RevisitMode(enum.Enum):
    """When a buffer may be used again for a block that was there before."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclass(frozen=True)
class Buffered:
    """How many buffers a block has while its next ones are copied.

    Args:
      buffer_count: how many, of two memories where it is a pair.
      use_lookahead: whether copies begin as early as there are buffers.
      revisit: when a block that is there still is not copied again.
      prefetched_count: how many blocks are copied before the kernel begins.
    """

    buffer_count: int | tuple[int, int]
    use_lookahead: bool = False
    revisit: RevisitMode | None = None
    prefetched_count: int = 0


@dataclass
class BlockSpec:
    """Which block of an array each program of the grid gets.

    Args:
      block_shape: the entries of the block's shape: ints, None for a dimension of one element that
        the kernel does not see, or dimensions such as `Element`. None is the whole array.
      index_map: from the indices of a program in the grid to that of the block, one for each
        dimension; references to what is fetched before come behind the indices. None is the first.
      pipeline_mode: how blocks are copied, a hint.
      memory_space: where the block lies; `ANY` is the array itself.

    >>> from pyjx.experimental import pallas as pl
    >>> pl.BlockSpec((8, 128), lambda i, j: (i, j)).block_shape
    (8, 128)
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Buffered | None = None
    memory_space: Any = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        if self.block_shape is not None and not isinstance(self.block_shape, Iterable):
            raise TypeError("BlockSpec: block_shape must be a shape, such as (8, 128), got "
                            f"{self.block_shape}. The order of the arguments is "
                            "BlockSpec(block_shape, index_map).")
        if self.index_map is not None and not callable(self.index_map):
            raise TypeError("BlockSpec: index_map must be a function of the indices in the grid, "
                            f"got {self.index_map}.")

    def replace(self, **fields: Any) -> BlockSpec:
        """The same with other fields."""
        return type(self)(**{**{name: getattr(self, name) for name in (
            "block_shape", "index_map", "pipeline_mode", "memory_space")}, **fields})


class NoBlockSpec:
    """The class of `no_block_spec`."""

    def __reduce__(self) -> str:
        return "no_block_spec"

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = NoBlockSpec()


def is_spec(x: object) -> bool:
    """Whether it is a spec, a leaf of a tree of specs."""
    return isinstance(x, BlockSpec) or x is no_block_spec


@dataclass
class GridSpec:
    """A grid of programs, and the blocks that each of them gets.

    Args:
      grid: the sizes of its axes, or pairs of a name and a size; an int for one axis.
      in_specs: a tree of `BlockSpec` for the arguments.
      out_specs: one for the results.
      scratch_shapes: memories with shapes, for references that all programs share, one after the
        other: a sequence, or a dict for arguments by name.
    """

    grid: Grid = ()
    in_specs: object = no_block_spec
    out_specs: object = no_block_spec
    scratch_shapes: object = ()

    # How many arguments index maps, too, get references to.
    num_scalar_prefetch = 0

    __reduce__ = by_names


@dataclass
class PrefetchScalarGridSpec(GridSpec):
    """A grid whose index maps also get references to the first arguments, scalars or small arrays
    that are fetched before; the kernel gets them first.

    Args:
      num_scalar_prefetch: how many arguments are fetched before.
      grid, in_specs, out_specs, scratch_shapes: as of `GridSpec`; `in_specs` are of the others.
    """

    def __init__(self, num_scalar_prefetch: int, grid: Grid = (), in_specs: object = no_block_spec,
                 out_specs: object = no_block_spec, scratch_shapes: object = ()) -> None:
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch

    __reduce__ = by_names


@dataclass(frozen=True)
class CostEstimate:
    """What a kernel costs, for who plans around it.

    Args:
      flops: operations on floats.
      transcendentals: those such as `exp`.
      bytes_accessed: bytes that it reads and writes.
      remote_bytes_transferred: bytes that it sends to other devices.
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0


# -- what a call makes of them ---------------------------------------------------------------------

_INDEX = ShapedArray((), np.dtype(np.int32))


class BlockMapping(Record):
    """Which block of an array a program gets.

    `index_map` is its program; `array` the type of the whole array, `origin` what messages call it.
    """

    block_shape: tuple[BlockDim, ...]
    index_map: ClosedJaxpr
    array: ShapedArray
    memory_space: Any
    origin: str

    def __repr__(self) -> str:
        return f"BlockMapping(block_shape={self.block_shape})"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Those of a block, with dimensions that the kernel does not see."""
        return tuple(map(size_of, self.block_shape))

    @property
    def ref_aval(self) -> AbstractRef:
        """The type of the reference that the kernel gets."""
        seen = [n for n, d in zip(self.sizes, self.block_shape, strict=True)
                if not isinstance(d, Squeezed)]
        return AbstractRef(self.array.update(shape=tuple(seen), weak_type=False), self.memory_space)

    @property
    def padding(self) -> tuple[tuple[int, int], ...]:
        """By how many elements the array is wider, before and behind: as `Element` says, and to a
        multiple of the block."""
        found = []
        for n, size, dim in zip(self.array.shape, self.sizes, self.block_shape, strict=True):
            low, high = dim.padding if isinstance(dim, Element) else (0, 0)
            found.append((low, high + -(low + n + high) % max(size, 1)))
        return tuple(found)

    @property
    def is_whole(self) -> bool:
        """Whether the kernel gets a reference to the array itself, which it copies from."""
        return self.memory_space is MemorySpace.ANY or getattr(
            self.memory_space, "value", "") == "hbm"

    def of_batch(self, size: int, batched: bool) -> BlockMapping:
        """That of all examples, along a first axis of the grid and, if it is `batched`, of the
        array."""
        old = self.index_map
        index_map = trace_to_jaxpr(
            lambda i, *xs: [*([i] if batched else []), *jaxpr_as_fun(old)(*xs)],
            [_INDEX, *old.in_avals], old.debug_info)
        if not batched:
            return self._replace(index_map=index_map)
        return self._replace(index_map=index_map, block_shape=(squeezed, *self.block_shape),
                             array=self.array.update(shape=(size, *self.array.shape)))

    def starts(self, index: Sequence[Any]) -> list[Any]:
        """Where the block of an index begins, in the wider array."""
        return [start_of(d, i) for d, i in zip(self.block_shape, index, strict=True)]


class GridMapping(Record):
    """A grid, and the block that each of its programs gets of each argument and result."""

    grid: tuple[int | None, ...]  # None is a size that is an operand
    block_mappings: tuple[BlockMapping, ...]
    num_index_operands: int  # arguments that are fetched before
    num_inputs: int
    scratch: tuple[AbstractRef, ...]

    def __repr__(self) -> str:
        return f"GridMapping(grid={self.grid}, block_mappings={self.block_mappings})"

    @property
    def known_programs(self) -> int:
        """How many programs there are, one along axes whose size is an operand."""
        return math.prod([n for n in self.grid if n is not None])

    @property
    def num_dynamic_grid_bounds(self) -> int:
        return self.grid.count(None)

    @property
    def num_outputs(self) -> int:
        return len(self.block_mappings) - self.num_inputs

    @property
    def num_scratch_operands(self) -> int:
        return len(self.scratch)


def block_mapping(spec: BlockSpec | NoBlockSpec, array: ShapedArray, origin: str, rank: int,
                  fetched: Sequence[AbstractRef]) -> BlockMapping:
    """The blocks of an array by its `BlockSpec`, or the array as one block.

    Raises:
      ValueError: the block has another rank than the array, or the index map gives no integer for
        each of its dimensions.
    """
    shape, index_map, space = (spec.block_shape, spec.index_map, spec.memory_space) \
        if isinstance(spec, BlockSpec) else (None, None, None)
    dims = tuple([block_dim(d) for d in (array.shape if shape is None else shape)])
    if len(dims) != array.ndim:
        raise ValueError(f"Block shape for {origin} (= {dims}) must have the same number of "
                         f"dimensions as the array shape {array.shape}.")
    for dim in dims:
        if not isinstance(dim, (Blocked, Element, Squeezed)):
            raise NotImplementedError(
                f"pallas_call: the block shape of {origin} has a {type(dim).__name__}, which is "
                "not there yet. Element takes blocks that begin at any element.")
    if index_map is None:
        def index_map(*ids: Any) -> Any:
            return (0,) * len(dims)

    closed = _traced_index_map(index_map, rank, fetched)
    name, avals = source_of(index_map), closed.out_avals
    if len(avals) != len(dims):
        raise ValueError(f"Index map function {name} for {origin} must return {len(dims)} values "
                         f"to match block_shape={dims}. Currently returning {len(avals)} values.")
    for k, aval in enumerate(avals):
        if aval.shape or aval.dtype.kind not in "iu":
            raise ValueError(f"Index map function {name} for {origin} must return integer scalars. "
                             f"Output[{k}] has type {aval.str_short()}.")
    if any([isinstance(c, Tracer) for c in closed.consts]):
        raise ValueError(f"Index map function {name} for {origin} must not capture constants: it "
                         "closes over traced values. Pass them as arguments that are fetched "
                         "before, by PrefetchScalarGridSpec.")
    return BlockMapping(dims, _of_int32(closed), array,
                        MemorySpace.DEFAULT if space is None else space, origin)


def _traced_index_map(index_map: Callable[..., Any], rank: int,
                      fetched: Sequence[AbstractRef]) -> ClosedJaxpr:
    return trace_function("pallas_call index_map", "index_map", index_map,
                          tree_structure((0,) * (rank + len(fetched))),
                          [*[_INDEX] * rank, *fetched],  # type: ignore[list-item]
                          unpacked=True).closed


def _of_int32(closed: ClosedJaxpr) -> ClosedJaxpr:
    """An index map whose indices are int32, in which blocks are counted."""
    if all([a.dtype == np.int32 for a in closed.out_avals]):
        return closed
    return trace_to_jaxpr(
        lambda *xs: [convert_element_type(i, np.int32) for i in jaxpr_as_fun(closed)(*xs)],
        closed.in_avals, closed.debug_info)


# -- what a program knows of its place -------------------------------------------------------------


class Place(Record):
    """The indices of a program in the grid, and the sizes of that."""

    ids: Sequence[Any]
    sizes: Sequence[Any]


_place: ContextVar[Place | None] = ContextVar("place in a grid", default=None)


@contextmanager
def placed(place: Place) -> Iterator[None]:
    """A program runs at a place of the grid."""
    token = _place.set(place)
    known = tuple([n if isinstance(n, int) else None for n in place.sizes])
    try:
        with configuration.kernel_grid(known):  # by which functions that are traced now are kept
            yield
    finally:
        _place.reset(token)


_axes: ContextVar[Axes] = ContextVar("axes along which a kernel's values vary", default=NO_AXES)
axes_of_kernel = _axes.get


@contextmanager
def along(axes: Axes) -> Iterator[None]:
    """A kernel is traced whose values vary along these axes of a mesh."""
    token = _axes.set(axes)
    try:
        yield
    finally:
        _axes.reset(token)


def _along(name: str, axis: int, of: Callable[[Place], Sequence[Any]]) -> Any:
    place = _place.get()
    if place is None:
        raise ValueError(f"{name}: there is no grid here. Call it in the kernel of a pallas_call.")
    if not -len(place.ids) <= axis < len(place.ids):
        raise ValueError(f"Axis {axis} is out of bounds for grid {tuple(place.sizes)}. The "
                         "grid of pallas_call has a size for each axis, and axes count from 0.")
    return of(place)[axis]


def program_id(axis: int) -> Array:
    """The index of the program that runs, along an axis of the grid: an int32.

    Args:
      axis: which axis, from 0 on.

    Raises:
      ValueError: no kernel runs, or its grid has no such axis.

    >>> import pyjx as jax
    >>> from pyjx.experimental import pallas as pl
    >>> def kernel(out_ref):
    ...     out_ref[pl.program_id(0)] = 10 * pl.program_id(0)
    ...
    >>> out = jax.ShapeDtypeStruct((3,), "int32")
    >>> pl.pallas_call(kernel, out, grid=3, interpret=True)().tolist()
    [0, 10, 20]
    """
    return _along("program_id", axis, lambda place: place.ids)  # type: ignore[no-any-return]


def num_programs(axis: int) -> int | Array:
    """The size of the grid along an axis: an int, or an int32 where it is traced.

    Args:
      axis: which axis, from 0 on.

    Raises:
      ValueError: no kernel runs, or its grid has no such axis.
    """
    return _along("num_programs", axis, lambda place: place.sizes)  # type: ignore[no-any-return]
