"""Operations in an order that the program says, where XLA would choose another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.effects import Effect
from pyjx.core.evaluation import literal_value
from pyjx.core.jaxpr import ClosedJaxpr, Literal, Var
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.calls import define_call
from pyjx.engine.functions import FlatFun, check_values, flatten
from pyjx.engine.primitives import optimization_barrier_p
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.engine.types import Dims, Params, Tangents, Values
from pyjx.runtime.signature import leaf_names, parameters_of
from pyjx.transforms.arguments import wraps


def _ordered(env: dict[Var, Any], names: Sequence[Var]) -> None:
    """Put values behind a barrier: what follows comes after all of them."""
    if len(names) > 1:
        env.update(zip(names, optimization_barrier_p.bind(*[env[v] for v in names]), strict=True))


def _run(*operands: Any, jaxpr: ClosedJaxpr, enforce: bool, strict_in: bool, strict_out: bool,
         exclude_mask: tuple[bool, ...]) -> list[Any]:
    """Run a program; before each operation stands a barrier for the values that are still used."""
    program = jaxpr.jaxpr
    env = dict(zip((*program.constvars, *program.invars), (*jaxpr.consts, *operands),
                   strict=True))
    excluded = {v for v, out in zip(program.invars, exclude_mask, strict=True) if out}

    def read(atom: Any) -> Any:
        return literal_value(atom) if isinstance(atom, Literal) else env[atom]

    for k, eqn in enumerate(program.eqns):
        if enforce and (k or strict_in):
            used = {v for e in program.eqns[k:] for v in e.invars} | set(program.outvars)
            _ordered(env, [v for v in env if v in used and v not in excluded])
        outs = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs],
                       strict=True))
    if enforce and strict_out:
        _ordered(env, list(dict.fromkeys([v for v in program.outvars if isinstance(v, Var)])))
    return list(map(read, program.outvars))


def _derived(params: Params, origins: Dims, linear: bool) -> Params:
    mask = params["exclude_mask"]
    return {**params, "exclude_mask": tuple([i is not None and mask[i] for i in origins])}


program_order_p = register(Primitive(
    "program_order", multiple_results=True, cached=False, decomposition=_run, outlined=False,
    printed=lambda params: sorted(params.items())))
define_call(program_order_p, _derived)


def program_order(f: Any = None, *, enforce: bool, strict_in_out: bool | tuple[bool, bool] = False,
                  exclude_argnames: str | Sequence[str] | None = None) -> Any:
    """A function whose operations, and those of its derivatives, run one after the other as they
    stand in it: so a program says which communication overlaps with which computation.

    Args:
      f: a function of pytrees; without it this is a decorator.
      enforce: whether the order is kept; without it nothing changes.
      strict_in_out: whether all arguments come before the first operation, and all results after
        the last; a pair for each of the two.
      exclude_argnames: arguments that nothing has to wait for.

    >>> import pyjx as jax
    >>> from pyjx.experimental.overlap import program_order
    >>> f = jax.jit(program_order(lambda x: jax.numpy.sin(x) * jax.numpy.cos(x), enforce=True))
    >>> f.lower(1.0).as_text().count("optimization_barrier")
    2
    """
    if f is None:
        return partial(program_order, enforce=enforce, strict_in_out=strict_in_out,
                       exclude_argnames=exclude_argnames)
    strict = (strict_in_out,) * 2 if isinstance(strict_in_out, bool) else tuple(strict_in_out)
    excluded = (exclude_argnames,) if isinstance(exclude_argnames, str) else exclude_argnames or ()

    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        check_values(leaves)
        flat = FlatFun(lambda args, kwargs: f(*args, **kwargs), tree, of=f)
        closed = trace_to_jaxpr(flat, list(map(get_aval, leaves)))
        names = leaf_names(parameters_of(f), tree, None) if excluded else ("",) * len(leaves)
        mask = [n.replace(".", "[").partition("[")[0] in excluded for n in names]
        outs = program_order_p.bind(
            *closed.consts, *leaves, jaxpr=consts_as_inputs(closed), enforce=enforce,
            strict_in=strict[0], strict_out=strict[1],
            exclude_mask=(*[False] * len(closed.consts), *mask))
        return flat.unflatten(outs)

    return wraps(f, called)


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
    ...
    >>> float(f(0.0))
    1.0
    """
    control_dep_p.bind(src, dst)


def schedule(ops: Sequence[Any]) -> None:
    """Let the operations that give these arrays run one after the other."""
    for src, dst in pairwise(ops):
        control_dep(src, dst)
