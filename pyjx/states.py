"""States, which flags are made of: values that jaxlib holds, global and per thread; contexts.

Those that change the traced or compiled program are `traced`: a compiled function is never reused
under another setting. C++ hashes and compares each state of its key at each call, so the key has
two for all flags: the values that the process has set, and those of contexts of the thread.
"""

from __future__ import annotations

import os
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import wraps
from threading import get_ident
from typing import Any, Protocol
from weakref import ref

from pyjx import jaxlib_api
from pyjx.interning import Interned, missing

Kind = type | tuple[str, ...]  # bool, int, float, str, or the values of an enumeration

_TRUE = ("y", "yes", "t", "true", "on", "1")
_FALSE = ("n", "no", "f", "false", "off", "0")
_TRUTHS: dict[Any, bool] = {False: False, True: True, None: False}
_KIND_NAMES = {int: "int", float: "float", str: "string"}

states: dict[str, State] = {}  # by full name, such as "jax_enable_x64"


def truth(text: str) -> bool | None:
    """What a text says, None where it is no truth value."""
    lowered = text.strip().lower()
    return True if lowered in _TRUE else False if lowered in _FALSE else None


def _from_environment(flag: str, kind: Kind, variable: str, text: str) -> Any:
    if kind is bool:
        value = truth(text)
        if value is None:
            raise ValueError(f"invalid truth value {text!r} for environment {variable!r}: it may "
                             "be 1, true, yes or on, or 0, false, no or off")
        return value
    try:
        if isinstance(kind, type):
            return kind(text)
        if text in kind:
            return text
    except ValueError:
        pass
    expected = f"of type {kind.__name__}" if isinstance(kind, type) else f"in {list(kind)}"
    raise ValueError(f'Invalid value "{text}" for JAX flag {flag}: the environment variable '
                     f"{variable} must be {expected}")


def checked(flag: str, kind: Kind, optional: bool, value: Any) -> Any:
    """`value` if the flag can take it; else ValueError."""
    if value is None and optional:
        return None
    if kind is bool:
        wanted = truth(value) if isinstance(value, str) else None
        with suppress(TypeError):  # from what has no hash, or holds such
            wanted = _TRUTHS.get(value, wanted)
        if wanted is None:
            raise ValueError(f"new bool config value must be True or False, got {value!r} "
                             f"for {flag}.")
        return wanted
    if isinstance(kind, tuple):
        if value in kind:
            return value
        allowed = f"None or in {list(kind)}" if optional else f"in {list(kind)}"
        raise ValueError(f"new enum value must be {allowed}, got {value} of type {type(value)} "
                         f"for {flag}.")
    if value is None or (not isinstance(value, bool) and (
            isinstance(value, kind) or (kind is float and isinstance(value, int)))):
        return value
    raise ValueError(f"new {_KIND_NAMES[kind]} config value must be None or of type "
                     f"{kind.__name__}, got {value} of type {type(value)} for {flag}.")


Budget = int | float  # of memory: bytes, or a fraction of the device's
_BUDGET = r"\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d\d?)?)\s*([A-Za-z]*|%)\s*"
_BYTES = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
          "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
          "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def checked_budget(value: Any, name: str = "jit") -> Budget:
    """A budget as the user gives it: bytes as an int, or a part of a device's memory as a float.

    Raises:
      TypeError: it is no number and no text.
      ValueError: it is not positive, no whole number of bytes, or a text of no known unit.

    >>> checked_budget("1.5GiB"), checked_budget(2e6), checked_budget("0.75"), checked_budget("50%")
    (1610612736, 2000000, 0.75, 0.5)
    """
    budget = value
    if isinstance(value, str):
        found = re.fullmatch(_BUDGET, value)
        text, unit = (found[1], found[2].upper()) if found else ("0", "")
        if unit == "%" and 0 < float(text) <= 100:
            return float(text) / 100
        budget = int(float(text) * _BYTES.get(unit, 0)) if unit else (
            int(text) if text.isdigit() else float(text))
    whole = (hasattr(budget, "__index__") and not isinstance(budget, bool)
             and not getattr(budget, "shape", ()))
    if whole and budget > 0:
        return int(budget)
    if isinstance(budget, float):
        if 0 < budget < 1:
            return float(budget)
        if budget > 1 and budget.is_integer():  # 1.0 may be meant as a byte, or as all there is
            return int(budget)
    raise (ValueError if whole or isinstance(budget, float) else TypeError)(
        f"{name}: memory_budget is bytes, an int or a text such as '12GiB' or '500MB', or a part "
        "of the device's memory, a float below 1 or a text such as '75%' (all of it: '100%'), and "
        f"more than nothing; got {value!r}.")


