"""Generated programs, padded with NaN, give what they give unpadded, or are refused by name."""

import warnings

import pytest

import pyjx as jax
from pyjx.errors import InconclusiveDimensionOperation
from tests.dynamic.generated import Leak, Made, check


def refused(seeds):
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            made = Made(seed)
            try:
                check(made)
            except (NotImplementedError, InconclusiveDimensionOperation):
                count += 1
            except Leak as error:
                raise AssertionError(f"seed {seed}:\n{made}\n{error}") from None
    return count


def test_some_programs():
    assert refused(range(25)) <= 5


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 3100, 100))
def test_many_programs(first):
    assert refused(range(first, first + 100)) < 15
    jax.clear_caches()
