"""Functions exported with symbolic shapes give what they give with fixed ones."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import export
from tests.export.functions import CONSTRAINTS, FORMS, functions, matrices

FUNCTIONS = functions()
# Every eleventh, and all that is written out, in one form.
FEW = [name for i, name in enumerate(FUNCTIONS) if i % 11 == 0]


def check(name, form):
    spec, shape = FORMS[form]
    fun = jax.jit(FUNCTIONS[name])
    x, y = matrices(shape)
    dims = export.symbolic_shape(spec, constraints=CONSTRAINTS[form])
    struct = jax.ShapeDtypeStruct(dims, np.float32)
    e = export.export(fun)(struct, struct)
    wanted, tree = jax.tree.flatten(fun(x, y))
    got, got_tree = jax.tree.flatten(e.call(x, y))
    assert got_tree == tree
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        kind = np.complex128 if a.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(np.asarray(a, kind), np.asarray(b, kind), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", FEW)
def test_few(name):
    check(name, sorted(FORMS)[FEW.index(name) % len(FORMS)])


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all(name, form):
    check(name, form)
