"""Functions exported with symbolic shapes give what they give with fixed ones."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import export
from tests.export.functions import CONSTRAINTS, FORMS, functions, matrices

FUNCTIONS = functions()
# Every eleventh, in one form.
FEW = [name for i, name in enumerate(FUNCTIONS) if i % 11 == 0]

@pytest.fixture(autouse=True)
def without_warnings_of_retraces():
    """All that is written in one line of a table counts as one function there."""
    before = jax.config.jax_pyjx_retraces_warn_count
    jax.config.update("jax_pyjx_retraces_warn_count", -1)
    yield
    jax.config.update("jax_pyjx_retraces_warn_count", before)


def check(name, form, some=None):
    spec, shapes = FORMS[form]
    fun = jax.jit(FUNCTIONS[name])
    dims = export.symbolic_shape(spec, constraints=CONSTRAINTS[form])
    struct = jax.ShapeDtypeStruct(dims, np.float32)
    e = export.export(fun)(struct, struct)
    for shape in shapes[:some]:
        compare(e, fun, *matrices(shape))


def compare(e, fun, x, y):
    wanted, tree = jax.tree.flatten(fun(x, y))
    got, got_tree = jax.tree.flatten(e.call(x, y))
    assert got_tree == tree
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        kind = np.complex128 if a.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(np.asarray(a, kind), np.asarray(b, kind), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", FEW)
def test_few(name):
    check(name, sorted(FORMS)[FEW.index(name) % len(FORMS)], 1)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all(name, form):
    check(name, form)
