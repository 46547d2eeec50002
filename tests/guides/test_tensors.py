"""A guide to tensors: filters of an image, arrays and devices, what differs from NumPy."""

import copy
import pickle

import numpy as np
import pytest
import scipy.signal

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.scipy.signal import convolve2d

IMAGE = np.random.default_rng(0).integers(0, 256, (67, 50, 3), dtype=np.uint8)


def gaussian(size, sigma=1.0, mu=0.0):
    reach = size // 2
    x, y = jnp.mgrid[-reach:size - reach, -reach:size - reach]
    distance = jnp.sqrt(jnp.square(x) + jnp.square(y))
    scale = 1 / (2 * jnp.pi * jnp.square(sigma))
    return scale * jnp.exp(-jnp.square(distance - mu) / (2 * jnp.square(sigma)))


def sharpening():
    kernel = jnp.array(np.where(np.arange(25).reshape(5, 5) == 12, 50, -1), dtype=jnp.float32)
    return kernel / jnp.sum(kernel)


def blurring():
    kernel = jnp.ones((5, 5))
    kernel /= jnp.sum(kernel)
    return kernel


def filtered(image, kernel):
    channels = [jnp.clip(convolve2d(image[:, :, i], kernel, mode="same"), 0.0, 1.0)
                for i in range(3)]
    return jnp.stack(channels, axis=2)


def test_images_are_arrays():
    img = jnp.array(IMAGE)
    assert (img.ndim, img.shape, img.dtype) == (3, (67, 50, 3), np.dtype("uint8"))
    assert img.size == img.nbytes == 67 * 50 * 3
    assert img.astype(jnp.float32).nbytes == 4 * img.nbytes
    face = img[8:22, 19:33, 1]
    assert face.shape == (14, 14)
    np.testing.assert_array_equal(face, IMAGE[8:22, 19:33, 1])
    np.testing.assert_array_equal(img[:, ::-1, :], jnp.flip(img, 1))
    np.testing.assert_array_equal(jnp.rot90(img, k=2, axes=(0, 1)), IMAGE[::-1, ::-1])


def test_kernels():
    assert repr(blurring()) == "\n".join(
        ["Array([[0.04, 0.04, 0.04, 0.04, 0.04],", *["       [0.04, 0.04, 0.04, 0.04, 0.04],"] * 3,
         "       [0.04, 0.04, 0.04, 0.04, 0.04]], dtype=float32)"])
    quarter = [[0.00291502, 0.01306424, 0.02153928], [0.01306424, 0.05854984, 0.09653235],
               [0.02153928, 0.09653235, 0.15915494]]
    want = np.pad(quarter, ((0, 2), (0, 2)), mode="reflect")
    np.testing.assert_allclose(gaussian(5), want, atol=2e-8)
    assert gaussian(5).dtype == "float32"
    assert str(sharpening()[2]) == "[-0.03846154 -0.03846154  1.923077   -0.03846154 -0.03846154]"


@pytest.mark.parametrize("make", [blurring, lambda: gaussian(5), sharpening],
                         ids=["mean", "gaussian", "sharpening"])
def test_filters(make):
    image = jnp.array(IMAGE) / jnp.float32(255)
    noisy = jnp.clip(image + 0.1 * jax.random.normal(jax.random.key(0), image.shape), 0, 1)
    kernel = make()
    got = filtered(noisy, kernel)
    want = np.stack([np.clip(scipy.signal.convolve2d(np.asarray(noisy)[:, :, i], kernel, "same"),
                             0, 1) for i in range(3)], axis=2)
    assert (got.shape, got.dtype) == (image.shape, "float32")
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_lists_are_no_arrays():
    assert repr(jnp.array([1, 42, 31337])) == "Array([    1,    42, 31337], dtype=int32)"
    with pytest.raises(TypeError, match=(
            r"^sum requires ndarray or scalar arguments, got <class 'list'> at position 0\.")):
        jnp.sum([1, 42, 31337])
    assert repr(jnp.sum(jnp.array([1, 42, 31337]))) == "Array(31380, dtype=int32)"


