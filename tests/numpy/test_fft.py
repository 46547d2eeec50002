"""Fourier and cosine transforms against NumPy's and SciPy's."""

import itertools

import numpy as np
import pytest
import scipy.fft

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax

rng = np.random.default_rng(0)


def sample(shape, dtype):
    if np.dtype(dtype).kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return (4 * rng.standard_normal(shape)).astype(dtype)


def close(got, want):
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
TWO = ["fft2", "ifft2", "rfft2", "irfft2"]
MANY = ["fftn", "ifftn", "rfftn", "irfftn"]


def real_only(name):
    return name.startswith("rfft") or name == "ihfft"


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32", "uint8"])
@pytest.mark.parametrize("name", ONE)
def test_along_an_axis(name, dtype):
    if real_only(name) and dtype == "complex64":
        with pytest.raises(ValueError, match="only real valued inputs supported for rfft"):
            getattr(jnp.fft, name)(jnp.ones(3, dtype))
        return
    x = sample((3, 4, 5), dtype)
    cases = [(None, -1, None), (1, -1, "backward"), (3, 0, "ortho"), (6, 1, "forward"),
             (3, -2, "forward")]
    for n, axis, norm in cases:
        got = getattr(jnp.fft, name)(x, n=n, axis=axis, norm=norm)
        close(got, getattr(np.fft, name)(x, n=n, axis=axis, norm=norm))
        assert got.dtype == ("float32" if name in ("irfft", "hfft") else "complex64")
        assert not got.weak_type


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_along_all_axes(name):
    x = sample((3, 4, 5), "float32")
    close(getattr(jnp.fft, name)(x, axis=None), getattr(np.fft, f"{name}n")(x))
    close(getattr(jnp.fft, name)(x, n=6, axis=None), getattr(np.fft, name)(x, n=6))


@pytest.mark.parametrize("name", ["hfft", "ihfft"])
def test_hermitian_transforms_are_along_one_axis(name):
    x = sample((3, 4, 5), "float32")
    with pytest.raises(TypeError, match=f"{name} needs an axis"):
        getattr(jnp.fft, name)(x, axis=None)
    close(getattr(jnp.fft, name)(x, n=6, axis=None), getattr(np.fft, name)(x, n=6))


@pytest.mark.parametrize("name", [*TWO, *MANY])
def test_along_axes(name):
    x = sample((2, 3, 4, 5), "float32" if real_only(name) else "complex64")
    cases = [{}, {"axes": (0, 2)}, {"axes": (2, 1)}, {"s": (3, 6), "axes": (-1, 0)},
             {"s": [2, 4], "axes": [1, 3], "norm": "ortho"}, {"norm": "forward"}]
    if name in MANY:
        cases += [{"axes": (1,)}, {"axes": (3, 0, 2), "norm": "ortho"},
                  {"axes": (3, 2, 1, 0), "s": (4, 3, 2, 6)}, {"axes": (3, 2, 1, 0)}]
    for options in cases:
        close(getattr(jnp.fft, name)(x, **options), getattr(np.fft, name)(x, **options))
    if name in MANY:  # NumPy will give another meaning to `s` without `axes`
        close(getattr(jnp.fft, name)(x, s=(2, 3)), getattr(np.fft, name)(x, (2, 3), (2, 3)))


@pytest.mark.parametrize("rank", [4, 5, 6, 7])
@pytest.mark.parametrize("name", MANY)
def test_along_more_axes_than_xla_transforms_at_once(name, rank):
    x = sample((2, 3, 2, 3, 2, 1, 2)[:rank], "float32" if real_only(name) else "complex64")
    s = (*x.shape[:-1], 3)
    axes = tuple(range(rank))
    close(getattr(jnp.fft, name)(x, s=s), getattr(np.fft, name)(x, s, axes))


def test_64_bits():
    with jax.enable_x64(True):
        x = sample((4, 6), "float64")
        for name in ONE:
            got = getattr(jnp.fft, name)(x)
            np.testing.assert_allclose(got, getattr(np.fft, name)(x), rtol=1e-12, atol=1e-12)
            assert got.dtype.itemsize in (8, 16)


