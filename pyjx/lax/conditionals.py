"""One of several programs: `cond` and `switch`, as a number says that is known at run time, and
`platform_dependent`, by the platform that it is lowered for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, TypeVar, overload

import numpy as np

from lowering.loops import branch_of
from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.effects import join_effects, unrepeatable
from pyjx.core.jaxpr import ClosedJaxpr, Literal
from pyjx.core.primitive import Primitive, register, vary
from pyjx.core.references import is_ref
from pyjx.core.trace import eager_trace, is_concrete, state
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import at_front, broadcast_in_dim
from pyjx.engine.batching import BatchTrace
from pyjx.engine.holders import Held, Holder, Programs, Roles, with_all_consts
from pyjx.engine.lanes import run_lanes
from pyjx.engine.rules import jvp_zero
from pyjx.engine.subjaxprs import with_outputs
from pyjx.engine.types import Dims, Flags, Operand, Params, Tangents, Value, Values
from pyjx.interning import missing
from pyjx.jaxlib_api import raw_platform
from pyjx.lax.agreement import check_nothing_is_summed, check_operands_distinct, trace_branches
from pyjx.lax.common import operand, operands_in
from pyjx.lax.compare import clamp, eq, ne, select, select_n
from pyjx.lax.convert import convert_element_type, full, stop_gradient
from pyjx.lax.elementwise import FLOATING, INTEGER, accepts
from pyjx.runtime import backends
from pyjx.tree_util import tree_unflatten

_Out = TypeVar("_Out")


@overload
def cond(pred: ArrayLike, true_fun: Callable[..., ArrayLike], false_fun: Callable[..., ArrayLike],
         *operands: Any, operand: Any = missing, linear: Any = None) -> Array: ...


@overload
def cond(pred: ArrayLike, true_fun: Callable[..., _Out], false_fun: Callable[..., _Out],
         *operands: Any, operand: Any = missing, linear: Any = None) -> _Out: ...


@overload  # a function of an operand of its own for each branch
def cond(pred: ArrayLike, true_operand: Any, true_fun: Callable[[Any], _Out], false_operand: Any,
         false_fun: Callable[[Any], _Out], /) -> _Out: ...


def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any,
         operand: Any = missing, linear: Any = None) -> Any:
    """`true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`.

    Only one of the two runs, except where `vmap` maps over `pred`: then both do, and each example
    takes the results of its own. Both have derivatives in both modes.

    Args:
      pred: a boolean scalar, or a number, which holds if it is not 0.
      true_fun, false_fun: give results of one structure and the same types.
      operands: pytrees of arrays.
      operand: the only operand, by its name; an older form.
      linear: not used.

    The form `cond(pred, true_operand, true_fun, false_operand, false_fun)` is understood, too.

    Raises:
      TypeError: `pred` is no scalar, or the results differ in structure or types.

    >>> import pyjx as jax
    >>> float(jax.lax.cond(True, lambda x: x + 1, lambda x: x * 10, 5.0))
    6.0

    Operands may also come from the enclosing scope.

    >>> clipped = jax.jit(lambda x: jax.lax.cond(x > 1, lambda: 1.0, lambda: x))
    >>> float(clipped(3.0)), float(clipped(0.5))
    (1.0, 0.5)
    """
    if not (callable(true_fun) and callable(false_fun)):
        if len(operands) == 2 and callable(false_fun) and callable(operands[1]):
            # pred, true_operand, true_fun, false_operand, false_fun
            return cond(pred, lambda x, _: false_fun(x), lambda _, y: operands[1](y), true_fun,
                        operands[0])
        values = "" if any(map(callable, (pred, true_fun, false_fun, *operands))) else (
            " jnp.where(pred, x, y) chooses between values.")
        raise TypeError(
            f"lax.cond: true_fun and false_fun arguments should be callable.{values}")
    operands = _operands("cond", operands, operand)
    holds = _predicate(pred)
    if configuration.disable_jit.value and is_concrete(holds):
        return (true_fun if holds else false_fun)(*operands)
    index = convert_element_type(holds, np.int32)
    return _choose("cond", index, (false_fun, true_fun), ("false_fun", "true_fun"), operands)


def _operands(op: str, operands: tuple[Any, ...], operand: Value) -> tuple[Any, ...]:
    """The operands, given one after the other or as the keyword of older programs."""
    if operand is missing:
        return operands
    if operands:
        raise TypeError(f"lax.{op}: if 'operand' keyword is passed then no positional operands can "
                        f"be passed, got operand={shortened(operand)} and positional operands "
                        f"{shortened(operands)}")
    return (operand,)


_REAL = f"{INTEGER}, {FLOATING}"


def _predicate(pred: Any) -> Any:
    """`pred` as a boolean scalar."""
    if pred is None:
        raise TypeError("cond predicate is None")
    if isinstance(pred, FunctionType):
        raise TypeError(f"lax.cond: pred must be a scalar, got the function {pred.__qualname__}. "
                        "Call it, as in cond(f(x), ...).")
    if isinstance(pred, str | list | tuple | dict):
        raise TypeError(f"lax.cond: Pred must be a scalar, got {pred} of type {type(pred)}. Pred "
                        f"type must be either boolean or number, got {pred}.")
    if isinstance(pred, int | float) or (isinstance(pred, np.generic | np.ndarray)
                                         and not pred.shape and accepts(_REAL, pred.dtype)):
        pred = np.bool_(pred != 0)  # here, as arrays may not hold what is large or tiny
    pred = operand("cond (pred)", pred)
    aval = get_aval(pred)
    if aval.shape:
        raise TypeError(f"lax.cond: Pred must be a scalar, got {pred} of shape {aval.shape}. "
                        "jnp.where(pred, x, y) chooses element by element.")
    if aval.dtype == np.bool_:
        return pred
    if not accepts(_REAL, aval.dtype):
        raise TypeError("lax.cond: Pred type must be either boolean or number, got "
                        f"{dtypes.name(aval.dtype)}.")
    return ne(pred, convert_element_type(0, aval.dtype))


@overload
def switch(index: ArrayLike, branches: Sequence[Callable[..., ArrayLike]], *operands: Any,
           operand: Any = missing) -> Array: ...


@overload
def switch(index: ArrayLike, branches: Sequence[Callable[..., _Out]], *operands: Any,
           operand: Any = missing) -> _Out: ...


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any,
           operand: Any = missing) -> Any:
    """`branches[index](*operands)`, with an index out of range taken to the nearest branch.

    Only one branch runs, except where `vmap` maps over `index`.

    Args:
      index: an integer scalar.
      branches: functions that give results of one structure and the same types.
      operands: pytrees of arrays.
      operand: the only operand, by its name; an older form.

    Raises:
      TypeError: `index` is no integer scalar, or the results differ in structure or types.
      ValueError: there are no branches.

    >>> import pyjx as jax
    >>> float(jax.lax.switch(1, [lambda x: x + 1, lambda x: x * 10], 5.0))
    50.0
    """
    given: Any = branches
    if not isinstance(given, Iterable) or not all(map(callable, branches := tuple(given))):
        cure = " They are one, as in switch(index, [f, g], *operands)." * callable(given)
        if type(given) is dict:
            cure = " Give those of the dictionary: list(branches.values())."
        elif type(given) in (list, tuple) and not any(map(callable, given)):
            cure = " jnp.asarray(branches)[index] chooses between values."
        raise TypeError(f"lax.switch: branches argument should be a sequence of callables.{cure}")
    operands = _operands("switch", operands, operand)
    index = _index(index)
    if not branches:
        raise ValueError("lax.switch: Empty branch sequence")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    if configuration.disable_jit.value and is_concrete(index):
        return branches[min(max(int(index), 0), last)](*operands)
    index = convert_element_type(index, np.int32)
    names = [f"branch {i}" for i in range(len(branches))]
    return _choose("switch", clamp(np.int32(0), index, np.int32(last)), branches, names, operands)


def _index(index: Any) -> Any:
    if isinstance(index, str):
        raise TypeError(f"lax.switch: Index type must be an integer, got {index}.")
    index = operand("switch (index)", index)
    aval = get_aval(index)
    if aval.shape:
        raise TypeError(f"lax.switch: Branch index must be scalar, got {index} of shape "
                        f"{aval.shape}.")
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"lax.switch: Index type must be an integer, got {index} as "
                        f"{dtypes.name(aval.dtype)}. Make it one: "
                        "jnp.asarray(index).astype(int).")
    return index


def _choose(op: str, index: Any, funs: Sequence[Callable[..., Any]], names: Sequence[str],
            operands: Sequence[Any]) -> Any:
    leaves, tree = operands_in(f"{op} (operands)", tuple(operands))
    varying = get_aval(index).place.mat.varying
    if varying:  # where devices choose differently, the sum of cotangents is outside of the choice
        leaves = [x if is_ref(x) else vary(x, varying) for x in leaves]
    check_operands_distinct(op, funs[-1], tree, leaves)
    closed, out_tree = trace_branches(op, names, funs, tree, list(map(get_aval, leaves)), varying)
    branches, consts = with_all_consts(closed)
    for fun, branch in zip(funs, closed, strict=True):
        check_operands_distinct(op, fun, tree, leaves, branch.consts)
    operands = [*consts, *leaves]
    passed = _passed_on(branches)
    if any([i is not None for i in passed]):  # these need no choice
        computed = tuple([n for n, i in enumerate(passed) if i is None])
        branches = [with_outputs(b, computed) for b in branches]
    outs = iter(cond_p.bind(index, *operands, branches=tuple(branches)))
    return tree_unflatten(out_tree, [
        next(outs) if i is None else _as_array(operands[i]) for i in passed])


def _as_array(x: Any) -> Array:
    shape = np.shape(x)
    return x if isinstance(x, Array) else broadcast_in_dim(x, shape, range(len(shape)))


def _passed_on(branches: Sequence[ClosedJaxpr]) -> list[int | None]:
    """For each result which operand it is, if all branches give the same one back."""
    places = [{v: i for i, v in enumerate(b.jaxpr.invars)} for b in branches]
    results = zip(*[b.jaxpr.outvars for b in branches], strict=True)
    found: list[int | None] = []
    for outs in results:
        each = {None if isinstance(v, Literal) else known.get(v)
                for v, known in zip(outs, places, strict=True)}
        i = each.pop()
        found.append(None if each else i)
    return found


# -- the primitive ---------------------------------------------------------------------------------


def _select_batch(trace: BatchTrace, operands: Values, dims: Dims,
                  branches: Sequence[ClosedJaxpr]) -> Any:
    """Each example has an index of its own: all branches run, and each takes its own results.

    A branch that an example does not take has no derivative there, even where its own derivative
    is infinite: it gets its operands through a selection that cuts them off.
    """
    refused = unrepeatable(join_effects(branches))
    if refused:
        raise NotImplementedError(f"{refused[0]} effect not supported in vmap-of-cond: all "
                                  "branches run for all examples.")
    axis = trace.axis
    index = at_front(operands[0], dims[0], axis)
    places = (0,) * (len(operands) - 1)
    values = [at_front(x, d, axis) for x, d in zip(operands[1:], dims[1:], strict=True)]
    cases = []
    for i, branch in enumerate(branches):
        taken = eq(index, full((axis.size,), i, np.int32))
        cases.append(run_lanes(taken, branch, [cut_off(x, taken) for x in values], places, axis))
    outs = []
    for each in zip(*cases, strict=True):
        which = broadcast_in_dim(index, get_aval(each[0]).shape, (0,))
        if len(each) == 2:
            which = ne(which, full(get_aval(which).shape, 0, np.int32))
        outs.append(select_n(which, *each))
    return outs, [0] * len(outs)


def cut_off(x: Value, taken: Any) -> Any:
    """A batch of x whose derivative is zero for the examples that are not `taken`."""
    aval: ShapedArray = get_aval(x)
    if not dtypes.issubdtype(aval.dtype, np.inexact):
        return x
    return select(broadcast_in_dim(taken, aval.shape, (0,)), x, stop_gradient(x))


cond_p = register(Primitive("cond", multiple_results=True, cached=False))


class _Cond(Holder):
    """Before the inputs of the branches stands the index; nothing has a role. Where there is a
    parameter `branches_platforms`, the platform chooses the branch."""

    keeps = True

    def held(self, params: Params) -> Held:
        branches = params["branches"]
        first = branches[0].jaxpr
        return Held(branches, 1, (None,) * len(first.invars), (None,) * len(first.outvars), 0, 0)

    def derived_params(self, params: Params, programs: Programs, ins: Roles, outs: Roles,
                       linear: bool = False) -> Params:
        return {**params, "branches": tuple(programs)}

    def batch_axis(self, trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
        if dims[0] is not None:
            return _select_batch(trace, operands, dims, params["branches"])
        return super().batch_axis(trace, operands, dims, **params)

    def pulled_back(self, cts: Tangents, operands: Sequence[Operand], params: Params,
                    totals: Sequence[Any], added: Flags | None) -> list[Any]:
        """As of all holders, but a sum over devices stands in no branch that some do not take."""
        check_nothing_is_summed("lax.cond, lax.switch", get_aval(operands[0]).place.mat.varying,
                                "take branches", operands[1:])
        return super().pulled_back(cts, operands, params, totals, added)


_Cond(cond_p)


# -- by the platform -------------------------------------------------------------------------------


def platform_dependent(*args: Any, default: Callable[..., Any] | None = None,
                       **per_platform: Callable[..., Any]) -> Any:
    """`per_platform[p](*args)`, where p is the platform that runs it.

    All functions are traced; which one is compiled is chosen when the program is lowered. They have
    derivatives and batches as the branches of `switch` have.

    Args:
      args: pytrees of arrays.
      default: what serves on platforms without a function of their own.
      per_platform: functions by the names of platforms (cpu, cuda, rocm, tpu), which give results
        of one structure and the same types.

    Raises:
      TypeError: a function is none, or the results differ in structure or types.
      ValueError: there is no function, or one for `gpu`.
      NotImplementedError: there is none for the platform, and no default.

    >>> import pyjx as jax
    >>> float(jax.lax.platform_dependent(2.0, cpu=lambda x: x * x, default=lambda x: x ** 2))
    4.0
    """
    if "gpu" in per_platform:
        raise ValueError("Use 'cuda', 'rocm', or 'oneapi' for lax.platform_dependent.")
    funs = {**per_platform, **({} if default is None else {"default": default})}
    if not funs:
        raise ValueError("lax.platform_dependent: there is no branch. Give one by its platform's "
                         "name, as in cpu=f, or a default.")
    for name, fun in funs.items():
        if not callable(fun):
            raise TypeError(f"lax.platform_dependent: the '{name}' branch must be a callable.")
    shared: dict[Any, list[str]] = {}  # what serves several platforms is one branch
    for name, fun in per_platform.items():
        shared.setdefault(fun, []).append(name)
    branches = list(shared)
    platforms: list[tuple[str, ...] | None] = list(map(tuple, shared.values()))
    if default is not None:
        branches.append(default)
        platforms.append(None)
    if state.dynamic is eager_trace:
        place = branch_of(tuple(platforms), raw_platform(backends.default_device().client))
        return branches[place](*args)
    leaves, tree = operands_in("platform_dependent (args)", args)
    names = [f"the branch of {', '.join(p)}" if p else "the default branch" for p in platforms]
    closed, out_tree = trace_branches("platform_dependent", names, branches, tree,
                                      list(map(get_aval, leaves)))
    programs, consts = with_all_consts(closed)
    index = platform_index_p.bind(platforms=tuple(platforms))
    outs = cond_p.bind(index, *consts, *leaves, branches=tuple(programs),
                       branches_platforms=tuple(platforms))
    return tree_unflatten(out_tree, outs)


# Which of these sets of platforms has the one that the program is lowered for: what knows the
# branches' platforms need not lower the others, and what does not takes the right branch all the
# same.
platform_index_p = register(Primitive(
    "platform_index", shape_rule=lambda *, platforms: ShapedArray((), np.dtype(np.int32))))
platform_index_p.define(jvp=jvp_zero(platform_index_p))
