# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Working with tensors
#
# We clean a noisy photograph, first with NumPy, then with pyjx, then on whatever accelerator there
# is. On the way: where arrays lie, why calls return at once, what differs from NumPy, and the
# stricter layer below.

# %%
import copy
import pickle
from functools import partial
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import convolve2d
from skimage.data import chelsea
from skimage.io import imread, imsave
from skimage.util import img_as_float32, img_as_ubyte, random_noise

# %% [markdown]
# ## An image is an array
# scikit-image brings a photograph of a cat. `imread("your_own.jpg")` gives such an array, too.

# %%
img = chelsea()
print(type(img).__name__, img.ndim, img.shape, img.dtype)
print(img.size, img.nbytes, img.astype(np.float32).nbytes)

plt.imshow(img)
plt.show()

# %% [markdown]
# Rows come first, then columns, then colours. A batch has one more axis in front; frameworks differ
# in whether channels come last (NHWC) or before the rows (NCHW).
#
# Slices cut: here the green channel around the face. Reversed slices mirror, `rot90` turns.

# %%
cat_face = img[40:220, 120:320, 1]
print(cat_face.shape)

fig, axes = plt.subplots(1, 3, figsize=(11, 3))
axes[0].imshow(cat_face, cmap="gray")
axes[1].imshow(img[:, ::-1, :])
axes[2].imshow(np.rot90(img, k=2, axes=(0, 1)))
plt.show()

# %% [markdown]
# ## Filters in NumPy
# We make the photograph a noisy one, as a camera would at night.

# %%
img = img_as_float32(img)
print(img.dtype)
img_noised = random_noise(img, mode="gaussian", rng=0).astype(np.float32)
plt.imshow(img_noised)
plt.show()

# %% [markdown]
# A filter replaces each pixel by a weighted sum of its neighbours. The weights are the *kernel*,
# and the operation a convolution. Equal weights blur; weights that fall off with the distance, as a
# Gaussian does, blur more gently.

# %%
kernel_blur = np.ones((5, 5))
kernel_blur /= np.sum(kernel_blur)
print(kernel_blur)


# %%
def gaussian_kernel(kernel_size, sigma=1.0, mu=0.0):
    """exp(-(d - mu)^2 / 2 sigma^2) / (2 pi sigma^2), d being the distance to the centre."""
    center = kernel_size // 2
    x, y = np.mgrid[-center:kernel_size - center, -center:kernel_size - center]
    d = np.sqrt(np.square(x) + np.square(y))
    koeff = 1 / (2 * np.pi * np.square(sigma))
    return koeff * np.exp(-np.square(d - mu) / (2 * np.square(sigma)))


kernel_gauss = gaussian_kernel(5)
print(kernel_gauss)

# %% [markdown]
# Each colour is filtered by itself, and clipped to the range of colours.


# %%
def color_convolution(image, kernel):
    channels = []
    for i in range(3):
        filtered_channel = convolve2d(image[:, :, i], kernel, mode="same")
        channels.append(np.clip(filtered_channel, 0.0, 1.0))
    return np.stack(channels, axis=2)


img_blur = color_convolution(img_noised, kernel_gauss)
plt.figure(figsize=(12, 5))
plt.imshow(np.hstack((img_blur, img_noised)))
plt.show()

# %% [markdown]
# Less noise, and less sharp. A kernel with a large centre and negative neighbours sharpens again.

# %%
kernel_sharpen = np.array(
    [[-1, -1, -1, -1, -1],
     [-1, -1, -1, -1, -1],
     [-1, -1, 50, -1, -1],
     [-1, -1, -1, -1, -1],
     [-1, -1, -1, -1, -1]], dtype=np.float32)
kernel_sharpen /= np.sum(kernel_sharpen)

img_restored = color_convolution(img_blur, kernel_sharpen)
plt.figure(figsize=(12, 9))
plt.imshow(np.vstack((np.hstack((img, img_noised)), np.hstack((img_restored, img_blur)))))
plt.show()

