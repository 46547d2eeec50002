"""What sparse arrays of all formats have in common."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

from pyjx.core.array_type import Array
from pyjx.core.trace import Tracer


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
