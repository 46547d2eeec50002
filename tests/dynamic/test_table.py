"""Public functions of arrays whose sizes vary are exact, or refused by name."""

import re
import warnings
from pathlib import Path

import pytest

from pyjx.errors import InconclusiveDimensionOperation
from tests.dynamic.functions import planted
from tests.dynamic.table import CASES, REFUSED_CASES, ROWS, arguments, check, compiled, dims_of


@pytest.mark.parametrize(("code", "shapes"), [
    case if i % 16 == 0 else pytest.param(*case, marks=pytest.mark.slow)
    for i, case in enumerate(CASES)])
def test_padding_is_hidden_from(code, shapes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(code, shapes)


@pytest.mark.parametrize(("code", "shapes"), REFUSED_CASES)
def test_refused_by_name(code, shapes):
    with pytest.raises((NotImplementedError, InconclusiveDimensionOperation)) as caught:
        planted(compiled(code), dims_of(shapes), arguments(shapes, (5, 4)))
    text = str(caught.value)
    assert text.startswith("jit(dynamic=...): ") and " at <string>:1" in text
    assert "dynamic`" in text or "Use " in text or "Give " in text


def test_few_are_refused():
    assert len(CASES) >= 250 and len(REFUSED_CASES) < 0.15 * len(CASES)


def test_matrices_that_are_refused_are_told_in_the_guide():
    guide = (Path(__file__).parents[2] / "docs" / "dynamic.md").read_text(encoding="utf-8")
    names = {name for code, shapes in REFUSED_CASES if shapes in ("n,n", ROWS)
             for name in re.findall(r"linalg\.(\w+)", code)} - {"multi_dot"}
    assert names and not [name for name in names if f"`{name}`" not in guide]
