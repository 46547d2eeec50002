"""Pipelines: loops within a kernel over blocks of references, of which the next ones come in while
one is worked on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.slices import ds
from pyjx.experimental.pallas.copies import SemaphoreType, make_async_copy, sync_copy
from pyjx.experimental.pallas.in_kernels import run_scoped, when
from pyjx.experimental.pallas.kernel_calls import indices
from pyjx.experimental.pallas.kernel_grids import (
    ANY,
    Element,
    Place,
    RefLike,
    Size,
    Squeezed,
    block_dim,
    is_spec,
    no_block_spec,
    placed,
    size_of,
    start_of,
)
from pyjx.experimental.pallas.tpu_kernels import MemorySpace
from pyjx.lax.fori import fori_loop
from pyjx.tree_util import tree_leaves


def emit_pipeline(body: Callable[..., None], *, grid: Size | Sequence[Size],
                  in_specs: object = (), out_specs: object = (), tiling: object = None,
                  core_axis: object = None, core_axis_name: object = None,
                  dimension_semantics: object = None, trace_scopes: bool = True,
                  no_pipelining: bool = False, output_wait_read_only: bool = False,
                  _explicit_indices: bool = False) -> Callable[..., None]:
    """The function that runs `body` for each program of a grid within a kernel, on blocks of
    references, one after the other.

    Blocks of a reference to the large memory, `pl.ANY` or `pltpu.HBM`, are copied to scratch space
    and back: those that are read one program ahead. What is written begins with no known values,
    and stays while programs have the same block.

    Args:
      body: takes a reference to a block of each reference, and `scratches` behind them.
      grid: the sizes of the grid's axes, which may be traced.
      in_specs, out_specs: `BlockSpec` for what is read, and for what is written.
      tiling, core_axis, core_axis_name, dimension_semantics, trace_scopes, no_pipelining,
        output_wait_read_only: accepted.

    Raises:
      NotImplementedError: a block sticks out of its array.
    """
    read, written = [[s for s in tree_leaves(specs, is_leaf=is_spec) if is_spec(s)]
                     for specs in (in_specs, out_specs)]
    sizes: list[Any] = [*grid] if isinstance(grid, (tuple, list)) else [grid]
    total = math.prod(sizes)

    def pipeline(*refs: RefLike, scratches: Sequence[RefLike] = ()) -> None:
        sources = [_Blocks(ref, spec, sizes) for ref, spec in zip(refs, read, strict=False)]
        targets = [_Blocks(ref, spec, sizes)
                   for ref, spec in zip(refs[len(read):], written, strict=True)]
        ahead = [b for b in sources if b.is_far]

        def run(*spaces: Any) -> None:
            sems = spaces[-1]
            slots = dict(zip(ahead, spaces[:len(ahead)], strict=True))
            results = dict(zip([b for b in targets if b.is_far], spaces[len(ahead):-1],
                               strict=True))

            def coming(k: Any) -> list[Any]:
                return [make_async_copy(b.block(k), slots[b].at[k % 2], sems.at[n, k % 2])
                        for n, b in enumerate(ahead)]

            def start(k: Any) -> None:
                for copy in coming(k):
                    copy.start()

            def step(k: Any, carry: None) -> None:
                when(k + 1 < total)(lambda: start(k + 1))
                for copy in coming(k):
                    copy.wait()
                ids = indices(k, sizes)
                with placed(Place(ids, sizes)):
                    body(*((tuple(ids),) if _explicit_indices else ()),
                         *[slots[b].at[k % 2] if b in slots else b.block(k) for b in sources],
                         *[results[b] if b in results else b.block(k) for b in targets],
                         *scratches)
                for b, space in results.items():
                    sync_copy(space, b.block(k))

            when(total > 0)(lambda: start(0))
            fori_loop(0, total, step, None)

        run_scoped(run, *[b.space(2) for b in ahead], *[b.space() for b in targets if b.is_far],
                   SemaphoreType.DMA((max(len(ahead), 1), 2)))

    return pipeline


class _Blocks:
    """The blocks of a reference, one for each program of a grid."""

    def __init__(self, ref: RefLike, spec: Any, sizes: Sequence[Any]) -> None:
        self.ref, self.spec, self.sizes = ref, spec, sizes
        self.is_whole = spec is no_block_spec or spec.block_shape is None
        aval: Any = get_aval(ref)
        self.is_far = aval.memory_space in (ANY, MemorySpace.HBM) and not self.is_whole

    def block(self, k: Any) -> Any:
        """The reference to that of the k-th program."""
        if self.is_whole:
            return self.ref
        shape, index_map = self.spec.block_shape, self.spec.index_map
        places = (0,) * len(shape) if index_map is None else index_map(*indices(k, self.sizes))
        return self.ref.at[tuple([
            i if isinstance(dim := block_dim(entry), Squeezed) else
            ds(start_of(dim, i), self._size(n, dim))
            for n, entry, i in zip(self.ref.shape, shape, places, strict=True)])]

    def space(self, *slots: int) -> Any:
        """Scratch space for a block, in so many slots."""
        dims = [block_dim(entry) for entry in self.spec.block_shape]
        shape = [self._size(n, dim) for n, dim in zip(self.ref.shape, dims, strict=True)
                 if not isinstance(dim, Squeezed)]
        return MemorySpace.VMEM((*slots, *shape), self.ref.dtype)

    def _size(self, n: int, dim: Any) -> int:
        size = size_of(dim)
        if n % size or (isinstance(dim, Element) and dim.padding != (0, 0)):
            raise NotImplementedError(f"emit_pipeline: blocks of {size} stick out of an axis of "
                                      f"{n}. Choose a block size that divides it.")
        return size
