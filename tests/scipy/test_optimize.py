"""Minimization of functions whose minimum is known."""

import numpy as np
import pytest
from scipy import optimize as reference

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.scipy.optimize import OptimizeResults, minimize


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def matyas(x):
    return 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1]


def eggholder(x):
    return (-(x[1] + 47) * jnp.sin(jnp.sqrt(jnp.abs(x[0] / 2 + x[1] + 47)))
            - x[0] * jnp.sin(jnp.sqrt(jnp.abs(x[0] - (x[1] + 47)))))


def quartic(x):
    return ((x - jnp.arange(x.size)) ** 4 + (x - jnp.arange(x.size)) ** 2).sum()


@pytest.mark.parametrize("fun", [rosenbrock, himmelblau, matyas, quartic, eggholder])
@pytest.mark.parametrize("start", [np.zeros(2), np.array([-1.5, 2.0]), np.array([3.0, -4.0])])
@pytest.mark.parametrize("double", [True, False])
def test_finds_a_minimum(fun, start, double):
    with jax.enable_x64(double):
        x0 = jnp.asarray(start)
        result = jax.jit(lambda x0: minimize(fun, x0, method="BFGS", options={
            "gtol": 1e-6 if double else 1e-2}))(x0)
        assert isinstance(result, OptimizeResults)
        assert bool(result.success) and int(result.status) == 0
        assert float(abs(jax.grad(fun)(result.x)).max()) < (1e-6 if double else 1e-2)
        assert float(result.fun) <= float(fun(x0))
        np.testing.assert_allclose(result.jac, jax.grad(fun)(result.x), rtol=1e-3, atol=1e-4)
        assert int(result.nfev) == int(result.njev) >= int(result.nit)


def test_is_as_good_as_scipy():
    start = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
    with jax.enable_x64(True):
        got = minimize(rosenbrock, start, method="bfgs", tol=1e-8)
    want = reference.minimize(reference.rosen, start, jac=reference.rosen_der, method="BFGS",
                              tol=1e-8)
    np.testing.assert_allclose(got.x, want.x, atol=1e-6)
    assert int(got.nit) < 2 * want.nit and int(got.nfev) < 2 * want.nfev
    np.testing.assert_allclose(got.hess_inv, want.hess_inv, rtol=0.3, atol=0.3)


LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


@pytest.mark.parametrize("fun", [rosenbrock, himmelblau, matyas, quartic, eggholder])
@pytest.mark.parametrize("start", [np.zeros(2), np.array([-1.5, 2.0]), np.array([3.0, -4.0])])
def test_limited_memory_finds_a_minimum(fun, start):
    with jax.enable_x64(True):
        options = {"gtol": 1e-6, "ftol": 0}
        result = jax.jit(lambda x0: minimize(fun, x0, method=LIMITED, options=options))(start)
        assert bool(result.success) and int(result.status) == 0 and result.hess_inv is None
        assert np.linalg.norm(jax.grad(fun)(result.x)) < 1e-6
        want = reference.minimize(fun, start, jac=jax.grad(fun), method="L-BFGS-B", tol=1e-6)
        assert int(result.nfev) <= 2 * want.nfev + 5


def test_limited_memory_of_many_variables():
    start = jnp.linspace(-1, 2, 500)
    for cor in (1, 3, 10):
        result = minimize(rosenbrock, start, method=LIMITED, tol=1e-2,
                          options={"maxcor": cor, "ftol": 0, "norm": np.inf})
        assert bool(result.success)
        np.testing.assert_allclose(result.x, 1, atol=1e-2)


@pytest.mark.parametrize("options, status", [
    ({"maxiter": 2}, 1), ({"maxfun": 4}, 2), ({"maxgrad": 4}, 3), ({"ftol": 1e9}, 4)])
def test_limited_memory_ends(options, status):
    result = minimize(rosenbrock, jnp.zeros(2), method=LIMITED, options=options)
    assert not bool(result.success) and int(result.status) == status
    assert not result.success.weak_type and result.status.weak_type
    assert float(result.fun) < 1
    assert int(minimize(rosenbrock, jnp.ones(2), method=LIMITED).nit) == 0


