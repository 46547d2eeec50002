"""What all formats share: the class of sparse arrays, its operators, and facts about them."""

from __future__ import annotations

import abc
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, Self, TypeVar

import numpy as np

from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval, length
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import of_field
from pyjx.core.trace import Tracer
from pyjx.core.value_texts import in_short
from pyjx.engine.decompose import traced
from pyjx.engine.types import Value
from pyjx.runtime.operations import op_jit
from pyjx.transforms.vmap import register_vmappable, vmap
from pyjx.tree_util import register_pytree_node_class

F = TypeVar("F")


class SparseEfficiencyError(ValueError):
    """An operation would store far more than the array given.

    Ways out: `x.todense()`, where the dense array fits in memory; or a sum, a product or a slice
    that keeps few elements.
    """


class SparseEfficiencyWarning(UserWarning):
    """An operation stores far more than the array given.

    Ways out: as of `SparseEfficiencyError`; where the size is meant,
    `warnings.simplefilter("ignore", SparseEfficiencyWarning)`.
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A GPU's sparse library could not be used, and a slower way was taken.

    Ways out: none is needed, as this package never warns of it: it stands for code that filters
    it.
    """


class SparseInfo(NamedTuple):
    """What is known of a sparse array besides its buffers.

    >>> SparseInfo((2, 3))
    SparseInfo(shape=(2, 3), indices_sorted=False, unique_indices=False)
    """

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


def as_index_dtype(name: str, dtype: DTypeLike | None) -> Any:
    """The dtype that the function `name` is to give indices.

    Raises:
      TypeError: it is not of integers.
    """
    found = np.dtype(dtype)
    if not dtypes.issubdtype(found, np.integer):
        raise TypeError(f"{name}: index_dtype must be an integer dtype, got {dtypes.name(found)}.")
    return found


def buffers_of(name: str, kind: type, mat: Any) -> Any:
    """The buffers of the matrix that the function `name` of one format was given.

    Raises:
      TypeError: it is of another format, or dense.
    """
    if not isinstance(mat, kind):
        raise TypeError(f"{name}: mat must be a {kind.__name__} matrix, got {type(mat).__name__}; "
                        f"{kind.__name__}.fromdense makes one.")
    return mat._bufs  # type: ignore[attr-defined]


def refuse_dense_sum() -> NoReturn:
    raise NotImplementedError(
        "Addition between a sparse array X and a dense array Y is not implemented when the output "
        "shape is larger than Y.shape. This is to prevent silent densification of a large sparse "
        "array. If this is your intent, you can explicitly cast the sparse array to a dense "
        "matrix.")


def is_stored(mat: Any) -> Array:
    """Which elements are not zero."""
    return mat != jnp.zeros((), get_aval(mat).dtype)


def with_data(mat: Any, data: Any) -> Any:
    """The array with other elements at the same indices."""
    children, aux = mat.tree_flatten()
    return mat.tree_unflatten(aux, (data, *children[1:]))


def over_batch(fun: Callable[..., Any], n_batch: int, *args: Any) -> Any:
    """`fun` mapped over the `n_batch` leading axes of each argument, of which those of length 1 are
    the same for all others'."""
    if n_batch == 0:
        return fun(*args)
    lengths = [jnp.shape(x)[0] for x in args]
    length = next((n for n in lengths if n != 1), 1)
    axes = tuple([None if n != length else 0 for n in lengths])
    given = [x if d == 0 else x[0] for x, d in zip(args, axes, strict=True)]
    return vmap(lambda *xs: over_batch(fun, n_batch - 1, *xs), axes)(*given)


def added_at(shape: tuple[int, ...], places: tuple[Any, ...], terms: Any, **promises: bool) -> Any:
    """An array of zeros to whose elements at `places` the `terms` are added; those out of bounds
    are dropped. Booleans are added by `or`."""
    at = jnp.zeros(shape, terms.dtype).at[places]
    return (at.max if terms.dtype == bool else at.add)(terms, mode="drop", **promises)


def stretched(x: Value, shape: tuple[int, ...]) -> Any:
    """`x` with its leading axes stretched to `shape`."""
    full = (*shape, *get_aval(x).shape[len(shape):])
    return jnp.broadcast_to(x, full)


Fun = TypeVar("Fun", bound=Callable[..., Any])

# What methods of sparse arrays call, by name: functions of the files that build on their classes.
functions: dict[str, Callable[..., Any]] = {}


def function(fun: Fun) -> Fun:
    """Let methods of sparse arrays call a function."""
    functions[fun.__name__] = fun
    return fun


