"""Functions jitted with `dynamic`: traced with symbolic sizes, called with padded arguments.

A call whose types are known is one look into a table: which arguments are padded to what, the
program of the bucket, and how its results are cut. On a CPU arguments and results are padded and
cut in the host's memory, which they are in anyway. A transformation meets an operation that holds
the program with symbolic sizes: what is derived from it is padded as it runs, in buckets too.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from pyjx import configuration, lax
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, SymbolicDim, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.derived import derived
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import Record
from pyjx.core.source_info import raised_at
from pyjx.core.specs import PartitionSpec
from pyjx.core.symbolic.expressions import CONSTANT, DimExpr
from pyjx.core.symbolic.parser import Parser
from pyjx.core.symbolic.scopes import SymbolicScope
from pyjx.core.symbolic.solving import constraints_in, expressions_in, solve, solved, variables_in
from pyjx.core.trace import Tracer, eager_trace, names_lines, state, trace_to_jaxpr
from pyjx.core.value_texts import counted, shortened
from pyjx.dynamic import control, indexed_parts  # noqa: F401  their rules
from pyjx.dynamic.padded import SIZE, Padding, padded_jaxpr, sized_jaxpr
from pyjx.engine.calls import call
from pyjx.engine.functions import source_of
from pyjx.engine.holders import Held, Holder, Programs, Roles
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.engine.types import Params, TreeDef
from pyjx.errors import InconclusiveDimensionOperation
from pyjx.guards import guard
from pyjx.runtime import dispatch, programs, signature
from pyjx.runtime.array import ArrayImpl
from pyjx.runtime.jit import JitSpec, Options, TracedCall
from pyjx.runtime.placement import NO_REQUEST, Request
from pyjx.runtime.sharding import NamedSharding, SingleDeviceSharding, partitions
from pyjx.runtime.transfers import array_from_numpy, put_host
from pyjx.tree_util import tree_flatten, tree_leaves, tree_map

Policy = Any  # "pow2", an int, a sequence of ints, a function of a size, or a dict of these
Sizes = tuple[tuple[str, int], ...]

SMALLEST = 8  # bucket of the policy "pow2"
OUTSIDE = 1e-5  # seconds that a call takes longer where Python pads and cuts, than in one program
MOST_QUESTIONS = 16  # of a function about its sizes, whose answers one trace rests on


def bucket(policy: Policy, name: str, size: int) -> int:
    """The size to which an array of this size is padded, along a dimension of this name.

    Raises:
      ValueError: the policy gives a smaller one, or is none.

    >>> [bucket("pow2", "n", size) for size in (3, 8, 9, 100)]
    [8, 8, 16, 128]
    >>> bucket(10, "n", 21), bucket((4, 32), "n", 5), bucket((4, 32), "n", 33)
    (30, 32, 64)
    """
    if isinstance(policy, Mapping):
        policy = policy.get(name, "pow2")
    if isinstance(policy, str) and policy == "pow2":
        return max(SMALLEST, 1 << (size - 1).bit_length())
    if callable(policy):
        try:
            found = policy(size)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # what it does itself
            raise TypeError("jit: dynamic_policy must be a function of a size alone, such as "
                            f"lambda n: 8 * -(-n // 8), got {shortened(policy)}, which does not "
                            f"take the size {size}: {error}") from None
        if not _are_sizes([found]):
            raise ValueError(f"jit: dynamic_policy gives {shortened(found)} for the size {size} "
                             f"of the dimension {name!r}. Give a number of elements, an int of at "
                             f"least {size}.")
    elif _are_sizes([policy]):
        found = -(-size // policy) * policy
    elif isinstance(policy, (Sequence, np.ndarray)) and len(policy) and _are_sizes(policy):
        sizes = sorted(map(int, policy))
        found = next((n for n in sizes if n >= size), -(-size // sizes[-1]) * sizes[-1])
    else:
        raise ValueError("jit: dynamic_policy must be 'pow2', a positive int whose multiples are "
                         "the buckets, a list of sizes, a function from a size to a bucket, or a "
                         f"dict of these by the dimension's name; got {policy!r}.")
    if found < size:
        raise ValueError(f"jit: dynamic_policy gives the bucket {found} for the size {size} of "
                         f"the dimension {name!r}, which is larger. Give one of at least {size}.")
    return int(found)


def _are_sizes(values: Iterable[Any]) -> bool:
    return all([isinstance(n, (int, np.integer)) and type(n) is not bool and n > 0 for n in values])


# -- programs of buckets ---------------------------------------------------------------------------


class BucketUse(Record):
    """What became of the program of a bucket.

    Attributes:
      bounds: the largest size of each dimension, by name.
      conditions: what holds for its sizes besides: what the function was told that asked.
      sizes: those that it was called with.
      calls: how often it was called, but for sizes that have a program of their own since.
      padding: the share of padding in its padded arguments, of all calls.
    """

    bounds: dict[str, int]
    conditions: tuple[str, ...]
    sizes: tuple[dict[str, int], ...]
    calls: int
    padding: float

    def __str__(self) -> str:
        bounds = ", ".join([*[f"{name} <= {n}" for name, n in self.bounds.items()],
                            *self.conditions])
        return (f"bucket {bounds}: {counted(len(self.sizes), 'size')}, "
                f"{counted(self.calls, 'call')}, {self.padding:.0%} of its arguments padding")


class Bucket:
    """The program of a function for all sizes up to some, and calls of it.

    Attributes:
      closed: the padded program.
      source: the one with symbolic sizes.
      plans: calls, by sizes.
      seconds: what its first call took, most of which is compiling.
    """

    __slots__ = ("bounds", "closed", "may_be_one", "name", "options", "plans", "run", "seconds",
                 "source")

    def __init__(self, source: ClosedJaxpr, bounds: Sizes, name: str, request: Request,
                 options: Params) -> None:
        self.source = source
        self.bounds = bounds
        self.closed = closed = padded_jaxpr(source, bounds)
        self.plans = BoundedDict(programs.TRACES, "sizes in a bucket")
        self.name = name
        self.seconds = math.inf
        self.options = options
        self.may_be_one = not closed.effects and request is NO_REQUEST
        n = len(bounds)
        if request is not NO_REQUEST:
            request = request._replace(**{
                key: (None,) * n + asked for key in ("in_shardings", "in_layouts")
                if (asked := getattr(request, key))})
        donated = options.pop("donated", ()) or (False,) * len(source.in_avals)
        options["donated"] = (False,) * n + tuple(donated)
        out_tree = dispatch.registry.flatten(closed.jaxpr.outvars)[1]

        def miss(*args: Any) -> dispatch.Miss:
            start = time.perf_counter()
            found = dispatch.compile_and_run(closed, name, args, out_tree, request=request,
                                             label=f"jit({name})", **options)
            self.seconds = time.perf_counter() - start
            return found

        self.run: Callable[..., Any] = dispatch.compiled_callable(name, miss, ("bucket", id(self)))
        if closed.effects:
            self.run = lambda *args: call(closed, name, *args)

    def plan(self, sizes: Sizes) -> Plan:
        """How it is called for these sizes."""
        found = self.plans.get(sizes)
        if found is None:
            found = self.plans[sizes] = Plan(self, dict(sizes))
        return found  # type: ignore[no-any-return]


class Plan:
    """A call of a bucket's program for some sizes: what is padded, and what is cut."""

    __slots__ = ("avals", "bucket", "calls", "cut", "given_away", "pad", "sizes", "whole")

    def __init__(self, of: Bucket, sizes: Mapping[str, int]) -> None:
        self.bucket = of
        self.calls = 0
        self.whole: ClosedJaxpr | None = None
        self.avals = [_sized(a, sizes) for a in of.source.in_avals]
        self.sizes = [array_from_numpy(np.asarray(n, SIZE), ShapedArray((), SIZE))
                      for n in sizes.values()]
        n = len(self.sizes)
        self.pad = [(i, padded.shape, a.dtype) for i, (a, padded) in enumerate(zip(
            self.avals, of.closed.in_avals[n:], strict=True))
            if getattr(a, "shape", ()) != getattr(padded, "shape", ())]
        self.given_away = [i for i, *_ in self.pad if of.options["donated"][n + i]]
        self.cut = [(i, tuple(map(slice, own.shape)), own) for i, (a, padded) in enumerate(zip(
            of.source.out_avals, of.closed.out_avals, strict=True))
            if (own := _sized(a, sizes)).shape != getattr(padded, "shape", own.shape)]

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """The results on flat arguments."""
        self.calls += 1
        given = leaves
        if self.pad:
            leaves = list(leaves)
            for i, shape, dtype in self.pad:
                leaves[i] = padded_array(leaves[i], shape, dtype)
        outs = self.bucket.run(*self.sizes, *leaves)
        for i in self.given_away:
            if type(given[i]) is ArrayImpl:
                given[i].delete()  # as the others are that are donated
        for i, part, aval in self.cut:
            outs[i] = cut_array(outs[i], part, aval)
        return outs

    def earns_a_program(self, leaves: Sequence[Any]) -> bool:
        """Whether calls of these sizes have taken longer than it takes to compile `in_one`."""
        return (self.calls * OUTSIDE > self.bucket.seconds and self.bucket.may_be_one
                and not any([isinstance(getattr(x, "sharding", None), NamedSharding)
                             for x in leaves]))

    def in_one(self, leaves: Sequence[Any], out_tree: TreeDef) -> dispatch.Miss:
        """A call of a program that pads, computes and cuts. Barriers keep what is computed as it is
        for other sizes of the bucket, so that results stay the same to the last bit."""
        of, padded = self.bucket, {i: args for i, *args in self.pad}

        def fun(*leaves: Any) -> list[Any]:
            given = [padded_array(x, *padded[i]) if i in padded else x
                     for i, x in enumerate(leaves)]
            outs = eval_jaxpr(of.closed.jaxpr, of.closed.consts,
                              *lax.optimization_barrier((*self.sizes, *given)))
            outs = list(lax.optimization_barrier(tuple(outs)))
            for i, part, _ in self.cut:
                outs[i] = outs[i][part]
            return control.alike(outs, of.source.out_avals)  # padding and masks are strong

        if self.whole is None:
            self.whole = trace_to_jaxpr(fun, self.avals, of.source.debug_info)
        options = {**of.options, "donated": of.options["donated"][len(self.sizes):]}
        return dispatch.compile_and_run(self.whole, of.name, leaves, out_tree,
                                        label=f"jit({of.name})", **options)


