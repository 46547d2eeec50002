"""Tests over eight devices of the CPU. `tests/test_devices.py` runs each file in a process that
has them; by hand: EIGHT_DEVICES=1 XLA_FLAGS=--xla_force_host_platform_device_count=8 pytest FILE"""

import os

import numpy as np
import pytest

import pyjx as jax

collect_ignore_glob = [] if "EIGHT_DEVICES" in os.environ else ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def eight_devices():
    if len(jax.devices()) < 8:  # a file that was named is collected all the same
        pytest.skip("needs eight devices: EIGHT_DEVICES=1 "
                    "XLA_FLAGS=--xla_force_host_platform_device_count=8 pytest FILE")


@pytest.fixture
def mesh():
    """Four by two devices, along whose axes the compiler decides."""
    return jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
