"""Choices that users make of how programs are compiled."""

from __future__ import annotations

import enum
from typing import Any

from pyjx import configuration


class Inline(enum.Enum):
    """Where the call of a jitted function inside another one is replaced by its operations.

    `jit(f, inline=True)` is JAX_LATE, False is AUTO; where that is asked for, a call's parameter
    `inline` is False, as in JAX.
    """

    JAX_EARLY = "jax_early"  # while the function around it is traced
    JAX_LATE = "jax_late"  # while that is lowered to StableHLO
    XLA_EARLY = "xla_early"  # by XLA, before its other passes
    XLA_LATE = "xla_late"  # by XLA, after them
    AUTO = "auto"  # as XLA decides


# In the place of an `Inline`: a call of pyjx's own that XLA inlines as it decides, too, but that
# never becomes a function that XLA must keep.
NEVER_OUTLINED = "never outlined"


# In its place, too: a call of pyjx's own that XLA's CPU compiler makes one kernel of.
ONE_KERNEL = "one kernel"


# Among the compiler options of a function, its budget (runtime/budgets.py); XLA never sees it.
MEMORY_BUDGET = "memory_budget"


def parted(options: Any) -> tuple[configuration.Budget | None, Any]:
    """The budget among compiler options, or else that of the process, and the other options."""
    given = dict(options)
    budget = given.pop(MEMORY_BUDGET, None)
    if isinstance(budget, str):  # of a user, who gave it as an option of XLA's
        budget = configuration.checked_budget(budget)
    if budget is not None:
        return budget, given if isinstance(options, dict) else tuple(given.items())
    flag = configuration.memory_budget.value
    return None if flag is None else configuration.checked_budget(flag), options


class CompilerEffortLevel(enum.Enum):
    """How hard XLA tries, as its option `optimization_level` or `memory_fitting_level`.

    >>> import pyjx as jax
    >>> level = jax.CompilerEffortLevel.O1
    >>> jax.jit(lambda x: x + 1, compiler_options={"optimization_level": level})(1).item()
    2
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39
