"""`jax._src.config`: the flags, and new ones of a library or a suite."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyjx import configuration
from pyjx.states import Kind, State, checked, states, truth

__all__ = [
    "State", "bool_env", "bool_flag", "bool_state", "enum_flag", "enum_state", "float_flag",
    "float_state", "int_env", "int_flag", "int_state", "optional_enum_state",
    "optional_string_state", "parse_flags_with_absl", "string_flag", "string_state",
]

parse_flags_with_absl = configuration.config.parse_flags_with_absl

Hook = Callable[[Any], None] | None


def _state(kind: Kind, name: str, default: Any, help: str, *, optional: bool = False,
           update_global_hook: Hook = None, update_thread_local_hook: Hook = None,
           validator: Hook = None, include_in_jit_key: bool = False,
           include_in_trace_context: bool = False) -> State:
    """A new flag, which `jax.config` knows and the environment may set.

    Args:
      kind, name, default, help: of the flag.
      optional: whether it may be None.
      update_global_hook, update_thread_local_hook: called with each new value, of the process or of
        a context; None is the end of a context.
      validator: raises for a value that the flag cannot take.
      include_in_jit_key, include_in_trace_context: whether programs depend on it.

    Raises:
      ValueError: there is such a flag.
    """
    if name in states:
        raise ValueError(f"Config option {name} already defined")

    def check(flag: str, kind: Kind, optional: bool, value: Any) -> Any:
        value = checked(flag, kind, optional, value)
        if validator is not None:
            validator(value)
        return value

    def changed(value: Any, local: bool) -> None:
        hook = update_thread_local_hook if local else update_global_hook
        if hook is not None:
            hook(value)

    state = State(name, kind, default, help=help, optional=optional, check=check,
                  on_change=changed, traced=include_in_jit_key or include_in_trace_context)
    changed(state.value, False)
    return state


bool_state = partial(_state, bool)
int_state = partial(_state, int)
float_state = partial(_state, float)
string_state = partial(_state, str)
optional_string_state = partial(_state, str, optional=True)


def enum_state(name: str, enum_values: Sequence[str], default: str | None, help: str,
               **options: Any) -> State:
    """As `bool_state`, of some strings."""
    return _state(tuple(enum_values), name, default, help, **options)


optional_enum_state = partial(enum_state, optional=True)


def bool_flag(name: str, default: bool, help: str = "") -> State:
    """A new flag that nothing else depends on.

    >>> flag = bool_flag("pyjx_doctest_flag", False)
    >>> configuration.config.update("pyjx_doctest_flag", True)
    >>> flag.value
    True
    >>> del states["pyjx_doctest_flag"]
    """
    return _state(bool, name, default, help)


def int_flag(name: str, default: int | None, help: str = "") -> State:
    """As `bool_flag`, of integers."""
    return _state(int, name, default, help)


def float_flag(name: str, default: float | None, help: str = "") -> State:
    """As `bool_flag`, of floats."""
    return _state(float, name, default, help)


def string_flag(name: str, default: str | None, help: str = "") -> State:
    """As `bool_flag`, of strings."""
    return _state(str, name, default, help)


def enum_flag(name: str, default: str | None, enum_values: Sequence[str], help: str = "") -> State:
    """As `bool_flag`, of some strings."""
    return enum_state(name, enum_values, default, help)


def bool_env(varname: str, default: bool) -> bool:
    """The truth value of a variable of the environment.

    Raises:
      ValueError: it is none.

    >>> bool_env("NO_SUCH_VARIABLE", True)
    True
    """
    text = os.environ.get(varname)
    value = default if text is None else truth(text)
    if value is None:
        raise ValueError(f"invalid truth value {text!r} for environment {varname!r}")
    return value


def int_env(varname: str, default: int) -> int:
    """The integer that a variable of the environment holds."""
    return int(os.environ.get(varname, default))


def __getattr__(name: str) -> Any:
    return getattr(configuration, name)