def _refused(method: str) -> Callable[..., Any]:  # which subclasses override by what returns
    def refuse(self: JAXSparse, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{type(self)}.{method}: x.todense() has this operation.")

    refuse.__name__, refuse.__qualname__ = method, f"JAXSparse.{method}"
    return refuse


class JAXSparse(abc.ABC):
    """A sparse array: buffers of its elements and of where they are, and a shape.

    Subclasses are pytrees whose leaves are the buffers. `_cure_for_grad` is what `jax.grad` says of
    one that it refuses for its indices; "{}" stands for the argument.
    """

    data: Array
    shape: tuple[int, ...]
    nse: Any
    dtype: Any

    _made_array = "x.todense()"  # as messages say
    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    __array_ufunc__ = None  # NumPy's operators leave it to those of this class
    _cure_for_grad = "jax.experimental.sparse.grad differentiates by {}.data alone."

    def __init__(self, args: tuple[Any, ...], *, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    __len__ = length

    def _details(self) -> str:
        """What `repr` shows besides the type."""
        return f"nse={self.nse}"

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            shape = ", ".join(map(str, self.shape))
            text = f"{name}({self.data.dtype}[{shape}], {self._details()})"
        except Exception:  # the leaves may be anything
            return f"{name}(<invalid>)"
        return f"{type(self.data).__name__}[{text}]" if isinstance(self.data, Tracer) else text

    @abc.abstractmethod
    def tree_flatten(self) -> tuple[Sequence[Any], dict[str, Any]]: ...

    @classmethod
    @abc.abstractmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Any: ...

    @abc.abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> Any: ...

    @abc.abstractmethod
    def todense(self) -> Array: ...

    @property
    def T(self) -> Any:
        return self.transpose()

    def block_until_ready(self) -> Any:
        """Wait until the buffers are computed; the array is returned."""
        for x in self.tree_flatten()[0]:
            x.block_until_ready()
        return self

    # Subclasses define those of these operations that their format is good for.

    sum = _refused("sum")
    __neg__ = _refused("__neg__")
    __pos__ = _refused("__pos__")
    __matmul__ = _refused("__matmul__")
    __rmatmul__ = _refused("__rmatmul__")
    __mul__ = _refused("__mul__")
    __rmul__ = _refused("__rmul__")
    __add__ = _refused("__add__")
    __radd__ = _refused("__radd__")
    __sub__ = _refused("__sub__")
    __rsub__ = _refused("__rsub__")
    __getitem__ = _refused("__getitem__")


class Buffered(JAXSparse):
    """A format that is told by the names of its buffers, and of what may be known of them."""

    _buffers: ClassVar[tuple[str, ...]]
    _facts: ClassVar[tuple[str, ...]] = ()

    dtype = of_field("data.dtype")
    nse = of_field("data.size")

    def __init__(self, args: tuple[Any, ...], *, shape: Sequence[int], **known: bool) -> None:
        name = type(self).__name__
        if not isinstance(args, tuple | list) or len(args) != len(self._buffers):
            makers = {"fromdense": "dense array", "from_scipy_sparse": "matrix of SciPy's"}
            cures = [f"{name}.{maker}(x) makes one of a {kind}" for maker, kind in makers.items()
                     if hasattr(type(self), maker)]
            raise TypeError(f"{name}: args must be a tuple ({', '.join(self._buffers)}), got "
                            f"{in_short(args)}. {' and '.join(cures)}.")
        super().__init__(args, shape=shape)
        self.__dict__.update(zip(self._buffers, map(jnp.asarray, args), strict=True), **known)

    @property
    def _bufs(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self._buffers])

    @classmethod
    def _of(cls, *given: Any, **known: bool) -> Self:
        """The array of buffers that are known to be right: they, its shape, and what is known."""
        self = object.__new__(cls)
        self.__dict__.update(dict.fromkeys(cls._facts, False),
                             **dict(zip((*cls._buffers, "shape", *cls._facts), given,
                                        strict=False)), **known)
        self.shape = tuple(self.shape)
        return self

    def tree_flatten(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self._bufs, {name: getattr(self, name) for name in ("shape", *self._facts)}

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Sequence[Any]) -> Self:
        return cls._of(*children, **aux_data)


class Batched(Buffered):
    """A format whose dimensions are `n_batch` batch, `n_sparse` sparse and `n_dense` dense ones."""

    indices: Array
    indices_sorted: bool
    unique_indices: bool
    _facts = ("indices_sorted", "unique_indices")

    n_batch: Any  # how many batch dimensions the indices have
    n_sparse: Any

    @property
    def _sparse_shape(self) -> tuple[int, ...]:
        return self.shape[self.n_batch:self.n_batch + self.n_sparse]

    @property
    def n_dense(self) -> int:
        return self.data.ndim - 1 - self.n_batch

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    def _details(self) -> str:
        text = f"nse={self.nse}"
        if self.n_batch:
            text += f", n_batch={self.n_batch}"
        return f"{text}, n_dense={self.n_dense}" if self.n_dense else text

    def one_of_batch(self, cont: Callable[..., Any], axis: int | None) -> Self:
        """One example of a batch along `axis`, whose buffers `cont` makes; see `vmap`. A dimension
        of 1 is the same for all examples."""
        if axis is None:
            return self
        name, n_batch, shape = type(self).__name__, self.n_batch, self.shape
        if not 0 <= axis < n_batch:
            raise ValueError(f"Cannot map in_axis={axis} for {name} array with n_batch={n_batch}. "
                             f"in_axes for batched {name} operations must correspond to a batch "
                             f"dimension: {name}.fromdense(x, n_batch={axis + 1}) has one.")
        buffers = [cont(x, axis) if x.shape[axis] == shape[axis] else cont(x.squeeze(axis), None)
                   for x in self._bufs]
        return self._of(*buffers, (*shape[:axis], *shape[axis + 1:]), *self._info[1:])

    def whole_batch(self, cont: Callable[..., Any], size: int, axis: int | None) -> Self:
        """All examples, along `axis`, of which this is one."""
        name, n_batch, shape = type(self).__name__, self.n_batch, self.shape
        if axis is not None:
            if not 0 <= axis <= n_batch:
                raise ValueError(f"{name}: cannot add out_axis={axis} for {name} array with "
                                 f"n_batch={n_batch}. {name} batch axes must be a contiguous block "
                                 "of leading dimensions.")
            shape = (*shape[:axis], size, *shape[axis:])
        return self._of(*[cont(size, x, axis) for x in self._bufs], shape, *self._info[1:])


def batched_format(cls: type[F]) -> type[F]:
    """Decorator: a batched format is a pytree, and is mapped along its batch dimensions."""
    register_vmappable(cls, int, int, lambda cont, get_idx, m, axis: m.one_of_batch(cont, axis),
                       lambda cont, size, m, axis: m.whole_batch(cont, size, axis), None)
    return register_pytree_node_class(cls)


def diagonal_length(n_rows: int, n_cols: int, k: int) -> int:
    """How many elements diagonal `k` of a matrix has."""
    return max(0, min(n_rows, n_cols - k) if k > 0 else min(n_rows + k, n_cols))


def defined_by(name: str, fun: Callable[..., Any], *params: str, multiple_results: bool = False
               ) -> Primitive:
    """The primitive called `name` that does what `fun` does, which takes arrays and keyword
    parameters."""

    def shape_rule(*avals: ShapedArray, **params: Any) -> Any:
        outs = traced(fun, avals, params, multiple_results).out_avals
        return outs if multiple_results else outs[0]

    # On values whose derivative is wanted at once, it is compiled as a whole.
    return register(Primitive(name, multiple_results=multiple_results, shape_rule=shape_rule,
                              decomposition=op_jit(fun, static_argnames=params)))


def _compiled(fun: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        return functions["sparsify"](fun)(*args)

    run.__name__ = getattr(fun, "__name__", "operator")
    return op_jit(run, trees=True)


def unary(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The operator that is `fun` of the array."""
    run = _compiled(fun)
    return lambda self: run(self)


def binary(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The operator that is `fun` of the array and another operand."""
    run = _compiled(fun)
    return lambda self, other: run(self, other)


def reflected(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The operator that is `fun` of another operand and the array."""
    run = _compiled(fun)
    return lambda self, other: run(other, self)


def method(name: str) -> Callable[..., Any]:
    """The method of dense arrays, whose arguments are constants."""

    def applied(x: Any, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> Any:
        return functions["sparsify"](lambda x: getattr(x, name)(*args, **dict(kwargs)))(x)

    compiled = op_jit(applied, static_argnums=(1, 2), trees=True)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        keywords = tuple(sorted(kwargs.items()))
        try:
            hash((args, keywords))
        except TypeError:
            return applied(self, args, keywords)
        return compiled(self, args, keywords)

    call.__name__ = name
    call.__doc__ = f"As `{name}` of a dense array."
    return call


def item(self: Any, index: Any) -> Any:
    return functions["sparsify"](lambda x: x[index])(self)


class ArithmeticOperators:
    """The operators that a sparse array has in common with dense ones. Those whose result would be
    dense raise NotImplementedError."""

    __slots__ = ()

    sum = method("sum")
    reshape = method("reshape")
    astype = method("astype")

    __getitem__ = item

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))  # type: ignore[arg-type]

    __abs__ = unary(operator.abs)
    __neg__ = unary(operator.neg)
    __pos__ = unary(operator.pos)
    __matmul__ = binary(operator.matmul)
    __rmatmul__ = reflected(operator.matmul)
    __mul__ = binary(operator.mul)
    __rmul__ = reflected(operator.mul)
    __truediv__ = binary(operator.truediv)
    __rtruediv__ = reflected(operator.truediv)
    __add__ = __radd__ = binary(operator.add)
    __sub__ = binary(operator.sub)
    __rsub__ = reflected(operator.sub)
    __rpow__ = reflected(operator.pow)
    __gt__ = binary(operator.gt)
    __ge__ = binary(operator.ge)
    __lt__ = binary(operator.lt)
    __le__ = binary(operator.le)
    __eq__ = binary(operator.eq)  # type: ignore[assignment]
    __ne__ = binary(operator.ne)  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __pow__(self, exponent: Any) -> Any:
        # an integer is part of the program
        return functions["sparsify"](lambda x: x ** exponent)(self)
