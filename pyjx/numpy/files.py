"""Arrays from and to files and texts, by NumPy's functions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NoReturn

import numpy as np

from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """The array in a file that `save` has written; see `numpy.load` for the arguments.

    Args:
      file: a path or an open file.
      *args, **kwargs: as for NumPy.

    Returns:
      An array; NumPy's, if the file has a dtype that no array of numbers has. Of a file of several
      arrays, NumPy's reader, which gives NumPy's arrays.

    >>> import pyjx as jax
    >>> jax.numpy.save("ones.npy", jax.numpy.ones(2))
    >>> jax.numpy.load("ones.npy").tolist()
    [1.0, 1.0]
    """
    out = np.load(file, *args, **kwargs)
    if not isinstance(out, np.ndarray):
        return out
    if out.dtype == np.dtype("V2"):  # how NumPy's format, which knows no other, keeps bfloat16
        out = out.view(dtypes.bfloat16)
    try:
        return jnp.asarray(out)
    except TypeError:  # texts, records, or 8-bit floats, of which the format keeps the bytes alone
        return out


def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Write an array into a file in NumPy's format; see `numpy.save`.

    Returns:
      None.

    >>> import pyjx as jax
    >>> jax.numpy.save("zeros.npy", jax.numpy.zeros(2))
    """
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays into one file in NumPy's format; see `numpy.savez`.

    Args:
      file: a path or an open file.
      *args: arrays, which are called arr_0, arr_1, ...
      **kwds: arrays by name.
      allow_pickle: as for NumPy.

    Returns:
      None.

    >>> import pyjx as jax
    >>> jax.numpy.savez("arrays.npz", a=jax.numpy.zeros(2))
    >>> jax.numpy.load("arrays.npz")["a"].tolist()
    [0.0, 0.0]
    """
    named: Any = {key: np.asarray(x) for key, x in kwds.items()}
    np.savez(file, *[np.asarray(x) for x in args], allow_pickle=allow_pickle, **named)


def fromstring(string: str, dtype: DTypeLike | None = float, count: int = -1, *, sep: str) -> Array:
    """The numbers in a text, as an array of rank 1; see `numpy.fromstring`.

    Args:
      string: the text.
      dtype: of the result.
      count: how many numbers to read; by default all.
      sep: what stands between them.

    Returns:
      A one-dimensional array of the numbers in the text.

    >>> import pyjx as jax
    >>> jax.numpy.fromstring("1 2 3", dtype=int, sep=" ").tolist()
    [1, 2, 3]
    """
    return jnp.asarray(np.fromstring(string, dtype=dtype, count=count, sep=sep))


def array_repr(arr: Any, max_line_width: int | None = None, precision: int | None = None,
               suppress_small: bool | None = None) -> str:
    """The text of an array with the name of its type; see `numpy.array_repr`.

    Returns:
      A str.

    >>> import pyjx as jax
    >>> jax.numpy.array_repr(jax.numpy.arange(2))
    'ArrayImpl([0, 1], dtype=int32)'
    """
    return np.array_repr(arr, max_line_width, precision, suppress_small)


def array_str(a: Any, max_line_width: int | None = None, precision: int | None = None,
              suppress_small: bool | None = None) -> str:
    """The text of the numbers in an array; see `numpy.array_str`.

    Returns:
      A str.

    >>> import pyjx as jax
    >>> jax.numpy.array_str(jax.numpy.arange(2))
    '[0 1]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def _not_pure(name: str) -> NoReturn:
    raise NotImplementedError(
        f"jnp.{name}() is not implemented because it may be non-pure and thus unsafe for use with "
        f"JIT and other JAX transformations. Consider using jnp.asarray(np.{name}(...)) instead, "
        "outside of traced functions: there it would read once, while the function is traced.")


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Refused, as it reads a file each time: use `jnp.asarray(np.fromfile(...))`.

    Args:
      *args, **kwargs: as for NumPy.

    Returns:
      Nothing: it is refused, as what a file or an iterator gives may change.

    >>> import pyjx as jax
    >>> jax.numpy.fromfile("numbers")
    Traceback (most recent call last):
        ...
    NotImplementedError: jnp.fromfile() is not implemented because it may be non-pure and thus...
    """
    _not_pure("fromfile")


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Refused, as it uses up an iterator: use `jnp.asarray(np.fromiter(...))`.

    Args:
      *args, **kwargs: as for NumPy.

    Returns:
      Nothing: it is refused, as what a file or an iterator gives may change.

    >>> import pyjx as jax
    >>> jax.numpy.fromiter(range(3), int)
    Traceback (most recent call last):
        ...
    NotImplementedError: jnp.fromiter() is not implemented because it may be non-pure and thus...
    """
    _not_pure("fromiter")


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """A context in which arrays are printed otherwise, NumPy's too; see `numpy.printoptions`.

    Args:
      *args, **kwargs: as for NumPy.

    Returns:
      A context manager, which gives the options.

    >>> import pyjx as jax
    >>> with jax.numpy.printoptions(precision=2):
    ...     print(jax.numpy.array([0.12345]))
    ...
    [0.12]
    """
    with np.printoptions():
        np.set_printoptions(*args, **kwargs)  # which refuses them here
    return np.printoptions(*args, **kwargs)


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set how arrays are printed, NumPy's too; see `numpy.set_printoptions`.

    Args:
      *args, **kwargs: as for NumPy.

    Returns:
      None.

    >>> import pyjx as jax
    >>> jax.numpy.set_printoptions(precision=8)
    """
    np.set_printoptions(*args, **kwargs)
