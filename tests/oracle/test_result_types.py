"""The types of results are those of an oracle, and no function is forgotten."""

import importlib
import inspect
import os
import re
from collections import Counter

import pytest

from tests.oracle.processes import VARIABLE
from tests.oracle.result_types import MODES, asked, compared, names_in, oracles
from tests.oracle.typed_calls import CALLS, EXPLAINED, NOT_OF_ARRAYS, explanation, written_out

MODULES = """numpy numpy.linalg numpy.fft lax lax.linalg nn image ops scipy.cluster.vq scipy.fft
scipy.integrate scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize scipy.signal
scipy.sparse.linalg scipy.special scipy.stats""".split()  # noqa: SIM905
SHORT = {"numpy": "jnp", "scipy": "jsp"}


@pytest.mark.oracle
@pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} is not set")
@pytest.mark.parametrize("mode", MODES)
def test_result_types(mode):
    """One pair or triple in a thousand; `python -m tests.oracle.result_types` takes more."""
    different = compared(oracles(), mode, asked("", 1000), Counter())
    assert not different, "\n".join(map(str, different))


def public_functions():
    for name in MODULES:
        module = importlib.import_module(f"pyjx.{name}")
        first, *rest = name.split(".")
        for function in dir(module):
            value = getattr(module, function)
            if (callable(value) and not isinstance(value, type) and not inspect.ismodule(value)
                    and not re.search("^_|_p$|[a-z]_$", function)):
                yield ".".join([SHORT.get(first, first), *rest, function])


def test_every_function_of_arrays_is_called():
    called = {name for expressions in CALLS.values() for e in expressions
              for name in re.findall(r"\b[a-z]\w*(?:\.\w+)+", e)}
    missing = set(public_functions()) - called - NOT_OF_ARRAYS
    assert not missing, sorted(missing)


def test_expressions():
    assert written_out("f({a b}, {1 2})") == ["f(a, 1)", "f(a, 2)", "f(b, 1)", "f(b, 2)"]
    assert names_in("jnp.max(x, z)") == ["x", "z"]
    for expressions in CALLS.values():
        for expression in expressions:
            compile(expression, expression, "eval")


def test_explanations():
    assert len({explained[:2] for explained in EXPLAINED}) == len(EXPLAINED)
    call = "off: jnp.argmax(x) (complex64)"
    assert explanation(call, "raises TypeError", "int32[]")
    assert not explanation(call, "int32[]", "raises TypeError")
    assert not explanation("off: jnp.add(x, y) (int8, int8)", "int8[3]", "int16[3]")
