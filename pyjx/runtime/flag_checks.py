"""What flags make errors: results that are not numbers (`debug_nans`, `debug_infs`), and
random keys that are used twice, which the flag `debug_key_reuse` makes an error.

A key array remembers which of its keys are consumed (`_consumed`). Arrays that are rearrangements
of one, or parts, have views of its memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.source_info import VALUE_NOTE, current, summarize
from pyjx.core.value_texts import operand_of, operator_of
from pyjx.errors import KeyReuseError
from pyjx.lazy import deferred
from pyjx.runtime.array import ArrayImpl
from pyjx.states import LocalState

key_reuse = deferred("pyjx.engine.key_reuse")  # under its flag alone
pkgutil = deferred("pkgutil")  # for what goes wrong alone
# Who says which operation made a value: of a room above, which is loaded where one is bad.
FINDER = "pyjx.inspect.finding:find_again"
listeners: list[Callable[[FloatingPointError], object]] = []  # to errors that programs may catch
# Whether an infinity that a NaN comes of is looked for where results are NaN, and of which programs
# it has been.
behind_nans = LocalState("behind_nans", False)
_searched: weakref.WeakSet[ClosedJaxpr] = weakref.WeakSet()


def consumed(keys: Any) -> Any:
    """Which keys of an array are consumed, as booleans of its shape."""
    if keys._consumed is None:
        keys._consumed = key_reuse.unused(keys.shape)
    return keys._consumed


def note_taken(keys: Any, index: tuple[Any, ...], out: Any) -> None:
    """Remember that `out` is `keys[index]`."""
    static = all([i is None or i is Ellipsis or isinstance(i, (int, slice)) for i in index])
    out._consumed = consumed(keys)[index] if static else _all_like(consumed(keys), out.shape)


def _all_like(mask: Any, shape: tuple[int, ...]) -> Any:
    """For keys of which it is not known which ones they are."""
    made = key_reuse.unused(shape)
    made |= mask.any()
    return made


def check_call(closed: ClosedJaxpr, args: Sequence[Any]) -> None:
    """Raise KeyReuseError if a program uses a key twice, or one that was consumed before."""
    eqns = closed.eqns
    name = eqns[0].primitive.name if len(eqns) == 1 else "jit-compiled function"
    n = len(closed.consts)
    for i, mask in key_reuse.jaxpr_signature(closed.jaxpr).sinks:
        keys, position = (args[i - n], i - n) if i >= n else (closed.consts[i], i)
        if (consumed(keys) & mask).any():
            raise KeyReuseError(f"Previously-consumed key passed to {name} at index "
                                f"{position}.{consumed(keys).first(mask)} {key_reuse.CURE}")


def note_call(closed: ClosedJaxpr, args: Sequence[Any], outs: Sequence[Any]) -> None:
    """Remember what a call consumed."""
    operands = [*closed.consts, *args]
    signature = key_reuse.jaxpr_signature(closed.jaxpr)
    for i, mask in signature.sinks:
        known = consumed(operands[i])
        known |= mask
        known.note(summarize(current()))
    fresh = dict(signature.sources)
    passed_on = {j: (operands[i], some) for i, j, some in signature.forwards}
    for j, out in enumerate(outs):
        if key_reuse.is_key(getattr(out, "aval", None)):
            if j in passed_on:
                keys, some = passed_on[j]
                known = consumed(keys)
                out._consumed = (_all_like(known, out.shape) if some or known.size != out.size
                                 else known.reshape(out.shape))
            else:
                out._consumed = key_reuse.unused(out.shape)
                out._consumed |= ~np.asarray(fresh.get(j, False), bool)


def check_results(closed: ClosedJaxpr, name: str, args: Sequence[Any], outs: Sequence[Any]) -> None:
    """Raise FloatingPointError if a result is NaN (`debug_nans`) or infinite (`debug_infs`).

    The program is run again to find which operation made it, unless it came in with an argument.
    The error has what was found, as its attribute `found` and as a note.
    """
    kind = next(filter(None, map(not_a_number, outs)), None)
    suspected = kind is None and _may_hide_infinities(closed, args, outs)
    if kind is None and not suspected:
        return
    if any(getattr(x, "is_deleted", bool)() for x in args):
        raise FloatingPointError(
            f"invalid value ({kind or 'nan'}) encountered in {name}. As it was given donated "
            "arguments, it cannot be run again to find the operation: take donate_argnums away.")
    kind = kind or "inf"  # which the NaN may come of
    found = pkgutil.resolve_name(FINDER)(closed, args, kind).within(current())
    if suspected and not found:
        return
    if found.operation is not None:
        at = "" if found.device is None else "sharded computation, in "
        error = FloatingPointError(f"invalid value ({kind}) encountered in {at}{found.operation}")
        if found.line is not None:
            error.add_note(f"{VALUE_NOTE} {found.line}")
        error.add_note(str(found))
    elif not found:
        why = found.notes or ["it was not there when the program was run again."]
        error = FloatingPointError(f"invalid value ({kind}) encountered in {operator_of(name)}, "
                                   f"and the operation was not found: {' '.join(why)}")
    else:
        at = f", at element {list(found.element)}" if found.element else ""
        error = FloatingPointError(
            f"invalid value ({kind}) encountered in {operator_of(name)}. Its operations did not "
            "make it: it is among the inputs or is a literal of the function. It comes in with "
            f"{operand_of(name, found.argument or '')}{at}. Look at where this is made, or let "
            f"jax.debug_{kind}s(False) hold where such values are meant.")
    error.found = found  # type: ignore[attr-defined]
    for hear in listeners:
        hear(error)
    raise error


def _may_hide_infinities(closed: ClosedJaxpr, args: Sequence[Any], outs: Sequence[Any]) -> bool:
    """Whether an infinity is to be looked for behind the NaN of results: once where NaN come in, as
    they do in all steps of a training behind the first that gives some."""
    if not behind_nans.value or not any([_has(np.isnan, x) for x in outs]):
        return False
    if closed in _searched and any([_has(np.isnan, x) for x in args]):
        return False
    _searched.add(closed)
    return True


def _has(is_bad: Callable[[Any], Any], x: Any) -> bool:
    """Whether elements of an array of floating-point numbers are bad."""
    if not isinstance(x, (ArrayImpl, np.ndarray, np.generic, float, complex)):
        return False
    values = np.asarray(x)
    return dtypes.issubdtype(values.dtype, np.inexact) and bool(is_bad(values).any())


def not_a_number(x: Any) -> str | None:
    """"nan" or "inf" if a flag forbids elements of an array that are."""
    if configuration.debug_nans.value and _has(np.isnan, x):
        return "nan"
    return "inf" if configuration.debug_infs.value and _has(np.isinf, x) else None