def test_attributes():
    arr = jnp.array([1, 42, 31337])
    assert (arr.ndim, arr.shape, arr.dtype, arr.size, arr.nbytes) == (1, (3,), "int32", 3, 12)
    for other in (copy.copy(arr), copy.deepcopy(arr), pickle.loads(pickle.dumps(arr))):
        assert type(other) is type(arr) and other.devices() == arr.devices()
        np.testing.assert_array_equal(other, arr)


def test_devices():
    first = jax.devices()[0]
    assert first in jax.local_devices() and first.process_index == jax.process_index() == 0
    assert jax.device_count() == len(jax.devices()) and jax.local_device_count() >= 1
    arr = jnp.array([1, 42, 31337])
    assert arr.devices() == {first} and not arr.committed
    cpu = jax.devices("cpu")[0]
    put = jax.device_put(arr, cpu)
    assert put.devices() == {cpu} and put.committed
    assert repr(arr + put) == "Array([    2,    84, 62674], dtype=int32)"
    assert (arr + put).committed
    host = jax.device_get(put)
    assert type(host) is np.ndarray
    assert repr(host) == "array([    1,    42, 31337], dtype=int32)"
    with jax.default_device(cpu):
        assert jnp.ones(2).devices() == {cpu}


def test_results_come_later():
    a = jnp.array(range(10000)).reshape((100, 100))
    product = jnp.dot(a, a)
    assert product.block_until_ready() is product
    integers = np.asarray(a, np.int64)
    np.testing.assert_array_equal(product, (integers @ integers).astype(np.int32))


def test_updates_of_elements():
    a = jnp.array(range(10))
    with pytest.raises(TypeError, match="immutable"):
        a[5] = 100
    assert repr(a[5]) == "Array(5, dtype=int32)"
    assert repr(a.at[5].set(100)[5]) == "Array(100, dtype=int32)"


def test_indices_out_of_bounds():
    a = jnp.array(range(10))
    assert repr(a[42]) == "Array(9, dtype=int32)"
    assert repr(a.at[42].get(mode="drop")) == "Array(-2147483648, dtype=int32)"
    assert repr(a.at[42].get(mode="fill", fill_value=-1)) == "Array(-1, dtype=int32)"
    assert repr(a.at[42].set(100)) == "Array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], dtype=int32)"
    assert repr(a.at[42].set(100, mode="clip")) == (
        "Array([  0,   1,   2,   3,   4,   5,   6,   7,   8, 100], dtype=int32)")


def test_floats_of_every_width():
    assert jnp.array(range(10), dtype=jnp.float32).dtype == np.dtype("float32")
    with jax.enable_x64(True):
        assert jnp.array(range(10), dtype=jnp.float64).dtype == np.dtype("float64")
    brain = jnp.array(range(10), dtype=jnp.bfloat16)
    half = jnp.array(range(10), dtype=jnp.float16)
    assert str(brain.dtype) == "bfloat16" and brain.nbytes == 20
    assert half.dtype == np.dtype("float16")
    assert repr(brain + half) == (
        "Array([ 0.,  2.,  4.,  6.,  8., 10., 12., 14., 16., 18.], dtype=float32)")
    assert repr(brain + brain) == (
        "Array([0, 2, 4, 6, 8, 10, 12, 14, 16, 18], dtype=bfloat16)")


def test_a_random_augmentation():
    augmentations = [lambda x: x + 0.5, lambda x: x[:, ::-1], lambda x: jnp.rot90(x, 2),
                     lambda x: x * 0.5]
    image = jnp.array(IMAGE[:50, :50], jnp.float32)

    @jax.jit
    def augmented(image, key):
        index = jax.random.randint(key=key, minval=0, maxval=len(augmentations), shape=())
        return index, lax.switch(index, augmentations, image)

    seen = set()
    for seed in range(12):
        index, got = augmented(image, jax.random.key(seed))
        seen.add(int(index))
        np.testing.assert_allclose(got, augmentations[int(index)](image))
    assert seen == {0, 1, 2, 3}


def test_the_stricter_layer():
    assert repr(jnp.add(42, 42.0)) == "Array(84., dtype=float32, weak_type=True)"
    assert repr(jnp.add(42.0, 42.0)) == "Array(84., dtype=float32, weak_type=True)"
    with pytest.raises(TypeError, match="requires arguments to have the same dtypes"):
        lax.add(42, 42.0)
    assert repr(lax.add(jnp.float32(42), 42.0)) == "Array(84., dtype=float32)"
