"""Every function of the tables compiled, mapped along each axis, and differentiated both ways."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.sweeps.functions import EVERY, sample

pytestmark = pytest.mark.slow
# Where an argument is read, not computed with, or a derivative is nowhere continuous.
NO_DERIVATIVE = (
    "floor", "ceil", "trunc", "rint", "sign", "spacing", "nextafter", "copysign", "heaviside",
    "floor_divide", "remainder", "fmod", "nan_to_num",
)
SHAPE = (2, 3, 4)


def called(function, axis):
    call = getattr(jax.scipy.special if function.special else jnp, function.name)
    return (lambda *xs: call(*xs, axis=axis)) if function.axis else call


def dtypes_of(function):
    return [t for t in ("int32", "float32", "complex64") if t in function.dtypes]


def close(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    if got.dtype.kind in "fc":
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("function", EVERY, ids=[f"{f.name}-{f.dtypes[-1]}" for f in EVERY])
def test_compiled_and_mapped(function):
    for dtype in dtypes_of(function):
        xs = [sample(dtype, SHAPE, function, i, False) for i in range(function.arity)]
        for axis in range(len(SHAPE) - 1) if function.axis else [None]:
            call = called(function, axis)
            compiled = jax.jit(call)
            close(compiled(*xs), call(*xs))
            for mapped, size in enumerate(SHAPE):
                parts = [np.asarray(compiled(*[np.take(x, i, mapped) for x in xs]))
                         for i in range(size)]
                out = parts[0].ndim
                got = jax.jit(jax.vmap(call, mapped, out))(*xs)
                close(got, np.stack(parts, out))
        if function.arity == 2:
            call = called(function, None)
            pairs = jax.vmap(call, in_axes=(None, 0))(xs[0][0], xs[1])
            close(pairs, np.stack([call(xs[0][0], y) for y in xs[1]]))


@pytest.mark.parametrize("function", EVERY, ids=[f"{f.name}-{f.dtypes[-1]}" for f in EVERY])
def test_derivatives(function):
    if "float32" not in function.dtypes or function.name in NO_DERIVATIVE:
        return
    with jax.enable_x64(True):
        xs = [jnp.asarray(sample("float64", (2, 3), function, i, False))
              for i in range(function.arity)]
        call = called(function, 1)
        if not jnp.issubdtype(jax.eval_shape(call, *xs).dtype, jnp.inexact):
            return
        for place in range(function.arity):
            if function.name in ("gammainc", "gammaincc", "kl_div") and not place:
                continue  # their derivative in the parameter has tests of its own

            def along(x, place=place):
                return call(*xs[:place], x, *xs[place + 1:])

            x = xs[place]
            step = jnp.asarray(np.random.default_rng(place).normal(size=x.shape))
            value, slope = jax.jvp(along, (x,), (step,))
            if not np.isfinite(value).all():
                continue  # outside of the domain
            h = 1e-6
            near = (along(x + h * step) - along(x - h * step)) / (2 * h)
            np.testing.assert_allclose(slope, near, rtol=1e-5, atol=1e-5)
            weights = jnp.asarray(np.random.default_rng(9).normal(size=value.shape))
            gradient = jax.grad(lambda x, f=along, w=weights: jnp.sum(w * f(x)))(x)
            np.testing.assert_allclose(jnp.sum(gradient * step), jnp.sum(weights * slope),
                                       rtol=1e-8, atol=1e-8)
            mapped = jax.jit(jax.vmap(lambda x, s, f=along: jax.jvp(f, (x,), (s,))[1],
                                      in_axes=(None, 0)))(x, jnp.stack([step, 2 * step]))
            np.testing.assert_allclose(mapped[1], 2 * slope, rtol=1e-8, atol=1e-10)
