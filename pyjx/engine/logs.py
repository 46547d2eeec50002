"""What backward rules log: named values that leave a backward pass beside the cotangents.

A pass opens a log, rules write to it, and the pass's caller reads it. Where a program is
transposed once for many calls, its logs are further results of the transposed program; each call
writes them to the log that is open there.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyjx.core.avals import is_valid_value
from pyjx.core.records import Record
from pyjx.engine.functions import flatten
from pyjx.engine.types import TreeDef
from pyjx.tree_util import register_pytree_node

Log = dict[Any, Any]


class _Open(threading.local):
    log: Log | None = None


_open = _Open()


class logging:
    """A context in which rules write to the log that it gives."""

    __slots__ = ("_outer",)

    def __enter__(self) -> Log:
        self._outer = _open.log
        log: Log = {}
        _open.log = log
        return log

    def __exit__(self, *exc: object) -> None:
        _open.log = self._outer


def write(entries: Mapping[Any, Any]) -> None:
    """Add named pytrees to the log that is open.

    Raises:
      ValueError: there is one of that name.
    """
    log = _open.log
    if log is None:
        return
    for key, value in entries.items():
        if key in log:
            raise ValueError(
                f"Duplicate backward-pass log key {key!r}. Each key must be unique within a "
                "backward pass: give the functions that log, or their calls, keys of their own.")
        log[key] = value


class Lost:
    """In a log: an entry that was made inside a program whose logs do not leave it."""

    __slots__ = ()


class CondSum:
    """In a log: what the branches of a conditional have logged under one name.

    Attributes:
      index: which branch ran.
      branches: for each what it logs under the name: zeros where another one ran, None where it
        logs nothing.
    """

    __slots__ = ("branches", "index")

    def __init__(self, index: Any, branches: Sequence[Any]) -> None:
        self.index = index
        self.branches = list(branches)

    def __repr__(self) -> str:
        return f"CondSum(index={self.index!r}, branches={self.branches})"


register_pytree_node(CondSum, lambda c: ((c.index, c.branches), ()), lambda _, c: CondSum(*c))


def write_of_branches(index: Any, trees: Sequence[LogTree | None], arrays: Iterator[Any]) -> None:
    """Write what the branches of a conditional log, each of its own arrays."""
    entries = [{} if tree is None else tree.filled([next(arrays) for _ in range(tree.num_arrays)])
               for tree in trees]
    write({key: CondSum(index, [log.get(key) for log in entries])
           for key in dict.fromkeys(itertools.chain(*entries))})


class LogTree(Record):
    """A log without its arrays."""

    tree: TreeDef
    is_array: Sequence[bool]
    others: Sequence[Any]

    @property
    def num_arrays(self) -> int:
        return sum(self.is_array)

    def filled(self, arrays: Sequence[Any]) -> Log:
        """The log with these arrays."""
        given, others = iter(arrays), iter(self.others)
        log: Log = self.tree.unflatten(
            [next(given) if flag else next(others) for flag in self.is_array])
        return log

    def lost(self) -> Log:
        """Its keys, without what is under them."""
        return dict.fromkeys(self.tree.unflatten(self.is_array), Lost())


def parted(log: Log) -> tuple[LogTree, list[Any]]:
    """A log in two: what is no array, and the arrays."""
    leaves, tree = flatten(log)
    flags = [is_valid_value(x) for x in leaves]
    arrays = [x for x, flag in zip(leaves, flags, strict=True) if flag]
    others = [x for x, flag in zip(leaves, flags, strict=True) if not flag]
    return LogTree(tree, flags, others), arrays