_other_traced: list[LocalState] = []  # states that no flag stands for


class LocalState(jaxlib_api.Config):
    """A value, global and per thread, held by jaxlib: `.value` reads it, calling it makes a
    context that sets it in this thread."""

    __slots__ = ("_on_change", "default", "flag", "group")

    def __init__(self, flag: str, default: Any, *, in_jit_key: bool = False,
                 in_trace_context: bool = False, group: tuple[LocalState, ...] = (),
                 on_change: Callable[[Any, bool], None] | None = None) -> None:
        self.flag = flag
        self.default = default
        self.group = (self, *group)  # what a context of this state sets
        self._on_change = on_change
        jaxlib_api.init_config_state(self, flag, default, in_jit_key, in_trace_context)
        if in_trace_context:
            _other_traced.append(self)

    def __call__(self, new_val: Any) -> Context:
        return Context(self.group, new_val)

    def _replace_local(self, value: Any) -> Any:
        """Sets the value of this thread; the old one, or the sentinel that it was unset."""
        old = self._swap(value)
        if self._on_change is not None:
            self._on_change(None if value is jaxlib_api.unset else value, True)
        return old

    def _swap(self, value: Any) -> Any:
        return self.swap_local(value)

    def _replace_global(self, value: Any) -> None:
        self._set(value)
        if self._on_change is not None:
            self._on_change(value, False)

    def _set(self, value: Any) -> None:
        self.set_global(value)

    def __bool__(self) -> bool:
        raise TypeError("bool() not supported for instances of type 'State' "
                        "(did you mean to use 'State.value' instead?)")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.flag}={self.value!r}>"


class Flag(Protocol):
    @property
    def default(self) -> Any: ...


Reference = Callable[[], "FlagValues | None"]


def _nothing() -> None:
    return None


class FlagValues:
    """Values of some traced flags, by flag: what a compiled function is keyed by.

    There is one object for each set of values, which `flag_values` makes, so it is compared by
    identity. Nothing here keeps one alive, or the values that it holds, such as devices: whoever is
    keyed by it does.
    """

    __slots__ = ("__weakref__", "_latest", "by_flag")

    def __init__(self, items: Iterable[tuple[Any, Any]]) -> None:
        self.by_flag: Mapping[Any, Any] = dict(items)
        self._latest: tuple[Reference, Reference] = _nothing, _nothing

    def with_one(self, flag: Flag, value: Any) -> FlagValues:
        """These values but for that of one flag."""
        return flag_values({**self.by_flag, flag: value})

    def without(self, flag: Flag) -> FlagValues:
        """These values without that of one flag."""
        return flag_values({k: v for k, v in self.by_flag.items() if k is not flag})

    def over(self, below: FlagValues) -> FlagValues:
        """What holds where these override others: all values that are not the defaults."""
        latest, found = self._latest
        kept = found() if latest() is below else None
        if kept is None:
            merged = {**below.by_flag, **self.by_flag}
            kept = flag_values({k: v for k, v in merged.items() if v != k.default})
            self._latest = ref(below), ref(kept)
        return kept


_known = Interned()


def flag_values(by_flag: Mapping[Any, Any]) -> FlagValues:
    """The one object of these values."""
    return _known.of((frozenset(by_flag.items()),), FlagValues)  # type: ignore[no-any-return]


_lock = threading.RLock()
_all_default = flag_values({})
_global_values = LocalState("flags", _all_default, in_jit_key=True)
_overrides = LocalState("overridden_flags", _all_default, in_jit_key=True)


def _changed(values: FlagValues, flag: State, value: Any) -> FlagValues:
    return values.without(flag) if value is jaxlib_api.unset else values.with_one(flag, value)


