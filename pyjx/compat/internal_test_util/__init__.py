"""`jax._src.internal_test_util`: tables that test suites written for JAX go through."""

from __future__ import annotations
