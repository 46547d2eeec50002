"""How many of the library's files run in a call of `grad(jit(f))`: what a reader of it opens."""

PROGRAM = """
import sys
import pyjx as jax
import pyjx.numpy as jnp

root = jax.__file__.rpartition("pyjx")[0]
packages = root + "pyjx/", root + "lowering/"  # an environment may stand beside them


def files_of(call):
    found = set()

    def note(frame, event, arg):
        file = frame.f_code.co_filename
        if event == "call" and frame.f_code.co_name != "<module>" and file.startswith(packages):
            found.add(file)

    sys.setprofile(note)
    call()
    sys.setprofile(None)
    return len(found)


def f(x):
    return jnp.sin(x) * x


x, grad, jit = jnp.asarray(2.0), jax.grad, jax.jit  # names load their modules
print(*[files_of(lambda: grad(jit(f))(x)) for _ in range(2)])
"""

# Traced, lowered, compiled; and called again. They only fall.
FIRST, SECOND = 80, 28


def test_files_of_a_call(run_python):
    first, second = map(int, run_python(PROGRAM, PYJX_CACHE="0").split())
    assert first <= FIRST and second <= SECOND, (first, second)
