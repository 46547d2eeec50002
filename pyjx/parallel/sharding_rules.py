"""Rules of how the dimensions of operands and results of an operation belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

BATCHING = "…"  # stands for any number of leading dimensions


class CompoundFactor(tuple[str, ...]):
    """A dimension that is made of several factors, the outermost first.

    >>> from pyjx.experimental.custom_partitioning import CompoundFactor
    >>> CompoundFactor("i", "j")
    CompoundFactor(('i', 'j'))
    """

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors, got "
                             f"{factors}")
        for factor in factors:
            if not isinstance(factor, str) or factor.startswith(BATCHING):
                raise ValueError(f"Each element of CompoundFactor must be a str, but got {factor!r}"
                                 if not isinstance(factor, str) else
                                 "Ellipsis can't be used in a compound factor")
        return super().__new__(cls, factors)

    def __repr__(self) -> str:
        return f"CompoundFactor({tuple(self)})"


class ArrayMapping(tuple[Any, ...]):
    """The factors of each dimension of a value: names, and CompoundFactors.

    >>> from pyjx.experimental.custom_partitioning import ArrayMapping
    >>> ArrayMapping("i", "j")
    ArrayMapping(('i', 'j'))
    """

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for i, dim in enumerate(dim_mappings):
            if not isinstance(dim, (str, CompoundFactor)):
                raise ValueError("Each element of ArrayMapping must be a str or CompoundFactor, "
                                 f"but got {type(dim)}")
            if isinstance(dim, str) and dim.startswith(BATCHING) and i:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
        return super().__new__(cls, dim_mappings)

    def __repr__(self) -> str:
        return f"ArrayMapping({tuple(self)})"


class SdyShardingRule:
    """How the dimensions of an operation belong together.

    Args:
      operand_mappings, result_mappings: an ArrayMapping for each operand and result.
      reduction_factors: factors that are summed over.
      need_replication_factors: factors along which nothing may be cut.
      permutation_factors: factors along which parts exchange elements.
      factor_sizes: the sizes of factors that are a dimension only together with others.

    Raises:
      ValueError: a factor is of no dimension, or the size of a part of one is missing.
    """

    __slots__ = ("factor_sizes", "need_replication_factors", "operand_mappings",
                 "permutation_factors", "reduction_factors", "result_mappings")

    def __init__(self, operand_mappings: tuple[ArrayMapping, ...],
                 result_mappings: tuple[ArrayMapping, ...], *,
                 reduction_factors: Sequence[str] = (),
                 need_replication_factors: Sequence[str] = (),
                 permutation_factors: Sequence[str] = (), **factor_sizes: int) -> None:
        self.operand_mappings = tuple(operand_mappings)
        self.result_mappings = tuple(result_mappings)
        self.reduction_factors = tuple(reduction_factors)
        self.need_replication_factors = tuple(need_replication_factors)
        self.permutation_factors = tuple(permutation_factors)
        self.factor_sizes = factor_sizes
        self._check()

    def _check(self) -> None:
        whole, parts = set(), set()
        for mapping in (*self.operand_mappings, *self.result_mappings):
            for dim in mapping:
                if isinstance(dim, str):
                    whole.add(dim)
                else:
                    parts.update(dim)
        for factor in self.factor_sizes:
            if factor not in whole | parts:
                raise ValueError(f"Factor {factor} is not used in the rule, but size is provided")
            if factor in whole:
                raise ValueError(f"Factor {factor} represents a whole dimension; do not specify "
                                 "its size")
        missing = parts - whole - self.factor_sizes.keys()
        if missing:
            raise ValueError(f"Factor {sorted(missing)[0]} is only used in compound factors; must "
                             "specify its size")
        for kind in ("reduction", "need_replication", "permutation"):
            for factor in getattr(self, f"{kind}_factors"):
                if factor not in whole | parts:
                    raise ValueError(f"Factor {factor} is not used in the rule, but it is among "
                                     f"the {kind}_factors")

    def __repr__(self) -> str:
        return (f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, "
                f"{self.factor_sizes})")

    def text(self, operands: Sequence[tuple[int, ...]], results: Sequence[tuple[int, ...]]) -> str:
        """Shardy's spelling for operands and results of these shapes.

        Raises:
          ValueError: the shapes do not fit the rule.
        """
        names: dict[str, str] = {}
        sizes: dict[str, int] = dict(self.factor_sizes)

        def name(factor: str) -> str:
            i = len(names)
            return names.setdefault(factor, _LETTERS[i] if i < len(_LETTERS) else
                                    f"z_{i - len(_LETTERS) + 1}")

        sides = [", ".join([
            _dimensions(mapping, shape, name, sizes)
            for mapping, shape in zip(mappings, shapes, strict=True)])
            for mappings, shapes in ((self.operand_mappings, operands),
                                     (self.result_mappings, results))]
        table = ", ".join([f"{letter}={sizes[factor]}" for factor, letter in names.items()])
        special = "".join([
            f" {kind}={{{', '.join([names[f] for f in factors])}}}"
            for kind, factors in (("reduction", self.reduction_factors),
                                  ("need_replication", self.need_replication_factors),
                                  ("permutation", self.permutation_factors)) if factors])
        return (f"#sdy.op_sharding_rule<({sides[0]})->({sides[1]}) {{{table}}}{special}, custom>")


_LETTERS = "ijklmnopqrstuvwxyz"


def _dimensions(mapping: ArrayMapping, shape: tuple[int, ...], name: Any, sizes: dict[str, int]
                ) -> str:
    dims = list(mapping)
    if dims and isinstance(dims[0], str) and dims[0].startswith(BATCHING):
        group = dims.pop(0)
        dims[:0] = [f"{group}{i}" for i in range(len(shape) - len(dims))]
    if len(dims) != len(shape):
        raise ValueError(f"Sharding rule: the mapping {mapping} has {len(dims)} dimensions, the "
                         f"value has shape {shape}.")
    texts = []
    for dim, size in zip(dims, shape, strict=True):
        if isinstance(dim, str):
            if sizes.setdefault(dim, size) != size:
                raise ValueError(f"Sharding rule: factor {dim} is of size {sizes[dim]} and "
                                 f"{size}.")
            texts.append(name(dim))
        else:
            texts.append("".join([name(factor) for factor in dim]))
    return ", ".join([f"{t}" for t in texts]).join("[]")


# -- from text -------------------------------------------------------------------------------------


def parsed_rule(rule: str, factors: Mapping[str, Sequence[str]], sizes: Mapping[str, int]
                ) -> SdyShardingRule:
    """The rule of a text such as `"... i j, ... j k -> ... i k"`; `(i j)` is one dimension of two
    factors.

    Raises:
      ValueError: it is not such a text.
    """
    sides = rule.split("->")
    if len(sides) != 2:
        raise ValueError("There is no -> in rule" if len(sides) < 2 else
                         "There is more than one -> in rule")
    operands, results = [tuple([ArrayMapping(*_words(value, rule)) for value in side.split(",")])
                         if side.strip() else () for side in sides]
    return SdyShardingRule(operands, results, **factors, **sizes)  # type: ignore[arg-type]


def _words(value: str, rule: str) -> Iterator[Any]:
    rest = value.strip()
    while rest:
        found = re.match(r"\(([^()]*)\)|(\.\.\.|…)(\w*)|([A-Za-z_]\w*)", rest)
        if found is None:
            raise ValueError(f"Unknown character '{rest[0]}' in the rule {rule!r}")
        inside, dots, group, factor = found.groups()
        if dots:
            yield f"{BATCHING}{group}"
        elif factor:
            yield factor
        else:
            yield CompoundFactor(*inside.split())
        rest = rest[found.end():].lstrip()
