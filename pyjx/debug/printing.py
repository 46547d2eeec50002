"""`debug.print` and `debug.callback`: what compiled programs say while they run."""

from __future__ import annotations

import builtins
import functools
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx.core.array_type import Array
from pyjx.core.avals import SymbolicDim
from pyjx.core.records import Alike
from pyjx.core.trace import Tracer
from pyjx.core.value_texts import in_short, shortened
from pyjx.guards import guard
from pyjx.lax.callbacks import call_for_debugging
from pyjx.lazy import deferred
from pyjx.tree_util import tree_flatten, tree_unflatten

logging = deferred("logging")  # slow to load, and seldom wanted


class Parted(Alike):
    """A pytree without its arrays.

    Args:
      tree: the value.
      is_array: which of its leaves are arrays.
      arrays: a list that these are appended to, each once.
    """

    __slots__ = ("_rest", "_tree", "places")

    def __init__(self, tree: Any, is_array: Callable[[Any], bool], arrays: list[Any]) -> None:
        known = {id(x): i for i, x in enumerate(arrays)}
        leaves, self._tree = tree_flatten(tree)
        self.places: list[int | None] = []  # of each leaf among the arrays
        for x in leaves:
            if not is_array(x):
                self.places.append(None)
                continue
            if id(x) not in known:
                known[id(x)] = len(arrays)
                arrays.append(x)
            self.places.append(known[id(x)])
        self._rest = [x if at is None else None for x, at in zip(leaves, self.places, strict=True)]

    def __hash__(self) -> int:
        return hash(self._tree)

    def joined(self, arrays: Sequence[Any]) -> Any:
        """The value with these arrays."""
        return tree_unflatten(self._tree, [x if at is None else arrays[at] for x, at in zip(
            self._rest, self.places, strict=True)])


def callback(callback: Callable[..., Any] | None = None, *args: Any, ordered: bool = False,
             partitioned: bool = False, **kwargs: Any) -> Any:
    """Call a Python function with values from inside a program; what it gives is not used.

    It is called where the program comes to it: once for each example under `vmap`, with the primal
    values under derivatives, and again where `checkpoint` computes again.

    Args:
      callback: gets arrays in place of the leaves of `args` and `kwargs`. Without it the result
        is this function with the other arguments in place.
      args, kwargs: pytrees of arrays.
      ordered: whether it is called after all ordered callbacks before it.
      partitioned: whether a program on several devices calls it for each part of the arrays.

    >>> import pyjx as jax
    >>> seen = []
    >>> jax.jit(lambda x: jax.debug.callback(lambda y: seen.append(float(y)), x * 2))(2.0)
    >>> jax.effects_barrier()
    >>> seen
    [4.0]
    """
    if callback is None and not args:
        return functools.partial(_callback, ordered=ordered, partitioned=partitioned, **kwargs)
    return _callback(callback, *args, ordered=ordered, partitioned=partitioned, **kwargs)


@guard
def _callback(callback: Callable[..., Any] | None, *args: Any, ordered: bool, partitioned: bool,
              **kwargs: Any) -> None:
    if not callable(callback):
        raise TypeError("first argument to jax.debug.callback must be callable, got "
                        f"{in_short(callback)}. Give the function itself, as in "
                        "jax.debug.callback(print, x).")
    arrays: list[Any] = []
    parted = Parted((args, kwargs), _is_value, arrays)
    call_for_debugging(_PartedCallback(callback, parted), arrays, ordered, partitioned)


class _PartedCallback(Alike):
    """A function with those of its arguments that are no arrays."""

    __slots__ = ("callback", "parted")

    def __init__(self, callback: Callable[..., Any], parted: Parted) -> None:
        self.callback = callback
        self.parted = parted

    def __repr__(self) -> str:
        return repr(self.callback)

    def __call__(self, *arrays: Any) -> None:
        args, kwargs = self.parted.joined(arrays)
        self.callback(*args, **kwargs)


def _is_value(x: Any) -> bool:
    return isinstance(x, (Array, Tracer, SymbolicDim, np.ndarray, np.generic, bool, int, float,
                          complex))


class Formatter(string.Formatter):
    """Python's format strings, as the function `name` takes them."""

    name = "checkify.check"

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        try:
            return super().get_value(key, args, kwargs)
        except (IndexError, KeyError) as error:
            given = f"{len(args)} by position and {sorted(kwargs)} by name"
            asked = f"index {key}" if isinstance(key, int) else f"name {key!r}"
            raise type(error)(f"{self.name}: the format asks for {asked}, and given "
                              f"were {given}. Pass each value that the format names.") from None

    def format_field(self, value: Any, format_spec: str) -> Any:
        try:
            return super().format_field(value, format_spec)
        except TypeError as error:
            shown = in_short(value._tracer if isinstance(value, Placeholder) else value)
            said = str(error).partition(": ")[0]
            raise TypeError(f"{self.name}: {{:{format_spec}}} does not show {shown} ({said}). It "
                            "is for scalars: show others by {}.") from None


