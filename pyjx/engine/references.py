"""Mutable references as interpreters know them: the primitives, and what stands for a reference
where it is discharged.

A reference is read (`get`), written (`swap`, which gives what was there) and added to
(`addupdate`). What these do with a part of a reference, their parameter `indexers` says; the rules
for that are in lax/references.py.

Derivatives never hold references. A reference under differentiation is a `JVPTracer` of one, with a
`Box` in the place of a tangent: what is written goes into the box, what is read comes from it, so
the linear program only knows values.
"""

from __future__ import annotations

from typing import Any

from pyjx.core.avals import AbstractRef, get_aval
from pyjx.core.effects import accumulates, has_own_refs, reads, writes
from pyjx.core.primitive import Primitive, Rule, register
from pyjx.core.trace import state
from pyjx.engine.primitives import cast
from pyjx.engine.tangents import Zero, instantiate

# The kind of references that derivatives do not see: what is read from one is a constant, and what
# is written to one is its value alone.
UNDIFFERENTIATED = "no_grad_no_remat"


class Box:
    """A reference discharged: the value that it has now, which operations replace.

    `written` says whether one has, `differentiated` whether derivatives go through it, `freed`
    whether the program has said that it is not used any more.
    """

    __slots__ = ("_value", "differentiated", "freed", "written")

    def __init__(self, value: Any, kind: Any = None) -> None:
        self._value = value
        self.differentiated = kind != UNDIFFERENTIATED
        self.freed = False
        self.written = False

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

    @property
    def latest(self) -> Any:
        """The value, freed or not."""
        return self._value

    @property
    def value(self) -> Any:
        if self.freed:
            raise ValueError(f"A reference to {get_aval(self._value).str_short()} is used after it "
                             "was freed by `jax.free_ref`. Free it behind its last use.")
        return self._value

    @value.setter
    def value(self, new: Any) -> None:
        self._value = new
        self.written = True


class RefBox(Box):
    """A box that holds what a reference holds: it is read and written with it."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any) -> None:
        Box.__init__(self, None)
        self.ref = ref

    @property
    def aval(self) -> AbstractRef:
        return self.ref.aval  # type: ignore[no-any-return]

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
