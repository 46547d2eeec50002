"""mypy, as tests run it."""

from __future__ import annotations

import sys

import pytest


def reported_by_mypy(*arguments: str) -> list[str]:
    """The lines that mypy reports. It raises the recursion limit, which is set back."""
    api = pytest.importorskip("mypy.api")
    limit = sys.getrecursionlimit()
    try:
        out, err, _ = api.run(["--no-error-summary", *arguments])
    finally:
        sys.setrecursionlimit(limit)
    assert not err
    return str(out).splitlines()
