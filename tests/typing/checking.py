"""mypy, as tests run it."""

from __future__ import annotations

import gc
import sys

import pytest


def reported_by_mypy(*arguments: str) -> list[str]:
    """The lines that mypy reports. It raises the recursion limit and the collector's thresholds,
    which are set back."""
    api = pytest.importorskip("mypy.api")
    limit, thresholds = sys.getrecursionlimit(), gc.get_threshold()
    try:
        out, err, _ = api.run(["--no-error-summary", *arguments])
    finally:
        sys.setrecursionlimit(limit)
        gc.set_threshold(*thresholds)
    assert not err
    return str(out).splitlines()