def uses(buckets: Iterable[Bucket]) -> list[BucketUse]:
    """What became of buckets."""
    found = []
    for of in buckets:
        true = full = calls = 0
        plans = of.plans.copy()  # calls in other threads may add to them
        for sizes, plan in plans.items():
            calls += plan.calls
            for aval, padded in zip(of.source.in_avals, of.closed.in_avals[len(of.bounds):],
                                    strict=True):
                if (own := _sized(aval, dict(sizes))) is not aval:
                    true += plan.calls * own.size
                    full += plan.calls * padded.size
        found.append(BucketUse(dict(of.bounds), tuple(constraints_in(of.source.in_avals)),
                               tuple(map(dict, plans)), calls, 1 - true / full if full else 0.0))
    return found


def _sized(aval: Any, sizes: Mapping[str, int]) -> Any:
    """A type with the sizes put in."""
    shape = getattr(aval, "shape", ())
    if not any([isinstance(d, SymbolicDim) for d in shape]):
        return aval
    return aval.update(shape=tuple([
        d.evaluate(sizes) if isinstance(d, DimExpr) else d for d in shape]))


def _is_on_host(x: Any) -> bool:
    if type(x) is not ArrayImpl:
        return not isinstance(x, Tracer) and not hasattr(x, "_base_array")
    sharding = x._sharding
    return type(sharding) is SingleDeviceSharding and sharding._device.platform == "cpu"


