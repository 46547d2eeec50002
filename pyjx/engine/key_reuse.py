"""Which random keys a program uses, and whether it uses one twice.

A walk over a program holds for each key array which of its keys are consumed, as booleans of its
shape. What is a rearrangement of an array has a view of its booleans, so that a key which is
consumed under one name is under the other. Where it depends on values which keys are picked, all
are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.derived import derived_structure
from pyjx.core.evaluation import holds_jaxprs, program_of
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from pyjx.core.source_info import summarize
from pyjx.errors import KeyReuseError

Mask = np.ndarray[Any, np.dtype[np.bool_]]


class Uses(np.ndarray[Any, np.dtype[np.bool_]]):
    """Which keys of an array are consumed. Views share the `memory`; `when` has for each of its
    keys how many `places` in the program had consumed some when it was, or 0."""

    memory: Any
    when: Any
    places: Any

    def __array_finalize__(self, of: Any) -> None:
        self.memory, self.when, self.places = (
            getattr(of, name, None) for name in ("memory", "when", "places"))

    def note(self, place: str) -> None:
        """Remember where keys were consumed, if some were."""
        if self._is_view() and (new := self.memory & (self.when == 0)).any():
            self.places.append(place)
            self.when[new] = len(self.places)

    def first(self, mask: Any) -> str:
        """The sentence that says where one of those at `mask` was used first, if that is known."""
        if not self._is_view():
            return ""
        start, *steps = [4 * n for n in (self.ctypes.data - self.memory.ctypes.data, *self.strides)]
        seen = np.ndarray(self.shape, np.int32, self.when, start, steps)[mask]
        first = min(seen[seen > 0], default=0)
        return f" It was first used at {self.places[first - 1]}." if first else ""

    def _is_view(self) -> bool:
        return self.memory is not None and np.may_share_memory(self, self.memory)


def unused(shape: tuple[int, ...]) -> Uses:
    """For keys of which none is consumed."""
    memory = np.zeros(shape, bool)
    made = memory.view(Uses)
    made.memory, made.when, made.places = memory, np.zeros(shape, np.int32), []
    return made


class Sink(NamedTuple):
    """Operand `idx` is consumed, where `mask` says so."""

    idx: int
    mask: Any = True

    def __repr__(self) -> str:
        return _shown("Sink", self.idx, self.mask)


class Source(NamedTuple):
    """Result `idx` is of keys that were not used, where `mask` says so."""

    idx: int
    mask: Any = True

    def __repr__(self) -> str:
        return _shown("Source", self.idx, self.mask)


class Forward(NamedTuple):
    """Result `out_idx` is operand `in_idx`; `some`: of some of its keys, or in another order."""

    in_idx: int
    out_idx: int
    some: bool = False

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


class KeyReuseSignature:
    """What an operation or a program does to keys."""

    __slots__ = ("forwards", "sinks", "sources")

    def __init__(self, *parts: Sink | Source | Forward) -> None:
        self.sinks = tuple([p for p in parts if isinstance(p, Sink)])
        self.sources = tuple([p for p in parts if isinstance(p, Source)])
        self.forwards = tuple([p for p in parts if isinstance(p, Forward)])

    def __repr__(self) -> str:
        parts = (*self.sinks, *self.sources, *self.forwards)
        return f"KeyReuseSignature({', '.join(map(repr, parts))})"

    def _parts(self) -> Any:
        masked = [{(p.idx, *_told(p.mask)) for p in parts} for parts in (self.sinks, self.sources)]
        return [*masked, set(self.forwards)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyReuseSignature) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(tuple(map(frozenset, self._parts())))


def _shown(kind: str, idx: int, mask: Any) -> str:
    if np.all(mask):
        return f"{kind}({idx})"
    return f"{kind}({idx}, {np.asarray(mask).tolist()})"


def _told(mask: Any) -> Any:
    return (True,) if np.all(mask) else (np.shape(mask), np.asarray(mask).tobytes())


def is_key(aval: Any) -> bool:
    """Whether a type is that of key arrays."""
    return type(aval) is ShapedArray and dtypes.issubdtype(aval.dtype, dtypes.prng_key)


class Keys:
    """A key array in the walk: which of its keys are consumed. `some`: it is some of them, and not
    known which."""

    __slots__ = ("consumed", "some")

    def __init__(self, consumed: Uses, some: bool = False) -> None:
        self.consumed = consumed
        self.some = some

    def are_used(self, mask: Any = True) -> bool:
        """Whether one of those at `mask` is consumed."""
        if self.some:
            return bool(self.consumed.any())
        return bool((self.consumed & _fitting(mask, self.consumed.shape)).any())

    def use(self, mask: Any = True) -> None:
        """Consume those at `mask`."""
        if self.some:
            self.consumed[...] = True
        else:
            self.consumed |= _fitting(mask, self.consumed.shape)

    def as_type(self, aval: ShapedArray | AbstractRef) -> Keys:
        """The same keys as an array of another type."""
        if not self.some and self.consumed.size == np.prod(_shape(aval)):
            view: Any = self.consumed.reshape(_shape(aval))
            if np.may_share_memory(view, self.consumed) or not view.size:
                return Keys(view)
        return Keys(self.consumed, some=True)


def _fitting(mask: Any, shape: tuple[int, ...]) -> Any:
    mask = np.asarray(mask, bool)
    if mask.ndim == 0 or mask.shape == shape:
        return mask
    return mask.reshape(shape) if mask.size == np.prod(shape) else np.asarray(mask.any())


def _shape(aval: ShapedArray | AbstractRef) -> tuple[int, ...]:
    static = all([isinstance(d, int) for d in aval.shape])
    return aval.shape if static else ()


def _fresh(aval: ShapedArray | AbstractRef) -> Keys | None:
    return Keys(unused(_shape(aval))) if is_key(aval) else None


Operands = Sequence[Keys | None]
Results = list[Keys | None]


def _use(name: str, operands: Operands, i: int, mask: Any = True) -> None:
    keys = operands[i]
    if keys is None:
        return
    if keys.are_used(mask):
        first = keys.consumed.first(_fitting(mask, keys.consumed.shape))
        raise KeyReuseError(f"In {name}, argument {i} is already consumed.{first}")
    keys.use(mask)


def _use_all(eqn: JaxprEqn, operands: Operands) -> Results:
    """What is done by an operation of which nothing is known."""
    for i in range(len(operands)):
        _use(eqn.primitive.name, operands, i)
    return [_fresh(v.aval) for v in eqn.outvars]


# -- operations ------------------------------------------------------------------------------------


def _apply(name: str, signature: KeyReuseSignature, operands: Operands, out_avals: Sequence[Any]
           ) -> Results:
    """The results of an operation with this signature; what it consumes is noted."""
    for i, mask in signature.sinks:
        _use(name, operands, i, mask)
    outs = [_fresh(a) for a in out_avals]
    for out in outs:
        if out is not None:
            out.use()
    for i, mask in signature.sources:
        out = outs[i]
        if out is not None:
            out.consumed &= ~_fitting(mask, out.consumed.shape)
    for i, j, some in signature.forwards:
        keys = operands[i]
        if keys is not None and is_key(out_avals[j]):
            outs[j] = Keys(keys.consumed, some=True) if some else keys.as_type(out_avals[j])
    return outs


_DRAWS = KeyReuseSignature(Sink(0))
_NEW = KeyReuseSignature(Source(0))
_SAME = KeyReuseSignature(Forward(0, 0))
_ONLY_READS = KeyReuseSignature()

SIGNATURES: dict[str, KeyReuseSignature] = {
    "random_bits": _DRAWS,
    "random_split": KeyReuseSignature(Sink(0), Source(0)),
    **dict.fromkeys(["random_clone", "random_fold_in", "random_seed", "random_wrap"], _NEW),
    **dict.fromkeys(["random_unwrap", "debug_callback", "eq", "ne"], _ONLY_READS),
    **dict.fromkeys(
        ["assert_consumed_value", "layout_constraint", "reshard", "sharding_constraint"], _SAME),
    "consume": KeyReuseSignature(Sink(0), Forward(0, 0)),
    "dynamic_update_slice": KeyReuseSignature(Sink(1), Forward(0, 0)),
    "scatter": KeyReuseSignature(Sink(2), Forward(0, 0)),
}


def _views(take: Callable[..., Sequence[Mask]]) -> Callable[[JaxprEqn, Operands], Results]:
    """The rule of what rearranges its one operand."""

    def rule(eqn: JaxprEqn, operands: Operands) -> Results:
        keys = operands[0]
        if keys is None or keys.some or keys.consumed.shape != eqn.invars[0].aval.shape:
            return [keys and Keys(keys.consumed, some=True) for _ in eqn.outvars]
        return [Keys(cast("Uses", view)) for view in take(keys.consumed, **eqn.params)]

    return rule


def _slice(x: Mask, *, start_indices: Any, limit_indices: Any, strides: Any) -> Sequence[Mask]:
    strides = strides or (1,) * x.ndim
    return [x[tuple(map(slice, start_indices, limit_indices, strides))]]


def _split(x: Mask, *, sizes: Sequence[int], axis: int) -> Sequence[Mask]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _unstack(x: Mask, *, axis: int) -> Sequence[Mask]:
    return [part.squeeze(axis) for part in np.split(x, x.shape[axis], axis)]


# -- what holds programs ---------------------------------------------------------------------------


def _remat(eqn: JaxprEqn, operands: Operands) -> Results:
    """What a backward pass computes again uses up no more keys than the forward pass has."""
    if eqn.params["differentiated"]:
        return [_fresh(v.aval) for v in eqn.outvars]
    return _run(eqn.primitive.name, eqn.params["jaxpr"], operands, eqn)


def _run(name: str, program: ClosedJaxpr, operands: Operands, like: JaxprEqn | ClosedJaxpr
         ) -> Results:
    return _apply(name, key_signature(program), operands, [v.aval for v in like.outvars])


def _held(eqn: JaxprEqn, operands: Operands) -> Results:
    """What holds programs: one that runs once, or several, or one that runs many times."""
    held = eqn.primitive.holder.held(eqn.params)
    head, given = operands[:held.head], operands[held.head:]
    if len(held.programs) > 1:
        return _choice(eqn, held.programs, given)
    if eqn.primitive.holder.loops:
        return _loop(eqn, held, head, list(given))
    return _run(eqn.primitive.name, held.programs[0], given, eqn)


def _choice(eqn: JaxprEqn, programs: Sequence[ClosedJaxpr], operands: Operands) -> Results:
    """What one program consumes, none has afterwards."""
    before = [None if k is None else k.consumed.copy() for k in operands]
    after: list[Any] = [None if k is None else k.consumed.copy() for k in operands]
    each = []
    for program in programs:
        each.append(_run(eqn.primitive.name, program, operands, eqn))
        for keys, old, seen in zip(operands, before, after, strict=True):
            if keys is not None:
                seen |= keys.consumed
                keys.consumed[...] = old
    for keys, seen in zip(operands, after, strict=True):
        if keys is not None:
            keys.consumed[...] = seen
    return [_one_of(list(outs), v.aval)
            for outs, v in zip(zip(*each, strict=True), eqn.outvars, strict=True)]


def _one_of(outs: Results, aval: ShapedArray | AbstractRef) -> Keys | None:
    """The result that is one of these."""
    found = [keys for keys in outs if keys is not None]
    if not found:
        return None
    if all([np.may_share_memory(found[0].consumed, keys.consumed) for keys in found]):
        return found[0]
    result = Keys(unused(_shape(aval)))
    for keys in found:
        result.consumed |= _fitting(keys.consumed, result.consumed.shape)
    return result


def _loop(eqn: JaxprEqn, held: Any, head: Operands, given: list[Keys | None]) -> Results:
    """Two runs tell what many do. Each takes the carry that the last one gives, and slices of its
    own of what is behind."""
    holder, (body,), first, n = eqn.primitive.holder, held.programs, held.first, held.carry
    name = {"while": "while_loop"}.get(eqn.primitive.name, eqn.primitive.name)
    times, conditions = holder.times(eqn.params), holder.conditions(eqn.params)
    end = first + n
    for i, keys in enumerate(given[end:], end):
        if keys is not None and any([s.idx == i for s in key_signature(body).sinks]):
            _use(name, [*head, *given], len(head) + i)

    def ask() -> None:
        for condition in conditions:
            _run(name, condition, [*head, *given[first:end]], condition)

    ask()
    for run in range(2 if times is None else min(times, 2)):
        given[end:] = [None if k is None else _fresh(v.aval) for k, v in
                       zip(given[end:], body.jaxpr.invars[end:], strict=True)]
        try:
            given[first:end] = _run(name, body, given, body)[:n]
            ask()
        except KeyReuseError as error:
            if not run and times is not None:
                raise
            raise KeyReuseError(
                f"{name} body function leads to key reuse when repeatedly executed: "
                f"{_said(error).removesuffix(CURE)}{_OF_LOOPS}") from None
    return [*given[first:end], *[_fresh(v.aval) for v in eqn.outvars[n:]]]


_RULES: dict[str, Callable[[JaxprEqn, Operands], Results]] = {
    "slice": _views(_slice),
    "split": _views(_split),
    "transpose": _views(lambda x, permutation: [x.transpose(permutation)]),
    "rev": _views(lambda x, dimensions: [np.flip(x, dimensions)]),
    "unstack": _views(_unstack),
    "remat2": _remat,
}


def _results(eqn: JaxprEqn, operands: Operands) -> Results:
    rule = _RULES.get(eqn.primitive.name)
    if rule is not None:
        return rule(eqn, operands)
    if holds_jaxprs(eqn):
        program = program_of(eqn.primitive, eqn.params)
        if program is not None:
            return _run(eqn.primitive.name, program, operands, eqn)
        return (_use_all if eqn.primitive.holder.held is None else _held)(eqn, operands)
    signature = SIGNATURES.get(eqn.primitive.name)
    if (signature is None and eqn.primitive.moves and operands and operands[0] is not None
            and not any(operands[1:])):
        signature = _SAME
    if signature is None:
        return _use_all(eqn, operands)
    return _apply(eqn.primitive.name, signature, operands, [v.aval for v in eqn.outvars])


# -- programs --------------------------------------------------------------------------------------


CURE = "Make a new key for each use: key, subkey = jax.random.split(key)."
_OF_LOOPS = (" Make one for each iteration: jax.random.fold_in(key, i), or scan over "
             "jax.random.split(key, n), or carry it: key, subkey = jax.random.split(key).")


def _said(error: KeyReuseError) -> str:
    return str(error).partition("\nMore: ")[0]


def jaxpr_signature(jaxpr: Jaxpr) -> KeyReuseSignature:
    """What a program does to the keys among its constants and arguments, in this order.

    Raises:
      KeyReuseError: it uses a key twice.
    """
    given = [_fresh(v.aval) for v in jaxpr.all_invars]
    known: dict[Any, Keys | None] = dict(zip(jaxpr.all_invars, given, strict=True))
    for eqn in jaxpr.eqns:
        operands = [None if isinstance(v, Literal) else known.get(v) for v in eqn.invars]
        if any(operands) or holds_jaxprs(eqn) or any([is_key(v.aval) for v in eqn.outvars]):
            try:
                outs = _results(eqn, operands)
            except KeyReuseError as error:
                said, place = _said(error), summarize(eqn.source_info)
                if CURE not in said and _OF_LOOPS not in said:
                    again = f" It is used again at {place}." if place != "unknown" else ""
                    said += f"{again} {CURE}"
                raise KeyReuseError(said) from None
            for keys in operands:
                if keys is not None:
                    keys.consumed.note(summarize(eqn.source_info))
            known.update(zip(eqn.outvars, outs, strict=True))
    outs = [None if isinstance(v, Literal) else known.get(v) for v in jaxpr.outvars]
    return _signature(given, outs)


def _signature(given: Sequence[Keys | None], outs: Sequence[Keys | None]) -> KeyReuseSignature:
    parts: list[Sink | Source | Forward] = []
    for i, keys in enumerate(given):
        if keys is not None and keys.consumed.any():
            parts.append(Sink(i, np.array(keys.consumed)))
    for j, out in enumerate(outs):
        if out is None:
            continue
        of = [i for i, keys in enumerate(given)
              if keys is not None and np.may_share_memory(out.consumed, keys.consumed)]
        if of:
            parts.append(Forward(of[0], j, not _is_whole(out, given[of[0]])))
        elif not out.consumed.all() or not out.consumed.size:
            parts.append(Source(j, ~out.consumed))
    return KeyReuseSignature(*parts)


def _is_whole(out: Keys, given: Keys | None) -> bool:
    """Whether a result is an operand, of another shape perhaps."""
    view = out.consumed
    return (not out.some and given is not None and view.flags.c_contiguous
            and view.size == given.consumed.size)


@derived_structure
def key_signature(closed: ClosedJaxpr) -> KeyReuseSignature:
    """What a program does to the keys among its arguments.

    Raises:
      KeyReuseError: it uses a key twice.
    """
    n = len(closed.jaxpr.constvars)
    whole = jaxpr_signature(closed.jaxpr)
    return KeyReuseSignature(
        *[s._replace(idx=s.idx - n) for s in whole.sinks if s.idx >= n], *whole.sources,
        *[f._replace(in_idx=f.in_idx - n) for f in whole.forwards if f.in_idx >= n])
