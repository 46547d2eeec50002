"""Reverse mode: linearize, then walk the linear program backwards.

`linearize` runs a function in forward mode with tangents that are not values but the variables of
a linear program: what depends on them is recorded, all the rest (primals and residuals) is
computed by whatever interpreter is outside. `backward` transposes that program, last equation
first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any

from pyjx import configuration
from pyjx.core import source_info
from pyjx.core.avals import ShapedArray, get_aval, is_ref_type
from pyjx.core.name_stack import NameStack, current_name_stack, empty_name_stack
from pyjx.core.primitive import Primitive
from pyjx.core.scalars import as_recorded, literal_types
from pyjx.core.source_info import thread_state as source_state
from pyjx.core.trace import Trace, Tracer, check_leaks, eager_trace, names_lines, new_level, state
from pyjx.engine.discharge import Box, bind_discharged, holds_state, operations
from pyjx.engine.forward import LinearizeTrace, LinearizeTracer
from pyjx.engine.moves import as_cotangent, with_sharding_of
from pyjx.engine.tangents import TO_BE_LINEAR, UndefinedPrimal, Zero, add_tangents, instantiate
from pyjx.engine.types import Flags, FlatFunction, Params, Tangent, Tangents, Value, Values

# The variables of linear programs are what transpose rules see in place of linear operands.
LinearVar = UndefinedPrimal

# An equation: primitive, operands (`LinearVar` or the values of residuals), results, parameters,
# and where the operation was made. A tuple, because thousands of them are made in a trace.
LinearEqn = tuple[Primitive, list[Any], list[LinearVar], dict[str, Any], source_info.SourceInfo]


class LinearTracer(Tracer):
    """A tangent: a variable of the linear program being recorded."""

    __slots__ = ("_var",)

    def __init__(self, trace: LinearTrace, var: LinearVar) -> None:
        self._trace = trace
        self.aval = var.aval
        self._var = var


class LinearTrace(Trace):
    """Records operations on tangents. Operands that are not tangents are kept as values. `rules`
    are those that users gave by custom_jvp, and that have run for its tangents. What runs at once
    is `placed` where errors name the lines of values: it costs as much as some operations do."""

    __slots__ = ("eqns", "placed", "rules", "x64")

    def __init__(self) -> None:
        self.eqns: list[LinearEqn] = []
        self.rules: list[Any] = []
        self.placed = names_lines()
        self.x64 = configuration.enable_x64.value

    def new_arg(self, aval: Any) -> LinearTracer:
        return LinearTracer(self, LinearVar(aval))

    def process(self, primitive: Primitive, operands: tuple[Value, ...], params: Params) -> Any:
        if not self.alive:
            self.check_alive(operands)
        if primitive.effects is not None:
            if holds_state(primitive, params):
                return bind_discharged(primitive, operands, params)
            if primitive in operations:
                raise NotImplementedError(
                    f"'{primitive}' of a value that a linear function is transposed by. Wrap the "
                    "function in `jit`, so that its references are known before.")
        if primitive.holder.split is not None:
            return primitive.holder.split(self, operands, params)
        if is_decomposed(primitive) and not (  # a function of variables alone is not linear
                primitive.jvp is not None and all(self.linear_flags(operands))):
            return primitive.decomposition(*operands, **params)  # type: ignore[misc]
        return self.record(primitive, operands, params)

    def linear_flags(self, operands: Sequence[Any]) -> Flags:
        """Which operands are variables of the program."""
        return tuple([type(x) is LinearTracer and x._trace is self for x in operands])

    def record(self, primitive: Primitive, operands: Sequence[Any], params: Params,
               out: Any = None) -> Any:
        """Add an equation. Its operands are variables for tangents and values for residuals; `out`
        is the type of its result, or the types of its results, where that is known."""
        inputs: list[Any] = []
        avals: list[Any] = []
        for x in operands:
            if type(x) is LinearTracer and x._trace is self:
                inputs.append(x._var)
                avals.append(x.aval)
            elif isinstance(x, Tracer):
                self.check_outer(x)
                inputs.append(x)
                avals.append(x.aval)
            else:
                aval = get_aval(x)
                if type(x) in literal_types and configuration.enable_x64.value is not self.x64:
                    x = _at_x64(self.x64, x, aval)
                inputs.append(x)
                avals.append(aval)
        if out is None:
            out = primitive.out_avals(tuple(avals), params)
        unplaced = state.dynamic is eager_trace and not self.placed
        source = source_state.source or (source_info.no_source_info if unplaced and (
            primitive.transpose is not None) else source_info.current())
        if primitive.multiple_results:
            if not out:  # what is linear has no value to look at
                return []
            results = [LinearVar(a) for a in out]
            self.eqns.append((primitive, inputs, results, params, source))
            return [LinearTracer(self, v) for v in results]
        var = LinearVar(out)
        self.eqns.append((primitive, inputs, [var], params, source))
        return LinearTracer(self, var)

    def unwrap(self, x: Any) -> Any:
        """A tangent's variable, or the value that any other operand is."""
        if type(x) is LinearTracer and x._trace is self:
            return x._var
        self.check_outer(x)
        return x


