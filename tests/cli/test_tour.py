"""What docs/emit-hlo.md shows is what the command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import tour


def test_the_tour_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tour.PAGE.read_text(encoding="utf-8")
    now = tour.made(page).replace(f"{tmp_path}/", "")
    assert tour.varying(now) == tour.varying(page)