def test_zero_sized():
    assert jnp.fft.fft(jnp.zeros(0)).shape == (0,)
    assert jnp.fft.fftn(jnp.zeros((0, 3)), axes=(1,)).shape == (0, 3)
    assert jnp.fft.irfft(jnp.ones(1)).shape == (0,)
    assert jnp.fft.rfft(jnp.zeros((2, 0)), n=4).tolist() == [[0, 0, 0]] * 2
    assert jnp.fft.fftn(jnp.float32(2)).item() == 2
    assert jnp.fft.fftn(jnp.ones((2, 2)), axes=()).dtype == "complex64"


@pytest.mark.parametrize("name", [*ONE, *MANY])
def test_transformed(name):
    fun = getattr(jnp.fft, name)
    x = sample((3, 4, 5), "float32" if real_only(name) else "complex64")
    want = fun(x)
    close(jax.jit(fun)(x), np.asarray(want))
    for d in range(3):
        batched = jax.vmap(fun, in_axes=d, out_axes=1)(np.stack([x, 2 * x], d)
                                                        if d else np.stack([x, 2 * x]))
        close(batched, np.stack([want, 2 * want], 1))

    def energy(x):
        return jnp.sum(jnp.abs(fun(x)) ** 2) + jnp.sum(jnp.real(fun(x)))

    gradient = np.asarray(jax.grad(energy)(x))
    step = sample(x.shape, x.dtype)
    h = 1e-2
    slope = (energy(x + h * step) - energy(x - h * step)) / (2 * h)
    np.testing.assert_allclose(np.sum(np.real(gradient * step)), slope, rtol=1e-2)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_transposes_are_the_matrices_transposed(n):
    """Of linear maps between real vectors, parts of complex numbers side by side."""
    m = n // 2 + 1

    def forward(x):
        y = jnp.fft.rfft(x)
        return jnp.concatenate([jnp.real(y), jnp.imag(y)])

    def backward(parts):
        return jnp.fft.irfft(lax.complex(parts[:m], parts[m:]), n)

    for fun, size in ((forward, n), (backward, 2 * m)):
        x = np.zeros(size, np.float32)
        close(jax.jacrev(fun)(x), np.asarray(jax.jacfwd(fun)(x)))


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: lax.fft(jnp.ones(3), "foo", (3,)), ValueError, "Unknown FFT type 'foo'"),
    (lambda: lax.fft(jnp.ones(3), 4, (3,)), TypeError, "Unknown FFT type value '4'"),
    (lambda: lax.fft(jnp.ones(3), "rfft", (2,)), ValueError,
     r"RFFT input shape \(3,\) minor dimensions must be equal to fft_lengths \(2,\)"),
    (lambda: lax.fft(jnp.ones(3), "fft", (3, 3)), ValueError,
     "must have at least as many input dimensions as fft_lengths"),
    (lambda: lax.fft(jnp.ones((2, 3)), "irfft", (3, 4)), ValueError,
     "minor dimensions must be equal to all except the last fft_length"),
    (lambda: lax.fft(jnp.ones(3), "irfft", (3,)), ValueError, "half of it plus one"),
    (lambda: lax.fft(jnp.ones((1,) * 4), "fft", (1,) * 4), ValueError, "one to 3 axes"),
    (lambda: lax.fft(jnp.ones(3, "float16"), "rfft", (3,)), ValueError,
     "RFFT input must be float32 or float64, got float16"),
    (lambda: jnp.fft.fft(jnp.ones(3), norm="a"), ValueError, "Invalid norm value a"),
    (lambda: jnp.fft.hfft(jnp.ones(3), norm="a"), ValueError, "Invalid norm value a"),
    (lambda: jnp.fft.fft(jnp.ones(3), axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda: jnp.fft.fft(jnp.ones(3), axis=(0,)), ValueError,
     r"jax.numpy.fft.fft does not support multiple axes. Please use jax.numpy.fft.fftn"),
    (lambda: jnp.fft.fftn(jnp.ones(3), axes=(0, 0)), ValueError,
     r"jax.numpy.fft.fftn does not support repeated axes. Got axes \(0, 0\)\."),
    (lambda: jnp.fft.fftn(jnp.ones(3), s=(1, 2), axes=(0,)), ValueError,
     "Shape and axes have different lengths"),
    (lambda: jnp.fft.fftn(jnp.ones(3), s=(1, 2)), ValueError, "s has 2 lengths, the array 1 axes"),
    (lambda: jnp.fft.fft(jnp.ones(3), n=0), ValueError, "Shape should be positive"),
    (lambda: jnp.fft.fft2(jnp.ones((3, 3)), axes=(0,)), ValueError,
     "jax.numpy.fft.fft2 only supports 2 axes"),
    (lambda: jnp.fft.fft([1, 2]), TypeError,
     "jax.numpy.fft.fft requires ndarray or scalar arguments, got <class 'list'>"),
    (lambda: jnp.fft.fftfreq([3]), ValueError, "only takes an int"),
    (lambda: jnp.fft.rfftfreq(3, d=[1]), ValueError, "only takes a single value"),
    (lambda: jax.scipy.fft.dct(jnp.ones(3), type=3), NotImplementedError, "Only DCT type 2"),
    (lambda: jax.scipy.fft.idct(jnp.ones(3), norm="a"), ValueError,
     "jax.scipy.fft.idct: norm='a' is not implemented"),
    (lambda: jax.scipy.fft.dct(jnp.ones(0)), ValueError, "must be positive"),
    (lambda: jax.scipy.fft.dctn(jnp.ones((2, 2)), axes=(0, 0)), ValueError, "repeated axis"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n):
    close(jnp.fft.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5))
    close(jnp.fft.rfftfreq(n, jnp.float32(2)), np.fft.rfftfreq(n, 2))
    assert jnp.fft.fftfreq(n, dtype="bfloat16").dtype == jnp.bfloat16
    device = jax.devices()[0]
    assert jnp.fft.rfftfreq(n, device=device).devices() == {device}
    x = sample((n, 3, 4), "int32")
    for axes in (None, 0, (1, 2), [-1]):
        assert np.array_equal(jnp.fft.fftshift(x, axes), np.fft.fftshift(x, axes))
        assert np.array_equal(jnp.fft.ifftshift(x, axes), np.fft.ifftshift(x, axes))


