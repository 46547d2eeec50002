"""Sparse and dense arrays as values that refer to buffers, which is how JAX's `sparsify` has them.

`sparsify` has the arrays themselves. Who builds on JAX's form finds it here, over the same engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyjx.numpy as jnp
from pyjx.core.avals import ShapedArray
from pyjx.core.trace import new_level
from pyjx.experimental.sparse import BCOO, BCSR
from pyjx.experimental.sparse.rules import is_sparse
from pyjx.experimental.sparse.transform import SparseTrace, sparsify
from pyjx.extend.linear_util import Store, WrappedFun, transformation_with_aux2
from pyjx.tree_util import tree_flatten, tree_leaves, tree_map


class SparsifyValue(NamedTuple):
    """An array, as the numbers that its buffers have in an environment."""

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool | None = False
    unique_indices: bool | None = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def is_sparse(self) -> bool:
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        return not self.is_sparse()

    def is_bcoo(self) -> bool:
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """Buffers, to which values refer by number.

    >>> env = SparsifyEnv([jnp.ones(3)])
    >>> env.dense(jnp.zeros(2)).data_ref, env.data(SparsifyValue((3,), 0)).tolist()
    (1, [1.0, 1.0, 1.0])
    """

    def __init__(self, bufs: Sequence[Any] = ()) -> None:
        self._buffers = list(bufs)

    def _push(self, buffer: Any) -> int:
        """The number of a buffer, which is added unless it is here."""
        for i, known in enumerate(self._buffers):
            if known is buffer:
                return i
        self._buffers.append(jnp.asarray(buffer))
        return len(self._buffers) - 1

    def _buffer(self, name: str, ref: int | None) -> Any:
        if ref is None:
            raise RuntimeError(f"SparsifyEnv.{name}: the value refers to no such buffer "
                               f"({name}_ref=None)")
        return self._buffers[ref]

    def data(self, spvalue: SparsifyValue) -> Any:
        """The elements of a value."""
        return self._buffer("data", spvalue.data_ref)

    def indices(self, spvalue: SparsifyValue) -> Any:
        """The indices of a sparse value."""
        return self._buffer("indices", spvalue.indices_ref)

    def indptr(self, spvalue: SparsifyValue) -> Any:
        """Where the rows of a BCSR value begin."""
        return self._buffer("indptr", spvalue.indptr_ref)

    def dense(self, data: Any) -> SparsifyValue:
        """The value of a dense array."""
        return SparsifyValue(tuple(jnp.shape(data)), self._push(data))

    def sparse(self, shape: Sequence[int], data: Any = None, indices: Any = None,
               indptr: Any = None, *, data_ref: int | None = None, indices_ref: int | None = None,
               indptr_ref: int | None = None, indices_sorted: bool = False,
               unique_indices: bool = False) -> SparsifyValue:
        """The value of a sparse array, of buffers or of the numbers of buffers that are here.

        Raises:
          ValueError: of data or indices neither is given or both are.
        """
        refs: list[int | None] = []
        for name, buffer, ref in (("data", data, data_ref), ("indices", indices, indices_ref),
                                  ("indptr", indptr, indptr_ref)):
            if (buffer is not None and ref is not None) or (
                    buffer is None and ref is None and name != "indptr"):
                raise ValueError(f"SparsifyEnv.sparse: give one of {name} and {name}_ref")
            refs.append(ref if buffer is None else self._push(buffer))
        return SparsifyValue(tuple(shape), refs[0], refs[1], refs[2], indices_sorted,
                             unique_indices)


def _is_value(x: Any) -> bool:
    return isinstance(x, SparsifyValue)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """A pytree of arrays, dense or sparse, as values that refer to buffers of `spenv`.

    >>> import pyjx
    >>> env = SparsifyEnv()
    >>> M = BCOO.fromdense(jnp.array([[0.0, 2.0]]))
    >>> arrays_to_spvalues(env, [M])[0].indices_ref, spvalues_to_arrays(
    ...     env, arrays_to_spvalues(env, [M]))
    (1, [BCOO(float32[1, 2], nse=1)])
    """
    def value(x: Any) -> SparsifyValue:
        if not is_sparse(x):
            return spenv.dense(x)
        return spenv.sparse(x.shape, x.data, x.indices, getattr(x, "indptr", None),
                            indices_sorted=x.indices_sorted, unique_indices=x.unique_indices)

    return tree_map(value, args, is_leaf=is_sparse)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """A pytree of values as the arrays that they stand for."""
    def array(v: SparsifyValue) -> Any:
        if v.is_dense():
            return spenv.data(v)
        buffers: tuple[Any, ...] = spenv.data(v), spenv.indices(v)
        flags = {"indices_sorted": bool(v.indices_sorted),
                 "unique_indices": bool(v.unique_indices)}
        if v.is_bcsr():
            return BCSR((*buffers, spenv.indptr(v)), shape=v.shape, **flags)
        return BCOO(buffers, shape=v.shape, **flags)

    return tree_map(array, spvalues, is_leaf=_is_value)


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """A pytree of values as the types of the arrays that they stand for."""
    return tree_map(lambda v: ShapedArray(v.shape, spenv.data(v).dtype), spvalues,
                    is_leaf=_is_value)


def sparsify_fun(wrapped_fun: WrappedFun, args: Sequence[Any]) -> list[Any]:
    """The results of a function on tracers of arrays, some of which are sparse."""
    out = sparsify(wrapped_fun.call_wrapped, use_tracer=True)(*args)
    return tree_leaves(out, is_leaf=is_sparse)


def sparsify_raw(f: Callable[..., Any]) -> Callable[..., tuple[list[SparsifyValue], Any]]:
    """As `sparsify`, of values: a function of an environment and of pytrees of values, which gives
    the leaves of the result as values, and their structure."""
    def wrapped(spenv: SparsifyEnv, *spvalues: Any, **params: Any
                ) -> tuple[list[SparsifyValue], Any]:
        out = sparsify(partial(f, **params))(*spvalues_to_arrays(spenv, spvalues))
        leaves, tree = tree_flatten(out, is_leaf=is_sparse)
        return arrays_to_spvalues(spenv, leaves), tree

    return wrapped


def _traced(f: Callable[..., Any], store: Store, tag: Any, spenv: SparsifyEnv,
            spvalues: Sequence[SparsifyValue], *bufs: Any) -> list[Any]:
    spenv._buffers[:] = bufs
    trace = SparseTrace()
    with new_level(trace):
        outs = f(*map(trace.join, spvalues_to_arrays(spenv, list(spvalues))))
        outs = [trace.value(x) for x in outs]
    store.store(arrays_to_spvalues(spenv, outs))
    return spenv._buffers


def sparsify_subtrace(fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False,
                      unk_names: bool = False) -> tuple[WrappedFun, Callable[[], Any]]:
    """A function of a tag, an environment, values and buffers, that runs `fun` on tracers of the
    values and gives the buffers behind it; and what tells the values of its results."""
    return transformation_with_aux2(_traced, fun, *gen_static_args, use_eq_store=use_eq_store,
                                    unk_names=unk_names)
