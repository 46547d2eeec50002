"""Functions whose calls are one operation, which holds their program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.primitive import Primitive
from pyjx.core.trace import trace_to_jaxpr
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.calls import define_call
from pyjx.engine.functions import FlatFun, check_values, flatten
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.memory import Space


class PlacedCall(Primitive):
    """A call whose parameter `spaces` says for each result the memory that it is left in; what is
    derived from it has its results in device memory."""

    __slots__ = ("spaces",)

    def __init__(self, name: str, spaces: str) -> None:
        super().__init__(name, multiple_results=True, cached=False,
                         printed=lambda params: sorted(params.items()))
        self.spaces = spaces
        define_call(self, lambda params, origins, linear: {**params, spaces: None})

    def bind(self, *operands: Any, **params: Any) -> Any:
        if params[self.spaces] is None:
            params[self.spaces] = (Space.Device,) * len(params["jaxpr"].outvars)
        return super().bind(*operands, **params)


def staged_call(primitive: Primitive, f: Callable[..., Any], *, per_result: Any = None,
                **params: Any) -> Callable[..., Any]:
    """`f` as calls of a primitive, which holds its program as the parameter `jaxpr`.

    Args:
      per_result: `tree of results -> parameters`, those that depend on it.
      params: the other parameters.
    """
    @wraps(f)
    @api_boundary
    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        check_values(leaves)
        flat = FlatFun(lambda args, kwargs: f(*args, **kwargs), tree, of=f)
        closed = trace_to_jaxpr(flat, list(map(get_aval, leaves)))
        own = {} if per_result is None else per_result(flat.out_tree)
        outs = primitive.bind(*closed.consts, *leaves, jaxpr=consts_as_inputs(closed), **params,
                              **own)
        return flat.unflatten(outs)

    return called


def spread(what: str, given: Any, n: int) -> tuple[Any, ...]:
    """One for each of `n` results.

    Raises:
      ValueError: there are more or fewer.
    """
    found = tuple(given) if isinstance(given, Sequence) else (given,) * n
    if len(found) != n:
        raise ValueError(f"{what} has {len(found)} entries for {n} results")
    return found
