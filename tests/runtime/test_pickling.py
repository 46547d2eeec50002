"""Compiled functions that go to other processes."""

import copy
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp

pytestmark = pytest.mark.smoke


@jax.jit
def of_this_module(x):
    return x + 1


def plain(x, n=2):
    return x * n


def test_pickling():
    for fn in (of_this_module, jnp.sin, jnp.dot, jnp.linspace):
        assert pickle.loads(pickle.dumps(fn)) is fn
    for fn in (jax.jit(plain), jax.jit(partial(plain, n=3)),
               jax.jit(plain, static_argnames="n", inline=True,
                       compiler_options={"xla_cpu_enable_fast_math": True})):
        again = pickle.loads(pickle.dumps(fn))
        assert again is not fn and float(again(2.0)) == float(fn(2.0))
        assert float(jax.grad(again)(2.0)) == float(jax.grad(fn)(2.0))
    assert float(copy.copy(of_this_module)(1.0)) == float(copy.deepcopy(of_this_module)(1.0)) == 2
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(jax.jit(lambda x: x))


def test_pickling_of_what_has_been_called():
    fn = jax.jit(partial(plain, n=3))
    want = float(fn(2.0))
    assert float(pickle.loads(pickle.dumps(fn))(2.0)) == want


SCRIPT = """
import sys
import cloudpickle
import pyjx as jax

@jax.jit
def double(x):
    return x * 2

def task(x):
    return jax.grad(lambda x: double(x) ** 2)(x)

double(1.0)
sys.stdout.buffer.write(cloudpickle.dumps([task, jax.grad(task), jax.vmap(double), double]))
"""


def test_functions_of_scripts_go_to_other_scripts():
    cloudpickle = pytest.importorskip("cloudpickle")
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True)
    task, second, mapped, double = cloudpickle.loads(done.stdout)
    assert float(task(3.0)) == 24 and float(second(3.0)) == 8 and float(double(3.0)) == 6
    assert mapped(jnp.arange(2.0)).tolist() == [0, 2]


def test_wide_arrays_that_are_loaded_without_x64_are_narrow():
    with jax.enable_x64(True):
        wide = [jnp.arange(3.0), jnp.arange(3), jnp.ones(2, "complex128")]
        text = pickle.dumps(wide)
        assert [x.dtype for x in pickle.loads(text)] == [x.dtype for x in wide]
    narrow = pickle.loads(text)
    assert [x.dtype.name for x in narrow] == ["float32", "int32", "complex64"]
    for x, y in zip(narrow, wide, strict=True):
        assert (np.asarray(x) == np.asarray(y)).all() and jax.typeof(x).dtype == x.dtype
        assert (jax.jit(lambda v: v + v)(x) == 2 * np.asarray(y)).all()
