"""Which result takes over the memory of which donated argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import ShapedArray

_DONOR = "jax.buffer_donor = true"


def donation(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
             donated: Sequence[bool], lie_alike: Callable[[int, int], bool]
             ) -> tuple[list[str], list[ShapedArray]]:
    """The attribute of each argument, and the types of those donated in vain.

    An argument and a result that are not known to lie alike may share memory or not; XLA will
    know.
    """
    attributes = [""] * len(in_avals)
    unused: list[ShapedArray] = []
    if not any(donated):
        return attributes, unused
    free: dict[Any, list[int]] = {}
    for i, aval in reversed(list(enumerate(out_avals))):
        free.setdefault((aval.shape, aval.dtype), []).append(i)
    left = []
    for i, (aval, given) in enumerate(zip(in_avals, donated, strict=True)):
        results = free.get((aval.shape, aval.dtype))
        if given and results:
            result = results.pop()
            attributes[i] = f"tf.aliasing_output = {result} : i32" if lie_alike(i, result) \
                else _DONOR
        elif given:
            left.append(i)
    # XLA may find a use for memory of another shape, if there is a result of the same size.
    free_sizes = [math.prod(shape) for (shape, _), results in free.items() for _ in results]
    for i in left:
        aval = in_avals[i]
        if aval.size in free_sizes:
            free_sizes.remove(aval.size)
            attributes[i] = _DONOR
        else:
            unused.append(aval)
    return attributes, unused
