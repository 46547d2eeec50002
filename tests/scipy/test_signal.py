"""Convolutions and spectra against SciPy's."""

import warnings

import numpy as np
import pytest
from scipy import signal as reference

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.scipy import signal

rng = np.random.default_rng(0)
DTYPES = [np.float32, np.complex64]


def array(shape, dtype=np.float32):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def close(got, want, tolerance=1e-4):
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("method", ["auto", "fft"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", [((7,), (4,)), ((3,), (6,)), ((6, 5), (2, 3)),
                                    ((4, 5, 3), (2, 2, 3))])
def test_convolutions(name, method, mode, dtype, shapes):
    x, y = (array(s, dtype) for s in shapes)
    want = getattr(reference, name)(x, y, mode)
    close(getattr(signal, name)(x, y, mode, method), want)


@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", [((6, 5), (2, 3)), ((6, 5), (4, 4)), ((2, 3), (5, 4))])
def test_convolutions_of_two_axes(name, mode, dtype, shapes):
    x, y = (array(s, dtype) for s in shapes)
    close(getattr(signal, name)(x, y, mode), getattr(reference, name)(x, y, mode))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("axes", [None, 0, np.int64(0), (1,), (-1, 0)])
def test_fftconvolve(mode, axes):
    x, y = array((6, 4)), array((3, 4) if axes == 0 else (6, 2) if axes == (1,) else (3, 2))
    close(signal.fftconvolve(x, y, mode, axes), reference.fftconvolve(x, y, mode, axes))


