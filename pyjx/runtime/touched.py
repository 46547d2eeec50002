"""What memory operations touch, by the names that they have in jaxprs, in StableHLO and in HLO."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_TAKES = re.compile(r"(real_)?(dynamic_)?(slice|gather)|get")
_PUTS = re.compile(r"dynamic_update_slice|swap|addupdate|scatter.*")


def touched(operation: str, operands: Sequence[float], results: float) -> tuple[list[float], float]:
    """The bytes that an operation reads of each operand, and those that it writes. What takes a
    part of its first operand reads that part, and what puts one there writes it in place: none of
    the rest moves. Some read the part before: to add to it, or to give it. All scatters do, as XLA
    counts them: where an index is out of bounds they write what was there.

    >>> touched("dynamic-slice", [4000.0, 4.0], 40.0)
    ([40.0, 4.0], 40.0)
    >>> touched("dynamic_update_slice", [4000.0, 40.0, 4.0], 4000.0)
    ([0.0, 40.0, 4.0], 40.0)
    >>> touched("addupdate", [4000.0, 40.0, 4.0], 0.0)
    ([40.0, 40.0, 4.0], 40.0)
    """
    name, reads = plain(operation), list(operands)
    if _TAKES.fullmatch(name) and reads:
        reads[0] = min(reads[0], results)
    elif puts(name):  # scatters have several buffers, indices, as many updates
        first = len(reads) // 2 + 1 if name.startswith("scatter") else 1
        parts = [min(pair) for pair in zip(reads, reads[first:2 * first], strict=False)]
        given = results if name == "swap" else 0.0
        before = given if name in ("swap", "dynamic_update_slice") else math.inf
        reads[:len(parts)] = [min(part, before) for part in parts]
        results = sum(parts) + given
    return reads, results


def puts(operation: str) -> bool:
    """Whether an operation of any form writes a part of its first operand in place."""
    return _PUTS.fullmatch(plain(operation)) is not None


def plain(operation: str) -> str:
    """The name that an operation has in all forms.

    >>> plain("stablehlo.dynamic_slice"), plain("scatter-add"), plain("slice-start")
    ('dynamic_slice', 'scatter_add', 'slice')
    """
    return operation.rpartition(".")[2].replace("-", "_").removesuffix("_start")
