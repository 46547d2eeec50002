"""Which parameters a test runs with: products of which some are drawn, with names."""

from __future__ import annotations

import functools
import math
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from absl.testing import parameterized

__all__ = [
    "NUM_GENERATED_CASES", "SKIP_SLOW_TESTS", "TEST_NUM_THREADS", "named_cases_from_sampler",
    "parameterized_filterable", "sample_product", "sample_product_testcases", "sanitize_test_name",
]

Case = dict[str, Any]


class _Setting:
    """A setting with a `value`: a number in an environment variable, or its default."""

    def __init__(self, variable: str, default: int) -> None:
        self.variable, self.default = variable, default

    @property
    def value(self) -> int:
        return int(os.environ.get(self.variable, self.default))


NUM_GENERATED_CASES = _Setting("JAX_NUM_GENERATED_CASES", 10)
SKIP_SLOW_TESTS = _Setting("JAX_SKIP_SLOW_TESTS", 0)
TEST_NUM_THREADS = _Setting("JAX_TEST_NUM_THREADS", 0)
_SEED = 42  # JAX's: the cases that are drawn are the same ones
_MANY = 10**6  # numbers that are too many to be shuffled
_MAX_DRAWS = 1000  # some come twice


def _drawn(total: int) -> Iterable[int]:
    """As many numbers below the total as cases are to run, or all of them, shuffled."""
    count = min(total, NUM_GENERATED_CASES.value)
    if total > _MANY:
        return random.Random(_SEED).sample(range(total), count)
    return map(int, np.random.RandomState(_SEED).choice(total, count, replace=False))


def sample_product_testcases(*args: Iterable[Case], **kw: Iterable[Any]) -> list[Case]:
    """Cases drawn from the product of lists of cases and of values by name.

    >>> sample_product_testcases([{"a": 1, "b": 2}], c=[3, 4])
    [{'a': 1, 'b': 2, 'c': 4}, {'a': 1, 'b': 2, 'c': 3}]
    """
    groups = [list(group) for group in args]
    groups += [[{name: value} for value in values] for name, values in kw.items()]

    def case(number: int) -> Case:
        parts: Case = {}
        for group in groups:
            number, place = divmod(number, len(group))
            parts |= group[place]
        return parts

    return [case(number) for number in _drawn(math.prod(map(len, groups)))]


def sample_product(*args: Iterable[Case], **kw: Iterable[Any]) -> Callable[[Any], Any]:
    """A decorator: the test runs with cases of a product (`sample_product_testcases`)."""
    decorator: Any = parameterized.parameters
    return decorator(*sample_product_testcases(*args, **kw))  # type: ignore[no-any-return]


def named_cases_from_sampler(gen: Callable[..., Iterable[Case]]) -> Iterator[Case]:
    """Cases with a `testcase_name`, drawn one by one.

    `gen` is called with a function that gives one item of a list, drawn, in a list; it gives one
    case.

    Raises:
      RuntimeError: it gives more.
    """
    rng = np.random.RandomState(_SEED)

    def choose(items: Iterable[Any]) -> list[Any]:
        choices = list(items)
        return [choices[rng.randint(len(choices))]]

    seen: set[str] = set()
    for _ in range(_MAX_DRAWS):
        if len(seen) == NUM_GENERATED_CASES.value:
            return
        cases = list(gen(choose))
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
    'a_1_b_2_x_'
    """
    return re.sub(r"""[ "'\[\](){}<>=,._]+""", "_", s)


def parameterized_filterable(*, kwargs: Iterable[Case],
                             testcase_name: Callable[[Case], str] | None = None,
                             one_containing: str | None = None) -> Callable[[Any], Any]:
    """A decorator: the test runs with each of the cases, named by their values.

    Args:
      kwargs: the cases.
      testcase_name: gives the name of a case; by default `testcase_name` in it, or its values.
      one_containing: run only the first case whose name contains this, under the test's own name.
    """
    def name_of(case: Case) -> str:
        if testcase_name is not None:
            return testcase_name(case)
        values = "_".join(f"{name}={value}" for name, value in sorted(case.items()))
        return str(case.get("testcase_name", values))

    cases = [{**case, "testcase_name": sanitize_test_name(name_of(case))} for case in kwargs]
    if one_containing is not None:
        return _only(cases, one_containing)
    decorator: Any = parameterized.named_parameters
    return decorator(*cases)  # type: ignore[no-any-return]


def _only(cases: Sequence[Case], text: str) -> Callable[[Any], Any]:
    """A decorator: the test runs with the first case whose name contains the text."""
    names = [case["testcase_name"] for case in cases]
    found = [case for case, name in zip(cases, names, strict=True) if text in name]
    assert found, f"No testcase_name contains {text!r}; there are {', '.join(names)}."
    chosen = {name: value for name, value in found[0].items() if name != "testcase_name"}

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(self: Any) -> Any:
            return test(self, **chosen)

        return run

    return decorate