imsave("cat_modified.png", img_as_ubyte(img_restored))
print(imread("cat_modified.png").shape)
by_numpy = img_restored

# %% [markdown]
# ## The same with pyjx
# Two imports change. The program below is the one above.

# %%
import pyjx as jax
import pyjx.numpy as np
from pyjx.scipy.signal import convolve2d

kernel_gauss = gaussian_kernel(5)
kernel_sharpen = np.array(kernel_sharpen)
img_restored = color_convolution(color_convolution(np.array(img_noised), kernel_gauss),
                                 kernel_sharpen)
print(type(img_restored).__name__, img_restored.dtype)
print("as before:", bool(np.allclose(img_restored, by_numpy, atol=1e-5)))

# %% [markdown]
# Usually one wants both libraries under their own names, because each has its uses:

# %%
import numpy as np

import pyjx.numpy as jnp
from pyjx import lax, random

# %% [markdown]
# ## Arrays
# They are made by functions, as in NumPy. Lists are not taken for arrays: converting one silently,
# element by element, would be slow without anybody noticing.

# %%
print(repr(np.array([1, 42, 31337])), np.sum([1, 42, 31337]))
print(repr(jnp.array([1, 42, 31337])))
try:
    jnp.sum([1, 42, 31337])
except TypeError as error:
    print(error)
print(repr(jnp.sum(jnp.array([1, 42, 31337]))))

# %%
arr = jnp.array([1, 42, 31337])
print(arr.ndim, arr.shape, arr.dtype, arr.size, arr.nbytes)
again = copy.deepcopy(arr), pickle.loads(pickle.dumps(arr))
print(*again)

# %% [markdown]
# ## Devices
# A *host* runs Python and has devices: its CPU, GPUs, TPU cores. With several processes, each has
# local devices, and all of them together the global ones.

# %% tags=["varies"]
print(jax.devices()[:2], jax.device_count(), jax.local_device_count(), jax.process_index())
print(jax.devices("cpu")[0])

# %% [markdown]
# Arrays are made on the first device, but not bound to it: such an array is *uncommitted*.
# `device_put` with a device commits its copy, and computations follow committed operands.

# %%
first, last = jax.devices()[0], jax.devices()[-1]
arr = jnp.array([1, 42, 31337])
print(arr.devices() == {first}, arr.committed)

put = jax.device_put(arr, last)
print(put.devices() == {last}, put.committed)
print((arr + put).devices() == {last}, arr + put)

host = jax.device_get(put)
print(type(host).__name__, host)

# %% [markdown]
# Operands that are committed to two devices are an error: nothing says where to compute.

# %%
if first != last:
    try:
        jax.device_put(arr, first) + put
    except ValueError as error:
        print(type(error).__name__)

with jax.default_device(last):
    print(jnp.ones(2).devices() == {last})

# %% [markdown]
# ## Results come later
# A call returns when the work is queued; the array is a promise. Printing it, or making it a NumPy
# array, waits; `block_until_ready` waits and does nothing else. Time without waiting, and you have
# measured the queue.

# %% tags=["varies"]
a = jnp.array(range(1000000)).reshape((1000, 1000)).astype(jnp.float32)
jnp.dot(a, a).block_until_ready()  # compiled here, not measured
for name, call in (("queued", lambda: jnp.dot(a, a)),
                   ("done", lambda: jnp.dot(a, a).block_until_ready())):
    start = perf_counter()
    call()
    print(f"{name:6} {(perf_counter() - start) * 1e3:8.3f} ms")

# %% [markdown]
# ## On a TPU
# A TPU of Colab is attached to the machine that runs this notebook, so nothing has to be set up;
# `setup_tpu` looks for it and says what to choose in the menu if there is none. What was written
# above runs on it as it is: its devices are simply the first ones.

# %% tags=["pyjx"]
import pyjx.tools.colab_tpu

pyjx.tools.colab_tpu.setup_tpu()
print(jax.default_backend(), jax.local_devices())

# %% [markdown]
# ## Arrays do not change

# %%
a_np, a_jnp = np.array(range(10)), jnp.array(range(10))
a_np[5] = 100
try:
    a_jnp[5] = 100
