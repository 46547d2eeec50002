"""`composite`: a function that compilers may know by its name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from operator import itemgetter
from typing import Any, NoReturn

from lowering.types import Attribute, attribute
from pyjx import errors
from pyjx.core.avals import get_aval
from pyjx.core.integers import as_int
from pyjx.core.jaxpr import Atom, JaxprEqn, Var
from pyjx.core.passes.tokens import threaded
from pyjx.core.primitive import Holding
from pyjx.core.trace import Tracer
from pyjx.engine.calls import call_eqn, standing_for
from pyjx.engine.functions import name_of
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.lax.agreement import trace_function
from pyjx.lax.common import operand
from pyjx.tree_util import tree_flatten, tree_unflatten

Attributes = tuple[tuple[str, Attribute | None], ...]


def composite(decomposition: Callable[..., Any], name: str, version: int = 0
              ) -> Callable[..., Any]:
    """`decomposition` as one operation, which a compiler may know by its name.

    Lowered programs hold `stablehlo.composite`; where the compiler does not know the operation, it
    takes the decomposition. It has no derivatives and no batches: give it these by `custom_jvp`,
    `custom_vjp` or `custom_vmap`.

    Args:
      decomposition: a function of pytrees of arrays. Its keyword arguments are attributes of the
        operation: strings, numbers, NumPy arrays, lists and dictionaries of these; those that are
        None are not written.
      name: the operation's name with its namespace, such as `my.op`.
      version: which version of the operation is meant.

    Raises:
      TypeError: `decomposition` is no function, or an attribute is of another kind.
      UnexpectedTracerError: it closes over a traced value, or an attribute is one.
      ValueError: `name` has no namespace, once the program is lowered.

    >>> import pyjx as jax
    >>> scale = jax.lax.composite(lambda x, *, k: x * k, "my.scale")
    >>> float(jax.jit(lambda x: scale(x, k=3))(2.0))
    6.0
    """
    if not callable(decomposition):
        raise TypeError(f"composite: decomposition must be callable, got {decomposition!r}.")
    version = as_int("composite", "version", version)
    known: dict[Attributes, Any] = {}  # the decomposition with attributes, once for each

    @wraps(decomposition)
    def composed(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten(args)
        leaves = [operand(f"composite ({name})", x, i) for i, x in enumerate(leaves)]
        if any([isinstance(x, Tracer) for x in tree_flatten(kwargs)[0]]):
            _raise_traced(name, "an attribute", " If attributes are arrays, use NumPy's.")
        attributes = tuple([
            (k, None if v is None else attribute(v, f"composite: attribute {k}"))
            for k, v in kwargs.items()])
        fun = known.setdefault(attributes, partial(decomposition, **kwargs))
        body = trace_function("composite", name_of(decomposition), fun, tree,
                          list(map(get_aval, leaves)), unpacked=True)
        closed = body.closed
        if any([isinstance(c, Tracer) for c in closed.consts]):
            _raise_traced(name, "a constant", "")
        outs = composite_p.bind(
            *closed.consts, *leaves, name=name, version=version,
            call_jaxpr=consts_as_inputs(closed),
            attributes=tuple([(k, text) for k, text in attributes if text is not None]))
        return tree_unflatten(body.out_tree, outs)

    return composed


def _raise_traced(name: str, what: str, cure: str) -> NoReturn:
    raise errors.UnexpectedTracerError(
        f"Found a JAX Tracer as {what} in the decomposition for the composite op '{name}'. What is "
        "not known while the program is traced must be a positional argument of the composite."
        + cure)


# -- the primitive ---------------------------------------------------------------------------------


def _jvp(primals: Any, tangents: Any, **_: Any) -> NoReturn:
    raise ValueError("JVP rule for composite not implemented. Give its function derivatives by "
                     "jax.custom_jvp.")


def _transpose(cts: Any, *operands: Any, **_: Any) -> NoReturn:
    raise ValueError("Transpose rule for composite not implemented. Give its function derivatives "
                     "by jax.custom_jvp or jax.custom_vjp.")


def _thread(eqn: JaxprEqn, token: Atom, after: Var) -> list[JaxprEqn]:
    """With ordered effects it is a call of its decomposition."""
    closed = threaded(eqn.params["call_jaxpr"])
    return [call_eqn(eqn, closed, closed.debug_info.func_name, [token, *eqn.invars],
                     [after, *eqn.outvars])]


composite_p = standing_for(
    "composite", itemgetter("call_jaxpr"), Holding(runs=itemgetter("call_jaxpr"), thread=_thread),
    jvp=_jvp, transpose=_transpose)
