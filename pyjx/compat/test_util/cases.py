"""Which parameters a test runs with: products of which some are drawn, with names."""

from __future__ import annotations

import itertools
import os
import random
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from absl.testing import parameterized

__all__ = [
    "NUM_GENERATED_CASES", "named_cases_from_sampler", "parameterized_filterable", "sample_product",
    "sample_product_testcases", "sanitize_test_name",
]

Case = dict[str, Any]


class _Count:
    """A setting with a `value`: an environment variable, or its default."""

    def __init__(self, variable: str, default: int) -> None:
        self.variable, self.default = variable, default

    @property
    def value(self) -> int:
        return int(os.environ.get(self.variable, self.default))


NUM_GENERATED_CASES = _Count("JAX_NUM_GENERATED_CASES", 10)
_MAX_DRAWS = 1000  # some come twice


def _drawn(items: list[Any]) -> list[Any]:
    """The cases, or as many of them as are to run, the same ones each time."""
    count = NUM_GENERATED_CASES.value
    if len(items) <= count:
        return items
    return random.Random(zlib.adler32(str(len(items)).encode())).sample(items, count)


def sample_product_testcases(*args: Iterable[Case], **kw: Iterable[Any]) -> list[Case]:
    """Cases out of the product of lists of cases and of values by name.

    >>> sample_product_testcases([{"a": 1, "b": 2}], c=[3, 4])
    [{'a': 1, 'b': 2, 'c': 3}, {'a': 1, 'b': 2, 'c': 4}]
    """
    groups = [list(group) for group in args]
    groups += [[{name: value} for value in values] for name, values in kw.items()]
    return _drawn([{name: value for part in parts for name, value in part.items()}
                   for parts in itertools.product(*groups)])


def sample_product(*args: Iterable[Case], **kw: Iterable[Any]) -> Callable[[Any], Any]:
    """A decorator: the test runs with cases of a product (`sample_product_testcases`)."""
    cases = sample_product_testcases(*args, **kw)
    decorator: Any = parameterized.parameters
    return decorator(*cases) if cases else lambda test: lambda self: None  # type: ignore[no-any-return]


def named_cases_from_sampler(gen: Callable[..., Iterable[Case]]) -> Iterator[Case]:
    """Cases with a `testcase_name`, drawn one by one.

    `gen` is called with a function that gives one item of a list, drawn, in a list; it gives one
    case.

    Raises:
      RuntimeError: it gives more.
    """
    rng = random.Random(0)
    seen: set[str] = set()
    for _ in range(_MAX_DRAWS):
        if len(seen) == NUM_GENERATED_CASES.value:
            return
        cases = list(gen(lambda items: [rng.choice(list(items))]))
        if len(cases) > 1:
            raise RuntimeError(f"A generator gives one case at a time, got {len(cases)}; choose "
                               "with the function that it is given.")
        for case in cases:
            if case["testcase_name"] not in seen:
                seen.add(case["testcase_name"])
                yield case


def sanitize_test_name(s: str) -> str:
    """A name with what cannot stand in one as underscores.

    >>> sanitize_test_name("a=1, b=(2, 'x')")
    'a_1_b_2_x'
    """
    return re.sub(r"[ \\\"'\[\](){}<>=,._]+", "_", s).strip("_")


def parameterized_filterable(*, kwargs: Sequence[Case],
                             testcase_name: Callable[[Case], str] | None = None,
                             one_containing: str | None = None) -> Callable[[Any], Any]:
    """A decorator: the test runs with each of the cases, named by their values.

    Args:
      kwargs: the cases.
      testcase_name: gives the name of a case; by default `testcase_name` in it, or its values.
      one_containing: run only the first case whose name contains this.
    """
    def name_of(case: Case) -> str:
        if testcase_name is not None:
            return sanitize_test_name(testcase_name(case))
        return sanitize_test_name("_".join(f"{k}={v}" for k, v in case.items()))

    cases = [case if "testcase_name" in case else {"testcase_name": name_of(case), **case}
             for case in kwargs]
    if one_containing is not None:
        cases = [case for case in cases if one_containing in case["testcase_name"]][:1]
    decorator: Any = parameterized.named_parameters
    return decorator(*cases)  # type: ignore[no-any-return]
