"""Which packages are here, found without importing them."""

from __future__ import annotations

import importlib.util

import pytest


def skip_without(*packages: str) -> None:
    """Skip the test where one of the packages is not installed.

    Those that import jax would import it into the test's own process, where pyjx refuses it.
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
