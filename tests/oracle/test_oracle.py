"""A short run of the tester, where PYJX_ORACLE_PYTHON names a Python that has jax."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.oracle.__main__ import KINDS
from tests.oracle.campaign import Campaign, described
from tests.oracle.processes import VARIABLE, Pair

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} is not set"),
]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair(os.environ[VARIABLE]) as running:
        yield running


@pytest.mark.parametrize("kind", KINDS)
def test_programs_give_what_the_oracle_gives(pair: Pair, kind: str) -> None:
    tally = Campaign(pair).run("test", 200, [kind])
    assert tally.ran == 200
    assert not tally.failures, "\n".join(described(f) for f in tally.failures)
