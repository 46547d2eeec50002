"""A guide to convolutions: smoothing, edges, layouts, strides, dilations, in one to three axes."""

import numpy as np
import pytest
import scipy.signal

import pyjx as jax
import pyjx.numpy as jnp
import pyjx.scipy as jsp
from pyjx import lax

EDGES = np.array([[1, 1, 0], [1, 0, -1], [0, -1, -1]], np.float32)


def squares():
    """An image in layout NHWC: a white square in each channel, further down in the next one."""
    img = jnp.zeros((1, 200, 198, 3), dtype=jnp.float32)
    for channel in range(3):
        top, left = 30 + 60 * channel, 20 + 60 * channel
        img = img.at[0, top:top + 10, left:left + 10, channel].set(1.0)
    return img


def edge_kernel():
    kernel = jnp.zeros((3, 3, 3, 3), dtype=jnp.float32)  # HWIO
    return kernel + jnp.array(EDGES)[:, :, jnp.newaxis, jnp.newaxis]


def test_smoothing_a_curve():
    x = jnp.linspace(0, 10, 500)
    y = jnp.sin(x) + 0.2 * jax.random.normal(jax.random.key(1701), shape=(500,))
    smooth = jnp.convolve(y, jnp.ones(10) / 10, mode="same")
    assert smooth.shape == (500,)
    np.testing.assert_allclose(smooth[:4], [-0.02516865, 0.01971048, 0.00071032, -0.00698213],
                               rtol=1e-3)
    np.testing.assert_allclose(smooth, np.convolve(y, np.ones(10) / 10, mode="same"), atol=1e-6)


def test_smoothing_an_image():
    image = jnp.array(np.add.outer(np.arange(40.0), np.arange(30.0)))
    noisy = image + 50 * jax.random.normal(jax.random.key(1701), image.shape)
    x = jnp.linspace(-3, 3, 7)
    window = jsp.stats.norm.pdf(x) * jsp.stats.norm.pdf(x[:, None])
    smooth = jsp.signal.convolve(noisy, window, mode="same")
    np.testing.assert_allclose(noisy[0, :3], [-32.362057, 16.782055, -35.45524], rtol=1e-5)
    want = scipy.signal.convolve(np.asarray(noisy), np.asarray(window), mode="same")
    np.testing.assert_allclose(smooth, want, rtol=1e-4, atol=1e-4)
    assert float(jnp.std(smooth - image)) < float(jnp.std(noisy - image)) / 2


@pytest.mark.parametrize(("call", "shape"), [
    (lambda x, k: lax.conv(x, jnp.transpose(k, [3, 2, 0, 1]), (1, 1), "SAME"), (1, 3, 200, 198)),
    (lambda x, k: lax.conv_with_general_padding(
        x, jnp.transpose(k, [2, 3, 0, 1]), (1, 1), ((2, 2), (2, 2)), (1, 1), (1, 1)),
     (1, 3, 202, 200)),
], ids=["conv", "conv_with_general_padding"])
def test_the_simple_functions(call, shape):
    out = call(jnp.transpose(squares(), [0, 3, 1, 2]), edge_kernel())
    assert out.shape == shape
    mode = "same" if shape[2] == 200 else "full"
    want = scipy.signal.correlate2d(np.asarray(squares()).sum(-1)[0], EDGES, mode=mode)
    np.testing.assert_allclose(out[0, 0], want, atol=1e-4)


def rotated(kernel):
    return jnp.rot90(jnp.rot90(kernel, axes=(0, 1)), axes=(0, 1))


@pytest.mark.parametrize(("turn", "strides", "padding", "lhs", "rhs", "shape", "total"), [
    (False, (1, 1), "SAME", (1, 1), (1, 1), (1, 200, 198, 3), 1332),
    (False, (1, 1), "VALID", (1, 1), (1, 1), (1, 198, 196, 3), 1332),
    (False, (2, 2), "SAME", (1, 1), (1, 1), (1, 100, 99, 3), 342),
    (False, (1, 1), "VALID", (1, 1), (12, 12), (1, 176, 174, 3), 5160),
    (False, (1, 1), ((0, 0), (0, 0)), (2, 2), (1, 1), (1, 397, 393, 3), 702),
    (True, (1, 1), ((2, 1), (2, 1)), (2, 2), (1, 1), (1, 400, 396, 3), 702),
], ids=["same", "valid", "strides", "dilated kernel", "dilated image", "transposed"])
def test_the_general_function(turn, strides, padding, lhs, rhs, shape, total):
    img, kernel = squares(), edge_kernel()
    numbers = lax.conv_dimension_numbers(img.shape, kernel.shape, ("NHWC", "HWIO", "NHWC"))
    out = lax.conv_general_dilated(img, rotated(kernel) if turn else kernel, strides, padding,
                                   lhs, rhs, numbers)
    assert out.shape == shape
    assert float(jnp.abs(out).sum()) == total
    np.testing.assert_array_equal(out[..., 0], out[..., 2])


