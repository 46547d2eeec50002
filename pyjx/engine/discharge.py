"""Mutable references as interpreters know them, and their discharge: programs on values in the
place of programs on references.

A discharged program takes the value of a reference in its place, and gives the new values of those
that it writes behind its results. What holds programs has the rule `discharge` for operands that
are references; references that a program has for itself need no rule.

Compilers get programs without references. Interpreters do it before they handle what holds programs
that take references: `bind_discharged`. So no rule of a loop or branch knows about references.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pyjx.core import source_info
from pyjx.core.avals import AbstractRef, get_aval
from pyjx.core.derived import derived, derived_structure
from pyjx.core.effects import accumulates, has_own_refs, has_state, reads, writes
from pyjx.core.evaluation import bind_eqn, map_jaxprs, walk
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn
from pyjx.core.primitive import Primitive, Rule, register
from pyjx.core.records import Field, Record, of_field
from pyjx.core.references import is_ref
from pyjx.core.source_info import SourceInfo
from pyjx.core.trace import state, trace_to_jaxpr
from pyjx.engine.primitives import cast
from pyjx.engine.tangents import Zero, instantiate
from pyjx.engine.types import Flags, Params, Values

# -- references to interpreters --------------------------------------------------------------------

# A reference is read (`get`), written (`swap`, which gives what was there) and added to
# (`addupdate`). What these do with a part of a reference, their parameter `indexers` says; the
# rules for that are in lax/references.py.
#
# Derivatives never hold references. A reference under differentiation is a `JVPTracer` of one, with
# a `Box` in the place of a tangent: what is written goes into the box, what is read comes from it,
# so the linear program only knows values.

# The kind of references that derivatives do not see: what is read from one is a constant, and what
# is written to one is its value alone.
UNDIFFERENTIATED = "no_grad_no_remat"


class Box:
    """A reference discharged: the value that it has now, which operations replace.

    `written` says where the last one did, `differentiated` whether derivatives go through it,
    `freed` whether the program has said that it is not used any more.
    """

    __slots__ = ("_value", "differentiated", "freed", "written")

    def __init__(self, value: Any, kind: Any = None) -> None:
        self._value = value
        self.differentiated = kind != UNDIFFERENTIATED
        self.freed = False
        self.written: SourceInfo | None = None

    @property
    def aval(self) -> AbstractRef:
        return AbstractRef(get_aval(self._value))

    def free(self) -> None:
        """Take it that nothing uses it from now on.

        Raises:
          ValueError: it was freed before.
        """
        _ = self.value
        self.freed = True

    latest: Field[Any] = of_field("_value", "The value, freed or not.")

    @property
    def value(self) -> Any:
        if self.freed:
            raise ValueError(f"A reference to {get_aval(self._value).str_short()} is used after it "
                             "was freed by `jax.free_ref`. Free it behind its last use.")
        return self._value

    @value.setter
    def value(self, new: Any) -> None:
        self._value = new
        self.written = source_info.current()


class RefBox(Box):
    """A box that holds what a reference holds: it is read and written with it."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any) -> None:
        Box.__init__(self, None)
        self.ref = ref

    aval: Field[AbstractRef] = of_field("ref.aval")

    @property
    def value(self) -> Any:
        return get_p.bind(self.ref, indexers=())

    @value.setter
    def value(self, new: Any) -> None:
        swap_p.bind(self.ref, instantiate(new), indexers=())


class _Maker(Primitive):
    """A primitive that makes a reference."""

    __slots__ = ()

    def bind(self, *operands: Any, **params: Any) -> Any:
        return state.innermost.make_ref(self, operands, params)


def _maker(name: str, shape_rule: Rule, value: Rule) -> Primitive:
    return register(_Maker(
        name, moves=True, cached=False, shape_rule=shape_rule, effects=lambda params: has_own_refs,
        discharge=lambda operands, params, derivable: Box(
            value(*operands, **params), params.get("kind"))))


new_ref_p = _maker(
    "new_ref",
    lambda aval, memory_space, kind, pin: AbstractRef(aval.strip_weak_type(), memory_space, kind),
    lambda x, **_: cast(x, get_aval(x).dtype))
empty_ref_p = _maker("empty_ref", lambda ty, memory_space, pin: AbstractRef(ty, memory_space),
                     lambda ty, **_: instantiate(Zero(ty)))
get_p = register(Primitive("get", moves=True, cached=False, effects=lambda params: reads))
swap_p = register(Primitive("swap", moves=True, cached=False, effects=lambda params: writes))
addupdate_p = register(Primitive(
    "addupdate", multiple_results=True, cached=False, effects=lambda params: accumulates))
freeze_p = register(Primitive("freeze", moves=True, cached=False,
                              effects=lambda params: has_own_refs))
free_ref_p = register(Primitive(
    "free_ref", moves=True, multiple_results=True, cached=False,
    effects=lambda params: has_own_refs))

operations = frozenset({get_p, swap_p, addupdate_p, freeze_p, free_ref_p})


# -- discharging -----------------------------------------------------------------------------------


# Where references are written last, None for those that are not.
Written: TypeAlias = tuple[SourceInfo | None, ...]


class Discharged(Record):
    """From inputs, with values for references, to results and the values of those `written`."""

    jaxpr: ClosedJaxpr
    written: Written  # an entry for each input