def is_decomposed(primitive: Primitive) -> bool:
    """Whether linear programs hold, in place of the primitive, what it is decomposed into: it has a
    decomposition, and no rule to transpose it by."""
    return primitive.transpose is None and primitive.decomposition is not None


def taken_apart(trace: LinearTrace, primitive: Primitive, values: Sequence[Any], params: Params
                ) -> list[Any]:
    """The results of a primitive that is split or decomposed, for variables among other values:
    variables where they depend on these. The linear part goes into the program of `trace`."""
    with new_level(trace):
        outs = trace.process(primitive, tuple([
            LinearTracer(trace, x) if type(x) is LinearVar else x for x in values]), params)
        return [x._var if type(x) is LinearTracer and x._trace is trace else x
                for x in (outs if primitive.multiple_results else [outs])]


def _at_x64(x64: bool, scalar: Any, aval: ShapedArray) -> Any:
    """A scalar that is of this type here as one that is of it where the flag is `x64`."""
    with configuration.enable_x64(x64):
        return as_recorded(scalar, aval)


class LinearProgram:
    """What `linearize` recorded: equations from tangents in to tangents out.

    `outs` holds a variable, a symbolic zero, or (a tangent that does not depend on the inputs) a
    value. `x64` is the flag that gives the scalars among the values their types, under which it
    runs, and `names` what names of operations begin with that have nothing to do with the function.
    `rules` of custom_jvp that have given its operations are for errors.
    """

    __slots__ = ("eqns", "invars", "names", "outs", "rules", "x64")

    def __init__(self, invars: list[LinearVar | None], eqns: list[LinearEqn], outs: list[Any],
                 names: NameStack | None = None, rules: Sequence[Any] = ()) -> None:
        self.invars = invars
        self.eqns = eqns
        self.outs = outs
        self.names = current_name_stack() if names is None else names
        self.rules = rules
        self.x64: bool = configuration.enable_x64.value

    def forward(self, tangents: Sequence[Any]) -> list[Any]:
        """Apply the linear map."""
        if configuration.enable_x64.value is not self.x64:
            with configuration.enable_x64(self.x64):
                return self.forward(tangents)
        env: dict[LinearVar, Any] = {}
        for var, t in zip(self.invars, tangents, strict=True):
            if var is not None:
                env[var] = instantiate(t)
        with _places(), source_info.replaying(self.names) as replay:
            for primitive, operands, results, params, source in self.eqns:
                replay.source = source
                values = [env[x] if type(x) is LinearVar else x for x in operands]
                out = primitive.bind(*values, **params)
                if primitive.multiple_results:
                    env.update(zip(results, out, strict=True))
                else:
                    env[results[0]] = out
        return [instantiate(env[x] if type(x) is LinearVar else x) for x in self.outs]

    def backward(self, cotangents: Tangents) -> list[Any]:
        """Apply the transposed map: a cotangent, maybe a symbolic zero, for each input."""
        if configuration.enable_x64.value is not self.x64:
            with configuration.enable_x64(self.x64):
                return self.backward(cotangents)
        cts: dict[LinearVar, Any] = {}
        for var, ct in zip(self.outs, cotangents, strict=True):
            if type(var) is LinearVar and type(ct) is not Zero:
                accumulate(cts, var, as_cotangent(ct, var.aval))
        backward_eqns(self.eqns, cts, self.names, "transpose")
        return [
            None if v is None else cts[v] if v in cts else Zero.cotangent_of(v.aval)
            for v in self.invars]

    def pruned(self) -> LinearProgram:
        """The program without the equations that no output depends on."""
        live = {x for x in self.outs if type(x) is LinearVar}
        eqns = []
        for eqn in reversed(self.eqns):
            if not live.isdisjoint(eqn[2]):
                live.update([x for x in eqn[1] if type(x) is LinearVar])
                eqns.append(eqn)
        return self._replaced(eqns[::-1], self.outs)

    def residuals(self, args: Sequence[Any] = ()) -> list[Any]:
        """The arrays that the program holds, each once, in the order of their first use.

        Scalars are part of the program, because they go beside operands of any shape, but for those
        among `args`: these are values of the function, and are broadcast where they are used.
        """
        given = {id(x) for x in args}
        seen: dict[int, Any] = {}
        for x in chain(*[eqn[1] for eqn in self.eqns], self.outs):
            kind = type(x)
            if kind is not LinearVar and kind is not Zero and (
                    kind not in literal_types or id(x) in given):
                seen.setdefault(id(x), x)
        return list(seen.values())

    def abstracted(self, residuals: Sequence[Any]) -> LinearProgram:
        """The program with a `Hole` for each of `residuals`, which says its position there."""
        holes = {id(r): Hole(i) for i, r in enumerate(residuals)}
        return self._map_residuals(lambda x: holes.get(id(x), x))

    def filled(self, residuals: Sequence[Any]) -> LinearProgram:
        """The inverse of `abstracted`."""
        return self._map_residuals(lambda x: residuals[x.index] if type(x) is Hole else x)

    def _map_residuals(self, f: Callable[[Any], Any]) -> LinearProgram:
        eqns = [
            (primitive, [x if type(x) is LinearVar else f(x) for x in operands], results, params,
             source)
            for primitive, operands, results, params, source in self.eqns]
        outs = [x if type(x) is LinearVar or type(x) is Zero else f(x) for x in self.outs]
        return self._replaced(eqns, outs)

    def _replaced(self, eqns: list[LinearEqn], outs: list[Any]) -> LinearProgram:
        program = LinearProgram(self.invars, eqns, outs, self.names)
        program.x64 = self.x64
        return program


