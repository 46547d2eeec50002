"""Programs of single operations: how many stay loaded, and which."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core.bounded import BoundedDict
from pyjx.runtime import programs
from pyjx.runtime.executable import Executable
from pyjx.runtime.programs import Program


@pytest.fixture
def calls_through_python(monkeypatch):
    """How often a program ran through Python; the number is in a list."""
    count = [0]
    call = Executable.call

    def counted(*args):
        count[0] += 1
        return call(*args)

    monkeypatch.setattr(Executable, "call", counted)
    return count


@pytest.fixture
def compiled_programs(monkeypatch):
    """How many programs were compiled or loaded; the number is in a list."""
    count = [0]
    init = Executable.__init__

    def counted(*args):
        count[0] += 1
        init(*args)

    monkeypatch.setattr(Executable, "__init__", counted)
    return count


def test_program_called_often_is_called_by_c(calls_through_python):
    x = jnp.asarray(np.ones(1201, np.float32))
    for _ in range(programs.OPERATION_CALLS + 5):
        assert jax.lax.sin(x).shape == (1201,)
    assert calls_through_python == [programs.OPERATION_CALLS]


def test_program_that_was_dropped_is_called_by_c_at_once(
        monkeypatch, calls_through_python, compiled_programs):
    programs.clear()
    monkeypatch.setattr(programs, "OPERATIONS", 2)
    arrays = [jnp.asarray(np.full(n, 2.0, np.float32)) for n in range(1210, 1214)]
    for expected in (4, 6, 6):  # the first two are dropped, loaded again and kept by C++
        for x in arrays:
            assert np.asarray(jnp.negative(x))[0] == -2
        assert compiled_programs == [expected]
    calls = calls_through_python[0]
    for x in arrays:
        jnp.negative(x)
    assert calls_through_python == [calls + 2]


def test_program_that_is_called_often_is_found_again(compiled_programs):
    x = jnp.asarray(np.ones(1221, np.float32))
    for _ in range(programs.OPERATION_CALLS):
        jax.lax.cos(x)
    jax.lax.cos(jax.device_put(x, jax.devices()[0]))  # committed: C++ knows it not
    assert compiled_programs == [1]


def test_programs_of_many_threads(monkeypatch):
    programs.clear()
    monkeypatch.setattr(programs, "OPERATIONS", 2)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    made = [Program() for _ in range(5)]

    def note(seed):
        for i in range(2000):
            programs.note_operation_called(made[(seed * i) % 5], i % 3 == 0)

    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(note, range(1, 5)))
    finally:
        sys.setswitchinterval(interval)
    assert sum(p.calls for p in made) == 8000
    assert len(programs._new) <= 2 and len(programs._often) <= 2
    programs.clear()


@pytest.mark.skipif(sys.platform != "linux", reason="counts the memory maps of /proc")
def test_programs_of_many_shapes_do_not_stay_loaded(run_python):
    run_python("""
import numpy as np, pyjx as jax, pyjx.numpy as jnp
from pyjx.runtime import programs
programs.OPERATIONS = 10
def maps():
    with open("/proc/self/maps") as f:
        return sum(1 for _ in f)
jax.lax.sin(jnp.ones(3)).block_until_ready()
start = maps()
for n in range(4, 84):
    jax.lax.sin(jnp.asarray(np.ones(n, "f4")))
assert maps() < start + 100, (start, maps())
full = maps()
jax.clear_caches()
assert maps() < full - 10, (full, maps())
assert jax.lax.sin(jnp.zeros(5)).tolist() == [0] * 5
""", PYJX_CACHE="0")


def test_traces_of_many_shapes_do_not_stay():
    spec = jnp.exp2._jit_spec
    capacity = spec.traces.capacity
    spec.traces.capacity = 3
    try:
        for n in range(1, 7):
            assert jnp.exp2(np.zeros(n, np.float32)).shape == (n,)
        assert len(spec.traces) <= 3
    finally:
        spec.traces.capacity = capacity


def test_bounded_dict():
    cache = BoundedDict(2)
    for n in range(4):
        cache[n] = n
    assert dict(cache) == {2: 2, 3: 3}
    cache[2] = "again"
    assert dict(cache) == {2: "again", 3: 3}


def test_clear_caches_lets_programs_go():
    x = jnp.asarray(np.ones(1301, np.float32))
    jnp.cos(x)
    assert programs._new
    jax.clear_caches()
    assert not programs._new
    assert jnp.cos._jit_spec.traces == {}
    assert jnp.cos(x).shape == x.shape


def test_names_are_those_of_users_and_public_ones():
    def mine(x):
        return x + 1

    jax.clear_caches()
    jax.jit(mine)(1.0)
    jax.jit(jnp.sin)(1.0)
    jax.random.normal(jax.random.key(0), (3,))
    jax.new_ref(jnp.ones(3))  # which a jitted function of the library copies
    jnp.ones(3).at[jnp.arange(2)].add(1.0)
    found = jax.explain()
    functions = {e.function for e in found.functions}
    assert {"mine", "sin"} <= functions and "_copy" not in functions
    names = [row[0] for row in found.operations]
    assert "normal" in names and not [n for n in names if n[0] == "_"]
    assert not [c for c in found.caches if "._" in str(c).partition(":")[0]]
