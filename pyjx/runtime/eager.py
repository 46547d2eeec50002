"""Single operations on concrete values: each a small program behind a C++ callable."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.derived import derived_structure
from pyjx.core.effects import has_state
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.primitive import Primitive
from pyjx.core.source_info import no_source_info
from pyjx.core.trace import eager_trace
from pyjx.engine.calls import call_params, jit_p
from pyjx.runtime import dispatch, reference_calls
from pyjx.runtime.dispatch import Miss, registry

_LEAF = registry.flatten(0)[1]


def flat_callable(name: str, closed_for: Callable[[tuple[Any, ...]], ClosedJaxpr], key: Any,
                  single: bool, **options: Any) -> Callable[..., Any]:
    """A C++ callable over flat array arguments.

    `closed_for` gives the jaxpr for the avals of a call; `single` says that its one result is
    returned bare. `options` go to `compile_and_run`.
    """

    def miss(*args: Any) -> Miss:
        closed = closed_for(tuple([get_aval(x) for x in args]))
        out_tree = _LEAF if single else registry.flatten(closed.jaxpr.outvars)[1]
        return dispatch.compile_and_run(closed, name, args, out_tree, **options)

    def uncompiled(*args: Any) -> Any:  # what C++ calls under disable_jit
        return miss(*args)[0]

    return dispatch.compiled_callable(name, uncompiled, miss, key)  # type: ignore[no-any-return]


def operation_callable(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    """The callable of one operation with these parameters."""
    programs = BoundedDict(2048)  # by avals
    if primitive.effects is not None and has_state(primitive.effects(params)):
        return _stateful_callable(primitive, params)

    def closed_for(avals: tuple[Any, ...]) -> ClosedJaxpr:
        closed = programs.get(avals)
        if closed is None:
            closed = programs[avals] = single_eqn_jaxpr(primitive, avals, params)
        return closed  # type: ignore[no-any-return]

    return flat_callable(primitive.name, closed_for, (primitive.name,),
                         not primitive.multiple_results, on_probation=True)


def _stateful_callable(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    """The callable of an operation that holds programs with references."""
    programs = BoundedDict(256)

    def run(*operands: Any) -> Any:
        given = list({id(x): x for x in operands}.values())
        places = {id(x): i for i, x in enumerate(given)}
        order = tuple([places[id(x)] for x in operands])  # a loop may have a reference twice
        avals = tuple(map(get_aval, given))
        closed = programs.get((avals, order))
        if closed is None:
            closed = programs[avals, order] = single_eqn_jaxpr(primitive, avals, params, order)
        outs = _run_jit(*given, **call_params(closed, primitive.name, len(given)))
        return outs if primitive.multiple_results else outs[0]

    return run


def single_eqn_jaxpr(primitive: Primitive, avals: tuple[Any, ...], params: dict[str, Any],
                     order: tuple[int, ...] | None = None) -> ClosedJaxpr:
    """The program of one operation; `order` says which inputs its operands are, if not all in
    turn.

    Raises:
      NotImplementedError: nothing says what the operation gives.
    """
    if primitive.shape_rule is None:
        raise NotImplementedError(
            f"Evaluation rule for '{primitive}' not implemented. Give the primitive one by "
            "`def_impl`, or let it be compiled: by `def_abstract_eval` and a lowering rule.")
    order = tuple(range(len(avals))) if order is None else order
    out = primitive.out_avals(tuple([avals[i] for i in order]), params)
    outvars = [Var(a) for a in (out if primitive.multiple_results else [out])]
    invars = [Var(a) for a in avals]
    effects = primitive.effects_of([avals[i] for i in order], params)
    eqn = JaxprEqn(primitive, [invars[i] for i in order], outvars, params, effects, no_source_info)
    return ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], effects), [])


def _run_jit(*args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    """Eager `jit_p`: through a C++ callable kept with the jaxpr."""
    if jaxpr.jaxpr.effects and has_state(jaxpr.jaxpr.effects):
        return reference_calls.run(
            jaxpr, args, params["donated_invars"],
            lambda pure, donated: _jit_callable(
                pure, *{**params, "donated_invars": donated}.items()))
    return _jit_callable(jaxpr, *params.items())(*args)


@derived_structure
def _jit_callable(closed: ClosedJaxpr, *params: tuple[str, Any]) -> Callable[..., Any]:
    given = dict(params)
    source = weakref.ref(closed)  # which holds the callable

    def closed_for(avals: tuple[Any, ...]) -> ClosedJaxpr:
        closed = source()
        assert closed is not None  # the caller has it
        return closed

    return flat_callable(
        given["name"], closed_for, ("jit", *params), False, donated=given["donated_invars"],
        keep_unused=given["keep_unused"], compiler_options=given["compiler_options_kvs"],
    )


jit_p.define(impl=_run_jit)
eager_trace.compiler = operation_callable