class Hole:
    """The place of a residual in a linear program that is kept without them."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


def accumulate(cts: dict[LinearVar, Any], var: LinearVar, ct: Tangent) -> None:
    """Add a cotangent of `var` to those that other paths have brought."""
    cts[var] = add_tangents(cts[var], ct) if var in cts else ct


def _places() -> AbstractContextManager[None]:
    """The context around what is replayed. Where errors name the lines of values, what was recorded
    without any has none: it was so before the flag was set."""
    unknown = state.dynamic is eager_trace and names_lines() and not (
        source_state.traceback or source_state.source)
    return source_info.nowhere() if unknown else nullcontext()


def backward_eqns(eqns: Sequence[LinearEqn], cts: dict[LinearVar, Any],
                  names: NameStack = empty_name_stack, transform: str = "") -> None:
    """Move the cotangents in `cts` backwards through linear equations, adding where paths meet.

    What is recorded, or may be named by an error, gets the sources of the equations, inside `names`
    and below `transform`, as by `replaying`.
    """
    if state.dynamic is eager_trace and not names_lines():
        _backward(eqns, cts, None)
    else:
        with _places(), source_info.replaying(names, transform) as replay:
            _backward(eqns, cts, replay)


def _backward(eqns: Sequence[LinearEqn], cts: dict[LinearVar, Any],
              replay: source_info.replaying | None) -> None:
    """As `backward_eqns`, with the context in which operations get sources, if any do.

    A rule that a user gave is called where all its cotangents are zero, too, if what has cotangents
    depends on its results: it may give others than zeros.
    """
    outs = list(cts)
    read: set[LinearVar] | None = None
    take = cts.pop
    try:
        for primitive, operands, results, params, source in reversed(eqns):
            if primitive.multiple_results:
                ct: Any = [take(v, None) for v in results]
                if all(c is None or type(c) is Zero for c in ct):
                    if not primitive.own_rules:
                        continue
                    if read is None:
                        read = _read_for(outs, eqns)
                    if read.isdisjoint(results):
                        continue
                ct = [Zero.cotangent_of(v.aval) if c is None else c
                      for c, v in zip(ct, results, strict=True)]
                if replay is not None:
                    replay.source = source
            else:
                ct = take(results[0], None)
                if ct is None:
                    continue
                if replay is not None:
                    replay.pin(source)
            rule = primitive.transpose
            if rule is None:
                not_linear, cure = "", "Give it a rule `transpose`, or use jax.custom_vjp."
                if primitive.jvp is not None:
                    not_linear, cure = f": '{primitive}' is not linear", TO_BE_LINEAR
                raise NotImplementedError(
                    f"Transpose rule (for reverse-mode differentiation) for '{primitive}' not "
                    f"implemented{not_linear}. It was applied at {source_info.summarize(source)}. "
                    f"{cure}")
            into = primitive.accumulate
            if into is None or not any([type(x) is LinearVar and x in cts for x in operands]):
                in_cts = rule(ct, *operands, **params)
            else:
                totals = [take(x, None) if type(x) is LinearVar else None for x in operands]
                in_cts = into(totals, ct, *operands, **params)
            for x, c in zip(operands, in_cts, strict=True):
                if type(x) is LinearVar and type(c) is not Zero:
                    if c is None:
                        raise TypeError(
                            f"The function is not linear: '{primitive}' is not linear in one of "
                            f"its operands, which depends on the arguments. {TO_BE_LINEAR}")
                    aval = x.aval
                    if getattr(c, "aval", aval).place.sharding is not aval.place.sharding:
                        c = with_sharding_of(c, aval)
                    cts[x] = add_tangents(cts[x], c) if x in cts else c
    except Exception as error:
        source_info.note_origin(error, source.traceback)
        raise


def _read_for(outs: Sequence[LinearVar], eqns: Sequence[LinearEqn]) -> set[LinearVar]:
    """The variables that `outs` depend on, and themselves."""
    read = set(outs)
    for eqn in reversed(eqns):
        if not read.isdisjoint(eqn[2]):
            read.update([x for x in eqn[1] if type(x) is LinearVar])
    return read


def linearize_flat(fun: FlatFunction, primals: Values, differentiate: Sequence[bool] | None = None,
                   aux: list[Any] | None = None, names: NameStack | None = None
                  ) -> tuple[list[Any], LinearProgram]:
    """Outputs of a function on flat values, and its derivative there as a linear program.

    Inputs for which `differentiate` is false are constants. A reference that is differentiated is,
    in the linear program, the value of its tangent before and, behind the outputs, after. `aux` is
    a list that `fun` fills with more results, which are not differentiated and may be anything.
    `names` is the name stack around the derivative, by default the one here.
    """
    trace = LinearTrace()
    forward = LinearizeTrace(fun, trace)
    with new_level(trace), new_level(forward):
        args: list[Any] = []
        invars: list[LinearVar | None] = []
        boxes: list[Box] = []
        for i, x in enumerate(primals):
            if differentiate is None or differentiate[i]:
                aval: Any = get_aval(x).to_tangent_aval()
                is_ref = is_ref_type(aval)
                var = LinearVar(aval.inner_aval if is_ref else aval)
                tangent: Any = LinearTracer(trace, var)
                if is_ref:
                    tangent = Box(tangent)
                    boxes.append(tangent)
                args.append(LinearizeTracer(forward, x, tangent))
                invars.append(var)
            else:
                args.append(x)
                invars.append(None)
        outs = []
        program_outs = []
        for out in fun(*args):
            primal, tangent = forward.primal_and_tangent(out)
            outs.append(primal)
            program_outs.append(tangent if type(tangent) is Zero else trace.unwrap(tangent))
        program_outs += [b.value if type(b.value) is Zero else trace.unwrap(b.value) for b in boxes]
        if aux:
            aux[:] = [forward.primal_and_tangent(x)[0] if isinstance(x, Tracer) else x for x in aux]
    if configuration.check_tracer_leaks.value:
        args = out = tangent = None  # type: ignore[assignment]
        check_leaks(forward)
    return outs, LinearProgram(invars, trace.eqns, program_outs, names, trace.rules)


def record_flat(fun: FlatFunction, args: Values, linear: Sequence[bool],
                instantiated: Sequence[bool]) -> tuple[list[Any], LinearProgram, list[bool]]:
    """A function that is linear in some arguments: known outputs, the linear program, and which
    outputs are the program's.

    These are the ones that depend on a linear argument, and those `instantiated`. `args` holds an
    aval in place of each argument that is linear.
    """
    trace = LinearTrace()
    invars: list[LinearVar | None] = [LinearVar(x) for x, lin in zip(args, linear, strict=True)
                                      if lin]
    given = iter(invars)
    known: list[Any] = []
    outs: list[Any] = []
    dependent = []
    with new_level(trace):
        results = fun(*[LinearTracer(trace, next(given)) if lin else x  # type: ignore[arg-type]
                        for x, lin in zip(args, linear, strict=True)])
        for out, wanted in zip(results, instantiated, strict=True):
            x = trace.unwrap(out) if isinstance(out, Tracer) else out
            dependent.append(wanted or type(x) is LinearVar)
            (outs if dependent[-1] else known).append(x)
    return known, LinearProgram(invars, trace.eqns, outs), dependent