@pytest.mark.parametrize("d", [0.5, 2, jnp.bfloat16(2), jnp.float32(2)], ids=repr)
def test_frequencies_are_of_the_dtype_of_floats(d):
    for frequencies in (jnp.fft.fftfreq, jnp.fft.rfftfreq):
        got = frequencies(6, d)
        assert got.dtype == jnp.float32 and not got.weak_type


@pytest.mark.parametrize("d", [2, np.int8(2), np.float32(2), np.float64(2)], ids=repr)
def test_intervals_that_are_known_stay_numbers(d):
    def program(d):
        return str(jax.make_jaxpr(lambda: jnp.fft.fftfreq(8, d))())

    assert program(d) == program(2.0)


def test_frequencies_are_differentiable_in_the_interval():
    assert jax.grad(lambda d: jnp.fft.fftfreq(4, d)[1])(0.5) == -1.0


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32", "float16"])
@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
def test_cosine_transforms(name, dtype):
    x = sample((3, 4, 5), dtype)
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    if name.endswith("n"):
        cases = [{}, {"axes": (0,)}, {"s": (2, 6)}, {"s": [4], "axes": [1]}, {"axes": (2, 0)},
                 {"axes": np.int64(0)}]
    else:
        cases = [{"n": n, "axis": axis}
                 for n, axis in ((None, -1), (1, 0), (2, 1), (3, -1), (7, 1))]
    for options, norm in itertools.product(cases, (None, "ortho")):
        got = getattr(jax.scipy.fft, name)(x, norm=norm, **options)
        close(got, getattr(scipy.fft, name)(wide, norm=norm, **options))
        assert got.dtype == ("complex64" if dtype == "complex64" else "float32")


@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
def test_cosine_transforms_transformed(name):
    fun = getattr(jax.scipy.fft, name)
    x = sample((3, 4), "float32")
    close(jax.jit(fun)(x), np.asarray(fun(x)))
    if not name.endswith("n"):
        close(jax.vmap(fun, in_axes=1, out_axes=1)(x), np.asarray(fun(x, axis=0)))
    close(jax.jacrev(fun)(x), np.asarray(jax.jacfwd(fun)(x)))