def test_the_transposed_convolution_is_the_gradient():
    img, kernel = squares()[:, ::2, ::2], edge_kernel()
    numbers = ("NHWC", "HWIO", "NHWC")

    def strided(x):
        return lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=numbers)

    _, pull = jax.vjp(strided, jnp.zeros((1, 200, 198, 3)))
    # Backwards, the two roles of the channels are exchanged.
    turned = jnp.swapaxes(rotated(kernel), 2, 3)
    want = lax.conv_general_dilated(img, turned, (1, 1), ((2, 1), (2, 1)), (2, 2),
                                    dimension_numbers=numbers)
    np.testing.assert_allclose(pull(img)[0], want, atol=1e-5)


def test_dimension_numbers():
    numbers = lax.conv_dimension_numbers((1, 200, 198, 3), (3, 3, 3, 3), ("NHWC", "HWIO", "NHWC"))
    assert str(numbers) == ("ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), "
                            "out_spec=(0, 3, 1, 2))")


def test_one_axis():
    kernel = jnp.array([[[1, 0, -1], [-1, 0, 1]], [[1, 1, 1], [-1, -1, -1]]],
                       dtype=jnp.float32).transpose([2, 1, 0])  # WIO
    data = np.zeros((1, 200, 2), np.float32)
    for channel in range(2):
        for pulse in range(2):
            start = 35 * channel + 30 + 60 * pulse
            data[0, start:start + 30, pulse] = 1.0
    assert (data.shape, kernel.shape) == ((1, 200, 2), (3, 2, 2))
    numbers = lax.conv_dimension_numbers(data.shape, kernel.shape, ("NWC", "WIO", "NWC"))
    assert str(numbers) == ("ConvDimensionNumbers(lhs_spec=(0, 2, 1), rhs_spec=(2, 1, 0), "
                            "out_spec=(0, 2, 1))")
    out = lax.conv_general_dilated(data, kernel, (1,), "SAME", (1,), (1,), numbers)
    assert out.shape == (1, 200, 2)
    want = sum(np.correlate(data[0, :, i], np.asarray(kernel)[:, i, 0], "same") for i in range(2))
    np.testing.assert_allclose(out[0, :, 0], want, atol=1e-6)


def test_three_axes():
    kernel = jnp.array([[[0, 0, 0], [0, 1, 0], [0, 0, 0]],
                        [[0, -1, 0], [-1, 0, -1], [0, -1, 0]],
                        [[0, 0, 0], [0, 1, 0], [0, 0, 0]]],
                       dtype=jnp.float32)[:, :, :, jnp.newaxis, jnp.newaxis]  # HWDIO
    data = jnp.zeros((1, 30, 30, 30, 1), dtype=jnp.float32)  # NHWDC
    x, y, z = np.mgrid[0:1:30j, 0:1:30j, 0:1:30j]
    wave = jnp.sin(2 * x * jnp.pi) * jnp.cos(2 * y * jnp.pi) * jnp.cos(2 * z * jnp.pi)
    data += wave[None, :, :, :, None]
    assert (data.shape, data.dtype, kernel.shape) == ((1, 30, 30, 30, 1), "float32",
                                                      (3, 3, 3, 1, 1))
    numbers = lax.conv_dimension_numbers(data.shape, kernel.shape, ("NHWDC", "HWDIO", "NHWDC"))
    assert str(numbers) == ("ConvDimensionNumbers(lhs_spec=(0, 4, 1, 2, 3), "
                            "rhs_spec=(4, 3, 0, 1, 2), out_spec=(0, 4, 1, 2, 3))")
    out = lax.conv_general_dilated(data, kernel, (1, 1, 1), "SAME", (1, 1, 1), (1, 1, 1), numbers)
    assert out.shape == (1, 30, 30, 30, 1)
    want = scipy.signal.correlate(np.asarray(data)[0, ..., 0], np.asarray(kernel)[..., 0, 0],
                                  mode="same")
    np.testing.assert_allclose(out[0, ..., 0], want, atol=1e-4)
