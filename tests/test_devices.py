"""The tests of several devices, each file in a process of its own that has eight."""

from pathlib import Path

import pytest

from tests.eight import elsewhere, run_with_eight

FOLDER = Path(__file__).parent / "devices"


@elsewhere
@pytest.mark.parametrize("file", sorted(p.name for p in FOLDER.glob("test_*.py")))
def test_with_eight_devices(file):
    run_with_eight(FOLDER / file, timeout=900)
