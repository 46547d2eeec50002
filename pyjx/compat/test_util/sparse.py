"""What suites of sparse arrays are built on: sparse arrays at random, and a test case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np

import pyjx
import pyjx.numpy as jnp
from pyjx.compat.test_util.case import JaxTestCase
from pyjx.compat.test_util.samples import rand_default
from pyjx.experimental.sparse import BCOO, BCSR, JAXSparse
from pyjx.tree_util import tree_flatten, tree_leaves, tree_map

__all__ = ["MATMUL_TOL", "BatchedDotGeneralProperties", "SparseLayout", "SparseTestCase",
           "is_sparse", "iter_bcsr_layouts", "iter_sparse_layouts", "iter_subsets", "rand_bcoo",
           "rand_bcsr"]

Args = Sequence[Any]

MATMUL_TOL = {np.float32: 1e-5, np.float64: 1e-10, np.complex64: 1e-5, np.complex128: 1e-10}


class SparseLayout(NamedTuple):
    """How many axes of each kind a sparse array has."""

    n_batch: int
    n_dense: int
    n_sparse: int


class BatchedDotGeneralProperties(NamedTuple):
    """A product of a sparse array and another one."""

    lhs_shape: tuple[int, ...]
    rhs_shape: tuple[int, ...]
    n_batch: int
    n_dense: int
    dimension_numbers: Any


def is_sparse(x: Any) -> bool:
    """Whether a value is a sparse array."""
    return isinstance(x, JAXSparse)


def iter_subsets(s: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The subsets of elements, in their order.

    >>> list(iter_subsets([1, 2]))
    [(), (1,), (2,), (1, 2)]
    """
    return chain.from_iterable(combinations(s, n) for n in range(len(s) + 1))


def iter_sparse_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """The layouts that a BCOO array of a shape may have.

    >>> [tuple(layout) for layout in iter_sparse_layouts((3,))]
    [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    """
    for n_batch in range(min_n_batch, len(shape) + 1):
        for n_dense in range(len(shape) + 1 - n_batch):
            yield SparseLayout(n_batch, n_dense, len(shape) - n_batch - n_dense)


def iter_bcsr_layouts(shape: Sequence[int], min_n_batch: int = 0) -> Iterator[SparseLayout]:
    """The layouts that a BCSR array of a shape may have: two axes are sparse."""
    return (layout for layout in iter_sparse_layouts(shape, min_n_batch) if layout.n_sparse == 2)


def rand_bcoo(rng: np.random.RandomState, rand_method: Callable[..., Any] = rand_default,
              nse: float = 0.5, n_batch: int = 0, n_dense: int = 0
              ) -> Callable[[Sequence[int], Any], BCOO]:
    """A maker of BCOO arrays.

    Args:
      rng: NumPy's generator.
      rand_method: `rand_method(rng)` makes dense arrays of a shape and a dtype.
      nse: how many elements are specified or, if less than 1, what part of them.
      n_batch, n_dense: of the arrays.

    >>> rand_bcoo(np.random.RandomState(0), nse=3)((4, 5), np.float32)
    BCOO(float32[4, 5], nse=3)
    """
    def make(shape: Sequence[int], dtype: Any) -> BCOO:
        ends = len(shape) - n_dense
        batch, cut, dense = shape[:n_batch], shape[n_batch:ends], shape[ends:]
        size = int(np.prod(cut))
        count = min(int(np.ceil(nse * size)) if 0 < nse < 1 else int(nse), size)
        places = rng.rand(*batch, size).argsort(-1)[..., :count]
        indices = (np.stack(np.unravel_index(places, cut), -1) if cut
                   else np.zeros((*places.shape, 0)))
        data = rand_method(rng)((*batch, count, *dense), dtype)
        return BCOO((jnp.asarray(data), jnp.asarray(indices, "int32")), shape=tuple(shape))

    return make


def rand_bcsr(rng: np.random.RandomState, rand_method: Callable[..., Any] = rand_default,
              nse: float = 0.5, n_batch: int = 0, n_dense: int = 0
              ) -> Callable[[Sequence[int], Any], BCSR]:
    """As `rand_bcoo`, of BCSR arrays.

    >>> rand_bcsr(np.random.RandomState(0), nse=3)((4, 5), np.float32)
    BCSR(float32[4, 5], nse=3)
    """
    make = rand_bcoo(rng, rand_method, nse, n_batch, n_dense)
    return lambda shape, dtype: BCSR.from_bcoo(make(shape, dtype).sort_indices())


def _dense(tree: Any) -> Any:
    return tree_map(lambda x: x.todense() if is_sparse(x) else x, tree, is_leaf=is_sparse)


