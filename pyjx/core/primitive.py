"""Primitives: the vocabulary of jaxprs, each with its rules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

from pyjx import configuration
from pyjx.core.arithmetic import NOWHERE, TOGETHER, Arithmetic, Linearity
from pyjx.core.avals import AbstractRef, AbstractValue, get_aval, is_ref_type
from pyjx.core.bounded import BoundedDict, clear_all
from pyjx.core.effects import Effects, no_effects
from pyjx.core.explicit import joined_results
from pyjx.core.forbidden import no_collectives
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.named_axes import trace_of_axes
from pyjx.core.open_sums import INSIDE, checked_agreement
from pyjx.core.places import HERE, UNIFORM
from pyjx.core.specs import NO_AXES, Axes
from pyjx.core.trace import Tracer, raise_leaked, run_compiled, state

Rule = Callable[..., Any]

OUT_AVALS_CAPACITY = 8192  # answers of a shape rule that are kept

# All kinds of rules there are. `Primitive` documents them.
RULE_KINDS = (
    "accumulate", "arithmetic", "batch", "batch_axis", "decomposition", "discharge", "effects",
    "impl", "jvp", "label", "physical", "placed", "printed", "record", "shape_rule",
    "sharding_rule", "text", "transpose",
)

# What it costs to compute a byte of a result again, and to keep it in memory instead.
CHEAP, DEAR, KEPT = 1, 8, 32

# How the compiler may treat an operation that is a program of its own, so that no bit of its result
# differs from that inside of programs: in whichever way is quickest, as the code is as fast; so,
# but the code is slow on large arrays; or as programs alone, as it rounds in another order.
ANY_WAY, ANY_WAY_IF_SMALL, AS_PROGRAMS = range(3)


# How an operation's derivative is that of its values: of all operands; of symmetric matrices, as it
# is told of no others; or on purpose not quite, or not that of those with the same random key.
EXACTLY, OF_SYMMETRIC, ON_PURPOSE = range(3)


class Holding:
    """What an operation that holds programs does by them; None where it says nothing.

    That of engine/holders.py makes all of it of the programs and their roles.

    Args:
      check: `(eqn) -> None`; raises TypeError where an equation is wrong in a way that the shape
        rule does not see.
      cut: `(eqn, policy, needed) -> CutEqn` (engine/residuals.py): the equation with what a policy
        saves inside it.
      dce: `(eqn, used) -> eqn` with only the results that are used.
      held: `params -> Held`, the programs and the roles of what they take and give.
      linearize: `(trace, primals, tangents, **params) -> (results, tangents)`: runs the nonlinear
        part at once and records the linear part in `trace`.
      runs: `params -> ClosedJaxpr`, the program that it runs once, on its operands.
      split: `(trace, operands, params) -> results`, for linear operands among others: computes the
        results that depend on no tangent and records the others in `trace`.
      stands_for: `params -> ClosedJaxpr`, as `runs`, where nothing else is lowered in its place.
      thread: `(eqn, token, after) -> eqns`: the equation with a token passed through it, where it
        has ordered effects.
      within: `params -> context`, in which its programs are traced anew.
    """

    check: Rule | None = None
    cut: Rule | None = None
    dce: Rule | None = None
    held: Rule | None = None
    linearize: Rule | None = None
    runs: Callable[[dict[str, Any]], ClosedJaxpr] | None = None
    split: Rule | None = None
    stands_for: Callable[[dict[str, Any]], ClosedJaxpr] | None = None
    thread: Rule | None = None
    within: Callable[[dict[str, Any]], AbstractContextManager[Any]] | None = None
    # Whether its programs run many times, with a carry that may have no components.
    loops: bool = False

    def __init__(self, **ways: Rule) -> None:
        for name, way in ways.items():
            getattr(self, name)  # there is one
            setattr(self, name, way)

    def times(self, params: dict[str, Any]) -> int | None:
        """How often one of the programs runs, on all devices; None where nobody knows."""
        return 1

    def devices(self, params: dict[str, Any]) -> int:
        """On how many devices its programs run, where it is the operation that says so."""
        return 1


nothing_held = Holding()


class Unrolled(NamedTuple):
    """An operation on few numbers as operations on each of them: what XLA fuses with others, and
    vectorises over a batch, where a CPU calls a library for each matrix otherwise.

    `program` is as the rule `decomposition`; `when` says for which equations, given of how many
    operations the loop is that repeats them, 0 for none, and 1 if it cannot be one kernel. `kernel`
    is the same for a batch outside of loops, as one kernel.
    """

    when: Callable[[JaxprEqn, int], bool]
    program: Rule
    kernel: Rule | None = None


class Primitive:
    """An operation of the IR.

    Its rules are given as keyword arguments here or, where a rule needs the primitive itself, to
    `define`; each kind once. `operands` are values, `primals`, `tangents`, `cts` and `dims` lists
    with an entry for each operand or result; tangents and cotangents may be symbolic zeros.

    Args:
      name: what jaxprs print, and the key of the lowering rule.
      multiple_results: results are a sequence; else there is one result.
      linear: in which operands it is linear, together or each (core/arithmetic.py).
      cached: whether results of `shape_rule` are kept by avals and parameters.
      exact: whether 1 and True, or zeros of two signs, as a parameter are two operations: of what
        takes parameters of the user's as they are, and of what is not `cached`.
      cost: CHEAP or DEAR where computing a result again may spare the memory to keep it; else None.
      rearranges: whether it takes elements from other places, and computes nothing: XLA makes one
        loop of it and of what reads its result.
      outlined: whether blocks that repeat may become functions with it inside.
      length: how many operations it is lowered to, about, where these are many.
      is_call: whether it calls the jaxpr that is its parameter `jaxpr`, by its parameter `name`.
      compiled: ANY_WAY, ANY_WAY_IF_SMALL or AS_PROGRAMS; None where only the order of rounding is
        one. By default what has a `cost` or `moves` is compiled ANY_WAY.
      contracts: whether it sums products of its operands, as products of matrices do.
      moves: whether it only moves values, or makes them of nothing.
      keeps_nans: whether a NaN that it gives came from an operand; so of what `moves`.
      asked: whether interpreters ask the shape rule before the rules for derivatives and batches,
        as these make the results by other operations, or of other parameters, and would take what
        the shape rule refuses.
      own_rules: whether a user's rules, and not the program that it stands for, say how it is
        differentiated or batched.
      in_place: whether its result is its first operand but for a part, and may take its memory.
      unrolled: what a CPU computes of few numbers in its place (`Unrolled`); None where nothing.
      takes_token: whether it takes a token before its operands, and gives one before its results,
        where it has an ordered effect (core/passes/tokens.py).
      holder: what says how it does what, of an operation that holds programs.
      derivative: EXACTLY, OF_SYMMETRIC or ON_PURPOSE, for those who check its rules.
      arithmetic: `eqn -> (operations, transcendental ones)`, what it computes, or `[Runs]`, in
        which programs (core/arithmetic.py); None where nobody knows. Without it what `moves`
        computes nothing, and others what they are made of, or an operation for each element.
      shape_rule: `(*avals, **params) -> aval`, or a sequence of avals with `multiple_results`.
      sharding_rule: `(out, *avals, **params) -> entries`: for each dimension of the result `out`
        the mesh axes that it is cut along, where an operand is cut along some (core/explicit.py).
        Not needed by what is elementwise, nor without `cached`, as the shape rule says it then.
      impl: `(*operands, **params) -> result`, for concrete operands, in place of compiling it.
      decomposition: the primitive as a Python function of other primitives; used wherever a rule
        is missing.
      effects: `params -> effects`, for what has some (`effects_of`).
      jvp: `(primals, tangents, **params) -> (result, tangent)`; follows from `linear` where that
        has one entry.
      transpose: `(ct, *operands, **params) -> cotangents`, where the linear operands are
        `UndefinedPrimal`.
      accumulate: `(totals, ct, *operands, **params) -> cotangents`: as `transpose`, where operands
        have cotangents from elsewhere, `totals`, or None; those that it returns contain them. For
        what reads a part of an operand: the sum is formed where the part is.
      batch: `(operands, dims, **params) -> (result, dim)`.
      batch_axis: `(axis, operands, dims, **params) -> (result, dim)`, for primitives that need to
        know the axis: those that hold jaxprs or read named axes.
      physical: `(avals, *operands, **params) -> result` on the data of extended dtypes; `avals` are
        the types before.
      discharge: `(operands, params, derivable) -> results` on values, where a `Box` stands for each
        reference (engine/discharge.py).
      placed: `params -> [sharding or mesh]`, what it names devices by.
      printed: `params -> [(name, value)]`, the parameters that jaxprs show.
      text: `(eqn, operands, results) -> str | None`, how jaxprs show an equation, given how they
        show its operands and results (None for one that is not read); None for the usual form.
      label: `params -> str`, what profiles and dumps call it, in place of its name.
      record: `(trace, operands, params) -> results`, in place of adding an equation to the program
        that is being recorded; None where the equation is to be added all the same.

    From these follow `of_elements`, whether an element of the one result is made of few elements of
    the operands, and `fuses`, whether XLA makes one loop of it and of what reads its result; not of
    what has effects: of collectives, and of what reads or makes references.
    """

    __slots__ = ("__weakref__", "_out_avals", "asked", "cached", "compiled", "contracts", "cost",
                 "derivative", "exact", "fuses", "holder", "in_place", "is_call", "keeps_nans",
                 "length", "linear", "moves", "multiple_results", "name", "of_elements",
                 "outlined", "own_impl", "own_rules", "rearranges", "takes_token", "unrolled",
                 *[kind for kind in RULE_KINDS if kind != "impl"])

    accumulate: Rule | None
    arithmetic: Arithmetic | None
    batch: Rule | None
    batch_axis: Rule | None
    decomposition: Rule | None
    discharge: Rule | None
    effects: Callable[[dict[str, Any]], Effects] | None
    jvp: Rule | None
    holder: Any  # a Holding
    label: Callable[[dict[str, Any]], str] | None
    own_impl: Rule | None  # the rule `impl`; None where the operation is compiled
    physical: Rule | None
    placed: Callable[[dict[str, Any]], Sequence[Any]] | None
    printed: Callable[[dict[str, Any]], list[tuple[str, Any]]] | None
    record: Rule | None
    shape_rule: Rule | None
    sharding_rule: Rule | None
    text: Rule | None
    transpose: Rule | None

    def __init__(self, name: str, *, multiple_results: bool = False, linear: Linearity = NOWHERE,
                 cached: bool = True, exact: bool = False, cost: int | None = None,
                 rearranges: bool = False, outlined: bool = True, length: int = 1,
                 is_call: bool = False, contracts: bool = False, moves: bool = False,
                 keeps_nans: bool = False, asked: bool = False, own_rules: bool = False,
                 takes_token: bool = False, holder: Holding = nothing_held,
                 compiled: int | None = None, unrolled: Unrolled | None = None,
                 in_place: bool = False, derivative: int = EXACTLY, **rules: Rule | None) -> None:
        self.name = name
        self.multiple_results = multiple_results
        self.linear = linear
        self.cached = cached
        self.exact = exact or not cached
        self.compiled = AS_PROGRAMS if contracts else ANY_WAY if compiled is None and (
            moves or cost is not None) else compiled
        self.cost = cost
        self.rearranges = rearranges
        self.outlined = outlined
        self.length = length
        self.is_call = is_call
        self.contracts = contracts
        self.moves = moves
        self.keeps_nans = moves or keeps_nans
        self.asked = asked
        self.own_rules = own_rules
        self.takes_token = takes_token
        self.unrolled = unrolled
        self.in_place = in_place
        self.derivative = derivative
        self.of_elements = not multiple_results and (moves or cost is not None)
        self.fuses = rearranges or (self.of_elements and not in_place)
        self.holder = holder
        self._out_avals = BoundedDict(OUT_AVALS_CAPACITY, "types of results")
        for kind in RULE_KINDS:
            setattr(self, kind, None)
        self.define(**rules)

    def define(self, **rules: Rule | None) -> Primitive:
        """Give the primitive rules that it has not yet; it is returned.

        Raises:
          TypeError: there is no such kind of rule, the primitive has one, or it is no function.
        """
        for kind, rule in rules.items():
            if kind not in RULE_KINDS:
                raise TypeError(f"Primitive '{self.name}': there is no kind of rule named "
                                f"{kind!r}. The kinds are {', '.join(RULE_KINDS)}.")
            if rule is None:
                continue
            if not callable(rule):
                raise TypeError(f"Primitive '{self.name}': the rule {kind!r} must be callable, got "
                                f"{rule!r}.")
            if getattr(self, "own_impl" if kind == "impl" else kind) is not None:
                raise TypeError(f"Primitive '{self.name}' has a rule {kind!r} already.")
            setattr(self, kind, rule)
            self.exact |= kind == "batch_axis"  # which may hold programs
            self.fuses &= kind != "effects"
        return self

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Apply the primitive, under whichever interpreter the operands or the thread call for."""
        top = state.dynamic
        level = top.level
        for x in operands:
            if isinstance(x, Tracer):
                trace = x._trace
                if trace.level > level:
                    if trace.level > state.level or trace.thread != state.thread:  # it has ended
                        raise_leaked(x)
                    top = trace
                    level = trace.level
        if state.axis_frames:
            if self.batch_axis is None and len(operands) > 1:
                operands = _varying_alike(self, operands)
            if self.effects is not None:
                top = trace_of_axes(top, self.effects_of(operands, params))
        return top.process(self, operands, params)

    def out_avals(self, in_avals: tuple[AbstractValue, ...], params: dict[str, Any]) -> Any:
        """The shape rule's answer: an aval, or a list of avals with `multiple_results`."""
        try:
            return self._out_avals[(in_avals, *params.items()) if params else in_avals]
        except KeyError:
            pass
        except TypeError:  # an unhashable parameter
            return self._shape_rule_result(in_avals, params)
        if not self.cached:
            return self._shape_rule_result(in_avals, params)
        for i, aval in enumerate(in_avals):
            if type(aval) is AbstractRef:
                raise TypeError(f"{self.name} got a Ref of type {aval} at position {i}, but a Ref "
                                "can't be passed where an array is expected. Did you forget to "
                                "read its value with `ref[...]`?")
        key: Any = (in_avals, *params.items()) if params else in_avals
        if any([a.place.sharding is not None for a in in_avals]):
            # the answer may tell of a collective, which is allowed or not
            key = (no_collectives.value, configuration.abstract_mesh.value, key)
            out = self._out_avals.get(key)
            if out is not None:
                return out
        out = self._out_avals[key] = self._shape_rule_result(in_avals, params)
        return out

    def effects_of(self, operands: Sequence[Any], params: dict[str, Any]) -> Effects:
        """What an equation does besides computing results, of operands that are values or types."""
        return no_effects if self.effects is None else self.effects(params)

    def check_operands(self, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Raise what the shape rule says of such operands and parameters, if it takes them not."""
        self.out_avals(tuple(map(get_aval, operands)), params)

    def _shape_rule_result(self, in_avals: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if self.shape_rule is None:
            raise NotImplementedError(f"Abstract evaluation for '{self.name}' not implemented. "
                                      "Give the primitive a rule by `def_abstract_eval`.")
        if not ("sharding" in params or "out_sharding" in params
                or any([a.place is not HERE for a in in_avals])):
            out = self.shape_rule(*in_avals, **params)
            if isinstance(out, AbstractValue) is not self.multiple_results:
                return list(out) if self.multiple_results else out
        return joined_results(self, in_avals, params)

    # How primitives of other libraries are given their rules, which they may give anew.

    @property
    def impl(self) -> Rule:
        """What runs the operation on values: its rule, or else what compiles it."""
        return partial(run_compiled, self) if self.own_impl is None else self.own_impl

    @impl.setter
    def impl(self, impl: Rule | None) -> None:
        self.own_impl = impl

    def def_impl(self, impl: Rule) -> Rule:
        self.own_impl = impl
        return impl

    def def_abstract_eval(self, abstract_eval: Rule) -> Rule:
        if self.shape_rule is not None:
            clear_all()  # the types of results, and what runs the operation on values, in loops too
        self.shape_rule = abstract_eval
        return abstract_eval

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return find_primitive, (self.name, _modules.get(self.name))


_named: dict[str, Primitive] = {}
_modules: dict[str, str] = {}  # which module defines a primitive, by its name


def register(primitive: Primitive) -> Primitive:
    """Make `primitive` findable by its name: for pickling, and for the test of completeness.

    Raises:
      ValueError: there is another one of this name.
    """
    if primitive.name in _named:
        raise ValueError(f"There is a primitive named {primitive.name!r} already.")
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame is not None:  # it is defined while a module is loaded
        _modules[primitive.name] = frame.f_globals["__name__"]
    _named[primitive.name] = primitive
    return primitive


def _pvary_shape(x: Any, *, axes: tuple[Any, ...]) -> Any:
    return x.varying(x.place.mat.varying.union(axes))


# Takes a value for one that varies along `axes` of a mesh. `bind` applies it, so it stands here;
# its other rules are among the collectives.
pvary_p = register(Primitive("pvary", moves=True, shape_rule=_pvary_shape, linear=TOGETHER))


def _cast(name: str, old: str, new: str) -> Primitive:
    """A primitive that takes a value of one type over a mesh for one of another."""

    def shape_rule(x: Any, *, axes: tuple[Any, ...]) -> Any:
        kinds = {kind: getattr(x.place.mat, kind) for kind in ("varying", "unreduced", "reduced")}
        if old in kinds:
            kinds[old] = kinds[old].difference(axes)
        kinds[new] = kinds[new].union(axes)
        return x.varying(*kinds.values())

    primitive = register(Primitive(
        name, moves=True, shape_rule=shape_rule, linear=TOGETHER,
        batch_axis=lambda trace, operands, dims, axes: (
            primitive.bind(*operands, axes=axes), dims[0]),
        physical=lambda avals, x, axes: primitive.bind(x, axes=axes)))
    return primitive


reduced_vary_cast_p = _cast("reduced_vary_cast", "reduced", "varying")
vary_unreduced_cast_p = _cast("vary_unreduced_cast", "varying", "unreduced")
preduced_p = _cast("preduced", "invarying", "reduced")


def _varying_alike(primitive: Primitive, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands, of which those that are tracers vary along the same axes of a mesh."""
    places = {x.aval.place for x in operands if isinstance(x, Tracer)}
    if len(places) < 2 or len(mats := {place.mat for place in places}) < 2:
        return operands
    if not configuration.auto_pcast.value:
        raise ValueError(f"Primitive {primitive} requires varying manual axes to match, but got "
                         f"{[sorted(mat.varying) for mat in mats]}. Cast the operands by "
                         "jax.lax.pcast, or set the flag jax_auto_pcast.")
    axes = NO_AXES.union(*[mat.varying for mat in mats])
    operands = tuple([vary(x, axes) if isinstance(x, Tracer) and not is_ref_type(x.aval) else x
                      for x in operands])
    if any([mat.reduced or mat.unreduced for mat in mats]):
        checked_agreement(primitive, [x.aval for x in operands if isinstance(x, Tracer)], INSIDE)
    return operands


def vary(x: Any, axes: Axes) -> Any:
    """A value taken for one that varies along these axes, too.

    Raises:
      ValueError: it is unreduced along some.
    """
    aval = get_aval(x)
    mat = aval.place.mat
    missing = axes - mat.varying
    if not missing:
        return x
    if not missing.isdisjoint(mat.unreduced):
        raise ValueError(f"pvary cannot accept args which are unreduced. Got {aval.str_short()} "
                         f"and axes={set(missing)}. Sum it with psum before.")
    reduced = missing & mat.reduced
    return _cast_along(_cast_along(x, reduced_vary_cast_p, reduced), pvary_p, missing - reduced)


def _cast_along(x: Any, cast: Primitive, axes: Axes) -> Any:
    return cast.bind(x, axes=tuple(sorted(axes, key=str))) if axes else x


def cast_like(x: Any, aval: AbstractValue) -> Any:
    """A value that is the same on all devices, or zeros, as one of another type over the mesh."""
    mat = aval.place.mat
    x = vary(x, mat.varying | mat.unreduced)
    return _cast_along(_cast_along(x, vary_unreduced_cast_p, mat.unreduced), preduced_p,
                       mat.reduced)


def vary_like(x: Any, model: Any, zero: bool = False) -> Any:
    """A constant taken for one that varies along the axes, too, that another one varies along, and
    is reduced where that is. Zeros are yet to be summed where that is."""
    aval = model.aval if isinstance(model, Tracer) else model
    place = getattr(aval, "place", None)
    if place is HERE:
        return x
    mat = getattr(aval, "manual_axis_type", None) if place is None else place.mat
    if mat is None or mat is UNIFORM:  # structs have one, arrays have none
        return x
    if zero and mat.unreduced:
        return cast_like(x, aval)
    x = vary(x, mat.varying)
    own = get_aval(x).place.mat
    return _cast_along(x, preduced_p, mat.reduced - own.reduced - own.varying)


def find_primitive(name: str, module: str | None = None) -> Primitive:
    """The registered primitive called `name`, which loading `module` defines.

    Raises:
      KeyError: there is none.
    """
    if name not in _named and module is not None:
        importlib.import_module(module)
    try:
        return _named[name]
    except KeyError:
        raise KeyError(f"There is no primitive named {name!r}.") from None


def all_primitives() -> dict[str, Primitive]:
    """The primitives defined so far, by name."""
    return dict(_named)
