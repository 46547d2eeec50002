"""Parameters of operations that are wrong, made of those of the op table's samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import pyjx as jax
from pyjx.core import dtypes
from pyjx.core.jaxpr import JaxprEqn, subjaxprs
from pyjx.core.primitive import Primitive
from tests.op_table import Sample


class Call(NamedTuple):
    """A primitive, operands and parameters, of which one may be wrong."""

    primitive: Primitive
    operands: list[Any]
    params: dict[str, Any]

    def run(self, *operands: Any) -> Any:
        return self.primitive.bind(*operands, **self.params)


def calls_of(sample: Sample) -> Iterator[Call]:
    """The sample's call of its primitive with each parameter replaced by others, good and bad."""
    eqn = _equation(jax.make_jaxpr(sample.fun)(*sample.args).jaxpr, sample.primitive)
    if eqn is None or not eqn.primitive.cached:  # what holds programs has no such parameters
        return
    operands = [_zeros(v.aval) for v in eqn.invars]
    for name, value in eqn.params.items():
        for other in _others(value):
            yield Call(eqn.primitive, operands, {**eqn.params, name: other})


def _equation(jaxpr: Any, name: str) -> JaxprEqn | None:
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == name:
            return eqn
        for inner in subjaxprs(eqn):
            found = _equation(inner, name)
            if found is not None:
                return found
    return None


def _zeros(aval: Any) -> Any:
    return jax.random.key(0) if dtypes.is_extended(aval.dtype) else np.zeros(aval.shape, aval.dtype)


def _others(value: Any) -> list[Any]:
    if isinstance(value, int) and not isinstance(value, bool):
        return [value + 1, value + 5, -1, 0, -7]
    if type(value) is tuple:
        integers = all([isinstance(x, int) for x in value])
        return [value[:-1], value + value[-1:], *([(*value, 7), (7,)] if integers else []),
                *[(*value[:i], x, *value[i + 1:]) for i in range(len(value))
                  for x in _others(value[i])[:4]]]
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value)]
        return [dataclasses.replace(value, **{name: x})  # type: ignore[type-var]
                for name in names for x in _others(getattr(value, name))]
    if isinstance(value, tuple):  # with names
        names = list(value._fields)  # type: ignore[attr-defined]
        return [value._replace(**{name: x})  # type: ignore[attr-defined]
                for name in names for x in _others(getattr(value, name))]
    return []