class SparseTestCase(JaxTestCase):
    """A test case that compares functions of sparse arrays with those of dense ones."""

    def assertSparseArraysEquivalent(self, x: Any, y: Any, *, check_dtypes: bool = True,
                                     atol: Any = None, rtol: Any = None,
                                     canonicalize_dtypes: bool = True, err_msg: str = "") -> None:
        """Both are of one format and layout, with close elements in the same places."""
        (leaves, structure), (others, other_structure) = tree_flatten(x), tree_flatten(y)
        self.assertEqual(structure, other_structure, err_msg)
        for one, other in zip(leaves, others, strict=True):
            self.assertAllClose(one, other, check_dtypes=check_dtypes, atol=atol, rtol=rtol,
                                canonicalize_dtypes=canonicalize_dtypes, err_msg=err_msg)

    def _CheckAgainstDense(self, dense_op: Callable[..., Any], sparse_op: Callable[..., Any],
                           args_maker: Callable[[], Args], check_jit: bool = True,
                           check_dtypes: bool = True, tol: Any = None, atol: Any = None,
                           rtol: Any = None, canonicalize_dtypes: bool = True) -> None:
        """The results are close to those of the dense arguments, and as compiled."""
        args = args_maker()
        close = {"check_dtypes": check_dtypes, "atol": tol if atol is None else atol,
                 "rtol": tol if rtol is None else rtol, "canonicalize_dtypes": canonicalize_dtypes}
        expected, found = dense_op(*_dense(args)), sparse_op(*args)
        self.assertAllClose(_dense(found), expected, **close)
        if check_jit:
            self.assertAllClose(_dense(pyjx.jit(sparse_op)(*args)), expected, **close)

    def _CheckGradsSparse(self, dense_fun: Callable[..., Any], sparse_fun: Callable[..., Any],
                          args_maker: Callable[[], Args], *, argnums: Any = None,
                          modes: Sequence[str] = ("fwd", "rev"), atol: Any = None, rtol: Any = None
                          ) -> None:
        """The derivatives with regard to the elements that arguments have are those of the dense
        function, along a direction and backwards.

        Args:
          argnums: which arguments; the first by default.
        """
        args = list(args_maker())
        places = [argnums] if isinstance(argnums, int) else [0] if argnums is None else argnums
        values = [args[i].data if is_sparse(args[i]) else args[i] for i in places]

        def filled(given: Sequence[Any]) -> list[Any]:
            new = list(args)
            for i, value in zip(places, given, strict=True):
                new[i] = _with_data(args[i], value) if is_sparse(args[i]) else value
            return new

        def of_dense(*given: Any) -> Any:
            return dense_fun(*_dense(filled(given)))

        def of_sparse(*given: Any) -> Any:
            return _dense(sparse_fun(*filled(given)))

        sample = rand_default(self.rng())
        if "fwd" in modes:
            tangents = [sample(v.shape, v.dtype) for v in values]
            self.assertAllClose(*[pyjx.jvp(f, values, tangents) for f in (of_sparse, of_dense)],
                                atol=atol, rtol=rtol)
        if "rev" in modes:
            outs, back = zip(*[pyjx.vjp(f, *values) for f in (of_sparse, of_dense)], strict=True)
            cts = tree_map(lambda out: sample(out.shape, out.dtype), outs[0])
            self.assertAllClose(back[0](cts), back[1](cts), atol=atol, rtol=rtol)

    def _random_bdims(self, *args: int) -> list[int]:
        """For each number of batch axes a place among them for one more."""
        rng = self.rng()
        return [int(rng.randint(0, n + 1)) for n in args]

    def _CheckBatchingSparse(self, dense_fun: Callable[..., Any], sparse_fun: Callable[..., Any],
                             args_maker: Callable[[], Args], *, batch_size: int = 3,
                             bdims: Sequence[int] | None = None, check_jit: bool = False,
                             check_dtypes: bool = True, tol: Any = None, atol: Any = None,
                             rtol: Any = None, canonicalize_dtypes: bool = True) -> None:
        """The mapped function gives what the mapped dense one gives.

        Args:
          bdims: the place of the new axis in each argument, at random by default.
        """
        batch = [args_maker() for _ in range(batch_size)]
        if bdims is None:
            bdims = self._random_bdims(*[x.n_batch if is_sparse(x) else x.ndim for x in batch[0]])
        args = [_stacked(each, dim) for each, dim in zip(zip(*batch, strict=True), bdims,
                                                         strict=True)]
        self._CheckAgainstDense(
            pyjx.vmap(dense_fun, tuple(bdims)), pyjx.vmap(sparse_fun, tuple(bdims)), lambda: args,
            check_jit, check_dtypes, tol, atol, rtol, canonicalize_dtypes)


def _with_data(x: Any, data: Any) -> Any:
    """The sparse array with other elements."""
    _, *buffers = tree_leaves(x)
    flags = {name: getattr(x, name) for name in ("indices_sorted", "unique_indices")
             if hasattr(x, name)}
    return type(x)((data, *buffers), shape=x.shape, **flags)


def _stacked(arrays: Sequence[Any], dim: int) -> Any:
    """Arrays of one layout, along a new axis."""
    if not is_sparse(arrays[0]):
        return jnp.stack([jnp.asarray(x) for x in arrays], dim)
    buffers = [jnp.stack(parts, dim) for parts in zip(*map(tree_leaves, arrays), strict=True)]
    shape = arrays[0].shape
    return type(arrays[0])(tuple(buffers), shape=(*shape[:dim], len(arrays), *shape[dim:]))
