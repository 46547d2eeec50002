"""The types of results are those of the oracle, over all pairs of dtypes and Python scalars."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracle.processes import VARIABLE

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} is not set"),
]

# No real array is filled with a complex number; of weak type, the oracle's takes the real part.
REFUSED = re.compile(r"full_like\((weak (int|float)|Python (int|float)).*, Python complex\)")
SCRIPT = Path(__file__).with_name("result_types.py")
ROOT = Path(__file__).parents[2]


def types(python, package, x64):
    path = {"PYTHONPATH": str(ROOT)} if package == "pyjx" else {}
    done = subprocess.run([python, str(SCRIPT), package, str(x64)], capture_output=True, text=True,
                          check=True, env={**os.environ, "XLA_FLAGS": "", **path})
    return json.loads(done.stdout)


@pytest.mark.parametrize("x64", [0, 1])
def test_result_types(x64):
    """Also that a call of which the oracle gives a type does not raise."""
    theirs = types(os.environ[VARIABLE], "jax", x64)
    ours = types(sys.executable, "pyjx", x64)
    different = [f"{call}: {ours[call]}, oracle {result}" for call, result in theirs.items()
                 if ours[call] != result and isinstance(result, list)
                 and not REFUSED.fullmatch(call)]
    assert not different, "\n".join(different)
