"""Operations that wait for others whose results they do not read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pyjx.core.avals import ShapedArray
from pyjx.core.effects import Effect
from pyjx.core.primitive import Primitive, register
from pyjx.engine.types import Tangents, Values
from pyjx.lazy import directory

__all__ = ["control_dep", "schedule"]
__dir__ = directory(__name__, __all__)


class _Order(Effect):
    """It has no result, and is kept."""

    droppable = False
    repeatable = True

    def __repr__(self) -> str:
        return "ControlDependency"


_effects = frozenset({_Order()})


def _shape(src: ShapedArray, dst: ShapedArray) -> list[ShapedArray]:
    return []


def _jvp(primals: Values, tangents: Tangents) -> Any:
    control_dep_p.bind(*primals)
    return [], []


def _batch(operands: Values, dims: Any) -> Any:
    control_dep_p.bind(*operands)
    return [], []


control_dep_p = register(Primitive(
    "control_dep", shape_rule=_shape, impl=lambda src, dst: [], jvp=_jvp, batch=_batch,
    effects=lambda params: _effects, multiple_results=True))


def control_dep(src: Any, dst: Any) -> None:
    """Let the operation that gives `dst` run after the one that gives `src`, on GPUs.

    Both are arrays. Elsewhere programs keep their own order, and nothing changes.

    >>> import pyjx as jax
    >>> from pyjx.experimental.control_deps import control_dep
    >>> @jax.jit
    ... def f(x):
    ...     y, z = jax.numpy.sin(x), jax.numpy.cos(x)
    ...     control_dep(y, z)
    ...     return y + z
    >>> float(f(0.0))
    1.0
    """
    control_dep_p.bind(src, dst)


def schedule(ops: Sequence[Any]) -> None:
    """Let the operations that give these arrays run one after the other."""
    for src, dst in pairwise(ops):
        control_dep(src, dst)