def test_convolutions_refuse():
    one, two = jnp.ones(3), jnp.ones((3, 3))
    for call, message in [
        (lambda: signal.convolve(two, one), "same number of dimensions"),
        (lambda: signal.convolve(one, one, "foo"), "mode must be one of"),
        (lambda: signal.convolve(one, one, method="foo"), "expected 'auto'"),
        (lambda: signal.convolve(one[:0], one), "zero-size"),
        (lambda: signal.convolve2d(one, one), "2-dimensional"),
        (lambda: signal.convolve(jnp.ones((3, 4)), jnp.ones((4, 3)), "valid"), "smaller"),
        (lambda: signal.fftconvolve(jnp.ones((3, 4)), jnp.ones((4, 3)), "valid"), "as large"),
        (lambda: signal.detrend(one, type="foo"), "Trend type"),
        (lambda: signal.detrend(one, bp=5), "Breakpoints"),
        (lambda: signal.welch(one, window=jnp.ones(9)), "longer than input"),
        (lambda: signal.welch(one, scaling="foo"), "Unknown scaling"),
        (lambda: signal.welch(one, nperseg=2, noverlap=2), "noverlap must be less"),
        (lambda: signal.stft(one, nperseg=2, boundary="foo"), "Unknown boundary"),
        (lambda: signal.istft(one), "at least 2d"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(NotImplementedError):
        signal.convolve2d(two, two, boundary="wrap")
    for name in ("convolve", "correlate", "convolve2d", "correlate2d", "fftconvolve", "csd",
                 "welch", "stft", "istft"):
        for given in ("abc", [1.0, 2.0]):
            args = (given,) if name in ("welch", "stft", "istft") else (given, given)
            with pytest.raises(TypeError, match=f"{name} requires ndarray or scalar arguments"):
                getattr(signal, name)(*args)


@pytest.mark.parametrize("kind", ["linear", "constant"])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("bp", [0, [0, 3], 4])
def test_detrend(kind, axis, bp):
    x = array((9, 11)) + np.arange(11, dtype=np.float32)
    close(signal.detrend(x, axis, kind, bp), reference.detrend(x, axis, kind, bp))


@pytest.mark.parametrize("options", [
    {}, {"nperseg": 16}, {"nperseg": 16, "noverlap": 5}, {"nperseg": 15, "nfft": 32},
    {"window": ("tukey", 0.3), "nperseg": 20}, {"detrend": "linear", "nperseg": 16},
    {"detrend": False, "nperseg": 16}, {"return_onesided": False, "nperseg": 16},
    {"scaling": "spectrum", "nperseg": 16}, {"average": "median", "nperseg": 16},
    {"fs": 10.0, "nperseg": 16}, {"axis": 0, "nperseg": 16},
])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore:Input data is complex")
def test_power_spectra(options, dtype):
    x, y = array((60, 300), dtype), array((60, 300), dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy warns of complex data
        # by default one segment, where SciPy takes 256 elements
        segments = {"nperseg": 300, **options}
        cross, own = reference.csd(x, y, **segments), reference.welch(x, **segments)
    for got, want in zip(signal.csd(x, y, **options), cross, strict=True):
        close(got, want)
    for got, want in zip(signal.welch(x, **options), own, strict=True):
        close(got, want)


@pytest.mark.parametrize("options", [
    {}, {"nperseg": 16}, {"nperseg": 16, "noverlap": 12}, {"nperseg": 15, "nfft": 32},
    {"boundary": "even", "nperseg": 16}, {"boundary": "odd", "nperseg": 16},
    {"boundary": "constant", "nperseg": 16}, {"boundary": None, "nperseg": 16},
    {"padded": False, "nperseg": 16}, {"return_onesided": False, "nperseg": 16},
    {"detrend": "constant", "nperseg": 16}, {"fs": 4.0, "nperseg": 16}, {"axis": 0, "nperseg": 16},
])
def test_short_time_transforms(options):
    x = array((70, 300))
    for got, want in zip(signal.stft(x, **options), reference.stft(x, **options), strict=True):
        close(got, want)


@pytest.mark.parametrize("options", [
    {"nperseg": 16}, {"nperseg": 16, "noverlap": 12}, {"window": "boxcar", "nperseg": 15},
    {"nperseg": 16, "noverlap": 5}, {"nperseg": 40, "noverlap": 38},
])
def test_short_time_transforms_are_inverted(options):
    x = array((3, 100))
    Z = reference.stft(x, **options)[2]
    t, got = signal.istft(Z, **options)
    want_t, want = reference.istft(Z[0], **options)
    close(t, want_t)
    close(got[0], want)
    close(got[:, :100], x)


def test_transformations():
    x, y = array(32), array(5)
    slope = jax.jit(jax.grad(lambda y: (signal.convolve(x, y, "same") ** 2).sum()))(y)
    by_fft = jax.grad(lambda y: (signal.fftconvolve(x, y, "same") ** 2).sum())(y)
    close(slope, by_fft, 1e-3)
    close(jax.vmap(lambda x: signal.convolve(x, y))(jnp.stack([x, 2 * x]))[1],
          2 * reference.convolve(x, y))
    close(jax.jit(lambda x: signal.welch(x, nperseg=8)[1])(x), reference.welch(x, nperseg=8)[1])


@pytest.mark.parametrize(("call", "parts"), [
    (lambda x: signal.csd(x, x), ()), (lambda x: signal.welch(x, average="median"), ()),
    (signal.stft, ()), (signal.istft, (9, 40)), (signal.detrend, ()),
], ids=["csd", "welch", "stft", "istft", "detrend"])
def test_eager_spectra_are_one_compiled_call(call, parts):
    x = jnp.ones(parts or 300, jnp.complex64 if parts else jnp.float32)
    call(x)
    jax.clear_caches()
    names = []

    def listen(name, _, **more):
        if "backend_compile" in name:
            names.append(more)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        call(x)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert len(names) == 1


def test_weak_types_of_what_is_left_of_trends():
    weak = jnp.broadcast_to(0.3, (2,))
    assert signal.detrend(weak).weak_type and not signal.detrend(jnp.ones(2)).weak_type


def test_lengths_of_segments_may_be_floats():
    x = np.arange(8, dtype=np.float32)
    for name, args in (("welch", (x,)), ("csd", (x, x)), ("stft", (x,))):
        function = getattr(jax.scipy.signal, name)
        for one, other in zip(function(*args, nperseg=4.5, noverlap=2.0),
                              function(*args, nperseg=4, noverlap=2), strict=True):
            np.testing.assert_array_equal(one, other)
        with pytest.raises(TypeError, match="nperseg must be a number, got '4'"):
            function(*args, nperseg="4")


@pytest.mark.parametrize(("shape", "axis"), [((0,), -1), ((2, 0), -1), ((2, 0), 0)])
def test_spectra_of_nothing(shape, axis):
    """They have the shape of the data, as in SciPy. JAX agrees but for csd of several signals: it
    gives other shapes there, or fails."""
    x = np.zeros(shape, np.float32)
    for name, args in (("welch", (x,)), ("csd", (x, x)), ("stft", (x,))):
        got = getattr(jax.scipy.signal, name)(*args, axis=axis)
        assert [a.shape for a in got] == [shape] * len(got)
        assert got[-1].dtype == (np.float32 if name == "welch" else np.complex64)


def test_lists_have_trends():
    assert np.allclose(jax.scipy.signal.detrend([1.0, 2.0, 4.0], type="constant"),
                       [-4 / 3, -1 / 3, 5 / 3])
    got = jax.scipy.ndimage.map_coordinates([[0.0, 1.0], [2.0, 3.0]], [[0, 1], [1, 1]], 1)
    assert got.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("scaling", ["density", "spectrum"])
def test_sampling_frequencies_of_other_dtypes_are_promoted_by_the_flag(scaling):
    x, options = jnp.arange(8.0), {"nperseg": 4, "scaling": scaling}
    calls = [lambda x, fs: signal.welch(x, fs, **options),
             lambda x, fs: signal.csd(x, x, fs, **options),
             lambda x, fs: signal.stft(x, fs, nperseg=4)]
    for call in calls:
        for fs in (jnp.float16(2), np.int32(2)):
            with jax.numpy_dtype_promotion("strict"):
                with pytest.raises(ValueError, match="promotion path"):
                    call(x, fs)
                call(x, 2)
                call(x, np.float32(2))
            assert call(x, fs)[0].dtype == "float32"


def test_a_function_that_detrends_promotes_as_the_user_has_it():
    with jax.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="promotion path"):
        signal.welch(jnp.ones(8), nperseg=4, detrend=lambda d: d + jnp.ones((), "int8"))


def test_what_is_changed_is_told():
    with pytest.warns(UserWarning, match="nperseg=256 is greater than input_length=20, using nper"):
        jax.scipy.signal.stft(jnp.ones(20))
    with pytest.warns(UserWarning, match="Input data is complex, switching to return_onesided=Fal"):
        jax.scipy.signal.welch(jnp.ones(20) + 1j, nperseg=8)


def test_spectra_of_short_signals_do_not_warn():
    x = jnp.asarray(np.random.default_rng(0).standard_normal(20), jnp.float32)
    for got in (signal.welch(x), signal.csd(x, x)):  # warnings are errors here
        assert got[0].shape == (11,)
    with pytest.warns(UserWarning, match="nperseg=32 is greater than input_length=20"):
        signal.welch(x, nperseg=32)


@pytest.mark.parametrize("size, noverlap", [(16, 8), (16, 5), (16, 15), (24, 23)])
def test_segments_are_slices(size, noverlap):
    """One index for each segment, not for each of its elements."""
    def transform(x):
        return signal.stft(x, nperseg=size, noverlap=noverlap)[2]

    assert f"slice_sizes=({size},)" in str(jax.make_jaxpr(transform)(jnp.ones(100)))


@pytest.mark.parametrize("density", [signal.welch, lambda x, **kw: signal.csd(x, x, **kw)])
def test_densities_are_averaged(density):
    with pytest.raises(ValueError, match='average must be "median" or "mean", got None'):
        density(jnp.ones(8), nperseg=4, average=None)