def padded_array(x: Any, shape: tuple[int, ...], dtype: dtypes.DType) -> Any:
    """An array with zeros behind its elements."""
    if _is_on_host(x):
        out = np.zeros(shape, dtype)
        host = np.asarray(x)
        out[tuple(map(slice, host.shape))] = host
        if type(x) is ArrayImpl and x._committed:  # it says where the program runs
            return put_host(out, get_aval(x).update(shape=shape), x._sharding, True)
        return out
    own = get_aval(x).shape
    if dtypes.is_extended(get_aval(x).dtype):
        index = [np.minimum(np.arange(n), max(m - 1, 0)) for m, n in zip(own, shape, strict=True)]
        return x[np.ix_(*index)]
    zero = np.zeros((), dtype)[()]
    return lax.pad(x, zero, [(0, n - m, 0) for m, n in zip(own, shape, strict=True)])


def cut_array(x: Any, part: tuple[slice, ...], aval: ShapedArray) -> Any:
    """The first elements of an array."""
    if type(x) is ArrayImpl and isinstance(x._sharding, NamedSharding):
        return put_host(np.asarray(x)[part], aval, _fitting(x._sharding, aval.shape), True)
    if not _is_on_host(x):
        return x[part]
    host = np.asarray(x)[part]
    if x._committed:
        return put_host(host, aval, x._sharding, True)
    return array_from_numpy(host, aval, alias=True)