def test_maps_over_starts_and_takes_arguments():
    starts = jnp.array([[0.0, 1.0], [3.0, -2.0], [5.0, 5.0]])

    def solve(x0, centre):
        return minimize(lambda x, c: ((x - c) ** 2).sum(), x0, (centre,), method="BFGS").x

    np.testing.assert_allclose(jax.vmap(solve)(starts, starts[::-1]), starts[::-1], atol=1e-5)


def test_ends():
    result = minimize(rosenbrock, jnp.zeros(2), method="BFGS", options={"maxiter": 2})
    assert not bool(result.success) and int(result.status) == 1 and int(result.nit) == 2
    result = minimize(rosenbrock, jnp.ones(2), method="BFGS")
    assert bool(result.success) and int(result.nit) == 0


def test_refuses():
    square = lambda x: (x * x).sum()  # noqa: E731
    with pytest.raises(ValueError, match="Method cg not recognized; expected one of bfgs"):
        minimize(square, jnp.ones(2), method="cg")
    with pytest.raises(TypeError, match="must be a tuple"):
        minimize(square, jnp.ones(2), args=3, method="BFGS")
    with pytest.raises(TypeError):
        minimize(square, jnp.arange(2), method="BFGS")
    with pytest.raises(TypeError):
        minimize(square, jnp.ones(2), method="BFGS", options={"foo": 3})
    with pytest.raises(TypeError, match="scalar"):
        minimize(lambda x: x, jnp.ones(2), method="BFGS")


@pytest.mark.parametrize(("x0", "kind", "shown"), [
    ({"a": jnp.ones(3), "b": jnp.ones(2)}, TypeError, "{'a': float32[3], 'b': float32[2]}"),
    ([jnp.ones(3), jnp.ones(2)], TypeError, "[float32[3], float32[2]]"),
    (jnp.ones((3, 2)), ValueError, "(3, 2)"), (1.0, ValueError, "()")])
def test_what_is_no_vector_is_told_how_one_is_made(x0, kind, shown):
    def fun(x):
        return sum([jnp.square(leaf - 2).sum() for leaf in jax.tree.leaves(x)])

    with pytest.raises(kind, match=r"^minimize: expected x0 of shape") as caught:
        minimize(fun, x0, method="BFGS")
    assert f", got {shown}. Write flat, unravel = jax.flatten_util.ravel_pytree(x0), and " \
        "minimize lambda v: fun(unravel(v)) from flat." in str(caught.value)
    flat, unravel = jax.flatten_util.ravel_pytree(x0)
    result = minimize(lambda v: fun(unravel(v)), flat, method="BFGS")
    np.testing.assert_allclose(result.x, jnp.full_like(flat, 2.0), atol=1e-4)


def test_minimize_names_an_option_and_a_function_of_the_user():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'maxitr' in options; those "
                                        r"of BFGS are maxiter, norm, gtol, line_search_maxiter"):
        jax.scipy.optimize.minimize(jnp.sum, jnp.ones(2), method="BFGS", options={"maxitr": 3})

    def objective(x, scale):
        return float(scale * x.sum())

    with pytest.raises(jax.errors.ConcretizationTypeError, match=f"objective at {__file__}"):
        jax.scipy.optimize.minimize(objective, jnp.ones(2), (2,), method="BFGS")


def test_functions_without_a_long_name_are_minimized():
    class Objective:
        def __init__(self):
            self.__qualname__ = None

        def __call__(self, x):
            return ((x - 1) ** 2).sum()

    found = minimize(Objective(), jnp.zeros(2), method="BFGS")
    np.testing.assert_allclose(found.x, 1, rtol=1e-5)


@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
def test_complex_variables(method):
    z0, weights = jnp.array([2.0 - 1.0j, 3.0j]), jnp.array([1.0, 50.0])

    def bowl(z):
        return jnp.sum(weights * jnp.abs(z - z0) ** 2)

    end = jax.jit(lambda z: minimize(bowl, z, method=method))(jnp.zeros_like(z0))
    assert bool(end.success) and end.x.dtype == "complex64" and end.fun.dtype == "float32"
    np.testing.assert_allclose(end.x, z0, atol=1e-4)
    far = minimize(bowl, jnp.zeros_like(z0), method=method, options={"maxiter": 0})
    np.testing.assert_allclose(far.jac, jax.grad(bowl)(far.x), rtol=1e-6)
