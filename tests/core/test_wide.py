"""Arrays that were made while 64-bit types were on, used while they are off."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core.avals import get_aval
from pyjx.core.scalars import typed

# As in JAX, functions say that the type they were asked for is not there.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def arrays():
    with jax.enable_x64(True):
        return jnp.arange(6.0).reshape(2, 3) - 2.3, jnp.arange(6).reshape(2, 3)


FLOAT = {
    "exp2": np.exp2, "reciprocal": np.reciprocal, "tril": np.tril, "modf": lambda x: np.modf(x)[1],
    "logical_not": np.logical_not, "count_nonzero": np.count_nonzero, "trunc": np.trunc,
    "heaviside": lambda x: np.heaviside(x, x), "mean": np.mean, "nanmean": np.nanmean,
    "nansum": np.nansum, "diag": np.diag, "degrees": np.degrees, "nan_to_num": np.nan_to_num,
}


@pytest.mark.parametrize("name", FLOAT)
def test_constants_beside_float64(arrays, name):
    x = arrays[0]
    function = getattr(jnp, name)
    call = (lambda x: function(x, x)) if name == "heaviside" else function
    call = (lambda x: function(x)[1]) if name == "modf" else call
    for run in (call, jax.jit(call)):
        out = run(x)
        assert out.dtype in (np.float64, np.float32, np.bool_, np.int32)
        np.testing.assert_allclose(out, FLOAT[name](np.asarray(x)), rtol=1e-6)


def test_constants_beside_int64(arrays):
    i = arrays[1]
    n = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(jnp.gcd(i, i + 4), np.gcd(n, n + 4))
    assert jnp.floor_divide(i, i + 1).tolist() == [[0] * 3] * 2
    assert (i * np.int64(3)).tolist() == [[0, 3, 6], [9, 12, 15]]
    assert jax.random.key_data(jax.random.key(i[0, 2])).tolist() == [0, 2]


def test_functions_of_nn(arrays):
    x = arrays[0]
    for f, expected in ((jax.nn.relu, lambda x: np.maximum(x, 0)),
                        (jax.nn.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
                        (jax.nn.silu, lambda x: x / (1 + np.exp(-x)))):
        np.testing.assert_allclose(f(x), expected(np.asarray(x)), rtol=1e-6)


def test_scalars_of_the_user_are_narrowed():
    assert get_aval(np.float64(1)).dtype == np.float32
    assert (jnp.ones(2) * np.float64(2)).dtype == np.float32
    assert get_aval(typed(np.float64(1))).dtype == np.float64
    assert type(typed(np.float32(1))) is np.float32
    with jax.enable_x64(True):
        assert type(typed(np.float64(1))) is np.float64


@pytest.mark.parametrize("name", ["sum", "prod", "max", "mean", "var", "std", "cumsum"])
def test_reductions_have_the_types_there_are(arrays, name):
    for x in arrays:
        call = getattr(jnp, name)
        want = getattr(np, name)(np.asarray(x))
        for run in (call, jax.jit(call)):
            out = run(x)
            assert out.dtype in (np.float32, np.int32)
            np.testing.assert_allclose(out, want, rtol=1e-5)


def test_weakly_typed_scalars_of_either_width():
    for x64 in (False, True):
        with jax.enable_x64(x64):
            for dtype in ("float32", "float64", "int32", "int64", "complex64", "complex128"):
                aval = get_aval(typed(np.dtype(dtype).type(2), True))
                assert (aval.dtype, aval.weak_type) == (np.dtype(dtype), True)


def test_weak_types_of_narrow_arrays_where_64_bit_types_are_on():
    weak = jnp.asarray(3.0)
    with jax.enable_x64(True):
        for f in (lambda x: x * 2, lambda x: 2 / x):
            for run in (f, jax.jit(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f)),
                        lambda x, f=f: jax.vmap(f)(x[None])):
                out = run(weak)
                assert (out.dtype, out.weak_type) == (np.float32, True)


def test_scalars_keep_their_types_in_many_calls(arrays):
    scalars = [typed(np.float64(2)), typed(np.float64(2), True)]
    for scalar in scalars:
        for f in (jax.lax.mul_p.bind, jax.jit(lambda x, y: x * y)):
            assert {f(arrays[0], scalar).dtype for _ in range(20)} == {np.dtype(np.float64)}
    for x in (np.float32(2), *scalars):
        assert {jax.lax.neg_p.bind(x).dtype for _ in range(20)} == {get_aval(x).dtype}