@derived
def discharged(closed: ClosedJaxpr, boxed: Flags, derivable: bool = False) -> Discharged:
    """The program with values in place of the inputs that are `boxed`, and of its own references.

    With `derivable` custom derivatives stay, so that it can be differentiated.

    Raises:
      NotImplementedError: an operation in it has no rule.
    """
    written: Written = ()

    def fun(*args: Any) -> list[Any]:
        nonlocal written
        inputs = [Box(x, a.kind) if b else x
                  for x, b, a in zip(args, boxed, closed.in_avals, strict=True)]
        outs = run(closed, inputs, derivable)
        written = tuple([x.written if type(x) is Box else None for x in inputs])
        return [*[x.latest if type(x) is Box else x for x in outs],  # one that it gives
                *[x.latest for x in inputs if type(x) is Box and x.written]]

    avals = [a.inner_aval if b else a for a, b in zip(closed.in_avals, boxed, strict=True)]
    return Discharged(trace_to_jaxpr(fun, avals, closed.debug_info), written)


def pure(closed: ClosedJaxpr) -> Discharged:
    """The program to compile, without any reference."""
    return discharged(closed, tuple([type(a) is AbstractRef for a in closed.in_avals]))


def run(closed: ClosedJaxpr, inputs: Values | Sequence[Box], derivable: bool) -> list[Any]:
    """The results of a program on values and boxes."""
    return walk(closed.jaxpr, closed.consts, inputs,
                lambda eqn, operands: _run_eqn(eqn, operands, derivable))


def _run_eqn(eqn: JaxprEqn, operands: Values, derivable: bool) -> Sequence[Any]:
    primitive = eqn.primitive
    if not has_state(eqn.effects) and not any([isinstance(x, Box) for x in operands]):
        return bind_eqn(eqn, operands)
    if any([type(v.aval) is AbstractRef for v in eqn.outvars]):
        assert primitive.discharge is not None
        out = primitive.discharge(operands, eqn.params, derivable)
    else:
        out = apply(primitive, operands, eqn.params, derivable)
    return out if primitive.multiple_results else [out]


def apply(primitive: Primitive, operands: Sequence[Any], params: Params, derivable: bool) -> Any:
    """An operation with references, on values and boxes."""
    boxes = [x for x in operands if isinstance(x, Box)]
    if boxes and primitive.discharge is not None:
        return primitive.discharge(operands, params, derivable)
    if not derivable and primitive.holder.stands_for is not None:
        return run(primitive.holder.stands_for(params), operands, derivable)
    if boxes:
        why = ("has a derivative rule of its own, and is under differentiation together with the "
               "reference" if primitive.own_rules else "has no rule for them")
        raise NotImplementedError(f"'{primitive}' takes a reference of type {boxes[0].aval}, but "
                                  f"{why}. Read the reference before, or write it behind.")
    return primitive.bind(*operands, **without_own_refs(params, derivable))


def without_own_refs(params: Params, derivable: bool = True) -> Params:
    """Parameters whose programs make no references; those that they take stay."""

    def closed(j: ClosedJaxpr) -> ClosedJaxpr:
        return discharged(j, (False,) * len(j.invars), derivable).jaxpr if has_state(
            j.effects) else j

    return map_jaxprs(params, closed, lambda j: j)


def check_distinct(closed: ClosedJaxpr, operands: Sequence[Any]) -> None:
    """Raise ValueError if a program is called with the same reference twice."""
    boxes = [x for x in operands if isinstance(x, Box)]
    if len(set(map(id, boxes))) < len(boxes):
        raise ValueError(
            "only one reference to a mutable array may be passed as an argument to a function, but "
            f"{closed.debug_info.func_name} got one of type {boxes[0].aval} twice.")


def values_of(operands: Sequence[Any]) -> list[Any]:
    """The operands, with the values of boxes."""
    return [x.value if isinstance(x, Box) else x for x in operands]


def store(operands: Sequence[Any], written: Sequence[SourceInfo | None], values: Mapping[int, Any]
         ) -> None:
    """Put the new values, by position, into the boxes that are written, as is done there."""
    with source_info.replaying() as replay:
        for i, value in values.items():
            replay.source = written[i]
            operands[i].value = value


# -- what interpreters do --------------------------------------------------------------------------


def bind_discharged(primitive: Primitive, operands: Sequence[Any], params: Params) -> Any:
    """`bind` of what holds programs with references, which are read before and written behind."""
    boxes = {id(x): RefBox(x) for x in operands if is_ref(x)}
    return apply(primitive, [boxes.get(id(x), x) for x in operands], params, True)


def holds_state(primitive: Primitive, params: Params) -> bool:
    """Whether the primitive holds programs with references."""
    effects = primitive.effects and primitive.effects(params)
    return bool(effects and has_state(effects) and primitive not in operations)


def rules_take_refs(primitive: Primitive, operands: Sequence[Any], params: Params) -> bool:
    """Whether custom derivative rules take references, and so must find them."""
    if not any(map(is_ref, operands)):
        return False
    if primitive.own_rules:
        return True
    return any([_rules_in_take_refs(j) for j in _programs(params)])


def _programs(params: Params) -> list[ClosedJaxpr]:
    found: list[ClosedJaxpr] = []

    def note(j: ClosedJaxpr) -> ClosedJaxpr:
        found.append(j)
        return j

    map_jaxprs(params, note, lambda j: j)
    return found


@derived_structure
def _rules_in_take_refs(closed: ClosedJaxpr) -> bool:
    return any([
        eqn.primitive.own_rules or any([_rules_in_take_refs(j) for j in _programs(eqn.params)])
        for eqn in closed.eqns if any([type(v.aval) is AbstractRef for v in eqn.invars])])
