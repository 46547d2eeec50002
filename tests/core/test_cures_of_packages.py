"""What messages name in the place of NumPy's and SciPy's functions and objects, and by which names
of the user's they do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal
import scipy.sparse
from numpy import linalg
from numpy.random import RandomState, default_rng, normal
from scipy.fft import dct, rfft
from scipy.integrate import odeint, quad, solve_ivp
from scipy.interpolate import CubicSpline, RegularGridInterpolator, interp1d
from scipy.linalg import expm
from scipy.linalg import expm as exp
from scipy.ndimage import map_coordinates
from scipy.optimize import brentq
from scipy.signal import fftconvolve, savgol_filter
from scipy.sparse.linalg import aslinearoperator, cg, spsolve

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from tests.mistakes import mistake

pytestmark = pytest.mark.smoke  # what code looks like differs by Python's release

V, EYE = jnp.ones(3), jnp.eye(3)
MATRIX, ARRAY = scipy.sparse.eye(3, format="csr"), scipy.sparse.eye_array(3, format="csc")
GENERATOR = default_rng(0)
SPLINE = CubicSpline(np.arange(3.0), np.arange(3.0))
ROWS = [1.0, 2.0, 3.0]


class Model:
    """An object with what an application has."""

    def __init__(self) -> None:
        self.matrix, self.rng, self.rows, self.out = MATRIX, GENERATOR, ROWS, np.zeros(3)


MODEL = Model()


# -- sparse matrices -------------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "name"), [
    (lambda x: MATRIX @ x, "MATRIX"), (lambda x: x @ MATRIX, "MATRIX"),
    (lambda x: ARRAY @ x, "ARRAY"), (lambda x: ARRAY * x, "ARRAY"),
    (lambda x: (lambda local: x @ local)(MATRIX), "local"), (lambda x: MATRIX.dot(x), "MATRIX"),
    (lambda x: MODEL.matrix @ (x + 1), "MODEL.matrix"), (lambda x: x @ MATRIX.T, "MATRIX.T"),
    (lambda x: ARRAY.multiply(x), "ARRAY")])
@pytest.mark.parametrize("transformed", [
    jax.jit, lambda call: lambda x: jax.grad(lambda x: call(x).sum())(x),
    lambda call: lambda x: jax.vmap(call)(EYE)], ids=["jit", "grad", "vmap"])
def test_a_sparse_matrix_of_scipy_is_told_to_be_one_of_arrays(
        call: Callable[[Any], Any], name: str, transformed: Callable[[Any], Any]) -> None:
    said = mistake(lambda: transformed(call)(V))
    assert (f"\n{name} is a sparse matrix of SciPy's. Make it one of arrays: "
            f"jax.experimental.sparse.BCOO.from_scipy_sparse({name}).") in said
    assert "list of traced values" not in said and "jax.numpy" not in said


def test_that_one_serves_in_its_place() -> None:
    made = re.search(r"arrays: (.*)\.$", mistake(lambda: jax.jit(lambda x: MATRIX @ x)(V)), re.M)
    assert made is not None
    matrix = eval(made[1])
    assert jax.jit(lambda x: matrix @ x)(V).tolist() == (MATRIX @ np.ones(3)).tolist()


def test_the_product_of_matrices_is_told_where_it_was_a_star() -> None:
    assert "`@`, not `*`." in mistake(lambda: jax.jit(lambda x: MATRIX * x)(V))
    assert "`@`" not in mistake(lambda: jax.jit(lambda x: ARRAY * x)(V))  # of elements, as there


def test_a_matrix_without_a_name_is_told_of() -> None:
    def product(x: Any) -> Any:
        x @= MATRIX
        return x

    said = mistake(lambda: jax.jit(product)(V))
    assert "\nAn operand is a sparse matrix of SciPy's." in said
    assert said.count("from_scipy_sparse(matrix).") == 1


@pytest.mark.parametrize("call", [lambda x: MATRIX + x, lambda x: x - ARRAY])
@pytest.mark.parametrize("traced", [False, True])
def test_a_sum_with_a_sparse_matrix_is_of_arrays(call: Callable[[Any], Any], traced: bool) -> None:
    assert "give matrix.toarray()." in mistake(lambda: (jax.jit(call) if traced else call)(EYE))


# -- functions by name -----------------------------------------------------------------------------


@pytest.mark.parametrize(("call", "other"), [
    (lambda x: expm(x), "expm use jax.scipy.linalg.expm;"),
    (lambda x: exp(x), "exp use jax.scipy.linalg.expm;"),
    (lambda x: cg(np.eye(3), x[0]), "cg use jax.scipy.sparse.linalg.cg;"),
    (lambda x: map_coordinates(x, [[0], [0]], 1), "jax.scipy.ndimage.map_coordinates;"),
    (lambda x: fftconvolve(x, x), "fftconvolve use jax.scipy.signal.fftconvolve;"),
    (lambda x: dct(x), "dct use jax.scipy.fft.dct;"),
    (lambda x: rfft(x), "rfft use jax.numpy.fft.rfft;"),
    (lambda x: linalg.inv(x), "linalg.inv use jax.numpy.linalg.inv;"),
    (lambda x: odeint(lambda y, t: -y, x[0], [0.0, 1.0]), "use jax.experimental.ode.odeint;"),
    (lambda x: RegularGridInterpolator((x[0],), x[0]),
     "jax.scipy.interpolate.RegularGridInterpolator;")])
def test_a_function_by_its_bare_name_has_that_of_its_module(
        call: Callable[[Any], Any], other: str) -> None:
    said = mistake(lambda: jax.jit(call)(EYE))
    assert "\nIn place of " in said and other in said
    place, name = re.search(r"use jax\.(.*)\.(\w+);", said).groups()  # type: ignore[union-attr]
    assert name in dir(__import__(f"pyjx.{place}", fromlist=[name]))


@pytest.mark.parametrize("call", [
    lambda x: spsolve(ARRAY, x), lambda x: savgol_filter(x, 3, 1), lambda x: interp1d(x, x),
    lambda x: scipy.signal.savgol_filter(x, 3, 1), lambda x: CubicSpline(x, x), SPLINE,
    lambda x: SPLINE(x), lambda x: interp1d(ROWS, ROWS)(x),
    lambda x: quad(lambda t: t * x[0], 0, 1), lambda x: solve_ivp(lambda t, y: -y, (0, 1), x),
    lambda x: aslinearoperator(ARRAY).matvec(x), lambda x: brentq(lambda y: y - x[0], -1, 2)])
def test_functions_of_scipy_that_have_no_counterpart_are_called_back(
        call: Callable[[Any], Any]) -> None:
    said = mistake(lambda: jax.jit(lambda x: call(x))(V))
    assert ("\nSciPy's functions compute with values: run it outside of the traced function, or by "
            "jax.pure_callback.") in said
    assert "NumPy's" not in said


def test_an_operator_of_scipy_is_no_sparse_matrix() -> None:
    said = mistake(lambda: jax.jit(lambda x: aslinearoperator(ARRAY) @ x)(V))
    assert "\nSciPy's operators compute with values: " in said and "from_scipy_sparse" not in said


@pytest.mark.parametrize("call", [
    lambda x: GENERATOR.normal(x), lambda x: MODEL.rng.choice(x), lambda x: normal(x),
    lambda x: default_rng(0).uniform(0, x), lambda x: RandomState(0).normal(x)])
def test_generators_of_numpy_draw_once(call: Callable[[Any], Any]) -> None:
    assert ("NumPy draws once, as it is traced: draw by jax.random, with a key."
            ) in mistake(lambda: jax.jit(call)(V))


# -- names of the user's ---------------------------------------------------------------------------


def first(x: Any) -> Any:
    y = np.zeros(3)
    y[0] = x[0]
    return y


def added(x: Any) -> Any:
    y = np.zeros((3, 3))
    y[0, :2] += x[:2]
    return y


def held(x: Any) -> None:
    MODEL.out[1:] = x[1:]


def given(x: Any) -> None:
    np.zeros(3).reshape(3)[0] = x[0]


@pytest.mark.parametrize(("call", "update"), [
    (first, "y = y.at[0].set(value)."), (added, "y = y.at[0, :2].set(value)."),
    (held, "MODEL.out = MODEL.out.at[1:].set(value)."), (given, "xs = xs.at[i].set(value).")])
def test_an_update_is_of_the_array_that_the_program_has(
        call: Callable[[Any], Any], update: str) -> None:
    assert f"by jax.numpy, and write {update}\n" in mistake(lambda: jax.jit(call)(V))


@pytest.mark.parametrize(("call", "cure"), [
    (lambda x: ROWS[x], "jnp.asarray(ROWS)[x];"),
    (lambda x: MODEL.rows[x + 1], "jnp.asarray(MODEL.rows)[x + 1];"),
    (lambda x: MODEL.rows[x:x + 1], "lax.dynamic_slice_in_dim(jnp.asarray(MODEL.rows), start, si"),
    (lambda x: x in ROWS, "use jnp.isin(x, jnp.asarray(ROWS))."),
    (lambda x: [MODEL.rows[0], MODEL.rows[1], MODEL.rows[2], MODEL.rows[-1]][x],
     "jnp.asarray(xs)[x];")])  # which is too long to be said again
def test_an_index_is_of_what_the_program_has(call: Callable[[Any], Any], cure: str) -> None:
    assert cure in mistake(lambda: jax.jit(call)(1))


def test_the_bound_of_a_loop_is_told_to_end_it() -> None:
    said = mistake(lambda: jax.grad(
        lambda x: lax.while_loop(lambda x: x < 9, lambda x: 2 * x, x))(1.0))
    assert "(max_steps: there it ends, whatever the condition is)" in said
