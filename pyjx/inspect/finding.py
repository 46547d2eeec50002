"""The first bad value: which operation makes the NaN that a program gives, and where.

A program is run, compiled, with a flag for each operation: whether its results have such a value.
From the first result that has one the search goes backwards, from an element to the element of an
operand that it is made of and that is bad, to the operation none of whose operands has such. Where
that is a loop, it is run again with a counter: since which iteration has this element of the carry
been bad? Then it is run up to there, and the body alone, with flags as before. Branches and
programs of devices are opened likewise. So what is found is what the result comes from; a NaN that
a `where` keeps out of it is passed by. Of large programs, whose values are not kept, flags alone
are known: there the search goes from array to array.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import pyjx as jax
from pyjx import configuration, jaxlib_api, lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.effects import NamedAxisEffect, keeps_alive
from pyjx.core.evaluation import bind_eqn, holds_jaxprs, jaxpr_as_fun, literal_value, walk
from pyjx.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal
from pyjx.core.name_stack import NameStack
from pyjx.core.passes.dce import dce
from pyjx.core.records import Record
from pyjx.core.specs import PartitionSpec
from pyjx.inspect.bad_values import BadValue, Step, found_in, place_text, without_program
from pyjx.inspect.loops import Loop
from pyjx.inspect.sources import ALL, Element, first_of, sources
from pyjx.inspect.straight import (
    changed,
    check_keywords,
    line_of,
    repeatable,
    straight,
    stretch,
    traced,
)
from pyjx.parallel.calls import ordered
from pyjx.runtime import flag_checks

# What gives each element of its operand, and none besides: it has a bad one where that has.
_SAME = frozenset(["broadcast_in_dim", "copy", "name", "reshape", "rev",
                   "squeeze", "stop_gradient", "transpose"])
_HOPS = 8  # from element to element of a carry, each of which is a run of the loop or two
_NANS = 32  # of a program's results, behind which an infinity is looked for
_FEW = 2**20  # elements, which are looked at without a program
MOST_BYTES = 2**31  # of values of a program that are kept while it is looked at
# How a CPU compiles what runs once: most of the time would go into making its kernels fast. The
# emitters without MLIR are the faster ones for short programs alone.
_ONCE: dict[str, Any] = {"xla_backend_optimization_level": 0}
_SHORT = {"xla_cpu_use_fusion_emitters": False} if jaxlib_api.HAS_OLDER_CPU_EMITTERS else {}
_LONG = 4096  # equations, of which a long program has several pieces


def is_subnormal(x: Any) -> Any:
    """Where a number is so small that it has lost digits; by its bits, as devices take it for 0."""
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return is_subnormal(x.real) | is_subnormal(x.imag)
    bits = lax.bitcast_convert_type(x, np.dtype(f"uint{8 * x.dtype.itemsize}"))
    info = dtypes.finfo(x.dtype)
    fraction = (1 << info.nmant) - 1
    exponent = (1 << info.nexp) - 1 << info.nmant
    return (bits & bits.dtype.type(exponent) == 0) & (bits & bits.dtype.type(fraction) != 0)


def _is_not_finite(x: Any) -> Any:
    return ~(abs(x) < np.inf)


KINDS: dict[str, Callable[[Any], Any]] = {
    "nan": lambda x: x != x, "inf": lambda x: abs(x) == np.inf, "subnormal": is_subnormal}


def find(fun: Callable[..., Any], *args: Any, what: str | Callable[[Any], Any] = "nan",
         **kwargs: Any) -> BadValue:
    """Find the operation that makes the first bad value of what a function gives.

    Args:
      fun: a function of arrays, jitted or not; it may hold loops, branches, derivatives, batches,
        rules of its own, and programs of devices.
      args, kwargs: what it is called with.
      what: `nan`, `inf`, `subnormal`, or a function from an array of floating-point numbers to
        booleans of its shape.

    Returns:
      A `BadValue`: true where there is one, and printed as a report of the operation, its line,
      the iterations, branches and devices around it, and its operands.

    Raises:
      ValueError: there is no such kind.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> def logs(x):
    ...     return jax.lax.scan(lambda c, a: (c + jnp.log(a), c), 0.0, x)
    ...
    >>> found = jax.inspect.find(logs, jnp.array([1.0, 2.0, -3.0, 4.0]))
    >>> found.operation, [step.text for step in found.steps], found.operands[0].there
    ('log', ['iteration 2 of scan'], -3.0)
    >>> bool(jax.inspect.find(logs, jnp.ones(3)))
    False
    """
    if not callable(what) and (not isinstance(what, str) or what not in KINDS):
        raise ValueError(f"inspect.find: what must be one of {[*KINDS]}, or a function from an "
                         f"array to booleans; got {what!r}.")
    check_keywords("find", fun, kwargs, "what")
    with configuration.debug_nans(False), configuration.debug_infs(False):
        try:
            closed, leaves, notes = traced(fun, args, kwargs)
        except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
            problem = error
        else:
            return find_in(closed, leaves, what, notes)
    return _find_eagerly(fun, args, kwargs, what, problem)


def find_in(closed: ClosedJaxpr, leaves: Sequence[Any], what: str | Callable[[Any], Any],
            notes: Sequence[str] = ()) -> BadValue:
    """As `find`, in a program on flat arguments."""
    with configuration.debug_nans(False), configuration.debug_infs(False):
        closed, values, more = repeatable(closed, leaves)
        first = finder = _Finder(what, [*notes, *more])
        found = finder.chase(closed, values, WHOLE, None, Spot(None, None), _Path((), ()))
        if found is None and what == "inf":  # a nan may come of one
            finder = _Finder(what, [*notes, *more], _is_not_finite)
            found = finder.behind_nans(closed, values)
        if isinstance(found, BadValue) and found.operation is None:  # unless another is why
            again = _Finder(what, [*notes, *more, "constants of the program that are so, such as "
                                   "what a kernel's memory begins with, were taken for 0."])
            clean = changed(closed, partial(_clean, finder.bad))
            other = again.chase(clean, values, WHOLE, None, Spot(None, None), _Path((), ()))
            found = other if isinstance(other, BadValue) else found
        if isinstance(found, int):
            names = closed.jaxpr.debug_info.arg_names
            name = names[found] if names else f"argument {found}"
            return finder.of_argument(name, leaves[found])
        return found if found is not None else BadValue(
            finder.what, notes=(*finder.notes, *first.unseen(closed)))


def _clean(bad: Callable[[Any], Any], eqn: JaxprEqn) -> JaxprEqn:
    """The equation with 0 in the place of bad literals."""
    return eqn.replace(invars=[
        Literal(v.aval.dtype.type(0), v.aval) if isinstance(v, Literal) and dtypes.issubdtype(
            v.aval.dtype, np.inexact) and bad(literal_value(v)).any() else v for v in eqn.invars])


def find_again(closed: ClosedJaxpr, leaves: Sequence[Any], what: str) -> BadValue:
    """As `find_in`, in a program that has run: what must not be had twice is not."""
    if keeps_alive(repeatable(closed, leaves)[0].effects):
        return BadValue(what, notes=("it reads what `io_callback` gives, so it was not run again; "
                                     "jax.inspect.find runs it, operation by operation.",))
    return find_in(closed, leaves, what)


def _find_eagerly(fun: Callable[..., Any], args: Any, kwargs: Any, what: Any, problem: Exception
                  ) -> BadValue:
    """Of a function that asks for values in Python: each of its operations is run on its own."""
    flags = {"nan": configuration.debug_nans, "inf": configuration.debug_infs}
    if what not in flags:
        raise problem
    note = ("the function asks for values in Python, so it was run as it is, and the first "
            "operation, or jitted function, was taken that gives one.")
    with flags[what](True), flag_checks.behind_nans(what == "inf"):
        try:
            fun(*args, **kwargs)
        except FloatingPointError as error:
            found = getattr(error, "found", None)
            return without_program(what, error, note) if found is None else found._replace(
                notes=(*found.notes, note))
    return BadValue(what, notes=(note,))


class _Path(Record):
    """Where a program is: the steps that lead to it, and the name stacks of what holds it."""

    steps: tuple[Step, ...]
    stacks: tuple[NameStack, ...]

    def into(self, text: str, eqn: JaxprEqn) -> _Path:
        return _Path((*self.steps, Step.of(text, eqn)), (*self.stacks, eqn.source_info.name_stack))


class Spot(NamedTuple):
    """Where in a value: on which device, by its number, and at which element; None where any."""

    device: int | None
    element: Element | None


class Whole:
    """Programs run as they are."""

    devices: Sequence[Any] = (None,)
    sizes: Sequence[int] = ()

    def compiled(self, fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        return jax.jit(fun, **options)  # type: ignore[no-any-return]

    def number(self, n: int) -> Any:
        return np.int32(n)

    def of(self, x: Any, device: int) -> Any:
        return x

    def stacked(self, x: Any) -> Any:
        return x


WHOLE = Whole()


class OnDevices(Whole):
    """Programs run on each device of a mesh, or on each of those within each of `outer`. Outside,
    values are those of all, one after the other along a new first axis."""

    mesh: Any
    names: tuple[Any, ...]

    def __init__(self, params: dict[str, Any], outer: Whole) -> None:
        self.outer = outer.names if isinstance(outer, OnDevices) else ()
        self.mesh = mesh = outer.mesh if isinstance(outer, OnDevices) else params["mesh"]
        self.names = (*self.outer, *ordered(mesh, params["newly_manual_axes"]))
        self.sizes = [mesh.shape[n] for n in self.names]
        self.devices = [", ".join([f"{n}={i}" for n, i in zip(self.names, place, strict=True)])
                        for place in np.ndindex(*self.sizes)]
        self.spec = PartitionSpec(self.names)

    def _mapped(self, fun: Callable[..., Any], in_specs: Any, **options: Any) -> Callable[..., Any]:
        return jax.jit(jax.shard_map(  # type: ignore[no-any-return]
            lambda *xs: [y[None] for y in fun(*xs)], mesh=self.mesh, in_specs=in_specs,
            out_specs=self.spec, axis_names=set(self.names), check_vma=False), **options)

    def entered(self, operands: Sequence[Any], in_specs: Any) -> list[Any]:
        """The parts of the operands that devices have."""
        if not self.outer:
            return list(self._mapped(lambda *xs: xs, tuple(in_specs))(*operands))
        specs = tuple([PartitionSpec(self.outer, *spec) for spec in in_specs])
        return list(self._mapped(lambda *xs: [x[0] for x in xs], specs)(*operands))

    def compiled(self, fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        return self._mapped(lambda *xs: fun(*[x[0] for x in xs]), self.spec, **options)

    def number(self, n: int) -> Any:
        return np.full(len(self.devices), n, np.int32)

    def stacked(self, x: Any) -> Any:
        return jnp.broadcast_to(x, (len(self.devices), *np.shape(x)))

    def of(self, x: Any, device: int) -> Any:
        return x[device]

    def _corner(self, spec: PartitionSpec, device: int, shape: Sequence[int]) -> list[int]:
        """Where the part that a device has of a value begins, whose shape is that."""
        at = dict(zip(self.names, np.unravel_index(device, self.sizes), strict=True))
        corner = [0] * len(shape)
        for i, axes in enumerate(spec):
            for name in () if axes is None else (axes,) if isinstance(axes, str) else axes:
                corner[i] = corner[i] * self.mesh.shape[name] + int(at[name]) * shape[i]
        return corner

    def inward(self, element: Element | None, spec: PartitionSpec, shape: Sequence[int]) -> Spot:
        """Where in its parts, of that shape, an element of a value is."""
        if element is None or self.outer:
            return Spot(None, None)
        for device in range(len(self.devices)):
            own = [i - n for i, n in zip(element, self._corner(spec, device, shape), strict=True)]
            if all([0 <= i < n for i, n in zip(own, shape, strict=True)]):
                return Spot(device, tuple(own))
        return Spot(None, None)

    def outward(self, spot: Spot, spec: PartitionSpec, shape: Sequence[int]) -> Element | None:
        """Which element of a value one of a part is, where no mesh is around this one."""
        if spot.element is None or self.outer:
            return None
        corner = self._corner(spec, spot.device or 0, shape)
        return tuple([i + n for i, n in zip(spot.element, corner, strict=True)])


class _Straight:
    """A straight program, the equation that makes each of its variables, and its compiled forms."""

    def __init__(self, closed: ClosedJaxpr) -> None:
        self.source = closed  # whose id is the key
        self.closed = straight(closed)
        self.made: dict[Any, int] = {
            v: i for i, e in enumerate(self.closed.eqns) for v in e.outvars}
        self.inputs = {v: i for i, v in enumerate(self.closed.jaxpr.invars)}
        self.consts = {v: i for i, v in enumerate(self.closed.jaxpr.constvars)}
        self.programs: dict[Any, Any] = {}
        # The arguments of the last run, where that was, the values of variables, and which are bad.
        self.given: Sequence[Any] = ()
        self.scope: Whole = WHOLE
        self.values: dict[Any, Any] = {}
        self.flags: dict[Any, Any] = {}
        self.bytes = sum([math.prod(v.aval.shape) * v.aval.dtype.itemsize for v in self.made])
        # What has no loops gives the values of all its variables.
        self.pieces: list[JaxprEqn | ClosedJaxpr] = []
        for is_loop, group in itertools.groupby(self.closed.eqns, _is_loop):
            eqns = list(group)
            self.pieces += eqns if is_loop else [
                stretch(eqns[i:i + _LONG]) for i in range(0, len(eqns), _LONG)]
        self.last = {v: i for i, piece in enumerate(self.pieces) for v in (
            piece.invars if isinstance(piece, JaxprEqn) else piece.jaxpr.invars)}

    def origin(self, atom: Atom) -> Atom:
        """The variable whose elements those of `atom` are, as far as they were only moved."""
        while atom in self.made:
            eqn = self.closed.eqns[self.made[atom]]
            if eqn.primitive.name not in _SAME:
                break
            atom = eqn.invars[0]
        return atom


def _is_loop(eqn: JaxprEqn) -> bool:
    return eqn.primitive.name in ("scan", "while") and eqn.params.get("length") != 0


def _noting(env: dict[Any, Any]) -> Callable[..., Sequence[Any]]:
    """How equations are run so that `env` gets their results."""
    def apply(eqn: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
        outs = bind_eqn(eqn, operands)
        env.update(zip(eqn.outvars, outs, strict=True))
        return outs

    return apply


class _Finder:
    """A search for one kind of values."""

    def __init__(self, what: str | Callable[[Any], Any], notes: list[str],
                 predicate: Callable[[Any], Any] | None = None) -> None:
        name = getattr(what, "__name__", "")
        self.what = what if isinstance(what, str) else (
            f"value of which {name if name.isidentifier() else 'the condition'} holds")
        self.predicate = predicate or (KINDS[what] if isinstance(what, str) else what)
        self.notes = notes
        self.programs: dict[Any, _Straight] = {}
        self.loops: dict[Any, Any] = {}
        self.since: dict[int, Any] = {}  # what is told of loops in the last run of their programs
        self.here = np.asarray if what in ("nan", "inf") else jnp.asarray
        self.on_cpu = jax.default_backend() == "cpu"
        self.by_rank: dict[bool, Any] = {}
        self.spot = Spot(0, None)  # where in an input the search went to

    # -- flags

    def looks_at(self, aval: Any) -> bool:
        """Whether values of a type may be bad."""
        return dtypes.has_dtype(aval, np.inexact)

    def bad(self, x: Any) -> Any:
        """Where a concrete value is bad."""
        return np.asarray(self.predicate(self.here(x)))

    def flags(self, program: _Straight, values: Sequence[Any], scope: Whole) -> dict[Any, Any]:
        """Of each variable whether it is bad, on each device.

        The program gives the values of all variables, which are looked at one by one: XLA takes
        longer for a thousand flags than for the program. Its loops run apart, watched from the
        start, so that none is compiled twice. Where values are too large, they are not kept.
        """
        if program.given is values and program.scope is scope:
            return program.flags
        program.given, program.scope = values, scope
        program.values = env = dict(zip(program.closed.jaxpr.all_invars, [
            *map(scope.stacked, program.closed.consts), *values], strict=True))
        if keeps_alive(program.closed.effects):
            self.notes.append("it calls Python for its results, so it was run once, operation by "
                              "operation; loops that do so were not opened.")
            walk(program.closed.jaxpr, program.closed.consts, values, _noting(env))
            program.flags = {v: self.seen(x, scope) for v, x in env.items()}
            return program.flags
        program.flags = found = {v: self.seen(x, scope) for v, x in env.items()}
        for i, piece in enumerate(program.pieces):
            if isinstance(piece, JaxprEqn):
                loop, watched = self.watching(piece, scope)
                made: Sequence[Any] = piece.outvars
                outs = watched(loop.length, self.operands(program, piece))
                self.since[id(piece)] = outs[len(made)]
            else:
                made = piece.jaxpr.outvars
                options = {**_ONCE, **(_SHORT if len(piece.eqns) < 128 else {})}
                compiled = program.programs.setdefault(i, scope.compiled(
                    jaxpr_as_fun(piece), compiler_options=options if self.on_cpu else None))
                outs = compiled(*[env[v] for v in piece.jaxpr.invars])
            new = dict(zip(made, outs, strict=False))
            found.update({v: self.seen(x, scope) for v, x in new.items()})
            env.update(new)
            if program.bytes > MOST_BYTES:  # what no piece reads any more goes
                for v in [v for v in env if program.last.get(v, i) <= i and v in program.made]:
                    del env[v]
        return found

    def seen(self, x: Any, scope: Whole) -> Any:
        """Whether a value is bad, on each device."""
        if not self.looks_at(jax.typeof(x)):
            return np.zeros(len(scope.devices), bool)
        if self.here is np.asarray and np.size(x) <= _FEW:
            bad = np.asarray(self.bad(x))
            return np.atleast_1d(bad.any(tuple(range(scope is not WHOLE, bad.ndim))))
        known = self.by_rank.setdefault(scope is WHOLE, jax.jit(
            lambda x: jnp.any(self.predicate(x), range(scope is not WHOLE, x.ndim))))
        return np.atleast_1d(np.asarray(known(x)))

    def fetched(self, program: _Straight, atoms: Sequence[Atom]) -> list[Any]:
        """The values of variables and literals, by a program of what they need."""
        wanted = tuple(dict.fromkeys([
            v for v in atoms if not isinstance(v, Literal) and v not in program.values]))
        if wanted not in program.programs:
            program.programs[wanted] = program.scope.compiled(
                jaxpr_as_fun(dce(program.closed.replace(outvars=list(wanted)))))
        outs = program.programs[wanted](*program.given) if wanted else []
        env = {**program.values, **dict(zip(wanted, outs, strict=True))}
        return [literal_value(v) if isinstance(v, Literal) else env[v] for v in atoms]

    # -- the search

    def opened(self, closed: ClosedJaxpr) -> _Straight:
        if id(closed) not in self.programs:
            self.programs[id(closed)] = _Straight(closed)
        return self.programs[id(closed)]

    def chase(self, closed: ClosedJaxpr, values: list[Any], scope: Whole, target: int | None,
              spot: Spot, path: _Path) -> BadValue | int | None:
        """Where what is bad in result `target`, or in the first bad one, comes from: an operation,
        or the input of which this is the number. None where nothing is bad."""
        program = self.opened(closed)
        flags = self.flags(program, values, scope)
        start = self._start(program, flags, target, spot)
        if start is None:
            return None
        atom, spot = start
        taker: JaxprEqn | None = None  # of the atom
        while True:
            if spot.element is None or isinstance(program.origin(atom), Literal):
                taker = program.closed.eqns[program.made[atom]] if atom in program.made else taker
                atom = program.origin(atom)
            self.spot = spot
            if atom in program.inputs:
                return program.inputs[atom]  # type: ignore[index]
            if isinstance(atom, Literal):
                x = literal_value(atom)
                place = "" if taker is None else f" at {place_text(line_of(taker))}"
                return self.of_argument(f"the literal {x}{place}", x)
            if atom in program.consts:
                return self.of_argument("a constant that the function captures",
                                        program.closed.consts[program.consts[atom]])
            i = program.made[atom]
            eqn = program.closed.eqns[i]
            k = list(eqn.outvars).index(atom)
            came = partial(self.operand, program, i, k, flags, spot)
            found = self.inside(program, eqn, k, spot, path, came) if holds_jaxprs(eqn) else came()
            if isinstance(found, BadValue):
                return found
            if found is None:
                return self.at(program, eqn, k, spot, path)
            k, spot = found
            atom, taker = eqn.invars[k], eqn

    def _start(self, program: _Straight, flags: dict[Any, Any], target: int | None, spot: Spot
               ) -> tuple[Atom, Spot] | None:
        outvars = program.closed.jaxpr.outvars
        for out in outvars if target is None else [outvars[target]]:
            atom = program.origin(out)
            if isinstance(atom, Literal):
                if self.looks_at(atom.aval) and self.bad(literal_value(atom)).any():
                    return atom, Spot(spot.device or 0, None)
                continue
            found = flags.get(atom)
            if found is not None and (found.any() if spot.device is None else found[spot.device]):
                device = int(found.argmax()) if spot.device is None else spot.device
                return out, self.spot_in(program, out, device, spot.element)
        return None

    def spot_in(self, program: _Straight, atom: Atom, device: int, element: Element | None
                ) -> Spot:
        """A bad element of a value, that one if it is bad, or the first; none of a large program.
        """
        if program.bytes > MOST_BYTES or isinstance(atom, Literal):
            return Spot(device, None)
        x = program.scope.of(self.fetched(program, [atom])[0], device)
        if element is None or not self.bad(x)[element]:
            element = first_of(self.bad, x, ALL)
        return Spot(device, element)

    def operand(self, program: _Straight, i: int, k: int, flags: dict[Any, Any], spot: Spot
                ) -> tuple[int, Spot] | None:
        """The operand of equation `i`, and where in it, from which what is bad in result `k` comes;
        None where none has any."""
        eqn, device = program.closed.eqns[i], spot.device or 0
        exchanges = any([isinstance(e, NamedAxisEffect) for e in eqn.effects])
        if spot.element is not None and not exchanges:
            chooses = eqn.primitive.name == "select_n"  # maybe a literal, where another is bad
            origins = [program.origin(v) for v in eqn.invars]
            xs = [program.scope.of(x, device) for x in self.operands(program, eqn)]
            found = [((eqn.primitive.multiple_results and j != k, isinstance(origins[j], Literal),
                       program.made.get(origins[j], -1)), j, at)
                     for j, where in sources(eqn, xs, k, spot.element)
                     if not (chooses and isinstance(origins[j], Literal))
                     and (at := first_of(self.bad, xs[j], where)) is not None]
            if found:
                _, j, at = min(found)
                return j, Spot(device, at)
            if not chooses:
                return None
        came = self._by_flags(program, eqn, flags, device, exchanges)
        if came is None:
            return None
        here = flags[program.origin(eqn.invars[came])]
        device = device if here[device] else int(here.argmax())
        return came, self.spot_in(program, eqn.invars[came], device, None)

    def _by_flags(self, program: _Straight, eqn: JaxprEqn, flags: dict[Any, Any], device: int,
                  exchanges: bool) -> int | None:
        """The operand of an equation that has bad elements, on that device, or, where devices
        exchange theirs, on any."""
        found: list[tuple[int, int]] = []
        for k, v in enumerate(eqn.invars):
            atom = program.origin(v)
            here = flags.get(atom)
            if here is not None and (here[device] or (exchanges and here.any())):
                found.append((program.made.get(atom, -1), k))
        if len(found) > 1 and eqn.primitive.name == "select_n":
            which, *cases = self.fetched(program, eqn.invars)
            found = [(at, k) for at, k in found if np.any(
                self.bad(cases[k - 1]) & (np.asarray(which) == k - 1))] or found
        return min(found)[1] if found else None

    def at(self, program: _Straight, eqn: JaxprEqn, k: int, spot: Spot, path: _Path) -> BadValue:
        """The report of an equation that makes what is bad in result `k`."""
        scope, device = program.scope, spot.device or 0
        atoms = [*eqn.invars, *eqn.outvars]
        arrays = [x if isinstance(v, Literal) else scope.of(x, device) for v, x in zip(
            atoms, self.fetched(program, atoms), strict=True)]
        n = len(eqn.invars)
        return found_in(self.what, self.bad, eqn, arrays[:n], arrays[n:], path.steps, path.stacks,
                        scope.devices[device], self.notes, there=(k, spot.element))

    def of_argument(self, name: str, x: Any) -> BadValue:
        """The report of a value that came in bad."""
        return found_in(self.what, self.bad, None, [], [x], (), (), None, self.notes, name,
                        (0, self.spot.element))

    def unseen(self, closed: ClosedJaxpr) -> list[str]:
        """What is to be known where no result has a bad value: the first operation that makes one
        besides, or which loops and branches were not opened for it."""
        program = self.opened(closed)

        def is_bad(atom: Atom) -> bool:
            if isinstance(atom, Literal):
                return self.looks_at(atom.aval) and bool(self.bad(literal_value(atom)).any())
            return bool(np.any(program.flags.get(atom, False)))

        for eqn in program.closed.eqns:
            if any(map(is_bad, eqn.outvars)) and not any(map(is_bad, eqn.invars)):
                return [f"only what the results show is looked for: {eqn.primitive.name} at "
                        f"{place_text(line_of(eqn))} makes one that none of them shows."]
        held = dict.fromkeys([e.primitive.name for e in program.closed.eqns
                              if holds_jaxprs(e) and e.primitive.multiple_results])
        return [f"of {', '.join(held)} only the results were looked at."] if held else []

    def behind_nans(self, closed: ClosedJaxpr, values: list[Any]) -> BadValue | int | None:
        """As `chase`, of what is not finite: the first infinity that an element of the results
        comes of. A note says of which ones it was looked for where there is none."""
        program = self.opened(closed)
        self.flags(program, values, WHOLE)
        outs = self.fetched(program, program.closed.jaxpr.outvars)
        masks = {k: self.bad(x) for k, x in enumerate(outs) if self.looks_at(jax.typeof(x))}
        bad = [[(k, tuple(map(int, np.unravel_index(i, mask.shape))))
                for i in np.flatnonzero(mask)[:_NANS]] for k, mask in masks.items()]
        places = [at for each in itertools.zip_longest(*bad) for at in each if at is not None]
        first, n_places = None, sum([int(mask.sum()) for mask in masks.values()])
        for k, element in places[:_NANS]:
            found = self.chase(closed, values, WHOLE, k, Spot(None, element), _Path((), ()))
            told = self.of_argument("", values[found]) if isinstance(found, int) else found
            if told and any([x.there is not None and np.isinf(x.there) for x in told.results]):
                return found
            first = first or told
        if first:
            place = first.line and f", of {first.operation} at {place_text(first.line)},"
            more = n_places - _NANS
            self.notes.append(f"the first nan{place or ''} comes of none" + (
                f", nor do {len(places[:_NANS]) - 1} others" if len(places) > 1 else "") + "."
                + (f" What stands behind {more} more was not looked at." if more > 0 else ""))
        return None

    # -- what holds programs

    def inside(self, program: _Straight, eqn: JaxprEqn, k: int, spot: Spot, path: _Path,
               operand: Callable[[], tuple[int, Spot] | None]
               ) -> BadValue | tuple[int, Spot] | None:
        """As `chase`, of what is bad in result `k` of an equation that holds programs. `operand`
        gives the one that may be why, where it cannot be opened."""
        name = eqn.primitive.name
        opens: Any = {"scan": self._loop, "while": self._loop, "cond": self._branch}.get(
            name, self._devices if eqn.primitive.holder.within else None)
        if opens is None or keeps_alive(eqn.effects):
            came = operand()
            if came is None:
                self.notes.append(f"{name} was taken whole: what it runs was not looked into.")
            return came
        operands = self.operands(program, eqn)
        found = opens(eqn, k, operands, program.scope, spot, path)
        if found is None:
            came = operand()
            if came is None:
                self.notes.append(f"{name} gives one, but not when its parts are run alone: XLA "
                                  "compiles them otherwise there.")
            return came
        return (found, self.spot) if isinstance(found, int) else found

    def operands(self, program: _Straight, eqn: JaxprEqn) -> list[Any]:
        """The operands of an equation, those of all devices."""
        return [program.scope.stacked(x) if isinstance(v, Literal) else x
                for v, x in zip(eqn.invars, self.fetched(program, eqn.invars), strict=True)]

    def _branch(self, eqn: JaxprEqn, k: int, operands: list[Any], scope: Whole, spot: Spot,
                path: _Path) -> BadValue | int | None:
        branches = eqn.params["branches"]
        index = int(np.clip(int(scope.of(operands[0], spot.device or 0)), 0, len(branches) - 1))
        found = self.chase(branches[index], operands[1:], scope, k, spot,
                           path.into(f"branch {index} of cond", eqn))
        return found + 1 if isinstance(found, int) else found

    def _devices(self, eqn: JaxprEqn, k: int, operands: list[Any], scope: Whole, spot: Spot,
                 path: _Path) -> BadValue | int | None:
        inner, closed = OnDevices(eqn.params, scope), eqn.params["jaxpr"]
        parts = inner.entered(operands, eqn.params["in_specs"])
        path = path.into(eqn.primitive.name, eqn)
        shapes = [v.aval.shape for v in (*closed.jaxpr.invars, closed.jaxpr.outvars[k])]
        there = inner.inward(spot.element, eqn.params["out_specs"][k], shapes[-1])
        found = self.chase(closed, parts, inner, k, there, path)
        if found is None and there.device is not None:
            found = self.chase(closed, parts, inner, k, Spot(None, None), path)
        device = self.spot.device or 0
        if isinstance(found, int):
            self.spot = Spot(device * len(scope.devices) // len(inner.devices), inner.outward(
                self.spot, eqn.params["in_specs"][found], shapes[found]))
        return found

    def _loop(self, eqn: JaxprEqn, k: int, operands: list[Any], scope: Whole, spot: Spot,
              path: _Path) -> BadValue | int | None:
        self.spot = spot
        if not _is_loop(eqn):  # it gives the carry that it takes
            return eqn.params["num_consts"] + k  # type: ignore[no-any-return]
        loop, run = self.watching(eqn, scope)
        n, first, n_outs = loop.n_carry, loop.first, len(eqn.outvars)
        if k >= n and spot.element is not None:  # a slice is of one iteration
            at, spot = loop.row(spot.element[0]) + 1, Spot(spot.device, spot.element[1:])
        else:
            at = self._began(eqn, k, operands, scope, spot, loop.length)
        hops = 0
        while at > 0:
            outs = run(at - 1, operands)
            found = self.chase(
                loop.body, [*operands[loop.before:first], *outs[:n], *outs[n_outs + 1:]], scope, k,
                spot, path.into(loop.words(at - 1), eqn))
            if not isinstance(found, int):
                return found
            place, spot = found + loop.before, self.spot
            if not first <= place < first + n:
                if place >= first + n and spot.element is not None:
                    self.spot = Spot(spot.device, (loop.row(at - 1), *spot.element))
                return place
            k, hops = place - first, hops + 1
            if hops > _HOPS:  # an element may be handed on to another in each iteration
                spot = Spot(spot.device, None)
            at = self._began(eqn, k, operands, scope, spot, at - 1)
        self.spot = spot
        return first + k if at == 0 else None

    def _began(self, eqn: JaxprEqn, k: int, operands: Sequence[Any], scope: Whole, spot: Spot,
               stop: int) -> int:
        """Since which iteration of a loop result `k` has been bad there, before iteration `stop`:
        as `Loop.watched` says it."""
        loop, run = self.watching(eqn, scope)
        is_alone = eqn.outvars[k].aval.size == 1  # what is known of all elements is known of it
        there = None if spot.element is None or is_alone else (k, spot.element)
        since = self.since.get(id(eqn)) if there is None and stop == loop.length else None
        if since is None:
            since = run(stop, operands, there)[len(eqn.outvars)]
        return int(scope.of(np.asarray(since), spot.device or 0)[k])

    def _flag(self, x: Any, number: Any) -> Any:
        """Whether an element, by its number in a traced value, is bad, or any if that is -1."""
        if not self.looks_at(jax.typeof(x)) or x.size == 0:
            return False
        bad = self.predicate(x)
        return jnp.where(number < 0, jnp.any(bad), jnp.ravel(bad)[number])

    def watching(self, eqn: JaxprEqn, scope: Whole) -> tuple[Loop, Callable[..., Any]]:
        """A loop, and what runs it watched, from `Loop.watched`."""
        if id(eqn) in self.loops:
            return self.loops[id(eqn)]  # type: ignore[no-any-return]
        loop = Loop.of(eqn)
        program = scope.compiled(loop.watched(self._flag))
        n_outs = len(eqn.outvars)

        def run(stop: int, operands: Sequence[Any], there: tuple[int, Element] | None = None
                ) -> list[Any]:
            """What runs up to an iteration; one result may be looked at in one element alone."""
            start = list(operands[loop.first:][:loop.n_carry])
            numbers = np.full((len(scope.devices), n_outs), -1, np.int32)
            if there is not None:
                k, element = there
                numbers[:, k] = np.ravel_multi_index(element, eqn.outvars[k].aval.shape)
                if k < len(start):
                    start[k] = start[k][(slice(None),) * (scope is not WHOLE) + element]
            flags = [self.seen(x, scope) for x in start]
            flags += [np.zeros(len(scope.devices), bool)] * (n_outs - len(flags))
            since = np.stack(flags, 1).astype(np.int32) - 1
            if scope is WHOLE:
                since, numbers = since[0], numbers[0]
            return list(program(scope.number(stop), since, numbers, *operands))

        self.loops[id(eqn)] = loop, run
        return loop, run