except TypeError as error:
    print(type(error).__name__)

# %% [markdown]
# | NumPy | here |
# |---|---|
# | `x[i] = y` | `x = x.at[i].set(y)` |
# | `x[i] += y`, `-=`, `*=`, `/=` | `x.at[i].add(y)`, `subtract`, `multiply`, `divide` |
# | `x[i] **= y` | `x.at[i].power(y)` |
# | `x[i] = minimum(x[i], y)` | `x.at[i].min(y)`, `max` |
# | `ufunc.at(x, i)` | `x.at[i].apply(ufunc)` |

# %%
a_jnp = a_jnp.at[5].set(100)
print(repr(a_jnp[5]))

# %% [markdown]
# ## Indices out of bounds
# A program on an accelerator cannot stop for an error. Reading beyond the end gives the last
# element, writing there does nothing; `mode` says otherwise.

# %%
a_jnp = jnp.array(range(10))
print(repr(a_jnp[42]))
print(repr(a_jnp.at[42].get(mode="drop")))
print(repr(a_jnp.at[42].get(mode="fill", fill_value=-1)))
print(repr(a_jnp.at[42].set(100)))
print(repr(a_jnp.at[42].set(100, mode="clip")))

# %% [markdown]
# ## Types
# Floats have 32 bits by default, which is enough for most networks and half the memory; 64
# bits must be allowed, by a flag at the start of a program or in a block. TPUs compute with fewer.
#
# | type | sign, exponent, fraction | largest | digits |
# |---|---|---|---|
# | float64 | 1, 11, 52 | 1.8e308 | 15 |
# | float32 | 1, 8, 23 | 3.4e38 | 6 |
# | bfloat16 | 1, 8, 7 | 3.4e38 | 2 |
# | float16 | 1, 5, 10 | 65504 | 3 |

# %%
with jax.enable_x64(True):
    print(jnp.array(range(10), dtype=jnp.float64).dtype)
xb16 = jnp.array(range(10), dtype=jnp.bfloat16)
x16 = jnp.array(range(10), dtype=jnp.float16)
print(xb16.dtype, xb16.nbytes, x16.dtype)

# %% [markdown]
# Of two types neither of which holds the other, the result is one that holds both:

# %%
print(repr(xb16 + x16))
print(repr(xb16 + xb16))

# %% [markdown]
# ## The layer below
# `lax` promotes nothing. A Python number has a *weak* type, which gives way to that of an array.

# %%
print(repr(jnp.add(42, 42.0)), repr(jnp.add(42.0, 42.0)))
try:
    lax.add(42, 42.0)
except Exception as error:
    print(type(error).__name__)
print(repr(lax.add(jnp.float32(42), 42.0)))

# %% [markdown]
# `lax` also has control flow. `switch` chooses one of several functions by a traced number; here it
# changes images at random, as one does with training data.


# %%
def add_noise_func(image):
    return jnp.clip(image + 0.1 * random.normal(random.key(1), image.shape), 0, 1)


def horizontal_flip_func(image):
    return image[:, ::-1]


def rotate_func(image):
    return jnp.rot90(image, 2)


def adjust_colors_func(image):
    return image * jnp.array([1.0, 0.7, 0.5])


augmentations = [add_noise_func, horizontal_flip_func, rotate_func, adjust_colors_func]


@partial(jax.jit, static_argnums=1)
def random_augmentation(image, augmentations, rng_key):
    index = random.randint(key=rng_key, minval=0, maxval=len(augmentations), shape=())
    return index, lax.switch(index, augmentations, image)


image = jnp.array(img)
chosen = [random_augmentation(image, tuple(augmentations), random.key(seed)) for seed in range(6)]
print([int(index) for index, _ in chosen])

fig, axes = plt.subplots(2, 3, figsize=(11, 5))
for ax, (index, changed) in zip(axes.ravel(), chosen, strict=True):
    ax.imshow(changed)
    ax.set_title(augmentations[int(index)].__name__)
    ax.axis("off")
plt.show()
