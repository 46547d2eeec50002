"""`odeint` on equations whose solutions are known, and its derivatives by the adjoint equation."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental.ode import odeint


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


T = np.array([0.0, 0.3, 1.0, 2.5])


def test_known_solutions():
    got = odeint(lambda y, t, a: a * y, 2.0, T, -0.7)
    np.testing.assert_allclose(got, 2 * np.exp(-0.7 * T), rtol=1e-7)
    got = odeint(lambda y, t: jnp.cos(t) * jnp.ones(2), jnp.zeros(2), T)
    np.testing.assert_allclose(got, np.stack([np.sin(T)] * 2, 1), atol=1e-7)
    got = jax.jit(lambda y: odeint(lambda y, t: 1j * y, y, T))(jnp.array([1.0 + 0j]))
    np.testing.assert_allclose(got[:, 0], np.exp(1j * T), rtol=1e-6)


def test_pytrees_and_closures():
    omega = jnp.array(2.0)

    def oscillator(y, t, damping):
        return {"x": y["v"], "v": -omega ** 2 * y["x"] - damping["c"] * y["v"]}

    got = odeint(oscillator, {"x": jnp.array([1.0]), "v": jnp.array([0.0])}, T, {"c": 0.1})
    want = solve_ivp(lambda t, y: [y[1], -4 * y[0] - 0.1 * y[1]], (0, 2.5), [1, 0], t_eval=T,
                     rtol=1e-10, atol=1e-10).y
    np.testing.assert_allclose(got["x"][:, 0], want[0], atol=1e-6)
    np.testing.assert_allclose(got["v"][:, 0], want[1], atol=1e-6)


def pendulum(y, t, g, drag):
    return jnp.stack([y[1], -drag * y[1] - g * jnp.sin(y[0]) + 0.1 * t])


def test_derivatives():
    def loss(y0, t, g, drag):
        return (odeint(pendulum, y0, t, g, drag) ** 2).sum()

    args = (jnp.array([0.5, -0.2]), jnp.asarray(T), 9.8, 0.2)
    got = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3)))(*args)
    for i, (x, slope) in enumerate(zip(args, got, strict=True)):
        flat = np.atleast_1d(np.asarray(x, float))
        want = []
        for k in range(flat.size):
            ends = []
            for step in (1e-5, -1e-5):
                moved = flat.copy()
                moved[k] += step
                full = list(args)
                full[i] = jnp.asarray(moved.reshape(np.shape(x)))
                ends.append(float(loss(*full)))
            want.append((ends[0] - ends[1]) / 2e-5)
        np.testing.assert_allclose(np.ravel(slope), want, rtol=1e-3, atol=1e-5)


def test_derivatives_in_what_it_closes_over():
    def final(a):
        return odeint(lambda y, t: a * y, 1.0, jnp.array([0.0, 1.0]))[-1]

    assert float(jax.grad(final)(0.5)) == pytest.approx(np.exp(0.5), rel=1e-6)
    # integers among the arguments have none
    def scaled(a):
        return odeint(lambda y, t, a, n: a * n * y, 1.0, jnp.array([0.0, 1.0]), a, 2)[-1]

    assert float(jax.grad(scaled)(0.25)) == pytest.approx(2 * np.exp(0.5), rel=1e-6)


def test_batches_and_limits():
    rates = jnp.array([0.1, -0.5, 1.0])
    got = jax.vmap(lambda a: odeint(lambda y, t: a * y, 1.0, jnp.asarray(T)))(rates)
    np.testing.assert_allclose(got, np.exp(rates[:, None] * T), rtol=1e-6)
    few = odeint(lambda y, t: -50.0 * y, 1.0, jnp.array([0.0, 1.0]), mxstep=2)
    assert np.isfinite(few).all()
    capped = odeint(lambda y, t: -y, 1.0, jnp.asarray(T), hmax=0.05)
    np.testing.assert_allclose(capped, np.exp(-T), rtol=1e-7)


@pytest.mark.parametrize("options", [
    {"t": np.array([1.0, 0.5])}, {"mxstep": 0}, {"rate": np.nan, "mxstep": 10}])
def test_times_that_are_not_reached(options):
    rate, t = options.pop("rate", 1.0), options.pop("t", T)
    got = odeint(lambda y, t: rate * y, 2.0, t, **options)
    assert got[0] == 2 and np.isnan(got[1:]).all()
    assert (odeint(lambda y, t: y, 2.0, np.zeros(2)) == 2).all()


def test_refuses():
    with pytest.raises(TypeError, match="must be arrays or scalars"):
        odeint(lambda y, t, s: y, 1.0, T, "a")
    with pytest.raises(TypeError, match="array of floats"):
        odeint(lambda y, t: y, 1.0, jnp.arange(3))
    with pytest.raises(TypeError, match="float or complex"):
        odeint(lambda y, t: y, jnp.arange(3), T)


@pytest.mark.parametrize("func", [lambda y, t: jnp.ones(3), lambda y, t: (y, y), lambda y, t: 1.0])
def test_derivatives_unlike_the_state_are_refused(func):
    with pytest.raises(TypeError, match=r"odeint: func must return .* of the shapes \[\(2,\)\]"):
        odeint(func, jnp.ones(2), jnp.arange(3.0))


def test_derivatives_may_lie_in_other_shapes():
    column = odeint(lambda y, t: -y[:, 0], jnp.ones((2, 1)), jnp.arange(2.0))
    np.testing.assert_allclose(column[1], np.full((2, 1), np.exp(-1)), rtol=1e-5)


def test_one_time_is_refused():
    with pytest.raises(TypeError, match="t must be a vector of times"):
        odeint(lambda y, t: -y, jnp.ones(2), 3.0)


def test_the_backward_pass_takes_numpy_arrays():
    def solve(y, t, k):
        return odeint(lambda y, t, k: -k * y, y, t, k)

    times = np.linspace(0.0, 1.0, 4)
    y, k = np.ones(1), np.float64(2)
    got = jax.vjp(solve, y, times, k)[1](np.ones((4, 1)))
    want = jax.vjp(solve, jnp.asarray(y), jnp.asarray(times), k)[1](jnp.ones((4, 1)))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