def _fitting(sharding: NamedSharding, shape: tuple[int, ...]) -> NamedSharding:
    """A sharding, or copies on its devices where it doesn't divide the shape."""
    try:
        sharding.shard_shape(shape)
    except ValueError:
        return NamedSharding(sharding.mesh, PartitionSpec())
    return sharding


@derived
def bucket_of(source: ClosedJaxpr, bounds: Sizes, name: str, request: Request = NO_REQUEST,
              options: tuple[tuple[str, Any], ...] = ()) -> Bucket:
    """The program of a bucket, which is kept with the one with symbolic sizes."""
    return Bucket(source, bounds, name, request, dict(options))


# -- under transformations -------------------------------------------------------------------------


class _Dynamic(Holder):
    """A call of a program with symbolic sizes, on arrays of some sizes."""

    keeps = True

    def held(self, params: Params) -> Held:
        jaxpr = params["jaxpr"].jaxpr
        return Held((params["jaxpr"],), 0, (None,) * len(jaxpr.invars),
                    (None,) * len(jaxpr.outvars), 0, 0)

    def derived_params(self, params: Params, programs: Programs, ins: Roles, outs: Roles,
                       linear: bool = False) -> Params:
        return {**params, "jaxpr": programs[0]}

    def outside(self, aval: Any, role: Any, params: Params) -> Any:
        return _sized(aval, dict(params["sizes"]))

    def stands_for(self, params: Params) -> ClosedJaxpr:  # type: ignore[override]
        return sized_jaxpr(params["jaxpr"], params["sizes"])


def _run(*operands: Any, jaxpr: ClosedJaxpr, sizes: Sizes, bounds: Sizes, name: str) -> list[Any]:
    return bucket_of(jaxpr, bounds, name).plan(sizes)(operands)  # type: ignore[no-any-return]


dynamic_p: Primitive = register(Primitive(
    "dynamic_call", multiple_results=True, cached=False, impl=_run))
_Dynamic(dynamic_p)


# -- functions -------------------------------------------------------------------------------------


class _Traced(Record):
    """A function traced with symbolic sizes, or why, and at which line, it could not be."""

    call: TracedCall | None
    scope: SymbolicScope
    failure: Exception | None = None
    place: str = ""

    def questions(self) -> list[tuple[Any, bool]]:
        """What was asked of sizes, as differences: whether one is zero, which was taken for no, or,
        where the trace failed by it, whether one is at least zero.

        Shape rules and functions jitted within remember answers, so what any trace with these
        variables has asked counts for all of them.
        """
        asked = [(d, True) for d in list((self.scope.assumed or {}).values())]
        question = getattr(self.failure, "question", None)
        return asked if question is None else [*asked, question]


class Planned(Record):
    """What is run for types of arguments: the function traced with symbolic sizes, and the plan of
    its program for the sizes here."""

    call: TracedCall
    plan: Plan
    sizes: Sizes


class Calls(BoundedDict):
    """The plans of calls, by the types of arguments; None where these are not padded.

    Attributes:
      traced: the function traced with symbolic sizes, by all else of the types, and by what holds
        for the sizes.
    """

    __slots__ = ("traced",)

    def __init__(self) -> None:
        super().__init__(programs.TRACES, "calls of dynamic functions")
        self.traced = BoundedDict(programs.TRACES, "traces with symbolic sizes")

    def clear(self) -> None:
        super().clear()
        self.traced.clear()

    def buckets(self) -> list[BucketUse]:
        found = [planned.plan.bucket for planned in self.copy().values() if planned is not None]
        return uses(dict.fromkeys(found))


