"""Random keys that are used twice, which the flag `debug_key_reuse` makes an error.

A key array remembers which of its keys are consumed (`_consumed`). Arrays that are rearrangements
of one, or parts, have views of its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.engine.key_reuse import is_key, jaxpr_signature
from pyjx.errors import KeyReuseError


def consumed(keys: Any) -> Any:
    """Which keys of an array are consumed, as booleans of its shape."""
    if keys._consumed is None:
        keys._consumed = np.zeros(keys.shape, bool)
    return keys._consumed


def note_taken(keys: Any, index: tuple[Any, ...], out: Any) -> None:
    """Remember that `out` is `keys[index]`."""
    static = all([i is None or i is Ellipsis or isinstance(i, (int, slice)) for i in index])
    out._consumed = consumed(keys)[index] if static else _all_like(consumed(keys), out.shape)


def _all_like(mask: Any, shape: tuple[int, ...]) -> Any:
    """For keys of which it is not known which ones they are."""
    return np.full(shape, mask.any())


def check_call(closed: ClosedJaxpr, args: Sequence[Any]) -> None:
    """Raise KeyReuseError if a program uses a key twice, or one that was consumed before."""
    eqns = closed.eqns
    name = eqns[0].primitive.name if len(eqns) == 1 else "jit-compiled function"
    n = len(closed.consts)
    for i, mask in jaxpr_signature(closed.jaxpr).sinks:
        keys, position = (args[i - n], i - n) if i >= n else (closed.consts[i], i)
        if (consumed(keys) & mask).any():
            raise KeyReuseError(
                f"Previously-consumed key passed to {name} at index {position}. Make a new key for "
                "each use: key, subkey = jax.random.split(key).")


def note_call(closed: ClosedJaxpr, args: Sequence[Any], outs: Sequence[Any]) -> None:
    """Remember what a call consumed."""
    operands = [*closed.consts, *args]
    signature = jaxpr_signature(closed.jaxpr)
    for i, mask in signature.sinks:
        known = consumed(operands[i])
        known |= mask
    fresh = dict(signature.sources)
    passed_on = {j: (operands[i], some) for i, j, some in signature.forwards}
    for j, out in enumerate(outs):
        if is_key(getattr(out, "aval", None)):
            if j in passed_on:
                keys, some = passed_on[j]
                known = consumed(keys)
                out._consumed = (_all_like(known, out.shape) if some or known.size != out.size
                                 else known.reshape(out.shape))
            else:
                out._consumed = np.array(np.broadcast_to(
                    ~np.asarray(fresh.get(j, False), bool), out.shape))