class _Formatter(Formatter):
    """Those of which every argument is used."""

    name = "jax.debug.print"

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        unused = [x for i, x in enumerate(args) if i not in used_args]
        if unused:
            raise ValueError("Unused positional arguments to `jax.debug.print`: "
                             f"{shortened(unused)}. Each needs its {{}} in the format.")
        left = [key for key in kwargs if key not in used_args]
        if left:
            raise ValueError(f"Unused keyword arguments to `jax.debug.print`: {left}. You may be "
                             "passing an f-string (i.e, `f\"{x}\"`) into `jax.debug.print` and "
                             "instead should pass in a regular string.")


_formatter = _Formatter()


class Placeholder:
    """Stands for a value, or a part of it, when a format is checked: any way to show a number will
    do."""

    __slots__ = ("_is_part", "_tracer")

    def __init__(self, tracer: Tracer, is_part: bool = False) -> None:
        self._tracer = tracer
        self._is_part = is_part

    def __repr__(self) -> str:
        return repr(self._tracer)

    def __format__(self, spec: str) -> str:
        if spec and self._tracer.shape and not self._is_part:
            raise TypeError("unsupported format string for an array")
        return ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder(self._tracer, True)

    def __getitem__(self, key: Any) -> Placeholder:
        return Placeholder(self._tracer, True)


class _Line(Alike):
    """Shows a line made of a format and values, with the print options in force where it was
    asked for."""

    __slots__ = ("fmt", "logs", "options")

    def __init__(self, fmt: str, logs: bool) -> None:
        self.fmt = fmt
        self.logs = logs
        self.options = np.get_printoptions()

    def __hash__(self) -> int:
        return hash((self.fmt, self.logs))

    def __repr__(self) -> str:
        return f"print({self.fmt!r})"

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        options: Any = {k: v for k, v in self.options.items() if k != "override_repr"}
        with np.printoptions(**options):
            line = self.fmt.format(*args, **kwargs)
        if self.logs:
            logging.getLogger(__name__).info(line)
        else:
            builtins.print(f"{line}\n", end="")  # at once, as several devices may print


def print(fmt: str | None = None, *args: Any, ordered: bool = False, partitioned: bool = False,
          skip_format_check: bool = False, _use_logging: bool = False, **kwargs: Any) -> Any:
    """Print values from inside a program, where it comes to them.

    Args:
      fmt: a format string as `str.format` takes it. Without it the result is this function with the
        other arguments in place.
      args, kwargs: what it shows: arrays, and anything else as it is.
      ordered: whether it comes after all ordered lines before it. Lines that are not ordered come
        in any order, as the compiler sees fit.
      partitioned: whether a program on several devices prints each part of the arrays.
      skip_format_check: whether to leave the arguments unchecked.

    Raises:
      ValueError: an argument is not used by the format.
      IndexError, KeyError: the format uses an argument that is not there.

    >>> import pyjx as jax
    >>> f = jax.jit(lambda x: jax.debug.print("x = {:.1f}, {name}", x, name="first"))
    >>> f(2.0), jax.effects_barrier()
    x = 2.0, first
    (None, None)
    """
    given: Any = {"ordered": ordered, "partitioned": partitioned,
             "skip_format_check": skip_format_check, "_use_logging": _use_logging}
    if fmt is None:
        return functools.partial(print, **given, **kwargs)
    if not isinstance(fmt, str):
        raise TypeError(f"jax.debug.print: fmt must be a string, as in print('{{}}', x), got "
                        f"{shortened(fmt)}")
    if not skip_format_check:
        _formatter.format(fmt, *map(_checkable, args),
                          **{k: _checkable(x) for k, x in kwargs.items()})
    _callback(_Line(fmt, _use_logging), *args, ordered=ordered, partitioned=partitioned, **kwargs)
    return None


def _checkable(x: Any) -> Any:
    return Placeholder(x) if isinstance(x, Tracer) else x


def log(fmt: str | None = None, *args: Any, ordered: bool = False, partitioned: bool = False,
        skip_format_check: bool = False, _use_logging: bool = True, **kwargs: Any) -> Any:
    """As `debug.print`, with a line of the logger `pyjx.debug.printing` at level INFO.

    >>> import pyjx as jax
    >>> jax.jit(lambda x: jax.debug.log("x = {}", x))(2.0)
    """
    return print(fmt, *args, ordered=ordered, partitioned=partitioned,
                 skip_format_check=skip_format_check, _use_logging=_use_logging, **kwargs)