class State(LocalState):
    """A flag: a state with a name, an environment variable and a set of values it can take.

    A value that the flag cannot take is a ValueError, raised before anything has changed.

    >>> import pyjx as jax
    >>> with jax.enable_x64(True):
    ...     jax.numpy.zeros(2).dtype
    ...
    dtype('float64')
    """

    __slots__ = ("_check", "_read", "_settled", "_told", "environ", "help", "kind", "optional",
                 "traced")

    def __init__(self, flag: str, kind: Kind, default: Any, *, traced: bool = False,
                 environ: str | None = None, help: str = "", group: tuple[LocalState, ...] = (),
                 check: Callable[[str, Kind, bool, Any], Any] = checked, optional: bool = False,
                 on_change: Callable[[Any, bool], None] | None = None) -> None:
        super().__init__(flag, default, group=group, on_change=on_change)
        self.kind = kind
        self.traced = traced
        self.optional = optional or default is None
        self.environ = environ or flag.upper()
        self.help = help
        self._check = check
        self._settled: str | None = None
        self._read: str | None = None  # what the environment said
        self._told = False  # by a program
        states[flag] = self
        self.read_environment()

    def read_environment(self) -> None:
        """Takes what the environment says, if that is not what it said before, no program has set
        the flag, and it is not too late."""
        text = os.environ.get(self.environ)
        if text != self._read and not self._told and self._settled is None:
            self.update(self.default if text is None else _from_environment(
                self.flag, self.kind, self.environ, text))
            self._read, self._told = text, False

    @property
    def __name__(self) -> str:
        return self.flag.removeprefix("jax_")

    def update(self, value: Any) -> None:
        """Sets the global value.

        Raises:
          ValueError: the flag cannot take it.
          RuntimeError: it is too late to change it.
        """
        value = self._check(self.flag, self.kind, self.optional, value)
        if self._settled is not None and value != self.value:
            raise RuntimeError(self._settled)
        self._told = True
        for state in self.group:
            state._replace_global(value)

    def _swap(self, value: Any) -> Any:
        if self.traced:
            _overrides.set_local(_changed(_overrides.value, self, value))
        return self.swap_local(value)

    def _set(self, value: Any) -> None:
        with _lock:  # the flag and the key that stands for it change together
            if self.traced:
                changed = jaxlib_api.unset if value == self.default else value
                _global_values.set_global(_changed(_global_values.value, self, changed))
            self.set_global(value)

    def settle(self, reason: str) -> None:
        """From now on another value comes too late, for the `reason`."""
        self._settled = reason

    def __call__(self, new_val: Any = missing) -> Context:
        if new_val is missing:
            if self.kind is not bool:
                raise TypeError(f"Context manager for {self.__name__} config option requires an "
                                "argument representing the new value for the config option.")
            new_val = True
        return Context(self.group, self._check(self.flag, self.kind, self.optional, new_val))


class Context:
    """Sets states of this thread while entered; may be entered again, and nested."""

    __slots__ = ("_saved", "_states", "_value")

    def __init__(self, states: tuple[LocalState, ...], value: Any) -> None:
        self._states = states
        self._value = value
        self._saved: defaultdict[int, list[Any]] = defaultdict(list)  # by thread

    def __enter__(self) -> None:
        self._saved[get_ident()].append(
            [state._replace_local(self._value) for state in self._states])

    def __exit__(self, *_: Any) -> None:
        for state, value in zip(self._states, self._saved[get_ident()].pop(), strict=True):
            state._replace_local(value)

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        states, value = self._states, self._value

        @wraps(fun)
        def within(*args: Any, **kwargs: Any) -> Any:
            with Context(states, value):
                return fun(*args, **kwargs)

        return within


def make_user_context(default_value: Any = None) -> LocalState:
    """A context whose value is part of the key of every trace and compile cache.

    Args:
      default_value: hashable, the value outside of any context.

    Raises:
      TypeError: it cannot be hashed.

    >>> import pyjx as jax
    >>> context = jax.make_user_context(0)
    >>> with context(1):
    ...     context.value
    ...
    1
    """
    hash(default_value)  # here, as every call would fail
    return LocalState("user_context", default_value, in_jit_key=True, in_trace_context=True)


def _read_others() -> tuple[Any, ...]:
    return tuple([state.value for state in _other_traced])


_other_values: Callable[[], tuple[Any, ...]] = jaxlib_api.trace_context or _read_others


def traced_flags() -> FlagValues:
    """The values of all traced flags in this thread that are not the defaults."""
    values, overrides = _global_values.value, _overrides.value
    return values if overrides is _all_default else overrides.over(values)


def with_traced_flags(values: FlagValues) -> ExitStack:
    """A context in which the traced flags of this thread have these values."""
    entered = ExitStack()
    for flag in {*traced_flags().by_flag, *values.by_flag}:
        entered.enter_context(flag(values.by_flag.get(flag, flag.default)))
    return entered


def trace_context() -> tuple[Any, ...]:
    """The values of all traced flags and states in this thread: a key for caches of traces."""
    return traced_flags(), *_other_values()


def changed_traced() -> list[tuple[str, Any]]:
    """Name and value of each traced flag and state that differs from its default in this thread."""
    flags = sorted([(flag.flag, value) for flag, value in traced_flags().by_flag.items()])
    return flags + [
        (state.flag, state.value) for state in _other_traced if state.value != state.default]
