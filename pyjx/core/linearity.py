"""In which operands an operation is linear.

The fact `Primitive.linear` has an entry for each set of operands in which the operation is linear
together, the others being fixed: where they stand among the operands. Tables of types ask for it
(core/open_sums.py).
"""

from __future__ import annotations

Linearity = tuple[slice, ...]

NOWHERE: Linearity = ()
FIRST: Linearity = (slice(0, 1),)  # a quotient
LAST: Linearity = (slice(-1, None),)  # a solution, in the right-hand side
TOGETHER: Linearity = (slice(None),)  # a sum
EACH: Linearity = (slice(0, 1), slice(1, 2))  # a product
FIRST_TWO: Linearity = (slice(0, 2),)  # what writes a part of an operand
BUT_FIRST: Linearity = (slice(1, None),)  # a choice
FIRST_AND_THIRD: Linearity = (slice(0, 3, 2),)  # what writes at indices
APART: Linearity = (slice(0, 0),)  # each result is an operand