class DynamicSpec(JitSpec):
    """A function jitted with `dynamic`.

    Attributes:
      dims: for parameters the names of their dimensions, or trees of these.
      policy: from sizes to buckets.
      padded: for types of arguments the plan of a call, or None where the program of just these
        types is run.
      scope: of the dimensions, as long as nothing was asked of them. It is the function's own, as
        questions are noted in it.
    """

    __slots__ = ("dims", "policy", "scope")

    key: Any
    padded: Calls
    is_unnamed = False  # whether nobody has asked for it

    def __init__(self, fun: Callable[..., Any], options: Options, dims: Mapping[str, Any],
                 policy: Policy) -> None:
        super().__init__(fun, options)
        self.dims = dict(dims)
        self.policy = policy
        self.padded = Calls()
        self.key = options, object()  # not this object, which would keep the function alive
        specs = tree_flatten(self.dims, is_leaf=_are_dims)[0]
        if wrong := [s for s in specs if not _are_dims(s)]:
            raise ValueError(f"jit: dynamic={dims} has {wrong[0]!r}, where it may have tuples of "
                             "names and None, such as ('n', None).")
        given = [d for s in specs if type(s) is tuple for d in s if isinstance(d, DimExpr)]
        for d in given:
            given[0].scope.check_same(d.scope, given[0], d, "in dynamic of jit")
        self.scope = SymbolicScope([c.text for c in given[0].scope.constraints] if given else ())
        for p in policy.values() if isinstance(policy, Mapping) else (policy,):
            if not callable(p):
                bucket(p, "", 1)
        names = {*re.findall(r"[^\W\d]\w*", str(specs))}
        if isinstance(policy, Mapping) and (wrong := [v for v in policy if v not in names]):
            raise ValueError(f"jit: dynamic_policy speaks of {wrong[0]!r}, which is no name in "
                             f"dynamic={self.dims}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return DynamicSpec, (self.fun, self.options, self.dims, self.policy)

    @guard
    def miss(self, *args: Any, **kwargs: Any) -> dispatch.Miss:
        dynamic, dynamic_kw, static = self.without_static(args, kwargs)
        leaves, in_tree = dispatch.registry.flatten((dynamic, dynamic_kw))
        try:
            key = (in_tree, tuple([get_aval(x) for x in leaves]), static,
                   configuration.trace_context())
            planned = self.padded.get(key, self)
        except (TypeError, ValueError):
            planned = None
        if planned is self and state.dynamic is eager_trace:
            try:
                planned = self.planned(in_tree, key[1], static)
            except ZeroDivisionError:  # of a size by one that is zero
                planned = None
            if planned is None or not _tracers(planned.call.closed.consts):
                self.padded[key] = planned
        if planned is None or state.dynamic is not eager_trace or names_lines():
            return JitSpec.miss(self, *args, **kwargs)  # type: ignore[no-any-return]
        call = planned.call
        if _tracers(leaves) or _tracers(call.closed.consts):
            closed = call.closed
            outs = dynamic_p.bind(*call.consts, *leaves, jaxpr=consts_as_inputs(closed)
                                  if closed.consts else closed, sizes=planned.sizes,
                                  bounds=planned.plan.bucket.bounds, name=self.name)
        elif planned.plan.earns_a_program(leaves):
            return planned.plan.in_one(leaves, call.out_tree)
        else:
            outs = planned.plan(leaves)
        return call.out_tree.unflatten(outs), None, True  # C++ is to ask again

    def planned(self, in_tree: TreeDef, avals: tuple[Any, ...], static: Any) -> Planned | None:
        """How a call with such arguments is made; None where they are not padded."""
        if any([isinstance(d, SymbolicDim) for a in avals for d in getattr(a, "shape", ())]):
            return None  # it is traced as a part of another such function
        symbolic = self.symbolic_avals(self.scope, in_tree, avals, static)
        if not variables_in(symbolic):
            return None
        sizes = self.sizes(symbolic, in_tree, avals, static)
        if min([n for _, n in sizes]) < 1 or not all([
                _holds(c.difference, c.is_equality, dict(sizes)) for c in self.scope.constraints]):
            return None
        traced = self.traced_symbolic(in_tree, avals, static, dict(sizes))
        if traced is None:
            return None
        call, options = traced.call, self.options
        assert call is not None
        bounds = self._bounds(traced.scope, call, sizes)
        if bounds is None:
            return None
        of = bucket_of(call.closed, bounds, self.name, call.request, (
            ("donated", call.donated), ("keep_unused", options.keep_unused),
            ("compiler_options", options.compiler_options)))
        return Planned(call, of.plan(sizes), sizes)

    def _bounds(self, scope: SymbolicScope, call: TracedCall, sizes: Sizes) -> Sizes | None:
        """The bucket for these sizes: the smallest from that of the policy on where meshes divide
        what they cut. None where there is none nearby."""
        cut = _cut_sizes(call)
        longest = 2 * math.lcm(*[n for _, n in cut])
        bounds: dict[str, int] = {}
        for name, size in sizes:
            first = bucket(self.policy, name, size)
            most = scope.variable_bounds(name)[1]
            for n in range(int(min(first, most)), int(min(first + longest, most + 1))):
                bounds[name] = n
                if not any([Padding(scope, bounds, {}).room(d) % k for d, k in cut
                            if name in d.variables() <= bounds.keys()]):
                    break
            else:
                return None
        return tuple(bounds.items())

    def traced_symbolic(self, in_tree: TreeDef, avals: tuple[Any, ...], static: Any,
                        values: Mapping[str, int]) -> _Traced | None:
        """The function traced for all sizes of which it is told the same as of these, where it asks
        which is larger, or whether they are equal. None where that leaves but one size.

        Raises:
          InconclusiveDimensionOperation: it cannot be traced without numbers.
        """
        conditions: dict[str, str] = {}  # and where they were asked for
        while True:
            traced = self._traced_under(conditions, in_tree, avals, static)
            if traced is None:
                return None
            answers = [text for difference, is_equality in traced.questions()
                       if (text := _answered(difference, is_equality, values))]
            if traced.failure is None and not answers:
                return traced
            if not answers or answers[0] in conditions or len(conditions) == MOST_QUESTIONS:
                if traced.failure is None:
                    return None
                self._raise_unsized(traced, bool(answers) and answers[0] not in conditions, in_tree,
                                    avals, static, values)
            conditions[answers[0]] = traced.place

    def _traced_under(self, conditions: Mapping[str, str], in_tree: TreeDef, avals: tuple[Any, ...],
                      static: Any) -> _Traced | None:
        """The function traced for sizes of which these conditions hold."""
        base, known = self.scope, self.padded.traced
        key = (in_tree, self.symbolic_avals(base, in_tree, avals, static), static,
               configuration.trace_context(), tuple(conditions))
        with programs.one_thread((id(base), "symbolic")):
            found = known.get(key)
            if found is not None and (found.call is None or found.call.is_current()):
                return found  # type: ignore[no-any-return]
            try:
                scope = SymbolicScope([*[c.text for c in base.constraints], *conditions]
                                      ) if conditions else base
            except ValueError:  # there is no such condition
                return None
            for c in scope.constraints:
                c.place = conditions.get(c.text, "")
            if not all([isinstance(scope.variable(v), DimExpr) for v in variables_in(key[1])]):
                return None
            symbolic = self.symbolic_avals(scope, in_tree, avals, static)
            scope.is_unnamed = self.is_unnamed
            if scope.assumed is None:
                scope.assumed = {}
            try:
                found = _Traced(self.trace_anew(in_tree, symbolic, static), scope)
            except Exception as error:
                found = _Traced(None, scope, error, raised_at(error))
                if getattr(error, "question", None) is None:
                    return found
                # Nothing of the trace is kept, nor of what was raised in it before.
                error.__traceback__ = error.__context__ = error.__cause__ = None
            known[key] = found
        return found

    def _raise_unsized(self, traced: _Traced, asks_too_much: bool, in_tree: TreeDef,
                       avals: tuple[Any, ...], static: Any, values: Mapping[str, int]) -> NoReturn:
        """Say why there is no trace: what is wrong with these sizes, too, or that the function asks
        for the number that a size is, or too many questions."""
        failure = traced.failure
        assert failure is not None
        if not isinstance(failure, (TypeError, AttributeError, InconclusiveDimensionOperation)):
            raise failure
        self.trace_anew(in_tree, avals, static)
        sizes = ", ".join([f"{v} ({n} here)" for v, n in values.items()])
        lines = str(failure).splitlines()
        said = ". ".join([
            re.sub("(non-int of type )?'?DimExpr'?( object)?", "a symbolic size", lines[0]),
            *[s for s in lines if s.startswith("It arose in")]]).rstrip(".")
        what, rarely = (f"asks more than {MOST_QUESTIONS} questions of its", " less often"
                        ) if asks_too_much else ("cannot be traced for all", "")
        raise InconclusiveDimensionOperation(
            f"jit(dynamic=...): {self.name} {what} sizes {sizes}: at {traced.place}: "
            f"{type(failure).__name__}: {said}. Compute with sizes by jax.numpy, such as "
            f"jnp.sqrt(n), jnp.zeros(n) and jnp.arange(n // 2), compare them{rarely}, loop up to "
            "them by lax.fori_loop or lax.scan, or leave it out of `dynamic`.") from failure

    def paths(self, in_tree: TreeDef, static: Any) -> tuple[str, ...]:
        return signature.leaf_names(signature.parameters_of(self.fun), in_tree, static)

    def sizes(self, symbolic: Sequence[Any], in_tree: TreeDef, avals: tuple[Any, ...], static: Any
              ) -> Sizes:
        """The value of each variable.

        Raises:
          ValueError: sizes of arguments contradict each other.
        """
        paths = self.paths(in_tree, static)
        values = solved(solve(symbolic, paths), avals)
        for i, axis, d in expressions_in(symbolic):
            if avals[i].shape[axis] != d.evaluate(values):
                known = ", ".join([f"{k} = {n}" for k, n in values.items()])
                raise ValueError(f"jit: the dimension {axis} of {paths[i]} is "
                                 f"{avals[i].shape[axis]}, and {d.evaluate(values)} was expected: "
                                 f"dynamic calls it '{d}', and {known} by sizes of arguments. Give "
                                 "dimensions that differ names that differ.")
        return tuple(sorted(values.items()))

    def symbolic_avals(self, scope: SymbolicScope, in_tree: TreeDef, avals: tuple[Any, ...],
                       static: Any) -> tuple[Any, ...]:
        """The types of the arguments with symbolic dimensions."""
        args, kwargs = in_tree.unflatten(range(len(avals)))
        if static:
            args = signature.with_static(args, [(i, (), t) for i, _, t in static[0]])
        parameters = signature.parameters_of(self.fun)
        if parameters is not None:
            n = len(parameters.positional)
            kwargs = {**kwargs, **dict(zip(parameters.positional, args, strict=False))}
            if parameters.variadic:
                kwargs[parameters.variadic] = tuple(args[n:])
        symbolic = list(avals)
        for name, spec in self.dims.items():
            for i, dims in self._spread(name, spec, kwargs.get(name, ()), avals):
                if dims is not None and not isinstance(avals[i], ShapedArray):
                    raise TypeError(f"jit: dynamic names {name!r}, which holds {avals[i]}. A "
                                    "reference keeps its size: leave it out of `dynamic`, or give "
                                    "an array.")
                if dims is not None:
                    symbolic[i] = avals[i].update(
                        shape=named_shape(scope, name, dims, avals[i].shape))
        return tuple(symbolic)

    def _spread(self, name: str, spec: Any, leaves: Any, avals: Sequence[Any]
                ) -> list[tuple[int, Any]]:
        """The names for each leaf of an argument."""
        if spec is None or _are_dims(spec):
            return [(i, spec) for i in tree_leaves(leaves)]
        specs, tree = tree_flatten(spec, is_leaf=lambda s: s is None or _are_dims(s))
        try:
            tree.flatten_up_to(tree_map(lambda i: avals[i], leaves))  # which errors show
        except (TypeError, ValueError) as error:
            raise ValueError(f"jit: dynamic[{name!r}] is no prefix of the tree of the argument: "
                             f"{str(error).rstrip('.')}. Give a tuple of names for each array, "
                             "such as ('n', None), or one for all.") from None
        parts = tree.flatten_up_to(leaves)
        return [(i, s) for s, part in zip(specs, parts, strict=True) for i in tree_leaves(part)]


def named_shape(scope: SymbolicScope, name: str, dims: Any, like: tuple[int, ...]
                ) -> tuple[Any, ...]:
    """The shape of an array, which is in the argument `name`, with names for its dimensions."""
    if isinstance(dims, str):
        return Parser(scope, dims, like).shape()
    if len(dims) != len(like):
        raise ValueError(f"jit: dynamic[{name!r}] names {counted(len(dims), 'dimension')}, {dims}, "
                         f"of an array of shape {like}. " + (
                             "Give a name or None for each." if like else
                             "A number has none; a list of numbers is an array by np.array."))
    try:
        shape = tuple([n if d is None else scope.parse(str(d))
                       for d, n in zip(dims, like, strict=True)])
    except ValueError as error:
        raise ValueError(f"jit: dynamic[{name!r}] names {dims}: {error}") from None
    for axis, (d, n) in enumerate(zip(shape, like, strict=True)):
        if not isinstance(d, DimExpr) and d != n:
            raise ValueError(f"jit: the dimension {axis} of {name} is {n}, and {d} was expected: "
                             f"dynamic[{name!r}] says so. Give a name, or None, for a dimension "
                             "that may differ.")
    return shape


def _cut_sizes(call: TracedCall) -> list[tuple[DimExpr, int]]:
    """The symbolic sizes that meshes cut, each with the number of its parts."""
    found: list[tuple[DimExpr, int]] = []
    closed, request = call.closed, call.request
    for avals, asked in ((closed.in_avals, request.in_shardings),
                         (closed.out_avals, request.out_shardings)):
        for aval, s in zip(avals, asked or [getattr(a, "sharding", None) for a in avals],
                           strict=True):
            hlo = s._to_xla_hlo_sharding(aval.ndim) if isinstance(s, NamedSharding) else None
            if hlo is not None and not hlo.is_replicated():
                found += [(d, n) for d, n in zip(aval.shape, partitions(hlo), strict=False)
                          if isinstance(d, DimExpr) and n > 1]
    return found


def _tracers(values: Sequence[Any]) -> bool:
    return any([isinstance(x, Tracer) for x in values])


def _holds(difference: Any, is_equality: bool, values: Mapping[str, int]) -> bool:
    if isinstance(difference, DimExpr):
        if not difference.variables() <= values.keys():
            return not is_equality
        difference = difference.evaluate(values)
    return bool(difference == 0 if is_equality else difference >= 0)


def _answered(difference: Any, is_equality: bool, values: Mapping[str, int]) -> str:
    """What a function is told that has asked whether a difference of sizes is zero, or at least
    zero, as a condition; nothing where it was told so already."""
    if not isinstance(difference, DimExpr) or not difference.variables() <= values.keys():
        return ""
    n = difference.evaluate(values)
    if not is_equality:
        constant = dict(difference.terms).get(CONSTANT, 0)
        rest = difference - constant
        return f"{rest} >= {-constant}" if n >= 0 else f"{rest} <= {-constant - 1}"
    if n != 0:
        return ""
    # One side of an equation is a single term, of what the other side does not speak of.
    terms = [(DimExpr(difference.scope, {m: abs(c)}), c) for m, c in difference.terms if m]
    sides = [(term, term - difference if c > 0 else term + difference) for term, c in terms]
    term, rest = min(sides, key=lambda side: (
        isinstance(side[1], DimExpr) and str(side[0]) in side[1].variables(),
        side[0].terms[0][1]))
    return f"{term} == {rest}"


def _are_dims(spec: Any) -> bool:
    """Whether these are the names of an array's dimensions."""
    return isinstance(spec, str) or (type(spec) is tuple and spec != () and all(
        [d is None or isinstance(d, (str, int, DimExpr)) for d in spec]))


def dynamic_spec(fun: Callable[..., Any], options: Options, dims: Any, policy: Policy
                 ) -> DynamicSpec:
    """What `jit` makes of its option `dynamic`.

    Raises:
      ValueError: the function has no such parameter, or the policy is none.
      TypeError: the dimensions are no dict.
    """
    if not isinstance(dims, Mapping):
        raise TypeError("jit: dynamic must be a dict from names of parameters to tuples of names "
                        f"of dimensions, such as {{'x': ('batch', None)}}; got {dims!r}.")
    parameters = signature.parameters_of(fun)
    if parameters is not None:
        static = {*options.static_argnames, *[parameters.positional[i] for i in signature
                  .static_positions(options.static_argnums, len(parameters.positional))
                  if 0 <= i < len(parameters.positional)]}
        if wrong := [name for name in dims if name in static]:
            raise ValueError(f"jit: dynamic names {wrong[0]!r}, which is a static argument.")
    if parameters is not None and parameters.keywords is None:
        known = {*parameters.every, parameters.variadic}
        if wrong := [name for name in dims if name not in known]:
            raise ValueError(f"jit: dynamic names {wrong[0]!r}, which is no parameter of "
                             f"{source_of(fun)}. It has {sorted(filter(None, known))}.")
    options = options._replace(dynamic=tuple([(name, str(dims[name])) for name in dims]))
    return DynamicSpec(fun, options, dims, policy)
