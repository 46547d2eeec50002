"""The end of a process: programs that still run are waited for, and what Python frees is freed."""

from __future__ import annotations

import pytest

CALLING = """
import os, time
import numpy as np
import pyjx as jax, pyjx.numpy as jnp
def slow(x):
    time.sleep(0.3)
    if {fails}:
        raise OSError("disk full")
    os.write(1, b"called ")
    return np.asarray(x)
ask = lambda x: jax.pure_callback(slow, x, x)
{call}
"""
ON_TWO = "jax.pmap(ask)(jnp.ones(2))"
ON_EIGHT = ("x = jax.device_put(jnp.ones(8), jax.NamedSharding(jax.make_mesh((8,), 'x'), "
            "jax.P('x'))); y = jax.jit(ask)(x)")
ON_ONE = "jax.jit(ask)(jnp.ones(3))"


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("call", [ON_TWO, ON_EIGHT, ON_ONE], ids=["two", "eight", "one"])
def test_callbacks_of_results_that_nobody_read_end_first(start_python, call, fails):
    process = start_python(CALLING.format(call=call, fails=fails), JAX_NUM_CPU_DEVICES="8")
    out, err = process.communicate(timeout=120)
    if fails:  # the call itself raises
        assert process.returncode == 1 and "disk full" in err
        return
    assert process.returncode == 0, err
    assert "called" in out


def test_python_ends_while_what_was_interrupted_is_still_compiled(run_python):
    """XLA's threads would use a client that has gone, a crash, where Ctrl-C ends the wait for them,
    as in jaxlib 0.10."""
    assert run_python("""
import signal
import pyjx as jax, pyjx.numpy as jnp
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
def digits(x):
    for base in range(2, 150):  # what takes XLA seconds
        yield x % base
        x = x // base
lowered = jax.jit(lambda x: list(digits(x))).lower(jnp.arange(3))
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    lowered.compile()
except KeyboardInterrupt:
    pass
print("over")
""", XLA_FLAGS="", JAX_NUM_CPU_DEVICES="8").strip() == "over"


@pytest.mark.parametrize("held", [
    "", "kept = x", "kept = f", "kept = jax.devices()", "kept = f(x)"])
def test_nothing_of_the_package_holds_clients_as_python_ends(run_python, held):
    """They wait for what runs as they go."""
    assert run_python(f"""
import atexit, gc, sys, weakref
def last():  # what is registered first
    global kept
    del kept
    vars(sys.modules["pyjx.runtime.backends"]).clear()  # as Python does
    gc.collect()
    print(client())
atexit.register(last)
import pyjx as jax, pyjx.numpy as jnp
x, f, kept = jnp.ones(3), jax.jit(lambda x: x * 2), None
f(x)
{held}
del x, f
client = weakref.ref(jax.devices()[0].client)
""").strip() == "None"


def test_what_imports_the_package_goes(run_python):
    """Frames that lead to the import hold what is local in them."""
    assert run_python("""
import gc, weakref
class Held: pass
def load():
    held = Held()
    import pyjx
    return weakref.ref(held)
held = load()
print(held())
""").strip() == "None"


@pytest.mark.parametrize("use", ["jnp.ones(3)", "jax.jit(jnp.sin)(1.0)"])
def test_a_fork_ends_without_what_its_parent_has(run_python, use):
    assert "ended 0" in run_python(f"""
import os, sys, warnings
warnings.simplefilter("ignore")
import pyjx as jax, pyjx.numpy as jnp
{use}
child = os.fork()
if not child:
    sys.exit(0)
print("ended", os.waitpid(child, 0)[1])
""")
