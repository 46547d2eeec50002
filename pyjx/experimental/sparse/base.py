"""What sparse arrays of all formats have in common; how operations on buffers become primitives.

A primitive of this package is the name of an operation in jaxprs, so that programs that look at
them (`sparsify` is one) see the operation as a whole. Everything else about it follows from its
`decomposition`, a function of operations of `lax`: types of results, derivatives, batching,
transposes and the lowering. Operations that no program looks for are plain functions."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar

from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.runtime.operations import op_jit

Fun = TypeVar("Fun", bound=Callable[..., Any])

# What methods of sparse arrays call, by name: functions of the files that build on their classes.
functions: dict[str, Callable[..., Any]] = {}


def function(fun: Fun) -> Fun:
    """Let methods of sparse arrays call a function."""
    functions[fun.__name__] = fun
    return fun


class JAXSparse(abc.ABC):
    """A sparse array: buffers of its elements and of where they are, and a shape.

    Subclasses are pytrees whose leaves are the buffers.
    """

    data: Array
    shape: tuple[int, ...]
    nse: Any
    dtype: Any

    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    __array_ufunc__ = None  # NumPy's operators leave it to those of this class

    def __init__(self, args: tuple[Any, ...], *, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

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

    def _refuse(self, method: str) -> NoReturn:
        raise NotImplementedError(f"{type(self)}.{method}")

    # Subclasses define those of these operations that their format is good for.

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        self._refuse("sum")

    def __neg__(self) -> Any:
        self._refuse("__neg__")

    def __pos__(self) -> Any:
        self._refuse("__pos__")

    def __matmul__(self, other: Any) -> Any:
        self._refuse("__matmul__")

    def __rmatmul__(self, other: Any) -> Any:
        self._refuse("__rmatmul__")

    def __mul__(self, other: Any) -> Any:
        self._refuse("__mul__")

    def __rmul__(self, other: Any) -> Any:
        self._refuse("__rmul__")

    def __add__(self, other: Any) -> Any:
        self._refuse("__add__")

    def __radd__(self, other: Any) -> Any:
        self._refuse("__radd__")

    def __sub__(self, other: Any) -> Any:
        self._refuse("__sub__")

    def __rsub__(self, other: Any) -> Any:
        self._refuse("__rsub__")

    def __getitem__(self, item: Any) -> Any:
        self._refuse("__getitem__")


def diagonal_length(n_rows: int, n_cols: int, k: int) -> int:
    """How many elements diagonal `k` of a matrix has."""
    return max(0, min(n_rows, n_cols - k) if k > 0 else min(n_rows + k, n_cols))


def defined_by(name: str, fun: Callable[..., Any], *params: str, multiple_results: bool = False
               ) -> Primitive:
    """The primitive called `name` that does what `fun` does, which takes arrays and keyword
    parameters."""

    def shape_rule(*avals: ShapedArray, **params: Any) -> Any:
        def flat(*args: Any) -> Any:
            out = fun(*args, **params)
            return out if multiple_results else [out]

        outs = trace_to_jaxpr(flat, avals).out_avals
        return outs if multiple_results else outs[0]

    # On values whose derivative is wanted at once, it is compiled as a whole.
    return register(Primitive(name, multiple_results=multiple_results, shape_rule=shape_rule,
                              decomposition=op_jit(fun, static_argnames=params)))
